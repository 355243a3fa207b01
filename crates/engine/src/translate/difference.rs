//! Differences between an expected and an actual value, by place. For examples only: `diff`
//! compares live answers.

use std::fmt;
use switchback_json::Value;

/// Maximum number of reported differences.
const LISTED_MAX: usize = 20;

/// A place at which two values differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The place in the value.
    pub place: Place,
    /// The expected value; `None` if absent.
    pub expected: Option<Value>,
    /// The actual value; `None` if absent.
    pub found: Option<Value>,
}

/// A path from the root of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(usize),
}

impl Place {
    /// Returns the place with every index replaced by `*`, the notation for losses.
    pub fn any_element(&self) -> String {
        self.0.iter().fold("$".to_owned(), |text, step| match step {
            Step::Member(name) => format!("{text}.{name}"),
            Step::Element(_) => format!("{text}[*]"),
        })
    }

    fn with(&self, step: Step) -> Place {
        Place(self.0.iter().cloned().chain([step]).collect())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("$")?;
        self.0.iter().try_for_each(|step| match step {
            Step::Member(name) => write!(out, ".{name}"),
            Step::Element(at) => write!(out, "[{at}]"),
        })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.expected, &self.found) {
            (Some(expected), Some(found)) => {
                write!(out, "{}: expected {expected}, found {found}", self.place)
            }
            (Some(expected), None) => write!(out, "{}: expected {expected}, found nothing", self.place),
            (None, Some(found)) => write!(out, "{}: expected nothing, found {found}", self.place),
            (None, None) => Ok(()),
        }
    }
}

/// Returns the deepest places at which two values differ, ignoring the order of members. At most
/// [`LISTED_MAX`] places.
pub(super) fn compare(expected: Option<&Value>, found: Option<&Value>) -> Vec<Difference> {
    let mut differences = Vec::new();
    walk(Place::default(), expected, found, &mut differences);
    differences
}

fn walk(place: Place, expected: Option<&Value>, found: Option<&Value>, differences: &mut Vec<Difference>) {
    if differences.len() >= LISTED_MAX || expected == found {
        return;
    }
    match (expected, found) {
        (Some(Value::Object(expected)), Some(Value::Object(found))) => {
            for (key, value) in expected.iter() {
                let name = key.decode().into_owned();
                walk(place.with(Step::Member(name.clone())), Some(value), found.get(&name), differences);
            }
            for (key, value) in found.iter().filter(|(key, _)| !expected.contains_key(&key.decode())) {
                walk(place.with(Step::Member(key.decode().into_owned())), None, Some(value), differences);
            }
        }
        (Some(Value::Array(expected)), Some(Value::Array(found))) => {
            for at in 0..expected.len().max(found.len()) {
                walk(place.with(Step::Element(at)), expected.get(at), found.get(at), differences);
            }
        }
        (expected, found) => {
            differences.push(Difference { place, expected: expected.cloned(), found: found.cloned() });
        }
    }
}
