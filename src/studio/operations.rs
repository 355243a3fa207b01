//! The operations: a list of all, one of them with its evidence, and what moves it. A move is asked for, shown with what it
//! will do, and then done; whoever is second is told what was changed meanwhile, and keeps what he wrote.

use super::Visit;
use super::charts::{self, Chart, Series, spark};
use super::fields::{Fields, encoded};
use super::layout::{Page, Tab, empty, pager};
use super::route;
use super::traffic::{Span, requests_of};
use super::words::{Tone, badge, count, counted, moment, moment_text, operation, percent, phase, span};
use crate::admin::{Answer, told};
use http::StatusCode;
use maud::{Markup, html};
use std::collections::HashMap;
use switchback_engine::diff::{OperationReport, Proof, Summary, Threshold, report as report_on};
use switchback_engine::evidence::exact_upper;
use switchback_gateway::shadow::{GateView, Move, PHASES, Phase, PhaseInfo, PhasesError, Share, Shown, Word};
use switchback_gateway::token::ClientInfo;

/// Operations on one page of the list.
const LISTED: usize = 50;
/// Moves of one operation that are shown.
const MOVES: usize = 12;
/// Clients that are named in a confirmation.
const NAMED: usize = 12;
/// Most characters of a reason.
const REASON_CHARS_MAX: usize = 500;

pub(super) async fn look(visit: &Visit<'_>, rest: &[&str]) -> Answer {
    match *rest {
        [] => list(visit).await,
        [side, name] => match visit.parts.phases.get(Some(side), name) {
            Ok(info) => detail(visit, &info).await,
            Err(error) => unknown(visit, &error),
        },
        [side, name, "move"] => match visit.parts.phases.get(Some(side), name) {
            Ok(info) => asked_to_move(visit, &info).await,
            Err(error) => unknown(visit, &error),
        },
        _ => visit.not_found(),
    }
}

pub(super) async fn form(visit: &Visit<'_>, rest: &[&str], form: &Fields) -> Answer {
    let [side, name, what] = *rest else { return visit.not_found() };
    let info = match visit.parts.phases.get(Some(side), name) {
        Ok(info) => info,
        Err(error) => return unknown(visit, &error),
    };
    let reason: String = form.get("reason").trim().chars().take(REASON_CHARS_MAX).collect();
    let word = Word { who: visit.who(), reason: &reason, seen: form.get("version").parse().ok() };
    let outcome = match what {
        "move" if form.get("phase") == AS_CONFIGURED => {
            visit.parts.phases.set_by_word(Some(side), name, None, word).await
        }
        "move" => match wanted(form) {
            Ok(phase) => visit.parts.phases.set_by_word(Some(side), name, Some(phase), word).await,
            Err(trouble) => return not_done(visit, &info, &trouble),
        },
        "hold" | "release" => {
            let is_held = what == "hold";
            let outcome = visit.parts.phases.hold(Some(side), name, is_held, word).await;
            if outcome.is_ok() {
                let kind = if is_held { "gate held" } else { "gate released" };
                visit.parts.note(kind, &format!("{side} {name}"), visit.who(), &reason).await;
            }
            outcome
        }
        _ => return visit.not_found(),
    };
    visit.studio.outdate();
    match outcome {
        Ok(_) => Answer::see(&format!("{}?done={what}", address(side, name))),
        Err(PhasesError::Moved) => second(visit, &info, form).await,
        Err(error) => not_done(visit, &info, &told(&error)),
    }
}

/// What a form says where it wants the configured phase back.
const AS_CONFIGURED: &str = "configured";

/// The address of an operation's page.
pub(super) fn address(side: &str, operation: &str) -> String {
    format!("/operations/{}/{}", encoded(side), encoded(operation))
}

/// Where a phase usually leads, with the share that it begins with.
pub(super) fn next_phase(now: &Shown) -> Option<(&'static str, &'static str)> {
    match now.phase {
        "legacy" => Some(("shadow", "")),
        "shadow" => Some(("canary", "0.05")),
        "canary" => Some(("translated", "0.01")),
        _ => None,
    }
}

