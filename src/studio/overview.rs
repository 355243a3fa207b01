//! The first page: is it healthy, what is failing, since when, whose fault; how far the migration is; and what needs
//! somebody, with the button that helps.

use super::Visit;
use super::charts::{self, Series, bar};
use super::fields::encoded;
use super::layout::{Page, Tab};
use super::operations::{address, next_phase};
use super::replicas::Presence;
use super::traffic::{Point, Span, errors_of, requests_of};
use super::words::{Tone, badge, count, counted, duration, moment, moment_text, operation, percent, rate};
use crate::admin::{Answer, CertificateEnd, PackStatus};
use maud::{Markup, html};
use switchback_engine::diff::{OperationReport, Proof};
use switchback_gateway::outcome::{OUTCOMES, Outcome};
use switchback_gateway::shadow::{PHASES, PhaseInfo, Transition};
use switchback_gateway::store::GrantState;
use switchback_gateway::token::ClientInfo;
use switchback_plan::{Pack, RouteKind};

/// Most things of one kind that are listed.
const LISTED_MAX: usize = 5;
/// How long before its end a certificate needs attention.
const CERTIFICATE_NEAR_MS: i64 = 30 * 24 * 3_600_000;
/// How long a replica that went without a word needs attention: whoever replaced it has done so by then.
const AWAY_SHOWN_MS: i64 = 3_600_000;

pub(super) async fn page(visit: &Visit<'_>) -> Answer {
    let board = visit.parts.board.load();
    let span = Span::of(visit.query.get("span"));
    let (clients, reports, transitions) = tokio::join!(visit.clients(), visit.reports(), visit.transitions());
    let phases = visit.parts.phases.list();
    let known = clients.value.as_deref().map_or(&[][..], Vec::as_slice);
    let reported = reports.value.as_deref().map_or(&[][..], |report| &report.operations);
    let moved = transitions.value.as_deref().map_or(&[][..], Vec::as_slice);
    let mut waiting = of_brownouts(visit);
    waiting.extend(of_the_store(visit));
    waiting.extend(of_replicas(visit));
    waiting.extend(of_the_pack(visit, &board.pack));
    waiting.extend(of_certificates(&board.certificates, visit.now_ms));
    waiting.extend(of_operations(visit, &phases, reported, moved));
    waiting.extend(of_clients(known));
    waiting.extend(of_unknown_calls(visit));
    let body = html! {
        div.page-head {
            h1 { "Overview" }
            nav.aside.segmented aria-label="Time shown" {
                a href="/" aria-current=[(span == Span::Hour).then_some("true")] { "Last hour" }
                a href="/?span=day" aria-current=[(span == Span::Day).then_some("true")] { "Last day" }
            }
        }
        (visit.staleness(&clients))
        div.grid.narrow-2 {
            (now(visit))
            section.panel.w8 #attention aria-labelledby="attention-title" {
                header { h2 #attention-title { "Needs attention" } }
                @if waiting.is_empty() {
                    @if [clients.failing_since, reports.failing_since, transitions.failing_since].iter().any(Option::is_some) {
                        p.soft { "Whether grants or operations need you is in the store, which does not answer." }
                    } @else {
                        p.soft { "Nothing needs you: the pack is loaded, grants are alive, nothing waits to be moved." }
                    }
                } @else {
                    ul.todo { @for one in &waiting { (one) } }
                }
            }
            section.panel.w4 #progress aria-labelledby="progress-title" {
                header { h2 #progress-title { "How far" } a.aside href="/operations" { "Operations" } }
                (progress(visit, &phases))
            }
            (replicas(visit))
            (charts(visit, span, &phases))
        }
    };
    visit.page(Page::live(Tab::Overview, "Overview", body))
}

