//! The comparison of types across two contracts: whether every value of one type is a value of the
//! other.
//!
//! There are three results. If the types are equal or the target is wider, the result is empty. If
//! the target is narrower, each place where it excludes values is a [`Narrowing`], which reports
//! list as a loss. If the types are incompatible, the result is the first reason, a [`Why`].
//!
//! The rules:
//! - `any` is compatible with every type in both directions: unknown structure is not checked.
//! - A nullable type is not compatible with one that is not nullable.
//! - A scalar is compatible with its own kind, and an integer with a number. A string is never
//!   compatible with a number or vice versa, whatever its content: that requires a conversion. For
//!   formats and bounds, see [`scalars`].
//! - A closed enumeration as the target requires a closed enumeration as the source, with a subset
//!   of its values. An open enumeration as the target accepts every value of the kind.
//! - Lists are compared by their items; a bound on their length narrows.
//! - Keywords that types do not represent are compared as text. One that only the target has
//!   narrows.
//! - A required field requires a required field. An optional field may be absent; otherwise its
//!   type is compared. A declared field that the target does not declare requires a target that is
//!   open, or whose additional type accepts it. Even so, it narrows requests, because an open
//!   target ignores it. An optional field without a source narrows responses. Undeclared fields of
//!   the source narrow if the target is closed or gives them a type.
//! - A `readOnly` field occurs only in responses, a `writeOnly` one only in requests, on either
//!   side. A comparison for one message considers only the fields of that message. In a comparison
//!   for both messages, an incompatibility of only one message narrows.
//! - Two different defaults of an optional field narrow requests: the service assumes another value
//!   for an absent field.
//! - Each alternative of the source must be compatible; of the target, one suffices. Objects with a
//!   discriminator are compared with the alternative that the same discriminator selects on the
//!   other side.
//! - Alternatives that no test distinguishes are any value, so none of their values is certain to be
//!   excluded. Each is compared with the most similar alternative of the target, and every difference
//!   narrows.
//! - Recursive types are compatible unless a part of the cycle is not.

mod scalars;

pub(crate) use scalars::{exclusions, is_out_of_bounds, unread};

use super::types::{Access, Additional, Array, Choice, Field, Object, Scalar, Test, Type, TypeIn, TypeKind};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use switchback_plan::Message;

/// The first reason why two types are incompatible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Place within the value, such as `box.parts[].key`; empty for the value itself.
    pub path: String,
    /// The incompatibility.
    pub mismatch: Mismatch,
}

/// An incompatibility of two types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// The source may be null.
    Null {
        /// The target, for messages.
        to: String,
    },
    /// The kinds differ.
    Kind {
        /// The source, for messages.
        from: String,
        /// The target, for messages.
        to: String,
    },
    /// The formats are disjoint.
    Format {
        /// Format of the source.
        from: String,
        /// Format of the target.
        to: String,
    },
    /// The source lacks a required field.
    Missing,
    /// The source may omit a required field.
    MayBeAbsent,
    /// The closed target does not declare a field.
    Undeclared,
    /// Values that the target does not enumerate.
    Values(Vec<String>),
    /// The target enumerates its values, and the source does not.
    Unbounded {
        /// The source, for messages.
        from: String,
        /// The target, for messages.
        to: String,
    },
}

/// Values that a narrower target excludes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowing {
    /// Place within the value, such as `$.box.parts[*].key`.
    pub path: String,
    /// Description of the values, such as `values above 100`.
    pub values: String,
    /// The only message that it affects; `None` if it affects both.
    pub only_in: Option<Message>,
    /// Whether the target has the place, and the source has no value for it.
    pub is_of_target: bool,
}

impl Narrowing {
    /// Returns a narrowing of the place itself, in both messages.
    pub(crate) fn of_both_messages(values: String) -> Narrowing {
        Narrowing { path: "$".to_owned(), values, only_in: None, is_of_target: false }
    }

    fn only_in(values: &str, message: Message) -> Narrowing {
        Narrowing { only_in: Some(message), ..Narrowing::of_both_messages(values.to_owned()) }
    }

    /// Returns whether it affects this message.
    pub fn concerns(&self, message: Message) -> bool {
        self.only_in.is_none_or(|only| only == message)
    }
}

/// A cache of comparisons between the types of two contracts: pairs without narrowings, by address,
/// and the narrowings of others. The contracts must not move while the cache is in use, and types
/// created for a single comparison must not be cached.
#[derive(Debug, Default)]
pub struct Proven {
    requests: ProvenFor,
    answers: ProvenFor,
}

