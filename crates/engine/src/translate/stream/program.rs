//! The form of a [`ValueOp`] that a stream executes: ops in one table, names and texts ready to be
//! compared and written, and slots for captured values that the walk of their object finds anyway.
//! A program is compiled once per plan and shared by all bodies.

use super::frame::OpId;
use super::learned::Learned;
use super::names::Names;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use switchback_json::scan::append_start;
use switchback_plan::{
    Absent, AttemptOp, BodyPlan, ChooseOp, CloseFrom, Emit, Key, Kinds, MemberAction, ObjectOp, Raw,
    ReasonId, Root, ValueOp, convert::Conversion,
};

/// Maximum bodies that change the learned layout. It stays constant afterwards.
const LAYOUT_CHANGES_MAX: u32 = 256;

/// A compiled [`ValueOp`].
#[derive(Debug)]
pub struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) objects: Vec<Object>,
    pub(super) root: OpId,
    /// The accepted kinds of the root.
    pub(super) whole: Root,
    identity: bool,
    /// The layout learned from previous bodies.
    learned: ArcSwap<Learned>,
    layout_changes: AtomicU32,
}

/// An op as the machine runs it. `Held` buffers its value, because the machine must read it
/// completely to know whether it writes one.
#[derive(Debug)]
pub(super) enum Op {
    Keep,
    Object(u32),
    /// An object that may be nested in an object of the same plan.
    Again(u32),
    Array(OpId),
    Wrap(OpId),
    Unwrap(OpId),
    Constant(Raw),
    Held(Held),
}

/// An op on a buffered value.
#[derive(Debug)]
pub(super) enum Held {
    Convert(Conversion),
    Choose(Arc<ChooseOp>),
    Attempt(Arc<AttemptOp>),
    Wrap(Box<Held>),
    Unwrap(Box<Held>),
}

impl Held {
    /// Returns whether the buffered value is an object of a choice or an attempt, which have a larger bound.
    pub(super) fn is_object(&self) -> bool {
        match self {
            Held::Choose(_) | Held::Attempt(_) => true,
            Held::Wrap(inner) | Held::Unwrap(inner) => inner.is_object(),
            Held::Convert(_) => false,
        }
    }
}

/// A compiled [`ObjectOp`].
#[derive(Debug)]
pub(super) struct Object {
    pub plan: Arc<ObjectOp>,
    /// In the order of [`ObjectOp::members`].
    pub members: Vec<Member>,
    pub others: Others,
    pub close: Vec<Close>,
    /// The output of `close` and the bracket, if it is constant. It starts with a comma unless it is only the
    /// bracket.
    pub closing: Option<Box<[u8]>>,
    /// The output of `close`, if it has only constants and unchanged captured values.
    pub endings: Option<Box<[Ending]>>,
    /// Number of slots, including those for places inside captured members.
    pub slots: usize,
    pub words: Words,
}

/// The action for members that the plan does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    Drop,
    Keep,
    /// Runs the op on each value.
    Run(OpId),
    Refuse(ReasonId),
}

impl Others {
    /// Returns whether their names are written.
    pub(super) fn are_written(self) -> bool {
        matches!(self, Others::Keep | Others::Run(_))
    }
}

/// Words for the bits of an object that exceed those in its frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words {
    /// One bit per name.
    pub seen: usize,
    /// One bit per member.
    pub withdrawn: usize,
}

impl Words {
    fn of(members: usize) -> Words {
        let words = members.saturating_sub(64).div_ceil(64);
        Words { seen: words, withdrawn: words }
    }

    pub(super) fn all(self) -> usize {
        self.seen + self.withdrawn
    }
}

/// The plan of one member.
#[derive(Debug)]
pub(super) struct Member {
    pub action: Action,
    /// Slots that store the source text, in this object or an outer one.
    pub captures: Vec<Capture>,
}

impl Object {
    /// A placeholder while the object is compiled, because objects within it may refer to it.
    fn unfinished(plan: &Arc<ObjectOp>) -> Object {
        let words = Words::of(plan.members.len());
        let (members, close) = (Vec::new(), Vec::new());
        Object {
            plan: plan.clone(),
            members,
            others: Others::Drop,
            close,
            closing: None,
            endings: None,
            slots: 0,
            words,
        }
    }
}

