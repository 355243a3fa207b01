//! Connections and requests: reads a complete request, applies control rules, routes it to its
//! handler, and writes the answer as the rules require. The state is locked while a handler runs
//! and never across an await.

use super::answer::Answer;
use super::call::Call;
use super::control;
use super::control::faults::{Action, When};
use super::oauth::{authorize, token};
use super::reasons::{Lang, Reason, Thing};
use super::reply::Failure;
use super::router::{Act, find};
use super::state::Id;
use super::wire::{Body, Manner, ResetFlag, Wire};
use super::{Shared, Side, v2, v3};
use bytes::Bytes;
use http::header::{
    ACCEPT_LANGUAGE, ALLOW, AUTHORIZATION, CONTENT_ENCODING, HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Maximum number of bytes of a request body.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

const X_AUTHORIZATION: HeaderName = HeaderName::from_static("x-authorization");

/// Accepts connections. Dropping the future closes all of them.
pub async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(serve(stream, shared.clone()))),
                // Out of file descriptors, or the peer disconnected while queued. Neither is a
                // reason to stop.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Nagle's algorithm would distort latency measurements.
    stream.set_nodelay(true).ok();
    let (wire, reset) = Wire::new(stream);
    let service = service_fn(|request| respond(shared.clone(), reset.clone(), request));
    // Connection errors are caused by the peer or by a fault rule, so they are ignored.
    auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(wire), service).await.ok();
}

async fn respond(
    shared: Arc<Shared>,
    reset: ResetFlag,
    request: Request<Incoming>,
) -> io::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let body = match read_body(body).await? {
        Some(body) => body,
        None => {
            let failure = Failure::new(StatusCode::PAYLOAD_TOO_LARGE, Reason::BodyTooLarge);
            return Ok(write_answer(refusal(failure, language(&parts)), Manner::Whole));
        }
    };
    let path = parts.uri.path();
    if let Some(below) = path.strip_prefix("/_sandbox") {
        // Control calls skip the log and the faults. A test could otherwise not remove a rule that resets
        // every connection, and would find its own calls among those of the gateway.
        let segments: Vec<&str> = below.split('/').filter(|segment| !segment.is_empty()).collect();
        let query = parts.uri.query().unwrap_or_default();
        return Ok(write_answer(
            control::answer(&shared, &parts.method, &segments, query, &body),
            Manner::Whole,
        ));
    }
    // Log before applying faults, so that disturbed requests are listed, too.
    let number = shared.logs().then(|| {
        let target = parts.uri.path_and_query().map_or(path, |target| target.as_str());
        shared.log().enter(&parts.method, target, parts.headers.clone(), body.clone())
    });
    let address = Address::parse(path);
    let actions = shared.strike(address.side, &parts.method, &address.segments);
    for action in &actions {
        match action {
            Action::Delay { ms } => tokio::time::sleep(Duration::from_millis(*ms)).await,
            // The log entry gets no status, because the service does not handle the call.
            Action::Reset { when: When::Before } => return abort(&reset),
            _ => {}
        }
    }
    let answer = match instead(&actions, When::Before) {
        Some(answer) => answer,
        None => {
            let answer = handle(&shared, &parts, &address, &body);
            instead(&actions, When::After).unwrap_or_else(|| differ(&shared, &address, answer))
        }
    };
    if let Some(number) = number {
        shared.log().set_status(number, answer.status.as_u16());
    }
    // After the differences, so that both can apply to one answer. The log has the status already, because
    // a cut or slow body does not change it.
    let (answer, manner) = spoil(answer, &actions).await;
    if actions.iter().any(|action| matches!(action, Action::Reset { when: When::After })) {
        return abort(&reset);
    }
    Ok(write_answer(answer, manner))
}

/// Reads the complete body, or returns `None` if it is too large.
async fn read_body(body: Incoming) -> io::Result<Option<Bytes>> {
    if body.is_end_stream() {
        return Ok(Some(Bytes::new()));
    }
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => Ok(Some(body.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(None),
        Err(error) => Err(io::Error::other(error)),
    }
}

fn abort(reset: &ResetFlag) -> io::Result<Response<Body>> {
    // The flag must be set before the error, because the error drops the connection, which reads it.
    reset.store(true, Ordering::Relaxed);
    Err(io::Error::from(io::ErrorKind::ConnectionReset))
}

fn write_answer(answer: Answer, manner: Manner) -> Response<Body> {
    let mut response = Response::new(Body::new(answer.body, manner));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}

/// The destination of a request.
struct Address<'a> {
    side: Side,
    /// The company in a v3 path.
    company: Option<Cow<'a, str>>,
    /// Decoded segments below side and company. An encoded slash does not split a segment.
    segments: Vec<Cow<'a, str>>,
}

