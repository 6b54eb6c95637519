//! A broker of our own, or one that was named, on this machine in either case.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use toolgate::log::Topic;
use toolgate::log::kafka::admin::wait_for;

use crate::load::{self, PARTITIONS};
use crate::loopback::{Loopback, is_loopback_host};

/// Names a broker instead of starting one; it must be on loopback.
pub const VARIABLE: &str = "TOOLGATE_BENCH_BROKER";

/// A broker; one that was started ends with this value, or with the process.
pub struct Broker {
    pub servers: Loopback,
    dir: Option<PathBuf>,
}

impl Broker {
    /// # Errors
    /// The address is not loopback, or no broker can be started.
    pub fn find() -> Result<Broker, String> {
        let broker = match std::env::var(VARIABLE) {
            // Set but empty is a mistake, and is refused like any other address that is not loopback.
            Ok(servers) => {
                Broker { servers: Loopback::parse(&servers).map_err(|why| format!("{VARIABLE}: {why}"))?, dir: None }
            }
            Err(std::env::VarError::NotPresent) => Broker::start()?,
            Err(error) => return Err(format!("{VARIABLE}: {error}")),
        };
        broker.check()?;
        Ok(broker)
    }

    fn start() -> Result<Broker, String> {
        let dir = std::env::temp_dir().join(format!("toolgate-bench-{}", std::process::id()));
        let output = script(&["up", "--parent", &std::process::id().to_string()], &dir)?;
        Ok(Broker { servers: Loopback::parse(output.trim())?, dir: Some(dir) })
    }

    /// Waits until it answers, and looks where it sends its clients.
    fn check(&self) -> Result<(), String> {
        let admin = self.admin();
        let started = Instant::now();
        loop {
            match admin.inner().fetch_metadata(None, Duration::from_secs(2)) {
                Ok(metadata) => {
                    let mut hosts = metadata.brokers().iter().map(|broker| broker.host());
                    return match hosts.find(|host| !is_loopback_host(host)) {
                        None => Ok(()),
                        Some(host) => Err(format!("the broker sends its clients to `{host}`, which is not loopback")),
                    };
                }
                Err(error) if started.elapsed() > Duration::from_secs(30) => {
                    return Err(format!("no broker answers at {}: {error}", self.servers.as_str()));
                }
                Err(_) => {}
            }
        }
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        load::client(&self.servers).create().expect("a client")
    }

    /// Makes the topics of a group; those that exist stay.
    pub fn make_topics(&self, inputs: &str, group: &str) {
        let names = load::topics(inputs, group);
        let topics: Vec<NewTopic<'_>> = Topic::ALL
            .iter()
            .map(|topic| NewTopic::new(&names[topic.index()], PARTITIONS, TopicReplication::Fixed(1)))
            .collect();
        let made = wait_for(self.admin().create_topics(&topics, &AdminOptions::new()));
        for made in made.expect("topics can be made") {
            if let Err((name, code)) = made {
                assert_eq!(code.to_string(), "TopicAlreadyExists (Broker: Topic already exists)", "{name}");
            }
        }
    }

    /// Removes the topics that a group wrote, so that the disk does not fill.
    pub fn remove_outputs(&self, group: &str) {
        let names = load::topics("unused", group);
        let outputs: Vec<&str> = Topic::ALL
            .iter()
            .filter(|topic| !Topic::INPUTS.contains(topic))
            .map(|topic| names[topic.index()].as_str())
            .collect();
        let _removed = wait_for(self.admin().delete_topics(&outputs, &AdminOptions::new()));
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(dir) = &self.dir {
            let _ = script(&["down"], dir);
        }
    }
}

fn script(arguments: &[&str], dir: &Path) -> Result<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(root.join("scripts/kafka.sh"))
        .args(arguments)
        .arg("--dir")
        .arg(dir)
        .current_dir(root)
        .output()
        .map_err(|error| format!("scripts/kafka.sh: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
