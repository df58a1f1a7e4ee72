//! A small Toxiproxy with one proxy, which really forwards: as the transcript of a real one says, and worse where it is told to be.

use crate::support::{Server, read_head};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How the API behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As it should.
    Honest,
    /// Every change is answered with 500, and not made.
    Fails,
    /// A first toxic is added, and no other.
    AddsOne,
    /// Every change is answered as if it were made, and is not.
    Lies,
    /// No call is answered.
    Hangs,
    /// Connections are closed at once.
    Gone,
}

/// The one proxy's state.
pub struct State {
    pub manner: Manner,
    pub enabled: bool,
    pub toxics: Vec<Value>,
    /// Every change that was made, `POST /proxies/payments/toxics` and the like.
    pub calls: Vec<String>,
    connections: Vec<TcpStream>,
    /// The acceptor stops where this is no longer its own number.
    era: u64,
}

/// A Toxiproxy that ends with the value.
pub struct Fake {
    api: Server,
    proxy: Arc<Proxy>,
}

struct Proxy {
    listen: SocketAddr,
    upstream: SocketAddr,
    state: Mutex<State>,
}

impl Fake {
    /// Its proxy `payments` forwards to this server.
    pub fn new(upstream: &Server) -> Self {
        let upstream = upstream.url().trim_start_matches("http://").trim_end_matches('/').parse().expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let listen = listener.local_addr().expect("an address");
        let (toxics, calls, connections) = (Vec::new(), Vec::new(), Vec::new());
        let state = Mutex::new(State { manner: Manner::Honest, enabled: true, toxics, calls, connections, era: 0 });
        let proxy = Arc::new(Proxy { listen, upstream, state });
        proxy.clone().accept(listener, 0);
        let serving = proxy.clone();
        Self { api: Server::start(move |stream| serving.serve(stream)), proxy }
    }

    /// The control API's URL, without a slash at its end.
    pub fn url(&self) -> String {
        self.api.url().trim_end_matches('/').to_string()
    }

    /// Where the proxy listens.
    pub fn listen(&self) -> String {
        format!("http://{}/", self.proxy.listen)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.proxy.state()
    }

    /// Adds a toxic of somebody else's, or of a dead run's.
    pub fn has(&self, name: &str) {
        let toxic = json!({ "name": name, "type": "noop", "stream": "downstream", "toxicity": 1, "attributes": {} });
        self.state().toxics.push(toxic);
    }

    /// The names of the toxics, in order.
    pub fn toxics(&self) -> Vec<String> {
        self.state().toxics.iter().map(|toxic| toxic["name"].as_str().expect("a name").to_string()).collect()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.proxy.close();
    }
}

