//! Streams equal the reference over generated plans, bodies and cuts.

use super::super::{Bounds, Program};
use super::{plans, reference, run};
use proptest::prelude::*;
use std::sync::Arc;
use switchback_json::scan::Level;
use switchback_json::{Grammar, Limits, Value, validate};
use switchback_plan::{Absent, CloseFrom, MemberAction, Others, ValueOp};

/// The text with white space wherever the grammar allows it.
fn spaced(text: &str, blank: &str) -> String {
    let (mut out, mut in_string, mut escaped) = (String::new(), false, false);
    for character in text.chars() {
        let structure = !in_string && "{}[]:,".contains(character);
        if structure {
            out.push_str(blank);
        }
        out.push(character);
        if structure {
            out.push_str(blank);
        }
        if character == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = character == '\\' && !escaped;
    }
    out
}

fn pieces<'t>(text: &'t [u8], cuts: &[prop::sample::Index]) -> Vec<&'t [u8]> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).chain([0, text.len()]).collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect()
}

fn levels() -> impl Strategy<Value = Level> {
    prop::sample::select(Level::ALL.to_vec())
}

fn blanks() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![0, 130])
}

fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..8)
}

/// Objects within objects, whose members are kept, renamed, dropped and kept for the end of one around them.
fn nested(others: [Others; 3]) -> ValueOp {
    let [outer, inner, innermost] = others;
    let third = plans::object(
        vec![plans::keep("one"), plans::captured(plans::emit("two", "zwei", ValueOp::Keep), 0)],
        innermost,
        vec![],
    );
    let second = plans::object(
        vec![
            plans::keep("one"),
            plans::emit("two", "deux", ValueOp::Keep),
            plans::member("three", MemberAction::Drop),
            plans::keep("isFirst"),
            plans::keep("isFourth"),
            plans::emit("within", "within", third),
        ],
        inner,
        vec![plans::close("last", CloseFrom::Constant(plans::raw("7")))],
    );
    let first = plans::object(
        vec![
            plans::keep("one"),
            plans::emit("two", "dos", ValueOp::Keep),
            plans::keep("three"),
            plans::keep("a_name_of_some_length"),
            plans::keep("a_name_of_any_length"),
            plans::captured(plans::emit("within", "dentro", second.clone()), 0),
            plans::emit("list", "list", plans::array(second)),
        ],
        outer,
        vec![plans::close(
            "copied",
            plans::first_of(vec![plans::place(0, &["within", "two"])], Absent::Omit),
        )],
    );
    plans::array(first)
}

/// What is done with a member that the plan does not name.
fn others() -> impl Strategy<Value = Others> {
    prop::sample::select(vec![Others::Drop, Others::Keep])
}

/// An object with some of the members of [`nested`] and others, in any order; those of `twice` in a
/// thousand may have one twice.
fn shuffled(depth: u32, twice: u32) -> BoxedStrategy<String> {
    let names =
        ["one", "two", "three", "a_name_of_some_length", "a_name_of_any_length", "isFirst", "isFourth"];
    let strange = ["isThird", "", "x", "one_that_is_too_long_to_be_expected", "w\\u0065"];
    let value = prop::sample::select(vec![
        "1",
        "null",
        "true",
        "1.5e3",
        r#""text""#,
        r#""\"""#,
        r#""a text of more bytes than are looked at in one go\n""#,
        r#"{"k":[]}"#,
        "[{}]",
        "{}",
        r#"[120,"x",null,false]"#,
        r#"{"k":7,"l":"x","m":-1.5e3,"n":true}"#,
        r#"{"k":0,"l":"a text of some length","m":null,"n":"which makes more than a block"}"#,
    ]);
    let plain = move |names: &[&'static str]| {
        let value = value.clone();
        prop::sample::select(names.to_vec())
            .prop_flat_map(move |name| value.clone().prop_map(move |value| format!("\"{name}\":{value}")))
    };
    let mut member = prop_oneof![8 => plain(&names), 1 => plain(&strange)].boxed();
    if depth > 0 {
        let within = shuffled(depth - 1, twice).prop_map(|value| format!("\"within\":{value}"));
        member = prop_oneof![3 => member, 1 => within].boxed();
    }
    // Elsewhere the plan does not look into lists, and names are not held against one another.
    if depth == 2 {
        let list = prop::collection::vec(shuffled(1, twice), 0..3)
            .prop_map(|values| format!("\"list\":[{}]", values.join(",")));
        member = prop_oneof![8 => member, 1 => list].boxed();
    }
    let is_twice = prop::bool::weighted(f64::from(twice) / 1000.0);
    (prop::collection::vec(member, 0..12), is_twice)
        .prop_map(|(members, is_twice)| {
            let mut seen = std::collections::HashSet::new();
            let name = |member: &String| member.split(':').next().unwrap_or_default().to_owned();
            let members: Vec<String> =
                members.into_iter().filter(|member| seen.insert(name(member)) || is_twice).collect();
            format!("{{{}}}", members.join(","))
        })
        .boxed()
}

