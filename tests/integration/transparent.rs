//! A gateway in front of the old service changes only the answers of its own: a table of client
//! requests, with the old service's answer directly and through the gateway, in each phase, and
//! after the removal of that service.
//!
//! Both exchanges are compared byte for byte but for the fields named in [`OURS`], and for the
//! framing of bodies, which is each hop's own: bodies are compared as they are without it.

use crate::support::gateway::{Gateway, Setup, TOKEN};
use crate::support::peers::Wire;
use crate::support::raw::{Act, Answer, Client, Seen, Upstream};
use crate::support::serving::Serving;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;
use switchback_gateway::proxy::forwarding::{ForwardedFields, Forwarding};
use switchback_gateway::proxy::limits::{BodyLimits, Limits};
use switchback_gateway::proxy::program::UnknownClientPolicy;
use switchback_gateway::server::{IpNet, ServerOptions};
use switchback_gateway::shadow::{Phase, Share};
use switchback_gateway::tunnel::TunnelLimits;

/// Fields that belong to one hop, or that the gateway adds in its own name (RFC 9110, section 7.6):
/// the authority that is connected to, the signature, the trace, the name of the request, the date
/// that an answer without one gets, and the expectation, which the gateway meets.
const OURS: [&str; 11] = [
    "expect",
    "host",
    "via",
    "traceparent",
    "connection",
    "transfer-encoding",
    "content-length",
    "keep-alive",
    "te",
    "date",
    "x-request-id",
];

/// The answering component.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    /// The old service, without any change.
    Own,
    /// The gateway, from the new service.
    Plan,
    /// The gateway itself, with this status.
    Gateway(u16),
}
use By::{Gateway as Status, Own, Plan};

/// One thing that a client does.
struct Row {
    name: &'static str,
    /// Method and path below the front.
    line: &'static str,
    version: &'static str,
    /// Each with its line end.
    fields: String,
    /// With its framing.
    body: Vec<u8>,
    /// The old service's answer to it.
    says: Act,
    /// The answering component while the operation is translated, and after the removal of the old
    /// service. In `legacy` and `shadow` it is always the old service.
    translated: By,
    sunset: By,
}

impl Row {
    fn new(name: &'static str, line: &'static str, translated: By, sunset: By) -> Row {
        let says = reply("200 OK", "content-type: text/plain\r\ncontent-length: 4\r\n", b"said");
        let fields = format!("x-own: Bearer {TOKEN}\r\n");
        Row { name, line, version: "1.1", fields, body: Vec::new(), says, translated, sunset }
    }

    /// Without the token of a client, with these fields alone.
    fn of_stranger(mut self, fields: &str) -> Row {
        self.fields = fields.to_owned();
        self
    }

    fn with(mut self, fields: &str) -> Row {
        self.fields.push_str(fields);
        self
    }

    fn sends(mut self, body: impl AsRef<[u8]>) -> Row {
        self.fields.push_str(&format!("content-length: {}\r\n", body.as_ref().len()));
        self.body = body.as_ref().to_vec();
        self
    }

    fn sends_chunks(mut self, chunks: &str) -> Row {
        self.fields.push_str("transfer-encoding: chunked\r\n");
        self.body = chunks.as_bytes().to_vec();
        self
    }

    fn hears(mut self, status: &str, fields: &str, body: impl AsRef<[u8]>) -> Row {
        self.says = reply(status, fields, body.as_ref());
        self
    }

    /// The bytes of the request, with the row's number, by which the old service selects its
    /// answer.
    fn request(&self, number: usize, prefix: &str) -> Vec<u8> {
        let (method, path) = self.line.split_once(' ').expect("a method and a path");
        let (version, fields) = (self.version, &self.fields);
        let head = format!(
            "{method} {prefix}{path} HTTP/{version}\r\nhost: a.test\r\nx-row: {number}\r\n{fields}\r\n"
        );
        [head.as_bytes(), &self.body].concat()
    }
}

fn reply(status: &str, fields: &str, body: &[u8]) -> Act {
    Act::Reply([format!("HTTP/1.1 {status}\r\n{fields}\r\n").as_bytes(), body].concat())
}

