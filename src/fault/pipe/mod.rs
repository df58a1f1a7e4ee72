//! What faults do to the bytes of a connection: each direction is a [`Pipe`], a chain of stages in the order of the rules.
//!
//! Owns which stage a fault is and what the stages do, one file per stage; leaves sockets and timers to the engine, which pushes
//! what comes with the moment it came, and takes out what is due. Where no stage acts there is no pipe.
//!
//! # How stages combine
//!
//! What a stage lets go is what the next one gets. None lets a later byte overtake an earlier one. What is cut into pieces stays cut.
//! The end of a stream goes the same way as its bytes. A stage that lets nothing through swallows what comes to it for good: a stream
//! with a hole in it never goes on.
//!
//! # Dice
//!
//! Whether a rule strikes a connection is drawn once, by the connection's number; each piece of a stream then draws by (seed, rule,
//! connection, direction, how many draws came before).

pub mod bandwidth;
pub mod chain;
pub mod half_open;
pub mod latency;
pub mod limit_data;
pub mod loss;
pub mod reset_peer;
pub mod slicer;
pub mod slow_close;
pub mod stall;

use super::{Active, Dice, Fault, Request, Rule, Stream, ToxicKind};
use crate::keyword;
use crate::rng;
use crate::size::{ByteRate, Size};
use crate::time::{Share, Span, Timestamp};
use std::sync::Arc;

pub use chain::{End, Next, Pipe};

keyword! {
    /// Which way the bytes go that a fault harms.
    pub enum Direction {
        /// From client to upstream.
        upstream => Upstream,
        /// From upstream to client.
        downstream => Downstream,
        /// Both, each by itself.
        both => Both,
    }
}

impl Direction {
    /// Whether it is meant for a stream.
    pub fn includes(self, stream: Stream) -> bool {
        match self {
            Self::Upstream => stream == Stream::Upstream,
            Self::Downstream => stream == Stream::Downstream,
            Self::Both => true,
        }
    }
}

/// Bytes on their way to a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    len: usize,
    /// When the proxy read them.
    came: Timestamp,
    /// When they come to the stage.
    at: Timestamp,
}

/// What a stage does with a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// So many bytes of its front go on at a moment. The rest is offered again.
    Pass(usize, Timestamp),
    /// It vanishes, and so does whatever comes behind it.
    Vanish,
}

/// What a fault is to the bytes of one direction.
#[derive(Clone, Debug, PartialEq)]
enum Spec {
    Latency(latency::Delays),
    Bandwidth(ByteRate),
    /// The rate is that of the rule's bucket, over all connections.
    Overall(ByteRate),
    SlowClose(Span),
    Stall(stall::Stall),
    ResetPeer(Span),
    Slicer(slicer::Cut),
    LimitData(Size),
    Loss(Share),
    HalfOpen,
    Noop,
}

/// A stage at work, with what it remembers.
#[derive(Debug)]
enum Stage {
    Latency(latency::Stage),
    Bandwidth(bandwidth::Stage),
    Overall(bandwidth::Overall),
    SlowClose(slow_close::Stage),
    Stall(stall::Stage),
    ResetPeer(reset_peer::Stage),
    Slicer(slicer::Stage),
    LimitData(limit_data::Stage),
    Loss(loss::Stage),
    HalfOpen(half_open::Stage),
    Noop,
}

/// The draws of one stage of one direction.
#[derive(Debug)]
struct Draws {
    dice: Dice,
    stream: Stream,
    drawn: u64,
}

impl Draws {
    fn next(&mut self) -> rng::Stream {
        self.drawn += 1;
        self.dice.bytes(self.stream, self.drawn)
    }
}

/// What a stage needs of the rule that it belongs to.
struct Around<'a> {
    draws: &'a mut Draws,
    rule: &'a Rule,
}

impl Stage {
    /// A stage as it is at first; `since` is when it came to this connection.
    fn new(spec: &Spec, since: Timestamp) -> Self {
        match spec {
            Spec::Latency(delays) => Self::Latency(latency::Stage::new(delays.clone())),
            Spec::Bandwidth(rate) => Self::Bandwidth(bandwidth::Stage::new(*rate)),
            Spec::Overall(_) => Self::Overall(bandwidth::Overall::default()),
            Spec::SlowClose(delay) => Self::SlowClose(slow_close::Stage::new(*delay)),
            Spec::Stall(stall) => Self::Stall(stall::Stage::new(stall.clone(), since)),
            Spec::ResetPeer(timeout) => Self::ResetPeer(reset_peer::Stage::new(since + *timeout)),
            Spec::Slicer(cut) => Self::Slicer(slicer::Stage::new(*cut)),
            Spec::LimitData(bytes) => Self::LimitData(limit_data::Stage::new(bytes.0)),
            Spec::Loss(share) => Self::Loss(loss::Stage::new(*share)),
            Spec::HalfOpen => Self::HalfOpen(half_open::Stage::default()),
            Spec::Noop => Self::Noop,
        }
    }

