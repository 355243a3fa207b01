//! Events through the real binary: a service delivers them signed to the gateway, and receivers of
//! the old version get them signed anew. Both are mocks at separate sockets; the pack is
//! `mappings/tickets`.

use crate::support::dual::eventually;
use crate::support::postgres;
use crate::support::program::Program;
use crate::support::raw::{Act, Client, Seen, Upstream, answer, exchange, until};
use crate::support::serving;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_gateway::secret::Secret;
use switchback_gateway::signature::{Signature, SignatureForm};
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;

/// The signing secrets of the service and of the receiver.
const SERVICE: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const RECEIVER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

pub(super) fn signature(secret: &str) -> Signature {
    Signature::new(SignatureForm::StandardWebhooks, &[Secret::from(secret)]).expect("a secret in its form")
}

pub(super) fn now_ms() -> i64 {
    Clock::machine().unix_ms()
}

/// Where gateways of a test keep things.
pub(super) struct Place {
    pub(super) folder: TempDir,
    key: Secret<String>,
}

impl Place {
    pub(super) fn new() -> Place {
        Place { folder: tempfile::tempdir().expect("a temporary folder"), key: SealingKey::generate() }
    }

    /// The sealing key of the store.
    pub(super) fn key(&self) -> String {
        self.key.expose().clone()
    }

    /// Writes a configuration with one receiver, `acme`; `more` are further lines of the section.
    pub(super) fn configure(&self, store: Option<&str>, receiver: SocketAddr, more: &str) -> PathBuf {
        let file = self.folder.path().join("switchback.yaml");
        let own = format!("sqlite:{}/store.db", self.folder.path().display());
        let pack = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings/tickets");
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0, token: a-token-of-an-operator }}\nstore: {}\nkey: ${{TEST_KEY}}\n\
             mapping: {pack}\nupstreams: {{ v2: {{ url: 'http://127.0.0.1:9' }} }}\n\
             events:\n  receivers:\n    acme:\n      verify: {{ secret: {SERVICE} }}\n      url: 'http://{receiver}/hook'\n      \
             sign: {{ secret: {RECEIVER} }}\n  retry_first: 20ms\n  retry_max: 50ms\n{more}",
            store.unwrap_or(&own)
        );
        std::fs::write(&file, text).expect("the file is written");
        file
    }

    pub(super) async fn start(&self, file: &Path) -> Running {
        let (program, gateway, admin) = serving::serve(file, &self.key).await;
        Running { gateway, admin, program }
    }

    /// Returns the output of a verb of the command line.
    pub(super) async fn cli(&self, file: &Path, words: &[&str]) -> String {
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["--config".to_owned(), file.display().to_string()]);
        let key = self.key.clone();
        let running = tokio::task::spawn_blocking(move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            Program::start(&words, &[("TEST_KEY", key.expose())]).all()
        });
        let (status, out, err) = running.await.expect("it ends");
        assert!(status.success(), "{out}{err}");
        out
    }
}

pub(super) struct Running {
    pub(super) gateway: SocketAddr,
    admin: SocketAddr,
    program: Program,
}

impl Running {
    /// Delivers an event as the service does; the status that it gets.
    pub(super) async fn event(&self, id: &str, body: &Value) -> u16 {
        self.signed_at(id, body, now_ms(), SERVICE).await
    }

    async fn signed_at(&self, id: &str, body: &Value, at_ms: i64, secret: &str) -> u16 {
        let body = body.to_string();
        let fields = signature(secret).sign(id, body.as_bytes(), at_ms);
        self.post(
            &body,
            &fields.iter().map(|(n, v)| format!("{n}: {}\r\n", v.to_str().unwrap())).collect::<String>(),
        )
        .await
    }

    pub(super) async fn post(&self, body: &str, fields: &str) -> u16 {
        let request = format!(
            "POST /events/acme HTTP/1.1\r\nhost: g\r\nconnection: close\r\ncontent-length: {}\r\n{fields}\r\n{body}",
            body.len()
        );
        exchange(self.gateway, request).await.expect("an answer").status
    }

    pub(super) async fn admin(&self, line: &str, body: &str) -> String {
        let request = format!(
            "{line} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer a-token-of-an-operator\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.admin,
            body.len()
        );
        exchange(self.admin, request).await.expect("an answer").text()
    }
}

pub(super) fn changed(ticket: &str, title: &str) -> Value {
    json!({"type": "ticket.changed", "timestamp": "2026-01-02T03:04:05Z", "data": {"id": ticket, "title": title, "status": "open"}})
}