/// The numbers of the last seconds.
fn now(visit: &Visit<'_>) -> Markup {
    let own = visit.studio.replicas.own(visit.parts, &visit.studio.traffic);
    let others = visit.studio.replicas.others(visit.now_ms);
    let mut all = vec![&own];
    all.extend(others.iter().filter(|one| one.presence == Presence::Here).map(|one| &one.standing));
    let mut point = Point::default();
    all.iter().for_each(|one| point.add(&one.now));
    let rates = all.iter().filter_map(|one| one.rates());
    let rates = rates.reduce(|(requests, errors), more| (requests + more.0, errors + more.1));
    let (requests, errors) = (requests_of(&point.outcomes), errors_of(&point.outcomes));
    let share = if requests > 0 { percent(errors as f64 / requests as f64) } else { "no request".to_owned() };
    let latency = |share| point.durations.quantile(share).map_or("–".to_owned(), duration);
    let (median, unit) = split(&latency(0.5));
    let added = point.own_seconds().map_or("–".to_owned(), duration);
    let (added, added_unit) = split(&added);
    let in_flight: f64 = all.iter().map(|one| one.in_flight).sum();
    let connections: f64 = all.iter().map(|one| one.connections).sum();
    let failed: u64 = all.iter().map(|one| one.failed).sum();
    let turned_away = visit.studio.traffic.outcomes(Span::Hour)[Outcome::Brownout as usize];
    html! {
        section.panel.w3 #now-requests {
            p.stat-name { "Requests" }
            p.stat { (rates.map_or("–".to_owned(), |(requests, _)| rate(requests))) span.unit { "/s" } }
            p.stat-note { (count(in_flight as u64)) " in flight, " (counted(connections as u64, "connection")) }
        }
        section.panel.w3 #now-errors {
            p.stat-name { "Errors" }
            p class=(if errors > 0 { "stat bad-text" } else { "stat" }) { (rates.map_or("–".to_owned(), |(_, errors)| rate(errors))) span.unit { "/s" } }
            p.stat-note { (share) " failing now, " (count(failed)) " since the start" }
            @if turned_away > 0 {
                p.stat-note #turned-away { (count(turned_away)) " turned away by brownouts in the last hour" }
            }
        }
        section.panel.w3 #now-latency {
            p.stat-name { "Latency, median" }
            p.stat { (median) span.unit { (unit) } }
            p.stat-note { "99 % within " (latency(0.99)) }
        }
        section.panel.w3 #now-own {
            p.stat-name { "Added by Switchback" }
            p.stat { (added) span.unit { (added_unit) } }
            p.stat-note title="The time of requests, less the time of the calls that were made for them" {
                "mean, beside the upstreams"
            }
        }
    }
}

/// The gateways of the store, where there are several.
fn replicas(visit: &Visit<'_>) -> Markup {
    let others = visit.studio.replicas.others(visit.now_ms);
    if others.is_empty() {
        return html! {};
    }
    let own = visit.studio.replicas.own(visit.parts, &visit.studio.traffic);
    let pack = own.pack_hash.clone();
    let all = std::iter::once((visit.studio.replicas.name(), None, &own))
        .chain(others.iter().map(|one| (one.name.as_str(), Some(one.presence), &one.standing)));
    html! {
        section.panel.w12 #replicas aria-labelledby="replicas-title" {
            header { h2 #replicas-title { "Replicas" } span.soft { "the numbers of this page, and traffic on all pages, are of all of them" } }
            div.scroll role="region" aria-label="Table of replicas" tabindex="0" { table {
                thead { tr { th { "Replica" } th { "State" } th { "Started" } th { "Version" } th { "Pack" } th.n { "Requests" } th.n { "Errors" } th.n { "In flight" } } }
                tbody { @for (name, presence, standing) in all {
                    @let is_here = matches!(presence, None | Some(Presence::Here));
                    @let rates = standing.rates().filter(|_| is_here);
                    tr id={ "replica-" (name) } {
                        td { (name) }
                        td { (presence_words(presence, visit.now_ms)) }
                        td { (moment(standing.started_ms, visit.now_ms)) }
                        td { (standing.version) }
                        td { (standing.pack) " " span.hash { (standing.pack_hash.get(..8).unwrap_or(&standing.pack_hash)) } @if standing.pack_hash != pack { " " (badge(Tone::Warn, "another pack")) } }
                        td.n { (rates.map_or("–".to_owned(), |(requests, _)| format!("{}/s", rate(requests)))) }
                        td.n { (rates.map_or("–".to_owned(), |(_, errors)| format!("{}/s", rate(errors)))) }
                        td.n { @if is_here { (count(standing.in_flight as u64)) } @else { "–" } }
                    }
                } }
            } }
        }
    }
}

fn presence_words(presence: Option<Presence>, now_ms: i64) -> Markup {
    html! {
        @match presence {
            None => (badge(Tone::Good, "this one")),
            Some(Presence::Here) => (badge(Tone::Good, "there")),
            Some(Presence::Left(at)) => { (badge(Tone::Quiet, "left")) " " (moment(at, now_ms)) },
            Some(Presence::Away(since)) => { (badge(Tone::Bad, "away")) " last heard " (moment(since, now_ms)) },
            Some(Presence::Unknown(since)) => { (badge(Tone::Quiet, "not known")) " last heard " (moment(since, now_ms)) },
        }
    }
}

