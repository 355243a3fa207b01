//! Phases at run time. The configuration sets the initial phase of an operation. Changes by an
//! operator or the gate are stored and override the configuration until they are reset. Every
//! transition is recorded too.
//!
//! Gateways that share a store follow each other: each polls for changes once per second.

use super::evidence::{Objection, PeriodEvidence};
use super::gate_settings::GateSettings;
use super::phase::{PHASES, Phase, Share};
use super::rollout::{RolloutError, RolloutPlan, RolloutSettings};
use super::table::{OperationRow, OperationTable};
use crate::clock::{Clock, rfc3339};
use crate::store::{HoldRow, PhaseRow, RolloutRow, RolloutWrite, Store, StoreError, TransitionRow, repeat};
use crate::telemetry::metrics;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use switchback_engine::evidence::Policy;

/// Interval for reading changes of other processes from the store.
const POLL: Duration = Duration::from_secs(1);

/// Phases of all served operations. Clones share them.
#[derive(Clone, Debug)]
pub struct Phases {
    shared: Arc<PhasesInner>,
}

#[derive(Debug)]
struct PhasesInner {
    store: Store,
    clock: Clock,
    state: Mutex<PhasesState>,
}

#[derive(Debug, Default)]
pub(super) struct PhasesState {
    /// The served operations, one table per side.
    tables: Vec<Arc<OperationTable>>,
    /// Phases set at run time, by side and operation.
    set: HashMap<(String, String), PhaseRow>,
    /// Operations that the gate must not move, by side and operation.
    held: HashMap<(String, String), HoldRow>,
    /// Rollouts, by side and operation.
    rollouts: HashMap<(String, String), RolloutRow>,
    /// The store's write number up to which `set` is current.
    change: i64,
    /// The gate's policies, by operation.
    pub(super) gate: GateSettings,
    /// The plans of rollouts.
    pub(super) plans: RolloutSettings,
    /// Whether the store has been read once. Transitions before that predate this process and are
    /// not counted.
    is_read: bool,
    /// Operations whose phase is in the metrics, by side.
    measured: HashSet<(String, String)>,
}

/// The initiator of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A person, through a command or the admin API.
    Operator,
    /// The promotion gate, based on evidence.
    Gate,
}

impl Actor {
    /// Returns the name in the store and the admin API: `operator` or `gate`.
    pub fn name(self) -> &'static str {
        match self {
            Actor::Operator => "operator",
            Actor::Gate => "gate",
        }
    }
}

/// An operation and its phase, for people and API clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseInfo {
    /// The name of the side that clients use, such as `v2`.
    pub side: String,
    /// Method and path template, such as `GET /things/{id}`.
    pub operation: String,
    /// Whether the operation has effects. Such calls are never duplicated.
    pub writes: bool,
    /// The current phase.
    #[serde(flatten)]
    pub now: PhaseView,
    /// The origin of the current phase: `configuration`, `operator` or `gate`.
    pub from: String,
    /// Time of the last change, RFC 3339. `None` while the phase is as configured.
    pub since: Option<String>,
    /// The phase after a reset.
    pub configured: PhaseView,
    /// The store's write number of the last change or reset, or 0. Pass it back as [`PhaseChange::seen`]
    /// to detect concurrent changes.
    pub version: i64,
    /// The hold that prevents the gate from moving the operation, if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<GateHold>,
}

/// A hold that prevents the gate from moving an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GateHold {
    /// RFC 3339.
    pub since: String,
    /// Name of the operator, or empty.
    pub who: String,
    /// The operator's reason.
    pub reason: String,
}

/// An operator's request to change an operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct PhaseChange<'w> {
    /// Name of the operator, or empty.
    pub who: &'w str,
    /// The reason.
    pub reason: &'w str,
    /// The [`PhaseInfo::version`] that the operator saw. If it has changed since, the request is
    /// rejected.
    pub seen: Option<i64>,
    /// Whether to override contrary evidence. Requires a reason.
    pub force: bool,
}

/// The current state of an operation, for the gate.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CurrentPhase {
    pub(super) side: String,
    pub(super) operation: String,
    pub(super) phase: Phase,
    pub(super) period: i64,
    /// The hash of the translating pack.
    pub(super) pack: String,
    /// Wall time of the last change or reset in milliseconds since 1970. `None` if there was none.
    pub(super) since_ms: Option<i64>,
    /// Whether the phase was set at run time.
    pub(super) is_set: bool,
    pub(super) is_held: bool,
    pub(super) rollout: Option<RolloutRow>,
}

