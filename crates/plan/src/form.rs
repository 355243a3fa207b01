//! What a contract says of a value that a client sends, as far as a check at run time needs it: a tree without names of
//! types. Bounds (lengths, ranges, patterns) are not in it; kinds, listed values and required fields are.

use super::body::{Key, Raw};
use super::expr::Location;
use std::sync::Arc;

/// A value's form.
#[derive(Debug)]
pub struct Form {
    /// What it is when it is not null.
    pub kind: FormKind,
    /// Whether it may also be null.
    pub nullable: bool,
}

/// What a value is, null aside.
#[derive(Debug)]
pub enum FormKind {
    /// Whatever JSON there is.
    Any,
    /// Nothing but null.
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
        /// The form of each element.
        items: Arc<Form>,
        /// Least number of elements.
        items_min: u64,
        /// Greatest number of elements; none = any number.
        items_max: Option<u64>,
    },
    /// An object.
    Object {
        /// Those that the contract declares, required or not.
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
    /// Its name in the object.
    pub name: Key,
    /// What stands under that name.
    pub form: Arc<Form>,
    /// Whether the object must have it.
    pub required: bool,
}

/// A place of the request, and what the contract says of it.
#[derive(Clone, Debug)]
pub struct Conform {
    /// Singular, and made of names.
    pub place: Location,
    /// What the value must be where it is there.
    pub form: Arc<Form>,
    /// Whether it must be there.
    pub required: bool,
}
