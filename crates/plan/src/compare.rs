//! The comparison rules of a pack, resolved from types to places in one operation's response, and
//! the operation that reads the effect of a write.

use super::{Origin, PathPart};
use std::sync::Arc;

/// One comparison rule, for one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompareRule {
    /// Member names from the top of the body; `*` matches any element of an array.
    pub at: Vec<Arc<str>>,
    /// The rule for the values at this place.
    pub kind: CompareKind,
    /// The line of the mapping that declares it.
    pub origin: Origin,
}

/// A kind of comparison rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompareKind {
    /// Elements of the array correspond if this member is equal.
    Key(Arc<str>),
    /// The value differs between repeated requests; its kind does not.
    Noise,
    /// The order of the array is not significant.
    Unordered,
}

/// An operation that reads the effect of a write on the same side.
#[derive(Clone, Debug)]
pub struct ReadBack {
    /// The operation as in the contract; always a `GET`.
    pub operation: Arc<str>,
    /// Its address. Values are taken from
    /// `{request: {path, query, headers, body}, config, answer: {status, headers, body}}` of the
    /// write. If one of them is absent, the effect cannot be read back.
    pub path: Vec<PathPart>,
    /// Members of the write's JSON body that the read operation returns at the same place with the
    /// same value.
    pub shows: Vec<Arc<str>>,
    /// The line of the mapping that declares it.
    pub origin: Origin,
}