/// A slot of the object `up` levels of objects above; 0 is the object of the member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Capture {
    pub up: u8,
    pub slot: u16,
}

#[derive(Debug)]
pub(super) enum Action {
    Drop,
    /// Copied under the same name.
    Copy(Prefix),
    /// Copied under another name.
    Rename(Prefix),
    Run(Prefix, OpId),
    Refuse(ReasonId),
}

/// `"name":`, written before the value of a member.
#[derive(Debug)]
pub(super) struct Prefix {
    written: Written,
}

/// A text that is written often. A short one is padded, so that a copy of fixed length writes it.
#[derive(Debug, Clone)]
pub(super) struct Written {
    /// The padded text, if it fits.
    padded: [u8; PREFIX_WIDTH],
    /// 0 if the text does not fit.
    len: u8,
    long: Option<Arc<[u8]>>,
}

const PREFIX_WIDTH: usize = 32;

impl Written {
    /// The empty text.
    pub(super) const NOTHING: Written = Written { padded: [0; PREFIX_WIDTH], len: 0, long: None };

    fn new(text: &Arc<[u8]>) -> Written {
        let mut padded = [0; PREFIX_WIDTH];
        match padded.get_mut(..text.len()) {
            Some(start) => {
                start.copy_from_slice(text);
                Written { padded, len: text.len() as u8, long: None }
            }
            None => Written { long: Some(Arc::clone(text)), ..Written::NOTHING },
        }
    }

    #[inline(always)]
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        append_start(out, &self.padded, usize::from(self.len));
        if let Some(long) = &self.long {
            out.extend_from_slice(long);
        }
    }
}

impl Prefix {
    fn new(key: &Key) -> Prefix {
        let text: Arc<[u8]> = [&key.json[..], b":"].concat().into();
        Prefix { written: Written::new(&text) }
    }

    /// Appends the name, after a comma unless `first`.
    #[inline(always)]
    pub(super) fn write(&self, first: bool, out: &mut Vec<u8>) {
        if !first {
            out.push(b',');
        }
        self.written.write(out);
    }
}

/// Like [`switchback_plan::Close`].
#[derive(Debug)]
pub(super) struct Close {
    pub prefix: Prefix,
    pub needed: bool,
    pub null: bool,
    pub from: From,
}

/// A [`Close`] of a simple kind.
#[derive(Debug)]
pub(super) enum Ending {
    /// Includes the comma and the name.
    Constant(Written),
    /// The value of the slot after `prefix`, which includes the comma and the name; `absent` if the
    /// slot is empty.
    Captured { prefix: Written, slot: u16, absent: Written },
}

#[derive(Debug)]
pub(super) enum From {
    Constant(Raw),
    Default { unless_written: u16, value: Raw },
    Captured { alternatives: Vec<Alternative>, absent: Option<Raw> },
    Object(Vec<Close>),
    Supplied(u16),
    Setting(u16),
}

/// A captured value that may be absent.
#[derive(Debug)]
pub(super) struct Alternative {
    pub slot: u16,
    /// Names to look up in the captured text.
    pub path: Vec<Key>,
    pub only: Option<Kinds>,
    pub op: Inner,
    /// Whether the captured text is copied unchanged.
    pub is_whole: bool,
}

/// The op on captured text.
#[derive(Debug)]
pub(super) enum Inner {
    Copy,
    Run(Arc<Program>),
    /// An op that leads back to the op around it. Its program would be infinite, so the reference
    /// executes it.
    Walk(ValueOp),
}

impl Program {
    /// Compiles an op. The cost is proportional to the size of the op.
    pub fn compile(op: &ValueOp) -> Program {
        let identity = matches!(op, ValueOp::Keep);
        let mut compiler = Compiler::default();
        // Bodies that pass unchanged are only checked: the machine writes an empty constant for them.
        let root = match identity {
            true => compiler.add(Op::Constant(Raw::from([]))),
            false => compiler.op(op, &[]),
        };
        let names = compiler.objects.iter().map(|object| Names::new(object.plan.members.len()));
        let learned = Learned::new(names.collect());
        Program {
            ops: compiler.ops,
            objects: compiler.objects,
            root,
            whole: Root::ANY,
            identity,
            learned: ArcSwap::from_pointee(learned),
            layout_changes: AtomicU32::new(0),
        }
    }

