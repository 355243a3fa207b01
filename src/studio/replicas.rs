//! The replicas of a store. Each replica regularly writes a heartbeat with its counters, and reads
//! those of the others, so that pages display totals, and replicas that disappear without leaving
//! are reported. While a page of requests is open, they exchange their sampled requests too.
//!
//! Decisions to know before editing:
//!
//! - Clocks of machines differ. A replica is present as long as its heartbeat counter increases,
//!   measured by the reader's clock.
//! - While the store does not answer, no replica is reported as gone, since heartbeats cannot be
//!   read.
//! - A store with a single gateway (SQLite) is neither written nor read.

use super::traffic::{Point, SlotCounts, TOLD_MAX, Traffic, errors_of, requests_of};
use crate::admin::AdminParts;
use crate::operate::attention::PeerReplica;
pub(crate) use crate::operate::attention::ReplicaPresence;
use crate::requests::{OtherSample, SampleDigest, process_name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use switchback_gateway::store::{ReplicaRow, ReplicaSlot, StoreError};

/// Interval of heartbeats.
const BEAT: Duration = Duration::from_secs(3);
/// Time without a heartbeat after which a replica counts as away.
const AWAY_MS: i64 = 10_000;
/// Time for which a replica that has gone is remembered.
const REMEMBERED_MS: i64 = 24 * 3_600_000;
/// Time limit for the final write at shutdown.
const FAREWELL: Duration = Duration::from_secs(2);

/// The status that a replica publishes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReplicaStatus {
    pub(crate) version: String,
    pub(crate) pack: String,
    pub(crate) pack_hash: String,
    /// Unix time in milliseconds.
    pub(crate) started_ms: i64,
    /// The newest samples, summed. They cover `seconds`.
    pub(crate) now: Point,
    pub(crate) seconds: f64,
    pub(crate) in_flight: f64,
    pub(crate) connections: f64,
    /// Whether the sampled requests of all replicas are being read here.
    pub(crate) reads_requests: bool,
}

impl ReplicaStatus {
    /// Returns the current status of this process.
    pub(crate) fn current(parts: &AdminParts, traffic: &Traffic, started_ms: i64) -> ReplicaStatus {
        let (now, seconds) = traffic.now();
        let totals = traffic.totals();
        let board = parts.board.load();
        ReplicaStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pack: board.pack.name.clone(),
            pack_hash: board.pack.hash.clone(),
            started_ms,
            now,
            seconds,
            in_flight: totals.requests_in_flight.max(0.0),
            connections: totals.connections.max(0.0),
            reads_requests: parts.requests.has_reader(parts.clock.unix_ms()),
        }
    }

    /// Returns requests and errors per second; `None` before the first sample.
    pub(crate) fn rates(&self) -> Option<(f64, f64)> {
        let per_second = |number: u64| number as f64 / self.seconds;
        let (requests, errors) = (requests_of(&self.now.outcomes), errors_of(&self.now.outcomes));
        (self.seconds > 0.0).then(|| (per_second(requests), per_second(errors)))
    }
}

/// Another replica.
#[derive(Clone, Debug)]
pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) presence: ReplicaPresence,
    pub(crate) standing: ReplicaStatus,
}

impl Replica {
    pub(crate) fn peer(&self) -> PeerReplica<'_> {
        PeerReplica { name: &self.name, presence: self.presence, pack_hash: &self.standing.pack_hash }
    }
}

/// The known replicas. One instance per program.
pub(crate) struct Replicas {
    id: String,
    name: String,
    started_ms: i64,
    state: Mutex<ReplicasState>,
}

#[derive(Default)]
struct ReplicasState {
    others: BTreeMap<String, Other>,
    /// The heartbeat counter of this replica.
    beats: i64,
    /// Time of the last successful read.
    read_ms: i64,
    /// Whether the store may have sampled requests of this replica.
    has_sample: bool,
}

