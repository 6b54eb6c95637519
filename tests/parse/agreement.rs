//! Tape and reference agree on generated documents: on the verdict, and on every value.
//!
//! `TOOLGATE_DOCUMENTS` says how many (100,000 unless told otherwise); `make fuzz-parse` runs ten million.

use crate::generator::document;
use crate::reference::{self, Value};
use toolgate::gate::Reason;
use toolgate::gate::parse::{Kind, Limits, Node, Tape};

#[test]
fn the_tape_reads_what_the_reference_reads() {
    let count: u64 = std::env::var("TOOLGATE_DOCUMENTS")
        .ok()
        .map_or(100_000, |text| text.parse().expect("TOOLGATE_DOCUMENTS is a number"));
    let limits =
        Limits { depth_max: reference::DEPTH_MAX, items_max: reference::ITEMS_MAX as u32, ..Limits::default() };
    let mut tape = Tape::default();
    let (mut accepted, mut refused) = (0u64, 0u64);
    for seed in 0..count {
        let document = document(seed);
        let ours = tape.parse(&document, &limits);
        match (&ours, reference::read(&document)) {
            (Ok(found), Ok(wanted)) => {
                assert_eq!(copy(found.root()), wanted, "seed {seed}: {}", document.escape_ascii());
                accepted += 1;
            }
            (Err(error), Err(kind)) => {
                assert!(
                    is_same_kind(error.reason, kind),
                    "seed {seed}: {} against {kind}: {}",
                    error.reason,
                    document.escape_ascii()
                );
                refused += 1;
            }
            (ours, reference) => panic!("seed {seed}: {ours:?} against {reference:?}: {}", document.escape_ascii()),
        }
    }
    assert!(
        accepted > count / 4 && refused > count / 10,
        "{accepted} accepted, {refused} refused: the generator is one-sided"
    );
}

/// A document may have two offences, and each reader reports the one that it meets first: grammar
/// may stand for any other, and a duplicate is met at its name or at the end of a wide object.
fn is_same_kind(reason: Reason, kind: &str) -> bool {
    let exact = match kind {
        "utf8" => reason == Reason::InvalidUtf8,
        "range" => reason == Reason::NumberRange,
        "deep" => reason == Reason::TooDeep,
        "many" => reason == Reason::TooMany,
        "duplicate" => reason == Reason::DuplicateMember,
        "trailing" => reason == Reason::TrailingData,
        _ => reason == Reason::InvalidJson,
    };
    let grammar = [Reason::InvalidJson, Reason::TrailingData, Reason::DuplicateMember, Reason::NumberRange];
    exact || (matches!(kind, "syntax" | "trailing" | "duplicate" | "range") && grammar.contains(&reason))
}

fn copy(node: Node<'_>) -> Value {
    match node.kind() {
        Kind::Null => Value::Null,
        Kind::True => Value::Bool(true),
        Kind::False => Value::Bool(false),
        Kind::String => Value::String(node.as_str().unwrap().to_owned()),
        Kind::Number => number(node.lexeme().unwrap()),
        Kind::Array => Value::Array(node.items().map(copy).collect()),
        Kind::Object => Value::Object(node.members().map(|(name, value)| (name.to_owned(), copy(value))).collect()),
    }
}

/// What serde_json makes of a lexeme, computed from the digits that the tape has kept.
fn number(lexeme: &str) -> Value {
    let integer = lexeme.parse::<u64>().map(i128::from).or_else(|_| lexeme.parse::<i64>().map(i128::from));
    match integer {
        Ok(integer) if lexeme != "-0" => Value::Integer(integer),
        Ok(_) | Err(_) => Value::Double(lexeme.parse::<f64>().unwrap().to_bits()),
    }
}

#[test]
fn random_doubles_keep_their_digits() {
    let mut tape = Tape::default();
    for seed in 0..20_000u64 {
        let double = f64::from_bits(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        if !double.is_finite() {
            continue;
        }
        let text = format!("[{double:e}]");
        let document = tape.parse(text.as_bytes(), &Limits::default()).unwrap();
        let lexeme = document.root().item(0).unwrap().lexeme().unwrap();
        assert_eq!(lexeme.parse::<f64>().unwrap().to_bits(), double.to_bits());
        assert_eq!(lexeme, &text[1..text.len() - 1]);
    }
}
