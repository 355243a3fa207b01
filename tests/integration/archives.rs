//! What the gateway keeps of its own, as clients and operators see it: marks for what the new side cannot delete, and what only
//! the old side knew.

use crate::support::postgres;
use crate::support::raw::{Answer, Client};
use crate::support::serving::Serving;
use crate::support::witness::json;
use serde_json::Value;
use std::net::SocketAddr;
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
