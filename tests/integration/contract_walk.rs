//! Calls every operation of both contracts of the messaging pack on a running sandbox: success and
//! every documented error that can be provoked. Each answer must be listed in the contract, with a
//! valid body. The operations are counted from the contracts, so that an operation without a call
//! fails the test.

pub mod document;
mod walk;

use document::{Document, Operation, object, object_mut, read_yaml};
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use walk::{Call, NOBODY, Walk};

/// Errors that a contract lists and no call can bring about, each with why.
const OUT_OF_REACH: &[(&str, u16, &str)] = &[
    ("v2 POST /contacts", 404, "the call names nothing that could be missing"),
    ("v2 GET /agents/{id}", 400, AN_ID),
    ("v2 GET /chats/{id}/feedback", 400, AN_ID),
    ("v3 GET /chats/{id}", 400, AN_ID),
    ("v3 GET /chats/{id}/contextVariables", 400, AN_ID),
];
const AN_ID: &str = "an id that is no number names nothing, hence 404";

fn both() -> [Document; 2] {
    [Document::load("v2"), Document::load("v3")]
}

/// Whether an operation names a chat in its path.
fn names_a_chat(operation: &Operation) -> bool {
    operation.template.starts_with("/chats/{id}")
}

#[tokio::test]
async fn every_operation_succeeds_and_fails_as_its_contract_says() {
    let documents = both();
    let mut all = Walk::start().await;
    for case in read_yaml("tests/integration/contract_walk/cases.yaml").as_array().expect("cases are a list")
    {
        let mut walk = Walk::start().await;
        for earlier in case["first"].as_array().into_iter().flatten() {
            tell(&mut walk, &documents, earlier, &[200, 201, 204]).await;
        }
        let status = case["status"]
            .as_u64()
            .and_then(|status| u16::try_from(status).ok())
            .expect("a case has a status");
        tell(&mut walk, &documents, case, &[status]).await;
        all.join(walk);
    }
    signed_in_agents_are_not_invited(&mut all, &documents).await;

    for (document, operation) in documents.iter().flat_map(|d| d.operations.iter().map(move |o| (d, o))) {
        if !all.has_succeeded(document, operation) {
            all.fault(format!("{} {operation} was never seen to succeed", document.side));
        }
        for status in document.listed(operation) {
            let key = format!("{} {operation}", document.side);
            let is_out_of_reach = OUT_OF_REACH.iter().any(|(name, code, _)| *name == key && *code == status);
            match all.has_seen(document, operation, status) {
                true if is_out_of_reach => {
                    all.fault(format!("{key} answers {status}, which was held to be out of reach"))
                }
                false if !is_out_of_reach => {
                    all.fault(format!("{key} lists {status}, which no case brings about"))
                }
                _ => {}
            }
        }
    }
    all.finish();
}

/// Makes the call of a case.
async fn tell(walk: &mut Walk, documents: &[Document], case: &Value, statuses: &[u16]) {
    let at = case["at"].as_str().expect("a case has an operation");
    let (side, key) = at.split_once(' ').expect("a case names a side");
    let document =
        documents.iter().find(|document| document.side == side).expect("a case is of a known side");
    let operation = document.operation(key);
    let mut call = Call::example(walk, document, operation);
    for (name, value) in case["with"].as_object().into_iter().flatten() {
        call.variables.insert(name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    call.query = case["query"].as_str().unwrap_or_default().to_owned();
    call.body = case.get("body").map(|body| body.to_string().into_bytes());
    if let Some(account) = case["as"].as_str() {
        call.token = Some(walk.token(document, account));
    }
    walk.expect(document, operation, &call, statuses).await;
}

/// The 500 of an invitation needs the e-mail of an agent, which only the seed knows.
async fn signed_in_agents_are_not_invited(walk: &mut Walk, documents: &[Document; 2]) {
    let [_, v3] = documents;
    let profile = v3.operation("GET /agents/profile");
    let answer = walk.call(v3, profile, &Call::example(walk, v3, profile)).await;
    let caller: Value = serde_json::from_slice(&answer.body).expect("the profile is JSON");
    for document in documents {
        let invite = document.operation("POST /agents");
        let mut call = Call::example(walk, document, invite);
        call.body =
            Some(json!({"email": caller["email"], "maxChats": 5, "type": 1}).to_string().into_bytes());
        walk.expect(document, invite, &call, &[500]).await;
    }
}

#[tokio::test]
async fn calls_without_a_good_token_are_answered_401() {
    let mut walk = Walk::start().await;
    for document in both() {
        for operation in &document.operations {
            for token in [None, Some("not-a-token".to_owned())] {
                let call = Call { token, ..Call::example(&walk, &document, operation) };
                walk.expect(&document, operation, &call, &[401]).await;
            }
        }
    }
    walk.finish();
}

#[tokio::test]
async fn methods_that_a_path_does_not_have_are_answered_501() {
    let mut walk = Walk::start().await;
    for document in both() {
        let shape = |template: &str| template.replace("{channel}", "{id}");
        for operation in &document.operations {
            let taken = |method: &Method| {
                document
                    .operations
                    .iter()
                    .any(|o| o.method == *method && shape(&o.template) == shape(&operation.template))
            };
            for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
                if !taken(&method) {
                    let call = Call { method, ..Call::example(&walk, &document, operation) };
                    walk.expect(&document, operation, &call, &[501]).await;
                }
            }
        }
    }
    walk.finish();
}

#[tokio::test]
async fn bodies_that_are_not_understood_are_answered_400() {
    let mut walk = Walk::start().await;
    for document in both() {
        for operation in &document.operations {
            let Some((example, schema)) = document.body_example(operation) else { continue };
            let mut bodies = vec!["{".to_owned(), "[]".to_owned(), "\"text\"".to_owned(), "null".to_owned()];
            for (name, field) in object(&schema["properties"]) {
                let wrong = if document.resolve(field)["type"] == "array" { json!(7) } else { json!([7]) };
                let mut body = example.clone();
                body[name] = wrong;
                bodies.push(body.to_string());
            }
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let mut body = object(example).clone();
                body.remove(name);
                bodies.push(Value::Object(body).to_string());
            }
            for body in bodies {
                let call =
                    Call { body: Some(body.into_bytes()), ..Call::example(&walk, &document, operation) };
                walk.expect(&document, operation, &call, &[400]).await;
            }
        }
    }
    walk.finish();
}

