//! Counted calls: of all clients, of one client, and of one operation.

use super::fields::OF_PAGE;
use crate::studio::PageContext;
use crate::studio::fields::percent_encode;
use crate::studio::layout::{empty, page_slice, pager_of, unread};
use crate::studio::seen::Snapshot;
use crate::studio::words::{Tone, badge, count, count_noun, moment_text, operation, unix_ms};
use maud::{Markup, html};
use std::collections::BTreeMap;
use switchback_gateway::outcome::{OUTCOMES, Outcome};
use switchback_gateway::retire::UsageInfo;

/// The scope of the counts of calls.
pub(in crate::studio) const COUNTED_SINCE: &str =
    "over all replicas, since calls were first counted; a count is dropped 400 days after its last call";

/// Columns of the usage matrix, most called operations first.
const COLUMNS_MAX: usize = 12;

/// A filter of the usage matrix in addition to outcomes: calls to unknown operations.
const UNKNOWN: &str = "unknown";

/// Renders the matrix of clients and operations: number of calls, and the last one.
pub(super) fn matrix(visit: &PageContext<'_>, seen: &Snapshot<Vec<UsageInfo>>) -> Markup {
    let usage = seen.rows();
    let wanted = visit.query.get("outcome");
    let fits =
        |one: &&UsageInfo| wanted.is_empty() || one.outcome == wanted || (wanted == UNKNOWN && one.unknown);
    let shown: Vec<&UsageInfo> = usage.iter().filter(fits).collect();
    let mut calls: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for one in &shown {
        *calls.entry((&one.side, &one.operation)).or_default() += one.calls;
    }
    let mut columns: Vec<((&str, &str), i64)> = calls.into_iter().collect();
    // The most frequent operations first, because only a part of the columns fits on a page.
    columns.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    let operations = columns.len();
    let first = (visit.query.page_of("operations") - 1).saturating_mul(COLUMNS_MAX);
    let columns: Vec<_> = columns.into_iter().skip(first).take(COLUMNS_MAX).collect();
    let mut cells: BTreeMap<&str, BTreeMap<(&str, &str), UsageCell<'_>>> = BTreeMap::new();
    for one in &shown {
        let cell = cells.entry(&one.client).or_default().entry((&one.side, &one.operation)).or_default();
        cell.calls += one.calls;
        cell.last = cell.last.max(&one.last);
        // One unanswered outcome marks the cell, even among many answered calls: it needs attention before
        // the end of a side.
        cell.is_unanswered |= is_unanswered(one);
    }
    let searched = visit.query.get("caller").to_lowercase();
    let found: Vec<_> = cells.iter().filter(|(name, _)| name.to_lowercase().contains(&searched)).collect();
    let of_page = page_slice(&found, visit.query.page_of("callers"), OF_PAGE);
    html! {
        section.panel #usage aria-labelledby="usage-title" {
            header { h2 #usage-title { "Calls by client and operation" } span.soft { (COUNTED_SINCE) } }
            form.filter method="get" action="/clients#usage" {
                label { "Outcome"
                    select name="outcome" data-submit {
                        option value="" { "all calls" }
                        @for word in OUTCOMES.map(Outcome::as_str).into_iter().chain([UNKNOWN]) {
                            option value=(word) selected[word == wanted] { (word.replace('_', " ")) }
                        }
                    }
                }
                label.grow { "Client" input type="search" name="caller" value=(visit.query.get("caller")); }
                button type="submit" { "Show" }
            }
            @if seen.value.is_none() { (unread()) } @else if shown.is_empty() {
                (empty("No such calls", &html! { "Calls are counted by client, operation and outcome." }))
            } @else {
                div.scroll role="region" aria-label="Table of calls" tabindex="0" {
                    table.matrix {
                        thead { tr {
                            th { "Client" } th { "Last call" }
                            @for ((side, name), _) in &columns { th.n { (side) " " (operation(name)) } }
                        } }
                        tbody { @for (name, cells) in of_page {
                            tr id={ "usage-" (name) } {
                                td { @if name.is_empty() { span.soft { "not enrolled" } } @else { a href={ "/clients/" (percent_encode(name)) } { (name) } } }
                                td { @if let Some(last) = cells.values().map(|cell| cell.last).max() { (moment_text(last, visit.now_ms)) } }
                                @for (column, _) in &columns { (shown_cell(cells.get(column))) }
                            }
                        } }
                    }
                }
                p.soft { "Bold: some of these calls were not answered by a service." }
                (pager_of(visit, "callers", "Pages of clients", (of_page.len(), found.len(), OF_PAGE)))
                @if operations > COLUMNS_MAX {
                    p.soft #columns { (count(columns.len() as u64)) " of " (count_noun(operations as u64, "operation")) " are columns, by number of calls." }
                    (pager_of(visit, "operations", "Pages of operations", (columns.len(), operations, COLUMNS_MAX)))
                }
            }
        }
    }
}

/// The calls of a client to an operation.
#[derive(Clone, Copy, Debug, Default)]
struct UsageCell<'u> {
    calls: i64,
    last: &'u str,
    /// Whether any call got no answer of a service.
    is_unanswered: bool,
}

