//! Thousands of events in random order, with restarts and commits that fail, against the naive model.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use toolgate::log::memory::Fault;
use toolgate::log::{Outgoing, Partition, Position, Topic};
use toolgate::wire::v1;

use crate::laws::{self, decoded};
use crate::model::{Model, SKEW};
use crate::world::{PARTITIONS, World, keyed};
use toolgate::log::partitioner::partition_of;

const EVENTS: usize = 2000;
/// Runs, unless `TOOLGATE_SEEDS` says how many.
const SEEDS: u64 = 6;
/// Deadlines and moments keep two seconds apart, so that no retry's jitter decides anything.
const PATIENCE: i64 = 60 - SKEW;
const BODIES: [&str; 12] = [
    "good",
    "good",
    "good",
    "good",
    "good",
    "good-other",
    "good-other",
    "good-other",
    "foreign",
    "prose",
    "not-found",
    "unavailable",
];

/// A small generator, so that a seed tells the whole run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())]
    }
}

struct Run {
    dice: Dice,
    world: World,
    model: Model,
    started: i64,
    /// Announcements of the last requests, which events are about.
    recent: Vec<v1::ToolRequest>,
    requests: usize,
    events: usize,
    /// Responses of this round, to be judged after its announcements.
    round: Vec<(Position, String, u32, &'static str)>,
    expected: BTreeMap<Position, &'static str>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut dice = Dice(seed);
        let world = World::with(dice.pick(&[1, 3, 8, 100]), dice.pick(&[0, 2, 1000]));
        let (model, recent, round, expected) = Default::default();
        let started = world.now.unix_seconds();
        Run { dice, world, model, started, recent, requests: 0, events: 0, round, expected }
    }

    fn seconds(&self) -> i64 {
        self.world.now.unix_seconds() - self.started
    }

    fn announce(&mut self, request: v1::ToolRequest) {
        self.world.announce(&request);
        let deadline = request.deadline_unix_ms / 1000 - self.started;
        self.model.announce(&request.request_id, request.attempt, deadline, self.seconds());
        self.recent.retain(|known| known.request_id != request.request_id);
        self.recent.push(request);
        if self.recent.len() > 40 {
            self.recent.remove(0);
        }
    }

    fn fresh(&mut self) -> v1::ToolRequest {
        self.requests += 1;
        let request = self.world.request(&format!("req-{}", self.requests), "ci.job_status");
        v1::ToolRequest { deadline_unix_ms: request.issued_at_unix_ms + PATIENCE * 1000, ..request }
    }

    fn respond(&mut self, id: &str, attempt: u32) {
        let body = self.dice.pick(&BODIES);
        let response = v1::ToolResponse { attempt, ..self.world.response(id, body) };
        let position = self.world.respond(&response);
        self.round.push((position, id.to_owned(), attempt, body));
    }

    fn event(&mut self) {
        self.events += 1;
        let known = match self.recent.len() {
            0 => None,
            len => Some(self.recent[self.dice.roll(len)].clone()),
        };
        match (self.dice.roll(100), known) {
            (0..35, _) | (_, None) => {
                let request = self.fresh();
                // One in five is overtaken by its response.
                if self.dice.roll(5) == 0 {
                    self.respond(&request.request_id.clone(), 1);
                }
                self.announce(request);
            }
            (35..80, Some(known)) => {
                let attempt = self.model.attempt(&known.request_id);
                let attempt = self.dice.pick(&[attempt, attempt, attempt, attempt, 1, attempt + 1]);
                self.respond(&known.request_id, attempt);
            }
            (80..84, Some(known)) => {
                self.world.announce(&known);
            }
            (84..88, Some(known)) => {
                let other = v1::ToolRequest { deadline_unix_ms: known.deadline_unix_ms + 1000, ..known };
                self.world.announce(&other);
            }
            (88..91, _) => self.respond(&format!("nobody-{}", self.events), 1),
            (91..94, Some(known)) => self.misroute(&known.request_id),
            (94.., Some(_)) => self.noise(),
        }
    }

    fn misroute(&mut self, id: &str) {
        let value = self.world.response(id, "good").encode_to_vec();
        let partition = Partition((partition_of(id.as_bytes(), PARTITIONS).0 + 1) % PARTITIONS);
        let position = self.world.append(Outgoing { partition: Some(partition), ..keyed(Topic::Responses, id, value) });
        self.expected.insert(position, "MISROUTED");
    }

