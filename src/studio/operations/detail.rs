//! The page of one operation: charts, evidence, findings, transitions and controls.

use super::{AS_CONFIGURED, REASON_CHARS_MAX, address, rollout};
use crate::admin::AdminResponse;
use crate::studio::charts::{self, Chart, Series};
use crate::studio::clients::{COUNTED_SINCE, callers};
use crate::studio::differences::further;
use crate::studio::editor;
use crate::studio::fields::percent_encode;
use crate::studio::layout::{Page, Tab, unread};
use crate::studio::marks;
use crate::studio::traffic::{ChartLine, ChartSpan, OperationPoint};
use crate::studio::words::{
    Tone, badge, count, count_noun, moment, moment_text, operation, percent, phase, span,
};
use crate::studio::{HISTORY_MAX, PageContext, report_of, route};
use maud::{Markup, html};
use switchback_engine::diff::{OperationReport, Proof, Summary, Threshold};
use switchback_engine::evidence::{Basis, QUANTILES, Timed, exact_upper};
use switchback_gateway::shadow::{GateView, PHASES, PhaseInfo, Transition};

/// Differences of one operation that are listed.
const FINDINGS: usize = 20;
/// Most transitions of one operation.
const TRANSITIONS: usize = 12;

pub(super) async fn detail(visit: &PageContext<'_>, info: &PhaseInfo) -> AdminResponse {
    let (summaries, transitions, gates, usage) =
        tokio::join!(visit.current_summaries(), visit.transitions(), visit.gates(), visit.usage());
    let is_this = |side: &str, operation: &str| side == info.side && operation == info.operation;
    let summary = summaries.rows().iter().find(|one| is_this(&one.side, &one.operation));
    let moved = transitions.rows().iter().filter(|one| is_this(&one.side, &one.operation));
    let moved: Vec<&Transition> = moved.collect();
    let report = summary.map(|summary| report_of(&visit.parts.phases, summary));
    let gate = gates.rows().iter().find(|one| is_this(&one.side, &one.operation));
    let program = visit.parts.program.load_full();
    let pack = program.pack();
    let found =
        pack.directions.iter().find(|direction| pack.sides[direction.serves].name == info.side).and_then(
            |direction| {
                let route = direction.routes.iter().find(|route| *route.operation.key == *info.operation)?;
                Some((direction.serves, route))
            },
        );
    let charts = charts(visit, info).await;
    let body = html! {
        div.page-head {
            p.crumbs { a href="/operations" { "Operations" } " / " (info.side) }
            h1 { (operation(&info.operation)) }
            div.aside { (phase(info.now.phase, info.now.share)) @if info.held.is_some() { " " (badge(Tone::Warn, "held")) } }
        }
        (visit.staleness(&summaries))
        (done(visit, info, &moved))
        div.grid {
            (charts)
            section.panel.w8 #evidence aria-labelledby="evidence-title" {
                header { h2 #evidence-title { "Evidence" } span.soft { "of this period in its phase, under this pack" } }
                @if summaries.value.is_none() || gates.value.is_none() { (unread()) } @else { (evidence(report.as_ref(), visit.now_ms)) (gate_table(gate, summary)) }
            }
            section.panel.w4 #controls aria-labelledby="controls-title" {
                header { h2 #controls-title { "Change phase" } }
                (controls(visit, info))
            }
            (rollout::panel(visit, info, gate))
            section.panel.w12 #findings aria-labelledby="findings-title" {
                header { h2 #findings-title { "What differs" } a.aside href={ "/differences/" (percent_encode(&info.side)) "/" (percent_encode(&info.operation)) } { "Samples side by side" } }
                @if summaries.value.is_none() { (unread()) } @else { (findings(summary, visit.now_ms)) }
            }
            @if let Some((serves, route)) = found {
                section.panel.w8 #route data-keep aria-labelledby="route-title" {
                    header { h2 #route-title { "Route" } span.soft { (route.origin.file) ":" (route.origin.line) } }
                    (route::diagram(pack, serves, route, visit.parts.workbench.upstream(&pack.sides[serves].name).is_some()))
                }
                section.panel.w4 #losses data-keep aria-labelledby="losses-title" {
                    header { h2 #losses-title { "Losses" } }
                    (route::losses(pack, serves, route))
                }
            }
            section.panel.w12 #callers aria-labelledby="callers-title" {
                header { h2 #callers-title { "Callers" } span.soft { (COUNTED_SINCE) } a.aside href={ "/requests?operation=" (percent_encode(&info.operation)) } { "Recent requests" } }
                @match usage.value.as_deref() { Some(usage) => (callers(visit, &info.side, &info.operation, usage)), None => (unread()) }
            }
            section.panel.w12 #transitions aria-labelledby="transitions-title" {
                header { h2 #transitions-title { "Transitions" } a.aside href={ "/history?q=" (percent_encode(&info.operation)) } { "History" } }
                @if transitions.value.is_none() { (unread()) } @else { (transitions_table(&info.operation, &moved, visit.now_ms)) }
            }
        }
    };
    visit.page(Page::live(Tab::Operations, info.operation.clone(), body))
}

