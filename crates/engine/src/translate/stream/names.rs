//! Numbers for member names, so that the names seen in an object fit a word of bits.

/// Maximum names of an object with a number, including names that the plan does not know.
const NAMES_MAX: usize = 64;

/// Maximum length of an unknown name with a number.
const NAME_BYTES_MAX: usize = 60;

/// The number of a name. A name of the plan has the index of its member.
pub(super) type NameId = u16;
pub(super) const NONE: NameId = NameId::MAX;

/// The names that bodies have in one object of a program and that the plan does not know.
#[derive(Debug, Clone)]
pub(super) struct Names {
    /// Number of names that the plan knows.
    known: usize,
    others: Vec<Box<[u8]>>,
}

impl Names {
    /// The names of an object of which the plan knows `known` members.
    pub(super) fn new(known: usize) -> Names {
        Names { known, others: Vec::new() }
    }

    /// Returns the number of an unknown name.
    pub(super) fn find(&self, name: &[u8]) -> Option<NameId> {
        let at = self.others.iter().position(|other| **other == *name)?;
        Some((self.known + at) as NameId)
    }

    /// Returns whether this name can get a number.
    pub(super) fn has_room_for(&self, name: &[u8]) -> bool {
        // Names are chosen by the other side. Bodies with ever new names, such as ids as names,
        // must not fill the layout.
        name.len() <= NAME_BYTES_MAX && self.known + self.others.len() < NAMES_MAX
    }

    /// Assigns a number; call [`Names::has_room_for`] first.
    pub(super) fn add(&mut self, name: &[u8]) -> NameId {
        self.others.push(name.into());
        (self.known + self.others.len() - 1) as NameId
    }
}
