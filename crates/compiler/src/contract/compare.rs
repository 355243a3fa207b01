//! The one comparison of types across two contracts: whether every value of one type is a value of another.
//!
//! Three outcomes. Equal, or a wider target: nothing to say. A narrower target takes some of the values only: each such
//! place is a [`Narrowing`], which a report names as a loss. No common ground: the first reason, a [`Why`].
//!
//! The rules:
//! - `any` goes into everything and everything into `any`: a shape that is not shown is not checked.
//! - A nullable type does not go into one that is not.
//! - Scalars go into their own kind; an integer goes into a number. A string never goes into a number, nor the other way,
//!   whatever it holds: that is a conversion. Formats and bounds: [`scalars`].
//! - Into listed values that are closed go only listed values that are closed and all among them. Into an open list goes
//!   every value of the kind.
//! - Lists go by their items; a bound on their length narrows.
//! - Keywords that types do not show are compared as texts: one that the target alone has narrows.
//! - A required field needs a required field. An optional one may be missing, and if it is there it goes by its type. A
//!   declared field that the target does not declare needs a target that is open, or whose additional type takes it. In a
//!   request it narrows all the same, since an open target passes over it; in an answer an optional field without a source
//!   does. Fields that the source does not declare narrow where the target is closed or gives them a type.
//! - A `readOnly` field is in answers only, a `writeOnly` one in requests only, on either side: a comparison for one message
//!   goes by what that message has. A comparison for both messages takes what only one of them forbids for narrower.
//! - Two defaults of one optional field narrow requests: the service takes another value for one that is left out.
//! - Of alternatives on the source side all must go; on the target side one suffices. Objects that a test tells apart go to
//!   the one that the same test finds on the other side.
//! - Recursive types go when nothing on the way round forbids it.

mod scalars;

pub(crate) use scalars::{exclusions, is_out_of_bounds, unread};

use super::types::{
    Access, Additional, Array, Choice, Field, Keyword, Object, Scalar, Test, Type, TypeIn, TypeKind,
};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fmt;
use switchback_plan::Message;

/// The first reason why a type does not go into another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// Where within the value, such as `box.parts[].key`; empty for the value itself.
    pub path: String,
    /// What stands against it.
    pub mismatch: Mismatch,
}

/// What stands against taking a value of one type for another.
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
    /// The formats have no value in common.
    Format {
        /// The source's.
        from: String,
        /// The target's.
        to: String,
    },
    /// The source does not have a required field.
    Missing,
    /// The source may leave out a required field.
    MayBeAbsent,
    /// The target does not have a field, and is closed.
    Undeclared,
    /// Values that the target does not list.
    Values(Vec<String>),
    /// The target lists its values, the source does not bound them.
    Unbounded {
        /// The source, for messages.
        from: String,
        /// The target, for messages.
        to: String,
    },
}

/// Values that a narrower target does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowing {
    /// Their place within the value, such as `$.box.parts[*].key`.
    pub path: String,
    /// Which values, such as `values above 100`.
    pub values: String,
    /// The only message in which it matters; none where it does in both.
    pub only_in: Option<Message>,
    /// Whether the target has the place, and the source has nothing for it.
    pub is_of_target: bool,
}

impl Narrowing {
    /// Values of the place itself, in both messages.
    pub(crate) fn of(values: String) -> Narrowing {
        Narrowing { path: "$".to_owned(), values, only_in: None, is_of_target: false }
    }

    fn only_in(values: &str, message: Message) -> Narrowing {
        Narrowing { only_in: Some(message), ..Narrowing::of(values.to_owned()) }
    }

    /// Whether it matters in this message.
    pub fn concerns(&self, message: Message) -> bool {
        self.only_in.is_none_or(|only| only == message)
    }
}

/// Pairs of types that were found to be equal or wider, by their addresses, and the narrowings of others: for many comparisons
/// of types of the same two contracts. The contracts must not move while this is used. Types that are made for one comparison
/// have no place here.
#[derive(Debug, Default)]
pub struct Proven {
    requests: ProvenFor,
    answers: ProvenFor,
}

