//! The files of the repository, and rules that hold for the tree as a whole.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::none;

/// One text file, with its path from the root of the repository.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(i, line)| (i + 1, line))
    }

    pub(crate) fn ends_with(&self, suffix: &str) -> bool {
        self.path.ends_with(suffix)
    }

    /// Whether the file lies in `folder`, at any depth.
    pub(crate) fn is_in(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// What one may read in the repository: build output, history and binary files left out.
pub(crate) fn files() -> Vec<File> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // In a work tree of its own, `.git` is a file.
            if matches!(name.as_str(), "target" | ".git" | "node_modules" | "corpus" | "artifacts") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                let path = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
                found.push(File { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 20, "the tree was not found");
    found
}

pub(crate) fn file(path: &str) -> File {
    let text = fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    File { path: path.to_owned(), text }
}

#[test]
fn documents_keep_their_length() {
    let mut problems = Vec::new();
    for (path, max) in [("README.md", 150), ("ARCHITECTURE.md", 250)] {
        let lines = file(path).text.lines().count();
        if lines > max {
            problems.push(format!("{path}: {lines} lines, at most {max}"));
        }
    }
    none(problems);
}

#[test]
fn source_files_are_at_most_600_lines() {
    let mut problems = Vec::new();
    for file in files().iter().filter(|f| f.ends_with(".rs")) {
        match file.text.lines().count() {
            lines @ 601.. => problems.push(format!("{}: {lines} lines, at most 600: split it", file.path)),
            lines @ 451.. => eprintln!("{}: {lines} lines, aim at 400", file.path),
            _ => {}
        }
    }
    none(problems);
}

/// Vendor samples may hold paths of somebody's machine; ours may not appear anywhere.
#[test]
fn no_file_holds_a_path_of_somebodys_machine() {
    // Written in two halves, so that this file does not find itself.
    let ours = [concat!("/wo", "rk/wt"), concat!("/wo", "rk/shared"), concat!("bash_", "jobs")];
    let anywhere = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/"), concat!("/wo", "rk/")];
    let mut problems = Vec::new();
    for file in files() {
        let is_sample = file.path.contains("fixtures/") || file.is_in("examples") || file.is_in("tests");
        for (number, line) in file.lines() {
            let mut found = ours.iter().chain(anywhere.iter().filter(|_| !is_sample));
            if let Some(path) = found.find(|path| line.contains(**path)) {
                problems.push(format!("{}:{number}: {path}", file.path));
            }
        }
    }
    none(problems);
}

#[test]
fn the_tools_are_configured() {
    let mut problems = Vec::new();
    let wanted: [(&str, &[&str]); 6] = [
        ("clippy.toml", &["serde_json::from_slice", "serde_json::from_reader", "SystemTime::now", "Instant::now"]),
        ("Cargo.toml", &["unsafe_code = \"forbid\"", "wildcard_enum_match_arm = \"deny\"", "license = \"Apache-2.0\""]),
        ("deny.toml", &["[advisories]", "[licenses]", "[bans]", "[sources]"]),
        ("rust-toolchain.toml", &["channel = ", "clippy", "rustfmt"]),
        ("LICENSE", &["Apache License", "Version 2.0, January 2004", "END OF TERMS AND CONDITIONS"]),
        ("CHANGELOG.md", &["## [Unreleased]"]),
    ];
    for (path, texts) in wanted {
        let text = file(path).text;
        problems.extend(texts.iter().filter(|t| !text.contains(**t)).map(|t| format!("{path}: lacks {t}")));
    }
    none(problems);
}

#[cfg(unix)]
#[test]
fn scripts_can_be_run() {
    use std::os::unix::fs::PermissionsExt;
    let mut problems = Vec::new();
    for file in files().iter().filter(|f| f.text.starts_with("#!")) {
        let mode = fs::metadata(root().join(&file.path)).unwrap().permissions().mode();
        if mode & 0o111 == 0 {
            problems.push(format!("{}: starts with #! and is not executable", file.path));
        }
    }
    none(problems);
    assert!(file(".ci/run").text.contains("make test"));
}

#[test]
fn every_make_target_is_documented() {
    let makefile = file("Makefile");
    let phony = makefile.text.lines().find_map(|line| line.strip_prefix(".PHONY:")).unwrap();
    let undocumented = |target: &&str| {
        !makefile.text.lines().any(|line| line.strip_prefix(*target).is_some_and(|rest| rest.starts_with(": ## ")))
    };
    none(phony.split_whitespace().filter(undocumented).map(|t| format!("Makefile: {t} has no ## text")).collect());
}

pub(crate) fn exists(base: &str, target: &str) -> bool {
    let folder = Path::new(base).parent().unwrap_or(Path::new(""));
    root().join(folder).join(target).exists()
}