/// The part of [`Proven`] for one message.
#[derive(Debug, Default)]
struct ProvenFor {
    pairs: Pairs,
    narrower: HashMap<(*const TypeKind, *const TypeKind), Vec<Narrowing>>,
}

/// Like [`compare`], but reuses the results in `proven`.
pub fn compare_once(
    from: TypeIn<'_>,
    to: TypeIn<'_>,
    message: Message,
    proven: &mut Proven,
) -> Result<Vec<Narrowing>, Difference> {
    let proven = match message {
        Message::Request => &mut proven.requests,
        Message::Answer => &mut proven.answers,
    };
    let (source, target) = (from.types.resolve(from.ty), to.types.resolve(to.ty));
    let root = (std::ptr::from_ref(source.kind), std::ptr::from_ref(target.kind));
    // The key does not contain nullability. If it is incompatible, `compare_from` reports it.
    if let Some(known) = proven.narrower.get(&root).filter(|_| !source.nullable || target.nullable) {
        return Ok(known.clone());
    }
    let (taken, narrowings) = compare_from(NullRoot::Whole, from, to, Some(message), &proven.pairs)?;
    if narrowings.is_empty() {
        // The comparison has no objection to any visited pair, including pairs that depend on each other.
        proven.pairs.extend(taken);
    } else {
        proven.narrower.insert(root, narrowings.clone());
    }
    Ok(narrowings)
}

/// Compares two types by the rules above, for one message or for both.
pub fn compare(
    from: TypeIn<'_>,
    to: TypeIn<'_>,
    message: Option<Message>,
) -> Result<Vec<Narrowing>, Difference> {
    compare_from(NullRoot::Whole, from, to, message, &HashSet::new()).map(|(_, narrowings)| narrowings)
}

/// Like [`compare`], but ignores narrowings.
pub fn assignable(from: TypeIn<'_>, to: TypeIn<'_>, message: Option<Message>) -> Result<(), Difference> {
    compare(from, to, message).map(drop)
}

/// Like [`compare`], but ignores nullability at the top.
pub(crate) fn compare_but_for_null(
    from: TypeIn<'_>,
    to: TypeIn<'_>,
    message: Option<Message>,
) -> Result<Vec<Narrowing>, Difference> {
    compare_from(NullRoot::ButForNull, from, to, message, &HashSet::new()).map(|(_, narrowings)| narrowings)
}

/// Returns the narrowings of a list itself, without its elements. Empty if one of the types is not
/// a list.
pub(crate) fn compare_lists(from: TypeIn<'_>, to: TypeIn<'_>) -> Vec<Narrowing> {
    match (from.kind(), to.kind()) {
        (TypeKind::Array(a), TypeKind::Array(b)) => {
            list_bounds(a, b).into_iter().map(Narrowing::of_both_messages).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the lists that a narrower target excludes, by its bounds and by keywords that types do
/// not represent.
fn list_bounds(a: &Array, b: &Array) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(most) = b.max_items.filter(|most| a.max_items.is_none_or(|own| own > *most)) {
        found.push(format!("lists of more than {most} elements"));
    }
    if a.min_items < b.min_items {
        found.push(format!("lists of fewer than {} elements", b.min_items));
    }
    if b.unique && !a.unique {
        found.push("lists with equal elements".to_owned());
    }
    found.extend(scalars::unread(&a.unread, &b.unread));
    found
}

/// Like [`assignable`] for at least one message, but ignores nullability at the top.
pub(crate) fn assignable_but_for_null(from: TypeIn<'_>, to: TypeIn<'_>) -> Result<(), Difference> {
    compare_but_for_null(from, to, None).map(drop)
}

/// Whether a comparison considers nullability at the top.
#[derive(Clone, Copy, PartialEq)]
enum NullRoot {
    Whole,
    ButForNull,
}

type Compared = Result<(), Difference>;

/// The source and the target of a comparison.
type Ends<'a> = [TypeIn<'a>; 2];

type Pairs = HashSet<(*const TypeKind, *const TypeKind)>;

/// Maximum number of narrowings per comparison with their own places. Others are narrowings of the
/// outermost members.
const NARROWINGS_MAX: usize = 512;

/// Returns the visited pairs of types and the narrowings.
fn compare_from(
    root: NullRoot,
    from: TypeIn<'_>,
    to: TypeIn<'_>,
    message: Option<Message>,
    proven: &Pairs,
) -> Result<(Pairs, Vec<Narrowing>), Difference> {
    let first = TypePair { from, to, parent: 0, steps: Vec::new(), is_lenient: false };
    let mut comparison = ContractComparison {
        message,
        proven,
        is_lenient: false,
        visited: Default::default(),
        pairs: vec![first],
        current: 0,
        steps: Vec::new(),
        narrowings: Vec::new(),
    };
    // Pairs are processed in the order of the queue; `types` recurses within a pair.
    while let Some(pair) = comparison.pairs.get(comparison.current) {
        let (from, to) = (pair.from, pair.to);
        comparison.is_lenient = pair.is_lenient;
        let is_root = comparison.current == 0 && root == NullRoot::ButForNull;
        let compared = match is_root {
            true => comparison.one_alternative(from, to),
            false => comparison.types(from, to),
        };
        compared.map_err(|why| comparison.seen_from_root(why))?;
        comparison.current += 1;
    }
    let [strict, lenient] = comparison.visited.map(|visited| visited.taken);
    Ok((strict.into_iter().chain(lenient).collect(), comparison.narrowings))
}

/// Maximum recursion depth. Deeper pairs are queued, because a chain of named types may be as long
/// as the document, which would overflow the stack.
const STEPS_MAX: usize = 32;

/// A pair of types in the queue, with the path from its parent pair.
struct TypePair<'a> {
    from: TypeIn<'a>,
    to: TypeIn<'a>,
    parent: usize,
    steps: Vec<String>,
    is_lenient: bool,
}

