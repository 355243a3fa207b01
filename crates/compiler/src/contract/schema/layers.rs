//! The composition of schemas: a schema, the targets of its `$ref`, and the members of `allOf`,
//! flattened into layers.

use super::keywords::{KeywordUse, use_of};
use super::{Schemas, WORK_MAX};
use crate::contract::documents::ReferenceTarget;
use crate::contract::faults;
use crate::contract::types::Type;
use crate::diagnostic::Span;
use crate::yaml::{Kind, Node};
use std::collections::HashSet;

/// Maximum number of layers of one schema.
pub(super) const LAYERS_MAX: usize = 200;
/// Maximum number of merged schemas of one document.
const MERGED_MAX: usize = 20_000;
/// Bounds of the total number of layers, which determines the cost of reading. The limit grows with
/// the length of the document, so that a short document stays cheap.
const MERGED_LAYERS_MAX: usize = 400_000;
const MERGED_LAYERS_MIN: usize = 20_000;
const BYTES_PER_LAYER: usize = 8;

/// Returns the maximum total number of layers for a document of this length in bytes.
pub(super) fn merged_layers_max(bytes: usize) -> usize {
    (bytes / BYTES_PER_LAYER).clamp(MERGED_LAYERS_MIN, MERGED_LAYERS_MAX)
}

/// One node of a conjunction.
#[derive(Clone, Copy)]
pub(super) struct Layer<'n> {
    pub(super) node: &'n Node,
    /// Set if the alternatives of this node are selected already.
    pub(super) bare: bool,
}

/// The identity of a list of layers: the addresses of its nodes.
pub(super) type LayerSet = Vec<(*const Node, bool)>;

