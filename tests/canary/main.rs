//! Promise P1: no part of a refused response reaches an agent, a log line, a metric label or a
//! record that is not the raw material itself.
//!
//! Every case of `tests/cases` is taken, a canary is planted at every kind of place in it, and the
//! variant goes through the real worker. The canary may then be in the quarantine's payload and
//! upstream headers, and nowhere else; in accepted results only inside a field that its contract
//! declares as free text.
#![allow(clippy::unwrap_used, reason = "tests")]

mod plant;
mod stage;

use plant::{NUMBER, TEXT};
use stage::Stage;

#[test]
fn a_canary_planted_anywhere_is_found_nowhere() {
    let mut stage = Stage::new();
    let mut variants = 0;
    for case in stage::cases() {
        for variant in plant::variants(&case) {
            let what = format!("{} with {}", case.file, variant.place);
            let seen = stage.judge(&case, &variant);
            for (where_, text) in &seen.texts {
                assert!(!text.contains("CANARY"), "{what}: the canary is in {where_}: {text}");
                assert!(seen.accepted || !text.contains(NUMBER), "{what}: the number is in {where_}: {text}");
            }
            if seen.refused {
                assert_eq!(
                    seen.agent_without_code,
                    stage.fixed_failure(&case),
                    "{what}: the failure is not the fixed one"
                );
            }
            variants += 1;
        }
    }
    let log = stage.log_lines();
    assert!(log.contains("SCHEMA_VIOLATION") && log.contains("TEXT_UNSAFE"), "the log was captured");
    assert!(!log.contains("CANARY") && !log.contains(NUMBER), "a log line holds the canary");
    let metrics = stage.metrics();
    assert!(metrics.contains("SCHEMA_VIOLATION"), "the metrics were captured");
    assert!(!metrics.contains("CANARY") && !metrics.contains(NUMBER), "a metric holds the canary");
    println!("{variants} variants");
    assert!(variants >= 5000, "only {variants} variants");
    assert!(TEXT.contains('\u{2603}'), "no identifier pattern admits this canary");
}
