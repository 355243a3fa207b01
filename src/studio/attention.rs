//! The list of conditions that need an operator, for the overview. Each row states the problem,
//! since when, and links to its remedy.
//!
//! Rows are functions of plain values, so that each has a test; the page decides which data it
//! reads for them. The empty list names all checks, so a new kind of row also needs an entry in
//! [`CHECKED`].

use super::clients::{credential_trouble, reason_words};
use super::fields::percent_encode;
use super::operations::{address, next_phase};
use super::replicas::{Replica, ReplicaPresence};
use super::words::{count, count_noun, moment, moment_text, names_or, operation, percent, unix_ms};
use crate::admin::{CertificateEnd, PackStatus};
use maud::{Markup, html};
use switchback_engine::diff::{OperationReport, Proof};
use switchback_gateway::proxy::unknown_calls::UnknownCall;
use switchback_gateway::retire::Brownout;
use switchback_gateway::shadow::{PhaseInfo, Transition};
use switchback_gateway::store::{EventCount, GrantState};
use switchback_gateway::token::ClientInfo;

/// Names all checks, for the empty list.
pub(super) const CHECKED: &str = "Checked: brownouts, the store, replicas, reloads, pending restarts, certificates, operations, \
                                  grants, credentials, client records, events and unknown calls.";

/// Most rows of one kind.
const LISTED_MAX: usize = 5;
/// Most unknown calls in their table.
const UNKNOWN_MAX: usize = 20;
/// Remaining lifetime below which a certificate is listed.
const CERTIFICATE_NEAR_MS: i64 = 30 * 24 * 3_600_000;
/// Time for which a replica that stopped without leaving is listed. Its successor has started by
/// then.
const AWAY_MS: i64 = 3_600_000;
/// Time since the expiry of an access token before it is listed: a refresh may be running.
const TOKEN_LATE_MS: i64 = 60_000;

/// The viewer and the context of the page.
pub(super) struct AttentionContext {
    pub(super) now_ms: i64,
    pub(super) may_operate: bool,
    /// The hidden field of every form.
    pub(super) form_token: Markup,
    pub(super) is_store_away: bool,
    /// The name of this replica if there are several, since some rows apply to it alone.
    pub(super) replica: Option<String>,
}

impl AttentionContext {
    /// Renders `on NAME` if there are several replicas.
    fn on_replica(&self) -> Markup {
        html! { @if let Some(name) = &self.replica { " on " (name) } }
    }
}

/// Renders open brownouts: the rejected calls, the end, and a button to end them.
pub(super) fn of_brownouts(all: &[Brownout], reader: &AttentionContext) -> Vec<Markup> {
    // A planned brownout needs no attention before its start.
    let open = all.iter().filter(|one| one.from_ms <= reader.now_ms && reader.now_ms < one.until_ms);
    open.map(|one| {
        html! { li id={ "todo-brownout-" (one.id) } {
            div.what { p {
                strong { "A brownout is open" } ": " (names_or(&one.operations, "all calls")) " of " (names_or(&one.clients, "all clients"))
                " on " (one.side) " are rejected with 503; it ends " (moment(one.until_ms, reader.now_ms)) "."
            } }
            @if one.by == "configuration" {
                span.soft { "set in the configuration" }
            } @else if reader.may_operate {
                form method="post" action={ "/clients/brownouts/" (percent_encode(&one.id)) "/remove" } {
                    (reader.form_token)
                    input type="hidden" name="to" value="/";
                    input type="hidden" name="seen" value="";
                    fieldset.bare disabled[reader.is_store_away] { button.small type="submit" { "End" } }
                }
            } @else {
                a.button.small href="/clients#brownouts" { "Brownouts" }
            }
        } }
    })
    .collect()
}

pub(super) fn of_the_store(away_since: Option<i64>, reader: &AttentionContext) -> Vec<Markup> {
    let away = away_since.map(|since| {
        html! { li #todo-store { div.what { p {
            strong { "The store stopped answering" } " " (moment(since, reader.now_ms)) ". Calls are answered, grants are refreshed in memory; nothing can be changed."
        } } } }
    });
    away.into_iter().collect()
}

