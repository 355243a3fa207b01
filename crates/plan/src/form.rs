//! The constraints of a contract on a value that a client sends, as far as the run-time check needs
//! them: a tree without type names. It has kinds, enumerated values and required fields, but no
//! bounds (lengths, ranges, patterns).

use super::json::{Key, Raw};
use super::location::Location;
use std::sync::Arc;

/// The constraints on a value.
#[derive(Debug)]
pub struct Form {
    /// Constraints on a value other than null.
    pub kind: FormKind,
    /// Whether null is allowed.
    pub nullable: bool,
}

/// The constraints on a value other than null.
#[derive(Debug)]
pub enum FormKind {
    /// Any JSON value.
    Any,
    /// Only null.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number without a fraction.
    Integer(Listed),
    /// Any number.
    Number(Listed),
    /// A text.
    String(Listed),
    /// A list.
    Array {
        /// Constraints on each element.
        items: Arc<Form>,
        /// Minimum number of elements.
        items_min: u64,
        /// Maximum number of elements; `None` if unbounded.
        items_max: Option<u64>,
    },
    /// An object.
    Object {
        /// The declared fields, required or optional.
        fields: Vec<FormField>,
        /// Constraints on undeclared fields; `None` if there are none.
        others: Option<Arc<Form>>,
    },
    /// Alternatives of different JSON kinds.
    OneOf(Vec<Arc<Form>>),
}

/// The allowed scalars (JSON text); `None` if any value is allowed.
pub type Listed = Option<Vec<Raw>>;

/// A declared field.
#[derive(Debug)]
pub struct FormField {
    /// Name of the field.
    pub name: Key,
    /// Constraints on its value.
    pub form: Arc<Form>,
    /// Whether the field is required.
    pub required: bool,
}

/// A place of the request with its constraints.
#[derive(Clone, Debug)]
pub struct Conform {
    /// A singular path that consists of names.
    pub place: Location,
    /// Constraints on the value, if present.
    pub form: Arc<Form>,
    /// Whether the value is required.
    pub required: bool,
}
