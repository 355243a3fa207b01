//! Settings of the built-in pack: refused operations are served from data of the new side, and
//! marked. Each situation is compared with the sandbox's own old side, which starts from the same
//! seed.

use crate::support::raw::{Answer, Client};
use crate::support::serving::{self, Serving, start as serve};
use crate::support::witness::json;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::{Command, Output};
use switchback::app::builtin;
use switchback_compiler::mapping;
use switchback_plan::SideId;
use switchback_sandbox::{Account, Options, Sandbox};

const MARK: &str = "x-switchback-approximate";

async fn sandbox() -> Sandbox {
    Sandbox::start(Options::default()).await.expect("it starts")
}

fn administrator(sandbox: &Sandbox) -> &Account {
    sandbox.credentials().account("administrator").expect("every sandbox has one")
}

/// A gateway in front of v3 alone, with these settings in addition to the required one.
async fn gateway(sandbox: &Sandbox, settings: &str) -> Serving {
    // Several gateways may use one sandbox, so none has a refresh token that can be spent only once.
    let Account { v2_token, access_token, .. } = administrator(sandbox);
    let clients = format!(
        "clients: [{{ name: acme, v2_token: '{v2_token}', credentials: {{ v3: '{access_token}' }} }}]\n"
    );
    let more = format!("settings: {{ agents.max_chats: 5, {settings} }}\n{clients}");
    Serving::configured(sandbox.address(), &["v3"], &more).await
}

async fn call(address: SocketAddr, token: &str, line: &str, body: &str) -> Answer {
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let fields = format!(
        "content-type: application/json\r\nx-authorization: Bearer {token}\r\nauthorization: Bearer {token}\r\n{length}"
    );
    let mut client = Client::connect(address).await;
    client.send(format!("{line} HTTP/1.1\r\nhost: service.test\r\n{fields}\r\n{body}")).await;
    client.answer().await.expect("it answers")
}

/// As a client of the old side.
async fn v2(address: SocketAddr, sandbox: &Sandbox, line: &str, body: &str) -> Answer {
    call(address, &administrator(sandbox).v2_token, line, body).await
}

/// As a direct client of the new side.
async fn v3(sandbox: &Sandbox, line: &str) -> Value {
    json(&call(sandbox.address(), &administrator(sandbox).access_token, line, "").await)
}

/// The calls that change something which the sandbox got, in order.
async fn writes(sandbox: &Sandbox) -> Vec<String> {
    let log = json(&v2(sandbox.address(), sandbox, "GET /_sandbox/requests", "").await);
    let calls = log.as_array().or_else(|| log["requests"].as_array()).expect("a list of requests");
    let of_v3 = calls.iter().filter(|call| {
        call["method"] != "GET" && call["path"].as_str().is_some_and(|path| path.starts_with("/v3/"))
    });
    let line = |call: &Value| {
        format!("{} {}", call["method"].as_str().unwrap_or(""), call["path"].as_str().unwrap_or(""))
    };
    of_v3.map(line).collect()
}

