//! Durations and sizes as people write them in a file: a whole number and a unit.
//!
//! A unit is always required, so that nobody has to guess whether `30` meant seconds.

use std::time::Duration;

const DURATION_UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZE_UNITS: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// Reads `500ms`, `10s`, `5m`, `24h` or `30d`.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    scaled(text, &DURATION_UNITS).map(Duration::from_millis)
}

/// Reads `512B`, `64KiB`, `8MiB` or `1GiB`, in bytes.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    scaled(text, &SIZE_UNITS)
}

/// The shortest text that [`parse_duration`] reads back as `millis`.
pub(super) fn duration_text(millis: u64) -> String {
    shortest(millis, &DURATION_UNITS)
}

/// The shortest text that [`parse_size`] reads back as `bytes`.
pub(super) fn size_text(bytes: u64) -> String {
    shortest(bytes, &SIZE_UNITS)
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn shortest(value: u64, units: &[(&str, u64)]) -> String {
    let (name, factor) = units.iter().rev().find(|(_, f)| value != 0 && value.is_multiple_of(*f)).unwrap_or(&units[0]);
    format!("{}{name}", value / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_read_back_what_they_write() {
        for (text, millis) in [("500ms", 500), ("10s", 10_000), ("5m", 300_000), ("1d", 86_400_000), ("0ms", 0)] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(millis)), "{text}");
            assert_eq!(duration_text(millis), text);
        }
        for (text, bytes) in [("1B", 1), ("64KiB", 65_536), ("8MiB", 8 << 20), ("1GiB", 1 << 30)] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
            assert_eq!(size_text(bytes), text);
        }
    }

    #[test]
    fn a_number_without_a_unit_is_not_a_quantity() {
        for text in
            ["", "10", "s", "10 s", "-1s", "1.5s", "10S", "1h30m", "99999999999999999999s", "18446744073709551615d"]
        {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        for text in ["", "64", "64KB", "64kib", "KiB", "18446744073709551615GiB"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
