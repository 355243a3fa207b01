//! A dry run: executes one request without sending calls that have an effect.

use super::replies::{self, By};
use super::tried::{DryRunPack, PlaygroundSession, TryError};
use crate::replay::{Fronts, Live};
use bytes::Bytes;
use http::{HeaderMap, Method, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::har::{self, Exchange};
use switchback_engine::translate::sources::{Source, Traced, leaves, source_of};
use switchback_engine::translate::{self, Answer, Call, Event, FailKind, Next, Run, negotiate};
use switchback_gateway::capture::Redaction;
use switchback_json::{Limits, Value};
use switchback_plan::router::Found;
use switchback_plan::{Effect, Origin, RouteId, SideId};

/// Input of a dry run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DryRunRequest {
    /// A request as edited by the user.
    pub request: Option<TriedRequest>,
    /// Alternatively: an HTTP Archive, of which the first entry is used, or a single entry.
    pub har: Option<Json>,
    /// Alternatively: the number of a recorded exchange.
    pub recorded: Option<usize>,
    /// The assumed phase of the operation. `None`: the current one.
    pub phase: Option<String>,
    /// Texts of mapping files, by name, in place of the served ones.
    pub files: BTreeMap<String, String>,
    /// Whether calls without an effect are sent to the other side's service.
    pub live: bool,
    /// The client that provides the credential of these calls.
    pub client: Option<String>,
}

/// A request.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TriedRequest {
    pub method: String,
    /// Path and query, including the front's prefix.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// The result of a dry run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ran {
    pub side: String,
    pub operation: String,
    pub verdict: String,
    /// `file:line` of the route.
    pub route: String,
    /// The assumed phase.
    pub phase: String,
    /// The source of the client's answer in that phase: `plans`, or the name of the side that
    /// answers by its own service.
    pub answered_by: String,
    /// Whether the pack refuses the request, so that the side's own service answers it in every
    /// phase.
    #[serde(rename = "forwarded")]
    pub is_forwarded: bool,
    /// Whether that applies only to clients with a credential for that service.
    pub needs_credential: bool,
    pub request: Json,
    pub calls: Vec<RanCall>,
    /// The context after each call.
    pub steps: Vec<RanStep>,
    pub answer: Option<RanAnswer>,
    /// Why the plans have no answer.
    pub fault: Option<String>,
}

/// A call of the plan.
#[derive(Clone, Debug, Serialize)]
pub struct RanCall {
    pub number: u32,
    /// The mapping's name of its result; `reply` without one.
    pub step: String,
    pub operation: String,
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Json>,
    pub parts: Vec<TracedField>,
    /// Whether it has an effect.
    pub writes: bool,
    /// `file:line`.
    pub line: String,
    pub status: Option<u16>,
    pub reply: Option<Json>,
    /// `service` if the call was sent; else the origin of the reply: `recording`, `example` or
    /// `contract`. `nobody` without a reply.
    pub reply_by: String,
}

/// The context after a call.
#[derive(Clone, Debug, Serialize)]
pub struct RanStep {
    pub after_call: u32,
    pub context: Json,
}

/// The client's answer.
#[derive(Clone, Debug, Serialize)]
pub struct RanAnswer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Option<Json>,
    pub parts: Vec<TracedField>,
    /// Whether the pack refuses the request.
    pub refused: bool,
}

/// A field of a generated message, with its origin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TracedField {
    /// Its place, such as `$.items[0].id`.
    pub to: String,
    pub from: Vec<FieldOrigin>,
    /// `kept`, `converted`, `constant`, `default`, `setting`, `text` or `composed`.
    pub how: &'static str,
    pub file: String,
    pub line: u32,
    /// The text of the line.
    pub text: String,
}

/// A source of a field.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldOrigin {
    /// `request`, `reply`, `settings` or `context`.
    pub root: &'static str,
    /// The number of the call, for a reply.
    pub call: Option<u32>,
    /// The place within the body of the request or reply; else as the mapping writes it.
    pub place: String,
}

/// Most calls of one dry run. Served plans are bounded; edited ones may not be.
const CALLS_MAX: usize = 200;

