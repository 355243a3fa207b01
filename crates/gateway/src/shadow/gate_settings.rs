//! Settings of the gate, by operation.

use super::operations::PerOperation;
use super::phase::Share;
use switchback_engine::evidence::Policy;

/// The gate's requirements for an operation, and the target of its transitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GatePolicy {
    /// The required number of comparisons, and the tolerated differences.
    pub policy: Policy,
    /// Share of clients after a promotion to `canary`.
    pub share: Share,
    /// Share of requests that are still compared after a promotion to `translated`. With 0, the
    /// gate cannot roll back from there.
    pub check: Share,
}

/// The operations for which the gate is open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GateSettings {
    /// Policy by operation. `None` closes the gate for it, regardless of the default.
    pub operations: PerOperation<Option<GatePolicy>>,
}

impl GateSettings {
    /// Returns whether the gate is open for any operation.
    pub fn is_open(&self) -> bool {
        self.operations.values().any(Option::is_some)
    }

    pub(super) fn policy_for(&self, side: &str, operation: &str) -> Option<GatePolicy> {
        self.operations.get(side, operation).copied().flatten()
    }
}
