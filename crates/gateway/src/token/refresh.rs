//! One refresh of one grant, step by step, in the order that loses no grant that could be kept:
//!
//! 1. claim the grant and commit the *intent* to spend its refresh token,
//! 2. spend it,
//! 3. commit the new tokens,
//! 4. only then let anybody use them.
//!
//! A process that dies between 1 and 3 leaves an intent behind. Whoever comes next finds "outcome unknown", tries the refresh
//! token once more, and either goes on or learns that it was spent: then the grant needs a person, and says so. Each step is
//! traced with a `step` field, which is also where the tests stop a process.

use super::grant::{Backoff, Grant, lock};
use super::wire::{App, Endpoint, Exchange, Failure, Offer, Refusal, RefusalAbout, TokenAnswer};
use super::{Settings, TokenError};
use crate::clock::Clock;
use crate::secret::Secret;
use crate::store::{Begin, Finish, Flow, GrantRow, GrantState, NewTokens, Opened, Store, StoreError};
use crate::telemetry::metrics;
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Tries at storing new tokens before those that wait for them are let go on regardless, and the pauses between.
const PERSIST_PAUSES: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(200), Duration::from_millis(500)];
/// The pause between tries after that.
const PERSIST_LATER: Duration = Duration::from_secs(1);
/// How often to look whether another gateway has finished its refresh.
const LEASE_POLL: Duration = Duration::from_millis(100);
/// How often a claim is renewed while it holds.
const LEASE_RENEWALS: u32 = 4;
/// Refusals in a row that may pass by themselves, after which the grant counts as misconfigured. With the pauses between them
/// that is about half a minute. Refreshes go on after that.
const REFUSALS_MAX: u32 = 6;
/// The longest pause before the one retry within a refresh; calls are waiting.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// The longest `Retry-After` that such a retry waits for.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(2);

/// What the grants of one gateway have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub store: Store,
    pub endpoint: ArcSwapOption<Endpoint>,
    pub settings: Settings,
    pub clock: Clock,
    /// Names this process in leases.
    pub owner: String,
    /// Refreshes under way: they outlive the requests that caused them, and a shutdown waits for them.
    pub tasks: TaskTracker,
    /// Grants whose newest tokens are in memory only.
    pub unpersisted: AtomicUsize,
    /// Whether the store took what was last written for a refresh.
    pub store_writes: AtomicBool,
}

impl Shared {
    /// Works on something that outlives whoever asks for it, and the runtime that he asks on.
    pub(super) fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.tasks.spawn_on(work, self.store.home())
    }
}

/// Whether a refresh may start now at all.
pub(super) fn may_begin(grant: &Grant) -> Result<(), TokenError> {
    if !grant.state().can_refresh() {
        return Err(grant.why_not());
    }
    if grant.shared.endpoint.load().is_none() {
        return Err(TokenError::NoServer);
    }
    if grant.unpersisted.load(Ordering::Relaxed) {
        return Err(TokenError::Store("new tokens are not stored yet".to_owned()));
    }
    let (backoff, now) = (lock(&grant.backoff), grant.shared.clock.elapsed());
    if backoff.until <= now {
        return Ok(());
    }
    let cause = backoff.cause.clone().unwrap_or(TokenError::Expired);
    Err(TokenError::CoolingDown { wait: backoff.until - now, cause: Box::new(cause) })
}

/// Refreshes `generation` of a grant. Runs in a task of its own: nobody who waits can cut it short.
pub(super) async fn run(grant: Arc<Grant>, generation: i64) -> Result<(), TokenError> {
    let shared = grant.shared.clone();
    let Some(endpoint) = shared.endpoint.load_full() else { return Err(TokenError::NoServer) };
    let row = match begin(&grant, generation).await {
        Ok(Some(row)) => row,
        Ok(None) => {
            count(&grant, "moved");
            return if grant.generation() > generation { Ok(()) } else { Err(grant.why_not()) };
        }
        Err(error) => {
            count(&grant, "store");
            tracing::warn!(target: "switchback::token", client = %grant.client, %error, "no refresh: its result could not be stored");
            shared.store_writes.store(false, Ordering::Relaxed);
            let error = TokenError::Store(error.to_string());
            wait_for_store(&grant, error.clone());
            return Err(error);
        }
    };
    shared.store_writes.store(true, Ordering::Relaxed);
    step(&grant, "intent");
    tokio::select! {
        outcome = carry_out(&grant, &row, &endpoint) => outcome,
        never = keep_claim(&grant) => never,
    }
}

