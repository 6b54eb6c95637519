//! Collects everything that a source says about one place: references, `allOf`, and the branch that was taken.

use super::ImportError;
use super::merge::{ANNOTATIONS, Flat, UNSUPPORTED, is_carried};
use super::tighten::Tightener;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// References and combinators inside one another at one place.
const STEPS_MAX: usize = 24;

impl Tightener<'_> {
    /// Adds what `schema`, which stands at `at`, says to what is known.
    ///
    /// # Errors
    /// A reference that leads out of the document, nowhere, or back to itself.
    pub(super) fn flatten(
        &mut self,
        schema: &Value,
        at: &str,
        flat: &mut Flat,
        steps: usize,
    ) -> Result<(), ImportError> {
        self.visit(at)?;
        if steps > STEPS_MAX {
            let message = format!("more than {STEPS_MAX} references and combinators inside one another");
            return Err(ImportError::new(at, message, "simplify the source, or leave the place out with --without"));
        }
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(true) => return Ok(()),
            Value::Bool(false) => {
                flat.unsupported.push("a schema that admits nothing".into());
                return Ok(());
            }
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(ImportError::new(at, "this is no schema", "a schema is an object"));
            }
        };
        self.reference(members, at, flat, steps)?;
        self.values(members, flat);
        self.object(members, at, flat);
        if let Some(items) = members.get("items") {
            if items.is_array() {
                flat.unsupported.push("items as a list".into());
            } else {
                flat.item(items, format!("{at}/items"));
            }
        }
        for (i, part) in list(members, "allOf").iter().enumerate() {
            if part.get("unevaluatedProperties").is_some_and(|value| value != &Value::Bool(true)) {
                flat.unsupported.push("unevaluatedProperties inside allOf".into());
            }
            self.flatten(part, &format!("{at}/allOf/{i}"), flat, steps + 1)?;
        }
        for keyword in ["anyOf", "oneOf"] {
            if !list(members, keyword).is_empty() {
                self.branch(members, keyword, at, flat, steps)?;
            }
        }
        self.others(members, flat);
        Ok(())
    }

    /// Follows a reference inside the document.
    fn reference(
        &mut self,
        members: &Map<String, Value>,
        at: &str,
        flat: &mut Flat,
        steps: usize,
    ) -> Result<(), ImportError> {
        let Some(reference) = members.get("$ref") else { return Ok(()) };
        let place = format!("{at}/$ref");
        let text = reference.as_str().unwrap_or_default();
        let Some(local) = text.strip_prefix('#') else {
            let help = "copy the definition into the document and refer to it by #/...; nothing is fetched";
            return Err(ImportError::new(&place, "the reference leads out of this document", help));
        };
        let local = percent_decoded(local);
        if !local.is_empty() && !local.starts_with('/') {
            return Err(ImportError::new(
                &place,
                "references by name are not followed",
                "refer by pointer: #/$defs/...",
            ));
        }
        let root = self.root;
        let Some(target) = root.pointer(&local) else {
            let help = "define it in the document, or correct the reference";
            return Err(ImportError::new(&place, "the reference leads nowhere", help));
        };
        if self.following.contains(&local) {
            let here = self.place_shown();
            let message = format!("the schema contains itself: {here} leads back to #{}", super::shown(&local));
            let help = format!("a result has a bounded size; leave the place out: --without {here}");
            return Err(ImportError::new(&place, message, help));
        }
        if flat.refs.contains(&local) {
            return Ok(());
        }
        flat.refs.push(local.clone());
        self.flatten(target, &local, flat, steps + 1)
    }

    fn values(&mut self, members: &Map<String, Value>, flat: &mut Flat) {
        let nullable = members.get("nullable") == Some(&Value::Bool(true));
        match members.get("type") {
            Some(Value::String(kind)) if nullable => flat.admit_types(&[kind.clone(), "null".into()]),
            Some(Value::String(kind)) => flat.admit_types(std::slice::from_ref(kind)),
            Some(Value::Array(kinds)) => {
                let kinds: Vec<String> = kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                flat.admit_types(&kinds);
            }
            Some(_) | None => {}
        }
        if let Some(Value::Array(values)) = members.get("enum") {
            flat.admit_values(values);
        }
        if let Some(value) = members.get("const") {
            flat.admit_values(std::slice::from_ref(value));
        }
        if let Some(format) = members.get("format").and_then(Value::as_str) {
            match &flat.format {
                Some(known) if known != format => flat.unsupported.push("two different formats".into()),
                Some(_) | None => flat.format = Some(format.to_owned()),
            }
        }
        for (keyword, value) in members.iter().filter(|(keyword, _)| is_carried(keyword)) {
            let draft4 = match keyword.as_str() {
                "exclusiveMinimum" => Some("minimum"),
                "exclusiveMaximum" => Some("maximum"),
                _ => None,
            };
            match (draft4, value) {
                // OpenAPI 3.0 says that the other bound is exclusive.
                (Some(bound), Value::Bool(true)) => {
                    if let Some(number) = members.get(bound) {
                        flat.carry(keyword, number);
                    }
                }
                (Some(_), Value::Bool(false)) => {}
                _ => flat.carry(keyword, value),
            }
        }
    }

    fn object(&mut self, members: &Map<String, Value>, at: &str, flat: &mut Flat) {
        let none = Map::new();
        let own = members.get("properties").and_then(Value::as_object).unwrap_or(&none);
        for (name, schema) in own {
            flat.property(name, schema, format!("{at}/properties/{}", escape(name)));
        }
        let writes_only = |name: &&str| own.get(*name).is_some_and(|schema| self.is_write_only(schema));
        let required = list(members, "required").iter().filter_map(Value::as_str);
        flat.required.extend(required.filter(|name| !writes_only(name)).map(str::to_owned));
        match members.get("additionalProperties").or(members.get("unevaluatedProperties")) {
            Some(Value::Bool(false)) => flat.close(own.keys().cloned().collect::<BTreeSet<_>>()),
            // What is demanded of other members is demanded of those that a sibling names, too.
            Some(Value::Object(_)) if !own.is_empty() || !flat.properties.is_empty() => {
                flat.close(own.keys().cloned().collect::<BTreeSet<_>>());
                flat.open = true;
            }
            Some(_) => flat.open = true,
            None if members.contains_key("properties") => flat.open = true,
            None => {}
        }
    }

    /// A property that only requests have (OpenAPI) is none of the response's.
    pub(super) fn is_write_only(&self, schema: &Value) -> bool {
        schema.get("writeOnly") == Some(&Value::Bool(true))
    }

    fn others(&mut self, members: &Map<String, Value>, flat: &mut Flat) {
        let patterns = members.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
        flat.name_patterns.extend(patterns.map(|(pattern, _)| pattern.clone()));
        const KNOWN: [&str; 16] = [
            "patternProperties",
            "$ref",
            "type",
            "nullable",
            "enum",
            "const",
            "format",
            "properties",
            "required",
            "additionalProperties",
            "unevaluatedProperties",
            "items",
            "allOf",
            "anyOf",
            "oneOf",
            "$dynamicAnchor",
        ];
        for keyword in members.keys() {
            if UNSUPPORTED.contains(&keyword.as_str()) {
                flat.unsupported.push(keyword.clone());
            } else if !KNOWN.contains(&keyword.as_str())
                && !ANNOTATIONS.contains(&keyword.as_str())
                && !is_carried(keyword)
                && !keyword.starts_with("x-")
            {
                flat.ignored.push(keyword.clone());
            }
        }
    }
}

pub(super) fn list<'v>(members: &'v Map<String, Value>, keyword: &str) -> &'v [Value] {
    members.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The fragment of a reference as a pointer (RFC 6901, section 6).
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail
            .get(..2)
            .and_then(|two| std::str::from_utf8(two).ok())
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, hex) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::percent_decoded;

    #[test]
    fn references_are_decoded() {
        assert_eq!(percent_decoded("/paths/~1a%7Bb%7D"), "/paths/~1a{b}");
        assert_eq!(percent_decoded("/a%"), "/a%");
    }
}