// The list ---------------------------------------------------------------------------------------------------------------

/// What is known of one operation.
struct Known<'k> {
    info: &'k PhaseInfo,
    report: Option<&'k OperationReport>,
    requests: u64,
    errors: u64,
    clients: usize,
    /// How well the pack keeps it.
    verdict: &'static str,
}

async fn list(visit: &Visit<'_>) -> Answer {
    let seen = visit.reports().await;
    let reported = seen.value.as_deref().map_or(&[][..], |report| &report.operations);
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
    let mut found: Vec<Known<'_>> = phases
        .iter()
        .filter(|info| info.operation.to_lowercase().contains(&asked))
        .filter(|info| of_phase.is_empty() || info.now.phase == of_phase)
        .filter(|info| of_side.is_empty() || info.side == of_side)
        .map(|info| {
            let (requests, errors) = visit.studio.traffic.of_the_hour(&info.side, &info.operation);
            let key = (info.side.clone(), info.operation.clone());
            let by_name = (info.side.as_str(), info.operation.as_str());
            Known {
                info,
                report: reports.get(&by_name).copied().filter(|report| report.phase == info.now.phase),
                requests,
                errors,
                clients: totals.operations.get(&key).map_or(0, |one| one.clients),
                verdict: verdicts.get(&by_name).copied().unwrap_or(""),
            }
        })
        .collect();
    match visit.query.get("sort") {
        "traffic" => found.sort_by_key(|known| std::cmp::Reverse(known.requests)),
        "errors" => found.sort_by_key(|known| std::cmp::Reverse((known.errors, known.requests))),
        "differences" => found.sort_by(|a, b| rate_of(b).total_cmp(&rate_of(a))),
        _ => {}
    }
    let mut sides: Vec<&str> = phases.iter().map(|info| info.side.as_str()).collect();
    sides.dedup();
    let from = (visit.query.page() - 1).saturating_mul(LISTED);
    let shown: Vec<&Known<'_>> = found.iter().skip(from).take(LISTED).collect();
    let body = html! {
        div.page-head {
            h1 { "Operations" }
            p.lead { "Each operation of the contract, who answers it, and what is known of how alike both sides are." }
        }
        (visit.staleness(&seen))
        (filter(visit, &sides))
        section.panel #operations aria-label="Operations" {
            @if shown.is_empty() {
                (empty("No such operation", &html! { "Nothing fits what is asked for. " a href="/operations" { "Show all" } }))
            } @else {
                div.scroll role="region" aria-label="Table of operations" tabindex="0" { table {
                    thead { tr {
                        th { "Operation" } th { "Phase" } th { "Last hour" } th.n { "Requests" } th.n { "Errors" }
                        th.n { "Differ" } th.n { "At most" } th.n { "Clients" } th.wide-only { "Kept by the pack" }
                    } }
                    tbody { @for known in &shown { (row(visit, known, sides.len() > 1)) } }
                } }
                (pager(visit, shown.len(), found.len(), LISTED))
            }
        }
    };
    visit.page(Page::live(Tab::Operations, "Operations", body))
}

fn rate_of(known: &Known<'_>) -> f64 {
    known.report.map_or(-1.0, |report| report.equal_rate.map_or(-1.0, |equal| 1.0 - equal))
}

fn filter(visit: &Visit<'_>, sides: &[&str]) -> Markup {
    let of_phase = visit.query.get("phase");
    let sorts = [
        ("", "As in the contract"),
        ("traffic", "Busiest first"),
        ("errors", "Failing first"),
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
            label { "Order" select name="sort" data-submit {
                @for (value, name) in sorts { option value=(value) selected[visit.query.get("sort") == value] { (name) } }
            } }
            button type="submit" { "Show" }
        }
    }
}