/// [`Proven`] for one message.
#[derive(Debug, Default)]
struct ProvenFor {
    pairs: Pairs,
    narrower: HashMap<(*const TypeKind, *const TypeKind), Vec<Narrowing>>,
}

/// [`compare`], which looks at no pair of types again that `proven` has.
pub fn compare_once(
    from: TypeIn<'_>,
    to: TypeIn<'_>,
    message: Message,
    proven: &mut Proven,
) -> Result<Vec<Narrowing>, Why> {
    let proven = match message {
        Message::Request => &mut proven.requests,
        Message::Answer => &mut proven.answers,
    };
    let (source, target) = (from.types.resolve(from.ty), to.types.resolve(to.ty));
    let root = (std::ptr::from_ref(source.kind), std::ptr::from_ref(target.kind));
    if let Some(known) = proven.narrower.get(&root).filter(|_| !source.nullable || target.nullable) {
        return Ok(known.clone());
    }
    let (taken, narrowings) = compare_from(Root::Whole, from, to, Some(message), &proven.pairs)?;
    if narrowings.is_empty() {
        // Nothing was found against any of them: pairs that wait for one another go together.
        proven.pairs.extend(taken);
    } else {
        proven.narrower.insert(root, narrowings.clone());
    }
    Ok(narrowings)
}

/// Compares two types by the rules above, for one message or for both.
pub fn compare(from: TypeIn<'_>, to: TypeIn<'_>, message: Option<Message>) -> Result<Vec<Narrowing>, Why> {
    compare_from(Root::Whole, from, to, message, &HashSet::new()).map(|(_, narrowings)| narrowings)
}

/// [`compare`] where a narrower target does not matter.
pub fn assignable(from: TypeIn<'_>, to: TypeIn<'_>, message: Option<Message>) -> Result<(), Why> {
    compare(from, to, message).map(drop)
}

/// [`compare`] where null at the top does not matter.
pub(crate) fn compare_but_for_null(
    from: TypeIn<'_>,
    to: TypeIn<'_>,
    message: Option<Message>,
) -> Result<Vec<Narrowing>, Why> {
    compare_from(Root::ButForNull, from, to, message, &HashSet::new()).map(|(_, narrowings)| narrowings)
}

/// The narrowings of a list itself, without its elements; none where one of the types is no list.
pub(crate) fn compare_lists(from: TypeIn<'_>, to: TypeIn<'_>) -> Vec<Narrowing> {
    match (from.types.resolve(from.ty).kind, to.types.resolve(to.ty).kind) {
        (TypeKind::Array(a), TypeKind::Array(b)) => {
            list_bounds(a, b).into_iter().map(Narrowing::of).collect()
        }
        _ => Vec::new(),
    }
}

/// The values of a list that a narrower one excludes, by its bounds and by keywords that types do not show.
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

/// [`assignable`] in one message at least, where null at the top does not matter.
pub(crate) fn assignable_but_for_null(from: TypeIn<'_>, to: TypeIn<'_>) -> Result<(), Why> {
    compare_but_for_null(from, to, None).map(drop)
}

/// Whether null counts where a comparison starts.
#[derive(Clone, Copy, PartialEq)]
enum Root {
    Whole,
    ButForNull,
}

type Pairs = HashSet<(*const TypeKind, *const TypeKind)>;

/// Narrowings of one comparison; the last of more says that there are others.
const NARROWINGS_MAX: usize = 32;

