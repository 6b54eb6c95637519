//! `/metrics`, `/livez` and `/readyz` over HTTP/1.1: one thread, one request per connection.
//!
//! Small on purpose. It answers GET and HEAD with pages of our own making, echoes nothing of a
//! request, and holds no more of one than [`HEAD_BYTES_MAX`]. It has no authentication: whoever
//! listens on more than loopback (`telemetry.allow_non_loopback`) puts a network policy before it.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use thiserror::Error;

use super::Metrics;

/// Longest request head that is read, in bytes.
pub const HEAD_BYTES_MAX: usize = 8 * 1024;

/// A client may use this many reads of [`IO_TIMEOUT`] each, so two seconds at the most.
const READS_MAX: usize = 8;
const IO_TIMEOUT: Duration = Duration::from_millis(250);
const HEADERS_MAX: usize = 64;

#[derive(Debug, Error)]
pub enum HttpError {
    #[error("cannot listen on {address} (telemetry.metrics_listen): {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("cannot start the thread that serves metrics: {0}")]
    Thread(io::Error),
}

/// Where the worker is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// State is being rebuilt: alive, not ready.
    Restoring,
    Ready,
    /// Finishing what was begun: alive, not ready.
    Draining,
}

/// What the worker's loop says about itself. The loop calls [`beat`](Self::beat) on each turn.
#[derive(Debug)]
pub struct Health {
    phase: AtomicU8,
    beat_ms: AtomicI64,
    stall_max_ms: i64,
}

impl Health {
    /// A worker that is restoring. It counts as stuck after `stall_max` without a beat, the time
    /// before the first beat excluded.
    pub fn new(stall_max: Duration) -> Self {
        let stall_max_ms = i64::try_from(stall_max.as_millis()).unwrap_or(i64::MAX);
        Self { phase: AtomicU8::new(Phase::Restoring as u8), beat_ms: AtomicI64::new(i64::MAX), stall_max_ms }
    }

    pub fn set(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// The loop made a turn at `now_ms`, in milliseconds since the Unix epoch.
    pub fn beat(&self, now_ms: i64) {
        self.beat_ms.store(now_ms, Ordering::Relaxed);
    }

    pub fn is_live(&self, now_ms: i64) -> bool {
        now_ms.saturating_sub(self.beat_ms.load(Ordering::Relaxed)) <= self.stall_max_ms
    }

    pub fn is_ready(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == Phase::Ready as u8
    }
}

/// What the server shows, and the clock by which a stuck loop is told.
pub struct Pages {
    pub metrics: Arc<Metrics>,
    pub health: Arc<Health>,
    /// Milliseconds since the Unix epoch.
    pub now_ms: fn() -> i64,
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages").field("health", &self.health).finish_non_exhaustive()
    }
}

/// A running server; it stops when told to or dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on `address` and serves from a thread of its own. Port 0 picks a free port.
    pub fn start(address: SocketAddr, pages: Pages) -> Result<Self, HttpError> {
        let listen = |source| HttpError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(listen)?;
        let bound = listener.local_addr().map_err(listen)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = stopping.clone();
        let thread = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || accept(&listener, &pages, &stop))
            .map_err(HttpError::Thread)?;
        Ok(Self { address: bound, stopping, thread: Some(thread) })
    }

    /// The address that is listened on, with the port that was picked.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn wind_up(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        // The thread waits in accept(); a connection wakes it up. If none can be made, the thread
        // is left to end with the process.
        let woken = TcpStream::connect_timeout(&self.wake_address(), IO_TIMEOUT).is_ok();
        if let (true, Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }

    /// An unspecified address is listened on but cannot be connected to everywhere.
    fn wake_address(&self) -> SocketAddr {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            let loopback: std::net::IpAddr = match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            };
            address.set_ip(loopback);
        }
        address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.wind_up();
    }
}