/// Places between the tokens of a text that is JSON.
fn borders(text: &str) -> Vec<usize> {
    let (mut borders, mut in_string, mut escaped, mut bare) = (vec![0], false, false, false);
    for (at, byte) in text.bytes().enumerate() {
        let is_bare = !in_string && byte.is_ascii_alphanumeric() | b"+-.".contains(&byte);
        if !(in_string || bare && is_bare) {
            borders.push(at);
        }
        if byte == b'"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && byte == b'\\' && !escaped;
        bare = is_bare;
    }
    borders.push(text.len());
    borders.dedup();
    borders
}

/// One token that is not what it should be.
#[derive(Debug, Clone)]
struct Slip {
    text: &'static str,
    at: prop::sample::Index,
    /// Whether it is a member's value.
    is_value: bool,
    /// Whether it stands instead of another one.
    is_instead: bool,
}

impl Slip {
    fn of(&self, right: &str) -> String {
        let (mut borders, all) = (borders(right), right.len());
        borders.retain(|border| right[..*border].trim_end().len() == *border);
        let (last, text) = (*borders.last().unwrap_or(&all), right.as_bytes());
        let is_place = |at: &usize| *at < last && (!self.is_value || *at > 0 && text[at - 1] == b':');
        let places: Vec<usize> = borders.iter().copied().filter(is_place).collect();
        if places.is_empty() {
            return right.to_owned();
        }
        let at = places[self.at.index(places.len())];
        let next = borders.into_iter().find(|border| *border > at && self.is_instead).unwrap_or(at);
        [&right[..at], self.text, &right[next..]].concat()
    }
}

fn slip() -> impl Strategy<Value = Slip> {
    let (text, at) = (prop::sample::select(SLIPS.to_vec()), any::<prop::sample::Index>());
    (text, at, any::<bool>(), prop::bool::weighted(0.7)).prop_map(|(text, at, is_value, is_instead)| Slip {
        text,
        at,
        is_value,
        is_instead,
    })
}

