//! What ends by itself: a thread that waits for the next such moment, so that an end needs no traffic, and no call.

use super::Plane;
use crate::time::Span;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

/// Wakes the thread.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    /// Has the thread look again at what comes next.
    pub(super) fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.heard.notify_one();
    }

    /// Waits until it is rung, or for so long.
    fn wait(&self, at_most: Option<Span>) {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        if !*rung {
            rung = match at_most {
                Some(span) => self.heard.wait_timeout(rung, span.to_std()).unwrap_or_else(PoisonError::into_inner).0,
                None => self.heard.wait(rung).unwrap_or_else(PoisonError::into_inner),
            };
        }
        *rung = false;
    }
}

/// Starts the thread. It ends with the plane.
///
/// # Errors
/// When the system gives no thread.
pub(super) fn keep(plane: &Arc<Plane>) -> io::Result<()> {
    let (plane, bell) = (Arc::downgrade(plane), plane.bell.clone());
    let watch = move || {
        while let Some(next) = turn(&plane) {
            bell.wait(next);
        }
    };
    std::thread::Builder::new().name("proxy-expiry".into()).spawn(watch).map(drop)
}

/// Ends what is to end by now, and says how long it is until the next end; nothing once the plane has gone.
fn turn(plane: &Weak<Plane>) -> Option<Option<Span>> {
    plane.upgrade().map(|plane| plane.expire())
}
