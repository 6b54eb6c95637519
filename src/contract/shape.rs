//! Derives the declared shape of a result from its data schema: what is walked, checked and written.

use crate::gate::select::{Member, Shape};
use crate::gate::text_safety::TextRule;
use serde_json::Value;
use std::collections::BTreeMap;

/// Schemas nest less than this; the lint has refused cycles and deeper ones.
const DEPTH_MAX: usize = 16;

/// Reads shapes out of one schema document.
pub(super) struct Shapes<'a> {
    pub root: &'a Value,
    /// Declared free text, by pointer into the data.
    pub text: &'a BTreeMap<String, TextRule>,
}

impl Shapes<'_> {
    /// The shape that `schema`, a part of the root, gives to the value at `pointer` of the data.
    pub(super) fn of(&self, schema: &Value, pointer: &str) -> Shape {
        self.of_all(&[schema], pointer, 0)
    }

    /// The shape of a place to which all these schemas apply.
    fn of_all(&self, schemas: &[&Value], pointer: &str, depth: usize) -> Shape {
        if let Some(rule) = self.text.get(pointer) {
            return Shape::Text(*rule);
        }
        let mut parts = Vec::new();
        schemas.iter().for_each(|schema| self.collect(schema, &mut parts, depth));
        let members = merged_properties(&parts);
        if !members.is_empty() && depth < DEPTH_MAX {
            let member = |(name, schemas): (&str, Vec<&Value>)| Member {
                name: name.into(),
                shape: self.of_all(&schemas, &format!("{pointer}/{}", escape(name)), depth + 1),
            };
            return Shape::Object(members.into_iter().map(member).collect());
        }
        let items: Vec<&Value> =
            parts.iter().filter_map(|part| part.get("items")).filter(|items| items.is_object()).collect();
        if !items.is_empty() && depth < DEPTH_MAX {
            return Shape::Array(Box::new(self.of_all(&items, &format!("{pointer}/*"), depth + 1)));
        }
        let is_time = parts.iter().any(|part| part.get("format").and_then(Value::as_str) == Some("date-time"));
        if is_time { Shape::Time } else { Shape::Scalar }
    }

    /// The schema itself and everything that applies to the same place: `$ref`, combinators, conditions.
    fn collect<'s>(&'s self, schema: &'s Value, parts: &mut Vec<&'s Value>, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        parts.push(schema);
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|reference| self.resolve(reference)) {
            self.collect(target, parts, depth + 1);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for branch in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
                self.collect(branch, parts, depth + 1);
            }
        }
        for keyword in ["then", "else"] {
            if let Some(branch) = schema.get(keyword) {
                self.collect(branch, parts, depth + 1);
            }
        }
    }

    fn resolve(&self, reference: &str) -> Option<&Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

/// Each property with every schema that says something about it, in the order of first mention.
fn merged_properties<'s>(parts: &[&'s Value]) -> Vec<(&'s str, Vec<&'s Value>)> {
    let mut merged: Vec<(&str, Vec<&Value>)> = Vec::new();
    for (name, schema) in parts.iter().filter_map(|part| part.get("properties")?.as_object()).flatten() {
        match merged.iter_mut().find(|(known, _)| known == name) {
            Some((_, schemas)) => schemas.push(schema),
            None => merged.push((name, vec![schema])),
        }
    }
    merged
}

pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
