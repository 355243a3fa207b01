//! Finds the changes that notices are about: entries of the history and transitions by the gate,
//! whichever process made them; brownouts that begin and end; certificates that expire soon. Every
//! gateway looks, and the one that claims a notice in the store sends it.

use super::deliver::NoticeSender;
use super::notice::{Notice, NoticeKind};
use crate::clock::rfc3339;
use crate::retire::{Brownout, Retirement};
use crate::shadow::PHASES;
use crate::store::{
    GATE_HELD, GRANT_ENDED, HistoryRow, RELOAD_FAILED, ROLLOUT_ABORTED, ROLLOUT_COMPLETED, ROLLOUT_PAUSED,
    Store, StoreError, TransitionRow,
};
use serde_json::json;
use std::collections::{HashMap, HashSet};

/// Remaining lifetime below which a certificate has a notice.
const CERTIFICATE_NEAR_MS: i64 = 14 * 24 * 3_600_000;
/// Most claims to remember. Without its memory, a gateway asks the store again.
const SETTLED_MAX: usize = 10_000;

/// Looks for changes. One of each gateway.
#[derive(Debug)]
pub struct NoticeWatch {
    store: Store,
    retirement: Retirement,
    sender: NoticeSender,
    /// The write up to which the history was read. `None` without receivers.
    seen: Option<i64>,
    /// Brownouts that were open at the last look, by their keys.
    open: HashMap<String, Brownout>,
    /// Keys of claims that are settled.
    settled: HashSet<String>,
}

impl NoticeWatch {
    /// Creates a watch that finds changes from now on.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn new(
        store: Store,
        retirement: Retirement,
        sender: NoticeSender,
    ) -> Result<NoticeWatch, StoreError> {
        let seen = Some(store.change().await?);
        Ok(NoticeWatch { store, retirement, sender, seen, open: HashMap::new(), settled: HashSet::new() })
    }

    /// Sends the notices that have become due. `certificates` are the served ones, by their
    /// configuration key, each with its end in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails. The next look starts where this one failed.
    pub async fn look(&mut self, certificates: &[(&str, i64)]) -> Result<(), StoreError> {
        if !self.sender.has_receivers() {
            // A receiver that is added later gets no notices about what happened before.
            self.seen = None;
            return Ok(());
        }
        let until = self.store.change().await?;
        let since = *self.seen.get_or_insert(until);
        if since != until {
            self.read([since, until]).await?;
            self.seen = Some(until);
        }
        if self.settled.len() > SETTLED_MAX {
            self.settled.clear();
        }
        self.look_at_brownouts().await?;
        self.look_at_certificates(certificates).await
    }

    async fn read(&mut self, writes: [i64; 2]) -> Result<(), StoreError> {
        for (id, row) in self.store.gate_transitions_between(writes).await? {
            if self.claim(&id, None).await? {
                let (kind, notice) = of_transition(&row);
                self.sender.queue(kind, notice).await;
            }
        }
        let kinds =
            [GATE_HELD, GRANT_ENDED, RELOAD_FAILED, ROLLOUT_ABORTED, ROLLOUT_COMPLETED, ROLLOUT_PAUSED];
        for (id, row) in self.store.history_between(writes, kinds).await? {
            let key = match row.kind.as_str() {
                // Gateways often read the same file, so one notice suffices until a reload succeeds.
                RELOAD_FAILED => {
                    format!("{RELOAD_FAILED}/{}/{}", self.store.last_reload().await?, row.detail)
                }
                _ => id,
            };
            if self.claim(&key, None).await? {
                let (kind, notice) = of_entry(&row);
                self.sender.queue(kind, notice).await;
            }
        }
        Ok(())
    }

    async fn look_at_brownouts(&mut self) -> Result<(), StoreError> {
        let now_ms = self.store.clock().unix_ms();
        let mut listed = HashMap::new();
        for one in self.retirement.brownouts() {
            // Ids of configured windows are numbers, which another window may have later.
            listed.insert(format!("{}/{}/{}", one.id, one.from_ms, one.until_ms), one);
        }
        for (key, one) in &listed {
            let began = format!("began/{key}");
            if one.state(now_ms) == "open" && self.claim(&began, None).await? {
                let (what, until) = (scope(one), rfc3339(one.until_ms));
                let text = format!("A brownout has begun: {what} are rejected with 503 until {until}.");
                let notice = Notice::new(NoticeKind::BrownoutBegan, one.from_ms, json!(one), text);
                self.sender.queue(NoticeKind::BrownoutBegan, notice).await;
            }
        }
        let is_over = |(_, one): &(&String, &Brownout)| one.state(now_ms) == "over";
        let over = listed.iter().filter(is_over);
        let removed = self.open.iter().filter(|(key, _)| !listed.contains_key(*key));
        let ended: Vec<(String, Brownout)> =
            over.chain(removed).map(|(key, one)| (key.clone(), one.clone())).collect();
        for (key, one) in ended {
            // Without a notice of its begin, such as for a window of last year, there is none of its end.
            if self.claim(&format!("ended/{key}"), Some(&format!("began/{key}"))).await? {
                let text = format!("A brownout has ended: {} are answered again.", scope(&one));
                let at_ms = one.until_ms.min(now_ms);
                let notice = Notice::new(NoticeKind::BrownoutEnded, at_ms, json!(one), text);
                self.sender.queue(NoticeKind::BrownoutEnded, notice).await;
            }
        }
        listed.retain(|_, one| one.state(now_ms) == "open");
        self.open = listed;
        Ok(())
    }

    async fn look_at_certificates(&mut self, certificates: &[(&str, i64)]) -> Result<(), StoreError> {
        let now_ms = self.store.clock().unix_ms();
        for (key, ends_ms) in
            certificates.iter().filter(|(_, ends_ms)| ends_ms - now_ms < CERTIFICATE_NEAR_MS)
        {
            if self.claim(&format!("certificate/{key}/{ends_ms}"), None).await? {
                let expires = rfc3339(*ends_ms);
                let verb = if *ends_ms <= now_ms { "has expired" } else { "expires" };
                let text = format!("The certificate of `{key}` {verb} at {expires}.");
                let data = json!({"certificate": key, "expires": expires});
                let notice = Notice::new(NoticeKind::CertificateExpires, now_ms, data, text);
                self.sender.queue(NoticeKind::CertificateExpires, notice).await;
            }
        }
        Ok(())
    }

    /// Returns whether this gateway sends the notice of this key.
    async fn claim(&mut self, key: &str, after: Option<&str>) -> Result<bool, StoreError> {
        // These looks repeat every second, and most keys are settled.
        if self.settled.contains(key) {
            return Ok(false);
        }
        let is_ours = self.store.claim_notice(key, after).await?;
        self.settled.insert(key.to_owned());
        Ok(is_ours)
    }
}

