//! The event queue: received events that are not yet delivered, ordered per key, and dead letters.
//!
//! An event counts as received once it is committed here. It is delivered at least once: the
//! deliverer leases it for the longest possible delivery time, and if the lease expires without a
//! result (the process was killed, the machine failed), another deliverer leases it. Only the
//! oldest waiting event of a key can be leased, so events of one key are never delivered
//! concurrently.

use super::db::{DbRow, Tx, args};
use super::pairing::{PairLookup, PairedEvent};
use super::seal::{HashOf, HashedValue, KeyRing, SealContext};
use super::{NewHistory, Store, StoreError, new_id};
use crate::secret::Secret;
use std::time::Duration;

const COLUMN: &str = "events.sealed";
const PENDING: &str = "pending";
const DEAD: &str = "dead";

/// A received event.
#[derive(Debug)]
pub(crate) struct NewEvent<'e> {
    pub receiver: &'e str,
    /// Events of one key are ordered. Without a key, all events of a receiver are.
    pub key: Option<&'e str>,
    pub name: &'e str,
    /// The sender's message id, for detecting duplicates.
    pub message: Option<&'e str>,
    pub body: &'e [u8],
    /// The reason if it is already known to be undeliverable; it becomes a dead letter at once.
    pub dead: Option<&'e str>,
    /// Whether the side that receivers know sent it; it is then delivered unchanged.
    pub is_own: bool,
    /// Whether to deliver it, unless the decision was made with its partner.
    pub is_delivered: bool,
    /// The data that pairs it with the other side's event.
    pub pair: Option<PairedEvent<'e>>,
}

/// The result for an event and its partner.
#[derive(Debug)]
pub(crate) struct Put {
    pub queued: EnqueueResult,
    pub pairing: PairLookup,
}

/// Limits of the queue per receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueBounds {
    pub events_max: u64,
    pub bytes_max: u64,
    /// Time for which message ids are remembered.
    pub remember: Duration,
}

/// The result for a received event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnqueueResult {
    New,
    /// A duplicate.
    Known,
    /// The other side's event is delivered instead.
    Beside,
    /// The queue of this receiver is full.
    Full,
}

/// A leased event to deliver.
#[derive(Debug)]
pub(crate) struct LeasedEvent {
    pub id: String,
    pub receiver: String,
    pub name: String,
    /// The sender's message id.
    pub message: Option<String>,
    pub body: Secret<Vec<u8>>,
    /// Number of failed attempts.
    pub attempts: u32,
    /// Whether it is delivered unchanged.
    pub is_own: bool,
}

/// An event for lists, without its content.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct EventSummary {
    /// Identifies the event for a retry or removal.
    pub id: String,
    /// The receiver's name in the configuration.
    pub receiver: String,
    /// The event's name in the pack.
    pub event: String,
    /// `pending`, or `dead` if it is not retried automatically.
    pub state: String,
    /// Size of its body.
    pub bytes: i64,
    /// Time of arrival, wall time in milliseconds since 1970.
    pub came_ms: i64,
    /// Number of failed attempts.
    pub attempts: i64,
    /// Time of the next attempt, wall time in milliseconds since 1970.
    pub next_ms: i64,
    /// The reason why the last attempt failed.
    pub failure: Option<String>,
}

/// The number of queued events of a receiver.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct EventCount {
    /// The receiver's name in the configuration.
    pub receiver: String,
    /// Events that are retried automatically.
    pub pending: i64,
    /// Dead letters.
    pub dead: i64,
}

/// Selects events to retry or remove.
#[derive(Clone, Debug, Default)]
pub struct EventChoice {
    /// `None`: all receivers.
    pub receiver: Option<String>,
    /// Empty: all dead letters.
    pub ids: Vec<String>,
}

/// Selects the oldest pending event of each key, if it is due and not leased.
const DUE: &str = "SELECT e.id, e.receiver, e.name, e.sealed, e.attempts, e.is_own FROM events e \
    WHERE e.state = 'pending' AND e.next_ms <= $1 AND e.lease_ms <= $1 AND NOT EXISTS \
    (SELECT 1 FROM events o WHERE o.receiver = e.receiver AND o.event_key = e.event_key AND o.state = 'pending' AND o.seq < e.seq) \
    ORDER BY e.seq LIMIT $2";

