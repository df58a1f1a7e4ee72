//! HTTP/2 from clients: streams side by side, each fate, changes that reach what is under way, and what becomes of it when one side breaks off.

use super::tls::{bed as tls_bed, shake, trusting};
use super::*;
use crate::engine::live::transport::Io;
use crate::plan::TlsBack;
use ::bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper::{HeaderMap, Request, Response};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

#[derive(Clone, Copy)]
struct Here;

impl<F: Future + 'static> hyper::rt::Executor<F> for Here {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move { drop(future.await) });
    }
}

/// A body that is fed frame by frame, or has none.
pub(super) enum Fed {
    Nothing,
    From(mpsc::UnboundedReceiver<Frame<Bytes>>),
}

impl Body for Fed {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut *self {
            Self::Nothing => Poll::Ready(None),
            Self::From(frames) => frames.poll_recv(cx).map(|frame| frame.map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

pub(super) type Feed = mpsc::UnboundedSender<Frame<Bytes>>;

pub(super) fn fed() -> (Feed, Fed) {
    let (feed, frames) = mpsc::unbounded_channel();
    (feed, Fed::From(frames))
}

pub(super) fn piece(text: &str) -> Frame<Bytes> {
    Frame::data(Bytes::copy_from_slice(text.as_bytes()))
}

/// A target that speaks HTTP/2: `/echo` gives back what comes as it comes, trailers too, `/hold` waits to be let go, `/broken` breaks off, and
/// any other path is the answer.
#[derive(Clone)]
pub(super) struct Target2 {
    addr: SocketAddr,
    seen: Rc<RefCell<Vec<String>>>,
    /// Connections that have come, and requests that are held.
    connections: Rc<Cell<usize>>,
    held: Rc<Cell<usize>>,
    let_go: Rc<tokio::sync::Notify>,
    /// Tells the connections to end in good order, or at once.
    ends: Rc<tokio::sync::watch::Sender<u8>>,
}

struct Held(Rc<Cell<usize>>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Target2 {
    pub(super) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let ends = Rc::new(tokio::sync::watch::Sender::new(0));
        let (seen, connections, held, let_go) = Default::default();
        let target = Self { addr, seen, connections, held, let_go, ends };
        let serving = target.clone();
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.connections.set(serving.connections.get() + 1);
                tokio::task::spawn_local(serving.clone().connection(stream));
            }
        });
        target
    }

    async fn connection(self, stream: TcpStream) {
        let mut ends = self.ends.subscribe();
        let target = self.clone();
        let service = hyper::service::service_fn(move |request| target.clone().answer(request));
        let builder = hyper::server::conn::http2::Builder::new(Here);
        let mut connection = std::pin::pin!(builder.serve_connection(Io(stream), service));
        loop {
            tokio::select! {
                _ = connection.as_mut() => return,
                _ = ends.changed() => match *ends.borrow() {
                    1 => connection.as_mut().graceful_shutdown(),
                    _ => return,
                }
            }
        }
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Fed>, std::io::Error> {
        let path = request.uri().path().to_string();
        self.seen.borrow_mut().push(path.clone());
        let (feed, body) = fed();
        match path.as_str() {
            "/broken" => return Err(ErrorKind::Other.into()),
            "/bare" => return Ok(Response::new(Fed::Nothing)),
            "/echo" => drop(tokio::task::spawn_local(async move {
                let mut incoming = request.into_body();
                while let Some(Ok(frame)) = incoming.frame().await {
                    let _ = feed.send(frame);
                }
            })),
            "/hold" => {
                self.held.set(self.held.get() + 1);
                let _held = Held(self.held.clone());
                self.let_go.notified().await;
                feed.send(piece(&path)).expect("it is read");
            }
            _ => feed.send(piece(&path)).expect("it is read"),
        }
        Ok(Response::new(body))
    }

    pub(super) fn upstream(&self) -> Upstream {
        Upstream::at(self.addr)
    }

    fn requests(&self) -> usize {
        self.seen.borrow().len()
    }
}

/// A client that speaks HTTP/2.
pub(super) struct Peer {
    sender: SendRequest<Fed>,
    /// How its connection ended, once it has.
    end: Rc<RefCell<Option<Result<(), String>>>>,
}

impl Peer {
    async fn on<S: AsyncRead + AsyncWrite + Unpin + 'static>(stream: S) -> Self {
        let (sender, connection) = hyper::client::conn::http2::handshake(Here, Io(stream)).await.expect("HTTP/2");
        let end = Rc::new(RefCell::new(None));
        let ended = end.clone();
        tokio::task::spawn_local(async move {
            let end = connection.await.map_err(|error| format!("{error:?}"));
            *ended.borrow_mut() = Some(end);
        });
        Self { sender, end }
    }

