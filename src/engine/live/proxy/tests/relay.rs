//! Without faults: bytes arrive as they were sent, ends are seen, and bad peers harm nobody but themselves.

use super::*;
use crate::rng::{Key, Purpose, Stream};

#[test]
fn requests_are_answered_on_one_connection_to_the_upstream() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&[], target.upstream());
        let mut client = bed.client().await;
        assert_eq!(target.open.get(), 0, "no request, no connect");
        for n in 0..50 {
            assert_eq!(client.get(&format!("/{n}")).await, format!("200 /{n}"));
        }
        assert_eq!((target.requests(), target.open.get()), (50, 1));
        drop(client);
        until("the upstream's connection is closed too", || target.open.get() == 0 && bed.proxy.connections() == 0).await;
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&[], target.upstream());
        let mut client = bed.client().await;
        let requests: Vec<String> = (0..20).map(|n| format!("POST /{n} HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc")).collect();
        client.send_bytes(requests.concat().as_bytes()).await;
        for n in 0..20 {
            assert_eq!(client.response().await, format!("200 /{n}"));
        }
    });
}

/// A message with a body, chunked or by length.
fn message(draw: &mut Stream, first_line: &str) -> Vec<u8> {
    let size = (draw.bits() % 200_000) as usize;
    let body: Vec<u8> = (0..size).map(|_| draw.bits() as u8).collect();
    let mut message = format!("{first_line}\r\nx: {}\r\n", "y".repeat((draw.bits() % 500) as usize)).into_bytes();
    if draw.unit() < 0.5 {
        message.extend_from_slice(format!("content-length: {size}\r\n\r\n").as_bytes());
        message.extend_from_slice(&body);
        return message;
    }
    message.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    let mut rest = &body[..];
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rest.len().min(1 + (draw.bits() % 60_000) as usize));
        message.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        message.extend_from_slice(chunk);
        message.extend_from_slice(b"\r\n");
        rest = after;
    }
    message.extend_from_slice(b"0\r\n\r\n");
    message
}

fn pieces(draw: &mut Stream, mut message: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    while !message.is_empty() {
        let most = if draw.unit() < 0.5 { 40 } else { 50_000 };
        let (piece, rest) = message.split_at(message.len().min(1 + (draw.bits() % most) as usize));
        pieces.push(piece.to_vec());
        message = rest;
    }
    pieces
}

#[test]
fn random_messages_in_random_pieces_arrive_as_they_were_sent() {
    run(async || {
        for case in 0..30 {
            let mut draw = Key { seed: case, ..Key::default() }.stream(Purpose::Network);
            let request = message(&mut draw, "POST /up HTTP/1.1");
            let interim = if draw.unit() < 0.3 { "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" } else { "" };
            let response = [interim.as_bytes(), &message(&mut draw, "HTTP/1.1 200 OK")].concat();
            let (upstream, reading) = scripted(request.len(), pieces(&mut draw, &response), false).await;
            let bed = Bed::new(&[], upstream);
            let (mut read, mut write) = bed.client().await.0.into_split();
            let parts = pieces(&mut draw, &request);
            let sending = tokio::task::spawn_local(async move {
                for part in parts {
                    write.write_all(&part).await.expect("the proxy reads");
                }
                write
            });
            let mut got = vec![0; response.len()];
            read.read_exact(&mut got).await.expect("the whole response");
            assert!(got == response, "case {case}: the response is changed");
            drop((read, sending.await.expect("it was sent")));
            assert!(reading.await.expect("it was read") == request, "case {case}: the request is changed");
        }
    });
}

#[test]
fn responses_without_a_body_leave_the_connection_usable() {
    run(async || {
        let answers = ["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"];
        let requests = ["HEAD / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"];
        for (request, answer) in requests.into_iter().zip(answers) {
            let (upstream, _reading) = scripted(request.len(), vec![answer.into()], false).await;
            let bed = Bed::new(&["status 503"], upstream);
            let mut client = bed.client().await;
            client.send_bytes(request.as_bytes()).await;
            let mut got = vec![0; answer.len()];
            client.0.read_exact(&mut got).await.expect("the answer");
            assert_eq!(got, answer.as_bytes());
            // Answered by the proxy: it knows that the next request begins here.
            bed.on(0);
            assert_eq!(client.get("/").await, "503 ");
        }
    });
}

