//! `toolgate demo`: a bundled day through a real worker on a fresh embedded log.
//!
//! The day is data (`examples/day/day.json`): requests, responses, and waits. Time is a number that
//! the demo moves on, so that retries and deadlines need no patience.

use super::args::DemoArgs;
use super::out::{self, Paint};
use super::{Exit, run, send};
use crate::config::ResponseEncoding;
use crate::contract::fixture::Secrets;
use crate::gate::decode::Encoding;
use crate::gate::json::write_node;
use crate::gate::parse::{Node, Tape};
use crate::log::sqlite::{SqliteClient, SqliteLog, WorkerOptions};
use crate::log::{Offset, Partition, RECORD_BYTES_MAX, Topic};
use crate::partition::Around;
use crate::time::Timestamp;
use crate::wire::{json, v1};
use crate::worker::{Bounds, Step, Worker, clock};
use anyhow::{Context, Result, anyhow};
use prost::Message;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const PARTITIONS: i32 = 2;

/// Plays the day and shows what happened.
///
/// # Errors
/// Contracts or the day can't be read, or the log fails.
pub(super) fn demo(args: &DemoArgs) -> Result<Exit> {
    let folder = Folder::create(args.keep.as_deref())?;
    let text = std::fs::read_to_string(&args.day)
        .with_context(|| format!("{}: can't be read; run the demo in the repository", args.day.display()))?;
    let mut tape = Tape::default();
    let day = json::parse(&text, &mut tape).map_err(|why| anyhow!("{}: {why}", args.day.display()))?;
    let mut stage = Stage::open(&folder.path.join("demo.db"), &args.schemas)?;
    let paint = Paint::stdout();
    out::line(&paint.bold("A day at the gate: each response, what was decided, and all that the agent saw."))?;
    out::line("")?;
    let mut hostile = None;
    for entry in day.items() {
        let shown = stage.play(entry)?;
        for line in shown.lines(paint) {
            out::line(&line)?;
        }
        if entry.get("hostile").is_some() {
            hostile = Some((entry, shown));
        }
    }
    if let Some((entry, shown)) = hostile {
        side_by_side(entry, &shown, paint)?;
    }
    where_next(&folder, paint)?;
    Ok(Exit::Ok)
}