impl<'a> Address<'a> {
    fn parse(path: &'a str) -> Address<'a> {
        let mut segments = path.trim_start_matches('/').split('/');
        let first = segments.next().unwrap_or_default();
        let side = match first {
            "v3" => Side::V3,
            "v2" => Side::V2,
            "oauth" => Side::Oauth,
            _ => Side::Other,
        };
        // Decoded after splitting: `%2F` in an id belongs to the id.
        let mut segments: Vec<Cow<'a, str>> =
            segments.map(|segment| percent_decode_str(segment).decode_utf8_lossy()).collect();
        let mut company = None;
        if side == Side::V3 && segments.len() >= 2 && segments[0] == "companies" {
            company = Some(segments.remove(1));
            segments.remove(0);
        }
        Address { side, company, segments }
    }
}

fn handle(shared: &Shared, parts: &Parts, address: &Address<'_>, body: &[u8]) -> Answer {
    match address.side {
        Side::V3 | Side::V2 => {
            let lang = language(parts);
            operate(shared, parts, address, body, lang).unwrap_or_else(|failure| refusal(failure, lang))
        }
        Side::Oauth => oauth(shared, parts, address, body),
        Side::Other => refusal(Failure::new(StatusCode::NOT_FOUND, Reason::UnknownPath), language(parts)),
    }
}

fn oauth(shared: &Shared, parts: &Parts, address: &Address<'_>, body: &[u8]) -> Answer {
    let credentials = shared.credentials();
    let client_id = credentials.client_id.as_str();
    let now_ms = shared.wall.now_ms();
    match address.segments.as_slice() {
        [page] if page == "authorize" => {
            let query = parts.uri.query().unwrap_or_default();
            // The vault before the state, as everywhere else. The opposite order could deadlock.
            let (mut vault, state) = (shared.vault_mut(), shared.lock_state());
            authorize::answer(&mut vault, &state, client_id, &parts.method, query, body, now_ms)
        }
        [endpoint] if endpoint == "access_token" => {
            let app = token::App { client_id, client_secret: &credentials.client_secret };
            token::answer(&mut shared.vault_mut(), &app, &parts.method, &parts.headers, body, now_ms)
        }
        _ => refusal(Failure::new(StatusCode::NOT_FOUND, Reason::UnknownPath), language(parts)),
    }
}

fn operate(
    shared: &Shared,
    parts: &Parts,
    address: &Address<'_>,
    body: &[u8],
    lang: Lang,
) -> Result<Answer, Failure> {
    let table = if address.side == Side::V3 { v3::ENDPOINTS } else { v2::ENDPOINTS };
    let endpoint = find(table, &parts.method, &address.segments)?;
    // The path is checked before the token, so that a wrong path answers 404 or 501 even without a token.
    let caller = authenticate(shared, parts, address.side)?;
    let call = |company| Call {
        side: address.side,
        lang,
        caller,
        company,
        segments: &address.segments,
        query: parts.uri.query().unwrap_or_default(),
        body,
    };
    let reply = match endpoint.act {
        Act::Read(act) => {
            let state = shared.lock_state();
            let company = company(&state, caller, address.company.as_deref())?;
            act(&state, &call(company))?
        }
        Act::Write(act) => {
            let mut state = shared.write();
            let company = company(&state, caller, address.company.as_deref())?;
            let before = state.now;
            state.tick();
            // A failed write must not advance the clock, so that equal calls produce equal bytes.
            act(&mut state, &call(company)).inspect_err(|_| state.now = before)?
        }
    };
    if reply.body.is_empty() {
        return Ok(Answer::empty(reply.status));
    }
    Ok(Answer { resource: reply.resource, ..Answer::json_bytes(reply.status, reply.body) })
}

/// Returns the agent of the token. v2 reads `X-Authorization` and falls back to `Authorization`.
/// Tokens of one version are invalid for the other.
fn authenticate(shared: &Shared, parts: &Parts, side: Side) -> Result<Id, Failure> {
    let bearer = |name: HeaderName| {
        let value = parts.headers.get(name)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    };
    let token = match side {
        // A malformed `X-Authorization` is an error. It must not fall back to a valid `Authorization`, or
        // a client would not notice that the wrong field is read.
        Side::V2 if parts.headers.contains_key(X_AUTHORIZATION) => bearer(X_AUTHORIZATION),
        _ => bearer(AUTHORIZATION),
    };
    let token = token.ok_or(Failure::new(StatusCode::UNAUTHORIZED, Reason::TokenMissing))?;
    let vault = shared.vault();
    let agent = if side == Side::V2 { vault.v2(token) } else { vault.v3(token, shared.wall.now_ms()) };
    agent.ok_or(Failure::new(StatusCode::UNAUTHORIZED, Reason::TokenWrong))
}

/// Returns the company to act on: the named one if the caller is linked to it, otherwise the
/// caller's first one.
fn company(state: &super::state::State, caller: Id, named: Option<&str>) -> Result<usize, Failure> {
    let unknown = || Failure::new(StatusCode::UNAUTHORIZED, Reason::TokenWrong);
    let agent = state.agent(caller).ok_or_else(unknown)?;
    let Some(named) = named else {
        return agent.companies.first().and_then(|id| state.company_at(*id)).ok_or_else(unknown);
    };
    let found = named.parse().ok().and_then(|id| Some((id, state.company_at(id)?)));
    let (id, at) = found.ok_or(Failure::no(Thing::Company))?;
    match agent.companies.contains(&id) {
        true => Ok(at),
        false => Err(Failure::new(StatusCode::FORBIDDEN, Reason::CompanyForbidden)),
    }
}

fn language(parts: &Parts) -> Lang {
    Lang::negotiate(parts.headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()))
}

