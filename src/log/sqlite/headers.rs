//! Headers as one blob: for each, a name and a value, both with their length in front (32 bits, little-endian).
//!
//! A value that is absent, which Kafka tells from an empty one, has the length `u32::MAX`.

use crate::log::record::Header;

const ABSENT: u32 = u32::MAX;

/// The blob of the headers; `None` when there are none, which most of our records are.
pub(super) fn encode(headers: &[Header]) -> Option<Vec<u8>> {
    if headers.is_empty() {
        return None;
    }
    let mut blob = Vec::new();
    for header in headers {
        put(&mut blob, header.name.as_bytes());
        match &header.value {
            Some(value) => put(&mut blob, value),
            None => blob.extend_from_slice(&ABSENT.to_le_bytes()),
        }
    }
    Some(blob)
}

fn put(blob: &mut Vec<u8>, bytes: &[u8]) {
    // A record is bounded to a few MiB, so its parts fit 32 bits.
    blob.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    blob.extend_from_slice(bytes);
}

/// Reads what [`encode`] wrote; `None` if the blob is damaged.
pub(super) fn decode(mut blob: &[u8]) -> Option<Vec<Header>> {
    let mut headers = Vec::new();
    while !blob.is_empty() {
        let name = take(&mut blob)??;
        let value = take(&mut blob)?;
        headers.push(Header { name: String::from_utf8(name.to_vec()).ok()?, value: value.map(<[u8]>::to_vec) });
    }
    Some(headers)
}

/// The next part; the inner `None` is an absent value, the outer one damage.
fn take<'a>(blob: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let (len, rest) = blob.split_first_chunk::<4>()?;
    *blob = rest;
    let len = u32::from_le_bytes(*len);
    if len == ABSENT {
        return Some(None);
    }
    let (part, rest) = blob.split_at_checked(len as usize)?;
    *blob = rest;
    Some(Some(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: Option<&[u8]>) -> Header {
        Header { name: name.to_owned(), value: value.map(<[u8]>::to_vec) }
    }

    #[test]
    fn keeps_order_repetition_and_the_difference_between_absent_and_empty() {
        let headers =
            vec![header("b", Some(b"1")), header("", None), header("b", Some(b"")), header("ä", Some(&[255]))];
        let blob = encode(&headers).expect("there are headers");
        assert_eq!(decode(&blob), Some(headers));
        assert_eq!(encode(&[]), None);
        assert_eq!(decode(&[]), Some(Vec::new()));
    }

    #[test]
    fn every_cut_of_a_blob_but_those_between_headers_is_damage() {
        let first = encode(&[header("name", Some(b"value"))]).expect("there is one");
        for cut in 1..first.len() {
            assert_eq!(decode(&first[..cut]), None, "cut at {cut}");
        }
        assert_eq!(decode(&ABSENT.to_le_bytes()), None, "a name is never absent");
    }
}
