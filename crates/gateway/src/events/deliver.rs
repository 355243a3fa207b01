//! Delivers what is queued: translated by the pack that serves now, signed anew, each within its time, as many at once as the
//! configuration allows. A failed delivery is tried again after a pause that doubles, with jitter, so that a receiver that comes
//! back is not met by all at once.
//!
//! Redirects are not followed: an event must not go where nobody meant it to. `410 Gone` says that the receiver wants no more
//! (Standard Webhooks); the event is a dead letter at once.

use super::dual::EventsDual;
use super::{Receivers, Settings};
use crate::clock::Clock;
use crate::proxy::program::Current;
use crate::store::seal::random;
use crate::store::{LeasedEvent, Store, StoreError};
use crate::telemetry::metrics;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::translate::{Env, document};
use switchback_json::Limits;
use switchback_plan::Events;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

/// The pause between two looks at the queue when nothing was heard of it: another gateway may have filled it.
const LOOK: Duration = Duration::from_millis(500);
/// The pause after the store did not answer.
const STORE_PAUSE: Duration = Duration::from_secs(2);
/// What a lease lasts beyond the time of a delivery: for the store to take what came of it.
const LEASE_MORE: Duration = Duration::from_secs(15);

/// Delivers events.
#[derive(Clone)]
pub struct Deliverer {
    receivers: Receivers,
    settings: Settings,
    program: Current,
    store: Store,
    clock: Clock,
    dual: EventsDual,
    http: reqwest::Client,
    /// For receivers on this machine, which no proxy reaches.
    near: reqwest::Client,
    /// Who holds our leases.
    owner: Arc<str>,
    queued: Arc<Notify>,
    places: Arc<Semaphore>,
    /// Deliveries under way.
    tasks: TaskTracker,
}

/// What came of a try.
enum Tried {
    Delivered,
    Dropped,
    /// Worth another one.
    Failed(String, Option<Duration>),
    /// Nothing that another one would change.
    Dead(String),
}

impl Deliverer {
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(
        receivers: Receivers,
        settings: Settings,
        program: Current,
        store: Store,
        clock: Clock,
        dual: EventsDual,
        queued: Arc<Notify>,
    ) -> Result<Deliverer, reqwest::Error> {
        // The one provider this program is built with; whoever comes first installs it.
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
        Ok(Deliverer {
            receivers,
            settings,
            program,
            store,
            clock,
            dual,
            http,
            near,
            owner: owner.into(),
            queued,
            places: Arc::new(Semaphore::new(settings.deliveries)),
            tasks: TaskTracker::new(),
        })
    }

