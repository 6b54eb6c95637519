//! The real worker over a log in memory, with everything that it says captured.

use crate::plant::Variant;
use prost::Message;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolgate::contract::fixture::Secrets;
use toolgate::contract::{Lookup, Registry, pack};
use toolgate::gate::decode::Encoding;
use toolgate::gate::signature::Secret;
use toolgate::log::memory::MemoryLog;
use toolgate::log::{Outgoing, Partition, RECORD_BYTES_MAX, Record, Topic};
use toolgate::partition::Around;
use toolgate::telemetry::{Build, ContractName, ContractStatus, Metrics};
use toolgate::time::Timestamp;
use toolgate::wire::v1;
use toolgate::worker::{Bounds, Step, Worker};

pub(crate) struct Case {
    pub file: String,
    pub body: Vec<u8>,
    pub tool: String,
    request: v1::ToolRequest,
    response: v1::ToolResponse,
    now: Timestamp,
}

/// What came out beside the raw material.
pub(crate) struct Seen {
    pub accepted: bool,
    pub refused: bool,
    pub texts: Vec<(&'static str, String)>,
    /// The agent's message with its code blanked; empty where there was none.
    pub agent_without_code: String,
}

pub(crate) struct Stage {
    registry: Registry,
    secrets: Secrets,
    metrics: Arc<Metrics>,
    lines: Lines,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let dir = Path::new("tests/cases");
    let manifest: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dir.join("manifest.json")).unwrap()).unwrap();
    manifest
        .as_array()
        .unwrap()
        .iter()
        .filter(|case| case["request"]["tool"].is_string())
        .map(|case| read(dir, case))
        .collect()
}

