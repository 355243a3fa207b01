//! A record of what the machine does between two scalars, as operations of an edge.

use super::edge::{EdgeId, EdgeOp, Edit, FirstKey, NOWHERE, NodeId, SlotAt};
use super::frame::{FrameKind, Member};
use super::names::NameId;
use switchback_json::scan::WORD_BYTES;

/// What the machine has done since a scalar.
#[derive(Debug)]
pub(super) struct Recording {
    /// The node of the scalar, and the edge that led there.
    pub from: NodeId,
    pub came_by: EdgeId,
    /// Where the scalar ends.
    pub start: usize,
    /// Brackets that were open at one time.
    pub depth: usize,
    /// Whether the value that follows is null, where the plan takes nothing else that is a scalar.
    pub is_null: bool,
    events: Vec<Event>,
}

/// Places count from the start of the chunk.
#[derive(Debug)]
enum Event {
    Keep(usize, usize),
    Write(Vec<u8>),
    OpenSlot(usize, usize),
    EndSlot(usize, usize),
    See(NameId, usize),
    Push(Member, FrameKind, u32),
    /// The kind and the number of the frame that is closed.
    Pop(FrameKind, u32),
    Close(bool, usize),
}

impl Recording {
    pub(super) fn new(from: NodeId, came_by: EdgeId, start: usize, depth: usize) -> Recording {
        Recording { from, came_by, start, depth, is_null: false, events: Vec::new() }
    }

    pub(super) fn keep(&mut self, start: usize, end: usize) {
        self.events.push(Event::Keep(start, end));
    }

    pub(super) fn write(&mut self, text: &[u8]) {
        self.events.push(Event::Write(text.to_vec()));
    }

    pub(super) fn open_slot(&mut self, slot: usize, at: usize) {
        self.events.push(Event::OpenSlot(slot, at));
    }

    pub(super) fn end_slot(&mut self, slot: usize, at: usize) {
        self.events.push(Event::EndSlot(slot, at));
    }

    pub(super) fn see(&mut self, id: NameId, at: usize) {
        self.events.push(Event::See(id, at));
    }

    pub(super) fn push(&mut self, outer: Member, kind: FrameKind, id: u32) {
        self.events.push(Event::Push(outer, kind, id));
    }

    pub(super) fn pop(&mut self, kind: FrameKind, id: u32) {
        self.events.push(Event::Pop(kind, id));
    }

    pub(super) fn close(&mut self, wrote: bool, at: usize) {
        self.events.push(Event::Close(wrote, at));
    }

    /// The name that is checked first, and the operations. `text` starts behind the scalar, `is_copied` says whether that one is
    /// copied, and `resume` from where on the next one is.
    pub(super) fn ops(self, text: &[u8], is_copied: bool, resume: Option<usize>) -> (FirstKey, Vec<EdgeOp>) {
        let offset = |at: usize| (at - self.start) as u8;
        let mut writer =
            Writer { text, ops: Vec::new(), from: is_copied.then_some(From::Before), to: 0, gap: Vec::new() };
        let (mut first_key, mut is_first, mut closed) = (FirstKey::default(), true, None);
        for event in &self.events {
            let op = match event {
                Event::Keep(start, end) => {
                    writer.keep(start - self.start, end - self.start);
                    continue;
                }
                Event::Write(text) => {
                    writer.gap.extend_from_slice(text);
                    continue;
                }
                Event::OpenSlot(slot, at) => EdgeOp::OpenSlot(SlotAt { slot: *slot as u16, at: offset(*at) }),
                Event::EndSlot(slot, at) => EdgeOp::EndSlot(SlotAt { slot: *slot as u16, at: offset(*at) }),
                Event::See(id, at) if is_first && *id < 64 => {
                    (first_key, is_first) = (FirstKey { bit: 1 << id, at: offset(*at) }, false);
                    continue;
                }
                // A frame that the edge opens has had no names but those of the edge.
                Event::See(id, _)
                    if *id < 64
                        && let Some(seen) = opened(&mut writer.ops) =>
                {
                    *seen |= 1 << id;
                    continue;
                }
                Event::See(id, at) => EdgeOp::See { id: *id, at: offset(*at) },
                // Of a list the next element has the place of the last one.
                Event::Push(_, FrameKind::Object, id)
                    if closed == Some((FrameKind::Object, *id))
                        && let Some(last) = writer.ops.iter_mut().rev().find(|op| **op == EdgeOp::Pop) =>
                {
                    (*last, closed) = (EdgeOp::Reopen { seen: 0 }, None);
                    continue;
                }
                Event::Push(outer, kind, id) => EdgeOp::Push { outer: *outer, kind: *kind, id: *id, seen: 0 },
                Event::Pop(kind, id) => {
                    closed = Some((*kind, *id));
                    is_first = false;
                    writer.ops.push(EdgeOp::Pop);
                    continue;
                }
                Event::Close(wrote, at) => {
                    writer.end();
                    EdgeOp::Close { wrote: *wrote, at: offset(*at) }
                }
            };
            if !matches!(op, EdgeOp::OpenSlot(_) | EdgeOp::EndSlot(_)) {
                (is_first, closed) = (false, None);
            }
            writer.ops.push(op);
        }
        match resume {
            Some(at) => writer.resume(at - self.start),
            None => writer.end(),
        }
        (first_key, writer.ops)
    }
}

