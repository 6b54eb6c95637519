//! Starting points for contracts: from an example, from an MCP tool's `outputSchema`, from an OpenAPI response.
//!
//! What is drawn here is never looser than what it is drawn from. A place that cannot be said tightly is left out of
//! the result, which admits less, and becomes a [`Decision`] for the author; a place that its source leaves open stays
//! open in the draft, so that the loader refuses it until somebody has decided. No text of a source (title,
//! description, message) reaches the contract: it was written by strangers, and an agent reads what a contract says.

mod branch;
mod flat;
pub mod infer;
pub mod mcp;
mod merge;
pub mod openapi;
mod scalars;
pub mod sketch;
pub mod source;
mod strings;
mod tighten;
pub mod write;

pub use tighten::{Asked, tighten};

use serde_json::{Map, Value};

/// One value of the result: what its schema says, and what it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub kind: PartKind,
    /// Keywords of its schema, without `properties`, `required` and `items`.
    pub keywords: Map<String, Value>,
    /// The adapter's `as`.
    pub convert: Option<&'static str>,
}

/// What a value is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum PartKind {
    Scalar,
    Object(Vec<Field>),
    Array(Box<Part>),
}

/// One member of an object of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub required: bool,
    /// The vendor may say null for it; an optional one is then omitted.
    pub nullable: bool,
    pub part: Part,
}

/// What a person has to decide about a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A string without a bound.
    StringBound,
    /// A string whose words a stranger chooses.
    FreeText,
    NumberRange,
    ArrayBound,
    /// Nothing ties the result to its request.
    Bind,
    /// A place that the draft does not read.
    LeftOut,
    /// One of several shapes was taken.
    Alternatives,
    /// Members that nobody has named do not pass, although the source allows them.
    Closed,
    /// Null refuses, although the source allows it.
    Null,
    /// A keyword that no validator knows was ignored.
    Ignored,
    /// A guess from an example.
    Guess,
}

impl Topic {
    pub const ALL: [Topic; 11] = [
        Topic::StringBound,
        Topic::FreeText,
        Topic::NumberRange,
        Topic::ArrayBound,
        Topic::Bind,
        Topic::LeftOut,
        Topic::Alternatives,
        Topic::Closed,
        Topic::Null,
        Topic::Ignored,
        Topic::Guess,
    ];

    /// The name that `--json` prints.
    pub const fn name(self) -> &'static str {
        match self {
            Topic::StringBound => "string_bound",
            Topic::FreeText => "free_text",
            Topic::NumberRange => "number_range",
            Topic::ArrayBound => "array_bound",
            Topic::Bind => "bind",
            Topic::LeftOut => "left_out",
            Topic::Alternatives => "alternatives",
            Topic::Closed => "closed",
            Topic::Null => "null",
            Topic::Ignored => "ignored",
            Topic::Guess => "guess",
        }
    }

    /// Whether the loader refuses the draft until this is decided.
    pub const fn blocks(self) -> bool {
        match self {
            Topic::StringBound | Topic::FreeText | Topic::NumberRange | Topic::ArrayBound | Topic::Bind => true,
            Topic::LeftOut | Topic::Alternatives | Topic::Closed | Topic::Null | Topic::Ignored | Topic::Guess => false,
        }
    }
}

/// One decision: about which place of the data, from which place of the source, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub topic: Topic,
    /// Pointer into the data; `*` stands for list items.
    pub place: String,
    /// Pointer into the source document; empty for examples.
    pub source: String,
    pub message: String,
}

/// Why a source cannot be drawn from, in words for whoever runs the command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}\n    help: {help}", if pointer.is_empty() { String::new() } else { format!("{}: ", shown(pointer)) })]
pub struct ImportError {
    /// Pointer into the source document.
    pub pointer: String,
    pub message: String,
    pub help: String,
}

impl ImportError {
    pub fn new(pointer: &str, message: impl Into<String>, help: impl Into<String>) -> ImportError {
        ImportError { pointer: pointer.into(), message: message.into(), help: help.into() }
    }
}

/// A name or pointer of a foreign document, safe to print and to put into a comment: printable ASCII on one line, at
/// most 160 characters.
pub fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 160;
    let mut out = String::new();
    for c in text.chars().take(CHARS_MAX) {
        if (' '..='~').contains(&c) { out.push(c) } else { out.extend(c.escape_unicode()) }
    }
    if text.chars().nth(CHARS_MAX).is_some() {
        out.push_str("...");
    }
    out
}

/// The names that fields of a result may have (`$defs/field_name` of the contract's schema).
pub(super) fn is_field_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= 64
}

/// A tool's name as contracts spell it: `searchIssues`, `search-issues` and `Search Issues` are `search_issues`.
/// Nothing where no letter is left.
pub fn tool_name(name: &str) -> Option<String> {
    let mut out = String::new();
    let mut after_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && after_lower {
            out.push('_');
        }
        after_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        let c = if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '_' };
        let is_repeated = matches!(c, '_' | '.') && (out.is_empty() || out.ends_with(['_', '.']));
        if !is_repeated {
            out.push(c);
        }
    }
    let out = out.trim_end_matches(['_', '.']);
    let starts = out.find(|c: char| c.is_ascii_lowercase())?;
    Some(out[starts..].chars().take(100).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_get_names_that_contracts_may_have() {
        for (name, expect) in [
            ("searchIssues", "search_issues"),
            ("search-issues", "search_issues"),
            ("Search  Issues!", "search_issues"),
            ("repos/get-commit", "repos_get_commit"),
            ("ci.job_status", "ci.job_status"),
            ("2fa..status", "fa.status"),
        ] {
            assert_eq!(tool_name(name).as_deref(), Some(expect), "{name}");
        }
        assert_eq!(tool_name("42 !"), None);
    }

    #[test]
    fn foreign_names_cannot_leave_their_comment() {
        assert_eq!(shown("a\ntool: evil\u{202e}"), "a\\u{a}tool: evil\\u{202e}");
        assert!(shown(&"x".repeat(1000)).len() < 170);
    }
}
