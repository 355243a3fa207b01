//! How much is proved: counts of comparisons, bounds on the true rate of differences, and the gate that decides on them
//! whether an operation moves on. Values in, values out; who counts, and who acts on a decision, is the business of others.
//!
//! What the bounds say is in [`bound`]; what the gate promises in [`gate`].

mod beta;
pub mod bound;
mod counts;
pub mod gate;

pub use bound::{Interval, Sequence, exact_upper};
pub use counts::Counts;
pub use gate::{Decision, Gate, Move, Policy, Stage, Waiting};
