//! What a contract says of a body as a whole, as far as answers are checked before anything is made of them: the kind of value,
//! and that an object has members. Values are not checked: a contract that somebody wrote down from examples requires more
//! than its service gives.

use super::body::{Key, Kinds};

/// What is checked of a body while it passes: its first bytes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// The kinds of value that the body may be.
    pub kinds: Kinds,
    /// Whether an object without members breaks the contract.
    pub members: bool,
}

impl Root {
    /// Any body.
    pub const ANY: Root = Root { kinds: Kinds::ANY, members: false };
}

/// What is checked of the body of a step's reply, which is buffered.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The kinds of value that the body may be.
    pub kinds: Kinds,
    /// Of an object: the members that its contract requires. One that has none of them is another thing.
    pub members: Vec<Key>,
    /// Those among them that a later write of the route is made of. Without one of them the write would lose what the service
    /// has.
    pub needed: Vec<Key>,
}