    /// What it does with bytes.
    fn take(&mut self, piece: Piece, around: Around) -> Taken {
        match self {
            Self::Latency(stage) => stage.take(piece, around.draws),
            Self::Bandwidth(stage) => stage.take(piece),
            Self::Overall(stage) => stage.take(piece, around.rule),
            Self::Stall(stage) => stage.take(piece),
            Self::ResetPeer(_) => Taken::Vanish,
            Self::Slicer(stage) => stage.take(piece, around.draws),
            Self::LimitData(stage) => stage.take(piece),
            Self::Loss(stage) => stage.take(piece, around.draws),
            Self::HalfOpen(stage) => stage.take(),
            Self::SlowClose(_) | Self::Noop => Taken::Pass(piece.len, piece.at),
        }
    }

    /// When the end of the stream goes on that comes at a moment; never where it vanishes.
    fn end(&mut self, at: Timestamp, around: Around) -> Option<Timestamp> {
        match self {
            Self::Latency(stage) => Some(stage.end(at, around.draws)),
            Self::SlowClose(stage) => Some(stage.end(at)),
            Self::Loss(stage) => Some(stage.end(at)),
            Self::HalfOpen(stage) => stage.end(),
            Self::Stall(_) | Self::ResetPeer(_) => None,
            Self::Bandwidth(_) | Self::Overall(_) | Self::Slicer(_) | Self::LimitData(_) | Self::Noop => Some(at),
        }
    }

    /// When it closes the connection by itself, as far as is known.
    fn closes_at(&self) -> Option<Timestamp> {
        match self {
            Self::Stall(stage) => stage.closes_at(),
            Self::LimitData(stage) => stage.closes_at(),
            _ => None,
        }
    }

    /// When it resets the connection.
    fn resets_at(&self) -> Option<Timestamp> {
        match self {
            Self::ResetPeer(stage) => Some(stage.due),
            _ => None,
        }
    }

    /// Takes back bytes that it let go: they come again.
    fn undo(&mut self, len: usize) {
        match self {
            Self::Latency(stage) => stage.undo(),
            Self::Bandwidth(stage) => stage.undo(len),
            Self::Overall(stage) => stage.undo(len),
            Self::LimitData(stage) => stage.undo(len),
            Self::Loss(stage) => stage.undo(),
            _ => {}
        }
    }

    /// Whether bytes must not be put together again behind it.
    fn cuts(&self) -> bool {
        matches!(self, Self::Slicer(_))
    }

    /// How many bytes may wait for it.
    fn room(&self) -> usize {
        match self {
            Self::Latency(_) | Self::Loss(_) => chain::MOST,
            Self::Bandwidth(stage) => stage.room(),
            _ => chain::LEAST,
        }
    }

    /// What becomes of a connection when the stage is taken out of it.
    fn leaves(&self) -> Leaving {
        match self {
            Self::Stall(stage) if stage.swallowed() => Leaving::Close,
            Self::ResetPeer(_) => Leaving::Nothing,
            Self::HalfOpen(stage) if stage.swallowed => Leaving::Stay,
            _ => Leaving::Nothing,
        }
    }
}

/// What is left of a stage that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    Nothing,
    /// The connection is closed: bytes of it are gone.
    Close,
    /// The connection keeps the stage: bytes of it are gone, and nobody tells.
    Stay,
}

/// A stage in its place in a pipe.
#[derive(Debug)]
pub struct Slot {
    rule: Arc<Rule>,
    spec: Spec,
    stage: Stage,
    draws: Draws,
    /// What it has been given and not yet let go.
    hand: Option<Piece>,
    /// When the last of that went on.
    last: Timestamp,
    /// Whether its own end has gone on.
    ended: bool,
    touched: bool,
}

impl Slot {
    fn new(rule: Arc<Rule>, spec: Spec, dice: Dice, stream: Stream, now: Timestamp) -> Self {
        let stage = Stage::new(&spec, now);
        Self {
            rule,
            spec,
            stage,
            draws: Draws { dice, stream, drawn: 0 },
            hand: None,
            last: Timestamp::ZERO,
            ended: false,
            touched: false,
        }
    }

    /// Whether the other one does the same by the same rule.
    fn is_like(&self, other: &Self) -> bool {
        self.rule.number == other.rule.number && self.spec == other.spec
    }

    fn take(&mut self, piece: Piece) -> Taken {
        let taken = self.stage.take(piece, Around { draws: &mut self.draws, rule: &self.rule });
        if taken != Taken::Pass(piece.len, piece.at) {
            self.touch();
        }
        if let Taken::Pass(_, at) = taken {
            self.last = at;
        }
        taken
    }

