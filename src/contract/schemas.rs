//! The JSON Schemas of a contract: read strictly, linted, and compiled over the tape.

use super::compile::{Draft, Folder, known_names};
use super::findings::Findings;
use super::lint;
use super::raw::{RawContract, SourceKind};
use super::shape::Shapes;
use super::yaml::{Marked, Place};
use crate::gate::parse::{Limits, Tape, TapeJson};
use crate::gate::text_safety::TextRule;
use crate::gate::validate::EnvelopeSchema;
use jsonschema::{Draft as SchemaDraft, PatternOptions, Validator};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The schema of `contract.yaml` itself; editors use the same file.
const CONTRACT_SCHEMA: &str = include_str!("../../schemas/contract.schema.json");
/// The envelope of the article, as a template for sources that do not bring their own.
const ENVELOPE_TEMPLATE: &str = include_str!("../../schemas/envelope.schema.json");

const PATTERN_BYTES_MAX: usize = 1 << 20;
const FINDINGS_MAX: usize = 50;

/// The schemas that a contract is made of.
pub(super) struct Schemas {
    /// Schema of the data alone, self-contained.
    pub data: Value,
    /// The whole envelope, where an `envelope` source brings its own.
    pub own_envelope: Option<Value>,
    /// The text of the schema file, for the contract's digest.
    pub source_text: String,
}

/// Holds `contract.yaml` against its schema and reports every violation with its line.
pub(super) fn check_contract_file(marked: &Marked, findings: &mut Findings) {
    let schema: Value = parse_own(CONTRACT_SCHEMA);
    let validator = match jsonschema::options().with_draft(SchemaDraft::Draft202012).offline().build(&schema) {
        Ok(validator) => validator,
        Err(error) => return findings.file("contract.schema.json", error.to_string(), ""),
    };
    for error in validator.iter_errors(&marked.value).take(FINDINGS_MAX) {
        let pointer = error.instance_path().as_str().to_owned();
        findings.at(marked, &pointer, error.to_string(), "docs/contracts.md describes every key");
    }
}

