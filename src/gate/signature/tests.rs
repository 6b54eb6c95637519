use ed25519_dalek::{Signer, SigningKey};

use super::*;

const TOLERANCE_MS: i64 = 300_000;
/// The example of the Standard Webhooks libraries.
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const TIME: &str = "1614265330";
const BODY: &[u8] = br#"{"test": 2432232314}"#;
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SIGNED: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const SIGNED_ED25519: &str =
    "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag==";
const OTHER: &str = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=";

fn public_key() -> String {
    let seed = BASE64.decode("VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=").unwrap();
    let key = SigningKey::from_bytes(&seed.try_into().unwrap());
    format!("whpk_{}", BASE64.encode(key.verifying_key().as_bytes()))
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::new(seconds, 0).unwrap()
}

fn secrets(texts: &[&str]) -> Vec<Secret> {
    texts.iter().map(|text| Secret::new(text).unwrap()).collect()
}

fn standard(id: &str, time: &str, signature: &str, body: &[u8], keys: &[&str]) -> Result<Timestamp, SignatureRefusal> {
    let headers = [("Webhook-Id", id), ("webhook-timestamp", time), ("webhook-signature", signature)];
    let headers = Headers::new(headers).unwrap();
    Signature::StandardWebhooks.verify(&headers, body, &secrets(keys), at(1_614_265_330), TOLERANCE_MS)
}

#[track_caller]
fn refused(result: Result<Timestamp, SignatureRefusal>, reason: Reason, detail: &str) {
    let refusal = result.unwrap_err();
    assert_eq!((refusal.reason, refusal.detail), (reason, detail));
}

#[test]
fn standard_webhooks_published_examples_verify() {
    let signed_at = Ok(at(1_614_265_330));
    assert_eq!(standard(ID, TIME, SIGNED, BODY, &[SECRET]), signed_at);
    assert_eq!(standard(ID, TIME, SIGNED_ED25519, BODY, &[&public_key()]), signed_at);
}

#[test]
fn standard_webhooks_any_signature_and_any_secret_may_match() {
    let signed_at = Ok(at(1_614_265_330));
    let list = format!("{OTHER} v2,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= {SIGNED} v1,!! v1a,AAAA");
    assert_eq!(standard(ID, TIME, &list, BODY, &["whsec_AAAA", SECRET]), signed_at);
    let both = format!("{OTHER} {SIGNED_ED25519}");
    assert_eq!(standard(ID, TIME, &both, BODY, &[SECRET, &public_key()]), signed_at);
}

#[test]
fn standard_webhooks_refuses_what_does_not_verify() {
    let no = "no signature verifies";
    let mut canonical = SIGNED.to_string();
    canonical.pop();
    for (id, time, signature, body, keys) in [
        (ID, TIME, OTHER, BODY, SECRET),
        (ID, TIME, "v1,", BODY, SECRET),
        (ID, TIME, "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", BODY, SECRET),
        (ID, TIME, "v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", BODY, SECRET),
        (ID, TIME, &canonical, BODY, SECRET),
        (ID, "1614265331", SIGNED, BODY, SECRET),
        ("msg_other", TIME, SIGNED, BODY, SECRET),
        (ID, TIME, SIGNED, br#"{"test":2432232314}"#, SECRET),
        (ID, TIME, SIGNED, b"", SECRET),
        (ID, TIME, SIGNED, BODY, "whsec_AAAA"),
        (ID, TIME, SIGNED, BODY, "a text that is no key of this scheme"),
        (ID, TIME, SIGNED_ED25519, BODY, SECRET),
    ] {
        refused(standard(id, time, signature, body, &[keys]), Reason::SignatureInvalid, no);
    }
    refused(standard(ID, TIME, SIGNED, BODY, &[]), Reason::SignatureInvalid, no);
}

#[test]
fn standard_webhooks_refuses_malformed_and_repeated_headers() {
    let invalid = Reason::SignatureInvalid;
    refused(standard("", TIME, SIGNED, BODY, &[SECRET]), invalid, "webhook-id is missing");
    refused(standard(ID, "", SIGNED, BODY, &[SECRET]), invalid, "webhook-timestamp is missing");
    refused(standard(ID, TIME, "", BODY, &[SECRET]), invalid, "webhook-signature is missing");
    for time in ["+1614265330", "1614265330.0", " 1614265330", "0x10", "9999999999999", "\u{0967}614265330"] {
        refused(standard(ID, time, SIGNED, BODY, &[SECRET]), invalid, "the signed time is not in Unix seconds");
    }
    let many = [SIGNED; SIGNATURES_MAX + 1].join(" ");
    refused(standard(ID, TIME, &many, BODY, &[SECRET]), invalid, "more than 8 signatures");
    for repeated in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        let headers = [("webhook-id", ID), ("webhook-timestamp", TIME), ("webhook-signature", SIGNED), (repeated, "x")];
        let headers = Headers::new(headers).unwrap();
        let result = Signature::StandardWebhooks.verify(&headers, BODY, &secrets(&[SECRET]), at(1_614_265_330), 0);
        refused(result, invalid, "a signature header was given more than once");
    }
}

