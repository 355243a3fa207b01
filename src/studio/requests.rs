//! The sample of recent requests: the list with its filters, and a page for each request.

mod one;
mod waterfall;

use super::PageContext;
use super::fields::percent_encode;
use super::layout::{Page, Tab, empty, page_slice, pager};
use super::words::{Tone, badge, bytes, count, duration, moment, phase};
use crate::admin::AdminResponse;
use crate::requests::{FoundRequest, FoundRequests, MINUTES, NONE, RequestsFilter, outcomes};
use http::StatusCode;
use maud::{Markup, html};
use std::collections::BTreeSet;
use switchback_gateway::outcome::Outcome;
use switchback_gateway::recent::RequestSample;
use switchback_gateway::shadow::PHASES;

/// Requests per page.
const LISTED: usize = 50;
/// Most names that a field suggests.
const SUGGESTED: usize = 100;

pub(super) fn look(visit: &PageContext<'_>, rest: &[&str]) -> AdminResponse {
    match rest {
        [] => list(visit),
        [id] => one::page(visit, id),
        _ => visit.not_found(),
    }
}

fn list(visit: &PageContext<'_>) -> AdminResponse {
    let (filter, invalid) = match RequestsFilter::parse(visit.query.all()) {
        Ok(filter) => (filter, None),
        Err(error) => (RequestsFilter::default(), Some(error.to_string())),
    };
    let every = RequestsFilter { minutes: filter.minutes, ..RequestsFilter::default() };
    let every = visit.parts.requests.find(&every, visit.now_ms);
    let matching: Vec<&FoundRequest> = match invalid {
        Some(_) => Vec::new(),
        None => every.matching.iter().filter(|found| filter.fits(&found.sample)).collect(),
    };
    let shown = page_slice(&matching, visit.query.page(), LISTED);
    let status = if invalid.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let body = html! {
        div.page-head {
            h1 { "Requests" }
            p.lead { "A sample of recent requests with their upstream calls and times. Values are masked as in captures. A request is listed when its response has ended." }
        }
        (extent(visit, &every, &filter))
        (form(visit, &every, &filter))
        section.panel #requests aria-label="Requests" {
            @if let Some(invalid) = &invalid {
                p.notice.bad role="alert" { "Invalid filter: " (invalid) "." }
            } @else if shown.is_empty() {
                (nothing(visit, &every, &filter))
            } @else {
                p.soft #matching { (count(matching.len() as u64)) " of " (count(every.matching.len() as u64)) " sampled requests" @if !filter.is_empty() { " match the filter" } "." }
                (table(visit, shown, every.replicas.len() > 1))
                (pager(visit, shown.len(), matching.len(), LISTED))
            }
        }
    };
    visit.page(Page::live(Tab::Requests, "Requests", body).status(status))
}

/// Renders the extent of the sample: how many requests it has of how many, by replica if there are
/// several.
fn extent(visit: &PageContext<'_>, found: &FoundRequests, filter: &RequestsFilter) -> Markup {
    let (sampled, requests) = found.share();
    let since = found.replicas.first().map(|own| own.since_ms);
    html! {
        div.notice #sample {
            p {
                "Sample: " strong { (count(sampled)) " of " (count(requests)) } " requests of the last " (period(filter.minutes))
                @if let Some(since) = since { ", counted since " (moment(since, visit.now_ms)) } ". "
                "It prefers failed requests and holds at most " (bytes(visit.parts.requests.bytes_max() as u64)) " per replica."
            }
            @if visit.parts.requests.bytes_max() == 0 {
                p { "Sampling is off on this replica. Set " code { "admin.recent_requests" } " in the configuration to a size such as " code { "4MiB" } "." }
            }
            @if found.replicas.len() > 1 {
                ul.plain #sample-replicas {
                    @for share in &found.replicas {
                        li { (share.replica) ": " (count(share.sampled)) " of " (count(share.requests)) }
                    }
                }
            } @else if visit.is_one_of_several() {
                p.soft #sample-waiting { "The samples of the other replicas arrive within ten seconds while this page is open." }
            }
        }
    }
}

fn period(minutes: u64) -> String {
    match minutes {
        60 => "hour".to_owned(),
        1440 => "day".to_owned(),
        minutes => format!("{minutes} min"),
    }
}

