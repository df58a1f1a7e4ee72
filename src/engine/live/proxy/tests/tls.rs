//! TLS from clients: good certificates and bad ones, handshakes that hang, and what is no handshake at all.

use super::*;
use crate::engine::live::certificates::Authority;
use crate::engine::live::tls::client_for;
use crate::fault::Step;
use crate::plan::TlsBack;
use crate::time::Share;
use rustls::CertificateError as Wrong;
use rustls_pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The authority of these tests: made once, for keys are dear in a build without optimising.
pub(super) fn authority() -> &'static Authority {
    static ONE: std::sync::OnceLock<Authority> = std::sync::OnceLock::new();
    ONE.get_or_init(|| Authority::new(LiveClock::starting_now().wall()).expect("randomness"))
}

/// A proxy that speaks TLS to its clients.
pub(super) fn bed(timeline: Timeline, upstream: Upstream) -> Bed {
    let clock = LiveClock::starting_now();
    let setup = setup(&timeline, vec![0.into()], 1, upstream, clock.clone());
    let certificates = authority().certify(&["provider.test".to_string()]).expect("names");
    let proxy = Proxy::bind(setup).expect("ports").with_tls(ClientTls::new(&certificates).expect("settings"));
    let proxy = Arc::new(proxy);
    tokio::task::spawn_local(proxy.clone().serve(0));
    Bed { proxy, timeline, clock }
}

/// Fault n of the list acts while it is switched on.
fn of(faults: &[&str], upstream: Upstream) -> Bed {
    bed(Timeline::new((1..).zip(faults).map(|(n, text)| step(text, n, n + 1, fault(text))).collect(), 7), upstream)
}

/// What a client that trusts the authority, and speaks these, needs.
pub(super) fn trusting(protocols: &[&str]) -> TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority().certificate().clone()).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

type Shaken = std::io::Result<TlsStream<TcpStream>>;

pub(super) async fn shake(bed: &Bed, connector: &TlsConnector, name: &'static str) -> Shaken {
    let stream = TcpStream::connect(bed.proxy.addr(0)).await.expect("the proxy listens");
    connector.connect(ServerName::try_from(name).expect("a name"), stream).await
}

async fn get(stream: &mut TlsStream<TcpStream>, path: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("it is read");
    let mut all = Vec::new();
    while !all.ends_with(path.as_bytes()) {
        let mut piece = [0; 512];
        let read = tokio::time::timeout(LONG, stream.read(&mut piece)).await.expect("something").expect("a stream");
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&piece[..read]);
    }
    String::from_utf8(all).expect("text")
}

fn why(shaken: Shaken) -> rustls::Error {
    let error = shaken.map(drop).expect_err("it is refused");
    *error.into_inner().expect("it has a reason").downcast().expect("one of TLS")
}

#[test]
fn a_client_that_trusts_the_run_is_served_under_every_name() {
    run(async || {
        let target = Target::start().await;
        let bed = of(&["status 503"], target.upstream());
        let connector = trusting(&["http/1.1"]);
        for name in ["localhost", "127.0.0.1", "::1", "provider.test"] {
            let mut stream = shake(&bed, &connector, name).await.expect(name);
            assert!(get(&mut stream, "/one").await.starts_with("HTTP/1.1 200"));
            assert!(get(&mut stream, "/two").await.starts_with("HTTP/1.1 200"));
        }
        assert!(shake(&bed, &connector, "other.test").await.is_err());
        assert!(shake(&bed, &trusting(&["spdy"]), "localhost").await.is_err(), "no protocol in common");
        let mut stream = shake(&bed, &trusting(&[]), "localhost").await.expect("no protocol is named");
        bed.on(0);
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.expect("it is read");
        let mut all = String::new();
        stream.read_to_string(&mut all).await.expect("it ends as TLS should");
        assert!(all.starts_with("HTTP/1.1 503"), "{all}");
        assert_eq!(target.requests(), 8);
        drop(stream);
        until("all are gone", || bed.proxy.connections() == 0).await;
    });
}

