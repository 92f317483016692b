//! The house rules that a compiler does not check.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod tidy {
    pub(crate) mod imports;
    pub(crate) mod language;
    pub(crate) mod names;
    pub(crate) mod source;
}

use std::fs;
use std::path::{Path, PathBuf};

use tidy::{imports, language, names, source};

/// Every crate below the root package, its folder, and the crates of the workspace that it may name outside its tests.
const CRATES: [(&str, &str, &[&str]); 27] = [
    ("model", "common/model", &[]),
    ("charset", "common/charset", &["model"]),
    ("text", "common/text", &["model", "charset"]),
    ("join", "common/join", &["model"]),
    ("hamming", "common/hamming", &[]),
    ("overlap", "common/overlap", &["model"]),
    ("snapshot", "common/snapshot", &["model"]),
    ("partitioning", "common/partitioning", &["model"]),
    ("contract", "common/contract", &["model", "partitioning"]),
    ("protocol", "common/protocol", &["model", "partitioning", "contract"]),
    ("streams", "common/streams", &["model", "charset", "contract"]),
    ("crawls", "common/crawls", &["model", "charset", "contract", "streams"]),
    ("http", "common/http", &[]),
    ("threads", "common/threads", &[]),
    ("terminal", "common/terminal", &["overlap", "contract"]),
    ("inputs", "common/inputs", &["model", "text", "overlap", "contract", "crawls", "terminal"]),
    ("shared_log", "common/shared_log", &[]),
    ("wire", "common/wire", &["model", "partitioning", "contract", "protocol", "http", "threads"]),
    ("tier1", "tier1", &["model", "join", "snapshot", "contract", "protocol", "shared_log", "threads"]),
    ("tier2", "tier2", &["model", "partitioning", "snapshot", "contract", "protocol", "threads"]),
    (
        "coordinator",
        "coordinator",
        &["model", "charset", "crawls", "partitioning", "contract", "protocol", "http", "threads", "engine"],
    ),
    (
        "engine",
        "coordinator/engine",
        &["model", "charset", "text", "crawls", "contract", "protocol", "threads"],
    ),
    (
        "control",
        "coordinator/control",
        &["model", "snapshot", "partitioning", "contract", "protocol", "terminal", "shared_log", "wire"],
    ),
    (
        "dataset",
        "cli/dataset",
        &[
            "model", "text", "snapshot", "contract", "protocol", "crawls", "terminal", "inputs", "join",
            "tier1", "engine",
        ],
    ),
    (
        "node",
        "cli/node",
        &[
            "model",
            "text",
            "snapshot",
            "partitioning",
            "contract",
            "protocol",
            "crawls",
            "http",
            "threads",
            "terminal",
            "inputs",
            "shared_log",
            "wire",
            "tier1",
            "tier2",
            "coordinator",
            "engine",
            "control",
        ],
    ),
    ("baseline", "eval/baseline", &[]),
    (
        "eval",
        "eval",
        &[
            "model",
            "terminal",
            "inputs",
            "text",
            "join",
            "hamming",
            "overlap",
            "partitioning",
            "contract",
            "protocol",
            "crawls",
            "tier1",
            "tier2",
            "coordinator",
            "engine",
            "control",
            "node",
            "baseline",
        ],
    ),
];
/// The most lines of a file of the product, and of one that holds nothing but tests.
const LINES_MAX: usize = 400;
const TEST_LINES_MAX: usize = 600;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every Rust file below a folder of the repository, sorted.
fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no Rust files in {folder}");
    found
}

/// Every source file of the program.
fn sources() -> impl Iterator<Item = PathBuf> {
    let crates = CRATES.iter().flat_map(|(_, folder, _)| rust_files(&format!("{folder}/src")));
    rust_files("cli/src").into_iter().chain(crates)
}

/// The tests and benchmarks that lie beside the sources.
fn tests_beside() -> impl Iterator<Item = PathBuf> {
    let folders =
        CRATES.iter().flat_map(|(_, folder, _)| [format!("{folder}/tests"), format!("{folder}/benches")]);
    let folders = folders.filter(|folder| root().join(folder).exists());
    folders.chain(["tests".to_owned()]).flat_map(|folder| rust_files(&folder))
}

