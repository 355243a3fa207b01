//! `GET /api/attention` and `GET /api/status`: one page of facts about the running gateway, for
//! `switchback status` and other programs. The figures are those of the studio's pages.

use super::attention::{self, AttentionList};
use super::replicas::{Replica, ReplicaPresence, ReplicaStatus};
use super::traffic::{ChartSpan, errors_of, requests_of};
use super::{PageContext, Studio};
use crate::admin::{AdminResponse, Role, Visitor};
use crate::operate;
use http::{StatusCode, request};
use serde_json::{Map, Value, json};
use std::time::Duration;
use switchback_engine::diff::Counts;
use switchback_gateway::clock::rfc3339;
use switchback_gateway::outcome::OUTCOMES;
use switchback_gateway::retire::Brownout;
use switchback_gateway::shadow::{PHASES, PhaseInfo};
use switchback_gateway::store::GrantState;
use switchback_gateway::telemetry::metrics::{LIMITED, SHADOW_DROPPED, SHADOW_UNRECORDED, SHADOW_WAITING};
use switchback_gateway::token::ClientInfo;

/// Time limit of a read of the store. A program waits longer than a person at a page.
const PATIENCE: Duration = Duration::from_secs(5);
/// Metrics of queues and of requests beyond a limit.
const QUEUE_NAMES: [&str; 4] = [SHADOW_WAITING, SHADOW_DROPPED, SHADOW_UNRECORDED, LIMITED];

/// Responds to a request of the API that reads the data of several pages.
pub(super) async fn answer(studio: &Studio, head: &request::Parts) -> AdminResponse {
    let path = head.uri.path();
    let visitor = Visitor { role: Role::Read, session: None };
    let visit = studio.visit_for(PATIENCE, visitor, &head.headers, &head.uri, path).await;
    let list = attention::gather(&visit).await;
    let value = match path {
        "/api/attention" => attention_json(&list, &visit),
        _ => status(&visit, &list).await,
    };
    AdminResponse::json(StatusCode::OK, &value)
}

fn attention_json(list: &AttentionList, visit: &PageContext<'_>) -> Value {
    json!({
        "at": rfc3339(visit.now_ms),
        "items": attention::to_json(&list.items, visit.now_ms),
        "unread": list.unread,
    })
}

async fn status(visit: &PageContext<'_>, list: &AttentionList) -> Value {
    let (parts, board) = (visit.parts, visit.parts.board.load());
    let own = visit.studio.replicas.own(parts, &visit.studio.traffic);
    let phases = parts.phases.list();
    let [waiting, dropped, unrecorded, limited] = parts.metrics.sums(QUEUE_NAMES);
    let events = visit.events().await;
    let (pending, dead) =
        events.rows().iter().fold((0, 0), |(pending, dead), one| (pending + one.pending, dead + one.dead));
    let unknown = parts.unknown.newest();
    let health = parts.tokens.health();
    let is_ready = !parts.drain.is_leaving();
    json!({
        "at": rfc3339(visit.now_ms),
        "version": own.version,
        "replica": visit.studio.replicas.name(),
        "started": rfc3339(own.started_ms),
        "ready": is_ready,
        "store": {
            "answers": visit.store_away.is_none() && health.store,
            "away_since": visit.store_away.map(rfc3339),
            "grants_in_memory_only": health.unpersisted,
        },
        "pack": board.pack,
        "replicas": replicas(visit, &own),
        "traffic": traffic(visit, &own),
        "phases": phase_counts(&phases),
        "held_back": held_back(visit, &phases).await,
        "evidence": evidence(visit).await,
        "grants": grants(visit.clients().await.rows()),
        "brownouts": brownouts(visit),
        "sunsets": sunsets(visit, &board.config),
        "unknown_calls": {
            "calls": unknown.iter().map(|call| call.count).sum::<u64>(),
            "kinds": unknown.len(),
        },
        "queues": {
            "comparisons_waiting": waiting,
            "comparisons_dropped": dropped,
            "comparisons_not_recorded": unrecorded,
            "requests_over_a_limit": limited,
            "events_pending": pending,
            "events_dead": dead,
        },
        "attention": attention::to_json(&list.items, visit.now_ms),
        "unread": list.unread,
    })
}

fn replicas(visit: &PageContext<'_>, own: &ReplicaStatus) -> Value {
    let row = |name: &str, state: &str, since_ms: Option<i64>, status: &ReplicaStatus| {
        let rates = status.rates().filter(|_| matches!(state, "this" | "present"));
        json!({
            "name": name,
            "state": state,
            "since": since_ms.map(rfc3339),
            "version": status.version,
            "pack": status.pack,
            "pack_hash": status.pack_hash,
            "started": rfc3339(status.started_ms),
            "requests_per_second": rates.map(|(requests, _)| requests),
            "errors_per_second": rates.map(|(_, errors)| errors),
        })
    };
    let other = |one: &Replica| {
        let (state, since_ms) = match one.presence {
            ReplicaPresence::Here => ("present", None),
            ReplicaPresence::Left(at_ms) => ("left", Some(at_ms)),
            ReplicaPresence::Away(since_ms) => ("away", Some(since_ms)),
            ReplicaPresence::Unknown(since_ms) => ("unknown", Some(since_ms)),
        };
        row(&one.name, state, since_ms, &one.standing)
    };
    let mut rows = vec![row(visit.studio.replicas.name(), "this", None, own)];
    rows.extend(visit.studio.replicas.others(visit.now_ms).iter().map(other));
    rows.into()
}

