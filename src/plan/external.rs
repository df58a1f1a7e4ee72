//! Who carries out the faults of a plan in the place of our own proxy: a Toxiproxy.

use super::url::TargetUrl;
use crate::config::At;
use crate::fault::Step;
use crate::fault::external::Remote;
use crate::record;

record! {
    /// A Toxiproxy that carries out the faults, wherever its proxy stands: between the clients and the target, or between the target and
    /// something behind it. Our own proxy stays where it is and harms nothing: what comes while a fault acts is counted there, as the fault's
    /// evidence. Toxiproxy draws a `share` for each connection, not for each request.
    pub struct ExternalProxy {
        /// Its control API: scheme, host and port.
        toxiproxy: At<TargetUrl>,
        /// Its proxy that the faults go to; when the run begins it has to be there, enabled, and without toxics of another run.
        name: At<String>,
    }
}

/// The proxy of a Toxiproxy, and which faults go to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// Those that act at this proxy of the plan, as [`Step::on`] says.
    pub on: u16,
    /// The control API.
    pub toxiproxy: TargetUrl,
    /// The name of its proxy.
    pub name: String,
}

impl External {
    /// Whether it carries out a step. A change of the service is no harm to traffic, and stays what it is.
    pub fn carries_out(&self, step: &Step) -> bool {
        step.on == self.on && step.fault.is_some()
    }

    /// The steps that it carries out.
    pub fn remotes(&self, timeline: &[Step]) -> Vec<Remote> {
        let its = timeline.iter().enumerate().filter(|(_, step)| self.carries_out(step));
        let remote =
            |(index, step): (usize, &Step)| Some(Remote { step: index, name: step.name.clone(), fault: step.fault.clone()? });
        its.filter_map(remote).collect()
    }
}

/// The timeline as our own proxies see it: what a Toxiproxy carries out, they only witness.
pub fn witnessed(timeline: &[Step], external: &[External]) -> Vec<Step> {
    let witnessed = |step: &Step| {
        let outside = external.iter().any(|external| external.carries_out(step));
        Step { fault: step.fault.clone().filter(|_| !outside), ..step.clone() }
    };
    timeline.iter().map(witnessed).collect()
}