    /// Compiles a plan, including its checks of the root.
    pub fn of(plan: &BodyPlan) -> Program {
        Program { whole: plan.root, ..Program::compile(&plan.op) }
    }

    /// Returns whether the plan changes no body.
    pub fn is_identity(&self) -> bool {
        self.identity
    }

    pub(super) fn learned(&self) -> Arc<Learned> {
        self.learned.load_full()
    }

    pub(super) fn may_learn(&self) -> bool {
        self.layout_changes.load(Ordering::Relaxed) < LAYOUT_CHANGES_MAX
    }

    /// Replaces the learned layout by the one of a finished body.
    pub(super) fn learn(&self, learned: Arc<Learned>) {
        // Concurrent bodies replace each other's layouts. A lost one is learned again by the next
        // body, so no lock is needed.
        if self.layout_changes.fetch_add(1, Ordering::Relaxed) < LAYOUT_CHANGES_MAX {
            self.learned.store(learned);
        } else {
            // Keeps the counter from wrapping around, which would permit learning again.
            self.layout_changes.store(LAYOUT_CHANGES_MAX, Ordering::Relaxed);
        }
    }
}

/// Captured places below the current member: the names that lead there, and the slot.
type Wanted<'p> = (&'p [Key], Capture);

#[derive(Default)]
struct Compiler {
    ops: Vec<Op>,
    objects: Vec<Object>,
    /// The objects without captures for an outer object, by plan.
    plain: HashMap<*const ObjectOp, u32>,
}

impl Compiler {
    fn add(&mut self, op: Op) -> OpId {
        self.ops.push(op);
        // A plan has as many ops as its mapping has lines.
        OpId::try_from(self.ops.len() - 1).expect("fewer than 2^32 ops")
    }

