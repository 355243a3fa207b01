//! Checks decision tables over finite domains: every combination of column values has a row, every
//! row is the first match of some combination, and every cell is possible.
//!
//! The domain of a column consists of the values of a closed enumeration, or of `true` and `false`,
//! or otherwise of the literals in its cells and "anything else". If the place may be absent or
//! null, the domain includes `absent`.

use super::conditions::is_of;
use super::faults;
use super::flow::{Fact, Flow};
use super::paths::FoundPath;
use super::proof::{PlaceUse, ProvenFact};
use super::route::RouteCheck;
use crate::contract::{Literal, ScalarKind, TypeKind};
use crate::diagnostic::Span;
use crate::mapping::ast::{self, Decide, Spanned};
use crate::mapping::literal;
use std::collections::BTreeSet;
use std::fmt;
use switchback_plan as plan;

/// Maximum number of columns, for readability.
const COLUMNS_MAX: usize = 6;
/// Maximum number of combinations to enumerate.
const COMBINATIONS_MAX: usize = 100_000;
/// Maximum number of uncovered combinations in a message.
const GAPS_SHOWN: usize = 3;

/// A lowered column with its domain.
struct CheckedColumn {
    plan: plan::Column,
    written: String,
    place: Option<FoundPath>,
    /// Facts that hold if a `{predicate}` column is `true`.
    facts: Vec<(Vec<String>, Fact)>,
    domain: Vec<DomainValue>,
}

/// A value of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DomainValue {
    /// Absent or null.
    Absent,
    Is(Literal),
    /// Any value that no cell of the column mentions.
    Other,
}

/// A cell, reduced to its matching behavior.
enum Matcher {
    Any,
    Absent,
    OneOf(Vec<Literal>),
    /// Never matches. The error has been reported.
    Faulty,
}

/// A lowered table, with the facts of each outcome.
pub(super) struct CheckedTable {
    pub columns: Vec<plan::Column>,
    pub rows: Vec<plan::Row>,
    /// By outcome: the facts that hold if a row leads to it.
    pub facts: Vec<Vec<(Vec<String>, Fact)>>,
}

impl RouteCheck<'_, '_> {
    /// Compiles a table. Returns `None` if it reports an error.
    pub(super) fn table(&mut self, decide: &Decide, flow: &Flow) -> Option<CheckedTable> {
        if decide.on.len() > COLUMNS_MAX {
            self.findings.push(faults::too_many_columns(decide.span, decide.on.len(), COLUMNS_MAX));
            return None;
        }
        // Compile columns and outcomes before returning, to report errors in either.
        let columns: Vec<_> = (0..decide.on.len()).map(|at| self.column(decide, at, flow)).collect();
        let ends = self.row_ends(decide);
        let columns = columns.into_iter().collect::<Option<Vec<_>>>()?;
        let mark = self.findings.len();
        let matchers: Vec<Vec<Matcher>> =
            decide.rows.iter().map(|row| self.matchers(row, &columns)).collect();
        let ends = ends?;
        let total = columns.iter().map(|column| column.domain.len()).product::<usize>();
        if total > COMBINATIONS_MAX {
            self.findings.push(faults::too_many_combinations(decide.span, total, COMBINATIONS_MAX));
            return None;
        }
        let seen = look(&columns, &matchers, total);
        // Cells with an error never match, so gaps next to them are not meaningful.
        if !seen.gaps.is_empty() && !self.findings.errors_since(mark) {
            let shown: Vec<String> =
                seen.gaps.iter().take(GAPS_SHOWN).map(|gap| describe(&columns, gap)).collect();
            self.findings.push(faults::table_gap(decide.span, &shown, seen.gaps.len()));
        }
        for (at, row) in decide.rows.iter().enumerate() {
            // A row with an error never matches, which does not make it redundant.
            let faulty = matchers[at].iter().any(|cell| matches!(cell, Matcher::Faulty));
            if !faulty && !seen.reached[at] {
                let before = seen.taken_by[at].map(|earlier| decide.rows[earlier].span);
                self.findings.push(faults::row_unreachable(row.span, before));
            }
        }
        if self.findings.errors_since(mark) {
            return None;
        }
        let facts = (0..decide.outcomes.len())
            .map(|outcome| facts(&columns, &matchers, &seen, &ends, outcome))
            .collect();
        let rows = decide.rows.iter().zip(&ends).map(|(row, outcome)| plan::Row {
            cells: row.cells.iter().map(cell).collect(),
            outcome: *outcome as u16,
            origin: self.env.origin(row.span),
        });
        let rows = rows.collect();
        Some(CheckedTable { columns: columns.into_iter().map(|column| column.plan).collect(), rows, facts })
    }

