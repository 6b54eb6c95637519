//! A worker, its log and its clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use toolgate::contract::fixture::Secrets;
use toolgate::gate::decode::Encoding;
use toolgate::log::memory::Fault;
use toolgate::log::{Outgoing, Partition, Position, Topic};
use toolgate::partition::Around;
use toolgate::request::Binding;
use toolgate::telemetry::{Build, ContractName, ContractStatus, Metrics};
use toolgate::time::Timestamp;
use toolgate::wire::v1;
use toolgate::worker::{Bounds, Step, Worker};

use crate::support::{self, REQUESTS, RESPONSES, SharedLog};

pub(crate) struct World {
    pub log: SharedLog,
    pub worker: Worker<SharedLog>,
    pub metrics: Arc<Metrics>,
    pub now: Timestamp,
    bounds: Bounds,
    workers: u64,
}

pub(crate) const PARTITIONS: i32 = 2;
const RECORD_BYTES_MAX: usize = 1 << 20;
/// No story takes more; whoever does is going round in circles.
const STEPS_MAX: usize = 10_000;

pub(crate) fn around() -> Around {
    Around {
        registry: support::registry(),
        secrets: Secrets::default(),
        responses: Encoding::Protobuf,
        requests_topic: REQUESTS.into(),
        responses_topic: RESPONSES.into(),
        partitions: PARTITIONS,
        group: "test".into(),
        worker: "worker-0".into(),
        skew_ms: 2_000,
    }
}

fn start_worker(log: &SharedLog, bounds: Bounds, metrics: &Arc<Metrics>, seed: u64) -> Worker<SharedLog> {
    Worker::new(log.clone(), around(), bounds, metrics.clone(), seed)
}

impl World {
    pub(crate) fn new() -> World {
        World::with(100, 1000)
    }

    pub(crate) fn with(batch_records_max: usize, parked_max: usize) -> World {
        World::bounded(batch_records_max, parked_max, 1)
    }

    /// Judges large batches on so many threads.
    pub(crate) fn spread(threads: usize) -> World {
        World::bounded(10_000, 1000, threads)
    }

    fn bounded(batch_records_max: usize, parked_max: usize, threads: usize) -> World {
        let log = SharedLog::new(PARTITIONS);
        let poll_wait = Duration::from_secs(1);
        let bounds = Bounds { batch_records_max, poll_wait, parked_max, record_bytes_max: RECORD_BYTES_MAX, threads };
        let names: Vec<ContractName> = support::registry()
            .contracts()
            .map(|c| ContractName { tool: c.tool.to_string(), version: c.version, status: ContractStatus::Active })
            .collect();
        let metrics = Arc::new(Metrics::new(&names, Build { version: "0", commit: "0" }));
        let worker = start_worker(&log, bounds, &metrics, 1);
        World { log, worker, metrics, now: support::start(), bounds, workers: 1 }
    }

    /// The worker is killed between two steps, and another one takes over.
    pub(crate) fn restart(&mut self) {
        self.workers += 1;
        self.log.0.borrow_mut().restart();
        self.worker = start_worker(&self.log, self.bounds, &self.metrics, self.workers);
    }

    pub(crate) fn fault(&mut self, fault: Fault) {
        self.log.0.borrow_mut().fail_commit(fault);
    }

    pub(crate) fn advance(&mut self, millis: i64) {
        self.now = self.now.saturating_add_millis(millis);
    }

    pub(crate) fn step(&mut self) -> Step {
        self.log.0.borrow_mut().set_now_ms(self.now.unix_millis());
        let now = self.now;
        self.worker.step(|| now).expect("the log in memory does not fail")
    }

    /// Steps until there is nothing left to do at this moment.
    pub(crate) fn run(&mut self) {
        for _ in 0..STEPS_MAX {
            if self.step() == Step::Idle {
                return;
            }
        }
        panic!("the worker does not come to rest");
    }

    pub(crate) fn append(&mut self, record: Outgoing) -> Position {
        let mut log = self.log.0.borrow_mut();
        log.set_now_ms(self.now.unix_millis());
        log.append(vec![record]).expect("the log takes it")[0]
    }

    pub(crate) fn announce(&mut self, request: &v1::ToolRequest) -> Position {
        self.append(keyed(Topic::Requests, &request.request_id, request.encode_to_vec()))
    }

    pub(crate) fn respond(&mut self, response: &v1::ToolResponse) -> Position {
        self.append(keyed(Topic::Responses, &response.request_id, response.encode_to_vec()))
    }

    /// A request as a dispatcher announces it now, with a minute to answer.
    pub(crate) fn request(&self, id: &str, tool: &str) -> v1::ToolRequest {
        v1::ToolRequest {
            request_id: id.into(),
            tool: tool.into(),
            arguments: support::arguments(tool).into(),
            issued_at_unix_ms: self.now.unix_millis(),
            deadline_unix_ms: self.now.saturating_add_millis(60_000).unix_millis(),
            attempt: 1,
            ..v1::ToolRequest::default()
        }
    }

    pub(crate) fn response(&self, id: &str, body: &str) -> v1::ToolResponse {
        support::response(body, id, self.now)
    }

    /// What the worker has in memory.
    pub(crate) fn state(&self) -> BTreeMap<String, Binding> {
        self.worker.states().flat_map(|state| state.bindings()).map(|b| (b.request_id.to_string(), b)).collect()
    }

    /// What the changelog says, read as somebody else would.
    pub(crate) fn committed_state(&self) -> BTreeMap<String, Binding> {
        let mut state = BTreeMap::new();
        for record in self.log.records(Topic::Bindings) {
            let key = String::from_utf8(record.key.expect("a key")).expect("an id");
            match record.value {
                None => drop(state.remove(&key)),
                Some(value) => {
                    let message = v1::Binding::decode(value.as_slice()).expect("a binding");
                    state.insert(key, Binding::from_message(message).expect("a sound binding"));
                }
            }
        }
        state
    }

    pub(crate) fn waiting(&self) -> usize {
        self.worker.states().map(|state| state.waiting()).sum()
    }

    pub(crate) fn committed(&self, topic: Topic, partition: Partition) -> i64 {
        self.log.0.borrow().committed(topic, partition).map_or(0, |offset| offset.0)
    }
}

pub(crate) fn keyed(topic: Topic, key: &str, value: Vec<u8>) -> Outgoing {
    Outgoing { topic, partition: None, key: Some(key.into()), value: Some(value), headers: Vec::new() }
}
