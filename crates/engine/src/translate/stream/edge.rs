//! The text between two scalars with the work of the machine on it. [`super::learned`] connects
//! edges to an automaton.

use super::frame::{FrameKind, Member};
use super::names::NameId;
use switchback_json::is_scalar_start;
use switchback_json::scan::{Care, Scan, WORD_BYTES};

/// Exclusive upper bound for the length of an edge's text.
pub(super) const GAP_BYTES: usize = 2 * WORD_BYTES;

pub(super) type NodeId = u32;
pub(super) type EdgeId = u32;

/// Marks a missing edge.
pub(super) const NO_EDGE: EdgeId = EdgeId::MAX;

/// The text from one scalar to the next, and the machine's work on it.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct Edge {
    pub text: EdgeText,
    /// The first key, in the object that is innermost after the scalar.
    pub first_key: FirstKey,
    pub next: NodeId,
    /// The edge to try first at `next`, or [`NO_EDGE`].
    pub then: EdgeId,
    /// Whether `then` is a guess that no body has confirmed.
    pub is_guess: bool,
    /// Whether the text fits one word, a scalar follows, and there is no work to do.
    pub is_plain: bool,
    pub target: Target,
    pub work: Work,
    /// The work if `work` is [`Work::Edit`]; `ops` holds all operations in every case.
    pub end_slot: Option<SlotAt>,
    pub open_slot: Option<SlotAt>,
    pub edit: Option<Edit>,
    pub ops: Box<[EdgeOp]>,
}

/// The text of an edge, as two words that are compared at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct EdgeText {
    pub words: [[u8; WORD_BYTES]; 2],
    pub care: [Care; 2],
    pub len: u8,
    /// Whether the second word has a part of the text.
    pub is_long: bool,
    /// Whether the text does not fix the next scalar, so its first byte must be checked.
    pub is_open: bool,
}

/// A key that must be new in its object. Both fields are zero if the text has no key there.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FirstKey {
    pub bit: u64,
    /// Offset of the key in the text.
    pub at: u8,
}

/// The kind of work on an edge, cheapest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// At most one edit, one closed slot and one opened slot.
    Edit,
    Ops,
    /// Operations that change frames or mark keys other than [`Edge::bit`].
    Structural,
}

/// The position at the end of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Scalar,
    /// A scalar that the machine reads, because its value is buffered for a conversion.
    Machine,
    /// The end of the text.
    End,
}

/// Marks a missing offset.
pub(super) const NOWHERE: u8 = u8::MAX;

/// One operation of an edge. Offsets are relative to the start of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EdgeOp {
    Edit(Edit),
    /// Writes a text that is too long for an [`Edit`].
    Write(Box<[u8]>),
    OpenSlot(SlotAt),
    EndSlot(SlotAt),
    /// Marks a key as seen in the innermost object.
    See {
        id: NameId,
        at: u8,
    },
    /// Opens a frame. `seen` holds the keys that the edge itself reads in it.
    Push {
        outer: Member,
        kind: FrameKind,
        id: u32,
        seen: u64,
    },
    Pop,
    /// Closes the innermost object and opens another one of the same kind in its frame.
    Reopen {
        seen: u64,
    },
    /// Writes the end of the innermost object; its bracket is at offset `at`.
    Close {
        wrote: bool,
        at: u8,
    },
}

/// Copies the chunk up to `flush`, writes `text`, and resumes copying at `resume`. Either offset
/// may be [`NOWHERE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edit {
    pub flush: u8,
    pub resume: u8,
    pub len: u8,
    pub text: [u8; WORD_BYTES],
}

/// A slot and the offset at which it is opened or closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotAt {
    pub slot: u16,
    pub at: u8,
}

impl Edit {
    pub(super) const NOTHING: Edit = Edit { flush: NOWHERE, resume: NOWHERE, len: 0, text: [0; WORD_BYTES] };
}

impl EdgeText {
    /// Returns whether the first word of `ahead` matches this text.
    #[inline(always)]
    pub(super) fn begins<S: Scan, const N: usize>(&self, scan: S, ahead: &[u8; N]) -> bool {
        let (words, _) = ahead.as_chunks::<WORD_BYTES>();
        scan.is_word(&words[0], &self.words[0], self.care[0])
    }

    /// Returns whether `ahead` matches the rest of this text; call [`EdgeText::begins`] first.
    #[inline(always)]
    pub(super) fn is_whole_in<S: Scan, const N: usize>(&self, scan: S, ahead: &[u8; N]) -> bool {
        let (words, _) = ahead.as_chunks::<WORD_BYTES>();
        !self.is_long || scan.is_word(&words[1], &self.words[1], self.care[1])
    }

    /// Returns whether a scalar follows the text in `ahead`, if the edge requires one.
    #[inline(always)]
    pub(super) fn leads_on<const N: usize>(&self, ahead: &[u8; N]) -> bool {
        !self.is_open || SCALAR_STARTS[usize::from(ahead[usize::from(self.len) % GAP_BYTES])]
    }
}

static SCALAR_STARTS: [bool; 256] = {
    let mut starts = [false; 256];
    let mut byte = 0;
    while byte < starts.len() {
        starts[byte] = is_scalar_start(byte as u8);
        byte += 1;
    }
    starts
};
