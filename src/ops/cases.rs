//! `toolgate vet --cases`: a folder of real responses with the right outcome of each.
//!
//! `manifest.json` is a list of cases: `file`, `transport`, `request`, `now`, `gate` (accept or
//! reject), `reason` and `alt_reasons`, `compact_facts`, `deliver_after`; `assumptions.json` may
//! hold the key of signatures. People keep their own corpus in this form.

use super::Exit;
use super::json::Object;
use super::out::{self, Paint};
use super::vet::{VetBench, members};
use crate::gate::cond::same_value;
use crate::gate::json::write_node;
use crate::gate::parse::{Kind, Node, Tape};
use crate::gate::signature::Secret;
use crate::gate::{Reason, Stage};
use crate::partition::{Outcome, Settlement};
use crate::time::Timestamp;
use crate::wire::{json, v1};
use anyhow::{Context, Result, anyhow};
use std::path::Path;

/// Judges every case and compares.
///
/// # Errors
/// The manifest can't be read, or is not of this form.
pub(super) fn run(mut bench: VetBench, dir: &Path, as_json: bool) -> Result<Exit> {
    let text = std::fs::read_to_string(dir.join("manifest.json"))
        .with_context(|| format!("{}: expected a manifest.json in this folder", dir.display()))?;
    let mut tape = Tape::default();
    let manifest = json::parse(&text, &mut tape).map_err(|why| anyhow!("manifest.json: {why}"))?;
    if let Some(secret) = signature_key(dir)? {
        bench.set_secret(&secret);
    }
    let paint = Paint::stdout();
    let (mut agreed, mut differed) = (0, 0);
    for (index, case) in manifest.items().enumerate() {
        let id = text_of(case, "id").unwrap_or_else(|| format!("#{index}"));
        bench.reset();
        let judged =
            judge_with_predecessors(&mut bench, dir, manifest, case).map_err(|why| anyhow!("case {id}: {why:#}"))?;
        let difference = judged.difference(case);
        if difference.is_none() {
            agreed += 1
        } else {
            differed += 1
        }
        let line = if as_json {
            judged.as_json(&id, case, difference.as_deref())
        } else {
            judged.for_people(&id, case, difference.as_deref(), paint)
        };
        out::line(&line)?;
    }
    if as_json {
        let mut summary = Object::new();
        summary.number("agree", agreed);
        summary.number("differ", differed);
        out::line(&summary.end())?;
    } else {
        out::line(&format!("\n{agreed} of {} cases agree, {differed} differ", agreed + differed))?;
    }
    Ok(if differed == 0 { Exit::Ok } else { Exit::ContractFailed })
}

fn signature_key(dir: &Path) -> Result<Option<Secret>> {
    let Ok(text) = std::fs::read_to_string(dir.join("assumptions.json")) else { return Ok(None) };
    let mut tape = Tape::default();
    let node = json::parse(&text, &mut tape).map_err(|why| anyhow!("assumptions.json: {why}"))?;
    Ok(text_of(node, "signature_key").and_then(|key| Secret::new(&key)))
}

fn text_of(node: Node<'_>, name: &str) -> Option<String> {
    node.get(name).and_then(|value| value.as_str()).map(str::to_owned)
}

/// The outcome of a case: a settlement, or a record that is no response at all.
enum Judged {
    Settled(Box<Settlement>),
    Undecodable(Reason),
}

fn judge_with_predecessors(bench: &mut VetBench, dir: &Path, manifest: Node<'_>, case: Node<'_>) -> Result<Judged> {
    if let Some(before) = text_of(case, "deliver_after") {
        let first = manifest.items().find(|other| text_of(*other, "id").as_deref() == Some(&before));
        let first = first.with_context(|| format!("deliver_after names {before}, which is no case"))?;
        judge(bench, dir, first)?;
    }
    judge(bench, dir, case)
}

fn judge(bench: &mut VetBench, dir: &Path, case: Node<'_>) -> Result<Judged> {
    let file = text_of(case, "file").context("file is missing")?;
    if file.contains(['/', '\\']) {
        return Err(anyhow!("file must be a file of the same folder"));
    }
    let body = std::fs::read(dir.join(&file)).with_context(|| format!("{file}: can't be read"))?;
    let request = case.get("request").context("request is missing")?;
    if request.get("tool").and_then(|tool| tool.as_str()).is_none() {
        let reason = if std::str::from_utf8(&body).is_err() { Reason::InvalidUtf8 } else { Reason::UndecodableEvent };
        return Ok(Judged::Undecodable(reason));
    }
    let now = text_of(case, "now").and_then(|now| Timestamp::parse_rfc3339(&now)).context("now is no RFC 3339 time")?;
    let mut tape = Tape::default();
    let rewritten = as_request(request);
    let request = json::request(json::parse(&rewritten, &mut tape).map_err(|why| anyhow!("request: {why}"))?);
    let request = request.map_err(|why| anyhow!("request: {why}"))?;
    let mut response = v1::ToolResponse {
        request_id: request.request_id.clone(),
        tool: request.tool.clone(),
        attempt: request.attempt,
        body,
        ..v1::ToolResponse::default()
    };
    if let Some(transport) = case.get("transport") {
        let mut tape = Tape::default();
        let rewritten = as_transport(transport);
        let node = json::parse(&rewritten, &mut tape).map_err(|why| anyhow!("transport: {why}"))?;
        json::transport(node, &mut response).map_err(|why| anyhow!("transport: {why}"))?;
    }
    bench.judge(request, response, now).map(|settlement| Judged::Settled(Box::new(settlement)))
}

