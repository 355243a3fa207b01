//! Every operation of the new side through the real binary, compared with two witnesses: the
//! sandbox's own v3 front, and v3 as translated by the gateway from the sandbox's v2. Both
//! sandboxes start from the same seed, so every difference is the gateway's. The permitted
//! differences are not listed here: the compiled pack declares the refused operations, the lost
//! fields and their replacements. This file has the requests, and the few places with texts or
//! times of each side's own. After a write the state of both is compared as well, read through
//! their own v3 fronts.

use crate::contract_walk::document::Document;
use crate::support::raw::{Answer, exchange};
use crate::support::serving::Serving;
use crate::support::witness::{
    Difference, differences, is_declared, is_error_form, is_same_id, json, messaging_pack, route_of,
    undeclared_members, written_nulls,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use switchback_plan::{Pack, RouteKind, SideId};
use switchback_sandbox::{Options, Sandbox};

const TOKEN: &str = "v3-token-of-a-new-client";

struct Case {
    line: &'static str,
    body: &'static str,
    /// The expected result if it is neither the witness's nor declared by the pack.
    expect: Expect,
    /// Read on both sides afterwards, and compared.
    then: &'static [&'static str],
}

enum Expect {
    /// Status and body of the witness, apart from the differences that the pack declares; an error
    /// if it has an error.
    Same,
    /// As `Same`, but these places of the body are words, moments or numbers that each side makes itself.
    But(&'static [&'static str]),
    /// This request is more than v2 can do: 501, although the operation is served.
    Refused,
}
use Expect::{But, Refused, Same};

const fn case(line: &'static str, body: &'static str, expect: Expect) -> Case {
    Case { line, body, expect, then: &[] }
}

const fn write(line: &'static str, body: &'static str, then: &'static [&'static str]) -> Case {
    Case { line, body, expect: Same, then }
}

const CHAT: &[&str] = &["/v3/chats/1", "/v3/chats/1/messages"];

