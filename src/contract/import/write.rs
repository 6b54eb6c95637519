//! Writes a sketch down: `contract.yaml` with its guesses marked, and `data.schema.json`.

use super::sketch::Sketch;
use super::{Decision, Part, PartKind, Topic, shown};
use crate::contract::bounds;
use crate::contract::raw::SourceKind;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The default of `limits.result_bytes_max`.
const RESULT_BYTES_DEFAULT: u64 = 8192;
const RESULT_BYTES_MAX: u64 = 1 << 20;
const REQUEST_ID_CHARS: usize = 64;

/// The closed schema of the result's data, as JSON text.
pub fn data_schema(part: &Part) -> String {
    let mut text = serde_json::to_string_pretty(&schema(part)).unwrap_or_default();
    text.push('\n');
    text
}

/// The closed schema of the result's data.
pub fn schema(part: &Part) -> Value {
    let mut members = Map::new();
    members.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    if let Value::Object(own) = subschema(part) {
        members.extend(own);
    }
    Value::Object(members)
}

/// The parts nest as deep as their limits say, not as deep as a source likes.
fn subschema(part: &Part) -> Value {
    let mut members = part.keywords.clone();
    match &part.kind {
        PartKind::Scalar => {}
        PartKind::Array(item) => {
            members.insert("items".into(), subschema(item));
        }
        PartKind::Object(fields) => {
            let required: Vec<&str> = fields.iter().filter(|f| f.required).map(|f| f.name.as_str()).collect();
            if !required.is_empty() {
                members.insert("required".into(), json!(required));
            }
            let properties: Map<String, Value> = fields.iter().map(|f| (f.name.clone(), subschema(&f.part))).collect();
            members.insert("properties".into(), Value::Object(properties));
            members.insert("additionalProperties".into(), json!(false));
        }
    }
    Value::Object(members)
}

/// `contract.yaml` as text.
pub fn contract(sketch: &Sketch) -> String {
    let mut out = String::from("# yaml-language-server: $schema=../../../contract.schema.json\n");
    for line in &sketch.origin {
        let _ = writeln!(out, "# {}", shown(line));
    }
    let _ = writeln!(out, "tool: {}", sketch.tool);
    out.push_str("version: 1\n# TODO(decide): a shadow judges and publishes nothing; say active once it is proven.\nstatus: shadow\n");
    let _ = writeln!(
        out,
        "# TODO(decide): one sentence for people and agents.\nabout: To be decided; what is a result of {} evidence for?",
        sketch.tool
    );
    out.push_str(
        "# TODO(decide): who mends this when the vendor drifts?\nowner: {team: undecided, contact: undecided}\n",
    );
    source(sketch, &mut out);
    limits(sketch, &mut out);
    adapt(sketch, &mut out);
    ties(sketch, &mut out);
    text(sketch, &mut out);
    out
}

fn source(sketch: &Sketch, out: &mut String) {
    let kind = match sketch.kind {
        SourceKind::HttpJson => "http_json",
        SourceKind::Webhook => "webhook",
        SourceKind::Mcp => "mcp",
        SourceKind::CliJson => "cli_json",
        SourceKind::Envelope => "envelope",
        SourceKind::Text => "text",
    };
    let _ = writeln!(out, "source:\n  kind: {kind}");
    if let Some(media_type) = &sketch.media_type {
        let _ = writeln!(out, "  media_types: [{}]", quoted(media_type));
    }
    if let Some(status) = sketch.success.filter(|status| *status != 200) {
        let _ = writeln!(out, "  success: [{status}]");
    }
    out.push_str("  # TODO(decide): failures that the vendor reports under a good status go to errors:.\n");
}

/// The limit that the largest result needs, once everything is bounded.
fn limits(sketch: &Sketch, out: &mut String) {
    let names: Vec<&str> = sketch.fields().iter().map(|field| field.name.as_str()).collect();
    let bound = bounds::bounds(&schema(&sketch.part), &names);
    let whole = bound.map(|b| b.result_bytes_max + bounds::envelope_overhead(&sketch.tool, REQUEST_ID_CHARS));
    match whole {
        Ok(bytes) if bytes <= RESULT_BYTES_DEFAULT => {}
        Ok(bytes) => {
            let _ = writeln!(
                out,
                "# TODO(decide): the largest result has {bytes} bytes; read fewer fields, or bound them tighter.\nlimits: {{result_bytes_max: {}}}",
                bytes.min(RESULT_BYTES_MAX)
            );
        }
        Err(_) => {
            out.push_str("# TODO(decide): a result has at most 8192 bytes; more needs limits: {result_bytes_max: N}.\n")
        }
    }
}

fn adapt(sketch: &Sketch, out: &mut String) {
    out.push_str("# TODO(decide): remove every field that no decision needs, here and in data.schema.json.\nadapt:\n");
    let base = if sketch.is_list { None } else { Some("") };
    for field in sketch.fields() {
        let pointer = base.map_or_else(String::new, |base| format!("{base}/{}", field.name));
        let place = format!("/{}", field.name);
        spec(sketch, field, &pointer, &place, 1, out);
    }
    for decision in sketch.decisions.iter().filter(|decision| decision.topic == Topic::LeftOut) {
        let _ = writeln!(out, "  # TODO(decide): {} is not read: {}", shown(&decision.place), shown(&decision.message));
    }
    for decision in
        sketch.decisions.iter().filter(|d| d.place.is_empty() && d.topic != Topic::LeftOut && d.topic != Topic::Bind)
    {
        comment(decision, 1, out);
    }
}

