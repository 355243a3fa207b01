//! The machine that runs a program over chunks: a stack of open objects and arrays, and a state
//! that determines the next token. It can stop after any byte.

use super::edge::{EdgeId, NO_EDGE};
use super::fault::{self, Fault};
use super::frame::{Frame, FrameKind, Member, OpId, Sink};
use super::learned::Learned;
use super::names::NONE;
use super::program::{Action, Capture, Object, Op, Others, Program};
use super::record::Recording;
use super::slot::Slot;
use super::span::NO_SPAN;
use super::{Bounds, Values};
use crate::translate::{Cause, TranslateError};
use std::sync::Arc;
use switchback_json::raw::Kind;
use switchback_json::reader::is_blank;
use switchback_json::scan::{Portable, Scan};
use switchback_json::{ErrorKind, Expected, Grammar, KeyLedger, Limit};

/// The state of a body between chunks.
#[derive(Debug)]
pub(super) struct Machine {
    pub values: Arc<Values>,
    pub bounds: Bounds,
    /// Checks skipped values and finds their ends. The machine itself checks the structure around
    /// them.
    pub grammar: Grammar,
    pub state: State,
    pub stack: Stack,
    pub layout: Layout,
    /// Names in open objects that have no number in the layout.
    pub other_names: KeyLedger,
    /// Number of open arrays and objects.
    pub depth: usize,
    /// The start of a name that continues in the next chunk.
    pub key: Vec<u8>,
    /// The start of a buffered value that continues in the next chunk.
    pub held: Vec<u8>,
    /// Bytes of all previous chunks.
    pub before: u64,
    /// Whether the op of the root wrote a value.
    pub wrote: bool,
}

/// The open objects, arrays and wrappers, with the data that their frames refer to.
#[derive(Debug, Default)]
pub(super) struct Stack {
    pub frames: Vec<Frame>,
    /// For each open object whose plan has more than 64 members: the rest of [`Frame::seen`], then
    /// the rest of [`Frame::withdrawn`].
    pub bits: Vec<u64>,
    /// Captured values of the open objects. The slots from `slots_used` on are free; they keep
    /// their buffers for reuse.
    pub slots: Vec<Slot>,
    pub slots_used: usize,
}

/// The learned layout that the body is compared with. The first change copies it, because other
/// bodies share it.
#[derive(Debug)]
pub(super) struct Layout {
    pub learned: Arc<Learned>,
    pub may_change: bool,
    pub is_changed: bool,
}

/// The next expected token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// A value for this op.
    Value(OpId),
    /// The value of the current member of the innermost object.
    MemberValue,
    /// The rest of a skipped value.
    Passing(Sink),
    /// The end of a skipped value was reached.
    ValueEnd(Sink),
    FirstKey,
    NextKey,
    /// The rest of a name. The flag is set if its next byte is escaped.
    InKey(bool),
    Colon,
    AfterMember,
    FirstElement,
    AfterElement,
    UnwrapFirst,
    UnwrapEnd,
    End,
}

impl Machine {
    pub(super) fn new(program: &Program, values: Arc<Values>, bounds: Bounds) -> Machine {
        Machine {
            values,
            bounds,
            grammar: Grammar::new(bounds.json.depth),
            state: State::Value(program.root),
            stack: Stack::default(),
            layout: Layout { learned: program.learned(), may_change: program.may_learn(), is_changed: false },
            other_names: KeyLedger::default(),
            depth: 0,
            key: Vec::new(),
            held: Vec::new(),
            before: 0,
            wrote: false,
        }
    }

    /// Adds the current position and its mapping line to a cause.
    pub(super) fn locate(&self, program: &Program, cause: Cause) -> TranslateError {
        let error = TranslateError::new(cause);
        // A syntax error has an offset, which locates it better than a path of names.
        if matches!(error.cause, Cause::Json(_)) {
            return error;
        }
        self.stack.frames.iter().rev().fold(error, |error, frame| match frame.kind {
            FrameKind::Wrap => error,
            FrameKind::Array | FrameKind::Unwrap => error.inside_any_element(),
            FrameKind::Object => {
                let plan = &program.objects[frame.id as usize].plan;
                match plan.members.get(usize::from(frame.member)) {
                    Some(member) => error.inside_member(&member.name.text, Some(&member.origin)),
                    None if matches!(plan.others, switchback_plan::Others::Each(_)) => {
                        error.inside_member("*", None)
                    }
                    None => error,
                }
            }
        })
    }

