//! The proxies of a plan beside the one between clients and target: each stands between a service of yours and what that service calls, so that a
//! fault can strike there, and so that what passes can be counted.
//!
//! Owns what is written of them. What is counted is [`metrics::tap`](crate::metrics::tap)'s; the sockets are the live engine's.

use super::tls::{TlsBack, TlsFront};
use super::url::TargetUrl;
use crate::config::{At, Node, Problems, Read, Shape, TimeScale, read_text};
use crate::time::Span;
use crate::{keyword, record};
use std::net::SocketAddr;

/// What `on` calls the proxy between clients and target.
pub const MAIN: &str = "target";

/// An address of loopback to listen on: `127.0.0.1:9001`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(pub SocketAddr);

impl Listen {
    /// Reads an address.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shown: String = text.chars().take(80).collect();
        let spelled = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        let address: SocketAddr = spelled.as_deref().unwrap_or(text).parse().map_err(|_| {
            format!("`{shown}` is not an address to listen on: expected one of loopback and a port, such as `127.0.0.1:9001`")
        })?;
        if !address.ip().to_canonical().is_loopback() {
            return Err(format!(
                "`{shown}` is not of loopback: nothing here listens to other machines; write `127.0.0.1:{}`",
                address.port()
            ));
        }
        if address.port() == 0 {
            return Err(format!("`{shown}` names no port, and the service must know it: such as `127.0.0.1:9001`"));
        }
        Ok(Self(address))
    }
}

impl Read for Listen {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, Self::parse)
    }
    fn shape() -> Shape {
        Shape::Text { what: "an address of loopback to listen on", pattern: r"^\S+:[0-9]+$", examples: &["127.0.0.1:9001"] }
    }
    fn rescale(&mut self, _by: TimeScale) {}
}

/// Where requests go on: `127.0.0.1:9000`, `api.staging.internal:443`, or a URL without a path where it is to be spoken to in TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamUrl(pub TargetUrl);

impl UpstreamUrl {
    /// Reads a host and a port, or a URL.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shown: String = text.chars().take(80).collect();
        let bare = !text.contains("://");
        let url = TargetUrl::parse(&if bare { format!("http://{text}") } else { text.to_string() })?;
        if url.path != "/" || text.ends_with('/') {
            return Err(format!("`{shown}` has a path, and requests keep their own: write `{}`", url.authority()));
        }
        let has_port =
            text.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && port.chars().all(|c| c.is_ascii_digit()));
        if bare && !has_port {
            return Err(format!("`{shown}` names no port: such as `{}:9000`", url.host));
        }
        Ok(Self(url))
    }
}

impl Read for UpstreamUrl {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, Self::parse)
    }
    fn shape() -> Shape {
        Shape::Text {
            what: "a host and a port, or a URL without a path",
            pattern: r"^\S+$",
            examples: &["127.0.0.1:9000", "https://provider.staging.internal"],
        }
    }
    fn rescale(&mut self, _by: TimeScale) {}
}

keyword! {
    /// What a proxy understands of what it relays.
    pub enum Spoken {
        /// HTTP/1.1: every request is judged, and counted, by itself.
        http => Http,
        /// Bytes: faults of connections and of bytes alone, and connections are all that is counted.
        tcp => Tcp,
    }
}

keyword! {
    /// What a request without `Idempotency-Key` and without body is told by.
    pub enum Bodyless {
        /// By nothing: nobody can say whether it is a repeat.
        unknown => Unknown,
        /// By its method and its path, query included.
        path => Path,
    }
}

record! {
    /// Which requests at a tap are repeats of earlier ones: those with the same method, path and `Idempotency-Key`, or the same body where they have no key.
    pub struct Repeats {
        /// How long after the last of its kind a request is a repeat.
        within: Span = Span::from_secs(60),
        /// What a request without `Idempotency-Key` and without body is told by.
        bodyless: Bodyless = Bodyless::Unknown,
    }
}

