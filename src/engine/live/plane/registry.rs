//! Which proxies there are, and what may be done to them: decisions without effects.
//!
//! A call becomes a list of [`Wanted`]: proxies as they shall be. Whoever carries them out hands them to
//! [`Registry::commit`] once all of that has worked, and otherwise drops them; so a refused call changes nothing.

use super::address::{self, Destination};
use super::faults::Placed;
use super::json::quoted;
use super::leases::{Hold, LeaseId};
use super::refusal::Refusal;
use super::toxics::{Harm, ToxicInput};
use crate::engine::live::proxy::Protocol;
use crate::fault::Stream;
use crate::plan::{Sees, TlsBack, TlsFront};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// The most proxies at once: each holds a port and a listener per thread.
const MAX_PROXIES: usize = 1_000;
/// The most toxics of a proxy.
const MAX_TOXICS: usize = 100;
/// The longest name, in bytes.
const MAX_NAME: usize = 1_000;

/// A proxy as a client asks for it. What is not said has a default, or is left as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProxyInput {
    /// Its name.
    pub name: Option<String>,
    /// Where it listens.
    pub listen: Option<String>,
    /// Where it sends what it gets.
    pub upstream: Option<String>,
    /// Whether it lets clients in.
    pub enabled: Option<bool>,
    /// What it understands, where the upstream does not say.
    pub protocol: Option<Protocol>,
    /// How it speaks TLS to its clients, where it does.
    pub tls: Option<TlsFront>,
    /// How it speaks TLS to its upstream, where that is said.
    pub upstream_tls: Option<TlsBack>,
    /// Its toxics, where they are said too.
    pub toxics: Vec<ToxicInput>,
}

/// A proxy.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name, which no other has.
    pub name: String,
    /// Where it listens; in a `Wanted` port 0 is still to be resolved.
    pub listen: SocketAddr,
    /// Its upstream as it was written.
    pub upstream: String,
    /// The same as read.
    pub destination: Destination,
    /// What it understands of what it relays.
    pub protocol: Protocol,
    /// How it speaks TLS to its clients; none where it does not.
    pub tls: Option<TlsFront>,
    /// How it speaks TLS to its upstream, where its text asks for that.
    pub upstream_tls: TlsBack,
    /// Whether it lets clients in.
    pub enabled: bool,
    /// Its toxics, in the order in which they came.
    pub toxics: Vec<Harm>,
    /// Its faults, in the order in which they came.
    pub faults: Vec<Placed>,
    /// The lease that holds `enabled`, and what that was before.
    pub hold: Option<Hold<bool>>,
    /// The lease that it goes with.
    pub made_under: Option<LeaseId>,
}

/// A proxy as it shall be.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// What it shall be.
    pub entry: Entry,
    /// Whether it is new, or goes elsewhere, and so needs listeners of its own.
    pub moves: bool,
}

/// The proxies by name.
#[derive(Debug, Default)]
pub struct Registry {
    entries: BTreeMap<String, Entry>,
    /// The number of the next toxic or fault.
    next: usize,
    /// Whether a proxy may listen beyond loopback.
    exposed: bool,
}

impl Entry {
    /// What it sees of its traffic.
    pub fn sees(&self) -> Sees {
        Sees { requests: self.protocol == Protocol::Http, handshakes: self.tls.is_some() }
    }

    /// Its toxics as they act and are shown: those upstream first.
    pub fn harms(&self) -> impl Iterator<Item = &Harm> {
        let of = |direction| self.toxics.iter().filter(move |harm| harm.direction() == direction);
        of(Stream::Upstream).chain(of(Stream::Downstream))
    }

    /// One of them.
    ///
    /// # Errors
    /// Where it has none of that name.
    pub fn toxic(&self, name: &str) -> Result<&Harm, Refusal> {
        self.toxics.iter().find(|harm| harm.name == name).ok_or_else(Refusal::no_toxic)
    }

