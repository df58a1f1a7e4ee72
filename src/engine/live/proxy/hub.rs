//! What the tasks of one shard share: the snapshot as the shard knows it, and how to wake every task when it changes.
//!
//! A connection must notice a change wherever it waits. Each task leaves its waker here once and compares a number
//! whenever it runs; so a change costs one wake-up per task, and everything else one comparison.

use super::control::{Control, Installed};
use crate::fault::Active;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

pub(super) struct Hub {
    pub(super) control: Arc<Control>,
    pub(super) shard: usize,
    installed: RefCell<Installed>,
    closed: Cell<bool>,
    wakers: RefCell<Wakers>,
}

#[derive(Default)]
struct Wakers {
    slots: Vec<Option<Waker>>,
    free: Vec<usize>,
}

/// A task's place at the hub; given back when dropped.
pub(super) struct Registration {
    hub: Rc<Hub>,
    slot: usize,
}

impl Hub {
    pub(super) fn new(control: Arc<Control>, shard: usize) -> Self {
        let installed = RefCell::new(control.installed.borrow().clone());
        Self { control, shard, installed, closed: Cell::new(false), wakers: RefCell::default() }
    }

    /// Leaves the waker of the current task here. Valid only in the task itself, not under a combinator that has
    /// wakers of its own.
    pub(super) async fn register(self: &Rc<Self>) -> Registration {
        let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
        self.register_waker(waker)
    }

    /// The same for whoever is to be woken by this.
    pub(super) fn register_waker(self: &Rc<Self>, waker: Waker) -> Registration {
        let mut wakers = self.wakers.borrow_mut();
        let slot = match wakers.free.pop() {
            Some(slot) => slot,
            None => {
                wakers.slots.push(None);
                wakers.slots.len() - 1
            }
        };
        wakers.slots[slot] = Some(waker);
        Registration { hub: self.clone(), slot }
    }

    /// Takes up what is installed, and wakes every task if that is new. Cheap when it is not.
    pub(super) fn refresh(&self) {
        if self.control.generation.load(Ordering::Acquire) == self.generation() {
            return;
        }
        *self.installed.borrow_mut() = self.control.installed.borrow().clone();
        self.wake_all();
    }

    /// The number of the snapshot that the shard knows.
    pub(super) fn generation(&self) -> u64 {
        self.installed.borrow().generation
    }

    /// The snapshot that the shard knows.
    pub(super) fn active(&self) -> Active {
        self.installed.borrow().active.clone()
    }

    /// Whether clients are let in at all.
    pub(super) fn is_open(&self) -> bool {
        self.installed.borrow().open
    }

    /// Whether a listener may be open: clients are let in, and new ones too.
    pub(super) fn welcomes(&self) -> bool {
        let installed = self.installed.borrow();
        installed.open && !installed.draining
    }

    /// Ends every task of the shard.
    pub(super) fn close(&self) {
        self.closed.set(true);
        self.wake_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    fn wake_all(&self) {
        self.wakers.borrow().slots.iter().flatten().for_each(Waker::wake_by_ref);
    }
}

impl Registration {
    /// From here on it is this one that is woken.
    pub(super) fn follow(&self, waker: &Waker) {
        let mut wakers = self.hub.wakers.borrow_mut();
        if let Some(slot) = wakers.slots.get_mut(self.slot)
            && !slot.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            *slot = Some(waker.clone());
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut wakers = self.hub.wakers.borrow_mut();
        wakers.slots[self.slot] = None;
        wakers.free.push(self.slot);
    }
}