/// Renews the claim for as long as it is polled. A gateway that is gone renews nothing, and another takes over soon; one whose
/// server takes its time keeps the grant to itself.
async fn keep_claim<T>(grant: &Grant) -> T {
    let Shared { store, settings, owner, clock, .. } = &*grant.shared;
    loop {
        clock.sleep(settings.lease / LEASE_RENEWALS).await;
        if let Err(error) = store.extend_lease(&grant.key, owner, settings.lease).await {
            tracing::warn!(target: "switchback::token", client = %grant.client, %error, "the claim to the refresh was not renewed");
        }
    }
}

/// The refresh itself, once it is ours to do.
async fn carry_out(grant: &Arc<Grant>, row: &GrantRow, endpoint: &Endpoint) -> Result<(), TokenError> {
    let Ok(secrets) = &row.secrets else { return give_up(grant, row, "damaged").await };
    let (Some(id), Some(secret)) = (&secrets.app_id, &secrets.app_secret) else {
        return give_up(grant, row, "no_application").await;
    };
    let app = App { id: id.clone(), secret: secret.clone() };
    let spent = match (row.flow, &secrets.refresh) {
        (Flow::ClientCredentials, _) => None,
        (Flow::AuthorizationCode, Some(refresh)) => Some(refresh),
        (Flow::AuthorizationCode, None) => return give_up(grant, row, "no_refresh_token").await,
    };
    let access = secrets.access.as_ref();
    let exchange = spend(grant, endpoint, &app, spent, access).await;
    let Some((failure, pause)) = retry_pause(grant, &exchange) else {
        return settle(grant, row, endpoint, &app, spent, exchange).await;
    };
    tracing::info!(
        target: "switchback::token", client = %grant.client, failure = failure.what, retry_in_ms = pause.as_millis() as u64,
        "the authorization server failed while calls wait for a token"
    );
    grant.shared.clock.sleep(pause).await;
    // A server that failed may have spent the refresh token all the same: a refusal now has to be read in that light.
    let outcome_unknown = row.outcome_unknown || failure.outcome_unknown;
    let row = GrantRow { outcome_unknown, ..row.clone() };
    let exchange = spend(grant, endpoint, &app, spent, access).await;
    settle(grant, &row, endpoint, &app, spent, exchange).await
}

/// The failure that is worth one retry at once, and the pause before it: the server failed or was not reached, and no token
/// lives, so that calls wait for this refresh. An answer that was lost is not retried here, since the refresh token may be
/// spent, and neither is a server that wants to be left alone for longer. No bound of its own is needed: a call waits no longer
/// than its `total_timeout`, and the tokens of a later answer serve the calls that follow.
fn retry_pause<'a>(grant: &Grant, exchange: &'a Exchange) -> Option<(&'a Failure, Duration)> {
    let Exchange::Failed(failure) = exchange else { return None };
    let asked = failure.retry_after.unwrap_or_default();
    if !failure.is_outage || asked > RETRY_PAUSE_MAX || grant.current().is_some() {
        return None;
    }
    Some((failure, RETRY_PAUSE.mul_f64(jitter()).max(asked)))
}

/// A share from a half to the whole, by which pauses differ.
fn jitter() -> f64 {
    0.5 + fastrand::f64() / 2.0
}

/// Claims the grant. `None` means that there is nothing left to do: it has moved on, or changed its state.
async fn begin(grant: &Arc<Grant>, generation: i64) -> Result<Option<GrantRow>, StoreError> {
    let shared = &grant.shared;
    loop {
        match shared.store.begin_refresh(&grant.key, generation, &shared.owner, shared.settings.lease).await?
        {
            Begin::Started(row) => return Ok(Some(row)),
            Begin::Moved(row) => {
                grant.adopt(&row);
                return Ok(None);
            }
            Begin::Leased(at_most) => shared.clock.sleep(at_most.min(LEASE_POLL)).await,
        }
    }
}

