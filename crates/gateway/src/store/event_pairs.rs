//! Events of both sides that tell the same: the first of two waits for the other, for a time. Which of the two is delivered is
//! decided with the first and kept with it, so that it holds whatever becomes of the phase meanwhile.
//!
//! How many wait is bounded for each receiver. Where there was no room, nobody can tell whether the other one lacks its partner,
//! and so nothing is counted as missing for as long ([`Unpaired::is_known`]).

use super::db::{Row, Tx, args};
use super::events::{NewEvent, millis};
use super::seal::{HashOf, KeyRing, Part, Place};
use super::{Store, StoreError, new_id};
use crate::secret::Secret;
use std::time::Duration;

const COLUMN: &str = "event_pairs.sealed";

/// How an event is found when the one of the other side comes that tells the same.
#[derive(Debug)]
pub(crate) struct PairedEvent<'e> {
    /// As evidence is counted by: `event noteChanged`.
    pub operation: &'e str,
    /// Equal for both.
    pub key: &'e str,
    /// Its body as receivers know it, where the two are to be compared.
    pub body: Option<&'e [u8]>,
    /// The hash of the pack that serves.
    pub pack: &'e str,
    /// How long it waits.
    pub within: Duration,
    pub bounds: PairBounds,
}

/// How much may wait of one receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairBounds {
    pub events_max: u64,
    pub bytes_max: u64,
}

/// Whether the other one was there.
#[derive(Debug)]
pub(crate) enum Pairing {
    /// It is not looked for.
    None,
    /// It has not come, and this one waits for it.
    Waits,
    /// It has not come, and there is no room to wait.
    NoRoom,
    /// It was there.
    Met(Met),
}

/// The event that came first.
#[derive(Debug)]
pub(crate) struct Met {
    /// As receivers know it; none where the two are not to be compared.
    pub body: Option<Secret<Vec<u8>>>,
    /// The hash of the pack that served then.
    pub pack: String,
}

/// An event that waits.
pub(super) struct Partner {
    id: String,
    pub(super) is_delivered: bool,
    is_compared: bool,
    pack: String,
    body: Secret<Vec<u8>>,
}

/// An event that the other one never came to.
#[derive(Debug)]
pub(crate) struct Unpaired {
    pub receiver: String,
    pub operation: String,
    /// Whether the side that receivers know sent it.
    pub is_own: bool,
    /// Whether the two were to be compared.
    pub is_compared: bool,
    /// Whether the other one would have been found, had it come.
    pub is_known: bool,
    pub pack: String,
}

impl Store {
    /// The oldest event of the other side that tells the same.
    pub(super) async fn event_partner(
        &self,
        tx: &mut Tx,
        new: &NewEvent<'_>,
        pair: &PairedEvent<'_>,
        now: i64,
    ) -> Result<Option<Partner>, StoreError> {
        let sql = "SELECT id, is_delivered, is_compared, sealed, pack FROM event_pairs WHERE receiver = $1 AND operation = $2 \
                   AND pair_key = $3 AND is_own = $4 AND expires_ms > $5 ORDER BY seq LIMIT 1";
        let key = self.pair_key(new, pair);
        let other = i64::from(!new.is_own);
        let row = tx.row(sql, args![new.receiver, pair.operation, &key[..], other, now]).await?;
        row.map(|row| self.partner(new.receiver, &row)).transpose()
    }

    fn partner(&self, receiver: &str, row: &Row) -> Result<Partner, StoreError> {
        let id = row.text("id")?;
        let body = self.keys.open(&place(receiver, &id), &row.bytes("sealed")?)?;
        Ok(Partner {
            is_delivered: row.int("is_delivered")? != 0,
            is_compared: row.int("is_compared")? != 0,
            pack: row.text("pack")?,
            body,
            id,
        })
    }

    /// Both have come, and none waits any more.
    pub(super) async fn event_met(&self, tx: &mut Tx, partner: Partner) -> Result<Pairing, StoreError> {
        tx.run("DELETE FROM event_pairs WHERE id = $1", args![partner.id.as_str()]).await?;
        let Partner { is_compared, body, pack, .. } = partner;
        Ok(Pairing::Met(Met { body: is_compared.then_some(body), pack }))
    }

