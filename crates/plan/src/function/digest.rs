//! `md5` and `sha256`: the digest of a text (RFC 1321, FIPS 180-4), as hexadecimal digits or base64.
//! They name things, such as a subscriber by the MD5 of an address. They authenticate nothing.

use super::{Function, FunctionArguments, FunctionSpec, example};
use crate::convert::{ArgumentError, Given};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use switchback_json::Value;

const SCHEMA: &str = r#"{"enum": ["hex", "base64"]}"#;

pub(super) const MD5: FunctionSpec = FunctionSpec {
    name: "md5",
    about: "The MD5 digest of a text, in `hex` or `base64`.",
    arguments: Some(FunctionArguments { such_as: "{md5: hex}", schema: SCHEMA }),
    build: |given| build(given, &MD5, |text| Md5::digest(text).to_vec()),
    examples: &[
        example("\"hex\"", "\"ana@example.com\"", Some("\"cdb9d6a1dddc375a09cc83e3001598dc\"")),
        example("\"base64\"", "\"\"", Some("\"1B2M2Y8AsgTpgAmY7PhCfg==\"")),
    ],
};

pub(super) const SHA256: FunctionSpec = FunctionSpec {
    name: "sha256",
    about: "The SHA-256 digest of a text, in `hex` or `base64`.",
    arguments: Some(FunctionArguments { such_as: "{sha256: hex}", schema: SCHEMA }),
    build: |given| build(given, &SHA256, |text| Sha256::digest(text).to_vec()),
    examples: &[
        example(
            "\"hex\"",
            "\"abc\"",
            Some("\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\""),
        ),
        example("\"base64\"", "\"abc\"", Some("\"ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=\"")),
    ],
};

#[derive(Debug)]
struct TextDigest {
    spec: &'static FunctionSpec,
    digest: fn(&[u8]) -> Vec<u8>,
    is_hex: bool,
}

fn build(
    given: &Given<'_>,
    spec: &'static FunctionSpec,
    digest: fn(&[u8]) -> Vec<u8>,
) -> Result<Arc<dyn Function>, ArgumentError> {
    let is_hex = match given.arguments.as_str().as_deref() {
        Some("hex") => true,
        Some("base64") => false,
        _ => return Err("it takes `hex` or `base64`".into()),
    };
    Ok(Arc::new(TextDigest { spec, digest, is_hex }))
}

impl Function for TextDigest {
    fn name(&self) -> &'static str {
        self.spec.name
    }

    fn apply(&self, value: Value) -> Option<Value> {
        let digest = (self.digest)(value.as_str()?.as_bytes());
        let written = match self.is_hex {
            true => digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            false => STANDARD.encode(digest),
        };
        Some(Value::string(&written))
    }
}
