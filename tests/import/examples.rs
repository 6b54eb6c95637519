//! The example of each kind of source is a proven contract.

use crate::support::toolgate;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn folders() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("examples/contracts")).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// `$defs/source/properties/kind` of the contract's schema lists the kinds that the loader knows (`schema.rs`).
#[test]
fn each_kind_of_source_has_an_example_that_is_proven() {
    let schema: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(root().join("schemas/contract.schema.json")).unwrap()).unwrap();
    let kinds: BTreeSet<String> = schema["$defs"]["source"]["properties"]["kind"]["enum"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind.as_str().unwrap().to_owned())
        .collect();
    let names: BTreeSet<String> =
        folders().iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(kinds, names);
    for folder in folders() {
        let run = toolgate(&folder, &["check", "."]);
        assert!(run.works().contains("1 of 1 contracts sound"), "{}: {}", folder.display(), run.stdout);
        let text = std::fs::read_to_string(folder.join("contract.yaml")).unwrap();
        let kind = format!("kind: {}\n", folder.file_name().unwrap().to_string_lossy());
        assert!(text.contains(&kind) && !text.contains("TODO"), "{}", folder.display());
    }
}

#[test]
fn the_first_line_of_each_example_leads_an_editor_to_the_schema() {
    for folder in folders() {
        let text = std::fs::read_to_string(folder.join("contract.yaml")).unwrap();
        let path = text.lines().next().unwrap().strip_prefix("# yaml-language-server: $schema=").unwrap();
        assert!(folder.join(path).is_file(), "{}: {path}", folder.display());
    }
}
