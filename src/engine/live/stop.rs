//! The checks of `stop_if`: asks a URL or runs a command every so often, and says what it heard.

use super::clock::Clock;
use super::group::Group;
use super::guard::{Allowed, GuardError};
use super::redacted::Redacted;
use super::tls::{self, TlsError};
use super::transport::Io;
use crate::gate::config::{Probe, StopConfig, StopTrigger};
use crate::plan::{Scheme, TargetUrl};
use crate::time::{Span, Timestamp};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::Request;
use rustls_pki_types::ServerName;
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tracing::debug;

/// The longest that one check may take, however seldom it is asked; a slower one has failed.
const TIME_LIMIT: Span = Span::from_secs(10);
/// What each check may take, however often it is asked.
const LEAST_LIMIT: Span = Span::from_secs(1);

/// Why a check cannot be asked at all; known before the run begins.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// Its host must not be dialled.
    #[error("the check {check} of `stop_if` is {source}")]
    Guard {
        /// What would be asked.
        check: String,
        /// The refusal.
        source: GuardError,
    },
    /// TLS that cannot be spoken.
    #[error("the check {check} of `stop_if` cannot be asked: {source}")]
    Tls {
        /// What would be asked.
        check: String,
        /// Why.
        source: TlsError,
    },
    /// A URL that cannot be asked.
    #[error("the check {check} of `stop_if` cannot be asked: {problem}")]
    Url {
        /// What would be asked.
        check: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl CheckError {
    /// Whether this is a refusal (exit code 5).
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::Guard { .. })
    }
}

/// What a check heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The index of its entry in `stop_if`.
    pub index: usize,
    /// What was asked.
    pub check: String,
    /// When it was asked.
    pub asked: Timestamp,
    /// When it answered, or its time was over.
    pub at: Timestamp,
    /// Whether it passed.
    pub passed: bool,
    /// What it answered.
    pub detail: String,
}

/// Checks that can be asked, with what asking needs: their index in `stop_if` and how often each is due.
pub struct Prepared(Vec<(usize, Span, Asker)>);

/// The checks of a run. Dropping it ends them, and kills the commands that still run.
pub struct Checks {
    answers: mpsc::Receiver<Answer>,
    _tasks: JoinSet<()>,
}

impl Checks {
    /// Makes the checks ready before the run begins: later, reading certificates would hold up whoever moves the
    /// faults, and a refusal would look like a check that failed. Blocks while names are resolved.
    ///
    /// # Errors
    /// A host that must not be dialled, TLS that cannot be spoken. A name that is not resolved is none: it may be later.
    pub fn prepare(conditions: &[StopConfig], allowed: &Allowed, ca_file: Option<&str>) -> Result<Prepared, CheckError> {
        let mut all = Vec::new();
        for (index, condition) in conditions.iter().enumerate() {
            let StopTrigger::Check { probe, every } = &condition.trigger else { continue };
            all.push((index, (*every).max(Span::from_millis(100)), Asker::new(probe, allowed, ca_file)?));
        }
        Ok(Prepared(all))
    }

    /// Starts asking. To be called inside the coordinator's runtime.
    pub fn start(prepared: Prepared, clock: &Arc<dyn Clock>) -> Self {
        let (heard, answers) = mpsc::channel(16);
        let mut tasks = JoinSet::new();
        for (index, every, asker) in prepared.0 {
            tasks.spawn(ask_forever(index, asker, every, clock.clone(), heard.clone()));
        }
        Self { answers, _tasks: tasks }
    }

