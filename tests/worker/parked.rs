//! Responses that are read before their requests: they wait for as long as it takes to be sure, and no longer.

use prost::Message;
use toolgate::log::memory::Fault;
use toolgate::log::partitioner::partition_of;
use toolgate::log::{Partition, Topic};
use toolgate::wire::v1;

use crate::laws::{self, decoded};
use crate::world::{PARTITIONS, World};

/// More announcements than a batch holds stand between a response and its own request.
const CROWD: usize = 12;
const BATCH: usize = 4;

/// An id on the first partition.
fn id(name: &str) -> String {
    let on_first = |id: &String| partition_of(id.as_bytes(), PARTITIONS) == Partition(0);
    (0..64).map(|n| format!("{name}-{n}")).find(on_first).expect("half of all ids are on it")
}

/// A response of which the request is far behind in the request topic, and a second response behind it.
fn overtaken(parked_max: usize) -> (World, String, String) {
    let mut world = World::with(BATCH, parked_max);
    let (early, other) = (id("early"), id("other"));
    world.announce(&world.request(&other, "ci.job_status"));
    world.run();
    for n in 0..CROWD {
        world.announce(&world.request(&id(&format!("crowd{n}")), "ci.job_status"));
    }
    world.announce(&world.request(&early, "ci.job_status"));
    world.respond(&world.response(&early, "good"));
    world.respond(&world.response(&other, "good"));
    (world, early, other)
}

#[track_caller]
fn reasons(world: &World) -> Vec<String> {
    decoded::<v1::QuarantineRecord>(&world.log.records(Topic::Quarantine)).into_iter().map(|r| r.reason).collect()
}

#[track_caller]
fn agents_got(world: &World, results: usize) {
    assert_eq!((world.log.records(Topic::Results).len(), reasons(world)), (results, Vec::new()));
    assert_eq!(world.waiting(), 0);
    laws::check(world);
}

#[test]
fn a_response_waits_for_its_request_and_its_offset_is_held_back() {
    let (mut world, ..) = overtaken(1000);
    world.step();
    assert_eq!(world.waiting(), 1, "the first is read and waits");
    assert_eq!(world.committed(Topic::Responses, Partition(0)), 0, "what waits is not committed past");
    world.run();
    assert_eq!(world.committed(Topic::Responses, Partition(0)), 2);
    agents_got(&world, 2);
}

#[test]
fn what_waits_is_read_again_by_the_next_worker() {
    for steps in 0..8 {
        let (mut world, ..) = overtaken(1000);
        for _ in 0..steps {
            world.step();
        }
        world.restart();
        world.run();
        agents_got(&world, 2);
    }
}

#[test]
fn what_waits_survives_commits_that_fail() {
    for fault in [Fault::Aborted, Fault::IndeterminateApplied, Fault::IndeterminateLost] {
        for steps in 0..6 {
            let (mut world, ..) = overtaken(1000);
            for _ in 0..steps {
                world.step();
            }
            world.fault(fault);
            world.fault(fault);
            world.run();
            agents_got(&world, 2);
        }
    }
}

#[test]
fn more_than_may_wait_are_read_again_later() {
    let (mut world, ..) = overtaken(0);
    world.run();
    agents_got(&world, 2);
}

#[test]
fn what_waits_moves_with_its_partition() {
    let (mut world, ..) = overtaken(1000);
    world.step();
    world.log.0.borrow_mut().revoke(vec![Partition(0)]);
    world.step();
    assert_eq!((world.waiting(), world.worker.states().count()), (0, 1));
    world.log.0.borrow_mut().assign(vec![Partition(0)]);
    world.run();
    agents_got(&world, 2);
}

#[test]
fn absence_is_proof_without_a_clock() {
    let mut world = World::with(BATCH, 1000);
    for n in 0..CROWD {
        world.announce(&world.request(&id(&format!("crowd{n}")), "ci.job_status"));
    }
    world.respond(&world.response(&id("nobody"), "good"));
    world.run();
    assert_eq!(reasons(&world), ["UNKNOWN_REQUEST"]);
    laws::check(&world);
}

#[test]
fn a_misrouted_response_names_both_partitions() {
    let mut world = World::new();
    let lost = id("lost");
    let response = world.response(&lost, "good").encode_to_vec();
    let record = crate::world::keyed(Topic::Responses, &lost, response);
    world.append(toolgate::log::Outgoing { partition: Some(Partition(1)), ..record });
    world.run();
    let kept: Vec<v1::QuarantineRecord> = decoded(&world.log.records(Topic::Quarantine));
    let diagnosis = kept[0].diagnosis.clone().expect("it is explained");
    assert_eq!(kept[0].reason, "MISROUTED");
    assert_eq!(diagnosis.expected, "partition 0, where the key belongs; it came on 1");
}

#[test]
fn a_response_waits_for_the_announcement_of_its_attempt() {
    let mut world = World::with(BATCH, 1000);
    let early = id("early");
    world.announce(&world.request(&early, "ci.job_status"));
    world.run();
    for n in 0..CROWD {
        world.announce(&world.request(&id(&format!("crowd{n}")), "ci.job_status"));
    }
    world.announce(&v1::ToolRequest { attempt: 2, ..world.request(&early, "ci.job_status") });
    world.respond(&v1::ToolResponse { attempt: 2, ..world.response(&early, "good") });
    world.step();
    assert_eq!(world.waiting(), 1, "nobody can know yet that the attempt was not announced");
    world.run();
    agents_got(&world, 1);
}