fn comment(decision: &Decision, depth: usize, out: &mut String) {
    let source = if decision.source.is_empty() { String::new() } else { format!(" (#{})", shown(&decision.source)) };
    let _ = writeln!(out, "{}# TODO(decide): {}{source}", "  ".repeat(depth), shown(&decision.message));
}

/// One entry of the table, and below it those of an object. Pointers start at the document, or at the item of a list.
fn spec(sketch: &Sketch, field: &super::Field, pointer: &str, place: &str, depth: usize, out: &mut String) {
    let own = |decision: &&Decision| decision.topic != Topic::LeftOut && own_place(&decision.place, place);
    sketch.decisions.iter().filter(own).for_each(|decision| comment(decision, depth, out));
    let mut fallback = String::new();
    if !field.required {
        fallback.push_str(", if_missing: omit");
        if field.nullable {
            fallback.push_str(", if_null: omit");
        }
    }
    let pad = "  ".repeat(depth);
    let name = key(&field.name);
    match &field.part.kind {
        PartKind::Scalar => {
            let _ = writeln!(out, "{pad}{name}: {}", scalar(&field.part, pointer, &fallback));
        }
        PartKind::Object(_) => {
            let _ = writeln!(out, "{pad}{name}:\n{pad}  fields:");
            members(sketch, &field.part, pointer, place, depth + 2, out);
        }
        PartKind::Array(item) => {
            let _ = writeln!(out, "{pad}{name}:\n{pad}  each: {}", quoted(pointer));
            for line in fallback.split(", ").filter(|line| !line.is_empty()) {
                let _ = writeln!(out, "{pad}  {line}");
            }
            items(sketch, item, &format!("{place}/*"), depth + 1, out);
        }
    }
}

fn items(sketch: &Sketch, item: &Part, place: &str, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    match &item.kind {
        PartKind::Scalar => {
            let _ = writeln!(out, "{pad}item: {}", scalar(item, "", ""));
        }
        PartKind::Object(_) => {
            let _ = writeln!(out, "{pad}fields:");
            members(sketch, item, "", place, depth + 1, out);
        }
        PartKind::Array(inner) => {
            let _ = writeln!(out, "{pad}item:\n{pad}  each: \"\"");
            items(sketch, inner, &format!("{place}/*"), depth + 1, out);
        }
    }
}

fn members(sketch: &Sketch, part: &Part, pointer: &str, place: &str, depth: usize, out: &mut String) {
    let PartKind::Object(fields) = &part.kind else { return };
    for field in fields {
        let below = format!("{pointer}/{}", field.name);
        spec(sketch, field, &below, &format!("{place}/{}", field.name), depth, out);
    }
}

/// The place itself, or the items of a list there, which have no entry of their own.
fn own_place(decided: &str, place: &str) -> bool {
    decided.strip_prefix(place).is_some_and(|rest| rest.split('/').skip(1).all(|token| token == "*"))
        && decided.get(place.len()..).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn scalar(part: &Part, pointer: &str, fallback: &str) -> String {
    let convert = part.convert.map(|name| format!(", as: {name}")).unwrap_or_default();
    format!("{{from: {}{convert}{fallback}}}", quoted(pointer))
}

fn ties(sketch: &Sketch, out: &mut String) {
    if sketch.bind.is_empty() {
        for decision in sketch.decisions.iter().filter(|decision| decision.topic == Topic::Bind) {
            comment(decision, 0, out);
        }
    } else {
        out.push_str("bind:\n");
    }
    for bind in &sketch.bind {
        let optional = if bind.optional { ", optional: true" } else { "" };
        let _ = writeln!(out, "  # TODO(decide): guessed, {}.", shown(&bind.why));
        let argument = quoted(&format!("/arguments/{}", super::flat::escape(&bind.argument)));
        let _ = writeln!(out, "  - {{data: {}, equals: {argument}{optional}}}", quoted(&bind.data));
    }
    match &sketch.fresh {
        Some(fresh) => {
            let _ = writeln!(out, "# TODO(decide): guessed, {}. How old may it be?", shown(&fresh.why));
            let _ = writeln!(out, "fresh: {{at: {}, max_age: 5m, max_skew: 30s}}", quoted(&fresh.at));
        }
        None => out.push_str(
            "# TODO(decide): fresh: {at: /..., max_age: 5m} where a field says when the fact was observed.\n",
        ),
    }
}

fn text(sketch: &Sketch, out: &mut String) {
    if sketch.text.is_empty() {
        return;
    }
    out.push_str("# TODO(decide): these fields hold words of strangers; remove those that no decision needs.\ntext:\n");
    for (place, chars) in &sketch.text {
        let name = place.strip_prefix('/').filter(|name| !name.contains('/')).unwrap_or(place);
        let _ = writeln!(out, "  {}: {{max_chars: {chars}}}", key(name));
    }
}

/// A mapping key; words that YAML gives a meaning of their own are quoted.
fn key(name: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    if WORDS.contains(&name.to_ascii_lowercase().as_str()) { format!("\"{name}\"") } else { quoted(name) }
}

/// Text as a YAML scalar in one line: plain where that is safe, else as a JSON string, which YAML reads alike.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '.' | '-' | '~' | '+'));
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_strangers_stays_one_scalar() {
        for (text, expect) in [("/a/b_c", "/a/b_c"), ("", "\"\""), ("/a: {b", "\"/a: {b\""), ("/a\nb", "\"/a\\nb\"")] {
            assert_eq!(quoted(text), expect);
        }
        assert_eq!(key("on"), "\"on\"");
    }

    #[test]
    fn decisions_about_items_stand_at_their_list() {
        assert!(own_place("/tags/*", "/tags") && own_place("/tags", "/tags"));
        assert!(!own_place("/tags_more", "/tags") && !own_place("/tags/*/name", "/tags"));
    }
}
