//! How a record lies in memory: the changelog's protobuf without what repeats.
//!
//! A million requests share a few tools, their times lie close together, and a trace context is 25 bytes that
//! HTTP spells in 55 characters. This form leaves that out and takes two thirds of the changelog's. It never
//! leaves the process, so it has no version.
//!
//! ```text
//! id            length (varint), text: first, so that a record is compared without being decoded
//! flags         one byte, see the constants
//! tool          number of its name (varint); 0, length and text where the table of names is full
//! version, attempt, attempts, held                                                  varints
//! first issued  milliseconds since the epoch; every later time relative to it       zigzag varints
//! issued, deadline
//! announcement  8 bytes
//! arguments     length, bytes
//! route         three texts, where its flag is set
//! traceparent   25 bytes or a text, as its flags say
//! rpc id        a text, where its flag is set
//! state         its tag, then what belongs to it; an optional part has a byte 0 or 1 before it
//! ```

use super::binding::{Binding, Closed, State};
use crate::time::Timestamp;
use crate::wire::digest::push_hex;
use crate::wire::v1::Route;
use prost::encoding::{decode_varint, encode_varint};
use std::collections::HashMap;

const HAS_ROUTE: u8 = 1;
const HAS_RPC_ID: u8 = 2;
const TRACEPARENT_PACKED: u8 = 4;
const TRACEPARENT_TEXT: u8 = 8;

/// So many names of tools are kept once; whatever comes beyond stays in its record, so that a dispatcher that
/// invents names fills no table that is never emptied.
const NAMES_MAX: usize = 4096;

/// The names of tools, by number.
#[derive(Debug, Default)]
pub(super) struct Names {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u64>,
}

impl Names {
    /// From 1; `None` where the table is full.
    fn number(&mut self, name: &str) -> Option<u64> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        if self.texts.len() == NAMES_MAX {
            return None;
        }
        self.texts.push(name.into());
        self.numbers.insert(name.into(), self.texts.len() as u64);
        Some(self.texts.len() as u64)
    }

    fn text(&self, number: u64) -> Option<&str> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.texts.get(index).map(|text| &**text)
    }
}

/// The id of an encoded record.
pub(super) fn id_of(record: &[u8]) -> &[u8] {
    let mut rest = record;
    let length = decode_varint(&mut rest).ok().and_then(|length| usize::try_from(length).ok());
    length.and_then(|length| rest.get(..length)).unwrap_or_default()
}

/// Encodes a record. Times are kept to the millisecond, as in the changelog.
pub(super) fn encode(known: &Binding, names: &mut Names) -> Box<[u8]> {
    let mut out = Writer { bytes: Vec::with_capacity(256), epoch_ms: known.first_issued_at.unix_millis() };
    let packed = known.traceparent.as_deref().and_then(pack_traceparent);
    out.text(&known.request_id);
    out.bytes.push(flags(known, packed.is_some()));
    match names.number(&known.tool) {
        Some(number) => out.number(number),
        None => {
            out.number(0);
            out.text(&known.tool);
        }
    }
    for count in [known.contract_version, known.attempt, known.attempts, known.held] {
        out.number(count.into());
    }
    out.number(zigzag(out.epoch_ms));
    out.time(known.issued_at);
    out.time(known.deadline);
    out.bytes.extend_from_slice(&known.announcement);
    out.blob(&known.arguments);
    if known.route != Route::default() {
        for part in [&known.route.agent, &known.route.session, &known.route.reply_key] {
            out.text(part);
        }
    }
    match (packed, &known.traceparent) {
        (Some(packed), _) => out.bytes.extend_from_slice(&packed),
        (None, Some(text)) => out.text(text),
        (None, None) => {}
    }
    if let Some(rpc_id) = &known.rpc_id {
        out.text(rpc_id);
    }
    out.state(&known.state);
    // Copied to its length: shrinking in place would leave a hole behind each record.
    out.bytes.as_slice().into()
}

fn flags(known: &Binding, is_packed: bool) -> u8 {
    let traceparent = match (is_packed, &known.traceparent) {
        (true, _) => TRACEPARENT_PACKED,
        (false, Some(_)) => TRACEPARENT_TEXT,
        (false, None) => 0,
    };
    let route = if known.route == Route::default() { 0 } else { HAS_ROUTE };
    traceparent | route | if known.rpc_id.is_some() { HAS_RPC_ID } else { 0 }
}

