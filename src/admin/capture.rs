//! `POST /api/capture`: streams live traffic as an HTTP Archive. The capture stops after the
//! requested number of exchanges or seconds, on `POST /api/capture/end`, or when the client
//! disconnects.

use super::AdminParts;
use super::answer::{AdminResponse, Answer};
use super::api::parse_body;
use crate::operate::{self, CaptureRequest};
use bytes::Bytes;
use http::{Request, StatusCode};
use std::io;
use std::time::Duration;
use switchback_engine::har::{Exchange, Writer};
use switchback_gateway::body::Body;
use switchback_gateway::capture::{Captured, Redaction};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Chunks of the archive that are queued for the client.
const PIECES_MAX: usize = 4;

pub(super) async fn capture(parts: &AdminParts, by: &str, request: Request<Body>) -> Answer {
    let asked: CaptureRequest = parse_body(request).await?;
    let program = parts.program.load_full();
    let begun = operate::begin_capture(&asked, &parts.tap, program.pack(), &parts.store.by(by)).await;
    let (captured, redaction) = match begun {
        Ok(begun) => begun,
        Err(refusal) => return Err(operate::suggest_client(refusal, &parts.store).await.into()),
    };
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
    operate::end_capture(&parts.tap, &parts.store.by(by)).await?;
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
            // Send finished entries before waiting, so that the client sees rare exchanges as they occur.
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
            // Every captured request is copied, so end as soon as the reader is gone.
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
