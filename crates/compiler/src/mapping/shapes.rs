//! Access to single shapes of a pack, outside of routes. Tests check the laws of shapes on values
//! generated from the contracts; serving a pack does not use this module.

use super::ast::{self, ProgramDecl, Spanned};
use super::lens::{LensEnv, Lenses, Supply};
use super::load::{self, PackSource};
use super::names::PackNames;
use crate::contract::TypeIn;
use crate::diagnostic::{Findings, Sources};
use switchback_plan::{Key, Loss, Note, ReasonId, SideId, ValueOp};

/// The named shapes of a pack.
pub struct Shapes<'p> {
    program: &'p ProgramDecl,
    lenses: Lenses<'p>,
}

/// A shape, built in one direction.
#[derive(Clone, Debug)]
pub struct BuiltShape {
    /// Builds the value of the other side.
    pub op: ValueOp,
    /// Places of the source that the target lacks, starting with `$`.
    pub losses: Vec<Loss>,
    /// Fields that must be supplied, in the order of [`switchback_plan::CloseFrom::Supplied`].
    pub supplied: Vec<Key>,
    /// Members of the target's type, for [`switchback_plan::Overlay`].
    pub fields: Vec<Key>,
    /// Intended violations of types.
    pub notes: Vec<Note>,
    /// Reasons that may refuse a value.
    pub refuses: Vec<ReasonId>,
    /// Whether a conversion may reject a valid value and no fallback is declared.
    pub is_partial: bool,
}

impl Shapes<'_> {
    /// Reads a pack, passes its shapes to `run` and returns the result, or `None` if the pack
    /// cannot be read or a shape has an error.
    pub fn with_pack<T>(source: &PackSource, run: impl FnOnce(&Shapes<'_>) -> T) -> Option<T> {
        let (mut sources, mut findings) = (Sources::new(), Findings::new());
        let (program, contracts) = load::load_pack(source, &mut sources, &mut findings)?;
        let names = PackNames::collect(&program, &mut findings);
        let world = LensEnv {
            program: &program,
            contracts: &contracts,
            names: &names,
            sources: &sources,
            is_stopped: &|| false,
        };
        let lenses = Lenses::check(world, &mut findings);
        (!findings.has_errors()).then(|| run(&Shapes { program: &program, lenses }))
    }

    /// Returns the types that a shape relates, old side first, or `None` for an unknown shape.
    pub fn types(&self, name: &str) -> Option<[TypeIn<'_>; 2]> {
        self.lenses.types(name)
    }

    /// Builds the shape towards side `to`, with `supplied` fields, and on top of an existing value
    /// if `is_over`. Returns `None` if it cannot be built this way.
    pub fn build(&self, name: &str, to: SideId, supplied: &[&str], is_over: bool) -> Option<BuiltShape> {
        let span = self.shape(name)?.span;
        let with = supplied.iter().map(|field| Spanned { value: (*field).to_owned(), span }).collect();
        let supply = Supply { with, over: is_over, ..Supply::default() };
        let lens = self.lenses.lens(name, to, &supply, &mut Findings::new())?;
        Some(BuiltShape {
            op: lens.op,
            losses: lens.losses,
            supplied: lens.supplied,
            fields: lens.fields,
            notes: lens.notes,
            refuses: lens.refuses,
            is_partial: !lens.partials.is_empty(),
        })
    }

    /// Returns the members of a side that the lines of a shape set, including inherited lines. For
    /// a nested place, the outermost member.
    pub fn members(&self, name: &str, side: SideId) -> Vec<&str> {
        let Some(shape) = self.shape(name) else { return Vec::new() };
        let renamed =
            shape.lines.rename.iter().map(|line| if side == SideId::OLD { &line.old } else { &line.new });
        let by_kind = shape.lines.by_kind.iter().flat_map(|line| match side {
            SideId::OLD => vec![&line.old],
            _ => line.new.iter().map(|(_, place)| place).collect(),
        });
        let is_filled = |only: &&ast::Only| {
            only.side.side == usize::from(side.0)
                && !matches!(only.fill, ast::Fill::Nothing | ast::Fill::Computed)
        };
        let only = shape.lines.only.iter().filter(is_filled).map(|only| &only.place);
        let places = renamed.chain(by_kind).chain(only).map(|place| place.value.0[0].as_str());
        let fixed = shape.lines.constant.iter().map(|constant| constant.name.value.as_str());
        let same = shape.lines.same.iter().map(|name| name.value.as_str());
        let copies = shape.lines.copy.iter().filter(|copy| copy.to.side == usize::from(side.0));
        let like = shape.like.as_ref().map(|like| self.members(&like.value, side)).unwrap_or_default();
        same.chain(places)
            .chain(copies.map(|copy| copy.name.value.as_str()))
            .chain(fixed)
            .chain(like)
            .collect()
    }

    /// Returns the members of a side that copy a place of the other side, including inherited ones.
    pub fn copies(&self, name: &str, side: SideId) -> Vec<&str> {
        let Some(shape) = self.shape(name) else { return Vec::new() };
        let own = shape.lines.copy.iter().filter(|copy| copy.to.side == usize::from(side.0));
        let like = shape.like.as_ref().map(|like| self.copies(&like.value, side)).unwrap_or_default();
        own.map(|copy| copy.name.value.as_str()).chain(like).collect()
    }

    fn shape(&self, name: &str) -> Option<&ast::ShapeDecl> {
        let is_named = |shape: &&ast::ShapeDecl| shape.name.as_ref().is_some_and(|have| have.value == name);
        self.program.shapes.iter().find(is_named)
    }
}
