//! The proxies of a run: the one between clients and target, and those that the plan puts behind a service. One timeline moves the faults of all.

use super::RunError;
use crate::engine::live::clock::{Clock, LiveClock};
use crate::engine::live::guard::{Allowed, Dialler};
use crate::engine::live::proxy::{Entrance, Protocol, Proxy, ProxyError, ProxySetup, Tap, Upstream};
use crate::engine::live::tls;
use crate::engine::shared::WINDOW;
use crate::fault::{Active, Origin, Timeline};
use crate::metrics::{LimitReached, TapRecord};
use crate::plan::proxy::{Bodyless, Spoken};
use crate::plan::{NamedProxy, Plan, Scheme};
use crate::time::{Span, Timestamp};
use std::sync::Arc;

/// Every proxy of a run.
pub struct Proxies {
    /// The one between clients and target.
    pub main: Arc<Proxy>,
    /// Those of the plan, in its order, and their names.
    named: Vec<(String, Arc<Proxy>)>,
}

impl Proxies {
    /// Opens the plan's own, each before its upstream.
    ///
    /// # Errors
    /// A port that is taken.
    pub fn open(
        main: Arc<Proxy>,
        plan: &Plan,
        upstreams: Vec<Upstream>,
        timeline: &Timeline,
        shards: usize,
        clock: &Arc<LiveClock>,
    ) -> Result<Self, RunError> {
        let open = |(proxy, upstream): (&NamedProxy, Upstream)| {
            let setup = setup(proxy, upstream, timeline, shards, clock.clone());
            let bound = Proxy::bind(setup).map_err(|ProxyError::Listen(source)| RunError::Listen {
                name: proxy.name.clone(),
                listen: proxy.config.listen.value.0,
                source,
            })?;
            let repeats = &proxy.config.repeats;
            let tap = Tap::new(WINDOW, repeats.within, repeats.bodyless == Bodyless::Path);
            Ok((proxy.name.clone(), Arc::new(bound.with_tap(tap))))
        };
        let named = plan.proxies.iter().zip(upstreams).map(open).collect::<Result<_, RunError>>()?;
        Ok(Self { main, named })
    }

    /// The plan's own, for the shards to serve.
    pub fn named(&self) -> Vec<Arc<Proxy>> {
        self.named.iter().map(|(_, proxy)| proxy.clone()).collect()
    }

    /// Puts in force, at each, what acts there.
    pub fn apply(&self, active: &Active) {
        (0..).zip(self.all()).for_each(|(number, proxy)| proxy.apply(active.at_proxy(number)));
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
        let named = self.named.iter().flat_map(|(name, proxy)| {
            let told = move |notice| format!("at {name}: {notice}");
            proxy.notices().into_iter().map(told)
        });
        self.main.notices().into_iter().chain(named).collect()
    }

    /// The bounds of the plan's own that were reached.
    pub fn limits(&self, taps: &[TapRecord]) -> Vec<LimitReached> {
        let proxies = self.named.iter().flat_map(|(name, proxy)| proxy.limits().map(|(limit, count)| (name, limit, count)));
        let forgotten = taps.iter().map(|tap| (&tap.name, "requests remembered", tap.forgotten));
        let reached = proxies.chain(forgotten).filter(|(.., count)| *count > 0);
        reached.map(|(name, limit, count)| LimitReached { limit: format!("{name}: {limit}"), count }).collect()
    }

    /// What the taps have counted up to the end of a run.
    pub fn taps(&self, ended: Timestamp) -> Vec<TapRecord> {
        self.named.iter().filter_map(|(name, proxy)| Some(proxy.tap()?.record(name, ended))).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Proxy>> {
        std::iter::once(&self.main).chain(self.named.iter().map(|(_, proxy)| proxy))
    }
}

fn setup(
    NamedProxy { config, .. }: &NamedProxy,
    upstream: Upstream,
    timeline: &Timeline,
    shards: usize,
    clock: Arc<LiveClock>,
) -> ProxySetup {
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
    /// In the order of the plan.
    pub all: Vec<Upstream>,
    /// One for each at which nothing answers.
    pub warnings: Vec<String>,
}

/// Looks up where the plan's own proxies lead, each guarded like the target. Blocks.
///
/// # Errors
/// A refusal, or an unknown host.
pub fn upstreams(plan: &Plan, allowed: &Allowed, clock: &Arc<LiveClock>) -> Result<Upstreams, RunError> {
    let (mut all, mut warnings) = (Vec::new(), Vec::new());
    for proxy in &plan.proxies {
        let url = &proxy.config.upstream.value.0;
        let (dialler, warning) = Dialler::new(url, allowed.clone(), clock.clone() as Arc<dyn Clock>)?;
        let mut upstream = Upstream::resolved_by(Arc::new(move || dialler.dial().map_err(|error| error.to_string())));
        if url.scheme == Scheme::Https {
            let (config, name) = tls::client(&url.host, plan.target.ca_file.as_deref())?;
            upstream = upstream.with_tls(config, name);
        }
        all.push(upstream);
        warnings.extend(warning.map(|warning| format!("at {}: {warning}", proxy.name)));
    }
    Ok(Upstreams { all, warnings })
}
