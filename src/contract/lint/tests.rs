//! One line per way to leave a schema open, and per way to close it.

use super::*;
use serde_json::json;

fn text_at(places: &[&str]) -> BTreeMap<String, TextRule> {
    places.iter().map(|place| ((*place).to_owned(), TextRule { max_chars: 10, emoji: false })).collect()
}

fn lint(schema: &Value, text: &[&str]) -> Vec<(&'static str, String)> {
    lint_schema(schema, &text_at(text)).into_iter().map(|finding| (finding.rule, finding.pointer)).collect()
}

/// Lints a whole schema; expects its findings as rule and pointer.
#[track_caller]
fn check_schema(mut schema: Value, text: &[&str], expect: &[(&str, &str)]) {
    schema["$schema"] = json!(DIALECT);
    let found = lint(&schema, text);
    let found: Vec<(&str, &str)> = found.iter().map(|(rule, pointer)| (*rule, pointer.as_str())).collect();
    assert_eq!(found, expect, "{schema}");
}

/// Lints a property `a` of a closed object; pointers start at the property.
#[track_caller]
fn check(property: Value, expect: &[(&str, &str)]) {
    let schema =
        json!({"$schema": DIALECT, "type": "object", "properties": {"a": property}, "additionalProperties": false});
    let found = lint(&schema, &[]);
    let found: Vec<(&str, &str)> =
        found.iter().map(|(rule, at)| (*rule, at.strip_prefix("/properties/a").unwrap_or(at))).collect();
    assert_eq!(found, expect, "{property}");
}

#[test]
fn the_dialect_is_named_at_the_root() {
    for (schema, expect) in [
        (json!({"const": 1, "$schema": DIALECT}), vec![]),
        (json!({"const": 1}), vec![("dialect", "")]),
        (json!({"const": 1, "$schema": "http://json-schema.org/draft-07/schema#"}), vec![("dialect", "")]),
        (json!({"const": 1, "$schema": format!("{DIALECT}#")}), vec![("dialect", "")]),
        (json!(true), vec![("dialect", ""), ("open", "")]),
        (json!([]), vec![("dialect", ""), ("schema", "")]),
    ] {
        let found = lint(&schema, &[]);
        assert_eq!(found.iter().map(|(rule, at)| (*rule, at.as_str())).collect::<Vec<_>>(), expect, "{schema}");
    }
}

#[test]
fn the_articles_schemas_pass() {
    let envelope = json!({"oneOf": [
        {"title": "Success result", "type": "object", "required": ["tool", "request_id", "outcome", "data"],
         "properties": {
            "tool": {"const": "review_status"},
            "request_id": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.]{7,63}$"},
            "outcome": {"const": "success"},
            "data": {"$ref": "#/$defs/reviewStatus"}},
         "additionalProperties": false},
        {"title": "Failure result", "type": "object", "required": ["tool", "error"],
         "properties": {
            "tool": {"const": "review_status"},
            "error": {"type": "object", "required": ["code", "retryable"],
                "properties": {"code": {"enum": ["NOT_FOUND"]}, "retryable": {"type": "boolean"}},
                "additionalProperties": false}},
         "additionalProperties": false}],
      "$defs": {"reviewStatus": {"type": "object", "required": ["change_id", "reviewed_by"],
        "properties": {
            "change_id": {"type": "string", "pattern": "^CR-[0-9]{1,10}$"},
            "reviewed_by": {"type": "string", "minLength": 1, "maxLength": 128}},
        "additionalProperties": false}}});
    check_schema(envelope.clone(), &["/data/reviewed_by"], &[]);
    check_schema(envelope, &[], &[("text", "/$defs/reviewStatus/properties/reviewed_by")]);
    let identity = json!({"allOf": [
        {"type": "object", "required": ["subject"], "properties": {"subject": {"type": "string", "maxLength": 128}}},
        {"type": "object", "required": ["source"], "properties": {"source": {"enum": ["directory"]}}}],
      "unevaluatedProperties": false});
    check_schema(identity.clone(), &["/subject"], &[]);
    let mut open = identity;
    open.as_object_mut().unwrap().remove("unevaluatedProperties");
    check_schema(open, &["/subject"], &[("closed", "/allOf/0"), ("closed", "/allOf/1")]);
}

