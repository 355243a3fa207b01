//! Alternatives (`oneOf`, `anyOf`), resolved after all types are read. They are distinguished by
//! JSON kind; objects by a discriminator, a constant member, or a required member that only one of
//! them declares. Alternatives that cannot be distinguished become any value; only
//! comparisons consider them.

use super::faults;
use super::grouped::Grouped;
use super::types::{
    Additional, Array, Choice, Enum, JsonKind, Keyword, Limits, Literal, Object, Overlapping, Scalar,
    ScalarKind, ScalarLimits, Test, Type, TypeKind, Types, Unread,
};
use crate::diagnostic::Span;
use std::collections::{HashMap, HashSet};

/// The discriminator of a document: a member, and the alternative that each of its values selects.
#[derive(Debug)]
pub(super) struct Discriminator {
    pub member: String,
    pub values: Vec<(String, usize)>,
}

/// Discriminators by the place of the schema with the alternatives.
pub(super) type Discriminators = HashMap<Span, Discriminator>;

/// Maximum number of alternatives after following references. A schema with more is any value.
const ALTERNATIVES_MAX: usize = 2_000;

/// Maximum number of nested alternatives that are resolved for one type. Further ones are
/// any value.
const EXPANDED_MAX: usize = 10_000;

/// Resolves the alternatives of a type. Returns `None` without alternatives. Alternatives that cannot be
/// distinguished are added to `overlapping`.
pub(super) fn settle_alternatives(
    ty: &Type,
    types: &Types,
    discriminators: &Discriminators,
    findings: &mut Grouped,
    overlapping: &mut Overlapping,
) -> Option<Type> {
    let mut settle = Settle {
        types,
        discriminators,
        findings,
        overlapping,
        is_elsewhere: false,
        open: Vec::new(),
        expanded: 0,
    };
    has_alternatives(ty).then(|| settle.ty(ty))
}

fn has_alternatives(ty: &Type) -> bool {
    match &ty.kind {
        TypeKind::OneOf(_) => true,
        TypeKind::Array(array) => has_alternatives(&array.items),
        TypeKind::Object(object) => {
            object.fields.iter().any(|field| has_alternatives(&field.ty))
                || matches!(&object.additional, Additional::Of(ty) if has_alternatives(ty))
        }
        _ => false,
    }
}

struct Settle<'t, 'f> {
    types: &'t Types,
    discriminators: &'t Discriminators,
    findings: &'f mut Grouped,
    overlapping: &'f mut Overlapping,
    /// Whether a part of a named type is resolved. Its overlapping alternatives are added where the named
    /// type itself is resolved: it may refer to this one.
    is_elsewhere: bool,
    /// The alternatives that are being resolved, outermost first.
    open: Vec<*const Type>,
    /// Number of nested alternatives that were resolved.
    expanded: usize,
}

/// One alternative with references followed, and its index in the schema.
#[derive(Clone, Copy)]
struct FlatAlternative<'t> {
    ty: &'t Type,
    at: usize,
    /// Whether it is a part of a named type.
    is_elsewhere: bool,
}

