//! Records the work of the machine between two scalars and converts it to operations of an edge.

use super::edge::{EdgeId, EdgeOp, Edit, FirstKey, NOWHERE, NodeId, SlotAt};
use super::frame::{FrameKind, Member};
use super::names::NameId;
use switchback_json::scan::WORD_BYTES;

/// The work of the machine since a scalar.
#[derive(Debug)]
pub(super) struct Recording {
    /// The node of the scalar, and the edge that led to it.
    pub from: NodeId,
    pub came_by: EdgeId,
    /// The end of the scalar.
    pub start: usize,
    /// Open brackets at the end of the scalar.
    pub depth: usize,
    /// Whether the next value is null, and the op accepts no other scalar.
    pub is_null: bool,
    events: Vec<Event>,
}

/// Positions are relative to the chunk.
#[derive(Debug)]
enum Event {
    Keep(usize, usize),
    Write(Vec<u8>),
    OpenSlot(usize, usize),
    EndSlot(usize, usize),
    See(NameId, usize),
    Push(Member, FrameKind, u32),
    /// The kind and the id of the closed frame.
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

    /// Returns the first key and the operations. `text` starts after the scalar. `is_copied`:
    /// whether that scalar is copied. `resume`: the position at which copying of the next scalar
    /// starts.
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
                // The usual edge has one key. Its bit is tested in the loop itself, without running
                // operations.
                Event::See(id, at) if is_first && *id < 64 => {
                    (first_key, is_first) = (FirstKey { bit: 1 << id, at: offset(*at) }, false);
                    continue;
                }
                // A frame that the edge itself opens contains only names of the edge, so no check
                // is needed at run time.
                Event::See(id, _)
                    if *id < 64
                        && let Some(seen) = opened(&mut writer.ops) =>
                {
                    *seen |= 1 << id;
                    continue;
                }
                Event::See(id, at) => EdgeOp::See { id: *id, at: offset(*at) },
                // The next object of a list reuses the frame of the last one.
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
                // Slots do not change frames, so a list of objects with captures still reuses its
                // frame.
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

/// Returns the names of the innermost frame, if the edge opens it.
fn opened(ops: &mut [EdgeOp]) -> Option<&mut u64> {
    let is_frame = |op: &&mut EdgeOp| matches!(op, EdgeOp::Push { .. } | EdgeOp::Reopen { .. } | EdgeOp::Pop);
    match ops.iter_mut().rev().find(is_frame)? {
        EdgeOp::Push { seen, .. } | EdgeOp::Reopen { seen } => Some(seen),
        _ => None,
    }
}

/// The start of the copied text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// Before the text of the edge.
    Before,
    At(usize),
}

/// Merges copied and written text. Written text that equals the text of the edge at that place is
/// copied instead, which continues the span.
struct Writer<'t> {
    text: &'t [u8],
    ops: Vec<EdgeOp>,
    /// The copied text up to `to` that is not yet in `ops`.
    from: Option<From>,
    to: usize,
    /// Text that is written after it.
    gap: Vec<u8>,
}

impl Writer<'_> {
    fn keep(&mut self, start: usize, end: usize) {
        self.start(start);
        self.to = end;
    }

    /// Starts copying at `start`.
    fn start(&mut self, start: usize) {
        // A plan that keeps most members writes the text that the input already contains. Extending
        // the span saves a flush and a write per member.
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

    /// Stops copying, and writes the pending text.
    fn end(&mut self) {
        if let Some(From::At(at)) = self.from {
            self.resumes(at);
        }
        let flush = if self.from.take().is_some() { self.to as u8 } else { NOWHERE };
        let gap = std::mem::take(&mut self.gap);
        let mut text = [0; WORD_BYTES];
        let is_short = gap.len() <= WORD_BYTES;
        // Longer texts become a separate operation, so that an `Edit` is small enough to be stored
        // in the edge itself.
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

    /// Copies from `at` past the end of the text.
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