    /// Returns the outcome of each row. Reports unknown and unused outcomes.
    fn row_ends(&mut self, decide: &Decide) -> Option<Vec<usize>> {
        let names: Vec<&str> = decide.outcomes.iter().map(|outcome| outcome.name.value.as_str()).collect();
        let mut ends = Vec::new();
        for row in &decide.rows {
            let end = names.iter().position(|name| *name == row.outcome.value);
            if end.is_none() {
                self.findings.push(faults::unknown_outcome(&row.outcome, &names));
            }
            ends.push(end);
        }
        for (at, outcome) in decide.outcomes.iter().enumerate() {
            if !ends.contains(&Some(at)) {
                self.findings.push(faults::unused_outcome(&outcome.name));
            }
        }
        ends.into_iter().collect()
    }

    fn column(&mut self, decide: &Decide, at: usize, flow: &Flow) -> Option<CheckedColumn> {
        match &decide.on[at] {
            ast::ColumnDecl::Place(path) => {
                let found = self.reading(flow).find_spanned(path)?;
                let mentioned = column_literals(decide, at);
                // Testing for presence needs no check.
                if !mentioned.is_empty() {
                    self.needs_place(&found.location, PlaceUse::Decides, flow, path.span);
                }
                let domain = self.domain(&found, &mentioned, path)?;
                Some(CheckedColumn {
                    plan: plan::Column::Place(found.location.clone()),
                    written: path.value.clone(),
                    place: Some(found),
                    facts: Vec::new(),
                    domain,
                })
            }
            ast::ColumnDecl::Holds(predicate) => {
                let condition = self.condition(predicate, flow)?;
                self.values_decide(&condition.predicate, predicate, flow);
                let places: Vec<&str> =
                    predicate.all_places().into_iter().map(|place| place.value.as_str()).collect();
                Some(CheckedColumn {
                    plan: plan::Column::Holds(condition.predicate),
                    written: format!("the condition on {}", places.join(" and ")),
                    place: None,
                    facts: condition.facts,
                    domain: booleans(),
                })
            }
        }
    }

    /// Requires a check of places that a condition compares.
    fn values_decide(&mut self, predicate: &plan::Predicate, written: &ast::PredicateDecl, flow: &Flow) {
        use plan::Predicate;
        match predicate {
            Predicate::OneOf(place, _) => {
                self.needs_place(place, PlaceUse::Decides, flow, written.places[0].span);
            }
            Predicate::Equal(left, right) | Predicate::AbsentOrEqual(left, right) => {
                self.needs_place(left, PlaceUse::Decides, flow, written.places[0].span);
                self.needs_place(right, PlaceUse::Decides, flow, written.places[1].span);
            }
            Predicate::All(of) | Predicate::Any(of) => {
                of.iter().zip(&written.of).for_each(|(one, written)| self.values_decide(one, written, flow));
            }
            Predicate::Not(of) => {
                written.of.iter().for_each(|written| self.values_decide(of, written, flow));
            }
            _ => {}
        }
    }

