//! Ratios against a baseline, measured in one run: absolute times mean little on a shared machine.
//!
//! Every pair is measured in turns, round by round, and the median of the rounds' ratios is printed
//! beside its goal. `make bench` runs this; nothing here asserts, people read it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a program for people who measure")]

use sha2::{Digest, Sha256};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolgate::contract::fixture::Secrets;
use toolgate::contract::{Contract, Folder, Lookup, Registry, pack};
use toolgate::gate::decode::{NewRequest, RawResponse};
use toolgate::gate::parse::Tape;
use toolgate::gate::{Bench, Case, Request, decide};
use toolgate::time::Timestamp;
use toolgate::wire::v1;

mod embedded;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ROUNDS: usize = 21;

fn main() {
    let registry = pack::load_all(Path::new("schemas")).unwrap().0;
    let (job, review, adapted) = (Example::job(), Example::review(&registry), Example::adapted(&registry));
    println!("{:<66} {:>8}  goal", "ratio, median of rounds (smallest, largest)", "");
    for (example, goal) in [(&job, "<= 1.2"), (&review, "<= 1.2"), (&adapted, "-")] {
        let mut judge = Judge::default();
        let ratio = compare(2000, || judge.run(example, &example.accepted), || example.value(&example.accepted));
        print(
            &format!("core on {} ({} bytes) / serde_json::Value", example.name, example.accepted.body().len()),
            ratio,
            goal,
        );
    }
    for example in [&job, &review] {
        let (mut one, mut other) = (Judge::default(), Judge::default());
        let ratio = compare(1000, || other.refused(example), || one.run(example, &example.accepted));
        print(&format!("refused with its diagnosis / accepted, {}", example.name), ratio, "<= 6");
    }
    print_growth(&review);
    print_contracts(&registry, &review);
    for example in [&job, &review, &adapted] {
        println!(
            "{:<66} {:>8}  0",
            format!("heap allocations of an accepted response, {}", example.name),
            allocations(example)
        );
    }
    embedded::print(&registry);
}

struct Ratios {
    median: f64,
    least: f64,
    most: f64,
}

fn print(what: &str, ratios: Ratios, goal: &str) {
    println!("{what:<66} {:>8.2}  {goal}   ({:.2}, {:.2})", ratios.median, ratios.least, ratios.most);
}

/// Times `a` against `b` in turns.
fn compare(repeat: u32, mut a: impl FnMut(), mut b: impl FnMut()) -> Ratios {
    let time = |f: &mut dyn FnMut()| {
        let started = Instant::now();
        (0..repeat).for_each(|_| f());
        started.elapsed().as_secs_f64()
    };
    time(&mut a);
    time(&mut b);
    let mut ratios: Vec<f64> = (0..ROUNDS).map(|_| time(&mut a) / time(&mut b)).collect();
    ratios.sort_by(f64::total_cmp);
    Ratios { median: ratios[ROUNDS / 2], least: ratios[0], most: ratios[ROUNDS - 1] }
}

/// One of the article's two examples, as its own closed envelope.
struct Example {
    name: &'static str,
    contract: Arc<Contract>,
    request: NewRequest,
    accepted: RawResponse,
    refused: RawResponse,
    now: Timestamp,
}

