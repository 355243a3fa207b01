//! Archives: data that the gateway itself stores per client and account, and the progress of
//! harvests, which fill archives from a service.
//!
//! An entry is sealed for its client, account, archive, key and storage time: a row that is copied
//! elsewhere or given a newer time does not decrypt. Its key is stored as a keyed hash of all four.
//! Entries are never cached, so all gateways of the store see a write with their next request.

use super::db::{Arg, Tx, args};
use super::seal::{HashOf, HashedValue, KeyRing, KeyedHash, SealContext};
use super::{NewHistory, Store, StoreError};
use crate::secret::Secret;

const COLUMN: &str = "archive_entries.sealed";

/// Number of keys per statement; shorter lists repeat the last key.
const KEYS_PER_STATEMENT: usize = 32;
const FIND: &str = "SELECT entry, sealed FROM archive_entries WHERE client = $1 AND account = $2 AND archive = $3 AND entry IN \
    ($4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, \
    $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35)";

/// The owner of entries: a client, and the account that its calls act on (empty for the main
/// account).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArchiveOwner {
    /// The client's registered name.
    pub client: String,
    /// The secondary account as named in its path; empty for the main account.
    pub account: String,
}

/// A decrypted entry.
#[derive(Debug)]
pub struct ArchiveEntry {
    /// Time of storage, wall time in milliseconds since 1970.
    pub kept_ms: i64,
    /// `None` if the entry is only a key.
    pub value: Option<Secret<Vec<u8>>>,
}

/// The progress of a harvest.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct HarvestRow {
    /// The client's registered name.
    pub client: String,
    /// The secondary account as named in its path; empty for the main account.
    pub account: String,
    /// The harvest's name in the pack.
    pub harvest: String,
    /// The next page to read.
    pub page: i64,
    /// Elements read so far.
    pub elements: i64,
    /// Entries stored so far.
    pub kept: i64,
    /// Time when the last page was read; `None` while there may be more.
    pub finished_ms: Option<i64>,
    /// Time of the last change, wall time in milliseconds since 1970.
    pub changed_ms: i64,
}

/// The number of entries of an owner in an archive.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ArchiveCount {
    /// The client's registered name.
    pub client: String,
    /// The secondary account as named in its path; empty for the main account.
    pub account: String,
    /// The archive's name in the pack.
    pub archive: String,
    /// Number of entries, with and without values.
    pub entries: i64,
}

/// Entries to store in one archive.
#[derive(Debug)]
pub struct NewEntries<'e> {
    /// The archive's name in the pack.
    pub archive: &'e str,
    /// Keys and values; a `None` value stores a key only. Keys are hashed and values sealed before
    /// they are written.
    pub entries: &'e [(String, Option<Vec<u8>>)],
}

impl Store {
    /// Returns an archive's entries under these keys, in the order of the keys.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails, or an entry was modified or not sealed by this store.
    pub async fn archive_get(
        &self,
        owner: &ArchiveOwner,
        archive: &str,
        keys: &[String],
    ) -> Result<Vec<Option<ArchiveEntry>>, StoreError> {
        let hashes: Vec<KeyedHash> = keys.iter().map(|key| self.entry_hash(owner, archive, key)).collect();
        let mut found = std::collections::HashMap::new();
        for hashes in hashes.chunks(KEYS_PER_STATEMENT) {
            let mut arguments: Vec<Arg> =
                args![owner.client.as_str(), owner.account.as_str(), archive].to_vec();
            // A fixed number of placeholders keeps one prepared statement for all lengths of lists.
            let wanted = hashes.iter().chain(std::iter::repeat(hashes.last().unwrap_or(&[0; 32])));
            arguments.extend(wanted.take(KEYS_PER_STATEMENT).map(|hash| Arg::from(&hash[..])));
            for row in self.db.rows(FIND, &arguments).await? {
                found.insert(row.bytes("entry")?, row.bytes("sealed")?);
            }
        }
        let open = |hash: &KeyedHash| match found.get(&hash[..]) {
            None => Ok(None),
            Some(sealed) => {
                let plain = self.keys.open(&place(&owner.client, hash), sealed)?;
                decode(plain.expose()).map(Some)
            }
        };
        hashes.iter().map(open).collect()
    }

