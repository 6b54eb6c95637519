//! One flat schema out of several that must all hold.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What becomes of a keyword that two schemas of one place both have.
enum Rule {
    Smaller,
    Larger,
    Either,
    Same,
}

const RULES: [(&str, Rule); 13] = [
    ("maximum", Rule::Smaller),
    ("exclusiveMaximum", Rule::Smaller),
    ("maxLength", Rule::Smaller),
    ("maxItems", Rule::Smaller),
    ("maxProperties", Rule::Smaller),
    ("minimum", Rule::Larger),
    ("exclusiveMinimum", Rule::Larger),
    ("minLength", Rule::Larger),
    ("minItems", Rule::Larger),
    ("minProperties", Rule::Larger),
    ("uniqueItems", Rule::Either),
    ("multipleOf", Rule::Same),
    ("pattern", Rule::Same),
];

/// Keywords that bound a value and that a draft can say.
pub(super) fn is_carried(keyword: &str) -> bool {
    RULES.iter().any(|(known, _)| *known == keyword)
}

/// Keywords that bound a value and that a draft cannot say: the place is left out.
pub(super) const UNSUPPORTED: [&str; 17] = [
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "propertyNames",
    "contains",
    "minContains",
    "maxContains",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
    "contentSchema",
];

/// Keywords that say nothing about which values are valid.
pub(super) const ANNOTATIONS: [&str; 22] = [
    "$schema",
    "$id",
    "id",
    "$comment",
    "$anchor",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "xml",
    "externalDocs",
    "discriminator",
    "contentEncoding",
    "contentMediaType",
    "summary",
    "enumDescriptions",
];

/// Everything that applies to one place, in one schema.
#[derive(Clone, Debug, Default)]
pub(super) struct Flat {
    /// Types without null; none where nothing is said.
    pub types: Option<Vec<String>>,
    /// Whether null is allowed so far.
    pub nullable: bool,
    pub keywords: Map<String, Value>,
    pub format: Option<String>,
    pub listed: Option<Vec<Value>>,
    /// Name, schema and place in the source.
    pub properties: Vec<(String, Value, String)>,
    pub required: BTreeSet<String>,
    /// The only names that a closed schema admits.
    pub admitted: Option<BTreeSet<String>>,
    pub items: Option<(Value, String)>,
    /// The source says nothing about members that it does not name, or admits them.
    pub open: bool,
    /// References that were followed to get here.
    pub refs: Vec<String>,
    /// Keywords that cannot be said.
    pub unsupported: Vec<String>,
    pub ignored: Vec<String>,
    /// Shapes that were not taken.
    pub not_taken: usize,
    /// Of each of these sets a name must stay unnamed, or a shape that was not taken could apply as well.
    pub unnamed: Vec<Vec<String>>,
    /// Patterns of names about which the source says more.
    pub name_patterns: Vec<String>,
}

impl Flat {
    /// Nothing is said yet: everything is allowed.
    pub fn anything() -> Flat {
        Flat { nullable: true, ..Flat::default() }
    }

    pub fn admit_types(&mut self, types: &[String]) {
        self.nullable &= types.iter().any(|kind| kind == "null");
        let given: Vec<String> = types.iter().filter(|kind| *kind != "null").cloned().collect();
        self.types = Some(match self.types.take() {
            None => given,
            Some(known) => common_types(&known, &given),
        });
    }

    pub fn admit_values(&mut self, values: &[Value]) {
        self.nullable &= values.contains(&Value::Null);
        let given = values.iter().filter(|value| !value.is_null()).cloned();
        self.listed = Some(match self.listed.take() {
            None => given.collect(),
            Some(known) => given.filter(|value| known.contains(value)).collect(),
        });
    }

    pub fn carry(&mut self, keyword: &str, value: &Value) {
        let Some((_, rule)) = RULES.iter().find(|(known, _)| *known == keyword) else { return };
        let Some(known) = self.keywords.get(keyword) else {
            self.keywords.insert(keyword.into(), value.clone());
            return;
        };
        let takes_new = match rule {
            Rule::Smaller => value.as_f64() < known.as_f64(),
            Rule::Larger => value.as_f64() > known.as_f64(),
            Rule::Either => value == &json!(true),
            Rule::Same => {
                if known != value {
                    self.unsupported.push(format!("two different {keyword}"));
                }
                false
            }
        };
        if takes_new {
            self.keywords.insert(keyword.into(), value.clone());
        }
    }

