//! Generated responses: each seed, changed once at every place, in the transport, and in the clock.
//!
//! The values come from both versions' own files, and from around them: a number's neighbours, strings
//! and lists of about that length, words without their last letter.

use crate::bases::{Base, Files, scalars};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use toolgate::contract::diff::judge::Sample;
use toolgate::contract::raw::Millis;
use toolgate::wire::v1::{self, transport_outcome::Outcome};

pub(crate) fn of(base: &Base, files: &[&Files]) -> Vec<Sample> {
    let scalars: Vec<Value> = scalars(files).into_values().collect();
    let pool = pool(&scalars);
    let mut samples = base.seeds.clone();
    for seed in &base.seeds {
        if let Ok(body) = serde_json::from_slice::<Value>(&seed.response.body) {
            for changed in changed(&body, &pool) {
                samples.push(with_body(seed, changed.to_string().into_bytes()));
            }
            samples.extend(grown(seed, &body, &scalars));
        }
        samples.extend(other_bytes(seed));
        samples.extend(other_transports(seed, &scalars));
        samples.extend(other_moments(seed, &scalars));
        samples.extend(other_requests(seed));
    }
    samples
}

fn with_body(seed: &Sample, body: Vec<u8>) -> Sample {
    Sample { response: v1::ToolResponse { body, ..seed.response.clone() }, ..seed.clone() }
}

