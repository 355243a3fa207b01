//! Checks filters in paths (`[?…]`): their places exist, and each comparison can be both true and
//! false.

use super::context::ContextValue;
use super::faults;
use super::paths::{PathEnv, PathWords, step};
use super::proof::PlaceUse;
use crate::contract::{JsonKind, TypeKind};
use crate::mapping::language::unquote;
use jsonpath_rust::parser::model::{
    Comparable, Filter, FilterAtom, FnArg, Literal, Segment, Selector, SingularQuery, SingularQuerySegment,
    Test, TestFunction,
};
use switchback_plan::{Location, Path};

impl PathEnv<'_, '_> {
    /// Checks a filter on elements of the type `element`. Returns `None` if it reports an error.
    pub(super) fn filter(
        &mut self,
        filter: &Filter,
        element: &ContextValue,
        words: &mut PathWords<'_>,
    ) -> Option<()> {
        match filter {
            Filter::Or(parts) | Filter::And(parts) => {
                parts.iter().try_for_each(|part| self.filter(part, element, words).ok_or(())).ok()
            }
            Filter::Atom(FilterAtom::Filter { expr, .. }) => self.filter(expr, element, words),
            Filter::Atom(FilterAtom::Test { expr, .. }) => self.test(expr, element, words),
            Filter::Atom(FilterAtom::Comparison(comparison)) => {
                let (left, right) = comparison.vals();
                let left = self.comparable(left, element, words)?;
                let right = self.comparable(right, element, words)?;
                self.comparison(&left, &right, words)
            }
        }
    }

    fn test(&mut self, test: &Test, element: &ContextValue, words: &mut PathWords<'_>) -> Option<()> {
        match test {
            Test::RelQuery(segments) => self.walk(element.clone(), segments, words).map(|_| ()),
            Test::AbsQuery(query) => self.held_from_root(&query.segments, words).map(|_| ()),
            Test::Function(function) => self.function(function, element, words),
        }
    }

    fn function(
        &mut self,
        function: &TestFunction,
        element: &ContextValue,
        words: &mut PathWords<'_>,
    ) -> Option<()> {
        let arguments: Vec<&FnArg> = match function {
            TestFunction::Length(argument) => vec![argument.as_ref()],
            TestFunction::Value(argument) | TestFunction::Count(argument) => vec![argument],
            TestFunction::Search(first, second) | TestFunction::Match(first, second) => vec![first, second],
            TestFunction::Custom(name, _) => {
                let span = words.next(name);
                self.findings.push(faults::path_function(name, span));
                return None;
            }
        };
        for argument in arguments {
            match argument {
                FnArg::Literal(_) => {}
                FnArg::Test(test) => self.test(test, element, words)?,
                FnArg::Filter(filter) => self.filter(filter, element, words)?,
            }
        }
        Some(())
    }

    fn comparable(
        &mut self,
        comparable: &Comparable,
        element: &ContextValue,
        words: &mut PathWords<'_>,
    ) -> Option<Compared> {
        match comparable {
            Comparable::Literal(literal) => {
                let text = match literal {
                    Literal::String(text) => unquote(text),
                    other => other.to_string(),
                };
                // Literals are located in order, as every other word of the path.
                let span = words.next(&text);
                Some(Compared::Literal(literal.clone(), span))
            }
            Comparable::Function(function) => {
                self.function(function, element, words).map(|()| Compared::Unknown)
            }
            Comparable::SingularQuery(SingularQuery::Current(segments)) => {
                self.walk(element.clone(), &plain(segments), words).map(|(held, _)| Compared::Place(held))
            }
            Comparable::SingularQuery(SingularQuery::Root(segments)) => {
                let segments = plain(segments);
                let (held, _) = self.held_from_root(&segments, words)?;
                self.known_here(&segments, words);
                Some(Compared::Place(held))
            }
        }
    }

    /// Requires that a compared place has been validated: a value of another type would silently
    /// select no element.
    fn known_here(&mut self, segments: &[Segment], words: &PathWords<'_>) {
        let steps = segments.iter().filter_map(step).collect();
        let location = Location { text: "".into(), path: Path::Singular(steps) };
        let places = self.flow.proofs.behind(&location);
        // Only the request is unvalidated.
        let Some(request) = self.flow.get("request") else { return };
        let types = self.env.types(request.side);
        let unknown = self.flow.proofs.unknown(&places, types);
        if !unknown.is_empty() {
            self.findings.push(faults::unchecked_places(&unknown, PlaceUse::Decides, words.whole()));
        }
    }

    /// Checks that a literal is possible at the compared place, and that two places can be equal.
    fn comparison(&mut self, left: &Compared, right: &Compared, words: &PathWords<'_>) -> Option<()> {
        match (left, right) {
            (Compared::Place(place), Compared::Literal(literal, span))
            | (Compared::Literal(literal, span), Compared::Place(place)) => {
                let types = self.env.types(place.side);
                let resolved = types.resolve(&place.ty);
                let kinds = types.json_kinds(&place.ty);
                let possible = match kind_of(literal) {
                    None => resolved.nullable || place.absent,
                    Some(kind) => kinds.contains(&kind),
                };
                let listed = match (resolved.kind, literal) {
                    (TypeKind::Scalar(scalar), Literal::String(text)) => {
                        scalar.values.as_ref().is_none_or(|values| {
                            let text = crate::contract::Literal::String(unquote(text));
                            values.values.contains(&text)
                        })
                    }
                    _ => true,
                };
                if !possible || !listed {
                    self.findings.push(faults::never_equal(*span, &place.ty));
                    return None;
                }
            }
            (Compared::Place(left), Compared::Place(right)) => {
                let kinds = |held: &ContextValue| self.env.types(held.side).json_kinds(&held.ty);
                let (mine, other) = (kinds(left), kinds(right));
                if !mine.iter().any(|kind| other.contains(kind)) {
                    self.findings.push(faults::never_equal_places(words.whole(), &left.ty, &right.ty));
                    return None;
                }
            }
            _ => {}
        }
        Some(())
    }
}

/// One operand of a comparison.
enum Compared {
    Place(ContextValue),
    Literal(Literal, crate::diagnostic::Span),
    /// The result of a function.
    Unknown,
}

fn kind_of(literal: &Literal) -> Option<JsonKind> {
    match literal {
        Literal::Int(_) | Literal::Float(_) => Some(JsonKind::Number),
        Literal::String(_) => Some(JsonKind::String),
        Literal::Bool(_) => Some(JsonKind::Boolean),
        Literal::Null => None,
    }
}

fn plain(segments: &[SingularQuerySegment]) -> Vec<Segment> {
    let selector = |segment: &SingularQuerySegment| match segment {
        SingularQuerySegment::Index(index) => Selector::Index(*index),
        SingularQuerySegment::Name(name) => Selector::Name(name.clone()),
    };
    segments.iter().map(|segment| Segment::Selector(selector(segment))).collect()
}
