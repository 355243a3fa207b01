//! Results of the dual run: comparisons and differences per operation. The page of an operation
//! lists the differing fields, each with both values, the responsible mapping line, and the remedy.

use super::editor;
use super::fields::percent_encode;
use super::layout::{Page, Tab, empty, page_slice, pager, unread};
use super::words::{Tone, badge, count, count_noun, moment, operation, percent};
use super::{PageContext, report_of};
use crate::admin::AdminResponse;
use maud::{Markup, html};
use switchback_engine::diff::{Cause, Finding, FindingKind, OperationReport, Summary, TALLIES_MAX, Tally};
use switchback_engine::redact::Sample;
use switchback_gateway::shadow::Exported;

/// Mapping lines displayed before and after the responsible one.
const LINES_AROUND: u32 = 4;
/// Operations on a page of the list.
const LISTED: usize = 100;
/// Most recorded comparisons of one operation.
const RECORDS_MAX: u32 = 25;
/// Most fields of one operation, most frequent first.
const FIELDS_MAX: usize = 60;

pub(super) async fn look(visit: &PageContext<'_>, rest: &[&str]) -> AdminResponse {
    match rest {
        [] => list(visit).await,
        [side, operation] => one(visit, side, operation).await,
        _ => visit.not_found(),
    }
}

async fn list(visit: &PageContext<'_>) -> AdminResponse {
    let summaries = visit.summaries().await;
    let of_all = summaries.value.iter().flat_map(|all| all.iter());
    let mut reports: Vec<OperationReport> =
        of_all.map(|summary| report_of(&visit.parts.phases, summary)).collect();
    // Those that need attention first.
    reports.sort_by(|a, b| b.proof.cmp(&a.proof).then_with(|| a.operation.cmp(&b.operation)));
    let body = html! {
        div.page-head { h1 { "Differences" } p.lead { "Answers that clients would receive differently, by operation. Open one to see the fields and the mapping line of each." } }
        (visit.staleness(&summaries))
        @if summaries.value.is_some() { section.panel { (table(visit, reports)) } }
    };
    visit.page(Page::live(Tab::Differences, "Differences", body))
}

fn table(visit: &PageContext<'_>, mut operations: Vec<OperationReport>) -> Markup {
    if operations.is_empty() {
        let words = html! { "Set an operation to shadow to compare both sides." };
        return empty("No comparisons yet", &words);
    }
    let wanted = visit.query.get("q").to_lowercase();
    operations.retain(|one| one.operation.to_lowercase().contains(&wanted));
    let shown = page_slice(&operations, visit.query.page(), LISTED);
    html! {
        form.filter method="get" action="/differences" {
            label.grow { "Operation" input type="search" name="q" value=(visit.query.get("q")); }
            button type="submit" { "Find" }
        }
        div.scroll role="region" aria-label="Differences" tabindex="0" {
            table {
                thead { tr { th { "Operation" } th { "Phase" } th.n { "Compared" } th.n { "Different" } th.n { "At most" } th { "Largest differences" } th { "Next" } } }
                tbody { @for one in shown {
                    tr id={ "difference-" (one.side) "-" (one.operation) } {
                        td { a href={ "/differences/" (percent_encode(&one.side)) "/" (percent_encode(&one.operation)) } { (operation(&one.operation)) } }
                        td { (one.period()) }
                        td.n { (count(one.counts.compared_count())) }
                        td.n { (count(one.counts.different)) }
                        td.n { @if one.equal_rate.is_some() { (percent(one.mismatch_bound)) } @else { span.soft { "–" } } }
                        td { @if let Some(top) = one.top.first() {
                            (top.kind.word()) " " code { (top.pattern) } (top.reading()) ", " (top.cause)
                        } }
                        td { (one.next) }
                    }
                } }
            }
        }
        (pager(visit, shown.len(), operations.len(), LISTED))
    }
}

