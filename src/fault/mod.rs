//! What harm is done to traffic, and when: one fault, one file; the timeline that applies them; the fate of a request.
//!
//! # How faults combine
//!
//! The faults that act apply to a request in the order of the plan. Delays add up. The first terminal fate
//! (answer, swallow, reset) wins, and the faults behind it do not see the request: they neither touch it nor spend
//! a token on it. At one instant faults end before others begin.
//!
//! A fault of answers (`truncate`, `slow_body`, and what is said to come `after` the upstream's work) ends nothing: the request
//! still meets the faults behind it, and if none of them keeps it from the upstream, its answer comes to harm. Of the faults of answers the
//! first that strikes is the one that does, and those behind it do not see the request. What was begun with an answer is done with it, also
//! where the fault ends meanwhile.
//!
//! Which requests a fault strikes stands in [`which`], its shape in time in [`shape`]: a fault that rests does not act, and one that ramps
//! does a part of its harm, as of the moment at which it meets a request.
//!
//! A fault that begins also strikes what is already there, once and in the same order: `refuse` and `reset` (at a
//! share of 100%) and `close` end every live connection, `hang` and `blackhole` swallow the requests in flight and whatever
//! answer is on its way. Faults of bytes (see [`pipe`]) take up live connections as they are. All others leave requests alone that were let
//! through before, and so do faults that count requests (`every`, `first`); a fault that looks at requests (`match`, destinations) leaves idle
//! connections alone. A fault that rested begins anew.
//!
//! What `hang` or `blackhole` swallowed is never answered. With `release: true` it goes on when the fault ends or rests,
//! through the faults that it has not met yet: those behind it in the plan, and those that began meanwhile. So does what waited for a
//! place, once it has one; see [`hold`].
//!
//! TLS handshakes of a proxy that speaks it to its clients are judged too, once each: the first fault in the order of the plan that has
//! a say shows a bad certificate (`certificate`) or holds the handshake (`handshake_hang`, `hang`, and `blackhole` at a share of 100%).
//! What is established is not shaken again: these faults strike new connections alone.
//!
//! # Dice
//!
//! Whether a share strikes, and how much a delay varies, is drawn per request and per fault: the key of a draw is
//! the request's (see [`Request`]) with the fault's number in the plan mixed in, so that two faults do not strike the
//! same requests, and a retry rolls again.

pub mod active;
pub mod answer;
pub mod blackhole;
pub mod certificate;
pub mod close;
pub mod external;
pub mod fate;
pub mod handshake_hang;
pub mod hang;
pub mod hold;
pub mod latency;
pub mod limit_concurrency;
pub mod malformed;
pub mod matching;
pub mod pipe;
pub mod rate_limit;
pub mod refuse;
pub mod reset;
pub mod rule;
pub mod shape;
pub mod slow_body;
pub mod status;
pub mod timeline;
pub mod toxic;
pub mod truncate;
pub mod which;

use crate::choice;
use crate::time::Share;
use limit_concurrency::Entered;

pub use active::Active;
pub use answer::Answer;
pub use blackhole::Blackhole;
pub use certificate::{Certificate, CertificateKind};
pub use close::Close;
pub use fate::{Dice, Effect, Fate, Handshake, Harm, Judgement, Origin, Pending, Request, Strike, When, destination_key};
pub use handshake_hang::HandshakeHang;
pub use hang::Hang;
pub use hold::Hold;
pub use latency::Latency;
pub use limit_concurrency::LimitConcurrency;
pub use malformed::{Malformed, Nonsense};
pub use matching::{Head, Match, Matchers};
pub use pipe::bandwidth::Bandwidth;
pub use pipe::half_open::HalfOpen;
pub use pipe::latency::Distribution;
pub use pipe::limit_data::LimitData;
pub use pipe::loss::Loss;
pub use pipe::slicer::Slicer;
pub use pipe::slow_close::SlowClose;
pub use pipe::stall::Stall;
pub use rate_limit::RateLimit;
pub use refuse::Refuse;
pub use reset::Reset;
pub use rule::Rule;
pub use shape::{Flap, Ramp, Repeat, TimeShape};
pub use slow_body::{SlowBody, drip_time};
pub use status::Status;
pub use timeline::{Phase, Step, Timeline, Transition};
pub use toxic::{Stream, Toxic, ToxicKind};
pub use truncate::{CutEnd, Keep, Truncate};
pub use which::{Per, Which};

choice! {
    /// One way to harm traffic.
    pub enum Fault {
        /// Connects are refused and live connections are closed, as if the process were gone.
        refuse => Refuse(Refuse),
        /// Connections and requests are accepted and never answered.
        hang => Hang(Hang),
        /// Data vanishes in both directions, on live connections too; nothing is closed.
        blackhole => Blackhole(Blackhole),
        /// Connections are reset (RST), live ones too.
        reset => Reset(Reset),
        /// Requests are delayed.
        latency => Latency(Latency),
        /// Requests are answered with a status, before the upstream sees them or in the place of its answer.
        status => Status(Status),
        /// Requests above a rate are refused, with 429 where nothing else is said.
        rate_limit => RateLimit(RateLimit),
        /// At most so many requests at once pass; some wait, and the others are refused, with 503 where nothing else is said.
        limit_concurrency => LimitConcurrency(LimitConcurrency),
        /// Answers are cut short.
        truncate => Truncate(Truncate),
        /// Answers drip.
        slow_body => SlowBody(SlowBody),
        /// Answers are no HTTP.
        malformed => Malformed(Malformed),
        /// Connections are accepted and closed (FIN) at once, and live ones when it begins.
        close => Close(Close),
        /// So many bytes a second pass, on each connection or over all of them.
        bandwidth => Bandwidth(Bandwidth),
        /// Data is cut into pieces, with a pause behind each.
        slicer => Slicer(Slicer),
        /// A connection is closed once so many bytes have passed on it.
        limit_data => LimitData(LimitData),
        /// The end of a stream is passed on later.
        slow_close => SlowClose(SlowClose),
        /// Segments are lost, and come again late, with all that follows.
        loss => Loss(Loss),
        /// One direction of a connection vanishes, and nobody is told.
        half_open => HalfOpen(HalfOpen),
        /// Data stops, and the connection is closed after a while.
        stall => Stall(Stall),
        /// New TLS connections are shown a bad certificate.
        certificate => Certificate(Certificate),
        /// TLS handshakes of new connections are never answered.
        handshake_hang => HandshakeHang(HandshakeHang),
    }
}

