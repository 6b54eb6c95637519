//! A contract as facts: one for each thing that can be decided otherwise, by its place.
//!
//! What is written in two ways and means the same is one fact: defaults are filled in from the
//! compiled contract, durations are milliseconds, lists that mean sets are taken apart, and what has a
//! name of its own (a rule's expression, a binding) is found by that, not by its position.

use super::{Side, schema};
use crate::contract::raw::Millis;
use crate::contract::shape::escape;
use crate::gate::admit::{Ending, Failures};
use crate::gate::refusal::FailureCode;
use crate::gate::select::{Member, Shape};
use crate::gate::signature::Signature;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How a fact differs. Raised and lowered are for numbers, widened and narrowed for sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Added,
    Removed,
    Raised,
    Lowered,
    Widened,
    Narrowed,
    Changed,
}

impl Turn {
    pub fn name(self) -> &'static str {
        match self {
            Turn::Added => "added",
            Turn::Removed => "removed",
            Turn::Raised => "raised",
            Turn::Lowered => "lowered",
            Turn::Widened => "widened",
            Turn::Narrowed => "narrowed",
            Turn::Changed => "changed",
        }
    }
}

/// Facts by place; each with its key in the table of rules.
#[derive(Debug, Default)]
pub(super) struct Facts(BTreeMap<String, (String, Value)>);

impl Facts {
    pub(super) fn put(&mut self, key: &str, at: impl Into<String>, value: impl Into<Value>) {
        self.0.insert(at.into(), (key.to_owned(), value.into()));
    }
}

#[derive(Debug)]
pub(super) struct Difference {
    pub key: String,
    pub at: String,
    pub turn: Turn,
}

/// A fact that came or went takes those below it along: they are no news of their own.
const CONTAINERS: [&str; 10] = [
    "adapt.shape",
    "adapt.field",
    "adapt.item",
    "schema.property",
    "schema.items",
    "source.signature",
    "retry",
    "fresh",
    "codes",
    "text",
];

pub(super) fn differences(old: &Facts, new: &Facts) -> Vec<Difference> {
    let places: BTreeSet<&String> = old.0.keys().chain(new.0.keys()).collect();
    let mut found: Vec<Difference> = Vec::new();
    let mut whole: Vec<String> = Vec::new();
    for at in places {
        let (before, after) = (old.0.get(at), new.0.get(at));
        let Some((key, turn)) = turn(before, after) else { continue };
        if whole.iter().any(|prefix| at.starts_with(prefix)) {
            continue;
        }
        if CONTAINERS.contains(&key.as_str()) && matches!(turn, Turn::Added | Turn::Removed) {
            whole.push(format!("{at}/"));
        }
        found.push(Difference { key, at: at.clone(), turn });
    }
    found
}

fn turn(before: Option<&(String, Value)>, after: Option<&(String, Value)>) -> Option<(String, Turn)> {
    match (before, after) {
        (Some((key, old)), Some((_, new))) if old != new => Some((key.clone(), moved(old, new))),
        (Some((key, _)), None) => Some((key.clone(), Turn::Removed)),
        (None, Some((key, _))) => Some((key.clone(), Turn::Added)),
        (Some(_), Some(_)) | (None, None) => None,
    }
}

fn moved(old: &Value, new: &Value) -> Turn {
    if let (Some(old), Some(new)) = (old.as_f64(), new.as_f64()) {
        return if new > old { Turn::Raised } else { Turn::Lowered };
    }
    let (Some(old), Some(new)) = (old.as_array(), new.as_array()) else { return Turn::Changed };
    let within = |inner: &[Value], outer: &[Value]| inner.iter().all(|value| outer.contains(value));
    match (within(old, new), within(new, old)) {
        (true, false) => Turn::Widened,
        (false, true) => Turn::Narrowed,
        (true, true) | (false, false) => Turn::Changed,
    }
}

