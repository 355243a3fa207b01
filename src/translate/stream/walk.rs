//! The short cut through the machine, for what most of a body is: members that are named as expected and
//! whose values end within the chunk, objects within them that the plan walks, and elements of a list of
//! such objects. Whatever is unusual is left to the machine, at a place and in a state in which the
//! machine could have come by itself.
//!
//! All of it is compiled once for each way of scanning and entered once for as long as nothing unusual
//! comes: [`PlainMembers`] is the loop over members, the rest goes from one object to
//! the next.

use super::close::Slot;
use super::fault::Fault;
use super::machine::{Frame, FrameKind, Machine, Run, State, slot_index};
use super::names::{NONE, Plain};
use super::output::{NO_SPAN, append, flush};
use super::program::{Action, Capture, Member, Object, Op, OpId, Prefix, Program};
use super::skip::{Skip, Skipped};
use crate::json::scan::{Scan, Task, WORD_BYTES};
use std::ops::Range;

/// Bytes that are looked at from the quote of a name on, so that one question about the end of the chunk
/// does for the name and the beginning of its value.
const AHEAD_BYTES: usize = 128;

/// Why the loop over the members of one object ends.
#[derive(Debug, Clone, Copy)]
enum Pause {
    /// At the quote of a name that is not the expected one, or has another difficulty.
    Name(usize),
    /// At the value of a member that is neither dropped nor copied; its name begins at `name`.
    Value { name: usize, value: usize },
    /// After a member that is not followed by another at once.
    Member(usize),
}

/// Where to go on.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// With the members of the innermost object; the quote of a name stands here.
    Members(usize),
    /// With the end of the innermost object; its bracket stands here.
    Ends(usize),
    /// In the machine, whose state says with what.
    Machine(usize),
}

impl<S: Scan> Run<'_, S> {
    /// Reads members from the quote of a name at `at` on; the place where the machine goes on.
    pub fn members(&mut self, at: usize) -> Result<usize, Fault> {
        // Names that can be expected keep within every sensible bound on names.
        if self.machine.bounds.json.key_bytes < WORD_BYTES {
            self.machine.state = State::InKey(false);
            return Ok(at + 1);
        }
        self.scan.enter(Walk { run: self, at })
    }
}

/// A body, from the quote of a name at `at` on.
struct Walk<'w, 'a, S> {
    run: &'w mut Run<'a, S>,
    at: usize,
}

impl<S: Scan> Task for Walk<'_, '_, S> {
    type Output = Result<usize, Fault>;

    #[inline(always)]
    fn run<Entered: Scan>(self, scan: Entered) -> Result<usize, Fault> {
        let Walk { run, at } = self;
        let mut step = Step::Members(at);
        loop {
            step = match step {
                Step::Members(at) => match run.plain_members(at).run(scan) {
                    Pause::Name(quote) => {
                        run.machine.state = State::InKey(false);
                        Step::Machine(quote + 1)
                    }
                    Pause::Value { name, value } => run.descend(name, value),
                    Pause::Member(end) if run.chunk.get(end) == Some(&b'}') => Step::Ends(end),
                    Pause::Member(end) => {
                        run.machine.state = State::AfterMember;
                        Step::Machine(end)
                    }
                },
                Step::Ends(at) => run.object_ends(at)?,
                Step::Machine(at) => return Ok(at),
            };
        }
    }
}

/// The members of one object from the quote of a name at `at` on, as far as they are plain. A function of
/// its own, so that what changes from member to member stays in registers.
struct PlainMembers<'r> {
    machine: &'r mut Machine,
    program: &'r Program,
    chunk: &'r [u8],
    out: &'r mut Vec<u8>,
    /// See [`Run::span`].
    span: &'r mut Range<usize>,
    at: usize,
}

