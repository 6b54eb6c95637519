//! Generated near-misses: each accepted fixture, changed once in a way that must refuse.
//!
//! The body is broken as transports and proxies break it; the result's data is changed once for
//! each kind of fault that a schema must see. The share that is refused is the contract's mutation
//! score: what survives is a hole in its schema.

use super::Contract;
use super::fixture::{Class, Fixture, judge};
use crate::gate::Stop;
use crate::gate::parse::Tape;
use crate::wire::json;
use serde_json::{Map, Value, json};

/// How many near-misses were refused, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    pub refused: usize,
    pub total: usize,
    /// The near-misses that were accepted, by what was changed where.
    pub survivors: Vec<String>,
}

impl Score {
    fn count(&mut self, refused: bool, what: impl FnOnce() -> String) {
        self.total += 1;
        if refused { self.refused += 1 } else { self.survivors.push(what()) }
    }
}

/// Tries the near-misses of all accepted fixtures.
pub fn score(contract: &Contract, fixtures: &[Fixture]) -> Score {
    let mut score = Score::default();
    for fixture in fixtures.iter().filter(|fixture| fixture.class != Class::Reject) {
        for (what, body) in broken_bodies(&fixture.response.body) {
            let refused = matches!(judge(contract, fixture, body), Ok(Err(Stop::Refused(_))));
            score.count(refused, || format!("{}: {what}", fixture.name));
        }
        changed_data(contract, fixture, &mut score);
    }
    score
}

/// Bodies that no contract may accept, whatever its schema says.
fn broken_bodies(body: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    if body.is_empty() {
        return Vec::new();
    }
    let mut bodies = vec![
        ("something after it", [body, b"\n0 more"].concat()),
        ("something before it", [b"notice: ", body].concat()),
        ("cut in the middle", body[..body.len() / 2].to_vec()),
        ("a byte that is no UTF-8", [body, b"\xff"].concat()),
        ("nested without end", b"[".repeat(10_000)),
    ];
    if let Some(rest) = body.strip_prefix(b"{") {
        bodies.push(("one member twice", [b"{\"twice\":1,\"tw\\u0069ce\":2,", rest].concat()));
    }
    bodies
}

/// The data of the accepted result, changed once each, against the envelope's schema. Contracts
/// that select only a part of the data, or convert it, are not tried: what they hide can't be seen here.
fn changed_data(contract: &Contract, fixture: &Fixture, score: &mut Score) {
    let Ok(Ok(result)) = judge(contract, fixture, fixture.response.body.clone()) else { return };
    let Ok(mut envelope) = serde_json::from_str::<Value>(&result) else { return };
    let Some(data) = envelope.get("data").cloned() else { return };
    if !is_valid(contract, &envelope) {
        return;
    }
    envelope["error"] = json!({"code": "NOT_FOUND", "retryable": false});
    score.count(!is_valid(contract, &envelope), || format!("{}: success with an error", fixture.name));
    let envelope = |data: Value| {
        let mut changed: Value = serde_json::from_str(&result).unwrap_or(Value::Null);
        changed["data"] = data;
        changed
    };
    for (what, changed) in
        [("null for the data", Value::Null), ("a list for the data", json!([])), ("text for the data", json!("x"))]
    {
        score.count(!is_valid(contract, &envelope(changed)), || format!("{}: {what}", fixture.name));
    }
    let Value::Object(members) = data else { return };
    let extra = with(&members, "surely_not_declared", json!(true));
    score.count(!is_valid(contract, &envelope(extra)), || format!("{}: a member more", fixture.name));
    for (name, value) in &members {
        for (what, changed) in faults(value) {
            let refused = !is_valid(contract, &envelope(with(&members, name, changed)));
            score.count(refused, || format!("{}: {name} becomes {what}", fixture.name));
        }
    }
}

/// Values that no bounded schema of this value can admit.
fn faults(value: &Value) -> Vec<(&'static str, Value)> {
    let mut faults =
        vec![("null", Value::Null), ("an object with a strange member", json!({"surely_not_declared": 1}))];
    match value {
        Value::String(_) => {
            faults.extend([("a list", json!([value])), ("100,000 characters", json!("x".repeat(100_000)))])
        }
        Value::Bool(_) => faults.extend([("text", json!("true")), ("a number", json!(1))]),
        Value::Number(_) => faults.extend([("text", json!(value.to_string())), ("beyond 64 bits", json!(1e30))]),
        Value::Array(_) => faults.extend([("text", json!("x")), ("5,000 items", Value::Array(vec![json!("x"); 5000]))]),
        Value::Object(_) => faults.extend([("text", json!("x")), ("a list", json!([value]))]),
        Value::Null => {}
    }
    faults
}

fn with(members: &Map<String, Value>, name: &str, value: Value) -> Value {
    let mut changed = members.clone();
    changed.insert(name.to_owned(), value);
    Value::Object(changed)
}

fn is_valid(contract: &Contract, envelope: &Value) -> bool {
    let text = envelope.to_string();
    let mut tape = Tape::default();
    json::parse(&text, &mut tape).is_ok_and(|root| contract.envelope.success.is_valid(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_bodies_differ_from_the_one_they_break() {
        let body = br#"{"state":"failed"}"#;
        let bodies = broken_bodies(body);
        assert_eq!(bodies.len(), 6);
        assert!(bodies.iter().all(|(_, broken)| broken != body));
        assert!(broken_bodies(b"").is_empty(), "a declared empty body has nothing to break");
    }

    #[test]
    fn a_hole_is_told_by_its_name() {
        let mut score = Score::default();
        score.count(true, || "never".into());
        score.count(false, || "state becomes null".into());
        assert_eq!(score, Score { refused: 1, total: 2, survivors: vec!["state becomes null".into()] });
    }
}
