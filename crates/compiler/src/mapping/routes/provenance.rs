//! Tracks the places that step results are derived from.
//!
//! The key under which a reply is remembered (`resume:`) must cover every part of the request that
//! the write depends on, including the parts that select the record, because a repeated request with
//! the same key reuses the reply instead of writing.

use super::proof::{Origins, children, names_of};
use crate::contract::Operation;
use std::collections::BTreeSet;
use switchback_plan::{
    self as plan, CallHead, Expr, Location, Others, Path, PathPart, Predicate, QueryFrom, Segment,
    StepAction, StepCall, Take, ValueOp,
};

/// Origins of step results.
#[derive(Clone, Debug, Default)]
pub(super) struct Provenance {
    /// The places have names such as `request.body.name`.
    made: Origins,
}

impl Provenance {
    /// Records the origin of a step's result.
    pub(super) fn record(&mut self, name: &str, action: &StepAction, operation: &Operation) {
        match action {
            StepAction::Make(Expr::Object(members)) => {
                for (key, value) in members {
                    self.made.put(name, Some(&key.text), collect(|out| of_expr(value, out)));
                }
            }
            StepAction::Make(value) => self.made.put(name, None, collect(|out| of_expr(value, out))),
            StepAction::Select(selection) => {
                let of_choice = |choice: &plan::Choice, out: &mut Vec<String>| {
                    choice.when.iter().for_each(|when| of_predicate(when, out));
                    of_place(&choice.from, out);
                    if let Take::Page(page) = &choice.take {
                        of_place(&page.at, out);
                    }
                };
                let places = collect(|out| selection.choices.iter().for_each(|one| of_choice(one, out)));
                self.made.put(name, None, places);
            }
            // A reply depends on everything that the call sends, and on the condition of the call.
            StepAction::Call(call) => {
                let places = collect(|out| {
                    of_call(call, operation, out);
                    call.when.iter().for_each(|when| of_predicate(when, out));
                    call.each.iter().for_each(|each| of_place(&each.list, out));
                    let until = call.pages.as_ref().and_then(|pages| pages.until.as_ref());
                    until.iter().for_each(|until| of_place(until, out));
                });
                self.made.put(name, None, places);
            }
            StepAction::Recall(recall) => {
                let places = collect(|out| {
                    of_expr(&recall.key, out);
                    recall.each.iter().for_each(|each| of_place(&each.list, out));
                });
                self.made.put(name, None, places);
            }
            StepAction::Keep(_) => {}
        }
    }

    /// Records the list that contains an element.
    pub(super) fn record_element(&mut self, name: &str, list: &Location) {
        self.made.put(name, None, collect(|out| of_place(list, out)));
    }

    /// Returns the places of the request that lead to `places` without passing a covered place.
    pub(super) fn of_request(&self, places: Vec<String>, covered: &[String]) -> BTreeSet<String> {
        let is_covered =
            |place: &str| covered.iter().any(|key| place.strip_prefix(key.as_str()).is_some_and(is_rest));
        let (mut open, mut seen, mut found) = (places, BTreeSet::new(), BTreeSet::new());
        while let Some(place) = open.pop() {
            // Equal keys imply equal covered places, and everything derived from these alone.
            if is_covered(&place) || !seen.insert(place.clone()) {
                continue;
            }
            let mut names = place.split('.');
            match names.next().unwrap_or_default() {
                "request" => drop(found.insert(place)),
                root => open.extend(self.made.behind(root, names.next()).cloned()),
            }
        }
        // A place includes the places below it.
        let all = found.clone();
        let is_below = |place: &String| {
            let above =
                |other: &String| other != place && place.strip_prefix(other.as_str()).is_some_and(is_rest);
            all.iter().any(above)
        };
        found.retain(|place| !is_below(place));
        found
    }
}

fn is_rest(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('.')
}

/// Collects the places that a call depends on.
pub(super) fn of_call(call: &StepCall, operation: &Operation, out: &mut Vec<String>) {
    let CallHead { path, query, headers, .. } = &call.head;
    for part in path {
        match part {
            PathPart::Literal(_) => {}
            PathPart::Value(value) => of_expr(value, out),
            PathPart::Variable(at) => {
                let name = operation.key.path.variables().nth(usize::from(*at));
                out.extend(name.map(|name| format!("request.path.{name}")));
            }
        }
    }
    for rule in query {
        match &rule.from {
            QueryFrom::Value(value) => of_expr(value, out),
            QueryFrom::Client(name) | QueryFrom::ClientFields(name) => {
                out.push(format!("request.query.{name}"));
            }
            QueryFrom::Constant(_) => {}
        }
    }
    headers.iter().for_each(|rule| of_expr(&rule.value, out));
    call.body.iter().for_each(|body| of_expr(body, out));
}