/// The cause of a transition, and its effect on the rollout of the operation.
pub(super) struct TransitionCause<'c> {
    pub(super) by: Actor,
    /// The stored phase that the transition is based on, if it depends on one.
    pub(super) expected: Option<Phase>,
    pub(super) word: PhaseChange<'c>,
    pub(super) rollout: RolloutWrite<'c>,
}

impl CurrentPhase {
    /// Returns whether the evidence was counted in this period, under this pack.
    pub(super) fn has(&self, evidence: &PeriodEvidence) -> bool {
        evidence.period == self.period
            && evidence.pack == self.pack
            && evidence.summary.phase == self.phase.name()
            && evidence.summary.side == self.side
            && evidence.summary.operation == self.operation
    }
}

/// A phase in a response.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseView {
    /// `legacy`, `shadow`, `canary` or `translated`.
    pub phase: &'static str,
    /// From 0 to 1: the share of clients in `canary`, or of compared requests in `translated`.
    /// `None` for the other phases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

impl From<Phase> for PhaseView {
    fn from(phase: Phase) -> PhaseView {
        // Omit a check of 0, which is the default.
        let share = phase.share().filter(|share| !share.is_none() || phase.name() == "canary");
        PhaseView { phase: phase.name(), share: share.map(Share::part) }
    }
}

/// A transition of an operation between two phases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transition {
    /// RFC 3339, UTC.
    pub at: String,
    /// The name of the side that clients use, such as `v2`.
    pub side: String,
    /// Method and path template, such as `GET /things/{id}`.
    pub operation: String,
    /// The previous phase, with its share if it has one.
    pub from: String,
    /// The new phase, with its share if it has one.
    pub to: String,
    /// `operator` or `gate`.
    pub by: String,
    /// Name of the operator, or empty.
    pub who: String,
    /// The gate's evidence or the operator's reason.
    pub evidence: String,
}

/// An error that prevents changing a phase.
#[derive(Debug, thiserror::Error)]
pub enum PhasesError {
    /// No front serves this operation.
    #[error("no front serves an operation `{operation}`")]
    NoSuchOperation {
        /// The name in the request.
        operation: String,
        /// The operations that are served.
        known: Vec<String>,
    },
    /// No front serves this side. The second field lists the served sides.
    #[error("no front speaks `{0}`; sides that clients speak: {1}")]
    NoSuchSide(String, String),
    /// Several sides have an operation of this name. The second field lists the sides.
    #[error("`{0}` is an operation of several sides; say of which: {1}")]
    WhichSide(String, String),
    /// The phase needs a service without a configured upstream.
    #[error("the phase `{phase}` needs the service of `{side}` itself: `upstreams.{side}` is not configured")]
    NoUpstream {
        /// The side whose own service the phase needs.
        side: String,
        /// The requested phase.
        phase: &'static str,
    },
    /// The evidence is against the transition, which is not forced.
    #[error("the evidence is against it: {0}; to move it all the same, force it and say why")]
    AgainstEvidence(Objection),
    /// The evidence is against the transition, which is forced without a reason.
    #[error("a transition against the evidence ({0}) takes a reason")]
    NoReason(Objection),
    /// The operation has changed since the expected version.
    #[error("the operation was moved by someone else meanwhile")]
    Moved,
    /// The operation's rollout, or the plan, does not permit the action.
    #[error(transparent)]
    Rollout(#[from] RolloutError),
    /// The store does not answer or fails.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Phases {
    /// Reads the phases set in the store. No operation is served yet.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn open(store: Store) -> Result<Phases, StoreError> {
        let clock = store.clock().clone();
        let phases = Phases { shared: Arc::new(PhasesInner { store, clock, state: Mutex::default() }) };
        phases.sync().await?;
        Ok(phases)
    }

    /// Replaces the tables that the data path reads. Each operation gets the phase that was set for
    /// it, or else the configured one.
    pub fn serve(&self, tables: Vec<Arc<OperationTable>>) {
        let mut state = self.state();
        state.tables = tables;
        state.settle();
        state.measure();
    }

