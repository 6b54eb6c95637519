//! The program under a configuration that says who it is.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::support::{Cluster, text};

/// In every wrong password and token, and searched in everything that is printed.
pub(crate) const CANARY: &str = "canary7Wq2secret";

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
    pub(crate) took: Duration,
}

/// A folder with secret files for one cluster.
pub(crate) struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Home {
        let home = Home { dir: tempfile::tempdir().expect("a folder") };
        home.write("password", "worker-secret\n");
        home.write("wrong", CANARY);
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Replaces a file at once, as Kubernetes and every careful tool does.
    pub(crate) fn write(&self, name: &str, content: &str) {
        let fresh = self.path("fresh");
        fs::write(&fresh, content).expect("a file");
        fs::rename(fresh, self.path(name)).expect("it is replaced");
    }

    /// A configuration for the brokers in `file`, with more settings of `[kafka]`. `FILES` and `TLS` in them stand for the folder
    /// of the secrets and that of the certificates.
    pub(crate) fn configure(&self, cluster: &Cluster, file: &str, kafka: &str) -> PathBuf {
        let kafka = kafka
            .replace("FILES", &self.dir.path().to_string_lossy())
            .replace("TLS", &cluster.tls("").to_string_lossy());
        let config = format!(
            "[worker]\ngroup = \"g\"\ninstance = \"w0\"\n[log]\nkind = \"kafka\"\n[telemetry]\nlog_level = \"error\"\n[kafka]\nbootstrap_servers = \"{}\"\nsession_timeout = \"3s\"\nreplication_factor = 1\nmin_insync_replicas = 1\n{kafka}\n",
            cluster.file(file)
        );
        let path = self.path("toolgate.toml");
        fs::write(&path, config).expect("a configuration");
        path
    }
}

pub(crate) fn command(config: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).arg("--config").arg(config).args(args).stdin(Stdio::null());
    command
}

/// Runs a command to its end, at most so long.
#[allow(clippy::disallowed_methods, reason = "a test bounds a real process")]
pub(crate) fn run(config: &Path, args: &[&str], at_most: Duration) -> Said {
    let started = Instant::now();
    let mut child =
        command(config, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("toolgate starts");
    // Both are read while it runs: a pipe that is full would hold it up.
    let (output, errors) = (all_of(child.stdout.take()), all_of(child.stderr.take()));
    let mut is_late = false;
    while child.try_wait().expect("its state").is_none() {
        if started.elapsed() > at_most {
            is_late = true;
            child.kill().expect("it can be killed");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = started.elapsed();
    let code = child.wait().expect("its state").code();
    let said = Said { code, output: output.join().expect("text"), errors: errors.join().expect("text"), took };
    assert!(!is_late, "{args:?} did not end within {at_most:?}: {said:?}");
    said
}

fn all_of(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.expect("a pipe").read_to_end(&mut bytes).expect("it is read");
        text(&bytes)
    })
}

/// A worker that ends with this value.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(config: &Path) -> Running {
        let log = fs::File::create(config.with_extension("log")).expect("a log file");
        Running(command(config, &["run"]).stdout(Stdio::null()).stderr(log).spawn().expect("toolgate starts"))
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.0.try_wait().expect("its state").is_none()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A bearer token that the broker believes, for `worker`. The signature is made by OpenSSL's program.
pub(crate) fn token(cluster: &Cluster, home: &Home, good_for_s: i64) -> String {
    let now_s = toolgate::worker::clock::now().unix_millis() / 1000;
    let claims = format!(
        "{{\"sub\":\"worker\",\"aud\":\"kafka\",\"iat\":{now_s},\"exp\":{},\"jti\":\"{CANARY}\"}}",
        now_s + good_for_s
    );
    let head = URL_SAFE_NO_PAD.encode("{\"alg\":\"RS256\",\"kid\":\"test\"}");
    let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims));
    let input = home.path("signed");
    fs::write(&input, &signed).expect("a file");
    let output = Command::new("openssl")
        .args(["dgst", "-sha256", "-sign"])
        .arg(cluster.tls("token.key"))
        .arg(&input)
        .output()
        .expect("openssl runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(output.stdout))
}
