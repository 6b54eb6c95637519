//! `send`, `tail` and `run --until-idle` on a cluster, with the configuration of the worker beside it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Message, Offset, TopicPartitionList};
use toolgate::log::partitioner::partition_of;

use crate::ask;
use crate::load;
use crate::log::options;
use crate::rights::Rights;
use crate::secured::{Home, Said, command, run};
use crate::support::{Cluster, text, until};

const PARTITIONS: i32 = 3;
const A_MINUTE: Duration = Duration::from_secs(60);

/// A broker with topics, and a configuration with settings of its own.
fn stage(more: &str) -> Option<(Cluster, Home, std::path::PathBuf)> {
    let cluster = Cluster::start(&[])?;
    cluster.make_topics(&options(&cluster, "g", "w0"), PARTITIONS);
    let home = Home::new();
    let config = home.configure(&cluster, "bootstrap", more);
    Some((cluster, home, config))
}

fn works(config: &Path, args: &[&str]) -> Said {
    let said = run(config, args, A_MINUTE);
    assert_eq!(said.code, Some(0), "{args:?}: {said:?}");
    said
}

fn request(id: &str) -> String {
    let now = toolgate::worker::clock::now();
    let deadline = now.saturating_add_millis(600_000);
    format!(
        r#"{{"tool":"review_status","request_id":"{id}","issued_at":"{now}","deadline":"{deadline}","arguments":{{"change_id":"CR-1"}}}}"#
    )
}

fn response(id: &str) -> String {
    format!(
        r#"{{"tool":"review_status","request_id":"{id}","status":200,"content_type":"application/json","body":{{"tool":"review_status","request_id":"{id}","outcome":"success","data":{{"change_id":"CR-1","decision":"approved","reviewed_by":"m.osei"}}}}}}"#
    )
}

/// Sends so many requests and their responses as a person does, from files.
fn send_all(home: &Home, config: &Path, ids: &[String]) {
    let lines = |line: fn(&str) -> String| ids.iter().map(|id| line(id) + "\n").collect::<String>();
    home.write("requests", &lines(request));
    home.write("responses", &lines(response));
    for what in ["requests", "responses"] {
        let said = works(config, &["send", what, &home.path(what).to_string_lossy()]);
        assert!(said.errors.contains(&format!("sent {} records", ids.len())), "{said:?}");
    }
}

fn ids(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| ask::id(&format!("{name}.{n:04}"))).collect()
}

