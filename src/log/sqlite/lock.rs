//! One worker at a time: an advisory lock beside the file, which the system releases however the process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::log::error::LogError;

/// A process id has at most 10 digits; whatever else the file holds is not read.
const PID_BYTES_MAX: u64 = 16;

/// Held for as long as the worker lives. The file itself stays: removing it would race with the next worker.
#[derive(Debug)]
pub(super) struct WorkerLock {
    _file: File,
}

impl WorkerLock {
    /// Takes the lock of an existing log. The file is `<log>.lock`, beside what `path` resolves to, so that
    /// two names of one log share it.
    pub(super) fn take(path: &Path) -> Result<WorkerLock, LogError> {
        let failed = |what| move |source| LogError::Io { path: path.to_owned(), what, source };
        let resolved = path.canonicalize().map_err(failed("resolving the path"))?;
        let lock = lock_path(&resolved);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(lock)
            .map_err(failed("opening its .lock file"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LogError::Locked { path: path.to_owned(), pid: read_pid(&mut file) });
            }
            Err(TryLockError::Error(source)) => return Err(failed("locking its .lock file")(source)),
        }
        write_pid(&mut file).map_err(failed("writing its .lock file"))?;
        Ok(WorkerLock { _file: file })
    }
}

fn lock_path(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// The id the owner wrote; `None` if it has not come to that yet.
fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_taker_learns_the_process_and_the_lock_ends_with_its_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("a.log");
        File::create(&log).expect("a log");
        let held = WorkerLock::take(&log).expect("free");
        let refused = WorkerLock::take(&log).expect_err("held");
        assert!(matches!(refused, LogError::Locked { pid: Some(pid), .. } if pid == std::process::id()));
        drop(held);
        WorkerLock::take(&log).expect("free again");
    }

    #[cfg(unix)]
    #[test]
    fn a_second_name_of_the_log_is_the_same_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let (log, alias) = (folder.path().join("a.log"), folder.path().join("b.log"));
        File::create(&log).expect("a log");
        std::os::unix::fs::symlink(&log, &alias).expect("a link");
        let _held = WorkerLock::take(&log).expect("free");
        assert!(matches!(WorkerLock::take(&alias), Err(LogError::Locked { .. })));
    }
}
