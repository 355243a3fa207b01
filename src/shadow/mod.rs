//! The dual run: in which phase each operation is, and what follows from it. While both versions live, one answers and the
//! other can be asked beside it; what is found decides when the old one can go.
//!
//! - [`Phase`] and [`Share`] are plain values; [`Table`] is what the data path reads, without a lock.
//! - [`Phases`] keeps them at run time: the configuration begins, the store has what was set since, and wins.
//!
//! Nothing here knows grants: who asks the other side, and with which credential, is the data path's business.

mod phase;
mod phases;
mod table;

pub use phase::{PHASES, Phase, PhaseFault, Share};
pub use phases::{Move, Mover, PhaseInfo, Phases, PhasesError, Shown};
pub use table::{Served, Table};