/// The name of the top-level property that a place of the data schema belongs to.
pub(super) fn top_property(at: &str) -> Option<String> {
    let name = at.strip_prefix("/properties/")?.split('/').next()?;
    Some(name.replace("~1", "/").replace("~0", "~"))
}

/// Shapes of the new side that are an old one under another name: new name to old name.
pub(super) fn renamed_shapes(old: &Value, new: &Value) -> BTreeMap<String, String> {
    let (old, new) = (shapes(old), shapes(new));
    let gone = || old.iter().filter(|(name, _)| !new.contains_key(*name));
    let twin = |body: &Value| gone().find(|(_, other)| *other == body).map(|(name, _)| name.clone());
    let come = new.iter().filter(|(name, _)| !old.contains_key(*name));
    come.filter_map(|(name, body)| Some((name.clone(), twin(body)?))).collect()
}

/// The adapter's shapes by name; a plain table is one shape without a name.
fn shapes(file: &Value) -> BTreeMap<String, Value> {
    match file.get("adapt") {
        Some(Value::Array(list)) => list
            .iter()
            .map(|shape| {
                let name = shape.get("shape").and_then(Value::as_str).unwrap_or_default().to_owned();
                let parts = [("when", as_list(shape.get("when"))), ("fields", shape["fields"].clone())];
                (name, Value::Object(parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect()))
            })
            .collect(),
        Some(fields @ Value::Object(_)) => [(String::new(), json!({"when": [], "fields": fields}))].into(),
        Some(_) | None => BTreeMap::new(),
    }
}

fn as_list(value: Option<&Value>) -> Value {
    match value {
        None | Some(Value::Null) => json!([]),
        Some(list @ Value::Array(_)) => list.clone(),
        Some(one) => json!([one]),
    }
}

/// Everything that a contract says. `renames` gives shapes the name that they had.
pub(super) fn of(side: &Side, renames: &BTreeMap<String, String>) -> Facts {
    let mut facts = Facts::default();
    identity(side, &mut facts);
    source(side, &mut facts);
    limits(side, &mut facts);
    for (name, body) in shapes(&side.file) {
        let at = format!("/adapt/{}", escape(renames.get(&name).unwrap_or(&name)));
        facts.put("adapt.shape", &at, true);
        facts.put("adapt.when", format!("{at}/when"), schema::canonical(&body["when"]));
        fields(&body["fields"], &at, &mut facts);
    }
    semantics(side, &mut facts);
    text_and_result(side, &mut facts);
    policy(side, &mut facts);
    leftovers(&side.file, "", &KNOWN, &mut facts);
    leftovers(side.file.get("source").unwrap_or(&Value::Null), "/source", &KNOWN_SOURCE, &mut facts);
    schema::facts(&side.data, "", &mut facts);
    if let Some(envelope) = &side.own_envelope {
        facts.put("envelope", "/envelope", schema::envelope(envelope));
    }
    facts
}

const KNOWN: [&str; 23] = [
    "tool",
    "version",
    "status",
    "about",
    "owner",
    "source",
    "limits",
    "adapt",
    "data",
    "envelope",
    "bound_by",
    "bind",
    "issuer",
    "fresh",
    "rules",
    "text",
    "select",
    "codes",
    "retry",
    "refusal",
    "quarantine",
    "replay",
    "retention",
];
const KNOWN_SOURCE: [&str; 11] = [
    "kind",
    "media_types",
    "success",
    "empty",
    "prefix",
    "byte_order_mark",
    "failures",
    "errors",
    "mcp",
    "signature",
    "text",
];

/// Keys that this file does not know are differences without a rule, so that they count.
fn leftovers(value: &Value, at: &str, known: &[&str], facts: &mut Facts) {
    for (name, value) in value.as_object().into_iter().flatten().filter(|(name, _)| !known.contains(&name.as_str())) {
        facts.put(name, format!("{at}/{}", escape(name)), schema::canonical(value));
    }
}

