//! What a pack declares about comparing two answers, brought down from types to places of one operation's answer.

use super::Origin;
use std::sync::Arc;

/// One declaration at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompareRule {
    /// Names from the top of the body, `*` for any element of an array.
    pub at: Vec<Arc<str>>,
    pub kind: CompareKind,
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
    /// The value is never shown.
    Secret,
}
