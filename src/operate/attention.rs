//! The conditions that need an operator: the list *Needs attention* of the studio, of `GET
//! /api/attention`, and of `switchback status`. Each item states the problem, since when, and its
//! remedy.
//!
//! Items are functions of plain values, so that each has a test; the caller decides which data it
//! reads for them. The empty list names all checks, so a new kind of item also needs an entry in
//! [`CHECKED`].

use super::packs::PackRestoration;
use super::remedy::{AttentionItem, Place, Remedy};
use super::sentence::Sentence;
use crate::figures::{count, count_noun, names_or, percent};
use switchback_engine::diff::{OperationReport, Proof};
use switchback_gateway::clock::unix_ms;
use switchback_gateway::proxy::unknown_calls::UnknownCall;
use switchback_gateway::retire::Brownout;
use switchback_gateway::shadow::{PhaseInfo, PhaseView, RolloutState, RolloutView, Transition};
use switchback_gateway::store::{EventCount, GrantState};
use switchback_gateway::token::{ClientInfo, CredentialInfo, CredentialState};

/// Names all checks, for the empty list.
pub(crate) const CHECKED: &str = "Checked: brownouts, the store, replicas, reloads, restored packs, pending restarts, certificates, operations, rollouts, \
                                  grants, credentials, client records, events and unknown calls.";

/// Most items of one kind.
const LISTED_MAX: usize = 5;
/// Remaining lifetime below which a certificate is listed.
const CERTIFICATE_NEAR_MS: i64 = 30 * 24 * 3_600_000;
/// Time for which a replica that stopped without leaving is listed. Its successor has started by
/// then.
const AWAY_MS: i64 = 3_600_000;
/// Time since the expiry of an access token before it is listed: a refresh may be running.
const TOKEN_LATE_MS: i64 = 60_000;

/// The moment of the list, and the replica that it is of.
pub(crate) struct AttentionContext {
    pub(crate) now_ms: i64,
    /// The name of this replica if there are several, since some items apply to it alone.
    pub(crate) replica: Option<String>,
}

impl AttentionContext {
    /// Returns ` on NAME` if there are several replicas.
    fn on_replica(&self) -> String {
        self.replica.as_ref().map(|name| format!(" on {name}")).unwrap_or_default()
    }
}

fn item(id: impl Into<String>, text: Sentence, remedy: Remedy) -> AttentionItem {
    AttentionItem { id: id.into(), text, remedy }
}

/// Returns open brownouts: the rejected calls and the end.
pub(crate) fn of_brownouts(all: &[Brownout], context: &AttentionContext) -> Vec<AttentionItem> {
    // A planned brownout needs no attention before its start.
    let open = all.iter().filter(|one| one.from_ms <= context.now_ms && context.now_ms < one.until_ms);
    open.map(|one| {
        let calls = names_or(&one.operations, "all calls");
        let clients = names_or(&one.clients, "all clients");
        let side = &one.side;
        let rejected = format!(": {calls} of {clients} on {side} are rejected with 503; it ends ");
        let text = Sentence::default().strong("A brownout is open").and(rejected);
        let remedy = match one.by.as_str() {
            "configuration" => Remedy::Configuration,
            _ => Remedy::EndBrownout(one.id.clone()),
        };
        item(format!("brownout-{}", one.id), text.moment(one.until_ms).and("."), remedy)
    })
    .collect()
}

pub(crate) fn of_the_store(away_since: Option<i64>) -> Vec<AttentionItem> {
    let away = away_since.map(|since| {
        let text = Sentence::default().strong("The store stopped answering").and(" ").moment(since);
        let rest = ". Calls are answered, grants are refreshed in memory; nothing can be changed.";
        item("store", text.and(rest), Remedy::None)
    });
    away.into_iter().collect()
}

/// The presence of another replica. Times are Unix time in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicaPresence {
    Here,
    /// The replica announced its end.
    Left(i64),
    /// The heartbeat stopped without an announcement; with the time of the last one.
    Away(i64),
    /// The store does not answer; with the time of the last heartbeat.
    Unknown(i64),
}

/// Another replica.
pub(crate) struct PeerReplica<'r> {
    pub(crate) name: &'r str,
    pub(crate) presence: ReplicaPresence,
    /// SHA-256 of its pack.
    pub(crate) pack_hash: &'r str,
}

