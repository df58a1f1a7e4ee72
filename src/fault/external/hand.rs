//! What a run has put into one proxy of a Toxiproxy, and how to get it to where it should be.
//!
//! Somebody else's toxics are never touched, and a proxy that somebody else has disabled is never enabled. What is ours is known by its
//! name, `stormwake-RUN-STEP-STREAM`, and that a proxy is down by our doing is remembered from before the call that may have done it.
//!
//! # Order of the calls
//!
//! No state that nobody asked for is to act in between: a proxy goes down before its toxics change, and comes up after. Toxics go before others
//! come. Steps that refuse hold the proxy down together: it comes up when the last of them ends.

use super::super::{Stream, Toxic};
use super::{Demand, Remote, demand};

/// What the names of all toxics begin with that any run of ours has made.
pub const MARK: &str = "stormwake-";

/// A toxic of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Ours {
    /// Its name.
    pub name: String,
    /// What it is.
    pub toxic: Toxic,
}

/// What a proxy should be and have, of ours.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wish {
    /// Whether it should be down.
    pub down: bool,
    /// The toxics that it should have beside those of others.
    pub toxics: Vec<Ours>,
}

impl Wish {
    /// Whether nothing is wished for.
    pub fn is_nothing(&self) -> bool {
        !self.down && self.toxics.is_empty()
    }
}

/// A toxic that a server has.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldToxic {
    /// Its name.
    pub name: String,
    /// Its type, as the server calls it.
    pub kind: String,
    /// What it is; none where that is nothing that we know.
    pub toxic: Option<Toxic>,
}

/// What a proxy is and has, as the server says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// Whether it is up.
    pub enabled: bool,
    /// Where it listens.
    pub listen: String,
    /// All of its toxics.
    pub toxics: Vec<HeldToxic>,
}

impl Held {
    /// The names of the toxics that some run of ours has made.
    pub fn marked(&self) -> Vec<&str> {
        self.toxics.iter().map(|toxic| toxic.name.as_str()).filter(|name| name.starts_with(MARK)).collect()
    }
}

/// A call to the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Has it come up, or go down.
    Enable(bool),
    /// Adds a toxic.
    Add(Ours),
    /// Removes the toxic of this name.
    Remove(String),
}

/// A run's hand in one proxy of a Toxiproxy.
#[derive(Clone, Debug)]
pub struct Hand {
    prefix: String,
    /// Whether it is down by our doing, or may be.
    down: bool,
    /// The names of the toxics that are there by our doing, or may be.
    placed: Vec<String>,
}

impl Hand {
    /// The hand of a run that has done nothing yet; `run` tells it from all other runs.
    pub fn new(run: &str) -> Self {
        Self { prefix: format!("{MARK}{run}-"), down: false, placed: Vec::new() }
    }

    /// The same, of a run that may have taken the proxy down.
    #[must_use]
    pub fn having_taken_down(self, down: bool) -> Self {
        Self { down, ..self }
    }

    /// Whether the proxy is down by our doing, or may be.
    pub const fn holds_down(&self) -> bool {
        self.down
    }

