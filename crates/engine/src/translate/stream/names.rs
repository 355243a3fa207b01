//! Numbers for the names of members, so that what an object has had is a word of bits.

/// Names of one object that have a number, those that the plan does not know included.
const NAMES_MAX: usize = 64;

/// Bytes of a name that gets a number although the plan does not know it.
const NAME_BYTES_MAX: usize = 60;

/// Number of a name; below the number of the plan's members it is the member's index.
pub(super) type NameId = u16;
pub(super) const NONE: NameId = NameId::MAX;

/// The names of one object of a program that bodies have and the plan does not know.
#[derive(Debug, Clone)]
pub(super) struct Names {
    /// How many names the plan knows.
    known: usize,
    others: Vec<Box<[u8]>>,
}

impl Names {
    /// The names of an object of which the plan knows `known` members.
    pub(super) fn new(known: usize) -> Names {
        Names { known, others: Vec::new() }
    }

    /// The number of a name that the plan does not know.
    pub(super) fn find(&self, name: &[u8]) -> Option<NameId> {
        let at = self.others.iter().position(|other| **other == *name)?;
        Some((self.known + at) as NameId)
    }

    /// Whether this name can get a number.
    pub(super) fn has_room_for(&self, name: &[u8]) -> bool {
        name.len() <= NAME_BYTES_MAX && self.known + self.others.len() < NAMES_MAX
    }

    /// Numbers a name; see [`Names::has_room_for`].
    pub(super) fn add(&mut self, name: &[u8]) -> NameId {
        self.others.push(name.into());
        (self.known + self.others.len() - 1) as NameId
    }
}
