//! The workers: who is free, who works on what, who has stopped.

use super::config::WorkerCount;
use super::job::NOBODY;
use crate::fleet::slab::NONE;

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// Waits for work.
    Nothing,
    /// Has an operation.
    Work,
    /// Has stopped, and will start again.
    Stopped,
    /// Was one too many.
    Gone,
}

#[derive(Clone, Copy, Debug)]
struct Worker {
    /// The operation that it has, or [`NONE`].
    on: u32,
    doing: Doing,
}

/// The workers of a fleet.
#[derive(Debug)]
pub(super) struct Crew {
    workers: Vec<Worker>,
    /// Those without work; the last one is next.
    idle: Vec<u32>,
    /// How many there may be; `workers` grows to it as there is work, where they are unlimited.
    wanted: u32,
    /// Those that have stopped and will start again; until they have, nobody new comes.
    stopped: u32,
}

impl Crew {
    /// Everybody idle; of unlimited workers, nobody yet.
    pub(super) fn new(count: WorkerCount, most: u32) -> Self {
        let now = match count {
            WorkerCount::Limited(n) => n.min(most),
            WorkerCount::Unlimited => 0,
        };
        let mut crew = Self { workers: Vec::new(), idle: Vec::new(), wanted: count.most().min(most), stopped: 0 };
        crew.grow(now);
        crew.idle.reverse();
        crew
    }

    /// How many there are, those aside that were too many.
    pub(super) fn len(&self) -> u32 {
        (self.workers.len() as u32).min(self.wanted)
    }

    /// Whether somebody is there for work.
    pub(super) fn any_free(&self) -> bool {
        !self.idle.is_empty() || self.may_grow()
    }

    /// Gives an operation to somebody; nobody where all are busy.
    pub(super) fn give(&mut self, slot: u32) -> Option<u32> {
        if self.idle.is_empty() && self.may_grow() {
            self.grow(self.workers.len() as u32 + 1);
        }
        let worker = self.idle.pop()?;
        self.workers[worker as usize] = Worker { on: slot, doing: Doing::Work };
        Some(worker)
    }

    /// What a worker has.
    pub(super) fn on(&self, worker: u32) -> Option<u32> {
        self.workers.get(worker as usize).map(|worker| worker.on).filter(|on| *on != NONE)
    }

    /// A worker has let go of its operation, and waits for work.
    pub(super) fn release(&mut self, worker: u32) {
        if worker != NOBODY {
            self.rest(worker);
        }
    }

    /// Everybody stops.
    pub(super) fn stop_all(&mut self) {
        self.idle.clear();
        let wanted = self.wanted as usize;
        for (number, worker) in self.workers.iter_mut().enumerate() {
            *worker = Worker { on: NONE, doing: if number < wanted { Doing::Stopped } else { Doing::Gone } };
        }
        self.stopped = self.len();
    }

    /// A worker that had stopped starts again; whether it had.
    pub(super) fn start(&mut self, worker: u32) -> bool {
        let had = self.workers.get(worker as usize).is_some_and(|worker| worker.doing == Doing::Stopped);
        if had {
            self.stopped -= 1;
            self.rest(worker);
        }
        had
    }

    /// There are so many from now on; those too many go when they are free.
    pub(super) fn scale(&mut self, wanted: u32) {
        self.wanted = wanted;
        self.idle.retain(|&worker| worker < wanted);
        for (number, worker) in self.workers.iter_mut().enumerate() {
            let is_wanted = (number as u32) < wanted;
            match worker.doing {
                Doing::Gone if is_wanted => {
                    worker.doing = Doing::Nothing;
                    self.idle.push(number as u32);
                }
                Doing::Nothing if !is_wanted => worker.doing = Doing::Gone,
                Doing::Stopped if !is_wanted => {
                    worker.doing = Doing::Gone;
                    self.stopped -= 1;
                }
                Doing::Nothing | Doing::Work | Doing::Stopped | Doing::Gone => {}
            }
        }
    }

    fn may_grow(&self) -> bool {
        self.stopped == 0 && (self.workers.len() as u32) < self.wanted
    }

    fn grow(&mut self, to: u32) {
        let from = self.workers.len() as u32;
        self.workers.resize(to.max(from) as usize, Worker { on: NONE, doing: Doing::Nothing });
        self.idle.extend(from..to);
    }

    fn rest(&mut self, worker: u32) {
        let is_wanted = worker < self.wanted;
        let doing = if is_wanted { Doing::Nothing } else { Doing::Gone };
        self.workers[worker as usize] = Worker { on: NONE, doing };
        if is_wanted {
            self.idle.push(worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_goes_to_the_first_and_those_too_many_leave_when_free() {
        let mut crew = Crew::new(WorkerCount::Limited(3), u32::MAX);
        assert_eq!((crew.give(7), crew.give(8), crew.give(9), crew.give(10)), (Some(0), Some(1), Some(2), None));
        crew.scale(1);
        assert_eq!((crew.len(), crew.on(2)), (1, Some(9)), "who works goes on");
        crew.release(2);
        crew.release(1);
        assert!(!crew.any_free(), "they have gone");
        crew.release(0);
        assert_eq!(crew.give(11), Some(0));
        crew.scale(4);
        assert_eq!((crew.give(1), crew.give(2), crew.give(3), crew.give(4)), (Some(2), Some(1), Some(3), None));
    }

    #[test]
    fn unlimited_workers_come_as_there_is_work() {
        let mut crew = Crew::new(WorkerCount::Unlimited, 2);
        assert_eq!((crew.len(), crew.any_free()), (0, true));
        assert_eq!((crew.give(1), crew.give(2), crew.give(3)), (Some(0), Some(1), None), "no more than may be");
        crew.stop_all();
        assert_eq!((crew.any_free(), crew.on(0)), (false, None));
        assert!(crew.start(1) && !crew.start(1));
        assert_eq!(crew.give(5), Some(1));
    }
}
