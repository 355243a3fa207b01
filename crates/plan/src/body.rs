//! What is done to one JSON body: a tree of ops that a stream or a document can run alike.
//!
//! The rule that makes both agree byte for byte: members that have a counterpart come out in the order of the source;
//! what cannot be written where its source stands (a place that moves up or down, a constant, a default) is written when
//! the enclosing object closes, in the order of [`ObjectOp::close`]. Values that no op touches are copied as they stand,
//! inner white space included; rewritten objects and arrays have no white space between their members.

use super::convert::Conversion;
use super::expected::Root;
use super::{Origin, ReasonId};
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use switchback_json::raw::Kind;

/// Ready JSON text.
pub type Raw = Arc<[u8]>;

/// A member name: as text, and as JSON text with its quotes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// As it is compared with decoded names of a body.
    pub text: Arc<str>,
    /// As it is written: escaped, with its quotes.
    pub json: Raw,
}

impl Key {
    /// The key of this (decoded) name.
    pub fn new(text: &str) -> Key {
        let json = format!("\"{}\"", switchback_json::text::escape(text));
        Key { text: text.into(), json: json.into_bytes().into() }
    }
}

/// One transformation of one JSON value. At the top of a body, `Keep` copies the white space around the value too; every
/// other op drops it. An op that yields nothing leaves out the member or element it stands for; around a value that yields
/// nothing, `Wrap` yields nothing either. `null` passes through `Object`, `Array` and `Unwrap` unchanged, since whether a body
/// may be null is for [`BodyPlan::root`] to say; any other unexpected kind of value is an error of its sender.
#[derive(Clone, Debug)]
pub enum ValueOp {
    /// Copied verbatim.
    Keep,
    /// An object rewritten member by member.
    Object(Arc<ObjectOp>),
    /// Each element of an array.
    Array(Box<ValueOp>),
    /// The value becomes the only element of an array.
    Wrap(Box<ValueOp>),
    /// An array of exactly one element becomes that element.
    Unwrap(Box<ValueOp>),
    /// A conversion of the whole (bounded) value; it may yield nothing, and then the member is left out.
    Convert(Conversion),
    /// Whatever stands there is replaced.
    Constant(Raw),
    /// An object, by the op of the alternative that it is. What it is may stand in its last member, so that it is held whole.
    Choose(Arc<ChooseOp>),
    /// A value that may be turned away without the message being refused. Whether it is may show at its last byte, so that it
    /// is held whole.
    Attempt(Arc<AttemptOp>),
    /// An op that this one stands within: a shape over a type that holds itself.
    Again(Again),
}

/// Objects that are told apart by what is in them, each kind with an op of its own.
#[derive(Debug)]
pub struct ChooseOp {
    /// Name of the shape, for messages.
    pub name: Arc<str>,
    /// What tells the alternatives apart.
    pub by: ChooseBy,
    /// By alternative. None of them may yield nothing.
    pub arms: Vec<ValueOp>,
    /// The shape in the mapping.
    pub origin: Origin,
}

/// What tells alternatives apart.
#[derive(Debug)]
pub enum ChooseBy {
    /// The scalar value of a member, as JSON text, and the alternative that each value means.
    Constant {
        /// Name of the member that decides.
        member: Key,
        /// Values as JSON text, each with an index into [`ChooseOp::arms`].
        values: Vec<(Raw, u16)>,
    },
    /// By alternative: the member that it alone has, with anything but null. The one without is meant when none of the
    /// others is.
    OwnField(Vec<Option<Key>>),
}

/// An op with what follows for a value that it turns away: one of another kind, outside a conversion's domain, or none of
/// the alternatives. What is refused, and what is no JSON, is so here as well.
#[derive(Debug)]
pub struct AttemptOp {
    /// What is made of a value that is taken.
    pub op: ValueOp,
    /// What stands in place of one that is not; none = the member or element is left out.
    pub instead: Option<Raw>,
    /// Whether null passes as it is: where the target takes it. Else it is turned away.
    pub null: bool,
    /// The `else:` in the mapping.
    pub origin: Origin,
}

/// What leads from within an op back to it. The op holds this and is not held by it, so that a plan that nobody uses any more
/// goes away; what leads back must not outlive the op.
#[derive(Clone, Default)]
pub struct Again(Arc<OnceLock<Target>>);