struct Other {
    row: ReplicaRow,
    standing: ReplicaStatus,
    /// Time of the last new heartbeat, by the local clock.
    heard_ms: i64,
    /// The last slot of its counters that was read.
    number: i64,
}

impl Replicas {
    pub(crate) fn new(started_ms: i64) -> Replicas {
        // Random instead of the host's name: processes of one machine, and one after a restart, must
        // differ.
        let id = format!("{:016x}", RandomState::new().hash_one(started_ms));
        Replicas { id, name: process_name(), started_ms, state: Mutex::default() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the current status of this replica.
    pub(crate) fn own(&self, parts: &AdminParts, traffic: &Traffic) -> ReplicaStatus {
        ReplicaStatus::current(parts, traffic, self.started_ms)
    }

    /// Sends and reads heartbeats, and never returns. Returns at once if the store has a single
    /// gateway.
    pub(crate) async fn keep(&self, parts: &AdminParts, traffic: &Traffic) {
        if !parts.store.is_shared() {
            return;
        }
        traffic.tell();
        let mut is_failing = false;
        loop {
            let outcome = self.beat(parts, traffic).await;
            // Log only the first failure of a series.
            if let Err(error) = &outcome
                && !is_failing
            {
                tracing::warn!(%error, "other replicas cannot be told apart or told anything; pages show what is known of them");
            }
            is_failing = outcome.is_err();
            parts.clock.sleep(BEAT).await;
        }
    }

    /// Writes a heartbeat with the new counters, and reads those of the others.
    async fn beat(&self, parts: &AdminParts, traffic: &Traffic) -> Result<(), StoreError> {
        let untold = traffic.untold();
        self.say(parts, traffic, &untold, None).await?;
        // Only after a successful write, so that no slot is lost.
        if let Some((number, ..)) = untold.last() {
            traffic.acknowledge(*number);
        }
        let rows = parts.store.replicas().await?;
        let mut heard = Vec::new();
        for row in &rows {
            let known = self.state().others.get(&row.id).map_or(i64::MIN, |other| other.number);
            // Counters are written together with a heartbeat, so an old heartbeat has no new ones.
            let is_new = self.state().others.get(&row.id).is_none_or(|other| other.row.beats != row.beats);
            if row.id != self.id && is_new {
                heard.push((row.id.clone(), parts.store.replica_slots(&row.id, known).await?));
            }
        }
        for (_, slots) in &heard {
            for slot in slots {
                // A newer version may use another format; its counters are omitted from the charts.
                if let Ok(counts) = serde_json::from_str::<SlotCounts>(&slot.counted) {
                    traffic.heard(slot.at_ms, &counts);
                }
            }
        }
        let numbers = heard.iter().filter_map(|(id, slots)| Some((id.as_str(), slots.last()?.number)));
        self.state().take(rows, &numbers.collect(), &self.id, parts.clock.unix_ms());
        self.exchange_samples(parts).await
    }

    /// Writes the sampled requests of this replica while another one reads them, and reads those of
    /// the others while they are read here.
    async fn exchange_samples(&self, parts: &AdminParts) -> Result<(), StoreError> {
        let now_ms = parts.clock.unix_ms();
        let here: Vec<(String, Replica)> = {
            let state = self.state();
            let others = state.others.iter().map(|(id, other)| (id.clone(), other.to_replica(now_ms, true)));
            others.filter(|(_, other)| other.presence == ReplicaPresence::Here).collect()
        };
        if here.iter().any(|(_, other)| other.standing.reads_requests) {
            // Before the write, whose answer may be lost.
            self.state().has_sample = true;
            let sampled = serde_json::to_string(&parts.requests.digest()).expect("it serialises");
            parts.store.put_replica_requests(&self.id, Some(&sampled)).await?;
        } else if self.state().has_sample {
            parts.store.put_replica_requests(&self.id, None).await?;
            self.state().has_sample = false;
        }
        let mut samples = Vec::new();
        if parts.requests.has_reader(now_ms) {
            for (id, other) in here {
                let Some(sampled) = parts.store.replica_requests(&id).await? else { continue };
                // A newer version may use another format; its requests are not listed.
                if let Ok(digest) = serde_json::from_str::<SampleDigest>(&sampled) {
                    samples.push(OtherSample { replica: other.name, digest: Arc::new(digest) });
                }
            }
        }
        parts.requests.set_others(samples);
        Ok(())
    }

    /// Announces the end of this replica, so that the others do not report it as lost.
    pub(crate) async fn leave(&self, parts: &AdminParts, traffic: &Traffic) {
        if !parts.store.is_shared() {
            return;
        }
        let untold = traffic.untold();
        let has_sample = self.state().has_sample;
        let left = async {
            if has_sample {
                parts.store.put_replica_requests(&self.id, None).await?;
            }
            self.say(parts, traffic, &untold, Some(parts.clock.unix_ms())).await
        };
        match tokio::time::timeout(FAREWELL, left).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "other replicas are not told that this one has left"),
            Err(_) => tracing::warn!("other replicas are not told that this one has left: the store is slow"),
        }
    }

