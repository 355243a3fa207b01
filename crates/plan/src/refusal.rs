//! The response to refused requests.

use super::{PerSide, ReasonId};

/// The refusal of an operation or outcome.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Text for the client.
    pub reason: ReasonId,
    /// Whether to forward unchanged to the upstream of the served side if one is configured.
    pub legacy_forward: bool,
    /// Status before `after_date`.
    pub status: u16,
    /// The date from which `after_status` applies. `None`: `status` applies always.
    pub after_date: Option<AfterDate>,
    /// Status from `after_date` on.
    pub after_status: u16,
}

/// The response to refused operations, unless the route overrides it.
#[derive(Clone, Debug)]
pub struct RefusePolicy {
    /// By served side, whether to forward unchanged to that side's upstream if one is configured.
    pub legacy_forward: PerSide<bool>,
    /// Status before `after_date`.
    pub status: u16,
    /// The date from which `after_status` replaces `status`.
    pub after_date: Option<AfterDate>,
    /// Status from `after_date` on.
    pub after_status: u16,
}

/// The date from which a refusal is permanent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterDate {
    /// `YYYY-MM-DD`, UTC.
    Day(String),
    /// The value of this setting (index into [`crate::Pack::settings`]); never if it is not set.
    Setting(u16),
}
