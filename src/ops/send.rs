//! `toolgate send`: appends requests or responses to the log, beside a running worker.

use super::args::{SendArgs, Sent};
use super::logs::{self, Sink};
use super::{Exit, run};
use crate::config::ResponseEncoding;
use crate::gate::decode::{NewRequest, RawResponse};
use crate::gate::parse::Tape;
use crate::log::{Header, LogError, Outgoing, Topic};
use crate::wire::{cloudevents, json, v1};
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
    let config = logs::config(file, args.log.as_deref())?;
    let (input, folder): (Box<dyn Read>, PathBuf) = if args.file == Path::new("-") {
        (Box::new(std::io::stdin().lock()), PathBuf::from("."))
    } else {
        let opened =
            std::fs::File::open(&args.file).with_context(|| format!("{}: can't be read", args.file.display()))?;
        (Box::new(opened), args.file.parent().unwrap_or(Path::new(".")).to_owned())
    };
    let mut sink = Sink::open(&config, topic(args.what))?;
    let encoding = config.encoding.responses;
    let ended = send_all(&mut sink, BufReader::new(input), &args.file, |line| {
        record(args.what, line, &folder).and_then(|message| message.encoded(encoding))
    });
    let sent = sink.written();
    match ended {
        Ok(()) => {
            eprintln!("sent {sent} records");
            Ok(Exit::Ok)
        }
        Err(Ended::Line(error)) => {
            Err(error.context(format!("{sent} records were sent before this line; the rest was not")))
        }
        Err(Ended::Log(error)) => Err(anyhow::Error::from(error)
            .context(format!("{sent} records are known to be written; whether the next ones are is not known"))),
    }
}

/// Why not all of a file was sent.
enum Ended {
    Line(anyhow::Error),
    Log(LogError),
}

fn send_all(
    sink: &mut Sink,
    mut lines: impl BufRead,
    name: &Path,
    record: impl Fn(&str) -> Result<Outgoing>,
) -> Result<(), Ended> {
    let mut number = 0u64;
    let mut batch = Vec::new();
    let ended = loop {
        let mut line = String::new();
        match (&mut lines).take(LINE_BYTES_MAX).read_line(&mut line) {
            Ok(0) => break Ok(()),
            Ok(_) => number += 1,
            Err(error) => break Err(Ended::Line(anyhow!("line {}: {error}", number + 1))),
        }
        if line.trim().is_empty() {
            continue;
        }
        match record(line.trim()) {
            Ok(record) => batch.push(record),
            Err(error) => break Err(Ended::Line(anyhow!("{}:{number}: {error:#}", name.display()))),
        }
        if batch.len() == BATCH_LINES {
            sink.append(std::mem::take(&mut batch)).map_err(Ended::Log)?;
        }
    };
    sink.append(batch).map_err(Ended::Log)?;
    ended
}

fn topic(what: Sent) -> Topic {
    match what {
        Sent::Requests => Topic::Requests,
        Sent::Responses => Topic::Responses,
    }
}

/// A line, as the message that it stands for.
pub(super) enum Written {
    Request(v1::ToolRequest),
    Response(v1::ToolResponse),
}

impl Written {
    /// As a record, keyed by the request's id.
    ///
    /// # Errors
    /// A response that this encoding cannot hold.
    pub(super) fn encoded(self, encoding: ResponseEncoding) -> Result<Outgoing> {
        let (topic, key, value, headers) = match (self, encoding) {
            (Written::Request(request), _) => {
                (Topic::Requests, request.request_id.clone(), request.encode_to_vec(), Vec::new())
            }
            (Written::Response(response), ResponseEncoding::Protobuf) => {
                (Topic::Responses, response.request_id.clone(), response.encode_to_vec(), Vec::new())
            }
            (Written::Response(response), ResponseEncoding::CloudEvents) => {
                let id = format!("{:016x}", run::seed()?);
                let headers = cloudevents::write_binary(&response, &id);
                let read = headers.iter().map(|(name, value)| (name.as_str(), Some(value.as_bytes())));
                cloudevents::read_binary(read, &response.body).map_err(|why| anyhow!(why))?;
                let headers = headers.into_iter().map(|(name, value)| Header { name, value: Some(value.into_bytes()) });
                (Topic::Responses, response.request_id, response.body, headers.collect())
            }
        };
        Ok(Outgoing { topic, partition: None, key: Some(key.into_bytes()), value: Some(value), headers })
    }
}

/// Reads a line, and checks it as a worker will.
pub(super) fn record(what: Sent, line: &str, folder: &Path) -> Result<Written> {
    let mut tape = Tape::default();
    let node = json::parse(line, &mut tape)?;
    match what {
        Sent::Requests => {
            let message = json::request(node)?;
            NewRequest::from_message(message.clone()).map_err(|error| anyhow!(error.to_string()))?;
            Ok(Written::Request(message))
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
            Ok(Written::Response(message))
        }
    }
}
