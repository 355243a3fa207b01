//! Bodies that are forwarded unchanged, through the real binary: the manual's shop with documents
//! of bytes and texts.

use crate::spellings::{OLD_KEY, Shop};
use crate::support::packs;
use crate::support::program::resident;
use crate::support::raw::{Act, Client, Upstream, answer};

const NO_CONTENT: &[u8] = b"HTTP/1.1 204 X\r\n\r\n";

async fn shop(act: Act) -> Shop {
    Shop::start(&packs::shop(), Upstream::start(vec![act]).await).await
}

#[tokio::test]
async fn bytes_pass_both_ways_with_what_describes_them() {
    let shop = shop(Act::Reply(answer(
        206,
        "content-type: application/pdf; v=1\r\ncontent-range: bytes 0-3/9\r\netag: \"a1\"\r\n\
         content-disposition: attachment; filename=x.pdf\r\naccept-ranges: bytes\r\nset-cookie: a=b\r\nx-secret: 1\r\n",
        "%PDF",
    )))
    .await;
    let asked = "range: bytes=0-3\r\nif-range: \"a1\"\r\naccept: application/x-pdf\r\n";
    let got = shop.ask("GET /old/documents/a%20b", asked, "").await;
    assert_eq!((got.status, got.text().as_str()), (206, "%PDF"));
    for (name, value) in [
        ("content-type", "application/x-pdf; v=1"),
        ("content-range", "bytes 0-3/9"),
        ("content-length", "4"),
        ("etag", "\"a1\""),
        ("accept-ranges", "bytes"),
        ("content-disposition", "attachment; filename=x.pdf"),
        ("set-cookie", ""),
        ("x-secret", ""),
    ] {
        assert_eq!(got.value(name), value, "{name}");
    }
    let seen = shop.service.seen().remove(0);
    assert_eq!(seen.line(), "GET /files/a%20b/content?locale=en HTTP/1.1");
    assert_eq!(seen.values("range"), ["bytes=0-3"]);
    assert_eq!(seen.values("if-range"), ["\"a1\""]);
    assert_eq!(seen.values("authorization"), ["Bearer secret-at-new"]);
}

#[tokio::test]
async fn an_upload_goes_out_as_it_came() {
    let shop = shop(Act::Reply(NO_CONTENT.to_vec())).await;
    let fields = "content-type: application/x-pdf\r\ncontent-encoding: gzip\r\nif-match: \"a1\"\r\n";
    // Invalid gzip, which is not inspected.
    let got = shop.ask("PUT /old/documents/7", fields, "%PDF \u{0} {").await;
    assert_eq!(got.status, 204, "{}", got.text());
    let seen = shop.service.seen().remove(0);
    assert_eq!(seen.line(), "PUT /files/7/content?locale=en HTTP/1.1");
    assert_eq!(seen.values("content-type"), ["application/pdf"]);
    assert_eq!(seen.values("content-encoding"), ["gzip"]);
    assert_eq!(seen.values("if-match"), ["\"a1\""]);
    assert_eq!(String::from_utf8_lossy(&seen.body), "%PDF \u{0} {");
}

