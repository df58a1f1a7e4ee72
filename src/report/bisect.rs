//! The report of `stormwake bisect`: at which value of a setting half of the seeds stay stuck, and how far the plan is from it.

pub mod vary;

use super::layout::{self, Style};
use crate::gate::Class;
use crate::gate::tipping::{Found, MOST_TRIED, Tipping, Tried};
use crate::stats::{CONFIDENCE, clopper_pearson};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use vary::{Unit, Vary};

/// What counts as stuck here, in words.
pub const STUCK_MEANS: &str =
    "not healthy again for a hold by the end of the run (STUCK, DEGRADED or RECOVERING); INCONCLUSIVE runs count as neither";

/// What the runs at one value showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Runs by class.
    classes: BTreeMap<&'static str, u64>,
    recovered: u64,
    inconclusive: u64,
    /// Why the first of the inconclusive ones is that.
    pub why: Option<String>,
}

impl Outcomes {
    /// Counts a run.
    pub fn count(&mut self, class: Class, sentence: &str) {
        *self.classes.entry(class.word()).or_default() += 1;
        self.recovered += u64::from(matches!(class, Class::Recovered | Class::RecoveredLate));
        if class == Class::Inconclusive {
            self.inconclusive += 1;
            self.why.get_or_insert_with(|| sentence.to_string());
        }
    }

    /// Runs that showed anything.
    pub fn runs(&self) -> u64 {
        self.classes.values().sum::<u64>() - self.inconclusive
    }

    /// Of them, those that stayed stuck.
    pub fn stuck(&self) -> u64 {
        self.runs() - self.recovered
    }

    /// For the search.
    pub fn tried(&self, value: f64) -> Tried {
        Tried { value, stuck: self.stuck(), runs: self.runs() }
    }
}

/// What a search was of, and what it came to.
pub struct Search<'a> {
    /// The plan's name.
    pub plan: &'a str,
    /// What varied.
    pub vary: &'a Vary,
    /// The seeds that ran at every value.
    pub seeds: &'a [u64],
    /// How near the search was to come.
    pub tolerance: f64,
    /// The plan's own value, where it has one in the unit of the range.
    pub own: Option<f64>,
    /// What was tried, in rising order.
    pub values: &'a [(f64, Outcomes)],
    /// What came of it.
    pub found: Found,
}

/// The document that `--json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bisection {
    /// The version of stormwake that wrote this.
    pub stormwake: String,
    /// The plan's name.
    pub plan: String,
    /// The key that varied.
    pub key: String,
    /// What numbers are counted in: `seconds`, `per_second`, `share`, `count`, `number`.
    pub unit: String,
    /// The lower end of the range.
    pub from: f64,
    /// The upper end.
    pub to: f64,
    /// How near the search was to come: the width of a bracket / its upper end.
    pub tolerance: f64,
    /// The seeds that ran at every value.
    pub seeds: Vec<u64>,
    /// What counts as stuck.
    pub stuck_means: String,
    /// The values tried, in rising order.
    pub values: Vec<ValueTried>,
    /// The tipping point; null where none was found.
    pub tipping_point: Option<TippingPoint>,
    /// The plan's own value; null where it has none in this unit.
    pub plan_value: Option<f64>,
    /// Distance of the plan's value from the tipping point / the tipping point; negative where the plan lies on the stuck side.
    pub margin: Option<f64>,
    /// What came of it, in sentences.
    pub findings: Vec<String>,
}

/// A value and what its runs showed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueTried {
    /// The value.
    pub value: f64,
    /// The same as a plan writes it.
    pub text: String,
    /// Runs that stayed stuck.
    pub stuck: u64,
    /// Runs that showed anything.
    pub runs: u64,
    /// Clopper–Pearson bounds of the share of stuck runs, 95%: the lower.
    pub low: f64,
    /// The upper.
    pub high: f64,
    /// Runs by class, the inconclusive among them.
    pub classes: BTreeMap<String, u64>,
}

