//! Workers that come and go under load, and responses that are read long before their requests.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::kills::{Workers, wait_for_audits};
use crate::load;
use crate::log::options;
use crate::support::{Cluster, until};

const PARTITIONS: i32 = 6;
const PATIENCE: Duration = Duration::from_secs(90);

/// Offers from a thread of its own until it is told to stop; returns how many it has offered.
fn under_load(cluster: &Cluster, from: usize, meanwhile: impl FnOnce()) -> usize {
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let offering = scope.spawn(|| {
            let (producer, mut offered) = (cluster.producer(), from);
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                offer(&producer, offered..offered + 50);
                offered += 50;
            }
            offered
        });
        // Even where `meanwhile` fails the other thread must end, or the test would not.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(meanwhile));
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        let offered = offering.join().expect("the load was offered");
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        offered
    })
}

fn offer(producer: &rdkafka::producer::BaseProducer, numbers: Range<usize>) {
    load::offer(producer, PARTITIONS, numbers, 600_000);
}

/// From one worker to three and back to one, with something under way all the time.
fn one_three_one(config: &str) {
    let Some(cluster) = Cluster::start(&[]) else { return };
    cluster.make_topics(&options(&cluster, "g", "unused"), PARTITIONS);
    let mut workers = Workers::start(&cluster, 1, config);
    let alone = |workers: &Workers| until("one has all", PATIENCE, || workers.shares()[0] == Some(6));
    let mut offered = under_load(&cluster, 0, || alone(&workers));
    offered = under_load(&cluster, offered, || {
        workers.add();
        workers.add();
        until("each has its share", PATIENCE, || workers.shares() == [Some(2); 3]);
    });
    offered = under_load(&cluster, offered, || {
        workers.drain_one(1);
        workers.drain_one(2);
        alone(&workers);
    });
    wait_for_audits(&cluster, &workers, load::audits(offered));
    workers.drain();
    load::account(&load::read_committed(&cluster), offered);
    println!("{offered} requests");
}

#[test]
fn nothing_is_lost_or_done_twice_when_shares_move_under_range() {
    one_three_one("assignor = \"range\"\nstatic_membership = false\n");
}

#[test]
fn nothing_is_lost_or_done_twice_when_shares_move_under_cooperative_sticky() {
    one_three_one("assignor = \"cooperative-sticky\"\nstatic_membership = false\n");
}

/// KIP-848, and static membership: the broker waits for those who left under their name until their session is over.
#[test]
fn nothing_is_lost_or_done_twice_when_the_broker_moves_shares() {
    one_three_one("group_protocol = \"consumer\"\n");
}

/// At most three requests are read for each response, and three times as many others are in front of those that are
/// answered: every response is read long before its request.
#[test]
#[allow(clippy::disallowed_methods, reason = "the time of a refusal is bounded")]
fn responses_that_are_read_before_their_requests_wait_for_them() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    cluster.make_topics(&options(&cluster, "g", "unused"), PARTITIONS);
    let producer = cluster.producer();
    let others = 0..30_000;
    others.clone().for_each(|number| load::announce(&producer, PARTITIONS, number, 600_000));
    offer(&producer, 30_000..40_000);
    let mut workers = Workers::start(&cluster, 1, "");
    // Of the others only those are decided that nobody would have answered.
    let unanswered = others.clone().filter(|number| load::fate(*number) == load::Fate::Expired).count();
    let first = load::audits(40_000) - load::audits(30_000) + unanswered;
    let (counter, mut seen) = (cluster.counter("tool.audit"), 0);
    until("all are decided", Duration::from_secs(120), || {
        seen += counter.count_more();
        seen >= first
    });
    assert_eq!(seen, first);
    // A response without a request is refused at once, and not by a timer.
    let started = Instant::now();
    load::respond_to_nobody(&producer, PARTITIONS);
    until("it is refused", Duration::from_secs(5), || counter.count_more() == 1);
    println!("a response to nobody is refused within {:?}", started.elapsed());
    // Now the others are answered too, and everything is as in any other run.
    others.for_each(|number| load::respond(&producer, PARTITIONS, number));
    wait_for_audits(&cluster, &workers, load::audits(40_000) + 1);
    workers.drain();
    load::account_beside(&load::read_committed(&cluster), 40_000, 1);
}
