//! Credentials in all forms that services use: a pack defines how a token is read and sent, the
//! token of the client is not forwarded, and no token is stored or displayed.

use crate::support::program::Program;
use crate::support::raw::{Act, Answer, Seen, Upstream, exchange};
use crate::support::serving;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::SocketAddr;
use std::path::Path;
use switchback_compiler::mapping::{compile, load::PackSource};
use tempfile::TempDir;

/// The token of the client, also as user and password.
const TOKEN: &str = "token-of-acme";
const PAIR: &str = "acme:password-of-acme";
/// The token of a client without a credential for the old side.
const PLAIN: &str = "token-of-plain";
/// The tokens of calls, by side.
const OLD: &str = "old-service-token";
const NEW: &str = "new-service-token";
const ADMIN: &str = "admin-token-of-this-test";

const FORM: &str = "{required: true, content: {application/x-www-form-urlencoded: {schema: {type: object, required: [title], properties: {title: {type: string}}}}}}";

/// All ways in which v1 reads a token.
const READS: &str = "[{header: x-api-key, scheme: none}, {header: authorization, scheme: Token}, {basic: both}, {basic: user}, \
                     {basic: password}, {query: api_key}, {form: token}]";

/// A pack of two sides that are the same but for their credentials. `more`: further operations of
/// both contracts.
fn pack(folder: &Path, v1: &str, v2: &str, more: &str) -> String {
    let pack = folder.join("pack");
    std::fs::create_dir_all(pack.join("contracts")).expect("a folder is made");
    let manifest = format!(
        "pack: keys\nsides: {{old: v1, new: v2}}\ncontracts: {{v1: contracts/v1.yaml, v2: contracts/v2.yaml}}\n\
         serves: [v1]\nidentical: keep\nrest: refuse\ncredentials:\n  v1: {v1}\n  v2: {v2}\nlanguages: [en]\n\
         errors: {{body: {{error: $text}}}}\nrefuse: {{legacy: never, status: 501}}\n"
    );
    std::fs::write(pack.join("pack.yaml"), manifest).expect("it is written");
    for (side, credential) in [("v1", v1), ("v2", v2)] {
        // A contract may declare a key as a parameter, which needs no mapping.
        let key = match credential.contains("send: {query: key}") {
            true => "parameters: [{name: key, in: query, required: true, schema: {type: string}}], ",
            false => "",
        };
        let answer = "responses: {201: {description: made, content: {application/json: {schema: {type: object, properties: {id: {type: string}}}}}}}";
        let contract = format!(
            "openapi: 3.0.3\ninfo: {{title: t, version: '1'}}\npaths:\n  /things:\n    post: {{{key}requestBody: {FORM}, {answer}}}\n  \
             /notes:\n    post: {{{key}requestBody: {FORM}, {answer}}}\n{more}"
        );
        std::fs::write(pack.join(format!("contracts/{side}.yaml")), contract).expect("it is written");
    }
    pack.display().to_string()
}

/// A gateway in production form, in front of a service that records its requests.
struct Gateway {
    service: Upstream,
    program: Program,
    address: SocketAddr,
    admin: SocketAddr,
    folder: TempDir,
}

