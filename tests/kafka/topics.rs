//! `toolgate topics`, as an operator uses it.

use std::path::Path;
use std::process::{Command, Output};

use toolgate::log::partitioner::partition_of;

use crate::support::{Cluster, send, text};

/// Runs the program with a configuration for this cluster.
pub(crate) fn toolgate(home: &Path, config: &str, args: &[&str]) -> Output {
    let file = home.join("toolgate.toml");
    std::fs::write(&file, config).expect("a configuration");
    Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .args(["--config", &file.to_string_lossy()])
        .args(args)
        .output()
        .expect("toolgate runs")
}

#[test]
fn an_empty_cluster_is_made_fit_and_a_spoilt_one_is_refused() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let home = tempfile::tempdir().unwrap();
    let config = format!(
        "[log]\nkind = \"kafka\"\n[kafka]\nbootstrap_servers = \"{}\"\nreplication_factor = 1\nmin_insync_replicas = 1\n",
        cluster.servers()
    );
    let run = |args: &[&str]| toolgate(home.path(), &config, args);

    let verify = run(&["topics", "verify"]);
    assert_eq!(verify.status.code(), Some(1));
    assert_eq!(text(&verify.stdout).matches("is missing").count(), 7, "{}", text(&verify.stdout));
    let started = run(&["run"]);
    assert_eq!(started.status.code(), Some(1));
    assert!(text(&started.stderr).contains("tool.responses is missing"), "{}", text(&started.stderr));

    let plan = run(&["topics", "plan"]);
    assert_eq!(text(&plan.stdout).lines().filter(|line| line.starts_with("create")).count(), 7);
    let apply = run(&["topics", "apply"]);
    assert_eq!(apply.status.code(), Some(0), "{}{}", text(&apply.stdout), text(&apply.stderr));
    assert_eq!(text(&run(&["topics", "plan"]).stdout), "");

    // A producer that partitions as librdkafka does by default: `request-1` is at home on another partition.
    let key = "request-1";
    let elsewhere = (partition_of(key.as_bytes(), 4).0 + 1) % 4;
    let producer = cluster.producer();
    send(&producer, "tool.requests", elsewhere, key, b"request");
    send(&producer, "tool.requests", partition_of(b"request-2", 4).0, "request-2", b"request");
    let verify = run(&["topics", "verify"]);
    let said = text(&verify.stdout);
    assert!(said.contains("advice  tool.requests  1 of the newest 2 keys are not on the partition"), "{said}");
    assert_eq!(verify.status.code(), Some(0), "{said}");

    let other = config.replace("[kafka]", "[topics]\nbindings = \"spoilt\"\n[kafka]");
    cluster.make_topic("spoilt", 3, &[("cleanup.policy", "delete")]);
    let verify = toolgate(home.path(), &other, &["topics", "verify"]);
    let said = text(&verify.stdout);
    assert_eq!(verify.status.code(), Some(1));
    assert!(said.contains("has 3 partitions but `tool.requests` has 4"), "{said}");
    assert!(said.contains("cleanup.policy is delete, compact is wanted"), "{said}");
}
