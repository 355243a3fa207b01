//! One refresh of one grant, ordered so that no usable grant is lost:
//!
//! 1. claim the grant and commit the *intent* to spend its refresh token,
//! 2. spend the refresh token,
//! 3. commit the new tokens,
//! 4. only then publish them to callers.
//!
//! A process that dies between 1 and 3 leaves an intent behind. Its successor finds "outcome
//! unknown" and tries the refresh token once more. Either that succeeds, or the token turns out to
//! be spent; the grant then needs a person to connect it again. Each step is traced with a `step`
//! field, at which tests interrupt the process.

use super::application::OAuthApp;
use super::grant::{Backoff, Flight, Grant, RefreshContext, RefreshResult, lock};
use super::wire::{
    ExchangeFailure, Offer, RefusalAbout, TokenAnswer, TokenEndpoint, TokenExchange, TokenRefusal,
};
use super::{RefreshSettings, TokenError};
use crate::secret::Secret;
use crate::store::{Begin, Finish, GrantFlow, GrantRow, GrantState, NewTokens, Opened, StoreError};
use crate::telemetry::metrics;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Pauses between the attempts to store new tokens, after which the tokens are published without
/// being stored.
const PERSIST_PAUSES: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(200), Duration::from_millis(500)];
/// Pause between later attempts to store them.
const PERSIST_LATER: Duration = Duration::from_secs(1);
/// Interval for checking whether another gateway has finished its refresh.
const LEASE_POLL: Duration = Duration::from_millis(100);
/// Number of renewals of a claim within its duration.
const LEASE_RENEWALS: u32 = 4;
/// Consecutive temporary refusals after which the grant counts as misconfigured: about half a
/// minute, given the pauses between them. Refreshes continue after that.
const REFUSALS_MAX: u32 = 6;
/// Longest pause before the single retry within a refresh, short because calls are waiting.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Longest `Retry-After` that this retry waits for.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(2);

impl Grant {
    /// Refreshes `generation`, or joins the running refresh. `Ok` means that the grant has a later
    /// generation.
    pub(super) fn refresh(self: &Arc<Self>, generation: i64) -> BoxFuture<'static, RefreshResult> {
        // One lock covers the check, the start and the registration. Without it, two callers could spend
        // the same refresh token, which many servers treat as theft and answer by revoking the grant.
        let mut slot = lock(&self.flight);
        // Checked under the lock, so that a refresh that has just finished is not repeated.
        if self.generation() > generation {
            return std::future::ready(Ok(())).boxed();
        }
        if let Some(flight) = &*slot
            && !flight.task.is_finished()
        {
            return flight.outcome.clone().boxed();
        }
        if let Err(refused) = may_begin(self) {
            return std::future::ready(Err(refused)).boxed();
        }
        let task = self.shared.spawn(run(self.clone(), generation));
        let handle = task.abort_handle();
        // A panic of the task must not leave callers waiting for a result that never arrives.
        let outcome = task.map(|ended| ended.unwrap_or(Err(TokenError::Interrupted))).boxed().shared();
        *slot = Some(Flight { task: handle, outcome: outcome.clone() });
        outcome.boxed()
    }
}

/// Checks whether a refresh may start now.
fn may_begin(grant: &Grant) -> Result<(), TokenError> {
    if !grant.state().can_refresh() {
        return Err(grant.why_not());
    }
    if grant.shared.endpoint.load().is_none() {
        return Err(TokenError::NoServer);
    }
    // A further refresh would spend a refresh token that the store does not contain. If the process
    // then died, neither token would be left.
    if grant.unpersisted.load(Ordering::Relaxed) {
        return Err(TokenError::Store("new tokens are not stored yet".to_owned()));
    }
    // The pause belongs to the grant, not to a call: otherwise each waiting call would repeat the
    // failing request.
    let (backoff, now) = (lock(&grant.backoff), grant.shared.clock.elapsed());
    if backoff.until <= now {
        return Ok(());
    }
    let cause = backoff.cause.clone().unwrap_or(TokenError::Expired);
    Err(TokenError::CoolingDown { wait: backoff.until - now, cause: Box::new(cause) })
}

