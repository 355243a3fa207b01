//! What an object is expected to be, as one list of steps: its members in the order in which bodies bring them, and in their
//! places the members of the objects within it that the plan walks. As long as a body follows the script, all that is to be
//! known about the place that has been reached is the number of the step; [`super::walk`] makes frames of it where the body
//! leaves the script.

use super::copying::Plain;
use super::names::{NONE, NameId, Names, bit};
use super::program::{Action, Capture, Object, Op, Others, Program, Written};
use super::skip_ahead::{Ahead, window};
use switchback_json::scan::{Care, Scan, WORD_BYTES};

/// Steps of one script: what objects within objects would add to more is not part of it.
const STEPS_MAX: usize = 512;

/// What is expected of all objects of a program, from what bodies have taught.
#[derive(Debug, Clone)]
pub(super) struct LearnedSchema {
    pub names: Vec<Names>,
    pub scripts: Vec<Script>,
}

impl LearnedSchema {
    pub(super) fn new(names: Vec<Names>) -> LearnedSchema {
        let scripts = names.iter().map(|_| Script::default()).collect();
        LearnedSchema { names, scripts }
    }

    /// Brings the scripts in line with the names.
    pub(super) fn rewrite(&mut self, program: &Program) {
        for (object, script) in self.scripts.iter_mut().enumerate() {
            *script = Script::of(program, &self.names, object as u32);
        }
    }
}

/// The steps of an object; the last one is its end.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    pub steps: Vec<Step>,
    /// By name: the step after the member, in the object that the script is of.
    after: Vec<u16>,
    /// The objects that it has steps of, itself first.
    places: Vec<Steps>,
    /// Brackets that are opened within it, at one time.
    pub depth: usize,
    /// Slots of the objects within it, at most.
    pub slots: usize,
}

/// What is done at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The member is copied, and nothing else.
    Copy,
    /// The member is copied, and its value kept.
    Keep,
    Drop,
    /// The value is copied, under another name.
    Rename,
    /// The object begins that is the member's value; it is copied with the name.
    Enter,
    /// The same, under another name.
    EnterRenamed,
    /// The object ends that the last `Enter` began.
    Leave,
    /// The object ends that the script is of.
    End,
    /// The member needs more.
    Machine,
}

impl Kind {
    /// Whether nothing more is to be known of the member than where its value ends.
    #[inline(always)]
    pub(super) fn is_plain(self) -> bool {
        matches!(self, Kind::Copy | Kind::Keep | Kind::Drop | Kind::Rename)
    }

    /// What is written of the member.
    #[inline(always)]
    pub(super) fn plain(self) -> Plain {
        match self {
            Kind::Drop => Plain::Nothing,
            Kind::Rename | Kind::EnterRenamed => Plain::Renamed,
            _ => Plain::Whole,
        }
    }
}

/// One step of a script.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct Step {
    /// The name with its quotes and colon, and the beginning of the object that is entered; padded with zeros.
    text: [u8; WORD_BYTES],
    care: Care,
    /// A bit for each name of the same object that earlier steps have.
    pub seen: u64,
    /// The object that the step is in, or leaves.
    pub object: u32,
    /// The name, or [`NONE`].
    pub id: NameId,
    /// The name before this one in the same object, or [`NONE`].
    pub last: NameId,
    /// The step that entered the object that this one is in; [`NONE`] in the object that the script is of.
    pub outer: u16,
    /// Where the slots of the object begin, counted from those of the object that the script is of.
    pub slots: u16,
    pub kind: Kind,
    /// Objects of the script around this step.
    pub level: u8,
    /// Which of the script's objects it is a step of.
    place: u16,
    /// The next step of the same object.
    next: u16,
    /// The byte after what this step reads: before the name of the next one, or the bracket.
    pub then: u8,
    /// Whether the value is kept for the end of an object.
    pub is_captured: bool,
    /// Where the value is kept, if in one place and for an object of the script; counted as `slots`, or [`NONE`].
    pub slot: u16,
    /// The name that is written for the member.
    pub written: Written,
}

/// What [`Kind::Enter`] expects after the colon.
const OPENING: &[u8] = b"{\"";

impl Step {
    /// Whether `window` begins with this step's text.
    #[inline(always)]
    pub(super) fn begins<S: Scan>(&self, scan: S, window: &[u8; WORD_BYTES]) -> bool {
        scan.is_word(window, &self.text, self.care)
    }

    /// Whether `window` begins with this step's name, quotes and colon included.
    #[inline(always)]
    fn is_named<S: Scan>(&self, scan: S, window: &[u8; WORD_BYTES]) -> bool {
        scan.is_word(window, &self.text, Care::first(self.name_len()))
    }