/// What a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Struck {
    /// Connections as such, new and live.
    Connections,
    /// TLS handshakes of new connections.
    Handshakes,
    /// The bytes of connections.
    Bytes,
    /// Requests where they are known, and else connections.
    Either,
    /// Requests, or their answers.
    Requests,
}

impl Fault {
    /// What it does to a request that comes while it acts. A rate limit asks for a token through `token`, a limit of what passes at once for
    /// a place through `place`.
    fn effect(&self, dice: Dice, token: impl FnOnce() -> bool, place: impl FnOnce() -> Option<Entered>) -> Effect {
        // These have no share of their own: as they ramp, the others are left alone.
        let strikes = || dice.strikes(Share::ALL);
        match self {
            Self::Refuse(fault) => fault.effect(),
            Self::Hang(fault) => fault.effect(dice),
            Self::Blackhole(fault) => fault.effect(dice),
            Self::Reset(fault) => fault.effect(dice),
            Self::Latency(fault) => fault.effect(dice),
            Self::Status(fault) => fault.effect(dice),
            Self::RateLimit(fault) => fault.effect(!strikes() || token()),
            Self::LimitConcurrency(fault) if strikes() => place().map_or(Effect::Pass, |entered| fault.effect(entered)),
            Self::LimitConcurrency(_) => Effect::Pass,
            Self::Truncate(fault) => fault.effect(dice),
            Self::SlowBody(fault) => fault.effect(dice),
            Self::Malformed(fault) => fault.effect(dice),
            Self::Close(fault) => fault.effect(),
            // Those of bytes act in the link, and those of handshakes before there is a request.
            _ => Effect::Pass,
        }
    }

    /// What it does, as it begins, to a live connection; `in_flight` are the dice of the request on it, if there is one.
    fn onset(&self, in_flight: Option<Dice>) -> Option<Strike> {
        match self {
            Self::Refuse(fault) => Some(fault.onset()),
            Self::Hang(fault) => fault.onset(in_flight?),
            Self::Blackhole(fault) => fault.onset(in_flight?),
            Self::Reset(fault) => fault.onset(),
            Self::Close(fault) => Some(fault.onset()),
            _ => None,
        }
    }

    /// Whether it strikes answers, and not requests.
    pub fn is_of_answers(&self) -> bool {
        match self {
            Self::Blackhole(fault) => fault.when == When::After,
            Self::Reset(fault) => fault.when == When::After,
            Self::Status(fault) => fault.when == When::After,
            Self::Malformed(fault) => fault.when == When::After,
            Self::Truncate(_) | Self::SlowBody(_) => true,
            _ => false,
        }
    }

    /// What it strikes: the one list of all faults, which the questions below are answered by.
    pub fn strikes(&self) -> Struck {
        match self {
            Self::Refuse(_) | Self::Close(_) => Struck::Connections,
            Self::Certificate(_) | Self::HandshakeHang(_) => Struck::Handshakes,
            Self::Bandwidth(_)
            | Self::Slicer(_)
            | Self::LimitData(_)
            | Self::SlowClose(_)
            | Self::Loss(_)
            | Self::HalfOpen(_)
            | Self::Stall(_) => Struck::Bytes,
            Self::Hang(_) | Self::Blackhole(_) | Self::Reset(_) | Self::Latency(_) => Struck::Either,
            Self::Status(_) | Self::RateLimit(_) | Self::LimitConcurrency(_) => Struck::Requests,
            Self::Truncate(_) | Self::SlowBody(_) | Self::Malformed(_) => Struck::Requests,
        }
    }

    /// Whether it acts on the bytes of a connection, and so needs one: there are none in a simulation.
    pub fn of_bytes(&self) -> bool {
        self.strikes() == Struck::Bytes
    }

    /// Whether it answers requests, or harms answers, and so needs a proxy that knows them.
    pub fn of_requests(&self) -> bool {
        self.strikes() == Struck::Requests || self.is_of_answers()
    }

    /// Whether it strikes connections as such, whatever requests come on them.
    pub fn chooses_no_requests(&self) -> bool {
        matches!(self.strikes(), Struck::Connections | Struck::Handshakes | Struck::Bytes)
    }

    /// What it does to a TLS handshake that begins while it acts; the dice are the connection's.
    fn handshake(&self, dice: Dice) -> Option<Handshake> {
        match self {
            Self::Certificate(fault) => fault.handshake(dice),
            Self::HandshakeHang(fault) => fault.handshake(dice),
            // What hangs as a whole answers no handshake either; a part of the requests is taken once they come.
            Self::Hang(fault) => Some(Handshake::Hold { release: fault.release }),
            Self::Blackhole(fault) if fault.share == Share::ALL && fault.when == When::Before => {
                Some(Handshake::Hold { release: fault.release })
            }
            _ => None,
        }
    }
}
