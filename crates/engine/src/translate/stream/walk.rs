//! The short cut through the machine, for what most of a body is: members that are named as expected and
//! whose values end within the chunk, objects within them that the plan walks, and elements of a list of
//! such objects. Whatever is unusual is left to the machine, at a place and in a state in which the
//! machine could have come by itself.
//!
//! All of it is compiled once for each way of scanning and entered once for as long as nothing unusual
//! comes: [`Follow`] is the loop over the steps of a script, [`Walker`] goes from one script to the next
//! and makes frames of the place that was reached. In the loop there is nothing but that place and what is
//! being copied, so that both stay in registers.

use super::close::Slot;
use super::copying::{At, Copying, Output, Plain};
use super::fault::Fault;
use super::machine::{Frame, FrameKind, Machine, Run, State, slot_index};
use super::names::{NONE, NameId, bit};
use super::output::NO_SPAN;
use super::program::{Action, Capture, Object, Op, OpId, Program};
use super::script::{Kind, LearnedSchema, Script, Step};
use super::skip_ahead::{Ahead, NO_END, padded, value_end, window};
use std::ops::Range;
use std::sync::Arc;
use switchback_json::scan::{Scan, Task, WORD_BYTES, Windows};

/// Objects around a step within which members may be missing without the script being left.
const LEVELS: usize = 8;

/// By level: the names that steps have been passed over for because they did not come.
type Missing = [u64; LEVELS];

/// Why a script is no longer followed.
#[derive(Debug, Clone, Copy)]
enum Pause {
    /// At the quote of a name that is not the expected one, or has another difficulty.
    Name(usize),
    /// At the value of a member that is neither dropped nor copied; its name begins at `name`.
    Value { name: usize, value: usize },
    /// After a member, or an object within, that is not followed by what was expected.
    Member(usize),
    /// At the bracket that ends the object.
    Ends(usize),
}

/// Where to go on.
#[derive(Debug, Clone, Copy)]
enum Go {
    /// With the members of the innermost object; the quote of a name stands here.
    Members(usize),
    /// With the end of the innermost object; its bracket stands here.
    Ends(usize),
    /// After a value within the innermost object or list.
    After(usize),
    /// In the machine, whose state says with what.
    Machine(usize),
}

impl<S: Scan> Run<'_, S> {
    /// Reads members from the quote of a name at `at` on; the place where the machine goes on.
    pub(super) fn members(&mut self, at: usize) -> Result<usize, Fault> {
        // Names that can be expected keep within every sensible bound on names.
        if self.machine.bounds.json.key_bytes < WORD_BYTES {
            self.machine.state = State::InKey(false);
            return Ok(at + 1);
        }
        self.machine.rewrite(self.program);
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
        let top = *run.top();
        let copying = Copying::resume(run.chunk, &mut run.span, run.out, at, top.wrote);
        let learned = Arc::clone(&run.machine.learned);
        let here = Here::of(&top);
        let mut walker = Walker { run, learned: &learned, copying, here, missing: [0; LEVELS] };
        let mut go = Go::Members(at);
        loop {
            go = match go {
                Go::Members(at) => walker.members(scan, at),
                Go::Ends(at) => walker.object_ends(at)?,
                Go::After(at) => walker.after_value(at),
                Go::Machine(at) => return Ok(at),
            };
        }
    }
}

/// A script that is followed from a step on.
struct Follow<'f> {
    machine: &'f mut Machine,
    program: &'f Program,
    chunk: &'f [u8],
    out: &'f mut Vec<u8>,
    script: &'f Script,
    missing: &'f mut Missing,
}

/// How far a script was followed.
#[derive(Clone, Copy)]
struct Followed {
    /// The step that could not be done.
    number: usize,
    /// Whether the object that this step is in has had a member written.
    wrote: bool,
    pause: Pause,
}