#[test]
fn objects_are_closed() {
    check(json!({"type": "object", "properties": {}, "additionalProperties": false}), &[]);
    check(json!({"type": "object", "properties": {}, "unevaluatedProperties": false}), &[]);
    check(json!({"type": "object", "properties": {}}), &[("closed", "")]);
    check(json!({"type": "object"}), &[("closed", "")]);
    check(
        json!({"type": "object", "additionalProperties": true}),
        &[("closed", ""), ("closed", "/additionalProperties")],
    );
    check(
        json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
        &[("closed", ""), ("closed", "/additionalProperties")],
    );
    check(
        json!({"type": "object", "patternProperties": {"^x": {"const": 1}}, "additionalProperties": false}),
        &[("keyword", "/patternProperties")],
    );
    check(
        json!({"type": "object", "properties": {}, "required": ["b"], "additionalProperties": false}),
        &[("closed", "/required")],
    );
    check(
        json!({"type": "object", "allOf": [{"properties": {"b": {"const": 1}}}], "additionalProperties": false}),
        &[("closed", "/additionalProperties")],
    );
    check(
        json!({"$ref": "#/properties/a/$defs/o", "unevaluatedProperties": false,
        "$defs": {"o": {"type": "object", "properties": {"b": {"const": 1}}}}}),
        &[],
    );
}

/// `unevaluatedProperties` admits whatever any branch that applies has declared, conditions included.
#[test]
fn a_branch_cannot_add_an_open_member_to_a_closed_composition() {
    let open = json!({"properties": {"x": {}}});
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let schema = json!({"type": "object", "unevaluatedProperties": false, keyword: [open]});
        check(schema, &[("open", &format!("/{keyword}/0/properties/x"))]);
        let schema = json!({"type": "object", "additionalProperties": false, keyword: [{"properties": {"x": {}}}]});
        let found = if keyword == "allOf" { vec![("closed", "/additionalProperties")] } else { vec![] };
        check(schema, &found);
    }
    for keyword in ["if", "then", "else"] {
        let schema = json!({"type": "object", "unevaluatedProperties": false, keyword: open});
        check(schema, &[("open", &format!("/{keyword}/properties/x"))]);
        let schema = json!({"type": "object", "unevaluatedProperties": false, keyword: {"properties": {"x": true}}});
        check(schema, &[("open", &format!("/{keyword}/properties/x"))]);
        let schema = json!({"type": "object", "additionalProperties": false, keyword: {"properties": {"x": true}}});
        check(schema, &[]);
    }
    let deep = json!({"type": "object", "unevaluatedProperties": false,
        "allOf": [{"if": {"anyOf": [{"$ref": "#/properties/a/$defs/o"}]}}], "$defs": {"o": open}});
    check(deep, &[("open", "/$defs/o/properties/x")]);
}

#[test]
fn branches_may_narrow_what_is_bounded_beside_them() {
    let properties = json!({"s": {"enum": ["on", "off"]}, "n": {"type": "integer", "minimum": 0, "maximum": 9}});
    let when = json!({"properties": {"s": {"const": "on"}}, "required": ["s"]});
    let then = json!({"properties": {"n": {"minimum": 1}}, "required": ["n"]});
    let not = json!({"required": ["n"]});
    for closing in ["additionalProperties", "unevaluatedProperties"] {
        check(
            json!({"type": "object", "properties": properties, "if": when, "then": then, "else": {"not": not}, closing: false}),
            &[],
        );
        check(
            json!({"type": "object", "properties": properties, "allOf": [{"if": when, "then": then}], closing: false}),
            &[],
        );
        check(json!({"type": "object", "properties": properties, "anyOf": [when, {"not": not}], closing: false}), &[]);
    }
    check(
        json!({"type": "string", "pattern": "^[a-z]{1,5}$", "not": {"enum": ["a"]}, "anyOf": [{"maxLength": 3}]}),
        &[],
    );
    check(
        json!({"allOf": [{"type": "object", "properties": properties}], "then": then, "if": when, "unevaluatedProperties": false}),
        &[],
    );
}

#[test]
fn alternatives_each_bound_themselves() {
    check(json!({"oneOf": [{"const": 1}, {"type": "null"}]}), &[]);
    check(json!({"oneOf": [{"const": 1}, {"type": "string"}]}), &[("bounded", "/oneOf/1")]);
    check(json!({"anyOf": [{"const": 1}, {}]}), &[("open", "/anyOf/1")]);
    check(json!({"oneOf": [true, false]}), &[("open", "/oneOf/0")]);
    check(json!({"not": {"const": 1}}), &[("open", "")]);
    check(json!({"if": {"const": 1}, "then": {"const": 1}}), &[("open", "")]);
}

