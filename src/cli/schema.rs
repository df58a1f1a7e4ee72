//! `stormwake schema`: the JSON Schema of plans, or of results.

use super::exit::Code;
use super::output;
use crate::report::{compare, events, result, schema, seeds};

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// Print the schema of result.json instead of the plan's.
    #[arg(long, group = "of")]
    result: bool,
    /// Print the schema of seeds.json, which `simulate` writes.
    #[arg(long, group = "of")]
    seeds: bool,
    /// Print the schema of compare.json, which `compare` writes.
    #[arg(long, group = "of")]
    compare: bool,
    /// Print the schema of one line of events.ndjson.
    #[arg(long, group = "of")]
    events: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    let schema = match args {
        Args { result: true, .. } => result::schema(),
        Args { seeds: true, .. } => seeds::schema(),
        Args { compare: true, .. } => compare::schema(),
        Args { events: true, .. } => events::schema(),
        _ => schema::plan(),
    };
    let text = serde_json::to_string_pretty(&schema).expect("a JSON value has text keys only");
    output::print(format!("{text}\n").as_bytes()).map_or_else(|lost| lost, |()| Code::Pass)
}