/// Refreshes `generation` of a grant. Runs in its own task, so that a dropped caller cannot cancel
/// it.
async fn run(grant: Arc<Grant>, generation: i64) -> Result<(), TokenError> {
    let shared = grant.shared.clone();
    let Some(endpoint) = shared.endpoint.load_full() else { return Err(TokenError::NoServer) };
    let row = match begin(&grant, generation).await {
        Ok(Some(row)) => row,
        Ok(None) => {
            // Another gateway was faster, or the state has changed. `begin` has adopted the stored
            // row, which decides the result.
            count(&grant, "moved");
            return if grant.generation() > generation { Ok(()) } else { Err(grant.why_not()) };
        }
        Err(error) => {
            count(&grant, "store");
            tracing::warn!(target: "switchback::token", client = %grant.client, %error, "the refresh was not started, because its result could not be stored");
            // Turns the readiness check red: traffic should move to a gateway that can refresh.
            shared.store_writes.store(false, Ordering::Relaxed);
            let error = TokenError::Store(error.to_string());
            wait_for_store(&grant, error.clone());
            return Err(error);
        }
    };
    shared.store_writes.store(true, Ordering::Relaxed);
    step(&grant, "intent");
    tokio::select! {
        // The claim is renewed only while the refresh runs; `keep_claim` never completes.
        outcome = carry_out(&grant, &row, &endpoint) => outcome,
        // A claim that outlives its process by much would block the other gateways; a short one
        // could run out during a slow exchange, and two gateways would spend the same refresh
        // token.
        never = keep_claim(&grant) => never,
    }
}

/// Renews the claim for as long as it is polled. A crashed gateway stops renewing and is soon
/// replaced; one with a slow server retains the grant.
async fn keep_claim<T>(grant: &Grant) -> T {
    let RefreshContext { store, settings, owner, clock, .. } = &*grant.shared;
    loop {
        // Several renewals per lease: one failed write to the store does not lose the claim.
        clock.sleep(settings.lease / LEASE_RENEWALS).await;
        if let Err(error) = store.extend_lease(&grant.key, owner, settings.lease).await {
            tracing::warn!(target: "switchback::token", client = %grant.client, %error, "the lease of a refresh was not renewed");
        }
    }
}

/// Carries out a refresh that this process has claimed.
async fn carry_out(grant: &Arc<Grant>, row: &GrantRow, endpoint: &TokenEndpoint) -> Result<(), TokenError> {
    let Ok(secrets) = &row.secrets else { return give_up(grant, row, "damaged").await };
    let Some(app) = OAuthApp::of_grant(secrets) else {
        return give_up(grant, row, "no_application").await;
    };
    let spent = match (row.flow, &secrets.refresh) {
        (GrantFlow::ClientCredentials, _) => None,
        (GrantFlow::AuthorizationCode, Some(refresh)) => Some(refresh),
        (GrantFlow::AuthorizationCode, None) => return give_up(grant, row, "no_refresh_token").await,
    };
    // Some servers require the previous access token in a refresh (`refresh_sends`).
    let access = secrets.access.as_ref();
    let exchange = spend(grant, endpoint, &app, spent, access).await;
    let Some((failure, pause)) = retry_pause(grant, &exchange) else {
        return settle(grant, row, endpoint, &app, spent, exchange).await;
    };
    tracing::info!(
        target: "switchback::token", client = %grant.client, failure = failure.what, retry_in_ms = pause.as_millis() as u64,
        "the authorization server failed while calls wait for a token"
    );
    // The claim continues during the pause, so no other gateway sends the same refresh token
    // meanwhile.
    grant.shared.clock.sleep(pause).await;
    // A server that failed may still have spent the refresh token, so a refusal now is treated as
    // an interrupted refresh.
    let outcome_unknown = row.outcome_unknown || failure.outcome_unknown;
    let row = GrantRow { outcome_unknown, ..row.clone() };
    let exchange = spend(grant, endpoint, &app, spent, access).await;
    settle(grant, &row, endpoint, &app, spent, exchange).await
}

