//! Functions and generated values, from a client's socket to a scripted service and back: the pack
//! of the manual's page about functions.

use crate::support::packs;
use crate::support::program::Program;
use crate::support::raw::{Act, Answer, Upstream, exchange};
use crate::support::serving;
use http::Method;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use switchback_compiler::mapping::compile;
use switchback_engine::diff::{BufferedAnswer, Candidate, Limits, Noise, Rules, View, compare};
use switchback_engine::redact::{Redactor, Salt};
use switchback_gateway::store::seal::SealingKey;
use switchback_plan::SideId;
use switchback_plan::convert::instant;
use switchback_plan::router::{Found, Router};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

/// A gateway with the pack in front of a service.
pub struct People {
    gateway: SocketAddr,
    pub service: Upstream,
    pub program: Arc<Program>,
    folder: TempDir,
}

impl People {
    async fn before(script: Vec<Act>) -> People {
        People::with(script, "").await
    }

    /// `more` are further keys of the upstream.
    pub async fn with(script: Vec<Act>, more: &str) -> People {
        let service = Upstream::start(script).await;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pack = folder.path().join("pack");
        std::fs::create_dir_all(pack.join("contracts")).expect("it is made");
        for (name, text) in packs::manual_files("people/") {
            std::fs::write(pack.join(name), text).expect("it is written");
        }
        let file = configure(&folder, &service, more);
        let (program, gateway, _) = serving::serve(&file, &SealingKey::generate()).await;
        People { gateway, service, program: Arc::new(program), folder }
    }

    /// Changes the further keys of the upstream, and waits for the reload.
    pub async fn reload(&self, more: &str) {
        configure(&self.folder, &self.service, more);
        let program = Arc::clone(&self.program);
        let log = spawn_blocking(move || program.stderr_until("reload")).await.expect("it says so");
        assert!(!log.contains("the reload failed"), "{log}");
    }

    pub async fn ask(&self, line: &str, body: &str) -> Answer {
        let request = format!(
            "{line} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer token-of-a-client\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        exchange(self.gateway, request).await.expect("an answer")
    }
}

fn configure(folder: &TempDir, service: &Upstream, more: &str) -> PathBuf {
    let file = folder.path().join("switchback.yaml");
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{0}/store.db\nkey: ${{TEST_KEY}}\n\
         mapping: {0}/pack\nfronts: {{ /v1: {{ speaks: v1 }} }}\nreload: {{ settle: 20ms }}\n\
         upstreams: {{ v2: {{ url: 'http://{1}', {more} }} }}\n\
         clients: [{{ name: app, v1_token: token-of-a-client, credentials: {{ v2: token-of-the-service }} }}]\n",
        folder.path().display(),
        service.address
    );
    std::fs::write(&file, text).expect("it is written");
    file
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[tokio::test]
async fn times_and_amounts_are_computed_on_the_way() {
    let meeting = r#"{"startsAt":"2024-03-31T12:00:00+02:00","lasts":"PT90M"}"#;
    let people = People::before(vec![
        Act::json(200, meeting),
        Act::json(200, meeting),
        Act::json(200, r#"{"startsAt":"2024-03-31T12:00:00Z","lasts":"P1M"}"#),
        Act::json(200, r#"{"cents":1999,"count":3,"guests":0}"#),
    ])
    .await;
    let got = people.ask("GET /v1/meetings/7", "").await;
    assert_eq!(json_of(&got.text()), json!({"starts": "31.03.2024 12:00:00", "minutes": 90}));
    let got = people.ask("GET /v1/meetings/7/times", "").await;
    let times = json!({"reminder": "2024-03-30T12:00:00+01:00", "end": "2024-03-31T13:30:00+02:00"});
    assert_eq!(json_of(&got.text()), times);
    // A month has no number of minutes.
    assert_eq!(people.ask("GET /v1/meetings/8", "").await.status, 502);
    let got = people.ask("GET /v1/orders/7", "").await;
    assert_eq!(json_of(&got.text()), json!({"price": 19.99, "total": 59.97, "each": null}));
}

#[tokio::test]
async fn generated_values_belong_to_the_request() {
    let made = Act::json(201, r#"{"email":"ana@example.com","joined":"2024-03-09T12:00:00Z"}"#);
    let people = People::before(vec![made.clone(), made]).await;
    let body = r#"{"email":"Ana@example.com"}"#;
    let answers = [people.ask("POST /v1/people", body).await, people.ask("POST /v1/people", body).await];
    let seen = people.service.seen();
    let sent: Vec<Value> = seen.iter().map(|seen| json_of(&String::from_utf8_lossy(&seen.body))).collect();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0]["id"], sent[1]["id"], "the id follows from the address");
    assert_ne!(
        seen[0].values("idempotency-key"),
        seen[1].values("idempotency-key"),
        "each request has a key of its own"
    );
    for (answer, sent) in answers.iter().zip(&sent) {
        assert_eq!(answer.status, 201, "{}", answer.text());
        let (seconds, _) = instant(sent["joined"].as_str().expect("a text")).expect("a timestamp");
        let answer = json_of(&answer.text());
        assert_eq!(answer["key"], sent["id"]);
        assert_eq!(answer["since"], json!(seconds), "the call and the answer have the same time");
    }
}

/// The other service has another time in its answer, which is no difference; a computed member
/// without a generated value is one.
#[test]
fn a_generated_value_is_compared_by_its_type() {
    let pack = compile(&packs::source(&packs::manual_files("people/"))).pack.expect("the pack compiles");
    let (rules, router) = (Rules::compile(&pack), Router::new(&pack.directions[0]));
    let Found::Route { route, .. } = router.find(&Method::POST, "/people") else { panic!("no route") };
    let view = |body: Value| {
        let body = BufferedAnswer::whole(body.to_string().into_bytes());
        View { status: 201, headers: http::HeaderMap::new(), body }
    };
    let differences = |candidate: Value| {
        let compared = compare(
            rules.of_route(SideId::OLD, route),
            &view(json!({"key": "a", "since": 1})),
            &Candidate::Answered(view(candidate)),
            &Noise::default(),
            &Limits::default(),
            &Redactor::new(Salt::new([1; 32])),
        );
        compared.findings.iter().map(|finding| finding.place.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(differences(json!({"key": "a", "since": 2})), [""; 0]);
    assert_eq!(differences(json!({"key": "a", "since": "2"})), ["$.since"]);
    assert_eq!(differences(json!({"key": "b", "since": 2})), ["$.key"]);
}
