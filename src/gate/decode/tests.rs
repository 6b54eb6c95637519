use prost::Message;

use super::*;
use crate::wire::v1::{Header, Route, ToolRequest};

fn response() -> ToolResponse {
    ToolResponse {
        request_id: "req-7f3a".into(),
        tool: "ci.job_status".into(),
        attempt: 1,
        body: b"canary".to_vec(),
        content_type: Some("application/json".into()),
        outcome: Transport::Http(200).to_message(),
        received_at_unix_ms: 1_796_126_399_000,
        endpoint: "https://ci.example/canary".into(),
        connector: "ci-connector".into(),
        connector_version: "1.2.3".into(),
        headers: vec![Header { name: "X-Canary".into(), value: "canary".into() }],
    }
}

fn decode(message: &ToolResponse) -> Result<RawResponse, DecodeError> {
    let key = message.request_id.as_bytes();
    decode_response(Encoding::Protobuf, Some(key), Some(&message.encode_to_vec()), [])
}

#[track_caller]
fn refused(change: impl FnOnce(&mut ToolResponse), detail: &str) {
    let mut message = response();
    change(&mut message);
    let error = decode(&message).unwrap_err();
    assert_eq!((error.reason(), error.detail), (Reason::UndecodableEvent, detail));
}

#[test]
fn a_response_keeps_what_was_sent() {
    let raw = decode(&response()).unwrap();
    assert_eq!((raw.request_id(), raw.tool(), raw.attempt()), ("req-7f3a", "ci.job_status", 1));
    assert_eq!(raw.body().expose(), b"canary");
    assert_eq!(raw.body().digest(), Digest::of(b"canary"));
    assert_eq!(raw.content_type(), Some("application/json"));
    assert_eq!(raw.transport(), Transport::Http(200));
    assert_eq!(raw.received_at().unwrap().to_string(), "2026-12-01T11:59:59Z");
    assert_eq!((raw.endpoint(), raw.connector()), ("https://ci.example/canary", "ci-connector"));
    assert_eq!(raw.connector_version(), "1.2.3");
    assert_eq!(raw.headers().only("x-canary"), Ok(Some("canary")));
}

#[test]
fn optional_parts_may_be_absent() {
    let bare = ToolResponse { request_id: "r".into(), tool: "t".into(), attempt: 1, ..ToolResponse::default() };
    let raw = decode(&bare).unwrap();
    assert!(raw.body().is_empty() && raw.headers().is_empty());
    assert_eq!((raw.content_type(), raw.received_at(), raw.transport()), (None, None, Transport::None));
    let empty = ToolResponse { content_type: Some(String::new()), ..bare };
    assert_eq!(decode(&empty).unwrap().content_type(), None);
}

#[test]
fn nothing_of_a_response_is_printed() {
    let raw = decode(&response()).unwrap();
    let printed = format!("{raw:?} {:?} {:?}", raw.body(), response());
    assert!(!printed.contains("canary") && !printed.contains("99, 97, 110"), "{printed}");
    assert!(printed.contains("RawBytes(6 bytes, sha256:"));
    for poison in ["canary".as_bytes(), b"\xac\xed\x00\x05canary"] {
        let error = decode_response(Encoding::Protobuf, Some(poison), Some(poison), []).unwrap_err();
        assert_eq!(format!("{error}"), "the value is not a ToolResponse");
        assert!(!format!("{error:?}").contains("canary"));
    }
}

#[test]
fn malformed_fields_are_undecodable() {
    let id = "the request id is malformed";
    refused(|m| m.request_id.clear(), "the request id is missing");
    for text in ["-a", "a b", "a/b", "é", "a\n", &"a".repeat(129)] {
        refused(|m| m.request_id = text.into(), id);
    }
    let tool = "the tool's name is malformed";
    refused(|m| m.tool.clear(), "the tool is missing");
    for text in ["A", "1a", ".a", "a.", "a..b", "a-b", "_a", "a.B", "a\0", &"a".repeat(101)] {
        refused(|m| m.tool = text.into(), tool);
    }
    refused(|m| m.attempt = 0, "the attempt is below 1");
    for millis in [-1, 253_402_300_800_000, i64::MAX, i64::MIN] {
        refused(|m| m.received_at_unix_ms = millis, "received_at is out of range");
    }
    let content_type = "the content type is longer than 255 bytes or holds a control character";
    refused(|m| m.content_type = Some("a".repeat(256)), content_type);
    refused(|m| m.content_type = Some("text/plain\r\nx: y".into()), content_type);
    refused(|m| m.endpoint = "a".repeat(513), "the endpoint is too long or holds a control character");
    refused(|m| m.connector = "\u{1b}[2J".into(), "the connector is too long or holds a control character");
    refused(
        |m| m.connector_version = "a".repeat(65),
        "the connector's version is too long or holds a control character",
    );
    refused(|m| m.headers = vec![Header { name: "n".into(), value: "v".into() }; 65], "more than 64 headers");
    refused(|m| m.headers[0].value = "a\0".into(), "a header's value holds a control character");
    refused(|m| m.headers[0].name.clear(), "a header's name is empty or longer than 128 bytes");
}

