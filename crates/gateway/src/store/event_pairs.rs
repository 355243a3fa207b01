//! Pairs of events from both sides: the first of two waits for its partner for a limited time. The
//! delivery decision is made with the first and stored, so that it remains valid if the phase
//! changes.
//!
//! The number of waiting events is limited per receiver. After an event was rejected for lack of
//! room, a missing partner proves no loss, so unpaired events are not counted as missing for that
//! time ([`Unpaired::is_known`]).

use super::db::{DbRow, Tx, args};
use super::events::{NewEvent, millis};
use super::pairing::{Met, PairLookup, PairedEvent};
use super::seal::{HashOf, HashedValue, KeyRing, SealContext};
use super::{Store, StoreError, new_id};
use crate::secret::Secret;

const COLUMN: &str = "event_pairs.sealed";

/// A waiting event.
pub(super) struct Partner {
    id: String,
    pub(super) is_delivered: bool,
    is_compared: bool,
    pack: String,
    body: Secret<Vec<u8>>,
}

/// An event without a partner.
#[derive(Debug)]
pub(crate) struct Unpaired {
    pub receiver: String,
    pub operation: String,
    /// Whether the side that receivers know sent it.
    pub is_own: bool,
    /// Whether the two were to be compared.
    pub is_compared: bool,
    /// Whether the partner would have been stored, had it arrived.
    pub is_known: bool,
    pub pack: String,
}

impl Store {
    /// Returns the oldest waiting partner of an event.
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

    fn partner(&self, receiver: &str, row: &DbRow) -> Result<Partner, StoreError> {
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

    /// Deletes the waiting partner and returns it.
    pub(super) async fn event_met(&self, tx: &mut Tx, partner: Partner) -> Result<PairLookup, StoreError> {
        tx.run("DELETE FROM event_pairs WHERE id = $1", args![partner.id.as_str()]).await?;
        let Partner { is_compared, body, pack, .. } = partner;
        Ok(PairLookup::Met(Met { body: is_compared.then_some(body), pack }))
    }

    /// Stores an event until its partner arrives.
    pub(super) async fn event_waits(
        &self,
        tx: &mut Tx,
        new: &NewEvent<'_>,
        pair: &PairedEvent<'_>,
        now: i64,
    ) -> Result<PairLookup, StoreError> {
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
            return Ok(PairLookup::NoRoom);
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
        Ok(PairLookup::Waits)
    }

    fn pair_key(&self, new: &NewEvent<'_>, pair: &PairedEvent<'_>) -> [u8; 32] {
        let parts: [HashedValue<'_>; 3] = [new.receiver.into(), pair.operation.into(), pair.key.into()];
        self.hasher.row(HashOf::EventPair, &parts)
    }

    /// Deletes and returns up to `count` events whose wait has expired.
    pub(crate) async fn events_unpaired(&self, count: usize) -> Result<Vec<Unpaired>, StoreError> {
        let sql = "SELECT p.id, p.receiver, p.operation, p.is_own, p.is_compared, p.pack, \
                   CAST(CASE WHEN g.until_ms >= p.came_ms THEN 0 ELSE 1 END AS BIGINT) AS is_known \
                   FROM event_pairs p LEFT JOIN event_pair_gaps g ON g.receiver = p.receiver \
                   WHERE p.expires_ms <= $1 ORDER BY p.expires_ms LIMIT $2";
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        // Check with a read first, since usually there are none.
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

/// Seals all waiting events with the newest key. Returns their number.
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

fn place<'a>(receiver: &'a str, id: &'a str) -> SealContext<'a> {
    SealContext { column: COLUMN, client: receiver, row: id.as_bytes() }
}