    /// Only objects fill `wanted`: any other value has no members, so the slot stays empty.
    fn op(&mut self, op: &ValueOp, wanted: &[Wanted<'_>]) -> OpId {
        if let Some(held) = held(op) {
            return self.add(Op::Held(held));
        }
        let compiled = match op {
            ValueOp::Object(plan) => Op::Object(self.object(plan, wanted)),
            ValueOp::Array(inner) => Op::Array(self.op(inner, &[])),
            ValueOp::Wrap(inner) => Op::Wrap(self.op(inner, wanted)),
            ValueOp::Unwrap(inner) => Op::Unwrap(self.op(inner, &[])),
            ValueOp::Constant(text) => Op::Constant(text.clone()),
            ValueOp::Again(again) => match again.op() {
                ValueOp::Object(plan) => {
                    let known = self.plain.get(&Arc::as_ptr(&plan)).copied();
                    Op::Again(known.unwrap_or_else(|| self.object(&plan, &[])))
                }
                op => return self.op(&op, &[]),
            },
            ValueOp::Keep | ValueOp::Convert(_) | ValueOp::Choose(_) | ValueOp::Attempt(_) => Op::Keep,
        };
        self.add(compiled)
    }

    fn object(&mut self, plan: &Arc<ObjectOp>, wanted: &[Wanted<'_>]) -> u32 {
        let at = u32::try_from(self.objects.len()).expect("fewer than 2^32 objects");
        // Reserves the index first: the members are compiled next and may refer back to this
        // object.
        self.objects.push(Object::unfinished(plan));
        // An object with captures for an outer one depends on where it is used, so it cannot be
        // shared.
        if wanted.is_empty() {
            self.plain.insert(Arc::as_ptr(plan), at);
        }
        let mut slots = usize::from(plan.captures);
        let mut inner_wanted = Vec::new();
        let close = plan.close.iter().map(|close| self.close(close, plan, &mut slots, &mut inner_wanted));
        let close: Vec<Close> = close.collect();
        let members = plan.members.iter().enumerate().map(|(at, member)| {
            let mut captures: Vec<Capture> =
                member.capture.iter().map(|slot| Capture { up: 0, slot: *slot }).collect();
            let mut below = Vec::new();
            let own = inner_wanted.iter().filter(|(member, ..)| *member == at);
            let all = own.map(|(_, path, slot)| (*path, Capture { up: 0, slot: *slot }));
            let outer =
                wanted.iter().filter(|(path, _)| path[0] == member.name).map(|(path, c)| (&path[1..], *c));
            for (path, capture) in all.chain(outer) {
                match path {
                    [] => captures.push(capture),
                    _ => below.push((path, Capture { up: capture.up + 1, ..capture })),
                }
            }
            // A slot that no close item reads is not captured.
            captures.retain(|capture| capture.up > 0 || reads(&close, capture.slot));
            Member { action: self.action(member, &below), captures }
        });
        let members: Vec<Member> = members.collect();
        let others = match &plan.others {
            switchback_plan::Others::Drop => Others::Drop,
            switchback_plan::Others::Keep => Others::Keep,
            switchback_plan::Others::Each(op) => Others::Run(self.op(op, &[])),
            switchback_plan::Others::Refuse(reason) => Others::Refuse(*reason),
        };
        let object = Object {
            members,
            others,
            closing: constant_closing(&close),
            endings: close.iter().map(ending).collect(),
            close,
            slots,
            words: Words::of(plan.members.len()),
            plan: plan.clone(),
        };
        self.objects[at as usize] = object;
        at
    }

    fn action(&mut self, member: &switchback_plan::Member, below: &[Wanted<'_>]) -> Action {
        match &member.action {
            MemberAction::Drop | MemberAction::Shadowed => Action::Drop,
            MemberAction::Refuse(reason) => Action::Refuse(*reason),
            MemberAction::Emit(Emit { name, op: ValueOp::Keep }) if *name == member.name => {
                Action::Copy(Prefix::new(name))
            }
            MemberAction::Emit(Emit { name, op: ValueOp::Keep }) => Action::Rename(Prefix::new(name)),
            MemberAction::Emit(Emit { name, op }) => Action::Run(Prefix::new(name), self.op(op, below)),
        }
    }

    fn close<'p>(
        &mut self,
        close: &'p switchback_plan::Close,
        plan: &'p ObjectOp,
        slots: &mut usize,
        wanted: &mut Vec<(usize, &'p [Key], u16)>,
    ) -> Close {
        let from = match &close.from {
            CloseFrom::Constant(value) => From::Constant(value.clone()),
            CloseFrom::Default { unless_written, value } => {
                From::Default { unless_written: *unless_written, value: value.clone() }
            }
            CloseFrom::Captured { alternatives, absent } => From::Captured {
                alternatives: alternatives
                    .iter()
                    .map(|captured| alternative(captured, plan, slots, wanted))
                    .collect(),
                absent: match absent {
                    Absent::Omit => None,
                    Absent::Value(value) => Some(value.clone()),
                },
            },
            CloseFrom::Object(inner) => {
                From::Object(inner.iter().map(|close| self.close(close, plan, slots, wanted)).collect())
            }
            CloseFrom::Supplied(at) => From::Supplied(*at),
            CloseFrom::Setting(at) => From::Setting(*at),
        };
        Close { prefix: Prefix::new(&close.name), needed: close.needed, null: close.null, from }
    }
}

/// See [`Object::endings`].
fn ending(close: &Close) -> Option<Ending> {
    let with = |value: &Raw| {
        let mut text = Vec::new();
        close.prefix.write(false, &mut text);
        text.extend_from_slice(value);
        Written::new(&text.into())
    };
    match &close.from {
        From::Constant(value) => Some(Ending::Constant(with(value))),
        From::Captured { alternatives, absent } => match &alternatives[..] {
            [Alternative { slot, is_whole: true, .. }] => {
                let prefix = with(&Raw::from([]));
                let absent = absent.as_ref().map_or(Written::NOTHING, with);
                Some(Ending::Captured { prefix, slot: *slot, absent })
            }
            _ => None,
        },
        _ => None,
    }
}

/// See [`Object::closing`].
fn constant_closing(close: &[Close]) -> Option<Box<[u8]>> {
    let mut text = Vec::new();
    for item in close {
        let From::Constant(value) = &item.from else { return None };
        item.prefix.write(false, &mut text);
        text.extend_from_slice(value);
    }
    text.push(b'}');
    Some(text.into())
}

/// Captures a place below a walked member in a slot of its own, which the walk fills. Any other
/// place is looked up in the text of the captured member.
fn alternative<'p>(
    captured: &'p switchback_plan::Captured,
    plan: &'p ObjectOp,
    slots: &mut usize,
    wanted: &mut Vec<(usize, &'p [Key], u16)>,
) -> Alternative {
    let mut slot = captured.slot;
    let mut path = &captured.path[..];
    let source = plan.members.iter().position(|member| member.capture == Some(slot));
    if let Some(member) = source
        && let MemberAction::Emit(Emit { op, .. }) = &plan.members[member].action
        && is_walked(op, path)
        // With too many slots, the place is looked up in the captured text instead.
        && let Ok(own) = u16::try_from(*slots)
    {
        *slots += 1;
        wanted.push((member, path, own));
        (slot, path) = (own, &[]);
    }
    let op = match &captured.op {
        ValueOp::Keep => Inner::Copy,
        op if leads_back(op) => Inner::Walk(op.clone()),
        op => Inner::Run(Arc::new(Program::compile(op))),
    };
    let is_whole = path.is_empty() && captured.only.is_none() && matches!(op, Inner::Copy);
    Alternative { slot, path: path.to_vec(), only: captured.only, op, is_whole }
}

/// Returns whether an op contains a reference back to an op around it.
fn leads_back(op: &ValueOp) -> bool {
    fn close_leads_back(close: &switchback_plan::Close) -> bool {
        match &close.from {
            CloseFrom::Captured { alternatives, .. } => alternatives.iter().any(|one| leads_back(&one.op)),
            CloseFrom::Object(inner) => inner.iter().any(close_leads_back),
            _ => false,
        }
    }
    match op {
        ValueOp::Again(_) => true,
        ValueOp::Object(object) => {
            let member = |member: &switchback_plan::Member| match &member.action {
                MemberAction::Emit(emit) => leads_back(&emit.op),
                _ => false,
            };
            object.members.iter().any(member)
                || object.close.iter().any(close_leads_back)
                || matches!(&object.others, switchback_plan::Others::Each(op) if leads_back(op))
        }
        ValueOp::Choose(choose) => choose.arms.iter().any(leads_back),
        ValueOp::Attempt(attempt) => leads_back(&attempt.op),
        ValueOp::Array(inner) | ValueOp::Wrap(inner) | ValueOp::Unwrap(inner) => leads_back(inner),
        ValueOp::Keep | ValueOp::Convert(_) | ValueOp::Constant(_) => false,
    }
}

/// Returns whether `op` walks the objects of all but the last name of `path`.
fn is_walked(op: &ValueOp, path: &[Key]) -> bool {
    let (ValueOp::Object(object), [name, rest @ ..]) = (op, path) else {
        return false;
    };
    let Some((_, member)) = object.member(&name.text) else {
        return false;
    };
    rest.is_empty() || matches!(&member.action, MemberAction::Emit(emit) if is_walked(&emit.op, rest))
}

/// Returns whether a close item reads `slot`.
fn reads(close: &[Close], slot: u16) -> bool {
    close.iter().any(|close| match &close.from {
        From::Captured { alternatives, .. } => alternatives.iter().any(|one| one.slot == slot),
        From::Object(inner) => reads(inner, slot),
        _ => false,
    })
}

/// Returns the buffered form of an op that may write no value, or must read its value completely.
fn held(op: &ValueOp) -> Option<Held> {
    match op {
        ValueOp::Choose(choose) => Some(Held::Choose(Arc::clone(choose))),
        ValueOp::Attempt(attempt) => Some(Held::Attempt(Arc::clone(attempt))),
        ValueOp::Again(again) => match again.op() {
            ValueOp::Choose(choose) => Some(Held::Choose(choose)),
            _ => None,
        },
        ValueOp::Convert(conversion) => Some(Held::Convert(conversion.clone())),
        ValueOp::Wrap(inner) => held(inner).map(|inner| Held::Wrap(Box::new(inner))),
        ValueOp::Unwrap(inner) => held(inner).map(|inner| Held::Unwrap(Box::new(inner))),
        _ => None,
    }
}