#[test]
fn ids_and_names_at_their_bounds_are_taken() {
    let good = ["a", "0", "req.J7q94MkP", "a:b-c_d.e", &"a".repeat(128)];
    for text in good {
        assert!(decode(&ToolResponse { request_id: text.into(), ..response() }).is_ok(), "{text}");
    }
    for text in ["a", "a1_", "review_status", "a.1.b_", &"a".repeat(100)] {
        assert!(decode(&ToolResponse { tool: text.into(), ..response() }).is_ok(), "{text}");
    }
}

#[test]
fn transports_read_back_and_nonsense_refuses() {
    for transport in [
        Transport::Http(100),
        Transport::Http(599),
        Transport::Exit(-9),
        Transport::Exit(255),
        Transport::RpcError(-32602),
        Transport::Timeout,
        Transport::Connection,
        Transport::None,
    ] {
        let message = ToolResponse { outcome: transport.to_message(), ..response() };
        assert_eq!(decode(&message).unwrap().transport(), transport);
    }
    let nonsense = |outcome| move |m: &mut ToolResponse| m.outcome = Some(TransportOutcome { outcome: Some(outcome) });
    for status in [0, 99, 600, 65_736, u32::MAX] {
        refused(nonsense(Outcome::HttpStatus(status)), "the HTTP status is not within 100 to 599");
    }
    refused(nonsense(Outcome::Timeout(false)), "a transport failure says false");
    refused(nonsense(Outcome::ConnectionFailed(false)), "a transport failure says false");
}

#[test]
fn key_and_value_must_be_there_and_agree() {
    let value = response().encode_to_vec();
    let detail = |key, value| decode_response(Encoding::Protobuf, key, value, []).unwrap_err().detail;
    assert_eq!(detail(Some(b"req-7f3a"), None), "the record has no value");
    assert_eq!(detail(None, Some(&value)), "the record's key is not the request id");
    assert_eq!(detail(Some(b"req-other"), Some(&value)), "the record's key is not the request id");
    assert_eq!(detail(Some(b""), Some(b"")), "the request id is missing");
}

#[test]
fn the_encoding_is_configured_and_never_sniffed() {
    let headers: [(&str, Option<&[u8]>); 7] = [
        ("ce_specversion", Some(b"1.0")),
        ("ce_id", Some(b"1")),
        ("ce_source", Some(b"/c")),
        ("ce_type", Some(b"t")),
        ("ce_subject", Some(b"req-7f3a")),
        ("ce_tool", Some(b"ci.job_status")),
        ("ce_attempt", Some(b"1")),
    ];
    let body = response().encode_to_vec();
    let event = decode_response(Encoding::CloudEvents, Some(b"req-7f3a"), Some(&body), headers).unwrap();
    assert_eq!(event.body().expose(), body, "a protobuf inside an event is a body");
    let error = decode_response(Encoding::Protobuf, Some(b"req-7f3a"), Some(b"{}"), headers).unwrap_err();
    assert_eq!(error.detail, "the value is not a ToolResponse");
    let error = decode_response(Encoding::CloudEvents, Some(b"req-7f3a"), Some(b"{}"), []).unwrap_err();
    assert_eq!(error.detail, "ce_specversion is missing");
}

fn request() -> ToolRequest {
    ToolRequest {
        request_id: "req-7f3a".into(),
        tool: "ci.job_status".into(),
        contract_version: 2,
        arguments: br#"{"project_id":"canary"}"#.to_vec(),
        issued_at_unix_ms: 1_796_126_370_000,
        deadline_unix_ms: 1_796_126_430_000,
        attempt: 1,
        route: Some(Route { agent: "a".into(), session: "s".into(), reply_key: "k".into() }),
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
        rpc_id: "1".into(),
    }
}

fn decode_announcement(message: &ToolRequest) -> Result<NewRequest, DecodeError> {
    decode_request(Some(message.request_id.as_bytes()), Some(&message.encode_to_vec()))
}

#[track_caller]
fn refused_request(change: impl FnOnce(&mut ToolRequest), detail: &str) {
    let mut message = request();
    change(&mut message);
    assert_eq!(decode_announcement(&message).unwrap_err().detail, detail);
}