    /// Returns the index of a slot of a member of the innermost object.
    fn slot(&self, capture: &Capture) -> usize {
        let (frame, outer) = self.stack.frames.split_last().expect("a member lies within an object");
        slot_index(frame, outer, capture)
    }

    /// Notes that the op of the current member wrote no value.
    pub(super) fn withdraw(&mut self, program: &Program) {
        let Some(top) = self.stack.frames.last_mut() else { return };
        let words = program.objects[top.id as usize].words;
        let word = match usize::from(top.member / 64).checked_sub(1) {
            None => &mut top.withdrawn,
            Some(word) => &mut self.stack.bits[top.bits + words.seen + word],
        };
        *word |= 1 << (top.member % 64);
    }

    /// Returns the size of all buffers.
    pub(super) fn held_bytes(&self) -> usize {
        let words = self.stack.bits.capacity() + self.stack.frames.capacity() * size_of::<Frame>() / 8;
        let slots: usize = self.stack.slots.iter().map(Slot::held_bytes).sum();
        words * 8 + slots + self.key.capacity() + self.held.capacity() + self.other_names.bytes()
    }

    /// Finishes the body and appends the remaining output. Returns whether a value was written.
    pub(super) fn finish(mut self, program: &Program, out: &mut Vec<u8>) -> Result<bool, Fault> {
        // Only a number or literal is ended by the end of the text. At most wrappers are open around it.
        if let State::Passing(sink) = self.state
            && self.depth == 0
        {
            self.grammar.finish().map_err(|error| fault::json(error.offset, error.kind))?;
            Run::new(&mut self, program, Portable, &[], out).value_ends(sink, 0, 0)?;
        }
        if matches!(self.state, State::ValueEnd(_)) {
            Run::new(&mut self, program, Portable, &[], out).value_done(0);
        }
        if self.state != State::End {
            return Err(fault::json(self.before, ErrorKind::UnexpectedEnd));
        }
        // Invalid bodies are not learned: their layout is not typical, and the number of changes is
        // limited.
        if self.layout.is_changed {
            program.learn(self.layout.learned);
        }
        Ok(self.wrote)
    }
}

/// Returns the index of a slot of a member of the object `frame`, whose outer frames are `outer`.
fn slot_index(frame: &Frame, outer: &[Frame], capture: &Capture) -> usize {
    // Arrays and wrappers between the objects have no slots, so `up` does not count them.
    let objects = outer.iter().rev().filter(|frame| frame.kind == FrameKind::Object);
    let slots = match capture.up {
        0 => Some(frame.slots),
        up => objects.map(|frame| frame.slots).nth(usize::from(up) - 1),
    };
    // The compiler creates captures only for objects around the member.
    slots.expect("the object that captures is open") + usize::from(capture.slot)
}

/// How the loop continues.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// At this position.
    At(usize),
    /// Skip the value that starts here.
    Pass(Sink, usize),
}

/// A machine while it runs over one chunk.
pub(super) struct Run<'a, S> {
    pub machine: &'a mut Machine,
    pub program: &'a Program,
    pub scan: S,
    pub chunk: &'a [u8],
    pub out: &'a mut Vec<u8>,
    /// The part of the chunk that is copied next and is not yet in `out`.
    pub span: std::ops::Range<usize>,
    /// The work since the last scalar, if an edge can be learned.
    pub recording: Option<Recording>,
    /// The last learned edge, or [`NO_EDGE`].
    pub learned_edge: EdgeId,
}