impl Store {
    /// Queues an event. It is durable if the result is [`Queued::New`].
    pub(crate) async fn event_put(&self, new: &NewEvent<'_>, bounds: QueueBounds) -> Result<Put, StoreError> {
        let parts: [HashedValue<'_>; 2] = [new.receiver.into(), new.key.into()];
        let key = self.hasher.row(HashOf::EventKey, &parts);
        // All reads below happen in the writing transaction: two copies of an event that arrive
        // together would otherwise both be new.
        let mut tx = self.write().await?;
        let now = tx.now_ms(&self.clock).await?;
        let message = new.message.map(|message| {
            let parts: [HashedValue<'_>; 3] = [new.receiver.into(), message.into(), "own".into()];
            // The two services assign message ids independently.
            self.hasher.row(HashOf::EventMessage, if new.is_own { &parts } else { &parts[..2] })
        });
        if let Some(message) = &message {
            tx.run(
                "DELETE FROM event_messages WHERE receiver = $1 AND expires_ms <= $2",
                args![new.receiver, now],
            )
            .await?;
            let known = "SELECT 1 AS known FROM event_messages WHERE receiver = $1 AND message = $2";
            if tx.row(known, args![new.receiver, &message[..]]).await?.is_some() {
                tx.commit().await?;
                return Ok(Put { queued: EnqueueResult::Known, pairing: PairLookup::None });
            }
        }
        let partner = match &new.pair {
            Some(pair) => self.event_partner(&mut tx, new, pair, now).await?,
            None => None,
        };
        // Exactly one event of a pair is delivered, even if the phase has changed.
        let is_delivered = partner.as_ref().map_or(new.is_delivered, |partner| !partner.is_delivered);
        if is_delivered && is_full(&mut tx, new, bounds).await? {
            // Do not remember the message, so that the sender's retry is accepted.
            tx.undo().await;
            return Ok(Put { queued: EnqueueResult::Full, pairing: PairLookup::None });
        }
        if let Some(message) = &message {
            tx.run(
                "INSERT INTO event_messages (receiver, message, expires_ms) VALUES ($1, $2, $3)",
                args![new.receiver, &message[..], now.saturating_add(millis(bounds.remember))],
            )
            .await?;
        }
        if is_delivered {
            let id = new_id();
            let plain = Secret::new(encode(new.message, new.body));
            let sealed = self.keys.seal(&place(new.receiver, &id), plain.expose());
            let state = if new.dead.is_some() { DEAD } else { PENDING };
            let length = i64::try_from(new.body.len()).unwrap_or(i64::MAX);
            tx.run(
                "INSERT INTO events (id, receiver, event_key, name, sealed, bytes, state, came_ms, attempts, next_ms, failure, \
                 lease, lease_ms, is_own) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $8, $9, '', 0, $10)",
                args![
                    id.as_str(),
                    new.receiver,
                    &key[..],
                    new.name,
                    sealed,
                    length,
                    state,
                    now,
                    new.dead,
                    i64::from(new.is_own)
                ],
            )
            .await?;
        }
        let pairing = match (&new.pair, partner) {
            (None, _) => PairLookup::None,
            (Some(_), Some(partner)) => self.event_met(&mut tx, partner).await?,
            (Some(pair), None) => self.event_waits(&mut tx, new, pair, now).await?,
        };
        tx.commit().await?;
        Ok(Put { queued: if is_delivered { EnqueueResult::New } else { EnqueueResult::Beside }, pairing })
    }

    /// Leases up to `count` due events to `owner`, oldest first, and at most one per key.
    pub(crate) async fn events_claim(
        &self,
        owner: &str,
        lease: Duration,
        count: usize,
    ) -> Result<Vec<LeasedEvent>, StoreError> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        // Check with a read first, since usually there are none.
        let soon = self.clock.unix_ms().saturating_add(CLOCKS_APART_MS);
        if self.db.row(DUE, args![soon, 1_i64]).await?.is_none() {
            return Ok(Vec::new());
        }
        let mut tx = self.db.write().await?;
        let now = tx.now_ms(&self.clock).await?;
        let rows = tx.rows(DUE, args![now, count]).await?;
        let mut leased = Vec::with_capacity(rows.len());
        for row in &rows {
            let event = self.parse_leased(row)?;
            tx.run(
                "UPDATE events SET lease = $2, lease_ms = $3 WHERE id = $1",
                args![event.id.as_str(), owner, now.saturating_add(millis(lease))],
            )
            .await?;
            leased.push(event);
        }
        tx.commit().await?;
        Ok(leased)
    }

    fn parse_leased(&self, row: &DbRow) -> Result<LeasedEvent, StoreError> {
        let (id, receiver) = (row.text("id")?, row.text("receiver")?);
        let plain = self.keys.open(&place(&receiver, &id), &row.bytes("sealed")?)?;
        let (message, body) = decode(plain.expose())?;
        let attempts = u32::try_from(row.int("attempts")?).unwrap_or(u32::MAX);
        Ok(LeasedEvent {
            name: row.text("name")?,
            id,
            receiver,
            message,
            body,
            attempts,
            is_own: row.int("is_own")? != 0,
        })
    }

    /// Deletes a delivered event. Returns `false` if its lease has expired; another deliverer may
    /// then send it again.
    pub(crate) async fn event_delivered(&self, id: &str, owner: &str) -> Result<bool, StoreError> {
        let sql = "DELETE FROM events WHERE id = $1 AND lease = $2";
        Ok(self.db.run_alone(sql, args![id, owner]).await? > 0)
    }

    /// Records a failed attempt. The event is retried after `wait`, or becomes a dead letter.
    pub(crate) async fn event_failed(
        &self,
        id: &str,
        owner: &str,
        failure: &str,
        wait: Option<Duration>,
    ) -> Result<(), StoreError> {
        let mut tx = self.db.write().await?;
        let now = tx.now_ms(&self.clock).await?;
        let next = now.saturating_add(wait.map_or(0, millis));
        let state = if wait.is_some() { PENDING } else { DEAD };
        tx.run(
            "UPDATE events SET state = $3, failure = $4, next_ms = $5, attempts = attempts + 1, lease = '', lease_ms = 0 \
             WHERE id = $1 AND lease = $2",
            args![id, owner, state, failure, next],
        )
        .await?;
        tx.commit().await
    }

    /// Releases the leases of an earlier process. On SQLite there is only one gateway, so all
    /// leases are stale.
    pub(crate) async fn events_release(&self) -> Result<(), StoreError> {
        if self.is_shared() {
            return Ok(());
        }
        self.db.run_alone("UPDATE events SET lease = '', lease_ms = 0 WHERE lease_ms > 0", &[]).await?;
        Ok(())
    }

    /// Lists up to `count` queued events, oldest first; with `dead`, dead letters only.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn events(
        &self,
        receiver: Option<&str>,
        dead: bool,
        count: usize,
    ) -> Result<Vec<EventSummary>, StoreError> {
        let sql = "SELECT id, receiver, name, state, bytes, came_ms, attempts, next_ms, failure FROM events \
                   WHERE (receiver = $1 OR $1 = '') AND (state = 'dead' OR $2 = 0) ORDER BY seq LIMIT $3";
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = self.db.rows(sql, args![receiver.unwrap_or(""), i64::from(dead), count]).await?;
        let row = |row: &DbRow| {
            Ok(EventSummary {
                id: row.text("id")?,
                receiver: row.text("receiver")?,
                event: row.text("name")?,
                state: row.text("state")?,
                bytes: row.int("bytes")?,
                came_ms: row.int("came_ms")?,
                attempts: row.int("attempts")?,
                next_ms: row.int("next_ms")?,
                failure: row.text_or_none("failure")?,
            })
        };
        rows.iter().map(row).collect()
    }

