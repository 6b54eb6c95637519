//! `toolgate contract new`: from an example to a contract that proves itself.

use crate::support::{toolgate, write};
use serde_json::{Value, json};
use std::path::Path;

const RUN: &str = r#"{"id": "run_7Kd29QmXv4Lp", "project": {"slug": "bluebird"}, "status": "failed", "attempt": 2, "big_id": 12345678901234567890, "at\n tool: evil": 1, "note": null, "message": "Retry the upload", "tags": ["a-1", "b"], "observed_at": "2026-12-01T11:59:30Z"}"#;
const REQUEST: &str = r#"{"tool": "ci.run", "request_id": "req-0001", "issued_at": "2026-12-01T11:59:00Z", "deadline": "2026-12-01T12:01:00Z", "arguments": {"project": "bluebird", "run_id": "run_7Kd29QmXv4Lp"}}"#;
const NEW: [&str; 9] =
    ["contract", "new", "ci.run", "--response", "run.json", "--request", "request.json", "--out", "c"];

fn pack(dir: &Path) -> (String, Value) {
    let base = dir.join("c/tools/ci.run/v1");
    let read = |name: &str| std::fs::read_to_string(base.join(name)).unwrap();
    (read("contract.yaml"), serde_json::from_str(&read("data.schema.json")).unwrap())
}

#[test]
fn a_draft_is_tight_tied_to_its_request_and_sound() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "run.json", RUN);
    write(dir.path(), "request.json", REQUEST);
    let said = toolgate(dir.path(), &NEW).works().to_owned();
    assert!(!said.contains("must decide"), "{said}");
    let (contract, schema) = pack(dir.path());
    for line in [
        "# yaml-language-server: $schema=../../../contract.schema.json",
        "  - {data: /project/slug, equals: /arguments/project}",
        "  - {data: /id, equals: /arguments/run_id}",
        "fresh: {at: /observed_at, max_age: 5m, max_skew: 30s}",
        "  # TODO(decide): guessed from 1 example: an identifier with this prefix",
        "  observed_at: {from: /observed_at, as: timestamp}",
        "  # TODO(decide): /note is not read: it is null in every example",
    ] {
        assert!(contract.lines().any(|have| have == line), "{line}\n{contract}");
    }
    assert!(!contract.lines().any(|line| line.trim_start().starts_with("tool: evil")), "{contract}");
    let properties = &schema["properties"];
    assert_eq!(properties["id"], json!({"type": "string", "pattern": "^run_[A-Za-z0-9]{4,20}$"}));
    assert_eq!(properties["status"], json!({"enum": ["failed"]}));
    assert_eq!(properties["attempt"], json!({"type": "integer", "minimum": 0, "maximum": 99}));
    assert_eq!(properties["big_id"], json!({"type": "string", "pattern": "^[0-9]{1,20}$"}));
    assert_eq!(properties["tags"]["maxItems"], 10);
    let checked = toolgate(dir.path(), &["check", "c"]);
    assert!(checked.works().contains("1 of 1 contracts sound, 7 fixtures run"), "{}", checked.stdout);
    for reject in
        ["another-request", "an-hour-old", "member-twice", "null-for-id", "something-after-it", "unknown-status"]
    {
        assert!(dir.path().join("c/tools/ci.run/v1/fixtures/reject").join(reject).is_dir(), "{reject}");
    }
}

#[test]
fn several_examples_show_what_varies() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.json", r#"{"id": "812", "state": "running", "took": 3}"#);
    write(dir.path(), "b.json", r#"{"id": "99", "state": "done", "took": null, "code": 4}"#);
    toolgate(dir.path(), &["contract", "new", "ci.run", "--response", "a.json", "--response", "b.json", "--out", "c"])
        .works();
    let (contract, schema) = pack(dir.path());
    assert_eq!(schema["required"], json!(["id", "state"]));
    assert_eq!(schema["properties"]["state"]["enum"], json!(["done", "running"]));
    assert!(contract.contains("took: {from: /took, if_missing: omit, if_null: omit}"), "{contract}");
    // Nothing names the request: that is for a person to decide, and the loader says so.
    assert!(contract.contains("# TODO(decide): nothing ties the result to its request"), "{contract}");
    let checked = toolgate(dir.path(), &["check", "c"]);
    assert_eq!(checked.code, 3);
    assert!(checked.stdout.contains("nothing in the result is compared with the request"), "{}", checked.stdout);
    let path = dir.path().join("c/tools/ci.run/v1/contract.yaml");
    std::fs::write(&path, format!("{contract}bound_by: correlation\n")).unwrap();
    toolgate(dir.path(), &["check", "c"]).works();
}

#[test]
fn an_mcp_result_is_recognised_in_its_frame() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        "run.json",
        r#"{"jsonrpc": "2.0", "id": 7, "result": {"content": [], "structuredContent": {"station": "KSFO", "wind": -2.5}}}"#,
    );
    write(dir.path(), "request.json", &REQUEST.replace("\"req-0001\"", "7").replace("\"bluebird\"", "\"KSFO\""));
    toolgate(dir.path(), &NEW).works();
    let (contract, schema) = pack(dir.path());
    assert!(
        contract.contains("kind: mcp") && contract.contains("{data: /station, equals: /arguments/project}"),
        "{contract}"
    );
    assert_eq!(schema["properties"]["wind"], json!({"type": "number", "minimum": -99, "maximum": 99}));
    toolgate(dir.path(), &["check", "c"]).works();
}

#[test]
fn nothing_is_written_over() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "run.json", RUN);
    write(dir.path(), "request.json", REQUEST);
    write(dir.path(), "c/tools/ci.run/v1/mine.txt", "mine");
    toolgate(dir.path(), &NEW).fails(1, &["exists and holds mine.txt; nothing was written", "--out"]);
    assert!(!dir.path().join("c/tools/ci.run/v1/contract.yaml").exists());
}

#[test]
fn an_example_is_as_hostile_as_a_response() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "request.json", REQUEST);
    for (body, said) in [
        ("{\"a\": 1,\n\"a\": 2}".to_owned(), "run.json:2: DUPLICATE_MEMBER"),
        ("[".repeat(100_000), "run.json:1: TOO_DEEP"),
        ("{\"secret\": tru}".to_owned(), "run.json:1: INVALID_JSON"),
        ("7".to_owned(), "nothing can be drawn from this"),
        (format!("{{\"a\": \"{}\"}}", "x".repeat(300_000)), "TOO_LARGE"),
    ] {
        write(dir.path(), "run.json", &body);
        let run = toolgate(dir.path(), &NEW);
        run.fails(1, &[said]);
        assert!(!run.stderr.contains("secret") && run.stderr.len() < 500, "{}", run.stderr);
        assert!(!dir.path().join("c").exists());
    }
}
