//! The layout of bodies, as bodies have shown it: an automaton over the text between scalars. Between two scalars there are
//! only brackets, a comma, a name and a colon, and these are the same bytes in every element of a list. A node is a place behind
//! a scalar: the frames that are open, and what the machine passes over there. An edge is the text from one scalar to the next
//! that the machine read there once, with the work that it did.
//!
//! An edge is taken where its text matches byte for byte, so that an automaton never accepts what the machine would not. The
//! names that an object has had are no part of a node, since there would be too many nodes: an edge checks them.

use super::machine::{Frame, FrameKind, Sink};
use super::names::{NameId, Names};
use super::program::Object;
use super::record::Recording;
use std::collections::HashMap;
use switchback_json::scan::{Care, Scan, WORD_BYTES};
use switchback_json::{Open, is_scalar_start};

/// An edge is shorter than this.
pub(super) const GAP_BYTES: usize = 2 * WORD_BYTES;

/// Edges of one program, and of one of its nodes: a bound on memory, and on the time for a text that no edge has.
const EDGES_MAX: usize = 512;
const EDGES_OF_NODE_MAX: usize = 48;

/// Operations of one edge.
const OPS_MAX: usize = 32;

pub(super) type NodeId = u32;
pub(super) type EdgeId = u32;

/// Stands for no edge.
pub(super) const NO_EDGE: EdgeId = EdgeId::MAX;

/// Where every body starts.
pub(super) const START: NodeId = 0;

/// What bodies have shown of the values of a program.
#[derive(Debug, Clone)]
pub(super) struct Learned {
    pub names: Vec<Names>,
    nodes: Vec<Node>,
    /// Nodes by the hash of what they are.
    index: HashMap<u64, NodeId>,
    edges: Vec<Edge>,
    /// Brackets that are open at one time on any edge, at most.
    depth: usize,
}

/// A place behind a scalar, or at its start.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The open frames, as far as they do not depend on the names of the body.
    pub frames: Box<[Frame]>,
    /// Brackets of the value that the machine passes over.
    pub open: Open,
    /// Where the scalar goes, or the value that it is in.
    pub sink: Sink,
    edges: Vec<EdgeId>,
}

/// The text from a scalar to the next, and what the machine does there.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct Edge {
    text: [[u8; WORD_BYTES]; 2],
    care: [Care; 2],
    /// The bit of the name that is checked first, in the object that is innermost behind the scalar.
    pub bit: u64,
    pub next: NodeId,
    /// The edge of the next node that is likely, or [`NO_EDGE`].
    pub then: EdgeId,
    /// Whether `then` has not been seen to follow.
    is_guess: bool,
    pub len: u8,
    /// Where the name of `bit` is.
    pub bit_at: u8,
    /// Whether the text is short, a scalar is read behind it, and nothing is done.
    pub is_plain: bool,
    is_long: bool,
    /// Whether a scalar of any kind may follow.
    is_open: bool,
    pub target: Target,
    pub work: Work,
    /// What is done, unless that is operations.
    pub end_slot: Option<SlotAt>,
    pub open_slot: Option<SlotAt>,
    pub edit: Option<Edit>,
    pub ops: Box<[EdgeOp]>,
}

/// What is done at an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// At most one edit, and slots.
    Edit,
    Ops,
    /// Operations that change frames, or what they hold beside [`Edge::bit`].
    Structural,
}

/// What an edge leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Scalar,
    /// A scalar that the machine reads.
    Machine,
    /// The end of the text.
    End,
}

/// Stands for no offset.
pub(super) const NOWHERE: u8 = u8::MAX;

/// One operation of an edge. Offsets count from the start of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EdgeOp {
    Edit(Edit),
    /// Writes a text that is longer.
    Write(Box<[u8]>),
    OpenSlot(SlotAt),
    EndSlot(SlotAt),
    /// Marks a name in the innermost object.
    See {
        id: NameId,
        at: u8,
    },
    /// Opens a frame, whose object has had the names of `seen`.
    Push {
        outer: Member,
        kind: FrameKind,
        id: u32,
        seen: u64,
    },
    Pop,
    /// Closes the innermost frame, which is an object's, and opens another one for the same object in its place.
    Reopen {
        seen: u64,
    },
    /// Writes the end of the innermost object, whose bracket is at an offset.
    Close {
        wrote: bool,
        at: u8,
    },
}

