//! The queue of notices and their delivery. A failed attempt is repeated with the same id after a
//! pause that doubles, with jitter. Each delivery and each final failure is an entry of the history
//! and counted.

use super::notice::{Notice, NoticeKind};
use super::receiver::{NoticeAnswer, NoticeEndpoint, NoticeSettings};
use crate::store::{NewHistory, Store};
use crate::telemetry::metrics;
use arc_swap::ArcSwap;
use http::StatusCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Sends notices to all receivers. Clones share the queue.
#[derive(Clone, Debug)]
pub struct NoticeSender {
    shared: Arc<SenderInner>,
}

#[derive(Debug)]
struct SenderInner {
    store: Store,
    configured: ArcSwap<Configured>,
    /// One task for each undelivered notice of a receiver.
    waiting: TaskTracker,
    stopping: CancellationToken,
}

#[derive(Debug)]
struct Configured {
    endpoints: Vec<Arc<NoticeEndpoint>>,
    settings: NoticeSettings,
}

impl NoticeSender {
    /// Creates a sender with these receivers.
    pub fn new(store: Store, endpoints: Vec<NoticeEndpoint>, settings: NoticeSettings) -> NoticeSender {
        let shared = SenderInner {
            store,
            configured: ArcSwap::from_pointee(configured(endpoints, settings)),
            waiting: TaskTracker::new(),
            stopping: CancellationToken::new(),
        };
        NoticeSender { shared: Arc::new(shared) }
    }

    /// Replaces the receivers. Notices in the queue still go to those from before.
    pub fn configure(&self, endpoints: Vec<NoticeEndpoint>, settings: NoticeSettings) {
        self.shared.configured.store(Arc::new(configured(endpoints, settings)));
    }

    pub(super) fn has_receivers(&self) -> bool {
        !self.shared.configured.load().endpoints.is_empty()
    }

    /// Queues a notice for each receiver of its kind. Does not wait for an answer.
    pub(super) async fn queue(&self, kind: NoticeKind, notice: Notice) {
        let configured = self.shared.configured.load_full();
        let notice = Arc::new(notice);
        let of_kind = configured.endpoints.iter().filter(|one| one.receiver.kinds.contains(&kind));
        for endpoint in of_kind {
            if endpoint.is_gone.load(Relaxed) {
                self.conclude(endpoint, &notice, "failed", "the receiver has answered 410 before").await;
                continue;
            }
            let Ok(place) = Arc::clone(&endpoint.queue).try_acquire_owned() else {
                self.conclude(endpoint, &notice, "dropped", "the queue is full").await;
                continue;
            };
            let (sender, endpoint, notice) = (self.clone(), Arc::clone(endpoint), Arc::clone(&notice));
            let settings = configured.settings;
            self.shared.waiting.spawn(async move {
                sender.deliver(&endpoint, &notice, settings).await;
                drop(place);
            });
        }
    }

    /// Gives running attempts `patience` to end. Notices that wait for another attempt fail.
    pub async fn drain(&self, patience: Duration) {
        self.shared.stopping.cancel();
        self.shared.waiting.close();
        if tokio::time::timeout(patience, self.shared.waiting.wait()).await.is_err() {
            tracing::warn!(notices = self.shared.waiting.len(), "notices were not delivered in time");
        }
    }

    async fn deliver(&self, endpoint: &NoticeEndpoint, notice: &Notice, settings: NoticeSettings) {
        let clock = self.shared.store.clock();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let sent = {
                let _turn = endpoint.turn.lock().await;
                endpoint.send(notice, clock.unix_ms()).await
            };
            let (why, requested) = match sent {
                Ok(NoticeAnswer { status, .. }) if status.is_success() => {
                    let detail = format!("{}, attempt {attempts}", notice.id);
                    return self.conclude(endpoint, notice, "delivered", &detail).await;
                }
                Ok(NoticeAnswer { status, retry_after, .. }) => {
                    endpoint.is_gone.fetch_or(status == StatusCode::GONE, Relaxed);
                    (format!("the receiver answered {}", status.as_u16()), retry_after)
                }
                Err(why) => (why.to_owned(), None),
            };
            let is_last = attempts >= settings.attempts || endpoint.is_gone.load(Relaxed);
            let pause = pause(settings, attempts).max(requested.unwrap_or_default());
            tracing::debug!(
                receiver = endpoint.receiver.name,
                id = notice.id,
                attempts,
                why,
                "a notice was not delivered"
            );
            let is_stopping = || async {
                tokio::select! {
                    () = self.shared.stopping.cancelled() => true,
                    () = clock.sleep(pause) => false,
                }
            };
            if is_last || is_stopping().await {
                let detail = format!("{}, attempt {attempts}: {why}", notice.id);
                return self.conclude(endpoint, notice, "failed", &detail).await;
            }
        }
    }

    /// Records the end of a delivery.
    async fn conclude(
        &self,
        endpoint: &NoticeEndpoint,
        notice: &Notice,
        outcome: &'static str,
        detail: &str,
    ) {
        let receiver = endpoint.receiver.name.as_str();
        metrics::notice(receiver, outcome);
        match outcome {
            "delivered" => tracing::info!(receiver, notice = notice.name, detail, "a notice was delivered"),
            _ => tracing::warn!(receiver, notice = notice.name, detail, "a notice was not delivered"),
        }
        let kind = format!("notice {outcome}");
        let entry = NewHistory {
            kind: &kind,
            subject: receiver,
            scope: notice.name,
            detail,
            ..NewHistory::default()
        };
        if let Err(error) = self.shared.store.note(&entry).await {
            tracing::warn!(%error, receiver, id = notice.id, "the history lacks the delivery of a notice");
        }
    }
}

fn configured(endpoints: Vec<NoticeEndpoint>, settings: NoticeSettings) -> Configured {
    endpoints.iter().for_each(|endpoint| metrics::notices_of(&endpoint.receiver.name));
    Configured { endpoints: endpoints.into_iter().map(Arc::new).collect(), settings }
}

/// Returns the pause after a number of failed attempts: it doubles from `retry_first` to
/// `retry_max`, with a random factor between one half and 1.
fn pause(settings: NoticeSettings, attempts: u32) -> Duration {
    let pause = settings.retry_first.saturating_mul(2_u32.saturating_pow((attempts - 1).min(30)));
    let pause = pause.min(settings.retry_max);
    pause / 2 + pause.mul_f64(fastrand::f64() / 2.0)
}
