//! What a fault is in Toxiproxy's terms.

use super::super::pipe::stall::Measure;
use super::super::{Distribution, Fault, Stream, Toxic, ToxicKind};
use crate::time::{Share, Span};

/// What the proxy of a Toxiproxy is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// That it is down: its connections are closed, and new ones refused.
    Down,
    /// That it has these toxics, one a stream at most.
    Toxics(Vec<Toxic>),
}

/// Why a Toxiproxy cannot do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unable {
    /// What it lacks, in a sentence.
    pub why: String,
    /// What can be done about it.
    pub remedy: &'static str,
}

/// Leave it to our own proxy.
const OURS: &str = "leave `proxy` out, and our own proxy does it";

/// What a fault is in Toxiproxy's terms.
///
/// # Errors
/// What Toxiproxy cannot do: whatever needs to know where a request begins, and to hold one for later.
pub fn demand(fault: &Fault) -> Result<Demand, Unable> {
    use Stream::{Downstream, Upstream};
    if fault.is_of_answers() {
        return Err(unable("a Toxiproxy moves bytes, and knows of no answer that it could harm"));
    }
    let dropped = |share, streams: &[Stream]| {
        let dropped = |stream: &Stream| toxic(*stream, share, ToxicKind::Timeout { timeout: Span::ZERO });
        Demand::Toxics(streams.iter().map(dropped).collect())
    };
    match fault {
        Fault::Refuse(_) => Ok(Demand::Down),
        Fault::Hang(hang) => unheld(hang.release).map(|()| dropped(Share::ALL, &[Downstream])),
        Fault::Blackhole(hole) => unheld(hole.release).map(|()| dropped(hole.share, &[Upstream, Downstream])),
        Fault::Reset(reset) => one(reset.share, ToxicKind::ResetPeer { timeout: Span::ZERO }),
        Fault::Latency(latency) if latency.distribution != Distribution::Uniform && !latency.jitter.is_zero() => {
            Err(unable("the latency of a Toxiproxy has no distribution but `uniform`"))
        }
        Fault::Latency(latency) => {
            let kind = ToxicKind::Latency { latency: whole_millis(latency.add), jitter: whole_millis(latency.jitter) };
            one(latency.share, kind)
        }
        Fault::Bandwidth(_)
        | Fault::Slicer(_)
        | Fault::LimitData(_)
        | Fault::SlowClose(_)
        | Fault::Stall(_)
        | Fault::Loss(_)
        | Fault::HalfOpen(_) => of_bytes(fault),
        Fault::Close(_) => Err(unable("a Toxiproxy refuses connections or lets them in, and closes none that it has let in")),
        Fault::Certificate(_) | Fault::HandshakeHang(_) => {
            Err(unable("a Toxiproxy passes TLS on, and takes no part in a handshake"))
        }
        // What follows needs to know what a request is.
        Fault::Status(_)
        | Fault::RateLimit(_)
        | Fault::LimitConcurrency(_)
        | Fault::Truncate(_)
        | Fault::SlowBody(_)
        | Fault::Malformed(_) => Err(unable("a Toxiproxy moves bytes, and knows of no request that it could answer")),
    }
}

/// A fault of bytes, on each of its streams.
fn of_bytes(fault: &Fault) -> Result<Demand, Unable> {
    let (direction, kind) = match fault {
        Fault::Bandwidth(bandwidth) if !bandwidth.overall => {
            // Whole KB/s, the nearest, and one at least: at none it would stop.
            let rate = ((bandwidth.rate.get() + 500) / 1_000).max(1);
            (bandwidth.stream, ToxicKind::Bandwidth { rate })
        }
        Fault::Slicer(slicer) => {
            let (average_size, size_variation) = (slicer.size.0, slicer.variation.0);
            (slicer.stream, ToxicKind::Slicer { average_size, size_variation, delay: slicer.delay })
        }
        Fault::LimitData(limit) => (limit.stream, ToxicKind::LimitData { bytes: limit.bytes.0 }),
        Fault::SlowClose(slow) => (slow.stream, ToxicKind::SlowClose { delay: whole_millis(slow.delay) }),
        Fault::Stall(stall) if stall.measure == Measure::Silence => {
            (stall.stream, ToxicKind::Timeout { timeout: whole_millis(stall.timeout) })
        }
        Fault::Bandwidth(_) => {
            return Err(unable("the bandwidth of a Toxiproxy is that of each connection, never of all together"));
        }
        Fault::Stall(_) => {
            return Err(unable("a Toxiproxy counts the timeout of a stall from the last byte, never from its start"));
        }
        _ => return Err(unable("a Toxiproxy has no toxic for it")),
    };
    let streams = [Stream::Upstream, Stream::Downstream].into_iter().filter(|stream| direction.includes(*stream));
    Ok(Demand::Toxics(streams.map(|stream| toxic(stream, Share::ALL, kind.clone())).collect()))
}

fn unable(why: &str) -> Unable {
    Unable { why: why.to_string(), remedy: OURS }
}

/// One toxic, on the way from upstream to client.
fn one(share: Share, kind: ToxicKind) -> Result<Demand, Unable> {
    Ok(Demand::Toxics(vec![toxic(Stream::Downstream, share, kind)]))
}

fn toxic(stream: Stream, share: Share, kind: ToxicKind) -> Toxic {
    Toxic { stream, toxicity: share.get(), kind }
}

fn unheld(release: bool) -> Result<(), Unable> {
    let why = "a Toxiproxy drops what it swallows, and so has nothing to let go (`release`) when the fault ends";
    let remedy = "leave `release` out; or leave `proxy` out, and our own proxy does it";
    if release { Err(Unable { why: why.into(), remedy }) } else { Ok(()) }
}

