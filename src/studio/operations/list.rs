//! The list of all operations: filter, order and pages.

use super::address;
use crate::admin::AdminResponse;
use crate::studio::PageContext;
use crate::studio::charts::spark;
use crate::studio::fields::percent_encode;
use crate::studio::layout::{Page, Tab, empty, page_slice, pager};
use crate::studio::traffic::{ChartSpan, OperationPoint, errors_of, requests_of};
use crate::studio::words::{Tone, badge, count, count_noun, operation, percent, phase, quantile};
use maud::{Markup, html};
use std::collections::HashMap;
use switchback_engine::diff::OperationReport;
use switchback_gateway::shadow::{PHASES, PhaseInfo};

/// Operations per page of the list.
const LISTED: usize = 50;

pub(super) struct OperationRow<'k> {
    info: &'k PhaseInfo,
    report: Option<&'k OperationReport>,
    /// The traffic of the selected span.
    point: OperationPoint,
    requests: u64,
    errors: u64,
    clients: usize,
    /// The verdict of the pack's report.
    verdict: &'static str,
}

pub(super) async fn list(visit: &PageContext<'_>) -> AdminResponse {
    let span = ChartSpan::from_word(visit.query.get("span"));
    let seen = visit.reports().await;
    let reported = seen.rows();
    let reports: HashMap<(&str, &str), &OperationReport> =
        reported.iter().map(|one| ((one.side.as_str(), one.operation.as_str()), one)).collect();
    let totals = visit.studio.traffic.totals();
    let program = visit.parts.program.load_full();
    let pack = program.pack();
    let verdicts: HashMap<(&str, &str), &'static str> = pack
        .directions
        .iter()
        .flat_map(|direction| {
            let side = pack.sides[direction.serves].name.as_str();
            direction.routes.iter().map(move |route| ((side, &*route.operation.key), route.verdict.word()))
        })
        .collect();
    let phases = visit.parts.phases.list();
    let (asked, of_phase, of_side) =
        (visit.query.get("q").to_lowercase(), visit.query.get("phase"), visit.query.get("side"));
    let mut found: Vec<OperationRow<'_>> = phases
        .iter()
        .filter(|info| info.operation.to_lowercase().contains(&asked))
        .filter(|info| of_phase.is_empty() || info.now.phase == of_phase)
        .filter(|info| of_side.is_empty() || info.side == of_side)
        .map(|info| {
            let point = visit.studio.traffic.total_of(&info.side, &info.operation, span);
            let key = (info.side.clone(), info.operation.clone());
            let by_name = (info.side.as_str(), info.operation.as_str());
            OperationRow {
                info,
                report: reports.get(&by_name).copied(),
                requests: requests_of(&point.outcomes),
                errors: errors_of(&point.outcomes),
                point,
                clients: totals.operations.get(&key).map_or(0, |one| one.clients),
                verdict: verdicts.get(&by_name).copied().unwrap_or(""),
            }
        })
        .collect();
    match visit.query.get("sort") {
        "traffic" => found.sort_by_key(|known| std::cmp::Reverse(known.requests)),
        "errors" => found.sort_by_key(|known| std::cmp::Reverse((known.errors, known.requests))),
        "median" => found.sort_by(|a, b| latency_of(b, 0.5).total_cmp(&latency_of(a, 0.5))),
        "p99" => found.sort_by(|a, b| latency_of(b, 0.99).total_cmp(&latency_of(a, 0.99))),
        "differences" => found.sort_by(|a, b| rate_of(b).total_cmp(&rate_of(a))),
        _ => {}
    }
    let mut sides: Vec<&str> = phases.iter().map(|info| info.side.as_str()).collect();
    sides.dedup();
    let shown = page_slice(&found, visit.query.page(), LISTED);
    let body = html! {
        div.page-head {
            h1 { "Operations" }
            p.lead { "Operations of the contract with their phase and the evidence of the comparison." }
        }
        (visit.staleness(&seen))
        (filter(visit, &sides))
        section.panel #operations aria-label="Operations" {
            @if shown.is_empty() {
                (empty("No such operation", &html! { "No matches. " a href="/operations" { "Show all" } }))
            } @else {
                div.scroll role="region" aria-label="Table of operations" tabindex="0" { table {
                    thead { tr {
                        th { "Operation" } th { "Phase" } th { @if span == ChartSpan::Hour { "Last hour" } @else { "Last day" } } th.n { "Requests" } th.n { "Errors" }
                        th.n { "Median" } th.n title="99 % of the requests took at most this time" { "99 %" }
                        th.n { "Differ" } th.n { "At most" } th.n title="Clients that called this replica since its start" { "Clients since start" } th.wide-only { "Kept by the pack" }
                    } }
                    tbody { @for known in shown { (row(visit, known, sides.len() > 1)) } }
                } }
                (pager(visit, shown.len(), found.len(), LISTED))
            }
        }
    };
    visit.page(Page::live(Tab::Operations, "Operations", body))
}