    /// As an answer shows it.
    pub fn json(&self) -> String {
        format!(
            "{{\"name\":{},\"listen\":\"{}\",\"upstream\":{},\"enabled\":{},\"Logger\":{{}},\"toxics\":{}}}",
            quoted(&self.name),
            self.listen,
            quoted(&self.upstream),
            self.enabled,
            self.toxics_json()
        )
    }

    /// Its toxics as an answer shows them.
    pub fn toxics_json(&self) -> String {
        format!("[{}]", self.harms().map(Harm::json).collect::<Vec<_>>().join(","))
    }
}

impl Registry {
    /// An empty one. `exposed`: proxies may listen beyond loopback.
    pub fn new(exposed: bool) -> Self {
        Self { exposed, ..Self::default() }
    }

    /// All proxies, by name.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// A proxy.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub fn get(&self, name: &str) -> Result<&Entry, Refusal> {
        self.entries.get(name).ok_or_else(Refusal::no_proxy)
    }

    /// A new proxy. Its toxics are not looked at.
    ///
    /// # Errors
    /// What is missing or wrong, or that its name is taken.
    pub fn created(&self, input: &ProxyInput) -> Result<Vec<Wanted>, Refusal> {
        let name = required(input.name.as_ref(), "name")?;
        required(input.upstream.as_ref(), "upstream")?;
        if self.entries.contains_key(name) {
            return Err(Refusal::new(409, "proxy already exists").at(&["name"]));
        }
        self.room(1)?;
        let entry = self.entry(name, input, "listen tcp: ")?;
        Ok(vec![Wanted { entry, moves: true }])
    }

    /// A proxy that is changed; its name and its toxics stay.
    ///
    /// # Errors
    /// Where there is none of that name, or it cannot be so.
    pub fn updated(&self, name: &str, input: &ProxyInput) -> Result<Vec<Wanted>, Refusal> {
        let mut entry = self.get(name)?.clone();
        if let Some(listen) = &input.listen {
            entry.listen = address::listen(listen, self.exposed, "")?;
        }
        if input.upstream.is_some() || input.protocol.is_some() {
            let upstream = input.upstream.clone().unwrap_or_else(|| entry.upstream.clone());
            entry.head_for(required(Some(&upstream), "upstream")?, input.protocol)?;
            entry.fits_its_faults()?;
        }
        entry.enabled = input.enabled.unwrap_or(entry.enabled);
        entry.encrypt(input)?;
        Ok(vec![self.wanted(entry)])
    }

    /// Many proxies, in this order: those that are there stay as they are but for what is said of them.
    ///
    /// # Errors
    /// What is missing or wrong with the first that has anything; `at` begins with its number, from 0.
    pub fn populated(&self, inputs: &[ProxyInput]) -> Result<Vec<Wanted>, Refusal> {
        for (n, input) in inputs.iter().enumerate() {
            let counted = |refusal: Refusal| Refusal { error: format!("{} at proxy {}", refusal.error, n + 1), ..refusal };
            let named = required(input.name.as_ref(), "name");
            let there = named.and_then(|_| required(input.upstream.as_ref(), "upstream"));
            there.map_err(|refusal| counted(refusal).at(&[&n.to_string()]))?;
        }
        let (mut names, mut next) = (BTreeSet::new(), self.next);
        let mut one = |n: usize, input| self.one_of_many(n, input, &mut names, &mut next);
        let all = inputs.iter().enumerate().map(|(n, input)| one(n, input).map_err(|refusal| refusal.at(&[&n.to_string()])));
        let all: Vec<Wanted> = all.collect::<Result<_, _>>()?;
        self.room(names.iter().filter(|name| !self.entries.contains_key(**name)).count())?;
        Ok(all)
    }

    fn one_of_many<'a>(
        &self,
        n: usize,
        input: &'a ProxyInput,
        names: &mut BTreeSet<&'a str>,
        next: &mut usize,
    ) -> Result<Wanted, Refusal> {
        let name = required(input.name.as_ref(), "name")?;
        if !names.insert(name) {
            return Err(Refusal::new(400, format!("proxy {name} is there twice, again at proxy {}", n + 1)).at(&["name"]));
        }
        let mut wanted = self.wanted(self.entry(name, input, "listen tcp: ")?);
        if let Some(there) = self.entries.get(name) {
            (wanted.entry.hold, wanted.entry.made_under) = (there.hold.clone(), there.made_under.clone());
            if !wanted.moves {
                wanted.entry.faults.clone_from(&there.faults);
            }
        }
        match self.entries.get(name) {
            // Nothing said of toxics leaves those that are there.
            Some(there) if !wanted.moves && input.toxics.is_empty() => wanted.entry.toxics.clone_from(&there.toxics),
            _ => wanted.entry.toxics = harms(&input.toxics, next)?,
        }
        Ok(wanted)
    }

    /// A proxy with one more toxic, the last of its list.
    ///
    /// # Errors
    /// Where there is no such proxy, or what is wrong with the toxic.
    pub fn with_toxic(&self, proxy: &str, input: &ToxicInput) -> Result<Vec<Wanted>, Refusal> {
        let mut entry = self.get(proxy)?.clone();
        if entry.toxics.len() >= MAX_TOXICS {
            return Err(too_many_toxics());
        }
        let harm = Harm::new(input, &entry.toxics, self.next)?;
        entry.toxics.push(harm);
        Ok(vec![Wanted { entry, moves: false }])
    }

    /// A proxy with one toxic changed.
    ///
    /// # Errors
    /// Where one of the two is not there, or what is wrong with the change.
    pub fn with_toxic_changed(&self, proxy: &str, toxic: &str, input: &ToxicInput) -> Result<Vec<Wanted>, Refusal> {
        let mut entry = self.get(proxy)?.clone();
        let changed = entry.toxic(toxic)?.with(input, self.next)?;
        entry.toxics.iter_mut().filter(|harm| harm.name == toxic).for_each(|harm| *harm = changed.clone());
        Ok(vec![Wanted { entry, moves: false }])
    }

    /// A proxy without one of its toxics.
    ///
    /// # Errors
    /// Where one of the two is not there.
    pub fn without_toxic(&self, proxy: &str, toxic: &str) -> Result<Vec<Wanted>, Refusal> {
        let mut entry = self.get(proxy)?.clone();
        entry.toxic(toxic)?;
        entry.toxics.retain(|harm| harm.name != toxic);
        Ok(vec![Wanted { entry, moves: false }])
    }

    /// Every proxy enabled, and without toxics and faults.
    pub fn reset(&self) -> Vec<Wanted> {
        let clean = |entry: &Entry| Wanted {
            entry: Entry { enabled: true, toxics: Vec::new(), faults: Vec::new(), ..entry.clone() },
            moves: false,
        };
        self.entries().map(clean).collect()
    }

    /// The number of the next toxic or fault.
    pub fn next_number(&self) -> usize {
        self.next
    }

    /// Takes up what has been carried out.
    pub fn commit(&mut self, entry: Entry) {
        let numbers = entry.toxics.iter().map(|harm| harm.number).chain(entry.faults.iter().map(|fault| fault.number));
        self.next = self.next.max(numbers.map(|number| number + 1).max().unwrap_or(0));
        self.entries.insert(entry.name.clone(), entry);
    }

    /// Forgets a proxy.
    pub fn remove(&mut self, name: &str) {
        self.entries.remove(name);
    }

    /// The proxy that an input describes, without toxics.
    fn entry(&self, name: &str, input: &ProxyInput, prefix: &str) -> Result<Entry, Refusal> {
        if name.len() > MAX_NAME {
            return Err(Refusal::new(400, format!("the name is too long: {MAX_NAME} bytes at most")).at(&["name"]));
        }
        let upstream = required(input.upstream.as_ref(), "upstream")?;
        let listen = address::listen(input.listen.as_deref().unwrap_or_default(), self.exposed, prefix)?;
        let destination = Destination::parse(upstream)?;
        let protocol = spoken(&destination, input.protocol, Protocol::Tcp)?;
        let (name, upstream) = (name.to_string(), upstream.to_string());
        let (enabled, toxics, faults) = (input.enabled.unwrap_or(true), Vec::new(), Vec::new());
        let (tls, upstream_tls, hold, made_under) = (None, TlsBack::default(), None, None);
        let mut entry =
            Entry { name, listen, upstream, destination, protocol, tls, upstream_tls, enabled, toxics, faults, hold, made_under };
        entry.encrypt(input)?;
        Ok(entry)
    }

    /// Whether it needs other listeners than it has.
    fn wanted(&self, entry: Entry) -> Wanted {
        let way = |of: &Entry| (of.listen, of.upstream.clone(), of.protocol, of.tls.clone(), of.upstream_tls.clone());
        let same = |there: &Entry| way(there) == way(&entry);
        let moves = !self.entries.get(&entry.name).is_some_and(same);
        Wanted { entry, moves }
    }

    fn room(&self, more: usize) -> Result<(), Refusal> {
        if self.entries.len() + more <= MAX_PROXIES {
            return Ok(());
        }
        Err(Refusal::new(400, format!("too many proxies: {MAX_PROXIES} at most")))
    }
}