#[test]
fn a_request_reads_back() {
    let read = decode_announcement(&request()).unwrap();
    assert_eq!(read.to_message(), request());
    assert_eq!(read.issued_at.to_string(), "2026-12-01T11:59:30Z");
    assert!(!format!("{read:?}").contains("canary"));
    let bare = ToolRequest {
        arguments: vec![],
        route: None,
        traceparent: String::new(),
        rpc_id: String::new(),
        contract_version: 0,
        ..request()
    };
    let read = decode_announcement(&bare).unwrap();
    assert_eq!(read.arguments, b"{}");
    assert_eq!((read.traceparent, read.rpc_id, read.route), (None, None, Route::default()));
}

#[test]
fn malformed_requests_are_undecodable() {
    refused_request(|m| m.request_id.clear(), "the request id is missing");
    refused_request(|m| m.tool = "Bad".into(), "the tool's name is malformed");
    refused_request(|m| m.attempt = 0, "the attempt is below 1");
    refused_request(|m| m.arguments = vec![b' '; 16_385], "the arguments are larger than 16 KiB");
    for millis in [0, -1, i64::MAX] {
        refused_request(|m| m.issued_at_unix_ms = millis, "issued_at is missing or out of range");
        refused_request(|m| m.deadline_unix_ms = millis, "the deadline is missing or out of range");
    }
    refused_request(|m| m.deadline_unix_ms = m.issued_at_unix_ms - 1, "the deadline is before issued_at");
    let route = "a part of the route is too long or holds a control character";
    refused_request(|m| m.route.as_mut().unwrap().agent = "a".repeat(129), route);
    refused_request(|m| m.route.as_mut().unwrap().reply_key = "\n".into(), route);
    assert_eq!(decode_request(Some(b"k"), None).unwrap_err().detail, "the record has no value");
    let value = request().encode_to_vec();
    assert_eq!(decode_request(Some(b"k"), Some(&value)).unwrap_err().detail, "the record's key is not the request id");
    assert_eq!(decode_request(Some(b"k"), Some(b"\xff")).unwrap_err().detail, "the value is not a ToolRequest");
}

#[test]
fn rpc_ids_are_json_strings_or_whole_numbers() {
    for id in ["1", "0", "-7", "\"1\"", "\"\"", "\"a\\u0062\"", "123456789012345678901234567890"] {
        let read = decode_announcement(&ToolRequest { rpc_id: id.into(), ..request() }).unwrap();
        assert_eq!(read.rpc_id.as_deref(), Some(id));
    }
    for id in ["01", "1.0", "1e3", "+1", "-", "null", "[1]", "\"", "\"a", "\"\\x\"", "\"a\"b\"", " 1", "\"\n\"", "a"] {
        refused_request(|m| m.rpc_id = id.into(), "the RPC id is neither a JSON string nor a whole number");
    }
    refused_request(|m| m.rpc_id = "1".repeat(257), "the RPC id is neither a JSON string nor a whole number");
}

#[test]
fn a_malformed_trace_context_is_dropped() {
    let trace = "0af7651916cd43dd8448eb211c80319c";
    for text in [
        "x",
        &format!("01-{trace}-b7ad6b7169203331-01"),
        &format!("00-{trace}-b7ad6b7169203331-01-x"),
        &format!("00-{trace}-0000000000000000-01"),
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        &format!("00-{}-b7ad6b7169203331-01", trace.to_uppercase()),
        &format!("00-{trace}-b7ad6b7169203331-0"),
        "00--b7ad6b7169203331-01",
    ] {
        let read = decode_announcement(&ToolRequest { traceparent: text.into(), ..request() }).unwrap();
        assert_eq!(read.traceparent, None, "{text}");
    }
}

#[test]
fn an_announcement_repeats_or_conflicts_by_its_content() {
    let first = decode_announcement(&request()).unwrap().announcement_digest();
    let traced = ToolRequest { traceparent: String::new(), ..request() };
    assert_eq!(decode_announcement(&traced).unwrap().announcement_digest(), first);
    let other = ToolRequest { arguments: b"{}".to_vec(), ..request() };
    assert_ne!(decode_announcement(&other).unwrap().announcement_digest(), first);
}

proptest::proptest! {
    #[test]
    fn random_bytes_never_panic(bytes: Vec<u8>, key: Option<Vec<u8>>) {
        let key = key.as_deref();
        let _ = decode_request(key, Some(&bytes));
        let _ = decode_response(Encoding::Protobuf, key, Some(&bytes), []);
        let _ = decode_response(Encoding::CloudEvents, key, Some(&bytes), [("ce_id", Some(bytes.as_slice()))]);
    }

    #[test]
    fn a_damaged_record_never_panics(index: proptest::sample::Index, byte: u8, cut: proptest::sample::Index) {
        let mut bytes = response().encode_to_vec();
        let at = index.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(bytes.len() + 1));
        let _ = decode_response(Encoding::Protobuf, Some(b"req-7f3a"), Some(&bytes), []);
    }
}
