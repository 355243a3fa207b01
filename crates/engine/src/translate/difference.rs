//! How an expected value and a found one differ, by place. For examples only: what clients would notice between two live
//! answers is judged in `diff`.

use std::fmt;
use switchback_json::Value;

/// Differences listed at most; more say no more.
const LISTED_MAX: usize = 20;

/// One place at which two values differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Where in the value.
    pub place: Place,
    /// None = not there.
    pub expected: Option<Value>,
    /// None = not there.
    pub found: Option<Value>,
}

/// A place in a value, from the top.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(usize),
}

impl Place {
    /// The place with every index written as `*`, as losses are listed.
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

/// The deepest places at which two values differ, the order of members aside. At most [`LISTED_MAX`].
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
