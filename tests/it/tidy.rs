//! The rules of the house, run: floors, the module map, sizes, bans.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// No file may be longer, its tests apart.
const FILE_LINES: usize = 500;
/// No function may be longer.
const FUNCTION_LINES: usize = 70;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).expect("the folder is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A module's place in the building: its floor, and its place on it.
type Storey = (usize, usize);

/// The map of `src/lib.rs`: `Floor N:` lines, and under each its `- \`module\`` lines in order.
fn module_map() -> BTreeMap<String, Storey> {
    let text = fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs is there");
    let mut map = BTreeMap::new();
    let mut floor = None;
    for line in text.lines().filter_map(|l| l.strip_prefix("//! ")) {
        if let Some(rest) = line.strip_prefix("Floor ") {
            floor = rest.split(':').next().and_then(|n| n.parse().ok());
        } else if let (Some(floor), Some(rest)) = (floor, line.strip_prefix("- `")) {
            let name = rest.split('`').next().expect("a name in backquotes").to_string();
            let place = map.len();
            map.insert(name, (floor, place));
        } else if line.starts_with("# ") {
            floor = None;
        }
    }
    map
}

/// The top-level module that a file belongs to; none for `lib.rs` and `main.rs`.
fn module_of(file: &Path) -> Option<String> {
    let relative = file.strip_prefix(root().join("src")).expect("a file of src");
    let first = relative.components().next()?.as_os_str().to_str()?.trim_end_matches(".rs").to_string();
    (first != "lib" && first != "main").then_some(first)
}

/// Collects what a file names behind `crate::`, and its functions' lengths; tests do not count.
#[derive(Default)]
struct Reader {
    uses: Vec<(String, usize)>,
    /// Full paths into the standard library.
    std: Vec<(String, usize)>,
    /// Modules in files of their own that only tests have.
    test_modules: Vec<String>,
    /// First and last lines of what only tests have.
    tests: Vec<(usize, usize)>,
    functions: Vec<(String, usize)>,
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("test")
            || a.path().is_ident("cfg") && matches!(&a.meta, syn::Meta::List(list) if list.tokens.to_string() == "test")
    })
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn lines_of(node: &impl Spanned) -> usize {
    node.span().end().line + 1 - node.span().start().line
}

impl Reader {
    fn tree(&mut self, tree: &syn::UseTree, at_crate: bool) {
        match tree {
            syn::UseTree::Path(path) if at_crate => self.uses.push((path.ident.to_string(), path.span().start().line)),
            syn::UseTree::Name(name) if at_crate => self.uses.push((name.ident.to_string(), name.span().start().line)),
            syn::UseTree::Path(path) => self.tree(&path.tree, path.ident == "crate"),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(item, at_crate)),
            _ => {}
        }
    }

    /// The paths of a `use` that begin with `std`, each in full.
    fn std_tree(&mut self, tree: &syn::UseTree, before: &str) {
        let line = tree.span().start().line;
        let mut leaf = |name: String| {
            if before.starts_with("std::") {
                self.std.push((format!("{before}{name}"), line))
            }
        };
        match tree {
            syn::UseTree::Path(path) => self.std_tree(&path.tree, &format!("{before}{}::", path.ident)),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.std_tree(item, before)),
            syn::UseTree::Name(name) => leaf(name.ident.to_string()),
            syn::UseTree::Rename(name) => leaf(name.ident.to_string()),
            syn::UseTree::Glob(_) => leaf("*".into()),
        }
    }

    fn skip(&mut self, node: &impl Spanned) {
        self.tests.push((node.span().start().line, node.span().end().line));
    }

    fn test_lines(&self) -> usize {
        self.tests.iter().map(|(first, last)| last + 1 - first).sum()
    }

    fn function(&mut self, name: &syn::Ident, body: &impl Spanned) {
        self.functions.push((name.to_string(), lines_of(body)));
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(attributes(item)) {
            return visit::visit_item(self, item);
        }
        if let syn::Item::Mod(module) = item
            && module.content.is_none()
        {
            self.test_modules.push(module.ident.to_string());
        }
        self.skip(item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&item.tree, false);
        self.std_tree(&item.tree, "");
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 && path.segments[0].ident == "crate" {
            self.uses.push((path.segments[1].ident.to_string(), path.span().start().line));
        }
        if path.segments[0].ident == "std" {
            let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.std.push((segments.join("::"), path.span().start().line));
        }
        visit::visit_path(self, path);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_test(&item.attrs) {
            return self.skip(item);
        }
        self.function(&item.sig.ident, &item.block);
        visit::visit_impl_item_fn(self, item);
    }
}