/// A contact with only closed chats on a channel: the contact in v2's form, the name of the
/// channel, the last chat.
async fn former_customer(sandbox: &Sandbox) -> (Value, &'static str, Value) {
    for id in 1001..1080 {
        let contact = json(&v2(sandbox.address(), sandbox, &format!("GET /v2/contacts/{id}"), "").await);
        let known = |field: &str| contact[field].as_str().is_some_and(|text| !text.is_empty());
        if !known("email") || !known("phone") {
            continue;
        }
        for channel in ["email", "whatsapp"] {
            let chats = v3(sandbox, &format!("GET /v3/chats?customer={id}&channel={channel}")).await;
            let chats = chats.as_array().expect("a list");
            let last = chats.iter().max_by_key(|chat| chat["createdAt"].as_str().map(str::to_owned));
            if let Some(last) = last.filter(|_| chats.iter().all(|chat| !chat["closedAt"].is_null())) {
                return (contact.clone(), channel, last.clone());
            }
        }
    }
    panic!("the seed has nobody whose chats are all closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_that_v2_opens_is_the_last_one_of_the_contact_opened_again() {
    let (own, behind) = (sandbox().await, sandbox().await);
    let (contact, channel, last) = former_customer(&own).await;
    let asked = serde_json::json!({
        "name": contact["name"], "phone": contact["phone"], "email": contact["email"],
        "subject": "Pedido 1234", "message": "Olá! 😕",
    });
    let line = format!("POST /v2/chats/{channel}");
    let gateway = gateway(&behind, "chats.open: true").await;
    let told = v2(own.address(), &own, &line, &asked.to_string()).await;
    let got = v2(gateway.address, &behind, &line, &asked.to_string()).await;
    assert_eq!((told.status, got.status), (201, 201), "{} {}", told.text(), got.text());
    assert_eq!(got.value(MARK), "last_chat");
    let (told, got) = (json(&told), json(&got));
    let names = |chat: &Value| chat.as_object().map(|chat| chat.keys().cloned().collect::<BTreeSet<_>>());
    assert_eq!(names(&told), names(&got), "a chat just created has the same fields");
    for field in ["contactId", "closedAt", "siteCustomerId", "messengerId"] {
        assert_eq!(told[field], got[field], "{field}");
    }
    assert_eq!(told["channels"][0]["type"], got["channels"][0]["type"]);
    assert_eq!(got["id"], last["id"], "no chat is made up");
    let newest = |chat: &Value| format!("GET /v2/chats/{}/messages", chat["id"]);
    let said = json(&v2(own.address(), &own, &newest(&told), "").await);
    let heard = json(&v2(behind.address(), &behind, &newest(&got), "").await);
    let text = |messages: &Value| {
        let messages = messages.as_array().expect("a list").iter();
        messages.filter(|m| m["type"] != "internalEvent").map(|m| m["body"].clone()).next()
    };
    assert_eq!(text(&said), text(&heard), "the same text was sent");
    let id = &last["id"];
    assert_eq!(
        writes(&behind).await,
        [format!("PUT /v3/chats/{id}/reopen"), format!("POST /v3/chats/{id}/messages")],
        "no contact was made, and nothing else was touched"
    );
}

/// v3 filters chats by four channels; for others, the channel is read from the chats themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_chat_is_found_on_channels_that_v3_has_no_filter_for() {
    let behind = sandbox().await;
    let gateway = gateway(&behind, "chats.open: true").await;
    let open = [("widget", 1029, 119), ("instagram", 1039, 129), ("whatsapp-enterprise", 1031, 121)];
    for (channel, contact, chat) in open {
        let contact = json(&v2(behind.address(), &behind, &format!("GET /v2/contacts/{contact}"), "").await);
        let asked = serde_json::json!({
            "name": contact["name"], "phone": contact["phone"], "email": contact["email"], "message": "Olá!",
        });
        let got =
            v2(gateway.address, &behind, &format!("POST /v2/chats/{channel}"), &asked.to_string()).await;
        assert_eq!((got.status, &json(&got)["id"]), (201, &Value::from(chat)), "{channel}: {}", got.text());
        assert_eq!(v3(&behind, &format!("GET /v3/chats/{chat}")).await["channel"], channel);
        // A chat on another channel is not taken for one on this.
        let other = v2(gateway.address, &behind, "POST /v2/chats/voip", &asked.to_string()).await;
        assert_ne!(json(&other)["id"], Value::from(chat), "{channel}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sent_when_a_chat_is_opened_is_sent_once_whatever_the_client_repeats() {
    let behind = sandbox().await;
    let (contact, channel, last) = former_customer(&behind).await;
    let gateway = gateway(&behind, "chats.open: true").await;
    let fault = r#"{"side":"v3","method":"GET","path":"/chats/{id}","count":1,"action":{"status":{"code":423,"body":{"reason":"later"}}}}"#;
    v2(behind.address(), &behind, "POST /_sandbox/faults", fault).await;
    let asked = serde_json::json!({
        "name": contact["name"], "phone": contact["phone"], "email": contact["email"], "message": "Olá!",
    });
    let line = format!("POST /v2/chats/{channel}");
    let first = v2(gateway.address, &behind, &line, &asked.to_string()).await;
    assert_eq!((first.status, first.text().as_str()), (423, r#"{"reason":"later"}"#));
    let second = v2(gateway.address, &behind, &line, &asked.to_string()).await;
    assert_eq!((second.status, &json(&second)["id"]), (201, &last["id"]), "{}", second.text());
    let sent = writes(&behind).await;
    assert_eq!(sent.iter().filter(|line| line.ends_with("/messages")).count(), 1, "{sent:?}");
}

/// A contact with chats on two channels: the contact in v2's form.
async fn customer_of_two_channels(sandbox: &Sandbox) -> Value {
    for id in 1001..1080 {
        let contact = json(&v2(sandbox.address(), sandbox, &format!("GET /v2/contacts/{id}"), "").await);
        let known = |field: &str| contact[field].as_str().is_some_and(|text| !text.is_empty());
        let mut channels = 0;
        for channel in ["email", "whatsapp"] {
            let chats = v3(sandbox, &format!("GET /v3/chats?customer={id}&channel={channel}")).await;
            channels += usize::from(chats.as_array().is_some_and(|chats| !chats.is_empty()));
        }
        if known("email") && known("phone") && channels == 2 {
            return contact;
        }
    }
    panic!("the seed has nobody with chats on two channels");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_to_another_channel_or_of_another_kind_is_not_answered_by_one_that_was_sent() {
    let behind = sandbox().await;
    let contact = customer_of_two_channels(&behind).await;
    let gateway = gateway(&behind, "chats.open: true").await;
    let asked = |internal: bool| {
        serde_json::json!({
            "name": contact["name"], "phone": contact["phone"], "email": contact["email"], "message": "hi",
            "isInternal": internal,
        })
    };
    let mut chats = BTreeSet::new();
    for (number, (channel, internal)) in
        [("email", false), ("whatsapp", false), ("whatsapp", true)].into_iter().enumerate()
    {
        let fault = r#"{"side":"v3","method":"GET","path":"/chats/{id}","count":1,"action":{"status":{"code":423,"body":{"reason":"later"}}}}"#;
        v2(behind.address(), &behind, "POST /_sandbox/faults", fault).await;
        let line = format!("POST /v2/chats/{channel}");
        let first = v2(gateway.address, &behind, &line, &asked(internal).to_string()).await;
        assert_eq!(first.status, 423, "{channel} {internal}: {}", first.text());
        let sent = writes(&behind).await.into_iter().filter(|line| line.ends_with("/messages"));
        let sent: Vec<String> = sent.collect();
        assert_eq!(sent.len(), number + 1, "{channel} {internal}: {sent:?}");
        chats.extend(sent);
    }
    assert_eq!(chats.len(), 2, "one chat on each channel: {chats:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_where_no_chat_can_be_opened() {
    let behind = sandbox().await;
    let (contact, channel, _) = former_customer(&behind).await;
    let on = gateway(&behind, "chats.open: true").await;
    let off = gateway(&behind, "chats.open: false").await;
    let known = serde_json::json!({"name": "a", "phone": contact["phone"], "email": contact["email"]});
    let stranger = r#"{"name":"a","phone":"5500000000001","email":"nobody@example.test","message":"hi"}"#;
    let mistyped = serde_json::json!({"name": "a", "phone": 1, "email": contact["email"], "message": "hi"});
    for (gateway, line, body, status) in [
        (&on, format!("POST /v2/chats/{channel}"), stranger.to_owned(), 501),
        (&on, "POST /v2/chats/carrier-pigeon".to_owned(), known.to_string(), 501),
        (&on, format!("POST /v2/chats/{channel}"), mistyped.to_string(), 400),
        (&on, format!("POST /v2/chats/{channel}"), r#"{"name":"a"}"#.to_owned(), 400),
        (&off, format!("POST /v2/chats/{channel}"), known.to_string(), 501),
    ] {
        let got = v2(gateway.address, &behind, &line, &body).await;
        assert_eq!(got.status, status, "{line} {body}: {}", got.text());
        assert_eq!(got.values(MARK), Vec::<&str>::new(), "a refusal approximates nothing");
    }
    assert_eq!(writes(&behind).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_without_an_open_chat_runs_in_the_last_one_where_that_is_wanted() {
    let behind = sandbox().await;
    let (contact, _, last) = former_customer(&behind).await;
    let uuid = &last["channels"][0]["uuid"];
    let id = contact["id"].as_str().expect("an id is a text");
    let (line, body) = (format!("POST /v2/flows/51/contact/{id}/exec"), format!(r#"{{"uuid":{uuid}}}"#));
    let refused = v2(gateway(&behind, "flows.reopen: false").await.address, &behind, &line, &body).await;
    assert_eq!(refused.status, 501, "{}", refused.text());
    let got = v2(gateway(&behind, "flows.reopen: true").await.address, &behind, &line, &body).await;
    assert_eq!((got.status, got.value(MARK)), (200, "last_chat"), "{}", got.text());
    assert_eq!(json(&got)["chatID"], last["id"]);
    let shown = v3(&behind, &format!("GET /v3/chats/{}", last["id"])).await;
    assert!(shown["closedAt"].is_null(), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn situations_are_set_as_far_as_the_operator_lets_them_and_are_marked() {
    let (own, behind) = (sandbox().await, sandbox().await);
    let (.., closed) = former_customer(&own).await;
    let settings = "situation: { reopen: true, in_chat_agent: 203, auto_flow: 51 }";
    let (all, none) = (
        gateway(&behind, settings).await,
        gateway(&behind, "situation: { queue_is_waiting: false, in_chat: false }").await,
    );
    let line = format!("POST /v2/chats/{}/situation", closed["id"]);
    let set = |situation: &str| format!(r#"{{"situation":"{situation}"}}"#);
    for situation in ["wait_for_chat", "in_chat", "auto"] {
        let got = v2(none.address, &behind, &line, &set(situation)).await;
        assert_eq!(got.status, 501, "{situation}: {}", got.text());
    }
    assert_eq!(writes(&behind).await, Vec::<String>::new());
    for situation in ["wait_for_chat", "auto", "in_chat"] {
        let (told, got) = (
            v2(own.address(), &own, &line, &set(situation)).await,
            v2(all.address, &behind, &line, &set(situation)).await,
        );
        assert_eq!((told.status, got.status), (201, 201), "{situation}: {}", got.text());
        assert_eq!(got.values(MARK).len(), 1, "{situation} is an approximation");
        let path = format!("GET /v3/chats/{}", closed["id"]);
        let (left, right) = (v3(&own, &path).await, v3(&behind, &path).await);
        assert_eq!(left["situation"], right["situation"], "{situation}");
        assert!(right["closedAt"].is_null());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_without_a_page_has_all_pages_where_that_is_wanted() {
    let behind = sandbox().await;
    let gateway = gateway(&behind, "lists.all_pages: true").await;
    for list in ["/v2/contacts", "/v2/agents"] {
        let mut pages = Vec::new();
        for page in 0.. {
            let line = format!("GET {list}?page={page}");
            let page = json(&v2(behind.address(), &behind, &line, "").await);
            let entries = page.as_array().expect("a list").clone();
            if entries.is_empty() {
                break;
            }
            let same = json(&v2(gateway.address, &behind, &line, "").await);
            assert_eq!(same.as_array().map(Vec::len), Some(entries.len()), "{line} is that page alone");
            pages.extend(entries);
        }
        let whole = json(&v2(gateway.address, &behind, &format!("GET {list}"), "").await);
        assert!(pages.len() > 20, "{list} is longer than a page");
        let ids = |entries: &[Value]| entries.iter().map(|entry| entry["id"].clone()).collect::<Vec<_>>();
        assert_eq!(ids(whole.as_array().expect("a list")), ids(&pages), "{list}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_fields_by_their_own_call_are_those_that_v2_shows() {
    let behind = sandbox().await;
    let gateway = gateway(&behind, "contacts.custom_fields_by_call: true").await;
    let mut with_fields = 0;
    for id in 1001..1030 {
        let line = format!("GET /v2/contacts/{id}");
        let told = v2(behind.address(), &behind, &line, "").await;
        let got = v2(gateway.address, &behind, &line, "").await;
        assert_eq!((told.status, json(&told)), (got.status, json(&got)), "{line}");
        with_fields += usize::from(json(&told)["customFields"].is_object());
    }
    assert!(with_fields > 0, "some have fields");
}

/// For clients that accept only integers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_are_integers_where_old_clients_need_them_so() {
    let behind = sandbox().await;
    let (usual, strict) =
        (gateway(&behind, "lists.all_pages: false").await, gateway(&behind, "ids.as_integers: true").await);
    let ids = |answer: &Answer| -> Vec<Value> {
        assert!(answer.status < 300, "{}", answer.text());
        let body = json(answer);
        body.as_array()
            .map_or_else(|| vec![body["id"].clone()], |all| all.iter().map(|one| one["id"].clone()).collect())
    };
    let number = |id: &Value| id.as_str().map_or_else(|| id.clone(), |text| text.parse().expect("a number"));
    for line in ["GET /v2/agents", "GET /v2/agents/203", "GET /v2/contacts?page=1", "GET /v2/contacts/1001"] {
        let (shown, asked) = (
            ids(&v2(usual.address, &behind, line, "").await),
            ids(&v2(strict.address, &behind, line, "").await),
        );
        assert!(asked.iter().all(Value::is_u64), "{line}: {asked:?}");
        assert_eq!(shown.iter().map(number).collect::<Vec<_>>(), asked, "{line}");
        assert_eq!(shown.iter().any(Value::is_string), line != "GET /v2/agents", "{line}: v3 shows texts");
    }
    let new = r#"{"name":"Zoë","phone":"34911222333","email":"zoe@example.com"}"#;
    let made = v2(strict.address, &behind, "POST /v2/contacts", new).await;
    assert!(json(&made)[0]["id"].is_u64() && json(&made)[0]["companyID"].is_u64(), "{}", made.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_are_for_good_from_the_day_that_the_operator_gives() {
    let behind = sandbox().await;
    for (day, status) in [("'2020-01-31'", 410), ("'2999-12-31'", 501), ("null", 501)] {
        let gateway = gateway(&behind, &format!("refusals.final_from: {day}")).await;
        let got = v2(gateway.address, &behind, "DELETE /v2/contacts/1001", "").await;
        assert_eq!(got.status, status, "{day}: {}", got.text());
    }
}

#[test]
fn a_setting_that_there_is_not_is_shown_where_it_stands_with_the_nearest_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let settings =
        "settings:\n  agents.max_chats: 5\n  situation:\n    in_chat_agnet: 203\n    auto_flow: yes please\n";
    let file = serving::write(folder.path(), "127.0.0.1:9", settings);
    let (status, log) = serve(&file, &["--check"]).ended();
    assert_eq!(status.code(), Some(1), "{log}");
    for part in [
        "switchback.yaml:9:20",
        "the pack reads no setting `situation.in_chat_agnet`",
        "did you mean `situation.in_chat_agent`?",
        "switchback.yaml:10:16",
        "the setting `situation.auto_flow` is a whole number",
    ] {
        assert!(log.contains(part), "{part} in {log}");
    }
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_switchback")).args(arguments).output().expect("the program starts")
}

#[test]
fn the_report_says_what_can_be_set_and_what_becomes_of_the_operations_then() {
    let said = |arguments: &[&str]| {
        let output = run(&[&["report", "mappings/messaging", "--format", "json"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("it is JSON")
    };
    let (before, after) = (said(&[]), said(&["--set", "chats.open=true", "--set", "flows.reopen=true"]));
    let opening = |report: &Value| {
        let operations = report["sides"][0]["operations"].as_array().expect("a list").clone();
        let wanted = |operation: &&Value| operation["operation"] == "POST /chats/{channel}";
        operations.iter().find(wanted).expect("every operation is there").clone()
    };
    assert_eq!(opening(&before)["verdict"], "not possible");
    assert_eq!(opening(&before)["instead"][0]["setting"], "chats.open");
    assert_eq!(opening(&before)["instead"][0]["verdict"], "partly");
    assert_eq!(opening(&after)["verdict"], "partly");
    assert_eq!(before["sides"][0]["refused"].as_u64(), after["sides"][0]["refused"].as_u64().map(|n| n + 1));
    let settings = before["settings"].as_array().expect("a list");
    let open = settings.iter().find(|setting| setting["setting"] == "chats.open").expect("it is listed");
    assert_eq!(open["switches"], serde_json::json!(["v2 POST /chats/{channel}"]));
    assert!(settings.iter().any(|setting| setting["reading"] == "A22"));
    let wrong = run(&["report", "mappings/messaging", "--set", "chats.opne=true"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("no setting `chats.opne`"));
}

#[test]
fn the_built_in_pack_can_be_had_as_files_and_overwrites_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let to = folder.path().join("my-pack");
    let path = to.to_str().expect("temporary folders have plain names");
    let output = run(&["pack", "export", path]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(run(&["check", path]).status.success(), "it compiles as it is");
    std::fs::write(to.join("pack.yaml"), "mine").expect("the file is there");
    assert_eq!(run(&["pack", "export", path]).status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(to.join("pack.yaml")).expect("it is a text"), "mine");
}

#[test]
fn each_setting_is_known_to_be_read_where_its_side_is_served() {
    let compiled = mapping::compile(&builtin::source());
    let pack = compiled.pack.expect("the built-in pack compiles");
    let sides = [("v2", pack.settings_read(SideId::OLD)), ("v3", pack.settings_read(SideId::NEW))];
    let read_by = |at: usize| -> Vec<&str> {
        sides
            .iter()
            .filter(|(_, read)| read.iter().any(|one| usize::from(*one) == at))
            .map(|(side, _)| *side)
            .collect()
    };
    for (what, name, wanted) in [
        ("what a shape builds with", "agents.max_chats", vec!["v2"]),
        ("what chooses a route", "lists.all_pages", vec!["v2"]),
        ("a condition within a body", "contacts.nulls_as_texts", vec!["v2"]),
        ("a value of a body", "situation.auto_flow", vec!["v2"]),
        ("a column of a table", "flows.reopen", vec!["v2"]),
        ("what takes a check away", "close.comment_as_message", vec!["v3"]),
        ("a condition of a call", "agents.details", vec!["v3"]),
        ("the day of refusals", "refusals.final_from", vec!["v2", "v3"]),
    ] {
        let at = pack.settings.iter().position(|setting| *setting.name == *name);
        assert_eq!(read_by(at.unwrap_or_else(|| panic!("there is {name}"))), wanted, "{what}: {name}");
    }
    for (at, setting) in pack.settings.iter().enumerate() {
        assert!(!read_by(at).is_empty(), "nobody reads {}", setting.name);
    }
}
