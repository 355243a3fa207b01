//! Exchanges recorded on an operator's request, for dry runs: only the newest, masked like
//! captures, in memory only.

use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use switchback_engine::har::Exchange;
use switchback_engine::redact::Salt;
use switchback_gateway::capture::{CaptureFilter, Redaction, Tap};
use switchback_plan::Pack;

/// Most recorded exchanges.
pub const EXCHANGES_MAX: usize = 500;
/// Most bytes of all recorded bodies. Beyond, the oldest exchange is dropped.
const BYTES_MAX: usize = 32 << 20;
/// Largest recorded part of one body.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Time limit of a recording.
const RECORDING_MAX: Duration = Duration::from_secs(300);

/// The newest recorded exchanges. Clones share them.
#[derive(Clone, Default)]
pub struct RecordedExchanges(Arc<Mutex<Recording>>);

#[derive(Default)]
struct Recording {
    exchanges: VecDeque<Exchange>,
    /// Size of the exchanges in bytes.
    bytes: usize,
    is_recording: bool,
}

impl Recording {
    fn push(&mut self, exchange: Exchange) {
        self.bytes += size(&exchange);
        self.exchanges.push_back(exchange);
        while self.exchanges.len() > EXCHANGES_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.exchanges.pop_front() else { break };
            self.bytes -= size(&oldest);
        }
    }
}

/// Returns the size of an exchange in bytes, without its header fields.
fn size(exchange: &Exchange) -> usize {
    size_of::<Exchange>() + exchange.body_bytes()
}

/// A recorded exchange in a list.
#[derive(Clone, Debug, Serialize)]
pub struct RecordedSummary {
    pub number: usize,
    pub at: String,
    pub client: String,
    pub method: String,
    /// Masked.
    pub target: String,
    pub status: u16,
    /// Number of upstream calls; 0 if the old service answered.
    pub calls: usize,
}

impl RecordedExchanges {
    /// Records the next `count` exchanges, at most [`EXCHANGES_MAX`]. Returns whether the recording
    /// started; only one capture can be open.
    pub fn record(&self, tap: &Tap, pack: &Pack, count: usize) -> bool {
        let wanted =
            CaptureFilter { operation: None, client: None, share: 1.0, body_bytes_max: BODY_BYTES_MAX };
        let mut salt = [0; 32];
        // With a predictable salt, masked values could be guessed from their hashes.
        if getrandom::fill(&mut salt).is_err() {
            return false;
        }
        let Some(mut captured) = tap.open(wanted) else { return false };
        let redaction = Redaction::new(pack, Salt::new(salt));
        let recorded = self.clone();
        recorded.lock().is_recording = true;
        tokio::spawn(async move {
            let recording = async {
                for _ in 0..count.clamp(1, EXCHANGES_MAX) {
                    let Some(exchange) = captured.next().await else { break };
                    let exchange = redaction.redact(&exchange);
                    recorded.lock().push(exchange);
                }
            };
            let _ = tokio::time::timeout(RECORDING_MAX, recording).await;
            recorded.lock().is_recording = false;
        });
        true
    }

    /// Returns whether a recording is running.
    pub fn is_recording(&self) -> bool {
        self.lock().is_recording
    }

    /// Lists the recorded exchanges, newest first. Their numbers count from the oldest.
    pub fn list(&self) -> Vec<RecordedSummary> {
        let recorded = self.lock();
        let shown = |(number, exchange): (usize, &Exchange)| {
            let known = exchange.gateway.as_ref();
            RecordedSummary {
                number,
                at: exchange.started.clone(),
                client: known.map(|known| known.client.clone()).unwrap_or_default(),
                method: exchange.request.method.clone(),
                target: known.map(|known| known.target.clone()).unwrap_or_default(),
                status: exchange.response.as_ref().map_or(0, |response| response.status),
                calls: known.map_or(0, |known| known.calls.len()),
            }
        };
        recorded.exchanges.iter().enumerate().map(shown).rev().collect()
    }

    /// Returns a recorded exchange.
    pub fn get(&self, number: usize) -> Option<Exchange> {
        self.lock().exchanges.get(number).cloned()
    }

    pub(super) fn all(&self) -> Vec<Exchange> {
        self.lock().exchanges.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_engine::har::{Body, Response};

    #[test]
    fn the_oldest_exchanges_are_dropped_beyond_either_limit() {
        let exchange = |bytes: usize, number: usize| {
            let response =
                Response { status: 200, body: Body::Whole(vec![b' '; bytes].into()), ..Response::default() };
            Exchange { started: number.to_string(), response: Some(response), ..Exchange::default() }
        };
        let mut recording = Recording::default();
        (0..EXCHANGES_MAX + 3).for_each(|number| recording.push(exchange(1, number)));
        assert_eq!((recording.exchanges.len(), &*recording.exchanges[0].started), (EXCHANGES_MAX, "3"));
        recording.push(exchange(BYTES_MAX - 10 * size_of::<Exchange>(), 900));
        assert!(
            recording.exchanges.len() < 10 && recording.bytes <= BYTES_MAX,
            "{}",
            recording.exchanges.len()
        );
        assert_eq!(recording.bytes, recording.exchanges.iter().map(size).sum::<usize>());
    }
}
