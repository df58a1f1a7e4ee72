//! `stormwake proxy`: the fault plane alone, until a signal ends it.

use super::check::text_of;
use super::exit::Code;
use super::logging::Verbose;
use crate::config::{At, Place, Table};
use crate::engine::live::plane::api::Api;
use crate::engine::live::plane::{Entry, Json, Plane, PlaneSetup, ProxyInput, Refusal, ToxicInput};
use crate::engine::live::proxy::Protocol;
use crate::engine::live::signal::Signals;
use crate::engine::live::target::raise_file_limit;
use crate::plan::{FileProxy, FileToxic, ProxyFile, Spoken, TlsBack, TlsFront, proxy_file};
use crate::time::Span;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether connections are left.
const LOOK: Duration = Duration::from_millis(10);

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// Where a proxy listens; port 0 takes any that is free. Repeatable: the n-th goes with the n-th `--upstream`.
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    /// Where it sends what it gets: `host:port` or `tcp://host:port` for bytes, `http://host:port` for requests; `tls://` and
    /// `https://` are the same in TLS.
    #[arg(long, value_name = "ADDRESS")]
    upstream: Vec<String>,
    /// Speak TLS to the clients of these proxies, with a certificate that is made now.
    #[arg(long, requires = "listen")]
    tls: bool,
    /// A name beside `localhost` and the addresses of loopback that the certificate is for. Repeatable.
    #[arg(long, value_name = "NAME", requires = "tls")]
    tls_name: Vec<String>,
    /// Write the authority of all certificates there, for clients to trust.
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<String>,
    /// Trust the certificates in this file too, at upstreams in TLS.
    #[arg(long, value_name = "FILE", requires = "upstream")]
    upstream_ca: Option<String>,
    /// Read proxies from a list in JSON (as Toxiproxy's) or YAML; `-` reads it from stdin.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Where the API listens, or `none`.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8474", value_parser = api_address)]
    api: ApiAddress,
    /// Let upstreams be this host, which is not on this machine: a name, `*.name`, or an address. Repeatable.
    #[arg(long, value_name = "HOST")]
    allow: Vec<String>,
    /// Let proxies and the API listen beyond loopback: whoever reaches this machine can use them.
    #[arg(long)]
    expose: bool,
    /// Drives every random choice.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many threads serve; as many as cores where nothing is said.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
    /// How long connections may go on after the first signal.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = Span::parse)]
    drain: Span,
    #[command(flatten)]
    verbose: Verbose,
}

/// An address, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ApiAddress(Option<SocketAddr>);

fn api_address(text: &str) -> Result<ApiAddress, String> {
    match text {
        "none" => Ok(ApiAddress(None)),
        text => match text.replacen("localhost:", "127.0.0.1:", 1).parse() {
            Ok(addr) => Ok(ApiAddress(Some(addr))),
            Err(_) => Err("expected an address and a port, such as 127.0.0.1:8474, or `none`".into()),
        },
    }
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    args.verbose.start();
    match serve(&args) {
        Ok(()) => Code::Pass,
        Err(Ended { code, text }) => {
            say(&text);
            code
        }
    }
}

/// Why the command failed, once nothing is left to say where that is empty.
struct Ended {
    code: Code,
    text: String,
}

fn ended(code: Code, text: impl std::fmt::Display) -> Ended {
    Ended { code, text: format!("stormwake proxy: {text}") }
}