    pub(super) async fn to(bed: &Bed) -> Self {
        Self::on(TcpStream::connect(bed.proxy.addr(0)).await.expect("the proxy listens")).await
    }

    /// Sends a request; what comes of it is a task of its own.
    pub(super) fn send(&self, request: Request<Fed>) -> Asked {
        let mut sender = self.sender.clone();
        let sent = async move {
            sender.ready().await.map_err(|error| format!("{error:?}"))?;
            sender.send_request(request).await.map_err(|error| format!("{error:?}"))
        };
        Asked(tokio::task::spawn_local(sent))
    }

    pub(super) fn ask(&self, path: &str) -> Asked {
        self.send(to(path, Fed::Nothing))
    }

    async fn get(&self, path: &str) -> String {
        self.ask(path).text().await
    }

    async fn end(&self) -> Result<(), String> {
        until("the connection ends", || self.end.borrow().is_some()).await;
        self.end.borrow().clone().expect("it has")
    }
}

fn to(path: &str, body: Fed) -> Request<Fed> {
    Request::builder().uri(format!("http://provider.test{path}")).body(body).expect("a request")
}

/// A request on its way; reset when dropped.
pub(super) struct Asked(tokio::task::JoinHandle<Result<Response<Incoming>, String>>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Asked {
    async fn response(&mut self) -> Result<Response<Incoming>, String> {
        tokio::time::timeout(LONG, &mut self.0).await.expect("an answer, or an end").expect("nothing panics")
    }

    /// Status and body, or how it was broken off.
    pub(super) async fn text(mut self) -> String {
        let response = match self.response().await {
            Ok(response) => response,
            Err(error) => return error,
        };
        let status = response.status().as_u16();
        match tokio::time::timeout(LONG, response.into_body().collect()).await.expect("an end") {
            Ok(body) => format!("{status} {}", String::from_utf8_lossy(&body.to_bytes())),
            Err(error) => format!("{status} {error:?}"),
        }
    }

    pub(super) async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(60), &mut self.0).await.is_err()
    }
}

async fn next(body: &mut Incoming) -> String {
    let frame = tokio::time::timeout(LONG, body.frame()).await.expect("a piece").expect("not the end").expect("no error");
    String::from_utf8(frame.into_data().expect("data").to_vec()).expect("text")
}

#[test]
fn streams_go_side_by_side_on_one_connection_and_http_11_on_the_same_port() {
    run(async || {
        let target = Target2::start().await;
        let bed = Bed::new(&[], target.upstream());
        let peer = Peer::to(&bed).await;
        let held: Vec<Asked> = (0..50).map(|_| peer.ask("/hold")).collect();
        until("all are held", || target.held.get() == 50).await;
        for _ in 0..3 {
            assert_eq!(peer.get("/quick").await, "200 /quick");
        }
        target.let_go.notify_waiters();
        for asked in held {
            assert_eq!(asked.text().await, "200 /hold");
        }
        assert_eq!((target.connections.get(), bed.proxy.connections()), (1, 1));
        assert_eq!((bed.proxy.arrived(0, 0), bed.proxy.connected(0, 0)), (53, 1));
        drop(peer);
        until("it is gone", || bed.proxy.connections() == 0).await;
        let old = Target::start().await;
        let bed = Bed::new(&[], old.upstream());
        assert_eq!(bed.client().await.get("/old").await, "200 /old");
    });
}

#[test]
fn the_preface_may_come_byte_by_byte_and_what_only_begins_like_it_is_refused() {
    run(async || {
        let target = Target2::start().await;
        let bed = Bed::new(&[], target.upstream());
        let mut drips = bed.client().await;
        for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0" {
            drips.send_bytes(&[*byte]).await;
            tokio::task::yield_now().await;
        }
        let mut head = [0; 9];
        drips.0.read_exact(&mut head).await.expect("settings");
        assert_eq!(head[3], 4);
        let mut other = bed.client().await;
        other.send_bytes(b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n").await;
        assert_eq!(other.response().await, "400 ");
    });
}

