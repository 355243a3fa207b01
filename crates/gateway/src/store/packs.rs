//! The last packs that served, and the one that an operator has restored. The writers define the
//! form of the files; a pack is identified by the hash of its files.

use super::db::{DbRow, args};
use super::{NewHistory, Store, StoreError};

/// Most recorded packs; those that served last are retained.
const PACKS_MAX: i64 = 10;

/// A pack that begins to serve.
#[derive(Clone, Copy, Debug)]
pub struct NewPackRecord<'a> {
    /// SHA-256 of names and contents of all files, in hexadecimal.
    pub hash: &'a str,
    /// The name of the pack.
    pub name: &'a str,
    /// The cause: an operator, `files`, or `start`.
    pub who: &'a str,
    /// JSON: a digest per operation.
    pub operations: &'a str,
    /// The files, compressed.
    pub files: &'a [u8],
}

/// A recorded pack, without its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackRecordRow {
    /// See [`NewPackRecord::hash`].
    pub hash: String,
    /// See [`NewPackRecord::name`].
    pub name: String,
    /// Time when it last began to serve, wall time in milliseconds since 1970.
    pub served_ms: i64,
    /// See [`NewPackRecord::who`].
    pub who: String,
    /// See [`NewPackRecord::operations`].
    pub operations: String,
}

/// A recorded pack that serves instead of a pack on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredPackRow {
    /// The hash of the recorded pack.
    pub hash: String,
    /// The hash of the pack on disk. Gateways with another pack on disk serve that one.
    pub instead_of: String,
    /// Time of the restoration, wall time in milliseconds since 1970.
    pub since_ms: i64,
    /// The author.
    pub who: String,
}

impl Store {
    /// Records a pack that begins to serve, unless it is the one that began last: replicas load the
    /// same pack one after the other.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn record_pack(&self, new: &NewPackRecord<'_>) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        let last = tx.row("SELECT hash FROM packs ORDER BY change DESC LIMIT 1", &[]).await?;
        if last.map(|row| row.text("hash")).transpose()?.as_deref() == Some(new.hash) {
            return Ok(());
        }
        let change = tx.change();
        tx.run(
            "INSERT INTO packs (hash, name, served_ms, who, operations, files, change) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (hash) DO UPDATE SET \
             served_ms = excluded.served_ms, who = excluded.who, change = excluded.change",
            args![new.hash, new.name, self.clock.unix_ms(), new.who, new.operations, new.files, change],
        )
        .await?;
        let old = "DELETE FROM packs WHERE hash NOT IN (SELECT hash FROM packs ORDER BY change DESC LIMIT $1) \
                   AND hash NOT IN (SELECT hash FROM restored_pack)";
        tx.run(old, args![PACKS_MAX]).await?;
        tx.commit().await
    }

    /// Returns the recorded packs, the one that began to serve last first.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn packs(&self) -> Result<Vec<PackRecordRow>, StoreError> {
        let sql = "SELECT hash, name, served_ms, who, operations FROM packs ORDER BY change DESC";
        self.db.rows(sql, &[]).await?.iter().map(pack).collect()
    }

    /// Returns the compressed files of a recorded pack.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn pack_files(&self, hash: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT files FROM packs WHERE hash = $1";
        self.db.row(sql, args![hash]).await?.map(|row| row.bytes("files")).transpose()
    }

    /// Returns the restored pack.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn restored_pack(&self) -> Result<Option<RestoredPackRow>, StoreError> {
        let sql = "SELECT hash, instead_of, since_ms, who FROM restored_pack";
        self.db.row(sql, &[]).await?.map(|row| restored(&row)).transpose()
    }

    /// Restores a recorded pack instead of a pack on disk, with the history entry `pack restored`.
    /// Gateways of the store follow.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn restore_pack(&self, hash: &str, name: &str, instead_of: &str) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        tx.run("DELETE FROM restored_pack", &[]).await?;
        tx.run(
            "INSERT INTO restored_pack (id, hash, instead_of, since_ms, who) VALUES (1, $1, $2, $3, $4)",
            args![hash, instead_of, self.clock.unix_ms(), self.author()],
        )
        .await?;
        let detail = format!("pack {} instead of {}", short(hash), short(instead_of));
        let entry =
            NewHistory { kind: "pack restored", subject: name, detail: &detail, ..NewHistory::default() };
        self.enter(&mut tx, &entry).await?;
        tx.commit().await
    }

    /// Ends a restoration, with the history entry `restoration ended`. Without one, does nothing.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn end_restoration(&self, name: &str) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        if tx.run("DELETE FROM restored_pack", &[]).await? == 0 {
            return Ok(());
        }
        let detail = "the pack on disk serves again";
        let entry = NewHistory { kind: "restoration ended", subject: name, detail, ..NewHistory::default() };
        self.enter(&mut tx, &entry).await?;
        tx.commit().await
    }
}

fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

fn pack(row: &DbRow) -> Result<PackRecordRow, StoreError> {
    Ok(PackRecordRow {
        hash: row.text("hash")?,
        name: row.text("name")?,
        served_ms: row.int("served_ms")?,
        who: row.text("who")?,
        operations: row.text("operations")?,
    })
}

fn restored(row: &DbRow) -> Result<RestoredPackRow, StoreError> {
    Ok(RestoredPackRow {
        hash: row.text("hash")?,
        instead_of: row.text("instead_of")?,
        since_ms: row.int("since_ms")?,
        who: row.text("who")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::store::MissingStore;
    use crate::store::seal::{KeyRing, SealingKey};

    #[tokio::test]
    async fn the_last_ten_packs_and_the_restored_one_are_recorded() {
        let folder = tempfile::tempdir().expect("a folder for the store");
        let url = format!("sqlite:{}", folder.path().join("switchback.db").display());
        let ring = KeyRing::parse(&[SealingKey::generate()]).expect("a ring");
        let store =
            Store::open(&url, ring, Clock::paused_at(0), MissingStore::Create).await.expect("it opens");
        let record_by = async |hash: &str, who: &str| {
            let new = NewPackRecord { hash, name: "p", who, operations: "{}", files: hash.as_bytes() };
            store.record_pack(&new).await.expect("it is written");
        };
        let record = async |hash: &str| record_by(hash, "start").await;
        let listed = async || -> Vec<String> {
            store.packs().await.expect("a list").into_iter().map(|row| row.hash).collect()
        };
        for hash in ["a", "b", "b", "a"] {
            record(hash).await;
        }
        record_by("a", "another replica").await;
        assert_eq!(store.packs().await.expect("a list")[0].who, "start", "the first replica's record stays");
        assert_eq!(listed().await, ["a", "b"], "each once, the last first");
        store.restore_pack("b", "p", "a").await.expect("it is written");
        for number in 0..12 {
            record(&number.to_string()).await;
        }
        let all = listed().await;
        assert_eq!((all.len(), all[0].as_str(), all[10].as_str()), (11, "11", "b"), "{all:?}");
        assert_eq!(store.pack_files("b").await.expect("it is read").as_deref(), Some(&b"b"[..]));
        assert_eq!(store.pack_files("a").await.expect("it is read"), None);
        let restored = store.restored_pack().await.expect("it is read").expect("there is one");
        assert_eq!((restored.hash.as_str(), restored.instead_of.as_str()), ("b", "a"));
        store.by("Ada").end_restoration("p").await.expect("it is written");
        store.by("Ada").end_restoration("p").await.expect("there is none");
        assert_eq!(store.restored_pack().await.expect("it is read"), None);
        let kinds: Vec<String> =
            store.history(9).await.expect("a list").into_iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, ["restoration ended", "pack restored"]);
    }
}
