//! Reports places of a request that are used without a check.

use super::faults;
use super::flow::Flow;
use super::proof::{PlaceUse, all, children, form_of, names_of};
use super::provenance::read_members;
use super::route::RouteCheck;
use crate::diagnostic::Span;
use switchback_plan::{self as plan, Location, ValueOp};

impl RouteCheck<'_, '_> {
    /// Reports places of the request's body that have not been validated.
    pub(super) fn needs(&mut self, places: &[String], need: PlaceUse<'_>, flow: &Flow, span: Span) {
        let types = self.env.types(self.serves);
        let mut unknown = flow.proofs.unknown(places, types);
        unknown.sort_unstable();
        unknown.dedup();
        if !unknown.is_empty() {
            self.findings.push(faults::unchecked_places(&unknown, need, span));
        }
    }

    /// Reports the unvalidated places behind `location`.
    pub(super) fn needs_place(&mut self, location: &Location, need: PlaceUse<'_>, flow: &Flow, span: Span) {
        self.needs(&flow.proofs.behind(location), need, flow, span);
    }

    /// Reports an unvalidated place that is read after a write.
    pub(super) fn read_late(&mut self, location: &Location, flow: &Flow, span: Span) {
        if let Some(write) = flow.write_name() {
            self.needs_place(location, PlaceUse::After(write), flow, span);
        }
    }

    /// Reports unvalidated places that a shape reads after a write: the members it accepts, and the
    /// object around them.
    pub(super) fn shaped_late(&mut self, location: &Location, op: &ValueOp, flow: &Flow, span: Span) {
        let Some(write) = flow.write_name() else { return };
        let names = names_of(location);
        let Some(members) = members_read(op) else { return self.read_late(location, flow, span) };
        let member = |name: &String| {
            let names: Vec<&str> = names.iter().chain([name]).map(String::as_str).collect();
            flow.proofs.behind(&super::paths::location(&names))
        };
        let mut places: Vec<String> = members.iter().flat_map(member).collect();
        if names.first().is_some_and(|root| root == "request") {
            let types = self.env.types(self.serves);
            // Checks cannot validate undeclared members, which may contain anything.
            let is_declared = |place: &String| {
                let names: Vec<&str> = place.split('.').skip(2).collect();
                form_of(self.operation, types, &names).is_some()
            };
            let (declared, undeclared): (Vec<_>, Vec<_>) = places.into_iter().partition(is_declared);
            if !undeclared.is_empty() {
                self.findings.push(faults::undeclared_late(&undeclared, write, span));
            }
            places = declared;
            let whole = names.join(".");
            let proofs = &flow.proofs;
            if proofs.unknown(&places, types).is_empty() && !proofs.is_object(&whole) {
                places.push(whole);
            }
        }
        self.needs(&places, PlaceUse::After(write), flow, span);
    }

    /// Reports unvalidated places in a value that becomes text. A strict conversion validates its
    /// source.
    pub(super) fn becomes_text(&mut self, expr: &plan::Expr, what: &str, flow: &Flow, span: Span) {
        let mut places = Vec::new();
        verbatim(expr, &mut |location| places.extend(flow.proofs.behind(location)));
        self.needs(&places, PlaceUse::Text(what), flow, span);
    }
}

/// Returns the members of its source that an op reads, or `None` if it reads the entire value.
/// Undeclared members that pass unchanged do not count, because they need no check.
fn members_read(op: &ValueOp) -> Option<Vec<String>> {
    if let ValueOp::Attempt(attempt) = op {
        return members_read(&attempt.op);
    }
    let ValueOp::Object(object) = op else { return None };
    if matches!(object.others, plan::Others::Each(_) | plan::Others::Refuse(_)) {
        return None;
    }
    Some(read_members(object))
}

/// Visits the places that a value contains unchanged. A conversion that rejects invalid values
/// counts as a check.
fn verbatim(expr: &plan::Expr, see: &mut dyn FnMut(&Location)) {
    use plan::Expr;
    use plan::convert::{Facts, Otherwise};
    use plan::function::{ApplyElse, Gives};
    match expr {
        Expr::Convert { conversion, .. } if matches!(conversion.otherwise, Otherwise::Error) => {}
        // A function checks its source as well, unless its result contains values of the source.
        Expr::Apply { functions, otherwise: ApplyElse::Error, .. }
            if functions.iter().all(|function| {
                matches!(function.gives(&Facts::default()), Gives::Kinds { .. } | Gives::Texts)
            }) => {}
        Expr::Convert { .. }
        | Expr::Apply { .. }
        | Expr::FirstOf(_)
        | Expr::Present(_)
        | Expr::Array(_)
        | Expr::If { .. } => {
            children(expr).into_iter().for_each(|expr| verbatim(expr, &mut *see));
        }
        // Lines and texts are checked where they are compiled. An aggregate is a number, or an
        // error.
        Expr::Lines { .. } | Expr::Text { .. } | Expr::Constant(_) | Expr::Aggregate { .. } => {}
        // The value that is looked up selects an element but does not occur in it.
        Expr::Lookup { list, .. } => see(list),
        Expr::At(_) | Expr::Object(_) | Expr::Shape { .. } | Expr::Each { .. } => all(expr, see),
    }
}