impl Proxy {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forwards what comes, until the proxy is closed or opened anew.
    fn accept(self: Arc<Self>, listener: TcpListener, era: u64) {
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut state = self.state();
                if state.era != era {
                    return;
                }
                let Ok((client, server)) = stream.and_then(|client| Ok((client, TcpStream::connect(self.upstream)?))) else {
                    continue;
                };
                state.connections.retain(|stream| stream.peer_addr().is_ok());
                for (from, to, stream) in [(&client, &server, "upstream"), (&server, &client, "downstream")] {
                    let (Ok(from), Ok(to), Ok(kept)) = (from.try_clone(), to.try_clone(), from.try_clone()) else { continue };
                    state.connections.push(kept);
                    let proxy = self.clone();
                    std::thread::spawn(move || proxy.forward(from, to, stream));
                }
            }
        });
    }

    /// Copies one stream, and drops what a `timeout` toxic swallows.
    fn forward(&self, mut from: TcpStream, mut to: TcpStream, stream: &str) {
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            let swallows = |toxic: &Value| toxic["type"] == "timeout" && toxic["stream"] == stream;
            if self.state().toxics.iter().any(swallows) {
                continue;
            }
            if to.write_all(&chunk[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    }

    fn close(&self) {
        let mut state = self.state();
        state.era += 1;
        for stream in state.connections.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        // Wakes the acceptor, which then sees that its time is over.
        let _ = TcpStream::connect(self.listen);
    }

    fn open(self: &Arc<Self>) {
        let era = self.state().era;
        for _ in 0..500 {
            if let Ok(listener) = TcpListener::bind(self.listen) {
                return self.clone().accept(listener, era);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("the proxy's port does not come back");
    }

    fn serve(self: &Arc<Self>, mut stream: TcpStream) {
        while let Some((head, body)) = read_request(&mut stream) {
            let manner = self.state().manner;
            match manner {
                Manner::Gone => return,
                Manner::Hangs => {
                    // Until the client has had enough.
                    let _ = stream.read(&mut [0]);
                    return;
                }
                _ => {}
            }
            let (status, answer) = self.answer(&head, &body, manner);
            let answer = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
                answer.len()
            );
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(self: &Arc<Self>, head: &str, body: &Value, manner: Manner) -> (u16, String) {
        let mut words = head.split_whitespace();
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let rest = match path.strip_prefix("/proxies/payments") {
            Some(rest) => rest,
            None if path.starts_with("/proxies/") => {
                return (404, json!({ "error": "proxy not found", "status": 404 }).to_string());
            }
            None => return (404, "404 page not found\n".into()),
        };
        if method != "GET" {
            self.state().calls.push(format!("{method} {path}"));
            match manner {
                Manner::AddsOne if rest == "/toxics" && !self.state().toxics.is_empty() => return (500, "no".into()),
                Manner::Fails => return (500, json!({ "error": "no", "status": 500 }).to_string()),
                Manner::Lies if method == "DELETE" => return (204, String::new()),
                Manner::Lies if rest.is_empty() => {
                    return (200, with(self.shown(), "enabled", body["enabled"].clone()).to_string());
                }
                Manner::Lies => return (200, body.to_string()),
                _ => {}
            }
        }
        match (method, rest, rest.strip_prefix("/toxics/")) {
            ("GET", "", _) => (200, self.shown().to_string()),
            ("POST", "", _) => {
                self.enable(body["enabled"].as_bool().expect("a flag"));
                (200, self.shown().to_string())
            }
            ("POST", "/toxics", _) => self.add(body),
            ("DELETE", _, Some(name)) => {
                let mut state = self.state();
                let before = state.toxics.len();
                state.toxics.retain(|toxic| toxic["name"] != name);
                match before > state.toxics.len() {
                    true => (204, String::new()),
                    false => (404, json!({ "error": "toxic not found", "status": 404 }).to_string()),
                }
            }
            _ => (405, String::new()),
        }
    }

    fn add(&self, body: &Value) -> (u16, String) {
        let mut state = self.state();
        if state.toxics.iter().any(|toxic| toxic["name"] == body["name"]) {
            return (409, json!({ "error": "toxic already exists", "status": 409 }).to_string());
        }
        state.toxics.push(body.clone());
        (200, body.to_string())
    }

    fn enable(self: &Arc<Self>, enabled: bool) {
        let was = std::mem::replace(&mut self.state().enabled, enabled);
        match (was, enabled) {
            (true, false) => self.close(),
            (false, true) => self.open(),
            _ => {}
        }
    }

    fn shown(&self) -> Value {
        let state = self.state();
        json!({
            "name": "payments", "listen": self.listen.to_string(), "upstream": self.upstream.to_string(),
            "enabled": state.enabled, "Logger": {}, "toxics": state.toxics,
        })
    }
}

fn with(mut object: Value, key: &str, value: Value) -> Value {
    object[key] = value;
    object
}

/// A request's head, and its body as JSON; none where the peer went.
fn read_request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let bytes = read_head(stream)?;
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_string();
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = bytes[end..].to_vec();
    let missing = length.unwrap_or(0_usize).saturating_sub(body.len());
    let mut rest = vec![0; missing];
    stream.read_exact(&mut rest).ok()?;
    body.extend(rest);
    Some((head, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
