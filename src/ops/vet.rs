//! `toolgate vet`: judges one response without any log, for people who write adapters.
//!
//! The response takes the whole way that a record takes, through the same partition that a worker
//! runs; only the log is left out.

use super::args::{FailedCall, VetArgs};
use super::json::Object;
use super::out::{self, Paint};
use super::{Exit, cases};
use crate::contract::fixture::Secrets;
use crate::contract::pack;
use crate::contract::raw::SourceKind;
use crate::contract::{Contract, Lookup};
use crate::gate::Diagnosis;
use crate::gate::decode::Encoding;
use crate::gate::parse::Tape;
use crate::gate::signature::Secret;
use crate::log::{Offset, Partition, Position, Record, Topic};
use crate::partition::{Around, Effects, PartitionState, Settlement};
use crate::time::Timestamp;
use crate::wire::{json, v1};
use anyhow::{Context, Result, anyhow, bail};
use prost::Message;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Judges what the arguments name.
///
/// # Errors
/// A file can't be read, or is none of the form that is asked for.
pub(super) fn vet(args: &VetArgs) -> Result<Exit> {
    let bench = VetBench::load(&args.schemas, args.secrets.as_deref())?;
    if let Some(dir) = &args.cases {
        return cases::run(bench, dir, args.json);
    }
    let (Some(request), Some(response)) = (&args.request, &args.response) else {
        bail!("--request and --response are needed, or --cases");
    };
    let text = std::fs::read_to_string(request).with_context(|| format!("{}: can't be read", request.display()))?;
    let mut tape = Tape::default();
    let node = json::parse(&text, &mut tape).map_err(|why| anyhow!("{}: {why}", request.display()))?;
    let request = json::request(node).map_err(|why| anyhow!("{}: {why}", request.display()))?;
    let response = response_of(args, &request, &bench, read(response)?)?;
    let now = match &args.now {
        Some(text) => Timestamp::parse_rfc3339(text).ok_or_else(|| anyhow!("--now: {text} is no RFC 3339 time"))?,
        None => crate::worker::clock::now(),
    };
    let mut bench = bench;
    let settlement = bench.judge(request, response, now)?;
    let text = if args.json { as_json(&settlement) } else { for_people(&settlement, Paint::stdout()) };
    out::line(&text)?;
    Ok(Exit::Ok)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).context("standard input can't be read")?;
        return Ok(bytes);
    }
    std::fs::read(path).with_context(|| format!("{}: can't be read", path.display()))
}

