//! The sealing keys of a store: verification of the given keys, enrolment of a new one, and the
//! re-sealing that makes old keys obsolete.

use super::db::{Db, Tx, args};
use super::seal::{Hasher, KeyRing, SealContext, random};
use super::{
    NewHistory, Store, StoreError, archive, clients, credentials, event_pairs, events, grants, resume,
};
use crate::clock::Clock;
use crate::secret::Secret;
use serde::Serialize;

const PROOF: &[u8] = b"switchback";

fn proof_place(id: &str) -> SealContext<'_> {
    SealContext { column: "sealing_keys.proof", client: "", row: id.as_bytes() }
}

/// The sealing place of the hash key in a store whose client rows all have keyed hashes. The store
/// is recognized by that place, and only a holder of the sealing key can move the hash key to
/// another one.
const HASH_KEY_PLACE: SealContext<'static> = SealContext { column: "hash_key.bound", client: "", row: b"" };
/// The sealing place in earlier versions, whose rows had no keyed hashes.
const HASH_KEY_PLACE_UNBOUND: SealContext<'static> =
    SealContext { column: "hash_key.sealed", client: "", row: b"" };

/// Rejects a ring that lacks a key of the store. Only reads.
pub(super) async fn verify(db: &Db, keys: &KeyRing) -> Result<(), StoreError> {
    for row in db.rows("SELECT id, proof FROM sealing_keys ORDER BY created_ms", &[]).await? {
        let (id, proof) = (row.text("id")?, row.bytes("proof")?);
        if !keys.holds(&id) {
            return Err(StoreError::WrongKey(id));
        }
        if keys.open(&proof_place(&id), &proof)?.expose() != PROOF {
            return Err(StoreError::WrongKey(id));
        }
    }
    Ok(())
}

/// Enrols the newest key in the store and returns the store's hasher, whose key is generated on
/// first use. In a store of an earlier version, adds keyed hashes to its rows.
pub(super) async fn enroll(db: &Db, keys: &KeyRing, clock: &Clock) -> Result<Hasher, StoreError> {
    let newest = keys.newest().id().to_string();
    let known = db.row("SELECT id FROM sealing_keys WHERE id = $1", args![newest.as_str()]).await?;
    let hash_key = db.row("SELECT sealed FROM hash_key WHERE id = 1", &[]).await?;
    if let (Some(_), Some(row)) = (known, hash_key)
        && let Ok(key) = keys.open(&HASH_KEY_PLACE, &row.bytes("sealed")?)
    {
        return Ok(Hasher::new(&key));
    }
    let mut tx = db.write().await?;
    tx.run(
        "INSERT INTO sealing_keys (id, proof, created_ms) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING",
        args![newest.as_str(), keys.seal(&proof_place(&newest), PROOF), clock.unix_ms()],
    )
    .await?;
    let fresh = Secret::new(random::<32>().to_vec());
    tx.run(
        "INSERT INTO hash_key (id, sealed) VALUES (1, $1) ON CONFLICT (id) DO NOTHING",
        args![keys.seal(&HASH_KEY_PLACE, fresh.expose())],
    )
    .await?;
    let row = tx.row("SELECT sealed FROM hash_key WHERE id = 1", &[]).await?;
    let sealed = row.ok_or_else(|| StoreError::Corrupt("hash key missing".to_owned()))?.bytes("sealed")?;
    // Check again inside the transaction: another program may have sealed the store with an unknown
    // key meanwhile.
    for row in tx.rows("SELECT id FROM sealing_keys", &[]).await? {
        let id = row.text("id")?;
        if !keys.holds(&id) {
            return Err(StoreError::WrongKey(id));
        }
    }
    let hasher = match keys.open(&HASH_KEY_PLACE, &sealed) {
        Ok(key) => Hasher::new(&key),
        Err(error) => bind(&mut tx, keys, &sealed).await?.ok_or(error)?,
    };
    tx.commit().await?;
    Ok(hasher)
}