async fn spend(
    grant: &Grant,
    endpoint: &Endpoint,
    app: &App,
    spent: Option<&Secret<String>>,
    access: Option<&Secret<String>>,
) -> Exchange {
    step(grant, "sending");
    let offer = match spent {
        Some(refresh) => Offer::RefreshToken { refresh, access },
        None => Offer::Application,
    };
    let exchange = endpoint.exchange(app, offer).await;
    step(grant, "received");
    exchange
}

/// Acts on the answer to what was `spent`, the refresh token of `row` or the one before.
async fn settle(
    grant: &Arc<Grant>,
    row: &GrantRow,
    endpoint: &Endpoint,
    app: &App,
    spent: Option<&Secret<String>>,
    exchange: Exchange,
) -> Result<(), TokenError> {
    let refusal = match exchange {
        Exchange::Tokens(answer) => return keep(grant, row, spent, answer).await,
        Exchange::Failed(failure) => {
            lock(&grant.backoff).refusals = 0;
            return retry_later(grant, row, failure).await;
        }
        Exchange::Refused(refusal) => refusal,
    };
    if let Some(moved) = moved_meanwhile(grant, row).await {
        grant.adopt(&moved);
        count(grant, "moved");
        return Ok(());
    }
    match (refusal.about, row.flow) {
        // Another try cannot help (RFC 6749, section 5.2): the refresh token has ended.
        (RefusalAbout::Grant, Flow::AuthorizationCode) => {
            let secrets = row.secrets.as_ref().ok();
            match secrets.and_then(|secrets| secrets.previous_refresh.as_ref()) {
                // The server does not know the token it gave us last, and the access token that came with it has never
                // worked: it may have lost its last write. The token before that is worth one try; not so after an
                // interrupted refresh, where we know better why the server does not take the token.
                Some(previous) if !row.outcome_unknown => {
                    let mut last = row.clone();
                    if let Ok(secrets) = &mut last.secrets {
                        secrets.previous_refresh = None;
                    }
                    let access = secrets.and_then(|secrets| secrets.access.as_ref());
                    let exchange = spend(grant, endpoint, app, Some(previous), access).await;
                    Box::pin(settle(grant, &last, endpoint, app, Some(previous), exchange)).await
                }
                _ => give_up(grant, row, reason(&refusal, row)).await,
            }
        }
        (RefusalAbout::Application, _) => {
            misconfigured(grant, row, &refusal, Some(grant.shared.settings.retry_max)).await
        }
        // A grant of client credentials spends nothing, so nothing of it can have ended.
        (RefusalAbout::Unknown, _) | (RefusalAbout::Grant, Flow::ClientCredentials) => {
            refused_for_now(grant, row, &refusal).await
        }
    }
}

/// Handles a refusal that may pass: something before the server may have answered, or the server may be out of order. The refresh
/// is repeated with growing pauses, without end. After a few refusals in a row the state is *misconfigured*, since an operator may
/// have to act.
async fn refused_for_now(grant: &Arc<Grant>, row: &GrantRow, refusal: &Refusal) -> Result<(), TokenError> {
    let refusals = {
        let mut backoff = lock(&grant.backoff);
        backoff.refusals = backoff.refusals.saturating_add(1);
        backoff.refusals
    };
    if refusals >= REFUSALS_MAX {
        return misconfigured(grant, row, refusal, None).await;
    }
    // A refusal without a reason does not tell whether an earlier refresh spent the refresh token.
    let failure = Failure {
        what: format!("refused ({refusal})"),
        outcome_unknown: row.outcome_unknown,
        is_outage: false,
        retry_after: None,
    };
    retry_later(grant, row, failure).await
}

/// Says of a refused grant whether we had lost track of it before, as that is another story for whoever looks into it.
fn reason<'a>(refusal: &'a Refusal, row: &GrantRow) -> &'a str {
    if row.outcome_unknown { "refresh_interrupted" } else { &refusal.code }
}

/// Whether a sibling has refreshed while we were refused.
async fn moved_meanwhile(grant: &Grant, row: &GrantRow) -> Option<GrantRow> {
    let now = grant.shared.store.grant_of(&grant.key.client).await.ok()?;
    (now.generation > row.generation).then_some(now)
}