#[test]
fn bodies_go_both_ways_at_once_and_trailers_behind_them() {
    run(async || {
        let target = Target2::start().await;
        let bed = Bed::new(&[], target.upstream());
        let peer = Peer::to(&bed).await;
        let (feed, body) = fed();
        let mut asked = peer.send(to("/echo", body));
        feed.send(piece("one")).expect("it is read");
        let mut back = asked.response().await.expect("an answer").into_body();
        assert_eq!(next(&mut back).await, "one");
        feed.send(piece("two")).expect("it is read");
        assert_eq!(next(&mut back).await, "two");
        let trailers =
            HeaderMap::from_iter([(hyper::header::HeaderName::from_static("grpc-status"), "0".parse().expect("a value"))]);
        feed.send(Frame::trailers(trailers)).expect("it is read");
        drop(feed);
        let last = back.frame().await.expect("a frame").expect("no error");
        assert_eq!(last.trailers_ref().and_then(|all| all.get("grpc-status")).map(|v| v.as_bytes()), Some(&b"0"[..]));
        assert!(back.frame().await.is_none());
        let bare = peer.ask("/bare").response().await.expect("an answer");
        assert!(bare.body().is_end_stream());
    });
}

#[test]
fn megabytes_go_through_small_windows() {
    run(async || {
        let target = Target2::start().await;
        let bed = Bed::new(&[], target.upstream());
        let peer = Peer::to(&bed).await;
        let (feed, body) = fed();
        let mut asked = peer.send(to("/echo", body));
        let all: Vec<u8> = (0..3_000_000usize).map(|n| (n % 251) as u8).collect();
        all.chunks(100_000).for_each(|part| feed.send(Frame::data(Bytes::copy_from_slice(part))).expect("it is read"));
        drop(feed);
        let back = asked.response().await.expect("an answer").into_body().collect().await.expect("a body");
        assert!(back.to_bytes() == all);
    });
}

#[test]
fn answers_delays_and_limits_as_on_http_11() {
    run(async || {
        let target = Target2::start().await;
        let bed = Bed::new(&["status 503", "latency 80", "limit 1"], target.upstream());
        let peer = Peer::to(&bed).await;
        bed.on(0);
        let (_open, body) = fed();
        let mut endless = peer.send(to("/", body));
        assert_eq!(endless.response().await.expect("an answer before the body ends").status(), 503);
        assert_eq!(peer.get("/").await, "503 ");
        bed.on(1);
        let began = bed.now();
        let both = (peer.ask("/a"), peer.ask("/b"));
        assert_eq!((both.0.text().await, both.1.text().await), ("200 /a".into(), "200 /b".into()));
        let took = bed.now().since(began);
        let ms = crate::time::Span::from_millis;
        assert!(took >= ms(80) && took < ms(5_000), "{took}");
        bed.on(2);
        let first = peer.get("/").await;
        let mut limited = peer.ask("/");
        let limited = limited.response().await.expect("an answer");
        assert_eq!((first.as_str(), limited.status().as_u16()), ("200 /", 429));
        assert_eq!(limited.headers().get("retry-after").map(|v| v.as_bytes()), Some(&b"2"[..]));
        bed.off().await;
        assert_eq!(peer.get("/after").await, "200 /after");
        assert_eq!((0..3).map(|n| bed.timeline.touched(n)).collect::<Vec<_>>(), [2, 2, 1]);
    });
}

