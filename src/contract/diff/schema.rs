//! A data schema as facts: references written out, annotations apart, sets sorted.

use super::facts::Facts;
use crate::contract::shape::escape;
use serde_json::{Map, Number, Value, json};

/// The lint has refused cycles, and nesting deeper than this.
const DEPTH_MAX: usize = 64;

const ANNOTATIONS: [&str; 8] =
    ["title", "description", "$comment", "examples", "default", "deprecated", "readOnly", "writeOnly"];
const IDENTITY: [&str; 3] = ["$schema", "$id", "$defs"];

/// Keywords whose value is one subschema, and those with a list of them.
const ONE: [&str; 7] = ["items", "not", "if", "then", "else", "additionalProperties", "unevaluatedProperties"];
const MANY: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Where wider inside may be narrower outside, or where branches overlap: compared as a whole.
const COMBINED: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// Bounds, by the side on which they stand, and the value that says nothing.
const BOUNDS: [(&str, &str, Option<u64>); 10] = [
    ("maxLength", "schema.max", None),
    ("maxItems", "schema.max", None),
    ("maxProperties", "schema.max", None),
    ("maximum", "schema.max", None),
    ("exclusiveMaximum", "schema.max", None),
    ("minLength", "schema.min", Some(0)),
    ("minItems", "schema.min", Some(0)),
    ("minProperties", "schema.min", Some(0)),
    ("minimum", "schema.min", None),
    ("exclusiveMinimum", "schema.min", None),
];

pub(super) fn facts(root: &Value, at: &str, facts: &mut Facts) {
    let whole = written_out(root, root, 0);
    place(&whole, at, facts);
}

/// The envelope around the data, which is compared on its own.
pub(super) fn envelope(envelope: &Value) -> String {
    let mut envelope = envelope.clone();
    for branch in envelope.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(data) = branch.pointer_mut("/properties/data") {
            *data = Value::Null;
        }
    }
    canonical(&bare(&written_out(&envelope, &envelope, 0)))
}

/// The schema without `$ref`: the target stands in its place, beside what stood there.
fn written_out(schema: &Value, root: &Value, depth: usize) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    if depth > DEPTH_MAX {
        return schema.clone();
    }
    let deeper = |schema: &Value| written_out(schema, root, depth + 1);
    let mut out = Map::new();
    for (name, value) in members.iter().filter(|(name, _)| !IDENTITY.contains(&name.as_str()) && *name != "$ref") {
        let value = match (name.as_str(), value) {
            ("properties", Value::Object(table)) => {
                Value::Object(table.iter().map(|(name, schema)| (name.clone(), deeper(schema))).collect())
            }
            (name, Value::Array(list)) if MANY.contains(&name) => list.iter().map(deeper).collect(),
            (name, one) if ONE.contains(&name) => deeper(one),
            (_, other) => other.clone(),
        };
        out.insert(name.clone(), value);
    }
    let target = members.get("$ref").and_then(Value::as_str).and_then(|text| root.pointer(text.strip_prefix('#')?));
    if let Some(target) = target.map(deeper) {
        add(target, &mut out);
    }
    Value::Object(out)
}

/// Puts a referred schema beside the members that stand with the reference: into them where no
/// keyword is said twice, else under `allOf`, which means the same.
fn add(target: Value, out: &mut Map<String, Value>) {
    let says = |members: &Map<String, Value>| members.keys().any(|name| !ANNOTATIONS.contains(&name.as_str()));
    if says(out) || !target.is_object() {
        match out.get_mut("allOf").and_then(Value::as_array_mut) {
            Some(list) => list.push(target),
            None => drop(out.insert("allOf".into(), Value::Array(vec![target]))),
        }
        return;
    }
    for (name, value) in target.as_object().into_iter().flatten() {
        out.entry(name.clone()).or_insert_with(|| value.clone());
    }
}

fn place(schema: &Value, at: &str, facts: &mut Facts) {
    let Value::Object(members) = schema else {
        return facts.put("schema.combined", format!("{at}/"), canonical(schema));
    };
    let admitted = admitted(members);
    let types = types(members, admitted.as_deref());
    if let Some(types) = types {
        facts.put("schema.type", format!("{at}/type"), types);
    }
    if let Some(values) = admitted {
        facts.put("schema.enum", format!("{at}/enum"), Value::Array(values));
    }
    // Where nothing is composed, both keywords that close an object mean the same.
    let composes = COMBINED.iter().any(|name| members.contains_key(*name));
    for (name, value) in members {
        let name = if name == "unevaluatedProperties" && !composes { "additionalProperties" } else { name };
        keyword(name, value, &format!("{at}/{}", escape(name)), facts);
    }
}

