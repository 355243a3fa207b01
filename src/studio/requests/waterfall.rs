//! The course of a request over time: its upstream calls, and the time between them.

use super::{micros, status};
use maud::{Markup, html};
use switchback_gateway::recent::{CallSample, RequestSample};

/// A part of a request's time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RequestPart<'s> {
    kind: RequestPartKind<'s>,
    /// Microseconds from the arrival of the request; `None` if unknown.
    start_us: Option<u64>,
    took_us: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RequestPartKind<'s> {
    Request,
    Call(&'s CallSample),
    /// No call was under way before the response head.
    Between,
    /// From the response head to the end of the response.
    Response,
}

/// Returns the parts of a request in the order of their starts; calls with an unknown start are
/// last.
fn parts(sample: &RequestSample) -> Vec<RequestPart<'_>> {
    let took = sample.times.took_us;
    let head = sample.times.head_us.unwrap_or(took).min(took);
    let part =
        |kind, start: u64, end: u64| RequestPart { kind, start_us: Some(start), took_us: Some(end - start) };
    let mut calls: Vec<&CallSample> = sample.calls.iter().collect();
    calls.sort_by_key(|call| call.start_us.unwrap_or(u64::MAX));
    let mut parts = vec![part(RequestPartKind::Request, 0, took)];
    // The end of the calls so far.
    let mut until = 0;
    for call in &calls {
        let start = call.start_us;
        if let Some(start) = start.filter(|start| *start > until && until < head) {
            parts.push(part(RequestPartKind::Between, until, start.min(head)));
        }
        parts.push(RequestPart { kind: RequestPartKind::Call(call), start_us: start, took_us: call.took_us });
        until = until.max(start.unwrap_or(0).saturating_add(call.took_us.unwrap_or(0)));
    }
    let between = (until < head).then(|| part(RequestPartKind::Between, until, head));
    let response = sample.times.head_us.map(|_| part(RequestPartKind::Response, head, took));
    // Before the calls that were never sent.
    let sent = parts.iter().rposition(|part| part.start_us.is_some()).map_or(0, |last| last + 1);
    parts.splice(sent..sent, between.into_iter().chain(response));
    parts
}

/// Width of a bar in units of its own.
const WIDTH: u64 = 1_000;

/// Renders the waterfall as a table with a bar in each row.
pub(super) fn waterfall(sample: &RequestSample) -> Markup {
    let total = sample.times.took_us.max(1);
    html! {
        div.scroll role="region" aria-label="Course of the request" tabindex="0" { table.waterfall {
            thead { tr { th { "Part" } th { "Status" } th.n { "Start" } th.n { "Duration" } th { "Course" } } }
            tbody { @for (at, part) in parts(sample).iter().enumerate() {
                tr id={ "part-" (at) } {
                    td { (name(part, sample)) }
                    td { (result(part, sample)) }
                    td.n { (known(part.start_us)) }
                    td.n { (known(part.took_us)) }
                    td { (bar(part, total)) }
                }
            } }
        } }
        @if sample.attempts_left_out > 0 {
            p.soft #left-out { (super::count(u64::from(sample.attempts_left_out))) " further attempts of calls are not listed: only the first 32 calls are, and none that had not ended with the request. Their times are unknown, and part of “Gateway”." }
        }
    }
}

fn name(part: &RequestPart<'_>, sample: &RequestSample) -> Markup {
    match part.kind {
        RequestPartKind::Request => html! { strong { "Request" } },
        RequestPartKind::Call(call) => html! {
            span.soft { (call.side) " " } span.operation { span.method { (call.method) } " " span.path { (call.path) } }
            @if call.attempts > 1 { " " span.soft { (call.attempts) " attempts" } }
        },
        RequestPartKind::Between if sample.times.paused_us > 0 => {
            html! { "Gateway" " " span.soft { "translation, bodies and pauses" } }
        }
        RequestPartKind::Between => html! { "Gateway" },
        RequestPartKind::Response => html! { "Response body" },
    }
}

fn result(part: &RequestPart<'_>, sample: &RequestSample) -> Markup {
    match part.kind {
        RequestPartKind::Request => status(sample.end.status),
        RequestPartKind::Call(call) if call.error.is_empty() => status(call.status),
        RequestPartKind::Call(call) => html! { span.bad-text { (call.error) } },
        RequestPartKind::Between | RequestPartKind::Response => html! {},
    }
}

