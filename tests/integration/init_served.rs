//! A drafted pack at work: `init` makes it of two documents in different dialects, and the gateway
//! serves it, from a client's socket to a scripted service.

use crate::support::program::Program;
use crate::support::raw::{Act, Upstream, answer, exchange};
use crate::support::serving;
use std::net::SocketAddr;
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;

/// The old side is Swagger 2.0, with a partly variable path segment, a path with a trailing slash,
/// a form, and bytes.
const OLD: &str = r"
swagger: '2.0'
info: {title: t, version: '1'}
consumes: [application/json]
produces: [application/json]
paths:
  /things/{id}.json:
    get:
      parameters: [{name: id, in: path, required: true, type: string}]
      responses:
        200: {description: it, schema: {$ref: '#/definitions/Thing'}}
        404: {description: none, schema: {$ref: '#/definitions/NotThere'}}
  /things/:
    post:
      consumes: [application/x-www-form-urlencoded]
      parameters: [{name: title, in: formData, type: string}]
      responses: {201: {description: made, schema: {$ref: '#/definitions/Thing'}}, 204: {description: was there}}
  /things/{id}/picture:
    get:
      produces: [image/png]
      parameters: [{name: id, in: path, required: true, type: string}]
      responses: {200: {description: it, schema: {type: file}}}
  /old-only: {get: {responses: {204: {description: done}}}}
  /coupons/{id}:
    parameters: [{name: id, in: path, required: true, type: string}]
    put: {responses: {204: {description: done}}}
    delete: {responses: {204: {description: done}}}
definitions:
  Thing:
    type: object
    required: [id]
    properties: {id: {type: string}, inner: {$ref: '#/definitions/Thing'}}
  NotThere: {type: object, required: [what], properties: {what: {type: string}}}
";

/// The new side is OpenAPI 3.1 in JSON, and has one more field in answers. The paths of its
/// customers have the form of the earlier coupons.
const NEW: &str = r##"{
  "openapi": "3.1.0",
  "info": {"title": "t", "version": "2"},
  "paths": {
    "/things/{key}.json": {
      "parameters": [{"name": "key", "in": "path", "required": true, "schema": {"type": "string"}}],
      "get": {"responses": {
        "200": {"description": "it", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
        "404": {"description": "none", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/NotThere"}}}}}}},
    "/things/": {"post": {
      "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": {"title": {"type": "string"}}}}}},
      "responses": {
        "201": {"description": "made", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
        "204": {"description": "was there"}}}},
    "/things/{id}/picture": {
      "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
      "get": {"responses": {"200": {"description": "it", "content": {"image/png": {}}}}}},
    "/customers/{id}": {
      "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
      "put": {"responses": {"204": {"description": "done"}}},
      "delete": {"responses": {"204": {"description": "done"}}}}
  },
  "components": {"schemas": {
    "Thing": {"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"inner": {"$ref": "#/components/schemas/Thing"}, "more": {}}}]},
    "Base": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
    "NotThere": {"type": "object", "required": ["what"], "properties": {"what": {"type": "string"}}}
  }}
}"##;

const TOKEN: &str = "token-of-a-client";

struct Served {
    gateway: SocketAddr,
    service: Upstream,
    _program: Program,
    _folder: TempDir,
}

impl Served {
    async fn start(script: Vec<Act>) -> Served {
        let service = Upstream::start(script).await;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name).to_str().expect("a plain name").to_owned();
        std::fs::write(at("api-v1.yaml"), OLD).expect("it is written");
        std::fs::write(at("api-v2.json"), NEW).expect("it is written");
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{}/store.db\nkey: ${{TEST_KEY}}\n\
             mapping: {}\nfronts: {{ /v1: {{ speaks: v1 }} }}\nupstreams: {{ v2: {{ url: 'http://{}' }} }}\n\
             clients: [{{ name: app, v1_token: {TOKEN}, credentials: {{ v2: token-of-the-service }} }}]\n",
            folder.path().display(),
            at("pack"),
            service.address
        );
        std::fs::write(at("switchback.yaml"), text).expect("the file is written");
        let (old, new, pack, file) =
            (at("api-v1.yaml"), at("api-v2.json"), at("pack"), at("switchback.yaml"));
        let starting = tokio::task::spawn_blocking(move || {
            let drafted = Program::start(&["init", &old, &new, &pack], &[]);
            drafted.stdout_until("3 served untouched, 0 by sure lines, 0 to be looked at, 3 refused");
            let (status, log) = drafted.ended();
            assert!(status.success(), "{log}");
            let tested = Program::start(&["test", &pack], &[]);
            tested.stdout_until(", 1 generated example passed; every outcome is covered");
            let (status, log) = tested.ended();
            assert!(status.success(), "{log}");
            let key = SealingKey::generate();
            let program = Program::start(&["serve", "--config", &file], &[("TEST_KEY", key.expose())]);
            let address = serving::address(&program);
            (program, address)
        });
        let (program, gateway) = starting.await.expect("it serves");
        Served { gateway, service, _program: program, _folder: folder }
    }

    async fn ask(&self, line: &str, fields: &str, body: &str) -> crate::support::raw::Answer {
        let request = format!(
            "{line} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: {}\r\n{fields}\r\n{body}",
            body.len()
        );
        exchange(self.gateway, request).await.expect("an answer")
    }
}

