//! Archives: entries that the gateway stores itself, per client and account, because the other side
//! cannot store them. Routes write and read entries; a harvest fills an archive from a side while
//! that side is available. Storage and sealing of entries are not part of this module.

use super::expr::Expr;
use super::json::Key;
use super::location::Location;
use super::predicate::Predicate;
use super::{Origin, SideId};

/// A set of entries. Each has its own key and the time at which it was stored.
#[derive(Debug)]
pub struct Archive {
    /// Name by which steps refer to the archive.
    pub name: String,
    /// Description for the operator.
    pub about: String,
    /// The side with the type of the values. `None` if an entry consists of its key alone, such as
    /// a mark that an object was deleted.
    pub side: Option<SideId>,
    /// Place of the declaration in the mapping.
    pub origin: Origin,
}

/// Index into [`super::Pack::archives`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArchiveId(pub u16);

/// A lookup. It yields `{age, value}`, or no result; with `each`, a list of
/// `{<name>: element, age, value}`.
#[derive(Debug)]
pub struct Recall {
    /// The archive to search.
    pub archive: ArchiveId,
    /// Computes the key from the context.
    pub key: Expr,
    /// Repeats the lookup for each of these elements.
    pub each: Option<EachOf>,
    /// Condition of the lookup. An element that does not satisfy it yields no result.
    pub when: Option<Predicate>,
}

/// A write of entries. An existing entry of the same key is replaced, and its age restarts.
#[derive(Debug)]
pub struct Keep {
    /// The archive to write to.
    pub archive: ArchiveId,
    /// Computes the key from the context.
    pub key: Expr,
    /// Computes the value. `None` in an archive with entries that consist of their keys.
    pub value: Option<Expr>,
    /// Repeats the write for each of these elements.
    pub each: Option<EachOf>,
    /// Condition of the write. An element that does not satisfy it is skipped.
    pub when: Option<Predicate>,
}

/// An iteration over the elements of a list. Each is bound to a name in the context in turn.
#[derive(Clone, Debug)]
pub struct EachOf {
    /// Name of the element in the context.
    pub name: Key,
    /// Place of the list. If it is absent, there are no elements.
    pub list: Location,
}
