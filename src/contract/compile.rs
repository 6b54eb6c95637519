//! Loads a contract: files to plan, with every mistake reported at once.
//!
//! The order is the reader's: the file's own schema first, then the JSON Schema of the data and
//! its lint, then each part of the table against that schema. A contract with one finding is not
//! served (promise P5).

use super::bounds::{self, Bounds};
use super::findings::{Finding, Findings};
use super::raw::{BoundBy, Payload, RawContract, RawRefusal, SourceKind};
use super::schemas::{self, Schemas};
use super::yaml::{Marked, Place};
use super::{Code, Contract, Policy, Retry, adapting, meaning, selecting, sourcing};
use crate::gate::refusal::FailureCode;
use crate::gate::text_safety::TextRule;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The files of one contract version, by name. Implemented by whoever may touch a disk.
pub trait Folder {
    /// The text of a file.
    ///
    /// # Errors
    /// A sentence that says why it can't be read.
    fn read(&self, name: &str) -> Result<String, String>;
}

pub(super) const FILE: &str = "contract.yaml";

/// Everything that one part of the loader needs to know about the others.
pub(super) struct Draft<'a> {
    pub marked: &'a Marked,
    pub raw: &'a RawContract,
    pub schemas: &'a Schemas,
    pub text: &'a BTreeMap<String, TextRule>,
}

/// Reads, checks and compiles a contract.
///
/// # Errors
/// All findings, in the order of the files.
pub fn load(folder: &dyn Folder) -> Result<Contract, Vec<Finding>> {
    let mut findings = Findings::default();
    let contract = try_load(folder, &mut findings);
    match contract {
        Some(contract) if findings.is_empty() => Ok(contract),
        Some(_) | None => Err(findings.into_list()),
    }
}

fn try_load(folder: &dyn Folder, findings: &mut Findings) -> Option<Contract> {
    let text =
        folder.read(FILE).map_err(|why| findings.file(FILE, why, "every contract version has a contract.yaml")).ok()?;
    let marked = Marked::parse(&text)
        .map_err(|(place, why)| findings.push(FILE, place, "", why, "the file must be one YAML document"))
        .ok()?;
    schemas::check_contract_file(&marked, findings);
    if !findings.is_empty() {
        return None;
    }
    let raw: RawContract = serde_json::from_value(marked.value.clone())
        .map_err(|error| findings.push(FILE, Place::default(), "", error.to_string(), "see docs/contracts.md"))
        .ok()?;
    let rules = text_rules(&raw);
    let schemas = Schemas::read(folder, &raw, &marked, &rules, findings)?;
    let draft = Draft { marked: &marked, raw: &raw, schemas: &schemas, text: &rules };
    assemble(&draft, &text, findings)
}

/// The declared free text, by pointer into the data.
pub(super) fn text_rules(raw: &RawContract) -> BTreeMap<String, TextRule> {
    let rules = raw.text.iter();
    rules.map(|(name, rule)| (text_pointer(name), TextRule { max_chars: rule.max_chars, emoji: rule.emoji })).collect()
}

/// `text:` names a top-level field, or a pointer below one; `*` stands for list items.
fn text_pointer(name: &str) -> String {
    if name.starts_with('/') { name.to_owned() } else { format!("/{}", super::shape::escape(name)) }
}

