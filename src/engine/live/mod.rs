//! The live engine: real clients, a real proxy, a real target, on real sockets.

pub mod actions;
pub mod certificates;
pub mod clock;
pub mod exporter;
pub mod external;
pub mod file;
pub mod group;
pub mod guard;
pub mod limits;
pub mod plane;
pub mod proxy;
#[cfg(feature = "otlp")]
pub mod pusher;
pub mod redacted;
pub mod run;
pub mod shard;
pub mod signal;
pub mod small_server;
pub mod stop;
pub mod target;
pub mod timer;
pub mod tls;
pub mod transport;
pub mod webhook;