fn rows() -> Vec<Row> {
    let item = "content-type: application/json\r\n";
    let form = "content-type: multipart/form-data; boundary=b\r\n";
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let stranger = "x-own: Bearer of-the-old-service\r\n";
    let (known, unknown) = ("GET /things/a", "GET /never/heard");
    let closing = |status: &str, fields: &str, body: &str| {
        Act::ReplyAndClose(format!("HTTP/1.1 {status}\r\n{fields}\r\n{body}").into_bytes())
    };
    let mut rows = vec![
        // Tokens.
        Row::new("a known client, a known operation", known, Plan, Plan),
        Row::new("a token that nobody enrolled", known, Status(401), Status(401)).of_stranger(stranger),
        Row::new("no token at all", known, Status(401), Status(401)).of_stranger(""),
        Row::new("credentials of another kind", known, Status(401), Status(401))
            .of_stranger("authorization: Basic b2xkOnNlcnZpY2U=\r\n"),
        Row::new("two tokens of which none is ours", known, Status(400), Status(400))
            .of_stranger("x-own: Bearer one-of-theirs\r\nx-own: Bearer two-of-theirs\r\n"),
        Row::new("an unknown path and an unknown token", unknown, Own, Status(404)).of_stranger(stranger),
        Row::new("a session by cookie", "GET /login", Own, Status(404))
            .of_stranger("cookie: a=1; b=\"2\"\r\ncookie: c=3\r\n")
            .hears("200 OK", "set-cookie: a=1; Path=/\r\nset-cookie: b=2; HttpOnly\r\ncontent-length: 0\r\n", ""),
        Row::new("the old service refuses the token", unknown, Own, Status(404)).hears(
            "401 Unauthorized",
            "www-authenticate: Token realm=\"old\"\r\ncontent-length: 2\r\n",
            "no",
        ),
        // Paths.
        Row::new("an unknown path", unknown, Own, Status(404)),
        Row::new("a slash at the end", "GET /things/a/", Own, Status(400)),
        Row::new("several slashes", "GET //things//a", Own, Status(400)),
        Row::new("an escaped slash", "GET /things/a%2Fb", Own, Status(400)),
        Row::new("escapes of what needs none", "GET /n%65ver/%7e?q=%41&&b=%zz&=", Own, Status(404)),
        Row::new("a percent sign that escapes nothing", "GET /things/100%", Own, Status(400)),
        Row::new("dot segments that stay below", "GET /a/../things/./b", Own, Status(400)),
        Row::new("the prefix alone", "GET ", Own, Status(404)),
        Row::new("the root of the front", "GET /", Own, Status(404)),
        Row::new("a query without a name", "GET /?", Own, Status(404)),
        // Methods.
        Row::new("PATCH of what is there", "PATCH /things/a", Own, Status(501)).with(item).sends("{}"),
        Row::new("a preflight of a browser", "OPTIONS /things/a", Own, Status(501))
            .of_stranger(
                "origin: https://app.test\r\naccess-control-request-method: PUT\r\naccess-control-request-headers: x-own\r\n",
            )
            .hears("204 No Content", "access-control-allow-origin: https://app.test\r\nvary: origin\r\n", ""),
        Row::new("a method of the service's own", "PURGE /things/a", Own, Status(501)),
        Row::new("a method in small letters", "get /things/a", Own, Status(501)),
        Row::new("HEAD, whose answer says a length", "HEAD /never/heard", Own, Status(404))
            .hears("200 OK", "content-length: 12345\r\netag: \"x\"\r\n", ""),
        Row::new("DELETE with a body", "DELETE /things/a", Own, Status(501)).sends("because"),
        // Bodies.
        Row::new("a body of a type that the contract has not", "POST /things", Own, Status(400))
            .with(form)
            .sends("--b\r\ncontent-disposition: form-data; name=\"f\"\r\n\r\n\0\u{1}\r\n--b--\r\n"),
        Row::new("a body in chunks", "POST /upload", Own, Status(404))
            .sends_chunks("3;x=y\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"),
        Row::new("a body that is larger than any that is read here", "PUT /upload", Own, Status(404))
            .sends(vec![b'x'; 200_000]),
        Row::new("a coded body", "POST /upload", Own, Status(404)).with("content-encoding: gzip\r\n").sends(gzip),
        Row::new("a client that waits to be told to go on", "POST /upload", Own, Status(404))
            .with("expect: 100-continue\r\n")
            .sends("abc"),
        Row::new("a refused operation", "GET /relics/a", Own, Status(501)),
        Row::new("a refused operation of a stranger", "GET /relics/a", Own, Status(401)).of_stranger(stranger),
        // Answers.
        Row::new("a status that few know", unknown, Own, Status(404)).hears("599 Odd Reason", "content-length: 0\r\n", ""),
        Row::new("a page instead of data", unknown, Own, Status(404))
            .hears("404 Not Found", "content-type: text/html\r\ncontent-length: 13\r\n", "<h1>no</h1>\r\n"),
        Row::new("a part of a file", unknown, Own, Status(404))
            .with("range: bytes=2-3\r\nif-range: \"x\"\r\n")
            .hears("206 Partial Content", "content-range: bytes 2-3/9\r\naccept-ranges: bytes\r\ncontent-length: 2\r\n", "cd"),
        Row::new("what has not changed", unknown, Own, Status(404))
            .with("if-none-match: W/\"x\", \"y\"\r\nif-modified-since: Mon, 02 Jan 2023 00:00:00 GMT\r\n")
            .hears("304 Not Modified", "etag: W/\"x\"\r\ncache-control: public, max-age=60\r\n", ""),
        Row::new("a redirection", unknown, Own, Status(404))
            .hears("302 Found", "location: /elsewhere?a=b\r\ncontent-length: 0\r\n", ""),
        Row::new("a coded answer", unknown, Own, Status(404))
            .with("accept-encoding: br;q=0.5, gzip\r\n")
            .hears("200 OK", "content-encoding: gzip\r\nvary: accept-encoding\r\ncontent-length: 20\r\n", gzip),
        Row::new("an answer in chunks", unknown, Own, Status(404))
            .hears("200 OK", "transfer-encoding: chunked\r\n", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
        Row::new("a failure of the service", unknown, Own, Status(404))
            .hears("503 Service Unavailable", "retry-after: 7\r\nserver: old/1.0\r\ncontent-length: 0\r\n", ""),
        Row::new("early hints before the answer", unknown, Own, Status(404)).hears(
            "103 Early Hints",
            "link: </a.css>; rel=preload\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n",
            "ok",
        ),
        Row::new("trailers after the answer", unknown, Own, Status(404)).with("te: trailers\r\nconnection: te\r\n").hears(
            "200 OK",
            "transfer-encoding: chunked\r\ntrailer: x-sum\r\n",
            "3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n",
        ),
        Row::new("trailers after the request", "POST /upload", Own, Status(404))
            .with("trailer: x-sum\r\n")
            .sends_chunks("3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n"),
        Row::new("an offer of another protocol that is not taken", unknown, Own, Status(404))
            .with(WEBSOCKET)
            .hears("426 Upgrade Required", "sec-websocket-version: 13\r\ncontent-length: 0\r\n", ""),
        // Fields.
        Row::new("fields that others forge", unknown, Own, Status(404))
            .with("x-forwarded-for: 1.2.3.4\r\nforwarded: for=1.2.3.4\r\nx-real-ip: 1.2.3.4\r\nx_tenant: 7\r\n")
            .hears("200 OK", "x-powered-by: old\r\ncontent-length: 0\r\n", ""),
        Row::new("one field in several lines", unknown, Own, Status(404))
            .with("accept: text/html\r\naccept: */*;q=0.1\r\nx-empty:\r\ndate: Mon, 02 Jan 2023 00:00:00 GMT\r\n")
            .hears("200 OK", "link: <a>\r\nlink: <b>\r\ncontent-length: 0\r\n", ""),
        // Requests that must never pass.
        Row::new("a path that climbs out", "GET /a/..%2f../%2e./secret", Status(400), Status(400)),
        Row::new("a token of ours that was meant for elsewhere", known, Status(401), Status(401))
            .of_stranger("x-own: Basic old-token-of-acme\r\n"),
    ];
    let mut old = Row::new("HTTP/1.0", unknown, Own, Status(404));
    old.version = "1.0";
    rows.push(old);
    let mut until_closed = Row::new("an answer that ends with its connection", unknown, Own, Status(404));
    until_closed.says = closing("200 OK", "content-type: text/plain\r\n", "to the end");
    rows.push(until_closed);
    rows
}

/// A client's offer to go on in another protocol.
const WEBSOCKET: &str = "connection: keep-alive, Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                         sec-websocket-version: 13\r\norigin: https://app.test\r\n";

/// The compared parts of a message: its first line, its fields in their order, its body.
#[derive(Debug, PartialEq)]
struct Message {
    first: String,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    more: Vec<String>,
}

impl Message {
    fn new(head: &str, body: Vec<u8>, more: Vec<String>) -> Message {
        let mut lines = head.lines();
        let first = lines.next().unwrap_or_default().to_owned();
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        let mut fields: Vec<_> = fields.filter(|(name, _)| !OURS.contains(&name.as_str())).collect();
        // Lines of one field must keep their order; that of fields with other names has no meaning (RFC
        // 9110, section 5.3).
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        Message { first, fields, body, more }
    }

    fn of_request(seen: &Seen, base: &str) -> Message {
        let chunked = seen.values("transfer-encoding").iter().any(|coding| coding.contains("chunked"));
        let (body, trailers) =
            if chunked { unchunked(&seen.body) } else { (seen.body.clone(), String::new()) };
        let mut message = Message::new(&seen.head, body, vec![trailers]);
        let version = message.first.rfind(' ').expect("a version");
        message.first.truncate(version);
        message.first = message.first.replacen(base, "", 1);
        message
    }

    fn of_answer(answer: &Answer, is_head: bool) -> Message {
        assert!(answer.is_complete || answer.value("content-length").is_empty());
        let interim =
            answer.interim.iter().map(|head| format!("{:?}", Message::new(head, Vec::new(), Vec::new())));
        let more = interim.chain([answer.trailers.to_ascii_lowercase()]).collect();
        let mut message = Message::new(&answer.head, answer.body.clone(), more);
        // The version is the hop's (RFC 9110, section 2.5).
        message.first.drain(..message.first.find(' ').expect("a status"));
        if is_head {
            // There is no body to tell how long it would be.
            message.fields.push(("content-length".into(), answer.value("content-length").into()));
        }
        message
    }
}

/// A body without its chunks, and its trailers.
fn unchunked(mut rest: &[u8]) -> (Vec<u8>, String) {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|pair| pair == b"\r\n").expect("a line");
        let line = std::str::from_utf8(&rest[..end]).expect("a size");
        let size = line.split(';').next().expect("split gives one");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return (body, String::from_utf8_lossy(&rest[end + 2..]).to_ascii_lowercase());
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
}

