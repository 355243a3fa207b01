//! Bodies in XML, through the real binary: the pack of parcels, whose old side speaks XML and whose
//! new side speaks JSON, in front of services that record their requests.

use crate::spellings::Shop;
use crate::support::raw::{Act, Upstream, answer};
use switchback_compiler::mapping::load::PackSource;

const XML: &str = "content-type: text/xml; charset=utf-8\r\n";
const JSON: &str = "content-type: application/json\r\n";
const SHIPMENT: &str = r#"{"id":7,"reference":"R & D","weight":{"unit":"kg","value":2.50},"parcels":[{"code":"A"},{"code":"<"}],"notes":["x",""],"insured":true,"delivered_at":null,"colour":"red"}"#;

fn parcels() -> PackSource {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/parcels");
    PackSource::from_dir(&folder).expect("the pack is part of the project")
}

#[tokio::test]
async fn clients_of_xml_use_a_service_of_json() {
    let service = Upstream::answering(|_, seen| match seen.line().split(' ').next() {
        Some("POST") => Act::json(201, SHIPMENT),
        _ if seen.line().contains("/9") => Act::json(404, r#"{"message":"No such <shipment>."}"#),
        _ if seen.line().contains("/7") => Act::json(200, SHIPMENT),
        _ => Act::json(200, &format!("[{SHIPMENT},{SHIPMENT}]")),
    });
    let shop = Shop::start(&parcels(), service.await).await;
    let got = shop.ask("GET /old/shipments/7", "accept: text/xml\r\n", "").await;
    assert_eq!((got.status, got.value("content-type")), (200, "text/xml; charset=utf-8"));
    let head = r#"<?xml version="1.0" encoding="UTF-8"?>"#;
    let content = |open: &str| {
        format!(
            "<shipment{open} number=\"7\"><reference>R &amp; D</reference><weight unit=\"kg\">2.50</weight>\
             <parcel code=\"A\"/><parcel code=\"&lt;\"/><notes><note>x</note><note/></notes><insured>true</insured>\
             <deliveredAt xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:nil=\"true\"/>\
             <colour>red</colour></shipment>"
        )
    };
    assert_eq!(got.text(), format!("{head}{}", content(" xmlns=\"urn:parcels:1\"")));
    let got = shop.ask("GET /old/shipments", "", "").await;
    let one = content("");
    assert_eq!(got.text(), format!("{head}<shipments xmlns=\"urn:parcels:1\">{one}{one}</shipments>"));

    let body = "<?xml version='1.0'?>\n<x:shipment xmlns:x='urn:parcels:1'>\n <x:parcel code='A'/>\n \
                <x:reference><![CDATA[R & D]]></x:reference>\n <x:weight unit='kg'> 2.50 </x:weight>\n \
                <x:parcel code='B'/><x:notes/><x:insured>1</x:insured><x:colour>red</x:colour></x:shipment>";
    let got = shop.ask("POST /old/shipments", XML, body).await;
    assert_eq!(got.status, 201, "{}", got.text());
    let seen = shop.service.seen().remove(2);
    assert_eq!(seen.values("content-type"), ["application/json"]);
    let sent: serde_json::Value = serde_json::from_slice(&seen.body).expect("it is JSON");
    assert_eq!(
        sent.to_string(),
        r#"{"parcels":[{"code":"A"},{"code":"B"}],"reference":"R & D","weight":{"unit":"kg","value":2.5},"notes":[],"insured":true,"colour":"red"}"#
    );
    // Errors of the service, in the client's form.
    let got = shop.ask("GET /old/shipments/9", "", "").await;
    assert_eq!((got.status, got.value("content-type")), (404, "text/xml; charset=utf-8"));
    assert_eq!(got.text(), format!("{head}<fault><message>No such &lt;shipment&gt;.</message></fault>"));
}

#[tokio::test]
async fn another_document_is_an_error_in_xml_without_a_call() {
    let shop = Shop::with(
        &parcels(),
        "limits: { body_bytes: 4KiB }\n",
        Upstream::start(vec![Act::json(200, SHIPMENT)]).await,
    )
    .await;
    let root = |content: &str| format!("<shipment xmlns='urn:parcels:1'>{content}</shipment>");
    for (fields, body, status) in [
        (XML, root("<reference>"), 400),
        (XML, root("&amp;&nbsp;"), 400),
        (XML, "<shipment/>".to_owned(), 400),
        (XML, format!("<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>{}", root("&b;")), 400),
        (XML, root(&format!("{}{}", "<a>".repeat(300), "</a>".repeat(300))), 413),
        (XML, root(&"a".repeat(5_000)), 413),
        (JSON, "{}".to_owned(), 415),
    ] {
        let got = shop.ask("POST /old/shipments", fields, &body).await;
        assert_eq!(got.status, status, "{body}: {}", got.text());
        assert_eq!(got.value("content-type"), "text/xml; charset=utf-8");
        assert!(got.text().contains("<fault><message>"), "{}", got.text());
    }
    let missing = shop.ask("GET /old/nothing", "", "").await;
    assert_eq!((missing.status, missing.text().contains("<fault><message>")), (404, true));
    assert_eq!(shop.service.seen().len(), 0);
}

#[tokio::test]
async fn clients_of_json_use_a_service_of_xml() {
    const NAMED: &str = "content-type: application/xml\r\n";
    const OLD: &str = "<shipment xmlns='urn:parcels:1' number='7'><reference>R</reference><weight unit='kg'>2.50</weight>\
                       <insured>false</insured><notes/></shipment>";
    let service = Upstream::answering(|_, seen| match seen.line() {
        line if line.contains("/1 ") => Act::Reply(answer(200, NAMED, OLD)),
        line if line.contains("/2 ") => Act::Reply(answer(200, NAMED, "<shipment xmlns='urn:parcels:1'>")),
        line if line.contains("/3 ") => {
            Act::Reply(answer(404, NAMED, "<fault><message>None &amp; gone.</message></fault>"))
        }
        line if line.contains("/4 ") => Act::Reply(answer(200, "content-type: text/html\r\n", "<html/>")),
        line if line.contains("/5 ") => Act::Reply(answer(503, "content-type: text/html\r\n", "<html/>")),
        _ => Act::Reply(answer(201, NAMED, OLD)),
    });
    let shop = Shop::start(&parcels(), service.await).await;
    let got = shop.ask("GET /new/shipments/1", "", "").await;
    assert_eq!((got.status, got.value("content-type")), (200, "application/json"), "{}", got.text());
    assert_eq!(
        got.text(),
        r#"{"id":7,"reference":"R","weight":{"unit":"kg","value":2.50},"insured":false,"notes":[],"parcels":[]}"#
    );
    let mut statuses = Vec::new();
    for id in 2..=5 {
        let got = shop.ask(&format!("GET /new/shipments/{id}"), "", "").await;
        assert_eq!(got.value("content-type"), "application/json");
        statuses.push((got.status, got.text()));
    }
    assert_eq!(statuses.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [502, 404, 502, 503]);
    assert_eq!(statuses[1].1, r#"{"message":"None & gone."}"#);
    assert!(statuses.iter().all(|(_, text)| text.starts_with(r#"{"message":"#)), "{statuses:?}");
    let body = r#"{"parcels":[{"code":"A"},{"code":"B"}],"insured":true,"weight":{"value":1,"unit":"kg"},"reference":"R < D"}"#;
    let got = shop.ask("POST /new/shipments", JSON, body).await;
    assert_eq!(got.status, 201, "{}", got.text());
    let seen = shop.service.seen().pop().expect("a call");
    assert_eq!(seen.values("content-type"), ["text/xml; charset=utf-8"]);
    assert_eq!(seen.values("accept"), ["text/xml"]);
    assert_eq!(
        String::from_utf8_lossy(&seen.body),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><shipment xmlns=\"urn:parcels:1\"><reference>R &lt; D</reference>\
         <weight unit=\"kg\">1</weight><parcel code=\"A\"/><parcel code=\"B\"/><insured>true</insured></shipment>"
    );
}

/// Returns a pack without lines, whose sides describe the same members in these layouts.
fn pack_without_lines(old: &str, new: &str) -> PackSource {
    let contract = |member: &str| {
        format!(
            "openapi: 3.0.3\ninfo: {{title: t, version: '1'}}\npaths:\n  /n:\n    post:\n      \
             requestBody: {{required: true, content: {{text/xml: {{schema: {{type: object, xml: {{name: n}}, \
             required: [a], properties: {{a: {{type: integer{member}}}}}}}}}}}}}\n      \
             responses: {{'200': {{description: ok, content: {{text/xml: {{schema: {{type: object, xml: {{name: n}}, \
             required: [a], properties: {{a: {{type: integer{member}}}}}}}}}}}}}}}\n"
        )
    };
    let pack = "pack: notes\nsides: {old: v1, new: v2}\ncontracts: {v1: contracts/v1.yaml, v2: contracts/v2.yaml}\nidentical: keep\n\
                credentials:\n  v1: {read: [x-api-key], send: x-api-key, scheme: none}\n  \
                v2: {read: [authorization], send: authorization, scheme: Bearer}\nlanguages: [en]\n\
                errors: {body: {message: $text}}\nrefuse: {legacy: never, status: 501}\n";
    let files = [
        ("pack.yaml", pack.to_owned()),
        ("contracts/v1.yaml", contract(old)),
        ("contracts/v2.yaml", contract(new)),
    ];
    PackSource::from_files(files.map(|(name, text)| (name.to_owned(), text.into_bytes())).into())
}

#[tokio::test]
async fn equal_layouts_pass_and_others_are_written_anew() {
    const SENT: &str = "<n  a='7'><!-- c --></n>";
    const ATTRIBUTE: &str = ", xml: {attribute: true}";
    for (new, reply, seen_body, got_body) in
        [(ATTRIBUTE, SENT, SENT, SENT), ("", "<n><a>8</a></n>", "<n><a>7</a></n>", "<n a=\"8\"/>")]
    {
        let reply = reply.to_owned();
        let service = Upstream::answering(move |_, _| Act::Reply(answer(200, XML, &reply)));
        let shop = Shop::start(&pack_without_lines(ATTRIBUTE, new), service.await).await;
        let got = shop.ask("POST /old/n", XML, SENT).await;
        assert_eq!(got.status, 200, "{}", got.text());
        let seen = shop.service.seen().pop().expect("a call");
        assert!(String::from_utf8_lossy(&seen.body).ends_with(seen_body), "{:?}", seen.body);
        assert!(got.text().ends_with(got_body), "{}", got.text());
    }
}
