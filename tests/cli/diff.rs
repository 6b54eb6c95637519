//! `contract diff`: what a person who changes a contract is told, and what stops a pull request.

use crate::support::{Run, schemas, toolgate, write};
use std::path::{Path, PathBuf};

const TOOL: &str = "tools/ci.job_status/v1";

/// Two folders of contracts with one contract in each, equal so far.
struct Pair {
    dir: tempfile::TempDir,
}

impl Pair {
    fn new() -> Pair {
        let pair = Pair { dir: tempfile::tempdir().unwrap() };
        for side in ["old", "new"] {
            copy(&schemas().join(TOOL), &pair.path(side).join(TOOL));
        }
        pair
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.path("new").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from} is not in {file}");
        std::fs::write(&path, text.replace(from, to)).unwrap();
    }

    fn diff(&self, more: &[&str]) -> Run {
        toolgate(self.dir.path(), &[&["contract", "diff", "old", "new"], more].concat())
    }
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            assert!(std::fs::copy(entry.path(), target).is_ok())
        }
    }
}

#[test]
fn what_means_the_same_is_no_change() {
    let pair = Pair::new();
    pair.edit(&format!("{TOOL}/contract.yaml"), "max_age: 5m", "max_age:   300s");
    pair.edit(&format!("{TOOL}/data.schema.json"), r#"["failed", "running","#, r#"["running", "failed","#);
    assert!(pair.diff(&[]).works().starts_with("ok: 1 compared, 0 differ"));
}

#[test]
fn a_wider_enum_needs_a_version_and_has_one_in_a_folder_of_its_own() {
    let pair = Pair::new();
    pair.edit(&format!("{TOOL}/data.schema.json"), r#""cancelled"]"#, r#""cancelled", "paused"]"#);
    let run = pair.diff(&[]);
    assert_eq!(run.code, 4, "{}{}", run.stdout, run.stderr);
    for part in ["needs a new version", "schema.enum.widened", "/properties/state/enum", "do: publish a new version"] {
        assert!(run.stdout.contains(part), "{part} is not in:\n{}", run.stdout);
    }
    // The same change as version 2, beside version 1 as it was.
    let next = pair.path("new/tools/ci.job_status/v2");
    copy(&pair.path("new").join(TOOL), &next);
    copy(&pair.path("old").join(TOOL), &pair.path("new").join(TOOL));
    let yaml = std::fs::read_to_string(next.join("contract.yaml")).unwrap();
    let shadow = yaml.replace("version: 1", "version: 2").replace("status: active", "status: shadow");
    std::fs::write(next.join("contract.yaml"), shadow).unwrap();
    let run = pair.diff(&[]);
    assert!(
        run.works().contains("ci.job_status@1 -> ci.job_status@2: has the new version that it needs"),
        "{}",
        run.stdout
    );
}

#[test]
fn what_both_make_of_fixtures_and_traffic_is_counted_and_named() {
    let pair = Pair::new();
    let loosened = "failed: failed, errored: failed, timed_out: failed, canceled: cancelled, paused: running";
    pair.edit(
        &format!("{TOOL}/contract.yaml"),
        "failed: failed, errored: failed, timed_out: failed, canceled: cancelled",
        loosened,
    );
    let body = r#"{\"api_version\":2,\"project\":{\"slug\":\"bluebird\"},\"run\":{\"id\":\"run_7Kd29QmXv4Lp\",\"status\":\"paused\"},\"observed_at\":\"2026-11-18T14:01:55Z\",\"note\":\"CANARY\"}"#;
    let request = r#"{"tool":"ci.job_status","request_id":"r1","issued_at":"2026-11-18T14:01:50Z","deadline":"2026-11-18T14:02:50Z","arguments":{"project_id":"bluebird","run_id":"run_7Kd29QmXv4Lp"}}"#;
    let line = format!(
        r#"{{"request":{request},"response":{{"tool":"ci.job_status","request_id":"r1","status":200,"content_type":"application/json","received_at":"2026-11-18T14:02:00Z","body":"{body}"}}}}"#
    );
    write(pair.dir.path(), "traffic.ndjson", &format!("\n{line}\n{line}\n"));
    for form in ["--json", "--markdown", "--examples=10"] {
        let run = pair.diff(&["--traffic", "traffic.ndjson", form]);
        assert_eq!(run.code, 4, "{}{}", run.stdout, run.stderr);
        for part in ["traffic.ndjson:2", "traffic.ndjson:3", "ADAPTER_MISMATCH", "adapt.map.added"] {
            assert!(run.stdout.contains(part), "{form}: {part} is not in:\n{}", run.stdout);
        }
        assert!(!run.stdout.contains("CANARY") && !run.stdout.contains("bluebird"), "{}", run.stdout);
    }
    let one = pair.diff(&["--traffic", "traffic.ndjson", "--json", "--examples", "1"]);
    let told: serde_json::Value = serde_json::from_str(&one.stdout).unwrap();
    assert_eq!((&told["newly_accepted"], &told["breaks"]), (&2.into(), &true.into()));
    assert_eq!(told["examples"].as_array().unwrap().len(), 1);
}

#[test]
fn a_bad_line_of_traffic_is_refused_with_its_place() {
    let pair = Pair::new();
    write(pair.dir.path(), "traffic.ndjson", "{\"request\":{}}\nnonsense\n");
    let run = pair.diff(&["--traffic", "traffic.ndjson"]);
    run.fails(2, &["traffic.ndjson:1: request.request_id: is missing", "traffic.ndjson:2: byte"]);
    assert!(run.stdout.is_empty());
}

#[test]
fn what_does_not_load_is_not_compared() {
    let pair = Pair::new();
    pair.edit(
        &format!("{TOOL}/data.schema.json"),
        r#""additionalProperties": false"#,
        r#""additionalProperties": true"#,
    );
    pair.diff(&[]).fails(3, &["a contract does not load", "data.schema.json"]);
    pair.diff(&["--json", "--markdown"]).fails(2, &["cannot be used with"]);
    toolgate(pair.dir.path(), &["contract", "diff", "old", "nowhere"]).fails(2, &["nowhere"]);
    let single = format!("old/{TOOL}");
    toolgate(pair.dir.path(), &["contract", "diff", &single, "old"]).fails(2, &["two of a kind"]);
}

#[test]
fn a_version_goes_once_it_is_retired() {
    let pair = Pair::new();
    copy(&schemas().join("tools/deploy.status/v1"), &pair.path("old/tools/deploy.status/v1"));
    let run = pair.diff(&[]);
    assert_eq!(run.code, 4, "{}", run.stdout);
    assert!(run.stdout.contains("deploy.status@1 -> nothing: gone while requests may still use it"), "{}", run.stdout);
    let yaml = pair.path("old/tools/deploy.status/v1/contract.yaml");
    let text = std::fs::read_to_string(&yaml).unwrap().replace("status: active", "status: retired");
    std::fs::write(&yaml, text).unwrap();
    assert!(pair.diff(&[]).works().contains("gone; it was retired"));
    // And a tool that is new breaks nobody.
    copy(&schemas().join("tools/policy.eval/v1"), &pair.path("new/tools/policy.eval/v1"));
    assert!(pair.diff(&[]).works().contains("nothing -> policy.eval@1: new"));
}

/// Names in a schema may come from anybody's pull request.
#[test]
fn hostile_names_steer_neither_a_terminal_nor_a_report() {
    let pair = Pair::new();
    let name = r#""x\u001b]0;t\u0007`|<img src=x>\n# @all \u202e""#;
    for side in ["old", "new"] {
        let dir = pair.path(side).join("tools/policy.eval/v1");
        copy(&schemas().join("tools/policy.eval/v1"), &dir);
        std::fs::remove_dir_all(pair.path(side).join("tools/ci.job_status")).unwrap();
    }
    let file = "tools/policy.eval/v1/data.schema.json";
    let text = std::fs::read_to_string(pair.path("new").join(file)).unwrap();
    let mut schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    let name: String = serde_json::from_str(name).unwrap();
    schema["properties"][name] = serde_json::json!({"enum": [1]});
    std::fs::write(pair.path("new").join(file), schema.to_string()).unwrap();
    for form in ["--markdown", "--examples=5"] {
        let run = pair.diff(&[form]);
        assert_eq!(run.code, 4, "{}{}", run.stdout, run.stderr);
        assert!(run.stdout.contains("schema.property.added"), "{}", run.stdout);
        let printable = run.stdout.chars().all(|c| c == '\n' || (' '..='~').contains(&c));
        assert!(printable, "{:?}", run.stdout);
        assert!(!run.stdout.lines().any(|line| line.starts_with("# @all")), "{}", run.stdout);
    }
    let spans = pair.diff(&["--markdown"]).stdout;
    let line = spans.lines().find(|line| line.contains("img src")).unwrap();
    let outside: String = line.split('`').step_by(2).collect();
    assert!(!outside.contains('<') && !outside.contains('@'), "{line}");
}
