//! The paths of the admin port outside the studio. One table serves the router and the generated
//! description ([`super::openapi`]), so that a path without a description cannot exist.

use super::answer::{AdminResponse, Answer};
use super::api::{NoMembers, parse_body};
use super::retire;
use super::route::AnswerContent::{Json, Text};
use super::route::{AdminCall, AdminRoute, Handler, QueryParameter, get, post};
use super::{AdminParts, author, known_client};
use super::{
    api, callback, capture, clients, diff, events, health, openapi, packs, phases, playground, requests,
    rollouts,
};
use crate::operate::CaptureRequest;
use crate::playground::DryRunRequest;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, Request, StatusCode, header};
use std::sync::Arc;
use switchback_gateway::body::Body;

macro_rules! run {
    ($call:ident => $answer:expr) => {
        Handler::Admin(|$call| Box::pin(async move { $answer }))
    };
}

/// All routes.
pub const ROUTES: &[AdminRoute] = &[
    get("/healthz/live", "Reports that the process answers.", Json("Live"), run!(_c => Ok(health::live()))),
    get(
        "/healthz/ready",
        "Reports whether the gateway should receive traffic: 503 while it shuts down.",
        Json("Ready"),
        run!(c => Ok(health::ready(c.parts))),
    )
    .errors(&[503]),
    get("/metrics", "Metrics for Prometheus.", Text("text/plain"), run!(c => Ok(health::metrics(c.parts)))),
    get(
        "/oauth/callback",
        "The redirect target of the authorization server: a page for the person who authorizes.",
        Text("text/html"),
        run!(c => Ok(callback::callback(c.parts, c.query).await)),
    )
    .errors(&[400, 500, 502]),
    get(
        "/api/openapi.json",
        "This description.",
        Json("Object"),
        run!(_c => AdminResponse::ok(&description())),
    ),
    get("/api/status", "The figures of `switchback status`.", Json("GatewayStatus"), Handler::Studio),
    get("/api/attention", "The conditions that need an operator.", Json("Attention"), Handler::Studio),
    get(
        "/api/config",
        "The running configuration, with secrets masked.",
        Json("Object"),
        run!(c => api::config(c.parts)),
    ),
    get(
        "/api/pack",
        "The served pack, and the outcome of the last reload.",
        Json("PackStatus"),
        run!(c => api::pack(c.parts)),
    ),
    get(
        "/api/packs",
        "The last packs that served, with what each changed in operations.",
        Json("Packs"),
        run!(c => packs::list(c.parts).await),
    ),
    post(
        "/api/packs/{id}/restore",
        "Serves a recorded pack instead of the one on disk, until that changes or is reloaded.",
        (200, "PackStatus"),
        run!(c => packs::restore(c.parts, c.by, c.id).await),
    )
    .errors(&[409])
    .history("pack restored"),
    get(
        "/api/operations",
        "The finished requests since the start of this process, by operation and outcome.",
        Json("Operations"),
        run!(c => api::operations(c.parts)),
    ),
    get(
        "/api/unknown",
        "The newest calls to unknown operations and by unknown clients.",
        Json("UnknownCalls"),
        run!(c => api::unknown(c.parts)),
    ),
    get(
        "/api/requests",
        "Sampled requests that match the query, newest first, with the extent of the sample.",
        Json("Requests"),
        run!(c => requests::list(c.parts, c.query)),
    )
    .query(&requests::PARAMETERS)
    .errors(&[400]),
    get(
        "/api/requests/{id}",
        "One sampled request with its messages.",
        Json("SampledRequest"),
        run!(c => requests::one(c.parts, c.id)),
    ),
    post(
        "/api/playground",
        "Runs a request, an entry of an HTTP Archive or a recorded exchange as a dry run.",
        (200, "DryRun"),
        run!(c => playground::run(c.parts, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<DryRunRequest>())
    .errors(&[404, 409, 422]),
    get(
        "/api/playground/examples",
        "The requests of the pack's examples.",
        Json("Examples"),
        run!(c => playground::examples(c.parts).await),
    )
    .errors(&[422]),
    get(
        "/api/playground/files",
        "The served mapping files, by name.",
        Json("Texts"),
        run!(c => playground::files(c.parts)),
    ),
    get(
        "/api/playground/recorded",
        "The recorded exchanges, newest first.",
        Json("Recorded"),
        run!(c => playground::list_recorded(c.parts)),
    ),
    post(
        "/api/playground/record",
        "Records the next exchanges, masked as captures are.",
        (202, "Recording"),
        run!(c => playground::record(c.parts, c.by, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<playground::RecordRequest>())
    .errors(&[409])
    .history("recording begun"),
    post(
        "/api/playground/what-if",
        "The effect of a change of mapping files on the recorded exchanges and the examples.",
        (200, "WhatIf"),
        run!(c => playground::what_if(c.parts, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<playground::FileChange>())
    .errors(&[404, 422]),
    get(
        "/api/usage",
        "Calls by side, client, operation and outcome, over all gateways of the store.",
        Json("Usage"),
        run!(c => retire::usage(c.parts, c.query).await),
    )
    .query(&[QueryParameter {
        name: "after_sunset",
        about: "If present: the losses of each client once the old service is gone, instead of the calls.",
        schema: r#"{"type": "string"}"#,
    }])
    .errors(&[400]),
    get(
        "/api/brownouts",
        "Brownouts, earliest first, including those that ended within the last month.",
        Json("Brownouts"),
        run!(c => retire::brownouts(c.parts).await),
    ),
    post(
        "/api/brownouts",
        "Schedules a brownout.",
        (201, "Brownout"),
        run!(c => retire::add(c.parts, c.by, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<retire::AddBrownout>())
    .errors(&[404, 409])
    .history("brownout set"),
    post(
        "/api/brownouts/{id}/remove",
        "Removes a brownout.",
        (200, "Removed"),
        run!(c => retire::remove(c.parts, c.by, c.id).await),
    )
    .errors(&[409])
    .history("brownout removed"),
    get(
        "/api/sunsets",
        "The sunset dates of single clients.",
        Json("Sunsets"),
        run!(c => retire::sunsets(c.parts).await),
    ),
    get("/api/clients", "All clients.", Json("Clients"), run!(c => clients::list(c.parts).await)),
    post(
        "/api/clients",
        "Adds a client.",
        (201, "ChangedClient"),
        run!(c => clients::add(c.parts, c.by, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<clients::AddClient>())
    .errors(&[409])
    .history("client added"),
    get(
        "/api/clients/{name}/letter",
        "The migration notice for the owner of a client.",
        Text("text/plain"),
        run!(c => playground::letter(c.parts, c.id).await),
    )
    .errors(&[422]),
    post(
        "/api/clients/{name}/rotate",
        "Replaces the token of a client.",
        (200, "ChangedClient"),
        run!(c => clients::rotate(c.parts, c.by, c.id, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<clients::Rotate>())
    .errors(&[409])
    .history("token rotated"),
    post(
        "/api/clients/{name}/credential",
        "Sets the fixed token of a client for calls to a side.",
        (200, "ChangedClient"),
        run!(c => clients::credential(c.parts, c.by, c.id, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<clients::SetCredential>())
    .errors(&[409])
    .history("credential set"),
    post(
        "/api/clients/{name}/retry",
        "Refreshes the grant of a client at once.",
        (200, "Refreshed"),
        run!(c => clients::retry(c.parts, c.by, c.id).await),
    )
    .errors(&[409])
    .history("refresh requested"),
    post(
        "/api/clients/{name}/revoke",
        "Revokes a client, its tokens and its grant.",
        (200, "RevokedClient"),
        run!(c => clients::revoke(c.parts, c.by, c.id).await),
    )
    .errors(&[409])
    .history("client revoked"),
    post(
        "/api/clients/{name}/sunset",
        "Sets the sunset date of a client.",
        (200, "Sunset"),
        run!(c => retire::set_sunset(c.parts, c.by, c.id, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<retire::SetSunset>())
    .errors(&[409])
    .history("sunset set"),
    post(
        "/api/clients/{name}/restore",
        "Restores a revoked client, without tokens.",
        (200, "ChangedClient"),
        run!(c => clients::restore(c.parts, c.by, c.id).await),
    )
    .errors(&[409])
    .history("client restored"),
    post(
        "/api/clients/{name}/connect",
        "Makes a link with which a person authorizes the gateway for a client.",
        (200, "ConnectLink"),
        run!(c => clients::connect(c.parts, c.by, c.id, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<clients::Connect>())
    .errors(&[409])
    .history("connect link made"),
    post(
        "/api/capture",
        "Streams live traffic as an HTTP Archive, until its limits are reached or it is ended.",
        (200, "HttpArchive"),
        run!(c => capture::capture(c.parts, c.by, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<CaptureRequest>())
    .errors(&[404, 409])
    .history("capture begun"),
    post(
        "/api/capture/end",
        "Ends the open capture.",
        (202, "CaptureEnd"),
        run!(c => capture::end(c.parts, c.by).await),
    )
    .errors(&[404, 409])
    .history("capture ended"),
    get(
        "/api/events",
        "Queued events by receiver, and the oldest of them.",
        Json("Events"),
        run!(c => events::list(c.parts).await),
    ),
    post(
        "/api/events/retry",
        "Retries dead letters.",
        (200, "Retried"),
        run!(c => events::retry(c.parts, c.by, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<events::EventSelection>())
    .history("events retried"),
    post(
        "/api/events/drop",
        "Removes dead letters.",
        (200, "Dropped"),
        run!(c => events::drop(c.parts, c.by, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<events::EventSelection>())
    .history("events dropped"),
    post(
        "/api/reload",
        "Requests a reload of pack and configuration.",
        (202, "ReloadAnswer"),
        run!(c => api::reload(c.parts, c.by)),
    )
    .history("reload asked for"),
    get("/api/phases", "Operations with their phases.", Json("Phases"), run!(c => phases::list(c.parts))),
    post(
        "/api/phases",
        "Sets the phase of an operation.",
        (200, "Phase"),
        run!(c => phases::set(c.parts, c.by, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<phases::SetPhase>())
    .errors(&[404, 409])
    .history("transition"),
    post(
        "/api/phases/reset",
        "Resets the phase of an operation to the configured one.",
        (200, "Phase"),
        run!(c => phases::reset(c.parts, c.by, c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<phases::ResetPhase>())
    .errors(&[404, 409])
    .history("transition"),
    get(
        "/api/phases/transitions",
        "The last transitions, newest first.",
        Json("Transitions"),
        run!(c => phases::transitions(c.parts).await),
    ),
    get(
        "/api/rollouts",
        "The rollouts of operations, with the conditions for their next steps.",
        Json("Rollouts"),
        run!(c => rollouts::list(c.parts).await),
    ),
    post(
        "/api/rollouts/start",
        "Starts a rollout of an operation.",
        (200, "Rollout"),
        run!(c => rollouts::change(c.parts, c.by, "start", c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<rollouts::RolloutRequest>())
    .errors(&[404, 409])
    .history("rollout started"),
    post(
        "/api/rollouts/pause",
        "Pauses a rollout: it does not advance.",
        (200, "Rollout"),
        run!(c => rollouts::change(c.parts, c.by, "pause", c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<rollouts::RolloutRequest>())
    .errors(&[404, 409])
    .history("rollout paused"),
    post(
        "/api/rollouts/resume",
        "Resumes a paused rollout.",
        (200, "Rollout"),
        run!(c => rollouts::change(c.parts, c.by, "resume", c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<rollouts::RolloutRequest>())
    .errors(&[404, 409])
    .history("rollout resumed"),
    post(
        "/api/rollouts/promote",
        "Advances a rollout to its next step at once.",
        (200, "Rollout"),
        run!(c => rollouts::change(c.parts, c.by, "promote", c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<rollouts::RolloutRequest>())
    .errors(&[404, 409])
    .history("transition"),
    post(
        "/api/rollouts/abort",
        "Ends a rollout.",
        (200, "Rollout"),
        run!(c => rollouts::change(c.parts, c.by, "abort", c.request).await),
    )
    .body(|schemas| schemas.subschema_for::<rollouts::RolloutRequest>())
    .errors(&[404, 409])
    .history("rollout aborted"),
    get(
        "/api/diff",
        "The report of the dual run, per operation.",
        Json("DiffReport"),
        run!(c => diff::report(c.parts).await),
    ),
    get(
        "/api/diff/export",
        "The stored comparisons as JSON Lines, oldest first.",
        Text("application/x-ndjson"),
        run!(c => diff::export(c.parts, c.query).await),
    )
    .query(&[QueryParameter {
        name: "operation",
        about: "Selects one operation, such as `GET /things/{id}`.",
        schema: r#"{"type": "string"}"#,
    }])
    .errors(&[404]),
];

/// Returns the description of all routes as an OpenAPI document.
pub(crate) fn description() -> serde_json::Value {
    openapi::document(ROUTES)
}

/// Returns the route of a request, with the variable of its path. The error is the response: 404
/// for an unknown path, 405 for another method.
pub(crate) fn find<'p>(
    method: &Method,
    path: &'p str,
) -> Result<(&'static AdminRoute, &'p str), AdminResponse> {
    let known = || ROUTES.iter().filter_map(|route| Some((route, route.matches(path)?)));
    if let Some(found) = known().find(|(route, _)| route.takes(method)) {
        return Ok(found);
    }
    let methods = ["GET", "HEAD", "POST"].map(|name| Method::from_bytes(name.as_bytes()).expect("a method"));
    let taken = methods.iter().filter(|method| known().any(|(route, _)| route.takes(method)));
    let taken: Vec<&str> = taken.map(Method::as_str).collect();
    if taken.is_empty() {
        return Err(super::nothing_here());
    }
    let taken = taken.join(", ");
    let error =
        AdminResponse::error(StatusCode::METHOD_NOT_ALLOWED, format!("this address takes {taken} only"));
    Err(error.header(header::ALLOW, HeaderValue::try_from(taken).expect("names of methods")))
}

impl AdminRoute {
    /// Runs the call. `None`: the studio has its data.
    pub(crate) async fn run(
        &self,
        parts: &Arc<AdminParts>,
        id: &str,
        request: Request<Body>,
    ) -> Option<Answer> {
        let Handler::Admin(run) = self.run else { return None };
        Some(self.run_by(run, parts, id, request).await)
    }

    async fn run_by(
        &self,
        run: for<'c> fn(AdminCall<'c>) -> BoxFuture<'c, Answer>,
        parts: &Arc<AdminParts>,
        id: &str,
        request: Request<Body>,
    ) -> Answer {
        let (uri, by) = (request.uri().clone(), author(request.headers()));
        if self.path.starts_with("/api/clients/{name}") {
            known_client(parts, id).await?;
        }
        let request = if self.method == "POST" && self.body.is_none() {
            let NoMembers {} = parse_body(request).await?;
            Request::default()
        } else {
            request
        };
        let query = uri.query().unwrap_or_default();
        run(AdminCall { parts, id, query, by: &by, request }).await
    }
}