/// Returns replicas that stopped without leaving or serve another pack.
pub(crate) fn of_replicas(
    others: &[PeerReplica<'_>],
    own_hash: &str,
    context: &AttentionContext,
) -> Vec<AttentionItem> {
    let mut items = Vec::new();
    for one in others {
        let ReplicaPresence::Away(since) = one.presence else { continue };
        if context.now_ms - since < AWAY_MS {
            let text = Sentence::plain("The replica ").strong(one.name).and(" ");
            let text = text.strong("stopped without leaving").and("; its last message came ").moment(since);
            let rest = ". Traffic that it reported until then is in the charts.";
            items.push(item(format!("replica-{}", one.name), text.and(rest), Remedy::None));
        }
    }
    // A replica that is away cannot be reloaded, and is listed above.
    let differing = others.iter().filter(|one| one.presence == ReplicaPresence::Here);
    let differing: Vec<&str> =
        differing.filter(|one| one.pack_hash != own_hash).map(|one| one.name).collect();
    if !differing.is_empty() {
        let have = if differing.len() == 1 { "has" } else { "have" };
        let names = differing.join("; ");
        let rest = format!(
            ": {names} {have} another one than this replica. If a reload failed on one of them, its log says why."
        );
        let text = Sentence::default().strong("Replicas serve different packs").and(rest);
        items.push(item("packs", text, Remedy::None));
    }
    items
}

/// Returns conditions of the process: shutdown, and grants with unstored tokens.
pub(crate) fn of_the_process(
    is_leaving: bool,
    unpersisted: usize,
    context: &AttentionContext,
) -> Vec<AttentionItem> {
    let on = context.on_replica();
    let mut items = Vec::new();
    if is_leaving {
        let text = Sentence::default().strong(format!("The gateway{on} is about to stop"));
        let rest = ": it reports not ready and closes connections as they become idle.";
        items.push(item("leaving", text.and(rest), Remedy::None));
    }
    if unpersisted > 0 {
        let has = if unpersisted == 1 { "has its" } else { "have their" };
        let rest =
            format!(" {has} newest tokens in memory only: a restart before the store answers loses them.");
        let grants = format!("{}{on}", count_noun(unpersisted as u64, "grant"));
        items.push(item("unpersisted", Sentence::default().strong(grants).and(rest), Remedy::None));
    }
    items
}

/// The outcome of the last reload.
pub(crate) struct LastReload<'r> {
    /// RFC 3339, UTC.
    pub(crate) at: &'r str,
    pub(crate) is_failed: bool,
    /// Changed keys that need a restart.
    pub(crate) needs_restart: &'r [String],
}

/// Returns a failed reload and pending restarts.
pub(crate) fn of_the_pack(reload: &LastReload<'_>, context: &AttentionContext) -> Vec<AttentionItem> {
    let on = context.on_replica();
    let mut items = Vec::new();
    if reload.is_failed {
        let text = Sentence::default().strong("The last reload failed").and(format!("{on} "));
        let rest = "; the pack and configuration from before it go on serving.";
        items.push(item("reload", text.moment_text(reload.at).and(rest), Remedy::Reload));
    }
    if !reload.needs_restart.is_empty() {
        let text = Sentence::default().strong("A restart is pending").and(format!("{on}: changes of "));
        let text = text.code(reload.needs_restart.join(", ")).and(" need one.");
        items.push(item("restart", text, Remedy::None));
    }
    items
}

/// Returns that a recorded pack serves instead of the one on disk.
pub(crate) fn of_the_restoration(
    restored: Option<&PackRestoration>,
    context: &AttentionContext,
) -> Vec<AttentionItem> {
    let of = |restored: &PackRestoration| {
        let text = Sentence::default().strong("The served pack is not the one on disk");
        let text = text.and(format!("{}: {} restored it ", context.on_replica(), restored.by));
        let on_disk = restored.instead_of.get(..12).unwrap_or(&restored.instead_of);
        let text = text.moment_text(&restored.since).and(" instead of ").code(on_disk);
        let rest = ". It serves until the files change or are reloaded.";
        item("restored", text.and(rest), Remedy::Look("Recorded packs", Place::Packs))
    };
    restored.map(of).into_iter().collect()
}