fn read(file: &Path) -> (Reader, usize) {
    let text = fs::read_to_string(file).expect("a readable file");
    (read_text(&text, &file.display().to_string()), text.lines().count())
}

fn read_text(text: &str, name: &str) -> Reader {
    let parsed = syn::parse_file(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut reader = Reader::default();
    reader.visit_file(&parsed);
    reader
}

/// A source text without what only tests have.
fn without_tests(text: &str, name: &str) -> String {
    let tests = read_text(text, name).tests;
    let own = |line: usize| !tests.iter().any(|(first, last)| (*first..=*last).contains(&line));
    let lines = text.lines().enumerate().filter(|(index, _)| own(index + 1));
    lines.map(|(_, line)| format!("{line}\n")).collect()
}

/// The files of `src` that only tests have: those of modules behind `#[cfg(test)]`.
fn is_test_file(file: &Path, modules: &[PathBuf]) -> bool {
    modules.iter().any(|module| file.starts_with(module) || file == module.with_extension("rs"))
}

/// The modules behind `#[cfg(test)]` that have files of their own, each as the folder that it would have.
fn test_modules() -> Vec<PathBuf> {
    let of = |file: PathBuf| {
        let folder = file.parent().expect("a file is in a folder").to_path_buf();
        let stem = file.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        let folder = if ["mod", "lib", "main"].contains(&stem.as_str()) { folder } else { folder.join(stem) };
        read(&file).0.test_modules.into_iter().map(move |module| folder.join(module))
    };
    rust_files(&root().join("src")).into_iter().flat_map(of).collect()
}

/// The files of `src` that are no tests.
fn source_files() -> Vec<PathBuf> {
    let modules = test_modules();
    assert!(modules.iter().any(|module| module.ends_with("src/plan/tests")), "{modules:?}");
    rust_files(&root().join("src")).into_iter().filter(|file| !is_test_file(file, &modules)).collect()
}

fn complain(what: &str, wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{what}:\n  {}", wrong.join("\n  "));
}

#[test]
fn the_map_lists_every_module_and_no_other() {
    let map = module_map();
    let mut there: Vec<String> = rust_files(&root().join("src")).iter().filter_map(|f| module_of(f)).collect();
    there.sort();
    there.dedup();
    assert_eq!(map.keys().cloned().collect::<Vec<_>>(), there, "the module map in src/lib.rs and the files under src differ");
}

#[test]
fn modules_use_only_what_stands_below_them_or_before_them() {
    let map = module_map();
    let mut wrong = Vec::new();
    for file in source_files() {
        let Some(module) = module_of(&file) else { continue };
        for (used, line) in read(&file).0.uses {
            // The configuration macros sit at the root, and belong to `config`.
            let used = if ["record", "choice", "keyword"].contains(&used.as_str()) { "config".to_string() } else { used };
            match map.get(&used) {
                None => wrong.push(format!("{}:{line}: `crate::{used}` is not in the module map", file.display())),
                Some(storey) if used != module && *storey > map[&module] => {
                    wrong.push(format!(
                        "{}:{line}: `{module}` must not use `{used}`, which stands above or after it",
                        file.display()
                    ));
                }
                Some(_) => {}
            }
        }
    }
    complain("floors", wrong);
}

#[test]
fn files_and_functions_keep_their_sizes() {
    let mut wrong = Vec::new();
    for file in rust_files(&root().join("src")) {
        let (reader, lines) = read(&file);
        let own = lines - reader.test_lines();
        if own > FILE_LINES {
            wrong.push(format!("{}: {own} lines without tests, at most {FILE_LINES}", file.display()));
        }
        wrong.extend(
            reader
                .functions
                .into_iter()
                .filter(|(_, lines)| *lines > FUNCTION_LINES)
                .map(|(name, lines)| format!("{}: `{name}` has {lines} lines, at most {FUNCTION_LINES}", file.display())),
        );
    }
    complain("sizes", wrong);
}

#[test]
fn every_invariant_names_tests_that_exist() {
    let text = fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs is there");
    let section = text.split("//! # Invariants").nth(1).expect("src/lib.rs lists the invariants");
    let section = section.lines().take_while(|l| l.starts_with("//!") || l.is_empty()).collect::<Vec<_>>().join("\n");
    let every_source: String = ["src", "tests"]
        .iter()
        .flat_map(|dir| rust_files(&root().join(dir)))
        .map(|f| fs::read_to_string(f).expect("a readable file"))
        .collect();
    let names: Vec<&str> = section.split("test `").skip(1).filter_map(|rest| rest.split('`').next()).collect();
    assert!(names.len() >= 8, "each of the eight invariants names the test that holds it; found {names:?}");
    let missing = names.into_iter().filter(|name| !every_source.contains(&format!("fn {name}("))).map(str::to_string).collect();
    complain("tests that src/lib.rs names and that do not exist", missing);
}

/// The source without its tests, as (path from the root, text).
fn source() -> &'static [(String, String)] {
    static SOURCE: OnceLock<Vec<(String, String)>> = OnceLock::new();
    let own = |file: PathBuf| {
        let text = fs::read_to_string(&file).expect("a readable file");
        let path = file.strip_prefix(root()).expect("a file of ours").to_string_lossy().replace('\\', "/");
        let own = without_tests(&text, &path);
        (path, own)
    };
    SOURCE.get_or_init(|| source_files().into_iter().map(own).collect())
}

