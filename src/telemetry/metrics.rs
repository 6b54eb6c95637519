//! The one place that counts. Every method takes typed values; no label text is made elsewhere.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabel, EncodeLabelSet, LabelSetEncoder, text},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use super::catalog::{Metric, Type};
use crate::gate::reason::Reason;

/// What became of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Accepted,
    /// A well-understood failure of the tool, mapped to a closed code.
    Failed,
    Refused,
}

impl Outcome {
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Accepted => "accepted",
            Outcome::Failed => "failed",
            Outcome::Refused => "refused",
        }
    }
}

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestOutcome {
    /// Read from the requests topic and now outstanding.
    Announced,
    /// Closed, with the response's outcome.
    Closed(Outcome),
    /// Closed because the deadline passed.
    Expired,
}

impl RequestOutcome {
    pub const fn name(self) -> &'static str {
        match self {
            RequestOutcome::Announced => "announced",
            RequestOutcome::Closed(outcome) => outcome.name(),
            RequestOutcome::Expired => "expired",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContractStatus {
    Active,
    Shadow,
    Retired,
}

impl ContractStatus {
    pub const fn name(self) -> &'static str {
        match self {
            ContractStatus::Active => "active",
            ContractStatus::Shadow => "shadow",
            ContractStatus::Retired => "retired",
        }
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommitOutcome {
    Committed,
    Aborted,
    Indeterminate,
}

impl CommitOutcome {
    pub const fn name(self) -> &'static str {
        match self {
            CommitOutcome::Committed => "committed",
            CommitOutcome::Aborted => "aborted",
            CommitOutcome::Indeterminate => "indeterminate",
        }
    }
}

/// A loaded contract, as metrics name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractName {
    pub tool: String,
    pub version: u32,
    pub status: ContractStatus,
}

/// What this program was built from.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    pub version: &'static str,
    pub commit: &'static str,
}

/// A loaded contract, or `unknown`. Cheap to copy; made by [`Metrics::key`] only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContractKey(u16);

impl ContractKey {
    /// Whatever is not a loaded contract.
    pub const UNKNOWN: ContractKey = ContractKey(0);
}

/// Label values of one series, in the order of the metric's labels in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Labels {
    metric: Metric,
    values: [Value; LABELS_MAX],
}

const LABELS_MAX: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Value {
    Fixed(&'static str),
    Loaded(Arc<str>),
    Unused,
}

impl EncodeLabelSet for Labels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        for (label, value) in self.metric.labels().iter().zip(&self.values) {
            let text = match value {
                Value::Fixed(text) => text,
                Value::Loaded(text) => &**text,
                Value::Unused => continue,
            };
            (label.name(), text).encode(encoder.encode_label())?;
        }
        Ok(())
    }
}

type Counters = Family<Labels, Counter>;
type Seconds = Gauge<f64, AtomicU64>;

/// Counters, gauges and histograms of one worker.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Tool and `tool@version`, by key; the first is `unknown`.
    names: Vec<(Arc<str>, Arc<str>)>,
    keys: HashMap<Box<str>, Vec<(u32, ContractKey)>>,
    responses: Counters,
    refusals: Counters,
    requests: Counters,
    retries: Counters,
    retries_withheld: Counters,
    expired: Counters,
    shadow_disagreements: Counters,
    commits: Counters,
    result_bytes: Histogram,
    body_bytes: Histogram,
    decide: Histogram,
    commit: Histogram,
    restore: Histogram,
    batch_records: Histogram,
    outstanding: Gauge,
    bindings: Gauge,
    parked: Gauge,
    lag_records: Gauge,
    lag_seconds: Seconds,
    partitions: Gauge,
    ready: Gauge,
}

