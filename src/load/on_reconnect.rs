//! Clients that a fault had cut off, and that come back as it ends: a region's clients return together.
//!
//! Which moment that is and which clients were cut off follows from the timeline. The plan knows it and fills it in
//! ([`Returns`]); until then nobody comes.

use super::{Crowd, Next, Step};
use crate::config::{At, Node, Problems, Read, Shape, TimeScale};
use crate::record;
use crate::time::{Span, Timestamp};
use std::ops::Range;

/// How long after the end of a fault a client notices that the network is back: as long as the proxy may take to let go.
/// So the first attempt of a client that returns is never struck by what has just ended.
pub const NOTICES_AFTER: Span = Span::from_millis(50);

record! {
    /// Each client that a fault had cut off offers one operation when it ends.
    pub struct Reconnect {
        /// The step of the timeline.
        after: At<String>,
        /// The moment of each client is later by U(0, spread).
        spread: Span = Span::ZERO,
    }
}

/// Who returns when, as the plan's timeline says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returns {
    /// The end of the fault.
    pub at: Timestamp,
    /// The turns (see [`Crowd::turn`]) of the clients that were cut off, where those were not all of the fleet.
    pub turns: Option<Vec<Range<u32>>>,
}

/// Each client that a fault had cut off offers one operation when it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct OnReconnect {
    /// What the plan says.
    pub config: Reconnect,
    /// What follows from its timeline; none before that was looked at.
    pub returns: Option<Returns>,
}

impl OnReconnect {
    pub(super) fn next(&self, crowd: &Crowd, step: Step) -> Next {
        let Some(Returns { at, turns }) = self.returns.as_ref().filter(|_| step.number == 0) else { return Next::Never };
        let turn = crowd.turn(step.client);
        if turns.as_ref().is_some_and(|turns| !turns.iter().any(|range| range.contains(&turn))) {
            return Next::Never;
        }
        let later = self.config.spread.scale(crowd.draws(step.client, 0).unit());
        Next::At(*at + NOTICES_AFTER + later)
    }
}

impl Read for OnReconnect {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        Reconnect::read(node, problems).map(|config| Self { config, returns: None })
    }
    fn shape() -> Shape {
        Reconnect::shape()
    }
    fn rescale(&mut self, by: TimeScale) {
        self.config.rescale(by);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Load, tests::starts};
    use super::*;
    use crate::config::Place;

    fn load(spread: u64, returns: Option<Returns>) -> Load {
        let after = At { value: "outage".into(), place: Place::default() };
        Load::OnReconnect(OnReconnect { config: Reconnect { after, spread: Span::from_secs(spread) }, returns })
    }

    #[test]
    fn those_who_were_cut_off_return_once_as_the_fault_ends() {
        let (at, end) = (Timestamp::ZERO + Span::from_secs(30), Timestamp::ZERO + Span::from_secs(600));
        let all = starts(&load(0, Some(Returns { at, turns: None })), 1, 100, end);
        assert!(all.len() == 100 && all.iter().all(|(start, _)| *start == at + NOTICES_AFTER), "{all:?}");
        let some = starts(&load(20, Some(Returns { at, turns: Some(vec![0..10, 40..60]) })), 1, 100, end);
        assert_eq!(some.len(), 30);
        let crowd = Crowd::new(1, 0, 100);
        assert!(some.iter().all(|(_, client)| matches!(crowd.turn(*client), 0..10 | 40..60)));
        let span = some[29].0.since(some[0].0);
        assert!(span > Span::from_secs(15) && span < Span::from_secs(20), "{span}");
        assert_eq!(starts(&load(0, None), 1, 100, end), [], "nobody before the plan has said when");
    }
}
