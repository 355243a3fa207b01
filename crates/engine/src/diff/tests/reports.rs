//! What the report of a dual run says.

use super::{compared, rules};
use crate::diff::{
    Comparison, Coverage, FindingKind, NotReadBack, Proof, Record, Summary, Threshold, report,
};

/// An operation of which so many calls were equal, and so many were these two answers.
fn summary(operation: &str, equal: u32, different: u32, answers: (&str, &str)) -> Summary {
    let mut summary = Summary::new("v1", operation, 1_700_000_000_000);
    summary.phase = "shadow".to_owned();
    let rules = rules(&["harmless $.note"]);
    for call in 0..different {
        summary.add(i64::from(call), &compared(&rules, answers.0, answers.1));
    }
    for call in 0..equal {
        summary.add(i64::from(call), &compared(&rules, "1", "1"));
    }
    summary
}

const TWO: (&str, &str) = (r#"{"a":1,"note":"x`y|z"}"#, r#"{"a":2,"note":"w"}"#);

#[test]
fn the_worst_comes_first_with_its_line_and_what_to_do() {
    let summaries = [
        summary("GET /good", 400, 0, TWO),
        summary("GET /bad", 90, 10, TWO),
        summary("GET /new", 20, 0, TWO),
        summary("GET /never", 0, 0, TWO),
    ];
    let report = report(&summaries, Threshold::default());
    let verdicts: Vec<(&str, Proof)> =
        report.operations.iter().map(|one| (one.operation.as_str(), one.proof)).collect();
    assert_eq!(
        verdicts,
        [
            ("GET /bad", Proof::Above),
            ("GET /never", Proof::NotEnough),
            ("GET /new", Proof::NotEnough),
            ("GET /good", Proof::Within),
        ]
    );
    assert_eq!(report.verdict, Proof::Above);
    let text = report.text();
    for said in [
        "GET /bad  shadow  compared 100, equal 90.00 %, differences at most 16.38 %  above the threshold",
        "    value $.a in 10 calls, copied by things.map.yaml:2",
        "        $.a: 1 became 2",
        "        $.note: \"x`y|z\" became \"w\"",
        "    → Look at things.map.yaml:2: it is behind `$.a` (value).",
        "    → Compare about 279 more calls without another difference.",
        "    → Nothing differs: move it to the next phase.",
        "above the threshold: at most 1.00 % may differ, with a confidence of 95.00 %",
    ] {
        assert!(text.contains(said), "{said}\n---\n{text}");
    }
}

#[test]
fn what_is_read_back_can_speak_against_an_operation_and_never_for_it() {
    let rules = rules(&["secret $.note"]);
    let read_back = |answers: (&str, &str)| Record {
        operation: "PUT /a".to_owned(),
        side: "v1".to_owned(),
        at_ms: 0,
        client: None,
        target: "/a".to_owned(),
        request_id: None,
        pack: None,
        read_back: Some("GET /a".to_owned()),
        comparison: compared(&rules, answers.0, answers.1),
    };
    let mut alike = summary("PUT /a", 0, 0, TWO);
    for _ in 0..1000 {
        alike.add_read_back(0, &read_back(("1", "1")));
    }
    let mut differing = summary("PUT /b", 400, 0, TWO);
    for answers in [TWO, ("1", "1"), TWO] {
        differing.add_read_back(0, &read_back(answers));
    }
    // The same difference in the answers themselves is another one.
    differing.add(0, &compared(&rules, r#"{"a":1}"#, r#"{"a":2}"#));
    let report = report(&[alike, differing], Threshold::default());
    let proofs: Vec<Proof> = report.operations.iter().map(|one| one.proof).collect();
    assert_eq!(proofs, [Proof::Above, Proof::NotEnough]);
    let (text, page) = (report.text(), report.markdown());
    for said in [
        "compared 401, equal 99.75 %, differences at most 1.18 %, read back 3, of these different 2  above the threshold",
        "    value $.a (read back by GET /a) in 2 calls, copied by things.map.yaml:2",
        "    value $.a in 1 calls, copied by things.map.yaml:2",
    ] {
        assert!(text.contains(said), "{said}\n---\n{text}");
    }
    for said in ["Read back 1000, of these different 0.", "- value `$.a` (read back by GET /a) in 2 calls"] {
        assert!(page.contains(said), "{said}\n---\n{page}");
    }
}

#[test]
fn an_earlier_period_is_named_and_proves_nothing_of_the_present_one() {
    let mut earlier = summary("GET /moved", 400, 0, TWO);
    earlier.present_phase = Some("canary".to_owned());
    let mut bad = summary("GET /back", 0, 10, TWO);
    bad.present_phase = Some("shadow".to_owned());
    let report = report(&[earlier, bad], Threshold::default());
    assert_eq!(report.verdict, Proof::NotEnough);
    let text = report.text();
    for line in [
        "GET /moved  shadow (an earlier period; now in canary)  compared 400",
        "    → No evidence of the present period in canary: all of this is of an earlier one.",
        "GET /back  shadow (an earlier period; now in shadow)  compared 10",
    ] {
        assert!(text.contains(line), "{line}\n---\n{text}");
    }
    assert!(!text.contains("move it") && !text.contains("Look at things"), "{text}");
    assert!(report.markdown().contains("| shadow (an earlier period; now in canary) | 400 |"));
}

#[test]
fn no_further_phase_is_proposed_behind_the_last_one() {
    let mut same = summary("GET /same", 400, 0, TWO);
    let mut near = summary("GET /near", 4000, 1, TWO);
    same.phase = "translated".to_owned();
    near.phase = "translated".to_owned();
    let report = report(&[same, near], Threshold::default());
    let next: Vec<&str> = report.operations.iter().map(|one| one.next.as_str()).collect();
    assert_eq!(next, ["Within the threshold: look at what differs.", "Nothing differs."]);
}

#[test]
fn a_write_that_nobody_examined_is_listed_with_the_reason() {
    let mut off = summary("PUT /off", 0, 0, TWO);
    off.counts.not_read_back.insert(NotReadBack::Off, 3);
    let mut undeclared = summary("PUT /undeclared", 0, 0, TWO);
    undeclared.counts.not_read_back.insert(NotReadBack::Undeclared, 2);
    let text = report(&[off, undeclared], Threshold::default()).text();
    for line in [
        "no effect read back of 3 writes (3: `shadow.read_back` is 0)  not enough evidence",
        "    → No write was examined: raise `shadow.read_back`.",
        "no effect read back of 2 writes (2: the pack declares no reading for it in `compare.read_back`)",
        "    → No write was examined: declare a reading for it in `compare.read_back` of the pack.",
    ] {
        assert!(text.contains(line), "{line}\n---\n{text}");
    }
}

#[test]
fn markdown_takes_nothing_of_a_value_for_its_own() {
    let page = report(&[summary("GET /bad", 0, 1, TWO)], Threshold::default()).markdown();
    assert!(
        page.contains("- value `$.a` in 1 calls, copied by things.map.yaml:2. Last: `$.a: 1 became 2`"),
        "{page}"
    );
    assert!(page.contains("\"x'y\\|z\""), "{page}");
    assert!(page.contains("| `GET /bad` | shadow | 1 | 0.00 % | 100.00 % | above the threshold |"), "{page}");
}

#[test]
fn a_report_for_programs_can_be_read_again() {
    let summaries = [summary("GET /bad", 5, 1, TWO)];
    let json =
        serde_json::to_value(report(&summaries, Threshold::default())).expect("a report can be written");
    assert_eq!(json["verdict"], "above");
    assert_eq!(json["operations"][0]["counts"]["by_kind"]["value"], 1);
    assert_eq!(json["operations"][0]["top"][0]["cause"]["by"], "copied");
    let kept = serde_json::to_string(&summaries[0]).expect("a summary can be written");
    let read: Summary = serde_json::from_str(&kept).expect("and read");
    assert_eq!(read, summaries[0]);
}

#[test]
fn a_sample_that_found_nothing_proves_nothing() {
    let mut summary = Summary::new("v1", "GET /large", 0);
    for _ in 0..1000 {
        summary.add(0, &Comparison { coverage: Coverage::Sample, ..Comparison::default() });
    }
    let report = report(&[summary.clone()], Threshold::default());
    assert_eq!((summary.counts.compared(), summary.counts.equal_so_far), (0, 1000));
    assert_eq!(report.verdict, Proof::NotEnough);
}

#[test]
fn causes_are_listed_by_how_often_they_are_to_blame() {
    let summary = summary("GET /bad", 0, 3, TWO);
    assert_eq!(summary.tallies.len(), 2);
    assert!(summary.tallies.iter().all(|tally| tally.kind == FindingKind::Value && tally.calls == 3));
    let blamed = summary.blamed();
    assert_eq!((blamed.len(), blamed[0].calls), (1, 6));
}
