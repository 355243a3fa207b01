//! A grant as the data path uses it: reads the current access token without locks or SQL, and
//! decides whether a 401 of the upstream warrants a refresh. The module `refresh` carries out the
//! refresh.
//!
//! A client receives a 401 only if its own token is invalid or it lacks a permission. A grant that
//! temporarily cannot be refreshed never appears as a 401. The module `rejections` judges which of
//! these causes a 401 of the API has.

use super::lifetime::{remaining, replace_before_end};
use super::rejections::{CallOperation, Rejections, WorkedFor};
use super::wire::{TokenEndpoint, bearer};
use super::{RefreshSettings, TokenError};
use crate::clock::Clock;
use crate::secret::Secret;
use crate::store::{GrantKey, GrantRow, GrantState, REFRESH_REQUESTED, Store};
use crate::telemetry::metrics;
use arc_swap::{ArcSwap, ArcSwapOption};
use futures_util::future::{BoxFuture, Shared};
use http::HeaderValue;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::task::TaskTracker;

/// An access token of one generation of a grant. Clones share it.
#[derive(Clone)]
pub struct AccessToken(Arc<Token>);

struct Token {
    secret: Secret<String>,
    header: HeaderValue,
    generation: i64,
    worked: AtomicBool,
    worked_for: WorkedFor,
}

impl AccessToken {
    fn new(secret: Secret<String>, generation: i64) -> Option<Self> {
        let header = bearer(secret.expose())?;
        let (worked, worked_for) = (AtomicBool::new(false), WorkedFor::default());
        Some(AccessToken(Arc::new(Token { secret, header, generation, worked, worked_for })))
    }

    /// Returns the value of the `Authorization` header, marked sensitive.
    pub fn header(&self) -> &HeaderValue {
        &self.0.header
    }

    /// Returns the token.
    pub fn secret(&self) -> &Secret<String> {
        &self.0.secret
    }

    /// Returns the generation of the grant that issued the token; pass it to [`Grant::on_unauthorized`].
    pub fn generation(&self) -> i64 {
        self.0.generation
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessToken(generation {}, ***)", self.0.generation)
    }
}

/// The reaction to a 401 response.
#[derive(Clone, Debug)]
pub enum Rejected {
    /// A newer token is available: send the call again with it.
    Replay(AccessToken),
    /// A newer token cannot help because the client lacks the permission: forward the response.
    Pass,
    /// A newer token could help but is unavailable, so the 401 does not concern the client.
    Unavailable(TokenError),
}

/// A snapshot of the grant for the data path. Deadlines are in the clock's monotonic time.
#[derive(Debug)]
pub(super) struct GrantView {
    pub generation: i64,
    pub state: GrantState,
    /// The reason of the state, or the cause of the last failed refresh.
    pub reason: Option<String>,
    pub token: Option<AccessToken>,
    pub expires_at: Option<Duration>,
    pub refresh_at: Option<Duration>,
    pub has_previous: bool,
    pub issued_ms: Option<i64>,
    pub lifetime_ms: Option<i64>,
}

/// Failures since the last success, and the time of the next attempt.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    pub failures: u32,
    /// Consecutive refusals without a recognized reason.
    pub refusals: u32,
    pub until: Duration,
    /// The last error.
    pub cause: Option<TokenError>,
}

/// Interval for checking whether a due refresh has started.
const DUE_POLL: Duration = Duration::from_millis(20);

pub(super) type RefreshResult = Result<(), TokenError>;

/// A refresh, running or finished.
pub(super) struct Flight {
    pub task: AbortHandle,
    pub outcome: Shared<BoxFuture<'static, RefreshResult>>,
}

/// State shared by the grants of one gateway.
#[derive(Debug)]
pub(super) struct RefreshContext {
    pub store: Store,
    pub endpoint: ArcSwapOption<TokenEndpoint>,
    pub settings: RefreshSettings,
    pub clock: Clock,
    /// Identifies this process in leases.
    pub owner: String,
    /// Running refreshes. They outlive the requests that started them, and a shutdown waits for
    /// them.
    pub tasks: TaskTracker,
    /// Number of grants whose newest tokens exist in memory only.
    pub unpersisted: AtomicUsize,
    /// Whether the store accepted the last write for a refresh.
    pub store_writes: AtomicBool,
}

