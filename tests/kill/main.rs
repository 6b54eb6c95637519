//! Promise P4 on the embedded log: a worker is killed with SIGKILL at random moments under load,
//! and afterwards every record is accounted for.
//!
//! The parent appends requests and responses while a child process, this same test binary, runs
//! the worker. `TOOLGATE_KILLS` says how often the child is killed (50 unless told otherwise).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

mod account;
mod fates;
mod load;
mod worker;

use std::time::{Duration, Instant};

/// The child's part; without its variable this test has nothing to do.
#[test]
fn child() {
    if let Ok(path) = std::env::var(worker::LOG_VARIABLE) {
        worker::run_until_killed(path.as_ref());
    }
}

#[test]
fn nothing_is_lost_and_nothing_comes_twice_however_often_the_worker_is_killed() {
    let kills: u64 =
        std::env::var("TOOLGATE_KILLS").ok().map_or(50, |text| text.parse().expect("TOOLGATE_KILLS is a number"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kill.db");
    let mut load = load::Load::new(&path, 0x5EED);
    let mut survived = 0;
    for kill in 0..kills {
        let mut child = worker::spawn(&path);
        let first = 20 + load.random(60);
        load.append(first);
        let before = load.settled();
        // The moment is random; every second time it falls into work for certain.
        if kill % 2 == 0 {
            let deadline = Instant::now() + Duration::from_secs(20);
            while load.settled() == before && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        std::thread::sleep(Duration::from_millis(load.random(20) as u64));
        let second = load.random(40);
        load.append(second);
        child.kill().unwrap();
        child.wait().unwrap();
        survived += usize::from(load.settled() > before);
    }
    assert!(survived as u64 >= kills / 3, "the worker got nowhere between the kills: {survived} of {kills}");
    let mut child = worker::spawn(&path);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !load.is_done() {
        assert!(Instant::now() < deadline, "not done: {}", load.missing());
        load.reissue();
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    account::check(&path, &load);
}