#[test]
fn types_stand_beside_what_speaks_about_them() {
    check(json!({}), &[("open", "")]);
    check(json!(true), &[("open", "")]);
    check(json!(false), &[]);
    check(json!({"maxLength": 5}), &[("type", "/maxLength"), ("open", "")]);
    check(json!({"format": "date-time"}), &[("type", "/format"), ("open", "")]);
    check(json!({"pattern": "^a$"}), &[("type", "/pattern"), ("open", "")]);
    check(json!({"type": "boolean", "maximum": 5}), &[("type", "/maximum")]);
    check(json!({"type": ["boolean", "null"]}), &[]);
    check(json!({"type": ["boolean"]}), &[]);
    check(json!({"type": ["boolean", "integer"], "minimum": 0, "maximum": 1}), &[("type", "/type")]);
    check(json!({"type": ["boolean", "null", "null"]}), &[("type", "/type")]);
    check(json!({"type": "text"}), &[("type", "/type")]);
    check(json!({"enum": ["a"], "maxLength": 1}), &[]);
}

#[test]
fn strings_are_bounded_and_free_text_is_declared() {
    let string = |more: Value| {
        let mut schema = json!({"type": "string"});
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schema
    };
    for (more, expect) in [
        (json!({}), Some("bounded")),
        (json!({"minLength": 1}), Some("bounded")),
        (json!({"enum": ["a"]}), None),
        (json!({"const": "a"}), None),
        (json!({"pattern": "^[a-z]{1,5}$"}), None),
        (json!({"pattern": "^[a-z]+$"}), Some("bounded")),
        (json!({"pattern": "^[a-z]+$", "maxLength": 5}), None),
        (json!({"pattern": "[a-z]{1,5}"}), Some("bounded")),
        (json!({"pattern": "[a-z]", "maxLength": 2000}), Some("text")),
        (json!({"pattern": "^.{1,200}$"}), Some("text")),
        (json!({"pattern": "^[^\\n]{1,200}$"}), Some("text")),
        (json!({"maxLength": 5}), Some("text")),
        (json!({"maxLength": 5.5}), Some("bounded")),
        (json!({"maxLength": "5"}), Some("bounded")),
        (json!({"format": "date-time"}), None),
        (json!({"format": "date-time", "maxLength": 35}), None),
        (json!({"format": "uuid"}), None),
        (json!({"format": "duration"}), Some("bounded")),
        (json!({"format": "duration", "maxLength": 30}), None),
        (json!({"format": "uri", "maxLength": 200}), Some("text")),
        (json!({"format": "regex", "maxLength": 200}), Some("text")),
        (json!({"format": "json-pointer", "maxLength": 200}), Some("text")),
    ] {
        let expect: Vec<(&str, &str)> = expect.map(|rule| (rule, "")).into_iter().collect();
        check(string(more), &expect);
    }
    check(string(json!({"pattern": "^(a$"})), &[("pattern", "/pattern")]);
    check(string(json!({"pattern": "^(?:[a-z]{1,1000}){1000}$"})), &[("pattern", "/pattern")]);
    check(string(json!({"pattern": "^[a-z&&[^b]]{2}$"})), &[("pattern", "/pattern")]);
    check(string(json!({"format": "datetime", "maxLength": 35})), &[("format", "/format"), ("text", "")]);
    check(string(json!({"format": "idn-email", "enum": ["a"]})), &[("format", "/format")]);
}

#[test]
fn declared_text_has_a_length_and_a_place() {
    let object = |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": false});
    let text = json!({"type": "string", "maxLength": 9});
    let list = json!({"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/line"}});
    check_schema(object(json!({"t": text})), &["/t"], &[]);
    check_schema(object(json!({"t": {"type": "string"}})), &["/t"], &[("text", "/properties/t")]);
    check_schema(object(json!({"t/x~": text})), &["/t~1x~0"], &[]);
    let mut nested = object(json!({"l": list, "o": object(json!({"t": text}))}));
    nested["$defs"] = json!({"line": object(json!({"t": text}))});
    check_schema(nested.clone(), &["/l/*/t", "/o/t"], &[]);
    check_schema(nested.clone(), &["/o/t"], &[("text", "/$defs/line/properties/t")]);
    check_schema(nested, &["/l/*/t", "/o/t", "/title"], &[("text", "")]);
}

