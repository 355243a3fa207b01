//! Runs the examples of a pack: requests with scripted replies, shapes in both directions, and the
//! coverage of the routes' outcomes. Used by `switchback test` and by the check before a reload.

use super::coverage::{Mark, Reach, ends};
use super::difference::{Difference, compare};
use super::document::{Env, Walk, document, translate};
use super::language::negotiate;
use super::parts;
use super::request::{Arrival, Request, decode_query, query_pairs};
use super::run::Run;
use super::settings::Settings;
use super::text::gateway_answer;
use super::turn::{Answer, Call, Entries, Entry, Event, Lookup, Next, Reply};
use super::urlencoded;
use crate::xml;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use switchback_json::{Limits, Object, Value};
use switchback_plan::router::{Found, Router};
use switchback_plan::{
    Archived, BodyFormat, BodyPlan, Example, ExampleCall, ExampleEnd, ExampleKind, Exchange, HarvestExample,
    Origin, Pack, PerSide, QueryFrom, Raw, Response, ResponseBody, Route, RouteExample, RouteId, RouteKind,
    ShapeExample, SideId, ValueOp, Wanted, essence, is_json_type, is_xml,
};

/// The results of all examples of a pack.
#[derive(Debug, Default)]
pub struct Report {
    /// Results by index in [`Pack::examples`].
    pub outcomes: Vec<Outcome>,
    /// Results of generated examples, in the given order.
    pub made: Vec<Outcome>,
    /// Outcomes that no example covers.
    pub unreached: Vec<Unreached>,
}

/// An outcome of a route that no example covers.
#[derive(Clone, Debug)]
pub struct Unreached {
    /// The side of the client that would send the request.
    pub serves: SideId,
    /// The route, in the direction that serves this side.
    pub route: RouteId,
    /// The outcome.
    pub reach: Reach,
}

/// The result of one example.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Violated expectations; empty if the example passes.
    pub problems: Vec<Problem>,
    /// Values for the open places (`'?'`), in the order of the example.
    pub found: Vec<Value>,
    /// Covered parts, with the index of the route among the alternatives of its operation.
    marks: Vec<(SideId, RouteId, usize, Mark)>,
}

/// A violated expectation.
#[derive(Clone, Debug)]
pub struct Problem {
    /// A sentence without a full stop.
    pub what: String,
    /// Differences between the expected and the actual value; empty if the sentence is sufficient.
    pub differences: Vec<Difference>,
    /// The line of the example.
    pub origin: Origin,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.origin, self.what)?;
        self.differences.iter().try_for_each(|difference| write!(out, "\n    {difference}"))
    }
}

impl Report {
    /// Returns whether every example passes and every outcome is covered. Open places are
    /// permitted.
    pub fn is_good(&self) -> bool {
        self.unreached.is_empty() && self.all().all(|outcome| outcome.problems.is_empty())
    }
}

impl Report {
    /// Returns the results of all examples, generated ones last.
    pub fn all(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().chain(&self.made)
    }
}

/// Runs all examples of a pack.
pub fn run_all(pack: &Arc<Pack>) -> Report {
    run_with(pack, &[])
}

/// Runs all examples of a pack, and additional ones that were generated from its contracts.
pub fn run_with(pack: &Arc<Pack>, made: &[Example]) -> Report {
    let routers = SideId::BOTH.map(|side| Router::new(&pack.directions[side]));
    let outcomes: Vec<Outcome> = pack.examples.iter().map(|example| run(pack, &routers, example)).collect();
    let made: Vec<Outcome> = made.iter().map(|example| run(pack, &routers, example)).collect();
    let all = outcomes.iter().chain(&made);
    let reached: BTreeSet<_> = all.flat_map(|outcome| &outcome.marks).cloned().collect();
    let mut unreached = Vec::new();
    for direction in &pack.directions {
        let routes = direction.routes.iter().filter(|route| !speaks_for_itself(pack, route));
        for (route, at) in routes.flat_map(|route| route.all().zip(0..)) {
            let way = |mark| (direction.serves, route.id, at, mark);
            let missed = ends(route).into_iter().filter(|reach| !reached.contains(&way(reach.mark.clone())));
            let serves = direction.serves;
            unreached.extend(missed.map(|reach| Unreached { serves, route: route.id, reach }));
        }
    }
    Report { outcomes, made, unreached }
}