/// The visited pairs of types.
#[derive(Default)]
struct Visited {
    /// Pairs of lists and of objects, by address. A second visit stops the recursion for recursive
    /// types.
    taken: Pairs,
    /// Narrowings of the completed pairs in `taken`, with paths relative to the pair. A type that
    /// is used at several places narrows each of them.
    narrower: HashMap<(*const TypeKind, *const TypeKind), Vec<Narrowing>>,
}

struct ContractComparison<'a> {
    /// The message to compare for; `None` for both.
    message: Option<Message>,
    /// Pairs known to be compatible without narrowings.
    proven: &'a Pairs,
    /// Whether incompatibilities narrow: within alternatives that no test distinguishes.
    is_lenient: bool,
    /// Visited pairs, of strict and of lenient comparisons.
    visited: [Visited; 2],
    /// All pairs, processed or queued; the first is the root.
    pairs: Vec<TypePair<'a>>,
    current: usize,
    /// The path from the current pair to the current values.
    steps: Vec<String>,
    narrowings: Vec<Narrowing>,
}

impl<'a> ContractComparison<'a> {
    /// Compares the values that `step` leads to, now or queued.
    fn step(&mut self, step: &str, from: TypeIn<'a>, to: TypeIn<'a>) -> Compared {
        self.steps.push(step.to_owned());
        // Beyond the limit, queue the pair instead of recursing.
        let result = if self.steps.len() < STEPS_MAX {
            let compared = self.types(from, to);
            self.settle(compared).map_err(|why| why.prefixed_with(step))
        } else {
            let (steps, is_lenient) = (self.steps.clone(), self.is_lenient);
            self.pairs.push(TypePair { from, to, parent: self.current, steps, is_lenient });
            Ok(())
        };
        self.steps.pop();
        result
    }

    /// Records an incompatibility as a narrowing of the current place, if the comparison is lenient.
    fn settle(&mut self, compared: Compared) -> Compared {
        let why = match compared {
            Err(why) if self.is_lenient => why,
            other => return other,
        };
        let is_of_target = matches!(why.mismatch, Mismatch::Missing | Mismatch::MayBeAbsent);
        let found = Narrowing::of_both_messages(why.mismatch.to_string());
        let member = (!why.path.is_empty()).then_some(why.path.as_str());
        self.narrow(member, Narrowing { is_of_target, ..found });
        Ok(())
    }

    fn visited(&mut self) -> &mut Visited {
        &mut self.visited[usize::from(self.is_lenient)]
    }

    /// Extends the path of a reason from the current pair to the root.
    fn seen_from_root(&self, mut why: Difference) -> Difference {
        let mut at = self.current;
        while at > 0 {
            why = self.pairs[at].steps.iter().rev().fold(why, |why, step| why.prefixed_with(step));
            at = self.pairs[at].parent;
        }
        why
    }

