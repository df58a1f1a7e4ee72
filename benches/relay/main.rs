//! The proxy against HAProxy, nginx and no proxy at all, side by side in one run.
//!
//! wrk drives nginx directly, through HAProxy, and through `stormwake proxy`, in alternating rounds; what is printed are medians of ratios within a round, and
//! the proxy's own processor time for each request. Needs Debian's `wrk`, `nginx` and `haproxy`; says so and ends where one is missing.
//! `cargo bench --bench relay -- --gate` ends with 1 where a target is missed; `--rounds N` and `--seconds N` make it longer.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock, and waits for processes to listen")]

#[path = "../common/mod.rs"]
mod common;
mod peers;

use common::{median, say};
use peers::{Idle, Peer, Peers, Wrk};

/// Connections at once.
const CONNECTIONS: usize = 32;

/// A way from wrk to nginx, and what was measured on it, round by round.
struct Way<'a> {
    name: &'static str,
    addr: &'a str,
    /// The process in between.
    peer: Option<&'a Peer>,
    rates: Vec<f64>,
    p99: Vec<f64>,
    /// Microseconds of a processor for each request.
    cost: Vec<f64>,
}

impl<'a> Way<'a> {
    fn new(name: &'static str, addr: &'a str, peer: Option<&'a Peer>) -> Self {
        Self { name, addr, peer, rates: Vec::new(), p99: Vec::new(), cost: Vec::new() }
    }

    fn round(&mut self, wrk: &Wrk) {
        let before = self.peer.map(Peer::processor_seconds);
        let load = wrk.run(self.addr);
        let used = self.peer.zip(before).map_or(0.0, |(peer, before)| peer.processor_seconds() - before);
        self.rates.push(load.rate);
        self.p99.push(load.p99_ms);
        self.cost.push(1e6 * used / load.requests.max(1.0));
    }

    /// The median over the rounds of this way's figure divided by the other's.
    fn against(&self, other: &Self, figure: impl Fn(&Self) -> &Vec<f64>) -> f64 {
        median(figure(self).iter().zip(figure(other)).map(|(mine, theirs)| mine / theirs).collect())
    }
}

/// A figure, and the bound that it is held to.
struct Held {
    what: String,
    value: f64,
    bound: f64,
    /// Whether it must not be above the bound; else not below.
    at_most: bool,
}

impl Held {
    fn holds(&self) -> bool {
        if self.at_most { self.value <= self.bound } else { self.value >= self.bound }
    }

    fn print(&self) {
        let Self { what, value, bound, at_most } = self;
        let (verdict, sense) = (if self.holds() { "met" } else { "MISSED" }, if *at_most { "at most" } else { "at least" });
        say(&format!("{what:<66} {value:>8.2}   {sense} {bound:<6} {verdict}"));
    }
}

fn main() {
    let options = match peers::Options::from_args() {
        Ok(options) => options,
        Err(why) => return say(&why),
    };
    let peers = match Peers::start() {
        Ok(peers) => peers,
        Err(why) => return say(&format!("nothing measured: {why}")),
    };
    let mut held = small(&peers, &options);
    held.extend(large(&peers, &options));
    held.extend(fresh(&peers, &options));
    drop(peers);
    // Others, for what those have freed would be used again and hide what a connection takes.
    match Peers::start() {
        Ok(peers) => held.extend(idle(&peers)),
        Err(why) => return say(&format!("no memory measured: {why}")),
    }
    say("");
    held.iter().for_each(Held::print);
    if options.gate && held.iter().any(|figure| !figure.holds()) {
        std::process::exit(1);
    }
}