impl<'a, S: Scan> Run<'a, S> {
    #[inline(always)]
    pub(super) fn new(
        machine: &'a mut Machine,
        program: &'a Program,
        scan: S,
        chunk: &'a [u8],
        out: &'a mut Vec<u8>,
    ) -> Self {
        Run { machine, program, scan, chunk, out, span: NO_SPAN, recording: None, learned_edge: NO_EDGE }
    }

    /// Runs over the chunk.
    pub(super) fn chunk(&mut self) -> Result<(), Fault> {
        // The part within the limit is still read: an earlier error takes precedence.
        let room = self.machine.bounds.json.total_bytes - self.machine.before;
        let over = self.chunk.len() as u64 > room;
        if over {
            // `room` fits `usize`, because it is below the length of a slice.
            self.chunk = &self.chunk[..room as usize];
        }
        // An empty first chunk leaves the state unchanged, so the next chunk may still start the
        // fast path.
        let is_start = self.machine.before == 0 && self.machine.state == State::Value(self.program.root);
        let mut at = if is_start && !self.chunk.is_empty() { self.start()? } else { 0 };
        while at < self.chunk.len() {
            at = match self.machine.state {
                State::Passing(sink) => self.pass_on(sink, at)?,
                State::ValueEnd(sink) => self.behind_value(sink, at)?,
                State::InKey(escaped) => self.key(at, escaped)?,
                _ => match self.structure(at)? {
                    Next::At(at) => at,
                    Next::Pass(sink, at) => self.begins(sink, at)?,
                },
            };
        }
        self.suspend()?;
        if over {
            return Err(fault::json(self.machine.before, ErrorKind::Limit(Limit::TotalBytes)));
        }
        Ok(())
    }

    /// Copies everything that refers to the chunk, because the chunk is released.
    fn suspend(&mut self) -> Result<(), Fault> {
        self.flush();
        let bound = self.machine.bounds.capture_bytes;
        let offset = self.place(self.chunk.len());
        for slot in &mut self.machine.stack.slots[..self.machine.stack.slots_used] {
            // The bound is checked per chunk, so a huge value fails early instead of after it was
            // copied.
            slot.suspend(self.chunk, bound).map_err(|()| fault::too_long(offset))?;
        }
        // Last: offsets of errors above are relative to the start of this chunk.
        self.machine.before += self.chunk.len() as u64;
        Ok(())
    }

    /// Reads white space and one structural byte, or the start of a value.
    fn structure(&mut self, at: usize) -> Result<Next, Fault> {
        let mut at = at;
        while is_blank(self.chunk[at]) {
            at += 1;
            if at == self.chunk.len() {
                return Ok(Next::At(at));
            }
        }
        let byte = self.chunk[at];
        match (self.machine.state, byte) {
            (State::FirstKey | State::NextKey, b'"') => self.machine.state = State::InKey(false),
            (State::FirstKey | State::AfterMember, b'}') => self.end_object(at)?,
            (State::AfterMember, b',') => self.machine.state = State::NextKey,
            (State::Colon, b':') => self.machine.state = State::MemberValue,
            (State::MemberValue, _) => return self.member_value(at),
            (State::Value(op), _) => return self.value(op, at),
            (State::FirstElement | State::AfterElement, b']') => self.end_array(at),
            (State::FirstElement, _) => return self.first_element(at),
            (State::AfterElement, b',') => {
                let op = self.top().id;
                self.machine.state = State::Value(op);
                // Saves a turn of the loop for each element of a compact array, which is the usual
                // form.
                if self.chunk.get(at + 1).is_some_and(|byte| !is_blank(*byte)) {
                    return self.value(op, at + 1);
                }
            }
            // The other side has a single value where this one has a list: an empty list or a
            // second element has no counterpart, so it is an error rather than silently dropped.
            (State::UnwrapFirst, b']') => return Err(Cause::NotOne.into()),
            (State::UnwrapFirst, _) => return self.value(self.top().id, at),
            (State::UnwrapEnd, b']') => {
                self.pop();
                self.value_done(at + 1);
            }
            (State::UnwrapEnd, b',') => return Err(Cause::NotOne.into()),
            (state, _) => return Err(self.unexpected(at, state)),
        }
        Ok(Next::At(at + 1))
    }