/// The corpus says `bindings` for the request's arguments.
fn as_request(request: Node<'_>) -> String {
    renamed(request, &[("bindings", "arguments")])
}

/// The corpus says `http_status`; nulls stand for absent members.
fn as_transport(transport: Node<'_>) -> String {
    renamed(transport, &[("http_status", "status")])
}

fn renamed(node: Node<'_>, names: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let members = node.members().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
        let new_name = names.iter().find(|(from, _)| *from == name).map_or(name, |(_, to)| *to);
        (new_name, value)
    });
    crate::gate::json::write_members(members, &mut out);
    out
}

impl Judged {
    fn is_accepted(&self) -> bool {
        matches!(self, Judged::Settled(settlement) if settlement.outcome == Outcome::Accepted)
    }

    fn reason(&self) -> Option<Reason> {
        match self {
            Judged::Settled(settlement) => settlement.reason,
            Judged::Undecodable(reason) => Some(*reason),
        }
    }

    /// How the outcome differs from what the case says; `None` where it agrees.
    fn difference(&self, case: Node<'_>) -> Option<String> {
        let wants_accept = text_of(case, "gate").as_deref() == Some("accept");
        let reason = self.reason().map_or("none", |reason| reason.code());
        if wants_accept != self.is_accepted() {
            let was = if self.is_accepted() { "accepted".to_owned() } else { format!("refused {reason}") };
            return Some(format!("expected {}, was {was}", if wants_accept { "accept" } else { "reject" }));
        }
        if wants_accept {
            return self.missing_fact(case);
        }
        let others = case.get("alt_reasons").into_iter().flat_map(|list| list.items()).filter_map(|item| item.as_str());
        let admitted: Vec<&str> =
            case.get("reason").and_then(|reason| reason.as_str()).into_iter().chain(others).collect();
        let agrees = admitted.contains(&reason);
        (!agrees).then(|| format!("expected {}, was {reason}", admitted.join(" or ")))
    }

    fn missing_fact(&self, case: Node<'_>) -> Option<String> {
        let Judged::Settled(settlement) = self else { return None };
        let agent = settlement.agent.as_ref()?;
        let mut tape = Tape::default();
        let data = json::parse(&agent.json, &mut tape).ok()?.get("data")?;
        let facts = case.get("compact_facts").filter(|facts| facts.kind() == Kind::Object)?;
        let wrong = facts.members().find(|(name, wanted)| !data.get(name).is_some_and(|found| agrees(*wanted, found)));
        wrong.map(|(name, wanted)| {
            let (mut want, mut have) = (String::new(), String::from("nothing"));
            write_node(wanted, &mut want);
            if let Some(found) = data.get(name) {
                have.clear();
                write_node(found, &mut have);
            }
            format!("expected {name} = {want}, the result has {have}")
        })
    }

    fn as_json(&self, id: &str, case: Node<'_>, difference: Option<&str>) -> String {
        let mut object = Object::new();
        object.text("case", id);
        object.optional_text("file", text_of(case, "file").as_deref());
        object.bool("agrees", difference.is_none());
        object.optional_text("difference", difference);
        match self {
            Judged::Settled(settlement) => members(settlement, &mut object),
            Judged::Undecodable(reason) => {
                object.text("outcome", Outcome::Refused.name());
                object.text("reason", reason.code());
                object.text("stage", Stage::Decode.name());
                object.raw("agent", "null");
            }
        }
        object.end()
    }

    fn for_people(&self, id: &str, case: Node<'_>, difference: Option<&str>, paint: Paint) -> String {
        let mark = if difference.is_none() { paint.green("ok    ") } else { paint.red("differs") };
        let outcome = match self {
            Judged::Settled(settlement) => settlement.outcome.name(),
            Judged::Undecodable(_) => "refused",
        };
        let reason = self.reason().map_or("", |reason| reason.code());
        let title = text_of(case, "title").unwrap_or_default();
        let line = format!("{mark} {id} {outcome:8} {reason:24} {}", out::escaped(title.as_bytes(), 100));
        match difference {
            None => line,
            Some(difference) => format!("{line}\n        {difference}"),
        }
    }
}

/// Is this the wanted fact? An object in the result may say more than the wanted one.
fn agrees(wanted: Node<'_>, found: Node<'_>) -> bool {
    match (wanted.kind(), found.kind()) {
        (Kind::Object, Kind::Object) => {
            wanted.members().all(|(name, wanted)| found.get(name).is_some_and(|found| agrees(wanted, found)))
        }
        _ => same_value(wanted, found),
    }
}
