//! Every operation of the old side through the real binary, compared with two witnesses: the
//! sandbox's own v2 front, and v2 as translated by the gateway from the sandbox's v3. Both
//! sandboxes start from the same seed, so every difference is the gateway's, and each must be
//! declared by the pack: a lost field that is null, or an outcome that is listed here as refused or
//! different with the responsible reading. After a write the state of both is compared as well.

use crate::contract_walk::document::Document;
use crate::support::raw::{Answer, Client};
use crate::support::serving::Serving;
use crate::support::witness::{
    Difference, differences, is_declared, is_error_form, json, messaging_pack, route_of, undeclared_members,
};
use std::net::SocketAddr;
use switchback_plan::{Pack, SideId};
use switchback_sandbox::{Options, Sandbox};

/// The expected result of the gateway, in comparison with the witness.
enum Expect {
    /// Status and body of the witness, up to declared losses; for errors the status and an error in
    /// the service's form.
    Same,
    /// As `Same`, but these members of the body are words or moments that each side makes itself.
    SameBut(&'static [&'static str]),
    /// v3 cannot do it: 501, regardless of the witness.
    Refused,
}
use Expect::{Refused, Same, SameBut};

struct Case {
    name: &'static str,
    line: &'static str,
    body: &'static str,
    expect: Expect,
    /// The compared data on both sides afterwards, read through their own v2 fronts.
    then: &'static [&'static str],
}

const fn case(name: &'static str, line: &'static str, body: &'static str, expect: Expect) -> Case {
    Case { name, line, body, expect, then: &[] }
}

const fn write(
    name: &'static str,
    line: &'static str,
    body: &'static str,
    expect: Expect,
    then: &'static [&'static str],
) -> Case {
    Case { name, line, body, expect, then }
}

const CHAT: &[&str] = &["/v2/chats/1", "/v2/chats/1/messages"];
const CONTACT: &[&str] = &["/v2/contacts/1001"];

