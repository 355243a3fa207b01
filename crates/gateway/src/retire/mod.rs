//! The end of a side: who still calls what (`usage`), windows in which calls are turned away so that it is noticed (`brownout`),
//! and the day from which a client is refused (`sunset`). What is configured and what is set at run time are read together
//! (`plan`); gateways that share a store follow one another within about a second.
//!
//! Decision to know: what is set at run time is in the store and wins over the configuration, as with phases.

mod plan;
mod rules;
mod usage;

pub(crate) use plan::Notice;
pub(crate) use plan::Standing;
pub use rules::{Brownout, ClientSunset, NewBrownout, RetireError, Retirement, Rules, SideOperations};
pub(crate) use usage::UsageKind;
pub use usage::{Usage, UsageInfo};
