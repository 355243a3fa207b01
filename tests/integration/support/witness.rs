//! Two answers beside one another: where they differ, and which differences a pack declares.

use super::raw::Answer;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use switchback::mapping::{self, load::PackSource};
use switchback::plan::{Pack, Route, SideId};
use switchback::route::{Found, Router};

/// The first pack, compiled from its folder.
pub fn messaging_pack() -> Arc<Pack> {
    let source =
        PackSource::from_dir(&super::packs::messaging_folder()).expect("the pack lies beside the tests");
    mapping::compile(&source).pack.expect("the pack compiles")
}

/// The route that a request line such as `GET /v2/things?page=1` finds at the front that serves a side at its name.
pub fn route_of<'p>(pack: &'p Pack, side: SideId, line: &str) -> Option<&'p Route> {
    let side_at = usize::from(side.0);
    let (method, target) = line.split_once(' ')?;
    let path = target.strip_prefix('/')?.strip_prefix(&pack.sides[side_at].name)?.split('?').next()?;
    let direction = &pack.directions[side_at];
    match Router::new(direction).find(&method.parse().ok()?, path) {
        Found::Route { route, .. } => direction.routes.get(usize::from(route.0)),
        _ => None,
    }
}

/// Whether the pack declares this difference: a field of the served side that is lost on this route, and what stands there
/// instead.
pub fn is_declared(pack: &Pack, route: Option<&Route>, side: SideId, difference: &Difference) -> bool {
    let name = &pack.sides[usize::from(side.0)].name;
    let losses = route.map_or(&[][..], |route| &route.losses);
    losses.iter().any(|loss| {
        let instead = loss.instead.as_deref().and_then(|text| serde_json::from_str(text).ok());
        loss.side == *name && loss.place == difference.place && instead == difference.got
    })
}

/// Whether a body is an error in the service's form: one reason, with words in it.
pub fn is_error_form(body: &Value) -> bool {
    body.as_object().is_some_and(|members| members.len() == 1)
        && body["reason"].as_str().is_some_and(|text| !text.is_empty())
}

/// The body as JSON; null where it is none.
pub fn json(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
}

/// A place at which two values differ; elements of arrays are `[*]`.
pub struct Difference {
    pub place: String,
    pub told: Option<Value>,
    pub got: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: told {:?}, got {:?}", self.place, self.told, self.got)
    }
}

/// All places at which what one was told differs from what the other got.
pub fn differences(told: &Value, got: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk("$", Some(told), Some(got), &mut found);
    found
}

fn walk(place: &str, told: Option<&Value>, got: Option<&Value>, found: &mut Vec<Difference>) {
    match (told, got) {
        (Some(Value::Object(told)), Some(Value::Object(got))) => {
            let names: BTreeSet<_> = told.keys().chain(got.keys()).collect();
            for name in names {
                walk(&format!("{place}.{name}"), told.get(name), got.get(name), found);
            }
        }
        (Some(Value::Array(told)), Some(Value::Array(got))) => {
            for at in 0..told.len().max(got.len()) {
                walk(&format!("{place}[*]"), told.get(at), got.get(at), found);
            }
        }
        (told, got) if told != got => {
            found.push(Difference { place: place.to_owned(), told: told.cloned(), got: got.cloned() });
        }
        _ => {}
    }
}