/// Whether the file holds nothing but tests, benchmarks, or faults for tests to plant.
fn is_test(path: &Path) -> bool {
    let named = |name: &std::ffi::OsStr| {
        ["tests", "benches", "planted.rs"].iter().any(|test| name == *test)
            || name.to_string_lossy().ends_with("tests.rs")
    };
    path.strip_prefix(root()).unwrap().iter().any(named)
}

/// The lines of the product's code in a file, with their numbers.
fn code(path: &Path) -> Vec<(usize, String)> {
    source::product(&read(path)).lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect()
}

/// Fails with all that broke the rule.
fn none(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

#[test]
fn files_are_short() {
    let long = sources().chain(tests_beside()).filter_map(|path| {
        let lines = read(&path).lines().count();
        let max = if is_test(&path) { TEST_LINES_MAX } else { LINES_MAX };
        (lines > max).then(|| format!("{}: {lines} lines, at most {max}", shown(&path)))
    });
    none("a file is short enough to be read at once", &long.collect::<Vec<_>>());
}

#[test]
fn modules_say_what_they_are() {
    let modules = sources().filter(|path| !is_test(path)).chain(rust_files("tests"));
    let silent = modules.filter(|path| !read(path).starts_with("//!"));
    none("a module begins with `//!`", &silent.map(|path| shown(&path)).collect::<Vec<_>>());
}

#[test]
fn comments_stand_alone() {
    let unclear = sources().flat_map(|path| {
        let found = language::unclear(&read(&path));
        found
            .into_iter()
            .map(move |(line, why)| format!("{}:{line}: {why}", shown(&path)))
            .collect::<Vec<_>>()
    });
    none("a doc comment can be read without the code around it", &unclear.collect::<Vec<_>>());
}

/// The types of the product, with their files.
fn types() -> Vec<(PathBuf, names::Declared)> {
    let product = sources().filter(|path| !is_test(path) && !shown(path).starts_with("eval/"));
    let types = product.flat_map(|path| {
        let found = names::declared(&source::product(&read(&path)));
        found.into_iter().map(|declared| (path.clone(), declared)).collect::<Vec<_>>()
    });
    types.collect()
}

#[test]
fn types_are_named_after_a_thing() {
    let vague = types().into_iter().filter(|(_, one)| names::is_participle(&one.name));
    let vague = vague.map(|(path, one)| format!("{}:{}: {}", shown(&path), one.line, one.name));
    none("a type is named after a thing", &vague.collect::<Vec<_>>());
}

/// Names of public types of which a feature selects one.
const NAMES_OF_ALTERNATIVES: [&str; 5] =
    ["Object", "LogEngine", "JetStreamLog", "NewsChannel", "NewsSubscription"];

#[test]
fn public_types_do_not_share_a_name() {
    let public = types().into_iter().filter(|(_, one)| one.is_public);
    let public = public.filter(|(_, one)| !NAMES_OF_ALTERNATIVES.contains(&one.name.as_str()));
    let places = public.map(|(path, one)| (one.name, format!("{}:{}", shown(&path), one.line)));
    none("a name means one public type", &names::shared(places));
}

/// Most lines of product code in a crate: without tests and benchmarks. Tier 1 is larger, because its rooms share one state machine.
const CRATE_LINES_MAX: usize = 12_000;

#[test]
fn a_crate_can_be_read() {
    let lines = |path: &PathBuf| {
        let text = read(path);
        let inline = "\n#[cfg(test)]\nmod tests {";
        text.split(inline).next().unwrap_or_default().lines().count()
    };
    let crates = CRATES.iter().map(|(_, folder, _)| *folder).chain(["cli"]);
    let sizes = crates.filter(|folder| !folder.starts_with("eval") && *folder != "tier1").map(|folder| {
        let product = rust_files(&format!("{folder}/src")).into_iter().filter(|path| !is_test(path));
        (folder, product.map(|path| lines(&path)).sum::<usize>())
    });
    let large = sizes.filter(|(_, lines)| *lines > CRATE_LINES_MAX);
    let large = large.map(|(folder, lines)| format!("{folder}: {lines} lines, at most {CRATE_LINES_MAX}"));
    none("a crate is small enough to be read", &large.collect::<Vec<_>>());
}

/// Most files that lie loose in a folder of the product.
const LOOSE_FILES_MAX: usize = 15;

#[test]
fn a_folder_can_be_seen_at_once() {
    let mut files: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for path in sources().filter(|path| !is_test(path)) {
        *files.entry(shown(path.parent().unwrap())).or_default() += 1;
    }
    let full = files.into_iter().filter(|(_, files)| *files > LOOSE_FILES_MAX);
    let full = full.map(|(folder, files)| format!("{folder}: {files} files, at most {LOOSE_FILES_MAX}"));
    none("a folder has few files", &full.collect::<Vec<_>>());
}

#[test]
fn modules_and_their_tests_have_one_form() {
    let is_other = |path: &String| path.ends_with("/mod.rs") || path.ends_with("_tests.rs");
    let other = sources().map(|path| shown(&path)).filter(is_other);
    none(
        "a module with children is `name.rs` beside its folder, and its unit tests are its module `tests`",
        &other.collect::<Vec<_>>(),
    );
}

#[test]
fn names_say_what_is_inside() {
    let vague = ["util", "utils", "helper", "helpers", "manager", "misc", "stuff"];
    let broken = sources().filter(|path| {
        path.strip_prefix(root()).unwrap().iter().any(|part| {
            let stem = Path::new(part).file_stem().unwrap().to_string_lossy().into_owned();
            stem.split('_').any(|word| vague.contains(&word))
        })
    });
    none("a module is named after what is inside", &broken.map(|path| shown(&path)).collect::<Vec<_>>());
}

#[test]
fn dependencies_run_one_way() {
    let mut broken = Vec::new();
    for (name, folder, allowed) in CRATES {
        let others = CRATES.iter().map(|(other, ..)| *other);
        let manifest = read(&root().join(folder).join("Cargo.toml"));
        // Tests may read crawls, whatever the crate is.
        let product = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        for other in others.filter(|other| *other != name && !allowed.contains(other)) {
            if product.contains(&format!("\ndoppel-{other}")) {
                broken.push(format!("{folder}/Cargo.toml depends on {other}"));
            }
            for path in rust_files(&format!("{folder}/src")).iter().filter(|path| !is_test(path)) {
                if code(path).iter().any(|(_, line)| line.contains(&format!("doppel_{other}::"))) {
                    broken.push(format!("{} names {other}", shown(path)));
                }
            }
        }
        // The command line is above all crates.
        if product.contains("\ndoppel.workspace") {
            broken.push(format!("{folder}/Cargo.toml depends on the command line"));
        }
    }
    let manifest = read(&root().join("Cargo.toml"));
    let package = manifest.split("\n[package]").nth(1).unwrap().split("[dev-dependencies]").next().unwrap();
    for other in ["baseline", "eval"].iter().filter(|other| package.contains(&format!("\ndoppel-{other}"))) {
        broken.push(format!("the product depends on {other}"));
    }
    none("dependencies run one way, and roles never name each other", &broken);
}

/// The module that a file is, below the folder of its crate's root.
fn module(path: &Path, folder: &Path) -> Vec<String> {
    let mut parts: Vec<String> = path
        .strip_prefix(folder)
        .unwrap()
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into())
        .collect();
    parts.pop_if(|last| last == "mod" || last == "lib" || last == "main");
    parts
}

