//! What a child process is asked to do, as its command line, and what it answers, as lines of `name=value`.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::loopback::Loopback;

/// One task of a child process.
#[derive(Clone, Debug)]
pub struct Job {
    pub servers: Loopback,
    pub group: String,
    /// The prefix of the topics that are read.
    pub inputs: String,
    pub count: usize,
    /// The most records of a batch.
    pub batch: usize,
    /// Between two commits of offsets, at least once; zero is exactly once.
    pub interval: Duration,
}

/// What a child measured.
pub type Figures = BTreeMap<String, f64>;

impl Job {
    pub fn new(servers: &Loopback, group: &str, inputs: &str, count: usize) -> Job {
        Job {
            servers: servers.clone(),
            group: group.to_owned(),
            inputs: inputs.to_owned(),
            count,
            batch: 500,
            interval: Duration::ZERO,
        }
    }

    /// Starts this program again with a role.
    pub fn spawn(&self, role: &str) -> Child {
        let program = std::env::current_exe().expect("a program knows itself");
        Command::new(program)
            .args([role, self.servers.as_str(), &self.group, &self.inputs])
            .args([self.count.to_string(), self.batch.to_string(), self.interval.as_millis().to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts again")
    }

    /// Has it done, and waits for the figures.
    pub fn run(&self, role: &str) -> Figures {
        let output = self.spawn(role).wait_with_output().expect("it ends");
        assert!(output.status.success(), "{role}: {}", output.status);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let figure = |line: &str| {
            let (name, value) = line.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        said.lines().filter_map(figure).collect()
    }

    /// The job on this process's command line, with its role.
    pub fn from_arguments(arguments: &[String]) -> Option<(String, Result<Job, String>)> {
        let [role, servers, group, inputs, count, batch, interval] = arguments else { return None };
        let number = |text: &str| text.parse::<usize>().map_err(|error| format!("{text}: {error}"));
        let read = || {
            Ok(Job {
                servers: Loopback::parse(servers)?,
                group: group.clone(),
                inputs: inputs.clone(),
                count: number(count)?,
                batch: number(batch)?,
                interval: Duration::from_millis(number(interval)? as u64),
            })
        };
        Some((role.clone(), read()))
    }
}
