//! Clients of the new side in front of the old service, through the real binary: the tokens that
//! each front accepts, the credentials of calls, a refusal by the service, and both directions at
//! once.

use crate::support::raw::{Act, Answer, Upstream, exchange};
use crate::support::serving::{Serving, oauth};
use crate::support::witness::{is_error_form, json};
use serde_json::{Value, json as object};
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};
use switchback_gateway::store::seal::SealingKey;
use switchback_sandbox::{Options, Sandbox};

const TOKEN: &str = "v3-token-of-acme-canary";
const LANGUAGES: [&str; 3] = ["en", "pt-br", "es"];

/// Clients of both sides: `acme` uses v3, and its credential for the old service is `secret-at-v2`.
const ACME: &str = "clients: [{ name: acme, v3_token: v3-token-of-acme-canary, credentials: { v2: secret-at-v2-canary } }]\n";
const V3_ONLY: &str = "fronts: { /v3: { speaks: v3 } }\n";

async fn ask(address: SocketAddr, line: &str, token: &str, fields: &str, body: &str) -> Answer {
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let request = format!(
        "{line} HTTP/1.1\r\nhost: gateway.test\r\ncontent-type: application/json\r\n\
         authorization: Bearer {token}\r\n{fields}{length}\r\n{body}"
    );
    exchange(address, request).await.expect("an answer")
}

/// The same question in each language of the pack: one status, and three different texts in the
/// service's form.
async fn told_in_three_languages(address: SocketAddr, line: &str, token: &str) -> u16 {
    let mut texts = Vec::new();
    let mut statuses = Vec::new();
    for language in LANGUAGES {
        let answer = ask(address, line, token, &format!("accept-language: {language}\r\n"), "").await;
        assert!(is_error_form(&json(&answer)), "{}", answer.text());
        assert_eq!(answer.value("content-language"), language);
        texts.push(answer.text());
        statuses.push(answer.status);
    }
    statuses.dedup();
    texts.sort();
    texts.dedup();
    assert_eq!((statuses.len(), texts.len()), (1, 3), "{statuses:?} {texts:?}");
    statuses[0]
}

/// Runs `switchback client …` next to a running gateway. `NEXT_TOKEN` is in its environment.
fn client_verb(gateway: &Serving, words: &[&str]) -> Value {
    let store = format!("sqlite:{}/store.db", gateway.folder.path().display());
    let output = Command::new(env!("CARGO_BIN_EXE_switchback"))
        .arg("client")
        .args(words)
        .args(["--store", &store, "--key", "env:TEST_KEY", "--format", "json"])
        .env("TEST_KEY", gateway.key.expose())
        .env("V3_TOKEN", TOKEN)
        .env("V2_TOKEN", "secret-at-v2-canary")
        .env("NEXT_TOKEN", "another-secret-canary")
        .output()
        .expect("the program runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{words:?}: {err}");
    assert!(!out.contains("canary") && !err.contains("canary"), "{out} {err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Polls a condition; changes of another process are visible within a second or two.
async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "never {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn calls_go_out_with_the_clients_credential_for_the_old_service_and_its_own_token_stays() {
    let service = Upstream::start(vec![Act::json(200, "[]")]).await;
    let gateway = Serving::configured(service.address, &["v2"], &format!("{V3_ONLY}{ACME}")).await;
    let answer = ask(gateway.address, "GET /v3/chats/7/messages?page=2", TOKEN, "", "").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "[]"));
    assert!(answer.value("vary").contains("authorization"), "{}", answer.head);
    let seen = service.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].line(), "GET /v2/chats/7/messages?page=2 HTTP/1.1");
    for header in ["x-authorization", "authorization"] {
        assert_eq!(seen[0].values(header), ["Bearer secret-at-v2-canary"], "{}", seen[0].head);
    }
    assert!(!seen[0].head.contains(TOKEN), "{}", seen[0].head);
}

#[tokio::test]
async fn a_token_opens_the_fronts_of_its_side_and_no_others() {
    let service = Upstream::start(vec![Act::json(200, "[]")]).await;
    let more = "fronts: { /v2: { speaks: v2 }, /api/new: { speaks: v3 } }\n\
        sunset: { v2: { deprecated: 2026-01-01 } }\n\
        clients: [{ name: acme, v2_token: v2-token-of-acme-canary, v3_token: v3-token-of-acme-canary, \
        credentials: { v2: secret-at-v2-canary, v3: secret-at-v3-canary } }]\n";
    let gateway = Serving::configured(service.address, &["v2", "v3"], more).await;
    let (old, new) = ("GET /v2/chats/7/messages", "GET /api/new/chats/7/messages");
    let x_token = "x-authorization: Bearer v2-token-of-acme-canary\r\n";
    assert_eq!(ask(gateway.address, old, "unknown-token", x_token, "").await.status, 200);
    assert_eq!(ask(gateway.address, new, TOKEN, "", "").await.status, 200);
    let seen = service.seen();
    assert_eq!(seen[0].values("authorization"), ["Bearer secret-at-v3-canary"], "{}", seen[0].head);
    assert_eq!(seen[1].values("x-authorization"), ["Bearer secret-at-v2-canary"], "{}", seen[1].head);
    for (line, token) in [(old, TOKEN), (new, "v2-token-of-acme-canary"), (new, "unknown-token")] {
        assert_eq!(told_in_three_languages(gateway.address, line, token).await, 401);
        let answer = ask(gateway.address, line, token, "", "").await;
        assert_eq!(answer.value("www-authenticate"), "Bearer");
        assert_eq!(
            answer.value("deprecation").is_empty(),
            line == new,
            "said where it is so: {}",
            answer.head
        );
    }
    assert_eq!(service.seen().len(), 2, "nobody else's call went out");
}