    /// Bytes of the text, at most [`WORD_BYTES`].
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.care.bytes() % (2 * WORD_BYTES)
    }

    /// Bytes of the name with its quotes and colon.
    #[inline(always)]
    pub(super) fn name_len(&self) -> usize {
        match self.kind {
            Kind::Enter | Kind::EnterRenamed => self.len() - OPENING.len(),
            _ => self.len(),
        }
    }

    fn with_text(self, parts: [&[u8]; 2]) -> Option<Step> {
        let mut text = [0; WORD_BYTES];
        let all = parts.concat();
        text.get_mut(..all.len())?.copy_from_slice(&all);
        Some(Step { text, care: Care::first(all.len()), ..self })
    }
}

/// The steps of one object of a script.
#[derive(Debug, Clone)]
struct Steps {
    /// The numbers of steps, each where the hash of its name says, or in the next room that was free; else [`NONE`].
    by_name: Box<[u16; ROOMS]>,
    /// The number of the step that is the object's end.
    end: u16,
}

/// Twice as many as an object has names.
const ROOMS: usize = 128;

impl Steps {
    fn new() -> Steps {
        Steps { by_name: Box::new([NONE; ROOMS]), end: NONE }
    }

    /// Adds the step of a name, with its quotes and colon.
    fn add(&mut self, name: &[u8], step: u16) {
        let name = &name[1..name.len() - b"\":".len()];
        let mut start = [0; WORD_BYTES];
        start[..name.len()].copy_from_slice(name);
        let mut room = hash(&start, name.len());
        while self.by_name[room % ROOMS] != NONE {
            room += 1;
        }
        self.by_name[room % ROOMS] = step;
    }
}