/// Returns certificates that have expired or expire soon, each given by its configuration key and
/// its end in Unix milliseconds.
pub(crate) fn of_certificates<'c>(
    certificates: impl IntoIterator<Item = (&'c str, i64)>,
    context: &AttentionContext,
) -> Vec<AttentionItem> {
    let now_ms = context.now_ms;
    let mut near: Vec<(&str, i64)> = certificates.into_iter().collect();
    near.retain(|(_, ends_ms)| ends_ms - now_ms < CERTIFICATE_NEAR_MS);
    // The certificate with the earliest end is the most urgent.
    near.sort_by_key(|(_, ends_ms)| *ends_ms);
    let row = |(key, ends_ms): (&str, i64)| {
        let use_of = if key == "tls" { "presented to clients" } else { "presented to services" };
        let text = Sentence::plain("The certificate of ").code(key);
        let text = text.and(format!("{}, {use_of}, ", context.on_replica()));
        let is_over = ends_ms <= now_ms;
        let text = text.strong(if is_over { "has ended" } else { "ends" }).and(" ").moment(ends_ms);
        let fails = if is_over { " Connections with it fail." } else { "" };
        let rest = format!(".{fails} Replace its file; a reload applies it.");
        item(format!("certificate-{key}"), text.and(rest), Remedy::None)
    };
    near.into_iter().map(row).collect()
}

/// Returns the usual next phase with its initial share.
pub(crate) fn next_phase(now: &PhaseView) -> Option<(&'static str, &'static str)> {
    match now.phase {
        "legacy" => Some(("shadow", "")),
        "shadow" => Some(("canary", "0.05")),
        "canary" => Some(("translated", "0.01")),
        _ => None,
    }
}

/// A rollout with its side and operation.
pub(crate) type RolloutOf<'r> = (&'r str, &'r str, &'r RolloutView);

