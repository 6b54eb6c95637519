//! Stage 5 of 10: parse.
//!
//! Reads the whole body in one non-recursive pass over borrowed bytes into a reusable [`Tape`]:
//! UTF-8, the grammar of RFC 8259, the contract's limits, and names that are unique after
//! unescaping, everywhere and not only where somebody looks. Afterwards the document is read by
//! one meaning only, numbers still have their own digits, and a second reader of the same bytes
//! cannot see another document. What the document says is not looked at here.

mod document;
mod keys;
mod number;
mod pointer;
mod scan;
mod schema_node;
mod stage;
mod tape;
mod text;
mod writer;

pub use document::{Document, Items, Kind, Members, Node};
pub use pointer::{Pointer, PointerError};
pub use schema_node::TapeJson;
pub use stage::{Grammar, Parsed, parse};
pub use tape::Tape;
pub use text::{TextPattern, TextPatternError};
pub use writer::TapeWriter;

pub(crate) use text::anchored;

use super::reason::Reason;

/// What a document may be at most. Members and items are counted for each object and array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole body; at most 4 GiB - 1, since places are 32 bits wide.
    pub body_bytes_max: usize,
    /// Arrays and objects inside each other; the root counts as 1.
    pub depth_max: u32,
    pub members_max: u32,
    pub items_max: u32,
    /// Bytes of one string or name, unescaped.
    pub string_bytes_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { body_bytes_max: 262_144, depth_max: 32, members_max: 2000, items_max: 1000, string_bytes_max: 65_536 }
    }
}

/// Why a body is no admissible document: a reason of this stage, the byte at which reading
/// stopped, and a fixed sentence. Nothing of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {offset}: {what}")]
pub struct ParseError {
    pub reason: Reason,
    /// From 0.
    pub offset: usize,
    pub what: &'static str,
}

impl ParseError {
    pub(super) const fn new(reason: Reason, offset: usize, what: &'static str) -> ParseError {
        ParseError { reason, offset, what }
    }

    pub(super) const fn syntax(offset: usize, what: &'static str) -> ParseError {
        ParseError::new(Reason::InvalidJson, offset, what)
    }
}
