//! Archive access of requests, limited to the entries of the client and the account that a request
//! acts on. A failed lookup is an error, never "absent"; a failed write is an error, never
//! "stored".

use super::exchange::Exchange;
use crate::error::{ErrorKind, GatewayError};
use crate::store::{ArchiveOwner, NewEntries, Store, StoreError};
use std::time::Duration;
use switchback_engine::translate::{Entries, Entry, Event, Lookup};
use switchback_plan::ArchiveId;

impl Exchange<'_> {
    /// Looks up archive entries.
    ///
    /// # Errors
    ///
    /// Returns a retryable overload if the store cannot be reached.
    pub(in crate::proxy) async fn recall(&self, lookup: Lookup) -> Result<Event, GatewayError> {
        let (owner, name) = (self.owner()?, self.archive(lookup.archive));
        // Shadow calls look entries up too, and their threads must not occupy a connection of the
        // store: `at_home` runs the query on the store's own runtime.
        let looking = |store: Store| async move { store.archive_get(&owner, &name, &lookup.keys).await };
        let found = self.composer.resume.store().at_home(looking).await.map_err(unavailable)?;
        if found.iter().any(Option::is_some)
            && let Some(recording) = self.request.context.recording()
        {
            recording.note_archive_read();
        }
        let now = self.composer.clock.unix_ms();
        let entry = |entry: crate::store::ArchiveEntry| Entry {
            age: u64::try_from((now - entry.kept_ms) / 1000).unwrap_or(0),
            value: entry.value.map(|value| value.expose().clone().into()),
        };
        Ok(Event::Recalled(found.into_iter().map(|found| found.map(entry)).collect()))
    }

    /// Stores archive entries. When this returns, every gateway that shares the store sees them.
    ///
    /// # Errors
    ///
    /// Returns a retryable overload if the store cannot be reached.
    pub(super) async fn keep(&self, entries: Entries) -> Result<Event, GatewayError> {
        let (owner, name) = (self.owner()?, self.archive(entries.archive));
        let keeping = |store: Store| async move {
            store.archive_put(&owner, &NewEntries { archive: &name, entries: &entries.entries }).await
        };
        self.composer.resume.store().at_home(keeping).await.map_err(unavailable)?;
        Ok(Event::Kept)
    }

    fn owner(&self) -> Result<ArchiveOwner, GatewayError> {
        let (client, account) = self.acts_on()?;
        Ok(ArchiveOwner { client: client.to_owned(), account: account.unwrap_or_default().to_owned() })
    }

    fn archive(&self, id: ArchiveId) -> String {
        let archive = self.request.context.program.pack().archives.get(usize::from(id.0));
        archive.map_or_else(String::new, |archive| archive.name.clone())
    }
}

fn unavailable(error: StoreError) -> GatewayError {
    GatewayError::new(
        ErrorKind::Overloaded { retry_after: Duration::from_secs(1) },
        "an archive cannot be reached",
    )
    .because(error)
}
