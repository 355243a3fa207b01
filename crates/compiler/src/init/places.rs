//! The places in a document that declare a part of an operation's messages.

use crate::contract::{Additional, Contract, Operation, Parameter, StatusPattern, Type, TypeKind, Types};
use crate::diagnostic::Span;

/// Returns the declaration of a part of an operation's messages, such as `query.size`,
/// `header X-Total of the answer` or `$.items[*].size`: the deepest one that the contract has.
pub(super) fn declared(part: &str, operation: &Operation, contract: &Contract) -> Option<Span> {
    let named = |all: &[Parameter], name: &str| {
        // A place within the parameter may follow.
        let is_it = |one: &&Parameter| {
            name.strip_prefix(one.name.as_str()).is_some_and(|rest| rest.is_empty() || is_step(rest))
        };
        all.iter().filter(is_it).max_by_key(|one| one.name.len()).map(|one| one.span)
    };
    let word = |prefix: &str| part.strip_prefix(prefix).map(|rest| rest.split(' ').next().unwrap_or(rest));
    if let Some(name) = part.strip_prefix("query.") {
        return named(&operation.query, name);
    }
    if let Some(name) = part.strip_prefix("path.") {
        return named(&operation.path_params, name);
    }
    if let Some(name) = word("cookie ") {
        return named(&operation.cookies, name);
    }
    if let Some(name) = word("header ") {
        let is_it = |one: &&Parameter| one.name.eq_ignore_ascii_case(name);
        let of_answers = operation.responses.iter().flat_map(|response| &response.headers);
        return operation.headers.iter().chain(of_answers).find(is_it).map(|one| one.span);
    }
    let (is_error, place) = match part.strip_prefix("error body ") {
        Some(place) => (true, place),
        None => (false, part),
    };
    let bodies = operation.body.iter().map(|body| &body.ty).filter(|_| !is_error);
    let answers = operation.responses.iter().filter(|response| {
        let is_failure = match response.status {
            StatusPattern::Exact(status) => status >= 400,
            StatusPattern::Class(class) => class >= 4,
            StatusPattern::Default => true,
        };
        is_failure == is_error
    });
    let all = bodies.chain(answers.filter_map(|response| response.body.as_ref()));
    let found = all.filter_map(|ty| Some(deepest(place.strip_prefix('$')?, ty, &contract.types, 0)));
    found.max_by_key(|(depth, _)| *depth).map(|(_, span)| span)
}

/// Returns whether a text continues a path.
fn is_step(text: &str) -> bool {
    text.starts_with('.') || text.starts_with('[')
}

/// Maximum length of a path that is followed; recursive types have longer ones.
const STEPS_MAX: usize = 64;

/// Follows a path from a type. Returns the number of steps, and the declaration of the last one: of
/// a member, or of the type that has no such member.
fn deepest(path: &str, ty: &Type, types: &Types, depth: usize) -> (usize, Span) {
    let resolved = types.resolve(ty);
    let here = (depth, resolved.span);
    if depth > STEPS_MAX {
        return here;
    }
    let below = |rest: &str, ty: &Type| deepest(rest, ty, types, depth + 1);
    match resolved.kind {
        TypeKind::Array(array) => path.strip_prefix("[*]").map_or(here, |rest| below(rest, &array.items)),
        TypeKind::Object(object) => {
            let rest_after = |name: &str| {
                let quoted = format!("['{}']", name.replace('\'', "\\'"));
                let rest = path.strip_prefix(quoted.as_str());
                let rest = rest.or_else(|| path.strip_prefix('.')?.strip_prefix(name));
                rest.filter(|rest| rest.is_empty() || is_step(rest))
            };
            // Names may contain dots, so the longest one applies.
            let fields = object.fields.iter().filter_map(|field| Some((field, rest_after(&field.name)?)));
            if let Some((field, rest)) = fields.min_by_key(|(_, rest)| rest.len()) {
                return match rest {
                    "" => (depth + 1, field.span),
                    rest => below(rest, &field.ty),
                };
            }
            match (&object.additional, path.strip_prefix(".*")) {
                (Additional::Of(ty), Some(rest)) => below(rest, ty),
                _ => here,
            }
        }
        kind => {
            let found = kind.alternatives().iter().map(|one| deepest(path, one, types, depth));
            found.max_by_key(|(depth, _)| *depth).unwrap_or(here)
        }
    }
}
