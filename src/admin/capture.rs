//! `POST /api/capture`: streams live traffic as an HTTP Archive. The capture stops after the
//! requested number of exchanges or seconds, on `POST /api/capture/end`, or when the client
//! disconnects.

use super::AdminParts;
use super::answer::{AdminResponse, Answer};
use super::api::parse_body;
use bytes::Bytes;
use http::{Request, StatusCode};
use serde::Deserialize;
use std::io;
use std::time::Duration;
use switchback_engine::har::{Exchange, Writer};
use switchback_engine::redact::Salt;
use switchback_gateway::body::Body;
use switchback_gateway::capture::{CaptureFilter, Captured, Redaction};
use switchback_gateway::store::NewHistory;
use switchback_gateway::store::seal::random;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Chunks of the archive that are queued for the client.
const PIECES_MAX: usize = 4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CaptureRequest {
    /// As written in the contract, such as `GET /things/{id}`.
    operation: Option<String>,
    client: Option<String>,
    share: f64,
    exchanges: u64,
    seconds: u64,
    body_bytes: usize,
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

pub(super) async fn capture(parts: &AdminParts, by: &str, request: Request<Body>) -> Answer {
    let asked: CaptureRequest = parse_body(request).await?;
    if !(asked.share > 0.0 && asked.share <= 1.0) || asked.body_bytes > BODY_BYTES_MAX {
        let error = format!("share is above 0 and at most 1, body_bytes at most {BODY_BYTES_MAX}");
        return Err(AdminResponse::error(StatusCode::BAD_REQUEST, error));
    }
    let program = parts.program.load_full();
    let routes = program.pack().directions.iter().flat_map(|direction| &direction.routes);
    if let Some(wanted) = &asked.operation
        && !routes.into_iter().any(|route| *route.operation.key == **wanted)
    {
        let error = "the pack has no such operation; /api/operations lists them";
        return Err(AdminResponse::error(StatusCode::BAD_REQUEST, error));
    }
    let scope =
        format!("{}; {} of the requests", asked.client.as_deref().unwrap_or("all clients"), asked.share);
    let subject = asked.operation.clone().unwrap_or_else(|| "all operations".to_owned());
    let wanted = CaptureFilter {
        operation: asked.operation,
        client: asked.client,
        share: asked.share,
        body_bytes_max: asked.body_bytes,
    };
    let Some(captured) = parts.tap.open(wanted) else {
        return Err(AdminResponse::error(StatusCode::CONFLICT, "another capture is open"));
    };
    let redaction = Redaction::new(program.pack(), Salt::new(random()));
    let seconds_ms = i64::try_from(asked.seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
    let entry = NewHistory {
        kind: "capture begun",
        subject: &subject,
        scope: &scope,
        until_ms: Some(parts.clock.unix_ms().saturating_add(seconds_ms)),
        detail: &format!("{} exchanges at most", asked.exchanges),
        ..NewHistory::default()
    };
    parts.note(by, entry).await;
    tracing::info!(share = asked.share, exchanges = asked.exchanges, "a capture of traffic begins");
    let (sender, body) = Body::channel(PIECES_MAX, None);
    let until = Instant::now() + Duration::from_secs(asked.seconds);
    tokio::spawn(async move {
        let mut archive = ArchiveStream { redaction, captured, sender, until, left: asked.exchanges };
        let written = archive.write().await;
        let (left_out, cut) = (archive.captured.left_out(), written.is_err());
        tracing::info!(
            exchanges = asked.exchanges - archive.left,
            left_out,
            cut,
            "a capture of traffic ends"
        );
    });
    Ok(AdminResponse::stream(StatusCode::OK, "application/json", body))
}

/// Stops the open capture. Its client receives the exchanges in progress and the end of the
/// archive.
pub(super) async fn end(parts: &AdminParts, by: &str) -> Answer {
    if !parts.tap.end() {
        return Err(AdminResponse::error(StatusCode::NOT_FOUND, "no capture is open"));
    }
    parts.note(by, NewHistory { kind: "capture ended", ..NewHistory::default() }).await;
    Ok(AdminResponse::json(StatusCode::ACCEPTED, &serde_json::json!({ "capture": "ends" })))
}

/// An archive that is being streamed.
struct ArchiveStream {
    redaction: Redaction,
    captured: Captured,
    sender: mpsc::Sender<Result<Bytes, switchback_gateway::error::GatewayError>>,
    until: Instant,
    /// Number of exchanges left to record.
    left: u64,
}

impl ArchiveStream {
    /// Writes the archive. An error means that the client has disconnected.
    async fn write(&mut self) -> io::Result<()> {
        let mut writer = Writer::new(Vec::new())?;
        while self.left > 0 {
            self.send(writer.take()).await?;
            let Some(exchange) = self.next().await? else { break };
            self.left -= 1;
            writer.entry(&self.redaction.redact(&exchange))?;
        }
        self.send(writer.finish_without(self.captured.left_out())?).await
    }

    /// Returns the next exchange, or `None` once the time is up.
    async fn next(&mut self) -> io::Result<Option<Exchange>> {
        tokio::select! {
            exchange = self.captured.next() => Ok(exchange),
            () = sleep_until(self.until) => Ok(None),
            () = self.sender.closed() => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    async fn send(&self, piece: Vec<u8>) -> io::Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        self.sender.send(Ok(piece.into())).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
