//! How much is proved: bounds on the true rate of differences, and the gate that decides on them whether an operation moves
//! on. Numbers in, values out; what is compared and counted, and who acts on a decision, is the business of others.
//!
//! What the bounds say is in [`bound`]; what the gate promises in [`gate`].

mod beta;
pub mod bound;
pub mod gate;
pub mod latency;

pub use bound::{Counted, Interval, Observed, Sequence, exact_upper};
pub use gate::{Basis, Decision, Gate, Policy, Stage, Transition, Waiting};
pub use latency::{LatencyMax, LatencyProof, QUANTILES, Timed, TimedQuantile};
