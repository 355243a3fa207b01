//! Expressions: values computed from the context document of a `serve` route, for calls and
//! responses.
//!
//! The context is
//! `{request: {path, query, headers, body, received, id}, <step>: {status, headers, body},
//! <selection>: value, config}`. `received` and `id` are there if the route reads one of them.
//! The values of `request.path` and `request.query` have the JSON types that the served contract
//! declares.

use super::ReasonId;
use super::body::ValueOp;
use super::convert::Conversion;
use super::function::{ApplyElse, Function};
use super::json::{Key, Raw};
use super::location::Location;
use super::predicate::Predicate;
use std::sync::Arc;

/// An expression. If it yields no value (its place is absent), its member is omitted.
#[derive(Clone, Debug)]
pub enum Expr {
    /// This text, always.
    Constant(Raw),
    /// The value at a place of the context.
    At(Location),
    /// A converted value.
    Convert {
        /// The value to convert. If it is absent, so is the result.
        from: Box<Expr>,
        /// The conversion, in one direction.
        conversion: Conversion,
    },
    /// A value after these functions, in order. Null passes unchanged.
    Apply {
        /// The value of the first function. If it is absent, so is the result.
        from: Box<Expr>,
        /// The functions; at least one.
        functions: Vec<Arc<dyn Function>>,
        /// Handling of a value outside the domain of one of them.
        otherwise: ApplyElse,
    },
    /// An object of these members; members without a value are omitted.
    Object(Vec<(Key, Expr)>),
    /// An array of these elements; elements without a value are omitted.
    Array(Vec<Expr>),
    /// A reason in the client's language with its placeholders filled.
    Text {
        /// The text.
        reason: ReasonId,
        /// Placeholders by name, each with a scalar.
        with: Vec<(String, Expr)>,
    },
    /// The result of a shape.
    Shape {
        /// The shape's op in the required direction.
        op: ValueOp,
        /// The value that the shape translates.
        from: Box<Expr>,
        /// Values for [`super::CloseFrom::Supplied`], by index.
        with: Vec<Expr>,
        /// If present, the result is merged into a value of the target side.
        over: Option<Box<Overlay>>,
        /// Members with a null that this text replaces.
        null_as: Vec<(Key, Raw)>,
        /// Handling of the other nulls in the result.
        null_else: NullElse,
    },
    /// The first value that is present and not null; otherwise the result of the last expression.
    FirstOf(Vec<Expr>),
    /// An array of the values that are present and not null.
    Present(Vec<Expr>),
    /// An array with the value of `give` for each element of a list. `give` sees the element in the
    /// context under `name`. Absent if there is no list.
    Each {
        /// Name of the element in the context.
        name: Key,
        /// The list.
        list: Box<Expr>,
        /// The expression to evaluate for each element.
        give: Box<Expr>,
    },
    /// The element of a list with a member that equals a value, for side-loaded records. For a list
    /// of values, all matching elements in the order of the values. Absent if no element matches.
    Lookup {
        /// A scalar, or a list of scalars.
        value: Box<Expr>,
        /// The list; a singular path.
        list: Location,
        /// The member of an element to compare with the value.
        by: Key,
        /// The member of the matching element to return; `None` for the element itself.
        field: Option<Key>,
    },
    /// An aggregate of a list; absent if there is no list.
    Aggregate {
        /// The aggregate function.
        what: Aggregate,
        /// The list.
        list: Box<Expr>,
    },
    /// A conditional value.
    If {
        /// The condition.
        predicate: Predicate,
        /// The value if the condition is true.
        then: Box<Expr>,
        /// The value if the condition is false; absent by default.
        otherwise: Option<Box<Expr>>,
    },
    /// A text with one line per scalar; a list contributes one line per element. Numbered lines
    /// follow: `1. text`.
    Lines {
        /// The lines without numbers.
        plain: Vec<Expr>,
        /// The lines numbered from one.
        numbered: Vec<Expr>,
    },
}

/// An aggregate function for lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// The number of elements.
    Count,
    /// The exact sum of the numeric elements; null is skipped.
    Sum,
}

/// The base of a merge: the `put` of a lens.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// The old value of the target side.
    pub base: Expr,
    /// Members of the target's type; other members of the base are removed.
    pub fields: Vec<Key>,
}

/// The handling of nulls that `null_as` does not list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullElse {
    /// Keep null.
    Keep,
    /// Omit the member.
    Absent,
}