fn assemble(draft: &Draft<'_>, file: &str, findings: &mut Findings) -> Option<Contract> {
    let Draft { raw, schemas, .. } = draft;
    let codes = codes(draft, findings);
    let terms = sourcing::terms(draft, &codes, findings);
    let grammar = sourcing::grammar(draft, findings);
    let reading = adapting::reading(draft, &codes, findings);
    let semantics = meaning::semantics(draft, findings);
    let selection = selecting::selection(draft, findings);
    let policy = policy(draft, &codes, findings);
    let envelope = schemas.envelope(draft, findings);
    let bounds = result_bounds(draft, &selection, findings);
    let arguments = meaning::arguments(draft);
    let untrusted_text = selecting::untrusted_text(draft, &selection);
    Some(Contract {
        tool: raw.tool.as_str().into(),
        version: raw.version,
        label: format!("{}@{}", raw.tool, raw.version).into(),
        status: raw.status,
        about: raw.about.clone(),
        owner: raw.owner.clone(),
        digest: digest(file, schemas),
        terms: terms?,
        grammar: grammar?,
        reading: reading?,
        envelope: envelope?,
        semantics: semantics?,
        selection,
        policy: policy?,
        codes,
        bounds: bounds?,
        arguments,
        untrusted_text,
        secrets: raw.source.signature.iter().flat_map(|signature| signature.secrets.clone()).collect(),
    })
}

fn digest(file: &str, schemas: &Schemas) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for text in [file, &schemas.source_text] {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().into()
}

/// The five common codes and the contract's own.
fn codes(draft: &Draft<'_>, findings: &mut Findings) -> Vec<Code> {
    let retried = draft.raw.retry.as_ref().map(|retry| retry.on.as_slice()).unwrap_or_default();
    let mut codes: Vec<Code> = FailureCode::COMMON
        .into_iter()
        .map(|code| Code {
            about: common_meaning(&code).into(),
            retryable: retried.iter().any(|name| name == code.as_str()),
            code,
        })
        .collect();
    for (name, raw) in &draft.raw.codes {
        if codes.iter().any(|known| known.code.as_str() == name) {
            findings.at(
                draft.marked,
                &format!("/codes/{name}"),
                format!("{name} is a common code already"),
                "remove it or choose another name",
            );
            continue;
        }
        let retryable = raw.retryable || retried.contains(name);
        codes.push(Code { code: FailureCode::named(name), about: raw.about.clone(), retryable });
    }
    codes
}

fn common_meaning(code: &FailureCode) -> &'static str {
    match code {
        FailureCode::NotFound => "what was asked for does not exist",
        FailureCode::UpstreamUnavailable => "the tool could not be reached or could not answer",
        FailureCode::InvalidResponse => "the tool answered, but not with admissible evidence",
        FailureCode::Unauthorized => "the call was not authorized; a new authorization decision is needed",
        FailureCode::Expired => "no admissible answer came before the deadline",
        FailureCode::Declared(_) => "",
    }
}

/// The code of this name, if the contract knows it.
pub(super) fn known_code(
    draft: &Draft<'_>,
    codes: &[Code],
    name: &str,
    pointer: &str,
    findings: &mut Findings,
) -> Option<FailureCode> {
    let code = codes.iter().find(|known| known.code.as_str() == name).map(|known| known.code.clone());
    if code.is_none() {
        let known: Vec<&str> = codes.iter().map(|known| known.code.as_str()).collect();
        let help = format!("use one of {}, or declare it under codes:", known.join(", "));
        findings.at(draft.marked, pointer, format!("{name} is not a code of this contract"), help);
    }
    code
}

fn policy(draft: &Draft<'_>, codes: &[Code], findings: &mut Findings) -> Option<Policy> {
    let raw = draft.raw;
    if raw.quarantine.payload == Payload::Sealed {
        let help = "use plain, or digest to keep no payload";
        findings.at(draft.marked, "/quarantine/payload", "sealed payloads are not supported by this version", help);
    }
    if raw.retention < raw.replay.window {
        let help = "a closed request must be remembered at least as long as it can be replayed";
        findings.at(draft.marked, "/retention", "retention is shorter than replay.window", help);
    }
    let retry = match &raw.retry {
        None => None,
        Some(_) => Some(retry(draft, codes, findings)?),
    };
    Some(Policy {
        retry,
        hold: match &raw.refusal {
            RawRefusal::Close => 0,
            RawRefusal::Hold(hold) => hold.hold,
        },
        payload: raw.quarantine.payload,
        quarantine_retention_ms: raw.quarantine.retention.0,
        deliver_late: raw.replay.deliver_late,
        replay_window_ms: raw.replay.window.0,
        retention_ms: raw.retention.0,
    })
}