async fn one(visit: &PageContext<'_>, side: &str, name: &str) -> AdminResponse {
    let summaries = visit.summaries().await;
    let found = summaries
        .value
        .as_ref()
        .and_then(|all| all.iter().find(|one| one.side == side && one.operation == name));
    let is_served = visit.parts.phases.list().iter().any(|info| info.side == side && info.operation == name);
    if found.is_none() && !is_served {
        return visit.not_found();
    }
    let mut yaml = Vec::new();
    for tally in found.iter().flat_map(|summary| &summary.tallies).take(FIELDS_MAX) {
        yaml.push(visit.parts.workbench.declared_type(side, name, &tally.pattern).await);
    }
    let (archive, of_side, asked) = (visit.parts.archive.clone(), side.to_owned(), name.to_owned());
    let read = async move { archive.samples(&of_side, &asked, RECORDS_MAX).await };
    let records = visit.in_time(read).await;
    let body = html! {
        p { a href="/differences" { "All differences" } }
        div.page-head {
            h1 { (side) " " (operation(name)) }
            span.aside { a.button href={ "/playground?operation=" (percent_encode(&format!("{side} {name}"))) } { "Open in the playground" } }
        }
        (visit.staleness(&summaries))
        @match found {
            None if summaries.value.is_none() => {}
            None => { (empty("No comparisons yet", &html! { "Set it to shadow to compare both sides." })) }
            Some(summary) => {
                (counts(summary, visit.now_ms))
                @if summary.tallies.is_empty() { p.notice.good { "No compared answer differs." } }
                @for (at, (tally, yaml)) in summary.tallies.iter().zip(&yaml).enumerate() { (field(visit, summary, tally, yaml.as_ref(), at)) }
                @if let Some(further) = further(&summary.tallies, FIELDS_MAX, "rarer difference") { p.soft { (further) " not shown" } }
            }
        }
        @match &records { Some(records) => (samples(visit, records)), None => section.panel { (unread()) } }
    };
    visit.page(Page::live(Tab::Differences, format!("{side} {name}"), body))
}

/// The number of differences beyond those that are listed, as far as it is known. `None` where all
/// are listed.
pub(super) fn further(tallies: &[Tally], listed: usize, thing: &str) -> Option<String> {
    let further = tallies.len().checked_sub(listed).filter(|further| *further > 0)?;
    let least = if tallies.len() < TALLIES_MAX { "" } else { "at least " };
    Some(format!("{least}{}", count_noun(further as u64, thing)))
}

fn counts(summary: &Summary, now_ms: i64) -> Markup {
    let counts = &summary.counts;
    html! {
        section.panel #counts aria-labelledby="counts-title" {
            h2 #counts-title { "Evidence" }
            p {
                @if let Some(present) = &summary.present_phase { "In an earlier period, in " (summary.phase) "; the operation is in " (present) " now: " }
                (count_noun(counts.compared_count(), "answer")) " compared since " (moment(summary.since_ms, now_ms)) ", "
                strong { (count(counts.different)) " different" }
                @if counts.unsettled > 0 { ", " strong { (count(counts.unsettled)) " unsettled" } " (they differed once and did not repeat)" }
                "."
            }
            @if counts.unpaired_count() > 0 { p { "Sent by one side alone: " (count(counts.events_missing)) " of the reference, " (count(counts.events_extra)) " of the candidate." } }
            @if counts.planned > 0 { p { (count_noun(counts.planned, "write")) " planned, of these wrong " (count(counts.planned_wrong)) "." } }
            @if counts.read_back > 0 { p { (count_noun(counts.read_back, "effect")) " read back, of these different " (count(counts.read_back_different)) "." } }
            @for (why, writes) in &counts.not_read_back { p { (count_noun(*writes, "write")) " not read back: " (why.words()) "." } }
            p.noisy {
                "Not counted as differences: " (count(counts.expected)) " expected losses, "
                (count(counts.declared_noise)) " of declared noise, " (count(counts.learnt_noise)) " of learnt noise; "
                (count_noun(counts.dropped, "call")) " not compared"
                @for (at, (why, calls)) in counts.skipped.iter().enumerate() { (if at == 0 { ": " } else { "; " }) (count(*calls)) ", " (why.words()) }
                "."
            }
        }
    }
}

fn field(
    visit: &PageContext<'_>,
    summary: &Summary,
    tally: &Tally,
    yaml: Option<&(String, String)>,
    at: usize,
) -> Markup {
    let id = format!("field-{at}");
    let compared = summary.counts.compared_count();
    html! {
        section.panel.difference id={ "difference-" (tally.pattern) "-" (tally.kind.word()) } aria-labelledby=(id) {
            header {
                h2 id=(id) { code { (tally.pattern) } }
                (badge(tone(tally.kind), tally.kind.word()))
                @if !tally.reading().is_empty() { span.soft { (tally.reading()) } }
                // Planned writes and read-backs are counted separately, so a share of the compared answers
                // would be wrong.
                span.aside.soft { (count_noun(tally.calls, "call")) @if compared > 0 && summary.counts.planned == 0 && tally.read_back.is_none() { " of " (count(compared)) } ", last " (moment(tally.last_ms, visit.now_ms)) }
            }
            (sides(visit, &summary.side, &tally.example))
            (source(visit, &tally.cause))
            details {
                summary { "This is expected" }
                p.hint { "Copy the text into the files of the pack and have it reviewed. The gateway applies it by a reload." }
                @if let Some((ty, place)) = yaml {
                    p { "The value has no meaning and differs each time. In " code { "pack.yaml" } ":" }
                    pre id={ (id) "-noise" } { "compare:\n  types:\n    " (summary.side) ":\n      " (ty) ": {noise: [" (place) "]}\n" }
                    button.small type="button" data-copy={ (id) "-noise" } { "Copy: noise" }
                } @else {
                    p.soft { "Its location is not in a named type of the contract, so no line of " code { "compare:" } " can name it." }
                }
                @if let Some(line) = tally.cause.line().filter(|_| matches!(tally.kind, FindingKind::Missing)) {
                    p { "The new version does not have it, which is accepted. In the shape at " code { (line) } ":" }
                    pre id={ (id) "-loss" } { "only: {" (summary.side) ": {" (last_name(&tally.pattern)) ": none}}\n" }
                    button.small type="button" data-copy={ (id) "-loss" } { "Copy: expected loss" }
                }
            }
        }
    }
}

