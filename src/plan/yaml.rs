//! YAML text to a tree of nodes with places. The only module that knows YAML's syntax.
//!
//! Scalars stay text as written: `1e3`, `0755`, `yes` and `.inf` mean what the field that reads them says.
//! A hostile file gets a clear error in bounded time and memory: size, depth, nodes, aliases and scalars are capped.

use crate::config::{Key, Node, Place, Problems, Source, Value};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Location, MessageFormatter, Options, Spanned};
use std::collections::BTreeMap;
use std::fmt;

/// The largest plan file, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// The longest single value, in bytes.
pub const MAX_SCALAR: usize = 32 << 10;
/// How deep maps and lists may be nested.
pub const MAX_DEPTH: usize = 32;
/// How many keys and values a plan may hold, those repeated through aliases included.
pub const MAX_NODES: usize = 20_000;
/// How many keys and values may be repeated through aliases.
const MAX_REPEATED: usize = 4_000;
/// How many bytes of text the tree may hold, repetitions included.
const MAX_TEXT: usize = 4 << 20;

/// Where texts that stand in one place are used through aliases: by line and column of the text, the alias's line.
pub type Uses = BTreeMap<(u32, u32), Vec<u32>>;

/// A parsed document.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its tree, anchors and merge keys resolved. The place of a text is where it is written, not where an alias repeats it.
    pub root: Node,
    /// Where aliases repeat it.
    pub uses: Uses,
}

/// Parses one document; `None` means that a problem was reported.
pub fn parse(text: &str, source: Source, problems: &mut Problems) -> Option<Document> {
    if text.len() > MAX_BYTES {
        problems.error_with_hint(
            Place { source, line: 1, column: 1, len: 0 },
            format!("the file is {} bytes long; a plan may have {MAX_BYTES} at most", text.len()),
            "is this the right file?",
        );
        return None;
    }
    let errors = problems.error_count();
    let raw = match serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options()) {
        Ok(raw) => raw,
        Err(error) => {
            report(&error, text, source, problems);
            return None;
        }
    };
    let line_lengths = text.lines().map(|line| line.chars().count() as u32).collect();
    let mut tree = Tree { text, line_lengths, source, nodes: 0, bytes: 0, uses: Uses::new(), problems };
    let root = tree.node(raw)?;
    let uses = tree.uses;
    (problems.error_count() == errors).then_some(Document { root, uses })
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 4 * MAX_NODES,
            max_nodes: MAX_NODES,
            max_aliases: MAX_REPEATED,
            max_anchors: 1_000,
            max_recorded_anchor_events: MAX_NODES,
            max_recorded_anchor_bytes: MAX_TEXT,
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_documents: 1,
            max_total_scalar_bytes: MAX_TEXT,
            max_merge_keys: 1_000,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPEATED,
            max_replay_stack_depth: 8,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        strict_booleans: true,
        with_snippet: false,
    }
}

/// What the deserializer hands over, before places are worked out.
enum Raw {
    Null,
    Text(String),
    /// What YAML takes for a number or a truth value; its spelling is cut from the source, this stands in for it.
    Typed(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<Raw>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or a map")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }
    fn visit_bool<E: de::Error>(self, v: bool) -> Result<Raw, E> {
        Ok(Raw::Typed(v.to_string()))
    }
    fn visit_i64<E: de::Error>(self, v: i64) -> Result<Raw, E> {
        Ok(Raw::Typed(v.to_string()))
    }
    fn visit_u64<E: de::Error>(self, v: u64) -> Result<Raw, E> {
        Ok(Raw::Typed(v.to_string()))
    }
    fn visit_f64<E: de::Error>(self, v: f64) -> Result<Raw, E> {
        Ok(Raw::Typed(v.to_string()))
    }
    fn visit_str<E: de::Error>(self, v: &str) -> Result<Raw, E> {
        if v.len() > MAX_SCALAR {
            return Err(E::custom(format!("a value of {} bytes: {MAX_SCALAR} are allowed", v.len())));
        }
        Ok(Raw::Text(v.to_string()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Map(entries))
    }
}

/// Makes nodes of what was handed over.
struct Tree<'a> {
    text: &'a str,
    line_lengths: Vec<u32>,
    source: Source,
    nodes: usize,
    bytes: usize,
    uses: Uses,
    problems: &'a mut Problems,
}

impl Tree<'_> {
    fn node(&mut self, raw: Spanned<Raw>) -> Option<Node> {
        let place = self.place(raw.defined, raw.referenced);
        self.count(place, 0)?;
        let value = match raw.value {
            Raw::Null => Value::Null,
            Raw::Text(text) => Value::Text(text),
            Raw::Typed(stand_in) => Value::Text(self.spelling(raw.defined).unwrap_or(stand_in)),
            Raw::List(items) => Value::List(items.into_iter().map(|item| self.node(item)).collect::<Option<_>>()?),
            Raw::Map(entries) => Value::Map(self.entries(entries)?),
        };
        if let Value::Text(text) = &value {
            self.count(place, text.len())?;
        }
        Some(Node { value, place })
    }

