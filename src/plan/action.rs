//! What a step of the timeline does beside harm: as written, and as it can be run.

use super::fleet::PolicyRef;
use super::target::{HeaderValue, StatusSet};
use crate::config::{At, Node, Place, Problems, Read, RealTime, Shape, Table, TimeScale, read_text};
use crate::fleet::action::{FleetAction, PauseScope, TimedAction};
use crate::service::ServiceChange;
use crate::time::{Rate, Span, Timestamp, parse_percent};
use crate::{choice, keyword, record};

/// How long a command or a webhook may take where nothing is said.
const USUAL_LIMIT: RealTime = RealTime(Span::from_secs(10));

/// Something that happens at a moment of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Its name; unique among the steps of the plan.
    pub name: String,
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: Deed,
    /// Where it stands in the plan.
    pub place: Place,
}

/// What an action does.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// Something to a fleet.
    Fleet {
        /// Its number.
        fleet: u16,
        /// What.
        action: FleetAction,
    },
    /// Runs a command. Live runs only.
    Exec(Exec),
    /// Sends a request to a webhook. Live runs only.
    Http(Box<Webhook>),
    /// Changes the built-in target, or the model of somebody's in a simulated run.
    Service {
        /// What changes.
        change: Box<ServiceChange>,
        /// Whether it puts back what another step changed.
        ends: bool,
    },
}

impl Deed {
    /// Whether it is done outside the run, and so in live runs only.
    pub const fn is_outside(&self) -> bool {
        matches!(self, Self::Exec(_) | Self::Http(_))
    }
}

impl Action {
    /// Its kind, as a plan names it.
    pub const fn kind(&self) -> &'static str {
        match &self.what {
            Deed::Fleet { action, .. } => action.kind(),
            Deed::Exec(_) => "exec",
            Deed::Http(_) => "http",
            Deed::Service { .. } => "service",
        }
    }

    /// The number of the fleet that it is done to; none where it is done to none.
    pub const fn fleet(&self) -> Option<u16> {
        match self.what {
            Deed::Fleet { fleet, .. } => Some(fleet),
            Deed::Exec(_) | Deed::Http(_) | Deed::Service { .. } => None,
        }
    }
}

/// What a machine of a fleet does in mid-run: those of `actions` that are the fleet's, in their order.
pub fn of_fleet(actions: &[Action], fleet: u16) -> Vec<TimedAction> {
    let own = actions.iter().filter_map(|action| match &action.what {
        Deed::Fleet { fleet: number, action: what } if *number == fleet => Some((action.at, what.clone())),
        _ => None,
    });
    own.collect()
}

/// The action that a fleet's machine calls by the place among its own.
pub fn by_place(actions: &[Action], fleet: u16, place: usize) -> Option<usize> {
    let own = actions.iter().enumerate().filter(|(_, action)| action.fleet() == Some(fleet));
    own.map(|(index, _)| index).nth(place)
}

record! {
    /// A command, and one that undoes it.
    pub struct Exec {
        /// A program and its arguments; no shell. Needs `--approve`.
        command: Vec<String>,
        /// How long it may take; its process group is killed then, and it has failed. The undo has as long.
        within: RealTime = USUAL_LIMIT,
        /// A command that undoes it: run at every end of the run, however it comes, once the command was started.
        undo: Vec<String> = Vec::new(),
    }
}

record! {
    /// A request to a webhook.
    pub struct Call {
        /// Where to. A host that is not this machine takes `allow` in `target`, and `--approve`.
        url: At<String>,
        /// Its method.
        method: At<String> = At { value: "POST".to_string(), place: Place::default() },
        /// Its headers.
        headers: Table<HeaderValue> = Table::default(),
        /// Its body.
        body: String = String::new(),
        /// The statuses that count as success.
        expect: Vec<StatusSet> = vec![StatusSet::Class(2)],
    }
}

record! {
    /// A request to a webhook, and one that undoes it.
    pub struct Webhook {
        /// Where to. A host that is not this machine takes `allow` in `target`, and `--approve`.
        url: At<String>,
        /// Its method.
        method: At<String> = At { value: "POST".to_string(), place: Place::default() },
        /// Its headers.
        headers: Table<HeaderValue> = Table::default(),
        /// Its body.
        body: String = String::new(),
        /// The statuses that count as success.
        expect: Vec<StatusSet> = vec![StatusSet::Class(2)],
        /// How long it may take. The undo has as long.
        within: RealTime = USUAL_LIMIT,
        /// A request that undoes it: sent at every end of the run, however it comes, once the request was begun.
        undo: Option<Call>,
    }
}

impl Webhook {
    /// The request itself.
    pub fn call(&self) -> Call {
        let Self { url, method, headers, body, expect, .. } = self.clone();
        Call { url, method, headers, body, expect }
    }
}

/// A factor as a percentage, which may exceed the whole: `150%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(pub f64);

