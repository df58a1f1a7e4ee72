//! Commands with all that they start: a process group each, killed as one.
//!
//! A group is what the system can kill at once. A child that leaves it with `setsid` is out of reach; and where stormwake itself is killed
//! with SIGKILL nobody is left to kill anything.

use rustix::process::{Pid, Signal, kill_process_group};
use std::sync::{Mutex, PoisonError};

/// The leaders of the groups that live.
static LIVING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A command and all that it has started, killed with the value: what it leaves in the background too.
pub struct Group(Option<Pid>);

impl Group {
    /// The group that a child leads.
    pub fn of(child: &tokio::process::Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        LIVING.lock().unwrap_or_else(PoisonError::into_inner).extend(leader);
        Self(leader)
    }

    /// Lets what it leaves in the background live.
    pub fn let_go(mut self) {
        self.forget();
    }

    /// Kills every group there is: the process ends now, and drops nothing.
    pub fn kill_all() {
        for leader in LIVING.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }

    fn forget(&mut self) -> Option<Pid> {
        let leader = self.0.take()?;
        LIVING.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| *known != leader);
        Some(leader)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.forget() {
            // It fails where nobody is left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
