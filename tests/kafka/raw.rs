//! Writes records as no client library would: the protocol by hand (Produce, version 7; record batches of version 2).

use std::io::{Read, Write};
use std::net::TcpStream;

/// A record, every part of which may be anything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raw {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// How a batch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    None,
    /// A frame of Zstandard (RFC 8878) whose one block is not compressed.
    Zstd,
}

/// CRC-32C, which a batch is protected by.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0x82F6_3B78 } else { crc >> 1 };
    let table: Vec<u32> = (0..256).map(|byte| (0..8).fold(byte, |crc, _| step(crc))).collect();
    !bytes.iter().fold(!0, |crc: u32, byte| (crc >> 8) ^ table[((crc ^ u32::from(*byte)) & 0xFF) as usize])
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn field(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    varint(out, bytes.map_or(-1, |bytes| bytes.len() as i64));
    out.extend_from_slice(bytes.unwrap_or_default());
}

fn record(raw: &Raw, delta: i64) -> Vec<u8> {
    let mut body = vec![0];
    varint(&mut body, 0);
    varint(&mut body, delta);
    field(&mut body, raw.key.as_deref());
    field(&mut body, raw.value.as_deref());
    varint(&mut body, raw.headers.len() as i64);
    for (name, value) in &raw.headers {
        field(&mut body, Some(name));
        field(&mut body, value.as_deref());
    }
    let mut out = Vec::new();
    field(&mut out, Some(&body));
    out
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 128 * 1024, "one block holds no more");
    let mut out = vec![0x28, 0xB5, 0x2F, 0xFD, 0xA0];
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(&((bytes.len() as u32) << 3 | 1).to_le_bytes()[..3]);
    out.extend(bytes);
    out
}

fn batch(records: &[Raw], codec: Codec) -> Vec<u8> {
    let now_ms = toolgate::worker::clock::now().unix_millis();
    let plain: Vec<u8> = records.iter().enumerate().flat_map(|(at, raw)| record(raw, at as i64)).collect();
    let (attributes, body) = match codec {
        Codec::None => (0i16, plain),
        Codec::Zstd => (4, zstd(&plain)),
    };
    let mut covered = attributes.to_be_bytes().to_vec();
    covered.extend((records.len() as i32 - 1).to_be_bytes());
    covered.extend(now_ms.to_be_bytes());
    covered.extend(now_ms.to_be_bytes());
    // No producer id, no epoch, no sequence.
    covered.extend([0xFF; 14]);
    covered.extend((records.len() as i32).to_be_bytes());
    covered.extend(body);
    let mut out = 0i64.to_be_bytes().to_vec();
    out.extend((covered.len() as i32 + 9).to_be_bytes());
    out.extend((-1i32).to_be_bytes());
    out.push(2);
    out.extend(crc32c(&covered).to_be_bytes());
    out.extend(covered);
    out
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as i16).to_be_bytes());
    out.extend(text.as_bytes());
}

/// Writes one batch to the first partition of a topic and returns the offset of its first record.
pub(crate) fn write(servers: &str, topic: &str, records: &[Raw], codec: Codec) -> i64 {
    let batch = batch(records, codec);
    let mut body = Vec::new();
    [0i16, 7].iter().for_each(|number| body.extend(number.to_be_bytes()));
    body.extend(1i32.to_be_bytes());
    text(&mut body, "raw");
    body.extend((-1i16).to_be_bytes());
    body.extend((-1i16).to_be_bytes());
    [20_000i32, 1].iter().for_each(|number| body.extend(number.to_be_bytes()));
    text(&mut body, topic);
    [1i32, 0, batch.len() as i32].iter().for_each(|number| body.extend(number.to_be_bytes()));
    body.extend(batch);
    let mut stream = TcpStream::connect(servers).expect("the broker listens");
    stream.write_all(&(body.len() as i32).to_be_bytes()).and_then(|()| stream.write_all(&body)).expect("it reads");
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("it answers");
    let mut answer = vec![0; i32::from_be_bytes(length) as usize];
    stream.read_exact(&mut answer).expect("it answers");
    // Correlation, one topic with its name, one partition with its index; then error and offset.
    let at = 4 + 4 + 2 + topic.len() + 4 + 4;
    let error = i16::from_be_bytes([answer[at], answer[at + 1]]);
    assert_eq!(error, 0, "{topic}: the broker refuses the batch");
    i64::from_be_bytes(answer[at + 2..at + 10].try_into().expect("eight bytes"))
}
