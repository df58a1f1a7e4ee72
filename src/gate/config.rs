//! What a plan asks of a run: a steady state, a recovery, gates, stop conditions, an expectation.

use super::condition::{Comparison, Condition};
use crate::config::{Alternative, Field, Node, Place, Problems, Read, Shape, TimeScale, Value};
use crate::metrics::Figure;
use crate::time::Span;
use crate::{choice, keyword, record};

keyword! {
    /// The recovery class of a run.
    pub enum Class {
        /// Healthy again within the target time, and it held.
        RECOVERED => Recovered,
        /// Healthy again, but later than the target.
        RECOVERED_LATE => RecoveredLate,
        /// Not yet healthy at the end; backlog falling, projected drain within the horizon.
        RECOVERING => Recovering,
        /// Fault gone, offered load no more than the baseline carried, goodput under half of baseline, backlog not falling.
        STUCK => Stuck,
        /// Between RECOVERED and STUCK: holds some goodput and does not move.
        DEGRADED => Degraded,
        /// No evidence either way.
        INCONCLUSIVE => Inconclusive,
    }
}

record! {
    /// What a plan that shows a failure expects; it passes when it gets that.
    pub struct Expect {
        /// The recovery class.
        class: Class,
    }
}

/// Conditions by figure: `{ goodput: ">= 95% of baseline", p99: "<= 400ms" }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions(pub Vec<Condition>);

impl Read for Conditions {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            problems.error(node.place, format!("expected a map from figures to comparisons, found {}", node.kind()));
            return None;
        };
        let read: Vec<Option<Condition>> = entries
            .iter()
            .map(|(key, value)| {
                let figure = Figure::read(&Node { value: Value::Text(key.name.clone()), place: key.place }, problems);
                read_condition(figure, value, problems)
            })
            .collect();
        read.into_iter().collect::<Option<Vec<_>>>().map(Conditions)
    }
    fn shape() -> Shape {
        Shape::Record { doc: "Figures and what they must be.".into(), fields: figure_fields() }
    }

    fn rescale(&mut self, by: TimeScale) {
        self.0.iter_mut().for_each(|condition| condition.comparison.rescale(by));
    }
}

fn read_condition(figure: Option<Figure>, value: &Node, problems: &mut Problems) -> Option<Condition> {
    let comparison = Comparison::read(value, problems);
    match Condition::new(figure?, comparison?) {
        Ok(condition) => Some(condition),
        Err(message) => {
            problems.error(value.place, message);
            None
        }
    }
}

fn figure_fields() -> Vec<Field> {
    let Shape::Keyword(figures) = Figure::shape() else { return Vec::new() };
    figures
        .into_iter()
        .map(|Alternative { name, doc, .. }| Field { name, doc, required: false, shape: Comparison::shape() })
        .collect()
}

record! {
    /// The stretch before the first fault that later windows are compared with; it must itself be healthy.
    pub struct SteadyState {
        /// How long the baseline is: the stretch that ends when the first fault begins.
        r#for: Span,
        /// What must hold in it; success >= 99% where nothing is said.
        require: Conditions = Conditions::default(),
    }
}

record! {
    /// What counts as recovered.
    pub struct RecoveryConfig {
        /// The step of the timeline whose end starts the clock; the one that ends last where nothing is said.
        after: Option<crate::config::At<String>>,
        /// The proxy of `proxies` at whose tap recovery is judged; our own clients where nothing is said. There, goodput is answers of 2xx, retries are
        /// repeats, latency that of its answers, and backlog the requests in flight.
        at: Option<crate::config::At<String>>,
        /// How soon after that end the run must be healthy again.
        within: Span,
        /// How long it must then stay healthy.
        hold: Span = Span::from_secs(20),
        /// How far ahead a projection may look after the end of the run; as long again as the run where nothing is said.
        horizon: Option<Span>,
        /// The least span that a clause is judged on; it grows until it holds `operations`.
        span: Span = Span::from_secs(5),
        /// The least number of operations that a clause is judged on.
        operations: u64 = 200,
        /// What healthy means, figure by figure; what is not named keeps its default: goodput >= 95%, errors <= 1%
        /// (or baseline + 1%), p99 <= 2x baseline (at least 10 ms), retry_share <= max(5%, 2x baseline), backlog back at baseline.
        require: Conditions = Conditions::default(),
    }
}

