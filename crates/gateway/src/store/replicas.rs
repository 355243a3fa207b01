//! Rows about the gateways that share this store: their presence and their counts. The writers
//! define the content. No reader follows these writes, so they have no number.

use super::db::{DbRow, args};
use super::{Store, StoreError};

/// The last report of a gateway about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaRow {
    /// A new id for each start.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// Number of reports so far.
    pub beats: i64,
    /// Wall time of that gateway in milliseconds since 1970.
    pub seen_ms: i64,
    /// Time of its shutdown; `None` while it runs, or if it exited without a report.
    pub left_ms: Option<i64>,
    /// JSON.
    pub standing: String,
}

/// The counts of a gateway over a few seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSlot {
    /// Grows with each slot of its gateway.
    pub number: i64,
    /// Wall time in milliseconds since 1970.
    pub at_ms: i64,
    /// JSON.
    pub counted: String,
}

impl Store {
    /// Stores a gateway's report and its counts. If there are new slots, deletes its slots below
    /// `number_min`, and other gateways without a report since `forget_ms`.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn put_replica(
        &self,
        row: &ReplicaRow,
        slots: &[ReplicaSlot],
        number_min: i64,
        forget_ms: i64,
    ) -> Result<(), StoreError> {
        let mut tx = self.db.begin().await?;
        tx.run(
            "INSERT INTO replicas (id, name, beats, seen_ms, left_ms, standing) VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT (id) DO UPDATE SET name = excluded.name, beats = excluded.beats, seen_ms = excluded.seen_ms, \
             left_ms = excluded.left_ms, standing = excluded.standing",
            args![
                row.id.as_str(),
                row.name.as_str(),
                row.beats,
                row.seen_ms,
                row.left_ms,
                row.standing.as_str()
            ],
        )
        .await?;
        for slot in slots {
            tx.run(
                "INSERT INTO replica_traffic (replica, number, at_ms, counted) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (replica, number) DO NOTHING",
                args![row.id.as_str(), slot.number, slot.at_ms, slot.counted.as_str()],
            )
            .await?;
        }
        if !slots.is_empty() {
            let old = "DELETE FROM replica_traffic WHERE replica = $1 AND number < $2";
            tx.run(old, args![row.id.as_str(), number_min]).await?;
            let forgotten = "DELETE FROM replicas WHERE seen_ms < $1 AND id <> $2";
            if tx.run(forgotten, args![forget_ms, row.id.as_str()]).await? > 0 {
                let orphaned = "DELETE FROM replica_traffic WHERE replica NOT IN (SELECT id FROM replicas)";
                tx.run(orphaned, &[]).await?;
                let orphaned = "DELETE FROM replica_requests WHERE replica NOT IN (SELECT id FROM replicas)";
                tx.run(orphaned, &[]).await?;
            }
        }
        tx.commit().await
    }

    /// Returns all stored gateways, by name.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn replicas(&self) -> Result<Vec<ReplicaRow>, StoreError> {
        let sql = "SELECT id, name, beats, seen_ms, left_ms, standing FROM replicas ORDER BY name, id";
        self.db.rows(sql, &[]).await?.iter().map(replica).collect()
    }

    /// Replaces the sampled requests of a gateway, as JSON. `None` deletes them.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn put_replica_requests(&self, id: &str, sampled: Option<&str>) -> Result<(), StoreError> {
        let mut tx = self.db.begin().await?;
        match sampled {
            Some(sampled) => {
                let sql = "INSERT INTO replica_requests (replica, sampled) VALUES ($1, $2) \
                           ON CONFLICT (replica) DO UPDATE SET sampled = excluded.sampled";
                tx.run(sql, args![id, sampled]).await?;
            }
            None => {
                tx.run("DELETE FROM replica_requests WHERE replica = $1", args![id]).await?;
            }
        }
        tx.commit().await
    }

    /// Returns the sampled requests of a gateway, if it has stored any.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn replica_requests(&self, id: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT sampled FROM replica_requests WHERE replica = $1";
        self.db.rows(sql, args![id]).await?.first().map(|row| row.text("sampled")).transpose()
    }

    /// Returns the slots of a gateway after a slot number.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn replica_slots(&self, id: &str, after: i64) -> Result<Vec<ReplicaSlot>, StoreError> {
        let sql = "SELECT number, at_ms, counted FROM replica_traffic WHERE replica = $1 AND number > $2 \
                   ORDER BY number";
        self.db.rows(sql, args![id, after]).await?.iter().map(slot).collect()
    }
}