#[test]
fn answers_come_to_harm_stream_by_stream_when_the_work_is_done() {
    run(async || {
        let kinds =
            ["status-after 503", "truncate 3", "truncate-rst 3", "slow 20", "reset-after", "malformed-after", "malformed 0"];
        let target = Target2::start().await;
        let bed = Bed::new(&kinds, target.upstream());
        let peer = Peer::to(&bed).await;
        let reset = |text: &str| text.contains("INTERNAL_ERROR");
        for (n, holds) in (0..).zip([
            &(|text: &str| text == "503 ") as &dyn Fn(&str) -> bool,
            &|text| text == "200 /ha",
            &|text| text.starts_with("200 ") && reset(text),
            &|text| text == "200 /harm",
            &reset,
            &reset,
            &reset,
        ]) {
            bed.on(n);
            let began = bed.now();
            let text = peer.get("/harm").await;
            assert!(holds(&text), "{}: {text}", kinds[n as usize]);
            if n == 3 {
                let three_drops = crate::time::Span::from_millis(60);
                assert!(bed.now().since(began) >= three_drops, "two bytes each 20 ms");
            }
            bed.off().await;
            assert_eq!(peer.get("/after").await, "200 /after", "the others go on: {}", kinds[n as usize]);
        }
        assert_eq!(target.requests(), 13, "all but the last were served before they came to harm, and those behind them");
        assert!((0..7).all(|n| bed.timeline.touched(n) == 1));
    });
}

#[test]
fn a_lost_answer_is_a_stream_that_stays_and_a_place_is_waited_for_on_one_connection() {
    run(async || {
        let target = Target2::start().await;
        let bed = Bed::new(&["lose", "at-once 300"], target.upstream());
        let peer = Peer::to(&bed).await;
        bed.on(0);
        let mut lost = peer.ask("/lost");
        until("the work is done", || target.requests() == 1).await;
        assert!(lost.is_silent().await);
        bed.off().await;
        assert!(lost.is_silent().await, "what was begun is done");
        bed.on(1);
        let first = peer.ask("/hold");
        until("it has the place", || target.held.get() == 1).await;
        let mut second = peer.ask("/second");
        assert!(second.is_silent().await, "it waits");
        let third = peer.get("/third").await;
        assert_eq!(third, "503 ", "the queue has room for one");
        target.let_go.notify_waiters();
        assert_eq!((first.text().await, second.text().await), ("200 /hold".into(), "200 /second".into()));
        let first = peer.ask("/hold");
        until("it has the place", || target.held.get() == 1).await;
        assert_eq!(peer.get("/late").await, "503 ", "after the longest wait");
        drop(first);
        until("whoever leaves gives it back", || target.held.get() == 0).await;
        assert_eq!(peer.get("/next").await, "200 /next");
    });
}