/// Makes new tokens durable, then lets them be used.
async fn keep(
    grant: &Arc<Grant>,
    row: &GrantRow,
    spent: Option<&Secret<String>>,
    answer: TokenAnswer,
) -> Result<(), TokenError> {
    // An application that asks for itself has no use for a refresh token (RFC 6749, section 4.4.3).
    let refresh = answer.refresh.filter(|_| spent.is_some());
    let tokens = NewTokens {
        access: answer.access,
        previous_refresh: refresh.as_ref().and(spent).cloned(),
        // RFC 6749 §6: an answer without a refresh token leaves the old one valid.
        refresh: refresh.or_else(|| spent.cloned()),
        issued_ms: grant.shared.clock.unix_ms(),
        lifetime_ms: answer.lifetime.map(|lifetime| i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX)),
    };
    for pause in PERSIST_PAUSES {
        match persist(grant, row, &tokens).await {
            Ok(()) => {
                step(grant, "persisted");
                *lock(&grant.backoff) = Backoff::default();
                count(grant, "ok");
                tracing::info!(target: "switchback::token", client = %grant.client, generation = grant.generation(), "refreshed");
                step(grant, "woken");
                return Ok(());
            }
            Err(error) => {
                tracing::error!(target: "switchback::token", client = %grant.client, %error, "new tokens not stored, trying again");
            }
        }
        grant.shared.clock.sleep(pause).await;
    }
    count(grant, "unpersisted");
    use_unpersisted(grant, row, tokens);
    Ok(())
}

/// One try at storing. What the store then holds is what we use, be it ours or a sibling's.
async fn persist(grant: &Grant, row: &GrantRow, tokens: &NewTokens) -> Result<(), StoreError> {
    match grant.shared.store.finish_refresh(&grant.key, row.generation, tokens).await? {
        Finish::Stored(stored) => grant.adopt(&stored),
        // An earlier try may have reached the disk without our learning so: then these are our tokens.
        Finish::Moved(stored) if holds(&stored, tokens) => grant.adopt(&stored),
        Finish::Moved(stored) => grant.adopt_instead(&stored),
    }
    Ok(())
}

fn holds(row: &GrantRow, tokens: &NewTokens) -> bool {
    let access = row.secrets.as_ref().ok().and_then(|secrets| secrets.access.as_ref());
    access.is_some_and(|access| access.expose() == tokens.access.expose())
}

/// The store refuses to take the tokens, and the old ones may be dead already: serve from memory, show that we are not ready,
/// and go on trying to store them.
fn use_unpersisted(grant: &Arc<Grant>, row: &GrantRow, tokens: NewTokens) {
    let secrets = row.secrets.as_ref().ok();
    let in_memory = GrantRow {
        generation: row.generation + 1,
        state: GrantState::Active,
        reason: None,
        issued_ms: Some(tokens.issued_ms),
        lifetime_ms: tokens.lifetime_ms,
        outcome_unknown: false,
        secrets: Ok(Opened {
            app_id: secrets.and_then(|secrets| secrets.app_id.clone()),
            app_secret: secrets.and_then(|secrets| secrets.app_secret.clone()),
            access: Some(tokens.access.clone()),
            refresh: tokens.refresh.clone(),
            previous_refresh: tokens.previous_refresh.clone(),
        }),
        ..row.clone()
    };
    grant.adopt(&in_memory);
    grant.unpersisted.store(true, Ordering::Relaxed);
    show_unpersisted(&grant.shared, 1);
    let (grant, row) = (grant.clone(), row.clone());
    grant.shared.clone().spawn(async move {
        loop {
            grant.shared.clock.sleep(PERSIST_LATER).await;
            match persist(&grant, &row, &tokens).await {
                Ok(()) => break,
                Err(error) => {
                    tracing::error!(target: "switchback::token", client = %grant.client, %error, "new tokens still not stored");
                }
            }
        }
        grant.unpersisted.store(false, Ordering::Relaxed);
        show_unpersisted(&grant.shared, -1);
        step(&grant, "persisted");
    });
}

fn show_unpersisted(shared: &Shared, by: isize) {
    let before = match by {
        1 => shared.unpersisted.fetch_add(1, Ordering::Relaxed),
        _ => shared.unpersisted.fetch_sub(1, Ordering::Relaxed),
    };
    metrics::tokens_unpersisted((before as f64) + (by as f64));
}

