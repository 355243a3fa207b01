//! Evaluates conditions, selections and decision tables.

use super::context::{Context, same};
use super::form;
use super::value::constant;
use std::borrow::Cow;
use std::cmp::Ordering;
use switchback_json::Value;
use switchback_json::raw::Kind;
use switchback_plan::convert::instant;
use switchback_plan::{
    Cell, Choice, Column, Conform, Decision, Key, Location, Path, Predicate, Row, Selection, Take,
};

impl Context {
    pub(super) fn holds(&self, predicate: &Predicate) -> bool {
        match predicate {
            Predicate::Present(place) => self.is_present(place),
            Predicate::Missing(place) => self.matches(place).is_empty(),
            Predicate::NotNull(places) => {
                places.iter().all(|place| self.matches(place).iter().all(|value| !value.is_null()))
            }
            Predicate::AnyPresent(places) => places.iter().any(|place| self.is_present(place)),
            Predicate::AllPresent(places) => places.iter().all(|place| self.is_present(place)),
            Predicate::NonePresent(places) => !places.iter().any(|place| self.is_present(place)),
            // An absent value satisfies the condition; mappings exclude it with `present`.
            Predicate::OneOf(place, allowed) => {
                self.value(place).is_none_or(|value| allowed.iter().any(|raw| same(&value, &constant(raw))))
            }
            Predicate::Kind(place, kinds) => {
                self.value(place).is_none_or(|value| kinds.contains(kind_of(&value)))
            }
            Predicate::Equal(a, b) => self.are_equal(a, b),
            Predicate::AbsentOrEqual(a, b) => self.value(a).is_none() || self.are_equal(a, b),
            Predicate::Conforms(places) => places.iter().all(|one| self.conforms(one)),
            Predicate::All(of) => of.iter().all(|one| self.holds(one)),
            Predicate::Any(of) => of.iter().any(|one| self.holds(one)),
            Predicate::Not(of) => !self.holds(of),
        }
    }

    /// Returns the place to report for a false condition: the first one that makes it false.
    pub(super) fn fails_at<'p>(&self, predicate: &'p Predicate) -> Option<&'p Location> {
        let first = |places: &'p [Location], fails: &dyn Fn(&Location) -> bool| {
            places.iter().find(|place| fails(place))
        };
        match predicate {
            Predicate::Present(place) | Predicate::Missing(place) => Some(place),
            Predicate::OneOf(place, _) | Predicate::Kind(place, _) => Some(place),
            Predicate::Equal(place, _) | Predicate::AbsentOrEqual(place, _) => Some(place),
            Predicate::NotNull(places) => {
                first(places, &|place| self.matches(place).iter().any(|value| value.is_null()))
            }
            Predicate::AnyPresent(places) => places.first(),
            Predicate::AllPresent(places) => first(places, &|place| !self.is_present(place)),
            Predicate::NonePresent(places) => first(places, &|place| self.is_present(place)),
            Predicate::Conforms(places) => {
                places.iter().find(|one| !self.conforms(one)).map(|one| &one.place)
            }
            Predicate::All(of) => of.iter().find(|one| !self.holds(one)).and_then(|one| self.fails_at(one)),
            Predicate::Any(of) => of.first().and_then(|one| self.fails_at(one)),
            Predicate::Not(of) => of.places().into_iter().next(),
        }
    }

    /// Returns whether a field has the type that the contract declares. Its parents must be
    /// objects.
    fn conforms(&self, one: &Conform) -> bool {
        let Path::Singular(segments) = &one.place.path else { return false };
        // `request` and `request.body` belong to the context document, so start below them.
        for upto in 2..segments.len() {
            match self.walk(&segments[..upto]) {
                Some(Value::Object(_)) => {}
                Some(_) => return false,
                None => return !one.required,
            }
        }
        self.walk(segments).map_or(!one.required, |value| form::fits(value, &one.form))
    }

    /// Returns whether a place has a value other than null.
    fn is_present(&self, place: &Location) -> bool {
        self.matches(place).iter().any(|value| !value.is_null())
    }

    fn are_equal(&self, a: &Location, b: &Location) -> bool {
        match (self.value(a), self.value(b)) {
            (Some(a), Some(b)) => same(&a, &b),
            (None, None) => true,
            _ => false,
        }
    }

    /// Returns whether the value at this place is `true`.
    pub(super) fn is_true(&self, place: &Location) -> bool {
        self.value(place).is_some_and(|value| value.as_bool() == Some(true))
    }

    /// Returns the selected value, or `None` if no condition holds or no value matches.
    pub(super) fn select(&self, selection: &Selection) -> Option<Value> {
        let holds = |choice: &&Choice| choice.when.as_ref().is_none_or(|when| self.holds(when));
        let choice = selection.choices.iter().find(holds)?;
        match &choice.take {
            Take::All => self.value(&choice.from).map(Cow::into_owned),
            Take::First => self.matches(&choice.from).into_iter().next().map(Cow::into_owned),
            Take::Page(page) => {
                let number = self.value(&page.at).and_then(|value| value.as_i64()).unwrap_or(page.first);
                let matches = self.matches(&choice.from).into_iter().map(Cow::into_owned);
                let size = usize::try_from(page.size).unwrap_or(usize::MAX);
                // A page before the first is empty, like a page after the last.
                let before = usize::try_from(number - page.first).ok().and_then(|at| at.checked_mul(size));
                Some(Value::from(before.map_or_else(Vec::new, |n| matches.skip(n).take(size).collect())))
            }
            Take::Newest(keys) => {
                let ranks = |value: &Value| keys.iter().map(|key| rank(value, key)).collect::<Vec<_>>();
                let newer = |a: &Cow<'_, Value>, b: &Cow<'_, Value>| {
                    // NaN cannot be ordered; treat such elements as equal.
                    ranks(a).partial_cmp(&ranks(b)).unwrap_or(Ordering::Equal)
                };
                // `max_by` returns the last of equal elements.
                self.matches(&choice.from).into_iter().max_by(newer).map(Cow::into_owned)
            }
        }
    }

    /// Returns the first matching row of a table, with its index.
    pub(super) fn decide<'d>(&self, decision: &'d Decision) -> Option<(usize, &'d Row)> {
        let values: Vec<_> = decision.columns.iter().map(|column| self.column(column)).collect();
        decision.rows.iter().enumerate().find(|(_, row)| {
            row.cells.len() == values.len()
                && row.cells.iter().zip(&values).all(|(cell, value)| matches_cell(cell, value.as_deref()))
        })
    }

    fn column(&self, column: &Column) -> Option<Cow<'_, Value>> {
        match column {
            Column::Place(place) => self.value(place),
            Column::Holds(predicate) => Some(Cow::Owned(Value::Bool(self.holds(predicate)))),
        }
    }
}

