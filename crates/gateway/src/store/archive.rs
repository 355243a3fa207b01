//! Archives: what the gateway keeps of its own, by client and account, and how far harvests have come.
//!
//! An entry is sealed for its client, account, archive and key, with the moment it was kept: a row that was copied to another
//! place, or made younger, does not open. Its key lies there as a keyed hash of all four. Entries are read where they lie and
//! never cached, so that what one gateway keeps, all that share the store see with their next request.

use super::db::{Arg, Tx, args};
use super::seal::{HashOf, KeyRing, KeyedHash, Part, Place};
use super::{NewHistory, Store, StoreError};
use crate::secret::Secret;

const COLUMN: &str = "archive_entries.sealed";

/// Keys that one statement looks for; where there are fewer, the last is asked for again.
const KEYS_PER_STATEMENT: usize = 32;
const FIND: &str = "SELECT entry, sealed FROM archive_entries WHERE client = $1 AND account = $2 AND archive = $3 AND entry IN \
    ($4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, \
    $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35)";

/// Whose entries: a client, and the account that its calls act on, empty for the main one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The client's enrolled name.
    pub client: String,
    /// The secondary account, as its path names it; empty for the main one.
    pub account: String,
}

/// An entry, opened.
#[derive(Debug)]
pub struct ArchiveEntry {
    /// Wall time in milliseconds since 1970.
    pub kept_ms: i64,
    /// None where an entry is its key alone.
    pub value: Option<Secret<Vec<u8>>>,
}

/// How far a harvest has come.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct HarvestRow {
    /// The client's enrolled name.
    pub client: String,
    /// The secondary account, as its path names it; empty for the main one.
    pub account: String,
    /// As the pack calls it.
    pub harvest: String,
    /// The page to be read next.
    pub page: i64,
    /// Elements read so far.
    pub elements: i64,
    /// Entries kept so far.
    pub kept: i64,
    /// When its last page was read; none while there may be more.
    pub finished_ms: Option<i64>,
    /// Wall time in milliseconds since 1970. When the last page was noted.
    pub changed_ms: i64,
}

/// How many entries an archive has for an owner.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ArchiveCount {
    /// The client's enrolled name.
    pub client: String,
    /// The secondary account, as its path names it; empty for the main one.
    pub account: String,
    /// As the pack calls it.
    pub archive: String,
    /// Marks, and entries with values.
    pub entries: i64,
}

/// Entries for one archive: keys and values.
#[derive(Debug)]
pub struct NewEntries<'e> {
    /// As the pack calls it.
    pub archive: &'e str,
    /// None as a value: a mark, which is its key alone. Keys are hashed and values sealed before they are
    /// written.
    pub entries: &'e [(String, Option<Vec<u8>>)],
}

impl Store {
    /// What an archive has under these keys, in their order.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails. An entry was not sealed by this store, or was changed.
    pub async fn archive_get(
        &self,
        owner: &Owner,
        archive: &str,
        keys: &[String],
    ) -> Result<Vec<Option<ArchiveEntry>>, StoreError> {
        let hashes: Vec<KeyedHash> = keys.iter().map(|key| self.entry_hash(owner, archive, key)).collect();
        let mut found = std::collections::HashMap::new();
        for hashes in hashes.chunks(KEYS_PER_STATEMENT) {
            let mut arguments: Vec<Arg> =
                args![owner.client.as_str(), owner.account.as_str(), archive].to_vec();
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

    /// Puts entries in; those that are there already are replaced, and their time begins anew.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn archive_put(&self, owner: &Owner, new: &NewEntries<'_>) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        self.put_entries(&mut tx, owner, new).await?;
        tx.commit().await
    }

    /// Puts what a page of a harvest brought in, and notes how far it has come: both or neither.
    ///
    /// `before` is the row as the caller knows it. Where it is another one by now, somebody else reads the harvest too:
    /// nothing is written, and the answer is false.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn harvest_page(
        &self,
        owner: &Owner,
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

    async fn put_entries(&self, tx: &mut Tx, owner: &Owner, new: &NewEntries<'_>) -> Result<(), StoreError> {
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

    /// How far the harvests of a client have come, or of all.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn harvests(&self, client: Option<&str>) -> Result<Vec<HarvestRow>, StoreError> {
        let sql = "SELECT client, account, harvest, page, elements, kept, finished_ms, changed_ms FROM archive_harvests \
                   WHERE client = $1 OR $1 = '' ORDER BY client, account, harvest";
        let rows = self.db.rows(sql, args![client.unwrap_or("")]).await?;
        let row = |row: &super::db::Row| {
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

    /// How many entries there are, of a client or of all.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn archive_counts(&self, client: Option<&str>) -> Result<Vec<ArchiveCount>, StoreError> {
        let sql = "SELECT client, account, archive, COUNT(*) AS entries FROM archive_entries \
                   WHERE client = $1 OR $1 = '' GROUP BY client, account, archive ORDER BY client, account, archive";
        let rows = self.db.rows(sql, args![client.unwrap_or("")]).await?;
        let row = |row: &super::db::Row| {
            Ok(ArchiveCount {
                client: row.text("client")?,
                account: row.text("account")?,
                archive: row.text("archive")?,
                entries: row.int("entries")?,
            })
        };
        rows.iter().map(row).collect()
    }

    /// Takes entries of a client out of an archive: those under these keys, or all. Gives how many.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn archive_clear(
        &self,
        owner: &Owner,
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

    /// A keyed hash of the place and the key: equal keys of two owners do not look alike.
    fn entry_hash(&self, owner: &Owner, archive: &str, key: &str) -> KeyedHash {
        let parts: [Part<'_>; 4] =
            [owner.client.as_str().into(), owner.account.as_str().into(), archive.into(), key.into()];
        self.hasher.row(HashOf::ArchiveEntry, &parts)
    }
}

/// Erases what is kept for a client.
pub(super) async fn erase(tx: &mut Tx, client: &str) -> Result<(), StoreError> {
    tx.run("DELETE FROM archive_entries WHERE client = $1", args![client]).await?;
    tx.run("DELETE FROM archive_harvests WHERE client = $1", args![client]).await?;
    Ok(())
}

/// Seals all entries anew; gives how many.
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

/// The hash covers account and archive.
fn place<'a>(client: &'a str, entry: &'a [u8]) -> Place<'a> {
    Place { column: COLUMN, client, row: entry }
}

/// The moment, whether there is a value, and the value.
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