/// Returns operations that were rolled back, have a rollout that only an operator can continue,
/// exceed the threshold, or can be promoted.
pub(crate) fn of_operations(
    phases: &[PhaseInfo],
    reports: &[OperationReport],
    transitions: &[Transition],
    rollouts: &[RolloutOf<'_>],
) -> Vec<AttentionItem> {
    let mut problems = Vec::new();
    let mut ready = Vec::new();
    for info in phases {
        let (side, operation) = (info.side.clone(), info.operation.clone());
        let id = |kind: &str| format!("{kind}-{side}-{operation}");
        let of = Sentence::default().operation(&operation).and(" ");
        let last = transitions.iter().find(|one| one.side == side && one.operation == operation);
        // Only rollbacks by the gate: those of operators need no attention.
        let is_back = |one: &&Transition| {
            one.by == "gate" && one.to == "shadow" && one.evidence.starts_with("rolled back")
        };
        if let Some(back) = last.filter(is_back) {
            let text = of.clone().strong("was rolled back").and(" ").moment_text(&back.at);
            let place = Place::Operation { side: side.clone(), operation: operation.clone() };
            let remedy = Remedy::Look("Look at it", place);
            problems.push(item(id("back"), text.and(format!(": {}", back.evidence)), remedy));
        }
        let rollout = rollouts.iter().find(|one| one.0 == side && one.1 == operation).map(|one| one.2);
        if let Some(text) = rollout.and_then(|rollout| stopped(rollout, of.clone())) {
            let place = Place::Rollout { side: side.clone(), operation: operation.clone() };
            problems.push(item(id("rollout"), text, Remedy::Look("Look at it", place)));
        }
        let report = reports.iter().find(|report| report.side == side && report.operation == operation);
        match report {
            Some(report) if report.proof == Proof::Above => {
                let (different, compared) = (report.counts.different, report.counts.compared_count());
                let rest = format!(": {} of {} answers. {}", count(different), count(compared), report.next);
                let (id, text) = (id("above"), of.strong("differs too much").and(rest));
                let place = Place::Differences { side, operation };
                problems.push(item(id, text, Remedy::Look("See the differences", place)));
            }
            Some(report) if report.proof == Proof::Within => {
                // An operation in the last phase has no next one, so its proof needs no action.
                let Some((phase, share)) = next_phase(&info.now) else { continue };
                let (bound, sure) = (percent(report.mismatch_bound), percent(report.threshold.confidence));
                let rest = format!(": at most {bound} of its answers differ ({sure} sure).");
                let (id, text) = (id("ready"), of.strong("can be moved on").and(rest));
                ready.push(item(id, text, Remedy::Promote { side, operation, phase, share }));
            }
            _ => {}
        }
    }
    let more = problems.len().saturating_sub(LISTED_MAX * 2) + ready.len().saturating_sub(LISTED_MAX);
    // Problems get more items than promotions, which can wait.
    problems.truncate(LISTED_MAX * 2);
    ready.truncate(LISTED_MAX);
    problems.extend(ready);
    if more > 0 {
        let text = Sentence::plain(format!("{} about operations.", count_noun(more as u64, "further row")));
        problems.push(item("operations-more", text, Remedy::Look("Operations", Place::Operations)));
    }
    problems
}

/// Describes a rollout that does not advance until an operator acts. `None` for others.
fn stopped(rollout: &RolloutView, of: Sentence) -> Option<Sentence> {
    let RolloutView { name, who, reason, updated_ms, .. } = rollout;
    if rollout.state.is_active() && rollout.plan.is_none() {
        let text = of.strong("has a rollout without a plan").and(": the configuration no longer has ");
        return Some(text.code(name).and("."));
    }
    let colon = if reason.is_empty() { "" } else { ": " };
    let text = of.strong("has a paused rollout").and(", ").code(name).and(format!(", by {who} "));
    (rollout.state == RolloutState::Paused).then(|| text.moment(*updated_ms).and(format!("{colon}{reason}")))
}

/// Returns clients with failing calls, or soon failing ones, and clients that have left the
/// configuration.
pub(crate) fn of_clients(clients: &[ClientInfo], context: &AttentionContext) -> Vec<AttentionItem> {
    // A revoked client has no grant to repair.
    let living = clients.iter().filter(|client| client.revoked_at.is_none());
    let mut items: Vec<AttentionItem> = living.flat_map(|client| of_client(client, context)).collect();
    let more = items.len().saturating_sub(LISTED_MAX);
    items.truncate(LISTED_MAX);
    if more > 0 {
        let text = Sentence::plain(format!("{} about clients.", count_noun(more as u64, "further row")));
        items.push(item("clients-more", text, Remedy::Look("All clients", Place::Clients)));
    }
    items
}

fn of_client(client: &ClientInfo, context: &AttentionContext) -> Vec<AttentionItem> {
    let name = client.name.as_str();
    let look = || Remedy::Look("Look at it", Place::Client(name.to_owned()));
    let row = |kind: &str, text: Sentence, remedy: Remedy| item(format!("{kind}-{name}"), text, remedy);
    let mut items = Vec::new();
    if client.damaged {
        let text = Sentence::plain("The record of ").strong(name).and(" ");
        let text = text.strong("was changed outside Switchback").and(": no token selects this client.");
        items.push(row("damaged", text, look()));
    }
    if client.left_configuration {
        let text = Sentence::default().strong(name).and(" ").strong("is no longer in the configuration");
        let rest = ", and its tokens still select it until it is revoked.";
        items.push(row("left", text.and(rest), look()));
    }
    let grant = &client.grant;
    // A client with fixed credentials makes its calls without a grant.
    let is_unused = grant.state == GrantState::Unconnected && !client.credentials.is_empty();
    if grant.state != GrantState::Active && !is_unused {
        let text = Sentence::plain("The grant of ").strong(name).and(" ").strong(state_words(grant.state));
        let text = match &grant.reason {
            Some(reason) => text.and(": ").append(grant_reason(reason, grant.state)),
            None => text,
        };
        // A misconfiguration is for the operator, not the owner.
        let remedy = match grant.state {
            GrantState::Misconfigured => look(),
            _ => Remedy::Look("Send its owner a link", Place::ClientToConnect(name.to_owned())),
        };
        items.push(row("client", text.and("."), remedy));
    }
    let ended = grant.expires_at.as_deref().and_then(unix_ms);
    // Refreshes take a moment. Only a token that is overdue indicates that refreshing does not work.
    let ended = ended.filter(|end| context.now_ms - end > TOKEN_LATE_MS && grant.state == GrantState::Active);
    if let Some(end) = ended {
        let text = Sentence::plain("The access token of ").strong(name).and(" ").strong("ended").and(" ");
        let text = text.moment(end).and(" and was not renewed; the log says why.");
        items.push(row("token", text, look()));
    }
    for credential in &client.credentials {
        if let Some(trouble) = credential_trouble(credential) {
            let side = &credential.side;
            let text = Sentence::plain("The credential of ").strong(name).and(format!(" for {side} "));
            let text = text.append(trouble).and(": set another with ").code("switchback client credential");
            let place = Place::ClientCredential { client: name.to_owned(), side: side.clone() };
            let remedy = Remedy::Look("Look at it", place);
            items.push(row(&format!("credential-{side}"), text.and("."), remedy));
        }
    }
    items
}

/// Describes the state of a grant.
fn state_words(state: GrantState) -> &'static str {
    match state {
        GrantState::Unconnected => "is not connected",
        GrantState::Pending => "has no access token yet",
        GrantState::Active => "is active",
        GrantState::Misconfigured => "is misconfigured",
        GrantState::NeedsReconnect => "must be connected again",
    }
}

