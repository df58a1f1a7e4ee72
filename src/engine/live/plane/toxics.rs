//! Toxics as the API names them: eight types with their attributes, what is sound of them, and the fault that each is.

use super::json::{Json, quoted};
use super::leases::Hold;
use super::refusal::Refusal;
use crate::fault::{Stream, Toxic, ToxicKind};
use crate::time::Span;
use std::fmt::Write as _;

/// The longest time that an attribute may say, in its own unit, and the largest amount: what is above is a slip.
const MOST: i64 = 1_000_000_000;

/// A type of toxic.
#[derive(Debug, PartialEq)]
struct Form {
    /// What a client calls it.
    word: &'static str,
    /// What an error about its attributes calls it.
    shown: &'static str,
    /// By attribute, its name and the least that it may be; in the order of an answer.
    attributes: &'static [(&'static str, i64)],
}

const FORMS: [Form; 8] = [
    Form { word: "latency", shown: "LatencyToxic", attributes: &[("latency", 0), ("jitter", 0)] },
    Form { word: "bandwidth", shown: "BandwidthToxic", attributes: &[("rate", 1)] },
    Form { word: "slow_close", shown: "SlowCloseToxic", attributes: &[("delay", 0)] },
    Form { word: "timeout", shown: "TimeoutToxic", attributes: &[("timeout", 0)] },
    Form { word: "reset_peer", shown: "ResetToxic", attributes: &[("timeout", 0)] },
    Form { word: "slicer", shown: "SlicerToxic", attributes: &[("average_size", 1), ("size_variation", 0), ("delay", 0)] },
    Form { word: "limit_data", shown: "LimitDataToxic", attributes: &[("bytes", 1)] },
    Form { word: "noop", shown: "NoopToxic", attributes: &[] },
];

/// A toxic as a client asks for it. What is not said has a default, or is left as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToxicInput {
    /// Its type.
    pub kind: String,
    /// Its name.
    pub name: Option<String>,
    /// Which way.
    pub stream: Option<String>,
    /// The share of connections that it strikes.
    pub toxicity: Option<f64>,
    /// What its type reads.
    pub attributes: Option<Json>,
}

/// A sound toxic of a proxy.
#[derive(Clone, Debug, PartialEq)]
pub struct Harm {
    /// Its name, which no other toxic of the proxy has.
    pub name: String,
    /// Tells its rule from all others; another one once it is changed.
    pub number: usize,
    form: &'static Form,
    /// As it was spelled.
    stream: String,
    direction: Stream,
    toxicity: f64,
    /// By attribute of its form.
    values: Vec<i64>,
    /// The lease that holds it, and what it took the place of.
    pub hold: Option<Hold<Option<Box<Harm>>>>,
}

