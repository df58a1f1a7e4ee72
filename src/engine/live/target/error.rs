//! What can go wrong with the built-in target.

use crate::time::Span;
use std::net::SocketAddr;

/// Why the built-in target does not run. Every one is an error of the environment, not of the plan.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}: {source}{}", port_hint(.source))]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The kernel gives no timer.
    #[error("the kernel gives no timer: {0}; file descriptors may have run out (see `ulimit -n`)")]
    Timer(std::io::Error),
    /// The program of the child cannot be started.
    #[error(
        "cannot start the built-in target, {program} target --child: {source}; the program must still be where it was started \
         from, and this user may start another process (see `ulimit -u`)"
    )]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// The child ended before it was ready.
    #[error("the built-in target ended before it was ready ({status}){}", said(.stderr))]
    Ended {
        /// How it ended.
        status: String,
        /// What it wrote to stderr.
        stderr: String,
    },
    /// The child ended while it was needed.
    #[error("the built-in target ended while it was needed ({status}){}", said(.stderr))]
    Died {
        /// How it ended.
        status: String,
        /// What it wrote to stderr.
        stderr: String,
    },
    /// The child is not ready in time.
    #[error("the built-in target was not ready within {patience}{}; is the machine overloaded?", said(.stderr))]
    NotReady {
        /// How long was waited.
        patience: Span,
        /// What it wrote to stderr.
        stderr: String,
    },
    /// The child said something else than where it listens.
    #[error(
        "the built-in target answered `{line}` where it should say where it listens; is {program} a stormwake of this version?"
    )]
    Protocol {
        /// The program.
        program: String,
        /// What it said.
        line: String,
    },
}

fn port_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => "; choose another port, or port 0 for any that is free",
        std::io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges, choose a higher one",
        std::io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
        _ => "",
    }
}

fn said(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        text => format!("; it said: {text}"),
    }
}