fn shown_cell(cell: Option<&UsageCell<'_>>) -> Markup {
    html! {
        @match cell {
            None => { td.cell { span.soft { "–" } } }
            Some(cell) => {
                td.cell title={ "last call " (cell.last) } {
                    @if cell.is_unanswered { strong { (count(cell.calls.unsigned_abs())) } } @else { (count(cell.calls.unsigned_abs())) }
                }
            }
        }
    }
}

/// Renders the clients that call an operation, most recent first, for the operation's page.
pub(in crate::studio) fn callers(
    visit: &PageContext<'_>,
    side: &str,
    operation: &str,
    usage: &[UsageInfo],
) -> Markup {
    let mut of: BTreeMap<&str, (i64, i64, &str)> = BTreeMap::new();
    for one in usage.iter().filter(|one| one.side == side && one.operation == operation) {
        let (calls, unanswered, last) = of.entry(&one.client).or_default();
        *calls += one.calls;
        *unanswered += if is_unanswered(one) { one.calls } else { 0 };
        *last = (*last).max(&one.last);
    }
    let mut of: Vec<_> = of.into_iter().collect();
    // By the last call: clients that still call are more relevant than those with large old counts.
    of.sort_by_key(|(_, (.., last))| std::cmp::Reverse(unix_ms(last)));
    html! {
        @if of.is_empty() { p.soft { "No client has called it since counting started." } } @else {
            div.scroll role="region" aria-label="Clients that call this operation" tabindex="0" { table {
                thead { tr { th { "Client" } th.n { "Calls" } th.n { "Not answered by a service" } th { "Last" } } }
                tbody { @for (name, (calls, unanswered, last)) in of.iter().take(CALLERS_MAX) {
                    tr id={ "caller-" (name) } {
                        td { @if name.is_empty() { span.soft { "not enrolled" } } @else { a href={ "/clients/" (percent_encode(name)) } { (name) } } }
                        td.n { (count(calls.unsigned_abs())) }
                        td.n { (count(unanswered.unsigned_abs())) }
                        td { (moment_text(last, visit.now_ms)) }
                    }
                } }
            } }
            @if of.len() > CALLERS_MAX { p.soft { (count_noun((of.len() - CALLERS_MAX) as u64, "further client")) ": " a href="/clients#usage" { "all clients" } "." } }
        }
    }
}

/// Most callers on the page of an operation.
const CALLERS_MAX: usize = 20;

pub(super) fn calls(visit: &PageContext<'_>, name: &str, usage: &[UsageInfo]) -> Markup {
    let mut of: Vec<&UsageInfo> = usage.iter().filter(|one| one.client == name).collect();
    of.sort_by_key(|one| std::cmp::Reverse(unix_ms(&one.last)));
    if of.is_empty() {
        return html! { p.soft { "No calls since counting started." } };
    }
    html! {
        div.scroll role="region" aria-label="Calls of this client" tabindex="0" {
            table {
                thead { tr { th { "Operation" } th { "Outcome" } th.n { "Calls" } th { "First" } th { "Last" } } }
                tbody { @for one in &of {
                    tr id={ "call-" (one.side) "-" (one.operation) "-" (one.outcome) } {
                        td { (one.side) " " (operation(&one.operation)) }
                        td { (badge(if is_unanswered(one) { Tone::Warn } else { Tone::Good }, &one.outcome.replace('_', " "))) @if one.unknown { " " (badge(Tone::Quiet, "unknown operation")) } }
                        td.n { (count(one.calls.unsigned_abs())) }
                        td { (moment_text(&one.first, visit.now_ms)) }
                        td { (moment_text(&one.last, visit.now_ms)) }
                    }
                } }
            }
        }
    }
}

/// Returns whether the client got no answer of a service; false for calls without a recorded outcome.
fn is_unanswered(one: &UsageInfo) -> bool {
    Outcome::parse(one.outcome).is_some_and(|outcome| !outcome.is_answered())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::attention::tests::NOON;

    #[test]
    fn calls_without_an_answer_are_those_that_are_known_to_have_none() {
        let usage = |client: &str, outcome: &'static str, calls, last: &str| UsageInfo {
            side: "v2".to_owned(),
            client: client.to_owned(),
            operation: "GET /a".to_owned(),
            unknown: false,
            outcome,
            calls,
            first: NOON.to_owned(),
            last: last.to_owned(),
        };
        let mut all: Vec<UsageInfo> =
            OUTCOMES.into_iter().map(|outcome| usage("acme", outcome.as_str(), 10, NOON)).collect();
        all.push(usage("acme", switchback_gateway::retire::UNRECORDED, 1_000, "1970-01-01T13:00:00Z"));
        let unanswered: Vec<&str> =
            all.iter().filter(|one| is_unanswered(one)).map(|one| one.outcome).collect();
        let expected =
            ["refused", "rejected", "brownout", "retired", "upstream_error", "gateway_error", "cancelled"];
        assert_eq!(unanswered, expected);
        assert!(
            shown_cell(Some(&UsageCell { is_unanswered: true, calls: 3, last: NOON }))
                .0
                .contains("<strong>3")
        );
    }
}