/// The pairs of types that were looked at, and what narrows.
fn compare_from(
    root: Root,
    from: TypeIn<'_>,
    to: TypeIn<'_>,
    message: Option<Message>,
    proven: &Pairs,
) -> Result<(Pairs, Vec<Narrowing>), Why> {
    let first = Pair { from, to, parent: 0, steps: Vec::new() };
    let mut comparison = Comparison {
        message,
        proven,
        taken: HashSet::new(),
        narrower: HashMap::new(),
        pairs: vec![first],
        current: 0,
        steps: Vec::new(),
        narrowings: Vec::new(),
    };
    while let Some(pair) = comparison.pairs.get(comparison.current) {
        let (from, to) = (pair.from, pair.to);
        let is_root = comparison.current == 0 && root == Root::ButForNull;
        let compared = match is_root {
            true => comparison.one_alternative(from, to),
            false => comparison.types(from, to),
        };
        compared.map_err(|why| comparison.seen_from_root(why))?;
        comparison.current += 1;
    }
    Ok((comparison.taken, comparison.narrowings))
}

/// Steps into a value after which the rest waits for its turn: chains of named types may be as long as the
/// document, and must not need a stack as deep.
const STEPS_MAX: usize = 32;

/// Two types to be compared, and the way to them from the pair that they were met in.
struct Pair<'a> {
    from: TypeIn<'a>,
    to: TypeIn<'a>,
    parent: usize,
    steps: Vec<String>,
}

struct Comparison<'a> {
    /// The message that it is for; none for both.
    message: Option<Message>,
    /// Pairs of which it is known that they go.
    proven: &'a Pairs,
    /// Pairs of lists and of objects that are being compared or were found to go, by address: meeting one
    /// again is no news, and the way round a recursive type ends here.
    taken: Pairs,
    /// By pair of `taken` that was compared to its end: its narrowings, with paths from its values on. A type that is used at
    /// several places is narrower at each.
    narrower: HashMap<(*const TypeKind, *const TypeKind), Vec<Narrowing>>,
    /// All pairs that had or await their turn; the first is what was asked.
    pairs: Vec<Pair<'a>>,
    current: usize,
    /// The way from the current pair to the values in hand.
    steps: Vec<String>,
    narrowings: Vec<Narrowing>,
}

impl<'a> Comparison<'a> {
    /// What `step` leads to on both sides, now or in its turn.
    fn step(&mut self, step: &str, from: TypeIn<'a>, to: TypeIn<'a>) -> Result<(), Why> {
        self.steps.push(step.to_owned());
        let result = if self.steps.len() < STEPS_MAX {
            self.types(from, to).map_err(|why| why.under(step))
        } else {
            let steps = self.steps.clone();
            self.pairs.push(Pair { from, to, parent: self.current, steps });
            Ok(())
        };
        self.steps.pop();
        result
    }

    /// A reason found in the current pair, with the whole way to it.
    fn seen_from_root(&self, mut why: Why) -> Why {
        let mut at = self.current;
        while at > 0 {
            why = self.pairs[at].steps.iter().rev().fold(why, |why, step| why.under(step));
            at = self.pairs[at].parent;
        }
        why
    }

    /// Notes values that the target does not take, at the place in hand or at a member of it.
    fn narrow(&mut self, member: Option<&str>, found: Narrowing) {
        let is_of_another = self.message.is_some_and(|message| !found.concerns(message));
        if is_of_another || self.narrowings.len() > NARROWINGS_MAX {
            return;
        }
        let place = member.into_iter().fold(self.place(), below);
        self.note(Narrowing { path: place, ..found });
    }

    fn note(&mut self, found: Narrowing) {
        match self.narrowings.len().cmp(&NARROWINGS_MAX) {
            Ordering::Less => self.narrowings.push(found),
            Ordering::Equal => self.narrowings.push(Narrowing::of("and others".to_owned())),
            Ordering::Greater => {}
        }
    }

    /// The place in hand, as a path.
    fn place(&self) -> String {
        let mut ways = vec![&self.steps];
        let mut at = self.current;
        while at > 0 {
            ways.push(&self.pairs[at].steps);
            at = self.pairs[at].parent;
        }
        ways.into_iter().rev().flatten().map(String::as_str).fold("$".to_owned(), below)
    }