impl Follow<'_> {
    /// Follows the script from the step `start` on, whose text begins at `at`. `wrote` tells whether the object has had a member
    /// written.
    #[inline(always)]
    fn steps<S: Scan>(
        self,
        scan: S,
        copying: &mut Copying,
        start: Start,
        wrote: bool,
        at: usize,
    ) -> Followed {
        let Follow { machine, program, chunk, out, script, missing } = self;
        let steps = &script.steps[..start.limit];
        missing[0] = 0;
        let windows = Windows::of(chunk);
        let depth_left = machine.bounds.json.depth - machine.depth;
        let first_slot = machine.frames.last().map_or(0, |root| root.slots);
        let mut output = Output { chunk, out };
        let (mut at, mut wrote) = (at, wrote);
        let mut end_of_chunk: Ahead;
        let mut ahead = match windows.at(at.wrapping_sub(1)) {
            Some(ahead) => ahead,
            None => {
                end_of_chunk = padded(chunk, at);
                &end_of_chunk
            }
        };
        let mut left = steps[start.number..].iter();
        let (undone, pause) = loop {
            let Some(step) = left.next() else { break (0, no_name(ahead, at)) };
            if !step.begins(scan, window::<0, _>(ahead, 1)) {
                // Members between may be missing; one that belongs before them is not for here.
                let next = steps.len() - left.len();
                let named = script.named(scan, ahead, step).filter(|named| *named >= next);
                let rest = named.and_then(|named| steps.get(named..)).unwrap_or_default();
                let found = rest.first().filter(|found| found.begins(scan, window::<0, _>(ahead, 1)));
                let (Some(found), Some(missing)) = (found, missing.get_mut(level(step))) else {
                    break (1, no_name(ahead, at));
                };
                *missing |= found.seen & !step.seen;
                left = rest.iter();
                continue;
            }
            if step.kind.is_plain() {
                let value = at + step.len();
                let depth_left = || depth_left - usize::from(step.level);
                let grammar = &mut machine.grammar;
                let end = value_end(scan, chunk, ahead, step.len(), value, depth_left, grammar);
                if end == NO_END {
                    break (1, Pause::Name(at));
                }
                if copying.is_idle(step.kind) {
                    wrote = true;
                } else {
                    let at = At { name: at, value, comma: ahead[0] == b',' };
                    copying.edit(&mut output, &mut wrote, step.kind.plain(), at, &step.written);
                    if step.slot != NONE {
                        machine.slots[first_slot + usize::from(step.slot)].keep(value..end);
                    } else if step.is_captured {
                        Slots { machine, program, script, step }.keep(value..end);
                    }
                }
                at = end + 1;
            } else {
                match step.kind {
                    Kind::Enter | Kind::EnterRenamed => {
                        let value = at + step.name_len();
                        let comma = ahead[0] == b',';
                        let place = At { name: at, value, comma };
                        copying.edit(&mut output, &mut wrote, step.kind.plain(), place, &step.written);
                        if step.is_captured {
                            Slots { machine, program, script, step }.open(value);
                        }
                        if let Some(missing) = missing.get_mut(level(step) + 1) {
                            *missing = 0;
                        }
                        wrote = false;
                        at = value + 1;
                    }
                    Kind::Leave => {
                        copying.close(&mut output, &program.objects[step.object as usize], wrote, at - 1);
                        if step.is_captured {
                            let step = &script.steps[usize::from(step.outer)];
                            Slots { machine, program, script, step }.end(at, chunk);
                        }
                        clear_slots(machine, program, step);
                        wrote = true;
                        at += 1;
                    }
                    Kind::End => break (1, Pause::Ends(at - 1)),
                    _ => break (1, Pause::Value { name: at, value: at + step.len() }),
                }
            }
            ahead = match windows.at(at - 1) {
                Some(ahead) => ahead,
                None => {
                    end_of_chunk = padded(chunk, at);
                    &end_of_chunk
                }
            };
            if ahead[0] != step.then {
                // The last members of an object within may be missing.
                let next = left.as_slice().first().filter(|next| ahead[0] == b'}' && next.level > 0);
                let ends = next.and_then(|next| {
                    let rest = steps.get(script.end_of(next)?..)?;
                    let missing = missing.get_mut(level(next))?;
                    *missing |= rest.first()?.seen & !next.seen;
                    Some(rest)
                });
                let Some(rest) = ends else { break (0, Pause::Member(at - 1)) };
                left = rest.iter();
            }
        };
        Followed { number: steps.len() - left.len() - undone, wrote, pause }
    }
}

#[inline(always)]
fn level(step: &Step) -> usize {
    usize::from(step.level)
}

/// What stands at `at` is not the name that is expected, or no name.
#[inline(always)]
fn no_name(ahead: &Ahead, at: usize) -> Pause {
    if ahead[1] == b'"' { Pause::Name(at) } else { Pause::Member(at - 1) }
}

/// The slots in which the value of a step's member is kept.
struct Slots<'s> {
    machine: &'s mut Machine,
    program: &'s Program,
    script: &'s Script,
    step: &'s Step,
}

