//! Tests of dates in many forms.

use super::*;
use proptest::prelude::*;

fn date(old: &[&str], new: &[&str], zone: Option<i32>) -> Date {
    let forms = |forms: &[&str]| forms.iter().map(|form| Form::parse(form).expect(form)).collect();
    let date = Date { sides: [forms(old), forms(new)], zone: zone.map(Zone::Fixed) };
    date.check().expect("these forms go together");
    date
}

fn run(date: &Date, forward: bool, json: &str) -> Option<String> {
    let mut out = Vec::new();
    date.convert(json.as_bytes(), forward, &mut out)?;
    Some(String::from_utf8(out).expect("it is a text"))
}

#[test]
fn moments_are_told_in_every_form() {
    for (old, new, zone, there, here) in [
        ("epoch_second", "rfc3339", None, "0", "\"1970-01-01T00:00:00Z\""),
        ("epoch_second", "rfc3339", None, "-62167219200", "\"0000-01-01T00:00:00Z\""),
        ("epoch_second", "rfc3339", None, "253402300799", "\"9999-12-31T23:59:59Z\""),
        ("epoch_millis", "rfc3339", None, "-1", "\"1969-12-31T23:59:59.999Z\""),
        ("%s", "rfc3339", None, "\"951782400\"", "\"2000-02-29T00:00:00Z\""),
        (
            "%Y-%m-%d %H:%M:%S",
            "rfc3339",
            Some(120),
            "\"2024-01-01 01:30:00\"",
            "\"2024-01-01T01:30:00+02:00\"",
        ),
        ("%Y-%m-%d %H:%M:%S", "epoch_second", Some(120), "\"2024-01-01 01:30:00\"", "1704065400"),
        (
            "%d %b %Y %H:%M:%S %z",
            "rfc3339",
            None,
            "\"09 Mar 2024 12:00:00 -0330\"",
            "\"2024-03-09T12:00:00-03:30\"",
        ),
        (
            "%Y%m%dT%H%M%S.%3f%:z",
            "rfc3339",
            None,
            "\"20240309T120000.250+00:00\"",
            "\"2024-03-09T12:00:00.25Z\"",
        ),
        ("%a %Y-%m-%d", "%Y/%m/%d", None, "\"Thu 2024-02-29\"", "\"2024/02/29\""),
        ("%H:%M", "%H.%M", None, "\"23:59\"", "\"23.59\""),
    ] {
        let date = date(&[old], &[new], zone);
        assert_eq!(run(&date, true, there).as_deref(), Some(here), "{old} to {new}");
        assert_eq!(run(&date, false, here).as_deref(), Some(there), "{new} to {old}");
    }
}

#[test]
fn a_moment_that_the_other_form_cannot_tell_is_outside_the_domain() {
    for (old, new, zone, json) in [
        ("%Y-%m-%d %H:%M:%S", "rfc3339", Some(0), "\"9999-12-31T23:59:59-10:00\""),
        ("%Y-%m-%d %H:%M:%S", "rfc3339", Some(0), "\"0000-01-01T00:00:00+10:00\""),
        ("epoch_second", "rfc3339", None, "\"9999-12-31T23:59:59-10:00\""),
        ("epoch_millis", "rfc3339", None, "\"0000-01-01T00:00:00+10:00\""),
    ] {
        assert_eq!(run(&date(&[old], &[new], zone), false, json), None, "{json} to {old}");
    }
}

#[test]
fn a_form_that_is_read_freely_is_written_in_one_way() {
    let date = date(&["epoch_millis"], &["rfc3339"], None);
    for spelt in [
        "\"2024-03-09T12:00:00Z\"",
        "\"2024-03-09t12:00:00.000z\"",
        "\"2024-03-09 14:00:00+02:00\"",
        "\"2024-03-09T12:00:00.0000000001-00:00\"",
    ] {
        assert_eq!(run(&date, false, spelt).as_deref(), Some("1709985600000"), "{spelt}");
    }
}

#[test]
fn what_is_no_date_is_outside_the_domain() {
    let days = date(&["%a, %d %b %Y"], &["%Y-%m-%d"], None);
    for no in [
        "\"Mon, 29 Feb 2024\"",
        "\"Thu, 30 Feb 2024\"",
        "\"Thu, 29 feb 2024\"",
        "\"Thu, 29 Feb 2024 \"",
        "\"\"",
        "7",
    ] {
        assert_eq!(run(&days, true, no), None, "{no}");
    }
    let moments = date(&["epoch_second"], &["rfc3339"], None);
    for no in ["253402300800", "1.5", "\"0\"", "true", "1e3"] {
        assert_eq!(run(&moments, true, no), None, "{no}");
    }
    for no in [
        "\"2024-03-09T12:00:00\"",
        "\"2024-03-09T12:00:00+24:00\"",
        "\"2024-03-09\"",
        "\"2024-03-09T12:00:00.Z\"",
    ] {
        assert_eq!(run(&moments, false, no), None, "{no}");
    }
}

