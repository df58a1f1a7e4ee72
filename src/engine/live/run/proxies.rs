//! The proxies of a run: the one between clients and target, and those that the plan puts behind a service. One timeline moves the faults of all.

use super::RunError;
use crate::engine::live::certificates::{Authority, CertificateError};
use crate::engine::live::clock::{Clock, LiveClock};
use crate::engine::live::guard::{Allowed, Dialler};
use crate::engine::live::proxy::{ClientTls, Entrance, Protocol, Proxy, ProxyError, ProxySetup, Resolve, Tap, Upstream};
use crate::engine::shared::WINDOW;
use crate::fault::{Active, Origin, Timeline};
use crate::metrics::{LimitReached, TapRecord};
use crate::plan::proxy::{Bodyless, ProxyConfig, Spoken};
use crate::plan::{Plan, TlsBack, TlsFront};
use crate::time::{Span, Timestamp};
use std::sync::Arc;
use tracing::info;

/// Every proxy of a run.
pub struct Proxies {
    /// The one between clients and target.
    pub main: Arc<Proxy>,
    /// Those of the plan that are ours, in its order.
    named: Vec<Named>,
}

/// A proxy of the plan.
struct Named {
    /// As steps say it, [`Step::on`](crate::fault::Step::on).
    number: u16,
    name: String,
    proxy: Arc<Proxy>,
}

impl Proxies {
    /// Opens the plan's own, each before its upstream. Those that speak TLS share an authority, which is written where the plan says, before anything is
    /// sent; what is worth saying of that is returned too.
    ///
    /// # Errors
    /// A port that is taken; an authority that cannot be written.
    pub fn open(
        main: Arc<Proxy>,
        plan: &Plan,
        upstreams: Vec<Upstream>,
        timeline: &Timeline,
        shards: usize,
        clock: &Arc<LiveClock>,
    ) -> Result<(Self, Vec<String>), RunError> {
        let (mut named, mut notes) = (Vec::new(), Vec::new());
        let authority = plan.own_proxies().any(|(.., config)| config.tls.is_some()).then(|| Authority::new(clock.wall()));
        let authority = authority.transpose()?;
        for ((number, name, config), upstream) in plan.own_proxies().zip(upstreams) {
            let setup = setup(config, upstream, timeline, shards, clock.clone());
            let listen = config.listen.value.0;
            let mut proxy = Proxy::bind(setup).map_err(|ProxyError::Listen(source)| RunError::Listen {
                name: name.to_string(),
                listen,
                source,
            })?;
            if let Some((front, authority)) = config.tls.as_ref().zip(authority.as_ref()) {
                proxy = proxy.with_tls(encrypted(front, authority)?);
                notes.extend(told_of(name, config, front));
            }
            info!(proxy = ?name, %listen, tls = config.tls.is_some(), "a proxy of the plan listens");
            let repeats = &config.repeats;
            let tap = Tap::new(WINDOW, repeats.within, repeats.bodyless == Bodyless::Path);
            named.push(Named { number, name: name.to_string(), proxy: Arc::new(proxy.with_tap(tap)) });
        }
        Ok((Self { main, named }, notes))
    }

    /// The plan's own, for the shards to serve.
    pub fn named(&self) -> Vec<Arc<Proxy>> {
        self.named.iter().map(|named| named.proxy.clone()).collect()
    }

    /// Puts in force, at each, what acts there.
    pub fn apply(&self, active: &Active) {
        self.main.apply(active.at_proxy(0));
        self.named.iter().for_each(|named| named.proxy.apply(active.at_proxy(named.number)));
    }

    /// Removes every fault; whether nothing is in force any more.
    pub fn clear(&self) -> bool {
        // Every one of them, whatever became of those before.
        self.all().map(|proxy| proxy.clear()).fold(true, |all, cleared| all & cleared)
    }

    /// Waits until all of them have carried out what is in force. False if that took longer than `within`.
    pub async fn settled(&self, within: Span) -> bool {
        let each = async {
            let mut all = true;
            for proxy in self.all() {
                all &= proxy.settled(within.to_std()).await;
            }
            all
        };
        tokio::time::timeout(within.to_std(), each).await.unwrap_or(false)
    }

