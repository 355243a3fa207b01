//! Archives as requests use them: the entries of the client whose request it is, and of the account that it is for. What
//! cannot be looked up is not taken for absent, and what cannot be kept is not said to be done.

use super::exchange::Exchange;
use crate::error::{GatewayError, Kind};
use crate::store::{NewEntries, Owner, Store, StoreError};
use std::time::Duration;
use switchback_engine::translate::{Entries, Entry, Event, Lookup};
use switchback_plan::ArchiveId;

impl Exchange<'_> {
    /// Looks entries up.
    pub(in crate::proxy) async fn recall(&self, lookup: Lookup) -> Result<Event, GatewayError> {
        let (owner, name) = (self.owner()?, self.archive(lookup.archive));
        // The shadow recalls, too.
        let looking = |store: Store| async move { store.archive_get(&owner, &name, &lookup.keys).await };
        let found = self.composer.resume.store().at_home(looking).await.map_err(unavailable)?;
        if found.iter().any(Option::is_some)
            && let Some(recording) = self.context.recording()
        {
            recording.recalled();
        }
        let now = self.composer.clock.unix_ms();
        let entry = |entry: crate::store::ArchiveEntry| Entry {
            age: u64::try_from((now - entry.kept_ms) / 1000).unwrap_or(0),
            value: entry.value.map(|value| value.expose().clone().into()),
        };
        Ok(Event::Recalled(found.into_iter().map(|found| found.map(entry)).collect()))
    }

    /// Keeps entries. Once this is done, every gateway that shares the store sees them.
    pub(super) async fn keep(&self, entries: Entries) -> Result<Event, GatewayError> {
        let (owner, name) = (self.owner()?, self.archive(entries.archive));
        let keeping = |store: Store| async move {
            store.archive_put(&owner, &NewEntries { archive: &name, entries: &entries.entries }).await
        };
        self.composer.resume.store().at_home(keeping).await.map_err(unavailable)?;
        Ok(Event::Kept)
    }

    fn owner(&self) -> Result<Owner, GatewayError> {
        let (client, account) = self.acts_on()?;
        Ok(Owner { client: client.to_owned(), account: account.unwrap_or_default().to_owned() })
    }

    fn archive(&self, id: ArchiveId) -> String {
        let archive = self.context.program.pack().archives.get(usize::from(id.0));
        archive.map_or_else(String::new, |archive| archive.name.clone())
    }
}

fn unavailable(error: StoreError) -> GatewayError {
    GatewayError::new(
        Kind::Overloaded { retry_after: Duration::from_secs(1) },
        "an archive cannot be reached",
    )
    .because(error)
}