impl PlaygroundSession {
    /// Executes a dry run. `live` is the other side's service, which is called if `ask` requests
    /// it. `phase_of` returns the phase of a side's operation.
    pub async fn run(
        &self,
        ask: DryRunRequest,
        live: Option<&Live>,
        redaction: &Redaction,
        phase_of: impl Fn(&str, &str) -> String + Send,
    ) -> Result<Ran, TryError> {
        let tried = self.compile_changes(ask.files.clone()).await?;
        let exchange = self.exchange_of(&ask)?;
        let begun = begin(&tried, &exchange)?;
        let live = live.filter(|_| ask.live);
        let mut ran = begun.drive(&tried, &exchange, live, redaction).await;
        ran.phase = ask.phase.unwrap_or_else(|| phase_of(&ran.side, &ran.operation));
        ran.answered_by = match ran.phase.split(' ').next().unwrap_or_default() {
            "legacy" | "shadow" => ran.side.clone(),
            _ if ran.is_forwarded => ran.side.clone(),
            _ => "plans".to_owned(),
        };
        Ok(ran)
    }

    fn exchange_of(&self, ask: &DryRunRequest) -> Result<Exchange, TryError> {
        if let Some(number) = ask.recorded {
            return self
                .recorded()
                .get(number)
                .ok_or_else(|| TryError::Request(format!("there is no recorded exchange {number}")));
        }
        if let Some(har) = &ask.har {
            return of_har(har);
        }
        let asked = ask.request.clone().ok_or_else(|| {
            TryError::Request("give a request, a HAR entry or a recorded exchange".to_owned())
        })?;
        let request = har::Request {
            method: asked.method.trim().to_ascii_uppercase(),
            url: asked.target.trim().to_owned(),
            headers: asked.headers,
            body: Bytes::from(asked.body).into(),
            masked: Vec::new(),
        };
        Ok(Exchange { request, ..Exchange::default() })
    }
}

/// Parses the first exchange of an archive, or a single entry.
fn of_har(har: &Json) -> Result<Exchange, TryError> {
    let archive = match har.get("log") {
        Some(_) => har.to_string(),
        None => serde_json::json!({"log": {"entries": [har]}}).to_string(),
    };
    let mut first = None;
    let read = har::parse(archive.as_bytes(), |entry| {
        if first.is_none() {
            first = Some(entry);
        }
    });
    match (read, first) {
        (Ok(()), Some(Ok(exchange))) => Ok(exchange),
        (Ok(()), Some(Err(fault))) => Err(TryError::Request(format!("the entry cannot be read: {fault}"))),
        (Ok(()), None) => Err(TryError::Request("the archive has no entry".to_owned())),
        (Err(fault), _) => Err(TryError::Request(format!("this is no HTTP Archive: {fault}"))),
    }
}

/// A request with its route.
struct Begun {
    serves: SideId,
    route: RouteId,
    /// The target without the front's prefix.
    target: String,
    language: usize,
    request: translate::Request,
}

fn begin(tried: &DryRunPack, exchange: &Exchange) -> Result<Begun, TryError> {
    let fail = |what: String| Err(TryError::Request(what));
    let mut fronts = Fronts::from_pack(&tried.pack);
    for (prefix, side) in &tried.served.fronts {
        fronts.add(&format!("{prefix}={side}")).map_err(|error| TryError::Request(error.to_string()))?;
    }
    let by_custom = Fronts::from_pack(&tried.pack);
    let Some((serves, target)) = fronts.find(exchange).or_else(|| by_custom.find(exchange)) else {
        let known: Vec<&str> = tried.served.fronts.iter().map(|(prefix, _)| prefix.as_str()).collect();
        return fail(format!("no front has this address; they are {}", known.join(", ")));
    };
    let Ok(method) = exchange.request.method.parse::<Method>() else {
        return fail(format!("`{}` is no method", exchange.request.method));
    };
    let (path, query) = target.split_once('?').map_or((&*target, None), |(path, query)| (path, Some(query)));
    let (route, values) = match tried.routers[serves].find(&method, path) {
        Found::Route { route, values } => {
            (route, values.into_iter().map(std::borrow::Cow::into_owned).collect())
        }
        Found::WrongMethod { allow } => {
            let allow: Vec<&str> = allow.iter().map(Method::as_str).collect();
            return fail(format!("this path has {} only", allow.join(", ")));
        }
        Found::NotFound => {
            return fail(format!("{} has no operation at {path}", tried.pack.sides[serves].name));
        }
        Found::Bad(error) => return fail(format!("the path is not safe to route: {error}")),
    };
    let Some(body) = exchange.request.body.bytes() else {
        return fail("the body of the request was not recorded".to_owned());
    };
    let headers = har::header_map(&exchange.request.headers);
    let languages = &tried.pack.languages;
    let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let language = match &exchange.gateway {
        Some(known) if known.language < languages.len() => known.language,
        _ => negotiate(accepted.unwrap_or_default(), languages),
    };
    let query = query.map(str::to_owned);
    let arrival = Some(translate::Arrival::of_recording(&exchange.started));
    let request = translate::Request { path: values, query, headers, body, language, arrival };
    Ok(Begun { serves, route, target: target.clone(), language, request })
}

