//! Hostile and odd records, as any program with the right to write can produce them. Each is quarantined once, under its
//! position, or is nothing to worry about; the good response behind it is answered; and nothing of it is seen anywhere
//! else.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use prost::Message;
use rdkafka::producer::{BaseRecord, Producer};
use toolgate::log::RECORD_BYTES_MAX;
use toolgate::wire::v1;
use toolgate::wire::v1::quarantine_record::Payload;

use crate::ask::{self, Seen, read};
use crate::log::options;
use crate::raw::{self, Codec, Raw};
use crate::secured::{CANARY, Home, Running};
use crate::support::{Cluster, until};

/// What becomes of an odd record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Answered like any other.
    Passed,
    /// Kept whole, for this reason.
    Kept(&'static str),
    /// Kept as digest and position, for this reason.
    Digest(&'static str),
}

/// A worker on a broker with one partition, where everything is behind something.
struct Bench {
    cluster: Cluster,
    home: Home,
    metrics: String,
    /// Odd records by topic and offset.
    odd: BTreeMap<(String, i64), (String, Fate)>,
    /// Requests that must be accepted.
    good: Vec<String>,
}

impl Bench {
    fn new() -> Option<Bench> {
        let cluster = Cluster::start(&[])?;
        cluster.make_topics(&options(&cluster, "g", "w0"), 1);
        let port = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("a free port");
        Some(Bench { cluster, home: Home::new(), metrics: port.to_string(), odd: BTreeMap::new(), good: Vec::new() })
    }

    fn write(&mut self, name: &str, topic: &str, raw: Raw, fate: Fate) {
        let offset = raw::write(&self.cluster.servers(), topic, &[raw], Codec::None);
        self.odd.insert((topic.to_owned(), offset), (name.to_owned(), fate));
    }

    /// The worker under test, with log lines and metrics to look at.
    fn start(&self, more: &str) -> Running {
        let more = format!("[telemetry]\nlog_level = \"info\"\nmetrics_listen = \"{}\"\n{more}", self.metrics);
        let path = self.home.configure(&self.cluster, "bootstrap", "");
        let config = std::fs::read_to_string(&path).expect("the configuration");
        std::fs::write(&path, config.replace("[telemetry]\nlog_level = \"error\"\n", "") + &more)
            .expect("it is written");
        Running::start(&path)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.path("toolgate.log")).unwrap_or_default()
    }

    fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(&self.metrics).expect("metrics are served");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        assert!(text.contains("toolgate_"), "{text}");
        text
    }

    /// Waits until every good request is answered, and holds everything that was written against what must be.
    fn judge(&self, worker: &mut Running) {
        let answered = |results: &[Seen]| results.iter().filter(|one| one.is_success()).count();
        let results = std::cell::RefCell::new(Vec::new());
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until("the good are answered", Duration::from_secs(60), || {
                *results.borrow_mut() = read(&self.cluster, "tool.results");
                answered(&results.borrow()) >= self.good.len()
            });
        }));
        let results = results.into_inner();
        let is_answered = |id: &String| results.iter().any(|one| one.key == id.as_bytes() && one.is_success());
        let missing: Vec<&String> = self.good.iter().filter(|id| !is_answered(id)).collect();
        assert!(waited.is_ok() && missing.is_empty(), "not answered: {missing:?}\n{}", self.log());
        assert!(worker.is_alive(), "{}", self.log());
        self.judge_quarantine();
        let seen = results.iter().map(|one| one.everything.as_slice()).collect::<Vec<_>>().concat();
        for (place, text) in [
            ("what agents read", String::from_utf8_lossy(&seen).into_owned()),
            ("log lines", self.log()),
            ("metrics", self.metrics()),
        ] {
            assert!(!text.contains(CANARY), "the canary is in {place}: {text}");
            assert!(!text.contains("panicked"), "{place}: {text}");
        }
    }

    fn judge_quarantine(&self) {
        let mut found: BTreeMap<(String, i64), Vec<v1::QuarantineRecord>> = BTreeMap::new();
        for one in read(&self.cluster, "tool.quarantine") {
            let record = v1::QuarantineRecord::decode(one.value.as_slice()).expect("a quarantine record");
            let source = record.source.clone().expect("its position");
            assert_eq!(source.partition, 0);
            found.entry((source.topic, source.offset)).or_default().push(record);
        }
        for (at, (name, fate)) in &self.odd {
            let records = found.remove(at).unwrap_or_default();
            let (reason, is_kept) = match fate {
                Fate::Passed => {
                    assert!(records.is_empty(), "{name}: {records:?}");
                    continue;
                }
                Fate::Kept(reason) => (*reason, true),
                Fate::Digest(reason) => (*reason, false),
            };
            let reasons: Vec<&str> = records.iter().map(|record| record.reason.as_str()).collect();
            assert_eq!(reasons, [reason], "{name} at {at:?}");
            assert_eq!(matches!(records[0].payload, Some(Payload::Plain(_))), is_kept, "{name} at {at:?}");
            assert_eq!(records[0].sha256.len(), 32, "{name}");
        }
        assert!(found.is_empty(), "nobody wrote these: {:?}", found.keys().collect::<Vec<_>>());
    }
}

