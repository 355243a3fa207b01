//! What the dual run found: per operation how much was compared, how much differs, and what differs most.

use super::Visit;
use super::layout::{Page, Tab, empty};
use super::words::{count, operation, percent};
use crate::admin::Answer;
use maud::{Markup, html};
use switchback_engine::diff::{OperationReport, Threshold, report as report_on};

pub(super) async fn look(visit: &Visit<'_>, rest: &[&str]) -> Answer {
    if !rest.is_empty() {
        return visit.not_found();
    }
    let archive = visit.parts.archive.clone();
    let summaries = visit.studio.summaries.look(async move { archive.summaries().await }).await;
    let body = html! {
        div.page-head { h1 { "Differences" } }
        (visit.staleness(&summaries))
        @if let Some(summaries) = &summaries.value {
            section.panel { (table(&report_on(summaries, Threshold::default()).operations)) }
        }
    };
    visit.page(Page::live(Tab::Differences, "Differences", body))
}

fn table(operations: &[OperationReport]) -> Markup {
    if operations.is_empty() {
        let words =
            html! { "Put an operation into the phase shadow, and both sides are compared from then on." };
        return empty("Nothing was compared yet", &words);
    }
    html! {
        div.scroll role="region" aria-label="Differences" tabindex="0" {
            table {
                thead { tr { th { "Operation" } th { "Phase" } th.n { "Compared" } th.n { "Different" } th.n { "At most" } th { "What differs most" } th { "Next" } } }
                tbody { @for one in operations {
                    tr id={ "difference-" (one.side) "-" (one.operation) } {
                        td { (operation(&one.operation)) }
                        td { (one.phase) }
                        td.n { (count(one.counts.compared())) }
                        td.n { (count(one.counts.different)) }
                        td.n { (percent(one.mismatch_bound)) }
                        td { @if let Some(top) = one.top.first() {
                            (top.kind.word()) " " code { (top.pattern) } (top.reading()) ", " (top.cause)
                        } }
                        td { (one.next) }
                    }
                } }
            }
        }
    }
}
