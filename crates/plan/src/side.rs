//! The two sides of a pack, and typed indices: a list indexed by one id type cannot be indexed by
//! another.

use crate::{ReasonId, RouteId};
use std::ops::{Index, IndexMut};

/// One of the two sides of a pack: 0 is the old side, 1 the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SideId(pub u8);

impl SideId {
    /// The side that integrations were written for.
    pub const OLD: SideId = SideId(0);
    /// The side that replaces it.
    pub const NEW: SideId = SideId(1);
    /// Both sides, for use with `map`.
    pub const BOTH: PerSide<SideId> = [SideId::OLD, SideId::NEW];

    /// Returns the side that calls of this side are translated to.
    pub fn other(self) -> SideId {
        SideId(1 - self.0)
    }

    /// Returns its index in a [`PerSide`].
    pub fn place(self) -> usize {
        usize::from(self.0)
    }
}

/// One value per side, indexed by [`SideId`].
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

/// Lists with one element per route of a direction.
impl<T> Index<RouteId> for Vec<T> {
    type Output = T;

    fn index(&self, route: RouteId) -> &T {
        &self.as_slice()[usize::from(route.0)]
    }
}

/// Lists with one element per reason of a pack.
impl<T> Index<ReasonId> for Vec<T> {
    type Output = T;

    fn index(&self, reason: ReasonId) -> &T {
        &self.as_slice()[usize::from(reason.0)]
    }
}

/// A host of a side. It determines the address of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HostId(pub u8);

impl HostId {
    /// The host at the side's own address.
    pub const MAIN: HostId = HostId(0);

    /// Returns the index of its name in [`crate::Side::hosts`]; `None` for the main host.
    pub fn place(self) -> Option<usize> {
        // 0 is the main host.
        usize::from(self.0).checked_sub(1)
    }
}
