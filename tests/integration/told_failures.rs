//! Services that answer failures with a success, through the real binary: the failure is recognized
//! at the called side, and represented in the form of the served side.

use crate::support::dual::eventually;
use crate::support::program::Program;
use crate::support::raw::{Act, Upstream, exchange};
use crate::support::serving;
use serde_json::{Value, json};
use std::net::SocketAddr;
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;

/// `v1` uses HTTP statuses; `v2` answers everything with 200 and an `ok`.
const PACK: [(&str, &str); 4] = [
    (
        "pack.yaml",
        "pack: notes\nsides: {old: v1, new: v2}\n\
         contracts: {v1: contracts/v1.openapi.yaml, v2: contracts/v2.openapi.yaml}\n\
         credentials:\n\
         \x20 v1: {read: [x-api-token], send: x-api-token, scheme: none}\n\
         \x20 v2: {read: [authorization], send: authorization, scheme: Bearer}\n\
         languages: [en]\n\
         errors:\n\
         \x20 body: {message: $text}\n\
         \x20 types: {v1: Error, v2: Failed}\n\
         \x20 shape: Error\n\
         \x20 sides: {v2: {status: 200, body: {ok: false, error: $kind}, kind: {unknown_token: invalid_auth}}}\n\
         \x20 failures:\n\
         \x20   v2:\n\
         \x20     - {when: {$.body.ok: false, $.body.error: [token_expired, invalid_auth]}, status: 401}\n\
         \x20     - {when: {$.body.ok: false, $.body.error: no_such_note}, status: 404}\n\
         \x20     - {when: {$.body.ok: false}, status: 400}\n\
         refuse: {legacy: never, status: 501}\n",
    ),
    (
        "contracts/v1.openapi.yaml",
        "openapi: 3.1.0\ninfo: {title: Notes, version: '1'}\npaths:\n\
         \x20 /notes/{id}:\n\
         \x20   parameters: [{name: id, in: path, required: true, schema: {type: string}}]\n\
         \x20   get: {responses: {'200': {description: ok, content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}}, \
         '404': {description: none, content: {application/json: {schema: {$ref: '#/components/schemas/Error'}}}}}}\n\
         components: {schemas: {\n\
         \x20 Note: {type: object, additionalProperties: false, required: [id, title], properties: {id: {type: string}, title: {type: string}}},\n\
         \x20 Error: {type: object, additionalProperties: false, required: [message], properties: {message: {type: string}}}}}\n",
    ),
    (
        "contracts/v2.openapi.yaml",
        "openapi: 3.1.0\ninfo: {title: Notes, version: '2'}\npaths:\n\
         \x20 /notes/{id}:\n\
         \x20   parameters: [{name: id, in: path, required: true, schema: {type: string}}]\n\
         \x20   get: {responses: {'200': {description: ok, content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}}}}\n\
         components: {schemas: {\n\
         \x20 Note: {type: object, additionalProperties: false, required: [ok, id, title], properties: {ok: {type: boolean}, id: {type: string}, title: {type: string}, error: {type: string}}},\n\
         \x20 Failed: {type: object, additionalProperties: false, required: [ok, error], properties: {ok: {type: boolean}, error: {type: string}}}}}\n",
    ),
    (
        "notes.map.yaml",
        "mapping: 1\nshapes:\n\
         \x20 Note: {of: {v1: Note, v2: Note}, same: [id, title], only: {v2: {ok: true, error: absent}}}\n\
         \x20 Error: {of: {v1: Error, v2: Failed}, rename: {message: error}, only: {v2: {ok: false}}}\n\
         routes:\n\
         \x20 - {pair: {v1: 'GET /notes/{id}', v2: 'GET /notes/{id}'}, response: Note}\n",
    ),
];

/// A gateway with a front for each side, each before the service of the other one.
struct Notes {
    gateway: SocketAddr,
    admin: SocketAddr,
    _program: Program,
    _folder: TempDir,
}