    /// The next answer; never, where there is no check. Cancel safe.
    pub async fn next(&mut self) -> Answer {
        match self.answers.recv().await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

async fn ask_forever(index: usize, asker: Asker, every: Span, clock: Arc<dyn Clock>, heard: mpsc::Sender<Answer>) {
    let mut ticks = tokio::time::interval(every.to_std());
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let check = asker.name.clone();
    let limit = every.max(LEAST_LIMIT).min(TIME_LIMIT);
    loop {
        ticks.tick().await;
        let asked = clock.now();
        let answered = tokio::time::timeout(limit.to_std(), asker.ask()).await;
        let (passed, detail) = match answered {
            Ok(Ok(detail)) => (true, detail),
            Ok(Err(detail)) => (false, detail),
            Err(_) => (false, format!("no answer within {limit}")),
        };
        debug!(?check, passed, ms = clock.now().since(asked).as_millis(), "a check of stop_if was asked");
        let answer = Answer { index, check: check.clone(), asked, at: clock.now(), passed, detail };
        if heard.send(answer).await.is_err() {
            return;
        }
    }
}

struct Asker {
    name: String,
    way: Way,
}

enum Way {
    Http { to: TargetUrl, allowed: Allowed, tls: Option<(TlsConnector, ServerName<'static>)> },
    Command(Vec<String>),
}

impl Asker {
    fn new(probe: &Probe, allowed: &Allowed, ca_file: Option<&str>) -> Result<Self, CheckError> {
        match probe {
            Probe::Http(url) => Self::of_url(url.clone(), allowed, ca_file),
            Probe::Command(words) => Ok(Self { name: words.join(" "), way: Way::Command(words.clone()) }),
        }
    }

    fn of_url(check: String, allowed: &Allowed, ca_file: Option<&str>) -> Result<Self, CheckError> {
        let to = match TargetUrl::parse(&check) {
            Ok(to) => to,
            Err(problem) => return Err(CheckError::Url { check, problem }),
        };
        match allowed.resolve(&to.host, to.port) {
            Err(source) if source.is_refusal() => return Err(CheckError::Guard { check, source }),
            Ok(_) | Err(_) => {}
        }
        let tls = match to.scheme {
            Scheme::Http => None,
            Scheme::Https => match tls::client(&to.host, ca_file) {
                Ok((config, name)) => Some((TlsConnector::from(config), name)),
                Err(source) => return Err(CheckError::Tls { check, source }),
            },
        };
        Ok(Self { name: Redacted::Url(&check).to_string(), way: Way::Http { to, allowed: allowed.clone(), tls } })
    }

    async fn ask(&self) -> Result<String, String> {
        match &self.way {
            Way::Http { to, allowed, tls } => get(to, allowed, tls.as_ref()).await,
            Way::Command(words) => run(words).await,
        }
    }
}

async fn get(to: &TargetUrl, allowed: &Allowed, tls: Option<&(TlsConnector, ServerName<'static>)>) -> Result<String, String> {
    let (allowed, host, port) = (allowed.clone(), to.host.clone(), to.port);
    // Resolved and checked each time: a name may move to where it must not be followed.
    let resolved = tokio::task::spawn_blocking(move || allowed.resolve(&host, port)).await;
    let addresses = resolved.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    let stream = TcpStream::connect(&addresses[..]).await.map_err(|error| error.to_string())?;
    match tls {
        None => exchange(stream, to).await,
        Some((connector, name)) => {
            let stream = connector.connect(name.clone(), stream).await.map_err(|error| error.to_string())?;
            exchange(stream, to).await
        }
    }
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, to: &TargetUrl) -> Result<String, String> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(Io(stream)).await.map_err(|error| error.to_string())?;
    let request = Request::get(&to.path)
        .header(hyper::header::HOST, to.authority())
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    // The head says it all; the connection is dropped with its body.
    let mut moving = JoinSet::new();
    moving.spawn(connection);
    let status = sender.send_request(request).await.map_err(|error| error.to_string())?.status();
    if status.is_success() { Ok(status.to_string()) } else { Err(status.to_string()) }
}

async fn run(words: &[String]) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("the command is empty")?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let cannot = |error| format!("`{program}` cannot be run: {error}");
    let mut child = command.process_group(0).spawn().map_err(cannot)?;
    let _group = Group::of(&child);
    let status = child.wait().await.map_err(cannot)?;
    if status.success() { Ok(status.to_string()) } else { Err(status.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn asker(probe: Probe) -> Asker {
        Asker::new(&probe, &Allowed::default(), None).unwrap_or_else(|error| panic!("{error}"))
    }

    async fn serve_once(answer: &'static str) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/alerts", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut head, mut part) = (Vec::new(), [0; 1024]);
            while !head.ends_with(b"\r\n\r\n") {
                let n = stream.read(&mut part).await.unwrap();
                head.extend_from_slice(&part[..n]);
            }
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
            // Closing before the peer has read would reset the connection, and the answer could be lost.
            let _ = stream.read(&mut part).await;
        });
        url
    }

    #[tokio::test]
    async fn urls_pass_by_their_status() {
        for (answer, passes) in [
            ("HTTP/1.1 204 No Content\r\n\r\n", true),
            ("HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n", false),
            ("HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n", false),
            ("garbage\r\n\r\n", false),
            ("", false),
        ] {
            let url = serve_once(answer).await;
            assert_eq!(asker(Probe::Http(url)).ask().await.is_ok(), passes, "{answer:?}");
        }
    }

    #[test]
    fn a_check_that_must_not_be_asked_is_refused_before_the_run() {
        let far = |host: &str| Asker::new(&Probe::Http(format!("http://{host}/")), &Allowed::default(), None).err();
        let error = far("192.0.2.1").expect("it is refused");
        assert!(error.is_refusal() && error.to_string().contains("--approve"), "{error}");
        assert!(far("name.invalid").is_none(), "a name may be resolved later");
    }

    #[tokio::test]
    async fn a_check_that_hangs_fails_in_time_and_leaves_nobody_behind() {
        let folder = std::env::temp_dir().join(format!("stormwake-check-{}", std::process::id()));
        let script = format!("sleep 300 & echo $! > {}; wait", folder.display());
        let (heard, mut answers) = mpsc::channel(1);
        let clock = super::super::clock::LiveClock::starting_now();
        let asker = asker(Probe::Command(["sh", "-c", &script].map(str::to_string).to_vec()));
        let asking = tokio::spawn(ask_forever(3, asker, Span::from_millis(200), clock, heard));
        let answer = answers.recv().await.unwrap();
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        assert!(!answer.passed && answer.detail.contains("within 1s"), "{answer:?}");
        let took = answer.at.since(answer.asked);
        assert!(took >= Span::from_millis(990) && took < Span::from_secs(4), "{took}");
        let id = std::fs::read_to_string(&folder).unwrap().trim().to_string();
        let _ = std::fs::remove_file(&folder);
        // A killed process stays as a zombie until its new parent collects it.
        let is_gone = || std::fs::read_to_string(format!("/proc/{id}/stat")).map_or(true, |stat| stat.contains(") Z "));
        for _ in 0..200 {
            if is_gone() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("{id} still runs");
    }

    #[tokio::test]
    async fn commands_pass_by_their_exit_code() {
        let ask = |words: &[&str]| asker(Probe::Command(words.iter().map(|w| (*w).to_string()).collect()));
        assert!(ask(&["true"]).ask().await.is_ok());
        assert!(ask(&["false"]).ask().await.unwrap_err().contains('1'));
        assert!(ask(&["/no/such/program"]).ask().await.unwrap_err().contains("cannot be run"));
    }
}