    #[cold]
    pub(super) fn unexpected(&self, at: usize, state: State) -> Fault {
        let expected = match state {
            State::FirstKey => Expected::KeyOrObjectEnd,
            State::NextKey => Expected::Key,
            State::Colon => Expected::Colon,
            State::AfterMember => Expected::CommaOrObjectEnd,
            State::AfterElement | State::UnwrapEnd => Expected::CommaOrArrayEnd,
            State::End => return fault::json(self.place(at), ErrorKind::TrailingBytes),
            _ => Expected::Value,
        };
        fault::json(self.place(at), ErrorKind::Unexpected { expected })
    }

    /// Starts the value of a member.
    fn member_value(&mut self, at: usize) -> Result<Next, Fault> {
        let (object, member) = (self.top().id, self.top().member);
        let object = &self.program.objects[object as usize];
        let Some(member) = object.members.get(usize::from(member)) else {
            return match object.others {
                Others::Keep => Ok(Next::Pass(Sink::Copy, at)),
                Others::Drop => Ok(Next::Pass(Sink::Drop, at)),
                // The name was written already.
                Others::Run(op) => self.value(op, at),
                // Null means absent, so there is no data that the refusal would protect.
                Others::Refuse(_) if self.is_null(at) => Ok(Next::Pass(Sink::Drop, at)),
                Others::Refuse(reason) => Err(Cause::Refused(reason).into()),
            };
        };
        // Opened before the value is read: the machine only marks positions, and the text is copied
        // only if the chunk ends first.
        for capture in &member.captures {
            let slot = self.machine.slot(capture);
            self.machine.stack.slots[slot].open(at);
            if let Some(recording) = &mut self.recording {
                recording.open_slot(slot, at);
            }
        }
        match &member.action {
            Action::Drop => Ok(Next::Pass(Sink::Drop, at)),
            Action::Copy(prefix) | Action::Rename(prefix) => {
                self.begin_member(prefix);
                Ok(Next::Pass(Sink::Copy, at))
            }
            Action::Run(prefix, op) => {
                // A conversion may yield no value, and then no name may be written. `convert`
                // writes it instead.
                if !matches!(self.program.ops[*op as usize], Op::Held(_)) {
                    self.begin_member(prefix);
                }
                self.value(*op, at)
            }
            Action::Refuse(_) if self.is_null(at) => Ok(Next::Pass(Sink::Drop, at)),
            Action::Refuse(reason) => Err(Cause::Refused(*reason).into()),
        }
    }

    /// Starts the first element of an array.
    fn first_element(&mut self, at: usize) -> Result<Next, Fault> {
        let op = self.top().id;
        self.machine.state = State::Value(op);
        self.value(op, at)
    }

    /// Starts a value and writes it by `op`.
    fn value(&mut self, op: OpId, at: usize) -> Result<Next, Fault> {
        let first = self.chunk[at];
        let program = self.program;
        let mut op = op;
        loop {
            if self.machine.stack.frames.last().is_some_and(|top| top.kind == FrameKind::Array)
                && self.machine.state == State::Value(op)
                // As for members: `convert` writes the comma, if there is a value.
                && !matches!(program.ops[op as usize], Op::Held(_))
            {
                self.begin_element(at);
            }
            // Set for every op and withdrawn by `convert`, the only place where a value can turn
            // out empty.
            self.machine.wrote = true;
            match &program.ops[op as usize] {
                Op::Keep => return Ok(Next::Pass(Sink::Copy, at)),
                Op::Held(_) => return Ok(Next::Pass(Sink::Hold(op), at)),
                Op::Constant(text) => {
                    self.write(text);
                    return Ok(Next::Pass(Sink::Drop, at));
                }
                // A wrapper consumes no input, so the loop continues with the inner op on the same
                // byte.
                Op::Wrap(inner) => {
                    self.write(b"[");
                    self.push(FrameKind::Wrap, *inner);
                    self.machine.state = State::Value(*inner);
                    op = *inner;
                }
                // Null is copied instead: it denotes a missing value on both sides.
                Op::Object(_) | Op::Again(_) | Op::Array(_) | Op::Unwrap(_) if self.is_null(at) => {
                    return Ok(Next::Pass(Sink::Copy, at));
                }
                Op::Object(object) | Op::Again(object) => {
                    self.expect(first, b'{', Kind::Object, at)?;
                    self.enter(at)?;
                    self.keep(at, at + 1);
                    self.push_object(*object);
                    self.machine.state = State::FirstKey;
                    return Ok(Next::At(at + 1));
                }
                Op::Array(inner) => {
                    self.expect(first, b'[', Kind::Array, at)?;
                    self.enter(at)?;
                    self.keep(at, at + 1);
                    self.push(FrameKind::Array, *inner);
                    self.machine.state = State::FirstElement;
                    return Ok(Next::At(at + 1));
                }
                Op::Unwrap(inner) => {
                    self.expect(first, b'[', Kind::Array, at)?;
                    self.enter(at)?;
                    self.push(FrameKind::Unwrap, *inner);
                    self.machine.state = State::UnwrapFirst;
                    return Ok(Next::At(at + 1));
                }
            }
        }
    }

