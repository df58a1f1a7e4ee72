//! The threads that serve: each has a runtime of its own, and on it a part of every proxy.

use crate::engine::live::proxy::Proxy;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How long the tasks of a proxy that goes may take to let go of its listeners.
const LEAVING: Duration = Duration::from_secs(1);

enum Order {
    /// Serve a proxy, under this number.
    Serve { id: u64, proxy: Arc<Proxy>, done: oneshot::Sender<()> },
    /// Serve it no more.
    Drop { id: u64, done: oneshot::Sender<()> },
}

/// The threads. They end with the value.
pub struct Shards {
    all: Vec<(mpsc::UnboundedSender<Order>, Option<JoinHandle<()>>)>,
    next: u64,
}

/// Becomes ready for each thread that has done something.
pub type Done = Vec<oneshot::Receiver<()>>;

impl Shards {
    /// Starts so many.
    ///
    /// # Errors
    /// When the system gives no thread, or no runtime on it.
    pub fn start(count: usize) -> io::Result<Self> {
        let start = |index: usize| {
            let (orders, taken) = mpsc::unbounded_channel();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let serve = move || tokio::task::LocalSet::new().block_on(&runtime, serve(index, taken));
            let thread = std::thread::Builder::new().name(format!("proxy-{index}")).spawn(serve)?;
            Ok((orders, Some(thread)))
        };
        Ok(Self { all: (0..count).map(start).collect::<io::Result<_>>()?, next: 0 })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Has all of them serve a proxy; gives its number.
    pub fn serve(&mut self, proxy: &Arc<Proxy>) -> (u64, Done) {
        self.next += 1;
        let id = self.next;
        (id, self.tell(|done| Order::Serve { id, proxy: proxy.clone(), done }))
    }

    /// Has all of them drop a proxy, its connections, and what they hold of it.
    pub fn drop(&self, id: u64) -> Done {
        self.tell(|done| Order::Drop { id, done })
    }

    /// A thread that has ended hears nothing, and its receiver says so at once.
    fn tell(&self, order: impl Fn(oneshot::Sender<()>) -> Order) -> Done {
        let tell = |(orders, _): &(mpsc::UnboundedSender<Order>, _)| {
            let (done, told) = oneshot::channel();
            let _ = orders.send(order(done));
            told
        };
        self.all.iter().map(tell).collect()
    }
}

impl Drop for Shards {
    fn drop(&mut self) {
        let threads: Vec<_> = self.all.drain(..).filter_map(|(_, thread)| thread).collect();
        for thread in threads {
            // A panic there has ended what it served, and there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// Does as it is told until nobody tells it anything more.
async fn serve(index: usize, mut orders: mpsc::UnboundedReceiver<Order>) {
    let mut served = BTreeMap::new();
    while let Some(order) = orders.recv().await {
        match order {
            Order::Serve { id, proxy, done } => {
                let serving = tokio::task::spawn_local(proxy.clone().serve(index));
                served.insert(id, (serving, proxy));
                // It runs after what was spawned before it, which has taken up the listeners by then.
                tokio::task::spawn_local(async move { done.send(()) });
            }
            Order::Drop { id, done } => {
                let Some((serving, proxy)) = served.remove(&id) else { continue };
                serving.abort();
                tokio::task::spawn_local(async move {
                    let _ = serving.await;
                    proxy.settled(LEAVING).await;
                    drop(proxy);
                    done.send(())
                });
            }
        }
    }
}
