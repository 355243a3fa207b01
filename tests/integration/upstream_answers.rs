//! Invalid answers: the client's view of an upstream address with a different server, and the
//! messages for the operator. For every wrong answer of any size the client gets an HTTP response.

use crate::support::program::Program;
use crate::support::raw::{Act, Answer, Upstream, answer, exchange};
use crate::support::serving;
use std::path::PathBuf;
use tempfile::TempDir;

const TOKEN: &str = "old-token-of-acme";

/// Writes with unread answers, and one with several calls; the status of each after success.
const WRITES: [(&str, &str, u16); 6] = [
    ("POST /v2/chats/1/messages", r#"{"text":"a"}"#, 201),
    ("POST /v2/chats/1/close", r#"{"sendFeedback":false}"#, 201),
    ("POST /v2/chats/1/tags", r#"{"tags":[1]}"#, 201),
    ("POST /v2/chats/1/reopen", "", 201),
    ("POST /v2/chats/1/flow", r#"{"flowId":1}"#, 200),
    ("POST /v2/agents", r#"{"name":"A","email":"a@e.test"}"#, 201),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_a_page_of_html_answers_was_not_done() {
    let fields = ["content-type: text/html; charset=utf-8\r\n", "content-type: application/json\r\n", ""];
    let pages = fields.map(|fields| Act::Reply(answer(200, fields, "<html>login</html>")));
    let service =
        Upstream::start(pages.iter().flat_map(|page| vec![page.clone(); WRITES.len()]).collect()).await;
    let gateway = Gateway::before(&service, "").await;
    for fields in fields {
        for (line, body, _) in WRITES {
            let got = gateway.ask(line, body).await;
            assert_eq!((got.status, got.value("content-type")), (502, "application/json"), "{line} {fields}");
        }
    }
    assert_eq!(service.seen().len(), WRITES.len() * fields.len(), "no write is made twice");
    let log = gateway.ended();
    for place in ["WARN", "switchback::access"] {
        let causes =
            log.lines().filter(|line| line.contains(place) && line.contains("no answer of the contract"));
        let with_line = causes.filter(|line| line.contains(".map.yaml:"));
        assert_eq!(with_line.count(), WRITES.len() * fields.len(), "{place} in {log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_is_done_where_its_answer_is_json_or_nothing() {
    let answers = [
        ("content-type: application/json\r\n", r#"{"id":1}"#),
        ("content-type: application/vnd.service+json\r\n", r#"{"id":1}"#),
        ("content-type: text/html\r\n", r#"{"id":1}"#),
        ("content-type: text/html\r\n", ""),
        ("content-encoding: gzip\r\ncontent-type: application/json\r\n", ""),
        ("", r#"{"id":1}"#),
    ];
    let acts = answers.map(|(fields, body)| Act::Reply(answer(200, fields, body)));
    let service =
        Upstream::start(acts.iter().flat_map(|act| vec![act.clone(); WRITES.len()]).collect()).await;
    let gateway = Gateway::before(&service, "").await;
    for (fields, body) in answers {
        for (line, sent, status) in WRITES {
            assert_eq!(gateway.ask(line, sent).await.status, status, "{line} {fields}{body}");
        }
    }
}

/// One read, and one write with an unread answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_among_several_calls_is_done_where_its_answer_is_json_or_nothing() {
    let chat = Act::json(200, r#"{"id":1,"situation":"in_chat","agentId":7}"#);
    let html = "content-type: text/html\r\n";
    let gzip = "content-encoding: gzip\r\ncontent-type: application/json\r\n";
    let answers = [(html, "<html>login</html>", 502), (gzip, "", 201), ("", "{}", 201)];
    let acts = answers.map(|(fields, body, _)| vec![chat.clone(), Act::Reply(answer(200, fields, body))]);
    let service = Upstream::start(acts.concat()).await;
    let gateway = Gateway::before(&service, "").await;
    for (fields, _, status) in answers {
        let got = gateway.ask("POST /v2/chats/1/situation", r#"{"situation":"wait_for_chat"}"#).await;
        assert_eq!(got.status, status, "{fields}");
    }
    assert!(gateway.ended().contains("calling PUT /chats/{id}/queue"));
}

/// A value other than the object of the contract: as a reply to a step, it is not used and no write
/// happens; as the answer of a pair, the client does not get it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reading_that_is_not_what_its_contract_promises_is_a_broken_answer() {
    let replies = [(204, ""), (200, ""), (200, "null"), (200, " { } "), (200, "[]"), (206, r#"{"id":1}"#)];
    let service = Upstream::answering(move |at, _| {
        let (status, body) = replies[at % replies.len()];
        Act::json(status, body)
    })
    .await;
    let gateway = Gateway::before(&service, "").await;
    for (line, body) in [
        ("PUT /v2/contacts/1", r#"{"name":"A","email":"a@e.test","phone":"1"}"#),
        ("POST /v2/chats/1/situation", r#"{"situation":"wait_for_chat"}"#),
        ("GET /v2/agents/31", ""),
        ("DELETE /v2/contacts/1", ""),
    ] {
        for (status, reply) in replies {
            let got = gateway.ask(line, body).await;
            assert_eq!(got.status, 502, "{line}: {status} {reply:?}: {}", got.text());
        }
    }
    let seen = service.seen();
    assert_eq!(seen.len(), 4 * replies.len(), "one reading for each");
    assert!(seen.iter().all(|call| call.line().starts_with("GET ")), "nothing is written");
    let log = gateway.ended();
    assert!(log.contains("an object without any of the members that its contract requires"), "{log}");
}

/// A read without a required member: a write that uses it would erase data of the service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_is_not_made_of_a_reading_that_lacks_a_member_of_it() {
    let partial = r#"{"id":1,"name":"A"}"#;
    let service = Upstream::answering(move |_, _| Act::json(200, partial)).await;
    let gateway = Gateway::before(&service, "").await;
    let got = gateway.ask("PUT /v2/contacts/1", r#"{"name":"B"}"#).await;
    assert_eq!(got.status, 502, "{}", got.text());
    let got = gateway.ask("POST /v2/chats/1/situation", r#"{"situation":"wait_for_chat"}"#).await;
    assert_eq!(got.status, 502, "{}", got.text());
    // No write depends on these: clients get the available members.
    for line in ["GET /v2/contacts/1", "GET /v2/agents/31"] {
        assert_eq!(gateway.ask(line, "").await.status, 200, "{line}");
    }
    let seen = service.seen();
    assert!(seen.iter().all(|call| call.line().starts_with("GET ")), "nothing is written");
    let log = gateway.ended();
    assert!(log.contains("an object without `email`, which its contract requires"), "{log}");
}

/// A text beyond the bound of parsed values, as a part of a write: the write passes it on
/// completely.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_is_made_of_a_reading_keeps_its_long_text() {
    let contact = |long: &str| {
        format!(
            r#"{{"id":1,"name":"A","email":"a@e.test","phone":null,"mobile":null,"address":null,"city":null,"district":null,"state":null,"obs":"{long}"}}"#
        )
    };
    let long = "n".repeat(1_200_000);
    let answered = contact(&long);
    let service = Upstream::answering(move |_, seen| match seen.line().starts_with("GET") {
        true => Act::json(200, &answered),
        false => Act::json(200, ""),
    })
    .await;
    let gateway = Gateway::before(&service, "limits: { scalar_bytes: 2MiB }\n").await;
    let got = gateway.ask("PUT /v2/contacts/1", r#"{"name":"B"}"#).await;
    assert_eq!(got.status, 204, "{}", got.text());
    let put = service.seen().remove(1);
    let body = String::from_utf8_lossy(&put.body);
    assert!(put.line().starts_with("PUT ") && body.contains(&long), "{} bytes", body.len());
}

/// `null` is not an object: a route of several calls rejects it, and makes no call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_null_is_refused_before_the_first_call() {
    let service = Upstream::start(vec![Act::json(200, "{}")]).await;
    let gateway = Gateway::before(&service, "").await;
    for line in ["PUT /v2/contacts/1", "POST /v2/contacts", "POST /v2/chats/1/situation", "PUT /v2/agents/31"]
    {
        let got = gateway.ask(line, "null").await;
        assert_eq!(got.status, 400, "{line}: {}", got.text());
    }
    assert_eq!(service.seen().len(), 0, "nothing was called");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_is_a_broken_answer_and_the_operator_reads_where_to() {
    let moved = "location: https://user:secret@api.test:8443/v3/agents?token=secret\r\n";
    let service = Upstream::start(vec![Act::Reply(answer(301, moved, "<html>moved</html>"))]).await;
    let gateway = Gateway::before(&service, "").await;
    for (line, body) in
        [("GET /v2/agents", ""), ("POST /v2/chats/1/messages", r#"{"text":"a"}"#), ("GET /v2/chats/1", "")]
    {
        assert_eq!(gateway.ask(line, body).await.status, 502, "{line}");
    }
    let log = gateway.ended();
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.iter().filter(|line| line.contains("https://api.test:8443")).count(), 3, "{log}");
    assert!(!log.contains("secret@") && !log.contains("token=secret"), "{log}");
    let access = log.lines().filter(|line| line.contains("switchback::access"));
    assert!(access.filter(|line| line.contains("a redirect (301)")).count() == 3, "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_that_the_service_did_not_make_says_no_more_than_it_means() {
    let errors = [
        (400, 400, "The service refused this request."),
        (401, 502, "The service gave an answer that cannot be understood."),
        (403, 403, "The service refused this request."),
        (404, 404, "There is nothing at this address."),
        (405, 405, "The service refused this request."),
        (429, 429, "The service is busy. Try again later."),
        (502, 502, "The service gave an answer that cannot be understood."),
        (503, 503, "The service is busy. Try again later."),
    ];
    let calls = [
        ("GET /v2/agents", ""),
        ("POST /v2/chats/1/messages", r#"{"text":"a"}"#),
        ("GET /v2/chats/1", ""),
        ("POST /v2/contacts", r#"{"name":"A","email":"a@e.test","phone":"5511987654321"}"#),
    ];
    let page =
        |status| answer(status, "content-type: text/html\r\nretry-after: 7\r\n", "<html>blocked</html>");
    let pages = errors.map(|(status, ..)| vec![Act::Reply(page(status)); calls.len()]);
    let service = Upstream::start(pages.concat()).await;
    let gateway = Gateway::before(&service, "").await;
    for (upstream, status, words) in errors {
        for (line, body) in calls {
            let got = gateway.ask(line, body).await;
            let wanted = (status, format!(r#"{{"reason":"{words}"}}"#));
            assert_eq!((got.status, got.text()), wanted, "{line} {upstream}");
        }
    }
    let log = gateway.ended();
    for (upstream, ..) in errors {
        let told = format!("an error {upstream} with a body of type text/html");
        for place in ["WARN", "switchback::access"] {
            let lines = log.lines().filter(|line| line.contains(place) && line.contains(&told));
            assert_eq!(lines.count(), calls.len(), "{place} {upstream} in {log}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_the_service_is_the_clients_and_nobody_is_warned() {
    let statuses = [400, 403, 404, 429, 503];
    let errors = statuses.map(|status| Act::json(status, r#"{"reason":"because"}"#));
    let service = Upstream::start(errors.to_vec()).await;
    let gateway = Gateway::before(&service, "").await;
    for status in statuses {
        let got = gateway.ask("GET /v2/agents", "").await;
        assert_eq!((got.status, got.text()), (status, r#"{"reason":"because"}"#.to_owned()));
    }
    let log = gateway.ended();
    assert!(!log.contains("WARN"), "{log}");
}

/// Answers of upstreams instead of a list of agents, of about this size: wrong from the start, and
/// wrong later.
fn wrong_answers(bytes: usize) -> Vec<(&'static str, Vec<u8>)> {
    let agent = |id: usize| format!(r#"{{"id":{id},"name":"{}"}}"#, "n".repeat(50));
    let count = bytes / agent(10_000).len();
    let list: Vec<_> = (10_000..10_000 + count).map(agent).collect();
    let list = format!("[{}]", list.join(","));
    let middle = list[..list.len() / 2].rfind(r#""id""#).expect("agents have ids");
    let with = |text: &[u8]| [&list.as_bytes()[..middle], text, &list.as_bytes()[middle..]].concat();
    vec![
        ("a page of HTML", format!("<html>{}</html>", "x".repeat(bytes)).into_bytes()),
        ("a wrong first byte", format!("x{list}").into_bytes()),
        ("an object for a list", format!(r#"{{"agents":{list}}}"#).into_bytes()),
        ("a text", format!(r#""{}""#, "x".repeat(bytes)).into_bytes()),
        ("a member twice", with(br#""id":1,"#)),
        ("bad UTF-8", with(b"\"name\":\"\xff\",")),
        ("too deep", "[".repeat(bytes).into_bytes()),
        ("too deep within", with(format!(r#""x":{},"#, "[".repeat(2000)).as_bytes())),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_answer_is_a_502_whatever_its_size() {
    for bytes in [60_000, 70_000, 1_000_000] {
        let answers = wrong_answers(bytes);
        let acts = answers
            .iter()
            .flat_map(|(_, body)| [false, true].map(|chunked| Act::Reply(framed(body, chunked))));
        let service = Upstream::start(acts.collect()).await;
        let gateway = Gateway::before(&service, "").await;
        let mut early = 0;
        for what in answers.iter().flat_map(|(what, _)| [what; 2]) {
            let got = gateway.ask("GET /v2/agents", "").await;
            // An error in the middle of a large body is found after half of it was sent.
            let is_early =
                bytes < 100_000 || !["a member twice", "bad UTF-8", "too deep within"].contains(what);
            early += usize::from(is_early);
            let wanted = if is_early { (502, true) } else { (200, false) };
            assert_eq!((got.status, got.is_complete), wanted, "{what}, {bytes} bytes: {}", got.head);
        }
        let log = gateway.ended();
        for (told, count) in
            [("a request failed", early), ("a response was truncated", 2 * answers.len() - early)]
        {
            let warned = log.lines().filter(|line| line.contains("WARN") && line.contains(told));
            assert_eq!(
                warned.filter(|line| line.contains("agents.map.yaml:")).count(),
                count,
                "{told}: {log}"
            );
        }
    }
}

/// Everything is there at once, so that the fault is found before any of the answer is on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_breaks_off_late_is_seen_to_begin() {
    let (what, body) = wrong_answers(150_000).swap_remove(4);
    let service = Upstream::start(vec![Act::Reply(framed(&body, false))]).await;
    let gateway = Gateway::before(&service, "limits: { whole_bytes: 1KiB }\n").await;
    for _ in 0..20 {
        let got = gateway.ask("GET /v2/agents", "").await;
        assert_eq!((got.status, got.is_complete), (200, false), "{what}");
        assert!(got.text().starts_with(r#"[{"id":10000"#), "{what}: {}", got.text());
    }
    let log = gateway.ended();
    let access = log.lines().filter(|line| line.contains("switchback::access"));
    assert_eq!(
        access.filter(|line| line.contains("the answer broke off: an answer cannot be translated")).count(),
        20,
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_that_breaks_off_is_logged_with_the_place_it_had_reached() {
    let agents: Vec<_> =
        (0..3000).map(|id| format!(r#"{{"id":{id},"name":"{}"}}"#, "n".repeat(50))).collect();
    let whole = framed(format!("[{}]", agents.join(",")).as_bytes(), false);
    let service = Upstream::start(vec![Act::ReplyAndClose(whole[..100_000].to_vec())]).await;
    let gateway = Gateway::before(&service, "limits: { whole_bytes: 1KiB }\n").await;
    let got = gateway.ask("GET /v2/agents", "").await;
    assert_eq!((got.status, got.is_complete), (200, false));
    let log = gateway.ended();
    let line =
        log.lines().find(|line| line.contains("a response was truncated")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("WARN") && line.contains("upstream_closed") && line.contains("$[*]"), "{line}");
    assert!(line.contains("bytes, at") && line.contains("agents.map.yaml:"), "{line}");
}

fn framed(body: &[u8], chunked: bool) -> Vec<u8> {
    let mut all = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n".to_vec();
    if chunked {
        all.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
        for piece in body.chunks(10_000) {
            all.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            all.extend_from_slice(piece);
            all.extend_from_slice(b"\r\n");
        }
        all.extend_from_slice(b"0\r\n\r\n");
    } else {
        all.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
        all.extend_from_slice(body);
    }
    all
}

/// The real program in front of a scripted service, with one client and a fixed credential for its
/// calls.
struct Gateway {
    program: Program,
    address: std::net::SocketAddr,
    _folder: TempDir,
}

impl Gateway {
    async fn before(service: &Upstream, more: &str) -> Gateway {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let clients = format!(
            "clients: [{{ name: acme, v2_token: {TOKEN}, credentials: {{ v3: new-token-of-acme }} }}]\n{more}"
        );
        let file = serving::write(folder.path(), &service.address.to_string(), &clients);
        Gateway::of(folder, file).await
    }

    /// One with this configuration.
    async fn of(folder: TempDir, file: PathBuf) -> Gateway {
        // Waiting blocks, and the service runs on this very thread.
        let starting = tokio::task::spawn_blocking(move || {
            let program = serving::start(&file, &[]);
            let address = serving::address(&program);
            (program, address)
        });
        let (program, address) = starting.await.expect("it serves");
        Gateway { program, address, _folder: folder }
    }

    async fn ask(&self, line: &str, body: &str) -> Answer {
        self.ask_with(line, body, &format!("x-authorization: Bearer {TOKEN}\r\n")).await
    }

    async fn ask_with(&self, line: &str, body: &str, fields: &str) -> Answer {
        let request = format!(
            "{line} HTTP/1.1\r\nhost: gateway.test\r\n{fields}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        exchange(self.address, request).await.unwrap_or_else(|| panic!("no answer to {line}"))
    }

    /// Stops it, and returns its log.
    fn ended(self) -> String {
        self.program.signal("TERM");
        let (status, log) = self.program.ended();
        assert!(status.success(), "{log}");
        log
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_says_what_the_side_wants_to_hear() {
    let service = Upstream::start(vec![Act::json(200, "[]")]).await;
    let gateway = Gateway::before(&service, "").await;
    gateway.ask("GET /v2/agents", "").await;
    gateway.ask("POST /v2/chats/1/reopen", "").await;
    gateway.ask("POST /v2/chats/1/messages", r#"{"text":"a"}"#).await;
    let seen = service.seen();
    for (call, length) in seen.iter().zip([&[][..], &["0"], &["12"]]) {
        assert_eq!(call.values("content-type"), ["application/json"], "{}", call.head);
        assert_eq!(call.values("content-length"), length, "{}", call.head);
        assert_eq!(call.values("authorization"), ["Bearer new-token-of-acme"], "{}", call.head);
    }
    assert_eq!(seen.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_side_that_wants_the_token_in_several_fields_gets_it_in_all() {
    let service = Upstream::start(vec![Act::json(200, "[]")]).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let more = "fronts: { /v3: { speaks: v3 } }\n\
                clients: [{ name: acme, v3_token: v3-token-of-acme, credentials: { v2: secret-at-v2 } }]\n";
    let file = serving::write_before(folder.path(), &service.address.to_string(), &["v2"], more);
    let gateway = Gateway::of(folder, file).await;
    let got = gateway.ask_with("GET /v3/agents", "", "authorization: Bearer v3-token-of-acme\r\n").await;
    assert_eq!(got.status, 200);
    let seen = service.seen();
    assert_eq!(seen[0].values("x-authorization"), ["Bearer secret-at-v2"]);
    assert_eq!(seen[0].values("authorization"), ["Bearer secret-at-v2"]);
    assert_eq!(seen[0].values("content-type"), ["application/json"]);
}

/// The effect of a forwarded request is unknown, except for the semantics of its method in HTTP: a
/// read may be repeated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forwarded_reading_that_meets_a_lost_connection_is_sent_again() {
    for (line, fields, calls, status) in [
        ("GET /v2/agents", "", 2, 200),
        ("GET /v2/agents", "x-http-method-override: DELETE\r\n", 1, 502),
        ("POST /v2/chats/1/queue", "", 1, 502),
    ] {
        let own = Upstream::start(vec![Act::ReplyAndReset(Vec::new()), Act::json(200, "[]")]).await;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let clients = format!(
            "phases: {{ default: legacy }}\nclients: [{{ name: acme, v2_token: {TOKEN}, credentials: {{ v3: new-token-of-acme }} }}]\n"
        );
        let file = serving::write_before(folder.path(), &own.address.to_string(), &["v2", "v3"], &clients);
        let gateway = Gateway::of(folder, file).await;
        let own_token = format!("x-authorization: Bearer {TOKEN}\r\n{fields}");
        assert_eq!(gateway.ask_with(line, "", &own_token).await.status, status, "{line} {fields}");
        assert_eq!(own.seen().len(), calls, "{line} {fields}");
    }
}