fn identity(side: &Side, facts: &mut Facts) {
    let contract = &side.contract;
    facts.put("tool", "/tool", contract.tool.as_ref());
    facts.put("status", "/status", format!("{:?}", contract.status));
    facts.put("about", "/about", contract.about.as_str());
    facts.put("owner", "/owner/team", contract.owner.team.as_str());
    facts.put("owner", "/owner/contact", contract.owner.contact.as_str());
}

fn source(side: &Side, facts: &mut Facts) {
    let (terms, raw) = (&side.contract.terms, side.file.get("source").unwrap_or(&Value::Null));
    facts.put("source.kind", "/source/kind", format!("{:?}", terms.kind));
    for name in &terms.media_types {
        facts.put("source.media_types", format!("/source/media_types/{}", escape(&name.to_ascii_lowercase())), true);
    }
    for status in &terms.success {
        facts.put("source.success", format!("/source/success/{status}"), true);
    }
    facts.put("source.empty", "/source/empty", terms.empty_is_success);
    facts.put("source.byte_order_mark", "/source/byte_order_mark", terms.strip_byte_order_mark);
    if let Some(prefix) = raw.get("prefix") {
        facts.put("source.prefix", "/source/prefix", prefix.clone());
    }
    failures(&terms.failures, facts);
    // The first that applies decides, so their order is part of what they say.
    for (i, error) in raw.get("errors").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let mut error = error.clone();
        error["when"] = as_list(error.get("when"));
        facts.put("source.errors", format!("/source/errors/{i}"), schema::canonical(&error));
    }
    let frame = raw.pointer("/mcp/frame").cloned().unwrap_or_else(|| json!("either"));
    facts.put("source.mcp", "/source/mcp/frame", frame);
    if let Some(pattern) = raw.pointer("/text/pattern") {
        facts.put("source.text.pattern", "/source/text/pattern", pattern.clone());
    }
    for (name, counted) in raw.pointer("/text/counts").and_then(Value::as_object).into_iter().flatten() {
        facts.put("source.text.counts", format!("/source/text/counts/{}", escape(name)), counted.clone());
    }
    signature(side, facts);
}

/// The effective table: an entry that says what its class says anyway is none.
fn failures(table: &Failures, facts: &mut Facts) {
    let class_code = |class: Ending| table.0.iter().find(|(ending, _)| *ending == class).map(|(_, code)| code);
    for (ending, code) in &table.0 {
        let (text, class) = match ending {
            Ending::Status(status) => (status.to_string(), Some(Ending::StatusClass(status / 100))),
            Ending::StatusClass(first) => (format!("{first}xx"), None),
            Ending::Exit(code) => (format!("exit {code}"), None),
            Ending::Timeout => ("timeout".into(), None),
            Ending::Connection => ("connection".into(), None),
            Ending::ToolError => ("tool_error".into(), None),
            Ending::AnyRpcError => ("rpc_error".into(), None),
            Ending::Rpc(number) => (format!("rpc:{number}"), Some(Ending::AnyRpcError)),
        };
        if class.and_then(class_code) != Some(code) {
            facts.put("source.failures", format!("/source/failures/{text}"), code.as_str());
        }
    }
}

fn signature(side: &Side, facts: &mut Facts) {
    let Some(terms) = &side.contract.terms.signature else { return };
    let at = "/source/signature";
    facts.put("source.signature", at, true);
    let (scheme, header) = match &terms.scheme {
        Signature::StandardWebhooks => ("standard_webhooks", ""),
        Signature::TimestampedHmac { header } => ("timestamped_hmac", header.as_ref()),
    };
    facts.put("source.signature.scheme", format!("{at}/scheme"), scheme);
    facts.put("source.signature.header", format!("{at}/header"), header);
    facts.put("source.signature.tolerance", format!("{at}/tolerance"), terms.tolerance_ms);
    for name in &terms.secrets {
        facts.put("source.signature.secrets", format!("{at}/secrets/{}", escape(name)), true);
    }
}