/// What a producer of any other make wrote is judged the same, so only the place is ours to show: where Java's client
/// would put the key, and with CloudEvents the attributes in headers.
#[test]
fn what_is_sent_is_judged_and_can_be_looked_at() {
    for encoding in ["protobuf", "cloudevents"] {
        let Some((cluster, home, config)) = stage(&format!("[encoding]\nresponses = \"{encoding}\"\n")) else { return };
        let ids = ids("day", 1200);
        send_all(&home, &config, &ids);
        for topic in ["tool.requests", "tool.responses"] {
            let mut keys = places(&cluster, topic);
            keys.sort();
            assert_eq!(keys.iter().map(|(key, _)| key).collect::<Vec<_>>(), ids.iter().collect::<Vec<_>>());
            let elsewhere = keys.iter().find(|(key, at)| partition_of(key.as_bytes(), PARTITIONS).0 != *at);
            assert_eq!(elsewhere, None, "{topic}");
        }
        works(&config, &["run", "--until-idle"]);
        let results = works(&config, &["tail", "results"]).output;
        assert_eq!(results.lines().filter(|line| line.contains(r#""outcome":"success""#)).count(), ids.len());
        let audit = works(&config, &["tail", "audit", "--json"]).output;
        assert_eq!(
            audit.lines().filter(|line| line.contains(r#""outcome":"accepted""#)).count(),
            ids.len(),
            "{encoding}"
        );
        assert_eq!(works(&config, &["tail", "tool.quarantine"]).output, "");
        assert_eq!(works(&config, &["tail", "retries"]).output, "");
        assert_eq!(works(&config, &["tail", "results", "--from", "end"]).output, "");
    }
}

/// Keys and partitions of everything in a topic.
fn places(cluster: &Cluster, topic: &str) -> Vec<(String, i32)> {
    let mut config = cluster.client();
    config.set("group.id", "places").set("enable.partition.eof", "true");
    let consumer: BaseConsumer = config.create().expect("a consumer");
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        list.add_partition_offset(topic, partition, Offset::Beginning).expect("an offset");
    }
    consumer.assign(&list).expect("an assignment");
    let (mut all, mut ends) = (Vec::new(), 0);
    until("all is read", A_MINUTE, || {
        match consumer.poll(Duration::from_millis(500)) {
            Some(Ok(message)) => all.push((text(message.key().unwrap_or_default()), message.partition())),
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(_))) => ends += 1,
            Some(Err(_)) | None => {}
        }
        ends == PARTITIONS
    });
    all
}

/// A `tail` that goes on, and its lines.
struct Tail {
    child: Child,
    lines: Receiver<String>,
}

impl Tail {
    fn start(config: &Path, args: &[&str]) -> Tail {
        let mut child = command(config, &[&["tail"], args].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("toolgate starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (tell, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Tail { child, lines }
    }

    fn next(&self) -> String {
        self.lines.recv_timeout(A_MINUTE).expect("a line comes")
    }

    /// Ctrl-C, and what came until then.
    fn interrupted(mut self) -> Vec<String> {
        let pid = self.child.id().to_string();
        assert!(Command::new("bash").args(["-c", "kill -INT \"$0\"", &pid]).status().expect("kill runs").success());
        let status = self.child.wait().expect("it ends");
        let mut errors = String::new();
        self.child.stderr.take().expect("its errors").read_to_string(&mut errors).expect("text");
        assert!(status.success(), "{status} {errors}");
        assert_eq!(errors, "", "it has nothing to complain about");
        self.lines.iter().collect()
    }
}

fn transactional(cluster: &Cluster, id: &str) -> BaseProducer {
    let producer: BaseProducer = cluster.client().set("transactional.id", id).create().expect("a producer");
    producer.init_transactions(A_MINUTE).expect("it has its id");
    producer.begin_transaction().expect("a transaction");
    producer
}

fn put(producer: &BaseProducer, topic: &str, partition: i32, key: &str, value: &[u8]) {
    producer.send(BaseRecord::to(topic).partition(partition).key(key).payload(value)).expect("room in the queue");
    producer.flush(A_MINUTE).expect("the record is written");
}

/// What is not committed, or was aborted, is no result.
#[test]
fn a_tail_follows_what_is_committed_until_ctrl_c() {
    let Some((cluster, _home, config)) = stage("") else { return };
    let old = cluster.producer();
    put(&old, "tool.results", 0, "old", b"{}");
    let (open, aborted) = (transactional(&cluster, "open"), transactional(&cluster, "aborted"));
    put(&open, "tool.results", 1, "open", b"{}");
    put(&aborted, "tool.results", 2, "aborted", b"{}");
    aborted.abort_transaction(A_MINUTE).expect("it aborts");
    let seen = works(&config, &["tail", "results"]).output;
    assert!(seen.lines().count() == 1 && seen.contains(" old "), "{seen}");

    let (all, new) =
        (Tail::start(&config, &["results", "--follow"]), Tail::start(&config, &["results", "-f", "--from", "end"]));
    assert!(all.next().contains(" old "));
    open.commit_transaction(A_MINUTE).expect("it commits");
    assert!(all.next().contains(" open "));
    // The other may have begun before or after that commit; it has begun once it sees what is written again and again.
    let mut count = 0;
    until("the other has begun", A_MINUTE, || {
        count += 1;
        put(&old, "tool.results", 0, &format!("new-{count}"), b"{}");
        all.next();
        new.lines.try_recv().is_ok()
    });
    assert!(all.interrupted().is_empty());
    let rest = new.interrupted();
    assert!(rest.iter().all(|line| !line.contains(" old ") && !line.contains("aborted")), "{rest:?}");
}

/// Anybody who may write to a topic may have written anything.
#[test]
fn hostile_bytes_never_reach_a_terminal() {
    let Some((cluster, _home, config)) = stage("") else { return };
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\r\n";
    let directive = toolgate::wire::v1::RetryDirective { tool: evil.into(), reason: evil.into(), ..Default::default() };
    let refused = toolgate::wire::v1::QuarantineRecord { id: evil.into(), reason: evil.into(), ..Default::default() };
    let audit = toolgate::wire::v1::AuditRecord { decision_id: evil.into(), ..Default::default() };
    let producer = cluster.producer();
    for (topic, value) in [
        ("results", format!("{{\"a\":\"{evil}\"}}").into_bytes()),
        ("results", b"{\"a\":\n\"\xc2\x9b31m\xe2\x80\xae\"}".to_vec()),
        ("results", b"1,\"offset\":99,\"x\":\"\xff\x1b[2J".to_vec()),
        ("retries", prost::Message::encode_to_vec(&directive)),
        ("quarantine", prost::Message::encode_to_vec(&refused)),
        ("audit", prost::Message::encode_to_vec(&audit)),
        ("responses", evil.as_bytes().to_vec()),
    ] {
        put(&producer, &format!("tool.{topic}"), 0, evil, &value);
    }
    for (topic, count) in [("results", 3), ("retries", 1), ("quarantine", 1), ("audit", 1), ("responses", 1)] {
        for args in [&["tail", topic][..], &["tail", topic, "--json"]] {
            let output = works(&config, args).output;
            assert_eq!(output.lines().count(), count, "{args:?}: {output:?}");
            assert!(output.chars().all(|char| matches!(char, ' '..='~' | '\n')), "{args:?}: {output:?}");
            if args.len() == 3 {
                let whole = |line: &str| {
                    line.starts_with('{') && line.ends_with('}') && line.matches("\"offset\":").count() == 1
                };
                assert!(output.lines().all(|line| whole(&line.replace("\\\"", ""))), "{output}");
            }
        }
    }
}

/// A worker that stopped at its first idle poll would stop before the group had given it anything, or before what is in
/// the log had arrived; and a topic may end in marks that nobody reads.
#[test]
fn until_idle_stops_when_all_that_was_there_is_committed() {
    let Some((cluster, home, config)) = stage("") else { return };
    works(&config, &["run", "--until-idle"]);
    assert!(load::read_committed(&cluster).is_empty(), "nothing in, nothing out");
    let ids = ids("there", 3000);
    send_all(&home, &config, &ids);
    let marks = transactional(&cluster, "marks");
    for topic in ["tool.requests", "tool.responses"] {
        (0..PARTITIONS).for_each(|partition| put(&marks, topic, partition, "never", b"aborted"));
    }
    marks.abort_transaction(A_MINUTE).expect("it aborts");
    works(&config, &["run", "--until-idle"]);
    let topics = load::read_committed(&cluster);
    assert_eq!(topics["tool.results"].len(), ids.len());
    assert_eq!(topics["tool.audit"].len(), ids.len());
    works(&config, &["run", "--until-idle"]);
    assert_eq!(load::read_committed(&cluster)["tool.audit"].len(), ids.len(), "a second run finds nothing to do");
}

/// A transaction that is open below the end may become part of what was there.
#[test]
fn until_idle_waits_for_what_is_not_committed_yet() {
    let Some((cluster, home, config)) = stage("") else { return };
    let ids = ids("open", 1);
    home.write("request", &request(&ids[0]));
    works(&config, &["send", "requests", &home.path("request").to_string_lossy()]);
    let open = transactional(&cluster, "open");
    let answer = prost::Message::encode_to_vec(&ask::response(&ids[0], ""));
    put(&open, "tool.responses", partition_of(ids[0].as_bytes(), PARTITIONS).0, &ids[0], &answer);
    let worker = command(&config, &["run", "--until-idle"]).stderr(Stdio::piped()).spawn().expect("toolgate starts");
    let counter = cluster.counter("toolgate.g.bindings");
    until("the request is taken in", A_MINUTE, || counter.count_more() > 0);
    open.commit_transaction(A_MINUTE).expect("it commits");
    let output = worker.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(load::read_committed(&cluster)["tool.results"].len(), 1);
}

/// One line, the right code, and how much was written.
#[test]
fn what_cannot_be_sent_or_read_says_so() {
    let Some((_cluster, home, config)) = stage("") else { return };
    home.write("broken", &format!("{}\n{{\"tool\":1}}\n", request(&ids("one", 1)[0])));
    let said = run(&config, &["send", "requests", &home.path("broken").to_string_lossy()], A_MINUTE);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.errors.contains("1 records were sent before this line") && said.errors.contains("broken:2"),
        "{said:?}"
    );
    let said = run(&config, &["tail", "requests", "--log", "t.db"], A_MINUTE);
    assert!(said.code == Some(1) && said.errors.contains("--log names an embedded log"), "{said:?}");
    let gone = run(&config, &["tail", "nothing"], A_MINUTE);
    assert!(gone.code == Some(1) && gone.errors.contains("is no topic"), "{gone:?}");
}

#[test]
fn commands_need_a_right_on_one_topic_and_name_it() {
    const SASL: &str = "security_protocol = \"sasl_ssl\"\nca_file = \"TLS/ca.pem\"\nusername = \"worker\"\npassword_file = \"FILES/password\"\n";
    let Some(cluster) = Cluster::start(&["--secure"]) else { return };
    cluster.make_topics(&options(&cluster, "g", "w0"), 1);
    let (home, mut rights) = (Home::new(), Rights::of(&cluster));
    let config = home.configure(&cluster, "bootstrap.sasl", SASL);
    home.write("request", &request(&ids("one", 1)[0]));
    let file = home.path("request").to_string_lossy().into_owned();
    let cases: [(&[&str], &str, &str); 2] =
        [(&["send", "requests", &file], "tool.requests", "WRITE"), (&["tail", "requests"], "tool.requests", "READ")];
    for (args, topic, operation) in cases {
        for may_see in [false, true] {
            if may_see {
                rights.grant("User:worker", ("topic", topic), "DESCRIBE");
            }
            let said = run(&config, args, A_MINUTE);
            let wanted = format!("grant {operation} on topic `{topic}`");
            assert!(said.code == Some(78) && said.errors.contains(&wanted), "{args:?} {may_see}: {said:?}");
            assert_eq!(said.errors.lines().count(), 1, "{said:?}");
        }
        rights.revoke("User:worker", ("topic", topic), "DESCRIBE");
        rights.grant("User:worker", ("topic", topic), operation);
        works(&config, args);
        rights.revoke("User:worker", ("topic", topic), operation);
    }
}
