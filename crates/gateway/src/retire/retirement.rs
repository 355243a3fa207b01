//! Effective brownouts and sunsets: those of the configuration, and those set at run time, which
//! are in the store and take precedence.

use super::brownout::{Brownout, BrownoutReach, NewBrownout, millis};
use super::error::{BROWNOUTS_MAX, RetireError};
use super::standing::{CallStanding, Standings};
use super::sunset::ClientSunset;
use super::usage::UsageInfo;
use crate::clock::{Clock, rfc3339};
use crate::store::{AddedBrownout, BrownoutRow, Store, StoreError, SunsetRow, repeat};
use arc_swap::ArcSwap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval for reading changes of other processes from the store.
const POLL: Duration = Duration::from_secs(1);
/// Time for which a past window remains stored for display.
const ENDED_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// A side that clients use, and its operations.
#[derive(Clone, Debug, Default)]
pub struct SideOperations {
    /// The name of the side, such as `v2`.
    pub side: String,
    /// Method and path template of each, in the order of the contract.
    pub operations: Vec<String>,
}

/// The configured rules.
#[derive(Clone, Debug, Default)]
pub struct RetirementRules {
    /// Windows of the configuration; they cannot be removed at run time.
    pub brownouts: Vec<Brownout>,
    /// Sunsets of the configuration; those set at run time take precedence.
    pub sunsets: Vec<ClientSunset>,
    /// The sides and operations that run-time settings may name.
    pub served: Vec<SideOperations>,
}

/// The effective brownouts and sunsets. Clones share them.
#[derive(Clone, Debug)]
pub struct Retirement {
    shared: Arc<RetirementInner>,
    /// The author of changes made with this handle; `None` for that of the store.
    author: Option<Arc<str>>,
}

#[derive(Debug)]
struct RetirementInner {
    store: Store,
    clock: Clock,
    standings: ArcSwap<Standings>,
    state: Mutex<RetirementState>,
}

#[derive(Debug, Default)]
struct RetirementState {
    configured: RetirementRules,
    brownouts: Vec<Brownout>,
    sunsets: Vec<ClientSunset>,
    /// The store's write number up to which both lists are current.
    change: i64,
}

impl Retirement {
    /// Creates an empty state: no rules are configured and the store has not been read.
    pub fn new(store: Store) -> Retirement {
        let clock = store.clock().clone();
        let shared = RetirementInner { store, clock, standings: ArcSwap::default(), state: Mutex::default() };
        Retirement { shared: Arc::new(shared), author: None }
    }

    /// Returns a handle with another author of its changes in the history.
    #[must_use]
    pub fn by(&self, author: &str) -> Retirement {
        Retirement { author: Some(Arc::from(author)), ..self.clone() }
    }

    fn store(&self) -> Store {
        let store = &self.shared.store;
        self.author.as_deref().map_or_else(|| store.clone(), |author| store.by(author))
    }

    /// Replaces the configured rules.
    pub fn serve(&self, rules: RetirementRules) {
        let mut state = self.state();
        state.configured = rules;
        self.settle(&state);
    }