    /// Records a narrowing of the current place or one of its members.
    fn narrow(&mut self, member: Option<&str>, found: Narrowing) {
        let is_of_another = self.message.is_some_and(|message| !found.concerns(message));
        if is_of_another {
            return;
        }
        let place = member.into_iter().fold(self.place(), below);
        self.note(Narrowing { path: place, ..found });
    }

    fn note(&mut self, found: Narrowing) {
        if self.narrowings.len() < NARROWINGS_MAX {
            self.narrowings.push(found);
            return;
        }
        // The outermost member of the place stands for all others below it.
        let steps = found.path.match_indices('.').map(|(at, _)| at).nth(1);
        let path = found.path[..steps.unwrap_or(found.path.len())].to_owned();
        let others = Narrowing { path, ..Narrowing::of_both_messages("and others".to_owned()) };
        if !self.narrowings[NARROWINGS_MAX..].contains(&others) {
            self.narrowings.push(others);
        }
    }

    /// Returns the path of the current place.
    fn place(&self) -> String {
        let mut ways = vec![&self.steps];
        let mut at = self.current;
        while at > 0 {
            ways.push(&self.pairs[at].steps);
            at = self.pairs[at].parent;
        }
        ways.into_iter().rev().flatten().map(String::as_str).fold("$".to_owned(), below)
    }

    /// Records the narrowings of a pair that was compared before at the current place. A pair with
    /// an incomplete comparison has no narrowings yet; a recursive occurrence adds no others.
    fn narrow_again(&mut self, pair: (*const TypeKind, *const TypeKind)) {
        let known = self.visited().narrower.get(&pair).cloned().unwrap_or_default();
        if known.is_empty() {
            return;
        }
        let place = self.place();
        for found in known {
            self.note(Narrowing { path: format!("{place}{}", found.path), ..found });
        }
    }

    /// Stores the narrowings from index `mark` on for the pair at the current place.
    fn remember(&mut self, pair: (*const TypeKind, *const TypeKind), mark: usize) {
        let place = match self.narrowings.get(mark..) {
            None | Some([]) => return,
            Some(_) => self.place(),
        };
        let own = self.narrowings[mark..].iter().filter_map(|found| {
            Some(Narrowing { path: found.path.strip_prefix(&place)?.to_owned(), ..found.clone() })
        });
        let own = own.collect();
        self.visited().narrower.insert(pair, own);
    }

    fn types(&mut self, from: TypeIn<'a>, to: TypeIn<'a>) -> Compared {
        let (source, target) = (from.types.resolve(from.ty), to.types.resolve(to.ty));
        // `Any` is always nullable, so it is tested before nullability.
        if matches!(source.kind, TypeKind::Any) || matches!(target.kind, TypeKind::Any) {
            return self.overlapping(from, to);
        }
        if source.nullable && !target.nullable {
            let is_null = Err(Mismatch::Null { to: to.ty.to_string() }.into());
            self.settle(is_null)?;
        }
        self.kinds([from, to], source.kind, target.kind)
    }

    fn kinds(&mut self, ends: Ends<'a>, source: &'a TypeKind, target: &'a TypeKind) -> Compared {
        // Shapes are usually applied to the types that they are declared for.
        if std::ptr::eq(source, target) {
            return Ok(());
        }
        let holds_others = matches!(source, TypeKind::Array(_) | TypeKind::Object(_) | TypeKind::Choice(_));
        let pair = (std::ptr::from_ref(source), std::ptr::from_ref(target));
        if holds_others && self.proven.contains(&pair) {
            return Ok(());
        }
        // Insert the pair before comparing its parts, so that a recursive type finds itself.
        if holds_others && !self.visited().taken.insert(pair) {
            self.narrow_again(pair);
            return Ok(());
        }
        let mark = self.narrowings.len();
        let compared = self.parts(ends, source, target);
        self.settle(compared)?;
        if holds_others {
            self.remember(pair, mark);
        }
        Ok(())
    }

