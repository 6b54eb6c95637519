//! A worker that is killed loses nothing it committed, and leaves nothing half done.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use toolgate::log::{Commit, Event, Log, Offset, Outgoing, Topic};

use crate::support::{P0, all, client, outgoing, poll, transaction, worker};

/// Names the log to the child; without it the child's test does nothing.
const CHILD: &str = "TOOLGATE_TEST_LOG";
const KILLS: usize = 20;
const BATCH: usize = 10;
/// Far more than a child commits between the line we wait for and its death.
const REQUESTS_PER_ROUND: usize = 10_000;

/// The process to be killed: answers every request with a result that names its offset, and prints what it has
/// committed.
#[test]
fn child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let mut log = worker(Path::new(&path), 1);
    assert!(matches!(poll(&mut log), Event::Assigned(_)));
    let mut out = std::io::stdout();
    while let Event::Records(requests) = log.poll(BATCH, Duration::ZERO).expect("polls") {
        let results: Vec<Outgoing> = requests
            .iter()
            .flat_map(|request| {
                let offset = request.position.offset.0.to_be_bytes();
                [Topic::Results, Topic::Bindings].map(|topic| outgoing(topic, 0, "k", &offset))
            })
            .collect();
        let next = requests.last().map_or(0, |request| request.position.offset.0 + 1);
        let done = transaction(results, &[(Topic::Requests, 0, next)]);
        assert_eq!(log.commit(done).expect("commits"), Commit::Committed);
        writeln!(out, "committed {next}").expect("the parent listens");
    }
}

/// Runs a child until it has reported some commits, kills it, and returns the last offset it reported.
fn run_and_kill(path: &Path, reports: usize) -> i64 {
    let binary = std::env::current_exe().expect("this test's binary");
    let mut child = Command::new(binary)
        .args(["kill::child", "--exact", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the child starts");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut reported = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("committed ")?.parse().ok());
    let last = reported.nth(reports - 1);
    child.kill().expect("the child can be killed");
    // What it still wrote before it died counts as acknowledged too.
    let last = reported.last().or(last);
    child.wait().expect("the child ends");
    last.expect("the child committed before it was killed")
}

#[test]
fn records_and_offsets_agree_after_every_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    drop(worker(&path, 1));
    let mut before = 0;
    for kill in 0..KILLS {
        let requests = vec![outgoing(Topic::Requests, 0, "k", b""); REQUESTS_PER_ROUND];
        client(&path).append(requests, 1).expect("appends");
        let acknowledged = run_and_kill(&path, 1 + kill * 3);

        // A worker opens at once: the lock ended with its owner.
        let mut log = worker(&path, 1);
        let mut reader = client(&path);
        let committed = reader.committed(Topic::Requests, P0).expect("reads").map_or(0, |offset| offset.0);
        assert!(committed >= acknowledged && committed > before, "{committed}, acknowledged {acknowledged}");
        for topic in [Topic::Results, Topic::Bindings] {
            assert_eq!(log.end_offset(topic, P0).expect("reads"), Offset(committed), "{topic}");
            let records = all(&mut reader, topic, 0);
            assert_eq!(records.len() as i64, committed, "{topic}");
            for (index, record) in (0_i64..).zip(&records) {
                assert_eq!(record.position.offset, Offset(index));
                assert_eq!(record.value.as_deref(), Some(index.to_be_bytes().as_slice()), "{topic}");
            }
        }
        before = committed;
    }
}