#[test]
fn each_bad_certificate_is_refused_for_its_own_reason_and_spares_who_is_there() {
    run(async || {
        let target = Target::start().await;
        let bed = of(&["expired", "not_yet_valid", "wrong_name", "untrusted"], target.upstream());
        // One connector for all: it keeps sessions, and would rather resume one than look at a certificate.
        let connector = trusting(&["http/1.1"]);
        let mut spared = shake(&bed, &connector, "localhost").await.expect("a good certificate");
        get(&mut spared, "/before").await;
        type Is = fn(&Wrong) -> bool;
        let wanted: [Is; 4] = [
            |why| matches!(why, Wrong::Expired | Wrong::ExpiredContext { .. }),
            |why| matches!(why, Wrong::NotValidYet | Wrong::NotValidYetContext { .. }),
            |why| matches!(why, Wrong::NotValidForName | Wrong::NotValidForNameContext { .. }),
            |why| matches!(why, Wrong::UnknownIssuer),
        ];
        for (number, is) in wanted.iter().enumerate() {
            bed.on(number as u64);
            match why(shake(&bed, &connector, "localhost").await) {
                rustls::Error::InvalidCertificate(why) => assert!(is(&why), "{number}: {why:?}"),
                other => panic!("{number}: {other:?}"),
            }
            until("it is counted", || bed.timeline.touched(number) == 1).await;
            assert!(get(&mut spared, "/during").await.starts_with("HTTP/1.1 200"));
            bed.off().await;
            let mut back = shake(&bed, &connector, "localhost").await.expect("a good certificate again");
            get(&mut back, "/after").await;
        }
        assert!(bed.proxy.notices().is_empty(), "what a fault does is no trouble: {:?}", bed.proxy.notices());
    });
}

#[test]
fn a_share_of_the_connections_is_shown_a_bad_certificate() {
    run(async || {
        let target = Target::start().await;
        let kind = crate::fault::CertificateKind::Untrusted;
        let half = crate::fault::Fault::Certificate(crate::fault::Certificate { kind, share: Share::new(0.5).expect("a share") });
        let bed = bed(Timeline::new(vec![step("half", 1, 2, half)], 7), target.upstream());
        bed.on(0);
        let mut refused = 0;
        for _ in 0..40 {
            refused += u64::from(shake(&bed, &trusting(&[]), "localhost").await.is_err());
        }
        assert!((8..=32).contains(&refused), "{refused}");
        until("they are counted", || bed.timeline.touched(0) == refused).await;
    });
}

#[test]
fn a_handshake_hangs_until_its_client_gives_up_or_the_fault_lets_go() {
    run(async || {
        let target = Target::start().await;
        for (kind, released) in [
            ("handshake-hang", false),
            ("handshake-hang-release", true),
            ("hang", false),
            ("hang-release", true),
            ("blackhole", false),
        ] {
            let bed = of(&[kind], target.upstream());
            let connector = trusting(&[]);
            let mut spared = shake(&bed, &connector, "localhost").await.expect("nothing acts");
            bed.on(0);
            let mut held = Box::pin(shake(&bed, &connector, "localhost"));
            let mut gives_up = Box::pin(shake(&bed, &connector, "localhost"));
            let both = async { tokio::join!(&mut held, &mut gives_up) };
            assert!(tokio::time::timeout(Duration::from_millis(60), both).await.is_err(), "{kind}: nothing is answered");
            assert_eq!(bed.timeline.touched(0), 2, "{kind}");
            drop(gives_up);
            until("a client that gave up is dropped while the fault acts", || bed.proxy.connections() == 2).await;
            bed.off().await;
            if kind.starts_with("handshake") {
                get(&mut spared, "/spared").await;
            }
            if released {
                get(&mut held.await.expect("it goes on"), "/late").await;
            } else {
                assert!(tokio::time::timeout(Duration::from_millis(60), &mut held).await.is_err(), "{kind}: it is lost");
            }
        }
    });
}