impl Harm {
    /// A toxic of a proxy that has `others`.
    ///
    /// # Errors
    /// What is wrong with it, or that its name is taken; checked in the order of the server that this stands in for.
    pub fn new(input: &ToxicInput, others: &[Self], number: usize) -> Result<Self, Refusal> {
        let stream = input.stream.clone().unwrap_or_else(|| "downstream".into());
        let direction = direction(&stream)?;
        let form = FORMS.iter().find(|form| form.word == input.kind);
        let form = form.ok_or_else(|| Refusal::new(400, "invalid toxic type").at(&["type"]))?;
        let name = input.name.clone().filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| format!("{}_{stream}", form.word));
        if others.iter().any(|other| other.name == name) {
            return Err(Refusal::new(409, "toxic already exists").at(&["name"]));
        }
        let values = vec![0; form.attributes.len()];
        let harm = Self { name, number, form, stream, direction, toxicity: 1.0, values, hold: None };
        harm.with(input, number)
    }

    /// The same with what a client wants changed: attributes and toxicity, and nothing else.
    ///
    /// # Errors
    /// What is wrong with it then.
    pub fn with(&self, input: &ToxicInput, number: usize) -> Result<Self, Refusal> {
        let mut harm = Self { number, ..self.clone() };
        if let Some(attributes) = &input.attributes {
            harm.take(attributes).map_err(|refusal| refusal.at(&["attributes"]))?;
        }
        harm.toxicity = input.toxicity.unwrap_or(harm.toxicity);
        if !(0.0..=1.0).contains(&harm.toxicity) {
            let error = format!("invalid toxicity: expected 0 to 1, found {}", float(harm.toxicity));
            return Err(Refusal::new(400, error).at(&["toxicity"]));
        }
        harm.check().map_err(|refusal| refusal.at(&["attributes"]))?;
        Ok(harm)
    }

    /// What its type is called.
    pub fn kind(&self) -> &'static str {
        self.form.word
    }

    /// Which way it harms.
    pub fn direction(&self) -> Stream {
        self.direction
    }

    /// The fault that it is.
    pub fn toxic(&self) -> Toxic {
        let value = |n: usize| self.values.get(n).and_then(|value| u64::try_from(*value).ok()).unwrap_or(0);
        let millis = |n| Span::from_millis(value(n));
        let kind = match self.form.word {
            "latency" => ToxicKind::Latency { latency: millis(0), jitter: millis(1) },
            "bandwidth" => ToxicKind::Bandwidth { rate: value(0) },
            "slow_close" => ToxicKind::SlowClose { delay: millis(0) },
            "timeout" => ToxicKind::Timeout { timeout: millis(0) },
            "reset_peer" => ToxicKind::ResetPeer { timeout: millis(0) },
            "slicer" => {
                ToxicKind::Slicer { average_size: value(0), size_variation: value(1), delay: Span::from_micros(value(2)) }
            }
            "limit_data" => ToxicKind::LimitData { bytes: value(0) },
            _ => ToxicKind::Noop,
        };
        Toxic { stream: self.direction, toxicity: self.toxicity, kind }
    }

    /// As an answer shows it.
    pub fn json(&self) -> String {
        let attributes = self.form.attributes.iter().zip(&self.values);
        let attributes: Vec<String> = attributes.map(|((name, _), value)| format!("\"{name}\":{value}")).collect();
        let mut json = format!("{{\"attributes\":{{{}}}", attributes.join(","));
        // Writing to a String cannot fail.
        let _ = write!(
            json,
            ",\"name\":{},\"type\":\"{}\",\"stream\":{},\"toxicity\":{}}}",
            quoted(&self.name),
            self.form.word,
            quoted(&self.stream),
            float(self.toxicity)
        );
        json
    }

    /// Takes what it is told over what it has. A key counts in whatever case it is written.
    fn take(&mut self, attributes: &Json) -> Result<(), Refusal> {
        let form = self.form;
        let entries = match attributes {
            Json::Null => return Ok(()),
            Json::Map(entries) => entries,
            other => {
                let error = format!(
                    "json: cannot unmarshal {} into Go struct field .attributes of type toxics.{}",
                    other.kind(),
                    form.shown
                );
                return Err(Refusal::body(&error));
            }
        };
        for (key, value) in entries {
            let known = form.attributes.iter().position(|(name, _)| name.eq_ignore_ascii_case(key));
            let place = known.ok_or_else(|| unknown(form, key))?;
            if let Some(value) = whole(value).map_err(|what| wrong_kind(form, form.attributes[place].0, &what))? {
                self.values[place] = value;
            }
        }
        Ok(())
    }

    /// Whether what it says can be carried out.
    fn check(&self) -> Result<(), Refusal> {
        for ((name, least), value) in self.form.attributes.iter().zip(&self.values) {
            if !(*least..=MOST).contains(value) {
                let error = format!("invalid attribute {name} of {}: expected {least} to {MOST}, found {value}", self.form.word);
                return Err(Refusal::new(400, error).at(&[name]));
            }
        }
        if self.form.word == "slicer" && self.values[1] >= self.values[0] {
            let (size, variation) = (self.values[0], self.values[1]);
            let error = format!(
                "invalid attribute size_variation of slicer: expected less than average_size, which is {size}, found {variation}"
            );
            return Err(Refusal::new(400, error).at(&["size_variation"]));
        }
        Ok(())
    }
}

fn direction(stream: &str) -> Result<Stream, Refusal> {
    if stream.eq_ignore_ascii_case("upstream") {
        Ok(Stream::Upstream)
    } else if stream.eq_ignore_ascii_case("downstream") {
        Ok(Stream::Downstream)
    } else {
        let error = "stream was invalid, can be either upstream or downstream";
        Err(Refusal::new(400, error).at(&["stream"]))
    }
}

fn unknown(form: &Form, key: &str) -> Refusal {
    let names: Vec<&str> = form.attributes.iter().map(|(name, _)| *name).collect();
    let expected = if names.is_empty() { "none".into() } else { names.join(", ") };
    let key: String = key.chars().take(60).collect();
    Refusal::new(400, format!("unknown attribute {key} of {}: expected {expected}", form.word)).at(&[&key])
}

fn wrong_kind(form: &Form, name: &str, found: &str) -> Refusal {
    let error = format!("json: cannot unmarshal {found} into Go struct field {}.attributes.{name} of type int64", form.shown);
    Refusal::body(&error).at(&[name])
}

/// A whole number of 64 bits; none where nothing is said. Else what was found, as an error names it.
fn whole(value: &Json) -> Result<Option<i64>, String> {
    match value {
        Json::Null => Ok(None),
        Json::Number(text) => text.parse().map(Some).map_err(|_| format!("number {text}")),
        other => Err(other.kind().into()),
    }
}