/// The response as a connector would have written it. What is not given is what the contract
/// expects, so that a first try needs no flags.
fn response_of(args: &VetArgs, request: &v1::ToolRequest, bench: &VetBench, body: Vec<u8>) -> Result<v1::ToolResponse> {
    use v1::transport_outcome::Outcome;
    let contract = bench.contract(&request.tool, request.contract_version);
    let outcome = match (args.status, args.exit_code, args.failed) {
        (Some(status), _, _) => Some(Outcome::HttpStatus(status.into())),
        (_, Some(code), _) => Some(Outcome::ExitCode(code)),
        (_, _, Some(FailedCall::Timeout)) => Some(Outcome::Timeout(true)),
        (_, _, Some(FailedCall::Connection)) => Some(Outcome::ConnectionFailed(true)),
        (None, None, None) => contract.as_deref().and_then(expected_ending),
    };
    let content_type = args
        .content_type
        .clone()
        .or_else(|| contract.as_deref().and_then(|c| c.terms.media_types.first().map(|t| t.to_string())));
    let headers = args
        .headers
        .iter()
        .map(|header| match header.split_once(':') {
            Some((name, value)) => Ok(v1::Header { name: name.trim().to_owned(), value: value.trim().to_owned() }),
            None => Err(anyhow!("--header: {header:?} is not NAME:VALUE")),
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(v1::ToolResponse {
        request_id: request.request_id.clone(),
        tool: request.tool.clone(),
        attempt: request.attempt,
        body,
        content_type,
        outcome: outcome.map(|outcome| v1::TransportOutcome { outcome: Some(outcome) }),
        headers,
        ..v1::ToolResponse::default()
    })
}

fn expected_ending(contract: &Contract) -> Option<v1::transport_outcome::Outcome> {
    let first = *contract.terms.success.first()?;
    Some(match contract.terms.kind {
        SourceKind::CliJson | SourceKind::Text => v1::transport_outcome::Outcome::ExitCode(first),
        SourceKind::HttpJson | SourceKind::Webhook | SourceKind::Mcp | SourceKind::Envelope => {
            v1::transport_outcome::Outcome::HttpStatus(u32::try_from(first).ok()?)
        }
    })
}

/// A partition without a log.
#[derive(Debug)]
pub(super) struct VetBench {
    pub around: Around,
    partition: PartitionState,
    offset: i64,
}

impl VetBench {
    /// Loads the contracts. Unsound ones are named and left out, as a worker leaves them out.
    pub(super) fn load(schemas: &Path, secrets_dir: Option<&Path>) -> Result<VetBench> {
        let (registry, unsound) = pack::load_all(schemas).map_err(|why| anyhow!(why))?;
        for pack in &unsound {
            eprintln!("toolgate: {} is not served: run `toolgate check {}`", pack.dir.display(), pack.dir.display());
        }
        if registry.is_empty() {
            bail!("{}: no contract is sound", schemas.display());
        }
        let secrets = match secrets_dir {
            Some(dir) => read_secrets(dir)?,
            None => fixture_secrets(schemas),
        };
        let around = Around {
            registry,
            secrets,
            responses: Encoding::Protobuf,
            requests_topic: "tool.requests".into(),
            responses_topic: "tool.responses".into(),
            partitions: 1,
            group: "vet".into(),
            worker: "vet".into(),
            skew_ms: 0,
        };
        Ok(VetBench { around, partition: PartitionState::new(Partition(0), 1), offset: 0 })
    }

    pub(super) fn contract(&self, tool: &str, version: u32) -> Option<std::sync::Arc<Contract>> {
        match self.around.registry.look_up(tool, version) {
            Lookup::Found(contract) => Some(contract),
            Lookup::UnknownTool | Lookup::UnknownVersion => None,
        }
    }

    /// Forgets all requests.
    pub(super) fn reset(&mut self) {
        self.partition = PartitionState::new(Partition(0), 1);
    }

    pub(super) fn set_secret(&mut self, secret: &Secret) {
        let names: Vec<String> =
            self.around.registry.contracts().flat_map(|contract| contract.secrets.clone()).collect();
        self.around.secrets = Secrets(names.into_iter().map(|name| (name, secret.clone())).collect());
    }

    /// Announces a request and judges its response. A deadline before `now` does not matter here:
    /// who looks at yesterday's response wants to know about the response.
    pub(super) fn judge(
        &mut self,
        request: v1::ToolRequest,
        response: v1::ToolResponse,
        now: Timestamp,
    ) -> Result<Settlement> {
        let deadline_unix_ms = request.deadline_unix_ms.max(now.unix_millis() + 1);
        let request = v1::ToolRequest { deadline_unix_ms, ..request };
        let announced = self.record(Topic::Requests, &request.request_id, request.encode_to_vec());
        let mut effects = Effects::default();
        self.partition.request(&announced, &self.around, now, &mut effects);
        if let Some(settlement) = effects.settlements.pop() {
            let detail = settlement.diagnosis.map(|diagnosis| diagnosis.detail).unwrap_or_default();
            bail!("the request is not admissible: {detail}");
        }
        let record = self.record(Topic::Responses, &response.request_id, response.encode_to_vec());
        self.partition.receive(record);
        self.partition.respond(&self.around, Offset(0), now, &mut effects);
        self.partition.set_end(Offset(0));
        self.partition.respond(&self.around, Offset(0), now, &mut effects);
        effects.settlements.pop().context("the response was not judged")
    }

    fn record(&mut self, topic: Topic, key: &str, value: Vec<u8>) -> Record {
        self.offset += 1;
        let position = Position { topic, partition: Partition(0), offset: Offset(self.offset) };
        Record {
            position,
            timestamp_ms: 0,
            key: Some(key.as_bytes().to_vec()),
            value: Some(value),
            headers: Vec::new(),
        }
    }
}

/// Secrets of the fixtures: an adapter's author has no others, and they protect nothing.
fn fixture_secrets(schemas: &Path) -> Secrets {
    let mut all = BTreeMap::new();
    for dir in pack::find(schemas).unwrap_or_default() {
        for fixture in pack::prove(&dir).fixtures {
            all.extend(fixture.secrets.0);
        }
    }
    Secrets(all)
}

/// One file for each secret: its name is the secret's name, its text the secret.
pub(super) fn read_secrets(dir: &Path) -> Result<Secrets> {
    let mut secrets = BTreeMap::new();
    for entry in std::fs::read_dir(dir).with_context(|| format!("{}: can't be read", dir.display()))? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| !name.starts_with('.')) else {
            continue;
        };
        if !path.is_file() {
            continue;
        }
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("{}: can't be read as text", path.display()))?;
        let secret = Secret::new(text.trim_end_matches(['\n', '\r']))
            .with_context(|| format!("{}: is empty", path.display()))?;
        secrets.insert(name.to_owned(), secret);
    }
    Ok(Secrets(secrets))
}

