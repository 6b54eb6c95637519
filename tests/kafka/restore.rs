//! The way back: a worker says that it is ready when its requests are what the changelog says, and not before.
//! `TOOLGATE_KAFKA_RESTORE` is the number of requests, `TOOLGATE_KAFKA_RESTORE_KILLS` that of interrupted rebuilds.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use prost::Message as _;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::Producer;
use rdkafka::{Message as _, Offset, TopicPartitionList};
use toolgate::log::kafka::{KafkaLog, KafkaOptions};
use toolgate::log::partitioner::partition_of;
use toolgate::log::{Event, Log, Partition};
use toolgate::partition::PartitionState;
use toolgate::request::Binding;
use toolgate::wire::v1;

use crate::history::{self, HELD, History, PARTITIONS};
use crate::kills::{Random, number};
use crate::log::options;
use crate::support::{Cluster, until};

/// How many requests are answered afterwards; a larger history is sampled evenly.
const ANSWERS_MAX: usize = 50_000;

/// One worker process that says what it restores, and its health page.
struct Rebuilding {
    child: Child,
    log: PathBuf,
    address: String,
}

impl Rebuilding {
    fn start(cluster: &Cluster, home: &tempfile::TempDir, life: usize) -> Rebuilding {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let (file, log) = (home.path().join("w.toml"), home.path().join(format!("w-{life}.log")));
        let address = format!("127.0.0.1:{port}");
        // Under another name it has to wait until the group has given up its predecessor, and owns nothing till then.
        let instance = if life % 3 == 2 { "other" } else { "usual" };
        let config = format!(
            "[worker]\ngroup = \"g\"\ninstance = \"{instance}\"\n[log]\nkind = \"kafka\"\n[telemetry]\nlog_level = \"info\"\nlog_format = \"json\"\nmetrics_listen = \"{address}\"\n[kafka]\nbootstrap_servers = \"{}\"\nsession_timeout = \"3s\"\nreplication_factor = 1\nmin_insync_replicas = 1\n",
            cluster.servers()
        );
        std::fs::write(&file, config).expect("a configuration");
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        // What tells this test how long to be would be unknown settings to a worker.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLGATE_")) {
            command.env_remove(name);
        }
        let child = command
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["--config", &file.to_string_lossy(), "run"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).expect("a log file"))
            .spawn()
            .expect("toolgate starts");
        Rebuilding { child, log, address }
    }

    /// Whether `/readyz` says so.
    fn is_ready(&self) -> bool {
        let ask = || {
            let mut stream = TcpStream::connect(&self.address)?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok::<_, std::io::Error>(answer.starts_with("HTTP/1.1 200"))
        };
        // Before it listens it is not ready.
        ask().unwrap_or(false)
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// How many requests it says it has restored, by partition.
    #[allow(clippy::disallowed_methods, reason = "the worker's own log lines")]
    fn restored(&self) -> BTreeMap<i32, usize> {
        let read = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).ok()?;
            let fields = line.get("fields").unwrap_or(&line);
            (fields.get("message")?.as_str()? == "partition restored").then_some(())?;
            Some((fields.get("partition")?.as_i64()? as i32, fields.get("requests")?.as_u64()? as usize))
        };
        self.said().lines().filter_map(read).collect()
    }

    /// Fails if it is ready although it cannot be.
    fn must_not_be_ready(&self, why: &str) {
        assert!(!self.is_ready(), "ready although {why}\n{}", self.said());
    }

    /// SIGKILL once it has restored `partitions` of them and a little longer.
    #[allow(clippy::disallowed_methods, reason = "a moment to kill at")]
    fn kill_after(mut self, partitions: usize, longer: Duration) -> usize {
        until("the rebuild gets that far", Duration::from_secs(120), || {
            self.must_not_be_ready("transactions are open in the changelog");
            self.restored().len() >= partitions
        });
        let reached = Instant::now();
        while reached.elapsed() < longer {
            self.must_not_be_ready("transactions are open in the changelog");
            std::thread::sleep(Duration::from_millis(2));
        }
        let restored = self.restored().len();
        assert!(self.child.try_wait().expect("its state").is_none(), "it ended by itself\n{}", self.said());
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it is gone");
        restored
    }

    fn drain(mut self) {
        let status = Command::new("bash")
            .args(["-c", "kill -TERM \"$0\"", &self.child.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(status.success());
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}\n{}", self.said());
    }
}

impl Drop for Rebuilding {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The changelog has everything that a changelog can have, two transactions that are still open among it. Workers are
/// killed at random moments while they rebuild; the last one may finish, waits for the transactions, becomes ready with
/// exactly the requests of the model, and answers for each of them.
#[test]
fn a_worker_is_ready_when_its_requests_are_those_of_the_changelog() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    cluster.make_topics(&options(&cluster, "g", "unused"), PARTITIONS);
    let kills = number("TOOLGATE_KAFKA_RESTORE_KILLS", 6);
    let seed = number("TOOLGATE_SEED", std::process::id() as usize) as u64;
    let history = History::new(number("TOOLGATE_KAFKA_RESTORE", 50_000));
    println!("seed {seed}: {} requests, {kills} rebuilds killed", history.count);
    let held = history.write(&cluster);

    let home = tempfile::tempdir().expect("a folder");
    let mut random = Random(seed);
    let mut reached = Vec::new();
    for life in 0..kills {
        let worker = Rebuilding::start(&cluster, &home, life);
        let (partitions, longer) = (random.below(PARTITIONS as u64) as usize, random.below(400));
        reached.push(worker.kill_after(partitions, Duration::from_millis(longer)));
    }
    println!("killed after so many of {PARTITIONS} partitions: {reached:?}");

