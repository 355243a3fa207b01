//! The history: transitions, reloads, and changes to clients, with author, time and reason. Also as
//! CSV and JSON.

use super::layout::{Page, Tab, empty, page_slice, pager, unread};
use super::words::{Tone, badge, count, moment_text, unix_ms};
use super::{HISTORY_MAX, PageContext};
use crate::admin::AdminResponse;
use http::StatusCode;
use maud::html;
use serde::Serialize;
use switchback_gateway::clock::rfc3339;
use switchback_gateway::shadow::Transition;
use switchback_gateway::store::{HistoryRow, StoreError};

/// Entries per page.
const LISTED: usize = 100;

/// An entry of the history.
#[derive(Clone, Debug, Serialize)]
struct HistoryEntry {
    at: String,
    kind: String,
    subject: String,
    /// The affected sides, operations and clients.
    scope: String,
    /// Start of the effect, if delayed.
    from: Option<String>,
    /// End of the effect, if limited.
    until: Option<String>,
    by: String,
    what: String,
    why: String,
}

/// Most transitions, and most other entries, of a download.
const EXPORTED_MAX: u32 = 100_000;

/// Renders a download directly from the store, up to [`EXPORTED_MAX`] entries of each kind.
async fn export(visit: &PageContext<'_>, write: fn(&[&HistoryEntry]) -> AdminResponse) -> AdminResponse {
    let read = async {
        let moved = visit.parts.phases.transitions(EXPORTED_MAX).await?;
        Ok::<_, StoreError>((moved, visit.parts.store.history(EXPORTED_MAX).await?))
    };
    let known = if visit.store_away.is_some() { None } else { read.await.ok() };
    let Some((moved, noted)) = known else {
        let words = html! { p { "The store does not answer. The latest entries may be missing." } };
        let title = "No download is available now";
        return visit.page(Page::notice(StatusCode::SERVICE_UNAVAILABLE, title, words));
    };
    let all = entries(&moved, &noted);
    write(&all.iter().filter(|entry| fits(visit, entry)).collect::<Vec<_>>())
}

/// Returns whether an entry matches the filter.
fn fits(visit: &PageContext<'_>, entry: &HistoryEntry) -> bool {
    let (asked, kind) = (visit.query.get("q").to_lowercase(), visit.query.get("kind"));
    let texts = [&entry.subject, &entry.scope, &entry.by, &entry.what, &entry.why];
    (kind.is_empty() || entry.kind == kind) && texts.iter().any(|text| text.to_lowercase().contains(&asked))
}

pub(super) async fn look(visit: &PageContext<'_>, rest: &[&str]) -> AdminResponse {
    match rest {
        [] => {}
        ["export.csv"] => return export(visit, csv).await,
        ["export.json"] => return export(visit, |found| AdminResponse::json(StatusCode::OK, &found)).await,
        _ => return visit.not_found(),
    }
    let (transitions, notes) = tokio::join!(visit.transitions(), visit.notes());
    let moved = transitions.rows();
    let noted = notes.rows();
    let kind = visit.query.get("kind");
    let all = entries(moved, noted);
    let mut kinds: Vec<String> = all.iter().map(|entry| entry.kind.clone()).collect();
    kinds.sort();
    kinds.dedup();
    let found: Vec<&HistoryEntry> = all.iter().filter(|entry| fits(visit, entry)).collect();
    let shown = page_slice(&found, visit.query.page(), LISTED);
    let query = visit.query.with("page", "");
    let body = html! {
        div.page-head {
            h1 { "History" }
            p.lead { "Changes by operators, by the gate and by the configuration, with time, author and reason." }
            div.aside.actions {
                a.button.small href={ "/history/export.csv" (query) } download { "CSV" }
                a.button.small href={ "/history/export.json" (query) } download { "JSON" }
            }
        }
        (visit.staleness(&transitions))
        form.filter method="get" action="/history" role="search" {
            label.grow { "Search" input #q type="search" name="q" value=(visit.query.get("q")) placeholder="Operation, client, person, reason"; }
            label { "Kind" select name="kind" data-submit {
                option value="" { "All" }
                @for known in &kinds { option value=(known) selected[known == kind] { (known) } }
            } }
            button type="submit" { "Show" }
        }
        section.panel #history aria-label="History" {
            @if transitions.value.is_none() && notes.value.is_none() {
                (unread())
            } @else if shown.is_empty() {
                @if all.is_empty() {
                    (empty("No entries yet", &html! { "Transitions of operations, reloads, brownouts and changes of clients are recorded here." }))
                } @else {
                    (empty("No such entry", &html! { "No matching entries. " a href="/history" { "Show all" } }))
                }
            } @else {
                div.scroll role="region" aria-label="Table of what happened" tabindex="0" { table {
                    thead { tr { th { "When" } th { "Kind" } th { "Of" } th { "What" } th { "Scope" } th { "Holds" } th { "By" } th { "Why" } } }
                    tbody { @for entry in shown {
                        tr {
                            td { (moment_text(&entry.at, visit.now_ms)) } td { (badge(Tone::Quiet, &entry.kind)) }
                            td.break { (entry.subject) } td { (entry.what) } td.break { (entry.scope) }
                            td {
                                @if let Some(from) = &entry.from { "from " (moment_text(from, visit.now_ms)) " " }
                                @if let Some(until) = &entry.until { "until " (moment_text(until, visit.now_ms)) }
                            }
                            td { (entry.by) } td { (entry.why) }
                        }
                    } }
                } }
                (pager(visit, shown.len(), found.len(), LISTED))
                // A read that is full may have left out older entries.
                @if [moved.len(), noted.len()].contains(&(HISTORY_MAX as usize)) {
                    p.soft #older { "Of transitions and of other changes the newest " (count(u64::from(HISTORY_MAX))) " each are listed. The downloads have the newest " (count(u64::from(EXPORTED_MAX))) " of each that the store retains." }
                }
            }
        }
    };
    visit.page(Page::live(Tab::History, "History", body))
}

