//! All layers of the data path, outermost first, with the reason for each position. Requests pass
//! down the list, responses back up. The stack is constructed here only. `calls/stack.rs` has the
//! layers of single calls, below translation.

use super::calls::retry::Budget;
use super::calls::stack::Calls;
use super::compose::resume::Resume;
use super::compose::{Composer, CursorCache};
use super::dual::Dual;
use super::dual::phase::Phased;
use super::forwarding::Forwarding;
use super::headers::Pseudonym;
use super::layers::authenticate::Authenticate;
use super::layers::form_token::FormToken;
use super::layers::front_fields::FrontFields;
use super::layers::limit::LimitLayer;
use super::layers::middleware::layer;
use super::layers::record::RecordLayer;
use super::layers::report::ReportLayer;
use super::layers::request_id::Identify;
use super::layers::rescue::Rescue;
use super::layers::retire::Retire;
use super::layers::route::RouteLayer;
use super::layers::timeout::Timeout;
use super::layers::validate::ValidateRequest;
use super::limits::Limits;
use super::origin::CallOrigin;
use super::program::CurrentProgram;
use super::unknown_calls::UnknownCalls;
use super::{Request, Response};
use crate::capture::Tap;
use crate::clock::Clock;
use crate::error::GatewayError;
use crate::heavy::Heavy;
use crate::memory::Memory;
use crate::recent::RecentRequests;
use crate::retire::{Retirement, Usage};
use crate::server::RequestService;
use crate::shadow::Shadow;
use crate::store::Store;
use crate::token::Tokens;
use std::sync::Arc;
use tokio_util::task::TaskTracker;
use tower::layer::layer_fn;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer, Service, ServiceBuilder};

/// The parts of the stack. All of them are shared, so cloning is cheap.
#[derive(Clone)]
pub struct StackParts {
    /// The current program; a reload replaces it.
    pub program: CurrentProgram,
    /// Clients and grants.
    pub tokens: Tokens,
    /// Limits of the data path.
    pub limits: Arc<Limits>,
    /// Memory budget of the process.
    pub memory: Memory,
    /// Name of this gateway in `Via`.
    pub pseudonym: Pseudonym,
    /// Policy for `X-Forwarded-*` and `Forwarded` in forwarded requests.
    pub forwarding: Forwarding,
    /// Retry budget of client calls.
    pub retries: Budget,
    /// Stores the completed steps of interrupted work.
    pub store: Store,
    /// Wall and monotonic time.
    pub clock: Clock,
    /// Requests with effects that continue after their client disconnected. A shutdown waits for
    /// them.
    pub detached: TaskTracker,
    /// The parts that record requests.
    pub recording: RecordingParts,
    /// The parts that compare the sides and retire the old one.
    pub migration: MigrationParts,
}

/// The parts of the stack that record requests for operators.
#[derive(Clone, Debug, Default)]
pub struct RecordingParts {
    /// Opens captures of traffic.
    pub tap: Tap,
    /// A sample of the recent requests.
    pub recent: RecentRequests,
}

/// The parts of the stack that compare the sides and retire the old one.
#[derive(Clone)]
pub struct MigrationParts {
    /// Compares responses with those of the other side.
    pub shadow: Shadow,
    /// Calls with an unknown operation, client or parameter.
    pub unknown: UnknownCalls,
    /// Usage of each operation by client.
    pub usage: Usage,
    /// Brownouts and sunset dates.
    pub retirement: Retirement,
}

/// Builds the stack, from a client's request to its response. Each connection uses a clone; clones
/// share all limits.
pub fn stack(parts: StackParts) -> impl RequestService {
    outer_layers(&parts, inner_layers(&parts))
}

/// The inner service that [`stack_with`] wraps with a custom layer.
pub type Within = BoxCloneSyncService<Request, Response, GatewayError>;

/// Builds the stack with a custom layer outside of all layers that decide about a request. Its
/// rejections are answered in the pack's form, logged and counted. It may fail with a
/// [`GatewayError`] or with any other error, which is answered as an internal one; an overload
/// error of tower's `LoadShed` is answered like the gateway's own. Each request costs one more
/// allocation than without a custom layer.
pub fn stack_with<L>(parts: StackParts, own: L) -> impl RequestService
where
    L: Layer<Within>,
    L::Service: Service<Request, Response = Response, Error: Into<BoxError>, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static,
{
    outer_layers(&parts, own.layer(BoxCloneSyncService::new(inner_layers(&parts))))
}

