//! Fixtures: examples that a contract must accept or refuse, run in CI and again whenever a worker loads the pack.

use super::Contract;
use crate::gate::admit::SecretStore;
use crate::gate::cond::same_value;
use crate::gate::decode::{NewRequest, RawResponse};
use crate::gate::json::write_node;
use crate::gate::parse::{Kind, Node, Tape};
use crate::gate::signature::Secret;
use crate::gate::{Bench, Case, Request, Stop};
use crate::time::Timestamp;
use crate::wire::json::{self, JsonMistake};
use crate::wire::v1;
use std::collections::BTreeMap;

/// What a fixture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Accept,
    Reject,
    /// An accepted shape of an upstream version that is still supported.
    Legacy,
}

impl Class {
    pub const ALL: [Class; 3] = [Class::Accept, Class::Reject, Class::Legacy];

    pub fn folder(self) -> &'static str {
        match self {
            Class::Accept => "accept",
            Class::Reject => "reject",
            Class::Legacy => "legacy",
        }
    }
}

/// One example: a response, the request that it answers, the moment, and what must come of it.
#[derive(Debug)]
pub struct Fixture {
    pub name: String,
    pub class: Class,
    pub request: v1::ToolRequest,
    pub response: v1::ToolResponse,
    pub now: Timestamp,
    pub secrets: Secrets,
    expect: Expect,
}

/// Secrets by name: those of fixtures, and those that a worker is configured with.
#[derive(Debug, Default, Clone)]
pub struct Secrets(pub BTreeMap<String, Secret>);

impl SecretStore for Secrets {
    fn secret(&self, name: &str) -> Option<&Secret> {
        self.0.get(name)
    }
}

#[derive(Debug, Default)]
struct Expect {
    /// The data member of the agent's result, as JSON text.
    data: Option<String>,
    outcome: Option<String>,
    reason: Option<String>,
    code: Option<String>,
    at: Option<String>,
    keyword: Option<String>,
}

const ENDINGS: [&str; 3] = ["status", "exit_code", "failed"];
const CASE_MEMBERS: [&str; 5] = ["now", "request", "transport", "secrets", "expect"];

impl Fixture {
    /// Reads a fixture from the texts of `default.json` and `case.json` and the body's bytes.
    ///
    /// # Errors
    /// A sentence that names the member.
    pub fn read(name: &str, class: Class, defaults: &str, case: &str, body: Vec<u8>) -> Result<Fixture, String> {
        let (mut default_tape, mut case_tape, mut merged_tape) = (Tape::default(), Tape::default(), Tape::default());
        let defaults = json::parse(defaults, &mut default_tape).map_err(|why| format!("default.json: {why}"))?;
        let case = json::parse(case, &mut case_tape).map_err(|why| format!("case.json: {why}"))?;
        json::known_members(defaults, "default.json", &CASE_MEMBERS).map_err(|why| why.to_string())?;
        json::known_members(case, "case.json", &CASE_MEMBERS).map_err(|why| why.to_string())?;
        let merged = merge(defaults, case);
        let node = json::parse(&merged, &mut merged_tape).map_err(|why| why.to_string())?;
        Self::of(name, class, node, body).map_err(|why| why.to_string())
    }

    fn of(name: &str, class: Class, node: Node<'_>, body: Vec<u8>) -> Result<Fixture, JsonMistake> {
        let lacks =
            |what: &str| JsonMistake { at: what.into(), message: "is missing in case.json and default.json".into() };
        let request = json::request(node.get("request").ok_or_else(|| lacks("request"))?)?;
        let mut response = v1::ToolResponse {
            request_id: request.request_id.clone(),
            tool: request.tool.clone(),
            attempt: request.attempt,
            body,
            ..v1::ToolResponse::default()
        };
        if let Some(transport) = node.get("transport") {
            json::known_members(transport, "transport", &json::TRANSPORT_MEMBERS)?;
            json::transport(transport, &mut response)?;
        }
        let now = json::optional_text(node, "now")?.ok_or_else(|| lacks("now"))?;
        let now = Timestamp::parse_rfc3339(&now)
            .ok_or_else(|| JsonMistake { at: "now".into(), message: "must be an RFC 3339 time".into() })?;
        let expect = node.get("expect").ok_or_else(|| lacks("expect"))?;
        let secrets = node.get("secrets").map(read_secrets).transpose()?.unwrap_or_default();
        Ok(Fixture { name: name.into(), class, request, response, now, secrets, expect: Expect::read(expect)? })
    }
}

fn read_secrets(node: Node<'_>) -> Result<Secrets, JsonMistake> {
    let secret = |(name, value): (&str, Node<'_>)| match value.as_str() {
        Some(text) => Secret::new(text)
            .map(|secret| (name.to_owned(), secret))
            .ok_or_else(|| JsonMistake { at: format!("secrets.{name}"), message: "is empty".into() }),
        None => Err(JsonMistake { at: format!("secrets.{name}"), message: "must be a string".into() }),
    };
    node.members().map(secret).collect::<Result<_, _>>().map(Secrets)
}

impl Expect {
    fn read(node: Node<'_>) -> Result<Expect, JsonMistake> {
        json::known_members(node, "expect", &["data", "outcome", "reason", "code", "at", "keyword"])?;
        let data = node.get("data").map(|data| {
            let mut out = String::new();
            write_node(data, &mut out);
            out
        });
        Ok(Expect {
            data,
            outcome: json::optional_text(node, "outcome")?,
            reason: json::optional_text(node, "reason")?,
            code: json::optional_text(node, "code")?,
            at: json::optional_text(node, "at")?,
            keyword: json::optional_text(node, "keyword")?,
        })
    }
}