    /// Notes the narrowings of a pair that was compared before, at the place in hand. A pair that is still being compared has
    /// none yet: what a recursive type holds of itself is as narrow as it is.
    fn narrow_again(&mut self, pair: (*const TypeKind, *const TypeKind)) {
        let known = self.narrower.get(&pair).cloned().unwrap_or_default();
        if known.is_empty() || self.narrowings.len() > NARROWINGS_MAX {
            return;
        }
        let place = self.place();
        for found in known {
            self.note(Narrowing { path: format!("{place}{}", found.path), ..found });
        }
    }

    /// Remembers the narrowings from `mark` on as those of the pair at the place in hand.
    fn remember(&mut self, pair: (*const TypeKind, *const TypeKind), mark: usize) {
        let place = match self.narrowings.get(mark..) {
            None | Some([]) => return,
            Some(_) => self.place(),
        };
        let own = self.narrowings[mark..].iter().filter_map(|found| {
            Some(Narrowing { path: found.path.strip_prefix(&place)?.to_owned(), ..found.clone() })
        });
        let own = own.collect();
        self.narrower.insert(pair, own);
    }

    fn types(&mut self, from: TypeIn<'a>, to: TypeIn<'a>) -> Result<(), Why> {
        let (source, target) = (from.types.resolve(from.ty), to.types.resolve(to.ty));
        if matches!(source.kind, TypeKind::Any) || matches!(target.kind, TypeKind::Any) {
            return Ok(());
        }
        if source.nullable && !target.nullable {
            return Err(Mismatch::Null { to: to.ty.to_string() }.into());
        }
        self.kinds(from, source.kind, to, target.kind)
    }

    fn kinds(
        &mut self,
        from: TypeIn<'a>,
        source: &'a TypeKind,
        to: TypeIn<'a>,
        target: &'a TypeKind,
    ) -> Result<(), Why> {
        // The same type: most shapes are used on the very types that they are of.
        if std::ptr::eq(source, target) {
            return Ok(());
        }
        let holds_others = matches!(source, TypeKind::Array(_) | TypeKind::Object(_) | TypeKind::Choice(_));
        let pair = (std::ptr::from_ref(source), std::ptr::from_ref(target));
        if holds_others && self.proven.contains(&pair) {
            return Ok(());
        }
        if holds_others && !self.taken.insert(pair) {
            self.narrow_again(pair);
            return Ok(());
        }
        let mark = self.narrowings.len();
        self.parts(from, source, to, target)?;
        if holds_others {
            self.remember(pair, mark);
        }
        Ok(())
    }

    fn parts(
        &mut self,
        from: TypeIn<'a>,
        source: &'a TypeKind,
        to: TypeIn<'a>,
        target: &'a TypeKind,
    ) -> Result<(), Why> {
        match (source, target) {
            (TypeKind::Null, _) => Ok(()),
            (TypeKind::OneOf(alternatives), _) => {
                alternatives.iter().try_for_each(|one| self.one_alternative(from.types.at(one), to))
            }
            (_, TypeKind::OneOf(alternatives)) => self.among_alternatives(from, to, alternatives),
            (TypeKind::Scalar(a), TypeKind::Scalar(b)) => {
                for found in scalars::compare(a, b)? {
                    self.narrow(None, found);
                }
                Ok(())
            }
            (TypeKind::Array(a), TypeKind::Array(b)) => {
                self.lengths(a, b);
                self.step("[]", from.types.at(&a.items), to.types.at(&b.items))
            }
            (TypeKind::Object(a), TypeKind::Object(b)) => self.objects(from, a, to, b),
            (TypeKind::Choice(a), TypeKind::Choice(b)) => self.choices(from, a, to, b),
            (TypeKind::Choice(a), TypeKind::Object(_)) => {
                a.alternatives.iter().try_for_each(|one| self.one_alternative(from.types.at(one), to))
            }
            (TypeKind::Object(a), TypeKind::Choice(b)) => match meant(from, a, b) {
                Some(one) => self.one_alternative(from, to.types.at(one)),
                None => Err(kind(from, to)),
            },
            _ => Err(kind(from, to)),
        }
    }

