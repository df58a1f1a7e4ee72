//! The one integration binary.
#![allow(clippy::disallowed_methods, reason = "the peers of these tests live in real time")]
#![allow(clippy::print_stderr, reason = "a test that skips says so, loudly")]

mod bad_input;
mod nginx;
mod plans;
mod signals;
mod storms;
mod support;
mod target;
mod tidy;
mod truth;
