//! The admin port: health, metrics, the studio's pages ([`crate::studio`]), the admin API, and the callback of the authorization server. It has an
//! address, limits and a token of its own, and shares nothing with the data path but what it shows.
//!
//! What guards it, in this order (see [`guard`]): the `Host` header must be an address, `localhost` or a configured name,
//! so that no web page reaches the port through a name of its own (a probe that names no host gets health); all but health and callback ask for a token, where
//! one is configured, or for a session that was begun with one; changes by the API are `POST` with the token as a bearer
//! and JSON as the body, which a page of another origin can neither send nor make a browser send; changes by the studio
//! are its own forms, with a session. The policy of all answers forbids scripts and styles within a page.

mod answer;
mod api;
mod callback;
mod capture;
mod diff;
mod events;
mod guard;
mod health;
mod phases;
mod playground;
mod retire;
mod session;
mod status;

pub(crate) use answer::Answer;
pub(crate) use api::{read_bytes, retry_grant};
pub(crate) use guard::{Guard, SignIn, Visitor, is_behind_tls, is_own_form};
pub use phases::told;
pub(crate) use playground::{record_next, tried, written};
pub(crate) use retire::after_sunset_rows;
pub use retire::told as retire_told;
pub(crate) use session::cookie;
pub use session::{Access, Role};
pub use status::{Board, CertificateEnd, PackShown, PackStatus, ReloadOutcome, Status};

use crate::playground::Workbench;
pub use crate::studio::FORMS;
use crate::studio::Studio;
use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use guard::Need;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use switchback_gateway::body::Body;
use switchback_gateway::capture::Tap;
use switchback_gateway::clock::Clock;
use switchback_gateway::proxy::program::Current;
use switchback_gateway::proxy::unknown_calls::UnknownCalls;
use switchback_gateway::retire::{Retirement, Usage};
use switchback_gateway::server::{Drain, Standing};
use switchback_gateway::shadow::{Archive, GateSettings, Phases};
use switchback_gateway::store::{NewHistory, Store};
use switchback_gateway::telemetry::metrics::Metrics;
use switchback_gateway::token::{Registry, Tokens};
use tokio::sync::Notify;

/// What the admin port shows and manages.
pub struct Parts {
    pub metrics: Metrics,
    pub registry: Registry,
    pub tokens: Tokens,
    pub phases: Phases,
    /// What the dual run recorded.
    pub archive: Archive,
    /// Pack, configuration and last reload, as `app` posts them.
    pub board: Board,
    /// Whether the process is about to stop.
    pub drain: Drain,
    /// Told when an operator asks for a reload.
    pub reload: Arc<Notify>,
    /// What is served at the moment.
    pub program: Current,
    /// Where captures of traffic are opened.
    pub tap: Tap,
    /// What is called that nobody knows.
    pub unknown: UnknownCalls,
    /// Who still calls what.
    pub usage: Usage,
    /// What is switched off for a while, and for whom a side has ended.
    pub retirement: Retirement,
    /// Where requests and mapping texts are tried.
    pub workbench: Workbench,
    pub clock: Clock,
    /// What the gate demands.
    pub gate: ArcSwap<GateSettings>,
    /// Where events wait, and where what happens is written down.
    pub store: Store,
    /// Who may come.
    pub access: Access,
    /// Host names allowed beside addresses and `localhost`, in lower case.
    pub hosts: Vec<String>,
}

impl Parts {
    /// Asks for a reload. Its entry is written at the same time: a store that does not answer holds up no reload.
    pub(crate) fn ask_for_reload(self: &Arc<Self>, author: &str) {
        let (parts, author) = (Arc::clone(self), author.to_owned());
        tokio::spawn(async move {
            let pack = parts.board.load().pack.name.clone();
            let entry = NewHistory { kind: "reload asked for", subject: &pack, ..NewHistory::default() };
            parts.note(&author, entry).await;
        });
        self.reload.notify_one();
    }

    /// Writes the entry of a change that is made outside of the store. Such a change does not wait for a store that is away.
    pub(crate) async fn note(&self, author: &str, entry: NewHistory<'_>) {
        if let Err(error) = self.store.by(author).note(&entry).await {
            let (kind, subject) = (entry.kind, entry.subject);
            tracing::warn!(%error, kind, subject, author, "the history in the store lacks an entry");
        }
    }
}

/// The service behind the admin port, or behind a port that has a part of it. Clones share its parts.
#[derive(Clone)]
pub struct Admin {
    parts: Arc<Parts>,
    guard: Arc<Guard>,
    studio: Arc<Studio>,
    area: Area,
}

