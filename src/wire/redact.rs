//! `Debug` for messages that carry text of a response: lengths and our own codes, nothing else.

use std::fmt;

use super::v1::quarantine_record::Payload;
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

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Payload::Plain(plain) => plain.fmt(f),
            Payload::Sealed(sealed) => {
                f.debug_struct("SealedPayload").field("bytes", &sealed.ciphertext.len()).finish()
            }
            Payload::Omitted(omitted) => omitted.fmt(f),
        }
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

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::super::v1::{Diagnosis, PayloadScope, SourcePosition};
    use super::*;

    #[test]
    fn a_quarantine_record_reads_back_and_prints_nothing_of_the_response() {
        let header = Header { name: "x-canary".into(), value: "canary".into() };
        let record = QuarantineRecord {
            id: "q-1".into(),
            request_id: "canary".into(),
            tool: "ci.job_status".into(),
            reason: "SCHEMA_VIOLATION".into(),
            stage: "validate".into(),
            diagnosis: Some(Diagnosis { keyword: "enum".into(), byte_offset: Some(0), ..Diagnosis::default() }),
            source: Some(SourcePosition { topic: "tool.responses".into(), partition: 3, offset: 7 }),
            payload: Some(Payload::Plain(PlainPayload { data: b"canary".to_vec() })),
            scope: PayloadScope::Body.into(),
            payload_bytes: 6,
            content_type: Some("text/canary".into()),
            headers: vec![header.clone()],
            endpoint: "https://canary.example".into(),
            ..QuarantineRecord::default()
        };
        assert_eq!(QuarantineRecord::decode(record.encode_to_vec().as_slice()), Ok(record.clone()));
        let printed = format!("{record:?} {header:?} {:?}", record.payload);
        assert!(printed.contains("SCHEMA_VIOLATION") && printed.contains("tool.responses"), "{printed}");
        assert!(!printed.contains("canary") && !printed.contains("99, 97, 110"), "{printed}");
    }
}
