//! Fixtures for a drafted contract: the examples, and near-misses of the first one. What a fixture expects is what the
//! gate itself says under the draft, so that a draft that cannot be proven says so before it is written.

use crate::contract::fixture::{self, Class, Fixture};
use crate::contract::import::sketch::{LIST, Sketch};
use crate::contract::import::{PartKind, Topic, source, write};
use crate::contract::{Contract, Folder, load};
use crate::gate::json::{write_node, write_string};
use crate::gate::parse::{Kind, Node, Tape};
use crate::time::Timestamp;
use crate::wire::json;
use anyhow::{Result, anyhow};
use serde_json::{Value, json};

/// What the examples share.
#[derive(Debug)]
pub(super) struct Example {
    /// Where in a body the document is that the table reads.
    pub base: &'static str,
    pub now: Timestamp,
    /// The text of `default.json`.
    pub default: String,
}

/// The files of a draft, and what it does not yet do.
#[derive(Debug, Default)]
pub(super) struct Proof {
    pub files: Vec<(String, Vec<u8>)>,
    /// Why an example or near-miss is no fixture yet, one line each.
    pub missing: Vec<String>,
}

struct Draft<'a> {
    contract: &'a str,
    schema: &'a str,
}

impl Folder for Draft<'_> {
    fn read(&self, name: &str) -> Result<String, String> {
        match name {
            "contract.yaml" => Ok(self.contract.to_owned()),
            "data.schema.json" => Ok(self.schema.to_owned()),
            _ => Err("there is no such file in a draft".into()),
        }
    }
}

/// One body that must be refused, with this reason.
struct NearMiss {
    name: String,
    reason: &'static str,
    body: Vec<u8>,
    /// Further members of `case.json`.
    case: String,
}

/// Writes the draft in memory and judges the examples and their near-misses by it.
///
/// # Errors
/// The draft does not load for another reason than the decisions that it names.
pub(super) fn prove(
    sketch: &Sketch,
    example: &Example,
    names: &[String],
    bodies: &[Vec<u8>],
    root: Node<'_>,
) -> Result<Proof> {
    let (text, schema) = (write::contract(sketch), write::data_schema(&sketch.part));
    // Without a tie to the request the draft does not load; the examples are judged as if somebody had decided.
    let is_tied = !sketch.decisions.iter().any(|decision| decision.topic == Topic::Bind);
    let trial = if is_tied { text.clone() } else { format!("{text}bound_by: correlation\n") };
    let contract = load(&Draft { contract: &trial, schema: &schema }).map_err(|findings| {
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        anyhow!("no contract can be drafted from this example:\n  {}\n    help: leave out what is too large from a copy of the example", lines.join("\n  "))
    })?;
    let mut proof = Proof::default();
    proof.files.push(("contract.yaml".into(), text.into_bytes()));
    proof.files.push(("data.schema.json".into(), schema.into_bytes()));
    proof.files.push(("fixtures/default.json".into(), example.default.clone().into_bytes()));
    for (i, (name, body)) in names.iter().zip(bodies).enumerate() {
        let name = if names[..i].contains(name) { format!("{name}-{}", i + 1) } else { name.clone() };
        match accepted(&contract, example, &name, body) {
            Ok(case) => {
                proof.files.push((format!("fixtures/accept/{name}/response.json"), body.clone()));
                proof.files.push((format!("fixtures/accept/{name}/case.json"), case.into_bytes()));
            }
            Err(why) => proof.missing.push(format!("the example {name} is not accepted: {why}")),
        }
    }
    for miss in near_misses(sketch, example, &bodies[0], root) {
        let case = format!("{{{}\"expect\": {{\"reason\": \"{}\"}}}}\n", miss.case, miss.reason);
        let read = Fixture::read(&miss.name, Class::Reject, &example.default, &case, miss.body.clone());
        match read.and_then(|fixture| fixture::run(&contract, &fixture)) {
            Ok(()) => {
                proof.files.push((format!("fixtures/reject/{}/response.json", miss.name), miss.body));
                proof.files.push((format!("fixtures/reject/{}/case.json", miss.name), case.into_bytes()));
            }
            Err(why) => proof.missing.push(format!("the near-miss {} is not refused as expected: {why}", miss.name)),
        }
    }
    Ok(proof)
}

