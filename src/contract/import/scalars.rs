//! Strings and numbers of a published schema, and what it leaves open about them.

use super::merge::Flat;
use super::tighten::{Tightener, keywords};
use super::{Part, Topic};
use crate::contract::lint::string_facts;
use serde_json::{Map, Value, json};

/// Formats that the lint knows; others bound nothing and are dropped.
const FORMATS: [&str; 16] = [
    "date-time",
    "date",
    "time",
    "duration",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
    "email",
    "uri",
    "uri-reference",
    "iri",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

impl Tightener<'_> {
    pub(super) fn string(&mut self, flat: &Flat, at: &str, place: &str) -> Option<Part> {
        let mut own = keywords([("type", json!("string"))]);
        for keyword in ["minLength", "maxLength", "pattern"] {
            own.extend(flat.keywords.get(keyword).map(|value| (keyword.to_owned(), value.clone())));
        }
        let format = flat.format.as_deref().filter(|name| FORMATS.contains(name));
        if let Some(name) = format {
            own.insert("format".into(), json!(name));
        }
        if format == Some("date-time") {
            if own.contains_key("pattern") || own.contains_key("minLength") {
                return self.leave(place, at, "a time is written anew, in UTC, which its pattern may not admit");
            }
            own.insert("maxLength".into(), json!(35));
            return Some(Part { convert: Some("timestamp"), ..Part::scalar(own) });
        }
        let Ok(facts) = string_facts(&own) else {
            return self.leave(
                place,
                at,
                "its pattern is none that a contract may have (regex syntax without look-around)",
            );
        };
        let (topic, message) = match (facts.chars_max, facts.closed) {
            (None, _) => (
                Topic::StringBound,
                "the source does not bound this string; add enum, an anchored pattern such as ^[a-z0-9-]{1,63}$, or maxLength and text:",
            ),
            (Some(_), false) => (
                Topic::FreeText,
                "whoever wrote this string chose its words; close it by enum or pattern, or declare it under text:",
            ),
            (Some(_), true) => return Some(Part::scalar(own)),
        };
        self.open(&mut own, topic, place, at, message);
        Some(Part::scalar(own))
    }

    pub(super) fn number(&mut self, flat: &Flat, kind: &str, at: &str, place: &str) -> Part {
        let mut own = keywords([("type", json!(kind))]);
        for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
            own.extend(flat.keywords.get(keyword).map(|value| (keyword.to_owned(), value.clone())));
        }
        let has = |own: &Map<String, Value>, names: [&str; 2]| names.iter().any(|name| own.contains_key(*name));
        if kind == "integer" && flat.format.as_deref() == Some("int32") {
            for (names, bound) in [
                (["minimum", "exclusiveMinimum"], i64::from(i32::MIN)),
                (["maximum", "exclusiveMaximum"], i64::from(i32::MAX)),
            ] {
                if !has(&own, names) {
                    own.insert(names[0].into(), json!(bound));
                }
            }
        }
        if !has(&own, ["minimum", "exclusiveMinimum"]) || !has(&own, ["maximum", "exclusiveMaximum"]) {
            self.open(&mut own, Topic::NumberRange, place, at, "the source sets no range; add minimum and maximum");
        }
        Part::scalar(own)
    }
}
