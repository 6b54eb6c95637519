//! From a schema that somebody publishes to the parts of a closed result.

use super::flat::escape;
use super::merge::{Flat, type_of};
use super::{Decision, Field, ImportError, Part, PartKind, Topic, is_field_name, shown};
use crate::contract::lint::string_facts;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Levels of a result; the adapter's table has one more.
const DEPTH_MAX: usize = 5;
/// Members of one object of a result (`$defs/fields` of the contract's schema).
pub(super) const FIELDS_MAX: usize = 64;
/// Listed values of one place.
const VALUES_MAX: usize = 256;
/// Schemas that are met in one import.
const VISITS_MAX: usize = 20_000;

/// What the person asked for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Places of the data to leave out.
    pub without: BTreeSet<String>,
}

pub(super) struct Tightener<'r> {
    pub root: &'r Value,
    pub decisions: Vec<Decision>,
    /// References on the way from the root to here.
    pub following: Vec<String>,
    asked: &'r Asked,
    place: String,
    visits: usize,
}

/// Draws a part from the schema at `at` of a document. Nothing that the part admits is refused by the schema, except
/// for members that were left out although the source requires them; each of these is a decision.
///
/// # Errors
/// The schema says nothing that a result could be made of, or cannot be followed.
pub fn tighten(root: &Value, at: &str, asked: &Asked) -> Result<(Part, Vec<Decision>), ImportError> {
    let Some(schema) = root.pointer(at) else {
        return Err(ImportError::new(at, "there is nothing here", "name a place of the document"));
    };
    let mut tightener =
        Tightener { root, decisions: Vec::new(), following: Vec::new(), asked, place: String::new(), visits: 0 };
    match tightener.part(schema, at, "", 0)? {
        Some((part, _)) => Ok((part, tightener.decisions)),
        None => {
            let why = tightener.decisions.pop().map_or_else(|| "it was left out".into(), |decision| decision.message);
            let help = "start from an example instead: toolgate contract new";
            Err(ImportError::new(at, format!("nothing of this can be drawn tightly: {why}"), help))
        }
    }
}

