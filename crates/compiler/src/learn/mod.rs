//! Learns from recorded traffic: which members of the two versions correspond, by the values that
//! both show of the same resources; which operations clients call; and contracts, where none exist.
//!
//! The module counts. It works in memory, keeps a bounded number of objects per operation, and
//! writes nothing by itself: a person accepts what it proposes ([`accept`]).

mod accept;
mod evidence;
mod guesses;
mod infer;
mod join;
mod link;
mod model;
mod records;
mod relation;
mod report;
mod sent;
#[cfg(test)]
mod tests;
mod witness;

pub use accept::{AcceptError, Acceptance, accept};
pub use evidence::{BITS_MIN, DISTINCT_MIN};
pub use guesses::{GuessWitness, weigh_guesses};
pub use infer::Inference;
pub use model::{Confidence, Learned, LearnedJoin, LearnedLine, NameConflict, OperationLink, TrafficCall};
pub use report::{to_json, to_markdown};
pub use witness::Witness;
