//! What holds a request at the proxy, and how that ends.
//!
//! A request is held by steps that took it (`hang` and `blackhole` with `release`), by steps that struck it while it was in
//! flight, and by a step in whose queue it waits. It goes on when none of them holds it any more: a step that acts no longer
//! lets go, and a queue lets in. A request that was taken before it went on is then judged again, by what acts now and has not had
//! its say; one that was struck on its way goes on where it was.

use super::active::Course;
use super::{Active, Judgement, Pending, Request};
use crate::time::Timestamp;

/// The holders of one request, and what it has met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    by: Vec<usize>,
    /// The steps that have judged it.
    met: Vec<usize>,
    /// Until when the delays that it met before last.
    delayed_to: Timestamp,
    /// What is to come to its answer.
    pending: Option<Pending>,
}

impl Hold {
    /// A step of a snapshot took the request as it was judged: all up to and including that one have had their say.
    pub fn take(&mut self, step: usize, by: &Active, pending: Option<Pending>) {
        self.pending = pending;
        for number in by.steps() {
            if !self.met.contains(&number) {
                self.met.push(number);
            }
            if number == step {
                break;
            }
        }
        self.by.push(step);
    }

    /// The same, and it waits in that step's queue; what delays it further to the front lasts until `delayed_to`, while it waits.
    pub fn queue(&mut self, step: usize, by: &Active, pending: Option<Pending>, delayed_to: Timestamp) {
        self.delayed_to = delayed_to;
        self.take(step, by, pending);
    }

    /// A step that began struck the request in flight.
    pub fn strike(&mut self, step: usize) {
        self.by.push(step);
    }

    /// A queue lets it in, or sends it away.
    pub fn leave(&mut self, step: usize) {
        self.by.retain(|&by| by != step);
    }

    /// Whether anything holds it, now that these steps act: the others have let go.
    pub fn holds(&mut self, active: &Active) -> bool {
        if !self.by.is_empty() {
            self.by.retain(|&step| active.contains(step));
        }
        !self.by.is_empty()
    }

    /// Whether anything held it when that was last asked.
    pub fn is_held(&self) -> bool {
        !self.by.is_empty()
    }

    /// The fate of a request that was let go: what acts and has not had its say judges it.
    pub fn judge_again(&self, active: &Active, request: &Request, now: Timestamp) -> Judgement {
        let course = Course::going_on(self.delayed_to.since(now), self.pending.clone());
        active.judge_again(request, now, &self.met, course)
    }
}

#[cfg(test)]
mod tests {
    use super::super::timeline::tests::{at, fault, step};
    use super::super::{Fate, Timeline};
    use super::*;
    use crate::time::Span;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    #[test]
    fn it_goes_on_when_the_last_of_its_holders_lets_go() {
        let steps = vec![step("a", 0, 3, fault("hang-release")), step("b", 1, 5, fault("hang-release"))];
        let timeline = Timeline::new(steps, 7);
        let mut hold = Hold::default();
        hold.take(0, &timeline.active(at(0)), None);
        hold.strike(1);
        let held: Vec<bool> = (2..6).map(|second| hold.holds(&timeline.active(at(second)))).collect();
        assert_eq!(held, [true, true, true, false]);
        assert!(!hold.is_held());
    }

    #[test]
    fn it_meets_each_fault_once_however_often_it_is_held() {
        let steps = vec![
            step("slow", 0, 10, fault("latency 5")),
            step("first", 0, 5, fault("hang-release")),
            step("later", 4, 10, fault("latency 7")),
            step("second", 4, 8, fault("hang-release")),
            step("behind", 0, 10, fault("latency 100")),
        ];
        let timeline = Timeline::new(steps, 7);
        let (request, mut hold) = (Request::ours(0, 1, 1), Hold::default());
        let first = timeline.active(at(1));
        assert_eq!(first.judge(&request, at(1)).fate, Fate::Swallow { step: 1, release: true });
        hold.take(1, &first, None);
        let second = timeline.active(at(5));
        assert!(!hold.holds(&second));
        let again = hold.judge_again(&second, &request, at(5));
        assert_eq!((again.fate, again.touched), (Fate::Swallow { step: 3, release: true }, vec![2, 3]));
        hold.take(3, &second, None);
        let last = timeline.active(at(8));
        assert!(!hold.holds(&last));
        let again = hold.judge_again(&last, &request, at(8));
        assert_eq!((again.fate, again.touched), (Fate::forward(ms(100)), vec![4]), "neither slow nor later has another say");
    }

    #[test]
    fn a_delay_runs_while_it_waits_in_a_queue() {
        let timeline = Timeline::new(vec![step("behind", 0, 10, fault("latency 100"))], 7);
        let active = timeline.active(at(1));
        let mut hold = Hold::default();
        hold.queue(9, &active, None, at(1) + ms(50));
        hold.leave(9);
        let fate = |waited| {
            let hold = Hold { met: Vec::new(), ..hold.clone() };
            hold.judge_again(&active, &Request::ours(0, 1, 1), at(1) + ms(waited)).fate
        };
        assert_eq!((fate(20), fate(80)), (Fate::forward(ms(130)), Fate::forward(ms(100))));
    }
}
