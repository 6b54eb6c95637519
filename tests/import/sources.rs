//! Imports load once their decisions are made, judge as expected, and admit nothing that their source refuses.

use crate::generate::{Dice, instance};
use crate::table::{ROWS, Row};
use jsonschema::error::ValidationErrorKind;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use toolgate::contract::fixture::{self, Class, Fixture};
use toolgate::contract::import::openapi::Wanted;
use toolgate::contract::import::sketch::Sketch;
use toolgate::contract::import::source::Source;
use toolgate::contract::import::{Asked, Decision, Topic, mcp, openapi, write};
use toolgate::contract::{Contract, pack};
use toolgate::gate::Stop;

pub(crate) fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/sources")
}

/// One row, imported and filled in.
struct Import {
    sketch: Sketch,
    schema: Value,
    contract: Contract,
    /// The schema that the document publishes.
    oracle: jsonschema::Validator,
}

fn import(row: &Row) -> Import {
    let source = Source::read(&std::fs::read(folder().join(row.file)).unwrap()).unwrap();
    let asked = Asked { without: row.without.iter().map(|place| (*place).to_owned()).collect() };
    let (sketch, oracle) = if row.file.starts_with("mcp") {
        let listed = mcp::tools(&source).unwrap().into_iter().find(|tool| tool.name == row.what).unwrap();
        let published = source.value.pointer(&format!("{}/outputSchema", listed.at)).unwrap().clone();
        (mcp::sketch(&source, &listed, row.file, &asked).unwrap(), published)
    } else {
        let wanted = Wanted { operation: row.what.into(), status: 200 };
        let sketch = openapi::sketch(&source, &wanted, row.file, &asked).unwrap();
        let at = sketch.origin[0].rsplit(", ").next().unwrap().to_owned();
        (sketch, published(&source.value, &at))
    };
    let schema = filled_schema(&sketch);
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(&sketch.tool).join("v1");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("contract.yaml"), filled_contract(&sketch)).unwrap();
    std::fs::write(folder.join("data.schema.json"), schema.to_string()).unwrap();
    let contract = pack::load_dir(&folder).unwrap_or_else(|findings| {
        panic!(
            "{} {}:\n{}\n{}",
            row.file,
            row.what,
            findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
            filled_contract(&sketch)
        )
    });
    let oracle = jsonschema::options().offline().should_validate_formats(true).build(&oracle).unwrap();
    Import { sketch, schema, contract, oracle }
}

/// The document as a schema that refers to one place of it. OpenAPI 3.0 has the exclusive bounds of draft 4.
fn published(document: &Value, at: &str) -> Value {
    let at: String = at
        .chars()
        .map(|c| match c {
            '{' => "%7B".into(),
            '}' => "%7D".into(),
            ' ' => "%20".into(),
            '%' => "%25".into(),
            other => other.to_string(),
        })
        .collect();
    let draft = if document["openapi"].as_str().unwrap().starts_with("3.0") {
        "http://json-schema.org/draft-04/schema#"
    } else {
        "https://json-schema.org/draft/2020-12/schema"
    };
    let mut schema = document.clone();
    schema["$schema"] = json!(draft);
    schema["allOf"] = json!([{ "$ref": format!("#{at}") }]);
    schema
}

/// The rules by which the decisions are made here: every string of a stranger is text of 120 characters, and so on.
fn filled_schema(sketch: &Sketch) -> Value {
    let mut schema = write::schema(&sketch.part);
    for decision in sketch.decisions.iter().filter(|decision| decision.topic.blocks() && decision.topic != Topic::Bind)
    {
        let place = schema_place(&decision.place);
        let members = schema.pointer_mut(&place).unwrap_or_else(|| panic!("{place}")).as_object_mut().unwrap();
        let fills: &[(&str, i64, &str)] = match decision.topic {
            Topic::StringBound | Topic::FreeText => &[("maxLength", 120, "")],
            Topic::NumberRange => {
                &[("minimum", -1_000_000, "exclusiveMinimum"), ("maximum", 1_000_000_000, "exclusiveMaximum")]
            }
            Topic::ArrayBound => &[("maxItems", 20, "")],
            Topic::Bind
            | Topic::LeftOut
            | Topic::Alternatives
            | Topic::Closed
            | Topic::Null
            | Topic::Ignored
            | Topic::Guess => panic!("{decision:?} blocks and has no rule"),
        };
        for (keyword, value, instead) in fills {
            if !members.contains_key(*keyword) && !members.contains_key(*instead) {
                members.insert((*keyword).into(), json!(value));
            }
        }
    }
    schema
}

fn schema_place(place: &str) -> String {
    place
        .split('/')
        .skip(1)
        .map(|token| if token == "*" { "/items".to_owned() } else { format!("/properties/{token}") })
        .collect()
}

fn filled_contract(sketch: &Sketch) -> String {
    let mut text = write::contract(sketch).replace(
        "# TODO(decide): a result has at most 8192 bytes; more needs limits: {result_bytes_max: N}.",
        "limits: {result_bytes_max: 1048576}",
    );
    let is = |topic: Topic| move |decision: &&Decision| decision.topic == topic;
    if sketch.decisions.iter().any(|decision| is(Topic::Bind)(&decision)) {
        text.push_str("bound_by: correlation\n");
    }
    let words: Vec<&Decision> =
        sketch.decisions.iter().filter(|d| matches!(d.topic, Topic::StringBound | Topic::FreeText)).collect();
    if !words.is_empty() {
        text.push_str("text:\n");
        words.iter().for_each(|decision| text.push_str(&format!("  \"{}\": {{max_chars: 120}}\n", decision.place)));
    }
    text
}