/// Decodes what [`encode`] has made with the same names; `None` for anything else.
pub(super) fn decode(record: &[u8], names: &Names) -> Option<Binding> {
    let mut input = Reader { bytes: record, epoch_ms: 0 };
    let request_id = input.text()?.into();
    let flags = input.byte()?;
    let tool = match input.number()? {
        0 => input.text()?.into(),
        number => names.text(number)?.into(),
    };
    let (contract_version, attempt) = (input.count()?, input.count()?);
    let (attempts, held) = (input.count()?, input.count()?);
    input.epoch_ms = unzigzag(input.number()?);
    Some(Binding {
        request_id,
        tool,
        contract_version,
        attempt,
        attempts,
        held,
        first_issued_at: Timestamp::from_unix_millis(input.epoch_ms)?,
        issued_at: input.time()?,
        deadline: input.time()?,
        announcement: *input.take(8)?.first_chunk()?,
        arguments: input.blob()?.into(),
        route: if flags & HAS_ROUTE == 0 { Route::default() } else { input.route()? },
        traceparent: input.traceparent(flags)?,
        rpc_id: if flags & HAS_RPC_ID == 0 { None } else { Some(input.text()?.into()) },
        state: input.state()?,
    })
}

struct Writer {
    bytes: Vec<u8>,
    epoch_ms: i64,
}

impl Writer {
    fn number(&mut self, number: u64) {
        encode_varint(number, &mut self.bytes);
    }

    fn blob(&mut self, blob: &[u8]) {
        self.number(blob.len() as u64);
        self.bytes.extend_from_slice(blob);
    }

    fn text(&mut self, text: &str) {
        self.blob(text.as_bytes());
    }

    fn time(&mut self, time: Timestamp) {
        self.number(zigzag(time.unix_millis() - self.epoch_ms));
    }

    fn option<T>(&mut self, option: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.bytes.push(option.is_some().into());
        if let Some(value) = option {
            write(self, value);
        }
    }