/// Parses a schema that ships inside the program; tests make sure that it is one.
fn parse_own(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

impl Schemas {
    pub(super) fn read(
        folder: &dyn Folder,
        raw: &RawContract,
        marked: &Marked,
        text: &BTreeMap<String, TextRule>,
        findings: &mut Findings,
    ) -> Option<Schemas> {
        let schemas = match &raw.envelope {
            None => {
                let (data, source_text) = read_schema(folder, &raw.data, findings)?;
                lint_into(&raw.data, &data, "", text, findings);
                Schemas { data, own_envelope: None, source_text }
            }
            Some(_) if raw.source.kind != SourceKind::Envelope => {
                findings.at(
                    marked,
                    "/envelope",
                    "only sources of kind envelope send an envelope of their own",
                    "remove envelope:, or change source.kind",
                );
                return None;
            }
            Some(file) => {
                let (envelope, source_text) = read_schema(folder, file, findings)?;
                lint_into(file, &envelope, "/data", text, findings);
                let data = data_of(&envelope).or_else(|| {
                    let help = "it must be an object with oneOf: a branch with outcome const success and data, and one with outcome const failure and error";
                    findings.file(file, "this is no envelope of success and failure", help);
                    None
                })?;
                Schemas { data, own_envelope: Some(envelope), source_text }
            }
        };
        findings.is_empty().then_some(schemas)
    }

    /// Compiles the two branches of the envelope.
    pub(super) fn envelope(&self, draft: &Draft<'_>, findings: &mut Findings) -> Option<EnvelopeSchema> {
        let codes: Vec<&str> = draft.raw.codes.keys().map(String::as_str).collect();
        let filled = match &self.own_envelope {
            Some(envelope) => envelope.clone(),
            None => fill_template(&draft.raw.tool, &self.data, &codes),
        };
        let file = draft.raw.envelope.as_ref().unwrap_or(&draft.raw.data);
        let mut compiled = |outcome: &str| -> Option<Validator<TapeJson>> {
            let branch = branch_of(&filled, outcome).map(|branch| standalone(&branch, &filled));
            let validator = branch
                .ok_or_else(|| format!("no branch has the constant outcome {outcome}"))
                .and_then(|schema| build(&schema));
            validator.map_err(|why| findings.file(file, why, "")).ok()
        };
        let (success, failure) = (compiled("success"), compiled("failure"));
        let shapes = Shapes { root: &self.data, text: draft.text };
        Some(EnvelopeSchema {
            success: success?,
            failure: failure?,
            known_names: known_names(draft).into_iter().map(String::into_boxed_str).collect(),
            data: shapes.of(&self.data, ""),
        })
    }
}

/// Reads a schema file by the same strict rules as a response: no duplicate members, nothing after it.
fn read_schema(folder: &dyn Folder, file: &str, findings: &mut Findings) -> Option<(Value, String)> {
    let text = folder.read(file).map_err(|why| findings.file(file, why, "contract.yaml names this file")).ok()?;
    let limits = Limits { members_max: 10_000, items_max: 10_000, ..Limits::default() };
    let mut tape = Tape::default();
    if let Err(error) = tape.parse(text.as_bytes(), &limits) {
        let place = place_of(&text, error.offset);
        findings.push(
            file,
            place,
            "",
            format!("{}: {}", error.reason, error.what),
            "the file must be one JSON document",
        );
        return None;
    }
    let value = serde_json::from_str(&text).map_err(|error| findings.file(file, error.to_string(), "")).ok()?;
    Some((value, text))
}

fn place_of(text: &str, offset: usize) -> Place {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let line = before.iter().filter(|b| **b == b'\n').count() as u64 + 1;
    Place { line, column: (before.len() - line_start) as u64 + 1 }
}

/// Lints a schema; for a whole envelope, pointers of declared text stand below its data.
fn lint_into(file: &str, schema: &Value, below: &str, text: &BTreeMap<String, TextRule>, findings: &mut Findings) {
    let declared: BTreeMap<String, TextRule> = text.iter().map(|(at, rule)| (format!("{below}{at}"), *rule)).collect();
    for finding in lint::lint_schema(schema, &declared) {
        findings.push(file, Place::default(), &finding.pointer, finding.message, finding.help);
    }
}

fn branch_of(envelope: &Value, outcome: &str) -> Option<Value> {
    let branches = envelope.get("oneOf")?.as_array()?;
    let is_it = |branch: &&Value| branch.pointer("/properties/outcome/const").and_then(Value::as_str) == Some(outcome);
    branches.iter().find(is_it).cloned()
}

/// A branch with the definitions that it refers to.
fn standalone(branch: &Value, envelope: &Value) -> Value {
    let mut schema = branch.clone();
    if let Value::Object(members) = &mut schema {
        members.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        if let Some(definitions) = envelope.get("$defs") {
            members.insert("$defs".into(), definitions.clone());
        }
    }
    schema
}

/// The data schema inside an envelope, made self-contained.
fn data_of(envelope: &Value) -> Option<Value> {
    let success = branch_of(envelope, "success")?;
    branch_of(envelope, "failure")?;
    let data = success.pointer("/properties/data")?;
    let resolved = match data.get("$ref").and_then(Value::as_str) {
        Some(reference) => envelope.pointer(reference.strip_prefix('#')?)?,
        None => data,
    };
    Some(standalone(resolved, envelope))
}

/// Fills the template: the tool's name, its codes, and its data schema under an identifier of its
/// own, so that `#/$defs/...` inside it keeps its meaning.
fn fill_template(tool: &str, data: &Value, own_codes: &[&str]) -> Value {
    let mut envelope = parse_own(ENVELOPE_TEMPLATE);
    let mut codes: Vec<String> =
        crate::gate::refusal::FailureCode::COMMON.iter().map(|code| code.as_str().to_owned()).collect();
    codes.extend(own_codes.iter().map(|&code| code.to_owned()));
    for branch in envelope.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(slot) = branch.pointer_mut("/properties/tool") {
            *slot = json!({ "const": tool });
        }
        if let Some(slot) = branch.pointer_mut("/properties/data") {
            *slot = json!({ "$ref": DATA_ID });
        }
        if let Some(slot) = branch.pointer_mut("/properties/error/properties/code") {
            *slot = json!({ "enum": codes });
        }
    }
    let mut data = data.clone();
    if let Value::Object(members) = &mut data {
        members.insert("$id".into(), json!(DATA_ID));
    }
    envelope["$defs"] = json!({ "data": data });
    envelope
}

const DATA_ID: &str = "urn:toolgate:data";

/// Compiles a schema over the tape: one draft, offline, formats asserted, patterns bounded.
fn build(schema: &Value) -> Result<Validator<TapeJson>, String> {
    jsonschema::options_for::<TapeJson>()
        .with_draft(SchemaDraft::Draft202012)
        .offline()
        .should_validate_formats(true)
        .should_ignore_unknown_formats(false)
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES_MAX))
        .build(schema)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_inside_the_program_are_schemas() {
        for text in [CONTRACT_SCHEMA, ENVELOPE_TEMPLATE] {
            let schema: Value = serde_json::from_str(text).unwrap();
            jsonschema::options().with_draft(SchemaDraft::Draft202012).offline().build(&schema).unwrap();
        }
    }

    #[test]
    fn a_place_is_counted_from_one() {
        assert_eq!(place_of("{\n  \"a\": x}", 9), Place { line: 2, column: 8 });
        assert_eq!(place_of("", 5), Place { line: 1, column: 1 });
    }
}
