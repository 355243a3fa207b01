//! What a schema is put together from: itself, what its `$ref` leads to, and what stands in `allOf`, flattened into layers.

use super::keywords::SILENT;
use super::{Schemas, WORK_MAX};
use crate::contract::documents::Target;
use crate::contract::faults;
use crate::contract::grouped::Grouped;
use crate::contract::types::Type;
use crate::diagnostic::Span;
use crate::yaml::{Kind, Node};
use std::collections::HashSet;

/// Layers of one schema.
pub(super) const LAYERS_MAX: usize = 200;
/// Schemas of one document that are put together from several.
const MERGED_MAX: usize = 20_000;
/// Layers of all of them, which is what reading them costs: by the length of the document, so that a short one costs little.
const MERGED_LAYERS_MAX: usize = 400_000;
const MERGED_LAYERS_MIN: usize = 20_000;
const BYTES_PER_LAYER: usize = 8;

/// Layers that may be merged for a document of this length.
pub(super) fn merged_layers_max(bytes: usize) -> usize {
    (bytes / BYTES_PER_LAYER).clamp(MERGED_LAYERS_MIN, MERGED_LAYERS_MAX)
}

/// One node of the conjunction that a schema is.
#[derive(Clone, Copy)]
pub(super) struct Layer<'n> {
    pub(super) node: &'n Node,
    /// Its alternatives are chosen from already.
    pub(super) bare: bool,
}

/// A set of layers, by the addresses of their nodes.
pub(super) type Shape = Vec<(*const Node, bool)>;

