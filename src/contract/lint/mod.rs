//! The load-time lint: a schema that admits more than it says is refused before it judges anything.
//!
//! A validator accepts a misspelt keyword, an unknown format and an open object in silence. Here
//! each is a finding with its pointer and what to do. The walk is over the schema, whose size and
//! depth are bounded first; responses never reach this module.

mod keywords;
mod places;
mod strings;

pub use places::{pointer_exists, properties_at, required_at, schemas_at};
pub use strings::{pattern_bytes_max, pattern_json_bytes_max};

use crate::gate::text_safety::TextRule;
use keywords::{FORMATS, KEYWORDS, TYPE_OF};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Something that a schema must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintFinding {
    pub rule: &'static str,
    /// Pointer into the schema.
    pub pointer: String,
    pub message: String,
    pub help: &'static str,
}

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
const DEPTH_MAX: usize = 24;
const NODES_MAX: usize = 5000;

/// Lints a schema of data, or of a whole envelope. `declared_text` has the places of the data
/// that may hold free text: pointers in which `*` stands for list items.
pub fn lint_schema(schema: &Value, declared_text: &BTreeMap<String, TextRule>) -> Vec<LintFinding> {
    let mut lint = Lint { root: schema, text: declared_text, findings: Vec::new(), nodes: 0, met_text: Vec::new() };
    if schema.get("$schema").and_then(Value::as_str) != Some(DIALECT) {
        lint.add(
            "dialect",
            "",
            "the dialect is not named".into(),
            "add \"$schema\": \"https://json-schema.org/draft/2020-12/schema\"",
        );
    }
    lint.references();
    if lint.findings.iter().all(|finding| finding.rule != "ref") {
        lint.subschema(schema, "", &Context::top());
        lint.unmet_text();
    }
    lint.findings
}

/// What is known about the place of a subschema.
#[derive(Clone)]
struct Context {
    /// Pointer into the data.
    place: String,
    /// A branch that refines a sibling which closes and bounds it.
    refines: bool,
    /// The composition around is closed by `unevaluatedProperties`.
    closed_outside: bool,
    depth: usize,
}

impl Context {
    fn top() -> Context {
        Context { place: String::new(), refines: false, closed_outside: false, depth: 0 }
    }

    fn below(&self, token: &str) -> Context {
        Context {
            place: format!("{}/{token}", self.place),
            refines: self.refines,
            closed_outside: false,
            depth: self.depth + 1,
        }
    }
}

struct Lint<'a> {
    root: &'a Value,
    text: &'a BTreeMap<String, TextRule>,
    findings: Vec<LintFinding>,
    nodes: usize,
    met_text: Vec<String>,
}

