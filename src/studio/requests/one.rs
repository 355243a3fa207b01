//! The page of one request.

use super::waterfall::waterfall;
use super::{micros, or_none, outcome, status};
use crate::admin::AdminResponse;
use crate::requests::FoundRequest;
use crate::studio::PageContext;
use crate::studio::fields::percent_encode;
use crate::studio::layout::{Page, Tab};
use crate::studio::operations::address;
use crate::studio::route::place;
use crate::studio::words::{bytes, moment, operation, phase};
use http::StatusCode;
use maud::{Markup, html};
use switchback_gateway::clock::rfc3339;
use switchback_gateway::outcome::Outcome;
use switchback_gateway::recent::{RequestSample, SampleMessage, SampleMessages};

pub(super) fn page(visit: &PageContext<'_>, id: &str) -> AdminResponse {
    let Some(found) = visit.parts.requests.one(id, visit.now_ms) else {
        let words = html! {
            p { "The sample has no request " code { (id) } ". It never had it, or newer requests have taken its place." }
            p { a.button href="/requests" { "All requests" } }
        };
        return visit.page(Page::notice(StatusCode::NOT_FOUND, "No such request", words));
    };
    let FoundRequest { replica, sample } = &found;
    let body = html! {
        div.page-head {
            p.crumbs { a href="/requests" { "Requests" } " / " (sample.id) }
            h1 { span.operation { span.method { (sample.method) } " " span.path { (sample.path) } } }
            div.aside { (outcome(&sample.end.outcome)) }
        }
        div.grid {
            section.panel.w12 #waterfall aria-labelledby="waterfall-title" {
                header { h2 #waterfall-title { "Waterfall" } span.soft { "a call lasts until the head of its response" } }
                (waterfall(sample))
            }
            section.panel.w6 #facts aria-labelledby="facts-title" {
                header { h2 #facts-title { "Request" } }
                (facts(visit, replica, sample))
            }
            section.panel.w6 #times aria-labelledby="times-title" {
                header { h2 #times-title { "Times and sizes" } }
                (times(sample))
            }
            section.panel.w12 #messages aria-labelledby="messages-title" {
                header { h2 #messages-title { "Header fields and bodies" } }
                (messages(visit, sample))
            }
        }
    };
    // An ended request does not change.
    visit.page(Page::still(Tab::Requests, format!("Request {}", sample.id), body))
}

fn facts(visit: &PageContext<'_>, replica: &str, sample: &RequestSample) -> Markup {
    let end = &sample.end;
    html! {
        dl.facts {
            dt { "Request id" } dd { code { (sample.id) } }
            dt { "Arrived" } dd { (moment(sample.at_ms, visit.now_ms)) " " span.soft { (rfc3339(sample.at_ms)) } }
            dt { "Client" } dd {
                @if sample.client.is_empty() { (or_none("")) }
                @else { a href={ "/clients/" (percent_encode(&sample.client)) } { (sample.client) } }
            }
            dt { "Operation" } dd { (named_operation(visit, sample)) }
            dt { "Phase" } dd { @if sample.phase.is_empty() { (or_none("")) } @else { (phase(&sample.phase, None)) } }
            dt { "Status" } dd { (status(end.status)) @if end.status.is_none() { " " span.soft { "the client disconnected before the response" } } }
            dt { "Outcome" } dd { (end.outcome) @if let Some(known) = Outcome::parse(&end.outcome) { " " span.soft { (known.meaning()) } } }
            @if !end.error.is_empty() { dt { "Error" } dd { code { (end.error) } } }
            dt { "Answered by" } dd { (end.answered_by) }
            dt { "Replica" } dd { (replica) }
        }
    }
}

