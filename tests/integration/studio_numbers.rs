//! The numbers of the studio's pages, compared with counted calls: all pages with amounts or rates
//! agree on the same traffic.

use crate::support::dual::{Upstreams, ask, control, eventually, started};
use crate::support::studio::{cells, page, section};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use switchback_gateway::clock::{Clock, rfc3339};
use switchback_gateway::outcome::OUTCOMES;
use switchback_sandbox::{Options, Sandbox};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// How the calls of the test end.
const ENDS: [(&str, u64, &str); 5] = [
    ("translated", 6, "46.2 %"),
    ("forwarded", 1, "7.69 %"),
    ("upstream_error", 2, "15.4 %"),
    ("brownout", 3, "23.1 %"),
    ("rejected", 1, "7.69 %"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_says_the_same_of_the_same_calls() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let more = "fronts: { /v2: { speaks: v2, unknown: refuse } }\n";
    let (_dual, gateway) = started(&service, Upstreams::of(&service), more).await;
    let until = rfc3339(Clock::machine().unix_ms() + 600_000);
    let window = json!({"operations": ["GET /agents"], "until": until});
    assert_eq!(gateway.admin("POST /api/brownouts", &window).await.0, 201);
    let rule =
        json!({"side": "v3", "method": "GET", "path": "/contacts", "action": {"status": {"code": 500}}});
    control(&service, "POST faults", rule).await;
    for (line, times, status) in [
        ("GET /v2/chats/7", 4, 200),
        ("GET /v2/chats/999999", 2, 404),
        ("GET /v2/chats/7/feedback", 1, 404),
        ("GET /v2/contacts", 2, 500),
        ("GET /v2/agents", 3, 503),
        ("GET /v2/nothing", 1, 404),
    ] {
        for _ in 0..times {
            assert_eq!(ask(&gateway, &service, line, "").await.status, status, "{line}");
        }
    }

    // The counters are read every two seconds.
    let mut overview = String::new();
    eventually("the overview has counted all of them", async || {
        overview = page(&gateway, "/").await;
        let counted = OUTCOMES
            .iter()
            .filter_map(|outcome| number(&overview, &format!("outcome-{}", outcome.as_str()), 1));
        counted.sum::<u64>() == 13
    })
    .await;
    for (outcome, requests, share) in ENDS {
        let row = cells(&overview, &format!("outcome-{outcome}"));
        assert_eq!(row[1..], [requests.to_string(), share.to_owned()], "{outcome}");
    }
    let added = section(&overview, "now-own");
    assert!(added.contains("mean of 9 requests"), "those for which a service was called: {added}");
    let errors = section(&overview, "now-errors");
    assert!(errors.contains("15.4%2 requests,"), "the answers that the service failed: {errors}");
    assert!(errors.contains("3 rejected by brownouts"), "{errors}");
    assert!(section(&overview, "now-requests").contains("Requests in the last hour13"), "{overview}");
    assert!(
        section(&overview, "known-since").contains("Counted since"),
        "the gateway is younger than an hour"
    );
    assert!(section(&overview, "attention").contains("A brownout is open"), "{overview}");
    let busy = |operation: &str| format!("busy-v2-{operation}");
    for (operation, requests, failed, share) in [
        ("GET%20%2Fchats%2F%7Bid%7D", 6, 0, "0 %"),
        ("GET%20%2Fcontacts", 2, 2, "100 %"),
        ("GET%20%2Fagents", 3, 0, "0 %"),
    ] {
        let row = cells(&overview, &busy(operation));
        assert_eq!(row[1..], [requests.to_string(), failed.to_string(), share.to_owned()], "{operation}");
        let list = cells(&page(&gateway, "/operations").await, &format!("operation-v2-{operation}"));
        assert_eq!(list[3..5], [requests.to_string(), failed.to_string()], "{operation}: {list:?}");
        assert!(list[5..7].iter().all(|latency| latency.ends_with("s")), "{operation}: {list:?}");
        assert_eq!(list[9], "1", "one client has called {operation}: {list:?}");
        let day = cells(
            &page(&gateway, "/operations?span=day&sort=p99").await,
            &format!("operation-v2-{operation}"),
        );
        assert_eq!(day[3..7], list[3..7], "the day has no other requests than the hour: {day:?}");
    }
    // The brownout is marked in the charts, of its operation and of all.
    for (path, requests) in [
        ("/", "/requests?minutes=60\""),
        ("/operations/v2/GET%20%2Fagents?span=day", "/requests?minutes=1440&amp;operation=GET%20%2Fagents"),
    ] {
        let marked = page(&gateway, path).await;
        assert!(section(&marked, "marks").contains("brownout begins, v2: GET /agents"), "{path}: {marked}");
        assert!(marked.contains("<line class=\"mark\"") && marked.contains(requests), "{path}: {marked}");
    }
    let other = page(&gateway, "/operations/v2/GET%20%2Fcontacts").await;
    assert!(section(&other, "marks").contains("No transition, reload or brownout"), "{other}");
    // A call that the pack refuses and the old service answers is not translated traffic.
    for (row, share) in [("progress-translated", "91.7 %"), ("progress-forwarded", "8.33 %")] {
        assert_eq!(cells(&overview, row)[2], share, "{row}");
    }

    let refused = page(&gateway, "/operations/v2/GET%20%2Fchats%2F%7Bid%7D%2Ffeedback").await;
    assert!(refused.contains("not possible") && !refused.contains("every field survives"), "{refused}");

    let operation = page(&gateway, "/operations/v2/GET%20%2Fcontacts").await;
    assert_eq!(
        cells(&operation, "caller-administrator")[1..3],
        ["2", "2"],
        "no call got an answer: {operation}"
    );
    let after = page(&gateway, "/clients?show=after-sunset").await;
    let row = cells(&after, "loss-administrator-v2-GET /chats/{id}/feedback");
    assert_eq!(row[2..4], ["not possible", "1"], "{row:?}");
    assert!(row[5].contains("Survey results cannot be read") && row[6].contains("chats.archived"), "{row:?}");
    let sum = section(&after, "after-sunset-sum");
    assert!(sum.contains("Clients call 5 operations, counted for each client."), "{sum}");

    let client = page(&gateway, "/clients/administrator").await;
    for (operation, outcome, calls) in [
        ("GET /chats/{id}", "translated", "6"),
        ("GET /chats/{id}/feedback", "forwarded", "1"),
        ("GET /contacts", "upstream_error", "2"),
        ("GET /agents", "brownout", "3"),
    ] {
        let row = cells(&client, &format!("call-v2-{operation}-{outcome}"));
        assert_eq!(row.get(2).map(String::as_str), Some(calls), "{operation}: {row:?}");
    }
    assert!(
        section(&client, "brownouts").contains("GET /agents"),
        "a window for all clients is for this one too"
    );
}

/// The number in a cell of a row.
fn number(page: &str, id: &str, cell: usize) -> Option<u64> {
    cells(page, id).get(cell)?.parse().ok()
}

/// A service: its answers to `/v2` are an event stream, and those to `/v3` have a delayed body.
async fn slow_service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback address");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await?);
                }
                if head.starts_with(b"GET /v2") {
                    let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\ndata: x\n\n";
                    return stream.write_all(answer.as_bytes()).await;
                }
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n";
                stream.write_all(head.as_bytes()).await?;
                tokio::time::sleep(LATE).await;
                stream.write_all(b"{}").await
            });
        }
    });
    address
}

