//! The transformation of one JSON body: a tree of ops that a stream and a document execute alike.
//!
//! One rule makes both produce the same bytes. A member with a counterpart is written in source
//! order. Anything that cannot be written at the position of its source (a place that moves up or
//! down, a constant, a default) is written when the enclosing object closes, in the order of
//! [`ObjectOp::close`]. Values that no op touches are copied verbatim, including inner white space;
//! rewritten objects and arrays have no white space between their members.

use super::convert::Conversion;
use super::expected::Root;
use super::json::{Key, Kinds, Raw};
use super::{Origin, ReasonId};
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

/// A transformation of one JSON value.
///
/// - At the top of a body, `Keep` also copies the white space around the value; every other op
///   drops it.
/// - An op that yields no value omits its member or element. `Wrap` around such an op yields no
///   value either.
/// - `null` passes through `Object`, `Array` and `Unwrap` unchanged, because [`BodyPlan::root`]
///   decides whether a body may be null. Any other unexpected kind of value is an error of the
///   sender.
#[derive(Clone, Debug)]
pub enum ValueOp {
    /// Copies the value verbatim.
    Keep,
    /// Rewrites an object member by member.
    Object(Arc<ObjectOp>),
    /// Applies an op to each element of an array.
    Array(Box<ValueOp>),
    /// Wraps the value in an array of one element.
    Wrap(Box<ValueOp>),
    /// Replaces an array of exactly one element by that element.
    Unwrap(Box<ValueOp>),
    /// Converts a complete value of bounded size. A conversion may yield no value; the member is
    /// then omitted.
    Convert(Conversion),
    /// Replaces the value, of any kind, by this text.
    Constant(Raw),
    /// Rewrites an object with the op of the alternative that it matches. The last member may
    /// decide, so the object is buffered.
    Choose(Arc<ChooseOp>),
    /// Rewrites a value that may be rejected without rejecting the message. The last byte may
    /// decide, so the value is buffered.
    Attempt(Arc<AttemptOp>),
    /// A reference to an enclosing op: the shape of a recursive type.
    Again(Again),
}

/// An object with several alternatives, each with its own op.
#[derive(Debug)]
pub struct ChooseOp {
    /// Name of the shape, for messages.
    pub name: Arc<str>,
    /// The discriminator.
    pub by: ChooseBy,
    /// One op for each alternative. None may yield no value.
    pub arms: Vec<ValueOp>,
    /// The shape in the mapping.
    pub origin: Origin,
}

/// The discriminator of alternatives.
#[derive(Debug)]
pub enum ChooseBy {
    /// The scalar value of one member selects the alternative.
    Constant {
        /// Name of that member.
        member: Key,
        /// Values as JSON text, each with an index into [`ChooseOp::arms`].
        values: Vec<(Raw, u16)>,
    },
    /// For each alternative, the member that only this alternative has; a null member does not
    /// count. The alternative with `None` applies if no other does.
    OwnField(Vec<Option<Key>>),
}

/// An op with a fallback for a value that it rejects: a value of another kind, outside a
/// conversion's domain, or matching no alternative. A `refuse` within the op and invalid JSON still
/// reject the message.
#[derive(Debug)]
pub struct AttemptOp {
    /// The op for a value that it accepts.
    pub op: ValueOp,
    /// JSON text that replaces a rejected value. `None`: the member or element is omitted.
    pub instead: Option<Raw>,
    /// Whether the target accepts null. If so, null passes unchanged; otherwise it is rejected like
    /// any other value.
    pub null: bool,
    /// The `else:` in the mapping.
    pub origin: Origin,
}

/// A reference from within an op to that op. It is weak, so that the recursive op does not keep
/// itself alive after its plan is dropped. It must not outlive the op.
#[derive(Clone, Default)]
pub struct Again(Arc<OnceLock<Target>>);

enum Target {
    Object(Weak<ObjectOp>),
    Choose(Weak<ChooseOp>),
}

impl Again {
    /// Sets the target, unless it is set already. Only objects and choices can be recursive; any
    /// other op is ignored.
    pub fn tie(&self, op: &ValueOp) {
        // Weak references, because a strong one from within the op to itself would never be freed.
        let target = match op {
            ValueOp::Object(op) => Target::Object(Arc::downgrade(op)),
            ValueOp::Choose(op) => Target::Choose(Arc::downgrade(op)),
            _ => return,
        };
        let _ = self.0.set(target);
    }

    /// Returns the op that it refers to.
    ///
    /// # Panics
    ///
    /// If [`Again::tie`] was never called, or the op was dropped. Both are errors in the
    /// construction of the plan.
    pub fn op(&self) -> ValueOp {
        let found = match self.0.get() {
            Some(Target::Object(op)) => op.upgrade().map(ValueOp::Object),
            Some(Target::Choose(op)) => op.upgrade().map(ValueOp::Choose),
            None => None,
        };
        found.expect("what leads back to an op stands within it")
    }

    /// Returns the name of the shape that it refers to.
    pub fn name(&self) -> Arc<str> {
        match self.op() {
            ValueOp::Object(op) => op.name.clone(),
            ValueOp::Choose(op) => op.name.clone(),
            _ => "".into(),
        }
    }
}

/// Omits the target: it contains this reference, so printing it would not terminate.
impl fmt::Debug for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Again")
    }
}

