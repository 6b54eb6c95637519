//! Retries and deadlines whose time comes when their partition has another owner: the timers follow it, and so do the
//! counts of what was retried.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use prost::Message;
use rdkafka::producer::BaseProducer;
use toolgate::wire::v1;
use toolgate::wire::v1::transport_outcome::Outcome;

use crate::kills::{Workers, wait_for_audits};
use crate::load::{self, Seen};
use crate::log::options;
use crate::support::{Cluster, send, text, until};
use std::time::Duration;

const TOOL: &str = "ci.job_status";
/// Ten retries are free, and each of 37 first attempts earns a fifth of one; of the last 24, some may not be read yet when
/// the others fail. An owner that had forgotten the first eight would allow 22 or more.
const RETRIES: RangeInclusive<usize> = 12..=18;
/// What the worker allows a dispatcher's clock to be off.
const SKEW_MS: i64 = 2000;

fn now_ms() -> i64 {
    toolgate::worker::clock::now().unix_millis()
}

/// One partition, so that a worker has all of it or nothing.
struct Story {
    cluster: Cluster,
    producer: BaseProducer,
    workers: Workers,
    leave: fn(&mut Workers, usize),
}

impl Story {
    fn begin(leave: fn(&mut Workers, usize)) -> Option<Story> {
        let cluster = Cluster::start(&[])?;
        cluster.make_topics(&options(&cluster, "g", "unused"), 1);
        let workers = Workers::start(&cluster, 1, "static_membership = false\n");
        let producer = cluster.producer();
        Some(Story { cluster, producer, workers, leave })
    }

    fn announce(&self, id: &str, attempt: u32, patience_ms: i64) {
        let request = v1::ToolRequest {
            request_id: id.into(),
            tool: TOOL.into(),
            arguments: br#"{"project_id":"bluebird"}"#.to_vec(),
            issued_at_unix_ms: now_ms(),
            deadline_unix_ms: now_ms() + patience_ms,
            attempt,
            ..Default::default()
        };
        send(&self.producer, "tool.requests", 0, id, &request.encode_to_vec());
    }

    /// The second attempt, which succeeds.
    fn repeat(&self, id: &str) {
        self.announce(id, 2, 60_000);
        self.respond(id, 2, true);
    }

