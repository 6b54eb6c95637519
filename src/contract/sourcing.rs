//! Compiles `source:` and `limits:`: how the tool answers, and what the parser may meet.

use super::Code;
use super::compile::{Draft, known_code};
use super::findings::Findings;
use super::raw::{RawEmpty, RawMark, Scheme, SourceKind};
use crate::gate::admit::{Ending, Failures, SignatureTerms, Terms};
use crate::gate::parse::{Grammar, Limits, TextPattern};
use crate::gate::refusal::FailureCode;
use crate::gate::signature::Signature;

pub(super) fn limits(draft: &Draft<'_>) -> Limits {
    let (raw, default) = (&draft.raw.limits, Limits::default());
    Limits {
        body_bytes_max: raw.body_bytes_max.unwrap_or(default.body_bytes_max),
        depth_max: raw.depth_max.unwrap_or(default.depth_max),
        members_max: raw.members_max.unwrap_or(default.members_max),
        items_max: raw.items_max.unwrap_or(default.items_max),
        string_bytes_max: raw.string_bytes_max.unwrap_or(default.string_bytes_max),
    }
}

/// How the body is read: as JSON, or by the one pattern of a text source.
pub(super) fn grammar(draft: &Draft<'_>, findings: &mut Findings) -> Option<Grammar> {
    let source = &draft.raw.source;
    let limits = limits(draft);
    match (&source.text, source.kind) {
        (Some(text), SourceKind::Text) => match TextPattern::compile(&text.pattern, &text.counts) {
            Ok(pattern) => Some(Grammar { limits, text: Some(pattern) }),
            Err(error) => {
                findings.at(
                    draft.marked,
                    "/source/text",
                    error.to_string(),
                    "the pattern is matched against the whole output",
                );
                None
            }
        },
        (None, SourceKind::Text) => {
            findings.at(
                draft.marked,
                "/source",
                "a text source needs text.pattern",
                "add text: {pattern: ...} for the whole output",
            );
            None
        }
        (Some(_), _) => {
            findings.at(
                draft.marked,
                "/source/text",
                "only sources of kind text have a pattern",
                "remove text:, or use kind: text",
            );
            None
        }
        (None, _) => Some(Grammar { limits, text: None }),
    }
}

pub(super) fn terms(draft: &Draft<'_>, codes: &[Code], findings: &mut Findings) -> Option<Terms> {
    let source = &draft.raw.source;
    let runs_a_command = matches!(source.kind, SourceKind::CliJson | SourceKind::Text);
    let default_type = if source.kind == SourceKind::Text { "text/plain" } else { "application/json" };
    let media_types = source.media_types.clone().unwrap_or_else(|| vec![default_type.to_owned()]);
    let success = source.success.clone().unwrap_or_else(|| vec![if runs_a_command { 0 } else { 200 }]);
    if source.empty == RawEmpty::Success && source.kind == SourceKind::Envelope {
        findings.at(draft.marked, "/source/empty", "an envelope is never empty", "remove empty: success");
    }
    Some(Terms {
        kind: source.kind,
        media_types: media_types.iter().map(|name| name.as_str().into()).collect(),
        success,
        empty_is_success: source.empty == RawEmpty::Success,
        prefix: source.prefix.as_ref().map(|prefix| prefix.as_bytes().into()),
        strip_byte_order_mark: source.byte_order_mark == RawMark::Strip,
        failures: failures(draft, codes, findings),
        body_bytes_max: limits(draft).body_bytes_max,
        signature: signature(draft, findings)?,
    })
}

/// What most tools mean by their endings; a contract that lists failures replaces the table whole.
const COMMON_FAILURES: [(&str, FailureCode); 4] = [
    ("404,410", FailureCode::NotFound),
    ("401,403", FailureCode::Unauthorized),
    ("408,425,429,5xx,timeout,connection", FailureCode::UpstreamUnavailable),
    ("tool_error,rpc_error", FailureCode::UpstreamUnavailable),
];

fn failures(draft: &Draft<'_>, codes: &[Code], findings: &mut Findings) -> Failures {
    let is_command = matches!(draft.raw.source.kind, SourceKind::CliJson | SourceKind::Text);
    let mut table = Vec::new();
    for (keys, name) in draft.raw.source.failures.iter().flatten() {
        let pointer = format!("/source/failures/{}", super::shape::escape(keys));
        let code = known_code(draft, codes, name, &pointer, findings);
        for key in keys.split(',').map(str::trim) {
            match (ending(key, is_command), &code) {
                (Some(ending), Some(code)) => table.push((ending, code.clone())),
                (Some(_), None) => {}
                (None, _) => {
                    let help = "use 404, 5xx, an exit code, timeout, connection, tool_error, rpc_error or rpc:-32602";
                    findings.at(draft.marked, &pointer, format!("{key} names no ending of a call"), help);
                }
            }
        }
    }
    for (keys, code) in COMMON_FAILURES {
        let endings = keys.split(',').filter_map(|key| ending(key, false));
        let news: Vec<Ending> = endings.filter(|ending| !table.iter().any(|(known, _)| known == ending)).collect();
        table.extend(news.into_iter().map(|ending| (ending, code.clone())));
    }
    Failures(table)
}

fn ending(key: &str, is_command: bool) -> Option<Ending> {
    Some(match key {
        "timeout" => Ending::Timeout,
        "connection" => Ending::Connection,
        "tool_error" => Ending::ToolError,
        "rpc_error" => Ending::AnyRpcError,
        "1xx" | "2xx" | "3xx" | "4xx" | "5xx" => Ending::StatusClass(key[..1].parse().ok()?),
        _ => match key.strip_prefix("rpc:") {
            Some(code) => Ending::Rpc(code.parse().ok()?),
            None if is_command => Ending::Exit(key.parse().ok()?),
            None => Ending::Status(key.parse().ok().filter(|status| (100..=599).contains(status))?),
        },
    })
}

fn signature(draft: &Draft<'_>, findings: &mut Findings) -> Option<Option<SignatureTerms>> {
    let Some(raw) = &draft.raw.source.signature else { return Some(None) };
    let scheme = match (raw.scheme, &raw.header) {
        (Scheme::StandardWebhooks, None) => Signature::StandardWebhooks,
        (Scheme::TimestampedHmac, Some(header)) => {
            Signature::TimestampedHmac { header: header.to_ascii_lowercase().into() }
        }
        (Scheme::StandardWebhooks, Some(_)) => {
            findings.at(
                draft.marked,
                "/source/signature/header",
                "Standard Webhooks fixes its header names",
                "remove header:",
            );
            return None;
        }
        (Scheme::TimestampedHmac, None) => {
            findings.at(
                draft.marked,
                "/source/signature",
                "timestamped_hmac needs the name of its header",
                "add header: x-signature",
            );
            return None;
        }
    };
    let secrets = raw.secrets.iter().map(|name| name.as_str().into()).collect();
    Some(Some(SignatureTerms { scheme, secrets, tolerance_ms: raw.tolerance.0 }))
}