enum Target {
    Object(Weak<ObjectOp>),
    Choose(Weak<ChooseOp>),
}

impl Again {
    /// Makes it lead to this op, unless it leads somewhere already. Only objects and choices can hold themselves.
    pub fn tie(&self, op: &ValueOp) {
        let target = match op {
            ValueOp::Object(op) => Target::Object(Arc::downgrade(op)),
            ValueOp::Choose(op) => Target::Choose(Arc::downgrade(op)),
            _ => return,
        };
        let _ = self.0.set(target);
    }

    /// The op that it leads to.
    ///
    /// # Panics
    ///
    /// When it was never tied, or outlives the op: both are faults of whoever made the plan.
    pub fn op(&self) -> ValueOp {
        let found = match self.0.get() {
            Some(Target::Object(op)) => op.upgrade().map(ValueOp::Object),
            Some(Target::Choose(op)) => op.upgrade().map(ValueOp::Choose),
            None => None,
        };
        found.expect("what leads back to an op stands within it")
    }

    /// Name of the shape that it leads to.
    pub fn name(&self) -> Arc<str> {
        match self.op() {
            ValueOp::Object(op) => op.name.clone(),
            ValueOp::Choose(op) => op.name.clone(),
            _ => "".into(),
        }
    }
}

/// Without what it leads to, which holds it.
impl fmt::Debug for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Again")
    }
}

/// An object rewritten member by member.
#[derive(Debug)]
pub struct ObjectOp {
    /// Name of the shape, for messages; `inline` shapes carry the name of their route.
    pub name: Arc<str>,
    /// Sorted by the bytes of `name.text`, for lookup.
    pub members: Vec<Member>,
    /// What becomes of members that are not named above.
    pub others: Others,
    /// Written when the object closes, in this order.
    pub close: Vec<Close>,
    /// Number of capture slots; `Member::capture` and `Captured::slot` are below it.
    pub captures: u16,
    /// Number of values a route must supply (`with:`); `CloseFrom::Supplied` is below it.
    pub supplied: u16,
}

impl ObjectOp {
    /// The rule for the member of this (decoded) name.
    pub fn member(&self, name: &str) -> Option<(usize, &Member)> {
        let at = self.members.binary_search_by(|m| m.name.text.as_ref().cmp(name)).ok()?;
        Some((at, &self.members[at]))
    }
}

/// What is done with one member of the source. Its index in [`ObjectOp::members`] is its bit in the set of written
/// members: set when `action` wrote something to the target.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name on the side that is read.
    pub name: Key,
    /// What is written for it where it stands.
    pub action: MemberAction,
    /// Besides, its source text is kept in this slot until the object closes.
    pub capture: Option<u16>,
    /// The line of the shape that names it.
    pub origin: Origin,
}

/// What becomes of a member where it stands.
#[derive(Clone, Debug)]
pub enum MemberAction {
    /// Nothing is written.
    Drop,
    /// Dropped as well: the source knows no such member, the target has one of its own by the name.
    Shadowed,
    /// It is written under the name and by the op of the other side.
    Emit(Emit),
    /// The call is refused with this reason when the member is there and not null.
    Refuse(ReasonId),
}

/// A member that is written where it stands.
#[derive(Clone, Debug)]
pub struct Emit {
    /// Its name on the side that is written.
    pub name: Key,
    /// What makes its value; an op that yields nothing leaves the member out.
    pub op: ValueOp,
}

/// What becomes of members that no rule names.
#[derive(Clone, Debug)]
pub enum Others {
    /// They are left out.
    Drop,
    /// They are copied under their names as they stand.
    Keep,
    /// Kept under their names, each value by this op, which never yields nothing.
    Each(ValueOp),
    /// The call is refused with this reason when one is there and not null.
    Refuse(ReasonId),
}

/// A member written when the object closes.
#[derive(Clone, Debug)]
pub struct Close {
    /// Its name on the side that is written.
    pub name: Key,
    /// What gives its value.
    pub from: CloseFrom,
    /// Whether the object that it is written into must have it. Where it is not written, a [`CloseFrom::Object`] around it is
    /// left out as a whole; where it is itself such an object, it is written even when nothing stands in it.
    pub needed: bool,
    /// Whether null may stand in its place: written for a [`CloseFrom::Object`] that is needed and lacks something it must
    /// have.
    pub null: bool,
    /// The line of the shape that asks for it.
    pub origin: Origin,
}

