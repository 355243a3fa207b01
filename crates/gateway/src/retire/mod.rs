//! The end of a side: who still calls what (`usage`), windows in which calls are turned away so that it is noticed (`brownout`),
//! and the day from which a client is refused (`sunset`). What is configured and what is set at run time are kept together
//! (`retirement`) and read as one by each request (`standing`); gateways that share a store follow one another within about a
//! second.
//!
//! Decision to know: what is set at run time is in the store and wins over the configuration, as with phases.

mod brownout;
mod retirement;
mod standing;
mod sunset;
mod usage;

pub use brownout::{Brownout, NewBrownout, Reach};
pub use retirement::{RetireError, Retirement, Rules, SideOperations};
pub(crate) use standing::Standing;
pub use sunset::ClientSunset;
pub(crate) use sunset::Notice;
pub use usage::{UNKNOWN_USAGE_MAX, UNRECORDED, USAGE_FLUSH, USAGE_KEEP, Usage, UsageInfo};