    fn entries(&mut self, raw: Vec<(Spanned<Raw>, Spanned<Raw>)>) -> Option<Vec<(Key, Node)>> {
        let mut entries: Vec<(Key, Node)> = Vec::with_capacity(raw.len());
        let mut seen: BTreeMap<String, Place> = BTreeMap::new();
        for (key, value) in raw {
            let key = self.node(key)?;
            let value = self.node(value)?;
            let Value::Text(name) = key.value else {
                let message = format!("a key must be a single value, found {}", key.kind());
                self.problems.error_with_hint(key.place, message, "quote a text that holds `{`, `[`, `*`, `&`, `~` or `?`");
                continue;
            };
            match seen.get(&name) {
                Some(first) => self.problems.error_with_hint(
                    key.place,
                    format!("the key `{}` is there twice", crop(&name)),
                    format!("it is there in line {} already: keep one", first.line),
                ),
                None => {
                    seen.insert(name.clone(), key.place);
                    entries.push((Key { name, place: key.place }, value));
                }
            }
        }
        Some(entries)
    }

    /// Books a node and its text; past a bound, nothing more is made.
    fn count(&mut self, place: Place, bytes: usize) -> Option<()> {
        self.nodes += 1;
        self.bytes += bytes;
        if self.nodes <= 2 * MAX_NODES && self.bytes <= MAX_TEXT {
            return Some(());
        }
        self.problems.error(place, format!("too much in one plan: {MAX_NODES} values and {MAX_TEXT} bytes of text are allowed"));
        None
    }

    fn place(&mut self, defined: Location, referenced: Location) -> Place {
        let mut place = place_of(defined, self.source);
        let line_length = self.line_lengths.get(place.line.saturating_sub(1) as usize).copied().unwrap_or(0);
        // A map's or a text block's stretch runs over many lines: only its first is marked.
        place.len = place.len.min((line_length + 1).saturating_sub(place.column));
        if referenced.line() != 0 && (referenced.line(), referenced.column()) != (defined.line(), defined.column()) {
            let lines = self.uses.entry((place.line, place.column)).or_default();
            if lines.len() < 5 && !lines.contains(&(referenced.line() as u32)) {
                lines.push(referenced.line() as u32);
            }
        }
        place
    }

    /// The spelling of a plain scalar, from the source.
    fn spelling(&self, at: Location) -> Option<String> {
        let from = usize::try_from(at.span().byte_offset()?).ok()?;
        let len = usize::try_from(at.span().byte_len()?).ok()?;
        let text = self.text.get(from..from.checked_add(len)?)?.trim();
        let plain = !text.is_empty() && !text.starts_with(['!', '&', '"', '\'', '|', '>']);
        plain.then(|| text.to_string())
    }
}

fn place_of(at: Location, source: Source) -> Place {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Place { source, line: number(at.line()), column: number(at.column()), len: number(at.span().len()) }
}