/// The settlement as one JSON object.
pub(super) fn as_json(settlement: &Settlement) -> String {
    let mut object = Object::new();
    members(settlement, &mut object);
    object.end()
}

pub(super) fn members(settlement: &Settlement, object: &mut Object) {
    object.text("outcome", settlement.outcome.name());
    object.optional_text("reason", settlement.reason.map(|reason| reason.code()));
    object.text("stage", settlement.stage.name());
    object.raw("agent", settlement.agent.as_ref().map_or("null", |agent| &agent.json));
    object.optional_text("contract", settlement.contract.as_deref().map(|contract| contract.label.as_ref()));
    object.optional_text("digest", settlement.digest.map(|digest| digest.to_string()).as_deref());
    object.raw("diagnosis", &settlement.diagnosis.as_ref().map_or("null".to_owned(), diagnosis_json));
    let retry = settlement.scheduled.as_ref().map_or("null".to_owned(), |scheduled| {
        let mut retry = Object::new();
        retry.number("attempt", scheduled.attempt.into());
        retry.text("not_before", &scheduled.not_before.to_string());
        retry.text("code", scheduled.code.as_str());
        retry.end()
    });
    object.raw("retry", &retry);
}

fn diagnosis_json(diagnosis: &Diagnosis) -> String {
    let mut object = Object::new();
    let texts = [
        ("keyword", diagnosis.keyword.as_str()),
        ("schema_path", &diagnosis.schema_path),
        ("instance_path", &diagnosis.instance_path),
        ("expected", &diagnosis.expected),
        ("found", diagnosis.found),
        ("detail", diagnosis.detail),
    ];
    for (name, value) in texts.into_iter().filter(|(_, value)| !value.is_empty()) {
        object.text(name, value);
    }
    if let Some(offset) = diagnosis.offset {
        object.number("offset", offset);
    }
    object.end()
}

/// The settlement for a person who writes an adapter.
fn for_people(settlement: &Settlement, paint: Paint) -> String {
    let verdict = match settlement.outcome {
        crate::partition::Outcome::Accepted => paint.green("accepted"),
        crate::partition::Outcome::Failed | crate::partition::Outcome::Expired => {
            paint.yellow(settlement.outcome.name())
        }
        crate::partition::Outcome::Refused => paint.red("refused"),
    };
    let reason = settlement.reason.map(|reason| format!(" {}", paint.bold(reason.code()))).unwrap_or_default();
    let mut lines = vec![format!("{verdict}{reason} in stage {}", settlement.stage)];
    if let Some(contract) = &settlement.contract {
        lines.push(format!("contract  {}", contract.label));
    }
    if let Some(diagnosis) = &settlement.diagnosis {
        lines.push(format!("why       {}", diagnosis.detail));
        let parts = [
            ("at", &diagnosis.instance_path),
            ("keyword", &diagnosis.keyword),
            ("expected", &diagnosis.expected),
            ("schema", &diagnosis.schema_path),
        ];
        lines.extend(
            parts
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(label, value)| format!("{label:<9} {value}")),
        );
        if !diagnosis.found.is_empty() {
            lines.push(format!("found     {}", diagnosis.found));
        }
        lines.extend(diagnosis.offset.map(|offset| format!("byte      {offset}")));
    }
    match (&settlement.agent, &settlement.scheduled) {
        (Some(agent), _) => lines.push(format!("agent     {}", agent.json)),
        (None, Some(scheduled)) => {
            lines.push(format!(
                "retry     attempt {} not before {} ({})",
                scheduled.attempt,
                scheduled.not_before,
                scheduled.code.as_str()
            ));
            lines.push("agent     nothing yet".to_owned());
        }
        (None, None) => lines.push("agent     nothing".to_owned()),
    }
    if let Some(reason) = settlement.reason {
        lines.push(paint.dim(&format!("more      toolgate explain {reason}")));
    }
    lines.join("\n")
}