    fn parts(&mut self, ends: Ends<'a>, source: &'a TypeKind, target: &'a TypeKind) -> Compared {
        let [from, to] = ends;
        match (source, target) {
            // Nullability was compared before.
            (TypeKind::Null, _) => Ok(()),
            (TypeKind::OneOf(alternatives), _) => {
                alternatives.iter().try_for_each(|one| self.one_alternative(from.types.at(one), to))
            }
            (_, TypeKind::OneOf(alternatives)) => self.among_alternatives(ends, alternatives),
            (TypeKind::Scalar(a), TypeKind::Scalar(b)) => {
                self.narrow_values(None, scalars::compare(a, b)?);
                Ok(())
            }
            (TypeKind::Array(a), TypeKind::Array(b)) => {
                self.narrow_values(None, list_bounds(a, b));
                self.step("[]", from.types.at(&a.items), to.types.at(&b.items))
            }
            (TypeKind::Object(a), TypeKind::Object(b)) => self.objects(ends, a, b),
            (TypeKind::Choice(a), TypeKind::Choice(b)) => self.choices(ends, a, b),
            (TypeKind::Choice(a), TypeKind::Object(_)) => {
                a.alternatives.iter().try_for_each(|one| self.one_alternative(from.types.at(one), to))
            }
            // The declared members of the object must select one alternative.
            (TypeKind::Object(a), TypeKind::Choice(b)) => match matching_alternative(from, a, b) {
                Some(one) => {
                    self.narrow_values(None, other_alternatives(a, b));
                    self.one_alternative(from, to.types.at(one))
                }
                None => Err(kind(from, to)),
            },
            _ => Err(kind(from, to)),
        }
    }

    /// Compares objects with discriminators on both sides. Each alternative of the source is
    /// compared with those that its discriminator values select in the target, or with the one of
    /// the same own field.
    fn choices(&mut self, [from, to]: Ends<'a>, a: &'a Choice, b: &'a Choice) -> Compared {
        for (at, one) in a.alternatives.iter().enumerate() {
            let targets = counterparts(&a.test, at, &b.test).ok_or_else(|| kind(from, to))?;
            for target in targets {
                self.one_alternative(from.types.at(one), to.types.at(&b.alternatives[target]))?;
            }
        }
        Ok(())
    }

    /// Compares one alternative of the source. Nullability was compared for all alternatives
    /// together.
    fn one_alternative(&mut self, from: TypeIn<'a>, to: TypeIn<'a>) -> Compared {
        let (source, target) = (from.types.resolve(from.ty), to.types.resolve(to.ty));
        match (source.kind, target.kind) {
            (TypeKind::Any, _) | (_, TypeKind::Any) => self.overlapping(from, to),
            _ => self.kinds([from, to], source.kind, target.kind),
        }
    }

    /// Compares alternatives that no test distinguishes. The value of such a type is any value, so none
    /// is incompatible for certain, and each difference narrows.
    fn overlapping(&mut self, from: TypeIn<'a>, to: TypeIn<'a>) -> Compared {
        let [Some(sources), Some(targets)] = [from, to].map(alternatives_of) else { return Ok(()) };
        let was_lenient = std::mem::replace(&mut self.is_lenient, true);
        if takes_null(from) && !takes_null(to) {
            self.narrow_values(None, vec!["null".to_owned()]);
        }
        for (at, source) in sources.into_iter().enumerate() {
            match nearest(source, at, &targets) {
                Some(target) => self.one_alternative(source, target)?,
                None => self.narrow_values(None, vec![format!("values that are {}", source.ty)]),
            }
        }
        self.is_lenient = was_lenient;
        Ok(())
    }

    /// Alternatives of the target differ in JSON kind, so at most one can be compatible.
    fn among_alternatives(&mut self, [from, to]: Ends<'a>, alternatives: &'a [Type]) -> Compared {
        let wanted = from.types.json_kinds(from.ty);
        let one = alternatives.iter().find(|one| {
            let kinds = to.types.json_kinds(one);
            wanted.iter().all(|kind| kinds.contains(kind))
        });
        match one {
            Some(one) => self.one_alternative(from, to.types.at(one)),
            None => Err(kind(from, to)),
        }
    }

    /// Records values of the current place, or of one of its members, that the target excludes.
    fn narrow_values(&mut self, member: Option<&str>, all: Vec<String>) {
        for values in all {
            self.narrow(member, Narrowing::of_both_messages(values));
        }
    }