fn files_with(text: &str) -> Vec<String> {
    source().iter().filter(|(_, own)| own.contains(text)).map(|(path, _)| path.clone()).collect()
}

/// An operation is begun and continued by the fleet's machine and, where a service calls another one, by that of the services; by no engine.
#[test]
fn the_retry_loop_exists_once() {
    let may = |path: &String| path.starts_with("src/fleet/") || path.starts_with("src/service/system/");
    let users: Vec<String> = files_with("crate::operation").into_iter().filter(|path| !may(path)).collect();
    complain("files that run operations beside the fleet's machine and the calls of a service", users);
    assert_eq!(files_with("fn follows("), ["src/operation.rs"], "what follows a failure is decided once");
    assert_eq!(files_with("policy.retries("), ["src/operation.rs"], "what is retried is asked once");
}

#[test]
fn deadlines_are_rounded_in_one_place() {
    assert_eq!(files_with(".round_up("), ["src/operation.rs"]);
    assert_eq!(files_with("fn round_up("), ["src/time.rs"]);
}

/// A text that may stand only in some places.
struct Ban {
    text: &'static str,
    allowed: &'static [&'static str],
    why: &'static str,
}

const BANS: &[Ban] = &[
    Ban { text: "serde_saphyr", allowed: &["src/plan/"], why: "only `plan` knows YAML" },
    Ban { text: "stdout()", allowed: &["src/report/", "src/cli/"], why: "only `report` and `cli` write to stdout" },
    Ban { text: "Instant::now", allowed: &["src/engine/live/clock.rs"], why: "one file reads a clock" },
    Ban { text: "SystemTime::now", allowed: &["src/engine/live/clock.rs"], why: "one file reads a clock" },
    Ban {
        text: "allow(clippy::disallowed",
        allowed: &["src/engine/live/clock.rs", "src/service/names.rs"],
        why: "one file reads a clock, and one has a hash table",
    },
    Ban { text: "tracing::", allowed: &["src/engine/live/", "src/cli/"], why: "machines, the simulator and reports log nothing" },
    Ban { text: "tokio::", allowed: &["src/engine/live/", "src/cli/"], why: "the core needs no async runtime" },
    Ban { text: concat!("#[", "ignore"), allowed: &[], why: "a test runs or goes" },
    Ban { text: concat!("to", "do!("), allowed: &[], why: "nothing half-built is shipped" },
    Ban { text: concat!("unimple", "mented!("), allowed: &[], why: "nothing half-built is shipped" },
];

