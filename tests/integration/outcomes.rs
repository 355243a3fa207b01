//! Every outcome of the closed list, through the real binary: the log line, the metric, the row of
//! the usage and the page of the client agree on one call.

use crate::support::dual::{Dual, Running, Upstreams, administrator, eventually, request};
use crate::support::raw::{Act, Client, Upstream};
use serde_json::{Value, json};
use switchback_gateway::outcome::OUTCOMES;
use switchback_sandbox::{Account, Options, Sandbox};

/// One call and its expected record everywhere.
struct Case {
    outcome: &'static str,
    client: &'static str,
    line: &'static str,
    fields: &'static str,
    body: &'static str,
    status: u16,
    /// As the usage names it.
    operation: &'static str,
}

const fn get(outcome: &'static str, line: &'static str, operation: &'static str, status: u16) -> Case {
    Case { outcome, client: "administrator", line, fields: "", body: "", status, operation }
}

/// The service of v2, as far as the cases need it: it answers in its own form, fails, or never
/// answers.
fn v2(seen: &crate::support::raw::Seen) -> Act {
    match seen.line().split(' ').nth(1).unwrap_or_default() {
        "/v2/chats/8/feedback" => Act::json(503, r#"{"reason":"down"}"#),
        "/v2/agents/31" => Act::Silence,
        _ => Act::json(200, "[]"),
    }
}

/// A gateway with the clients `administrator` (with a grant), `waiting` (not connected) and `over`
/// (its sunset is past) of v2. A v2 service answers operations according to `phases`, and those
/// that the pack refuses.
async fn gateway(service: &Sandbox, more: &str, has_v2: bool) -> (Dual, Running, Upstream) {
    let own = Upstream::answering(|_, seen| v2(seen)).await;
    let dual = Dual::new();
    let app = service.credentials();
    let grant =
        format!("grant: {{ client_id: '{}', client_secret: '{}' }}", app.client_id, app.client_secret);
    let clients = format!(
        "- {{ name: waiting, v2_token: token-of-waiting, {grant} }}\n\
         - {{ name: over, v2_token: token-of-over, {grant}, sunset: {{ at: 2021-01-01 }} }}\n{more}"
    );
    let upstreams = Upstreams { v2: own.address, v3: service.address() };
    dual.configure(service, upstreams, &["administrator"], &clients);
    let text = std::fs::read_to_string(dual.file()).expect("it was written");
    if !has_v2 {
        let without = text.replace(&format!(", v2: {{ url: 'http://{}/v2' }}", own.address), "");
        assert_ne!(without, text);
        std::fs::write(dual.file(), without).expect("it is written");
    }
    let gateway = dual.started().await;
    (dual, gateway, own)
}

impl Case {
    fn account(&self, service: &Sandbox) -> Account {
        let mut account = administrator(service).clone();
        if !["administrator", ""].contains(&self.client) {
            account.v2_token = format!("token-of-{}", self.client);
        }
        account
    }

    /// Makes the call, or starts it and disconnects, and checks all records of it.
    async fn holds(&self, gateway: &Running, service: &Sandbox) {
        let Case { outcome, client, line, operation, status, .. } = self;
        let id = format!("{outcome}-of-{client}-{}", line.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let fields = format!("{}x-request-id: {id}\r\n", self.fields);
        let account = self.account(service);
        if *outcome == "cancelled" {
            let mut asking = Client::connect(gateway.address).await;
            asking.send(request(&account, line, &fields, self.body)).await;
            eventually("the call is on its way", async || {
                gateway.counted("switchback_requests_in_flight", &[]).await == 1
            })
            .await;
            asking.reset();
        } else {
            let answer = gateway.ask(&account, line, &fields, self.body).await.expect("an answer");
            assert_eq!(answer.status, *status, "{line}: {}", answer.text());
        }
        let logged = gateway.program.stderr_until(&format!("client_request_id={id}"));
        let logged = logged.lines().last().expect("the line that was waited for");
        assert!(logged.contains(&format!(" outcome={outcome} status={status} ")), "{logged}");
        let name = operation.strip_prefix("unknown ");
        let label = if name.is_some() { "none" } else { operation };
        let (status, operation) = (status.to_string(), name.unwrap_or(operation));
        let labels = [
            ("outcome", *outcome),
            ("status", &status),
            ("client", if client.is_empty() { "none" } else { *client }),
            ("operation", label),
            ("side", "v2"),
        ];
        eventually(outcome, async || gateway.counted("switchback_requests_total", &labels).await == 1).await;
        let (_, usage) = gateway.admin("GET /api/usage", &Value::Null).await;
        let of = usage.as_array().expect("a list").iter();
        let rows: Vec<&Value> = of
            .filter(|row| {
                row["client"] == *client && row["operation"] == operation && row["outcome"] == *outcome
            })
            .collect();
        assert_eq!(rows.len(), 1, "{outcome} {operation}: {usage}");
        assert_eq!((&rows[0]["calls"], &rows[0]["unknown"]), (&json!(1), &json!(name.is_some())), "{usage}");
        // Pages read the store every few seconds.
        let row = format!("id=\"call-v2-{operation}-{outcome}\"");
        eventually("the page of the client has the call", async || {
            let page = gateway.admin_text(&format!("GET /clients/{client}"), &Value::Null).await;
            client.is_empty() || page.text().contains(&row)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_outcome_is_the_same_in_log_metric_usage_and_on_the_page_of_its_client() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let more = "phases: { 'GET /agents': legacy, 'GET /agents/{id}': legacy }\n\
        brownouts: [ { from: 2020-01-01, until: 2999-01-01, operations: ['GET /contacts'] } ]\n";
    let both = [
        get("translated", "GET /v2/chats/7/messages", "GET /chats/{id}/messages", 200),
        // A failure that the service reports is an answer, too.
        get("translated", "GET /v2/chats/999999", "GET /chats/{id}", 404),
        get("forwarded", "GET /v2/agents", "GET /agents", 200),
        // The pack refuses it, and the old service answers.
        get("forwarded", "GET /v2/chats/7/feedback", "GET /chats/{id}/feedback", 200),
        get("upstream_error", "GET /v2/chats/8/feedback", "GET /chats/{id}/feedback", 503),
        Case { status: 499, ..get("cancelled", "GET /v2/agents/31", "GET /agents/{id}", 0) },
        get("brownout", "GET /v2/contacts", "GET /contacts", 503),
        Case { client: "over", ..get("retired", "GET /v2/agents", "GET /agents", 410) },
        Case { client: "waiting", ..get("gateway_error", "GET /v2/chats", "GET /chats", 503) },
    ];
    let (_dual, gateway, _own) = gateway(&service, more, true).await;
    for case in &both {
        case.holds(&gateway, &service).await;
    }
    gateway.stop().await;

    // Without the old service the pack's own words are heard. Another sandbox: the refresh token of
    // this one is spent.
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let alone = [
        get("refused", "GET /v2/chats/7/feedback", "GET /chats/{id}/feedback", 501),
        // The route looks for the contact, and refuses the rest: not an answer of a service.
        get("refused", "DELETE /v2/contacts/1002", "DELETE /contacts/{id}", 501),
        Case {
            fields: "content-type: application/json\r\n",
            body: "{\"text\": ",
            ..get("rejected", "POST /v2/chats/7/messages", "POST /chats/{id}/messages", 400)
        },
        // No token is required: no operation has the path.
        Case { client: "", ..get("rejected", "GET /v2/nothing", "unknown GET /v2/*", 404) },
    ];
    let more = "fronts: { /v2: { speaks: v2, unknown: refuse } }\n";
    let (dual, gateway, _own) = self::gateway(&service, more, false).await;
    for case in &alone {
        case.holds(&gateway, &service).await;
    }
    gateway.stop().await;
    let refused = dual.cli_json(&["usage", "--kind", "refused"]).await;
    let operations: Vec<&str> =
        refused.as_array().expect("a list").iter().filter_map(|row| row["operation"].as_str()).collect();
    assert_eq!(operations, ["DELETE /contacts/{id}", "GET /chats/{id}/feedback"], "{refused}");
    let seen: Vec<&str> = both.iter().chain(&alone).map(|case| case.outcome).collect();
    for outcome in OUTCOMES {
        assert!(seen.contains(&outcome.as_str()), "no case is {outcome:?}");
    }
}