#[test]
fn streams_are_told_apart_by_what_matchers_look_at() {
    run(async || {
        use crate::fault::{Match, Which};
        let target = Target2::start().await;
        let wanted = Match { method: Some("GET".into()), path: Some("/pay*".into()), header: Default::default() };
        let which = Which { r#match: Some(wanted), ..Which::ALL };
        let step = crate::fault::Step { which, ..step("pay", 1, 2, fault("status 503")) };
        let bed = Bed::with(Timeline::new(vec![step], 7), 1, target.upstream());
        let peer = Peer::to(&bed).await;
        bed.on(0);
        assert_eq!((peer.get("/pay?a=1").await, peer.get("/other").await), ("503 ".into(), "200 /other".into()));
        assert_eq!(bed.timeline.touched(0), 1);
    });
}

#[test]
fn what_is_swallowed_is_a_stream_and_never_answered_or_goes_on_at_the_end() {
    run(async || {
        for (kind, released) in [("hang", false), ("hang-release", true), ("blackhole", false), ("blackhole-release", true)] {
            let target = Target2::start().await;
            let bed = Bed::new(&[kind], target.upstream());
            let peer = Peer::to(&bed).await;
            assert_eq!(peer.get("/").await, "200 /");
            let mut busy = peer.ask("/hold");
            until("it is held", || target.held.get() == 1).await;
            let (feed, body) = fed();
            let mut live = peer.send(to("/echo", body));
            feed.send(piece("before")).expect("it is read");
            let mut back = live.response().await.expect("an answer").into_body();
            assert_eq!(next(&mut back).await, "before");
            bed.on(0);
            let mut new = peer.ask("/new");
            feed.send(piece("during")).expect("it is read");
            target.let_go.notify_waiters();
            assert!(busy.is_silent().await && new.is_silent().await, "{kind}");
            assert!(tokio::time::timeout(Duration::from_millis(60), back.frame()).await.is_err(), "{kind}: nothing moves");
            assert_eq!((target.requests(), bed.timeline.touched(0)), (3, 3), "{kind}");
            bed.off().await;
            let ended = bed.now();
            assert_eq!(peer.get("/after").await, "200 /after", "{kind}");
            if released {
                assert_eq!((new.text().await, busy.text().await), ("200 /new".into(), "200 /hold".into()), "{kind}");
                assert_eq!(next(&mut back).await, "during");
                assert!(bed.now().since(ended) < crate::time::Span::from_std(SOON), "{kind}: within 50 ms");
            } else {
                assert!(busy.is_silent().await && new.is_silent().await, "{kind}: they are lost");
                drop((busy, new, live, back, feed));
                assert_eq!(peer.get("/more").await, "200 /more");
            }
        }
    });
}

#[test]
fn a_part_of_the_streams_is_struck_and_the_others_go_on() {
    run(async || {
        let target = Target2::start().await;
        let bed = Bed::new(&["reset-half", "blackhole-half"], target.upstream());
        let peer = Peer::to(&bed).await;
        assert_eq!(peer.get("/").await, "200 /");
        bed.on(0);
        let mut reset = 0;
        for _ in 0..40 {
            match peer.get("/").await.as_str() {
                "200 /" => {}
                other => {
                    assert!(other.contains("Reset(") && other.contains("INTERNAL_ERROR"), "{other}");
                    reset += 1;
                }
            }
        }
        assert!((8..=32).contains(&reset), "{reset}");
        assert_eq!(bed.timeline.touched(0), reset);
        bed.off().await;
        let mut held: Vec<Asked> = (0..40).map(|_| peer.ask("/hold")).collect();
        until("all are held", || target.held.get() == 40).await;
        bed.on(1);
        until("they are struck", || bed.timeline.touched(1) >= 8).await;
        let lost = bed.timeline.touched(1);
        target.let_go.notify_waiters();
        let mut answered = 0;
        until("the others are answered", || {
            answered = held.iter().filter(|asked| asked.0.is_finished()).count() as u64;
            answered + lost == 40
        })
        .await;
        held.retain(|asked| asked.0.is_finished());
        for asked in held {
            assert_eq!(asked.text().await, "200 /hold");
        }
        assert_eq!(bed.proxy.connections(), 1);
    });
}

#[test]
fn what_strikes_every_connection_resets_it() {
    run(async || {
        for kind in ["reset", "refuse"] {
            let target = Target2::start().await;
            let bed = Bed::new(&[kind], target.upstream());
            let (idle, busy) = (Peer::to(&bed).await, Peer::to(&bed).await);
            assert_eq!(idle.get("/").await, "200 /");
            let asked = busy.ask("/hold");
            until("it is held", || target.held.get() == 1).await;
            bed.on(0);
            let reset = |end: Result<(), String>| end.is_err_and(|why| why.contains("ConnectionReset"));
            assert!(reset(idle.end().await) && reset(busy.end().await), "{kind}");
            assert!(asked.text().await.contains("ConnectionReset"), "{kind}");
            assert_eq!(bed.timeline.touched(0), 2, "{kind}: once for each connection");
            if kind == "reset" {
                let new = Peer::to(&bed).await;
                assert!(new.get("/").await.contains("ConnectionReset"));
                assert_eq!(bed.timeline.touched(0), 3);
            }
            until("the upstream is let go", || target.held.get() == 0).await;
            bed.off().await;
            assert_eq!(Peer::to(&bed).await.get("/back").await, "200 /back");
        }
    });
}

#[test]
fn requests_of_ours_are_known_by_their_headers_and_told_where_there_is_no_upstream() {
    run(async || {
        let target = Target2::start().await;
        let bed = Bed::new(&["reset-half"], target.upstream());
        let ours = |n: u32| {
            let mut request = to("/", Fed::Nothing);
            let fields = request.headers_mut();
            fields.insert("idempotency-key", format!("{:032x}", u128::from(n) << 64 | 7).parse().expect("a value"));
            fields.insert("x-stormwake-attempt", "1".parse().expect("a value"));
            request
        };
        bed.on(0);
        let mut both = Vec::new();
        for _ in 0..2 {
            let peer = Peer::to(&bed).await;
            let mut struck = Vec::new();
            for n in 0..20 {
                struck.push(peer.send(ours(n)).text().await == "200 /");
            }
            both.push(struck);
        }
        assert_eq!(both[0], both[1], "the dice are those of the operation, whatever the connection");
        let nobody = Bed::new(&[], Upstream::at("127.0.0.1:1".parse().expect("an address")));
        let peer = Peer::to(&nobody).await;
        let mut told = peer.send(ours(1));
        let told = told.response().await.expect("an answer");
        let (name, value) = UNREACHABLE;
        assert_eq!((told.status().as_u16(), told.headers().get(name).map(|v| v.as_bytes())), (502, Some(value.as_bytes())));
        assert!(peer.get("/").await.contains("ConnectionReset"), "somebody else's connection is reset");
        assert_eq!(nobody.proxy.unreached().0, 2);
    });
}

#[test]
fn a_stream_that_its_client_resets_is_reset_upstream_and_costs_nothing() {
    run(async || {
        let target = Target2::start().await;
        let bed = Bed::new(&["hang"], target.upstream());
        let peer = Peer::to(&bed).await;
        for _ in 0..3 {
            let asked: Vec<Asked> = (0..100).map(|_| peer.ask("/hold")).collect();
            until("all are held", || target.held.get() == 100).await;
            drop(asked);
            until("the upstream knows", || target.held.get() == 0).await;
        }
        bed.on(0);
        for round in 1..=3 {
            let asked: Vec<Asked> = (0..150).map(|_| peer.ask("/")).collect();
            until("all are swallowed", || bed.timeline.touched(0) == 150 * round).await;
            drop(asked);
        }
        bed.off().await;
        assert_eq!(peer.get("/").await, "200 /", "there is room for more");
        assert!(peer.get("/broken").await.contains("INTERNAL_ERROR"), "the upstream's own reset is passed on");
        assert_eq!(peer.get("/").await, "200 /");
    });
}

#[test]
fn rapid_resets_are_cut_off_or_bounded_and_others_are_served() {
    run(async || {
        let target = Target2::start().await;
        let bed = Bed::new(&[], target.upstream());
        let mut abuser = bed.client().await;
        abuser.send_bytes(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
        let fields = b"\x82\x86\x84\x41\x01x";
        let mut flood = Vec::new();
        for stream in (0..20_000u32).map(|n| 2 * n + 1) {
            flood.extend_from_slice(&[0, 0, fields.len() as u8, 1, 5]);
            flood.extend_from_slice(&stream.to_be_bytes());
            flood.extend_from_slice(fields);
            flood.extend_from_slice(b"\0\0\x04\x03\0");
            flood.extend_from_slice(&stream.to_be_bytes());
            flood.extend_from_slice(&8u32.to_be_bytes());
        }
        let (mut reading, mut writing) = abuser.0.into_split();
        let flooding = tokio::task::spawn_local(async move { writing.write_all(&flood).await });
        let mut all = Vec::new();
        let _ = tokio::time::timeout(LONG, reading.read_to_end(&mut all)).await.expect("it is cut off");
        let (mut rest, mut codes) = (&all[..], Vec::new());
        while let [a, b, c, kind, ..] = *rest {
            let frame = rest.split_off(..9 + u32::from_be_bytes([0, a, b, c]) as usize).expect("whole frames");
            // GOAWAY: its reason stands behind the last stream that it counts.
            if kind == 7 {
                codes.push(frame[16]);
            }
        }
        assert_eq!(codes.last(), Some(&11), "ENHANCE_YOUR_CALM");
        let _ = flooding.await;
        assert_eq!(Peer::to(&bed).await.get("/").await, "200 /");
        until("it is gone", || bed.proxy.connections() <= 1).await;
    });
}

#[test]
fn an_upstream_that_leaves_takes_the_client_along_in_good_order_or_not() {
    run(async || {
        let target = Target2::start().await;
        let bed = Bed::new(&[], target.upstream());
        let peer = Peer::to(&bed).await;
        let busy = peer.ask("/hold");
        until("it is held", || target.held.get() == 1).await;
        target.ends.send_replace(1);
        // Whoever tells a peer to go hears it out: what is under way comes to its end.
        target.let_go.notify_waiters();
        assert_eq!(busy.text().await, "200 /hold");
        assert_eq!(peer.end().await, Ok(()), "the client is told to go, too");
        assert_eq!(Peer::to(&bed).await.get("/again").await, "200 /again");
        let peer = Peer::to(&bed).await;
        let busy = peer.ask("/hold");
        until("it is held", || target.held.get() == 1).await;
        target.ends.send_replace(2);
        let text = busy.text().await;
        assert!(!text.starts_with("200"), "{text}");
        let _ = peer.end().await;
        until("nothing is left", || bed.proxy.connections() == 0).await;
        assert_eq!(Peer::to(&bed).await.get("/again").await, "200 /again");
    });
}

#[test]
fn a_client_behind_tls_is_served_in_what_the_upstream_speaks() {
    run(async || {
        let connector = trusting(&["h2", "http/1.1"]);
        let agreed = |stream: &tokio_rustls::client::TlsStream<TcpStream>| stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        let (target, old) = (Target2::start().await, Target::start().await);
        let bed = tls_bed(Timeline::new(vec![], 7), target.upstream());
        for _ in 0..2 {
            let stream = shake(&bed, &connector, "localhost").await.expect("a good certificate");
            assert_eq!(agreed(&stream), Some(b"h2".to_vec()));
            let peer = Peer::on(stream).await;
            let (feed, body) = fed();
            let mut asked = peer.send(to("/echo", body));
            feed.send(piece("both ways")).expect("it is read");
            assert_eq!(next(&mut asked.response().await.expect("an answer").into_body()).await, "both ways");
        }
        assert_eq!(target.connections.get(), 2, "the wire that was asked is the one that is used");
        let bed = tls_bed(Timeline::new(vec![], 7), old.upstream());
        let stream = shake(&bed, &connector, "localhost").await.expect("a good certificate");
        assert_eq!(agreed(&stream), Some(b"h2".to_vec()), "nobody knows the upstream yet");
        let peer = Peer::on(stream).await;
        for path in ["/one", "/two"] {
            assert_eq!(peer.get(path).await, format!("200 {path}"));
        }
        let stream = shake(&bed, &connector, "localhost").await.expect("a good certificate");
        assert_eq!(agreed(&stream), Some(b"http/1.1".to_vec()), "it is known now");
    });
}

#[test]
fn an_upstream_behind_tls_is_spoken_to_in_what_it_agrees_on() {
    run(async || {
        let back = TlsBack { ca_file: None, server_name: None, insecure_accept_any_certificate: true };
        let (target, old) = (Target2::start().await, Target::start().await);
        let behind = tls_bed(Timeline::new(vec![], 7), target.upstream());
        let upstream = |bed: &Bed| Upstream::from_address(&format!("https://{}", bed.proxy.addr(0)), &back).expect("an upstream");
        let bed = Bed::new(&[], upstream(&behind));
        let peer = Peer::to(&bed).await;
        assert_eq!(peer.get("/").await, "200 /");
        assert_eq!(peer.get("/more").await, "200 /more");
        assert_eq!(target.connections.get(), 1);
        // It learns from one client of its own that there is no HTTP/2 behind it, and offers none.
        let behind = tls_bed(Timeline::new(vec![], 7), old.upstream());
        let first = Peer::on(shake(&behind, &trusting(&["h2"]), "localhost").await.expect("a good certificate")).await;
        assert_eq!(first.get("/").await, "200 /");
        let bed = Bed::new(&[], upstream(&behind));
        let peer = Peer::to(&bed).await;
        assert_eq!(peer.get("/down").await, "200 /down");
        let (feed, body) = fed();
        let posted = peer.send(to("/posted", body));
        drop(feed);
        assert_eq!(posted.text().await, "200 /posted");
    });
}

#[test]
fn a_shard_that_nobody_serves_any_more_closes_its_streams() {
    run(async || {
        let target = Target2::start().await;
        let setup = setup(&Timeline::new(vec![], 7), vec![0.into()], 1, target.upstream(), LiveClock::starting_now());
        let proxy = Arc::new(Proxy::bind(setup).expect("ports"));
        let serving = tokio::task::spawn_local(proxy.clone().serve(0));
        let peer = Peer::on(TcpStream::connect(proxy.addr(0)).await.expect("it listens")).await;
        let asked = peer.ask("/hold");
        until("it is held", || target.held.get() == 1).await;
        proxy.set_open(false);
        assert!(!asked.text().await.starts_with("200"));
        until("it is closed", || proxy.connections() == 0 && target.held.get() == 0).await;
        serving.abort();
    });
}