/// The stretch of a run that a gate looks at.
#[derive(Clone, Debug, PartialEq)]
pub enum During {
    /// The whole run.
    Run,
    /// The baseline.
    Baseline,
    /// From the end of the recovery's fault to the end of the run.
    Recovery,
    /// A named step of the timeline, from its start to its end.
    Step(String),
}

/// A check on a run: `{ peak_attempts: "<= 2.5x baseline", during: recovery }`.
#[derive(Clone, Debug, PartialEq)]
pub struct GateConfig {
    /// What must hold.
    pub condition: Condition,
    /// In which stretch.
    pub during: During,
    /// Where `during` stands, for a message.
    pub during_place: Place,
    /// The fleet it looks at; all of them where none is named.
    pub fleet: Option<String>,
    /// The proxy of the plan's `proxies` at whose tap it looks; our own clients where none is named.
    pub at: Option<String>,
    /// Where the gate stands in the plan.
    pub place: Place,
}

impl Read for GateConfig {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let (condition, rest) = split_condition(node, &["during", "fleet", "at"], problems)?;
        let during_node = rest.iter().find(|(key, _)| key == "during").map(|(_, node)| node);
        let during = match during_node {
            None => During::Run,
            Some(node) => match String::read(node, problems)?.as_str() {
                "run" => During::Run,
                "baseline" | "steady_state" => During::Baseline,
                "recovery" => During::Recovery,
                step => During::Step(step.to_string()),
            },
        };
        let mut named = |wanted: &str| match rest.iter().find(|(key, _)| key == wanted) {
            None => Some(None),
            Some((_, node)) => String::read(node, problems).map(Some),
        };
        let (fleet, at) = (named("fleet")?, named("at")?);
        let during_place = during_node.map_or(node.place, |n| n.place);
        Some(Self { condition, during, during_place, fleet, at, place: node.place })
    }

    fn shape() -> Shape {
        let mut fields = figure_fields();
        let text = |what, examples| Shape::Text { what, pattern: "", examples };
        fields.push(Field {
            name: "during",
            doc: "The stretch it looks at: `run`, `baseline`, `recovery`, or the name of a step of the timeline.".into(),
            required: false,
            shape: text("a stretch of the run", &["recovery"]),
        });
        fields.push(Field {
            name: "fleet",
            doc: "The fleet it looks at.".into(),
            required: false,
            shape: text("the name of a fleet", &[]),
        });
        fields.push(Field {
            name: "at",
            doc: "The proxy of `proxies` at whose tap it looks, where a real service's requests pass; our own clients where nothing is said.".into(),
            required: false,
            shape: text("the name of a proxy", &["provider"]),
        });
        Shape::Record { doc: "A check on the run: one figure and what it must be.".into(), fields }
    }

    fn rescale(&mut self, by: TimeScale) {
        self.condition.comparison.rescale(by);
    }
}

/// What a map holds beside its condition.
type Rest = Vec<(String, Node)>;

/// Splits a map into the one figure that it names and the other keys that it may hold.
fn split_condition(node: &Node, others: &[&str], problems: &mut Problems) -> Option<(Condition, Rest)> {
    let Value::Map(entries) = &node.value else {
        problems.error(node.place, format!("expected a map such as {{ errors: \"<= 1%\" }}, found {}", node.kind()));
        return None;
    };
    let (rest, figures): (Vec<_>, Vec<_>) = entries.iter().partition(|(key, _)| others.contains(&key.name.as_str()));
    if figures.len() != 1 {
        // Keys that are no figure are reported as such; a surplus figure as a surplus.
        let mut known = 0;
        for (key, _) in &figures {
            known +=
                usize::from(Figure::read(&Node { value: Value::Text(key.name.clone()), place: key.place }, problems).is_some());
        }
        if known == figures.len() {
            problems.error_with_hint(
                node.place,
                format!("expected exactly one figure, found {known}"),
                "write one list entry for each",
            );
        }
        return None;
    }
    let (key, value) = figures[0];
    let figure = Figure::read(&Node { value: Value::Text(key.name.clone()), place: key.place }, problems);
    let condition = read_condition(figure, value, problems)?;
    Some((condition, rest.iter().map(|(key, node)| (key.name.clone(), node.clone())).collect()))
}

