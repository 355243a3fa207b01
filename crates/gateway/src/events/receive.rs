//! Receives a service's events on the client port. It precedes the fronts, so that a front may be
//! at `/`. A message is acknowledged only once it is durable; otherwise its sender retries.

use super::dual::{Came, Decided};
use super::readers::Readers;
use super::{EventParts, EventSender, Receiver, member};
use crate::body::{Body, BodyTimeout};
use crate::error::{ErrorKind, ErrorSide};
use crate::memory::Memory;
use crate::proxy::Response;
use crate::proxy::compose::buffered::buffer;
use crate::signature::SignatureError;
use crate::store::{EnqueueResult, NewEvent, PairBounds, PairLookup, PairedEvent, QueueBounds, StoreError};
use crate::telemetry::metrics;
use futures_util::future::{BoxFuture, Either};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use switchback_json::{Limits, Value};
use switchback_plan::{Becomes, EventName};
use tokio::sync::Semaphore;
use tower::Service;

/// Settings and services for receiving events. Clones share them.
#[derive(Clone)]
pub struct Intake {
    /// State that is shared with delivery.
    pub parts: EventParts,
    /// The budget for bodies while they are read.
    pub memory: Memory,
    /// The minimum throughput of a sender; slower ones are rejected.
    pub body_timeout: BodyTimeout,
    /// Limits concurrent reads of unverified messages.
    pub readers: Readers,
    /// Limits concurrent writes of verified messages.
    pub places: Arc<Semaphore>,
}

/// Receives events at their paths and forwards all other requests to `inner`.
#[derive(Clone)]
pub(crate) struct Receiving<S> {
    inner: S,
    intake: Option<Arc<Intake>>,
}

impl<S> Receiving<S> {
    /// Wraps a service. Without receivers every request is forwarded.
    pub(crate) fn new(inner: S, intake: Intake) -> Receiving<S> {
        let intake = (!intake.parts.receivers.is_empty()).then(|| Arc::new(intake));
        Receiving { inner, intake }
    }

    /// Wraps another service with the same receivers.
    pub(crate) fn before<T>(&self, inner: T) -> Receiving<T> {
        Receiving { inner, intake: self.intake.clone() }
    }
}

impl<S> Service<Request<Body>> for Receiving<S>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<S::Future, BoxFuture<'static, Result<Response, Infallible>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let at = self.intake.as_ref().and_then(|intake| {
            let (receiver, sender) = intake.parts.receivers.at(request.uri().path())?;
            Some((Arc::clone(intake), Arc::clone(receiver), sender))
        });
        match at {
            None => Either::Left(self.inner.call(request)),
            Some((intake, receiver, sender)) => Either::Right(Box::pin(async move {
                let taken = intake.take(&receiver, sender, request).await;
                metrics::event(&receiver.name, taken.outcome());
                if !matches!(
                    taken,
                    ReceiveResult::Queued
                        | ReceiveResult::Known
                        | ReceiveResult::Dropped
                        | ReceiveResult::Beside
                ) {
                    let (receiver, outcome) = (receiver.name.as_str(), taken.outcome());
                    tracing::warn!(receiver, outcome, detail = %taken.detail(), "an event was rejected");
                }
                Ok(taken.answer())
            })),
        }
    }
}