fn accept(listener: &TcpListener, pages: &Pages, stopping: &AtomicBool) {
    for connection in listener.incoming() {
        if stopping.load(Ordering::Relaxed) {
            return;
        }
        match connection.and_then(|stream| answer(stream, pages)) {
            Ok(()) => {}
            // A client that went away is its own affair; when descriptors run out, a pause keeps
            // this thread from spinning.
            Err(error) => {
                tracing::debug!(kind = ?error.kind(), "a metrics request failed");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

fn answer(mut stream: TcpStream, pages: &Pages) -> io::Result<()> {
    stream.set_read_timeout(Some(IO_TIMEOUT))?;
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    let mut buffer = [0; HEAD_BYTES_MAX];
    let head = read_head(&mut stream, &mut buffer)?;
    let complete = matches!(head, Head::Complete(_));
    let reply = match head {
        Head::Complete(request) => route(&request, pages),
        Head::TooLarge => Reply::text(431, "Request Header Fields Too Large"),
        Head::Malformed => Reply::text(400, "Bad Request"),
        Head::TooSlow => Reply::text(408, "Request Timeout"),
    };
    stream.write_all(reply.head().as_bytes())?;
    if !reply.head_only {
        stream.write_all(reply.body.as_bytes())?;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    if !complete {
        // To close over unread bytes resets the connection, and the client might lose the answer.
        let _ = stream.read(&mut buffer);
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct Request {
    method: Method,
    page: Option<Page>,
    open_metrics: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Get,
    Head,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Metrics,
    Live,
    Ready,
}

enum Head {
    Complete(Request),
    TooLarge,
    Malformed,
    TooSlow,
}

fn read_head(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<Head> {
    let mut filled = 0;
    for _ in 0..READS_MAX {
        if filled == buffer.len() {
            return Ok(Head::TooLarge);
        }
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return Ok(Head::Malformed),
            Ok(count) => filled += count,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => continue,
            Err(error) => return Err(error),
        }
        if let Some(head) = parse_head(&buffer[..filled]) {
            return Ok(head);
        }
    }
    Ok(Head::TooSlow)
}

/// `None` while the head is not complete yet.
fn parse_head(bytes: &[u8]) -> Option<Head> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => None,
        Ok(httparse::Status::Complete(_)) => Some(Head::Complete(understand(&request))),
        Err(httparse::Error::TooManyHeaders) => Some(Head::TooLarge),
        Err(_) => Some(Head::Malformed),
    }
}

fn understand(request: &httparse::Request<'_, '_>) -> Request {
    let method = match request.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        Some(_) | None => Method::Other,
    };
    let path = request.path.and_then(|target| target.split('?').next());
    let page = match path {
        Some("/metrics") => Some(Page::Metrics),
        Some("/livez") => Some(Page::Live),
        Some("/readyz") => Some(Page::Ready),
        Some(_) | None => None,
    };
    let accept = request.headers.iter().filter(|h| h.name.eq_ignore_ascii_case("accept"));
    let open_metrics =
        accept.into_iter().any(|h| memchr::memmem::find(h.value, b"application/openmetrics-text").is_some());
    Request { method, page, open_metrics }
}

struct Reply {
    status: u16,
    reason: &'static str,
    content_type: &'static str,
    body: String,
    head_only: bool,
}

impl Reply {
    fn text(status: u16, reason: &'static str) -> Self {
        let body = format!("{reason}\n");
        Self { status, reason, content_type: "text/plain; charset=utf-8", body, head_only: false }
    }

    fn head(&self) -> String {
        let allow = if self.status == 405 { "allow: GET, HEAD\r\n" } else { "" };
        format!(
            "HTTP/1.1 {} {}\r\ncontent-type: {}\r\ncontent-length: {}\r\ncache-control: no-store\r\n{allow}connection: close\r\n\r\n",
            self.status,
            self.reason,
            self.content_type,
            self.body.len()
        )
    }
}

fn route(request: &Request, pages: &Pages) -> Reply {
    let mut reply = match (request.method, request.page) {
        (Method::Other, _) => Reply::text(405, "Method Not Allowed"),
        (_, None) => Reply::text(404, "Not Found"),
        (_, Some(Page::Live)) if pages.health.is_live((pages.now_ms)()) => Reply::text(200, "OK"),
        (_, Some(Page::Ready)) if pages.health.is_ready() => Reply::text(200, "OK"),
        (_, Some(Page::Live | Page::Ready)) => Reply::text(503, "Service Unavailable"),
        (_, Some(Page::Metrics)) => metrics(&pages.metrics, request.open_metrics),
    };
    reply.head_only = request.method == Method::Head;
    reply
}

fn metrics(metrics: &Metrics, open_metrics: bool) -> Reply {
    let (content_type, body) = match open_metrics {
        true => ("application/openmetrics-text; version=1.0.0; charset=utf-8", metrics.encode()),
        false => ("text/plain; version=0.0.4; charset=utf-8", metrics.encode_plain()),
    };
    Reply { status: 200, reason: "OK", content_type, body, head_only: false }
}

#[cfg(test)]
mod tests {
    use super::super::Build;
    use super::*;

    fn server() -> (Server, Arc<Health>) {
        let health = Arc::new(Health::new(Duration::from_secs(30)));
        let metrics = Arc::new(Metrics::new(&[], Build { version: "0.1.0", commit: "unknown" }));
        let pages = Pages { metrics, health: health.clone(), now_ms: || 100_000 };
        (Server::start("127.0.0.1:0".parse().unwrap(), pages).unwrap(), health)
    }

    fn ask(server: &Server, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(request);
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        String::from_utf8(reply).unwrap()
    }

    #[track_caller]
    fn check(server: &Server, request: &str, status: &str) {
        let reply = ask(server, request.as_bytes());
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {reply}");
    }

    #[test]
    fn health_follows_the_phase_and_the_beat() {
        let (server, health) = server();
        check(&server, "GET /livez HTTP/1.1\r\n\r\n", "200");
        check(&server, "GET /readyz HTTP/1.1\r\n\r\n", "503");
        health.set(Phase::Ready);
        health.beat(90_000);
        check(&server, "GET /readyz?verbose HTTP/1.1\r\n\r\n", "200");
        check(&server, "GET /livez HTTP/1.1\r\n\r\n", "200");
        health.beat(69_999);
        check(&server, "GET /livez HTTP/1.1\r\n\r\n", "503");
        health.set(Phase::Draining);
        check(&server, "GET /readyz HTTP/1.1\r\n\r\n", "503");
    }

    #[test]
    fn metrics_come_in_the_format_that_was_asked_for() {
        let (server, _) = server();
        let open = ask(&server, b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n");
        assert!(open.contains("content-type: application/openmetrics-text") && open.ends_with("# EOF\n"), "{open}");
        let plain = ask(&server, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(plain.contains("content-type: text/plain; version=0.0.4") && plain.contains("toolgate_build_info{"));
        let head = ask(&server, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    }

    #[test]
    fn a_bad_request_gets_a_fixed_answer_that_echoes_nothing() {
        let (server, _) = server();
        check(&server, "POST /metrics HTTP/1.1\r\n\r\n", "405");
        check(&server, "GET /canary HTTP/1.1\r\n\r\n", "404");
        check(&server, "\0\0\0\r\n\r\n", "400");
        check(&server, &format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(HEAD_BYTES_MAX)), "431");
        check(&server, &format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1)), "431");
        assert!(!ask(&server, b"GET /canary HTTP/1.1\r\nhost: canary\r\n\r\n").contains("canary"));
    }

    #[test]
    fn a_client_that_says_nothing_does_not_stay() {
        let (server, _) = server();
        let mut silent = TcpStream::connect(server.address()).unwrap();
        silent.write_all(b"GET /livez HTTP/1.1\r\n").unwrap();
        check(&server, "GET /livez HTTP/1.1\r\n\r\n", "200");
        let mut reply = String::new();
        silent.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 408 "), "{reply}");
    }

    #[test]
    fn a_taken_port_is_an_error_that_names_the_setting() {
        let (server, health) = server();
        let metrics = Arc::new(Metrics::new(&[], Build { version: "0.1.0", commit: "unknown" }));
        let error = Server::start(server.address(), Pages { metrics, health, now_ms: || 0 }).unwrap_err().to_string();
        assert!(error.contains("telemetry.metrics_listen"), "{error}");
    }
}
