//! What a plan asks of many runs: the share of seeds that recover, and how one policy stands against another.
//!
//! Neither is a finding of a single run. Leaves to others: the runs, and what is made of their figures.

use super::condition::{Operator, parse_factor, parse_quantity, rescale, unit_fits};
use super::config::GateConfig;
use crate::config::{Alternative, At, Field, Node, Place, Problems, Read, Shape, TimeScale, Value, read_keyword, read_text};
use crate::metrics::{Figure, Unit};
use crate::time::{Share, parse_percent};

/// The word of the figure that only many runs have.
const RECOVERED: &str = "recovered";

/// How many of the seeds must recover: `recovered: ">= 95% of seeds"`.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedShare {
    /// This share of them.
    pub at_least: Share,
    /// Whether it must be more than that, and not as much.
    pub more: bool,
    /// As the plan writes it.
    pub text: String,
    /// Where it stands in the plan.
    pub place: Place,
}

impl SeedShare {
    /// Whether so many recovered runs out of so many are enough. None are never enough: no evidence, no pass.
    pub fn holds(&self, recovered: u64, runs: u64) -> bool {
        let share = recovered as f64 / runs.max(1) as f64;
        let enough = if self.more { share > self.at_least.get() } else { share >= self.at_least.get() };
        runs > 0 && enough
    }

    fn parse(text: &str, place: Place) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a share of seeds: write `>= 95% of seeds`");
        let (operator, rest) = Operator::split(text.trim()).ok_or_else(wrong)?;
        let percent = rest.strip_suffix("seeds").map_or(Some(rest), |rest| rest.trim().strip_suffix("of"));
        let at_least = Share::parse(percent.ok_or_else(wrong)?)?;
        if at_least.get() < 1e-6 {
            return Err(format!("`{text}` asks for nothing: a run without evidence would pass; write `>= 95% of seeds`"));
        }
        let more = match operator {
            Operator::AtLeast => false,
            Operator::Above if at_least == Share::ALL => return Err("more than all seeds: write `== 100% of seeds`".into()),
            Operator::Above => true,
            Operator::Exactly if at_least == Share::ALL => false,
            Operator::Exactly | Operator::AtMost | Operator::Below => {
                let sign = operator.sign();
                return Err(format!("`{sign}` is no demand on how many seeds recover: write `>= {at_least} of seeds`"));
            }
        };
        Ok(Self { at_least, more, text: text.trim().to_string(), place })
    }
}

/// An entry of a plan's gates: a check on the run, or on the seeds of many.
#[derive(Clone, Debug, PartialEq)]
pub enum RunGate {
    /// A check on each run.
    Run(GateConfig),
    /// A check on all of them.
    Seeds(SeedShare),
}

impl Read for RunGate {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Some(value) = node.get(RECOVERED) else { return GateConfig::read(node, problems).map(Self::Run) };
        if let Value::Map(entries) = &node.value
            && let Some((key, _)) = entries.iter().find(|(key, _)| key.name != RECOVERED)
        {
            let message = format!("`{}` does not go with `recovered`, which is about whole runs", key.name);
            problems.error_with_hint(key.place, message, "write one list entry for each gate, and `recovered` alone");
            return None;
        }
        SeedText::read(value, problems).map(|SeedText(share)| Self::Seeds(share))
    }

    fn shape() -> Shape {
        let Shape::Record { doc, mut fields } = GateConfig::shape() else { return GateConfig::shape() };
        let doc_of = "Runs that recovered, where many seeds are simulated; stands alone.".to_string();
        fields.push(Field { name: RECOVERED, doc: doc_of, required: false, shape: SeedText::shape() });
        Shape::Record { doc, fields }
    }

    fn rescale(&mut self, by: TimeScale) {
        if let Self::Run(gate) = self {
            gate.rescale(by);
        }
    }
}

/// A [`SeedShare`] as the value of its key.
struct SeedText(SeedShare);

impl Read for SeedText {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, |text| SeedShare::parse(text, node.place).map(Self))
    }
    fn shape() -> Shape {
        Shape::Text {
            what: "a share of seeds",
            pattern: r"^\s*(>=|>|==)\s*[0-9]+(\.[0-9]+)?%(\s*of\s+seeds)?\s*$",
            examples: &[">= 95% of seeds"],
        }
    }

    fn rescale(&mut self, _by: TimeScale) {}
}

/// What two policies are compared in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compared {
    /// The share of seeds whose run recovered.
    Recovered,
    /// A figure that each run has.
    Figure(Figure),
}

