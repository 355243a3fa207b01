//! The application of a grant and its credential at the authorization server: a secret, or a private
//! key that signs an assertion for each request (`private_key_jwt`: RFC 7523, section 2.2; OpenID
//! Connect Core 1.0, section 9). The module `wire` sends both.
//!
//! The signatures are those of `ring`, which rustls links already. A crate for JSON Web Signatures
//! would bring a second cryptographic library and save three lines: the compact form of RFC 7515.

use crate::secret::Secret;
use crate::store::Opened;
use crate::store::seal::random;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::json;
use std::time::Duration;
use zeroize::Zeroizing;

/// Lifetime of an assertion. It bounds the use of a stolen one, and the time for which a server
/// remembers its `jti`.
const ASSERTION_LIFETIME: Duration = Duration::from_secs(60);
/// First line of a stored key. A client secret has no line break (RFC 6749, appendix A.2).
const STORED_KEY: &str = "private_key_jwt\n";
/// Most bytes of a key id.
const KEY_ID_BYTES_MAX: usize = 255;

/// The application's credentials at the authorization server.
#[derive(Clone, Debug)]
pub struct OAuthApp {
    /// Its id.
    pub id: Secret<String>,
    /// The proof of its identity.
    pub credential: AppCredential,
}

impl OAuthApp {
    /// Returns an application with a client secret.
    pub fn with_secret(id: Secret<String>, secret: Secret<String>) -> OAuthApp {
        OAuthApp { id, credential: AppCredential::Secret(secret) }
    }

    /// Returns the application of a grant, if it has one.
    pub(super) fn of_grant(secrets: &Opened) -> Option<OAuthApp> {
        let credential = AppCredential::from_stored(secrets.app_secret.as_ref()?);
        Some(OAuthApp { id: secrets.app_id.clone()?, credential })
    }
}

/// The proof of an application's identity.
#[derive(Clone, Debug)]
pub enum AppCredential {
    /// A client secret; empty for a public application.
    Secret(Secret<String>),
    /// A private key, for `private_key_jwt`.
    Key(AppKey),
}

impl AppCredential {
    /// Returns the private key, if it is one.
    pub fn key(&self) -> Option<&AppKey> {
        match self {
            AppCredential::Secret(_) => None,
            AppCredential::Key(key) => Some(key),
        }
    }

    /// Returns the form that the store seals: a secret as it is; a key after a line that no secret
    /// has, and a line with its id, which may be empty.
    pub(super) fn to_stored(&self) -> Secret<String> {
        match self {
            AppCredential::Secret(secret) => secret.clone(),
            AppCredential::Key(AppKey { pem, id }) => {
                let id = id.as_deref().unwrap_or_default();
                Secret::new(format!("{STORED_KEY}{id}\n{}", pem.expose()))
            }
        }
    }

    fn from_stored(stored: &Secret<String>) -> AppCredential {
        let key = stored.expose().strip_prefix(STORED_KEY).and_then(|key| key.split_once('\n'));
        match key {
            None => AppCredential::Secret(stored.clone()),
            Some((id, pem)) => {
                let id = (!id.is_empty()).then(|| id.to_owned());
                AppCredential::Key(AppKey { pem: pem.into(), id })
            }
        }
    }
}

/// Why a text is not usable as an application's private key. The texts do not quote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppKeyError {
    /// No private key in PEM.
    #[error("this is not a private key in PEM, which begins with `-----BEGIN PRIVATE KEY-----`")]
    NotPem,
    /// A public key or a certificate.
    #[error(
        "this is the public part of a key; it belongs to the authorization server, and the private key here"
    )]
    Public,
    /// The key is encrypted.
    #[error("the private key is encrypted; `openssl pkey -in KEY -out NEW` decrypts it")]
    Encrypted,
    /// The key has the form of RFC 5915.
    #[error("the private key is in the form of RFC 5915; `openssl pkey -in KEY -out NEW` makes it PKCS#8")]
    Sec1,
    /// The algorithm or the size is not supported.
    #[error("the private key is neither RSA with 2048 to 4096 bits nor ECDSA on P-256 nor Ed25519")]
    Kind,
    /// The key id is too long, empty or has control characters.
    #[error("a key id is 1 to {KEY_ID_BYTES_MAX} bytes without control characters")]
    Id,
    /// The signature failed.
    #[error("signing failed")]
    Signing,
}

/// The private key of an application. Signs with RS256 (RSA), ES256 (P-256) or EdDSA (Ed25519; RFC
/// 7518 and RFC 8037).
#[derive(Clone, Debug)]
pub struct AppKey {
    /// In PKCS#8, or PKCS#1 for RSA.
    pem: Secret<String>,
    /// Header parameter `kid`.
    id: Option<String>,
}

