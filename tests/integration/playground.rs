//! The playground, through the real binary: requests that are tried and never sent, mapping texts
//! that are tried and never served, and every field's way back to a line of the mapping and a place
//! of a message.

use crate::support::dual::{
    Dual, Running, Upstreams, administrator, ask, control, eventually, received, started,
};
use crate::support::tls;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use switchback_sandbox::{Options, Sandbox};
use tokio::net::{TcpListener, TcpStream};

async fn sandbox() -> Sandbox {
    Sandbox::start(Options::default()).await.expect("a loopback address")
}

async fn tried(gateway: &Running, ask: Value) -> Value {
    let (status, ran) = gateway.admin("POST /api/playground", &ask).await;
    assert_eq!(status, 200, "{ran}");
    ran
}

/// The place `$.a[0].b` in a document.
fn at<'v>(document: &'v Value, place: &str) -> Option<&'v Value> {
    let pointer = place.trim_start_matches('$').replace(['.', '['], "/").replace(']', "");
    document.pointer(&pointer)
}

/// The texts of the mapping files that serve.
async fn files(gateway: &Running) -> Value {
    let (status, files) = gateway.admin("GET /api/playground/files", &Value::Null).await;
    assert_eq!(status, 200);
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_of_the_pack_can_be_tried_and_each_field_leads_to_a_line_and_to_what_it_was_made_of() {
    let service = sandbox().await;
    let (_dual, gateway) = started(&service, Upstreams::of(&service), "").await;
    let files = files(&gateway).await;
    control(&service, "DELETE requests", Value::Null).await;
    let (_, examples) = gateway.admin("GET /api/playground/examples", &Value::Null).await;
    let examples = examples.as_array().expect("a list").clone();
    assert!(examples.len() > 100, "{}", examples.len());
    let (mut kept, mut lines, mut writes) = (0, BTreeSet::new(), 0);
    // Some examples are of calls that no operation is for.
    for example in examples.iter().filter(|example| example["side"] == "v2" && example["operation"] != "") {
        let request = json!({
            "method": example["method"], "target": example["target"],
            "headers": example["headers"], "body": example["body"],
        });
        let ran = tried(&gateway, json!({ "request": request })).await;
        writes +=
            ran["calls"].as_array().expect("calls").iter().filter(|call| call["writes"] == true).count();
        let Some(answer) = ran["answer"].as_object() else { panic!("{example}: {ran}") };
        for part in answer["parts"].as_array().expect("parts") {
            let text = files[part["file"].as_str().expect("a file")].as_str().expect("a text of that file");
            let number = part["line"].as_u64().expect("a line") as usize;
            let line = text.lines().nth(number - 1).expect("the line is there").trim();
            assert_eq!(part["text"], line, "{example}: {part}");
            lines.insert((part["file"].to_string(), number));
            let made = at(&answer["body"], part["to"].as_str().expect("a place"));
            assert!(made.is_some(), "{example}: nothing stands at {part}");
            let from = part["from"].as_array().expect("places");
            if let ("kept", [only]) = (part["how"].as_str().expect("a word"), from.as_slice())
                && only["root"] == "reply"
            {
                let call = &ran["calls"][only["call"].as_u64().expect("a number") as usize];
                let place = only["place"].as_str().expect("a place");
                assert_eq!(at(&call["reply"], place), made, "{example}: {part}");
                kept += 1;
            }
        }
    }
    assert!(kept > 500 && lines.len() > 20, "{kept} fields over {} lines", lines.len());
    assert!(writes > 5, "{writes}");
    assert_eq!(received(&service, "/").await, Vec::<Value>::new(), "nothing was sent, and nothing was read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_are_made_only_when_that_is_asked_for_and_writes_never() {
    let service = sandbox().await;
    let (_dual, gateway) = started(&service, Upstreams::of(&service), "").await;
    control(&service, "DELETE requests", Value::Null).await;
    let read = json!({"method": "GET", "target": "/v2/contacts/1001"});
    let ran = tried(&gateway, json!({ "request": read })).await;
    assert_eq!(ran["calls"][0]["reply_by"], "example");
    assert!(received(&service, "/v3/").await.is_empty());
    let ran = tried(&gateway, json!({ "request": read, "live": true, "client": "administrator" })).await;
    assert_eq!((&ran["calls"][0]["reply_by"], &ran["answer"]["status"]), (&json!("service"), &json!(200)));
    assert!(!received(&service, "/v3/").await.is_empty());
    let shown = ran.to_string();
    let real = ask(&gateway, &service, "GET /v2/contacts/1001", "").await;
    let real: Value = serde_json::from_slice(&real.body).expect("JSON");
    let name = real["name"].as_str().expect("a name");
    assert!(!shown.contains(name), "what a service says of people is masked before it is shown: {shown}");

    control(&service, "DELETE requests", Value::Null).await;
    let write = json!({"method": "POST", "target": "/v2/chats/7/messages", "body": "{\"text\": \"hello\"}"});
    let ran = tried(&gateway, json!({ "request": write, "live": true, "client": "administrator" })).await;
    assert_eq!((&ran["calls"][0]["writes"], &ran["answer"]["status"]), (&json!(true), &json!(201)), "{ran}");
    let sent = received(&service, "/v3/").await;
    assert!(sent.iter().all(|call| call["method"] == "GET"), "{sent:?}");
    for (ask, reason) in [
        (json!({"request": read, "live": true}), "on behalf of which client"),
        (json!({"request": read, "live": true, "client": "nobody"}), "no such client"),
        (json!({"request": {"method": "GET", "target": "/v9/x"}}), "no front has this address"),
        (json!({"request": {"method": "PATCH", "target": "/v2/chats"}}), "only"),
        (json!({"har": {"log": {"entries": []}}}), "no entry"),
        (json!({"recorded": 7}), "no recorded exchange 7"),
        (json!({}), "give a request"),
    ] {
        let (status, answer) = gateway.admin("POST /api/playground", &ask).await;
        let said = answer["error"].as_str().unwrap_or_default();
        assert!(status == 400 && said.contains(reason), "{ask}: {status} {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mapping_text_is_tried_on_recorded_exchanges_without_being_served() {
    let service = sandbox().await;
    let (_dual, gateway) = started(&service, Upstreams::of(&service), "").await;
    let (status, _) = gateway.admin("POST /api/playground/record", &json!({"exchanges": 4})).await;
    assert_eq!(status, 202);
    for _ in 0..3 {
        assert_eq!(ask(&gateway, &service, "GET /v2/chats/7/messages", "").await.status, 200);
    }
    assert_eq!(ask(&gateway, &service, "GET /v2/agents", "").await.status, 200);
    let mut recorded = Value::Null;
    eventually("four exchanges are recorded", async || {
        recorded = gateway.admin("GET /api/playground/recorded", &Value::Null).await.1;
        recorded["exchanges"].as_array().is_some_and(|all| all.len() == 4) && recorded["recording"] == false
    })
    .await;
    let (_, said) = gateway.admin("POST /api/playground/what-if", &json!({})).await;
    assert_eq!(
        (&said["exchanges"], &said["same"], &said["changed"]),
        (&json!(4), &json!(4), &json!([])),
        "{said}"
    );

    let text = files(&gateway).await["messages.map.yaml"].as_str().expect("a mapping file").to_owned();
    let line = text.lines().find(|line| line.contains("body: text")).expect("the line that renames");
    let changed = text.replace(
        line,
        &line.replace("body: text", "body: text                                          # as it is"),
    );
    let (status, said) = gateway
        .admin("POST /api/playground/what-if", &json!({"files": {"messages.map.yaml": changed}}))
        .await;
    assert_eq!((status, &said["same"]), (200, &json!(4)), "a comment changes nothing: {said}");
    let broken = text.replace(line, &line.replace("body: text", "body: txet"));
    let (status, said) =
        gateway.admin("POST /api/playground/what-if", &json!({"files": {"messages.map.yaml": broken}})).await;
    let found = said["error"].as_str().unwrap_or_default();
    assert!(status == 422 && found.contains("messages.map.yaml:") && found.contains("text"), "{said}");
    assert_eq!(
        ask(&gateway, &service, "GET /v2/chats/7/messages", "").await.status,
        200,
        "what serves is as before"
    );
    let (status, said) =
        gateway.admin("POST /api/playground/what-if", &json!({"files": {"none.yaml": ""}})).await;
    assert_eq!(status, 404, "{said}");
    let ran = tried(&gateway, json!({"recorded": 0})).await;
    assert_eq!(ran["calls"][0]["reply_by"], "recording", "{ran}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_letter_to_an_owner_has_the_calls_to_change_as_curl_and_no_secret() {
    let service = sandbox().await;
    let more = "sunset: { v2: { sunset: 2031-01-31 } }\n";
    let (dual, gateway) = started(&service, Upstreams::of(&service), more).await;
    for line in [
        "GET /v2/chats/7/messages",
        "POST /v2/flows/51/contact/1007/exec",
        "GET /v2/chats/7/feedback",
        "DELETE /v2/contacts/1002",
        "PUT /v2/contacts/1001",
        "GET /v2/reports/daily",
    ] {
        let body = if line.starts_with("POST") { "{\"whenInChat\": true}" } else { "" };
        let body = if line.starts_with("PUT") { "{\"city\": \"Recife\"}" } else { body };
        ask(&gateway, &service, line, body).await;
    }
    let letter = gateway.admin_text("GET /api/clients/administrator/letter", &Value::Null).await.text();
    for part in [
        "still calls v2 of our API. It ends for you on 2031-01-31",
        "== GET /chats/{id}/messages\n   1 calls",
        "curl -X GET \"$V2_URL\"'/chats/",
        "-H \"x-authorization: Bearer $V2_TOKEN\"",
        "curl -X GET \"$V3_URL\"'/chats/",
        "-H \"authorization: Bearer $V3_TOKEN\"",
        "v3 has nothing for it.",
        // For a route that looks up and then refuses: the look-up, and why no call follows.
        "== DELETE /contacts/{id}\n   1 calls",
        "\"$V3_URL\"'/contacts/7'",
        "v3 has nothing for the rest of it. ",
        // The old service answers paths outside the contract by itself.
        "   The contract of v2 has no such call. The service of v2 answers it itself; v3 has nothing for it that is known.",
    ] {
        assert!(letter.contains(part), "{part} is not in\n{letter}");
    }
    // Of a route of several calls, each of them: those that an example makes, and the rest by name.
    let of = |operation: &str| {
        let (_, rest) = letter.split_once(&format!("== {operation}\n")).expect("it was called");
        rest.split("\n== ").next().unwrap_or_default().to_owned()
    };
    let put = of("PUT /contacts/{id}");
    let calls = put.lines().filter(|line| line.starts_with("curl")).count();
    assert!(calls >= 3 && put.contains("curl -X PUT"), "{put}");
    let refused = of("GET /chats/{id}/feedback");
    assert!(
        refused.contains("   If you do not change it, from the end of v2 on:\n   - refused: "),
        "{refused}"
    );
    let flow = of("POST /flows/{flowId}/contact/{contactId}/exec");
    assert!(flow.contains("Depending on the replies, also: "), "{flow}");
    assert!(!letter.contains("no call is needed"), "{letter}");
    let account = administrator(&service);
    for secret in [&account.v2_token, &account.access_token, &account.refresh_token] {
        assert!(!letter.contains(secret.as_str()), "{letter}");
    }
    // The command line prints the same, once the gateway has stored its counts.
    eventually("the command line has the notice", async || {
        let (code, out, err) = dual.cli(&["usage", "--client", "administrator", "--notice"]).await;
        assert_eq!(code, Some(0), "{err}");
        // The newest calls may have been counted since.
        let letter = gateway.admin_text("GET /api/clients/administrator/letter", &Value::Null).await.text();
        out.trim_end() == letter.trim_end()
    })
    .await;
    let (code, _, err) = dual.cli(&["usage", "--client", "administator", "--notice"]).await;
    assert!(code == Some(2) && err.contains("did you mean `administrator`?"), "{err}");
}

/// A gateway with a proxy in its environment, in front of a service with a certificate of a private
/// authority.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_reading_goes_straight_to_the_service_with_the_tls_of_its_upstream() {
    let proxy = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let at_proxy = proxy.local_addr().expect("it is bound");
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((connection, _)) = proxy.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            drop(connection);
        }
    });
    for is_secured in [false, true] {
        // A grant of its own: a refresh token is good once.
        let service = sandbox().await;
        let secured = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let at_secured = secured.local_addr().expect("it is bound");
        let behind = service.address();
        tokio::spawn(async move {
            let acceptor = tls::upstream_acceptor(&["http/1.1"]);
            while let Ok((connection, _)) = secured.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut client) = acceptor.accept(connection).await else { return };
                    let mut server = TcpStream::connect(behind).await.expect("the sandbox is there");
                    // The end of either is the end of both.
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        let upstream = match is_secured {
            false => format!("v3: {{ url: 'http://{behind}/v3' }}"),
            true => {
                let authorities = tls::upstream_certificate();
                let authorities = authorities.display();
                format!("v3: {{ url: 'https://{at_secured}/v3', tls: {{ ca_file: '{authorities}' }} }}")
            }
        };
        let dual = Dual::new();
        dual.configure(&service, Upstreams::of(&service), &["administrator"], "");
        let text = std::fs::read_to_string(dual.file()).expect("it was written");
        let plain = format!("v3: {{ url: 'http://{behind}/v3' }}");
        assert!(text.contains(&plain), "{text}");
        std::fs::write(dual.file(), text.replace(&plain, &upstream)).expect("it is written");
        let proxies = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"];
        let environment = proxies.map(|name| (name, format!("http://{at_proxy}"))).to_vec();
        let gateway = dual.start_in(environment).await;
        let read = json!({"method": "GET", "target": "/v2/contacts/1001"});
        let asked = json!({ "request": read, "live": true, "client": "administrator" });
        // Its access token may be on its way.
        eventually("the client has a token", async || {
            gateway.admin("POST /api/playground", &asked).await.0 == 200
        })
        .await;
        let ran = tried(&gateway, asked).await;
        assert_eq!(ran["calls"][0]["reply_by"], "service", "{upstream}: {ran}");
        assert_eq!(ran["answer"]["status"], 200, "{upstream}: {ran}");
        assert_eq!(seen.load(Ordering::Relaxed), 0, "{upstream}: the proxy sees nothing");
    }
}

/// The old service is configured, but its address has no listener.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_pack_refuses_is_said_to_be_forwarded_only_while_the_old_service_is_there() {
    let service = sandbox().await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a loopback address");
    let nobody = free.local_addr().expect("it is bound");
    drop(free);
    let more = "phases: { default: translated }\nlimits: { upstream_gone_after: 200ms }\n";
    let upstreams = Upstreams { v2: nobody, v3: service.address() };
    let (_dual, gateway) = started(&service, upstreams, more).await;
    let request = json!({"method": "GET", "target": "/v2/chats/7/feedback"});
    let tried = async || {
        let (status, ran) = gateway.admin("POST /api/playground", &json!({"request": request})).await;
        assert_eq!(status, 200, "{ran}");
        (ran["forwarded"].clone(), ran["answered_by"].clone())
    };
    assert_eq!(tried().await, (json!(true), json!("v2")));
    eventually("the old service counts as gone", async || {
        ask(&gateway, &service, "GET /v2/chats/7/feedback", "").await.status == 501
    })
    .await;
    assert_eq!(tried().await, (json!(false), json!("plans")));
}