/// A member-by-member rewrite of an object.
#[derive(Debug)]
pub struct ObjectOp {
    /// Name of the shape, for messages; an `inline` shape has the name of its route.
    pub name: Arc<str>,
    /// Sorted by the bytes of `name.text`, for binary search.
    pub members: Vec<Member>,
    /// Handling of the members not listed above.
    pub others: Others,
    /// Members written when the object closes, in this order.
    pub close: Vec<Close>,
    /// Number of capture slots: exclusive upper bound of `Member::capture` and `Captured::slot`.
    pub captures: u16,
    /// Number of values that the route supplies (`with:`): exclusive upper bound of
    /// `CloseFrom::Supplied`.
    pub supplied: u16,
}

impl ObjectOp {
    /// Returns the index and the rule of the member with this decoded name.
    pub fn member(&self, name: &str) -> Option<(usize, &Member)> {
        // The compiler sorts the members by name. The lookup runs once per member of every message.
        let at = self.members.binary_search_by(|m| m.name.text.as_ref().cmp(name)).ok()?;
        Some((at, &self.members[at]))
    }
}

/// The rule for one member of the source. Its index in [`ObjectOp::members`] is its bit in the set
/// of written members; the bit is set when `action` wrote a value to the target.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name on the side that is read.
    pub name: Key,
    /// Action at the member's position.
    pub action: MemberAction,
    /// Slot that stores the source text of the member until the object closes, if any.
    pub capture: Option<u16>,
    /// The line of the shape that names it.
    pub origin: Origin,
}

/// The handling of a member at its position in the source.
#[derive(Clone, Debug)]
pub enum MemberAction {
    /// Omit it.
    Drop,
    /// Omit it as well. The source declares no such member, and the target has a member of its own
    /// by this name.
    Shadowed,
    /// Write it under the name and with the op of the other side.
    Emit(Emit),
    /// Reject the call with this reason if the member is present and not null.
    Refuse(ReasonId),
}

/// A member written at its position in the source.
#[derive(Clone, Debug)]
pub struct Emit {
    /// Its name on the side that is written.
    pub name: Key,
    /// Produces its value; the member is omitted if the op yields no value.
    pub op: ValueOp,
}

/// The handling of members that no rule names.
#[derive(Clone, Debug)]
pub enum Others {
    /// Omit them.
    Drop,
    /// Copy them verbatim, names included.
    Keep,
    /// Copy their names and apply this op to each value. The op always yields a value.
    Each(ValueOp),
    /// Reject the call with this reason if one is present and not null.
    Refuse(ReasonId),
}

/// A member written when the object closes.
#[derive(Clone, Debug)]
pub struct Close {
    /// Its name on the side that is written.
    pub name: Key,
    /// The source of its value.
    pub from: CloseFrom,
    /// Whether the enclosing object requires the member. If a required member has no value, the
    /// enclosing [`CloseFrom::Object`] is omitted. A required member that is itself such an object
    /// is written even if it is empty.
    pub needed: bool,
    /// Whether null is a valid value. Null is then written for a required [`CloseFrom::Object`]
    /// that lacks one of its own required members.
    pub null: bool,
    /// The line of the shape that declares it.
    pub origin: Origin,
}

/// The source of a member that is written when the object closes.
#[derive(Clone, Debug)]
pub enum CloseFrom {
    /// This text, always.
    Constant(Raw),
    /// A constant, unless the member with this index was written.
    Default {
        /// Index into [`ObjectOp::members`].
        unless_written: u16,
        /// The default, as JSON text.
        value: Raw,
    },
    /// The first alternative that is present and yields a value.
    Captured {
        /// Places of the source, tried in order.
        alternatives: Vec<Captured>,
        /// Fallback if no alternative is present.
        absent: Absent,
    },
    /// A nested object. It is omitted if it would be empty, unless it is [needed](Close::needed),
    /// and if one of its required members has no value, unless it may be [null](Close::null). An
    /// object in which no member has a value counts as empty.
    Object(Vec<Close>),
    /// The value with this index from the route's `with:`; omitted if the route yields no value for
    /// it. All ops of a body share one index space, so nested shapes and all elements of an array
    /// see the same values.
    Supplied(u16),
    /// A setting, as an index into [`super::Pack::settings`].
    Setting(u16),
}

/// A place inside a captured member. The place is absent if a member on the path is absent, null or
/// not an object. A null at the end of the path is present, unless `only` excludes it.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The capture slot that holds the member, less than [`ObjectOp::captures`].
    pub slot: u16,
    /// Member names that lead from the captured member to the place; empty for the member itself.
    pub path: Vec<Key>,
    /// Accepts only values of these kinds.
    pub only: Option<Kinds>,
    /// Produces the written value.
    pub op: ValueOp,
}

/// The fallback if no alternative is present.
#[derive(Clone, Debug)]
pub enum Absent {
    /// Omit the member.
    Omit,
    /// Write this text.
    Value(Raw),
}

/// How much of a body a plan buffers, cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Identity, empty, or dropped: no buffer.
    Pass,
    /// Renames, omissions, constants, nested shapes, scalar conversions: memory is proportional to
    /// the nesting depth.
    Tokens,
    /// Places that move up or down, or a structural conversion: bounded pieces are buffered until
    /// their object closes.
    Captures,
    /// One complete array element is buffered.
    Element,
    /// Selection, overlay, or a join of steps: the complete body is buffered, up to the limit.
    Document,
}

/// The transformation of one body into the body of the other side.
#[derive(Clone, Debug)]
pub struct BodyPlan {
    /// Produces the body of the other side.
    pub op: ValueOp,
    /// Constraint on the body as a whole, in addition to those of the op.
    pub root: Root,
    /// How much of the body the op buffers.
    pub class: Class,
    /// The reason why the class is not a cheaper one, as a sentence for `explain`.
    pub because: String,
}