    pub fn property(&mut self, name: &str, schema: &Value, at: String) {
        match self.properties.iter_mut().find(|(known, ..)| known == name) {
            Some((_, known, _)) => *known = json!({ "allOf": [known.take(), schema] }),
            None => self.properties.push((name.into(), schema.clone(), at)),
        }
    }

    pub fn item(&mut self, schema: &Value, at: String) {
        self.items = Some(match self.items.take() {
            None => (schema.clone(), at),
            Some((known, at)) => (json!({ "allOf": [known, schema] }), at),
        });
    }

    pub fn close(&mut self, names: BTreeSet<String>) {
        self.admitted = Some(match self.admitted.take() {
            None => names,
            Some(known) => known.intersection(&names).cloned().collect(),
        });
    }

    pub fn admits(&self, name: &str) -> bool {
        self.admitted.as_ref().is_none_or(|names| names.contains(name))
    }

    /// The types that are admitted; none where every type is.
    pub fn admitted_kinds(&self) -> Option<Vec<String>> {
        (self.listed.is_some() || self.types.is_some()).then(|| self.kinds())
    }

    /// Whether a shape that was not taken could apply as well.
    pub fn is_mixed(&self) -> bool {
        let is_named = |name: &String| self.properties.iter().any(|(known, ..)| known == name);
        self.unnamed.iter().any(|names| names.iter().all(is_named))
    }

    /// Whether `patternProperties` speaks about a member that is named. About others it does not matter: none pass.
    pub fn has_patterned_name(&self) -> bool {
        let matches = |pattern: &String| match regex::RegexBuilder::new(pattern).size_limit(1 << 20).build() {
            Ok(regex) => self.properties.iter().any(|(name, ..)| regex.is_match(name)),
            Err(_) => true,
        };
        self.name_patterns.iter().any(matches)
    }

    /// The types that a value will have, as far as it is known.
    pub fn kinds(&self) -> Vec<String> {
        if let Some(listed) = &self.listed {
            let kinds: BTreeSet<&str> = listed.iter().map(type_of).collect();
            return kinds.into_iter().map(str::to_owned).collect();
        }
        match &self.types {
            Some(types) => types.clone(),
            None if !self.properties.is_empty() => vec!["object".into()],
            None if self.items.is_some() => vec!["array".into()],
            None => Vec::new(),
        }
    }
}

fn common_types(known: &[String], given: &[String]) -> Vec<String> {
    let has = |types: &[String], kind: &str| types.iter().any(|known| known == kind);
    let mut common: Vec<String> = known.iter().filter(|kind| has(given, kind)).cloned().collect();
    let narrows = (has(known, "number") && has(given, "integer")) || (has(known, "integer") && has(given, "number"));
    if narrows && !has(&common, "integer") && !has(&common, "number") {
        common.push("integer".into());
    }
    common
}

/// JSON Schema's name of a value's type.
pub(super) fn type_of(value: &Value) -> &'static str {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tighter_of_two_bounds_stands() {
        let mut flat = Flat::anything();
        for (keyword, value) in [("maxLength", 20), ("maxLength", 10), ("minLength", 1), ("minLength", 3)] {
            flat.carry(keyword, &json!(value));
        }
        assert_eq!(flat.keywords["maxLength"], 10);
        assert_eq!(flat.keywords["minLength"], 3);
        flat.carry("pattern", &json!("^a$"));
        flat.carry("pattern", &json!("^b$"));
        assert_eq!(flat.unsupported, ["two different pattern"]);
    }

    #[test]
    fn what_both_admit_is_admitted() {
        let mut flat = Flat::anything();
        flat.admit_types(&["number".into(), "string".into(), "null".into()]);
        assert!(flat.nullable);
        flat.admit_types(&["integer".into()]);
        assert_eq!(flat.types, Some(vec!["integer".to_owned()]));
        assert!(!flat.nullable);
        flat.admit_values(&[json!("a"), json!("b")]);
        flat.admit_values(&[json!("b"), json!("c")]);
        assert_eq!(flat.listed, Some(vec![json!("b")]));
    }
}
