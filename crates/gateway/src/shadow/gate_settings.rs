//! Settings of the gate, by operation.

use super::operations::PerOperation;
use super::phase::{Phase, Share};
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

impl GatePolicy {
    /// Returns a phase, with the share of compared requests of this policy if it is `translated`
    /// without one: otherwise no evidence could lead back.
    pub(super) fn with_check(&self, phase: Phase) -> Phase {
        match phase {
            Phase::Translated { check } if check.is_none() => Phase::Translated { check: self.check },
            other => other,
        }
    }
}

impl Default for GatePolicy {
    fn default() -> GatePolicy {
        let share = |part| Share::new(part).expect("between 0 and 1");
        GatePolicy { policy: Policy::default(), share: share(0.1), check: share(0.01) }
    }
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

    /// Returns whether the gate is explicitly closed for an operation.
    pub(super) fn is_never(&self, side: &str, operation: &str) -> bool {
        self.operations.get(side, operation).is_some_and(Option::is_none)
    }

    pub(super) fn policy_for(&self, side: &str, operation: &str) -> Option<GatePolicy> {
        self.operations.get(side, operation).copied().flatten()
    }
}