/// The result for a message.
enum ReceiveResult {
    Queued,
    /// A duplicate.
    Known,
    /// The pack drops it.
    Dropped,
    /// The other side's event is delivered instead.
    Beside,
    Method,
    Unsigned(SignatureError),
    TooLarge,
    Coded,
    Unreadable(&'static str),
    Busy(&'static str),
    Store(StoreError),
}

impl ReceiveResult {
    fn outcome(&self) -> &'static str {
        match self {
            ReceiveResult::Queued => "queued",
            ReceiveResult::Known => "known",
            ReceiveResult::Dropped => "dropped",
            ReceiveResult::Beside => "beside",
            ReceiveResult::Unsigned(_) => "unsigned",
            ReceiveResult::Method
            | ReceiveResult::TooLarge
            | ReceiveResult::Coded
            | ReceiveResult::Unreadable(_) => "refused",
            ReceiveResult::Busy(_) | ReceiveResult::Store(_) => "busy",
        }
    }

    fn detail(&self) -> String {
        match self {
            ReceiveResult::Unsigned(refused) => refused.to_string(),
            ReceiveResult::Store(error) => error.to_string(),
            ReceiveResult::Busy(what) | ReceiveResult::Unreadable(what) => (*what).to_owned(),
            _ => String::new(),
        }
    }

    fn answer(&self) -> Response {
        let (status, text) = match self {
            ReceiveResult::Queued | ReceiveResult::Known | ReceiveResult::Dropped | ReceiveResult::Beside => {
                (StatusCode::NO_CONTENT, "")
            }
            ReceiveResult::Method => (StatusCode::METHOD_NOT_ALLOWED, "Events are delivered with POST."),
            ReceiveResult::Unsigned(_) => {
                (StatusCode::UNAUTHORIZED, "The signature is not valid here and now.")
            }
            ReceiveResult::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "The event is too large."),
            ReceiveResult::Coded => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "Events come without a content coding.")
            }
            ReceiveResult::Unreadable(_) => {
                (StatusCode::BAD_REQUEST, "The event is not of the expected form.")
            }
            ReceiveResult::Busy(_) | ReceiveResult::Store(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "Events cannot be taken now. Try again later.")
            }
        };
        let mut response = Response::new(match text {
            "" => Body::empty(),
            text => Body::full(format!("{{\"message\":\"{text}\"}}")),
        });
        *response.status_mut() = status;
        let headers = response.headers_mut();
        if !text.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        match status {
            StatusCode::METHOD_NOT_ALLOWED => headers.insert(header::ALLOW, HeaderValue::from_static("POST")),
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"))
            }
            _ => None,
        };
        response
    }
}

impl Intake {
    async fn take(&self, receiver: &Receiver, sender: EventSender, request: Request<Body>) -> ReceiveResult {
        let (head, body) = request.into_parts();
        if head.method != Method::POST {
            return ReceiveResult::Method;
        }
        // The signature covers the bytes as sent, and decoding unverified data would be a risk of
        // its own.
        if head.headers.contains_key(header::CONTENT_ENCODING) {
            return ReceiveResult::Coded;
        }
        let body = body.with_timeout(self.body_timeout);
        let reading = buffer(body, ErrorSide::Client, self.parts.settings.body_bytes, self.memory.share());
        let Some(held) = self.readers.enter().wait_for(reading).await else {
            return ReceiveResult::Busy("it came too slowly while others came");
        };
        let held = match held {
            Ok(held) => held,
            Err(error) => {
                return match error.kind() {
                    ErrorKind::TooLarge => ReceiveResult::TooLarge,
                    ErrorKind::Overloaded { .. } => ReceiveResult::Busy("no memory"),
                    _ => ReceiveResult::Unreadable("the message broke off"),
                };
            }
        };
        let verify = match (sender, &receiver.own) {
            (EventSender::Own, Some(own)) => &own.verify,
            _ => &receiver.verify,
        };
        let checked = verify.check(
            &head.headers,
            &held.bytes,
            self.parts.clock.unix_ms(),
            self.parts.settings.tolerance,
        );
        match checked {
            Err(refused) => ReceiveResult::Unsigned(refused),
            Ok(message) => {
                // Acquired after the signature was verified: unverified messages must not use up
                // the permits of genuine ones.
                let Ok(_place) = self.places.try_acquire() else {
                    return ReceiveResult::Busy("too many at one time");
                };
                self.queue(receiver, sender, &head.headers, &held.bytes, message.as_deref()).await
            }
        }
    }