    /// Sets the gate's policies and the plans of rollouts. The policies also determine the
    /// objections to an operator's transition.
    pub fn set_policies(&self, gate: GateSettings, plans: RolloutSettings) {
        let mut state = self.state();
        (state.gate, state.plans) = (gate, plans);
    }

    /// Returns the gate's policies and the plans of rollouts.
    pub(super) fn policies(&self) -> (GateSettings, RolloutSettings) {
        let state = self.state();
        (state.gate.clone(), state.plans.clone())
    }

    /// Returns the gate's policy for an operation, or `None` if the gate is closed for it.
    pub(super) fn policy(&self, side: &str, operation: &str) -> Option<Policy> {
        self.state().gate.policy_for(side, operation).map(|gate| gate.policy)
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
        {
            let state = self.state();
            if state.is_read && state.change == change {
                return Ok(());
            }
        }
        let rows = self.shared.store.phases().await?;
        let holds = self.shared.store.holds().await?;
        let rollouts = self.shared.store.rollouts().await?;
        let mut state = self.state();
        // Another sync may have stored a later state while this one awaited its rows.
        if state.change <= change {
            state.held =
                holds.into_iter().map(|row| ((row.side.clone(), row.operation.clone()), row)).collect();
            state.rollouts =
                rollouts.into_iter().map(|row| ((row.side.clone(), row.operation.clone()), row)).collect();
            let set = rows.into_iter().map(|row| ((row.side.clone(), row.operation.clone()), row)).collect();
            // At the first read all rows are new, but their transitions were counted by earlier
            // processes.
            if state.is_read {
                state.count_transitions(&set);
            }
            state.set = set;
            state.is_read = true;
            state.change = change;
            state.settle();
            state.measure();
        }
        Ok(())
    }

    /// Follows the store until dropped.
    pub async fn run(self) {
        let trouble = "phases cannot be read from the store; the last known ones apply";
        repeat(&self.shared.clock, POLL, trouble, || self.sync()).await;
    }

    /// Returns all served operations, grouped by side, in the order of the contracts.
    pub fn list(&self) -> Vec<PhaseInfo> {
        let state = self.state();
        let of_table = |table: &Arc<OperationTable>| {
            table.rows().iter().map(|row| state.info(table, row)).collect::<Vec<_>>()
        };
        state.tables.iter().flat_map(of_table).collect()
    }

    /// Returns all served operations for the gate.
    pub(super) fn current(&self) -> Vec<CurrentPhase> {
        let state = self.state();
        let of_table = |table: &Arc<OperationTable>| {
            let current = |(at, row): (usize, &OperationRow)| {
                let set = state.set_for(table.side(), &row.operation);
                CurrentPhase {
                    side: table.side().to_string(),
                    operation: row.operation.to_string(),
                    phase: row.now(),
                    period: table.period(at),
                    pack: table.pack().to_owned(),
                    since_ms: set.map(|set| set.set_ms),
                    is_set: set.is_some_and(|set| phase_of(set).is_some()),
                    is_held: state.held_for(table.side(), &row.operation).is_some(),
                    rollout: state.rollout_for(table.side(), &row.operation).cloned(),
                }
            };
            table.rows().iter().enumerate().map(current).collect::<Vec<_>>()
        };
        state.tables.iter().flat_map(of_table).collect()
    }

    /// Returns one operation. `side` may be omitted if only one side has it.
    ///
    /// # Errors
    ///
    /// No front serves the operation, or several sides have one of this name.
    pub fn get(&self, side: Option<&str>, operation: &str) -> Result<PhaseInfo, PhasesError> {
        let state = self.state();
        let (table, at) = state.find(side, operation)?;
        Ok(state.info(&table, &table.rows()[at]))
    }

    /// Changes the phase of an operation on behalf of the gate, with its effect on the rollout.
    /// Fails if the stored phase is no longer that of `current`: the gate must not overwrite an
    /// operator's change that it has not seen.
    pub(super) async fn move_by_gate(
        &self,
        current: &CurrentPhase,
        to: Phase,
        evidence: &str,
        rollout: RolloutWrite<'_>,
    ) -> Result<PhaseInfo, PhasesError> {
        let (table, at) = self.state().find(Some(&current.side), &current.operation)?;
        check_upstream(&table, at, to)?;
        let word = PhaseChange { reason: evidence, ..PhaseChange::default() };
        let expected = Some(current.phase);
        self.change(&table, at, Some(to), TransitionCause { by: Actor::Gate, expected, word, rollout }).await
    }