fn limits(side: &Side, facts: &mut Facts) {
    let limits = side.contract.grammar.limits;
    let each = [
        ("body_bytes_max", limits.body_bytes_max as u64),
        ("depth_max", limits.depth_max.into()),
        ("members_max", limits.members_max.into()),
        ("items_max", limits.items_max.into()),
        ("string_bytes_max", limits.string_bytes_max.into()),
    ];
    for (name, limit) in each {
        facts.put("limits", format!("/limits/{name}"), limit);
    }
    let result = side.contract.selection.result_bytes_max as u64;
    facts.put("limits.result_bytes_max", "/limits/result_bytes_max", result);
}

fn fields(table: &Value, at: &str, facts: &mut Facts) {
    for (name, spec) in table.as_object().into_iter().flatten() {
        let at = format!("{at}/fields/{}", escape(name));
        facts.put("adapt.field", &at, true);
        field(spec, &at, facts);
    }
}

/// One row of the adapter's table. Rows nest as deep as the contract's own schema lets them.
fn field(spec: &Value, at: &str, facts: &mut Facts) {
    for (name, value) in spec.as_object().into_iter().flatten() {
        let (key, here) = (format!("adapt.{name}"), format!("{at}/{name}"));
        match (name.as_str(), value) {
            ("fields", table) => fields(table, at, facts),
            ("item", item) => {
                facts.put(&key, &here, true);
                field(item, &here, facts);
            }
            ("map" | "replace", Value::Object(words)) => {
                for (word, meaning) in words {
                    facts.put(&key, format!("{here}/{}", escape(word)), schema::exact(meaning));
                }
            }
            ("distinct", Value::Bool(false)) => {}
            ("where", conditions) => facts.put(&key, here, schema::canonical(&as_list(Some(conditions)))),
            (_, value) => facts.put(&key, here, schema::exact(value)),
        }
    }
}

fn semantics(side: &Side, facts: &mut Facts) {
    let file = &side.file;
    let list = |name: &str| as_list(file.get(name)).as_array().cloned().unwrap_or_default();
    facts.put("bound_by", "/bound_by", file.get("bound_by").cloned().unwrap_or_else(|| json!("content")));
    for mut bind in list("bind") {
        if bind.get("optional") == Some(&Value::Bool(false)) {
            bind.as_object_mut().map(|bind| bind.remove("optional"));
        }
        facts.put("bind", format!("/bind/{}", escape(&schema::canonical(&bind))), true);
    }
    if let Some(issuer) = file.get("issuer") {
        let mut issuer = issuer.clone();
        schema::sort(issuer.get_mut("one_of"));
        facts.put("issuer", "/issuer", schema::canonical(&issuer));
    }
    for fresh in list("fresh") {
        let at = format!("/fresh/{}", escape(fresh["at"].as_str().unwrap_or_default()));
        facts.put("fresh", &at, true);
        for name in ["max_age", "max_skew", "not_before_request"] {
            let millis = fresh.get(name).and_then(millis).or((name == "max_skew").then_some(0));
            if let Some(millis) = millis {
                facts.put(&format!("fresh.{name}"), format!("{at}/{name}"), millis);
            }
        }
    }
    for rule in list("rules") {
        let expression = spaced_once(rule["cel"].as_str().unwrap_or_default());
        facts.put("rules", format!("/rules/{}", escape(&expression)), rule["id"].clone());
    }
}

