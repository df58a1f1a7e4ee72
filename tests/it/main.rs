//! The one integration binary.
#![allow(clippy::disallowed_methods, reason = "the peers of these tests live in real time")]

mod bad_input;
mod bisect;
mod calibrate;
mod nginx;
mod plans;
mod seeds;
mod signals;
mod storms;
mod support;
mod target;
mod tidy;
mod truth;
