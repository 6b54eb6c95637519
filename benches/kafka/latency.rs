//! From append to visible, in open loop: responses are due at moments that do not depend on how the worker keeps up, and
//! each is measured from the moment at which it was due, sent late or not. So a stall counts for everything that would
//! have come in it (no coordinated omission).

use std::sync::Mutex;
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseProducer, DeliveryResult, Producer, ProducerContext};
use rdkafka::{Message, Offset, TopicPartitionList};
use toolgate::log::Topic;

use crate::job::Job;
use crate::load::{self, PARTITIONS};

/// Responses under way while the capacity is looked for.
const WINDOW: usize = 4000;
/// How long before its response a request is written: a dispatcher waits for the acknowledgement, and a tool takes time.
const LEAD: Duration = Duration::from_millis(300);
/// At the beginning of a round, not measured.
const WARM_UP: Duration = Duration::from_secs(2);
/// Between two looks of the client; also what a result may be seen late by.
const MOMENT: Duration = Duration::from_micros(500);
/// How long the client's producers collect what they send. They stand for many, whose requests one broker on a shared
/// machine could not take one by one; it counts as latency.
const LINGER_MS: &str = "5";
const PATIENCE: Duration = Duration::from_secs(30);

/// Which requests are acknowledged: a tool is called only then.
#[derive(Debug, Default)]
struct Acknowledged(Mutex<Vec<bool>>);

impl ClientContext for Acknowledged {}

impl ProducerContext for Acknowledged {
    type DeliveryOpaque = usize;

    fn delivery(&self, delivered: &DeliveryResult<'_>, number: usize) {
        assert!(delivered.is_ok(), "a request could not be written");
        let mut all = self.0.lock().expect("nobody panics in here");
        if all.len() <= number {
            all.resize(number + 1, false);
        }
        all[number] = true;
    }
}

impl Acknowledged {
    fn has(&self, number: usize) -> bool {
        self.0.lock().expect("nobody panics in here").get(number).copied().unwrap_or(false)
    }
}

/// A dispatcher, a connector and an agent at once, so that one clock tells the time.
pub struct Client {
    inputs: String,
    dispatcher: BaseProducer<Acknowledged>,
    connector: BaseProducer,
    consumer: BaseConsumer,
    /// Responses sent and results seen, of all that this client has ever sent.
    sent: usize,
    announced: usize,
    seen: usize,
}

/// What a round saw, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Percentiles {
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
}

impl Client {
    pub fn new(job: &Job) -> Client {
        let mut config = load::client(&job.servers);
        config.set("group.id", "agent").set("enable.auto.commit", "false").set("isolation.level", "read_committed");
        config.set("fetch.wait.max.ms", "100").set("fetch.queue.backoff.ms", "10");
        let consumer: BaseConsumer = config.create().expect("a consumer");
        let mut list = TopicPartitionList::new();
        let results = &load::topics(&job.inputs, &job.group)[Topic::Results.index()];
        for partition in 0..PARTITIONS {
            list.add_partition_offset(results, partition, Offset::Beginning).expect("an offset");
        }
        consumer.assign(&list).expect("an assignment");
        let mut config = load::producer_config(&job.servers);
        config.set("linger.ms", LINGER_MS);
        let dispatcher = config.create_with_context(Acknowledged::default()).expect("a producer");
        let connector = config.create().expect("a producer");
        Client { inputs: job.inputs.clone(), dispatcher, connector, consumer, sent: 0, announced: 0, seen: 0 }
    }

    fn announce_up_to(&mut self, number: usize) {
        while self.announced < number {
            load::announce(&self.dispatcher, &self.inputs, self.announced, self.announced);
            self.announced += 1;
        }
    }

    /// Responds as far as requests are acknowledged; the others are late.
    fn respond_up_to(&mut self, number: usize) {
        self.announce_up_to(number);
        self.dispatcher.poll(Duration::ZERO);
        while self.sent < number && self.dispatcher.context().has(self.sent) {
            load::respond(&self.connector, &self.inputs, self.sent);
            self.sent += 1;
        }
    }

    /// Takes what is visible and tells the number of each; where there is nothing, sleeps for a moment. To wait in a poll
    /// would take a whole core from the worker: the client library turns in circles for the last millisecond.
    fn see(&mut self, mut each: impl FnMut(usize)) {
        let before = self.seen;
        while let Some(message) = self.consumer.poll(Duration::ZERO) {
            let message = message.expect("results can be read");
            self.seen += 1;
            each(message.key().and_then(load::number).expect("an id of ours"));
        }
        self.connector.poll(Duration::ZERO);
        if self.seen == before {
            std::thread::sleep(MOMENT);
        }
    }

    /// Responses a second with this client running beside the worker: as many under way as the window allows.
    pub fn capacity(&mut self, measured: Duration) -> f64 {
        let began = Instant::now();
        let mut from = None;
        loop {
            self.announce_up_to(self.seen + 2 * WINDOW);
            self.respond_up_to(self.seen + WINDOW);
            self.see(|_| {});
            if began.elapsed() >= WARM_UP && self.seen > 0 {
                let (started, already) = *from.get_or_insert((Instant::now(), self.seen));
                if started.elapsed() >= measured {
                    let rate = (self.seen - already) as f64 / started.elapsed().as_secs_f64();
                    self.settle();
                    return rate;
                }
            }
            assert!(self.seen > 0 || began.elapsed() < PATIENCE, "the worker does nothing");
        }
    }

    /// Waits until all that was sent is seen.
    fn settle(&mut self) {
        let began = Instant::now();
        while self.seen < self.sent {
            self.see(|_| {});
            assert!(began.elapsed() < PATIENCE, "{} results are missing", self.sent - self.seen);
        }
    }

    /// Sends at a rate for so long, and tells how late results became visible.
    pub fn latency(&mut self, per_second: f64, measured: Duration) -> Percentiles {
        let first = self.sent;
        let count = ((WARM_UP + measured).as_secs_f64() * per_second) as usize;
        let start = Instant::now() + LEAD;
        let due = |number: usize| start + Duration::from_secs_f64((number - first) as f64 / per_second);
        let due_by = |moment: Instant| {
            let since = moment.saturating_duration_since(start).as_secs_f64();
            first + ((since * per_second) as usize).min(count)
        };
        let mut late: Vec<f64> = Vec::with_capacity(count);
        while self.seen < first + count {
            let now = Instant::now();
            self.announce_up_to(due_by(now + LEAD));
            self.respond_up_to(due_by(now));
            self.see(|number| {
                if due(number) >= start + WARM_UP {
                    late.push(Instant::now().saturating_duration_since(due(number)).as_secs_f64() * 1e3);
                }
            });
            assert!(now.saturating_duration_since(due(first + count)) < PATIENCE, "the worker has fallen behind");
        }
        late.sort_by(f64::total_cmp);
        let at = |share: f64| late[((late.len() as f64 * share) as usize).min(late.len() - 1)];
        Percentiles { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
    }
}