fn last_name(pattern: &str) -> &str {
    pattern.trim_end_matches("[*]").rsplit('.').next().unwrap_or(pattern)
}

fn tone(kind: FindingKind) -> Tone {
    match kind {
        FindingKind::Spelling | FindingKind::Order | FindingKind::Language => Tone::Warn,
        _ => Tone::Bad,
    }
}

/// Renders the values that a client would get from either side.
fn sides(visit: &PageContext<'_>, side: &str, finding: &Finding) -> Markup {
    let program = visit.parts.program.load_full();
    let other = program
        .pack()
        .sides
        .iter()
        .map(|one| one.name.as_str())
        .find(|name| *name != side)
        .unwrap_or_default();
    html! {
        div.sides {
            div {
                h3 { "From " (side) "'s own service" }
                pre { (render_sample(finding, finding.reference.as_ref(), true)) }
            }
            div {
                h3 { "Made of " (other) " by the mapping" }
                pre { (render_sample(finding, finding.candidate.as_ref(), false)) }
            }
        }
        @if let Some(detail) = &finding.detail { p { (detail) } }
    }
}

fn render_sample(finding: &Finding, sample: Option<&Sample>, is_reference: bool) -> Markup {
    let place = &finding.place;
    html! {
        span.soft { (place) ": " }
        @match sample {
            None => { span.soft { "nothing" } }
            Some(sample) if is_reference => { del { (sample) } }
            Some(sample) => { ins { (sample) } }
        }
    }
}

/// Renders the mapping around the responsible line, which is highlighted.
fn source(visit: &PageContext<'_>, cause: &Cause) -> Markup {
    let place = cause.line().and_then(|line| line.rsplit_once(':'));
    let place = place.and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
    let lines = place.map(|(file, line)| visit.parts.workbench.lines_around(file, line, LINES_AROUND));
    html! {
        p { (cause_words(cause)) }
        @if let (Some((file, line)), Some(lines)) = (place, lines) {
            p.source-name { code { (file) ":" (line) } " " a href=[cause.line().and_then(editor::address)] { "Edit this line" } }
            ol.mapping-lines {
                @for (number, text) in &lines {
                    li.marked[*number == line] { span.number { (number) } code { (text) } }
                }
            }
        }
    }
}

fn cause_words(cause: &Cause) -> &'static str {
    match cause {
        Cause::Made { .. } => "This line computes the value from another: the line or its source is wrong.",
        Cause::Copied { .. } => {
            "This line copies the value as it is: the two services disagree, or the line names the wrong place."
        }
        Cause::Unmapped { .. } => {
            "No mapping line produces this field; the nearest line produces its parent."
        }
        Cause::Upstream => "The other service did not answer, or its answer could not be translated.",
        Cause::Gateway => "The gateway ended the call itself.",
    }
}

/// Renders the newest recorded comparisons with findings.
fn samples(visit: &PageContext<'_>, records: &[Exported]) -> Markup {
    if records.is_empty() {
        return html! {};
    }
    html! {
        section.panel #samples aria-labelledby="samples-title" {
            header { h2 #samples-title { "Samples" } span.soft { "the newest, values redacted" } }
            @for (at, exported) in records.iter().rev().enumerate() {
                @let record = &exported.record;
                details id={ "sample-" (record.request_id.as_deref().unwrap_or_default()) "-" (at) } {
                    summary { (moment(record.at_ms, visit.now_ms)) " " code { (record.target) } " " @if let Some(client) = &record.client { (client) } " · " (count_noun(record.comparison.findings.len() as u64, "difference")) @if exported.kind == "unsettled" { " " (badge(Tone::Warn, "unsettled")) } }
                    @for finding in &record.comparison.findings {
                        p { code { (finding.place) } " " (badge(tone(finding.kind), finding.kind.word())) @if let Some(line) = finding.cause.line() { " " code { (line) } } }
                        (sides(visit, &record.side, finding))
                    }
                    @let excused = &record.comparison.excused;
                    p.noisy { "Excused: " (excused.expected) " expected, " (excused.declared) " declared noise, " (excused.learnt) " learnt noise." }
                }
            }
        }
    }
}