fn row(visit: &Visit<'_>, known: &Known<'_>, has_sides: bool) -> Markup {
    let Known { info, report, requests, errors, clients, verdict } = known;
    let line = visit.studio.traffic.operation(&info.side, &info.operation, Span::Hour);
    let values: Vec<Option<f64>> = line
        .slots
        .iter()
        .map(|(_, point)| point.as_ref().map(|point| requests_of(&point.outcomes) as f64))
        .collect();
    html! {
        tr id={ "operation-" (info.side) "-" (encoded(&info.operation)) } {
            td {
                a.quiet-link href=(address(&info.side, &info.operation)) { (operation(&info.operation)) }
                @if has_sides { " " span.soft { (info.side) } }
            }
            td {
                (phase(info.now.phase, info.now.share))
                @if info.held.is_some() { " " (badge(Tone::Warn, "held")) }
            }
            td { (spark(&values, &format!("{} in the last hour", counted(*requests, "request")))) }
            td.n { (count(*requests)) }
            td.n { (count(*errors)) }
            td.n { @match report.and_then(|report| report.equal_rate) { Some(equal) => (percent(1.0 - equal)), None => span.soft { "–" } } }
            td.n { @match report.filter(|report| report.counts.compared() > 0) { Some(report) => span title={ (report.proof.word()) ": " (report.next) } { (percent(report.mismatch_bound)) }, None => span.soft { "–" } } }
            td.n { (count(*clients as u64)) }
            td.wide-only { (verdict) }
        }
    }
}

// One operation ----------------------------------------------------------------------------------------------------------

async fn detail(visit: &Visit<'_>, info: &PhaseInfo) -> Answer {
    let (summaries, moves, gates) = (visit.summaries().await, visit.moves().await, visit.gates().await);
    let is_this = |side: &str, operation: &str| side == info.side && operation == info.operation;
    let summary =
        summaries.value.as_deref().and_then(|all| all.iter().find(|one| is_this(&one.side, &one.operation)));
    let moved: Vec<&Move> = moves
        .value
        .iter()
        .flat_map(|all| all.iter())
        .filter(|one| is_this(&one.side, &one.operation))
        .collect();
    let gate =
        gates.value.as_deref().and_then(|all| all.iter().find(|one| is_this(&one.side, &one.operation)));
    let program = visit.parts.program.load_full();
    let pack = program.pack();
    let found =
        pack.directions.iter().find(|direction| pack.sides[direction.serves].name == info.side).and_then(
            |direction| {
                let route = direction.routes.iter().find(|route| *route.operation.key == *info.operation)?;
                Some((direction.serves, route))
            },
        );
    let body = html! {
        div.page-head {
            p.crumbs { a href="/operations" { "Operations" } " / " (info.side) }
            h1 { (operation(&info.operation)) }
            div.aside { (phase(info.now.phase, info.now.share)) @if info.held.is_some() { " " (badge(Tone::Warn, "held")) } }
        }
        (visit.staleness(&summaries))
        (done(visit, info, &moved))
        div.grid {
            (charts(visit, info))
            section.panel.w8 #evidence aria-labelledby="evidence-title" {
                header { h2 #evidence-title { "Evidence" } span.soft { "of this stay in its phase, under this pack" } }
                (evidence(visit, summary.filter(|one| one.phase == info.now.phase), gate))
            }
            section.panel.w4 #controls aria-labelledby="controls-title" {
                header { h2 #controls-title { "Move it" } }
                (controls(visit, info))
            }
            section.panel.w12 #findings aria-labelledby="findings-title" {
                header { h2 #findings-title { "What differs" } a.aside href={ "/differences/" (encoded(&info.side)) "/" (encoded(&info.operation)) } { "Samples side by side" } }
                (findings(visit, summary))
            }
            @if let Some((serves, route)) = found {
                section.panel.w8 #route data-keep aria-labelledby="route-title" {
                    header { h2 #route-title { "How it is answered" } span.soft { (route.origin.file) ":" (route.origin.line) } }
                    (route::diagram(pack, serves, route))
                }
                section.panel.w4 #losses data-keep aria-labelledby="losses-title" {
                    header { h2 #losses-title { "What is lost" } }
                    (route::losses(pack, serves, route))
                }
            }
            section.panel.w12 #moves aria-labelledby="moves-title" {
                header { h2 #moves-title { "Moves" } a.aside href={ "/history?q=" (encoded(&info.operation)) } { "History" } }
                (moves_table(visit, &moved))
            }
        }
    };
    visit.page(Page::live(Tab::Operations, info.operation.clone(), body))
}

