//! The embedded worker end to end against raw appends of the same bytes.

use crate::rate;
use prost::Message;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolgate::contract::Registry;
use toolgate::contract::fixture::Secrets;
use toolgate::gate::decode::Encoding;
use toolgate::log::sqlite::{SqliteClient, SqliteLog, WorkerOptions};
use toolgate::log::{Offset, Outgoing, Partition, RECORD_BYTES_MAX, Topic};
use toolgate::partition::Around;
use toolgate::telemetry::{Build, Metrics};
use toolgate::time::Timestamp;
use toolgate::wire::v1;
use toolgate::worker::{Bounds, Step, Worker};

const RESPONSES: usize = 20_000;
const PARTITIONS: i32 = 4;
const BATCH: usize = 500;

/// Judges 20,000 responses of about 1 KiB, and appends as many raw bytes as the worker wrote.
pub(crate) fn print(registry: &Registry) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.db");
    let mut client = SqliteLog::open_client(&path, Some(PARTITIONS)).unwrap();
    let now = Timestamp::parse_rfc3339("2026-12-01T05:04:00Z").unwrap();
    fill(&mut client, now);
    let started = Instant::now();
    let mut worker = worker(&path, registry);
    while worker.step(|| now).unwrap() != Step::Idle {}
    let judged = rate(RESPONSES, started.elapsed());
    drop(worker);
    let written = written(&mut client);
    let raw = rate(RESPONSES, append_raw(&folder.path().join("raw.db"), written));
    println!("{:<66} {judged:>8.0}  /s", "embedded worker, responses end to end");
    println!("{:<66} {raw:>8.0}  /s", "raw appends of the bytes that it wrote, per response");
    println!("{:<66} {:>8.2}", "embedded worker / raw appends", judged / raw);
}

fn worker(path: &Path, registry: &Registry) -> Worker<SqliteLog> {
    let options = WorkerOptions {
        group: "bench".into(),
        partitions: PARTITIONS,
        accept_gap: false,
        batch_bytes_max: 8 << 20,
        now_ms: || 0,
    };
    let around = Around {
        registry: registry.clone(),
        secrets: Secrets::default(),
        responses: Encoding::Protobuf,
        requests_topic: "tool.requests".into(),
        responses_topic: "tool.responses".into(),
        partitions: PARTITIONS,
        group: "bench".into(),
        worker: "bench".into(),
        skew_ms: 0,
    };
    let bounds = Bounds {
        batch_records_max: BATCH,
        poll_wait: Duration::from_millis(1),
        parked_max: 10_000,
        record_bytes_max: RECORD_BYTES_MAX,
        threads: 1,
    };
    let metrics = Arc::new(Metrics::new(&[], Build { version: "bench", commit: "bench" }));
    Worker::new(SqliteLog::open_worker(path, options).unwrap(), around, bounds, metrics, 7)
}

fn fill(client: &mut SqliteClient, now: Timestamp) {
    let padding = "x".repeat(860);
    for batch in 0..RESPONSES / BATCH {
        let (mut requests, mut responses) = (Vec::new(), Vec::new());
        for i in 0..BATCH {
            let id = format!("req-{:07}", batch * BATCH + i);
            let request = v1::ToolRequest {
                request_id: id.clone(),
                tool: "ci.job_status".into(),
                arguments: br#"{"project_id":"bluebird"}"#.to_vec(),
                issued_at_unix_ms: now.unix_millis(),
                deadline_unix_ms: now.unix_millis() + 60_000,
                attempt: 1,
                ..v1::ToolRequest::default()
            };
            let body = format!(
                r#"{{"api_version":2,"project":{{"slug":"bluebird"}},"run":{{"id":"run_7Kd29QmXv4Lp","status":"failed","log":"{padding}"}},"observed_at":"2026-12-01T05:03:11Z"}}"#
            );
            let response = v1::ToolResponse {
                request_id: id.clone(),
                tool: "ci.job_status".into(),
                attempt: 1,
                body: body.into_bytes(),
                content_type: Some("application/json".into()),
                outcome: Some(v1::TransportOutcome { outcome: Some(v1::transport_outcome::Outcome::HttpStatus(200)) }),
                ..v1::ToolResponse::default()
            };
            requests.push(outgoing(Topic::Requests, &id, request.encode_to_vec()));
            responses.push(outgoing(Topic::Responses, &id, response.encode_to_vec()));
        }
        client.append(requests, 0).unwrap();
        client.append(responses, 0).unwrap();
    }
}

fn outgoing(topic: Topic, key: &str, value: Vec<u8>) -> Outgoing {
    Outgoing { topic, partition: None, key: Some(key.as_bytes().to_vec()), value: Some(value), headers: Vec::new() }
}

/// Bytes that the worker wrote for one response, on average.
fn written(client: &mut SqliteClient) -> usize {
    let mut bytes = 0;
    for topic in [Topic::Results, Topic::Audit, Topic::Bindings] {
        for partition in (0..PARTITIONS).map(Partition) {
            let mut from = Offset(0);
            loop {
                let records = client.read(topic, partition, from, 1000).unwrap();
                let Some(last) = records.last() else { break };
                from = last.position.offset.next();
                bytes += records.iter().map(|record| record.bytes()).sum::<usize>();
            }
        }
    }
    bytes / RESPONSES
}

fn append_raw(path: &Path, bytes: usize) -> Duration {
    let mut client = SqliteLog::open_client(path, Some(PARTITIONS)).unwrap();
    let value = vec![b'x'; bytes];
    let started = Instant::now();
    for batch in 0..RESPONSES / BATCH {
        let records = (0..BATCH)
            .map(|i| outgoing(Topic::Results, &format!("req-{:07}", batch * BATCH + i), value.clone()))
            .collect();
        client.append(records, 0).unwrap();
    }
    started.elapsed()
}