fn refusal(failure: Failure, lang: Lang) -> Answer {
    let mut answer = Answer::json_bytes(failure.status, failure.body(lang));
    answer.resource = "error";
    // A 401 answer must have a challenge (RFC 9110, section 15.5.2).
    if failure.status == StatusCode::UNAUTHORIZED {
        answer.headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if !failure.allow.is_empty() {
        let methods: Vec<&str> = failure.allow.iter().map(Method::as_str).collect();
        let methods = HeaderValue::try_from(methods.join(", ")).expect("method names are tokens");
        answer.headers.insert(ALLOW, methods);
    }
    answer
}

fn differ(shared: &Shared, address: &Address<'_>, mut answer: Answer) -> Answer {
    if let Some(body) = shared.differ(address.side, answer.resource, &address.segments, &answer.body) {
        answer.body = body;
    }
    answer
}

/// Returns the answer that a fault substitutes for that of the service.
fn instead(actions: &[Action], now: When) -> Option<Answer> {
    actions.iter().find_map(|action| match action {
        Action::Status { code, body, when } if *when == now => {
            let status = StatusCode::from_u16(*code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let standard = || serde_json::json!({"reason": format!("Fault: {}", status.as_u16())});
            Some(Answer::json(status, &body.clone().unwrap_or_else(standard)))
        }
        Action::Html { status } if now == When::Before => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY);
            let page = format!("<html>\r\n<head><title>{status}</title></head>\r\n<body>\r\n<center><h1>{status}</h1></center>\r\n</body>\r\n</html>\r\n");
            Some(Answer::html(status, page))
        }
        _ => None,
    })
}

/// Applies the faults that change how an answer is written.
async fn spoil(mut answer: Answer, actions: &[Action]) -> (Answer, Manner) {
    let mut manner = Manner::Whole;
    for action in actions {
        match action {
            Action::Truncate { bytes } => manner = Manner::Truncated(*bytes),
            // A chunk of zero bytes would never finish the body.
            Action::Drip { bytes, every_ms } => {
                manner = Manner::Dripping((*bytes).max(1), Duration::from_millis(*every_ms));
            }
            Action::Endless {} => manner = Manner::Endless,
            Action::InvalidJson {} => {
                // Half of a short body may be valid JSON, such as `1` of `12`. The appended bytes make it
                // invalid in every case.
                let half = answer.body.len() / 2;
                answer.body.truncate(half);
                answer.body.extend_from_slice(b"\x00}{,\"");
            }
            Action::Gzip {} => answer = gzip(answer).await,
            _ => {}
        }
    }
    (answer, manner)
}

async fn gzip(mut answer: Answer) -> Answer {
    use tokio::io::AsyncWriteExt;
    let mut encoder = async_compression::tokio::write::GzipEncoder::new(Vec::new());
    let wrote = match encoder.write_all(&answer.body).await {
        Ok(()) => encoder.shutdown().await,
        failed => failed,
    };
    wrote.expect("a Vec takes every write");
    answer.body = encoder.into_inner();
    answer.with(CONTENT_ENCODING, HeaderValue::from_static("gzip"))
}
