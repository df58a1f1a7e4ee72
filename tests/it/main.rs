//! The one integration binary.
#![allow(clippy::disallowed_methods, reason = "the peers of these tests live in real time")]

mod bad_input;
mod bisect;
mod calibrate;
mod ci;
mod devices;
mod driven;
mod external;
mod gameday;
mod golden;
mod guards;
mod incident_b;
mod logging;
mod manual;
mod metrics;
mod nginx;
mod plane;
mod plans;
mod presets;
mod proxy;
mod proxy_replay;
mod proxy_v1;
mod sample;
mod seeds;
mod signals;
mod simulated;
mod storms;
mod support;
mod target;
mod tidy;
mod tls;
mod truth;
mod watched;