    /// Bounds that were reached, each as a sentence.
    pub fn notices(&self) -> Vec<String> {
        let named = self.named.iter().flat_map(|Named { name, proxy, .. }| {
            let told = move |notice| format!("at {name}: {notice}");
            proxy.notices().into_iter().map(told)
        });
        self.main.notices().into_iter().chain(named).collect()
    }

    /// The bounds of the plan's own that were reached.
    pub fn limits(&self, taps: &[TapRecord]) -> Vec<LimitReached> {
        let proxies =
            self.named.iter().flat_map(|Named { name, proxy, .. }| proxy.limits().map(|(limit, count)| (name, limit, count)));
        let forgotten = taps.iter().map(|tap| (&tap.name, "requests remembered", tap.forgotten));
        let reached = proxies.chain(forgotten).filter(|(.., count)| *count > 0);
        reached.map(|(name, limit, count)| LimitReached { limit: format!("{name}: {limit}"), count }).collect()
    }

    /// What the taps have counted up to the end of a run.
    pub fn taps(&self, ended: Timestamp) -> Vec<TapRecord> {
        self.named.iter().filter_map(|Named { name, proxy, .. }| Some(proxy.tap()?.record(name, ended))).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Proxy>> {
        std::iter::once(&self.main).chain(self.named.iter().map(|named| &named.proxy))
    }
}

/// How a proxy speaks TLS to its clients. Writes the authority where it is asked to.
fn encrypted(front: &TlsFront, authority: &Authority) -> Result<ClientTls, CertificateError> {
    let names: Vec<String> = front.names.iter().map(|name| name.value.clone()).collect();
    let tls = ClientTls::new(&authority.certify(&names)?)?;
    front.ca_file.iter().try_for_each(|path| authority.write(path))?;
    Ok(tls)
}

/// What is said of a proxy that speaks TLS.
fn told_of(name: &str, config: &ProxyConfig, front: &TlsFront) -> Option<String> {
    let path = front.ca_file.as_ref()?;
    Some(format!("{name} is at {} for this run: its certificate is trusted by who trusts {path}", config.address()))
}

fn setup(config: &ProxyConfig, upstream: Upstream, timeline: &Timeline, shards: usize, clock: Arc<LiveClock>) -> ProxySetup {
    ProxySetup {
        nothing: timeline.nothing(),
        entrances: vec![Entrance { origin: Origin::from(0), listen: Some(config.listen.value.0) }],
        protocol: match config.protocol {
            Spoken::Http => Protocol::Http,
            Spoken::Tcp => Protocol::Tcp,
        },
        shards,
        upstream,
        clock,
    }
}

/// Where the plan's own proxies lead.
pub struct Upstreams {
    /// Of those that are ours, in the order of the plan.
    pub all: Vec<Upstream>,
    /// One for each at which nothing answers.
    pub warnings: Vec<String>,
}

/// Looks up where the plan's own proxies lead, each guarded like the target. Blocks.
///
/// # Errors
/// A refusal, or an unknown host; certificates that cannot be read.
pub fn upstreams(plan: &Plan, allowed: &Allowed, clock: &Arc<LiveClock>) -> Result<Upstreams, RunError> {
    let (mut all, mut warnings) = (Vec::new(), Vec::new());
    for (_, name, config) in plan.own_proxies() {
        let url = &config.upstream.value.0;
        let (dialler, warning) = Dialler::new(url, allowed.clone(), clock.clone() as Arc<dyn Clock>)?;
        let dial: Resolve = Arc::new(move || dialler.dial().map_err(|error| error.to_string()));
        let usual = TlsBack { ca_file: plan.target.ca_file.clone(), ..TlsBack::default() };
        let back = config.upstream_tls.as_ref().map_or(usual, |back| back.value.clone());
        let upstream = Upstream::from_url(url, dial, &back)?;
        all.push(if config.sees_requests() { upstream } else { upstream.of_bytes() });
        warnings.extend(warning.map(|warning| format!("at {name}: {warning}")));
    }
    Ok(Upstreams { all, warnings })
}
