//! What each kind of value owes: a type, a bound, and names for all that it holds.

use super::keywords::{TYPE_OF, format};
use super::strings::pattern;
use super::walk::{Context, Lint, closed_by};
use super::{declared_types, escape, string_facts};
use serde_json::{Map, Value};

const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

const CLOSE: &str =
    "add \"additionalProperties\": false; in a branch of allOf, \"unevaluatedProperties\": false beside the allOf";

impl<'s> Lint<'s> {
    /// A keyword constrains only values of its own type: without `type` beside it, others pass.
    pub(super) fn types(&mut self, members: &Map<String, Value>, pointer: &str, context: &Context<'s>) {
        let declared = declared_types(members);
        let type_at = format!("{pointer}/type");
        if let Some(unknown) = declared.iter().find(|kind| !TYPES.contains(kind)) {
            self.add("type", &type_at, format!("{unknown} is no type"), "use one of the seven types of JSON Schema");
        }
        if declared.len() > 1 && !(declared.len() == 2 && declared.contains(&"null")) {
            let help = "a list of types may add null to one type; use oneOf for alternatives";
            self.add("type", &type_at, "readers must guess which of these types they have", help);
        }
        // Listed values have their types, and what a reference leads to is held to the same rules.
        let typed_elsewhere = ["const", "enum", "$ref"].iter().any(|keyword| members.contains_key(*keyword));
        for (keyword, wanted) in TYPE_OF.iter().filter(|(keyword, _)| members.contains_key(*keyword)) {
            let agrees = declared.iter().any(|kind| wanted.contains(kind));
            let left_to_others = declared.is_empty() && (typed_elsewhere || !context.bounds());
            if !agrees && !left_to_others {
                let message = format!("{keyword} says nothing about other types");
                self.add("type", &format!("{pointer}/{keyword}"), message, "add the type beside it");
            }
        }
        let composed = ["allOf", "anyOf", "oneOf"].iter().any(|keyword| members.contains_key(*keyword));
        if context.bounds() && declared.is_empty() && !typed_elsewhere && !composed {
            self.add("open", pointer, "this admits every type", "add type, const or enum");
        }
    }

