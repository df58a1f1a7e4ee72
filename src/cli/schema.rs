//! `stormwake schema`: the JSON Schema of plans, or of results.

use super::exit::Code;
use super::output;
use crate::report::schema;

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
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    let schema = match (args.result, args.seeds, args.compare) {
        (true, ..) => crate::report::result::schema(),
        (_, true, _) => crate::report::seeds::schema(),
        (.., true) => crate::report::compare::schema(),
        _ => schema::plan(),
    };
    let text = serde_json::to_string_pretty(&schema).expect("a JSON value has text keys only");
    output::print(format!("{text}\n").as_bytes()).map_or_else(|lost| lost, |()| Code::Pass)
}