impl AppKey {
    /// Checks a private key in PEM, unencrypted, as PKCS#8 or, for RSA, as PKCS#1. `id` becomes the
    /// `kid` of assertions, by which a server selects one of several registered keys.
    ///
    /// # Errors
    ///
    /// The text is not such a key, or the id cannot be used.
    pub fn new(pem: Secret<String>, id: Option<String>) -> Result<AppKey, AppKeyError> {
        let is_id =
            |id: &String| (1..=KEY_ID_BYTES_MAX).contains(&id.len()) && !id.chars().any(char::is_control);
        if !id.as_ref().is_none_or(is_id) {
            return Err(AppKeyError::Id);
        }
        Signer::parse(&pem)?;
        Ok(AppKey { pem, id })
    }

    /// Returns the key in PEM.
    pub fn pem(&self) -> &Secret<String> {
        &self.pem
    }

    /// Returns the JWS algorithm of its signatures.
    ///
    /// # Errors
    ///
    /// The key is unusable, which [`AppKey::new`] excludes.
    pub fn algorithm(&self) -> Result<&'static str, AppKeyError> {
        Signer::parse(&self.pem).map(|signer| signer.algorithm())
    }

    /// Signs an assertion with a new `jti` that authenticates the application `app` (RFC 7523, section
    /// 3). `now_ms` is in milliseconds since 1970.
    pub(super) fn assertion(
        &self,
        app: &Secret<String>,
        audience: &str,
        now_ms: i64,
    ) -> Result<Secret<String>, AppKeyError> {
        let signer = Signer::parse(&self.pem)?;
        let mut header = json!({ "alg": signer.algorithm(), "typ": "JWT" });
        if let Some(id) = &self.id {
            header["kid"] = id.as_str().into();
        }
        let now = now_ms / 1000;
        let claims = json!({
            "iss": app.expose(),
            "sub": app.expose(),
            "aud": audience,
            "iat": now,
            "exp": now + ASSERTION_LIFETIME.as_secs() as i64,
            "jti": URL_SAFE_NO_PAD.encode(random::<16>()),
        });
        let encoded = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = encoded.join(".");
        let signature = URL_SAFE_NO_PAD.encode(signer.sign(signed.as_bytes())?);
        Ok(Secret::new(format!("{signed}.{signature}")))
    }
}

