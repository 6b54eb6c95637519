//! What `examples/ci` and the hooks run is run here: a workflow that nobody tries is a guess.

use crate::diff::copy;
use crate::support::schemas;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SCHEMA: &str = "schemas/tools/ci.job_status/v1/data.schema.json";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A repository of contracts with one commit, and toolgate on its PATH.
struct Repository {
    dir: tempfile::TempDir,
}

impl Repository {
    fn new() -> Repository {
        let repository = Repository { dir: tempfile::tempdir().unwrap() };
        copy(&schemas().join("tools/ci.job_status/v1"), &repository.path("schemas/tools/ci.job_status/v1"));
        std::fs::create_dir(repository.path("ci")).unwrap();
        std::fs::copy(root().join("examples/ci/contract-diff.sh"), repository.path("ci/contract-diff.sh")).unwrap();
        repository.git("git init --quiet .");
        repository.commit();
        repository
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn git(&self, command: &str) -> String {
        let output = self.sh(command);
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self) -> String {
        self.git("git add --all && git -c user.name=a -c user.email=a@example.test -c commit.gpgsign=false commit --quiet --message change");
        self.git("git rev-parse HEAD")
    }

    fn sh(&self, command: &str) -> Output {
        let bin = Path::new(env!("CARGO_BIN_EXE_toolgate")).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        Command::new("sh")
            .args(["-e", "-c", command])
            .current_dir(self.dir.path())
            .env("PATH", path)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GITHUB_STEP_SUMMARY", self.path("summary.md"))
            .env_remove("GIT_DIR")
            .env_remove("GIT_INDEX_FILE")
            .output()
            .unwrap()
    }

    fn widen(&self) {
        let text = std::fs::read_to_string(self.path(SCHEMA)).unwrap();
        std::fs::write(self.path(SCHEMA), text.replace(r#""cancelled"]"#, r#""cancelled", "paused"]"#)).unwrap();
    }
}

/// The values of a key in a YAML file, in order, without a parser that the workflow does not need either.
fn values(file: &str, key: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    let value = |line: &str| line.trim_start_matches([' ', '-']).strip_prefix(key).map(|rest| rest.trim().to_owned());
    text.lines().filter_map(value).collect()
}

#[test]
fn the_workflow_passes_a_sound_repository_and_stops_a_change_without_a_version() {
    let repository = Repository::new();
    let base = repository.git("git rev-parse HEAD");
    let steps = values("examples/ci/contracts.yml", "run:");
    let [install, check, diff] = steps.as_slice() else { panic!("{steps:?}") };
    assert!(install.starts_with("cargo install --locked"), "{install}");
    let run = |step: &str| repository.sh(&format!("BASE={base}\n{step}")).status.code();
    assert_eq!((run(check), run(diff)), (Some(0), Some(0)));
    repository.widen();
    repository.commit();
    assert_eq!((run(check), run(diff)), (Some(0), Some(4)));
    let summary = std::fs::read_to_string(repository.path("summary.md")).unwrap();
    assert!(summary.contains("## Contract changes: a new version is needed"), "{summary}");
    assert!(summary.contains("`schema.enum.widened`"), "{summary}");
}

#[test]
fn actions_are_pinned_to_a_version() {
    let used = values("examples/ci/contracts.yml", "uses:");
    assert!(!used.is_empty());
    for action in used {
        let version = action.split_once("@v").map(|(_, version)| version.split('.').count());
        assert_eq!(version, Some(3), "{action} is not pinned to a full version");
    }
}

#[test]
fn the_hooks_stop_a_commit() {
    let repository = Repository::new();
    let (ids, entries) = (values(".pre-commit-hooks.yaml", "id:"), values(".pre-commit-hooks.yaml", "entry:"));
    assert_eq!(ids, values("examples/ci/pre-commit-config.yaml", "id:"), "the example names the hooks that there are");
    let [check, diff] = entries.as_slice() else { panic!("{entries:?}") };
    // A hook of language `script` is a path in the repository that defines it.
    let diff = format!("{}/{diff}", root().display());
    let run = |hook: &str| repository.sh(hook).status.code();
    assert_eq!((run(check), run(&diff)), (Some(0), Some(0)));
    repository.widen();
    assert_eq!((run(check), run(&diff)), (Some(0), Some(4)));
    std::fs::write(repository.path(SCHEMA), "{}").unwrap();
    assert_eq!((run(check), run(&diff)), (Some(3), Some(3)));
}

#[test]
fn the_first_commit_has_nothing_to_compare_with() {
    let repository = Repository::new();
    let output = repository.sh("git mv schemas contracts && sh ci/contract-diff.sh HEAD contracts");
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing to compare with"));
}
