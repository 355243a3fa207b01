//! Bodies in several formats and media types of an API's own, through the real binary: the manual's
//! shop, and small packs.

use crate::spellings::Shop;
use crate::support::packs;
use crate::support::raw::{Act, Upstream, answer};

const FORM: &str = "content-type: application/x-www-form-urlencoded; charset=utf-8\r\n";
const JSON: &str = "content-type: application/json\r\n";

#[tokio::test]
async fn clients_send_json_or_a_form_to_one_operation() {
    let shop = Shop::start(&packs::shop(), Upstream::start(vec![Act::json(200, r#"{"id":7}"#)]).await).await;
    let json = r#"{"text":"a & b","to":["ann","bob"],"urgent":true}"#;
    for (fields, body) in [
        (FORM, "text=a+%26+b&to=ann,bob&urgent=true"),
        ("", "text=a+%26+b&to=ann,bob&urgent=true"),
        (JSON, json),
        ("content-type: application/vnd.any+json\r\n", json),
        ("", json),
        // Tools label JSON as a form or as text.
        (FORM, json),
        ("content-type: text/plain\r\n", json),
    ] {
        let answer = shop.ask("POST /old/notices", fields, body).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"id":7}"#), "{fields} {body}");
        let seen = shop.service.seen().pop().expect("a call");
        assert_eq!(seen.values("content-type"), ["application/json"]);
        let sent = String::from_utf8_lossy(&seen.body).into_owned();
        assert_eq!(sent, r#"{"body":"a & b","recipients":["ann","bob"],"urgent":true}"#, "{fields} {body}");
    }
    let before = shop.service.seen().len();
    for (fields, body, status) in [
        (FORM, "text=a&text=b", 400),
        (FORM, "text=%ff", 400),
        (JSON, "text=a", 400),
        (JSON, "", 400),
        ("content-type: text/plain\r\n", "Closed", 415),
    ] {
        let answer = shop.ask("POST /old/notices", fields, body).await;
        assert_eq!(answer.status, status, "{fields} {body}: {}", answer.text());
    }
    assert_eq!(shop.service.seen().len(), before);
    // The other way, calls are JSON.
    let answer = shop.ask("POST /new/messages", JSON, r#"{"body":"x","recipients":["ann"]}"#).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = shop.service.seen().pop().expect("a call");
    assert_eq!(seen.values("content-type"), ["application/json"]);
    assert_eq!(String::from_utf8_lossy(&seen.body), r#"{"text":"x","to":["ann"]}"#);
}

#[tokio::test]
async fn calls_and_answers_carry_the_media_types_of_their_contracts() {
    let own = |status, body| Act::Reply(answer(status, "content-type: application/x-shop-json\r\n", body));
    let replies = vec![
        own(200, r#"{"quantity":3}"#),
        Act::Reply(answer(
            201,
            "content-type: application/vnd.shop+json; version=2\r\n",
            r#"{"quantity":4}"#,
        )),
        Act::json(200, r#"{"count":5}"#),
        // An error of the service itself, not of a server in between.
        own(401, "{}"),
        Act::Reply(answer(401, "content-type: application/x-other-json\r\n", "{}")),
        own(200, r#"{"quantity":"#),
    ];
    let shop = Shop::start(&packs::shop(), Upstream::start(replies).await).await;
    let put = async |body: &str| {
        shop.ask("PUT /old/stock/7", "content-type: application/vnd.shop.stock+json\r\n", body).await
    };
    for (sent, got) in [(r#"{"count":3}"#, r#"{"count":3}"#), (r#"{"count":4}"#, r#"{"count":4}"#)] {
        let answer = put(sent).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, got));
        assert_eq!(answer.value("content-type"), "application/vnd.shop.stock+json");
        let seen = shop.service.seen().pop().expect("a call");
        assert_eq!(seen.values("content-type"), ["application/vnd.shop+json; version=2"]);
        let accepted = ["application/x-shop-json, application/vnd.shop+json; version=2"];
        assert_eq!(seen.values("accept"), accepted);
    }
    let named = "content-type: application/vnd.shop+json; version=2\r\n";
    let answer = shop.ask("PUT /new/items/7/stock", named, r#"{"quantity":5}"#).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"quantity":5}"#));
    assert_eq!(answer.value("content-type"), "application/x-shop-json");
    let seen = shop.service.seen().pop().expect("a call");
    assert_eq!(seen.values("content-type"), ["application/vnd.shop.stock+json"]);
    assert_eq!(seen.values("accept"), ["application/vnd.shop.stock+json"]);
    for status in [401, 502, 502] {
        let answer = put(r#"{"count":3}"#).await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
}