fn crop(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Turns the parser's error into a problem that says how to mend the file.
fn report(error: &Error, text: &str, source: Source, problems: &mut Problems) {
    let mut error = error;
    while let Error::AliasError { error: inner, .. } | Error::WithSnippet { error: inner, .. } = error {
        error = inner;
    }
    let mut place = error.location().map_or_else(Place::default, |at| place_of(at, source));
    place = Place { source, line: place.line.max(1), column: place.column.max(1), len: place.len.min(200) };
    let (message, hint) = explain(error, text, place);
    match hint {
        Some(hint) => problems.error_with_hint(place, message, hint),
        None => problems.error(place, message),
    }
}

fn explain(error: &Error, text: &str, place: Place) -> (String, Option<String>) {
    let says = |message: &str, hint: &str| (message.to_string(), Some(hint.to_string()));
    match error {
        Error::Eof { .. } if text.trim().is_empty() => {
            says("the file is empty: expected a plan", "`stormwake init` writes one to start from")
        }
        Error::Eof { .. } => says("the file ends in the middle of a value", "close every bracket and quote"),
        Error::MultipleDocuments { .. } => several_documents(),
        Error::Budget { breach, .. } => explain_breach(breach),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::RecursiveReferencesRequireWeakTypes { .. } => says(
            &format!("the aliases repeat too much: {MAX_REPEATED} values at most, and none within itself"),
            "write the values out, or anchor less",
        ),
        Error::UnknownAnchor { .. } => says("this alias names no anchor", "define it above with `&name`"),
        Error::MergeValueNotMapOrSeqOfMaps { .. } => {
            says("`<<` merges maps: expected an alias of a map, such as `<<: *common`", "anchor a map with `&common`")
        }
        _ => {
            let formatter = serde_saphyr::DefaultMessageFormatter;
            let message = formatter.format_message(error).into_owned();
            let message = message.strip_prefix("invalid YAML: ").unwrap_or(&message).to_string();
            let line = text.lines().nth(place.line.saturating_sub(1) as usize).unwrap_or_default();
            let hint = if message.contains("tab") { hint_for_line("\t") } else { hint_for_line(line) };
            (format!("this is not YAML: {}", crop_message(&message)), hint)
        }
    }
}

fn several_documents() -> (String, Option<String>) {
    ("there is more than one document: a plan is one".into(), Some("remove everything from the second `---` on".into()))
}

fn explain_breach(breach: &BudgetBreach) -> (String, Option<String>) {
    let too_much = |what: String| (what, Some("a plan this large is probably a mistake".to_string()));
    match breach {
        BudgetBreach::Depth { .. } => too_much(format!("nested too deeply: {MAX_DEPTH} levels are allowed")),
        BudgetBreach::Documents { .. } => several_documents(),
        BudgetBreach::Aliases { .. } | BudgetBreach::AliasAnchorRatio { .. } | BudgetBreach::MergeKeys { .. } => {
            too_much(format!("too many aliases: they may repeat {MAX_REPEATED} values"))
        }
        BudgetBreach::Anchors { .. } | BudgetBreach::RecordedAnchorEvents { .. } | BudgetBreach::RecordedAnchorBytes { .. } => {
            too_much("too much is anchored".to_string())
        }
        BudgetBreach::ScalarBytes { .. } => too_much(format!("too much text: {MAX_TEXT} bytes are allowed")),
        _ => too_much(format!("too many values: {MAX_NODES} are allowed")),
    }
}

fn crop_message(message: &str) -> String {
    let mut cropped: String = message.chars().take(200).collect();
    if cropped.len() < message.len() {
        cropped.push('…');
    }
    cropped
}

/// `a: 1, b: 2`: several keys in one line, and no braces around them.
fn is_bare_map(line: &str) -> bool {
    let mut keys = line.splitn(2, ": ");
    let (Some(_), Some(rest)) = (keys.next(), keys.next()) else { return false };
    !line.contains(['{', '[', '"', '\'', '#']) && rest.split_once(", ").is_some_and(|(_, more)| more.contains(": "))
}

/// What is usually wrong with a line that is no YAML.
fn hint_for_line(line: &str) -> Option<String> {
    let start = line.trim_start();
    if line.starts_with('\t') || line.chars().take_while(|c| c.is_whitespace()).any(|c| c == '\t') {
        return Some("indent with spaces; YAML does not allow tabs".into());
    }
    if line.contains(": %") || line.contains(": @") || line.contains(": `") {
        return Some("quote values that begin with %, @ or `".into());
    }
    if line.contains(": *.") || line.contains("[*.") || start.starts_with("- *.") {
        return Some("quote patterns: \"*.staging.internal\"".into());
    }
    if line.contains(": >") || line.contains(": <") {
        return Some("quote comparisons: \"<= 5%\"".into());
    }
    if is_bare_map(start) {
        return Some(
            "several keys in one line stand in braces: `{ capacity: 50%, over: 5s }`; or give each a line of its own".into(),
        );
    }
    line.contains("${").then(|| "quote values that hold `${…}` inside `{ }` or `[ ]`".to_string())
}
