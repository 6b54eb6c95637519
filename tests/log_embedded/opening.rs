//! What a log refuses to open, and what it says.

use std::fs;

use rusqlite::Connection;
use toolgate::log::LogError;
use toolgate::log::sqlite::{SqliteLog, WorkerOptions};

use crate::support::{client, options, refused, worker};

#[test]
fn a_newer_format_is_named_beside_ours() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    drop(worker(&path, 1));
    Connection::open(&path).and_then(|c| c.pragma_update(None, "user_version", 7)).expect("the file can be changed");
    refused(SqliteLog::open_worker(&path, options(1)), &["a.log", "format 7", "reads format 1"]);
    refused(SqliteLog::open_client(&path, None), &["format 7"]);
}

#[test]
fn what_is_not_a_log_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("notes.txt");
    for content in ["short".to_owned(), "long ".repeat(10_000)] {
        fs::write(&text, &content).expect("a text file");
        refused(SqliteLog::open_worker(&text, options(1)), &["notes.txt", "not a toolgate log", "not a SQLite file"]);
        assert_eq!(fs::read_to_string(&text).expect("still there"), content);
    }
    let other = folder.path().join("other.db");
    Connection::open(&other).and_then(|c| c.execute_batch("CREATE TABLE t (x)")).expect("a database");
    refused(SqliteLog::open_worker(&other, options(1)), &["a SQLite database of something else"]);
    refused(SqliteLog::open_client(&other, Some(1)), &["a SQLite database of something else"]);
}

#[test]
fn a_missing_directory_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nowhere/a.log");
    let error = refused(SqliteLog::open_worker(&path, options(1)), &["nowhere does not exist", "create it"]);
    assert!(matches!(error, LogError::NoDirectory { .. }));
}

#[test]
fn a_client_creates_a_log_only_when_told_how_many_partitions() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let error = refused(SqliteLog::open_client(&path, None), &["a.log", "start a worker first"]);
    assert!(matches!(error, LogError::Missing { .. }));
    assert!(!path.exists());
    assert_eq!(SqliteLog::open_client(&path, Some(3)).expect("created").partitions(), 3);
    assert_eq!(SqliteLog::open_client(&path, Some(5)).expect("there").partitions(), 3, "the file decides");
    assert_eq!(client(&path).partitions(), 3);
}

#[test]
fn partitions_and_group_must_be_those_of_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    drop(worker(&path, 2));
    refused(SqliteLog::open_worker(&path, options(3)), &["has 2 partitions", "3 are configured"]);
    let other = WorkerOptions { group: "other".to_owned(), ..options(2) };
    refused(SqliteLog::open_worker(&path, other), &["`test`", "`other`"]);
    for count in [0, -1, 1025] {
        let path = folder.path().join("b.log");
        refused(SqliteLog::open_worker(&path, options(count)), &["1 to 1024"]);
    }
}

#[test]
fn a_second_worker_learns_which_process_has_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let first = worker(&path, 1);
    let process = format!("(process {})", std::process::id());
    refused(SqliteLog::open_worker(&path, options(1)), &["in use by", &process, "one worker owns a log"]);
    drop(first);
    worker(&path, 1);
}

#[test]
fn many_openers_at_once_create_one_log() {
    let folder = tempfile::tempdir().expect("a folder");
    for round in 0..20 {
        let path = folder.path().join(format!("{round}.log"));
        let counts: Vec<i32> = std::thread::scope(|scope| {
            let open = |n: i32| SqliteLog::open_client(&path, Some(n)).expect("opens").partitions();
            let openers: Vec<_> = (1..=4).map(|n| scope.spawn(move || open(n))).collect();
            openers.into_iter().map(|opener| opener.join().expect("no panic")).collect()
        });
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    }
}