/// Adds the layers that see every request, even rejected ones. Above `Rescue` there are only
/// responses.
fn outer_layers<S>(parts: &StackParts, inner: S) -> impl RequestService + use<S>
where
    S: Service<Request, Response = Response, Error: Into<BoxError>, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static,
{
    let identify = Identify { program: Arc::clone(&parts.program), forwarding: parts.forwarding.clone() };
    ServiceBuilder::new()
        // First, because everything below is logged and timed under the name and the clock given here.
        .layer(layer(identify))
        // Outside of every layer that changes a response, so that a capture records the response as
        // the client received it.
        .layer(layer(RecordLayer {
            tap: parts.recording.tap.clone(),
            recent: parts.recording.recent.clone(),
        }))
        // Outside of every layer that rejects requests, so that each request is reported, with the
        // status that the client received.
        .layer(layer(ReportLayer::new(parts.migration.usage.clone(), parts.recording.recent.clone())))
        // Above rescue, so that error responses have the announcements and the CORS fields of their
        // front.
        .layer(layer(FrontFields))
        // Layers below return errors; this one converts them, so layers above see only responses.
        .layer(layer_fn(Rescue::new))
        .service(inner)
}

/// Builds the layers that decide about a request, down to the choice of the version that answers.
fn inner_layers(
    parts: &StackParts,
) -> impl Service<Request, Response = Response, Error = GatewayError, Future: Send + 'static>
+ Clone
+ Send
+ Sync
+ use<> {
    let StackParts { limits, memory, pseudonym, migration, .. } = parts;
    let composer = Composer {
        calls: Calls::new(parts.retries.clone()),
        limits: Arc::clone(limits),
        pseudonym: pseudonym.clone(),
        forwarding: parts.forwarding.clone(),
        memory: memory.part(limits.bodies.held_bytes_all_max),
        heavy: Heavy::default(),
        resume: Resume::new(parts.store.clone()),
        cursors: CursorCache::default(),
        clock: parts.clock.clone(),
        detached: parts.detached.clone(),
        origin: CallOrigin::Client,
    };
    let dual = dual(&composer, migration.shadow.clone(), memory);
    let (requests, memory) = (limits.requests, memory.clone());
    let validate = ValidateRequest { limits: requests, pseudonym: pseudonym.clone() };
    ServiceBuilder::new()
        // First, because it needs only the head: requests that an intermediary must not accept are
        // rejected before they take a permit.
        .layer(layer(validate))
        // Before any layer that looks up, buffers or waits, so that excess requests are cheap to
        // reject.
        .layer(layer(LimitLayer::new(requests.in_flight_max)))
        // Around every layer that can wait, so that the time limit includes all of them.
        .layer(layer_fn(move |inner| Timeout { inner, total: requests.total_timeout }))
        // Before authentication, because how a token is carried depends on the front; and before every
        // layer that reads the body, because the limits of bodies do.
        .layer(layer(RouteLayer))
        // Before authentication, which may have to look for a token in a body.
        .layer(layer_fn(move |inner| FormToken { inner, memory: memory.clone() }))
        // Before every layer that acts for a client or counts against its limits.
        .layer(layer(Authenticate { tokens: parts.tokens.clone() }))
        // Directly after the client is known, so that calls to a retired side use no further
        // resources.
        .layer(layer(Retire { retirement: migration.retirement.clone() }))
        // After authentication, because the limit is per client.
        .layer(layer(LimitLayer::per_client(requests.client_in_flight_max)))
        // Above translation, because a dual run compares the responses as clients receive them.
        .service(Phased::new(composer, dual, migration.unknown.clone()))
}

/// Builds the composition of the shadow, with its own memory and calls.
fn dual(composer: &Composer, shadow: Shadow, memory: &Memory) -> Dual {
    let composer = Composer {
        // A separate retry budget: retries of the shadow must not use up those of clients.
        calls: Calls::of_shadow(Budget::default()),
        // A separate part of the memory: queued comparisons must not cause 503 responses to clients.
        memory: memory.part(shadow.settings().queue_bytes),
        origin: CallOrigin::Shadow,
        ..composer.clone()
    };
    Dual::new(shadow, composer)
}
