//! Anchored values, of which aliases insert copies.

use super::{Kind, Node};
use std::collections::HashMap;

/// Values of anchors, by number.
#[derive(Default)]
pub(super) struct Anchors {
    values: HashMap<usize, Anchored>,
}

/// The value of an anchor, with its size.
pub(super) struct Anchored {
    pub(super) node: Node,
    pub(super) nodes: usize,
    pub(super) depth: usize,
}

impl Anchors {
    pub(super) fn get(&self, anchor: usize) -> Option<&Anchored> {
        self.values.get(&anchor)
    }

    pub(super) fn set(&mut self, anchor: usize, node: &Node) {
        let (nodes, depth) = size(node);
        self.values.insert(anchor, Anchored { node: node.clone(), nodes, depth });
    }
}

/// Returns the number of nodes, including keys, and the nesting depth.
fn size(node: &Node) -> (usize, usize) {
    let add =
        |(nodes, depth): (usize, usize), (more, inner): (usize, usize)| (nodes + more, depth.max(inner + 1));
    match &node.kind {
        Kind::Seq(items) => items.iter().map(size).fold((1, 1), add),
        Kind::Map(entries) => entries.iter().map(|(_, value)| size(value)).fold((1 + entries.len(), 1), add),
        _ => (1, 0),
    }
}
