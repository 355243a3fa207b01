//! One open object, array or wrapper of a body, and where a skipped value in it goes.

use super::names::NameId;

/// The index of an op in a program.
pub(super) type OpId = u32;

/// Where the text of a value that is passed over goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sink {
    Copy,
    Drop,
    /// Kept whole for this op.
    Hold(OpId),
}

/// An op that is under way around the place that has been reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub kind: FrameKind,
    /// Of an object: its index in the program. Else: the op of each element.
    pub id: u32,
    /// Whether a member or element was written.
    pub wrote: bool,
    /// Of an object: whether it has names in the ledger.
    pub strangers: bool,
    /// Of an object: the name that came last.
    pub last: NameId,
    /// Of an object: the member whose value is being read, or [`NONE`] for one that the plan does not
    /// name.
    pub member: NameId,
    /// Of an object: a bit for each of the first 64 names that was seen.
    pub seen: u64,
    /// Of an object: a bit for each of the first 64 members that was not written although its action would
    /// have.
    pub withdrawn: u64,
    /// Of an object: where its other bits and its slots begin.
    pub bits: usize,
    pub slots: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    Object,
    Array,
    Wrap,
    Unwrap,
}

/// The fields of a frame that change from member to member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub wrote: bool,
    pub last: NameId,
    pub member: NameId,
}

impl Member {
    pub(super) fn of(frame: &Frame) -> Member {
        Member { wrote: frame.wrote, last: frame.last, member: frame.member }
    }

    #[inline(always)]
    pub(super) fn put_in(self, frame: &mut Frame) {
        (frame.wrote, frame.last, frame.member) = (self.wrote, self.last, self.member);
    }
}
