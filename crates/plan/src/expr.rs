//! Values made for a call or an answer out of the context document of a `serve` route.
//!
//! The context is `{request: {path, query, headers, body}, <step>: {status, headers, body}, <selection>: value, config}`.
//! `request.path` and `request.query` values carry the JSON type that the served contract gives them.

use super::body::{Raw, ValueOp};
use super::convert::Conversion;
use super::step::Predicate;
use super::{Key, ReasonId};
use jsonpath_rust::parser::model::JpQuery;
use std::sync::Arc;

/// A value to be made. Nothing (an absent place) leaves out the member it was meant for.
#[derive(Clone, Debug)]
pub enum Expr {
    Constant(Raw),
    /// The value at a place of the context.
    At(Location),
    /// A converted value.
    Convert {
        from: Box<Expr>,
        conversion: Conversion,
    },
    Object(Vec<(Key, Expr)>),
    Array(Vec<Expr>),
    /// A reason in the client's language with its placeholders filled.
    Text {
        reason: ReasonId,
        with: Vec<(String, Expr)>,
    },
    /// A shape run over a value.
    Shape {
        op: ValueOp,
        from: Box<Expr>,
        /// Values for [`super::CloseFrom::Supplied`], by index.
        with: Vec<Expr>,
        over: Option<Box<Overlay>>,
        /// Members whose null becomes this text instead.
        null_as: Vec<(Key, Raw)>,
        null_else: NullElse,
    },
    /// The first that yields something other than nothing and null; of these the last, if none does.
    FirstOf(Vec<Expr>),
    /// A list of those that yield something other than nothing and null.
    Present(Vec<Expr>),
    /// A list of what `give` yields for each element of a list, which stands in the context under `name` meanwhile;
    /// nothing where there is no list.
    Each {
        name: Key,
        list: Box<Expr>,
        give: Box<Expr>,
    },
    /// The element of a list whose member is the value: side-loaded records, of which an answer has a second list. For a list
    /// of values, those elements that are there, in the order of the values. Nothing where there is none.
    Lookup {
        value: Box<Expr>,
        /// Singular.
        list: Location,
        by: Key,
        /// Of the element found; the element itself without it.
        field: Option<Key>,
    },
    /// A number about the elements of a list; nothing where there is no list.
    Aggregate {
        what: Aggregate,
        list: Box<Expr>,
    },
    If {
        predicate: Predicate,
        then: Box<Expr>,
        /// Nothing without it.
        otherwise: Option<Box<Expr>>,
    },
    /// Scalars as text, each on a line of its own, a list for as many lines as it has elements. Then further lines, numbered
    /// from one: `1. text`.
    Lines {
        plain: Vec<Expr>,
        numbered: Vec<Expr>,
    },
}

/// Numbers about lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// How many elements there are.
    Count,
    /// The exact sum of the elements that are numbers; null is passed over.
    Sum,
}

/// What the result of a shape is laid over: the lens's `put`.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// The old value of the target side.
    pub base: Expr,
    /// Members of the target's type; the base is cut down to these.
    pub fields: Vec<Key>,
}

/// What happens to nulls that `null_as` does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullElse {
    Keep,
    /// The member is left out.
    Absent,
}

/// A place of the context: which root, and a path below it.
#[derive(Clone, Debug)]
pub struct Location {
    /// As written in the mapping, for messages.
    pub text: Arc<str>,
    pub path: Path,
}

/// A path into the context. Singular paths are plain steps; others are run by the evaluator of jsonpath-rust and yield
/// an array of all matches.
#[derive(Clone, Debug)]
pub enum Path {
    Singular(Vec<Segment>),
    Query(Arc<JpQuery>),
}

/// One step of a singular path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    Member(Key),
    /// Counted from the end when negative.
    Index(i64),
}
