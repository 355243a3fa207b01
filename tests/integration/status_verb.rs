//! `switchback status` and `GET /api/attention`: the list of the studio, with its commands.

use crate::support::dual::{ADMIN_TOKEN, Dual, Running, Upstreams, ask, eventually, started};
use crate::support::studio::{page, section};
use serde_json::{Value, json};
use switchback_gateway::clock::{Clock, rfc3339};
use switchback_sandbox::{Options, Sandbox};

async fn sandbox() -> Sandbox {
    Sandbox::start(Options::default()).await.expect("a loopback address")
}

/// Runs the verb. Returns the exit code and the output.
async fn status(dual: &Dual, gateway: &Running, words: &[&str]) -> (Option<i32>, String) {
    let admin = format!("http://{}", gateway.admin);
    let (code, out, err) = dual.cli(&[&["status", "--admin", &admin], words].concat()).await;
    assert!(err.is_empty(), "{err}");
    assert!(!out.contains(ADMIN_TOKEN), "{out}");
    (code, out)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_a_calm_gateway_needs_nothing() {
    let service = sandbox().await;
    let more = "sunset: { v2: { sunset: 2031-01-31 } }\n";
    let (dual, gateway) = started(&service, Upstreams::of(&service), more).await;
    assert_eq!(ask(&gateway, &service, "GET /v2/agents", "").await.status, 200);
    let mut last = (None, Value::Null);
    eventually("the traffic is sampled", async || {
        let (code, out) = status(&dual, &gateway, &["--json"]).await;
        last = (code, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}")));
        // Data that a busy store returns late is unread.
        last.1["traffic"]["requests"] == 1 && last.1["unread"] == json!([])
    })
    .await;
    let (code, value) = last;
    assert_eq!((code, &value["attention"], &value["unread"]), (Some(0), &json!([]), &json!([])), "{value:#}");
    assert_eq!((&value["ready"], &value["store"]["answers"]), (&true.into(), &true.into()), "{value:#}");
    assert_eq!(value["grants"]["connected"], 1, "{value:#}");
    assert_eq!(value["brownouts"], json!({"open": [], "next": null}), "{value:#}");
    assert_eq!(value["sunsets"][0]["side"], "v2", "{value:#}");
    let (_, pack) = gateway.admin("GET /api/pack", &Value::Null).await;
    assert_eq!(value["pack"], pack);

    let (code, text) = status(&dual, &gateway, &[]).await;
    assert_eq!(code, Some(0), "{text}");
    for part in [
        "Gateway    ready; version ",
        "Pack       messaging (built in), digest ",
        "Traffic    1 request since ",
        "Phases     legacy 0, shadow 0, canary 0, translated ",
        "Grants     1 of 1 client connected",
        "Brownouts  none open, none planned",
        "Sunsets    v2: 2031-01-31T00:00:00Z (in ",
        "Unknown    0 calls of 0 kinds",
        "Nothing needs attention.",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_attention_is_the_list_of_the_studio_with_commands() {
    let service = sandbox().await;
    let more = "phases: { 'GET /agents': legacy }\n";
    let (dual, gateway) = started(&service, Upstreams::of(&service), more).await;
    let now_ms = Clock::machine().unix_ms();
    let window = |from: i64, until: i64| {
        let (from, until) = (rfc3339(now_ms + from), rfc3339(now_ms + until));
        json!({"operations": ["GET /agents"], "from": from, "until": until})
    };
    let (code, open) = gateway.admin("POST /api/brownouts", &window(-1_000, 3_600_000)).await;
    assert_eq!(code, 201, "{open}");
    assert_eq!(gateway.admin("POST /api/brownouts", &window(7_200_000, 7_800_000)).await.0, 201);
    assert_eq!(gateway.admin("POST /api/clients", &json!({"name": "acme"})).await.0, 201);
    assert_eq!(ask(&gateway, &service, "GET /v2/nothing", "").await.status, 404);

    let (code, list) = gateway.admin("GET /api/attention", &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    let items = list["items"].as_array().expect("a list");
    let ids: Vec<&str> = items.iter().filter_map(|item| item["id"].as_str()).collect();
    let id = open["id"].as_str().expect("an id");
    assert_eq!(ids, [format!("brownout-{id}").as_str(), "client-acme", "unknown"], "{list:#}");
    let commands: Vec<&str> = items.iter().filter_map(|item| item["command"].as_str()).collect();
    let remove = format!("switchback brownout remove {id}");
    assert_eq!(commands, [remove.as_str(), "switchback client connect acme", "switchback unknown"]);

    // The studio has the same sentences.
    let attention = section(&page(&gateway, "/").await, "attention");
    let begins = |text: &str| text.split(['.', ';']).next().unwrap_or_default().to_owned();
    for item in items {
        let text = begins(item["text"].as_str().expect("text"));
        assert!(attention.contains(&text), "{text} in {attention}");
    }

    let (code, text) = status(&dual, &gateway, &[]).await;
    assert_eq!(code, Some(1), "{text}");
    for part in [
        "Brownouts  open, ",
        "           next, ",
        "What to do next\n  1. A brownout is open: GET /agents of all clients on v2 are rejected with 503",
        &format!("       {remove}\n"),
        "  2. The grant of acme is not connected.\n       switchback client connect acme\n",
        "Unknown    1 call of 1 kind",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let (code, out) = status(&dual, &gateway, &["--json"]).await;
    let value: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &value["phases"]["legacy"]), (Some(1), &1.into()), "{value:#}");
    let ids: Vec<&Value> = list["items"].as_array().into_iter().flatten().map(|item| &item["id"]).collect();
    let same: Vec<&Value> =
        value["attention"].as_array().into_iter().flatten().map(|item| &item["id"]).collect();
    assert_eq!(ids, same);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_cannot_be_reached_is_exit_code_3() {
    let service = sandbox().await;
    let (dual, gateway) = started(&service, Upstreams::of(&service), "").await;
    let admin = format!("http://{}", gateway.admin);
    let (code, _, err) = dual.cli(&["status", "--admin", &admin, "--token", "env:TEST_KEY"]).await;
    assert!(code == Some(3) && err.contains("401"), "{code:?} {err}");
    gateway.stop().await;
    let (code, _, err) = dual.cli(&["status", "--admin", &admin]).await;
    assert!(code == Some(3) && err.contains("cannot be reached"), "{code:?} {err}");
}

/// Misspelt names of clients and operations are answered with the nearest one, by verbs and by the
/// admin API, and operations may be written with their side.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_names_are_answered_with_the_nearest_one() {
    let service = sandbox().await;
    let (dual, gateway) = started(&service, Upstreams::of(&service), "").await;
    assert_eq!(ask(&gateway, &service, "GET /v2/agents", "").await.status, 200);
    let soon = rfc3339(Clock::machine().unix_ms() + 60_000);
    let (client, operation) = ("did you mean `administrator`?", "did you mean `GET /agents`?");
    for (words, help) in [
        (&["client", "retry", "administator"][..], client),
        (&["client", "revoke", "administator", "--yes"], client),
        (&["client", "connect", "administator"], client),
        (&["client", "sunset", "administator", "2031-01-31"], client),
        (&["archive", "status", "administator"], client),
        (&["brownout", "add", "--for", "1m", "--client", "administator"], client),
        (&["brownout", "add", "--for", "1m", "--operation", "GET /agent"], operation),
        (&["phase", "set", "GET /agent", "shadow"], operation),
        (&["phase", "reset", "v2 GET /agent"], operation),
    ] {
        let (code, out, err) = dual.cli(words).await;
        assert!(code == Some(2) && err.contains(help), "{words:?}: {code:?} {out}{err}");
    }
    for (line, body, help) in [
        ("POST /api/clients/administator/retry", json!({}), client),
        ("POST /api/clients/administator/rotate", json!({}), client),
        ("POST /api/clients/administator/sunset", json!({"at": "2031-01-31"}), client),
        ("GET /api/clients/administator/letter", Value::Null, client),
        ("POST /api/brownouts", json!({"clients": ["administator"], "until": soon}), client),
        ("POST /api/phases", json!({"operation": "GET /agent", "phase": "shadow"}), operation),
        ("POST /api/capture", json!({"client": "administator"}), client),
        ("POST /api/capture", json!({"operation": "v2 GET /agent"}), operation),
        ("GET /api/diff/export?operation=GET+/agent", Value::Null, operation),
    ] {
        let (status, value) = gateway.admin(line, &body).await;
        let error = value["error"].as_str().unwrap_or_default();
        assert!((400..=404).contains(&status) && error.contains(help), "{line}: {status} {value}");
    }

    // With its side, an operation is the same one.
    let set = dual.cli_json(&["phase", "set", "v2 GET /agents", "shadow"]).await;
    assert_eq!(
        (&set["side"], &set["operation"], &set["phase"]),
        (&"v2".into(), &"GET /agents".into(), &"shadow".into())
    );
    let (status, set) =
        gateway.admin("POST /api/phases/reset", &json!({"operation": "v2 GET /agents"})).await;
    assert!(status == 200 && set["phase"] == "translated", "{set}");
    let added = dual.cli_json(&["brownout", "add", "--for", "1m", "--operation", "v2 GET /agents"]).await;
    assert_eq!((&added["side"], &added["operations"]), (&"v2".into(), &json!(["GET /agents"])));
    let (code, _, err) = dual.cli(&["phase", "set", "v3 GET /agents", "shadow"]).await;
    assert!(code == Some(2) && err.contains("v3"), "{err}");

    let mut said = String::new();
    eventually("the call is counted", async || {
        (_, said, _) = dual.cli(&["usage", "--client", "administator"]).await;
        said.contains(client)
    })
    .await;
}
