//! SIGINT and SIGTERM: the first asks for an orderly end, the second ends the process at once.

use std::io;
use std::sync::{Mutex, PoisonError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Hears the signals that end a run.
#[derive(Clone, Debug)]
pub struct Signals {
    first: watch::Receiver<i32>,
}

static INSTALLED: Mutex<Option<Signals>> = Mutex::new(None);

impl Signals {
    /// Takes both signals over, for as long as the process lives. A thread of their own waits for them, so that the
    /// second one ends the process whatever else is stuck.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn install() -> io::Result<Self> {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(signals) = &*installed {
            return Ok(signals.clone());
        }
        let (heard, first) = watch::channel(0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (mut interrupt, mut terminate) = {
            let _inside = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            runtime.block_on(async {
                loop {
                    let number = tokio::select! {
                        _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
                        _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
                    };
                    if *heard.borrow() != 0 {
                        std::process::exit(128 + number);
                    }
                    heard.send_replace(number);
                }
            });
        })?;
        let signals = Self { first };
        *installed = Some(signals.clone());
        Ok(signals)
    }

    /// Returns with the number of the first signal, 2 or 15, once it has come. Cancel safe.
    pub async fn first(&mut self) -> i32 {
        match self.first.wait_for(|number| *number != 0).await {
            Ok(number) => *number,
            // The thread lives as long as the process; were it gone, no signal could come.
            Err(_) => std::future::pending().await,
        }
    }
}