/// Renders the operation with links to its page and to its mapping line, if the served pack has it.
fn named_operation(visit: &PageContext<'_>, sample: &RequestSample) -> Markup {
    if sample.operation.is_empty() {
        return or_none("");
    }
    let program = visit.parts.program.load_full();
    let pack = program.pack();
    let served = pack.directions.iter().find(|direction| pack.sides[direction.serves].name == sample.side);
    let route = served.and_then(|direction| {
        direction.routes.iter().find(|route| *route.operation.key == *sample.operation)
    });
    html! {
        (sample.side) " "
        @match route {
            Some(route) => {
                a href=(address(&sample.side, &sample.operation)) { (operation(&sample.operation)) }
                " " span.soft { "mapped by" } (place(&route.origin))
            }
            None => { (operation(&sample.operation)) " " span.soft { "not in the served pack" } }
        }
    }
}

fn times(sample: &RequestSample) -> Markup {
    let times = &sample.times;
    let unknown = || html! { span.soft { "unknown" } };
    html! {
        dl.facts.numbers {
            dt { "Duration" } dd { (micros(times.took_us)) }
            dt { "Until the response head" } dd { @if let Some(head) = times.head_us { (micros(head)) } @else { (unknown()) } }
            dt { "Waiting for response heads of calls" } dd { (micros(times.waited_us)) }
            dt { "Waiting for bodies, and pauses" } dd { (micros(times.paused_us)) }
            dt { "Own time of the gateway" } dd {
                @if let Some(head) = times.head_us { (micros(head.saturating_sub(times.waited_us + times.paused_us))) " " span.soft { "until the response head, at least" } }
                @else { (unknown()) }
            }
            dt { "Request body" } dd { @if let Some(length) = sample.end.bytes_in { (bytes(length)) } @else { (unknown()) } }
            dt { "Response body" } dd { (bytes(sample.end.bytes_out)) }
        }
    }
}

/// Renders the messages side by side: the client's on the left, the calls on the right.
fn messages(visit: &PageContext<'_>, sample: &RequestSample) -> Markup {
    let Some(messages) = visit.parts.requests.messages(&sample.id) else { return unrecorded(sample) };
    let SampleMessages { request, response, calls, is_shadow } = &*messages;
    html! {
        p.hint { "Masked as in captures. A body of more than 4 KiB is not recorded." @if *is_shadow { " The calls are those of the comparison: the service of " (sample.side) " answered the client." } }
        div.sides {
            div {
                h3 { "Request of the client" }
                (message(request, "request"))
                h3 { "Response to the client" @if let Some(status) = sample.end.status { ", " (status) } }
                (message(response, "response"))
            }
            div {
                @if calls.is_empty() { h3 { "Calls" } p.soft { "No translated call is recorded." } }
                @for call in calls {
                    h3 { "Call " span.operation { span.method { (call.method) } " " span.path { (call.path) } } }
                    (message(&call.request, "request of the call"))
                    h3 { "Its response" @if let Some(status) = call.status { ", " (status) } }
                    @if call.status.is_some() { (message(&call.response, "response of the call")) } @else { p.soft { "none" } }
                }
            }
        }
    }
}

fn message(message: &SampleMessage, name: &str) -> Markup {
    let fields: Vec<String> =
        message.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    html! {
        @if !fields.is_empty() { pre tabindex="0" aria-label={ "Header fields, " (name) } { (fields.join("\n")) } }
        @match &message.body {
            None => p.soft { "Body not recorded." },
            Some(body) if body.is_empty() => p.soft { "No body." },
            Some(body) => pre tabindex="0" aria-label={ "Body, " (name) } { (indented(body)) },
        }
    }
}

/// Indents JSON; any other text is unchanged.
fn indented(body: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(body).ok();
    value.map_or_else(|| body.to_owned(), |value| format!("{value:#}"))
}

/// Renders how the messages of such requests are recorded.
fn unrecorded(sample: &RequestSample) -> Markup {
    html! {
        p { "The messages of this request are not recorded: it was not selected on its arrival, a capture was open, or newer messages have taken their place. A capture records those of the next requests, masked:" }
        pre tabindex="0" aria-label="Command of a capture" {
            "switchback capture"
            @if !sample.operation.is_empty() { " --operation '" (sample.operation) "'" }
            @if !sample.client.is_empty() { " --client " (sample.client) }
            " --out traffic.har"
        }
    }
}
