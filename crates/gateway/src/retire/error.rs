//! Errors of changes to brownouts and sunsets.

use crate::store::StoreError;

/// Maximum number of stored windows.
pub(super) const BROWNOUTS_MAX: u32 = 1_000;

/// An error that prevents changing a brownout or sunset.
#[derive(Debug, thiserror::Error)]
pub enum RetireError {
    /// No front serves this operation.
    #[error("no front serves an operation `{operation}`")]
    NoSuchOperation {
        /// The name in the request.
        operation: String,
        /// The operations that are served.
        known: Vec<String>,
    },
    /// No front serves this side. The second field lists the served sides.
    #[error("no front speaks `{0}`; sides that clients speak: {1}")]
    NoSuchSide(String, String),
    /// The request names no side although there are several. The field lists them.
    #[error("clients speak several sides; say which is meant: {0}")]
    WhichSide(String),
    /// The window affects all calls of all clients, which is not confirmed.
    #[error(
        "it names neither operations nor clients; name some, or confirm that all calls of all clients are meant"
    )]
    NoScope,
    /// The window is confirmed for all calls, but names operations or clients.
    #[error(
        "it names operations or clients, and confirms all calls of all clients; leave out one of the two"
    )]
    TwoScopes,
    /// The times are out of order or a limit is exceeded; a sentence for the operator.
    #[error("{0}")]
    Window(String),
    /// No run-time brownout has this id.
    #[error("there is no brownout `{0}`; those of the configuration are taken out there")]
    NoSuchBrownout(String),
    /// The store contains the maximum number of brownouts.
    #[error("there are {BROWNOUTS_MAX} brownouts already; remove some first")]
    TooMany,
    /// The state has changed since the caller read it.
    #[error("it was changed meanwhile")]
    Changed,
    /// The store does not answer or fails.
    #[error(transparent)]
    Store(#[from] StoreError),
}