/// Renders replicas that stopped without leaving or serve another pack.
pub(super) fn of_replicas(others: &[Replica], own_hash: &str, reader: &AttentionContext) -> Vec<Markup> {
    let mut waiting = Vec::new();
    for one in others {
        let ReplicaPresence::Away(since) = one.presence else { continue };
        if reader.now_ms - since < AWAY_MS {
            waiting.push(html! { li id={ "todo-replica-" (one.name) } { div.what { p {
                "The replica " strong { (one.name) } " " strong { "stopped without leaving" } "; its last message came " (moment(since, reader.now_ms)) ". Traffic that it reported until then is in the charts."
            } } } });
        }
    }
    let differing: Vec<&str> = others
        .iter()
        // A replica that is away cannot be reloaded, and is listed above.
        .filter(|one| one.presence == ReplicaPresence::Here && one.standing.pack_hash != own_hash)
        .map(|one| one.name.as_str())
        .collect();
    if !differing.is_empty() {
        waiting.push(html! { li #todo-packs { div.what { p {
            strong { "Replicas serve different packs" } ": " (differing.join("; ")) " " @if differing.len() == 1 { "has" } @else { "have" } " another one than this replica. If a reload failed on one of them, its log says why."
        } } } });
    }
    waiting
}

/// Renders conditions of the process: shutdown, and grants with unstored tokens.
pub(super) fn of_the_process(is_leaving: bool, unpersisted: usize, reader: &AttentionContext) -> Vec<Markup> {
    let mut waiting = Vec::new();
    if is_leaving {
        waiting.push(html! { li #todo-leaving { div.what { p {
            strong { "The gateway" (reader.on_replica()) " is about to stop" } ": it reports not ready and closes connections as they become idle."
        } } } });
    }
    if unpersisted > 0 {
        waiting.push(html! { li #todo-unpersisted { div.what { p {
            strong { (count_noun(unpersisted as u64, "grant")) (reader.on_replica()) } " " @if unpersisted == 1 { "has its" } @else { "have their" } " newest tokens in memory only: a restart before the store answers loses them."
        } } } });
    }
    waiting
}

/// Renders a failed reload and pending restarts. `pack_seen` is the state that the reload form was
/// rendered from.
pub(super) fn of_the_pack(pack: &PackStatus, pack_seen: &str, reader: &AttentionContext) -> Vec<Markup> {
    let mut waiting = Vec::new();
    let Some(reload) = &pack.last_reload else { return waiting };
    if reload.error.is_some() {
        waiting.push(html! {
            li #todo-reload {
                div.what { p { strong { "The last reload failed" } (reader.on_replica()) " " (moment_text(&reload.at, reader.now_ms)) "; the pack and configuration from before it go on serving." } }
                a.button.small href="/pack?show=reload" { "Errors" }
                @if reader.may_operate {
                    form method="post" action="/reload" { (reader.form_token) input type="hidden" name="seen" value=(pack_seen); button.small type="submit" { "Reload again" } }
                }
            }
        });
    }
    if !reload.needs_restart.is_empty() {
        waiting.push(html! {
            li #todo-restart { div.what { p {
                strong { "A restart is pending" } (reader.on_replica()) ": changes of " code { (reload.needs_restart.join(", ")) } " need one."
            } } }
        });
    }
    waiting
}

/// Renders certificates that have expired or expire soon.
pub(super) fn of_certificates(certificates: &[CertificateEnd], reader: &AttentionContext) -> Vec<Markup> {
    let now_ms = reader.now_ms;
    let mut near: Vec<&CertificateEnd> =
        certificates.iter().filter(|one| one.ends_ms - now_ms < CERTIFICATE_NEAR_MS).collect();
    // The certificate with the earliest end is the most urgent.
    near.sort_by_key(|one| one.ends_ms);
    near.iter()
        .map(|one| {
            let use_of = if one.key == "tls" { "presented to clients" } else { "presented to services" };
            let (is_over, key) = (one.ends_ms <= now_ms, one.key.as_str());
            html! { li id={ "todo-certificate-" (key) } { div.what { p {
                "The certificate of " code { (key) } (reader.on_replica()) ", " (use_of) ", "
                strong { @if is_over { "has ended" } @else { "ends" } } " " (moment(one.ends_ms, now_ms)) "."
                @if is_over { " Connections with it fail." }
                " Replace its file; a reload applies it."
            } } } }
        })
        .collect()
}

