use super::*;

const GOOD: [(&str, &str); 12] = [
    ("ce_specversion", "1.0"),
    ("ce_id", "e-1"),
    ("ce_source", "/connectors/ci"),
    ("ce_type", "com.example.tool.answered"),
    ("ce_requestid", "req-7f3a"),
    ("ce_tool", "ci.job_status"),
    ("ce_attempt", "2"),
    ("ce_httpstatus", "200"),
    ("ce_time", "2026-12-01T11:59:59.5Z"),
    ("content-type", "application/json"),
    ("upstream-X-Signature", "t=1,v1=00"),
    ("baggage", "dropped"),
];

type Owned = Vec<(String, Option<Vec<u8>>)>;

fn good() -> Owned {
    GOOD.iter().map(|(name, value)| ((*name).into(), Some(value.as_bytes().to_vec()))).collect()
}

fn with(name: &str, value: &[u8]) -> Owned {
    let mut headers = without(name);
    headers.push((name.into(), Some(value.to_vec())));
    headers
}

fn without(name: &str) -> Owned {
    good().into_iter().filter(|(known, _)| known != name).collect()
}

fn read(headers: &Owned) -> Result<ToolResponse, &'static str> {
    read_binary(headers.iter().map(|(name, value)| (name.as_str(), value.as_deref())), b"{}")
}

#[test]
fn a_binary_event_becomes_the_same_message_as_protobuf() {
    let expect = ToolResponse {
        request_id: "req-7f3a".into(),
        tool: "ci.job_status".into(),
        attempt: 2,
        body: b"{}".to_vec(),
        content_type: Some("application/json".into()),
        outcome: Some(TransportOutcome { outcome: Some(Outcome::HttpStatus(200)) }),
        received_at_unix_ms: 1_796_126_399_500,
        endpoint: String::new(),
        connector: "/connectors/ci".into(),
        connector_version: String::new(),
        headers: vec![Header { name: "x-signature".into(), value: "t=1,v1=00".into() }],
    };
    assert_eq!(read(&good()), Ok(expect));
}

#[test]
fn the_subject_stands_in_for_the_request_id() {
    let mut headers = with("ce_subject", b"req-subject");
    assert_eq!(read(&headers).unwrap().request_id, "req-7f3a");
    headers.retain(|(name, _)| name != "ce_requestid");
    assert_eq!(read(&headers).unwrap().request_id, "req-subject");
}

#[test]
fn every_transport_outcome_is_read_and_only_one_is() {
    let mut headers = without("ce_httpstatus");
    assert_eq!(read(&headers).unwrap().outcome, None);
    for (name, value, expect) in [
        ("ce_exitcode", "-9", Outcome::ExitCode(-9)),
        ("ce_rpcerror", "-32602", Outcome::RpcErrorCode(-32602)),
        ("ce_failure", "timeout", Outcome::Timeout(true)),
        ("ce_failure", "connection", Outcome::ConnectionFailed(true)),
    ] {
        headers.push((name.into(), Some(value.into())));
        assert_eq!(read(&headers).unwrap().outcome.unwrap().outcome, Some(expect));
        headers.pop();
        assert_eq!(read(&with(name, value.as_bytes())), Err("more than one transport outcome is given"));
    }
}

#[test]
fn hostile_headers_refuse_with_a_fixed_sentence() {
    for name in ["ce_specversion", "ce_id", "ce_source", "ce_type", "ce_requestid", "ce_tool", "ce_attempt"] {
        assert!(read(&without(name)).is_err(), "{name} is required");
    }
    let long = vec![b'a'; VALUE_BYTES_MAX + 1];
    for (name, value, detail) in [
        ("ce_specversion", "0.3".as_bytes(), "ce_specversion is not 1.0"),
        ("ce_id", b"", "a CloudEvents header is empty"),
        ("ce_id", b"\xff", "a CloudEvents header is not UTF-8"),
        ("ce_unknown", b"\xff", "a CloudEvents header is not UTF-8"),
        ("ce_tool", &long, "a CloudEvents header is longer than 4096 bytes"),
        ("upstream-x", &long, "a CloudEvents header is longer than 4096 bytes"),
        ("ce_attempt", b"+1", "ce_attempt is not a whole number"),
        ("ce_attempt", b"01", "ce_attempt is not a whole number"),
        ("ce_attempt", b"1.0", "ce_attempt is not a whole number"),
        ("ce_attempt", b"4294967296", "ce_attempt is not a whole number"),
        ("ce_httpstatus", b"two hundred", "ce_httpstatus is not a whole number"),
        ("ce_failure", b"canary", "ce_failure is neither timeout nor connection"),
        ("ce_time", b"yesterday", "ce_time is not RFC 3339"),
        ("content-type", b"application/CloudEvents+json", "structured and batched CloudEvents are not read"),
        ("content-type", b"application/cloudevents-batch+json", "structured and batched CloudEvents are not read"),
    ] {
        if name == "ce_failure" || name == "ce_httpstatus" {
            let mut headers = without("ce_httpstatus");
            headers.push((name.into(), Some(value.to_vec())));
            assert_eq!(read(&headers), Err(detail));
        } else {
            assert_eq!(read(&with(name, value)), Err(detail), "{name}");
        }
    }
    let mut null = good();
    null.push(("ce_note".into(), None));
    assert_eq!(read(&null), Err("a CloudEvents header is empty"));
}