/// Returns the failure that warrants one immediate retry, and the pause before it: the server
/// failed or was unreachable, and no token is valid, so calls are waiting. A lost response is not
/// retried, since the refresh token may be spent. Neither is a server that requests a longer pause.
/// The retry needs no timeout of its own: a call waits no longer than its `total_timeout`, and a
/// later response still serves the calls that follow.
fn retry_pause<'a>(grant: &Grant, exchange: &'a TokenExchange) -> Option<(&'a ExchangeFailure, Duration)> {
    let TokenExchange::Failed(failure) = exchange else { return None };
    let asked = failure.retry_after.unwrap_or_default();
    if !failure.is_outage || asked > RETRY_PAUSE_MAX || grant.current().is_some() {
        return None;
    }
    Some((failure, RETRY_PAUSE.mul_f64(jitter()).max(asked)))
}

/// Returns a random factor from 0.5 to 1 that spreads pauses.
fn jitter() -> f64 {
    0.5 + fastrand::f64() / 2.0
}

/// Claims the grant. Returns `None` if no refresh is needed: the grant has a later generation or
/// another state.
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
            // Polled rather than awaited: the databases have no common notification, and the holder
            // may die.
            Begin::Leased(at_most) => shared.clock.sleep(at_most.min(LEASE_POLL)).await,
        }
    }
}

async fn spend(
    grant: &Grant,
    endpoint: &TokenEndpoint,
    app: &OAuthApp,
    spent: Option<&Secret<String>>,
    access: Option<&Secret<String>>,
) -> TokenExchange {
    step(grant, "sending");
    let offer = match spent {
        Some(refresh) => Offer::RefreshToken { refresh, access },
        None => Offer::Application,
    };
    let exchange = endpoint.exchange(app, offer).await;
    step(grant, "received");
    exchange
}

/// Handles the response to the `spent` token, the refresh token of `row` or its predecessor.
async fn settle(
    grant: &Arc<Grant>,
    row: &GrantRow,
    endpoint: &TokenEndpoint,
    app: &OAuthApp,
    spent: Option<&Secret<String>>,
    exchange: TokenExchange,
) -> Result<(), TokenError> {
    let refusal = match exchange {
        TokenExchange::Tokens(answer) => return keep(grant, row, spent, answer).await,
        TokenExchange::Failed(failure) => {
            // Only refusals in a row count: an outage between two refusals points to a temporary
            // cause.
            lock(&grant.backoff).refusals = 0;
            return retry_later(grant, row, failure).await;
        }
        TokenExchange::Refused(refusal) => refusal,
    };
    // Checked before the refusal is acted on. The refused token may just have been replaced by
    // another gateway or by a new authorization, and the grant must not be marked as ended then.
    if let Some(moved) = moved_meanwhile(grant, row).await {
        grant.adopt(&moved);
        count(grant, "moved");
        return Ok(());
    }
    match (refusal.about, row.flow) {
        // The refresh token has ended and no retry can help (RFC 6749, section 5.2).
        (RefusalAbout::Grant, GrantFlow::AuthorizationCode) => {
            let secrets = row.secrets.as_ref().ok();
            match secrets.and_then(|secrets| secrets.previous_refresh.as_ref()) {
                // The server does not recognize the token that it issued last, and the access token
                // issued with it has never worked, so the server may have lost its last write. The
                // previous token warrants one attempt. After an interrupted refresh it does not,
                // because there the likelier reason is that the token was spent.
                Some(previous) if !row.outcome_unknown => {
                    let mut last = row.clone();
                    if let Ok(secrets) = &mut last.secrets {
                        // Prevents a second attempt with the previous token, and so an endless
                        // recursion.
                        secrets.previous_refresh = None;
                    }
                    let access = secrets.and_then(|secrets| secrets.access.as_ref());
                    let exchange = spend(grant, endpoint, app, Some(previous), access).await;
                    Box::pin(settle(grant, &last, endpoint, app, Some(previous), exchange)).await
                }
                _ => give_up(grant, row, reason(&refusal, row)).await,
            }
        }
        // The longest pause: only an operator can change the application, and each attempt is
        // logged.
        (RefusalAbout::Application, _) => {
            mark_misconfigured(grant, row, &refusal, Some(grant.shared.settings.retry_max)).await
        }
        // A client credentials grant spends nothing, so it cannot have ended.
        (RefusalAbout::Unknown, _) | (RefusalAbout::Grant, GrantFlow::ClientCredentials) => {
            refused_for_now(grant, row, &refusal).await
        }
    }
}