pub(super) fn rate_of(known: &OperationRow<'_>) -> f64 {
    // Operations without evidence come after those that never differ.
    known.report.map_or(-1.0, |report| report.equal_rate.map_or(-1.0, |equal| 1.0 - equal))
}

/// Returns a quantile of latency in seconds; -1 without requests, so that they come last.
fn latency_of(known: &OperationRow<'_>, share: f64) -> f64 {
    known.point.durations.quantile(share).map_or(-1.0, |quantile| quantile.seconds())
}

pub(super) fn filter(visit: &PageContext<'_>, sides: &[&str]) -> Markup {
    let of_phase = visit.query.get("phase");
    let span = ChartSpan::from_word(visit.query.get("span"));
    let sorts = [
        ("", "As in the contract"),
        ("traffic", "Busiest first"),
        ("errors", "Failing first"),
        ("median", "Slowest median first"),
        ("p99", "Slowest 99 % first"),
        ("differences", "Most different first"),
    ];
    html! {
        form.filter method="get" action="/operations" role="search" {
            label.grow { "Search" input #q type="search" name="q" value=(visit.query.get("q")) placeholder="Method or path"; }
            label { "Phase" select name="phase" data-submit {
                option value="" { "All" }
                @for name in PHASES { option value=(name) selected[of_phase == name] { (name) } }
            } }
            @if sides.len() > 1 {
                label { "Side" select name="side" data-submit {
                    option value="" { "All" }
                    @for side in sides { option value=(side) selected[visit.query.get("side") == *side] { (side) } }
                } }
            }
            label { "Time" select name="span" data-submit {
                option value="" selected[span == ChartSpan::Hour] { "Last hour" }
                option value="day" selected[span == ChartSpan::Day] { "Last day" }
            } }
            label { "Order" select name="sort" data-submit {
                @for (value, name) in sorts { option value=(value) selected[visit.query.get("sort") == value] { (name) } }
            } }
            button type="submit" { "Show" }
        }
    }
}

pub(super) fn row(visit: &PageContext<'_>, known: &OperationRow<'_>, has_sides: bool) -> Markup {
    let OperationRow { info, report, point, requests, errors, clients, verdict } = known;
    let span = ChartSpan::from_word(visit.query.get("span"));
    let line = visit.studio.traffic.operation(&info.side, &info.operation, span);
    let latency = |share| point.durations.quantile(share).map_or("–".to_owned(), quantile);
    let values: Vec<Option<f64>> = line
        .slots
        .iter()
        .map(|(_, point)| point.as_ref().map(|point| requests_of(&point.outcomes) as f64))
        .collect();
    html! {
        tr id={ "operation-" (info.side) "-" (percent_encode(&info.operation)) } {
            td {
                a.quiet-link href=(address(&info.side, &info.operation)) { (operation(&info.operation)) }
                @if has_sides { " " span.soft { (info.side) } }
            }
            td {
                (phase(info.now.phase, info.now.share))
                @if info.held.is_some() { " " (badge(Tone::Warn, "held")) }
            }
            td { (spark(&values, &format!("{} in {}", count_noun(*requests, "request"), span.words()))) }
            td.n { (count(*requests)) }
            td.n { (count(*errors)) }
            td.n { (latency(0.5)) }
            td.n { (latency(0.99)) }
            td.n { @match report.and_then(|report| report.equal_rate) { Some(equal) => (percent(1.0 - equal)), None => span.soft { "–" } } }
            td.n { @match report.filter(|report| report.equal_rate.is_some()) { Some(report) => span title={ (report.proof.word()) ": " (report.next) } { (percent(report.mismatch_bound)) }, None => span.soft { "–" } } }
            td.n { (count(*clients as u64)) }
            td.wide-only { (verdict) }
        }
    }
}