impl RefreshContext {
    /// Spawns a task on the store's runtime, so it outlives both the caller and the caller's
    /// runtime.
    pub(super) fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.tasks.spawn_on(work, self.store.home())
    }
}

/// A grant in use, shared by everything that acts for its client.
pub struct Grant {
    pub(super) key: GrantKey,
    pub(super) client: Arc<str>,
    pub(super) shared: Arc<RefreshContext>,
    view: ArcSwap<GrantView>,
    pub(super) flight: Mutex<Option<Flight>>,
    rejections: Mutex<Rejections>,
    pub(super) backoff: Mutex<Backoff>,
    /// Set while memory holds newer tokens than the store.
    pub(super) unpersisted: AtomicBool,
    /// Whether metrics include the grant: set while its client is registered.
    is_listed: AtomicBool,
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = self.view.load();
        write!(f, "Grant({}, generation {}, {})", self.client, view.generation, view.state.name())
    }
}

/// Locks a mutex and ignores poisoning: the guarded values are valid after any panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Grant {
    pub(super) fn new(row: &GrantRow, client: Arc<str>, shared: Arc<RefreshContext>) -> Arc<Self> {
        let view = view_of(row, None, &shared);
        let rejections =
            Rejections::new(shared.settings.rejection_quiet, shared.settings.rejection_quiet_max);
        Arc::new(Grant {
            key: row.key.clone(),
            client,
            view: ArcSwap::from_pointee(view),
            flight: Mutex::new(None),
            rejections: Mutex::new(rejections),
            backoff: Mutex::default(),
            unpersisted: AtomicBool::new(false),
            is_listed: AtomicBool::new(false),
            shared,
        })
    }

    /// Returns the access token: at once if it is valid, otherwise after a refresh. Concurrent
    /// callers share one request to the authorization server. Dropping the future does not cancel
    /// the refresh.
    ///
    /// # Errors
    ///
    /// No valid token is available and none can be obtained now. The error identifies who has to
    /// act if waiting does not help.
    pub async fn access_token(self: &Arc<Self>) -> Result<AccessToken, TokenError> {
        if let Some(token) = self.current() {
            return Ok(token);
        }
        // Read before the refresh. If another call has refreshed since, `refresh` returns at once.
        let generation = self.view.load().generation;
        self.refresh(generation).await?;
        self.current().ok_or_else(|| self.why_not())
    }

    /// Returns the access token if it has not expired. Never waits.
    pub fn current(&self) -> Option<AccessToken> {
        let view = self.view.load();
        let token = view.token.as_ref()?;
        if view.expires_at.is_some_and(|end| end <= self.shared.clock.elapsed()) {
            return None;
        }
        Some(token.clone())
    }

    /// Returns the access token, waiting up to `patience` for a refresh that is running or due.
    /// Does not start a refresh itself, for calls that must not change the grant.
    pub async fn token_within(&self, patience: Duration) -> Option<AccessToken> {
        let arriving = async {
            loop {
                if let Some(token) = self.current() {
                    return Some(token);
                }
                match self.under_way() {
                    // The result shows in `current` on the next iteration.
                    Some(outcome) => drop(outcome.await),
                    None if self.is_due() => self.shared.clock.sleep(DUE_POLL).await,
                    None => return None,
                }
            }
        };
        tokio::time::timeout(patience, arriving).await.ok().flatten()
    }

    /// Returns the outcome of the running refresh, if there is one.
    fn under_way(&self) -> Option<Shared<BoxFuture<'static, RefreshResult>>> {
        let flight = lock(&self.flight);
        flight.as_ref().filter(|flight| !flight.task.is_finished()).map(|flight| flight.outcome.clone())
    }

    /// Handles a 401 of a call of `operation` with the token of `generation`. It starts at most one
    /// refresh per generation, however many calls report. If the repeated call also fails, report
    /// that to [`Grant::on_refused_again`].
    pub async fn on_unauthorized(self: &Arc<Self>, generation: i64, operation: CallOperation) -> Rejected {
        let view = self.view.load_full();
        if view.generation == generation {
            let now = self.shared.clock.elapsed();
            let has_worked = view.token.as_ref().is_some_and(|token| token.0.worked_for.has(operation));
            // The lock is released before the refresh, which may take seconds.
            let is_worth_refresh = {
                let mut rejections = lock(&self.rejections);
                match view.state.can_refresh() {
                    true => rejections.is_worth_refresh(generation, operation, has_worked, now),
                    // The grant cannot be refreshed. A known missing permission still passes the
                    // 401 on; any other 401 becomes an error, because the token is the likelier
                    // cause.
                    false => !rejections.is_judged(operation, now),
                }
            };
            if !is_worth_refresh {
                return Rejected::Pass;
            }
            if let Err(error) = self.refresh(generation).await {
                return Rejected::Unavailable(error);
            }
        }
        match self.current() {
            Some(token) if token.generation() > generation => Rejected::Replay(token),
            _ => Rejected::Unavailable(self.why_not()),
        }
    }

    /// Records that a call of `operation` was rejected with the fresh token of `generation` too:
    /// the client lacks the permission.
    pub fn on_refused_again(&self, generation: i64, operation: CallOperation) {
        lock(&self.rejections).note_refusal(generation, operation, self.shared.clock.elapsed());
    }

    /// Records that a call of `operation` with `token` was not rejected for its token. Usually
    /// costs two atomic loads.
    pub fn on_success(self: &Arc<Self>, token: &AccessToken, operation: CallOperation) {
        token.0.worked_for.note(operation);
        // The swap lets exactly one call proceed; the load before it keeps the cache line shared.
        if token.0.worked.load(Ordering::Relaxed) || token.0.worked.swap(true, Ordering::Relaxed) {
            return;
        }
        let view = self.view.load();
        // The new access token works, so the server has stored the refresh token issued with it.
        // The predecessor is no longer needed as a fallback.
        if view.generation == token.generation() && view.has_previous {
            self.shared.spawn(forget_previous(self.clone(), token.generation()));
        }
    }

    /// Returns the state of the grant.
    pub fn state(&self) -> GrantState {
        self.view.load().state
    }

    /// Returns whether memory holds newer tokens than the store.
    pub(super) fn is_unpersisted(&self) -> bool {
        self.unpersisted.load(Ordering::Relaxed)
    }

    /// Returns the number of the current token set.
    pub fn generation(&self) -> i64 {
        self.view.load().generation
    }

    /// Returns whether the grant is due for a refresh ahead of expiry.
    pub(super) fn is_due(&self) -> bool {
        let now = self.shared.clock.elapsed();
        let view = self.view.load();
        view.state.can_refresh()
            && view.refresh_at.is_some_and(|at| at <= now)
            && lock(&self.backoff).until <= now
            && !self.unpersisted.load(Ordering::Relaxed)
    }

    /// Applies a stored row unless memory holds newer tokens.
    pub(super) fn adopt(&self, row: &GrantRow) {
        let before = self.view.load();
        let unpersisted = self.unpersisted.load(Ordering::Relaxed);
        // The store may lag behind memory: after a failed write it still contains the spent token.
        if row.generation < before.generation || (unpersisted && row.generation == before.generation) {
            return;
        }
        let is_sound = |state| matches!(state, GrantState::Active | GrantState::Pending);
        let is_refresh_requested = is_refresh_requested(row) && before.reason != row.reason;
        if is_refresh_requested || (is_sound(row.state) && !is_sound(before.state)) {
            // An operator repaired the grant or requested a refresh, so earlier failures no longer
            // apply.
            *lock(&self.backoff) = Backoff::default();
        }
        self.view.store(Arc::new(view_of(row, Some(&before), &self.shared)));
        self.show();
    }

    /// Applies a stored row even if memory holds tokens of the same generation.
    pub(super) fn adopt_instead(&self, row: &GrantRow) {
        self.view.store(Arc::new(view_of(row, None, &self.shared)));
        self.show();
    }

    /// Returns the reason why there is no token.
    pub(super) fn why_not(&self) -> TokenError {
        let view = self.view.load();
        match view.state {
            GrantState::Unconnected => TokenError::NotConnected,
            GrantState::NeedsReconnect => {
                TokenError::NeedsReconnect(view.reason.clone().unwrap_or_else(|| "unknown".to_owned()))
            }
            GrantState::Misconfigured => {
                TokenError::Misconfigured(view.reason.clone().unwrap_or_else(|| "unknown".to_owned()))
            }
            GrantState::Pending | GrantState::Active => TokenError::Expired,
        }
    }

    /// Adds the grant to the metrics, or removes it because its client no longer exists.
    pub(super) fn set_listed(&self, is_listed: bool) {
        if self.is_listed.swap(is_listed, Ordering::Relaxed) == is_listed {
            return;
        }
        if is_listed {
            metrics::token_refreshes(&self.client);
            self.show();
        } else {
            metrics::token_life(&self.client, None);
            for state in GrantState::ALL {
                metrics::token_state(&self.client, state.name(), None);
            }
        }
    }

    /// Sets the gauges of this grant.
    fn show(&self) {
        if !self.is_listed.load(Ordering::Relaxed) {
            return;
        }
        let view = self.view.load();
        let life = view.issued_ms.zip(view.lifetime_ms);
        metrics::token_life(
            &self.client,
            life.map(|(issued, lifetime)| metrics::TokenLife::new(issued, lifetime)),
        );
        for state in GrantState::ALL {
            metrics::token_state(&self.client, state.name(), Some(view.state == state));
        }
    }
}