#[test]
fn modules_name_each_other_in_no_circle() {
    let crates = CRATES.iter().map(|(_, folder, _)| format!("{folder}/src"));
    let mut broken = Vec::new();
    for folder in crates.chain(["cli/src".to_owned()]) {
        let mut paths = rust_files(&folder);
        let folder = root().join(folder);
        if folder.join("lib.rs").exists() {
            // The binary is a crate of its own, and nothing names it.
            paths.retain(|path| *path != folder.join("main.rs"));
        }
        let file = |path: &PathBuf| imports::File {
            module: module(path, &folder),
            shown: shown(path),
            code: source::product(&read(path)),
        };
        let files: Vec<_> = paths.iter().filter(|path| !is_test(path)).map(file).collect();
        broken.extend(imports::circles(&files).iter().map(|circle| circle.join("\n  ") + "\n"));
    }
    none("modules name each other in no circle, but for a module and its parent", &broken);
}

#[test]
fn router_and_node_meet_in_their_trait_alone() {
    let mut broken = Vec::new();
    for (side, other) in [("router", "node"), ("node", "router")] {
        for path in rust_files(&format!("tier2/src/{side}")) {
            let names = |line: &str| {
                let path = format!("{other}::");
                line.match_indices(&path)
                    .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
            };
            let lines = code(&path).into_iter().filter(|(_, line)| names(line));
            broken.extend(lines.map(|(at, line)| format!("{}:{at}: {}", shown(&path), line.trim())));
        }
    }
    none("tier 2's router and its nodes know each other by the trait IndexNode", &broken);
}