fn form(visit: &PageContext<'_>, every: &FoundRequests, filter: &RequestsFilter) -> Markup {
    let names = |of: fn(&RequestSample) -> &str| -> BTreeSet<&str> {
        let names = every.matching.iter().map(|found| of(&found.sample));
        let mut distinct = BTreeSet::new();
        for name in names {
            if distinct.len() >= SUGGESTED {
                break;
            }
            distinct.insert(if name.is_empty() { NONE } else { name });
        }
        distinct
    };
    let suggested = |id: &str, names: BTreeSet<&str>| html! { datalist id=(id) { @for name in names { option value=(name) {} } } };
    let select = |name: &str, label: &str, values: &[&str], selected: &str| {
        html! {
            label { (label) select name=(name) data-submit {
                option value="" { "All" }
                @for value in values { option value=(value) selected[*value == selected] { (value) } }
            } }
        }
    };
    let outcomes: Vec<&str> = outcomes().collect();
    let phases: Vec<&str> = PHASES.into_iter().chain([NONE]).collect();
    html! {
        form.filter method="get" action="/requests" role="search" {
            label { "Request id" input #id type="search" name="id" value=(visit.query.get("id")); }
            label { "Client" input #client type="search" name="client" list="clients" value=(visit.query.get("client")); }
            label.grow { "Operation" input #operation type="search" name="operation" list="operations" value=(visit.query.get("operation")); }
            label { "Status" input #status type="search" name="status" list="statuses" placeholder="404 or 5xx" value=(visit.query.get("status")); }
            (select("outcome", "Outcome", &outcomes, &filter.outcome))
            (select("phase", "Phase", &phases, &filter.phase))
            label { "Period" select name="minutes" data-submit {
                @for minutes in MINUTES { option value=(minutes) selected[minutes == filter.minutes] { "Last " (period(minutes)) } }
            } }
            button type="submit" { "Show" }
            (suggested("clients", names(|sample| &sample.client)))
            (suggested("operations", names(|sample| &sample.operation)))
            (suggested("statuses", ["2xx", "3xx", "4xx", "5xx", NONE].into()))
        }
    }
}

fn nothing(visit: &PageContext<'_>, every: &FoundRequests, filter: &RequestsFilter) -> Markup {
    if !every.matching.is_empty() {
        let all = visit.query.get("minutes");
        let all = if all.is_empty() {
            "/requests".to_owned()
        } else {
            format!("/requests?minutes={}", percent_encode(all))
        };
        return empty(
            "No such request",
            &html! { "No sampled request matches. The sample does not have every request. " a href=(all) { "Show all" } },
        );
    }
    empty(
        "No requests yet",
        &html! { "No request of the last " (period(filter.minutes)) " is in the sample." },
    )
}

fn table(visit: &PageContext<'_>, shown: &[&FoundRequest], has_replicas: bool) -> Markup {
    html! {
        div.scroll role="region" aria-label="Table of requests" tabindex="0" { table {
            thead { tr {
                th { "Arrived" } th { "Request" } th { "Client" } th { "Phase" } th.n { "Status" } th { "Outcome" } th.n { "Calls" } th.n { "Duration" }
                @if has_replicas { th { "Replica" } }
            } }
            tbody { @for found in shown { (row(found, visit.now_ms, has_replicas)) } }
        } }
    }
}

fn row(found: &FoundRequest, now_ms: i64, has_replicas: bool) -> Markup {
    let FoundRequest { replica, sample } = found;
    html! {
        tr id={ "request-" (sample.id) } {
            td { (moment(sample.at_ms, now_ms)) }
            td { a.operation href={ "/requests/" (percent_encode(&sample.id)) } { span.method { (sample.method) } " " span.path { (sample.path) } } }
            td.break { (or_none(&sample.client)) }
            td { @if sample.phase.is_empty() { "–" } @else { (phase(&sample.phase, None)) } }
            td.n { (status(sample.end.status)) }
            td { (outcome(&sample.end.outcome)) }
            td.n { (count(sample.calls.len() as u64)) @if sample.attempts_left_out > 0 { "+" } }
            td.n { (micros(sample.times.took_us)) }
            @if has_replicas { td.break { (replica) } }
        }
    }
}

/// Renders a status, or a dash if the client disconnected before.
fn status(status: Option<u16>) -> Markup {
    html! { @if let Some(status) = status { (status) } @else { "–" } }
}

fn outcome(word: &str) -> Markup {
    let tone = match Outcome::parse(word) {
        Some(outcome) if outcome.is_failed() => Tone::Bad,
        Some(outcome) if outcome.is_answered() => Tone::Good,
        Some(Outcome::Cancelled) | None => Tone::Quiet,
        Some(_) => Tone::Warn,
    };
    badge(tone, word)
}

fn or_none(name: &str) -> Markup {
    html! { @if name.is_empty() { span.soft { "unknown" } } @else { (name) } }
}

fn micros(us: u64) -> String {
    duration(us as f64 / 1e6)
}
