//! The sealing keys a store knows: proof that the right key was given, enrolment of a new one, and the re-sealing of everything
//! that makes an old key superfluous.

use super::db::{Db, Tx, args};
use super::seal::{Hasher, KeyRing, Place, random};
use super::{
    NewHistory, Store, StoreError, archive, clients, credentials, event_pairs, events, grants, resume,
};
use crate::clock::Clock;
use crate::secret::Secret;
use serde::Serialize;

const PROOF: &[u8] = b"switchback";

fn proof_place(id: &str) -> Place<'_> {
    Place { column: "sealing_keys.proof", client: "", row: id.as_bytes() }
}

/// Where the hash key is sealed for in a store whose rows about clients all carry their keyed hash. That it opens there is how
/// a store is known to have them: nobody but a holder of the sealing key can make it look as if it had not.
const HASH_KEY_PLACE: Place<'static> = Place { column: "hash_key.bound", client: "", row: b"" };
/// Where earlier versions sealed it for, whose rows carried no keyed hash.
const HASH_KEY_PLACE_UNBOUND: Place<'static> = Place { column: "hash_key.sealed", client: "", row: b"" };

/// Refuses a ring that lacks a key the store is sealed with. Reads only.
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

/// Makes the newest key known to the store and gives the store's hasher, whose key is made on first use. In a store from
/// before rows carried keyed hashes, gives each row its own.
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
    // A store sealed in the meantime with a key that is not ours must not get our proof beside it.
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

/// Gives every row about clients its keyed hash, and seals the hash key for its new place: from then on a row without one is
/// not ours. None when the hash key opens in neither place.
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

/// What a re-sealing did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resealed {
    /// Id of the key that everything is sealed with now.
    pub key: String,
    /// Sealed values rewritten.
    pub values: u64,
    /// Ids of keys the store needs no more.
    pub retired: Vec<String>,
}

impl Store {
    /// Seals with the newest of these keys and opens with all of them from here on, provided that all that the store is sealed
    /// with are among them; else nothing changes.
    ///
    /// # Errors
    ///
    /// A key that the store is sealed with is not among them, or the database fails.
    pub async fn set_keys(&self, keys: &KeyRing) -> Result<(), StoreError> {
        verify(&self.db, keys).await?;
        enroll(&self.db, keys, &self.clock).await?;
        self.keys.replace(keys);
        Ok(())
    }

    /// Seals everything anew with the newest key of the ring, in one transaction: after a crash all is as before or all is
    /// done. Keys other than the newest are no longer needed afterwards.
    ///
    /// # Errors
    ///
    /// A sealed value cannot be opened, or the database fails: then all is as it was.
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
