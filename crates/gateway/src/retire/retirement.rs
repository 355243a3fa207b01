//! Brownouts and sunsets that hold: those of the configuration, and those that are set while the gateway runs, which are in the
//! store and win.

use super::brownout::{Brownout, NewBrownout, Reach, millis};
use super::standing::{Standing, Standings};
use super::sunset::ClientSunset;
use super::usage::UsageInfo;
use crate::clock::{Clock, rfc3339};
use crate::store::{AddedBrownout, BrownoutRow, Store, StoreError, SunsetRow, repeat};
use arc_swap::ArcSwap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the store is looked at for what others have set.
const POLL: Duration = Duration::from_secs(1);
/// Windows that are kept.
const BROWNOUTS_MAX: u32 = 1_000;
/// How long a window is kept after its end, for people to see.
const ENDED_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// A side that clients speak, and its operations.
#[derive(Clone, Debug, Default)]
pub struct SideOperations {
    /// The name of the side, such as `v2`.
    pub side: String,
    /// Method and path template of each, in the order of the contract.
    pub operations: Vec<String>,
}

/// What is configured.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Windows of the configuration; they cannot be removed at run time.
    pub brownouts: Vec<Brownout>,
    /// Ends that the configuration names; those set at run time win.
    pub sunsets: Vec<ClientSunset>,
    /// What can be named at run time.
    pub served: Vec<SideOperations>,
}

/// Why something was not set.
#[derive(Debug, thiserror::Error)]
pub enum RetireError {
    /// No front serves such an operation.
    #[error("no front serves an operation `{operation}`")]
    NoSuchOperation {
        /// As it was given.
        operation: String,
        /// What may have been meant.
        known: Vec<String>,
    },
    /// No front speaks this side; after it, the sides that are spoken.
    #[error("no front speaks `{0}`; sides that clients speak: {1}")]
    NoSuchSide(String, String),
    /// No side was named, and there are several; the sides that are spoken.
    #[error("clients speak several sides; say which is meant: {0}")]
    WhichSide(String),
    /// It is for all calls of all clients, and nobody confirmed that.
    #[error(
        "it names neither operations nor clients; name some, or confirm that all calls of all clients are meant"
    )]
    NoScope,
    /// It is confirmed for everything, and names operations or clients.
    #[error(
        "it names operations or clients, and confirms all calls of all clients; leave out one of the two"
    )]
    TwoScopes,
    /// Its times are out of order, or it is beyond a bound; a sentence for the operator.
    #[error("{0}")]
    Window(String),
    /// No brownout that was added at run time has this id.
    #[error("there is no brownout `{0}`; those of the configuration are taken out there")]
    NoSuchBrownout(String),
    /// The store holds as many as it may.
    #[error("there are {BROWNOUTS_MAX} brownouts already; remove some first")]
    TooMany,
    /// Somebody else has changed meanwhile what was seen.
    #[error("it was changed meanwhile")]
    Changed,
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is switched off for a while, and for whom a side has ended. Clones share it.
#[derive(Clone, Debug)]
pub struct Retirement {
    shared: Arc<Shared>,
    /// The author of what is set with this handle; none: that of the store.
    author: Option<Arc<str>>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    clock: Clock,
    standings: ArcSwap<Standings>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    configured: Rules,
    brownouts: Vec<Brownout>,
    sunsets: Vec<ClientSunset>,
    /// The number of the store's write up to which both are known.
    change: i64,
}

impl Retirement {
    /// Nothing is configured, and nothing of the store is known yet.
    pub fn new(store: Store) -> Retirement {
        let clock = store.clock().clone();
        let shared = Shared { store, clock, standings: ArcSwap::default(), state: Mutex::default() };
        Retirement { shared: Arc::new(shared), author: None }
    }

    /// The same with another author of what is set, for the history.
    #[must_use]
    pub fn by(&self, author: &str) -> Retirement {
        Retirement { author: Some(Arc::from(author)), ..self.clone() }
    }

    fn store(&self) -> Store {
        let store = &self.shared.store;
        self.author.as_deref().map_or_else(|| store.clone(), |author| store.by(author))
    }