impl Begun {
    async fn drive(
        self,
        tried: &DryRunPack,
        exchange: &Exchange,
        live: Option<&Live>,
        redaction: &Redaction,
    ) -> Ran {
        let pack = &tried.pack;
        let planned = &pack.directions[self.serves].routes[self.route];
        let mut ran = Ran {
            side: pack.sides[self.serves].name.clone(),
            operation: planned.operation.key.to_string(),
            verdict: planned.verdict.word().to_owned(),
            route: planned.origin.to_string(),
            request: json_of(&self.request.body).unwrap_or(Json::Null),
            ..Ran::default()
        };
        let mut run = Run::new(
            Arc::clone(pack),
            self.serves,
            self.route,
            self.request.clone(),
            Arc::clone(&tried.settings),
            Limits::DOCUMENT,
        );
        // Record the origin of every value, which the data path omits.
        run.trace();
        let language = self.request.headers.get(header::ACCEPT_LANGUAGE).cloned();
        let mut used = Vec::new();
        let mut lines = MappingLines { tried, route: &planned.origin, steps: Vec::new() };
        let (mut event, mut now) = (Event::Start, Duration::ZERO);
        loop {
            let next = run.next(event);
            if let Some(context) = run.context().filter(|_| !ran.calls.is_empty()) {
                let after_call = ran.calls.len() as u32 - 1;
                let context = serde_json::from_slice(&context.to_vec()).unwrap_or(Json::Null);
                ran.steps.push(RanStep { after_call, context });
            }
            let traced = run.take_trace();
            match next {
                Ok(Next::Call(call)) if ran.calls.len() >= CALLS_MAX => {
                    ran.fault = Some(format!("more than {CALLS_MAX} calls; the next is {}", call.operation));
                    return ran;
                }
                Ok(Next::Call(call)) => {
                    let mut made = lines.call(&call, traced);
                    let (known, by) = self
                        .reply(tried, &ran.operation, exchange, &mut used, live, redaction, &call, &language)
                        .await;
                    made.reply_by = by.map_or("nobody", By::word).to_owned();
                    if let Event::Reply(reply) = &known {
                        (made.status, made.reply) = (Some(reply.status), json_of(&reply.body));
                    }
                    ran.calls.push(made);
                    event = known;
                }
                // A dry run reads no data of clients from the store.
                Ok(Next::Recall(lookup)) => event = lookup.nothing(),
                Ok(Next::Keep(_)) => event = Event::Kept,
                // Waits are simulated; the number of calls bounds the run.
                Ok(Next::Wait(wait)) => event = wait.simulate(&mut now),
                Ok(Next::Answer(answer)) => {
                    ran.answer = Some(lines.answer(&answer, traced));
                    return ran;
                }
                Ok(Next::Refuse(refused)) => {
                    let has_own = tried.served.upstreams.iter().any(|(name, _)| *name == ran.side);
                    // After a write, forwarding would execute the request twice.
                    ran.is_forwarded = refused.refusal.legacy_forward && !refused.wrote && has_own;
                    ran.answer = Some(gateway_answer(&refused.answer(pack, self.serves), true));
                    return ran;
                }
                Err(fault) => {
                    let answer = fault.answer(pack, self.serves, self.language);
                    ran.answer = Some(gateway_answer(&answer, false));
                    ran.fault = Some(fault.to_string());
                    return ran;
                }
            }
        }
    }

