//! What one string of an example is probably like: the tightest form that its kind of value has.

use crate::time::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A guess about a string: keywords beside `type`, and what the guess says.
#[derive(Debug)]
pub(super) struct Guess {
    pub keywords: Map<String, Value>,
    pub convert: Option<&'static str>,
    /// Characters to declare under `text:`.
    pub free_text: Option<u64>,
    pub why: String,
}

/// Names of fields whose values are few words of the vendor.
const STATE_NAMES: [&str; 18] = [
    "state",
    "status",
    "conclusion",
    "phase",
    "result",
    "type",
    "kind",
    "outcome",
    "severity",
    "priority",
    "level",
    "mode",
    "environment",
    "health",
    "visibility",
    "role",
    "event",
    "currency",
];

/// Longer than this, text is no fact.
const TEXT_CHARS_MAX: usize = 400;
const TOKEN_CHARS_MAX: usize = 128;

/// Guesses from all values that examples have at one place; nothing where no guess is tight.
pub(super) fn guess(name: &str, values: &[&str]) -> Option<Guess> {
    let all = |test: fn(&str) -> bool| values.iter().all(|value| test(value));
    let longest = values.iter().map(|value| value.chars().count()).max().unwrap_or(0);
    if all(|v| Timestamp::parse_rfc3339(v).is_some()) {
        let keywords = [("format", json!("date-time")), ("maxLength", json!(35))];
        return Some(made(keywords, Some("timestamp"), "a time (RFC 3339)"));
    }
    if all(is_uuid) {
        return Some(made([("format", json!("uuid"))], None, "a UUID"));
    }
    if all(is_digest) {
        return Some(pattern(format!("^[0-9a-f]{{{}}}$", lengths(values, 0, 0)), "a digest in lower case"));
    }
    if all(|v| v.bytes().all(|b| b.is_ascii_digit())) && longest <= 40 {
        return Some(pattern(format!("^[0-9]{{1,{}}}$", longest.max(20)), "digits"));
    }
    if is_state_name(name) && all(is_word) {
        let listed: BTreeSet<&str> = values.iter().copied().collect();
        let why = format!("one of few words; only {} seen, list the others", listed.len());
        return Some(made([("enum", json!(listed))], None, &why));
    }
    if let Some(prefix) = common_prefix(values) {
        let rest = lengths(values, prefix.len(), 8);
        return Some(pattern(format!("^{prefix}[A-Za-z0-9]{{{rest}}}$"), "an identifier with this prefix"));
    }
    if all(is_uri) && longest <= 2048 {
        let keywords = [("format", json!("uri")), ("maxLength", json!(rounded(longest)))];
        return Some(text(made(keywords, None, "a URI, whose words a stranger may choose"), rounded(longest)));
    }
    if all(is_token) && longest <= TOKEN_CHARS_MAX {
        return Some(pattern(token_pattern(values, rounded(longest)), "a name without spaces"));
    }
    if longest > TEXT_CHARS_MAX {
        return None;
    }
    Some(text(made([("maxLength", json!(rounded(longest)))], None, "words of a stranger"), rounded(longest)))
}

fn made<const N: usize>(keywords: [(&str, Value); N], convert: Option<&'static str>, why: &str) -> Guess {
    let keywords = keywords.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)).collect();
    Guess { keywords, convert, free_text: None, why: why.into() }
}

fn pattern(pattern: String, why: &str) -> Guess {
    made([("pattern", json!(pattern))], None, why)
}

fn text(guess: Guess, chars: u64) -> Guess {
    Guess { free_text: Some(chars), ..guess }
}

/// Room to grow, in steps that a person would choose.
fn rounded(chars: usize) -> u64 {
    let wanted = (chars as u64).saturating_mul(2);
    [16, 32, 64, 128, 256, 512, 1024, 2048].into_iter().find(|step| *step >= wanted).unwrap_or(2048)
}

/// `m,n` for a repetition: the lengths that were seen beyond `skip`, with `slack` to both sides.
fn lengths(values: &[&str], skip: usize, slack: usize) -> String {
    let seen = values.iter().map(|value| value.len() - skip);
    let (least, most) = seen.fold((usize::MAX, 0), |(least, most), n| (least.min(n), most.max(n)));
    let (least, most) = (least.saturating_sub(slack).max(1), most + slack);
    if least == most { most.to_string() } else { format!("{least},{most}") }
}

fn is_state_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    STATE_NAMES.iter().any(|known| name == *known || name.ends_with(&format!("_{known}")))
}

