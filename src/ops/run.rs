//! `toolgate run`: the whole life of a worker. Everything that can be wrong is found out before a
//! port or the log is opened; after that it builds, serves, and drains.

use super::args::RunArgs;
use super::idle::Goal;
use super::settings::{self, Flags};
use super::vet::read_secrets;
use super::{Exit, out, topics};
use crate::config::{Config, LogKind, ResponseEncoding};
use crate::contract::fixture::Secrets;
use crate::contract::{Registry, Status, pack};
use crate::gate::decode::Encoding;
use crate::log::kafka::{KafkaLog, KafkaOptions};
use crate::log::sqlite::{Retention, SqliteLog, WorkerOptions};
use crate::log::{Log, LogError, Offset, Partition, RECORD_BYTES_MAX, Topic};
use crate::partition::Around;
use crate::telemetry::http::{Health, Pages, Phase, Server};
use crate::telemetry::logging::{self, Colour};
use crate::telemetry::{Build, ContractName, ContractStatus, Metrics};
use crate::worker::{Bounds, Step, Worker, clock};
use anyhow::{Context, Result, anyhow, bail};
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs a worker until a signal or, where asked for, until there is nothing left to do.
///
/// # Errors
/// Bad configuration, no sound contract, or a log that fails.
pub(super) fn run(file: Option<&Path>, args: &RunArgs) -> Result<Exit> {
    let config = settings::load(file, &flags(args))?;
    let no_color = std::env::var("NO_COLOR").ok();
    logging::init(config.telemetry.log_format, config.telemetry.log_level, Colour::from_no_color(no_color.as_deref()))?;
    let registry = load_contracts(&config.contracts.dir)?;
    let secrets = load_secrets(&config, &registry)?;
    let stop = stop_on_signals()?;
    bound_drain(stop.clone(), config.worker.drain_timeout)?;
    let metrics = Arc::new(metrics_for(&registry));
    let health = Arc::new(Health::new(STUCK_AFTER));
    let _server = serve(&config, &metrics, &health)?;
    let (partitions, log): (i32, Box<dyn WorkerLog>) = match config.log.kind {
        LogKind::Embedded => (config.log.partitions.into(), Box::new(open_log(&config)?)),
        LogKind::Kafka => {
            let options = KafkaOptions::from_config(&config)?;
            topics::refuse_fatal(&config, &options)?;
            let log = KafkaLog::connect(options)?;
            (log.partitions(), Box::new(log))
        }
    };
    let around = around(&config, registry, secrets, partitions);
    let worker = Worker::new(log, around, bounds(&config), metrics.clone(), seed()?);
    let goal = args.until_idle.then(Goal::default);
    let ended = Loop { worker, config: &config, metrics: &metrics, health: &health, stop: &stop, goal }.run();
    Ok(ended.map(|()| Exit::Ok)?)
}

fn flags(args: &RunArgs) -> Flags {
    let mut flags = Flags::new();
    settings::flag(&mut flags, "log.path", args.log.as_ref().map(|path| path.display()));
    settings::flag(&mut flags, "contracts.dir", args.schemas.as_ref().map(|path| path.display()));
    settings::flag(&mut flags, "log.accept_gap", args.accept_gap.then_some("true"));
    flags
}

/// Serves the sound contracts and names the others. Without any there is nothing to do but refuse.
pub(super) fn load_contracts(dir: &Path) -> Result<Registry> {
    let (registry, unsound) = pack::load_all(dir).map_err(|why| anyhow!(why))?;
    for pack in &unsound {
        tracing::error!(folder = %pack.dir.display(), "contract is not served: `toolgate check` says why");
    }
    if registry.is_empty() {
        bail!("{}: no contract is sound; run `toolgate check {}`", dir.display(), dir.display());
    }
    tracing::info!(served = registry.contracts().count(), refused = unsound.len(), "contracts loaded");
    Ok(registry)
}

/// A contract whose signatures can't be checked would refuse everything: say so at the start.
fn load_secrets(config: &Config, registry: &Registry) -> Result<Secrets> {
    let dir = &config.contracts.secrets_dir;
    let secrets = if dir.is_dir() { read_secrets(dir)? } else { Secrets::default() };
    for contract in registry.contracts() {
        for name in contract.secrets.iter().filter(|name| !secrets.0.contains_key(*name)) {
            tracing::warn!(contract = %contract.label, secret = %name, folder = %dir.display(), "secret is missing: signatures that need it will not verify");
        }
    }
    Ok(secrets)
}