/// Runs every way in turn, round after round, and prints what was measured.
fn rounds(title: &str, ways: &mut [Way<'_>], wrk: &Wrk, rounds: usize) {
    for round in 0..rounds {
        // To and fro, so that a neighbour who comes or goes is on nobody's side.
        match round % 2 {
            0 => ways.iter_mut().for_each(|way| way.round(wrk)),
            _ => ways.iter_mut().rev().for_each(|way| way.round(wrk)),
        }
    }
    say(&format!("\n{title}: {rounds} rounds of {} s, medians", wrk.seconds));
    say("way                                requests/s   of direct   p99 ms   us of a processor a request");
    let direct = &ways[0];
    for way in ways.iter() {
        let (rate, p99, cost) = (median(way.rates.clone()), median(way.p99.clone()), median(way.cost.clone()));
        let share = way.against(direct, |way| &way.rates);
        say(&format!("{:<34} {rate:>10.0} {share:>11.2} {p99:>8.2} {cost:>10.1}", way.name));
    }
}

fn ways(peers: &Peers) -> [Way<'_>; 7] {
    [
        Way::new("direct", &peers.nginx_addr, None),
        Way::new("HAProxy, tcp", &peers.haproxy_tcp, Some(&peers.haproxy)),
        Way::new("stormwake, tcp", &peers.plain, Some(&peers.stormwake)),
        Way::new("stormwake, tcp, four faults", &peers.faulty, Some(&peers.stormwake)),
        Way::new("HAProxy, http", &peers.haproxy_http, Some(&peers.haproxy)),
        Way::new("nginx as a proxy", &peers.nginx_proxy, None),
        Way::new("stormwake, http", &peers.http, Some(&peers.stormwake)),
    ]
}

fn small(peers: &Peers, options: &peers::Options) -> Vec<Held> {
    let mut ways = ways(peers);
    let wrk = Wrk { path: "/1k", connections: CONNECTIONS, seconds: options.seconds, close: false };
    rounds("keep-alive, 1 KiB, 32 connections", &mut ways, &wrk, options.rounds);
    let [direct, haproxy, _, faulty, haproxy_http, _, http] = &ways;
    let rate = |way: &Way<'_>, other: &Way<'_>| way.against(other, |way| &way.rates);
    let added: Vec<f64> = faulty.p99.iter().zip(&direct.p99).map(|(ours, direct)| ours - direct).collect();
    vec![
        at_least("tcp with four faults, requests/s of HAProxy's", rate(faulty, haproxy), 0.9),
        at_most("tcp with four faults, processor a request of HAProxy's", faulty.against(haproxy, |way| &way.cost), 1.1),
        at_least("http, requests/s of HAProxy's in HTTP mode", rate(http, haproxy_http), 0.85),
        at_most("tcp with four faults, added p99 at 32 connections, ms", median(added), 2.0),
        at_least("tcp with four faults, of direct (Toxiproxy: 0.36)", rate(faulty, direct), 0.36),
        at_most("tcp with four faults, us a request (Toxiproxy: 22.6)", median(faulty.cost.clone()), 22.6),
    ]
}

fn large(peers: &Peers, options: &peers::Options) -> Vec<Held> {
    let mut ways = ways(peers);
    let wrk = Wrk { path: "/1m", connections: CONNECTIONS, seconds: options.seconds, close: false };
    rounds("keep-alive, 1 MiB, 32 connections", &mut ways, &wrk, options.rounds);
    let [_, haproxy, _, faulty, ..] = &ways;
    vec![at_least("tcp with four faults, 1 MiB bodies, of HAProxy's", faulty.against(haproxy, |way| &way.rates), 0.9)]
}

fn fresh(peers: &Peers, options: &peers::Options) -> Vec<Held> {
    let mut ways = ways(peers);
    let wrk = Wrk { path: "/1k", connections: CONNECTIONS, seconds: options.seconds, close: true };
    rounds("one connection a request, 1 KiB, 32 at once", &mut ways, &wrk, options.rounds);
    let [direct, _, _, faulty, ..] = &ways;
    vec![at_least("one connection a request, of direct (Toxiproxy: 0.16)", faulty.against(direct, |way| &way.rates), 0.4)]
}

fn idle(peers: &Peers) -> Vec<Held> {
    say("\nmemory of an idle connection, after a request on it, KB of the process");
    let [haproxy, faulty, http] = [
        Idle::through(&peers.haproxy_tcp, &peers.haproxy),
        Idle::through(&peers.faulty, &peers.stormwake),
        Idle::through(&peers.http, &peers.stormwake),
    ]
    .each_ref()
    .map(|idle| idle.kilobytes_each);
    say(&format!("HAProxy, tcp {haproxy:.1}   stormwake, tcp with four faults {faulty:.1}   http {http:.1}"));
    vec![at_most("memory of an idle connection, KB (Toxiproxy: 70)", faulty, 6.0)]
}

fn at_least(what: &str, value: f64, bound: f64) -> Held {
    Held { what: what.into(), value, bound, at_most: false }
}

fn at_most(what: &str, value: f64, bound: f64) -> Held {
    Held { what: what.into(), value, bound, at_most: true }
}
