//! Signatures over the raw bytes: part of stage 4, before anything is parsed.
//!
//! A header is hostile text like a body, with the same ambiguities: what is given twice refuses,
//! since two readers may believe different copies. Freshness is judged only by the *signed* time,
//! and only after the signature holds. The caller says what `now` is: the moment of receipt, so
//! that a queue's delay or an operator's replay does not make good evidence old.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ed25519_dalek::{Signature as Ed25519, VerifyingKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::reason::Reason;
use crate::time::Timestamp;
use crate::wire::Headers;

type HmacSha256 = Hmac<Sha256>;

/// Signatures looked at in one header. Rotation needs two; the bound keeps the cost of a hostile
/// header at this many Ed25519 verifications per configured key.
const SIGNATURES_MAX: usize = 8;

/// How a source signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signature {
    /// Standard Webhooks: headers `webhook-id`, `webhook-timestamp` and `webhook-signature`, over
    /// `{id}.{timestamp}.{body}`; `v1,` is HMAC-SHA256 and `v1a,` Ed25519.
    StandardWebhooks,
    /// `t=<unix seconds>,v1=<hex>` in one header, HMAC-SHA256 over `{t}.{body}`.
    TimestampedHmac {
        /// The header's name in lower case.
        header: Box<str>,
    },
}

/// Why a signature does not count: [`Reason::SignatureInvalid`], [`Reason::Stale`] or
/// [`Reason::FutureDated`], and one fixed sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureRefusal {
    pub reason: Reason,
    pub detail: &'static str,
}

const fn invalid(detail: &'static str) -> SignatureRefusal {
    SignatureRefusal { reason: Reason::SignatureInvalid, detail }
}

/// A key that may verify. The text it came from is not kept, and it is never printed.
#[derive(Clone)]
pub struct Secret {
    /// Keyed with the configured text itself, as timestamped HMACs want it.
    text_key: HmacSha256,
    standard_key: Option<StandardKey>,
}

#[derive(Clone)]
enum StandardKey {
    Hmac(HmacSha256),
    Ed25519(Box<VerifyingKey>),
}

impl Secret {
    /// Reads a configured secret. `whsec_<base64>` and `whpk_<base64>` are keys of Standard
    /// Webhooks; any text but the empty one is a key of a timestamped HMAC, with its prefix if it
    /// has one, since vendors hand out such secrets too.
    pub fn new(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        Some(Self { text_key: keyed(text.as_bytes())?, standard_key: StandardKey::read(text) })
    }
}

impl StandardKey {
    fn read(text: &str) -> Option<Self> {
        if let Some(encoded) = text.strip_prefix("whsec_") {
            let key = BASE64.decode(encoded).ok().filter(|key| !key.is_empty())?;
            return Some(StandardKey::Hmac(keyed(&key)?));
        }
        let key: [u8; 32] = BASE64.decode(text.strip_prefix("whpk_")?).ok()?.try_into().ok()?;
        let key = VerifyingKey::from_bytes(&key).ok().filter(|key| !key.is_weak())?;
        Some(StandardKey::Ed25519(Box::new(key)))
    }
}

