//! The contracts that the rows change: two made for it, and those that are shipped.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use toolgate::contract::Folder;
use toolgate::contract::diff::judge::Sample;
use toolgate::contract::fixture::Secrets;
use toolgate::contract::pack;
use toolgate::contract::yaml::Marked;
use toolgate::time::Timestamp;
use toolgate::wire::v1::{self, transport_outcome::Outcome};

/// A contract's files, as values that a row can edit. JSON is YAML, too.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub contract: Value,
    pub schema: Value,
}

impl Folder for Files {
    fn read(&self, name: &str) -> Result<String, String> {
        Ok(if name == "contract.yaml" { &self.contract } else { &self.schema }.to_string())
    }
}

impl Files {
    /// Edits are separated by ` && `: `yaml POINTER = JSON`, `data POINTER -`, `data POINTER reversed`.
    pub(crate) fn edited(&self, edits: &str) -> Files {
        let mut files = self.clone();
        for edit in edits.split(" && ").filter(|edit| !edit.is_empty()) {
            let mut words = edit.splitn(4, ' ');
            let (file, pointer, how) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            let root = if file == "yaml" { &mut files.contract } else { &mut files.schema };
            apply(root, pointer, how, words.next());
        }
        files
    }
}

fn apply(root: &mut Value, pointer: &str, how: &str, value: Option<&str>) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/");
    if how == "reversed" {
        return reverse(root.pointer_mut(pointer).unwrap());
    }
    let parent = root.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer} leads nowhere"));
    match (how, parent) {
        ("-", Value::Object(members)) => drop(members.shift_remove(&name).unwrap()),
        ("-", Value::Array(items)) => drop(items.remove(name.parse().unwrap())),
        ("=", Value::Object(members)) => drop(members.insert(name, serde_json::from_str(value.unwrap()).unwrap())),
        ("=", Value::Array(items)) => {
            let (at, value) = (name.parse::<usize>().unwrap(), serde_json::from_str(value.unwrap()).unwrap());
            if at == items.len() { items.push(value) } else { items[at] = value }
        }
        (how, _) => panic!("{how} is no edit of {pointer}"),
    }
}

fn reverse(value: &mut Value) {
    match value {
        Value::Array(items) => items.reverse(),
        Value::Object(members) => *members = std::mem::take(members).into_iter().rev().collect(),
        other => panic!("{other} has no order"),
    }
}

/// A contract, and responses from which all others are made by single changes.
pub(crate) struct Base {
    pub files: Files,
    pub seeds: Vec<Sample>,
    pub secrets: Secrets,
}

impl Base {
    pub(crate) fn named(name: &str) -> Base {
        match name {
            "envelope" => envelope(),
            "http" => http(),
            shipped => self::shipped(shipped),
        }
    }
}

fn shipped(tool: &str) -> Base {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/tools").join(tool).join("v1");
    let pack = pack::prove(&dir);
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let contract = Marked::parse(&read("contract.yaml")).unwrap().value;
    let schema = contract.get("envelope").and_then(Value::as_str).unwrap_or("data.schema.json");
    let schema = serde_json::from_str(&read(schema)).unwrap();
    Base {
        files: Files { contract, schema },
        seeds: pack.fixtures.iter().map(Sample::of_fixture).collect(),
        secrets: Secrets(pack.fixtures.iter().flat_map(|fixture| fixture.secrets.0.clone()).collect()),
    }
}

fn sample(tool: &str, arguments: &Value, body: &Value) -> Sample {
    let now = Timestamp::parse_rfc3339("2026-12-01T12:00:00Z").unwrap();
    let request = v1::ToolRequest {
        request_id: "r1".into(),
        tool: tool.into(),
        arguments: arguments.to_string().into_bytes(),
        issued_at_unix_ms: now.unix_millis() - 10_000,
        deadline_unix_ms: now.unix_millis() + 60_000,
        attempt: 1,
        ..v1::ToolRequest::default()
    };
    let response = v1::ToolResponse {
        request_id: "r1".into(),
        tool: tool.into(),
        attempt: 1,
        body: body.to_string().into_bytes(),
        content_type: Some("application/json".into()),
        outcome: Some(v1::TransportOutcome { outcome: Some(Outcome::HttpStatus(200)) }),
        ..v1::ToolResponse::default()
    };
    Sample { name: "seed".into(), request, response, now }
}

