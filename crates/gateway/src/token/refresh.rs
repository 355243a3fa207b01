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

use super::grant::{Grant, lock};
use super::wire::{App, Endpoint, Exchange, Failure, Offer, TokenAnswer};
use super::{Settings, TokenError};
use crate::clock::Clock;
use crate::secret::Secret;
use crate::store::{Begin, Finish, GrantRow, NewTokens, Opened, Store, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// Tries at storing new tokens before those that wait for them are let go on regardless, and the pauses between.
const PERSIST_PAUSES: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(200), Duration::from_millis(500)];
/// The pause between tries after that.
const PERSIST_LATER: Duration = Duration::from_secs(1);
/// How often to look whether another gateway has finished its refresh.
const LEASE_POLL: Duration = Duration::from_millis(100);

/// What the grants of one gateway have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub store: Store,
    pub endpoint: Option<Endpoint>,
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
    /// For how long a claim holds: longer than the slowest exchange and the slowest store together, so that no second gateway
    /// spends the refresh token while the first still may get its answer.
    fn lease(&self) -> Duration {
        let exchange = self.endpoint.as_ref().map_or(Duration::ZERO, |endpoint| endpoint.oauth().timeout);
        // Twice: the previous refresh token may be tried as well.
        exchange * 2 + Duration::from_secs(15)
    }
}

/// Whether a refresh may start now at all.
pub(super) fn may_begin(grant: &Grant) -> Result<(), TokenError> {
    use crate::store::GrantState::Active;
    if grant.state() != Active {
        return Err(grant.why_not());
    }
    if grant.shared.endpoint.is_none() {
        return Err(TokenError::NoServer);
    }
    if grant.unpersisted.load(Ordering::Relaxed) {
        return Err(TokenError::Store("new tokens are not stored yet".to_owned()));
    }
    let (until, now) = (lock(&grant.backoff).until, grant.shared.clock.elapsed());
    if until > now { Err(TokenError::CoolingDown(until - now)) } else { Ok(()) }
}

/// Refreshes `generation` of a grant. Runs in a task of its own: nobody who waits can cut it short.
pub(super) async fn run(grant: Arc<Grant>, generation: i64) -> Result<(), TokenError> {
    let shared = grant.shared.clone();
    let Some(endpoint) = &shared.endpoint else { return Err(TokenError::NoServer) };
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
            wait_for_store(&grant);
            return Err(TokenError::Store(error.to_string()));
        }
    };
    shared.store_writes.store(true, Ordering::Relaxed);
    step(&grant, "intent");
    let Ok(secrets) = &row.secrets else { return give_up(&grant, &row, "damaged").await };
    let (Some(id), Some(secret)) = (&secrets.app_id, &secrets.app_secret) else {
        return give_up(&grant, &row, "no_application").await;
    };
    let app = App { id: id.clone(), secret: secret.clone() };
    let Some(refresh_token) = &secrets.refresh else {
        return give_up(&grant, &row, "no_refresh_token").await;
    };
    let exchange = spend(&grant, endpoint, &app, refresh_token).await;
    settle(&grant, &row, endpoint, &app, refresh_token, exchange).await
}

/// Claims the grant. `None` means that there is nothing left to do: it has moved on, or changed its state.
async fn begin(grant: &Arc<Grant>, generation: i64) -> Result<Option<GrantRow>, StoreError> {
    let shared = &grant.shared;
    loop {
        match shared.store.begin_refresh(&grant.key, generation, &shared.owner, shared.lease()).await? {
            Begin::Started(row) => return Ok(Some(row)),
            Begin::Moved(row) => {
                grant.adopt(&row);
                return Ok(None);
            }
            Begin::Leased(at_most) => shared.clock.sleep(at_most.min(LEASE_POLL)).await,
        }
    }
}

async fn spend(grant: &Grant, endpoint: &Endpoint, app: &App, refresh_token: &Secret<String>) -> Exchange {
    step(grant, "sending");
    let exchange = endpoint.exchange(app, Offer::RefreshToken(refresh_token)).await;
    step(grant, "received");
    exchange
}