const CASES: &[Case] = &[
    case("GET /v3/chats", "", Same),
    case("GET /v3/chats?page=1", "", Same),
    // Two types of channels go by this name.
    case("GET /v3/chats?channel=whatsapp", "", Same),
    case("GET /v3/chats/1", "", Same),
    case("GET /v3/chats/5", "", Same),
    case("GET /v3/chats/999999", "", Same),
    case("GET /v3/chats/1/messages", "", Same),
    case("GET /v3/chats/4/messages?page=99", "", Same),
    case("GET /v3/chats/6/messages", "", Same),
    case("GET /v3/chats/999999/messages", "", Same),
    case("GET /v3/chats/1/agents", "", Same),
    case("GET /v3/chats/999999/agents", "", Same),
    case("GET /v3/chats/1/tags", "", Same),
    case("GET /v3/chats/1/contextVariables", "", Same),
    // Whether a session can be opened is nowhere in v2, and v3 does not promise it.
    Case {
        line: "POST /v3/chats/1/messages",
        body: r#"{"text":"olá 😀 \"x\"","isInternal":false}"#,
        expect: But(&["$.canEnableSession"]),
        then: CHAT,
    },
    Case {
        line: "POST /v3/chats/1/messages",
        body: r#"{"text":"psst","isInternal":true}"#,
        expect: But(&["$.canEnableSession"]),
        then: CHAT,
    },
    case("POST /v3/chats/1/messages", r#"{"text":"a file","file":"https://files.example/a.png"}"#, Refused),
    write("POST /v3/chats/1/messages", r#"{"text":7}"#, CHAT),
    write("POST /v3/chats/1/messages", "{}", CHAT),
    write("POST /v3/chats/1/messages", r#"["a","b"]"#, CHAT),
    write("POST /v3/chats/1/messages", r#"{"text":"oi","isInternal":null}"#, CHAT),
    case("POST /v3/chats/999999/messages", r#"{"text":"oi"}"#, Same),
    case("POST /v3/chats/1/transfer", r#"{"agentId":203}"#, Same),
    write("POST /v3/chats/2/flow", r#"{"flowId":51}"#, &["/v3/chats/2"]),
    case("POST /v3/chats/999999/flow", r#"{"flowId":51}"#, Same),
    case("POST /v3/chats/2/flow", r#"{"flowId":"x"}"#, Same),
    case("POST /v3/chats/2/flow", r#"{"flowId":51,"variables":null}"#, Same),
    write("POST /v3/chats/9/flow", r#"{"flowId":51,"variables":{"name":"Ana"}}"#, &["/v3/chats/9"]),
    // Its contact has another chat open on the channel, and v2 would choose.
    case("POST /v3/chats/7/flow", r#"{"flowId":51,"variables":{"name":"Ana"}}"#, Refused),
    case("PUT /v3/chats/1/agent", r#"{"agentId":203}"#, Same),
    case("PUT /v3/chats/1/read", "", Same),
    case("PUT /v3/chats/1/tabulation", r#"{"tabulationId":1}"#, Same),
    write("PUT /v3/chats/1/tags", r#"{"tags":"vip,new one"}"#, &["/v3/chats/1", "/v3/chats/1/tags"]),
    case("PUT /v3/chats/999999/tags", r#"{"tags":"vip"}"#, Same),
    write("PUT /v3/chats/1/queue", "", &["/v3/chats/1"]),
    case("PUT /v3/chats/999999/queue", "", Same),
    case("PUT /v3/chats/1/department", r#"{"department":1}"#, Same),
    // A18: v2 asks for a rating where v3 says thanks, so the messages differ by the texts.
    write("PUT /v3/chats/1/close", r#"{"sendFeedback":false}"#, &["/v3/chats/1"]),
    case("PUT /v3/chats/999999/close", r#"{"sendFeedback":true}"#, Same),
    write("PUT /v3/chats/5/reopen", "", &["/v3/chats/5"]),
    case("PUT /v3/chats/999999/reopen", "", Same),
    case("PUT /v3/chats/1/workflow", r#"{"stepId":1}"#, Same),
    case("PUT /v3/chats/1/assignToMe", "", Same),
    case("DELETE /v3/chats/5", "", Same),
    case("GET /v3/agents", "", Same),
    case("GET /v3/agents?page=1", "", Same),
    case("GET /v3/agents/profile", "", Same),
    case("GET /v3/agents/203", "", Same),
    case("GET /v3/agents/999999", "", Same),
    case("GET /v3/agents/203/status", "", Same),
    write("POST /v3/agents", r#"{"email":"new@agents.example.com","type":2,"maxChats":5}"#, &["/v3/agents"]),
    case("POST /v3/agents", r#"{"email":"new@agents.example.com","type":2}"#, Same),
    case("PUT /v3/agents/status", r#"{"id":-1}"#, Same),
    case("PUT /v3/agents/203", r#"{"name":"Zoë","login":"zoe@agents.example.com"}"#, Same),
    case("GET /v3/contacts", "", Same),
    case("GET /v3/contacts?page=2", "", Same),
    case("GET /v3/contacts/1001", "", Same),
    case("GET /v3/contacts/999999", "", Same),
    case("GET /v3/contacts/1001/timeline", "", Same),
    case("GET /v3/contacts/1001/groups", "", Same),
    case("GET /v3/contacts/1001/organizations", "", Same),
    case("GET /v3/contacts/1001/customFields", "", Same),
    case("GET /v3/contacts/999999/customFields", "", Same),
    case("GET /v3/contacts/1001/linkedContacts", "", Same),
    case("POST /v3/contacts", r#"{"name":"Zoë","email":"zoe@example.com"}"#, Same),
    case("POST /v3/timeline/createComment/1001", r#"{"comment":"called"}"#, Same),
    write(
        "PUT /v3/contacts/1001",
        r#"{"name":"Zoë","email":"zoe@example.com","phone":"5511988887777","mobile":""}"#,
        &["/v3/contacts/1001"],
    ),
    case(
        "PUT /v3/contacts/999999",
        r#"{"name":"Zoë","email":"z@example.com","phone":"1","mobile":""}"#,
        Same,
    ),
    case("PUT /v3/contacts/1001", r#"{"name":"Zoë"}"#, Same),
    case("PATCH /v3/chats/1", "{}", Same),
    case("GET /v3/nothing", "", Same),
];

#[tokio::test]
async fn every_operation_answers_as_the_new_service_does_up_to_what_the_pack_declares() {
    let pack = messaging_pack();
    let mut faults = Vec::new();
    for case in CASES {
        let (own, behind) = (sandbox().await, sandbox().await);
        let gateway = before(&behind).await;
        let own_token = &own.credentials().access_token;
        let told = call(own.address(), own_token, case.line, "en", case.body).await;
        let got = call(gateway.address, TOKEN, case.line, "en", case.body).await;
        let mut found = compare(&pack, case, &told, &got);
        if got.status == 501 {
            found.extend(other_languages(gateway.address, case).await);
        }
        for path in case.then {
            let line = format!("GET {path}");
            let state = async |sandbox: &Sandbox| {
                json(&call(sandbox.address(), &sandbox.credentials().access_token, &line, "en", "").await)
            };
            let (left, right) = (state(&own).await, state(&behind).await);
            found.extend(differences(&left, &right).into_iter().map(|d| format!("state of {path}: {d}")));
        }
        faults.extend(found.into_iter().map(|fault| format!("{}: {fault}", case.line)));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// People are found however their addresses are written, as the new service finds them.
#[tokio::test]
async fn filters_find_people_however_their_addresses_are_spelt() {
    let (own, behind) = (sandbox().await, sandbox().await);
    let gateway = before(&behind).await;
    let own_token = &own.credentials().access_token;
    let everybody = json(&call(own.address(), own_token, "GET /v3/contacts", "en", "").await);
    let known = |field: &str| -> Vec<String> {
        let texts = everybody.as_array().expect("a list").iter().filter_map(|one| one[field].as_str());
        texts.filter(|text| !text.is_empty()).take(3).map(str::to_owned).collect()
    };
    let email = known("email").remove(0);
    let numbers = known("mobile");
    let mut queries = vec![
        format!("email={email}"),
        format!("email={}", email.to_uppercase()),
        "email=nobody@nowhere.example".to_owned(),
        "phone=none".to_owned(),
    ];
    for number in &numbers {
        let (country, rest) = number.split_at(2);
        queries.extend([format!("phone={number}"), format!("phone=%2B{country}%20({rest})")]);
    }
    let mut found = 0;
    for query in queries {
        let ids = |answer: &Answer| -> Vec<String> {
            assert_eq!(answer.status, 200, "{query}: {}", answer.text());
            json(answer).as_array().expect("a list").iter().map(|one| one["id"].to_string()).collect()
        };
        let line = format!("GET /v3/contacts?{query}");
        let told = ids(&call(own.address(), own_token, &line, "en", "").await);
        assert_eq!(told, ids(&call(gateway.address, TOKEN, &line, "en", "").await), "{query}");
        found += usize::from(!told.is_empty());
    }
    assert_eq!(found, 2 + 2 * numbers.len(), "all but those that nobody has");
}

/// The same in the other direction: a contact of v3 has forty members that v2 rejects.
#[tokio::test]
async fn what_a_client_read_and_puts_back_reaches_v2_without_what_v2_does_not_declare() {
    let behind = sandbox().await;
    let gateway = before(&behind).await;
    let shown = call(gateway.address, TOKEN, "GET /v3/contacts/1010", "en", "").await;
    let mut contact = json(&shown);
    for optional in ["address", "city", "district", "state", "obs"] {
        contact.as_object_mut().expect("an object").remove(optional);
    }
    for (line, body) in [
        ("PUT /v3/contacts/1010", contact.to_string()),
        ("POST /v3/chats/1/messages", r#"{"text":"oi","more":1}"#.to_owned()),
        ("PUT /v3/chats/1/tags", r#"{"tags":"vip","more":1}"#.to_owned()),
        ("POST /v3/chats/2/flow", r#"{"flowId":51,"more":1}"#.to_owned()),
        ("PUT /v3/chats/1/close", r#"{"sendFeedback":false,"more":1}"#.to_owned()),
        ("POST /v3/agents", r#"{"email":"new@x.example","type":1,"maxChats":5,"more":1}"#.to_owned()),
    ] {
        let answer = call(gateway.address, TOKEN, line, "en", &body).await;
        assert!((200..300).contains(&answer.status), "{line}: {} {}", answer.status, answer.text());
    }
    let log = json(&call(behind.address(), TOKEN, "GET /_sandbox/requests", "en", "").await);
    assert_eq!(undeclared_members(&Document::load("v2"), &log), Vec::<String>::new());
}

#[test]
fn no_operation_of_the_new_contract_is_left_out() {
    let pack = messaging_pack();
    let routes = &pack.directions[1].routes;
    assert_eq!(routes.len(), 37);
    let met: BTreeSet<_> = CASES
        .iter()
        .filter_map(|case| route_of(&pack, SideId::NEW, case.line).map(|route| &route.operation.key))
        .collect();
    let missing: Vec<_> =
        routes.iter().map(|route| &route.operation.key).filter(|key| !met.contains(key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

async fn sandbox() -> Sandbox {
    Sandbox::start(Options::default()).await.expect("it starts")
}

/// A gateway with one client of v3, which is the administrator at the sandbox's v2.
async fn before(sandbox: &Sandbox) -> Serving {
    let token = &sandbox.credentials().v2_token;
    let more = format!(
        "fronts: {{ /v3: {{ speaks: v3 }} }}\n\
         clients: [{{ name: new, v3_token: {TOKEN}, credentials: {{ v2: '{token}' }} }}]\n"
    );
    Serving::configured(sandbox.address(), &["v2"], &more).await
}

async fn call(address: SocketAddr, token: &str, line: &str, language: &str, body: &str) -> Answer {
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let fields = format!(
        "content-type: application/json\r\nauthorization: Bearer {token}\r\naccept-language: {language}\r\n"
    );
    let request = format!("{line} HTTP/1.1\r\nhost: service.test\r\n{fields}{length}\r\n{body}");
    exchange(address, request).await.expect("an answer")
}

/// Returns the faults of a refusal in the other languages of the pack.
async fn other_languages(address: SocketAddr, case: &Case) -> Option<String> {
    let mut texts = BTreeSet::new();
    for language in ["en", "pt-br", "es"] {
        let answer = call(address, TOKEN, case.line, language, case.body).await;
        if answer.status != 501 || !is_error_form(&json(&answer)) {
            return Some(format!("in {language}: {} {}", answer.status, answer.text()));
        }
        texts.insert(answer.text());
    }
    (texts.len() != 3).then(|| format!("the languages say the same: {texts:?}"))
}

fn compare(pack: &Pack, case: &Case, told: &Answer, got: &Answer) -> Vec<String> {
    let route = route_of(pack, SideId::NEW, case.line);
    let is_refused = route.is_some_and(|route| matches!(route.kind, RouteKind::Refuse(_)));
    let status = match case.expect {
        _ if is_refused => 501,
        Refused => 501,
        Same | But(_) => told.status,
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
    if got.status >= 400 {
        let is_form = is_error_form(&json(got));
        return if is_form { Vec::new() } else { vec![format!("an error in another form: {}", got.text())] };
    }
    let but: &[&str] = match case.expect {
        But(but) => but,
        Same | Refused => &[],
    };
    let nulls = route.map(written_nulls).unwrap_or_default();
    let is_expected = |difference: &Difference| {
        but.contains(&difference.place.as_str())
            || is_declared(pack, route, SideId::NEW, difference)
            || is_same_id(difference)
            || (difference.got == Some(Value::Null) && nulls.contains(&difference.place))
    };
    let found = differences(&json(told), &json(got));
    let mut faults: Vec<String> =
        found.iter().filter(|difference| !is_expected(difference)).map(ToString::to_string).collect();
    faults.dedup();
    faults
}
