//! Why a change was refused: one text for all surfaces, and a kind that each maps to its own codes.

use std::fmt::Display;
use switchback_compiler::diagnostic::did_you_mean;
use switchback_gateway::retire::RetireError;
use switchback_gateway::shadow::{PhaseFault, PhasesError, RolloutError};
use switchback_gateway::store::StoreError;
use switchback_gateway::token::{ConnectError, RegistryError};

/// An error that prevents a change. Its text is a sentence for the operator.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A reason that no error below has.
    #[error("{1}")]
    Request(RefusalKind, String),
    #[error(transparent)]
    Phase(#[from] PhaseFault),
    #[error("{}", phases_text(.0))]
    Phases(#[from] PhasesError),
    #[error("{}", retire_text(.0))]
    Retire(#[from] RetireError),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whose side a refusal is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The request is wrong by itself.
    Invalid,
    /// The request names something that does not exist.
    NotFound,
    /// The current state forbids it.
    Conflict,
    /// Another change or another service got in the way; the same request may succeed later.
    Failed,
    /// The store's address or key is wrong.
    StoreSettings,
    /// The store does not answer or fails.
    Store,
}

impl Refusal {
    pub fn invalid(text: impl Into<String>) -> Refusal {
        Refusal::Request(RefusalKind::Invalid, text.into())
    }

    pub fn kind(&self) -> RefusalKind {
        match self {
            Refusal::Request(kind, _) => *kind,
            Refusal::Phase(_) => RefusalKind::Invalid,
            Refusal::Phases(error) => match error {
                PhasesError::NoSuchOperation { .. } | PhasesError::NoSuchSide(..) => RefusalKind::NotFound,
                PhasesError::WhichSide(..) | PhasesError::NoReason(_) => RefusalKind::Invalid,
                PhasesError::NoUpstream { .. } | PhasesError::AgainstEvidence(_) => RefusalKind::Conflict,
                PhasesError::Moved => RefusalKind::Failed,
                PhasesError::Rollout(RolloutError::NoRollout | RolloutError::NoSuchPlan { .. }) => {
                    RefusalKind::NotFound
                }
                PhasesError::Rollout(RolloutError::WhichPlan(_)) => RefusalKind::Invalid,
                PhasesError::Rollout(_) => RefusalKind::Conflict,
                PhasesError::Store(error) => of_store(error),
            },
            Refusal::Retire(error) => match error {
                RetireError::NoSuchOperation { .. }
                | RetireError::NoSuchSide(..)
                | RetireError::NoSuchBrownout(_) => RefusalKind::NotFound,
                RetireError::WhichSide(_)
                | RetireError::Window(_)
                | RetireError::NoScope
                | RetireError::TwoScopes => RefusalKind::Invalid,
                RetireError::TooMany => RefusalKind::Conflict,
                RetireError::Changed => RefusalKind::Failed,
                RetireError::Store(error) => of_store(error),
            },
            Refusal::Registry(error) | Refusal::Connect(ConnectError::Registry(error)) => match error {
                RegistryError::Name(_)
                | RegistryError::Side(_)
                | RegistryError::Flow
                | RegistryError::Token
                | RegistryError::NoApp
                | RegistryError::WhichSide { .. } => RefusalKind::Invalid,
                RegistryError::Revoked(_)
                | RegistryError::NotRevoked(_)
                | RegistryError::NotConnected(_)
                | RegistryError::Configured { .. } => RefusalKind::Conflict,
                RegistryError::Store(error) => of_store(error),
            },
            Refusal::Connect(ConnectError::NoApp(_)) => RefusalKind::Conflict,
            Refusal::Connect(_) => RefusalKind::Failed,
            Refusal::Store(error) => of_store(error),
        }
    }

    /// Returns whether the state has changed since the operator read it.
    pub fn is_outdated(&self) -> bool {
        matches!(self, Refusal::Phases(PhasesError::Moved) | Refusal::Retire(RetireError::Changed))
    }
}

fn of_store(error: &StoreError) -> RefusalKind {
    match error {
        StoreError::NoSuchClient(_) => RefusalKind::NotFound,
        StoreError::NameTaken(_)
        | StoreError::TokenTaken(_)
        | StoreError::RefreshTokenTaken(_)
        | StoreError::Tampered(_) => RefusalKind::Conflict,
        StoreError::Url | StoreError::NoSuchFile(_) | StoreError::WrongKey(_) => RefusalKind::StoreSettings,
        _ => RefusalKind::Store,
    }
}

fn phases_text(error: &PhasesError) -> String {
    match error {
        PhasesError::NoSuchOperation { operation, known } => with_suggestion(error, operation, known),
        PhasesError::Rollout(RolloutError::NoSuchPlan { name, known }) => with_suggestion(error, name, known),
        _ => error.to_string(),
    }
}

fn retire_text(error: &RetireError) -> String {
    match error {
        RetireError::NoSuchOperation { operation, known } => with_suggestion(error, operation, known),
        _ => error.to_string(),
    }
}

/// Appends a suggestion for a misspelt name.
fn with_suggestion(error: &impl Display, operation: &str, known: &[String]) -> String {
    match did_you_mean(operation, known) {
        Some(suggestion) => format!("{error}; {suggestion}"),
        None => error.to_string(),
    }
}
