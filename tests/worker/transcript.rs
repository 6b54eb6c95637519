//! Stories as transcripts: what is done (`>`), and below it everything that is written because of it.
//!
//! A story must read the same however often its worker dies and its commits fail.

use prost::Message;
use std::collections::BTreeMap;
use toolgate::gate::parse::{Limits, Tape};
use toolgate::log::memory::Fault;
use toolgate::log::partitioner::partition_of;
use toolgate::log::{Header, Outgoing, Partition, Record, Topic};
use toolgate::request::{Binding, State};
use toolgate::wire::v1;

use crate::laws;
use crate::world::{PARTITIONS, World, keyed};

/// What befalls the worker before each command of a story.
#[derive(Clone, Copy, Debug)]
enum Mishap {
    None,
    Restart,
    Commit(Fault),
}

const MISHAPS: [Mishap; 5] = [
    Mishap::None,
    Mishap::Restart,
    Mishap::Commit(Fault::Aborted),
    Mishap::Commit(Fault::IndeterminateApplied),
    Mishap::Commit(Fault::IndeterminateLost),
];

/// Plays the commands of a transcript and compares all that is written with it.
#[track_caller]
pub(crate) fn check(expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    for batch_records in [100, 1] {
        for mishap in MISHAPS {
            let mut world = World::with(batch_records, 1000);
            let played = play(&expected, mishap, &mut world).join("\n");
            assert_eq!(played, expected.join("\n"), "{mishap:?}, {batch_records} records a batch; was:\n{played}\n");
            laws::check(&world);
        }
    }
}

fn play(transcript: &[&str], mishap: Mishap, world: &mut World) -> Vec<String> {
    let mut seen = Seen::default();
    let mut lines = Vec::new();
    for line in transcript.iter().filter(|line| line.starts_with('>')) {
        lines.push((*line).to_owned());
        match mishap {
            Mishap::None => {}
            Mishap::Restart => world.restart(),
            Mishap::Commit(fault) => world.fault(fault),
        }
        for command in line.trim_start_matches('>').split(';') {
            obey(&command.split_whitespace().collect::<Vec<_>>(), world);
        }
        world.run();
        lines.extend(seen.news(world));
    }
    lines
}

fn obey(words: &[&str], world: &mut World) {
    let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let number = |name: &str, default: u32| option(name).map_or(default, |text| text.parse().expect("a number"));
    match words {
        ["announce", id, tool, ..] => {
            let mut request = world.request(id, tool);
            request.attempt = number("attempt", 1);
            request.contract_version = number("version", 0);
            request.deadline_unix_ms = request.issued_at_unix_ms + i64::from(number("deadline", 60)) * 1000;
            request.issued_at_unix_ms -= i64::from(number("ago", 0)) * 1000;
            world.announce(&request);
        }
        ["respond", id, body, ..] => {
            let mut response = world.response(id, body);
            response.attempt = number("attempt", 1);
            response.tool = option("tool").map_or(response.tool, str::to_owned);
            let partition = words.contains(&"misrouted").then(|| other_partition(id));
            world.append(Outgoing { partition, ..keyed(Topic::Responses, id, response.encode_to_vec()) });
        }
        ["write", topic, what, ..] => {
            let topic = if *topic == "requests" { Topic::Requests } else { Topic::Responses };
            world.append(odd(topic, what));
        }
        ["wait", seconds] => world.advance(seconds.parse::<i64>().expect("seconds") * 1000),
        other => panic!("no such command: {other:?}"),
    }
}

fn other_partition(id: &str) -> Partition {
    Partition((partition_of(id.as_bytes(), PARTITIONS).0 + 1) % PARTITIONS)
}

/// Records that no producer of ours writes.
fn odd(topic: Topic, what: &str) -> Outgoing {
    let value = match what {
        "null" => None,
        "noise" => Some(b"\xff\xff\xff\xff".to_vec()),
        "nothing" => Some(Vec::new()),
        // Larger than what one record of the worker may hold.
        "megabytes" => Some(vec![0xff; 2 << 20]),
        other => panic!("no record is called {other}"),
    };
    let header = Header { name: "h".into(), value: None };
    Outgoing { topic, partition: None, key: Some(b"odd".to_vec()), value, headers: vec![header] }
}

