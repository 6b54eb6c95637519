//! Recorded traffic: one JSON object a line, `{"request": ..., "response": ..., "now": ...}`.
//!
//! `request` and `response` are what `toolgate send requests` and `send responses` read, and pass the
//! same decoder. `now` is the moment of the judgement; where it is missing, `received_at` of the
//! response stands for it. A line that is not of this form is refused: traffic that is read in part
//! proves nothing.

use super::judge::Sample;
use crate::gate::decode::{NewRequest, RawResponse};
use crate::gate::parse::Tape;
use crate::time::Timestamp;
use crate::wire::json;

/// A line, and the file that holds its body where it names one.
#[derive(Debug)]
pub struct Line {
    pub sample: Sample,
    pub body_file: Option<String>,
}

/// Reads one line. `name` is how a report calls it.
///
/// # Errors
/// What is wrong with it, in a sentence that names the member.
pub fn line(name: &str, text: &str) -> Result<Line, String> {
    let mut tape = Tape::default();
    let node = json::parse(text, &mut tape).map_err(|why| why.to_string())?;
    json::known_members(node, "line", &["request", "response", "now"]).map_err(|why| why.to_string())?;
    let lacks =
        |what: &str| format!("{what}: is missing; a line is {{\"request\": ..., \"response\": ..., \"now\": ...}}");
    let request = json::request(node.get("request").ok_or_else(|| lacks("request"))?);
    let request = request.map_err(|why| format!("request.{why}"))?;
    let read = json::response(node.get("response").ok_or_else(|| lacks("response"))?);
    let read = read.map_err(|why| format!("response.{why}"))?;
    let response = read.response;
    let now = match json::optional_text(node, "now").map_err(|why| why.to_string())? {
        Some(text) => Timestamp::parse_rfc3339(&text).ok_or("now: must be an RFC 3339 time")?,
        None => Some(response.received_at_unix_ms)
            .filter(|millis| *millis != 0)
            .and_then(Timestamp::from_unix_millis)
            .ok_or("now: is missing, and response.received_at too; one of them says when it was judged")?,
    };
    if (&request.request_id, &request.tool) != (&response.request_id, &response.tool) {
        return Err("response.request_id and response.tool must be those of the request that it answers".into());
    }
    NewRequest::from_message(request.clone()).map_err(|why| format!("request: {why}"))?;
    if read.body_file.is_none() {
        RawResponse::from_message(response.clone()).map_err(|why| format!("response: {why}"))?;
    }
    Ok(Line { sample: Sample { name: name.into(), request, response, now }, body_file: read.body_file })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &str =
        r#"{"tool":"a.b","request_id":"r1","issued_at":"2026-12-01T12:00:00Z","deadline":"2026-12-01T12:01:00Z"}"#;

    fn with(rest: &str) -> Result<Line, String> {
        line("line 1", &format!("{{\"request\":{REQUEST},{rest}}}"))
    }

    #[test]
    fn a_line_says_when_it_was_judged() {
        let response = r#""response":{"tool":"a.b","request_id":"r1","body":"{}","status":200"#;
        let read = with(&format!("{response},\"received_at\":\"2026-12-01T12:00:05Z\"}}")).unwrap();
        assert_eq!(read.sample.now.to_string(), "2026-12-01T12:00:05Z");
        let own = with(&format!("{response}}},\"now\":\"2026-12-01T12:00:07Z\"")).unwrap();
        assert_eq!(own.sample.now.to_string(), "2026-12-01T12:00:07Z");
        assert!(with(&format!("{response}}}")).unwrap_err().starts_with("now: is missing"));
    }

    #[test]
    fn what_is_not_of_this_form_is_refused_with_its_member() {
        for (rest, why) in [
            (r#""now":"2026-12-01T12:00:00Z""#, "response: is missing"),
            (r#""reponse":{}"#, "unknown member"),
            (r#""response":{"tool":"a.b"},"now":"2026-12-01T12:00:00Z""#, "response.request_id: is missing"),
            (
                r#""response":{"tool":"a.b","request_id":"r2"},"now":"2026-12-01T12:00:00Z""#,
                "must be those of the request",
            ),
            (r#""response":{"tool":"a.b","request_id":"r1"},"now":"noon""#, "now: must be"),
        ] {
            let said = with(rest).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        assert!(line("line 1", "not json").is_err());
    }
}
