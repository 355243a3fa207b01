//! The whole data path, outermost layer first, with the reason for each place. Requests go down the
//! list, answers come back up. Construct it here and nowhere else. The layers of single calls,
//! below translation, are in `calls/stack.rs`.

use super::calls::retry::Budget;
use super::calls::stack::Calls;
use super::compose::resume::Resume;
use super::compose::{Composer, CursorCache};
use super::dual::Dual;
use super::dual::phase::Phased;
use super::forwarding::Forwarding;
use super::headers::Pseudonym;
use super::layers::announce::Announce;
use super::layers::authenticate::Authenticate;
use super::layers::form_token::FormToken;
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

/// What the stack is made of. All parts are shared; cloning is cheap.
#[derive(Clone)]
pub struct StackParts {
    /// What is served; swapped by a reload.
    pub program: CurrentProgram,
    /// Clients and their grants.
    pub tokens: Tokens,
    /// The bounds of the data path: bytes, counts and times.
    pub limits: Arc<Limits>,
    /// What the process may have.
    pub memory: Memory,
    /// Our name in Via.
    pub pseudonym: Pseudonym,
    /// What forwarded requests say of the way they came.
    pub forwarding: Forwarding,
    /// How many retries there may be.
    pub retries: Budget,
    /// Where half-done work is remembered.
    pub store: Store,
    /// Wall and monotonic time of all layers.
    pub clock: Clock,
    /// Requests with effects that go on without their client: to be waited for before the program ends.
    pub detached: TaskTracker,
    /// Where captures of traffic are opened.
    pub tap: Tap,
    /// The parts that compare the sides and retire the old one.
    pub migration: MigrationParts,
}

/// The parts of the stack that compare the sides and retire the old one.
#[derive(Clone)]
pub struct MigrationParts {
    /// What asks the side that does not answer.
    pub shadow: Shadow,
    /// What is called that nobody here knows.
    pub unknown: UnknownCalls,
    /// Who still calls what.
    pub usage: Usage,
    /// What is switched off for a while, and for whom a side has ended.
    pub retirement: Retirement,
}

/// Everything from a client's request to its answer. Connections work on clones of it, which share
/// all limits.
pub fn stack(parts: StackParts) -> impl RequestService {
    outer_layers(&parts, inner_layers(&parts))
}

/// What [`stack_with`] puts the layers of others around.
pub type Within = BoxCloneSyncService<Request, Response, GatewayError>;

/// The same with a layer of someone else's in it, outside of all that decides: what it refuses is
/// answered in the pack's form, logged and counted. What it fails with may be a [`GatewayError`],
/// or any error, which is answered as one of the gateway's own; an overload of tower's `LoadShed`
/// is answered as ours are. Requests cost a box more than without it.
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

/// The layers that see every request, whatever becomes of it: above, there are only answers.
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
        // Outside of all that changes an answer, so that a capture holds what the client saw.
        .layer(layer(RecordLayer { tap: parts.tap.clone() }))
        // Outside of all that decides, so that no request goes unreported, with the status that the
        // client got.
        .layer(layer(ReportLayer::new(parts.migration.usage.clone())))
        // Above rescue, so that errors carry the announcements of their front too.
        .layer(layer(Announce))
        // Below here layers fail with an error; above it there are only answers.
        .layer(layer_fn(Rescue::new))
        .service(inner)
}

/// The layers that decide, down to who answers.
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
    let validate = ValidateRequest {
        limits: requests,
        body_bytes_max: limits.bodies.forwarded_bytes_max.max(limits.bodies.request_bytes_max),
        pseudonym: pseudonym.clone(),
    };
    ServiceBuilder::new()
        // Before anything costs: what no intermediary may accept is refused for free.
        .layer(layer(validate))
        // Before work begins, so that a flood is turned away cheaply.
        .layer(layer(LimitLayer::new(requests.in_flight_max)))
        // Around all that can wait.
        .layer(layer_fn(move |inner| Timeout { inner, total: requests.total_timeout }))
        // Before authentication, because how a token is carried depends on the front.
        .layer(layer(RouteLayer))
        // Before authentication, which may have to look for a token in a body.
        .layer(layer_fn(move |inner| FormToken { inner, memory: memory.clone() }))
        // Before anything is done on behalf of someone.
        .layer(layer(Authenticate { tokens: parts.tokens.clone() }))
        // As soon as it is known whose side may have ended, and before that costs anything more.
        .layer(layer(Retire { retirement: migration.retirement.clone() }))
        // As soon as it is known whose share to count against.
        .layer(layer(LimitLayer::per_client(requests.client_in_flight_max)))
        // What is compared in a dual run is what the client would have seen: so the choice of who
        // answers sits above translation.
        .service(Phased::new(composer, dual, migration.unknown.clone()))
}

/// The same composition for the shadow, with memory and calls of its own.
fn dual(composer: &Composer, shadow: Shadow, memory: &Memory) -> Dual {
    let composer = Composer {
        // A budget of its own: what the shadow repeats must not keep a client's call from being repeated.
        calls: Calls::of_shadow(Budget::default()),
        memory: memory.part(shadow.settings().queue_bytes),
        origin: CallOrigin::Shadow,
        ..composer.clone()
    };
    Dual::new(shadow, composer)
}
