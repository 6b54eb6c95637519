//! Stage 4 of 10: admit.
//!
//! Judges everything about a response that can be known without reading it: how the call ended,
//! its media type, its size, whether emptiness was declared, and the signature over its raw bytes.
//! Afterwards the body is worth parsing. Nothing in here looks at a byte of it, except a declared
//! prefix and the byte order mark, and the signature that covers it whole.

use super::decode::{RawResponse, Transport};
use super::reason::{Reason, Stage};
use super::refusal::{Diagnosis, FailureCode, Stop};
use super::signature::{Secret, Signature};
use crate::contract::raw::SourceKind;
use crate::time::Timestamp;

/// A response whose transport, size, type and signature are in order.
#[derive(Debug)]
pub struct Admitted<'a> {
    body: &'a [u8],
    declared_empty: bool,
}

impl<'a> Admitted<'a> {
    /// The document's bytes: without the declared prefix or byte order mark.
    pub(super) fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The contract declares that success has no body, and there was none.
    pub(super) fn is_declared_empty(&self) -> bool {
        self.declared_empty
    }
}

/// What a contract says about how its tool answers.
#[derive(Debug)]
pub struct Terms {
    pub kind: SourceKind,
    pub media_types: Vec<Box<str>>,
    pub success: Vec<i32>,
    pub empty_is_success: bool,
    pub prefix: Option<Box<[u8]>>,
    pub strip_byte_order_mark: bool,
    pub failures: Failures,
    pub body_bytes_max: usize,
    pub signature: Option<SignatureTerms>,
}

#[derive(Debug)]
pub struct SignatureTerms {
    pub scheme: Signature,
    /// Names of the secrets, any of which may verify.
    pub secrets: Vec<Box<str>>,
    pub tolerance_ms: i64,
}

/// How a call that brought no result ended, as a contract writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Status(u16),
    /// A whole class of HTTP statuses, by its first digit.
    StatusClass(u16),
    Exit(i32),
    Timeout,
    Connection,
    ToolError,
    AnyRpcError,
    Rpc(i64),
}

/// The table from endings to the closed codes that an agent may see.
#[derive(Debug, Default)]
pub struct Failures(pub Vec<(Ending, FailureCode)>);

impl Failures {
    /// The code for an ending: an exact entry wins over a class.
    pub fn code(&self, ending: Ending) -> Option<&FailureCode> {
        let exact = self.0.iter().find(|(entry, _)| *entry == ending);
        let class = match ending {
            Ending::Status(status) => Some(Ending::StatusClass(status / 100)),
            Ending::Rpc(_) => Some(Ending::AnyRpcError),
            Ending::StatusClass(_)
            | Ending::Exit(_)
            | Ending::Timeout
            | Ending::Connection
            | Ending::ToolError
            | Ending::AnyRpcError => None,
        };
        let entry = exact.or_else(|| self.0.iter().find(|(entry, _)| Some(*entry) == class));
        entry.map(|(_, code)| code)
    }

    /// Ends a response that reports a failure: with its code where the table knows it, else as inadmissible.
    pub fn stop(&self, stage: Stage, ending: Ending, diagnosis: Diagnosis) -> Stop {
        match self.code(ending) {
            Some(code) => Stop::fail(stage, code.clone(), diagnosis),
            None => Stop::refuse(stage, Reason::UpstreamError, diagnosis),
        }
    }
}

/// The secrets that signatures are checked with, by name.
pub trait SecretStore {
    fn secret(&self, name: &str) -> Option<&Secret>;
}

/// Lets a response through to the parser, or says why not.
///
/// # Errors
/// `UPSTREAM_ERROR`, `TOO_LARGE`, `EMPTY_BODY`, `UNEXPECTED_CONTENT_TYPE`, `INVALID_JSON` (a missing
/// declared prefix), `SIGNATURE_INVALID`; `STALE` and `FUTURE_DATED` for the signature's own time.
pub fn admit<'a>(
    response: &'a RawResponse,
    terms: &Terms,
    secrets: &dyn SecretStore,
    now: Timestamp,
) -> Result<Admitted<'a>, Stop> {
    let body = response.body().expose();
    transport(response.transport(), terms)?;
    if body.len() > terms.body_bytes_max {
        let expected = format!("at most {} bytes", terms.body_bytes_max);
        return Err(refuse(Reason::TooLarge, "limits.body_bytes_max", expected));
    }
    if body.is_empty() && !terms.empty_is_success {
        return Err(refuse(Reason::EmptyBody, "source.empty", "a body".into()));
    }
    if !body.is_empty() {
        media_type(response.content_type(), terms)?;
    }
    if let Some(signature) = &terms.signature {
        verify(response, body, signature, secrets, now)?;
    }
    Ok(Admitted { body: document_bytes(body, terms)?, declared_empty: body.is_empty() })
}

