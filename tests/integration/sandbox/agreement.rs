//! Both versions have the same data: for each object of the seeded state, their common fields
//! agree.

use super::Service;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};
use switchback_sandbox::Options;
use tokio::runtime::Runtime;

/// Fields of a v2 shape, each with the place of the same thing in v3.
type Shared = &'static [(&'static str, &'static str)];

const CHAT: Shared = &[
    ("/id", "/id"),
    ("/agentId", "/agentId"),
    ("/secondAgentId", "/secondAgentId"),
    ("/contactId", "/contactId"),
    ("/departmentId", "/departmentId"),
    ("/tabulationId", "/tabulationId"),
    ("/channels", "/channels"),
    ("/queueNumber", "/queueNumber"),
    ("/createdAt", "/createdAt"),
    ("/updatedAt", "/updatedAt"),
    ("/attendedAt", "/attendedAt"),
    ("/closedAt", "/closedAt"),
];

const MESSAGE: Shared = &[
    ("/id", "/id"),
    ("/body", "/text"),
    ("/is_internal", "/isInternal"),
    ("/is_email", "/isEmail"),
    ("/sender", "/sender"),
    ("/senderType", "/senderType"),
    ("/receiver", "/receiver"),
    ("/receiverType", "/receiverType"),
    ("/file", "/file"),
    ("/channel", "/chat/channel"),
    ("/customer", "/chat/customer"),
    ("/chat/id", "/chat/id"),
    ("/chat/channel", "/chat/channel"),
    ("/chat/situation", "/chat/situation"),
    ("/chat/department", "/chat/department"),
    ("/chat/customer", "/chat/customer"),
    ("/send_at", "/sendAt"),
    ("/read_at", "/readAt"),
    ("/type", "/type"),
];

const AGENT_ITEM: Shared = &[("/id", "/id"), ("/name", "/name")];

const AGENT: Shared = &[
    ("/id", "/id"),
    ("/name", "/name"),
    ("/email", "/email"),
    ("/login", "/login"),
    ("/type", "/type"),
    ("/phone", "/phone"),
];

const CONTACT_ITEM: Shared =
    &[("/id", "/id"), ("/name", "/name"), ("/email", "/email"), ("/mobile", "/mobile"), ("/phone", "/phone")];

/// Intended differences: an absent birthday is null in v3, and missing custom fields are `[]` here
/// and null there.
fn check_contact(v2: &Value, v3: &Value) -> Result<(), TestCaseError> {
    check(CONTACT_ITEM, v2, v3)?;
    let birthday = v2.get("birthday").unwrap_or(&Value::Null);
    prop_assert_eq!(birthday, &v3["birthDate"]);
    let custom = if v2["customFields"] == json!([]) { &Value::Null } else { &v2["customFields"] };
    prop_assert_eq!(custom, &v3["customFields"]);
    if let Some(channels) = v2.get("channels") {
        prop_assert_eq!(channels, &v3["channelsSituation"]);
    }
    Ok(())
}

fn check(shared: Shared, v2: &Value, v3: &Value) -> Result<(), TestCaseError> {
    for (old, new) in shared {
        let (old_value, new_value) = (v2.pointer(old), v3.pointer(new));
        prop_assert!(old_value.is_some(), "v2 has no {} in {}", old, v2);
        prop_assert_eq!(old_value, new_value, "{} and {}", old, new);
    }
    Ok(())
}

/// Checks two lists entry by entry.
fn check_list(
    v2: &Value,
    v3: &Value,
    one: impl Fn(&Value, &Value) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let (v2, v3) = (v2.as_array().expect("a list"), v3.as_array().expect("a list"));
    prop_assert_eq!(v2.len(), v3.len());
    v2.iter().zip(v3).try_for_each(|(old, new)| one(old, new))
}

/// Runs a property over one service per seed, with a write or two before the reads.
fn agree<S: Strategy>(pick: S, property: impl Fn(&Runtime, &Service, S::Value) -> Result<(), TestCaseError>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for seed in [1, 99] {
        let service = runtime.block_on(Service::with(Options { seed, ..Options::default() }));
        runtime.block_on(async {
            service.v2("POST", "/chats/7/messages", json!({"text": "written"})).await.expect(201);
            service.v3("PUT", "/chats/8/reopen", Value::Null).await.expect(200);
            service.v3("PUT", "/chats/1/tabulation", json!({"tabulationId": 21})).await.expect(200);
            service.v2("PUT", "/contacts/1003", json!({"email": "changed@example.com"})).await.expect(204);
        });
        let mut runner = TestRunner::new(Config { cases: 48, ..Config::default() });
        let outcome = runner.run(&pick, |value| property(&runtime, &service, value));
        outcome.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

fn both(runtime: &Runtime, service: &Service, path: &str) -> (Value, Value) {
    runtime.block_on(async {
        let v2 = service.v2("GET", path, Value::Null).await.expect(200);
        (v2, service.read(path).await)
    })
}

#[test]
fn a_chat_is_the_same_chat() {
    agree(1u64..=130, |runtime, service, id| {
        let (v2, v3) = both(runtime, service, &format!("/chats/{id}"));
        check(CHAT, &v2, &v3)
    });
}

#[test]
fn lists_of_chats_are_the_same_lists() {
    agree(0u64..8, |runtime, service, page| {
        let (v2, v3) = both(runtime, service, &format!("/chats?page={page}"));
        check_list(&v2, &v3, |old, new| check(CHAT, old, new))
    });
}

#[test]
fn messages_are_the_same_messages() {
    agree((1u64..=130, 0u64..3), |runtime, service, (chat, page)| {
        let (v2, v3) = both(runtime, service, &format!("/chats/{chat}/messages?page={page}"));
        check_list(&v2, &v3, |old, new| check(MESSAGE, old, new))
    });
}

#[test]
fn the_long_chat_has_the_same_messages_throughout() {
    agree(0u64..150, |runtime, service, page| {
        let (v2, v3) = both(runtime, service, &format!("/chats/4/messages?page={page}"));
        prop_assert_eq!(v2.as_array().map(Vec::len), Some(20));
        check_list(&v2, &v3, |old, new| check(MESSAGE, old, new))
    });
}

#[test]
fn an_agent_is_the_same_agent() {
    let ids = prop_oneof![201u64..=204, 210u64..=234];
    agree((ids, 0u64..3), |runtime, service, (id, page)| {
        let (v2, v3) = both(runtime, service, &format!("/agents/{id}"));
        check(AGENT, &v2, &v3)?;
        let (v2, v3) = both(runtime, service, &format!("/agents?page={page}"));
        check_list(&v2, &v3, |old, new| check(AGENT_ITEM, old, new))
    });
}

#[test]
fn a_contact_is_the_same_contact() {
    agree((1001u64..=1090, 0u64..6), |runtime, service, (id, page)| {
        let (v2, v3) = both(runtime, service, &format!("/contacts/{id}"));
        check_contact(&v2, &v3)?;
        let (v2, v3) = both(runtime, service, &format!("/contacts?page={page}"));
        check_list(&v2, &v3, check_contact)
    });
}