/// Copies up to an offset, writes a text, and copies from an offset on; offsets may be [`NOWHERE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edit {
    pub flush: u8,
    pub resume: u8,
    pub len: u8,
    pub text: [u8; WORD_BYTES],
}

/// A slot, and an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotAt {
    pub slot: u16,
    pub at: u8,
}

impl Edit {
    pub(super) const NOTHING: Edit = Edit { flush: NOWHERE, resume: NOWHERE, len: 0, text: [0; WORD_BYTES] };
}

/// What changes in a frame from member to member.
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

impl Edge {
    /// Whether `ahead` starts as this edge's text does.
    #[inline(always)]
    pub(super) fn begins<S: Scan, const N: usize>(&self, scan: S, ahead: &[u8; N]) -> bool {
        let (words, _) = ahead.as_chunks::<WORD_BYTES>();
        scan.is_word(&words[0], &self.text[0], self.care[0])
    }

    /// Whether `ahead`, which starts as this edge's text does, has all of it.
    #[inline(always)]
    pub(super) fn is_whole_in<S: Scan, const N: usize>(&self, scan: S, ahead: &[u8; N]) -> bool {
        let (words, _) = ahead.as_chunks::<WORD_BYTES>();
        !self.is_long || scan.is_word(&words[1], &self.text[1], self.care[1])
    }

    /// Whether `ahead`, which starts with this edge's text, goes on with a scalar where one has to follow.
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

impl Node {
    fn is(&self, frames: &[Frame], open: Open, sink: Sink) -> bool {
        let same = |(one, other): (&Frame, &Frame)| place_of(one) == place_of(other);
        (self.open, self.sink, self.frames.len()) == (open, sink, frames.len())
            && self.frames.iter().zip(frames).all(same)
    }
}

/// What of a frame is part of a node.
fn place_of(frame: &Frame) -> (FrameKind, u32, bool, NameId, NameId) {
    (frame.kind, frame.id, frame.wrote, frame.last, frame.member)
}

fn hash(frames: &[Frame], open: Open, sink: Sink) -> u64 {
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let sink = match sink {
        Sink::Copy => 1,
        Sink::Drop => 2,
        Sink::Hold(op) => 3 + u64::from(op),
    };
    let start = mix(mix(sink, open.depth() as u64), u64::from(open.bits()));
    frames.iter().fold(start, |hash, frame| {
        let names = u64::from(frame.last) << 16 | u64::from(frame.member);
        mix(mix(hash, names << 1 | u64::from(frame.wrote)), u64::from(frame.id) << 2 | frame.kind as u64)
    })
}

impl Learned {
    pub(super) fn new(objects: &[Object]) -> Learned {
        let start = Node { frames: [].into(), open: Open::default(), sink: Sink::Drop, edges: Vec::new() };
        let names = objects.iter().map(Names::of).collect();
        Learned { names, nodes: vec![start], index: HashMap::new(), edges: Vec::new(), depth: 0 }
    }

    #[inline(always)]
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    #[inline(always)]
    pub(super) fn edge(&self, id: EdgeId) -> Option<&Edge> {
        self.edges.get(id as usize)
    }

    /// The edge of a node that was learned first.
    pub(super) fn first_of(&self, node: NodeId) -> EdgeId {
        self.node(node).edges.first().copied().unwrap_or(NO_EDGE)
    }

    /// The edge of a node that `ahead` starts with.
    #[inline(always)]
    pub(super) fn search<S: Scan, const N: usize>(
        &self,
        node: NodeId,
        scan: S,
        ahead: &[u8; N],
    ) -> Option<EdgeId> {
        // No closure: it would be compiled without the features of the processor.
        for id in &self.node(node).edges {
            let edge = &self.edges[*id as usize];
            if edge.begins(scan, ahead) && edge.is_whole_in(scan, ahead) && edge.leads_on(ahead) {
                return Some(*id);
            }
        }
        None
    }

    /// How many edges there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.edges.len()
    }

    /// Whether all edges hold where so many brackets may be open.
    pub(super) fn keeps_within(&self, depth: usize) -> bool {
        self.depth <= depth
    }

    pub(super) fn find(&self, frames: &[Frame], open: Open, sink: Sink) -> Option<NodeId> {
        let id = *self.index.get(&hash(frames, open, sink))?;
        self.node(id).is(frames, open, sink).then_some(id)
    }

