//! The overview: health, failing operations, replicas, the progress of the migration, and the list
//! of conditions that need an operator.

use super::PageContext;
use super::attention;
use super::charts::{self, Series, bar};
use super::fields::percent_encode;
use super::layout::{Page, Tab};
use super::marks;
use super::operations::address;
use super::replicas::ReplicaPresence;
use super::traffic::{ChartSpan, Point, errors_of, requests_of};
use super::words::{Tone, badge, count, count_noun, duration, moment, operation, percent, quantile, rate};
use crate::admin::AdminResponse;
use maud::{Markup, html};
use switchback_gateway::outcome::{OUTCOMES, Outcome};
use switchback_gateway::shadow::{PHASES, PhaseInfo};
use switchback_plan::{Pack, RouteKind};

/// Most operations in the table of errors and traffic.
const BUSIEST_MAX: usize = 8;

pub(super) async fn page(visit: &PageContext<'_>) -> AdminResponse {
    let span = ChartSpan::from_word(visit.query.get("span"));
    let phases = visit.parts.phases.list();
    let waiting = attention::gather(visit).await;
    let charts = charts(visit, span, &phases).await;
    let body = html! {
        div.page-head {
            h1 { "Overview" }
            nav.aside.segmented aria-label="Time shown" {
                a href="/" aria-current=[(span == ChartSpan::Hour).then_some("true")] { "Last hour" }
                a href="/?span=day" aria-current=[(span == ChartSpan::Day).then_some("true")] { "Last day" }
            }
        }
        @if let Some(since) = visit.studio.traffic.known_since(span, visit.now_ms) {
            p.soft #known-since { "Counted since " (moment(since, visit.now_ms)) ": earlier requests of " (span.words()) " are in none of these numbers." }
        }
        div.grid.narrow-2 {
            (tiles(visit, span))
            section.panel.w8 #attention aria-labelledby="attention-title" {
                header { h2 #attention-title { "Needs attention" } }
                (attention::render(&waiting, visit))
            }
            section.panel.w4 #progress aria-labelledby="progress-title" {
                header { h2 #progress-title { "Migration progress" } a.aside href="/operations" { "Operations" } }
                (progress(visit, &phases))
                p { a #after-sunset-link href="/clients?show=after-sunset" { "Losses after the sunset" } }
            }
            (replicas(visit))
            (charts)
        }
    };
    visit.page(Page::live(Tab::Overview, "Overview", body))
}

/// Renders the totals of the span, with current rates.
fn tiles(visit: &PageContext<'_>, span: ChartSpan) -> Markup {
    let own = visit.studio.replicas.own(visit.parts, &visit.studio.traffic);
    let others = visit.studio.replicas.others(visit.now_ms);
    let mut all = vec![&own];
    // The last rates of a replica that has gone are no current ones.
    all.extend(others.iter().filter(|one| one.presence == ReplicaPresence::Here).map(|one| &one.standing));
    let rates = all.iter().filter_map(|one| one.rates());
    let rates = rates.reduce(|(requests, errors), more| (requests + more.0, errors + more.1));
    let now = |of: fn((f64, f64)) -> f64| rates.map_or("–".to_owned(), |rates| rate(of(rates)));
    let in_flight: f64 = all.iter().map(|one| one.in_flight).sum();
    let connections: f64 = all.iter().map(|one| one.connections).sum();

    let total: Point = visit.studio.traffic.total(span);
    let (requests, errors) = (requests_of(&total.outcomes), errors_of(&total.outcomes));
    let share = if requests > 0 { percent(errors as f64 / requests as f64) } else { "–".to_owned() };
    let (share, share_unit) = split(&share);
    let latency = |share| total.durations.quantile(share).map_or("–".to_owned(), quantile);
    let (median, unit) = split(&latency(0.5));
    let added = total.added_seconds().map_or("–".to_owned(), duration);
    let (added, added_unit) = split(&added);
    let turned_away = total.outcomes[Outcome::Brownout as usize];
    html! {
        section.panel.w3 #now-requests {
            p.stat-name { "Requests in " (span.words()) }
            p.stat { (count(requests)) }
            p.stat-note { (now(|(requests, _)| requests)) "/s now, " (count(in_flight as u64)) " in flight, " (count_noun(connections as u64, "connection")) }
        }
        section.panel.w3 #now-errors {
            p.stat-name { "Failed in " (span.words()) }
            p class=(if errors > 0 { "stat bad-text" } else { "stat" }) { (share) span.unit { (share_unit) } }
            p.stat-note { (count_noun(errors, "request")) ", " (now(|(_, errors)| errors)) "/s now" }
            @if turned_away > 0 {
                p.stat-note #turned-away { (count(turned_away)) " rejected by brownouts" }
            }
        }
        section.panel.w3 #now-latency {
            p.stat-name { "Latency, median of " (span.words()) }
            p.stat { (median) span.unit { (unit) } }
            p.stat-note title="From the head of a request to the end of its answer. Tunnels and event streams are not counted." { "99 % within " (latency(0.99)) }
        }
        section.panel.w3 #now-own {
            p.stat-name { "Added by Switchback" }
            p.stat { (added) span.unit { (added_unit) } }
            p.stat-note title="From the head of a request to the head of its answer, without the time spent waiting for services and bodies. Requests without a call, tunnels and event streams are not counted." {
                "mean of " (count_noun(total.added.count(), "request"))
            }
        }
    }
}