fn is_word(value: &str) -> bool {
    value.len() <= 40
        && value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

fn is_uuid(value: &str) -> bool {
    let bytes = value.as_bytes();
    let dash = |i: usize| matches!(i, 8 | 13 | 18 | 23);
    bytes.len() == 36 && bytes.iter().enumerate().all(|(i, b)| if dash(i) { *b == b'-' } else { b.is_ascii_hexdigit() })
}

fn is_digest(value: &str) -> bool {
    value.len() >= 32 && value.len() <= 128 && value.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_uri(value: &str) -> bool {
    (value.starts_with("https://") || value.starts_with("http://")) && value.bytes().all(|b| (b'!'..=b'~').contains(&b))
}

fn is_token(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_alphanumeric())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '@'))
}

/// `run_` of `run_7Kd29QmXv4Lp`: letters and one `_` or `-`, before letters and digits.
fn common_prefix(values: &[&str]) -> Option<String> {
    let prefix = |value: &str| {
        let cut = value.find(['_', '-'])? + 1;
        let (prefix, rest) = value.split_at(cut);
        let is_prefix = cut <= 12 && prefix[..cut - 1].bytes().all(|b| b.is_ascii_alphabetic()) && cut > 1;
        let is_rest = rest.len() >= 6 && rest.bytes().all(|b| b.is_ascii_alphanumeric());
        (is_prefix && is_rest && rest.bytes().any(|b| b.is_ascii_digit())).then(|| prefix.to_owned())
    };
    let first = prefix(values.first()?)?;
    values.iter().all(|value| prefix(value).as_ref() == Some(&first)).then_some(first)
}

/// A class of exactly the kinds of character that were seen.
fn token_pattern(values: &[&str], chars: u64) -> String {
    let mut class = String::new();
    let seen = |test: fn(char) -> bool| values.iter().any(|value| value.chars().any(test));
    for (test, range) in [
        ((|c: char| c.is_ascii_uppercase()) as fn(char) -> bool, "A-Z"),
        (|c: char| c.is_ascii_lowercase(), "a-z"),
        (|c: char| c.is_ascii_digit(), "0-9"),
    ] {
        if seen(test) {
            class.push_str(range);
        }
    }
    let alphanumeric = class.clone();
    for (test, mark) in [
        ((|c| c == '_') as fn(char) -> bool, "_"),
        (|c| c == '.', "."),
        (|c| c == '/', "/"),
        (|c| c == ':', ":"),
        (|c| c == '@', "@"),
        (|c| c == '-', "-"),
    ] {
        if seen(test) {
            class.push_str(mark);
        }
    }
    format!("^[{alphanumeric}][{class}]{{0,{}}}$", chars - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, values: &[&str], expect: &str) {
        let found = guess(name, values).unwrap();
        assert_eq!(Value::Object(found.keywords).to_string(), expect);
    }

    #[test]
    fn strings_are_guessed_as_tight_as_their_kind_is() {
        check("at", &["2026-12-01T12:00:00Z"], r#"{"format":"date-time","maxLength":35}"#);
        check("id", &["0b7e9c3a-1f52-4c1a-9a37-1f6f0d9a7f10"], r#"{"format":"uuid"}"#);
        check("sha", &["4be1f0c2d3a495867788990a1b2c3d4e5f607182"], r#"{"pattern":"^[0-9a-f]{40}$"}"#);
        check("id", &["812"], r#"{"pattern":"^[0-9]{1,20}$"}"#);
        check("status", &["failed", "running"], r#"{"enum":["failed","running"]}"#);
        check("run_id", &["run_7Kd29QmXv4Lp"], r#"{"pattern":"^run_[A-Za-z0-9]{4,20}$"}"#);
        check("slug", &["bluebird-2"], r#"{"pattern":"^[a-z0-9][a-z0-9-]{0,31}$"}"#);
        check("url", &["https://a.example/x"], r#"{"format":"uri","maxLength":64}"#);
        check("title", &["Fix the build"], r#"{"maxLength":32}"#);
    }

    #[test]
    fn what_strangers_wrote_is_declared_and_long_text_is_not_read() {
        assert_eq!(guess("title", &["Fix the build"]).unwrap().free_text, Some(32));
        assert_eq!(guess("state", &["two words"]).unwrap().free_text, Some(32));
        assert!(guess("body", &["long ".repeat(200).as_str()]).is_none());
    }
}