const CASES: &[Case] = &[
    case("agents", "GET /v2/agents", "", Same),
    case("agents, another page", "GET /v2/agents?page=1", "", Same),
    case("agents, beyond the last page", "GET /v2/agents?page=9999", "", Same),
    case("an agent", "GET /v2/agents/203", "", Same),
    case("no agent", "GET /v2/agents/999999", "", Same),
    case("an agent id that is none", "GET /v2/agents/abc", "", Same),
    write(
        "an invitation",
        "POST /v2/agents",
        r#"{"email":"new@agents.example.com","type":2}"#,
        Same,
        &["/v2/agents"],
    ),
    case("an invitation without a role", "POST /v2/agents", r#"{"email":"new@agents.example.com"}"#, Same),
    write("nothing of an agent", "PUT /v2/agents/203", "{}", Same, &["/v2/agents/203"]),
    write(
        "another role, which v3 cannot give",
        "PUT /v2/agents/203",
        r#"{"type":2,"active":false}"#,
        Refused,
        &[],
    ),
    case("a role that is none", "PUT /v2/agents/203", r#"{"type":"2"}"#, Same),
    case("a role that is null", "PUT /v2/agents/203", r#"{"type":null}"#, Same),
    case("an activity that is none", "PUT /v2/agents/203", r#"{"active":"no"}"#, Same),
    case("contacts", "GET /v2/contacts", "", Same),
    case("contacts, another page", "GET /v2/contacts?page=2", "", Same),
    case("a contact", "GET /v2/contacts/1001", "", Same),
    case("no contact", "GET /v2/contacts/999999", "", Same),
    // Two writes instead of one, a second apart by the sandbox's clock.
    write(
        "a new contact",
        "POST /v2/contacts",
        r#"{"name":"Zoë","phone":"34911222333","email":"zoe@example.com"}"#,
        SameBut(&["$[*].updatedAt"]),
        &["/v2/contacts?page=0", "/v2/contacts?page=1"],
    ),
    case(
        "a new contact without a phone",
        "POST /v2/contacts",
        r#"{"name":"Zoë","email":"zoe@example.com"}"#,
        Same,
    ),
    write(
        "a changed phone",
        "PUT /v2/contacts/1001",
        r#"{"phone":"5511988887777","city":"Recife"}"#,
        Same,
        CONTACT,
    ),
    case("only what may not be changed alone", "PUT /v2/contacts/1001", r#"{"city":"Recife"}"#, Same),
    case("no contact to change", "PUT /v2/contacts/999999", r#"{"phone":"5511988887777"}"#, Same),
    case("a deleted contact, which v3 does not know", "DELETE /v2/contacts/1002", "", Refused),
    case("no contact to delete", "DELETE /v2/contacts/999999", "", Same),
    case("chats", "GET /v2/chats", "", Same),
    case("chats, another page", "GET /v2/chats?page=1", "", Same),
    case("a chat", "GET /v2/chats/1", "", Same),
    case("a closed chat", "GET /v2/chats/5", "", Same),
    case("no chat", "GET /v2/chats/999999", "", Same),
    case("messages", "GET /v2/chats/1/messages", "", Same),
    case("messages, deep in thousands", "GET /v2/chats/4/messages?page=99", "", Same),
    case("messages with ids beyond a double", "GET /v2/chats/6/messages", "", Same),
    case("messages of no chat", "GET /v2/chats/999999/messages", "", Same),
    case("messages on a page that is none", "GET /v2/chats/1/messages?page=one", "", Same),
    case("a survey, which v3 does not keep", "GET /v2/chats/8/feedback", "", Refused),
    case(
        "a new chat, which v3 cannot open",
        "POST /v2/chats/email",
        r#"{"name":"Zoë","phone":"34911222333","email":"zoe@example.com"}"#,
        Refused,
    ),
    // A18: v2 asks for a rating where v3 says thanks, so the messages differ by the texts.
    write("closing", "POST /v2/chats/1/close", r#"{"sendFeedback":false}"#, Same, &["/v2/chats/1"]),
    case("closing with a flag that is none", "POST /v2/chats/1/close", r#"{"sendFeedback":"true"}"#, Same),
    case("closing no chat", "POST /v2/chats/999999/close", r#"{"sendFeedback":true}"#, Same),
    write("into the queue", "POST /v2/chats/1/queue", "", Same, &["/v2/chats/1"]),
    // A19: v3 states no condition.
    write("into the queue, unattended", "POST /v2/chats/2/queue", "", Same, &["/v2/chats/2"]),
    case("no chat into the queue", "POST /v2/chats/999999/queue", "", Same),
    write("a text", "POST /v2/chats/1/messages", r#"{"text":"olá 😀 \"x\"","isInternal":false}"#, Same, CHAT),
    write(
        "an internal text",
        "POST /v2/chats/1/messages",
        r#"{"text":"psst","isInternal":true}"#,
        Same,
        CHAT,
    ),
    case("a text that is none", "POST /v2/chats/1/messages", r#"{"text":7}"#, Same),
    case("a text to no chat", "POST /v2/chats/999999/messages", r#"{"text":"oi"}"#, Same),
    case("broken JSON", "POST /v2/chats/1/messages", r#"{"text":"#, Same),
    write("reopening", "POST /v2/chats/5/reopen", "", Same, &["/v2/chats/5"]),
    case("reopening no chat", "POST /v2/chats/999999/reopen", "", Same),
    write(
        "waiting",
        "POST /v2/chats/1/situation",
        r#"{"situation":"wait_for_chat"}"#,
        Same,
        &["/v2/chats/1"],
    ),
    // No write happens for it, so the time of the last change remains, unlike in v2.
    case("where it is already", "POST /v2/chats/1/situation", r#"{"situation":"in_chat"}"#, Same),
    case("blocking, which v3 cannot", "POST /v2/chats/1/situation", r#"{"situation":"blocked"}"#, Refused),
    case("an unknown situation", "POST /v2/chats/1/situation", r#"{"situation":"finishing"}"#, Same),
    case("a situation for no chat", "POST /v2/chats/999999/situation", r#"{"situation":"auto"}"#, Same),
    write("tags", "POST /v2/chats/1/tags", r#"{"tags":"vip,new one"}"#, Same, &["/v2/chats/1"]),
    case("tags as a list", "POST /v2/chats/1/tags", r#"{"tags":["vip"]}"#, Same),
    case("tags for no chat", "POST /v2/chats/999999/tags", r#"{"tags":"vip"}"#, Same),
    write("a flow", "POST /v2/chats/2/flow", r#"{"flowId":51}"#, Same, &["/v2/chats/2"]),
    case("a flow in a closed chat", "POST /v2/chats/5/flow", r#"{"flowId":51}"#, Same),
    case("a flow in no chat", "POST /v2/chats/999999/flow", r#"{"flowId":51}"#, Same),
    write(
        "a flow with a contact",
        "POST /v2/flows/51/contact/1001/exec",
        r#"{"variables":{"name":"Ana"},"whenInChat":true,"whenInAuto":true}"#,
        SameBut(&["$.reason"]),
        &[],
    ),
    case("a flow that is not to run", "POST /v2/flows/51/contact/1001/exec", "{}", SameBut(&["$.reason"])),
    case(
        "a flow with a flag that is none",
        "POST /v2/flows/51/contact/1001/exec",
        r#"{"whenInChat":1}"#,
        Same,
    ),
    case(
        "a flow with variables that are none",
        "POST /v2/flows/51/contact/1001/exec",
        r#"{"variables":[]}"#,
        Same,
    ),
    // v3 lists no channels, so an unknown channel cannot be distinguished from one without an open chat of
    // the contact.
    case(
        "a flow on an unknown channel",
        "POST /v2/flows/51/contact/1001/exec",
        r#"{"uuid":"00000000-0000-0000-0000-000000000000"}"#,
        Refused,
    ),
    case("a flow with no contact", "POST /v2/flows/51/contact/999999/exec", "{}", Same),
    case("another method", "PATCH /v2/chats/1", "{}", Same),
    case("nothing there", "GET /v2/nothing", "", Same),
];

#[tokio::test]
async fn every_operation_answers_as_the_old_service_does_up_to_what_the_pack_declares() {
    let pack = messaging_pack();
    let mut faults = Vec::new();
    for case in CASES {
        let (own, behind) = (sandbox().await, sandbox().await);
        let gateway = Serving::before(&behind).await;
        let told = call(own.address(), &own, case.line, case.body).await;
        let got = call(gateway.address, &behind, case.line, case.body).await;
        let mut found = compare(&pack, case, &told, &got);
        for path in case.then {
            let line = format!("GET {path}");
            let (left, right) = (
                call(own.address(), &own, &line, "").await,
                call(behind.address(), &behind, &line, "").await,
            );
            found.extend(
                differences(&json(&left), &json(&right)).into_iter().map(|d| format!("state of {path}: {d}")),
            );
        }
        faults.extend(found.into_iter().map(|fault| format!("{} ({}): {fault}", case.name, case.line)));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn no_operation_of_the_old_contract_is_left_out() {
    let pack = messaging_pack();
    let missing: Vec<_> = pack.directions[0]
        .routes
        .iter()
        .filter(|route| {
            !CASES
                .iter()
                .any(|case| route_of(&pack, SideId::OLD, case.line).is_some_and(|found| found.id == route.id))
        })
        .map(|route| route.operation.key.to_string())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(pack.directions[0].routes.len(), 22);
}

#[tokio::test]
async fn half_done_work_is_taken_up_by_the_clients_retry_and_nothing_is_made_twice() {
    let service = sandbox().await;
    let gateway = Serving::before(&service).await;
    let fault = r#"{"side":"v3","method":"PUT","path":"/contacts/{id}","count":1,"action":{"status":{"code":503,"body":{"reason":"later"}}}}"#;
    call(service.address(), &service, "POST /_sandbox/faults", fault).await;
    let create = r#"{"name":"Zoë","phone":"34911222333","email":"zoe@example.com"}"#;

    let first = call(gateway.address, &service, "POST /v2/contacts", create).await;
    assert_eq!((first.status, first.text().as_str()), (503, r#"{"reason":"later"}"#));
    let second = call(gateway.address, &service, "POST /v2/contacts", create).await;
    assert_eq!(second.status, 201, "{}", second.text());
    assert_eq!(created(&service).await, 1, "the retry went on where the first request stopped");
    let third = call(gateway.address, &service, "POST /v2/contacts", create).await;
    assert_eq!(third.status, 201);
    assert_ne!(json(&third)[0]["id"], json(&second)[0]["id"], "what was finished is not taken up again");
    assert_eq!(created(&service).await, 2);
}

/// A body from v2 has members in v2's form. None of them reaches v3, nor any other undeclared
/// member.
#[tokio::test]
async fn what_a_client_read_and_puts_back_reaches_v3_without_what_v3_does_not_declare() {
    let service = sandbox().await;
    let gateway = Serving::before(&service).await;
    let shown = call(gateway.address, &service, "GET /v2/contacts/1010", "").await;
    let members = json(&shown);
    assert!(!members["birthday"].is_null() && !members["customFields"].is_null(), "{members}");
    let put = call(gateway.address, &service, "PUT /v2/contacts/1010", &shown.text()).await;
    assert_eq!(put.status, 204, "{}", put.text());
    for (line, body, status) in [
        ("POST /v2/contacts", r#"{"name":"Zoë","phone":"34911222333","email":"z@x.example","more":1}"#, 201),
        ("POST /v2/agents", r#"{"email":"new@x.example","type":1,"more":1}"#, 201),
        ("POST /v2/chats/1/messages", r#"{"text":"oi","isInternal":false,"more":1}"#, 201),
        ("POST /v2/chats/1/tags", r#"{"tags":"vip","more":1}"#, 201),
        ("POST /v2/chats/2/flow", r#"{"flowId":51,"more":1}"#, 200),
        ("POST /v2/chats/1/close", r#"{"sendFeedback":false,"more":1}"#, 201),
        ("POST /v2/chats/3/situation", r#"{"situation":"wait_for_chat","more":1}"#, 201),
        ("POST /v2/flows/51/contact/1001/exec", r#"{"whenInAuto":true,"whenInChat":true,"more":1}"#, 200),
    ] {
        let answer = call(gateway.address, &service, line, body).await;
        assert_eq!(answer.status, status, "{line}: {}", answer.text());
    }
    let log = json(&call(service.address(), &service, "GET /_sandbox/requests", "").await);
    assert_eq!(undeclared_members(&Document::load("v3"), &log), Vec::<String>::new());
}

/// Returns the number of requests to create a contact.
async fn created(service: &Sandbox) -> usize {
    let log = json(&call(service.address(), service, "GET /_sandbox/requests", "").await);
    let calls = log.as_array().or_else(|| log["requests"].as_array()).expect("a list of requests");
    calls.iter().filter(|call| call["method"] == "POST" && call["path"] == "/v3/contacts").count()
}

async fn sandbox() -> Sandbox {
    Sandbox::start(Options::default()).await.unwrap()
}

async fn call(address: SocketAddr, sandbox: &Sandbox, line: &str, body: &str) -> Answer {
    let token = &sandbox.credentials().v2_token;
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let mut client = Client::connect(address).await;
    let fields = format!("content-type: application/json\r\nx-authorization: Bearer {token}\r\n{length}");
    client.send(format!("{line} HTTP/1.1\r\nhost: service.test\r\n{fields}\r\n{body}")).await;
    client.answer().await.unwrap()
}

fn compare(pack: &Pack, case: &Case, told: &Answer, got: &Answer) -> Vec<String> {
    let is_error = got.status >= 400;
    let status = match case.expect {
        Same | SameBut(_) => told.status,
        Refused => 501,
    };
    if got.status != status {
        return vec![format!(
            "answered {} {}, expected {status} (witness: {} {})",
            got.status,
            got.text(),
            told.status,
            told.text()
        )];
    }
    if is_error {
        let is_form = is_error_form(&json(got));
        return if is_form { Vec::new() } else { vec![format!("an error in another form: {}", got.text())] };
    }
    let but: &[&str] = match case.expect {
        SameBut(but) => but,
        Same | Refused => &[],
    };
    let route = route_of(pack, SideId::OLD, case.line);
    let declared = |difference: &Difference| {
        but.contains(&difference.place.as_str()) || is_declared(pack, route, SideId::OLD, difference)
    };
    let found = differences(&json(told), &json(got));
    found.iter().filter(|difference| !declared(difference)).map(ToString::to_string).collect()
}
