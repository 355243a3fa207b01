//! Captures of live traffic, and recordings for the playground. One of them can be open at a time.

use super::history::note;
use super::names::operation_name;
use super::refusal::{Refusal, RefusalKind};
use crate::playground::PlaygroundSession;
use schemars::JsonSchema;
use serde::Deserialize;
use switchback_compiler::diagnostic::did_you_mean;
use switchback_engine::redact::Salt;
use switchback_gateway::capture::{CaptureFilter, Captured, Redaction, Tap};
use switchback_gateway::store::seal::random;
use switchback_gateway::store::{NewHistory, Store};
use switchback_plan::Pack;

/// A requested capture.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CaptureRequest {
    /// As written in the contract, such as `GET /things/{id}`.
    pub(crate) operation: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) share: f64,
    pub(crate) exchanges: u64,
    pub(crate) seconds: u64,
    pub(crate) body_bytes: usize,
}

impl Default for CaptureRequest {
    fn default() -> CaptureRequest {
        CaptureRequest {
            operation: None,
            client: None,
            share: 1.0,
            exchanges: 1_000,
            seconds: 60,
            body_bytes: 256 << 10,
        }
    }
}

/// Largest recorded part of one body.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Opens a capture on behalf of the author of `store`.
pub(crate) async fn begin_capture(
    asked: &CaptureRequest,
    tap: &Tap,
    pack: &Pack,
    store: &Store,
) -> Result<(Captured, Redaction), Refusal> {
    if !(asked.share > 0.0 && asked.share <= 1.0) || asked.body_bytes > BODY_BYTES_MAX {
        let text = format!("share is above 0 and at most 1, body_bytes at most {BODY_BYTES_MAX}");
        return Err(Refusal::invalid(text));
    }
    let operation = asked.operation.as_deref().map(|text| operation_name(None, text).1);
    if let Some(wanted) = operation {
        let routes = pack.directions.iter().flat_map(|direction| &direction.routes);
        let known: Vec<&str> = routes.map(|route| &*route.operation.key).collect();
        if !known.contains(&wanted) {
            let help = did_you_mean(wanted, known).unwrap_or_else(|| "/api/phases lists them".to_owned());
            return Err(Refusal::invalid(format!("the pack has no operation `{wanted}`; {help}")));
        }
    }
    if let Some(client) = &asked.client {
        // The recording would wait for a client that never calls.
        store.client(client).await?;
    }
    let filter = CaptureFilter {
        operation: operation.map(str::to_owned),
        client: asked.client.clone(),
        share: asked.share,
        body_bytes_max: asked.body_bytes,
    };
    let captured = tap.open(filter).ok_or_else(already_open)?;
    let who = asked.client.as_deref().unwrap_or("all clients");
    let seconds_ms = i64::try_from(asked.seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
    let entry = NewHistory {
        kind: "capture begun",
        subject: operation.unwrap_or("all operations"),
        scope: &format!("{who}; {} of the requests", asked.share),
        until_ms: Some(store.clock().unix_ms().saturating_add(seconds_ms)),
        detail: &format!("{} exchanges at most", asked.exchanges),
        ..NewHistory::default()
    };
    // After `open`: a rejected capture is no change, and has no entry.
    note(store, &entry).await;
    Ok((captured, Redaction::new(pack, Salt::new(random()))))
}

/// Stops the open capture.
pub(crate) async fn end_capture(tap: &Tap, store: &Store) -> Result<(), Refusal> {
    if !tap.end() {
        return Err(Refusal::Request(RefusalKind::NotFound, "no capture is open".to_owned()));
    }
    note(store, &NewHistory { kind: "capture ended", ..NewHistory::default() }).await;
    Ok(())
}

/// Records the next exchanges for the playground.
pub(crate) async fn record(
    exchanges: usize,
    workbench: &PlaygroundSession,
    tap: &Tap,
    pack: &Pack,
    store: &Store,
) -> Result<(), Refusal> {
    if !workbench.recorded().record(tap, pack, exchanges) {
        return Err(already_open());
    }
    let detail = format!("{exchanges} exchanges at most, for the playground");
    note(store, &NewHistory { kind: "recording begun", detail: &detail, ..NewHistory::default() }).await;
    Ok(())
}

fn already_open() -> Refusal {
    Refusal::Request(RefusalKind::Conflict, "another capture is open".to_owned())
}
