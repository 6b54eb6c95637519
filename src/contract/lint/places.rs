//! Where a pointer of the contract leads in the data, seen through `$ref` and the combinators.

use serde_json::Value;
use std::collections::HashSet;

const DEPTH_MAX: usize = 24;

/// All subschemas that apply at this place of the data. `*` stands for any list item.
pub fn schemas_at<'s>(schema: &'s Value, pointer: &str) -> Vec<&'s Value> {
    let mut here = vec![schema];
    for token in pointer.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        let applying = here.iter().flat_map(|part| applying(schema, part));
        here = distinct(applying.filter_map(|part| child(part, &name)));
    }
    distinct(here.iter().flat_map(|part| applying(schema, part)))
}

/// Two ways to one schema are one schema: without this, references that fork double at each token.
fn distinct<'s>(parts: impl Iterator<Item = &'s Value>) -> Vec<&'s Value> {
    let mut seen = HashSet::new();
    parts.filter(|part| seen.insert(std::ptr::from_ref(*part))).collect()
}

fn child<'s>(part: &'s Value, name: &str) -> Option<&'s Value> {
    let is_index = name == "*" || name.bytes().all(|b| b.is_ascii_digit());
    let property = part.get("properties").and_then(|properties| properties.get(name));
    property.or_else(|| part.get("items").filter(|_| is_index))
}

/// The schema itself and what else applies to the same value.
fn applying<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    let mut found: Vec<&Value> = Vec::new();
    let mut pending = vec![(schema, 0)];
    while let Some((part, depth)) = pending.pop() {
        if depth > DEPTH_MAX || found.iter().any(|known| std::ptr::eq(*known, part)) {
            continue;
        }
        found.push(part);
        let target =
            part.get("$ref").and_then(Value::as_str).and_then(|target| root.pointer(target.strip_prefix('#')?));
        pending.extend(target.map(|target| (target, depth + 1)));
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let branches = part.get(keyword).and_then(Value::as_array).into_iter().flatten();
            pending.extend(branches.map(|branch| (branch, depth + 1)));
        }
        pending
            .extend(["then", "else"].iter().filter_map(|keyword| part.get(*keyword)).map(|branch| (branch, depth + 1)));
    }
    found
}

/// Does the pointer lead to a declared place of the data?
pub fn pointer_exists(schema: &Value, pointer: &str) -> bool {
    !schemas_at(schema, pointer).is_empty()
}

/// Names that are required at this place whatever else holds: conditions are left out.
pub fn required_at(schema: &Value, pointer: &str) -> Vec<String> {
    let unconditional = schemas_at(schema, pointer).into_iter().filter(|part| !is_conditional(schema, part));
    let mut names: Vec<String> = unconditional
        .filter_map(|part| part.get("required").and_then(Value::as_array))
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Is this part one of `anyOf`, `oneOf`, `then` or `else`, anywhere in the schema?
fn is_conditional(root: &Value, part: &Value) -> bool {
    let mut pending = vec![root];
    while let Some(value) = pending.pop() {
        let branches = ["anyOf", "oneOf"].iter().filter_map(|keyword| value.get(*keyword)?.as_array()).flatten();
        let mut conditional = branches.chain(["then", "else"].iter().filter_map(|keyword| value.get(*keyword)));
        if conditional.any(|branch| std::ptr::eq(branch, part)) {
            return true;
        }
        match value {
            Value::Object(members) => pending.extend(members.values()),
            Value::Array(items) => pending.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

/// All names that are declared at this place.
pub fn properties_at(schema: &Value, pointer: &str) -> Vec<String> {
    let mut names: Vec<String> = schemas_at(schema, pointer)
        .into_iter()
        .filter_map(|part| part.get("properties").and_then(Value::as_object))
        .flat_map(|properties| properties.keys().cloned())
        .collect();
    names.sort();
    names.dedup();
    names
}