/// Describes the error of a refresh with its remedy, followed by the authorization server's error
/// code.
pub(crate) fn grant_reason(reason: &str, state: GrantState) -> Sentence {
    let words = match reason {
        // A grant of client credentials has no owner.
        "invalid_grant" if state == GrantState::Misconfigured => {
            "the authorization server refuses the application: an operator mends `client_id`, `client_secret` or `client_key`, or the application there"
        }
        "invalid_grant" => "its owner ended the authorization, or it expired: send a link to connect anew",
        "invalid_client" | "unauthorized_client" => {
            "the authorization server does not know the application, its secret or its key: an operator mends `client_id` and `client_secret` or `client_key`"
        }
        "no_usable_client_key" => {
            "the authorization server requires `private_key_jwt`, and the application has no private key: an operator sets `client_key`"
        }
        "invalid_scope" => {
            "the authorization server does not give what is asked for: an operator mends `oauth.scopes`"
        }
        "invalid_request" | "unsupported_grant_type" => {
            "the authorization server does not understand how it is asked: an operator mends `oauth`"
        }
        "revoked" => "it was revoked here",
        "refresh_requested" => "an operator requested new tokens; the gateway requests them within a second",
        other if other.starts_with("status_") => {
            "the authorization server refuses without a reason; requests are repeated with growing pauses"
        }
        _ => return Sentence::plain(reason),
    };
    Sentence::plain(format!("{words} ")).code(reason)
}

/// Describes a problem of a credential. `None` if it works.
pub(crate) fn credential_trouble(credential: &CredentialInfo) -> Option<Sentence> {
    match credential.state {
        CredentialState::Active => None,
        CredentialState::Refused => {
            let text = Sentence::default().strong("is rejected by the service");
            Some(match &credential.refused_at {
                Some(at) => text.and(" since ").moment_text(at),
                None => text,
            })
        }
        CredentialState::Damaged => {
            let text = Sentence::default().strong("does not open");
            Some(text.and(", because its record was changed or copied"))
        }
    }
}

/// Returns receivers with dead events.
pub(crate) fn of_events(counts: &[EventCount]) -> Vec<AttentionItem> {
    let dead = counts.iter().filter(|one| one.dead > 0);
    dead.map(|one| {
        let (are, them) =
            if one.dead == 1 { ("is a dead letter", "it") } else { ("are dead letters", "them") };
        let events = format!("{} for {}", count_noun(one.dead.unsigned_abs(), "event"), one.receiver);
        let text = Sentence::default().strong(events).and(format!(" {are}: no further delivery is tried. "));
        let text = text.code("switchback events").and(format!(" lists, retries and drops {them}."));
        item(format!("events-{}", one.receiver), text, Remedy::Look("", Place::Events))
    })
    .collect()
}