/// Adds a keyed hash to every client row and moves the hash key to its new sealing place. From then
/// on, rows without a hash are rejected. Returns `None` if the hash key cannot be opened.
async fn bind(tx: &mut Tx, keys: &KeyRing, sealed: &[u8]) -> Result<Option<Hasher>, StoreError> {
    let Ok(key) = keys.open(&HASH_KEY_PLACE_UNBOUND, sealed) else { return Ok(None) };
    let hasher = Hasher::new(&key);
    let sealed = keys.seal(&HASH_KEY_PLACE, key.expose());
    tx.run("UPDATE hash_key SET sealed = $1 WHERE id = 1", args![sealed]).await?;
    clients::bind(tx, &hasher).await?;
    credentials::bind(tx, &hasher).await?;
    grants::bind(tx, &hasher).await?;
    Ok(Some(hasher))
}

/// The result of re-sealing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resealed {
    /// Id of the key that now seals all values.
    pub key: String,
    /// Number of rewritten values.
    pub values: u64,
    /// Ids of keys that are no longer needed.
    pub retired: Vec<String>,
}

impl Store {
    /// Opens values with these keys too. Values are sealed as before, and the store is unchanged.
    /// The ring must contain every key of the store.
    ///
    /// # Errors
    ///
    /// The ring lacks a key of the store, or the database fails.
    pub async fn accept_keys(&self, keys: &KeyRing) -> Result<(), StoreError> {
        verify(&self.db, keys).await?;
        self.keys.accept(keys);
        Ok(())
    }

    /// Replaces the keys: the newest seals, all open. The ring must contain every key of the store;
    /// otherwise the keys are unchanged.
    ///
    /// # Errors
    ///
    /// The ring lacks a key of the store, or the database fails.
    pub async fn set_keys(&self, keys: &KeyRing) -> Result<(), StoreError> {
        verify(&self.db, keys).await?;
        enroll(&self.db, keys, &self.clock).await?;
        self.keys.replace(keys);
        Ok(())
    }

    /// Seals all values with the newest key of the ring, in one transaction, so a crash leaves no
    /// partial result. Other keys are no longer needed afterwards.
    ///
    /// # Errors
    ///
    /// A sealed value cannot be opened, or the database fails. The store is unchanged then.
    pub async fn reseal(&self) -> Result<Resealed, StoreError> {
        let mut tx = self.write().await?;
        let mut values = grants::reseal(&mut tx, &self.keys).await?;
        values += credentials::reseal(&mut tx, &self.keys).await?;
        values += resume::reseal(&mut tx, &self.keys).await?;
        values += archive::reseal(&mut tx, &self.keys).await?;
        values += events::reseal(&mut tx, &self.keys).await?;
        values += event_pairs::reseal(&mut tx, &self.keys).await?;
        values += reseal_hash_key(&mut tx, &self.keys).await?;
        let newest = self.keys.newest().id().to_string();
        let gone = tx
            .rows("DELETE FROM sealing_keys WHERE id <> $1 RETURNING id", args![newest.as_str()])
            .await?
            .iter()
            .map(|row| row.text("id"))
            .collect::<Result<Vec<_>, _>>()?;
        let detail = match gone.as_slice() {
            [] => format!("{values} values sealed anew; it was the only key"),
            gone => format!("{values} values sealed anew; retired: {}", gone.join(", ")),
        };
        let entry =
            NewHistory { kind: "key rotated", subject: &newest, detail: &detail, ..NewHistory::default() };
        self.enter(&mut tx, &entry).await?;
        tx.commit().await?;
        Ok(Resealed { key: newest, values, retired: gone })
    }
}

async fn reseal_hash_key(tx: &mut Tx, keys: &KeyRing) -> Result<u64, StoreError> {
    let Some(row) = tx.row("SELECT sealed FROM hash_key WHERE id = 1", &[]).await? else { return Ok(0) };
    let plain = keys.open(&HASH_KEY_PLACE, &row.bytes("sealed")?)?;
    let sealed = keys.seal(&HASH_KEY_PLACE, plain.expose());
    tx.run("UPDATE hash_key SET sealed = $1 WHERE id = 1", args![sealed]).await
}
