//! A fault as it is put on a proxy that stands alone: a step of a timeline without its moment, for it begins when it is put there.
//!
//! Read by the same records as a plan's, and checked by the same checks. Where the text came from, and what is done with the fault, is the
//! engine's.

use super::check;
use crate::config::{At, Node, Problems, Read, TimeScale};
use crate::fault::{Fault, Step, TimeShape, Which};
use crate::record;
use crate::time::{Span, Timestamp};

record! {
    /// A fault of a proxy that stands alone.
    pub struct ProxyFault {
        /// The harm that it does.
        fault: At<Fault>,
        /// How long it lasts; until it is removed where nothing is said.
        r#for: Option<At<Span>>,
        /// Puts it at another speed, as a plan's does: `1/20` divides every duration by twenty and multiplies every rate.
        time_scale: Option<TimeScale>,
        ; with
        /// Which requests it strikes, of all that come.
        which: Which,
        /// Its shape in time.
        shape: TimeShape,
    }
}

/// What the proxy that a fault is for sees of its traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sees {
    /// Requests, and not bytes alone.
    pub requests: bool,
    /// TLS handshakes of its clients.
    pub handshakes: bool,
}

impl ProxyFault {
    /// Reads a fault and checks it, at its speed, for a proxy that sees so much; on `None` at least one error was reported.
    pub fn sound(node: &Node, sees: Sees, problems: &mut Problems) -> Option<Self> {
        let errors = problems.error_count();
        let mut fault = Self::read(node, problems)?;
        if let Some(scale) = fault.time_scale {
            fault.rescale(scale);
        }
        check::proxy_fault(&fault, sees, node, problems);
        (problems.error_count() == errors).then_some(fault)
    }

    /// Whether it needs a proxy that knows requests.
    pub fn of_requests(&self) -> bool {
        self.fault.value.of_requests() || !self.which.is_all()
    }

    /// The step that it is from a moment on.
    pub fn step(&self, name: &str, from: Timestamp) -> Step {
        let to = self.r#for.as_ref().map_or(Timestamp::NEVER, |lasts| from + lasts.value);
        Step {
            name: name.to_string(),
            from,
            to,
            fault: Some(self.fault.value.clone()),
            on: 0,
            fleets: None,
            destinations: None,
            regions: None,
            which: self.which.clone(),
            shape: self.shape.clone(),
            place: self.fault.place,
        }
    }
}