impl<'t> Settle<'t, '_> {
    fn ty(&mut self, ty: &'t Type) -> Type {
        let kind = match &ty.kind {
            TypeKind::OneOf(alternatives) => return self.alternatives(ty, alternatives),
            TypeKind::Array(array) => {
                TypeKind::Array(Array { items: Box::new(self.ty(&array.items)), ..array.clone() })
            }
            TypeKind::Object(object) => {
                let mut object = Object {
                    fields: object.fields.clone(),
                    additional: match &object.additional {
                        Additional::Of(ty) => Additional::Of(Box::new(self.ty(ty))),
                        other => other.clone(),
                    },
                    unread: object.unread.clone(),
                };
                // Borrow the original fields, which live as long as `'t`.
                let TypeKind::Object(written) = &ty.kind else { return ty.clone() };
                for (field, written) in object.fields.iter_mut().zip(&written.fields) {
                    if has_alternatives(&written.ty) {
                        field.ty = self.ty(&written.ty);
                    }
                }
                TypeKind::Object(object)
            }
            other => other.clone(),
        };
        Type { kind, nullable: ty.nullable, span: ty.span }
    }

    fn alternatives(&mut self, ty: &'t Type, written: &'t [Type]) -> Type {
        let mut flat = Vec::new();
        let mut nullable = ty.nullable;
        let mut seen = HashSet::new();
        for (at, one) in written.iter().enumerate() {
            self.flatten(one, at, &mut flat, &mut nullable, &mut seen);
        }
        let any = || Type::any(ty.span);
        let is_any = |one: &FlatAlternative<'_>| matches!(self.types.resolve(one.ty).kind, TypeKind::Any);
        // One alternative accepts every value, so the others do not matter.
        if flat.len() > ALTERNATIVES_MAX || flat.iter().any(is_any) {
            return any();
        }
        let mut kinds: Vec<Type> = Vec::new();
        let mut order: Vec<JsonKind> = Vec::new();
        for kind in flat.iter().flat_map(|one| self.types.json_kinds(one.ty)) {
            if !order.contains(&kind) {
                order.push(kind);
            }
        }
        for kind in order {
            // Each flattened alternative has exactly one kind.
            let of_kind: Vec<&FlatAlternative<'t>> =
                flat.iter().filter(|one| self.types.json_kinds(one.ty) == [kind]).collect();
            let [first, rest @ ..] = of_kind.as_slice() else { continue };
            if rest.is_empty() {
                // Nullability is a property of the choice, not of its alternatives.
                kinds.push(Type { nullable: false, ..self.one(first.ty) });
                continue;
            }
            let together = match kind {
                JsonKind::Array => self.lists(&of_kind, ty.span),
                JsonKind::Object => self.objects(ty, written, &of_kind),
                _ => Some(self.scalars(&of_kind, ty.span)),
            };
            match together {
                Some(ty) => kinds.push(Type { nullable: false, ..ty }),
                None => {
                    if !self.is_elsewhere {
                        // Lists with overlapping items may have been stored under the same place.
                        self.overlapping.remove(&ty.span);
                    }
                    self.add_overlapping(&flat, nullable, ty.span);
                    return any();
                }
            }
        }
        match kinds.len() {
            // Only null remains.
            0 => Type { kind: TypeKind::Null, nullable: true, span: ty.span },
            1 => {
                let only = kinds.remove(0);
                // A reference does not carry nullability; the enclosing schema decides.
                Type { nullable: nullable || only.nullable, ..only }
            }
            _ => Type { kind: TypeKind::OneOf(kinds), nullable, span: ty.span },
        }
    }

    /// Stores alternatives that become any value.
    fn add_overlapping(&mut self, all: &[FlatAlternative<'t>], nullable: bool, span: Span) {
        if self.is_elsewhere {
            return;
        }
        let resolve = |one: &FlatAlternative<'t>| {
            self.is_elsewhere = one.is_elsewhere;
            Type { nullable: false, ..self.one(one.ty) }
        };
        let all = all.iter().map(resolve).collect();
        self.is_elsewhere = false;
        let ty = Type { kind: TypeKind::OneOf(all), nullable, span };
        let known = self.overlapping.entry(span).or_insert_with(|| Some(ty.clone()));
        known.take_if(|known| *known != ty);
    }

    /// Returns an alternative with its nested alternatives resolved. An alternative within itself, which
    /// a named type leads to, is any value.
    fn one(&mut self, ty: &'t Type) -> Type {
        if !has_alternatives(ty) {
            return ty.clone();
        }
        self.expanded += 1;
        if self.open.contains(&std::ptr::from_ref(ty)) || self.expanded > EXPANDED_MAX {
            self.findings.add("recursive", ty.span, || faults::recursive_alternatives(ty.span));
            return Type::any(ty.span);
        }
        self.open.push(ty);
        let resolved = self.ty(ty);
        self.open.pop();
        resolved
    }

    fn flatten(
        &self,
        ty: &'t Type,
        at: usize,
        flat: &mut Vec<FlatAlternative<'t>>,
        nullable: &mut bool,
        seen: &mut HashSet<*const Type>,
    ) {
        // Iterative, and `seen` breaks cycles: alternatives may refer to each other.
        let mut open = vec![(ty, false)];
        while let Some((ty, is_elsewhere)) = open.pop() {
            let resolved = self.types.follow(ty);
            let is_elsewhere = is_elsewhere || matches!(ty.kind, TypeKind::Named(_));
            // `Any` is always nullable, which does not make the choice nullable.
            *nullable |= resolved.nullable && !matches!(resolved.kind, TypeKind::Any);
            match resolved.kind {
                TypeKind::Null => *nullable = true,
                TypeKind::OneOf(inner) => {
                    if seen.insert(inner.as_ptr()) {
                        open.extend(inner.iter().rev().map(|one| (one, is_elsewhere)));
                    }
                }
                _ => {
                    // Several alternatives may lead to the same type.
                    let known = flat
                        .iter()
                        .any(|known| std::ptr::eq(self.types.follow(known.ty).kind, resolved.kind));
                    if !known && flat.len() <= ALTERNATIVES_MAX {
                        flat.push(FlatAlternative { ty, at, is_elsewhere });
                    }
                }
            }
        }
    }

    /// Merges scalars of one kind into a type that accepts the values of all of them.
    fn scalars(&self, all: &[&FlatAlternative<'t>], span: Span) -> Type {
        let scalars = all.iter().filter_map(|one| match self.types.resolve(one.ty).kind {
            TypeKind::Scalar(scalar) => Some(scalar),
            _ => None,
        });
        // Every integer is a number, so a mixture of both is a number.
        let widest = if scalars.clone().any(|scalar| scalar.kind == ScalarKind::Number) {
            ScalarKind::Number
        } else {
            scalars.clone().next().map_or(ScalarKind::String, |scalar| scalar.kind)
        };
        let listed = scalars.clone().all(|scalar| scalar.values.is_some());
        let mut values: Vec<Literal> = Vec::new();
        let mut known: HashSet<&Literal> = HashSet::new();
        let mut open = false;
        for listed in scalars.clone().filter_map(|scalar| scalar.values.as_ref()) {
            open |= listed.open;
            for value in &listed.values {
                if known.insert(value) {
                    values.push(value.clone());
                }
            }
        }
        let bounds = |scalar: &Scalar| (scalar.format.clone(), scalar.limits.clone());
        let mut all = scalars.clone().map(bounds);
        let first = all.next().unwrap_or_default();
        let has_same_bounds = all.all(|other| other == first);
        let (format, limits) = match has_same_bounds {
            true => first,
            // A scalar without constraints accepts every value of the kind, so the others do not
            // matter.
            false if listed || scalars.clone().any(|scalar| is_unbounded(scalar, widest)) => {
                Default::default()
            }
            false => (None, one_of_several(scalars.clone())),
        };
        let values = listed.then(|| Box::new(Enum { values, open }));
        let scalar = Scalar { kind: widest, values, format, limits };
        Type { kind: TypeKind::Scalar(scalar), nullable: false, span }
    }

    /// Merges lists with equal items. Other lists cannot be distinguished and become a list of any
    /// values.
    fn lists(&mut self, all: &[&FlatAlternative<'t>], span: Span) -> Option<Type> {
        let arrays: Vec<&'t Array> = all
            .iter()
            .filter_map(|one| match self.types.resolve(one.ty).kind {
                TypeKind::Array(array) => Some(array),
                _ => None,
            })
            .collect();
        let [first, rest @ ..] = arrays.as_slice() else { return None };
        // Named types are equal if they resolve to the same definition.
        let same = |a: &Type, b: &Type| std::ptr::eq(self.types.resolve(a).kind, self.types.resolve(b).kind);
        if rest.iter().all(|array| same(&array.items, &first.items) || array.items.kind == first.items.kind) {
            return Some(Type { kind: TypeKind::Array((*first).clone()), nullable: false, span });
        }
        self.findings.add("lists", span, || faults::lists_overlap(span));
        let items = arrays.iter().zip(all).map(|(array, one)| FlatAlternative { ty: &array.items, ..**one });
        self.add_overlapping(&items.collect::<Vec<_>>(), false, span);
        let items = Box::new(Type::any(span));
        // The elements of one list are of one alternative, which only a text can express.
        let mut texts: Vec<String> = arrays.iter().map(|array| array.items.to_string()).collect();
        texts.sort();
        let unread: Unread =
            [Keyword { name: "anyOf".into(), value: format!("lists of {}", texts.join(" | ")).into() }]
                .into();
        Some(Type {
            kind: TypeKind::Array(Array { items, min_items: 0, max_items: None, unique: false, unread }),
            nullable: false,
            span,
        })
    }

    fn objects(&mut self, ty: &Type, written: &[Type], all: &[&FlatAlternative<'t>]) -> Option<Type> {
        let objects: Vec<&'t Object> = all.iter().filter_map(|one| self.types.at(one.ty).object()).collect();
        // A declared discriminator takes precedence over an inferred test.
        let test = if objects.len() == all.len() {
            let said =
                self.discriminators.get(&ty.span).and_then(|said| by_discriminator(said, written, all));
            said.or_else(|| by_constant(&objects, self.types)).or_else(|| by_own_field(&objects))
        } else {
            None
        };
        let Some(test) = test else {
            self.findings.add("objects", ty.span, || faults::objects_overlap(ty.span));
            return None;
        };
        let alternatives =
            all.iter().map(|one| Type { nullable: false, ..self.one(one.ty) }).collect::<Vec<_>>();
        let choice = Choice { test, alternatives };
        Some(Type { kind: TypeKind::Choice(Box::new(choice)), nullable: false, span: ty.span })
    }
}

/// Returns the test on the member that the document names, if each of its alternatives is one
/// object.
fn by_discriminator(said: &Discriminator, written: &[Type], all: &[&FlatAlternative<'_>]) -> Option<Test> {
    // The discriminator refers to the alternatives as written, not to flattened ones.
    if written.len() != all.len() {
        return None;
    }
    let mut values: Vec<(Literal, usize)> = Vec::new();
    for (value, at) in &said.values {
        let index = all.iter().position(|one| one.at == *at)?;
        // Two alternatives with the same value cannot be distinguished.
        if values.iter().any(|(known, _)| matches!(known, Literal::String(known) if known == value)) {
            return None;
        }
        values.push((Literal::String(value.clone()), index));
    }
    let complete = (0..all.len()).all(|index| values.iter().any(|(_, at)| *at == index));
    complete.then(|| Test::Constant { member: said.member.clone(), values })
}

/// Returns the test on a member that all objects require, with disjoint enumerated values.
fn by_constant(objects: &[&Object], types: &Types) -> Option<Test> {
    let listed = |object: &Object, name: &str| -> Option<Vec<Literal>> {
        let field = object.field(name).filter(|field| field.required || object.fields.len() == 1)?;
        match types.resolve(&field.ty).kind {
            TypeKind::Scalar(Scalar { values: Some(values), .. }) if !values.open => {
                Some(values.values.clone())
            }
            _ => None,
        }
    };
    let (first, rest) = objects.split_first()?;
    first.fields.iter().find_map(|field| {
        let mut values: Vec<(Literal, usize)> =
            listed(first, &field.name)?.into_iter().map(|value| (value, 0)).collect();
        let mut taken: HashSet<Literal> = values.iter().map(|(value, _)| value.clone()).collect();
        for (at, object) in rest.iter().enumerate() {
            for value in listed(object, &field.name)? {
                // The values of the alternatives must be disjoint.
                if !taken.insert(value.clone()) {
                    return None;
                }
                values.push((value, at + 1));
            }
        }
        Some(Test::Constant { member: field.name.clone(), values })
    })
}

/// Returns the test on required members that no other object declares. One object may lack such a
/// member.
fn by_own_field(objects: &[&Object]) -> Option<Test> {
    let mut declared: HashMap<&str, usize> = HashMap::new();
    for object in objects {
        for field in &object.fields {
            *declared.entry(&field.name).or_default() += 1;
        }
    }
    let own = objects.iter().map(|object| {
        let mut own =
            object.fields.iter().filter(|field| field.required && declared[field.name.as_str()] == 1);
        own.next().map(|field| field.name.clone())
    });
    let own: Vec<Option<String>> = own.collect();
    (own.iter().filter(|field| field.is_none()).count() <= 1).then_some(Test::OwnField(own))
}

fn is_unbounded(scalar: &Scalar, widest: ScalarKind) -> bool {
    scalar.kind == widest
        && scalar.values.is_none()
        && scalar.format.is_none()
        && *scalar.limits == ScalarLimits::default()
}

/// Returns the bounds of a scalar that satisfies one of several constraint sets. They can only be
/// compared as text.
fn one_of_several<'s>(scalars: impl Iterator<Item = &'s Scalar>) -> Limits {
    let text = |scalar: &Scalar| {
        let values = scalar.values.as_ref().map_or_else(String::new, |values| format!(" {values:?}"));
        let format = scalar.format.as_deref().map_or_else(String::new, |format| format!(" {format}"));
        let bounds = match *scalar.limits == ScalarLimits::default() {
            true => String::new(),
            false => format!(" {:?}", *scalar.limits),
        };
        format!("{}{format}{values}{bounds}", scalar.kind.word())
    };
    let mut texts: Vec<String> = scalars.map(text).collect();
    texts.sort();
    let keyword = Keyword { name: "anyOf".into(), value: texts.join(" | ").into() };
    Limits::from(ScalarLimits { unread: vec![keyword], ..ScalarLimits::default() })
}
