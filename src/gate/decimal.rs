//! Exact decimals: number lexemes compared, added and read as times without a detour through
//! binary floating point, which calls 653247040368672768 and 653247040368672800 equal.

use crate::time::Timestamp;
use std::cmp::Ordering;

/// `mantissa` x 10^-`scale`. Holds every number of up to 37 significant digits with at most 37 of
/// them behind the point; larger ones are `None` to all functions here, which callers refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    mantissa: i128,
    scale: u32,
}

const SCALE_MAX: u32 = 37;

impl Decimal {
    pub const ZERO: Decimal = Decimal { mantissa: 0, scale: 0 };

    /// Reads a JSON number lexeme, or a string of the same grammar.
    pub fn parse(lexeme: &str) -> Option<Decimal> {
        let (digits, exponent) = match lexeme.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (lexeme, 0),
        };
        let (negative, digits) = match digits.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, digits),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let fraction = fraction.trim_end_matches('0');
        if whole.is_empty() || whole.bytes().chain(fraction.bytes()).any(|b| !b.is_ascii_digit()) {
            return None;
        }
        let magnitude = whole
            .bytes()
            .chain(fraction.bytes())
            .try_fold(0i128, |n, b| n.checked_mul(10)?.checked_add(i128::from(b - b'0')))?;
        let mantissa = if negative { -magnitude } else { magnitude };
        let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        Decimal { mantissa, scale: 0 }.rescaled_from(scale)
    }

    fn rescaled_from(self, scale: i32) -> Option<Decimal> {
        if self.mantissa == 0 {
            return Some(Decimal { mantissa: 0, scale: 0 });
        }
        if scale >= 0 {
            let scale = scale as u32;
            return (scale <= SCALE_MAX).then_some(Decimal { mantissa: self.mantissa, scale });
        }
        let factor = 10i128.checked_pow(scale.unsigned_abs())?;
        Some(Decimal { mantissa: self.mantissa.checked_mul(factor)?, scale: 0 })
    }

    fn at_scale(self, scale: u32) -> Option<i128> {
        self.mantissa.checked_mul(10i128.checked_pow(scale - self.scale)?)
    }

    pub fn checked_add(self, other: Decimal) -> Option<Decimal> {
        let scale = self.scale.max(other.scale);
        let mantissa = self.at_scale(scale)?.checked_add(other.at_scale(scale)?)?;
        Some(Decimal { mantissa, scale })
    }

    /// Total order by value; `None` where the common scale does not fit.
    pub fn compare(self, other: Decimal) -> Option<Ordering> {
        let scale = self.scale.max(other.scale);
        Some(self.at_scale(scale)?.cmp(&other.at_scale(scale)?))
    }

    /// The moment this many units after the epoch, where a second has 10^`unit` units: 0 for
    /// seconds, 3 for milliseconds, 6 for microseconds. `None` below a nanosecond's precision.
    pub fn as_timestamp(self, unit: u32) -> Option<Timestamp> {
        let scale = self.scale + unit;
        let per_second = 10i128.checked_pow(scale)?;
        let seconds = i64::try_from(self.mantissa.div_euclid(per_second)).ok()?;
        let rest = self.mantissa.rem_euclid(per_second);
        let nanos = if scale <= 9 {
            rest * 10i128.pow(9 - scale)
        } else {
            let finer = 10i128.pow(scale - 9);
            if rest % finer != 0 {
                return None;
            }
            rest / finer
        };
        Timestamp::new(seconds, nanos as u32)
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.scale == 0 {
            return write!(f, "{}", self.mantissa);
        }
        let unit = 10i128.pow(self.scale);
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let (whole, rest) = (self.mantissa.unsigned_abs() / unit as u128, self.mantissa.unsigned_abs() % unit as u128);
        write!(f, "{sign}{whole}.{rest:0width$}", width = self.scale as usize)
    }
}

/// Are these two number lexemes the same number? Falls back to text where they are too large to compare.
pub fn same_number(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    match (Decimal::parse(a), Decimal::parse(b)) {
        (Some(a), Some(b)) => a.compare(b) == Some(Ordering::Equal),
        (None, _) | (_, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_every_digit() {
        let same = [
            ("1", "1.0"),
            ("100", "1e2"),
            ("-0", "0"),
            ("0.50", "5E-1"),
            ("18446744073709551617", "18446744073709551617.0"),
        ];
        for (a, b) in same {
            assert!(same_number(a, b), "{a} {b}");
        }
        let differ =
            [("653247040368672768", "653247040368672800"), ("1", "1.00000000000000001"), ("1", "-1"), ("1e999", "1")];
        for (a, b) in differ {
            assert!(!same_number(a, b), "{a} {b}");
        }
    }

    #[test]
    fn what_is_no_number_or_too_large_is_none() {
        for text in [
            "",
            "-",
            ".",
            ".5",
            "1e",
            "1x",
            "1e99999999999",
            "1e40",
            "1e-40",
            "٣",
            "12345678901234567890123456789012345678901",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn sums_are_exact() {
        let sum = Decimal::parse("0.1").and_then(|a| a.checked_add(Decimal::parse("0.2")?)).unwrap();
        assert_eq!(sum.to_string(), "0.3");
        let sum = Decimal::parse("1796126100000").and_then(|a| a.checked_add(Decimal::parse("138204")?)).unwrap();
        assert_eq!(sum.to_string(), "1796126238204");
        assert_eq!(Decimal::parse("-1.25").unwrap().to_string(), "-1.25");
    }

    #[test]
    fn epochs_become_moments() {
        let at = |text: &str, unit| Decimal::parse(text).and_then(|d| d.as_timestamp(unit)).map(|t| t.to_string());
        assert_eq!(at("1796126296.101", 0).as_deref(), Some("2026-12-01T11:58:16.101Z"));
        assert_eq!(at("1796126100000", 3).as_deref(), Some("2026-12-01T11:55:00Z"));
        assert_eq!(at("1796126350009823", 6).as_deref(), Some("2026-12-01T11:59:10.009823Z"));
        assert_eq!(at("0", 0).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(at("-0.5", 0).as_deref(), Some("1969-12-31T23:59:59.500Z"));
        assert_eq!(at("1.0000000001", 0), None);
        assert_eq!(at("1e30", 0), None);
    }
}