/// Where half of the seeds stay stuck.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TippingPoint {
    /// The best estimate.
    pub value: f64,
    /// From here the share of stuck seeds cannot be told from half at 95%; null where that begins below the range.
    pub from: Option<f64>,
    /// To here; null where that ends above the range.
    pub to: Option<f64>,
    /// On which side of it runs stay stuck: `above` or `below`.
    pub stuck: String,
    /// Whether the share of stuck seeds grows towards that side wherever it was tried, as far as counts can tell.
    pub monotone: bool,
}

/// The document of a search.
pub fn document(search: &Search) -> Bisection {
    let tipping = tipping_of(search);
    Bisection {
        stormwake: env!("CARGO_PKG_VERSION").to_string(),
        plan: search.plan.to_string(),
        key: search.vary.key.clone(),
        unit: search.vary.unit.word().to_string(),
        from: rounded(search.vary.from),
        to: rounded(search.vary.to),
        tolerance: search.tolerance,
        seeds: search.seeds.to_vec(),
        stuck_means: STUCK_MEANS.to_string(),
        values: search.values.iter().map(|(value, outcomes)| value_tried(search.vary.unit, *value, outcomes)).collect(),
        tipping_point: tipping.map(|tipping| TippingPoint {
            value: rounded(tipping.value),
            from: tipping.from.map(rounded),
            to: tipping.to.map(rounded),
            stuck: if tipping.rising { "above" } else { "below" }.to_string(),
            monotone: tipping.contradiction.is_none() && !tipping.island,
        }),
        plan_value: search.own.map(rounded),
        margin: tipping.zip(search.own).and_then(|(tipping, own)| margin(&tipping, own)).map(rounded),
        findings: findings(search),
    }
}

/// The document's bytes.
pub fn json(document: &Bisection) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(document).expect("numbers and texts are JSON");
    bytes.push(b'\n');
    bytes
}

/// What is printed for people.
pub fn text(search: &Search, style: &Style) -> String {
    let Vary { key, unit, from, to } = search.vary;
    let mut out = String::new();
    let (first, last) = (search.seeds.first().copied().unwrap_or(0), search.seeds.last().copied().unwrap_or(0));
    let head = format!(
        "{}: {key} from {} to {}, the same {} seeds ({first} to {last}) at every value",
        search.plan,
        unit.show(*from),
        unit.show(*to),
        search.seeds.len()
    );
    put(&mut out, &head, style);
    put(&mut out, &format!("stuck: {STUCK_MEANS}"), style);
    out.push('\n');
    table(&mut out, search, style);
    out.push('\n');
    findings(search).iter().for_each(|finding| put(&mut out, finding, style));
    out
}

/// One value and its counts in a line, for progress.
pub fn line(unit: Unit, value: f64, outcomes: &Outcomes) -> String {
    let (low, high) = clopper_pearson(outcomes.stuck(), outcomes.runs(), CONFIDENCE);
    let bounds = format!("{:.0}% to {:.0}%", low * 100.0, high * 100.0);
    let counts = format!("{} of {}", outcomes.stuck(), outcomes.runs());
    let inconclusive = match outcomes.inconclusive {
        0 => String::new(),
        n => format!("   {n} inconclusive"),
    };
    format!("{:>12}   {counts:>12}   {bounds:>12}{inconclusive}", unit.show(value))
}

fn table(out: &mut String, search: &Search, style: &Style) {
    let _ = writeln!(out, "{:>12}   {:>12}   {:>12}", "value", "stuck", "95% bounds");
    for (value, outcomes) in search.values {
        let _ = writeln!(out, "{}", style.clean(&line(search.vary.unit, *value, outcomes)));
    }
}

fn put(out: &mut String, text: &str, style: &Style) {
    for line in style.wrap(text, style.width.clamp(40, 120), usize::MAX) {
        let _ = writeln!(out, "{line}");
    }
}

fn tipping_of(search: &Search) -> Option<Tipping> {
    match search.found {
        Found::Tipping(tipping) => Some(tipping),
        Found::AllStuck | Found::NoneStuck => None,
    }
}

