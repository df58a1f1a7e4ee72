//! Which operation is on which connection of which client.
//!
//! Nearly every client has one connection, and what is on it stands in the client itself. Where a policy lets a client have
//! more attempts out at once, the others stand here.

use super::{Client, NONE};
use std::ops::Range;

/// The connections of some clients.
#[derive(Debug)]
pub(super) struct Wires {
    /// Connections of each client.
    each: u32,
    /// By client, what is on its connections after the first: operations, or [`NONE`].
    others: Vec<u32>,
}

impl Wires {
    pub(super) fn new(clients: usize, each: u32) -> Self {
        let each = each.max(1);
        Self { each, others: vec![NONE; clients * (each as usize - 1)] }
    }

    /// Whether each client has one connection.
    pub(super) const fn is_single(&self) -> bool {
        self.each == 1
    }

    /// A connection's number in its fleet, from its client's number and its own at the client.
    pub(super) fn connection(&self, client: u32, wire: u32) -> u32 {
        client * self.each + wire
    }

    /// A connection's client, by its number, and the connection's number there.
    pub(super) fn client_of(&self, connection: u32) -> (u32, u32) {
        if self.is_single() {
            return (connection, 0);
        }
        (connection / self.each, connection % self.each)
    }

    /// What is on a connection: an operation, or [`NONE`]; none where there is no such connection.
    pub(super) fn occupant(&self, clients: &[Client], client: u32, wire: u32) -> Option<u32> {
        let state = clients.get(client as usize)?;
        Some(if wire == 0 { state.on_wire } else { self.others[self.others_of(client)][wire as usize - 1] })
    }

    /// The connections that an operation is on.
    pub(super) fn held_by(&self, clients: &[Client], client: u32, slot: u32) -> impl Iterator<Item = u32> {
        let first = clients[client as usize].on_wire;
        let all = std::iter::once(first).chain(self.others[self.others_of(client)].iter().copied());
        all.zip(0..).filter(move |(on, _)| *on == slot).map(|(_, wire)| wire)
    }

    /// How many of a client's connections are in use.
    pub(super) fn busy(&self, clients: &[Client], client: u32) -> u32 {
        let first = u32::from(clients[client as usize].on_wire != NONE);
        if self.is_single() {
            return first;
        }
        first + self.others[self.others_of(client)].iter().filter(|on| **on != NONE).count() as u32
    }

    /// Whether all of a client's connections are in use.
    pub(super) fn is_full(&self, clients: &[Client], client: u32) -> bool {
        self.busy(clients, client) == self.each
    }

    /// Puts an operation on a free connection of its client, and says on which.
    pub(super) fn occupy(&mut self, clients: &mut [Client], client: u32, slot: u32) -> u32 {
        let first = &mut clients[client as usize].on_wire;
        if *first == NONE {
            *first = slot;
            return 0;
        }
        let others = self.others_of(client);
        let others = &mut self.others[others];
        let free = others.iter().position(|on| *on == NONE).expect("a client sends where a connection is free");
        others[free] = slot;
        free as u32 + 1
    }

    /// A connection is free again.
    pub(super) fn release(&mut self, clients: &mut [Client], client: u32, wire: u32) {
        if wire == 0 {
            clients[client as usize].on_wire = NONE;
        } else {
            let others = self.others_of(client);
            self.others[others][wire as usize - 1] = NONE;
        }
    }

    fn others_of(&self, client: u32) -> Range<usize> {
        let others = self.each as usize - 1;
        client as usize * others..(client as usize + 1) * others
    }
}
