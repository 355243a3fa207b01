//! The archives of the gateway, as clients and operators see them: marks for records that the new
//! side cannot delete, and data that only the old side had.

use crate::contract_walk::document::{Document, Operation};
use crate::support::postgres;
use crate::support::program::Program;
use crate::support::raw::{Answer, Client, PATIENCE};
use crate::support::serving::Serving;
use crate::support::witness::json;
use serde_json::Value;
use std::net::SocketAddr;
use std::process::Output;
use switchback_gateway::secret::Secret;
use switchback_gateway::store::seal::SealingKey;
use switchback_sandbox::{Account, Options, Sandbox};

const MARK: &str = "x-switchback-approximate";

async fn sandbox() -> Sandbox {
    Sandbox::start(Options::default()).await.expect("it starts")
}

fn account<'s>(sandbox: &'s Sandbox, role: &str) -> &'s Account {
    sandbox.credentials().account(role).expect("every sandbox has one")
}

/// Two clients in front of v3 alone, `acme` and `other`, with these settings.
fn clients(sandbox: &Sandbox, settings: &str) -> String {
    let client = |name: &str, role: &str| {
        let Account { v2_token, access_token, .. } = account(sandbox, role);
        format!("- {{ name: {name}, v2_token: '{v2_token}', credentials: {{ v3: '{access_token}' }} }}\n")
    };
    format!(
        "settings: {{ agents.max_chats: 5, {settings} }}\nclients:\n{}{}",
        client("acme", "administrator"),
        client("other", "manager")
    )
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

/// As the v2 client `acme`, or as `other`.
struct Talk<'s> {
    address: SocketAddr,
    sandbox: &'s Sandbox,
}

impl Talk<'_> {
    async fn acme(&self, line: &str, body: &str) -> Answer {
        call(self.address, &account(self.sandbox, "administrator").v2_token, line, body).await
    }

    async fn other(&self, line: &str) -> Answer {
        call(self.address, &account(self.sandbox, "manager").v2_token, line, "").await
    }

    /// Ids of the contacts on the first page.
    async fn listed(&self) -> Vec<String> {
        ids(&json(&self.acme("GET /v2/contacts?page=0", "").await))
    }
}