impl Metrics {
    /// Metrics for the contracts that are loaded, at most 65,534 of them; any further one counts
    /// as `unknown`. Series of the common outcomes start at 0, so that a rate has a beginning.
    pub fn new(contracts: &[ContractName], build: Build) -> Self {
        let mut registry = Registry::default();
        let r = &mut registry;
        let contract_info: Family<Labels, Gauge> = register(r, Metric::ContractInfo, Family::default());
        let build_info: Family<Labels, Gauge> = register(r, Metric::BuildInfo, Family::default());
        let mut metrics = Metrics {
            names: vec![("unknown".into(), "unknown".into())],
            keys: HashMap::new(),
            responses: register(r, Metric::Responses, Family::default()),
            refusals: register(r, Metric::Refusals, Family::default()),
            requests: register(r, Metric::Requests, Family::default()),
            retries: register(r, Metric::Retries, Family::default()),
            retries_withheld: register(r, Metric::RetriesWithheld, Family::default()),
            expired: register(r, Metric::Expired, Family::default()),
            shadow_disagreements: register(r, Metric::ShadowDisagreements, Family::default()),
            commits: register(r, Metric::Commits, Family::default()),
            result_bytes: register(r, Metric::ResultBytes, Histogram::new(exponential_buckets(64.0, 2.0, 10))),
            body_bytes: register(r, Metric::BodyBytes, Histogram::new(exponential_buckets(256.0, 4.0, 8))),
            decide: register(r, Metric::Decide, Histogram::new(exponential_buckets(1e-6, 2.0, 16))),
            commit: register(r, Metric::Commit, Histogram::new(exponential_buckets(5e-4, 2.0, 14))),
            restore: register(r, Metric::Restore, Histogram::new(exponential_buckets(1e-2, 2.0, 14))),
            batch_records: register(r, Metric::BatchRecords, Histogram::new(exponential_buckets(1.0, 2.0, 14))),
            outstanding: register(r, Metric::Outstanding, Gauge::default()),
            bindings: register(r, Metric::Bindings, Gauge::default()),
            parked: register(r, Metric::Parked, Gauge::default()),
            lag_records: register(r, Metric::LagRecords, Gauge::default()),
            lag_seconds: register(r, Metric::LagSeconds, Seconds::default()),
            partitions: register(r, Metric::Partitions, Gauge::default()),
            ready: register(r, Metric::Ready, Gauge::default()),
            registry,
        };
        let build = labels(Metric::BuildInfo, [Value::Fixed(build.version), Value::Fixed(build.commit)]);
        build_info.get_or_create(&build).set(1);
        for contract in contracts {
            let key = metrics.load(contract);
            let (tool, name) = metrics.name(key);
            let info = labels(Metric::ContractInfo, [tool, name, Value::Fixed(contract.status.name())]);
            contract_info.get_or_create(&info).set(1);
        }
        metrics
    }

    fn load(&mut self, contract: &ContractName) -> ContractKey {
        let Ok(index) = u16::try_from(self.names.len()) else { return ContractKey::UNKNOWN };
        let key = ContractKey(index);
        self.names.push((contract.tool.as_str().into(), format!("{}@{}", contract.tool, contract.version).into()));
        self.keys.entry(contract.tool.as_str().into()).or_default().push((contract.version, key));
        self.counter(&self.responses, Metric::Responses, key, [Value::Fixed("accepted"), Value::Fixed("none")], 0);
        self.counter(&self.requests, Metric::Requests, key, [Value::Fixed("announced")], 0);
        key
    }

    /// The key of a loaded contract; [`ContractKey::UNKNOWN`] for anything else.
    pub fn key(&self, tool: &str, version: u32) -> ContractKey {
        let versions = self.keys.get(tool).map_or(&[][..], Vec::as_slice);
        versions.iter().find(|(v, _)| *v == version).map_or(ContractKey::UNKNOWN, |(_, key)| *key)
    }

    /// A response was judged. `reason` is `None` exactly where it was accepted.
    pub fn response(&self, key: ContractKey, outcome: Outcome, reason: Option<Reason>) {
        let code = Value::Fixed(reason.map_or("none", Reason::code));
        self.counter(&self.responses, Metric::Responses, key, [Value::Fixed(outcome.name()), code.clone()], 1);
        if let (Outcome::Refused, Some(reason)) = (outcome, reason) {
            let values = [Value::Fixed(reason.stage().name()), code];
            self.counter(&self.refusals, Metric::Refusals, key, values, 1);
        }
    }

    pub fn request(&self, key: ContractKey, outcome: RequestOutcome) {
        self.counter(&self.requests, Metric::Requests, key, [Value::Fixed(outcome.name())], 1);
        if outcome == RequestOutcome::Expired {
            self.counter(&self.expired, Metric::Expired, key, [], 1);
        }
    }