impl Task for PlainMembers<'_> {
    type Output = Pause;

    #[inline(always)]
    fn run<S: Scan>(self, scan: S) -> Pause {
        let PlainMembers { machine, program, chunk, out, span, at: start } = self;
        let depth_left = machine.bounds.json.depth - machine.depth;
        let (frame, outer) = machine.frames.split_last_mut().expect("a name lies within an object");
        let object = &program.objects[frame.id as usize];
        let names = &machine.names[frame.id as usize];
        let (mut last, mut seen) = (frame.last, frame.seen);
        let mut copy = Copying::resume(chunk, span, out, start, frame.wrote);
        let mut id = names.after(last);
        let mut at = start;
        let mut end_of_chunk = None;
        let pause = loop {
            let Some(name) = names.get(id) else { break Pause::Name(at) };
            let ahead = match chunk.get(at..).and_then(<[u8]>::first_chunk) {
                Some(ahead) => ahead,
                None => end_of_chunk.insert(padded(chunk, at)),
            };
            if !name.begins(scan, window(ahead, 0)) || seen & name.bit == name.bit {
                break Pause::Name(at);
            }
            let len = name.len();
            let value = at + len;
            if name.plain == Plain::No {
                seen |= name.bit;
                last = id;
                frame.member = id;
                break Pause::Value { name: at, value };
            }
            let Some(end) = value_end(scan, chunk, ahead, at, len, depth_left) else {
                break Pause::Name(at);
            };
            seen |= name.bit;
            last = id;
            // What is copied after what is copied needs nothing.
            if !name.is_copied || copy.from == NOTHING {
                copy.edit(chunk, out, name.plain, object.members.get(usize::from(id)), at, value);
                if name.is_captured {
                    let captures = &object.members[usize::from(id)].captures;
                    capture(&mut machine.slots, frame, outer, captures, chunk, value..end);
                }
            }
            if chunk.get(end..).and_then(<[u8]>::first_chunk) != Some(b",\"") {
                break Pause::Member(end);
            }
            at = end + 1;
            id = name.next;
        };
        *span = match pause {
            Pause::Name(at) | Pause::Value { name: at, .. } => copy.before_name(at),
            Pause::Member(end) => copy.before(end),
        };
        (frame.last, frame.wrote, frame.seen) = (last, copy.wrote, seen);
        pause
    }
}

/// Keeps the part `value` of the chunk in the slots of a member.
#[inline(never)]
fn capture(
    slots: &mut [Slot],
    frame: &Frame,
    outer: &[Frame],
    captures: &[Capture],
    chunk: &[u8],
    value: Range<usize>,
) {
    for capture in captures {
        let slot = &mut slots[slot_index(frame, outer, capture)];
        slot.open(value.start);
        slot.end(value.end, chunk);
    }
}

/// The part of the chunk that is being copied while members follow one another: where it begins is known,
/// and that it goes as far as members have been read.
#[derive(Debug, Clone, Copy)]
struct Copying {
    /// [`NOTHING`] while nothing is copied.
    from: usize,
    /// The name from which on members have been read here.
    start: usize,
    /// Whether the object had a member before `start`, or has one that has been dealt with here.
    wrote: bool,
}

/// The place from which nothing is copied.
const NOTHING: usize = NO_SPAN.start;

impl Copying {
    /// Goes on with the span before `start`, if nothing but the comma stands between.
    #[inline(always)]
    fn resume(
        chunk: &[u8],
        span: &mut Range<usize>,
        out: &mut Vec<u8>,
        start: usize,
        wrote: bool,
    ) -> Copying {
        if span.end + usize::from(wrote) == start {
            return Copying { from: span.start, start, wrote };
        }
        flush(chunk, span, out);
        Copying { from: NOTHING, start, wrote }
    }

    /// What is copied when the name at `at` has been reached, but not the member that it names.
    #[inline(always)]
    fn before_name(&mut self, at: usize) -> Range<usize> {
        // Before all names but the first there is a comma, which belongs to the member that follows.
        let comma = at != self.start || self.wrote;
        self.wrote |= at != self.start && self.from != NOTHING;
        if self.from == NOTHING { NO_SPAN } else { self.from..at - usize::from(comma) }
    }

    /// What is copied when everything before `end` has been read, a member at least.
    #[inline(always)]
    fn before(&mut self, end: usize) -> Range<usize> {
        self.wrote |= self.from != NOTHING;
        if self.from == NOTHING { NO_SPAN } else { self.from..end }
    }

    /// Writes what has been copied, if anything, and what else is needed for the member whose name is at
    /// `at` and whose value is at `value`.
    #[inline(never)]
    fn edit(
        &mut self,
        chunk: &[u8],
        out: &mut Vec<u8>,
        plain: Plain,
        member: Option<&Member>,
        at: usize,
        value: usize,
    ) {
        match plain {
            Plain::Drop if self.from == NOTHING => {}
            Plain::Drop => {
                let copied = self.before_name(at);
                append(chunk, copied.start, copied.end, out);
                self.from = NOTHING;
            }
            Plain::Copy | Plain::No if self.from != NOTHING => {}
            Plain::Copy | Plain::No => {
                if self.wrote {
                    out.push(b',');
                }
                self.from = at;
            }
            Plain::Rename => {
                match self.from {
                    NOTHING if self.wrote => out.push(b','),
                    NOTHING => {}
                    from => append(chunk, from, at, out),
                }
                if let Some(Action::Rename(prefix)) = member.map(|member| &member.action) {
                    prefix.write_name(out);
                }
                self.from = value;
                self.wrote = true;
            }
        }
    }
}

