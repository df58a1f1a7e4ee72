//! One proxy of a Toxiproxy or a `stormwake proxy`, moved along with the timeline.
//!
//! # What is done where a change fails
//!
//! A step that could not be begun is given up: it is told as failed, and from then on the server is asked for the state without it, so that
//! no part of it comes late. One that could not be ended is told as failed too, and is removed as soon as the server lets it be. Both are tried
//! a bounded number of times, once a second, until the timeline changes again. The end of the run tries once more, for three seconds.

use super::client::{ApiError, Endpoint};
use super::guard::PERSISTENCE;
use super::lease;
use super::watchdog::Watchdog;
use crate::engine::live::clock::Clock;
use crate::engine::live::signal::{Owing, Signals};
use crate::fault::external::{Call, Hand, Held, Remote, Server, Wish};
use crate::metrics::Left;
use crate::time::{Span, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// How long a change may take, all calls of it together.
const CHANGE: Span = Span::from_millis(2_500);
/// How long the last removal may take, all tries together.
const CLEAR: Span = Span::from_secs(3);
/// The pause between two of those tries.
const AGAIN: Span = Span::from_millis(100);
/// The pause between two tries to put right what failed in mid-run, and how many there are.
const MEND: (Span, u32) = (Span::from_secs(1), 20);

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The server has it, since then.
    Began(usize, Timestamp),
    /// The server has it no more, since then.
    Ended(usize, Timestamp),
    /// So much it has touched so far, as the server says.
    Counted(usize, u64),
    /// It did not happen as the plan has it, for this reason.
    Failed(usize, String),
    /// Something else that the user should know.
    Warned(String),
}

/// What a driver is made from.
pub struct Parts {
    /// Its place among the run's drivers.
    pub number: usize,
    /// Where to.
    pub endpoint: Endpoint,
    /// The run's name there.
    pub run: String,
    /// The steps that it carries out.
    pub remotes: Vec<Remote>,
    /// The toxics and faults of others that were there before.
    pub strangers: Vec<String>,
    /// Who removes everything where this process is killed; nobody where a lease does that.
    pub watchdog: Option<Arc<Watchdog>>,
    /// Who hears what becomes of the steps.
    pub told: UnboundedSender<Told>,
    /// Says when it did.
    pub clock: Arc<dyn Clock>,
}

/// What moves one proxy.
pub struct Driver {
    parts: Parts,
    hand: Hand,
    /// What was asked for last, and whether the server was seen to have it.
    wish: Wish,
    settled: bool,
    /// The steps that should act, by the timeline.
    acting: BTreeSet<usize>,
    /// Those of them that could not be begun.
    given_up: BTreeSet<usize>,
    /// Those that should have ended, and were not seen to.
    lingering: BTreeSet<usize>,
    tries: u32,
}

impl Driver {
    /// Nothing acts.
    pub fn new(parts: Parts) -> Self {
        let hand = Hand::new(&parts.run, parts.endpoint.server);
        let (acting, given_up, lingering) = Default::default();
        Self { hand, wish: Wish::default(), settled: true, acting, given_up, lingering, tries: 0, parts }
    }

    /// Follows orders, each the steps that act from then on, until there are no more.
    pub async fn follow(mut self, mut orders: UnboundedReceiver<Vec<usize>>) -> Self {
        loop {
            let mend = !self.settled && self.tries < MEND.1;
            tokio::select! {
                biased;
                order = orders.recv() => {
                    let Some(mut order) = order else { return self };
                    // A server that was slow has missed what lies between.
                    while let Ok(newer) = orders.try_recv() {
                        self.pass_over(&order, &newer);
                        order = newer;
                    }
                    self.change(order).await;
                }
                () = tokio::time::sleep(MEND.0.to_std()), if mend => self.mend().await,
            }
        }
    }

    /// Steps that came and went while the server was busy.
    fn pass_over(&mut self, order: &[usize], newer: &[usize]) {
        let its = self.its(order);
        let gone = its.into_iter().filter(|step| !newer.contains(step) && !self.acting.contains(step));
        for step in gone.collect::<Vec<_>>() {
            self.tell(Told::Failed(step, format!("its time was over before the {} had made an earlier change", self.server())));
        }
    }