fn keyword(name: &str, value: &Value, at: &str, facts: &mut Facts) {
    if let Some((_, key, nothing)) = BOUNDS.iter().find(|(bound, _, _)| *bound == name) {
        if value.as_u64().is_none() || value.as_u64() != *nothing {
            facts.put(key, at, number(value));
        }
        return;
    }
    match (name, value) {
        ("type" | "enum" | "const", _) => {}
        ("properties", Value::Object(table)) => {
            for (name, schema) in table {
                let at = format!("{at}/{}", escape(name));
                facts.put("schema.property", &at, true);
                place(schema, &at, facts);
            }
        }
        ("required", Value::Array(names)) => {
            for name in names.iter().filter_map(Value::as_str) {
                let at = at.strip_suffix("/required").unwrap_or(at);
                facts.put("schema.required", format!("{at}/properties/{}/required", escape(name)), true);
            }
        }
        ("items", Value::Object(_)) => {
            facts.put("schema.items", at, true);
            place(value, at, facts);
        }
        ("uniqueItems", Value::Bool(false)) => {}
        ("pattern" | "format" | "uniqueItems" | "multipleOf", _) => {
            facts.put(&format!("schema.{name}"), at, number(value));
        }
        ("dependentRequired", _) => facts.put("schema.dependentRequired", at, canonical(&bare_sets(value))),
        ("additionalProperties" | "unevaluatedProperties", _) => facts.put("schema.closed", at, canonical(value)),
        (name, _) if COMBINED.contains(&name) => facts.put("schema.combined", at, combined(value)),
        (name, _) if ANNOTATIONS.contains(&name) => facts.put("schema.annotation", at, canonical(value)),
        (name, _) => facts.put(&format!("schema.unknown.{name}"), at, canonical(value)),
    }
}

/// Branches in any order, each without its annotations.
fn combined(value: &Value) -> String {
    let Value::Array(branches) = value else { return canonical(&bare(value)) };
    let mut texts: Vec<String> = branches.iter().map(|branch| canonical(&bare(branch))).collect();
    texts.sort();
    texts.join(" ")
}

/// The values that `enum` and `const` leave, as a sorted set; `None` where neither is there. What
/// `type` does not admit anyway is left out.
fn admitted(members: &Map<String, Value>) -> Option<Vec<Value>> {
    let mut values: Vec<Value> = match (members.get("enum").and_then(Value::as_array), members.get("const")) {
        (Some(list), None) => list.clone(),
        (None, Some(one)) => vec![one.clone()],
        (Some(list), Some(one)) => list.iter().filter(|value| *value == one).cloned().collect(),
        (None, None) => return None,
    };
    if let Some(types) = declared_types(members) {
        values.retain(|value| types.contains(&type_of(value)) || (value.is_i64() && types.contains(&"number")));
    }
    let mut values: Vec<Value> = values.iter().map(number).collect();
    values.sort_by_cached_key(canonical);
    values.dedup();
    Some(values)
}

fn declared_types(members: &Map<String, Value>) -> Option<Vec<&str>> {
    match members.get("type")? {
        Value::String(one) => Some(vec![one]),
        Value::Array(list) => Some(list.iter().filter_map(Value::as_str).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// The set of types: those of the values where there are some. An integer is a number, too.
fn types(members: &Map<String, Value>, admitted: Option<&[Value]>) -> Option<Value> {
    let mut types: Vec<&str> = match admitted {
        Some(values) => values.iter().map(type_of).collect(),
        None => declared_types(members)?,
    };
    if types.contains(&"number") {
        types.push("integer");
    }
    types.sort_unstable();
    types.dedup();
    Some(json!(types))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A schema without annotations, its sets sorted: what a branch of a combinator is compared by.
fn bare(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let admitted = admitted(members);
    let mut out = Map::new();
    if let Some(types) = types(members, admitted.as_deref()) {
        out.insert("type".into(), types);
    }
    if let Some(values) = admitted {
        out.insert("enum".into(), Value::Array(values));
    }
    for (name, value) in members {
        let value = match (name.as_str(), value) {
            ("type" | "enum" | "const", _) => continue,
            (name, _) if ANNOTATIONS.contains(&name) => continue,
            ("properties", Value::Object(table)) => {
                Value::Object(table.iter().map(|(name, schema)| (name.clone(), bare(schema))).collect())
            }
            (name, list @ Value::Array(_)) if MANY.contains(&name) => Value::String(combined(list)),
            (name, one) if ONE.contains(&name) => bare(one),
            ("required", Value::Array(_)) => sorted(value),
            (_, other) => other.clone(),
        };
        out.insert(name.clone(), value);
    }
    Value::Object(out)
}

fn bare_sets(value: &Value) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    members.iter().map(|(name, list)| (name.clone(), sorted(list))).collect()
}

fn sorted(list: &Value) -> Value {
    let mut list = list.clone();
    sort(Some(&mut list));
    list
}

/// Sorts a list that means a set.
pub(super) fn sort(list: Option<&mut Value>) {
    if let Some(Value::Array(items)) = list {
        items.sort_by_cached_key(canonical);
        items.dedup();
    }
}

/// `1.0` is 1: JSON Schema compares numbers by their value.
fn number(value: &Value) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value.as_f64() {
        Some(float) if value.is_f64() && float.fract() == 0.0 && float.abs() < EXACT => {
            Value::Number(Number::from(float as i64))
        }
        Some(_) | None => value.clone(),
    }
}

/// JSON with sorted members and plain numbers.
pub(super) fn canonical(value: &Value) -> String {
    text_of(value, number)
}

/// JSON with sorted members and each number's own digits, for values that are written to a result.
pub(super) fn exact(value: &Value) -> String {
    text_of(value, Value::clone)
}

/// Contracts are a few levels deep; so is this.
fn text_of(value: &Value, scalar: fn(&Value) -> Value) -> String {
    let canonical = |value: &Value| text_of(value, scalar);
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            let member = |name: &&String| format!("{}:{}", json!(name), canonical(&members[name.as_str()]));
            format!("{{{}}}", names.iter().map(member).collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => scalar(value).to_string(),
    }
}
