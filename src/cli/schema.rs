//! `stormwake schema`: the JSON Schema of plans, or of results.

use super::exit::Code;
use super::output;
use crate::report::schema;

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// Print the schema of result.json instead of the plan's.
    #[arg(long)]
    result: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    let schema = if args.result { result_schema() } else { schema::plan() };
    let text = serde_json::to_string_pretty(&schema).expect("a JSON value has text keys only");
    output::print(format!("{text}\n").as_bytes()).map_or_else(|lost| lost, |()| Code::Pass)
}

/// The one call site of the result's schema.
fn result_schema() -> serde_json::Value {
    crate::report::result::schema()
}
