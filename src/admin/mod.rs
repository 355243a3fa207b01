//! The admin port without its pages: health, metrics, the admin API, and the OAuth callback. It has
//! its own address, limits and token, and shares only the displayed state with the data path.
//! [`crate::app`] adds the pages ([`crate::studio`]), which use this module.
//!
//! Requests are checked in this order (see [`guard`]). The `Host` header must be an address,
//! `localhost` or a configured name, which prevents DNS rebinding; probes without a host may read
//! health. Everything except health and the callback needs a token, if one is configured, or a
//! session created with one. Changes through the API are `POST` requests with a bearer token and a
//! JSON body, which no page of another origin can cause. Changes through the studio are its own
//! forms, with a session. The content policy of all responses forbids inline scripts and styles.

mod answer;
mod api;
mod callback;
mod capture;
mod clients;
mod diff;
mod events;
mod guard;
mod health;
mod phases;
mod playground;
mod requests;
mod retire;
mod session;
mod status;

pub(crate) use answer::AdminResponse;
pub(crate) use api::read_bytes;
pub(crate) use guard::{AccessLevel, Guard, SignIn, Visitor, is_behind_tls, is_own_form};
pub(crate) use playground::{dry_run, fault_status, record_next, write_letter};
pub(crate) use retire::after_sunset_rows;
pub(crate) use session::cookie;
pub use session::{Role, SessionPolicy};
pub use status::{Board, CertificateEnd, PackShown, PackStatus, ReloadOutcome, Status};

use crate::operate::{self, person};
use crate::playground::PlaygroundSession;
pub use crate::requests::RequestsView;
use answer::Answer;
use arc_swap::ArcSwap;
use http::{HeaderMap, Method, Request, StatusCode};
use std::sync::Arc;
use switchback_gateway::body::Body;
use switchback_gateway::capture::Tap;
use switchback_gateway::clock::Clock;
use switchback_gateway::proxy::program::CurrentProgram;
use switchback_gateway::proxy::unknown_calls::UnknownCalls;
use switchback_gateway::retire::{Retirement, Usage};
use switchback_gateway::server::Drain;
use switchback_gateway::shadow::{Archive, GateSettings, Phases};
use switchback_gateway::store::{NewHistory, Store};
use switchback_gateway::telemetry::metrics::Metrics;
use switchback_gateway::token::{Registry, Tokens};
use tokio::sync::Notify;

/// The state that the admin port displays and manages.
pub struct AdminParts {
    pub metrics: Metrics,
    pub registry: Registry,
    pub tokens: Tokens,
    pub phases: Phases,
    /// Records of the dual run.
    pub archive: Archive,
    /// Pack, configuration and last reload, as published by `app`.
    pub board: Board,
    /// Whether the process is shutting down.
    pub drain: Drain,
    /// Notified when an operator requests a reload.
    pub reload: Arc<Notify>,
    pub program: CurrentProgram,
    /// Opens captures of traffic.
    pub tap: Tap,
    /// The sample of recent requests.
    pub requests: RequestsView,
    /// Calls to unknown operations and by unknown clients.
    pub unknown: UnknownCalls,
    /// Counted calls by client and operation.
    pub usage: Usage,
    /// Brownouts and client sunsets.
    pub retirement: Retirement,
    pub workbench: PlaygroundSession,
    pub clock: Clock,
    /// The policies of the gate.
    pub gate: ArcSwap<GateSettings>,
    /// Queued events, and the history of changes.
    pub store: Store,
}

impl AdminParts {
    /// Requests a reload. Its history entry is written concurrently, so that an unavailable store
    /// does not delay the reload.
    pub(crate) fn ask_for_reload(self: &Arc<Self>, author: &str) {
        let (parts, author) = (Arc::clone(self), author.to_owned());
        tokio::spawn(async move {
            let pack = parts.board.load().pack.name.clone();
            let entry = NewHistory { kind: "reload asked for", subject: &pack, ..NewHistory::default() };
            operate::note(&parts.store.by(&author), &entry).await;
        });
        self.reload.notify_one();
    }
}

