use super::*;
use proptest::prelude::*;
use std::io::Cursor;

fn all(text: &str) -> (Vec<Exchange>, Vec<String>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    parse(Cursor::new(text), |entry| match entry {
        Ok(exchange) => good.push(exchange),
        Err(malformed) => bad.push(malformed.to_string()),
    })
    .expect("an archive");
    (good, bad)
}

fn one(entry: &str) -> Exchange {
    let (mut good, bad) = all(&format!(r#"{{"log":{{"entries":[{entry}]}}}}"#));
    assert_eq!(bad, Vec::<String>::new());
    good.pop().expect("one entry")
}

const GET: &str = r#""request":{"method":"GET","url":"https://x.example/v1/things/7"}"#;

#[test]
fn a_browsers_entry_is_read_with_its_pseudo_headers_left_out() {
    let exchange = one(r#"{
        "_initiator":{"type":"script"},"_priority":"High","_resourceType":"fetch","cache":{},"connection":"4711",
        "request":{"method":"POST","url":"https://x.example/v1/things?a=1","httpVersion":"h3","headers":[
            {"name":":authority","value":"x.example"},{"name":"Content-Type","value":"application/json"},
            {"name":"content-length","value":"9"}],"queryString":[{"name":"a","value":"1"}],"cookies":[],
            "headersSize":-1,"bodySize":9,"postData":{"mimeType":"application/json","text":"{\"a\":\"é\"}"}},
        "response":{"status":201,"statusText":"","headers":[{"name":"content-encoding","value":"br"}],
            "content":{"size":2,"mimeType":"application/json","text":"{}"},"_transferSize":120,"_error":null},
        "serverIPAddress":"192.0.2.1","startedDateTime":"2026-05-01T10:00:00.123Z","time":12.5}"#);
    assert_eq!(exchange.request.body.bytes().unwrap(), "{\"a\":\"é\"}");
    let headers = header_map(&exchange.request.headers);
    assert_eq!((headers.len(), &headers["content-type"]), (1, &HeaderValue::from_static("application/json")));
    let response = exchange.response.unwrap();
    assert_eq!((response.status, response.body.bytes().unwrap()), (201, Bytes::from_static(b"{}")));
    assert!(header_map(&response.headers).is_empty(), "the coding is of the wire, the text is decoded");
}

#[test]
fn what_is_base64_is_decoded_and_what_only_says_so_is_taken_as_it_is() {
    let response = |content: &str| {
        one(&format!(r#"{{{GET},"response":{{"status":200,"content":{content}}}}}"#)).response.unwrap().body
    };
    assert_eq!(response(r#"{"text":"eyJhIjoxfQ==","encoding":"base64"}"#), Body::Whole("{\"a\":1}".into()));
    assert_eq!(response(r#"{"text":"{\"a\":1}","encoding":"base64"}"#), Body::Whole("{\"a\":1}".into()));
}

#[test]
fn an_archive_saved_without_contents_says_that_bodies_are_missing() {
    let exchange = one(&format!(r#"{{{GET},"response":{{"status":200,"content":{{"size":512}}}}}}"#));
    assert_eq!(exchange.response.unwrap().body, Body::Missing);
    let exchange = one(r#"{"request":{"method":"POST","url":"/x","bodySize":7}}"#);
    assert_eq!(exchange.request.body, Body::Missing);
    let exchange = one(&format!(r#"{{{GET},"response":{{"status":204,"content":{{"size":0}}}}}}"#));
    assert_eq!(exchange.response.unwrap().body, Body::None);
}

#[test]
fn a_blocked_request_has_no_response() {
    for status in ["0", "-1", "null"] {
        let entry = format!(r#"{{{GET},"response":{{"status":{status},"_error":"net::ERR_FAILED"}}}}"#);
        assert_eq!(one(&entry).response, None, "{status}");
    }
    assert_eq!(one(&format!("{{{GET}}}")).response, None);
}

#[test]
fn a_form_given_as_parameters_becomes_its_text() {
    let exchange = one(
        r#"{"request":{"method":"POST","url":"/x","postData":{"mimeType":"application/x-www-form-urlencoded",
        "params":[{"name":"a b","value":"ç&"},{"name":"n"}]}}}"#,
    );
    assert_eq!(exchange.request.body.bytes().unwrap(), "a%20b=%C3%A7%26&n=");
}

#[test]
fn a_malformed_entry_is_named_and_the_others_are_read() {
    let text = format!(
        r#"{{"log":{{"entries":[{{{GET}}},{{"request":{{}}}},7,{{"request":{{"method":"","url":""}}}},{{{GET}}}]}}}}"#
    );
    let (good, bad) = all(&text);
    assert_eq!(good.len(), 2);
    assert!(bad[0].starts_with("entry 2: missing field `method`"), "{bad:?}");
    assert!(bad[1].starts_with("entry 3: "), "{bad:?}");
    assert_eq!(bad[2], "entry 4: a request without method or address");
}

#[test]
fn a_byte_order_mark_and_members_after_the_entries_are_allowed() {
    let (good, _) =
        all(&format!("\u{feff}{{\"log\":{{\"entries\":[{{{GET}}}],\"comment\":\"\"}},\"x\":[1]}}\n"));
    assert_eq!(good.len(), 1);
}

#[test]
fn what_is_no_archive_is_told_apart() {
    let error = |text: &str| parse(Cursor::new(text), |_| ()).unwrap_err().to_string();
    assert!(error("").contains("not an HTTP Archive"));
    assert!(error("[]").contains("an object with `log`"));
    assert!(error("{}").contains("no `log.entries`"));
    assert!(error(r#"{"log":{"entries":{}}}"#).contains("an array of entries"));
    assert!(error(r#"{"log":{"entries":["#).contains("EOF"));
    assert!(error(r#"{"log":{"entries":[]}} x"#).contains("trailing"));
}

fn a_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        Just(Body::None),
        Just(Body::Missing),
        "[ -~é\u{10FFFF}\"\\\\]{1,12}".prop_map(|text| Body::Whole(text.into())),
        proptest::collection::vec(any::<u8>(), 1..12).prop_map(|bytes| Body::Whole(bytes.into())),
    ]
}

fn headers() -> impl Strategy<Value = Vec<(String, String)>> {
    proptest::collection::vec(("[A-Za-z-]{1,8}", "[ -~]{0,8}"), 0..3)
}

prop_compose! {
    fn an_exchange()(
        method in "[A-Z]{1,7}", url in "/[a-z?&=+%é]{0,12}", sent in headers(), body in a_body(),
        status in 100u16..600, answered in any::<bool>(), got in headers(), answer in a_body(), millis in 0u32..100_000,
    ) -> Exchange {
        Exchange {
            started: "2026-05-01T10:00:00Z".into(),
            millis: f64::from(millis) / 8.0,
            request: Request { method, url, headers: sent, body, masked: Vec::new() },
            response: answered.then_some(Response { status, headers: got, body: answer }),
            gateway: None,
        }
    }
}

fn a_shadow() -> impl Strategy<Value = Option<Shadow>> {
    let answer = Response { status: 404, headers: Vec::new(), body: Body::Whole("{}".into()) };
    let answered = Shadow::Answered { answer, masked: vec!["$.id".into()] };
    let dropped = Shadow::Dropped("credential".into());
    prop::sample::select(vec![None, Some(answered), Some(Shadow::Planned), Some(dropped)])
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        clients in proptest::collection::vec(an_exchange(), 0..3),
        calls in proptest::collection::vec(an_exchange(), 0..3),
        by_gateway in any::<bool>(),
        shadow in a_shadow(),
    ) {
        let known = Gateway { side: "v1".into(), target: "/things/7?x=1".into(), client: "acme".into(), language: 1, masked: vec!["$[*].id".into()], outcome: "forwarded".into(), is_recalled: by_gateway, shadow, calls };
        let written: Vec<Exchange> = clients
            .into_iter()
            .map(|exchange| Exchange { gateway: by_gateway.then(|| known.clone()), ..exchange })
            .collect();
        let mut writer = Writer::new(Vec::new()).unwrap();
        for exchange in &written {
            writer.entry(exchange).unwrap();
        }
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        prop_assert_eq!(all(&text), (written, Vec::new()));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,64}") {
        let _ = parse(Cursor::new(text), |_| ());
    }
}
