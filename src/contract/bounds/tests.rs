//! Bounds by hand, and a proof by example: no generated instance outgrows the bound of its schema.

use super::*;
use crate::gate::json::write_node;
use crate::gate::parse::{Limits, Tape};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::json;

/// `{"a":,}` around the value, and the quotation marks of a number that is selected as a string.
/// The comma of a last member is counted and not written.
const AROUND: u64 = 2 + 5 + 2;

#[track_caller]
fn check(property: Value, expect: Result<(u64, u64), &str>) {
    let schema = json!({"type": "object", "properties": {"a": property}, "additionalProperties": false});
    check_schema(&schema, expect.map(|(bytes, chars)| (bytes + AROUND, chars)));
}

#[track_caller]
fn check_schema(schema: &Value, expect: Result<(u64, u64), &str>) {
    let found = bounds(schema, &["a"]).map(|b| (b.result_bytes_max, b.free_text_chars_max)).map_err(|error| error.0);
    assert_eq!(found, expect.map_err(str::to_owned), "{schema}");
}

#[test]
fn each_kind_of_value_has_its_largest_text() {
    check(json!({"const": "abc"}), Ok((5, 0)));
    check(json!({"enum": ["a", "failed", null]}), Ok((8, 0)));
    check(json!({"enum": [10]}), Ok((64, 0)));
    check(json!({"const": {"a": ["x\n"]}}), Ok((19, 0)));
    check(json!({"const": "2026-12-01T12:00:00.1Z"}), Ok((37, 0)));
    check(json!({"type": "boolean"}), Ok((5, 0)));
    check(json!({"type": "number", "minimum": 0, "maximum": 1}), Ok((64, 0)));
    check(json!({"type": "string", "format": "date-time", "maxLength": 5}), Ok((37, 0)));
    check(json!({"type": "string", "format": "uuid"}), Ok((38, 0)));
    check(json!({"type": "string", "pattern": "^[a-z]{1,10}$"}), Ok((12, 0)));
    check(json!({"type": "string", "pattern": "^[a-z]+$", "maxLength": 10}), Ok((42, 0)));
    check(json!({"type": "string", "maxLength": 10}), Ok((42, 10)));
    check(json!({"type": "string", "pattern": "x", "maxLength": 10}), Ok((42, 10)));
    check(json!({"type": "string", "format": "uri", "maxLength": 10}), Ok((42, 10)));
    check(json!({"type": "array", "maxItems": 3, "items": {"type": "boolean"}}), Ok((20, 0)));
    check(json!({"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 2}}), Ok((35, 6)));
    check(json!({"type": ["string", "null"], "maxLength": 1}), Ok((6, 1)));
    check(
        json!({"type": "object", "properties": {"b": {"type": "null"}, "c": false}, "additionalProperties": false}),
        Ok((11, 0)),
    );
}

#[test]
fn integers_are_as_long_as_their_limits() {
    for (minimum, maximum, digits) in [
        (json!(0), json!(999), 3),
        (json!(0), json!(5), 2),
        (json!(-10), json!(5), 3),
        (json!(-5), json!(100), 3),
        (json!(-1000), json!(-1), 5),
        (json!(0), json!(u64::MAX), 20),
        (json!(i64::MIN), json!(0), 20),
        (json!(0), json!(1e16), 17),
        (json!(-0.5), json!(9.5), 2),
    ] {
        check(json!({"type": "integer", "minimum": minimum, "maximum": maximum}), Ok((digits, 0)));
    }
    check(json!({"type": "integer", "minimum": 0}), Ok((64, 0)));
    check(json!({"type": "integer", "exclusiveMinimum": 0, "maximum": 9000, "exclusiveMaximum": 100}), Ok((3, 0)));
}

#[test]
fn alternatives_take_the_largest_and_conjunctions_the_smallest() {
    let long = json!({"type": "string", "pattern": "^b{100}$"});
    check(json!({"oneOf": [{"type": "string", "pattern": "^a$"}, long]}), Ok((102, 0)));
    check(json!({"anyOf": [{"const": "x"}, {"type": "string", "maxLength": 100}]}), Ok((402, 100)));
    check(json!({"allOf": [long, {"type": "string", "maxLength": 4}]}), Ok((18, 0)));
    check(json!({"type": "string", "anyOf": [long, {"const": 1}]}), Ok((102, 0)));
    check(json!({"type": "string", "maxLength": 9, "if": {"const": "a"}, "then": {"maxLength": 1}}), Ok((38, 9)));
}

#[test]
fn members_of_a_composition_are_counted_where_they_are_admitted() {
    let word = |length: u64| json!({"type": "string", "pattern": format!("^x{{{length}}}$")});
    let object = |length: u64| json!({"type": "object", "properties": {"a": word(length)}});
    let close = |mut schema: Value, keyword: &str| {
        schema[keyword] = json!(false);
        schema
    };
    let around = AROUND + 2;
    let all = json!({"allOf": [object(5), object(3)]});
    check_schema(&close(all, "unevaluatedProperties"), Ok((3 + around, 0)));
    let any = json!({"anyOf": [object(5), object(30)]});
    check_schema(&close(any, "unevaluatedProperties"), Ok((30 + around, 0)));
    let one = json!({"oneOf": [close(object(5), "additionalProperties"), close(object(7), "additionalProperties")]});
    check_schema(&one, Ok((7 + around, 0)));
    for condition in ["if", "then", "else"] {
        let mut schema = json!({"type": "object", "unevaluatedProperties": false});
        schema[condition] = object(9);
        check_schema(&schema, Ok((9 + around, 0)));
        schema[condition] = json!({"properties": {"a": true}});
        check_schema(&schema, Err("/a"));
    }
    check_schema(&json!({"type": "object", "anyOf": [object(5)]}), Err("/a"));
}

#[test]
fn what_has_no_bound_is_named() {
    check(json!({"type": "string"}), Err("/a"));
    check(json!({"type": "string", "pattern": "^[a-z]+$"}), Err("/a"));
    check(json!({"type": "array", "items": {"type": "boolean"}}), Err("/a"));
    check(json!({"type": "array", "maxItems": 2, "items": {"type": "string"}}), Err("/a"));
    check(json!({"type": "array", "maxItems": 2}), Err("/a"));
    check(json!({"type": "object", "properties": {}}), Err("/a"));
    check(json!({"type": "object", "additionalProperties": {"type": "null"}}), Err("/a"));
    check(json!({"type": "object", "additionalProperties": false, "patternProperties": {"b": {}}}), Err("/a"));
    check(
        json!({"type": "object", "unevaluatedProperties": false, "allOf": [{"additionalProperties": true}]}),
        Err("/a"),
    );
    check(json!({}), Err("/a"));
    check(json!(true), Err("/a"));
    check_schema(&json!({"type": "object", "properties": {}, "additionalProperties": false}), Err("/a"));
}

#[test]
fn a_cycle_has_no_bound_and_a_fork_costs_no_time() {
    let cycle = json!({
        "type": "object", "properties": {"a": {"$ref": "#/properties/a/items"}, "b": {"$ref": "#"}},
        "additionalProperties": false
    });
    check_schema(&cycle, Err("/a"));
    let mut forking_cycle = json!({"type": "object", "additionalProperties": false});
    forking_cycle["properties"] =
        ["a", "b", "c"].map(|name| (name.to_owned(), json!({"$ref": "#"}))).into_iter().collect();
    check_schema(&forking_cycle, Err("/a"));
    let fork = |i: u32| {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        json!({"type": "object", "properties": {"l": next, "r": next}, "additionalProperties": false})
    };
    let mut schema =
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "additionalProperties": false});
    schema["$defs"] = (0..60).map(|i| (format!("d{i}"), fork(i))).collect::<Map<_, _>>().into();
    schema["$defs"]["d60"] = json!({"type": "null"});
    let found = bounds(&schema, &["a"]).unwrap();
    assert!(found.result_bytes_max > 1 << 60);
}

#[test]
fn huge_bounds_saturate() {
    let nested = (0..10).fold(
        json!({"type": "boolean"}),
        |inner, _| json!({"type": "array", "maxItems": 4_000_000_000u64, "items": inner}),
    );
    let schema = json!({"type": "object", "properties": {"a": nested}});
    assert_eq!(bounds(&schema, &["a"]).unwrap().result_bytes_max, u64::MAX);
}

#[test]
fn the_overhead_is_that_of_the_envelope() {
    let text = r#"{"tool":"ci.job_status","request_id":"abcdefgh","outcome":"success","data":}"#;
    assert_eq!(envelope_overhead("ci.job_status", 8), text.len() as u64);
}

/// A bounded schema: leaves, objects closed in both ways, lists, and all combinators.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"const": "a\"b\\"})),
        Just(json!({"enum": ["x", "lengthy", 7, null]})),
        Just(json!({"type": "boolean"})),
        (-2000i64..2000, 0i64..3000)
            .prop_map(|(low, width)| json!({"type": "integer", "minimum": low, "maximum": low + width})),
        Just(json!({"type": "number", "minimum": -1, "maximum": 1})),
        (1u64..9).prop_map(|most| json!({"type": "string", "maxLength": most})),
        (1u64..9).prop_map(|most| json!({"type": "string", "pattern": format!("^[a-z\"]{{1,{most}}}$")})),
        (1u64..9).prop_map(|most| json!({"type": ["string", "null"], "pattern": format!("^(é|x\\\\){{1,{most}}}$")})),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let properties = prop::collection::btree_map("[ab]|c\"", inner.clone(), 0..3).prop_map(|map| json!(map));
        let open = properties.clone().prop_map(|map| json!({"type": "object", "properties": map}));
        let closed =
            properties.prop_map(|map| json!({"type": "object", "properties": map, "additionalProperties": false}));
        let several = prop::collection::vec(prop_oneof![inner.clone(), closed.clone()], 1..3);
        let parts = prop::collection::vec(open, 1..3);
        let composed = (prop::sample::select(vec!["allOf", "anyOf", "oneOf"]), parts)
            .prop_map(|(keyword, parts)| json!({"type": "object", keyword: parts, "unevaluatedProperties": false}));
        let conditional = (closed.clone(), inner.clone(), inner.clone()).prop_map(|(mut schema, condition, then)| {
            schema["if"] = condition;
            schema["then"] = then;
            schema
        });
        prop_oneof![
            closed,
            composed,
            conditional,
            (0u64..4, inner).prop_map(|(most, items)| json!({"type": "array", "maxItems": most, "items": items})),
            (prop::sample::select(vec!["allOf", "anyOf", "oneOf"]), several)
                .prop_map(|(keyword, several)| json!({keyword: several})),
        ]
    })
}