/// Where a member that is written at the close comes from.
#[derive(Clone, Debug)]
pub enum CloseFrom {
    /// This text, always.
    Constant(Raw),
    /// A constant, unless the member with this index was written.
    Default {
        /// Index into [`ObjectOp::members`].
        unless_written: u16,
        /// The text that is written then.
        value: Raw,
    },
    /// The first alternative that is there (and yields something).
    Captured {
        /// Places of the source, tried in order.
        alternatives: Vec<Captured>,
        /// What is written when none of them is there.
        absent: Absent,
    },
    /// A nested object; left out when nothing in it is written, unless it is [needed](Close::needed), and when something is
    /// missing that is needed in it, unless [null](Close::null) may stand there. Objects in which nothing stands count as
    /// nothing.
    Object(Vec<Close>),
    /// The value with this index out of a route's `with:`; left out when the route yields nothing for it. One index space
    /// serves the whole op tree of a body, so nested shapes and every element of an array see the same values.
    Supplied(u16),
    /// A setting (index into [`super::Pack::settings`]).
    Setting(u16),
}

/// A place inside a captured member. A member on the way that is absent, null or no object means that nothing is there;
/// a null at the end of the way is there, unless `only` leaves it out.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The capture slot that holds the member, below [`ObjectOp::captures`].
    pub slot: u16,
    /// Member names to descend from the captured member; empty = the member itself.
    pub path: Vec<Key>,
    /// Only when the value found is of one of these kinds.
    pub only: Option<Kinds>,
    /// What makes the written value of the one found.
    pub op: ValueOp,
}

/// What is written when no alternative is there.
#[derive(Clone, Debug)]
pub enum Absent {
    /// The member is left out.
    Omit,
    /// This text is written.
    Value(Raw),
}

/// A set of JSON kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Kinds {
    /// Whether `null` is in it.
    pub null: bool,
    /// Whether `true` and `false` are in it.
    pub boolean: bool,
    /// Whether numbers are in it.
    pub number: bool,
    /// Whether strings are in it.
    pub string: bool,
    /// Whether arrays are in it.
    pub array: bool,
    /// Whether objects are in it.
    pub object: bool,
}

impl Kinds {
    /// Every kind.
    pub const ANY: Kinds =
        Kinds { null: true, boolean: true, number: true, string: true, array: true, object: true };

    /// The set of these kinds, in any order and however often each.
    pub const fn of(kinds: &[Kind]) -> Kinds {
        let mut set =
            Kinds { null: false, boolean: false, number: false, string: false, array: false, object: false };
        let mut at = 0;
        while at < kinds.len() {
            match kinds[at] {
                Kind::Null => set.null = true,
                Kind::Bool => set.boolean = true,
                Kind::Number => set.number = true,
                Kind::String => set.string = true,
                Kind::Array => set.array = true,
                Kind::Object => set.object = true,
            }
            at += 1;
        }
        set
    }

    /// Whether this kind is in it.
    pub const fn contains(self, kind: Kind) -> bool {
        match kind {
            Kind::Null => self.null,
            Kind::Bool => self.boolean,
            Kind::Number => self.number,
            Kind::String => self.string,
            Kind::Array => self.array,
            Kind::Object => self.object,
        }
    }
}

/// How much of a body a plan must hold to run. Cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Identity, empty, or dropped: nothing is held.
    Pass,
    /// Renames, drops, constants, nested shapes, scalar conversions: memory is the depth of nesting.
    Tokens,
    /// Places move up or down, or a structural conversion: bounded pieces are held until their object closes.
    Captures,
    /// Something needs one whole array element.
    Element,
    /// Selection, overlay, joins of steps: the whole body, within the limit.
    Document,
}

/// A body and how it is turned into the other side's.
#[derive(Clone, Debug)]
pub struct BodyPlan {
    /// What makes the body of the other side.
    pub op: ValueOp,
    /// What is checked of the body as a whole, beside what the op asks for.
    pub root: Root,
    /// What of the body must be held to run the op.
    pub class: Class,
    /// Why the class is not a cheaper one, as a sentence for `explain`.
    pub because: String,
}