/// The `POST` calls of the API, each with the kind of its history entry (`transition`: recorded
/// among the transitions). `None`: the call has no effect. Calls that are not listed return 404.
pub const CALLS: [(&str, Option<&str>); 20] = [
    ("/api/playground", None),
    ("/api/playground/record", Some("recording begun")),
    ("/api/playground/what-if", None),
    ("/api/brownouts", Some("brownout set")),
    ("/api/brownouts/{id}/remove", Some("brownout removed")),
    ("/api/clients", Some("client added")),
    ("/api/clients/{name}/rotate", Some("token rotated")),
    ("/api/clients/{name}/credential", Some("credential set")),
    ("/api/clients/{name}/retry", Some("refresh requested")),
    ("/api/clients/{name}/revoke", Some("client revoked")),
    ("/api/clients/{name}/sunset", Some("sunset set")),
    ("/api/clients/{name}/restore", Some("client restored")),
    ("/api/clients/{name}/connect", Some("connect link made")),
    ("/api/capture", Some("capture begun")),
    ("/api/capture/end", Some("capture ended")),
    ("/api/events/retry", Some("events retried")),
    ("/api/events/drop", Some("events dropped")),
    ("/api/reload", Some("reload asked for")),
    ("/api/phases", Some("transition")),
    ("/api/phases/reset", Some("transition")),
];

/// Returns whether path segments match a pattern.
pub(crate) fn fits(pattern: &str, segments: &[&str]) -> bool {
    let pattern: Vec<&str> = pattern.trim_start_matches('/').split('/').collect();
    let fits = |(part, segment): (&&str, &&str)| part.starts_with('{') || part == segment;
    pattern.len() == segments.len() && pattern.iter().zip(segments).all(fits)
}

/// The request field with the name of the person that a program acts for.
pub(crate) const OPERATOR: &str = "x-operator";

/// Returns the author of a change through the API: the name in `X-Operator`, else `admin.token`.
fn author(headers: &HeaderMap) -> String {
    let name = headers.get(OPERATOR).map(|value| person(&String::from_utf8_lossy(value.as_bytes())));
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("{name} (admin API)"),
        None => "admin.token (admin API)".to_owned(),
    }
}

/// Returns the credential that a request needs.
pub(crate) fn need(path: &str, method: &Method) -> AccessLevel {
    match path {
        "/healthz/live" | "/healthz/ready" | "/oauth/callback" => AccessLevel::Nothing,
        _ if path == "/metrics" || path == "/api" || path.starts_with("/api/") => {
            if *method == Method::POST {
                AccessLevel::ToChange
            } else {
                AccessLevel::ToRead
            }
        }
        _ => AccessLevel::Visitor,
    }
}

