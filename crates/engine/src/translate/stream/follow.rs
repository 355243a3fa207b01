//! The fast path: follows learned edges ([`super::learned`]) and scans only the scalars between
//! them. If no edge matches, the machine continues at the same position, and its work up to the
//! next scalar becomes an edge.
//!
//! The loop is compiled once per scan level. Its local state is small (the position, the edges at
//! hand, the start of the span being copied, the keys seen in the innermost object), so that it
//! stays in registers. The machine's frames are up to date except for the per-member fields of the
//! innermost one, which the node holds.

use super::edge::{Edge, EdgeId, EdgeOp, Edit, GAP_BYTES, NO_EDGE, NOWHERE, NodeId, SlotAt, Target, Work};
use super::fault::{self, Fault};
use super::frame::{FrameKind, Member, Sink};
use super::learned::{Goal, Learned, START};
use super::machine::{Run, State};
use super::names::NONE;
use super::record::Recording;
use super::scalar::{AHEAD_BYTES, Ahead, NO_END, ScalarEnd, padded, scalar_end};
use super::span::{COPIED_AT_ONCE, NO_SPAN, append};
use std::sync::Arc;
use switchback_json::scan::{Scan, Task, Windows, append_start, append_starts};
use switchback_json::{ErrorKind, Gap, Open, is_scalar_start};

/// The position at which a node is entered.
#[derive(Debug, Clone, Copy)]
enum Entry {
    /// After the scalar, or at the start of the body.
    Behind,
    /// At the start of the scalar.
    Scalar,
}

/// The reason for leaving the fast path.
#[derive(Debug, Clone, Copy)]
enum Stop {
    /// No edge of this node matches. The last field is the edge taken before, or [`NO_EDGE`].
    Behind(NodeId, usize, EdgeId),
    /// The machine has to read the scalar of this node.
    Scalar(NodeId, usize),
    /// The value at the root is complete.
    End(usize),
}

/// Marks an empty span: no bytes are being copied.
const NOTHING: usize = NO_SPAN.start;

impl<'a, S: Scan> Run<'a, S> {
    /// Starts reading at the start of the body.
    pub(super) fn start(&mut self) -> Result<usize, Fault> {
        if self.can_follow() { self.follow(START, Entry::Behind, 0) } else { Ok(0) }
    }

    /// Continues after the value that ended before `at`.
    pub(super) fn behind_value(&mut self, sink: Sink, at: usize) -> Result<usize, Fault> {
        // Opens an empty span at `at`, so that an edge can extend the copied value.
        let sink = match sink {
            Sink::Copy => {
                self.keep(at, at);
                Sink::Copy
            }
            // The result of a conversion is already in the output.
            Sink::Drop | Sink::Hold(_) => Sink::Drop,
        };
        // The root value is complete; no edge follows.
        let is_within = !self.machine.stack.frames.is_empty();
        match is_within.then(|| self.node(Open::default(), sink)).flatten() {
            Some(node) => self.follow(node, Entry::Behind, at),
            None => {
                self.value_done(at);
                Ok(at)
            }
        }
    }

    /// Continues in a skipped value that an earlier chunk started.
    pub(super) fn pass_on(&mut self, sink: Sink, at: usize) -> Result<usize, Fault> {
        // A conversion needs its value complete, so it cannot continue on the fast path.
        if let Sink::Hold(_) = sink {
            return self.pass_from(sink, at);
        }
        let grammar = &mut self.machine.grammar;
        let read = grammar.feed_to_value_end(self.scan, &self.chunk[at..]);
        let open = grammar.open();
        let end = match read.map_err(|error| fault::json(error.offset, error.kind))? {
            Some(len) => at + len,
            None => return self.suspend_value(sink, at),
        };
        // No bracket is open any more, so the skipped value itself has ended.
        if open == Some(Open::default()) {
            return self.finish_value(sink, at, end);
        }
        self.deliver(sink, at, end)?;
        match open.and_then(|open| self.node(open, sink)) {
            Some(node) => self.follow(node, Entry::Behind, end),
            None => self.pass_from(sink, end),
        }
    }