/// What is to be found at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    All,
    /// All, where the callback has a port of its own.
    AllButCallback,
    /// Health alone: nothing that shows or changes anything is beside it.
    Health,
    /// The callback of the authorization server alone.
    Callback,
}

impl Area {
    fn has(self, path: &str) -> bool {
        let (is_health, is_callback) = (path.starts_with("/healthz/"), path == "/oauth/callback");
        match self {
            Area::All => true,
            Area::AllButCallback => !is_callback,
            Area::Health => is_health,
            Area::Callback => is_callback,
        }
    }
}

impl Admin {
    pub fn new(parts: Parts) -> Admin {
        let (hosts, store, clock) = (parts.hosts.clone(), parts.store.clone(), parts.clock.clone());
        let guard = Arc::new(Guard::new(&parts.access, hosts, store, clock));
        let parts = Arc::new(parts);
        let studio = Arc::new(Studio::new(Arc::clone(&parts), Arc::clone(&guard)));
        Admin { parts, guard, studio, area: Area::All }
    }

    /// Watches traffic for the studio's charts, for ever.
    pub async fn watch(self) {
        self.studio.watch().await;
    }

    /// Tells other replicas that this process ends.
    pub async fn leave(&self) {
        self.studio.leave().await;
    }

    /// Shows what the gate demands from here on.
    pub fn set_gate(&self, gate: GateSettings) {
        self.parts.gate.store(Arc::new(gate));
    }

    /// Is opened by these tokens, under these host names, from here on.
    pub fn set_access(&self, access: &Access, hosts: Vec<String>) {
        self.guard.set_access(access, hosts);
    }

    /// The same parts, as far as a port has them.
    #[must_use]
    pub fn area(&self, area: Area) -> Admin {
        Admin { area, ..self.clone() }
    }

    async fn answer(self, request: Request<Body>) -> Response<Body> {
        let is_head = request.method() == Method::HEAD;
        if !self.area.has(request.uri().path()) {
            return Answer::error(StatusCode::NOT_FOUND, "there is nothing at this address")
                .into_response(is_head);
        }
        let need = need(request.uri().path(), request.method());
        let (head, body) = request.into_parts();
        let checked = self.guard.check(&head, need).await;
        let answer = match checked {
            Ok(()) => {
                let is_known = match need {
                    Need::Nothing => false,
                    Need::Visitor => self.guard.visitor(&head.headers).await.is_some(),
                    Need::ToRead | Need::ToChange => true,
                };
                // Who has shown a token is not put out for strangers.
                if is_known
                    && !self.guard.is_open()
                    && let Some(standing) = head.extensions.get::<Standing>()
                {
                    standing.trust();
                }
                let request = Request::from_parts(head, body);
                match need {
                    Need::Visitor => self.studio.answer(request).await,
                    _ => route(&self.parts, request).await,
                }
            }
            Err(refusal) => refusal,
        };
        answer.into_response(is_head)
    }
}

/// The calls of the API that are sent with `POST`, each with the kind of the entry that it leaves in the history (`transition`:
/// among the transitions). The others change nothing: they only try something. A call that is not listed is not found.
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

/// Whether a path is one of this pattern.
pub(crate) fn fits(pattern: &str, segments: &[&str]) -> bool {
    let pattern: Vec<&str> = pattern.trim_start_matches('/').split('/').collect();
    let fits = |(part, segment): (&&str, &&str)| part.starts_with('{') || part == segment;
    pattern.len() == segments.len() && pattern.iter().zip(segments).all(fits)
}

/// The field in which a program says on whose behalf it changes something.
pub(crate) const OPERATOR: &str = "x-operator";
/// Most characters of a person's name.
pub(crate) const NAME_CHARS_MAX: usize = 60;

/// A name as somebody gave it, fit for the history.
pub(crate) fn person(name: &str) -> String {
    name.trim().chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect()
}

/// The author of a change by the API: the name in `X-Operator`, else the token that allows it.
fn author(headers: &HeaderMap) -> String {
    let name = headers.get(OPERATOR).map(|value| person(&String::from_utf8_lossy(value.as_bytes())));
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("{name} (admin API)"),
        None => "admin.token (admin API)".to_owned(),
    }
}

