//! TLS at a proxy: towards its clients, with certificates made for the run, and towards its upstream.

use crate::config::At;
use crate::record;

/// The most names beside those of this machine that a certificate is made for.
pub const MOST_NAMES: usize = 64;

record! {
    /// The proxy speaks TLS to its clients, with a certificate that is made for the run: for `localhost`, the addresses of loopback, and these
    /// names. Clients must trust the authority that has signed it; both exist for one run only.
    pub struct TlsFront {
        /// Names or addresses beside those of this machine that clients may call the proxy by.
        names: Vec<At<String>> = Vec::new(),
        /// Where the authority's certificate is written, in PEM, for clients to trust. Its key is written nowhere.
        ca_file: Option<String>,
    } => |front: &TlsFront| {
        if front.names.len() > MOST_NAMES {
            return Err(format!("`names`: {} of them; {MOST_NAMES} at most", front.names.len()));
        }
        if front.ca_file.as_ref().is_some_and(String::is_empty) {
            return Err("`ca_file` is empty: give the path of a file, or leave it out".to_string());
        }
        match front.names.iter().find(|name| !is_name(&name.value)) {
            Some(bad) => Err(format!("`names` holds `{}`, which no certificate can name: expected a host name such as provider.test, or an address", bad.value)),
            None => Ok(()),
        }
    }
}

record! {
    /// How an `https` upstream of a proxy is spoken to.
    pub struct TlsBack {
        /// A file of PEM certificates to trust beside the system's.
        ca_file: Option<String>,
        /// The name that the upstream must prove; the host of its URL where nothing is said.
        server_name: Option<String>,
        /// DANGEROUS: takes any certificate of anybody, expired or made up. Whoever stands in between can read and change everything.
        insecure_accept_any_certificate: bool = false,
    } => |back: &TlsBack| match (&back.ca_file, &back.server_name) {
        (Some(_), _) if back.insecure_accept_any_certificate => {
            Err("`ca_file` says whom to trust, `insecure_accept_any_certificate` that everybody is: keep one".to_string())
        }
        (_, Some(name)) if !is_name(name) => Err(format!("`server_name: {name}` is no name that a certificate can hold")),
        _ => Ok(()),
    }
}

impl Default for TlsBack {
    /// The system's certificates, for the host of the URL.
    fn default() -> Self {
        Self { ca_file: None, server_name: None, insecure_accept_any_certificate: false }
    }
}

/// Whether a certificate can be made for it: an address, or labels of letters, digits and hyphens, of which the first may be `*`.
fn is_name(text: &str) -> bool {
    if text.parse::<std::net::IpAddr>().is_ok() {
        return true;
    }
    let label = |label: &str| {
        let sound = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        sound && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    };
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.len() <= 253 && !all_digits && text.strip_prefix("*.").unwrap_or(text).split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_names_hosts_and_addresses() {
        for name in ["localhost", "a.b-c.test", "*.staging.internal", "xn--bcher-kva.example", "127.0.0.1", "::1", "snake_case"] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(64);
        for name in ["", "-a", "a-", "a..b", "a.*", "*", "1.2.3", "b ücher", "a/b", &long, "[::1]"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
