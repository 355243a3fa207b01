//! Changes of rollouts: by operators, and the start of those that the configuration names.

use super::phase::Phase;
use super::phases::{
    AS_CONFIGURED, Actor, CurrentPhase, PhaseChange, PhaseInfo, Phases, PhasesError, TransitionCause,
    check_upstream, stored_phase,
};
use super::rollout::{RolloutError, RolloutPlan, RolloutState};
use crate::store::{
    CONFIGURATION, ROLLOUT_ABORTED, ROLLOUT_COMPLETED, ROLLOUT_PAUSED, RolloutRow, RolloutWrite,
};

/// An operator's action on the rollout of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloutAction<'a> {
    /// Starts a rollout in the first step of its plan that is not behind the present phase.
    Start {
        /// `None`: the plan that the configuration names for the operation, or its only one.
        plan: Option<&'a str>,
    },
    /// Stops advancing, but not rolling back.
    Pause,
    /// Resumes a paused rollout.
    Resume,
    /// Advances to the next step, without its time, evidence and window.
    Promote,
    /// Ends the rollout.
    Abort {
        /// Whether the operation returns to the phase before the rollout. Otherwise it stays in its
        /// phase.
        back: bool,
    },
}

/// The effects of an action.
struct RolloutChange {
    row: RolloutRow,
    /// The kind of its entry in the history. `None`: the transition is the entry.
    entry: Option<&'static str>,
    /// The phase to set; the inner `None` is the configured one.
    to: Option<Option<Phase>>,
    /// The reason of the transition.
    reason: String,
}

impl Phases {
    /// Returns the names of the plans of the configuration.
    pub fn rollout_plans(&self) -> Vec<String> {
        self.state().plans.plans.keys().cloned().collect()
    }

    /// Returns the plan that a start would use, with its name and the phase that the operation
    /// would enter.
    ///
    /// # Errors
    ///
    /// No front serves the operation, there is no such plan, or the operation is at its end.
    pub fn rollout_start(
        &self,
        side: Option<&str>,
        operation: &str,
        plan: Option<&str>,
    ) -> Result<(String, RolloutPlan, Phase), PhasesError> {
        let state = self.state();
        let (table, at) = state.find(side, operation)?;
        let row = &table.rows()[at];
        let configured = state.plans.configured(table.side(), &row.operation);
        let only = || state.plans.plans.keys().next().filter(|_| state.plans.plans.len() == 1);
        let name = plan.or(configured).or_else(|| only().map(String::as_str));
        let which = || RolloutError::WhichPlan(state.plans.plans.keys().cloned().collect());
        let name = name.ok_or_else(which)?;
        let plan = state.plan(name)?;
        let now = row.now();
        if plan.next(now).is_none() {
            return Err(RolloutError::AtEnd(name.to_owned()).into());
        }
        // Never to an earlier phase: a start takes translated answers from no client.
        let is_step = plan.steps.iter().any(|step| step.phase.rank() == now.rank());
        let policy = state.gate.policy_for(table.side(), &row.operation).unwrap_or_default();
        let first = plan.next(now).filter(|_| !is_step).map_or(now, |phase| policy.with_check(phase));
        check_upstream(&table, at, first)?;
        Ok((name.to_owned(), plan.clone(), first))
    }

    /// Executes an operator's action on the rollout of an operation.
    ///
    /// # Errors
    ///
    /// No front serves the operation, the rollout or its plan does not permit the action, the
    /// evidence is against the transition, the operation has changed since
    /// [`PhaseChange::seen`], or the store fails.
    pub async fn change_rollout(
        &self,
        side: Option<&str>,
        operation: &str,
        action: RolloutAction<'_>,
        word: PhaseChange<'_>,
    ) -> Result<PhaseInfo, PhasesError> {
        self.sync().await?;
        let (table, at) = self.state().find(side, operation)?;
        if word.seen.is_some_and(|seen| seen != self.version(&table, at)) {
            return Err(PhasesError::Moved);
        }
        let (side, operation) = (table.side().to_string(), table.rows()[at].operation.to_string());
        let before = self.state().rollout_for(&side, &operation).cloned();
        let change = match action {
            RolloutAction::Start { plan } => self.start(&side, &operation, before.as_ref(), plan, word)?,
            _ => {
                let before = before.as_ref().ok_or(RolloutError::NoRollout)?;
                self.proceed(table.rows()[at].now(), before, action, word)?
            }
        };
        let seen = before.map(|row| row.change);
        let (row, entry) = (&change.row, change.entry);
        if let Some(to) = change.to {
            self.check_evidence(Some(&side), &operation, to.unwrap_or(table.rows()[at].configured), word)
                .await?;
            let word = PhaseChange { reason: &change.reason, ..word };
            let rollout = RolloutWrite::Put { row, seen, entry };
            let cause = TransitionCause { by: Actor::Operator, expected: None, word, rollout };
            return self.change(&table, at, to, cause).await;
        }
        self.put(row, seen, entry.unwrap_or(ROLLOUT_COMPLETED)).await?;
        self.get(Some(&side), &operation)
    }