    /// Reads changes of other processes. Costs one small query if the store is unchanged.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn sync(&self) -> Result<(), StoreError> {
        // Read the number before the rows, so that a concurrent write is read again rather than
        // missed.
        let change = self.shared.store.change().await?;
        if self.state().change == change {
            return Ok(());
        }
        let brownouts = self.shared.store.brownouts().await?.into_iter().map(Brownout::of_row).collect();
        let sunsets = self.shared.store.sunsets().await?.into_iter().map(ClientSunset::of_row).collect();
        let mut state = self.state();
        // Another sync may have stored a later state while this one awaited its rows.
        if state.change <= change {
            (state.brownouts, state.sunsets, state.change) = (brownouts, sunsets, change);
            self.settle(&state);
        }
        Ok(())
    }

    /// Follows the store until dropped.
    pub async fn run(self) {
        let trouble = "brownouts and sunsets cannot be read from the store; the last known ones apply";
        repeat(&self.shared.clock, POLL, trouble, || self.sync()).await;
    }

    /// Returns all windows, recently finished ones included, the earliest first.
    pub fn brownouts(&self) -> Vec<Brownout> {
        let state = self.state();
        let mut all = [&state.configured.brownouts[..], &state.brownouts[..]].concat();
        all.sort_by(|one, other| (one.from_ms, &one.id).cmp(&(other.from_ms, &other.id)));
        all
    }

    /// Returns the sunsets of clients.
    pub fn sunsets(&self) -> Vec<ClientSunset> {
        self.state().sunsets()
    }

    /// Adds a window, effective on all gateways of the store.
    ///
    /// # Errors
    ///
    /// A named side, operation or client does not exist, the times are out of order or exceed a
    /// limit, there are too many windows, or the store fails.
    pub async fn add(&self, new: NewBrownout) -> Result<Brownout, RetireError> {
        let now_ms = self.shared.clock.unix_ms();
        let side = self.check(&new, now_ms).await?;
        let list = |names: &[String]| serde_json::to_string(names).expect("texts serialise");
        let row = BrownoutRow {
            id: fresh_id(),
            side,
            operations: list(&new.operations),
            clients: list(&new.clients),
            from_ms: new.from_ms,
            until_ms: new.until_ms,
            reason: new.reason,
            set_by: "operator".to_owned(),
            set_ms: now_ms,
        };
        let forget_ms = now_ms.saturating_sub(millis(ENDED_KEPT));
        match self.store().add_brownout(&row, BROWNOUTS_MAX, forget_ms, new.seen.as_deref()).await? {
            AddedBrownout::Done => {}
            AddedBrownout::TooMany => return Err(RetireError::TooMany),
            AddedBrownout::Changed => {
                self.sync().await?;
                return Err(RetireError::Changed);
            }
        }
        let added = Brownout::of_row(row);
        tracing::info!(
            id = added.id,
            side = added.side,
            from = rfc3339(added.from_ms),
            until = rfc3339(added.until_ms),
            "a brownout was added"
        );
        self.sync().await?;
        Ok(added)
    }

    /// Estimates the calls that a window would reject from usage counts, without adding it.
    ///
    /// # Errors
    ///
    /// As with [`Retirement::add`], except for a missing confirmation.
    pub async fn preview(
        &self,
        new: &NewBrownout,
        usage: &[UsageInfo],
    ) -> Result<BrownoutReach, RetireError> {
        let now_ms = self.shared.clock.unix_ms();
        let confirmed = NewBrownout { everything: new.is_for_all(), ..new.clone() };
        let side = self.check(&confirmed, now_ms).await?;
        Ok(BrownoutReach::new(usage, &side, &new.operations, &new.clients, now_ms))
    }

    /// Validates a new window and returns the name of its side.
    async fn check(&self, new: &NewBrownout, now_ms: i64) -> Result<String, RetireError> {
        self.sync().await?;
        new.check(now_ms)?;
        let side = self.side(new.side.as_deref())?;
        for operation in &new.operations {
            if !side.operations.contains(operation) {
                let (operation, known) = (operation.clone(), side.operations);
                return Err(RetireError::NoSuchOperation { operation, known });
            }
        }
        for client in &new.clients {
            self.shared.store.client(client).await?;
        }
        Ok(side.side)
    }

    /// Removes a window; its calls are answered again.
    ///
    /// # Errors
    ///
    /// No run-time window has this id, or the store fails.
    pub async fn remove(&self, id: &str) -> Result<(), RetireError> {
        if !self.store().remove_brownout(id).await? {
            return Err(RetireError::NoSuchBrownout(id.to_owned()));
        }
        tracing::info!(id, "a brownout was removed");
        self.sync().await?;
        Ok(())
    }

    /// Sets the time from which a client is rejected on fronts of a side. Without `at_ms` it is
    /// never rejected. `seen` is the `set_ms` that the caller has seen, 0 for none or a configured
    /// sunset. If the stored one differs, it is not changed.
    ///
    /// # Errors
    ///
    /// There is no such client or side, the side is ambiguous, the times are out of order, the
    /// stored sunset differs from `seen`, or the store fails.
    pub async fn set_sunset(
        &self,
        client: &str,
        side: Option<&str>,
        at_ms: Option<i64>,
        deprecated_ms: Option<i64>,
        announce: bool,
        seen: Option<i64>,
    ) -> Result<ClientSunset, RetireError> {
        self.sync().await?;
        self.shared.store.client(client).await?;
        let side = self.side(side)?.side;
        if let (Some(at), Some(deprecated)) = (at_ms, deprecated_ms)
            && at < deprecated
        {
            return Err(RetireError::Window("a side is deprecated before its sunset".to_owned()));
        }
        let row = SunsetRow {
            client: client.to_owned(),
            side,
            at_ms,
            deprecated_ms,
            announce,
            set_by: "operator".to_owned(),
            set_ms: self.shared.clock.unix_ms(),
        };
        if !self.store().put_sunset(&row, seen).await? {
            self.sync().await?;
            return Err(RetireError::Changed);
        }
        tracing::info!(client, side = row.side, at = at_ms.map(rfc3339), "the sunset of a client was set");
        self.sync().await?;
        Ok(ClientSunset::of_row(row))
    }

    /// Returns the state of a call at this moment, or `None` if no brownouts and sunsets exist.
    pub(crate) fn standing(&self, side: &str, operation: &str, client: &str) -> Option<CallStanding> {
        let standings = self.shared.standings.load();
        (!standings.is_empty())
            .then(|| standings.standing(side, operation, client, self.shared.clock.unix_ms()))
    }

    /// Returns the named side, or the only one.
    fn side(&self, named: Option<&str>) -> Result<SideOperations, RetireError> {
        let served = self.state().configured.served.clone();
        let sides = || served.iter().map(|side| side.side.as_str()).collect::<Vec<_>>().join(", ");
        match (named, served.as_slice()) {
            (None, [only]) => Ok(only.clone()),
            (None, _) => Err(RetireError::WhichSide(sides())),
            (Some(name), served) => {
                let found = served.iter().find(|side| side.side == name).cloned();
                found.ok_or_else(|| RetireError::NoSuchSide(name.to_owned(), sides()))
            }
        }
    }

    fn settle(&self, state: &RetirementState) {
        let brownouts = [&state.configured.brownouts[..], &state.brownouts[..]].concat();
        self.shared.standings.store(Arc::new(Standings::new(brownouts, &state.sunsets())));
    }

    /// Locks the state. The lock is held only briefly, never across an await.
    fn state(&self) -> MutexGuard<'_, RetirementState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RetirementState {
    /// Merges both lists; run-time sunsets override configured ones.
    fn sunsets(&self) -> Vec<ClientSunset> {
        let is_set = |configured: &&ClientSunset| {
            let same =
                |set: &ClientSunset| (&set.client, &set.side) == (&configured.client, &configured.side);
            self.sunsets.iter().any(same)
        };
        let configured = self.configured.sunsets.iter().filter(|one| !is_set(one));
        configured.chain(&self.sunsets).cloned().collect()
    }
}

/// Returns a random id that is short enough to type.
fn fresh_id() -> String {
    crate::store::seal::random::<4>().iter().map(|byte| format!("{byte:02x}")).collect()
}
