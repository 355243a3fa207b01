//! Computes the target of the request that reads back the effect of a write, from the write's
//! request and answer.

use super::context::Context;
use super::head;
use super::request::{Request, context_of, header_values};
use super::settings::Settings;
use super::turn::Answer;
use super::value::Scope;
use switchback_json::{Limits, Object, Value};
use switchback_plan::{Pack, ReadBack, Route};

/// Returns the encoded path of the request, relative to the base URL of its side, or `None` if the
/// request or the answer lacks a value for it. `answer` is the client's view of the write's result.
pub fn read_back(
    pack: &Pack,
    route: &Route,
    read_back: &ReadBack,
    request: &Request,
    answer: &Answer,
    settings: &Settings,
) -> Option<String> {
    let context = context(pack, route, request, answer, settings)?;
    let language = request.language;
    let scope = Scope { pack, settings, language, context: &context, limits: &Limits::DOCUMENT };
    head::path(&read_back.path, request.head(), &|expr| scope.value(expr)).ok()
}

/// Builds the context of the target. A body that is not JSON is omitted.
fn context(
    pack: &Pack,
    route: &Route,
    request: &Request,
    answer: &Answer,
    settings: &Settings,
) -> Option<Context> {
    let parsed = |body: &[u8]| Value::parse(body, &Limits::DOCUMENT).ok();
    let mut context = context_of(pack, &route.operation, settings, request.head()).ok()?;
    if let (Some(body), Some(members)) =
        (parsed(&request.body), context.get_mut("request").and_then(Value::as_object_mut))
    {
        members.insert("body", body);
    }
    let mut answered = Object::new();
    answered.insert("status", i64::from(answer.status));
    answered.insert("headers", header_values(pack, &answer.headers));
    if let Some(body) = answer.body.as_deref().and_then(parsed) {
        answered.insert("body", body);
    }
    context.set("answer", Value::Object(answered));
    Some(context)
}
