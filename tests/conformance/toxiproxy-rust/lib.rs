//! Holds the client crate `toxiproxy_rust` and its lock; there is nothing to build for.
