//! Faults that a Toxiproxy carries out in our place: what it is asked for, and what is done to get there.
//!
//! Two machines, both without IO. [`demand`] says what a fault is in Toxiproxy's terms, or why it cannot be that. A [`Hand`] knows what a run
//! has put into one proxy of a Toxiproxy: from the steps that act it makes a [`Wish`], from what the server has ([`Held`]) the calls that lead
//! there, and afterwards it says whether the server has exactly that. How the calls are made, and when, is the live engine's.

mod demand;
mod hand;

pub use demand::{Demand, Unable, demand};
pub use hand::{Call, Hand, Held, HeldToxic, MARK, Ours, Wish};

use super::Fault;

/// A step that a Toxiproxy carries out.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// Its index in the plan.
    pub step: usize,
    /// Its name.
    pub name: String,
    /// What it does.
    pub fault: Fault,
}
