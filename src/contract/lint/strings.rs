//! What a schema says about a string: how long it can be, and whether a stranger chooses the words.

use super::keywords::format;
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use serde_json::{Map, Value};

const PATTERN_BYTES_MAX: usize = 1 << 20;
/// A class of more characters than this lists no alphabet: it is `.` or a negation.
const ALPHABET_MAX: u64 = 256;
/// So many characters of an open class are a sentence.
const PROSE_CHARS: u64 = 16;

/// What one pattern guarantees of every string that it admits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::contract) struct Pattern {
    /// It is anchored at both ends. One that is not says something about a part of the string only.
    pub anchored: bool,
    /// Bytes of the string as JSON text, without the quotation marks; none where there is no bound.
    pub json_bytes_max: Option<u64>,
    /// It has room for a sentence in characters that it does not list.
    pub prose: bool,
}

/// What the keywords of one schema guarantee of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::contract) struct StringFacts {
    /// Its words are chosen by the contract: it is listed, or of a closed form.
    pub closed: bool,
    /// Characters.
    pub chars_max: Option<u64>,
    /// Bytes as JSON text, without the quotation marks.
    pub json_bytes_max: Option<u64>,
}

/// A character in JSON text is at most four bytes of UTF-8; the escaped quotation mark and reverse
/// solidus are two, and text safety has refused controls.
const BYTES_PER_CHAR: u64 = 4;

/// Reads the keywords that speak about strings.
///
/// # Errors
/// The pattern is none, in words for its author.
pub(in crate::contract) fn string_facts(members: &Map<String, Value>) -> Result<StringFacts, String> {
    let word = |keyword: &str| members.get(keyword).and_then(Value::as_str);
    let pattern = word("pattern").map(pattern).transpose()?;
    let format = word("format").and_then(format);
    let length = members.get("maxLength").and_then(Value::as_u64);
    let listed = members.contains_key("enum") || members.contains_key("const");
    let by_pattern = pattern.and_then(|pattern| pattern.json_bytes_max);
    let by_format = format.and_then(|format| format.bytes_max);
    let by_length = length.map(|chars| chars.saturating_mul(BYTES_PER_CHAR));
    Ok(StringFacts {
        closed: listed
            || pattern.is_some_and(|pattern| pattern.anchored && !pattern.prose)
            || format.is_some_and(|format| format.closed),
        chars_max: [length, by_pattern, by_format].into_iter().flatten().min(),
        json_bytes_max: [by_pattern, by_format, by_length].into_iter().flatten().min(),
    })
}

/// Reads a pattern as the validator does.
///
/// # Errors
/// It does not compile within 1 MiB, or means one thing to ECMA-262 and another to this engine.
pub(in crate::contract) fn pattern(pattern: &str) -> Result<Pattern, String> {
    if let Some(doubtful) = ambiguous(pattern) {
        return Err(format!("{doubtful} inside [...] means different things to different engines"));
    }
    regex::RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build().map_err(|error| error.to_string())?;
    let hir = regex_syntax::parse(pattern).map_err(|error| error.to_string())?;
    let anchored = begins_or_ends(&hir, Look::Start) && begins_or_ends(&hir, Look::End);
    Ok(Pattern {
        anchored,
        json_bytes_max: if anchored { json_bytes(&hir) } else { None },
        prose: prose_chars(&hir) >= PROSE_CHARS,
    })
}

/// The validator reads classes as ECMA-262 does, where `[`, `&&`, `--` and `~~` are characters; the
/// syntax tree here reads them as sets. Judging another pattern than the one applied is no proof.
fn ambiguous(pattern: &str) -> Option<&'static str> {
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                rest.next();
            }
            '[' if in_class => return Some("["),
            '[' => in_class = true,
            ']' => in_class = false,
            '&' if in_class && rest.peek() == Some(&'&') => return Some("&&"),
            '-' if in_class && rest.peek() == Some(&'-') => return Some("--"),
            '~' if in_class && rest.peek() == Some(&'~') => return Some("~~"),
            _ => {}
        }
    }
    None
}

/// Does every match start, or end, with this anchor?
fn begins_or_ends(hir: &Hir, look: Look) -> bool {
    match hir.kind() {
        HirKind::Look(found) => *found == look,
        HirKind::Capture(capture) => begins_or_ends(&capture.sub, look),
        HirKind::Concat(parts) => {
            let edge = if look == Look::Start { parts.first() } else { parts.last() };
            edge.is_some_and(|part| begins_or_ends(part, look))
        }
        HirKind::Alternation(branches) => branches.iter().all(|branch| begins_or_ends(branch, look)),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Repetition(_) => false,
    }
}