/// Routes all paths except those of the studio.
pub(crate) async fn route(parts: &Arc<AdminParts>, request: Request<Body>) -> Answer {
    let method = match request.method() {
        // The callback consumes a code, which a safe method must not do (RFC 9110, section 9.2.1),
        // and link checkers send HEAD. GET is unavoidable: OAuth redirects use it.
        &Method::HEAD if request.uri().path() == "/oauth/callback" => {
            let error = AdminResponse::error(StatusCode::METHOD_NOT_ALLOWED, "this address takes GET only");
            return Err(error.with_header("allow", "GET"));
        }
        &Method::HEAD => Method::GET,
        method => method.clone(),
    };
    let uri = request.uri().clone();
    let query = uri.query().unwrap_or_default();
    let segments: Vec<&str> = uri.path().trim_start_matches('/').split('/').collect();
    let is_api = segments.first() == Some(&"api");
    // An unlisted call could change state without an entry in the history.
    if method == Method::POST && is_api && !CALLS.iter().any(|(pattern, _)| fits(pattern, &segments)) {
        return Err(nothing_here());
    }
    if let ["api", "clients", name, _] = segments.as_slice() {
        known_client(parts, name).await?;
    }
    let by = &author(request.headers());
    match (method.as_str(), segments.as_slice()) {
        ("GET", ["healthz", "live"]) => Ok(health::live()),
        ("GET", ["healthz", "ready"]) => Ok(health::ready(parts)),
        ("GET", ["metrics"]) => Ok(health::metrics(parts)),
        ("GET", ["oauth", "callback"]) => Ok(callback::callback(parts, query).await),
        ("GET", ["api", "config"]) => api::config(parts),
        ("GET", ["api", "pack"]) => api::pack(parts),
        ("GET", ["api", "operations"]) => api::operations(parts),
        ("GET", ["api", "unknown"]) => api::unknown(parts),
        ("GET", ["api", "requests"]) => requests::list(parts, query),
        ("GET", ["api", "requests", id]) => requests::one(parts, id),
        ("POST", ["api", "playground"]) => playground::run(parts, request).await,
        ("GET", ["api", "playground", "examples"]) => playground::examples(parts).await,
        ("GET", ["api", "playground", "files"]) => playground::files(parts),
        ("GET", ["api", "playground", "recorded"]) => playground::list_recorded(parts),
        ("POST", ["api", "playground", "record"]) => playground::record(parts, by, request).await,
        ("POST", ["api", "playground", "what-if"]) => playground::what_if(parts, request).await,
        ("GET", ["api", "clients", name, "letter"]) => playground::letter(parts, name).await,
        ("GET", ["api", "usage"]) => retire::usage(parts, query).await,
        ("GET", ["api", "brownouts"]) => retire::brownouts(parts).await,
        ("POST", ["api", "brownouts"]) => retire::add(parts, by, request).await,
        ("POST", ["api", "brownouts", id, "remove"]) => retire::remove(parts, by, id).await,
        ("GET", ["api", "sunsets"]) => retire::sunsets(parts).await,
        ("GET", ["api", "clients"]) => clients::list(parts).await,
        ("POST", ["api", "clients"]) => clients::add(parts, by, request).await,
        ("POST", ["api", "clients", name, "rotate"]) => clients::rotate(parts, by, name, request).await,
        ("POST", ["api", "clients", name, "credential"]) => {
            clients::credential(parts, by, name, request).await
        }
        ("POST", ["api", "clients", name, "retry"]) => clients::retry(parts, by, name).await,
        ("POST", ["api", "clients", name, "revoke"]) => clients::revoke(parts, by, name).await,
        ("POST", ["api", "clients", name, "sunset"]) => retire::set_sunset(parts, by, name, request).await,
        ("POST", ["api", "clients", name, "restore"]) => clients::restore(parts, by, name).await,
        ("POST", ["api", "clients", name, "connect"]) => clients::connect(parts, by, name, request).await,
        ("POST", ["api", "capture"]) => capture::capture(parts, by, request).await,
        ("POST", ["api", "capture", "end"]) => capture::end(parts, by).await,
        ("GET", ["api", "events"]) => events::list(parts).await,
        ("POST", ["api", "events", "retry"]) => events::retry(parts, by, request).await,
        ("POST", ["api", "events", "drop"]) => events::drop(parts, by, request).await,
        ("POST", ["api", "reload"]) => api::reload(parts, by),
        ("GET", ["api", "phases"]) => phases::list(parts),
        ("POST", ["api", "phases"]) => phases::set(parts, by, request).await,
        ("POST", ["api", "phases", "reset"]) => phases::reset(parts, by, request).await,
        ("GET", ["api", "diff"]) => diff::report(parts).await,
        ("GET", ["api", "diff", "export"]) => diff::export(parts, query).await,
        ("GET", ["api", "phases", "transitions"]) => phases::transitions(parts).await,
        (_, ["healthz", "live" | "ready"] | ["metrics"] | ["oauth", "callback"]) => {
            let error = AdminResponse::error(StatusCode::METHOD_NOT_ALLOWED, "this address is for reading");
            Err(error.with_header("allow", "GET, HEAD"))
        }
        _ => Err(nothing_here()),
    }
}

/// Refuses the name of an unknown client, with the nearest known one.
async fn known_client(parts: &AdminParts, name: &str) -> Result<(), AdminResponse> {
    match parts.registry.get(name).await {
        Ok(_) => Ok(()),
        Err(error) => Err(operate::suggest_client(error.into(), &parts.store).await.into()),
    }
}

pub(crate) fn nothing_here() -> AdminResponse {
    AdminResponse::error(StatusCode::NOT_FOUND, "there is nothing at this address")
}