#[tokio::test]
async fn what_is_equal_in_two_dialects_is_served_without_a_line() {
    let thing = r#"{"id":"7","more":1,"inner":{"id":"8"}}"#;
    let png = "\u{1}\u{2}not JSON at all";
    let served = Served::start(vec![
        Act::json(200, thing),
        Act::json(404, r#"{"what":"thing 9"}"#),
        Act::json(201, thing),
        Act::Reply(b"HTTP/1.1 204 X\r\n\r\n".to_vec()),
        Act::Reply(answer(200, "content-type: image/png\r\ncontent-disposition: inline\r\n", png)),
    ])
    .await;
    let got = served.ask("GET /v1/things/7.json", "", "").await;
    assert_eq!((got.status, got.text().as_str()), (200, thing));
    // Its own type of error, which both sides promise.
    let got = served.ask("GET /v1/things/9.json", "", "").await;
    assert_eq!((got.status, got.text().as_str()), (404, r#"{"what":"thing 9"}"#));
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    let got = served.ask("POST /v1/things/", form, "title=a%20b&x[]=1").await;
    assert_eq!((got.status, got.text().as_str()), (201, thing));
    // A success without a body next to one with a body.
    let got = served.ask("POST /v1/things/", form, "title=c").await;
    assert_eq!((got.status, got.text().as_str()), (204, ""));
    let got = served.ask("GET /v1/things/7/picture", "accept: image/png\r\n", "").await;
    assert_eq!((got.status, got.text().as_str(), got.value("content-type")), (200, png, "image/png"));
    assert_eq!(got.value("content-disposition"), "inline");
    let seen = served.service.seen();
    let lines: Vec<&str> = seen.iter().map(|seen| seen.line()).collect();
    assert_eq!(
        lines,
        [
            "GET /things/7.json HTTP/1.1",
            "GET /things/9.json HTTP/1.1",
            "POST /things/ HTTP/1.1",
            "POST /things/ HTTP/1.1",
            "GET /things/7/picture HTTP/1.1",
        ]
    );
    assert_eq!(seen[2].body, b"title=a%20b&x[]=1");
    assert_eq!(seen[2].values("content-type"), ["application/x-www-form-urlencoded"]);
    assert_eq!(seen[4].values("accept"), ["image/png"]);
    // A guess is not called: `/customers/7` stays.
    for line in ["GET /v1/old-only", "DELETE /v1/coupons/7", "PUT /v1/coupons/7"] {
        let got = served.ask(line, "", "").await;
        assert_eq!(got.status, 501, "{line}: {}", got.text());
    }
    assert_eq!(served.service.seen().len(), 5, "what is refused calls nobody");
}