impl Entry {
    /// Sends what it gets elsewhere from now on.
    fn head_for(&mut self, upstream: &str, protocol: Option<Protocol>) -> Result<(), Refusal> {
        self.destination = Destination::parse(upstream)?;
        self.protocol = spoken(&self.destination, protocol, self.protocol)?;
        self.upstream = upstream.to_string();
        Ok(())
    }

    /// Speaks TLS as it is asked to from now on.
    fn encrypt(&mut self, input: &ProxyInput) -> Result<(), Refusal> {
        if input.upstream_tls.is_some() && !self.destination.tls {
            let error = "upstream_tls without TLS to the upstream: write it as https:// or tls://";
            return Err(Refusal::new(400, error).at(&["upstream_tls"]));
        }
        self.tls = input.tls.clone().or(self.tls.take());
        self.upstream_tls = input.upstream_tls.clone().unwrap_or(std::mem::take(&mut self.upstream_tls));
        Ok(())
    }
}

fn required<'a>(value: Option<&'a String>, field: &str) -> Result<&'a str, Refusal> {
    value.map(String::as_str).filter(|value| !value.is_empty()).ok_or_else(|| Refusal::missing(field))
}

/// What is spoken: as the upstream says, else as the field does.
fn spoken(destination: &Destination, said: Option<Protocol>, usual: Protocol) -> Result<Protocol, Refusal> {
    match (destination.protocol, said) {
        (Some(one), Some(other)) if one != other => {
            let error = "protocol and upstream differ: keep one of them";
            Err(Refusal::new(400, error).at(&["protocol"]))
        }
        (one, other) => Ok(one.or(other).unwrap_or(usual)),
    }
}