#[test]
fn lists_and_numbers_are_bounded() {
    let item = json!({"type": "boolean"});
    check(json!({"type": "array", "maxItems": 3, "items": item}), &[]);
    check(json!({"type": "array", "maxItems": 3, "items": false}), &[]);
    check(json!({"type": "array", "items": item}), &[("bounded", "")]);
    check(json!({"type": "array", "maxItems": 3}), &[("open", "")]);
    check(json!({"type": "array", "maxItems": "3", "items": item}), &[("bounded", "")]);
    check(json!({"type": "array", "maxItems": 3, "items": true}), &[("open", "/items")]);
    check(
        json!({"type": "array", "maxItems": 3, "items": item, "prefixItems": [item]}),
        &[("keyword", "/prefixItems")],
    );
    check(json!({"type": "array", "maxItems": 3, "items": item, "contains": item}), &[("keyword", "/contains")]);
    check(json!({"type": "integer", "minimum": 0, "maximum": 9}), &[]);
    check(json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}), &[]);
    check(json!({"type": "integer", "enum": [1, 2]}), &[]);
    check(json!({"type": "integer", "minimum": 0}), &[("bounded", "")]);
    check(json!({"type": "number", "maximum": 1}), &[("bounded", "")]);
    check(json!({"type": "number", "minimum": "0", "maximum": 1}), &[("bounded", "")]);
}

#[test]
fn misspelt_keywords_are_found_with_the_right_spelling() {
    check(json!({"type": "boolean", "titel": "x"}), &[("keyword", "/titel")]);
    check(json!({"type": "string", "maxlength": 5}), &[("keyword", "/maxlength"), ("bounded", "")]);
    let schema = json!({"$schema": DIALECT, "type": "object", "properties": {}, "additionalPropertys": false});
    let findings = lint_schema(&schema, &BTreeMap::new());
    assert!(findings[0].message.contains("did you mean additionalProperties?"), "{findings:?}");
    check(
        json!({"type": "object", "properties": {"enum": {"type": "boolean"}, "x/y": {"a~b": 1}}, "additionalProperties": false}),
        &[("keyword", "/properties/x~1y/a~0b"), ("open", "/properties/x~1y")],
    );
}

#[test]
fn references_stay_in_the_file_and_never_come_back() {
    let refer = |target: &str| json!({"$ref": target});
    check(refer("#/properties/a/$defs/x"), &[("ref", "/$ref")]);
    check(json!({"$ref": "#/properties/a/$defs/x", "$defs": {"x": {"const": 1}}}), &[]);
    for target in ["https://example.com/x.json", "other.json#/x", "urn:x", "", "x"] {
        check(refer(target), &[("ref", "/$ref")]);
    }
    check(json!({"$ref": 5}), &[("ref", "/$ref")]);
    for target in ["#", "#/properties/a", "#name"] {
        check(refer(target), &[("ref", "/$ref")]);
    }
    let mutual = json!({"$ref": "#/properties/a/$defs/x", "$defs": {
        "x": {"$ref": "#/properties/a/$defs/y"}, "y": {"oneOf": [{"const": 1}, {"$ref": "#/properties/a/$defs/x"}]}}});
    check(mutual, &[("ref", "/$defs/y/oneOf/1/$ref")]);
    // A property may be called like a keyword that is not searched for references.
    for name in ["enum", "const", "examples", "default"] {
        let named = json!({"type": "object", "properties": {name: {"$ref": "https://example.com/"}}, "additionalProperties": false});
        check(named, &[("ref", &format!("/properties/{name}/$ref"))]);
    }
    check(json!({"const": {"$ref": "https://example.com/"}}), &[]);
    // The validator decodes %20, and would follow another definition than the one linted here.
    check(
        json!({"$ref": "#/properties/a/$defs/x%20y", "$defs": {"x%20y": {"const": 1}, "x y": {}}}),
        &[("ref", "/$ref")],
    );
    // A definition is linted where it is used, and only a schema can be.
    check(
        json!({"$ref": "#/properties/a/$defs", "$defs": {"x": {"const": 1}}}),
        &[("keyword", "/$defs/x"), ("open", "/$defs")],
    );
    check(json!({"$ref": "#/properties/a/$defs/x/0", "$defs": {"x": [{}]}}), &[("open", "/$defs/x/0")]);
}