impl Example {
    fn review(registry: &Registry) -> Example {
        let body = r#"{"tool":"review_status","request_id":"req.J7q94MkP","outcome":"success","data":{"change_id":"CR-48213","decision":"approved","reviewed_by":"m.osei"}}"#;
        Example::of(registry, "review_status", body, r#"{"change_id":"CR-48213"}"#, ("\"approved\"", "\"Approved\""))
    }

    /// The article's payload of a job, in its envelope.
    fn job() -> Example {
        let contract = Arc::new(toolgate::contract::load(&JobStatus).unwrap());
        let body = r#"{"tool":"job_status","request_id":"req.J7q94MkP","outcome":"success","data":{"project_id":"bluebird","run_id":"run_7Kd29QmXv4Lp","state":"failed","observed_at":"2026-12-01T05:03:11.482Z"}}"#;
        Example::with(contract, "job_status", body, r#"{"project_id":"bluebird"}"#, ("bluebird", "copperhead"))
    }

    /// A vendor's document through an adapter of two shapes.
    fn adapted(registry: &Registry) -> Example {
        let body = r#"{"api_version":2,"project":{"slug":"bluebird"},"run":{"id":"run_7Kd29QmXv4Lp","status":"failed"},"observed_at":"2026-12-01T05:03:11.482Z"}"#;
        Example::of(registry, "ci.job_status", body, r#"{"project_id":"bluebird"}"#, ("bluebird", "copperhead"))
    }

    fn of(registry: &Registry, tool: &'static str, body: &str, arguments: &str, change: (&str, &str)) -> Example {
        let Lookup::Found(contract) = registry.look_up(tool, 0) else { panic!("{tool} is not served") };
        Example::with(contract, tool, body, arguments, change)
    }

    fn with(contract: Arc<Contract>, tool: &'static str, body: &str, arguments: &str, change: (&str, &str)) -> Example {
        let now = Timestamp::parse_rfc3339("2026-12-01T05:04:00Z").unwrap();
        let request = NewRequest::from_message(v1::ToolRequest {
            request_id: "req.J7q94MkP".into(),
            tool: tool.into(),
            arguments: arguments.into(),
            issued_at_unix_ms: now.unix_millis() - 5000,
            deadline_unix_ms: now.unix_millis() + 60_000,
            attempt: 1,
            ..v1::ToolRequest::default()
        });
        let (accepted, refused) = (response(tool, body.to_owned()), response(tool, body.replace(change.0, change.1)));
        Example { name: tool, contract, request: request.unwrap(), accepted, refused, now }
    }

    #[allow(clippy::disallowed_methods, reason = "the baseline")]
    fn value(&self, response: &RawResponse) {
        black_box(serde_json::from_slice::<serde_json::Value>(black_box(response.body().expose())).unwrap());
    }
}

/// The article's job example as a source that sends the envelope itself.
struct JobStatus;

impl Folder for JobStatus {
    fn read(&self, name: &str) -> Result<String, String> {
        match name {
            "contract.yaml" => Ok(include_str!("job_status.yaml").into()),
            _ => std::fs::read_to_string("schemas/tools/ci.job_status/v1/data.schema.json")
                .map_err(|error| error.to_string()),
        }
    }
}

fn response(tool: &str, body: String) -> RawResponse {
    RawResponse::from_message(v1::ToolResponse {
        request_id: "req.J7q94MkP".into(),
        tool: tool.into(),
        attempt: 1,
        body: body.into_bytes(),
        content_type: Some("application/json".into()),
        outcome: Some(v1::TransportOutcome { outcome: Some(v1::transport_outcome::Outcome::HttpStatus(200)) }),
        ..v1::ToolResponse::default()
    })
    .unwrap()
}

/// The core: arguments, decision, serialised result and the digest of the raw bytes.
#[derive(Default)]
struct Judge {
    bench: Bench,
    arguments: Tape,
}

impl Judge {
    fn decide(&mut self, example: &Example, response: &RawResponse) -> bool {
        let secrets = Secrets::default();
        let request = Request::announced(&example.request, &mut self.arguments).unwrap();
        let case = Case { response, request, contract: &example.contract, secrets: &secrets, now: example.now };
        black_box(Sha256::digest(black_box(response.body().expose())));
        black_box(decide(black_box(&case), &mut self.bench)).is_ok()
    }

    fn run(&mut self, example: &Example, response: &RawResponse) {
        assert!(self.decide(example, response));
    }

    fn refused(&mut self, example: &Example) {
        assert!(!self.decide(example, &example.refused));
    }
}

/// Nanoseconds a byte of the parser at 256 KiB against 1 KiB, on documents of the same texture.
fn print_growth(review: &Example) {
    let limits = toolgate::gate::parse::Limits { items_max: 100_000, ..Default::default() };
    let member = String::from_utf8(review.accepted.body().expose().to_vec()).unwrap();
    let document = |bytes: usize| {
        let count = bytes / (member.len() + 1);
        format!("[{}]", vec![member.as_str(); count.max(1)].join(","))
    };
    let (small, large) = (document(1024), document(262_000));
    let (mut a, mut b) = (Tape::default(), Tape::default());
    let per_round = large.len() / small.len();
    let ratio = compare(
        20,
        || assert!(a.parse(black_box(large.as_bytes()), &limits).is_ok()),
        || (0..per_round).for_each(|_| assert!(b.parse(black_box(small.as_bytes()), &limits).is_ok())),
    );
    let bytes = (per_round * small.len()) as f64 / large.len() as f64;
    let scaled = Ratios { median: ratio.median * bytes, least: ratio.least * bytes, most: ratio.most * bytes };
    print("parser, ns a byte at 256 KiB / at 1 KiB", scaled, "<= 1.25");
}

/// The way to the contract, among 500 and alone.
fn print_contracts(registry: &Registry, review: &Example) {
    let many = many_contracts(500);
    let (mut one, mut other) = (Judge::default(), Judge::default());
    let ratio = compare(
        2000,
        || {
            assert!(matches!(black_box(&many).look_up(black_box("review_status"), 0), Lookup::Found(_)));
            other.run(review, &review.accepted);
        },
        || {
            assert!(matches!(black_box(registry).look_up(black_box("review_status"), 0), Lookup::Found(_)));
            one.run(review, &review.accepted);
        },
    );
    print(&format!("a response among 500 contracts / among {}", registry.contracts().count()), ratio, "<= 1.05");
}

/// Copies of one contract under other names, beside the shipped `review_status`.
fn many_contracts(count: usize) -> Registry {
    let mut registry = Registry::default();
    let dir = Path::new("schemas/tools/review_status/v1");
    for i in 0..count {
        let mut contract = pack::load_dir(dir).unwrap();
        if i > 0 {
            contract.tool = format!("review_status_{i}").into();
        }
        registry.insert(contract).unwrap();
    }
    registry
}

/// Allocations of one more judgement, after the memory has grown to its size.
fn allocations(example: &Example) -> usize {
    let mut judge = Judge::default();
    (0..10).for_each(|_| judge.run(example, &example.accepted));
    let region = Region::new(ALLOCATOR);
    judge.run(example, &example.accepted);
    region.change().allocations
}

/// Seconds of a run, and what it did in them.
pub(crate) fn rate(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}
