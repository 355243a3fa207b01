//! Places in the context document of a `serve` route.

use super::json::Key;
use jsonpath_rust::parser::model::JpQuery;
use std::sync::Arc;

/// A place of the context: its root and a path below it.
#[derive(Clone, Debug)]
pub struct Location {
    /// The path as written in the mapping, for messages.
    pub text: Arc<str>,
    /// The parsed path from the root of the context.
    pub path: Path,
}

/// A path into the context. Singular paths are evaluated directly. Other paths are evaluated by
/// jsonpath-rust and yield an array of all matches.
#[derive(Clone, Debug)]
pub enum Path {
    /// Matches at most one value.
    Singular(Vec<Segment>),
    /// An RFC 9535 query that may match any number of values.
    Query(Arc<JpQuery>),
}

/// One step of a singular path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// The member with this name; absent if the value is not an object.
    Member(Key),
    /// The element at this index; negative indices count from the end.
    Index(i64),
}