/// Renders the replicas of the store, if there are several.
fn replicas(visit: &PageContext<'_>) -> Markup {
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
            header { h2 #replicas-title { "Replicas" } span.soft { "Traffic includes all replicas. The pack and rows that name a replica are of that replica." } }
            div.scroll role="region" aria-label="Table of replicas" tabindex="0" { table {
                thead { tr { th { "Replica" } th { "State" } th { "Started" } th { "Version" } th { "Pack" } th.n { "Requests" } th.n { "Errors" } th.n { "In flight" } } }
                tbody { @for (name, presence, standing) in all {
                    @let is_here = matches!(presence, None | Some(ReplicaPresence::Here));
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

fn presence_words(presence: Option<ReplicaPresence>, now_ms: i64) -> Markup {
    html! {
        @match presence {
            None => (badge(Tone::Good, "this one")),
            Some(ReplicaPresence::Here) => (badge(Tone::Good, "there")),
            Some(ReplicaPresence::Left(at)) => { (badge(Tone::Quiet, "left")) " " (moment(at, now_ms)) },
            Some(ReplicaPresence::Away(since)) => { (badge(Tone::Bad, "away")) " last message " (moment(since, now_ms)) },
            Some(ReplicaPresence::Unknown(since)) => { (badge(Tone::Quiet, "not known")) " last message " (moment(since, now_ms)) },
        }
    }
}

/// Splits `4.2 ms` into number and unit.
fn split(text: &str) -> (String, String) {
    let (number, unit) = text.rsplit_once(' ').unwrap_or((text, ""));
    (number.to_owned(), unit.to_owned())
}

async fn charts(visit: &PageContext<'_>, span: ChartSpan, phases: &[PhaseInfo]) -> Markup {
    let line = visit.studio.traffic.all(span);
    let words = span.words();
    let mut traffic = charts::traffic(&line, span);
    let mut latency = charts::latency(&line, format!("Latency and what Switchback adds to it over {words}"));
    let added = line.values(|point| Some(point.added_seconds()? * 1e3));
    latency.series.push(Series::new("added, mean", "ms", "s-third", false, added));
    let marks = marks::mark(visit, &mut [&mut traffic, &mut latency], span, None).await;
    let outcomes = visit.studio.traffic.total(span).outcomes;
    let all = requests_of(&outcomes);
    let mut busiest: Vec<(&PhaseInfo, u64, u64)> = phases
        .iter()
        .map(|info| {
            let (requests, errors) = visit.studio.traffic.of_the_hour(&info.side, &info.operation);
            (info, requests, errors)
        })
        .filter(|(_, requests, _)| *requests > 0)
        .collect();
    // Failing operations first, then busy ones.
    busiest.sort_by_key(|(_, requests, errors)| std::cmp::Reverse((*errors, *requests)));
    html! {
        section.panel.w6 aria-labelledby="traffic-title" { header { h2 #traffic-title { "Traffic" } } (traffic.draw()) }
        section.panel.w6 aria-labelledby="latency-title" { header { h2 #latency-title { "Latency" } } (latency.draw()) }
        section.panel.w12 aria-labelledby="marks-title" { header { h2 #marks-title { "Changes in " (words) } } (marks) }
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
            header { h2 #busiest-title { "Errors and traffic by operation" } span.soft { "the last hour" } }
            @if busiest.is_empty() { p.soft {
                @match visit.studio.traffic.known_since(ChartSpan::Hour, visit.now_ms) {
                    None => "No request in the last hour.",
                    Some(since) => { "No request since counting started " (moment(since, visit.now_ms)) "." },
                }
            } } @else {
                div.scroll role="region" aria-label="Operations that fail or are busy" tabindex="0" { table {
                    thead { tr { th { "Operation" } th.n { "Requests" } th.n { "Errors" } th.n { "Failing" } } }
                    tbody { @for (info, requests, errors) in busiest.iter().take(BUSIEST_MAX) {
                        tr id={ "busy-" (info.side) "-" (percent_encode(&info.operation)) } {
                            td { a.quiet-link href=(address(&info.side, &info.operation)) { (operation(&info.operation)) } }
                            td.n { (count(*requests)) } td.n { (count(*errors)) }
                            td.n { (percent(*errors as f64 / *requests as f64)) }
                        }
                    } }
                } }
                @if busiest.len() > BUSIEST_MAX {
                    p.soft #busiest-more { (count_noun((busiest.len() - BUSIEST_MAX) as u64, "further operation")) " had requests: " a href="/operations?sort=errors" { "all operations" } "." }
                }
            }
        }
    }
}

/// Renders the share of operations and of traffic in each phase.
fn progress(visit: &PageContext<'_>, phases: &[PhaseInfo]) -> Markup {
    const CLASSES: [&str; 5] = ["b-legacy", "b-shadow", "b-canary", "b-translated", "b-none"];
    /// Operations that the pack refuses and the side's own service answers in every phase.
    const FORWARDED: &str = "always forwarded";
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

/// Returns whether the pack refuses an operation, so that its side's own service answers it in
/// every phase.
fn is_forwarded(visit: &PageContext<'_>, pack: &Pack, side: &str, operation: &str) -> bool {
    let direction = pack.directions.iter().find(|direction| pack.sides[direction.serves].name == side);
    let route = direction
        .and_then(|direction| direction.routes.iter().find(|route| *route.operation.key == *operation));
    let is_refused = route
        .is_some_and(|route| matches!(&route.kind, RouteKind::Refuse(refusal) if refusal.legacy_forward));
    is_refused && visit.parts.workbench.upstream(side).is_some()
}