impl Compared {
    /// As a plan writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Recovered => RECOVERED,
            Self::Figure(figure) => figure.word(),
        }
    }

    /// What it is counted in.
    pub fn unit(self) -> Unit {
        match self {
            Self::Recovered => Unit::Share,
            Self::Figure(figure) => figure.unit(),
        }
    }
}

/// What a candidate's figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Against {
    /// A value in the figure's unit (shares as fractions, times in seconds).
    Absolute(f64),
    /// So many times the reference policy's value.
    Reference(f64),
}

/// A check on a comparison: `{ policy: budget, peak_attempts: "<= 60% of reference" }`.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareGate {
    /// The candidate it looks at, by its index.
    pub policy: usize,
    /// What is compared.
    pub figure: Compared,
    /// How.
    pub operator: Operator,
    /// With what.
    pub against: Against,
    /// The comparison as the plan writes it.
    pub text: String,
    /// Where the gate stands in the plan.
    pub place: Place,
}

/// A [`CompareGate`] as written: its policy still a name.
#[derive(Clone, Debug, PartialEq)]
pub struct RawCompareGate {
    /// The candidate.
    pub policy: At<String>,
    /// What is compared, and where that stands.
    pub figure: At<Compared>,
    /// How, and with what.
    pub comparison: Versus,
    /// Where the gate stands.
    pub place: Place,
}

impl Read for RawCompareGate {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            let kind = node.kind();
            let message = format!("expected a map such as {{ policy: NAME, recovery_time: \"<= reference\" }}, found {kind}");
            problems.error(node.place, message);
            return None;
        };
        let (policies, figures): (Vec<_>, Vec<_>) = entries.iter().partition(|(key, _)| key.name == "policy");
        let policy = match policies.first() {
            Some((_, node)) => At::<String>::read(node, problems),
            None => {
                problems.error(node.place, "`policy` is missing: expected the name of a candidate");
                None
            }
        };
        let read: Vec<_> = figures.iter().map(|(key, value)| (compared(key.name.as_str(), key.place, problems), value)).collect();
        let &[(figure, value)] = read.as_slice() else {
            let message = format!("expected exactly one figure, found {}", read.len());
            if read.iter().all(|(figure, _)| figure.is_some()) {
                problems.error_with_hint(node.place, message, "write one list entry for each");
            }
            return None;
        };
        let comparison = Versus::read(value, problems);
        let (figure, comparison) = (figure?, comparison?);
        if let Some(unit) = comparison.unit
            && let Err(message) = unit_fits(unit, figure.unit(), &comparison.text, figure.word(), "<= 60% of reference")
        {
            problems.error(value.place, message);
            return None;
        }
        Some(Self { policy: policy?, figure: At { value: figure, place: value.place }, comparison, place: node.place })
    }

    fn shape() -> Shape {
        let name = Shape::Text { what: "the name of a candidate", pattern: "", examples: &[] };
        let doc = "The candidate it looks at.".to_string();
        let mut fields = vec![Field { name: "policy", doc, required: true, shape: name }];
        let field = |Alternative { name, doc, .. }| Field { name, doc, required: false, shape: Versus::shape() };
        fields.extend(words().into_iter().map(field));
        Shape::Record { doc: "A check on the comparison: a candidate, one figure and what it must be.".into(), fields }
    }

    fn rescale(&mut self, by: TimeScale) {
        self.comparison.rescale(by);
    }
}

fn words() -> Vec<Alternative> {
    let Shape::Keyword(mut words) = Figure::shape() else { return Vec::new() };
    words.insert(0, Alternative { name: RECOVERED, doc: "The share of seeds whose run recovered.".into(), shape: None });
    words
}

fn compared(word: &str, place: Place, problems: &mut Problems) -> Option<Compared> {
    let words: Vec<&'static str> = words().into_iter().map(|word| word.name).collect();
    let index = read_keyword(&Node { value: Value::Text(word.to_string()), place }, &words, problems)?;
    // The first word is `recovered`; the figures follow in the order of their table.
    index.checked_sub(1).map_or(Some(Compared::Recovered), |index| Figure::ALL.get(index).copied().map(Compared::Figure))
}

/// A comparison with the reference policy, or with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Versus {
    /// As the plan writes it.
    pub text: String,
    /// How.
    pub operator: Operator,
    /// With what.
    pub against: Against,
    /// The unit it was written in; none for multiples of the reference.
    pub unit: Option<Unit>,
}

