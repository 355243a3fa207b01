//! A notice: its kind, its data, and one sentence for people.

use crate::store::seal::random;
use serde_json::Value;

/// The subject of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// An operator holds the gate for an operation.
    GateHeld,
    /// The gate has moved an operation to an earlier phase.
    GateRolledBack,
    /// The gate has moved an operation to a later phase.
    PhaseChanged,
    /// An operator has paused a rollout.
    RolloutPaused,
    /// A rollout has ended before its last step: by a rollback or by an operator.
    RolloutAborted,
    /// A rollout has left its last step.
    RolloutCompleted,
    /// A grant can no longer be refreshed.
    GrantEnded,
    /// A window in which calls are rejected has begun.
    BrownoutBegan,
    /// Such a window is over, or has been removed.
    BrownoutEnded,
    /// A reload has failed; the pack and configuration from before it serve on.
    ReloadRefused,
    /// A certificate expires in less than two weeks.
    CertificateExpires,
}

impl NoticeKind {
    /// All kinds.
    pub const ALL: [NoticeKind; 11] = [
        NoticeKind::GateHeld,
        NoticeKind::GateRolledBack,
        NoticeKind::PhaseChanged,
        NoticeKind::RolloutPaused,
        NoticeKind::RolloutAborted,
        NoticeKind::RolloutCompleted,
        NoticeKind::GrantEnded,
        NoticeKind::BrownoutBegan,
        NoticeKind::BrownoutEnded,
        NoticeKind::ReloadRefused,
        NoticeKind::CertificateExpires,
    ];

    /// Returns the type in the payload and in the configuration, such as `gate.held`.
    pub fn name(self) -> &'static str {
        match self {
            NoticeKind::GateHeld => "gate.held",
            NoticeKind::GateRolledBack => "gate.rolled_back",
            NoticeKind::PhaseChanged => "phase.changed",
            NoticeKind::RolloutPaused => "rollout.paused",
            NoticeKind::RolloutAborted => "rollout.aborted",
            NoticeKind::RolloutCompleted => "rollout.completed",
            NoticeKind::GrantEnded => "grant.ended",
            NoticeKind::BrownoutBegan => "brownout.began",
            NoticeKind::BrownoutEnded => "brownout.ended",
            NoticeKind::ReloadRefused => "reload.refused",
            NoticeKind::CertificateExpires => "certificate.expires",
        }
    }
}

/// One notice, the same for all receivers.
#[derive(Clone, Debug)]
pub struct Notice {
    /// Identifies the notice in all attempts (`webhook-id`).
    pub id: String,
    /// The type, such as `gate.held`.
    pub name: &'static str,
    /// Time of the change, wall time in milliseconds since 1970.
    pub at_ms: i64,
    /// The facts, a JSON object without secrets.
    pub data: Value,
    /// The facts as a sentence.
    pub text: String,
}

impl Notice {
    /// Creates a notice with a fresh id.
    pub(super) fn new(kind: NoticeKind, at_ms: i64, data: Value, text: String) -> Notice {
        Notice::named(kind.name(), at_ms, data, text)
    }

    /// Creates a notice for a trial of a receiver, with the type `notice.test`.
    pub fn test(at_ms: i64) -> Notice {
        let text = "This is a test: Switchback reaches this receiver.".to_owned();
        Notice::named("notice.test", at_ms, serde_json::json!({}), text)
    }

    fn named(name: &'static str, at_ms: i64, data: Value, text: String) -> Notice {
        let id: String = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
        Notice { id: format!("msg_{id}"), name, at_ms, data, text }
    }
}
