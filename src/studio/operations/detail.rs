//! One operation: its charts, its evidence, its findings and transitions, and what may be done.

use super::{AS_CONFIGURED, REASON_CHARS_MAX, address};
use crate::admin::Answer;
use crate::studio::charts::{self, Chart, Series};
use crate::studio::clients::callers;
use crate::studio::fields::encoded;
use crate::studio::layout::{Page, Tab, unread};
use crate::studio::traffic::Span;
use crate::studio::words::{
    Tone, badge, count, counted, moment, moment_text, operation, percent, phase, span,
};
use crate::studio::{HISTORY_MAX, Visit, route};
use maud::{Markup, html};
use switchback_engine::diff::{Proof, Summary, Threshold, report as report_on};
use switchback_engine::evidence::{QUANTILES, exact_upper};
use switchback_gateway::shadow::{GateView, PHASES, PhaseInfo, Transition};

/// Transitions of one operation that are shown.
const TRANSITIONS: usize = 12;

pub(super) async fn detail(visit: &Visit<'_>, info: &PhaseInfo) -> Answer {
    let (summaries, transitions, gates, usage) =
        tokio::join!(visit.current_summaries(), visit.transitions(), visit.gates(), visit.usage());
    let is_this = |side: &str, operation: &str| side == info.side && operation == info.operation;
    let summary =
        summaries.value.as_deref().and_then(|all| all.iter().find(|one| is_this(&one.side, &one.operation)));
    let moved: Vec<&Transition> = transitions
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
                header { h2 #evidence-title { "Evidence" } span.soft { "of this period in its phase, under this pack" } }
                @if summaries.value.is_none() || gates.value.is_none() { (unread()) } @else { (evidence(visit, summary, gate)) }
            }
            section.panel.w4 #controls aria-labelledby="controls-title" {
                header { h2 #controls-title { "Move it" } }
                (controls(visit, info))
            }
            section.panel.w12 #findings aria-labelledby="findings-title" {
                header { h2 #findings-title { "What differs" } a.aside href={ "/differences/" (encoded(&info.side)) "/" (encoded(&info.operation)) } { "Samples side by side" } }
                @if summaries.value.is_none() { (unread()) } @else { (findings(visit, summary)) }
            }
            @if let Some((serves, route)) = found {
                section.panel.w8 #route data-keep aria-labelledby="route-title" {
                    header { h2 #route-title { "How it is answered" } span.soft { (route.origin.file) ":" (route.origin.line) } }
                    (route::diagram(pack, serves, route, visit.parts.workbench.upstream(&pack.sides[serves].name).is_some()))
                }
                section.panel.w4 #losses data-keep aria-labelledby="losses-title" {
                    header { h2 #losses-title { "What is lost" } }
                    (route::losses(pack, serves, route))
                }
            }
            section.panel.w12 #callers aria-labelledby="callers-title" {
                header { h2 #callers-title { "Callers" } span.soft { "over all replicas, since calls were first counted, at most 400 days ago" } }
                @match usage.value.as_deref() { Some(usage) => (callers(visit, &info.side, &info.operation, usage)), None => (unread()) }
            }
            section.panel.w12 #transitions aria-labelledby="transitions-title" {
                header { h2 #transitions-title { "Transitions" } a.aside href={ "/history?q=" (encoded(&info.operation)) } { "History" } }
                @if transitions.value.is_none() { (unread()) } @else { (transitions_table(visit, &moved)) }
            }
        }
    };
    visit.page(Page::live(Tab::Operations, info.operation.clone(), body))
}