impl Versus {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a comparison of policies: write `<= reference`, `<= 60% of reference`, `<= 0.6x reference`, or a value such as `<= 20s`"
            )
        };
        let text = text.trim();
        let (operator, rest) = Operator::split(text).ok_or_else(wrong)?;
        let (against, unit) = match rest.strip_suffix("reference") {
            Some(factor) => (Against::Reference(parse_factor(factor).ok_or_else(wrong)?), None),
            None => match rest.strip_suffix("seeds").and_then(|rest| rest.trim().strip_suffix("of")) {
                Some(percent) => (Against::Absolute(parse_percent(percent).map_err(|_| wrong())?), Some(Unit::Share)),
                None => parse_quantity(rest).map(|(n, unit)| (Against::Absolute(n), Some(unit))).ok_or_else(wrong)?,
            },
        };
        Ok(Self { text: text.to_string(), operator, against, unit })
    }
}

impl Read for Versus {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, Self::parse)
    }
    fn shape() -> Shape {
        Shape::Text {
            what: "a comparison of policies",
            pattern: r"^\s*(<=|>=|==|<|>)\s*\S.*$",
            examples: &["<= reference", "<= 60% of reference", "<= 0.6x reference", "<= 20s"],
        }
    }

    fn rescale(&mut self, by: TimeScale) {
        if let (Against::Absolute(bound), Some(unit)) = (&mut self.against, self.unit) {
            rescale(bound, unit, self.operator, &mut self.text, by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_seeds_read() {
        let read = |text| SeedShare::parse(text, Place::default()).map(|share| (share.at_least.get(), share.more));
        assert_eq!(read(">= 95% of seeds"), Ok((0.95, false)));
        assert_eq!(read(" > 50% "), Ok((0.5, true)));
        assert_eq!(read("== 100% of seeds"), Ok((1.0, false)));
        for (wrong, want) in [
            ("95%", "write `>= 95% of seeds`"),
            ("<= 5% of seeds", "`<=` is no demand"),
            ("== 50%", "`==` is no demand"),
            ("> 100%", "more than all"),
            (">= 19", "needs a unit"),
            (">= 101%", "between 0% and 100%"),
            (">= 0% of seeds", "asks for nothing"),
            (">= 95% seeds", "write `>= 95% of seeds`"),
        ] {
            let message = read(wrong).unwrap_err();
            assert!(message.contains(want), "{wrong}: {message}");
        }
    }

    #[test]
    fn enough_seeds_is_exact_at_the_edge() {
        let of = |text, recovered, runs| SeedShare::parse(text, Place::default()).unwrap().holds(recovered, runs);
        assert!(of(">= 95%", 19, 20) && !of(">= 95%", 18, 20) && !of("> 95%", 19, 20) && of("> 95%", 20, 20));
        assert!(of("== 100%", 7, 7) && !of("== 100%", 6, 7));
        assert!(!of(">= 1%", 0, 0), "no run is no evidence");
    }

    #[test]
    fn comparisons_of_policies_read() {
        let read = |text| Versus::parse(text).map(|c| (c.operator, c.against, c.unit));
        assert_eq!(read("<= reference"), Ok((Operator::AtMost, Against::Reference(1.0), None)));
        assert_eq!(read("< 60% of reference"), Ok((Operator::Below, Against::Reference(0.6), None)));
        assert_eq!(read("<= 0.6x reference"), Ok((Operator::AtMost, Against::Reference(0.6), None)));
        assert_eq!(read("<= 20s"), Ok((Operator::AtMost, Against::Absolute(20.0), Some(Unit::Time))));
        assert_eq!(read(">= 95% of seeds"), Ok((Operator::AtLeast, Against::Absolute(0.95), Some(Unit::Share))));
        for wrong in ["reference", "<= 2x baseline", "<= 60% reference", "<= 60 of reference", "=< 1s", "<= lots"] {
            assert!(read(wrong).unwrap_err().contains("<= 60% of reference"), "{wrong}");
        }
    }

    #[test]
    fn every_figure_can_be_compared() {
        let mut problems = Problems::default();
        for figure in Figure::ALL {
            assert_eq!(compared(figure.word(), Place::default(), &mut problems), Some(Compared::Figure(*figure)));
        }
        assert_eq!(compared("recovered", Place::default(), &mut problems), Some(Compared::Recovered));
        assert_eq!(compared("recovery", Place::default(), &mut problems), None);
        assert_eq!(problems.error_count(), 1);
    }
}