impl Notes {
    async fn before(v1: SocketAddr, v2: SocketAddr) -> Notes {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pack = folder.path().join("pack");
        std::fs::create_dir_all(pack.join("contracts")).expect("it is made");
        for (name, text) in PACK {
            std::fs::write(pack.join(name), text).expect("the file is written");
        }
        let file = folder.path().join("switchback.yaml");
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{at}/store.db\nkey: ${{TEST_KEY}}\n\
             mapping: {at}/pack\nfronts: {{ /old: {{ speaks: v1, unknown: refuse }}, /new: {{ speaks: v2, unknown: refuse }} }}\n\
             upstreams: {{ v1: {{ url: 'http://{v1}' }}, v2: {{ url: 'http://{v2}' }} }}\n\
             oauth: {{ authorize_url: 'http://{v2}/authorize', token_url: 'http://{v2}/token', redirect_url: 'http://{v2}/back' }}\n\
             clients: [{{ name: ci, v1_token: old-token-of-ci, v2_token: new-token-of-ci, credentials: {{ v1: own-token-of-ci }}, \
             grant: {{ client_id: app, client_secret: s3cret, refresh_token: first }} }}]\n",
            at = folder.path().display(),
        );
        std::fs::write(&file, text).expect("the file is written");
        let (_program, gateway, admin) = serving::serve(&file, &SealingKey::generate()).await;
        Notes { gateway, admin, _program, _folder: folder }
    }

    async fn ask(&self, target: &str, token: &str) -> (u16, Value) {
        let request = format!("GET {target} HTTP/1.1\r\nhost: g\r\n{token}\r\nconnection: close\r\n\r\n");
        let answer = exchange(self.gateway, request).await.expect("an answer");
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{}", answer.text())))
    }

    async fn old(&self, target: &str) -> (u16, Value) {
        self.ask(target, "x-api-token: old-token-of-ci").await
    }

    async fn new_side(&self, target: &str) -> (u16, Value) {
        self.ask(target, "authorization: Bearer new-token-of-ci").await
    }

    /// Waits until one request was counted so: that is done once its answer has gone.
    async fn counted(&self, side: &str, outcome: &str, status: u16) {
        eventually(outcome, async || self.is_counted(side, outcome, status).await).await;
    }

    async fn is_counted(&self, side: &str, outcome: &str, status: u16) -> bool {
        let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        let metrics = exchange(self.admin, request).await.expect("the admin port answers").text();
        metrics.lines().any(|line| {
            line.starts_with("switchback_requests_total{")
                && line.contains(&format!("side=\"{side}\""))
                && line.contains(&format!("outcome=\"{outcome}\",status=\"{status}\""))
                && line.ends_with(" 1")
        })
    }
}

/// The service of `v2`: a token expires after one use, which is answered with a success.
fn v2(at: usize, seen: &crate::support::raw::Seen) -> Act {
    if seen.line().starts_with("POST /token") {
        let body = json!({"token_type": "Bearer", "expires_in": 3600, "access_token": format!("access-{at}"), "refresh_token": format!("refresh-{at}")});
        return Act::json(200, &body.to_string());
    }
    let is_first = seen.values("authorization") == ["Bearer access-0"];
    let path = seen.line().split(' ').nth(1).unwrap_or_default();
    Act::json(
        200,
        &match path {
            "/notes/ended" if is_first => json!({"ok": false, "error": "token_expired"}),
            "/notes/none" => json!({"ok": false, "error": "no_such_note"}),
            "/notes/odd" => json!({"ok": false, "error": "odd"}),
            // Longer than any failure: streamed unchanged, regardless of its end.
            "/notes/long" => json!({"id": "long", "title": "t".repeat(200_000), "ok": false}),
            path => json!({"ok": true, "id": path.trim_start_matches("/notes/"), "title": "Tea"}),
        }
        .to_string(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_told_with_a_success_is_one_for_tokens_statuses_and_counters() {
    let (old, new) = (Upstream::start(vec![Act::Silence]).await, Upstream::answering(v2).await);
    let notes = Notes::before(old.address, new.address).await;
    assert_eq!(notes.old("/old/notes/7").await, (200, json!({"id": "7", "title": "Tea"})));
    // The token has expired: it is renewed, and the call repeated, as after a 401.
    assert_eq!(notes.old("/old/notes/ended").await, (200, json!({"id": "ended", "title": "Tea"})));
    let refreshes = new.seen().iter().filter(|seen| seen.line().starts_with("POST /token")).count();
    assert_eq!(refreshes, 2, "one to begin with, one for the token that had ended");
    assert_eq!(notes.old("/old/notes/none").await, (404, json!({"message": "no_such_note"})));
    notes.counted("v1", "translated", 404).await;
    assert_eq!(notes.old("/old/notes/odd").await, (400, json!({"message": "odd"})));
    let (status, long) = notes.old("/old/notes/long").await;
    assert_eq!((status, long["title"].as_str().map(str::len)), (200, Some(200_000)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_side_that_has_no_statuses_are_told_errors_its_way() {
    let v1 = Upstream::answering(|_, seen| match seen.line().starts_with("GET /notes/none ") {
        true => Act::json(404, r#"{"message":"no such note"}"#),
        false => Act::json(500, "<html>"),
    })
    .await;
    let v2 = Upstream::answering(v2).await;
    let notes = Notes::before(v1.address, v2.address).await;
    let nobody = notes.ask("/new/notes/7", "authorization: Bearer of-nobody").await;
    assert_eq!(nobody, (200, json!({"ok": false, "error": "invalid_auth"})));
    assert_eq!(notes.new_side("/new/notes/none").await, (200, json!({"ok": false, "error": "no such note"})));
    // A 404 is counted as one, regardless of the status of its answer.
    notes.counted("v2", "translated", 404).await;
    // In the gateway's words, if the service has none: the word for the kind of error.
    let (status, broken) = notes.new_side("/new/notes/8").await;
    assert_eq!((status, &broken["ok"], &broken["error"]), (200, &json!(false), &json!("upstream_broken")));
    notes.counted("v2", "upstream_error", 500).await;
}
