//! Notices to operators through the real binary: receivers at sockets of their own, a signature that
//! another implementation verifies, and the causes as they occur. Those of the gate, which need its
//! clock, are in `dual_gate`.

use crate::support::dual::{Dual, Running, Upstreams, eventually};
use crate::support::postgres;
use crate::support::python;
use crate::support::raw::{Act, Seen, Upstream, answer};
use crate::support::tls;
use serde_json::{Value, json};
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_gateway::notices::{
    NoticeEndpoint, NoticeForm, NoticeKind, NoticeReceiver, NoticeSender, NoticeSettings, NoticeWatch,
};
use switchback_gateway::retire::{NewBrownout, Retirement, RetirementRules, SideOperations};
use switchback_gateway::secret::Secret;
use switchback_gateway::signature::{Signature, SignatureForm};
use switchback_sandbox::{Options, Sandbox};

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
/// A part of URLs that is secret.
const PATH: &str = "path-of-hunter2";
const FAST: &str = "  retry_first: 20ms\n  retry_max: 50ms\n";

fn receiver(name: &str, at: &Upstream) -> String {
    format!("    {name}: {{ url: 'http://{}/{PATH}', secret: '{SECRET}' }}\n", at.address)
}

async fn accepting() -> Upstream {
    Upstream::start(vec![Act::Reply(answer(200, "", "ok"))]).await
}

async fn started(service: &Sandbox, more: &str) -> (Dual, Running) {
    let dual = Dual::new();
    dual.configure(service, Upstreams::of(service), &["administrator"], more);
    let gateway = dual.start().await;
    (dual, gateway)
}

async fn sandbox() -> Sandbox {
    Sandbox::start(Options::default()).await.expect("a loopback address")
}

/// Opens a brownout through the admin API. Returns its id.
async fn brownout(gateway: &Running) -> String {
    let window = json!({"operations": ["GET /chats"], "from": "2020-01-01", "until": "2020-01-31"});
    let (status, refused) = gateway.admin("POST /api/brownouts", &window).await;
    assert!(status >= 400, "it is over already: {refused}");
    let from = switchback_gateway::clock::rfc3339(Clock::machine().unix_ms() - 1_000);
    let until = switchback_gateway::clock::rfc3339(Clock::machine().unix_ms() + 3_600_000);
    let window = json!({"operations": ["GET /chats"], "from": from, "until": until});
    let (status, added) = gateway.admin("POST /api/brownouts", &window).await;
    assert!(status < 300, "{added}");
    added["id"].as_str().expect("an id").to_owned()
}

async fn end_brownout(gateway: &Running, id: &str) {
    let (status, ended) = gateway.admin(&format!("POST /api/brownouts/{id}/remove"), &json!({})).await;
    assert!(status < 300, "{ended}");
}

/// Kind, receiver, event and detail of the deliveries in the history, oldest first.
async fn deliveries(gateway: &Running) -> Vec<[String; 4]> {
    let (_, all) = gateway.admin("GET /history/export.json", &Value::Null).await;
    let of = |one: &Value| {
        ["kind", "subject", "scope", "why"].map(|key| one[key].as_str().unwrap_or_default().to_owned())
    };
    let mut found: Vec<_> = all.as_array().expect("a list").iter().map(of).collect();
    found.retain(|[kind, ..]| kind.starts_with("notice "));
    found.reverse();
    found
}

fn payload(seen: &Seen) -> Value {
    serde_json::from_slice(&seen.body).expect("JSON")
}

fn types(at: &Upstream) -> Vec<String> {
    let of = |seen: &Seen| payload(seen)["type"].as_str().expect("a text").to_owned();
    at.seen().iter().map(of).collect()
}

fn headers(seen: &Seen) -> http::HeaderMap {
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let pair = |name: &'static str| {
        (http::HeaderName::from_static(name), seen.values(name)[0].parse().expect("visible characters"))
    };
    names.map(pair).into_iter().collect()
}