/// Name of the reason for operations that no route names.
const REST: &str = "rest";

/// Returns whether a route needs no example: it passes messages unchanged, or is refused because no
/// route names its operation. A pack of a thousand operations has hundreds of these.
fn speaks_for_itself(pack: &Pack, route: &Route) -> bool {
    let keeps = |plan: &BodyPlan| matches!(plan.op, ValueOp::Keep);
    if !route.instead.is_empty() {
        return false;
    }
    match &route.kind {
        RouteKind::Refuse(refusal) => {
            pack.reasons.get(usize::from(refusal.reason.0)).is_some_and(|reason| reason.name == REST)
        }
        RouteKind::Pair(pair) => {
            let same_query = pair.call.query.iter().all(|rule| match &rule.from {
                QueryFrom::Client(name) | QueryFrom::ClientFields(name) => *name == rule.name,
                QueryFrom::Constant(_) => true,
                QueryFrom::Value(_) => false,
            });
            let kept = |response: &Response| match &response.body {
                ResponseBody::Plan(plan) => keeps(plan),
                ResponseBody::Empty
                | ResponseBody::Opaque(_)
                | ResponseBody::Undescribed
                | ResponseBody::Error(_) => true,
            };
            pair.refused.is_empty()
                && same_query
                && pair.request.as_ref().is_none_or(keeps)
                && pair.responses.iter().all(kept)
                && *pair.call.operation == *route.operation.key
        }
        RouteKind::Serve(_) => false,
    }
}

/// Runs one example. `routers` is indexed by served side.
pub fn run(pack: &Arc<Pack>, routers: &PerSide<Router>, example: &Example) -> Outcome {
    let mut trial = Trial { pack, at: &example.origin, outcome: Outcome::default() };
    match &example.kind {
        ExampleKind::Route(route) => trial.route(&routers[route.serves], route),
        ExampleKind::Shape(shape) => trial.shape(shape),
        ExampleKind::Harvest(harvest) => trial.harvest(harvest),
    }
    trial.outcome
}

/// State that outlives a request.
#[derive(Debug, Default)]
struct World {
    remembered: HashMap<Vec<u8>, Reply>,
    archived: Vec<Archived>,
}

impl World {
    fn recall(&self, lookup: &Lookup) -> Vec<Option<Entry>> {
        let of = |key: &String| {
            let same = |entry: &&Archived| entry.archive == lookup.archive && entry.key == *key;
            let entry = self.archived.iter().find(same)?;
            Some(Entry { age: entry.age, value: entry.value.as_ref().map(bytes_of) })
        };
        lookup.keys.iter().map(of).collect()
    }

    /// Stores entries and returns them.
    fn keep(&mut self, entries: Entries) -> Vec<Archived> {
        let archive = entries.archive;
        let made = entries.entries.into_iter().map(|(key, value)| Archived {
            archive,
            key,
            age: 0,
            value: value.map(Raw::from),
        });
        let made: Vec<Archived> = made.collect();
        self.archived
            .retain(|old| !made.iter().any(|new| (new.archive, &new.key) == (old.archive, &old.key)));
        self.archived.extend(made.iter().cloned());
        made
    }
}

/// One running example.
struct Trial<'a> {
    pack: &'a Arc<Pack>,
    at: &'a Origin,
    outcome: Outcome,
}

/// The end of a request.
enum Ended {
    Answered(Answer),
    /// The name of the reason, and the answer for clients without a legacy service to fall back to.
    Refused(String, Answer),
    /// The exchange failed earlier; the problem is already reported.
    Stuck,
}

