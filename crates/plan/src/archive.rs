//! Archives: what a gateway keeps of its own, by client and account, because the other side cannot. Routes put entries in and
//! look them up; a harvest reads them out of a side while it lives. Where entries lie, and how they are sealed, is not said here.

use super::expr::{Expr, Location};
use super::route::Route;
use super::step::Predicate;
use super::{Key, Origin, SideId};

/// A set of entries, each with a key of its own and the moment it was kept.
#[derive(Debug)]
pub struct Archive {
    /// By which steps call it.
    pub name: String,
    /// For the operator.
    pub about: String,
    /// The side whose type its values have; none where an entry is its key alone, as a mark that something is gone.
    pub side: Option<SideId>,
    /// Where the mapping declares it.
    pub origin: Origin,
}

/// Index into [`super::Pack::archives`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArchiveId(pub u16);

/// Looks entries up. The result is `{age, value}`, or nothing; with `each`, a list of `{<name>: element, age, value}`.
#[derive(Debug)]
pub struct Recall {
    /// Which one is looked into.
    pub archive: ArchiveId,
    /// Makes the key, out of the context.
    pub key: Expr,
    /// Looked up once for each of these.
    pub each: Option<EachOf>,
    /// Only what this holds for is looked up; of the rest nothing is found.
    pub when: Option<Predicate>,
}

/// Puts entries in; one that is there already is replaced, and its age begins anew.
#[derive(Debug)]
pub struct Keep {
    /// Which one is written.
    pub archive: ArchiveId,
    /// Makes the key, out of the context.
    pub key: Expr,
    /// None in an archive whose entries are their keys alone.
    pub value: Option<Expr>,
    /// Kept once for each of these.
    pub each: Option<EachOf>,
    /// Only what this holds for is kept.
    pub when: Option<Predicate>,
}

/// The elements of a list, one after the other, under a name in the context.
#[derive(Clone, Debug)]
pub struct EachOf {
    /// What the element is called in the context.
    pub name: Key,
    /// Where the list is; without one there are no elements.
    pub list: Location,
}

/// How archives are filled out of one side, page by page.
#[derive(Debug)]
pub struct Harvest {
    /// By which operators call it.
    pub name: String,
    /// For the operator.
    pub about: String,
    /// The side that is read.
    pub from: SideId,
    /// A route of several calls whose only parameter is `page`. Its answer is the page: one with fewer elements than
    /// `page_size` is the last.
    pub route: Route,
    /// The number of the first page.
    pub first: i64,
    /// Elements of a full page.
    pub page_size: u32,
}
