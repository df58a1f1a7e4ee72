//! What a run has put into one proxy of a server, and how to get it to where it should be.
//!
//! Somebody else's toxics and faults are never touched, and a proxy that somebody else has disabled is never enabled. What is ours is known by
//! its name, `stormwake-RUN-STEP-STREAM` of a toxic and `stormwake-RUN-STEP` of a fault, and that a proxy is down by our doing is remembered from before the call that may have done it.
//!
//! # Order of the calls
//!
//! No state that nobody asked for is to act in between: a proxy goes down before its toxics change, and comes up after. Toxics go before others
//! come. Steps that refuse hold the proxy down together: it comes up when the last of them ends.

use super::super::{Stream, Toxic};
use super::{Demand, Remote, Server, demand};
use std::collections::BTreeMap;

/// What the names of all toxics and faults begin with that any run of ours has made.
pub const MARK: &str = "stormwake-";

/// What a server does to traffic.
#[derive(Clone, Debug, PartialEq)]
pub enum Harm {
    /// A Toxiproxy: a toxic.
    Toxic(Toxic),
    /// A `stormwake proxy`: a fault, in JSON without spaces.
    Fault(String),
}

/// A toxic or a fault of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Ours {
    /// Its name.
    pub name: String,
    /// What it is.
    pub harm: Harm,
}

/// What a proxy should be and have, of ours.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wish {
    /// Whether it should be down.
    pub down: bool,
    /// The toxics or faults that it should have beside those of others.
    pub harms: Vec<Ours>,
}

impl Wish {
    /// Whether nothing is wished for.
    pub fn is_nothing(&self) -> bool {
        !self.down && self.harms.is_empty()
    }
}

/// A toxic or a fault that a server has.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldHarm {
    /// Its name.
    pub name: String,
    /// Its type, as the server calls it.
    pub kind: String,
    /// What it is; none where that is nothing that we know.
    pub harm: Option<Harm>,
    /// What it has touched; none where the server does not count.
    pub touched: Option<u64>,
}

/// What a proxy is and has, as the server says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// Whether it is up.
    pub enabled: bool,
    /// Where it listens.
    pub listen: String,
    /// Whether it knows bytes alone, and no requests; true only where the server says so.
    pub of_bytes: bool,
    /// All of its toxics and faults.
    pub harms: Vec<HeldHarm>,
}

impl Held {
    /// The names of those that some run of ours has made.
    pub fn marked(&self) -> Vec<&str> {
        self.harms.iter().map(|harm| harm.name.as_str()).filter(|name| name.starts_with(MARK)).collect()
    }
}

/// A call to the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Has it come up, or go down.
    Enable(bool),
    /// Adds a toxic or a fault.
    Add(Ours),
    /// Removes the one of this name.
    Remove(String),
}

/// A run's hand in one proxy of a server.
#[derive(Clone, Debug)]
pub struct Hand {
    prefix: String,
    server: Server,
    /// Whether it is down by our doing, or may be.
    down: bool,
    /// The names of those that are there by our doing, or may be.
    placed: Vec<String>,
    /// What each of ours has touched, as the server said last.
    touched: BTreeMap<String, u64>,
}

impl Hand {
    /// The hand of a run that has done nothing yet; `run` tells it from all other runs.
    pub fn new(run: &str, server: Server) -> Self {
        Self { prefix: format!("{MARK}{run}-"), server, down: false, placed: Vec::new(), touched: BTreeMap::new() }
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
        for Remote { name, fault, text, .. } in acting {
            if self.server == Server::Stormwake {
                wish.harms.push(Ours { name: self.name_of(name), harm: Harm::Fault(text.clone()) });
                continue;
            }
            match demand(fault) {
                Ok(Demand::Down) => wish.down = true,
                Ok(Demand::Toxics(toxics)) => wish.harms.extend(toxics.into_iter().map(|toxic| self.named(name, toxic))),
                // Refused when the plan was checked.
                Err(_) => {}
            }
        }
        wish
    }

    fn named(&self, step: &str, toxic: Toxic) -> Ours {
        Ours { name: format!("{}-{}", self.name_of(step), word(toxic.stream)), harm: Harm::Toxic(toxic) }
    }