/// Sort key of an element by one member: its number, the instant it denotes, or its text. An
/// element without the member is the oldest.
type Rank = (Option<f64>, Option<(i64, u32)>, Option<String>);

fn rank(value: &Value, key: &Key) -> Rank {
    let Some(member) = value.get(&key.text) else { return (None, None, None) };
    let number = member.as_number().and_then(|number| number.text().parse().ok());
    match member.as_str().map(|text| (instant(&text), text)) {
        // Compare instants, so that different spellings of one instant are equal.
        Some((Some(instant), _)) => (number, Some(instant), None),
        Some((None, text)) => (number, None, Some(text.into_owned())),
        None => (number, None, None),
    }
}

fn matches_cell(cell: &Cell, value: Option<&Value>) -> bool {
    match cell {
        Cell::Any => true,
        // Tables treat null as absent.
        Cell::Absent => value.is_none_or(Value::is_null),
        Cell::OneOf(literals) => {
            value.is_some_and(|value| literals.iter().any(|literal| same(value, &constant(literal))))
        }
    }
}

pub(super) fn kind_of(value: &Value) -> Kind {
    match value {
        Value::Null => Kind::Null,
        Value::Bool(_) => Kind::Bool,
        Value::Number(_) => Kind::Number,
        Value::String(_) => Kind::String,
        Value::Array(_) => Kind::Array,
        Value::Object(_) => Kind::Object,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_json::Limits;

    /// Returns the order of the first element relative to the second by `at`.
    fn order(first: &str, second: &str) -> Option<Ordering> {
        let rank = |at: &str| {
            let element = format!(r#"{{"at":{at}}}"#);
            rank(&Value::parse(element.as_bytes(), &Limits::DOCUMENT).expect("JSON"), &Key::new("at"))
        };
        rank(first).partial_cmp(&rank(second))
    }

    #[test]
    fn dates_are_ordered_by_their_instant_and_other_texts_as_texts() {
        for (older, newer) in [
            (r#""2024-03-09T12:00:00+02:00""#, r#""2024-03-09T11:00:00Z""#),
            (r#""2024-03-09T11:00:00Z""#, r#""2024-03-09T11:00:00.5Z""#),
            (r#""2024-03-09T11:00:00.09Z""#, r#""2024-03-09T11:00:00.1Z""#),
            (r#""2024-03-08""#, r#""2024-03-09""#),
            (r#""soon""#, r#""2024-03-09T11:00:00Z""#),
            ("9", "10"),
            ("null", "1"),
        ] {
            assert_eq!(order(older, newer), Some(Ordering::Less), "{older} {newer}");
        }
        let same = order(r#""2024-03-09T12:00:00+02:00""#, r#""2024-03-09T10:00:00.000Z""#);
        assert_eq!(same, Some(Ordering::Equal));
    }
}