    /// From now on this is what is configured.
    pub fn serve(&self, rules: Rules) {
        let mut state = self.state();
        state.configured = rules;
        self.settle(&state);
    }

    /// Takes up what others have set. Costs one small query when nothing was written since the last time.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn sync(&self) -> Result<(), StoreError> {
        // Before the rows, so that what is written in between is read again and never missed.
        let change = self.shared.store.change().await?;
        if self.state().change == change {
            return Ok(());
        }
        let brownouts = self.shared.store.brownouts().await?.into_iter().map(Brownout::of_row).collect();
        let sunsets = self.shared.store.sunsets().await?.into_iter().map(ClientSunset::of_row).collect();
        let mut state = self.state();
        if state.change <= change {
            (state.brownouts, state.sunsets, state.change) = (brownouts, sunsets, change);
            self.settle(&state);
        }
        Ok(())
    }

    /// Follows the store for ever.
    pub async fn run(self) {
        repeat(
            &self.shared.clock,
            POLL,
            "brownouts and sunsets set elsewhere cannot be read; the last known ones stay",
            || self.sync(),
        )
        .await;
    }

    /// All windows, those that have ended not long ago among them, the earliest first.
    pub fn brownouts(&self) -> Vec<Brownout> {
        let state = self.state();
        let mut all = [&state.configured.brownouts[..], &state.brownouts[..]].concat();
        all.sort_by(|one, other| (one.from_ms, &one.id).cmp(&(other.from_ms, &other.id)));
        all
    }

    /// When sides end for clients.
    pub fn sunsets(&self) -> Vec<ClientSunset> {
        self.state().sunsets()
    }

    /// Adds a window, effective on all gateways of the store.
    ///
    /// # Errors
    ///
    /// Nobody serves what it names, its times are out of order or beyond a bound, there are too many, or the
    /// store fails.
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

    /// The calls that a window would turn away, by those that were counted up to now. Nothing is added.
    ///
    /// # Errors
    ///
    /// As with [`Retirement::add`], but for a missing confirmation.
    pub async fn preview(&self, new: &NewBrownout, usage: &[UsageInfo]) -> Result<Reach, RetireError> {
        let now_ms = self.shared.clock.unix_ms();
        let confirmed = NewBrownout { everything: new.is_for_all(), ..new.clone() };
        let side = self.check(&confirmed, now_ms).await?;
        Ok(Reach::new(usage, &side, &new.operations, &new.clients, now_ms))
    }

    /// Checks a window that is to be added; gives the name of its side.
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

    /// Removes a window; calls are answered again from then on.
    ///
    /// # Errors
    ///
    /// There is none of this id that was added at run time, or the store fails.
    pub async fn remove(&self, id: &str) -> Result<(), RetireError> {
        if !self.store().remove_brownout(id).await? {
            return Err(RetireError::NoSuchBrownout(id.to_owned()));
        }
        tracing::info!(id, "a brownout was removed");
        self.sync().await?;
        Ok(())
    }

    /// Sets from when on a client is refused on fronts of a side; without `at_ms` it never is. `seen` is the `set_ms` of what
    /// whoever sets it has seen, 0 for nothing or what is configured: where something else was set, nothing is changed.
    ///
    /// # Errors
    ///
    /// There is no such client or side, no side was named where there are several, the times are out of
    /// order, something else than `seen` was set, or the store fails.
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

    /// How a call stands at this moment; `None` where nothing at all is configured or set.
    pub(crate) fn standing(&self, side: &str, operation: &str, client: &str) -> Option<Standing> {
        let standings = self.shared.standings.load();
        (!standings.is_empty())
            .then(|| standings.standing(side, operation, client, self.shared.clock.unix_ms()))
    }

    /// The side that is meant: the one that clients speak, else the named one.
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

    fn settle(&self, state: &State) {
        let brownouts = [&state.configured.brownouts[..], &state.brownouts[..]].concat();
        self.shared.standings.store(Arc::new(Standings::new(brownouts, &state.sunsets())));
    }

    /// Only held for moments, never across a wait.
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What was set wins over what is configured.
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

/// Short enough to be typed.
fn fresh_id() -> String {
    crate::store::seal::random::<4>().iter().map(|byte| format!("{byte:02x}")).collect()
}