    /// Keeps an event until the other one comes.
    pub(super) async fn event_waits(
        &self,
        tx: &mut Tx,
        new: &NewEvent<'_>,
        pair: &PairedEvent<'_>,
        now: i64,
    ) -> Result<Pairing, StoreError> {
        let body = pair.body.unwrap_or_default();
        let length = i64::try_from(body.len()).unwrap_or(i64::MAX);
        let expires = now.saturating_add(millis(pair.within));
        let sql = "SELECT COUNT(*) AS events, CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes FROM event_pairs WHERE receiver = $1";
        let waiting = tx.row(sql, args![new.receiver]).await?;
        let waiting = waiting.ok_or_else(|| StoreError::Corrupt("events that wait".to_owned()))?;
        let (events, bytes) = (waiting.int("events")?, waiting.int("bytes")?);
        let is_full = events >= i64::try_from(pair.bounds.events_max).unwrap_or(i64::MAX)
            || bytes.saturating_add(length) > i64::try_from(pair.bounds.bytes_max).unwrap_or(i64::MAX);
        if is_full {
            tx.run(
                "INSERT INTO event_pair_gaps (receiver, until_ms) VALUES ($1, $2) ON CONFLICT (receiver) DO UPDATE \
                 SET until_ms = CASE WHEN event_pair_gaps.until_ms > excluded.until_ms THEN event_pair_gaps.until_ms \
                 ELSE excluded.until_ms END",
                args![new.receiver, expires],
            )
            .await?;
            return Ok(Pairing::NoRoom);
        }
        let id = new_id();
        let key = self.pair_key(new, pair);
        let sealed = self.keys.seal(&place(new.receiver, &id), body);
        tx.run(
            "INSERT INTO event_pairs (id, receiver, operation, pair_key, is_own, is_delivered, is_compared, sealed, bytes, pack, \
             came_ms, expires_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            args![
                id.as_str(),
                new.receiver,
                pair.operation,
                &key[..],
                i64::from(new.is_own),
                i64::from(new.is_delivered),
                i64::from(pair.body.is_some()),
                sealed,
                length,
                pair.pack,
                now,
                expires
            ],
        )
        .await?;
        Ok(Pairing::Waits)
    }

    fn pair_key(&self, new: &NewEvent<'_>, pair: &PairedEvent<'_>) -> [u8; 32] {
        let parts: [Part<'_>; 3] = [new.receiver.into(), pair.operation.into(), pair.key.into()];
        self.hasher.row(HashOf::EventPair, &parts)
    }

    /// Forgets events that have waited long enough, `count` at most, and gives them.
    pub(crate) async fn events_unpaired(&self, count: usize) -> Result<Vec<Unpaired>, StoreError> {
        let sql = "SELECT p.id, p.receiver, p.operation, p.is_own, p.is_compared, p.pack, \
                   CAST(CASE WHEN g.until_ms >= p.came_ms THEN 0 ELSE 1 END AS BIGINT) AS is_known \
                   FROM event_pairs p LEFT JOIN event_pair_gaps g ON g.receiver = p.receiver \
                   WHERE p.expires_ms <= $1 ORDER BY p.expires_ms LIMIT $2";
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        // Most looks find nothing, and reading costs no write.
        if self.db.row(sql, args![self.clock.unix_ms(), 1_i64]).await?.is_none() {
            return Ok(Vec::new());
        }
        let mut tx = self.write().await?;
        let now = tx.now_ms(&self.clock).await?;
        let mut unpaired = Vec::new();
        for row in tx.rows(sql, args![now, count]).await? {
            let id = row.text("id")?;
            tx.run("DELETE FROM event_pairs WHERE id = $1", args![id.as_str()]).await?;
            unpaired.push(Unpaired {
                receiver: row.text("receiver")?,
                operation: row.text("operation")?,
                is_own: row.int("is_own")? != 0,
                is_compared: row.int("is_compared")? != 0,
                is_known: row.int("is_known")? != 0,
                pack: row.text("pack")?,
            });
        }
        tx.commit().await?;
        Ok(unpaired)
    }
}

/// Seals all that wait anew; gives how many.
pub(super) async fn reseal(tx: &mut Tx, keys: &KeyRing) -> Result<u64, StoreError> {
    let mut values = 0;
    for row in tx.rows("SELECT id, receiver, sealed FROM event_pairs", &[]).await? {
        let (id, receiver) = (row.text("id")?, row.text("receiver")?);
        let plain = keys.open(&place(&receiver, &id), &row.bytes("sealed")?)?;
        let sealed = keys.seal(&place(&receiver, &id), plain.expose());
        let sql = "UPDATE event_pairs SET sealed = $2 WHERE id = $1";
        values += tx.run(sql, args![id.as_str(), sealed]).await?;
    }
    Ok(values)
}

fn place<'a>(receiver: &'a str, id: &'a str) -> Place<'a> {
    Place { column: COLUMN, client: receiver, row: id.as_bytes() }
}