fn ids(list: &Value) -> Vec<String> {
    let list = list.as_array().expect("a list");
    list.iter().map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contact_that_v2_deletes_is_gone_for_its_client_and_stays_gone() {
    let sandbox = sandbox().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = format!("sqlite:{}/store.db", folder.path().display());
    let key = SealingKey::generate();
    let more = clients(&sandbox, "contacts.deletable: true");
    let serve = || Serving::storing(sandbox.address(), &["v3"], (&store, &key), &more);
    let serving = serve().await;
    let talk = Talk { address: serving.address, sandbox: &sandbox };
    let before = talk.listed().await;
    let id = before[1].clone();
    let at = |method: &str| format!("{method} /v2/contacts/{id}");
    assert_eq!(talk.acme(&at("GET"), "").await.status, 200);

    let deleted = talk.acme(&at("DELETE"), "").await;
    assert_eq!((deleted.status, deleted.value(MARK)), (204, "contact_marked_deleted"), "{}", deleted.text());
    assert_eq!(deleted.text(), "");
    let gone = |answer: Answer| assert_eq!((answer.status, answer.text().as_str()), (404, GONE));
    gone(talk.acme(&at("GET"), "").await);
    gone(talk.acme(&at("PUT"), r#"{"name":"Ana"}"#).await);
    gone(talk.acme(&at("DELETE"), "").await);
    let left: Vec<String> = before.iter().filter(|one| **one != id).cloned().collect();
    assert_eq!(talk.listed().await, left);
    assert_eq!(
        talk.acme("DELETE /v2/contacts/999999", "").await.status,
        404,
        "nobody is marked who is not there"
    );
    assert_eq!(talk.acme("GET /v2/contacts/999999", "").await.value("x-switchback-approximate"), "");

    // Another client has not deleted it, and v3 has it still.
    assert_eq!(talk.other(&at("GET")).await.status, 200);
    assert!(ids(&json(&talk.other("GET /v2/contacts?page=0").await)).contains(&id));
    let v3 = &account(&sandbox, "administrator").access_token;
    assert_eq!(call(sandbox.address(), v3, &format!("GET /v3/contacts/{id}"), "").await.status, 200);

    // The mark outlives the gateway.
    drop(serving);
    let serving = serve().await;
    let talk = Talk { address: serving.address, sandbox: &sandbox };
    gone(talk.acme(&at("GET"), "").await);
    assert_eq!(talk.listed().await, left);
}

const GONE: &str = r#"{"reason":"This contact was deleted."}"#;

/// A contact with an open chat on the channel, an e-mail and a phone; flows run there while an
/// agent attends.
const ACTED_ON: &str = "1031";

/// The answers of v2 after the deletion of the contact, by operation.
struct Acting {
    operation: &'static str,
    line: &'static str,
    body: &'static str,
    /// While the contact is there, and after it was deleted.
    statuses: [u16; 2],
}

const ACTING: &[Acting] = &[
    Acting { operation: "GET /contacts/{id}", line: "GET /v2/contacts/1031", body: "", statuses: [200, 404] },
    Acting {
        operation: "PUT /contacts/{id}",
        line: "PUT /v2/contacts/1031",
        body: r#"{"name":"Ana"}"#,
        statuses: [204, 404],
    },
    Acting {
        operation: "POST /flows/{flowId}/contact/{contactId}/exec",
        line: "POST /v2/flows/51/contact/1031/exec",
        body: r#"{"whenInChat":true,"whenInAuto":true}"#,
        statuses: [200, 404],
    },
    // v2 makes a new contact and a new chat, and v3 can do neither.
    Acting {
        operation: "POST /chats/{channel}",
        line: "POST /v2/chats/whatsapp",
        body: r#"{"name":"Ana","phone":"79162838131","email":"client.1031@mail.example.com","message":"hi"}"#,
        statuses: [201, 501],
    },
    Acting {
        operation: "DELETE /contacts/{id}",
        line: "DELETE /v2/contacts/1031",
        body: "",
        statuses: [204, 404],
    },
];

/// Operations whose call holds what a contact is known by, and that act on none.
const ACT_ON_NOBODY: &[(&str, &str)] = &[
    ("POST /contacts", "makes a contact of its own, whoever else has the address"),
    ("POST /agents", "the e-mail is an agent's"),
];

/// Whether a call of the operation names a contact, as its contract shows: in its path, its query
/// or its body.
fn names_a_contact(document: &Document, operation: &Operation) -> bool {
    let segments: Vec<&str> = operation.template.split('/').collect();
    let in_path = segments
        .windows(2)
        .any(|pair| pair[0].trim_end_matches('s') == "contact" && pair[1].starts_with('{'));
    let known_by = ["contact", "contactId", "customer", "customerId", "email", "phone"];
    let in_query =
        document.parameters(operation, "query").any(|one| known_by.iter().any(|name| one["name"] == *name));
    let in_body = document
        .body_example(operation)
        .is_some_and(|(_, schema)| known_by.iter().any(|name| !schema["properties"][name].is_null()));
    in_path || in_query || in_body
}

/// The list of operations comes from the contract, so that a new one is not forgotten.
#[test]
fn every_operation_that_names_a_contact_is_tried_with_a_deleted_one() {
    let document = Document::load("v2");
    let naming: Vec<String> = document
        .operations
        .iter()
        .filter(|operation| names_a_contact(&document, operation))
        .map(ToString::to_string)
        .collect();
    let known: Vec<&str> = ACTING
        .iter()
        .map(|one| one.operation)
        .chain(ACT_ON_NOBODY.iter().map(|(operation, _)| *operation))
        .collect();
    let missing: Vec<_> = naming.iter().filter(|one| !known.contains(&one.as_str())).collect();
    assert!(missing.is_empty(), "neither tried nor excused: {missing:?}");
    assert_eq!(naming.len(), known.len(), "{naming:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_operation_acts_on_a_contact_that_v2_has_deleted() {
    let settings = "contacts.deletable: true, chats.open: true";
    for acting in ACTING {
        let sandbox = sandbox().await;
        let serving = Serving::configured(sandbox.address(), &["v3"], &clients(&sandbox, settings)).await;
        let talk = Talk { address: serving.address, sandbox: &sandbox };
        let before = talk.acme(acting.line, acting.body).await;
        assert_eq!(before.status, acting.statuses[0], "{}: {}", acting.line, before.text());
        if acting.operation != "DELETE /contacts/{id}" {
            let deleted = talk.acme(&format!("DELETE /v2/contacts/{ACTED_ON}"), "").await;
            assert_eq!(deleted.status, 204, "{}", deleted.text());
        }
        let own = Talk { address: sandbox.address(), sandbox: &sandbox };
        own.acme("DELETE /_sandbox/effects", "").await;
        let after = talk.acme(acting.line, acting.body).await;
        assert_eq!(after.status, acting.statuses[1], "{}: {}", acting.line, after.text());
        let effects = own.acme("GET /_sandbox/effects", "").await;
        assert_eq!(json(&effects), serde_json::json!([]), "{} has no effect", acting.line);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_setting_deleting_a_contact_is_refused() {
    let sandbox = sandbox().await;
    let serving = Serving::configured(sandbox.address(), &["v3"], &clients(&sandbox, "")).await;
    let talk = Talk { address: serving.address, sandbox: &sandbox };
    let id = talk.listed().await[0].clone();
    assert_eq!(talk.acme(&format!("DELETE /v2/contacts/{id}"), "").await.status, 501);
    assert_eq!(talk.acme(&format!("GET /v2/contacts/{id}"), "").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_gateway_keeps_the_next_request_of_another_sees() {
    let Some(database) = postgres::database() else { return };
    let sandbox = sandbox().await;
    let key: Secret<String> = SealingKey::generate();
    let more = clients(&sandbox, "contacts.deletable: true");
    let one = Serving::storing(sandbox.address(), &["v3"], (&database, &key), &more).await;
    let two = Serving::storing(sandbox.address(), &["v3"], (&database, &key), &more).await;
    let (one, two) =
        (Talk { address: one.address, sandbox: &sandbox }, Talk { address: two.address, sandbox: &sandbox });
    let listed = two.listed().await;
    for id in &listed[..5] {
        let at = format!("/v2/contacts/{id}");
        assert_eq!(two.acme(&format!("GET {at}"), "").await.status, 200);
        assert_eq!(one.acme(&format!("DELETE {at}"), "").await.status, 204);
        assert_eq!(two.acme(&format!("GET {at}"), "").await.status, 404, "at once");
    }
    assert_eq!(two.listed().await, listed[5..]);
}

/// A gateway in front of v3 alone, whose configuration and key verbs use, too.
struct Filled<'s> {
    sandbox: &'s Sandbox,
    serving: Serving,
}

impl Filled<'_> {
    fn arguments(&self, words: &[&str]) -> Vec<String> {
        let file = self.serving.folder.path().join("switchback.yaml");
        let config = ["--config".to_owned(), file.display().to_string()];
        ["archive"].iter().chain(words).map(|word| (*word).to_owned()).chain(config).collect()
    }

    fn old_service(&self) -> String {
        format!("http://{}/v2", self.sandbox.address())
    }

    /// `switchback archive` to its end.
    async fn archive(&self, words: &[&str]) -> Output {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_switchback"));
        command.args(self.arguments(words)).env("TEST_KEY", self.serving.key.expose());
        // Waiting blocks, and the sandbox may run on this very thread.
        let run = tokio::task::spawn_blocking(move || command.output());
        run.await.expect("it ends").expect("the binary of this build runs")
    }

    async fn status(&self) -> Value {
        let output = self.archive(&["status", "--format", "json"]).await;
        serde_json::from_slice(&output.stdout).expect("it prints JSON")
    }

    /// A harvest that is killed behind its first page.
    async fn begun(&self) {
        let old = self.old_service();
        let arguments = self.arguments(&["fill", "acme", "--rate", "50", "--upstream", &old]);
        let key = self.serving.key.expose().clone();
        let killing = tokio::task::spawn_blocking(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let program = Program::start(&arguments, &[("TEST_KEY", &key)]);
            program.stderr_until("next page 1");
            program.kill();
        });
        killing.await.expect("it read a page");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_v2_knew_is_served_after_its_end_with_its_age() {
    let sandbox = sandbox().await;
    let serving =
        Serving::configured(sandbox.address(), &["v3"], &clients(&sandbox, "chats.archived: true")).await;
    let filled = Filled { sandbox: &sandbox, serving };
    let gateway = Talk { address: filled.serving.address, sandbox: &sandbox };
    let old = Talk { address: sandbox.address(), sandbox: &sandbox };

    // A closed chat with an answered survey, and a chat of a customer of the site, as v2 shows them.
    let (mut surveyed, mut of_site) = (None, None);
    for page in 0.. {
        let chats = json(&old.acme(&format!("GET /v2/chats?page={page}"), "").await);
        let chats = chats.as_array().expect("a list").clone();
        for chat in &chats {
            if surveyed.is_none() && !chat["closedAt"].is_null() {
                let answer = old.acme(&format!("GET /v2/chats/{}/feedback", chat["id"]), "").await;
                surveyed = (answer.status == 200).then(|| (chat["id"].clone(), json(&answer)));
            }
            if of_site.is_none() && !chat["siteCustomerId"].is_null() {
                of_site = Some((chat["id"].clone(), chat["siteCustomerId"].clone()));
            }
        }
        if chats.len() < 20 || (surveyed.is_some() && of_site.is_some()) {
            break;
        }
    }
    let (chat, feedback) = surveyed.expect("the seed has an answered survey");
    let line = format!("GET /v2/chats/{chat}/feedback");
    assert_eq!(gateway.acme(&line, "").await.status, 501, "nothing is kept yet");

    filled.begun().await;
    let status = filled.status().await;
    assert_eq!(status["harvests"][0]["client"], "acme");
    assert_eq!(status["harvests"][0]["finished_ms"], Value::Null, "{status}");
    let ended =
        filled.archive(&["fill", "acme", "--rate", "1000", "--upstream", &filled.old_service()]).await;
    let (said, told) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success() && said.contains("to its end"), "{said}\n{told}");
    let text = feedback["text"].as_str().expect("a text");
    assert!(!said.contains(text) && !told.contains(text), "what is kept is not shown");
    let again = told.lines().any(|line| line.starts_with("chats:") && line.ends_with("next page 1"));
    assert!(!again, "it went on behind the first page:\n{told}");

    let kept = gateway.acme(&line, "").await;
    assert_eq!((kept.status, json(&kept)), (200, feedback.clone()), "{}", kept.text());
    assert!(kept.value("age").parse::<u64>().is_ok(), "{:?}", kept.values("age"));
    assert_eq!(kept.value(MARK), "chats_archived");
    if let Some((id, site)) = &of_site {
        let shown = gateway.acme(&format!("GET /v2/chats/{id}"), "").await;
        assert_eq!(json(&shown)["siteCustomerId"], *site);
        assert_eq!(shown.values("age").len(), 1);
    }
    assert_eq!(gateway.other(&line).await.status, 501, "it is for the client whose data it is");

    // It rests sealed.
    for entry in std::fs::read_dir(filled.serving.folder.path()).expect("a folder") {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let holds = bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!holds, "{} holds the text of a survey", path.display());
    }
    let again = filled.archive(&["fill", "acme", "--upstream", "http://127.0.0.1:9/v2"]).await;
    assert!(again.status.success(), "what is read to its end asks nobody");
    let cleared = filled.archive(&["clear", "acme", "feedback"]).await;
    assert!(cleared.status.success());
    assert_eq!(gateway.acme(&line, "").await.status, 501);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_internal_events_were_is_served_after_the_end_of_v2() {
    let sandbox = sandbox().await;
    let settings = clients(&sandbox, "messages.archived: true, lists.all_pages: true");
    let serving = Serving::configured(sandbox.address(), &["v3"], &settings).await;
    let filled = Filled { sandbox: &sandbox, serving };
    let gateway = Talk { address: filled.serving.address, sandbox: &sandbox };
    let old = Talk { address: sandbox.address(), sandbox: &sandbox };

    let kinds = |answer: &Answer| -> Vec<Value> {
        let messages = json(answer);
        messages.as_array().expect("a list").iter().map(|message| message["eventType"].clone()).collect()
    };
    let mut shown: Vec<(String, Vec<Value>)> = Vec::new();
    for id in ids_of_chats(&json(&old.acme("GET /v2/chats?page=0", "").await)) {
        let line = format!("GET /v2/chats/{id}/messages?page=0");
        let kinds = kinds(&old.acme(&line, "").await);
        shown.push((line, kinds));
    }
    assert!(shown.iter().flat_map(|(_, kinds)| kinds).any(Value::is_string), "the seed has internal events");
    assert!(shown.iter().flat_map(|(_, kinds)| kinds).any(Value::is_null), "and other messages");
    let (line, _) = shown.iter().find(|(_, kinds)| kinds.iter().any(Value::is_string)).expect("there is one");
    let before = gateway.acme(line, "").await;
    assert!(kinds(&before).iter().all(Value::is_null), "nothing is kept yet: {}", before.text());

    let old_service = filled.old_service();
    let ended = filled
        .archive(&["fill", "acme", "--harvest", "messages", "--rate", "1000", "--upstream", &old_service])
        .await;
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    for (line, before) in &shown {
        let answer = gateway.acme(line, "").await;
        assert_eq!(kinds(&answer), *before, "{line}");
        assert_eq!(answer.value(MARK), "messages_archived");
    }
    let all = gateway.acme(line.trim_end_matches("?page=0"), "").await;
    assert!(kinds(&all).iter().any(Value::is_string), "all pages show them too: {}", all.text());
    assert!(
        kinds(&gateway.other(line).await).iter().all(Value::is_null),
        "it is for the client it was read for"
    );
}

/// The seed has a chat of 3,000 messages, whose one internal event stands on the last of its 150 pages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_harvest_reads_long_lists_to_their_end() {
    let sandbox = sandbox().await;
    let settings = clients(&sandbox, "messages.archived: true");
    let serving = Serving::configured(sandbox.address(), &["v3"], &settings).await;
    let filled = Filled { sandbox: &sandbox, serving };
    let gateway = Talk { address: filled.serving.address, sandbox: &sandbox };
    let old = Talk { address: sandbox.address(), sandbox: &sandbox };
    let old_service = filled.old_service();
    let ended = filled
        .archive(&["fill", "acme", "--harvest", "messages", "--rate", "1000", "--upstream", &old_service])
        .await;
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.contains("to its end"), "{said}");
    for page in [0, 49, 50, 149] {
        let line = format!("GET /v2/chats/4/messages?page={page}");
        let kinds = |answer: &Answer| -> Vec<Value> {
            let messages = json(answer);
            messages.as_array().expect("a list").iter().map(|one| one["eventType"].clone()).collect()
        };
        let told = kinds(&old.acme(&line, "").await);
        assert_eq!(told.len(), 20);
        assert_eq!(kinds(&gateway.acme(&line, "").await), told, "{line}");
        assert_eq!(told.iter().any(Value::is_string), page == 149);
    }
    // The reported archive entries exist.
    let status = filled.status().await;
    let counts = status["archives"].as_array().expect("a list");
    let entries: i64 = counts.iter().filter_map(|count| count["entries"].as_i64()).sum();
    assert_eq!(status["harvests"][0]["kept"].as_i64(), Some(entries), "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_survey_that_nobody_answered_stays_404_and_v2_itself_answers_while_it_lives() {
    let sandbox = sandbox().await;
    let old = Talk { address: sandbox.address(), sandbox: &sandbox };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = format!("sqlite:{}/store.db", folder.path().display());
    let key = SealingKey::generate();
    let more = clients(&sandbox, "chats.archived: true");
    let serve = |sides: &'static [&'static str], more: String| {
        let (address, store, key) = (sandbox.address(), store.clone(), key.clone());
        async move { Serving::storing(address, sides, (&store, &key), &more).await }
    };
    // Two closed chats without a rating.
    let mut unrated = Vec::new();
    let chats = json(&old.acme("GET /v2/chats?page=0", "").await);
    for chat in chats.as_array().expect("a list").iter().filter(|chat| !chat["closedAt"].is_null()) {
        let line = format!("GET /v2/chats/{}/feedback", chat["id"]);
        if old.acme(&line, "").await.status == 404 {
            unrated.push((chat["id"].clone(), line));
        }
    }
    let [(rated_later, later), (_, never), ..] = unrated.as_slice() else {
        panic!("the seed has closed chats without an answer: {unrated:?}")
    };

    let alone = serve(&["v3"], more.clone()).await;
    let filled = Filled { sandbox: &sandbox, serving: alone };
    let gateway = Talk { address: filled.serving.address, sandbox: &sandbox };
    assert_eq!(gateway.acme(never, "").await.status, 501, "nobody has asked v2 yet");
    let of_chats = ["fill", "acme", "--harvest", "chats", "--rate", "1000", "--upstream"];
    let old_service = filled.old_service();
    let ended = filled.archive(&[&of_chats[..], &[&old_service]].concat()).await;
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let survey = r#"{"score":5,"text":"late"}"#;
    let rated = old.acme(&format!("POST /_sandbox/chats/{rated_later}/survey"), survey).await;
    assert!((200..300).contains(&rated.status), "{} {}", rated.status, rated.text());
    for line in [later, never] {
        let answer = gateway.acme(line, "").await;
        assert_eq!(answer.status, 404, "{line}: {}", answer.text());
        assert!(answer.value("age").parse::<u64>().is_ok(), "{:?}", answer.values("age"));
    }
    drop(filled);

    // If v2 is available too, its answer takes precedence over the archive.
    let both = serve(&["v2", "v3"], format!("{more}phases: {{ default: translated }}\n")).await;
    let gateway = Talk { address: both.address, sandbox: &sandbox };
    let answer = gateway.acme(later, "").await;
    assert_eq!((answer.status, &json(&answer)["text"]), (200, &Value::from("late")), "{}", answer.text());
    assert_eq!(answer.values("age"), Vec::<&str>::new(), "this is no archive's");
    assert_eq!(gateway.acme(never, "").await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_fills_of_one_harvest_one_gives_way() {
    let sandbox = sandbox().await;
    let serving =
        Serving::configured(sandbox.address(), &["v3"], &clients(&sandbox, "chats.archived: true")).await;
    let filled = Filled { sandbox: &sandbox, serving };
    let old = filled.old_service();
    let words = |rate| ["fill", "acme", "--harvest", "chats", "--rate", rate, "--upstream", &old];
    let slow = filled.arguments(&words("5"));
    let key = filled.serving.key.expose().clone();
    let starting = tokio::task::spawn_blocking(move || {
        let slow: Vec<&str> = slow.iter().map(String::as_str).collect();
        let program = Program::start(&slow, &[("TEST_KEY", &key)]);
        program.stderr_until("next page 1");
        program
    });
    let slow = starting.await.expect("it read a page");
    let quick = filled.archive(&words("1000")).await;
    let quick = (quick.status, String::from_utf8_lossy(&quick.stderr).into_owned());
    let slow = tokio::task::spawn_blocking(move || slow.ended()).await.expect("it ends");
    // Either may lose the race for a page: the slow one usually does, and the quick one where the
    // slow one stores its page while the quick one reads the same.
    let (won, lost) = if quick.0.success() { (quick, slow) } else { (slow, quick) };
    assert!(won.0.success(), "{}", won.1);
    assert!(!lost.0.success() && lost.1.contains("another `archive fill` reads it"), "{}", lost.1);
    let row = filled.status().await["harvests"][0].clone();
    assert_eq!((&row["elements"], &row["page"]), (&Value::from(130), &Value::from(7)), "{row}");
}

fn ids_of_chats(list: &Value) -> Vec<String> {
    list.as_array().expect("a list").iter().map(|chat| chat["id"].to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_harvest_says_what_it_lacks() {
    let sandbox = sandbox().await;
    let serving =
        Serving::configured(sandbox.address(), &["v3"], &clients(&sandbox, "chats.archived: true")).await;
    let filled = Filled { sandbox: &sandbox, serving };
    let cases: [(&[&str], &str); 4] = [
        (&["fill", "nobody"], "nobody"),
        (&["fill", "acme"], "`upstreams` names no v2: say where it is with --upstream URL"),
        (&["fill", "acme", "--harvest", "chat"], "the pack has no harvest `chat`; it has chats, messages"),
        (&["fill", "acme", "--token", "env:NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE is not set"),
    ];
    for (words, said) in cases {
        let output = filled.archive(words).await;
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(said), "{words:?}: {told}");
    }
    let status = filled.archive(&["status"]).await;
    assert_eq!(String::from_utf8_lossy(&status.stdout), "No entries.\n");
}

#[test]
fn the_report_says_what_is_served_with_the_settings_on_and_what_is_kept() {
    let report = |settings: &[&str]| -> Value {
        let set = settings.iter().flat_map(|setting| ["--set", setting]);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_switchback"));
        command.args(["report", "mappings/messaging", "--format", "json"]).args(set);
        let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("it prints JSON")
    };
    let row = |report: &Value, operation: &str| {
        let operations = report["sides"][0]["operations"].as_array().expect("a list").clone();
        operations.into_iter().find(|one| one["operation"] == operation).expect("it is there")
    };
    let verdict = |report: &Value, operation: &str| row(report, operation)["verdict"].clone();
    let (off, on) = (report(&[]), report(&["contacts.deletable=true", "chats.archived=true"]));
    let cases = [("DELETE /contacts/{id}", "different"), ("GET /chats/{id}/feedback", "partly")];
    for (operation, kept) in cases {
        assert_eq!(verdict(&on, operation), kept, "{operation}");
        assert_ne!(verdict(&off, operation), kept, "{operation}");
    }
    // Data of v2 about a chat is absent without its archive; with it, only if the chat was not read
    // before.
    for (report, always) in [(&off, true), (&on, false)] {
        let chat = row(report, "GET /chats/{id}");
        let missing = chat["without_source"].as_array().expect("a list");
        assert!(!missing.is_empty() && missing.iter().all(|field| field["always"] == always), "{chat}");
    }
    let marks =
        off["archives"].as_array().expect("a list").iter().find(|one| one["archive"] == "deleted_contacts");
    let marks = marks.expect("it is kept");
    assert_eq!((&marks["values"], &marks["filled_by"]), (&Value::Bool(false), &serde_json::json!([])));
    let read_by: Vec<_> =
        marks["read_by"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let all = [
        "v2 GET /contacts",
        "v2 GET /contacts/{id}",
        "v2 PUT /contacts/{id}",
        "v2 DELETE /contacts/{id}",
        "v2 POST /flows/{flowId}/contact/{contactId}/exec",
        "v2 POST /chats/{channel}",
    ];
    assert!(all.iter().all(|one| read_by.contains(one)), "{read_by:?}");
    let surveys = off["archives"].as_array().expect("a list").iter().find(|one| one["archive"] == "feedback");
    assert_eq!(surveys.expect("it is kept")["filled_by"], serde_json::json!(["chats"]));
}

/// PostgreSQL behind a socket of the test's own, which can be taken away.
struct Cut {
    folder: tempfile::TempDir,
    /// Where PostgreSQL is.
    behind: std::path::PathBuf,
    passing: tokio::task::JoinHandle<()>,
}

const SOCKET: &str = ".s.PGSQL.5432";

impl Cut {
    /// Before the PostgreSQL of this address; gives its own.
    fn before(database: &str) -> (Cut, String) {
        let (address, behind) = database.split_once("?host=").expect("it is reached by a socket");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let own = format!("{address}?host={}", folder.path().display());
        let behind = std::path::Path::new(behind).join(SOCKET);
        let passing = pass(folder.path().join(SOCKET), behind.clone());
        (Cut { folder, behind, passing }, own)
    }

    async fn take_away(&mut self) {
        self.passing.abort();
        let _ = (&mut self.passing).await;
        std::fs::remove_file(self.folder.path().join(SOCKET)).expect("it was there");
    }

    fn give_back(&mut self) {
        self.passing = pass(self.folder.path().join(SOCKET), self.behind.clone());
    }
}

/// Forwards connections until it is aborted, and then closes all of them.
fn pass(from: std::path::PathBuf, to: std::path::PathBuf) -> tokio::task::JoinHandle<()> {
    let listener = tokio::net::UnixListener::bind(from).expect("the folder is ours");
    tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((mut client, _)) = listener.accept().await {
            let to = to.clone();
            connections.spawn(async move {
                let Ok(mut server) = tokio::net::UnixStream::connect(to).await else { return };
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    })
}

/// A failed lookup does not count as absent: no contact is marked twice, and no marked contact is
/// displayed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_store_is_away_what_looks_into_an_archive_is_told_to_come_back() {
    let Some(database) = postgres::database() else { return };
    let (mut cut, store) = Cut::before(&database);
    let sandbox = sandbox().await;
    let key = SealingKey::generate();
    let more = clients(&sandbox, "contacts.deletable: true");
    let serving = Serving::storing(sandbox.address(), &["v3"], (&store, &key), &more).await;
    let talk = Talk { address: serving.address, sandbox: &sandbox };
    let listed = talk.listed().await;
    let (gone, id) = (&listed[0], &listed[1]);
    assert_eq!(talk.acme(&format!("DELETE /v2/contacts/{gone}"), "").await.status, 204);

    cut.take_away().await;
    for line in [format!("DELETE /v2/contacts/{id}"), format!("GET /v2/contacts/{gone}")] {
        let answer = talk.acme(&line, "").await;
        assert_eq!(answer.status, 503, "{line}: {}", answer.text());
        assert_ne!(answer.value("retry-after"), "", "{line}");
    }
    assert_eq!(talk.acme("GET /v2/agents", "").await.status, 200, "what needs no archive goes on");

    cut.give_back();
    let coming_back = async {
        while talk.acme(&format!("GET /v2/contacts/{id}"), "").await.status != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, coming_back).await.expect("the store is there again");
    assert_eq!(talk.acme(&format!("GET /v2/contacts/{gone}"), "").await.status, 404);
    assert_eq!(talk.acme(&format!("DELETE /v2/contacts/{id}"), "").await.status, 204);
}