#[test]
fn one_module_names_the_store() {
    // The crate's path, not a name that ends in it.
    let is_path = |line: &str| {
        let before = |(at, _): (usize, &str)| line[..at].chars().next_back();
        line.match_indices("sled::").any(|hit| before(hit).is_none_or(|c| !c.is_alphanumeric() && c != '_'))
    };
    let names_it = |path: &PathBuf| code(path).iter().any(|(_, line)| is_path(line));
    let naming: Vec<_> =
        sources().filter(|path| !is_test(path)).filter(names_it).map(|path| shown(&path)).collect();
    assert!(
        matches!(&naming[..], [one] if one.starts_with("tier1/src/")),
        "sled is named in exactly one module of tier1, not in {naming:?}"
    );
}

/// Where directories are created whose names need not survive a crash: temporary ones, and manual pages. One module syncs the names.
const CREATES_DIRECTORIES: [&str; 6] = [
    "common/snapshot/src/directories.rs",
    "common/inputs/src/spool.rs",
    "cli/node/src/directory/new_directory.rs",
    "cli/src/command/servers/coordinator.rs",
    "cli/src/command/servers/serve.rs",
    "cli/src/command/man.rs",
];

#[test]
fn directories_are_created_with_names_that_survive() {
    let creates = |line: &str| line.contains("create_dir(") || line.contains("create_dir_all(");
    let mut broken = Vec::new();
    for path in sources().filter(|path| !is_test(path) && !shown(path).starts_with("eval/")) {
        if !CREATES_DIRECTORIES.contains(&shown(&path).as_str()) {
            let lines = code(&path).into_iter().filter(|(_, line)| creates(line));
            broken.extend(lines.map(|(at, line)| format!("{}:{at}: {}", shown(&path), line.trim())));
        }
    }
    none("doppel_snapshot::create_directories creates directories", &broken);
}

#[test]
fn nothing_unwraps_outside_tests() {
    let mut broken = Vec::new();
    for path in sources().filter(|path| !is_test(path)) {
        let lines = code(&path).into_iter().filter(|(_, line)| line.contains(".unwrap()"));
        broken.extend(lines.map(|(at, line)| format!("{}:{at}: {}", shown(&path), line.trim())));
    }
    none("errors are handled outside tests", &broken);
}

#[test]
fn every_dependency_has_a_reason_and_a_user() {
    let text = read(&root().join("Cargo.toml"));
    let section = text.split("[workspace.dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let members = CRATES.iter().map(|(_, folder, _)| format!("{folder}/Cargo.toml"));
    let manifests: Vec<String> = members
        .chain(["Cargo.toml".to_owned()])
        .map(|member| {
            let text = read(&root().join(member));
            text.split("[workspace.dependencies]").next().unwrap_or_default().to_owned()
                + text.split("\n[package]").nth(1).unwrap_or_default()
        })
        .collect();
    let mut broken = Vec::new();
    for line in section.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let name = line.split_whitespace().next().unwrap();
        if !name.starts_with("doppel-") && !line.contains("# ") {
            broken.push(format!("{name} has no reason"));
        }
        let users = [format!("\n{name} ="), format!("\n{name}.workspace")];
        if !manifests.iter().any(|manifest| users.iter().any(|user| manifest.contains(user))) {
            broken.push(format!("{name} has no user"));
        }
    }
    none("a dependency says what it is for and is used", &broken);
}

#[test]
fn no_page_keeps_both_sides_of_a_merge() {
    let mut broken = Vec::new();
    let pages = ["", "docs", "deploy"].map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let paths = pages.into_iter().flatten().map(|entry| entry.unwrap().path());
    for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
        let text = read(&path);
        let lines = (1..).zip(text.lines());
        let is_mark = |line: &str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
        broken.extend(
            lines.filter(|(_, line)| is_mark(line)).map(|(at, _)| format!("{}:{at}", path.display())),
        );
    }
    none("merges are finished", &broken);
}
