//! Member names in the order in which bodies bring them. Objects of one list name the same members in
//! the same order, so that the next name is nearly always known beforehand ([`super::script`]).
//!
//! What is expected never decides what is right: a name that is not the expected one is looked up.

use super::program::Object;
use switchback_json::scan::WORD_BYTES;

/// Names are added to those that a plan knows until there are so many, so that members that are dropped
/// are expected as well.
const NAMES_MAX: usize = 64;

/// How often the order may be changed. A name is put where it was last seen, so that bodies in which names change places would
/// go on for ever; names out of order are found as well.
const CHANGES_MAX: u32 = NAMES_MAX as u32;

/// Index of a name in [`Names`]; below the number of the plan's members it is the member's index.
pub(super) type NameId = u16;
pub(super) const NONE: NameId = NameId::MAX;

/// The names of one object of a program.
#[derive(Debug, Clone)]
pub(super) struct Names {
    all: Vec<Name>,
    /// How many of `all` the plan knows.
    pub known: usize,
    /// The names that are expected, in the order in which they are.
    order: Vec<NameId>,
    changes_left: u32,
}

/// `"name":`, if that can be expected: it is short, has no escapes, and its bit is in the first word.
type Name = Option<Box<[u8]>>;

impl Names {
    pub(super) fn of(object: &Object) -> Names {
        let name = |(at, planned): (usize, &switchback_plan::Member)| {
            let unescaped = planned.name.json.len() == planned.name.text.len() + 2;
            name(planned.name.text.as_bytes()).filter(|_| unescaped && at < NAMES_MAX)
        };
        let all: Vec<_> = object.plan.members.iter().enumerate().map(name).collect();
        Names { known: all.len(), all, order: Vec::new(), changes_left: CHANGES_MAX }
    }

    /// The names that are expected, each with its text, quotes and colon included.
    pub(super) fn expected(&self) -> impl Iterator<Item = (NameId, &[u8])> {
        self.order.iter().filter_map(|id| Some((*id, &**self.all.get(usize::from(*id))?.as_ref()?)))
    }

    /// The name with this text among those that the plan does not know.
    pub(super) fn stranger(&self, text: &[u8]) -> Option<NameId> {
        let text = name(text);
        text.as_ref()?;
        let at = self.all[self.known..].iter().position(|name| *name == text)?;
        Some((self.known + at) as NameId)
    }

    /// Adds a name, which has no escapes, if it is short enough and there is room.
    pub(super) fn add(&mut self, text: &[u8]) -> Option<NameId> {
        let name = name(text).filter(|_| self.all.len() < NAMES_MAX);
        name.as_ref()?;
        self.all.push(name);
        Some((self.all.len() - 1) as NameId)
    }

    /// Whether `id` is expected somewhere after `before` ([`NONE`]: anywhere), or never will be.
    pub(super) fn is_expected(&self, before: NameId, id: NameId) -> bool {
        let can_be = self.all.get(usize::from(id)).is_some_and(Option::is_some);
        let place = |id| self.order.iter().position(|other| *other == id);
        !can_be
            || self.changes_left == 0
            || place(id).is_some_and(|at| place(before).is_none_or(|before| before < at))
    }

    /// Expects `id` after `before` from now on ([`NONE`]: at the start of an object).
    pub(super) fn expect(&mut self, before: NameId, id: NameId) {
        self.changes_left = self.changes_left.saturating_sub(1);
        self.order.retain(|other| *other != id);
        let before = self.order.iter().position(|other| *other == before);
        self.order.insert(before.map_or(0, |before| before + 1), id);
    }
}

/// See [`Name`].
fn name(text: &[u8]) -> Name {
    let name = [b"\"", text, b"\":"].concat();
    (name.len() < WORD_BYTES - 1).then(|| name.into())
}

/// The bit of a name that is expected among the names that an object has had.
pub(super) fn bit(id: NameId) -> u64 {
    1 << (id % 64)
}