#[test]
fn standard_webhooks_parts_cannot_be_shifted_across_the_dots() {
    let key = SigningKey::from_bytes(&[7; 32]);
    let signature = format!("v1a,{}", BASE64.encode(key.sign(b"a.1614265330.2.x").to_bytes()));
    let public = format!("whpk_{}", BASE64.encode(key.verifying_key().as_bytes()));
    assert!(standard("a", TIME, &signature, b"2.x", &[&public]).is_ok());
    let shifted = standard("a.1614265330", "2", &signature, b"x", &[&public]);
    refused(shifted, Reason::SignatureInvalid, "webhook-id contains a dot");
}

/// Bodies and headers of the corpus' cases 172 to 176.
const ORDER: &str = r#"{"id":"evt_1","created":1796126340,"data":{"order":"ord-9911","note":"Gr\u00f6\u00dfe"}}"#;
const ORDER_MAC: &str = "v1=11413670904158f06df6a1e09418c840c4f1c4e097683d72d01af698f4dc1614";

fn hmac_at(now: Timestamp, values: &[&str], body: &str) -> Result<Timestamp, SignatureRefusal> {
    let headers = Headers::new(values.iter().map(|value| ("X-Signature", *value))).unwrap();
    let scheme = Signature::TimestampedHmac { header: "x-signature".into() };
    let keys = secrets(&["a former secret", "example-signing-secret"]);
    scheme.verify(&headers, body.as_bytes(), &keys, now, TOLERANCE_MS)
}

fn hmac(values: &[&str], body: &str) -> Result<Timestamp, SignatureRefusal> {
    hmac_at(at(1_796_126_400), values, body)
}

#[test]
fn case_172_signed_event_with_raw_bytes_intact() {
    assert_eq!(hmac(&[&format!("t=1796126340,{ORDER_MAC}")], ORDER), Ok(at(1_796_126_340)));
}

#[test]
fn case_173_same_value_reserialised_by_a_hop() {
    let spaced = r#"{"id": "evt_1", "created": 1796126340, "data": {"order": "ord-9911", "note": "Größe"}}"#;
    let result = hmac(&[&format!("t=1796126340,{ORDER_MAC}")], spaced);
    refused(result, Reason::SignatureInvalid, "no signature verifies");
}

#[test]
fn case_174_old_signature_with_fresh_unsigned_time() {
    let old = ORDER.replace("1796126340", "1796040000");
    let mac = "t=1796040000,v1=363977fd124750900b9af8fb344091eca60c074965223c9fe816209a97536b85";
    refused(hmac(&[mac], &old), Reason::Stale, "the signed time is too old");
    assert_eq!(hmac_at(at(1_796_040_010), &[mac], &old), Ok(at(1_796_040_000)), "judged at its receipt it was fresh");
}

#[test]
fn case_176_two_signed_times() {
    let result = hmac(&[&format!("t=1,t=1796126340,{ORDER_MAC}")], ORDER);
    refused(result, Reason::SignatureInvalid, "the signed time is given more than once");
}

#[test]
fn timestamped_hmac_tolerance_is_inclusive_in_both_directions() {
    let header = format!("t=1796126340,{ORDER_MAC}");
    for (now, expect) in [
        (1_796_126_640, None),
        (1_796_126_641, Some(Reason::Stale)),
        (1_796_126_040, None),
        (1_796_126_039, Some(Reason::FutureDated)),
    ] {
        let refusal = hmac_at(at(now), &[&header], ORDER).err();
        assert_eq!(refusal.map(|refusal| refusal.reason), expect, "{now}");
    }
}