    /// A retry directive was written.
    pub fn retry(&self, key: ContractKey) {
        self.counter(&self.retries, Metric::Retries, key, [], 1);
    }

    /// A retry would have been made, but attempts, time or the tool's share were spent.
    pub fn retry_withheld(&self, key: ContractKey) {
        self.counter(&self.retries_withheld, Metric::RetriesWithheld, key, [], 1);
    }

    pub fn shadow_disagreement(&self, shadow: ContractKey) {
        self.counter(&self.shadow_disagreements, Metric::ShadowDisagreements, shadow, [], 1);
    }

    pub fn result_bytes(&self, bytes: usize) {
        self.result_bytes.observe(bytes as f64);
    }

    pub fn body_bytes(&self, bytes: usize) {
        self.body_bytes.observe(bytes as f64);
    }

    /// So many responses were judged one after the other; each counts with their mean.
    pub fn decided(&self, responses: usize, took: Duration) {
        let mean = took.as_secs_f64() / responses.max(1) as f64;
        (0..responses).for_each(|_| self.decide.observe(mean));
    }

    /// A transaction of `records` input records ended.
    pub fn commit(&self, outcome: CommitOutcome, records: usize, took: Duration) {
        let ended = labels(Metric::Commits, [Value::Fixed(outcome.name())]);
        self.commits.get_or_create(&ended).inc();
        self.commit.observe(took.as_secs_f64());
        self.batch_records.observe(records as f64);
    }

    /// One partition's state was rebuilt.
    pub fn restored(&self, took: Duration) {
        self.restore.observe(took.as_secs_f64());
    }

    pub fn set_outstanding(&self, requests: usize) {
        self.outstanding.set(gauge(requests));
    }

    pub fn set_bindings(&self, bindings: usize) {
        self.bindings.set(gauge(bindings));
    }

    pub fn set_parked(&self, responses: usize) {
        self.parked.set(gauge(responses));
    }

    /// Input that is written but not yet processed, and the age of its oldest record.
    pub fn set_lag(&self, records: u64, oldest: Duration) {
        self.lag_records.set(i64::try_from(records).unwrap_or(i64::MAX));
        self.lag_seconds.set(oldest.as_secs_f64());
    }

    pub fn set_partitions(&self, owned: usize) {
        self.partitions.set(gauge(owned));
    }

    pub fn set_ready(&self, ready: bool) {
        self.ready.set(i64::from(ready));
    }

    /// All metrics in the OpenMetrics text format, version 1.0.0.
    pub fn encode(&self) -> String {
        let mut page = String::with_capacity(16 * 1024);
        // Writing to a String cannot fail, and no label's encoder does anything else.
        let _ = text::encode(&mut page, &self.registry);
        page
    }

    /// All metrics in the older text format 0.0.4, which `promtool check metrics` reads: there, a
    /// counter's help belongs to the name with `_total`, and nothing marks the end.
    pub fn encode_plain(&self) -> String {
        let mut page = String::with_capacity(16 * 1024);
        for line in self.encode().lines().filter(|line| *line != "# EOF") {
            let family = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "));
            let name = family.and_then(|rest| rest.split(' ').next()).unwrap_or_default();
            let is_counter = |m: &&Metric| m.kind() == Type::Counter && m.name().strip_suffix("_total") == Some(name);
            match Metric::ALL.iter().find(is_counter) {
                Some(counter) => page.push_str(&line.replacen(name, counter.name(), 1)),
                None => page.push_str(line),
            }
            page.push('\n');
        }
        page
    }

    fn counter<const N: usize>(
        &self,
        family: &Counters,
        metric: Metric,
        key: ContractKey,
        values: [Value; N],
        by: u64,
    ) {
        let (tool, contract) = self.name(key);
        let all = [tool, contract].into_iter().chain(values);
        family.get_or_create(&labels(metric, all)).inc_by(by);
    }

    fn name(&self, key: ContractKey) -> (Value, Value) {
        let (tool, contract) = &self.names[usize::from(key.0)];
        (Value::Loaded(tool.clone()), Value::Loaded(contract.clone()))
    }
}