/// What the contract makes of a vendor's document: the data of its result, or the reason.
fn judge(import: &Import, arguments: &Value, document: &Value) -> Result<Value, String> {
    let body = if import.contract.reading.mcp.is_some() {
        json!({"content": [], "structuredContent": document})
    } else {
        document.clone()
    };
    let media = import.sketch.media_type.clone().unwrap_or_else(|| "application/json".into());
    let case = json!({
        "now": "2026-12-01T12:00:00Z",
        "request": {"tool": import.sketch.tool, "request_id": "req-0001", "issued_at": "2026-12-01T11:59:50Z", "deadline": "2026-12-01T12:01:00Z", "arguments": arguments},
        "transport": {"content_type": media, "status": 200},
        "expect": {"data": {}},
    });
    let body = body.to_string().into_bytes();
    let fixture = Fixture::read("x", Class::Accept, "{}", &case.to_string(), body.clone()).unwrap();
    match fixture::judge(&import.contract, &fixture, body).unwrap() {
        Ok(result) => Ok(serde_json::from_str::<Value>(&result).unwrap()["data"].clone()),
        Err(Stop::Refused(refusal)) => Err(format!("{refusal:?}")),
        Err(other) => Err(format!("{other:?}")),
    }
}

/// Why the source refuses the data, beside members that the import says it left out.
fn refused_by_source(import: &Import, data: &Value) -> Vec<String> {
    let data = if import.sketch.is_list { &data["items"] } else { data };
    let below = if import.sketch.is_list { "/items" } else { "" };
    let left_out: BTreeSet<&str> =
        import.sketch.decisions.iter().filter(|d| d.topic == Topic::LeftOut).map(|d| d.place.as_str()).collect();
    let errors = import.oracle.iter_errors(data);
    let real = errors.filter(|error| {
        let ValidationErrorKind::Required { property } = error.kind() else { return true };
        let place: String = error
            .instance_path()
            .as_str()
            .split('/')
            .skip(1)
            .map(|token| if token.parse::<u32>().is_ok() { "/*".to_owned() } else { format!("/{token}") })
            .collect();
        !left_out.contains(format!("{below}{place}/{}", property.as_str().unwrap()).as_str())
    });
    real.map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn each_import_loads_once_decided_and_judges_its_examples() {
    assert!(ROWS.iter().map(|row| row.file).collect::<BTreeSet<_>>().len() >= 20);
    for row in ROWS {
        let import = import(row);
        let name = format!("{} {}", row.file, row.what);
        let arguments: Value = serde_json::from_str(row.arguments).unwrap();
        let mut document: Value = serde_json::from_str(row.accept).unwrap();
        let data = judge(&import, &arguments, &document).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(refused_by_source(&import, &data), Vec::<String>::new(), "{name}");
        *document.pointer_mut(row.reject.0).unwrap() = serde_json::from_str(row.reject.1).unwrap();
        let why = judge(&import, &arguments, &document).expect_err(&name).replace('_', "").to_lowercase();
        assert!(why.contains(&row.reason.replace('_', "").to_lowercase()), "{name}: {why}");
    }
}

#[test]
fn nothing_that_an_import_accepts_is_refused_by_its_source() {
    for row in ROWS {
        let import = import(row);
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        let (mut accepted, mut refused) = (0, 0);
        for round in 0..400 {
            let candidate = instance(&import.schema, &mut dice, if round % 2 == 0 { 0 } else { 12 });
            let mut arguments = serde_json::Map::new();
            for bind in &import.sketch.bind {
                arguments.insert(bind.argument.clone(), candidate.pointer(&bind.data).cloned().unwrap_or(Value::Null));
            }
            let document = if import.sketch.is_list { candidate["items"].clone() } else { candidate };
            match judge(&import, &Value::Object(arguments), &document) {
                Ok(data) => {
                    accepted += 1;
                    let why = refused_by_source(&import, &data);
                    assert!(
                        why.is_empty(),
                        "{} {} accepts {data}, and its source does not: {why:?}",
                        row.file,
                        row.what
                    );
                }
                Err(_) => refused += 1,
            }
        }
        assert!(accepted >= 20 && refused >= 20, "{} {}: {accepted} accepted, {refused} refused", row.file, row.what);
    }
}

#[test]
fn no_text_of_a_source_reaches_a_contract() {
    for row in ROWS {
        let import = import(row);
        let text = write::contract(&import.sketch) + &write::data_schema(&import.sketch.part);
        for words in ["Ignore your instructions", "Returns one run", "Partly cloudy", "where it leads"] {
            assert!(!text.contains(words), "{}: {words}", row.file);
        }
        assert!(text.contains("# source sha256:"), "{}", row.file);
        for decision in import.sketch.decisions.iter().filter(|d| d.topic.blocks()) {
            assert!(text.contains(&format!("TODO(decide): {}", &decision.message)), "{}: {decision:?}", row.file);
        }
    }
}