    /// Records narrowings of members that only one side has, that occur in only one message, or
    /// that have different defaults.
    fn members(&mut self, a: &Object, b: &Object) {
        // In requests, the target ignores these fields of the source.
        for field in a.fields.iter().filter(|field| field.access != Access::ReadOnly) {
            let why = match b.field(&field.name) {
                Some(target) if target.access == Access::ReadOnly => "read-only on the other side",
                None if matches!(b.additional, Additional::Open) => "not declared on the other side",
                _ => continue,
            };
            self.narrow(Some(&field.name), Narrowing::only_in(why, Message::Request));
        }
        // In responses, no source fills these optional fields of the target.
        let optional = b.fields.iter().filter(|field| !field.required);
        for field in optional.filter(|field| field.access != Access::WriteOnly) {
            let why = match a.field(&field.name) {
                Some(source) if source.access == Access::WriteOnly => "never in answers of the other side",
                None if matches!(a.additional, Additional::Of(_)) => {
                    "only among further members of the other side"
                }
                None => "nothing on the other side fills it",
                _ => continue,
            };
            let found = Narrowing::only_in(why, Message::Answer);
            self.narrow(Some(&field.name), Narrowing { is_of_target: true, ..found });
        }
        // An absent field has another meaning for the other service.
        for field in a.fields.iter().filter(|field| !field.required) {
            let target = b.field(&field.name).and_then(|target| target.default.as_deref());
            if let Some(found) = defaults(field.default.as_deref(), target) {
                self.narrow(Some(&field.name), found);
            }
        }
    }

    /// Compares members that the source does not declare.
    fn others(&mut self, [from, to]: Ends<'a>, a: &'a Object, b: &'a Object) -> Compared {
        match (&a.additional, &b.additional) {
            (Additional::Of(a), Additional::Of(b)) => self.step("*", from.types.at(a), to.types.at(b))?,
            (Additional::Of(_), Additional::Closed) => {
                self.settle(Err(Difference::from(Mismatch::Undeclared).prefixed_with("*")))?;
            }
            (Additional::Open, Additional::Closed) => {
                let values = "members that the other side does not take".to_owned();
                self.narrow_values(Some("*"), vec![values]);
            }
            (Additional::Open, Additional::Of(ty)) => {
                self.narrow_values(Some("*"), vec![format!("members that are no {ty}")]);
            }
            (Additional::Closed, _) | (_, Additional::Open) => {}
        }
        // The undeclared members of a map may have the names of declared members of the target.
        let Additional::Of(of) = &a.additional else { return Ok(()) };
        let of = from.types.at(of);
        for field in b.fields.iter().filter(|field| a.field(&field.name).is_none()) {
            self.narrow_values(Some(&field.name), excluded_values(of, to.types.at(&field.ty)));
        }
        Ok(())
    }

    /// Checks a required field of the target: the source must always have it in each message that
    /// contains the field.
    fn check_required(&mut self, a: &Object, wanted: &Field) -> Compared {
        let lacks = |message: Message| {
            let source = a.field(&wanted.name).filter(|field| field.access.is_in(message));
            match source {
                // The target does not have the field in this message.
                _ if !wanted.access.is_in(message) => None,
                None => Some(Mismatch::Missing),
                Some(field) if field.required => None,
                Some(_) => Some(Mismatch::MayBeAbsent),
            }
        };
        let (mismatch, only_in) = match self.message {
            Some(message) => match lacks(message) {
                None => return Ok(()),
                Some(mismatch) => return Err(Difference::from(mismatch).prefixed_with(&wanted.name)),
            },
            None => match (lacks(Message::Request), lacks(Message::Answer)) {
                (None, None) => return Ok(()),
                (Some(mismatch), Some(_)) => {
                    return Err(Difference::from(mismatch).prefixed_with(&wanted.name));
                }
                // Incompatible in one message only: a narrowing of that message.
                (Some(mismatch), None) => (mismatch, Message::Request),
                (None, Some(mismatch)) => (mismatch, Message::Answer),
            },
        };
        let why = match mismatch {
            Mismatch::MayBeAbsent => "required, and the other side may leave it out",
            _ => "required, and nothing on the other side fills it",
        };
        let found = Narrowing::only_in(why, only_in);
        self.narrow(Some(&wanted.name), Narrowing { is_of_target: true, ..found });
        Ok(())
    }

    fn objects(&mut self, ends: Ends<'a>, a: &'a Object, b: &'a Object) -> Compared {
        let [from, to] = ends;
        for wanted in b.fields.iter().filter(|field| field.required) {
            let checked = self.check_required(a, wanted);
            self.settle(checked)?;
        }
        let message = self.message;
        let is_sent = |field: &&Field| message.is_none_or(|message| field.access.is_in(message));
        for field in a.fields.iter().filter(is_sent) {
            let target = match (b.field(&field.name), &b.additional) {
                (Some(target), _) => &target.ty,
                (None, Additional::Of(ty)) => ty,
                // An open target accepts any value; `members` records the narrowing.
                (None, Additional::Open) => continue,
                (None, Additional::Closed) => {
                    self.settle(Err(Difference::from(Mismatch::Undeclared).prefixed_with(&field.name)))?;
                    continue;
                }
            };
            self.step(&field.name, from.types.at(&field.ty), to.types.at(target))?;
        }
        self.members(a, b);
        self.narrow_values(None, scalars::unread(&a.unread, &b.unread));
        self.others(ends, a, b)
    }
}