/// Acts on the answer to the refresh token of `row`.
async fn settle(
    grant: &Arc<Grant>,
    row: &GrantRow,
    endpoint: &Endpoint,
    app: &App,
    spent: &Secret<String>,
    exchange: Exchange,
) -> Result<(), TokenError> {
    match exchange {
        Exchange::Tokens(answer) => keep(grant, row, spent, answer).await,
        Exchange::Failed(failure) => retry_later(grant, row, failure).await,
        Exchange::Refused(code) => {
            if let Some(moved) = moved_meanwhile(grant, row).await {
                grant.adopt(&moved);
                count(grant, "moved");
                return Ok(());
            }
            let previous = row.secrets.as_ref().ok().and_then(|secrets| secrets.previous_refresh.as_ref());
            match previous {
                // The server does not know the token it gave us last, and the access token that came with it has never
                // worked: it may have lost its last write. The token before that is worth one try; not so after an
                // interrupted refresh, where we know better why the server does not take the token.
                Some(previous) if code == "invalid_grant" && !row.outcome_unknown => {
                    let mut last = row.clone();
                    if let Ok(secrets) = &mut last.secrets {
                        secrets.previous_refresh = None;
                    }
                    let exchange = spend(grant, endpoint, app, previous).await;
                    Box::pin(settle(grant, &last, endpoint, app, previous, exchange)).await
                }
                _ => give_up(grant, row, reason(code, row)).await,
            }
        }
    }
}

/// Says of a refused grant whether we had lost track of it before, as that is another story for whoever looks into it.
fn reason(code: &'static str, row: &GrantRow) -> &'static str {
    if row.outcome_unknown && code == "invalid_grant" { "refresh_interrupted" } else { code }
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
    spent: &Secret<String>,
    answer: TokenAnswer,
) -> Result<(), TokenError> {
    let tokens = NewTokens {
        access: answer.access,
        previous_refresh: answer.refresh.as_ref().map(|_| spent.clone()),
        // RFC 6749 §6: an answer without a refresh token leaves the old one valid.
        refresh: Some(answer.refresh.unwrap_or_else(|| spent.clone())),
        issued_ms: grant.shared.clock.unix_ms(),
        lifetime_ms: answer.lifetime.map(|lifetime| i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX)),
    };
    for pause in PERSIST_PAUSES {
        match persist(grant, row, &tokens).await {
            Ok(()) => {
                step(grant, "persisted");
                lock(&grant.backoff).failures = 0;
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
    grant.shared.tasks.clone().spawn(async move {
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
    metrics::gauge!("switchback_token_unpersisted").set((before as f64) + (by as f64));
}

/// The server gave no usable answer: leave it alone for a while. The access token goes on serving as long as it lives.
async fn retry_later(grant: &Arc<Grant>, row: &GrantRow, failure: Failure) -> Result<(), TokenError> {
    count(grant, "failed");
    let wait = back_off(grant, failure.retry_after);
    tracing::warn!(
        target: "switchback::token", client = %grant.client, failure = failure.what, retry_in_ms = wait.as_millis() as u64,
        "refresh failed"
    );
    let shared = &grant.shared;
    let abandoned = shared
        .store
        .abandon_refresh(&grant.key, row.generation, &shared.owner, failure.outcome_unknown)
        .await;
    if let Err(error) = abandoned {
        tracing::warn!(target: "switchback::token", client = %grant.client, %error, "claim not given back; it ends by itself");
    }
    Err(TokenError::Server(failure.what))
}

/// Doubles the time to leave the server alone, with jitter, from `retry_min` to `retry_max`, and never less than it asked for.
fn back_off(grant: &Grant, asked: Option<Duration>) -> Duration {
    let Settings { retry_min, retry_max, .. } = grant.shared.settings;
    let mut backoff = lock(&grant.backoff);
    let wait = retry_min.saturating_mul(1 << backoff.failures.min(20)).min(retry_max);
    let wait = wait.mul_f64(0.5 + fastrand::f64() / 2.0).max(asked.unwrap_or_default());
    backoff.failures = backoff.failures.saturating_add(1);
    backoff.until = grant.shared.clock.elapsed().saturating_add(wait);
    wait
}

/// The store failed, not the server: try again soon, however often it has been tried.
fn wait_for_store(grant: &Grant) {
    lock(&grant.backoff).until = grant.shared.clock.elapsed().saturating_add(grant.shared.settings.retry_min);
}

/// The grant cannot be refreshed any more. Its access token serves until it ends; then requests are told to reconnect.
async fn give_up(grant: &Arc<Grant>, row: &GrantRow, reason: &'static str) -> Result<(), TokenError> {
    count(grant, "refused");
    let marked = grant.shared.store.fail_grant(&grant.key, row.generation, reason).await;
    match marked {
        Ok(now) if now.generation > row.generation => {
            grant.adopt(&now);
            return Ok(());
        }
        Ok(now) => grant.adopt(&now),
        Err(error) => {
            tracing::warn!(target: "switchback::token", client = %grant.client, %error, "state not stored");
            let state = crate::store::GrantState::NeedsReconnect;
            grant.adopt(&GrantRow { state, reason: Some(reason.to_owned()), ..row.clone() });
        }
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
    metrics::counter!("switchback_token_refresh_total", "client" => grant.client.to_string(), "result" => result)
        .increment(1);
}
