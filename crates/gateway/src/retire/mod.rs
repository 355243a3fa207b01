//! Retirement of a side: usage counts of the remaining calls (`usage`), windows in which calls are
//! rejected as a warning (`brownout`), and the date from which a client is rejected (`sunset`).
//! `retirement` merges the configuration with run-time settings, and each request reads the result
//! (`standing`). Gateways that share a store synchronize within about a second.
//!
//! Run-time settings are in the store and take precedence over the configuration, as with phases.

mod brownout;
mod error;
mod retirement;
mod standing;
mod sunset;
mod usage;

pub use brownout::{Brownout, BrownoutReach, NewBrownout};
pub use error::RetireError;
pub use retirement::{Retirement, RetirementRules, SideOperations};
pub(crate) use standing::CallStanding;
pub use sunset::ClientSunset;
pub(crate) use sunset::Notice;
pub use usage::{UNKNOWN_USAGE_MAX, UNRECORDED, USAGE_FLUSH, USAGE_KEEP, Usage, UsageInfo};