    /// Sets a phase on behalf of an operator. Without a phase, removes the stored one: the
    /// operation returns to its configured phase, and its evidence count restarts.
    ///
    /// # Errors
    ///
    /// No front serves the operation, the phase needs a service that is not configured, the operation
    /// has changed since [`PhaseChange::seen`], or the store fails. Also if more clients would receive
    /// translated responses, too many of which differ, unless the change is forced with a reason.
    pub async fn set_by_word(
        &self,
        side: Option<&str>,
        operation: &str,
        phase: Option<Phase>,
        word: PhaseChange<'_>,
    ) -> Result<PhaseInfo, PhasesError> {
        let (table, at) = self.state().find(side, operation)?;
        phase.map_or(Ok(()), |phase| check_upstream(&table, at, phase))?;
        let to = phase.unwrap_or(table.rows()[at].configured);
        self.sync().await?;
        // Check the version first: an outdated form should receive that error, not one about
        // evidence it did not display.
        if word.seen.is_some_and(|seen| seen != self.version(&table, at)) {
            return Err(PhasesError::Moved);
        }
        self.check_evidence(side, operation, to, word).await?;
        let rollout = RolloutWrite::Remove;
        self.change(&table, at, phase, TransitionCause { by: Actor::Operator, expected: None, word, rollout })
            .await
    }

    /// Checks that the evidence is not against a transition, or that it is forced with a reason.
    pub(super) async fn check_evidence(
        &self,
        side: Option<&str>,
        operation: &str,
        to: Phase,
        word: PhaseChange<'_>,
    ) -> Result<(), PhasesError> {
        // Rollbacks have no objection: reducing the share of translated responses is always
        // allowed.
        match self.objection(side, operation, to).await? {
            Some(objection) if !word.force => Err(PhasesError::AgainstEvidence(objection)),
            Some(objection) if word.reason.trim().is_empty() => Err(PhasesError::NoReason(objection)),
            _ => Ok(()),
        }
    }

    /// Sets or removes the hold that prevents the gate from moving an operation.
    ///
    /// # Errors
    ///
    /// No front serves the operation, several sides have one of this name, or the store fails.
    pub async fn hold(
        &self,
        side: Option<&str>,
        operation: &str,
        is_held: bool,
        word: PhaseChange<'_>,
    ) -> Result<PhaseInfo, PhasesError> {
        let (table, at) = self.state().find(side, operation)?;
        let (side, operation) = (table.side().to_string(), table.rows()[at].operation.to_string());
        if is_held {
            let row = HoldRow {
                side: side.clone(),
                operation: operation.clone(),
                who: word.who.to_owned(),
                reason: word.reason.to_owned(),
                at_ms: self.shared.clock.unix_ms(),
            };
            self.shared.store.put_hold(&row).await?;
        } else {
            self.shared.store.end_hold(&side, &operation, word.who, word.reason).await?;
        }
        tracing::info!(
            side,
            operation,
            is_held,
            who = word.who,
            reason = word.reason,
            "the gate's hold on an operation was changed"
        );
        self.sync().await?;
        self.get(Some(&side), &operation)
    }

