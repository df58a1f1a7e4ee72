//! The file of `stormwake proxy`: a list of proxies as Toxiproxy's is, in JSON or YAML. Reads its form; what is sound of
//! it is asked where the API asks too, and [`ProxyFile::blame`] finds the place of what is not.

use super::error::{Diagnostics, PlanError};
use super::tls::{TlsBack, TlsFront};
use super::yaml;
use crate::config::{Node, Read, Source, Table, Value};
use crate::{keyword, record};

keyword! {
    /// What a proxy understands of what it relays.
    pub enum Spoken {
        /// HTTP: every request is judged by itself.
        http => Http,
        /// Bytes.
        tcp => Tcp,
    }
}

record! {
    /// A proxy.
    pub struct FileProxy {
        /// Its name.
        name: String,
        /// Where it listens; any free port of loopback where nothing is said.
        listen: String = String::new(),
        /// Where it sends what it gets: `host:port`, or with `tcp://` or `http://` before it; or, in TLS, `tls://` or `https://`.
        upstream: String,
        /// Whether it lets clients in.
        enabled: bool = true,
        /// What it understands, where the upstream does not say.
        protocol: Option<Spoken>,
        /// Speaks TLS to its clients; plain where nothing is said.
        tls: Option<TlsFront>,
        /// How an upstream in TLS is spoken to; where nothing is said the system's certificates are trusted.
        upstream_tls: Option<TlsBack>,
        /// Its toxics.
        toxics: Vec<FileToxic> = Vec::new(),
    }
}

record! {
    /// A toxic.
    pub struct FileToxic {
        /// Its type.
        r#type: String,
        /// Its name; type and stream where nothing is said.
        name: Option<String>,
        /// `upstream` or `downstream`.
        stream: Option<String>,
        /// The share of connections that it strikes, from 0 to 1.
        toxicity: Option<f64>,
        /// What its type reads.
        attributes: Table<u64> = Table::default(),
    }
}

/// A file that has been read.
#[derive(Debug)]
pub struct ProxyFile {
    /// Its proxies.
    pub proxies: Vec<FileProxy>,
    root: Node,
    diagnostics: Diagnostics,
}

/// Reads a file. `file` is what messages call it.
///
/// # Errors
/// Everything that is wrong with its form, in one [`PlanError`].
pub fn proxy_file(file: &str, text: &str) -> Result<ProxyFile, PlanError> {
    let mut diagnostics = Diagnostics { file: file.to_string(), text: text.to_string(), ..Diagnostics::default() };
    let problems = &mut diagnostics.problems;
    let read = yaml::parse(if text.trim().is_empty() { "~" } else { text }, Source::File, problems).and_then(|document| {
        diagnostics.uses = document.uses;
        let root = document.root;
        if !matches!(root.value, Value::List(_)) {
            let message = format!("expected a list of proxies, found {}", root.kind());
            let hint = "write `- { name: db, listen: 127.0.0.1:9001, upstream: 127.0.0.1:5432 }`, one for each";
            problems.error_with_hint(root.place, message, hint);
            return None;
        }
        Vec::<FileProxy>::read(&root, problems).map(|proxies| (proxies, root))
    });
    match read {
        Some((proxies, root)) if !diagnostics.problems.any_error() => Ok(ProxyFile { proxies, root, diagnostics }),
        _ => Err(PlanError::Invalid(Box::new(diagnostics))),
    }
}

impl ProxyFile {
    /// Something that is wrong at a path of keys and of indexes from 0.
    pub fn blame(mut self, path: &[&str], message: &str, hint: Option<&str>) -> PlanError {
        let place = self.root.place_of(path);
        match hint {
            Some(hint) => self.diagnostics.problems.error_with_hint(place, message, hint),
            None => self.diagnostics.problems.error(place, message),
        }
        PlanError::Invalid(Box::new(self.diagnostics))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"[{"name": "db", "listen": "[::1]:9001", "upstream": "localhost:5432", "enabled": true,
        "toxics": [{"type": "latency", "stream": "upstream", "toxicity": 0.5, "attributes": {"latency": 100}}]}]"#;
    const YAML: &str = "\
- name: db
  listen: '[::1]:9001'
  upstream: localhost:5432
  toxics:
    - { type: latency, stream: upstream, toxicity: 0.5, attributes: { latency: 100 } }
";

    #[test]
    fn json_and_yaml_say_the_same() {
        let (json, yaml) = (proxy_file("f", JSON).unwrap(), proxy_file("f", YAML).unwrap());
        let shown = |file: &ProxyFile| {
            let FileProxy { name, listen, upstream, enabled, protocol, toxics, .. } = &file.proxies[0];
            let FileToxic { r#type, stream, attributes, .. } = &toxics[0];
            format!(
                "{name} {listen} {upstream} {enabled} {protocol:?} {} {type} {stream:?} {:?}",
                toxics.len(),
                attributes.get("latency")
            )
        };
        assert_eq!(shown(&json), shown(&yaml));
        let toxic = &json.proxies[0].toxics[0];
        assert_eq!((toxic.toxicity, toxic.attributes.get("latency")), (Some(0.5), Some(&100)));
        assert_eq!(
            proxy_file("f", "- { name: a, upstream: 'h:1', protocol: http }").unwrap().proxies[0].protocol,
            Some(Spoken::Http)
        );
    }

    #[test]
    fn what_is_wrong_is_placed_with_a_remedy() {
        for (text, parts) in [
            ("", &["expected a list of proxies, found nothing", "write `- { name: db"] as &[&str]),
            ("{name: db}", &["f:1:1", "expected a list of proxies, found a map"]),
            ("- { name: db }", &["f:1:3", "`upstream` is missing"]),
            ("- { name: db, upstrem: 'h:1' }", &["unknown key `upstrem`", "did you mean `upstream`?"]),
            ("- { name: a, upstream: b, protocol: htpt }", &["did you mean `http`?"]),
            ("- { name: a, upstream: b, toxics: [{ type: x, attributes: { a: -1 } }] }", &["a whole number", "found `-1`"]),
            ("[", &["f:1"]),
        ] {
            let said = proxy_file("f", text).expect_err(text).to_string();
            assert!(parts.iter().all(|part| said.contains(part)), "{text}: {said}");
        }
        let blamed =
            proxy_file("f", YAML).unwrap().blame(&["0", "toxics", "0", "attributes", "latency"], "too much", Some("less"));
        let said = blamed.to_string();
        assert!(["f:5:80: error: too much", "help: less"].iter().all(|part| said.contains(part)), "{said}");
    }
}