    /// Returns the number of queued events by receiver.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn event_counts(&self) -> Result<Vec<EventCount>, StoreError> {
        let sql = "SELECT receiver, SUM(CASE WHEN state = 'pending' THEN 1 ELSE 0 END) AS pending, \
                   SUM(CASE WHEN state = 'dead' THEN 1 ELSE 0 END) AS dead FROM events GROUP BY receiver ORDER BY receiver";
        let row = |row: &DbRow| {
            Ok(EventCount {
                receiver: row.text("receiver")?,
                pending: row.int("pending")?,
                dead: row.int("dead")?,
            })
        };
        self.db.rows(sql, &[]).await?.iter().map(row).collect()
    }

    /// Retries events now, with their attempts reset. Returns their number. Their order is
    /// unchanged.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn events_retry(&self, choice: &EventChoice) -> Result<u64, StoreError> {
        let mut tx = self.db.write().await?;
        let now = tx.now_ms(&self.clock).await?;
        let receiver = choice.receiver.as_deref().unwrap_or("");
        let mut touched = 0;
        if choice.ids.is_empty() {
            let sql = "UPDATE events SET state = 'pending', next_ms = $2, attempts = 0 \
                       WHERE state = 'dead' AND (receiver = $1 OR $1 = '')";
            touched += tx.run(sql, args![receiver, now]).await?;
        }
        for id in &choice.ids {
            let sql = "UPDATE events SET state = 'pending', next_ms = $2, attempts = 0 \
                       WHERE id = $3 AND (receiver = $1 OR $1 = '')";
            touched += tx.run(sql, args![receiver, now, id.as_str()]).await?;
        }
        self.enter_of_events(&mut tx, "events retried", choice, touched).await?;
        tx.commit().await?;
        Ok(touched)
    }

    /// Deletes events. Returns their number. An event in delivery may still arrive.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn events_drop(&self, choice: &EventChoice) -> Result<u64, StoreError> {
        let mut tx = self.db.write().await?;
        let receiver = choice.receiver.as_deref().unwrap_or("");
        let mut touched = 0;
        if choice.ids.is_empty() {
            let sql = "DELETE FROM events WHERE state = 'dead' AND (receiver = $1 OR $1 = '')";
            touched += tx.run(sql, args![receiver]).await?;
        }
        for id in &choice.ids {
            let sql = "DELETE FROM events WHERE id = $2 AND (receiver = $1 OR $1 = '')";
            touched += tx.run(sql, args![receiver, id.as_str()]).await?;
        }
        self.enter_of_events(&mut tx, "events dropped", choice, touched).await?;
        tx.commit().await?;
        Ok(touched)
    }

    async fn enter_of_events(
        &self,
        tx: &mut Tx,
        kind: &str,
        choice: &EventChoice,
        touched: u64,
    ) -> Result<(), StoreError> {
        let scope = match choice.ids.len() {
            0 => "all dead events".to_owned(),
            named => format!("{named} named events"),
        };
        let detail = format!("{touched} events");
        let subject = choice.receiver.as_deref().unwrap_or("all receivers");
        let entry = NewHistory { kind, subject, scope: &scope, detail: &detail, ..NewHistory::default() };
        self.enter(tx, &entry).await
    }
}

