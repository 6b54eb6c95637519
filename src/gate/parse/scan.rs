//! Scans over bytes, eight at a time where that pays. Safe code only: the compiler turns the
//! chunks into plain 64-bit arithmetic.

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// High bit of every byte of `word` that is zero; bytes above the first one may be marked wrongly.
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(LOW) & !word & HIGH
}

/// Index of the first byte from `at` on that ends a run of plain string characters: a quotation
/// mark, a reverse solidus or a control character. The end of `bytes` where there is none.
#[inline]
pub(super) fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quotes = zero_bytes(word ^ (LOW * b'"' as u64));
        let escapes = zero_bytes(word ^ (LOW * b'\\' as u64));
        let controls = word.wrapping_sub(LOW * 0x20) & !word & HIGH;
        let stops = quotes | escapes | controls;
        if stops != 0 {
            return at + stops.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// Index of the first byte from `at` on that is no JSON white space.
#[inline]
pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_found_at_every_place() {
        for length in 0..40 {
            for place in 0..length {
                for stop in 0..=255u8 {
                    let mut bytes = vec![b'a'; length];
                    bytes[place] = stop;
                    let is_stop = stop == b'"' || stop == b'\\' || stop < 0x20;
                    assert_eq!(string_end(&bytes, 0), if is_stop { place } else { length }, "{stop:#x} at {place}");
                }
            }
        }
    }

    #[test]
    fn scans_start_where_they_are_told() {
        assert_eq!(string_end(b"\"abcdefghij\"", 1), 11);
        assert_eq!(skip_space(b" \t\r\n x", 0), 5);
        assert_eq!(skip_space(b"   ", 0), 3);
        assert_eq!(skip_space(b"", 7), 7);
    }
}
