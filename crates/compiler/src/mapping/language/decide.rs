//! Decision tables: columns, rows and cells.

use super::kinds::{ListOf, kinds};
use super::section::{Read, section};
use super::{OutcomeDecl, PredicateDecl, Spanned, SyntaxReader, faults};
use crate::diagnostic::{Span, suggest};
use crate::mapping::schema::{Sides, reference, text};
use crate::yaml::{Key, Kind, Node, TextStyle};
use serde_json::{Value, json};

section! {
    /// A decision table with unread rows.
    DecideDecl is "a decision", defines "decide" {
        /// Columns: paths or conditions.
        filled on: ListOf<ColumnDecl>,
        /// Cells for each column and the name of an outcome; the first row that matches counts.
        filled rows: ListOf<UnreadRow>,
        at span: Span,
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Decide {
    pub on: Vec<ColumnDecl>,
    pub rows: Vec<RowDecl>,
    pub outcomes: Vec<OutcomeDecl>,
    pub span: Span,
}

/// A column of a decision table.
#[derive(Clone, Debug)]
pub(crate) enum ColumnDecl {
    /// A path.
    Place(Spanned<String>),
    /// `{predicate: …}`; its cells are `true` and `false`.
    Holds(PredicateDecl),
}

impl Read for ColumnDecl {
    type Output = ColumnDecl;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ColumnDecl> {
        match &node.kind {
            Kind::Map(_) => PredicateDecl::read(key, node, reader).map(ColumnDecl::Holds),
            _ => reader.text(node).map(ColumnDecl::Place),
        }
    }

    fn schema(_: Sides<'_>) -> Value {
        json!({"anyOf": [text(), reference("predicate")]})
    }
}

#[derive(Clone, Debug)]
pub(crate) struct RowDecl {
    pub cells: Vec<CellDecl>,
    pub outcome: Spanned<String>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum CellDecl {
    /// `_`
    Any,
    /// `absent`
    Absent(Span),
    /// A literal or a list of literals.
    OneOf(Vec<Node>),
}

kinds! {
    /// `[cell, …, outcome]`. The form of a cell depends on its column.
    UnreadRow -> Node, |_, node, _| Some(node.clone()), |_| json!({"type": "array", "minItems": 2});
}

impl RowDecl {
    pub(super) fn read(node: &Node, columns: usize, reader: &mut SyntaxReader<'_>) -> Option<RowDecl> {
        let items = node.list(reader.findings)?;
        let Some((outcome, cells)) = items.split_last().filter(|(_, cells)| cells.len() == columns) else {
            reader.findings.push(faults::row_length(node.span, items.len().saturating_sub(1), columns));
            return None;
        };
        let outcome = reader.text(outcome)?;
        let mut read = Vec::with_capacity(cells.len());
        for cell in cells {
            reader.warn_of_quotes(
                cell,
                &["absent", "_"],
                "null is absent too, and a list of one says that the text is meant",
            );
            if let Node { kind: Kind::String(word, TextStyle::Plain), span } = cell
                && let Some(near) = suggest(word, &["absent"])
            {
                reader.findings.push(faults::nearly_otherwise(word, near, *span));
                read.push(CellDecl::Absent(*span));
            } else {
                read.push(self::cell(cell));
            }
        }
        Some(RowDecl { cells: read, outcome, span: node.span })
    }
}

fn cell(node: &Node) -> CellDecl {
    match &node.kind {
        Kind::String(word, TextStyle::Plain) if word == "_" => CellDecl::Any,
        Kind::String(word, TextStyle::Plain) if word == "absent" => CellDecl::Absent(node.span),
        Kind::Seq(items) => CellDecl::OneOf(items.to_vec()),
        _ => CellDecl::OneOf(vec![node.clone()]),
    }
}