/// Tolerated lag of a gateway's clock behind the database's. A larger lag delays events.
const CLOCKS_APART_MS: i64 = 60_000;

/// Seals all events with the newest key. Returns their number.
pub(super) async fn reseal(tx: &mut Tx, keys: &KeyRing) -> Result<u64, StoreError> {
    let mut values = 0;
    for row in tx.rows("SELECT id, receiver, sealed FROM events", &[]).await? {
        let (id, receiver) = (row.text("id")?, row.text("receiver")?);
        let plain = keys.open(&place(&receiver, &id), &row.bytes("sealed")?)?;
        let sealed = keys.seal(&place(&receiver, &id), plain.expose());
        values += tx.run("UPDATE events SET sealed = $2 WHERE id = $1", args![id.as_str(), sealed]).await?;
    }
    Ok(values)
}

async fn is_full(tx: &mut Tx, new: &NewEvent<'_>, bounds: QueueBounds) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) AS events, CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes FROM events WHERE receiver = $1";
    let waiting = tx.row(sql, args![new.receiver]).await?;
    let waiting = waiting.ok_or_else(|| StoreError::Corrupt("the queue of events".to_owned()))?;
    let (events, bytes) = (waiting.int("events")?, waiting.int("bytes")?);
    let length = i64::try_from(new.body.len()).unwrap_or(i64::MAX);
    Ok(events >= i64::try_from(bounds.events_max).unwrap_or(i64::MAX)
        || bytes.saturating_add(length) > i64::try_from(bounds.bytes_max).unwrap_or(i64::MAX))
}

fn place<'a>(receiver: &'a str, id: &'a str) -> SealContext<'a> {
    SealContext { column: COLUMN, client: receiver, row: id.as_bytes() }
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Encodes a flag for the presence of a message id, its length, the id, and the body.
fn encode(message: Option<&str>, body: &[u8]) -> Vec<u8> {
    let name = message.unwrap_or_default().as_bytes();
    let length = u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[u8::from(message.is_some())][..], &length, name, body].concat()
}

fn decode(bytes: &[u8]) -> Result<(Option<String>, Secret<Vec<u8>>), StoreError> {
    let corrupt = || StoreError::Corrupt("an event of the queue".to_owned());
    let (has_name, rest) = bytes.split_first().ok_or_else(corrupt)?;
    let (length, rest) = rest.split_first_chunk().ok_or_else(corrupt)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| corrupt())?;
    let (name, body) = rest.split_at_checked(length).ok_or_else(corrupt)?;
    let name = std::str::from_utf8(name).map_err(|_| corrupt())?;
    Ok(((*has_name == 1).then(|| name.to_owned()), Secret::new(body.to_vec())))
}
