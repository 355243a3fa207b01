//! What a pack declares about comparing two answers, brought down from types to places of one operation's answer; and which
//! reading shows what a write has changed.

use super::{Origin, PathPart};
use std::sync::Arc;

/// One declaration at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompareRule {
    /// Names from the top of the body, `*` for any element of an array.
    pub at: Vec<Arc<str>>,
    /// What is declared about the values there.
    pub kind: CompareKind,
    /// The line of the mapping that says so.
    pub origin: Origin,
}

/// What is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompareKind {
    /// Elements of the array are the same when this member is.
    Key(Arc<str>),
    /// The value differs from one asking to the next; its kind does not.
    Noise,
    /// The order of the array says nothing.
    Unordered,
}

/// The reading that shows what a write of the same side has changed.
#[derive(Clone, Debug)]
pub struct ReadBack {
    /// As the contract writes it; a `GET`.
    pub operation: Arc<str>,
    /// Its address. Values are made of `{request: {path, query, headers, body}, config, answer: {status, headers, body}}` of the
    /// write; where one of them is not there, nothing can be read back.
    pub path: Vec<PathPart>,
    /// Members of the write's JSON body that the reading shows at the same place with the same value.
    pub shows: Vec<Arc<str>>,
    /// The line of the mapping that says so.
    pub origin: Origin,
}