    /// Returns the reply to a call: from the recording; else, for a call without an effect, from
    /// the service if `live`; else from the pack.
    #[expect(clippy::too_many_arguments, reason = "all that a reply may come from")]
    async fn reply(
        &self,
        tried: &DryRunPack,
        operation: &str,
        exchange: &Exchange,
        used: &mut Vec<usize>,
        live: Option<&Live>,
        redaction: &Redaction,
        call: &Call,
        language: &Option<http::HeaderValue>,
    ) -> (Event, Option<By>) {
        if let Some(known) = replies::recorded(exchange, used, call) {
            return (known, Some(By::Recording));
        }
        if let Some(live) = live.filter(|_| call.effect != Effect::Write) {
            return match live.call(call.clone(), language.clone()).await {
                Ok(Event::Reply(reply)) => {
                    (Event::Reply(self.masked(tried, redaction, call, reply)), Some(By::Service))
                }
                Ok(other) => (other, Some(By::Service)),
                Err(_) => (FailKind::Unreachable.into(), Some(By::Service)),
            };
        }
        match tried.reply(self.serves, operation, &self.target, call) {
            Some((known, by)) => (known, Some(by)),
            None => (FailKind::Unreachable.into(), None),
        }
    }

    /// Masks a service's reply with the rules of captures.
    fn masked(
        &self,
        tried: &DryRunPack,
        redaction: &Redaction,
        call: &Call,
        reply: translate::Reply,
    ) -> translate::Reply {
        let asked = har::Request {
            method: call.method.to_string(),
            url: call.target.clone(),
            headers: Vec::new(),
            body: call.body.clone().unwrap_or_default().into(),
            masked: Vec::new(),
        };
        let answered =
            har::Response { status: reply.status, headers: Vec::new(), body: reply.body.clone().into() };
        // Captures mask exchanges, so the reply is wrapped into one.
        let one = Exchange { request: asked, response: Some(answered), ..Exchange::default() };
        let gateway = har::Gateway {
            side: tried.pack.sides[self.serves].name.clone(),
            target: self.target.clone(),
            calls: vec![one],
            ..har::Gateway::default()
        };
        let whole = redaction.redact(&Exchange { gateway: Some(gateway), ..Exchange::default() });
        let masked = whole.gateway.and_then(|known| known.calls.into_iter().next());
        let body = masked.and_then(|call| call.response).and_then(|response| response.body.bytes());
        translate::Reply { body: body.unwrap_or_default(), ..reply }
    }
}

/// Maps results of the run to lines of the mapping.
struct MappingLines<'t> {
    tried: &'t DryRunPack,
    route: &'t Origin,
    /// The mapping's names of call results, by number of the call.
    steps: Vec<String>,
}