    /// Returns whether the value at `at` is null, for an op that accepts no other scalar.
    fn is_null(&mut self, at: usize) -> bool {
        let is_null = self.chunk[at] == b'n';
        if let Some(recording) = &mut self.recording {
            // The edge must contain the `n`: without it, the edge would also match before other
            // scalars, which this op rejects.
            recording.is_null |= is_null;
        }
        is_null
    }

    #[inline(always)]
    fn expect(&self, first: u8, wanted: u8, expected: Kind, at: usize) -> Result<(), Fault> {
        if first == wanted {
            return Ok(());
        }
        // A valid value of another kind violates the contract; any other byte violates the grammar.
        Err(match Kind::of_first_byte(first) {
            Some(found) => Cause::Kind { expected, found }.into(),
            None => self.unexpected(at, self.machine.state),
        })
    }

    fn enter(&mut self, at: usize) -> Result<(), Fault> {
        // The stack grows with the input, so the limit also bounds its memory.
        if self.machine.depth >= self.machine.bounds.json.depth {
            return Err(fault::json(self.place(at), ErrorKind::Limit(Limit::Depth)));
        }
        self.machine.depth += 1;
        Ok(())
    }

    #[inline(always)]
    pub(super) fn push(&mut self, kind: FrameKind, id: u32) {
        // Bits and slots of all frames are in two shared vectors: a push needs no allocation of its
        // own.
        let (bits, slots) = (self.machine.stack.bits.len(), self.machine.stack.slots_used);
        if let Some(recording) = &mut self.recording {
            let none = Member { wrote: false, last: NONE, member: NONE };
            recording.push(self.machine.stack.frames.last().map_or(none, Member::of), kind, id);
        }
        self.machine.stack.frames.push(Frame {
            kind,
            id,
            wrote: false,
            has_other_names: false,
            last: NONE,
            member: NONE,
            seen: 0,
            withdrawn: 0,
            bits,
            slots,
        });
    }

    #[inline(always)]
    pub(super) fn push_object(&mut self, object: u32) {
        self.push(FrameKind::Object, object);
        let object = &self.program.objects[object as usize];
        let machine = &mut *self.machine;
        if object.words.all() > 0 {
            machine.stack.bits.resize(machine.stack.bits.len() + object.words.all(), 0);
        }
        machine.stack.slots_used += object.slots;
        // Never shrunk: slots beyond `slots_used` keep their buffers for the next object of a list.
        if machine.stack.slots.len() < machine.stack.slots_used {
            machine.stack.slots.resize_with(machine.stack.slots_used, Slot::default);
        }
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) {
        if let Some(frame) = self.machine.stack.frames.pop() {
            if let Some(recording) = &mut self.recording {
                recording.pop(frame.kind, frame.id);
            }
            if frame.has_other_names {
                self.machine.other_names.close();
            }
            // A wrapper has no bracket in the input, so it does not count as depth.
            self.machine.depth -= usize::from(frame.kind != FrameKind::Wrap);
        }
    }

