//! Puts a worker on a stage: announce, respond, let time pass, and look at what was written.

use prost::Message;
use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use toolgate::contract::fixture::Secrets;
use toolgate::contract::{Registry, pack};
use toolgate::gate::decode::Encoding;
use toolgate::log::memory::MemoryLog;
use toolgate::log::{Outgoing, Partition, RECORD_BYTES_MAX, Record, Topic};
use toolgate::partition::Around;
use toolgate::telemetry::{Build, Metrics};
use toolgate::time::Timestamp;
use toolgate::wire::v1;
use toolgate::worker::{Bounds, Step, Worker};

pub(crate) const PARTITIONS: i32 = 2;

pub(crate) struct Stage {
    pub worker: Worker<MemoryLog>,
    now: Cell<Timestamp>,
}

fn registry() -> Registry {
    static ALL: OnceLock<Registry> = OnceLock::new();
    ALL.get_or_init(|| pack::load_all(Path::new("schemas")).unwrap().0).clone()
}

pub(crate) fn start() -> Timestamp {
    Timestamp::parse_rfc3339("2026-12-01T12:00:00Z").unwrap()
}

impl Stage {
    pub(crate) fn new() -> Stage {
        Stage::with_batches_of(50)
    }

    pub(crate) fn with_batches_of(records: usize) -> Stage {
        Stage { worker: worker(MemoryLog::new(PARTITIONS), records), now: Cell::new(start()) }
    }

    /// The process ends and another one starts on the same log.
    pub(crate) fn restart(&mut self) {
        let mut log = std::mem::replace(self.worker.log_mut(), MemoryLog::new(PARTITIONS));
        log.restart();
        self.worker = worker(log, 50);
        self.run();
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now.get()
    }

    /// Time passes, and the worker does what is due.
    pub(crate) fn wait(&mut self, seconds: i64) {
        self.now.set(self.now.get().saturating_add_millis(seconds * 1000));
        self.run();
    }

    pub(crate) fn run(&mut self) {
        let now = self.now.get();
        while self.worker.step(|| now).unwrap() != Step::Idle {}
    }

    pub(crate) fn request(&self, id: &str, attempt: u32, seconds: i64) -> v1::ToolRequest {
        v1::ToolRequest {
            request_id: id.into(),
            tool: "release.state".into(),
            arguments: br#"{"environment":"staging"}"#.to_vec(),
            issued_at_unix_ms: self.now().unix_millis(),
            deadline_unix_ms: self.now().unix_millis() + seconds * 1000,
            attempt,
            ..v1::ToolRequest::default()
        }
    }

    pub(crate) fn announce(&mut self, request: &v1::ToolRequest) {
        self.append(Topic::Requests, &request.request_id, Some(request.encode_to_vec()), None);
    }

    /// Announces a request with a minute to answer.
    pub(crate) fn ask(&mut self, id: &str) {
        let request = self.request(id, 1, 60);
        self.announce(&request);
    }

    pub(crate) fn response(id: &str, attempt: u32, status: u32, body: &str) -> v1::ToolResponse {
        v1::ToolResponse {
            request_id: id.into(),
            tool: "release.state".into(),
            attempt,
            body: body.into(),
            content_type: Some("application/json".into()),
            outcome: Some(v1::TransportOutcome { outcome: Some(v1::transport_outcome::Outcome::HttpStatus(status)) }),
            endpoint: "https://release.example.net/state".into(),
            connector: "release-http".into(),
            connector_version: "2.1.0".into(),
            ..v1::ToolResponse::default()
        }
    }

    pub(crate) fn respond(&mut self, response: &v1::ToolResponse) {
        self.append(Topic::Responses, &response.request_id, Some(response.encode_to_vec()), None);
    }

    /// A good answer to the first attempt.
    pub(crate) fn answer(&mut self, id: &str) {
        self.respond(&Self::response(id, 1, 200, &good(id)));
    }