    /// Stores entries. Existing ones are replaced and get a new storage time.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn archive_put(&self, owner: &ArchiveOwner, new: &NewEntries<'_>) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        self.put_entries(&mut tx, owner, new).await?;
        tx.commit().await
    }

    /// Stores the entries of one harvested page together with the progress, in one transaction.
    ///
    /// `before` is the row as the caller knows it. If the stored row differs, another process runs
    /// the same harvest; then the transaction is not committed and the result is `false`.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn harvest_page(
        &self,
        owner: &ArchiveOwner,
        new: &[NewEntries<'_>],
        before: Option<&HarvestRow>,
        row: &HarvestRow,
    ) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        let mut arguments = args![
            owner.client.as_str(),
            owner.account.as_str(),
            row.harvest.as_str(),
            row.page,
            row.elements,
            row.kept,
            row.finished_ms,
            row.changed_ms
        ]
        .to_vec();
        let noted = match before {
            None => {
                tx.run(
                    "INSERT INTO archive_harvests (client, account, harvest, page, elements, kept, finished_ms, changed_ms) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (client, account, harvest) DO NOTHING",
                    &arguments,
                )
                .await?
            }
            Some(before) => {
                arguments.extend_from_slice(args![
                    before.page,
                    before.elements,
                    before.kept,
                    before.changed_ms
                ]);
                tx.run(
                    "UPDATE archive_harvests SET page = $4, elements = $5, kept = $6, finished_ms = $7, changed_ms = $8 \
                     WHERE client = $1 AND account = $2 AND harvest = $3 \
                     AND page = $9 AND elements = $10 AND kept = $11 AND changed_ms = $12",
                    &arguments,
                )
                .await?
            }
        };
        if noted == 0 {
            return Ok(false);
        }
        for new in new {
            self.put_entries(&mut tx, owner, new).await?;
        }
        tx.commit().await?;
        Ok(true)
    }

    async fn put_entries(
        &self,
        tx: &mut Tx,
        owner: &ArchiveOwner,
        new: &NewEntries<'_>,
    ) -> Result<(), StoreError> {
        let now = self.clock.unix_ms();
        for (key, value) in new.entries {
            let hash = self.entry_hash(owner, new.archive, key);
            let plain = Secret::new(encode(now, value.as_deref()));
            let sealed = self.keys.seal(&place(&owner.client, &hash), plain.expose());
            tx.run(
                "INSERT INTO archive_entries (client, account, archive, entry, sealed) VALUES ($1, $2, $3, $4, $5) \
                 ON CONFLICT (client, account, archive, entry) DO UPDATE SET sealed = excluded.sealed",
                args![owner.client.as_str(), owner.account.as_str(), new.archive, &hash[..], sealed],
            )
            .await?;
        }
        Ok(())
    }

    /// Returns the progress of the harvests of one client, or of all.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn harvests(&self, client: Option<&str>) -> Result<Vec<HarvestRow>, StoreError> {
        let sql = "SELECT client, account, harvest, page, elements, kept, finished_ms, changed_ms FROM archive_harvests \
                   WHERE client = $1 OR $1 = '' ORDER BY client, account, harvest";
        let rows = self.db.rows(sql, args![client.unwrap_or("")]).await?;
        let row = |row: &super::db::DbRow| {
            Ok(HarvestRow {
                client: row.text("client")?,
                account: row.text("account")?,
                harvest: row.text("harvest")?,
                page: row.int("page")?,
                elements: row.int("elements")?,
                kept: row.int("kept")?,
                finished_ms: row.int_or_none("finished_ms")?,
                changed_ms: row.int("changed_ms")?,
            })
        };
        rows.iter().map(row).collect()
    }

    /// Returns the numbers of entries of one client, or of all.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn archive_counts(&self, client: Option<&str>) -> Result<Vec<ArchiveCount>, StoreError> {
        let sql = "SELECT client, account, archive, COUNT(*) AS entries FROM archive_entries \
                   WHERE client = $1 OR $1 = '' GROUP BY client, account, archive ORDER BY client, account, archive";
        let rows = self.db.rows(sql, args![client.unwrap_or("")]).await?;
        let row = |row: &super::db::DbRow| {
            Ok(ArchiveCount {
                client: row.text("client")?,
                account: row.text("account")?,
                archive: row.text("archive")?,
                entries: row.int("entries")?,
            })
        };
        rows.iter().map(row).collect()
    }

    /// Deletes entries of a client from an archive: those under these keys, or all if the list is
    /// empty. Returns their number.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn archive_clear(
        &self,
        owner: &ArchiveOwner,
        archive: &str,
        keys: &[String],
    ) -> Result<u64, StoreError> {
        let mut tx = self.write().await?;
        let (client, account) = (owner.client.as_str(), owner.account.as_str());
        let of_archive = "DELETE FROM archive_entries WHERE client = $1 AND account = $2 AND archive = $3";
        let mut gone = 0;
        if keys.is_empty() {
            gone = tx.run(of_archive, args![client, account, archive]).await?;
        }
        for key in keys {
            let hash = self.entry_hash(owner, archive, key);
            let sql = "DELETE FROM archive_entries WHERE client = $1 AND account = $2 AND archive = $3 AND entry = $4";
            gone += tx.run(sql, args![client, account, archive, &hash[..]]).await?;
        }
        let all = if keys.is_empty() { "all entries" } else { "named entries" };
        let scope = format!("archive {archive}, {all}");
        let detail = format!("{gone} entries");
        let entry =
            NewHistory { kind: "archive cleared", scope: &scope, detail: &detail, ..NewHistory::default() };
        self.enter_of_client(&mut tx, client, entry).await?;
        tx.commit().await?;
        Ok(gone)
    }

    /// Hashes the owner, archive and key together, so that equal keys of two owners have different
    /// hashes.
    fn entry_hash(&self, owner: &ArchiveOwner, archive: &str, key: &str) -> KeyedHash {
        let parts: [HashedValue<'_>; 4] =
            [owner.client.as_str().into(), owner.account.as_str().into(), archive.into(), key.into()];
        self.hasher.row(HashOf::ArchiveEntry, &parts)
    }
}

