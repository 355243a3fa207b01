//! Shapes over alternatives: selects which of several objects a value is, and the shape for it.

use super::{Direction, Lens, Lenses, Supply, faults};
use crate::contract::{
    Choice, Literal, Narrowing, Test, Type, TypeIn, TypeKind, assignable_but_for_null, compare,
};
use crate::diagnostic::Findings;
use crate::mapping::ast::{ShapeDecl, Spanned};
use switchback_plan::{ChooseBy, ChooseOp, Class, Key, Loss, Origin, Raw, SideId, ValueOp};

/// Returns whether a type is one of several objects.
pub(super) fn is_choice(ty: TypeIn<'_>) -> bool {
    choice(ty).is_some()
}

fn choice(ty: TypeIn<'_>) -> Option<&Choice> {
    match ty.kind() {
        TypeKind::Choice(choice) => Some(choice),
        _ => None,
    }
}

/// Returns whether a type is an alternative of another one by name. A structural comparison would
/// be too strict: an alternative often declares its discriminator as any text, although the mapping
/// of the discriminator lists its values.
fn is_one_of(ty: TypeIn<'_>, of: TypeIn<'_>) -> bool {
    choice(of).is_some_and(|of_choice| {
        of_choice.alternatives.iter().any(|one| identity(of.types.at(one)) == identity(ty))
    })
}

/// Returns the identity of an alternative, independently of the references that lead to it.
fn identity(ty: TypeIn<'_>) -> *const TypeKind {
    std::ptr::from_ref(ty.kind())
}

/// Builds the op of a shape with `alternatives` towards side `to`. Returns `None` if it reports an
/// error.
pub(super) fn build(
    lenses: &Lenses<'_>,
    shape: &ShapeDecl,
    types: [TypeIn<'_>; 2],
    to: SideId,
    with: &Supply,
    findings: &mut Findings,
) -> Option<Lens> {
    let mark = findings.len();
    let world = &lenses.world;
    let way = Direction::new(world, to);
    let (read, built) = (types[way.from], types[way.to]);
    // The old value may be another alternative, so overlaying it could mix two objects.
    if with.over {
        findings.push(faults::alternatives_over(shape.span));
        return None;
    }
    let Some(found) = choice(read) else {
        if !is_choice(built) {
            // The check of the shape has reported that neither side has alternatives.
            return None;
        }
        findings.push(faults::nothing_tells(shape.span, way));
        return None;
    };
    let mut readers: Vec<(&Spanned<String>, *const TypeKind)> = Vec::new();
    for name in &shape.alternatives {
        let of = lenses.find(name, findings)?.types?;
        let reads = identity(of[way.from]);
        // Compare identities, because equal structures may be different alternatives.
        let is_meant = found.alternatives.iter().any(|one| identity(read.types.at(one)) == reads);
        if !is_meant {
            findings.push(faults::no_such_alternative(name, way.from(), read.ty));
        } else if let Err(why) = assignable_but_for_null(of[way.to], built)
            && !is_one_of(of[way.to], built)
        {
            findings.push(faults::other_type(name, way.to(), built.ty, &why));
        } else if let Some((first, _)) = readers.iter().find(|(_, other)| *other == reads) {
            findings.push(faults::alternative_twice(name, first.span, way.from()));
        }
        readers.push((name, reads));
    }
    let mut arms = Vec::new();
    for one in &found.alternatives {
        let one = read.types.at(one);
        match readers.iter().find(|(_, reads)| *reads == identity(one)) {
            Some((name, _)) => arms.push(lenses.lens(&name.value, to, with, findings)?),
            // An alternative without a shape is copied if the other side accepts it unchanged.
            None => match compare(one, built, world.message(to)) {
                Ok(narrowings) => arms.push(copy_alternative(shape, &narrowings, way)),
                Err(why) => findings.push(faults::no_shape_for(shape.span, one.ty, &why, way)),
            },
        }
    }
    if findings.errors_since(mark) {
        return None;
    }
    let name = shape.name.as_ref().map_or("in place", |name| name.value.as_str());
    let origin = world.origin(shape.span);
    Some(together(name, &found.test, arms, origin, with))
}

/// Returns the lens of an alternative that is copied.
fn copy_alternative(shape: &ShapeDecl, narrowings: &[Narrowing], way: Direction<'_>) -> Lens {
    let losses = narrowings.iter().map(|narrowing| {
        let side = if narrowing.is_of_target { way.to() } else { way.from() };
        super::lost(narrowing, side.to_owned(), "$", way.world.origin(shape.span))
    });
    Lens { losses: losses.collect(), ..Lens::keep() }
}

fn together(name: &str, test: &Test, arms: Vec<Lens>, origin: Origin, with: &Supply) -> Lens {
    let by = match test {
        Test::Constant { member, values } => ChooseBy::Constant {
            member: Key::new(member),
            values: values.iter().map(|(value, at)| (raw(value), *at as u16)).collect(),
        },
        Test::OwnField(fields) => {
            ChooseBy::OwnField(fields.iter().map(|field| field.as_deref().map(Key::new)).collect())
        }
    };
    let mut lens = Lens {
        class: Class::Element,
        because: "what is in an object tells which of several it is".to_owned(),
        supplied: with.with.iter().map(|name| Key::new(&name.value)).collect(),
        // An object that matches no alternative is rejected.
        turns_away: true,
        ..Lens::keep()
    };
    let mut ops = Vec::new();
    for arm in arms {
        lens.add_part(&arm);
        lens.class = lens.class.max(arm.class);
        for loss in arm.losses {
            let is_known = |known: &Loss| {
                known.side == loss.side && known.place == loss.place && known.narrow == loss.narrow
            };
            // Alternatives often lose the same place. List it once.
            if !lens.losses.iter().any(is_known) {
                lens.losses.push(loss);
            }
        }
        ops.push(arm.op);
    }
    lens.op = ValueOp::Choose(ChooseOp { name: name.into(), by, arms: ops, origin }.into());
    lens
}

fn raw(literal: &Literal) -> Raw {
    let text = match literal {
        Literal::Boolean(value) => value.to_string(),
        Literal::Number(text) => text.clone(),
        Literal::String(text) => format!("\"{}\"", switchback_json::text::escape(text)),
    };
    text.into_bytes().into()
}

/// Returns whether a shape can have this type: one object, or one of several if it has
/// `alternatives`.
pub(super) fn takes(shape: &ShapeDecl, types: TypeIn<'_>, ty: &Type) -> bool {
    match types.types.resolve(ty).kind {
        TypeKind::Object(_) => true,
        TypeKind::Choice(_) => !shape.alternatives.is_empty(),
        _ => false,
    }
}
