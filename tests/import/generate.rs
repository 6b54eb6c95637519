//! Random documents of a closed schema, at its edges and one step beyond.

use regex_syntax::hir::{Hir, HirKind};
use serde_json::{Map, Number, Value, json};

/// A small generator with a fixed start, so that a failure can be seen again.
pub(crate) struct Dice(pub u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides.max(1)
    }

    fn pick<'v, T>(&mut self, values: &'v [T]) -> &'v T {
        &values[self.roll(values.len() as u64) as usize]
    }
}

/// A value of this schema; one in `odd` places has a value that may be none.
pub(crate) fn instance(schema: &Value, dice: &mut Dice, odd: u64) -> Value {
    if odd > 0 && dice.roll(odd) == 0 {
        return dice.pick(&strange()).clone();
    }
    if let Some(values) = schema["enum"].as_array() {
        return dice.pick(values).clone();
    }
    match schema["type"].as_str().unwrap() {
        "boolean" => json!(dice.roll(2) == 0),
        "string" => json!(string(schema, dice)),
        "array" => {
            let least = schema["minItems"].as_u64().unwrap_or(0);
            let most = schema["maxItems"].as_u64().unwrap().min(least + 3);
            (0..least + dice.roll(most - least + 1)).map(|_| instance(&schema["items"], dice, odd)).collect()
        }
        "object" => object(schema, dice, odd),
        kind => number(schema, kind == "integer", dice),
    }
}

fn strange() -> Vec<Value> {
    vec![
        json!(null),
        json!(""),
        json!("x".repeat(200)),
        json!(-7),
        json!(0),
        json!(1e12),
        json!(2.5),
        json!([]),
        json!({}),
        json!(true),
        json!("success"),
    ]
}

fn object(schema: &Value, dice: &mut Dice, odd: u64) -> Value {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut members = Map::new();
    for (name, inner) in schema["properties"].as_object().unwrap() {
        let is_there =
            if required.contains(&name.as_str()) { odd == 0 || dice.roll(odd * 3) > 0 } else { dice.roll(2) == 0 };
        if is_there {
            members.insert(name.clone(), instance(inner, dice, odd));
        }
    }
    Value::Object(members)
}

/// At an edge, beyond it (where that is not exclusive), or between.
fn number(schema: &Value, whole: bool, dice: &mut Dice) -> Value {
    let bound = |names: [&str; 2]| names.iter().find_map(|name| schema[*name].as_f64()).unwrap();
    let (least, most) = (bound(["minimum", "exclusiveMinimum"]), bound(["maximum", "exclusiveMaximum"]));
    let step = schema["multipleOf"].as_f64().unwrap_or(if whole { 1.0 } else { 0.25 });
    let choices = [least, most, least + step, most - step, ((least + most) / 2.0 / step).floor() * step];
    let value = *dice.pick(&choices);
    if whole { json!(value as i64) } else { Value::Number(Number::from_f64(value).unwrap()) }
}

fn string(schema: &Value, dice: &mut Dice) -> String {
    if let Some(format) = schema["format"].as_str() {
        let known: &[&str] = match format {
            "date-time" => {
                &["2026-12-01T11:59:00Z", "2026-12-01T13:59:00.5+02:00", "2026-02-30T00:00:00Z", "yesterday"]
            }
            "uuid" => &["0b7e9c3a-1f52-4c1a-9a37-1f6f0d9a7f10", "0b7e9c3a"],
            "date" => &["2026-12-01", "2026-13-01"],
            "ipv4" => &["10.0.0.1", "10.0.0.256"],
            "email" => &["a@b.example", "nobody"],
            _ => &["https://example.com/a", "no uri at all"],
        };
        return (*dice.pick(known)).to_owned();
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        let mut out = String::new();
        matching(&regex_syntax::parse(pattern).unwrap(), dice, &mut out);
        return out;
    }
    let most = schema["maxLength"].as_u64().unwrap();
    let length = *dice.pick(&[1, 3, most, most + 1]);
    "a".repeat(length as usize)
}

/// A text that the expression matches. Depth is that of the expression.
fn matching(hir: &Hir, dice: &mut Dice, out: &mut String) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).unwrap()),
        HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => {
            let range = class.ranges()[dice.roll(class.ranges().len() as u64) as usize];
            out.push(if dice.roll(2) == 0 { range.start() } else { range.end() });
        }
        HirKind::Class(regex_syntax::hir::Class::Bytes(_)) => panic!("classes are of characters"),
        HirKind::Repetition(repetition) => {
            let least = repetition.min;
            let most = repetition.max.unwrap_or(least + 4);
            for _ in 0..*dice.pick(&[least, most, (least + most) / 2]) {
                matching(&repetition.sub, dice, out);
            }
        }
        HirKind::Capture(capture) => matching(&capture.sub, dice, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| matching(part, dice, out)),
        HirKind::Alternation(branches) => matching(dice.pick(branches), dice, out),
    }
}
