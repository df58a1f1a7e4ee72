//! Addresses as clients write them: where a proxy listens, and where its upstream is. Pure: nothing is looked up here.

use super::refusal::Refusal;
use crate::engine::live::proxy::Protocol;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Where a proxy is to listen; port 0 is any that is free. `exposed` allows for addresses beyond loopback, and then
/// an address without a host is all of this machine's.
///
/// # Errors
/// Why nothing can listen there. `prefix` comes before what the server that this stands in for says of a bad address.
pub fn listen(text: &str, exposed: bool, prefix: &str) -> Result<SocketAddr, Refusal> {
    let said = |error: String| Refusal::new(500, format!("{prefix}{error}")).at(&["listen"]);
    let any = if exposed { IpAddr::from(Ipv6Addr::UNSPECIFIED) } else { IpAddr::from(Ipv4Addr::LOCALHOST) };
    if text.is_empty() {
        return Ok(SocketAddr::new(any, 0));
    }
    let (host, port) = split(text).map_err(said)?;
    let port = port_of(port).map_err(said)?;
    let ip = match host {
        "" => any,
        host if host.eq_ignore_ascii_case("localhost") => Ipv4Addr::LOCALHOST.into(),
        host => host.parse().map_err(|_| {
            let error = format!("listen on an address or localhost: {} is a name", crop(host));
            Refusal::new(400, error).at(&["listen"])
        })?,
    };
    if !exposed && !ip.to_canonical().is_loopback() {
        let error = format!("refused: {ip} is not loopback, and whoever reaches it could use the proxy: start with --expose");
        return Err(Refusal::new(403, error).at(&["listen"]));
    }
    Ok(SocketAddr::new(ip, port))
}

/// An upstream: what is spoken, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// What is spoken to it, where its text says so.
    pub protocol: Option<Protocol>,
    /// Whether that is spoken in TLS.
    pub tls: bool,
    /// A name or an address, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl Destination {
    /// Reads `host:port`, `tcp://host:port` or `http://host:port`; or, for TLS, `tls://host:port` or `https://host:port`.
    ///
    /// # Errors
    /// Why nothing can be reached by that.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let wrong = |error: String| Refusal::new(400, format!("invalid upstream: {error}")).at(&["upstream"]);
        let (protocol, tls, rest) = match text.split_once("://") {
            None => (None, false, text),
            Some((scheme @ ("tcp" | "tls"), rest)) => (Some(Protocol::Tcp), scheme == "tls", rest),
            Some((scheme @ ("http" | "https"), rest)) => {
                (Some(Protocol::Http), scheme == "https", rest.strip_suffix('/').unwrap_or(rest))
            }
            Some((scheme, _)) => {
                let expected = "expected host:port, tcp://, http://, tls:// or https://";
                return Err(wrong(format!("{}:// is not spoken: {expected}", crop(scheme))));
            }
        };
        let (host, port) = split(rest).map_err(wrong)?;
        let port = port_of(port).map_err(wrong)?;
        let sound = !host.is_empty() && host.len() <= 253 && host.chars().all(|c| c.is_ascii_graphic() && !"/?#@".contains(c));
        if !sound || port == 0 {
            return Err(wrong(format!("address {}: expected a host and a port from 1 to 65535", crop(rest))));
        }
        Ok(Self { protocol, tls, host: host.to_string(), port })
    }
}

/// Host and port, as Go's network package parts them.
fn split(text: &str) -> Result<(&str, &str), String> {
    let wrong = |why: &str| Err(format!("address {}: {why}", crop(text)));
    if let Some(rest) = text.strip_prefix('[') {
        let Some((host, after)) = rest.split_once(']') else { return wrong("missing ']' in address") };
        return match after.strip_prefix(':') {
            Some(port) if port.contains(':') => wrong("too many colons in address"),
            Some(port) => Ok((host, port)),
            None => wrong("missing port in address"),
        };
    }
    match text.rsplit_once(':') {
        None => wrong("missing port in address"),
        Some((host, _)) if host.contains(':') => wrong("too many colons in address"),
        Some((host, _)) if host.contains(['[', ']']) => wrong("unexpected '[' in address"),
        Some(parts) => Ok(parts),
    }
}

fn port_of(text: &str) -> Result<u16, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if text.is_empty() {
        return Ok(0);
    }
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("lookup tcp/{}: unknown port", crop(text)));
    }
    text.parse().map_err(|_| format!("address {}: invalid port", crop(text)))
}

fn crop(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_loopback_unless_exposed() {
        for (text, exposed, wanted) in [
            ("127.0.0.1:0", false, "127.0.0.1:0"),
            ("localhost:21007", false, "127.0.0.1:21007"),
            ("", false, "127.0.0.1:0"),
            ("", true, "[::]:0"),
            (":5", false, "127.0.0.1:5"),
            ("[::1]:5", false, "[::1]:5"),
            ("0.0.0.0:5", true, "0.0.0.0:5"),
        ] {
            assert_eq!(listen(text, exposed, "").map(|addr| addr.to_string()), Ok(wanted.into()), "{text}");
        }
        for (text, status, wanted) in [
            ("nonsense", 500, "listen tcp: address nonsense: missing port in address"),
            ("127.0.0.1:99999", 500, "listen tcp: address 99999: invalid port"),
            ("127.0.0.1:abc", 500, "listen tcp: lookup tcp/abc: unknown port"),
            ("127.0.0.1:-", 500, "listen tcp: lookup tcp/-: unknown port"),
            ("::1:80", 500, "listen tcp: address ::1:80: too many colons in address"),
            ("[::1]", 500, "listen tcp: address [::1]: missing port in address"),
            ("[::1", 500, "listen tcp: address [::1: missing ']' in address"),
            ("[::1]:1:2", 500, "listen tcp: address [::1]:1:2: too many colons in address"),
            ("a]:1", 500, "listen tcp: address a]:1: unexpected '[' in address"),
            ("example.com:1", 400, "listen on an address or localhost: example.com is a name"),
            (
                "0.0.0.0:5",
                403,
                "refused: 0.0.0.0 is not loopback, and whoever reaches it could use the proxy: start with --expose",
            ),
        ] {
            let refusal = listen(text, false, "listen tcp: ").unwrap_err();
            assert_eq!((refusal.status, refusal.error.as_str()), (status, wanted), "{text}");
        }
    }

    #[test]
    fn upstreams_say_what_is_spoken_or_do_not() {
        let (http, tcp) = (Some(Protocol::Http), Some(Protocol::Tcp));
        for (text, protocol, tls, host, port) in [
            ("127.0.0.1:1", None, false, "127.0.0.1", 1),
            ("tcp://db:5432", tcp, false, "db", 5432),
            ("http://[::1]:80/", http, false, "::1", 80),
            ("https://api.internal:443", http, true, "api.internal", 443),
            ("tls://db:5433", tcp, true, "db", 5433),
        ] {
            assert_eq!(Destination::parse(text), Ok(Destination { protocol, tls, host: host.into(), port }));
        }
        for (text, part) in [
            ("", "missing port"),
            ("nonsense", "missing port"),
            ("host:0", "from 1 to 65535"),
            (":80", "expected a host"),
            ("h/x:80", "expected a host"),
            ("ftp://h:1", "ftp:// is not spoken"),
            ("http://h", "missing port"),
            ("h:70000", "invalid port"),
        ] {
            let refusal = Destination::parse(text).unwrap_err();
            assert!(refusal.status == 400 && refusal.error.contains(part), "{text}: {refusal:?}");
        }
    }
}
