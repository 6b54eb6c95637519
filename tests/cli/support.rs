//! Runs the program and looks at what it said.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

pub(crate) fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    command.current_dir(dir).stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TOOLGATE_")) {
        command.env_remove(name);
    }
    command
}

pub(crate) fn toolgate(dir: &Path, args: &[&str]) -> Run {
    finished(command(dir).args(args).output().unwrap())
}

pub(crate) fn finished(output: Output) -> Run {
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Run {
    /// The program ended with this code and said all of these on standard error.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, said: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        for part in said {
            assert!(self.stderr.contains(part), "{part:?} is not in:\n{}", self.stderr);
        }
    }

    #[track_caller]
    pub(crate) fn works(&self) -> &str {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        &self.stdout
    }
}

pub(crate) fn schemas() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas")
}

pub(crate) fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// Waits until a condition holds, for at most half a minute.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    #[allow(clippy::disallowed_methods, reason = "a deadline for a test")]
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        #[allow(clippy::disallowed_methods, reason = "a deadline for a test")]
        let now = Instant::now();
        assert!(now < deadline, "{what}: not within 30 seconds");
        std::thread::sleep(Duration::from_millis(10));
    }
}