impl Tightener<'_> {
    pub(super) fn visit(&mut self, at: &str) -> Result<(), ImportError> {
        self.visits += 1;
        if self.visits <= VISITS_MAX {
            return Ok(());
        }
        let message = format!("the schema expands to more than {VISITS_MAX} parts");
        Err(ImportError::new(at, message, "leave large members out with --without"))
    }

    pub(super) fn place_shown(&self) -> String {
        shown(&self.place)
    }

    fn decide(&mut self, topic: Topic, place: &str, source: &str, message: impl Into<String>) {
        self.decisions.push(Decision { topic, place: place.into(), source: source.into(), message: message.into() });
    }

    /// What is left out as a whole has no open questions inside.
    fn forget_inside(&mut self, place: &str) {
        let below = format!("{place}/");
        self.decisions.retain(|decision| decision.place != place && !decision.place.starts_with(&below));
    }

    fn left_out<T>(&mut self, place: &str, at: &str, why: impl Into<String>) -> Option<T> {
        self.decide(Topic::LeftOut, place, at, why);
        None
    }

    /// The part, and whether the source allows null for it; nothing where it is left out.
    fn part(
        &mut self,
        schema: &Value,
        at: &str,
        place: &str,
        depth: usize,
    ) -> Result<Option<(Part, bool)>, ImportError> {
        if self.asked.without.contains(place) {
            return Ok(self.left_out(place, at, "left out by --without"));
        }
        self.place = place.to_owned();
        let mut flat = Flat::anything();
        self.flatten(schema, at, &mut flat, 0)?;
        if flat.is_mixed() {
            flat.unsupported.push("oneOf whose branches share values".into());
        }
        if flat.has_patterned_name() {
            flat.unsupported.push("patternProperties about a named member".into());
        }
        for keyword in std::mem::take(&mut flat.ignored) {
            self.decide(Topic::Ignored, place, at, format!("{} is no keyword; it was ignored", shown(&keyword)));
        }
        if let Some(keyword) = flat.unsupported.first() {
            let why = format!("{} cannot be said in a contract", shown(keyword));
            return Ok(self.left_out(place, at, why));
        }
        if flat.not_taken > 0 {
            let why =
                format!("the first shape that stands for itself was taken; {} others are refused", flat.not_taken);
            self.decide(
                Topic::Alternatives,
                place,
                at,
                format!("{why}; add a shape: to adapt for each one that comes"),
            );
        }
        let followed = self.following.len();
        self.following.append(&mut flat.refs.clone());
        let part = self.by_kind(&flat, at, place, depth);
        self.following.truncate(followed);
        // OpenAPI 3.0 says nullable beside a reference or anyOf, too.
        let nullable = flat.nullable || schema.get("nullable") == Some(&Value::Bool(true));
        Ok(part?.map(|part| (part, nullable)))
    }

    fn by_kind(&mut self, flat: &Flat, at: &str, place: &str, depth: usize) -> Result<Option<Part>, ImportError> {
        let kinds = flat.kinds();
        let Some(kind) = kinds.first().map(String::as_str) else {
            return Ok(self.left_out(place, at, "the source admits every type here"));
        };
        if kinds.len() > 1 && flat.listed.is_none() {
            let message = format!("{kind} was taken of several types; the others are refused");
            self.decide(Topic::Alternatives, place, at, message);
        }
        match kind {
            "object" if flat.listed.is_none() => self.members(flat, at, place, depth),
            "array" if flat.listed.is_none() => self.list(flat, at, place, depth),
            _ if flat.listed.is_some() => Ok(self.listed(flat, at, place)),
            "string" => Ok(self.string(flat, at, place)),
            "integer" | "number" => Ok(Some(self.number(flat, kind, at, place))),
            "boolean" => Ok(Some(Part::scalar(keywords([("type", json!("boolean"))])))),
            _ => Ok(self.left_out(place, at, "this type says nothing")),
        }
    }

    fn members(&mut self, flat: &Flat, at: &str, place: &str, depth: usize) -> Result<Option<Part>, ImportError> {
        if depth >= DEPTH_MAX {
            return Ok(self.left_out(
                place,
                at,
                format!("it nests deeper than {DEPTH_MAX} levels; take single fields of it"),
            ));
        }
        if flat.properties.is_empty() {
            return Ok(self.left_out(place, at, "an object whose members the source does not name"));
        }
        let mut fields = Vec::new();
        for (name, schema, source) in &flat.properties {
            if !flat.admits(name) || self.is_write_only(schema) {
                continue;
            }
            let inner = format!("{place}/{}", escape(name));
            if !is_field_name(name) || fields.len() == FIELDS_MAX {
                let _: Option<()> =
                    self.left_out(&inner, source, "no field of a result can have this name, or there are more than 64");
                continue;
            }
            let required = flat.required.contains(name);
            if let Some((part, nullable)) = self.part(schema, source, &inner, depth + 1)? {
                fields.extend(self.field(name, part, required, nullable, &inner, source));
            }
        }
        for name in flat.required.iter().filter(|name| !flat.properties.iter().any(|(known, ..)| known == *name)) {
            let _: Option<()> = self.left_out(
                &format!("{place}/{}", escape(name)),
                at,
                "required by the source, which does not say what it is",
            );
        }
        if flat.open {
            self.decide(Topic::Closed, place, at, "members that the source does not name do not pass");
        }
        if fields.is_empty() {
            self.forget_inside(place);
            return Ok(self.left_out(place, at, "none of its members can be drawn"));
        }
        let bounds = ["minProperties", "maxProperties"]
            .into_iter()
            .filter_map(|keyword| Some((keyword, flat.keywords.get(keyword)?.clone())));
        let mut own = keywords([("type", json!("object"))]);
        own.extend(bounds.map(|(keyword, value)| (keyword.to_owned(), value)));
        Ok(Some(Part { kind: PartKind::Object(fields), keywords: own, convert: None }))
    }

    /// A member of an object, unless its absence could not be said.
    fn field(
        &mut self,
        name: &str,
        part: Part,
        required: bool,
        nullable: bool,
        place: &str,
        at: &str,
    ) -> Option<Field> {
        if !required && matches!(part.kind, PartKind::Object(_)) {
            self.forget_inside(place);
            let why = "an optional object cannot be omitted as a whole; take single fields of it with if_missing: omit";
            return self.left_out(place, at, why);
        }
        if required && nullable {
            self.decide(
                Topic::Null,
                place,
                at,
                "the source allows null here; it refuses until the table says what null means",
            );
        }
        Some(Field { name: name.into(), required, nullable, part })
    }

    fn list(&mut self, flat: &Flat, at: &str, place: &str, depth: usize) -> Result<Option<Part>, ImportError> {
        let Some((items, source)) = &flat.items else {
            return Ok(self.left_out(place, at, "a list whose items the source does not describe"));
        };
        if depth >= DEPTH_MAX {
            return Ok(self.left_out(place, at, format!("it nests deeper than {DEPTH_MAX} levels")));
        }
        let Some((item, _)) = self.part(items, source, &format!("{place}/*"), depth + 1)? else {
            let why =
                format!("its items cannot be drawn: {}", self.decisions.pop().map_or_else(String::new, |d| d.message));
            self.forget_inside(place);
            return Ok(self.left_out(place, at, why));
        };
        let mut own = keywords([("type", json!("array"))]);
        for keyword in ["minItems", "maxItems", "uniqueItems"] {
            own.extend(flat.keywords.get(keyword).map(|value| (keyword.to_owned(), value.clone())));
        }
        if !own.contains_key("maxItems") {
            own.insert("$comment".into(), json!("TODO(decide): the source sets no limit; add maxItems"));
            self.decide(Topic::ArrayBound, place, at, "the list has no limit; add maxItems");
        }
        Ok(Some(Part { kind: PartKind::Array(Box::new(item)), keywords: own, convert: None }))
    }

    fn listed(&mut self, flat: &Flat, at: &str, place: &str) -> Option<Part> {
        let typed = |value: &&Value| {
            let kind = type_of(value);
            let wide = kind == "integer" && flat.types.iter().flatten().any(|known| known == "number");
            flat.types.as_ref().is_none_or(|types| wide || types.iter().any(|known| known == kind))
        };
        let values: Vec<Value> = flat.listed.iter().flatten().filter(typed).cloned().collect();
        let scalar = |value: &Value| !value.is_object() && !value.is_array();
        if values.is_empty() || values.len() > VALUES_MAX || !values.iter().all(scalar) {
            let why = format!("its list of values is empty, longer than {VALUES_MAX}, or holds objects");
            return self.left_out(place, at, why);
        }
        let mut own = keywords([("enum", json!(values))]);
        own.extend(flat.keywords.clone());
        if string_facts(&own).is_err() {
            return self.left_out(place, at, "listed values with a pattern that a contract cannot have");
        }
        Some(Part::scalar(own))
    }

    /// Adds a decision beside the keywords that it is about.
    pub(super) fn open(&mut self, own: &mut Map<String, Value>, topic: Topic, place: &str, at: &str, message: &str) {
        own.insert("$comment".into(), json!(format!("TODO(decide): {message}")));
        self.decide(topic, place, at, message);
    }

    pub(super) fn leave(&mut self, place: &str, at: &str, why: &str) -> Option<Part> {
        self.left_out(place, at, why)
    }
}

impl Part {
    pub(super) fn scalar(keywords: Map<String, Value>) -> Part {
        Part { kind: PartKind::Scalar, keywords, convert: None }
    }
}

pub(super) fn keywords<const N: usize>(list: [(&str, Value); N]) -> Map<String, Value> {
    list.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)).collect()
}