#[tokio::test]
async fn ids_that_name_nothing_are_answered_404() {
    let mut walk = Walk::start().await;
    for document in both() {
        for operation in
            document.operations.iter().filter(|operation| !operation.template.contains("{channel}"))
        {
            let example = Call::example(&walk, &document, operation);
            for name in example.variables.keys() {
                let mut call = example.clone();
                call.variables.insert(name.clone(), NOBODY.to_owned());
                walk.expect(&document, operation, &call, &[404]).await;
            }
        }
    }
    walk.finish();
}

#[tokio::test]
async fn a_locked_chat_is_answered_423_whatever_is_asked_of_it() {
    let mut walk = Walk::start().await;
    walk.control("/chats/1/lock", "").await;
    for document in both() {
        for operation in document.operations.iter().filter(|operation| names_a_chat(operation)) {
            let call = Call::example(&walk, &document, operation);
            walk.expect(&document, operation, &call, &[423]).await;
        }
    }
    walk.finish();
}

#[tokio::test]
async fn a_company_that_the_caller_is_not_linked_to_is_answered_403() {
    let mut walk = Walk::start().await;
    let v3 = Document::load("v3");
    for operation in &v3.operations {
        let mut call = Call::example(&walk, &v3, operation);
        call.prefix = "/companies/42".to_owned();
        call.token = Some(walk.token(&v3, "agent"));
        walk.expect(&v3, operation, &call, &[403]).await;
    }
    walk.finish();
}

#[tokio::test]
async fn a_secondary_company_reads_as_the_main_one_does() {
    let mut walk = Walk::start().await;
    let v3 = Document::load("v3");
    for operation in v3.operations.iter().filter(|operation| operation.method == Method::GET) {
        let mut call = Call::example(&walk, &v3, operation);
        call.prefix = "/companies/42".to_owned();
        for value in call.variables.values_mut() {
            *value = match operation.template.split('/').nth(1) {
                Some("chats") => "10000001",
                Some("agents") => "205",
                _ => "10001001",
            }
            .to_owned();
        }
        walk.expect(&v3, operation, &call, &[200]).await;
    }
    walk.finish();
}

#[tokio::test]
async fn every_list_has_pages_of_twenty_and_none_past_its_end() {
    let mut walk = Walk::start().await;
    for document in both() {
        for operation in &document.operations {
            if !document.parameters(operation, "query").any(|parameter| parameter["name"] == "page") {
                continue;
            }
            let example = Call::example(&walk, &document, operation);
            for (page, statuses) in
                [("0", [200]), ("999999", [200]), ("-1", [400]), ("x", [400]), ("", [400])]
            {
                let call = Call { query: format!("page={page}"), ..example.clone() };
                let answer = walk.expect(&document, operation, &call, &statuses).await;
                let entries = serde_json::from_slice::<Value>(&answer.body)
                    .ok()
                    .and_then(|list| Some(list.as_array()?.len()));
                let most = if page == "0" { 20 } else { 0 };
                if entries.is_some_and(|count| count > most) {
                    walk.fault(format!("{} {operation} page={page} has {entries:?} entries", document.side));
                }
            }
        }
    }
    walk.finish();
}

#[tokio::test]
async fn reasons_come_in_three_languages() {
    let mut walk = Walk::start().await;
    for document in both() {
        for operation in &document.operations {
            let mut reasons = BTreeSet::new();
            for language in [None, Some("en"), Some("pt-br"), Some("es")] {
                let call = Call { language, token: None, ..Call::example(&walk, &document, operation) };
                let answer = walk.expect(&document, operation, &call, &[401]).await;
                reasons.insert(answer.body);
            }
            if reasons.len() != 3 {
                walk.fault(format!(
                    "{} {operation} has {} texts for three languages",
                    document.side,
                    reasons.len()
                ));
            }
        }
    }
    walk.finish();
}

#[tokio::test]
async fn an_answer_that_breaks_its_contract_is_noticed() {
    for (change, fault) in [
        (json!({"field": "$.situation", "change": "remove"}), "\"situation\" is a required property"),
        (json!({"field": "$.id", "change": {"set": "1"}}), "\"1\" is not of type \"integer\""),
        (json!({"field": "$", "change": {"add": {"surprise": 1}}}), "'surprise' was unexpected"),
        (json!({"field": "$.createdAt", "change": {"set": "02/05/2024"}}), "does not match"),
    ] {
        let mut walk = Walk::start().await;
        let v3 = Document::load("v3");
        let mut rule = json!({"side": "v3", "resource": "chat"});
        object_mut(&mut rule).extend(object(&change).clone());
        walk.control("/differences", &rule.to_string()).await;
        let operation = v3.operation("GET /chats/{id}");
        walk.call(&v3, operation, &Call::example(&walk, &v3, operation)).await;
        let faults = walk.faults();
        assert!(
            faults.iter().any(|one| one.contains(fault)),
            "{change} should be found as {fault}, found {faults:?}"
        );
    }
}