#[test]
fn forms_that_do_not_tell_the_same_are_told_apart_at_once() {
    let zone = |old: &str, new: &str| check_patterns(old, new).unwrap_err().to_string();
    assert!(zone("%Y-%m-%d %H:%M:%S", "rfc3339").contains("add `zone: Z`"));
    assert_eq!(zone("%Y-%m-%d", "rfc3339"), "`%H` is in one of the forms only");
    assert_eq!(zone("%a %H", "%H"), "`%a` needs `%Y`, `%m` and `%d` beside it");
    assert_eq!(zone("%m %b", "%m"), "`%b` occurs twice in `%m %b`");
}

#[test]
fn what_only_one_side_tells_is_lost_towards_the_other() {
    let law = |old: &[&str], new: &[&str], zone| date(old, new, zone).law();
    assert_eq!(law(&["%d/%m/%Y"], &["%Y-%m-%d"], None), Law::Iso);
    assert_eq!(law(&["epoch_second"], &["epoch_millis"], None), Law::Lens);
    assert_eq!(law(&["epoch_millis"], &["%s"], None), Law::OldLens);
    assert_eq!(law(&["%d/%m/%Y"], &["%Y-%m-%d", "%Y%m%d"], None), Law::Lens);
    assert_eq!(law(&["rfc3339"], &["%s"], None), Law::OldLens);
}

#[test]
fn a_day_is_ten_characters_of_the_calendar() {
    for (text, is_day) in [
        ("2024-02-29", true),
        ("0000-01-01", true),
        ("2023-02-29", false),
        ("2024-13-01", false),
        ("2024-1-01", false),
        ("+024-01-01", false),
        ("-024-01-01", false),
        ("+2024-01-01", false),
        ("2024-01-01 ", false),
        ("2024/01/01", false),
    ] {
        assert_eq!(crate::is_day(text), is_day, "{text}");
    }
}

proptest! {
    #[test]
    fn every_moment_comes_back(seconds in -62_167_219_200..=253_402_300_799i64, millis in 0..1000i64) {
        let date = date(&["epoch_millis"], &["%a, %d %b %Y %H:%M:%S.%3f %z", "rfc3339"], None);
        let moment = (seconds * 1000 + millis).to_string();
        let there = run(&date, true, &moment).expect("it is a moment");
        prop_assert_eq!(run(&date, false, &there), Some(moment));
    }
}

fn in_berlin(json: &str, forward: bool) -> Option<String> {
    let forms = |form: &str| vec![Form::parse(form).expect(form)];
    let zone = Some(Zone::parse("Europe/Berlin").expect("a zone"));
    run(&Date { sides: [forms("%Y-%m-%d %H:%M:%S"), forms("rfc3339")], zone }, forward, json)
}

#[test]
fn a_named_zone_has_the_offset_of_the_date() {
    for (local, moment) in [
        ("2024-01-15 12:00:00", "2024-01-15T12:00:00+01:00"),
        ("2024-07-15 12:00:00", "2024-07-15T12:00:00+02:00"),
        ("2050-07-15 12:00:00", "2050-07-15T12:00:00+02:00"),
        // Shown twice: the first is meant.
        ("2024-10-27 02:30:00", "2024-10-27T02:30:00+02:00"),
    ] {
        assert_eq!(in_berlin(&format!("\"{local}\""), true), Some(format!("\"{moment}\"")));
        assert_eq!(in_berlin(&format!("\"{moment}\""), false), Some(format!("\"{local}\"")));
    }
    // Skipped in spring, and an offset with seconds before 1893.
    assert_eq!(in_berlin("\"2024-03-31 02:30:00\"", true), None);
    assert_eq!(in_berlin("\"1890-01-01 00:00:00\"", true), None);
}

#[test]
fn the_last_day_of_year_9999_has_a_local_time() {
    assert_eq!(in_berlin("\"9999-12-31T22:59:59Z\"", false), Some("\"9999-12-31 23:59:59\"".to_owned()));
    assert_eq!(in_berlin("\"9999-12-31 23:59:59\"", true), Some("\"9999-12-31T23:59:59+01:00\"".to_owned()));
}