    /// What the proxy should be and have while these steps act.
    pub fn wish<'a>(&self, acting: impl IntoIterator<Item = &'a Remote>) -> Wish {
        let mut wish = Wish::default();
        for Remote { name, fault, .. } in acting {
            match demand(fault) {
                Ok(Demand::Down) => wish.down = true,
                Ok(Demand::Toxics(toxics)) => wish.toxics.extend(toxics.into_iter().map(|toxic| self.named(name, toxic))),
                // Refused when the plan was checked.
                Err(_) => {}
            }
        }
        wish
    }

    fn named(&self, step: &str, toxic: Toxic) -> Ours {
        Ours { name: format!("{}{step}-{}", self.prefix, word(toxic.stream)), toxic }
    }

    /// What is to be called, in this order, so that the proxy is what is wished for.
    pub fn calls(&self, held: &Held, wish: &Wish) -> Vec<Call> {
        let falls = (wish.down && held.enabled).then_some(Call::Enable(false));
        let rises = (!wish.down && !held.enabled && self.down).then_some(Call::Enable(true));
        let wanted = |there: &&HeldToxic| wish.toxics.iter().any(|ours| is(there, ours));
        let surplus = held.toxics.iter().filter(|there| self.owns(&there.name) && !wanted(there));
        let surplus = surplus.map(|there| Call::Remove(there.name.clone()));
        let missing = wish.toxics.iter().filter(|ours| !held.toxics.iter().any(|there| is(there, ours)));
        let missing = missing.map(|ours| Call::Add(ours.clone()));
        falls.into_iter().chain(surplus).chain(missing).chain(rises).collect()
    }

    /// Says that a call is about to be made: whatever becomes of it, it may have been carried out.
    pub fn calls_now(&mut self, call: &Call) {
        match call {
            Call::Enable(enabled) => self.down |= !enabled,
            Call::Add(Ours { name, .. }) if !self.placed.contains(name) => self.placed.push(name.clone()),
            Call::Add(_) | Call::Remove(_) => {}
        }
    }

    /// Whether the server has exactly what is wished for, of ours.
    ///
    /// # Errors
    /// What differs, in words.
    pub fn check(&self, held: &Held, wish: &Wish) -> Result<(), String> {
        let differences = self.differences(held, wish);
        if differences.is_empty() { Ok(()) } else { Err(differences.join("; ")) }
    }

    /// The same, after calls: where it has, that is what is there by our doing.
    ///
    /// # Errors
    /// What differs, in words.
    pub fn verify(&mut self, held: &Held, wish: &Wish) -> Result<(), String> {
        self.check(held, wish)?;
        self.down = wish.down;
        self.placed = wish.toxics.iter().map(|ours| ours.name.clone()).collect();
        Ok(())
    }

    fn differences(&self, held: &Held, wish: &Wish) -> Vec<String> {
        let state = match (wish.down, held.enabled, self.down) {
            (true, true, _) => Some("the proxy is still enabled".to_string()),
            (true, false, false) => Some("somebody else has disabled the proxy".to_string()),
            (false, false, true) => Some("the proxy is still disabled".to_string()),
            (false, false, false) => Some("somebody else has disabled the proxy".to_string()),
            (true, false, true) | (false, true, _) => None,
        };
        let missing = wish.toxics.iter().filter_map(|ours| match held.toxics.iter().find(|there| there.name == ours.name) {
            None => Some(format!("the toxic {} is not there", ours.name)),
            Some(there) if !is(there, ours) => Some(format!("the toxic {} is not what was asked for", ours.name)),
            Some(_) => None,
        });
        let wanted = |name: &str| wish.toxics.iter().any(|ours| ours.name == name);
        let surplus = held.toxics.iter().filter(|there| self.owns(&there.name) && !wanted(&there.name));
        let surplus = surplus.map(|there| format!("the toxic {} is still there", there.name));
        state.into_iter().chain(missing).chain(surplus).collect()
    }

    /// The toxics that are not this run's, in words.
    pub fn strangers(&self, held: &Held) -> Vec<String> {
        let strange = held.toxics.iter().filter(|there| !self.owns(&there.name));
        strange.map(|there| format!("{} ({})", there.name, there.kind)).collect()
    }

    /// What somebody has to call who cleans up by hand: for all that this run has asked for and not seen to be gone.
    pub fn by_hand(&self) -> Vec<Call> {
        let toxics = self.placed.iter().map(|name| Call::Remove(name.clone()));
        toxics.chain(self.down.then_some(Call::Enable(true))).collect()
    }

    fn owns(&self, name: &str) -> bool {
        name.starts_with(&self.prefix)
    }
}

/// The word for a stream.
const fn word(stream: Stream) -> &'static str {
    match stream {
        Stream::Upstream => "upstream",
        Stream::Downstream => "downstream",
    }
}

/// Whether a toxic is there as it was asked for. A Toxiproxy keeps toxicity in 32 bits.
fn is(there: &HeldToxic, ours: &Ours) -> bool {
    let same = |toxic: &Toxic| {
        (toxic.stream, &toxic.kind) == (ours.toxic.stream, &ours.toxic.kind)
            && toxic.toxicity as f32 == ours.toxic.toxicity as f32
    };
    there.name == ours.name && there.toxic.as_ref().is_some_and(same)
}

#[cfg(test)]
mod tests {
    use super::super::super::timeline::tests::fault;
    use super::*;

    /// Steps by their faults, each named after its place: `0`, `1` …
    fn steps(faults: &str) -> Vec<Remote> {
        let of = |(step, text): (usize, &str)| Remote { step, name: step.to_string(), fault: fault(text) };
        faults.split(", ").filter(|text| !text.is_empty()).enumerate().map(of).collect()
    }

    /// A server that carries out calls.
    fn carried_out(mut held: Held, calls: &[Call]) -> Held {
        for call in calls {
            match call {
                Call::Enable(enabled) => held.enabled = *enabled,
                Call::Add(Ours { name, toxic }) => {
                    held.toxics.push(HeldToxic { name: name.clone(), kind: "x".into(), toxic: Some(toxic.clone()) });
                }
                Call::Remove(name) => held.toxics.retain(|there| there.name != *name),
            }
        }
        held
    }

    fn up() -> Held {
        let slow = HeldToxic { name: "slow".into(), kind: "latency".into(), toxic: None };
        Held { enabled: true, listen: "127.0.0.1:1".into(), toxics: vec![slow] }
    }