    let worker = Rebuilding::start(&cluster, &home, kills);
    wait_for_the_others(&worker);
    let started = worker.restored();
    held.end();
    until("it is ready", Duration::from_secs(60), || worker.is_ready());
    // What it says now it said before it was ready.
    assert_eq!(worker.restored(), history.live(), "ready with other requests than those of the changelog");
    assert!(!started.contains_key(&HELD), "it did not wait for the open transactions: {started:?}");

    compare(&cluster, &history);
    answer(&cluster, &history, worker);
}

/// The worker rebuilds all partitions but the one with the open transactions, and is not ready for a good while after.
fn wait_for_the_others(worker: &Rebuilding) {
    let mut rounds_after = 0;
    until("the other partitions are restored", Duration::from_secs(300), || {
        worker.must_not_be_ready("transactions are open in the changelog");
        let restored = worker.restored();
        rounds_after += usize::from((0..PARTITIONS).all(|one| one == HELD || restored.contains_key(&one)));
        rounds_after > 50
    });
}

/// Restores once more, in this process, and compares every record with the model.
fn compare(cluster: &Cluster, history: &History) {
    let mine = options(cluster, "model", "model");
    let mut topics = mine.topics.clone();
    topics[toolgate::log::Topic::Bindings.index()] = history::CHANGELOG.to_owned();
    let mut log = KafkaLog::connect(KafkaOptions { topics, ..mine }).expect("the log connects");
    let mut states: BTreeMap<Partition, PartitionState> = BTreeMap::new();
    until("all partitions are restored", Duration::from_secs(300), || {
        if let Event::Assigned(partitions) = log.poll(1, Duration::from_millis(100)).expect("it polls") {
            for partition in partitions {
                let mut state = PartitionState::new(partition, 1);
                log.restore(partition, &mut |record| state.restore(&record).map_err(|why| panic!("{why}")))
                    .expect("it restores");
                states.insert(partition, state);
            }
        }
        states.len() == PARTITIONS as usize
    });
    let of = |id: &str| -> Option<Binding> { states[&partition_of(id.as_bytes(), PARTITIONS)].binding(id) };
    let differs = |number: &usize| of(&history::id(*number)) != history.model(*number);
    let wrong: Vec<usize> = (0..history.count).filter(differs).take(5).collect();
    assert!(wrong.is_empty(), "such as {:?}", wrong.iter().map(|n| (n, history::story(*n))).collect::<Vec<_>>());
    let live: usize = history.live().values().sum();
    assert_eq!(states.values().map(PartitionState::len).sum::<usize>(), live, "and nothing besides");
}

/// Answers requests, or a sample of very many: what lives is accepted once, what does not is unknown.
fn answer(cluster: &Cluster, history: &History, worker: Rebuilding) {
    let answered: Vec<usize> = (0..history.count).step_by(history.count.div_ceil(ANSWERS_MAX)).collect();
    let producer = cluster.producer();
    answered.iter().for_each(|number| history.respond(&producer, *number));
    producer.flush(Duration::from_secs(60)).expect("the responses are acknowledged");
    let (counter, mut seen) = (cluster.counter("tool.audit"), 0);
    until("all are decided", Duration::from_secs(300), || {
        seen += counter.count_more();
        seen >= answered.len()
    });
    worker.drain();

    let mut results: BTreeMap<String, usize> = BTreeMap::new();
    for (key, value) in committed(cluster, "tool.results") {
        assert!(String::from_utf8_lossy(&value).contains("\"success\""), "{}", String::from_utf8_lossy(&value));
        *results.entry(key).or_default() += 1;
    }
    let reasons: Vec<(String, String)> = committed(cluster, "tool.audit")
        .into_iter()
        .map(|(key, value)| (key, v1::AuditRecord::decode(value.as_slice()).expect("an audit record").reason))
        .collect();
    assert_eq!(reasons.len(), answered.len(), "one decision for each answer");
    let reasons: BTreeMap<String, String> = reasons.into_iter().collect();
    for number in answered {
        let (id, is_live) = (history::id(number), history.model(number).is_some());
        let (got, reason) = (results.remove(&id).unwrap_or(0), reasons.get(&id).map(String::as_str));
        let wanted = if is_live { (1, Some("")) } else { (0, Some("UNKNOWN_REQUEST")) };
        assert_eq!((got, reason), wanted, "{id} {:?}", history::story(number));
    }
    assert!(results.is_empty(), "results that nobody asked for: {results:?}");
}

/// All committed records of a topic.
fn committed(cluster: &Cluster, topic: &str) -> Vec<(String, Vec<u8>)> {
    let mut config = cluster.client();
    config.set("group.id", "reader").set("isolation.level", "read_committed").set("enable.auto.commit", "false");
    let consumer: BaseConsumer = config.set("enable.partition.eof", "true").create().expect("a consumer");
    let mut list = TopicPartitionList::new();
    (0..PARTITIONS).for_each(|one| list.add_partition_offset(topic, one, Offset::Beginning).expect("an offset"));
    consumer.assign(&list).expect("an assignment");
    let (mut all, mut ends) = (Vec::new(), 0);
    until("the topic is read", Duration::from_secs(120), || {
        while ends < PARTITIONS {
            match consumer.poll(Duration::from_millis(100)) {
                None => return false,
                Some(Ok(message)) => {
                    let key = String::from_utf8_lossy(message.key().unwrap_or_default()).into_owned();
                    all.push((key, message.payload().unwrap_or_default().to_vec()));
                }
                Some(Err(rdkafka::error::KafkaError::PartitionEOF(_))) => ends += 1,
                Some(Err(error)) => panic!("{error}"),
            }
        }
        true
    });
    all
}