/// Returns the newest calls to unknown operations and by unknown clients, as one item.
pub(crate) fn of_unknown_calls(unknown: &[UnknownCall], context: &AttentionContext) -> Vec<AttentionItem> {
    if unknown.is_empty() {
        return Vec::new();
    }
    let calls: u64 = unknown.iter().map(|call| call.count).sum();
    let rest = format!(
        "{} from unknown clients or to something that no contract has, by the newest {}",
        context.on_replica(),
        count_noun(unknown.len() as u64, "kind")
    );
    let text = Sentence::default().strong(count_noun(calls, "call")).and(rest);
    vec![item("unknown", text, Remedy::UnknownCalls)]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use switchback_engine::diff::{Counts, Summary, Threshold, report};
    use switchback_gateway::shadow::{Phase, RolloutPlan, RolloutStep};
    use switchback_gateway::token::GrantInfo;

    const HOUR_MS: i64 = 3_600_000;
    pub(crate) const NOON: &str = "1970-01-01T12:00:00Z";

    /// Returns the context at 13:00 of the first day.
    fn context(replica: Option<&str>) -> AttentionContext {
        AttentionContext { now_ms: 13 * HOUR_MS, replica: replica.map(str::to_owned) }
    }

    /// Compares the ids, and parts of the text or of the command.
    #[track_caller]
    fn check(items: &[AttentionItem], expected: &[(&str, &[&str])]) {
        let ids: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids, expected.iter().map(|(id, _)| *id).collect::<Vec<_>>(), "{items:?}");
        for (item, (id, parts)) in items.iter().zip(expected) {
            let command = item.remedy.command().unwrap_or_default();
            let text = format!("{} {command}", item.text.text(13 * HOUR_MS));
            for part in *parts {
                assert!(text.contains(part), "{id} lacks {part:?}: {text}");
            }
        }
    }

    /// Returns a client without a grant or a credential.
    pub(crate) fn unconnected(name: &str) -> ClientInfo {
        ClientInfo {
            name: name.to_owned(),
            company: None,
            created_at: NOON.to_owned(),
            revoked_at: None,
            damaged: false,
            left_configuration: false,
            tokens: 1,
            token_sides: vec![None],
            version: 1,
            grant: GrantInfo {
                state: GrantState::Unconnected,
                reason: None,
                generation: 0,
                issued_at: None,
                expires_at: None,
                expired: false,
                warning: None,
            },
            credentials: Vec::new(),
        }
    }

    fn client(name: &str) -> ClientInfo {
        let mut client = unconnected(name);
        (client.grant.state, client.grant.generation) = (GrantState::Active, 1);
        client
    }

    fn credential(state: CredentialState) -> CredentialInfo {
        let refused_at = (state == CredentialState::Refused).then(|| NOON.to_owned());
        CredentialInfo { side: "v2".to_owned(), state, refused_at, set_at: NOON.to_owned() }
    }

    #[test]
    fn clients_need_attention_for_each_way_in_which_their_calls_fail() {
        let all = [
            client("well"),
            ClientInfo { credentials: vec![credential(CredentialState::Active)], ..client("fixed") },
            ClientInfo {
                damaged: true,
                revoked_at: Some(NOON.to_owned()),
                ..client("revoked, whatever else it is")
            },
            ClientInfo { damaged: true, ..client("damaged") },
            ClientInfo { left_configuration: true, ..client("gone") },
            ClientInfo { credentials: vec![credential(CredentialState::Refused)], ..client("refused") },
            ClientInfo { credentials: vec![credential(CredentialState::Damaged)], ..client("copied") },
        ];
        check(
            &of_clients(&all, &context(None)),
            &[
                ("damaged-damaged", &["was changed outside Switchback"]),
                ("left-gone", &["is no longer in the configuration"]),
                ("credential-v2-refused", &["for v2 is rejected by the service since 1 h ago"]),
                ("credential-v2-copied", &["does not open", "client credential copied v2=env:NAME"]),
            ],
        );
    }

    #[test]
    fn grants_need_attention_unless_they_are_active_or_nobody_needs_them() {
        let with = |name: &str, state, reason: Option<&str>, expires_at: Option<&str>| {
            let mut client = client(name);
            (client.grant.state, client.grant.reason) = (state, reason.map(str::to_owned));
            client.grant.expires_at = expires_at.map(str::to_owned);
            client
        };
        let mut unused = with("unused", GrantState::Unconnected, None, None);
        unused.credentials.push(credential(CredentialState::Active));
        let all = [
            with("renewed", GrantState::Active, None, Some("1970-01-01T13:30:00Z")),
            unused,
            with("never", GrantState::Unconnected, None, None),
            with("over", GrantState::NeedsReconnect, Some("invalid_grant"), Some(NOON)),
            with("wrong", GrantState::Misconfigured, Some("invalid_client"), None),
            with("late", GrantState::Active, None, Some(NOON)),
        ];
        check(
            &of_clients(&all, &context(None)),
            &[
                ("client-never", &["is not connected.", "switchback client connect never"]),
                (
                    "client-over",
                    &["must be connected again: its owner ended the authorization", "client connect over"],
                ),
                ("client-wrong", &["is misconfigured: ", "switchback client list"]),
                ("token-late", &["ended 1 h ago and was not renewed"]),
            ],
        );
    }

    #[test]
    fn more_clients_than_are_listed_are_counted() {
        let all: Vec<ClientInfo> =
            (0..8).map(|at| ClientInfo { damaged: true, ..client(&format!("c{at}")) }).collect();
        let rows = of_clients(&all, &context(None));
        assert_eq!(rows.len(), LISTED_MAX + 1);
        check(&rows[LISTED_MAX..], &[("clients-more", &["3 further rows about clients"])]);
    }

    #[test]
    fn dead_events_are_counted_by_receiver() {
        let of = |receiver: &str, dead| EventCount { receiver: receiver.to_owned(), pending: 3, dead };
        check(
            &of_events(&[of("crm", 2), of("well", 0), of("shop", 1)]),
            &[
                ("events-crm", &["2 events for crm are dead letters"]),
                ("events-shop", &["1 event for shop is a dead letter"]),
            ],
        );
    }

    #[test]
    fn conditions_of_one_replica_name_it_where_there_are_several() {
        let needs_restart = ["listen".to_owned()];
        let reload = |is_failed| LastReload { at: NOON, is_failed, needs_restart: &needs_restart };
        let rows = |context: &AttentionContext| {
            let mut rows = of_the_process(true, 1, context);
            rows.extend(of_the_pack(&reload(true), context));
            rows.extend(of_certificates([("tls", 14 * HOUR_MS)], context));
            rows
        };
        check(
            &rows(&context(Some("pod-1"))),
            &[
                ("leaving", &["The gateway on pod-1 is about to stop"]),
                ("unpersisted", &["1 grant on pod-1 has its newest tokens in memory only"]),
                ("reload", &["The last reload failed on pod-1 1 h ago"]),
                ("restart", &["A restart is pending on pod-1: changes of listen need one."]),
                ("certificate-tls", &["The certificate of tls on pod-1, presented to clients, ends in 1 h"]),
            ],
        );
        check(
            &of_the_pack(&reload(false), &context(None)),
            &[("restart", &["A restart is pending: changes of listen need one."])],
        );
        check(&of_the_process(false, 0, &context(None)), &[]);
    }

    #[test]
    fn certificates_need_attention_from_a_month_before_their_end_the_first_to_end_first() {
        let end = |key, days: i64| (key, days * 24 * HOUR_MS);
        let all = [end("tls", 20), end("upstreams.v3.tls", 0), end("oauth.tls", 31)];
        check(
            &of_certificates(all, &context(None)),
            &[
                ("certificate-upstreams.v3.tls", &["presented to services, has ended"]),
                ("certificate-tls", &["presented to clients, ends in 19 d"]),
            ],
        );
    }

    #[test]
    fn replicas_that_stopped_or_serve_another_pack_are_named() {
        let replica = |name, presence, pack_hash| PeerReplica { name, presence, pack_hash };
        let away = |hours: i64| ReplicaPresence::Away((13 - hours) * HOUR_MS + 1);
        let all = [
            replica("a", ReplicaPresence::Here, "same"),
            replica("b", ReplicaPresence::Here, "other"),
            replica("c", away(1), "other"),
            replica("d", away(2), "same"),
            replica("e", ReplicaPresence::Left(0), "other"),
        ];
        check(
            &of_replicas(&all, "same", &context(None)),
            &[
                ("replica-c", &["The replica c stopped without leaving"]),
                ("packs", &["Replicas serve different packs: b has another one"]),
            ],
        );
        check(&of_replicas(&all[..1], "same", &context(None)), &[]);
    }

    #[test]
    fn open_brownouts_are_first_with_their_end() {
        let brownout = |id: &str, from: i64, until: i64, by: &str| Brownout {
            id: id.to_owned(),
            side: "v2".to_owned(),
            operations: Vec::new(),
            clients: vec!["acme".to_owned()],
            from_ms: from * HOUR_MS,
            until_ms: until * HOUR_MS,
            reason: String::new(),
            by: by.to_owned(),
        };
        let all = [
            brownout("over", 1, 13, "operator"),
            brownout("open", 12, 15, "operator"),
            brownout("set", 12, 16, "configuration"),
            brownout("later", 14, 15, "operator"),
        ];
        check(
            &of_brownouts(&all, &context(None)),
            &[
                (
                    "brownout-open",
                    &[
                        "all calls of acme on v2 are rejected with 503; it ends in 2 h",
                        "switchback brownout remove open",
                    ],
                ),
                ("brownout-set", &["it ends in 3 h"]),
            ],
        );
    }

    #[test]
    fn operations_need_attention_for_a_rollback_for_differences_and_when_they_can_be_moved_on() {
        let shown = || PhaseView { phase: "shadow", share: None };
        let info = |name: &str| PhaseInfo {
            side: "v2".to_owned(),
            operation: name.to_owned(),
            writes: false,
            now: shown(),
            from: "operator".to_owned(),
            since: None,
            configured: shown(),
            version: 1,
            held: None,
        };
        let summary = |name: &str, equal, different| Summary {
            operation: name.to_owned(),
            side: "v2".to_owned(),
            counts: Counts { equal, different, ..Counts::default() },
            ..Summary::default()
        };
        let summaries =
            [summary("GET /bad", 50, 50), summary("GET /good", 5_000, 0), summary("GET /few", 2, 0)];
        let reports = report(&summaries, Threshold::default()).operations;
        let transitions = [("GET /back", "gate"), ("GET /few", "operator")].map(|(name, by)| Transition {
            at: NOON.to_owned(),
            side: "v2".to_owned(),
            operation: name.to_owned(),
            from: "canary".to_owned(),
            to: "shadow".to_owned(),
            by: by.to_owned(),
            who: String::new(),
            evidence: "rolled back: 5 of 10 differ".to_owned(),
        });
        let phases = ["GET /back", "GET /bad", "GET /good", "GET /few"].map(info);
        check(
            &of_operations(&phases, &reports, &transitions, &[]),
            &[
                ("back-v2-GET /back", &["was rolled back 1 h ago: rolled back: 5 of 10 differ"]),
                ("above-v2-GET /bad", &["differs too much: 50 of 100 answers"]),
                (
                    "ready-v2-GET /good",
                    &[
                        "can be moved on: at most 0.06 %",
                        "95.0 % sure",
                        "switchback phase set 'GET /good' --side v2 canary --share 0.05",
                    ],
                ),
            ],
        );
    }

    #[test]
    fn operations_need_attention_for_a_rollout_that_only_an_operator_continues() {
        let info = |name: &str| PhaseInfo {
            side: "v2".to_owned(),
            operation: name.to_owned(),
            writes: false,
            now: PhaseView { phase: "shadow", share: None },
            from: "operator".to_owned(),
            since: None,
            configured: PhaseView { phase: "legacy", share: None },
            version: 1,
            held: None,
        };
        let plan =
            RolloutPlan { steps: vec![RolloutStep { phase: Phase::Shadow, period: None }], window: None };
        let rollout = |state, plan: Option<&RolloutPlan>, reason: &str| RolloutView {
            name: "careful".to_owned(),
            plan: plan.cloned(),
            state,
            step: Some(0),
            phase: Phase::Shadow,
            in_step_ms: 0,
            waits: Vec::new(),
            who: "Ada".to_owned(),
            reason: reason.to_owned(),
            started_ms: 0,
            updated_ms: 12 * HOUR_MS,
        };
        let all = [
            ("GET /paused", rollout(RolloutState::Paused, Some(&plan), "a holiday")),
            ("GET /running", rollout(RolloutState::Running, Some(&plan), "")),
            ("GET /planless", rollout(RolloutState::Running, None, "")),
            ("GET /over", rollout(RolloutState::Completed, None, "")),
            ("GET /aborted", rollout(RolloutState::Aborted, Some(&plan), "a mistake")),
        ];
        let phases: Vec<PhaseInfo> = all.iter().map(|(name, _)| info(name)).collect();
        let rollouts: Vec<RolloutOf<'_>> = all.iter().map(|(name, one)| ("v2", *name, one)).collect();
        check(
            &of_operations(&phases, &[], &[], &rollouts),
            &[
                (
                    "rollout-v2-GET /paused",
                    &[
                        "has a paused rollout, careful, by Ada 1 h ago: a holiday",
                        "switchback rollout status 'v2 GET /paused'",
                    ],
                ),
                (
                    "rollout-v2-GET /planless",
                    &["has a rollout without a plan: the configuration no longer has careful."],
                ),
            ],
        );
        let elsewhere = [("v3", "GET /paused", &all[0].1)];
        check(&of_operations(&phases, &[], &[], &elsewhere), &[]);
    }

    #[test]
    fn unknown_calls_are_one_item_with_their_sum() {
        let call = |at: usize| UnknownCall {
            side: "v2".to_owned(),
            method: "GET",
            path: format!("/v2/c{at}"),
            client: String::new(),
            unknown: "path",
            count: 2,
            first: NOON.to_owned(),
            last: NOON.to_owned(),
        };
        let all: Vec<UnknownCall> = (0..23).map(call).collect();
        check(
            &of_unknown_calls(&all, &context(Some("pod-1"))),
            &[(
                "unknown",
                &["46 calls on pod-1 from unknown clients", "newest 23 kinds", "switchback unknown"],
            )],
        );
        check(&of_unknown_calls(&[], &context(None)), &[]);
    }
}