fn known(us: Option<u64>) -> Markup {
    html! { @if let Some(us) = us { (micros(us)) } @else { span.soft { "unknown" } } }
}

fn bar(part: &RequestPart<'_>, total_us: u64) -> Markup {
    let class = match part.kind {
        RequestPartKind::Request => "w-request",
        RequestPartKind::Call(call)
            if call.error.is_empty() && call.status.is_some_and(|status| status < 400) =>
        {
            "w-call"
        }
        RequestPartKind::Call(_) => "w-failed",
        RequestPartKind::Between => "w-gateway",
        RequestPartKind::Response => "w-response",
    };
    let scaled = |us: u64| (us.min(total_us) as f64 / total_us as f64 * WIDTH as f64).round() as u64;
    let Some((start, took)) = part.start_us.zip(part.took_us) else { return html! {} };
    let x = scaled(start);
    // Visible, however short.
    let width = scaled(start.saturating_add(took)).saturating_sub(x).max(WIDTH / 250);
    html! {
        svg.course viewBox={ "0 0 " (WIDTH) " 10" } preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect.track x="0" y="0" width=(WIDTH) height="10" {}
            rect.(class) x=(x.min(WIDTH - WIDTH / 250)) y="0" width=(width) height="10" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use switchback_gateway::recent::SampleTimes;

    fn call(start_us: Option<u64>, took_us: Option<u64>) -> CallSample {
        CallSample { start_us, took_us, ..CallSample::default() }
    }

    fn sample(took_us: u64, head_us: Option<u64>, calls: Vec<CallSample>) -> RequestSample {
        let times = SampleTimes { took_us, head_us, ..SampleTimes::default() };
        RequestSample { times, calls, ..RequestSample::default() }
    }

    fn shown(sample: &RequestSample) -> Vec<String> {
        let text = |part: &RequestPart<'_>| {
            let kind = match part.kind {
                RequestPartKind::Request => "request",
                RequestPartKind::Call(_) => "call",
                RequestPartKind::Between => "gateway",
                RequestPartKind::Response => "response",
            };
            let time = |us: Option<u64>| us.map_or("?".to_owned(), |us| us.to_string());
            format!("{kind} {} {}", time(part.start_us), time(part.took_us))
        };
        parts(sample).iter().map(text).collect()
    }

    #[test]
    fn the_time_between_calls_is_the_gateways() {
        let calls = vec![
            call(Some(10), Some(20)),
            call(Some(25), Some(15)),
            call(Some(50), Some(10)),
            call(None, None),
        ];
        assert_eq!(
            shown(&sample(100, Some(70), calls)),
            [
                "request 0 100",
                "gateway 0 10",
                "call 10 20",
                "call 25 15",
                "gateway 40 10",
                "call 50 10",
                "gateway 60 10",
                "response 70 30",
                "call ? ?",
            ]
        );
        assert_eq!(
            shown(&sample(30, None, vec![])),
            ["request 0 30", "gateway 0 30"],
            "the client went away"
        );
        assert_eq!(shown(&sample(30, Some(0), vec![])), ["request 0 30", "response 0 30"]);
    }

    proptest! {
        #[test]
        fn parts_are_within_the_request_and_leave_nothing_out(
            took in 0..1_000_u64,
            head in prop::option::of(0..1_000_u64),
            calls in prop::collection::vec((0..1_000_u64, 0..1_000_u64), 0..6),
        ) {
            // As they are recorded: a call ends before the head of the response.
            let head = head.map(|head| head.min(took));
            let end = head.unwrap_or(took);
            let calls = calls.into_iter().map(|(start, time)| {
                let start = start.min(end);
                call(Some(start), Some(time.min(end - start)))
            });
            let sample = sample(took, head, calls.collect());
            let parts = parts(&sample);
            let mut covered = 0;
            for part in &parts[1..] {
                let (start, took_us) = (part.start_us.unwrap(), part.took_us.unwrap());
                prop_assert!(start <= covered, "a hole at {covered}: {parts:?}");
                if matches!(part.kind, RequestPartKind::Between) {
                    prop_assert_eq!(start, covered, "the gateway's time overlaps no call");
                }
                covered = covered.max(start + took_us);
                prop_assert!(covered <= took);
            }
            prop_assert_eq!(covered, took, "{:?}", parts);
        }
    }
}