/// Who went away without a word, and who serves another pack.
fn of_replicas(visit: &Visit<'_>) -> Vec<Markup> {
    let others = visit.studio.replicas.others(visit.now_ms);
    let mut waiting = Vec::new();
    for one in &others {
        let Presence::Away(since) = one.presence else { continue };
        if visit.now_ms - since < AWAY_SHOWN_MS {
            waiting.push(html! { li id={ "todo-replica-" (one.name) } { div.what { p {
                "The replica " strong { (one.name) } " " strong { "has gone without a word" } "; it was last heard " (moment(since, visit.now_ms)) ". Its last numbers are in the charts."
            } } } });
        }
    }
    let board = visit.parts.board.load();
    let differing = others
        .iter()
        .filter(|one| one.presence == Presence::Here && one.standing.pack_hash != board.pack.hash);
    let differing: Vec<&str> = differing.map(|one| one.name.as_str()).collect();
    if !differing.is_empty() {
        waiting.push(html! { li #todo-packs { div.what { p {
            strong { "Replicas serve different packs" } ": " (differing.join("; ")) " " @if differing.len() == 1 { "has" } @else { "have" } " another one than this replica. A reload that failed on one of them says why in its log."
        } } } });
    }
    waiting
}

/// `4.2 ms` → its number and its unit.
fn split(text: &str) -> (String, String) {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    (number.to_owned(), unit.to_owned())
}

