//! `--otlp`: where the figures are sent, and what became of that.

use super::exit::Code;
use super::finish::fail;
use crate::engine::live::guard::Allowed;
use crate::engine::live::pusher::{Pusher, collector, unix_nanos};
use crate::engine::live::redacted::Redacted;
use crate::engine::live::webhook::WebhookError;
use crate::plan::Plan;
use crate::report::otlp::{Taken, request};
use crate::report::prometheus::Figures;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The variable that says headers.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Figures on their way to a collector.
pub struct Push {
    url: String,
    began: Arc<AtomicU64>,
    pusher: Pusher,
}

impl Push {
    /// Begins to send.
    ///
    /// # Errors
    /// The code to end with, once it was said why.
    pub fn start(url: &str, plan: &Plan, approve: bool, figures: &Figures) -> Result<Self, Code> {
        let allowed = Allowed::new(plan.target.allow.iter().map(|host| host.value.clone()), approve);
        let headers = std::env::var(HEADERS).unwrap_or_default();
        let to = collector(url, &headers, &allowed).map_err(|error| {
            fail(&format!("--otlp: {error}"));
            match error {
                WebhookError::Guard(guard) if guard.is_refusal() => Code::Refused,
                WebhookError::Guard(_) | WebhookError::Tls(_) => Code::Internal,
                WebhookError::Header(_) | WebhookError::Call(_) => Code::Usage,
            }
        })?;
        let (figures, began) = (figures.clone(), Arc::new(AtomicU64::new(unix_nanos())));
        let since = began.clone();
        let body = move || request(&figures.families(), Taken { began: since.load(Ordering::Relaxed), at: unix_nanos() });
        let pusher = Pusher::start(to, body).map_err(|error| fail(&format!("cannot start a thread for --otlp: {error}")))?;
        Ok(Self { url: Redacted::Url(url).to_string(), began, pusher })
    }

    /// A run begins: what is sent from here on is of it.
    pub fn begin(&self) {
        self.began.store(unix_nanos(), Ordering::Relaxed);
    }

    /// Sends the last ones. A collector that did not take all of them is worth a warning, and no more.
    pub fn end(self) {
        let sent = self.pusher.end();
        if let Some(why) = sent.why {
            let (failed, all) = (sent.failed, sent.failed + sent.taken);
            let text = format!("warning: {failed} of {all} times the collector at {} did not take the figures: {why}", self.url);
            let _ = writeln!(std::io::stderr().lock(), "{}", text.escape_debug());
        }
    }
}
