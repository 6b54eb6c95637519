//! Workers that freeze, and brokers that go away.

use std::time::{Duration, Instant};

use crate::kills::{Workers, wait_for_audits};
use crate::load;
use crate::log::options;
use crate::support::{Cluster, until};

const PARTITIONS: i32 = 6;

/// Offers in small parts, so that workers always have something under way.
fn offer_slowly(cluster: &Cluster, numbers: std::ops::Range<usize>) {
    let producer = cluster.producer();
    for from in numbers.clone().step_by(100) {
        load::offer(&producer, PARTITIONS, from..(from + 100).min(numbers.end), 600_000);
    }
}

/// A worker is frozen for longer than the group waits. The others take over; when it thaws, what it had begun is
/// refused, and it goes on as a member like any other.
#[test]
fn a_worker_that_thaws_does_nothing_twice() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    cluster.make_topics(&options(&cluster, "g", "unused"), PARTITIONS);
    let mut workers = Workers::start(&cluster, 3, "transaction_timeout = \"4s\"\n");
    offer_slowly(&cluster, 0..600);
    for (round, victim) in [0, 1, 2].into_iter().enumerate() {
        let from = 600 + round * 800;
        offer_slowly(&cluster, from..from + 200);
        workers.signal(victim, "STOP");
        offer_slowly(&cluster, from + 200..from + 800);
        // The session lasts three seconds; all has been decided by the others before it thaws.
        wait_for_audits(&cluster, &workers, load::audits(from + 700));
        workers.signal(victim, "CONT");
    }
    wait_for_audits(&cluster, &workers, load::audits(3000));
    // Whoever was frozen last gets the time to do it wrong.
    std::thread::sleep(Duration::from_secs(2));
    workers.drain();
    load::account(&load::read_committed(&cluster), 3000);
}

/// One broker after another is killed and comes back, leaders and coordinators among them; then all of them at once.
#[test]
#[allow(clippy::disallowed_methods, reason = "the time of recovery is printed")]
fn nothing_is_lost_or_done_twice_when_brokers_are_killed() {
    let Some(cluster) = Cluster::start(&["--nodes", "3"]) else { return };
    cluster.make_topics(&options(&cluster, "g", "unused"), PARTITIONS);
    let mut workers = Workers::start(&cluster, 2, "");
    let mut offered = 0;
    for node in [1, 2, 3] {
        offer_slowly(&cluster, offered..offered + 300);
        cluster.node("kill", node);
        let started = Instant::now();
        offer_slowly(&cluster, offered + 300..offered + 400);
        offered += 400;
        wait_for_audits(&cluster, &workers, load::audits(offered));
        println!("node {node} killed: all offered and decided after {:?}", started.elapsed());
        cluster.node("start", node);
        cluster.wait_until_it_answers();
        // Two replicas must have a record: one that is still behind when the next broker goes would stop everybody.
        until("no replica is behind", Duration::from_secs(60), || cluster.is_in_sync());
    }
    offer_slowly(&cluster, offered..offered + 300);
    for node in [1, 2, 3] {
        cluster.node("kill", node);
    }
    let started = Instant::now();
    cluster.start_all();
    offer_slowly(&cluster, offered + 300..offered + 400);
    wait_for_audits(&cluster, &workers, load::audits(offered + 400));
    println!("all killed and started: all decided after {:?}", started.elapsed());
    workers.drain();
    until("no replica is behind", Duration::from_secs(30), || cluster.is_in_sync());
    load::account(&load::read_committed(&cluster), offered + 400);
}