fn charts(visit: &Visit<'_>, span: Span, phases: &[PhaseInfo]) -> Markup {
    let line = visit.studio.traffic.all(span);
    let words = span.words();
    let traffic = charts::traffic(&line, span);
    let mut latency = charts::latency(&line, format!("Latency and what Switchback adds to it over {words}"));
    let added = line.values(|point| Some(point.own_seconds()? * 1e3));
    latency.series.push(Series::new("added, mean", "ms", "s-third", false, added));
    let outcomes = visit.studio.traffic.outcomes(span);
    let all = requests_of(&outcomes);
    let mut busiest: Vec<(&PhaseInfo, u64, u64)> = phases
        .iter()
        .map(|info| {
            let (requests, errors) = visit.studio.traffic.of_the_hour(&info.side, &info.operation);
            (info, requests, errors)
        })
        .filter(|(_, requests, _)| *requests > 0)
        .collect();
    busiest.sort_by_key(|(_, requests, errors)| std::cmp::Reverse((*errors, *requests)));
    html! {
        section.panel.w6 aria-labelledby="traffic-title" { header { h2 #traffic-title { "Traffic" } } (traffic.draw()) }
        section.panel.w6 aria-labelledby="latency-title" { header { h2 #latency-title { "Latency" } } (latency.draw()) }
        section.panel.w4 #outcomes aria-labelledby="outcomes-title" {
            header { h2 #outcomes-title { "How requests ended" } span.soft { (words) } }
            table {
                thead { tr { th { "Outcome" } th.n { "Requests" } th.n { "Share" } } }
                tbody { @for (outcome, number) in OUTCOMES.iter().zip(outcomes) {
                    tr id={ "outcome-" (outcome.as_str()) } {
                        td { (outcome.as_str().replace('_', " ")) }
                        td.n { (count(number)) }
                        td.n { @if all > 0 { (percent(number as f64 / all as f64)) } @else { "–" } }
                    }
                } }
            }
        }
        section.panel.w8 #busiest aria-labelledby="busiest-title" {
            header { h2 #busiest-title { "Where it fails, then where it is busy" } span.soft { "the last hour" } }
            @if busiest.is_empty() { p.soft { "No request in the last hour." } } @else {
                div.scroll role="region" aria-label="Operations that fail or are busy" tabindex="0" { table {
                    thead { tr { th { "Operation" } th.n { "Requests" } th.n { "Errors" } th.n { "Failing" } } }
                    tbody { @for (info, requests, errors) in busiest.iter().take(8) {
                        tr id={ "busy-" (info.side) "-" (encoded(&info.operation)) } {
                            td { a.quiet-link href=(address(&info.side, &info.operation)) { (operation(&info.operation)) } }
                            td.n { (count(*requests)) } td.n { (count(*errors)) }
                            td.n { (percent(*errors as f64 / *requests as f64)) }
                        }
                    } }
                } }
            }
        }
    }
}

/// How many operations are in each phase, and how much of the traffic.
fn progress(visit: &Visit<'_>, phases: &[PhaseInfo]) -> Markup {
    const CLASSES: [&str; 5] = ["b-legacy", "b-shadow", "b-canary", "b-translated", "b-none"];
    /// Operations that the pack refuses and the own service answers in every phase.
    const FORWARDED: &str = "forwarded";
    let program = visit.parts.program.load_full();
    let is_forwarded = |info: &PhaseInfo| is_forwarded(visit, program.pack(), &info.side, &info.operation);
    let rows: Vec<&str> = PHASES.iter().copied().chain([FORWARDED]).collect();
    let of = |weight: &dyn Fn(&PhaseInfo) -> u64| -> Vec<(&'static str, u64)> {
        let row_of = |info: &PhaseInfo| if is_forwarded(info) { FORWARDED } else { info.now.phase };
        let sum = |row: &str| phases.iter().filter(|info| row_of(info) == row).map(weight).sum();
        rows.iter().zip(CLASSES).map(|(row, class)| (class, sum(row))).collect()
    };
    let operations = of(&|_| 1);
    let requests = of(&|info| visit.studio.traffic.of_the_hour(&info.side, &info.operation).0);
    let said = |parts: &[(&str, u64)], thing: &str| {
        let parts = rows.iter().zip(parts).map(|(phase, (_, part))| format!("{phase} {part}"));
        format!("{thing} by phase: {}", parts.collect::<Vec<_>>().join(", "))
    };
    let all: u64 = requests.iter().map(|(_, part)| part).sum();
    html! {
        p.stat-name { "Operations" }
        (bar(&operations, &said(&operations, "Operations")))
        p.stat-name.above { "Traffic of the last hour" }
        (bar(&requests, &said(&requests, "Requests of the last hour")))
        table.phases-table {
            thead { tr { th { "Phase" } th.n { "Operations" } th.n { "Traffic" } } }
            tbody { @for (at, phase) in PHASES.iter().enumerate() {
                tr id={ "progress-" (phase) } {
                    td { a.quiet-link href={ "/operations?phase=" (phase) } { (super::words::phase(phase, None)) } }
                    td.n { (count(operations[at].1)) }
                    td.n { @if all > 0 { (percent(requests[at].1 as f64 / all as f64)) } @else { "–" } }
                }
            }
            @let at = PHASES.len();
            @if operations[at].1 > 0 {
                tr #progress-forwarded title="The pack refuses these operations; the old service answers them" {
                    td { (FORWARDED) }
                    td.n { (count(operations[at].1)) }
                    td.n { @if all > 0 { (percent(requests[at].1 as f64 / all as f64)) } @else { "–" } }
                }
            } }
        }
    }
}

/// Whether the pack refuses an operation, so that the service of its own side answers it in every phase.
fn is_forwarded(visit: &Visit<'_>, pack: &Pack, side: &str, operation: &str) -> bool {
    let direction = pack.directions.iter().find(|direction| pack.sides[direction.serves].name == side);
    let route = direction
        .and_then(|direction| direction.routes.iter().find(|route| *route.operation.key == *operation));
    let is_refused = route
        .is_some_and(|route| matches!(&route.kind, RouteKind::Refuse(refusal) if refusal.legacy_forward));
    is_refused && visit.parts.workbench.upstream(side).is_some()
}

/// Windows that are open: what they turn away, until when, and the button that ends them.
fn of_brownouts(visit: &Visit<'_>) -> Vec<Markup> {
    let all = visit.parts.retirement.brownouts();
    let open = all.iter().filter(|one| one.from_ms <= visit.now_ms && visit.now_ms < one.until_ms);
    let names =
        |names: &[String], all: &str| if names.is_empty() { all.to_owned() } else { names.join(", ") };
    open.map(|one| {
        html! { li id={ "todo-brownout-" (one.id) } {
            div.what { p {
                strong { "A brownout is open" } ": " (names(&one.operations, "all calls")) " of " (names(&one.clients, "all clients"))
                " on " (one.side) " are answered 503; it ends " (moment(one.until_ms, visit.now_ms)) "."
            } }
            @if one.by == "configuration" {
                span.soft { "set in the configuration" }
            } @else if visit.may_operate() {
                form method="post" action={ "/clients/brownouts/" (encoded(&one.id)) "/remove" } {
                    (visit.form_token())
                    input type="hidden" name="to" value="/";
                    input type="hidden" name="seen" value="";
                    fieldset.bare disabled[visit.store_away.is_some()] { button.small type="submit" { "End" } }
                }
            } @else {
                a.button.small href="/clients#brownouts" { "Brownouts" }
            }
        } }
    })
    .collect()
}

fn of_the_store(visit: &Visit<'_>) -> Vec<Markup> {
    let away = visit.store_away.map(|since| {
        html! { li #todo-store { div.what { p {
            strong { "The store stopped answering" } " " (moment(since, visit.now_ms)) ". Calls are answered, grants are refreshed in memory; nothing can be changed."
        } } } }
    });
    away.into_iter().collect()
}