/// Ends the process where what was begun is not finished in time, as when no broker answers. Nothing is lost by that: a
/// transaction that was not committed is aborted by the broker, and its records are read again.
fn bound_drain(stop: Arc<AtomicBool>, timeout: Duration) -> Result<()> {
    let watch = move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_FOR_STOP_EVERY);
        }
        std::thread::sleep(timeout);
        let after_s = timeout.as_secs();
        tracing::error!(after_s, "what was begun could not be finished in worker.drain_timeout; it is read again");
        std::process::exit(Exit::Temporary.code().into());
    };
    std::thread::Builder::new().name("drain".to_owned()).spawn(watch).context("a thread can't be started")?;
    Ok(())
}

pub(super) fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        // A second signal ends the process at once; nothing is lost by that, only unfinished.
        signal_hook::flag::register_conditional_shutdown(signal, 1, stop.clone())
            .context("signals can't be handled")?;
        signal_hook::flag::register(signal, stop.clone()).context("signals can't be handled")?;
    }
    Ok(stop)
}

pub(super) fn metrics_for(registry: &Registry) -> Metrics {
    let status = |status| match status {
        Status::Active => ContractStatus::Active,
        Status::Shadow => ContractStatus::Shadow,
        Status::Retired => ContractStatus::Retired,
    };
    let names: Vec<ContractName> = registry
        .contracts()
        .map(|contract| ContractName {
            tool: contract.tool.to_string(),
            version: contract.version,
            status: status(contract.status),
        })
        .collect();
    Metrics::new(
        &names,
        Build { version: env!("CARGO_PKG_VERSION"), commit: option_env!("TOOLGATE_COMMIT").unwrap_or("unknown") },
    )
}

fn serve(config: &Config, metrics: &Arc<Metrics>, health: &Arc<Health>) -> Result<Option<Server>> {
    let Some(address) = config.telemetry.metrics_listen else { return Ok(None) };
    let pages = Pages { metrics: metrics.clone(), health: health.clone(), now_ms };
    let server = Server::start(address, pages)?;
    tracing::info!(address = %server.address(), "serving /metrics, /livez and /readyz");
    Ok(Some(server))
}

fn now_ms() -> i64 {
    clock::now().unix_millis()
}

fn open_log(config: &Config) -> Result<SqliteLog> {
    let options = WorkerOptions {
        group: config.worker.group.clone(),
        partitions: config.log.partitions.into(),
        accept_gap: config.log.accept_gap,
        batch_bytes_max: config.worker.batch_bytes_max,
        now_ms,
    };
    Ok(SqliteLog::open_worker(&config.log.path, options)?)
}

fn around(config: &Config, registry: Registry, secrets: Secrets, partitions: i32) -> Around {
    Around {
        registry,
        secrets,
        responses: match config.encoding.responses {
            ResponseEncoding::Protobuf => Encoding::Protobuf,
            ResponseEncoding::CloudEvents => Encoding::CloudEvents,
        },
        requests_topic: config.topics.requests.clone(),
        responses_topic: config.topics.responses.clone(),
        partitions,
        group: config.worker.group.clone(),
        worker: config.worker.instance.clone(),
        skew_ms: millis(config.worker.skew),
    }
}