    fn state(&mut self, state: &State) {
        match state {
            State::Outstanding => self.bytes.push(0),
            State::AwaitingRetry { due, code, reason } => {
                self.bytes.push(1);
                self.option(*due, Self::time);
                self.text(code);
                self.text(reason);
            }
            State::Closed { how, at, digest, code, trim_at, forget_at } => {
                self.bytes.push(match how {
                    Closed::Accepted => 2,
                    Closed::Failed => 3,
                    Closed::Refused => 4,
                    Closed::Expired => 5,
                });
                self.time(*at);
                self.option(digest.as_ref(), |out, digest| out.bytes.extend_from_slice(digest));
                self.option(code.as_deref(), Self::text);
                self.option(*trim_at, Self::time);
                self.time(*forget_at);
            }
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    epoch_ms: i64,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u64> {
        decode_varint(&mut self.bytes).ok()
    }

    fn count(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn blob(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?.try_into().ok()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.blob()?).ok()
    }

    fn time(&mut self) -> Option<Timestamp> {
        Timestamp::from_unix_millis(self.epoch_ms.checked_add(unzigzag(self.number()?))?)
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.byte()? == 0 { Some(None) } else { read(self).map(Some) }
    }

    fn route(&mut self) -> Option<Route> {
        Some(Route { agent: self.text()?.into(), session: self.text()?.into(), reply_key: self.text()?.into() })
    }

    fn traceparent(&mut self, flags: u8) -> Option<Option<Box<str>>> {
        if flags & TRACEPARENT_PACKED != 0 {
            Some(Some(unpack_traceparent(self.take(PACKED)?).into()))
        } else if flags & TRACEPARENT_TEXT != 0 {
            Some(Some(self.text()?.into()))
        } else {
            Some(None)
        }
    }

    fn state(&mut self) -> Option<State> {
        let how = match self.byte()? {
            0 => return Some(State::Outstanding),
            1 => {
                let due = self.option(Self::time)?;
                return Some(State::AwaitingRetry { due, code: self.text()?.into(), reason: self.text()?.into() });
            }
            2 => Closed::Accepted,
            3 => Closed::Failed,
            4 => Closed::Refused,
            5 => Closed::Expired,
            _ => return None,
        };
        Some(State::Closed {
            how,
            at: self.time()?,
            digest: self.option(|input| input.take(32)?.first_chunk().copied())?,
            code: self.option(|input| input.text().map(Box::from))?,
            trim_at: self.option(Self::time)?,
            forget_at: self.time()?,
        })
    }
}

/// Small numbers of either sign become small varints.
const fn zigzag(number: i64) -> u64 {
    (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned()
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// Trace id, parent id and flags of a `traceparent` of version 00 (W3C Trace Context, section 3.2).
const PACKED: usize = 16 + 8 + 1;

/// `None` for a text that does not come back exactly as it was.
fn pack_traceparent(text: &str) -> Option<[u8; PACKED]> {
    let digits = text.strip_prefix("00-")?.bytes().filter(|byte| *byte != b'-');
    let mut packed = [0; PACKED];
    for (index, digit) in digits.enumerate() {
        let value = char::from(digit).to_digit(16)?;
        let byte = packed.get_mut(index / 2)?;
        *byte = *byte << 4 | u8::try_from(value).ok()?;
    }
    (unpack_traceparent(&packed) == text).then_some(packed)
}

fn unpack_traceparent(packed: &[u8]) -> String {
    let mut text = String::with_capacity(55);
    text.push_str("00-");
    let (trace, rest) = packed.split_at(16.min(packed.len()));
    let (parent, flags) = rest.split_at(8.min(rest.len()));
    push_hex(&mut text, trace);
    text.push('-');
    push_hex(&mut text, parent);
    text.push('-');
    push_hex(&mut text, flags);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times() -> impl Strategy<Value = Timestamp> {
        let ends = (-62_167_219_200_000i64, 253_402_300_799_999i64);
        prop_oneof![Just(ends.0), Just(ends.1), Just(0), ends.0..=ends.1, 1_796_126_400_000..1_796_212_800_000i64]
            .prop_map(|millis| Timestamp::from_unix_millis(millis).unwrap())
    }

    fn states() -> impl Strategy<Value = State> {
        let how = prop::sample::select(vec![Closed::Accepted, Closed::Failed, Closed::Refused, Closed::Expired]);
        let code = || prop::option::of("[A-Z_]{0,20}".prop_map(Box::from));
        prop_oneof![
            Just(State::Outstanding),
            (prop::option::of(times()), "[A-Z_]{0,20}", "[A-Z_]{0,20}").prop_map(|(due, code, reason)| {
                State::AwaitingRetry { due, code: code.into(), reason: reason.into() }
            }),
            (how, times(), any::<Option<[u8; 32]>>(), code(), prop::option::of(times()), times()).prop_map(
                |(how, at, digest, code, trim_at, forget_at)| State::Closed {
                    how,
                    at,
                    digest,
                    code,
                    trim_at,
                    forget_at
                }
            ),
        ]
    }

    fn traceparents() -> impl Strategy<Value = Option<Box<str>>> {
        let texts =
            "(00|01|cc)-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-x)?|00-[0-9A-F]{32}-[0-9a-f-]{20}|[a-z0-9-]{0,60}";
        prop::option::of(texts.prop_map(Box::from))
    }

    fn bindings() -> impl Strategy<Value = Binding> {
        let texts = ("[A-Za-z0-9_.:-]{1,128}", "[a-z.]{1,100}", traceparents(), prop::option::of("[0-9]{1,256}"));
        let route = ("[a-zé]{0,9}", "[a-z]{0,9}", "[a-z]{0,9}");
        let counts = any::<[u32; 4]>();
        let bytes = (prop::collection::vec(any::<u8>(), 0..300), any::<[u8; 8]>());
        (texts, route, counts, [times(), times(), times()], bytes, states()).prop_map(
            |(texts, route, counts, times, bytes, state)| Binding {
                request_id: texts.0.into(),
                tool: texts.1.into(),
                contract_version: counts[0],
                attempt: counts[1],
                attempts: counts[2],
                held: counts[3],
                issued_at: times[0],
                first_issued_at: times[1],
                deadline: times[2],
                arguments: bytes.0.into(),
                route: Route { agent: route.0, session: route.1, reply_key: route.2 },
                traceparent: texts.2,
                rpc_id: texts.3.map(Box::from),
                announcement: bytes.1,
                state,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(known in bindings()) {
            let mut names = Names::default();
            let record = encode(&known, &mut names);
            prop_assert_eq!(id_of(&record), known.request_id.as_bytes());
            prop_assert_eq!(decode(&record, &names), Some(known));
        }

        #[test]
        fn other_bytes_are_no_record_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (id_of(&bytes).len(), decode(&bytes, &Names::default()));
        }
    }

    #[test]
    fn a_cut_record_is_none() {
        let mut names = Names::default();
        let record = encode(&crate::request::machine::tests::binding(), &mut names);
        for length in 0..record.len() {
            assert_eq!(decode(&record[..length], &names), None);
        }
    }

    #[test]
    fn a_trace_context_takes_25_bytes_where_it_comes_back_exactly() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(pack_traceparent(text).map(|packed| unpack_traceparent(&packed)).as_deref(), Some(text));
        for other in
            ["", "00-", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", &text[..54], &text.to_uppercase()]
        {
            assert_eq!(pack_traceparent(other), None, "{other}");
        }
    }

    #[test]
    fn names_beyond_the_table_stay_in_their_records() {
        let mut names = Names::default();
        for n in 0..NAMES_MAX + 5 {
            let known = Binding { tool: format!("tool.n{n}").into(), ..crate::request::machine::tests::binding() };
            let record = encode(&known, &mut names);
            assert_eq!(decode(&record, &names), Some(known));
        }
        assert_eq!(names.texts.len(), NAMES_MAX);
    }
}