#[test]
fn refuse_resets_handshakes_that_are_under_way() {
    run(async || {
        let target = Target::start().await;
        let steps = vec![step("hold", 1, 3, fault("handshake-hang")), step("refuse", 2, 3, fault("refuse"))];
        let bed = bed(Timeline::new(steps, 7), target.upstream());
        let mut silent = TcpStream::connect(bed.proxy.addr(0)).await.expect("it listens");
        let connector = trusting(&[]);
        bed.on(0);
        let mut held = Box::pin(shake(&bed, &connector, "localhost"));
        let held_up = tokio::time::timeout(Duration::from_millis(20), &mut held).await;
        assert!(held_up.is_err());
        until("it is held", || bed.timeline.touched(0) == 1).await;
        bed.on(1);
        let end = silent.read_u8().await.expect_err("an end").kind();
        assert_eq!(end, ErrorKind::ConnectionReset);
        assert_eq!(held.await.map(drop).expect_err("an end").kind(), ErrorKind::ConnectionReset);
        assert_eq!(bed.timeline.touched(1), 2);
    });
}

#[test]
fn what_is_no_handshake_is_told_so_and_counted() {
    run(async || {
        let target = Target::start().await;
        let bed = of(&[], target.upstream());
        let failed = || bed.proxy.limits().iter().find(|(name, _)| *name == "TLS handshakes of clients").map_or(0, |(_, n)| *n);
        for garbage in [&b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"[..], &[0; 200], b"\x16\x03\x01\x00\x05hello", b"SSH-2.0-x\r\n"] {
            let before = failed();
            let mut client = Client(TcpStream::connect(bed.proxy.addr(0)).await.expect("it listens"));
            client.send_bytes(garbage).await;
            let (said, _) = client.rest().await;
            assert!(said.first().is_none_or(|&kind| kind == 21), "an alert, or nothing: {said:?}");
            until("it is counted", || failed() == before + 1).await;
        }
        drop(TcpStream::connect(bed.proxy.addr(0)).await.expect("it listens"));
        until("who only came and went is gone", || bed.proxy.connections() == 0).await;
        assert_eq!((failed(), target.requests()), (4, 0));
        assert!(bed.proxy.notices().iter().any(|notice| notice.contains("TLS handshakes of clients failed")));
    });
}

#[test]
fn two_hundred_half_open_handshakes_hold_up_nobody() {
    run(async || {
        let target = Target::start().await;
        let bed = of(&[], target.upstream());
        let mut half_open = Vec::new();
        for number in 0..200 {
            let mut stream = TcpStream::connect(bed.proxy.addr(0)).await.expect("it listens");
            if number % 2 == 0 {
                stream.write_all(b"\x16\x03\x01\x02\x00\x01").await.expect("it is read");
            }
            half_open.push(stream);
        }
        until("they are all in", || bed.proxy.connections() == 200).await;
        let connector = trusting(&[]);
        let began = bed.now();
        for _ in 0..5 {
            get(&mut shake(&bed, &connector, "localhost").await.expect("a good certificate"), "/").await;
        }
        let took = bed.now().since(began);
        assert!(took < crate::time::Span::from_secs(2), "{took}");
        drop(half_open);
        until("they are all gone", || bed.proxy.connections() == 0).await;
    });
}

#[test]
fn a_large_answer_comes_whole_through_tls_however_slowly_it_is_read() {
    run(async || {
        let size = 3_000_000;
        let body: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n");
        let (upstream, reading) = scripted(18, vec![head.clone().into_bytes(), body.clone()], false).await;
        let bed = of(&[], upstream);
        let mut stream = shake(&bed, &trusting(&[]), "localhost").await.expect("a good certificate");
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("it is read");
        let (mut all, whole) = (Vec::new(), head.len() + size);
        while all.len() < whole {
            let mut piece = vec![0; 10_000];
            let read = stream.read(&mut piece).await.expect("a stream");
            assert_ne!(read, 0);
            all.extend_from_slice(&piece[..read]);
            tokio::task::yield_now().await;
        }
        assert!(all.len() == whole && all.ends_with(&body));
        drop(stream);
        reading.await.expect("it has read");
    });
}