fn of_transition(row: &TransitionRow) -> (NoticeKind, Notice) {
    let TransitionRow { side, operation, from, to, evidence, .. } = row;
    // The share of a phase follows its name.
    let rank = |phase: &str| PHASES.iter().position(|name| phase.split([' ', ',']).next() == Some(name));
    let (kind, verb) = match rank(to) < rank(from) {
        true => (NoticeKind::GateRolledBack, "rolled back"),
        false => (NoticeKind::PhaseChanged, "moved"),
    };
    let text = format!("The gate has {verb} {operation} ({side}) from {from} to {to}: {evidence}.");
    let data = json!({"side": side, "operation": operation, "from": from, "to": to, "evidence": evidence});
    (kind, Notice::new(kind, row.at_ms, data, text))
}

fn of_entry(row: &HistoryRow) -> (NoticeKind, Notice) {
    let HistoryRow { subject, who, detail, .. } = row;
    // The subject of holds and rollouts is the side and the operation.
    let (side, operation) = subject.split_once(' ').unwrap_or(("", subject));
    let of_operation = || json!({"side": side, "operation": operation, "by": who, "reason": detail});
    let of_rollout = |kind, verb: &str| {
        let text = format!("The rollout of {operation} ({side}) {verb} by {who}: {detail}");
        (kind, of_operation(), text)
    };
    let (kind, data, text) = match row.kind.as_str() {
        GATE_HELD => {
            let text = format!("{who} holds {operation} ({side}) in its phase. Reason: {detail}");
            (NoticeKind::GateHeld, of_operation(), text)
        }
        ROLLOUT_PAUSED => of_rollout(NoticeKind::RolloutPaused, "was paused"),
        ROLLOUT_ABORTED => of_rollout(NoticeKind::RolloutAborted, "was aborted"),
        ROLLOUT_COMPLETED => of_rollout(NoticeKind::RolloutCompleted, "was completed"),
        GRANT_ENDED => {
            let text = format!("The grant of {subject} has ended ({detail}): connect the client again.");
            (NoticeKind::GrantEnded, json!({"client": subject, "reason": detail}), text)
        }
        _ => {
            let text =
                format!("A reload was refused; the previous pack and configuration serve on. {detail}");
            (NoticeKind::ReloadRefused, json!({"pack": subject, "error": detail}), text)
        }
    };
    (kind, Notice::new(kind, row.at_ms, data, text))
}

/// Describes the rejected calls.
fn scope(one: &Brownout) -> String {
    let names = |list: &[String], all: &str| if list.is_empty() { all.to_owned() } else { list.join(", ") };
    let (calls, clients) = (names(&one.operations, "all calls"), names(&one.clients, "all clients"));
    format!("{calls} of {clients} on {}", one.side)
}
