//! Time as the core sees it: a parameter, never a clock.
//!
//! RFC 3339 is read by our own parser because validation, freshness and the normalised output
//! must agree on every text: whatever this module refuses is refused, whatever a validator said.

use std::fmt;

/// A moment in UTC: nanoseconds since 1970-01-01T00:00:00Z without leap seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

/// Seconds of 9999-12-31T23:59:59Z and 0000-01-01T00:00:00Z: what RFC 3339 can write.
const SECONDS_MAX: i64 = 253_402_300_799;
const SECONDS_MIN: i64 = -62_167_219_200;

impl Timestamp {
    /// The moment `seconds` + `nanos` after the epoch; `None` outside the years 0000 to 9999.
    pub fn new(seconds: i64, nanos: u32) -> Option<Self> {
        let in_range = (SECONDS_MIN..=SECONDS_MAX).contains(&seconds) && nanos < 1_000_000_000;
        in_range.then_some(Self { seconds, nanos })
    }

    pub fn from_unix_millis(millis: i64) -> Option<Self> {
        Self::new(millis.div_euclid(1000), millis.rem_euclid(1000) as u32 * 1_000_000)
    }

    pub fn from_unix_micros(micros: i64) -> Option<Self> {
        Self::new(micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000) as u32 * 1000)
    }

    /// Milliseconds since the epoch, rounded down.
    pub const fn unix_millis(self) -> i64 {
        self.seconds * 1000 + (self.nanos / 1_000_000) as i64
    }

    pub const fn unix_seconds(self) -> i64 {
        self.seconds
    }

    pub const fn subsec_nanos(self) -> u32 {
        self.nanos
    }

    /// `self` + `millis`, held at the ends of the representable range.
    pub fn saturating_add_millis(self, millis: i64) -> Self {
        let ends = (SECONDS_MIN * 1000, SECONDS_MAX * 1000);
        let sum = self.unix_millis().saturating_add(millis).clamp(ends.0, ends.1);
        let sub_milli = self.nanos % 1_000_000;
        Self { seconds: sum.div_euclid(1000), nanos: sum.rem_euclid(1000) as u32 * 1_000_000 + sub_milli }
    }

    /// Milliseconds from `earlier` to `self`; negative where `self` is the earlier one.
    pub const fn millis_since(self, earlier: Timestamp) -> i64 {
        self.unix_millis() - earlier.unix_millis()
    }

    /// Reads an RFC 3339 `date-time`: `T` and `Z` in either case, a mandatory offset, one to nine
    /// fractional digits. Second 60 counts as the first second of the next minute (RFC 3339,
    /// section 5.7), since no leap second table is kept.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        Reader { bytes: text.as_bytes() }.date_time(OffsetStyle::Rfc3339)
    }

    /// Reads what [`parse_rfc3339`](Self::parse_rfc3339) reads and, beside it, ISO 8601 basic
    /// offsets (`+0000`), as some vendors write them.
    pub fn parse_iso8601(text: &str) -> Option<Self> {
        Reader { bytes: text.as_bytes() }.date_time(OffsetStyle::Iso8601)
    }
}

