//! What of a live run can be watched from outside while it goes on: `--metrics`, and `--otlp` where it is built in.

use super::exit::Code;
use super::finish::fail;
#[cfg(feature = "otlp")]
use super::otlp::Push;
use crate::engine::Observer;
use crate::engine::live::exporter;
use crate::engine::live::small_server::{ServeError, SmallServer};
use crate::metrics::RunRecord;
use crate::plan::Plan;
use crate::report::prometheus::{Figures, Subject};
use crate::time::Span;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::mpsc;

/// What it is given.
#[derive(clap::Args)]
pub struct MetricsArgs {
    /// Serve the figures of the run at http://ADDRESS/metrics while it goes on, for Prometheus; port 0 takes any that is free.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    metrics: Option<SocketAddr>,
    /// Go on serving them for so long after the verdict, so that the last ones are scraped too.
    #[arg(long, value_name = "TIME", value_parser = Span::parse, requires = "metrics")]
    metrics_linger: Option<Span>,
    /// Let them be served beyond loopback: whoever reaches this machine can read them.
    #[arg(long, requires = "metrics")]
    metrics_expose: bool,
    /// Send the figures to the collector of OpenTelemetry at this URL, such as http://127.0.0.1:4318, every 5 s and at the end (OTLP/HTTP).
    /// A host beyond this machine needs the plan's `allow` and --approve. OTEL_EXPORTER_OTLP_HEADERS says headers.
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let parsed = text.replacen("localhost:", "127.0.0.1:", 1).parse();
    parsed.map_err(|_| "expected an address and a port, such as 127.0.0.1:9464".into())
}

/// Who watches.
pub struct Watched {
    figures: Figures,
    server: Option<SmallServer>,
    linger: Span,
    #[cfg(feature = "otlp")]
    push: Option<Push>,
}

impl MetricsArgs {
    /// Whether anything of it was asked for.
    pub fn is_some(&self) -> bool {
        #[cfg(feature = "otlp")]
        if self.otlp.is_some() {
            return true;
        }
        self.metrics.is_some()
    }

    /// Begins to serve and to send, before there is a run of this plan. Beyond loopback it is sent only where that was approved.
    ///
    /// # Errors
    /// The code to end with, once it was said why.
    pub fn start(&self, plan: &Plan, approve: bool) -> Result<Watched, Code> {
        let figures = Figures::default();
        let server = self.metrics.map(|addr| self.serve(addr, &figures)).transpose()?;
        if let Some(server) = &server {
            let _ = writeln!(std::io::stderr().lock(), "metrics at http://{}{}", server.addr(), exporter::PATH);
        }
        let linger = self.metrics_linger.unwrap_or(Span::ZERO);
        #[cfg(feature = "otlp")]
        let push = self.otlp.as_ref().map(|url| Push::start(url, plan, approve, &figures)).transpose()?;
        #[cfg(not(feature = "otlp"))]
        let _ = (plan, approve);
        Ok(Watched {
            figures,
            server,
            linger,
            #[cfg(feature = "otlp")]
            push,
        })
    }

    fn serve(&self, addr: SocketAddr, figures: &Figures) -> Result<SmallServer, Code> {
        if !addr.ip().to_canonical().is_loopback() && !self.metrics_expose {
            fail(&format!("refused: metrics at {addr} would not be on loopback: add --metrics-expose if you mean it"));
            return Err(Code::Refused);
        }
        let figures = figures.clone();
        exporter::start(addr, move || figures.text()).map_err(|error| match error {
            ServeError::Bind { .. } => {
                fail(&format!("{error}: choose another address with --metrics, or end what listens there"))
            }
            ServeError::Thread(_) => fail(&error),
        })
    }
}

impl Watched {
    /// A run begins.
    pub fn begin(&self, subject: Subject, plan: &Plan) {
        self.figures.begin(subject, plan);
        #[cfg(feature = "otlp")]
        self.push.iter().for_each(Push::begin);
    }

    /// Who hears of the run; none where nobody watches.
    pub fn observer(&self) -> Option<Box<dyn Observer>> {
        #[cfg_attr(not(feature = "otlp"), expect(unused_mut, reason = "only the feature changes it"))]
        let mut watched = self.server.is_some();
        #[cfg(feature = "otlp")]
        {
            watched |= self.push.is_some();
        }
        watched.then(|| Box::new(self.figures.clone()) as Box<dyn Observer>)
    }

    /// A run is over: from here on the figures are those of its record.
    pub fn settle(&self, record: &RunRecord) {
        self.figures.settle(record);
    }

    /// The verdict is out. A signal ends the process meanwhile.
    pub fn end(self) {
        #[cfg(feature = "otlp")]
        self.push.into_iter().for_each(Push::end);
        if self.server.is_some() && self.linger > Span::ZERO {
            let (_held, never) = mpsc::channel::<()>();
            let _ = never.recv_timeout(self.linger.to_std());
        }
    }
}