fn verify(seen: &[Seen]) {
    let secret = Secret::from(SECRET);
    let signature = Signature::new(SignatureForm::StandardWebhooks, &[secret]).expect("a secret");
    let tolerance = Duration::from_secs(300);
    for one in seen {
        let id = signature.check(&headers(one), &one.body, Clock::machine().unix_ms(), tolerance);
        assert!(id.is_ok_and(|id| id.is_some_and(|id| id.starts_with("msg_"))), "{}", one.head);
    }
    let Some(python) = python::python() else { return };
    let message = |one: &Seen| {
        let headers = headers(one);
        let headers = headers.iter().map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap())));
        json!({"headers": headers.collect::<serde_json::Map<_, _>>(), "body": String::from_utf8_lossy(&one.body)})
    };
    let messages = seen.iter().map(message).collect::<Value>().to_string();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/notices/verify.py");
    let verified = python::run(&python, script, &[SECRET], &messages).expect("the signatures are right");
    let verified: Value = serde_json::from_str(&verified).expect("JSON");
    assert_eq!(verified, seen.iter().map(payload).collect::<Value>());
    let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    python::run(&python, script, &[other], &messages).expect_err("another secret does not verify them");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_cause_has_a_signed_notice_and_no_secret_is_displayed() {
    let (service, operations) = (sandbox().await, accepting().await);
    let chat = accepting().await;
    let app = service.credentials();
    let more = format!(
        "- {{ name: ended, v2_token: token-of-the-ended, grant: {{ client_id: '{}', client_secret: '{}', \
         refresh_token: not-issued }} }}\n\
         tls: {{ certificate: {}, private_key: {} }}\nnotices:\n  receivers:\n{}    chat: {{ form: slack, \
         url: 'http://{}/{PATH}', events: [reload.refused] }}\n",
        app.client_id,
        app.client_secret,
        tls::file("expired.pem").display(),
        tls::file("key.pem").display(),
        receiver("operations", &operations),
        chat.address,
    );
    let (dual, gateway) = started(&service, &more).await;
    let id = brownout(&gateway).await;
    operations.received(3).await;
    end_brownout(&gateway, &id).await;
    operations.received(4).await;
    let file = std::fs::read_to_string(dual.file()).expect("it was written");
    std::fs::write(dual.file(), format!("{file}nothing: 1\n")).expect("written");
    chat.received(1).await;
    operations.received(5).await;
    eventually("the deliveries are recorded", async || deliveries(&gateway).await.len() == 6).await;

    let mut sent = types(&operations);
    sent.sort();
    let expected =
        ["brownout.began", "brownout.ended", "certificate.expires", "grant.ended", "reload.refused"];
    assert_eq!(sent, expected);
    verify(&operations.seen());
    let of = |name: &str| {
        let all = operations.seen();
        all.iter().map(payload).find(|one| one["type"] == name).expect("it was sent")
    };
    assert_eq!(of("grant.ended")["data"], json!({"client": "ended", "reason": "invalid_grant"}));
    assert_eq!(of("certificate.expires")["data"]["certificate"], "tls");
    assert_eq!(of("brownout.began")["data"]["operations"], json!(["GET /chats"]));
    let error = of("reload.refused")["data"]["error"].as_str().expect("a text").to_owned();
    assert!(error.contains("nothing"), "{error}");
    let text = payload(&chat.seen()[0])["text"].as_str().expect("a text").to_owned();
    assert!(text.starts_with("*reload.refused* ") && !chat.seen()[0].head.contains("webhook-"), "{text}");

    assert_eq!(gateway.counted("switchback_notices_total", &[("outcome", "delivered")]).await, 6);
    let page = gateway.admin_text("GET /history", &Value::Null).await.text();
    assert!(page.contains("notice delivered"), "{page}");
    let config = gateway.admin("GET /api/config", &Value::Null).await.1.to_string();
    assert!(config.contains("retry_first"), "{config}");
    let history = format!("{:?}", deliveries(&gateway).await);
    gateway.program.signal("TERM");
    let (status, log) = tokio::task::spawn_blocking(move || gateway.program.ended()).await.expect("it ends");
    assert!(status.success() && log.contains("a notice was delivered"), "{log}");
    for place in [page, config, history, log] {
        assert!(!place.contains(PATH) && !place.contains(&SECRET[6..]), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_is_repeated_with_its_id_and_not_after_410() {
    let service = sandbox().await;
    let refusing = |status| Act::Reply(answer(status, "", ""));
    let flaky = Upstream::start(vec![refusing(500), refusing(302), refusing(204)]).await;
    let gone = Upstream::start(vec![refusing(410)]).await;
    let down = Upstream::start(vec![refusing(503)]).await;
    let receivers = receiver("flaky", &flaky) + &receiver("gone", &gone) + &receiver("down", &down);
    let more = format!("notices:\n  attempts: 3\n{FAST}  receivers:\n{receivers}");
    let (_dual, gateway) = started(&service, &more).await;
    let id = brownout(&gateway).await;
    eventually("the first notice has ended", async || deliveries(&gateway).await.len() == 3).await;
    end_brownout(&gateway, &id).await;
    eventually("the second notice has ended", async || deliveries(&gateway).await.len() == 6).await;

    let ids = |at: &Upstream| -> Vec<String> {
        at.seen().iter().map(|one| one.values("webhook-id")[0].to_owned()).collect()
    };
    let sent = ids(&flaky);
    assert_eq!((sent.len(), gone.seen().len(), down.seen().len()), (4, 1, 6), "{sent:?}");
    assert!(sent[0] == sent[1] && sent[1] == sent[2] && sent[2] != sent[3], "{sent:?}");
    assert_eq!(ids(&down)[..3], sent[..3], "one id for all receivers");
    verify(&flaky.seen());
    let all = deliveries(&gateway).await;
    let of = |name: &str, event: &str| {
        let one = all.iter().find(|[_, receiver, scope, _]| receiver == name && scope == event);
        let [kind, .., detail] = one.expect("it is recorded");
        format!("{kind}: {}", detail.split_once(", ").map_or(detail.as_str(), |(_, rest)| rest))
    };
    assert_eq!(of("flaky", "brownout.began"), "notice delivered: attempt 3");
    assert_eq!(of("gone", "brownout.began"), "notice failed: attempt 1: the receiver answered 410");
    assert_eq!(of("gone", "brownout.ended"), "notice failed: the receiver has answered 410 before");
    assert_eq!(of("down", "brownout.ended"), "notice failed: attempt 3: the receiver answered 503");
    assert_eq!(gateway.counted("switchback_notices_total", &[("outcome", "failed")]).await, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queue_has_a_bound_and_a_stopped_gateway_records_what_waits() {
    let service = sandbox().await;
    let busy = Upstream::start(vec![Act::Reply(answer(503, "retry-after: 3000\r\n", ""))]).await;
    let more = format!("notices:\n  queue: 1\n{FAST}  receivers:\n{}", receiver("busy", &busy));
    let (dual, gateway) = started(&service, &more).await;
    let id = brownout(&gateway).await;
    busy.received(1).await;
    end_brownout(&gateway, &id).await;
    eventually("the second notice is dropped", async || deliveries(&gateway).await.len() == 1).await;
    let all = deliveries(&gateway).await;
    assert_eq!(all[0], ["notice dropped", "busy", "brownout.ended", "the queue is full"]);
    assert_eq!(gateway.counted("switchback_notices_total", &[("outcome", "dropped")]).await, 1);
    gateway.stop().await;
    let store = dual.opened_store().await;
    let last = store.history(1).await.expect("the store answers").remove(0);
    assert_eq!([last.kind.as_str(), last.scope.as_str()], ["notice failed", "brownout.began"]);
    assert!(last.detail.ends_with("attempt 1: the receiver answered 503"), "{}", last.detail);
    assert_eq!(busy.seen().len(), 1, "the receiver wants to be left alone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_on_one_store_send_a_notice_of_the_command_line_once() {
    let Some(store) = postgres::database() else { return };
    let (service, operations) = (sandbox().await, accepting().await);
    let mut dual = Dual::new();
    dual.store = store;
    let other = dual.beside();
    let more = format!("notices:\n  receivers:\n{}", receiver("operations", &operations));
    for one in [&dual, &other] {
        one.configure(&service, Upstreams::of(&service), &["administrator"], &more);
    }
    let gateways = [dual.start().await, other.start().await];
    let window = ["brownout", "add", "--operation", "GET /chats", "--for", "1h"];
    let id = dual.cli_json(&window).await["id"].as_str().expect("an id").to_owned();
    operations.received(1).await;
    dual.cli_json(&["brownout", "remove", &id]).await;
    operations.received(2).await;
    // Both gateways read the same writes, and a third notice comes after a duplicate of these.
    let last = brownout(&gateways[1]).await;
    operations.received(3).await;
    end_brownout(&gateways[0], &last).await;
    operations.received(4).await;
    let expected = ["brownout.began", "brownout.ended", "brownout.began", "brownout.ended"];
    assert_eq!(types(&operations), expected);
    eventually("all deliveries are recorded", async || deliveries(&gateways[0]).await.len() == 4).await;
}

/// A watch on the store of `dual`, as each gateway has one, with its brownouts and its sender.
async fn watch(dual: &Dual, operations: &Upstream) -> (NoticeWatch, Retirement, NoticeSender) {
    let store = dual.opened_store().await;
    let receiver = NoticeReceiver {
        name: "operations".to_owned(),
        url: Secret::from(format!("http://{}/", operations.address)),
        form: NoticeForm::Json,
        sign: None,
        kinds: NoticeKind::ALL.to_vec(),
    };
    let settings = NoticeSettings {
        queue: 100,
        attempts: 1,
        retry_first: Duration::ZERO,
        retry_max: Duration::ZERO,
        timeout: Duration::from_secs(30),
    };
    let endpoint = NoticeEndpoint::new(receiver, settings).expect("a receiver");
    let sender = NoticeSender::new(store.clone(), vec![endpoint], settings);
    let retirement = Retirement::new(store.clone());
    let served = vec![SideOperations { side: "v2".to_owned(), operations: vec!["GET /chats".to_owned()] }];
    retirement.serve(RetirementRules { served, ..RetirementRules::default() });
    let watch = NoticeWatch::new(store, retirement.clone(), sender.clone()).await.expect("the store");
    (watch, retirement, sender)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_gateways_that_look_at_once_one_sends_each_notice() {
    for store in std::iter::once(None).chain(postgres::database().map(Some)) {
        let (mut dual, operations) = (Dual::new(), accepting().await);
        dual.store = store.unwrap_or(dual.store);
        dual.created_store().await;
        let (mut one, mut other) = (watch(&dual, &operations).await, watch(&dual, &operations).await);
        let now_ms = Clock::machine().unix_ms();
        let window = NewBrownout {
            everything: true,
            from_ms: now_ms,
            until_ms: now_ms + 3_600_000,
            ..NewBrownout::default()
        };
        let added = one.1.add(window).await.expect("it is added");
        let certificates = ["a", "b", "c", "d", "e"].map(|name| (name, now_ms));
        for _ in 0..2 {
            other.1.sync().await.expect("the store answers");
            let (first, second) = tokio::join!(one.0.look(&certificates), other.0.look(&certificates));
            first.and(second).expect("the store answers");
            one.1.remove(&added.id).await.ok();
        }
        for (.., sender) in [one, other] {
            sender.drain(Duration::from_secs(30)).await;
        }
        let mut sent = types(&operations);
        sent.sort();
        let expires = "certificate.expires";
        let expected = ["brownout.began", "brownout.ended", expires, expires, expires, expires, expires];
        assert_eq!(sent, expected, "{}", dual.store);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_notice_prints_the_answer_of_each_receiver() {
    let (service, operations) = (sandbox().await, accepting().await);
    let chat = Upstream::start(vec![Act::Reply(answer(404, "", "no_service\nmore"))]).await;
    let teams = Upstream::start(vec![Act::Reply(answer(202, "", ""))]).await;
    let more = format!(
        "notices:\n  receivers:\n{}    chat: {{ form: slack, url: 'http://{}/{PATH}', events: [gate.held] }}\n    \
         team: {{ form: teams, url: 'http://{}/{PATH}' }}\n",
        receiver("operations", &operations),
        chat.address,
        teams.address,
    );
    let dual = Dual::new();
    dual.configure(&service, Upstreams::of(&service), &["administrator"], &more);
    let (code, out, err) = dual.cli(&["notices", "test"]).await;
    let expected =
        "operations: delivered, 200 ok\nchat: not delivered, 404 no_service\nteam: delivered, 202\n";
    assert_eq!((code, out.as_str(), err.as_str()), (Some(1), expected, ""));
    verify(&operations.seen());
    assert_eq!(types(&operations), ["notice.test"]);
    assert_eq!(payload(&teams.seen()[0])["attachments"][0]["content"]["type"], "AdaptiveCard");
    let answers = dual.cli_json(&["notices", "test", "--receiver", "team"]).await;
    let expected = json!([{"receiver": "team", "delivered": true, "status": 202, "answer": ""}]);
    assert_eq!((answers, operations.seen().len()), (expected, 1));
    let (code, _, err) = dual.cli(&["notices", "test", "--receiver", "chatt"]).await;
    assert_eq!(code, Some(2));
    assert!(err.contains("no receiver `chatt`; did you mean `chat`?"), "{err}");
    drop(teams);
    let (code, out, err) = dual.cli(&["notices", "test", "--receiver", "team"]).await;
    assert_eq!((code, out.as_str()), (Some(1), "team: not delivered, cannot connect\n"));
    assert!(!format!("{out}{err}").contains(PATH));
}
