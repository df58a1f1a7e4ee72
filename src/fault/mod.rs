//! What harm is done to traffic, and when: one fault, one file; the timeline that applies them; the fate of a request.
//!
//! # How faults combine
//!
//! The faults that act apply to a request in the order of the plan. Delays add up. The first terminal fate
//! (answer, swallow, reset) wins, and the faults behind it do not see the request: they neither touch it nor spend
//! a token on it. At one instant faults end before others begin.
//!
//! A fault that begins also strikes what is already there, once and in the same order: `refuse` and `reset` (at a
//! share of 100%) and `close` end every live connection, `hang` and `blackhole` swallow the requests in flight and whatever
//! answer is on its way. Faults of bytes (see [`pipe`]) take up live connections as they are. `latency`, `status` and `rate_limit` leave requests alone that were let through before.
//!
//! What `hang` or `blackhole` swallowed is never answered. With `release: true` it goes on when the fault ends,
//! through the faults that it has not met yet: those behind it in the plan, and those that began meanwhile.
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
pub mod blackhole;
pub mod certificate;
pub mod close;
pub mod external;
pub mod fate;
pub mod handshake_hang;
pub mod hang;
pub mod latency;
pub mod pipe;
pub mod rate_limit;
pub mod refuse;
pub mod reset;
pub mod rule;
pub mod status;
pub mod timeline;
pub mod toxic;

use crate::choice;
use crate::time::Share;

pub use active::Active;
pub use blackhole::Blackhole;
pub use certificate::{Certificate, CertificateKind};
pub use close::Close;
pub use fate::{Dice, Effect, Fate, Handshake, Judgement, Origin, Request, Strike, destination_key};
pub use handshake_hang::HandshakeHang;
pub use hang::Hang;
pub use latency::Latency;
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
pub use status::Status;
pub use timeline::{Phase, Step, Timeline, Transition};
pub use toxic::{Stream, Toxic, ToxicKind};

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
        /// Requests are answered with a status before the upstream sees them.
        status => Status(Status),
        /// Requests above a rate are answered with 429.
        rate_limit => RateLimit(RateLimit),
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

impl Fault {
    /// What it does to a request that comes while it acts. A rate limit asks for a token through `token`.
    fn effect(&self, dice: Dice, token: impl FnOnce() -> bool) -> Effect {
        match self {
            Self::Refuse(fault) => fault.effect(),
            Self::Hang(fault) => fault.effect(),
            Self::Blackhole(fault) => fault.effect(dice),
            Self::Reset(fault) => fault.effect(dice),
            Self::Latency(fault) => fault.effect(dice),
            Self::Status(fault) => fault.effect(dice),
            Self::RateLimit(fault) => fault.effect(token()),
            Self::Close(fault) => fault.effect(),
            Self::Bandwidth(_)
            | Self::Slicer(_)
            | Self::LimitData(_)
            | Self::SlowClose(_)
            | Self::Loss(_)
            | Self::HalfOpen(_)
            | Self::Stall(_) => Effect::Pass,
            // The request has a connection, so its handshake is over.
            Self::Certificate(_) | Self::HandshakeHang(_) => Effect::Pass,
        }
    }

    /// What it does, as it begins, to a live connection; `in_flight` are the dice of the request on it, if there is one.
    fn onset(&self, in_flight: Option<Dice>) -> Option<Strike> {
        match self {
            Self::Refuse(fault) => Some(fault.onset()),
            Self::Hang(fault) => in_flight.map(|_| fault.onset()),
            Self::Blackhole(fault) => fault.onset(in_flight?),
            Self::Reset(fault) => fault.onset(),
            Self::Close(fault) => Some(fault.onset()),
            Self::Latency(_)
            | Self::Status(_)
            | Self::RateLimit(_)
            | Self::Bandwidth(_)
            | Self::Slicer(_)
            | Self::LimitData(_)
            | Self::SlowClose(_)
            | Self::Loss(_)
            | Self::HalfOpen(_)
            | Self::Stall(_)
            | Self::Certificate(_)
            | Self::HandshakeHang(_) => None,
        }
    }

    /// Whether it acts on the bytes of a connection, and so needs one: there are none in a simulation.
    pub fn of_bytes(&self) -> bool {
        match self {
            Self::Bandwidth(_)
            | Self::Slicer(_)
            | Self::LimitData(_)
            | Self::SlowClose(_)
            | Self::Loss(_)
            | Self::HalfOpen(_)
            | Self::Stall(_) => true,
            Self::Refuse(_)
            | Self::Hang(_)
            | Self::Blackhole(_)
            | Self::Reset(_)
            | Self::Latency(_)
            | Self::Status(_)
            | Self::RateLimit(_)
            | Self::Close(_)
            | Self::Certificate(_)
            | Self::HandshakeHang(_) => false,
        }
    }

    /// Whether it answers requests, and so needs a proxy that knows them.
    pub fn of_requests(&self) -> bool {
        match self {
            Self::Status(_) | Self::RateLimit(_) => true,
            Self::Refuse(_)
            | Self::Hang(_)
            | Self::Blackhole(_)
            | Self::Reset(_)
            | Self::Latency(_)
            | Self::Close(_)
            | Self::Bandwidth(_)
            | Self::Slicer(_)
            | Self::LimitData(_)
            | Self::SlowClose(_)
            | Self::Loss(_)
            | Self::HalfOpen(_)
            | Self::Stall(_)
            | Self::Certificate(_)
            | Self::HandshakeHang(_) => false,
        }
    }

    /// What it does to a TLS handshake that begins while it acts; the dice are the connection's.
    fn handshake(&self, dice: Dice) -> Option<Handshake> {
        match self {
            Self::Certificate(fault) => fault.handshake(dice),
            Self::HandshakeHang(fault) => fault.handshake(dice),
            // What hangs as a whole answers no handshake either; a part of the requests is taken once they come.
            Self::Hang(fault) => Some(Handshake::Hold { release: fault.release }),
            Self::Blackhole(fault) if fault.share == Share::ALL => Some(Handshake::Hold { release: fault.release }),
            Self::Blackhole(_) | Self::Refuse(_) | Self::Reset(_) | Self::Close(_) => None,
            Self::Latency(_)
            | Self::Status(_)
            | Self::RateLimit(_)
            | Self::Bandwidth(_)
            | Self::Slicer(_)
            | Self::LimitData(_)
            | Self::SlowClose(_)
            | Self::Loss(_)
            | Self::HalfOpen(_)
            | Self::Stall(_) => None,
        }
    }
}