/// Deletes the previous refresh token once the newest access token has worked.
async fn forget_previous(grant: Arc<Grant>, generation: i64) {
    if let Err(error) = grant.shared.store.forget_previous(&grant.key, generation).await {
        tracing::debug!(target: "switchback::token", client = %grant.client, %error, "the previous refresh token was not deleted");
    }
}

/// Returns whether a refresh requested by an operator is still pending.
fn is_refresh_requested(row: &GrantRow) -> bool {
    row.reason.as_deref() == Some(REFRESH_REQUESTED)
}

/// Builds the snapshot of a stored grant. Reads wall time once, to carry the deadline over a
/// restart.
fn view_of(row: &GrantRow, before: Option<&GrantView>, shared: &RefreshContext) -> GrantView {
    let Ok(secrets) = &row.secrets else { return damaged_view(row) };
    let now = shared.clock.elapsed();
    let lifetime = row.lifetime_ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    let left = lifetime
        .zip(row.issued_ms)
        .map(|(lifetime, issued)| remaining(issued, lifetime, shared.clock.unix_ms()).saturating_add(now));
    let known = before.filter(|view| view.generation == row.generation);
    let token = match known.and_then(|view| view.token.clone()) {
        Some(token) => Some(token),
        None => secrets.access.clone().and_then(|secret| AccessToken::new(secret, row.generation)),
    };
    let (expires_at, mut refresh_at) = match known {
        // Keep the monotonic deadlines of a token that was issued to this process: the wall clock
        // may have jumped since.
        Some(view) if view.token.is_some() => (view.expires_at, view.refresh_at),
        _ if token.is_none() || row.outcome_unknown => (left, Some(now)),
        _ => {
            let early = lifetime.map(|lifetime| replace_before_end(lifetime, fastrand::f64()));
            (left, left.zip(early).map(|(end, early)| end.saturating_sub(early)))
        }
    };
    // Due at once, although the token has not expired.
    if is_refresh_requested(row) {
        refresh_at = Some(now);
    }
    GrantView {
        generation: row.generation,
        state: row.state,
        reason: row.reason.clone(),
        token,
        expires_at,
        refresh_at,
        has_previous: secrets.previous_refresh.is_some(),
        issued_ms: row.issued_ms,
        lifetime_ms: row.lifetime_ms,
    }
}

/// Returns the snapshot of a grant whose secrets cannot be decrypted. The client must be connected
/// again.
fn damaged_view(row: &GrantRow) -> GrantView {
    GrantView {
        generation: row.generation,
        state: GrantState::NeedsReconnect,
        reason: Some("damaged".to_owned()),
        token: None,
        expires_at: None,
        refresh_at: None,
        has_previous: false,
        issued_ms: None,
        lifetime_ms: None,
    }
}