/// What was just done, with the way back.
fn done(visit: &Visit<'_>, info: &PhaseInfo, moved: &[&Move]) -> Markup {
    if !visit.query.has("done") {
        return html! {};
    }
    let what = visit.query.get("done");
    let last = moved.first().filter(|_| what == "move");
    html! {
        @if let Some(last) = last {
            div.notice.good #done role="status" {
                "Moved from " strong { (last.from) } " to " strong { (last.to) } " " (moment_text(&last.at, visit.now_ms)) ". "
                @if visit.may_operate() { (undo(info, last)) }
            }
        } @else if what == "hold" && info.held.is_some() {
            div.notice.good #done role="status" { "The gate leaves this operation where it is." }
        } @else if what == "release" && info.held.is_none() {
            div.notice.good #done role="status" { "The gate decides about this operation again." }
        }
    }
}

/// A link to the confirmation of going back to where a move came from.
fn undo(info: &PhaseInfo, last: &Move) -> Markup {
    let Some((phase, share)) = as_fields(&last.from) else { return html! {} };
    let reason = encoded(&format!("undo: {} to {}", last.from, last.to));
    html! {
        a.button.small href={ (address(&info.side, &info.operation)) "/move?phase=" (phase) "&share=" (share) "&reason=" (reason) } { "Undo" }
    }
}

/// `canary for 0.1 of clients` → its name and its share, as a form has them.
fn as_fields(shown: &str) -> Option<(&str, &str)> {
    if let Some(share) = shown.strip_prefix("canary for ").and_then(|rest| rest.strip_suffix(" of clients")) {
        return Some(("canary", share));
    }
    if let Some(share) =
        shown.strip_prefix("translated, ").and_then(|rest| rest.strip_suffix(" of requests checked"))
    {
        return Some(("translated", share));
    }
    PHASES.contains(&shown).then_some((shown, ""))
}