/// The requests of the last hour, over all replicas.
fn traffic(visit: &PageContext<'_>, own: &ReplicaStatus) -> Value {
    let total = visit.studio.traffic.total(ChartSpan::Hour);
    let since_ms = visit.studio.traffic.known_since(ChartSpan::Hour, visit.now_ms);
    let quantile = |share| total.durations.quantile(share).map(|quantile| quantile.seconds());
    let outcomes = OUTCOMES.iter().zip(total.outcomes).filter(|(_, requests)| *requests > 0);
    let outcomes: Map<String, Value> =
        outcomes.map(|(outcome, requests)| (outcome.as_str().to_owned(), requests.into())).collect();
    json!({
        "seconds": 3600,
        "known_since": since_ms.map(rfc3339),
        "requests": requests_of(&total.outcomes),
        "failed": errors_of(&total.outcomes),
        "outcomes": outcomes,
        "median_seconds": quantile(0.5),
        "p99_seconds": quantile(0.99),
        "in_flight": own.in_flight,
        "connections": own.connections,
    })
}

fn phase_counts(phases: &[PhaseInfo]) -> Value {
    let count = |phase: &str| phases.iter().filter(|info| info.now.phase == phase).count();
    PHASES.iter().map(|phase| ((*phase).to_owned(), Value::from(count(phase)))).collect::<Map<_, _>>().into()
}

/// Operations that automatic promotion does not move: paused by an operator, or without enough
/// evidence yet.
async fn held_back(visit: &PageContext<'_>, phases: &[PhaseInfo]) -> Value {
    let gates = visit.gates().await;
    let row = |info: &PhaseInfo| {
        let held = info.held.as_ref().map(|held| {
            let who = if held.who.is_empty() { String::new() } else { format!(" by {}", held.who) };
            let reason = if held.reason.is_empty() { String::new() } else { format!(": {}", held.reason) };
            format!("automatic promotion is paused{who}{reason}")
        });
        let gate = gates.rows().iter().find(|one| one.side == info.side && one.operation == info.operation);
        let gate = gate.map(|gate| match &gate.rollout {
            Some(rollout) => operate::rollout_line(rollout),
            None => gate.decision.to_string(),
        });
        let why = held.or(gate)?;
        Some(json!({
            "side": info.side,
            "operation": info.operation,
            "phase": info.now.phase,
            "why": why,
            "since": info.held.as_ref().map(|held| &held.since).or(info.since.as_ref()),
        }))
    };
    let is_last = |info: &&PhaseInfo| info.now.phase == PHASES[PHASES.len() - 1] && info.held.is_none();
    phases.iter().filter(|info| !is_last(info)).filter_map(row).collect()
}

/// The comparisons of the current periods.
async fn evidence(visit: &PageContext<'_>) -> Value {
    let summaries = visit.current_summaries().await;
    let rows = summaries.rows();
    let sum = |of: fn(&Counts) -> u64| rows.iter().map(|one| of(&one.counts)).sum::<u64>();
    json!({
        "operations": rows.len(),
        "compared": sum(|counts| counts.compared_count()),
        "different": sum(|counts| counts.different),
        "unsettled": sum(|counts| counts.unsettled),
        "not_compared": sum(|counts| counts.dropped),
    })
}

fn grants(clients: &[ClientInfo]) -> Value {
    let living: Vec<&ClientInfo> = clients.iter().filter(|client| client.revoked_at.is_none()).collect();
    let count = |is: &dyn Fn(&ClientInfo) -> bool| living.iter().filter(|client| is(client)).count();
    let of = |state: GrantState| count(&|client| client.grant.state == state);
    let ending = living.iter().filter_map(|client| {
        let why = client.grant.warning.filter(|_| client.grant.state == GrantState::Active)?;
        Some(json!({ "client": client.name, "access_token_ends": client.grant.expires_at, "why": why }))
    });
    json!({
        "clients": living.len(),
        "connected": of(GrantState::Active),
        "ended": of(GrantState::NeedsReconnect),
        "pending": of(GrantState::Pending),
        "misconfigured": of(GrantState::Misconfigured),
        "not_connected": count(&|client| {
            client.grant.state == GrantState::Unconnected && client.credentials.is_empty()
        }),
        "fixed_credentials": count(&|client| !client.credentials.is_empty()),
        "ending": ending.collect::<Value>(),
    })
}

/// Open windows, and the next one to open.
fn brownouts(visit: &PageContext<'_>) -> Value {
    let all = visit.parts.retirement.brownouts();
    let is = |state| move |one: &&Brownout| one.state(visit.now_ms) == state;
    // Sorted by their start.
    json!({ "open": all.iter().filter(is("open")).collect::<Vec<_>>(), "next": all.iter().find(is("planned")) })
}

/// The announced ends of sides, and the ends of sides for single clients.
fn sunsets(visit: &PageContext<'_>, config: &Value) -> Value {
    let announced = config["sunset"].as_object().into_iter().flatten();
    let announced = announced.filter(|(_, sunset)| !sunset["sunset"].is_null());
    let mut rows: Vec<Value> = announced
        .map(|(side, sunset)| json!({ "side": side, "client": null, "at": sunset["sunset"] }))
        .collect();
    let clients = visit.parts.retirement.sunsets();
    rows.extend(clients.iter().filter_map(|one| {
        Some(json!({ "side": one.side, "client": one.client, "at": rfc3339(one.at_ms?) }))
    }));
    rows.into()
}
