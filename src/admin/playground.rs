//! The playground in the admin API: dry runs of requests and mapping files, and the migration
//! notice for a client's owner.

use super::AdminParts;
use super::answer::{AdminResponse, Answer};
use super::api::read_up_to;
use super::retire::after_sunset_rows;
use crate::operate::{self, Refusal};
use crate::playground::{DryRunRequest, Letter, Ran, TryError, ends_for};
use crate::replay::Live;
use http::{Request, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use switchback_engine::redact::Salt;
use switchback_gateway::body::Body;
use switchback_gateway::capture::Redaction;
use switchback_gateway::proxy::program::Program;
use switchback_gateway::retire::UsageInfo;
use switchback_gateway::store::seal::random;
use switchback_gateway::token::Client;
use switchback_plan::SideId;

/// Largest request body: mapping files and an exchange.
const ASK_BYTES_MAX: u64 = 4 << 20;

pub(super) async fn run(parts: &AdminParts, request: Request<Body>) -> Answer {
    let ask: DryRunRequest = read_up_to(request, ASK_BYTES_MAX).await?;
    AdminResponse::ok(&dry_run(parts, ask).await?)
}

/// Executes a dry run for the API and the studio.
pub(crate) async fn dry_run(parts: &AdminParts, ask: DryRunRequest) -> Result<Ran, TryError> {
    let program = parts.program.load_full();
    // A new salt per run: hashes of one result cannot be matched with those of another.
    let redaction = Redaction::new(program.pack(), Salt::new(random()));
    let live = if ask.live { Some(live(parts, &ask)?) } else { None };
    let phases = parts.phases.list();
    let phase_of = |side: &str, operation: &str| {
        let found = phases.iter().find(|info| info.side == side && info.operation == operation);
        found.map_or_else(String::new, |info| match info.now.share {
            Some(share) => format!("{} {share}", info.now.phase),
            None => info.now.phase.to_owned(),
        })
    };
    let name = ask.client.clone();
    let mut ran = parts.workbench.run(ask, live.as_ref(), &redaction, phase_of).await?;
    let client = name.and_then(|name| parts.tokens.clients().by_name(&name));
    settle_own_service(&mut ran, &program, client.as_deref());
    Ok(ran)
}

/// Adjusts how a refused call is answered: the side's own service answers it only while that
/// service exists and the client may be forwarded to it.
fn settle_own_service(ran: &mut Ran, program: &Program, client: Option<&Client>) {
    let serves = SideId::BOTH.into_iter().find(|at| program.side(*at).name == ran.side);
    let Some(serves) = serves.filter(|_| ran.is_forwarded) else { return };
    // In these phases the side's own service answers, regardless of the refusal.
    let is_own_phase = ["legacy", "shadow"].contains(&ran.phase.as_str());
    let is_gone = program.is_own_service_gone(serves);
    let may_forward = client.is_none_or(|client| program.may_forward(client, serves));
    ran.is_forwarded = !is_gone && may_forward;
    ran.needs_credential = ran.is_forwarded && client.is_none() && serves == SideId::NEW;
    if is_gone || !(may_forward || is_own_phase) {
        ran.answered_by = "plans".to_owned();
    }
}

/// Builds the connection to the new side's service, with the credential of the client in `ask`.
fn live(parts: &AdminParts, ask: &DryRunRequest) -> Result<Live, TryError> {
    let program = parts.program.load_full();
    let side = program.side(SideId::NEW);
    let fail = |what: &str| TryError::Request(what.to_owned());
    let name =
        ask.client.as_deref().ok_or_else(|| fail("say on behalf of which client the service is asked"))?;
    let client = parts.tokens.clients().by_name(name).ok_or_else(|| fail("there is no such client"))?;
    let token =
        client.grant.current().ok_or_else(|| fail("this client has no access token at the moment"))?;
    let base = parts.workbench.upstream(&side.name).ok_or_else(|| fail("there is no upstream to ask"))?;
    let hosts = side.hosts.iter().map(|host| parts.workbench.upstream(&format!("{}/{host}", side.name)));
    // `false`: a dry run never has effects on the service.
    Live::new(&base, &[], false)
        .and_then(|live| live.with_hosts(hosts))
        .and_then(|live| live.with_credential(&side.credential, token.secret()))
        .map_err(|error| TryError::Request(error.to_string()))
}

/// Returns the requests of the pack's examples.
pub(super) async fn examples(parts: &AdminParts) -> Answer {
    AdminResponse::ok(&parts.workbench.examples().await?)
}

/// Returns the served mapping files by name.
pub(super) fn files(parts: &AdminParts) -> Answer {
    let files: BTreeMap<String, String> = parts.workbench.files().into_iter().collect();
    AdminResponse::ok(&files)
}

/// Returns the recorded exchanges, newest first.
pub(super) fn list_recorded(parts: &AdminParts) -> Answer {
    let recorded = parts.workbench.recorded();
    let (recording, exchanges) = (recorded.is_recording(), recorded.list());
    AdminResponse::ok(&json!({ "recording": recording, "exchanges": exchanges }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RecordRequest {
    exchanges: usize,
}

impl Default for RecordRequest {
    fn default() -> RecordRequest {
        RecordRequest { exchanges: 100 }
    }
}

pub(super) async fn record(parts: &AdminParts, by: &str, request: Request<Body>) -> Answer {
    let RecordRequest { exchanges } = read_up_to(request, ASK_BYTES_MAX).await?;
    record_next(parts, by, exchanges).await?;
    Ok(AdminResponse::json(StatusCode::ACCEPTED, &json!({ "recording": exchanges })))
}

/// Starts a recording, for the API and the studio.
pub(crate) async fn record_next(parts: &AdminParts, by: &str, exchanges: usize) -> Result<(), Refusal> {
    let (program, store) = (parts.program.load_full(), parts.store.by(by));
    operate::record(exchanges, &parts.workbench, &parts.tap, program.pack(), &store).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileChange {
    /// Texts of mapping files, by name.
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// Returns the effect of a change of mapping files on the recorded exchanges.
pub(super) async fn what_if(parts: &AdminParts, request: Request<Body>) -> Answer {
    let FileChange { files } = read_up_to(request, ASK_BYTES_MAX).await?;
    AdminResponse::ok(&parts.workbench.what_if(files).await?)
}

/// Returns the migration notice for the owner of a client.
pub(super) async fn letter(parts: &AdminParts, name: &str) -> Answer {
    let usage = parts.usage.list().await?;
    let text = write_letter(parts, name, &usage).await?;
    Ok(AdminResponse::text(StatusCode::OK, "text/plain; charset=utf-8", text))
}

/// Renders the migration notice, for the API and the studio. `usage` holds the counted calls.
pub(crate) async fn write_letter(
    parts: &AdminParts,
    name: &str,
    usage: &[UsageInfo],
) -> Result<String, TryError> {
    let own: Vec<UsageInfo> = usage.iter().filter(|one| one.client == name).cloned().collect();
    let losses = after_sunset_rows(parts, &own);
    let board = parts.board.load();
    let announced = board.config["sunset"].as_object().into_iter().flatten();
    let announced =
        announced.filter_map(|(side, end)| Some((side.clone(), end["sunset"].as_str()?.to_owned())));
    let ends = ends_for(name, announced, &parts.retirement.sunsets());
    parts.workbench.letter(Letter { client: name, usage: &own, losses: &losses, ends }).await
}

impl From<TryError> for AdminResponse {
    fn from(error: TryError) -> AdminResponse {
        let (status, kind) = fault_status(&error);
        AdminResponse::json(status, &json!({ "error": error.to_string(), "kind": kind }))
    }
}

/// Returns the status of an error and its name in the API.
pub(crate) fn fault_status(error: &TryError) -> (StatusCode, &'static str) {
    match error {
        TryError::Findings(_) => (StatusCode::UNPROCESSABLE_ENTITY, "findings"),
        TryError::Examples(_) => (StatusCode::UNPROCESSABLE_ENTITY, "examples"),
        TryError::NoSuchFile(_) => (StatusCode::NOT_FOUND, "file"),
        TryError::Request(_) | TryError::Unchanged => (StatusCode::BAD_REQUEST, "request"),
        TryError::Conflict(_) | TryError::Link(_) => (StatusCode::CONFLICT, "conflict"),
        TryError::NotWritable => (StatusCode::FORBIDDEN, "not writable"),
        TryError::Write(_) => (StatusCode::INTERNAL_SERVER_ERROR, "write"),
        TryError::CompileTime(_) => (StatusCode::UNPROCESSABLE_ENTITY, "time"),
        TryError::Interrupted => (StatusCode::SERVICE_UNAVAILABLE, "interrupted"),
    }
}