/// The delay of the body.
const LATE: Duration = Duration::from_millis(300);

/// The sum of all samples of a metric, or of a part of it (`_sum`, `_count`).
fn sum_of(metrics: &str, name: &str) -> f64 {
    let of_it = metrics
        .lines()
        .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
    of_it.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_take_is_not_counted_as_added_and_streams_have_no_latency() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let slow = slow_service().await;
    let (_dual, gateway) = started(&service, Upstreams { v2: slow, v3: slow }, "").await;
    ask(&gateway, &service, "GET /v2/news", "").await;
    ask(&gateway, &service, "GET /v2/agents/7", "").await;
    // Answered by the gateway itself.
    assert_eq!(ask(&gateway, &service, "GET /elsewhere", "").await.status, 404);
    let mut metrics = String::new();
    eventually("all are counted", async || {
        metrics = gateway.admin_text("GET /metrics", &Value::Null).await.text();
        sum_of(&metrics, "switchback_requests_total") == 3.0
    })
    .await;
    let of = |name: &str| sum_of(&metrics, name);
    assert_eq!(of("switchback_request_duration_seconds_count"), 2.0, "without the stream: {metrics}");
    assert_eq!(of("switchback_added_duration_seconds_count"), 1.0, "of the request with a call: {metrics}");
    let (all, added) =
        (of("switchback_request_duration_seconds_sum"), of("switchback_added_duration_seconds_sum"));
    // The clocks of the service and the gateway start at different times.
    assert!(all - added >= LATE.as_secs_f64() / 2.0, "{added} s of {all} s are the gateway's");
}
