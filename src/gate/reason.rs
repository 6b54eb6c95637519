//! Why a response was not admitted: closed, payload-free codes.
//!
//! A refusal is a value, not an error. [`Reason`] is `Copy` and carries nothing of the response;
//! what an operator needs beside it is in [`Diagnosis`](super::Diagnosis). Each reason has one
//! page in `docs/reasons/`, named after its code in lower case with dashes.

use std::fmt;

/// The ten stages, in pipeline order. The name of a stage is also the name of its module, its
/// metric label, its span and its row in the dashboards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    Ingest,
    Decode,
    Match,
    Admit,
    Parse,
    Adapt,
    Validate,
    Bind,
    Select,
    Emit,
}

impl Stage {
    pub const ALL: [Stage; 10] = [
        Stage::Ingest,
        Stage::Decode,
        Stage::Match,
        Stage::Admit,
        Stage::Parse,
        Stage::Adapt,
        Stage::Validate,
        Stage::Bind,
        Stage::Select,
        Stage::Emit,
    ];

    /// The lower-case verb: metric label, span name, JSON value.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Ingest => "ingest",
            Stage::Decode => "decode",
            Stage::Match => "match",
            Stage::Admit => "admit",
            Stage::Parse => "parse",
            Stage::Adapt => "adapt",
            Stage::Validate => "validate",
            Stage::Bind => "bind",
            Stage::Select => "select",
            Stage::Emit => "emit",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! reasons {
    ($($variant:ident $code:literal $stage:ident $summary:literal;)*) => {
        /// Why a consumed record did not become evidence. One page each in `docs/reasons/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason {
            $(#[doc = $summary] $variant,)*
        }

        impl Reason {
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)*];

            /// The stable code: metric label, quarantine field, name of the page.
            pub const fn code(self) -> &'static str {
                match self { $(Reason::$variant => $code,)* }
            }

            /// The stage that this reason belongs to.
            pub const fn stage(self) -> Stage {
                match self { $(Reason::$variant => Stage::$stage,)* }
            }

            /// One sentence for people.
            pub const fn summary(self) -> &'static str {
                match self { $(Reason::$variant => $summary,)* }
            }

            /// The reason with this code, if there is one.
            pub fn from_code(code: &str) -> Option<Reason> {
                match code { $($code => Some(Reason::$variant),)* _ => None }
            }
        }
    };
}

reasons! {
    UndecodableEvent "UNDECODABLE_EVENT" Decode "The record is not a response or request in the configured encoding.";
    UnknownTool "UNKNOWN_TOOL" Decode "No contract is loaded for the tool that the request names.";
    UnknownContract "UNKNOWN_CONTRACT" Decode "The tool has contracts, but not the version that the request pins, or none that is active.";
    RequestConflict "REQUEST_CONFLICT" Match "The same attempt of a request was announced twice with different content; the first one stands.";
    RequestIdReused "REQUEST_ID_REUSED" Match "A request id that was closed within its retention was announced again.";
    UnknownRequest "UNKNOWN_REQUEST" Match "No outstanding request has this id.";
    Misrouted "MISROUTED" Match "The record's key belongs to another partition than the one it arrived on.";
    WrongTool "WRONG_TOOL" Match "The response says that it is from another tool than the one that was asked.";
    DuplicateResponse "DUPLICATE_RESPONSE" Match "The request was already answered.";
    LateResponse "LATE_RESPONSE" Match "The request had expired before this response was judged.";
    StaleAttempt "STALE_ATTEMPT" Match "The response belongs to an earlier attempt of the request.";
    UpstreamError "UPSTREAM_ERROR" Admit "The tool reported a failure instead of a result.";
    UnexpectedContentType "UNEXPECTED_CONTENT_TYPE" Admit "The media type is absent or not one that the contract admits.";
    TooLarge "TOO_LARGE" Admit "The body is larger than the contract's limit.";
    EmptyBody "EMPTY_BODY" Admit "The body is empty and the contract does not declare that as success.";
    SignatureInvalid "SIGNATURE_INVALID" Admit "The signature over the raw bytes is missing, malformed or does not verify.";
    InvalidUtf8 "INVALID_UTF8" Parse "The body is not UTF-8.";
    InvalidJson "INVALID_JSON" Parse "The body is not one JSON document by RFC 8259.";
    TooDeep "TOO_DEEP" Parse "Arrays and objects are nested deeper than the contract's limit.";
    TooMany "TOO_MANY" Parse "An array or object has more items or members, or a string more bytes, than the contract's limit.";
    NumberRange "NUMBER_RANGE" Parse "A number is outside the range of a double or has too many digits.";
    DuplicateMember "DUPLICATE_MEMBER" Parse "An object has two members of the same name, compared after unescaping.";
    TrailingData "TRAILING_DATA" Parse "Something follows the JSON document.";
    TextPatternMismatch "TEXT_PATTERN_MISMATCH" Parse "The text output does not match the contract's pattern from its first to its last byte.";
    AdapterMismatch "ADAPTER_MISMATCH" Adapt "The vendor document does not have the shape that the contract's adapter table reads.";
    SchemaViolation "SCHEMA_VIOLATION" Validate "The candidate result violates the closed schema.";
    TextUnsafe "TEXT_UNSAFE" Validate "Text holds control, bidirectional, zero-width, tag or similar characters.";
    BindingMismatch "BINDING_MISMATCH" Bind "The result speaks of something else than what was asked for.";
    Stale "STALE" Bind "The evidence is older than the contract allows, or older than the request demands.";
    FutureDated "FUTURE_DATED" Bind "The evidence is dated later than the clock allows.";
    IssuerMismatch "ISSUER_MISMATCH" Bind "The result was issued by somebody else than the contract names.";
    RuleFailed "RULE_FAILED" Bind "A rule of the contract does not hold.";
    ResultTooLarge "RESULT_TOO_LARGE" Select "The selected result is larger than the contract's limit.";
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_read_back() {
        for (i, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(Reason::from_code(reason.code()), Some(*reason));
            assert!(Reason::ALL[i + 1..].iter().all(|other| other.code() != reason.code()));
        }
        assert_eq!(Reason::from_code("NO_SUCH_CODE"), None);
    }
}
