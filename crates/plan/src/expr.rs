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
    /// This text, whatever the request was.
    Constant(Raw),
    /// The value at a place of the context.
    At(Location),
    /// A converted value.
    Convert {
        /// What makes the value that is converted; nothing stays nothing.
        from: Box<Expr>,
        /// What is done to it, in one direction.
        conversion: Conversion,
    },
    /// An object of these members; those that yield nothing are left out.
    Object(Vec<(Key, Expr)>),
    /// A list of these; those that yield nothing are left out.
    Array(Vec<Expr>),
    /// A reason in the client's language with its placeholders filled.
    Text {
        /// Which text.
        reason: ReasonId,
        /// Placeholders by name, each with a scalar.
        with: Vec<(String, Expr)>,
    },
    /// A shape run over a value.
    Shape {
        /// The shape's op, in the direction that is needed.
        op: ValueOp,
        /// What makes the value that it is run over.
        from: Box<Expr>,
        /// Values for [`super::CloseFrom::Supplied`], by index.
        with: Vec<Expr>,
        /// Where given, the result is laid over a value of the target side.
        over: Option<Box<Overlay>>,
        /// Members whose null becomes this text instead.
        null_as: Vec<(Key, Raw)>,
        /// What becomes of the other nulls of the result.
        null_else: NullElse,
    },
    /// The first that yields something other than nothing and null; of these the last, if none does.
    FirstOf(Vec<Expr>),
    /// A list of those that yield something other than nothing and null.
    Present(Vec<Expr>),
    /// A list of what `give` yields for each element of a list, which stands in the context under `name` meanwhile;
    /// nothing where there is no list.
    Each {
        /// What the element is called while `give` is made.
        name: Key,
        /// What makes the list.
        list: Box<Expr>,
        /// What is made of each element.
        give: Box<Expr>,
    },
    /// The element of a list whose member is the value: side-loaded records, of which an answer has a second list. For a list
    /// of values, those elements that are there, in the order of the values. Nothing where there is none.
    Lookup {
        /// A scalar, or a list of scalars.
        value: Box<Expr>,
        /// Singular.
        list: Location,
        /// The member of an element that is compared with the value.
        by: Key,
        /// Of the element found; the element itself without it.
        field: Option<Key>,
    },
    /// A number about the elements of a list; nothing where there is no list.
    Aggregate {
        /// Which number.
        what: Aggregate,
        /// What makes the list.
        list: Box<Expr>,
    },
    /// One of two values, by a condition.
    If {
        /// What decides.
        predicate: Predicate,
        /// The value where it holds.
        then: Box<Expr>,
        /// Nothing without it.
        otherwise: Option<Box<Expr>>,
    },
    /// Scalars as text, each on a line of its own, a list for as many lines as it has elements. Then further lines, numbered
    /// from one: `1. text`.
    Lines {
        /// What makes the lines that stand first.
        plain: Vec<Expr>,
        /// What makes the lines that are numbered after them.
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
    /// They stay null.
    Keep,
    /// The member is left out.
    Absent,
}

/// A place of the context: which root, and a path below it.
#[derive(Clone, Debug)]
pub struct Location {
    /// As written in the mapping, for messages.
    pub text: Arc<str>,
    /// Where it leads from the root of the context.
    pub path: Path,
}

/// A path into the context. Singular paths are plain steps; others are run by the evaluator of jsonpath-rust and yield
/// an array of all matches.
#[derive(Clone, Debug)]
pub enum Path {
    /// Leads to at most one value, without an evaluator.
    Singular(Vec<Segment>),
    /// A query of RFC 9535 that may match any number of values.
    Query(Arc<JpQuery>),
}

/// One step of a singular path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// The member of this name; nothing in a value that is no object.
    Member(Key),
    /// Counted from the end when negative.
    Index(i64),
}