impl<S: Scan> Run<'_, S> {
    #[inline(always)]
    fn plain_members(&mut self, at: usize) -> PlainMembers<'_> {
        PlainMembers {
            machine: self.machine,
            program: self.program,
            chunk: self.chunk,
            out: self.out,
            span: &mut self.span,
            at,
        }
    }

    /// Goes into the value of a member, or leaves it to the machine.
    #[inline(always)]
    fn descend(&mut self, name: usize, value: usize) -> Step {
        let top = *self.top();
        let member = &self.program.objects[top.id as usize].members[usize::from(top.member)];
        let inner = match member.action {
            Action::Run(ref prefix, op) => Some((prefix, self.opens(op, value))),
            _ => None,
        };
        let Some((prefix, Some(opens))) = inner else {
            self.machine.state = State::MemberValue;
            return Step::Machine(value);
        };
        for capture in &member.captures {
            self.machine.slot(capture).open(value);
        }
        self.name_member(prefix, member.same_name, name, value);
        self.open(opens, value)
    }

    /// Writes the name of a member that stands at `name`, with the value that follows it at `value` to be
    /// kept next.
    #[inline(always)]
    fn name_member(&mut self, prefix: &Prefix, same_name: bool, name: usize, value: usize) {
        let wrote = self.top().wrote;
        if same_name && self.span.end + usize::from(wrote) == name {
            self.span.end = value;
            self.top_mut().wrote = true;
        } else {
            self.begin_member(prefix);
        }
    }

    /// What the value at `at` opens for `op`, if that is all that needs to be looked at.
    #[inline(always)]
    fn opens(&self, op: OpId, at: usize) -> Option<Opens> {
        let depth_left = self.machine.bounds.json.depth - self.machine.depth;
        match self.program.ops[op as usize] {
            Op::Object(object) if self.has(at, b"{\"") && depth_left >= 1 => Some(Opens::Object(object)),
            Op::Array(inner) => match self.program.ops[inner as usize] {
                Op::Object(object) if self.has(at, b"[{\"") && depth_left >= 2 => {
                    Some(Opens::List { inner, object })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Writes the brackets that are opened at `at`.
    #[inline(always)]
    fn open(&mut self, opens: Opens, at: usize) -> Step {
        let (object, brackets) = match opens {
            Opens::Object(object) => (object, 1),
            Opens::List { inner, object } => {
                self.machine.depth += 1;
                self.push(FrameKind::Array, inner);
                self.top_mut().wrote = true;
                (object, 2)
            }
        };
        self.machine.depth += 1;
        self.keep(at, at + brackets);
        self.push_object(object);
        Step::Members(at + brackets)
    }

    /// The innermost object ends with the bracket at `at`.
    #[inline(always)]
    fn object_ends(&mut self, at: usize) -> Result<Step, Fault> {
        let top = *self.top();
        let object = &self.program.objects[top.id as usize];
        match &object.closing {
            Some(closing) => self.write_closing(closing, &top, at),
            None => self.close_object(&top, object, at)?,
        }
        if self.next_element(&top, object, at + 1) {
            return Ok(Step::Members(at + 3));
        }
        self.leave_object(&top);
        Ok(self.after_value(at + 1))
    }

    #[inline(always)]
    fn write_closing(&mut self, closing: &[u8], top: &Frame, at: usize) {
        if closing.len() == 1 {
            self.keep(at, at + 1);
        } else {
            self.write(&closing[usize::from(!top.wrote)..]);
        }
    }

    /// Begins the next element of a list of objects, if one follows at `at`; its frame, the bits and the
    /// slots are those of the element before.
    #[inline(always)]
    fn next_element(&mut self, top: &Frame, object: &Object, at: usize) -> bool {
        let machine = &mut *self.machine;
        let Some(outer) = machine.frames.len().checked_sub(2) else { return false };
        if machine.frames[outer].kind != FrameKind::Array
            || top.strangers
            || self.chunk.get(at..at + 3) != Some(b",{\"")
        {
            return false;
        }
        // Few objects have such bits, and clearing none of them is a costly call to some libraries.
        if object.words.all() > 0 {
            machine.bits[top.bits..][..object.words.all()].fill(0);
        }
        for slot in &mut machine.slots[top.slots..machine.slots_used] {
            slot.clear();
        }
        let frame = &mut machine.frames[outer + 1];
        (frame.wrote, frame.last, frame.member) = (false, NONE, NONE);
        (frame.seen, frame.withdrawn) = (0, 0);
        self.keep(at, at + 2);
        true
    }

    /// A value has ended before `at`, where the innermost frame goes on.
    #[inline(always)]
    fn after_value(&mut self, at: usize) -> Step {
        self.value_done(at);
        match self.machine.state {
            State::AfterMember if self.has(at, b",\"") => Step::Members(at + 1),
            State::AfterMember if self.has(at, b"}") => Step::Ends(at),
            _ => Step::Machine(at),
        }
    }

    #[inline(always)]
    fn has(&self, at: usize, text: &[u8]) -> bool {
        self.chunk.get(at..).is_some_and(|rest| rest.starts_with(text))
    }
}

/// What begins with one or two brackets and goes on with a name.
#[derive(Debug, Clone, Copy)]
enum Opens {
    Object(u32),
    /// A list of objects, each for the op `inner`.
    List {
        inner: OpId,
        object: u32,
    },
}
/// The place after the value that begins `len` bytes after `at`, if it ends within the chunk and nothing is
/// wrong with it. `ahead` is what the chunk has at `at`, followed by zeros.
#[inline(always)]
fn value_end<S: Scan>(
    scan: S,
    chunk: &[u8],
    ahead: &[u8; AHEAD_BYTES],
    at: usize,
    len: usize,
    depth_left: usize,
) -> Option<usize> {
    let first = ahead[len];
    // By far the most frequent kind comes first.
    if first == b'"' {
        let found = scan.string_start(window(ahead, len + 1));
        if found < S::STEP && ahead[len + 1 + found] == b'"' {
            return Some(at + len + found + 2);
        }
    }
    match first {
        b'0'..=b'9' | b'-' => {
            let found = scan.bare_start(window(ahead, len));
            // At its end, the chunk is followed by zeros, which end a scalar.
            if found < S::STEP && at + len + found < chunk.len() {
                return Some(at + len + found);
            }
        }
        b'n' | b't' | b'f' => {
            let word_len = match window(ahead, len) {
                b"null" | b"true" => 4,
                b"fals" if ahead[len + 4] == b'e' => 5,
                _ => return None,
            };
            return matches!(ahead[len + word_len], b',' | b'}').then_some(at + len + word_len);
        }
        _ => {}
    }
    scan.enter_apart(ValueEnd { chunk, value: at + len, depth_left })
}

/// The end of the chunk from `at` on, followed by zeros.
#[inline(never)]
fn padded(chunk: &[u8], at: usize) -> [u8; AHEAD_BYTES] {
    let rest = chunk.get(at..).unwrap_or_default();
    let mut padded = [0; AHEAD_BYTES];
    padded[..rest.len()].copy_from_slice(rest);
    padded
}

/// The bytes from `from` on, of which there are enough.
#[inline(always)]
fn window<const N: usize>(ahead: &[u8; AHEAD_BYTES], from: usize) -> &[u8; N] {
    const { assert!(N <= AHEAD_BYTES / 2) };
    // Names are shorter than half of what is looked at.
    ahead[from % (AHEAD_BYTES / 2)..].first_chunk().expect("half of the bytes are left")
}

/// A value of any kind and length.
struct ValueEnd<'c> {
    chunk: &'c [u8],
    value: usize,
    depth_left: usize,
}

impl Task for ValueEnd<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<S: Scan>(self, scan: S) -> Option<usize> {
        let first = *self.chunk.get(self.value)?;
        let skip = match first {
            b'"' | b'[' | b'{' | b'-' | b'0'..=b'9' => Skip::of(first),
            _ => return None,
        };
        // The quote of a string is behind, the bracket of a container before.
        match skip.over(scan, self.chunk, self.value + usize::from(first == b'"'), self.depth_left) {
            Skipped::To(end) => Some(end),
            _ => None,
        }
    }
}