    fn end_object(&mut self, at: usize) -> Result<(), Fault> {
        let top = *self.top();
        let object = &self.program.objects[top.id as usize];
        self.close_object(&top, object, at)?;
        self.leave_object(&top);
        self.value_done(at + 1);
        Ok(())
    }

    /// Writes the end of the innermost object, whose bracket is at `at`.
    pub(super) fn close_object(&mut self, top: &Frame, object: &Object, at: usize) -> Result<(), Fault> {
        if object.close.is_empty() {
            self.keep(at, at + 1);
            return Ok(());
        }
        if let Some(closing) = &object.closing {
            // Starts with a comma, which is skipped if the object has no member before.
            self.write(&closing[usize::from(!top.wrote)..]);
            return Ok(());
        }
        if let Some(recording) = &mut self.recording {
            recording.close(top.wrote, at);
        }
        // Errors from here on concern the object, not its last member.
        self.top_mut().member = NONE;
        self.close(top, object, at)?;
        self.write(b"}");
        Ok(())
    }

    /// Replaces the innermost object by a new one in the same frame.
    #[inline(always)]
    pub(super) fn reopen_object(&mut self, seen: u64) {
        let machine = &mut *self.machine;
        let top = machine.stack.frames.last_mut().expect("an element is open");
        (top.seen, top.withdrawn) = (seen, 0);
        let (bits, slots) = (top.bits, top.slots);
        // Few objects have such bits, and filling an empty slice still calls `memset`.
        if machine.stack.bits.len() > bits {
            machine.stack.bits[bits..].fill(0);
        }
        // The slots still contain values of the previous element, which must not leak into this
        // one.
        for slot in &mut machine.stack.slots[slots..machine.stack.slots_used] {
            slot.clear();
        }
    }

    /// Removes the innermost object.
    #[inline(always)]
    pub(super) fn leave_object(&mut self, top: &Frame) {
        for slot in &mut self.machine.stack.slots[top.slots..self.machine.stack.slots_used] {
            slot.clear();
        }
        self.machine.stack.slots_used = top.slots;
        self.machine.stack.bits.truncate(top.bits);
        self.pop();
    }

    fn end_array(&mut self, at: usize) {
        self.keep(at, at + 1);
        self.pop();
        self.value_done(at + 1);
    }

    /// Finishes the value of the innermost frame, whose last byte is before `at`.
    #[inline(always)]
    pub(super) fn value_done(&mut self, at: usize) {
        loop {
            let Some(top) = self.machine.stack.frames.last() else {
                self.machine.state = State::End;
                self.learn_end(at);
                return;
            };
            match top.kind {
                FrameKind::Object => {
                    let object = &self.program.objects[top.id as usize];
                    if let Some(member) = object.members.get(usize::from(top.member)) {
                        for capture in &member.captures {
                            let slot = self.machine.slot(capture);
                            self.machine.stack.slots[slot].end(at, self.chunk);
                            if let Some(recording) = &mut self.recording {
                                recording.end_slot(slot, at);
                            }
                        }
                    }
                    self.machine.state = State::AfterMember;
                    return;
                }
                FrameKind::Array => {
                    self.machine.state = State::AfterElement;
                    return;
                }
                FrameKind::Unwrap => {
                    self.machine.state = State::UnwrapEnd;
                    return;
                }
                FrameKind::Wrap => {
                    self.write(b"]");
                    self.pop();
                }
            }
        }
    }

    /// Returns the innermost frame. Call it only in states that imply one.
    #[inline(always)]
    pub(super) fn top(&self) -> &Frame {
        self.machine.stack.frames.last().expect("this state lies within a frame")
    }

    #[inline(always)]
    pub(super) fn top_mut(&mut self) -> &mut Frame {
        self.machine.stack.frames.last_mut().expect("this state lies within a frame")
    }

    /// Converts a position in the chunk to an offset in the body.
    #[inline(always)]
    pub(super) fn place(&self, at: usize) -> u64 {
        self.machine.before + at as u64
    }
}
