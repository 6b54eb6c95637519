//! Exactly once, with workers that are killed at random moments. `TOOLGATE_KAFKA_KILLS`,
//! `TOOLGATE_KAFKA_REQUESTS` and `TOOLGATE_KAFKA_BATCH` make it longer.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::load;
use crate::log::options;
use crate::support::{Cluster, until};

const PARTITIONS: i32 = 6;

pub(crate) fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Splitmix64: random enough for moments, and repeatable from its seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// Workers as processes, one configuration each.
pub(crate) struct Workers {
    home: tempfile::TempDir,
    servers: String,
    pub(crate) running: Vec<Child>,
    /// Where each serves its metrics.
    ports: Vec<u16>,
    /// Records to a transaction.
    batch: usize,
    /// Of workers that are started from here on.
    pub(crate) drain_timeout: &'static str,
    extra: String,
}

impl Workers {
    pub(crate) fn start(cluster: &Cluster, count: usize, extra: &str) -> Workers {
        Workers::start_at(&cluster.servers(), count, extra)
    }

    pub(crate) fn start_at(servers: &str, count: usize, extra: &str) -> Workers {
        let home = tempfile::tempdir().expect("a folder");
        let (running, ports) = (Vec::new(), Vec::new());
        let batch = number("TOOLGATE_KAFKA_BATCH", 100);
        let (servers, extra) = (servers.to_owned(), extra.to_owned());
        let mut workers = Workers { home, servers, running, ports, batch, drain_timeout: "20s", extra };
        for _ in 0..count {
            workers.add();
        }
        workers
    }

    /// One worker more.
    pub(crate) fn add(&mut self) {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        self.ports.push(free.port());
        self.running.push(self.spawn(self.running.len()));
    }

    /// How many partitions each worker says that it owns; `None` for one that does not say.
    pub(crate) fn shares(&self) -> Vec<Option<u32>> {
        self.ports.iter().map(|port| metric(*port, "toolgate_partitions ")).collect()
    }

    fn spawn(&self, index: usize) -> Child {
        let file = self.home.path().join(format!("w{index}.toml"));
        let config = format!(
            "[worker]\ngroup = \"g\"\ninstance = \"w{index}\"\nbatch_records_max = {}\ndrain_timeout = \"{}\"\n[log]\nkind = \"kafka\"\n[telemetry]\nlog_level = \"warn\"\nmetrics_listen = \"127.0.0.1:{}\"\n[kafka]\nbootstrap_servers = \"{}\"\nsession_timeout = \"3s\"\nreplication_factor = 1\nmin_insync_replicas = 1\n{}",
            self.batch, self.drain_timeout, self.ports[index], self.servers, self.extra
        );
        std::fs::write(&file, config).expect("a configuration");
        let log =
            std::fs::File::options().create(true).append(true).open(self.home.path().join(format!("w{index}.log")));
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        // What makes a test longer is not a setting of the program.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLGATE_")) {
            command.env_remove(name);
        }
        command
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["--config", &file.to_string_lossy(), "run"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("a log file"))
            .spawn()
            .expect("toolgate starts")
    }

    /// SIGKILL, no farewell.
    pub(crate) fn kill(&mut self, index: usize) {
        self.running[index].kill().expect("it can be killed");
        self.running[index].wait().expect("it is gone");
    }

    pub(crate) fn restart(&mut self, index: usize) {
        self.running[index] = self.spawn(index);
    }

    /// Sends a signal by name to one worker.
    pub(crate) fn signal(&self, index: usize, signal: &str) {
        let pid = self.running[index].id().to_string();
        let status =
            Command::new("bash").args(["-c", "kill -s \"$0\" \"$1\"", signal, &pid]).status().expect("kill runs");
        assert!(status.success(), "{signal} {pid}");
    }

    pub(crate) fn logs(&self) -> String {
        let read = |index| std::fs::read_to_string(self.home.path().join(format!("w{index}.log"))).unwrap_or_default();
        (0..self.running.len()).map(|index| format!("--- w{index}\n{}", tail(&read(index)))).collect()
    }

    /// Drains every worker, as a deployment does.
    pub(crate) fn drain(&mut self) {
        (0..self.running.len()).for_each(|index| self.drain_one(index));
    }

    /// SIGTERM, and what it ends with.
    pub(crate) fn stop(&mut self, index: usize) -> ExitStatus {
        self.signal(index, "TERM");
        self.running[index].wait().expect("it ends")
    }

    pub(crate) fn drain_one(&mut self, index: usize) {
        if self.running[index].try_wait().expect("its state").is_none() {
            let status = self.stop(index);
            assert!(status.success(), "w{index} {status}\n{}", self.logs());
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The value of a gauge, asked of a running worker.
fn metric(port: u16, name: &str) -> Option<u32> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n") + "\n"
}

/// Waits until that many audit records are committed, and says how far it got if they never are.
pub(crate) fn wait_for_audits(cluster: &Cluster, workers: &Workers, wanted: usize) {
    let seen = std::cell::Cell::new(0);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let counter = cluster.counter("tool.audit");
        until("all is decided", Duration::from_secs(120), || {
            seen.set(seen.get() + counter.count_more());
            seen.get() >= wanted
        });
    }));
    assert!(result.is_ok(), "{} of {wanted} audit records\n{}", seen.get(), workers.logs());
}

#[test]
fn nothing_is_lost_or_done_twice_when_workers_are_killed() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    cluster.make_topics(&options(&cluster, "g", "unused"), PARTITIONS);
    let (kills, count) = (number("TOOLGATE_KAFKA_KILLS", 20), number("TOOLGATE_KAFKA_REQUESTS", 4000));
    let seed = number("TOOLGATE_SEED", std::process::id() as usize) as u64;
    println!("seed {seed}: {count} requests, {kills} kills");
    let mut random = Random(seed);
    let mut workers = Workers::start(&cluster, 3, "");
    let producer = cluster.producer();
    let (mut offered, share) = (0, count.div_ceil(kills));
    for _ in 0..kills {
        let until_then = (offered + share).min(count);
        load::offer(&producer, PARTITIONS, offered..until_then, 600_000);
        offered = until_then;
        std::thread::sleep(Duration::from_millis(50 + random.below(900)));
        let victim = random.below(3) as usize;
        workers.kill(victim);
        workers.restart(victim);
    }
    wait_for_audits(&cluster, &workers, load::audits(count));
    workers.drain();
    load::account(&load::read_committed(&cluster), count);
}