impl Trial<'_> {
    fn problem(&mut self, what: impl Into<String>, differences: Vec<Difference>) {
        self.problem_at(self.at.clone(), what, differences);
    }

    fn problem_at(&mut self, origin: Origin, what: impl Into<String>, differences: Vec<Difference>) {
        self.outcome.problems.push(Problem { what: what.into(), differences, origin });
    }

    fn route(&mut self, router: &Router, example: &RouteExample) {
        let settings = match self.settings(example) {
            Some(settings) => Arc::new(settings),
            None => return,
        };
        let headers = header_map(&example.headers);
        let accepted = headers.get(http::header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        let language = negotiate(accepted.unwrap_or(""), &self.pack.languages);
        let (path, query) = split(&example.target);
        let (route, values) = match router.find(&example.method, path) {
            Found::Route { route, values } => (route, values),
            other => {
                let kind = match other {
                    Found::WrongMethod { .. } => "wrong_method",
                    Found::Bad(_) => "bad_path",
                    _ => "not_found",
                };
                let answer = gateway_answer(self.pack, example.serves, kind, language);
                return self.end(Ended::Answered(answer), &example.exchange);
            }
        };
        let mut headers = headers;
        let body = example.body.as_ref();
        let body =
            body.map_or_else(Bytes::new, |body| self.encode_body(example.serves, route, body, &mut headers));
        let request = Request {
            path: values.into_iter().map(std::borrow::Cow::into_owned).collect(),
            query: Some(query.to_owned()),
            headers,
            body,
            language,
            arrival: Some(Arrival::EXAMPLE),
        };
        let mut world = World { archived: example.archived.clone(), ..World::default() };
        for exchange in std::iter::once(&example.exchange).chain(&example.again) {
            let run = Run::new(
                Arc::clone(self.pack),
                example.serves,
                route,
                request.clone(),
                Arc::clone(&settings),
                Limits::DOCUMENT,
            );
            let ended = self.exchange(run, exchange, &mut world, Some((example.serves, route)), language);
            self.end(ended, exchange);
        }
    }

    /// Returns a body in the format of its operation. A form is given as text; multipart bodies are
    /// encoded from the example's list of parts.
    fn encode_body(&self, serves: SideId, route: RouteId, body: &Raw, headers: &mut HeaderMap) -> Bytes {
        let operation =
            self.pack.directions[serves].routes.get(usize::from(route.0)).map(|route| &route.operation);
        let is_json = operation.is_none_or(|operation| matches!(operation.format, BodyFormat::Json));
        let value = own(body);
        if let Some(BodyFormat::Multipart(format)) = operation.map(|operation| &operation.format)
            && let Some((body, named)) = parts::example(format, &value)
            && let Ok(named) = HeaderValue::from_str(&named)
        {
            headers.entry(http::header::CONTENT_TYPE).or_insert(named);
            return body.into();
        }
        match value.as_str().filter(|_| !is_json) {
            Some(text) => Bytes::copy_from_slice(text.as_bytes()),
            None => bytes_of(body),
        }
    }

    /// Returns whether a body is passed without parsing, so that examples contain its text.
    fn is_text(&self, headers: &HeaderMap) -> bool {
        let named = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        named.is_some_and(|named| !is_json_type(essence(named), &self.pack.json_types))
    }

    /// Returns whether the body of a reply passes unchanged, so that the example contains its text.
    fn is_passed(&self, route: Option<(SideId, RouteId)>, status: u16) -> bool {
        let route = route.and_then(|(serves, id)| self.pack.directions[serves].routes.get(usize::from(id.0)));
        let Some(RouteKind::Pair(pair)) = route.map(|route| &route.kind) else { return false };
        let rule = super::head::response(pair, status);
        rule.is_some_and(|response| {
            matches!(response.body, ResponseBody::Opaque(_) | ResponseBody::Undescribed)
        })
    }

    /// Returns whether the body of a reply is a form or XML, which an example contains as text.
    fn is_text_reply(&self, call: &Call, scripted: &ExampleCall) -> bool {
        let accepted = call.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
        let reply = scripted.reply.as_ref().map(own);
        let begins_as_xml = || {
            let text = reply.as_ref().and_then(Value::as_str);
            text.is_some_and(|text| xml::begins_as_xml(text.as_bytes()))
        };
        accepted.is_some_and(|one| one == BodyFormat::FORM || is_xml(one))
            // An error, or the reply to a call without a described success.
            || (self.pack.errors.iter().any(|style| style.xml.is_some()) && begins_as_xml())
    }

    fn harvest(&mut self, example: &HarvestExample) {
        // Without input, the settings cannot be invalid.
        let settings = Settings::new(self.pack, &Value::Object(Object::new())).unwrap_or_default();
        let pack = Arc::clone(self.pack);
        let run =
            Run::of_harvest(pack, example.harvest, (example.page, 0), Arc::new(settings), Limits::DOCUMENT);
        match self.exchange(run, &example.exchange, &mut World::default(), None, 0) {
            Ended::Stuck => {}
            Ended::Answered(answer) if answer.status == 200 => {}
            Ended::Answered(answer) | Ended::Refused(_, answer) => {
                self.problem(format!("the page ends with {}", answer.status), Vec::new());
            }
        }
    }

    fn settings(&mut self, example: &RouteExample) -> Option<Settings> {
        let given = example.config.iter().map(|(name, raw)| (name.as_str(), own(raw)));
        match Settings::new(self.pack, &Value::Object(given.collect::<Object>())) {
            Ok(settings) => Some(settings),
            Err(errors) => {
                errors.iter().for_each(|error| self.problem(error.to_string(), Vec::new()));
                None
            }
        }
    }

    fn exchange(
        &mut self,
        mut run: Run,
        exchange: &Exchange,
        world: &mut World,
        route: Option<(SideId, RouteId)>,
        language: usize,
    ) -> Ended {
        let mut script = exchange.calls.iter();
        let served = route.map_or(SideId::OLD, |(serves, _)| serves);
        let mut kept: Vec<Archived> = Vec::new();
        let (mut event, mut now) = (Event::Start, Duration::ZERO);
        let ended = loop {
            match run.next(event) {
                Ok(Next::Call(call)) => {
                    // A remembered reply replaces the call, as in the gateway, so the script does
                    // not contain it.
                    let known = call.resume_key.as_ref().and_then(|key| world.remembered.get(key)).cloned();
                    let reply = match known {
                        Some(reply) => reply,
                        None => match script.next() {
                            Some(scripted) if self.call_is(&call, scripted) => {
                                let is_text = self.is_text_reply(&call, scripted)
                                    || self.is_passed(route, scripted.status);
                                reply_of(scripted, is_text)
                            }
                            Some(_) => break Ended::Stuck,
                            None => {
                                self.problem(
                                    format!("a call that is not expected: {} {}", call.method, call.target),
                                    Vec::new(),
                                );
                                break Ended::Stuck;
                            }
                        },
                    };
                    // As in the gateway, only successes are remembered.
                    if let Some(key) = call.resume_key.filter(|_| (200..300).contains(&reply.status)) {
                        world.remembered.insert(key, reply.clone());
                    }
                    event = Event::Reply(reply);
                }
                Ok(Next::Recall(lookup)) => event = Event::Recalled(world.recall(&lookup)),
                Ok(Next::Wait(wait)) => event = wait.simulate(&mut now),
                Ok(Next::Keep(entries)) => {
                    kept.extend(world.keep(entries));
                    event = Event::Kept;
                }
                Ok(Next::Answer(answer)) => break Ended::Answered(answer),
                Ok(Next::Refuse(refused)) => {
                    let reason = self.pack.reasons.get(usize::from(refused.refusal.reason.0));
                    let answer = refused.answer(self.pack, served);
                    break Ended::Refused(
                        reason.map_or_else(String::new, |reason| reason.name.clone()),
                        answer,
                    );
                }
                Err(fault) => {
                    let answer = fault.answer(self.pack, served, language);
                    // An example may expect an error of the gateway itself.
                    if !self.expects(exchange, answer.status) {
                        self.problem(format!("the request ends in a fault: {fault}"), Vec::new());
                        break Ended::Stuck;
                    }
                    break Ended::Answered(answer);
                }
            }
        };
        // After a failed call, reports about the remaining calls would only be consequential
        // errors.
        let left = script.next().filter(|_| !matches!(ended, Ended::Stuck));
        if let Some(left) = left {
            let what = format!("a call that is never made: {} {}", left.method, left.target);
            self.problem_at(left.origin.clone(), what, Vec::new());
        }
        if !matches!(ended, Ended::Stuck) {
            self.keeps(&exchange.keeps, kept);
        }
        let at = run.instead().map_or(0, |at| at + 1);
        if let Some((serves, route)) = route {
            let marks = run.marks().iter().cloned().map(|mark| (serves, route, at, mark));
            self.outcome.marks.extend(marks);
        }
        ended
    }

    /// Reports differences between the stored entries and the expected ones, in any order.
    fn keeps(&mut self, expected: &[Archived], mut kept: Vec<Archived>) {
        for wanted in expected {
            let name = self.archive_name(wanted);
            let same = |one: &Archived| one.archive == wanted.archive && one.key == wanted.key;
            let Some(at) = kept.iter().position(same) else {
                self.problem(format!("`{}` is not kept in `{name}`", wanted.key), Vec::new());
                continue;
            };
            let found = kept.remove(at);
            let differences =
                compare(wanted.value.as_ref().map(own).as_ref(), found.value.as_ref().map(own).as_ref());
            if !differences.is_empty() {
                self.problem(
                    format!("the value kept under `{}` in `{name}` is another one", wanted.key),
                    differences,
                );
            }
        }
        for surplus in kept {
            let name = self.archive_name(&surplus);
            self.problem(
                format!("`{}` is kept in `{name}`, but not listed under `keeps`", surplus.key),
                Vec::new(),
            );
        }
    }

    fn archive_name(&self, entry: &Archived) -> String {
        let archive = self.pack.archives.get(usize::from(entry.archive.0));
        archive.map_or_else(String::new, |archive| archive.name.clone())
    }

    fn expects(&self, exchange: &Exchange, wanted: u16) -> bool {
        matches!(&exchange.end, ExampleEnd::Answer { status, .. } if *status == wanted)
    }

    /// Returns whether a call matches the next one in the script.
    fn call_is(&mut self, call: &Call, scripted: &ExampleCall) -> bool {
        let before = self.outcome.problems.len();
        if call.method != scripted.method || !same_target(&call.target, &scripted.target) {
            let what = format!(
                "expected the call {} {}, found {} {}",
                scripted.method, scripted.target, call.method, call.target
            );
            self.problem_at(scripted.origin.clone(), what, Vec::new());
            return false;
        }
        // Examples list only the header fields that matter to them.
        for (name, wanted) in &scripted.headers {
            let found = call.headers.get(name).and_then(|value| value.to_str().ok());
            if found != Some(wanted) {
                let found = found.map_or_else(|| "is missing".to_owned(), |found| format!("is `{found}`"));
                let what =
                    format!("the field `{name}` of {} {} {found}, not `{wanted}`", call.method, call.target);
                self.problem_at(scripted.origin.clone(), what, Vec::new());
            }
        }
        let is_form =
            call.headers.get(http::header::CONTENT_TYPE).is_some_and(|named| named == BodyFormat::FORM);
        let is_text = self.is_text(&call.headers);
        let named = call.headers.get(http::header::CONTENT_TYPE).and_then(|named| named.to_str().ok());
        let sent_parts =
            call.body.as_deref().zip(named).and_then(|(body, named)| parts::example_of(named, body));
        let wants_parts = scripted.body.as_ref().is_some_and(|body| own(body).as_object().is_some());
        let is_of_parts = wants_parts && sent_parts.is_some();
        let (wanted, sent) = match (is_form, call.body.as_deref()) {
            // Multipart bodies are compared by their parts, because the boundary is random.
            _ if is_of_parts => {
                (scripted.body.as_ref().map(|body| parts::example_text(&own(body))), sent_parts)
            }
            // Forms are compared by decoded names and values.
            (true, Some(sent)) => {
                let wanted = scripted.body.as_ref().map(own);
                let wanted = wanted.as_ref().and_then(Value::as_str).map(|text| urlencoded::pairs(&text));
                (wanted, Some(urlencoded::pairs(&String::from_utf8_lossy(sent))))
            }
            // XML is compared by its elements, regardless of layout and prefixes.
            (_, Some(sent)) if xml::begins_as_xml(sent) => {
                (scripted.body.as_ref().map(|body| xml_value(own(body))), Some(xml_tree(sent)))
            }
            (_, sent) => (scripted.body.as_ref().map(own), sent.map(|sent| body_value(sent, is_text))),
        };
        let differences = compare(wanted.as_ref(), sent.as_ref());
        if !differences.is_empty() {
            let what = format!("the body of {} {} is another one", call.method, call.target);
            self.problem_at(scripted.origin.clone(), what, differences);
        }
        self.outcome.problems.len() == before
    }

    fn end(&mut self, ended: Ended, exchange: &Exchange) {
        match (&exchange.end, ended) {
            (_, Ended::Stuck) => {}
            (ExampleEnd::Refused(wanted), Ended::Refused(reason, _)) if *wanted == reason => {}
            (ExampleEnd::Refused(wanted), Ended::Refused(reason, _)) => {
                self.problem(
                    format!("expected a refusal with `{wanted}`, found one with `{reason}`"),
                    Vec::new(),
                );
            }
            (ExampleEnd::Refused(wanted), Ended::Answered(answer)) => {
                self.problem(
                    format!("expected a refusal with `{wanted}`, found an answer {}", answer.status),
                    Vec::new(),
                );
            }
            (
                ExampleEnd::Answer { status, headers, body },
                Ended::Answered(answer) | Ended::Refused(_, answer),
            ) => {
                self.answer(*status, headers, body, &answer);
            }
        }
    }

    fn answer(&mut self, status: u16, headers: &[(String, String)], body_wanted: &Wanted, answer: &Answer) {
        let is_form =
            answer.headers.get(http::header::CONTENT_TYPE).is_some_and(|named| named == BodyFormat::FORM);
        let found = answer.body.as_deref().map(|body| match is_form {
            // As for calls, a form is compared by decoded names and values.
            true if !matches!(body_wanted, Wanted::Open) => urlencoded::pairs(&String::from_utf8_lossy(body)),
            _ if xml::begins_as_xml(body) => match body_wanted {
                Wanted::Open => body_value(body, true),
                Wanted::None | Wanted::Json(_) => xml_tree(body),
            },
            _ => body_value(body, self.is_text(&answer.headers)),
        });
        if status != answer.status {
            let said = found.as_ref().map_or_else(String::new, |body| format!(" {body}"));
            self.problem(format!("expected the status {status}, found {}{said}", answer.status), Vec::new());
        }
        for (name, value) in headers {
            let found = answer.headers.get(name).and_then(|value| value.to_str().ok());
            if found != Some(value) {
                let found = found.map_or_else(|| "none".to_owned(), |found| format!("`{found}`"));
                self.problem(
                    format!("expected the header {name} to be `{value}`, found {found}"),
                    Vec::new(),
                );
            }
        }
        let differences = match body_wanted {
            Wanted::Open => match found {
                Some(found) => return self.outcome.found.push(found),
                None => return self.problem("there is no body to fill in", Vec::new()),
            },
            Wanted::None => compare(None, found.as_ref()),
            Wanted::Json(raw) => {
                let wanted = own(raw);
                let pairs = wanted.as_str().filter(|_| is_form).map(|text| urlencoded::pairs(&text));
                compare(Some(&pairs.unwrap_or_else(|| xml_value(wanted))), found.as_ref())
            }
        };
        if !differences.is_empty() {
            self.problem("the body of the answer is another one", differences);
        }
    }

    fn shape(&mut self, example: &ShapeExample) {
        let Some(shape) = self.pack.shapes.iter().find(|shape| shape.name == example.shape) else {
            return self.problem(format!("there is no shape `{}`", example.shape), Vec::new());
        };
        let (from, to) = (example.source, example.source.other());
        let Wanted::Json(source) = &example.values[from] else {
            return self.problem("the value that is written first cannot be open", Vec::new());
        };
        let Some(there) = &shape.to[to] else {
            let side = &self.pack.sides[to].name;
            return self.problem(format!("the shape `{}` cannot build {side}", shape.name), Vec::new());
        };
        // Without input, the settings cannot be invalid.
        let settings = Settings::new(self.pack, &Value::Object(Object::new())).unwrap_or_default();
        let env = Env::new(&settings);
        let mut target = Vec::new();
        if let Err(error) = document(&there.op, source, &env, &Limits::DOCUMENT, &mut target) {
            return self
                .problem(format!("the shape `{}` does not take the value: {error}", shape.name), Vec::new());
        }
        let found = own_bytes(&target);
        match &example.values[to] {
            Wanted::None => self.problem("the other side's value is not there", Vec::new()),
            Wanted::Open => self.outcome.found.push(found),
            Wanted::Json(wanted) => {
                let differences = compare(Some(&own(wanted)), Some(&found));
                if !differences.is_empty() {
                    self.problem("the other side's value is another one", differences);
                }
            }
        }
        if let Some(back) = &shape.to[from] {
            let back_with = |make_up: bool| {
                let mut out = Vec::new();
                let walk = Walk { env, make_up };
                translate(&back.op, &target, walk, &Limits::DOCUMENT, &mut out).map(|()| own_bytes(&out))
            };
            match (back_with(false), back_with(true)) {
                (Ok(stated), Ok(whole)) => {
                    let declared: Vec<&str> = there
                        .losses
                        .iter()
                        .filter(|loss| loss.narrow.is_none())
                        .map(|loss| loss.place.as_str())
                        .collect();
                    let lost = lost_places(&own(source), &stated, &whole, &declared);
                    self.losses(example, lost);
                }
                (Err(error), _) | (_, Err(error)) => {
                    self.problem(
                        format!("the shape `{}` does not lead back: {error}", shape.name),
                        Vec::new(),
                    );
                }
            }
        }
    }

    fn losses(&mut self, example: &ShapeExample, lost: BTreeSet<String>) {
        let written: BTreeSet<String> = example.lost.iter().cloned().collect();
        for place in lost.difference(&written) {
            self.problem(format!("`{place}` is lost, but not listed under `lost`"), Vec::new());
        }
        for place in written.difference(&lost) {
            self.problem(format!("`{place}` is listed under `lost`, but comes back"), Vec::new());
        }
    }
}

