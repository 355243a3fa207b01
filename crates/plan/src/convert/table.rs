//! `table`: each scalar of the old side with its counterpart on the new side. If several values
//! have the same counterpart, the first one is written back, and the distinction is lost. Values
//! are compared, not spellings: `1.0` equals `1`.

use super::{Arguments, ConversionKind, Domain, Example, Facts, Holds, Law, Spec, Yield};
use crate::decimal::Decimal;
use crate::{Kinds, Raw, SideId};
use switchback_json::raw::{self, Kind};
use switchback_json::text;

/// Rows of scalars (JSON text), old to new. If several rows contain a value, the first one applies.
#[derive(Debug)]
pub struct Table {
    /// Each old value with its new one, in the order of the mapping.
    pub rows: Vec<(Raw, Raw)>,
}

const SCALAR: Domain = Domain {
    kinds: Kinds::from_kinds(&[Kind::Null, Kind::Bool, Kind::Number, Kind::String]),
    integer: false,
    absent: false,
    total: false,
};

pub(super) const SPEC: Spec = Spec {
    name: "table",
    about: "a scalar on the old side, the one that stands for it on the new side",
    arguments: Arguments::Table,
    old: SCALAR,
    new: SCALAR,
    null_passes: true,
    structural: false,
    law: Law::Iso,
    examples: &[
        example("0", "\"public\"", Holds::Both),
        example("1", "\"private\"", Holds::Both),
        example("null", "\"unknown\"", Holds::Both),
        example("0", "\"publi\\u0063\"", Holds::Backward),
        example("1", "\"hidden\"", Holds::Backward),
        example("1.0", "\"private\"", Holds::Forward),
        example("10e-1", "\"private\"", Holds::Forward),
    ],
};

const fn example(old: &'static str, new: &'static str, holds: Holds) -> Example {
    Example {
        written: "{table: {0: public, 1: [private, hidden], null: unknown}}",
        kind: sample,
        old: Some(old),
        new: Some(new),
        holds,
    }
}

fn sample() -> ConversionKind {
    let rows = [("0", "\"public\""), ("1", "\"private\""), ("1", "\"hidden\""), ("null", "\"unknown\"")];
    let rows = rows.iter().map(|(old, new)| (Raw::from(old.as_bytes()), Raw::from(new.as_bytes()))).collect();
    ConversionKind::Table(Table { rows }.into())
}

impl Table {
    /// Returns the kinds of values in the column of this side.
    pub fn kinds(&self, side: SideId) -> Kinds {
        let column = self.rows.iter().map(|(old, new)| if side == SideId::OLD { old } else { new });
        Kinds::from_kinds(&column.filter_map(|cell| raw::kind(cell)).collect::<Vec<_>>())
    }

    /// Returns [`Law::Iso`] if each value has one row. A repeated value loses information towards
    /// its side: it reads back as the first of its counterparts.
    pub(super) fn law(&self) -> Law {
        let repeats = |column: fn(&(Raw, Raw)) -> &Raw| {
            let is_same = |at: usize, row: &(Raw, Raw)| same_scalar(column(row), column(&self.rows[at]));
            let seen = |at: usize| self.rows[..at].iter().any(|row| is_same(at, row));
            (0..self.rows.len()).any(seen)
        };
        match (repeats(|row| &row.0), repeats(|row| &row.1)) {
            (false, false) => Law::Iso,
            (true, false) => Law::Lens,
            (false, true) => Law::OldLens,
            (true, true) => Law::Fold,
        }
    }

    /// Returns whether the contract enumerates the values of a place, and each has a row.
    pub(super) fn takes_all(&self, from: SideId, facts: &Facts) -> bool {
        let cell = |row: &'_ (Raw, Raw)| if from == SideId::OLD { row.0.clone() } else { row.1.clone() };
        !facts.any && facts.all_listed(|value| self.rows.iter().any(|row| same_scalar(&cell(row), value)))
    }

    pub(super) fn convert(&self, json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield> {
        // The first row applies to a repeated value. This defines which of several counterparts is the
        // result.
        let found = self.rows.iter().find_map(|(old, new)| {
            let (from, to) = if forward { (old, new) } else { (new, old) };
            same_scalar(from, json).then_some(to)
        });
        out.extend_from_slice(found?);
        Some(Yield::Written)
    }
}

fn same_scalar(cell: &[u8], json: &[u8]) -> bool {
    if cell == json {
        return true;
    }
    // A string may have several spellings, because characters may be escaped.
    let content = |json: &[u8]| {
        let raw = json.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        Some(text::decode(std::str::from_utf8(raw).ok()?).into_owned())
    };
    // `1`, `1.0` and `1e0` are the same JSON number, and a service may write any of them.
    if let (Some(cell), Some(json)) = (Decimal::parse(cell), Decimal::parse(json)) {
        return cell == json;
    }
    content(cell).is_some_and(|cell| content(json).is_some_and(|json| cell == json))
}
