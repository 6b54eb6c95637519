//! Time on a processor, of this process and its threads, from `/proc`: nanoseconds, Linux alone.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// What this thread has had so far.
pub fn thread() -> Duration {
    on_cpu("/proc/thread-self/schedstat").unwrap_or_default()
}

/// Every thread of this process: its name and what it has had so far.
pub fn threads() -> BTreeMap<u32, (String, Duration)> {
    let entries = fs::read_dir("/proc/self/task").expect("a Linux with /proc");
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let read = |id: u32| {
        let name = fs::read_to_string(format!("/proc/self/task/{id}/comm")).ok()?;
        Some((id, (name.trim().to_owned(), on_cpu(&format!("/proc/self/task/{id}/schedstat"))?)))
    };
    ids.filter_map(read).collect()
}

/// What the threads have had since `before`: those of librdkafka, and all of ours.
pub fn since(before: &BTreeMap<u32, (String, Duration)>) -> (Duration, Duration) {
    let (mut library, mut ours) = (Duration::ZERO, Duration::ZERO);
    for (id, (name, now)) in threads() {
        let had = now.saturating_sub(before.get(&id).map_or(Duration::ZERO, |(_, then)| *then));
        *(if name.starts_with("rdk:") { &mut library } else { &mut ours }) += had;
    }
    (library, ours)
}

fn on_cpu(path: &str) -> Option<Duration> {
    let line = fs::read_to_string(path).ok()?;
    Some(Duration::from_nanos(line.split_whitespace().next()?.parse().ok()?))
}

/// Bytes of this process that are in memory.
pub fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").expect("a Linux with /proc");
    // Linux on the machines that this is built for has pages of 4 KiB.
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("the form of statm") * 4096
}
