//! One direction of one connection: what waits in it, and what its stages let go.

use super::{Leaving, Piece, Slot, Taken};
use crate::time::Timestamp;
use std::collections::VecDeque;

/// The most bytes that wait in a pipe.
pub(super) const MOST: usize = 4 * 1024 * 1024;
/// As many where nothing delays them for long.
pub(super) const LEAST: usize = 64 * 1024;
/// The most arrivals that are told apart; it is reached where a few bytes come at a time.
const MOST_CHUNKS: usize = 16 * 1024;

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As it ended where it came from: this direction is closed, the other one goes on.
    Fin,
    /// By a fault: the whole connection is closed.
    Close,
    /// By a fault: the whole connection is reset, whatever waits.
    Reset,
}

/// What a pipe has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// So many bytes may go on, in one write: see [`Pipe::front`] and [`Pipe::consume`].
    Send(usize),
    /// Nothing until a moment, if nothing else comes.
    Wait(Timestamp),
    /// Nothing until something comes.
    Idle,
    /// All is said.
    End(End),
}

/// What has left a stage.
#[derive(Clone, Copy, Debug)]
enum Item {
    Bytes(Piece),
    End(Timestamp, End),
}

impl Item {
    const fn at(&self) -> Timestamp {
        match self {
            Self::Bytes(piece) => piece.at,
            Self::End(at, _) => *at,
        }
    }
}

/// One direction of one connection. What comes is kept until the stages let it go; each piece is scheduled when it is at the front, so a
/// change of the stages finds everything that waits as it came.
#[derive(Debug, Default)]
pub struct Pipe {
    pub(super) slots: Vec<Slot>,
    /// What no stage has seen yet: how many bytes came when.
    chunks: VecDeque<(Timestamp, usize)>,
    /// The bytes themselves: those that are ready, then the others.
    pub(super) bytes: VecDeque<u8>,
    /// How many may go on at once.
    ready: usize,
    /// How many may not yet.
    pending: usize,
    /// What has left the last stage and is not due.
    head: Option<Item>,
    /// When the stream ended where it comes from.
    finished: Option<Timestamp>,
    /// Whether the stages know.
    told: bool,
    /// How it ends behind what is ready.
    over: Option<End>,
}

impl Pipe {
    /// A pipe of these stages, in the order in which bytes meet them.
    pub fn new(slots: Vec<Slot>) -> Self {
        Self { slots, ..Self::default() }
    }

    /// Whether it does nothing and holds nothing: it may be thrown away.
    pub fn is_spent(&self) -> bool {
        self.slots.is_empty() && self.is_empty() && self.finished.is_none() && self.over.is_none()
    }

    /// Whether no byte waits in it.
    pub fn is_empty(&self) -> bool {
        self.ready + self.pending == 0
    }

    /// How many more bytes it takes.
    pub fn room(&self) -> usize {
        // What nothing delays any more waits for its reader alone, and more of it would not be there any sooner.
        let no_more = self.ready >= LEAST || self.chunks.len() >= MOST_CHUNKS;
        if no_more || self.over.is_some() || self.finished.is_some() {
            return 0;
        }
        let most = self.slots.iter().map(|slot| slot.stage.room()).max().unwrap_or(LEAST);
        most.saturating_sub(self.ready + self.pending)
    }

    /// Takes bytes that come at `now`; [`Pipe::room`] says how many at most.
    pub fn push(&mut self, bytes: &[u8], now: Timestamp) {
        self.come(bytes.len(), now);
        self.bytes.extend(bytes);
    }

    /// Tells an empty pipe of bytes that come at `now`, and stay where they are: how many of them may go on at once, in one write.
    /// [`Pipe::keep`] must follow.
    pub fn arrive(&mut self, len: usize, now: Timestamp) -> usize {
        debug_assert!(self.is_empty(), "what waits goes first");
        self.come(len, now);
        match self.next(now) {
            Next::Send(ready) => ready,
            _ => 0,
        }
    }

    /// Takes in what of the bytes that arrived has not gone on: all but the first `sent`, which were ready.
    pub fn keep(&mut self, bytes: &[u8], sent: usize) {
        let alive = self.ready + self.pending;
        self.ready -= sent;
        if sent < alive {
            self.bytes.extend(&bytes[sent..alive]);
        }
    }

    /// The stream ends where it comes from.
    pub fn finish(&mut self, now: Timestamp) {
        self.finished.get_or_insert(now);
    }

    /// Whether it has ended where it comes from.
    pub const fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// What is to be done at a moment.
    pub fn next(&mut self, now: Timestamp) -> Next {
        if self.is_quiet() {
            return Next::Idle;
        }
        self.reset_if_due(now);
        if self.over == Some(End::Reset) {
            return Next::End(End::Reset);
        }
        let together = !self.slots.iter().any(|slot| slot.stage.cuts());
        while self.over.is_none() && (together || self.ready == 0) {
            let Some(item) = self.head.take().or_else(|| self.pull(self.slots.len(), now)) else { break };
            match item {
                item if item.at() > now => {
                    self.head = Some(item);
                    break;
                }
                Item::Bytes(piece) => {
                    self.ready += piece.len;
                    self.pending -= piece.len;
                }
                Item::End(_, end) => self.over = Some(end),
            }
        }
        match (self.ready, self.over) {
            (ready @ 1.., _) => Next::Send(ready),
            (0, Some(end)) => Next::End(end),
            (0, None) => self.wakes(now).map_or(Next::Idle, Next::Wait),
        }
    }