    /// Delivers for as long as it is polled. Deliveries that are under way then have leases that end.
    pub async fn run(self) {
        if let Err(error) = self.store.events_release().await {
            tracing::warn!(%error, "leases of an earlier gateway stay until they end");
        }
        loop {
            if let Err(error) = self.dual.look(&self.program.load_full()).await {
                tracing::warn!(%error, "events that wait for the other version's cannot be read");
            }
            match self.look().await {
                Ok(true) => {}
                Ok(false) => {
                    tokio::select! {
                        () = self.queued.notified() => {}
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

    /// Waits for the deliveries that are under way.
    pub async fn drain(&self, patience: Duration) {
        self.tasks.close();
        if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
            tracing::warn!(deliveries = self.tasks.len(), "deliveries of events did not end in time");
        }
    }

    /// Begins what is due, as far as there are places; whether there was something.
    async fn look(&self) -> Result<bool, StoreError> {
        let mut places = Vec::new();
        while let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            places.push(place);
        }
        if places.is_empty() {
            return Ok(false);
        }
        let lease = self.settings.timeout + LEASE_MORE;
        let claimed = self.store.events_claim(&self.owner, lease, places.len()).await?;
        let found = !claimed.is_empty();
        for (event, place) in claimed.into_iter().zip(places) {
            let this = self.clone();
            self.tasks.spawn(async move { this.deliver(event, place).await });
        }
        self.count().await?;
        Ok(found)
    }

    /// Shows how much waits.
    async fn count(&self) -> Result<(), StoreError> {
        let counts = self.store.event_counts().await?;
        for receiver in self.receivers.names() {
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
            Tried::Failed(why, _) if tries >= self.settings.attempts => Tried::Dead(why),
            tried => tried,
        };
        let noted = match &tried {
            Tried::Delivered | Tried::Dropped => self.store.event_delivered(id, &self.owner).await.map(drop),
            Tried::Failed(why, wait) => {
                let wait = wait.unwrap_or_default().max(self.pause(event.attempts));
                self.store.event_failed(id, &self.owner, why, Some(wait)).await
            }
            Tried::Dead(why) => self.store.event_failed(id, &self.owner, why, None).await,
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
            tracing::warn!(receiver, id, %error, "the outcome of a delivery is not stored; the event may be delivered twice");
        }
        drop(place);
        // The next of its key is due now.
        self.queued.notify_one();
    }

    /// From the first pause on twice as long with each try, up to the longest, and of that between the half and the whole.
    fn pause(&self, attempts: u32) -> Duration {
        let pause = self.settings.retry_first.saturating_mul(2_u32.saturating_pow(attempts.min(30)));
        let pause = pause.min(self.settings.retry_max);
        pause / 2 + pause.mul_f64(fastrand::f64() / 2.0)
    }

    async fn attempt(&self, event: &LeasedEvent) -> Tried {
        let Some(receiver) = self.receivers.named(&event.receiver) else {
            return Tried::Failed("the configuration has no receiver of this name".to_owned(), None);
        };
        let program = self.program.load_full();
        let Some(events) = &program.pack().events else {
            return Tried::Dead("the pack carries no events".to_owned());
        };
        let (told, body) = match event.is_own {
            // Its receiver knows the form.
            true => (event.name.as_str(), event.body.expose().clone()),
            false => match translated(event, events, &Env::of(program.settings())) {
                Ok(Some(translated)) => translated,
                Ok(None) => return Tried::Dropped,
                Err(why) => return Tried::Dead(why),
            },
        };
        // A message without a name of its own has that of its place in the queue: the same with every try.
        let message = event.message.as_deref().unwrap_or(&event.id);
        let mut headers = match &receiver.sign {
            Some(sign) => sign.sign(message, &body, self.clock.unix_ms()),
            None => HeaderMap::new(),
        };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(told_in) = events.told_in()
            && let (Ok(name), Ok(value)) =
                (http::HeaderName::from_bytes(told_in.as_bytes()), HeaderValue::from_str(told))
        {
            headers.insert(name, value);
        }
        let http = if is_loopback(&receiver.url) { &self.near } else { &self.http };
        let sent = http.post(receiver.url.to_string()).headers(headers).body(body).send().await;
        match sent {
            Ok(answer) => judged(answer.status(), answer.headers()),
            Err(error) if error.is_timeout() => Tried::Failed("no answer in time".to_owned(), None),
            Err(error) if error.is_connect() => Tried::Failed("no connection".to_owned(), None),
            Err(_) => Tried::Failed("the connection was lost".to_owned(), None),
        }
    }
}

/// The name that receivers know and the body that they get; none where they are not told.
fn translated<'e>(
    event: &LeasedEvent,
    events: &'e Events,
    env: &Env<'_>,
) -> Result<Option<(&'e str, Vec<u8>)>, String> {
    let route = events.route(&event.name);
    let route = route.ok_or_else(|| "the pack knows no event of this name".to_owned())?;
    let Some(told) = route.told() else { return Ok(None) };
    let mut body = Vec::with_capacity(event.body.expose().len());
    match document(&told.body.op, event.body.expose(), env, &Limits::DOCUMENT, &mut body) {
        Ok(()) => Ok(Some((told.name, body))),
        Err(error) => {
            let (file, line) = (&route.origin.file, route.origin.line);
            Err(format!("it cannot be translated: {error} ({file}:{line})"))
        }
    }
}

fn judged(status: StatusCode, headers: &HeaderMap) -> Tried {
    if status.is_success() {
        return Tried::Delivered;
    }
    let what = format!("the receiver answered {}", status.as_u16());
    if status == StatusCode::GONE {
        return Tried::Dead(what);
    }
    let seconds = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let wait = seconds.map(|seconds: u64| Duration::from_secs(seconds.min(RETRY_AFTER_SECONDS_MAX)));
    Tried::Failed(what, wait)
}

/// The longest `Retry-After` that is believed.
const RETRY_AFTER_SECONDS_MAX: u64 = 3600;

fn is_loopback(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
