//! The checks of `stop_if`: asks a URL or runs a command every so often, and says what it heard.

use super::clock::Clock;
use super::guard::Allowed;
use super::tls;
use super::transport::Io;
use crate::gate::config::{Probe, StopConfig, StopTrigger};
use crate::plan::{Scheme, TargetUrl};
use crate::time::{Span, Timestamp};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::Request;
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The longest that one check may take, however seldom it is asked; a slower one has failed.
const TIME_LIMIT: Span = Span::from_secs(10);
/// What each check may take, however often it is asked.
const LEAST_LIMIT: Span = Span::from_secs(1);

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

/// The checks of a run. Dropping it ends them, and kills the commands that still run.
pub struct Checks {
    answers: mpsc::Receiver<Answer>,
    _tasks: JoinSet<()>,
}

impl Checks {
    /// Starts asking. To be called inside the coordinator's runtime.
    pub fn start(conditions: &[StopConfig], allowed: &Allowed, ca_file: Option<&str>, clock: &Arc<dyn Clock>) -> Self {
        let (heard, answers) = mpsc::channel(16);
        let mut tasks = JoinSet::new();
        for (index, condition) in conditions.iter().enumerate() {
            let StopTrigger::Check { probe, every } = &condition.trigger else { continue };
            let asker = Asker { probe: probe.clone(), allowed: allowed.clone(), ca_file: ca_file.map(str::to_string) };
            tasks.spawn(ask_forever(index, asker, (*every).max(Span::from_millis(100)), clock.clone(), heard.clone()));
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
    let check = asker.name();
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
        let answer = Answer { index, check: check.clone(), asked, at: clock.now(), passed, detail };
        if heard.send(answer).await.is_err() {
            return;
        }
    }
}

struct Asker {
    probe: Probe,
    allowed: Allowed,
    ca_file: Option<String>,
}

impl Asker {
    fn name(&self) -> String {
        match &self.probe {
            Probe::Http(url) => url.clone(),
            Probe::Command(words) => words.join(" "),
        }
    }

    async fn ask(&self) -> Result<String, String> {
        match &self.probe {
            Probe::Http(url) => self.get(url).await,
            Probe::Command(words) => run(words).await,
        }
    }

    async fn get(&self, url: &str) -> Result<String, String> {
        let to = TargetUrl::parse(url)?;
        let (allowed, host, port) = (self.allowed.clone(), to.host.clone(), to.port);
        let resolved = tokio::task::spawn_blocking(move || allowed.resolve(&host, port)).await;
        let addresses = resolved.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let stream = TcpStream::connect(&addresses[..]).await.map_err(|error| error.to_string())?;
        if to.scheme == Scheme::Http {
            return exchange(stream, &to).await;
        }
        let (config, name) = tls::client(&to.host, self.ca_file.as_deref()).map_err(|error| error.to_string())?;
        let stream = tokio_rustls::TlsConnector::from(config).connect(name, stream).await.map_err(|error| error.to_string())?;
        exchange(stream, &to).await
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

/// A command and all that it has started, killed with the value: what it leaves in the background too.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // It fails where nobody is left.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

async fn run(words: &[String]) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("the command is empty")?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let cannot = |error| format!("`{program}` cannot be run: {error}");
    let mut child = command.process_group(0).spawn().map_err(cannot)?;
    let _group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw).map(Group);
    let status = child.wait().await.map_err(cannot)?;
    if status.success() { Ok(status.to_string()) } else { Err(status.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn asker(probe: Probe) -> Asker {
        Asker { probe, allowed: Allowed::default(), ca_file: None }
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
        let far = asker(Probe::Http("http://192.0.2.1/".into())).ask().await;
        assert!(far.unwrap_err().contains("--approve"));
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