#[test]
fn what_is_banned_stands_only_where_it_may() {
    let mut wrong = Vec::new();
    for file in ["src", "tests", "benches"].iter().map(|d| root().join(d)).filter(|d| d.exists()).flat_map(|d| rust_files(&d)) {
        let text = fs::read_to_string(&file).expect("a readable file");
        let relative = file.strip_prefix(root()).expect("a file of ours").to_string_lossy().replace('\\', "/");
        if relative == "tests/it/tidy.rs" {
            continue;
        }
        for ban in BANS.iter().filter(|ban| ban.allowed.is_empty() && text.contains(ban.text)) {
            wrong.push(format!("{relative}: `{}`: {}", ban.text, ban.why));
        }
    }
    for (path, own) in source() {
        for ban in BANS.iter().filter(|ban| !ban.allowed.is_empty() && own.contains(ban.text)) {
            if !ban.allowed.iter().any(|allowed| path.starts_with(allowed)) {
                wrong.push(format!("{path}: `{}`: {}", ban.text, ban.why));
            }
        }
    }
    complain("bans", wrong);
}

/// What reaches out of a process, or starts something in it.
const EFFECTS: &[&str] = &["std::fs", "std::net", "std::process", "std::env", "std::thread", "std::io", "std::os"];
/// Addresses are plain data.
const ADDRESSES: &[&str] = &["std::net::IpAddr", "std::net::Ipv4Addr", "std::net::Ipv6Addr", "std::net::SocketAddr"];

fn within(path: &str, parents: &[&str]) -> bool {
    parents.iter().any(|parent| path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")))
}

/// Whether a module's file may name a path of the standard library.
fn may_name(path: &str, relative: &str, module: &str, floor: usize) -> bool {
    match (floor, module) {
        _ if !within(path, EFFECTS) || within(path, ADDRESSES) => true,
        (0 | 1, _) => false,
        // Reports are written to what they are given; one file makes the folder and the files.
        (_, "report") => within(path, &["std::io"]) || (within(path, &["std::fs"]) && relative == "src/report/folder.rs"),
        _ => true,
    }
}

#[test]
fn machines_and_reports_touch_nothing_outside() {
    let map = module_map();
    let mut wrong = Vec::new();
    for file in source_files() {
        let Some(module) = module_of(&file) else { continue };
        let relative = file.strip_prefix(root()).expect("a file of ours").to_string_lossy().replace('\\', "/");
        let floor = map[&module].0;
        let named = read(&file).0.std.into_iter().filter(|(path, _)| !may_name(path, &relative, &module, floor));
        wrong.extend(named.map(|(path, line)| format!("{relative}:{line}: `{path}` is for engines and commands")));
    }
    complain("effects", wrong);
}

#[test]
fn what_stands_between_and_after_tests_is_read() {
    let text = "#[cfg(test)]\nmod cases;\nuse std::{fs::File, fmt};\n#[cfg(test)]\nmod tests {\n    use std::env;\n}\n\
                fn last() { std::thread::spawn(|| ()); }\n#[cfg(test)]\nuse std::net::TcpStream;\n";
    let reader = read_text(text, "text");
    let named: Vec<&str> = reader.std.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(named, ["std::fs::File", "std::fmt", "std::thread::spawn"]);
    assert_eq!((reader.test_modules.as_slice(), reader.test_lines()), (&["cases".to_string()][..], 8));
    assert_eq!(without_tests(text, "text").lines().count(), 2);
    let refused: Vec<&&str> = named.iter().filter(|path| !may_name(path, "src/gate/x.rs", "gate", 1)).collect();
    assert_eq!(refused, [&"std::fs::File", &"std::thread::spawn"]);
    assert!(
        may_name("std::net::IpAddr", "src/plan/url.rs", "plan", 1) && !may_name("std::net::TcpStream", "src/x.rs", "plan", 1)
    );
}