    pub(super) async fn change(
        &self,
        table: &OperationTable,
        at: usize,
        to: Option<Phase>,
        cause: TransitionCause<'_>,
    ) -> Result<PhaseInfo, PhasesError> {
        let TransitionCause { by, expected, word, rollout } = cause;
        self.sync().await?;
        let row = &table.rows()[at];
        let (side, operation) = (table.side().as_ref(), row.operation.as_ref());
        let (set, seen) = {
            let state = self.state();
            let set = state.set_for(side, operation);
            (set.and_then(phase_of), set.map(|row| row.change))
        };
        if word.seen.is_some_and(|known| known != seen.unwrap_or(0)) {
            return Err(PhasesError::Moved);
        }
        let before = set.unwrap_or(row.configured);
        // Compared with the stored phase, which `sync` has just read, not with that of the data
        // path.
        if expected.is_some_and(|expected| expected != before) {
            return Err(PhasesError::Moved);
        }
        let after = to.unwrap_or(row.configured);
        let now_ms = self.shared.clock.unix_ms();
        let moved = TransitionRow {
            side: side.to_owned(),
            operation: operation.to_owned(),
            from: before.to_string(),
            to: after.to_string(),
            by: by.name().to_owned(),
            who: word.who.to_owned(),
            at_ms: now_ms,
            evidence: word.reason.to_owned(),
        };
        if to.is_none() && set.is_none() && self.state().rollout_for(side, operation).is_none() {
            // Resetting a phase that was never set is a no-op: a new period would drop evidence
            // without a transition.
            return self.get(Some(side), operation);
        }
        let row = PhaseRow {
            side: side.to_owned(),
            operation: operation.to_owned(),
            phase: to.map_or(AS_CONFIGURED, Phase::name).to_owned(),
            // Stored as an integer: a decimal fraction would not survive the comparison of equal
            // shares.
            share: to.and_then(Phase::share).map(|share| i64::from(share.millionths())),
            set_by: by.name().to_owned(),
            set_ms: now_ms,
            change: 0,
        };
        // Compare-and-set in the database. The checks above only give better errors; another
        // gateway may still change the phase between them and the write.
        if !self.shared.store.put_phase(&row, &moved, seen, rollout).await? {
            return Err(PhasesError::Moved);
        }
        tracing::info!(side, operation, from = %before, to = %after, by = by.name(), who = word.who, evidence = word.reason, "the phase of an operation was changed");
        self.sync().await?;
        self.get(Some(side), operation)
    }