/// What may stand where something else should, most of it no JSON.
const SLIPS: [&str; 40] = [
    "",
    "0",
    "01",
    "-",
    "-1",
    "1.",
    "1.5",
    "1x",
    "0 1",
    "nul",
    "nulll",
    "true",
    "fals",
    r#""k""#,
    r#""a\qb""#,
    r#""\u12g4""#,
    r#""\u00e9""#,
    "\"\x01\"",
    r#""more bytes than are looked at in one go \q""#,
    r#""more bytes than are looked at in one go \u123""#,
    "\"more bytes than are looked at in one go \x01\"",
    r#""k":1,"#,
    "[1,]",
    "[,1]",
    "[1 2]",
    "[01]",
    r#"["k":1]"#,
    r#"["k""l"]"#,
    r#"{"k":1,}"#,
    r#"{"k" 1}"#,
    r#"{"k"}"#,
    r#"{"k":}"#,
    r#"{"k":01}"#,
    r#"{"k":tru}"#,
    "{\"k\":\"\x01\"}",
    "{1:2}",
    r#"{"k":0,"l":"a text of some length","m":nul,"n":"which makes more than a block"}"#,
    "{}",
    "[",
    ":",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_stream_accepts_what_is_json_and_translates_it_as_the_reference_does(others in [others(), others(), others()], elements in prop::collection::vec(shuffled(2, 0), 1..8), slip in slip(), blanks in blanks(), cuts in cuts(), level in levels()) {
        let op = nested(others);
        let (values, program) = (Arc::new(plans::values()), Arc::new(Program::compile(&op)));
        let right = format!("[{}]{}", elements.join(","), " ".repeat(blanks));
        let text = slip.of(&right).into_bytes();
        let mut grammar = Grammar::new(Limits::STREAM.depth);
        let is_json = grammar.feed(&text).and_then(|()| grammar.finish()).is_ok();
        let one = |chunks: Vec<&[u8]>| run(&program, &values, Bounds::default(), level, chunks).ok();
        for body in [right.as_bytes(), &text, &text] {
            let by_byte = one(body.chunks(1).collect());
            // The reference also rejects duplicate names that no plan reads.
            if validate(body, &Limits::STREAM).is_ok() {
                prop_assert_eq!(&by_byte, &reference(&op, &values, body).ok(), "{}", String::from_utf8_lossy(body));
            }
            prop_assert!(is_json || body != text || by_byte.is_none(), "{}", String::from_utf8_lossy(body));
            for chunks in [vec![body], pieces(body, &cuts)] {
                prop_assert_eq!(&one(chunks), &by_byte, "{}", String::from_utf8_lossy(body));
            }
        }
    }

    #[test]
    fn members_come_in_any_order_or_not_at_all(others in [others(), others(), others()], elements in prop::collection::vec(shuffled(2, 0), 1..12), last in prop::option::of(shuffled(2, 400)), blanks in blanks(), cuts in cuts(), level in levels()) {
        let elements: Vec<String> = elements.into_iter().chain(last).collect();
        let op = nested(others);
        let (values, program) = (Arc::new(plans::values()), Arc::new(Program::compile(&op)));
        let text = format!("[{}]{}", elements.join(","), " ".repeat(blanks)).into_bytes();
        let expected = reference(&op, &values, &text).map_err(drop);
        for _ in 0..3 {
            for chunks in [vec![&text[..]], pieces(&text, &cuts)] {
                let found = run(&program, &values, Bounds::default(), level, chunks);
                prop_assert_eq!(found.map_err(drop), expected.clone(), "{}", String::from_utf8_lossy(&text));
            }
        }
    }

    #[test]
    fn streams_equal_the_reference_byte_for_byte(op in plans::op(), body in plans::body(), blanks in blanks(), cuts in cuts(), level in levels()) {
        let values = Arc::new(plans::values());
        let program = Arc::new(Program::compile(&op));
        // White space after the value gives the short cut the room to look ahead that it wants.
        let text = [body.to_vec(), vec![b' '; blanks]].concat();
        let expected = reference(&op, &values, &text).map_err(drop);
        // Twice, since the first body teaches the second.
        for _ in 0..2 {
            for chunks in [vec![&text[..]], pieces(&text, &cuts), text.chunks(1).collect()] {
                let found = run(&program, &values, Bounds::default(), level, chunks);
                prop_assert_eq!(found.map_err(drop), expected.clone(), "{}", body);
            }
        }
    }

    #[test]
    fn white_space_between_members_is_left_out_and_inside_values_kept(op in plans::op(), body in plans::body(), cuts in cuts(), blank in prop::sample::select(vec![" ", "\n\t", "  \r\n     "]), level in levels()) {
        let values = Arc::new(plans::values());
        let program = Arc::new(Program::compile(&op));
        let text = spaced(&body.to_string(), blank);
        let expected = reference(&op, &values, text.as_bytes()).map_err(drop);
        let whole = run(&program, &values, Bounds::default(), level, [text.as_bytes()]);
        let cut = run(&program, &values, Bounds::default(), level, pieces(text.as_bytes(), &cuts));
        prop_assert_eq!(whole.map_err(drop), expected.clone());
        prop_assert_eq!(cut.map_err(drop), expected);
    }

    #[test]
    fn whatever_is_cut_short_is_noticed(op in plans::op(), body in plans::body(), blanks in blanks(), at in any::<prop::sample::Index>(), cuts in cuts(), level in levels()) {
        let mut text = body.to_vec();
        text.truncate(at.index(text.len()));
        // White space neither ends nor breaks a string or a word.
        text.resize(text.len() + blanks, b' ');
        // A number cut short is another number.
        prop_assume!(!matches!(body, Value::Number(_)));
        let (program, values) = (Arc::new(Program::compile(&op)), Arc::new(plans::values()));
        let found = run(&program, &values, Bounds::default(), level, pieces(&text, &cuts));
        prop_assert!(found.is_err(), "{found:?}");
    }

    #[test]
    fn broken_bodies_get_one_verdict_whatever_the_cut(op in plans::op(), body in plans::body(), blanks in blanks(), at in any::<prop::sample::Index>(), byte in prop::sample::select(b"{}[]:,\"\\ x7\xff\x00".to_vec()), cuts in cuts(), level in levels()) {
        let mut text = body.to_vec();
        let at = at.index(text.len());
        text[at] = byte;
        text.resize(text.len() + blanks, b' ');
        let (program, values) = (Arc::new(Program::compile(&op)), Arc::new(plans::values()));
        let one = |chunks: Vec<&[u8]>, level| run(&program, &values, Bounds::default(), level, chunks).map_err(drop);
        let whole = one(vec![&text], level);
        prop_assert_eq!(one(pieces(&text, &cuts), level), whole.clone());
        prop_assert_eq!(one(text.chunks(1).collect(), Level::Portable), whole.clone());
        if validate(&text, &Limits::STREAM).is_ok() {
            prop_assert_eq!(whole, reference(&op, &values, &text).map_err(drop));
        }
    }

    #[test]
    fn bounds_on_what_is_kept_do_not_depend_on_the_cut(op in plans::op(), body in plans::body(), blanks in blanks(), capture_bytes in 0usize..40, depth in 0usize..8, key_bytes in 0usize..48, cuts in cuts(), level in levels()) {
        let text = [body.to_vec(), vec![b' '; blanks]].concat();
        let json = Limits { depth, key_bytes, ..Limits::STREAM };
        let bounds = Bounds { json, capture_bytes, choice_bytes: 2 * capture_bytes, names_bytes: 30 };
        let (program, values) = (Arc::new(Program::compile(&op)), Arc::new(plans::values()));
        let one = |chunks: Vec<&[u8]>| run(&program, &values, bounds, level, chunks).map_err(drop);
        prop_assert_eq!(one(vec![&text]), one(pieces(&text, &cuts)));
        prop_assert_eq!(one(vec![&text]), one(text.chunks(1).collect()));
    }
}

