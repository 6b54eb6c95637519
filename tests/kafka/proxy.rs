//! A network that misbehaves: a TCP proxy in front of one broker, which knows just enough of Kafka's protocol to tell
//! the end of a transaction from everything else.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the network does at the moment.
#[derive(Debug, Default)]
struct Weather {
    /// How much later everything arrives, in either direction.
    delay_ms: AtomicU64,
    /// Nothing arrives at the broker, or at the client.
    holds_requests: AtomicBool,
    holds_answers: AtomicBool,
    /// How many answers to `EndTxn` are still to be lost, and how many were.
    end_txn_to_lose: AtomicUsize,
    end_txn_lost: AtomicUsize,
    is_over: AtomicBool,
}

#[derive(Debug)]
pub struct Proxy {
    weather: Arc<Weather>,
    connections: Arc<Mutex<Vec<(TcpStream, TcpStream)>>>,
}

/// The key of the request that ends a transaction (KIP-98).
const END_TXN: i16 = 26;
const CHUNK: usize = 64 * 1024;

impl Proxy {
    /// Listens where the broker says that it is, and passes on to where it is.
    pub fn start(listen: &str, behind: &str) -> Proxy {
        let listener = TcpListener::bind(listen).expect("the proxy can listen");
        let proxy = Proxy { weather: Arc::default(), connections: Arc::default() };
        let (weather, connections, behind) = (proxy.weather.clone(), proxy.connections.clone(), behind.to_owned());
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if weather.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(client), Ok(broker)) = (client, TcpStream::connect(&behind)) else { continue };
                let copy = |stream: &TcpStream| stream.try_clone().expect("a handle");
                let ends = Arc::new(Mutex::new(BTreeSet::new()));
                connections.lock().unwrap().push((copy(&client), copy(&broker)));
                let (w, e, from, to) = (weather.clone(), ends.clone(), copy(&client), copy(&broker));
                std::thread::spawn(move || pass_requests(&w, &e, from, to));
                let w = weather.clone();
                std::thread::spawn(move || pass_answers(&w, &ends, broker, client));
            }
        });
        proxy
    }

    pub fn delay(&self, by: Duration) {
        self.weather.delay_ms.store(by.as_millis() as u64, Ordering::Relaxed);
    }

    /// From now on nothing arrives at the broker (`true`) or at clients (`false`).
    pub fn hold(&self, requests: bool) {
        let direction = if requests { &self.weather.holds_requests } else { &self.weather.holds_answers };
        direction.store(true, Ordering::Relaxed);
    }

    /// Both directions work again, on new connections: what was under way is lost, as in a firewall that forgot.
    pub fn release(&self) {
        self.cut(Shutdown::Both);
        self.weather.holds_requests.store(false, Ordering::Relaxed);
        self.weather.holds_answers.store(false, Ordering::Relaxed);
    }

    /// Ends every connection, or one half of it.
    pub fn cut(&self, how: Shutdown) {
        for (client, broker) in self.connections.lock().unwrap().drain(..) {
            let _ = client.shutdown(how);
            let _ = broker.shutdown(how);
        }
    }

    /// The next so many transactions end at the broker, and nobody is told.
    pub fn lose_ends(&self, count: usize) {
        self.weather.end_txn_to_lose.store(count, Ordering::Relaxed);
    }

    pub fn ends_lost(&self) -> usize {
        self.weather.end_txn_lost.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.weather.is_over.store(true, Ordering::Relaxed);
        self.cut(Shutdown::Both);
    }
}

/// One frame of Kafka's protocol with its length, or `None` at the end of the stream.
fn frame(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut frame = vec![0; 4];
    from.read_exact(&mut frame).ok()?;
    let length = i32::from_be_bytes(frame[..4].try_into().ok()?);
    frame.resize(4 + usize::try_from(length).ok()?, 0);
    from.read_exact(&mut frame[4..]).ok()?;
    Some(frame)
}

fn wait_while(weather: &Weather, held: &AtomicBool) {
    while held.load(Ordering::Relaxed) && !weather.is_over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(weather.delay_ms.load(Ordering::Relaxed)));
}

fn pass(mut to: &TcpStream, bytes: &[u8]) -> bool {
    bytes.chunks(CHUNK).all(|chunk| to.write_all(chunk).is_ok())
}

/// Request header: length, key, version, correlation id.
fn pass_requests(weather: &Weather, ends: &Mutex<BTreeSet<i32>>, mut from: TcpStream, to: TcpStream) {
    while let Some(frame) = frame(&mut from) {
        wait_while(weather, &weather.holds_requests);
        if frame.len() >= 12 && i16::from_be_bytes([frame[4], frame[5]]) == END_TXN {
            ends.lock().unwrap().insert(i32::from_be_bytes([frame[8], frame[9], frame[10], frame[11]]));
        }
        if !pass(&to, &frame) {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Answer header: length, correlation id. Answers of one connection come in order, so one that is lost takes the
/// connection with it, some time later.
fn pass_answers(weather: &Weather, ends: &Mutex<BTreeSet<i32>>, mut from: TcpStream, to: TcpStream) {
    while let Some(frame) = frame(&mut from) {
        wait_while(weather, &weather.holds_answers);
        let is_end = frame.len() >= 8
            && ends.lock().unwrap().remove(&i32::from_be_bytes([frame[4], frame[5], frame[6], frame[7]]));
        let lose = |left: usize| left.checked_sub(1);
        if is_end && weather.end_txn_to_lose.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lose).is_ok() {
            weather.end_txn_lost.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        if !pass(&to, &frame) {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
