//! Statistical evidence: bounds on the true rate of differences, and the gate that decides by them
//! whether an operation changes its phase. The module is pure; counting and acting on decisions
//! belong to the callers.
//!
//! [`bound`] documents the meaning of the bounds, [`gate`] the guarantees.

mod beta;
pub mod bound;
pub mod gate;
pub mod latency;

pub use bound::{Interval, Sequence, exact_upper};
pub use gate::{Basis, Counted, Decision, Gate, Observed, Policy, Stage, Transition, Waiting};
pub use latency::{LatencyMax, LatencyProof, QUANTILES, Timed, TimedQuantile};
