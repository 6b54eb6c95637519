//! Stage 7 of 10: validate.
//!
//! Holds the candidate against the closed envelope of its contract: JSON Schema Draft 2020-12 with
//! formats asserted, then what a schema cannot say about strings: every date-time must be one that
//! our own parser reads, and every selected string must be free of characters that act on a reader.
//! Afterwards the structure is known. Nothing here compares with the request or the clock.

use super::adapt::Candidate;
use super::parse::{Node, TapeJson};
use super::reason::{Reason, Stage};
use super::refusal::{Diagnosis, FailureCode, Stop, masked};
use super::select::Shape;
use super::text_safety::{self, TextHazard};
use crate::time::Timestamp;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use std::collections::HashSet;

/// A candidate that satisfies its contract's success envelope.
#[derive(Debug)]
pub struct Envelope<'a> {
    data: Node<'a>,
}

impl<'a> Envelope<'a> {
    pub(super) fn data(&self) -> Node<'a> {
        self.data
    }
}

/// A contract's envelope, compiled: one validator per branch, chosen by `outcome`, so that a
/// refusal names `/data/state` and not "one of two alternatives". The branches exclude each other
/// by their constant `outcome`, which makes the choice equal to the `oneOf` that it replaces.
#[derive(Debug)]
pub struct EnvelopeSchema {
    pub success: Validator<TapeJson>,
    pub failure: Validator<TapeJson>,
    /// Every member name that the schema or the adapter knows; others are masked in diagnoses.
    pub known_names: HashSet<Box<str>>,
    /// Shape of the data, for the checks beyond the schema.
    pub data: Shape,
}

/// Validates a candidate; a valid failure envelope ends the way as the failure that it reports.
///
/// An envelope that names another request is refused here, before its failure could be believed.
///
/// # Errors
/// `SCHEMA_VIOLATION`, `TEXT_UNSAFE`, `BINDING_MISMATCH`, or a failure with a code of the contract.
pub fn validate<'a>(
    candidate: &Candidate<'a>,
    schema: &EnvelopeSchema,
    request_id: &str,
) -> Result<Envelope<'a>, Stop> {
    let root = candidate.root();
    let (validator, failed) = match root.get("outcome").and_then(|outcome| outcome.as_str()) {
        Some("success") => (&schema.success, false),
        Some("failure") => (&schema.failure, true),
        Some(_) | None => return Err(without_outcome(root, schema)),
    };
    if !validator.is_valid(root) {
        return Err(violation(validator.iter_errors(root).next(), schema));
    }
    if root.get("request_id").and_then(|id| id.as_str()) != Some(request_id) {
        return Err(other_request());
    }
    if failed {
        return Err(reported_failure(root));
    }
    let data = root.get("data").ok_or_else(|| violation(None, schema))?;
    check_strings(data, &schema.data).map_err(|stop| at_member(stop, "data"))?;
    Ok(Envelope { data })
}

/// Neither branch can hold: say what the root or its `outcome` should have been.
fn without_outcome(root: Node<'_>, schema: &EnvelopeSchema) -> Stop {
    let at_root = schema.success.iter_errors(root).find(|error| error.instance_path().as_str().is_empty());
    match (root.get("outcome"), at_root) {
        (None, Some(error)) => violation(Some(error), schema),
        (found, _) => refuse(Diagnosis {
            keyword: "const".into(),
            instance_path: "/outcome".into(),
            expected: "success or failure".into(),
            found: found.map_or("nothing", |node| node.kind().name()),
            detail: Reason::SchemaViolation.summary(),
            ..Diagnosis::default()
        }),
    }
}

fn reported_failure(root: Node<'_>) -> Stop {
    let code = root.get("error").and_then(|error| error.get("code")).and_then(|code| code.as_str());
    // The schema's enum has made sure that this is one of the contract's own codes.
    let code = code.map_or(FailureCode::InvalidResponse, FailureCode::named);
    Stop::fail(Stage::Validate, code, Diagnosis::of("the tool's own envelope reports a failure"))
}

fn other_request() -> Stop {
    let diagnosis = Diagnosis {
        keyword: "request_id".into(),
        instance_path: "/request_id".into(),
        expected: "the id of the outstanding request".into(),
        found: "string",
        ..Diagnosis::of(Reason::BindingMismatch.summary())
    };
    Stop::refuse(Stage::Bind, Reason::BindingMismatch, diagnosis)
}

fn refuse(diagnosis: Diagnosis) -> Stop {
    Stop::refuse(Stage::Validate, Reason::SchemaViolation, diagnosis)
}

