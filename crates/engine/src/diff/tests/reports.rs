//! Tests of the report of a dual run.

use super::{compared, rules};
use crate::diff::{
    Cause, Comparison, Coverage, FindingKind, NotReadBack, Proof, Record, SkipReason, Summary, Threshold,
    report,
};

/// A summary with this number of equal calls, and this number of calls with these two answers.
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
    // The same difference in the answers has a tally of its own.
    differing.add(0, &compared(&rules, r#"{"a":1}"#, r#"{"a":2}"#));
    let report = report(&[alike, differing], Threshold::default());
    let proofs: Vec<Proof> = report.operations.iter().map(|one| one.proof).collect();
    assert_eq!(proofs, [Proof::Above, Proof::NotEnough]);
    let (text, page) = (report.text(), report.markdown());
    for said in [
        "compared 401, equal 99.75 %, differences at most 1.18 %, read back 3, of these different 2  above the threshold",
        "    value $.a (read back by GET /a) in 2 calls, copied by things.map.yaml:2",
        "    value $.a in 1 call, copied by things.map.yaml:2",
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
        page.contains("- value `$.a` in 1 call, copied by things.map.yaml:2. Last: `$.a: 1 became 2`"),
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
    assert_eq!((summary.counts.compared_count(), summary.counts.equal_so_far), (0, 1000));
    assert_eq!(report.verdict, Proof::NotEnough);
    let (text, page) = (report.text(), report.markdown());
    assert!(
        text.contains("compared 0, equal –, differences at most 100.00 %, compared in part 1000"),
        "{text}"
    );
    assert!(page.contains("\nCompared in part 1000 (without a difference).\n"), "{page}");
}

#[test]
fn causes_are_listed_by_how_often_they_are_to_blame() {
    let summary = summary("GET /bad", 0, 3, TWO);
    assert_eq!(summary.tallies.len(), 2);
    assert!(summary.tallies.iter().all(|tally| tally.kind == FindingKind::Value && tally.calls == 3));
    let blamed = summary.causes();
    assert_eq!((blamed.len(), blamed[0].calls), (1, 6));
}

#[test]
fn each_reason_for_comparing_nothing_is_listed_and_the_reasons_add_up() {
    let mut summary = summary("GET /skipped", 0, 0, TWO);
    for (why, calls) in SkipReason::ALL.into_iter().zip(1..) {
        (0..calls).for_each(|_| summary.counts.skip(why));
    }
    // An answer that did not come is counted by the side that did not give it.
    let is_unanswered =
        |why: &SkipReason| matches!(why, SkipReason::ReferenceFailed | SkipReason::CandidateFailed);
    let (unanswered, others): (Vec<_>, Vec<_>) =
        SkipReason::ALL.into_iter().zip(1_u64..).partition(|(why, _)| is_unanswered(why));
    let sum: u64 = others.iter().map(|(_, calls)| calls).sum();
    let reasons: Vec<String> =
        others.iter().map(|(why, calls)| format!("{calls}: {}", why.words())).collect();
    let line = format!(
        ", without an answer {} of the reference and {} of the candidate, not compared {sum} ({})  not enough",
        unanswered[0].1,
        unanswered[1].1,
        reasons.join("; ")
    );
    let text = report(&[summary.clone()], Threshold::default()).text();
    assert!(text.contains(&line), "{line}\n---\n{text}");
    let mut words: Vec<&str> = SkipReason::ALL.iter().map(|why| why.words()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), SkipReason::ALL.len(), "each reason has words of its own");
    let once = summary.counts.clone();
    summary.counts.merge(&once);
    assert_eq!(summary.counts.dropped, 2 * sum);
    assert_eq!(summary.counts.skipped.values().sum::<u64>(), 2 * sum);
}

#[test]
fn each_state_of_an_operation_has_its_next_step() {
    let of = |equal, different| summary("GET /a", equal, different, TWO);
    let by = |cause: Option<Cause>, is_unsettled| {
        let mut summary = of(0, 10);
        match cause {
            Some(cause) => summary.tallies[0].cause = cause,
            None => summary.tallies.clear(),
        }
        summary.tallies.iter_mut().for_each(|tally| tally.is_unsettled = is_unsettled);
        summary
    };
    let mut planned = of(0, 0);
    (0..5).for_each(|_| planned.add_planned(0, &Comparison::default()));
    let line = || "things.map.yaml:2".to_owned();
    for (summary, next) in [
        (of(400, 0), "Nothing differs: move it to the next phase."),
        (of(4000, 1), "Within the threshold: look at what differs, then move it on."),
        // With no difference, (1 - 0.01)^299 is below 0.05 and (1 - 0.01)^298 is not.
        (of(0, 0), "Compare about 299 more calls without another difference."),
        (of(298, 0), "Compare about 1 more call without another difference."),
        (planned, "No plan is wrong, which proves nothing of the answers: try it with a few clients."),
        (by(None, false), "Look at the log: what differed is no longer kept."),
        (by(Some(Cause::Upstream), false), "Look at the other service: `$.a` (value)."),
        (by(Some(Cause::Upstream), true), "Look at the other service: `$.a` differed and did not repeat."),
        (
            by(Some(Cause::Unmapped { line: line() }), false),
            "Look at things.map.yaml:2: it is behind `$.a` (value).",
        ),
    ] {
        assert_eq!(report(&[summary], Threshold::default()).operations[0].next, next);
    }
}

#[test]
fn differences_that_are_not_listed_are_counted_and_a_full_list_is_called_one() {
    let rules = rules(&[]);
    let of = |differences: usize| {
        let mut summary = Summary::new("v1", "GET /many", 0);
        for at in 0..differences {
            let body = |value: u8| format!(r#"{{"member{at}":{value}}}"#);
            summary.add(0, &compared(&rules, &body(1), &body(2)));
        }
        let report = report(&[summary], Threshold { top: 5, ..Threshold::default() });
        (report.text(), report.markdown())
    };
    let full = "Only the 200 most frequent are stored, and their counts may be too low.";
    for (differences, rest) in [
        (5, None),
        (6, Some("and 1 further difference (--top 6)".to_owned())),
        (199, Some("and 194 further differences (--top 199)".to_owned())),
        (201, Some(format!("and 195 further differences (--top 200). {full}"))),
    ] {
        let (text, page) = of(differences);
        let found = text.lines().find(|line| line.contains("further")).map(str::trim);
        assert_eq!(found, rest.as_deref(), "{differences}");
        let found = page.lines().find(|line| line.contains("further"));
        assert_eq!(found, rest.map(|rest| format!("- {rest}")).as_deref(), "{differences}");
        assert_eq!(text.lines().filter(|line| line.contains(" in 1 call, ")).count(), 5, "{text}");
    }
}

#[test]
fn operations_of_one_name_are_listed_with_their_sides() {
    let mut other = summary("GET /good", 0, 1, TWO);
    other.side = "v2".to_owned();
    let summaries = [summary("GET /good", 400, 0, TWO), other];
    let heads = |summaries: &[Summary]| {
        let report = report(summaries, Threshold::default());
        let text = report.text();
        let lines = text.lines().filter(|line| line.contains("  compared "));
        let heads: Vec<String> =
            lines.map(|line| line.split("  ").next().unwrap_or_default().to_owned()).collect();
        for head in &heads {
            let page = report.markdown();
            assert!(
                page.contains(&format!("\n## `{head}`\n")) && page.contains(&format!("| `{head}` |")),
                "{page}"
            );
        }
        heads
    };
    assert_eq!(heads(&summaries), ["v2 GET /good", "v1 GET /good"]);
    assert_eq!(heads(&summaries[..1]), ["GET /good"]);
}
