//! Signs events and calls, and verifies signatures of events. Supports Standard Webhooks
//! (<https://www.standardwebhooks.com>: `webhook-id`, `webhook-timestamp`, `webhook-signature`),
//! and a generic HMAC-SHA-256 in one header field. Both accept a list of secrets: the first one
//! signs and all verify, so secrets can be rotated without interruption.

use crate::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest as _, Sha256};
use std::time::Duration;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
/// Prefix of a base64 secret of Standard Webhooks.
const SECRET_PREFIX: &str = "whsec_";
/// Maximum length of a message id in bytes.
const ID_BYTES_MAX: usize = 256;

/// The signature scheme between two parties.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The header fields of the signature, and the content that it covers.
    pub form: SignatureForm,
    /// The decoded secrets, at least one.
    secrets: Vec<Secret<Vec<u8>>>,
}

/// The supported signature schemes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureForm {
    /// `webhook-id`, `webhook-timestamp` and `webhook-signature`, as defined by
    /// <https://www.standardwebhooks.com>.
    StandardWebhooks,
    /// An HMAC-SHA-256 (RFC 2104) in a configurable header field.
    Hmac(HmacForm),
}

/// An HMAC-SHA-256 over the body. The message id and the timestamp, as far as they are signed,
/// precede the body, each followed by a dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HmacForm {
    /// The field with the signature.
    pub header: HeaderName,
    /// Text before the signature, such as `sha256=`.
    pub prefix: String,
    /// Encoding of the signature after the prefix.
    pub encoding: Encoding,
    /// The field with the timestamp in seconds since 1970. Without it, an intercepted message can
    /// be replayed at any time.
    pub timestamp: Option<HeaderName>,
    /// The field with the message id.
    pub id: Option<HeaderName>,
    /// Whether the id is signed. Duplicates are detected by id only then, since otherwise an
    /// attacker could replay a message under another id. With an unsigned id, they are detected by
    /// the signature if the timestamp is signed.
    pub signs_id: bool,
}

/// Encoding of a signature in a header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Two lower-case hexadecimal digits per byte.
    Hex,
    /// RFC 4648, section 4, with padding.
    Base64,
}

/// An error in a message's signature. Contains nothing of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// A field is missing or malformed.
    #[error("the signature is missing, or not in its form")]
    Form,
    /// The timestamp differs from the current time by more than the tolerance.
    #[error("the moment of signing is too far from now")]
    Moment,
    /// The signature does not match the message under any secret.
    #[error("the signature is not that of the message")]
    Wrong,
}

/// Equal schemes with the same secrets.
impl PartialEq for Signature {
    fn eq(&self, other: &Signature) -> bool {
        self.form == other.form && self.has_secrets_of(other)
    }
}

impl Eq for Signature {}

impl Signature {
    /// Returns whether both have the same secrets, in the same order.
    pub fn has_secrets_of(&self, other: &Signature) -> bool {
        self.secrets.iter().map(Secret::expose).eq(other.secrets.iter().map(Secret::expose))
    }

    /// Creates a scheme. Secrets of Standard Webhooks are base64 after `whsec_`; others are plain
    /// text. Returns `None` if the list is empty or a secret is malformed.
    pub fn new(form: SignatureForm, secrets: &[Secret<String>]) -> Option<Signature> {
        let bytes = |secret: &Secret<String>| match form {
            SignatureForm::Hmac(_) => Some(Secret::new(secret.expose().as_bytes().to_vec())),
            SignatureForm::StandardWebhooks => {
                let text = secret.expose().trim();
                let encoded = text.strip_prefix(SECRET_PREFIX).unwrap_or(text);
                STANDARD.decode(encoded).ok().filter(|bytes| !bytes.is_empty()).map(Secret::new)
            }
        };
        let secrets: Vec<_> = secrets.iter().map(bytes).collect::<Option<_>>()?;
        (!secrets.is_empty()).then_some(Signature { form, secrets })
    }