/// Values for every place of a body.
fn pool(scalars: &[Value]) -> Vec<Value> {
    let mut values = vec![json!(null), json!(true), json!(false), json!([]), json!({}), json!(""), json!(0), json!(-1)];
    values.extend([
        json!(0.25),
        json!(1.25),
        json!("\u{1f600} ok"),
        json!("ab cd"),
        json!("XYZ"),
        json!("ABCD"),
        json!("abcdefghi"),
    ]);
    values.extend([
        json!({"left": 1}),
        json!({"right": 2}),
        json!({"name": "a", "size": 3, "more": 1}),
        json!({"x": 1}),
        json!("by:zoe.x"),
    ]);
    for scalar in scalars {
        match scalar {
            Value::String(text) if text.len() <= 16 && !text.starts_with(['/', '^', '#']) => {
                values.push(scalar.clone())
            }
            Value::Number(number) => {
                values.push(scalar.clone());
                let Some(whole) = number.as_i64().filter(|n| (0..=60).contains(n)) else { continue };
                for near in [whole - 1, whole + 1] {
                    values.push(json!(near));
                }
                for length in [whole - 1, whole, whole + 1].map(|n| usize::try_from(n).unwrap_or(0)) {
                    values.extend([json!("a".repeat(length)), json!("A".repeat(length))]);
                    if length <= 12 {
                        values.push(json!(
                            ["red", "green", "blue", "gold", "grey"]
                                .into_iter()
                                .cycle()
                                .take(length)
                                .collect::<Vec<_>>()
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    values.extend([
        json!("error"),
        json!("\u{2764}\u{fe0f}"),
        json!("ab \u{1f468}\u{200d}\u{1f469}"),
        json!(["red", "red"]),
        json!(["red", "green", "blue", "gold"]),
        json!(["gold"]),
        json!("2026-12-01 11:59:00"),
    ]);
    let known: BTreeSet<String> = values.iter().map(ToString::to_string).collect();
    known.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// The body with one place replaced, removed, or an object with one member more.
fn changed(body: &Value, pool: &[Value]) -> Vec<Value> {
    let mut pointers = vec![String::new()];
    collect(body, "", &mut pointers);
    let mut all = Vec::new();
    for pointer in &pointers {
        for value in pool {
            let mut copy = body.clone();
            *copy.pointer_mut(pointer).unwrap() = value.clone();
            all.push(copy);
        }
        all.extend(removed(body, pointer));
        if let Some(Value::Object(members)) = body.pointer(pointer) {
            for name in pool.iter().filter_map(Value::as_str).filter(|name| !members.contains_key(*name)) {
                for value in [json!("x"), json!(1)] {
                    let mut copy = body.clone();
                    copy.pointer_mut(pointer).unwrap()[name] = value;
                    all.push(copy);
                }
            }
        }
    }
    all
}

fn removed(body: &Value, pointer: &str) -> Option<Value> {
    let (parent, name) = pointer.rsplit_once('/')?;
    let mut copy = body.clone();
    copy.pointer_mut(parent)?.as_object_mut()?.shift_remove(name)?;
    Some(copy)
}

fn collect(value: &Value, at: &str, pointers: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Array(items) => items.iter().enumerate().map(|(i, item)| (i.to_string(), item)).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        _ => Vec::new(),
    };
    for (name, child) in children {
        let pointer = format!("{at}/{name}");
        collect(child, &pointer, pointers);
        pointers.push(pointer);
    }
}

/// A member more, which vendors may add, as large and deep as each limit and one beyond.
fn grown(seed: &Sample, body: &Value, scalars: &[Value]) -> Vec<Sample> {
    let mut samples = Vec::new();
    let limits = scalars.iter().filter_map(Value::as_u64).filter(|n| (2..=5000).contains(n));
    for size in limits.flat_map(|n| [n, n + 1]).map(|n| n as usize) {
        let mut extras = vec![json!("x".repeat(size)), json!(vec![1; size])];
        extras.push(Value::Object((0..size).map(|i| (format!("m{i}"), json!(1))).collect::<Map<_, _>>()));
        if size <= 64 {
            extras.push((0..size).fold(json!(1), |inner, _| json!([inner])));
        }
        for extra in extras {
            let mut copy = body.clone();
            if let Some(members) = copy.as_object_mut() {
                members.insert("zzz".into(), extra);
                samples.push(with_body(seed, copy.to_string().into_bytes()));
            }
        }
        let mut padded = seed.response.body.clone();
        padded.resize(padded.len().max(size), b' ');
        samples.push(with_body(seed, padded));
    }
    samples
}

fn other_bytes(seed: &Sample) -> Vec<Sample> {
    let body = seed.response.body.as_slice();
    let marked = [b"\xef\xbb\xbf", body].concat();
    let bodies =
        [Vec::new(), marked, [b")]}'\n", body].concat(), [body, b"\n"].concat(), [body, b"? new file\n"].concat()];
    bodies.into_iter().map(|body| with_body(seed, body)).collect()
}

fn other_transports(seed: &Sample, scalars: &[Value]) -> Vec<Sample> {
    let mut samples = Vec::new();
    let statuses = scalars.iter().filter_map(|value| value.as_u64().and_then(|n| u32::try_from(n).ok()));
    let named =
        scalars.iter().filter_map(Value::as_str).flat_map(|text| text.split(',')).filter_map(|n| n.parse().ok());
    let known: BTreeSet<u32> = statuses.chain(named).chain([204, 206, 404, 409, 410, 418, 429, 500, 503]).collect();
    let mut endings: Vec<Outcome> =
        known.iter().filter(|n| (100..=599).contains(*n)).map(|n| Outcome::HttpStatus(*n)).collect();
    endings.extend(known.iter().filter_map(|n| i32::try_from(*n).ok()).filter(|n| *n < 256).map(Outcome::ExitCode));
    endings.extend([Outcome::Timeout(true), Outcome::ConnectionFailed(true)]);
    for outcome in endings {
        for body in [seed.response.body.clone(), Vec::new()] {
            let mut sample = with_body(seed, body);
            sample.response.outcome = Some(v1::TransportOutcome { outcome: Some(outcome) });
            samples.push(sample);
        }
    }
    for kind in scalars.iter().filter_map(Value::as_str).filter(|text| text.contains('/') && text.len() < 60) {
        let mut sample = seed.clone();
        sample.response.content_type = Some(kind.to_owned());
        samples.push(sample);
    }
    for i in 0..seed.response.headers.len() {
        let mut sample = seed.clone();
        sample.response.headers.remove(i);
        samples.push(sample);
    }
    let mut unsigned = seed.clone();
    unsigned.response.headers.clear();
    samples.push(unsigned);
    samples
}

/// The clock moved by each duration that a file names, and a little more and less.
fn other_moments(seed: &Sample, scalars: &[Value]) -> Vec<Sample> {
    let named = scalars.iter().filter_map(Value::as_str).filter_map(Millis::parse).map(|millis| millis.0);
    let steps: BTreeSet<i64> =
        named.chain([60_000]).flat_map(|n| [n, n - 20_000, n + 20_000, n - 61_000, n - 31_000, n - 91_000]).collect();
    let moved = |step: i64| Sample { now: seed.now.saturating_add_millis(step), ..seed.clone() };
    let issued = |step: i64| {
        let mut sample = seed.clone();
        sample.request.issued_at_unix_ms += step;
        sample.request.deadline_unix_ms += step.max(0);
        sample
    };
    steps.iter().flat_map(|step| [moved(*step), moved(-step), issued(*step), issued(-step)]).collect()
}

fn other_requests(seed: &Sample) -> Vec<Sample> {
    let Ok(Value::Object(arguments)) = serde_json::from_slice::<Value>(&seed.request.arguments) else {
        return Vec::new();
    };
    let mut samples = Vec::new();
    for name in arguments.keys() {
        for value in [Some(json!("elsewhere")), Some(json!("ab")), None] {
            let mut changed = arguments.clone();
            match value {
                Some(value) => drop(changed.insert(name.clone(), value)),
                None => drop(changed.shift_remove(name)),
            }
            let mut sample = seed.clone();
            sample.request.arguments = Value::Object(changed).to_string().into_bytes();
            samples.push(sample);
        }
    }
    samples
}
