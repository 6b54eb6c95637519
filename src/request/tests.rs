//! What a million requests take.

use super::machine::{self, tests::binding};
use super::{Binding, Table, Timers};
use crate::wire::v1::Route;

/// A request as an agent platform makes them: a ULID, a route, a trace context.
fn typical(n: usize) -> Binding {
    Binding {
        request_id: format!("req_01JB8W3F6ZK5{n:014}").into(),
        route: Route { agent: "support-agent".into(), session: format!("s-{n:08}"), reply_key: String::new() },
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        ..binding()
    }
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// DESIGN's goal is 256 bytes of resident memory for each outstanding request. On Linux:
/// `BINDINGS=4000000 cargo test --lib bytes_per_binding -- --ignored --nocapture`
#[test]
#[ignore = "measures the process, so nothing may run beside it"]
fn bytes_per_binding() {
    let count: usize = std::env::var("BINDINGS").map_or(1_000_000, |count| count.parse().unwrap());
    let (start, mut table, mut timers) = (resident(), Table::new(1), Timers::default());
    for n in 0..count {
        let known = typical(n);
        timers.set(machine::next_due(&known, 0), table.hash(&known.request_id));
        table.put(&known);
    }
    let each = (resident() - start) / count;
    println!("{count} requests: {each} bytes resident each, their timers included");
    assert!(each <= 256 && table.len() == timers.len());
}