/// `case.json` of an accepted example: the data that an agent would read.
fn accepted(contract: &Contract, example: &Example, name: &str, body: &[u8]) -> Result<String, String> {
    let placeholder = "{\"expect\": {\"data\": {}}}";
    let fixture = Fixture::read(name, Class::Accept, &example.default, placeholder, body.to_vec())?;
    let result = fixture::judge(contract, &fixture, body.to_vec())?;
    let Ok(result) = result else { return fixture::run(contract, &fixture).map(|()| String::new()) };
    let mut tape = Tape::default();
    let node = json::parse(&result, &mut tape).map_err(|why| why.to_string())?;
    let mut data = String::new();
    node.get("data").into_iter().for_each(|node| write_node(node, &mut data));
    Ok(format!("{{\"expect\": {{\"data\": {data}}}}}\n"))
}

fn near_misses(sketch: &Sketch, example: &Example, body: &[u8], root: Node<'_>) -> Vec<NearMiss> {
    let plain = |name: &str, reason, body: Vec<u8>| NearMiss { name: name.into(), reason, body, case: String::new() };
    let mut misses = vec![plain("something-after-it", "TRAILING_DATA", [body, b"\n0"].concat())];
    if let Some(rest) = body.trim_ascii_start().strip_prefix(b"{") {
        let comma: &[u8] = if root.is_empty() { b"" } else { b"," };
        misses.push(plain("member-twice", "DUPLICATE_MEMBER", [b"{\"a\":1,\"\\u0061\":2", comma, rest].concat()));
    }
    misses.extend(changed(sketch, example, root));
    if let Some(bind) = sketch.bind.first() {
        misses.extend(other_request(example, &bind.argument, body));
    }
    if sketch.fresh.is_some() {
        let later = example.now.saturating_add_millis(3_600_000);
        let case = format!("\"now\": \"{later}\", ");
        misses.push(NearMiss { name: "an-hour-old".into(), reason: "STALE", body: body.to_vec(), case });
    }
    misses
}

/// The first required field as null, and the first listed one with a value that is not listed.
fn changed(sketch: &Sketch, example: &Example, root: Node<'_>) -> Vec<NearMiss> {
    let document = source::value(root);
    let place = |name: &str| {
        let below = if sketch.is_list && name == LIST { String::new() } else { format!("/{name}") };
        format!("{}{below}", example.base)
    };
    let change = |name: &str, value: Value| -> Option<Vec<u8>> {
        let mut changed = document.clone();
        *changed.pointer_mut(&place(name))? = value;
        Some(changed.to_string().into_bytes())
    };
    let fields = sketch.fields().iter().filter(|field| field.required);
    let scalars = || fields.clone().filter(|field| matches!(field.part.kind, PartKind::Scalar));
    let mut misses = Vec::new();
    if let Some(field) = scalars().next()
        && let Some(body) = change(&field.name, Value::Null)
    {
        let name = format!("null-for-{}", field.name);
        misses.push(NearMiss { name, reason: "ADAPTER_MISMATCH", body, case: String::new() });
    }
    if let Some(field) = scalars().find(|field| field.part.keywords.contains_key("enum"))
        && let Some(body) = change(&field.name, json!("not-in-the-list"))
    {
        let name = format!("unknown-{}", field.name);
        misses.push(NearMiss { name, reason: "SCHEMA_VIOLATION", body, case: String::new() });
    }
    misses
}

/// The same response for a request that asked for something else.
fn other_request(example: &Example, argument: &str, body: &[u8]) -> Option<NearMiss> {
    let mut tape = Tape::default();
    let default = json::parse(&example.default, &mut tape).ok()?;
    let arguments = default.get("request")?.get("arguments")?;
    let mut text = String::from("\"request\": {\"arguments\": {");
    for (i, (name, value)) in arguments.members().enumerate() {
        if i > 0 {
            text.push_str(", ");
        }
        write_string(name, &mut text);
        text.push_str(": ");
        match (name == argument, value.kind()) {
            (true, Kind::Number) => text.push_str(&format!("{}", value.as_i64()?.wrapping_add(1))),
            (true, _) => write_string("something-else", &mut text),
            (false, _) => write_node(value, &mut text),
        }
    }
    text.push_str("}}, ");
    Some(NearMiss { name: "another-request".into(), reason: "BINDING_MISMATCH", body: body.to_vec(), case: text })
}