    fn name_of(&self, step: &str) -> String {
        format!("{}{step}", self.prefix)
    }

    /// Takes down what the server says that ours have touched.
    pub fn saw(&mut self, held: &Held) {
        let counted = held.harms.iter().filter_map(|there| Some((there.name.clone(), there.touched?)));
        let ours: Vec<_> = counted.filter(|(name, _)| self.owns(name)).collect();
        self.touched.extend(ours);
    }

    /// The same of one that has gone.
    pub fn counted(&mut self, name: &str, touched: u64) {
        self.touched.insert(name.to_string(), touched);
    }

    /// What a step has touched, as far as the server has said.
    pub fn touched(&self, step: &str) -> Option<u64> {
        self.touched.get(&self.name_of(step)).copied()
    }

    /// What is to be called, in this order, so that the proxy is what is wished for.
    pub fn calls(&self, held: &Held, wish: &Wish) -> Vec<Call> {
        let falls = (wish.down && held.enabled).then_some(Call::Enable(false));
        let rises = (!wish.down && !held.enabled && self.down).then_some(Call::Enable(true));
        let wanted = |there: &&HeldHarm| wish.harms.iter().any(|ours| is(there, ours));
        let surplus = held.harms.iter().filter(|there| self.owns(&there.name) && !wanted(there));
        let surplus = surplus.map(|there| Call::Remove(there.name.clone()));
        let missing = wish.harms.iter().filter(|ours| !held.harms.iter().any(|there| is(there, ours)));
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
        self.placed = wish.harms.iter().map(|ours| ours.name.clone()).collect();
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
        let missing = wish.harms.iter().filter_map(|ours| match held.harms.iter().find(|there| there.name == ours.name) {
            None => Some(format!("the {} {} is not there", self.word(), ours.name)),
            Some(there) if !is(there, ours) => Some(format!("the {} {} is not what was asked for", self.word(), ours.name)),
            Some(_) => None,
        });
        let wanted = |name: &str| wish.harms.iter().any(|ours| ours.name == name);
        let surplus = held.harms.iter().filter(|there| self.owns(&there.name) && !wanted(&there.name));
        let surplus = surplus.map(|there| format!("the {} {} is still there", self.word(), there.name));
        state.into_iter().chain(missing).chain(surplus).collect()
    }

    /// The toxics and faults that are not this run's, in words.
    pub fn strangers(&self, held: &Held) -> Vec<String> {
        let strange = held.harms.iter().filter(|there| !self.owns(&there.name));
        strange.map(|there| format!("{} ({})", there.name, there.kind)).collect()
    }

    /// What somebody has to call who cleans up by hand: for all that this run has asked for and not seen to be gone.
    pub fn by_hand(&self) -> Vec<Call> {
        let harms = self.placed.iter().map(|name| Call::Remove(name.clone()));
        harms.chain(self.down.then_some(Call::Enable(true))).collect()
    }

    const fn word(&self) -> &'static str {
        match self.server {
            Server::Toxiproxy => "toxic",
            Server::Stormwake => "fault",
        }
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
fn is(there: &HeldHarm, ours: &Ours) -> bool {
    let same = |harm: &Harm| match (harm, &ours.harm) {
        (Harm::Toxic(there), Harm::Toxic(ours)) => {
            (there.stream, &there.kind) == (ours.stream, &ours.kind) && there.toxicity as f32 == ours.toxicity as f32
        }
        (there, ours) => there == ours,
    };
    there.name == ours.name && there.harm.as_ref().is_some_and(same)
}

#[cfg(test)]
mod tests {
    use super::super::super::timeline::tests::fault;
    use super::*;

    /// Steps by their faults, each named after its place: `0`, `1` …
    fn steps(faults: &str) -> Vec<Remote> {
        let of = |(step, text): (usize, &str)| Remote {
            step,
            name: step.to_string(),
            fault: fault(text),
            text: format!("{{\"fault\":\"{text}\"}}"),
            of_requests: false,
            ends: false,
        };
        faults.split(", ").filter(|text| !text.is_empty()).enumerate().map(of).collect()
    }

