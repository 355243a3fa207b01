//! The end of a side, through the real binary: the remaining callers, windows in which calls are
//! rejected, and the day from which a client is refused.

use crate::support::dual::{Dual, Running, Upstreams, administrator, ask, eventually, started};
use crate::support::postgres;
use crate::support::raw::Answer;
use crate::support::studio::{page, text};
use serde_json::{Value, json};
use std::process::Command;
use switchback_sandbox::{Options, Sandbox};

async fn sandbox() -> Sandbox {
    Sandbox::start(Options::default()).await.expect("a loopback address")
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.values(name).first().copied()
}

/// Calls by operation and outcome, of one client.
fn calls(usage: &Value, client: &str) -> Vec<(String, String, i64)> {
    let text = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let of = usage.as_array().expect("a list").iter().filter(|one| one["client"] == client);
    of.map(|one| (text(one, "operation"), text(one, "outcome"), one["calls"].as_i64().unwrap_or_default()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_still_calls_what_is_known_after_a_restart_and_over_all_gateways() {
    let service = sandbox().await;
    let more = "fronts: { /v2: { speaks: v2, unknown: refuse } }\n";
    let (dual, gateway) = started(&service, Upstreams::of(&service), more).await;
    for line in [
        "GET /v2/chats/7/messages",
        "GET /v2/chats/7/messages",
        "GET /v2/chats/7/feedback",
        "GET /v2/nothing",
    ] {
        ask(&gateway, &service, line, "").await;
    }
    // A token that selects no client.
    let answer = gateway.admin("GET /api/usage", &Value::Null).await;
    assert_eq!(answer.0, 200, "the calls of this gateway are there at once: {}", answer.1);
    let expected = [
        ("GET /chats/{id}/feedback".to_owned(), "forwarded".to_owned(), 1),
        ("GET /chats/{id}/messages".to_owned(), "translated".to_owned(), 2),
    ];
    assert_eq!(calls(&answer.1, "administrator"), expected);
    assert_eq!(calls(&answer.1, ""), [("GET /v2/*".to_owned(), "rejected".to_owned(), 1)]);
    ask(&gateway, &service, "GET /v2/chats/7/messages", "").await;
    gateway.stop().await;

    let by_verb = dual.cli_json(&["usage", "--client", "administrator", "--outcome", "translated"]).await;
    assert_eq!(
        calls(&by_verb, "administrator"),
        [("GET /chats/{id}/messages".to_owned(), "translated".to_owned(), 3)],
        "what was called last is stored by a gateway that stops"
    );
    let gateway = dual.started().await;
    ask(&gateway, &service, "GET /v2/chats/7/messages", "").await;
    let (_, usage) = gateway.admin("GET /api/usage", &Value::Null).await;
    assert_eq!(calls(&usage, "administrator")[1].2, 4);
    let (code, table, _) = dual.cli(&["usage"]).await;
    assert_eq!(code, Some(0));
    let mut lines: Vec<String> =
        table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    lines.sort_unstable();
    let starts = [
        "v2 (unknown client) GET /v2/* rejected 1 20",
        "v2 administrator GET /chats/{id}/feedback forwarded 1 20",
        "v2 administrator GET /chats/{id}/messages translated 4 20",
    ];
    assert_eq!(lines.len(), starts.len(), "{table}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{start}: {table}");
    }
    assert!(lines[0].ends_with("Z (unknown operation)"), "{table}");

    // The losses after the sunset, by the report of the pack.
    let rows = dual.cli_json(&["usage", "--after-sunset"]).await;
    let (_, by_api) = gateway.admin("GET /api/usage?after_sunset", &Value::Null).await;
    assert_eq!(rows, by_api);
    let reporting =
        Command::new(env!("CARGO_BIN_EXE_switchback")).args(["report", "--format", "json"]).output();
    let report: Value = serde_json::from_slice(&reporting.expect("the program runs").stdout).expect("JSON");
    let declared = |operation: &str| {
        let of = report["sides"][0]["operations"].as_array().expect("a list");
        of.iter().find(|one| one["operation"] == operation).expect("the pack has it").clone()
    };
    for row in rows.as_array().expect("a list").iter().filter(|row| row["client"] == "administrator") {
        let operation = row["operation"].as_str().expect("a text");
        assert_eq!(row["verdict"], declared(operation)["verdict"], "{row}");
    }
    let of = |operation: &str| {
        let mut all = rows.as_array().expect("a list").iter();
        all.find(|row| row["operation"] == operation).expect("it was called").clone()
    };
    assert_eq!(
        (&of("GET /chats/{id}/messages")["calls"], of("GET /v2/*")["loses"].clone()),
        (&json!(4), json!([]))
    );
    let (code, text, _) = dual.cli(&["usage", "--after-sunset", "--client", "administrator"]).await;
    assert_eq!(code, Some(0));
    assert!(
        text.contains("administrator  v2 GET /chats/{id}/feedback") && text.contains("(1 call, last "),
        "{text}"
    );
    assert!(
        text.lines().last().is_some_and(|line| line.contains("of 2 selected operations (by client)")),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_brownout_answers_in_the_old_form_until_its_end_and_others_are_not_touched() {
    let service = sandbox().await;
    let dual = Dual::new();
    dual.configure(&service, Upstreams::of(&service), &["administrator", "manager"], "");
    let gateway = dual.started().await;
    let manager = service.credentials().account("manager").expect("a known role");
    let added = dual
        .cli_json(&[
            "brownout",
            "add",
            "--for",
            "1h",
            "--operation",
            "GET /chats",
            "--client",
            "administrator",
        ])
        .await;
    let id = added["id"].as_str().expect("an id").to_owned();
    eventually("the gateway follows the command line", async || {
        ask(&gateway, &service, "GET /v2/chats", "").await.status == 503
    })
    .await;
    let answer = gateway
        .ask(administrator(&service), "GET /v2/chats", "accept-language: es\r\n", "")
        .await
        .expect("an answer");
    let body: Value = serde_json::from_slice(&answer.body).expect("the old form is JSON");
    let text = "Esta operación está desactivada por un tiempo, porque está a punto de terminar.";
    assert_eq!((answer.status, &body), (503, &json!({ "reason": text })));
    let wait: u64 = header(&answer, "retry-after").and_then(|value| value.parse().ok()).expect("seconds");
    assert!((3_500..=3_600).contains(&wait), "{wait}: until the window ends");
    assert_eq!(
        ask(&gateway, &service, "GET /v2/chats/7/messages", "").await.status,
        200,
        "another operation"
    );
    let other = gateway.ask(manager, "GET /v2/chats", "", "").await.expect("an answer");
    assert_eq!(other.status, 200, "another client");
    let (_, usage) = gateway.admin("GET /api/usage", &Value::Null).await;
    let turned_away = calls(&usage, "administrator").into_iter().find(|(_, kind, _)| kind == "brownout");
    assert!(
        turned_away.is_some_and(|(operation, _, count)| operation == "GET /chats" && count >= 2),
        "{usage}"
    );

    let (status, _) = gateway.admin(&format!("POST /api/brownouts/{id}/remove"), &json!({})).await;
    assert_eq!(status, 200);
    assert_eq!(ask(&gateway, &service, "GET /v2/chats", "").await.status, 200, "at once");

    let words = json!({"until": "2999-01-01", "from": "2998-12-31", "everything": true, "reason": "v2 ends <b>soon</b>"});
    let (status, later) = gateway.admin("POST /api/brownouts", &words).await;
    assert_eq!((status, &later["operations"], &later["by"]), (201, &json!([]), &json!("operator")));
    assert_eq!(ask(&gateway, &service, "GET /v2/chats", "").await.status, 200, "it has not begun");
    let listed = dual.cli_json(&["brownout", "list"]).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    let (_, text, _) = dual.cli(&["brownout", "list"]).await;
    let window = "planned 2998-12-31T00:00:00Z to 2999-01-01T00:00:00Z  v2 all calls  all clients  \"v2 ends <b>soon</b>\"\n";
    assert!(text.ends_with(window), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn brownouts_of_the_file_come_and_go_with_a_reload() {
    let service = sandbox().await;
    let (dual, gateway) = started(&service, Upstreams::of(&service), "").await;
    let text = std::fs::read_to_string(dual.file()).expect("it was written");
    let window = "brownouts: [ { from: 2020-01-01, until: 2999-01-01, operations: ['GET /chats'], reason: over soon } ]\n";
    std::fs::write(dual.file(), format!("{text}{window}")).expect("it is written");
    gateway.admin("POST /api/reload", &json!({})).await;
    eventually("the reload switches it off", async || {
        let answer = ask(&gateway, &service, "GET /v2/chats", "").await;
        answer.status == 503 && answer.text().contains("over soon")
    })
    .await;
    let (_, listed, _) = dual.cli(&["brownout", "list"]).await;
    assert!(
        listed.contains(" open    2020-01-01T00:00:00Z to 2999-01-01T00:00:00Z  v2 GET /chats  all clients"),
        "{listed}"
    );
    let (status, refused) = gateway.admin("POST /api/brownouts/configuration-1/remove", &json!({})).await;
    assert_eq!(status, 404, "what is configured is not removed here: {refused}");
    std::fs::write(dual.file(), text).expect("it is written");
    gateway.admin("POST /api/reload", &json!({})).await;
    eventually("the next one switches it on again", async || {
        ask(&gateway, &service, "GET /v2/chats", "").await.status == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_told_of_its_end_and_refused_from_then_on() {
    let service = sandbox().await;
    let dual = Dual::new();
    let side = "sunset: { v2: { deprecated: 2020-01-01, sunset: 2098-01-01 } }\n";
    dual.configure(&service, Upstreams::of(&service), &["administrator", "manager"], side);
    let written = std::fs::read_to_string(dual.file()).expect("it was written");
    let own = written.replace("name: administrator,", "name: administrator, sunset: { at: 2099-01-01 },");
    std::fs::write(dual.file(), own).expect("it is written");
    let gateway = dual.started().await;
    let answer = ask(&gateway, &service, "GET /v2/chats", "").await;
    assert_eq!(
        (answer.status, answer.values("sunset")),
        (200, vec!["Thu, 01 Jan 2099 00:00:00 GMT"]),
        "its own date, once"
    );
    assert_eq!(header(&answer, "deprecation"), Some("@1577836800"), "what only its side has is said, too");

    let set = dual.cli_json(&["client", "sunset", "administrator", "2021-01-01"]).await;
    assert_eq!((&set["at"], &set["by"]), (&json!("2021-01-01T00:00:00Z"), &json!("operator")));
    eventually("the gateway follows the command line", async || {
        ask(&gateway, &service, "GET /v2/chats", "").await.status == 410
    })
    .await;
    let answer = ask(&gateway, &service, "GET /v2/nothing/of/the/kind", "").await;
    let body: Value = serde_json::from_slice(&answer.body).expect("the old form is JSON");
    assert_eq!((answer.status, &body), (410, &json!({"reason": "This version of the service has ended."})));
    assert_eq!(header(&answer, "sunset"), Some("Fri, 01 Jan 2021 00:00:00 GMT"));
    let manager = service.credentials().account("manager").expect("a known role");
    let other = gateway.ask(manager, "GET /v2/chats", "", "").await.expect("an answer");
    assert_eq!((other.status, header(&other, "sunset")), (200, Some("Wed, 01 Jan 2098 00:00:00 GMT")));

    // The page of a client states the same.
    let ending = async |name: &str| {
        text(&page(&gateway, &format!("/clients/{name}")).await)
            .split("The end of the old version")
            .nth(1)
            .map(str::to_owned)
    };
    let ended = ending("administrator").await.expect("a panel");
    assert!(
        ended.contains("v2 ends ")
            && ended.contains(" ago, set by the operator: its calls are answered 410 refused"),
        "{ended}"
    );
    let own = ending("manager").await.expect("a panel");
    assert!(own.starts_with("It has no date of its own."), "{own}");
    for (announce, words) in [(false, ", in silence."), (true, "; its answers say so in Sunset.")] {
        let planned = json!({"at": "2097-01-01", "announce": announce});
        assert_eq!(gateway.admin("POST /api/clients/manager/sunset", &planned).await.0, 200);
        let other = gateway.ask(manager, "GET /v2/chats", "", "").await.expect("an answer");
        let named = header(&other, "sunset") == Some("Tue, 01 Jan 2097 00:00:00 GMT");
        assert_eq!((other.status, named), (200, announce));
        let end = ending("manager").await.expect("a panel");
        assert!(end.contains(&format!(", set by the operator{words}")), "{end}");
    }

    let (status, never) = gateway.admin("POST /api/clients/administrator/sunset", &json!({"at": null})).await;
    assert_eq!((status, &never["at"]), (200, &Value::Null));
    let answer = ask(&gateway, &service, "GET /v2/chats", "").await;
    assert_eq!(answer.status, 200, "what was set wins over the file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_end_is_refused_with_the_reason() {
    let service = sandbox().await;
    let (dual, gateway) = started(&service, Upstreams::of(&service), "").await;
    for (body, status, reason) in [
        (
            json!({"until": "2999-01-01", "from": "2998-12-31", "operations": ["GET /chat"]}),
            404,
            "did you mean `GET /chats`",
        ),
        (json!({"until": "2020-01-01", "everything": true}), 400, "ends after it begins"),
        (json!({"from": "2020-01-01", "until": "2020-01-02", "everything": true}), 400, "over already"),
        (json!({"until": "2999-01-01", "everything": true}), 400, "31 days"),
        (json!({"until": "soon", "everything": true}), 400, "expected a day"),
        (json!({"from": "2998-12-31", "until": "2999-01-01", "clients": ["nobody"]}), 404, "nobody"),
        (
            json!({"from": "2998-12-31", "until": "2999-01-01", "side": "v3", "everything": true}),
            404,
            "no front speaks `v3`",
        ),
        (
            json!({"from": "2998-12-31", "until": "2999-01-01", "reason": "two\nlines", "everything": true}),
            400,
            "one line",
        ),
    ] {
        let (code, answer) = gateway.admin("POST /api/brownouts", &body).await;
        let said = answer["error"].as_str().unwrap_or_default();
        assert!(code == status && said.contains(reason), "{body}: {code} {answer}");
    }
    let (code, _) = gateway.admin("POST /api/clients/nobody/sunset", &json!({"at": "2999-01-01"})).await;
    assert_eq!(code, 404);
    let (code, _, err) = dual.cli(&["brownout", "remove", "none"]).await;
    assert!(code == Some(2) && err.contains("no brownout `none`"), "{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_on_one_postgresql_turn_away_together_and_count_together() {
    let Some(url) = postgres::database() else { return };
    let service = sandbox().await;
    let mut one = Dual::new();
    one.store = url;
    let other = one.beside();
    for dual in [&one, &other] {
        dual.configure(&service, Upstreams::of(&service), &["administrator"], "");
    }
    let gateways: [Running; 2] = [one.started().await, other.start().await];
    let words = json!({"from": "2020-01-01", "until": "2020-01-02", "everything": true});
    assert_eq!(gateways[0].admin("POST /api/brownouts", &words).await.0, 400);
    let added = one.cli_json(&["brownout", "add", "--for", "10m", "--operation", "GET /chats"]).await;
    for gateway in &gateways {
        eventually("each gateway follows the store", async || {
            ask(gateway, &service, "GET /v2/chats", "").await.status == 503
        })
        .await;
    }
    let id = added["id"].as_str().expect("an id");
    gateways[1].admin(&format!("POST /api/brownouts/{id}/remove"), &json!({})).await;
    for gateway in &gateways {
        eventually("each gateway follows the other", async || {
            ask(gateway, &service, "GET /v2/chats", "").await.status == 200
        })
        .await;
        ask(gateway, &service, "GET /v2/chats/7", "").await;
    }
    eventually("both are counted in one place", async || {
        let (_, usage) = gateways[0].admin("GET /api/usage", &Value::Null).await;
        calls(&usage, "administrator").contains(&("GET /chats/{id}".to_owned(), "translated".to_owned(), 2))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losses_after_the_sunset_are_the_same_by_command_line_and_api_and_follow_the_settings() {
    const FEEDBACK: &str = "GET /chats/{id}/feedback";
    let service = sandbox().await;
    let (dual, gateway) = started(&service, Upstreams::of(&service), "").await;
    for line in ["GET /v2/chats/7/feedback", "GET /v2/chats/7/feedback", "GET /v2/nothing"] {
        ask(&gateway, &service, line, "").await;
    }
    let (status, rows) = gateway.admin("GET /api/usage?after_sunset", &Value::Null).await;
    assert_eq!(status, 200, "{rows}");
    let of = |rows: &Value, operation: &str| {
        let rows = rows.as_array().expect("a list");
        let found = rows.iter().find(|row| row["client"] == "administrator" && row["operation"] == operation);
        found.cloned().unwrap_or_else(|| panic!("no {operation} in {rows:?}"))
    };
    let feedback = of(&rows, FEEDBACK);
    let facts = |row: &Value| (row["side"].clone(), row["calls"].clone(), row["verdict"].clone());
    assert_eq!(facts(&feedback), (json!("v2"), json!(2), json!("not possible")));
    assert_eq!(feedback["loses"], json!(["refused: Survey results cannot be read through API v3."]));
    let setting = &feedback["settings"][0];
    assert_eq!((&setting["setting"], &setting["verdict"]), (&json!("chats.archived"), &json!("partly")));
    let unknown = rows.as_array().expect("a list").iter().find(|row| row["verdict"] == "unknown");
    let unknown = unknown.unwrap_or_else(|| panic!("only the old service has it: {rows}"));
    assert_ne!(unknown["loses"], json!([]), "{unknown}");
    let (status, _) = gateway.admin("GET /api/usage?after_sunset&more", &Value::Null).await;
    assert_eq!(status, 400);

    // The calls are stored once the gateway has stopped.
    gateway.stop().await;
    assert_eq!(dual.cli_json(&["usage", "--after-sunset"]).await, rows);
    let (code, text, _) = dual.cli(&["usage", "--after-sunset", "--client", "administrator"]).await;
    assert_eq!(code, Some(0));
    for part in ["not possible", "refused: Survey results", "with the setting chats.archived: partly"] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let config = std::fs::read_to_string(dual.file()).expect("it was written");
    let on = config.replace("max_chats: 5 } }", "max_chats: 5 }, chats: { archived: true } }");
    assert_ne!(on, config);
    std::fs::write(dual.file(), on).expect("the file is written");
    let gateway = dual.started().await;
    let (_, rows) = gateway.admin("GET /api/usage?after_sunset", &Value::Null).await;
    let feedback = of(&rows, FEEDBACK);
    assert_eq!(feedback["verdict"], "partly", "{feedback}");
    assert_ne!(feedback["loses"], json!(["refused: Survey results cannot be read through API v3."]));
    assert_eq!(feedback["settings"], json!([]), "it is on already");
    assert_eq!(dual.cli_json(&["usage", "--after-sunset"]).await, rows);
}