/// The one way in which toolgate writes a time: UTC, `T`, `Z`, and 0, 3, 6 or 9 fractional digits,
/// as few as hold the value.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(86_400));
        let of_day = self.seconds.rem_euclid(86_400);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        match self.nanos {
            0 => f.write_str("Z"),
            n if n.is_multiple_of(1_000_000) => write!(f, ".{:03}Z", n / 1_000_000),
            n if n.is_multiple_of(1000) => write!(f, ".{:06}Z", n / 1000),
            n => write!(f, ".{n:09}Z"),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum OffsetStyle {
    Rfc3339,
    Iso8601,
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn date_time(mut self, style: OffsetStyle) -> Option<Timestamp> {
        let (year, month, day) = (self.digits(4)?, self.after(b"-", 2)?, self.after(b"-", 2)?);
        let (hour, minute, second) = (self.after(b"Tt", 2)?, self.after(b":", 2)?, self.after(b":", 2)?);
        let nanos = self.fraction()?;
        let offset_minutes = self.offset(style)?;
        let valid = self.bytes.is_empty()
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour <= 23
            && minute <= 59
            && second <= 60;
        if !valid {
            return None;
        }
        let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
        Timestamp::new(seconds - offset_minutes * 60, nanos)
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let (head, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        head.iter().try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
    }

    fn after(&mut self, separators: &[u8], count: usize) -> Option<i64> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        if separators.contains(first) { self.digits(count) } else { None }
    }

    fn fraction(&mut self) -> Option<u32> {
        let Some(rest) = self.bytes.strip_prefix(b".") else { return Some(0) };
        let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if !(1..=9).contains(&count) {
            return None;
        }
        self.bytes = rest;
        let value = self.digits(count)? as u32;
        Some(value * 10u32.pow(9 - count as u32))
    }

    fn offset(&mut self, style: OffsetStyle) -> Option<i64> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        let sign = match first {
            b'Z' | b'z' => return Some(0),
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let hours = self.digits(2)?;
        let basic = style == OffsetStyle::Iso8601 && self.bytes.first() != Some(&b':');
        let minutes = if basic { self.digits(2)? } else { self.after(b":", 2)? };
        (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar, counting years from March so that
/// the leap day is the last of a year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<&str>) {
        assert_eq!(Timestamp::parse_rfc3339(text).map(|t| t.to_string()).as_deref(), expect, "{text}");
    }

    #[test]
    fn rfc3339_is_read_and_written_in_one_form() {
        check("2026-12-01T11:58:00Z", Some("2026-12-01T11:58:00Z"));
        check("2026-12-01t11:58:00z", Some("2026-12-01T11:58:00Z"));
        check("2026-12-01T12:58:00+01:00", Some("2026-12-01T11:58:00Z"));
        check("2026-12-01T11:58:00.1Z", Some("2026-12-01T11:58:00.100Z"));
        check("2026-12-01T11:58:00.009823Z", Some("2026-12-01T11:58:00.009823Z"));
        check("2026-12-01T11:58:00.000000001Z", Some("2026-12-01T11:58:00.000000001Z"));
        check("2026-11-30T23:59:60Z", Some("2026-12-01T00:00:00Z"));
        check("0000-01-01T00:00:00Z", Some("0000-01-01T00:00:00Z"));
        check("9999-12-31T23:59:59Z", Some("9999-12-31T23:59:59Z"));
        check("2024-02-29T00:00:00Z", Some("2024-02-29T00:00:00Z"));
    }

    #[test]
    fn what_only_looks_like_a_time_is_refused() {
        for text in [
            "",
            "2026-12-01",
            "2026-12-01 11:58:00Z",
            "2026-12-01T11:58:00",
            "2026-12-01T11:58Z",
            "2026-12-01T11:58:00.Z",
            "2026-12-01T11:58:00.0000000000Z",
            "2026-12-01T11:58:00+0000",
            "2026-12-01T11:58:00+00",
            "2026-12-01T24:00:00Z",
            "2026-12-01T11:60:00Z",
            "2026-12-01T11:58:61Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-12-00T00:00:00Z",
            "2026-12-0\u{9e7}T11:58:00Z",
            "1796126280000",
            "2026-12-01T11:58:00ZZ",
            "+026-12-01T11:58:00Z",
            "9999-12-31T23:59:60Z",
            "0000-01-01T00:00:00+00:01",
            "2026-12-01T11:58:00+24:00",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn basic_offsets_are_read_only_where_asked_for() {
        let jira = "2026-12-01T11:58:55.000+0000";
        assert_eq!(Timestamp::parse_rfc3339(jira), None);
        assert_eq!(Timestamp::parse_iso8601(jira).unwrap().to_string(), "2026-12-01T11:58:55Z");
        assert_eq!(Timestamp::parse_iso8601("2026-12-01T11:58:55-01:30").unwrap().to_string(), "2026-12-01T13:28:55Z");
    }

    #[test]
    fn every_day_of_400_years_agrees_with_an_independent_library() {
        let mut date = jiff::civil::date(1900, 1, 1);
        while date.year() < 2300 {
            let ours = Timestamp::parse_rfc3339(&format!("{date}T00:00:00Z")).unwrap();
            let theirs: jiff::Timestamp = format!("{date}T00:00:00Z").parse().unwrap();
            assert_eq!(ours.unix_seconds(), theirs.as_second());
            assert_eq!(ours.to_string(), theirs.to_string());
            date = date.tomorrow().unwrap();
        }
    }

    #[test]
    fn arithmetic_saturates_at_the_ends() {
        let end = Timestamp::parse_rfc3339("9999-12-31T23:59:59Z").unwrap();
        assert_eq!(end.saturating_add_millis(i64::MAX), end);
        let start = Timestamp::parse_rfc3339("0000-01-01T00:00:00Z").unwrap();
        assert_eq!(start.saturating_add_millis(i64::MIN), start);
        assert_eq!(end.saturating_add_millis(-1000).millis_since(end), -1000);
    }
}