    /// Whether another edge of this node can be learned.
    pub(super) fn has_room_at(&self, node: NodeId) -> bool {
        self.edges.len() < EDGES_MAX && self.node(node).edges.len() < EDGES_OF_NODE_MAX
    }

    /// The node for this place; a new one, if there is none.
    pub(super) fn node_for(&mut self, frames: &[Frame], open: Open, sink: Sink) -> Option<NodeId> {
        let found = self.find(frames, open, sink);
        // Most nodes are made for an edge.
        if found.is_some() || self.nodes.len() >= EDGES_MAX {
            return found;
        }
        let place = |frame: &Frame| Frame { seen: 0, withdrawn: 0, ..*frame };
        let frames: Box<[Frame]> = frames.iter().map(place).collect();
        let id = self.nodes.len() as NodeId;
        self.index.insert(hash(&frames, open, sink), id);
        self.nodes.push(Node { frames, open, sink, edges: Vec::new() });
        Some(id)
    }

    /// Adds what the machine has done between two scalars as an edge, and returns it. `text` starts with the
    /// `len` bytes that it read there.
    pub(super) fn add(
        &mut self,
        recording: Recording,
        text: &[u8],
        len: usize,
        leads_to: Goal,
    ) -> Option<EdgeId> {
        let Recording { from, came_by, depth, is_null, .. } = recording;
        let is_copied = from != START && self.node(from).sink == Sink::Copy;
        let resume = match leads_to {
            Goal::Value { resume, .. } => resume,
            Goal::End => None,
        };
        let (bit, ops) = recording.ops(text, is_copied, resume);
        // The kind of what follows is part of the text where the plan takes no other.
        let matched = len + usize::from(is_null);
        let (next, target) = match leads_to {
            Goal::Value { node, .. } => match self.node(node).sink {
                Sink::Hold(_) => (node, Target::Machine),
                _ => (node, Target::Scalar),
            },
            Goal::End => (START, Target::End),
        };
        if len == 0 || matched >= GAP_BYTES || ops.len() > OPS_MAX || !self.has_room_at(from) {
            return None;
        }
        let mut padded = [0; GAP_BYTES];
        padded[..matched].copy_from_slice(&text[..matched]);
        let (words, _) = padded.as_chunks::<WORD_BYTES>();
        let (bit, bit_at) = bit.unwrap_or((0, 0));
        let is_structural = |op: &EdgeOp| {
            !matches!(op, EdgeOp::Edit(_) | EdgeOp::Write(_) | EdgeOp::OpenSlot(_) | EdgeOp::EndSlot(_))
        };
        let (mut edit, mut open_slot, mut end_slot) = (None, None, None);
        let mut is_replaced = false;
        for op in &ops {
            is_replaced |= match op {
                EdgeOp::Edit(one) => edit.replace(*one).is_some(),
                EdgeOp::OpenSlot(one) => open_slot.replace(*one).is_some(),
                EdgeOp::EndSlot(one) => end_slot.replace(*one).is_some(),
                _ => true,
            };
        }
        let work = match is_replaced {
            false => Work::Edit,
            true if ops.iter().any(is_structural) => Work::Structural,
            true => Work::Ops,
        };
        let edge = Edge {
            text: [words[0], words[1]],
            care: [Care::first(matched), Care::first(matched.saturating_sub(WORD_BYTES))],
            bit,
            next,
            then: self.first_of(next),
            is_guess: true,
            len: len as u8,
            bit_at,
            is_plain: matched <= WORD_BYTES && target == Target::Scalar && ops.is_empty(),
            is_long: matched > WORD_BYTES,
            is_open: target != Target::End && !is_null,
            target,
            work,
            end_slot,
            open_slot,
            edit,
            ops: ops.into(),
        };
        let id = self.edges.len() as EdgeId;
        self.edges.push(edge);
        self.nodes[from as usize].edges.push(id);
        let before = self.edges.get_mut(came_by as usize);
        if let Some(before) = before.filter(|before| before.next == from && before.is_guess) {
            // Of a list, all elements but one are followed by another.
            (before.then, before.is_guess) = (id, target == Target::End);
        }
        self.depth =
            self.depth.max(depth + text[..len].iter().filter(|byte| matches!(byte, b'[' | b'{')).count());
        Some(id)
    }
}

/// What an edge that is learned leads to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goal {
    /// A scalar; where copying starts again, if the scalar is copied.
    Value {
        node: NodeId,
        resume: Option<usize>,
    },
    End,
}
