//! What of a live run can be watched from outside while it goes on: `--metrics`.

use super::exit::Code;
use super::finish::fail;
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
}

impl MetricsArgs {
    /// Whether anything of it was asked for.
    pub fn is_some(&self) -> bool {
        self.metrics.is_some()
    }

    /// Begins to serve, before there is a run.
    ///
    /// # Errors
    /// The code to end with, once it was said why.
    pub fn start(&self) -> Result<Watched, Code> {
        let figures = Figures::default();
        let server = self.metrics.map(|addr| self.serve(addr, &figures)).transpose()?;
        if let Some(server) = &server {
            let _ = writeln!(std::io::stderr().lock(), "metrics at http://{}{}", server.addr(), exporter::PATH);
        }
        Ok(Watched { figures, server, linger: self.metrics_linger.unwrap_or(Span::ZERO) })
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
    }

    /// Who hears of the run; none where nobody watches.
    pub fn observer(&self) -> Option<Box<dyn Observer>> {
        self.server.as_ref().map(|_| Box::new(self.figures.clone()) as Box<dyn Observer>)
    }

    /// A run is over: from here on the figures are those of its record.
    pub fn settle(&self, record: &RunRecord) {
        self.figures.settle(record);
    }

    /// The verdict is out. A signal ends the process meanwhile.
    pub fn end(self) {
        if self.server.is_some() && self.linger > Span::ZERO {
            let (_held, never) = mpsc::channel::<()>();
            let _ = never.recv_timeout(self.linger.to_std());
        }
    }
}