/// An instance that follows the schema as `dice` say, and prefers what is long.
fn instance(schema: &Value, dice: &mut impl Iterator<Item = u64>) -> Value {
    let mut roll = |sides: usize| (dice.next().unwrap_or(0) % sides.max(1) as u64) as usize;
    for keyword in ["anyOf", "oneOf"] {
        if let Some(branches) = schema.get(keyword).and_then(Value::as_array) {
            return instance(&branches[roll(branches.len())], dice);
        }
    }
    if let Some(branches) = schema.get("allOf").and_then(Value::as_array) {
        let parts: Vec<Value> = branches.iter().map(|branch| instance(branch, dice)).collect();
        let merged: Map<String, Value> =
            parts.iter().filter_map(Value::as_object).flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
        return if merged.is_empty() { parts[0].clone() } else { merged.into() };
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values[roll(values.len())].clone();
    }
    let length = |roll: usize, most: u64| if roll == 0 { 1 } else { most as usize };
    match declared_types(schema.as_object().unwrap()).first().copied() {
        Some("boolean") => json!(false),
        Some("integer") => schema[["minimum", "maximum"][roll(2)]].clone(),
        Some("number") => [json!(-0.1234567890123456), json!(1e-300), json!(1)][roll(3)].clone(),
        Some("string") => match (schema.get("pattern").and_then(Value::as_str), schema["maxLength"].as_u64()) {
            (Some(pattern), _) => {
                let most = pattern.split_once("{1,").map_or(1, |(_, rest)| rest[..1].parse().unwrap());
                let unit = if pattern.contains('é') { ["é", "x\\"][roll(2)] } else { ["\"", "z"][roll(2)] };
                json!(unit.repeat(length(roll(4), most)))
            }
            (None, most) => json!(["\u{1f680}", "\\", "x"][roll(3)].repeat(length(roll(4), most.unwrap_or(1)))),
        },
        Some("array") => {
            let count = length(roll(4), schema["maxItems"].as_u64().unwrap_or(0))
                .min(schema["maxItems"].as_u64().unwrap_or(0) as usize);
            (0..count).map(|_| instance(&schema["items"], dice)).collect()
        }
        Some("object") => {
            let empty = Map::new();
            let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
            properties.iter().map(|(name, schema)| (name.clone(), instance(schema, dice))).collect::<Map<_, _>>().into()
        }
        _ => Value::Null,
    }
}