impl Default for Repeats {
    fn default() -> Self {
        Self { within: Span::from_secs(60), bodyless: Bodyless::Unknown }
    }
}

record! {
    /// A proxy between a service of yours and what it calls: point the service at `listen` while the plan runs. Or one that a Toxiproxy has there,
    /// by `toxiproxy` and `name`: it carries out the faults `on` it, counts nothing, and what comes to our own proxy while one acts is its evidence.
    pub struct RawProxy {
        /// Where it listens: an address of loopback.
        listen: Option<At<Listen>>,
        /// Where requests go on. Guarded like the target: loopback, or what `target.allow` names, with `--approve`.
        upstream: Option<At<UpstreamUrl>>,
        /// What is spoken there; `http` where nothing is said.
        protocol: Option<Spoken>,
        /// Speaks TLS to the service, with a certificate that is made for the run; plain where nothing is said.
        tls: Option<TlsFront>,
        /// How an `https` upstream is spoken to; where nothing is said the system's certificates are trusted, and those of `target.ca_file`.
        upstream_tls: Option<At<TlsBack>>,
        /// Which requests are repeats: retries of the service.
        repeats: Option<Repeats>,
        /// A Toxiproxy's control API, in the place of a proxy of ours: scheme, host and port.
        toxiproxy: Option<At<TargetUrl>>,
        /// The Toxiproxy's proxy.
        name: Option<At<String>>,
    } => |proxy: &RawProxy| {
        let ours = [
            ("listen", proxy.listen.is_some()),
            ("upstream", proxy.upstream.is_some()),
            ("protocol", proxy.protocol.is_some()),
            ("tls", proxy.tls.is_some()),
            ("upstream_tls", proxy.upstream_tls.is_some()),
            ("repeats", proxy.repeats.is_some()),
        ];
        let given = ours.iter().find(|(_, given)| *given).map(|(key, _)| key);
        match (&proxy.toxiproxy, &proxy.name, given) {
            (Some(_), Some(_), None) => Ok(()),
            (Some(_), _, Some(key)) => Err(format!("`{key}` is of a proxy of ours, and a Toxiproxy has its own: keep that, or `toxiproxy` and `name`")),
            (Some(_), None, None) => Err("`name` is missing: which of the Toxiproxy's proxies, as `curl URL/proxies` lists them".to_string()),
            (None, Some(_), _) => Err("`name` is of a Toxiproxy's proxy: leave it out, or give `toxiproxy` too".to_string()),
            (None, None, _) if proxy.listen.is_some() && proxy.upstream.is_some() => Ok(()),
            (None, None, _) => Err("a proxy needs `listen` and `upstream`; or `toxiproxy` and `name`, where a Toxiproxy has it".to_string()),
        }
    }
}

/// A proxy of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxyConfig {
    /// Where it listens.
    pub listen: At<Listen>,
    /// Where requests go on.
    pub upstream: At<UpstreamUrl>,
    /// What is spoken there.
    pub protocol: Spoken,
    /// How TLS is spoken to its clients; none where it is not.
    pub tls: Option<TlsFront>,
    /// How an `https` upstream is spoken to, where that is said.
    pub upstream_tls: Option<At<TlsBack>>,
    /// Which requests are repeats.
    pub repeats: Repeats,
}

impl RawProxy {
    /// The same as a proxy of ours; none where a Toxiproxy has it.
    pub(super) fn ours(&self) -> Option<ProxyConfig> {
        let Self { listen, upstream, protocol, tls, upstream_tls, repeats, .. } = self.clone();
        let (protocol, repeats) = (protocol.unwrap_or(Spoken::Http), repeats.unwrap_or_default());
        Some(ProxyConfig { listen: listen?, upstream: upstream?, protocol, tls, upstream_tls, repeats })
    }
}

