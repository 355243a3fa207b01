//! The address of the reading that shows what a write has changed, out of the write's request and its answer.

use super::context::Context;
use super::head;
use super::request::{Request, context_of, header_values};
use super::settings::Settings;
use super::turn::Answer;
use super::value::Scope;
use switchback_json::{Limits, Object, Value};
use switchback_plan::{Pack, ReadBack, Route};

/// Path of the reading, encoded, below its side's base address. None where the request or the answer lacks what it is made of.
/// `answer` is the client's view of what the write came to.
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

/// The document that the address is made of. A body that is no JSON is none.
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
