//! The worker on a real Apache Kafka, measured beside what it is compared with, in one run. `make bench-kafka` runs it;
//! docs/performance.md says what the figures mean. Nothing here asserts a goal: people read it.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    missing_debug_implementations,
    reason = "a program for people who measure"
)]

mod at_least_once;
mod broker;
mod cpu;
mod job;
mod latency;
mod load;
mod loopback;
mod raw;
mod restore;
mod timed;
mod worker;

use std::time::Duration;

use broker::Broker;
use job::{Figures, Job};
use latency::Client;
use timed::STAGES;

/// Between two commits, where exactly once is compared with at least once.
const INTERVAL: Duration = Duration::from_millis(100);
const LOAD: f64 = 0.7;

fn main() -> std::process::ExitCode {
    // Cargo passes `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let done = match Job::from_arguments(&arguments) {
        None => measure(),
        Some((role, job)) => job.and_then(|job| play(&role, &job)),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench-kafka: {why}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// A child process does one thing.
fn play(role: &str, job: &Job) -> Result<(), String> {
    match role {
        "drain" => worker::drain(job),
        "serve" => worker::serve(job),
        "raw" => raw::pass_through(job),
        "restore" => restore::restore(job),
        "hold" => restore::hold(job),
        other => return Err(format!("no such role: {other}")),
    }
    Ok(())
}

/// A number from the environment.
fn knob(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn measure() -> Result<(), String> {
    let broker = Broker::find()?;
    let parts = std::env::var("TOOLGATE_BENCH_PARTS").unwrap_or_default();
    let wanted = |part: &str| parts.is_empty() || parts.split(',').any(|one| one == part);
    let rounds = knob("TOOLGATE_BENCH_ROUNDS", 5).max(1);
    println!("{:<62} {:>10}  goal   (smallest, largest of {rounds} rounds)", "median of rounds", "");
    if wanted("throughput") {
        throughput(&broker, rounds);
    }
    if wanted("latency") {
        latency(&broker, rounds);
    }
    if wanted("restore") {
        restoring(&broker, rounds);
    }
    if wanted("memory") {
        for count in [1_000_000, 4_000_000] {
            let bytes = Job::new(&broker.servers, "memory", "memory", count).run("hold")["bytes"];
            row(&format!("resident bytes per outstanding request at {count}"), vec![bytes], 0, "<= 256");
        }
    }
    Ok(())
}

/// Prints the median of some rounds.
fn row(what: &str, mut of: Vec<f64>, digits: usize, goal: &str) {
    of.sort_by(f64::total_cmp);
    let (least, median, most) = (of[0], of[of.len() / 2], of[of.len() - 1]);
    println!("{what:<62} {median:>10.digits$}  {goal:<6} ({least:.digits$}, {most:.digits$})");
}

/// One figure of every round.
fn column(rounds: &[Figures], name: &str) -> Vec<f64> {
    rounds.iter().map(|figures| figures[name]).collect()
}

fn ratios(rounds: &[Figures], others: &[Figures], name: &str) -> Vec<f64> {
    column(rounds, name).into_iter().zip(column(others, name)).map(|(one, other)| one / other).collect()
}

/// Drains the same records in turns: as the worker does, with a transaction every 100 ms, at least once, and not
/// judging at all.
fn throughput(broker: &Broker, rounds: usize) {
    let count = knob("TOOLGATE_BENCH_RESPONSES", 100_000);
    broker.make_topics("drained", "unused");
    load::fill(&broker.servers, "drained", count);
    let turn = |role: &str, group: &str, batch: usize, interval: Duration| {
        broker.make_topics("drained", group);
        let figures = Job { batch, interval, ..Job::new(&broker.servers, group, "drained", count) }.run(role);
        broker.remove_outputs(group);
        figures
    };
    // The first rounds are the broker's to get warm, and say how many records a transaction of 100 ms has.
    let mut batch = 500;
    for round in 0..2 {
        let per_second = turn("drain", &format!("warm{round}"), batch, Duration::ZERO)["per_second"];
        batch = ((2.0 * per_second * INTERVAL.as_secs_f64()) as usize).clamp(500, 10_000);
    }
    let (mut raw, mut exactly, mut larger) = (Vec::new(), Vec::new(), Vec::new());
    let (mut slower, mut at_least) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        raw.push(turn("raw", &format!("raw{round}"), 0, Duration::ZERO));
        exactly.push(turn("drain", &format!("exactly{round}"), 500, Duration::ZERO));
        larger.push(turn("drain", &format!("larger{round}"), 2000, Duration::ZERO));
        slower.push(turn("drain", &format!("slower{round}"), batch, Duration::ZERO));
        at_least.push(turn("drain", &format!("least{round}"), batch, INTERVAL));
    }
    row("CPU us per accepted response of 1 KiB, exactly once", column(&exactly, "cpu_us"), 2, "<= 11");
    for stage in STAGES {
        row(&format!("  worker's thread, to: {stage}"), column(&exactly, &format!("{stage}_us")), 2, "");
    }
    row("  librdkafka's threads", column(&exactly, "library_us"), 2, "");
    row("  other threads", column(&exactly, "others_us"), 2, "");
    for stage in STAGES {
        row(&format!("  by the clock, to: {stage}"), column(&exactly, &format!("{stage}_clock_us")), 2, "");
    }
    row("CPU us per response, raw consume and produce", column(&raw, "cpu_us"), 2, "");
    row("responses a second, exactly once, batches of 500", column(&exactly, "per_second"), 0, "");
    row("  ms per transaction", column(&exactly, "transaction_ms"), 1, "");
    row("  rewinds", column(&exactly, "rewinds"), 0, "");
    row("  questions for the end of the requests", column(&exactly, "asks"), 0, "");
    row("responses a second, raw consume and produce", column(&raw, "per_second"), 0, "");
    row("exactly once / raw", ratios(&exactly, &raw, "per_second"), 3, ">= 0.19");
    row("responses a second, exactly once, batches of 2000", column(&larger, "per_second"), 0, "");
    row("  ms per transaction", column(&larger, "transaction_ms"), 1, "");
    row("  CPU us per accepted response", column(&larger, "cpu_us"), 2, "");
    row("  exactly once / raw", ratios(&larger, &raw, "per_second"), 3, "");
    row(&format!("responses a second, exactly once, batches of {batch}"), column(&slower, "per_second"), 0, "");
    row("  ms per transaction", column(&slower, "transaction_ms"), 1, "");
    row("responses a second, at least once, commits every 100 ms", column(&at_least, "per_second"), 0, "");
    row("exactly once / at least once", ratios(&slower, &at_least, "per_second"), 3, ">= 0.8");
    row("CPU us per accepted response of 1 KiB, at least once", column(&at_least, "cpu_us"), 2, "");
}

/// Ends a process that serves until it is killed.
struct Serving(std::process::Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn latency(broker: &Broker, rounds: usize) {
    let measured = Duration::from_secs(knob("TOOLGATE_BENCH_SECONDS", 8) as u64);
    broker.make_topics("live", "live");
    let job = Job::new(&broker.servers, "live", "live", 0);
    let _worker = Serving(job.spawn("serve"));
    let mut client = Client::new(&job);
    let burst = client.capacity(measured);
    row("responses a second, 4000 always under way, live client", vec![burst], 0, "");
    let paced = paced(&mut client, burst);
    row("responses a second that are kept up with, sent evenly", vec![paced], 0, "");
    let seen: Vec<_> = (0..rounds).map(|_| client.latency(paced * LOAD, measured)).collect();
    row("append to visible at 70 % of that, p50 ms", seen.iter().map(|one| one.p50).collect(), 1, "");
    row("append to visible at 70 % of that, p99 ms", seen.iter().map(|one| one.p99).collect(), 1, "<= 130");
    row("append to visible at 70 % of that, p99.9 ms", seen.iter().map(|one| one.p999).collect(), 1, "");
}

/// The highest rate of a ladder that is kept up with where records come evenly: on few cores that is less than where they
/// come in bursts, because client and broker work for each small request.
fn paced(client: &mut Client, burst: f64) -> f64 {
    const PROBE: Duration = Duration::from_secs(3);
    const KEPT_UP_MS: f64 = 300.0;
    let mut rate = burst;
    while client.latency(rate, PROBE).p50 > KEPT_UP_MS && rate > 100.0 {
        rate *= 0.8;
    }
    rate
}

fn restoring(broker: &Broker, rounds: usize) {
    let count = knob("TOOLGATE_BENCH_BINDINGS", 1_000_000);
    broker.make_topics("restored", "restored");
    load::fill_changelog(&broker.servers, "restored.bindings", count);
    let job = Job::new(&broker.servers, "restored", "restored", count);
    let figures: Vec<Figures> = (0..rounds).map(|_| job.run("restore")).collect();
    row(&format!("bindings restored a second, of {count}"), column(&figures, "per_second"), 0, ">= 500k");
    row("resident bytes per request after it, the client's included", column(&figures, "bytes"), 0, "");
}