impl<'n> Schemas<'n, '_> {
    /// A schema that all of these nodes describe together.
    pub(super) fn conjunction(&mut self, nodes: &[&'n Node], span: Span, findings: &mut Grouped) -> Type {
        match self.conjoined(nodes, span, findings) {
            Conjoined::Type(ty) => ty,
            Conjoined::Here(layers) => self.written_out(&layers, findings),
            Conjoined::Layers { layers, hint, nullable } => {
                let ty = self.merged(layers, hint, span, findings);
                Type { nullable: ty.nullable || nullable, ..ty }
            }
        }
    }

    pub(super) fn conjoined(
        &mut self,
        nodes: &[&'n Node],
        span: Span,
        findings: &mut Grouped,
    ) -> Conjoined<'n> {
        let Some(flat) = self.flatten(nodes, findings) else {
            findings.add("layers", span, || faults::too_many_layers(span, LAYERS_MAX));
            return Conjoined::Type(Type::any(span));
        };
        match (flat.layers.as_slice(), flat.named.as_slice()) {
            // A reference with remarks.
            ([], [only]) => return Conjoined::Type(self.named(*only, flat.nullable, span)),
            ([], []) => return Conjoined::Type(Type::any(span)),
            (_, []) => return Conjoined::Here(flat.layers),
            _ => {}
        }
        let mut layers = flat.layers;
        let mut seen = HashSet::new();
        for reference in flat.named {
            self.expand(reference, &mut layers, &mut seen, findings);
            if layers.len() > LAYERS_MAX {
                findings.add("layers", span, || faults::too_many_layers(span, LAYERS_MAX));
                return Conjoined::Type(Type::any(span));
            }
        }
        if layers.is_empty() {
            return Conjoined::Type(Type::any(span));
        }
        Conjoined::Layers { layers, hint: flat.hint.unwrap_or("merged"), nullable: flat.nullable }
    }

    /// A type put together from several layers, under a name of its own.
    pub(super) fn merged(
        &mut self,
        layers: Vec<Layer<'n>>,
        hint: &str,
        span: Span,
        findings: &mut Grouped,
    ) -> Type {
        let shape = shape_of(&layers);
        if let Some(id) = self.by_shape.get(&shape) {
            return self.reference(*id, span);
        }
        self.merged += 1;
        self.merged_layers += layers.len();
        if self.merged > MERGED_MAX || self.merged_layers > self.merged_layers_max {
            findings.add("merged", span, || faults::too_many_merged(span));
            return Type::any(span);
        }
        let id = self.declare(&format!("{hint}+"), span, layers);
        self.by_shape.insert(shape, id);
        self.reference(id, span)
    }

    /// What nodes say by themselves, and what they refer to, `allOf` taken apart.
    fn flatten(&mut self, nodes: &[&'n Node], findings: &mut Grouped) -> Option<Flat<'n>> {
        let mut flat =
            Flat { layers: Vec::new(), named: Vec::new(), typed: Vec::new(), nullable: false, hint: None };
        let mut open: Vec<&'n Node> = nodes.iter().rev().copied().collect();
        let mut named: HashSet<*const Node> = HashSet::new();
        let mut steps = 0;
        while let Some(node) = open.pop() {
            steps += 1;
            self.work += 1;
            if steps > 4 * LAYERS_MAX || self.work > WORK_MAX {
                return None;
            }
            let Some(entries) = node.as_map() else { continue };
            let (mut speaks, mut types) = (false, false);
            for (key, value) in entries {
                match key.name.as_str() {
                    "$ref" => match self.follow.target(value) {
                        Some(target) => {
                            flat.hint.get_or_insert(target.name);
                            if named.insert(target.node) {
                                flat.named.push(target);
                            }
                        }
                        // Nothing is known of it, and what stands beside it is still said.
                        None => self.follow.report(value, findings),
                    },
                    "allOf" => open.extend(value.as_seq().unwrap_or_default().iter().rev()),
                    "nullable" | "x-nullable" => flat.nullable |= value.kind == Kind::Bool(true),
                    name if SILENT.contains(&name) || name.starts_with("x-") => {}
                    // What is referred to has a type of its own.
                    "type" => types = true,
                    "required" if value.as_seq().is_none() => {}
                    _ => speaks = true,
                }
            }
            if types && !speaks {
                flat.typed.push(Layer { node, bare: false });
                continue;
            }
            if speaks && !flat.layers.iter().any(|layer| std::ptr::eq(layer.node, node)) {
                flat.layers.push(Layer { node, bare: false });
            }
        }
        if flat.named.is_empty() {
            flat.layers.append(&mut flat.typed);
        }
        Some(flat)
    }

    /// Adds the layers of what a reference leads to, each once. `seen`: what was looked at for the same schema.
    fn expand(
        &mut self,
        target: Target<'n>,
        layers: &mut Vec<Layer<'n>>,
        seen: &mut HashSet<*const Node>,
        findings: &mut Grouped,
    ) {
        let mut open = vec![target.node];
        while let Some(node) = open.pop() {
            if layers.len() > LAYERS_MAX || !seen.insert(node) {
                continue;
            }
            let Some(flat) = self.flatten(&[node], findings) else {
                layers.extend(std::iter::repeat_n(Layer { node, bare: true }, LAYERS_MAX));
                continue;
            };
            for layer in flat.layers {
                if !layers.iter().any(|known| std::ptr::eq(known.node, layer.node)) {
                    layers.push(layer);
                }
            }
            open.extend(flat.named.iter().rev().map(|target| target.node));
        }
    }

    /// One alternative together with what holds for all of them.
    pub(super) fn with(&mut self, base: &[Layer<'n>], one: &'n Node, findings: &mut Grouped) -> Type {
        let span = one.span;
        let Some(flat) = self.flatten(&[one], findings) else { return Type::any(span) };
        let mut layers = base.to_vec();
        layers.extend(flat.layers);
        let mut seen = HashSet::new();
        for target in flat.named {
            self.expand(target, &mut layers, &mut seen, findings);
        }
        if layers.len() > LAYERS_MAX {
            findings.add("layers", span, || faults::too_many_layers(span, LAYERS_MAX));
            return Type::any(span);
        }
        let hint = flat.hint.unwrap_or("alternative");
        let ty = self.merged(layers, hint, span, findings);
        Type { nullable: flat.nullable, ..ty }
    }
}

pub(super) fn shape_of(layers: &[Layer<'_>]) -> Shape {
    layers.iter().map(|layer| (std::ptr::from_ref(layer.node), layer.bare)).collect()
}

/// What several nodes are together.
pub(super) enum Conjoined<'n> {
    Type(Type),
    /// Written out in these nodes.
    Here(Vec<Layer<'n>>),
    /// Put together from here and elsewhere.
    Layers {
        layers: Vec<Layer<'n>>,
        hint: &'n str,
        nullable: bool,
    },
}

/// A conjunction taken apart.
struct Flat<'n> {
    /// Nodes that say something themselves.
    layers: Vec<Layer<'n>>,
    /// Nodes that name a type and say nothing else.
    typed: Vec<Layer<'n>>,
    /// What they refer to.
    named: Vec<Target<'n>>,
    nullable: bool,
    /// The name of what is referred to first.
    hint: Option<&'n str>,
}