    fn shown(calls: &[Call]) -> String {
        let one = |call: &Call| match call {
            Call::Enable(true) => "up".to_string(),
            Call::Enable(false) => "down".to_string(),
            Call::Add(ours) => format!("+{}", ours.name.trim_start_matches("stormwake-r-")),
            Call::Remove(name) => format!("-{}", name.trim_start_matches("stormwake-r-")),
        };
        calls.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// From what acts, to what acts then: the calls. The server has what was asked for before, and afterwards.
    #[test]
    fn calls_lead_from_one_set_of_steps_to_another_without_a_state_between() {
        for (before, after, wanted) in [
            ("", "", ""),
            ("", "refuse", "down"),
            ("refuse", "", "up"),
            ("refuse", "refuse, refuse", ""),
            ("refuse, refuse", "refuse", ""),
            ("", "blackhole", "+0-upstream +0-downstream"),
            ("blackhole", "", "-0-upstream -0-downstream"),
            ("", "latency 5, latency 5", "+0-downstream +1-downstream"),
            ("latency 5, latency 7", "latency 5", "-1-downstream"),
            ("latency 5", "latency 6", "-0-downstream +0-downstream"),
            ("latency 5", "refuse", "down -0-downstream"),
            ("latency 5", "latency 5, refuse", "down"),
            ("refuse, latency 5", "", "-1-downstream up"),
            ("refuse", "latency 5", "+0-downstream up"),
            ("", "refuse, reset", "down +1-downstream"),
        ] {
            let mut hand = Hand::new("r");
            let mut held = up();
            for (set, wanted) in [(before, None), (after, Some(wanted))] {
                let wish = hand.wish(&steps(set));
                let calls = hand.calls(&held, &wish);
                if let Some(wanted) = wanted {
                    assert_eq!(shown(&calls), wanted, "{before} -> {after}");
                }
                calls.iter().for_each(|call| hand.calls_now(call));
                held = carried_out(held, &calls);
                assert_eq!(hand.verify(&held, &wish), Ok(()), "{before} -> {after}");
                assert_eq!((hand.calls(&held, &wish), hand.holds_down()), (vec![], wish.down), "{before} -> {after}");
                assert_eq!(hand.strangers(&held), ["slow (latency)"]);
            }
        }
    }

    #[test]
    fn a_server_that_differs_is_told_from_one_that_does_not() {
        let mut hand = Hand::new("r");
        let wish = hand.wish(&steps("refuse, blackhole"));
        let calls = hand.calls(&up(), &wish);
        calls.iter().for_each(|call| hand.calls_now(call));
        let whole = carried_out(up(), &calls);
        let but = |change: &dyn Fn(&mut Held)| {
            let mut held = whole.clone();
            change(&mut held);
            held
        };
        for (held, says) in [
            (but(&|held| held.enabled = true), "the proxy is still enabled"),
            (but(&|held| drop(held.toxics.remove(2))), "stormwake-r-1-downstream is not there"),
            (
                but(&|held| held.toxics[1].toxic.as_mut().unwrap().toxicity = 0.5),
                "stormwake-r-1-upstream is not what was asked for",
            ),
            (but(&|held| held.toxics[1].toxic = None), "is not what was asked for"),
            (
                but(&|held| held.toxics.push(HeldToxic { name: "stormwake-r-9-x".into(), ..up().toxics[0].clone() })),
                "stormwake-r-9-x is still there",
            ),
        ] {
            let difference = hand.verify(&held, &wish).unwrap_err();
            assert!(difference.contains(says), "{difference}");
        }
        let near = but(&|held| held.toxics[1].toxic.as_mut().unwrap().toxicity = f64::from(1.0_f32));
        assert_eq!(hand.verify(&near, &wish), Ok(()));
    }

    #[test]
    fn what_others_did_is_left_to_them() {
        let mut hand = Hand::new("r");
        let (nothing, down) = (Wish::default(), Held { enabled: false, ..up() });
        assert_eq!(hand.calls(&down, &nothing), [], "we have not disabled it");
        assert!(hand.verify(&down, &nothing).unwrap_err().contains("somebody else"));
        let refuse = hand.wish(&steps("refuse"));
        assert!(hand.verify(&down, &refuse).unwrap_err().contains("somebody else"));
        let other_run = HeldToxic { name: "stormwake-s-0-upstream".into(), ..up().toxics[0].clone() };
        let held = Held { toxics: vec![other_run], ..up() };
        assert_eq!((hand.calls(&held, &nothing), held.marked()), (vec![], vec!["stormwake-s-0-upstream"]));
        assert_eq!(hand.verify(&held, &nothing), Ok(()));
    }

    /// A call that failed may have been carried out: it is undone where the server says so, and named where nobody knows.
    #[test]
    fn a_call_that_may_have_been_carried_out_is_undone() {
        let mut hand = Hand::new("r");
        hand.calls_now(&Call::Enable(false));
        let nothing = Wish::default();
        assert_eq!(hand.calls(&up(), &nothing), []);
        let down = Held { enabled: false, ..up() };
        assert_eq!(hand.calls(&down, &nothing), [Call::Enable(true)]);
        assert!(hand.verify(&down, &nothing).unwrap_err().contains("still disabled"));
        let wish = hand.wish(&steps("refuse, hang"));
        hand.calls(&up(), &wish).iter().for_each(|call| hand.calls_now(call));
        assert_eq!(shown(&hand.by_hand()), "-1-downstream up");
        assert_eq!(hand.verify(&up(), &nothing), Ok(()));
        assert_eq!(hand.by_hand(), []);
        assert!(Hand::new("r").having_taken_down(true).holds_down());
    }
}