impl Gateway {
    async fn start(v1: &str, v2: &str, new: &str) -> Gateway {
        let service = Upstream::start(vec![Act::json(201, r#"{"id": "1"}"#)]).await;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let more = format!(
            "settings: {{}}\nmapping: {}\nphases: {{ 'POST /notes': legacy }}\nlog: {{ level: debug }}\nclients:\n\
             - {{ name: acme, v1_token: [{TOKEN}, '{PAIR}'], credentials: {{ v1: {OLD}, v2: '{new}' }} }}\n\
             - {{ name: plain, v1_token: {PLAIN}, credentials: {{ v2: '{new}' }} }}\n",
            pack(folder.path(), v1, v2, "")
        );
        let file = serving::write_before(folder.path(), &service.address.to_string(), &["v1", "v2"], &more);
        let text = std::fs::read_to_string(&file).expect("it was written");
        let admin = format!("admin: {{ listen: 127.0.0.1:0, token: {ADMIN} }}");
        std::fs::write(&file, text.replace("admin: { listen: 127.0.0.1:0 }", &admin)).expect("it is written");
        let starting = tokio::task::spawn_blocking(move || {
            let program = serving::start(&file, &[]);
            let addresses = serving::addresses(&program);
            (program, addresses)
        });
        let (program, (address, admin)) = starting.await.expect("it serves");
        Gateway { service, program, address, admin, folder }
    }

    /// Posts a form. Returns the request that the service received.
    async fn post(&self, target: &str, field: &str, form: &str) -> (Answer, Option<Seen>) {
        let before = self.service.seen().len();
        let length = form.len();
        let request = format!(
            "POST {target} HTTP/1.1\r\nhost: g\r\n{field}content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{form}"
        );
        let answer = exchange(self.address, request).await.expect("an answer");
        (answer, self.service.seen().get(before).cloned())
    }

    async fn shown(&self, target: &str) -> String {
        let request = format!(
            "GET {target} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {ADMIN}\r\nconnection: close\r\n\r\n",
            self.admin
        );
        let answer = exchange(self.admin, request).await.expect("the admin port answers");
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        answer.text()
    }
}

fn basic(both: &str) -> String {
    format!("authorization: Basic {}\r\n", STANDARD.encode(both))
}

/// Returns each form of the token: query, fields, and form fields after it.
fn shown() -> Vec<(&'static str, String, String)> {
    let nothing = String::new;
    vec![
        ("", format!("x-api-key: {TOKEN}\r\n"), nothing()),
        ("", format!("authorization: token {TOKEN}\r\n"), nothing()),
        ("", basic(PAIR), nothing()),
        ("?api_key=token-of-acme", nothing(), nothing()),
        ("?api%5Fkey=token-of%2Dacme", nothing(), nothing()),
        ("", nothing(), format!("&token={TOKEN}")),
    ]
}

/// Returns the request as it was sent.
struct Sent {
    way: &'static str,
    new: &'static str,
    field: fn(&str) -> Option<(&'static str, String)>,
    query: fn(&str) -> String,
    form: fn(&str) -> String,
}

const SENT: [Sent; 7] = [
    Sent {
        way: "{header: x-key, scheme: none}",
        new: NEW,
        field: |token| Some(("x-key", token.to_owned())),
        query: |_| String::new(),
        form: |_| String::new(),
    },
    Sent {
        way: "{header: authorization, scheme: ApiToken}",
        new: NEW,
        field: |token| Some(("authorization", format!("ApiToken {token}"))),
        query: |_| String::new(),
        form: |_| String::new(),
    },
    Sent {
        way: "{basic: user}",
        new: NEW,
        field: |token| Some(("authorization", format!("Basic {}", STANDARD.encode(format!("{token}:"))))),
        query: |_| String::new(),
        form: |_| String::new(),
    },
    Sent {
        way: "{basic: password}",
        new: NEW,
        field: |token| Some(("authorization", format!("Basic {}", STANDARD.encode(format!(":{token}"))))),
        query: |_| String::new(),
        form: |_| String::new(),
    },
    Sent {
        way: "{basic: both}",
        new: "them:password-of-them",
        field: |token| Some(("authorization", format!("Basic {}", STANDARD.encode(token)))),
        query: |_| String::new(),
        form: |_| String::new(),
    },
    Sent {
        way: "{query: key}",
        new: "a+b/c=d&e-token",
        field: |_| None,
        query: |token| {
            format!(
                "?key={}",
                token.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D").replace('&', "%26")
            )
        },
        form: |_| String::new(),
    },
    Sent {
        way: "{form: key}",
        new: NEW,
        field: |_| None,
        query: |_| String::new(),
        form: |token| format!("&key={token}"),
    },
];

/// Checks that the service received this token, in this form, and no part of the client's.
fn check(seen: &Seen, path: &str, sent: &Sent, token: &str) {
    let target = format!("POST {path}{} HTTP/1.1", (sent.query)(token));
    assert_eq!(seen.line(), target, "{}", sent.way);
    assert_eq!(String::from_utf8_lossy(&seen.body), format!("title=a{}", (sent.form)(token)), "{}", sent.way);
    let field = (sent.field)(token);
    for name in ["x-key", "x-api-key", "authorization"] {
        let wanted: Vec<&str> =
            field.iter().filter(|(own, _)| *own == name).map(|(_, value)| value.as_str()).collect();
        assert_eq!(seen.values(name), wanted, "{}: {}", sent.way, seen.head);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_read_and_sent_as_the_pack_says_and_what_was_read_goes_no_further() {
    for sent in &SENT {
        let way = sent.way;
        let v1 = format!("{{read: {READS}, send: {way}}}");
        let v2 = format!("{{read: [{{header: authorization, scheme: Bearer}}], send: {way}}}");
        let gateway = Gateway::start(&v1, &v2, sent.new).await;
        for (query, field, form) in shown() {
            let form = format!("title=a{form}");
            let (answer, seen) = gateway.post(&format!("/v1/things{query}"), &field, &form).await;
            assert_eq!(answer.status, 201, "{way} {query}{field}{form}: {}", answer.text());
            check(&seen.expect("it was called"), "/v2/things", sent, sent.new);
            // Forwarded, with the client's credential of that very service.
            let (answer, seen) = gateway.post(&format!("/v1/notes{query}"), &field, &form).await;
            assert_eq!(answer.status, 201, "{way} {query}{field}{form}: {}", answer.text());
            check(&seen.expect("it was called"), "/v1/notes", sent, OLD);
        }
        // One of each kind, because storage and display do not depend on the scheme.
        if ["{basic: both}", "{query: key}"].contains(&way) {
            gateway.stopped_without_a_word_of(&[TOKEN, PAIR, OLD, sent.new], 12).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_carries_no_credential_of_ours_is_forwarded_byte_for_byte() {
    let v1 = format!("{{read: {READS}, send: {{form: key}}}}");
    let gateway = Gateway::start(&v1, "{read: [x-key], send: x-key, scheme: none}", NEW).await;
    let large = format!("title={}&token={PLAIN}", "a".repeat(100_000));
    let stranger = "token=token-of-nobody&title=a%20b+c";
    for (target, field, form) in [
        (format!("/v1/notes?b=1&api_key={PLAIN}&a=%2f"), String::new(), "title=a".to_owned()),
        ("/v1/notes".to_owned(), basic(&format!("{PLAIN}:")), "title=a&&=".to_owned()),
        ("/v1/notes".to_owned(), basic(&format!(":{PLAIN}")), String::new()),
        ("/v1/notes".to_owned(), String::new(), format!("to%6ben={PLAIN}&title=a%20b+c")),
        // An unknown token, which the client's own service may know.
        ("/v1/notes".to_owned(), String::new(), stranger.to_owned()),
        // A form that is too large is not searched for a token, and is forwarded unchanged.
        ("/v1/notes".to_owned(), String::new(), large.clone()),
        ("/v1/unheard-of?api_key=x".to_owned(), String::new(), stranger.to_owned()),
    ] {
        let (answer, seen) = gateway.post(&target, &field, &form).await;
        assert_eq!(answer.status, 201, "{target}: {}", answer.text());
        let seen = seen.expect("it was called");
        assert_eq!(seen.line(), format!("POST {target} HTTP/1.1"));
        assert!(seen.body == form.as_bytes(), "{target}: {} bytes of {}", seen.body.len(), form.len());
        assert_eq!(seen.values("authorization").len(), usize::from(!field.is_empty()));
    }
    // The same in chunks, without a known length.
    let head = "POST /v1/notes HTTP/1.1\r\nhost: g\r\ncontent-type: application/x-www-form-urlencoded\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    let before = gateway.service.seen().len();
    let chunks = format!("{head}5\r\ntitle\r\n{:x}\r\n{}\r\n0\r\n\r\n", large.len() - 5, &large[5..]);
    assert_eq!(exchange(gateway.address, chunks).await.expect("an answer").status, 201);
    let body = String::from_utf8(gateway.service.seen()[before].body.clone()).expect("it is ASCII");
    // Each line of data follows one with its length.
    let data: String = body.split("\r\n").skip(1).step_by(2).collect();
    assert!(data == large, "{} bytes of {}", data.len(), large.len());
    // A translated request needs exactly one token, and a known one.
    for (status, query, field, form) in [
        (401, "", "", "title=a"),
        (401, "", "", stranger),
        (401, "", "", large.as_str()),
        (401, "?api_key=", "", "title=a&token=token-of-acme"),
        (401, "?api_key=token-of-acme", "x-api-key: other-token\r\n", "title=a"),
        (400, "?api_key=token-of-acme&api_key=other-token", "", "title=a"),
        (400, "", "", "title=a&token=token-of-acme&token=other-token"),
        (201, "?api_key=token-of-acme&api_key=token-of-acme", "", "title=a"),
    ] {
        let (answer, _) = gateway.post(&format!("/v1/things{query}"), field, form).await;
        assert_eq!(answer.status, status, "{query} {field} {form:.60}: {}", answer.text());
        if status == 401 {
            assert_eq!(answer.value("www-authenticate"), "ApiKey");
        }
    }
    // A known token may not be carried to a service by a form that it cannot be sent in.
    let request = format!(
        "POST /v1/notes HTTP/1.1\r\nhost: g\r\nx-api-key: {TOKEN}\r\ncontent-type: text/plain\r\ncontent-length: 1\r\nconnection: close\r\n\r\na"
    );
    let before = gateway.service.seen().len();
    assert_eq!(exchange(gateway.address, request).await.expect("an answer").status, 503);
    assert_eq!(gateway.service.seen().len(), before);
    gateway.stopped_without_a_word_of(&[TOKEN, PAIR, PLAIN, OLD, NEW, "token-of-nobody"], 8).await;
}

impl Gateway {
    /// A client sends its tokens in all places while a capture runs; then all stored and displayed
    /// data is searched.
    async fn stopped_without_a_word_of(self, secrets: &[&str], requests: usize) {
        let archive = self.folder.path().join("traffic.har").display().to_string();
        let at = format!("http://{}", self.admin);
        let capturing = Program::start(
            &["capture", "--admin", &at, "--token", "env:ADMIN", "--out", &archive],
            &[("ADMIN", ADMIN)],
        );
        let mut log = self.program.stderr_until("a capture of traffic begins");
        for secret in secrets {
            for target in [
                format!("/v1/things?api_key={secret}"),
                format!("/v1/notes?api_key={secret}&x={secret}"),
                format!("/v1/{secret}/x?{secret}"),
                format!("/{secret}"),
            ] {
                self.post(&target, "", "title=a").await;
            }
            self.post("/v1/things", &format!("x-api-key: {secret}\r\n"), "title=a").await;
            self.post("/v1/things", &basic(secret), "title=a").await;
            self.post("/v1/things", "", &format!("title=a&token={secret}")).await;
            self.post("/v1/notes", "", &format!("title=a&token={secret}")).await;
        }
        capturing.signal("INT");
        let (status, said) = tokio::task::spawn_blocking(|| capturing.ended()).await.expect("it ends");
        assert!(status.success(), "{said}");
        let mut sinks: Vec<(String, String)> = Vec::new();
        for address in
            ["/metrics", "/api/unknown", "/api/clients", "/api/config", "/api/operations", "/api/pack"]
        {
            sinks.push((address.to_owned(), self.shown(address).await));
        }
        let har = std::fs::read_to_string(&archive).expect("an archive");
        assert!(har.contains("/v1/things") && har.contains("***"), "{har}");
        sinks.push(("the archive".to_owned(), har));
        let program = self.program;
        program.signal("INT");
        let (_, rest) = tokio::task::spawn_blocking(|| program.ended()).await.expect("it ends");
        log.push_str(&rest);
        assert!(log.matches("path=/v1/").count() >= requests, "the requests are logged: {log}");
        sinks.push(("log".to_owned(), log));
        for secret in secrets {
            let words = [secret, secret.split(':').next_back().unwrap_or_default()];
            let coded = [
                STANDARD.encode(secret),
                STANDARD.encode(format!("{secret}:")),
                STANDARD.encode(format!(":{secret}")),
            ];
            let all = words.iter().map(|word| (*word).to_owned()).chain(coded);
            for word in all {
                for (name, content) in &sinks {
                    if let Some(at) = content.find(&word) {
                        panic!(
                            "{word} in {name}: …{}…",
                            content.get(at.saturating_sub(200)..at + 80).unwrap_or(content)
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn what_a_pack_says_wrongly_of_its_credentials_is_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let right = "{read: [x-key], send: x-key, scheme: none}";
    let reading = "  /plain:\n    get: {responses: {204: {description: done}}}\n";
    for (at, (v1, v2, more, said)) in [
        ("{read: [x-key], send: x-key}", right, "", "how the token stands in `x-key` is not said"),
        (
            "{read: [{basic: name}], send: {basic: user}}",
            right,
            "",
            "`name` is not one of the words possible here",
        ),
        ("{read: [{scheme: Bearer}], send: {basic: user}}", right, "", "a place of a token is one of"),
        (
            "{read: [{header: x-key, query: key}], send: {basic: user}}",
            right,
            "",
            "a place of a token is one of",
        ),
        ("{read: [{query: ''}], send: {basic: user}}", right, "", "a place of a token is one of"),
        (
            "{read: [x-key], send: [x-key, {basic: user}], scheme: none}",
            right,
            "",
            "a side is sent its token in one way, and `authorization` is a second one",
        ),
        (
            "{read: [x-key], send: [{query: key}, {form: key2}], scheme: none}",
            right,
            "",
            "a side is sent its token in one way, and `key2` is a second one",
        ),
        (
            "{read: [{header: x-key, scheme: 'a b'}], send: {basic: user}}",
            right,
            "",
            "`a b` is not an authentication scheme",
        ),
        (
            right,
            "{read: [x-key], send: {form: key}, scheme: none}",
            reading,
            "`GET /plain` has no form that the token of `v2` could be sent in",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = folder.path().join(at.to_string());
        let pack = pack(&folder, v1, v2, more);
        if !more.is_empty() {
            // An operation that exists on both sides but cannot be called would be refused.
            let route = "mapping: 1\nroutes:\n  - pair: {v1: GET /plain, v2: GET /plain, front: v1}\n";
            std::fs::write(Path::new(&pack).join("plain.map.yaml"), route).expect("it is written");
        }
        let compiled = compile(&PackSource::from_dir(Path::new(&pack)).expect("it can be read"));
        let found: Vec<&str> =
            compiled.findings.in_order().into_iter().map(|finding| finding.message.as_str()).collect();
        assert!(found.iter().any(|message| message.contains(said)), "{v1} {v2}: {found:?}");
        assert_eq!(found.len(), 1, "{v1} {v2}: {found:?}");
    }
    // Without an operation with a form, no form is parsed.
    let bare = pack(&folder.path().join("bare"), "{read: [{form: token}], send: {basic: user}}", right, "");
    for side in ["v1", "v2"] {
        let file = Path::new(&bare).join(format!("contracts/{side}.yaml"));
        let text = std::fs::read_to_string(&file).expect("it was written");
        std::fs::write(&file, text.replace("x-www-form-urlencoded", "json")).expect("it is written");
    }
    let compiled = compile(&PackSource::from_dir(Path::new(&bare)).expect("it can be read"));
    let found: Vec<&str> =
        compiled.findings.in_order().into_iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(found, ["no operation of `v1` takes a form, so `token` is never read"]);
}
