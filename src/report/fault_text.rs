//! A fault of a plan in the plan's words: what it does, to which requests, and how it comes and goes.

use crate::config::Table;
use crate::fault::pipe::Direction;
use crate::fault::{Fault, Step, When, Which};
use crate::time::{Share, Span};
use std::fmt::Display;

/// The most characters of a value that its author chose freely.
const LONGEST: usize = 28;

/// `status 503, share 20%, when after, match POST /pay*, every 3, flap 2s on 3s off`; without what is as usual.
pub(super) fn fault(step: &Step, fault: &Fault) -> String {
    let (key, first, parts) = (fault.key(), first(fault), parts(fault));
    let head = if first.is_empty() { key.to_string() } else { format!("{key} {first}") };
    let all = std::iter::once(head).chain(parts).chain(which(&step.which)).chain(shape(step));
    all.collect::<Vec<_>>().join(", ")
}

/// What stands for a fault where one value says most of it.
fn first(fault: &Fault) -> String {
    match fault {
        Fault::Status(status) => status.code.to_string(),
        Fault::Latency(latency) => format!("add {}", latency.add),
        Fault::RateLimit(limit) => limit.rate.to_string(),
        Fault::LimitConcurrency(limit) => limit.limit.to_string(),
        Fault::SlowBody(slow) => format!("{}B every {}", slow.bytes, slow.every),
        Fault::Malformed(malformed) => malformed.kind.word().to_string(),
        Fault::Bandwidth(bandwidth) => bandwidth.rate.to_string(),
        Fault::Slicer(slicer) => slicer.size.to_string(),
        Fault::LimitData(limit) => limit.bytes.to_string(),
        Fault::SlowClose(slow) => format!("delay {}", slow.delay),
        Fault::Loss(loss) => loss.share.to_string(),
        Fault::Certificate(certificate) => certificate.kind.word().to_string(),
        Fault::Truncate(cut) => match (cut.bytes, cut.keep) {
            (Some(bytes), _) => format!("bytes {bytes}"),
            (None, keep) => keep.map_or_else(|| "keep 50%".into(), |share| format!("keep {share}")),
        },
        _ => String::new(),
    }
}

/// The rest of it.
fn parts(fault: &Fault) -> Vec<String> {
    let parts = match fault {
        Fault::Hang(hang) => vec![flag("release", hang.release)],
        Fault::Blackhole(hole) => vec![share(hole.share), when(hole.when), flag("release", hole.release)],
        Fault::Reset(reset) => vec![share(reset.share), when(reset.when)],
        Fault::Latency(latency) => {
            let varies = latency.jitter != Span::ZERO;
            let how = flag(latency.distribution.word(), varies && latency.distribution != crate::fault::Distribution::Uniform);
            vec![varies.then(|| format!("jitter {}", latency.jitter)), how, share(latency.share)]
        }
        Fault::Status(status) => vec![share(status.share), when(status.when), maybe("retry_after", status.retry_after)],
        Fault::RateLimit(limit) => vec![
            (limit.burst != 1).then(|| format!("burst {}", limit.burst)),
            (limit.status != 429).then(|| format!("status {}", limit.status)),
            maybe("retry_after", limit.retry_after),
        ],
        Fault::LimitConcurrency(limit) => vec![
            (limit.queue > 0).then(|| format!("queue {} for {}", limit.queue, limit.wait)),
            (limit.status != 503).then(|| format!("status {}", limit.status)),
            maybe("retry_after", limit.retry_after),
        ],
        Fault::Truncate(cut) => vec![flag("end rst", cut.end == crate::fault::CutEnd::Rst), share(cut.share)],
        Fault::SlowBody(slow) => vec![share(slow.share)],
        Fault::Malformed(malformed) => vec![share(malformed.share), when(malformed.when)],
        Fault::Bandwidth(bandwidth) => vec![stream(bandwidth.stream, Direction::Both), flag("overall", bandwidth.overall)],
        Fault::Slicer(slicer) => vec![
            (slicer.variation.0 > 0).then(|| format!("variation {}", slicer.variation)),
            (!slicer.delay.is_zero()).then(|| format!("delay {}", slicer.delay)),
            stream(slicer.stream, Direction::Both),
        ],
        Fault::LimitData(limit) => vec![stream(limit.stream, Direction::Both)],
        Fault::SlowClose(slow) => vec![stream(slow.stream, Direction::Both)],
        Fault::Loss(loss) => vec![stream(loss.stream, Direction::Both)],
        Fault::HalfOpen(half) => vec![stream(half.stream, Direction::Downstream)],
        Fault::Stall(stall) => {
            vec![(!stall.timeout.is_zero()).then(|| format!("timeout {}", stall.timeout)), stream(stall.stream, Direction::Both)]
        }
        Fault::Certificate(certificate) => vec![share(certificate.share)],
        Fault::HandshakeHang(hang) => vec![share(hang.share), flag("release", hang.release)],
        Fault::Refuse(_) | Fault::Close(_) => Vec::new(),
    };
    parts.into_iter().flatten().collect()
}

fn share(share: Share) -> Option<String> {
    (share != Share::ALL).then(|| format!("share {share}"))
}

fn when(when: When) -> Option<String> {
    (when == When::After).then(|| "when after".into())
}

fn stream(stream: Direction, usual: Direction) -> Option<String> {
    (stream != usual).then(|| format!("stream {}", stream.word()))
}