/// The most bytes of a match as JSON text. Depth is that of the pattern, which its parser limits.
fn json_bytes(hir: &Hir) -> Option<u64> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(0),
        HirKind::Literal(literal) => Some(literal.0.iter().map(|byte| 1 + u64::from(is_escaped(*byte))).sum()),
        HirKind::Class(class) => Some(class_json_bytes(class)),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.map(u64::from);
            most.and_then(|most| Some(json_bytes(&repetition.sub)?.saturating_mul(most)))
        }
        HirKind::Capture(capture) => json_bytes(&capture.sub),
        HirKind::Concat(parts) => parts.iter().try_fold(0u64, |sum, part| Some(sum.saturating_add(json_bytes(part)?))),
        HirKind::Alternation(branches) => {
            branches.iter().try_fold(0, |most: u64, branch| Some(most.max(json_bytes(branch)?)))
        }
    }
}

fn class_json_bytes(class: &Class) -> u64 {
    let escapes = [b'"', b'\\'].iter().any(|byte| holds(class, *byte));
    let utf8 = class.maximum_len().unwrap_or(0) as u64;
    utf8.max(1 + u64::from(escapes))
}

const fn is_escaped(byte: u8) -> bool {
    byte == b'"' || byte == b'\\'
}

fn holds(class: &Class, byte: u8) -> bool {
    match class {
        Class::Unicode(class) => class.ranges().iter().any(|r| (r.start()..=r.end()).contains(&char::from(byte))),
        Class::Bytes(class) => class.ranges().iter().any(|r| (r.start()..=r.end()).contains(&byte)),
    }
}

/// How many characters of a match may come from classes that list no alphabet but hold a space.
fn prose_chars(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) => 0,
        HirKind::Class(class) => u64::from(is_open(class)),
        HirKind::Repetition(repetition) => {
            prose_chars(&repetition.sub).saturating_mul(repetition.max.map_or(u64::MAX, u64::from))
        }
        HirKind::Capture(capture) => prose_chars(&capture.sub),
        HirKind::Concat(parts) => parts.iter().fold(0, |sum: u64, part| sum.saturating_add(prose_chars(part))),
        HirKind::Alternation(branches) => branches.iter().map(prose_chars).max().unwrap_or(0),
    }
}

fn is_open(class: &Class) -> bool {
    let size = match class {
        Class::Unicode(class) => {
            class.ranges().iter().map(|r| u64::from(u32::from(r.end()) - u32::from(r.start())) + 1).sum()
        }
        Class::Bytes(_) => 0,
    };
    size > ALPHABET_MAX && holds(class, b' ') && holds(class, b'a')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<u64>) {
        let found = pattern(text).unwrap();
        assert_eq!(found.json_bytes_max, expect, "{text}");
        assert!(found.anchored || expect.is_none(), "{text}");
    }

    #[test]
    fn bounds_come_from_the_syntax() {
        check("^[a-z0-9][a-z0-9-]{2,62}$", Some(63));
        check("^run_[A-Za-z0-9]{12,48}$", Some(52));
        check("^(a|bcd)$", Some(3));
        check("^a$|^bc$", Some(2));
        check("^ü{2}$", Some(4));
        check("^(?:[ab]{3}x?){2,5}$", Some(20));
        check("^$", Some(0));
    }

    #[test]
    fn only_what_json_escapes_counts_twice() {
        check(r#"^[^\n]{1,2}$"#, Some(8));
        check(r#"^["a]{3}$"#, Some(6));
        check(r#"^a"b$"#, Some(4));
        check(r"^a\\b$", Some(4));
        check("^(?:a|b){4}$", Some(4));
    }

    #[test]
    fn what_is_not_anchored_or_repeats_has_none() {
        for text in ["[a-z]{3}", "^[a-z]{3}", "[a-z]{3}$", "^[a-z]+$", "^a|b$", "^.*$", "(?m)^a$", "^(a|b$)"] {
            check(text, None);
        }
        assert!(pattern("^[a-z]+$").unwrap().anchored);
        assert!(!pattern("(?m)^a$").unwrap().anchored);
    }

    #[test]
    fn what_is_no_pattern_or_two_is_refused() {
        for text in ["(", "(a", "a{2000000}", "^[[:alpha:]]$", "^[a-z&&[b]]$", "^[a--b]$", "^[a~~b]$", "^(?=a)$"] {
            assert!(pattern(text).is_err(), "{text}");
        }
        // The engine itself would take ten times as much.
        let large = r"^\w{1,60}$";
        assert!(regex::Regex::new(large).is_ok() && pattern(large).is_err());
        for text in [r"^[\[a]$", "^[a&b-]$", "^a--b&&c$"] {
            assert!(pattern(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn an_open_class_with_room_for_a_sentence_is_prose() {
        for (text, prose) in [
            ("^.{1,200}$", true),
            ("^[^<>]{1,64}$", true),
            (r"^[\s\S]{1,64}$", true),
            ("^(?:..){8}$", true),
            ("^.*$", true),
            ("^.{1,3}$", false),
            ("^[^ ]{1,64}$", false),
            ("^[A-Za-z][A-Za-z .-]{0,63}$", false),
            ("^Bearer [a-z]{3}$", false),
        ] {
            assert_eq!(pattern(text).unwrap().prose, prose, "{text}");
        }
    }
}