fn harms(inputs: &[ToxicInput], next: &mut usize) -> Result<Vec<Harm>, Refusal> {
    let mut all = Vec::with_capacity(inputs.len());
    if inputs.len() > MAX_TOXICS {
        return Err(too_many_toxics());
    }
    for (n, input) in inputs.iter().enumerate() {
        all.push(Harm::new(input, &all, *next).map_err(|refusal| refusal.at(&["toxics", &n.to_string()]))?);
        *next += 1;
    }
    Ok(all)
}

fn too_many_toxics() -> Refusal {
    Refusal::new(400, format!("too many toxics: a proxy has {MAX_TOXICS} at most")).at(&["toxics"])
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use super::*;

    fn input(text: &str) -> ProxyInput {
        decode::proxies(format!("[{text}]").as_bytes()).unwrap().remove(0)
    }

    /// A registry in which these have been carried out, the ports as they were asked for.
    fn with(inputs: &[&str]) -> Registry {
        let mut registry = Registry::new(false);
        for text in inputs {
            let wanted = registry.populated(&[input(text)]).unwrap();
            wanted.into_iter().for_each(|wanted| registry.commit(wanted.entry));
        }
        registry
    }

    const A: &str = r#"{"name":"a","listen":"127.0.0.1:5","upstream":"127.0.0.1:1"}"#;

    #[test]
    fn a_proxy_moves_only_where_it_goes_elsewhere() {
        let registry = with(&[A]);
        for (change, moves, enabled) in [
            ("{}", false, true),
            (r#"{"enabled":false,"name":"renamed"}"#, false, false),
            (r#"{"listen":"localhost:5"}"#, false, true),
            (r#"{"listen":"127.0.0.1:6"}"#, true, true),
            (r#"{"upstream":"127.0.0.1:2"}"#, true, true),
            (r#"{"upstream":"http://127.0.0.1:1"}"#, true, true),
            (r#"{"upstream":"https://127.0.0.1:1"}"#, true, true),
        ] {
            let wanted = registry.updated("a", &input(change)).unwrap().remove(0);
            assert_eq!((wanted.moves, wanted.entry.enabled, wanted.entry.name.as_str()), (moves, enabled, "a"), "{change}");
        }
        assert_eq!(registry.updated("b", &input("{}")).unwrap_err(), Refusal::no_proxy());
        assert_eq!(registry.updated("a", &input(r#"{"upstream":""}"#)).unwrap_err(), Refusal::missing("upstream"));
        assert_eq!(registry.created(&input(A)).unwrap_err().status, 409);
    }

    #[test]
    fn a_proxy_speaks_tls_from_when_it_is_asked_to_and_needs_other_listeners_then() {
        let mut registry = with(&[A]);
        let front = |ca_file: &str| Some(TlsFront { names: Vec::new(), ca_file: Some(ca_file.into()) });
        let change = |registry: &Registry, change| registry.updated("a", &change).map(|mut wanted| wanted.remove(0));
        let wanted = change(&registry, ProxyInput { tls: front("a"), ..ProxyInput::default() }).unwrap();
        assert!(wanted.moves && wanted.entry.tls == front("a"));
        registry.commit(wanted.entry);
        let said_nothing = change(&registry, ProxyInput::default()).unwrap();
        assert!(!said_nothing.moves && said_nothing.entry.tls == front("a"));
        let back = Some(TlsBack { insecure_accept_any_certificate: true, ..TlsBack::default() });
        let refused = change(&registry, ProxyInput { upstream_tls: back.clone(), ..ProxyInput::default() }).unwrap_err();
        assert_eq!((refused.status, refused.at), (400, vec!["upstream_tls".to_string()]));
        let upstream = Some("https://127.0.0.1:1".to_string());
        let wanted = change(&registry, ProxyInput { upstream, upstream_tls: back, ..ProxyInput::default() }).unwrap();
        assert!(wanted.moves && wanted.entry.upstream_tls.insecure_accept_any_certificate);
    }

    #[test]
    fn toxics_are_numbered_once_and_shown_upstream_first() {
        let mut registry = with(&[A]);
        for body in [r#"{"type":"noop"}"#, r#"{"type":"noop","stream":"upstream"}"#, r#"{"type":"noop","name":"c"}"#] {
            let wanted = registry.with_toxic("a", &decode::toxic(body.as_bytes()).unwrap()).unwrap();
            wanted.into_iter().for_each(|wanted| registry.commit(wanted.entry));
        }
        let numbers = |registry: &Registry| {
            registry.get("a").unwrap().harms().map(|harm| (harm.name.clone(), harm.number)).collect::<Vec<_>>()
        };
        let named = |name: &str, number| (name.to_string(), number);
        assert_eq!(numbers(&registry), [named("noop_upstream", 1), named("noop_downstream", 0), named("c", 2)]);
        let changed = registry.with_toxic_changed("a", "c", &decode::toxic_change(br#"{"toxicity":0.5}"#).unwrap()).unwrap();
        changed.into_iter().for_each(|wanted| registry.commit(wanted.entry));
        assert_eq!(numbers(&registry)[2], named("c", 3), "a changed toxic is another one");
        let without = registry.without_toxic("a", "noop_upstream").unwrap();
        assert_eq!(without[0].entry.toxics.len(), 2);
        assert_eq!(registry.without_toxic("a", "x").unwrap_err(), Refusal::no_toxic());
        assert!(registry.reset()[0].entry.toxics.is_empty());
    }

    #[test]
    fn what_moves_keeps_its_toxics_and_what_is_populated_anew_does_not() {
        let toxics = r#""toxics":[{"type":"noop"}]"#;
        let registry = with(&[&A.replace('}', &format!(",{toxics}}}"))]);
        let moved = registry.updated("a", &input(r#"{"upstream":"127.0.0.1:2"}"#)).unwrap();
        assert_eq!((moved[0].moves, moved[0].entry.toxics.len()), (true, 1));
        for (text, moves, left) in [
            (A.to_string(), false, 1),
            (A.replace('}', r#","toxics":[]}"#), false, 1),
            (A.replace('}', r#","toxics":[{"type":"noop"},{"type":"noop","name":"b"}]}"#), false, 2),
            (A.replace(":1\"", ":2\""), true, 0),
        ] {
            let wanted = registry.populated(&[input(&text)]).unwrap().remove(0);
            assert_eq!((wanted.moves, wanted.entry.toxics.len()), (moves, left), "{text}");
        }
    }

    #[test]
    fn the_first_wrong_proxy_of_many_is_named() {
        let registry = with(&[A]);
        let b = r#"{"name":"b","upstream":"127.0.0.1:1"}"#;
        for (inputs, status, error) in [
            (vec![b, r#"{"name":"c"}"#], 400, "missing required field: upstream at proxy 2"),
            (vec!["{}"], 400, "missing required field: name at proxy 1"),
            (vec![b, b], 400, "proxy b is there twice, again at proxy 2"),
            (vec![b, r#"{"name":"c","upstream":"x"}"#], 400, "invalid upstream: address x: missing port in address"),
            (vec![r#"{"name":"c","upstream":"h:1","toxics":[{"type":"x"}]}"#], 400, "invalid toxic type"),
        ] {
            let inputs: Vec<ProxyInput> = inputs.into_iter().map(input).collect();
            let refusal = registry.populated(&inputs).unwrap_err();
            assert_eq!((refusal.status, refusal.error.as_str()), (status, error));
        }
        let deep = registry.populated(&[input(r#"{"name":"c","upstream":"h:1","toxics":[{"type":"bandwidth"}]}"#)]).unwrap_err();
        assert_eq!(deep.at, ["0", "toxics", "0", "attributes", "rate"]);
    }

    #[test]
    fn proxies_toxics_and_names_are_bounded() {
        let many: Vec<ProxyInput> = (0..=MAX_PROXIES).map(|n| input(&format!(r#"{{"name":"{n}","upstream":"h:1"}}"#))).collect();
        assert!(Registry::new(false).populated(&many).unwrap_err().error.contains("too many proxies"));
        let toxics: Vec<String> = (0..=MAX_TOXICS).map(|n| format!(r#"{{"type":"noop","name":"{n}"}}"#)).collect();
        let crowded = input(&format!(r#"{{"name":"a","upstream":"h:1","toxics":[{}]}}"#, toxics.join(",")));
        assert!(Registry::new(false).populated(&[crowded]).unwrap_err().error.contains("too many toxics"));
        let long = input(&format!(r#"{{"name":"{}","upstream":"h:1"}}"#, "n".repeat(MAX_NAME + 1)));
        assert!(Registry::new(false).created(&long).unwrap_err().error.contains("too long"));
    }
}