fn replica(row: &DbRow) -> Result<ReplicaRow, StoreError> {
    Ok(ReplicaRow {
        id: row.text("id")?,
        name: row.text("name")?,
        beats: row.int("beats")?,
        seen_ms: row.int("seen_ms")?,
        left_ms: row.int_or_none("left_ms")?,
        standing: row.text("standing")?,
    })
}

fn slot(row: &DbRow) -> Result<ReplicaSlot, StoreError> {
    Ok(ReplicaSlot { number: row.int("number")?, at_ms: row.int("at_ms")?, counted: row.text("counted")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::store::MissingStore;
    use crate::store::seal::{KeyRing, SealingKey};

    #[tokio::test]
    async fn gateways_read_what_others_counted_and_forget_those_that_are_long_gone() {
        let folder = tempfile::tempdir().expect("a folder for the store");
        let url = format!("sqlite:{}", folder.path().join("switchback.db").display());
        let ring = KeyRing::parse(&[SealingKey::generate()]).expect("a ring");
        let store =
            Store::open(&url, ring, Clock::paused_at(0), MissingStore::Create).await.expect("it opens");
        let row = |id: &str, beats, seen_ms| ReplicaRow {
            id: id.to_owned(),
            name: format!("host {id}"),
            beats,
            seen_ms,
            left_ms: None,
            standing: "{}".to_owned(),
        };
        let slot = |number| ReplicaSlot { number, at_ms: number * 10, counted: format!("[{number}]") };
        let before = store.change().await.expect("a number");
        store
            .put_replica(&row("a", 1, 100), &[slot(1), slot(2), slot(3)], 2, 0)
            .await
            .expect("it is written");
        store.put_replica(&row("b", 1, 500), &[], 0, 0).await.expect("it is written");
        assert_eq!(store.change().await.expect("a number"), before, "nobody reads anew what he follows");
        assert_eq!(store.replica_slots("a", 2).await.expect("slots"), [slot(3)]);
        assert_eq!(store.replica_slots("a", 0).await.expect("slots").len(), 2, "the first one is too old");
        // Sent twice, since the answer to the first was lost.
        store.put_replica(&row("b", 2, 600), &[slot(7)], 0, 200).await.expect("it is written");
        store.put_replica(&row("b", 2, 600), &[slot(7)], 0, 200).await.expect("it is written");
        assert_eq!(store.replicas().await.expect("replicas"), [row("b", 2, 600)], "the other is forgotten");
        assert_eq!(store.replica_slots("a", 0).await.expect("slots"), []);
        assert_eq!(store.replica_slots("b", 0).await.expect("slots"), [slot(7)]);
    }

    #[tokio::test]
    async fn the_samples_of_a_gateway_are_one_row_that_is_replaced_and_deleted() {
        let folder = tempfile::tempdir().expect("a folder for the store");
        let url = format!("sqlite:{}", folder.path().join("switchback.db").display());
        let ring = KeyRing::parse(&[SealingKey::generate()]).expect("a ring");
        let store =
            Store::open(&url, ring, Clock::paused_at(0), MissingStore::Create).await.expect("it opens");
        for sampled in [Some("[1]"), Some("[2]"), None] {
            store.put_replica_requests("a", sampled).await.expect("it is written");
            let read = store.replica_requests("a").await.expect("it is read");
            assert_eq!(read.as_deref(), sampled);
            assert_eq!(store.replica_requests("b").await.expect("it is read"), None);
        }
    }
}