fn of_the_pack(visit: &Visit<'_>, pack: &PackStatus) -> Vec<Markup> {
    let mut waiting = Vec::new();
    if visit.parts.drain.is_leaving() {
        waiting.push(html! { li #todo-leaving { div.what { p { strong { "The gateway is about to stop" } ": it is unready and takes leave of its clients." } } } });
    }
    let health = visit.parts.tokens.health();
    if health.unpersisted > 0 {
        waiting.push(html! { li #todo-unpersisted { div.what { p {
            strong { (counted(health.unpersisted as u64, "grant")) } " have their newest tokens in memory only: a restart would lose them. The store has to answer again."
        } } } });
    }
    let Some(reload) = &pack.last_reload else { return waiting };
    if reload.error.is_some() {
        waiting.push(html! {
            li #todo-reload {
                div.what { p { strong { "The last reload failed" } @if visit.is_one_of_several() { " on this replica" } " " (moment_text(&reload.at, visit.now_ms)) "; what was loaded before goes on serving." } }
                a.button.small href="/pack?show=reload" { "What is wrong" }
                @if visit.may_operate() {
                    form method="post" action="/reload" { (visit.form_token()) input type="hidden" name="seen" value=(visit.pack_seen()); button.small type="submit" { "Reload again" } }
                }
            }
        });
    }
    if !reload.needs_restart.is_empty() {
        waiting.push(html! {
            li #todo-restart { div.what { p {
                strong { "A restart is pending" } ": changes of " code { (reload.needs_restart.join(", ")) } " take one."
            } } }
        });
    }
    waiting
}

/// Certificates that end soon, or have ended.
fn of_certificates(certificates: &[CertificateEnd], now_ms: i64) -> Vec<Markup> {
    let mut near: Vec<&CertificateEnd> =
        certificates.iter().filter(|one| one.ends_ms - now_ms < CERTIFICATE_NEAR_MS).collect();
    near.sort_by_key(|one| one.ends_ms);
    near.iter()
        .map(|one| {
            let whose = if one.key == "tls" { "that clients are shown" } else { "that the gateway shows" };
            let (is_over, key) = (one.ends_ms <= now_ms, one.key.as_str());
            html! { li id={ "todo-certificate-" (key) } { div.what { p {
                "The certificate of " code { (key) } ", " (whose) ", "
                strong { @if is_over { "has ended" } @else { "ends" } } " " (moment(one.ends_ms, now_ms)) "."
                @if is_over { " Connections with it fail." }
                " Put the new one into its file; it is taken up by a reload."
            } } } }
        })
        .collect()
}

