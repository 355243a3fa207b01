//! A grant as the data path sees it: the current access token without lock or SQL, and what to do when an upstream refuses it.
//! How a refresh goes is in `refresh`; this file decides *whether* there is to be one.
//!
//! Decision to know: a client's 401 says that the client's own token is bad, or that it may not do what it asks for. That the
//! grant behind it cannot be refreshed at the moment is another matter, and never looks like a 401. Which of the two a 401 of
//! the API is, is judged in `rejections`.

use super::TokenError;
use super::lifetime::{remaining, replace_before_end};
use super::refresh::{self, Shared};
use super::rejections::{Operation, Rejections, WorkedFor};
use super::wire::bearer;
use crate::secret::Secret;
use crate::store::{GrantKey, GrantRow, GrantState, REFRESH_REQUESTED};
use crate::telemetry::metrics;
use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An access token of one generation of a grant; clones share it.
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

    /// The value of the `Authorization` header, marked sensitive.
    pub fn header(&self) -> &HeaderValue {
        &self.0.header
    }

    /// The token itself.
    pub fn secret(&self) -> &Secret<String> {
        &self.0.secret
    }

    /// Which token set of the grant it is from; hand it to [`Grant::rejected`].
    pub fn generation(&self) -> i64 {
        self.0.generation
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessToken(generation {}, ***)", self.0.generation)
    }
}

/// What to do about an answer 401.
#[derive(Clone, Debug)]
pub enum Rejected {
    /// There is a newer token: send the call once more with it.
    Replay(AccessToken),
    /// A newer token will not help, since the client may not do this: pass the answer on.
    Pass,
    /// A newer token may help, and there is none to be had: the answer says nothing about the client.
    Unavailable(TokenError),
}

/// What the data path knows of the grant at one moment. Deadlines are in monotonic time of the clock.
#[derive(Debug)]
pub(super) struct View {
    pub generation: i64,
    pub state: GrantState,
    /// Why it is in that state, or how the last refresh failed.
    pub reason: Option<String>,
    pub token: Option<AccessToken>,
    pub expires_at: Option<Duration>,
    pub refresh_at: Option<Duration>,
    pub has_previous: bool,
    pub issued_ms: Option<i64>,
    pub lifetime_ms: Option<i64>,
}

/// Failures since the last success, and until when not to try again.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    pub failures: u32,
    /// Refusals in a row that do not say what they are about.
    pub refusals: u32,
    pub until: Duration,
    /// What went wrong last.
    pub cause: Option<TokenError>,
}

/// How often to look whether a refresh that is due has begun.
const DUE_POLL: Duration = Duration::from_millis(20);

type Outcome = Result<(), TokenError>;

struct Flight {
    task: tokio::task::AbortHandle,
    outcome: futures_util::future::Shared<BoxFuture<'static, Outcome>>,
}

/// A grant in use. Shared by everything that acts for its client.
pub struct Grant {
    pub(super) key: GrantKey,
    pub(super) client: Arc<str>,
    pub(super) shared: Arc<Shared>,
    view: ArcSwap<View>,
    flight: Mutex<Option<Flight>>,
    rejections: Mutex<Rejections>,
    pub(super) backoff: Mutex<Backoff>,
    /// Set while newer tokens are in memory than in the store.
    pub(super) unpersisted: AtomicBool,
    /// Whether its client is one of the gateway's, so that metrics show it.
    is_listed: AtomicBool,
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = self.view.load();
        write!(f, "Grant({}, generation {}, {})", self.client, view.generation, view.state.name())
    }
}