impl Lint<'_> {
    fn add(&mut self, rule: &'static str, pointer: &str, message: String, help: &'static str) {
        let finding = LintFinding { rule, pointer: pointer.into(), message, help };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Every `$ref` stays in the file, leads somewhere, and never back to itself.
    fn references(&mut self) {
        let mut pending = vec![(self.root, String::new())];
        while let Some((value, pointer)) = pending.pop() {
            if pointer.matches('/').count() > 2 * DEPTH_MAX || pending.len() > NODES_MAX {
                return self.add(
                    "ref",
                    &pointer,
                    "the schema is too large or too deep".into(),
                    "split the tool or select less",
                );
            }
            match value {
                Value::Object(members) => {
                    if let Some(Value::String(target)) = members.get("$ref") {
                        self.reference(target, &pointer);
                    }
                    let children =
                        members.iter().filter(|(name, _)| !matches!(name.as_str(), "const" | "enum" | "examples"));
                    pending.extend(children.map(|(name, child)| (child, format!("{pointer}/{}", escape(name)))));
                }
                Value::Array(items) => {
                    pending.extend(items.iter().enumerate().map(|(i, child)| (child, format!("{pointer}/{i}"))));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
    }

    fn reference(&mut self, target: &str, pointer: &str) {
        let pointer = format!("{pointer}/$ref");
        match target.strip_prefix('#').map(|local| self.root.pointer(local)) {
            None => self.add(
                "ref",
                &pointer,
                format!("{target} leads out of this file"),
                "copy it into $defs; nothing is fetched",
            ),
            Some(None) => self.add("ref", &pointer, format!("{target} leads nowhere"), "define it under $defs"),
            Some(Some(_)) if places::is_cyclic(self.root, target) => {
                self.add(
                    "ref",
                    &pointer,
                    format!("{target} leads back to itself"),
                    "a result has a bounded size; unroll the recursion",
                );
            }
            Some(Some(_)) => {}
        }
    }

    fn subschema(&mut self, schema: &Value, pointer: &str, context: &Context) {
        self.nodes += 1;
        if context.depth > DEPTH_MAX || self.nodes > NODES_MAX {
            return self.add(
                "depth",
                pointer,
                "the schema is too large or too deep".into(),
                "split the tool or select less",
            );
        }
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(false) => return,
            Value::Bool(true) => {
                return self.add("open", pointer, "true admits everything".into(), "say what is admitted");
            }
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return self.add("schema", pointer, "this is no schema".into(), "a schema is an object");
            }
        };
        self.known_keywords(members, pointer);
        self.types(members, pointer, context);
        self.object(members, pointer, context);
        self.array(members, pointer, context);
        self.string(members, pointer, context);
        self.number(members, pointer, context);
        self.combinators(members, pointer, context);
        if let Some(target) = members.get("$ref").and_then(Value::as_str)
            && let Some(target_schema) = target.strip_prefix('#').and_then(|local| self.root.pointer(local))
        {
            self.subschema(target_schema, &target[1..], &Context { depth: context.depth + 1, ..context.clone() });
        }
    }

    fn known_keywords(&mut self, members: &Map<String, Value>, pointer: &str) {
        for name in members.keys().filter(|name| !KEYWORDS.contains(&name.as_str())) {
            let nearest = keywords::nearest(name);
            let message = match nearest {
                Some(nearest) => format!("{name} is not a keyword here; did you mean {nearest}?"),
                None => format!("{name} is not a keyword here"),
            };
            self.add(
                "keyword",
                &format!("{pointer}/{}", escape(name)),
                message,
                "a validator ignores unknown keywords in silence",
            );
        }
    }

    /// A keyword constrains only values of its own type: without `type` beside it, others pass.
    fn types(&mut self, members: &Map<String, Value>, pointer: &str, context: &Context) {
        let declared = declared_types(members);
        for (keyword, wanted) in TYPE_OF.iter().filter(|(keyword, _)| members.contains_key(*keyword)) {
            let agrees = declared.iter().any(|kind| wanted.contains(kind));
            if agrees
                || (declared.is_empty()
                    && (context.refines || members.contains_key("const") || members.contains_key("enum")))
            {
                continue;
            }
            // The objects of a composition may leave their type to a sibling.
            if declared.is_empty() && matches!(*keyword, "properties" | "required") && members.contains_key("$ref") {
                continue;
            }
            // The article's own envelope bounds request_id by a pattern beside its type; without one it is open.
            self.add(
                "type",
                &format!("{pointer}/{keyword}"),
                format!("{keyword} says nothing about other types"),
                "add the type beside it",
            );
        }
        let says_nothing = declared.is_empty()
            && !context.refines
            && !["const", "enum", "$ref", "allOf", "anyOf", "oneOf"]
                .iter()
                .any(|keyword| members.contains_key(*keyword));
        if says_nothing {
            self.add("open", pointer, "this admits every type".into(), "add type, const or enum");
        }
    }

    fn object(&mut self, members: &Map<String, Value>, pointer: &str, context: &Context) {
        let is_object = declared_types(members).contains(&"object") || members.contains_key("properties");
        let closes = |keyword: &str| members.get(keyword) == Some(&Value::Bool(false));
        let composed = members.contains_key("allOf");
        let is_closed = closes("additionalProperties")
            || closes("unevaluatedProperties")
            || context.closed_outside
            || context.refines;
        if is_object && !is_closed {
            let help =
                if composed { "add \"unevaluatedProperties\": false" } else { "add \"additionalProperties\": false" };
            self.add("closed", pointer, "the object admits members that nobody has named".into(), help);
        }
        if composed && closes("additionalProperties") && adds_properties(members) {
            let message = "additionalProperties does not see the properties of allOf".to_owned();
            self.add(
                "closed",
                &format!("{pointer}/additionalProperties"),
                message,
                "use \"unevaluatedProperties\": false",
            );
        }
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            if members.get(keyword).is_some_and(|value| *value != Value::Bool(false)) {
                let message = format!("{keyword} other than false is an open map");
                self.add("closed", &format!("{pointer}/{keyword}"), message, "name each member");
            }
        }
        if let Some(Value::Object(properties)) = members.get("properties") {
            for (name, schema) in properties {
                let inner = context.below(&escape(name));
                self.subschema(schema, &format!("{pointer}/properties/{}", escape(name)), &inner);
            }
            self.required_is_declared(members, properties, pointer, context);
        }
    }

    fn required_is_declared(
        &mut self,
        members: &Map<String, Value>,
        properties: &Map<String, Value>,
        pointer: &str,
        context: &Context,
    ) {
        if context.refines || members.contains_key("allOf") {
            return;
        }
        let required =
            members.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for name in required.filter(|name| !properties.contains_key(*name)) {
            let message = format!("{name} is required and not declared");
            self.add("closed", &format!("{pointer}/required"), message, "add it to properties");
        }
    }

    fn array(&mut self, members: &Map<String, Value>, pointer: &str, context: &Context) {
        let is_array = declared_types(members).contains(&"array") || members.contains_key("items");
        if is_array && !context.refines {
            if !members.contains_key("maxItems") {
                self.add("bounded", pointer, "the array has no maxItems".into(), "add maxItems");
            }
            if !members.contains_key("items") {
                self.add("open", pointer, "the array admits items of every kind".into(), "add items");
            }
        }
        if let Some(items) = members.get("items") {
            self.subschema(items, &format!("{pointer}/items"), &context.below("*"));
        }
    }

    fn string(&mut self, members: &Map<String, Value>, pointer: &str, context: &Context) {
        if let Some(format) = members.get("format").and_then(Value::as_str)
            && !FORMATS.contains(&format)
        {
            self.add(
                "format",
                &format!("{pointer}/format"),
                format!("{format} is not a format of Draft 2020-12"),
                "an unknown format is ignored in silence",
            );
        }
        let pattern = members.get("pattern").and_then(Value::as_str);
        let bounded_pattern = match pattern.map(strings::pattern_bytes_max) {
            Some(Err(why)) => {
                self.add("pattern", &format!("{pointer}/pattern"), why, "patterns use the syntax of the regex crate");
                true
            }
            Some(Ok(bound)) => bound.is_some(),
            None => false,
        };
        if !declared_types(members).contains(&"string") || context.refines {
            return;
        }
        let max_length = members.contains_key("maxLength");
        let closed =
            ["enum", "const", "format"].iter().any(|keyword| members.contains_key(*keyword)) || bounded_pattern;
        let declared = self.text.contains_key(&context.place);
        if declared {
            self.met_text.push(context.place.clone());
        }
        if declared && !max_length {
            self.add(
                "text",
                pointer,
                "free text has no maxLength".into(),
                "add maxLength; text.max_chars should agree with it",
            );
        } else if !closed && !max_length {
            let help = "add enum, an anchored pattern of bounded length such as ^[a-z0-9-]{1,63}$, or maxLength";
            self.add("bounded", pointer, "the string has no bound".into(), help);
        } else if !closed && !declared && pattern.is_none() {
            let message = format!("{} is free text and not declared", context.place);
            self.add(
                "text",
                pointer,
                message,
                "declare it under text: in contract.yaml, or close it by enum, pattern or format",
            );
        } else if pattern.is_some() && !bounded_pattern && !max_length {
            self.add(
                "bounded",
                pointer,
                "the pattern has no bound".into(),
                "anchor it with ^ and $ and bound its repetitions, or add maxLength",
            );
        }
    }

    fn number(&mut self, members: &Map<String, Value>, pointer: &str, context: &Context) {
        let is_number = declared_types(members).iter().any(|kind| matches!(*kind, "integer" | "number"));
        let is_listed = members.contains_key("enum") || members.contains_key("const");
        if !is_number || is_listed || context.refines {
            return;
        }
        let has =
            |keywords: [&str; 2]| keywords.iter().any(|keyword| members.get(*keyword).is_some_and(Value::is_number));
        if !has(["minimum", "exclusiveMinimum"]) || !has(["maximum", "exclusiveMaximum"]) {
            self.add("bounded", pointer, "the number has no range".into(), "add minimum and maximum");
        }
    }

    fn combinators(&mut self, members: &Map<String, Value>, pointer: &str, context: &Context) {
        let closed = members.get("unevaluatedProperties") == Some(&Value::Bool(false)) || context.closed_outside;
        let has_own =
            members.contains_key("type") || members.contains_key("properties") || members.contains_key("$ref");
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for (i, branch) in members.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate() {
                let refines = context.refines || (has_own && !(keyword == "allOf" && closed));
                let inner = Context { refines, closed_outside: closed, depth: context.depth + 2, ..context.clone() };
                self.subschema(branch, &format!("{pointer}/{keyword}/{i}"), &inner);
            }
        }
        for keyword in ["if", "then", "else", "not"] {
            if let Some(branch) = members.get(keyword) {
                let inner = Context { refines: true, depth: context.depth + 2, ..context.clone() };
                if branch.is_object() {
                    self.subschema(branch, &format!("{pointer}/{keyword}"), &inner);
                }
            }
        }
    }

    /// Declared text that the schema does not have is a typing mistake in the contract.
    fn unmet_text(&mut self) {
        let unmet: Vec<String> = self.text.keys().filter(|place| !self.met_text.contains(place)).cloned().collect();
        for place in unmet {
            self.add(
                "text",
                "",
                format!("text: declares {place}, which is no string of this schema"),
                "correct the name, or remove it",
            );
        }
    }
}

/// Does a branch of `allOf` declare a property that the schema itself does not?
fn adds_properties(members: &Map<String, Value>) -> bool {
    let own = members.get("properties").and_then(Value::as_object);
    let branches = members.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let names = branches.filter_map(|branch| branch.get("properties")?.as_object()).flat_map(Map::keys);
    let mut added = names.filter(|name| !own.is_some_and(|own| own.contains_key(*name)));
    added.next().is_some()
}

/// `type`, as a list.
fn declared_types(members: &Map<String, Value>) -> Vec<&str> {
    match members.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
