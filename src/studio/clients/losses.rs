//! The losses of each client once the old service is gone.

use super::fields::OF_PAGE;
use crate::admin::{AdminResponse, after_sunset_rows};
use crate::after_sunset::AfterSunset;
use crate::studio::PageContext;
use crate::studio::fields::percent_encode;
use crate::studio::layout::{Page, Tab, empty, page_slice, pager, unread};
use crate::studio::route::tone as verdict_tone;
use crate::studio::words::{badge, count, count_noun, moment_text, operation};
use maud::{Markup, html};

/// Renders the losses of each client once the old service is gone, and the settings that would
/// avoid them.
pub(super) async fn losses(visit: &PageContext<'_>) -> AdminResponse {
    let usage = visit.usage().await;
    let rows = usage.value.as_deref().map(|usage| after_sunset_rows(visit.parts, usage));
    let body = html! {
        div.page-head {
            p.crumbs { a href="/clients" { "Clients" } }
            h1 { "Losses after the sunset" }
            p.lead { "Operations that clients have called, with the losses of each after the old service ends: by the routes of the pack with the current settings, in any phase." }
        }
        (visit.staleness(&usage))
        section.panel #after-sunset aria-label="Losses" {
            @match &rows { Some(rows) => (losses_table(visit, rows)), None => (unread()) }
        }
    };
    visit.page(Page::live(Tab::Clients, "Losses after the sunset", body))
}

fn losses_table(visit: &PageContext<'_>, rows: &[AfterSunset]) -> Markup {
    let searched = visit.query.get("q").to_lowercase();
    let losing = rows.iter().filter(|row| !row.loses.is_empty());
    let losing: Vec<&AfterSunset> =
        losing.filter(|row| row.client.to_lowercase().contains(&searched)).collect();
    let shown = page_slice(&losing, visit.query.page(), OF_PAGE);
    let all_losing = rows.iter().filter(|row| !row.loses.is_empty()).count();
    html! {
        @if rows.is_empty() {
            (empty("No calls yet", &html! { "Calls are counted by client and operation." }))
        } @else {
            p #after-sunset-sum {
                "Clients call " (count_noun(rows.len() as u64, "operation")) ", counted for each client. "
                strong { (count(all_losing as u64)) } " of them lose something, " (count((rows.len() - all_losing) as u64)) " lose nothing."
            }
            form.filter method="get" action="/clients" {
                input type="hidden" name="show" value="after-sunset";
                label.grow { "Client" input type="search" name="q" value=(visit.query.get("q")); }
                button type="submit" { "Find" }
            }
            @if shown.is_empty() { p.soft { @if all_losing == 0 { "No client loses anything." } @else { "No such client loses anything." } } } @else {
                div.scroll role="region" aria-label="Losses by client and operation" tabindex="0" { table {
                    thead { tr { th { "Client" } th { "Operation" } th { "Verdict" } th.n { "Calls" } th { "Last" } th { "Loses" } th { "With another setting" } } }
                    tbody { @for row in shown { (loss_row(row, visit.now_ms)) } }
                } }
                (pager(visit, shown.len(), losing.len(), OF_PAGE))
            }
        }
    }
}

fn loss_row(row: &AfterSunset, now_ms: i64) -> Markup {
    html! {
        tr id={ "loss-" (row.client) "-" (row.side) "-" (row.operation) } {
            td { @if row.client.is_empty() { span.soft { "not enrolled" } } @else { a href={ "/clients/" (percent_encode(&row.client)) } { (row.client) } " " a.soft href={ "/clients/" (percent_encode(&row.client)) "#letter" } { "notice" } } }
            td { (row.side) " " (operation(&row.operation)) }
            td { (badge(verdict_tone(row.verdict), row.verdict)) }
            td.n { (count(row.calls.unsigned_abs())) @if row.refused > 0 { " " span.soft { (count(row.refused.unsigned_abs())) " refused already" } } }
            td { (moment_text(&row.last, now_ms)) }
            td { (loss_list(&row.loses)) }
            td {
                @if row.settings.is_empty() { span.soft { "none" } }
                @for then in &row.settings {
                    p { code { (then.setting) } " " (badge(verdict_tone(then.verdict), then.verdict)) }
                    @if !then.loses.is_empty() { (loss_list(&then.loses)) }
                }
            }
        }
    }
}

fn loss_list(loses: &[String]) -> Markup {
    const OPEN_MAX: usize = 3;
    let list = html! { ul.plain { @for text in loses { li { (text) } } } };
    html! {
        @if loses.len() <= OPEN_MAX { (list) } @else {
            details { summary { (count(loses.len() as u64)) " losses" } (list) }
        }
    }
}
