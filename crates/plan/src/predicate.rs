//! Conditions on the context document of a `serve` route.

use super::form::Conform;
use super::json::{Kinds, Raw};
use super::location::Location;

/// The closed list of conditions. "Present" means present and not null.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// Present and not null.
    Present(Location),
    /// Absent; an explicit null does not count as absent.
    Missing(Location),
    /// Absent, or present and not null.
    NotNull(Vec<Location>),
    /// At least one of these is present and not null.
    AnyPresent(Vec<Location>),
    /// All of these are present and not null.
    AllPresent(Vec<Location>),
    /// All of these are absent or null.
    NonePresent(Vec<Location>),
    /// Absent, or one of these values.
    OneOf(Location, Vec<Raw>),
    /// Absent, or of one of these JSON kinds.
    Kind(Location, Kinds),
    /// Both places have the same JSON value, regardless of number spelling, or both are absent.
    Equal(Location, Location),
    /// The first place is absent, or both have the same JSON value.
    AbsentOrEqual(Location, Location),
    /// All conform to the contract: required ones are present, and values have their types.
    Conforms(Vec<Conform>),
    /// All of these are true; true for an empty list.
    All(Vec<Predicate>),
    /// At least one of these is true; false for an empty list.
    Any(Vec<Predicate>),
    /// The negation of a condition.
    Not(Box<Predicate>),
}

impl Predicate {
    /// Returns the places that the condition reads.
    pub fn places(&self) -> Vec<&Location> {
        match self {
            Predicate::Present(place)
            | Predicate::Missing(place)
            | Predicate::OneOf(place, _)
            | Predicate::Kind(place, _) => vec![place],
            Predicate::NotNull(places)
            | Predicate::AnyPresent(places)
            | Predicate::AllPresent(places)
            | Predicate::NonePresent(places) => places.iter().collect(),
            Predicate::Equal(left, right) | Predicate::AbsentOrEqual(left, right) => vec![left, right],
            Predicate::Conforms(fields) => fields.iter().map(|field| &field.place).collect(),
            Predicate::All(of) | Predicate::Any(of) => of.iter().flat_map(Predicate::places).collect(),
            Predicate::Not(of) => of.places(),
        }
    }
}