impl Read for Factor {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, |text| match text.parse::<f64>() {
            Ok(n) if n.is_finite() && n >= 0.0 => Err(format!("a factor is a percentage: write `{}%`", n * 100.0)),
            _ => parse_percent(text).map(Self),
        })
    }
    fn shape() -> Shape {
        Shape::Text { what: "a percentage", pattern: r"^[0-9]+(\.[0-9]+)?%$", examples: &["50%", "150%"] }
    }

    fn rescale(&mut self, _by: TimeScale) {}
}

record! {
    /// Every client or worker of a fleet stops and comes back.
    pub struct RawRestart {
        /// Which fleet.
        fleet: At<String>,
        /// The policy after it; the one before where nothing is said.
        policy: Option<At<PolicyRef>>,
        /// Over how long they come back; all at once where nothing is said.
        stagger: Span = Span::ZERO,
    }
}

record! {
    /// Another policy for a fleet.
    pub struct RawSetPolicy {
        /// Which fleet.
        fleet: At<String>,
        /// The name of a policy, or a policy spelled out.
        policy: At<PolicyRef>,
    }
}

keyword! {
    /// A lane that is always there.
    pub enum Lane {
        /// The one that all share.
        shared => Shared,
    }
}

record! {
    /// Another lane for what is bound for a destination.
    pub struct RawSetLane {
        /// Which fleet.
        fleet: At<String>,
        /// Which of its destinations; all of them where nothing is said.
        destination: Option<At<String>>,
        /// `shared`: the lane that all share; or, in its place, `concurrency`.
        lane: Option<Lane>,
        /// A lane of its own, with so many workers at most.
        concurrency: Option<u32>,
    } => |s: &RawSetLane| match (s.lane, s.concurrency) {
        (Some(_), None) | (None, Some(1..)) => Ok(()),
        (None, Some(0)) => Err("`concurrency` must be 1 or more: to send nothing, use `pause`".to_string()),
        _ => Err("expected exactly one of `lane` and `concurrency`".to_string()),
    }
}

record! {
    /// Holds a fleet up, or what is bound for one of its destinations.
    pub struct RawPause {
        /// Which fleet.
        fleet: At<String>,
        /// Which of its destinations; all of them where nothing is said.
        destination: Option<At<String>>,
        /// What is held up.
        scope: PauseScope = PauseScope::All,
    }
}

record! {
    /// A fleet, and perhaps one of its destinations.
    pub struct RawAim {
        /// Which fleet.
        fleet: At<String>,
        /// Which of its destinations; all of them where nothing is said.
        destination: Option<At<String>>,
    }
}

record! {
    /// Another rate of arrivals.
    pub struct RawSetRate {
        /// Which fleet.
        fleet: At<String>,
        /// The new rate of the fleet; or, in its place, `factor`.
        to: Option<At<Rate>>,
        /// The new rate as a percentage of the one that the plan gives the fleet.
        factor: Option<At<Factor>>,
    } => |s: &RawSetRate| match (s.to.is_some(), s.factor.is_some()) {
        (true, false) | (false, true) => Ok(()),
        _ => Err("expected exactly one of `to` and `factor`".to_string()),
    }
}

record! {
    /// Another limit on what is dispatched to a destination.
    pub struct RawSetLimit {
        /// Which fleet.
        fleet: At<String>,
        /// Which of its destinations; all of them where nothing is said.
        destination: Option<At<String>>,
        /// Dispatches a second; no limit where nothing is said.
        rate: Option<Rate>,
        /// How many may go at once.
        burst: u32 = 1,
    } => |s: &RawSetLimit| match (s.rate, s.burst) {
        (_, 0) => Err("`burst` must be 1 or more".to_string()),
        (Some(rate), _) if rate.get() <= 0.0 => Err("`rate` must be above 0: to dispatch nothing, use `pause`".to_string()),
        _ => Ok(()),
    }
}

record! {
    /// Another number of clients or workers.
    pub struct RawScale {
        /// Which fleet.
        fleet: At<String>,
        /// How many.
        to: At<u32>,
    }
}

choice! {
    /// What a step does beside harm.
    pub enum RawAction {
        /// Every client or worker of a fleet stops, and comes back over a while.
        restart => Restart(RawRestart),
        /// A fleet gets another policy.
        set_policy => SetPolicy(RawSetPolicy),
        /// What is bound for a destination gets another lane.
        set_lane => SetLane(RawSetLane),
        /// A fleet, or what is bound for one of its destinations, is held up.
        pause => Pause(RawPause),
        /// Ends a pause.
        resume => Resume(RawAim),
        /// Operations come at another rate.
        set_rate => SetRate(RawSetRate),
        /// What is dispatched to a destination gets another limit.
        set_limit => SetLimit(RawSetLimit),
        /// A fleet gets another number of clients or workers.
        scale => Scale(RawScale),
        /// What waits to be sent is dropped.
        drop_backlog => DropBacklog(RawAim),
        /// Runs a command.
        exec => Exec(Exec),
        /// Sends a request to a webhook.
        http => Http(Box<Webhook>),
    }
}
