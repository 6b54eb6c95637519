//! Rules of the source: who may import whom, and what the core must not know.

use toolgate::gate::reason::Stage;

use crate::{
    none,
    tree::{File, file, files, root},
};

/// The folders of the crate and the folders that each must not import.
const DIRECTIONS: [(&str, &[&str]); 9] = [
    ("src/time.rs", &["wire", "gate", "contract", "request", "config", "log", "worker", "ops", "telemetry"]),
    ("src/wire", &["config", "log", "worker", "ops", "telemetry"]),
    ("src/gate", &["config", "log", "worker", "ops", "telemetry"]),
    ("src/contract", &["config", "log", "worker", "ops", "telemetry"]),
    ("src/request", &["config", "log", "worker", "ops", "telemetry"]),
    ("src/config", &["gate", "contract", "request", "wire", "log", "worker", "ops", "telemetry"]),
    ("src/telemetry", &["log", "worker", "ops"]),
    ("src/log", &["worker", "ops"]),
    ("src/worker", &["ops"]),
];

/// The core: no clock, no files, no sockets, no threads.
const CORE: [&str; 6] = ["src/time.rs", "src/wire", "src/gate", "src/contract", "src/request", "src/config"];

/// Reads contract folders from disk for the worker and the commands, behind the feature `worker`.
const EDGE_IN_CORE: &str = "src/contract/pack.rs";

const WORLD: [&str; 12] = [
    "SystemTime",
    "Instant",
    "thread",
    "fs",
    "process",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "async",
    "await",
    "tokio",
    "rusqlite",
];

fn belongs(file: &File, part: &str) -> bool {
    file.path == part || file.is_in(part)
}

/// Source lines of a file without comments, text in quotes and tests, which come last.
fn code_lines(file: &File) -> Vec<(usize, String)> {
    let end = file.text.lines().position(|line| line.trim() == "#[cfg(test)]").unwrap_or(usize::MAX);
    let is_test = file.ends_with("/tests.rs") || file.path.contains("/tests/");
    let lines = file.lines().take(if is_test { 0 } else { end });
    lines.map(|(number, line)| (number, without_quotes(line.split("//").next().unwrap_or_default()))).collect()
}

fn without_quotes(line: &str) -> String {
    line.split('"').step_by(2).collect::<Vec<_>>().join(" ")
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Names that are imported from, or written with a path into, the crate: `crate::a::b`, `use
/// crate::{a, b}` also over several lines.
fn crate_paths(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_group = false;
    for (number, line) in code_lines(file) {
        for part in line.split("crate::").skip(1) {
            found.extend(words(part).next().filter(|_| !part.starts_with('{')).map(|word| (number, word.to_owned())));
        }
        in_group |= line.contains("crate::{");
        if in_group {
            found.extend(words(&line).map(|word| (number, word.to_owned())));
            in_group = !line.contains(';');
        }
    }
    found
}

#[test]
fn imports_point_inwards() {
    let files = files();
    let mut problems = Vec::new();
    for (part, forbidden) in DIRECTIONS {
        for file in files.iter().filter(|f| belongs(f, part) && f.path != EDGE_IN_CORE) {
            for (number, name) in crate_paths(file) {
                if forbidden.contains(&name.as_str()) {
                    problems.push(format!("{}:{number}: {part} must not import crate::{name}", file.path));
                }
            }
        }
    }
    none(problems);
}

#[test]
fn the_core_knows_no_clock_file_thread_or_socket() {
    let mut problems = Vec::new();
    for file in files().iter().filter(|f| CORE.iter().any(|part| belongs(f, part)) && f.path != EDGE_IN_CORE) {
        for (number, line) in code_lines(file) {
            if let Some(word) = words(&line).find(|word| WORLD.contains(word)) {
                problems.push(format!("{}:{number}: `{word}` belongs to the worker, not to the core", file.path));
            }
        }
    }
    none(problems);
}

/// The rules above look for words; this shows that they would find them.
#[test]
fn the_rules_find_what_they_look_for() {
    let text = "use crate::{\n    gate::reason,\n    worker::clock,\n};\n// crate::ops\nlet x = crate::telemetry::A;\n";
    let found = crate_paths(&File { path: "src/gate/x.rs".to_owned(), text: text.to_owned() });
    let names: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
    assert!(names.contains(&"worker") && names.contains(&"telemetry") && !names.contains(&"ops"), "{names:?}");
    let text = "use std::{fmt, fs};\nlet t = \"Instant\"; // Instant\n#[cfg(test)]\nuse std::thread;\n";
    let lines = code_lines(&File { path: "src/gate/x.rs".to_owned(), text: text.to_owned() });
    let found: Vec<&str> = lines.iter().flat_map(|(_, line)| words(line)).filter(|w| WORLD.contains(w)).collect();
    assert_eq!(found, ["fs"]);
}

/// Where each stage lives. Ingest and emit are the worker's; the others are the gate's.
fn stage_file(stage: Stage) -> &'static [&'static str] {
    match stage {
        Stage::Ingest => &["src/worker/ingest.rs"],
        Stage::Decode => &["src/gate/decode.rs", "src/gate/decode/mod.rs"],
        Stage::Match => &["src/gate/matching.rs", "src/gate/matching/mod.rs"],
        Stage::Admit => &["src/gate/admit.rs", "src/gate/admit/mod.rs"],
        Stage::Parse => &["src/gate/parse.rs", "src/gate/parse/mod.rs"],
        Stage::Adapt => &["src/gate/adapt.rs", "src/gate/adapt/mod.rs"],
        Stage::Validate => &["src/gate/validate.rs", "src/gate/validate/mod.rs"],
        Stage::Bind => &["src/gate/bind.rs", "src/gate/bind/mod.rs"],
        Stage::Select => &["src/gate/select.rs", "src/gate/select/mod.rs"],
        Stage::Emit => &["src/worker/emit.rs"],
    }
}

#[test]
fn each_stage_file_opens_with_its_place() {
    let mut problems = Vec::new();
    for (i, stage) in Stage::ALL.into_iter().enumerate() {
        let wanted = format!("//! Stage {} of 10: {stage}.", i + 1);
        for path in stage_file(stage).iter().filter(|path| root().join(path).exists()) {
            if !file(path).text.starts_with(&wanted) {
                problems.push(format!("{path}:1: must open with `{wanted}`"));
            }
        }
    }
    none(problems);
}
