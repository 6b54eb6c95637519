//! Both versions judge the same responses: what differs is told by counts and names, never by values.

use crate::contract::Contract;
use crate::contract::fixture::{Fixture, Secrets};
use crate::gate::decode::{NewRequest, RawResponse};
use crate::gate::parse::Tape;
use crate::gate::{AgentResult, Bench, Case, FailureCode, Request, Stop, decide};
use crate::time::Timestamp;
use crate::wire::v1;

/// A response that was recorded or written down, with the request that it answers and the moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Whose it is: a fixture's name, or a line of a traffic file.
    pub name: String,
    pub request: v1::ToolRequest,
    pub response: v1::ToolResponse,
    pub now: Timestamp,
}

impl Sample {
    pub fn of_fixture(fixture: &Fixture) -> Sample {
        Sample {
            name: format!("fixture {}", fixture.name),
            request: fixture.request.clone(),
            response: fixture.response.clone(),
            now: fixture.now,
        }
    }

    /// Whether both are the same question and answer.
    pub fn is_same_case(&self, other: &Sample) -> bool {
        (&self.request, &self.response, self.now) == (&other.request, &other.response, other.now)
    }
}

/// What a contract makes of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub accepted: bool,
    /// The reason of a refusal or the code of a failure; empty for what is accepted.
    pub reason: String,
    /// What the agent would read.
    pub agent: String,
}

/// Judges a sample by the gate itself.
///
/// # Errors
/// The request or the response is none that could come over the wire.
pub fn judge(contract: &Contract, sample: &Sample, secrets: &Secrets) -> Result<Verdict, String> {
    let announced = NewRequest::from_message(sample.request.clone()).map_err(|why| format!("request: {why}"))?;
    let response = RawResponse::from_message(sample.response.clone()).map_err(|why| format!("response: {why}"))?;
    let mut arguments = Tape::default();
    let request = Request::announced(&announced, &mut arguments).map_err(|why| format!("request.arguments: {why}"))?;
    let mut bench = Bench::default();
    let case = Case { response: &response, request, contract, secrets, now: sample.now };
    let (reason, code) = match decide(&case, &mut bench) {
        Ok(result) => return Ok(Verdict { accepted: true, reason: String::new(), agent: result.as_str().to_owned() }),
        Err(Stop::Refused(refusal)) => (refusal.reason.code().to_owned(), FailureCode::InvalidResponse),
        Err(Stop::Failed(failure)) => (format!("UPSTREAM_ERROR as {}", failure.code.as_str()), failure.code),
    };
    let mut out = String::new();
    let agent = AgentResult::failure(&request, &code, contract.is_retryable(&code), &mut out).as_str().to_owned();
    Ok(Verdict { accepted: false, reason, agent })
}

/// How two verdicts about one response differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shift {
    NewlyAccepted,
    NewlyRefused,
    BytesChanged,
    ReasonChanged,
}

impl Shift {
    pub const ALL: [Shift; 4] = [Shift::NewlyAccepted, Shift::NewlyRefused, Shift::BytesChanged, Shift::ReasonChanged];

    pub fn name(self) -> &'static str {
        match self {
            Shift::NewlyAccepted => "newly accepted",
            Shift::NewlyRefused => "newly refused",
            Shift::BytesChanged => "output bytes changed",
            Shift::ReasonChanged => "reason changed",
        }
    }

    /// Another reason is for people; the agent reads the same.
    pub fn needs_version(self) -> bool {
        match self {
            Shift::NewlyAccepted | Shift::NewlyRefused | Shift::BytesChanged => true,
            Shift::ReasonChanged => false,
        }
    }

    /// The difference between two verdicts, the gravest where there are several.
    pub fn between(old: &Verdict, new: &Verdict) -> Option<Shift> {
        match (old.accepted, new.accepted) {
            (false, true) => Some(Shift::NewlyAccepted),
            (true, false) => Some(Shift::NewlyRefused),
            (true, true) | (false, false) if old.agent != new.agent => Some(Shift::BytesChanged),
            (true, true) | (false, false) => (old.reason != new.reason).then_some(Shift::ReasonChanged),
        }
    }
}

/// One response about which the versions differ: by name, and by reasons of our own vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    pub name: String,
    pub shift: Shift,
    /// `accepted`, or why not.
    pub old: String,
    pub new: String,
}

/// What both versions made of all samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub judged: usize,
    /// In the order of the samples.
    pub differing: Vec<Example>,
    /// Samples that could never come over the wire, each with the reason.
    pub unjudged: Vec<String>,
}

impl Tally {
    pub fn count(&self, shift: Shift) -> usize {
        self.differing.iter().filter(|example| example.shift == shift).count()
    }

    pub fn needs_version(&self) -> bool {
        self.differing.iter().any(|example| example.shift.needs_version())
    }
}

/// Judges each sample twice.
pub fn tally(old: &Contract, new: &Contract, samples: &[Sample], secrets: &Secrets) -> Tally {
    let mut tally = Tally::default();
    for sample in samples {
        match (judge(old, sample, secrets), judge(new, sample, secrets)) {
            (Ok(before), Ok(after)) => {
                tally.judged += 1;
                if let Some(shift) = Shift::between(&before, &after) {
                    let (old, new) = (said(&before), said(&after));
                    tally.differing.push(Example { name: sample.name.clone(), shift, old, new });
                }
            }
            (Err(why), _) | (_, Err(why)) => tally.unjudged.push(format!("{}: {why}", sample.name)),
        }
    }
    tally
}

fn said(verdict: &Verdict) -> String {
    if verdict.accepted { "accepted".into() } else { format!("refused {}", verdict.reason) }
}
