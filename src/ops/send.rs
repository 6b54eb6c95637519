//! `toolgate send`: appends requests or responses to the embedded log, beside a running worker.

use super::Exit;
use super::args::{SendArgs, Sent};
use super::settings::{self, Flags};
use crate::config::Config;
use crate::gate::decode::{NewRequest, RawResponse};
use crate::gate::parse::Tape;
use crate::log::sqlite::SqliteLog;
use crate::log::{Outgoing, Topic};
use crate::wire::json;
use crate::worker::clock;
use anyhow::{Context, Result, anyhow};
use prost::Message;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Lines that are appended together.
const BATCH_LINES: usize = 500;
/// A line may be as large as a record of the log.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Sends a file of JSON lines. All lines of the file are checked as they are read; the ones before
/// a bad line are sent, and the message says how many.
///
/// # Errors
/// Bad configuration, an unreadable file, a bad line, or a log that fails.
pub(super) fn send(file: Option<&Path>, args: &SendArgs) -> Result<Exit> {
    let config = config(file, args.log.as_deref())?;
    let mut log = SqliteLog::open_client(&config.log.path, Some(config.log.partitions.into()))?;
    let (input, folder): (Box<dyn Read>, PathBuf) = if args.file == Path::new("-") {
        (Box::new(std::io::stdin().lock()), PathBuf::from("."))
    } else {
        let opened =
            std::fs::File::open(&args.file).with_context(|| format!("{}: can't be read", args.file.display()))?;
        (Box::new(opened), args.file.parent().unwrap_or(Path::new(".")).to_owned())
    };
    let mut lines = BufReader::new(input);
    let (mut number, mut sent) = (0u64, 0usize);
    let mut batch = Vec::new();
    let ended: Result<()> = loop {
        let mut line = String::new();
        match (&mut lines).take(LINE_BYTES_MAX).read_line(&mut line) {
            Ok(0) => break Ok(()),
            Ok(_) => number += 1,
            Err(error) => break Err(anyhow!("line {}: {error}", number + 1)),
        }
        if line.trim().is_empty() {
            continue;
        }
        match record(args.what, line.trim(), &folder) {
            Ok(record) => batch.push(record),
            Err(error) => break Err(anyhow!("{}:{number}: {error:#}", args.file.display())),
        }
        if batch.len() == BATCH_LINES {
            sent += log.append(std::mem::take(&mut batch), clock::now().unix_millis())?.len();
        }
    };
    sent += log.append(batch, clock::now().unix_millis())?.len();
    match ended {
        Ok(()) => {
            eprintln!("sent {sent} records");
            Ok(Exit::Ok)
        }
        Err(error) => Err(error.context(format!("{sent} records were sent before this line; the rest was not"))),
    }
}

pub(super) fn config(file: Option<&Path>, log: Option<&Path>) -> Result<Config> {
    let mut flags = Flags::new();
    settings::flag(&mut flags, "log.path", log.map(Path::display));
    settings::load(file, &flags)
}

pub(super) fn record(what: Sent, line: &str, folder: &Path) -> Result<Outgoing> {
    let mut tape = Tape::default();
    let node = json::parse(line, &mut tape)?;
    let (topic, key, value) = match what {
        Sent::Requests => {
            let message = json::request(node)?;
            NewRequest::from_message(message.clone()).map_err(|error| anyhow!(error.to_string()))?;
            (Topic::Requests, message.request_id.clone(), message.encode_to_vec())
        }
        Sent::Responses => {
            let read = json::response(node)?;
            let mut message = read.response;
            if let Some(name) = read.body_file {
                message.body =
                    std::fs::read(folder.join(&name)).with_context(|| format!("body_file {name}: can't be read"))?;
            }
            if message.received_at_unix_ms == 0 {
                message.received_at_unix_ms = clock::now().unix_millis();
            }
            RawResponse::from_message(message.clone()).map_err(|error| anyhow!(error.to_string()))?;
            (Topic::Responses, message.request_id.clone(), message.encode_to_vec())
        }
    };
    Ok(Outgoing { topic, partition: None, key: Some(key.into_bytes()), value: Some(value), headers: Vec::new() })
}

/// The topic that a person means: its short name, or the configured one.
pub(super) fn topic(config: &Config, name: &str) -> Result<Topic> {
    let configured = config.topics.named();
    let found = Topic::ALL.into_iter().find(|topic| {
        topic.name() == name || configured.iter().any(|(short, full)| *short == topic.name() && *full == name)
    });
    let names = Topic::ALL.map(Topic::name).join(", ");
    found.ok_or_else(|| anyhow!("{name:?} is no topic; use one of {names}, or a configured name"))
}