    /// Verifies a message and returns its id for the detection of duplicates, if the scheme
    /// provides one.
    ///
    /// # Errors
    ///
    /// The signature is missing, malformed or wrong, or its timestamp is outside the tolerance.
    pub fn check(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now_ms: i64,
        tolerance: Duration,
    ) -> Result<Option<String>, SignatureError> {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        match &self.form {
            SignatureForm::StandardWebhooks => {
                let (id, moment, given) = (text(&ID), text(&TIMESTAMP), text(&SIGNATURE));
                let (id, moment) = (id.ok_or(SignatureError::Form)?, moment.ok_or(SignatureError::Form)?);
                if id.is_empty() || id.len() > ID_BYTES_MAX {
                    return Err(SignatureError::Form);
                }
                is_near(moment, now_ms, tolerance)?;
                let given = given.ok_or(SignatureError::Form)?;
                let one_of = given.split(' ').filter_map(|one| one.strip_prefix("v1,"));
                let codes: Vec<Vec<u8>> = one_of.filter_map(|one| STANDARD.decode(one).ok()).collect();
                if codes.is_empty() {
                    return Err(SignatureError::Form);
                }
                let parts: [&[u8]; 5] = [id.as_bytes(), b".", moment.as_bytes(), b".", body];
                self.is_of(&parts, &codes)?;
                Ok(Some(id.to_owned()))
            }
            SignatureForm::Hmac(form) => {
                let given =
                    text(&form.header).and_then(|given| given.trim().strip_prefix(form.prefix.as_str()));
                let code = given.and_then(|given| form.encoding.decode(given)).ok_or(SignatureError::Form)?;
                let moment =
                    form.timestamp.as_ref().map(|name| text(name).ok_or(SignatureError::Form)).transpose()?;
                if let Some(moment) = moment {
                    is_near(moment, now_ms, tolerance)?;
                }
                let id = form.id.as_ref().filter(|_| form.signs_id);
                let id = id.map(|name| text(name).ok_or(SignatureError::Form)).transpose()?;
                if id.is_some_and(|id| id.is_empty() || id.len() > ID_BYTES_MAX) {
                    return Err(SignatureError::Form);
                }
                self.is_of(&HmacForm::signed_parts(id, moment, body), std::slice::from_ref(&code))?;
                // With a signed timestamp, the signature identifies the message regardless of its
                // unsigned id.
                Ok(id.map(str::to_owned).or_else(|| moment.map(|_| name_of_code(&code))))
            }
        }
    }

    /// Returns the header fields for sending a message with the given id.
    pub fn sign(&self, id: &str, body: &[u8], now_ms: i64) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let moment = now_ms.div_euclid(1000).to_string();
        let mut put = |name: &HeaderName, value: &str| {
            // Ids originate from header fields or are generated here, so they are valid values.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name.clone(), value);
            }
        };
        match &self.form {
            SignatureForm::StandardWebhooks => {
                let code = self.code(&[id.as_bytes(), b".", moment.as_bytes(), b".", body]);
                put(&ID, id);
                put(&TIMESTAMP, &moment);
                put(&SIGNATURE, &format!("v1,{}", STANDARD.encode(code)));
            }
            SignatureForm::Hmac(form) => {
                let signed_id = form.id.as_ref().filter(|_| form.signs_id).map(|_| id);
                let signed_moment = form.timestamp.as_ref().map(|name| {
                    put(name, &moment);
                    moment.as_str()
                });
                let code = self.code(&HmacForm::signed_parts(signed_id, signed_moment, body));
                put(&form.header, &format!("{}{}", form.prefix, form.encoding.encode(&code)));
                if let Some(name) = &form.id {
                    put(name, id);
                }
            }
        }
        headers
    }

    fn code(&self, parts: &[&[u8]]) -> Vec<u8> {
        let secret = self.secrets.first().expect("there is at least one");
        mac(secret, parts).finalize().into_bytes().to_vec()
    }

    /// Checks whether one of the codes matches one of the secrets, in constant time per comparison.
    fn is_of(&self, parts: &[&[u8]], codes: &[Vec<u8>]) -> Result<(), SignatureError> {
        let is_of =
            |secret: &Secret<Vec<u8>>| codes.iter().any(|code| mac(secret, parts).verify_slice(code).is_ok());
        if self.secrets.iter().any(is_of) { Ok(()) } else { Err(SignatureError::Wrong) }
    }
}

fn mac(secret: &Secret<Vec<u8>>, parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose()).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac
}

/// Checks that a timestamp in seconds since 1970 is close to the current time. It may be in the
/// future, since clocks differ.
fn is_near(moment: &str, now_ms: i64, tolerance: Duration) -> Result<(), SignatureError> {
    let seconds: i64 = moment.parse().map_err(|_| SignatureError::Form)?;
    let apart = now_ms.div_euclid(1000).abs_diff(seconds);
    if apart > tolerance.as_secs() { Err(SignatureError::Moment) } else { Ok(()) }
}

/// Derives a message id from a signature without revealing it.
fn name_of_code(code: &[u8]) -> String {
    Encoding::Hex.encode(&Sha256::digest(code)[..16])
}

impl HmacForm {
    /// Returns the signed content in order.
    fn signed_parts<'m>(id: Option<&'m str>, moment: Option<&'m str>, body: &'m [u8]) -> Vec<&'m [u8]> {
        let before = id.into_iter().chain(moment).flat_map(|part| [part.as_bytes(), b"."]);
        before.chain([body]).collect()
    }
}

impl Encoding {
    fn encode(self, code: &[u8]) -> String {
        match self {
            Encoding::Hex => code.iter().map(|byte| format!("{byte:02x}")).collect(),
            Encoding::Base64 => STANDARD.encode(code),
        }
    }