/// The source writes the result itself, so that the schema alone decides.
fn envelope() -> Base {
    let contract = json!({
        "tool": "lab.sample", "version": 1, "status": "active", "about": "One sample of the laboratory, as measured.",
        "owner": {"team": "lab", "contact": "#lab"},
        "source": {"kind": "envelope"},
        "bind": [{"data": "/id", "equals": "/arguments/id"}],
        "text": {"note": {"max_chars": 40}},
        "select": ["id", "state", "count", "ratio", "seen_at", "tags", "note", "part", "kind", "code", "pair"],
    });
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A sample",
        "type": "object",
        "required": ["id", "state", "tags"],
        "properties": {
            "id": {"type": "string", "pattern": "^[a-z]{2,8}$"},
            "state": {"enum": ["failed", "running", "done"]},
            "count": {"type": "integer", "minimum": 1, "maximum": 10},
            "ratio": {"type": "number", "minimum": 0, "maximum": 4, "multipleOf": 0.5},
            "seen_at": {"type": "string", "format": "date-time", "maxLength": 35},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 1, "maxItems": 3, "uniqueItems": true},
            "note": {"type": "string", "minLength": 2, "maxLength": 20},
            "part": {
                "type": "object", "required": ["name"], "additionalProperties": false,
                "properties": {"name": {"enum": ["a", "b"]}, "size": {"type": "integer", "minimum": 0, "maximum": 9}},
            },
            "kind": {"anyOf": [{"const": "x"}, {"const": "y"}]},
            "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
            "hidden": {"enum": ["p", "q"]},
            "pair": {
                "type": "object", "additionalProperties": false,
                "properties": {"left": {"const": 1}, "right": {"const": 2}},
                "dependentRequired": {"left": ["right"]},
            },
        },
        "additionalProperties": false,
        "$defs": {"tag": {"enum": ["red", "green", "blue"]}},
    });
    let data = json!({
        "id": "abc", "state": "failed", "count": 5, "ratio": 1.5, "seen_at": "2026-12-01T11:59:00Z", "tags": ["red", "green"],
        "note": "as seen", "part": {"name": "a", "size": 3}, "kind": "x", "code": "ABC", "hidden": "p",
        "pair": {"left": 1, "right": 2},
    });
    let whole = |data: &Value| json!({"tool": "lab.sample", "request_id": "r1", "outcome": "success", "data": data});
    let failure = json!({"tool": "lab.sample", "request_id": "r1", "outcome": "failure",
        "error": {"code": "NOT_FOUND", "retryable": false}});
    let least = json!({"id": "abc", "state": "done", "tags": ["blue"]});
    let seeds = [whole(&data), whole(&least), failure];
    let arguments = json!({"id": "abc"});
    Base {
        files: Files { contract, schema },
        seeds: seeds.iter().map(|body| sample("lab.sample", &arguments, body)).collect(),
        secrets: Secrets::default(),
    }
}