/// How much of the log has been told already.
#[derive(Default)]
struct Seen {
    records: BTreeMap<(Topic, Partition), usize>,
    state: BTreeMap<String, Binding>,
}

impl Seen {
    fn news(&mut self, world: &World) -> Vec<String> {
        let mut lines = Vec::new();
        for topic in [Topic::Results, Topic::Quarantine, Topic::Retries, Topic::Audit] {
            for partition in (0..PARTITIONS).map(Partition) {
                let log = world.log.0.borrow();
                let told = self.records.entry((topic, partition)).or_default();
                lines.extend(log.records(topic, partition)[*told..].iter().map(line));
                *told = log.records(topic, partition).len();
            }
        }
        let state = world.committed_state();
        lines.extend(state.iter().filter(|(id, now)| self.state.get(*id) != Some(now)).map(|(_, b)| state_line(b)));
        lines.extend(self.state.keys().filter(|id| !state.contains_key(*id)).map(|id| format!("state {id} forgotten")));
        self.state = state;
        lines
    }
}

fn line(record: &Record) -> String {
    let value = record.value.as_deref().expect("no tombstones but in the changelog");
    match record.position.topic {
        Topic::Results => agent_line(std::str::from_utf8(value).expect("JSON is UTF-8")),
        Topic::Quarantine => quarantine_line(&v1::QuarantineRecord::decode(value).expect("a quarantine record")),
        Topic::Retries => {
            let directive = v1::RetryDirective::decode(value).expect("a directive");
            format!("retry {} attempt {} {}", directive.request_id, directive.attempt, directive.failure_code)
        }
        Topic::Audit => audit_line(&v1::AuditRecord::decode(value).expect("an audit record")),
        other @ (Topic::Requests | Topic::Responses | Topic::Bindings) => panic!("{other} is not told"),
    }
}

fn agent_line(json: &str) -> String {
    let mut tape = Tape::default();
    let root = tape.parse(json.as_bytes(), &Limits::default()).expect("JSON").root();
    let text = |name: &str| root.get(name).and_then(|node| node.as_str().map(str::to_owned)).unwrap_or_default();
    let error = root.get("error").map(|error| {
        let code = error.get("code").and_then(|code| code.as_str().map(str::to_owned)).unwrap_or_default();
        format!(" {code} retryable={}", error.get("retryable").and_then(|r| r.as_bool()) == Some(true))
    });
    format!("agent {} {}{}", text("request_id"), text("outcome"), error.unwrap_or_default())
}

fn quarantine_line(record: &v1::QuarantineRecord) -> String {
    let source = record.source.clone().unwrap_or_default();
    let topic = source.topic.trim_start_matches("tool.");
    let kept = match &record.payload {
        Some(v1::quarantine_record::Payload::Plain(payload)) => format!("kept {}", payload.data.len()),
        Some(v1::quarantine_record::Payload::Omitted(omitted)) => format!("omitted {:?}", omitted.reason()),
        other => format!("{other:?}"),
    };
    let id = named(&record.request_id);
    format!("quarantine {id} {} {topic}-{}@{} {kept}", record.reason, source.partition, source.offset)
}

fn audit_line(record: &v1::AuditRecord) -> String {
    let outcome = format!("{:?}", record.outcome()).to_lowercase();
    let parts = [outcome.as_str(), &record.reason, &record.failure_code];
    let told: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("audit {} {}", named(&record.request_id), told.join(" "))
}

fn named(id: &str) -> &str {
    if id.is_empty() { "?" } else { id }
}

fn state_line(binding: &Binding) -> String {
    let state = match &binding.state {
        State::Outstanding if binding.held > 0 => format!("outstanding, {} held", binding.held),
        State::Outstanding => "outstanding".to_owned(),
        State::AwaitingRetry { due: Some(_), .. } => "awaits its retry".to_owned(),
        State::AwaitingRetry { due: None, .. } => "awaits its next attempt".to_owned(),
        State::Closed { how, trim_at: Some(_), .. } => format!("closed {how:?}").to_lowercase(),
        State::Closed { how, trim_at: None, .. } => format!("closed {how:?}, trimmed").to_lowercase(),
    };
    format!("state {} attempt {} {state}", binding.request_id, binding.attempt)
}
