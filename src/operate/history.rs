//! Entries of the history for changes outside the store, and the names of their authors.

use switchback_gateway::store::{NewHistory, Store};

/// Longest name of a person, in characters.
const NAME_CHARS_MAX: usize = 60;

/// Cleans a person's name for the history: trimmed, without control characters, at most
/// [`NAME_CHARS_MAX`] long.
pub(crate) fn person(name: &str) -> String {
    name.trim().chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect()
}

/// Writes the history entry of a change outside the store. The change does not depend on it: a
/// failure is only logged.
pub(crate) async fn note(store: &Store, entry: &NewHistory<'_>) {
    if let Err(error) = store.note(entry).await {
        let (kind, subject, author) = (entry.kind, entry.subject, store.author());
        tracing::warn!(%error, kind, subject, author, "the history in the store lacks an entry");
    }
}
