//! Expands pack-wide settings to single routes: pairs for operations that may be equal on both
//! sides (`identical: keep`, `rest: keep`), and the reason for operations without a route.

use super::ast::{
    BodyDecl, PairDecl, PairHeaders, PairMedia, PairSides, ParameterLine, ParameterRules, ProgramDecl,
    ReasonDecl, RestWord, RouteDecl, Spanned,
};
use crate::contract::{Contracts, OpKey, Operation};
use crate::diagnostic::Span;
use std::collections::HashSet;

/// Name of the reason that refuses operations without a route. A pack may declare it to replace the
/// text.
pub(super) const REST_REASON: &str = "rest";
const REST_TEXT: &str = "This operation is not available here.";

/// Adds the pairs and the reason to a program.
pub(super) fn add(program: &mut ProgramDecl, contracts: &Contracts) {
    let keeps = program.manifest.rest.iter().flatten().find(|word| word.value == RestWord::Keep);
    if let Some(span) = program.manifest.identical.or(keeps.map(|word| word.span)) {
        let made = pairs(program, contracts, span);
        program.routes.extend(made);
    }
    let first = program.manifest.rest.iter().flatten().find(|word| word.value != RestWord::Keep);
    if let Some(word) = first
        && !program.reasons.iter().any(|reason| reason.name.value == REST_REASON)
    {
        let span = word.span;
        let text = Spanned { value: REST_TEXT.to_owned(), span };
        let texts = program.manifest.languages.iter().map(|language| (language.clone(), text.clone()));
        let name = Spanned { value: REST_REASON.to_owned(), span };
        program.reasons.push(ReasonDecl { name, texts: texts.collect() });
    }
}

/// Returns a pair for each operation that both sides have under the same method and path, unless
/// routes name it on both sides.
fn pairs(program: &ProgramDecl, contracts: &Contracts, span: Span) -> Vec<RouteDecl> {
    let named = routed_operations(program);
    let is_named = |side: usize, operation: &Operation| {
        named.contains(&(side, operation.key.method.to_string(), operation.key.path.shape()))
    };
    let both = contracts[0].operations.iter().filter_map(|old| {
        let new = contracts[1].find_shape(&old.key.method, &old.key.path.shape())?;
        // A pair may serve one side while a declared route serves the other.
        (!(is_named(0, old) && is_named(1, new))).then_some((old, new))
    });
    both.map(|(old, new)| RouteDecl::Pair(pair(old, new, span))).collect()
}

/// Returns the operations that routes are declared for, by side, method and path shape.
fn routed_operations(program: &ProgramDecl) -> HashSet<(usize, String, String)> {
    let mut named = HashSet::new();
    let mut add = |side: usize, text: &str| {
        if let Ok(key) = OpKey::parse(text) {
            named.insert((side, key.method.to_string(), key.path.shape()));
        }
    };
    // A route with a setting leaves the operation to others while the setting is off.
    for route in program.routes.iter().filter(|route| route.only_if().is_none()) {
        match route {
            RouteDecl::Serve(serve) => add(serve.side.side, &serve.at.value),
            RouteDecl::Pair(pair) => {
                for side in [0, 1] {
                    if pair.sides.front.is_none_or(|front| front.side == side) {
                        add(side, &pair.sides.operations[side].value);
                    }
                }
            }
        }
    }
    named
}

/// Creates a pair that treats both operations as equal. The checks of pairs decide whether they
/// are.
fn pair(old: &Operation, new: &Operation, span: Span) -> PairDecl {
    let text = |value: &str| Spanned { value: value.to_owned(), span };
    let same = |name: &str| ParameterLine::plain(text(name), text(name));
    let has_answer = |operation: &Operation| {
        operation.responses.iter().any(|response| response.body.is_some() && response.is_success())
    };
    PairDecl {
        sides: PairSides {
            operations: [text(&old.key.to_string()), text(&new.key.to_string())],
            front: None,
            made: true,
        },
        paging: None,
        allow_slash: Vec::new(),
        only_if: None,
        path: old
            .key
            .path
            .variables()
            .zip(new.key.path.variables())
            .filter(|(old, new)| old != new)
            .map(|(old, new)| (text(old), text(new)))
            .collect(),
        query: ParameterRules {
            lines: old
                .query
                .iter()
                .filter(|parameter| new.query.iter().any(|other| other.name == parameter.name))
                .map(|parameter| same(&parameter.name))
                .collect(),
            ..ParameterRules::default()
        },
        headers: PairHeaders::default(),
        media: PairMedia::default(),
        request: (old.body.is_some() || new.body.is_some()).then_some(BodyDecl::Keep(span)),
        response: (has_answer(old) || has_answer(new)).then_some(BodyDecl::Keep(span)),
        status: Vec::new(),
        business_errors: Vec::new(),
        retry: None,
        effect: None,
        notes: super::ast::Notes::default(),
        span,
    }
}
