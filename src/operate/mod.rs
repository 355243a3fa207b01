//! Changes by operators, for the command line, the admin API and the studio. Each surface reads its
//! own input and renders results. Shared are the checks of a change, its author, and its refusal.
//!
//! The gateway crate executes the changes (`Phases`, `Registry`, `Retirement`, `Store`) and writes
//! the history entry in the same transaction, with the author that a handle has (`by`).

mod capture;
mod refusal;

pub(crate) use capture::{CaptureRequest, begin_capture, end_capture, record};
pub(crate) use refusal::{Refusal, RefusalKind};

use crate::config::DateOrTime;
use switchback_gateway::store::{NewHistory, Store};
use switchback_gateway::token::{Registry, RegistryError, TokenError, Tokens};

/// Longest name of a person, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 60;

/// Cleans a person's name for the history: trimmed, without control characters, at most
/// [`NAME_CHARS_MAX`] long.
pub(crate) fn person(name: &str) -> String {
    name.trim().chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect()
}

/// Parses the value of the field `name`, a day or a moment, as Unix time in milliseconds.
pub(crate) fn moment(name: &str, text: &str) -> Result<i64, Refusal> {
    let parsed = text.parse::<DateOrTime>();
    parsed.map(DateOrTime::unix_ms).map_err(|what| Refusal::invalid(format!("{name}: {what}")))
}

/// Applies stored changes of clients to the data path of this process at once, instead of at its
/// next look at the store.
pub(crate) async fn apply_clients(tokens: &Tokens) {
    if let Err(error) = tokens.sync().await {
        tracing::warn!(%error, "a change of clients is stored; it is taken up at the next look at the store");
    }
}

/// Refreshes the grant of a client and waits for the outcome.
pub(crate) async fn retry_grant(
    registry: &Registry,
    tokens: &Tokens,
    name: &str,
) -> Result<Result<(), TokenError>, RegistryError> {
    let asked = registry.retry(name).await?;
    tokens.sync().await?;
    Ok(tokens.refresh(name, asked.grant.generation).await)
}

/// Writes the history entry of a change outside the store. The change does not depend on it: a
/// failure is only logged.
pub(crate) async fn note(store: &Store, entry: &NewHistory<'_>) {
    if let Err(error) = store.note(entry).await {
        let (kind, subject, author) = (entry.kind, entry.subject, store.author());
        tracing::warn!(%error, kind, subject, author, "the history in the store lacks an entry");
    }
}