/// Ticket and subject of a delivered event.
pub(super) fn told(seen: &Seen) -> (i64, String) {
    let body: Value = serde_json::from_slice(&seen.body).expect("JSON");
    (
        body["ticket"]["id"].as_i64().unwrap_or_default(),
        body["ticket"]["subject"].as_str().unwrap_or_default().to_owned(),
    )
}

/// A receiver that accepts no event until further notice.
async fn receiver(is_up: &Arc<AtomicBool>) -> Upstream {
    let is_up = Arc::clone(is_up);
    Upstream::answering(move |_, _| match is_up.load(SeqCst) {
        true => Act::Reply(answer(200, "", "")),
        false => Act::Reply(answer(503, "", "")),
    })
    .await
}

#[test]
fn explain_says_what_becomes_of_an_event() {
    const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings/tickets");
    let explain = |event: &str, more: &[&str]| {
        let words: Vec<&str> = ["explain", event, PACK].into_iter().chain(more.iter().copied()).collect();
        Program::start(&words, &[]).all()
    };
    // By its name on either side.
    for name in ["event ticket.changed", "event ticketChanged"] {
        let (status, out, err) = explain(name, &[]);
        assert!(status.success(), "{err}");
        for said in [
            "event ticket.changed of v2   (tickets.map.yaml:",
            "known by $.body.type",
            "receivers of v1 get ticketChanged, named in x-tickets-event",
            "delivered one after the other by $.body.data.id",
            "compared in a dual run with the one of the same $.body.ticket.id and $.body.at, within 120 s",
            "$.ticket.subject ← $.data.title   (tickets.map.yaml:",
            "lost: $.type of v2 does not reach v1   (tickets.map.yaml:",
        ] {
            assert!(out.contains(said), "`{said}` is not in:\n{out}");
        }
    }
    let (_, out, _) = explain("event ticket.viewed", &[]);
    assert!(out.contains("receivers of v1 are not told: v1 knows no views."), "{out}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("event.json");
    std::fs::write(&file, changed("7", "Tea").to_string()).expect("the file is written");
    let (_, out, _) = explain("event ticket.changed", &["--body", file.to_str().expect("a plain name")]);
    assert!(
        out.contains(
            r#"receivers get: {"at":"2026-01-02T03:04:05Z","ticket":{"id":7,"subject":"Tea","open":1}}"#
        ),
        "{out}"
    );
    let (status, _, err) = explain("event ticket.moved", &[]);
    assert_eq!(status.code(), Some(1));
    assert!(err.contains("the events are ticket.changed, ticket.deleted, ticket.viewed"), "{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_of_the_old_version_gets_events_of_the_new_one_in_its_form_and_signed_for_it() {
    let old = Upstream::start(vec![Act::Reply(answer(200, "", ""))]).await;
    let place = Place::new();
    let running = place.start(&place.configure(None, old.address, "")).await;
    assert_eq!(running.event("msg_1", &changed("7", "Tea")).await, 204);
    let deleted = json!({"type": "ticket.deleted", "timestamp": "2026-01-02T03:04:06Z", "data": {"id": "7"}});
    assert_eq!(running.event("msg_2", &deleted).await, 204);
    let viewed = json!({"type": "ticket.viewed", "timestamp": "2026-01-02T03:04:06Z", "data": {"id": "7"}});
    assert_eq!(running.event("msg_3", &viewed).await, 204, "taken, and nobody is told");
    // A repeated message is recognized.
    assert_eq!(running.event("msg_1", &changed("7", "Tea")).await, 204);
    assert_eq!(running.event("msg_4", &changed("7", "Last")).await, 204);
    old.received(3).await;
    let seen = old.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[0].line(), "POST /hook HTTP/1.1");
    let body: Value = serde_json::from_slice(&seen[0].body).expect("JSON");
    assert_eq!(body, json!({"ticket": {"id": 7, "subject": "Tea", "open": 1}, "at": "2026-01-02T03:04:05Z"}));
    let names: Vec<&str> = seen.iter().flat_map(|seen| seen.values("x-tickets-event")).collect();
    assert_eq!(names, ["ticketChanged", "ticketGone", "ticketChanged"]);
    for (seen, id) in seen.iter().zip(["msg_1", "msg_2", "msg_4"]) {
        let fields = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| {
            (
                name.parse::<http::HeaderName>().unwrap(),
                seen.values(name)[0].parse::<http::HeaderValue>().unwrap(),
            )
        });
        let fields = fields.into_iter().collect();
        let checked = signature(RECEIVER).check(&fields, &seen.body, now_ms(), Duration::from_secs(60));
        assert_eq!(checked, Ok(Some(id.to_owned())));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_signed_here_and_now_is_not_taken() {
    let old = Upstream::start(vec![Act::Reply(answer(200, "", ""))]).await;
    let place = Place::new();
    let running =
        place.start(&place.configure(None, old.address, "  tolerance: 60s\n  body_bytes: 2KiB\n")).await;
    let event = changed("7", "Tea");
    assert_eq!(running.post(&event.to_string(), "").await, 401, "unsigned");
    assert_eq!(running.signed_at("msg_1", &event, now_ms(), RECEIVER).await, 401, "by somebody else");
    assert_eq!(running.signed_at("msg_1", &event, now_ms() - 120_000, SERVICE).await, 401, "long ago");
    assert_eq!(running.signed_at("msg_1", &event, now_ms() + 120_000, SERVICE).await, 401, "not yet");
    assert_eq!(running.event("msg_1", &json!({"data": {"id": "7"}})).await, 400, "nothing says what it is");
    assert_eq!(running.event("msg_1", &changed("7", &"t".repeat(4096))).await, 413);
    let get = "GET /events/acme HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n";
    assert_eq!(exchange(running.gateway, get).await.expect("an answer").status, 405);
    // None of these is recorded as received.
    assert_eq!(running.event("msg_1", &event).await, 204);
    old.received(1).await;
    assert_eq!(told(&old.seen()[0]), (7, "Tea".to_owned()));
    assert_eq!(old.seen().len(), 1);
}

/// The path of a receiver is public: a slow sender without a signature does not block others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn senders_that_drip_leave_places_to_those_who_sign() {
    let acme = receiver(&Arc::new(AtomicBool::new(true))).await;
    let place = Place::new();
    let file = place.configure(None, acme.address, "limits: { requests_per_client: 4 }\n");
    let running = place.start(&file).await;
    let mut strangers = Vec::new();
    for number in 0..12 {
        let mut stranger = Client::connect(running.gateway).await;
        stranger.send("POST /events/acme HTTP/1.1\r\nhost: g\r\ncontent-length: 5000\r\n\r\n{").await;
        strangers.push(stranger);
        if number % 4 == 3 {
            let id = format!("msg_{number}");
            assert_eq!(running.event(&id, &changed("7", &id)).await, 204, "{number}");
        }
    }
    acme.received(3).await;
    // The displaced ones are notified.
    assert_eq!(strangers[0].answer().await.expect("an answer").status, 503);
}

/// A message is not delivered again under another id: the id counts if it is signed, otherwise the
/// time and the body do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_under_several_names_is_delivered_once() {
    use http::HeaderName;
    use switchback_gateway::signature::{Encoding, HmacForm};
    for signs_id in [false, true] {
        let acme = receiver(&Arc::new(AtomicBool::new(true))).await;
        let place = Place::new();
        let file = place.configure(None, acme.address, "");
        let text = std::fs::read_to_string(&file).expect("it was written");
        let hmac = format!(
            "verify: {{ form: hmac, secret: shared, header: x-signature, timestamp: x-signed-at, id: x-id, signs_id: {signs_id} }}"
        );
        std::fs::write(&file, text.replace(&format!("verify: {{ secret: {SERVICE} }}"), &hmac))
            .expect("written");
        let running = place.start(&file).await;
        let form = HmacForm {
            header: HeaderName::from_static("x-signature"),
            prefix: String::new(),
            encoding: Encoding::Hex,
            timestamp: Some(HeaderName::from_static("x-signed-at")),
            id: Some(HeaderName::from_static("x-id")),
            signs_id,
        };
        let signature =
            Signature::new(SignatureForm::Hmac(form), &[Secret::from("shared")]).expect("a secret");
        let body = changed("7", "first").to_string();
        let signed = signature.sign("a", body.as_bytes(), now_ms());
        for id in ["a", "b", "c", "d", "e"] {
            let mut fields = signed.clone();
            fields.insert("x-id", id.parse().expect("a value"));
            let fields =
                fields.iter().map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap()));
            let status = running.post(&body, &fields.collect::<String>()).await;
            assert_eq!(status, if signs_id && id != "a" { 401 } else { 204 }, "{id}");
        }
        let body = changed("8", "second").to_string();
        let fields = signature.sign("f", body.as_bytes(), now_ms());
        let fields = fields.iter().map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap()));
        assert_eq!(running.post(&body, &fields.collect::<String>()).await, 204);
        until(|| acme.seen().iter().any(|seen| told(seen).0 == 8)).await;
        let first = acme.seen().iter().filter(|seen| told(seen).0 == 7).count();
        assert_eq!(first, 1, "signs_id: {signs_id}");
    }
}

