//! Uniform representation of a shape's lines, including inherited ones.

use super::fields::SpannedPlace;
use super::{LensEnv, faults};
use crate::diagnostic::{Findings, Span};
use crate::mapping::ast::{ConversionUse, FieldPlace, Fill, Rest, ShapeDecl, ShapeUse, Spanned};
use crate::yaml::Node;
use std::collections::HashSet;

/// All lines of a shape.
#[derive(Debug, Default)]
pub(super) struct ShapeLines<'p> {
    pub(super) lines: Vec<ShapeLine<'p>>,
    /// Span of the shape's declaration.
    pub(super) span: Span,
    /// `rest: {side: …}`, by side.
    pub(super) rest: [Option<&'p Rest>; 2],
}

/// A line.
#[derive(Clone, Debug)]
pub(super) struct ShapeLine<'p> {
    pub(super) span: Span,
    pub(super) what: LineKind<'p>,
}

/// Content of a line.
#[derive(Clone, Debug)]
pub(super) enum LineKind<'p> {
    /// A place on each side.
    Both {
        places: [SpannedPlace; 2],
        shape: Option<&'p ShapeUse>,
        conversion: Option<&'p ConversionUse>,
        defaults: [Option<&'p Node>; 2],
    },
    /// A read-only copy on side `to` of a place of the other side.
    Copy { to: usize, name: SpannedPlace, from: SpannedPlace },
    /// Fixed on both sides.
    Constant { name: SpannedPlace, values: &'p [Node; 2] },
    /// One place of the old side, several of the new one.
    ByKind { old: SpannedPlace, new: Vec<(&'p Spanned<String>, SpannedPlace)>, default: Option<&'p Node> },
    /// On one side only.
    Only { side: usize, place: SpannedPlace, fill: &'p Fill },
}

impl ShapeLine<'_> {
    /// Returns the places that the line covers on a side. A copy covers its target only; its source
    /// has a line of its own.
    pub(super) fn places(&self, side: usize) -> Vec<&SpannedPlace> {
        match &self.what {
            LineKind::Both { places, .. } => vec![&places[side]],
            LineKind::Copy { to, name, .. } if *to == side => vec![name],
            LineKind::Constant { name, .. } => vec![name],
            LineKind::ByKind { old, .. } if side == 0 => vec![old],
            LineKind::ByKind { new, .. } if side == 1 => new.iter().map(|(_, place)| place).collect(),
            LineKind::Only { side: own, place, .. } if *own == side => vec![place],
            _ => Vec::new(),
        }
    }
}

/// Returns the lines of a shape and those that it inherits. A line overrides inherited lines about
/// the same places.
pub(super) fn lines<'p>(
    world: &LensEnv<'p>,
    shape: &'p ShapeDecl,
    findings: &mut Findings,
) -> ShapeLines<'p> {
    let mut lines = own(shape);
    let (mut like, mut seen) =
        (shape.like.as_ref(), vec![shape.name.as_ref().map(|name| name.value.as_str())]);
    while let Some(name) = like {
        let other =
            world.program.shapes.iter().find(|s| s.name.as_ref().is_some_and(|n| n.value == name.value));
        let Some(other) = other else {
            let names = world.program.shapes.iter().filter_map(|s| s.name.as_ref()).map(|n| n.value.as_str());
            findings.push(faults::unknown_shape(name, names.collect()));
            break;
        };
        // Following a cycle of `like:` would not terminate.
        if seen.contains(&Some(name.value.as_str())) {
            findings.push(faults::like_itself(name));
            break;
        }
        seen.push(Some(&name.value));
        inherit(&mut lines, own(other));
        like = other.like.as_ref();
    }
    lines
}

fn inherit<'p>(lines: &mut ShapeLines<'p>, other: ShapeLines<'p>) {
    // A snapshot: inherited lines give way to the shape's own, not to each other.
    let own = lines.lines.clone();
    let claimed = [0, 1].map(|side| {
        let places = own.iter().flat_map(|own| own.places(side));
        places.map(|at| &at.value).collect::<HashSet<&FieldPlace>>()
    });
    let taken = |line: &ShapeLine<'p>| {
        [0, 1].into_iter().any(|side| line.places(side).iter().any(|at| claimed[side].contains(&at.value)))
    };
    lines.lines.extend(other.lines.into_iter().filter(|line| !taken(line)));
    for side in [0, 1] {
        lines.rest[side] = lines.rest[side].or(other.rest[side]);
    }
}

fn own(shape: &ShapeDecl) -> ShapeLines<'_> {
    let mut lines = Vec::new();
    let mut add = |span, what| lines.push(ShapeLine { span, what });
    for name in &shape.lines.same {
        let places = [at_name(name), at_name(name)];
        add(name.span, LineKind::Both { places, shape: None, conversion: None, defaults: [None, None] });
    }
    for rename in &shape.lines.rename {
        let mut defaults = [None, None];
        for (side, value) in &rename.defaults {
            defaults[side.side] = Some(value);
        }
        let places = [rename.old.clone(), rename.new.clone()];
        let (shape, conversion) = (rename.shape.as_ref(), rename.conversion.as_ref());
        add(rename.span, LineKind::Both { places, shape, conversion, defaults });
    }
    for copy in &shape.lines.copy {
        add(
            copy.span,
            LineKind::Copy { to: copy.to.side, name: at_name(&copy.name), from: copy.from.clone() },
        );
    }
    for constant in &shape.lines.constant {
        add(constant.span, LineKind::Constant { name: at_name(&constant.name), values: &constant.values });
    }
    for line in &shape.lines.by_kind {
        let new = line.new.iter().map(|(kind, place)| (kind, place.clone())).collect();
        add(line.span, LineKind::ByKind { old: line.old.clone(), new, default: line.default.as_ref() });
    }
    for only in &shape.lines.only {
        add(only.span, LineKind::Only { side: only.side.side, place: only.place.clone(), fill: &only.fill });
    }
    let mut rest = [None, None];
    for line in &shape.lines.rest {
        rest[line.side.side] = Some(line);
    }
    ShapeLines { lines, span: shape.span, rest }
}

fn at_name(name: &Spanned<String>) -> SpannedPlace {
    Spanned { value: FieldPlace(vec![name.value.clone()]), span: name.span }
}
