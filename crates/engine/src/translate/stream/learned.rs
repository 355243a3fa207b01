//! The learned layout of bodies: an automaton over the text between scalars. That text consists of
//! brackets, a comma, a key and a colon, and is the same in every element of a typical list. A node
//! is a position after a scalar: the open frames and the brackets of the value that is being
//! skipped. An edge is the text from one scalar to the next, as the machine read it once, with the
//! work that the machine did there.
//!
//! An edge is taken only if its text matches byte for byte, so the automaton accepts no text that
//! the machine rejects. The keys seen in an object are not part of a node, because every subset of
//! keys would need its own node; edges check them instead.

use super::edge::{Edge, EdgeId, EdgeOp, EdgeText, GAP_BYTES, NO_EDGE, NodeId, Target, Work};
use super::frame::{Frame, FrameKind, Sink};
use super::names::{NameId, Names};
use super::record::Recording;
use std::collections::HashMap;
use switchback_json::Open;
use switchback_json::scan::{Care, Scan, WORD_BYTES};

/// Maximum number of edges per program and per node. Bounds the memory, and the search time for a
/// text that no edge has.
const EDGES_MAX: usize = 512;
const EDGES_OF_NODE_MAX: usize = 48;

/// Maximum number of operations per edge.
const OPS_MAX: usize = 32;

/// The node at the start of a body.
pub(super) const START: NodeId = 0;

/// The layout that a program has learned from the bodies it translated.
#[derive(Debug, Clone)]
pub(super) struct Learned {
    pub names: Vec<Names>,
    nodes: Vec<Node>,
    /// Nodes by the hash of their frames, brackets and sink.
    index: HashMap<u64, NodeId>,
    edges: Vec<Edge>,
    /// Upper bound for the nesting depth on any edge.
    depth: usize,
}

/// A position after a scalar, or the start of the body.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The open frames, without the fields that depend on the keys seen in the body.
    pub frames: Box<[Frame]>,
    /// Open brackets of the value that is being skipped.
    pub open: Open,
    /// Destination of the scalar, or of the value that contains it.
    pub sink: Sink,
    edges: Vec<EdgeId>,
}

impl Node {
    fn is(&self, frames: &[Frame], open: Open, sink: Sink) -> bool {
        let same = |(one, other): (&Frame, &Frame)| place_of(one) == place_of(other);
        (self.open, self.sink, self.frames.len()) == (open, sink, frames.len())
            && self.frames.iter().zip(frames).all(same)
    }
}

/// The fields of a frame that identify a node.
fn place_of(frame: &Frame) -> (FrameKind, u32, bool, NameId, NameId) {
    (frame.kind, frame.id, frame.wrote, frame.last, frame.member)
}

