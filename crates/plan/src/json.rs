//! JSON text, member names and sets of JSON kinds.

use std::sync::Arc;
use switchback_json::raw::Kind;

/// Serialized JSON text.
pub type Raw = Arc<[u8]>;

/// A member name, as text and as JSON text with its quotes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The decoded name, compared with the decoded names in a body.
    pub text: Arc<str>,
    /// The name as written to a body: escaped and quoted.
    pub json: Raw,
}

impl Key {
    /// Returns the key for a decoded name.
    pub fn new(text: &str) -> Key {
        // Escaped once here, because the run time writes the name in every message.
        let json = ["\"", &switchback_json::text::escape(text), "\""].concat();
        Key { text: text.into(), json: json.into_bytes().into() }
    }
}

/// A set of JSON kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Kinds {
    /// Contains `null`.
    pub null: bool,
    /// Contains `true` and `false`.
    pub boolean: bool,
    /// Contains numbers.
    pub number: bool,
    /// Contains strings.
    pub string: bool,
    /// Contains arrays.
    pub array: bool,
    /// Contains objects.
    pub object: bool,
}

impl Kinds {
    /// The set of all kinds.
    pub const ANY: Kinds =
        Kinds { null: true, boolean: true, number: true, string: true, array: true, object: true };

    /// Returns the set of these kinds. Order and repetition do not matter.
    pub const fn from_kinds(kinds: &[Kind]) -> Kinds {
        let mut set =
            Kinds { null: false, boolean: false, number: false, string: false, array: false, object: false };
        // A `for` loop is not available in a `const fn`.
        let mut at = 0;
        while at < kinds.len() {
            match kinds[at] {
                Kind::Null => set.null = true,
                Kind::Bool => set.boolean = true,
                Kind::Number => set.number = true,
                Kind::String => set.string = true,
                Kind::Array => set.array = true,
                Kind::Object => set.object = true,
            }
            at += 1;
        }
        set
    }

    /// Returns whether the set contains this kind.
    pub const fn contains(self, kind: Kind) -> bool {
        match kind {
            Kind::Null => self.null,
            Kind::Bool => self.boolean,
            Kind::Number => self.number,
            Kind::String => self.string,
            Kind::Array => self.array,
            Kind::Object => self.object,
        }
    }
}