pub(super) fn collect(gather: impl FnOnce(&mut Vec<String>)) -> Vec<String> {
    let mut places = Vec::new();
    gather(&mut places);
    places
}

/// Returns a singular place without indexes.
pub(super) fn exact(location: &Location) -> Option<String> {
    let Path::Singular(steps) = &location.path else { return None };
    let is_plain = steps.iter().all(|step| matches!(step, Segment::Member(_)));
    is_plain.then(|| names_of(location).join("."))
}

fn of_place(location: &Location, out: &mut Vec<String>) {
    out.push(names_of(location).join("."));
    if let Path::Query(_) = &location.path {
        out.extend(filtered_places(&location.text));
    }
}

/// Returns the places that filters of a path refer to: `$.name.name`, outside of quotes. A bracket
/// terminates the place, which yields a wider one.
fn filtered_places(text: &str) -> Vec<String> {
    let (mut quote, mut found) = (None, Vec::new());
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '$') if at > 0 => {
                let is_of_place = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '.');
                let place: String = text[at + 1..].chars().take_while(is_of_place).collect();
                found.push(place.trim_matches('.').to_owned());
            }
            _ => {}
        }
    }
    found
}

fn of_predicate(predicate: &Predicate, out: &mut Vec<String>) {
    predicate.places().into_iter().for_each(|place| of_place(place, out));
}

/// Collects the places that a value depends on, including those of conditions.
fn of_expr(expr: &Expr, out: &mut Vec<String>) {
    match expr {
        Expr::At(place) | Expr::Lookup { list: place, .. } => of_place(place, out),
        Expr::If { predicate, .. } => of_predicate(predicate, out),
        _ => {}
    }
    match expr {
        Expr::Shape { op, from, with, over, .. } => {
            match (&**from, members_of(op)) {
                (Expr::At(location), Some(members)) => {
                    let place = names_of(location).join(".");
                    out.extend(members.iter().map(|member| format!("{place}.{member}")));
                }
                _ => of_expr(from, out),
            }
            with.iter().chain(over.iter().map(|over| &over.base)).for_each(|value| of_expr(value, out));
        }
        Expr::Each { name, list, give } => {
            of_expr(list, out);
            // The element itself is not a place of the context. The list covers it.
            let is_of_context = |place: &String| place.split('.').next() != Some(&*name.text);
            out.extend(collect(|out| of_expr(give, out)).into_iter().filter(is_of_context));
        }
        _ => children(expr).into_iter().for_each(|expr| of_expr(expr, out)),
    }
}

/// Returns the members that a shape reads, or `None` if it also passes others.
fn members_of(op: &ValueOp) -> Option<Vec<String>> {
    let ValueOp::Object(object) = op else { return None };
    matches!(object.others, Others::Drop).then(|| read_members(object))
}

/// Returns the declared members that an op reads.
pub(super) fn read_members(object: &plan::ObjectOp) -> Vec<String> {
    let is_read = |member: &&plan::Member| {
        member.capture.is_some()
            || !matches!(member.action, plan::MemberAction::Drop | plan::MemberAction::Shadowed)
    };
    object.members.iter().filter(is_read).map(|member| member.name.text.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(places: &[&str]) -> Vec<String> {
        places.iter().map(|place| (*place).to_owned()).collect()
    }

    #[test]
    fn what_filters_compare_with_is_found_outside_of_quotes() {
        for (path, found) in [
            (
                "$.boxes.body[?@.open && (!$.asked.id || @.parts[?@.id == $.asked.id])]",
                vec!["asked.id", "asked.id"],
            ),
            ("$.list[?@.name == 'costs $.5']", vec![]),
            ("$.list[?@.name == $.request.query['a b']]", vec!["request.query"]),
        ] {
            assert_eq!(filtered_places(path), texts(&found), "{path}");
        }
    }

    #[test]
    fn what_leads_to_a_place_is_followed_through_steps_up_to_what_the_key_has() {
        let mut provenance = Provenance::default();
        provenance.made.put("asked", Some("text"), texts(&["request.body.message", "request.body.subject"]));
        provenance.made.put("asked", Some("region"), texts(&["request.path.region"]));
        provenance.made.put("found", None, texts(&["request.body.email", "asked.region", "config.on"]));
        provenance.made.put("box", None, texts(&["found.body", "box.body"]));
        let missing = |covered: &[&str]| -> Vec<String> {
            let sent = texts(&["box.id", "asked.text", "request.body", "request.body.note"]);
            provenance.of_request(sent, &texts(covered)).into_iter().collect()
        };
        assert_eq!(missing(&[]), ["request.body", "request.path.region"]);
        assert_eq!(missing(&["request"]), [""; 0]);
        assert_eq!(missing(&["request.body"]), ["request.path.region"]);
        assert_eq!(missing(&["box.id", "asked"]), ["request.body"]);
    }
}
