//! scaffold
#![allow(missing_docs)]
use super::FleetConfig;
use crate::event::{AttemptOutcome, Event, OperationId};
use crate::pace::Pacer;
use crate::policy::Policy;
use crate::policy::budget::Budget;
use crate::time::{Span, Timestamp};
use std::sync::Arc;
pub struct Setup { pub seed: u64, pub fleet: u16, pub policy: Policy, pub config: FleetConfig, pub clients: std::ops::Range<u32>, pub grain: Span, pub end: Timestamp, pub route_weights: Vec<f64>, pub shared: Shared }
#[derive(Clone, Default)]
pub struct Shared { pub budget: Option<Arc<Budget>>, pub ceiling: Option<Arc<Pacer>> }
#[derive(Clone, Copy, Debug)]
pub struct Token(pub u64);
pub enum Command { Send(Send), Cancel { client: u32 }, Wake { at: Timestamp, token: Token } }
pub struct Send { pub client: u32, pub operation: OperationId, pub attempt: u32, pub route: u16, pub timeout_at: Timestamp, pub idempotency_key: u128, pub enqueued_at: Timestamp }
#[derive(Default)]
pub struct Output { pub commands: Vec<Command>, pub events: Vec<Event> }
pub struct Devices { _setup: Setup }
#[derive(Clone, Copy, Debug, Default)]
pub struct Gauges { pub in_flight: u64, pub backlog: u64, pub oldest_age: Span, pub deep_retries: u64, pub late: u64 }
impl Devices {
    pub fn new(setup: Setup) -> Self { Self { _setup: setup } }
    pub fn start(&mut self, _now: Timestamp, _out: &mut Output) {}
    pub fn wake(&mut self, _now: Timestamp, _token: Token, _out: &mut Output) {}
    pub fn ended(&mut self, _now: Timestamp, _client: u32, _outcome: AttemptOutcome, _hint: Option<Span>, _out: &mut Output) {}
    pub fn stop(&mut self, _now: Timestamp, _out: &mut Output) {}
    pub fn gauges(&self, _now: Timestamp) -> Gauges { Gauges::default() }
}