fn serve(args: &Args) -> Result<(), Ended> {
    let mut paired = pairs(&args.listen, &args.upstream).map_err(|text| ended(Code::Usage, text))?;
    paired.iter_mut().for_each(|input| encrypt(input, args));
    let file = args.config.as_deref().map(read).transpose()?;
    let api = address_of_api(args)?;
    if api.is_none() && paired.is_empty() && file.as_ref().is_none_or(|file| file.proxies.is_empty()) {
        return Err(ended(Code::Usage, "nothing to do: give `--listen` and `--upstream`, or `--config`, or an API"));
    }
    raise_file_limit();
    let cores = || std::thread::available_parallelism().map_or(1, usize::from).min(64);
    let shards = args.threads.map_or_else(cores, usize::from);
    let setup = PlaneSetup { shards, seed: args.seed, exposed: args.expose, allowed: args.allow.clone() };
    let plane = Plane::start(setup).map_err(|error| ended(Code::Internal, format!("cannot start threads: {error}")))?;
    let signals = Signals::install().map_err(|error| ended(Code::Internal, format!("cannot listen for signals: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ended(Code::Internal, format!("cannot start a runtime: {error}")))?;
    runtime.block_on(async {
        let mut trusted: Vec<String> = args.tls_ca.iter().cloned().collect();
        trusted.extend(file.iter().flat_map(|file| &file.proxies).filter_map(|proxy| proxy.tls.as_ref()?.ca_file.clone()));
        make(&plane, paired, file).await?;
        publish(&plane, &trusted)?;
        let api = api.map(|addr| Api::start(addr, plane.clone())).transpose();
        let api = api.map_err(|error| ended(Code::Internal, error))?;
        announce(&plane, api.as_ref());
        end(&plane, signals, args.drain).await;
        drop(api);
        Ok(())
    })
}

/// The proxies of the command line.
fn pairs(listen: &[String], upstream: &[String]) -> Result<Vec<ProxyInput>, String> {
    if listen.len() != upstream.len() {
        return Err(format!(
            "{} `--listen` and {} `--upstream`: each needs the other; port 0 listens on any that is free",
            listen.len(),
            upstream.len()
        ));
    }
    let input = |(n, (listen, upstream)): (usize, (&String, &String))| ProxyInput {
        name: Some(format!("proxy-{}", n + 1)),
        listen: Some(listen.clone()),
        upstream: Some(upstream.clone()),
        ..ProxyInput::default()
    };
    Ok(listen.iter().zip(upstream).enumerate().map(input).collect())
}

/// What the command line says of TLS.
fn encrypt(input: &mut ProxyInput, args: &Args) {
    let names = args.tls_name.iter().map(|name| At { value: name.clone(), place: Place::default() }).collect();
    input.tls = args.tls.then_some(TlsFront { names, ca_file: None });
    let in_tls = input.upstream.as_ref().is_some_and(|text| text.starts_with("https://") || text.starts_with("tls://"));
    let trusted = args.upstream_ca.clone().filter(|_| in_tls);
    input.upstream_tls = trusted.map(|ca_file| TlsBack { ca_file: Some(ca_file), ..TlsBack::default() });
}

/// Writes the authority of the certificates wherever that was asked for.
fn publish(plane: &Plane, paths: &[String]) -> Result<(), Ended> {
    for path in paths {
        let written = plane.authority().and_then(|authority| authority.write(path));
        written.map_err(|error| ended(Code::Internal, error))?;
        say(&format!("certificates of proxies are trusted by who trusts {path}"));
    }
    Ok(())
}

fn read(path: &str) -> Result<ProxyFile, Ended> {
    let text = text_of(path).map_err(|code| Ended { code, text: String::new() })?;
    proxy_file(path, &text).map_err(|error| Ended { code: Code::Usage, text: error.to_string() })
}

fn address_of_api(args: &Args) -> Result<Option<SocketAddr>, Ended> {
    match args.api.0 {
        Some(addr) if !addr.ip().to_canonical().is_loopback() && !args.expose => {
            let text = format!("refused: the API at {addr} would not be on loopback: add --expose if you mean it");
            Err(ended(Code::Refused, text))
        }
        api => Ok(api),
    }
}

/// Makes the proxies of the command line and of the file, in this order.
async fn make(plane: &Plane, paired: Vec<ProxyInput>, file: Option<ProxyFile>) -> Result<(), Ended> {
    for input in paired {
        let hint = |refusal: &Refusal| refusal.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        let flag = |refusal: &Refusal| match refusal.at.last().map_or("", String::as_str) {
            "upstream" => "--upstream",
            "upstream_tls" => "--upstream-ca",
            "tls" => "--tls-name",
            _ => "--listen",
        };
        plane.create(&input, None).await.map_err(|refusal| {
            // The number of the proxy among those made at once.
            let refusal =
                Refusal { at: refusal.at.iter().filter(|part| part.parse::<usize>().is_err()).cloned().collect(), ..refusal };
            ended(code_of(&refusal), format!("{}: {}{}", flag(&refusal), refusal.error, hint(&refusal)))
        })?;
    }
    let Some(file) = file else { return Ok(()) };
    let inputs: Vec<ProxyInput> = file.proxies.iter().map(input_of).collect();
    if let Err(refusal) = plane.populate(&inputs, None).await {
        let at: Vec<&str> = refusal.at.iter().map(String::as_str).collect();
        let text = file.blame(&at, &refusal.error, refusal.hint()).to_string();
        return Err(Ended { code: code_of(&refusal), text });
    }
    Ok(())
}

fn code_of(refusal: &Refusal) -> Code {
    match refusal.status {
        403 => Code::Refused,
        _ if refusal.environment => Code::Internal,
        _ => Code::Usage,
    }
}

fn input_of(proxy: &FileProxy) -> ProxyInput {
    let FileProxy { name, listen, upstream, enabled, protocol, tls, upstream_tls, toxics } = proxy;
    ProxyInput {
        name: Some(name.clone()),
        listen: Some(listen.clone()),
        upstream: Some(upstream.clone()),
        enabled: Some(*enabled),
        protocol: protocol.map(|spoken| match spoken {
            Spoken::Http => Protocol::Http,
            Spoken::Tcp => Protocol::Tcp,
        }),
        tls: tls.clone(),
        upstream_tls: upstream_tls.clone(),
        toxics: toxics.iter().map(toxic_of).collect(),
    }
}

fn toxic_of(toxic: &FileToxic) -> ToxicInput {
    let FileToxic { r#type, name, stream, toxicity, attributes: Table(attributes) } = toxic;
    let attributes = attributes.iter().map(|entry| (entry.name.clone(), Json::Number(entry.value.to_string()))).collect();
    ToxicInput {
        kind: r#type.clone(),
        name: name.clone(),
        stream: stream.clone(),
        toxicity: *toxicity,
        attributes: Some(Json::Map(attributes)),
    }
}

fn announce(plane: &Plane, api: Option<&Api>) {
    for Entry { name, listen, upstream, protocol, tls, enabled, .. } in plane.entries() {
        let word = if protocol == Protocol::Http { "http" } else { "tcp" };
        let (tls, off) = (if tls.is_some() { " in TLS" } else { "" }, if enabled { "" } else { ", disabled" });
        say(&format!("proxy {}: {listen} -> {} ({word}{tls}{off})", name.escape_debug(), upstream.escape_debug()));
    }
    if let Some(api) = api {
        say(&format!("API at http://{}, counters at /metrics; Ctrl-C ends it", api.addr()));
    }
}

/// Waits for a signal, and then for the connections that are left, within bounds. A second signal ends the process.
async fn end(plane: &Arc<Plane>, mut signals: Signals, within: Span) {
    signals.first().await;
    plane.drain();
    let left = plane.connections();
    if left > 0 && within > Span::ZERO {
        say(&format!("{left} connections may go on for up to {within}; once more ends them"));
    }
    let gone = async {
        let mut looks = tokio::time::interval(LOOK);
        while plane.connections() > 0 {
            looks.tick().await;
        }
    };
    let _ = tokio::time::timeout(within.to_std(), gone).await;
    Signals::release();
}

fn say(text: &str) {
    if !text.is_empty() {
        let _ = writeln!(std::io::stderr().lock(), "{}", text.trim_end());
    }
}