fn good(id: &str) -> Raw {
    Raw { key: Some(id.as_bytes().to_vec()), value: Some(ask::response(id, "").encode_to_vec()), headers: Vec::new() }
}

fn junk_headers(count: usize) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let name = |at: usize| [CANARY.as_bytes(), &[0xFF, 0xFE, (at % 251) as u8 | 0x80]].concat();
    (0..count).map(|at| (name(at), Some(vec![0, 0xC3, 0x28, at as u8]))).collect()
}

/// A response to this request that would be good but for what is done to it.
fn spoilt(id: &str, spoil: impl Fn(&mut v1::ToolResponse)) -> Raw {
    let mut response = ask::response(id, &format!(",\"note\":\"{CANARY}\""));
    spoil(&mut response);
    Raw { value: Some(response.encode_to_vec()), ..good(id) }
}

fn sized(id: &str, bytes: usize) -> Raw {
    Raw { value: Some(CANARY.bytes().cycle().take(bytes).collect()), ..good(id) }
}

/// A name, the record, and what becomes of it.
type Oddity = (&'static str, fn(&str) -> Raw, Fate);

/// Odd responses: a name, the record, and what becomes of it. `id` is that of a request which is outstanding.
fn oddities() -> Vec<Oddity> {
    const NONE: Fate = Fate::Kept("UNDECODABLE_EVENT");
    vec![
        ("undecodable", |id| Raw { value: Some(format!("\u{1}{CANARY}\u{0}").into_bytes()), ..good(id) }, NONE),
        ("null", |id| Raw { value: None, ..good(id) }, NONE),
        ("empty", |id| Raw { value: Some(Vec::new()), ..good(id) }, NONE),
        ("no-key", |id| Raw { key: None, ..good(id) }, NONE),
        ("empty-key", |id| Raw { key: Some(Vec::new()), ..good(id) }, NONE),
        ("junk-key", |id| Raw { key: Some([CANARY.as_bytes(), &[0xFF, 0]].concat()), ..good(id) }, NONE),
        ("nothing-at-all", |_| Raw::default(), NONE),
        ("unknown-member", |id| spoilt(id, |_| ()), Fate::Kept("SCHEMA_VIOLATION")),
        (
            "other-tool",
            |id| spoilt(id, |one| one.tool = format!("{}.x", CANARY.to_lowercase())),
            Fate::Kept("WRONG_TOOL"),
        ),
        (
            "odd-media-type",
            |id| spoilt(id, |one| one.content_type = Some(CANARY.into())),
            Fate::Kept("UNEXPECTED_CONTENT_TYPE"),
        ),
        (
            "odd-encoding",
            |id| {
                spoilt(id, |one| {
                    one.headers = vec![v1::Header { name: "content-encoding".into(), value: CANARY.into() }];
                    one.body = [&[0x1F, 0x8B, 8, 0], CANARY.as_bytes()].concat();
                })
            },
            Fate::Kept("INVALID_UTF8"),
        ),
        ("large", |id| sized(id, RECORD_BYTES_MAX - 8192), NONE),
        ("too-large-to-keep", |id| sized(id, RECORD_BYTES_MAX - 100), Fate::Digest("UNDECODABLE_EVENT")),
        ("larger-than-we-write", |id| sized(id, RECORD_BYTES_MAX + 400_000), Fate::Digest("UNDECODABLE_EVENT")),
        (
            "large-body",
            |id| spoilt(id, |one| one.body = vec![b' '; RECORD_BYTES_MAX - 2048]),
            Fate::Digest("TOO_LARGE"),
        ),
        ("junk-headers", |id| Raw { headers: junk_headers(3), ..good(id) }, Fate::Passed),
        ("thousands-of-headers", |id| Raw { headers: junk_headers(5000), ..good(id) }, Fate::Passed),
        (
            "twice-the-same-header",
            |id| Raw {
                headers: vec![(b"content-type".to_vec(), None), (b"content-type".to_vec(), Some(CANARY.into()))],
                ..good(id)
            },
            Fate::Passed,
        ),
        (
            "header-without-name",
            |id| Raw { headers: vec![(Vec::new(), Some(CANARY.into()))], ..good(id) },
            Fate::Passed,
        ),
    ]
}

#[test]
fn each_odd_response_is_quarantined_once_and_blocks_nothing() {
    let Some(mut bench) = Bench::new() else { return };
    let producer = bench.cluster.producer();
    for (name, make, fate) in oddities() {
        let (odd, behind) = (ask::id(&format!("odd.{name}")), ask::id(&format!("behind.{name}")));
        ask::announce(&producer, 1, &odd);
        ask::announce(&producer, 1, &behind);
        bench.write(name, "tool.responses", make(&odd), fate);
        ask::respond(&producer, 1, &ask::response(&behind, ""));
        bench.good.push(behind);
        if fate == Fate::Passed {
            bench.good.push(odd);
        }
    }
    let mut worker = bench.start("");
    bench.judge(&mut worker);
}

#[test]
fn each_odd_request_is_quarantined_once_and_blocks_nothing() {
    let Some(mut bench) = Bench::new() else { return };
    let producer = bench.cluster.producer();
    let junk = |name: &str| match name {
        "undecodable" => Raw { value: Some(CANARY.into()), ..good("a") },
        "null" => Raw { value: None, ..good("a") },
        "nothing-at-all" => Raw::default(),
        "junk-headers" => Raw { value: Some(CANARY.into()), headers: junk_headers(200), ..good("a") },
        other => panic!("no such oddity: {other}"),
    };
    for name in ["undecodable", "null", "nothing-at-all", "junk-headers"] {
        bench.write(name, "tool.requests", junk(name), Fate::Kept("UNDECODABLE_EVENT"));
        let behind = ask::id(&format!("behind.{name}"));
        ask::announce(&producer, 1, &behind);
        ask::respond(&producer, 1, &ask::response(&behind, ""));
        bench.good.push(behind);
    }
    let mut worker = bench.start("");
    bench.judge(&mut worker);
}

/// An event in the other encoding, where headers matter.
fn event(id: &str, more: Vec<(Vec<u8>, Option<Vec<u8>>)>) -> Raw {
    let attributes = [
        ("ce_specversion", "1.0"),
        ("ce_id", "1"),
        ("ce_source", "connector"),
        ("ce_type", "t"),
        ("ce_requestid", id),
        ("ce_tool", "review_status"),
        ("ce_attempt", "1"),
        ("ce_httpstatus", "200"),
        ("content-type", "application/json"),
    ];
    let mut headers: Vec<_> =
        attributes.iter().map(|(name, value)| (name.as_bytes().to_vec(), Some(value.as_bytes().to_vec()))).collect();
    headers.extend(more);
    Raw { key: Some(id.as_bytes().to_vec()), value: Some(ask::response(id, "").body), headers }
}

#[test]
fn odd_headers_of_events_are_refused_or_ignored_and_block_nothing() {
    const NONE: Fate = Fate::Kept("UNDECODABLE_EVENT");
    let Some(mut bench) = Bench::new() else { return };
    let producer = bench.cluster.producer();
    let one = |name: &str, value: &[u8]| vec![(name.as_bytes().to_vec(), Some(value.to_vec()))];
    for (name, more, fate) in [
        ("names-that-are-no-text", junk_headers(100), Fate::Passed),
        ("too-many", junk_headers(5000), NONE),
        ("an-attribute-twice", one("ce_tool", b"review_status"), NONE),
        ("an-attribute-in-other-letters", one("CE_ATTEMPT", b"2"), NONE),
        ("an-attribute-that-is-no-text", one("ce_endpoint", &[0xFF, 0xFE]), NONE),
        ("an-encoding-nobody-knows", one("content-encoding", CANARY.as_bytes()), Fate::Passed),
        ("a-header-that-is-not-ours", one("x", CANARY.as_bytes()), Fate::Passed),
    ] {
        let (odd, behind) = (ask::id(&format!("odd.{name}")), ask::id(&format!("behind.{name}")));
        ask::announce(&producer, 1, &odd);
        ask::announce(&producer, 1, &behind);
        bench.write(name, "tool.responses", event(&odd, more), fate);
        raw::write(&bench.cluster.servers(), "tool.responses", &[event(&behind, Vec::new())], Codec::None);
        bench.good.push(behind);
        if fate == Fate::Passed {
            bench.good.push(odd);
        }
    }
    let mut worker = bench.start("[encoding]\nresponses = \"cloudevents\"\n");
    bench.judge(&mut worker);
}

/// What a producer compresses is read, whatever codec it takes.
#[test]
fn batches_of_every_codec_are_read() {
    let Some(mut bench) = Bench::new() else { return };
    let producer = bench.cluster.producer();
    for codec in ["gzip", "snappy", "lz4"] {
        let ids: Vec<String> = (0..20).map(|number| ask::id(&format!("{codec}.{number}"))).collect();
        ids.iter().for_each(|id| ask::announce(&producer, 1, id));
        let mut config = bench.cluster.client();
        let packer: rdkafka::producer::BaseProducer =
            config.set("compression.type", codec).set("linger.ms", "100").create().expect("a producer");
        for id in &ids {
            let value = ask::response(id, "").encode_to_vec();
            packer.send(BaseRecord::to("tool.responses").partition(0).key(id).payload(&value)).expect("room");
        }
        packer.flush(Duration::from_secs(20)).expect("they are written");
        bench.good.extend(ids);
    }
    let ids: Vec<String> = (0..20).map(|number| ask::id(&format!("zstd.{number}"))).collect();
    ids.iter().for_each(|id| ask::announce(&producer, 1, id));
    let records: Vec<Raw> = ids.iter().map(|id| good(id)).collect();
    raw::write(&bench.cluster.servers(), "tool.responses", &records, Codec::Zstd);
    bench.good.extend(ids);
    let mut worker = bench.start("");
    bench.judge(&mut worker);
}

/// Control records and aborted records leave gaps in the offsets. What was aborted is never judged.
#[test]
fn marks_and_aborted_records_are_passed_over() {
    let Some(mut bench) = Bench::new() else { return };
    let producer = bench.cluster.producer();
    let connector: rdkafka::producer::BaseProducer =
        bench.cluster.client().set("transactional.id", "connector").create().expect("a producer");
    connector.init_transactions(Duration::from_secs(20)).expect("a transactional id");
    for number in 0..12 {
        let (id, is_committed) = (ask::id(&format!("t.{number}")), number % 3 != 1);
        ask::announce(&producer, 1, &id);
        connector.begin_transaction().expect("a transaction");
        if number % 4 != 3 {
            let more = if is_committed { String::new() } else { format!(",\"note\":\"{CANARY}\"") };
            ask::respond(&connector, 1, &ask::response(&id, &more));
        }
        let ended = if is_committed {
            connector.commit_transaction(Duration::from_secs(20))
        } else {
            connector.abort_transaction(Duration::from_secs(20))
        };
        ended.expect("it ends");
        // Whoever lost its answer in an aborted transaction gets it behind the mark.
        if !is_committed || number % 4 == 3 {
            ask::respond(&producer, 1, &ask::response(&id, ""));
        }
        bench.good.push(id);
    }
    let mut worker = bench.start("");
    bench.judge(&mut worker);
}