fn value_tried(unit: Unit, value: f64, outcomes: &Outcomes) -> ValueTried {
    let (low, high) = clopper_pearson(outcomes.stuck(), outcomes.runs(), CONFIDENCE);
    ValueTried {
        value: rounded(value),
        text: unit.show(value),
        stuck: outcomes.stuck(),
        runs: outcomes.runs(),
        low: rounded(low),
        high: rounded(high),
        classes: outcomes.classes.iter().map(|(class, runs)| (class.to_string(), *runs)).collect(),
    }
}

/// Positive where the plan lies on the side that recovers.
fn margin(tipping: &Tipping, own: f64) -> Option<f64> {
    let distance = if tipping.rising { tipping.value - own } else { own - tipping.value };
    (tipping.value > 0.0).then(|| distance / tipping.value)
}

fn findings(search: &Search) -> Vec<String> {
    let Some(tipping) = tipping_of(search) else { return vec![nowhere(search)] };
    let unit = search.vary.unit;
    let side = if tipping.rising { "above" } else { "below" };
    let mut found = vec![format!(
        "tipping point: {}: {side} it more than half of the seeds stay stuck; within the interval the share cannot be told from half (95%)",
        located(&tipping, unit, search.tolerance)
    )];
    found.push(match search.own {
        Some(own) => position(&tipping, own, unit, search.tolerance),
        None => format!("the plan gives `{}` no value of this unit, so there is no margin to tell", search.vary.key),
    });
    if let Some((stuck, free)) = tipping.contradiction {
        found.push(format!(
            "the share is not monotone: most seeds stay stuck at {}, and few at {}; the interval spans all such values, and there may be more than one tipping point",
            unit.show(stuck),
            unit.show(free)
        ));
    }
    if search.values.len() >= MOST_TRIED {
        found.push(format!("the search stopped at its bound of {MOST_TRIED} values, before it came as near as was asked"));
    }
    if tipping.island {
        found.push(
            "both ends of the range agree, and values between them do not: this is the lower of at least two tipping points"
                .into(),
        );
    }
    found
}

fn nowhere(search: &Search) -> String {
    let Vary { unit, from, to, .. } = search.vary;
    let (stuck, runs) = search.values.iter().fold((0, 0), |(stuck, runs), (_, o)| (stuck + o.stuck(), runs + o.runs()));
    let every = search.seeds.len();
    let what = match (search.found, stuck) {
        (Found::AllStuck, n) if n == runs => format!("all of {every} seeds stay stuck"),
        (Found::AllStuck, _) => "half or more of the seeds stay stuck".to_string(),
        (_, 0) => format!("all of {every} seeds recover"),
        _ => "more than half of the seeds recover".to_string(),
    };
    let (count, from, to) = (search.values.len(), unit.show(*from), unit.show(*to));
    format!("{what} at every one of {count} values over the whole range: no tipping point between {from} and {to}")
}

/// `12.3s (12.1s to 12.6s)`.
fn located(tipping: &Tipping, unit: Unit, tolerance: f64) -> String {
    let interval = match (tipping.from, tipping.to) {
        (Some(from), Some(to)) => format!("{} to {}", unit.show(from), unit.show(to)),
        (Some(from), None) => format!("{} to beyond the range", unit.show(from)),
        (None, Some(to)) => format!("below the range to {}", unit.show(to)),
        (None, None) => "anywhere in the range, and beyond".to_string(),
    };
    format!("{} ({interval})", near(tipping.value, unit, tolerance))
}

/// A value with digits that mean something, given how near the search came.
fn near(value: f64, unit: Unit, tolerance: f64) -> String {
    // Between two counts lies a half: the one below it is not over the point, the one above is.
    let grain = match unit {
        Unit::Count => 0.5,
        _ => Vary { key: String::new(), unit, from: value, to: value }.range(tolerance).grain,
    };
    unit.show((value / grain).round() * grain)
}

fn position(tipping: &Tipping, own: f64, unit: Unit, tolerance: f64) -> String {
    let (value, place) = (unit.show(own), located(tipping, unit, tolerance));
    if tipping.from.is_none_or(|from| from <= own) && tipping.to.is_none_or(|to| own <= to) {
        return format!("the plan's {value} cannot be told from the tipping point of {place}: no margin");
    }
    let side = if own < tipping.value { "below" } else { "above" };
    let distance = near((own - tipping.value).abs(), unit, tolerance);
    match margin(tipping, own) {
        Some(margin) if margin > 0.0 => {
            format!(
                "the plan's {value} lies {distance} {side} the tipping point of {place}: {} margin",
                layout::percent(Some(margin))
            )
        }
        _ => format!("the plan's {value} lies {distance} {side} the tipping point of {place}, where seeds stay stuck"),
    }
}