    fn server(&self) -> Server {
        self.parts.endpoint.server
    }

    fn its(&self, steps: &[usize]) -> BTreeSet<usize> {
        self.parts.remotes.iter().map(|remote| remote.step).filter(|step| steps.contains(step)).collect()
    }

    async fn change(&mut self, order: Vec<usize>) {
        let acting = self.its(&order);
        if acting == self.acting {
            return;
        }
        let began: Vec<usize> = acting.difference(&self.acting).copied().collect();
        let gone = self.acting.difference(&acting).copied();
        let ended: Vec<usize> = gone.filter(|step| !self.given_up.contains(step)).collect();
        let before = std::mem::replace(&mut self.acting, acting);
        let before: Vec<usize> = before.difference(&self.given_up).copied().collect();
        self.given_up.retain(|step| self.acting.contains(step));
        self.lingering.extend(&ended);
        self.tries = 0;
        match self.try_now(&before).await {
            Ok(()) => began.into_iter().for_each(|step| self.tell(Told::Began(step, self.parts.clock.now()))),
            Err(error) => {
                let told = |what: &str| format!("the {} did not {what} it: {error}", self.server());
                began.iter().for_each(|step| self.tell(Told::Failed(*step, told("begin"))));
                ended.iter().for_each(|step| self.tell(Told::Failed(*step, told("end"))));
                self.given_up.extend(began);
            }
        }
    }

    /// Tries once more to put right what failed.
    async fn mend(&mut self) {
        self.tries += 1;
        let _ = self.try_now(&[]).await;
    }

    /// Gets the server to have what acts. `before`: the steps that it should have had until now.
    async fn try_now(&mut self, before: &[usize]) -> Result<(), ApiError> {
        let its = |remote: &&Remote| self.acting.contains(&remote.step) && !self.given_up.contains(&remote.step);
        let wish = self.hand.wish(self.parts.remotes.iter().filter(its));
        let reached = tokio::time::timeout(CHANGE.to_std(), self.reach(wish, before)).await;
        reached.unwrap_or_else(|_| Err(ApiError::Differs(format!("the change was not made within {CHANGE}"))))
    }

    async fn reach(&mut self, wish: Wish, before: &[usize]) -> Result<(), ApiError> {
        let was = self.settled.then(|| self.wish.clone());
        self.settled = false;
        self.wish = wish;
        if !self.wish.is_nothing() {
            self.owe(false);
        }
        let Self { parts, hand, wish, .. } = self;
        let (watchdog, number, told) = (parts.watchdog.as_deref(), parts.number, &parts.told);
        let ends = |step: &&usize| parts.remotes.iter().any(|remote| remote.step == **step && remote.ends);
        let found = |hand: &Hand, held: &Held| {
            let Some(why) = was.as_ref().and_then(|was| hand.check(held, was).err()) else { return };
            for step in before.iter().filter(|step| !ends(step)) {
                let _ = told.send(Told::Failed(*step, format!("it was not there to its end: {why}")));
            }
        };
        let reached = parts.endpoint.reach(hand, wish, |call| warned(watchdog, number, call), found).await;
        self.count();
        self.settle(&reached?);
        Ok(())
    }

    /// Tells what each step has touched, where the server has said so.
    fn count(&self) {
        let told = |remote: &Remote| Some(Told::Counted(remote.step, self.hand.touched(&remote.name)?));
        self.parts.remotes.iter().filter_map(told).for_each(|told| self.tell(told));
    }

    /// The server was seen to have what it should.
    fn settle(&mut self, held: &Held) {
        self.settled = true;
        if !self.hand.holds_down() {
            // Where nobody hears it, it enables what is enabled.
            let _ = self.parts.watchdog.as_ref().map(|watchdog| watchdog.holds_down(self.parts.number, false));
        }
        if self.wish.is_nothing() {
            Signals::owe_remote(self.parts.number, None);
        }
        let now = self.parts.clock.now();
        for step in std::mem::take(&mut self.lingering) {
            self.tell(Told::Ended(step, now));
        }
        let strangers = self.hand.strangers(held);
        let new = strangers.iter().filter(|toxic| !self.parts.strangers.contains(toxic));
        if let Some(text) = of_strangers(&self.parts.endpoint, &new.cloned().collect::<Vec<_>>()) {
            self.tell(Told::Warned(text));
        }
        self.parts.strangers = strangers;
    }

