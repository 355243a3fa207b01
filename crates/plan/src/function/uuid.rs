//! `uuid`: the UUID of a text within a namespace (version 5, RFC 9562, section 5.5). The same text
//! always gives the same UUID, so a call that is sent again carries it again.

use super::{Function, FunctionArguments, FunctionSpec, example};
use crate::convert::{ArgumentError, Given};
use sha1::{Digest, Sha1};
use std::sync::Arc;
use switchback_json::Value;

pub(super) const SPEC: FunctionSpec = FunctionSpec {
    name: "uuid",
    about: "The UUID (version 5) of a text within a namespace.",
    arguments: Some(FunctionArguments {
        such_as: "{uuid: url}",
        schema: r#"{"anyOf": [
            {"enum": ["dns", "url", "oid", "x500"], "description": "A namespace of RFC 9562."},
            {"type": "string", "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", "description": "A namespace of one's own: any UUID."}]}"#,
    }),
    build,
    examples: &[
        // The example of RFC 9562, appendix A.4.
        example("\"dns\"", "\"www.example.com\"", Some("\"2ed6657d-e927-568b-95e1-2665a8aea6a2\"")),
        example(
            "\"6BA7B811-9dad-11d1-80b4-00c04fd430c8\"",
            "\"https://www.example.com/\"",
            Some("\"3d3ed9d2-aa3d-5fa6-90e8-ed662e90f559\""),
        ),
        example("\"url\"", "7", None),
    ],
};

/// The namespaces of RFC 9562, section 6.6. They differ in one digit.
const NAMESPACES: [(&str, u128); 4] = [
    ("dns", 0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8),
    ("url", 0x6ba7_b811_9dad_11d1_80b4_00c0_4fd4_30c8),
    ("oid", 0x6ba7_b812_9dad_11d1_80b4_00c0_4fd4_30c8),
    ("x500", 0x6ba7_b814_9dad_11d1_80b4_00c0_4fd4_30c8),
];

fn build(given: &Given<'_>) -> Result<Arc<dyn Function>, ArgumentError> {
    const FORM: &str = "it takes a namespace: `dns`, `url`, `oid`, `x500`, or any UUID";
    let text = given.arguments.as_str().ok_or(FORM)?;
    let known = NAMESPACES.iter().find(|(name, _)| *name == text).map(|(_, namespace)| *namespace);
    match known.or_else(|| parse(&text)) {
        Some(namespace) => Ok(Arc::new(Uuid { namespace: namespace.to_be_bytes() })),
        None => Err(ArgumentError::unknown(FORM, &text, NAMESPACES.map(|(name, _)| name))),
    }
}

/// Parses a UUID in its text form (RFC 9562, section 4).
fn parse(text: &str) -> Option<u128> {
    let parts: Vec<&str> = text.split('-').collect();
    let has_form = parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]);
    let digits = parts.concat();
    // `from_str_radix` accepts a sign.
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if has_form && are_digits { u128::from_str_radix(&digits, 16).ok() } else { None }
}

#[derive(Debug)]
struct Uuid {
    namespace: [u8; 16],
}

impl Function for Uuid {
    fn name(&self) -> &'static str {
        SPEC.name
    }

    fn apply(&self, value: Value) -> Option<Value> {
        let digest =
            Sha1::new().chain_update(self.namespace).chain_update(value.as_str()?.as_bytes()).finalize();
        let mut bytes: [u8; 16] = digest[..16].try_into().ok()?;
        // Version and variant replace six bits.
        bytes[6] = bytes[6] & 0x0f | 0x50;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let digits = format!("{:032x}", u128::from_be_bytes(bytes));
        let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
        Some(Value::string(&format!("{a}-{b}-{c}-{d}-{e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::build;

    #[test]
    fn a_namespace_is_a_name_or_a_uuid() {
        for wrong in [
            "7",
            "\"uri\"",
            "\"6ba7b8119dad11d180b400c04fd430c8\"",
            "\"+ba7b811-9dad-11d1-80b4-00c04fd430c8\"",
        ] {
            assert!(build("uuid", wrong).is_err(), "{wrong}");
        }
    }
}
