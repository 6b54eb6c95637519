//! Bearer tokens from a file, such as one that Kubernetes projects into a pod and renews.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rdkafka::client::OAuthToken;

/// Larger files are no token.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;

/// A file with one JWT. Every renewal reads it again.
#[derive(Clone, Debug)]
pub(super) struct TokenFile(pub(super) PathBuf);

impl TokenFile {
    pub(super) fn read(file: Option<&TokenFile>) -> Result<OAuthToken, Box<dyn std::error::Error>> {
        let path = &file.ok_or("no token file is configured")?.0;
        read(path).map_err(|what| format!("{}: {what}", path.display()).into())
    }
}

fn read(path: &Path) -> Result<OAuthToken, String> {
    let length = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > TOKEN_BYTES_MAX {
        return Err("too large for a token".to_owned());
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    parse(text.trim())
}

/// Who the token is for and until when it is good: claims `sub` and `exp` of RFC 7519. The broker checks the signature.
fn parse(token: &str) -> Result<OAuthToken, String> {
    let claims = token.split('.').nth(1).ok_or("not a JWT")?;
    let json = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).map_err(|_| "not a JWT")?;
    let text = std::str::from_utf8(&json).map_err(|_| "not a JWT")?;
    let claims: serde_json::Value = serde_json::from_str(text).map_err(|_| "not a JWT")?;
    let expires_s = claims.get("exp").and_then(serde_json::Value::as_f64).ok_or("the token has no `exp`")?;
    let principal = claims.get("sub").and_then(serde_json::Value::as_str).unwrap_or_default();
    Ok(OAuthToken {
        token: token.to_owned(),
        principal_name: principal.to_owned(),
        lifetime_ms: (expires_s * 1000.0) as i64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_and_lifetime_come_from_the_claims() {
        let claims = URL_SAFE_NO_PAD.encode(br#"{"sub":"worker","exp":1700000000}"#);
        let token = parse(&format!("e30.{claims}.c2ln")).expect("a token");
        assert_eq!((token.principal_name.as_str(), token.lifetime_ms), ("worker", 1_700_000_000_000));
        for bad in ["", "a.b", "e30.e30.x", "e30.!!.x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