    /// Removes everything, and confirms it; what is left where that cannot be.
    pub async fn clear(mut self) -> Option<Left> {
        let clean = self.settled && self.wish.is_nothing();
        let acting = std::mem::take(&mut self.acting);
        let acting: Vec<usize> = acting.difference(&self.given_up).copied().collect();
        self.lingering.extend(&acting);
        if !clean {
            self.owe(true);
        }
        let mut last = None;
        let tries = async {
            loop {
                match self.reach(Wish::default(), &acting).await {
                    Ok(()) => return None,
                    Err(error @ ApiError::NoProxy { .. }) => return Some(error),
                    Err(error) => last = Some(error),
                }
                tokio::time::sleep(AGAIN.to_std()).await;
            }
        };
        let cleared = tokio::time::timeout(CLEAR.to_std(), tries).await;
        Signals::owe_remote(self.parts.number, None);
        let Endpoint { proxy, server, .. } = &self.parts.endpoint;
        match cleared {
            Ok(None) => None,
            Ok(Some(error)) => {
                let text = format!("`{proxy}` is gone from the {server}, and whatever the run put there with it: {error}");
                self.lost(&text);
                self.tell(Told::Warned(text));
                None
            }
            Err(_) => {
                let why = last.map_or_else(|| format!("no answer within {CLEAR}"), |error| error.to_string());
                if clean {
                    let text = format!("the {server} could not be asked a last time about `{proxy}`, which was clean: {why}");
                    self.tell(Told::Warned(text));
                    return None;
                }
                self.lost(&format!("the {server} did not end it: {why}"));
                Some(self.left(&why))
            }
        }
    }

    /// Says of the steps that should have ended that they did not as they should.
    fn lost(&self, why: &str) {
        self.lingering.iter().for_each(|step| self.tell(Told::Failed(*step, why.to_string())));
    }

    fn left(&self, why: &str) -> Left {
        let Endpoint { proxy, authority, server, .. } = &self.parts.endpoint;
        let rest = match server {
            Server::Toxiproxy => format!("the watchdog goes on trying for {PERSISTENCE}"),
            Server::Stormwake => format!("they go with the run's lease, within {}", lease::TTL),
        };
        Left {
            what: format!(
                "the faults of this run may still be in the proxy `{proxy}` of the {server} at {authority}: {why}; {rest}"
            ),
            by_hand: self.hand.by_hand().iter().map(|call| self.parts.endpoint.by_hand(call)).collect(),
        }
    }

    fn owe(&self, begun: bool) {
        let name = format!("the faults in the {}'s `{}`", self.server(), self.parts.endpoint.proxy);
        Signals::owe_remote(self.parts.number, Some(Owing { name, within: CLEAR, begun }));
    }

    fn tell(&self, told: Told) {
        // Where nobody hears it, the run is over.
        let _ = self.parts.told.send(told);
    }
}

/// Tells the watchdog what is about to be done: where it has gone, nothing is.
fn warned(watchdog: Option<&Watchdog>, number: usize, call: &Call) -> Result<(), String> {
    let Some(watchdog) = watchdog else { return Ok(()) };
    match call {
        Call::Enable(false) => watchdog.holds_down(number, true),
        Call::Add(_) => watchdog.beat(),
        Call::Enable(true) | Call::Remove(_) => Ok(()),
    }
}

/// What is said of toxics and faults that are not ours; none where there are none.
pub(super) fn of_strangers(endpoint: &Endpoint, others: &[String]) -> Option<String> {
    let Endpoint { proxy, server, .. } = endpoint;
    let (names, what) = (others.join(", "), if *server == Server::Stormwake { "toxics or faults" } else { "toxics" });
    let text = format!("the {server}'s `{proxy}` has {what} that are not this run's, and keeps them: {names}");
    (!others.is_empty()).then_some(text)
}
