//! Judging on several threads: what is written does not depend on how many there are.

use toolgate::log::{Record, Topic};
use toolgate::wire::v1;

use crate::world::World;

const REQUESTS: usize = 400;
const BODIES: [&str; 7] = ["good", "good", "good-other", "foreign", "prose", "not-found", "unavailable"];

/// A batch of everything that can happen, and then the deadlines of what was not answered.
fn everything(threads: usize) -> Vec<Record> {
    let mut world = World::spread(threads);
    for n in 0..REQUESTS {
        let request = world.request(&format!("req-{n}"), "ci.job_status");
        world.announce(&request);
        if n % 11 == 0 {
            continue;
        }
        let response = world.response(&format!("req-{n}"), BODIES[n % BODIES.len()]);
        world.respond(&response);
        match n % 13 {
            0 => drop(world.respond(&response)),
            1 => drop(world.respond(&world.response(&format!("nobody-{n}"), "good"))),
            2 => drop(world.respond(&v1::ToolResponse { attempt: 9, ..response })),
            _ => {}
        }
    }
    world.run();
    for _ in 0..5 {
        world.advance(20_000);
        world.run();
    }
    let written = [Topic::Results, Topic::Quarantine, Topic::Audit, Topic::Retries, Topic::Bindings];
    written.into_iter().flat_map(|topic| world.log.records(topic)).collect()
}

#[test]
fn what_is_written_does_not_depend_on_the_number_of_threads() {
    let alone = everything(1);
    assert!(alone.len() > 4 * REQUESTS, "{}", alone.len());
    for threads in [2, 3, 8] {
        let together = everything(threads);
        let differs = alone.iter().zip(&together).find(|(one, other)| one != other);
        assert!(differs.is_none(), "{threads} threads: {differs:?}");
        assert_eq!(alone.len(), together.len());
    }
}