    fn end(&mut self, at: Timestamp) -> Option<Timestamp> {
        let end = self.stage.end(at, Around { draws: &mut self.draws, rule: &self.rule });
        if end != Some(at) {
            self.touch();
        }
        // An end overtakes nothing.
        end.map(|end| end.max(self.last))
    }

    /// When it has closed the connection by itself, if it has by a moment.
    fn close_by(&mut self, moment: Timestamp) -> Option<Timestamp> {
        let at = self.stage.closes_at().filter(|at| *at <= moment)?;
        self.ended = true;
        self.touch();
        Some(at)
    }

    /// Counts the connection, once for each direction.
    fn touch(&mut self) {
        if !self.touched {
            self.touched = true;
            self.rule.touch();
        }
    }
}

/// What stands around a connection's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Course {
    /// The connection: its first request, as somebody else's would be known.
    pub connection: Request,
    /// Whether requests are delayed one by one elsewhere: then `latency` of a plan is no stage.
    pub judges_requests: bool,
}

impl Course {
    /// The stages of one direction from `now` on, in the order of the rules.
    pub fn stages(&self, active: &Active, stream: Stream, now: Timestamp) -> Vec<Slot> {
        let mut stages = Vec::new();
        for rule in active.rules().iter().filter(|rule| rule.of_bytes() && rule.meets(&self.connection)) {
            let dice = self.connection.dice(active.seed(), rule.number);
            if let Some(spec) = self.spec(rule, stream, dice) {
                stages.push(Slot::new(rule.clone(), spec, dice, stream, now));
            }
        }
        stages
    }

    fn spec(&self, rule: &Rule, stream: Stream, dice: Dice) -> Option<Spec> {
        if let Some(toxic) = &rule.toxic {
            let struck = toxic.stream == stream && Share::new(toxic.toxicity).is_ok_and(|share| dice.strikes(share));
            return if struck { spec_of_toxic(&toxic.kind) } else { None };
        }
        match rule.step.fault.as_ref()? {
            // A request is delayed on its way to the upstream, and so are the bytes of one.
            Fault::Latency(latency) => {
                let here = !self.judges_requests && stream == Stream::Upstream && dice.strikes(latency.share);
                here.then(|| Spec::Latency(latency.delays()))
            }
            fault => spec_of_fault(fault, stream),
        }
    }
}

fn spec_of_toxic(kind: &ToxicKind) -> Option<Spec> {
    Some(match *kind {
        ToxicKind::Latency { latency, jitter } => Spec::Latency(latency::Delays::around(latency, jitter)),
        // At a rate of nothing, nothing passes: as a timeout that never ends.
        ToxicKind::Bandwidth { rate } => match ByteRate::per_second(rate.saturating_mul(1_000)) {
            Ok(rate) => Spec::Bandwidth(rate),
            Err(_) if rate == 0 => Spec::Stall(stall::Stall::forever()),
            Err(_) => Spec::Noop,
        },
        ToxicKind::SlowClose { delay } => Spec::SlowClose(delay),
        ToxicKind::Timeout { timeout } => Spec::Stall(stall::Stall::of_silence(timeout)),
        ToxicKind::ResetPeer { timeout } => Spec::ResetPeer(timeout),
        ToxicKind::Slicer { average_size, size_variation, delay } => {
            Spec::Slicer(slicer::Cut { size: average_size, variation: size_variation, delay })
        }
        ToxicKind::LimitData { bytes } => Spec::LimitData(Size(bytes)),
        ToxicKind::Noop => Spec::Noop,
    })
}

fn spec_of_fault(fault: &Fault, stream: Stream) -> Option<Spec> {
    let (direction, spec) = match fault {
        Fault::Bandwidth(bandwidth) if bandwidth.overall => (bandwidth.stream, Spec::Overall(bandwidth.rate)),
        Fault::Bandwidth(bandwidth) => (bandwidth.stream, Spec::Bandwidth(bandwidth.rate)),
        Fault::Slicer(slicer) => (slicer.stream, Spec::Slicer(slicer.cut())),
        Fault::LimitData(limit) => (limit.stream, Spec::LimitData(limit.bytes)),
        Fault::SlowClose(slow) => (slow.stream, Spec::SlowClose(slow.delay)),
        Fault::Loss(loss) => (loss.stream, Spec::Loss(loss.share)),
        Fault::HalfOpen(half) => (half.stream, Spec::HalfOpen),
        Fault::Stall(stall) => (stall.stream, Spec::Stall(stall.clone())),
        _ => return None,
    };
    direction.includes(stream).then_some(spec)
}

#[cfg(test)]
pub(super) mod tests;
