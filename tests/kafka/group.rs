//! Several workers of one group: shares move, and nobody writes for what it no longer owns.

use std::collections::BTreeSet;
use std::time::Duration;

use toolgate::log::kafka::{Assignor, GroupProtocol, KafkaLog, KafkaOptions};
use toolgate::log::{Commit, Event, Log, LogError, Offset, Outgoing, Partition, Topic, Transaction};

use crate::log::options;
use crate::support::{Cluster, until};

/// A worker that restores what it is given and remembers what it owns.
struct Member {
    log: KafkaLog,
    owned: BTreeSet<Partition>,
}

impl Member {
    fn connect(options: KafkaOptions) -> Member {
        Member { log: KafkaLog::connect(options).expect("the worker connects"), owned: BTreeSet::new() }
    }

    fn step(&mut self) -> Result<(), LogError> {
        match self.log.poll(100, Duration::from_millis(20))? {
            Event::Assigned(partitions) => {
                for partition in partitions {
                    self.log.restore(partition, &mut |_| Ok(()))?;
                    self.owned.insert(partition);
                }
            }
            Event::Revoked(partitions) => self.owned.retain(|one| !partitions.contains(one)),
            Event::Records(_) | Event::Idle => {}
        }
        Ok(())
    }
}

fn timer(partition: i32) -> Transaction {
    let (partition, key) = (Some(Partition(partition)), Some(b"k".to_vec()));
    let record = Outgoing { topic: Topic::Bindings, partition, key, value: None, headers: Vec::new() };
    Transaction { records: vec![record], offsets: Vec::new() }
}

fn shares_move(group_protocol: GroupProtocol, assignor: Assignor) {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let for_one =
        |name: &str| KafkaOptions { group_protocol, assignor, is_static: false, ..options(&cluster, "g", name) };
    cluster.make_topics(&for_one("w1"), 6);
    let patience = Duration::from_secs(60);
    let mut first = Member::connect(for_one("w1"));
    until("the first has all", patience, || {
        first.step().unwrap();
        first.owned.len() == 6
    });
    let mut second = Member::connect(for_one("w2"));
    until("both have half", patience, || {
        first.step().unwrap();
        second.step().unwrap();
        assert!(first.owned.is_disjoint(&second.owned), "{:?} {:?}", first.owned, second.owned);
        (first.owned.len(), second.owned.len()) == (3, 3)
    });
    drop(first);
    until("the second has all", patience, || {
        second.step().unwrap();
        second.owned.len() == 6
    });
}

#[test]
fn shares_move_with_cooperative_sticky() {
    shares_move(GroupProtocol::Classic, Assignor::CooperativeSticky);
}

#[test]
fn shares_move_with_range() {
    shares_move(GroupProtocol::Classic, Assignor::Range);
}

#[test]
fn shares_move_with_the_broker_sharing_out() {
    shares_move(GroupProtocol::Consumer, Assignor::CooperativeSticky);
}

/// The one moment at which a callback runs outside a poll is the sign of life in the middle of a restore. A
/// transaction lives only inside `commit`, so that callback cannot find one open; and what it took away is not written
/// for, although the worker has not been told yet.
#[test]
fn nothing_commits_between_a_revocation_and_its_being_told() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let for_one = |name: &str| KafkaOptions { is_static: false, ..options(&cluster, "g", name) };
    cluster.make_topics(&for_one("w1"), 2);
    let mut first = Member::connect(for_one("w1"));
    until("the first has all", Duration::from_secs(60), || {
        first.step().unwrap();
        first.owned.len() == 2
    });
    assert_eq!(first.log.commit(timer(0)).unwrap(), Commit::Committed);
    let mut second = Member::connect(for_one("w2"));
    let mut outcome = Commit::Committed;
    until("a revocation has run inside a restore", Duration::from_secs(30), || {
        second.step().unwrap();
        first.log.restore(Partition(0), &mut |_| Ok(())).unwrap();
        outcome = first.log.commit(timer(0)).unwrap();
        outcome != Commit::Committed
    });
    assert_eq!(outcome, Commit::Aborted);
    first.log.rewind().expect("it rewinds");
    let told = first.log.poll(100, Duration::from_secs(1)).unwrap();
    assert!(matches!(&told, Event::Revoked(partitions) if partitions.len() == 1), "{told:?}");
    // The rebalance may have more to tell, and as long as it has, nothing commits.
    until("what is left goes on", Duration::from_secs(30), || {
        let commit = first.log.commit(timer(0)).unwrap();
        if commit != Commit::Committed {
            first.log.rewind().expect("it rewinds");
            first.step().unwrap();
            second.step().unwrap();
        }
        commit == Commit::Committed
    });
}

/// Two workers under one name get one clear error, and no duel.
#[test]
fn the_second_worker_of_a_name_fences_the_first() {
    for is_static in [true, false] {
        let Some(cluster) = Cluster::start(&[]) else { return };
        let options = KafkaOptions { is_static, ..options(&cluster, "g", "same") };
        cluster.make_topics(&options, 1);
        let mut first = Member::connect(options.clone());
        until("the first has all", Duration::from_secs(60), || {
            first.step().unwrap();
            first.owned.len() == 1
        });
        let mut second = Member::connect(options);
        // A static member hears of it from the group, the other from its transaction; each within a poll and a commit.
        let mut refused = first.log.commit(timer(0)).map(|commit| assert_ne!(commit, Commit::Committed));
        until("the first is told", Duration::from_secs(30), || {
            if refused.is_ok() {
                first.log.rewind().expect("it rewinds");
                refused = first.step();
            }
            refused.is_err()
        });
        let error = refused.expect_err("it was told");
        assert!(error.to_string().contains("another worker runs as instance `same`"), "{error}");
        drop(first);
        until("the second has all", Duration::from_secs(60), || {
            second.step().unwrap();
            second.owned.len() == 1
        });
        let mut own = timer(0);
        own.offsets = vec![(Topic::Responses, Partition(0), Offset(0))];
        assert_eq!(second.log.commit(own).unwrap(), Commit::Committed);
    }
}