/// A parsed key. It is parsed for each assertion, because `ring` does not wipe keys from memory.
enum Signer {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    fn parse(pem: &Secret<String>) -> Result<Signer, AppKeyError> {
        let text = pem.expose();
        // Encryption is in the label (RFC 5958) or in a header of the traditional form (RFC 1421).
        if text.contains("-----BEGIN ENCRYPTED ") || text.contains("4,ENCRYPTED") {
            return Err(AppKeyError::Encrypted);
        }
        let Ok(key) = PrivateKeyDer::from_pem_slice(text.as_bytes()) else {
            let is_public =
                ["PUBLIC KEY-----", "BEGIN CERTIFICATE-----"].iter().any(|label| text.contains(label));
            return Err(if is_public { AppKeyError::Public } else { AppKeyError::NotPem });
        };
        let key = Zeroizing::new(key);
        match &*key {
            PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()).map(Signer::Rsa).ok(),
            PrivateKeyDer::Sec1(_) => return Err(AppKeyError::Sec1),
            key => {
                let (der, random) = (key.secret_der(), SystemRandom::new());
                let p256 = || EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random);
                // OpenSSL writes Ed25519 keys without the public key, against which the checked
                // variant compares.
                let ed25519 = || Ed25519KeyPair::from_pkcs8_maybe_unchecked(der);
                let rsa = RsaKeyPair::from_pkcs8(der).map(Signer::Rsa);
                rsa.or_else(|_| p256().map(Signer::P256)).or_else(|_| ed25519().map(Signer::Ed25519)).ok()
            }
        }
        .ok_or(AppKeyError::Kind)
    }

    /// Returns the algorithm (RFC 7518, section 3.1; RFC 8037, section 3.1).
    fn algorithm(&self) -> &'static str {
        match self {
            Signer::Rsa(_) => "RS256",
            Signer::P256(_) => "ES256",
            Signer::Ed25519(_) => "EdDSA",
        }
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, AppKeyError> {
        let random = SystemRandom::new();
        match self {
            Signer::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map(|()| signature)
            }
            Signer::P256(key) => key.sign(&random, message).map(|signature| signature.as_ref().to_vec()),
            Signer::Ed25519(key) => Ok(key.sign(message).as_ref().to_vec()),
        }
        .map_err(|_| AppKeyError::Signing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED, ED25519, KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
        VerificationAlgorithm,
    };
    use serde_json::Value;
    use std::path::Path;

    const NOW_MS: i64 = 1_767_225_600_999;

    fn pem(name: &str) -> Secret<String> {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/integration/support/client_keys");
        let pem =
            std::fs::read_to_string(folder.join(name).with_extension("pem")).expect("a key of the tests");
        // As the configuration reads it.
        pem.trim_end().into()
    }

    fn parts(token: &Secret<String>) -> (Value, Value) {
        let parts: Vec<&str> = token.expose().split('.').collect();
        let part = |at: usize| {
            let bytes = URL_SAFE_NO_PAD.decode(parts[at]).expect("base64url");
            serde_json::from_slice(&bytes).expect("JSON")
        };
        assert_eq!(parts.len(), 3);
        (part(0), part(1))
    }

    fn is_signed(token: &Secret<String>, key: &AppKey) -> bool {
        let (signed, signature) = token.expose().rsplit_once('.').expect("a signature");
        let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
        let (algorithm, public): (&'static dyn VerificationAlgorithm, Vec<u8>) =
            match Signer::parse(&key.pem).expect("a key") {
                Signer::Rsa(key) => (&RSA_PKCS1_2048_8192_SHA256, key.public().as_ref().to_vec()),
                Signer::P256(key) => (&ECDSA_P256_SHA256_FIXED, key.public_key().as_ref().to_vec()),
                Signer::Ed25519(key) => (&ED25519, key.public_key().as_ref().to_vec()),
            };
        UnparsedPublicKey::new(algorithm, public).verify(signed.as_bytes(), &signature).is_ok()
    }

    #[test]
    fn each_assertion_is_signed_and_used_once() {
        for (name, algorithm, id) in [
            ("rsa", "RS256", Some("first")),
            ("rsa-pkcs1", "RS256", None),
            ("p256", "ES256", None),
            ("ed25519", "EdDSA", Some("second")),
        ] {
            let key = AppKey::new(pem(name), id.map(str::to_owned)).expect("a key");
            let sign = || key.assertion(&"app".into(), "https://auth.example", NOW_MS).expect("signed");
            let (first, second) = (sign(), sign());
            assert!(is_signed(&first, &key) && is_signed(&second, &key), "{name}");
            let (header, mut claims) = parts(&first);
            let mut expected = json!({ "alg": algorithm, "typ": "JWT" });
            if let Some(id) = id {
                expected["kid"] = id.into();
            }
            assert_eq!(header, expected);
            assert_ne!(claims["jti"], parts(&second).1["jti"], "{name}");
            claims.as_object_mut().expect("an object").remove("jti");
            let expected = json!({
                "iss": "app", "sub": "app", "aud": "https://auth.example", "iat": 1_767_225_600, "exp": 1_767_225_660,
            });
            assert_eq!(claims, expected);
        }
    }

    #[test]
    fn an_unusable_key_is_reported_without_its_text() {
        for (name, expected) in [
            ("p256-public", AppKeyError::Public),
            ("p256-encrypted", AppKeyError::Encrypted),
            ("rsa-encrypted", AppKeyError::Encrypted),
            ("p256-sec1", AppKeyError::Sec1),
            ("p384", AppKeyError::Kind),
            ("rsa-1024", AppKeyError::Kind),
        ] {
            assert_eq!(AppKey::new(pem(name), None).map(drop), Err(expected), "{name}");
        }
        for (text, expected) in [
            ("hunter2", AppKeyError::NotPem),
            ("-----BEGIN PRIVATE KEY-----\n*hunter2*\n-----END PRIVATE KEY-----", AppKeyError::NotPem),
            ("-----BEGIN PRIVATE KEY-----\naHVudGVyMg==\n-----END PRIVATE KEY-----", AppKeyError::Kind),
            ("-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----", AppKeyError::Public),
        ] {
            let error = AppKey::new(text.into(), None).expect_err("no key");
            assert_eq!(error, expected, "{text}");
            assert!(!error.to_string().contains("hunter2"));
        }
        for id in ["", "a\nb", &"k".repeat(256)] {
            assert_eq!(AppKey::new(pem("p256"), Some(id.to_owned())).map(drop), Err(AppKeyError::Id), "{id}");
        }
    }

    #[test]
    fn a_credential_is_the_same_after_it_was_stored() {
        for id in [None, Some("first")] {
            let key = AppKey::new(pem("p256"), id.map(str::to_owned)).expect("a key");
            let stored = AppCredential::Key(key).to_stored();
            let AppCredential::Key(again) = AppCredential::from_stored(&stored) else {
                panic!("a key");
            };
            assert_eq!((again.id.as_deref(), again.pem.expose()), (id, pem("p256").expose()));
        }
        for secret in ["", "s3cret", "private_key_jwt", "-----BEGIN PRIVATE KEY-----"] {
            let stored = AppCredential::Secret(secret.into()).to_stored();
            let AppCredential::Secret(again) = AppCredential::from_stored(&stored) else {
                panic!("a secret");
            };
            assert_eq!(again.expose(), secret);
        }
    }

    #[test]
    fn a_key_is_not_part_of_debug_output() {
        let key = AppKey::new(pem("p256"), Some("first".to_owned())).expect("a key");
        let app = OAuthApp { id: "app".into(), credential: AppCredential::Key(key) };
        let pem = pem("p256");
        let line = pem.expose().lines().nth(1).expect("a line of the key");
        let shown = format!("{app:?}");
        assert!(shown.contains("first") && !shown.contains(line) && !shown.contains("BEGIN"), "{shown}");
    }
}