#[test]
fn a_repeated_attribute_refuses_in_any_spelling() {
    for name in ["ce_id", "ce_tool", "CE_TOOL", "Content-Type"] {
        let mut headers = good();
        headers.push((name.into(), Some(b"x".to_vec())));
        assert_eq!(read(&headers), Err("a CloudEvents header was given more than once"), "{name}");
    }
    let mut foreign = good();
    foreign.extend([("baggage".to_string(), None), ("kafka_dlt-x".to_string(), Some(vec![0xff]))]);
    assert!(read(&foreign).is_ok(), "headers of others are ignored");
    foreign.extend(vec![("x".to_string(), None); RECORD_HEADERS_MAX]);
    assert_eq!(read(&foreign), Err("more than 128 record headers"));
}

#[test]
fn published_events_carry_the_required_attributes_once() {
    let event = Event {
        kind: EventType::ResultAccepted,
        id: "d-1",
        source: "/toolgate/main",
        subject: "req-7f3a",
        time: Timestamp::parse_rfc3339("2026-12-01T12:00:00Z").unwrap(),
        contract: Some("ci.job_status@2"),
        content_type: "application/json",
    };
    let text: Vec<_> = event
        .headers()
        .into_iter()
        .map(|(name, value)| format!("{name}={}", String::from_utf8(value).unwrap()))
        .collect();
    assert_eq!(
        text,
        [
            "content-type=application/json",
            "ce_specversion=1.0",
            "ce_id=d-1",
            "ce_source=/toolgate/main",
            "ce_type=dev.toolgate.result.accepted.v1",
            "ce_subject=req-7f3a",
            "ce_time=2026-12-01T12:00:00Z",
            "ce_dataschema=ci.job_status@2",
        ]
    );
    assert_eq!(Event { contract: None, ..event }.headers().len(), 7);
}

proptest::proptest! {
    #[test]
    fn any_headers_are_read_or_refused(
        headers in proptest::collection::vec(("(ce_|CE_|upstream-)?[a-z-]{0,8}", proptest::option::of(proptest::collection::vec(0u8.., 0..20))), 0..20),
    ) {
        let _ = read(&headers);
        let mut more = good();
        more.extend(headers);
        let _ = read(&more);
    }
}

#[test]
fn what_is_written_reads_back_as_the_same_message() {
    let outcomes = [
        Some(Outcome::HttpStatus(503)),
        Some(Outcome::ExitCode(-1)),
        Some(Outcome::RpcErrorCode(-32_000)),
        Some(Outcome::Timeout(true)),
        Some(Outcome::ConnectionFailed(true)),
        None,
    ];
    for outcome in outcomes {
        let full = ToolResponse {
            outcome: outcome.map(|outcome| TransportOutcome { outcome: Some(outcome) }),
            endpoint: "ci.example".into(),
            connector_version: "1.2".into(),
            ..read(&good()).unwrap()
        };
        let bare = ToolResponse { content_type: None, endpoint: String::new(), headers: Vec::new(), ..full.clone() };
        for message in [full, bare] {
            let headers = write_binary(&message, "e-1");
            let read = read_binary(headers.iter().map(|(name, value)| (name.as_str(), Some(value.as_bytes()))), b"{}");
            assert_eq!(read, Ok(message));
        }
    }
}
