//! The packs `payments` and `issues`, through the real binary, in front of services that record their
//! requests.

use super::spellings::Shop;
use crate::support::raw::{Act, Answer, Upstream};
use switchback_compiler::mapping::load::PackSource;

const FORM: &str = "content-type: application/x-www-form-urlencoded\r\n";
const JSON: &str = "content-type: application/json\r\n";

fn pack(name: &str) -> PackSource {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings").join(name);
    PackSource::from_dir(&folder).expect("the pack lies beside the tests")
}

#[tokio::test]
async fn charges_are_made_by_forms_and_read_with_their_derived_members() {
    let service = Upstream::answering(|_, seen| {
        let status = if seen.line().contains("pi_2") { "requires_capture" } else { "succeeded" };
        let intent = format!(
            r#"{{"id":"pi_1","object":"payment_intent","amount":2000,"amount_received":2000,"created":1700000000,"currency":"eur","customer":null,"description":null,"last_payment_error":null,"latest_charge":{{"id":"ch_9","amount_refunded":2000}},"metadata":{{}},"payment_method":null,"receipt_email":null,"status":"{status}"}}"#
        );
        match seen.line().starts_with("GET /v1/payment_intents?") {
            true => Act::json(
                200,
                &format!(r#"{{"object":"list","data":[{intent}],"has_more":false,"url":"/x"}}"#),
            ),
            false => Act::json(200, &intent),
        }
    });
    let payments = Shop::old_only(&pack("payments"), ["charges", "intents"], service.await).await;
    let json = |answer: Answer| -> serde_json::Value {
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice(&answer.body).expect("it is JSON")
    };
    let form = "amount=2000&currency=eur&source=tok_visa&capture=false&metadata[order]=7";
    let head = format!("{FORM}idempotency-key: k1\r\n");
    let made = json(payments.ask("POST /old/v1/charges", &head, form).await);
    assert_eq!(
        (&made["id"], &made["captured"], &made["refunded"]),
        (&"ch_1".into(), &true.into(), &true.into())
    );
    let read = json(payments.ask("GET /old/v1/charges/ch_2", "", "").await);
    assert_eq!((&read["paid"], &read["captured"]), (&true.into(), &false.into()));
    let list = json(payments.ask("GET /old/v1/charges?starting_after=ch_7", "", "").await);
    assert_eq!((&list["url"], &list["data"][0]["object"]), (&"/v1/charges".into(), &"charge".into()));
    let seen = payments.service.seen();
    assert_eq!(seen[0].values("idempotency-key"), ["k1"]);
    let sent: serde_json::Value = serde_json::from_slice(&seen[0].body).expect("it is JSON");
    let intent = serde_json::json!({
        "amount": 2000, "currency": "eur", "payment_method": "tok_visa", "capture_method": "manual",
        "confirm": true, "metadata": {"order": "7"}
    });
    assert_eq!(sent, intent);
    assert_eq!(seen[1].line(), "GET /v1/payment_intents/pi_2 HTTP/1.1");
    assert_eq!(seen[2].line(), "GET /v1/payment_intents?starting_after=pi_7 HTTP/1.1");
}

#[tokio::test]
async fn texts_of_issues_become_documents_and_searches_go_on_by_a_token() {
    let service = Upstream::answering(|_, seen| {
        let line = seen.line();
        if line.contains("/approximate-count") {
            return Act::json(200, r#"{"count":2}"#);
        }
        if line.contains("/search/jql") {
            let next = if line.contains("nextPageToken") { "" } else { r#","nextPageToken":"t1""# };
            return Act::json(200, &format!(r#"{{"issues":[{ISSUE}]{next}}}"#));
        }
        let made = r#"{"id":"10","key":"TEA-1"}"#;
        if line.starts_with("POST ") { Act::json(201, made) } else { Act::json(200, ISSUE) }
    });
    let issues = Shop::old_only(&pack("issues"), ["v2", "v3"], service.await).await;
    let text = |value: &serde_json::Value| value["fields"]["description"].clone();
    let body = |answer: Answer| -> serde_json::Value {
        serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{}", answer.text()))
    };
    let new = r#"{"fields":{"project":{"key":"TEA"},"summary":"S","issuetype":{"name":"Bug"},"description":"It leaks.\nSince May."}}"#;
    let made = issues.ask("POST /old/rest/api/2/issue", JSON, new).await;
    assert_eq!((made.status, made.text().as_str()), (201, r#"{"id":"10","key":"TEA-1"}"#));
    let read = body(issues.ask("GET /old/rest/api/2/issue/TEA-1", "", "").await);
    assert_eq!(text(&read), "It leaks.\nSince May.");
    let page = body(issues.ask("GET /old/rest/api/2/search?jql=x&maxResults=1&startAt=1", "", "").await);
    assert_eq!((&page["total"], text(&page["issues"][0])), (&2.into(), text(&read)));
    let seen = issues.service.seen();
    let sent: serde_json::Value = serde_json::from_slice(&seen[0].body).expect("it is JSON");
    assert_eq!(sent["fields"]["description"]["content"][1]["content"][0]["text"], "Since May.");
    assert!(seen[4].line().contains("nextPageToken=t1"), "{}", seen[4].line());
}

const ISSUE: &str = r#"{"id":"10","key":"TEA-1","fields":{"summary":"S","status":{"id":"3","name":"Open"},"created":"2024-03-09T10:00:00.000+0000","assignee":null,"description":{"type":"doc","version":1,"content":[{"type":"paragraph","content":[{"type":"text","text":"It leaks."}]},{"type":"paragraph","content":[{"type":"text","text":"Since May."}]}]}}}"#;