    fn domain(
        &mut self,
        found: &FoundPath,
        mentioned: &[Literal],
        path: &Spanned<String>,
    ) -> Option<Vec<DomainValue>> {
        let types = self.env.types(found.held.side);
        let resolved = types.resolve(&found.held.ty);
        let mut domain = match resolved.kind {
            TypeKind::Scalar(scalar) => match (&scalar.values, scalar.kind) {
                (Some(listed), _) if !listed.open => {
                    listed.values.iter().cloned().map(DomainValue::Is).collect()
                }
                (None, ScalarKind::Boolean) => booleans(),
                // The service may add values to an open enumeration, so a table needs a row for them.
                (_, kind) => {
                    let open =
                        mentioned.iter().filter(|value| is_of(value, kind)).cloned().map(DomainValue::Is);
                    open.chain([DomainValue::Other]).collect()
                }
            },
            TypeKind::Any | TypeKind::OneOf(_) => {
                mentioned.iter().cloned().map(DomainValue::Is).chain([DomainValue::Other]).collect()
            }
            TypeKind::Null => Vec::new(),
            // A list or an object can only be tested for presence.
            TypeKind::Array(_) | TypeKind::Object(_) | TypeKind::Choice(_) | TypeKind::Named(_) => {
                vec![DomainValue::Other]
            }
        };
        if found.held.absent || resolved.nullable {
            domain.push(DomainValue::Absent);
        }
        if domain.is_empty() {
            self.findings.push(faults::empty_column(path.span));
            return None;
        }
        Some(domain)
    }

    fn matchers(&mut self, row: &ast::RowDecl, columns: &[CheckedColumn]) -> Vec<Matcher> {
        row.cells.iter().zip(columns).map(|(cell, column)| self.matcher(cell, column)).collect()
    }

    fn matcher(&mut self, cell: &ast::CellDecl, column: &CheckedColumn) -> Matcher {
        let (span, nodes) = match cell {
            ast::CellDecl::Any => return Matcher::Any,
            ast::CellDecl::Absent(span) => (*span, None),
            ast::CellDecl::OneOf(nodes) => match nodes.as_slice() {
                [node] if node.is_null() => (node.span, None),
                nodes => (nodes.first().map_or(Span::default(), |node| node.span), Some(nodes)),
            },
        };
        let Some(nodes) = nodes else {
            if !column.domain.contains(&DomainValue::Absent) {
                self.findings.push(faults::never_absent(span, &column.written));
                return Matcher::Faulty;
            }
            return Matcher::Absent;
        };
        let mut values = Vec::new();
        for node in nodes {
            let value = match &column.place {
                Some(found) => self.possible(found, node),
                None => match literal::scalar(node) {
                    Some(Literal::Boolean(value)) => Some(Literal::Boolean(value)),
                    _ => {
                        self.findings.push(faults::condition_cell(node.span));
                        None
                    }
                },
            };
            match value {
                Some(value) => values.push(value),
                None => return Matcher::Faulty,
            }
        }
        Matcher::OneOf(values)
    }
}

/// Result of enumerating all combinations.
struct TableCoverage {
    gaps: Vec<Vec<usize>>,
    reached: Vec<bool>,
    /// By row: an earlier row that matches one of its combinations.
    taken_by: Vec<Option<usize>>,
    /// By row and column: the values for which the row is the first match.
    with: Vec<Vec<BTreeSet<usize>>>,
}

/// Enumerates all combinations of column values.
fn look(columns: &[CheckedColumn], rows: &[Vec<Matcher>], total: usize) -> TableCoverage {
    let mut seen = TableCoverage {
        gaps: Vec::new(),
        reached: vec![false; rows.len()],
        taken_by: vec![None; rows.len()],
        with: rows.iter().map(|_| columns.iter().map(|_| BTreeSet::new()).collect()).collect(),
    };
    // Enumerated instead of derived: domains are small, and the result names concrete combinations.
    for number in 0..total {
        let combination = combination(columns, number);
        let mut matching = (0..rows.len()).filter(|row| {
            let mut cells = rows[*row].iter().zip(columns).zip(&combination);
            cells.all(|((cell, column), value)| cell.matches(&column.domain[*value]))
        });
        let Some(first) = matching.next() else {
            seen.gaps.push(combination);
            continue;
        };
        seen.reached[first] = true;
        for (values, value) in seen.with[first].iter_mut().zip(&combination) {
            values.insert(*value);
        }
        for later in matching {
            seen.taken_by[later].get_or_insert(first);
        }
    }
    seen
}

