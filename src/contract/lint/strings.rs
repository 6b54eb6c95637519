//! How long a string that matches a pattern can be: a question to the pattern's syntax tree.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The most bytes of a string that matches this pattern; `None` where there is no bound, because
/// it is not anchored at both ends or repeats without end.
///
/// # Errors
/// The pattern does not compile, in the words of the regex library.
pub fn pattern_bytes_max(pattern: &str) -> Result<Option<u64>, String> {
    regex::RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build().map_err(|error| error.to_string())?;
    let hir = regex_syntax::parse(pattern).map_err(|error| error.to_string())?;
    if !(anchored(&hir, Look::Start) && anchored(&hir, Look::End)) {
        return Ok(None);
    }
    Ok(hir.properties().maximum_len().map(|bytes| bytes as u64))
}

/// The most bytes of such a string as JSON text: twice the match where it may hold a quotation mark or
/// a reverse solidus, which JSON escapes.
pub fn pattern_json_bytes_max(pattern: &str) -> Option<u64> {
    let bytes = pattern_bytes_max(pattern).ok().flatten()?;
    let may_escape = regex_syntax::parse(pattern).map_or(true, |hir| may_hold_escaped(&hir));
    Some(if may_escape { bytes.saturating_mul(2) } else { bytes })
}

/// Can a match hold `"` or `\`?
fn may_hold_escaped(hir: &Hir) -> bool {
    let is_escaped = |byte: u8| byte == b'"' || byte == b'\\';
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => literal.0.iter().any(|byte| is_escaped(*byte)),
        HirKind::Class(Class::Unicode(class)) => {
            class.ranges().iter().any(|range| ['"', '\\'].iter().any(|c| (range.start()..=range.end()).contains(c)))
        }
        HirKind::Class(Class::Bytes(class)) => {
            class.ranges().iter().any(|range| [b'"', b'\\'].iter().any(|b| (range.start()..=range.end()).contains(b)))
        }
        HirKind::Repetition(repetition) => may_hold_escaped(&repetition.sub),
        HirKind::Capture(capture) => may_hold_escaped(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(may_hold_escaped),
    }
}

/// Does every match start, or end, with this anchor?
fn anchored(hir: &Hir, look: Look) -> bool {
    match hir.kind() {
        HirKind::Look(found) => *found == look,
        HirKind::Capture(capture) => anchored(&capture.sub, look),
        HirKind::Concat(parts) => {
            let edge = if look == Look::Start { parts.first() } else { parts.last() };
            edge.is_some_and(|part| anchored(part, look))
        }
        HirKind::Alternation(branches) => branches.iter().all(|branch| anchored(branch, look)),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Repetition(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, expect: Option<u64>) {
        assert_eq!(pattern_bytes_max(pattern).unwrap(), expect, "{pattern}");
    }

    #[test]
    fn bounds_come_from_the_syntax() {
        check("^[a-z0-9][a-z0-9-]{2,62}$", Some(63));
        check("^run_[A-Za-z0-9]{12,48}$", Some(52));
        check("^(a|bcd)$", Some(3));
        check("^a$|^bc$", Some(2));
        check("^ü{2}$", Some(4));
    }

    #[test]
    fn only_what_json_escapes_counts_twice() {
        for (pattern, bytes) in
            [("^[a-z]{1,10}$", 10), (r#"^[^\n]{1,2}$"#, 16), (r#"^a"b$"#, 6), (r"^a\\b$", 6), ("^(?:a|b){4}$", 4)]
        {
            assert_eq!(pattern_json_bytes_max(pattern), Some(bytes), "{pattern}");
        }
    }

    #[test]
    fn what_is_not_anchored_or_repeats_has_none() {
        for pattern in ["[a-z]{3}", "^[a-z]{3}", "[a-z]{3}$", "^[a-z]+$", "^a|b$", "^.*$"] {
            check(pattern, None);
        }
        assert!(pattern_bytes_max("(").is_err());
        assert!(pattern_bytes_max("(a").is_err());
    }
}