    async fn queue(
        &self,
        receiver: &Receiver,
        sender: EventSender,
        headers: &HeaderMap,
        body: &[u8],
        message: Option<&str>,
    ) -> ReceiveResult {
        let is_own = sender == EventSender::Own;
        let program = self.parts.program.load_full();
        let Some(events) = &program.pack().events else {
            return ReceiveResult::Busy("the pack carries no events");
        };
        let Ok(value) = Value::parse(body, &Limits::DOCUMENT) else {
            return ReceiveResult::Unreadable("the body is no JSON");
        };
        let place = if is_own { events.told.as_ref() } else { Some(&events.name) };
        let Some(name) = place.and_then(|place| name_of(place, headers, &value)) else {
            return ReceiveResult::Unreadable("nothing says which event it is");
        };
        let route = if is_own { events.telling(&name) } else { events.route(&name) };
        if let (Some(Becomes::Dropped { .. }), false) = (route.map(|route| &route.becomes), is_own) {
            return ReceiveResult::Dropped;
        }
        let key = route.map(|route| if is_own { &route.own_key } else { &route.key });
        let key = key.filter(|key| !key.is_empty()).and_then(|key| key_of(key, &value));
        let came = Came { receiver, is_own, message, body, value: &value };
        let Decided { is_delivered, pair, untranslated } =
            self.parts.dual.decide(&program, events, route, &came);
        let knowledge = program.events().map(|served| Arc::clone(served.knowledge.pack_hash()));
        // An unknown event becomes a dead letter instead of being rejected: the sender would drop it
        // after its retries, while a later pack may declare it. The side that receivers know may
        // send events that the pack does not declare.
        let dead = (route.is_none() && !is_own).then_some("the pack knows no event of this name");
        let new = NewEvent {
            receiver: &receiver.name,
            key: key.as_deref(),
            name: &name,
            message,
            body,
            dead,
            is_own,
            is_delivered,
            pair: pair.as_ref().map(|pair| PairedEvent {
                operation: pair.operation,
                key: &pair.key,
                body: pair.body.as_deref(),
                pack: knowledge.as_deref().unwrap_or_default(),
                within: pair.within,
                bounds: PairBounds {
                    events_max: self.parts.settings.pairs,
                    bytes_max: self.parts.settings.pairs_bytes,
                },
            }),
        };
        let bounds = QueueBounds {
            events_max: self.parts.settings.queue,
            bytes_max: self.parts.settings.queue_bytes,
            remember: self.parts.settings.remember,
        };
        let put = match self.parts.store.event_put(&new, bounds).await {
            Ok(put) => put,
            Err(error) => return ReceiveResult::Store(error),
        };
        if let (Some((subject, why)), EnqueueResult::New | EnqueueResult::Beside) = (untranslated, put.queued)
        {
            self.parts.dual.count_untranslated(subject, why);
        }
        match (pair, put.pairing) {
            (Some(pair), PairLookup::Met(other)) => self.parts.dual.met(is_own, pair, other),
            (Some(pair), PairLookup::NoRoom) => self.parts.dual.no_room(&pair),
            _ => {}
        }
        match put.queued {
            EnqueueResult::New => {
                if let Some(why) = dead {
                    metrics::event(&receiver.name, "dead");
                    let (receiver, event) = (receiver.name.as_str(), name.as_str());
                    tracing::error!(
                        receiver,
                        event,
                        why,
                        "an event cannot be delivered; `switchback events` lists it"
                    );
                }
                self.parts.queued.notify_one();
                ReceiveResult::Queued
            }
            EnqueueResult::Known => ReceiveResult::Known,
            EnqueueResult::Beside => ReceiveResult::Beside,
            EnqueueResult::Full => ReceiveResult::Busy("the queue is full"),
        }
    }
}

/// Returns the name of a message's event.
fn name_of(place: &EventName, headers: &HeaderMap, body: &Value) -> Option<String> {
    match place {
        EventName::Header(name) => {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            headers.get(name)?.to_str().ok().map(str::to_owned)
        }
        EventName::Body(names) => match member(names, body)? {
            Value::String(text) => Some(text.decode().into_owned()),
            _ => None,
        },
    }
}

/// Returns the ordering key of an event as JSON text: `7` and `"7"` are different keys.
fn key_of(names: &[Arc<str>], body: &Value) -> Option<String> {
    let value = member(names, body)?;
    (!value.is_null()).then(|| String::from_utf8_lossy(&value.to_vec()).into_owned())
}
