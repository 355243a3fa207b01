//! The two sides of a pack, and lists by the numbers of things in it: what is indexed by a number's own type cannot be asked for
//! with another number.

use crate::{ReasonId, RouteId};
use std::ops::{Index, IndexMut};

/// One of the two sides of a pack: 0 is the old one, 1 the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SideId(pub u8);

impl SideId {
    /// The side that integrations were written for.
    pub const OLD: SideId = SideId(0);
    /// The side that replaces it.
    pub const NEW: SideId = SideId(1);
    /// Both, so that `map` makes something by side.
    pub const BOTH: PerSide<SideId> = [SideId::OLD, SideId::NEW];

    /// The side that calls of this side are translated to.
    pub fn other(self) -> SideId {
        SideId(1 - self.0)
    }

    /// Its place in a [`PerSide`].
    pub fn place(self) -> usize {
        usize::from(self.0)
    }
}

/// One thing for each side, found by its [`SideId`].
///
/// ```
/// use switchback_plan::{PerSide, SideId};
///
/// let names: PerSide<&str> = ["v2", "v3"];
/// assert_eq!(names[SideId::NEW], "v3");
/// assert_eq!(SideId::BOTH.map(|side| names[side.other()]), ["v3", "v2"]);
/// ```
pub type PerSide<T> = [T; 2];

impl<T> Index<SideId> for PerSide<T> {
    type Output = T;

    fn index(&self, side: SideId) -> &T {
        &self.as_slice()[side.place()]
    }
}

impl<T> IndexMut<SideId> for PerSide<T> {
    fn index_mut(&mut self, side: SideId) -> &mut T {
        &mut self.as_mut_slice()[side.place()]
    }
}

/// Lists of one thing for each route of a direction.
impl<T> Index<RouteId> for Vec<T> {
    type Output = T;

    fn index(&self, route: RouteId) -> &T {
        &self.as_slice()[usize::from(route.0)]
    }
}

/// Lists of one thing for each reason of a pack.
impl<T> Index<ReasonId> for Vec<T> {
    type Output = T;

    fn index(&self, reason: ReasonId) -> &T {
        &self.as_slice()[usize::from(reason.0)]
    }
}

/// A host of a side: which address a call to it goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HostId(pub u8);

impl HostId {
    /// The one at the side's own address.
    pub const MAIN: HostId = HostId(0);

    /// The place of its name in [`crate::Side::hosts`]; none of the main one.
    pub fn place(self) -> Option<usize> {
        usize::from(self.0).checked_sub(1)
    }
}