impl Slots<'_> {
    #[inline(never)]
    fn keep(self, value: Range<usize>) {
        self.each(|slot| slot.keep(value.clone()));
    }

    #[inline(never)]
    fn open(self, at: usize) {
        self.each(|slot| slot.open(at));
    }

    #[inline(never)]
    fn end(self, at: usize, chunk: &[u8]) {
        self.each(|slot| slot.end(at, chunk));
    }

    #[inline(always)]
    fn each(self, mut work: impl FnMut(&mut Slot)) {
        let Slots { machine, program, script, step } = self;
        let (root, outer) = machine.frames.split_last().expect("a script is that of an open object");
        for capture in program.member(step.object, step.id).map_or(&[][..], |member| &member.captures) {
            let (mut step, mut up) = (step, capture.up);
            while up > 0 && step.outer != NONE {
                step = &script.steps[usize::from(step.outer)];
                up -= 1;
            }
            let at = match up {
                0 => root.slots + usize::from(step.slots) + usize::from(capture.slot),
                _ => slot_index(root, outer, &Capture { up, ..*capture }),
            };
            work(&mut machine.slots[at]);
        }
    }
}

/// Forgets what the object that `step` leaves has kept.
#[inline(always)]
fn clear_slots(machine: &mut Machine, program: &Program, step: &Step) {
    let slots = program.objects[step.object as usize].slots;
    if slots > 0 {
        let first = machine.frames.last().map_or(0, |root| root.slots) + usize::from(step.slots);
        machine.slots[first..][..slots].iter_mut().for_each(Slot::clear);
    }
}

/// The innermost object that has a frame, as far as it changes from member to member.
#[derive(Debug, Clone, Copy)]
struct Here {
    /// Its index in the program.
    object: u32,
    /// See the fields of [`Frame`].
    last: NameId,
    seen: u64,
    wrote: bool,
}

impl Here {
    #[inline(always)]
    fn of(frame: &Frame) -> Here {
        Here { object: frame.id, last: frame.last, seen: frame.seen, wrote: frame.wrote }
    }

    #[inline(always)]
    fn first(object: u32) -> Here {
        Here { object, last: NONE, seen: 0, wrote: false }
    }

    #[inline(always)]
    fn keep_in(self, frame: &mut Frame) {
        (frame.last, frame.seen, frame.wrote) = (self.last, self.seen, self.wrote);
    }
}

/// What goes from one object to the next.
struct Walker<'w, 'a, S> {
    run: &'w mut Run<'a, S>,
    learned: &'w LearnedSchema,
    copying: Copying,
    here: Here,
    missing: Missing,
}

/// Where to go on in a script.
#[derive(Debug, Clone, Copy)]
struct Start {
    number: usize,
    /// The step before which to stop: the first one whose name the object has had already.
    limit: usize,
}

/// The member that a name stands for.
#[derive(Debug, Clone, Copy)]
enum Found {
    /// Its step begins there.
    Step(Start),
    /// Its value is another one than the step expects.
    Other { id: NameId, name_len: usize },
}

impl<S: Scan> Walker<'_, '_, S> {
    /// Members from the quote of a name at `at` on, as far as a script goes.
    #[inline(always)]
    fn members<Entered: Scan>(&mut self, scan: Entered, at: usize) -> Go {
        let learned = self.learned;
        let script = &learned.scripts[self.here.object as usize];
        let start = match self.start(scan, script, at) {
            Some(Found::Step(start)) => start,
            Some(Found::Other { id, name_len }) => return self.descend(at, at + name_len, id),
            None => return self.unexpected(at),
        };
        let Run { machine, program, chunk, out, .. } = &mut *self.run;
        machine.spare_slots(script.slots);
        let follow = Follow { machine, program, chunk, out, script, missing: &mut self.missing };
        let followed = follow.steps(scan, &mut self.copying, start, self.here.wrote, at);
        let start = start.number;
        self.reached(script, start, followed.number, followed.wrote);
        match followed.pause {
            Pause::Name(at) if followed.number > start => Go::Members(at),
            Pause::Name(at) => self.unexpected(at),
            Pause::Value { name, value } => self.descend(name, value, script.steps[followed.number].id),
            Pause::Member(end) => self.after_member(end),
            Pause::Ends(at) => Go::Ends(at),
        }
    }