/// What was rolled back, what is too different, and what may be moved on.
fn of_operations(
    visit: &Visit<'_>,
    phases: &[PhaseInfo],
    reports: &[OperationReport],
    transitions: &[Transition],
) -> Vec<Markup> {
    let mut waiting = Vec::new();
    let mut ready = Vec::new();
    for info in phases {
        let at = || format!("{}-{}", info.side, encoded(&info.operation));
        let last = transitions.iter().find(|one| one.side == info.side && one.operation == info.operation);
        let is_back = |one: &&Transition| {
            one.by == "gate" && one.to == "shadow" && one.evidence.starts_with("rolled back")
        };
        if let Some(back) = last.filter(is_back) {
            waiting.push(html! { li id={ "todo-back-" (at()) } {
                div.what { p { (operation(&info.operation)) " " strong { "was rolled back" } " " (moment_text(&back.at, visit.now_ms)) ": " (back.evidence) } }
                a.button.small href=(address(&info.side, &info.operation)) { "Look at it" }
            } });
        }
        let report =
            reports.iter().find(|report| report.side == info.side && report.operation == info.operation);
        match report {
            Some(report) if report.proof == Proof::Above => waiting.push(html! { li id={ "todo-above-" (at()) } {
                div.what { p { (operation(&info.operation)) " " strong { "differs too much" } ": " (count(report.counts.different)) " of " (count(report.counts.compared())) " answers. " (report.next) } }
                a.button.small href={ "/differences/" (encoded(&info.side)) "/" (encoded(&info.operation)) } { "See the differences" }
            } }),
            Some(report) if report.proof == Proof::Within => {
                let Some((next, share)) = next_phase(&info.now) else { continue };
                ready.push(html! { li id={ "todo-ready-" (at()) } {
                    div.what { p { (operation(&info.operation)) " " strong { "can be moved on" } ": at most " (percent(report.mismatch_bound)) " of its answers differ (95 % sure)." } }
                    @if visit.may_operate() {
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
    waiting.truncate(LISTED_MAX * 2);
    ready.truncate(LISTED_MAX);
    waiting.extend(ready);
    if more > 0 {
        waiting.push(html! { li #todo-operations-more { div.what { p { (counted(more as u64, "further operation")) " to look at." } } a.button.small href="/operations?sort=differences" { "Operations" } } });
    }
    waiting
}

fn of_clients(clients: &[ClientInfo]) -> Vec<Markup> {
    let unwell: Vec<&ClientInfo> = clients
        .iter()
        .filter(|client| {
            let is_unused = client.grant.state == GrantState::Unconnected && !client.credentials.is_empty();
            client.revoked_at.is_none() && client.grant.state != GrantState::Active && !is_unused
        })
        .collect();
    let more = unwell.len().saturating_sub(LISTED_MAX);
    let mut waiting: Vec<Markup> = unwell
        .iter()
        .take(LISTED_MAX)
        .map(|client| {
            html! { li id={ "todo-client-" (client.name) } {
                div.what { p {
                    "The grant of " strong { (client.name) } " is " strong { (client.grant.state.name().replace('_', " ")) }
                    @if let Some(reason) = &client.grant.reason { " (" (reason) ")" }
                    "."
                } }
                a.button.small href={ "/clients/" (encoded(&client.name)) } { "Send its owner a link" }
            } }
        })
        .collect();
    if more > 0 {
        waiting.push(html! { li #todo-clients-more { div.what { p { (counted(more as u64, "further client")) " without a grant that works." } } a.button.small href="/clients" { "All clients" } } });
    }
    waiting
}

fn of_unknown_calls(visit: &Visit<'_>) -> Vec<Markup> {
    let unknown = visit.parts.unknown.newest();
    let calls: u64 = unknown.iter().map(|call| call.count).sum();
    if calls == 0 {
        return Vec::new();
    }
    vec![html! { li #todo-unknown {
        div.what {
            details {
                summary { strong { (counted(calls, "call")) } " with something that no contract or enrolment knows" @if visit.is_one_of_several() { " came through this replica" } }
                div.scroll role="region" aria-label="Unknown calls" tabindex="0" { table {
                    thead { tr { th { "Call" } th { "Unknown" } th { "Client" } th.n { "Calls" } th { "Last" } } }
                    tbody { @for call in unknown.iter().take(20) {
                        tr {
                            td { (operation(&format!("{} {}", call.method, call.path))) } td { (call.unknown.replace('_', " ")) }
                            td { @if call.client.is_empty() { span.soft { "nobody enrolled" } } @else { (call.client) } }
                            td.n { (count(call.count)) } td { (moment_text(&call.last, visit.now_ms)) }
                        }
                    } }
                } }
            }
        }
    } }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_that_end_within_a_month_need_somebody_the_first_to_end_first() {
        let end = |key: &str, days: i64| CertificateEnd { key: key.to_owned(), ends_ms: days * 86_400_000 };
        let all = [end("tls", 20), end("upstreams.v3.tls", -1), end("oauth.tls", 31)];
        let told: Vec<String> = of_certificates(&all, 0).into_iter().map(|one| one.into_string()).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("upstreams.v3.tls") && told[0].contains("has ended"), "{}", told[0]);
        assert!(told[1].contains("that clients are shown") && told[1].contains("in 20 d"), "{}", told[1]);
    }
}