fn register<M: prometheus_client::registry::Metric + Clone>(registry: &mut Registry, metric: Metric, value: M) -> M {
    let name = metric.name();
    registry.register(name.strip_suffix("_total").unwrap_or(name), metric.help(), value.clone());
    value
}

fn labels(metric: Metric, values: impl IntoIterator<Item = Value>) -> Labels {
    let mut padded = [Value::Unused, Value::Unused, Value::Unused, Value::Unused];
    for (slot, value) in padded.iter_mut().zip(values) {
        *slot = value;
    }
    Labels { metric, values: padded }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used() -> Metrics {
        let name =
            |tool: &str, version| ContractName { tool: tool.to_owned(), version, status: ContractStatus::Active };
        let build = Build { version: "0.1.0", commit: "unknown" };
        let metrics = Metrics::new(&[name("ci.job_status", 1), name("ci.job_status", 2)], build);
        let key = metrics.key("ci.job_status", 2);
        metrics.response(key, Outcome::Accepted, None);
        metrics.response(key, Outcome::Refused, Some(Reason::SchemaViolation));
        metrics.response(metrics.key("never.loaded", 1), Outcome::Refused, Some(Reason::UnknownTool));
        metrics.request(key, RequestOutcome::Announced);
        metrics.request(key, RequestOutcome::Closed(Outcome::Accepted));
        metrics.request(key, RequestOutcome::Expired);
        metrics.retry(key);
        metrics.retry_withheld(key);
        metrics.shadow_disagreement(key);
        metrics.result_bytes(120);
        metrics.body_bytes(900);
        metrics.decided(1, Duration::from_micros(3));
        metrics.commit(CommitOutcome::Committed, 500, Duration::from_millis(4));
        metrics.restored(Duration::from_millis(300));
        metrics.set_outstanding(3);
        metrics.set_bindings(4);
        metrics.set_parked(1);
        metrics.set_lag(7, Duration::from_millis(1500));
        metrics.set_partitions(4);
        metrics.set_ready(true);
        metrics
    }

    #[test]
    fn every_metric_of_the_catalogue_is_written_with_its_help_and_type() {
        let page = used().encode();
        for metric in Metric::ALL {
            let family = metric.name().strip_suffix("_total").unwrap_or(metric.name());
            assert!(page.contains(&format!("# HELP {family} {}.\n", metric.help())), "{}", metric.name());
            assert!(page.contains(&format!("\n{}", metric.name())), "{} has no sample", metric.name());
        }
        assert!(page.ends_with("# EOF\n"));
        let plain = used().encode_plain();
        assert!(plain.contains("# TYPE toolgate_responses_total counter\n"));
        assert!(!plain.contains("# EOF"));
    }

    #[test]
    fn a_response_counts_once_and_a_refusal_names_its_stage() {
        let page = used().encode();
        for line in [
            r#"toolgate_responses_total{tool="ci.job_status",contract="ci.job_status@2",outcome="accepted",reason="none"} 1"#,
            r#"toolgate_responses_total{tool="ci.job_status",contract="ci.job_status@1",outcome="accepted",reason="none"} 0"#,
            r#"toolgate_refusals_total{tool="ci.job_status",contract="ci.job_status@2",stage="validate",reason="SCHEMA_VIOLATION"} 1"#,
            r#"toolgate_requests_total{tool="ci.job_status",contract="ci.job_status@2",outcome="expired"} 1"#,
            r#"toolgate_commits_total{outcome="committed"} 1"#,
            "toolgate_lag_seconds 1.5",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }

    #[test]
    fn a_name_that_is_not_loaded_never_becomes_a_label() {
        let metrics = used();
        let before = metrics.encode().lines().count();
        for i in 0..1000 {
            let key = metrics.key(&format!("hostile-{i}"), i);
            metrics.response(key, Outcome::Refused, Some(Reason::UnknownTool));
        }
        let page = metrics.encode();
        assert_eq!(page.lines().count(), before);
        assert!(!page.contains("hostile"));
        assert!(page.contains(
            r#"toolgate_responses_total{tool="unknown",contract="unknown",outcome="refused",reason="UNKNOWN_TOOL"} 1001"#
        ));
    }
}