/// The whole number of milliseconds that is nearest; one at least, where there is any delay.
fn whole_millis(span: Span) -> Span {
    let nearest = Span::from_millis((span + Span::from_micros(500)).as_millis());
    if span.is_zero() { span } else { nearest.max(Span::from_millis(1)) }
}

#[cfg(test)]
mod tests {
    use super::super::super::timeline::tests::fault;
    use super::super::super::{Blackhole, Latency, When};
    use super::*;

    #[test]
    fn what_each_fault_is_in_toxiproxys_terms() {
        let timeout = ToxicKind::Timeout { timeout: Span::ZERO };
        let on = |stream, toxicity, kind: &ToxicKind| Toxic { stream, toxicity, kind: kind.clone() };
        let (up, down) = (Stream::Upstream, Stream::Downstream);
        let reset = ToxicKind::ResetPeer { timeout: Span::ZERO };
        let late = ToxicKind::Latency { latency: Span::from_millis(800), jitter: Span::ZERO };
        for (text, wanted) in [
            ("refuse", Demand::Down),
            ("hang", Demand::Toxics(vec![on(down, 1.0, &timeout)])),
            ("blackhole", Demand::Toxics(vec![on(up, 1.0, &timeout), on(down, 1.0, &timeout)])),
            ("blackhole-half", Demand::Toxics(vec![on(up, 0.5, &timeout), on(down, 0.5, &timeout)])),
            ("reset", Demand::Toxics(vec![on(down, 1.0, &reset)])),
            ("reset-half", Demand::Toxics(vec![on(down, 0.5, &reset)])),
            ("latency 800", Demand::Toxics(vec![on(down, 1.0, &late)])),
        ] {
            assert_eq!(demand(&fault(text)), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn faults_of_bytes_are_toxics_where_toxiproxy_has_them() {
        use super::super::super::pipe::Direction;
        use super::super::super::{Bandwidth, HalfOpen, SlowClose, Stall};
        use crate::size::ByteRate;
        let stream = Direction::Downstream;
        let rate = |bytes| ByteRate::per_second(bytes).unwrap();
        let stall = |measure| Fault::Stall(Stall { timeout: Span::from_secs(2), measure, stream });
        let ms = Span::from_millis;
        for (fault, wanted) in [
            (Fault::Bandwidth(Bandwidth { rate: rate(499), stream, overall: false }), Ok(ToxicKind::Bandwidth { rate: 1 })),
            (Fault::Bandwidth(Bandwidth { rate: rate(1_500), stream, overall: false }), Ok(ToxicKind::Bandwidth { rate: 2 })),
            (Fault::Bandwidth(Bandwidth { rate: rate(1_500), stream, overall: true }), Err("never of all")),
            (Fault::SlowClose(SlowClose { delay: ms(7), stream }), Ok(ToxicKind::SlowClose { delay: ms(7) })),
            (stall(Measure::Silence), Ok(ToxicKind::Timeout { timeout: ms(2_000) })),
            (stall(Measure::Absolute), Err("never from its start")),
            (Fault::HalfOpen(HalfOpen { stream }), Err("no toxic")),
            (fault("close"), Err("closes none")),
        ] {
            match wanted {
                Ok(kind) => {
                    let toxic = Toxic { stream: Stream::Downstream, toxicity: 1.0, kind };
                    assert_eq!(demand(&fault), Ok(Demand::Toxics(vec![toxic])));
                }
                Err(words) => assert!(demand(&fault).unwrap_err().why.contains(words), "{fault:?}"),
            }
        }
        let both = Fault::SlowClose(SlowClose { delay: ms(7), stream: Direction::Both });
        let Ok(Demand::Toxics(toxics)) = demand(&both) else { panic!("it is a toxic") };
        assert_eq!(toxics.iter().map(|toxic| toxic.stream).collect::<Vec<_>>(), [Stream::Upstream, Stream::Downstream]);
    }

    #[test]
    fn what_needs_to_know_requests_or_to_hold_them_is_refused() {
        let held = Fault::Blackhole(Blackhole { share: Share::ALL, release: true, when: When::Before });
        for (fault, words) in [
            (fault("status 503"), "no request that it could answer"),
            (fault("limit 5"), "no request that it could answer"),
            (fault("expired"), "no part in a handshake"),
            (fault("handshake-hang"), "no part in a handshake"),
            (fault("at-once 5"), "no request that it could answer"),
            (fault("reset-after"), "no answer that it could harm"),
            (fault("truncate 5"), "no answer that it could harm"),
            (fault("hang-release"), "`release`"),
            (held, "`release`"),
        ] {
            let unable = demand(&fault).unwrap_err();
            assert!(unable.why.contains(words) && unable.remedy.contains("our own proxy"), "{unable:?}");
        }
    }

    #[test]
    fn delays_are_whole_milliseconds_and_no_delay_becomes_none() {
        for (micros, millis) in [(0, 0), (1, 1), (1_499, 1), (1_500, 2), (20_000, 20)] {
            let (span, distribution) = (Span::from_micros(micros), Distribution::Uniform);
            let late = Latency { add: span, jitter: span, distribution, share: Share::ALL };
            let Ok(Demand::Toxics(toxics)) = demand(&Fault::Latency(late)) else { panic!("latency is a toxic") };
            let span = Span::from_millis(millis);
            assert_eq!(toxics[0].kind, ToxicKind::Latency { latency: span, jitter: span }, "{micros}us");
        }
    }
}