    pub(super) fn object(&mut self, members: &'s Map<String, Value>, pointer: &str, context: &Context<'s>) {
        self.closed(members, pointer, context);
        let Some(properties) = members.get("properties").and_then(Value::as_object) else { return };
        for (name, schema) in properties {
            let token = escape(name);
            let inner = context.below(&token, Some(name));
            self.subschema(schema, &format!("{pointer}/properties/{token}"), &inner);
        }
        let elsewhere = ["allOf", "anyOf", "oneOf", "$ref"].iter().any(|keyword| members.contains_key(*keyword));
        if !context.bounds() || context.closed_outside || elsewhere {
            return;
        }
        let required = members.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str).filter(|name| !properties.contains_key(*name)) {
            let message = format!("{name} is required and not declared");
            self.add("closed", &format!("{pointer}/required"), message, "add it to properties");
        }
    }

    fn closed(&mut self, members: &Map<String, Value>, pointer: &str, context: &Context<'s>) {
        let is_object = declared_types(members).contains(&"object") || members.contains_key("properties");
        let closed_here = closed_by(members, "additionalProperties") || closed_by(members, "unevaluatedProperties");
        let composed = members.contains_key("allOf");
        if is_object && context.bounds() && !closed_here && !context.closed_outside {
            let help = if composed { "add \"unevaluatedProperties\": false" } else { CLOSE };
            self.add("closed", pointer, "the object admits members that nobody has named", help);
        }
        if composed && closed_by(members, "additionalProperties") && adds_properties(members) {
            let message = "additionalProperties does not see the properties of allOf";
            let place = format!("{pointer}/additionalProperties");
            self.add("closed", &place, message, "use \"unevaluatedProperties\": false");
        }
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            if members.contains_key(keyword) && !closed_by(members, keyword) {
                let message = format!("{keyword} other than false is an open map");
                self.add("closed", &format!("{pointer}/{keyword}"), message, "name each member");
            }
        }
    }

    pub(super) fn array(&mut self, members: &'s Map<String, Value>, pointer: &str, context: &Context<'s>) {
        let is_array = declared_types(members).contains(&"array") || members.contains_key("items");
        if is_array && context.bounds() {
            if !is_count(members, "maxItems") {
                self.add("bounded", pointer, "the array has no maxItems", "add maxItems");
            }
            if !members.contains_key("items") {
                self.add("open", pointer, "the array admits items of every kind", "add items");
            }
        }
        if let Some(items) = members.get("items") {
            self.subschema(items, &format!("{pointer}/items"), &context.below("*", None));
        }
    }

    pub(super) fn string(&mut self, members: &Map<String, Value>, pointer: &str, context: &Context<'s>) {
        if let Some(name) = members.get("format").and_then(Value::as_str).filter(|name| format(name).is_none()) {
            let message = format!("{name} is no format that is checked here");
            let help = "an unknown format is ignored in silence; use a pattern";
            self.add("format", &format!("{pointer}/format"), message, help);
        }
        let facts = match string_facts(members) {
            Ok(facts) => facts,
            Err(why) => {
                let help = "patterns use the syntax of the regex crate, without look-around";
                return self.add("pattern", &format!("{pointer}/pattern"), why, help);
            }
        };
        if !declared_types(members).contains(&"string") || !context.bounds() {
            return;
        }
        let listed = members.contains_key("enum") || members.contains_key("const");
        let declared = self.text.contains_key(&context.place);
        if declared {
            self.met_text.insert(context.place.clone());
        }
        if declared && !is_count(members, "maxLength") {
            let help = "add maxLength; text.max_chars should agree with it";
            self.add("text", pointer, "free text has no maxLength", help);
        } else if !listed && facts.chars_max.is_none() {
            let help = "add enum, an anchored pattern of bounded length such as ^[a-z0-9-]{1,63}$, or maxLength";
            self.add("bounded", pointer, "the string has no bound", help);
        } else if !facts.closed && !declared {
            self.add("text", pointer, free_text(members, &context.place), DECLARE_TEXT);
        }
    }

    pub(super) fn number(&mut self, members: &Map<String, Value>, pointer: &str, context: &Context<'s>) {
        let declared = declared_types(members);
        let listed = members.contains_key("enum") || members.contains_key("const");
        let is_number = declared.contains(&"integer") || declared.contains(&"number");
        if !is_number || listed || !context.bounds() {
            return;
        }
        let has =
            |keywords: [&str; 2]| keywords.iter().any(|keyword| members.get(*keyword).is_some_and(Value::is_number));
        if !has(["minimum", "exclusiveMinimum"]) || !has(["maximum", "exclusiveMaximum"]) {
            self.add("bounded", pointer, "the number has no range", "add minimum and maximum");
        }
    }
}

const DECLARE_TEXT: &str =
    "declare it under text: in contract.yaml, or close it by enum, format or a pattern that lists its characters";

/// Says why a string is free text.
fn free_text(members: &Map<String, Value>, place: &str) -> String {
    let anchored = members.get("pattern").and_then(Value::as_str).and_then(|text| pattern(text).ok());
    let why = match anchored {
        Some(pattern) if !pattern.anchored => ": its pattern is not anchored at both ends",
        Some(_) => ": its pattern has room for any sentence",
        None if members.contains_key("format") => ": its format has room for any words",
        None => "",
    };
    format!("{place} is free text and not declared{why}")
}

/// A whole number that is not negative. `"10"` and `10.5` bound nothing.
fn is_count(members: &Map<String, Value>, keyword: &str) -> bool {
    members.get(keyword).is_some_and(Value::is_u64)
}

/// Does a branch of `allOf` declare a property that the schema itself does not?
fn adds_properties(members: &Map<String, Value>) -> bool {
    let own = members.get("properties").and_then(Value::as_object);
    let branches = members.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let names = branches.filter_map(|branch| branch.get("properties")?.as_object()).flat_map(Map::keys);
    let mut added = names.filter(|name| !own.is_some_and(|own| own.contains_key(*name)));
    added.next().is_some()
}