choice! {
    /// What a check asks.
    pub enum Probe {
        /// Fails unless a GET of this URL answers 2xx.
        http => Http(String),
        /// Fails unless this command (a program and its arguments) exits with 0.
        command => Command(Vec<String>),
    }
}

/// When a run is stopped before its end.
#[derive(Clone, Debug, PartialEq)]
pub struct StopConfig {
    /// What stops it.
    pub trigger: StopTrigger,
    /// How long that must have lasted.
    pub lasting: Span,
    /// Where it stands in the plan.
    pub place: Place,
}

/// What stops a run.
#[derive(Clone, Debug, PartialEq)]
pub enum StopTrigger {
    /// A figure of the last windows.
    Figure(Condition),
    /// A check that fails.
    Check {
        /// What is asked.
        probe: Probe,
        /// How often.
        every: Span,
    },
}

impl Read for StopConfig {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        match node.get("check") {
            Some(_) => CheckStop::read(node, problems).map(|stop| Self {
                trigger: StopTrigger::Check { probe: stop.check.0, every: stop.check.1 },
                lasting: stop.failing_for,
                place: node.place,
            }),
            None => {
                let (condition, rest) = split_condition(node, &["for"], problems)?;
                let lasting = match rest.first() {
                    None => Span::ZERO,
                    Some((_, node)) => Span::read(node, problems)?,
                };
                Some(Self { trigger: StopTrigger::Figure(condition), lasting, place: node.place })
            }
        }
    }

    fn shape() -> Shape {
        let mut fields = figure_fields();
        fields.push(Field { name: "for", doc: "How long it must have lasted.".into(), required: false, shape: Span::shape() });
        let figure = Shape::Record { doc: "Stops when a figure has stood like this for some time.".into(), fields };
        Shape::OneOf(vec![figure, CheckStop::shape()])
    }

    fn rescale(&mut self, by: TimeScale) {
        self.lasting.rescale(by);
        match &mut self.trigger {
            StopTrigger::Figure(condition) => condition.comparison.rescale(by),
            StopTrigger::Check { every, .. } => every.rescale(by),
        }
    }
}

record! {
    /// Stops when a check has failed for some time.
    pub struct CheckStop {
        /// What is asked, and how often.
        check: Check,
        /// How long it must have failed.
        failing_for: Span = Span::ZERO,
    }
}

/// A probe and its period: `{ http: URL, every: 5s }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Check(pub Probe, pub Span);

impl Read for Check {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            problems.error(node.place, format!("expected a map such as {{ http: URL, every: 5s }}, found {}", node.kind()));
            return None;
        };
        let (every, probe): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(|(key, _)| key.name == "every");
        let probe = Probe::read(&Node { value: Value::Map(probe), place: node.place }, problems);
        let every = match every.first() {
            None => Some(Span::from_secs(5)),
            Some((_, node)) => Span::read(node, problems),
        };
        Some(Self(probe?, every?))
    }

    fn shape() -> Shape {
        let field = |name, doc: &str, shape| Field { name, doc: doc.into(), required: false, shape };
        Shape::Record {
            doc: "A probe, `http` or `command`, and how often it is asked.".into(),
            fields: vec![
                field("http", "Fails unless a GET of this URL answers 2xx.", String::shape()),
                field("command", "Fails unless this command (a program and its arguments) exits with 0.", Vec::<String>::shape()),
                field("every", "How often.", Span::shape()),
            ],
        }
    }

    fn rescale(&mut self, by: TimeScale) {
        self.1.rescale(by);
    }
}