    /// When there will be something to do though nothing comes and nothing goes; a moment that has passed where that has been since it was last asked
    /// for the [`Pipe::next`].
    pub fn wakes(&self, now: Timestamp) -> Option<Timestamp> {
        let own = self.slots.iter().filter(|slot| !slot.ended).flat_map(|slot| [slot.stage.closes_at(), slot.stage.resets_at()]);
        // Of what is cut, a piece that is ready goes before the next one is looked at.
        let together = !self.slots.iter().any(|slot| slot.stage.cuts());
        let head = self.head.filter(|_| together || self.ready == 0).map(|item| item.at());
        own.flatten().filter(|at| *at > now).chain(head).min()
    }

    /// The bytes that may go on, or the first of them where they do not lie together.
    pub fn front(&self) -> &[u8] {
        let (front, _) = self.bytes.as_slices();
        &front[..front.len().min(self.ready)]
    }

    /// Removes bytes that have gone on.
    pub fn consume(&mut self, sent: usize) {
        self.ready -= sent;
        self.bytes.drain(..sent);
        if self.bytes.is_empty() {
            self.bytes = VecDeque::new();
        }
    }

    /// Other stages from `now` on. Those that are the same go on as they were; what waits is scheduled anew from when it came.
    pub fn retune(&mut self, slots: Vec<Slot>, now: Timestamp) {
        if self.over.is_some() {
            return;
        }
        self.take_back();
        let mut before = std::mem::replace(&mut self.slots, slots);
        for slot in &mut self.slots {
            if let Some(same) = before.iter().position(|old| old.is_like(slot)) {
                let rule = slot.rule.clone();
                *slot = Slot { rule, ..before.remove(same) };
            }
        }
        for gone in before {
            match gone.stage.leaves() {
                Leaving::Nothing => {}
                Leaving::Close => self.over = Some(End::Close),
                Leaving::Stay => self.slots.push(gone),
            }
        }
        if self.over.is_some() {
            self.forget();
        }
        // What is due by now goes at once.
        let _ = self.next(now);
    }

    /// Whether nothing waits, and no stage will do anything by itself.
    pub fn is_quiet(&self) -> bool {
        let by_itself = |slot: &Slot| slot.stage.closes_at().is_some() || slot.stage.resets_at().is_some();
        self.is_empty()
            && self.over.is_none()
            && self.finished.is_none()
            && self.head.is_none()
            && !self.slots.iter().any(by_itself)
    }

    /// What is not ready is as it came.
    fn take_back(&mut self) {
        for upto in 0..self.slots.len() {
            (self.slots[upto].ended, self.slots[upto].last) = (false, Timestamp::ZERO);
            if let Some(piece) = self.slots[upto].hand.take() {
                self.come_again(piece, upto);
            }
        }
        if let Some(Item::Bytes(piece)) = self.head.take() {
            self.come_again(piece, self.slots.len());
        }
        // So is the end, be it on its way or swallowed: it harms nothing if it comes after all, and without it nobody would ever let go.
        self.told = false;
    }

    /// Gives back what the first so many stages have let go.
    fn come_again(&mut self, piece: Piece, stages: usize) {
        self.chunks.push_front((piece.came, piece.len));
        self.slots[..stages].iter_mut().for_each(|slot| slot.stage.undo(piece.len));
    }

    fn come(&mut self, len: usize, now: Timestamp) {
        if len == 0 {
            return;
        }
        match self.chunks.back_mut() {
            Some((came, waiting)) if *came == now => *waiting += len,
            _ => self.chunks.push_back((now, len)),
        }
        self.pending += len;
    }

    /// The next thing that leaves the first so many stages.
    fn pull(&mut self, stages: usize, now: Timestamp) -> Option<Item> {
        let Some(place) = stages.checked_sub(1) else { return self.source() };
        if self.slots[place].ended {
            return None;
        }
        loop {
            let item = self.slots[place].hand.take().map(Item::Bytes).or_else(|| self.pull(place, now));
            let slot = &mut self.slots[place];
            match item {
                None => return slot.close_by(now).map(|at| Item::End(at, End::Close)),
                Some(Item::End(at, end)) => {
                    if let Some(at) = slot.close_by(at) {
                        return Some(Item::End(at, End::Close));
                    }
                    if let Some(at) = slot.end(at) {
                        return Some(Item::End(at, end));
                    }
                }
                Some(Item::Bytes(piece)) => match slot.take(piece) {
                    Taken::Pass(len, at) => {
                        let rest = Piece { len: piece.len - len, ..piece };
                        slot.hand = (rest.len > 0).then_some(rest);
                        return Some(Item::Bytes(Piece { len, at, ..piece }));
                    }
                    // Nothing that comes behind it will pass either, so it is the last of what waits that is gone.
                    Taken::Vanish => {
                        self.pending -= piece.len;
                        self.bytes.truncate(self.ready + self.pending);
                    }
                },
            }
        }
    }

    fn source(&mut self) -> Option<Item> {
        if let Some((came, len)) = self.chunks.pop_front() {
            return Some(Item::Bytes(Piece { len, came, at: came }));
        }
        let came = self.finished.filter(|_| !std::mem::replace(&mut self.told, self.finished.is_some()))?;
        Some(Item::End(came, End::Fin))
    }

    fn reset_if_due(&mut self, now: Timestamp) {
        let due = |slot: &&mut Slot| slot.stage.resets_at().is_some_and(|at| at <= now);
        if self.over != Some(End::Reset)
            && let Some(slot) = self.slots.iter_mut().find(due)
        {
            slot.touch();
            self.ready = 0;
            self.forget();
            self.over = Some(End::Reset);
        }
    }

    /// Gives up what is not ready.
    fn forget(&mut self) {
        self.chunks.clear();
        self.slots.iter_mut().for_each(|slot| slot.hand = None);
        (self.head, self.pending) = (None, 0);
        self.bytes.truncate(self.ready);
    }
}
