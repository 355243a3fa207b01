//! The dual run: in which phase each operation is, and what follows from it. While both versions live, one answers and the
//! other can be asked beside it; what is found decides when the old one can go.
//!
//! - [`Phase`] and [`Share`] are plain values; [`Table`] is what the data path reads, without a lock.
//! - [`Phases`] keeps them at run time: the configuration begins, the store has what was set since, and wins.
//! - [`Shadow`] takes what the data path hands over as a [`Job`], and has it worked on within bounds of its own; what comes of
//!   it is compared (`switchback_engine::diff`), redacted (`switchback_engine::redact`) and recorded, in batches.
//! - [`keep_gate`] moves operations by evidence (`switchback_engine::evidence`), where an operator allows it.
//!
//! Decisions to know before editing:
//!
//! - The shadow never makes a client wait and never fails one: everything here that is called from the data path returns at
//!   once, and what finds no place is skipped and counted by reason
//!   ([`switchback_engine::diff::SkipReason`]).
//! - Calls with effects are planned and never made ([`Planned`]); such a comparison is one by sample, which proves nothing of
//!   equality. Neither does what is read back after a write ([`ReadBack`]): it tells that an effect is seen alike on both
//!   sides, not that both would have made it. It is counted apart.
//! - Its work has a thread of its own, the least urgent of all: comparing takes many times what answering takes.
//! - Evidence is counted per *stay* of an operation in a phase, and per pack: who enters a phase, resets one or mends the
//!   mapping begins anew. A call without an answer is counted apart, whichever side gave none: it proves nothing.
//! - A difference that does not repeat is unsettled, never equal (`switchback_engine::diff::settle`).
//!
//! Nothing here knows grants: who asks the other side, and with which credential, is the data path's business.

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
mod table;
mod thread;
mod waiting;
mod workers;

pub(crate) use job::{About, Done, Outcome, Planned};
pub(crate) use job::{Job, PlanEnd, PlannedCall, ReadBack, Subject};
pub use knowledge::{CallContract, Knowledge};
pub use objection::Objection;
pub use operations::{OperationKey, PerOperation};
pub use phase::PhaseFault;
pub(crate) use phase::roll_of;
pub use phase::{PHASES, Phase, Share};
pub use phases::{Actor, GateHold, PhaseInfo, Phases, PhasesError, Shown, Transition, Word};
pub use promotion::{GatePolicy, GateSettings, GateView, gate_views, keep_gate};
pub use record::{Archive, Evidence, Exported};
pub use record::{CallRecord, PlannedRecord};
pub use table::{Served, Table};
pub use thread::Priority;
pub(crate) use workers::Judging;
pub use workers::{Settings, Shadow, StartError, Workers};