    fn decode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Encoding::Base64 => STANDARD.decode(text).ok(),
            Encoding::Hex => {
                let digits = text.as_bytes();
                let is_whole = !digits.is_empty() && digits.len().is_multiple_of(2) && digits.is_ascii();
                let byte = |pair: &[u8]| {
                    let pair = std::str::from_utf8(pair).ok()?;
                    u8::from_str_radix(pair, 16).ok()
                };
                is_whole.then(|| digits.chunks(2).map(byte).collect::<Option<_>>())?
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference libraries.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const NOW_MS: i64 = 1_614_265_330_000;
    const MINUTES: Duration = Duration::from_secs(300);

    fn standard(secrets: &[&str]) -> Signature {
        let secrets: Vec<_> = secrets.iter().map(|secret| Secret::from(*secret)).collect();
        Signature::new(SignatureForm::StandardWebhooks, &secrets).expect("secrets in their form")
    }

    fn message(fields: &[(&'static str, &str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn the_example_of_standard_webhooks_is_signed_and_checked_as_its_libraries_do() {
        let signed = standard(&[SECRET]).sign("msg_p5jXN8AQM9LWM0D4loKWxJek", BODY, NOW_MS);
        assert_eq!(signed["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let checked = standard(&[SECRET]).check(&signed, BODY, NOW_MS, MINUTES);
        assert_eq!(checked, Ok(Some("msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned())));
    }

    #[test]
    fn a_message_is_good_for_any_of_the_secrets_within_its_time_and_for_its_own_body() {
        let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let signed = standard(&[SECRET]).sign("msg_1", BODY, NOW_MS);
        assert!(standard(&[other, SECRET]).check(&signed, BODY, NOW_MS, MINUTES).is_ok());
        let check = |body: &[u8], now_ms| standard(&[SECRET]).check(&signed, body, now_ms, MINUTES);
        assert_eq!(check(b"{}", NOW_MS), Err(SignatureError::Wrong));
        assert!(check(BODY, NOW_MS + 300_000).is_ok());
        assert_eq!(check(BODY, NOW_MS + 301_000), Err(SignatureError::Moment));
        assert_eq!(check(BODY, NOW_MS - 301_000), Err(SignatureError::Moment));
        assert_eq!(standard(&[other]).check(&signed, BODY, NOW_MS, MINUTES), Err(SignatureError::Wrong));
        let moment = (NOW_MS / 1000).to_string();
        for fields in [
            vec![],
            vec![("webhook-id", "msg_1"), ("webhook-timestamp", moment.as_str())],
            vec![("webhook-id", "msg_1"), ("webhook-timestamp", "soon"), ("webhook-signature", "v1,AAAA")],
            vec![("webhook-id", ""), ("webhook-timestamp", &moment), ("webhook-signature", "v1,AAAA")],
            vec![("webhook-id", "msg_1"), ("webhook-timestamp", &moment), ("webhook-signature", "v2,AAAA")],
        ] {
            let checked = standard(&[SECRET]).check(&message(&fields), BODY, NOW_MS, MINUTES);
            assert_eq!(checked, Err(SignatureError::Form), "{fields:?}");
        }
        assert!(Signature::new(SignatureForm::StandardWebhooks, &[Secret::from("whsec_?")]).is_none());
    }

    #[test]
    fn a_plain_signature_has_the_field_the_encoding_and_the_moment_that_it_is_told() {
        for (encoding, timestamp, signs_id) in [
            (Encoding::Hex, None, false),
            (Encoding::Base64, None, false),
            (Encoding::Hex, Some(HeaderName::from_static("x-moment")), false),
            (Encoding::Hex, None, true),
            (Encoding::Base64, Some(HeaderName::from_static("x-moment")), true),
        ] {
            let form = HmacForm {
                header: HeaderName::from_static("x-hub-signature-256"),
                prefix: "sha256=".to_owned(),
                encoding,
                timestamp,
                id: Some(HeaderName::from_static("x-delivery")),
                signs_id,
            };
            let signature =
                Signature::new(SignatureForm::Hmac(form), &[Secret::from("It's a Secret to Everybody")])
                    .unwrap();
            let signed = signature.sign("7", b"Hello, World!", NOW_MS);
            if encoding == Encoding::Hex && !signed.contains_key("x-moment") && !signs_id {
                // The example from the documentation of the service that introduced this form.
                assert_eq!(
                    signed["x-hub-signature-256"],
                    "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
                );
            }
            let checked = signature.check(&signed, b"Hello, World!", NOW_MS, MINUTES);
            // An unsigned name must not identify a message.
            let name = checked.clone().expect("it is signed");
            assert_eq!(name.as_deref() == Some("7"), signs_id, "{name:?}");
            assert_eq!(name.is_some(), signs_id || signed.contains_key("x-moment"));
            let mut renamed = signed.clone();
            renamed.insert("x-delivery", HeaderValue::from_static("8"));
            let renamed = signature.check(&renamed, b"Hello, World!", NOW_MS, MINUTES);
            assert_eq!(renamed, if signs_id { Err(SignatureError::Wrong) } else { checked });
            assert_eq!(signature.check(&signed, b"Hello", NOW_MS, MINUTES), Err(SignatureError::Wrong));
            assert_eq!(signature.check(&message(&[]), b"", NOW_MS, MINUTES), Err(SignatureError::Form));
            let late = signature.check(&signed, b"Hello, World!", NOW_MS + 301_000, MINUTES);
            assert_eq!(late.is_err(), signed.contains_key("x-moment"));
        }
    }
}
