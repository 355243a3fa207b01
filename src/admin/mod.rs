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
mod openapi;
mod packs;
mod phases;
mod playground;
mod reloads;
mod requests;
mod retire;
mod rollouts;
mod route;
mod routes;
mod session;
mod status;

pub(crate) use answer::AdminResponse;
pub(crate) use api::read_bytes;
pub(crate) use guard::{AccessLevel, Guard, SignIn, Visitor, is_behind_tls, is_own_form};
pub(crate) use playground::{dry_run, fault_status, record_next, write_letter};
pub use reloads::{ReloadRequest, ReloadRequests};
pub(crate) use retire::after_sunset_rows;
pub use route::AdminRoute;
pub use routes::ROUTES;
pub(crate) use routes::{description, find};
pub(crate) use session::cookie;
pub use session::{Role, SessionPolicy};
pub use status::{Board, CertificateEnd, PackShown, PackStatus, ReloadOutcome, Status};

use crate::operate::{self, person};
use crate::playground::PlaygroundSession;
pub use crate::requests::RequestsView;
use http::{HeaderMap, Method, StatusCode};
use std::sync::Arc;
use switchback_gateway::capture::Tap;
use switchback_gateway::clock::Clock;
use switchback_gateway::proxy::program::CurrentProgram;
use switchback_gateway::proxy::unknown_calls::UnknownCalls;
use switchback_gateway::retire::{Retirement, Usage};
use switchback_gateway::server::Drain;
use switchback_gateway::shadow::{Archive, Phases};
use switchback_gateway::store::{NewHistory, Store};
use switchback_gateway::telemetry::metrics::Metrics;
use switchback_gateway::token::{Registry, Tokens};

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
    /// Requests reloads and restorations of packs.
    pub reload: ReloadRequests,
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
    /// Queued events, and the history of changes.
    pub store: Store,
}

impl AdminParts {
    /// Requests a reload. Its history entry is written concurrently, so that an unavailable store
    /// does not delay the reload.
    pub(crate) fn ask_for_reload(self: &Arc<Self>, author: &str) {
        self.reload.ask(author);
        let (parts, author) = (Arc::clone(self), author.to_owned());
        tokio::spawn(async move {
            let pack = parts.board.load().pack.name.clone();
            let entry = NewHistory { kind: "reload asked for", subject: &pack, ..NewHistory::default() };
            operate::note(&parts.store.by(&author), &entry).await;
        });
    }
}

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
            // Any other `POST` gets 404 or 405 and changes nothing.
            if *method == Method::POST && find(method, path).is_ok() {
                AccessLevel::ToChange
            } else {
                AccessLevel::ToRead
            }
        }
        _ => AccessLevel::Visitor,
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
