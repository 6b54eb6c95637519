//! Granting and revoking on a broker, with Kafka's own administrator: ours knows nothing of rights.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use toolgate::log::kafka::KafkaOptions;
use toolgate::log::kafka::rights::{RIGHTS, Resource};

use crate::support::Cluster;

/// An administrator that waits for orders.
pub(crate) struct Rights {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Rights {
    pub(crate) fn of(cluster: &Cluster) -> Rights {
        let mut process = Command::new("java")
            .args(["-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp"])
            .arg(format!("{}/*", cluster.libs()))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka/Rights.java"))
            .arg(cluster.servers())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("java runs");
        let orders = process.stdin.take().expect("its input");
        let answers = BufReader::new(process.stdout.take().expect("its output"));
        Rights { process, orders, answers }
    }

    fn order(&mut self, what: &str, principal: &str, (kind, name): (&str, &str), operation: &str) {
        let kind = kind.to_uppercase().replace('-', "_");
        writeln!(self.orders, "{what}\t{principal}\t{kind}\t{name}\t{operation}").expect("it listens");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("it answers");
        assert_eq!(answer.trim(), "done", "{what} {principal} {kind} {name} {operation}");
    }

    pub(crate) fn grant(&mut self, principal: &str, resource: (&str, &str), operation: &str) {
        self.order("grant", principal, resource, operation);
    }

    pub(crate) fn revoke(&mut self, principal: &str, resource: (&str, &str), operation: &str) {
        self.order("revoke", principal, resource, operation);
    }

    /// Everything in the table that people are told to grant, and nothing else.
    pub(crate) fn grant_all(&mut self, principal: &str, options: &KafkaOptions) {
        for (resource, operation) in all() {
            let (kind, name) = resource.named(options);
            self.grant(principal, (kind, &name), operation);
        }
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The table, an operation each.
pub(crate) fn all() -> Vec<(Resource, &'static str)> {
    RIGHTS.iter().flat_map(|right| right.operations.iter().map(|operation| (right.resource, *operation))).collect()
}
