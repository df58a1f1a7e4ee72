//! stormwake: a load-generating chaos test harness that answers one question about a system before production
//! does: *when the fault ends, does the incident end?*
//!
//! # Map
//!
//! A module uses only modules on lower floors, and modules listed before it on its own. The tidy test
//! (`tests/it/tidy.rs`) reads this list and fails on any other `use`, and on a module that is not listed.
//!
//! Floor 0: vocabulary, pure data
//! - `time`: moments, lengths of time, rates and shares, and how each is written
//! - `rng`: counter-based randomness
//! - `event`: what a run emits
//! - `config`: configuration as a tree with places, and how plain types are read from it
//! - `size`: amounts of bytes, rates of them, and how each is written
//! - `exposition`: figures for monitoring systems, and how Prometheus reads them
//! - `priority`: what goes first, and how a request says so
//! - `stats`: what several runs say together
//!
//! Floor 1: state machines, without IO
//! - `pace`: a shared pacer: at most so many a second
//! - `policy`: whether and when to retry
//! - `load`: when operations are offered
//! - `operation`: the retry loop
//! - `service`: a model of a target
//! - `fleet`: clients that share a load shape and a policy
//! - `fault`: what harm, and when
//! - `network`: what a simulated network does to a message
//! - `metrics`: events to windows and histograms
//! - `gate`: windows to findings to a verdict
//! - `plan`: YAML to a checked plan
//!
//! Floor 2: engines
//! - `engine`: carries out what the machines decide; owns time and effects. `engine::live` has real sockets, `engine::sim` virtual time
//!
//! Floor 3: surface
//! - `report`: a run's record to bytes
//! - `cli`: one file per command; exit codes in one table
//!
//! # Invariants
//!
//! 1. Below the engines nothing reads a clock, draws from a global generator, sleeps, spawns or does IO. Time is an
//!    argument, randomness is an argument: test `what_is_banned_stands_only_where_it_may`,
//!    test `machines_and_reports_touch_nothing_outside`, and `clippy.toml`.
//! 2. The retry loop exists once, and every engine runs it: test `the_retry_loop_exists_once`; the live driver and the simulator make the same
//!    events of it, moments included: the tests of `engine/live/shard/parity.rs`.
//! 3. A simulated run is a function of (plan, seed), to the byte: test `a_simulated_run_is_the_same_to_the_byte`,
//!    test `seeds_are_the_same_to_the_byte_on_any_number_of_threads`, test `both_queues_make_the_same_run_and_a_run_repeats`.
//!    Randomness is counter-based, keyed by (seed, fleet, client, operation, attempt, purpose), whatever the order of events, the number of shards
//!    or the policy under test: test `another_policy_meets_the_same_arrivals`,
//!    test `a_run_repeats_to_the_byte_and_arrivals_do_not_depend_on_the_policy`, test `a_draw_is_a_function_of_its_key`.
//! 4. Deadlines are rounded up to the run's timer grain in one place; measured latency is not rounded:
//!    test `deadlines_are_rounded_in_one_place`.
//! 5. A gate without enough evidence is inconclusive, and inconclusive is never a pass: test `no_evidence_no_pass`.
//! 6. Every queue, loop, buffer and run is bounded, and reaching a bound is counted and reported:
//!    test `hostile_files_are_refused_in_bounded_time`, test `a_day_of_windows_is_bounded`,
//!    test `memory_is_bounded_and_what_is_forgotten_too_soon_is_counted`,
//!    test `a_target_that_is_down_or_broken_is_no_healthy_baseline`, test `time_that_stands_still_and_a_signal_within_a_window_end_a_run`.
//! 7. Faults are leases: when the controller dies, they go with it. The proxy lives in its process, the built-in target
//!    ends with its parent: test `a_killed_run_leaves_nothing_behind`. From a Toxiproxy a watchdog removes them:
//!    test `a_killed_run_leaves_nothing_in_the_toxiproxy`, test `a_run_that_stands_still_loses_its_faults`. In a `stormwake proxy` they go with
//!    the run's lease: test `a_killed_run_leaves_nothing_in_the_stormwake_proxy`,
//!    test `a_lease_ends_at_its_time_without_traffic_and_is_kept_by_renewals`.
//! 8. Only `plan` knows YAML, only `report` knows output formats, only `report` and `cli` write to stdout:
//!    test `what_is_banned_stands_only_where_it_may`.

pub mod config;
pub mod engine;
pub mod event;
pub mod exposition;
pub mod fault;
pub mod fleet;
pub mod gate;
pub mod load;
pub mod metrics;
pub mod network;
pub mod operation;
pub mod pace;
pub mod plan;
pub mod policy;
pub mod priority;
pub mod report;
pub mod rng;
pub mod service;
pub mod size;
pub mod stats;
pub mod time;

#[cfg(feature = "live")]
pub mod cli;
