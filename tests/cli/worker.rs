//! `run`, `send`, `tail`: a worker as a process, and what can be wrong with its log.

use crate::support::{Run, command, eventually, finished, schemas, toolgate, write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use toolgate::time::Timestamp;

fn configured(dir: &Path) {
    let text = format!("[log]\npath = \"t.db\"\npartitions = 2\n[contracts]\ndir = {:?}\n", schemas());
    write(dir, "toolgate.toml", &text);
}

#[allow(clippy::disallowed_methods, reason = "requests need a deadline to come")]
fn times() -> (String, String) {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = Timestamp::from_unix_millis(since.as_millis() as i64).unwrap();
    (now.to_string(), now.saturating_add_millis(3_600_000).to_string())
}

fn request(id: &str) -> String {
    let (issued, deadline) = times();
    format!(
        r#"{{"tool":"review_status","request_id":"{id}","issued_at":"{issued}","deadline":"{deadline}","arguments":{{"change_id":"CR-1"}}}}"#
    )
}

fn response(id: &str, decision: &str) -> String {
    format!(
        r#"{{"tool":"review_status","request_id":"{id}","status":200,"content_type":"application/json","body":{{"tool":"review_status","request_id":"{id}","outcome":"success","data":{{"change_id":"CR-1","decision":"{decision}","reviewed_by":"m.osei"}}}}}}"#
    )
}

fn start(dir: &Path) -> Child {
    command(dir).arg("run").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn terminate(child: Child) -> Run {
    let ended = Command::new("bash").args(["-c", "kill -TERM \"$0\"", &child.id().to_string()]).status().unwrap();
    assert!(ended.success());
    finished(child.wait_with_output().unwrap())
}

fn results(dir: &Path) -> String {
    toolgate(dir, &["tail", "results"]).stdout
}

#[test]
fn a_day_of_one_worker_from_send_to_tail() {
    let dir = tempfile::tempdir().unwrap();
    configured(dir.path());
    write(dir.path(), "requests.ndjson", &format!("{}\n{}\n", request("req.0000001"), request("req.0000002")));
    write(
        dir.path(),
        "responses.ndjson",
        &format!("{}\n\n{}\n", response("req.0000001", "approved"), response("req.0000002", "APPROVED")),
    );
    toolgate(dir.path(), &["send", "requests", "requests.ndjson"]).works();
    toolgate(dir.path(), &["send", "responses", "responses.ndjson"]).works();
    toolgate(dir.path(), &["run", "--until-idle"]).works();
    let results = results(dir.path());
    assert!(results.contains(r#""request_id":"req.0000001","outcome":"success""#), "{results}");
    assert!(
        results.contains(
            r#""request_id":"req.0000002","outcome":"failure","error":{"code":"INVALID_RESPONSE","retryable":false}"#
        ),
        "{results}"
    );
    let quarantine = toolgate(dir.path(), &["tail", "quarantine", "--json"]).stdout;
    assert!(quarantine.contains("\"SCHEMA_VIOLATION\"") && quarantine.contains("/data/decision"), "{quarantine}");
    assert_eq!(toolgate(dir.path(), &["tail", "audit"]).works().lines().count(), 2);
}

#[test]
fn records_are_judged_while_the_worker_runs_and_sigterm_drains_it() {
    let dir = tempfile::tempdir().unwrap();
    configured(dir.path());
    write(dir.path(), "requests.ndjson", &request("req.0000001"));
    write(dir.path(), "responses.ndjson", &response("req.0000001", "approved"));
    toolgate(dir.path(), &["send", "requests", "requests.ndjson"]).works();
    let child = start(dir.path());
    toolgate(dir.path(), &["send", "responses", "responses.ndjson"]).works();
    eventually("the result", || results(dir.path()).contains("req.0000001"));
    let run = terminate(child);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("worker stopped"), "{}", run.stderr);
}

#[test]
fn a_second_worker_on_the_same_log_is_told_who_owns_it() {
    let dir = tempfile::tempdir().unwrap();
    configured(dir.path());
    let child = start(dir.path());
    eventually("the lock", || dir.path().join("t.db.lock").exists());
    eventually("the log", || toolgate(dir.path(), &["tail", "audit"]).code == 0);
    let pid = child.id().to_string();
    toolgate(dir.path(), &["run", "--until-idle"]).fails(1, &["in use by", &pid]);
    assert_eq!(terminate(child).code, 0);
}

#[test]
fn a_file_that_is_no_log_or_of_another_version_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    configured(dir.path());
    write(dir.path(), "t.db", "this is a shopping list, not a log of any kind");
    toolgate(dir.path(), &["run", "--until-idle"]).fails(1, &["t.db", "not a toolgate log"]);
    std::fs::remove_file(dir.path().join("t.db")).unwrap();
    toolgate(dir.path(), &["run", "--until-idle"]).works();
    let connection = rusqlite::Connection::open(dir.path().join("t.db")).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    toolgate(dir.path(), &["run", "--until-idle"]).fails(1, &["written in format 99"]);
}

#[test]
fn a_log_in_a_folder_that_does_not_exist_is_a_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    configured(dir.path());
    toolgate(dir.path(), &["run", "--until-idle", "--log", "nowhere/t.db"])
        .fails(1, &["the directory nowhere does not exist"]);
    toolgate(dir.path(), &["tail", "results"]).fails(1, &["there is no such log"]);
}

#[test]
fn a_bad_line_is_named_and_the_lines_before_it_are_sent() {
    let dir = tempfile::tempdir().unwrap();
    configured(dir.path());
    write(dir.path(), "requests.ndjson", &format!("{}\n{{\"tool\":\"review_status\"}}\n", request("req.0000001")));
    toolgate(dir.path(), &["send", "requests", "requests.ndjson"])
        .fails(1, &["requests.ndjson:2", "request_id", "1 records were sent"]);
    assert_eq!(toolgate(dir.path(), &["tail", "requests"]).works().lines().count(), 1);
    toolgate(dir.path(), &["tail", "nonsense"]).fails(1, &["is no topic"]);
}

#[test]
fn no_line_of_the_log_holds_a_byte_of_a_refused_response() {
    let dir = tempfile::tempdir().unwrap();
    configured(dir.path());
    let hostile = response("req.0000001", "CANARY-7f3a").replace("reviewed_by", "canary_member");
    write(dir.path(), "requests.ndjson", &request("req.0000001"));
    write(dir.path(), "responses.ndjson", &hostile);
    toolgate(dir.path(), &["send", "requests", "requests.ndjson"]).works();
    toolgate(dir.path(), &["send", "responses", "responses.ndjson"]).works();
    let run = toolgate(dir.path(), &["run", "--until-idle"]);
    run.works();
    for text in [&run.stderr, &results(dir.path()), &toolgate(dir.path(), &["tail", "quarantine", "--json"]).stdout] {
        assert!(!text.contains("CANARY") && !text.contains("canary"), "{text}");
    }
    assert!(run.stderr.contains("SCHEMA_VIOLATION"), "{}", run.stderr);
}

#[test]
fn the_demo_plays_its_day() {
    let root = schemas().parent().unwrap().to_owned();
    let run = toolgate(&root, &["demo"]);
    let text = run.works();
    for part in [
        "accepted",
        "refused DUPLICATE_MEMBER",
        "BINDING_MISMATCH",
        "STALE",
        "attempt 2",
        "EXPIRED",
        "the agent saw",
        "Where to look next",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    assert!(!text.contains('\x1b'), "plain where it is piped");
}