/// What a request must show before it is looked at.
fn need(path: &str, method: &Method) -> Need {
    match path {
        "/healthz/live" | "/healthz/ready" | "/oauth/callback" => Need::Nothing,
        _ if path == "/metrics" || path == "/api" || path.starts_with("/api/") => {
            if *method == Method::POST {
                Need::ToChange
            } else {
                Need::ToRead
            }
        }
        _ => Need::Visitor,
    }
}

/// All addresses of the port but those of the studio.
async fn route(parts: &Arc<Parts>, request: Request<Body>) -> Answer {
    let method = match request.method() {
        // The callback spends a code, which reading must not do (RFC 9110, section 9.2.1): those who look whether a link is
        // safe ask with HEAD. With GET, authorization servers leave no choice.
        &Method::HEAD if request.uri().path() == "/oauth/callback" => {
            return Answer::error(StatusCode::METHOD_NOT_ALLOWED, "this address takes GET only")
                .with_header("allow", "GET");
        }
        &Method::HEAD => Method::GET,
        method => method.clone(),
    };
    let path = request.uri().path().to_owned();
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let is_api = segments.first() == Some(&"api");
    if method == Method::POST && is_api && !CALLS.iter().any(|(pattern, _)| fits(pattern, &segments)) {
        return Answer::error(StatusCode::NOT_FOUND, "there is nothing at this address");
    }
    let by = &author(request.headers());
    match (method.as_str(), segments.as_slice()) {
        ("GET", ["healthz", "live"]) => health::live(),
        ("GET", ["healthz", "ready"]) => health::ready(parts),
        ("GET", ["metrics"]) => health::metrics(parts),
        ("GET", ["oauth", "callback"]) => {
            callback::callback(parts, request.uri().query().unwrap_or_default()).await
        }
        ("GET", ["api", "config"]) => api::config(parts),
        ("GET", ["api", "pack"]) => api::pack(parts),
        ("GET", ["api", "operations"]) => api::operations(parts),
        ("GET", ["api", "unknown"]) => api::unknown(parts),
        ("POST", ["api", "playground"]) => playground::run(parts, request).await,
        ("GET", ["api", "playground", "examples"]) => playground::examples(parts).await,
        ("GET", ["api", "playground", "files"]) => playground::files(parts),
        ("GET", ["api", "playground", "recorded"]) => playground::recorded(parts),
        ("POST", ["api", "playground", "record"]) => playground::record(parts, by, request).await,
        ("POST", ["api", "playground", "what-if"]) => playground::what_if(parts, request).await,
        ("GET", ["api", "clients", name, "letter"]) => playground::letter(parts, name).await,
        ("GET", ["api", "usage"]) => retire::usage(parts, request.uri().query().unwrap_or_default()).await,
        ("GET", ["api", "brownouts"]) => retire::brownouts(parts).await,
        ("POST", ["api", "brownouts"]) => retire::add(parts, by, request).await,
        ("POST", ["api", "brownouts", id, "remove"]) => retire::remove(parts, by, id).await,
        ("GET", ["api", "sunsets"]) => retire::sunsets(parts).await,
        ("GET", ["api", "clients"]) => api::clients(parts).await,
        ("POST", ["api", "clients"]) => api::add(parts, by, request).await,
        ("POST", ["api", "clients", name, "rotate"]) => api::rotate(parts, by, name, request).await,
        ("POST", ["api", "clients", name, "credential"]) => api::credential(parts, by, name, request).await,
        ("POST", ["api", "clients", name, "retry"]) => api::retry(parts, by, name).await,
        ("POST", ["api", "clients", name, "revoke"]) => api::revoke(parts, by, name).await,
        ("POST", ["api", "clients", name, "sunset"]) => retire::set_sunset(parts, by, name, request).await,
        ("POST", ["api", "clients", name, "restore"]) => api::restore(parts, by, name).await,
        ("POST", ["api", "clients", name, "connect"]) => api::connect(parts, by, name, request).await,
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
        ("GET", ["api", "diff", "export"]) => {
            diff::export(parts, request.uri().query().unwrap_or_default()).await
        }
        ("GET", ["api", "phases", "transitions"]) => phases::transitions(parts).await,
        (_, ["healthz", "live" | "ready"] | ["metrics"] | ["oauth", "callback"]) => {
            Answer::error(StatusCode::METHOD_NOT_ALLOWED, "this address is for reading")
                .with_header("allow", "GET, HEAD")
        }
        _ => Answer::error(StatusCode::NOT_FOUND, "there is nothing at this address"),
    }
}

impl tower::Service<Request<Body>> for Admin {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let admin = self.clone();
        Box::pin(async move { Ok(admin.answer(request).await) })
    }
}