/// The names of the innermost frame, if the edge opens it.
fn opened(ops: &mut [EdgeOp]) -> Option<&mut u64> {
    let is_frame = |op: &&mut EdgeOp| matches!(op, EdgeOp::Push { .. } | EdgeOp::Reopen { .. } | EdgeOp::Pop);
    match ops.iter_mut().rev().find(is_frame)? {
        EdgeOp::Push { seen, .. } | EdgeOp::Reopen { seen } => Some(seen),
        _ => None,
    }
}

/// Where what is copied starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// Before the text of the edge.
    Before,
    At(usize),
}

/// Joins what is copied and written as far as the text has it anyway.
struct Writer<'t> {
    text: &'t [u8],
    ops: Vec<EdgeOp>,
    /// What is copied, up to `to`, and not yet part of the operations.
    from: Option<From>,
    to: usize,
    /// What is written behind that.
    gap: Vec<u8>,
}

impl Writer<'_> {
    fn keep(&mut self, start: usize, end: usize) {
        self.start(start);
        self.to = end;
    }

    /// Copies from `start` on.
    fn start(&mut self, start: usize) {
        let is_there = match self.from {
            Some(_) => self.text.get(self.to..start) == Some(&self.gap[..]),
            None => self.text[..start].ends_with(&self.gap),
        };
        if self.from.is_some() && is_there {
            self.gap.clear();
            return;
        }
        let start = if is_there { start - self.gap.len() } else { start };
        if is_there {
            self.gap.clear();
        }
        self.end();
        self.from = Some(From::At(start));
    }

    /// Ends what is copied, and writes what is to be written.
    fn end(&mut self) {
        if let Some(From::At(at)) = self.from {
            self.resumes(at);
        }
        let flush = if self.from.take().is_some() { self.to as u8 } else { NOWHERE };
        let gap = std::mem::take(&mut self.gap);
        let mut text = [0; WORD_BYTES];
        let is_short = gap.len() <= WORD_BYTES;
        if is_short {
            text[..gap.len()].copy_from_slice(&gap);
        }
        let len = if is_short { gap.len() as u8 } else { 0 };
        if flush != NOWHERE || len > 0 {
            self.ops.push(EdgeOp::Edit(Edit { flush, resume: NOWHERE, len, text }));
        }
        if !is_short {
            self.ops.push(EdgeOp::Write(gap.into()));
        }
    }

    /// Copies from `at` on beyond the text.
    fn resume(&mut self, at: usize) {
        self.start(at);
        if let Some(From::At(at)) = self.from {
            self.resumes(at);
        }
    }

    fn resumes(&mut self, at: usize) {
        match self.ops.last_mut() {
            Some(EdgeOp::Edit(edit)) if edit.resume == NOWHERE => edit.resume = at as u8,
            _ => self.ops.push(EdgeOp::Edit(Edit { resume: at as u8, ..Edit::NOTHING })),
        }
    }
}