/// Renders the confirmation of a completed action, with a link to undo it.
pub(super) fn done(visit: &PageContext<'_>, info: &PhaseInfo, moved: &[&Transition]) -> Markup {
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
        } @else if let Some(text) = rollout::outcome(what) {
            div.notice.good #done role="status" { (text) }
        } @else if what == "hold" && info.held.is_some() {
            div.notice.good #done role="status" { "Automatic transitions of this operation are paused." }
        } @else if what == "release" && info.held.is_none() {
            div.notice.good #done role="status" { "Automatic transitions of this operation are resumed." }
        }
    }
}

/// Renders a link to the confirmation page of the reverse transition.
pub(super) fn undo(info: &PhaseInfo, last: &Transition) -> Markup {
    let Some((phase, share)) = as_fields(&last.from) else { return html! {} };
    let reason = percent_encode(&format!("undo: {} to {}", last.from, last.to));
    html! {
        a.button.small href={ (address(&info.side, &info.operation)) "/move?phase=" (phase) "&share=" (share) "&reason=" (reason) } { "Undo" }
    }
}

/// Parses a displayed phase such as `canary for 0.1 of clients` into the form's name and share.
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

async fn charts(visit: &PageContext<'_>, info: &PhaseInfo) -> Markup {
    let span = ChartSpan::from_word(visit.query.get("span"));
    let line = visit.studio.traffic.operation(&info.side, &info.operation, span);
    let mut traffic = charts::traffic(&line, span);
    let mut latency = charts::latency(&line, format!("Latency over {}", span.words()));
    let threshold = visit.parts.phases.threshold(&info.side, &info.operation);
    let (differing, bounds) = shares(&line, threshold);
    let is_compared = differing.iter().any(Option::is_some);
    let mut differences = Chart {
        id: "chart-differences",
        label: format!(
            "Share of compared answers that differ or did not repeat, summed over {}, with its upper bound",
            span.words()
        ),
        times: line.times(),
        is_cropped: line.is_cropped,
        series: vec![
            Series::new("differ or unsettled", "%", "s-errors", true, differing),
            Series::new("at most", "%", "s-second", false, bounds),
        ],
        threshold: Some((threshold.mismatch_max * 100.0, "threshold")),
        axis: |value| percent(value / 100.0),
        marks: Vec::new(),
    };
    let of = Some((info.side.as_str(), info.operation.as_str()));
    let marks = marks::mark(visit, &mut [&mut traffic, &mut latency, &mut differences], span, of).await;
    html! {
        section.panel.w4 aria-labelledby="traffic-title" { header { h2 #traffic-title { "Traffic" } (span_links(visit, span)) } (traffic.draw()) }
        section.panel.w4 aria-labelledby="latency-title" { header { h2 #latency-title { "Latency" } } (latency.draw()) }
        section.panel.w4 aria-labelledby="differences-title" {
            header { h2 #differences-title { "Differences" } }
            @if is_compared { (differences.draw()) } @else { p.soft { "No comparisons in " (span.words()) "." } }
        }
        section.panel.w12 aria-labelledby="marks-title" { header { h2 #marks-title { "Changes in " (span.words()) } } (marks) }
    }
}

/// The percentages of comparisons that differ or are unsettled, summed up to each slot, and their
/// upper bounds.
fn shares(line: &ChartLine<OperationPoint>, threshold: Threshold) -> (Vec<Option<f64>>, Vec<Option<f64>>) {
    // Cumulative, since single slots have too few comparisons for a useful bound.
    let (mut compared, mut different) = (0, 0);
    let points = line.slots.iter().map(|(_, point)| {
        if let Some(point) = point {
            compared += point.compared;
            different += point.different;
        }
        (compared > 0).then(|| {
            // Exact: the usual approximation has no width as long as all answers are equal.
            let bound = exact_upper(different, compared, threshold.confidence);
            (different as f64 / compared as f64 * 100.0, bound * 100.0)
        })
    });
    points.map(Option::unzip).unzip()
}

pub(super) fn span_links(visit: &PageContext<'_>, span: ChartSpan) -> Markup {
    html! {
        nav.aside.segmented aria-label="Time shown" {
            a href={ (visit.path) (visit.query.with("span", "")) } aria-current=[(span == ChartSpan::Hour).then_some("true")] { "Hour" }
            a href={ (visit.path) (visit.query.with("span", "day")) } aria-current=[(span == ChartSpan::Day).then_some("true")] { "Day" }
        }
    }
}

/// The counts of the present period, with their bounds.
fn evidence(report: Option<&OperationReport>, now_ms: i64) -> Markup {
    let sure = |report: &OperationReport| format!(" ({} sure)", percent(report.threshold.confidence));
    html! {
        @match report {
            None => p.soft { "No comparisons in this phase yet. Both sides are called in shadow and canary, and for the checked share in translated." },
            Some(report) => {
                @let tone = match report.proof { Proof::Within => Tone::Good, Proof::NotEnough => Tone::Quiet, Proof::Above => Tone::Bad };
                p { (badge(tone, report.proof.word())) " " (report.next) }
                dl.facts.numbers {
                    dt { "Compared" } dd { (count(report.counts.compared_count())) " answers, since " (moment(report.since_ms, now_ms)) }
                    dt { "Different" } dd {
                        (count(report.counts.different))
                        @if let Some(equal) = report.equal_rate {
                            ", with unsettled ones " @if report.counts.unpaired_count() > 0 { "and those sent by one side alone " } (percent(1.0 - equal))
                            ", truly at most " strong { (percent(report.mismatch_bound)) } (sure(report))
                        }
                    }
                    @if report.counts.unsettled > 0 {
                        dt { "Unsettled" } dd {
                            (count(report.counts.unsettled)) " differed once and did not repeat, upper bound " (percent(report.unsettled_bound)) (sure(report)) ". They count against a promotion."
                        }
                    }
                    @if report.counts.planned > 0 { dt { "Planned writes" } dd { (count(report.counts.planned)) ", of these wrong " (count(report.counts.planned_wrong)) } }
                    @for (why, writes) in &report.counts.not_read_back { dt { "Not read back" } dd { (count_noun(*writes, "write")) ": " (why.words()) } }
                    @if report.counts.read_back > 0 { dt { "Read back" } dd { (count(report.counts.read_back)) " effects, of these different " (count(report.counts.read_back_different)) } }
                    dt { "Excused" } dd {
                        (count(report.counts.expected)) " expected, " (count(report.counts.declared_noise)) " declared noise, " (count(report.counts.learnt_noise)) " learnt noise"
                    }
                    @if report.counts.reference_unanswered + report.counts.candidate_unanswered > 0 {
                        dt { "Without an answer" } dd { (count(report.counts.reference_unanswered)) " of the reference, " (count(report.counts.candidate_unanswered)) " of the candidate" }
                    }
                    @if report.counts.unpaired_count() > 0 {
                        dt { "Sent by one side alone" } dd { (count(report.counts.events_missing)) " of the reference, " (count(report.counts.events_extra)) " of the candidate" }
                    }
                    @if report.timed > 0 {
                        dt { "Timed" } dd {
                            (count_noun(report.timed, "reading")) " of either side, by the shadow"
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
    }
}

/// The demands of the gate, each with the evidence that there is for it.
fn gate_table(gate: Option<&GateView>, summary: Option<&Summary>) -> Markup {
    let rate = |basis: Basis| match basis {
        Basis::Answers => "Different answers, unsettled ones included",
        Basis::Unsettled => "Unsettled answers",
        Basis::Plans => "Wrong plans",
        Basis::Effects => "Effects that differ",
    };
    html! {
        h3 { "The gate" }
        @match gate.filter(|gate| gate.is_open) {
            None => p.soft { "Disabled for this operation: transitions are manual." },
            Some(gate) => {
                @let is_planned = gate.rollout.is_some();
                // The transition of a rollout is that of its plan.
                p { "It says: " strong { @if is_planned { (gate.decision.evidence()) } @else { (gate.decision) } } "." }
                @let policy = &gate.policy.policy;
                table {
                    thead { tr { th { "Demand" } th.n { "Wanted" } th.n { "Now" } } }
                    tbody {
                        tr { td { "Comparisons in this phase" } td.n { "≥ " (count(policy.samples_min)) } td.n { (count(gate.counted.answers.compared)) } }
                        @if !is_planned { tr { td { "Time in this phase" } td.n { "≥ " (span(policy.duration_min_ms / 1000)) } td.n { (span(gate.decision.in_phase_ms / 1000)) } } }
                        @for (basis, interval) in &gate.rates {
                            @let max = if *basis == Basis::Unsettled { policy.unsettled_max } else { policy.mismatch_max };
                            tr { td { (rate(*basis)) ", true rate (" (percent(policy.confidence)) " sure)" } td.n { "≤ " (percent(max)) } td.n { (percent(interval.lower)) " to " (percent(interval.upper)) } }
                        }
                        @for (at, (name, _)) in QUANTILES.iter().enumerate() {
                            @if let Some(max) = policy.latency_max[at] {
                                tr { td { "Latency at " (name) ", times that of the reference" } td.n { "≤ " (max) } td.n { (latency_ratio(summary.map(|summary| &summary.timed), name, policy.confidence)) } }
                            }
                        }
                        @if let Some(after) = policy.rollback_after { tr { td { "Rolled back after differences" } td.n { (count(after)) } td.n { (count(gate.counted.different())) } } }
                    }
                }
            }
        }
    }
}

/// Describes the range of the latency ratio between both sides at a quantile, within the confidence
/// bounds.
fn latency_ratio(timed: Option<&Timed>, name: &str, confidence: f64) -> String {
    let timed = timed.filter(|timed| timed.pairs() > 0);
    let quantiles = timed.map(|timed| timed.quantiles(confidence));
    let found = quantiles.and_then(|all| all.into_iter().find(|one| one.name == name));
    let ratio = |one: Option<f64>, other: Option<f64>| Some(one? / other.filter(|other| *other > 0.0)?);
    let Some(found) = found else { return "unknown: no timings".to_owned() };
    let (reference, candidate) = (found.reference, found.candidate);
    // Both quantiles are intervals: the least ratio is of the candidate's lower and the reference's upper
    // bound, the greatest of the opposite ones.
    let least = ratio(Some(candidate.lower_ms), reference.upper_ms);
    let most = ratio(candidate.upper_ms, Some(reference.lower_ms));
    match (least, most) {
        (Some(least), Some(most)) => format!("{least:.2} to {most:.2}"),
        (Some(least), None) => format!("at least {least:.2}"),
        _ => "unknown: too few timings".to_owned(),
    }
}

pub(super) fn controls(visit: &PageContext<'_>, info: &PhaseInfo) -> Markup {
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
            p.soft { "Sign in with the admin token to change the phase." }
        } @else {
            form.stack method="get" action={ (here) "/move" } {
                div.row {
                    label { "Phase" select #phase name="phase" {
                        @for name in PHASES { option value=(name) selected[name == info.now.phase] { (name) } }
                        option value=(AS_CONFIGURED) { "as configured" }
                    } }
                    label { "Share" input #share type="text" inputmode="decimal" name="share" value=(info.now.share.map(|share| share.to_string()).unwrap_or_default()) placeholder="0.05 or 5%"; }
                }
                label { "Reason" input #reason type="text" name="reason" maxlength=(REASON_CHARS_MAX) placeholder="Recorded in the history"; }
                fieldset.bare disabled[visit.store_away.is_some()] { button.primary type="submit" { "Review…" } }
            }
            form.stack.above method="post" action={ (here) @if info.held.is_some() { "/release" } @else { "/hold" } } {
                (visit.form_token())
                @if info.held.is_none() {
                    label { "Pause automatic transitions" input #hold-reason type="text" name="reason" maxlength=(REASON_CHARS_MAX) placeholder="Reason for the pause"; }
                    fieldset.bare disabled[visit.store_away.is_some()] { button type="submit" { "Hold" } }
                } @else {
                    fieldset.bare disabled[visit.store_away.is_some()] { button type="submit" { "Resume automatic transitions" } }
                }
            }
            @if visit.store_away.is_some() { (visit.with_store(&html! {})) }
        }
    }
}

fn findings(summary: Option<&Summary>, now_ms: i64) -> Markup {
    let tallies = summary.map_or(&[][..], |summary| &summary.tallies[..]);
    html! {
        @if tallies.is_empty() { p.soft { "No differences in this phase." } } @else {
            div.scroll role="region" aria-label="What differs" tabindex="0" { table {
                thead { tr { th { "Field" } th { "How" } th { "Behind it" } th.n { "Calls" } th { "Last" } th { "Example" } } }
                tbody { @for (at, tally) in tallies.iter().take(FINDINGS).enumerate() {
                    tr id={ "finding-" (at) } {
                        td { code { (tally.pattern) } (tally.reading()) } td { (badge(Tone::Quiet, tally.kind.word())) }
                        td { (tally.cause) @if let Some(address) = tally.cause.line().and_then(editor::address) { " " a href=(address) { "Edit" } } } td.n { (count(tally.calls)) } td { (moment(tally.last_ms, now_ms)) }
                        td { (tally.example) }
                    }
                } }
            } }
            @if let Some(further) = further(tallies, FINDINGS, "further difference") { p.soft { (further) "." } }
        }
    }
}

fn transitions_table(name: &str, moved: &[&Transition], now_ms: i64) -> Markup {
    html! {
        @if moved.is_empty() { p.soft { "No transitions among the newest " (count(u64::from(HISTORY_MAX))) "." } } @else {
            div.scroll role="region" aria-label="Transitions of this operation" tabindex="0" { table {
                thead { tr { th { "When" } th { "From" } th { "To" } th { "By" } th { "Why" } } }
                tbody { @for one in moved.iter().take(TRANSITIONS) {
                    tr { td { (moment_text(&one.at, now_ms)) } td { (one.from) } td { (one.to) } td { (one.by) @if !one.who.is_empty() { ", " (one.who) } } td { (one.evidence) } }
                } }
            } }
            @if moved.len() > TRANSITIONS {
                p.soft { (count_noun((moved.len() - TRANSITIONS) as u64, "older transition")) " among the newest " (count(u64::from(HISTORY_MAX))) " of all operations: " a href={ "/history?q=" (percent_encode(name)) } { "history" } "." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;
    use switchback_engine::diff::{
        Cause, Counts, Finding, FindingKind, NotReadBack, SkipReason, Tally, report_one,
    };

    /// The texts of the elements of one kind, in their order.
    fn texts(markup: &Markup, element: &str) -> Vec<String> {
        let (open, close) = (format!("<{element}"), format!("</{element}>"));
        let text = |piece: &str| {
            let (_, inner) = piece.split(&close).next()?.split_once('>')?;
            Some(inner.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect())
        };
        markup.0.split(&open).skip(1).filter(|piece| piece.starts_with(['>', ' '])).filter_map(text).collect()
    }

    fn of(counts: Counts, threshold: Threshold) -> OperationReport {
        report_one(&Summary { counts, ..Summary::new("v2", "GET /a", 0) }, threshold)
    }

    /// Checks the facts of the evidence, as pairs of name and value.
    fn check(report: &OperationReport, expected: &[(&str, &str)]) {
        let markup = evidence(Some(report), 60_000);
        let facts: Vec<_> = texts(&markup, "dt").into_iter().zip(texts(&markup, "dd")).collect();
        let facts: Vec<_> = facts.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(facts, expected);
    }

    #[test]
    fn evidence_has_a_line_for_everything_that_was_counted() {
        let counts = Counts {
            equal: 95,
            different: 3,
            unsettled: 2,
            dropped: 9,
            skipped: BTreeMap::from([(SkipReason::Queue, 4), (SkipReason::Budget, 5)]),
            reference_unanswered: 11,
            candidate_unanswered: 12,
            expected: 13,
            declared_noise: 14,
            learnt_noise: 15,
            planned: 7,
            planned_wrong: 1,
            read_back: 6,
            read_back_different: 2,
            not_read_back: BTreeMap::from([(NotReadBack::NotSampled, 1)]),
            events_missing: 16,
            events_extra: 17,
            ..Counts::default()
        };
        // Of 133 answers and events 38 are different, unsettled or of one side alone.
        let report = of(counts, Threshold::default());
        let bounds = [report.mismatch_bound, report.unsettled_bound].map(percent);
        check(
            &report,
            &[
                ("Compared", "100 answers, since 1 min ago"),
                (
                    "Different",
                    &format!(
                        "3, with unsettled ones and those sent by one side alone 28.6 %, truly at most {} (95.0 % sure)",
                        bounds[0]
                    ),
                ),
                (
                    "Unsettled",
                    &format!(
                        "2 differed once and did not repeat, upper bound {} (95.0 % sure). They count against a promotion.",
                        bounds[1]
                    ),
                ),
                ("Planned writes", "7, of these wrong 1"),
                ("Not read back", "1 write: not in the sample of `shadow.read_back`"),
                ("Read back", "6 effects, of these different 2"),
                ("Excused", "13 expected, 14 declared noise, 15 learnt noise"),
                ("Without an answer", "11 of the reference, 12 of the candidate"),
                ("Sent by one side alone", "16 of the reference, 17 of the candidate"),
                ("Not compared", "94: the queue was full5: the shadow's limit of calls was reached"),
            ],
        );
    }

    #[test]
    fn a_bound_states_the_confidence_that_it_holds_with() {
        let excused = ("Excused", "0 expected, 0 declared noise, 0 learnt noise");
        // Where x of 100 differ, 299 are equal with a chance of (1 - x / 100)^299: 0.05 at 1.00,
        // 0.01 at 1.53.
        for (confidence, bound) in
            [(0.95, "truly at most 1.00 % (95.0 % sure)"), (0.99, "truly at most 1.53 % (99.0 % sure)")]
        {
            let report = of(
                Counts { equal: 299, ..Counts::default() },
                Threshold { confidence, ..Threshold::default() },
            );
            let different = format!("0, with unsettled ones 0 %, {bound}");
            check(
                &report,
                &[("Compared", "299 answers, since 1 min ago"), ("Different", &different), excused],
            );
        }
        let planned = of(Counts { planned: 2, ..Counts::default() }, Threshold::default());
        check(
            &planned,
            &[
                ("Compared", "0 answers, since 1 min ago"),
                ("Different", "0"),
                ("Planned writes", "2, of these wrong 0"),
                excused,
            ],
        );
    }

    #[test]
    fn a_ratio_of_latencies_is_as_wide_as_the_confidence_demands() {
        let timed = |pairs| {
            let mut timed = Timed::default();
            for _ in 0..pairs {
                timed.add(Duration::from_millis(10), Duration::from_millis(30));
            }
            timed
        };
        let many = timed(400);
        // Buckets are 5 % wide.
        let ratio = latency_ratio(Some(&many), "p50", 0.95);
        let (least, most) = ratio.split_once(" to ").expect("both bounds");
        let [least, most] = [least, most].map(|bound| bound.parse::<f64>().expect("a number"));
        assert!(2.7 < least && least <= 3.0 && (3.0..3.4).contains(&most), "{ratio}");
        assert_eq!(latency_ratio(Some(&timed(2)), "p50", 0.95), "unknown: too few timings");
        assert_eq!(latency_ratio(Some(&timed(0)), "p50", 0.95), "unknown: no timings");
        assert_eq!(latency_ratio(None, "p50", 0.95), "unknown: no timings");
        // As many as prove something with a confidence of 0.5 prove nothing with one of 0.999999.
        let few = (1..400).map(timed).find(|few| latency_ratio(Some(few), "p50", 0.5).contains(" to "));
        let few = few.expect("enough prove it");
        assert!(!latency_ratio(Some(&few), "p50", 0.999_999).contains(" to "));
    }

    #[test]
    fn differences_and_transitions_that_are_not_listed_are_counted() {
        let tally = |number: u64| {
            let cause = Cause::Upstream;
            let example = Finding {
                place: "$.a".to_owned(),
                pattern: "$.a".to_owned(),
                kind: FindingKind::Value,
                cause: cause.clone(),
                times: 1,
                reference: None,
                candidate: None,
                detail: None,
            };
            Tally {
                pattern: "$.a".to_owned(),
                kind: FindingKind::Value,
                cause,
                read_back: None,
                is_unsettled: false,
                calls: number,
                last_ms: 0,
                example,
            }
        };
        let moved = Transition {
            at: "1970-01-01T00:00:00Z".to_owned(),
            side: "v2".to_owned(),
            operation: "GET /a".to_owned(),
            from: "legacy".to_owned(),
            to: "shadow".to_owned(),
            by: "operator".to_owned(),
            who: String::new(),
            evidence: String::new(),
        };
        for (number, rows, text) in [
            (0, 0, None),
            (20, 20, None),
            (21, 20, Some("1 further difference.")),
            (199, 20, Some("179 further differences.")),
            (200, 20, Some("at least 180 further differences.")),
        ] {
            let summary = Summary { tallies: (0..number).map(tally).collect(), ..Summary::default() };
            let markup = findings(Some(&summary), 0);
            assert_eq!(markup.0.matches("<tr id=").count(), rows, "{number}");
            assert_eq!(markup.0.contains("further"), text.is_some(), "{number}");
            assert!(text.is_none_or(|text| texts(&markup, "p") == [text]), "{number}: {}", markup.0);
        }
        for (number, rows, older) in
            [(12, 13, None), (13, 13, Some("1 older transition among")), (0, 0, None)]
        {
            let all: Vec<&Transition> = std::iter::repeat_n(&moved, number).collect();
            let markup = transitions_table("GET /a", &all, 0);
            assert_eq!(texts(&markup, "tr").len(), rows, "with the head: {number}");
            assert_eq!(markup.0.contains("older"), older.is_some(), "{number}");
            assert!(older.is_none_or(|older| texts(&markup, "p")[0].starts_with(older)), "{}", markup.0);
        }
    }

    #[test]
    fn the_chart_sums_comparisons_up_to_each_slot() {
        let slot = |at: i64, compared, different| {
            (at, Some(OperationPoint { compared, different, ..OperationPoint::default() }))
        };
        let slots = vec![(0, None), slot(1, 0, 0), slot(2, 10, 1), (3, None), slot(4, 289, 0)];
        let (differing, bounds) =
            shares(&ChartLine { seconds: 60.0, slots, is_cropped: false }, Threshold::default());
        assert_eq!(differing[..4], [None, None, Some(10.0), Some(10.0)]);
        assert_eq!(differing[4].map(|share| percent(share / 100.0)), Some("0.33 %".to_owned()));
        // With one of 299: (1 - p)^299 + 299 p (1 - p)^298 is 0.05 at p = 0.0158.
        assert_eq!(bounds[4].map(|bound| percent(bound / 100.0)), Some("1.58 %".to_owned()));
        assert_eq!((bounds[1], bounds[3]), (None, bounds[2]));
    }
}
