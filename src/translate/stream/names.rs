//! Member names in the order in which bodies bring them. Objects of one list name the same members in
//! the same order, so that the next name is nearly always known beforehand: it is then compared with
//! the text in a few instructions instead of being read, decoded and looked up.
//!
//! What is expected never decides what is right: a name that is not the expected one is looked up.

use super::program::{Action, Object};
use crate::json::scan::{Care, Scan, WORD_BYTES};

/// Names are added to those that a plan knows until there are so many, so that members that are dropped
/// are expected as well.
const NAMES_MAX: usize = 64;

/// Index of a name in [`Names`]; below the number of the plan's members it is the member's index.
pub(super) type NameId = u16;
pub(super) const NONE: NameId = NameId::MAX;

/// The names of one object of a program.
#[derive(Debug, Clone)]
pub(super) struct Names {
    all: Vec<Name>,
    /// The name expected first.
    pub first: NameId,
    /// How many of `all` the plan knows.
    pub known: usize,
    /// What is done with members that the plan does not know.
    others: Plain,
}

/// What is done with a member that needs nothing but the place where its value ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    /// Left out.
    Drop,
    /// Copied with its name.
    Copy,
    /// Its value is copied, under another name.
    Rename,
    /// It needs more.
    No,
}

/// A name as it is compared with text.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Name {
    /// `"name":`, padded with zeros.
    text: [u8; WORD_BYTES],
    care: Care,
    /// This name's bit among the names that an object has had; none from the 65th name on, which is never
    /// expected.
    pub bit: u64,
    /// Bytes of `"name":`; 0 when it is too long to be expected.
    len: u8,
    pub plain: Plain,
    /// Whether the value is kept for the end of the object.
    pub is_captured: bool,
    /// Whether the member is copied and nothing else.
    pub is_copied: bool,
    /// The name expected after this one.
    pub next: NameId,
}

impl Names {
    pub fn of(object: &Object) -> Names {
        let name = |(planned, member): (&crate::plan::Member, &super::program::Member)| {
            let unescaped = planned.name.json.len() == planned.name.text.len() + 2;
            let plain = match member.action {
                Action::Drop => Plain::Drop,
                Action::Copy(_) => Plain::Copy,
                Action::Rename(_) => Plain::Rename,
                Action::Run(..) | Action::Refuse(_) => Plain::No,
            };
            let name = Name::new(planned.name.text.as_bytes(), plain).filter(|_| unescaped);
            let is_captured = !member.captures.is_empty();
            let is_copied = plain == Plain::Copy && !is_captured;
            Name { is_captured, is_copied, ..name.unwrap_or(Name::UNEXPECTED) }
        };
        let mut all: Vec<_> = object.plan.members.iter().zip(&object.members).map(name).collect();
        // Until a body says otherwise, members are expected in the order of the plan.
        let count = all.len();
        for (at, name) in all.iter_mut().enumerate() {
            name.next = if at + 1 < count { (at + 1) as NameId } else { NONE };
            // What is never expected has none.
            name.bit = if name.len > 0 { bit(at) } else { 0 };
        }
        let others = if object.keep_others { Plain::Copy } else { Plain::Drop };
        Names { all, first: if count > 0 { 0 } else { NONE }, known: count, others }
    }

    /// The name `id`, unless that is [`NONE`].
    #[inline(always)]
    pub fn get(&self, id: NameId) -> Option<&Name> {
        self.all.get(usize::from(id))
    }

    /// The name expected after `id`, or at the start of an object when that is [`NONE`].
    #[inline(always)]
    pub fn after(&self, id: NameId) -> NameId {
        self.all.get(usize::from(id)).map_or(self.first, |name| name.next)
    }

    /// The name with this text among those that the plan does not know.
    pub fn stranger(&self, text: &[u8]) -> Option<NameId> {
        let text = Name::new(text, self.others)?.text;
        let at = self.all[self.known..].iter().position(|name| name.text == text)?;
        Some((self.known + at) as NameId)
    }

    /// Adds a name, which has no escapes, if it is short enough and there is room.
    pub fn add(&mut self, text: &[u8]) -> Option<NameId> {
        let room = self.all.len() < NAMES_MAX;
        let name = Name::new(text, self.others).filter(|_| room)?;
        self.all.push(Name { bit: bit(self.all.len()), ..name });
        Some((self.all.len() - 1) as NameId)
    }

    /// Notes that `id` came after `before` ([`NONE`] at the start of an object).
    pub fn note(&mut self, before: NameId, id: NameId) {
        match self.all.get_mut(usize::from(before)) {
            Some(name) => name.next = id,
            None => self.first = id,
        }
    }
}

/// See [`Name::bit`].
fn bit(at: usize) -> u64 {
    u32::try_from(at).ok().and_then(|at| 1u64.checked_shl(at)).unwrap_or(0)
}

impl Name {
    /// Whether `window` begins with this name's text with quotes and colon.
    #[inline(always)]
    pub fn begins<S: Scan>(&self, scan: S, window: &[u8; WORD_BYTES]) -> bool {
        scan.is_word(window, &self.text, self.care)
    }

    /// Bytes of the name's text with quotes and colon, at most [`WORD_BYTES`].
    #[inline(always)]
    pub fn len(&self) -> usize {
        usize::from(self.len) % (2 * WORD_BYTES)
    }

    /// Zeros where a text has its quote: equal to no text.
    const UNEXPECTED: Name = Name {
        text: [0; WORD_BYTES],
        care: Care::first(1),
        bit: 0,
        len: 0,
        plain: Plain::No,
        is_captured: false,
        is_copied: false,
        next: NONE,
    };

    fn new(name: &[u8], plain: Plain) -> Option<Name> {
        let mut text = [0; WORD_BYTES];
        let len = name.len() + 3;
        let place = text.get_mut(..len)?;
        place[0] = b'"';
        place[1..len - 2].copy_from_slice(name);
        place[len - 2] = b'"';
        place[len - 1] = b':';
        let is_copied = plain == Plain::Copy;
        Some(Name { text, care: Care::first(len), len: len as u8, plain, is_copied, ..Name::UNEXPECTED })
    }
}
