//! A real broker for each test that asks for one, and clients to look at it with.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use toolgate::log::kafka::KafkaOptions;
use toolgate::log::kafka::admin::wait_for;
use toolgate::log::{Cleanup, Topic};

/// Whether brokers can be had here. Under CI they must; elsewhere their absence is said loudly, and the tests that
/// need them pass without having run.
pub fn brokers_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        let output = script(&["libs"]);
        if output.status.success() {
            return true;
        }
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(std::env::var("CI").as_deref() != Ok("true"), "under CI a missing broker is a failure:\n{why}");
        // Past the capture of the test harness, which hides what a passing test says.
        let text = format!("\n*** THE KAFKA TESTS DID NOT RUN: no broker can be started here ***\n{why}\n");
        let _ = std::fs::write("/dev/stderr", text);
        false
    })
}

fn script(args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    Command::new(root.join("scripts/kafka.sh")).args(args).current_dir(root).output().expect("scripts/kafka.sh runs")
}

/// A running cluster; it ends with this value, or with the process.
#[derive(Debug)]
pub struct Cluster {
    dir: PathBuf,
    _home: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// One cluster at a time: the tests measure time-outs, and a broker wants a core of its own.
static ALONE: Mutex<()> = Mutex::new(());

impl Cluster {
    /// `None` where no broker can be had; the test then returns.
    pub fn start(options: &[&str]) -> Option<Cluster> {
        if !brokers_available() {
            return None;
        }
        let home = tempfile::tempdir().expect("a temporary folder");
        let dir = home.path().join("kafka");
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = Cluster { dir, _home: home, _alone };
        let parent = std::process::id().to_string();
        let output = cluster.script(&[&["up", "--parent", &parent], options].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        cluster.wait_until_it_answers();
        Some(cluster)
    }

    fn script(&self, args: &[&str]) -> Output {
        script(&[args, &["--dir", &self.dir.to_string_lossy()]].concat())
    }

    /// One node: `stop`, `kill` or `start`.
    pub fn node(&self, what: &str, node: u32) {
        let output = self.script(&[what, &node.to_string()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// All nodes at the same time: one alone has no quorum to start in.
    pub fn start_all(&self) {
        std::thread::scope(|scope| {
            for node in 1..=self.servers().split(',').count() as u32 {
                scope.spawn(move || self.node("start", node));
            }
        });
        self.wait_until_it_answers();
    }

    pub fn is_in_sync(&self) -> bool {
        let admin: AdminClient<DefaultClientContext> = self.client().create().expect("a client");
        let metadata = admin.inner().fetch_metadata(None, Duration::from_secs(5));
        metadata.is_ok_and(|metadata| {
            let mut partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
            partitions.all(|partition| partition.isr().len() == partition.replicas().len())
        })
    }

    pub fn servers(&self) -> String {
        self.file("bootstrap")
    }

    /// `bootstrap.sasl`, `bootstrap.mtls`.
    pub fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.join(name)).expect("the cluster wrote it").trim().to_owned()
    }

    #[expect(dead_code, reason = "for the tests of security")]
    pub fn tls(&self, name: &str) -> PathBuf {
        self.dir.join("tls").join(name)
    }

    pub fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.servers());
        config
    }

    pub fn wait_until_it_answers(&self) {
        let nodes = self.servers().split(',').count();
        let admin: AdminClient<DefaultClientContext> = self.client().create().expect("a client");
        until("all brokers are known", Duration::from_secs(60), || {
            let metadata = admin.inner().fetch_metadata(None, Duration::from_secs(2));
            metadata.is_ok_and(|metadata| metadata.brokers().len() == nodes)
        });
    }

    /// Makes the seven topics of a group.
    pub fn make_topics(&self, options: &KafkaOptions, partitions: i32) {
        let nodes = self.servers().split(',').count() as i32;
        let admin: AdminClient<DefaultClientContext> = self.client().create().expect("a client");
        let topics: Vec<NewTopic<'_>> = Topic::ALL
            .iter()
            .map(|topic| {
                let policy = if topic.cleanup() == Cleanup::Compact { "compact" } else { "delete" };
                NewTopic::new(options.name(*topic), partitions, TopicReplication::Fixed(nodes))
                    .set("cleanup.policy", policy)
                    .set("max.message.bytes", "9000000")
            })
            .collect();
        let made = wait_for(admin.create_topics(&topics, &AdminOptions::new()));
        for made in made.expect("topics can be made") {
            made.expect("the topic is new");
        }
    }

    pub fn make_topic(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) {
        let admin: AdminClient<DefaultClientContext> = self.client().create().expect("a client");
        let empty = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
        let topic = settings.iter().fold(empty, |topic, (name, value)| topic.set(name, value));
        let made = wait_for(admin.create_topics([&topic], &AdminOptions::new())).expect("topics can be made");
        assert!(made.iter().all(Result::is_ok), "{made:?}");
    }

    /// Where the jars are.
    pub fn libs(&self) -> String {
        text(&self.script(&["libs"]).stdout).trim().to_owned()
    }

    /// Counts the committed records of a topic from its start.
    pub fn counter(&self, topic: &str) -> Counter {
        let mut config = self.client();
        config.set("group.id", "counter").set("isolation.level", "read_committed").set("enable.auto.commit", "false");
        let consumer: BaseConsumer = config.create().expect("a consumer");
        let metadata = consumer.fetch_metadata(Some(topic), Duration::from_secs(20)).expect("metadata");
        let mut list = TopicPartitionList::new();
        for partition in metadata.topics()[0].partitions() {
            list.add_partition_offset(topic, partition.id(), Offset::Beginning).expect("an offset");
        }
        consumer.assign(&list).expect("an assignment");
        Counter(consumer)
    }

    pub fn producer(&self) -> BaseProducer {
        self.client().set("linger.ms", "1").create().expect("a producer")
    }
}

pub struct Counter(BaseConsumer);

impl Counter {
    /// How many records have come since the last call.
    pub fn count_more(&self) -> usize {
        self.values().len()
    }

    /// The values of the records that have come since the last call.
    pub fn values(&self) -> Vec<Vec<u8>> {
        let value = |message: &BorrowedMessage<'_>| message.payload().unwrap_or_default().to_vec();
        std::iter::from_fn(|| self.0.poll(Duration::from_millis(20))).flatten().map(|message| value(&message)).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.script(&["down"]);
    }
}

/// Writes one record as any producer may.
pub fn send(producer: &BaseProducer, topic: &str, partition: i32, key: &str, value: &[u8]) {
    producer.send(BaseRecord::to(topic).partition(partition).key(key).payload(value)).expect("room in the queue");
    producer.flush(Duration::from_secs(20)).expect("the record is written");
}

/// Waits for something to become true.
#[allow(clippy::disallowed_methods, reason = "a test waits for a real broker")]
pub fn until(what: &str, patience: Duration, mut is_true: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < patience, "waited {patience:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
