//! `reports/README.md`: what each file of a report holds, field by field. Made from the same sources as the files: the schemas of the
//! documents, the columns of the series, the kinds of histogram. A test holds the page to them; `UPDATE_GOLDEN=1` writes it anew.

use super::published::{COMPARE, EVENTS, Published, RESULT, SEEDS};
use super::windows_csv::COLUMNS;
use super::{compare, events, hlog, result, seeds};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# What a run leaves

`stormwake run` and `simulate` write `reports/PLAN/TIME-seedN/`, or the same under `--out`; nothing here is written by hand. Each file below says what it
holds, field by field. Times are in milliseconds since the run began and end in `_ms`, rates are per second, shares lie between 0 and 1. What a run has
no evidence of is `null` in JSON and empty in CSV, never 0. The same plan and seed, simulated, give the same bytes.

This page is made from what the files are made from (`src/report/reference.rs`), and a test holds it to that.

| file | what | read by |
|---|---|---|
| `report.html` | the page to look at and to hand on: one file that loads nothing, with its script optional | a browser |
| `junit.xml` | what was judged: a suite for the plan (in a comparison for each policy), a case for the recovery class, for each gate, and for the run itself; `failure` is a fail, `error` inconclusive or broken off; engine, plan, its hash, expectation, outcome, exit code and seeds are properties of the suite | CI systems, `junitparser` |
| `summary.md` | verdict, gates and figures in Markdown | merge requests, chats |
| [`result.json`](#resultjson) | the whole run: verdict, figures, phases, every window | anything that reads JSON |
| [`windows.csv`](#windowscsv) | the series, a row for each second | spreadsheets, pandas |
| [`latency.hlog`](#latencyhlog) | every histogram | HdrHistogram's tools in any language |
| [`latency*.hgrm`](#latencyhgrm) | percentiles of operation latency | HdrHistogram's plotters |
| [`events.ndjson`](#eventsndjson) | what happened, written as it happens | `jq`, log tools |
| `effective.yaml` | the plan after variables and overrides: what was run, and can be run again. What variables held stands in it; `from_env` and `from_file` of a header do not say what they found | `stormwake` |
| [`seeds.json`](#seedsjson) | `simulate` with many seeds: all of them; the report of the worst one lies in `seedN/` | anything that reads JSON |
| [`compare.json`](#comparejson) | `compare`: every policy on the same seeds | anything that reads JSON |

Versions: the JSON documents say theirs in `schema_version`, the events in their first line, and `stormwake schema --result`, `--seeds`, `--compare` and
`--events` print the JSON Schemas, named `urn:stormwake:schema:NAME:VERSION`. A version grows when a field goes or changes its meaning, not when a field, a column, an event
or a name in a list of outcomes comes: a reader that takes what it knows by name, and skips the rest, reads every document of its version.
";

const SERIES: &str = "
Encoded in UTF-8, a header first, quoted as RFC 4180 has it, rows ended by a line feed. Counts are of the window, not per second; `window_ms` of `result.json` says how long
one is. All fleets together: neither this file nor `result.json` has windows by fleet. Columns go by their names: others may come between them. A phase whose name a spreadsheet would take for a formula has an apostrophe
in front; names of plans begin with a letter or a digit, and never need it.

In Python: `import csv; rows = list(csv.DictReader(open(\"windows.csv\", newline=\"\")))`, then `[int(row[\"succeeded\"]) for row in rows]`.
";

const HISTOGRAMS: &str = "
An HdrHistogram interval log, version 1.3, histograms compressed as V2. Values are microseconds of three significant digits, an hour at most. A line for each phase, fleet and
kind: the tag is `PHASE/FLEET/KIND`, and a histogram without values has no line. Phase and fleet are written as in a URL (`after%20outage`), since a tag holds no space. A phase that comes again has a line for each
time, under one tag. `StartTime` and `BaseTime` are when the run started, or 0 in virtual time; a line's first number is when its phase began, in seconds after that, its second how
long the phase was, its third the largest value in microseconds. An operation belongs to the phase of its intended start, however long it then takes.
";

const READING_HISTOGRAMS: &str = "
In Python, with PyPI's `hdrhistogram`: `reader = HistogramLogReader(\"latency.hlog\", HdrHistogram(1, 3_600_000_000, 3))`, then `reader.get_next_interval_histogram()` until it gives `None`; each has
`get_tag()` and `get_value_at_percentile(99)`. With HdrHistogram's Java tool: `java -cp hdrhistogram.jar org.HdrHistogram.HistogramLogProcessor -i latency.hlog -tag steady/app/operation.succeeded
-outputValueUnitRatio 1000 -o out` writes the percentiles in milliseconds to `out.hgrm`; `-listtags` lists the tags. PyPI's percentiles round a rank where Java's take the first value that reaches it, and so may differ by one value.
";

const PERCENTILES: &str = "
Percentiles of operation latency from the intended start, of operations that succeeded, all fleets together, in milliseconds: `latency.hgrm` of the whole run, `latency-before.hgrm`, `latency-during.hgrm` and
`latency-after.hgrm` of the stretches before the first fault, from its begin to the last one's end, and after that. A stretch that the run did not have, or in which nothing
succeeded, has no file. Fleets that hand their operations to another fleet's queue are left out, as in the figures of the whole. The text is what HdrHistogram's Java tool makes of the same histograms, and its plotters take several such files at once.

| column | |
|---|---|
| `Value` | latency in milliseconds: the largest value that the histogram does not tell apart from the one at this percentile |
| `Percentile` | the share of values that are no larger, 0 to 1, in steps that come closer towards 1 |
| `TotalCount` | how many values are no larger |
| `1/(1-Percentile)` | one value in so many is larger; missing in the last line |

Lines that begin with `#` say the mean, the standard deviation and the largest value in milliseconds, how many values there are, and how the histogram is laid out.

In Python: `rows = [line.split() for line in open(\"latency.hgrm\") if line.strip() and line.strip()[0].isdigit()]`, then `float(row[0])` and `float(row[1])` of each.
";

const LINES: &str = "
One JSON object a line, in the order of what happened, each written whole and at once: a killed run leaves what it had. Every line has `t_ms` and `event`; the first is `prepared`. Events:
";

/// The page.
fn page() -> String {
    let mut out = String::from(INTRODUCTION);
    heading(&mut out, RESULT.file);
    document(&mut out, &RESULT, &result::schema(), &mut BTreeSet::new(), "`run[\"totals\"][\"success\"]`");
    heading(&mut out, super::folder::WINDOWS);
    out.push_str(SERIES);
    table(&mut out, "column", COLUMNS.iter().map(|column| (column.name.to_string(), column.doc.to_string())));
    heading(&mut out, super::folder::LATENCY);
    out.push_str(HISTOGRAMS);
    table(&mut out, "kind", hlog::KINDS.iter().map(|(kind, doc)| (kind.to_string(), doc.to_string())));
    out.push_str(READING_HISTOGRAMS);
    heading(&mut out, "latency*.hgrm");
    out.push_str(PERCENTILES);
    heading(&mut out, EVENTS.file);
    out.push_str(LINES);
    lines_of(&mut out, &events::schema());
    out.push_str(
        "\nIn Python: `import json; events = [json.loads(line) for line in open(\"events.ndjson\", encoding=\"utf-8\")]`.\n",
    );
    let mut told = names(&result::schema());
    heading(&mut out, SEEDS.file);
    document(&mut out, &SEEDS, &seeds::schema(), &mut told, "`run[\"recovered\"][\"low\"]`");
    told.extend(names(&seeds::schema()));
    heading(&mut out, COMPARE.file);
    document(&mut out, &COMPARE, &compare::schema(), &mut told, "`run[\"policies\"][0][\"recovered\"]`");
    out
}

fn heading(out: &mut String, title: &str) {
    put(out, format_args!("\n## {title}\n"));
}

/// A document: its own fields, and then those of each kind of object in it that is not `told` already.
fn document(out: &mut String, of: &Published, schema: &Value, told: &mut BTreeSet<String>, such_as: &str) {
    put(out, format_args!("\n{} Version {}.\n", text(&schema["description"]), of.version));
    put(
        out,
        format_args!("\nIn Python: `import json; run = json.load(open(\"{}\", encoding=\"utf-8\"))`, then {such_as}.\n", of.file),
    );
    fields(out, schema);
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        if !told.insert(name.clone()) {
            continue;
        }
        if definition["properties"].is_object() {
            put(out, format_args!("\n### {}: {name}\n\n{}\n", of.file, text(&definition["description"])));
            fields(out, definition);
        } else {
            put(out, format_args!("\n### {}: {name}\n\n{} One of:\n", of.file, text(&definition["description"])));
            let words = definition["oneOf"].as_array().into_iter().flatten();
            table(out, "word", words.map(|word| (text(&word["const"]), text(&word["description"]))));
        }
    }
}

fn names(schema: &Value) -> BTreeSet<String> {
    schema["$defs"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

fn fields(out: &mut String, of: &Value) {
    out.push_str("\n| field | type | |\n|---|---|---|\n");
    for (name, field) in of["properties"].as_object().into_iter().flatten() {
        put(out, format_args!("| `{name}` | {} | {} |\n", kind(field), cell(&field["description"])));
    }
}

/// Every event, with its fields.
fn lines_of(out: &mut String, schema: &Value) {
    out.push_str("\n| event | | fields |\n|---|---|---|\n");
    for event in schema["oneOf"].as_array().into_iter().flatten() {
        let properties = event["properties"].as_object().into_iter().flatten().filter(|(name, _)| *name != "event");
        let fields: Vec<String> =
            properties.map(|(name, field)| format!("`{name}` ({}): {}", kind(field), cell(&field["description"]))).collect();
        let name = text(&event["properties"]["event"]["const"]);
        let fields = if fields.is_empty() { "none".to_string() } else { fields.join("<br>") };
        put(out, format_args!("| `{name}` | {} | {fields} |\n", cell(&event["description"])));
    }
}

fn table(out: &mut String, what: &str, rows: impl Iterator<Item = (String, String)>) {
    put(out, format_args!("\n| {what} | |\n|---|---|\n"));
    rows.for_each(|(name, doc)| put(out, format_args!("| `{name}` | {} |\n", doc.replace('|', "\\|"))));
}

/// A field's type in few words.
fn kind(field: &Value) -> String {
    if let Some(reference) = field["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap_or_default().to_string();
    }
    if let Some(forms) = field["anyOf"].as_array() {
        return forms.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    let of = |name: &str| match name {
        "integer" => "whole number".to_string(),
        "array" => format!("list of {}", kind(&field["items"])),
        "object" => format!("by name, {}", kind(&field["additionalProperties"])),
        "string" => "text".to_string(),
        "boolean" => "true or false".to_string(),
        other => other.to_string(),
    };
    match &field["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(of).collect::<Vec<_>>().join(" or "),
        name => name.as_str().map_or_else(|| "any".to_string(), of),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('\n', " ")
}

fn cell(value: &Value) -> String {
    text(value).replace('|', "\\|")
}

fn put(out: &mut String, text: std::fmt::Arguments) {
    out.write_fmt(text).expect("a string takes every text");
}

#[test]
fn the_page_of_the_files_says_what_they_hold() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/reports/README.md");
    let page = page();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let kept = std::fs::read_to_string(path).expect("the page is there");
    assert!(kept == page, "reports/README.md differs; UPDATE_GOLDEN=1 rewrites it");
    for kind in ["any", "null or null"] {
        assert!(!page.contains(&format!("| {kind} |")), "a field whose type is not told");
    }
    assert!(!page.contains("` | |\n") && !page.contains(": <br>"), "each field says what it is");
}
