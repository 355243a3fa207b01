//! The large state, and extreme input.

use super::Service;
use http::Method;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use switchback_sandbox::{Options, Size};

#[tokio::test]
async fn the_large_state_has_its_hundred_thousand_contacts_and_million_messages() {
    let service = Service::with(Options { size: Size::Large, ..Options::default() }).await;
    let last = service.read("/contacts?page=4999").await;
    assert_eq!(last.as_array().map(Vec::len), Some(20));
    assert_eq!(last[19]["id"], "101000");
    assert_eq!(service.read("/contacts?page=5000").await, json!([]));
    let email = last[19]["email"]
        .as_str()
        .or(last[18]["email"].as_str())
        .expect("one of two has an e-mail")
        .to_owned();
    assert_eq!(service.read(&format!("/contacts?email={email}")).await.as_array().map(Vec::len), Some(1));

    let chats = service.read("/chats?page=4999").await;
    assert_eq!(chats[19]["id"], 1, "the oldest chat is the last");
    // Chats come in pairs that hold twenty messages together; count a stretch of a hundred.
    let mut messages = 0;
    for chat in 50_001..=50_100 {
        messages +=
            service.read(&format!("/chats/{chat}/messages?page=0")).await.as_array().map_or(0, Vec::len);
    }
    assert_eq!(messages, 1000);
}

/// Any JSON, often an object with the fields of the document.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,12}".prop_map(Value::from),
        (0u64..120).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        let key = prop_oneof![
            "[a-z_]{1,8}",
            proptest::sample::select(vec![
                "text",
                "options",
                "hsm",
                "file",
                "template_id",
                "params",
                "header",
                "buttons",
                "type",
                "id",
                "title",
                "agentId",
                "flowId",
                "variables",
                "tags",
                "situation",
                "email",
                "name",
                "phone",
                "uuid",
                "comment",
                "mobile",
                "login",
                "department",
                "channelID",
                "tabulation",
                "sendFeedback",
                "maxChats",
                "stepId",
            ])
            .prop_map(str::to_owned),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(key, inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

#[test]
fn no_body_and_no_path_makes_it_stumble() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let service = runtime.block_on(Service::start());
    let account = service.account("administrator");
    let headers = [
        ("authorization", format!("Bearer {}", account.access_token)),
        ("x-authorization", format!("Bearer {}", account.v2_token)),
    ];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let paths = proptest::sample::select(vec![
        "/v3/chats",
        "/v3/chats/7",
        "/v3/chats/7/messages",
        "/v3/chats/7/transfer",
        "/v3/chats/7/flow",
        "/v3/chats/7/agent",
        "/v3/chats/7/read",
        "/v3/chats/7/tabulation",
        "/v3/chats/7/tags",
        "/v3/chats/7/queue",
        "/v3/chats/7/department",
        "/v3/chats/7/close",
        "/v3/chats/7/reopen",
        "/v3/chats/7/workflow",
        "/v3/chats/7/assignToMe",
        "/v3/agents",
        "/v3/agents/210",
        "/v3/agents/status",
        "/v3/contacts",
        "/v3/contacts/1005",
        "/v3/timeline/createComment/1005",
        "/v2/agents",
        "/v2/agents/211",
        "/v2/contacts",
        "/v2/contacts/1006",
        "/v2/chats/email",
        "/v2/chats/7/close",
        "/v2/chats/7/queue",
        "/v2/chats/7/messages",
        "/v2/chats/7/situation",
        "/v2/chats/7/tags",
        "/v2/chats/7/flow",
        "/v2/flows/51/contact/1007/exec",
        "/oauth/access_token",
        "/_sandbox/faults/x",
        "/_sandbox/differences/x",
    ]);
    let methods = proptest::sample::select(vec![Method::GET, Method::POST, Method::PUT, Method::DELETE]);
    let mut runner = TestRunner::new(Config { cases: 600, ..Config::default() });
    let outcome =
        runner.run(&(methods, paths, json_value(), "[ -~]{0,20}"), |(method, path, body, query)| {
            let query: String =
                query.chars().filter(|c| c.is_ascii_alphanumeric() || "=&%+".contains(*c)).collect();
            let target = format!("{path}?{query}");
            let answer = runtime
                .block_on(service.send(method, &target, &headers, body.to_string()))
                .expect("an answer");
            let status = answer.status.as_u16();
            prop_assert!(status < 500 || status == 501, "{status} for {target}: {body}");
            prop_assert!(answer.bytes.is_empty() || serde_json::from_slice::<Value>(&answer.bytes).is_ok());
            Ok(())
        });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}
