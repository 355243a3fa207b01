//! The texts that `report` and `explain` print of a small shipped pack, word for word: each file of `tests/statements` is one of
//! them. `UPDATE_EXPECT=1` writes what is printed today into the files.

use std::path::Path;
use std::process::Command;

fn printed(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
    let done = command.current_dir(env!("CARGO_MANIFEST_DIR")).args(args).output().expect("the program runs");
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("the text is UTF-8")
}

#[test]
fn reports_and_explanations_of_a_pack_are_printed_word_for_word() {
    const TICKETS: &str = "mappings/tickets";
    const TWEETS: &str = "mappings/tweets";
    let cases: [(&str, &[&str]); 6] = [
        ("tickets-report.txt", &["report", TICKETS]),
        ("tickets-report.md", &["report", TICKETS, "--format", "markdown"]),
        ("tickets-pair.txt", &["explain", "GET /v1/tickets/7", TICKETS]),
        ("tickets-serve.txt", &["explain", "POST /v1/tickets/close", TICKETS]),
        ("tickets-event.txt", &["explain", "event ticket.changed", TICKETS]),
        // With paging, losses and fields without a source.
        ("tweets-report.txt", &["report", TWEETS]),
    ];
    for (name, args) in cases {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/statements").join(name);
        let printed = printed(args);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&file, &printed).expect("it can be written");
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(printed, expected, "{name}: `UPDATE_EXPECT=1` writes what is printed today");
    }
}

/// The counts of a headline are those of its operations, and an exact operation names no loss or gap of its own.
#[test]
fn the_headline_of_a_report_is_the_sum_of_its_operations() {
    for pack in ["tickets", "tweets", "sendgrid", "ingress", "messaging"] {
        let report = printed(&["report", &format!("mappings/{pack}"), "--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&report).expect("the report is JSON");
        for side in report["sides"].as_array().expect("a list") {
            let operations = side["operations"].as_array().expect("a list");
            let count = |verdict: &str| operations.iter().filter(|one| one["verdict"] == verdict).count();
            let counts = ["exact", "different", "partly", "not possible"].map(count);
            let said = ["exact", "different", "partly", "refused"].map(|key| side[key].as_u64().unwrap_or(0));
            assert_eq!(said, counts.map(|count| count as u64), "{pack}");
            assert_eq!(counts.iter().sum::<usize>(), operations.len(), "{pack}");
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