/// Returns the alternatives of a type, also of one that is any value because no test distinguishes them.
/// Returns `None` if a value of any structure belongs to the type.
pub fn alternatives_of(of: TypeIn<'_>) -> Option<Vec<TypeIn<'_>>> {
    let mut all = Vec::new();
    add_alternatives(of, &mut HashSet::new(), &mut all).then_some(all)
}

/// Adds the alternatives of a type, each type of alternatives once: it may lead to itself. Returns
/// whether the structure of all values is known.
fn add_alternatives<'a>(
    of: TypeIn<'a>,
    visited: &mut HashSet<*const TypeKind>,
    all: &mut Vec<TypeIn<'a>>,
) -> bool {
    let resolved = of.types.resolve(of.ty);
    let alternatives = match resolved.kind {
        TypeKind::Any => match of.types.overlapping(resolved) {
            Some(overlapping) => overlapping.kind.alternatives(),
            None => return false,
        },
        TypeKind::OneOf(_) | TypeKind::Choice(_) => resolved.kind.alternatives(),
        _ => {
            all.push(of);
            return true;
        }
    };
    if !visited.insert(std::ptr::from_ref(resolved.kind)) {
        return true;
    }
    alternatives.iter().all(|one| add_alternatives(of.types.at(one), visited, all))
}

fn takes_null(of: TypeIn<'_>) -> bool {
    let resolved = of.types.resolve(of.ty);
    of.types.overlapping(resolved).map_or(resolved.nullable, |all| all.nullable)
}

/// Minimum share of equal members of two objects that are versions of each other.
const NEAR: f64 = 0.3;

