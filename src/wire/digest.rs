//! SHA-256 digests, written `sha256:<hex>` wherever people or JSON see them.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads the raw digest of a record; `None` unless it is 32 bytes long.
    pub fn from_slice(raw: &[u8]) -> Option<Self> {
        raw.try_into().ok().map(Self)
    }

    /// The 32 raw bytes, as records carry them.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The raw bytes in a vector of their own, for a record.
    pub fn to_vec(self) -> Vec<u8> {
        self.0.to_vec()
    }
}

/// Appends two lower-case hexadecimal digits for each byte. By way of the formatter each byte costs some 20 ns, and
/// several digests and trace contexts are written for every response.
pub fn push_hex(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
}

/// `sha256:` and 64 lower-case hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(71);
        text.push_str("sha256:");
        push_hex(&mut text, &self.0);
        f.write_str(&text)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_are_those_of_the_formatter() {
        let all: Vec<u8> = (0..=255).collect();
        let mut text = String::new();
        push_hex(&mut text, &all);
        assert_eq!(text, all.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }

    #[test]
    fn the_digest_of_nothing_is_the_published_one() {
        let nothing = Digest::of(b"");
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(nothing.to_string(), text);
        assert_eq!(format!("{nothing:?}"), text);
        assert_eq!(Digest::from_slice(&nothing.to_vec()), Some(nothing));
        assert_eq!(Digest::from_slice(&nothing.as_bytes()[1..]), None);
    }
}