/// Where the demo's log is: a folder to keep, or one that goes with the process.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    fn create(keep: Option<&Path>) -> Result<Folder> {
        let path = match keep {
            Some(path) => path.to_owned(),
            None => std::env::temp_dir().join(format!("toolgate-demo-{:016x}", run::seed()?)),
        };
        std::fs::create_dir_all(&path).with_context(|| format!("{}: can't be created", path.display()))?;
        if path.join("demo.db").exists() {
            return Err(anyhow!("{}: holds a log already; choose an empty folder", path.display()));
        }
        Ok(Folder { path, keep: keep.is_some() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // A temporary folder that can't be removed does no harm.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// The worker, a client beside it, and the hands of the clock.
struct Stage {
    worker: Worker<SqliteLog>,
    client: SqliteClient,
    now: Timestamp,
    seen: BTreeMap<(Topic, Partition), Offset>,
}

/// What came of one entry of the day.
#[derive(Default)]
struct Shown {
    say: String,
    outcome: String,
    reason: String,
    agent: Vec<String>,
    retry: Option<String>,
    diagnosis: Option<v1::Diagnosis>,
}

impl Stage {
    fn open(path: &Path, schemas: &Path) -> Result<Stage> {
        let registry = run::load_contracts(schemas)?;
        let metrics = Arc::new(run::metrics_for(&registry));
        let around = Around {
            registry,
            secrets: Secrets::default(),
            responses: Encoding::Protobuf,
            requests_topic: "tool.requests".into(),
            responses_topic: "tool.responses".into(),
            partitions: PARTITIONS,
            group: "demo".into(),
            worker: "demo".into(),
            skew_ms: 2000,
        };
        let options = WorkerOptions {
            group: "demo".into(),
            partitions: PARTITIONS,
            accept_gap: false,
            batch_bytes_max: RECORD_BYTES_MAX,
            now_ms: || clock::now().unix_millis(),
        };
        let log = SqliteLog::open_worker(path, options)?;
        let bounds = Bounds {
            batch_records_max: 500,
            poll_wait: Duration::from_millis(1),
            parked_max: 1000,
            record_bytes_max: RECORD_BYTES_MAX,
            threads: 1,
        };
        let worker = Worker::new(log, around, bounds, metrics, run::seed()?);
        let client = SqliteLog::open_client(path, None)?;
        Ok(Stage { worker, client, now: clock::now(), seen: BTreeMap::new() })
    }

    fn play(&mut self, entry: Node<'_>) -> Result<Shown> {
        if let Some(seconds) = entry.get("wait_seconds").and_then(|seconds| seconds.as_i64()) {
            self.now = self.now.saturating_add_millis(seconds * 1000);
        }
        for (member, what) in [("request", super::args::Sent::Requests), ("response", super::args::Sent::Responses)] {
            if let Some(node) = entry.get(member) {
                let record = send::record(what, &self.with_times(node)?, Path::new("."))?;
                let record = record.encoded(ResponseEncoding::Protobuf)?;
                self.client.append(vec![record], self.now.unix_millis())?;
            }
        }
        let now = self.now;
        while self.worker.step(|| now)? != Step::Idle {}
        let say = entry.get("say").and_then(|say| say.as_str()).unwrap_or_default().to_owned();
        self.look(say)
    }

    /// `"@-5s"` in the day is a time relative to the demo's clock.
    fn with_times(&self, node: Node<'_>) -> Result<String> {
        let mut text = String::new();
        write_node(node, &mut text);
        while let Some(at) = text.find("\"@") {
            let end = text[at + 2..].find("s\"").context("a time of the day must be like @-5s")? + at + 2;
            let seconds: i64 = text[at + 2..end].parse().context("a time of the day must be like @-5s")?;
            let time = self.now.saturating_add_millis(seconds * 1000);
            text.replace_range(at..end + 2, &format!("\"{time}\""));
        }
        Ok(text)
    }

    /// Reads what is new on the worker's topics.
    fn look(&mut self, say: String) -> Result<Shown> {
        let mut shown = Shown { say, ..Shown::default() };
        for value in self.news(Topic::Audit)? {
            let audit = v1::AuditRecord::decode(value.as_slice())?;
            shown.outcome = audit.outcome().as_str_name().trim_start_matches("AUDIT_OUTCOME_").to_ascii_lowercase();
            shown.reason = audit.reason;
        }
        for value in self.news(Topic::Quarantine)? {
            shown.diagnosis = v1::QuarantineRecord::decode(value.as_slice())?.diagnosis;
        }
        for value in self.news(Topic::Retries)? {
            let directive = v1::RetryDirective::decode(value.as_slice())?;
            shown.retry = Some(format!(
                "the dispatcher is told: {} again, attempt {} ({})",
                directive.request_id, directive.attempt, directive.failure_code
            ));
        }
        shown.agent = self.news(Topic::Results)?.into_iter().map(|value| out::escaped(&value, 2000)).collect();
        Ok(shown)
    }

    fn news(&mut self, topic: Topic) -> Result<Vec<Vec<u8>>> {
        let mut values = Vec::new();
        for partition in (0..PARTITIONS).map(Partition) {
            let from = self.seen.entry((topic, partition)).or_insert(Offset(0));
            for record in self.client.read(topic, partition, *from, 1000)? {
                *from = record.position.offset.next();
                values.extend(record.value);
            }
        }
        Ok(values)
    }
}

impl Shown {
    fn lines(&self, paint: Paint) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.say.is_empty() {
            lines.push(paint.bold(&self.say));
        }
        if !self.outcome.is_empty() {
            let outcome = match self.outcome.as_str() {
                "accepted" => paint.green("accepted"),
                "refused" => paint.red("refused"),
                other => paint.yellow(other),
            };
            let place = self.diagnosis.as_ref().map(place).unwrap_or_default();
            lines.push(format!("  {outcome} {} {}", self.reason, paint.dim(&place)).trim_end().to_owned());
        }
        lines.extend(self.retry.iter().map(|retry| format!("  {}", paint.yellow(retry))));
        match self.agent.as_slice() {
            [] if !self.outcome.is_empty() => lines.push(format!("  agent: {}", paint.dim("nothing"))),
            agent => lines.extend(agent.iter().map(|json| format!("  agent: {json}"))),
        }
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines
    }
}

fn place(diagnosis: &v1::Diagnosis) -> String {
    match (diagnosis.instance_path.as_str(), diagnosis.keyword.as_str()) {
        ("", keyword) => keyword.to_owned(),
        (at, keyword) => format!("at {at} ({keyword})"),
    }
}

fn side_by_side(entry: Node<'_>, shown: &Shown, paint: Paint) -> Result<()> {
    let body = entry.get("response").and_then(|response| response.get("body"));
    let mut sent = String::new();
    if let Some(body) = body {
        write_node(body, &mut sent);
    }
    let left = wrapped(&out::escaped(sent.as_bytes(), 1000), 46);
    let right = wrapped(&shown.agent.concat(), 46);
    out::line(&paint.bold("One hostile response, side by side"))?;
    out::line(&format!("  {:<46}  {}", "the tool said", "the agent saw"))?;
    for row in 0..left.len().max(right.len()) {
        let (l, r) = (left.get(row).map_or("", String::as_str), right.get(row).map_or("", String::as_str));
        // Padding comes before colour, whose bytes take no room on the screen.
        out::line(&format!("  {}  {}", paint.red(&format!("{l:<46}")), paint.green(r)))?;
    }
    out::line("")
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(width).map(|chunk| chunk.iter().collect()).collect()
}

fn where_next(folder: &Folder, paint: Paint) -> Result<()> {
    out::line(&paint.bold("Where to look next"))?;
    let lines = [
        "  toolgate explain SCHEMA_VIOLATION      what a reason means and what to do",
        "  toolgate check schemas                 what each contract guarantees, and its fixtures",
        "  toolgate vet --request R --response B  judge a response of your own",
        "  README.md                              write a first contract",
    ];
    lines.iter().try_for_each(|line| out::line(line))?;
    if folder.keep {
        let log = folder.path.join("demo.db");
        out::line(&format!("  toolgate tail quarantine --log {}   the raw material, for people", log.display()))?;
    } else {
        out::line(
            "  toolgate demo --keep DIR               keep the log, then `toolgate tail quarantine --log DIR/demo.db`",
        )?;
    }
    Ok(())
}
