//! Many connections at once, and how soon they are back after an outage.

use super::*;
use crate::time::Span;

const CLIENTS: usize = 2_000;

#[test]
fn two_thousand_clients_through_an_outage_and_nothing_is_left_behind() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["blackhole"], target.upstream());
        let descriptors = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(bed.client().await);
        }
        all(&mut clients, "200 /before", "/before").await;
        let most = descriptors();
        bed.on(0);
        for client in &mut clients {
            client.send("/during").await;
        }
        until("all are swallowed", || bed.timeline.touched(0) == CLIENTS as u64).await;
        bed.off().await;
        drop(clients);
        until("all are dropped", || bed.proxy.connections() == 0 && target.open.get() == 0).await;
        // Each client takes four sockets here: its own, two of the proxy, one of the target. Other tests run beside.
        assert!(cfg!(not(target_os = "linux")) || descriptors() + 4 * CLIENTS < most + CLIENTS);
        let mut back = Vec::new();
        for _ in 0..CLIENTS / 4 {
            back.push(bed.client().await);
        }
        all(&mut back, "200 /after", "/after").await;
    });
}

async fn all(clients: &mut [Client], want: &str, path: &str) {
    for client in &mut *clients {
        client.send(path).await;
    }
    for client in clients {
        assert_eq!(client.response().await, want);
    }
}

#[test]
fn after_two_seconds_of_hang_the_next_attempt_is_served_within_50_ms() {
    run(async || {
        let target = Target::start().await;
        let bed = Bed::new(&["hang"], target.upstream());
        let mut old = bed.idle().await;
        bed.on(0);
        let mut stuck = Vec::new();
        for _ in 0..200 {
            let mut client = bed.client().await;
            client.send("/stuck").await;
            stuck.push(client);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(bed.proxy.clear());
        let ended = bed.now();
        assert_eq!(old.get("/old").await, "200 /old");
        assert_eq!(bed.client().await.get("/new").await, "200 /new");
        let lag = bed.now().since(ended);
        assert!(lag < Span::from_std(SOON), "{lag}");
        assert_eq!((bed.timeline.touched(0), target.requests()), (200, 3));
    });
}

#[test]
fn two_shards_on_two_threads_close_and_open_one_port() {
    run(async || {
        let stop = tokio::sync::watch::Sender::new(());
        let target = Target::start().await;
        let timeline = Timeline::new(vec![step("refuse", 1, 2, fault("refuse"))], 7);
        let clock = LiveClock::starting_now();
        let setup = setup(&timeline, vec![0.into()], 2, target.upstream(), clock);
        let proxy = Arc::new(Proxy::bind(setup).expect("ports"));
        let threads: Vec<_> = (0..2).map(|shard| serving(proxy.clone(), shard, stop.subscribe())).collect();
        for _ in 0..3 {
            let mut clients = Vec::new();
            for _ in 0..40 {
                clients.push(Client(TcpStream::connect(proxy.addr(0)).await.expect("it listens")));
            }
            all(&mut clients, "200 /", "/").await;
            proxy.apply(timeline.active(at(1)));
            assert!(proxy.settled(LONG).await);
            for client in &mut clients {
                assert!(client.is_reset().await);
            }
            for _ in 0..20 {
                assert!(TcpStream::connect(proxy.addr(0)).await.is_err(), "neither shard listens");
            }
            assert!(proxy.clear() && proxy.settled(LONG).await);
        }
        assert_eq!(timeline.touched(0), 120);
        drop(stop);
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        assert_eq!(proxy.connections(), 0);
    });
}

/// Serves a shard on a thread of its own until the sender of `stop` is dropped.
fn serving(proxy: Arc<Proxy>, shard: usize, mut stop: tokio::sync::watch::Receiver<()>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        LocalSet::new().block_on(&runtime, async {
            tokio::select! {
                () = proxy.serve(shard) => {}
                _ = stop.changed() => {}
            }
        });
    })
}
