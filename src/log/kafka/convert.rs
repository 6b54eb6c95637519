//! Between librdkafka's messages and our records.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use rdkafka::message::{BorrowedHeaders, BorrowedMessage, Header as KafkaHeader, Headers, Message, OwnedHeaders};

use crate::log::record::{Header, Offset, Outgoing, Partition, Position, Record, Topic};

/// Stands for a header name that is not UTF-8. Nothing of ours has such a name.
pub(super) const UNREADABLE_NAME: &str = "unreadable-name";

/// Headers that are taken over: one more than any reader of ours looks at, so that it sees that there are too many. A record
/// of the largest size has room for millions.
const HEADERS_MAX: usize = 2 * crate::wire::headers::HEADERS_MAX + 1;

/// A message of `topic` as the worker sees it.
pub(super) fn record(topic: Topic, message: &BorrowedMessage<'_>) -> Record {
    Record {
        position: Position { topic, partition: Partition(message.partition()), offset: Offset(message.offset()) },
        timestamp_ms: message.timestamp().to_millis().unwrap_or(0),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers: message.headers().map_or_else(Vec::new, |headers| {
            let count = headers.count().min(HEADERS_MAX);
            (0..count).filter_map(|index| header(headers, index)).collect()
        }),
    }
}

thread_local! {
    static READING: Cell<bool> = const { Cell::new(false) };
}

/// The client library panics on a header name that is not UTF-8. Anybody who may write to an input could stop every
/// worker with one such record, so the panic ends here, and is not reported: it would be a line for each such name.
fn header(headers: &BorrowedHeaders, index: usize) -> Option<Header> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !READING.get() {
                before(info)
            }
        }));
    });
    let read = || {
        let header = headers.try_get(index)?;
        Some(Header { name: header.key.to_owned(), value: header.value.map(<[u8]>::to_vec) })
    };
    let unreadable = || Header { name: UNREADABLE_NAME.to_owned(), value: None };
    READING.set(true);
    let header = catch_unwind(AssertUnwindSafe(read));
    READING.set(false);
    header.unwrap_or_else(|_| Some(unreadable()))
}

/// The headers of a record to be written.
pub(super) fn headers(record: &Outgoing) -> Option<OwnedHeaders> {
    if record.headers.is_empty() {
        return None;
    }
    let empty = OwnedHeaders::new_with_capacity(record.headers.len());
    Some(
        record
            .headers
            .iter()
            .fold(empty, |all, header| all.insert(KafkaHeader { key: &header.name, value: header.value.as_deref() })),
    )
}