/// Renders operations that were rolled back, exceed the threshold, or can be promoted.
pub(super) fn of_operations(
    phases: &[PhaseInfo],
    reports: &[OperationReport],
    transitions: &[Transition],
    reader: &AttentionContext,
) -> Vec<Markup> {
    let mut waiting = Vec::new();
    let mut ready = Vec::new();
    for info in phases {
        let at = || format!("{}-{}", info.side, percent_encode(&info.operation));
        let last = transitions.iter().find(|one| one.side == info.side && one.operation == info.operation);
        // Only rollbacks by the gate: those of operators need no attention.
        let is_back = |one: &&Transition| {
            one.by == "gate" && one.to == "shadow" && one.evidence.starts_with("rolled back")
        };
        if let Some(back) = last.filter(is_back) {
            waiting.push(html! { li id={ "todo-back-" (at()) } {
                div.what { p { (operation(&info.operation)) " " strong { "was rolled back" } " " (moment_text(&back.at, reader.now_ms)) ": " (back.evidence) } }
                a.button.small href=(address(&info.side, &info.operation)) { "Look at it" }
            } });
        }
        let report =
            reports.iter().find(|report| report.side == info.side && report.operation == info.operation);
        match report {
            Some(report) if report.proof == Proof::Above => waiting.push(html! { li id={ "todo-above-" (at()) } {
                div.what { p { (operation(&info.operation)) " " strong { "differs too much" } ": " (count(report.counts.different)) " of " (count(report.counts.compared_count())) " answers. " (report.next) } }
                a.button.small href={ "/differences/" (percent_encode(&info.side)) "/" (percent_encode(&info.operation)) } { "See the differences" }
            } }),
            Some(report) if report.proof == Proof::Within => {
                // An operation in the last phase has no next one, so its proof needs no action.
                let Some((next, share)) = next_phase(&info.now) else { continue };
                ready.push(html! { li id={ "todo-ready-" (at()) } {
                    div.what { p { (operation(&info.operation)) " " strong { "can be moved on" } ": at most " (percent(report.mismatch_bound)) " of its answers differ (" (percent(report.threshold.confidence)) " sure)." } }
                    @if reader.may_operate {
                        a.button.small.primary href={ (address(&info.side, &info.operation)) "/move?phase=" (next) "&share=" (share) } { "Move to " (next) }
                    } @else {
                        a.button.small href=(address(&info.side, &info.operation)) { "Look at it" }
                    }
                } });
            }
            _ => {}
        }
    }
    let more = waiting.len().saturating_sub(LISTED_MAX * 2) + ready.len().saturating_sub(LISTED_MAX);
    // Problems get more rows than promotions, which can wait.
    waiting.truncate(LISTED_MAX * 2);
    ready.truncate(LISTED_MAX);
    waiting.extend(ready);
    if more > 0 {
        waiting.push(html! { li #todo-operations-more { div.what { p { (count_noun(more as u64, "further row")) " about operations." } } a.button.small href="/operations?sort=differences" { "Operations" } } });
    }
    waiting
}

/// Renders clients with failing calls, or soon failing ones, and clients that have left the
/// configuration.
pub(super) fn of_clients(clients: &[ClientInfo], reader: &AttentionContext) -> Vec<Markup> {
    // A revoked client has no grant to repair.
    let living = clients.iter().filter(|client| client.revoked_at.is_none());
    let mut rows: Vec<Markup> = living.flat_map(|client| of_client(client, reader)).collect();
    let more = rows.len().saturating_sub(LISTED_MAX);
    rows.truncate(LISTED_MAX);
    if more > 0 {
        rows.push(html! { li #todo-clients-more { div.what { p { (count_noun(more as u64, "further row")) " about clients." } } a.button.small href="/clients" { "All clients" } } });
    }
    rows
}

fn of_client(client: &ClientInfo, reader: &AttentionContext) -> Vec<Markup> {
    let row = |kind: &str, words: Markup, button: &str| {
        html! { li id={ "todo-" (kind) "-" (client.name) } {
            div.what { p { (words) } }
            a.button.small href={ "/clients/" (percent_encode(&client.name)) } { (button) }
        } }
    };
    let mut rows = Vec::new();
    if client.damaged {
        rows.push(row(
            "damaged",
            html! { "The record of " strong { (client.name) } " " strong { "was changed outside Switchback" } ": no token selects this client." },
            "Look at it",
        ));
    }
    if client.left_configuration {
        rows.push(row(
            "left",
            html! { strong { (client.name) } " " strong { "is no longer in the configuration" } ", and its tokens still select it until it is revoked." },
            "Look at it",
        ));
    }
    let grant = &client.grant;
    // A client with fixed credentials makes its calls without a grant.
    let is_unused = grant.state == GrantState::Unconnected && !client.credentials.is_empty();
    if grant.state != GrantState::Active && !is_unused {
        // A misconfiguration is for the operator, not the owner.
        let is_owners = grant.state != GrantState::Misconfigured;
        rows.push(row(
            "client",
            html! {
                "The grant of " strong { (client.name) } " " strong { (state_words(grant.state)) }
                @if let Some(reason) = &grant.reason { ": " (reason_words(reason, grant.state)) }
                "."
            },
            if is_owners { "Send its owner a link" } else { "Look at it" },
        ));
    }
    let ended = grant.expires_at.as_deref().and_then(unix_ms);
    // Refreshes take a moment. Only a token that is overdue indicates that refreshing does not work.
    let ended = ended.filter(|end| reader.now_ms - end > TOKEN_LATE_MS && grant.state == GrantState::Active);
    if let Some(end) = ended {
        rows.push(row(
            "token",
            html! { "The access token of " strong { (client.name) } " " strong { "ended" } " " (moment(end, reader.now_ms)) " and was not renewed; the log says why." },
            "Look at it",
        ));
    }
    for credential in &client.credentials {
        if let Some(words) = credential_trouble(credential, reader.now_ms) {
            rows.push(row(
                &format!("credential-{}", credential.side),
                html! { "The credential of " strong { (client.name) } " for " (credential.side) " " (words) ": set another with " code { "switchback client credential" } "." },
                "Look at it",
            ));
        }
    }
    rows
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

/// Renders receivers with dead events.
pub(super) fn of_events(counts: &[EventCount]) -> Vec<Markup> {
    let dead = counts.iter().filter(|one| one.dead > 0);
    dead.map(|one| {
        let is_one = one.dead == 1;
        html! { li id={ "todo-events-" (one.receiver) } { div.what { p {
            strong { (count_noun(one.dead.unsigned_abs(), "event")) " for " (one.receiver) } " " @if is_one { "is a dead letter" } @else { "are dead letters" } ": no further delivery is tried. "
            code { "switchback events" } " lists, retries and drops " @if is_one { "it" } @else { "them" } "."
        } } } }
    })
    .collect()
}

/// Renders the newest calls to unknown operations and by unknown clients.
pub(super) fn of_unknown_calls(unknown: &[UnknownCall], reader: &AttentionContext) -> Vec<Markup> {
    if unknown.is_empty() {
        return Vec::new();
    }
    let calls: u64 = unknown.iter().map(|call| call.count).sum();
    let more = unknown.len().saturating_sub(UNKNOWN_MAX);
    vec![html! { li #todo-unknown {
        div.what {
            details {
                summary { strong { (count_noun(calls, "call")) } (reader.on_replica()) " from unknown clients or to something that no contract has, by the newest " (count_noun(unknown.len() as u64, "kind")) }
                div.scroll role="region" aria-label="Unknown calls" tabindex="0" { table {
                    thead { tr { th { "Call" } th { "Unknown" } th { "Client" } th.n { "Calls" } th { "Last" } } }
                    tbody { @for call in unknown.iter().take(UNKNOWN_MAX) {
                        tr {
                            td { (operation(&format!("{} {}", call.method, call.path))) } td { (call.unknown.replace('_', " ")) }
                            td { @if call.client.is_empty() { span.soft { "not enrolled" } } @else { (call.client) } }
                            td.n { (count(call.count)) } td { (moment_text(&call.last, reader.now_ms)) }
                        }
                    } }
                } }
                @if more > 0 { p.soft #unknown-more { (count_noun(more as u64, "further kind")) "; " code { "switchback unknown" } " lists them." } }
            }
        }
    } }]
}

/// Renders which data the store did not return in time, since the list may lack rows.
pub(super) fn of_unread(lacking: &[&str]) -> Markup {
    html! {
        @if !lacking.is_empty() {
            p.soft #todo-unread { "Unknown while the store is unavailable: " (lacking.join(", ")) ". The list may lack rows about them, or have old ones." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::ReloadOutcome;
    use crate::studio::clients::status::tests::client as unconnected;
    use crate::studio::replicas::ReplicaStatus;
    use switchback_engine::diff::{Counts, Summary, Threshold, report};
    use switchback_gateway::shadow::PhaseView;
    use switchback_gateway::token::{CredentialInfo, CredentialState};

    const HOUR_MS: i64 = 3_600_000;
    const NOON: &str = "1970-01-01T12:00:00Z";

    /// Returns an operator's view at 13:00 of the first day.
    fn reader(replica: Option<&str>) -> AttentionContext {
        AttentionContext {
            now_ms: 13 * HOUR_MS,
            may_operate: true,
            form_token: html! {},
            is_store_away: false,
            replica: replica.map(str::to_owned),
        }
    }

    /// Returns the ids of rows and their text without tags.
    fn texts(rows: &[Markup]) -> Vec<(String, String)> {
        let text = |markup: &str| {
            let pieces = markup.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
            pieces.collect::<String>()
        };
        let id = |markup: &str| markup.split('"').nth(1).unwrap_or_default().to_owned();
        rows.iter().map(|row| (id(&row.0), text(&row.0))).collect()
    }

    #[track_caller]
    fn check(rows: &[Markup], expected: &[(&str, &[&str])]) {
        let found = texts(rows);
        let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, expected.iter().map(|(id, _)| *id).collect::<Vec<_>>(), "{found:?}");
        for ((_, text), (id, parts)) in found.iter().zip(expected) {
            for part in *parts {
                assert!(text.contains(part), "{id} lacks {part:?}: {text}");
            }
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
            &of_clients(&all, &reader(None)),
            &[
                ("todo-damaged-damaged", &["was changed outside Switchback"]),
                ("todo-left-gone", &["is no longer in the configuration"]),
                ("todo-credential-v2-refused", &["for v2 is rejected by the service since 1 h ago"]),
                ("todo-credential-v2-copied", &["does not open"]),
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
            &of_clients(&all, &reader(None)),
            &[
                ("todo-client-never", &["is not connected.", "Send its owner a link"]),
                (
                    "todo-client-over",
                    &["must be connected again: its owner ended the authorization", "Send its"],
                ),
                ("todo-client-wrong", &["is misconfigured: ", "Look at it"]),
                ("todo-token-late", &["ended 1 h ago and was not renewed"]),
            ],
        );
    }

    #[test]
    fn more_clients_than_are_listed_are_counted() {
        let all: Vec<ClientInfo> =
            (0..8).map(|at| ClientInfo { damaged: true, ..client(&format!("c{at}")) }).collect();
        let rows = of_clients(&all, &reader(None));
        assert_eq!(rows.len(), LISTED_MAX + 1);
        check(&rows[LISTED_MAX..], &[("todo-clients-more", &["3 further rows about clients"])]);
    }

    #[test]
    fn dead_events_are_counted_by_receiver() {
        let of = |receiver: &str, dead| EventCount { receiver: receiver.to_owned(), pending: 3, dead };
        check(
            &of_events(&[of("crm", 2), of("well", 0), of("shop", 1)]),
            &[
                ("todo-events-crm", &["2 events for crm are dead letters"]),
                ("todo-events-shop", &["1 event for shop is a dead letter"]),
            ],
        );
    }

    #[test]
    fn facts_of_one_replica_name_it_where_there_are_several() {
        let pack = |error: Option<&str>| PackStatus {
            name: "p".to_owned(),
            source: "folder".to_owned(),
            hash: "00".to_owned(),
            loaded_at: NOON.to_owned(),
            generation: 1,
            last_reload: Some(ReloadOutcome {
                succeeded: error.is_none(),
                at: NOON.to_owned(),
                error: error.map(str::to_owned),
                needs_restart: vec!["listen".to_owned()],
            }),
        };
        let certificates = [CertificateEnd { key: "tls".to_owned(), ends_ms: 14 * HOUR_MS }];
        let rows = |reader: &AttentionContext| {
            let mut rows = of_the_process(true, 1, reader);
            rows.extend(of_the_pack(&pack(Some("wrong")), "", reader));
            rows.extend(of_certificates(&certificates, reader));
            rows
        };
        check(
            &rows(&reader(Some("pod-1"))),
            &[
                ("todo-leaving", &["The gateway on pod-1 is about to stop"]),
                ("todo-unpersisted", &["1 grant on pod-1 has its newest tokens in memory only"]),
                ("todo-reload", &["The last reload failed on pod-1 1 h ago"]),
                ("todo-restart", &["A restart is pending on pod-1: changes of listen need one."]),
                (
                    "todo-certificate-tls",
                    &["The certificate of tls on pod-1, presented to clients, ends in 1 h"],
                ),
            ],
        );
        check(
            &of_the_pack(&pack(None), "", &reader(None)),
            &[("todo-restart", &["A restart is pending: changes of listen need one."])],
        );
        check(&of_the_process(false, 0, &reader(None)), &[]);
    }

    #[test]
    fn certificates_need_attention_from_a_month_before_their_end_the_first_to_end_first() {
        let end = |key: &str, days: i64| CertificateEnd { key: key.to_owned(), ends_ms: days * 24 * HOUR_MS };
        let all = [end("tls", 20), end("upstreams.v3.tls", 0), end("oauth.tls", 31)];
        check(
            &of_certificates(&all, &reader(None)),
            &[
                ("todo-certificate-upstreams.v3.tls", &["presented to services, has ended"]),
                ("todo-certificate-tls", &["presented to clients, ends in 19 d"]),
            ],
        );
    }

    #[test]
    fn replicas_that_stopped_or_serve_another_pack_are_named() {
        let replica = |name: &str, presence, hash: &str| Replica {
            name: name.to_owned(),
            presence,
            standing: ReplicaStatus { pack_hash: hash.to_owned(), ..ReplicaStatus::default() },
        };
        let away = |hours: i64| ReplicaPresence::Away((13 - hours) * HOUR_MS + 1);
        let all = [
            replica("a", ReplicaPresence::Here, "same"),
            replica("b", ReplicaPresence::Here, "other"),
            replica("c", away(1), "other"),
            replica("d", away(2), "same"),
            replica("e", ReplicaPresence::Left(0), "other"),
        ];
        check(
            &of_replicas(&all, "same", &reader(None)),
            &[
                ("todo-replica-c", &["The replica c stopped without leaving"]),
                ("todo-packs", &["Replicas serve different packs: b has another one"]),
            ],
        );
        check(&of_replicas(&all[..1], "same", &reader(None)), &[]);
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
            &of_brownouts(&all, &reader(None)),
            &[
                (
                    "todo-brownout-open",
                    &["all calls of acme on v2 are rejected with 503; it ends in 2 h", "End"],
                ),
                ("todo-brownout-set", &["it ends in 3 h", "set in the configuration"]),
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
            &of_operations(&phases, &reports, &transitions, &reader(None)),
            &[
                ("todo-back-v2-GET%20%2Fback", &["was rolled back 1 h ago: rolled back: 5 of 10 differ"]),
                ("todo-above-v2-GET%20%2Fbad", &["differs too much: 50 of 100 answers"]),
                (
                    "todo-ready-v2-GET%20%2Fgood",
                    &["can be moved on: at most 0.06 %", "95.0 % sure", "Move to canary"],
                ),
            ],
        );
    }

    #[test]
    fn unknown_calls_that_are_not_listed_are_counted() {
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
            &of_unknown_calls(&all, &reader(Some("pod-1"))),
            &[(
                "todo-unknown",
                &["46 calls on pod-1 from unknown clients", "newest 23 kinds", "3 further kinds"],
            )],
        );
        let rows = of_unknown_calls(&all[..1], &reader(None));
        assert!(!rows[0].0.contains("further"), "{}", rows[0].0);
        check(&of_unknown_calls(&[], &reader(None)), &[]);
    }
}
