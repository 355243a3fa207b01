//! Differences that no line carries for certain. The draft continues past each of them with a line
//! that a person has to confirm or replace, so that the lines of the whole operation are ready to be
//! edited. An operation with an obstacle is not served.

use super::Drafted;
use super::conversions::fits;
use super::spelled::{one_line, path, place, quote};
use crate::contract::{Field, TypeIn, Types, sample};
use crate::diagnostic::Span;
use crate::init::fields::{FieldPath, same_kind};
use switchback_plan::Message;

/// A difference that needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::init) struct Obstacle {
    /// Id of its decision, once the shape is complete.
    pub id: String,
    /// The difference.
    pub text: String,
    /// Its places in the documents, by side.
    pub spans: [Option<Span>; 2],
    /// The lines that resolve it. The draft contains the first one.
    pub choices: Vec<DraftChoice>,
}

/// A line that resolves an obstacle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::init) struct DraftChoice {
    /// Its effect.
    pub label: String,
    /// The line, in flow notation.
    pub line: String,
}

impl DraftChoice {
    pub(super) fn new(label: impl Into<String>, line: String) -> DraftChoice {
        DraftChoice { label: label.into(), line }
    }

    /// A member of one side, built with `value`.
    fn only(label: &str, side: &str, name: &str, value: &str) -> DraftChoice {
        DraftChoice::new(label, format!("only: {{{}: {{{name}: {value}}}}}", quote(side)))
    }
}

/// Most candidates of a rename in one decision.
const CANDIDATES_MAX: usize = 3;

/// A member that only one side has, with what is known about it.
pub(super) struct OneSided<'t> {
    pub at: &'t FieldPath,
    pub field: &'t Field,
    pub types: &'t Types,
    /// Unmatched members of the other side, and their types.
    pub others: &'t [(FieldPath, &'t Field)],
    pub other_types: &'t Types,
}

impl OneSided<'_> {
    /// Returns the choices for a member that the served side always has, in answers: a constant, or
    /// a member of the other side.
    pub(super) fn built(&self, side: usize, names: [&str; 2]) -> Drafted<Vec<DraftChoice>> {
        let name = place(self.at)?;
        let mut all = vec![DraftChoice::only(
            "always this value",
            names[side],
            &name,
            &literal(self.types, self.field),
        )];
        // Members that the old side always has are read in answers, those of the new side in requests.
        let way = if side == 0 { Message::Answer } else { Message::Request };
        all.extend(self.renames(side, way, names, true));
        Ok(all)
    }

    /// Returns the choices for a member that clients send and the other side does not know.
    pub(super) fn sent(&self, names: [&str; 2]) -> Drafted<Vec<DraftChoice>> {
        let name = place(self.at)?;
        let mut all = vec![
            DraftChoice::only("refuse calls that send it", names[0], &name, "{refuse: todo}"),
            DraftChoice::only("leave it out", names[0], &name, "none"),
        ];
        all.extend(self.renames(0, Message::Request, names, false));
        Ok(all)
    }

    /// Returns a rename for each member of the other side whose values fit. `is_always_there` adds a
    /// value for messages without that member.
    fn renames(
        &self,
        side: usize,
        way: Message,
        names: [&str; 2],
        is_always_there: bool,
    ) -> Vec<DraftChoice> {
        let is_like = |(_, other): &&(FieldPath, &Field)| {
            let [own, other] = [self.types.at(&self.field.ty), self.other_types.at(&other.ty)];
            let types = if side == 0 { [own, other] } else { [other, own] };
            same_kind(types) && fits(types, way)
        };
        let line = |(at, other): &(FieldPath, &Field)| {
            let places = [place(self.at).ok()?, place(at).ok()?];
            let [old, new] = if side == 0 { [&places[0], &places[1]] } else { [&places[1], &places[0]] };
            let label = format!("it is `{}` on the other side", one_line(&path(at)));
            if !is_always_there || other.required {
                return Some(DraftChoice::new(label, format!("rename: {{{old}: {new}}}")));
            }
            let (new_side, own_side) = (quote(names[1]), quote(names[side]));
            let value = literal(self.types, self.field);
            Some(DraftChoice::new(
                format!("{label}, and this value where there is none"),
                format!("rename: {{{old}: {{{new_side}: {new}, default: {{{own_side}: {value}}}}}}}"),
            ))
        };
        self.others.iter().filter(is_like).filter_map(line).take(CANDIDATES_MAX).collect()
    }
}

/// Returns a value of a field's type, in flow notation.
pub(super) fn literal(types: &Types, field: &Field) -> String {
    literal_of(types.at(&field.ty))
}

pub(super) fn literal_of(ty: TypeIn<'_>) -> String {
    sample(ty.types, ty.ty).to_string()
}
