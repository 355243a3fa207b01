//! Calls that are signed by an HMAC of their body, through sockets: the service checks each signature
//! with its own secret, before and after a reload.

use crate::functions::People;
use crate::support::raw::{Act, Seen};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use switchback_gateway::secret::Secret;
use switchback_gateway::signature::{Encoding, HmacForm, Signature, SignatureForm};

const NAMES: [&str; 3] = ["x-signature", "x-timestamp", "x-request"];

fn sign(secret: &str) -> String {
    format!(
        "sign: {{ form: hmac, secret: {secret}, header: {}, prefix: 'sha256=', timestamp: {}, id: {} }}",
        NAMES[0], NAMES[1], NAMES[2]
    )
}

/// Returns whether a call has the signature of its body under this secret.
fn is_signed(seen: &Seen, secret: &str) -> bool {
    let mut headers = HeaderMap::new();
    for name in NAMES {
        let [value] = seen.values(name)[..] else { return false };
        headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"));
    }
    let [header, timestamp, id] = NAMES.map(HeaderName::from_static);
    let form = HmacForm {
        header,
        prefix: "sha256=".to_owned(),
        encoding: Encoding::Hex,
        timestamp: Some(timestamp),
        id: Some(id),
        signs_id: false,
    };
    let signature = Signature::new(SignatureForm::Hmac(form), &[Secret::from(secret)]).expect("a secret");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as i64;
    signature.check(&headers, &seen.body, now, Duration::from_secs(600)).is_ok()
}

#[tokio::test]
async fn translated_calls_are_signed_and_a_reload_changes_the_secret() {
    let (first, second) = ("the-first-shared-secret", "the-second-shared-secret");
    let order = Act::json(200, r#"{"cents":1999,"count":3,"guests":0}"#);
    let made = Act::json(201, r#"{"email":"ana@example.com","joined":"2024-03-09T12:00:00Z"}"#);
    let people = People::with(vec![order.clone(), made.clone(), made], &sign(first)).await;
    let body = r#"{"email":"Ana@example.com"}"#;
    assert_eq!(people.ask("GET /v1/orders/7", "").await.status, 200);
    assert_eq!(people.ask("POST /v1/people", body).await.status, 201);
    people.reload(&sign(second)).await;
    assert_eq!(people.ask("POST /v1/people", body).await.status, 201);
    let seen = people.service.seen();
    let signed: Vec<[bool; 2]> =
        seen.iter().map(|seen| [first, second].map(|secret| is_signed(seen, secret))).collect();
    assert_eq!(signed, [[true, false], [true, false], [false, true]]);
    assert!(seen.iter().all(|seen| seen.values("authorization") == ["Bearer token-of-the-service"]));
    assert!(!seen[1].body.is_empty() && seen[0].body.is_empty());
    // A copy of the secret anywhere in the call would give it away.
    assert!(seen.iter().all(|seen| !seen.head.contains("shared-secret")));
}