/// Returns the alternative that is most likely another version of a type, which is the alternative at
/// an index: the one of the same name, otherwise the most similar one.
fn nearest<'a>(of: TypeIn<'a>, at: usize, among: &[TypeIn<'a>]) -> Option<TypeIn<'a>> {
    let name = |ty: &Type| match &ty.kind {
        TypeKind::Named(reference) => Some(Arc::clone(&reference.name)),
        _ => None,
    };
    let own = name(of.ty);
    let same = among.iter().find(|other| own.is_some() && name(other.ty) == own);
    let alike = || {
        let scored = among.iter().enumerate().map(|(other, ty)| (similarity(of, *ty), other == at, ty));
        let best = scored.filter(|(score, ..)| *score > NEAR);
        // Of equally similar ones, the one at the same index.
        best.reduce(|best, one| if (one.0, one.1) > (best.0, best.1) { one } else { best }).map(|best| best.2)
    };
    same.or_else(alike).copied()
}

/// Returns the similarity of two types, from 0 to 1.
fn similarity(from: TypeIn<'_>, to: TypeIn<'_>) -> f64 {
    match (from.kind(), to.kind()) {
        (TypeKind::Object(a), TypeKind::Object(b)) => {
            let both = a.fields.iter().filter(|field| b.field(&field.name).is_some()).count();
            let all = a.fields.len() + b.fields.len() - both;
            if all == 0 { 1.0 } else { both as f64 / all as f64 }
        }
        (TypeKind::Scalar(a), TypeKind::Scalar(b)) => match scalars::compare(a, b) {
            Ok(values) if values.is_empty() => 1.0,
            Ok(_) => 0.8,
            Err(_) if a.kind == b.kind => 0.5,
            Err(_) => 0.0,
        },
        (TypeKind::Array(a), TypeKind::Array(b)) => {
            let [a, b] = [from.types.at(&a.items), to.types.at(&b.items)];
            // Lists of lists are alike, because they may lead to themselves.
            let are_lists = [a, b].iter().all(|item| matches!(item.kind(), TypeKind::Array(_)));
            if are_lists || nearest(a, 0, &[b]).is_some() { 1.0 } else { 0.5 }
        }
        (TypeKind::Null, TypeKind::Null) => 1.0,
        _ => 0.0,
    }
}

/// Appends a step to a path.
fn below(path: String, step: &str) -> String {
    match step {
        "[]" => path + "[*]",
        name => format!("{path}.{name}"),
    }
}

/// Compares two defaults. One default alone is no narrowing: the other service's behavior is
/// unknown.
pub(crate) fn defaults(source: Option<&str>, target: Option<&str>) -> Option<Narrowing> {
    let (own, other) = source.zip(target).filter(|(own, other)| own != other)?;
    let values = format!("left out: it means {own}, and {other} on the other side");
    Some(Narrowing::only_in(&values, Message::Request))
}

/// Describes values of one type that do not belong to another, without comparing the contents of
/// lists and objects.
fn excluded_values(from: TypeIn<'_>, to: TypeIn<'_>) -> Vec<String> {
    let (source, target) = (from.types.resolve(from.ty), to.types.resolve(to.ty));
    let no_value = || vec![format!("values that are no {}", to.ty)];
    match (source.kind, target.kind) {
        (TypeKind::Scalar(a), TypeKind::Scalar(b)) => scalars::compare(a, b).unwrap_or_else(|_| no_value()),
        (_, TypeKind::Any) | (TypeKind::Any, _) => Vec::new(),
        _ => {
            let taken = to.types.json_kinds(to.ty);
            match from.types.json_kinds(from.ty).iter().all(|kind| taken.contains(kind)) {
                true => Vec::new(),
                false => no_value(),
            }
        }
    }
}

/// Returns the alternatives of choice `b` that alternative `at` of choice `a` may become. Returns
/// `None` if one of its values selects no alternative.
fn counterparts(a: &Test, at: usize, b: &Test) -> Option<Vec<usize>> {
    match (a, b) {
        (Test::Constant { member, values }, Test::Constant { member: other, values: known })
            if member == other =>
        {
            let mine = values.iter().filter(|(_, of)| *of == at);
            let mut targets = Vec::new();
            for (value, _) in mine {
                let (_, target) = known.iter().find(|(known, _)| known == value)?;
                if !targets.contains(target) {
                    targets.push(*target);
                }
            }
            Some(targets)
        }
        (Test::OwnField(mine), Test::OwnField(known)) => {
            let target = known.iter().position(|known| *known == mine[at])?;
            Some(vec![target])
        }
        _ => None,
    }
}

/// Returns the alternative that the type of an object implies.
fn matching_alternative<'a>(from: TypeIn<'a>, object: &Object, choice: &'a Choice) -> Option<&'a Type> {
    // Only a required member with a single value identifies an alternative.
    let listed = |name: &str| {
        let field = object.field(name).filter(|field| field.required)?;
        match from.types.resolve(&field.ty).kind {
            TypeKind::Scalar(Scalar { values: Some(values), .. }) if !values.open => {
                match values.values.as_slice() {
                    [only] => Some(only.clone()),
                    _ => None,
                }
            }
            _ => None,
        }
    };
    let has = |name: &str| object.field(name).is_some_and(|field| field.required);
    choice.pick(listed, has).map(|at| &choice.alternatives[at])
}

/// Describes values of an object that belong to another alternative than the object does: an optional
/// member selects it.
fn other_alternatives(object: &Object, choice: &Choice) -> Vec<String> {
    let Test::OwnField(own) = &choice.test else { return Vec::new() };
    let optional =
        own.iter().flatten().filter(|name| object.field(name).is_some_and(|field| !field.required));
    optional.map(|name| format!("values with `{name}`, which select another alternative")).collect()
}

fn kind(from: TypeIn<'_>, to: TypeIn<'_>) -> Difference {
    Mismatch::Kind { from: from.ty.to_string(), to: to.ty.to_string() }.into()
}

impl From<Mismatch> for Difference {
    fn from(mismatch: Mismatch) -> Difference {
        Difference { path: String::new(), mismatch }
    }
}

impl Difference {
    /// Returns the reason with its path relative to the value that contains `step`.
    fn prefixed_with(mut self, step: &str) -> Difference {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path)?;
        }
        self.mismatch.fmt(f)
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Null { to } => write!(f, "it may be null, and {to} may not"),
            Mismatch::Kind { from, to } => write!(f, "{from} is not {to}"),
            Mismatch::Format { from, to } => write!(f, "a `{from}` is no `{to}`"),
            Mismatch::Missing => f.write_str("it is required, and there is none"),
            Mismatch::MayBeAbsent => f.write_str("it is required, and may be absent"),
            Mismatch::Undeclared => f.write_str("there is no such field on the other side"),
            Mismatch::Values(values) => {
                write!(f, "these values are not listed on the other side: {}", values.join(", "))
            }
            Mismatch::Unbounded { from, to } => write!(f, "{from} may hold values outside {to}"),
        }
    }
}

impl std::error::Error for Difference {}
