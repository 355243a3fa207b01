//! Whether every value of one type is a value of another, across two contracts.
//!
//! The rules:
//! - `any` goes into everything and everything into `any`: a shape that is not shown is not checked.
//! - A nullable type does not go into one that is not.
//! - Scalars go into their own kind; an integer goes into a number. A string never goes into a number, nor
//!   the other way, whatever it holds: that is a conversion. `format` and bounds are not compared.
//! - Into listed values that are closed go only listed values that are closed and all among them. Into an
//!   open list goes every value of the kind.
//! - Lists go by their items.
//! - A required field needs a required field. An optional one may be missing, and if it is there it goes by
//!   its type. A declared field that the target does not declare needs a target that is open, or whose
//!   additional type takes it. Fields that the source does not declare are not compared.
//! - Of alternatives on the source side all must go; on the target side one suffices. Objects that a test tells apart go
//!   to the one that the same test finds on the other side.
//! - A required field that is `readOnly` or `writeOnly` in the target need not be in the source at all: one of the two ways
//!   it is never there.
//! - Recursive types go when nothing on the way round forbids it.

use super::types::{
    Access, Additional, Choice, Enum, Object, Scalar, ScalarKind, Test, Type, TypeIn, TypeKind,
};
use std::collections::HashSet;
use std::fmt;

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

/// Pairs of types that were found to go, by their addresses: for many comparisons of types of the same two contracts, which
/// must not move while this is used. Types that are made for one comparison have no place here.
#[derive(Debug, Default)]
pub struct Proven {
    pairs: Pairs,
}

/// [`assignable`], which looks at no pair of types again that `proven` has.
pub fn assignable_once(from: TypeIn<'_>, to: TypeIn<'_>, proven: &mut Proven) -> Result<(), Why> {
    let taken = compare(from, to, &proven.pairs)?;
    // Nothing was found against any of them: pairs that wait for one another go together.
    proven.pairs.extend(taken);
    Ok(())
}

/// Whether every value of `from` is a value of `to`, by the rules above.
pub fn assignable(from: TypeIn<'_>, to: TypeIn<'_>) -> Result<(), Why> {
    compare(from, to, &HashSet::new()).map(drop)
}

/// [`assignable`] where null at the top does not matter.
pub(crate) fn assignable_but_for_null(from: TypeIn<'_>, to: TypeIn<'_>) -> Result<(), Why> {
    let root = Root::ButForNull;
    compare_from(root, from, to, &HashSet::new()).map(drop)
}

/// Whether null counts where a comparison starts.
#[derive(Clone, Copy, PartialEq)]
enum Root {
    Whole,
    ButForNull,
}

type Pairs = HashSet<(*const TypeKind, *const TypeKind)>;

/// The pairs of types that were looked at.
fn compare(from: TypeIn<'_>, to: TypeIn<'_>, proven: &Pairs) -> Result<Pairs, Why> {
    compare_from(Root::Whole, from, to, proven)
}

fn compare_from(root: Root, from: TypeIn<'_>, to: TypeIn<'_>, proven: &Pairs) -> Result<Pairs, Why> {
    let first = Pair { from, to, parent: 0, steps: Vec::new() };
    let mut comparison =
        Comparison { proven, taken: HashSet::new(), pairs: vec![first], current: 0, steps: Vec::new() };
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
    Ok(comparison.taken)
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
    /// Pairs of which it is known that they go.
    proven: &'a Pairs,
    /// Pairs of lists and of objects that are being compared or were found to go, by address: meeting one
    /// again is no news, and the way round a recursive type ends here.
    taken: Pairs,
    /// All pairs that had or await their turn; the first is what was asked.
    pairs: Vec<Pair<'a>>,
    current: usize,
    /// The way from the current pair to the values in hand.
    steps: Vec<String>,
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
        if holds_others && (self.proven.contains(&pair) || !self.taken.insert(pair)) {
            return Ok(());
        }
        match (source, target) {
            (TypeKind::Null, _) => Ok(()),
            (TypeKind::OneOf(alternatives), _) => {
                alternatives.iter().try_for_each(|one| self.one_alternative(from.types.at(one), to))
            }
            (_, TypeKind::OneOf(alternatives)) => self.among_alternatives(from, to, alternatives),
            (TypeKind::Scalar(a), TypeKind::Scalar(b)) => scalars(a, b),
            (TypeKind::Array(a), TypeKind::Array(b)) => {
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
        alternatives: &'a [super::Type],
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

    fn objects(&mut self, from: TypeIn<'a>, a: &'a Object, to: TypeIn<'a>, b: &'a Object) -> Result<(), Why> {
        for wanted in b.fields.iter().filter(|field| field.required) {
            let mismatch = match a.field(&wanted.name) {
                Some(field) if field.required => continue,
                Some(_) => Mismatch::MayBeAbsent,
                // One way it is not sent, the other way it comes.
                None if wanted.access != Access::Both => continue,
                None => Mismatch::Missing,
            };
            return Err(Why::from(mismatch).under(&wanted.name));
        }
        for field in &a.fields {
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
        match (&a.additional, &b.additional) {
            (Additional::Of(a), Additional::Of(b)) => self.step("*", from.types.at(a), to.types.at(b)),
            (Additional::Of(_), Additional::Closed) => Err(Why::from(Mismatch::Undeclared).under("*")),
            _ => Ok(()),
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

fn scalars(a: &Scalar, b: &Scalar) -> Result<(), Why> {
    let same = a.kind == b.kind || (a.kind == ScalarKind::Integer && b.kind == ScalarKind::Number);
    if !same {
        return Err(Mismatch::Kind { from: show(a), to: show(b) }.into());
    }
    let Some(target) = b.values.as_ref().filter(|values| !values.open) else {
        return Ok(());
    };
    match &a.values {
        Some(source) if !source.open => listed(source, target),
        _ => Err(Mismatch::Unbounded { from: show(a), to: show(b) }.into()),
    }
}

fn listed(source: &Enum, target: &Enum) -> Result<(), Why> {
    let known: HashSet<_> = target.values.iter().collect();
    let unknown: Vec<String> =
        source.values.iter().filter(|value| !known.contains(value)).map(ToString::to_string).collect();
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(Mismatch::Values(unknown).into()),
    }
}

fn kind(from: TypeIn<'_>, to: TypeIn<'_>) -> Why {
    Mismatch::Kind { from: from.ty.to_string(), to: to.ty.to_string() }.into()
}

fn show(scalar: &Scalar) -> String {
    TypeKind::Scalar(scalar.clone()).to_string()
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