#[tokio::test]
async fn what_the_contracts_do_not_have_is_refused_before_it_is_called() {
    let shop = shop(Act::Reply(NO_CONTENT.to_vec())).await;
    for (line, fields, status) in [
        ("PUT /old/documents/7", "content-type: image/png\r\n", 415),
        ("PUT /old/documents/7", "content-type: application/json\r\n", 415),
        ("PUT /old/documents/7", "", 415),
        // It takes any type, and the old side has no images.
        ("PUT /new/files/7/content", "content-type: image/png\r\n", 415),
    ] {
        let got = shop.ask(line, fields, "{}").await;
        assert_eq!(got.status, status, "{line} {fields}: {}", got.text());
        assert!(got.text().starts_with(r#"{"error":"#), "{}", got.text());
    }
    assert_eq!(shop.service.seen().len(), 0);
    assert_eq!(
        shop.ask("PUT /new/files/7/content", "content-type: TEXT/plain; a=b\r\n", "x").await.status,
        204
    );
}

#[tokio::test]
async fn answers_of_another_type_are_none_and_errors_are_errors() {
    let service = Upstream::answering(|at, _| match at {
        0 => Act::Reply(answer(200, "content-type: application/json\r\n", "{}")),
        1 => Act::json(404, r#"{"error":"none"}"#),
        2 => Act::Reply(b"HTTP/1.1 304 X\r\netag: \"a1\"\r\n\r\n".to_vec()),
        _ => Act::Reply(answer(200, "content-type: text/x-new\r\n", "new")),
    });
    let shop = Shop::start(&packs::shop(), service.await).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let got = shop.ask("GET /old/documents/7", "if-none-match: \"a1\"\r\n", "").await;
        statuses.push((got.status, got.value("content-type").to_owned(), got.value("etag").to_owned()));
    }
    let json = "application/json".to_owned();
    assert_eq!(
        statuses,
        [
            (502, json.clone(), String::new()),
            (404, json, String::new()),
            (304, String::new(), "\"a1\"".to_owned()),
            (200, "text/x-new".to_owned(), String::new()),
        ]
    );
    assert!(shop.service.seen().iter().all(|seen| seen.values("if-none-match") == ["\"a1\""]));
}

/// A body that is being read, and the bytes of the process while it is: far less than the body.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_body_streams_in_either_direction() {
    const BYTES: usize = 48 << 20;
    const MORE_MAX: u64 = 24 << 20;
    let large = vec![7_u8; BYTES];
    let mut download = answer(200, "content-type: text/plain\r\n", "");
    download =
        String::from_utf8(download).unwrap().replace("length: 0", &format!("length: {BYTES}")).into_bytes();
    download.extend_from_slice(&large);
    let service = Upstream::answering(move |_, seen| match seen.line().starts_with("PUT") {
        true => Act::Reply(NO_CONTENT.to_vec()),
        false => Act::Reply(download.clone()),
    });
    let shop = Shop::start(&packs::shop(), service.await).await;
    assert_eq!(shop.ask("PUT /old/documents/7", "content-type: text/plain\r\n", "x").await.status, 204);
    let before = resident(shop.program.id());
    let mut most = 0;
    let mut client = Client::connect(shop.gateway).await;
    let head = format!("x-api-key: {OLD_KEY}\r\ncontent-type: text/plain\r\ncontent-length: {BYTES}\r\n\r\n");
    client.send(format!("PUT /old/documents/7 HTTP/1.1\r\nhost: g\r\n{head}")).await;
    for piece in large.chunks(1 << 20) {
        client.send(piece).await;
        most = most.max(resident(shop.program.id()));
    }
    assert_eq!(client.answer().await.expect("an answer").status, 204);
    client.send(format!("GET /old/documents/7 HTTP/1.1\r\nhost: g\r\nx-api-key: {OLD_KEY}\r\n\r\n")).await;
    assert!(client.first_line().await.contains("200"));
    for _ in 0..BYTES >> 20 {
        assert_eq!(client.bytes(1 << 20).await.len(), 1 << 20);
        most = most.max(resident(shop.program.id()));
    }
    assert!(most < before + MORE_MAX, "{before} bytes resident before, {most} while 48 MiB pass");
    let seen = shop.service.seen().remove(1);
    assert!(seen.body == large, "{} bytes", seen.body.len());
}

#[tokio::test]
async fn more_than_may_be_forwarded_is_413() {
    let service = Upstream::start(vec![Act::Reply(NO_CONTENT.to_vec())]).await;
    let more = "limits: { forwarded_bytes: 100KiB, body_bytes: 64KiB }\n";
    let shop = Shop::with(&packs::shop(), more, service).await;
    for (bytes, status) in [(80_000, 204), (120_000, 413)] {
        let body = "x".repeat(bytes);
        let got = shop.ask("PUT /old/documents/7", "content-type: text/plain\r\n", &body).await;
        assert_eq!(got.status, status, "{bytes}: {}", got.text());
    }
}
