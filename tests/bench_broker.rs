//! `make bench-kafka` floods a broker. It must never be somebody else's.
#![allow(missing_debug_implementations, reason = "a program's module, seen from a test")]

#[path = "../benches/kafka/loopback.rs"]
mod loopback;

use loopback::{Loopback, is_loopback_host};

#[test]
fn a_broker_on_this_machine_is_taken() {
    for servers in ["127.0.0.1:9092", "127.0.0.1:9092,127.0.0.2:9093", "[::1]:9092"] {
        assert_eq!(Loopback::parse(servers).expect("it is loopback").as_str(), servers);
    }
}

#[test]
fn every_other_address_is_refused_and_named() {
    let refused = [
        "",
        " ",
        ",",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:port",
        ":9092",
        "localhost:9092",
        "localhost.example.com:9092",
        "kafka:9092",
        "10.0.0.1:9092",
        "0.0.0.0:9092",
        "[::]:9092",
        "[fe80::1]:9092",
        "127.0.0.1.example.com:9092",
        "PLAINTEXT://127.0.0.1:9092",
        "127.0.0.1:9092,",
        "127.0.0.1:9092,10.0.0.1:9092",
        "127.0.0.1:9092 10.0.0.1:9092",
        "127.0.0.1:9092, 127.0.0.1:9093",
    ];
    for servers in refused {
        let why = Loopback::parse(servers).expect_err(servers);
        assert!(why.contains("empty") || why.contains("no loopback address"), "{why}");
    }
    let why = Loopback::parse("127.0.0.1:9092,10.0.0.1:9092").expect_err("one part is elsewhere");
    assert!(why.starts_with("`10.0.0.1:9092`"), "{why}");
}

/// A broker tells its clients where to go on; a tunnel on loopback may lead to one that says `kafka-1.internal`.
#[test]
fn where_a_broker_sends_its_clients_is_held_to_the_same() {
    assert!(is_loopback_host("127.0.0.1") && is_loopback_host("::1"));
    assert!(!is_loopback_host("kafka-1.internal") && !is_loopback_host("10.0.0.1") && !is_loopback_host(""));
}