fn keyed(key: &[u8]) -> Option<HmacSha256> {
    HmacSha256::new_from_slice(key).ok()
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl Signature {
    /// Whether `secret` is a key for this scheme; asked when configuration is loaded, so that a
    /// misspelt key is found before the first response is refused for it.
    pub fn accepts(&self, secret: &Secret) -> bool {
        match self {
            Signature::StandardWebhooks => secret.standard_key.is_some(),
            Signature::TimestampedHmac { .. } => true,
        }
    }

    /// Verifies `body` under any of `secrets` (more than one while they rotate) and returns the
    /// signed time. `tolerance_ms` bounds its distance from `now` in both directions.
    ///
    /// # Errors
    /// [`Reason::SignatureInvalid`] first; then [`Reason::Stale`] or [`Reason::FutureDated`].
    pub fn verify(
        &self,
        headers: &Headers,
        body: &[u8],
        secrets: &[Secret],
        now: Timestamp,
        tolerance_ms: i64,
    ) -> Result<Timestamp, SignatureRefusal> {
        let signed_at = match self {
            Signature::StandardWebhooks => standard_webhooks(headers, body, secrets)?,
            Signature::TimestampedHmac { header } => timestamped_hmac(headers, header, body, secrets)?,
        };
        let age_ms = now.millis_since(signed_at);
        if age_ms > tolerance_ms {
            return Err(SignatureRefusal { reason: Reason::Stale, detail: "the signed time is too old" });
        }
        if age_ms < -tolerance_ms {
            let detail = "the signed time is in the future";
            return Err(SignatureRefusal { reason: Reason::FutureDated, detail });
        }
        Ok(signed_at)
    }
}

fn only<'h>(headers: &'h Headers, name: &str, missing: &'static str) -> Result<&'h str, SignatureRefusal> {
    let given = headers.only(name).map_err(|_| invalid("a signature header was given more than once"))?;
    given.filter(|text| !text.is_empty()).ok_or(invalid(missing))
}

/// Unix seconds in plain digits.
fn unix_seconds(text: &str) -> Result<Timestamp, SignatureRefusal> {
    let digits = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = text.parse().ok().filter(|_| digits);
    seconds.and_then(|seconds| Timestamp::new(seconds, 0)).ok_or(invalid("the signed time is not in Unix seconds"))
}

fn standard_webhooks(headers: &Headers, body: &[u8], secrets: &[Secret]) -> Result<Timestamp, SignatureRefusal> {
    let id = only(headers, "webhook-id", "webhook-id is missing")?;
    // The dot separates the signed parts: with one in the id, `a.1` + `2` + `x` and
    // `a` + `1` + `2.x` would share a signature.
    if id.contains('.') {
        return Err(invalid("webhook-id contains a dot"));
    }
    let timestamp = only(headers, "webhook-timestamp", "webhook-timestamp is missing")?;
    let signed_at = unix_seconds(timestamp)?;
    let list = only(headers, "webhook-signature", "webhook-signature is missing")?;
    if list.split(' ').count() > SIGNATURES_MAX {
        return Err(invalid("more than 8 signatures"));
    }
    // Versions that we do not know are left to their readers, as the specification has it.
    let prefix = format!("{id}.{timestamp}.");
    let hmacs: Vec<_> = decoded(list, "v1,").collect();
    let ed25519s: Vec<[u8; 64]> = decoded(list, "v1a,").filter_map(|bytes| bytes.try_into().ok()).collect();
    let verifies = |secret: &Secret| match &secret.standard_key {
        Some(StandardKey::Hmac(key)) => hmac_verifies(key, &prefix, body, &hmacs),
        Some(StandardKey::Ed25519(key)) => ed25519_verifies(key, &prefix, body, &ed25519s),
        None => false,
    };
    if secrets.iter().any(verifies) { Ok(signed_at) } else { Err(invalid("no signature verifies")) }
}

/// The signatures of one version whose Base64 is canonical.
fn decoded<'a>(list: &'a str, version: &'a str) -> impl Iterator<Item = Vec<u8>> + 'a {
    list.split(' ').filter_map(move |one| BASE64.decode(one.strip_prefix(version)?).ok())
}

fn timestamped_hmac(
    headers: &Headers,
    name: &str,
    body: &[u8],
    secrets: &[Secret],
) -> Result<Timestamp, SignatureRefusal> {
    let header = only(headers, name, "the signature header is missing")?;
    let mut time = None;
    let mut candidates = Vec::new();
    for part in header.split(',') {
        match part.split_once('=').ok_or(invalid("a part of the signature header is malformed"))? {
            ("t", _) if time.is_some() => return Err(invalid("the signed time is given more than once")),
            ("t", text) => time = Some(text),
            ("v1", _) if candidates.len() == SIGNATURES_MAX => return Err(invalid("more than 8 signatures")),
            ("v1", hex) => candidates.push(from_hex(hex).ok_or(invalid("a signature is not 64 hex digits"))?),
            (other, value) if is_scheme(other) && !value.is_empty() => {}
            _ => return Err(invalid("a part of the signature header is malformed")),
        }
    }
    let time = time.ok_or(invalid("the signed time is missing"))?;
    let signed_at = unix_seconds(time)?;
    let prefix = format!("{time}.");
    let verifies = |secret: &Secret| hmac_verifies(&secret.text_key, &prefix, body, &candidates);
    if secrets.iter().any(verifies) { Ok(signed_at) } else { Err(invalid("no signature verifies")) }
}

/// The name of another scheme beside ours, such as `v0`.
fn is_scheme(name: &str) -> bool {
    (1..=16).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

fn from_hex(hex: &str) -> Option<[u8; 32]> {
    let digits = hex.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// `verify_slice` compares in constant time; the body is read once for all candidates.
fn hmac_verifies(key: &HmacSha256, prefix: &str, body: &[u8], candidates: &[impl AsRef<[u8]>]) -> bool {
    if candidates.is_empty() {
        return false;
    }
    let mut mac = key.clone();
    mac.update(prefix.as_bytes());
    mac.update(body);
    candidates.iter().any(|candidate| mac.clone().verify_slice(candidate.as_ref()).is_ok())
}

fn ed25519_verifies(key: &VerifyingKey, prefix: &str, body: &[u8], candidates: &[[u8; 64]]) -> bool {
    if candidates.is_empty() {
        return false;
    }
    let message = [prefix.as_bytes(), body].concat();
    candidates.iter().any(|candidate| key.verify_strict(&message, &Ed25519::from_bytes(candidate)).is_ok())
}

#[cfg(test)]
mod tests;
