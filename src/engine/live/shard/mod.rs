//! A shard: one thread, one current_thread runtime, and everything that belongs to its clients.
//!
//! A shard holds, for every fleet, a contiguous range of its clients: their machine, their connections, their
//! recorder; and it serves the proxy's listeners for them. Nothing of it is shared with other shards but the
//! budgets, the ceiling and the proxy's rules, which are lock-free. The coordinator hears from it once a window.

mod driver;
#[cfg(test)]
mod parity;
mod seams;
mod wakeups;

use super::clock::{Clock, LiveClock};
use super::proxy::Proxy;
use super::timer::Timer;
use super::transport::{Door, FleetWires, Requests, Transport, WireCounts};
use crate::engine::shared::{Part, fleet_number, machines, recorder};
use crate::fault::{Origin, Phase};
use crate::fleet::Shared;
use crate::metrics::{Recorder, Slice, Totals};
use crate::plan::Plan;
use crate::time::Timestamp;
use driver::Driver;
use seams::Seams;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::mpsc;

/// What a shard is made from.
pub struct ShardSetup {
    /// Its number.
    pub index: usize,
    /// How many there are.
    pub shards: usize,
    /// The plan.
    pub plan: Arc<Plan>,
    /// By fleet, what it shares with other shards.
    pub shared: Vec<Shared>,
    /// The requests.
    pub requests: Arc<Requests>,
    /// The proxy.
    pub proxy: Arc<Proxy>,
    /// Those of the plan, which it only serves.
    pub named: Vec<Arc<Proxy>>,
    /// The run's clock.
    pub clock: Arc<LiveClock>,
    /// The phases of the run.
    pub phases: Vec<Phase>,
}

/// What the coordinator tells a shard. Dropping the sender ends the shard.
#[derive(Clone, Copy, Debug)]
pub enum Control {
    /// The clock is about to start: offer load.
    Start,
    /// Stop offering at this moment, which lies a little ahead, and hand in the record.
    StopAt(Timestamp),
}

/// What a shard tells the coordinator.
#[derive(Debug)]
pub enum Message {
    /// Its clients are connected.
    Warm {
        /// Clients that could not connect.
        failed: usize,
    },
    /// A window is over.
    Slice(Slice),
    /// The load is over. The proxy's listeners are still served.
    Finished {
        /// Its part of the histograms.
        totals: Box<Totals>,
        /// What happened to its connections.
        wires: WireCounts,
        /// How often the ceiling on attempts held one back.
        ceiling_holds: u64,
    },
    /// It ended before it should.
    Died {
        /// Its number.
        shard: usize,
        /// Why, where it knows.
        why: String,
    },
}

/// A running shard.
pub struct Shard {
    control: mpsc::UnboundedSender<Control>,
    thread: JoinHandle<()>,
}

impl Shard {
    /// Starts the thread. It connects its clients, says [`Message::Warm`], and waits for [`Control::Start`].
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn spawn(setup: ShardSetup, messages: mpsc::UnboundedSender<Message>) -> io::Result<Self> {
        let (control, commands) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new().name(format!("shard-{}", setup.index)).spawn(move || {
            let mut tombstone =
                Tombstone { shard: setup.index, why: Some("its thread panicked".into()), messages: messages.clone() };
            tombstone.why = run(setup, &messages, commands).err().map(|error| error.to_string());
        })?;
        Ok(Self { control, thread })
    }

    /// Tells it something; a shard that has ended does not hear it.
    pub fn tell(&self, control: Control) {
        let _ = self.control.send(control);
    }

    /// Ends it and waits until its thread is gone. Blocks.
    pub fn join(self) {
        drop(self.control);
        // A panic has been reported by the tombstone.
        let _ = self.thread.join();
    }
}

const fn part(setup: &ShardSetup) -> Part {
    Part { index: setup.index, of: setup.shards }
}

/// Reports a shard that ends early, by panic too.
struct Tombstone {
    shard: usize,
    why: Option<String>,
    messages: mpsc::UnboundedSender<Message>,
}

impl Drop for Tombstone {
    fn drop(&mut self) {
        if let Some(why) = self.why.take() {
            let _ = self.messages.send(Message::Died { shard: self.shard, why });
        }
    }
}

fn run(
    setup: ShardSetup,
    messages: &mpsc::UnboundedSender<Message>,
    mut commands: mpsc::UnboundedReceiver<Control>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let all = std::iter::once(&setup.proxy).chain(&setup.named);
        let serving: Vec<_> = all.map(|proxy| tokio::task::spawn_local(proxy.clone().serve(setup.index))).collect();
        let transport = Transport::new(wires(&setup), &setup.requests, &(setup.clock.clone() as Arc<dyn Clock>));
        let failed = transport.warm_up().await;
        let _ = messages.send(Message::Warm { failed });
        match commands.recv().await {
            Some(Control::Start) => {
                let driver = driver(&setup, transport, messages.clone())?;
                // Until then the clock stands still, and whatever happened would seem to take no time.
                tokio::time::sleep(setup.clock.until_zero().to_std()).await;
                driver.run(&mut commands).await?;
            }
            Some(Control::StopAt(_)) | None => return Ok(()),
        }
        // Until the coordinator has removed the faults and let go, the proxy goes on.
        while commands.recv().await.is_some() {}
        serving.iter().for_each(tokio::task::JoinHandle::abort);
        Ok(())
    })
}

/// The driver of a shard on real sockets.
type LiveDriver = Driver<LiveClock, Transport, Timer, Recorder>;

fn driver(setup: &ShardSetup, wire: Transport, messages: mpsc::UnboundedSender<Message>) -> io::Result<LiveDriver> {
    let machines = machines(&setup.plan, &setup.shared, part(setup));
    let book = recorder(&setup.plan, &setup.phases);
    let seams = Seams { wire, timers: Timer::new()?, book };
    Ok(Driver::new(&setup.plan, machines, setup.clock.clone(), seams, messages))
}

fn wires(setup: &ShardSetup) -> Vec<FleetWires> {
    let fleets = setup.plan.fleets.iter().enumerate().map(|(index, fleet)| {
        let (number, proxy, shard) = (fleet_number(index), setup.proxy.clone(), setup.index);
        let same = proxy.clone();
        let door = |region| {
            let (origin, proxy) = (Origin { fleet: number, region }, setup.proxy.clone());
            Door { addr: setup.proxy.addr(origin), on_refused: Box::new(move || proxy.refused(origin)) }
        };
        FleetWires {
            fleet: number,
            numbers: part(setup).connections(&setup.plan, index),
            doors: (0..fleet.config.regions.count()).map(door).collect(),
            region_of: Box::new(fleet.region_of()),
            connections: fleet.config.connections,
            arrived: Box::new(move || proxy.arrived(shard, number)),
            connected: Box::new(move || same.connected(shard, number)),
        }
    });
    fleets.collect()
}