/// Below another `$id`, `#/...` starts from there: the validator would not see what is linted.
#[test]
fn nothing_inside_the_schema_moves_its_references() {
    for name in ["$id", "$schema", "$anchor", "$dynamicAnchor", "$dynamicRef"] {
        check(json!({"type": "boolean", name: "urn:x"}), &[("ref", &format!("/{name}"))]);
    }
    check_schema(json!({"$id": "urn:x", "const": 1}), &[], &[]);
    let named = json!({"type": "object", "properties": {"$id": {"type": "boolean"}}, "additionalProperties": false});
    check(named, &[]);
}

#[test]
fn size_depth_and_expansion_are_limited() {
    let objects = |depth: usize| {
        (0..depth).fold(
            json!({"type": "boolean"}),
            |inner, _| json!({"type": "object", "properties": {"a": inner}, "additionalProperties": false}),
        )
    };
    check_schema(objects(8), &[], &[]);
    check_schema(objects(9), &[], &[("depth", &"/properties/a".repeat(9))]);
    let combined = |depth: usize| (0..depth).fold(json!({"const": 1}), |inner, _| json!({"oneOf": [inner]}));
    check(combined(8), &[]);
    check(combined(9), &[("depth", &"/oneOf/0".repeat(9))]);
    assert_eq!(lint(&objects(100), &[])[1].0, "size");
    let wide = json!({"enum": (0..5000).collect::<Vec<_>>()});
    check_schema(wide, &[], &[("size", "")]);
    // References that fork: 8^7 ways through a schema of a hundred lines.
    let fork = |i: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        let properties: Map<String, Value> = (0..8).map(|name| (format!("p{name}"), next.clone())).collect();
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    };
    let mut schema = json!({"$ref": "#/$defs/d0"});
    schema["$defs"] = (0..7).map(|i| (format!("d{i}"), fork(i))).collect::<Map<_, _>>().into();
    schema["$defs"]["d7"] = json!({"const": 1});
    check_schema(schema, &[], &[("size", "")]);
}

#[test]
fn findings_are_limited_and_told_once() {
    let properties: Map<String, Value> = (0..500).map(|i| (format!("p{i}"), json!({}))).collect();
    let schema = json!({"$schema": DIALECT, "type": "object", "properties": properties, "additionalProperties": false});
    assert_eq!(lint(&schema, &[]).len(), 100);
    let twice = json!({"oneOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}], "$defs": {"x": {}}});
    check_schema(twice, &[], &[("open", "/$defs/x")]);
}

#[test]
fn pointers_lead_through_references_and_combinators() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/o"}, "l": {"type": "array", "items": {"$ref": "#/$defs/o"}}, "x/y": {"const": 1}
        },
        "allOf": [{"properties": {"b": {"oneOf": [{"$ref": "#/$defs/o"}, {"const": 1}]}}}],
        "if": {"properties": {"never": {}}},
        "then": {"properties": {"c": {}}},
        "$defs": {"o": {"type": "object", "properties": {"t": {}}}}
    });
    for pointer in ["", "/a", "/a/t", "/l/*/t", "/l/0/t", "/x~1y", "/b/t", "/c"] {
        assert!(pointer_exists(&schema, pointer), "{pointer}");
    }
    for pointer in ["/t", "/a/x", "/l/t", "/x/y", "/never", "/$defs/o", "/a/0"] {
        assert!(!pointer_exists(&schema, pointer), "{pointer}");
    }
}

/// Two ways to each of forty definitions: 2^40 paths, forty places.
#[test]
fn a_pointer_through_forking_references_costs_no_time() {
    let fork = |i: u32| {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        let part = json!({"properties": {"n": next}});
        json!({"allOf": [part, part]})
    };
    let mut schema = json!({"$ref": "#/$defs/d0"});
    schema["$defs"] = (0..40).map(|i| (format!("d{i}"), fork(i))).collect::<Map<_, _>>().into();
    schema["$defs"]["d40"] = json!({"const": 1});
    assert!(pointer_exists(&schema, &"/n".repeat(40)));
    assert!(!pointer_exists(&schema, &"/n".repeat(41)));
}