impl<'n> Schemas<'n, '_> {
    /// Reads the conjunction of several nodes.
    pub(super) fn conjunction(&mut self, nodes: &[&'n Node], span: Span) -> Type {
        match self.conjoin(nodes, span) {
            Conjoined::Type(ty) => ty,
            Conjoined::Here(layers) => self.written_out(&layers),
            Conjoined::Layers { layers, hint, nullable } => {
                let ty = self.merge(layers, hint, span);
                Type { nullable: ty.nullable || nullable, ..ty }
            }
        }
    }

    pub(super) fn conjoin(&mut self, nodes: &[&'n Node], span: Span) -> Conjoined<'n> {
        let Some(flat) = self.flatten(nodes) else {
            self.findings.add("layers", span, || faults::too_many_layers(span, LAYERS_MAX));
            return Conjoined::Type(Type::any(span));
        };
        match (flat.layers.as_slice(), flat.named.as_slice()) {
            // Only annotations besides the reference.
            ([], [only]) => return Conjoined::Type(self.parse_reference(*only, flat.nullable, span)),
            ([], []) => return Conjoined::Type(Type::any(span)),
            (_, []) => return Conjoined::Here(flat.layers),
            _ => {}
        }
        let mut layers = flat.layers;
        let mut seen = HashSet::new();
        for reference in flat.named {
            self.expand(reference, &mut layers, &mut seen);
            if layers.len() > LAYERS_MAX {
                self.findings.add("layers", span, || faults::too_many_layers(span, LAYERS_MAX));
                return Conjoined::Type(Type::any(span));
            }
        }
        if layers.is_empty() {
            return Conjoined::Type(Type::any(span));
        }
        Conjoined::Layers { layers, hint: flat.hint.unwrap_or("merged"), nullable: flat.nullable }
    }

    /// Returns the named type for several layers, and declares it if necessary.
    pub(super) fn merge(&mut self, layers: Vec<Layer<'n>>, hint: &str, span: Span) -> Type {
        // The same layers have the same type.
        let shape = shape_of(&layers);
        if let Some(id) = self.by_shape.get(&shape) {
            return self.reference(*id, span);
        }
        self.merged += 1;
        self.merged_layers += layers.len();
        if self.merged > MERGED_MAX || self.merged_layers > self.merged_layers_max {
            self.findings.add("merged", span, || faults::too_many_merged(span));
            return Type::any(span);
        }
        let id = self.declare(&format!("{hint}+"), span, layers);
        self.by_shape.insert(shape, id);
        self.reference(id, span)
    }

    /// Splits nodes into their own constraints and their references, following `allOf`. Returns
    /// `None` if a limit is exceeded.
    fn flatten(&mut self, nodes: &[&'n Node]) -> Option<FlatLayers<'n>> {
        let mut flat = FlatLayers {
            layers: Vec::new(),
            named: Vec::new(),
            typed: Vec::new(),
            nullable: false,
            hint: None,
        };
        let mut open: Vec<&'n Node> = nodes.iter().rev().copied().collect();
        let mut named: HashSet<*const Node> = HashSet::new();
        let mut steps = 0;
        while let Some(node) = open.pop() {
            steps += 1;
            self.work += 1;
            // Nodes without constraints cost time as well.
            if steps > 4 * LAYERS_MAX || self.work > WORK_MAX {
                return None;
            }
            let Some(entries) = node.as_map() else { continue };
            let (mut speaks, mut types, mut asks) = (false, false, false);
            for (key, value) in entries {
                match key.name.as_str() {
                    "$ref" => match self.follow.target(value) {
                        Some(target) => {
                            flat.hint.get_or_insert(target.name);
                            if named.insert(target.node) {
                                flat.named.push(target);
                            }
                        }
                        // The other keywords of the node still apply.
                        None => self.follow.report(value, self.findings),
                    },
                    "allOf" => open.extend(value.as_seq().unwrap_or_default().iter().rev()),
                    "nullable" | "x-nullable" => asks |= value.kind == Kind::Bool(true),
                    name if use_of(name) == Some(KeywordUse::Silent) || name.starts_with("x-") => {}
                    // The target of a reference has its own type.
                    "type" => types = true,
                    // In a parameter of Swagger 2.0, `required` is a flag.
                    "required" if value.as_seq().is_none() => {}
                    _ => speaks = true,
                }
            }
            // Strictly, null would have to be valid for every member of `allOf`. Authors of 3.0 documents use
            // it next to `allOf`, or as a member without a type, to make a reference nullable.
            flat.nullable |= asks && (!types || nodes.iter().any(|root| std::ptr::eq(*root, node)));
            if types && !speaks {
                flat.typed.push(Layer { node, bare: false });
                continue;
            }
            if speaks && !flat.layers.iter().any(|layer| std::ptr::eq(layer.node, node)) {
                flat.layers.push(Layer { node, bare: false });
            }
        }
        // The target of a reference takes precedence over a `type` without other constraints.
        if flat.named.is_empty() {
            flat.layers.append(&mut flat.typed);
        }
        Some(flat)
    }

    /// Adds the layers of a reference's target, without duplicates. `seen` contains the nodes
    /// visited for the same schema.
    fn expand(
        &mut self,
        target: ReferenceTarget<'n>,
        layers: &mut Vec<Layer<'n>>,
        seen: &mut HashSet<*const Node>,
    ) {
        let mut open = vec![target.node];
        while let Some(node) = open.pop() {
            // References may form a cycle, or lead to the same schema on several paths.
            if layers.len() > LAYERS_MAX || !seen.insert(node) {
                continue;
            }
            let Some(flat) = self.flatten(&[node]) else {
                // Fill the layers up to the limit, so that the caller reports the schema.
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

    /// Reads one alternative combined with the constraints common to all of them.
    pub(super) fn with(&mut self, base: &[Layer<'n>], one: &'n Node) -> Type {
        let span = one.span;
        let Some(flat) = self.flatten(&[one]) else { return Type::any(span) };
        let mut layers = base.to_vec();
        layers.extend(flat.layers);
        let mut seen = HashSet::new();
        for target in flat.named {
            self.expand(target, &mut layers, &mut seen);
        }
        if layers.len() > LAYERS_MAX {
            self.findings.add("layers", span, || faults::too_many_layers(span, LAYERS_MAX));
            return Type::any(span);
        }
        let hint = flat.hint.unwrap_or("alternative");
        let ty = self.merge(layers, hint, span);
        Type { nullable: flat.nullable, ..ty }
    }
}

pub(super) fn shape_of(layers: &[Layer<'_>]) -> LayerSet {
    layers.iter().map(|layer| (std::ptr::from_ref(layer.node), layer.bare)).collect()
}

/// The result of combining several nodes.
pub(super) enum Conjoined<'n> {
    Type(Type),
    /// A schema that consists of these nodes.
    Here(Vec<Layer<'n>>),
    /// A schema merged from these nodes and the targets of references.
    Layers {
        layers: Vec<Layer<'n>>,
        hint: &'n str,
        nullable: bool,
    },
}

/// A flattened conjunction.
struct FlatLayers<'n> {
    /// Nodes with constraints of their own.
    layers: Vec<Layer<'n>>,
    /// Nodes with a type and no other constraint.
    typed: Vec<Layer<'n>>,
    /// Targets of references.
    named: Vec<ReferenceTarget<'n>>,
    nullable: bool,
    /// Name of the first reference.
    hint: Option<&'n str>,
}