/// Decodes a combination from its number: an index into the domain of each column.
fn combination(columns: &[CheckedColumn], mut number: usize) -> Vec<usize> {
    let mut indexes: Vec<usize> = columns
        .iter()
        .rev()
        .map(|column| {
            let index = number % column.domain.len();
            number /= column.domain.len();
            index
        })
        .collect();
    indexes.reverse();
    indexes
}

fn describe(columns: &[CheckedColumn], combination: &[usize]) -> String {
    let parts = columns
        .iter()
        .zip(combination)
        .map(|(column, value)| format!("{} is {}", column.written, column.domain[*value]));
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns the facts about the columns' places that hold if a row leads to `outcome`.
fn facts(
    columns: &[CheckedColumn],
    rows: &[Vec<Matcher>],
    seen: &TableCoverage,
    ends: &[usize],
    outcome: usize,
) -> Vec<(Vec<String>, Fact)> {
    let mut facts = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        // A fact must hold for every row of the outcome, so consider their values together.
        let leading = ends.iter().enumerate().filter(|(_, end)| **end == outcome);
        let indexes: BTreeSet<usize> =
            leading.flat_map(|(row, _)| seen.with[row][at].iter().copied()).collect();
        let values: Vec<&DomainValue> = indexes.iter().map(|index| &column.domain[*index]).collect();
        match &column.place {
            Some(found) => {
                let Some(names) = found.steps() else { continue };
                // If one of the rows accepts an absent value, the outcome can rely on no fact about it.
                if values.contains(&&DomainValue::Absent) {
                    continue;
                }
                let listed = values.iter().map(|value| match value {
                    DomainValue::Is(literal) => Some(literal.clone()),
                    DomainValue::Absent | DomainValue::Other => None,
                });
                let listed = listed.collect::<Option<Vec<_>>>();
                if let Some(listed) = listed {
                    facts.push((names.clone(), Fact::OneOf(listed)));
                }
                // A cell with literals validates its place. `_` relies on the contract.
                let mut cells = ends.iter().enumerate().filter(|(_, end)| **end == outcome);
                if cells.all(|(row, _)| matches!(rows[row][at], Matcher::OneOf(_))) {
                    facts.push((names.clone(), Fact::Known(ProvenFact::There)));
                    facts.push((names.clone(), Fact::Known(ProvenFact::Typed)));
                }
                facts.push((names, Fact::Present));
            }
            None if values == [&DomainValue::Is(Literal::Boolean(true))] => {
                facts.extend(column.facts.clone())
            }
            None => {}
        }
    }
    facts
}

/// Returns the distinct literals in the cells of a column.
fn column_literals(decide: &Decide, column: usize) -> Vec<Literal> {
    let mut found = Vec::new();
    for row in &decide.rows {
        let Some(ast::CellDecl::OneOf(nodes)) = row.cells.get(column) else { continue };
        for value in nodes.iter().filter_map(literal::scalar) {
            if !found.contains(&value) {
                found.push(value);
            }
        }
    }
    found
}

fn booleans() -> Vec<DomainValue> {
    vec![DomainValue::Is(Literal::Boolean(true)), DomainValue::Is(Literal::Boolean(false))]
}

fn cell(cell: &ast::CellDecl) -> plan::Cell {
    match cell {
        ast::CellDecl::Any => plan::Cell::Any,
        ast::CellDecl::Absent(_) => plan::Cell::Absent,
        ast::CellDecl::OneOf(nodes) => match nodes.as_slice() {
            [node] if node.is_null() => plan::Cell::Absent,
            nodes => plan::Cell::OneOf(nodes.iter().map(literal::json).collect()),
        },
    }
}

impl Matcher {
    fn matches(&self, value: &DomainValue) -> bool {
        match (self, value) {
            (Matcher::Any, _) | (Matcher::Absent, DomainValue::Absent) => true,
            (Matcher::OneOf(literals), DomainValue::Is(literal)) => literals.contains(literal),
            _ => false,
        }
    }
}

impl fmt::Display for DomainValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DomainValue::Absent => f.write_str("absent"),
            DomainValue::Is(literal) => write!(f, "{literal}"),
            DomainValue::Other => f.write_str("anything else"),
        }
    }
}