/// Merges both lists, newest first.
fn entries(transitions: &[Transition], notes: &[HistoryRow]) -> Vec<HistoryEntry> {
    let by = |by: &str, who: &str| if who.is_empty() { by.to_owned() } else { format!("{by}, {who}") };
    let moved = transitions.iter().map(|one| HistoryEntry {
        at: one.at.clone(),
        kind: "transition".to_owned(),
        subject: format!("{} {}", one.side, one.operation),
        scope: String::new(),
        from: None,
        until: None,
        by: by(&one.by, &one.who),
        what: format!("{} → {}", one.from, one.to),
        why: one.evidence.clone(),
    });
    let noted = notes.iter().map(|row| HistoryEntry {
        at: rfc3339(row.at_ms),
        kind: row.kind.clone(),
        subject: row.subject.clone(),
        scope: row.scope.clone(),
        from: row.from_ms.map(rfc3339),
        until: row.until_ms.map(rfc3339),
        by: row.who.clone(),
        what: String::new(),
        why: row.detail.clone(),
    });
    let mut all: Vec<HistoryEntry> = moved.chain(noted).collect();
    all.sort_by_key(|entry| std::cmp::Reverse(unix_ms(&entry.at)));
    all
}

fn csv(entries: &[&HistoryEntry]) -> AdminResponse {
    let mut text = "at,kind,of,what,by,why,scope,from,until\r\n".to_owned();
    for entry in entries {
        let (from, until) =
            (entry.from.as_deref().unwrap_or_default(), entry.until.as_deref().unwrap_or_default());
        let cells: [&str; 9] = [
            &entry.at,
            &entry.kind,
            &entry.subject,
            &entry.what,
            &entry.by,
            &entry.why,
            &entry.scope,
            from,
            until,
        ];
        text.push_str(&cells.map(csv_cell).join(","));
        text.push_str("\r\n");
    }
    AdminResponse::text(StatusCode::OK, "text/csv; charset=utf-8", text)
        .with_header("content-disposition", "attachment; filename=\"switchback-history.csv\"")
}

/// Quotes a CSV field (RFC 4180). An apostrophe precedes texts that a spreadsheet would execute as
/// a formula.
fn csv_cell(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_one_list_newest_first() {
        let transitions = [Transition {
            at: "2026-01-01T00:00:01Z".to_owned(),
            side: "old".to_owned(),
            operation: "GET /a".to_owned(),
            from: "legacy".to_owned(),
            to: "shadow".to_owned(),
            by: "operator".to_owned(),
            who: "Ada".to_owned(),
            evidence: "=1+1".to_owned(),
        }];
        let notes = [HistoryRow {
            at_ms: 4_000_000_000_000,
            kind: "reload".to_owned(),
            subject: "pack".to_owned(),
            scope: "all".to_owned(),
            from_ms: None,
            until_ms: Some(0),
            who: "Ada".to_owned(),
            detail: "a \"b\"".to_owned(),
        }];
        let all = entries(&transitions, &notes);
        assert_eq!([all[0].kind.as_str(), all[1].by.as_str()], ["reload", "operator, Ada"]);
        assert_eq!(
            (all[0].by.as_str(), all[0].scope.as_str(), all[0].until.as_deref()),
            ("Ada", "all", Some("1970-01-01T00:00:00Z"))
        );
        assert_eq!([csv_cell("=1+1"), csv_cell("a \"b\"")], ["\"'=1+1\"", "\"a \"\"b\"\"\""]);
    }
}
