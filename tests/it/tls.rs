//! TLS on both sides of a proxy, of a plan's and of `stormwake proxy`: real clients, a real upstream, and a certificate that has expired.

use crate::plane::Plane;
use crate::support::{Folder, Server, shared, stormwake, with_evidence};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use stormwake::engine::live::certificates::Authority;

const LONG: Duration = Duration::from_secs(5);
const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A message whose body is no longer than its head says; none where the peer went.
fn read_message(stream: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let (mut all, mut piece) = (Vec::new(), [0; 1024]);
    loop {
        if let Some(end) = all.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
            if all.len() >= end + 4 + length {
                return Ok(all);
            }
        }
        match stream.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => all.extend_from_slice(&piece[..n]),
        }
    }
}

/// An upstream that speaks TLS alone, for these names; who trusts the file trusts it.
fn upstream(names: &[&str], file: &Path) -> Server {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock").as_secs();
    let authority = Authority::new(i64::try_from(now).expect("a time")).expect("randomness");
    authority.write(file.to_str().expect("UTF-8")).expect("a file");
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    let good = authority.certify(&names).expect("names").good;
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().expect("versions");
    let config = builder.with_no_client_auth().with_cert_resolver(Arc::new(SingleCertAndKey::from(good)));
    let config = Arc::new(config);
    Server::start(move |stream| {
        let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).expect("settings"), stream);
        while read_message(&mut stream).is_ok() && stream.write_all(OK).is_ok() {}
    })
}

/// A call of a client that trusts what is in a file: the status, or what TLS says against it.
fn call(at: SocketAddr, name: &'static str, trusted: &Path) -> Result<u16, String> {
    let text = |error: std::io::Error| error.to_string();
    let pem = std::fs::read(trusted).map_err(text)?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).expect("PEM")).expect("an authority");
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().expect("versions");
    let config = Arc::new(builder.with_root_certificates(roots).with_no_client_auth());
    let stream = TcpStream::connect_timeout(&at, LONG).map_err(text)?;
    stream.set_read_timeout(Some(LONG)).map_err(text)?;
    let client = ClientConnection::new(config, ServerName::try_from(name).expect("a name")).expect("settings");
    exchange(&mut StreamOwned::new(client, stream)).map_err(text)
}

fn exchange(stream: &mut (impl Read + Write)) -> std::io::Result<u16> {
    stream.write_all(b"POST /charge HTTP/1.1\r\nhost: provider\r\ncontent-length: 2\r\n\r\n{}")?;
    let answer = read_message(stream)?;
    Ok(String::from_utf8_lossy(&answer).get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0))
}

fn addr(server: &Server) -> SocketAddr {
    server.url().trim_start_matches("http://").trim_end_matches('/').parse().expect("an address")
}

const PLAN: &str = "\
version: 1
name: secret
target: { url: 'SERVICE', method: POST, body: '{}' }
proxies:
  provider:
    listen: LISTEN
    upstream: https://UPSTREAM
    tls: { names: [provider.test], ca_file: run.pem }
    upstream_tls: { ca_file: upstream.pem, server_name: upstream.test }
fleets: { app: { clients: 20, policy: { attempts: 1, timeout: 3s }, load: { constant: { rate: 15/s } } } }
steady_state: { for: 3s }
timeline: [{ at: 4s, for: 2s, name: expired, on: provider, fault: { certificate: { kind: expired } } }]
recovery: { within: 4s, hold: 2s, span: 2s, operations: 20, require: { p99: '<= 2s' } }
length: 13s
";

