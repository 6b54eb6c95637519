//! `Debug` for messages that carry text of a response: lengths and our own codes, nothing else.

use std::fmt;

use super::v1::{Header, PlainPayload, QuarantineRecord, ToolResponse};

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header").field("value_bytes", &self.value.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for PlainPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainPayload").field("bytes", &self.data.len()).finish()
    }
}

impl fmt::Debug for ToolResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolResponse")
            .field("attempt", &self.attempt)
            .field("body_bytes", &self.body.len())
            .field("outcome", &self.outcome)
            .field("headers", &self.headers.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for QuarantineRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuarantineRecord")
            .field("id", &self.id)
            .field("reason", &self.reason)
            .field("stage", &self.stage)
            .field("source", &self.source)
            .field("payload_bytes", &self.payload_bytes)
            .finish_non_exhaustive()
    }
}