    /// Returns the last `count` transitions, newest first.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn transitions(&self, count: u32) -> Result<Vec<Transition>, StoreError> {
        let rows = self.shared.store.phase_transitions(count).await?;
        let shown = |row: TransitionRow| Transition {
            at: rfc3339(row.at_ms),
            side: row.side,
            operation: row.operation,
            from: row.from,
            to: row.to,
            by: row.by,
            who: row.who,
            evidence: row.evidence,
        };
        Ok(rows.into_iter().map(shown).collect())
    }

    /// Returns the [`PhaseInfo::version`] of an operation.
    pub(super) fn version(&self, table: &OperationTable, at: usize) -> i64 {
        let state = self.state();
        state.set_for(table.side(), &table.rows()[at].operation).map_or(0, |row| row.change)
    }

    pub(super) fn store(&self) -> &Store {
        &self.shared.store
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Locks the state. The lock is held only briefly, never across an await.
    pub(super) fn state(&self) -> MutexGuard<'_, PhasesState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PhasesState {
    pub(super) fn rollout_for(&self, side: &str, operation: &str) -> Option<&RolloutRow> {
        self.rollouts.get(&(side.to_owned(), operation.to_owned()))
    }

    /// Returns a plan by its name.
    pub(super) fn plan(&self, name: &str) -> Result<&RolloutPlan, RolloutError> {
        self.plans.plans.get(name).ok_or_else(|| RolloutError::NoSuchPlan {
            name: name.to_owned(),
            known: self.plans.plans.keys().cloned().collect(),
        })
    }

    pub(super) fn set_for(&self, side: &str, operation: &str) -> Option<&PhaseRow> {
        self.set.get(&(side.to_owned(), operation.to_owned()))
    }

    fn held_for(&self, side: &str, operation: &str) -> Option<&HoldRow> {
        self.held.get(&(side.to_owned(), operation.to_owned()))
    }

    fn settle(&self) {
        for table in &self.tables {
            let set = |operation: &str| {
                let row = self.set_for(table.side(), operation)?;
                Some((phase_of(row), row.change))
            };
            table.settle(set);
        }
    }

    /// Sets the phase metric of every served operation, and removes those no longer served.
    fn measure(&mut self) {
        let mut measured = HashSet::new();
        for table in &self.tables {
            for row in table.rows() {
                metrics::in_phase(table.side(), &row.operation, row.now().name(), &PHASES);
                measured.insert((table.side().to_string(), row.operation.to_string()));
            }
        }
        for (side, operation) in self.measured.difference(&measured) {
            // A reload may remove operations; their last value would otherwise be exported forever.
            metrics::in_no_phase(side, operation, &PHASES);
        }
        self.measured = measured;
    }

    /// Counts the transitions of served operations between the known rows and the new ones,
    /// whichever process made them.
    fn count_transitions(&self, rows: &HashMap<(String, String), PhaseRow>) {
        for (key, row) in rows {
            let before = self.set.get(key);
            let (was, is) = (before.and_then(phase_of), phase_of(row));
            let is_new = before.is_none_or(|before| before.change != row.change);
            if is_new
                && (was.is_some() || is.is_some())
                && let Ok((table, at)) = self.find(Some(&row.side), &row.operation)
            {
                let after = is.unwrap_or(table.rows()[at].configured);
                let by = if row.set_by == Actor::Gate.name() { Actor::Gate } else { Actor::Operator };
                metrics::phase_moved(&row.side, &row.operation, after.name(), by.name());
            }
        }
    }

    fn info(&self, table: &OperationTable, row: &OperationRow) -> PhaseInfo {
        let set = self.set_for(table.side(), &row.operation);
        let version = set.map_or(0, |set| set.change);
        let set = set.filter(|set| phase_of(set).is_some());
        let held = self.held_for(table.side(), &row.operation).map(|held| GateHold {
            since: rfc3339(held.at_ms),
            who: held.who.clone(),
            reason: held.reason.clone(),
        });
        PhaseInfo {
            version,
            held,
            side: table.side().to_string(),
            operation: row.operation.to_string(),
            writes: row.writes,
            now: row.now().into(),
            from: set.map_or_else(|| "configuration".to_owned(), |set| set.set_by.clone()),
            since: set.map(|set| rfc3339(set.set_ms)),
            configured: row.configured.into(),
        }
    }

    pub(super) fn find(
        &self,
        side: Option<&str>,
        operation: &str,
    ) -> Result<(Arc<OperationTable>, usize), PhasesError> {
        if let Some(side) = side.filter(|side| self.tables.iter().all(|table| **table.side() != **side)) {
            return Err(PhasesError::NoSuchSide(side.to_owned(), self.sides()));
        }
        let tables = self.tables.iter().filter(|table| side.is_none_or(|side| **table.side() == *side));
        let at =
            |table: &Arc<OperationTable>| table.rows().iter().position(|row| *row.operation == *operation);
        let mut found = tables.filter_map(|table| Some((Arc::clone(table), at(table)?)));
        match (found.next(), found.next()) {
            (None, _) => {
                let of_side =
                    self.tables.iter().filter(|table| side.is_none_or(|side| **table.side() == *side));
                let known =
                    of_side.flat_map(|table| table.rows()).map(|row| row.operation.to_string()).collect();
                Err(PhasesError::NoSuchOperation { operation: operation.to_owned(), known })
            }
            (Some(only), None) => Ok(only),
            (Some(_), Some(_)) => Err(PhasesError::WhichSide(operation.to_owned(), self.sides())),
        }
    }

    /// Lists the sides that clients use.
    fn sides(&self) -> String {
        self.tables.iter().map(|table| table.side().as_ref()).collect::<Vec<_>>().join(", ")
    }
}

/// Phase in a stored row that was reset: the row records the time since which the operation is as
/// configured.
pub(super) const AS_CONFIGURED: &str = "configured";

/// Checks that the service that a phase needs is configured.
pub(super) fn check_upstream(table: &OperationTable, at: usize, phase: Phase) -> Result<(), PhasesError> {
    match phase.needs_own() && !table.rows()[at].has_own {
        true => Err(PhasesError::NoUpstream { side: table.side().to_string(), phase: phase.name() }),
        false => Ok(()),
    }
}

/// Parses the phase of a stored row. Returns `None` if it was reset, or written by a later version
/// of this program.
pub(super) fn phase_of(row: &PhaseRow) -> Option<Phase> {
    stored_phase(&row.phase, row.share)
}

/// Parses a stored name with its share in millionths. Returns `None` for [`AS_CONFIGURED`], and for
/// phases of a later version of this program.
pub(super) fn stored_phase(name: &str, share: Option<i64>) -> Option<Phase> {
    let share = match share {
        Some(millionths) => Some(Share::of_millionths(millionths)?),
        None => None,
    };
    Phase::parse(name, share).ok()
}