/// A number as an answer shows it: as short as a 32-bit one can be.
fn float(value: f64) -> String {
    let value = value as f32;
    if value != 0.0 && !(1e-6..1e21).contains(&value.abs()) { format!("{value:e}") } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(kind: &str, attributes: &str) -> ToxicInput {
        let attributes = Json::parse(attributes.as_bytes()).ok();
        ToxicInput { kind: kind.into(), attributes, ..ToxicInput::default() }
    }

    #[test]
    fn each_type_becomes_its_fault() {
        let ms = Span::from_millis;
        for (kind, attributes, fault) in [
            ("latency", r#"{"latency":100,"jitter":10}"#, ToxicKind::Latency { latency: ms(100), jitter: ms(10) }),
            ("bandwidth", r#"{"rate":5}"#, ToxicKind::Bandwidth { rate: 5 }),
            ("slow_close", r#"{"delay":3}"#, ToxicKind::SlowClose { delay: ms(3) }),
            ("timeout", "{}", ToxicKind::Timeout { timeout: Span::ZERO }),
            ("reset_peer", r#"{"TIMEOUT":7}"#, ToxicKind::ResetPeer { timeout: ms(7) }),
            (
                "slicer",
                r#"{"average_size":10,"size_variation":9,"delay":2}"#,
                ToxicKind::Slicer { average_size: 10, size_variation: 9, delay: Span::from_micros(2) },
            ),
            ("limit_data", r#"{"bytes":1}"#, ToxicKind::LimitData { bytes: 1 }),
            ("noop", "null", ToxicKind::Noop),
        ] {
            let harm = Harm::new(&input(kind, attributes), &[], 3).unwrap();
            assert_eq!(harm.toxic(), Toxic { stream: Stream::Downstream, toxicity: 1.0, kind: fault });
            assert_eq!((harm.name.clone(), harm.number), (format!("{kind}_downstream"), 3));
        }
    }

    #[test]
    fn what_cannot_be_carried_out_is_refused_with_the_reason() {
        for (kind, attributes, part) in [
            ("bandwidth", "{}", "attribute rate of bandwidth: expected 1 to"),
            ("bandwidth", r#"{"rate":-3}"#, "found -3"),
            ("bandwidth", r#"{"rate":5,"unknown":1}"#, "unknown attribute unknown of bandwidth: expected rate"),
            ("latency", r#"{"latency":9223372036854775807}"#, "expected 0 to 1000000000"),
            ("latency", r#"{"latency":5,"jitter":-1}"#, "attribute jitter"),
            ("slicer", "{}", "attribute average_size of slicer"),
            ("slicer", r#"{"average_size":5,"size_variation":5}"#, "expected less than average_size, which is 5, found 5"),
            ("limit_data", r#"{"bytes":0}"#, "found 0"),
            ("noop", r#"{"a":1}"#, "expected none"),
            ("nope", "{}", "invalid toxic type"),
            ("bandwidth", r#"{"rate":1.5}"#, "number 1.5 into Go struct field BandwidthToxic.attributes.rate of type int64"),
            ("bandwidth", r#"{"rate":[]}"#, "cannot unmarshal array into"),
            ("latency", "5", "cannot unmarshal number into Go struct field .attributes of type toxics.LatencyToxic"),
        ] {
            let refusal = Harm::new(&input(kind, attributes), &[], 0).unwrap_err();
            assert!(refusal.status == 400 && refusal.error.contains(part), "{kind} {attributes}: {refusal:?}");
        }
        for toxicity in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            let wrong = ToxicInput { toxicity: Some(toxicity), ..input("noop", "{}") };
            assert!(Harm::new(&wrong, &[], 0).unwrap_err().error.starts_with("invalid toxicity"));
        }
    }

    #[test]
    fn a_change_merges_and_leaves_type_name_and_stream() {
        let before = Harm::new(&input("latency", r#"{"latency":100,"jitter":10}"#), &[], 0).unwrap();
        let change = ToxicInput {
            name: Some("zz".into()),
            stream: Some("upstream".into()),
            toxicity: Some(0.5),
            ..input("timeout", r#"{"latency":250}"#)
        };
        let after = before.with(&change, 9).unwrap();
        let shown = r#"{"attributes":{"latency":250,"jitter":10},"name":"latency_downstream","type":"latency","stream":"downstream","toxicity":0.5}"#;
        assert_eq!((after.json().as_str(), after.number), (shown, 9));
        assert_eq!(Harm::new(&input("latency", "{}"), &[before], 1).unwrap_err().status, 409);
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        for (value, shown) in
            [(1.0, "1"), (0.0, "0"), (0.25, "0.25"), (0.1, "0.1"), (0.0000001, "1e-7"), (1.0 / 3.0, "0.33333334")]
        {
            assert_eq!(float(value), shown);
        }
    }
}
