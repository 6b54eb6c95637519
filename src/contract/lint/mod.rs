//! The load-time lint: a schema that admits more than it says is refused before it judges anything.
//!
//! A validator accepts a misspelt keyword, an unknown format and an open object in silence. Here
//! each is a finding with its pointer and what to do. A schema passes when every value that it
//! admits has a type, a bound and only members that somebody has named: either by its own
//! keywords, or because it merely *narrows* what the schema around it has bounded already.
//!
//! The walk is over the schema, whose size, depth and expansion are limited first; responses
//! never reach this module.

mod keywords;
mod places;
mod size;
mod strings;
#[cfg(test)]
mod tests;
mod values;
mod walk;

pub use places::{pointer_exists, properties_at, required_at, schemas_at};
pub(in crate::contract) use strings::string_facts;

use crate::gate::text_safety::TextRule;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Something that a schema must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintFinding {
    /// The rule that is broken: dialect, size, ref, keyword, type, open, closed, bounded, format,
    /// pattern, text or depth.
    pub rule: &'static str,
    /// Pointer into the schema.
    pub pointer: String,
    pub message: String,
    pub help: &'static str,
}

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Lints a schema of data, or of a whole envelope. `declared_text` has the places of the data
/// that may hold free text: pointers in which `*` stands for list items.
///
/// At most a hundred findings are told. The work is bounded by the limits of the file and of its
/// expansion through `$ref`, whatever the schema.
pub fn lint_schema(schema: &Value, declared_text: &BTreeMap<String, TextRule>) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    if schema.get("$schema").and_then(Value::as_str) != Some(DIALECT) {
        findings.push(LintFinding {
            rule: "dialect",
            pointer: String::new(),
            message: "the dialect is not named".into(),
            help: "add \"$schema\": \"https://json-schema.org/draft/2020-12/schema\"",
        });
    }
    match size::check(schema) {
        Ok(()) => findings.extend(walk::walk(schema, declared_text)),
        Err(finding) => findings.push(finding),
    }
    findings
}

/// `type`, as a list.
pub(in crate::contract) fn declared_types(members: &Map<String, Value>) -> Vec<&str> {
    match members.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
