//! The heads of requests as matchers of the timeline look at them: what the live clients would send.

use crate::config::Table;
use crate::fault::{Head, Matchers};
use crate::fleet::Send;
use crate::plan::{HeaderValue, Plan};

/// What a simulated run knows of its requests' heads, where its timeline looks at any.
#[derive(Debug)]
pub(super) struct Heads {
    matchers: Matchers,
    /// By fleet.
    fleets: Vec<OfFleet>,
    /// By route; at least one.
    routes: Vec<OfRoute>,
}

#[derive(Debug)]
struct OfFleet {
    name: String,
    priority: Option<String>,
    destinations: Vec<String>,
}

#[derive(Debug)]
struct OfRoute {
    method: String,
    path: String,
    /// Values that only a live run knows are none.
    headers: Vec<(String, Option<String>)>,
}

impl Heads {
    /// None where no fault of the plan looks at heads.
    pub(super) fn new(plan: &Plan, matchers: &Matchers) -> Option<Self> {
        if matchers.is_empty() {
            return None;
        }
        let fleets = plan.fleets.iter().map(|fleet| OfFleet {
            name: fleet.name.clone(),
            priority: fleet.config.priority.clone(),
            destinations: fleet.destinations().iter().map(ToString::to_string).collect(),
        });
        Some(Self { matchers: matchers.clone(), fleets: fleets.collect(), routes: routes(plan) })
    }

    /// Which matchers an attempt fits, a bit each.
    pub(super) fn bits(&self, send: &Send) -> u64 {
        let fleet = &self.fleets[usize::from(send.operation.fleet)];
        let route = &self.routes[usize::from(send.route).min(self.routes.len() - 1)];
        self.matchers.bits(&OfAttempt { send, fleet, route })
    }
}

fn routes(plan: &Plan) -> Vec<OfRoute> {
    let target = &plan.target;
    let own_path = target.url.as_ref().map_or("/", |url| url.value.path.as_str());
    let agent = Some(concat!("stormwake/", env!("CARGO_PKG_VERSION")).to_string());
    let host = target.url.as_ref().map(|url| url.value.authority());
    let common = [("host".to_string(), host), ("user-agent".to_string(), agent)];
    let common: Vec<_> = common.into_iter().chain(of_table(&target.headers)).collect();
    let route = |method: &str, path: &str, more: Vec<(String, Option<String>)>| {
        let path = if path.starts_with('/') { path.to_string() } else { format!("/{path}") };
        let mut headers = common.clone();
        headers.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        headers.extend(more);
        OfRoute { method: method.to_string(), path, headers }
    };
    if target.routes.is_empty() {
        return vec![route(&target.method.value, own_path, Vec::new())];
    }
    let each = target.routes.iter().map(|of| {
        let method = of.method.as_ref().unwrap_or(&target.method);
        route(&method.value, &of.path.value, of_table(&of.headers).collect())
    });
    each.collect()
}

fn of_table(table: &Table<HeaderValue>) -> impl Iterator<Item = (String, Option<String>)> {
    table.0.iter().map(|entry| {
        let value = match &entry.value {
            HeaderValue::Plain(value) => Some(value.clone()),
            HeaderValue::Secret(_) => None,
        };
        (entry.name.to_ascii_lowercase(), value)
    })
}

/// The head of one attempt.
struct OfAttempt<'a> {
    send: &'a Send,
    fleet: &'a OfFleet,
    route: &'a OfRoute,
}

impl OfAttempt<'_> {
    /// What stormwake's own headers say, by name: nothing where it is not there, nothing inside where only a live run knows.
    fn own(&self, name: &str) -> Option<Option<String>> {
        let Self { send, fleet, .. } = self;
        match name {
            "x-stormwake-attempt" => Some(Some(send.attempt.to_string())),
            "x-stormwake-fleet" => Some(Some(fleet.name.clone())),
            "x-stormwake-client" => Some(Some(format!("{}/{}", fleet.name, send.operation.client))),
            "x-stormwake-destination" => fleet.destinations.get(usize::from(send.destination)).cloned().map(Some),
            "idempotency-key" | "x-stormwake-enqueued-at" => Some(None),
            "priority" => send.priority.map(|priority| priority.header().to_string()).or(fleet.priority.clone()).map(Some),
            _ => None,
        }
    }
}

impl Head for OfAttempt<'_> {
    fn method(&self) -> &[u8] {
        self.route.method.as_bytes()
    }

    fn path(&self) -> &[u8] {
        self.route.path.as_bytes()
    }

    fn header(&self, name: &str, fits: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let name = name.to_ascii_lowercase();
        // A value that nobody knows here fits only what takes any.
        let mut said = |value: Option<&str>| fits(value.unwrap_or_default().as_bytes());
        match self.own(&name) {
            Some(value) => said(value.as_deref()),
            None => self.route.headers.iter().any(|(other, value)| *other == name && said(value.as_deref())),
        }
    }
}