fn retry(draft: &Draft<'_>, codes: &[Code], findings: &mut Findings) -> Option<Retry> {
    let raw = draft.raw.retry.as_ref()?;
    let mut on = Vec::new();
    for (i, name) in raw.on.iter().enumerate() {
        let pointer = format!("/retry/on/{i}");
        match known_code(draft, codes, name, &pointer, findings) {
            Some(FailureCode::Unauthorized) => {
                let help = "an authorization failure needs a new decision, not a loop";
                findings.at(draft.marked, &pointer, "UNAUTHORIZED can't be retried", help);
            }
            Some(FailureCode::Expired) => {
                findings.at(
                    draft.marked,
                    &pointer,
                    "EXPIRED can't be retried",
                    "the request's deadline has passed by then",
                );
            }
            Some(code) => on.push(code),
            None => {}
        }
    }
    if raw.backoff.initial > raw.backoff.max {
        findings.at(draft.marked, "/retry/backoff", "initial is larger than max", "swap them or raise max");
    }
    Some(Retry {
        on,
        attempts_max: raw.attempts_max,
        budget_ms: raw.budget.0,
        backoff_initial_ms: raw.backoff.initial.0,
        backoff_max_ms: raw.backoff.max.0,
        share_max: raw.share_max,
    })
}

fn result_bounds(
    draft: &Draft<'_>,
    selection: &crate::gate::select::Selection,
    findings: &mut Findings,
) -> Option<Bounds> {
    let selected: Vec<&str> = selection.members.iter().map(|selected| selected.member.name.as_ref()).collect();
    let bounds = bounds::bounds(&draft.schemas.data, &selected)
        .map_err(|why| findings.file(&draft.raw.data, why.to_string(), "bound every selected field"))
        .ok()?;
    let whole = bounds.result_bytes_max + bounds::envelope_overhead(&draft.raw.tool, 64);
    let limit = selection.result_bytes_max as u64;
    if whole > limit {
        let message = format!("the largest result that the schema admits has {whole} bytes; the limit is {limit}");
        findings.at(
            draft.marked,
            "/limits/result_bytes_max",
            message,
            "bound the schema tighter, select less, or raise limits.result_bytes_max",
        );
    }
    Some(Bounds { result_bytes_max: whole, ..bounds })
}

/// Names used in diagnoses for content binding.
pub(super) fn check_bound_by(draft: &Draft<'_>, content_binds: usize, findings: &mut Findings) {
    let names_request = draft.raw.source.kind == SourceKind::Envelope;
    match draft.raw.bound_by {
        BoundBy::Content if content_binds == 0 && !names_request => {
            let help = "add bind: with what the request and the result have in common, or say bound_by: correlation";
            findings.at(draft.marked, "", "nothing in the result is compared with the request", help);
        }
        BoundBy::Content | BoundBy::Correlation => {}
    }
}

/// Every token of the pointers and names that the contract knows, for unmasked diagnoses.
pub(super) fn known_names(draft: &Draft<'_>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> =
        ["tool", "request_id", "outcome", "data", "error", "code", "retryable"].map(str::to_owned).into();
    collect_property_names(&draft.schemas.data, &mut names);
    if let Some(envelope) = &draft.schemas.own_envelope {
        collect_property_names(envelope, &mut names);
    }
    names
}

fn collect_property_names(schema: &serde_json::Value, names: &mut BTreeSet<String>) {
    let mut pending = vec![schema];
    while let Some(value) = pending.pop() {
        match value {
            serde_json::Value::Object(members) => {
                if let Some(properties) = members.get("properties").and_then(|p| p.as_object()) {
                    names.extend(properties.keys().cloned());
                }
                pending.extend(members.values());
            }
            serde_json::Value::Array(items) => pending.extend(items),
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::String(_) => {}
        }
    }
}
