//! `toolgate tail`: the records of a topic, for people and programs, beside a running worker.
//!
//! Our own records are decoded; bytes that came from outside are shown escaped and cut short.

use super::args::TailArgs;
use super::json::{Object, hex};
use super::logs::{self, Source};
use super::{Exit, out, run};
use crate::config::LogKind;
use crate::gate::parse::Tape;
use crate::log::{Record, Topic};
use crate::time::Timestamp;
use crate::wire::{json, v1};
use anyhow::Result;
use prost::Message;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

const TEXT_MAX: usize = 4096;

/// How long to wait for records before looking whether somebody wants us to stop.
const WAIT: Duration = Duration::from_millis(200);

/// Prints what the topic holds, in the order of time within a batch, and waits for more if asked, until a signal comes.
///
/// # Errors
/// Bad configuration, no such topic, or a log that can't be read.
pub(super) fn tail(file: Option<&Path>, args: &TailArgs) -> Result<Exit> {
    let config = logs::config(file, args.log.as_deref())?;
    let topic = logs::topic(&config, &args.topic)?;
    let stop = run::stop_on_signals()?;
    let mut source = Source::open(&config, topic, args.from)?;
    while !stop.load(Ordering::Relaxed) && (args.follow || !source.has_caught_up()) {
        let wait = if args.follow || config.log.kind == LogKind::Kafka { WAIT } else { Duration::ZERO };
        for record in source.read(wait)? {
            out::line(&out::harmless(&if args.json { as_json(topic, &record) } else { for_people(topic, &record) }))?;
        }
    }
    Ok(Exit::Ok)
}

fn text(bytes: &[u8]) -> String {
    out::escaped(bytes, TEXT_MAX)
}

fn time(millis: i64) -> String {
    Timestamp::from_unix_millis(millis).unwrap_or_default().to_string()
}

fn for_people(topic: Topic, record: &Record) -> String {
    let key = record.key.as_deref().map(text).unwrap_or_else(|| "-".into());
    let head = format!("{} {} {key}", time(record.timestamp_ms), record.position);
    match (&record.value, described(topic, record)) {
        (None, _) => format!("{head} (tombstone)"),
        (Some(_), Some(line)) => format!("{head} {line}"),
        (Some(value), None) => format!("{head} {}", text(value)),
    }
}

/// One line about a record of our own.
fn described(topic: Topic, record: &Record) -> Option<String> {
    let value = record.value.as_deref()?;
    Some(match topic {
        Topic::Results => text(value),
        Topic::Requests => {
            let request = v1::ToolRequest::decode(value).ok()?;
            format!(
                "{} attempt {} until {} {}",
                text(request.tool.as_bytes()),
                request.attempt,
                time(request.deadline_unix_ms),
                text(&request.arguments)
            )
        }
        Topic::Responses => {
            let response = v1::ToolResponse::decode(value).ok()?;
            format!(
                "{} attempt {} {} bytes {}",
                text(response.tool.as_bytes()),
                response.attempt,
                response.body.len(),
                out::escaped(&response.body, 200)
            )
        }
        Topic::Quarantine => {
            let record = v1::QuarantineRecord::decode(value).ok()?;
            let diagnosis = record.diagnosis.unwrap_or_default();
            format!(
                "{} {}@{} {} {} sha256:{}",
                record.reason,
                text(record.tool.as_bytes()),
                record.contract_version,
                diagnosis.instance_path,
                diagnosis.keyword,
                hex(&record.sha256)
            )
        }
        Topic::Retries => {
            let directive = v1::RetryDirective::decode(value).ok()?;
            format!(
                "{} attempt {} not before {} ({})",
                directive.tool,
                directive.attempt,
                time(directive.not_before_unix_ms),
                directive.failure_code
            )
        }
        Topic::Audit => audit_line(&v1::AuditRecord::decode(value).ok()?),
        Topic::Bindings => binding_line(&v1::Binding::decode(value).ok()?),
    })
}

fn audit_line(audit: &v1::AuditRecord) -> String {
    let outcome = audit.outcome().as_str_name().trim_start_matches("AUDIT_OUTCOME_").to_ascii_lowercase();
    format!(
        "{} {outcome} {} {}@{} {}",
        audit.decision_id,
        audit.reason,
        text(audit.tool.as_bytes()),
        audit.contract_version,
        audit.failure_code
    )
}

fn binding_line(binding: &v1::Binding) -> String {
    let state = binding.state().as_str_name().trim_start_matches("BINDING_STATE_").to_ascii_lowercase();
    format!("{}@{} {state} attempt {}", binding.tool, binding.contract_version, binding.attempt)
}

