//! The account afterwards: agent messages, audit, quarantine and state against the model.

use crate::load::{Fate, Load, news};
use prost::Message;
use std::collections::BTreeMap;
use std::path::Path;
use toolgate::log::sqlite::SqliteLog;
use toolgate::log::{Offset, Partition, Position, Topic};
use toolgate::wire::v1;

pub(crate) fn check(path: &Path, load: &Load) {
    let mut client = SqliteLog::open_client(path, None).unwrap();
    let mut all = |topic| news(&mut client, topic, &mut BTreeMap::new());
    let mut results: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in all(Topic::Results) {
        let id = String::from_utf8(record.key.unwrap()).unwrap();
        results.entry(id).or_default().push(String::from_utf8(record.value.unwrap()).unwrap());
    }
    assert_eq!(results.len(), load.fates.len(), "every request has an answer, and nobody else");
    for (id, fate) in &load.fates {
        let answers = &results[id];
        assert_eq!(answers.len(), 1, "{id}: {answers:?}");
        let wanted = match fate {
            Fate::Accepted | Fate::Retried => "\"outcome\":\"success\"",
            Fate::Refused => "\"code\":\"INVALID_RESPONSE\"",
            Fate::Expired => "\"code\":\"EXPIRED\"",
        };
        assert!(answers[0].contains(wanted), "{id} {fate:?}: {}", answers[0]);
    }
    audit(load, all(Topic::Audit));
    quarantine(load, all(Topic::Quarantine));
    state(load, all(Topic::Bindings));
}

fn position(source: &v1::SourcePosition) -> Position {
    Position { topic: Topic::Responses, partition: Partition(source.partition), offset: Offset(source.offset) }
}

fn audit(load: &Load, records: Vec<toolgate::log::Record>) {
    let mut seen: BTreeMap<Position, u32> = BTreeMap::new();
    let mut expired = 0;
    for record in records {
        let audit = v1::AuditRecord::decode(record.value.unwrap().as_slice()).unwrap();
        match audit.source {
            Some(source) => *seen.entry(position(&source)).or_default() += 1,
            None => expired += 1,
        }
    }
    for response in &load.responses {
        assert_eq!(seen.get(response), Some(&1), "audit records of {response}");
    }
    assert_eq!(seen.len(), load.responses.len());
    let wanted = load.fates.values().filter(|fate| **fate == Fate::Expired).count();
    assert_eq!(expired, wanted, "one audit record for each deadline");
}

fn quarantine(load: &Load, records: Vec<toolgate::log::Record>) {
    let mut seen: BTreeMap<Position, u32> = BTreeMap::new();
    for record in records {
        let quarantined = v1::QuarantineRecord::decode(record.value.unwrap().as_slice()).unwrap();
        *seen.entry(position(&quarantined.source.unwrap())).or_default() += 1;
    }
    let wanted: BTreeMap<Position, u32> = load.quarantined.iter().map(|position| (*position, 1)).collect();
    assert_eq!(seen, wanted, "the quarantine has each response that is no evidence, once");
}

fn state(load: &Load, records: Vec<toolgate::log::Record>) {
    let mut latest: BTreeMap<String, v1::Binding> = BTreeMap::new();
    for record in records {
        let key = String::from_utf8(record.key.unwrap()).unwrap();
        latest.insert(key, v1::Binding::decode(record.value.unwrap().as_slice()).unwrap());
    }
    assert_eq!(latest.len(), load.fates.len());
    for (id, fate) in &load.fates {
        let wanted = match fate {
            Fate::Accepted | Fate::Retried => v1::ClosedAs::Accepted,
            Fate::Refused => v1::ClosedAs::Refused,
            Fate::Expired => v1::ClosedAs::Expired,
        };
        assert_eq!(latest[id].closed_as(), wanted, "{id}");
    }
}