#[test]
fn an_end_at_the_upstream_is_an_end_at_the_client() {
    run(async || {
        let until_close = "HTTP/1.1 200 OK\r\n\r\nall of it";
        let cut_short = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nnot all";
        let no_http = "SSH-2.0-OpenSSH_9.2\r\n\r\nbinary \0\u{1}";
        let surplus = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok, and more than was announced";
        for answer in [until_close, cut_short, no_http, surplus, ""] {
            let (upstream, _reading) = scripted(18, vec![answer.into()], true).await;
            let bed = Bed::new(&[], upstream);
            let mut client = bed.client().await;
            client.send_bytes(b"GET / HTTP/1.1\r\n\r\n").await;
            assert_eq!(client.rest().await, (answer.as_bytes().to_vec(), None), "{answer:?}");
        }
    });
}

#[test]
fn what_the_upstream_says_unasked_arrives_whole() {
    run(async || {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let bed = Bed::new(&[], Upstream::at(listener.local_addr().expect("an address")));
        let mut client = bed.client().await;
        client.send_bytes(b"GET / HTTP/1.1\r\n\r\n").await;
        let (mut stream, _) = listener.accept().await.expect("the proxy dials");
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.expect("a reader");
        assert_eq!(client.response().await, "204 ");
        let bye = b"HTTP/1.1 408 Request Timeout\r\n\r\n";
        stream.write_all(bye).await.expect("a reader");
        drop(stream);
        let (rest, _) = client.rest().await;
        assert_eq!(rest, bye);
    });
}

#[test]
fn an_upgrade_becomes_a_tunnel() {
    run(async || {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let bed = Bed::new(&[], Upstream::at(listener.local_addr().expect("an address")));
        let mut client = bed.client().await;
        client.send_bytes(b"GET / HTTP/1.1\r\nupgrade: x\r\n\r\nearly").await;
        let (mut stream, _) = listener.accept().await.expect("the proxy dials");
        let mut head = [0; 30];
        stream.read_exact(&mut head).await.expect("the head");
        stream.write_all(b"HTTP/1.1 101 Switching\r\n\r\n\x00down").await.expect("a reader");
        let mut down = [0; 31];
        client.0.read_exact(&mut down).await.expect("the switch and what follows");
        client.send_bytes(b"\xff up").await;
        let mut up = [0; 9];
        stream.read_exact(&mut up).await.expect("the client's bytes");
        assert_eq!(&up, b"early\xff up");
        drop(client);
        assert!(stream.read_u8().await.is_err(), "the end passes too");
    });
}

#[test]
fn a_client_that_waits_for_leave_to_send_its_body_gets_it() {
    run(async || {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let bed = Bed::new(&["status 503"], Upstream::at(listener.local_addr().expect("an address")));
        let head = b"PUT / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n";
        let mut client = bed.client().await;
        client.send_bytes(head).await;
        let (mut stream, _) = listener.accept().await.expect("the proxy dials");
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.expect("a reader");
        assert_eq!(client.response().await, "100 ");
        client.send_bytes(b"body").await;
        let mut read = vec![0; head.len() + 4];
        stream.read_exact(&mut read).await.expect("head and body");
        assert!(read.ends_with(b"\r\n\r\nbody"));
        // A fault answers such a client at once, and the connection cannot go on.
        bed.on(0);
        let mut other = bed.client().await;
        other.send_bytes(head).await;
        assert_eq!(other.response().await, "503 ");
        assert_eq!(other.rest().await, (vec![], None));
    });
}

#[test]
fn what_is_no_request_is_told_so_and_closed() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&[], target.upstream());
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(150));
        let large = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(70_000));
        for (bytes, want) in [
            (&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], "400 "),
            (b"POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "400 "),
            (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nnot a chunk\r\n", "400 "),
            (many.as_bytes(), "431 "),
            (large.as_bytes(), "431 "),
        ] {
            let mut client = bed.client().await;
            client.send_bytes(bytes).await;
            assert_eq!(client.response().await, want);
            assert_eq!(client.rest().await, (vec![], None), "{want}");
        }
        assert_eq!(target.requests(), 0);
        assert!(bed.proxy.notices().iter().any(|notice| notice.starts_with("2 requests were answered with 431")));
        assert!(bed.proxy.limits().contains(&("request head", 2)));
        until("they are gone", || bed.proxy.connections() == 0).await;
    });
}

#[test]
fn a_request_that_drips_in_holds_up_nobody() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&[], target.upstream());
        let mut slow = bed.client().await;
        slow.0.set_nodelay(true).expect("a socket");
        for byte in b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n" {
            slow.send_bytes(&[*byte]).await;
            tokio::task::yield_now().await;
        }
        assert_eq!(bed.idle().await.get("/fast").await, "200 /fast");
        assert_eq!(slow.response().await, "200 /slow");
    });
}

