//! What a contract says of a value that a client sends, as far as a check at run time needs it: a tree without names of
//! types. Bounds (lengths, ranges, patterns) are not in it; kinds, listed values and required fields are.

use super::body::{Key, Raw};
use super::expr::Location;
use std::sync::Arc;

/// A value's form.
#[derive(Debug)]
pub struct Form {
    pub kind: FormKind,
    /// Whether it may also be null.
    pub nullable: bool,
}

/// What a value is, null aside.
#[derive(Debug)]
pub enum FormKind {
    Any,
    /// Nothing but null.
    Null,
    Boolean,
    /// A number without a fraction.
    Integer(Listed),
    Number(Listed),
    String(Listed),
    Array {
        items: Arc<Form>,
        items_min: u64,
        items_max: Option<u64>,
    },
    Object {
        fields: Vec<FormField>,
        /// The form of fields that are not declared; none = any.
        others: Option<Arc<Form>>,
    },
    /// Alternatives that differ by JSON kind.
    OneOf(Vec<Arc<Form>>),
}

/// The scalars (JSON text) that may stand there; none = any.
pub type Listed = Option<Vec<Raw>>;

/// A declared field.
#[derive(Debug)]
pub struct FormField {
    pub name: Key,
    pub form: Arc<Form>,
    pub required: bool,
}

/// A place of the request, and what the contract says of it.
#[derive(Clone, Debug)]
pub struct Conform {
    /// Singular, and made of names.
    pub place: Location,
    pub form: Arc<Form>,
    pub required: bool,
}