/// Returns the places of a value that are not null and do not survive the round trip. `stated` is
/// the result from the target alone, `whole` includes generated values. A generated value that
/// happens to be equal counts as lost if the shape declares the loss.
fn lost_places(source: &Value, stated: &Value, whole: &Value, declared: &[&str]) -> BTreeSet<String> {
    let places = |back: &Value| {
        let differing = compare(Some(source), Some(back)).into_iter();
        let of_source =
            differing.filter(|difference| difference.expected.as_ref().is_some_and(|value| !value.is_null()));
        of_source.map(|difference| difference.place.any_element()).collect::<BTreeSet<String>>()
    };
    let surely = places(whole);
    places(stated)
        .into_iter()
        .filter(|place| surely.contains(place) || declared.contains(&place.as_str()))
        .collect()
}

fn header_map(headers: &[(String, String)]) -> HeaderMap {
    let field = |(name, value): &(String, String)| {
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
    };
    headers.iter().filter_map(field).collect()
}

/// Converts a body to its representation in examples.
fn body_value(body: &[u8], is_text: bool) -> Value {
    if is_text { Value::string(&String::from_utf8_lossy(body)) } else { own_bytes(body) }
}

/// Returns the tree of XML; other text as a string.
fn xml_tree(text: &[u8]) -> Value {
    xml::tree(text, &Limits::DOCUMENT).unwrap_or_else(|_| body_value(text, true))
}