/// Erases the entries and harvests of a client.
pub(super) async fn erase(tx: &mut Tx, client: &str) -> Result<(), StoreError> {
    tx.run("DELETE FROM archive_entries WHERE client = $1", args![client]).await?;
    tx.run("DELETE FROM archive_harvests WHERE client = $1", args![client]).await?;
    Ok(())
}

/// Seals all entries with the newest key. Returns their number.
pub(super) async fn reseal(tx: &mut Tx, keys: &KeyRing) -> Result<u64, StoreError> {
    let mut values = 0;
    for row in tx.rows("SELECT client, account, archive, entry, sealed FROM archive_entries", &[]).await? {
        let (client, account, archive) = (row.text("client")?, row.text("account")?, row.text("archive")?);
        let entry = row.bytes("entry")?;
        let plain = keys.open(&place(&client, &entry), &row.bytes("sealed")?)?;
        let sealed = keys.seal(&place(&client, &entry), plain.expose());
        values += tx
            .run(
                "UPDATE archive_entries SET sealed = $5 \
                 WHERE client = $1 AND account = $2 AND archive = $3 AND entry = $4",
                args![client.as_str(), account.as_str(), archive.as_str(), entry, sealed],
            )
            .await?;
    }
    Ok(values)
}

/// Returns the sealing place. The hash covers account and archive.
fn place<'a>(client: &'a str, entry: &'a [u8]) -> SealContext<'a> {
    SealContext { column: COLUMN, client, row: entry }
}

/// Encodes the storage time, a flag for the presence of a value, and the value.
fn encode(kept_ms: i64, value: Option<&[u8]>) -> Vec<u8> {
    let has_value = [u8::from(value.is_some())];
    [&kept_ms.to_be_bytes()[..], &has_value, value.unwrap_or_default()].concat()
}

fn decode(bytes: &[u8]) -> Result<ArchiveEntry, StoreError> {
    let corrupt = || StoreError::Corrupt("an entry of an archive".to_owned());
    let (kept, rest) = bytes.split_first_chunk().ok_or_else(corrupt)?;
    let (has_value, value) = rest.split_first().ok_or_else(corrupt)?;
    let value = (*has_value == 1).then(|| Secret::new(value.to_vec()));
    Ok(ArchiveEntry { kept_ms: i64::from_be_bytes(*kept), value })
}
