//! Time on a processor, of this process and its threads, on Linux alone. Clocks are exact to the moment; the files under
//! `/proc/self/task` lag behind by a tick, which does not matter for threads that are looked at seconds apart.

use std::fs;
use std::time::Duration;

use rustix::time::ClockId;

/// What this thread has had so far.
pub fn thread() -> Duration {
    clock(ClockId::ThreadCPUTime)
}

/// Time of all threads of this process, those that have ended included; and of the client library's, which
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
        Used { all: clock(ClockId::ProcessCPUTime), library: library.sum() }
    }

    pub fn since(self) -> Used {
        let now = Used::now();
        Used { all: now.all.saturating_sub(self.all), library: now.library.saturating_sub(self.library) }
    }
}

fn clock(which: ClockId) -> Duration {
    let time = rustix::time::clock_gettime(which);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
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