/// Handles a refusal that may be temporary: an intermediary may have answered, or the server may be
/// faulty. The refresh is repeated with growing pauses, without limit. After several refusals in a
/// row the state is *misconfigured*, since an operator may have to act.
async fn refused_for_now(
    grant: &Arc<Grant>,
    row: &GrantRow,
    refusal: &TokenRefusal,
) -> Result<(), TokenError> {
    let refusals = {
        let mut backoff = lock(&grant.backoff);
        backoff.refusals = backoff.refusals.saturating_add(1);
        backoff.refusals
    };
    if refusals >= REFUSALS_MAX {
        return mark_misconfigured(grant, row, refusal, None).await;
    }
    // A refusal without a reason does not reveal whether an earlier refresh spent the token.
    let failure = ExchangeFailure {
        what: format!("refused ({refusal})"),
        outcome_unknown: row.outcome_unknown,
        is_outage: false,
        retry_after: None,
    };
    retry_later(grant, row, failure).await
}

/// Returns the reason to record for a refused grant. An interrupted refresh has its own reason,
/// because its cause differs.
fn reason<'a>(refusal: &'a TokenRefusal, row: &GrantRow) -> &'a str {
    if row.outcome_unknown { "refresh_interrupted" } else { &refusal.code }
}

/// Returns the stored grant if another gateway refreshed it while this one was refused.
async fn moved_meanwhile(grant: &Grant, row: &GrantRow) -> Option<GrantRow> {
    let now = grant.shared.store.grant_of(&grant.key.client).await.ok()?;
    (now.generation > row.generation).then_some(now)
}

/// Stores new tokens, then publishes them.
async fn keep(
    grant: &Arc<Grant>,
    row: &GrantRow,
    spent: Option<&Secret<String>>,
    answer: TokenAnswer,
) -> Result<(), TokenError> {
    // A client credentials grant has no use for a refresh token (RFC 6749, section 4.4.3).
    let refresh = answer.refresh.filter(|_| spent.is_some());
    let tokens = NewTokens {
        access: answer.access,
        previous_refresh: refresh.as_ref().and(spent).cloned(),
        // A response without a refresh token leaves the old one valid (RFC 6749, section 6).
        refresh: refresh.or_else(|| spent.cloned()),
        issued_ms: grant.shared.clock.unix_ms(),
        lifetime_ms: answer.lifetime.map(|lifetime| i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX)),
    };
    // The old refresh token is spent, so these tokens are the only ones. Losing them would mean
    // that a person has to connect the client again.
    for pause in PERSIST_PAUSES {
        match persist(grant, row, &tokens).await {
            Ok(()) => {
                step(grant, "persisted");
                // Reset only when the tokens are durable: a server that answers and a store that
                // fails still pause the next refresh.
                *lock(&grant.backoff) = Backoff::default();
                count(grant, "ok");
                tracing::info!(target: "switchback::token", client = %grant.client, generation = grant.generation(), "an access token was refreshed");
                step(grant, "woken");
                return Ok(());
            }
            Err(error) => {
                tracing::error!(target: "switchback::token", client = %grant.client, %error, "new tokens were not stored, trying again");
            }
        }
        grant.shared.clock.sleep(pause).await;
    }
    count(grant, "unpersisted");
    // Publishing breaks the order of the module doc on purpose. The client is served, and if the
    // process dies before the store recovers, the intent shows its successor that the token was
    // spent.
    use_unpersisted(grant, row, tokens);
    Ok(())
}

