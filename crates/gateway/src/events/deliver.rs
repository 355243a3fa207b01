//! Delivers queued events: translates them with the serving pack, signs them again, and sends them
//! with a timeout and limited concurrency. A failed delivery is retried after a pause that doubles,
//! with jitter, so that a recovered receiver is not flooded.
//!
//! Redirects are not followed, because an event must only reach its configured receiver. `410 Gone`
//! means that the receiver no longer accepts events (Standard Webhooks); the event becomes a dead
//! letter at once.

use super::EventParts;
use super::translate::{EventError, translate};
use crate::http_client::{is_loopback, retry_after};
use crate::store::seal::random;
use crate::store::{LeasedEvent, StoreError};
use crate::telemetry::metrics;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::translate::Env;
use switchback_plan::Events;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

/// Interval for polling the queue, which another gateway may have filled.
const LOOK: Duration = Duration::from_millis(500);
/// Pause after a failure of the store.
const STORE_PAUSE: Duration = Duration::from_secs(2);
/// Extra duration of a lease beyond the delivery timeout, for storing the outcome.
const LEASE_MORE: Duration = Duration::from_secs(15);

/// Delivers events.
#[derive(Clone)]
pub struct Deliverer {
    parts: EventParts,
    http: reqwest::Client,
    /// A client for receivers on this machine, without a proxy.
    near: reqwest::Client,
    /// The owner of this process's leases.
    owner: Arc<str>,
    places: Arc<Semaphore>,
    /// Running deliveries.
    tasks: TaskTracker,
}

/// The result of a delivery attempt.
enum Tried {
    Delivered,
    Dropped,
    /// A retry may succeed.
    Failed(String, Option<Duration>),
    /// A retry would have the same result.
    Dead(String),
}