/// Rebuilds a validation error from the contract's words alone: the library's own message quotes the value.
fn violation(error: Option<ValidationError<'_>>, schema: &EnvelopeSchema) -> Stop {
    let Some(error) = error else {
        return refuse(Diagnosis::of(Reason::SchemaViolation.summary()));
    };
    let schema_path = error.schema_path().as_str().to_owned();
    refuse(Diagnosis {
        keyword: schema_path.rsplit('/').next().unwrap_or_default().to_owned(),
        instance_path: mask_pointer(error.instance_path().as_str(), &schema.known_names),
        expected: expectation(error.kind()),
        found: "",
        schema_path,
        offset: None,
        detail: Reason::SchemaViolation.summary(),
    })
}

/// What the schema wanted, in the schema's own values. Every arm reads only from the contract.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "the library's enum; what has no words of its own gets the last ones"
)]
fn expectation(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => kind.to_string(),
        ValidationErrorKind::Enum { options } => format!("one of {options}"),
        ValidationErrorKind::Constant { expected_value } => expected_value.to_string(),
        ValidationErrorKind::Pattern { pattern } => format!("a string matching {pattern}"),
        ValidationErrorKind::Format { format } => format!("format {format}"),
        ValidationErrorKind::MaxLength { limit } => format!("at most {limit} characters"),
        ValidationErrorKind::MinLength { limit } => format!("at least {limit} characters"),
        ValidationErrorKind::MaxItems { limit } => format!("at most {limit} items"),
        ValidationErrorKind::MinItems { limit } => format!("at least {limit} items"),
        ValidationErrorKind::Maximum { limit } | ValidationErrorKind::ExclusiveMaximum { limit } => {
            format!("a number up to {limit}")
        }
        ValidationErrorKind::Minimum { limit } | ValidationErrorKind::ExclusiveMinimum { limit } => {
            format!("a number from {limit}")
        }
        ValidationErrorKind::Required { property } => format!("the member {property}"),
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> = unexpected.iter().take(4).map(|name| masked(name)).collect();
            format!("no member beside the declared ones; unexpected: {}", names.join(", "))
        }
        ValidationErrorKind::UniqueItems => "items that differ".to_owned(),
        _ => "what the schema says there".to_owned(),
    }
}

/// Replaces every name that the contract does not know; list indexes stay.
fn mask_pointer(pointer: &str, known: &HashSet<Box<str>>) -> String {
    let tokens = pointer.split('/').skip(1).map(|token| {
        let name = token.replace("~1", "/").replace("~0", "~");
        let plain = known.contains(name.as_str()) || token.bytes().all(|b| b.is_ascii_digit());
        if plain { format!("/{token}") } else { format!("/{}", masked(&name)) }
    });
    tokens.collect()
}

/// Walks the declared shape: times must parse, strings must be safe to show to a reader.
fn check_strings(node: Node<'_>, shape: &Shape) -> Result<(), Stop> {
    match shape {
        Shape::Object(members) => members.iter().try_for_each(|member| match node.get(&member.name) {
            Some(value) => check_strings(value, &member.shape).map_err(|stop| at_member(stop, &member.name)),
            None => Ok(()),
        }),
        Shape::Array(item) => node.items().try_for_each(|value| check_strings(value, item)),
        Shape::Time => match node.as_str().and_then(Timestamp::parse_rfc3339) {
            Some(_) => Ok(()),
            None => Err(refuse(Diagnosis {
                keyword: "format".into(),
                expected: "format date-time".into(),
                found: node.kind().name(),
                detail: "the validator and the clock's own parser do not both read this as a time",
                ..Diagnosis::default()
            })),
        },
        Shape::Text(rule) => safe(node, |text| text_safety::check(text, rule)),
        Shape::Scalar => safe(node, text_safety::check_characters),
    }
}

fn safe(node: Node<'_>, check: impl Fn(&str) -> Result<(), TextHazard>) -> Result<(), Stop> {
    let Some(Err(hazard)) = node.as_str().map(check) else { return Ok(()) };
    let diagnosis = Diagnosis {
        keyword: "text".into(),
        expected: hazard.expected().into(),
        found: "string",
        detail: Reason::TextUnsafe.summary(),
        ..Diagnosis::default()
    };
    Err(Stop::refuse(Stage::Validate, Reason::TextUnsafe, diagnosis))
}

/// Puts the name of the enclosing member before the place that a nested check has found.
fn at_member(stop: Stop, name: &str) -> Stop {
    match stop {
        Stop::Refused(mut refusal) => {
            refusal.diagnosis.instance_path.insert_str(0, name);
            refusal.diagnosis.instance_path.insert(0, '/');
            Stop::Refused(refusal)
        }
        Stop::Failed(failure) => Stop::Failed(failure),
    }
}