    fn set_toxicity(held: &mut Held, toxicity: f64) {
        let Some(Harm::Toxic(toxic)) = &mut held.harms[1].harm else { panic!("it is one of ours") };
        toxic.toxicity = toxicity;
    }

    #[test]
    fn a_stormwake_proxy_has_the_faults_themselves_and_counts_them() {
        let mut hand = Hand::new("r", Server::Stormwake);
        let wish = hand.wish(&steps("refuse, status 503"));
        let calls = hand.calls(&up(), &wish);
        assert_eq!(shown(&calls), "+0 +1", "none of them takes the proxy down");
        calls.iter().for_each(|call| hand.calls_now(call));
        let mut held = carried_out(up(), &calls);
        held.harms[2].touched = Some(7);
        hand.saw(&held);
        assert_eq!((hand.touched("0"), hand.touched("1"), hand.verify(&held, &wish)), (None, Some(7), Ok(())));
        held.harms[1].harm = Some(Harm::Fault("{}".into()));
        assert!(hand.check(&held, &wish).unwrap_err().contains("the fault stormwake-r-0 is not what was asked for"));
        hand.counted("stormwake-r-1", 9);
        assert_eq!((hand.touched("1"), shown(&hand.by_hand())), (Some(9), "-0 -1".into()));
    }

    /// A server that carries out calls.
    fn carried_out(mut held: Held, calls: &[Call]) -> Held {
        for call in calls {
            match call {
                Call::Enable(enabled) => held.enabled = *enabled,
                Call::Add(Ours { name, harm }) => {
                    held.harms.push(HeldHarm { name: name.clone(), kind: "x".into(), harm: Some(harm.clone()), touched: None });
                }
                Call::Remove(name) => held.harms.retain(|there| there.name != *name),
            }
        }
        held
    }

    fn up() -> Held {
        let slow = HeldHarm { name: "slow".into(), kind: "latency".into(), harm: None, touched: None };
        Held { enabled: true, listen: "127.0.0.1:1".into(), of_bytes: false, harms: vec![slow] }
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
            let mut hand = Hand::new("r", Server::Toxiproxy);
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
        let mut hand = Hand::new("r", Server::Toxiproxy);
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
            (but(&|held| drop(held.harms.remove(2))), "stormwake-r-1-downstream is not there"),
            (but(&|held| set_toxicity(held, 0.5)), "stormwake-r-1-upstream is not what was asked for"),
            (but(&|held| held.harms[1].harm = None), "is not what was asked for"),
            (
                but(&|held| held.harms.push(HeldHarm { name: "stormwake-r-9-x".into(), ..up().harms[0].clone() })),
                "stormwake-r-9-x is still there",
            ),
        ] {
            let difference = hand.verify(&held, &wish).unwrap_err();
            assert!(difference.contains(says), "{difference}");
        }
        let near = but(&|held| set_toxicity(held, f64::from(1.0_f32)));
        assert_eq!(hand.verify(&near, &wish), Ok(()));
    }

    #[test]
    fn what_others_did_is_left_to_them() {
        let mut hand = Hand::new("r", Server::Toxiproxy);
        let (nothing, down) = (Wish::default(), Held { enabled: false, ..up() });
        assert_eq!(hand.calls(&down, &nothing), [], "we have not disabled it");
        assert!(hand.verify(&down, &nothing).unwrap_err().contains("somebody else"));
        let refuse = hand.wish(&steps("refuse"));
        assert!(hand.verify(&down, &refuse).unwrap_err().contains("somebody else"));
        let other_run = HeldHarm { name: "stormwake-s-0-upstream".into(), ..up().harms[0].clone() };
        let held = Held { harms: vec![other_run], ..up() };
        assert_eq!((hand.calls(&held, &nothing), held.marked()), (vec![], vec!["stormwake-s-0-upstream"]));
        assert_eq!(hand.verify(&held, &nothing), Ok(()));
    }

    /// A call that failed may have been carried out: it is undone where the server says so, and named where nobody knows.
    #[test]
    fn a_call_that_may_have_been_carried_out_is_undone() {
        let mut hand = Hand::new("r", Server::Toxiproxy);
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
        assert!(Hand::new("r", Server::Toxiproxy).having_taken_down(true).holds_down());
    }
}
