//! The URL of a target: scheme, host, port, path. No more of a URL means anything here.

use crate::config::{Node, Problems, Read, Shape, TimeScale, read_text};
use std::fmt;

/// How a target is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    /// `http` or `https`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port where a URL names none.
    pub const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A parsed `http://` or `https://` URL, without user and fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetUrl {
    /// How it is spoken to.
    pub scheme: Scheme,
    /// A name in lower case, or an address (IPv6 without its brackets).
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query; begins with `/`.
    pub path: String,
}

impl TargetUrl {
    /// Host and port as in a `Host` header: without the port where it is the scheme's own.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.scheme.port() { host } else { format!("{host}:{}", self.port) }
    }

    /// Whether the host is loopback by its spelling alone: `localhost`, or an address of loopback.
    pub fn is_loopback(&self) -> bool {
        let local = self.host == "localhost" || self.host.ends_with(".localhost");
        local || self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
    }

    /// Reads a URL.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it, and how one is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shown: String = text.chars().take(100).collect();
        if let Some(bad) = text.chars().find(|c| !c.is_ascii_graphic()) {
            let hint = if bad.is_ascii() { "percent-encode it" } else { "write hosts in punycode and percent-encode paths" };
            return Err(format!("`{shown}` is not a URL: it holds {bad:?}; {hint}"));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| no_scheme(&shown))?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(format!("`{shown}`: only http:// and https:// are spoken")),
        };
        if text.contains('#') {
            return Err(format!("`{shown}`: a fragment (`#…`) is never sent; remove it"));
        }
        let split = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(split);
        if authority.contains('@') {
            return Err("a URL here holds no user or password: send them in `headers`, `from_env` or `from_file`".to_string());
        }
        let (host, port) = split_authority(authority, &shown)?;
        let path = if path.starts_with('/') { path.to_string() } else { format!("/{path}") };
        Ok(Self { scheme, host: host.to_ascii_lowercase(), port: port.unwrap_or(scheme.port()), path })
    }
}

fn no_scheme(shown: &str) -> String {
    if shown.contains("//") {
        format!("`{shown}` is not a URL: write it like `http://127.0.0.1:8080/path`")
    } else {
        format!("`{shown}` has no scheme: write `http://{shown}`")
    }
}

fn split_authority<'a>(authority: &'a str, shown: &str) -> Result<(&'a str, Option<u16>), String> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or_else(|| format!("`{shown}`: `[` without its `]`"))?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(format!("`{shown}`: `{host}` is not an IPv6 address"));
            }
            match after.strip_prefix(':') {
                None if after.is_empty() => (host, None),
                None => return Err(format!("`{shown}`: expected a port or a path after `]`")),
                port => (host, port),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return Err(format!("`{shown}` names no host: write it like `http://127.0.0.1:8080/path`"));
    }
    if !host.contains(':') {
        check_host(host).map_err(|message| format!("`{shown}`: {message}"))?;
    }
    let port = match port {
        None => None,
        Some(port) => match port.parse::<u16>() {
            Ok(port) if port > 0 => Some(port),
            _ => return Err(format!("`{shown}`: `{port}` is not a port: expected 1 to 65535")),
        },
    };
    Ok((host, port))
}

/// Whether a text can name a host: letters, digits, `-` and `_` in parts joined by dots.
pub(super) fn check_host(host: &str) -> Result<(), String> {
    let sound = |part: &str| {
        (1..=63).contains(&part.len())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            && !part.starts_with('-')
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.len() > 253 || !host.split('.').all(sound) {
        return Err(format!("`{host}` is not a host: expected a name such as `api.example.com`, or an address"));
    }
    let numeric = host.split('.').all(|part| part.chars().all(|c| c.is_ascii_digit()));
    if numeric && host.parse::<std::net::Ipv4Addr>().is_err() {
        return Err(format!("`{host}` is not an IPv4 address: expected four numbers from 0 to 255"));
    }
    Ok(())
}

impl fmt::Display for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.word(), self.authority(), self.path)
    }
}

impl Read for TargetUrl {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        read_text(node, problems, Self::parse)
    }
    fn shape() -> Shape {
        Shape::Text { what: "a URL", pattern: "^[Hh][Tt][Tt][Pp][Ss]?://[^@#\\s]+$", examples: &["http://127.0.0.1:8080/charge"] }
    }

    fn rescale(&mut self, _by: TimeScale) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_read_and_write() {
        for (text, host, port, path, shown) in [
            ("http://127.0.0.1:8080/charge", "127.0.0.1", 8080, "/charge", "http://127.0.0.1:8080/charge"),
            ("HTTP://Example.com", "example.com", 80, "/", "http://example.com/"),
            ("https://a-b.example.:8443/x?y=1", "a-b.example.", 8443, "/x?y=1", "https://a-b.example.:8443/x?y=1"),
            ("http://[::1]:9/", "::1", 9, "/", "http://[::1]:9/"),
            ("http://[::1]", "::1", 80, "/", "http://[::1]/"),
            ("http://h?q", "h", 80, "/?q", "http://h/?q"),
        ] {
            let url = TargetUrl::parse(text).unwrap();
            assert_eq!((url.host.as_str(), url.port, url.path.as_str()), (host, port, path), "{text}");
            assert_eq!(url.to_string(), shown);
        }
    }

    #[test]
    fn wrong_urls_say_why() {
        for (text, want) in [
            ("localhost:8080", "has no scheme: write `http://localhost:8080`"),
            ("ftp://x/", "only http:// and https://"),
            ("http://", "names no host"),
            ("http://:80/", "names no host"),
            ("http://u:p@h/", "no user or password"),
            ("http://h/#a", "fragment"),
            ("http://h:0/", "not a port"),
            ("http://h:70000/", "not a port"),
            ("http://h:/", "not a port"),
            ("http://h x/", "holds ' '"),
            ("http://bücher/", "punycode"),
            ("http://[::1/", "without its `]`"),
            ("http://[zz]/", "not an IPv6 address"),
            ("http://[::1]8/x:1", "after `]`"),
            ("http://256.1.1.1/", "not an IPv4 address"),
            ("http://a..b/", "not a host"),
            ("//h/", "write it like"),
        ] {
            let error = TargetUrl::parse(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn loopback_by_spelling() {
        for (text, is) in
            [("http://localhost/", true), ("http://127.9.9.9/", true), ("http://[::1]/", true), ("http://h/", false)]
        {
            assert_eq!(TargetUrl::parse(text).unwrap().is_loopback(), is, "{text}");
        }
    }
}