impl MappingLines<'_> {
    fn call(&mut self, call: &Call, traced: Vec<Traced>) -> RanCall {
        let traced = traced.into_iter().rev().find(|traced| traced.call.is_some());
        let step =
            traced.as_ref().and_then(|traced| traced.step.clone()).unwrap_or_else(|| "reply".to_owned());
        let origin =
            traced.as_ref().and_then(|traced| traced.origin.clone()).unwrap_or_else(|| self.route.clone());
        let parts = self.parts(call.body.as_deref(), traced.as_ref());
        self.steps.push(step.clone());
        RanCall {
            number: call.step,
            step,
            operation: call.operation.to_string(),
            method: call.method.to_string(),
            target: call.target.clone(),
            headers: shown_headers(&call.headers),
            body: call.body.as_deref().and_then(json_of),
            parts,
            writes: call.effect == Effect::Write,
            line: origin.to_string(),
            status: None,
            reply: None,
            reply_by: String::new(),
        }
    }

    fn answer(&self, answer: &Answer, traced: Vec<Traced>) -> RanAnswer {
        let traced = traced.into_iter().rev().find(|traced| traced.call.is_none());
        RanAnswer {
            status: answer.status,
            headers: shown_headers(&answer.headers),
            body: answer.body.as_deref().and_then(json_of),
            parts: self.parts(answer.body.as_deref(), traced.as_ref()),
            refused: false,
        }
    }

    fn parts(&self, body: Option<&[u8]>, traced: Option<&Traced>) -> Vec<TracedField> {
        let Some(body) = body.and_then(|body| Value::parse(body, &Limits::DOCUMENT).ok()) else {
            return Vec::new();
        };
        let (sources, origin) =
            traced.map_or((&[][..], None), |traced| (&traced.sources[..], traced.origin.as_ref()));
        let mut found = leaves(&body, sources);
        // A scalar body has no members; its source is that of the body.
        found.extend(source_of("$", sources).filter(|_| found.is_empty()));
        found.into_iter().map(|source| self.part(source, origin)).collect()
    }

    fn part(&self, source: Source, whole: Option<&Origin>) -> TracedField {
        let (origin, is_own) = match (&source.origin, whole) {
            (Some(own), _) => (own.clone(), true),
            (None, whole) => (whole.unwrap_or(self.route).clone(), false),
        };
        let line = if is_own { origin.line } else { self.line_within(&origin, &source.to) };
        TracedField {
            from: source.from.iter().map(|place| self.place(place)).collect(),
            how: source.how.word(),
            text: self.text(&origin.file, line),
            file: origin.file.to_string(),
            line,
            to: source.to,
        }
    }

    /// Returns the first line with the member's key within the block that produces it, else the
    /// block's first line.
    fn line_within(&self, origin: &Origin, to: &str) -> u32 {
        let name = to.trim_end_matches(|c: char| c == ']' || c == '[' || c.is_ascii_digit());
        let name = name.rsplit('.').next().unwrap_or_default();
        if name.is_empty() || name == "$" {
            return origin.line;
        }
        let Some(text) = self.file(&origin.file) else { return origin.line };
        let lines: Vec<&str> = text.lines().collect();
        let first = origin.line.saturating_sub(1) as usize;
        let indent = |line: &str| line.len() - line.trim_start().len();
        let Some(outer) = lines.get(first).map(|line| indent(line)) else { return origin.line };
        let key = format!("{name}:");
        let is_key = |line: &&str| {
            line.match_indices(&key).any(|(at, _)| {
                // `name:` must not match within `fullname:` or `$.name:`.
                let before = line[..at].chars().next_back();
                before.is_none_or(|c| !(c.is_alphanumeric() || c == '_' || c == '.' || c == '$'))
            })
        };
        let block = lines[first..]
            .iter()
            .enumerate()
            .take_while(|(at, line)| *at == 0 || line.trim().is_empty() || indent(line) > outer);
        let found = block.filter(|(_, line)| is_key(line)).map(|(at, _)| at).next();
        found.map_or(origin.line, |at| origin.line + at as u32)
    }

    /// Converts a place of the context into a place of a message.
    fn place(&self, text: &str) -> FieldOrigin {
        let rest = text.strip_prefix("$.").unwrap_or(text);
        let (root, below) = rest.find(['.', '[']).map_or((rest, ""), |at| (&rest[..at], &rest[at..]));
        let in_body = |below: &str| format!("${}", below.strip_prefix(".body").unwrap_or(below));
        if root == "request" {
            return FieldOrigin {
                root: "request",
                call: None,
                place: if below.starts_with(".body") { in_body(below) } else { text.to_owned() },
            };
        }
        if root == "config" {
            return FieldOrigin { root: "settings", call: None, place: text.to_owned() };
        }
        match self.steps.iter().rposition(|step| step == root) {
            Some(call) => FieldOrigin { root: "reply", call: Some(call as u32), place: in_body(below) },
            None => FieldOrigin { root: "context", call: None, place: text.to_owned() },
        }
    }

    fn file(&self, name: &str) -> Option<String> {
        let found = self.tried.files.files().iter().find(|(known, _)| known == name);
        found.map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned())
    }

    fn text(&self, file: &str, line: u32) -> String {
        let text = self.file(file).unwrap_or_default();
        text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().trim().to_owned()
    }
}

/// Returns an answer of the gateway, which has no sources.
fn gateway_answer(answer: &Answer, refused: bool) -> RanAnswer {
    let body = answer.body.as_deref().and_then(json_of);
    RanAnswer { status: answer.status, headers: Vec::new(), body, parts: Vec::new(), refused }
}

fn shown_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

/// Parses a body as JSON, or returns it as text. `None` for an empty body.
fn json_of(body: &[u8]) -> Option<Json> {
    if body.is_empty() {
        return None;
    }
    Some(
        serde_json::from_slice(body)
            .unwrap_or_else(|_| Json::String(String::from_utf8_lossy(body).into_owned())),
    )
}