#[test]
fn an_upstream_behind_tls_is_believed_by_its_authority_alone_unless_asked_loudly() {
    run(async || {
        let target = Target::start().await;
        // A proxy that speaks TLS is the upstream of one that does not.
        let (behind, folder) = (of(&["wrong_name"], target.upstream()), std::env::temp_dir());
        let file = folder.join(format!("stormwake-upstream-{}.pem", std::process::id()));
        let path = file.to_str().expect("a path").to_string();
        authority().write(&path).expect("a file");
        let back = |ca_file: Option<&str>, server_name: Option<&str>, insecure| TlsBack {
            ca_file: ca_file.map(ToString::to_string),
            server_name: server_name.map(ToString::to_string),
            insecure_accept_any_certificate: insecure,
        };
        let address = format!("https://{}", behind.proxy.addr(0));
        let served = async |back: TlsBack| {
            let bed = Bed::new(&[], Upstream::from_address(&address, &back).expect("an upstream"));
            bed.client().await.get("/").await
        };
        assert_eq!(served(back(Some(&path), None, false)).await, "200 /");
        assert_eq!(served(back(Some(&path), Some("provider.test"), false)).await, "200 /");
        assert_eq!(served(back(Some(&path), Some("other.test"), false)).await, "ConnectionReset");
        assert_eq!(served(back(None, None, true)).await, "200 /");
        behind.on(0);
        assert_eq!(served(back(Some(&path), None, false)).await, "ConnectionReset");
        assert_eq!(served(back(None, None, true)).await, "200 /", "it asked for it");
        std::fs::remove_file(&file).expect("it is there");
        assert!(client_for("localhost", &back(Some(&path), None, false)).is_err());
    });
}

#[test]
fn a_fault_of_handshakes_for_one_fleet_leaves_the_other_alone() {
    run(async || {
        let target = Target::start().await;
        let timeline = Timeline::new(vec![Step { fleets: Some(vec![1]), ..step("bad", 1, 2, fault("expired")) }], 7);
        let bed = bed(timeline, target.upstream());
        bed.on(0);
        assert!(shake(&bed, &trusting(&[]), "localhost").await.is_ok());
        assert_eq!(bed.timeline.touched(0), 0);
    });
}

#[test]
fn what_closes_connections_waits_for_no_handshake_and_ends_them_in_order() {
    run(async || {
        let target = Target::start().await;
        let bed = of(&["close"], target.upstream());
        let connector = trusting(&["http/1.1"]);
        let mut there = shake(&bed, &connector, "localhost").await.expect("a good certificate");
        get(&mut there, "/before").await;
        let mut greeting = bed.client().await;
        greeting.send_bytes(b"\x16\x03\x01\x02\x00\x01").await;
        until("both are in", || bed.proxy.connections() == 2).await;
        bed.on(0);
        let mut rest = Vec::new();
        let end = tokio::time::timeout(LONG, there.read_to_end(&mut rest)).await.expect("an end");
        assert_eq!((end.map_err(|error| error.kind()), rest), (Ok(0), vec![]), "it is told in TLS that this is the end");
        assert_eq!(greeting.rest().await, (vec![], None));
        assert_eq!(bed.client().await.rest().await, (vec![], None), "who has said nothing too");
        assert!(shake(&bed, &connector, "localhost").await.is_err());
        until("all are counted", || bed.timeline.touched(0) == 4).await;
        drop((there, greeting));
        until("all are gone", || bed.proxy.connections() == 0).await;
    });
}

#[test]
fn the_end_of_an_answer_waits_in_tls_for_who_reads_late() {
    run(async || {
        let body: Vec<u8> = (0..6_000_000).map(|n| (n % 251) as u8).collect();
        let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        let (upstream, reading) = scripted(18, vec![head.clone(), body.clone()], true).await;
        let bed = of(&[], upstream);
        let mut stream = shake(&bed, &trusting(&[]), "localhost").await.expect("a good certificate");
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("it is read");
        let mut all = Vec::new();
        while all.len() < head.len() + body.len() {
            let mut piece = vec![0; 50_000];
            let read = tokio::time::timeout(LONG, stream.read(&mut piece)).await.expect("something").expect("a stream");
            assert_ne!(read, 0, "after {} bytes", all.len());
            all.extend_from_slice(&piece[..read]);
            // The proxy is always ahead, and so is the end.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
        assert!(all.ends_with(&body));
        assert_eq!(stream.read(&mut [0]).await.map_err(|error| error.kind()), Ok(0), "it ends as TLS should");
        reading.await.expect("it has read");
        drop(stream);
        until("it is gone", || bed.proxy.connections() == 0).await;
    });
}