#[test]
fn a_client_that_does_not_read_holds_a_bounded_part_of_the_response() {
    run(async || {
        const SIZE: usize = 64 << 20;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let bed = Bed::new(&["reset"], Upstream::at(listener.local_addr().expect("an address")));
        let mut client = bed.client().await;
        client.send("/").await;
        let (mut stream, _) = listener.accept().await.expect("the proxy dials");
        stream.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {SIZE}\r\n\r\n").as_bytes()).await.expect("a reader");
        let written = Cell::new(0);
        let write = async {
            while let Ok(n) = stream.write(&[0; 65_536]).await {
                written.set(written.get() + n);
            }
        };
        let stuck = tokio::time::timeout(Duration::from_millis(300), write).await;
        assert!(stuck.is_err() && written.get() < SIZE, "the kernel's buffers fill, and then nothing moves");
        bed.on(0);
        until("even so a fault ends it", || bed.proxy.connections() == 0).await;
    });
}

#[test]
fn an_upstream_that_is_not_there_resets_the_client() {
    run(async || {
        let port = listen::Port::reserve(None).expect("a port");
        let bed = Bed::new(&[], Upstream::at(port.addr));
        let mut client = bed.client().await;
        client.send("/").await;
        assert!(client.is_reset().await, "never an answer that the target did not give");
        let mut ours = bed.client().await;
        ours.send_ours(1).await;
        let (head, _) = ours.read_response().await.expect("a client of ours is told what it is");
        assert!(head.starts_with("HTTP/1.1 502") && head.contains("x-stormwake-connect: failed"), "{head}");
        assert_eq!(bed.proxy.unreached().0, 2);
        assert!(bed.proxy.unreached().1.contains("refused"), "{:?}", bed.proxy.unreached());
        let _listener = listen::open(port.addr, 16).expect("a listener");
        bed.client().await.send("/").await;
    });
}

#[test]
fn an_upstream_that_resets_resets_the_client() {
    run(async || {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let bed = Bed::new(&[], Upstream::at(listener.local_addr().expect("an address")));
        let mut client = bed.client().await;
        client.send("/").await;
        let (stream, _) = listener.accept().await.expect("the proxy dials");
        stream.set_zero_linger().expect("a socket");
        drop(stream);
        assert!(client.is_reset().await);
    });
}

#[test]
fn the_guard_is_asked_at_every_connect() {
    run(async || {
        let target = Target::start().await;
        let addr = target.addr;
        let allowed = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let asked = allowed.clone();
        let resolve: Resolve = Arc::new(move || match asked.load(Ordering::Relaxed) {
            true => Ok(addr),
            false => Err("10.0.0.1 is not allowed by the plan".into()),
        });
        let bed = Bed::new(&[], Upstream::resolved_by(resolve));
        let mut before = bed.idle().await;
        allowed.store(false, Ordering::Relaxed);
        let mut after = bed.client().await;
        after.send("/").await;
        assert!(after.is_reset().await);
        assert_eq!(before.get("/x").await, "200 /x", "what is connected stays connected");
        assert!(
            bed.proxy
                .notices()
                .iter()
                .any(|n| n == "1 connects to the target were not made: 10.0.0.1 is not allowed by the plan")
        );
    });
}

#[test]
fn an_upstream_behind_tls() {
    use rustls_pki_types::pem::PemObject;
    use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    // Made for this test: a CA, and a leaf for `localhost`. They guard nothing.
    let ca = CertificateDer::from_pem_slice(include_bytes!("tls_ca.pem")).expect("a certificate");
    let leaf = CertificateDer::from_pem_slice(include_bytes!("tls_leaf.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls_leaf.key")).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let server = server.expect("versions").with_no_client_auth().with_single_cert(vec![leaf], key).expect("a pair");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(ca).expect("a root");
    let client = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let client = Arc::new(client.expect("versions").with_root_certificates(roots).with_no_client_auth());
    run(async move || {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server));
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut head = vec![0; 256];
                let n = stream.read(&mut head).await.expect("a request");
                let answer = [format!("HTTP/1.1 200 OK\r\ncontent-length: {n}\r\n\r\n").as_bytes(), &head[..n]].concat();
                stream.write_all(&answer).await.expect("a reader");
                stream.flush().await.expect("a reader");
            }
        });
        let upstream =
            |name: &str| Upstream::at(addr).with_tls(client.clone(), ServerName::try_from(name.to_string()).expect("a name"));
        let mut good = Bed::new(&[], upstream("localhost")).client().await;
        assert_eq!(good.get("/").await, "200 GET / HTTP/1.1\r\nhost: x\r\n\r\n", "the request as it was, its host too");
        let mut wrong = Bed::new(&[], upstream("example.org")).client().await;
        wrong.send("/").await;
        assert!(wrong.is_reset().await, "a certificate for another name is no upstream");
    });
}
