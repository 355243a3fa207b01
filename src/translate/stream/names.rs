//! Member names in the order in which bodies bring them. Objects of one list name the same members in
//! the same order, so that the next name is nearly always known beforehand: it is then compared with
//! the text in a few instructions instead of being read, decoded and looked up.
//!
//! What is expected never decides what is right: a name that is not the expected one is looked up.

use crate::plan::ObjectOp;

/// Bytes of `"name":` that can be compared at once.
pub(super) const WIDTH: usize = 32;
/// Names kept beside those that a plan knows, so that members that are dropped are expected as well.
const STRANGERS_MAX: usize = 96;

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
}

/// A name as it is compared with text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    /// `"name":`, padded with zeros.
    words: [u64; WIDTH / 8],
    /// Bytes of `"name":`; 0 when it is too long to be expected.
    len: u8,
    /// The name expected after this one.
    pub next: NameId,
}

impl Names {
    pub fn of(plan: &ObjectOp) -> Names {
        let name = |member: &crate::plan::Member| {
            let plain = member.name.json.len() == member.name.text.len() + 2;
            Name::new(member.name.text.as_bytes()).filter(|_| plain).unwrap_or(Name::UNEXPECTED)
        };
        let mut all: Vec<_> = plan.members.iter().map(name).collect();
        // Until a body says otherwise, members are expected in the order of the plan.
        let count = all.len();
        for (at, name) in all.iter_mut().enumerate() {
            name.next = if at + 1 < count { (at + 1) as NameId } else { NONE };
        }
        Names { all, first: if count > 0 { 0 } else { NONE }, known: count }
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
        let words = Name::new(text)?.words;
        let at = self.all[self.known..].iter().position(|name| name.words == words)?;
        Some((self.known + at) as NameId)
    }

    /// Adds a name, which has no escapes, if it is short enough and there is room.
    pub fn add(&mut self, text: &[u8]) -> Option<NameId> {
        let room = self.all.len() - self.known < STRANGERS_MAX;
        let name = Name::new(text).filter(|_| room)?;
        self.all.push(name);
        Some((self.all.len() - 1) as NameId)
    }

    /// Notes that `id` came after `before` ([`NONE`] at the start of an object).
    pub fn note(&mut self, before: NameId, id: NameId) {
        match self.all.get_mut(usize::from(before)) {
            Some(name) => name.next = id,
            None => self.first = id,
        }
    }

    /// Words of 64 bits that hold one bit for each name that there can be.
    pub fn words(known: usize) -> usize {
        (known + STRANGERS_MAX).div_ceil(64)
    }
}

impl Name {
    /// The length of this name's text with quotes and colon, if that is what stands at `at`.
    #[inline(always)]
    pub fn len_at(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let window = bytes.get(at..)?.first_chunk::<WIDTH>()?;
        let mask = &MASKS[usize::from(self.len) & (WIDTH * 2 - 1)];
        let mut differing = 0;
        for (at, word) in window.as_chunks::<8>().0.iter().enumerate() {
            differing |= (u64::from_le_bytes(*word) & mask[at]) ^ self.words[at];
        }
        (differing == 0).then_some(usize::from(self.len))
    }

    /// Zeros where a text has its quote: equal to no text.
    const UNEXPECTED: Name = Name { words: [u64::MAX; WIDTH / 8], len: 0, next: NONE };

    fn new(text: &[u8]) -> Option<Name> {
        let mut quoted = [0; WIDTH];
        let len = text.len() + 3;
        let place = quoted.get_mut(..len)?;
        place[0] = b'"';
        place[1..len - 2].copy_from_slice(text);
        place[len - 2] = b'"';
        place[len - 1] = b':';
        let mut words = [0; WIDTH / 8];
        for (word, bytes) in words.iter_mut().zip(quoted.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Some(Name { words, len: len as u8, next: NONE })
    }
}

/// For each length, ones over that many bytes.
static MASKS: [[u64; WIDTH / 8]; WIDTH * 2] = {
    let mut masks = [[0; WIDTH / 8]; WIDTH * 2];
    let mut len = 0;
    while len < WIDTH * 2 {
        let mut at = 0;
        while at < WIDTH && at < len {
            masks[len][at / 8] |= 0xff << (at % 8 * 8);
            at += 1;
        }
        len += 1;
    }
    masks
};
