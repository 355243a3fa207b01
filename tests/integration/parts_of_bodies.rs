//! Multipart forms with mapped fields and streamed files, through the real binary: the manual's
//! shop.

use crate::spellings::{OLD_KEY, Shop};
use crate::support::packs;
use crate::support::program::resident;
use crate::support::raw::{Act, Client, Seen, Upstream};
use switchback_compiler::mapping::load::{PackFile, PackSource};

const FORM: &str = "content-type: multipart/form-data; boundary=B\r\n";

async fn shop() -> Shop {
    Shop::start(&packs::shop(), Upstream::start(vec![Act::json(200, r#"{"id":7}"#)]).await).await
}

/// Returns a body of these parts, each with its header and its content.
fn body(parts: &[(&str, &str)]) -> String {
    let part = |(head, content): &(&str, &str)| {
        format!("--B\r\nContent-Disposition: form-data; {}\r\n\r\n{content}\r\n", head.replace('|', "\r\n"))
    };
    parts.iter().map(part).collect::<String>() + "--B--\r\n"
}

const PICTURE: [(&str, &str); 6] = [
    ("name=title", "Lake \u{e4}"),
    ("name=\"tags\"", "a"),
    ("name=\"tags\"", "b,c"),
    ("name=rights; filename=blob|Content-Type: application/json", "{\"owner\": \"Ann\", \"free\":true}"),
    ("name=preview; filename=small.png", "dropped \r\n--"),
    ("name=picture; filename=\"a b.png\"; x=y|content-type: image/png|X-Note: 1", "PNG\r\n--\r\n-B\r\n\r\n"),
];

/// Returns the parts that a service received: the header of each, in lower case, and its content.
fn parts(seen: &Seen) -> Vec<(String, Vec<u8>)> {
    let named = seen.values("content-type")[0].to_owned();
    let boundary = named.strip_prefix("multipart/form-data; boundary=").expect("parts").to_owned();
    assert!(boundary.starts_with('B') && boundary.len() > 10, "{boundary}");
    let whole = match seen.values("transfer-encoding").is_empty() {
        true => seen.body.clone(),
        false => joined(&seen.body),
    };
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    let mut rest = [b"\r\n", &whole[..]].concat();
    let mut pieces = Vec::new();
    while let Some(at) = memchr::memmem::find(&rest, &delimiter) {
        pieces.push(rest[..at].to_vec());
        rest.drain(..at + delimiter.len());
    }
    assert_eq!(rest, b"--\r\n", "the final boundary");
    let part = |piece: &Vec<u8>| {
        let at = memchr::memmem::find(piece, b"\r\n\r\n").expect("a header");
        let head = String::from_utf8_lossy(&piece[2..at]).replace("\r\n", "|");
        (head, piece[at + 4..].to_vec())
    };
    assert_eq!(pieces.remove(0), b"");
    pieces.iter().map(part).collect()
}

/// Returns the content of chunks.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let end = memchr::memmem::find(chunks, b"\r\n").expect("a chunk's size");
        let size = std::str::from_utf8(&chunks[..end]).expect("digits");
        let size = usize::from_str_radix(size, 16).expect("digits");
        if size == 0 {
            return all;
        }
        all.extend_from_slice(&chunks[end + 2..end + 2 + size]);
        chunks = &chunks[end + 2 + size + 2..];
    }
}

fn told(seen: &Seen) -> Vec<(String, String)> {
    let text = |(head, content): (String, Vec<u8>)| (head, String::from_utf8_lossy(&content).into_owned());
    parts(seen).into_iter().map(text).collect()
}

/// Sends a body in chunks of a size, without its total length.
async fn in_chunks(shop: &Shop, line: &str, body: &[u8], size: usize) -> Option<(u16, String)> {
    in_chunks_as(shop, line, FORM, body, size).await
}

/// The same with these fields.
async fn in_chunks_as(
    shop: &Shop,
    line: &str,
    fields: &str,
    body: &[u8],
    size: usize,
) -> Option<(u16, String)> {
    let mut client = Client::connect(shop.gateway).await;
    let head = format!("x-api-key: {OLD_KEY}\r\nauthorization: Bearer token-of-a-new-client\r\n{fields}");
    client.send(format!("{line} HTTP/1.1\r\nhost: g\r\n{head}transfer-encoding: chunked\r\n\r\n")).await;
    for piece in body.chunks(size) {
        client.send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()).await;
    }
    client.send("0\r\n\r\n").await;
    client.answer().await.map(|answer| (answer.status, answer.text()))
}

fn field(name: &str, value: &str) -> (String, String) {
    (format!("Content-Disposition: form-data; name=\"{name}\""), value.to_owned())
}

#[tokio::test]
async fn fields_are_mapped_and_files_go_on_however_the_body_comes() {
    let shop = shop().await;
    let sent = body(&PICTURE);
    let answer = shop.ask("POST /old/pictures", FORM, &sent).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"id":7}"#));
    for size in [1, 7, 4096] {
        let answer = in_chunks(&shop, "POST /old/pictures", sent.as_bytes(), size).await;
        assert_eq!(answer, Some((200, r#"{"id":7}"#.to_owned())), "{size}");
    }
    let about = r#"{"name":"Lake ä","rights":{"owner": "Ann", "free":true}}"#;
    let json = "Content-Disposition: form-data; name=\"about\"|Content-Type: application/json".to_owned();
    let image = "Content-Disposition: form-data; name=\"image\"; filename=\"a b.png\"; x=y|content-type: image/png|X-Note: 1";
    let wanted = vec![
        field("labels", "a"),
        field("labels", "b,c"),
        (json, about.to_owned()),
        (image.to_owned(), PICTURE[5].1.to_owned()),
    ];
    for seen in shop.service.seen() {
        assert_eq!(seen.line(), "POST /images?locale=en HTTP/1.1");
        assert_eq!(seen.values("authorization"), ["Bearer secret-at-new"]);
        assert_eq!(told(&seen), wanted);
    }
}

#[tokio::test]
async fn the_other_direction_makes_fields_of_json() {
    let shop = shop().await;
    let sent = body(&[
        ("name=image; filename=x", "GIF"),
        // After the file, and valid there.
        ("name=labels", "late"),
        ("name=labels", "later"),
    ]);
    let about =
        ("name=about|Content-Type: application/json; charset=utf-8", r#" {"name":"Sea","year":"1999"} "#);
    let first = body(&[about]).replace("--B--\r\n", "") + &sent;
    let answer = in_chunks(&shop, "POST /new/images", first.as_bytes(), 16).await;
    assert_eq!(answer, Some((200, r#"{"id":7}"#.to_owned())));
    let file = "Content-Disposition: form-data; name=\"picture\"; filename=x".to_owned();
    assert_eq!(
        told(&shop.service.seen()[0]),
        [
            field("title", "Sea"),
            field("year", "1999"),
            (file, "GIF".to_owned()),
            field("tags", "late"),
            field("tags", "later")
        ]
    );
}

#[tokio::test]
async fn a_body_that_is_no_form_of_the_contract_reaches_nobody() {
    let shop = shop().await;
    let whole = body(&PICTURE);
    let large = body(&[("name=title", &"x".repeat(11 << 20))]);
    let header = format!("name=title|X: {}", "y".repeat(17_000));
    for (fields, sent, status) in [
        ("content-type: multipart/form-data\r\n", whole.clone(), 400),
        ("", whole.clone(), 415),
        ("content-type: application/x-www-form-urlencoded\r\n", "title=x".to_owned(), 415),
        ("content-type: multipart/mixed; boundary=B\r\n", whole.clone(), 415),
        (FORM, "--B--".replace("B--", "C--"), 400),
        (FORM, body(&PICTURE[..1]).replace("--B--", ""), 400),
        (FORM, whole.replacen("form-data", "attachment", 1), 400),
        (FORM, whole.replacen("{\"owner\"", "{owner", 1), 400),
        (FORM, body(&[("name=year", "1"), ("name=year", "2"), PICTURE[5]]), 400),
        (FORM, body(&[(&header, "x")]), 400),
        (FORM, large, 413),
    ] {
        let answer = shop.ask("POST /old/pictures", fields, &sent).await;
        assert_eq!(answer.status, status, "{fields}{:.80}: {}", sent, answer.text());
        assert!(answer.text().starts_with(r#"{"error":"#), "{}", answer.text());
        // Whether its length is announced makes no difference.
        if sent.len() < 1 << 20 {
            let streamed = in_chunks_as(&shop, "POST /old/pictures", fields, sent.as_bytes(), 4096).await;
            assert_eq!(streamed, Some((status, answer.text())), "{fields}{sent:.80}");
        }
    }
    assert_eq!(shop.service.seen().len(), 0);
    // The program still works.
    assert_eq!(shop.ask("POST /old/pictures", FORM, &whole).await.status, 200);
}

/// The shop with other words in its files, and without the examples, which hold for the usual ones.
fn changed(words: &[(&str, &str)]) -> PackSource {
    let file = |(name, bytes): &PackFile| {
        let text = str::from_utf8(bytes).expect("packs are text");
        let text = text.split("\nexamples:").next().unwrap_or_default().to_owned();
        let text = words.iter().fold(text, |text, (from, to)| text.replace(from, to));
        (name.clone(), text.into_bytes())
    };
    PackSource::from_files(packs::shop().files().iter().map(file).collect())
}

/// The consumed part of a large body cannot be sent again: the client gets the refusal of the
/// mapping.
#[tokio::test]
async fn a_refused_part_leaves_a_small_body_to_the_old_service_and_ends_a_large_one() {
    let pair = "{v1: POST /pictures, v2: POST /images}";
    let pack = changed(&[
        ("legacy: never", "legacy: forward"),
        ("preview: absent", "preview: {refuse: no_ids}"),
        (pair, &format!("{pair}\n    verdict: {{v1: partly}}")),
    ]);
    let shop = Shop::start(&pack, Upstream::start(vec![Act::json(200, r#"{"id":7}"#)]).await).await;
    let small = body(&PICTURE);
    assert_eq!(shop.ask("POST /old/pictures", FORM, &small).await.status, 200);
    let seen = shop.service.seen();
    assert_eq!(seen[0].line(), "POST /pictures HTTP/1.1");
    assert_eq!(String::from_utf8_lossy(&seen[0].body), small);
    for parts in [&PICTURE[..], &[PICTURE[0], PICTURE[5], PICTURE[4]]] {
        let answer = in_chunks(&shop, "POST /old/pictures", body(parts).as_bytes(), 64).await;
        let (status, text) = answer.expect("an answer");
        assert_eq!(status, if parts.len() == 6 { 501 } else { 400 }, "{text}");
    }
    assert_eq!(shop.service.seen().len(), 1);
}

#[tokio::test]
async fn an_optional_body_that_is_empty_is_none_however_it_comes() {
    let parts = "required: true\n        content:\n          multipart";
    let pack = changed(&[(parts, &parts.replace("true", "false"))]);
    let shop = Shop::start(&pack, Upstream::start(vec![Act::json(200, r#"{"id":7}"#)]).await).await;
    for fields in ["", FORM] {
        let whole = shop.ask("POST /old/pictures", fields, "").await;
        assert_eq!(whole.status, 200, "{}", whole.text());
        let streamed = in_chunks_as(&shop, "POST /old/pictures", fields, b"", 1).await;
        assert_eq!(streamed, Some((200, whole.text())), "{fields}");
    }
    for seen in shop.service.seen() {
        assert_eq!((seen.values("content-type"), seen.body.len()), (vec![], 0));
    }
}

/// Names of the threads of a program.
fn threads(program: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{program}/task")).expect("it runs");
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.map(|name| name.trim().to_owned()).collect()
}

#[tokio::test]
async fn large_fields_are_mapped_apart_from_the_threads_that_answer() {
    let large = "x".repeat(200_000);
    for parts in [
        &[("name=title", large.as_str()), PICTURE[5]][..],
        // After the file.
        &[PICTURE[0], PICTURE[5], ("name=tags", &large)],
    ] {
        let shop = shop().await;
        let is_apart = || threads(shop.program.id()).iter().any(|name| name == "heavy");
        let small = body(&PICTURE);
        let answer = in_chunks(&shop, "POST /old/pictures", small.as_bytes(), 4096).await;
        assert_eq!((answer.expect("an answer").0, is_apart()), (200, false));
        let answer = in_chunks(&shop, "POST /old/pictures", body(parts).as_bytes(), 4096).await;
        assert_eq!((answer.expect("an answer").0, is_apart()), (200, true));
        let sent = &told(&shop.service.seen()[1]);
        assert!(sent.iter().any(|(_, content)| content.contains(&large)), "{} parts", sent.len());
    }
}

/// Buffered fields are counted: with many clients that send such fields, some are asked to retry.
#[tokio::test]
async fn fields_that_there_is_no_memory_for_earn_503() {
    let service = Upstream::start(vec![Act::json(200, r#"{"id":7}"#)]).await;
    let shop = Shop::with(&packs::shop(), "limits: { memory: 160MiB }\n", service).await;
    let begun = body(&[("name=title", &"x".repeat(5 << 20))]);
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = Client::connect(shop.gateway).await;
        let head = format!("x-api-key: {OLD_KEY}\r\n{FORM}content-length: {}", begun.len() + 10);
        client.send(format!("POST /old/pictures HTTP/1.1\r\nhost: g\r\n{head}\r\n\r\n{begun}")).await;
        clients.push(client);
    }
    let answers = clients.iter_mut().map(|client| Box::pin(client.answer()));
    let (answer, ..) = futures_util::future::select_all(answers).await;
    let answer = answer.expect("an answer");
    assert_eq!((answer.status, answer.value("retry-after")), (503, "1"));
    drop(clients);
    assert_eq!(shop.service.seen().len(), 0);
}

/// An error after the first file is found during the call, which must not end as if it were
/// complete.
#[tokio::test]
async fn a_late_fault_cuts_the_call() {
    let shop = shop().await;
    let file = ("name=picture; filename=a", "PNG");
    let cut = body(&[PICTURE[0], file]).replace("--B--", "");
    for sent in [
        // It belongs to an object that was already written.
        body(&[file, PICTURE[0]]),
        cut,
        body(&[PICTURE[0], file]).replace("PNG", "PNG\r\n--Bad"),
    ] {
        let answer = in_chunks(&shop, "POST /old/pictures", sent.as_bytes(), 64).await.expect("an answer");
        assert_eq!(answer.0, 400, "{}", answer.1);
        assert!(answer.1.starts_with(r#"{"error":"#), "{}", answer.1);
        // A small body is buffered, and answered in the same way.
        assert_eq!(shop.ask("POST /old/pictures", FORM, &sent).await.status, 400);
    }
    assert_eq!(shop.service.seen().len(), 0);
}

/// A large upload is mapped in the memory of its fields.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_upload_streams_while_its_fields_are_mapped() {
    const BYTES: usize = 32 << 20;
    const MORE_MAX: u64 = 16 << 20;
    let shop = shop().await;
    assert_eq!(shop.ask("POST /old/pictures", FORM, &body(&PICTURE)).await.status, 200);
    let before = resident(shop.program.id());
    let (begin, end) = (body(&PICTURE[..2]), "\r\n--B--\r\n");
    let begin = begin.replace("--B--\r\n", "")
        + "--B\r\nContent-Disposition: form-data; name=picture; filename=large\r\n\r\n";
    let mut client = Client::connect(shop.gateway).await;
    let length = begin.len() + BYTES + end.len();
    let head = format!("x-api-key: {OLD_KEY}\r\n{FORM}content-length: {length}\r\n\r\n{begin}");
    client.send(format!("POST /old/pictures HTTP/1.1\r\nhost: g\r\n{head}")).await;
    let mut most = 0;
    let large: Vec<u8> = (0..BYTES).map(|at| b"\r\n--B\n-"[(at * 7 + at / 7919) % 7]).collect();
    let large = String::from_utf8(large).expect("ASCII").replace("\r\n--B", "\r\n--C").into_bytes();
    for piece in large.chunks(1 << 20) {
        client.send(piece).await;
        most = most.max(resident(shop.program.id()));
    }
    client.send(end).await;
    assert_eq!(client.answer().await.expect("an answer").status, 200);
    assert!(most < before + MORE_MAX, "{before} bytes resident before, {most} while 32 MiB pass");
    let sent = parts(&shop.service.seen()[1]);
    assert_eq!(sent[0], (field("labels", "a").0, b"a".to_vec()));
    assert!(sent[2].0.ends_with("name=\"image\"; filename=large"), "{}", sent[2].0);
    assert!(sent[2].1 == large, "{} bytes", sent[2].1.len());
}