impl ProxyConfig {
    /// Whether it sees requests, and not bytes alone.
    pub fn sees_requests(&self) -> bool {
        self.protocol == Spoken::Http
    }

    /// Its address as the service calls it: with a scheme where it speaks TLS.
    pub fn address(&self) -> String {
        let scheme = if self.tls.is_some() { "https://" } else { "" };
        format!("{scheme}{}", self.listen.value.0)
    }
}

/// A proxy of a plan, and its name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedProxy {
    /// Its name; steps say `on: NAME`.
    pub name: String,
    /// What it is; none where a Toxiproxy has it, of which the plan's `external` tells.
    pub config: Option<ProxyConfig>,
}

impl super::Plan {
    /// The name of the proxy at which a step acts; none for the one between clients and target.
    pub fn proxy_of(&self, on: u16) -> Option<&str> {
        self.proxies.get(usize::from(on).checked_sub(1)?).map(|proxy| proxy.name.as_str())
    }

    /// Those of its proxies that are ours: the number of each, as steps say it, its name, and what it is.
    pub fn own_proxies(&self) -> impl Iterator<Item = (u16, &str, &ProxyConfig)> {
        (1..).zip(&self.proxies).filter_map(|(number, proxy)| Some((number, proxy.name.as_str(), proxy.config.as_ref()?)))
    }

    /// Why no simulator can run the plan, where that is so: it has a part in it that only real services play.
    pub fn live_only(&self) -> Option<String> {
        let step = self.timeline.iter().find_map(|step| Some((&step.name, self.proxy_of(step.on)?)));
        let judged = self.recovery.iter().find_map(|recovery| recovery.at.as_ref()).map(|at| at.value.as_str());
        let gate = self.gates.iter().find_map(|gate| gate.at.as_deref());
        let what = match (step, judged, gate) {
            (Some((step, on)), ..) => format!("`{step}` strikes at the proxy `{on}`"),
            (None, Some(at), _) => format!("the recovery is judged at the proxy `{at}`"),
            (None, None, Some(at)) => format!("a gate looks at the proxy `{at}`"),
            (None, None, None) => return None,
        };
        Some(format!(
            "{what}, behind a service that no simulator has: run the plan live (`stormwake run`), or take that out of it"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_loopback_and_have_a_port() {
        for text in ["127.0.0.1:9001", "localhost:9001", "127.8.8.8:1", "[::1]:9001"] {
            assert!(Listen::parse(text).is_ok(), "{text}");
        }
        for (text, says) in [
            ("0.0.0.0:9001", "127.0.0.1:9001"),
            ("192.0.2.1:9001", "127.0.0.1:9001"),
            ("127.0.0.1:0", "names no port"),
            ("127.0.0.1", "such as `127.0.0.1:9001`"),
            ("provider:9001", "expected one of loopback"),
        ] {
            assert!(Listen::parse(text).unwrap_err().contains(says), "{text}: {:?}", Listen::parse(text));
        }
    }

    #[test]
    fn an_upstream_is_a_host_and_a_port_or_a_url() {
        let read = |text| UpstreamUrl::parse(text).map(|url| (url.0.scheme.word(), url.0.host, url.0.port));
        assert_eq!(read("127.0.0.1:9000"), Ok(("http", "127.0.0.1".into(), 9000)));
        assert_eq!(read("[::1]:9000"), Ok(("http", "::1".into(), 9000)));
        assert_eq!(read("Provider.internal:443"), Ok(("http", "provider.internal".into(), 443)));
        assert_eq!(read("https://provider.internal"), Ok(("https", "provider.internal".into(), 443)));
        for (text, says) in [
            ("127.0.0.1", "names no port"),
            ("127.0.0.1:9000/charge", "has a path"),
            ("https://provider/", "has a path"),
            ("provider:http", "not a port"),
        ] {
            assert!(read(text).unwrap_err().contains(says), "{text}: {:?}", read(text));
        }
    }
}