/// The server gave no usable answer: leave it alone for a while. The access token goes on serving as long as it lives.
async fn retry_later(grant: &Arc<Grant>, row: &GrantRow, failure: Failure) -> Result<(), TokenError> {
    count(grant, "failed");
    let error = TokenError::Server(failure.what.clone());
    let wait = back_off(grant, failure.retry_after, error.clone());
    tracing::warn!(
        target: "switchback::token", client = %grant.client, failure = failure.what, retry_in_ms = wait.as_millis() as u64,
        "refresh failed"
    );
    let shared = &grant.shared;
    let abandoned = shared
        .store
        .abandon_refresh(&grant.key, row.generation, &shared.owner, &failure.what, failure.outcome_unknown)
        .await;
    if let Err(error) = abandoned {
        tracing::warn!(target: "switchback::token", client = %grant.client, %error, "claim not given back; it ends by itself");
    }
    Err(error)
}

/// The server refuses how it is asked. What the grant rests on is not spent: it is tried again now and then, since the mistake
/// may be mended on the server's side. `pause` is the shortest time until then.
async fn misconfigured(
    grant: &Arc<Grant>,
    row: &GrantRow,
    refusal: &Refusal,
    pause: Option<Duration>,
) -> Result<(), TokenError> {
    count(grant, "misconfigured");
    let error = TokenError::Misconfigured(refusal.code.clone());
    let wait = back_off(grant, pause, error.clone());
    stand(grant, row, GrantState::Misconfigured, &refusal.code).await;
    tracing::error!(
        target: "switchback::token", client = %grant.client, error = refusal.code, retry_in_ms = wait.as_millis() as u64,
        "the authorization server refuses the application or the request; check client_id, client_secret and the section `oauth`"
    );
    Err(error)
}

/// Doubles the time to leave the server alone, with jitter, from `retry_min` to `retry_max`, and never less than it asked for.
fn back_off(grant: &Grant, asked: Option<Duration>, cause: TokenError) -> Duration {
    let Settings { retry_min, retry_max, .. } = grant.shared.settings;
    let mut backoff = lock(&grant.backoff);
    let wait = retry_min.saturating_mul(1 << backoff.failures.min(20)).min(retry_max);
    let wait = wait.mul_f64(jitter()).max(asked.unwrap_or_default());
    backoff.failures = backoff.failures.saturating_add(1);
    backoff.until = grant.shared.clock.elapsed().saturating_add(wait);
    backoff.cause = Some(cause);
    wait
}

/// The store failed, not the server: try again soon, however often it has been tried.
fn wait_for_store(grant: &Grant, cause: TokenError) {
    let mut backoff = lock(&grant.backoff);
    backoff.until = grant.shared.clock.elapsed().saturating_add(grant.shared.settings.retry_min);
    backoff.cause = Some(cause);
}

/// Puts the grant into `state`, in the store if it can. Gives whether it has moved on instead.
async fn stand(grant: &Arc<Grant>, row: &GrantRow, state: GrantState, reason: &str) -> bool {
    match grant.shared.store.fail_grant(&grant.key, row.generation, state, reason).await {
        Ok(now) => {
            grant.adopt(&now);
            now.generation > row.generation
        }
        Err(error) => {
            tracing::warn!(target: "switchback::token", client = %grant.client, %error, "state not stored");
            grant.adopt(&GrantRow { state, reason: Some(reason.to_owned()), ..row.clone() });
            false
        }
    }
}

/// The grant cannot be refreshed any more. Its access token serves until it ends; then requests are told to reconnect.
async fn give_up(grant: &Arc<Grant>, row: &GrantRow, reason: &str) -> Result<(), TokenError> {
    count(grant, "refused");
    if stand(grant, row, GrantState::NeedsReconnect, reason).await {
        return Ok(());
    }
    tracing::error!(target: "switchback::token", client = %grant.client, reason, "grant needs to be connected again");
    step(grant, "given_up");
    Err(TokenError::NeedsReconnect(reason.to_owned()))
}

/// Drops the previous refresh token once the newest access token has worked.
pub(super) async fn forget_previous(grant: Arc<Grant>, generation: i64) {
    if let Err(error) = grant.shared.store.forget_previous(&grant.key, generation).await {
        tracing::debug!(target: "switchback::token", client = %grant.client, %error, "previous refresh token kept");
    }
}

fn step(grant: &Grant, step: &'static str) {
    tracing::debug!(target: "switchback::token", client = %grant.client, step, "refresh");
}

fn count(grant: &Grant, result: &'static str) {
    metrics::token_refreshed(&grant.client, result);
}
