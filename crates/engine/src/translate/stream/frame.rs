//! One open object, array or wrapper of a body, and the destination of a skipped value in it.

use super::names::NameId;

/// The index of an op in a program.
pub(super) type OpId = u32;

/// The destination of a skipped value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sink {
    Copy,
    Drop,
    /// Buffered completely for this op.
    Hold(OpId),
}

/// An op that is active at the current position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub kind: FrameKind,
    /// The index of an object in the program, or the op of each element.
    pub id: u32,
    /// Whether a member or element was written.
    pub wrote: bool,
    /// Whether the object has names in the ledger.
    pub has_other_names: bool,
    /// The last name of the object.
    pub last: NameId,
    /// The member whose value is read, or [`NONE`](super::names::NONE) if the plan does not name it.
    pub member: NameId,
    /// The names of the object so far, as bits; the first 64 only.
    pub seen: u64,
    /// The members whose op wrote no value, as bits; the first 64 only.
    pub withdrawn: u64,
    /// Start of the further bits and of the slots of the object.
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
