//! Readings of the service's document: its ambiguities, in every form that a service may use.

use crate::support::raw::{Act, Upstream, exchange};
use crate::support::serving::Serving;
use crate::support::witness::json;
use serde_json::{Value, json as object};
use switchback_sandbox::{Options, Sandbox};

const TOKEN: &str = "v2-token-of-acme";

async fn control(sandbox: &Sandbox, line: &str, body: &str) {
    let request =
        format!("{line} HTTP/1.1\r\nhost: sandbox.test\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let answer = exchange(sandbox.address(), request).await.expect("an answer");
    assert!(answer.status < 300, "{line}: {}", answer.text());
}

/// A10: how v3 shows the custom fields of a contact is not in the document.
#[tokio::test]
async fn custom_fields_are_shown_in_whatever_form_they_come() {
    let sandbox = Sandbox::start(Options::default()).await.expect("it starts");
    let gateway = Serving::before(&sandbox).await;
    let token = &sandbox.credentials().account("administrator").expect("every sandbox has one").v2_token;
    for (form, shown) in [
        (object!(null), object!([])),
        (object!([]), object!([])),
        (object!({"cpf": "1", "vip": null}), object!({"cpf": "1", "vip": null})),
        (
            object!([{"token": "cpf", "value": "1", "id": 3}, {"value": [1], "token": "x"}]),
            object!({"cpf": "1", "x": [1]}),
        ),
        (object!([{"token": "cpf"}]), object!([])),
        (object!([1, 2]), object!([])),
        (object!(""), object!([])),
        (object!("cpf=1"), object!([])),
        (object!(false), object!([])),
        (object!(7), object!([])),
    ] {
        control(&sandbox, "DELETE /_sandbox/differences", "").await;
        let rule = object!({"side": "v3", "resource": "contact", "of": 1001, "field": "$.customFields", "change": {"set": form}});
        control(&sandbox, "POST /_sandbox/differences", &rule.to_string()).await;
        for line in ["GET /v2/contacts", "GET /v2/contacts/1001"] {
            let request =
                format!("{line} HTTP/1.1\r\nhost: gateway.test\r\nx-authorization: Bearer {token}\r\n\r\n");
            let answer = exchange(gateway.address, request).await.expect("an answer");
            assert_eq!(answer.status, 200, "{line} {form}: {}", answer.text());
            let contact = match json(&answer) {
                Value::Array(page) => {
                    page.into_iter().find(|contact| contact["id"] == "1001").expect("it is listed")
                }
                contact => contact,
            };
            assert_eq!(contact["customFields"], shown, "{line} {form}");
        }
    }
}

/// A14: v3 lists four members of a contact and does not call them optional, so one that the contact
/// does not have is sent as an empty text. Where the operator knows better, it is left out.
#[tokio::test]
async fn what_a_contact_does_not_have_is_sent_as_the_operator_says() {
    let page = |body: &str| Act::json(200, body);
    let now = r#"{"id":"7","name":"Ana","email":null,"phone":null,"mobile":null,"city":"Recife","obs":null,
        "address":null,"district":null,"state":null,"zipCode":null,"gender":null,"birthDate":null,"customFields":null}"#;
    for (nulls_as_texts, sent) in [
        (true, object!({"name": "Ana", "email": "", "phone": "5511", "mobile": "", "city": "Recife"})),
        (false, object!({"name": "Ana", "phone": "5511", "city": "Recife"})),
    ] {
        let service = Upstream::start(vec![page(now), page("")]).await;
        let more = format!(
            "settings: {{ agents: {{ max_chats: 5 }}, contacts: {{ nulls_as_texts: {nulls_as_texts} }} }}\n\
             clients: [{{ name: acme, v2_token: {TOKEN}, credentials: {{ v3: secret-at-v3 }} }}]\n"
        );
        let gateway = Serving::configured(service.address, &["v3"], &more).await;
        let body = r#"{"phone":"5511"}"#;
        let request = format!(
            "PUT /v2/contacts/7 HTTP/1.1\r\nhost: gateway.test\r\ncontent-type: application/json\r\n\
             x-authorization: Bearer {TOKEN}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = exchange(gateway.address, request).await.expect("an answer");
        assert_eq!(answer.status, 204, "{}", answer.text());
        let seen = service.seen();
        let put: Value = serde_json::from_slice(&seen[1].body).expect("it is JSON");
        assert_eq!((seen[1].line(), put), ("PUT /v3/contacts/7 HTTP/1.1", sent));
    }
}

/// Errors have a reason, and the reason is a text: any other error of a service is replaced by the
/// gateway's text, with its status.
#[tokio::test]
async fn an_error_without_a_reason_is_told_in_the_form_of_errors() {
    let sandbox = Sandbox::start(Options::default()).await.expect("it starts");
    let gateway = Serving::before(&sandbox).await;
    let token = &sandbox.credentials().account("administrator").expect("every sandbox has one").v2_token;
    for (said, told) in [
        (object!({"reason": "No.", "code": 7}), object!({"reason": "No.", "code": 7})),
        (object!({"message": "x"}), object!({"reason": "The request is not valid."})),
        (object!({"reason": {"a": 1}}), object!({"reason": "The request is not valid."})),
        (object!({"reason": null}), object!({"reason": "The request is not valid."})),
        (object!({}), object!({"reason": "The request is not valid."})),
        (object!([{"reason": "No."}]), object!({"reason": "The request is not valid."})),
    ] {
        control(&sandbox, "DELETE /_sandbox/faults", "").await;
        let fault =
            object!({"side": "v3", "action": {"status": {"code": 400, "body": said, "when": "before"}}});
        control(&sandbox, "POST /_sandbox/faults", &fault.to_string()).await;
        // A pair, a route of several calls.
        for line in ["GET /v2/chats/1", "POST /v2/chats/1/queue"] {
            let length = if line.starts_with('P') { "content-length: 0\r\n" } else { "" };
            let request = format!(
                "{line} HTTP/1.1\r\nhost: gateway.test\r\nx-authorization: Bearer {token}\r\n{length}\r\n"
            );
            let answer = exchange(gateway.address, request).await.expect("an answer");
            assert_eq!((answer.status, json(&answer)), (400, told.clone()), "{line} {said}");
        }
    }
}