impl Deliverer {
    /// Creates a deliverer.
    ///
    /// # Errors
    /// The HTTP client cannot be built.
    pub fn new(parts: EventParts) -> Result<Deliverer, reqwest::Error> {
        let settings = parts.settings;
        // Fails if another crate has installed a provider already, which is fine: ring is the only
        // one that this program is built with.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = || {
            reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .connect_timeout(settings.timeout)
                .timeout(settings.timeout)
                .user_agent(concat!("switchback/", env!("CARGO_PKG_VERSION")))
        };
        let (http, near) = (client().build()?, client().no_proxy().build()?);
        let owner: String = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
        let places = Arc::new(Semaphore::new(settings.deliveries));
        Ok(Deliverer { parts, http, near, owner: owner.into(), places, tasks: TaskTracker::new() })
    }

    /// Delivers events until dropped. Leases of running deliveries then expire.
    pub async fn run(self) {
        if let Err(error) = self.parts.store.events_release().await {
            tracing::warn!(%error, "leases of an earlier gateway were not released; its events are delivered once they expire");
        }
        loop {
            if let Err(error) = self.parts.dual.look(&self.parts.program.load_full()).await {
                tracing::warn!(%error, "unpaired events cannot be read from the store");
            }
            match self.look().await {
                Ok(true) => {}
                Ok(false) => {
                    tokio::select! {
                        // A new event is delivered at once; the timer finds retries that are due
                        // and events of other gateways.
                        () = self.parts.queued.notified() => {}
                        () = tokio::time::sleep(LOOK) => {}
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the queue of events cannot be read");
                    tokio::time::sleep(STORE_PAUSE).await;
                }
            }
        }
    }

    /// Waits for running deliveries, at most `patience`.
    pub async fn drain(&self, patience: Duration) {
        self.tasks.close();
        if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
            tracing::warn!(
                deliveries = self.tasks.len(),
                "deliveries of events did not finish in time; they are repeated after the next start"
            );
        }
    }

    /// Starts due deliveries up to the concurrency limit. Returns whether there were any.
    async fn look(&self) -> Result<bool, StoreError> {
        let mut places = Vec::new();
        // Permits before leases: an event that is leased and waits for a permit would block its key
        // at every gateway until the lease expires.
        while let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            places.push(place);
        }
        if places.is_empty() {
            return Ok(false);
        }
        // Longer than any attempt. If the lease expired earlier, a second gateway would deliver the
        // event concurrently.
        let lease = self.parts.settings.timeout + LEASE_MORE;
        let claimed = self.parts.store.events_claim(&self.owner, lease, places.len()).await?;
        let found = !claimed.is_empty();
        for (event, place) in claimed.into_iter().zip(places) {
            let this = self.clone();
            self.tasks.spawn(async move { this.deliver(event, place).await });
        }
        self.count().await?;
        Ok(found)
    }

    /// Updates the metrics of queued events.
    async fn count(&self) -> Result<(), StoreError> {
        let counts = self.parts.store.event_counts().await?;
        for receiver in self.parts.receivers.names() {
            let of = counts.iter().find(|count| count.receiver == receiver);
            metrics::events_waiting(receiver, of.map_or((0, 0), |count| (count.pending, count.dead)));
        }
        Ok(())
    }

    async fn deliver(&self, event: LeasedEvent, place: OwnedSemaphorePermit) {
        let tried = self.attempt(&event).await;
        let (id, receiver, name) = (event.id.as_str(), event.receiver.as_str(), event.name.as_str());
        let tries = event.attempts + 1;
        let tried = match tried {
            Tried::Failed(why, _) if tries >= self.parts.settings.attempts => Tried::Dead(why),
            tried => tried,
        };
        let noted = match &tried {
            Tried::Delivered | Tried::Dropped => {
                self.parts.store.event_delivered(id, &self.owner).await.map(drop)
            }
            Tried::Failed(why, wait) => {
                // `Retry-After` may lengthen the pause, not shorten it: a receiver that always
                // sends 0 would be called without a pause.
                let wait = wait.unwrap_or_default().max(self.pause(event.attempts));
                self.parts.store.event_failed(id, &self.owner, why, Some(wait)).await
            }
            Tried::Dead(why) => self.parts.store.event_failed(id, &self.owner, why, None).await,
        };
        match &tried {
            Tried::Delivered => metrics::event(receiver, "delivered"),
            Tried::Dropped => metrics::event(receiver, "dropped"),
            Tried::Failed(why, _) => {
                metrics::event(receiver, "failed");
                tracing::warn!(
                    receiver,
                    event = name,
                    id,
                    tries,
                    why,
                    "an event was not delivered; it is tried again"
                );
            }
            Tried::Dead(why) => {
                metrics::event(receiver, "dead");
                tracing::error!(
                    receiver,
                    event = name,
                    id,
                    tries,
                    why,
                    "an event cannot be delivered; `switchback events` lists it"
                );
            }
        }
        if let Err(error) = noted {
            tracing::warn!(receiver, id, %error, "the outcome of a delivery was not stored; the event may be delivered twice");
        }
        drop(place);
        // The next event with the same key may be due now.
        self.parts.queued.notify_one();
    }

    /// Returns the pause before the next attempt: it doubles from `retry_first` to `retry_max`,
    /// with a random factor between one half and 1.
    fn pause(&self, attempts: u32) -> Duration {
        let pause = self.parts.settings.retry_first.saturating_mul(2_u32.saturating_pow(attempts.min(30)));
        let pause = pause.min(self.parts.settings.retry_max);
        pause / 2 + pause.mul_f64(fastrand::f64() / 2.0)
    }

    async fn attempt(&self, event: &LeasedEvent) -> Tried {
        let Some(receiver) = self.parts.receivers.receiver(&event.receiver) else {
            // Not a dead letter: the configuration may be reloaded with the receiver.
            return Tried::Failed("the configuration has no receiver of this name".to_owned(), None);
        };
        let program = self.parts.program.load_full();
        let Some(events) = &program.pack().events else {
            return Tried::Dead("the pack carries no events".to_owned());
        };
        let (told, body) = match event.is_own {
            // The receiver accepts the event in its original form.
            true => (event.name.as_str(), event.body.expose().clone()),
            false => match translate_event(event, events, &Env::new(program.settings())) {
                Ok(translated) => translated,
                Err(EventError::Dropped) => return Tried::Dropped,
                Err(why) => return Tried::Dead(why.to_string()),
            },
        };
        // A message without an id of its own uses its queue id, which is the same for every
        // attempt.
        let message = event.message.as_deref().unwrap_or(&event.id);
        let mut headers = match &receiver.sign {
            Some(sign) => sign.sign(message, &body, self.parts.clock.unix_ms()),
            None => HeaderMap::new(),
        };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(told_in) = events.told_in()
            && let (Ok(name), Ok(value)) =
                (http::HeaderName::from_bytes(told_in.as_bytes()), HeaderValue::from_str(told))
        {
            headers.insert(name, value);
        }
        let http = if is_loopback(receiver.url.host()) { &self.near } else { &self.http };
        let sent = http.post(receiver.url.to_string()).headers(headers).body(body).send().await;
        match sent {
            Ok(answer) => classify(answer.status(), answer.headers()),
            Err(error) if error.is_timeout() => Tried::Failed("no answer in time".to_owned(), None),
            Err(error) if error.is_connect() => Tried::Failed("no connection".to_owned(), None),
            Err(_) => Tried::Failed("the connection was lost".to_owned(), None),
        }
    }
}

/// Returns the receiver's name for an event and its translated body.
fn translate_event<'e>(
    event: &LeasedEvent,
    events: &'e Events,
    env: &Env<'_>,
) -> Result<(&'e str, Vec<u8>), EventError> {
    let route = events.route(&event.name).ok_or(EventError::Unknown)?;
    let told = route.delivered().ok_or(EventError::Dropped)?;
    Ok((told.name, translate(route, &told, event.body.expose(), env)?))
}

fn classify(status: StatusCode, headers: &HeaderMap) -> Tried {
    if status.is_success() {
        return Tried::Delivered;
    }
    let what = format!("the receiver answered {}", status.as_u16());
    if status == StatusCode::GONE {
        return Tried::Dead(what);
    }
    Tried::Failed(what, headers.get(header::RETRY_AFTER).and_then(retry_after))
}