fn as_json(topic: Topic, record: &Record) -> String {
    let mut object = Object::new();
    object.text("topic", topic.name());
    object.raw("partition", &record.position.partition.to_string());
    object.raw("offset", &record.position.offset.to_string());
    object.text("time", &time(record.timestamp_ms));
    object.optional_text("key", record.key.as_deref().map(text).as_deref());
    let headers = record
        .headers
        .iter()
        .map(|header| format!("{}: {}", header.name, header.value.as_deref().map(text).unwrap_or_default()));
    object.texts("headers", headers);
    match (&record.value, topic) {
        (None, _) => object.raw("value", "null"),
        (Some(value), Topic::Results) => match std::str::from_utf8(value) {
            // Whoever may write to the topic may have written something else than a result.
            Ok(one) if json::parse(one, &mut Tape::default()).is_ok() => object.raw("value", one),
            Ok(_) | Err(_) => object.text("value", &text(value)),
        },
        (Some(value), _) => {
            if let Some(members) = members(topic, value) {
                object.raw("value", &members);
            } else {
                object.text("bytes", &text(value));
            }
        }
    }
    object.end()
}

/// The fields of a record of our own that programs ask for.
fn members(topic: Topic, value: &[u8]) -> Option<String> {
    let mut object = Object::new();
    match topic {
        Topic::Results => return None,
        Topic::Requests => request_members(&v1::ToolRequest::decode(value).ok()?, &mut object),
        Topic::Responses => {
            let response = v1::ToolResponse::decode(value).ok()?;
            object.text("request_id", &text(response.request_id.as_bytes()));
            object.text("tool", &text(response.tool.as_bytes()));
            object.number("attempt", response.attempt.into());
            object
                .optional_text("content_type", response.content_type.as_deref().map(|t| text(t.as_bytes())).as_deref());
            object.text("body", &text(&response.body));
        }
        Topic::Quarantine => quarantine_members(&v1::QuarantineRecord::decode(value).ok()?, &mut object),
        Topic::Retries => {
            let directive = v1::RetryDirective::decode(value).ok()?;
            object.text("request_id", &directive.request_id);
            object.text("tool", &directive.tool);
            object.number("attempt", directive.attempt.into());
            object.text("not_before", &time(directive.not_before_unix_ms));
            object.text("reason", &directive.reason);
            object.text("failure_code", &directive.failure_code);
        }
        Topic::Audit => audit_members(&v1::AuditRecord::decode(value).ok()?, &mut object),
        Topic::Bindings => {
            let binding = v1::Binding::decode(value).ok()?;
            object.text("request_id", &binding.request_id);
            object.text("tool", &binding.tool);
            object.text("state", binding.state().as_str_name());
            object.text("closed_as", binding.closed_as().as_str_name());
            object.number("attempt", binding.attempt.into());
        }
    }
    Some(object.end())
}

fn request_members(request: &v1::ToolRequest, object: &mut Object) {
    object.text("request_id", &text(request.request_id.as_bytes()));
    object.text("tool", &text(request.tool.as_bytes()));
    object.number("attempt", request.attempt.into());
    object.text("issued_at", &time(request.issued_at_unix_ms));
    object.text("deadline", &time(request.deadline_unix_ms));
    object.text("arguments", &text(&request.arguments));
}

fn quarantine_members(record: &v1::QuarantineRecord, object: &mut Object) {
    let (diagnosis, source) = (record.diagnosis.clone().unwrap_or_default(), record.source.clone().unwrap_or_default());
    object.text("id", &record.id);
    object.text("request_id", &text(record.request_id.as_bytes()));
    object.text("tool", &text(record.tool.as_bytes()));
    object.number("contract_version", record.contract_version.into());
    object.text("reason", &record.reason);
    object.text("stage", &record.stage);
    object.text("keyword", &diagnosis.keyword);
    object.text("schema_path", &diagnosis.schema_path);
    object.text("instance_path", &diagnosis.instance_path);
    object.text("expected", &diagnosis.expected);
    object.text("detail", &diagnosis.detail);
    object.text("digest", &format!("sha256:{}", hex(&record.sha256)));
    object.text("source", &format!("{}-{}@{}", source.topic, source.partition, source.offset));
    object.text("decided_at", &time(record.decided_at_unix_ms));
    object.text("failure_code", &record.failure_code);
    object.number("payload_bytes", record.payload_bytes);
    object.text("decision_id", &record.decision_id);
}

fn audit_members(audit: &v1::AuditRecord, object: &mut Object) {
    let source = audit.source.clone().unwrap_or_default();
    object.text("decision_id", &audit.decision_id);
    object.text("request_id", &text(audit.request_id.as_bytes()));
    object.text("tool", &text(audit.tool.as_bytes()));
    object.number("contract_version", audit.contract_version.into());
    object.text(
        "outcome",
        audit.outcome().as_str_name().trim_start_matches("AUDIT_OUTCOME_").to_ascii_lowercase().as_str(),
    );
    object.text("reason", &audit.reason);
    object.text("stage", &audit.stage);
    object.number("attempt", audit.attempt.into());
    object.text("source", &format!("{}-{}@{}", source.topic, source.partition, source.offset));
    object.text("digest", &format!("sha256:{}", hex(&audit.raw_sha256)));
    object.text("now", &time(audit.now_unix_ms));
    object.text("failure_code", &audit.failure_code);
    object.text("worker", &audit.worker);
    object.text("endpoint", &text(audit.endpoint.as_bytes()));
    object.text("connector_version", &text(audit.connector_version.as_bytes()));
}