    /// The step of the member whose name is at `at`, if there is one and the object has not had it.
    #[inline(always)]
    fn start<Entered: Scan>(&self, scan: Entered, script: &Script, at: usize) -> Option<Found> {
        let machine = &*self.run.machine;
        if machine.bounds.json.depth - machine.depth < script.depth {
            return None;
        }
        let all = script.steps.last()?.seen;
        let end_of_chunk: Ahead;
        let ahead = match Windows::of(self.run.chunk).at(at.wrapping_sub(1)) {
            Some(ahead) => ahead,
            None => {
                end_of_chunk = padded(self.run.chunk, at);
                &end_of_chunk
            }
        };
        let begins = |step: &Step| step.begins(scan, window::<0, _>(ahead, 1));
        let expected = script.after(self.here.last).filter(|number| {
            script.steps.get(*number).is_some_and(|step| step.kind != Kind::End && begins(step))
        });
        let number = match expected {
            Some(number) => number,
            None => script.named(scan, ahead, script.steps.first()?)?,
        };
        let step = &script.steps[number];
        if self.here.seen & bit(step.id) != 0 {
            return None;
        }
        if !begins(step) {
            let is_planned = self.run.program.member(self.here.object, step.id).is_some();
            return is_planned.then_some(Found::Other { id: step.id, name_len: step.name_len() });
        }
        // Where all that came before stands before it in the script, too, nothing of the rest can have come.
        let is_in_order = self.here.seen & all & !step.seen == 0;
        let limit = if is_in_order { script.steps.len() } else { script.until_seen(number, self.here.seen) };
        Some(Found::Step(Start { number, limit }))
    }

    /// Makes frames of the place before the step `number` that has been reached from the step `start` on.
    #[inline(always)]
    fn reached(&mut self, script: &Script, start: usize, number: usize, wrote: bool) {
        let step = &script.steps[number];
        if step.level > 0 {
            self.open_frames(script, start, number, wrote);
        } else if number > start {
            let seen = self.here.seen | step.seen & !script.steps[start].seen & !self.missing[0];
            self.here = Here { last: step.last, seen, wrote, ..self.here };
            self.run.top_mut().member = step.last;
        }
    }

    /// The same, where the place lies in objects that the script has entered.
    #[inline(never)]
    fn open_frames(&mut self, script: &Script, start: usize, number: usize, wrote: bool) {
        let step = &script.steps[number];
        let outer = usize::from(step.outer);
        let entered = &script.steps[outer];
        self.reached(script, start, outer, true);
        let (seen, last) = (self.here.seen | bit(entered.id), entered.id);
        self.here = Here { seen, last, wrote: true, ..self.here };
        self.here.keep_in(self.run.top_mut());
        self.run.top_mut().member = last;
        self.run.machine.depth += 1;
        self.run.push_object(step.object);
        self.run.top_mut().member = step.last;
        let seen = step.seen & !self.missing.get(level(step)).unwrap_or(&0);
        self.here = Here { object: step.object, last: step.last, seen, wrote };
    }

    /// Leaves the innermost object to the machine, which goes on at `at` in `state`; `span` is what is copied before.
    #[inline(always)]
    fn leave(&mut self, span: Range<usize>, state: State, at: usize) -> Go {
        self.here.keep_in(self.run.top_mut());
        self.run.span = span;
        self.run.machine.state = state;
        Go::Machine(at)
    }

    /// The name whose quote is at `at` must be read.
    #[inline(always)]
    fn unexpected(&mut self, at: usize) -> Go {
        let span = self.copying.before_name(at, self.is_after_comma(at));
        self.leave(span, State::InKey(false), at + 1)
    }

    /// A member has ended before `end`, and no other follows at once that is expected.
    #[inline(always)]
    fn after_member(&mut self, end: usize) -> Go {
        if self.has(end, b"}") {
            return Go::Ends(end);
        }
        if self.has(end, b",\"") {
            return Go::Members(end + 1);
        }
        let span = self.copying.until(end);
        self.leave(span, State::AfterMember, end)
    }

    /// Goes into the value of the member `id`, or leaves it to the machine.
    #[inline(always)]
    fn descend(&mut self, name: usize, value: usize, id: NameId) -> Go {
        let (program, comma) = (self.run.program, self.is_after_comma(name));
        self.here.seen |= bit(id);
        self.here.last = id;
        self.run.top_mut().member = id;
        let member = program.member(self.here.object, id);
        let Some((member, opens)) =
            member.and_then(|member| Some((member, self.opens(&member.action, value)?)))
        else {
            let span = self.copying.before_name(name, comma);
            return self.leave(span, State::MemberValue, value);
        };
        for capture in &member.captures {
            self.run.machine.slot(capture).open(value);
        }
        let plain = if member.same_name { Plain::Whole } else { Plain::Renamed };
        let mut output = Output { chunk: self.run.chunk, out: self.run.out };
        let place = At { name, value, comma };
        self.copying.edit(&mut output, &mut self.here.wrote, plain, place, member.written());
        self.here.keep_in(self.run.top_mut());
        if let Some(inner) = opens.list {
            self.run.machine.depth += 1;
            self.run.push(FrameKind::Array, inner);
            self.run.top_mut().wrote = true;
        }
        self.run.machine.depth += 1;
        self.run.push_object(opens.object);
        self.here = Here::first(opens.object);
        Go::Members(value + 1 + usize::from(opens.list.is_some()))
    }