#[tokio::test]
async fn a_client_without_a_credential_for_the_old_service_is_told_so_and_nothing_is_called() {
    let service = Upstream::start(vec![Act::json(200, "[]")]).await;
    let more = format!("{V3_ONLY}clients: [{{ name: acme, v3_token: {TOKEN} }}]\n");
    let gateway = Serving::configured(service.address, &["v2"], &more).await;
    assert_eq!(told_in_three_languages(gateway.address, "GET /v3/chats/7/messages", TOKEN).await, 503);
    assert!(service.seen().is_empty());
}

#[tokio::test]
async fn a_credential_that_the_old_service_refuses_is_named_and_can_be_replaced_while_all_runs() {
    let refusal = Act::json(401, r#"{"reason":"no such token"}"#);
    let mut script = vec![refusal; 5];
    script.push(Act::json(200, "[]"));
    let service = Upstream::start(script).await;
    let gateway = Serving::configured(service.address, &["v2"], V3_ONLY).await;
    let add = ["add", "acme", "--side", "v3", "--token", "env:V3_TOKEN", "--credential", "v2=env:V2_TOKEN"];
    let added = client_verb(&gateway, &add);
    assert_eq!(added["client"]["credentials"][0]["state"], "active");
    assert_eq!(added["client"]["token_sides"], object!(["v3"]));
    let line = "GET /v3/chats/7/messages";
    // The first answer that is not our own 401 is the service's.
    let first = eventually("enrolled", async || {
        let answer = ask(gateway.address, line, TOKEN, "", "").await;
        answer.text().contains("no such token").then_some(answer)
    })
    .await;
    assert_eq!(first.status, 401, "one may be for want of permission: passed on");
    assert_eq!(ask(gateway.address, line, TOKEN, "", "").await.status, 401);
    assert_eq!(
        told_in_three_languages(gateway.address, line, TOKEN).await,
        503,
        "now it is the token's fault"
    );
    assert_eq!(service.seen().len(), 5, "each request made one call: nothing is tried again");
    eventually("named", async || {
        let listed = client_verb(&gateway, &["list"]);
        (listed[0]["credentials"][0]["state"] == "refused").then_some(())
    })
    .await;
    client_verb(&gateway, &["credential", "acme", "v2=env:NEXT_TOKEN"]);
    let answer = eventually("taken up", async || {
        let answer = ask(gateway.address, line, TOKEN, "", "").await;
        let last = service.seen().pop()?;
        (last.values("x-authorization") == ["Bearer another-secret-canary"]).then_some(answer)
    })
    .await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "[]"));
    assert_eq!(client_verb(&gateway, &["list"])[0]["credentials"][0]["state"], "active");
}

#[tokio::test]
async fn another_company_than_the_main_one_cannot_be_acted_on() {
    let service = Upstream::start(vec![Act::json(200, "[]")]).await;
    let gateway = Serving::configured(service.address, &["v2"], &format!("{V3_ONLY}{ACME}")).await;
    let line = "GET /v3/companies/42/chats/7/messages";
    assert_eq!(told_in_three_languages(gateway.address, line, TOKEN).await, 501);
    for (line, status) in [
        ("POST /v3/companies/42/chats/7/messages/x", 404),
        ("DELETE /v3/companies/42/chats/7/messages", 501),
        ("GET /v3/companies/42", 404),
        ("GET /v3/companies/%2e%2e/chats/7/messages", 400),
    ] {
        let answer = ask(gateway.address, line, TOKEN, "", "").await;
        assert_eq!(answer.status, status, "{line}: {}", answer.text());
    }
    assert!(service.seen().is_empty(), "no call reached a company that was not meant");
}

#[tokio::test]
async fn what_the_old_service_cannot_do_is_refused_though_the_new_one_is_there() {
    let service = Upstream::start(vec![Act::json(200, "[7]")]).await;
    let more = format!(
        "{V3_ONLY}clients: [{{ name: acme, v3_token: {TOKEN}, \
         credentials: {{ v2: secret-at-v2-canary, v3: secret-at-v3-canary }} }}]\n"
    );
    let gateway = Serving::configured(service.address, &["v2", "v3"], &more).await;
    let line = "GET /v3/contacts/7/timeline";
    assert_eq!(told_in_three_languages(gateway.address, line, TOKEN).await, 501);
    assert!(service.seen().is_empty(), "who is answered from the old service is answered from there alone");
}