fn read(dir: &Path, case: &serde_json::Value) -> Case {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let time = |value: &serde_json::Value| Timestamp::parse_rfc3339(value.as_str().unwrap()).unwrap();
    let (file, request, transport) = (text(&case["file"]), &case["request"], &case["transport"]);
    let (tool, now) = (text(&request["tool"]), time(&case["now"]));
    let headers = transport["headers"].as_object().into_iter().flatten();
    let headers = headers.map(|(name, value)| v1::Header { name: name.clone(), value: text(value) }).collect();
    let id = request["request_id"].as_str().map_or_else(|| request["request_id"].to_string(), str::to_owned);
    let status = transport["http_status"].as_u64().unwrap_or(200) as u32;
    Case {
        body: std::fs::read(dir.join(&file)).unwrap(),
        file,
        request: v1::ToolRequest {
            request_id: id.clone(),
            tool: tool.clone(),
            arguments: request["bindings"].to_string().into_bytes(),
            issued_at_unix_ms: time(&request["issued_at"]).unix_millis(),
            deadline_unix_ms: time(&request["deadline"]).unix_millis(),
            attempt: 1,
            ..v1::ToolRequest::default()
        },
        response: v1::ToolResponse {
            request_id: id,
            tool: tool.clone(),
            attempt: 1,
            content_type: transport["content_type"].as_str().map(str::to_owned),
            outcome: Some(v1::TransportOutcome { outcome: Some(v1::transport_outcome::Outcome::HttpStatus(status)) }),
            headers,
            ..v1::ToolResponse::default()
        },
        tool,
        now,
    }
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let (registry, unsound) = pack::load_all(Path::new("schemas")).unwrap();
        assert!(unsound.is_empty());
        let names: Vec<ContractName> = registry
            .contracts()
            .map(|c| ContractName { tool: c.tool.to_string(), version: c.version, status: ContractStatus::Active })
            .collect();
        let lines = Lines::default();
        let writer = lines.clone();
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::INFO)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .init();
        let secret = Secret::new("example-signing-secret").unwrap();
        Stage {
            registry,
            secrets: Secrets([("orders-event".to_owned(), secret)].into()),
            metrics: Arc::new(Metrics::new(&names, Build { version: "test", commit: "test" })),
            lines,
        }
    }

    pub(crate) fn judge(&mut self, case: &Case, variant: &Variant) -> Seen {
        let mut log = MemoryLog::new(1);
        let mut response = v1::ToolResponse { body: variant.body.clone(), ..case.response.clone() };
        response.content_type = variant.content_type.clone().or(response.content_type);
        response
            .headers
            .extend(variant.header.iter().map(|(name, value)| v1::Header { name: name.clone(), value: value.clone() }));
        let id = case.request.request_id.clone();
        log.append(vec![
            outgoing(Topic::Requests, &id, case.request.encode_to_vec()),
            outgoing(Topic::Responses, &id, response.encode_to_vec()),
        ])
        .unwrap();
        let around = Around {
            registry: self.registry.clone(),
            secrets: self.secrets.clone(),
            responses: Encoding::Protobuf,
            requests_topic: "tool.requests".into(),
            responses_topic: "tool.responses".into(),
            partitions: 1,
            group: "canary".into(),
            worker: "canary".into(),
            skew_ms: 0,
        };
        let bounds = Bounds {
            batch_records_max: 10,
            poll_wait: Duration::ZERO,
            parked_max: 10,
            record_bytes_max: RECORD_BYTES_MAX,
            threads: 1,
        };
        let mut worker = Worker::new(log, around, bounds, self.metrics.clone(), 1);
        while worker.step(|| case.now).unwrap() != Step::Idle {}
        self.look(case, worker.log_mut())
    }

    fn look(&self, case: &Case, log: &MemoryLog) -> Seen {
        let audit = v1::AuditRecord::decode(only(log, Topic::Audit).value.as_deref().unwrap()).unwrap();
        let accepted = audit.outcome() == v1::AuditOutcome::Accepted;
        let mut texts = vec![("the audit record", as_bytes(&audit))];
        let mut agent_without_code = String::new();
        for record in log.records(Topic::Results, Partition(0)) {
            let json = String::from_utf8(record.value.clone().unwrap()).unwrap();
            agent_without_code =
                json.replace(&audit.failure_code, "CODE").replace("\"retryable\":true", "\"retryable\":false");
            texts.push(("the agent's headers", headers(record)));
            texts.push(("the agent's message", if accepted { self.without_free_text(case, &json) } else { json }));
        }
        for record in log.records(Topic::Quarantine, Partition(0)) {
            let mut quarantine = v1::QuarantineRecord::decode(record.value.as_deref().unwrap()).unwrap();
            // The raw material: what came from outside, kept for people.
            quarantine.payload = None;
            quarantine.headers.clear();
            quarantine.content_type = None;
            texts.push(("the quarantine's own fields", as_bytes(&quarantine)));
            texts.push(("the quarantine's headers", headers(record)));
        }
        for record in log.records(Topic::Bindings, Partition(0)) {
            texts
                .push(("the state", String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned()));
        }
        Seen {
            accepted,
            refused: audit.outcome() == v1::AuditOutcome::Refused && !agent_without_code.is_empty(),
            texts,
            agent_without_code,
        }
    }

    /// Declared free text may say anything; everything else may not.
    fn without_free_text(&self, case: &Case, json: &str) -> String {
        let mut result: serde_json::Value = serde_json::from_str(json).unwrap();
        if let Lookup::Found(contract) = self.registry.look_up(&case.tool, 0) {
            for field in &contract.untrusted_text {
                if let Some(value) = result.pointer_mut(&format!("/data/{field}")) {
                    *value = serde_json::Value::Null;
                }
            }
        }
        result.to_string()
    }

    /// The one failure that this request can end in.
    pub(crate) fn fixed_failure(&self, case: &Case) -> String {
        format!(
            r#"{{"tool":"{}","request_id":"{}","outcome":"failure","error":{{"code":"CODE","retryable":false}}}}"#,
            case.tool, case.request.request_id
        )
    }

    pub(crate) fn log_lines(&self) -> String {
        String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap()
    }

    pub(crate) fn metrics(&self) -> String {
        self.metrics.encode()
    }
}

fn only(log: &MemoryLog, topic: Topic) -> &Record {
    let records = log.records(topic, Partition(0));
    assert_eq!(records.len(), 1, "exactly one {topic} record for a response");
    &records[0]
}

/// The message as it goes to the topic: its `Debug` hides what this test looks for.
fn as_bytes(message: &impl Message) -> String {
    String::from_utf8_lossy(&message.encode_to_vec()).into_owned()
}

fn headers(record: &Record) -> String {
    let text = |value: &Option<Vec<u8>>| String::from_utf8_lossy(value.as_deref().unwrap_or_default()).into_owned();
    record.headers.iter().map(|header| format!("{}: {}\n", header.name, text(&header.value))).collect()
}

fn outgoing(topic: Topic, key: &str, value: Vec<u8>) -> Outgoing {
    Outgoing { topic, partition: None, key: Some(key.as_bytes().to_vec()), value: Some(value), headers: Vec::new() }
}