/// What was just done, with the way back.
pub(super) fn done(visit: &Visit<'_>, info: &PhaseInfo, moved: &[&Transition]) -> Markup {
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

/// A link to the confirmation of going back to where a transition came from.
pub(super) fn undo(info: &PhaseInfo, last: &Transition) -> Markup {
    let Some((phase, share)) = as_fields(&last.from) else { return html! {} };
    let reason = encoded(&format!("undo: {} to {}", last.from, last.to));
    html! {
        a.button.small href={ (address(&info.side, &info.operation)) "/move?phase=" (phase) "&share=" (share) "&reason=" (reason) } { "Undo" }
    }
}

/// `canary for 0.1 of clients` → its name and its share, as a form has them.
pub(super) fn as_fields(shown: &str) -> Option<(&str, &str)> {
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

pub(super) fn charts(visit: &Visit<'_>, info: &PhaseInfo) -> Markup {
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
            "Share of compared answers that differ or did not repeat, summed over {}, with its upper bound",
            span.words()
        ),
        times: line.times(),
        series: vec![
            Series::new("differ or unsettled", "%", "s-errors", true, differing),
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

pub(super) fn span_links(visit: &Visit<'_>, span: Span) -> Markup {
    html! {
        nav.aside.segmented aria-label="Time shown" {
            a href={ (visit.path) (visit.query.with("span", "")) } aria-current=[(span == Span::Hour).then_some("true")] { "Hour" }
            a href={ (visit.path) (visit.query.with("span", "day")) } aria-current=[(span == Span::Day).then_some("true")] { "Day" }
        }
    }
}

pub(super) fn evidence(visit: &Visit<'_>, summary: Option<&Summary>, gate: Option<&GateView>) -> Markup {
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
                        @if let Some(equal) = report.equal_rate { ", with unsettled ones " (percent(1.0 - equal)) }
                        ", truly at most " strong { (percent(report.mismatch_bound)) } " (95 % sure)"
                    }
                    @if report.counts.unsettled > 0 {
                        dt { "Unsettled" } dd {
                            (count(report.counts.unsettled)) " differed once and did not repeat, truly at most " (percent(report.unsettled_bound)) " (95 % sure). They count against a promotion."
                        }
                    }
                    @if report.counts.planned > 0 { dt { "Planned writes" } dd { (count(report.counts.planned)) ", of these wrong " (count(report.counts.planned_wrong)) } }
                    @for (why, writes) in &report.counts.not_read_back { dt { "Not read back" } dd { (counted(*writes, "write")) ": " (why.words()) } }
                    @if report.counts.read_back > 0 { dt { "Read back" } dd { (count(report.counts.read_back)) " effects, of these different " (count(report.counts.read_back_different)) } }
                    dt { "Excused" } dd {
                        (count(report.counts.expected)) " expected, " (count(report.counts.declared_noise)) " declared noise, " (count(report.counts.learnt_noise)) " learnt noise"
                    }
                    @if report.counts.reference_unanswered + report.counts.candidate_unanswered > 0 {
                        dt { "Without an answer" } dd { (count(report.counts.reference_unanswered)) " of the reference, " (count(report.counts.candidate_unanswered)) " of the candidate" }
                    }
                    @if report.counts.unpaired() > 0 {
                        dt { "Sent by one side alone" } dd { (count(report.counts.events_missing)) " of the reference, " (count(report.counts.events_extra)) " of the candidate" }
                    }
                    @if report.timed > 0 {
                        dt { "Timed" } dd {
                            (counted(report.timed, "reading")) " of either side, by the shadow"
                            @for quantile in &report.latency { br; (quantile.name) ": " (quantile.reference) " of the reference, " (quantile.candidate) " of the candidate" }
                        }
                    }
                    @if report.counts.dropped > 0 {
                        dt { "Not compared" } dd {
                            (count(report.counts.dropped))
                            @for (why, calls) in &report.counts.skipped { br; (count(*calls)) ": " (why.words()) }
                        }
                    }
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
                        tr { td { "Differences that did not repeat" } td.n { "≤ " (percent(policy.unsettled_max)) } td.n { (count(gate.decision.unsettled)) } }
                        @for (at, (name, _)) in QUANTILES.iter().enumerate() {
                            @if let Some(max) = policy.latency_max[at] {
                                tr { td { "Latency at " (name) ", times that of the reference" } td.n { "≤ " (max) } td.n { (latency_ratio(summary, name)) } }
                            }
                        }
                        @if let Some(after) = policy.rollback_after { tr { td { "Rolled back after differences" } td.n { (count(after)) } td.n { (count(gate.decision.different)) } } }
                    }
                }
            }
        }
    }
}

/// The least and the greatest ratio of both sides' times at a quantile that the evidence leaves.
fn latency_ratio(summary: Option<&Summary>, name: &str) -> String {
    let timed = summary.map(|summary| &summary.timed).filter(|timed| timed.pairs() > 0);
    let quantiles = timed.map(|timed| timed.quantiles(Threshold::default().confidence));
    let found = quantiles.and_then(|all| all.into_iter().find(|one| one.name == name));
    let ratio = |one: Option<f64>, other: Option<f64>| Some(one? / other.filter(|other| *other > 0.0)?);
    let Some(found) = found else { return "unknown: no timings".to_owned() };
    let (reference, candidate) = (found.reference, found.candidate);
    let least = ratio(Some(candidate.lower_ms), reference.upper_ms);
    let most = ratio(candidate.upper_ms, Some(reference.lower_ms));
    match (least, most) {
        (Some(least), Some(most)) => format!("{least:.2} to {most:.2}"),
        (Some(least), None) => format!("at least {least:.2}"),
        _ => "unknown: too few timings".to_owned(),
    }
}

pub(super) fn controls(visit: &Visit<'_>, info: &PhaseInfo) -> Markup {
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
                fieldset.bare disabled[visit.store_away.is_some()] { button.primary type="submit" { "Go on…" } }
            }
            form.stack.above method="post" action={ (here) @if info.held.is_some() { "/release" } @else { "/hold" } } {
                (visit.form_token())
                @if info.held.is_none() {
                    label { "Hold the gate" input #hold-reason type="text" name="reason" maxlength=(REASON_CHARS_MAX) placeholder="Why it should stay where it is"; }
                    fieldset.bare disabled[visit.store_away.is_some()] { button type="submit" { "Hold" } }
                } @else {
                    fieldset.bare disabled[visit.store_away.is_some()] { button type="submit" { "Let the gate decide again" } }
                }
            }
            @if visit.store_away.is_some() { (visit.with_store(&html! {})) }
        }
    }
}

pub(super) fn findings(visit: &Visit<'_>, summary: Option<&Summary>) -> Markup {
    let tallies = summary.map_or(&[][..], |summary| &summary.tallies[..]);
    html! {
        @if tallies.is_empty() { p.soft { "No difference was seen in this phase." } } @else {
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

pub(super) fn transitions_table(visit: &Visit<'_>, moved: &[&Transition]) -> Markup {
    html! {
        @if moved.is_empty() { p.soft { "No transitions among the newest " (count(u64::from(HISTORY_MAX))) "." } } @else {
            div.scroll role="region" aria-label="Transitions of this operation" tabindex="0" { table {
                thead { tr { th { "When" } th { "From" } th { "To" } th { "By" } th { "Why" } } }
                tbody { @for one in moved.iter().take(TRANSITIONS) {
                    tr { td { (moment_text(&one.at, visit.now_ms)) } td { (one.from) } td { (one.to) } td { (one.by) @if !one.who.is_empty() { ", " (one.who) } } td { (one.evidence) } }
                } }
            } }
        }
    }
}

// Moving -----------------------------------------------------------------------------------------------------------------