fn refuse(reason: Reason, keyword: &str, expected: String) -> Stop {
    let diagnosis = Diagnosis { keyword: keyword.into(), expected, detail: reason.summary(), ..Diagnosis::default() };
    Stop::refuse(Stage::Admit, reason, diagnosis)
}

/// A call that ended otherwise than in success is a failure, whatever its body says.
fn transport(transport: Transport, terms: &Terms) -> Result<(), Stop> {
    let runs_a_command = matches!(terms.kind, SourceKind::CliJson | SourceKind::Text);
    let silent_is_fine = matches!(terms.kind, SourceKind::Webhook | SourceKind::Mcp | SourceKind::Envelope);
    let ending = match transport {
        Transport::Http(status) if terms.success.contains(&i32::from(status)) && !runs_a_command => return Ok(()),
        // A runner that carries a command's output over HTTP says 200 where the command ended well.
        Transport::Http(200) if runs_a_command => return Ok(()),
        Transport::Exit(code) if terms.success.contains(&code) && runs_a_command => return Ok(()),
        Transport::None if silent_is_fine => return Ok(()),
        Transport::Http(status) => Some(Ending::Status(status)),
        Transport::Exit(code) => Some(Ending::Exit(code)),
        Transport::RpcError(code) => Some(Ending::Rpc(code)),
        Transport::Timeout => Some(Ending::Timeout),
        Transport::Connection => Some(Ending::Connection),
        Transport::None => None,
    };
    let expected = if runs_a_command { "an exit code" } else { "a status" };
    let diagnosis = Diagnosis {
        keyword: "source.success".into(),
        expected: format!("{expected} of {:?}", terms.success),
        found: ending.map_or("nothing", ending_name),
        detail: Reason::UpstreamError.summary(),
        ..Diagnosis::default()
    };
    Err(match ending {
        Some(ending) => terms.failures.stop(Stage::Admit, ending, diagnosis),
        None => Stop::refuse(Stage::Admit, Reason::UpstreamError, diagnosis),
    })
}

fn ending_name(ending: Ending) -> &'static str {
    match ending {
        Ending::Status(_) | Ending::StatusClass(_) => "HTTP status",
        Ending::Exit(_) => "exit code",
        Ending::Timeout => "timeout",
        Ending::Connection => "connection failure",
        Ending::ToolError => "tool error",
        Ending::AnyRpcError | Ending::Rpc(_) => "RPC error",
    }
}

/// RFC 9110, section 8.3.1: type and subtype without regard to case. Of the parameters only
/// `charset` matters, and only UTF-8 will do.
fn media_type(content_type: Option<&str>, terms: &Terms) -> Result<(), Stop> {
    let optional = matches!(terms.kind, SourceKind::CliJson | SourceKind::Text);
    let admitted = match content_type {
        None => optional,
        Some(text) => {
            let mut parts = text.split(';').map(str::trim);
            let essence = parts.next().unwrap_or_default();
            terms.media_types.iter().any(|admitted| admitted.eq_ignore_ascii_case(essence))
                && parts.all(is_harmless_parameter)
        }
    };
    if admitted {
        return Ok(());
    }
    let expected = terms.media_types.join(" or ");
    Err(refuse(Reason::UnexpectedContentType, "source.media_types", expected))
}

fn is_harmless_parameter(parameter: &str) -> bool {
    match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            let value = value.trim().trim_matches('"');
            value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("us-ascii")
        }
        Some(_) | None => true,
    }
}

fn verify(
    response: &RawResponse,
    body: &[u8],
    terms: &SignatureTerms,
    secrets: &dyn SecretStore,
    now: Timestamp,
) -> Result<(), Stop> {
    // A missing secret is our own mistake; refusing is the only safe answer to it.
    let received = response.received_at().unwrap_or(now);
    let known: Vec<Secret> = terms.secrets.iter().filter_map(|name| secrets.secret(name).cloned()).collect();
    terms.scheme.verify(response.headers(), body, &known, received, terms.tolerance_ms).map(|_signed_at| ()).map_err(
        |refusal| {
            let diagnosis = Diagnosis { keyword: "source.signature".into(), ..Diagnosis::of(refusal.detail) };
            Stop::refuse(Stage::Admit, refusal.reason, diagnosis)
        },
    )
}

/// Takes off exactly what the contract declares in front of the document, nothing fuzzy.
fn document_bytes<'a>(body: &'a [u8], terms: &Terms) -> Result<&'a [u8], Stop> {
    let mut rest = body;
    if terms.strip_byte_order_mark {
        rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest);
    }
    match &terms.prefix {
        None => Ok(rest),
        Some(prefix) => rest.strip_prefix(prefix.as_ref()).ok_or_else(|| {
            refuse(Reason::InvalidJson, "source.prefix", "the declared prefix before the document".into())
        }),
    }
}
