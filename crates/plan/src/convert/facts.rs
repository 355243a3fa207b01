//! The constraints of a contract on the values at a place, as far as conversions need them. A
//! conversion uses them to determine whether it accepts every possible value. The compiler fills
//! them in; this module does not depend on contracts.

use crate::{Kinds, Raw};
use switchback_json::raw::Kind;

/// Constraints on the values of a place.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Whether the values are unconstrained.
    pub any: bool,
    /// Their kinds, including null.
    pub kinds: Kinds,
    /// Whether numbers have no fraction.
    pub integers: bool,
    /// All values as JSON text, if the contract enumerates them.
    pub values: Option<Vec<Raw>>,
    /// `format` of texts and numbers.
    pub format: Option<String>,
    /// Whether texts are integers in JSON notation.
    pub digits: bool,
    /// Maximum number of characters of texts; `None` if unbounded.
    pub length_most: Option<u64>,
    /// Smallest and largest number.
    pub bounds: [Option<i64>; 2],
    /// Constraints on the elements of lists.
    pub items: Option<Box<Facts>>,
    /// Minimum number of elements.
    pub items_least: u64,
    /// Maximum number of elements; `None` if unbounded.
    pub items_most: Option<u64>,
}

impl Facts {
    /// Returns the same constraints, restricted to values of one kind.
    pub(super) fn only(&self, kind: Kind) -> Facts {
        Facts { kinds: Kinds::from_kinds(&[kind]), ..self.clone() }
    }

    /// Returns whether the values are enumerated and all satisfy the predicate.
    pub(super) fn all_listed(&self, holds: impl Fn(&[u8]) -> bool) -> bool {
        self.values.as_ref().is_some_and(|values| values.iter().all(|value| holds(value)))
    }

    /// Returns whether numbers are integers within the inclusive bounds.
    pub(crate) fn is_between(&self, least: i64, most: i64) -> bool {
        let [from, to] = self.bounds;
        // A missing bound means that no bound is known, so it cannot prove that the range is sufficient.
        self.integers && from.is_some_and(|from| from >= least) && to.is_some_and(|to| to <= most)
    }
}