/// Where to look for the name that `start` begins with, of which it has `len` bytes.
#[inline(always)]
fn hash(start: &[u8; WORD_BYTES], len: usize) -> usize {
    let word = |at: usize| {
        let word: &[u8; 8] = start[at % (WORD_BYTES - 7)..].first_chunk().expect("there are as many");
        u64::from_le_bytes(*word)
    };
    let care = !0 >> (64 - 8 * len.clamp(1, 8));
    let ends = (word(0) & care) ^ (word(len.saturating_sub(8)) & care).rotate_left(29);
    (ends ^ len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 57
}

impl Script {
    /// The step of the name that `ahead` has, in the object that `like` is a step of.
    #[inline(always)]
    pub(super) fn named<S: Scan>(&self, scan: S, ahead: &Ahead, like: &Step) -> Option<usize> {
        let name = window::<0, WORD_BYTES>(ahead, 2);
        let len = scan.text_len(name);
        if ahead[1] != b'"' || len >= S::STEP.min(WORD_BYTES - 2) {
            return None;
        }
        let rooms = &self.places.get(usize::from(like.place))?.by_name;
        let mut room = hash(name, len);
        loop {
            let number = usize::from(rooms[room % ROOMS]);
            let step = self.steps.get(number)?;
            if step.is_named(scan, window::<0, _>(ahead, 1)) {
                return Some(number);
            }
            room += 1;
        }
    }

    /// The step that ends the object that `like` is a step of.
    #[inline(always)]
    pub(super) fn end_of(&self, like: &Step) -> Option<usize> {
        self.places.get(usize::from(like.place)).map(|steps| usize::from(steps.end))
    }

    /// The first step from the one after `number` on, in the same object, whose name is among `seen`; the end of the script, if
    /// there is none.
    #[inline(always)]
    pub(super) fn until_seen(&self, number: usize, seen: u64) -> usize {
        let mut number = number;
        while let Some(step) = self.steps.get(usize::from(self.steps[number].next)) {
            number = usize::from(self.steps[number].next);
            if step.id != NONE && seen & bit(step.id) != 0 {
                return number;
            }
        }
        self.steps.len()
    }

    fn of(program: &Program, names: &[Names], object: u32) -> Script {
        let mut script = Script::default();
        let root = Place { object, outer: NONE, level: 0, slots: 0, place: 0 };
        script.object(program, names, root);
        script
    }

    /// The first step that may match after the member `last` of the object that the script is of.
    #[inline(always)]
    pub(super) fn after(&self, last: NameId) -> Option<usize> {
        if last == NONE { Some(0) } else { self.after.get(usize::from(last)).map(|step| usize::from(*step)) }
    }

    /// Adds the steps of an object and of those within it.
    fn object(&mut self, program: &Program, names: &[Names], place: Place) {
        let (mut seen, mut last) = (0, NONE);
        self.depth = self.depth.max(usize::from(place.level));
        let slots = usize::from(place.slots) + program.objects[place.object as usize].slots;
        self.slots = self.slots.max(slots);
        let object = &program.objects[place.object as usize];
        let place = Place { place: self.places.len() as u16, ..place };
        self.places.push(Steps::new());
        let mut before: Option<usize> = None;
        for (id, text) in names[place.object as usize].expected() {
            if !has_step(object, id) {
                if place.level == 0 {
                    self.goes_on_after(id);
                }
                continue;
            }
            let step = Step { seen, id, last, ..place.step(Kind::Machine) };
            let number = self.steps.len();
            self.member(program, names, step, text);
            if number < self.steps.len() {
                self.places[usize::from(place.place)].add(text, number as u16);
                if let Some(before) = before.replace(number) {
                    self.steps[before].next = number as u16;
                }
            }
            (seen, last) = (seen | bit(id), id);
            if place.level == 0 {
                self.goes_on_after(id);
            }
        }
        if let Some(before) = self.steps.last_mut() {
            before.then = b'}';
        }
        if let Some(before) = before {
            self.steps[before].next = self.steps.len() as u16;
        }
        self.places[usize::from(place.place)].end = self.steps.len() as u16;
        let kind = if place.outer == NONE { Kind::End } else { Kind::Leave };
        self.steps.push(Step { seen, last, ..place.step(kind) });
    }

    /// After the member `id`, the step that is added next may match.
    fn goes_on_after(&mut self, id: NameId) {
        self.after.resize(self.after.len().max(usize::from(id) + 1), u16::MAX);
        self.after[usize::from(id)] = self.steps.len() as u16;
    }

    /// See [`Step::slot`].
    fn slot(&self, step: &Step, captures: &[Capture]) -> Option<u16> {
        let [capture] = captures else { return None };
        let (mut slots, mut outer) = (step.slots, step.outer);
        for _ in 0..capture.up {
            let entered = self.steps.get(usize::from(outer))?;
            (slots, outer) = (entered.slots, entered.outer);
        }
        slots.checked_add(capture.slot)
    }

    /// Adds the step of a member, and the steps of its value, if that is an object to be walked.
    fn member(&mut self, program: &Program, names: &[Names], step: Step, text: &[u8]) {
        let object = &program.objects[step.object as usize];
        let Some(member) = object.members.get(usize::from(step.id)) else {
            let kind = if object.others == Others::Keep { Kind::Copy } else { Kind::Drop };
            self.steps.extend(Step { kind, ..step }.with_text([text, b""]));
            return;
        };
        let is_captured = !member.captures.is_empty();
        let kind = match member.action {
            Action::Drop => Kind::Drop,
            Action::Copy(_) if is_captured => Kind::Keep,
            Action::Copy(_) => Kind::Copy,
            Action::Rename(_) => Kind::Rename,
            Action::Run(..) | Action::Refuse(_) => Kind::Machine,
        };
        let slot = self.slot(&step, &member.captures).unwrap_or(NONE);
        let step = Step { kind, is_captured, slot, written: member.written().clone(), ..step };
        let kind = if member.same_name { Kind::Enter } else { Kind::EnterRenamed };
        let entered = Step { kind, then: b'{', ..step.clone() }.with_text([text, OPENING]);
        match (walked(program, names, &member.action), entered) {
            (Some(inner), Some(entered)) if self.steps.len() < STEPS_MAX && step.level < u8::MAX => {
                let outer = self.steps.len() as u16;
                self.steps.push(entered);
                let slots = step.slots + object.slots as u16;
                let level = step.level + 1;
                self.object(program, names, Place { object: inner, outer, level, slots, place: 0 });
                if let Some(leave) = self.steps.last_mut() {
                    leave.is_captured = is_captured;
                }
            }
            _ => self.steps.extend(step.with_text([text, b""])),
        }
    }
}

/// Whether a member can be a step: not if the plan does not name it and yet looks at its value.
fn has_step(object: &Object, id: NameId) -> bool {
    usize::from(id) < object.members.len() || object.others.are_passed_over()
}

/// The object that is the value of a member, if its steps can be part of the script: something is known about its names, and
/// what is written at its end does not depend on what it had.
fn walked(program: &Program, names: &[Names], action: &Action) -> Option<u32> {
    let Action::Run(_, op) = action else { return None };
    let Op::Object(object) = program.ops[*op as usize] else { return None };
    let plan = &program.objects[object as usize];
    let is_known = names[object as usize].expected().any(|(id, _)| has_step(plan, id));
    (is_known && plan.closing.is_some() && plan.words.all() == 0).then_some(object)
}

/// Where an object lies in a script; see the fields of [`Step`].
#[derive(Clone, Copy)]
struct Place {
    object: u32,
    outer: u16,
    level: u8,
    slots: u16,
    /// See [`Step::place`].
    place: u16,
}

impl Place {
    /// A step without a name.
    fn step(self, kind: Kind) -> Step {
        Step {
            text: [0; WORD_BYTES],
            care: Care::first(0),
            seen: 0,
            object: self.object,
            id: NONE,
            last: NONE,
            outer: self.outer,
            slots: self.slots,
            kind,
            level: self.level,
            place: self.place,
            next: NONE,
            then: b',',
            is_captured: false,
            slot: NONE,
            written: Written::NOTHING,
        }
    }
}