    fn start(
        &self,
        side: &str,
        operation: &str,
        before: Option<&RolloutRow>,
        plan: Option<&str>,
        word: PhaseChange<'_>,
    ) -> Result<RolloutChange, PhasesError> {
        if let Some(active) = before.filter(|row| RolloutState::parse(&row.state).is_active()) {
            return Err(state_error(active).into());
        }
        let (name, plan, first) = self.rollout_start(Some(side), operation, plan)?;
        let now = self.state().find(Some(side), operation).map(|(table, at)| table.rows()[at].now())?;
        let set = self.state().set_for(side, operation).map(|row| (row.phase.clone(), row.share));
        let (back_phase, back_share) = set.unwrap_or_else(|| (AS_CONFIGURED.to_owned(), None));
        let now_ms = self.clock().unix_ms();
        let reason = step_text(&name, &plan, first, word.reason);
        let row = RolloutRow {
            side: side.to_owned(),
            operation: operation.to_owned(),
            plan: name,
            state: RolloutState::Running.name().to_owned(),
            back_phase,
            back_share,
            who: word.who.to_owned(),
            reason: word.reason.to_owned(),
            started_ms: now_ms,
            updated_ms: now_ms,
            change: 0,
        };
        let to = (first != now).then_some(Some(first));
        Ok(RolloutChange { row, entry: Some("rollout started"), to, reason })
    }

    /// Returns the effects of an action on an existing rollout of an operation in a phase.
    fn proceed(
        &self,
        now: Phase,
        before: &RolloutRow,
        action: RolloutAction<'_>,
        word: PhaseChange<'_>,
    ) -> Result<RolloutChange, PhasesError> {
        let state = RolloutState::parse(&before.state);
        let fits = match action {
            RolloutAction::Pause => state == RolloutState::Running,
            RolloutAction::Resume => state == RolloutState::Paused,
            _ => state.is_active(),
        };
        if !fits {
            return Err(state_error(before).into());
        }
        let row = |state: RolloutState| RolloutRow {
            state: state.name().to_owned(),
            who: word.who.to_owned(),
            reason: word.reason.to_owned(),
            updated_ms: self.clock().unix_ms(),
            ..before.clone()
        };
        let plain = |state, entry| RolloutChange {
            row: row(state),
            entry: Some(entry),
            to: None,
            reason: String::new(),
        };
        Ok(match action {
            RolloutAction::Pause => plain(RolloutState::Paused, ROLLOUT_PAUSED),
            RolloutAction::Start { .. } | RolloutAction::Resume => {
                plain(RolloutState::Running, "rollout resumed")
            }
            RolloutAction::Promote => {
                let plan = self.state().plan(&before.plan)?.clone();
                match plan.next(now) {
                    None => plain(RolloutState::Completed, ROLLOUT_COMPLETED),
                    Some(to) => {
                        let policy = self.state().gate.policy_for(&before.side, &before.operation);
                        let to = policy.unwrap_or_default().with_check(to);
                        let reason = step_text(&before.plan, &plan, to, word.reason);
                        RolloutChange {
                            row: row(RolloutState::Running),
                            entry: None,
                            to: Some(Some(to)),
                            reason,
                        }
                    }
                }
            }
            RolloutAction::Abort { back } => {
                let change = plain(RolloutState::Aborted, ROLLOUT_ABORTED);
                let to = stored_phase(&before.back_phase, before.back_share);
                let set =
                    self.state().set_for(&before.side, &before.operation).and_then(super::phases::phase_of);
                let colon = if word.reason.is_empty() { "" } else { ": " };
                let reason = format!("rollout `{}` aborted{colon}{}", before.plan, word.reason);
                // The phase is not set again if it is the one before the rollout.
                RolloutChange { to: (back && set != to).then_some(to), reason, ..change }
            }
        })
    }

    /// Starts the rollout that the configuration names for an operation whose phase was not set.
    pub(super) async fn start_configured(
        &self,
        current: &CurrentPhase,
        plan: &str,
    ) -> Result<(), PhasesError> {
        let now_ms = self.clock().unix_ms();
        let row = RolloutRow {
            side: current.side.clone(),
            operation: current.operation.clone(),
            plan: plan.to_owned(),
            state: RolloutState::Running.name().to_owned(),
            back_phase: AS_CONFIGURED.to_owned(),
            back_share: None,
            who: CONFIGURATION.to_owned(),
            reason: String::new(),
            started_ms: now_ms,
            updated_ms: now_ms,
            change: 0,
        };
        self.put(&row, None, "rollout started").await
    }

    /// Stores a rollout without a transition.
    pub(super) async fn put(
        &self,
        row: &RolloutRow,
        seen: Option<i64>,
        entry: &'static str,
    ) -> Result<(), PhasesError> {
        if !self.store().put_rollout(row, seen, entry).await? {
            return Err(PhasesError::Moved);
        }
        let (side, operation, plan, state, who) =
            (&row.side, &row.operation, &row.plan, &row.state, &row.who);
        tracing::info!(
            side,
            operation,
            plan,
            state,
            who,
            reason = row.reason,
            "the rollout of an operation was changed"
        );
        Ok(self.sync().await?)
    }
}

fn state_error(row: &RolloutRow) -> RolloutError {
    RolloutError::State { plan: row.plan.clone(), state: RolloutState::parse(&row.state) }
}

/// Returns the reason of a transition to a step: the plan, the step, and the reason or evidence.
pub(super) fn step_text(name: &str, plan: &RolloutPlan, to: Phase, reason: &str) -> String {
    let number = plan.position(to).map_or(0, |at| at + 1);
    let colon = if reason.is_empty() { "" } else { ": " };
    format!("rollout `{name}`, step {number} of {}{colon}{reason}", plan.steps.len())
}
