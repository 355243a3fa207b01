//! The complete output of `report`, `explain`, `check`, `test` and `replay` for small packs: each
//! file of `tests/statements` is one of them. `UPDATE_EXPECT=1` writes the present output into the
//! files.

use std::path::{Path, PathBuf};
use std::process::Command;
use switchback_engine::har::{Body, Exchange, Gateway, Request, Response, Shadow, Writer};

const TICKETS: &str = "mappings/tickets";
const TWEETS: &str = "mappings/tweets";
/// Small enough to verify the output by hand.
const SHELVES: &str = "tests/integration/statements";

/// Runs the program; returns its exit code and its output.
fn run(args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
    let done = command.current_dir(env!("CARGO_MANIFEST_DIR")).args(args).output().expect("the program runs");
    let printed = String::from_utf8(done.stdout).expect("the text is UTF-8");
    assert!(!printed.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    (done.status.code(), printed)
}

fn printed(args: &[&str]) -> String {
    let (code, printed) = run(args);
    assert_eq!(code, Some(0), "{args:?}: {printed}");
    printed
}

/// Compares a text with the file of this name.
fn check(name: &str, printed: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/statements").join(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&file, printed).expect("it can be written");
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(printed, expected, "{name}: `UPDATE_EXPECT=1` writes what is printed today");
}

#[test]
fn reports_and_explanations_of_a_pack_are_printed_word_for_word() {
    let loan = "tests/integration/statements/loan.json";
    // Under these settings no operation reads the archives.
    let off = ["report", SHELVES, "--set", "reviews.archived=false", "--set", "loans.days=14"];
    let cases: [(&str, &[&str]); 14] = [
        ("tickets-report.txt", &["report", TICKETS]),
        ("tickets-report.md", &["report", TICKETS, "--format", "markdown"]),
        ("tickets-pair.txt", &["explain", "GET /v1/tickets/7", TICKETS]),
        ("tickets-serve.txt", &["explain", "POST /v1/tickets/close", TICKETS]),
        ("tickets-event.txt", &["explain", "event ticket.changed", TICKETS]),
        // With paging, losses and fields without a source.
        ("tweets-report.txt", &["report", TWEETS]),
        // With fronts of both sides, settings, archives, and routes that a setting switches.
        ("shelves-report.txt", &["report", SHELVES]),
        ("shelves-report.md", &["report", SHELVES, "--format", "markdown"]),
        ("shelves-report-off.txt", &off),
        ("shelves-refused.txt", &["explain", "GET /v1/books/7/review", SHELVES]),
        ("shelves-pair.txt", &["explain", "PUT /v1/books/7", SHELVES]),
        ("shelves-paged.txt", &["explain", "GET /v1/books?page=3", SHELVES]),
        ("shelves-loan.txt", &["explain", "POST /v1/loans", SHELVES, "--body", loan]),
        ("shelves-volume.txt", &["explain", "GET /v2/volumes/7", SHELVES]),
    ];
    for (name, args) in cases {
        check(name, &printed(args));
    }
}

/// The time of a check differs between runs.
#[test]
fn what_is_checked_and_tested_of_a_pack_is_counted() {
    let (code, text) = run(&["check", SHELVES]);
    let (counts, time) = text.rsplit_once("; ").expect("the time is the last");
    assert_eq!(
        (code, counts),
        (Some(0), "shelves: 6 operations of v1, 5 of v2, 2 shapes; 0 errors, 0 warnings")
    );
    assert!(time.strip_suffix(" ms\n").is_some_and(|number| number.parse::<u64>().is_ok()), "{time}");
    for (name, args) in [
        ("shelves-test.txt", &["test", SHELVES][..]),
        ("shelves-test.json", &["test", SHELVES, "--format", "json"]),
    ] {
        let (code, text) = run(args);
        assert_eq!(code, Some(1), "{text}");
        check(name, &text);
    }
}

/// Returns a call of v1 as a gateway records it, with its calls of v2 and their replies.
fn recorded(call: &str, answer: &str, calls: &[(&str, &str, Option<&str>)]) -> Exchange {
    let body = |text: &str| Body::from(bytes::Bytes::copy_from_slice(text.as_bytes()));
    let request = |call: &str, sent: &str, base: &str| {
        let (method, target) = call.split_once(' ').expect("a method and a target");
        Request {
            method: method.to_owned(),
            url: format!("{base}{target}"),
            body: body(sent),
            ..Request::default()
        }
    };
    let response = |text: &str| Response { status: 200, headers: Vec::new(), body: body(text) };
    let made = calls.iter().map(|(call, sent, reply)| Exchange {
        request: request(call, sent, ""),
        response: reply.map(response),
        ..Exchange::default()
    });
    Exchange {
        request: request(call, "", "http://gateway.example/v1"),
        response: Some(response(answer)),
        gateway: Some(Gateway {
            side: "v1".to_owned(),
            target: call.split_once(' ').map(|(_, target)| target.to_owned()).unwrap_or_default(),
            outcome: "translated".to_owned(),
            calls: made.collect(),
            ..Gateway::default()
        }),
        ..Exchange::default()
    }
}

/// Writes an archive of ten entries with known outcomes.
fn archive(folder: &Path) -> PathBuf {
    let tea = r#"{"id":"7","title":"Tea"}"#;
    let read = |id: &str, rating: &str| {
        let answer = format!(r#"{{"id":"7","name":"Tea","rating":{rating},"shelf":null}}"#);
        let call = format!("GET /volumes/{id}");
        recorded(&format!("GET /books/{id}"), &answer, &[(&call, "", Some(tea))])
    };
    let mut forwarded = recorded("GET /books/7", "{}", &[]);
    let mut planned =
        recorded("PUT /books/7", "", &[("PUT /volumes/7", r#"{"title":"Tea","stock":3}"#, None)]);
    planned.request.body = Body::from(bytes::Bytes::from_static(br#"{"name":"Tea","stock":3}"#));
    for (exchange, shadow) in [(&mut forwarded, None), (&mut planned, Some(Shadow::Planned))] {
        let known = exchange.gateway.as_mut().expect("a gateway recorded it");
        (known.outcome, known.shadow) = ("forwarded".to_owned(), shadow);
    }
    let mut foreign = recorded("GET /logo.png", "", &[]);
    (foreign.request.url, foreign.gateway) = ("https://elsewhere.example/logo.png".to_owned(), None);
    let page = r#"{"data":[],"next":null}"#;
    let from_memory =
        recorded("GET /books?page=2", "[]", &[("GET /volumes?after=c1&limit=10", "", Some(page))]);
    let elsewhere = recorded("GET /books/9", "{}", &[("GET /volumes/90", "", Some(tea))]);
    let file = folder.join("shelves.har");
    let mut writer = Writer::new(std::fs::File::create(&file).expect("a file")).expect("it is written");
    for exchange in [
        read("7", "null"),
        read("8", "4"),
        elsewhere,
        read("8", "5"),
        read("6", "null"),
        planned,
        forwarded,
        foreign,
        from_memory,
        recorded("GET /malformed", "", &[]),
    ] {
        writer.entry(&exchange).expect("it is written");
    }
    writer.finish().expect("it is written");
    let text = std::fs::read_to_string(&file).expect("it was written");
    std::fs::write(&file, text.replace(r#""http://gateway.example/v1/malformed""#, "7")).expect("a file");
    file
}

#[test]
fn a_replay_counts_what_changed_what_is_the_same_and_why_the_rest_is_unknown() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = archive(folder.path());
    let file = file.to_str().expect("temporary folders have plain names");
    let (code, text) = run(&["replay", file, SHELVES, "--show", "2"]);
    assert_eq!(code, Some(1), "{text}");
    check("shelves-replay.txt", &text);
    // Two answers and the calls of one write are the same, three exchanges changed, and four are
    // unknown for four reasons.
    let (_, json) = run(&["replay", file, SHELVES, "--show", "2", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("the report is JSON");
    let total = &json["total"];
    let counts = ["same", "calls_only", "changed", "unknown"].map(|name| total[name].as_u64());
    assert_eq!((counts, &json["exchanges"]), ([3, 1, 3, 4].map(Some), &10.into()), "{json:#}");

    // The service cannot be reached: the seven readings are unknown, and the write is not sent.
    let live = ["--upstream", "http://127.0.0.1:1", "--format", "json"];
    let (code, json) = run(&[&["replay", file, SHELVES], &live[..]].concat());
    assert_eq!(code, Some(3), "{json}");
    let json: serde_json::Value = serde_json::from_str(&json).expect("the report is JSON");
    let reasons = json["unknown"].as_object().expect("the reasons");
    let of = |start: &str| -> u64 {
        reasons.iter().filter(|(why, _)| why.starts_with(start)).filter_map(|(_, count)| count.as_u64()).sum()
    };
    let counts =
        ["the service could not be asked: ", "it has effects", "not a call", "the entry is malformed"];
    assert_eq!((counts.map(of), &json["judged"]), ([7, 1, 1, 1], &0.into()), "{json:#}");
}

/// The counts of a headline are those of its operations, and an exact operation names no loss or
/// gap of its own.
#[test]
fn the_headline_of_a_report_is_the_sum_of_its_operations() {
    let shipped = ["tickets", "tweets", "sendgrid", "ingress", "issues", "payments", "messaging"]
        .map(|name| format!("mappings/{name}"));
    for pack in shipped.iter().map(String::as_str).chain([SHELVES]) {
        let report = printed(&["report", pack, "--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&report).expect("the report is JSON");
        for side in report["sides"].as_array().expect("a list") {
            let operations = side["operations"].as_array().expect("a list");
            let count = |verdict: &str| operations.iter().filter(|one| one["verdict"] == verdict).count();
            let counts = ["exact", "different", "partly", "not possible"].map(count);
            let said = ["exact", "different", "partly", "refused"].map(|key| side[key].as_u64().unwrap_or(0));
            assert_eq!(said, counts.map(|count| count as u64), "{pack}");
            assert_eq!(counts.iter().sum::<usize>(), operations.len(), "{pack}");
            let degraded = operations.iter().filter(|one| one["degraded"] == true).count();
            assert_eq!(side["degraded"], degraded, "{pack}");
            for one in operations.iter().filter(|one| one["verdict"] == "exact") {
                let lost = one["lost"].as_array().expect("a list");
                let own =
                    lost.iter().filter(|loss| loss["side"] == side["side"] || !loss["values"].is_null());
                assert_eq!(own.count(), 0, "{pack} {}: {lost:?}", one["operation"]);
                assert_eq!(one["without_source"], serde_json::json!([]), "{pack} {}", one["operation"]);
                assert_eq!(one["degraded"], false, "{pack} {}", one["operation"]);
            }
        }
    }
}
