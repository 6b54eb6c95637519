//! What is wrong with a contract pack, for the person who wrote it: all of it at once.

use super::yaml::{Marked, Place};
use std::fmt;

/// One thing to mend: where, what, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub file: String,
    /// Line and column, from 1; zero where the file has no lines to point at.
    pub place: Place,
    /// RFC 6901 pointer into the file; empty for the file as a whole.
    pub pointer: String,
    pub message: String,
    pub help: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.place.line > 0 {
            write!(f, ":{}:{}", self.place.line, self.place.column)?;
        }
        if !self.pointer.is_empty() {
            write!(f, ": {}", self.pointer)?;
        }
        write!(f, ": {}", self.message)?;
        if self.help.is_empty() { Ok(()) } else { write!(f, "\n    help: {}", self.help) }
    }
}

/// Collects findings of one pack.
#[derive(Debug, Default)]
pub(super) struct Findings {
    list: Vec<Finding>,
}

impl Findings {
    /// Something about the whole file.
    pub(super) fn file(&mut self, file: &str, message: impl Into<String>, help: impl Into<String>) {
        self.push(file, Place::default(), "", message, help);
    }

    /// Something at a pointer of the contract file.
    pub(super) fn at(&mut self, marked: &Marked, pointer: &str, message: impl Into<String>, help: impl Into<String>) {
        self.push("contract.yaml", marked.place(pointer), pointer, message, help);
    }

    pub(super) fn push(
        &mut self,
        file: &str,
        place: Place,
        pointer: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let finding =
            Finding { file: file.into(), place, pointer: pointer.into(), message: message.into(), help: help.into() };
        if !self.list.contains(&finding) {
            self.list.push(finding);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn into_list(self) -> Vec<Finding> {
        self.list
    }
}