fn charts(visit: &Visit<'_>, info: &PhaseInfo) -> Markup {
    let span = Span::of(visit.query.get("span"));
    let line = visit.studio.traffic.operation(&info.side, &info.operation, span);
    let traffic = charts::traffic(&line, span);
    let latency = charts::latency(&line, format!("Latency over {}", span.words()));
    let threshold = Threshold::default();
    let (mut compared, mut different) = (0, 0);
    let mut differing = Vec::with_capacity(line.slots.len());
    let mut bounds = Vec::with_capacity(line.slots.len());
    for (_, point) in &line.slots {
        if let Some(point) = point {
            compared += point.compared;
            different += point.different;
        }
        let is_known = compared > 0;
        differing.push(is_known.then(|| different as f64 / compared as f64 * 100.0));
        bounds.push(is_known.then(|| exact_upper(different, compared, threshold.confidence) * 100.0));
    }
    let differences = Chart {
        id: "chart-differences",
        label: format!(
            "Share of compared answers that differ, summed over {}, with its upper bound",
            span.words()
        ),
        times: line.times(),
        series: vec![
            Series::new("differ", "%", "s-errors", true, differing),
            Series::new("at most", "%", "s-second", false, bounds),
        ],
        threshold: Some((threshold.mismatch_max * 100.0, "threshold")),
        axis: |value| percent(value / 100.0),
    };
    html! {
        section.panel.w4 aria-labelledby="traffic-title" { header { h2 #traffic-title { "Traffic" } (span_links(visit, span)) } (traffic.draw()) }
        section.panel.w4 aria-labelledby="latency-title" { header { h2 #latency-title { "Latency" } } (latency.draw()) }
        section.panel.w4 aria-labelledby="differences-title" {
            header { h2 #differences-title { "Differences" } }
            @if compared > 0 { (differences.draw()) } @else { p.soft { "Nothing was compared in " (span.words()) "." } }
        }
    }
}

fn span_links(visit: &Visit<'_>, span: Span) -> Markup {
    html! {
        nav.aside.segmented aria-label="Time shown" {
            a href={ (visit.path) (visit.query.with("span", "")) } aria-current=[(span == Span::Hour).then_some("true")] { "Hour" }
            a href={ (visit.path) (visit.query.with("span", "day")) } aria-current=[(span == Span::Day).then_some("true")] { "Day" }
        }
    }
}

fn evidence(visit: &Visit<'_>, summary: Option<&Summary>, gate: Option<&GateView>) -> Markup {
    let report = summary.map(|summary| report_on(std::slice::from_ref(summary), Threshold::default()));
    let report = report.as_ref().and_then(|report| report.operations.first());
    html! {
        @match report {
            None => p.soft { "Nothing was compared in this phase yet. In shadow and canary, and for the checked share of translated, both sides are asked." },
            Some(report) => {
                @let tone = match report.proof { Proof::Within => Tone::Good, Proof::NotEnough => Tone::Quiet, Proof::Above => Tone::Bad };
                p { (badge(tone, report.proof.word())) " " (report.next) }
                dl.facts.numbers {
                    dt { "Compared" } dd { (count(report.counts.compared())) " answers, since " (moment(report.since_ms, visit.now_ms)) }
                    dt { "Different" } dd {
                        (count(report.counts.different))
                        @if let Some(equal) = report.equal_rate { ", " (percent(1.0 - equal)) }
                        ", truly at most " strong { (percent(report.mismatch_bound)) } " (95 % sure)"
                    }
                    @if report.counts.planned > 0 { dt { "Planned writes" } dd { (count(report.counts.planned)) ", of these wrong " (count(report.counts.planned_wrong)) } }
                    @if report.counts.read_back > 0 { dt { "Read back" } dd { (count(report.counts.read_back)) " effects, of these different " (count(report.counts.read_back_different)) } }
                    dt { "Excused" } dd {
                        (count(report.counts.expected)) " expected, " (count(report.counts.declared_noise)) " declared noise, " (count(report.counts.learnt_noise)) " learnt noise"
                    }
                    @if report.counts.reference_unanswered + report.counts.candidate_unanswered > 0 {
                        dt { "Without an answer" } dd { (count(report.counts.reference_unanswered)) " of the reference, " (count(report.counts.candidate_unanswered)) " of the candidate" }
                    }
                    @if report.counts.dropped > 0 { dt { "Not compared" } dd { (count(report.counts.dropped)) ", for lack of room" } }
                }
            }
        }
        h3 { "The gate" }
        @match gate {
            None => p.soft { "Closed for this operation: only people move it." },
            Some(gate) => {
                p { "It says: " strong { (gate.decision) } "." }
                @let policy = &gate.policy.policy;
                table {
                    thead { tr { th { "Demand" } th.n { "Wanted" } th.n { "Now" } } }
                    tbody {
                        tr { td { "Comparisons in this phase" } td.n { "≥ " (count(policy.samples_min)) } td.n { (count(gate.decision.compared)) } }
                        tr { td { "Time in this phase" } td.n { "≥ " (span(policy.duration_min_ms / 1000)) } td.n { (span(gate.decision.in_phase_ms / 1000)) } }
                        tr { td { "True rate of differences, " (percent(policy.confidence)) " sure" } td.n { "≤ " (percent(policy.mismatch_max)) } td.n { (percent(gate.decision.interval.lower)) " to " (percent(gate.decision.interval.upper)) } }
                        @if let Some(after) = policy.rollback_after { tr { td { "Rolled back after differences" } td.n { (count(after)) } td.n { (count(gate.decision.different)) } } }
                    }
                }
            }
        }
    }
}

fn controls(visit: &Visit<'_>, info: &PhaseInfo) -> Markup {
    let here = address(&info.side, &info.operation);
    html! {
        p.soft {
            "Set by " (info.from)
            @if let Some(since) = &info.since { " " (moment_text(since, visit.now_ms)) }
            "; configured: " (info.configured.phase) "."
        }
        @if let Some(held) = &info.held {
            p.notice.warn { "Held since " (moment_text(&held.since, visit.now_ms)) @if !held.who.is_empty() { " by " (held.who) } @if !held.reason.is_empty() { ": " (held.reason) } "." }
        }
        @if !visit.may_operate() {
            p.soft { "Sign in with the token that may change things to move it." }
        } @else {
            form.stack method="get" action={ (here) "/move" } {
                div.row {
                    label { "Phase" select #phase name="phase" {
                        @for name in PHASES { option value=(name) selected[name == info.now.phase] { (name) } }
                        option value=(AS_CONFIGURED) { "as configured" }
                    } }
                    label { "Share" input #share type="text" inputmode="decimal" name="share" value=(info.now.share.map(|share| share.to_string()).unwrap_or_default()) placeholder="0.05 or 5%"; }
                }
                label { "Reason" input #reason type="text" name="reason" maxlength=(REASON_CHARS_MAX) placeholder="Stands in the history"; }
                button.primary type="submit" { "Go on…" }
            }
            form.stack.above method="post" action={ (here) @if info.held.is_some() { "/release" } @else { "/hold" } } {
                (visit.form_token())
                @if info.held.is_none() {
                    label { "Hold the gate" input #hold-reason type="text" name="reason" maxlength=(REASON_CHARS_MAX) placeholder="Why it should stay where it is"; }
                    button type="submit" { "Hold" }
                } @else {
                    button type="submit" { "Let the gate decide again" }
                }
            }
        }
    }
}

fn findings(visit: &Visit<'_>, summary: Option<&Summary>) -> Markup {
    let tallies = summary.map_or(&[][..], |summary| &summary.tallies[..]);
    html! {
        @if tallies.is_empty() { p.soft { "Nothing is known to differ." } } @else {
            div.scroll role="region" aria-label="What differs" tabindex="0" { table {
                thead { tr { th { "Field" } th { "How" } th { "Behind it" } th.n { "Calls" } th { "Last" } th { "Example" } } }
                tbody { @for (at, tally) in tallies.iter().take(20).enumerate() {
                    tr id={ "finding-" (at) } {
                        td { code { (tally.pattern) } (tally.reading()) } td { (badge(Tone::Quiet, tally.kind.word())) }
                        td { (tally.cause) } td.n { (count(tally.calls)) } td { (moment(tally.last_ms, visit.now_ms)) }
                        td { (tally.example) }
                    }
                } }
            } }
            @if tallies.len() > 20 { p.soft { (counted(tallies.len() as u64 - 20, "further difference")) "." } }
        }
    }
}

fn moves_table(visit: &Visit<'_>, moved: &[&Move]) -> Markup {
    html! {
        @if moved.is_empty() { p.soft { "It was never moved." } } @else {
            div.scroll role="region" aria-label="Moves of this operation" tabindex="0" { table {
                thead { tr { th { "When" } th { "From" } th { "To" } th { "By" } th { "Why" } } }
                tbody { @for one in moved.iter().take(MOVES) {
                    tr { td { (moment_text(&one.at, visit.now_ms)) } td { (one.from) } td { (one.to) } td { (one.by) @if !one.who.is_empty() { ", " (one.who) } } td { (one.evidence) } }
                } }
            } }
        }
    }
}

// Moving -----------------------------------------------------------------------------------------------------------------

/// The phase that fields ask for.
fn wanted(fields: &Fields) -> Result<Phase, String> {
    let name = fields.get("phase");
    let share = fields.get("share").trim();
    // `legacy` and `shadow` have none; what stood in the field was another phase's.
    let share = if share.is_empty() || ["legacy", "shadow"].contains(&name) {
        None
    } else {
        Some(share.parse::<Share>()?)
    };
    Phase::named(name, share).map_err(|fault| fault.to_string())
}

/// The page that says what a move will do, and asks whether to do it.
async fn asked_to_move(visit: &Visit<'_>, info: &PhaseInfo) -> Answer {
    if !visit.may_operate() {
        let words = html! { p { "Sign in with the token that may change things." } };
        return visit.page(Page::notice(StatusCode::FORBIDDEN, "Nothing was changed", words));
    }
    if visit.query.get("phase") != AS_CONFIGURED
        && let Err(trouble) = wanted(&visit.query)
    {
        return not_done(visit, info, &trouble);
    }
    let clients = visit.clients().await;
    let clients = clients.value.as_deref().map_or(&[][..], Vec::as_slice);
    let body = html! {
        div.page-head {
            p.crumbs { a href=(address(&info.side, &info.operation)) { (info.operation) } }
            h1 { "Move this operation?" }
        }
        (confirmation(visit, info, &visit.query, clients))
    };
    visit.page(Page::still(Tab::Operations, "Move this operation?", body))
}

fn confirmation(visit: &Visit<'_>, info: &PhaseInfo, fields: &Fields, clients: &[ClientInfo]) -> Markup {
    let back = fields.get("phase") == AS_CONFIGURED;
    let to = if back {
        Phase::named(info.configured.phase, info.configured.share.and_then(Share::new)).ok()
    } else {
        wanted(fields).ok()
    };
    let here = address(&info.side, &info.operation);
    html! {
        section.panel.confirm {
            p.lead { (operation(&info.operation)) " of " strong { (info.side) } }
            p { (phase(info.now.phase, info.now.share)) " → " @if let Some(to) = to { (phase(to.name(), to.share().filter(|share| !share.is_none()).map(Share::part))) } }
            h2 { "What will happen" }
            ul { @if let Some(to) = to { @for line in consequences(info, to, clients) { li { (line) } } } }
            form.stack method="post" action={ (here) "/move" } {
                (visit.form_token())
                input type="hidden" name="version" value=(info.version);
                input type="hidden" name="phase" value=(fields.get("phase"));
                input type="hidden" name="share" value=(fields.get("share"));
                label { "Reason" input #reason type="text" name="reason" maxlength=(REASON_CHARS_MAX) value=(fields.get("reason")) placeholder="Stands in the history"; }
                div.actions {
                    button.primary type="submit" { "Move it" }
                    a.button href=(here) { "Leave it" }
                }
            }
        }
    }
}

/// What a phase means for the clients of an operation, in sentences.
fn consequences(info: &PhaseInfo, to: Phase, clients: &[ClientInfo]) -> Vec<String> {
    let own = format!("the service of {}", info.side);
    let mut lines = Vec::new();
    match to {
        Phase::Legacy => {
            lines.push(format!("All calls go to {own}, unchanged."));
            lines.push("Nothing is compared any more, so nothing more is learnt about it.".to_owned());
        }
        Phase::Shadow => {
            lines.push(format!("{} answers all clients, unchanged.", capital(&own)));
            lines.push(if info.writes {
                "Beside it the other side's calls are planned and never sent, since this operation changes something.".to_owned()
            } else {
                "Beside it the other side is asked, and both answers are compared. Clients do not wait for that.".to_owned()
            });
        }
        Phase::Canary(share) => {
            let living: Vec<&ClientInfo> =
                clients.iter().filter(|client| client.revoked_at.is_none()).collect();
            let chosen: Vec<&str> = living
                .iter()
                .map(|client| client.name.as_str())
                .filter(|name| share.has_client(name, &info.operation))
                .collect();
            lines.push(format!("{} of the clients get translated answers of the other side; the others are answered by {own}.", percent(share.part())));
            lines.push(match chosen.len() {
                0 => format!(
                    "Of the {} enrolled now that is none yet.",
                    counted(living.len() as u64, "client")
                ),
                n if n <= NAMED => format!(
                    "Of the {} enrolled now these are: {}.",
                    counted(living.len() as u64, "client"),
                    chosen.join(", ")
                ),
                n => format!(
                    "Of the {} enrolled now these are {n}, such as {}.",
                    counted(living.len() as u64, "client"),
                    chosen[..NAMED].join(", ")
                ),
            });
        }
        Phase::Translated { check } => {
            lines.push("All clients get translated answers of the other side.".to_owned());
            lines.push(if check.is_none() {
                format!("{} is not asked any more, and nothing is compared.", capital(&own))
            } else {
                format!(
                    "For {} of the requests {own} is asked beside, and both answers are compared.",
                    percent(check.part())
                )
            });
        }
    }
    lines.push(
        "It takes effect with the next request; requests that are being answered finish as they began."
            .to_owned(),
    );
    lines.push("Evidence is counted anew from then on.".to_owned());
    lines
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Someone else was faster: what they did, and the form once more with what was written.
async fn second(visit: &Visit<'_>, seen: &PhaseInfo, form: &Fields) -> Answer {
    let Ok(now) = visit.parts.phases.get(Some(&seen.side), &seen.operation) else { return visit.not_found() };
    let moves = visit.moves().await;
    let last = moves
        .value
        .iter()
        .flat_map(|all| all.iter())
        .find(|one| one.side == now.side && one.operation == now.operation);
    let clients = visit.clients().await;
    let clients = clients.value.as_deref().map_or(&[][..], Vec::as_slice);
    let body = html! {
        div.page-head { h1 { "Someone was faster" } }
        div.notice.warn role="alert" {
            p {
                "Nothing was changed by you. While you were looking, "
                @match last {
                    Some(last) => {
                        strong { @if last.who.is_empty() { (last.by) } @else { (last.who) } } " moved it from " (last.from) " to " (last.to) " "
                        (moment_text(&last.at, visit.now_ms)) @if !last.evidence.is_empty() { ": “" (last.evidence) "”" } "."
                    },
                    None => "it was moved.",
                }
            }
            p { "It is in " (phase(now.now.phase, now.now.share)) " now. If you still want it, send it once more." }
        }
        (confirmation(visit, &now, form, clients))
    };
    visit.page(Page::still(Tab::Operations, "Someone was faster", body).status(StatusCode::CONFLICT))
}

fn not_done(visit: &Visit<'_>, info: &PhaseInfo, trouble: &str) -> Answer {
    let words = html! {
        p { (trouble) "." }
        p { a.button href=(address(&info.side, &info.operation)) { "Back to the operation" } }
    };
    visit.page(Page::notice(StatusCode::UNPROCESSABLE_ENTITY, "Nothing was changed", words))
}

fn unknown(visit: &Visit<'_>, error: &PhasesError) -> Answer {
    let words = html! { p { (told(error)) "." } p { a.button href="/operations" { "All operations" } } };
    visit.page(Page::notice(StatusCode::NOT_FOUND, "No such operation", words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_move_came_from_can_be_asked_for_again() {
        for phase in [
            Phase::Legacy,
            Phase::Shadow,
            Phase::Canary(Share::new(0.25).unwrap()),
            Phase::Translated { check: Share::new(0.01).unwrap() },
            Phase::default(),
        ] {
            let shown = phase.to_string();
            let (name, share) = as_fields(&shown).unwrap_or_else(|| panic!("{shown} is read back"));
            assert_eq!(wanted(&Fields::read(&format!("phase={name}&share={share}"))), Ok(phase), "{shown}");
        }
        assert_eq!(as_fields("nothing known"), None);
    }

    #[test]
    fn a_share_that_stood_in_the_field_does_not_keep_an_operation_from_shadow() {
        assert_eq!(wanted(&Fields::read("phase=shadow&share=0.5")), Ok(Phase::Shadow));
        assert!(wanted(&Fields::read("phase=canary&share=")).is_err());
        assert!(wanted(&Fields::read("phase=canary&share=2")).is_err());
    }
}