/// `case` over `defaults`: member by member, and within `request` and `transport` again.
fn merge(defaults: Node<'_>, case: Node<'_>) -> String {
    let mut out = String::from("{");
    let names = CASE_MEMBERS.iter().filter_map(|name| {
        let (default, own) = (defaults.get(name), case.get(name));
        own.or(default).map(|value| (*name, default, value))
    });
    for (i, (name, default, value)) in names.enumerate() {
        if i > 0 {
            out.push(',');
        }
        crate::gate::json::write_string(name, &mut out);
        out.push(':');
        match default.filter(|node| node.kind() == Kind::Object && matches!(name, "request" | "transport")) {
            Some(default) if value.kind() == Kind::Object => {
                // A call ends in one way: an ending of the case replaces the default's, whatever its name.
                let has_ending = ENDINGS.iter().any(|name| value.get(name).is_some());
                let kept = default
                    .members()
                    .filter(|(name, _)| value.get(name).is_none() && !(has_ending && ENDINGS.contains(name)));
                crate::gate::json::write_members(kept.chain(value.members()), &mut out);
            }
            Some(_) | None => write_node(value, &mut out),
        }
    }
    out.push('}');
    out
}

/// Runs one fixture against its contract.
///
/// # Errors
/// How the outcome differs from the expected one, in the contract's words.
pub fn run(contract: &Contract, fixture: &Fixture) -> Result<(), String> {
    let decision = judge(contract, fixture, fixture.response.body.clone())?;
    compare(&fixture.expect, fixture.class, decision)
}

/// Decides about the fixture's request and transport with this body.
///
/// # Errors
/// The fixture's request or response is none that could come over the wire.
pub fn judge(contract: &Contract, fixture: &Fixture, body: Vec<u8>) -> Result<Result<String, Stop>, String> {
    let announced = NewRequest::from_message(fixture.request.clone()).map_err(|why| format!("request: {why}"))?;
    let response = v1::ToolResponse { body, ..fixture.response.clone() };
    let response = RawResponse::from_message(response).map_err(|why| format!("response: {why}"))?;
    let mut arguments = Tape::default();
    let request = Request::announced(&announced, &mut arguments).map_err(|why| format!("request.arguments: {why}"))?;
    let mut bench = Bench::default();
    let case = Case { response: &response, request, contract, secrets: &fixture.secrets, now: fixture.now };
    Ok(crate::gate::decide(&case, &mut bench).map(|result| result.as_str().to_owned()))
}

fn compare(expect: &Expect, class: Class, decision: Result<String, Stop>) -> Result<(), String> {
    let accepts = class != Class::Reject;
    let wanted = expect.outcome.as_deref().unwrap_or(if accepts { "accepted" } else { "refused" });
    match decision {
        Ok(json) if wanted == "accepted" && accepts => same_data(expect.data.as_deref(), &json),
        Ok(_) => Err(format!("expected {}, was accepted", expect.describe(wanted))),
        Err(stop) if accepts => Err(format!("expected accepted, was {}", describe(&stop))),
        Err(Stop::Refused(refusal)) => {
            let was = describe(&Stop::Refused(refusal.clone()));
            let same = wanted == "refused"
                && expect.reason.as_deref() == Some(refusal.reason.code())
                && expect.at.as_deref().is_none_or(|at| at == refusal.diagnosis.instance_path)
                && expect.keyword.as_deref().is_none_or(|keyword| keyword == refusal.diagnosis.keyword);
            if same { Ok(()) } else { Err(format!("expected {}, was {was}", expect.describe(wanted))) }
        }
        Err(Stop::Failed(failure)) => {
            let was = describe(&Stop::Failed(failure.clone()));
            let same = wanted == "failed"
                && expect.reason.as_deref().is_none_or(|reason| reason == "UPSTREAM_ERROR")
                && expect.code.as_deref() == Some(failure.code.as_str());
            if same { Ok(()) } else { Err(format!("expected {}, was {was}", expect.describe(wanted))) }
        }
    }
}

impl Expect {
    fn describe(&self, outcome: &str) -> String {
        let parts = [("", &self.reason), ("code ", &self.code), ("at ", &self.at), ("keyword ", &self.keyword)];
        let told = parts.iter().filter_map(|(label, value)| value.as_ref().map(|value| format!(" {label}{value}")));
        told.fold(outcome.to_owned(), |text, part| text + &part)
    }
}

/// A stop in one line, for people who compare it with what they expected.
pub fn describe(stop: &Stop) -> String {
    let (head, diagnosis) = match stop {
        Stop::Refused(refusal) => (format!("refused {}", refusal.reason), &refusal.diagnosis),
        Stop::Failed(failure) => (format!("failed code {}", failure.code.as_str()), &failure.diagnosis),
    };
    let mut line = head;
    for (label, value) in
        [("at", &diagnosis.instance_path), ("keyword", &diagnosis.keyword), ("wants", &diagnosis.expected)]
    {
        if !value.is_empty() {
            line.push_str(&format!(" {label} {value}"));
        }
    }
    line
}

fn same_data(expected: Option<&str>, result: &str) -> Result<(), String> {
    let Some(expected) = expected else { return Err("expect.data is missing: say what the agent gets".into()) };
    let (mut wanted_tape, mut result_tape) = (Tape::default(), Tape::default());
    let wanted = json::parse(expected, &mut wanted_tape).map_err(|why| why.to_string())?;
    let result = json::parse(result, &mut result_tape).map_err(|why| why.to_string())?;
    let data = result.get("data").ok_or("the result has no data")?;
    if same_value(wanted, data) {
        return Ok(());
    }
    let mut shown = String::new();
    write_node(data, &mut shown);
    Err(format!("expected data {expected}, the agent gets {shown}"))
}
