//! Pairs of bodies and their expected findings.

use super::{compared, redactor, rules, said, view};
use crate::diff::{BufferedAnswer, Buffering, Candidate, Coverage, Limits, Noise, Verdict, compare};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use switchback_plan::{Key, XmlFormat, XmlKind, XmlMember, XmlName, XmlPlace, XmlScalar, XmlType};

/// Declarations, reference, candidate, expected findings.
type Situation<'s> = (&'s [&'s str], &'s str, &'s str, &'s [&'s str]);

fn check(situations: &[Situation<'_>]) {
    for (declared, reference, candidate, wanted) in situations {
        let found = compared(&rules(declared), reference, candidate);
        assert_eq!(said(&found), *wanted, "{declared:?}: {reference} beside {candidate}");
    }
}

#[test]
fn members_differ_in_every_way() {
    check(&[
        (&[], r#"{"a": 1, "b": [true, null]}"#, r#"{"b":[true,null],"a":1}"#, &[]),
        (&[], r#"{"a":1,"b":2}"#, r#"{"a":1}"#, &["missing $.b"]),
        (&[], r#"{"a":1,"b":null}"#, r#"{"a":1}"#, &["missing $.b"]),
        (&[], r#"{"a":1}"#, r#"{"a":1,"x y":2}"#, &["extra $['x y']"]),
        (&[], r#"{"a":1}"#, r#"{"a":"1"}"#, &["type $.a"]),
        (&[], r#"{"a":{}}"#, r#"{"a":[]}"#, &["type $.a"]),
        (&[], r#"{"a":null}"#, r#"{"a":0}"#, &["type $.a"]),
        (&[], r#"{"a":{"b":"x"}}"#, r#"{"a":{"b":"y"}}"#, &["value $.a.b"]),
        (&[], r#"{"a":"\u0041"}"#, r#"{"a":"A"}"#, &[]),
        (&[], r#"{"a":true}"#, r#"{"a":false}"#, &["value $.a"]),
    ]);
}

#[test]
fn documents_are_compared_by_their_trees() {
    let any = |kind| XmlType { kind, nullable: false };
    let name = |local: &str| XmlName { local: local.into(), namespace: None, prefix: None };
    let number = XmlScalar { string: false, boolean: false, integer: true, number: true };
    let member = |key: &str, place| XmlMember { key: Key::new(key), place, of: 0, required: false };
    let members =
        vec![member("a", XmlPlace::Attribute(name("a"))), member("b", XmlPlace::Element(name("b")))];
    let format = XmlFormat {
        content_type: "text/xml".into(),
        root: name("r"),
        of: 1,
        types: vec![any(XmlKind::Scalar(number)), any(XmlKind::Object { members, others: None })],
    };
    let mut rules = rules(&[]);
    rules.xml = [Some(Arc::new(format)), None];
    for (reference, candidate, wanted) in [
        ("<r a='1'><b>2</b></r>", "<?xml version='1.0'?>\n<r a=\"1\">\n <b> 2 </b></r>", &[][..]),
        ("<r a='1'><b>2</b></r>", "<r a='1'><b>3</b></r>", &["value $.b"]),
        ("<r a='1'/>", "<r/>", &["missing $.a"]),
        // The candidate's text is no document.
        ("<r a='1'/>", "<r a='1'", &["type $"]),
    ] {
        assert_eq!(said(&compared(&rules, reference, candidate)), wanted, "{candidate}");
    }
}

#[test]
fn one_number_written_twice_is_a_finding_of_its_own_kind() {
    check(&[
        (&[], "1.10", "1.1", &["spelling $"]),
        (&[], "100", "1e2", &["spelling $"]),
        (&[], "-0", "0.0e7", &["spelling $"]),
        (&[], "12345678901234567890", "12345678901234567891", &["value $"]),
        (&[], "1.10", "1.01", &["value $"]),
        (&[], "1", "-1", &["value $"]),
        (&[], "1e400", "1e401", &["value $"]),
        (&[], "10e399", "1e400", &["spelling $"]),
    ]);
}

#[test]
fn elements_without_a_key_are_matched_by_place_and_common_run() {
    check(&[
        (&[], "[1,2,3]", "[1,2,3]", &[]),
        (&[], "[1,2,3]", "[1,9,3]", &["value $[1]"]),
        (&[], "[1,2,3]", "[1,3]", &["missing $[1]"]),
        (&[], "[1,3]", "[1,2,3]", &["extra $[1]"]),
        (&[], "[1,2,3]", "[]", &["missing $[0] ×3"]),
        (&[], "[[1],[2],[3],[4]]", "[[0],[1],[2],[3]]", &["extra $[0]", "missing $[3]"]),
        (&[], r#"[{"a":1},{"a":2}]"#, r#"[{"a":1},{"a":3}]"#, &["value $[1].a"]),
        (&[], r#"[{"a":1},{"a":2}]"#, r#"[{"a":5},{"a":6}]"#, &["value $[0].a ×2"]),
    ]);
}

#[test]
fn elements_with_a_key_are_matched_wherever_they_stand() {
    let key: &[&str] = &["key $ id"];
    check(&[
        (key, r#"[{"id":1,"a":1},{"id":2,"a":2}]"#, r#"[{"id":2,"a":2},{"id":1,"a":1}]"#, &["order $"]),
        (
            key,
            r#"[{"id":1,"a":1},{"id":2,"a":2}]"#,
            r#"[{"id":2,"a":2},{"id":1,"a":7}]"#,
            &["order $", "value $[0].a"],
        ),
        (key, r#"[{"id":1},{"id":2},{"id":3}]"#, r#"[{"id":1},{"id":3}]"#, &["missing $[1]"]),
        (key, r#"[{"id":1}]"#, r#"[{"id":1},{"id":4}]"#, &["extra $[1]"]),
        (key, r#"[{"id":1,"a":0}]"#, r#"[{"id":"1","a":0}]"#, &["type $[0].id"]),
        (key, r#"[{"id":1,"a":0},{"id":2,"a":0}]"#, r#"[{"id":1,"a":0},{"id":3,"a":0}]"#, &["value $[1].id"]),
        (key, r#"[{"id":1},{"id":1,"a":1}]"#, r#"[{"id":1},{"id":1,"a":2}]"#, &["value $[1].a"]),
        (&["key $ id", "unordered $"], r#"[{"id":1},{"id":2}]"#, r#"[{"id":2},{"id":1}]"#, &[]),
    ]);
}

#[test]
fn where_order_says_nothing_only_content_counts() {
    let any: &[&str] = &["unordered $.tags"];
    check(&[
        (any, r#"{"tags":["a","b","c"]}"#, r#"{"tags":["c","a","b"]}"#, &[]),
        (any, r#"{"tags":["a","a","b"]}"#, r#"{"tags":["b","a","b"]}"#, &["value $.tags[1]"]),
        (any, r#"{"tags":["a","b"]}"#, r#"{"tags":["b"]}"#, &["missing $.tags[0]"]),
    ]);
}

#[test]
fn declared_noise_hides_values_but_not_kinds() {
    let noise: &[&str] = &["noise $.at"];
    check(&[
        (noise, r#"{"at":"10:00"}"#, r#"{"at":"10:01"}"#, &[]),
        (noise, r#"{"at":"10:00"}"#, r#"{"at":600}"#, &["type $.at"]),
        (noise, r#"{"at":"10:00"}"#, r#"{}"#, &["missing $.at"]),
    ]);
    let found = compared(&rules(noise), r#"{"at":"10:00"}"#, r#"{"at":"10:01"}"#);
    assert_eq!(found.excused.declared, 1);
}

#[test]
fn bodies_that_are_no_json_are_compared_as_they_are() {
    check(&[
        (&[], "", "", &[]),
        (&[], "", "{}", &["extra $"]),
        (&[], "{}", "", &["missing $"]),
        (&[], "<html>", "{}", &["type $"]),
        (&[], "<html>", "<html>", &[]),
        (&[], "<html>", "<body>", &["value $"]),
        (&[], r#"{"a":1,"a":1}"#, r#"{"a":1}"#, &["type $"]),
    ]);
}

#[test]
fn an_error_beside_a_success_is_one_finding() {
    let rules = rules(&[]);
    let check = |reference: u16, candidate: u16, wanted: &[&str]| {
        let (left, right) = (BufferedAnswer::whole(r#"{"a":1}"#), BufferedAnswer::whole(r#"{"b":1}"#));
        let candidate = Candidate::Answered(view(candidate, right));
        let found = compare(
            &rules,
            &view(reference, left),
            &candidate,
            &Noise::default(),
            &Limits::default(),
            &redactor(),
        );
        assert_eq!(said(&found), wanted);
    };
    check(200, 503, &["status status"]);
    check(200, 201, &["status status", "missing $.a", "extra $.b"]);
}

#[test]
fn only_headers_that_matter_are_compared() {
    let rules = rules(&[]);
    let with = |headers: &[(&'static str, &'static str)]| {
        let mut view = view(200, BufferedAnswer::default());
        view.headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect::<HeaderMap>();
        view
    };
    let check =
        |left: &[(&'static str, &'static str)], right: &[(&'static str, &'static str)], wanted: &[&str]| {
            let candidate = Candidate::Answered(with(right));
            let found =
                compare(&rules, &with(left), &candidate, &Noise::default(), &Limits::default(), &redactor());
            assert_eq!(said(&found), wanted);
        };
    check(&[("date", "a"), ("x-request-id", "1")], &[("date", "b"), ("etag", "c")], &[]);
    check(
        &[("content-type", "application/json")],
        &[("content-type", "Application/JSON; charset=utf-8")],
        &[],
    );
    check(
        &[("content-type", "application/json")],
        &[("content-type", "text/html")],
        &["header header content-type"],
    );
    check(&[("retry-after", "5")], &[], &["header header retry-after"]);
    check(&[("location", "/a")], &[("location", "/b")], &["header header location"]);
}

#[test]
fn no_answer_is_a_finding_with_its_reason() {
    let rules = rules(&[]);
    let found = |candidate| {
        let reference = view(200, BufferedAnswer::whole("{}"));
        compare(&rules, &reference, &candidate, &Noise::default(), &Limits::default(), &redactor())
    };
    assert_eq!(said(&found(Candidate::Late { after_ms: 5000 })), ["late answer"]);
    let what = "refused: Bearer abc.def".to_owned();
    let broken = found(Candidate::Unanswered { what });
    assert_eq!(said(&broken), ["unanswered answer"]);
    assert_eq!(broken.findings[0].detail.as_deref(), Some("refused: Bearer ***"));
}

#[test]
fn what_is_beyond_the_cap_is_not_judged_unless_it_is_the_same_to_the_byte() {
    let held = |body: &str, cap| {
        let mut holding = Buffering::new(cap);
        body.as_bytes().chunks(3).for_each(|piece| holding.push(piece));
        holding.finish()
    };
    let body = r#"[{"id":1,"a":"one"},{"id":2,"a":"two"},{"id":3,"a":"three"}]"#;
    let changed_late = body.replace("three", "THREE");
    let changed_early = body.replace("one", "ONE");
    let shorter = r#"[{"id":1,"a":"one"}]"#;
    let check = |other: &str, cap, wanted: &[&str], verdict| {
        let reference = view(200, held(body, cap));
        let candidate = Candidate::Answered(view(200, held(other, cap)));
        let noise = Noise::default();
        let found =
            compare(&rules(&["key $ id"]), &reference, &candidate, &noise, &Limits::default(), &redactor());
        assert_eq!(
            (said(&found), found.verdict()),
            (wanted.iter().map(|s| s.to_string()).collect(), verdict)
        );
        found
    };
    check(body, 30, &[], Verdict::Equal);
    check(&changed_late, 30, &[], Verdict::EqualSoFar);
    let found = check(&changed_early, 30, &["value $[0].a"], Verdict::Different);
    assert_eq!(found.coverage, Coverage::Sample);
    check(shorter, 30, &["missing $[1]"], Verdict::Different);
    check(&changed_late, 1000, &["value $[2].a"], Verdict::Different);
}

#[test]
fn noise_is_learnt_from_one_side_asked_twice_and_forgotten_again() {
    let rules = rules(&[]);
    let twice = |a: &str, b: &str| compared(&rules, a, b);
    let mut noise = Noise::default();
    noise.learn(&twice(r#"{"n":1}"#, r#"{"n":2}"#));
    assert_eq!(noise.patterns().count(), 0);
    noise.learn(&twice(r#"{"n":1}"#, r#"{"n":3}"#));
    assert_eq!(noise.patterns().collect::<Vec<_>>(), [("$.n", crate::diff::FindingKind::Value)]);

    let (reference, candidate) =
        (view(200, BufferedAnswer::whole(r#"{"n":1}"#)), view(200, BufferedAnswer::whole(r#"{"n":2}"#)));
    let found =
        compare(&rules, &reference, &Candidate::Answered(candidate), &noise, &Limits::default(), &redactor());
    assert_eq!((found.verdict(), found.excused.learnt), (Verdict::Equal, 1));

    for _ in 0..400 {
        noise.learn(&twice(r#"{"n":1}"#, r#"{"n":1}"#));
    }
    assert_eq!(noise.patterns().count(), 0);
}

#[test]
fn a_value_is_shown_only_where_that_is_known_to_be_harmless() {
    let check = |declared: &[&str], reference: &str, shown: &str| {
        let found = compared(&rules(declared), &format!(r#"{{"a":{reference}}}"#), r#"{"a":null}"#);
        let said = found.findings[0].reference.as_ref().expect("the reference has it").to_string();
        let said = said.split(" #").next().expect("a text");
        assert_eq!(said, shown, "{declared:?} {reference}");
    };
    for (declared, reference, shown) in [
        (&[][..], r#""Call Ana""#, "<string like Aaaa Aaa"),
        (&["harmless $.a"], r#""Call Ana""#, r#""Call Ana""#),
        (&["harmless $.a"], r#""0f3a9c8e7d6b5a4f3e2d1c0b""#, "<string like 9a9a9a9a9a9a9a9a9a9a9a9a"),
        (&[], r#""""#, r#""""#),
        (&[], r#""2024-03-09 10:00:00""#, r#""2024-03-09 10:00:00""#),
        (&["secret $.a"], r#""2024-03-09""#, "<string like 9999-99-99"),
        (&[], "7", "7"),
        (&["secret $.a"], "7", "<number like 9"),
        (&[], "true", "true"),
        (&["secret $.a"], "true", "<boolean of 0"),
        (&[], r#""!$%""#, "<string like ???"),
        (&["secret $.a", "harmless $"], r#""Ana""#, "<string like Aaa"),
    ] {
        check(declared, reference, shown);
    }
}
