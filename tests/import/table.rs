//! The sources: what is imported from which file, an answer that passes, and one that does not.

/// One import.
pub(crate) struct Row {
    pub file: &'static str,
    /// The MCP tool, or the OpenAPI operation.
    pub what: &'static str,
    pub without: &'static [&'static str],
    /// The request's arguments, as JSON.
    pub arguments: &'static str,
    /// An answer that is accepted, as JSON.
    pub accept: &'static str,
    /// What makes it refused: a pointer and the value there, as JSON.
    pub reject: (&'static str, &'static str),
    pub reason: &'static str,
}

const fn row(
    file: &'static str,
    what: &'static str,
    arguments: &'static str,
    accept: &'static str,
    reject: (&'static str, &'static str),
    reason: &'static str,
) -> Row {
    Row { file, what, without: &[], arguments, accept, reject, reason }
}

const SCHEMA: &str = "SCHEMA_VIOLATION";
const ADAPTER: &str = "ADAPTER_MISMATCH";
const BINDING: &str = "BINDING_MISMATCH";

pub(crate) const ROWS: &[Row] = &[
    row(
        "mcp-github.json",
        "get_workflow_run",
        r#"{"id": 812}"#,
        r#"{"id": 812, "name": "nightly", "status": "completed", "conclusion": null, "head_sha": "4be1f0c2d3a495867788990a1b2c3d4e5f607182", "updated_at": "2026-12-01T11:59:00Z", "surprise": {}}"#,
        ("/conclusion", "\"neutral\""),
        SCHEMA,
    ),
    row(
        "mcp-github.json",
        "search-issues",
        r#"{}"#,
        r#"{"total_count": 1, "items": [{"number": 7, "title": "It breaks", "state": "open", "labels": ["bug"]}]}"#,
        ("/items/0/state", "\"merged\""),
        SCHEMA,
    ),
    row(
        "mcp-filesystem.json",
        "get_file_info",
        r#"{"path": "a/b.txt"}"#,
        r#"{"path": "a/b.txt", "size": 12, "isDirectory": false, "permissions": "644"}"#,
        ("/path", "\"a/c.txt\""),
        BINDING,
    ),
    row(
        "mcp-filesystem.json",
        "list_directory",
        r#"{}"#,
        r#"{"entries": [{"name": "src", "kind": "directory"}]}"#,
        ("/entries/0/kind", "\"socket\""),
        SCHEMA,
    ),
    row(
        "mcp-weather.json",
        "getForecast",
        r#"{"station": "KSFO"}"#,
        r#"{"station": "KSFO", "temperature": 11.5, "conditions": "Fog", "periods": [{"start": "2026-12-01T11:59:00Z", "rain": false}]}"#,
        ("/temperature", "61"),
        SCHEMA,
    ),
    Row {
        without: &["/message/thread"],
        ..row(
            "mcp-slack.json",
            "slack_post_message",
            r#"{"channel": "C012345678"}"#,
            r#"{"ok": true, "channel": "C012345678", "ts": "1760000000.000100"}"#,
            ("/ok", "false"),
            SCHEMA,
        )
    },
    row(
        "mcp-jira.json",
        "jira.getIssue",
        r#"{"key": "OPS-12"}"#,
        r#"{"id": "10012", "key": "OPS-12", "fields": {"summary": "Disk full", "status": {"name": "Open", "statusCategory": "new"}, "priority": {"name": "High"}, "duedate": null}}"#,
        ("/fields/priority/name", "\"Urgent\""),
        SCHEMA,
    ),
    row(
        "mcp-postgres.json",
        "table_stats",
        r#"{"schema": "public", "table": "orders"}"#,
        r#"{"schema": "public", "table": "orders", "rows": 10, "last_vacuum": null, "columns": [{"name": "id", "type": "integer"}]}"#,
        ("/rows", "-1"),
        SCHEMA,
    ),
    row(
        "mcp-kubernetes.json",
        "deployment_status",
        r#"{"namespace": "shop", "name": "web"}"#,
        r#"{"apiVersion": "apps/v1", "metadata": {"name": "web", "namespace": "shop", "generation": 4}, "status": {"observedGeneration": 4, "replicas": 3}}"#,
        ("/metadata/name", "\"Web\""),
        SCHEMA,
    ),
    row(
        "mcp-sentry.json",
        "get_issue_details",
        r#"{"issueId": "42"}"#,
        r#"{"issueId": "42", "level": "error", "event": {"kind": "error", "exception": "OutOfMemory"}, "count": 3}"#,
        ("/event/kind", "\"csp\""),
        SCHEMA,
    ),
    row(
        "mcp-calendar.json",
        "find-free-slots",
        r#"{"calendar_id": "a@b.example"}"#,
        r#"{"calendar_id": "a@b.example", "slots": [{"start": "2026-12-01T12:00:00Z", "end": "2026-12-01T13:00:00Z", "score": 4.5}]}"#,
        ("/slots/0/score", "4.6"),
        SCHEMA,
    ),
    row(
        "mcp-browser.json",
        "page_status",
        r#"{"url": "https://example.com/"}"#,
        r#"{"url": "https://example.com/", "status": 200, "redirected": false}"#,
        ("/status", "99"),
        SCHEMA,
    ),
    row(
        "mcp-browser.json",
        "page_timing",
        r#"{"url": "https://example.com/"}"#,
        r#"{"url": "https://example.com/", "load_ms": 312.5, "phase": "load"}"#,
        ("/phase", "\"paint\""),
        SCHEMA,
    ),
    row(
        "openapi-github.yaml",
        "pulls/get",
        r#"{"number": 42}"#,
        r#"{"number": 42, "state": "open", "merged": false, "mergeable": null, "merged_at": null, "user": {"login": "keel", "id": 1}, "head": {"sha": "4be1f0c2d3a495867788990a1b2c3d4e5f607182", "ref": "fix"}, "labels": [{"name": "bug", "color": "ff0000"}]}"#,
        ("/user", "null"),
        ADAPTER,
    ),
    row(
        "openapi-github.yaml",
        "issues/list",
        r#"{}"#,
        r#"[{"number": 1, "state": "open", "title": "It breaks", "user": {"login": "keel", "id": 1}}]"#,
        ("/0/state", "\"all\""),
        SCHEMA,
    ),
    row(
        "openapi-stripe.json",
        "GetRefundsRefund",
        r#"{}"#,
        r#"{"id": "re_3MmlLrLkdIwHu7ix", "object": "refund", "amount": 100, "currency": "usd", "created": 1700, "charge": "ch_3MmlLrLkdIwHu7ix", "status": null}"#,
        ("/charge", "{}"),
        ADAPTER,
    ),
    row(
        "openapi-jira.json",
        "getTransitions",
        r#"{}"#,
        r#"{"transitions": [{"id": "11", "name": "Start", "secret": "no", "to": {"id": "3", "name": "Doing"}}]}"#,
        ("/transitions/0/id", "\"x\""),
        SCHEMA,
    ),
    row(
        "openapi-petstore.yaml",
        "GET /pets/{petId}",
        r#"{"petId": 3}"#,
        r#"{"petId": 3, "petType": "cat", "name": "Mio", "indoor": true, "lives": 9}"#,
        ("/petType", "\"dog\""),
        SCHEMA,
    ),
    row(
        "openapi-kubernetes.json",
        "readCoreV1NamespacedPod",
        r#"{}"#,
        r#"{"kind": "Pod", "metadata": {"name": "web-1", "namespace": "shop"}, "status": {"phase": "Running", "podIP": "10.0.0.1"}}"#,
        ("/status/phase", "\"Gone\""),
        SCHEMA,
    ),
    row(
        "openapi-pagerduty.yaml",
        "getIncident",
        r#"{}"#,
        r#"{"incident": {"id": "Q2K78SNJ5U1VE1", "status": "resolved", "created_at": "2026-12-01T11:59:00Z", "title": "Disk full"}}"#,
        ("/incident/status", "\"snoozed\""),
        SCHEMA,
    ),
    row(
        "openapi-weather.yaml",
        "station_observation_latest",
        r#"{}"#,
        r#"{"stationId": "KSFO", "timestamp": "2026-12-01T11:59:00Z", "temperature": {"unitCode": "wmo:degC", "value": null}, "windSpeed": {"unitCode": "wmo:km_h", "value": 3.5}}"#,
        ("/temperature/unitCode", "\"F\""),
        SCHEMA,
    ),
    row(
        "openapi-slack.json",
        "conversations_info",
        r#"{}"#,
        r#"{"ok": true, "channel": {"id": "C012345678", "name": "ops", "created": 1760000000}}"#,
        ("/channel/created", "4102444800"),
        SCHEMA,
    ),
    Row {
        without: &["/replacement"],
        ..row(
            "openapi-registry.json",
            "getPackage",
            r#"{"name": "left-pad"}"#,
            r#"{"name": "left-pad", "latest": "1.3.0", "license": "BSD-3-Clause", "versions": ["1.2.0"]}"#,
            ("/license", "\"GPL-3.0\""),
            SCHEMA,
        )
    },
    row(
        "openapi-calendar.json",
        "GET /calendars/{calendarId}/events",
        r#"{}"#,
        r#"[{"id": "abcde1", "start": "2026-12-01T11:59:00Z", "status": "confirmed"}]"#,
        ("/0/status", "\"tentative\""),
        SCHEMA,
    ),
];
