//! Upstream headers, made comparable once: lower-case names, bounded values, no control characters.

use std::fmt;

use super::v1;

/// Headers that one response may carry.
pub const HEADERS_MAX: usize = 64;
/// Bytes of a header's name.
pub const NAME_BYTES_MAX: usize = 128;
/// Bytes of a header's value.
pub const VALUE_BYTES_MAX: usize = 4096;

/// A response's allow-listed upstream headers in their order. Their text is the upstream's: it
/// goes to signatures, the adapter's table and quarantine, and is printed nowhere.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(Box<str>, Box<str>)>);

impl Headers {
    /// Checks and normalises headers; the error is a fixed sentence.
    pub fn new<N, V>(headers: impl IntoIterator<Item = (N, V)>) -> Result<Self, &'static str>
    where
        N: Into<String>,
        V: Into<String>,
    {
        let mut checked = Vec::new();
        for (name, value) in headers {
            if checked.len() == HEADERS_MAX {
                return Err("more than 64 headers");
            }
            checked.push((check_name(name.into())?, check_value(value.into())?));
        }
        Ok(Self(checked))
    }

    /// Every value of `name`, which is given in lower case.
    pub fn all<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h str> {
        self.0.iter().filter(move |(known, _)| **known == *name).map(|(_, value)| &**value)
    }

    /// The value of `name`, given in lower case: `Ok(None)` where it is absent, an error where it
    /// is given more than once, since readers would differ in which one they believe.
    pub fn only<'h>(&'h self, name: &str) -> Result<Option<&'h str>, RepeatedHeader> {
        let mut values = self.all(name);
        let first = values.next();
        if values.next().is_some() { Err(RepeatedHeader) } else { Ok(first) }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As the quarantine record keeps them.
    pub fn to_messages(&self) -> Vec<v1::Header> {
        self.0.iter().map(|(name, value)| v1::Header { name: (**name).into(), value: (**value).into() }).collect()
    }
}

/// A header that must stand alone was given more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a header was given more than once")]
pub struct RepeatedHeader;

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Headers({})", self.len())
    }
}

/// RFC 9110, section 5.6.2: a name is a token.
fn check_name(mut name: String) -> Result<Box<str>, &'static str> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err("a header's name is empty or longer than 128 bytes");
    }
    if !name.bytes().all(token) {
        return Err("a header's name is not a token");
    }
    name.make_ascii_lowercase();
    Ok(name.into())
}

fn check_value(value: String) -> Result<Box<str>, &'static str> {
    if value.len() > VALUE_BYTES_MAX {
        return Err("a header's value is longer than 4096 bytes");
    }
    if value.chars().any(char::is_control) {
        return Err("a header's value holds a control character");
    }
    Ok(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_compare_without_case_and_repeats_are_seen() {
        let headers = Headers::new([("X-Sig", "a"), ("x-other", "b"), ("x-SIG", "c")]).unwrap();
        assert_eq!(headers.all("x-sig").collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(headers.only("x-sig"), Err(RepeatedHeader));
        assert_eq!(headers.only("x-other"), Ok(Some("b")));
        assert_eq!(headers.only("x-none"), Ok(None));
        assert_eq!(headers.to_messages()[0].name, "x-sig");
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let long = "v".repeat(VALUE_BYTES_MAX + 1);
        for (name, value) in [
            ("", "v"),
            ("n n", "v"),
            ("n:", "v"),
            ("n\n", "v"),
            ("\u{fc}", "v"),
            ("n", "v\r\nset-cookie: x"),
            ("n", "v\u{0}"),
            ("n", "v\u{85}"),
            ("n", &long),
        ] {
            assert!(Headers::new([(name, value)]).is_err(), "{name:?}");
        }
        assert!(Headers::new(vec![("n", "v"); HEADERS_MAX]).is_ok());
        assert!(Headers::new(vec![("n", "v"); HEADERS_MAX + 1]).is_err());
        assert!(Headers::new([("n".repeat(NAME_BYTES_MAX + 1), "v")]).is_err());
    }

    #[test]
    fn nothing_of_a_header_is_printed() {
        let headers = Headers::new([("x-canary", "canary")]).unwrap();
        assert_eq!(format!("{headers:?}"), "Headers(1)");
    }
}