    pub(crate) fn append(&mut self, topic: Topic, key: &str, value: Option<Vec<u8>>, partition: Option<Partition>) {
        let key = Some(key.as_bytes().to_vec());
        self.worker.log_mut().append(vec![Outgoing { topic, partition, key, value, headers: Vec::new() }]).unwrap();
    }

    pub(crate) fn records(&mut self, topic: Topic) -> Vec<Record> {
        let log = self.worker.log_mut();
        (0..PARTITIONS).flat_map(|partition| log.records(topic, Partition(partition)).to_vec()).collect()
    }

    /// What the agent got for a request, in order.
    pub(crate) fn agent(&mut self, id: &str) -> Vec<String> {
        let own = |record: &Record| record.key.as_deref() == Some(id.as_bytes());
        self.records(Topic::Results)
            .into_iter()
            .filter(own)
            .map(|record| String::from_utf8(record.value.unwrap()).unwrap())
            .collect()
    }

    pub(crate) fn audits(&mut self) -> Vec<v1::AuditRecord> {
        self.records(Topic::Audit)
            .iter()
            .map(|record| v1::AuditRecord::decode(record.value.as_deref().unwrap()).unwrap())
            .collect()
    }

    pub(crate) fn quarantine(&mut self) -> Vec<v1::QuarantineRecord> {
        let records = self.records(Topic::Quarantine);
        records.iter().map(|record| v1::QuarantineRecord::decode(record.value.as_deref().unwrap()).unwrap()).collect()
    }

    pub(crate) fn directives(&mut self) -> Vec<v1::RetryDirective> {
        let records = self.records(Topic::Retries);
        records.iter().map(|record| v1::RetryDirective::decode(record.value.as_deref().unwrap()).unwrap()).collect()
    }

    /// Reasons of the audit, `ok` where accepted, in the order of decisions.
    pub(crate) fn reasons(&mut self) -> Vec<String> {
        let mut audits = self.audits();
        audits.sort_by_key(|audit| {
            (audit.now_unix_ms, audit.source.as_ref().map(|source| (source.partition, source.offset)))
        });
        let shown = |audit: &v1::AuditRecord| match audit.outcome() {
            v1::AuditOutcome::Accepted => "ok".to_owned(),
            v1::AuditOutcome::Expired => "EXPIRED".to_owned(),
            v1::AuditOutcome::Failed | v1::AuditOutcome::Refused | v1::AuditOutcome::Unspecified => {
                audit.reason.clone()
            }
        };
        audits.iter().map(shown).collect()
    }
}

fn worker(log: MemoryLog, batch_records_max: usize) -> Worker<MemoryLog> {
    let around = Around {
        registry: registry(),
        secrets: Secrets::default(),
        responses: Encoding::Protobuf,
        requests_topic: "tool.requests".into(),
        responses_topic: "tool.responses".into(),
        partitions: PARTITIONS,
        group: "stage".into(),
        worker: "stage".into(),
        skew_ms: 0,
    };
    let bounds = Bounds {
        batch_records_max,
        poll_wait: Duration::ZERO,
        parked_max: 100,
        record_bytes_max: RECORD_BYTES_MAX,
        threads: 1,
    };
    let metrics = Arc::new(Metrics::new(&[], Build { version: "test", commit: "test" }));
    Worker::new(log, around, bounds, metrics, 7)
}

pub(crate) fn good(id: &str) -> String {
    format!(
        r#"{{"tool":"release.state","request_id":"{id}","outcome":"success","data":{{"environment":"staging","revision":"a83f19c","state":"healthy"}}}}"#
    )
}

pub(crate) fn failure(id: &str, code: &str, retryable: bool) -> String {
    format!(
        r#"{{"tool":"release.state","request_id":"{id}","outcome":"failure","error":{{"code":"{code}","retryable":{retryable}}}}}"#
    )
}