#[test]
fn timestamped_hmac_allows_rotation_and_other_schemes() {
    let zeros = "0".repeat(64);
    let upper = ORDER_MAC.to_uppercase().replace("V1", "v1");
    for header in [
        format!("t=1796126340,v1={zeros},{ORDER_MAC},v0={zeros}"),
        format!("{ORDER_MAC},t=1796126340"),
        format!("t=1796126340,{upper}"),
    ] {
        assert!(hmac(&[&header], ORDER).is_ok(), "{header}");
    }
}

#[test]
fn timestamped_hmac_refuses_malformed_and_repeated_headers() {
    let good = format!("t=1796126340,{ORDER_MAC}");
    let malformed = "a part of the signature header is malformed";
    let not_hex = "a signature is not 64 hex digits";
    for (header, detail) in [
        (format!("{good},"), malformed),
        (format!("{good},x"), malformed),
        (format!("{good},x="), malformed),
        (format!("{good},X=1"), malformed),
        (format!("{good}, x=1"), malformed),
        (format!("t=1796126340, {ORDER_MAC}"), malformed),
        (format!("{good}a"), not_hex),
        ("t=1796126340,v1=".into(), not_hex),
        (format!("t=1796126340,v1={}", "é".repeat(32)), not_hex),
        (format!("{good},v1=zz"), not_hex),
        ("t=1796126340".into(), "no signature verifies"),
        (ORDER_MAC.into(), "the signed time is missing"),
        (format!("t=,{ORDER_MAC}"), "the signed time is not in Unix seconds"),
        (format!("t=1796126340{}", format!(",{ORDER_MAC}").repeat(9)), "more than 8 signatures"),
        (String::new(), "the signature header is missing"),
    ] {
        refused(hmac(&[&header], ORDER), Reason::SignatureInvalid, detail);
    }
    refused(hmac(&[&good, &good], ORDER), Reason::SignatureInvalid, "a signature header was given more than once");
    refused(hmac(&[], ORDER), Reason::SignatureInvalid, "the signature header is missing");
}

#[test]
fn secrets_are_checked_when_loaded_and_never_printed() {
    let standard = Signature::StandardWebhooks;
    let accepts = |text: &str| standard.accepts(&Secret::new(text).unwrap());
    assert!(accepts(SECRET) && accepts(&public_key()));
    let identity_point = format!("whpk_{}", BASE64.encode([[1].as_slice(), &[0; 31]].concat()));
    for text in ["plain", "whsec_", "whsec_???", "whpk_", "whpk_AAAA", "whsk_AAAA", &identity_point] {
        assert!(!accepts(text), "{text}");
        assert!(Signature::TimestampedHmac { header: "x".into() }.accepts(&Secret::new(text).unwrap()));
    }
    assert!(Secret::new("").is_none());
    assert_eq!(format!("{:?}", Secret::new(SECRET)), "Some(Secret(***))");
}

proptest::proptest! {
    #[test]
    fn hostile_headers_never_panic_and_never_verify(value in "\\PC{0,120}", body: Vec<u8>) {
        let headers = [("webhook-id", "a"), ("webhook-timestamp", TIME), ("webhook-signature", &value), ("x-s", &value)];
        let headers = Headers::new(headers).unwrap();
        let keys = secrets(&[SECRET]);
        for scheme in [Signature::StandardWebhooks, Signature::TimestampedHmac { header: "x-s".into() }] {
            proptest::prop_assert!(scheme.verify(&headers, &body, &keys, at(1_614_265_330), TOLERANCE_MS).is_err());
        }
    }

    #[test]
    fn any_flipped_bit_of_the_body_refuses(byte in 0..BODY.len(), bit in 0..8) {
        let mut body = BODY.to_vec();
        body[byte] ^= 1u8 << bit;
        let list = format!("{SIGNED} {SIGNED_ED25519}");
        proptest::prop_assert!(standard(ID, TIME, &list, &body, &[SECRET, &public_key()]).is_err());
    }
}