/// A vendor's answer, read through a table.
fn http() -> Base {
    let contract = json!({
        "tool": "shop.parcel", "version": 1, "status": "active", "about": "Where one parcel is, as the carrier says.",
        "owner": {"team": "shop", "contact": "#shop"},
        "source": {
            "kind": "http_json", "media_types": ["application/json", "text/json"], "success": [200, 203],
            "failures": {"404": "NOT_FOUND", "409": "LOST"},
            "errors": [{"when": {"at": "/error", "not_empty": true}, "code": "UPSTREAM_UNAVAILABLE"}],
        },
        "limits": {"body_bytes_max": 3000, "depth_max": 6, "members_max": 40, "items_max": 30, "string_bytes_max": 200},
        "adapt": [
            {"shape": "two", "when": {"at": "/api", "equals": 2}, "fields": {
                "id": {"from": "/parcel/id"},
                "place": {"from": "/parcel/status", "map": {"moving": "road", "stored": "depot", "lost": "unknown"}},
                "weight": {"from": "/parcel/grams", "as": "integer", "if_missing": "omit", "if_null": {"value": 0}},
                "seen_at": {"from": "/parcel/at", "as": "timestamp"},
                "note": {"from": "/parcel/note"},
                "stops": {"each": "/parcel/stops", "where": {"at": "/open", "equals": true}, "item": {"from": "/name"}},
                "visits": {"count": "/parcel/stops"},
                "who": {"from": "/parcel/who", "capture": "[a-z]+:([a-z]{1,8})"},
                "issuer": {"from": "/parcel/issuer"},
                "asked": {"request": "/id"},
                "unit": {"const": "g"},
            }},
            {"shape": "one", "when": {"at": "/api", "present": false}, "fields": {
                "id": {"from": "/id"}, "place": {"from": "/place"}, "weight": {"from": "/w", "as": "integer"},
                "seen_at": {"from": "/at", "as": "timestamp"}, "note": {"from": "/note"}, "stops": {"each": "/stops", "item": {"from": "/n"}},
                "visits": {"count": "/stops"}, "who": {"from": "/who"}, "issuer": {"from": "/issuer"},
                "asked": {"request": "/id"}, "unit": {"const": "g"},
            }},
        ],
        "bind": [{"data": "/id", "equals": "/arguments/id"}],
        "issuer": {"at": "/issuer", "one_of": ["north", "south"]},
        "fresh": {"at": "/seen_at", "max_age": "5m", "max_skew": "30s"},
        "rules": [{"id": "stored-has-no-stops", "cel": "data.place != 'depot' || data.visits < 3"}],
        "text": {"note": {"max_chars": 20}},
        "select": ["id", "place", "weight", "seen_at", "note", "stops", "visits", "who", "asked", "unit"],
        "codes": {"LOST": {"about": "the carrier lost it", "retryable": false}},
        "retry": {"on": ["UPSTREAM_UNAVAILABLE"], "attempts_max": 3, "budget": "2m", "backoff": {"initial": "1s", "max": "30s"}},
    });
    let parcel = json!({"api": 2, "parcel": {
        "id": "abc", "status": "moving", "grams": 250, "at": "2026-12-01T11:59:00Z", "note": "at the gate", "who": "by:anna",
        "stops": [{"name": "kiel", "open": true}, {"name": "bonn", "open": false}, {"name": "kiel", "open": true}], "issuer": "north",
        "second": "def",
    }});
    let older = json!({"id": "abc", "place": "depot", "w": 7, "at": "2026-12-01T11:59:30Z", "note": "here", "stops": [{"n": "ulm"}],
        "who": "anna", "issuer": "south"});
    let arguments = json!({"id": "abc", "other": "xyz"});
    Base {
        files: Files { contract, schema: parcel_schema() },
        seeds: [parcel, older].iter().map(|body| sample("shop.parcel", &arguments, body)).collect(),
        secrets: Secrets::default(),
    }
}

fn parcel_schema() -> Value {
    let word = json!({"type": "string", "pattern": "^[a-z]{1,8}$"});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "required": ["id", "place", "seen_at", "note", "stops", "visits", "who", "issuer", "asked", "unit"],
        "properties": {
            "id": word, "place": {"enum": ["road", "depot", "unknown", "door"]},
            "weight": {"type": "integer", "minimum": 0, "maximum": 99999},
            "seen_at": {"type": "string", "format": "date-time", "maxLength": 35},
            "note": {"type": "string", "maxLength": 40},
            "stops": {"type": "array", "maxItems": 10, "items": word}, "visits": {"type": "integer", "minimum": 0, "maximum": 50},
            "who": word, "issuer": word, "asked": word, "unit": {"enum": ["g", "kg"]},
        },
        "additionalProperties": false,
    })
}

/// Every scalar in these files, and the names that they give to members: what documents are made from.
pub(crate) fn scalars(files: &[&Files]) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut pending: Vec<&Value> = files.iter().flat_map(|files| [&files.contract, &files.schema]).collect();
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                for (name, value) in members {
                    let names =
                        value.as_object().filter(|_| matches!(name.as_str(), "properties" | "map" | "failures"));
                    found.extend(
                        names.into_iter().flat_map(|table| table.keys()).map(|n| (json!(n).to_string(), json!(n))),
                    );
                }
                pending.extend(members.values());
            }
            scalar => drop(found.insert(scalar.to_string(), scalar.clone())),
        }
    }
    found
}
