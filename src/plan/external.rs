//! Who carries out the faults of a plan in the place of our own proxies: a Toxiproxy, or a `stormwake proxy`.

use super::url::TargetUrl;
use crate::config::{At, Node, Value};
use crate::fault::Step;
use crate::fault::external::{Remote, Server};
use crate::record;
use std::collections::BTreeMap;

record! {
    /// A Toxiproxy or a `stormwake proxy` that carries out the faults, wherever its proxy stands: between the clients and the target, or between
    /// the target and something behind it. The run's own proxy stays where it is and harms nothing. The evidence of a fault is what comes there
    /// while it acts; of a `stormwake proxy` what that says it has touched. A Toxiproxy draws a `share` for each connection, not for each request.
    pub struct ExternalProxy {
        /// The control API of a Toxiproxy: scheme, host and port.
        toxiproxy: Option<At<TargetUrl>>,
        /// The control API of a `stormwake proxy`: scheme, host and port. Or `toxiproxy`, never both.
        stormwake: Option<At<TargetUrl>>,
        /// Its proxy that the faults go to; when the run begins it has to be there, enabled, and without toxics of another run.
        name: At<String>,
    } => |proxy: &ExternalProxy| match (&proxy.toxiproxy, &proxy.stormwake) {
        (Some(_), Some(_)) => Err("`stormwake` and `toxiproxy` exclude each other: keep the one that stands there".to_string()),
        (None, None) => Err("it needs a `toxiproxy` or a `stormwake`: such as `toxiproxy: http://127.0.0.1:8474`".to_string()),
        _ => Ok(()),
    }
}

impl ExternalProxy {
    /// What it is, and where its API is.
    pub fn server(&self) -> Option<(Server, &At<TargetUrl>)> {
        let toxiproxy = self.toxiproxy.as_ref().map(|url| (Server::Toxiproxy, url));
        toxiproxy.or(self.stormwake.as_ref().map(|url| (Server::Stormwake, url)))
    }
}

/// The proxy of such a server, and which faults go to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// Those that act at this proxy of the plan, as [`Step::on`] says.
    pub on: u16,
    /// What the server is.
    pub server: Server,
    /// Its control API.
    pub api: TargetUrl,
    /// The name of its proxy.
    pub name: String,
    /// For a `stormwake proxy`, by step: the fault as that takes it, in JSON.
    pub texts: BTreeMap<usize, String>,
}

impl External {
    /// Whether it carries out a step. A change of the service is no harm to traffic, and stays what it is.
    pub fn carries_out(&self, step: &Step) -> bool {
        step.on == self.on && step.fault.is_some()
    }

    /// The steps that it carries out.
    pub fn remotes(&self, timeline: &[Step]) -> Vec<Remote> {
        let its = timeline.iter().enumerate().filter(|(_, step)| self.carries_out(step));
        let remote = |(index, step): (usize, &Step)| {
            let text = self.texts.get(&index).cloned().unwrap_or_default();
            let read: Option<serde_json::Value> = serde_json::from_str(&text).ok();
            let ends = read.is_some_and(|read| read.get("for").is_some());
            let fault = step.fault.clone()?;
            let of_requests = fault.of_requests() || !step.which.is_all();
            Some(Remote { step: index, name: step.name.clone(), fault, text, of_requests, ends })
        };
        its.filter_map(remote).collect()
    }
}

/// A part of a plan as JSON, every value as text: so it is read again as it was.
pub fn json_of(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Null => serde_json::Value::Null,
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(json_of).collect(),
        Value::Map(entries) => {
            serde_json::Value::Object(entries.iter().map(|(key, node)| (key.name.clone(), json_of(node))).collect())
        }
    }
}

/// The timeline as our own proxies see it: what somebody else carries out, wherever, the one between clients and target only witnesses.
pub fn witnessed(timeline: &[Step], external: &[External]) -> Vec<Step> {
    let witnessed = |step: &Step| match external.iter().any(|external| external.carries_out(step)) {
        true => Step { fault: None, on: 0, ..step.clone() },
        false => step.clone(),
    };
    timeline.iter().map(witnessed).collect()
}
