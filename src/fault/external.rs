//! Faults that a server outside of the run carries out in our place, a Toxiproxy or a `stormwake proxy`: what it is asked for, and what is done
//! to get there.
//!
//! Two machines, both without IO. [`demand`] says what a fault is in Toxiproxy's terms, or why it cannot be that; a `stormwake proxy` takes a
//! fault as it stands in the plan. A [`Hand`] knows what a run has put into one proxy of such a server: from the steps that act it makes a [`Wish`], from what the server has ([`Held`]) the calls that lead
//! there, and afterwards it says whether the server has exactly that. How the calls are made, and when, is the live engine's.

mod demand;
mod hand;

pub use demand::{Demand, Unable, demand};
pub use hand::{Call, Hand, Harm, Held, HeldHarm, MARK, Ours, Wish};

use super::Fault;

/// What carries out faults in our place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// A Toxiproxy, by its toxics; a process beside the run removes them where the run is killed.
    Toxiproxy,
    /// A `stormwake proxy`, by `/v1`, under a lease; it counts what its faults touch.
    Stormwake,
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Toxiproxy => "Toxiproxy",
            Self::Stormwake => "stormwake proxy",
        })
    }
}

/// A step that such a server carries out.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// Its index in the plan.
    pub step: usize,
    /// Its name.
    pub name: String,
    /// What it does.
    pub fault: Fault,
    /// The same as a `stormwake proxy` takes it, in JSON; empty for a Toxiproxy.
    pub text: String,
    /// Whether it needs to know requests.
    pub of_requests: bool,
    /// Whether the server ends it by itself.
    pub ends: bool,
}
