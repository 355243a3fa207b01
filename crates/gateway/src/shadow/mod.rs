//! The dual run: the phase of each operation, and the comparison of both versions. While both are
//! live, one answers and the other can be called in the shadow; the results decide when the old
//! version can be shut down.
//!
//! - [`Phase`] and [`Share`] are plain values. The data path reads them from a lock-free [`OperationTable`].
//! - [`Phases`] manages phases at run time. The configuration sets the initial phase; later changes
//!   are in the store and take precedence.
//! - [`Shadow`] accepts each [`Job`] of the data path and runs it within its own limits. Results
//!   are compared (`switchback_engine::diff`), redacted (`switchback_engine::redact`) and recorded
//!   in batches.
//! - [`keep_gate`] moves operations by evidence (`switchback_engine::evidence`), if an operator
//!   allows it: through the steps of a [`RolloutPlan`], or those that a policy of the gate implies.
//!
//! Decisions to know before editing:
//!
//! - The shadow never delays a client and never fails a request. Every function called from the
//!   data path returns at once; work beyond the limits is skipped and counted by reason
//!   ([`switchback_engine::diff::SkipReason`]).
//! - Calls with effects are planned but never made ([`Planned`]). Such a comparison is a sample and
//!   does not prove equality. Neither does a read after a write ([`ReadBack`]): it proves that both
//!   sides display an effect alike, not that both would have caused it. It is counted separately.
//! - The shadow runs on its own thread with the lowest priority, because a comparison costs many
//!   times as much as a response.
//! - Evidence is counted per *period* of an operation in a phase, and per pack: entering a phase,
//!   resetting it or changing the mapping starts a new count. A call without a response on either
//!   side is counted separately, because it proves nothing.
//! - A difference that does not repeat is unsettled, never equal
//!   (`switchback_engine::diff::settle`).
//!
//! This module does not handle grants: the data path calls the other side and selects the
//! credential.

mod evidence;
mod gate_settings;
mod job;
mod judge;
mod knowledge;
mod objection;
mod operations;
mod phase;
mod phases;
mod promotion;
mod record;
mod recorder;
mod rollout;
mod rollouts;
mod subject;
mod table;
mod thread;
mod waiting;
mod window;
mod workers;

pub use evidence::{Objection, PeriodEvidence};
pub use gate_settings::{GatePolicy, GateSettings};
pub(crate) use job::{Done, Job, JobResult, PlanEnd, Planned, ReadBack, Subject};
pub use knowledge::{CallContract, Knowledge};
pub use operations::{OperationKey, PerOperation};
pub use phase::PhaseFault;
pub(crate) use phase::roll_of;
pub use phase::{PHASES, Phase, Share, ShareError};
pub use phases::{Actor, GateHold, PhaseChange, PhaseInfo, PhaseView, Phases, PhasesError, Transition};
pub use promotion::{GateView, RolloutView, gate_views, keep_gate};
pub use record::{Archive, Exported};
pub use record::{PlannedCallRecord, PlannedRecord};
pub use rollout::{RolloutError, RolloutPlan, RolloutSettings, RolloutState, RolloutStep, RolloutWait};
pub use rollouts::RolloutAction;
pub(crate) use subject::{JobSubject, PlannedCall};
pub use table::{OperationTable, Served};
pub use thread::Priority;
pub use window::{DAYS, DayTime, TimeWindow};
pub(crate) use workers::Judging;
pub use workers::{Shadow, ShadowSettings, ShadowShares, ShadowStartError, Workers};