    /// What the value at `at` opens for a member, if that is all that needs to be looked at.
    #[inline(always)]
    fn opens(&self, action: &Action, at: usize) -> Option<Opens> {
        let Action::Run(_, op) = action else { return None };
        let (ops, machine) = (&self.run.program.ops, &*self.run.machine);
        let depth_left = machine.bounds.json.depth - machine.depth;
        match ops[*op as usize] {
            Op::Object(object) if depth_left >= 1 && self.has(at, b"{\"") => {
                Some(Opens { list: None, object })
            }
            Op::Array(inner) => match ops[inner as usize] {
                Op::Object(object) if depth_left >= 2 && self.has(at, b"[{\"") => {
                    Some(Opens { list: Some(inner), object })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The innermost object ends with the bracket at `at`.
    #[inline(always)]
    fn object_ends(&mut self, at: usize) -> Result<Go, Fault> {
        let object = &self.run.program.objects[self.here.object as usize];
        let mut output = Output { chunk: self.run.chunk, out: self.run.out };
        if object.closing.is_some() {
            self.copying.close(&mut output, object, self.here.wrote, at);
        } else {
            self.copying.stop(&mut output, at);
            self.run.span = NO_SPAN;
            self.here.keep_in(self.run.top_mut());
            let top = *self.run.top();
            self.run.close_object(&top, object, at)?;
        }
        if self.next_element(object, at + 1) {
            return Ok(Go::Members(at + 3));
        }
        let top = *self.run.top();
        self.run.leave_object(&top);
        Ok(Go::After(at + 1))
    }

    /// Begins the next element of a list of objects, if one follows at `at`; its frame, the bits and the
    /// slots are those of the element before.
    #[inline(always)]
    fn next_element(&mut self, object: &Object, at: usize) -> bool {
        let chunk = self.run.chunk;
        let machine = &mut *self.run.machine;
        let [.., outer, top] = &mut machine.frames[..] else { return false };
        if outer.kind != FrameKind::Array || top.strangers || !has(chunk, at, b",{\"") {
            return false;
        }
        // Few objects have such bits, and clearing none of them is a costly call to some libraries.
        if object.words.all() > 0 {
            machine.bits[top.bits..][..object.words.all()].fill(0);
        }
        for slot in &mut machine.slots[top.slots..machine.slots_used] {
            slot.clear();
        }
        (top.member, top.withdrawn) = (NONE, 0);
        self.here = Here::first(self.here.object);
        self.copying.start(at);
        true
    }

    /// A value has ended before `at`, where the innermost frame goes on.
    #[inline(always)]
    fn after_value(&mut self, at: usize) -> Go {
        let (program, chunk) = (self.run.program, self.run.chunk);
        match self.run.machine.frames.last().copied() {
            Some(top) if top.kind == FrameKind::Object => {
                self.here = Here::of(&top);
                for capture in program.member(top.id, top.member).map_or(&[][..], |member| &member.captures) {
                    self.run.machine.slot(capture).end(at, chunk);
                }
                self.after_member(at)
            }
            Some(top) if top.kind == FrameKind::Array && self.has(at, b"]") => {
                self.copying.start(at);
                self.run.pop();
                Go::After(at + 1)
            }
            _ => {
                self.run.span = self.copying.until(at);
                self.run.value_done(at);
                Go::Machine(at)
            }
        }
    }

    #[inline(always)]
    fn is_after_comma(&self, at: usize) -> bool {
        at > 0 && self.run.chunk.get(at - 1) == Some(&b',')
    }

    #[inline(always)]
    fn has(&self, at: usize, text: &[u8]) -> bool {
        has(self.run.chunk, at, text)
    }
}

#[inline(always)]
fn has(chunk: &[u8], at: usize, text: &[u8]) -> bool {
    chunk.get(at..).is_some_and(|rest| rest.starts_with(text))
}

/// What begins with one or two brackets and goes on with a name.
#[derive(Debug, Clone, Copy)]
struct Opens {
    /// Of a list of objects: the op of each.
    list: Option<OpId>,
    object: u32,
}