fn hash(frames: &[Frame], open: Open, sink: Sink) -> u64 {
    // Multiplicative mixing instead of a keyed hash: a collision costs one comparison, and the
    // number of nodes is bounded, so a crafted body cannot slow down lookups.
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
    /// The layout before the first body. `names` has the names of each object of the program.
    pub(super) fn new(names: Vec<Names>) -> Learned {
        let start = Node { frames: [].into(), open: Open::default(), sink: Sink::Drop, edges: Vec::new() };
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

    /// Returns the oldest edge of a node.
    pub(super) fn first_of(&self, node: NodeId) -> EdgeId {
        self.node(node).edges.first().copied().unwrap_or(NO_EDGE)
    }

    /// Returns the edge of a node whose text `ahead` starts with.
    #[inline(always)]
    pub(super) fn search<S: Scan, const N: usize>(
        &self,
        node: NodeId,
        scan: S,
        ahead: &[u8; N],
    ) -> Option<EdgeId> {
        // A loop and not an iterator chain: a closure would be compiled without the CPU features
        // that `scan` needs.
        for id in &self.node(node).edges {
            let edge = &self.edges[*id as usize];
            let text = &edge.text;
            if text.begins(scan, ahead) && text.is_whole_in(scan, ahead) && text.leads_on(ahead) {
                return Some(*id);
            }
        }
        None
    }

    /// Returns the number of edges.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.edges.len()
    }

    /// Returns whether no edge nests deeper than `depth`.
    pub(super) fn keeps_within(&self, depth: usize) -> bool {
        self.depth <= depth
    }

    pub(super) fn find(&self, frames: &[Frame], open: Open, sink: Sink) -> Option<NodeId> {
        // Colliding positions share a slot of the index. The older node is then not found, which
        // only costs speed.
        let id = *self.index.get(&hash(frames, open, sink))?;
        self.node(id).is(frames, open, sink).then_some(id)
    }

    /// Returns whether the bounds leave room for another edge of this node.
    pub(super) fn has_room_at(&self, node: NodeId) -> bool {
        self.edges.len() < EDGES_MAX && self.node(node).edges.len() < EDGES_OF_NODE_MAX
    }

    /// Returns the node for this position. Adds one if it is unknown and there is room.
    pub(super) fn node_for(&mut self, frames: &[Frame], open: Open, sink: Sink) -> Option<NodeId> {
        let found = self.find(frames, open, sink);
        // A node is usually added together with an edge, so both share one bound.
        if found.is_some() || self.nodes.len() >= EDGES_MAX {
            return found;
        }
        // `seen` and `withdrawn` depend on the body: the edges check keys, so the node drops both.
        let place = |frame: &Frame| Frame { seen: 0, withdrawn: 0, ..*frame };
        let frames: Box<[Frame]> = frames.iter().map(place).collect();
        let id = self.nodes.len() as NodeId;
        self.index.insert(hash(&frames, open, sink), id);
        self.nodes.push(Node { frames, open, sink, edges: Vec::new() });
        Some(id)
    }

    /// Adds the machine's work between two scalars as an edge. `text` starts with the `len` bytes
    /// that it read there. Returns `None` if the edge exceeds a bound.
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
        let (first_key, ops) = recording.ops(text, is_copied, resume);
        // The op accepts null but no other scalar here, so the `n` is part of the matched text.
        let matched = len + usize::from(is_null);
        let (next, target) = match leads_to {
            Goal::Value { node, .. } => match self.node(node).sink {
                Sink::Hold(_) => (node, Target::Machine),
                _ => (node, Target::Scalar),
            },
            Goal::End => (START, Target::End),
        };
        // An empty text could match at a wrong position.
        if len == 0 || matched >= GAP_BYTES || ops.len() > OPS_MAX || !self.has_room_at(from) {
            return None;
        }
        let mut padded = [0; GAP_BYTES];
        padded[..matched].copy_from_slice(&text[..matched]);
        let (words, _) = padded.as_chunks::<WORD_BYTES>();
        let text_of_edge = EdgeText {
            words: [words[0], words[1]],
            // Bytes beyond the text are masked, so comparing two full words suffices for any
            // length.
            care: [Care::first(matched), Care::first(matched.saturating_sub(WORD_BYTES))],
            len: len as u8,
            is_long: matched > WORD_BYTES,
            is_open: target != Target::End && !is_null,
        };
        let is_structural = |op: &EdgeOp| {
            !matches!(op, EdgeOp::Edit(_) | EdgeOp::Write(_) | EdgeOp::OpenSlot(_) | EdgeOp::EndSlot(_))
        };
        let (mut edit, mut open_slot, mut end_slot) = (None, None, None);
        let mut is_replaced = false;
        for op in &ops {
            // More than one operation of a kind does not fit the fields of the edge; `ops` runs
            // them in order.
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
            text: text_of_edge,
            first_key,
            next,
            then: self.first_of(next),
            is_guess: true,
            is_plain: matched <= WORD_BYTES && target == Target::Scalar && ops.is_empty(),
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
            // The first guess for `then` is the edge seen next. An edge that leads to the end of
            // the body stays a guess: of all elements in a list, only the last one is followed by
            // the end.
            (before.then, before.is_guess) = (id, target == Target::End);
        }
        // Recording counts the brackets that were open before the text; the text can only add its
        // own.
        self.depth =
            self.depth.max(depth + text[..len].iter().filter(|byte| matches!(byte, b'[' | b'{')).count());
        Some(id)
    }
}

/// The position that a new edge leads to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goal {
    /// A scalar. `resume` is the offset at which copying restarts, if the scalar is copied.
    Value {
        node: NodeId,
        resume: Option<usize>,
    },
    End,
}