/// Events are taken before the fronts, one of which may be at `/`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_come_in_where_a_front_has_all_paths() {
    let acme = receiver(&Arc::new(AtomicBool::new(true))).await;
    let place = Place::new();
    let file = place.configure(None, acme.address, "fronts: { /: { speaks: v1 } }\n");
    let running = place.start(&file).await;
    assert_eq!(running.event("msg_1", &changed("7", "a")).await, 204);
    acme.received(1).await;
    let call = "GET /events/other HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n";
    assert_eq!(exchange(running.gateway, call).await.expect("an answer").status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_outlives_a_kill_and_keeps_the_order_of_its_key() {
    let is_up = Arc::new(AtomicBool::new(false));
    let old = receiver(&is_up).await;
    let place = Place::new();
    let file = place.configure(None, old.address, "  attempts: 1000\n");
    let running = place.start(&file).await;
    for (at, (ticket, title)) in
        [("7", "a"), ("8", "a"), ("7", "b"), ("7", "c"), ("8", "b")].into_iter().enumerate()
    {
        assert_eq!(running.event(&format!("msg_{at}"), &changed(ticket, title)).await, 204);
    }
    // It is under way, and not taken.
    old.received(2).await;
    let sees_only_first = |seen: &Seen| told(seen).1 == "a";
    assert!(old.seen().iter().all(sees_only_first), "the first of a key is tried until it is taken");
    tokio::task::spawn_blocking(move || running.program.kill()).await.expect("it is killed");
    let before = old.seen().len();
    is_up.store(true, SeqCst);
    let running = place.start(&file).await;
    old.received(before + 5).await;
    let of = |ticket: i64| -> Vec<String> {
        let seen = old.seen();
        let told = seen[before..].iter().map(told);
        told.filter(|(of, _)| *of == ticket).map(|(_, title)| title).collect()
    };
    assert_eq!((of(7), of(8)), (vec!["a".into(), "b".into(), "c".into()], vec!["a".into(), "b".into()]));
    assert_eq!(running.event("msg_2", &changed("7", "b")).await, 204, "known after the restart as well");
    let file = file.clone();
    eventually("the queue is empty", async || {
        place.cli(&file, &["events", "list"]).await.contains("No events.")
    })
    .await;
    assert_eq!(old.seen().len(), before + 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_takes_becomes_a_dead_letter_and_is_tried_again_when_somebody_says_so() {
    let is_up = Arc::new(AtomicBool::new(false));
    let old = receiver(&is_up).await;
    let place = Place::new();
    let file = place.configure(None, old.address, "  attempts: 3\n  queue: 3\n");
    let running = place.start(&file).await;
    assert_eq!(running.event("msg_1", &changed("7", "first")).await, 204);
    // An event that the pack does not know is nobody's to lose.
    assert_eq!(running.event("msg_2", &json!({"type": "ticket.moved", "data": {"id": "7"}})).await, 204);
    // One that the shape does not take.
    let odd = json!({"type": "ticket.changed", "timestamp": "t", "data": {"id": "seven", "title": "x", "status": "open"}});
    assert_eq!(running.event("msg_3", &odd).await, 204);
    eventually("three are dead", async || {
        let listed = place.cli(&file, &["events", "list", "--dead", "--format", "json"]).await;
        serde_json::from_str::<Value>(&listed)
            .expect("JSON")
            .as_array()
            .is_some_and(|events| events.len() == 3)
    })
    .await;
    assert_eq!(old.seen().len(), 3, "so many tries, of the first alone");
    assert_eq!(running.event("msg_4", &changed("8", "x")).await, 503, "the queue is full");
    let listed: Value =
        serde_json::from_str(&place.cli(&file, &["events", "list", "--format", "json"]).await).expect("JSON");
    let failure = |at: usize| listed[at]["failure"].as_str().expect("it says why").to_owned();
    assert!(failure(0).contains("answered 503"), "{listed}");
    assert!(failure(1).contains("knows no event"), "{listed}");
    assert!(failure(2).contains("tickets.map.yaml:") && !failure(2).contains("seven"), "{listed}");
    let shown = running.admin("GET /api/events", "").await;
    let counted: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(counted["receivers"][0], json!({"receiver": "acme", "pending": 0, "dead": 3}));
    assert!(!shown.contains("first"), "{shown}");
    eventually("they are counted", async || {
        running.admin("GET /metrics", "").await.contains("switchback_events_dead{receiver=\"acme\"} 3")
    })
    .await;
    let overview = running.admin("GET /", "").await;
    assert!(overview.contains("3 events for acme</strong> are dead letters"), "{overview}");
    is_up.store(true, SeqCst);
    let first = listed[0]["id"].as_str().expect("an id").to_owned();
    let retried = running.admin("POST /api/events/retry", &json!({"ids": [first]}).to_string()).await;
    assert!(retried.contains("\"retried\": 1"), "{retried}");
    old.received(4).await;
    assert_eq!(told(&old.seen()[3]), (7, "first".to_owned()));
    assert!(place.cli(&file, &["events", "retry"]).await.contains("2 events retried"));
    eventually("they are dead again", async || {
        place.cli(&file, &["events", "list", "--dead"]).await.lines().count() == 2
    })
    .await;
    assert!(place.cli(&file, &["events", "drop", "--all-dead"]).await.contains("2 events dropped"));
    assert_eq!(running.event("msg_4", &changed("8", "x")).await, 204);
    old.received(5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_outcome_of_an_event_is_counted() {
    let is_up = Arc::new(AtomicBool::new(true));
    let old = receiver(&is_up).await;
    let place = Place::new();
    let running = place.start(&place.configure(None, old.address, "  attempts: 2\n  queue: 2\n")).await;
    let counted = async |lines: &[(&str, u32)]| {
        for (outcome, count) in lines {
            let line = format!("switchback_events_total{{receiver=\"acme\",outcome=\"{outcome}\"}} {count}");
            eventually(&line, async || running.admin("GET /metrics", "").await.lines().any(|l| l == line))
                .await;
        }
    };
    assert_eq!(running.event("msg_1", &changed("7", "Tea")).await, 204);
    counted(&[("queued", 1), ("delivered", 1)]).await;
    assert_eq!(running.event("msg_1", &changed("7", "Tea")).await, 204);
    let viewed = json!({"type": "ticket.viewed", "timestamp": "2026-01-02T03:04:06Z", "data": {"id": "7"}});
    assert_eq!(running.event("msg_2", &viewed).await, 204);
    assert_eq!(running.post("{}", "").await, 401);
    assert_eq!(running.event("msg_3", &json!({"data": {"id": "7"}})).await, 400);
    counted(&[("known", 1), ("dropped", 1), ("unsigned", 1), ("refused", 1)]).await;
    is_up.store(false, SeqCst);
    assert_eq!(running.event("msg_4", &changed("8", "Milk")).await, 204);
    // The last of its two attempts ends it.
    counted(&[("queued", 2), ("failed", 1), ("dead", 1)]).await;
    assert_eq!(running.event("msg_5", &json!({"type": "ticket.moved", "data": {"id": "7"}})).await, 204);
    assert_eq!(running.event("msg_6", &changed("9", "Salt")).await, 503, "the queue is full");
    counted(&[("queued", 3), ("dead", 2), ("busy", 1), ("known", 1), ("delivered", 1)]).await;
    for gauge in ["pending{receiver=\"acme\"} 0", "dead{receiver=\"acme\"} 2"] {
        let line = format!("switchback_events_{gauge}");
        eventually(&line, async || running.admin("GET /metrics", "").await.lines().any(|l| l == line)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_deliver_each_event_of_a_key_in_its_turn() {
    let Some(database) = postgres::database() else { return };
    // Every third delivery fails: another replica must not overtake a retry.
    let old = Upstream::answering(|at, _| match at % 3 {
        2 => Act::Reply(answer(503, "", "")),
        _ => Act::Reply(answer(200, "", "")),
    })
    .await;
    let place = Place::new();
    let file = place.configure(Some(&database), old.address, "  attempts: 1000\n");
    let (one, other) = (place.start(&file).await, place.start(&file).await);
    for at in 0..40 {
        let by = if at % 2 == 0 { &one } else { &other };
        let ticket = (at % 4).to_string();
        assert_eq!(by.event(&format!("msg_{at}"), &changed(&ticket, &format!("{at:02}"))).await, 204);
    }
    let taken = || -> Vec<(i64, String)> {
        let seen = old.seen();
        seen.iter().enumerate().filter(|(at, _)| at % 3 != 2).map(|(_, seen)| told(seen)).collect()
    };
    until(|| taken().len() >= 40).await;
    for ticket in 0..4 {
        let of: Vec<String> =
            taken().into_iter().filter(|(of, _)| *of == ticket).map(|(_, title)| title).collect();
        let mut sorted = of.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(of, sorted, "once each, in order");
        assert_eq!(of.len(), 10);
    }
    drop((one, other));
}
