//! Bad input has a clear error: what is wrong, where, and what to do.

use crate::support::{schemas, toolgate, write};
use std::path::Path;

const CONTRACT: &str = "tool: build.status
version: 1
status: active
about: State of one build.
owner: {team: builds, contact: \"#builds\"}
source: {kind: http_json}
adapt:
  build_id: {from: /id, as: string}
  state: {from: /result, map: {SUCCESS: succeeded, FAILURE: failed}}
bind:
  - {data: /build_id, equals: /arguments/build_id}
";
const SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "required": ["build_id", "state"],
  "properties": {
    "build_id": {"type": "string", "pattern": "^[0-9]{1,20}$"},
    "state": {"enum": ["succeeded", "failed"]}
  },
  "additionalProperties": false
}"#;
const DEFAULT: &str = r#"{"now":"2026-12-01T12:00:00Z","request":{"tool":"build.status","request_id":"req-0001","issued_at":"2026-12-01T11:59:00Z","deadline":"2026-12-01T12:01:00Z","arguments":{"build_id":"812"}},"transport":{"content_type":"application/json","status":200}}"#;

fn pack(dir: &Path, contract: &str, schema: &str) {
    let base = "tools/build.status/v1";
    write(dir, &format!("{base}/contract.yaml"), contract);
    write(dir, &format!("{base}/data.schema.json"), schema);
    write(dir, &format!("{base}/fixtures/default.json"), DEFAULT);
    write(dir, &format!("{base}/fixtures/accept/done/response.json"), r#"{"id":812,"result":"SUCCESS","log":"..."}"#);
    write(
        dir,
        &format!("{base}/fixtures/accept/done/case.json"),
        r#"{"expect":{"data":{"build_id":"812","state":"succeeded"}}}"#,
    );
    write(dir, &format!("{base}/fixtures/reject/aborted/response.json"), r#"{"id":812,"result":"ABORTED"}"#);
    write(
        dir,
        &format!("{base}/fixtures/reject/aborted/case.json"),
        r#"{"expect":{"reason":"ADAPTER_MISMATCH","at":"/result","keyword":"map"}}"#,
    );
}

#[track_caller]
fn check(contract: &str, schema: &str, said: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    pack(dir.path(), contract, schema);
    let run = toolgate(dir.path(), &["check", "."]);
    assert_eq!(run.code, if said.is_empty() { 0 } else { 3 }, "{}{}", run.stdout, run.stderr);
    for part in said {
        assert!(run.stdout.contains(part), "{part:?} is not in:\n{}", run.stdout);
    }
}

#[test]
fn a_newcomers_contract_is_sound() {
    check(CONTRACT, SCHEMA, &[]);
}

#[test]
fn a_broken_contract_is_told_by_file_line_pointer_and_help() {
    check(&CONTRACT.replace("version: 1", "version: one"), SCHEMA, &["contract.yaml:2:10", "/version"]);
    check(&CONTRACT.replace("status: active", "status: [active"), SCHEMA, &["contract.yaml:"]);
    check(&CONTRACT.replace("kind: http_json", "kind: carrier_pigeon"), SCHEMA, &["contract.yaml:6", "/source/kind"]);
    check(&CONTRACT.replace("equals: /arguments", "equal: /arguments"), SCHEMA, &["contract.yaml:11", "/bind/0"]);
    check(
        &CONTRACT.replace("data: /build_id", "data: /biuld_id"),
        SCHEMA,
        &["/bind/0/data", "/biuld_id is not a place", "help:"],
    );
    check(
        &CONTRACT.replace("  state: {from: /result, map: {SUCCESS: succeeded, FAILURE: failed}}\n", ""),
        SCHEMA,
        &["state is required"],
    );
    check(
        &format!(
            "{CONTRACT}retry: {{on: [UNAUTHORIZED], attempts_max: 2, budget: 1m, backoff: {{initial: 1s, max: 2s}}}}\n"
        ),
        SCHEMA,
        &["UNAUTHORIZED can't be retried", "/retry/on/0"],
    );
    check(
        &CONTRACT.replace("bind:\n  - {data: /build_id, equals: /arguments/build_id}\n", ""),
        SCHEMA,
        &["bound_by: correlation"],
    );
}

#[test]
fn several_mistakes_are_told_at_once() {
    let contract = CONTRACT
        .replace("as: string", "as: strnig")
        .replace("version: 1", "version: 0")
        .replace("team: builds", "taem: builds");
    check(&contract, SCHEMA, &["/version", "/owner", "/adapt"]);
}

#[test]
fn a_schema_with_a_typo_is_refused_and_not_ignored() {
    check(
        CONTRACT,
        &SCHEMA.replace("\"required\"", "\"requried\""),
        &["data.schema.json", "requried is not a keyword", "did you mean required?"],
    );
    check(
        CONTRACT,
        &SCHEMA.replace("\"additionalProperties\": false", "\"additionalProperties\": true"),
        &["additionalProperties"],
    );
    check(CONTRACT, &SCHEMA.replace(", \"pattern\": \"^[0-9]{1,20}$\"", ""), &["/properties/build_id", "no bound"]);
    check(CONTRACT, &SCHEMA.replace("^[0-9]{1,20}$", "^[0-9]+$"), &["/properties/build_id", "no bound"]);
    check(CONTRACT, &SCHEMA.replace("^[0-9]{1,20}$", "^[0-9{1,20}$"), &["/properties/build_id/pattern"]);
    check(
        CONTRACT,
        &SCHEMA.replace("  \"type\": \"object\",", "  \"type\": \"object\",\n  \"type\": \"object\","),
        &["data.schema.json:4", "DUPLICATE_MEMBER"],
    );
    check(
        CONTRACT,
        &SCHEMA.replace("  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n", ""),
        &["$schema"],
    );
    check(CONTRACT, &SCHEMA[..SCHEMA.len() - 3], &["data.schema.json:", "INVALID_JSON"]);
}

#[test]
fn a_fixture_that_comes_out_otherwise_fails_the_pack() {
    let contract = CONTRACT.replace("FAILURE: failed", "FAILURE: failed, ABORTED: failed");
    check(&contract, SCHEMA, &["fixtures/reject/aborted", "expected refused ADAPTER_MISMATCH", "was accepted"]);
}

#[test]
fn a_missing_folder_is_named() {
    let dir = tempfile::tempdir().unwrap();
    toolgate(dir.path(), &["check", "nowhere"]).fails(1, &["nowhere"]);
    write(dir.path(), "empty/readme.txt", "");
    toolgate(dir.path(), &["check", "empty"]).fails(1, &["no contract found"]);
    toolgate(dir.path(), &["vet", "--cases", "empty", "--schemas", schemas().to_str().unwrap()])
        .fails(1, &["manifest.json"]);
}

#[test]
fn a_bad_request_file_names_the_member() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "response.json", "{}");
    for (request, said) in [
        ("{", "ends too early"),
        (r#"{"tool":"review_status"}"#, "request_id"),
        (r#"{"tool":"review_status","request_id":"req.J7q94MkP","issued_at":"today","deadline":"x"}"#, "issued_at"),
        (r#"{"tool":"review_status","request_id":"a","request_id":"b"}"#, "two members of the same name"),
        (r#"{"tool":"review_status","request_id":"req.J7q94MkP","issuedat":"x"}"#, "unknown member"),
    ] {
        write(dir.path(), "request.json", request);
        let args = [
            "vet",
            "--request",
            "request.json",
            "--response",
            "response.json",
            "--schemas",
            schemas().to_str().unwrap(),
        ]
        .map(str::to_owned);
        toolgate(dir.path(), &args.each_ref().map(String::as_str)).fails(1, &["request.json", said]);
    }
}

#[test]
fn all_mistakes_of_a_configuration_are_reported_together() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        "toolgate.toml",
        "[log]\npath = \"x.db\"\npartitions = 0\n[worker]\npol_wait = \"1s\"\nskew = 5\n",
    );
    toolgate(dir.path(), &["config", "check"])
        .fails(78, &["toolgate.toml:3", "log.partitions", "pol_wait", "worker.skew"]);
    toolgate(dir.path(), &["run"]).fails(78, &["log.partitions"]);
    assert!(!dir.path().join("x.db").exists(), "nothing is opened before the configuration is right");
}

#[test]
fn usage_mistakes_end_with_2() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(toolgate(dir.path(), &["vet"]).code, 2);
    assert_eq!(toolgate(dir.path(), &["frobnicate"]).code, 2);
}
