//! Number lexemes: the grammar of RFC 8259, section 6, kept as text.

use super::ParseError;
use crate::gate::reason::Reason;

/// Longer lexemes are refused: no identifier and no measurement needs more.
const CHARS_MAX: usize = 64;

/// The end of the number that starts at `start`.
///
/// # Errors
/// `INVALID_JSON` for what is no number, `NUMBER_RANGE` for one that is too long or beyond a double.
#[inline]
pub(super) fn number_end(text: &str, start: usize) -> Result<usize, ParseError> {
    let bytes = text.as_bytes();
    let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
    match bytes.get(at) {
        Some(b'0') => at += 1,
        Some(b'1'..=b'9') => at = digits_end(bytes, at),
        Some(_) | None => return Err(ParseError::syntax(at, "a digit must follow here")),
    }
    if bytes.get(at) == Some(&b'.') {
        at = some_digits(bytes, at + 1)?;
    }
    let has_exponent = matches!(bytes.get(at), Some(b'e' | b'E'));
    if has_exponent {
        let signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = some_digits(bytes, at + 1 + usize::from(signed))?;
    }
    if at - start > CHARS_MAX {
        return Err(ParseError::new(Reason::NumberRange, start, "the number has more than 64 characters"));
    }
    // Without an exponent, 64 characters cannot leave a double's range.
    if has_exponent && !text[start..at].parse::<f64>().is_ok_and(f64::is_finite) {
        return Err(ParseError::new(Reason::NumberRange, start, "the number is beyond the range of a double"));
    }
    Ok(at)
}

fn digits_end(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

fn some_digits(bytes: &[u8], at: usize) -> Result<usize, ParseError> {
    let end = digits_end(bytes, at);
    if end == at { Err(ParseError::syntax(at, "a digit must follow here")) } else { Ok(end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<usize, Reason>) {
        assert_eq!(number_end(text, 0).map_err(|error| error.reason), expect, "{text}");
    }

    #[test]
    fn the_grammar_is_kept() {
        for text in
            ["0", "-0", "12", "1.5", "-1.5e+10", "1E5", "0.0", "10e-2", "340282366920938463463374607431768211457"]
        {
            check(text, Ok(text.len()));
        }
        for text in ["-", "1.", ".5", "+1", "1e", "1e+", "-x", "1.e5", ""] {
            check(text, Err(Reason::InvalidJson));
        }
        check("01", Ok(1));
        check("12,", Ok(2));
    }

    #[test]
    fn numbers_stay_in_range() {
        check("1e308", Ok(5));
        check("1e309", Err(Reason::NumberRange));
        check("-1e999999999", Err(Reason::NumberRange));
        check("1e-999", Ok(6));
        check(&"9".repeat(64), Ok(64));
        check(&"9".repeat(65), Err(Reason::NumberRange));
    }
}