/// Returns the tree of a string that is XML; any other value unchanged.
fn xml_value(value: Value) -> Value {
    match value.as_str().filter(|text| xml::begins_as_xml(text.as_bytes())) {
        Some(text) => xml_tree(text.as_bytes()),
        None => value,
    }
}

/// Builds a scripted reply. With `is_text`, a string is the raw body instead of JSON.
fn reply_of(scripted: &ExampleCall, is_text: bool) -> Reply {
    let text = scripted.reply.as_ref().filter(|_| is_text).map(own);
    let text = text.as_ref().and_then(Value::as_str).map(|text| Bytes::copy_from_slice(text.as_bytes()));
    Reply {
        status: scripted.status,
        headers: header_map(&scripted.reply_headers),
        body: text.or_else(|| scripted.reply.as_ref().map(bytes_of)).unwrap_or_default(),
    }
}

fn bytes_of(raw: &Raw) -> Bytes {
    Bytes::copy_from_slice(raw)
}

fn split(target: &str) -> (&str, &str) {
    target.split_once('?').unwrap_or((target, ""))
}

/// Returns whether two encoded targets have the same path and the same parameters in any order.
pub fn same_target(a: &str, b: &str) -> bool {
    let ((a_path, a_query), (b_path, b_query)) = (split(a), split(b));
    let parameters = |query: &str| {
        let decoded = query_pairs(query).map(|(name, value)| (decode_query(name), value.map(decode_query)));
        let mut all: Vec<_> = decoded.collect();
        all.sort();
        all
    };
    let segments = |path: &str| percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned();
    segments(a_path) == segments(b_path) && parameters(a_query) == parameters(b_query)
}

/// Parses JSON text of an example or of the gateway.
fn own(raw: &Raw) -> Value {
    own_bytes(raw)
}

fn own_bytes(json: &[u8]) -> Value {
    Value::parse(json, &Limits::UNLIMITED).unwrap_or(Value::Null)
}