    fn noise(&mut self) {
        let key = format!("noise-{}", self.dice.roll(9));
        let position = self.world.append(keyed(Topic::Responses, &key, vec![0xff; self.events % 5]));
        self.expected.insert(position, "UNDECODABLE_EVENT");
    }

    /// The next attempt of a request, in a round of its own: what is behind it in time is behind it in the log.
    fn reissue(&mut self) {
        if self.recent.is_empty() {
            return;
        }
        let at = self.dice.roll(self.recent.len());
        let now_ms = self.world.now.unix_millis();
        let request = v1::ToolRequest {
            attempt: self.model.attempt(&self.recent[at].request_id) + 1,
            issued_at_unix_ms: now_ms,
            deadline_unix_ms: now_ms + PATIENCE * 1000,
            ..self.recent[at].clone()
        };
        self.announce(request);
    }

    fn round(&mut self) {
        if self.dice.roll(6) == 0 {
            self.reissue();
        } else {
            (0..1 + self.dice.roll(12)).for_each(|_| self.event());
        }
        let now = self.seconds();
        self.model.tick(now);
        for (position, id, attempt, body) in std::mem::take(&mut self.round) {
            self.expected.insert(position, self.model.respond(&id, attempt, body, now));
        }
        self.mishaps();
        self.world.run();
        let pause = self.dice.pick(&[0, 0, 0, 0, 5, 5, 5, 20, 20, 65]);
        self.world.advance(pause * 1000);
        if self.dice.roll(150) == 0 {
            // Ids that may be forgotten by now are not spoken of again.
            self.recent.clear();
            self.world.advance(86_400_000);
        }
    }

    fn mishaps(&mut self) {
        for _ in 0..self.dice.roll(3) {
            match self.dice.roll(5) {
                0 => self.world.fault(Fault::Aborted),
                1 => self.world.fault(Fault::IndeterminateApplied),
                2 => self.world.fault(Fault::IndeterminateLost),
                _ => {}
            }
            for _ in 0..self.dice.roll(4) {
                self.world.step();
            }
            if self.dice.roll(4) == 0 {
                self.world.restart();
            }
        }
    }

    fn finish(&mut self) {
        self.world.advance(3_600_000);
        self.model.tick(self.seconds());
        self.world.run();
    }
}

#[track_caller]
fn compare(run: &Run, seed: u64) {
    laws::check(&run.world);
    let audits: Vec<v1::AuditRecord> = decoded(&run.world.log.records(Topic::Audit));
    let mut reasons = BTreeMap::new();
    let mut told: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for audit in &audits {
        if audit.subject() == v1::AuditSubject::Response {
            let source = audit.source.as_ref().expect("a position");
            reasons.insert((source.partition, source.offset), audit.reason.as_str());
        }
        if !audit.result_sha256.is_empty() {
            told.entry(audit.request_id.clone()).or_default().push(&audit.failure_code);
        }
    }
    let expected: BTreeMap<_, _> =
        run.expected.iter().map(|(at, reason)| ((at.partition.0, at.offset.0), *reason)).collect();
    assert_eq!(reasons, expected, "seed {seed}");
    assert_eq!(told, run.model.told, "seed {seed}");
    assert_eq!(told.len(), run.requests, "seed {seed}: every request is answered");
    let directives: Vec<v1::RetryDirective> = decoded(&run.world.log.records(Topic::Retries));
    let heard: BTreeSet<(String, u32)> = directives.iter().map(|d| (d.request_id.clone(), d.attempt)).collect();
    assert_eq!(heard.len(), directives.len(), "seed {seed}: no directive comes twice");
    assert!(run.model.due.is_subset(&heard) && heard.is_subset(&run.model.scheduled), "seed {seed}");
}

#[test]
fn a_worker_that_fails_at_random_does_what_the_model_does() {
    let asked = std::env::var("TOOLGATE_SEEDS").ok().and_then(|text| text.parse().ok());
    for seed in 0..asked.unwrap_or(SEEDS) {
        let mut run = Run::new(seed);
        while run.events < EVENTS {
            run.round();
        }
        run.finish();
        compare(&run, seed);
        let (retries, requests) = (run.model.due.len(), run.requests);
        assert!(retries > 3 && requests > 500, "seed {seed} is too quiet: {retries} retries of {requests} requests");
    }
}