/// Makes one attempt to store the tokens, then uses the row that the store contains, written by
/// this gateway or another.
async fn persist(grant: &Grant, row: &GrantRow, tokens: &NewTokens) -> Result<(), StoreError> {
    match grant.shared.store.finish_refresh(&grant.key, row.generation, tokens).await? {
        Finish::Stored(stored) => grant.adopt(&stored),
        // An earlier attempt may have been committed although it reported an error; then these are
        // our own tokens.
        Finish::Moved(stored) if holds(&stored, tokens) => grant.adopt(&stored),
        // An authorization or another gateway replaced the grant. Its tokens are newer than ours,
        // even if the generation is equal.
        Finish::Moved(stored) => grant.adopt_instead(&stored),
    }
    Ok(())
}

fn holds(row: &GrantRow, tokens: &NewTokens) -> bool {
    let access = row.secrets.as_ref().ok().and_then(|secrets| secrets.access.as_ref());
    access.is_some_and(|access| access.expose() == tokens.access.expose())
}

/// Serves new tokens from memory because the store rejects them and the old ones may be invalid
/// already. Reports the gateway as not ready and keeps trying to store them.
fn use_unpersisted(grant: &Arc<Grant>, row: &GrantRow, tokens: NewTokens) {
    let secrets = row.secrets.as_ref().ok();
    let in_memory = GrantRow {
        // The number that the store will assign, so that calls which received a 401 with the old
        // token see a newer one.
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
    // A tracked task: a shutdown waits for it, since the tokens exist nowhere else.
    grant.shared.clone().spawn(async move {
        loop {
            grant.shared.clock.sleep(PERSIST_LATER).await;
            match persist(&grant, &row, &tokens).await {
                Ok(()) => break,
                Err(error) => {
                    tracing::error!(target: "switchback::token", client = %grant.client, %error, "new tokens are still not stored and would be lost with this process; check the store");
                }
            }
        }
        grant.unpersisted.store(false, Ordering::Relaxed);
        show_unpersisted(&grant.shared, -1);
        step(&grant, "persisted");
    });
}

fn show_unpersisted(shared: &RefreshContext, by: isize) {
    let before = match by {
        1 => shared.unpersisted.fetch_add(1, Ordering::Relaxed),
        _ => shared.unpersisted.fetch_sub(1, Ordering::Relaxed),
    };
    metrics::tokens_unpersisted((before as f64) + (by as f64));
}

/// Schedules a retry after the server sent no usable response. The access token remains in use
/// until it expires.
async fn retry_later(grant: &Arc<Grant>, row: &GrantRow, failure: ExchangeFailure) -> Result<(), TokenError> {
    count(grant, "failed");
    let error = TokenError::Server(failure.what.clone());
    let wait = back_off(grant, failure.retry_after, error.clone());
    tracing::warn!(
        target: "switchback::token", client = %grant.client, failure = failure.what, retry_in_ms = wait.as_millis() as u64,
        "the refresh failed and is tried again later"
    );
    let shared = &grant.shared;
    let abandoned = shared
        .store
        .abandon_refresh(&grant.key, row.generation, &shared.owner, &failure.what, failure.outcome_unknown)
        .await;
    if let Err(error) = abandoned {
        tracing::warn!(target: "switchback::token", client = %grant.client, %error, "the lease of a refresh was not released; it expires by itself");
    }
    Err(error)
}

/// Handles a rejection of the application or the request. The refresh token is not spent, so the
/// refresh is retried occasionally, in case the server's configuration is fixed. `pause` is the
/// shortest time until the next attempt.
async fn mark_misconfigured(
    grant: &Arc<Grant>,
    row: &GrantRow,
    refusal: &TokenRefusal,
    pause: Option<Duration>,
) -> Result<(), TokenError> {
    count(grant, "misconfigured");
    let error = TokenError::Misconfigured(refusal.code.clone());
    let wait = back_off(grant, pause, error.clone());
    stand(grant, row, GrantState::Misconfigured, &refusal.code).await;
    tracing::error!(
        target: "switchback::token", client = %grant.client, error = refusal.code, retry_in_ms = wait.as_millis() as u64,
        "the authorization server refuses the application or the request; check client_id, client_secret or client_key, and the section `oauth`"
    );
    Err(error)
}

/// Doubles the pause, with jitter, from `retry_min` to `retry_max`, and respects a longer pause
/// that the server requested.
fn back_off(grant: &Grant, asked: Option<Duration>, cause: TokenError) -> Duration {
    let RefreshSettings { retry_min, retry_max, .. } = grant.shared.settings;
    let mut backoff = lock(&grant.backoff);
    // The shift is capped, because a larger one would overflow; `retry_max` is reached long before.
    let wait = retry_min.saturating_mul(1 << backoff.failures.min(20)).min(retry_max);
    // The jitter is applied before the server's pause, which must not become shorter by it.
    let wait = wait.mul_f64(jitter()).max(asked.unwrap_or_default());
    backoff.failures = backoff.failures.saturating_add(1);
    backoff.until = grant.shared.clock.elapsed().saturating_add(wait);
    backoff.cause = Some(cause);
    wait
}

/// Schedules a retry after a store failure. The pause does not grow, because the server is not
/// involved.
fn wait_for_store(grant: &Grant, cause: TokenError) {
    let mut backoff = lock(&grant.backoff);
    backoff.until = grant.shared.clock.elapsed().saturating_add(grant.shared.settings.retry_min);
    backoff.cause = Some(cause);
}

/// Sets the state of the grant, and stores it if possible. Returns whether the grant has a later
/// generation instead.
async fn stand(grant: &Arc<Grant>, row: &GrantRow, state: GrantState, reason: &str) -> bool {
    match grant.shared.store.fail_grant(&grant.key, row.generation, state, reason).await {
        Ok(now) => {
            grant.adopt(&now);
            // A later generation makes this failure obsolete: the caller then has a usable token.
            now.generation > row.generation
        }
        Err(error) => {
            tracing::warn!(target: "switchback::token", client = %grant.client, %error, "the state of the grant was not stored");
            // The gateway must not go on refreshing just because the state could not be written.
            grant.adopt(&GrantRow { state, reason: Some(reason.to_owned()), ..row.clone() });
            false
        }
    }
}

/// Marks a grant as no longer refreshable. Its access token is used until it expires; then requests
/// fail with `needs_reconnect`.
async fn give_up(grant: &Arc<Grant>, row: &GrantRow, reason: &str) -> Result<(), TokenError> {
    count(grant, "refused");
    if stand(grant, row, GrantState::NeedsReconnect, reason).await {
        return Ok(());
    }
    tracing::error!(target: "switchback::token", client = %grant.client, reason, "the grant has ended; the client must be connected again");
    step(grant, "given_up");
    Err(TokenError::NeedsReconnect(reason.to_owned()))
}

fn step(grant: &Grant, step: &'static str) {
    tracing::debug!(target: "switchback::token", client = %grant.client, step, "refresh");
}

fn count(grant: &Grant, result: &'static str) {
    metrics::token_refreshed(&grant.client, result);
}