/// Six decimals; adding zero turns -0 into 0.
fn rounded(x: f64) -> f64 {
    (x * 1e6).round() / 1e6 + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(stuck: u64, recovered: u64, inconclusive: u64) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for (class, n) in [(Class::Stuck, stuck), (Class::RecoveredLate, recovered), (Class::Inconclusive, inconclusive)] {
            (0..n).for_each(|_| outcomes.count(class, "the run ended too early"));
        }
        outcomes
    }

    fn with<T>(found: Found, own: Option<f64>, read: impl Fn(&Search) -> T) -> T {
        let vary = Vary::parse("timeline.block.for=1s..120s").unwrap();
        let values =
            [(1.0, outcomes(0, 20, 0)), (12.1, outcomes(4, 16, 0)), (12.6, outcomes(15, 4, 1)), (120.0, outcomes(20, 0, 0))];
        let seeds: Vec<u64> = (1..=20).collect();
        read(&Search { plan: "block", vary: &vary, seeds: &seeds, tolerance: 0.02, own, values: &values, found })
    }

    const TIPPING: Tipping =
        Tipping { value: 12.3, from: Some(12.1), to: Some(12.6), rising: true, contradiction: None, island: false };

    #[test]
    fn the_margin_is_said_in_the_terms_of_the_plan() {
        let said =
            |tipping, own| with(Found::Tipping(tipping), own, |search| text(search, &Style { width: 120, ..Style::default() }));
        let text = said(TIPPING, Some(10.0));
        assert!(
            text.contains("the plan's 10s lies 2.3s below the tipping point of 12.3s (12.1s to 12.6s): 19% margin"),
            "{text}"
        );
        assert!(text.contains("       12.6s       15 of 19     54% to 94%   1 inconclusive\n"), "{text}");
        assert!(said(TIPPING, Some(20.0)).contains("lies 7.7s above the tipping point"), "{text}");
        assert!(said(TIPPING, Some(20.0)).contains("where seeds stay stuck"), "{text}");
        assert!(said(TIPPING, Some(12.2)).contains("no margin"));
        assert!(said(TIPPING, None).contains("there is no margin to tell"));
        let falling = Tipping { rising: false, contradiction: Some((40.0, 20.0)), ..TIPPING };
        let text = said(falling, Some(20.0));
        assert!(
            text.contains("below it more than half") && text.contains("63% margin") && text.contains("not monotone"),
            "{text}"
        );
        let open = Tipping { from: None, ..TIPPING };
        assert!(said(open, Some(20.0)).contains("12.3s (below the range to 12.6s)"));
    }

    #[test]
    fn no_tipping_point_is_said_as_that() {
        let recover = with(Found::NoneStuck, Some(10.0), |search| (findings(search), document(search)));
        assert!(recover.0[0].contains("no tipping point between 1s and 120s"), "{:?}", recover.0);
        assert_eq!((recover.1.tipping_point, recover.1.margin), (None, None));
    }

    #[test]
    fn the_document_holds_what_the_text_says() {
        let document = with(Found::Tipping(TIPPING), Some(10.0), document);
        assert_eq!((document.margin, document.unit.as_str(), document.values.len()), (Some(0.186992), "seconds", 4));
        let point = document.tipping_point.as_ref().unwrap();
        assert_eq!((point.from, point.value, point.to, point.monotone), (Some(12.1), 12.3, Some(12.6), true));
        let value: serde_json::Value = serde_json::from_slice(&json(&document)).unwrap();
        assert_eq!(value["values"][2]["classes"]["INCONCLUSIVE"], 1);
        assert_eq!((&value["values"][2]["stuck"], &value["values"][2]["runs"]), (&15.into(), &19.into()));
    }
}