    fn respond(&self, id: &str, attempt: u32, is_good: bool) {
        let at = now_ms();
        let good = format!(r#"{{"project":"bluebird","run":"run_7Kd29QmXv4Lp","state":"success","updated_ms":{at}}}"#);
        let (body, status) = if is_good { (good.as_str(), 200) } else { ("<h1>try later</h1>", 503) };
        let response = v1::ToolResponse {
            request_id: id.into(),
            tool: TOOL.into(),
            attempt,
            body: body.into(),
            content_type: Some("application/json".into()),
            outcome: Some(v1::TransportOutcome { outcome: Some(Outcome::HttpStatus(status)) }),
            received_at_unix_ms: at,
            ..Default::default()
        };
        send(&self.producer, "tool.responses", 0, id, &response.encode_to_vec());
    }

    fn fails_once(&self, id: &str) {
        self.announce(id, 1, 60_000);
        self.respond(id, 1, false);
    }

    /// The last worker leaves, and another one takes its partition over.
    fn moves(&mut self) {
        let last = self.workers.running.len() - 1;
        (self.leave)(&mut self.workers, last);
        self.workers.add();
    }

    fn audits(&self, count: usize) {
        wait_for_audits(&self.cluster, &self.workers, count);
    }

    /// Waits for so many audit records, and says which requests are to be repeated.
    fn retried(&self, count: usize) -> Vec<String> {
        let (counter, mut audits) = (self.cluster.counter("tool.audit"), Vec::new());
        until("all is decided", Duration::from_secs(60), || {
            audits.extend(counter.values());
            audits.len() >= count
        });
        let audits = audits.iter().map(|value| v1::AuditRecord::decode(value.as_slice()).expect("an audit record"));
        audits.filter(|audit| audit.retry_due_unix_ms != 0).map(|audit| audit.request_id).collect()
    }

    fn directives(&self, count: usize) {
        let (counter, mut seen) = (self.cluster.counter("tool.retries"), 0);
        until("the directives are written", Duration::from_secs(60), || {
            seen += counter.count_more();
            seen >= count
        });
    }
}

fn ids(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{name}-{n}")).collect()
}

fn play(leave: fn(&mut Workers, usize)) {
    let Some(mut story) = Story::begin(leave) else { return };
    let (first, second, silent) = (ids("first", 8), ids("second", 24), ids("silent", 5));
    silent.iter().for_each(|id| story.announce(id, 1, 12_000));
    first.iter().for_each(|id| story.fails_once(id));
    assert_eq!(story.retried(8), first);
    story.moves();
    story.directives(8);
    first[..4].iter().for_each(|id| story.repeat(id));
    second.iter().for_each(|id| story.fails_once(id));
    let retried = story.retried(8 + 4 + 24);
    assert!(RETRIES.contains(&retried.len()), "a new owner refills no budget: {}", retried.len());
    story.moves();
    story.directives(retried.len());
    let (again, spent): (Vec<String>, Vec<String>) = second.iter().cloned().partition(|id| retried.contains(id));
    first[4..].iter().chain(&again).for_each(|id| story.repeat(id));
    let decided = 8 + 24 + first.len() + again.len();
    story.audits(decided + silent.len());
    // Whoever owned the partition when its deadline passed, it is closed.
    silent.iter().for_each(|id| story.respond(id, 1, true));
    story.audits(decided + 2 * silent.len());
    story.workers.drain();

    let topics = load::read_committed(&story.cluster);
    let audits: Vec<v1::AuditRecord> =
        topics["tool.audit"].iter().map(|seen| v1::AuditRecord::decode(seen.value.as_slice()).unwrap()).collect();
    let ends = by_key(&topics["tool.results"]);
    let expected = [(&first, "success"), (&again, "success"), (&spent, "UPSTREAM_UNAVAILABLE"), (&silent, "EXPIRED")];
    for (ids, end) in expected {
        for id in ids {
            let ended: Vec<String> = ends.get(id.as_str()).into_iter().flatten().map(|value| text(value)).collect();
            let of_it = || audits.iter().filter(|audit| audit.request_id == *id).collect::<Vec<_>>();
            assert!(ended.len() == 1 && ended[0].contains(end), "{id} ends once, in {end}: {ended:?}\n{:?}", of_it());
        }
    }
    assert_eq!(ends.len(), first.len() + second.len() + silent.len());

    let directives = by_key(&topics["tool.retries"]);
    assert_eq!(directives.len(), retried.len());
    for (id, values) in directives {
        assert_eq!(values.len(), 1, "{id} is told to be repeated once");
        let directive = v1::RetryDirective::decode(values[0]).unwrap();
        let scheduled = audits.iter().find(|audit| audit.request_id == id && audit.retry_due_unix_ms != 0).unwrap();
        assert_eq!((directive.attempt, directive.not_before_unix_ms), (2, scheduled.retry_due_unix_ms), "{id}");
    }
    for id in &silent {
        let of_it: Vec<_> = audits.iter().filter(|audit| audit.request_id == *id).collect();
        let expired = of_it.iter().find(|audit| audit.source.is_none()).expect("it expired");
        let deadline_ms = expired.request.as_ref().expect("its record").deadline_unix_ms;
        assert!(expired.now_unix_ms >= deadline_ms + SKEW_MS, "not before its time");
        assert!(of_it.iter().any(|audit| audit.reason == "LATE_RESPONSE"), "{of_it:?}");
    }
}

fn by_key(records: &[Seen]) -> BTreeMap<&str, Vec<&[u8]>> {
    let mut keys: BTreeMap<&str, Vec<&[u8]>> = BTreeMap::new();
    records.iter().for_each(|seen| keys.entry(&seen.key).or_default().push(&seen.value));
    keys
}

#[test]
fn timers_and_budgets_follow_a_partition_whose_owner_leaves() {
    play(Workers::drain_one);
}

#[test]
fn timers_and_budgets_follow_a_partition_whose_owner_is_killed() {
    play(Workers::kill);
}