fn flag(word: &str, holds: bool) -> Option<String> {
    holds.then(|| word.to_string())
}

fn maybe<T: Display>(key: &str, value: Option<T>) -> Option<String> {
    value.map(|value| format!("{key} {value}"))
}

/// Which requests it strikes.
fn which(which: &Which) -> Vec<String> {
    let matched = which.r#match.as_ref().map(|of| {
        let (method, path) = (of.method.clone(), of.path.clone());
        let words = [method, path].into_iter().flatten().chain(headers(&of.header));
        format!("match {}", words.map(|word| short(&word)).collect::<Vec<_>>().join(" "))
    });
    let per = which.per.map_or(String::new(), |per| format!(" per {}", per.word()));
    let counted = [maybe("every", which.every), maybe("first", which.first)].map(|part| part.map(|part| part + &per));
    matched.into_iter().chain(counted.into_iter().flatten()).collect()
}

fn headers(table: &Table<String>) -> impl Iterator<Item = String> {
    table.0.iter().map(|entry| format!("{}: {}", entry.name, entry.value))
}

/// How it comes and goes.
fn shape(step: &Step) -> Vec<String> {
    let ramp = step.shape.ramp.as_ref().map(|ramp| {
        let ends = [("in", ramp.r#in), ("out", ramp.out)].into_iter().filter(|(_, takes)| !takes.is_zero());
        format!("ramp {}", ends.map(|(end, takes)| format!("{end} {takes}")).collect::<Vec<_>>().join(" "))
    });
    let flap = step.shape.flap.as_ref().map(|flap| format!("flap on {} off {}", flap.on, flap.off));
    ramp.into_iter().chain(flap).collect()
}

/// A value in so many characters, whatever stands in it.
pub(super) fn short(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match plain.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Source, load};

    #[test]
    fn a_fault_is_told_in_the_words_of_the_plan() {
        for (yaml, told) in [
            ("fault: refuse", "refuse"),
            ("fault: { hang: { release: true } }", "hang, release"),
            ("fault: { blackhole: { share: 20%, when: after } }", "blackhole, share 20%, when after"),
            ("fault: { reset: { share: 7% } }", "reset, share 7%"),
            (
                "fault: { latency: { add: 300ms, jitter: 100ms, distribution: normal, share: 50% } }",
                "latency add 300ms, jitter 100ms, normal, share 50%",
            ),
            ("fault: { status: { code: 503, share: 20%, retry_after: 2s } }", "status 503, share 20%, retry_after 2s"),
            ("fault: { rate_limit: { rate: 50/s, burst: 10, status: 503 } }", "rate_limit 50/s, burst 10, status 503"),
            ("fault: { limit_concurrency: { limit: 8, queue: 4 } }", "limit_concurrency 8, queue 4 for 1s"),
            ("fault: { truncate: { keep: 25%, end: rst } }", "truncate keep 25%, end rst"),
            ("fault: { truncate: {} }", "truncate keep 50%"),
            ("fault: { slow_body: { every: 100ms } }", "slow_body 1B every 100ms"),
            ("fault: { malformed: { kind: chunk_size } }", "malformed chunk_size"),
            (
                "fault: { bandwidth: { rate: 10KB/s, stream: upstream, overall: true } }",
                "bandwidth 10KB/s, stream upstream, overall",
            ),
            ("fault: { slicer: { size: 64B, delay: 5ms } }", "slicer 64B, delay 5ms"),
            ("fault: { limit_data: { bytes: 1KB } }", "limit_data 1KB"),
            ("fault: { slow_close: { delay: 2s } }", "slow_close delay 2s"),
            ("fault: { loss: { share: 5% } }", "loss 5%"),
            ("fault: { half_open: { stream: upstream } }", "half_open, stream upstream"),
            ("fault: { stall: { timeout: 2s } }", "stall, timeout 2s"),
            (
                "fault: { status: { code: 500 } }, every: 3, match: { method: GET, path: /x* }",
                "status 500, match GET /x*, every 3",
            ),
            ("fault: { status: { code: 500 } }, first: 2, per: client", "status 500, first 2 per client"),
            ("fault: { hang: {} }, ramp: { in: 2s, out: 1s }", "hang, ramp in 2s out 1s"),
            ("fault: { status: { code: 500 } }, flap: { on: 2s, off: 3s }", "status 500, flap on 2s off 3s"),
        ] {
            let text = format!(
                "version: 1\ntarget: {{ url: 'http://127.0.0.1:1/x' }}\nfleets: {{ a: {{ clients: 1, policy: {{ attempts: 1, timeout: 1s }}, load: closed }} }}\ntimeline: [ {{ at: 5s, for: 10s, {yaml} }} ]\nlength: 1m\n"
            );
            let loaded = load(&Source { file: "p.yaml", text: &text, overrides: &[], env: &|_| None });
            let plan = loaded.unwrap_or_else(|error| panic!("{yaml}\n{error}")).plan;
            let step = &plan.timeline[0];
            assert_eq!(fault(step, step.fault.as_ref().unwrap()), told, "{yaml}");
        }
    }

    #[test]
    fn what_an_author_chose_is_short_and_plain() {
        assert_eq!(short("a\u{1b}[31m"), "a [31m");
        assert_eq!(short(&"é".repeat(60)).chars().count(), LONGEST + 1);
    }
}