/// Lists whose elements have everything that an edge can do, as [`nested`] takes them.
const SAMPLES: [&str; 4] = [
    // With another byte, a name comes twice along edges that are known.
    r#"[{"t":1,"l":2,"x":3},{"l":1,"t":2},{"one":{},"t":[1],"l":null}]"#,
    r#"[{"one":1,"two":"a","within":{"one":[],"two":-1.5e3,"three":"dropped","within":{"two":{"k":[1,{"l":null}]},"x":"y"}},"list":[{"two":true},{"one":"a\n"},{}]},{"one":22,"two":"","within":{"one":[0],"two":7,"three":{},"within":{"two":null,"x":"z"}},"list":[]}]"#,
    r#"[null,{"isFirst":{"k":"a text that is longer than what is looked at at once","l":[[],{}]},"w\u0065":1,"within":null},{"isFirst":{"k":"b","l":[[],{}]},"w\u0065":2,"within":null}]"#,
    "[ { \"one\": 1,\n    \"two\": [ 1, 2 ],\n    \"x\": { \"k\": 1 } },\n  { \"one\": 2,\n    \"two\": [ 3 ],\n    \"x\": { \"k\": \"a\" } } ]",
];

/// Bytes that mean something in a text, and some that do not.
const BYTES: &[u8] = b"{}[]:,\"\\ \n\t01-+.eEtfnulx\x00\x1f\xc3\xff";

#[test]
fn a_list_of_which_one_byte_is_another_gets_the_verdict_and_the_text_of_the_machine() {
    let op = nested([Others::Keep, Others::Drop, Others::Keep]);
    let values = Arc::new(plans::values());
    for sample in SAMPLES {
        let program = Arc::new(Program::compile(&op));
        let one = |chunks: std::slice::Chunks<'_, u8>| {
            run(&program, &values, Bounds::default(), Level::best(), chunks).map_err(drop)
        };
        assert_eq!(
            one(sample.as_bytes().chunks(sample.len())),
            reference(&op, &values, sample.as_bytes()).map_err(drop)
        );
        for at in 0..sample.len() {
            for byte in BYTES {
                let mut text = sample.as_bytes().to_vec();
                text[at] = *byte;
                let followed = one(text.chunks(text.len()));
                assert_eq!(followed, one(text.chunks(1)), "{}", String::from_utf8_lossy(&text));
                if validate(&text, &Limits::STREAM).is_ok() {
                    assert_eq!(followed, reference(&op, &values, &text).map_err(drop));
                }
            }
        }
    }
}

#[test]
fn shapes_that_are_ever_new_are_learned_up_to_a_bound() {
    let op = nested([Others::Keep, Others::Drop, Others::Keep]);
    let (values, program) = (Arc::new(plans::values()), Arc::new(Program::compile(&op)));
    let one = |text: &str, size| {
        run(&program, &values, Bounds::default(), Level::best(), text.as_bytes().chunks(size))
    };
    for first in 0..40 {
        let second = (0..40).filter(|second| *second != first);
        let elements = second.map(|second| {
            format!(r#"{{"n{first}":{second},"n{second}":{{"a{first}":[{second}],"c":{{}}}},"within":{{"two":0}}}}"#)
        });
        let text = format!("[{}]", elements.collect::<Vec<_>>().join(","));
        assert_eq!(one(&text, text.len()), reference(&op, &values, text.as_bytes()));
        assert_eq!(one(&text, 100), one(&text, 1));
    }
    assert!(program.learned().len() <= 512);
}