/// A rule's expression without the spaces that mean nothing: outside quotes, one is as good as many.
fn spaced_once(expression: &str) -> String {
    let mut quote = None;
    let mut out = String::new();
    let mut escaped = false;
    for c in expression.trim().chars() {
        match quote {
            Some(mark) if c == mark && !escaped => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            Some(_) | None => {}
        }
        escaped = quote.is_some() && c == '\\' && !escaped;
        if quote.is_some() || !c.is_whitespace() {
            out.push(c);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out
}

fn millis(value: &Value) -> Option<i64> {
    value.as_str().and_then(Millis::parse).map(|millis| millis.0)
}

fn text_and_result(side: &Side, facts: &mut Facts) {
    for (name, rule) in side.file.get("text").and_then(Value::as_object).into_iter().flatten() {
        let at = format!("/text/{}", escape(name.trim_start_matches('/')));
        facts.put("text", &at, true);
        facts.put("text.max_chars", format!("{at}/max_chars"), rule["max_chars"].clone());
        facts.put("text.emoji", format!("{at}/emoji"), rule.get("emoji") == Some(&Value::Bool(true)));
    }
    for selected in &side.contract.selection.members {
        facts.put("select", format!("/select/{}", escape(&selected.member.name)), selected.as_string);
    }
    for code in &side.contract.codes {
        let at = format!("/codes/{}", code.code.as_str());
        // The five common codes are always there; what is told about them may still differ.
        if matches!(code.code, FailureCode::Declared(_)) {
            facts.put("codes", &at, true);
        }
        facts.put("codes.retryable", format!("{at}/retryable"), code.retryable);
        facts.put("codes.about", format!("{at}/about"), code.about.as_str());
    }
}

fn policy(side: &Side, facts: &mut Facts) {
    let policy = &side.contract.policy;
    if let Some(retry) = &policy.retry {
        facts.put("retry", "/retry", true);
        facts.put("retry.attempts_max", "/retry/attempts_max", retry.attempts_max);
        facts.put("retry.budget", "/retry/budget", retry.budget_ms);
        facts.put("retry.backoff", "/retry/backoff/initial", retry.backoff_initial_ms);
        facts.put("retry.backoff", "/retry/backoff/max", retry.backoff_max_ms);
        facts.put("retry.share_max", "/retry/share_max", retry.share_max);
    }
    facts.put("refusal.hold", "/refusal/hold", policy.hold);
    facts.put("quarantine.payload", "/quarantine/payload", format!("{:?}", policy.payload));
    facts.put("quarantine.retention", "/quarantine/retention", policy.quarantine_retention_ms);
    facts.put("replay.deliver_late", "/replay/deliver_late", policy.deliver_late);
    facts.put("replay.window", "/replay/window", policy.replay_window_ms);
    facts.put("retention", "/retention", policy.retention_ms);
}

/// Objects of the result whose common members are written in another order.
pub(super) fn reordered(old: &Side, new: &Side) -> impl Iterator<Item = String> + use<> {
    let top = |side: &Side| -> Map<String, Value> {
        let members = side.contract.selection.members.iter();
        members.map(|selected| (selected.member.name.to_string(), order(&selected.member.shape))).collect()
    };
    let mut places = Vec::new();
    compare_order(&Value::Object(top(old)), &Value::Object(top(new)), "/properties", &mut places);
    places.into_iter()
}

fn order(shape: &Shape) -> Value {
    match shape {
        Shape::Object(members) => {
            let member = |member: &Member| (member.name.to_string(), order(&member.shape));
            Value::Object(members.iter().map(member).collect())
        }
        Shape::Array(item) => json!([order(item)]),
        Shape::Time | Shape::Text(_) | Shape::Scalar => Value::Null,
    }
}

fn compare_order(old: &Value, new: &Value, at: &str, places: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let common = |names: &Map<String, Value>, others: &Map<String, Value>| -> Vec<String> {
                names.keys().filter(|name| others.contains_key(*name)).cloned().collect()
            };
            if common(old, new) != common(new, old) {
                places.push(at.to_owned());
            }
            for (name, value) in old {
                if let Some(other) = new.get(name) {
                    compare_order(value, other, &format!("{at}/{}/properties", escape(name)), places);
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            if let (Some(old), Some(new)) = (old.first(), new.first()) {
                compare_order(old, new, &format!("{}/items/properties", at.trim_end_matches("/properties")), places);
            }
        }
        (_, _) => {}
    }
}
