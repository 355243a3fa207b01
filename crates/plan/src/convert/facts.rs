//! What a contract says of the values at a place, as far as conversions ask: by it a conversion tells whether it takes every
//! value that may come. Knows nothing of contracts; the compiler fills it in.

use crate::{Kinds, Raw};
use switchback_json::raw::Kind;

/// The values of a place.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Nothing is known of them.
    pub any: bool,
    /// Their kinds, null included.
    pub kinds: Kinds,
    /// Numbers have no fraction.
    pub integers: bool,
    /// All values, as JSON text, where the contract lists them.
    pub values: Option<Vec<Raw>>,
    /// `format` of texts and numbers.
    pub format: Option<String>,
    /// Texts are integers as JSON writes them.
    pub digits: bool,
    /// Least and greatest number.
    pub bounds: [Option<i64>; 2],
    /// Of lists: what their elements are, and how many there are.
    pub items: Option<Box<Facts>>,
    /// Least number of elements.
    pub items_least: u64,
    /// Greatest number of elements; none = any number.
    pub items_most: Option<u64>,
}

impl Facts {
    /// The same values as far as they are of one kind.
    pub(super) fn only(&self, kind: Kind) -> Facts {
        Facts { kinds: Kinds::of(&[kind]), ..self.clone() }
    }

    /// Whether there is a list of values, and this holds for each.
    pub(super) fn all_listed(&self, holds: impl Fn(&[u8]) -> bool) -> bool {
        self.values.as_ref().is_some_and(|values| values.iter().all(|value| holds(value)))
    }

    /// Whether numbers are integers between two bounds.
    pub(super) fn is_between(&self, least: i64, most: i64) -> bool {
        let [from, to] = self.bounds;
        self.integers && from.is_some_and(|from| from >= least) && to.is_some_and(|to| to <= most)
    }
}
