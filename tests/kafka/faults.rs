//! Workers that freeze, brokers that go away, networks that misbehave: nothing is lost and nothing is done twice.

use std::net::Shutdown;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::kills::{Workers, wait_for_audits};
use crate::load;
use crate::log::options;
use crate::proxy::Proxy;
use crate::support::{Cluster, until};

const PARTITIONS: i32 = 6;
/// Shorter than the default, so that tests of what happens after it are.
const SHORT: &str = "transaction_timeout = \"4s\"\n";

/// Offers in small parts, so that workers always have something under way.
fn offer_slowly(cluster: &Cluster, numbers: Range<usize>) {
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
    let mut workers = Workers::start(&cluster, 3, SHORT);
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
    // Whoever was frozen last has all the time it wants to do it wrong: until it has its share again.
    offer_slowly(&cluster, 3000..3600);
    wait_for_audits(&cluster, &workers, load::audits(3600));
    until("the last one is back", Duration::from_secs(60), || workers.shares() == [Some(2); 3]);
    workers.drain();
    load::account(&load::read_committed(&cluster), 3600);
}

/// One broker after another is killed and comes back, leaders and coordinators among them; then all of them at once.
#[test]
#[allow(clippy::disallowed_methods, reason = "the time of recovery is printed")]
fn nothing_is_lost_or_done_twice_when_brokers_are_killed() {
    let Some(cluster) = Cluster::start(&["--nodes", "3"]) else { return };
    cluster.make_topics(&options(&cluster, "g", "unused"), PARTITIONS);
    let mut workers = Workers::start(&cluster, 2, SHORT);
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

/// A broker behind a proxy, with workers that only know the proxy. Whoever offers and reads goes past it.
struct Behind {
    cluster: Cluster,
    proxy: Proxy,
    workers: Workers,
    offered: usize,
}

impl Behind {
    fn start() -> Option<Behind> {
        let cluster = Cluster::start(&["--proxied"])?;
        cluster.make_topics(&options(&cluster, "g", "unused"), PARTITIONS);
        let proxy = Proxy::start(&cluster.file("bootstrap.proxied"), &cluster.file("bootstrap.behind"));
        let workers = Workers::start_at(&cluster.file("bootstrap.proxied"), 2, SHORT);
        Some(Behind { cluster, proxy, workers, offered: 0 })
    }

    fn offer(&mut self, count: usize) {
        offer_slowly(&self.cluster, self.offered..self.offered + count);
        self.offered += count;
    }

    #[allow(clippy::disallowed_methods, reason = "the time of recovery is printed")]
    fn settle(&self, what: &str) {
        let started = Instant::now();
        wait_for_audits(&self.cluster, &self.workers, load::audits(self.offered));
        println!("{what}: all decided after {:?}", started.elapsed());
    }

    fn account(mut self) {
        self.workers.drain();
        load::account(&load::read_committed(&self.cluster), self.offered);
    }
}

/// Longer than a transaction may take, and than a session lasts.
const OUTAGE: Duration = Duration::from_secs(6);

#[test]
fn nothing_is_lost_or_done_twice_when_the_network_misbehaves() {
    let Some(mut it) = Behind::start() else { return };
    it.offer(300);
    it.settle("fair weather");
    it.proxy.delay(Duration::from_millis(30));
    it.offer(200);
    it.settle("everything 30 ms later");
    it.proxy.delay(Duration::ZERO);
    for round in 0..10 {
        it.offer(40);
        it.proxy.cut(if round % 2 == 0 { Shutdown::Both } else { Shutdown::Write });
    }
    it.settle("ten times cut or half closed");
    for (requests, what) in [(true, "no request arrived for six seconds"), (false, "no answer arrived for six seconds")]
    {
        it.offer(100);
        it.proxy.hold(requests);
        it.offer(100);
        std::thread::sleep(OUTAGE);
        it.proxy.release();
        it.offer(100);
        it.settle(what);
    }
    it.account();
}

/// A transaction is committed and its worker never hears of it: the state is in the changelog and not in memory. With
/// anything but a rebuild from the changelog, requests would be lost or answered twice from here on.
#[test]
fn a_transaction_whose_end_is_not_told_is_found_out_about() {
    let Some(mut it) = Behind::start() else { return };
    it.offer(300);
    it.settle("fair weather");
    for round in 1..=3 {
        it.proxy.lose_ends(2);
        it.offer(300);
        it.settle("two answers lost");
        assert!(it.proxy.ends_lost() > round, "answers were lost: {}", it.proxy.ends_lost());
    }
    let logs = it.workers.logs();
    assert!(logs.contains("the transaction's end is not known"), "{logs}");
    it.account();
}

/// A worker is told to stop while it waits for an answer that will not come.
#[test]
fn a_drain_ends_in_time_and_loses_nothing() {
    let Some(mut it) = Behind::start() else { return };
    it.workers.drain_timeout = "1s";
    for index in [0, 1] {
        it.workers.kill(index);
        it.workers.restart(index);
    }
    it.offer(100);
    it.settle("fair weather");
    it.proxy.lose_ends(1);
    it.offer(100);
    until("an answer is lost", Duration::from_secs(30), || it.proxy.ends_lost() == 1);
    let codes: Vec<Option<i32>> = [0, 1].map(|index| it.workers.stop(index).code()).into();
    assert!(codes.contains(&Some(75)), "one could not finish: {codes:?}");
    assert!(codes.iter().all(|code| matches!(code, Some(0 | 75))), "{codes:?}");
    [0, 1].into_iter().for_each(|index| it.workers.restart(index));
    it.settle("two others");
    it.account();
}