    /// Objects told apart on both sides: each goes to the one that its value means there, or, told apart by fields of their
    /// own, to the one of the same field.
    fn choices(&mut self, from: TypeIn<'a>, a: &'a Choice, to: TypeIn<'a>, b: &'a Choice) -> Result<(), Why> {
        for (at, one) in a.alternatives.iter().enumerate() {
            let targets = counterparts(&a.test, at, &b.test).ok_or_else(|| kind(from, to))?;
            for target in targets {
                self.one_alternative(from.types.at(one), to.types.at(&b.alternatives[target]))?;
            }
        }
        Ok(())
    }

    /// One alternative of the source; null was compared for all of them together.
    fn one_alternative(&mut self, from: TypeIn<'a>, to: TypeIn<'a>) -> Result<(), Why> {
        let (source, target) = (from.types.resolve(from.ty), to.types.resolve(to.ty));
        match (source.kind, target.kind) {
            (TypeKind::Any, _) | (_, TypeKind::Any) => Ok(()),
            _ => self.kinds(from, source.kind, to, target.kind),
        }
    }

    /// Alternatives of the target differ by JSON kind, so at most one can take the source.
    fn among_alternatives(
        &mut self,
        from: TypeIn<'a>,
        to: TypeIn<'a>,
        alternatives: &'a [Type],
    ) -> Result<(), Why> {
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

    fn lengths(&mut self, a: &Array, b: &Array) {
        for values in list_bounds(a, b) {
            self.narrow(None, Narrowing::of(values));
        }
    }

    fn unread(&mut self, a: &[Keyword], b: &[Keyword]) {
        for values in scalars::unread(a, b) {
            self.narrow(None, Narrowing::of(values));
        }
    }

    /// Members that one side alone has, that go one way only, or that mean something else where they are left out.
    fn members(&mut self, a: &Object, b: &Object) {
        for field in a.fields.iter().filter(|field| field.access != Access::ReadOnly) {
            let why = match b.field(&field.name) {
                Some(target) if target.access == Access::ReadOnly => "read-only on the other side",
                None if matches!(b.additional, Additional::Open) => "not declared on the other side",
                _ => continue,
            };
            self.narrow(Some(&field.name), Narrowing::only_in(why, Message::Request));
        }
        let optional = b.fields.iter().filter(|field| !field.required);
        for field in optional.filter(|field| field.access != Access::WriteOnly) {
            let why = match a.field(&field.name) {
                Some(source) if source.access == Access::WriteOnly => "never in answers of the other side",
                None if !matches!(a.additional, Additional::Of(_)) => "nothing on the other side fills it",
                _ => continue,
            };
            let found = Narrowing::only_in(why, Message::Answer);
            self.narrow(Some(&field.name), Narrowing { is_of_target: true, ..found });
        }
        for field in a.fields.iter().filter(|field| !field.required) {
            let target = b.field(&field.name).and_then(|target| target.default.as_deref());
            if let Some(found) = defaults(field.default.as_deref(), target) {
                self.narrow(Some(&field.name), found);
            }
        }
    }

    /// Members that the source does not declare.
    fn others(&mut self, from: TypeIn<'a>, a: &'a Object, to: TypeIn<'a>, b: &'a Object) -> Result<(), Why> {
        match (&a.additional, &b.additional) {
            (Additional::Of(a), Additional::Of(b)) => self.step("*", from.types.at(a), to.types.at(b))?,
            (Additional::Of(_), Additional::Closed) => {
                return Err(Why::from(Mismatch::Undeclared).under("*"));
            }
            (Additional::Open, Additional::Closed) => {
                self.narrow(Some("*"), Narrowing::of("members that the other side does not take".to_owned()));
            }
            (Additional::Open, Additional::Of(ty)) => {
                self.narrow(Some("*"), Narrowing::of(format!("members that are no {ty}")));
            }
            (Additional::Closed, _) | (_, Additional::Open) => {}
        }
        let Additional::Of(of) = &a.additional else { return Ok(()) };
        let of = from.types.at(of);
        for field in b.fields.iter().filter(|field| a.field(&field.name).is_none()) {
            for values in apart(of, to.types.at(&field.ty)) {
                self.narrow(Some(&field.name), Narrowing::of(values));
            }
        }
        Ok(())
    }

    /// A required field of the target: in each message that has it, the source always has it.
    fn required(&mut self, a: &Object, wanted: &Field) -> Result<(), Why> {
        let lacks = |message: Message| {
            let source = a.field(&wanted.name).filter(|field| field.access.is_in(message));
            match source {
                _ if !wanted.access.is_in(message) => None,
                None => Some(Mismatch::Missing),
                Some(field) if field.required => None,
                Some(_) => Some(Mismatch::MayBeAbsent),
            }
        };
        let (mismatch, only_in) = match self.message {
            Some(message) => match lacks(message) {
                None => return Ok(()),
                Some(mismatch) => return Err(Why::from(mismatch).under(&wanted.name)),
            },
            None => match (lacks(Message::Request), lacks(Message::Answer)) {
                (None, None) => return Ok(()),
                (Some(mismatch), Some(_)) => return Err(Why::from(mismatch).under(&wanted.name)),
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

    fn objects(&mut self, from: TypeIn<'a>, a: &'a Object, to: TypeIn<'a>, b: &'a Object) -> Result<(), Why> {
        for wanted in b.fields.iter().filter(|field| field.required) {
            self.required(a, wanted)?;
        }
        let message = self.message;
        let is_sent = |field: &&Field| message.is_none_or(|message| field.access.is_in(message));
        for field in a.fields.iter().filter(is_sent) {
            let target = match (b.field(&field.name), &b.additional) {
                (Some(target), _) => &target.ty,
                (None, Additional::Of(ty)) => ty,
                (None, Additional::Open) => continue,
                (None, Additional::Closed) => {
                    return Err(Why::from(Mismatch::Undeclared).under(&field.name));
                }
            };
            self.step(&field.name, from.types.at(&field.ty), to.types.at(target))?;
        }
        self.members(a, b);
        self.unread(&a.unread, &b.unread);
        self.others(from, a, to, b)
    }
}

/// A path one step further.
fn below(path: String, step: &str) -> String {
    match step {
        "[]" => path + "[*]",
        name => format!("{path}.{name}"),
    }
}

/// Two defaults that are not the same. One alone leaves open what the other service does.
pub(crate) fn defaults(source: Option<&str>, target: Option<&str>) -> Option<Narrowing> {
    let (own, other) = source.zip(target).filter(|(own, other)| own != other)?;
    let values = format!("left out: it means {own}, and {other} on the other side");
    Some(Narrowing::only_in(&values, Message::Request))
}

/// Values of one type that are none of another, where that shows without looking into lists and objects.
fn apart(from: TypeIn<'_>, to: TypeIn<'_>) -> Vec<String> {
    let (source, target) = (from.types.resolve(from.ty), to.types.resolve(to.ty));
    let no_value = || vec![format!("values that are no {}", to.ty)];
    match (source.kind, target.kind) {
        (TypeKind::Scalar(a), TypeKind::Scalar(b)) => match scalars::compare(a, b) {
            Ok(found) => found.into_iter().map(|one| one.values).collect(),
            Err(_) => no_value(),
        },
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

/// The alternatives of one choice that an alternative of another may become. None when one of its values means nothing there.
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

/// The alternative that an object is, by what its type says about it.
fn meant<'a>(from: TypeIn<'a>, object: &Object, choice: &'a Choice) -> Option<&'a Type> {
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

fn kind(from: TypeIn<'_>, to: TypeIn<'_>) -> Why {
    Mismatch::Kind { from: from.ty.to_string(), to: to.ty.to_string() }.into()
}

impl From<Mismatch> for Why {
    fn from(mismatch: Mismatch) -> Why {
        Why { path: String::new(), mismatch }
    }
}

impl Why {
    /// The same reason, seen from the value that holds `step`.
    fn under(mut self, step: &str) -> Why {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path)?;
        }
        match &self.mismatch {
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

impl std::error::Error for Why {}
