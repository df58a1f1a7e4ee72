//! One plan, many seeds: each a run of its own, spread over threads.
//!
//! A run is a function of its plan and its seed, so that threads change when it is done and nothing of what it shows: results come in the order of
//! the seeds. What a signal ended early shows nothing, and is left out.

use super::{SimError, run};
use crate::engine::Unobserved;
use crate::metrics::{RunRecord, StopReason};
use crate::plan::Plan;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Simulates a plan with each of these seeds, on so many threads (one at least). `each` turns a record, which is large, into what is kept of it, on the
/// thread that made it; `done` is told how many seeds are done, the last of them included. Results come in the order of the seeds; with a `signal` those
/// that it left undone are missing.
///
/// # Errors
/// That of the first seed, in their order, that cannot be simulated.
pub fn many<T: Send>(
    plan: &Plan,
    seeds: &[u64],
    threads: usize,
    signal: &AtomicI32,
    each: &(dyn Fn(u64, RunRecord) -> T + Sync),
    done: &(dyn Fn(usize) + Sync),
) -> Result<Vec<T>, SimError> {
    let seeded = |seed| Plan { seed, ..plan.clone() };
    spread(seeds, threads, signal, &|seed| run(&seeded(seed), &mut Unobserved, signal), each, done)
}

/// [`many`], whatever runs a seed.
fn spread<T: Send>(
    seeds: &[u64],
    threads: usize,
    signal: &AtomicI32,
    run: &(dyn Fn(u64) -> Result<RunRecord, SimError> + Sync),
    each: &(dyn Fn(u64, RunRecord) -> T + Sync),
    done: &(dyn Fn(usize) + Sync),
) -> Result<Vec<T>, SimError> {
    let slots: Vec<Mutex<Option<Result<T, SimError>>>> = seeds.iter().map(|_| Mutex::new(None)).collect();
    let (next, finished, broken) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        // An error is every seed's error, or none is worth waiting for.
        while signal.load(Ordering::Relaxed) == 0 && broken.load(Ordering::Relaxed) == 0 {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&seed) = seeds.get(index) else { break };
            let kept = match run(seed) {
                Ok(record) if is_cut_short(&record) => continue,
                Ok(record) => Ok(each(seed, record)),
                Err(error) => Err(error),
            };
            broken.fetch_add(usize::from(kept.is_err()), Ordering::Relaxed);
            *slots[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
            done(finished.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    std::thread::scope(|scope| {
        // The calling thread works too, so that one thread is no thread more.
        for _ in 1..threads.clamp(1, seeds.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    slots.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

fn is_cut_short(record: &RunRecord) -> bool {
    matches!(record.stopped, Some(StopReason::Signal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn record(seed: u64) -> RunRecord {
        RunRecord { ended: Timestamp(seed), ..RunRecord::default() }
    }

    fn kept(seed: u64, record: RunRecord) -> (u64, u64) {
        (seed, record.ended.0)
    }

    #[test]
    fn results_come_in_the_order_of_the_seeds_on_any_number_of_threads() {
        let seeds: Vec<u64> = (5..45).collect();
        for threads in [0, 1, 2, 3, 64] {
            let told = Mutex::new(Vec::new());
            let done = |n| told.lock().unwrap().push(n);
            let got = spread(&seeds, threads, &AtomicI32::new(0), &|seed| Ok(record(seed * 2)), &kept, &done).unwrap();
            assert_eq!(got, seeds.iter().map(|&seed| (seed, seed * 2)).collect::<Vec<_>>(), "{threads}");
            let mut told = told.into_inner().unwrap();
            told.sort_unstable();
            assert_eq!(told, (1..=seeds.len()).collect::<Vec<_>>());
        }
        assert_eq!(spread(&[], 2, &AtomicI32::new(0), &|seed| Ok(record(seed)), &kept, &|_| ()).unwrap(), []);
    }

    #[test]
    fn what_a_signal_left_undone_is_missing() {
        let signal = AtomicI32::new(0);
        let run = |seed| {
            if seed < 3 {
                return Ok(record(seed));
            }
            signal.store(2, Ordering::Relaxed);
            Ok(RunRecord { stopped: Some(StopReason::Signal(2)), ..record(seed) })
        };
        let got = spread(&[0, 1, 2, 3, 4, 5], 1, &signal, &run, &kept, &|_| ()).unwrap();
        assert_eq!(got, [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(spread(&[0, 1], 2, &signal, &run, &kept, &|_| ()).unwrap(), []);
    }

    #[test]
    fn a_plan_that_cannot_be_simulated_says_so_once() {
        let asked = AtomicUsize::new(0);
        let run = |_| {
            asked.fetch_add(1, Ordering::Relaxed);
            Err(SimError::NoModel { url: "http://h/".into() })
        };
        let error = spread(&[1, 2, 3], 1, &AtomicI32::new(0), &run, &kept, &|_| ()).unwrap_err();
        assert!(error.to_string().contains("http://h/"));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}