    /// Skips the value that starts at `at`. If a recording is active, adds it as an edge.
    pub(super) fn begins(&mut self, sink: Sink, at: usize) -> Result<usize, Fault> {
        let Some(recording) = self.recording.take() else { return self.pass(sink, at) };
        let first = self.chunk[at];
        if is_scalar_start(first) {
            self.learn(recording, (Open::default(), sink), at, at);
            return self.pass(sink, at);
        }
        // A value for a conversion has no edges inside: it is buffered as one piece.
        if !matches!((sink, first), (Sink::Copy | Sink::Drop, b'[' | b'{')) {
            return self.pass(sink, at);
        }
        // If no edge results, `pass` starts the grammar again.
        let (gap, depth_left) = (self.gap_from(at), self.depth_left());
        self.machine.grammar.restart(depth_left, 0);
        match self.machine.grammar.feed_to_scalar(gap) {
            Some(Gap::Scalar(len)) => {
                let open = self.machine.grammar.open().unwrap_or_default();
                match self.learn(recording, (open, sink), at, at + len) {
                    Some(node) => {
                        self.deliver(sink, at, at + len)?;
                        self.follow(node, Entry::Scalar, at + len)
                    }
                    None => self.pass(sink, at),
                }
            }
            Some(Gap::End(len)) => {
                // An empty container has no scalar inside, so the recording continues to the next
                // one.
                self.recording = Some(recording);
                self.deliver(sink, at, at + len)?;
                self.value_done(at + len);
                Ok(at + len)
            }
            None => self.pass(sink, at),
        }
    }

    /// Adds an edge to the end of the body, before `at`.
    pub(super) fn learn_end(&mut self, at: usize) {
        let Some(recording) = self.recording.take() else { return };
        let text = &self.chunk[recording.start..];
        // As in `learn`: an edge must never nest deeper than the limit.
        if recording.depth + brackets(&text[..at - recording.start]) <= self.machine.bounds.json.depth {
            let len = at - recording.start;
            let learned =
                Arc::make_mut(&mut self.machine.layout.learned).add(recording, text, len, Goal::End);
            self.machine.layout.is_changed |= learned.is_some();
        }
    }

    /// Adds an edge to the scalar at `at`, which is the value that starts at `value` or part of it.
    fn learn(
        &mut self,
        recording: Recording,
        (open, sink): (Open, Sink),
        value: usize,
        at: usize,
    ) -> Option<NodeId> {
        let text = &self.chunk[recording.start..];
        let len = at - recording.start;
        // Counts opening brackets only, so a text that closes some first may be rejected: an edge
        // must never nest deeper than the limit.
        if recording.depth + brackets(&text[..len]) > self.machine.bounds.json.depth || len >= GAP_BYTES {
            return None;
        }
        let node = self.node(open, sink)?;
        // Copying resumes at the start of the value rather than at its first scalar, so that the
        // brackets between them are part of the span.
        let resume = (sink == Sink::Copy).then_some(value);
        let learned = Arc::make_mut(&mut self.machine.layout.learned);
        let edge = learned.add(recording, text, len, Goal::Value { node, resume })?;
        self.learned_edge = edge;
        self.machine.layout.is_changed = true;
        Some(node)
    }

    /// Returns the node for the open frames.
    fn node(&mut self, open: Open, sink: Sink) -> Option<NodeId> {
        // Names without a number are checked for duplicates in a ledger, which edges do not update.
        if !self.can_follow() || self.machine.stack.frames.iter().any(|frame| frame.has_other_names) {
            return None;
        }
        let machine = &mut *self.machine;
        let found = machine.layout.learned.find(&machine.stack.frames, open, sink);
        // After a number of changes the layout stays constant, so that lookups never copy it.
        if found.is_some() || !machine.layout.may_change {
            return found;
        }
        machine.layout.is_changed = true;
        Arc::make_mut(&mut machine.layout.learned).node_for(&machine.stack.frames, open, sink)
    }

    /// Returns whether the learned layout respects the bounds of this body.
    fn can_follow(&self) -> bool {
        let limits = &self.machine.bounds.json;
        // An edge contains complete names. With a lower limit, it could accept a name that the
        // machine rejects.
        limits.key_bytes >= GAP_BYTES && self.machine.layout.learned.keeps_within(limits.depth)
    }

    fn depth_left(&self) -> usize {
        self.machine.bounds.json.depth - self.machine.depth
    }