fn bounds(config: &Config) -> Bounds {
    Bounds {
        batch_records_max: config.worker.batch_records_max,
        poll_wait: config.worker.poll_wait,
        parked_max: config.worker.parked_max,
        record_bytes_max: RECORD_BYTES_MAX,
        threads: match config.worker.threads {
            0 => std::thread::available_parallelism().map_or(1, NonZero::get),
            threads => threads,
        },
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Seeds hashes and jitter from the system.
pub(super) fn seed() -> Result<u64> {
    getrandom::u64().map_err(|error| anyhow!("the system gives no random numbers: {error}"))
}

struct Loop<'a> {
    worker: Worker<Box<dyn WorkerLog>>,
    config: &'a Config,
    metrics: &'a Metrics,
    health: &'a Health,
    stop: &'a AtomicBool,
    /// Of `--until-idle`.
    goal: Option<Goal>,
}

/// A log that `run` can serve from.
trait WorkerLog: Log {
    /// Once a second, and again after the next batch while it says that there is more: what the log has to do for itself.
    fn look_after_itself(&mut self, config: &Config) -> Result<bool, LogError>;

    /// How many input records wait, and when the oldest of them was written, in milliseconds since the epoch.
    fn waiting(&self) -> Result<(u64, Option<i64>), LogError>;

    /// Whether everything below `end` has been read of an input that is ours.
    fn has_read_to(&mut self, topic: Topic, partition: Partition, end: Offset) -> Result<bool, LogError> {
        Ok(self.position(topic, partition)? >= end)
    }
}

impl WorkerLog for SqliteLog {
    fn look_after_itself(&mut self, config: &Config) -> Result<bool, LogError> {
        let done = self.maintain(now_ms(), &retention(config), MAINTAIN_ROWS)?;
        if done.expired + done.compacted > 0 {
            tracing::debug!(expired = done.expired, compacted = done.compacted, "log maintained");
        }
        Ok(done.more)
    }

    fn waiting(&self) -> Result<(u64, Option<i64>), LogError> {
        self.lag()
    }
}

impl WorkerLog for KafkaLog {
    /// Retention and compaction are the brokers'.
    fn look_after_itself(&mut self, _config: &Config) -> Result<bool, LogError> {
        Ok(false)
    }

    fn waiting(&self) -> Result<(u64, Option<i64>), LogError> {
        Ok(self.lag())
    }

    fn has_read_to(&mut self, topic: Topic, partition: Partition, end: Offset) -> Result<bool, LogError> {
        KafkaLog::has_read_to(self, topic, partition, end)
    }
}

const LOOK_FOR_STOP_EVERY: Duration = Duration::from_millis(100);

/// A step that takes longer than this is stuck. It is longer than the log repeats a question while brokers are away, and
/// than it waits for somebody's transaction before a restore.
const STUCK_AFTER: Duration = Duration::from_secs(180);

/// Rows that one step of maintenance may touch, and how often there is one.
const MAINTAIN_ROWS: usize = 2000;
const MAINTAIN_EVERY_MS: i64 = 1000;

impl Loop<'_> {
    fn run(mut self) -> Result<(), LogError> {
        let mut maintained_ms = now_ms();
        let mut more = false;
        loop {
            let step = self.worker.step(clock::now)?;
            self.health.beat(now_ms());
            let is_ready = step != Step::Restoring && self.worker.states().next().is_some();
            self.health.set(if is_ready { Phase::Ready } else { Phase::Restoring });
            self.metrics.set_ready(is_ready);
            let is_due = more || now_ms() - maintained_ms >= MAINTAIN_EVERY_MS;
            if is_due {
                maintained_ms = now_ms();
                more = self.look_after()?;
            }
            if self.stop.load(Ordering::Relaxed) {
                return self.drained("stopped by a signal");
            }
            if self.is_done(step)? {
                return self.drained("nothing is left to do");
            }
        }
    }

    /// Whether `--until-idle` has what it waits for. A step without work has nothing left to commit.
    fn is_done(&mut self, step: Step) -> Result<bool, LogError> {
        let Some(goal) = &mut self.goal else { return Ok(false) };
        let owned: Vec<Partition> = self.worker.partitions().collect();
        let waiting: usize = self.worker.states().map(|state| state.waiting()).sum();
        let log = self.worker.log_mut();
        goal.take_in(&owned, |topic, partition| log.end_offset(topic, partition))?;
        let is_idle = step == Step::Idle && waiting == 0;
        Ok(is_idle && goal.is_reached(|topic, partition, end| log.has_read_to(topic, partition, end))?)
    }

    /// A step is a whole batch and its commit: between two of them nothing is half done.
    fn drained(&self, why: &str) -> Result<(), LogError> {
        self.health.set(Phase::Draining);
        self.metrics.set_ready(false);
        tracing::info!(why, "worker stopped; everything it has judged is committed");
        Ok(())
    }

    /// Retention, compaction and the lag; true if maintenance has more to do.
    fn look_after(&mut self) -> Result<bool, LogError> {
        let log = self.worker.log_mut();
        let more = log.look_after_itself(self.config)?;
        let (lag, oldest) = log.waiting()?;
        let oldest = oldest.map_or(0, |written| now_ms().saturating_sub(written).max(0));
        self.metrics.set_lag(lag, Duration::from_millis(oldest as u64));
        Ok(more)
    }
}

fn retention(config: &Config) -> Retention {
    let configured = [
        (Topic::Requests, config.retention.requests),
        (Topic::Responses, config.retention.responses),
        (Topic::Results, config.retention.results),
        (Topic::Quarantine, config.retention.quarantine),
        (Topic::Retries, config.retention.retries),
        (Topic::Audit, config.retention.audit),
    ];
    configured.into_iter().fold(Retention::default(), |all, (topic, kept)| all.with(topic, millis(kept)))
}

/// `toolgate config check`: every setting in force, with its origin.
///
/// # Errors
/// Bad configuration, or output that can't be written.
pub(super) fn config_check(file: Option<&Path>) -> Result<Exit> {
    let explained = settings::explain(file, &Flags::new())?;
    let width = explained.iter().map(|entry| entry.setting.name().len()).max().unwrap_or_default();
    for entry in explained {
        out::line(&format!("{:width$}  {}  ({})", entry.setting.name(), entry.value, entry.origin))?;
    }
    Ok(Exit::Ok)
}
