//! Marks on charts: transitions, reloads, restored packs and brownouts in the time of a chart.

use super::PageContext;
use super::charts::{Chart, ChartMark};
use super::fields::percent_encode;
use super::traffic::ChartSpan;
use super::words::{count_noun, moment};
use maud::{Markup, html};
use switchback_gateway::clock::unix_ms;
use switchback_gateway::shadow::Transition;
use switchback_gateway::store::HistoryRow;

/// Kinds of history entries that are marked at their time. Brownouts have a start and an end.
const KINDS: [&str; 5] =
    ["reload", "reload failed", "pack restored", "restoration ended", "brownout removed"];
/// Most marks in the list below a chart, newest first.
const LISTED: usize = 6;

/// Returns the marks of a period, newest first: of one operation with its side, or of all.
fn collect(
    transitions: &[Transition],
    notes: &[HistoryRow],
    period: std::ops::RangeInclusive<i64>,
    of: Option<(&str, &str)>,
) -> Vec<ChartMark> {
    let is_meant = |side: &str, operation: &str| of.is_none_or(|of| of == (side, operation));
    let moved = transitions.iter().filter(|one| is_meant(&one.side, &one.operation));
    let moved = moved.filter_map(|one| {
        let text = format!("{} {}: {} to {}", one.side, one.operation, one.from, one.to);
        Some(ChartMark { at_ms: unix_ms(&one.at)?, text })
    });
    let noted = notes.iter().filter(|row| KINDS.contains(&row.kind.as_str()));
    let noted =
        noted.map(|row| ChartMark { at_ms: row.at_ms, text: format!("{} {}", row.kind, row.subject) });
    // A scope is such as `v2: GET /things; acme`.
    let is_of = |row: &&HistoryRow| {
        of.is_none_or(|(side, operation)| {
            row.scope.starts_with(side) && (row.scope.contains(operation) || row.scope.contains("all calls"))
        })
    };
    let brownouts = notes.iter().filter(|row| row.kind == "brownout set").filter(is_of);
    let brownouts = brownouts.flat_map(|row| {
        let mark =
            |at_ms: i64, word: &str| ChartMark { at_ms, text: format!("brownout {word}, {}", row.scope) };
        let end = row.until_ms.map(|at_ms| mark(at_ms, "ends"));
        [Some(mark(row.from_ms.unwrap_or(row.at_ms), "begins")), end].into_iter().flatten()
    });
    let mut all: Vec<ChartMark> = moved.chain(noted).chain(brownouts).collect();
    all.retain(|mark| period.contains(&mark.at_ms));
    all.sort_by_key(|mark| std::cmp::Reverse(mark.at_ms));
    all
}

/// Adds the marks of the charts' time to them. Returns the list of the span's marks as text, with
/// links to the requests and differences of that time.
pub(super) async fn mark(
    visit: &PageContext<'_>,
    charts: &mut [&mut Chart<'_>],
    span: ChartSpan,
    of: Option<(&str, &str)>,
) -> Markup {
    let (transitions, notes) = tokio::join!(visit.transitions(), visit.notes());
    let minutes = if span == ChartSpan::Hour { 60 } else { 1440 };
    let period = visit.now_ms - minutes * 60_000..=visit.now_ms;
    let marks = collect(transitions.rows(), notes.rows(), period, of);
    for chart in charts {
        let first = chart.times.first().copied().unwrap_or(visit.now_ms);
        chart.marks = marks.iter().filter(|mark| mark.at_ms >= first).cloned().collect();
    }
    let requests = match of {
        Some((_, operation)) => {
            format!("/requests?minutes={minutes}&operation={}", percent_encode(operation))
        }
        None => format!("/requests?minutes={minutes}"),
    };
    let differences = match of {
        Some((side, operation)) => {
            format!("/differences/{}/{}", percent_encode(side), percent_encode(operation))
        }
        None => "/differences".to_owned(),
    };
    html! {
        div.marks #marks {
            @if marks.is_empty() {
                p.soft { "No transition, reload or brownout in " (span.words()) "." }
            } @else {
                ul.plain { @for mark in marks.iter().take(LISTED) { li { (moment(mark.at_ms, visit.now_ms)) ": " (mark.text) } } }
                @if marks.len() > LISTED { p.soft { (count_noun((marks.len() - LISTED) as u64, "earlier mark")) ", see " a href="/history" { "History" } "." } }
            }
            p { a href=(requests) { "Requests of " (span.words()) } " · " a href=(differences) { "Differences" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: &str, scope: &str, at_ms: i64, from_ms: Option<i64>, until_ms: Option<i64>) -> HistoryRow {
        HistoryRow {
            at_ms,
            kind: kind.to_owned(),
            subject: "p".to_owned(),
            scope: scope.to_owned(),
            who: String::new(),
            from_ms,
            until_ms,
            detail: String::new(),
        }
    }

    #[test]
    fn marks_are_the_changes_of_the_time_and_of_the_operation() {
        let moved = |operation: &str, at: &str| Transition {
            at: at.to_owned(),
            side: "v2".to_owned(),
            operation: operation.to_owned(),
            from: "legacy".to_owned(),
            to: "shadow".to_owned(),
            by: "operator".to_owned(),
            who: String::new(),
            evidence: String::new(),
        };
        let transitions = [moved("GET /a", "1970-01-01T00:00:05Z"), moved("GET /b", "1970-01-01T00:00:06Z")];
        let notes = [
            note("reload", "", 7_000, None, None),
            note("reload", "", 999, None, None),
            note("client added", "", 7_000, None, None),
            note("brownout set", "v2: GET /a; all clients", 1_000, Some(8_000), Some(99_000)),
            note("brownout set", "v2: all calls; acme", 2_000, None, Some(9_000)),
        ];
        let texts = |of| -> Vec<(i64, String)> {
            let all = collect(&transitions, &notes, 1_000..=10_000, of);
            all.into_iter().map(|mark| (mark.at_ms, mark.text)).collect()
        };
        let all = texts(None);
        assert_eq!(
            all.iter().map(|(at, _)| *at).collect::<Vec<_>>(),
            [9_000, 8_000, 7_000, 6_000, 5_000, 2_000]
        );
        assert_eq!(all[0].1, "brownout ends, v2: all calls; acme");
        assert_eq!(all[4].1, "v2 GET /a: legacy to shadow");
        let of_b: Vec<i64> = texts(Some(("v2", "GET /b"))).into_iter().map(|(at, _)| at).collect();
        assert_eq!(of_b, [9_000, 7_000, 6_000, 2_000]);
    }
}