    async fn say(
        &self,
        parts: &AdminParts,
        traffic: &Traffic,
        untold: &[(i64, i64, SlotCounts)],
        left_ms: Option<i64>,
    ) -> Result<(), StoreError> {
        let now_ms = parts.clock.unix_ms();
        let beats = {
            let mut state = self.state();
            state.beats += 1;
            state.beats
        };
        let row = ReplicaRow {
            id: self.id.clone(),
            name: self.name.clone(),
            beats,
            seen_ms: now_ms,
            left_ms,
            standing: serde_json::to_string(&self.own(parts, traffic)).expect("it serialises"),
        };
        let slots: Vec<ReplicaSlot> = untold
            .iter()
            .map(|(number, at_ms, counts)| ReplicaSlot {
                number: *number,
                at_ms: *at_ms,
                counted: serde_json::to_string(counts).expect("it serialises"),
            })
            .collect();
        let number_min = slots.last().map_or(0, |slot| slot.number - TOLD_MAX as i64);
        parts.store.put_replica(&row, &slots, number_min, now_ms - REMEMBERED_MS).await
    }

    /// Returns the other replicas, ordered by name.
    pub(crate) fn others(&self, now_ms: i64) -> Vec<Replica> {
        let state = self.state();
        let is_known = now_ms - state.read_ms < AWAY_MS;
        let mut all: Vec<Replica> =
            state.others.values().map(|other| other.to_replica(now_ms, is_known)).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    fn state(&self) -> MutexGuard<'_, ReplicasState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplicasState {
    fn take(&mut self, rows: Vec<ReplicaRow>, numbers: &BTreeMap<&str, i64>, own: &str, now_ms: i64) {
        // The store was unreachable, so no heartbeat could arrive: replicas that were present
        // before get a new time limit.
        let was_deaf = now_ms - self.read_ms > AWAY_MS;
        let read_ms = std::mem::replace(&mut self.read_ms, now_ms);
        self.others.retain(|id, _| rows.iter().any(|row| row.id == *id));
        for row in rows.into_iter().filter(|row| row.id != own) {
            let known = self.others.get(&row.id);
            // For a replica without an earlier heartbeat, only its own clock is available.
            let heard_ms = match known {
                Some(other) if other.row.beats == row.beats => {
                    if was_deaf && read_ms - other.heard_ms <= AWAY_MS { now_ms } else { other.heard_ms }
                }
                Some(_) => now_ms,
                None => row.seen_ms.min(now_ms),
            };
            let number = numbers.get(row.id.as_str()).copied().or_else(|| known.map(|other| other.number));
            let standing = serde_json::from_str(&row.standing).unwrap_or_default();
            let other = Other { standing, heard_ms, number: number.unwrap_or(i64::MIN), row };
            self.others.insert(other.row.id.clone(), other);
        }
    }
}

impl Other {
    fn to_replica(&self, now_ms: i64, is_known: bool) -> Replica {
        let presence = match self.row.left_ms {
            Some(left_ms) => ReplicaPresence::Left(left_ms),
            None if !is_known => ReplicaPresence::Unknown(self.heard_ms),
            None if now_ms - self.heard_ms > AWAY_MS => ReplicaPresence::Away(self.heard_ms),
            None => ReplicaPresence::Here,
        };
        Replica { name: self.row.name.clone(), presence, standing: self.standing.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, beats: i64, seen_ms: i64, left_ms: Option<i64>) -> ReplicaRow {
        ReplicaRow {
            id: id.to_owned(),
            name: id.to_owned(),
            beats,
            seen_ms,
            left_ms,
            standing: "{}".to_owned(),
        }
    }

    fn presences(replicas: &Replicas, now_ms: i64) -> Vec<ReplicaPresence> {
        replicas.others(now_ms).into_iter().map(|one| one.presence).collect()
    }

    #[test]
    fn a_replica_is_there_while_it_goes_on_whatever_its_clock_says() {
        let replicas = Replicas::new(0);
        let take = |rows, now_ms| replicas.state().take(rows, &BTreeMap::new(), "own", now_ms);
        // Its clock is one hour slow.
        take(vec![row("own", 9, 0, None), row("a", 1, -3_600_000, None)], 1_000);
        assert_eq!(
            presences(&replicas, 1_000),
            [ReplicaPresence::Away(-3_600_000)],
            "nothing else is known of it"
        );
        take(vec![row("a", 2, -3_595_000, None)], 6_000);
        assert_eq!(presences(&replicas, 6_000), [ReplicaPresence::Here], "it goes on");
        take(vec![row("a", 2, -3_595_000, None)], 15_000);
        take(vec![row("a", 2, -3_595_000, None)], 24_000);
        take(vec![row("a", 2, -3_595_000, None)], 30_000);
        assert_eq!(presences(&replicas, 30_000), [ReplicaPresence::Away(6_000)], "it does not");
        take(vec![row("a", 3, -3_595_000, Some(5)), row("b", 1, 29_000, None)], 31_000);
        assert_eq!(presences(&replicas, 31_000), [ReplicaPresence::Left(5), ReplicaPresence::Here]);
        assert_eq!(
            presences(&replicas, 60_000),
            [ReplicaPresence::Left(5), ReplicaPresence::Unknown(29_000)],
            "the others could not be read for half a minute"
        );
        take(vec![row("b", 1, 29_000, None)], 61_000);
        assert_eq!(presences(&replicas, 61_000), [ReplicaPresence::Here], "nor could it say anything");
        take(vec![row("b", 1, 29_000, None)], 70_000);
        take(vec![row("b", 1, 29_000, None)], 72_000);
        assert_eq!(presences(&replicas, 72_000), [ReplicaPresence::Away(61_000)], "it had time to");
        take(Vec::new(), 61_000);
        assert_eq!(presences(&replicas, 61_000), []);
    }

    #[test]
    fn what_others_say_is_read_back_and_what_is_unknown_of_it_stays_out() {
        let mut standing = ReplicaStatus { seconds: 10.0, ..ReplicaStatus::default() };
        standing.now.outcomes = [50, 0, 0, 0, 0, 0, 10, 0, 0];
        let text = serde_json::to_string(&standing).expect("it serialises");
        let read: ReplicaStatus = serde_json::from_str(&text).expect("it is read");
        assert_eq!(read.rates(), Some((6.0, 1.0)));
        let other: ReplicaStatus = serde_json::from_str("{\"version\":\"9\",\"new\":1}").expect("it is read");
        assert_eq!((other.version.as_str(), other.rates()), ("9", None));
    }
}
