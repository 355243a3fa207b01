//! Header fields that contracts declare, from a client's socket to a scripted service and back:
//! passed where both sides declare them alike, by a pair, by `identical: keep` and by a line of a
//! `serve` route; named by the report where they are lost.

use crate::support::raw::{Act, Upstream, answer, exchange};
use crate::support::serving;
use std::process::Command;
use switchback_gateway::store::seal::SealingKey;

/// Returns a document with notes at this path and a list at `/same`, plus additional declarations.
fn contract(notes: &str, more_of_request: &str, more_of_answer: &str) -> String {
    format!(
        "openapi: 3.1.0
info: {{title: t, version: '1'}}
paths:
  {notes}:
    put:
      parameters:
        - {{name: If-Match, in: header, schema: {{type: string}}}}
        - {{name: Idempotency-Key, in: header, required: true, schema: {{type: string}}}}{more_of_request}
      requestBody: {{required: true, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Note'}}}}}}}}
      responses:
        '200':
          description: it
          headers: {{ETag: {{schema: {{type: string}}}}, X-Left: {{schema: {{type: integer}}}}{more_of_answer}}}
          content: {{application/json: {{schema: {{$ref: '#/components/schemas/Note'}}}}}}
  /same:
    get:
      parameters: [{{name: X-Depth, in: header, schema: {{type: integer}}}}]
      responses:
        '200':
          description: all
          headers: {{X-Total: {{schema: {{type: integer}}}}, Link: {{schema: {{type: string}}}}}}
          content: {{application/json: {{schema: {{type: array, items: {{$ref: '#/components/schemas/Note'}}}}}}}}
components: {{schemas: {{Note: {{type: object, properties: {{id: {{type: string}}}}}}}}}}
"
    )
}

const PACK: &str = "pack: notes
sides: {old: v1, new: v2}
contracts: {v1: contracts/v1.yaml, v2: contracts/v2.yaml}
serves: [v1]
identical: keep
credentials:
  v1: {read: [authorization], send: authorization, scheme: Bearer}
  v2: {read: [authorization], send: authorization, scheme: Bearer}
languages: [en]
errors: {body: {message: $text}}
refuse: {legacy: forward, status: 501}
";

const PAIR: &str = "mapping: 1\nroutes:\n  - pair: {v1: PUT /notes, v2: PUT /v2/notes, front: v1}\n    request: keep\n    response: keep\n";

/// The same by a separate call, with lines for the request and the answer.
const SERVE: &str = "mapping: 1
routes:
  - serve: v1
    at: PUT /notes
    steps:
      - put:
          call: PUT /v2/notes
          headers: {If-Match: \"$.request.headers['if-match']\", Idempotency-Key: \"$.request.headers['idempotency-key']\"}
          body: $.request.body
    answer:
      status: 200
      headers: {ETag: $.put.headers.etag, X-Left: \"$.put.headers['x-left']\"}
      body: $.put.body
";

#[tokio::test]
async fn what_both_sides_declare_goes_over_and_the_rest_is_a_loss() {
    for routes in [PAIR, SERVE] {
        let service = Upstream::start(vec![
            Act::Reply(answer(
                200,
                "content-type: application/json\r\netag: \"a2\"\r\nx-left: 7\r\nx-secret: s\r\n",
                r#"{"id":"1"}"#,
            )),
            Act::Reply(answer(
                200,
                "content-type: application/json\r\nx-total: 41\r\nlink: <?page=2>; rel=\"next\"\r\n",
                "[]",
            )),
        ])
        .await;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            std::fs::write(path, text).expect("it is written");
        };
        let of_v1 = contract(
            "/notes",
            "\n        - {name: X-Trace-Level, in: header, schema: {type: string}}",
            ", X-Cost: {schema: {type: string}}",
        );
        put("pack/contracts/v1.yaml", &of_v1);
        put("pack/contracts/v2.yaml", &contract("/v2/notes", "", ", X-Secret: {schema: {type: string}}"));
        put("pack/pack.yaml", PACK);
        put("pack/notes.map.yaml", routes);
        put(
            "switchback.yaml",
            &format!(
                "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{0}/store.db\nkey: ${{TEST_KEY}}\n\
                 mapping: {0}/pack\nfronts: {{ /v1: {{ speaks: v1 }} }}\nupstreams: {{ v2: {{ url: 'http://{1}' }} }}\n\
                 clients: [{{ name: app, v1_token: token-of-a-client, credentials: {{ v2: token-of-the-service }} }}]\n",
                folder.path().display(),
                service.address
            ),
        );
        let pack = folder.path().join("pack").to_str().expect("a plain name").to_owned();
        let mut reporting = Command::new(env!("CARGO_BIN_EXE_switchback"));
        let reported = reporting.args(["report", &pack, "--format", "json"]).output().expect("it runs");
        assert!(reported.status.success(), "{}", String::from_utf8_lossy(&reported.stderr));
        let report = String::from_utf8_lossy(&reported.stdout);
        assert_eq!(report.matches("header X-Trace-Level of the request").count(), 1, "{report}");
        assert_eq!(report.matches("header X-Cost of the answer").count(), 1, "{report}");
        assert!(!report.contains("X-Left") && !report.contains("X-Secret"), "{report}");
        let (program, gateway, _) =
            serving::serve(&folder.path().join("switchback.yaml"), &SealingKey::generate()).await;
        let ask = async |line: &str, fields: &str, body: &str| {
            let request = format!(
                "{line} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer token-of-a-client\r\ncontent-length: {}\r\n{fields}\r\n{body}",
                body.len()
            );
            exchange(gateway, request).await.expect("an answer")
        };
        let fields = "content-type: application/json\r\nif-match: \"a1\"\r\nidempotency-key: k-1\r\nx-trace-level: 9\r\n";
        let got = ask("PUT /v1/notes", fields, r#"{"id":"1"}"#).await;
        assert_eq!((got.status, got.text().as_str()), (200, r#"{"id":"1"}"#));
        assert_eq!((got.value("etag"), got.value("x-left")), ("\"a2\"", "7"));
        assert!(got.values("x-secret").is_empty());
        let got = ask("GET /v1/same", "x-depth: 2\r\n", "").await;
        assert_eq!((got.status, got.text().as_str()), (200, "[]"));
        assert_eq!((got.value("x-total"), got.value("link")), ("41", "<?page=2>; rel=\"next\""));
        let seen = service.seen();
        assert_eq!(seen[0].values("if-match"), ["\"a1\""]);
        assert_eq!(seen[0].values("idempotency-key"), ["k-1"]);
        assert!(seen[0].values("x-trace-level").is_empty());
        assert_eq!(seen[1].values("x-depth"), ["2"]);
        drop(program);
    }
}