#[tokio::test]
async fn in_the_legacy_phase_calls_go_to_the_new_service_itself() {
    let service = Upstream::start(vec![Act::json(200, "[7]")]).await;
    let more = format!(
        "{V3_ONLY}phases: {{ default: legacy }}\nclients:\n\
         - {{ name: acme, v3_token: {TOKEN}, credentials: {{ v2: secret-at-v2-canary, v3: secret-at-v3-canary }} }}\n\
         - {{ name: plain, v3_token: plain-token-canary, credentials: {{ v2: other-secret-canary }} }}\n"
    );
    let gateway = Serving::configured(service.address, &["v2", "v3"], &more).await;
    let answer = ask(gateway.address, "GET /v3/companies/42/chats?x=1", TOKEN, "", "").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "[7]"));
    let plain = "plain-token-canary";
    assert_eq!(told_in_three_languages(gateway.address, "GET /v3/chats", plain).await, 503);
    let seen = service.seen();
    assert_eq!(seen.len(), 1, "a token that is given out here is of no use there, and none of its business");
    assert_eq!(seen[0].line(), "GET /v3/companies/42/chats?x=1 HTTP/1.1");
    assert_eq!(seen[0].values("authorization"), ["Bearer secret-at-v3-canary"]);
}

#[test]
fn the_configuration_on_the_page_about_migrations_is_ready_to_serve() {
    let page = include_str!("../../docs/MIGRATION.md");
    let section = page.split("## The other way round").nth(1).expect("the section is there");
    let block = section.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("switchback.yaml");
    // Requirements of clients of the other side are not checked.
    let text = format!("key: ${{TEST_KEY}}\n{block}");
    std::fs::write(&file, text).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_switchback"))
        .args(["serve", "--check", "--config"])
        .arg(&file)
        .env("TEST_KEY", SealingKey::generate().expose())
        .env("NEW_APP_TOKEN", TOKEN)
        .env("ACME_V2_TOKEN", "secret-at-v2-canary")
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[tokio::test]
async fn clients_of_both_sides_see_what_the_other_writes_through_one_gateway() {
    let sandbox = Sandbox::start(Options::default()).await.expect("it starts");
    let app = sandbox.credentials();
    let account = app.account("administrator").expect("every sandbox has one");
    let more = format!(
        "{}fronts: {{ /v2: {{ speaks: v2 }}, /v3: {{ speaks: v3 }} }}\nclients:\n\
         - {{ name: old, v2_token: '{}', grant: {{ client_id: '{}', client_secret: '{}', refresh_token: '{}' }} }}\n\
         - {{ name: new, v3_token: {TOKEN}, credentials: {{ v2: '{}' }} }}\n",
        oauth(&sandbox),
        account.v2_token,
        app.client_id,
        app.client_secret,
        account.refresh_token,
        account.v2_token
    );
    let gateway = Serving::configured(sandbox.address(), &["v2", "v3"], &more).await;
    let (old, new) = (account.v2_token.as_str(), TOKEN);
    let sent = r#"{"text":"from the old client","isInternal":false}"#;
    assert_eq!(ask(gateway.address, "POST /v2/chats/1/messages", old, "", sent).await.status, 201);
    let messages = json(&ask(gateway.address, "GET /v3/chats/1/messages", new, "", "").await);
    let has = |messages: &Value, field: &str, text: &str| {
        messages.as_array().is_some_and(|all| all.iter().any(|message| message[field] == text))
    };
    assert!(has(&messages, "text", "from the old client"), "{messages}");
    let counted = gateway.metrics().await;
    for (client, side) in [("old", "v2"), ("new", "v3")] {
        let labels = format!("client=\"{client}\",side=\"{side}\"");
        assert!(counted.contains(&labels), "{labels} in {counted}");
    }
    let sent = r#"{"text":"from the new client","isInternal":false}"#;
    let answer = ask(gateway.address, "POST /v3/chats/1/messages", new, "", sent).await;
    assert_eq!(
        (answer.status, json(&answer)["text"].as_str()),
        (200, Some("from the new client")),
        "{}",
        answer.text()
    );
    let messages = json(&ask(gateway.address, "GET /v2/chats/1/messages", old, "", "").await);
    assert!(has(&messages, "body", "from the new client"), "{messages}");
    assert!(has(&messages, "body", "from the old client"), "{messages}");
    let flow = ask(gateway.address, "POST /v3/chats/2/flow", new, "", r#"{"flowId":51}"#).await;
    assert_eq!(flow.status, 200, "{}", flow.text());
}
