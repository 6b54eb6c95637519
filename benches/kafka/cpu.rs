//! Time on a processor, of this process and its threads, from `/proc`: nanoseconds, Linux alone.

use std::fs;
use std::time::Duration;

/// What this thread has had so far.
pub fn thread() -> Duration {
    on_cpu("/proc/thread-self/schedstat").unwrap_or_default()
}

/// Time of all threads of this process, those that have ended included, to 10 ms; and of the client library's, which
/// live as long as their client.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub all: Duration,
    pub library: Duration,
}

impl Used {
    pub fn now() -> Used {
        let entries = fs::read_dir("/proc/self/task").expect("a Linux with /proc");
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let library = paths.filter_map(|path| {
            let name = fs::read_to_string(path.join("comm")).ok()?;
            if name.starts_with("rdk:") { on_cpu(path.join("schedstat").to_str()?) } else { None }
        });
        Used { all: of_the_process(), library: library.sum() }
    }

    pub fn since(self) -> Used {
        let now = Used::now();
        Used { all: now.all.saturating_sub(self.all), library: now.library.saturating_sub(self.library) }
    }
}

/// User and system time of `/proc/self/stat`, in hundredths of a second; the name before them may hold anything.
fn of_the_process() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("a Linux with /proc");
    let after_name = stat.rsplit_once(')').expect("the form of stat").1;
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(10 * ticks.sum::<u64>())
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
