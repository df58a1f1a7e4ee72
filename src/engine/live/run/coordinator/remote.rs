//! The faults that somebody else carries out: what is told of them, and their end.

use super::{Coordinator, Parts};
use crate::engine::live::clock::Clock;
use crate::engine::live::external::{Ending, External, Told};
use crate::fault::external::Server;
use crate::metrics::{Left, RunEvent, StopReason};
use crate::plan::External as Outside;
use tokio::task::JoinHandle;

impl Coordinator {
    /// Books what became of a step. One that failed leaves the run as it is, and without a verdict.
    pub(super) fn carried_out(&mut self, told: Told) -> Option<StopReason> {
        let timeline = &self.parts.timeline;
        let so_far = match &told {
            Told::Ended(step, _) => self.touched(*step),
            _ => 0,
        };
        let event = match told {
            Told::Began(step, at) => self.faults.begin(timeline, step, at),
            Told::Ended(step, at) => self.faults.end(timeline, step, at, &|_| so_far),
            Told::Counted(step, touched) => {
                self.counted.insert(step, touched);
                None
            }
            Told::Failed(step, why) => {
                let text = format!("the fault `{}` did not happen as the plan has it: {why}", timeline.step(step).name);
                self.faults.fail(step, why);
                Some(RunEvent::Warning { text })
            }
            Told::Warned(text) => Some(RunEvent::Warning { text }),
        };
        if let Some(event) = event {
            self.tell(&event);
        }
        None
    }

    /// What a step has touched: as its server counts, where that does; else what came to our own proxies while it acted.
    pub(super) fn touched(&self, step: usize) -> u64 {
        let Parts { plan, timeline, .. } = &self.parts;
        let counts = |external: &Outside| external.server == Server::Stormwake && external.carries_out(&plan.timeline[step]);
        match plan.external.iter().any(counts) {
            true => self.counted.get(&step).copied().unwrap_or(0),
            false => timeline.touched(step),
        }
    }

    /// Begins to remove what a server still has.
    pub(super) fn begin_removing(&mut self) -> Option<JoinHandle<Ending>> {
        self.parts.external.take().map(External::end)
    }

    /// Waits until that is done; what is left.
    pub(super) async fn removed(&mut self, removing: Option<JoinHandle<Ending>>) -> Vec<Left> {
        let Some(removing) = removing else { return Vec::new() };
        let Ending { told, left } = match removing.await {
            Ok(ending) => ending,
            Err(error) => {
                let what = format!("the faults in the server of `proxy` may still be there: their removal broke off: {error}");
                Ending { told: Vec::new(), left: vec![Left { what, by_hand: Vec::new() }] }
            }
        };
        for one in told {
            let _ = self.carried_out(one);
        }
        self.faults.cut(self.parts.clock.now());
        for Left { what, .. } in &left {
            self.tell(&RunEvent::Warning { text: what.clone() });
        }
        left
    }
}

/// What becomes of the next step; never, where nobody else carries out any.
pub(super) async fn told_of(external: Option<&mut External>) -> Told {
    match external {
        Some(external) => external.next().await,
        None => std::future::pending().await,
    }
}
