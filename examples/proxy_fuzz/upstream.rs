//! Who stands behind the proxy: somebody who says anything, and somebody who does nothing wrong.

use crate::corpus::RESPONSES;
use crate::mutate::Dice;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// How long a hostile one listens, and how long it stays silent at most.
const GLANCE: Duration = Duration::from_millis(5);
const SILENCE: Duration = Duration::from_secs(1);

/// A service on a thread of its own, as long as the process.
pub struct Upstream {
    pub addr: SocketAddr,
    reached: Arc<AtomicU64>,
}

impl Upstream {
    pub fn hostile(seed: u64) -> Self {
        Self::start(Some(seed))
    }

    pub fn fine() -> Self {
        Self::start(None)
    }

    /// How many connections came this far.
    pub fn reached(&self) -> u64 {
        self.reached.load(Ordering::SeqCst)
    }

    fn start(hostile: Option<u64>) -> Self {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let addr = listener.local_addr().expect("an address");
        let reached = Arc::<AtomicU64>::default();
        let count = reached.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener");
                for number in 0.. {
                    let Ok((stream, _)) = listener.accept().await else { continue };
                    count.fetch_add(1, Ordering::SeqCst);
                    match hostile {
                        // Numbers that no message has.
                        Some(seed) => drop(tokio::spawn(harm(stream, Dice::of(seed, number | 1 << 63)))),
                        None => drop(tokio::spawn(answer(stream))),
                    }
                }
            });
        });
        Self { addr, reached }
    }
}

async fn harm(mut stream: TcpStream, mut dice: Dice) {
    let mut buffer = [0; 4096];
    for _ in 0..=dice.below(4) {
        if !dice.one_in(8) {
            let _ = timeout(GLANCE, stream.read(&mut buffer)).await;
        }
        let bytes = dice.harmed(RESPONSES);
        let pieces = 1 + dice.below(3);
        for piece in bytes.chunks(bytes.len() / pieces + 1) {
            let _ = timeout(GLANCE, stream.write_all(piece)).await;
        }
    }
    match dice.below(4) {
        0 => drop(stream.set_zero_linger()),
        1 => drop(stream.shutdown().await),
        2 => drop(timeout(SILENCE, async { while stream.read(&mut buffer).await.is_ok_and(|n| n > 0) {} }).await),
        _ => {}
    }
}

async fn answer(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).await.is_ok_and(|n| n > 0) {
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine").await.is_err() {
            return;
        }
    }
}
