//! What the dual run knows of the pack that serves: what comparing looks away from, and what the contracts promise. Made with
//! the pack, replaced with it.

use super::job::PlannedCall;
use crate::contract::{Contract, OpKey, Operation, Parameter, ScalarKind, TypeKind, Types, breaches};
use crate::diff::{OperationRules, Rules};
use crate::json::{Limits, Number, Value};
use crate::plan::{Origin, Pack, RouteId, SideId};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::sync::Arc;

/// A pack as the dual run sees it.
#[derive(Debug)]
pub struct Knowledge {
    pack: Arc<Pack>,
    rules: Rules,
    /// Old side first.
    contracts: [Contract; 2],
}

impl Knowledge {
    /// `contracts` are those that the pack was compiled with, the old side's first.
    pub fn new(pack: Arc<Pack>, contracts: [Contract; 2]) -> Knowledge {
        Knowledge { rules: Rules::of(&pack), pack, contracts }
    }

    pub(super) fn rules(&self, serves: SideId, route: RouteId) -> &OperationRules {
        self.rules.of_route(serves, route)
    }

    /// The line of the mapping that answers a route.
    pub(super) fn origin(&self, serves: SideId, route: RouteId) -> &Origin {
        &self.pack.directions[usize::from(serves.0)].routes[usize::from(route.0)].origin
    }

    /// In which ways a call is not what the contract of the side it goes to asks for, each in a sentence that repeats no value.
    pub(super) fn breaches(&self, called: SideId, call: &PlannedCall) -> Vec<String> {
        let contract = &self.contracts[usize::from(called.0)];
        let found = OpKey::parse(&call.operation).ok().and_then(|key| contract.find(&key));
        let Some(operation) = found else { return vec!["the contract has no such operation".to_owned()] };
        let mut said = query_breaches(&contract.types, operation, &call.target);
        said.extend(body_breaches(&contract.types, operation, call.body.as_deref()));
        said
    }
}

fn body_breaches(types: &Types, operation: &Operation, body: Option<&[u8]>) -> Vec<String> {
    match (&operation.body, body) {
        (None, None) => Vec::new(),
        (None, Some(_)) => vec!["a body is sent and none is taken".to_owned()],
        (Some(wanted), None) if wanted.required => vec!["the body is required and missing".to_owned()],
        (Some(_), None) => Vec::new(),
        (Some(wanted), Some(text)) => match Value::parse(text, &Limits::DOCUMENT) {
            Err(_) => vec!["the body is not JSON".to_owned()],
            Ok(value) => breaches(types, &wanted.ty, &value).iter().map(ToString::to_string).collect(),
        },
    }
}

fn query_breaches(types: &Types, operation: &Operation, target: &str) -> Vec<String> {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let given: Vec<(Cow<'_, str>, Cow<'_, str>)> = query.split('&').filter_map(parameter).collect();
    let mut said = Vec::new();
    for parameter in &operation.query {
        let values = given.iter().filter(|(name, _)| *name == parameter.name);
        if parameter.required && values.clone().next().is_none() {
            said.push(format!("the parameter `{}` is required and missing", parameter.name));
        }
        if values.map(|(_, value)| value).any(|value| !fits(types, parameter, value)) {
            said.push(format!("the parameter `{}` is not what it should be", parameter.name));
        }
    }
    let is_unknown = |name: &str| operation.query.iter().all(|parameter| parameter.name != name);
    let unknown = given.iter().filter(|(name, _)| is_unknown(name));
    said.extend(unknown.map(|(name, _)| format!("the parameter `{name}` is not known")));
    said
}

/// Name and value of a parameter as it stands in a query; none of what is no text.
fn parameter(pair: &str) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let decoded = |text| percent_decode_str(text).decode_utf8().ok();
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    (!name.is_empty()).then_some(())?;
    Some((decoded(name)?, decoded(value)?))
}

/// Whether the text of a parameter is a value of its type.
fn fits(types: &Types, parameter: &Parameter, text: &str) -> bool {
    let kind = match types.resolve(&parameter.ty).kind {
        TypeKind::Scalar(scalar) => scalar.kind,
        // Lists and the like have many spellings in an address; none is judged.
        _ => return true,
    };
    let value = match kind {
        ScalarKind::Boolean => text.parse().ok().map(Value::Bool),
        ScalarKind::Integer | ScalarKind::Number => Number::from_text(text).map(Value::Number),
        ScalarKind::String => Some(Value::string(text)),
    };
    value.is_some_and(|value| breaches(types, &parameter.ty, &value).is_empty())
}