/// A panic elsewhere does not make these plain values wrong.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Grant {
    pub(super) fn new(row: &GrantRow, client: Arc<str>, shared: Arc<Shared>) -> Arc<Self> {
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

    /// The access token to send, at once when there is a living one. Otherwise waits for the refresh that brings one: however
    /// many wait, it is one call to the authorization server. Dropping the future does not stop the refresh.
    ///
    /// # Errors
    ///
    /// There is no living token and none can be had now; the error says who has to act, if waiting does not
    /// help.
    pub async fn access_token(self: &Arc<Self>) -> Result<AccessToken, TokenError> {
        if let Some(token) = self.current() {
            return Ok(token);
        }
        let generation = self.view.load().generation;
        self.refresh(generation).await?;
        self.current().ok_or_else(|| self.why_not())
    }

    /// The access token if it lives as far as we know. Never waits.
    pub fn current(&self) -> Option<AccessToken> {
        let view = self.view.load();
        let token = view.token.as_ref()?;
        if view.expires_at.is_some_and(|end| end <= self.shared.clock.elapsed()) {
            return None;
        }
        Some(token.clone())
    }

    /// The access token, or the one that a refresh brings within `patience` that is under way, or due at this moment. Starts
    /// none: for calls that may change nothing about the grant.
    pub async fn awaited(&self, patience: Duration) -> Option<AccessToken> {
        let arriving = async {
            loop {
                if let Some(token) = self.current() {
                    return Some(token);
                }
                match self.under_way() {
                    // How it went is seen by what there is now.
                    Some(outcome) => drop(outcome.await),
                    None if self.is_due() => self.shared.clock.sleep(DUE_POLL).await,
                    None => return None,
                }
            }
        };
        tokio::time::timeout(patience, arriving).await.ok().flatten()
    }

    /// The outcome of the refresh that is under way.
    fn under_way(&self) -> Option<futures_util::future::Shared<BoxFuture<'static, Outcome>>> {
        let flight = lock(&self.flight);
        flight.as_ref().filter(|flight| !flight.task.is_finished()).map(|flight| flight.outcome.clone())
    }

    /// To be told of a 401 that a call of `operation` got with the token of `generation`. At most one refresh comes of it per
    /// generation, for however many calls. If the call is repeated and refused again, [`Grant::refused`] wants to know.
    pub async fn rejected(self: &Arc<Self>, generation: i64, operation: Operation) -> Rejected {
        let view = self.view.load_full();
        if view.generation == generation {
            let now = self.shared.clock.elapsed();
            let has_worked = view.token.as_ref().is_some_and(|token| token.0.worked_for.has(operation));
            let is_worth_refresh = {
                let mut rejections = lock(&self.rejections);
                match view.state.can_refresh() {
                    true => rejections.is_worth_refresh(generation, operation, has_worked, now),
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

    /// To be told that a call of `operation` was refused with the token of `generation` too, which was fresh: the client may not
    /// do this.
    pub fn refused(&self, generation: i64, operation: Operation) {
        lock(&self.rejections).refused(generation, operation, self.shared.clock.elapsed());
    }

    /// To be told that a call of `operation` with `token` was not refused for its token. Usually this costs two loads.
    pub fn worked(self: &Arc<Self>, token: &AccessToken, operation: Operation) {
        token.0.worked_for.note(operation);
        if token.0.worked.load(Ordering::Relaxed) || token.0.worked.swap(true, Ordering::Relaxed) {
            return;
        }
        let view = self.view.load();
        if view.generation == token.generation() && view.has_previous {
            self.shared.spawn(refresh::forget_previous(self.clone(), token.generation()));
        }
    }

    /// Where the grant stands.
    pub fn state(&self) -> GrantState {
        self.view.load().state
    }

    /// Whether newer tokens are in memory than in the store.
    pub(super) fn is_unpersisted(&self) -> bool {
        self.unpersisted.load(Ordering::Relaxed)
    }

    /// Which token set it is at.
    pub fn generation(&self) -> i64 {
        self.view.load().generation
    }

    /// Refreshes `generation`, or joins the refresh under way. `Ok` means that the grant has moved past it.
    pub(super) fn refresh(self: &Arc<Self>, generation: i64) -> BoxFuture<'static, Outcome> {
        let mut slot = lock(&self.flight);
        if self.view.load().generation > generation {
            return std::future::ready(Ok(())).boxed();
        }
        if let Some(flight) = &*slot
            && !flight.task.is_finished()
        {
            return flight.outcome.clone().boxed();
        }
        if let Err(refused) = refresh::may_begin(self) {
            return std::future::ready(Err(refused)).boxed();
        }
        let task = self.shared.spawn(refresh::run(self.clone(), generation));
        let handle = task.abort_handle();
        let outcome = task.map(|ended| ended.unwrap_or(Err(TokenError::Interrupted))).boxed().shared();
        *slot = Some(Flight { task: handle, outcome: outcome.clone() });
        outcome.boxed()
    }

    /// Whether it is time to refresh ahead of expiry.
    pub(super) fn is_due(&self) -> bool {
        let now = self.shared.clock.elapsed();
        let view = self.view.load();
        view.state.can_refresh()
            && view.refresh_at.is_some_and(|at| at <= now)
            && lock(&self.backoff).until <= now
            && !self.unpersisted.load(Ordering::Relaxed)
    }

    /// Takes over what the store holds, unless what we have is newer.
    pub(super) fn adopt(&self, row: &GrantRow) {
        let before = self.view.load();
        let unpersisted = self.unpersisted.load(Ordering::Relaxed);
        if row.generation < before.generation || (unpersisted && row.generation == before.generation) {
            return;
        }
        let is_sound = |state| matches!(state, GrantState::Active | GrantState::Pending);
        let is_refresh_requested = is_refresh_requested(row) && before.reason != row.reason;
        if is_refresh_requested || (is_sound(row.state) && !is_sound(before.state)) {
            // Somebody has mended it, or wants it tried: how it failed before says nothing any more.
            *lock(&self.backoff) = Backoff::default();
        }
        self.view.store(Arc::new(view_of(row, Some(&before), &self.shared)));
        self.show();
    }

    /// Takes over what the store holds in place of what we have, even of the same generation.
    pub(super) fn adopt_instead(&self, row: &GrantRow) {
        self.view.store(Arc::new(view_of(row, None, &self.shared)));
        self.show();
    }

    /// Why there is no token to give.
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

    /// Has metrics show the grant, or no longer: that of a client which is gone has no state.
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
            life.map(|(issued, lifetime)| metrics::TokenLife::of(issued, lifetime)),
        );
        for state in GrantState::ALL {
            metrics::token_state(&self.client, state.name(), Some(view.state == state));
        }
    }
}

/// Whether an operator has requested a refresh that has not ended yet.
fn is_refresh_requested(row: &GrantRow) -> bool {
    row.reason.as_deref() == Some(REFRESH_REQUESTED)
}

/// The view of a stored grant. Wall time is read here, once, to carry the deadline over a restart.
fn view_of(row: &GrantRow, before: Option<&View>, shared: &Shared) -> View {
    let Ok(secrets) = &row.secrets else { return damaged(row) };
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
        // The deadlines of a token that we have followed from its birth are better than what the wall clock says by now.
        Some(view) if view.token.is_some() => (view.expires_at, view.refresh_at),
        _ if token.is_none() || row.outcome_unknown => (left, Some(now)),
        _ => {
            let early = lifetime.map(|lifetime| replace_before_end(lifetime, fastrand::f64()));
            (left, left.zip(early).map(|(end, early)| end.saturating_sub(early)))
        }
    };
    if is_refresh_requested(row) {
        refresh_at = Some(now);
    }
    View {
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

/// The view of a grant whose secrets do not open: of no use until somebody connects it again.
fn damaged(row: &GrantRow) -> View {
    View {
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
