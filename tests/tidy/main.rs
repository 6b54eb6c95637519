//! The rules that people forget. Each test reports every breach at once, with file and line.

#![cfg(feature = "worker")]
#![allow(clippy::unwrap_used)] // A test that cannot read the tree has nothing better to do.

mod code;
mod pages;
mod tree;

/// Fails with all problems, one a line.
#[track_caller]
fn none(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}