    /// Returns the part of the chunk from `at` that an edge can span.
    fn gap_from(&self, at: usize) -> &'a [u8] {
        &self.chunk[at..self.chunk.len().min(at + GAP_BYTES)]
    }

    /// Follows edges while one matches. Returns the position at which the machine continues.
    fn follow(&mut self, node: NodeId, entry: Entry, at: usize) -> Result<usize, Fault> {
        let (mut node, mut entry, mut at) = (node, entry, at);
        loop {
            // The loop borrows the run mutably, so it needs its own reference to the layout.
            let learned = Arc::clone(&self.machine.layout.learned);
            let scan = self.scan;
            let stop = scan.enter(Follow { run: self, learned: &learned, node, entry, at })?;
            let (stopped_at, place, came_by) = match stop {
                Stop::End(at) => return Ok(at),
                Stop::Scalar(node, at) => {
                    let node = learned.node(node);
                    return match node.open.depth() {
                        0 => self.pass(node.sink, at),
                        _ => self.pass_nested(node.open, node.sink, false, at),
                    };
                }
                Stop::Behind(node, at, came_by) => (node, at, came_by),
            };
            let (open, sink) = (learned.node(stopped_at).open, learned.node(stopped_at).sink);
            let is_learned =
                self.machine.layout.may_change && place < self.chunk.len() && learned.has_room_at(stopped_at);
            // `learn` mutates the layout with `Arc::make_mut`: a second reference here would force
            // a copy for each edge.
            drop(learned);
            let depth = self.machine.depth + open.depth();
            let recording = Recording::new(stopped_at, came_by, place, depth);
            if open.depth() == 0 {
                self.recording = is_learned.then_some(recording);
                // At the start no value has been read that could be finished.
                if stopped_at != START {
                    self.value_done(place);
                }
                return Ok(place);
            }
            if !is_learned {
                return self.pass_nested(open, sink, true, place);
            }
            // If no edge results, `pass_nested` starts the grammar again.
            let (gap, depth_left) = (self.gap_from(place), self.depth_left());
            self.machine.grammar.resume(open, true, depth_left, 0);
            match self.machine.grammar.feed_to_scalar(gap) {
                Some(Gap::Scalar(len)) => {
                    let next = self.machine.grammar.open().and_then(|open| {
                        let resume = place;
                        self.learn(recording, (open, sink), resume, place + len)
                    });
                    let Some(next) = next else { return self.pass_nested(open, sink, true, place) };
                    self.deliver(sink, place, place + len)?;
                    (node, entry, at) = (next, Entry::Scalar, place + len);
                }
                Some(Gap::End(len)) => {
                    self.recording = Some(recording);
                    self.deliver(sink, place, place + len)?;
                    self.value_done(place + len);
                    return Ok(place + len);
                }
                None => return self.pass_nested(open, sink, true, place),
            }
        }
    }

    /// Skips the rest of a value in which `open` brackets are open. `is_behind` selects whether
    /// `at` is after a nested value or at the start of one.
    fn pass_nested(&mut self, open: Open, sink: Sink, is_behind: bool, at: usize) -> Result<usize, Fault> {
        let (depth_left, offset) = (self.depth_left(), self.place(at));
        self.machine.grammar.resume(open, is_behind, depth_left, offset);
        self.pass_from(sink, at)
    }

    /// Performs the operations of an edge whose text starts at `at`. `from` is the start of the
    /// span being copied.
    #[inline(never)]
    fn work(&mut self, edge: &Edge, at: usize, from: &mut usize) -> Result<(), Fault> {
        for op in &edge.ops {
            match op {
                EdgeOp::Edit(edit) => edit.run(self.chunk, at, from, self.out),
                EdgeOp::Write(text) => self.out.extend_from_slice(text),
                EdgeOp::OpenSlot(slot) => self.open_slot(*slot, at),
                EdgeOp::EndSlot(slot) => self.end_slot(*slot, at),
                EdgeOp::See { id, at: offset } => {
                    if !self.see(*id) {
                        return Err(self.is_named_twice(at + usize::from(*offset)));
                    }
                }
                EdgeOp::Push { outer, kind, id, seen } => {
                    if let Some(top) = self.machine.stack.frames.last_mut() {
                        // The machine's frame is behind: the fast path does not update the fields
                        // of the member.
                        outer.put_in(top);
                    }
                    self.machine.depth += usize::from(*kind != FrameKind::Wrap);
                    match kind {
                        FrameKind::Object => self.push_object(*id),
                        _ => self.push(*kind, *id),
                    }
                    // Set after the push, which starts every frame without any key seen.
                    self.top_mut().seen = *seen;
                }
                EdgeOp::Pop => match *self.top() {
                    top if top.kind == FrameKind::Object => self.leave_object(&top),
                    _ => self.pop(),
                },
                EdgeOp::Reopen { seen } => self.reopen_object(*seen),
                EdgeOp::Close { wrote, at: offset } => {
                    let top = self.top_mut();
                    // As in `close_object`: errors concern the object, not its last member.
                    (top.wrote, top.member) = (*wrote, NONE);
                    let top = *top;
                    let object = &self.program.objects[top.id as usize];
                    self.close(&top, object, at + usize::from(*offset))?;
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn open_slot(&mut self, slot: SlotAt, at: usize) {
        self.machine.stack.slots[usize::from(slot.slot)].open(at + usize::from(slot.at));
    }

    #[inline(always)]
    fn end_slot(&mut self, slot: SlotAt, at: usize) {
        self.machine.stack.slots[usize::from(slot.slot)].end(at + usize::from(slot.at), self.chunk);
    }

    #[cold]
    fn is_named_twice(&self, at: usize) -> Fault {
        fault::json(self.place(at), ErrorKind::DuplicateMember)
    }
}

impl Edit {
    /// Performs the edit for an edge whose text starts at `at`.
    #[inline(always)]
    fn run(&self, chunk: &[u8], at: usize, from: &mut usize, out: &mut Vec<u8>) {
        let len = usize::from(self.len);
        if self.flush == NOWHERE {
            append_start(out, &self.text, len);
        } else {
            let end = at + usize::from(self.flush);
            match Windows::<COPIED_AT_ONCE>::of(chunk).at(*from) {
                // Copies of a fixed length compile to a few vector instructions. A copy of a
                // variable length calls `memcpy`, which takes longer than the rest of the edge.
                Some(window) if end - *from <= COPIED_AT_ONCE => {
                    append_starts(out, (window, end - *from), (&self.text, len));
                }
                _ => {
                    append(chunk, *from, end, out);
                    append_start(out, &self.text, len);
                }
            }
        }
        *from = if self.resume == NOWHERE { NOTHING } else { at + usize::from(self.resume) };
    }
}

fn brackets(text: &[u8]) -> usize {
    text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count()
}

/// The loop over edges, starting at a node.
struct Follow<'f, 'a, S> {
    run: &'f mut Run<'a, S>,
    learned: &'f Learned,
    node: NodeId,
    entry: Entry,
    at: usize,
}

impl<S: Scan> Task for Follow<'_, '_, S> {
    type Output = Result<Stop, Fault>;

    #[inline(always)]
    fn run<Entered: Scan>(self, scan: Entered) -> Result<Stop, Fault> {
        let Follow { run, learned, node, entry, at } = self;
        let chunk = run.chunk;
        let windows = Windows::<AHEAD_BYTES>::of(chunk);
        let (mut node, mut at) = (node, at);
        // Only a span that reaches `at` can be extended by the first edge; any other is flushed.
        let mut from = match learned.node(node).sink {
            Sink::Copy if run.span.end == at => std::mem::replace(&mut run.span, NO_SPAN).start,
            _ => {
                run.flush();
                NOTHING
            }
        };
        let mut seen = run.machine.stack.frames.last().map_or(0, |top| top.seen);
        let mut came_by = std::mem::replace(&mut run.learned_edge, NO_EDGE);
        let mut then = learned.first_of(node);
        let entered = match entry {
            Entry::Behind => at,
            Entry::Scalar => scan.enter_apart(ScalarEnd { chunk, at }),
        };
        // The scalar continues in the next chunk, or is invalid: the machine decides.
        let is_cut = matches!(entry, Entry::Scalar) && entered == NO_END;
        at = if is_cut { at } else { entered };
        let mut end_of_chunk: Ahead;
        let stop = loop {
            if is_cut {
                break Stop::Scalar(node, at);
            }
            let ahead = match windows.at(at) {
                Some(ahead) => ahead,
                None => {
                    // Reading a full window beyond the chunk is not possible, so the last bytes are
                    // copied. Zeroes match no text of an edge.
                    end_of_chunk = padded(chunk, at);
                    &end_of_chunk
                }
            };
            // Try the predicted edge first: in a list of equal elements it matches nearly always,
            // and the linear search is skipped.
            let Some(edge) = learned.edge(then).filter(|edge| edge.text.begins(scan, ahead)) else {
                match learned.search(node, scan, ahead) {
                    Some(found) => then = found,
                    None => break Stop::Behind(node, at, came_by),
                }
                continue;
            };
            let is_all_there =
                // `begins` has compared the first word already, which is all of a plain edge's
                // text.
                edge.is_plain || edge.text.is_whole_in(scan, ahead) && edge.text.leads_on(ahead);
            if !is_all_there {
                match learned.search(node, scan, ahead) {
                    Some(found) => then = found,
                    None => break Stop::Behind(node, at, came_by),
                }
                continue;
            }
            // Two bodies can differ in the keys seen before the same text, so an edge checks
            // duplicates each time it is taken.
            if seen & edge.first_key.bit != 0 {
                return Err(run.is_named_twice(at + usize::from(edge.first_key.at)));
            }
            // Not assigned to `seen` yet: the edge may still turn out not to match, below.
            let mut had = seen | edge.first_key.bit;
            if !edge.is_plain {
                match edge.work {
                    Work::Edit => {
                        if let Some(slot) = edge.end_slot {
                            run.end_slot(slot, at);
                        }
                        if let Some(slot) = edge.open_slot {
                            run.open_slot(slot, at);
                        }
                        if let Some(edit) = &edge.edit {
                            edit.run(chunk, at, &mut from, run.out);
                        }
                    }
                    Work::Ops => run.work(edge, at, &mut from)?,
                    Work::Structural => {
                        if let Some(top) = run.machine.stack.frames.last_mut() {
                            // Structural operations replace the innermost frame: store the local
                            // copy of its keys first and reload it afterwards.
                            top.seen = had;
                        }
                        run.work(edge, at, &mut from)?;
                        had = run.machine.stack.frames.last().map_or(0, |top| top.seen);
                    }
                }
            }
            let len = usize::from(edge.text.len);
            match edge.target {
                _ if edge.is_plain => {}
                Target::Scalar => {}
                Target::Machine => {
                    (came_by, node, seen) = (then, edge.next, had);
                    break Stop::Scalar(node, at + len);
                }
                Target::End => {
                    came_by = then;
                    break Stop::End(at + len);
                }
            }
            let end = scalar_end(scan, chunk, ahead, len, at + len);
            if end == NO_END && edge.is_plain && !edge.text.leads_on(ahead) {
                // A plain edge does not check the first byte of its scalar until the scan fails.
                // The machine could skip any value here, but another edge may match the bracket, so
                // search first.
                match learned.search(node, scan, ahead) {
                    Some(found) => then = found,
                    None => break Stop::Behind(node, at, came_by),
                }
                continue;
            }
            // Committed only here: no step below can fail.
            (came_by, node, then, seen) = (then, edge.next, edge.then, had);
            if end == NO_END {
                break Stop::Scalar(node, at + len);
            }
            at = end;
        };
        // The local state is written back to the machine, which must be able to continue from here.
        run.machine.wrote |= came_by != NO_EDGE;
        if let Stop::End(_) = stop {
            run.machine.state = State::End;
            return Ok(stop);
        }
        if let (Some(top), Some(node)) =
            (run.machine.stack.frames.last_mut(), learned.node(node).frames.last())
        {
            Member::of(node).put_in(top);
            top.seen = seen;
        }
        if node != START {
            run.machine.state = State::ValueEnd(learned.node(node).sink);
        }
        let (Stop::Behind(_, at, _) | Stop::Scalar(_, at) | Stop::End(at)) = stop;
        // The span stays open: the machine may extend it without a flush in between.
        run.span = if from == NOTHING { NO_SPAN } else { from..at };
        Ok(stop)
    }
}