#[test]
fn a_service_meets_an_expired_certificate_of_its_provider_and_recovers() {
    let mut seen = None;
    let said = with_evidence(|| {
        let folder = Folder::new("tls-plan");
        let provider = upstream(&["upstream.test"], &folder.path().join("upstream.pem"));
        let listen = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
        let (trusted, failures) = (folder.path().join("run.pem"), Arc::<Mutex<Vec<String>>>::default());
        let good = Arc::<AtomicU64>::default();
        let (books, served) = (failures.clone(), good.clone());
        let service = Server::start(move |mut stream| {
            while read_message(&mut stream).is_ok() {
                let status = match call(listen, "provider.test", &trusted) {
                    Ok(status) => {
                        served.fetch_add(1, Ordering::SeqCst);
                        status
                    }
                    Err(why) => {
                        books.lock().unwrap_or_else(PoisonError::into_inner).push(why);
                        502
                    }
                };
                let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        });
        let text = PLAN.replace("SERVICE", &service.url()).replace("LISTEN", &listen.to_string());
        let text = text.replace("UPSTREAM", &addr(&provider).to_string());
        let file = folder.write("secret.yaml", text);
        let path = file.to_str().expect("UTF-8");
        let checked = stormwake(&folder, &["check", path]);
        assert!(checked.out.contains(&format!("https://{listen} (trusted by who trusts run.pem")), "{checked:#?}");
        let said = stormwake(&folder, &["run", path, "--json"]);
        seen = Some((failures, good.load(Ordering::SeqCst)));
        said
    });
    let (failures, good) = seen.expect("it was run");
    let result = said.result();
    assert_eq!((said.code, &result["recovery"]["class"]), (Some(0), &"RECOVERED".into()), "{said:#?}");
    let failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
    // Calls that were under way when the run ended, and its proxy with it, come last.
    let expired = failures.iter().take_while(|why| why.contains("xpired")).count();
    let cut = &failures[expired..];
    assert!(expired >= 20 && cut.len() <= 5 && !cut.iter().any(|why| why.contains("certificate")), "{failures:?}");
    let touched = result["faults"][0]["touched"].as_u64().expect("a count");
    assert!(touched.abs_diff(expired as u64) <= 2, "{touched} handshakes were struck, {expired} failed");
    let proxy = &result["proxies"][0];
    let answered = proxy["statuses"]["200"].as_u64().expect("a count");
    assert!(answered.abs_diff(good) <= 5 && proxy["requests"].as_u64().is_some_and(|all| all.abs_diff(good) <= 5), "{proxy}");
}

/// Where a proxy listens, by what was said of it.
fn listen(plane: &Plane, name: &str) -> SocketAddr {
    let line = plane.said.iter().find_map(|line| line.strip_prefix(&format!("proxy {name}: "))).expect("it is told");
    line.split(' ').next().and_then(|listen| listen.parse().ok()).expect("an address")
}

#[test]
fn a_proxy_that_stands_alone_speaks_tls_both_ways() {
    let _machine = shared();
    let folder = Folder::new("tls-proxy");
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_str().expect("UTF-8").to_string();
    let behind = upstream(&[], &path("upstream.pem"));
    let to = format!("https://{}", addr(&behind));
    let (ca, up) = (text("ca.pem"), text("upstream.pem"));
    let flags = [
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        &to,
        "--tls",
        "--tls-name",
        "provider.test",
        "--tls-ca",
        &ca,
        "--upstream-ca",
        &up,
    ];
    let plane = Plane::start(&flags);
    assert!(plane.said.iter().any(|line| line.ends_with("(http in TLS)")), "{:?}", plane.said);
    for name in ["provider.test", "localhost"] {
        assert_eq!(call(listen(&plane, "proxy-1"), name, &path("ca.pem")), Ok(200), "{name}");
    }
    assert!(call(listen(&plane, "proxy-1"), "other.test", &path("ca.pem")).is_err());

    let named = upstream(&["upstream.test"], &path("named.pem"));
    let file = format!(
        "- {{ name: front, upstream: '{}', tls: {{ ca_file: '{}' }} }}\n\
         - {{ name: back, upstream: 'tls://{}', upstream_tls: {{ ca_file: '{}', server_name: upstream.test }} }}\n\
         - {{ name: wary, upstream: 'https://{}' }}\n",
        addr(&behind),
        text("front.pem"),
        addr(&named),
        text("named.pem"),
        addr(&named)
    );
    let plane = Plane::start(&["--config", folder.write("proxies.yaml", file).to_str().expect("UTF-8")]);
    // Bytes in TLS: the upstream's own goes through, inside that of the proxy.
    let back = || TcpStream::connect(listen(&plane, "back")).expect("it listens");
    assert_eq!(exchange(&mut back()).expect("an answer"), 200, "it speaks TLS in its client's place");
    let mut wary = TcpStream::connect(listen(&plane, "wary")).expect("it listens");
    assert!(exchange(&mut wary).is_err(), "nobody has said to trust that upstream");
    let refused = call(listen(&plane, "front"), "localhost", &path("front.pem")).map(drop);
    assert!(
        refused.is_err_and(|why| !why.contains("certificate")),
        "its own handshake is good, and the upstream speaks another tongue"
    );
}

#[test]
fn what_makes_no_sense_in_tls_is_refused_with_its_place() {
    let folder = Folder::new("tls-refused");
    for (file, says) in [
        (
            "- { name: a, upstream: 'h:1', upstream_tls: { server_name: x.test } }",
            &["proxies.yaml:1:", "upstream_tls without TLS"] as &[&str],
        ),
        (
            "- { name: a, upstream: 'http://127.0.0.1:1', tls: { names: ['a b'] } }",
            &["proxies.yaml:1:", "no certificate can name"],
        ),
        (
            "- { name: a, upstream: 'https://127.0.0.1:1', upstream_tls: { ca_file: nowhere.pem } }",
            &["proxies.yaml:1:", "nowhere.pem"],
        ),
    ] {
        let path = folder.write("proxies.yaml", file);
        let said = stormwake(&folder, &["proxy", "--api", "none", "--config", path.to_str().expect("UTF-8")]);
        assert_eq!(said.code, Some(2), "{file}: {said:#?}");
        assert!(says.iter().all(|part| said.err.contains(part)), "{file}: {said:#?}");
    }
    let said = stormwake(&folder, &["proxy", "--api", "none", "--tls", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, Some(2), "{said:#?}");
}
