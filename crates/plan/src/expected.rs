//! The constraints of a contract on a complete body that are checked before a response is
//! translated: the kind of value, and the presence of members. Member values are not checked,
//! because a contract derived from examples often requires more than its service returns.

use super::json::{Key, Kinds};

/// The constraint on a streamed body. Only its first bytes are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// Accepted kinds of value.
    pub kinds: Kinds,
    /// Whether an object without members violates the contract.
    pub members: bool,
}

impl Root {
    /// Accepts any body.
    pub const ANY: Root = Root { kinds: Kinds::ANY, members: false };
}

/// The constraint on the body of a step's reply, which is buffered.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Accepted kinds of value.
    pub kinds: Kinds,
    /// Members of an object that the contract requires. An object without any of them is rejected.
    pub members: Vec<Key>,
    /// The required members that a later write of the route depends on. If one were absent, the
    /// write would delete data of the service.
    pub needed: Vec<Key>,
}
