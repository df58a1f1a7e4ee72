//! A toxic: a fault of bytes as Toxiproxy's API has it.

use crate::time::Span;

/// Which way the bytes go that a toxic harms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// From client to upstream.
    Upstream,
    /// From upstream to client.
    Downstream,
}

/// A toxic that is sound: what cannot be carried out is refused where it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Toxic {
    /// Which way.
    pub stream: Stream,
    /// The share of connections that it strikes, drawn once for each.
    pub toxicity: f64,
    /// What it does.
    pub kind: ToxicKind,
}

/// What a toxic does.
#[derive(Clone, Debug, PartialEq)]
pub enum ToxicKind {
    /// Each piece of data is delayed by `latency` + U(−jitter, +jitter).
    Latency {
        /// The delay.
        latency: Span,
        /// Its random part.
        jitter: Span,
    },
    /// So many thousand bytes a second on each connection.
    Bandwidth {
        /// In KB/s of 1000 bytes.
        rate: u64,
    },
    /// The end of the stream is passed on later.
    SlowClose {
        /// By so much.
        delay: Span,
    },
    /// Data stops, and the connection is closed once so long has passed without any more of it; never where that is zero.
    Timeout {
        /// How long.
        timeout: Span,
    },
    /// The connection is reset after so long.
    ResetPeer {
        /// How long; at once where it is zero.
        timeout: Span,
    },
    /// Data is cut into pieces with a pause between them.
    Slicer {
        /// Their size in bytes.
        average_size: u64,
        /// By how much that varies; less than the size.
        size_variation: u64,
        /// The pause behind each.
        delay: Span,
    },
    /// The connection is closed once so many bytes have passed.
    LimitData {
        /// How many.
        bytes: u64,
    },
    /// Nothing.
    Noop,
}