/// The text that toolgate writes of a value.
fn written(value: &Value) -> String {
    let (mut tape, mut out) = (Tape::default(), String::new());
    let text = value.to_string();
    write_node(tape.parse(text.as_bytes(), &Limits::default()).unwrap().root(), &mut out);
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_valid_instance_is_larger_than_the_bound(property in schemas(), dice in prop::collection::vec(any::<u64>(), 64)) {
        let schema = json!({"type": "object", "properties": {"a": property}, "additionalProperties": false});
        let bound = bounds(&schema, &["a"]).map_err(|error| TestCaseError::fail(format!("{error} in {schema}")))?;
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        for start in 0..8 {
            let mut dice = dice.iter().skip(start).copied().cycle();
            let value = json!({"a": instance(&property, &mut dice)});
            if validator.is_valid(&value) {
                let text = written(&value);
                prop_assert!(text.len() as u64 <= bound.result_bytes_max, "{} > {bound:?}: {text} in {schema}", text.len());
            }
        }
    }
}

/// The property above would hold of a bound that is far too large and of a generator that is never
/// valid: here the longest instance meets the bound to the byte, and most instances are valid.
#[test]
fn the_bound_is_met_and_the_generator_is_not_vacuous() {
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {
        "a": {"type": "array", "maxItems": 2, "items": {"oneOf": [{"type": "string", "maxLength": 3}, {"const": 1}]}}
    }});
    let longest = written(&json!({"a": ["\u{1f680}\u{1f680}\u{1f680}", "\u{1f680}\u{1f680}\u{1f680}"]}));
    // A 64 character number would be longer: the bound of an item is the larger of the two.
    assert_eq!(bounds(&schema, &["a"]).unwrap().result_bytes_max, AROUND + 2 + 2 * 65);
    assert!(longest.len() < 140);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut valid, mut all) = (0, 0);
    for round in 0..300u64 {
        let property = schemas().new_tree(&mut runner).unwrap().current();
        let mut dice = (round..).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32);
        let value = instance(&property, &mut dice);
        valid += u32::from(jsonschema::draft202012::new(&property).unwrap().is_valid(&value));
        all += 1;
    }
    assert!(valid * 2 > all, "{valid} of {all}");
}