async fn told(address: SocketAddr, request: &[u8]) -> Answer {
    let mut client = Client::connect(address).await;
    client.send(request).await;
    let is_head = request.starts_with(b"HEAD ");
    let answer = if is_head { client.answer_to_head().await } else { client.answer().await };
    answer.unwrap_or_else(|| {
        panic!("no answer to {}", String::from_utf8_lossy(&request[..request.len().min(200)]))
    })
}

/// The old service: it answers each row as the row defines.
async fn old_service() -> Upstream {
    let says: Vec<Act> = rows().into_iter().map(|row| row.says).collect();
    Upstream::answering(move |_, seen| {
        let number: usize = seen.values("x-row")[0].parse().expect("a number");
        says[number].clone()
    })
    .await
}

async fn check(setup: Setup, by: impl Fn(&Row) -> By) {
    let new = Upstream::start(vec![Act::json(200, r#"{"title":"a"}"#)]).await;
    let (old, direct) = (old_service().await, old_service().await);
    let lives = setup.old.is_some();
    let setup = Setup { old: lives.then_some(old.address), ..setup };
    // Less than the largest body of the table.
    let limits = Limits {
        bodies: BodyLimits { request_bytes_max: 100_000, ..BodyLimits::default() },
        ..Limits::default()
    };
    let setup = Setup { limits, ..setup };
    let gateway = Gateway::start(new.address, setup).await;
    let mut wrong = Vec::new();
    for (number, row) in rows().iter().enumerate() {
        let (asked_old, asked_new) = (old.seen().len(), new.seen().len());
        let answer = told(gateway.address, &row.request(number, "/old")).await;
        let (asked_old, asked_new) = (old.seen().len() - asked_old, new.seen().len() - asked_new);
        let is_head = row.line.starts_with("HEAD ");
        let is_right = match by(row) {
            Own if (asked_old, asked_new) == (1, 0) => {
                let expected = told(direct.address, &row.request(number, "/base")).await;
                let sent = direct.seen().pop().expect("it was asked");
                let pairs = [
                    (
                        format!("{:?}", Message::of_answer(&expected, is_head)),
                        format!("{:?}", Message::of_answer(&answer, is_head)),
                    ),
                    (
                        format!("{:?}", Message::of_request(&sent, "/base")),
                        format!(
                            "{:?}",
                            Message::of_request(&old.seen().pop().expect("it was asked"), "/base")
                        ),
                    ),
                ];
                let different = pairs.iter().filter(|(direct, through)| direct != through);
                wrong.extend(different.map(|(direct, through)| {
                    let shown = |text: &str| text.chars().take(700).collect::<String>();
                    format!("{}:\n  directly {}\n  through  {}", row.name, shown(direct), shown(through))
                }));
                true
            }
            Plan => (answer.status, asked_old, asked_new) == (200, 0, 1),
            Status(status) => (answer.status, asked_old, asked_new) == (status, 0, 0),
            Own => false,
        };
        if !is_right {
            let what =
                format!("{:?} by {asked_old} old and {asked_new} new: {}", answer.status, answer.text());
            wrong.push(format!("{}: {:?} expected, {what}", row.name, by(row)));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// A row that no phase lets pass.
fn passes(row: &Row) -> bool {
    row.translated != row.sunset || matches!(row.translated, Own | Plan) || !is_barred(row)
}

fn is_barred(row: &Row) -> bool {
    matches!(row.name, "a path that climbs out" | "a token of ours that was meant for elsewhere")
}

const SOMEWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

#[tokio::test]
async fn in_legacy_nothing_is_changed() {
    let setup = Setup { old: Some(SOMEWHERE), phase: Phase::Legacy, ..Setup::default() };
    check(setup, |row| if passes(row) { Own } else { row.translated }).await;
}

#[tokio::test]
async fn in_shadow_nothing_is_changed() {
    let setup = Setup { old: Some(SOMEWHERE), phase: Phase::Shadow, ..Setup::default() };
    check(setup, |row| if passes(row) { Own } else { row.translated }).await;
}

#[tokio::test]
async fn where_operations_are_translated_all_else_is_as_it_was() {
    let phase = Phase::Translated { check: Share::NONE };
    check(Setup { old: Some(SOMEWHERE), phase, ..Setup::default() }, |row| row.translated).await;
}

#[tokio::test]
async fn strangers_can_be_left_to_the_old_service_where_others_are_translated() {
    let setup = Setup { old: Some(SOMEWHERE), unknown: UnknownClientPolicy::ForwardAll, ..Setup::default() };
    let by = |row: &Row| match row.translated {
        Status(400 | 401) if !is_barred(row) => Own,
        by => by,
    };
    check(setup, by).await;
}

#[tokio::test]
async fn what_is_unknown_can_be_refused() {
    let setup = Setup { old: Some(SOMEWHERE), unknown: UnknownClientPolicy::Refuse, ..Setup::default() };
    // Requests that the pack refuses are still answered by that service for known clients.
    let by = |row: &Row| match (row.name, row.sunset) {
        ("a refused operation", _) => Own,
        (_, by) => by,
    };
    check(setup, by).await;
}

#[tokio::test]
async fn without_the_old_service_nothing_passes() {
    check(Setup::default(), |row| row.sunset).await;
}

/// The old service may heed such a parameter, and a plan drops it: the operator hears of it in time.
#[tokio::test]
async fn a_parameter_that_no_contract_has_is_listed_whoever_answers() {
    for (phase, passed) in [(Phase::Legacy, 4), (Phase::default(), 0)] {
        let new = Upstream::start(vec![Act::json(200, "{}")]).await;
        let old = Upstream::start(vec![reply("200 OK", "content-length: 0\r\n", b"")]).await;
        let setup = Setup { old: Some(old.address), phase, ..Setup::default() };
        let gateway = Gateway::start(new.address, setup).await;
        let ask = |target: &str| {
            format!("GET {target} HTTP/1.1\r\nhost: a\r\nx-own: Bearer {TOKEN}\r\n\r\n").into_bytes()
        };
        for target in ["?sort=-name&sk_live_4711=", "?sort=x", "", "?quaggamoon", "?%73ort%5B%5D=1"] {
            told(gateway.address, &ask(&format!("/old/things/a{target}"))).await;
        }
        let listed = gateway.unknown.newest();
        let shown: Vec<_> =
            listed.iter().map(|call| (call.path.as_str(), call.unknown, call.count)).collect();
        assert_eq!(
            shown,
            [
                ("/old/things/{name}?sort[]", "parameter", 1),
                ("/old/things/{name}?*", "parameter", 2),
                ("/old/things/{name}?sort", "parameter", 2),
            ]
        );
        assert!(new.seen().iter().all(|seen| !seen.line().contains('?')), "a plan passes none of them");
        assert_eq!(old.seen().iter().filter(|seen| seen.line().contains('?')).count(), passed);
    }
}

#[tokio::test]
async fn what_nobody_knows_is_listed_for_the_operator_without_what_clients_write_into_it() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let old = Upstream::start(vec![reply("200 OK", "content-length: 0\r\n", b"")]).await;
    let setup = Setup { old: Some(old.address), phase: Phase::Legacy, ..Setup::default() };
    let gateway = Gateway::start(new.address, setup).await;
    let asked = |line: &str, token: &str| {
        format!("{line} HTTP/1.1\r\nhost: a\r\nx-own: Bearer {token}\r\n\r\n").into_bytes()
    };
    told(gateway.address, &asked("GET /old/things/a", TOKEN)).await;
    for number in 0..3 {
        told(gateway.address, &asked(&format!("GET /old/secret-{number}/b"), TOKEN)).await;
    }
    told(gateway.address, &asked("PURGE /old/things/a?key=secret-9", "secret-token")).await;
    told(gateway.address, &asked("GET /old/things/a", "secret-token")).await;
    let listed = gateway.unknown.newest();
    let shown: Vec<_> = listed
        .iter()
        .map(|call| (call.method, call.path.as_str(), call.client.as_str(), call.unknown, call.count))
        .collect();
    assert_eq!(
        shown,
        [
            ("GET", "/old/things/{name}", "", "client", 1),
            ("other", "/old/things/*", "", "method", 1),
            ("GET", "/old/*/*", "acme", "path", 3),
        ]
    );
    assert!(!format!("{listed:?}").contains("secret"));
    // A collection that the old service answers is named; the ids below it are masked.
    told(gateway.address, &asked("GET /old/reports/daily-7", TOKEN)).await;
    told(gateway.address, &asked("GET /old/webhooks/secret-1", TOKEN)).await;
    let newest: Vec<String> = gateway.unknown.newest().into_iter().take(2).map(|call| call.path).collect();
    assert_eq!(newest, ["/old/webhooks/*", "/old/reports/*"]);
    told(gateway.address, &asked("GET /old/reports/daily/rows/acme", TOKEN)).await;
    assert_eq!(gateway.unknown.newest()[0].path, "/old/reports/*/rows/*");
    // However many there are, the newest stay.
    let word =
        |number: u8| format!("list{}{}", char::from(b'a' + number / 26), char::from(b'a' + number % 26));
    for number in 0..120 {
        told(gateway.address, &asked(&format!("GET /old/{}", word(number % 60)), TOKEN)).await;
    }
    let newest = gateway.unknown.newest();
    assert_eq!(newest.len(), 50);
    // Each was called twice, and was off the list in between.
    assert!(newest.iter().all(|call| call.count == 1 && call.first == call.last), "{newest:?}");
    let paths: Vec<String> = newest.iter().map(|call| call.path.clone()).collect();
    let expected: Vec<String> = (10..60).rev().map(|number| format!("/old/{}", word(number))).collect();
    assert_eq!(paths, expected, "newest first");
    told(gateway.address, &asked(&format!("GET /old/{}", word(10)), TOKEN)).await;
    let now = gateway.unknown.newest();
    assert_eq!((now.len(), &now[0].path, now[0].count), (50, &paths[49], 2));
}

#[tokio::test]
async fn unknown_calls_are_listed_only_where_they_are_forwarded() {
    for (unknown, count) in [(UnknownClientPolicy::Refuse, 0), (UnknownClientPolicy::default(), 2)] {
        let old = Upstream::start(vec![reply("200 OK", "content-length: 0\r\n", b"")]).await;
        let setup = Setup { old: Some(old.address), phase: Phase::Legacy, unknown, ..Setup::default() };
        let gateway = Gateway::start(SOMEWHERE, setup).await;
        for (path, token) in [("never/heard", TOKEN), ("things/a", "a-token-of-nobody")] {
            let request = format!("GET /old/{path} HTTP/1.1\r\nhost: a\r\nx-own: Bearer {token}\r\n\r\n");
            told(gateway.address, request.as_bytes()).await;
        }
        let forwarded = old.seen().len();
        assert_eq!((gateway.unknown.newest().len(), forwarded), (count, count), "{unknown:?}");
    }
}

/// An old service that upgrades to another protocol on request, and a client that has requested it.
async fn switching(limits: TunnelLimits) -> (Upstream, Gateway, Client) {
    let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: x\r\n\r\n";
    let old = Upstream::start(vec![Act::Switch(head.into())]).await;
    let setup = Setup {
        old: Some(old.address),
        options: ServerOptions { tunnel: limits, ..ServerOptions::default() },
        ..Setup::default()
    };
    let gateway = Gateway::start(SOMEWHERE, setup).await;
    let mut client = Client::connect(gateway.address).await;
    // With the first bytes of the other protocol at its heels.
    let head =
        format!("GET /old/live?a=b HTTP/1.1\r\nhost: a\r\nx-own: Bearer {TOKEN}\r\n{WEBSOCKET}\r\nearly");
    client.send(head).await;
    (old, gateway, client)
}

#[tokio::test]
async fn a_connection_goes_over_to_another_protocol_and_bytes_pass_both_ways() {
    let (old, gateway, mut client) = switching(TunnelLimits::default()).await;
    let answer = client.answer().await.expect("an answer");
    let fields = ["upgrade", "connection", "sec-websocket-accept"].map(|name| answer.value(name));
    assert_eq!((answer.status, fields), (101, ["websocket", "upgrade", "x"]));
    let seen = old.seen().remove(0);
    assert_eq!(seen.line(), "GET /base/live?a=b HTTP/1.1");
    assert_eq!((seen.values("upgrade"), seen.values("connection")), (vec!["websocket"], vec!["upgrade"]));
    assert_eq!(seen.values("sec-websocket-key"), ["dGhlIHNhbXBsZSBub25jZQ=="]);
    assert_eq!(client.bytes(5).await, b"EARLY");
    for _ in 0..3 {
        client.send(vec![b'a'; 100_000]).await;
        assert_eq!(client.bytes(100_000).await, vec![b'A'; 100_000]);
    }
    // It ends with the client, and so does the request.
    drop(client);
    old.closed(1).await;
    assert_eq!(gateway.stop().await.cut, 0);
}

#[tokio::test]
async fn a_silent_tunnel_ends_and_so_does_one_whose_time_is_over() {
    let (short, long) = (Duration::from_millis(50), Duration::from_secs(3600));
    for (idle, lifetime) in [(short, long), (long, short)] {
        let (_old, _gateway, mut client) = switching(TunnelLimits { idle, lifetime }).await;
        assert_eq!(client.answer().await.expect("an answer").status, 101);
        assert_eq!(client.bytes(5).await, b"EARLY");
        assert!(client.is_closed().await, "{idle:?} {lifetime:?}");
    }
}

/// A protocol without a request is not one that the client supports.
#[tokio::test]
async fn a_service_goes_over_to_no_protocol_but_one_that_it_was_asked_for() {
    for upgrade in ["upgrade: chat\r\n", "upgrade: websocket, chat\r\n", ""] {
        let head = format!("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n{upgrade}\r\n");
        let old = Upstream::start(vec![Act::Switch(head.into())]).await;
        let gateway = Gateway::start(SOMEWHERE, Setup { old: Some(old.address), ..Setup::default() }).await;
        let request = format!("GET /old/live HTTP/1.1\r\nhost: a\r\n{WEBSOCKET}\r\n");
        assert_eq!(told(gateway.address, request.as_bytes()).await.status, 502, "{upgrade}");
    }
}

/// gRPC services refuse a call without it, because their answers end with trailers.
#[tokio::test]
async fn that_trailers_are_wanted_is_said_over_http2_too() {
    for wire in [Wire::Plain, Wire::Tls1, Wire::Tls2] {
        let old = Upstream::over(wire, vec![Act::json(200, "{}")]).await;
        let setup = Setup { old: Some(old.address), wire, ..Setup::default() };
        let gateway = Gateway::start(SOMEWHERE, setup).await;
        let request = "GET /old/x HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: te\r\n\r\n";
        assert_eq!(told(gateway.address, request.as_bytes()).await.status, 200, "{wire:?}");
        let seen = old.seen().remove(0);
        assert_eq!(seen.values("te"), ["trailers"], "{wire:?}");
        let of_connection: &[&str] = if wire == Wire::Tls2 { &[] } else { &["te"] };
        assert_eq!(seen.values("connection"), of_connection, "{wire:?}");
    }
}

#[tokio::test]
async fn no_other_version_of_http_passes_unseen() {
    let old = Upstream::start(vec![reply("200 OK", "content-length: 0\r\n", b"")]).await;
    let gateway = Gateway::start(SOMEWHERE, Setup { old: Some(old.address), ..Setup::default() }).await;
    for protocol in ["h2c", "HTTP/2.0", "TLS/1.2", "websocket, h2c"] {
        let request = format!(
            "GET /old/live HTTP/1.1\r\nhost: a\r\nconnection: upgrade, http2-settings\r\nupgrade: {protocol}\r\n\
             http2-settings: AAMAAABkAAQAAP__\r\n\r\n"
        );
        assert_eq!(told(gateway.address, request.as_bytes()).await.status, 200);
        let seen = old.seen().pop().expect("it was asked");
        assert!(seen.values("upgrade").is_empty() && seen.values("http2-settings").is_empty(), "{protocol}");
    }
}

#[tokio::test]
async fn forwarded_requests_say_of_their_way_what_the_operator_wants() {
    let forged = "x-forwarded-for: 1.2.3.4\r\nx-forwarded-proto: https\r\nx_forwarded_for: 6.6.6.6\r\nx-forwarded-prefix: /evil\r\n";
    let (none, loopback): (&[IpNet], &[IpNet]) = (&[], &["127.0.0.0/8".parse().expect("a network")]);
    let cases = [
        (ForwardedFields::Pass, none, vec!["1.2.3.4"], vec!["https"]),
        (ForwardedFields::Append, none, vec!["127.0.0.1"], vec!["http"]),
        (ForwardedFields::Append, loopback, vec!["1.2.3.4, 127.0.0.1"], vec!["https"]),
        (ForwardedFields::Set, loopback, vec!["127.0.0.1"], vec!["http"]),
        (ForwardedFields::Drop, loopback, vec![], vec![]),
    ];
    for (fields, trusted, to, proto) in cases {
        let old = Upstream::start(vec![reply("200 OK", "content-length: 0\r\n", b"")]).await;
        let setup = Setup {
            old: Some(old.address),
            forwarding: Forwarding { fields, trusted: trusted.into() },
            options: ServerOptions { tells_peer: fields.names_peer(), ..ServerOptions::default() },
            ..Setup::default()
        };
        let gateway = Gateway::start(SOMEWHERE, setup).await;
        let request = format!("GET /old/x HTTP/1.1\r\nhost: a.test\r\n{forged}\r\n");
        assert_eq!(told(gateway.address, request.as_bytes()).await.status, 200);
        let seen = old.seen().remove(0);
        assert_eq!(
            (seen.values("x-forwarded-for"), seen.values("x-forwarded-proto")),
            (to, proto),
            "{fields:?}"
        );
        let passes = fields == ForwardedFields::Pass;
        let is_believed = passes || (fields == ForwardedFields::Append && !trusted.is_empty());
        assert_eq!(seen.values("x_forwarded_for").len(), usize::from(passes), "{fields:?}");
        assert_eq!(seen.values("x-forwarded-prefix").len(), usize::from(is_believed), "{fields:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_asks_the_running_program_what_nobody_knows() {
    let old = Upstream::start(vec![reply("204 No Content", "", b"")]).await;
    let more = "phases: { default: legacy }\nfronts: { /v2: { speaks: v2, unknown: forward } }\n";
    let serving = Serving::configured(old.address, &["v2", "v3"], more).await;
    let request = b"PATCH /v2/never/secret-1?key=secret-2 HTTP/1.1\r\nhost: a\r\nauthorization: Bearer secret-3\r\n\r\n";
    assert_eq!(told(serving.address, request).await.status, 204);
    let seen = old.seen().remove(0);
    assert_eq!(seen.line(), "PATCH /v2/never/secret-1?key=secret-2 HTTP/1.1");
    assert_eq!(seen.values("authorization"), ["Bearer secret-3"]);
    let admin = format!("http://{}", serving.admin);
    let asked = tokio::task::spawn_blocking(move || {
        ["text", "json"].map(|format| {
            let mut program = Command::new(env!("CARGO_BIN_EXE_switchback"));
            let output = program.args(["unknown", "--admin", &admin, "--format", format]).output();
            let output = output.expect("the program runs");
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).expect("text")
        })
    });
    let [text, json] = asked.await.expect("both are asked");
    assert!(text.contains("PATCH   /v2/never/*") && text.contains("(unknown client)"), "{text}");
    let listed: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&listed[0]["path"], &listed[0]["unknown"]), (&"/v2/never/*".into(), &"path".into()));
    assert_eq!((&listed[0]["count"], &listed[0]["side"]), (&1.into(), &"v2".into()));
    let metrics = serving.metrics().await;
    let counted = metrics.lines().find(|line| line.starts_with("switchback_unknown_calls_total{"));
    assert!(
        counted.is_some_and(|line| line.contains("path=\"/v2/never/*\"") && line.ends_with(" 1")),
        "{metrics}"
    );
    for shown in [text, json, metrics] {
        assert!(!shown.contains("secret"), "{shown}");
    }
}
