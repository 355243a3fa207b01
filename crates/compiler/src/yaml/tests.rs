//! Tests of complete files: the tree, and the exact wording of every finding.

use super::*;
use crate::diagnostic::{Colour, to_text};
use proptest::prelude::*;

fn read_all(text: &str) -> (Sources, Option<Node>, Findings) {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let node = parse(&mut sources, "a.yaml", text.as_bytes(), &mut findings);
    (sources, node, findings)
}

fn good(text: &str) -> (Sources, Node) {
    let (sources, node, findings) = read_all(text);
    assert_eq!(to_text(&sources, &findings, Colour::Never), "");
    (sources, node.expect("no findings, so there is a tree"))
}

/// Returns findings as `line:column code message | help`.
fn messages(text: &str) -> Vec<String> {
    let (sources, _, findings) = read_all(text);
    lines(&sources, &findings)
}

fn lines(sources: &Sources, findings: &Findings) -> Vec<String> {
    findings
        .in_order()
        .into_iter()
        .map(|f| {
            let at = sources.start(f.span);
            let help = f.help.as_ref().map(|help| format!(" | {help}")).unwrap_or_default();
            format!("{}:{} {} {}{help}", at.line, at.column, f.code, f.message)
        })
        .collect()
}

#[test]
fn every_kind_of_value_with_its_place() {
    let (sources, root) = good(
        "# comment\nplain: text here\n200: 1.10\nlist:\n  - a   # note\n  - {x: 'é', y: [true, ~]}\nblock: |\n  one\n  two\n\nempty:\nlast: end\n",
    );
    let place = |path: &str| {
        let node = path.split('/').fold(&root, |node, name| match &node.kind {
            Kind::Seq(items) => &items[name.parse::<usize>().unwrap()],
            _ => node.get(name).unwrap(),
        });
        (sources.snippet(node.span).to_owned(), node.kind.clone())
    };
    let plain = |text: &str| Kind::String(text.to_owned(), TextStyle::Plain);
    assert_eq!(place("plain"), ("text here".to_owned(), plain("text here")));
    assert_eq!(place("200"), ("1.10".to_owned(), Kind::Number("1.10".to_owned())));
    assert_eq!(place("list/0").0, "a");
    assert_eq!(place("list/1").0, "{x: 'é', y: [true, ~]}");
    assert_eq!(place("list/1/x"), ("'é'".to_owned(), Kind::String("é".to_owned(), TextStyle::Quoted)));
    assert_eq!(place("list/1/y/0"), ("true".to_owned(), Kind::Bool(true)));
    assert_eq!(place("list/1/y/1"), ("~".to_owned(), Kind::Null));
    assert_eq!(place("list").0, "- a   # note\n  - {x: 'é', y: [true, ~]}");
    assert_eq!(place("block").1, Kind::String("one\ntwo\n".to_owned(), TextStyle::Block));
    assert_eq!(place("empty"), ("empty".to_owned(), Kind::Null));
    assert_eq!(sources.start(root.span).line, 2);
    assert!(sources.snippet(root.span).starts_with("plain:"));
    assert!(sources.snippet(root.span).ends_with("last: end"));
}

#[test]
fn a_nested_map_starts_at_its_first_key() {
    let (sources, root) = good("a:\n  b: 1\n  c: 2\nd: [e: 1, f]\n");
    assert_eq!(sources.snippet(root.get("a").unwrap().span), "b: 1\n  c: 2");
    let pair = &root.get("d").unwrap().as_seq().unwrap()[0];
    assert_eq!(sources.snippet(pair.span), "e: 1");
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_do_not_shift_places() {
    let (sources, root) = good("\u{feff}a: é\r\nb: 'x'\r\n");
    assert_eq!(sources.snippet(root.get("a").unwrap().span), "é");
    assert_eq!(sources.snippet(root.get("b").unwrap().span), "'x'");
}

#[test]
fn words_like_no_are_keys_but_not_values() {
    assert_eq!(good("{no: a, 'yes': b, null: c}").1.as_map().unwrap().len(), 3);
    assert_eq!(
        messages("a: no\nb: [On, 'off']\n"),
        [
            "1:4 Y009 `no` is a boolean for some readers of YAML | quote it ('no') if the text is meant, else write `true` or `false`",
            "2:5 Y009 `On` is a boolean for some readers of YAML | quote it ('On') if the text is meant, else write `true` or `false`",
        ]
    );
}

#[test]
fn numbers_that_json_cannot_write_are_refused() {
    assert_eq!(
        messages("code: +5511\n"),
        [
            "1:7 Y010 `+5511` is a number for YAML, but not for JSON | quote it ('+5511') if the text is meant, else write the number as in JSON"
        ]
    );
}

#[test]
fn every_second_key_is_reported_with_the_first() {
    let text = "a: 1\nb: {c: 1, c: 2}\n'a': 3\n";
    assert_eq!(
        messages(text),
        ["2:11 Y005 the key `c` is given twice", "3:1 Y005 the key `a` is given twice"]
    );
    let (sources, node, findings) = read_all(text);
    let first = findings.in_order()[1].related[0].0;
    assert_eq!(sources.start(first).line, 1);
    assert_eq!(node.unwrap().get("a").unwrap().kind, Kind::Number("1".to_owned()), "the first one stays");
}

#[test]
fn merge_keys_and_tags_are_all_reported_in_one_run() {
    assert_eq!(
        messages("c: {<<: {d: 1}, e: !!str 5}\n"),
        [
            "1:5 Y006 merge keys (`<<`) are not read | write the keys out, or use a fragment: `$use: name`",
            "1:20 Y007 tags (`!!str`) are not read | leave it out, or put the value in quotes if the exclamation mark is meant",
        ]
    );
}

#[test]
fn an_alias_is_a_copy_with_the_place_of_its_anchor_and_its_own() {
    let (sources, node, findings) = read_all("a: &x {b: [1]}\nc:\n  - *x\n  - *x\nd: 1\n");
    assert!(findings.is_empty());
    let node = node.unwrap();
    let list = node.get("c").and_then(Node::as_seq).unwrap();
    let lines = list.iter().map(|copy| {
        let inner = &copy.get("b").and_then(Node::as_seq).unwrap()[0];
        assert_eq!(sources.snippet(inner.span), "1");
        let uses = sources.uses(inner.span);
        (sources.start(inner.span).line, uses.iter().map(|at| sources.start(*at).line).collect::<Vec<_>>())
    });
    assert_eq!(lines.collect::<Vec<_>>(), [(1, vec![3]), (1, vec![4])]);
    assert_eq!(node.get("a").unwrap().span, sources.written(list[0].span));
}

#[test]
fn copies_of_aliases_count_towards_the_limits() {
    // Ten levels of ten aliases each would be ten thousand million values.
    let level = |n: usize| format!("l{n}: &l{n} [{}]\n", vec![format!("*l{}", n - 1); 10].join(", "));
    let text: String = std::iter::once("l0: &l0 [x]\n".to_owned()).chain((1..=10).map(level)).collect();
    assert_eq!(messages(&text), ["7:25 Y004 the file has more than 1000000 values"]);
    assert_eq!(
        messages("a: &a [*a]\n"),
        ["1:8 Y006 this alias stands for nothing: there is no such anchor before it"]
    );
}

#[test]
fn a_second_document_is_refused_and_the_first_is_read() {
    let (_, node, _) = read_all("a: 1\n---\nb: 2\n");
    assert!(node.unwrap().get("a").is_some());
    assert_eq!(
        messages("a: 1\n---\nb: 2\n"),
        ["2:1 Y008 a second document starts here | put it in a file of its own"]
    );
}

#[test]
fn lists_as_keys_and_missing_keys_are_refused() {
    assert_eq!(messages("{[1]: 2, a: 3}\n"), ["1:2 Y011 a key must be a text"]);
    assert_eq!(messages("{~ : 2}\n"), ["1:2 Y011 a key must be a text"]);
}

#[test]
fn a_syntax_error_has_its_place() {
    let found = messages("a: 1\nb: [1, 2\nc: 3\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("3:") && found[0].contains("Y001 this is not YAML: "), "{found:?}");
}

#[test]
fn a_tab_as_indentation_is_named() {
    let found = messages("a:\n\tb: 1\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with("| indent with spaces: YAML allows no tabs there"), "{found:?}");
}

#[test]
fn nothing_but_comments_is_an_empty_file() {
    assert_eq!(messages(""), ["1:1 Y003 the file is empty"]);
    assert_eq!(messages("# only\n"), ["1:1 Y003 the file is empty"]);
}

#[test]
fn bytes_that_are_not_utf8_have_their_place() {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    assert_eq!(parse(&mut sources, "a.yaml", b"a: 1\nb: \xffx", &mut findings), None);
    assert_eq!(
        lines(&sources, &findings),
        ["2:4 Y002 the byte 0xff here is not UTF-8 | save the file as UTF-8"]
    );
}

#[test]
fn each_bound_is_reached() {
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    assert_eq!(messages(&deep), ["1:65 Y004 more than 64 lists and maps inside one another"]);
    assert_eq!(messages(&format!("{}{}", "[".repeat(64), "]".repeat(64))), Vec::<String>::new());
    let many = "- a\n".repeat(bounds::NODES_MAX);
    assert_eq!(messages(&many), ["1000000:3 Y004 the file has more than 1000000 values"]);
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let large = vec![b' '; bounds::BYTES_MAX + 1];
    assert_eq!(parse(&mut sources, "a.yaml", &large, &mut findings), None);
    assert_eq!(
        lines(&sources, &findings),
        ["1:1 Y004 the file has 16777217 bytes, and at most 16777216 are read"]
    );
}

const SHAPE: Keys = Keys {
    what: "a shape",
    entries: &[
        KeyEntry::required("of"),
        KeyEntry::Part(&[KeyEntry::optional("same"), KeyEntry::optional("rename")]),
    ],
};

#[test]
fn unknown_and_missing_keys_are_all_named() {
    let (sources, root) = good("smae: [a]\nx-note: 1\ncolour: 2\n");
    let mut findings = Findings::new();
    assert!(Fields::parse(&root, &SHAPE, &mut findings).unwrap().get("of").is_none());
    assert_eq!(
        lines(&sources, &findings),
        [
            "1:1 Y020 a shape has no key `smae` | did you mean `same`?",
            "1:1 Y021 a shape needs the key `of`",
            "2:1 Y020 a shape has no key `x-note` | possible here: `of`, `same`, `rename`",
            "3:1 Y020 a shape has no key `colour` | possible here: `of`, `same`, `rename`",
        ]
    );
}

#[test]
fn values_of_a_wrong_kind_say_what_is_needed() {
    let (sources, root) = good("[5, 'true', {}, -1, 70000, gett, null]");
    let items = root.as_seq().unwrap();
    let mut findings = Findings::new();
    assert_eq!(items[0].text(&mut findings), None);
    assert_eq!(items[1].boolean(&mut findings), None);
    assert_eq!(items[2].list(&mut findings), None);
    assert_eq!(items[3].whole(0..=9, &mut findings), None);
    assert_eq!(items[4].whole(1..=65_535, &mut findings), None);
    assert_eq!(items[4].whole(1..=70_000, &mut findings), Some(70_000));
    assert_eq!(items[5].word(&["get", "put"], &mut findings), None);
    assert_eq!(items[6].map(&mut findings), None);
    assert_eq!(
        lines(&sources, &findings),
        [
            "1:2 Y022 a text is needed here, and this is a number | quote it: '5'",
            "1:5 Y022 `true` or `false` is needed here, and this is a text | leave the quotes out",
            "1:13 Y022 a list is needed here, and this is a map",
            "1:17 Y024 a whole number from 0 to 9 is needed here",
            "1:21 Y024 a whole number from 1 to 65535 is needed here",
            "1:28 Y023 `gett` is not one of the words possible here | did you mean `get`?",
            "1:34 Y022 a map is needed here, and this is nothing",
        ]
    );
}

/// Generates texts that resemble YAML, so that the parser does not fail at the first character.
fn yaml_like() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("a: "),
        Just("- "),
        Just("\n"),
        Just("\n  "),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(", "),
        Just(": "),
        Just("? "),
        Just("'"),
        Just("\""),
        Just("\\u00"),
        Just("&x "),
        Just("*x "),
        Just("!t "),
        Just("|\n"),
        Just(">-\n"),
        Just("---\n"),
        Just("...\n"),
        Just("%YAML 1.2\n"),
        Just("# c"),
        Just("\t"),
        Just("\r\n"),
        Just("é"),
        Just("12"),
        Just("no"),
        Just("<<"),
        Just("\u{feff}"),
        Just("\0"),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

#[test]
fn an_empty_item_after_a_key_lies_within_its_list() {
    for text in ["a: \r\n- ", "a:\n- ", "a:\n-", "- a:\n  - "] {
        survives(text.as_bytes());
    }
}

fn survives(bytes: &[u8]) {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let node = parse(&mut sources, "a.yaml", bytes, &mut findings);
    assert!(node.is_some() || !findings.is_empty(), "no tree without a finding");
    to_text(&sources, &findings, Colour::Never);
    crate::diagnostic::to_json(&sources, &findings);
    if let Some(node) = node {
        places_hold(&sources, &node);
    }
}

/// Asserts that every value lies within its parent, and that the span of a plain single-line scalar
/// contains its text.
fn places_hold(sources: &Sources, node: &Node) {
    let inside = |child: Span| assert!(node.span.contains(child), "{:?} outside {:?}", child, node.span);
    match &node.kind {
        Kind::Seq(items) => items.iter().for_each(|item| {
            inside(item.span);
            places_hold(sources, item);
        }),
        Kind::Map(entries) => entries.iter().for_each(|(key, value)| {
            inside(key.span);
            inside(value.span);
            places_hold(sources, value);
        }),
        // The span of a value with an anchor, which is rejected, starts at the anchor.
        Kind::Number(text) => assert!(sources.snippet(node.span).ends_with(text)),
        _ => {}
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes);
    }

    #[test]
    fn anything_like_yaml_is_read_or_refused(text in yaml_like()) {
        survives(text.as_bytes());
    }
}

#[test]
fn what_is_not_closed_is_shown_where_it_was_opened() {
    for (text, place) in [
        ("a: 1\nb: { c: { d: 1 }\ne: 2\n", Some((2, 4))),
        ("a: [1, 2\nb: 3\n", Some((1, 4))),
        // For an unclosed quote, the parser's own position is the start of the quote.
        ("a: \"x\nb: 3\n", None),
        ("a: { b: 'it''s # {' }\nc: { d: 1 # }\ne: 2\n", Some((2, 4))),
        ("a: it's {\n\tb: 1\n c: 2\n", None),
    ] {
        let mut sources = Sources::new();
        let mut findings = Findings::new();
        let tree = super::parse(&mut sources, "a.yaml", text.as_bytes(), &mut findings);
        assert!(tree.is_none(), "{text}");
        let found = findings.in_order()[0].related.first().map(|(span, _)| sources.start(*span));
        assert_eq!(found.map(|at| (at.line, at.column)), place, "{text}");
    }
}

#[test]
fn a_document_of_somebody_else_may_end_anywhere() {
    let text = "openapi: 3.0.3\ninfo: {title: 'a b', version: \"1\\n2\"} # remarks\nx: &one |\n  some\n\n  text\ny: >-\n  folded\n  text\nz: *one\n? key\n: - a\n  - [b, c]\n  - !!str 5\n--- \nlast: |2+\n    kept\r\n\n";
    for end in 0..=text.len() {
        let (mut sources, mut findings) = (Sources::new(), Findings::new());
        let root = read_document(&mut sources, "a.yaml", &text.as_bytes()[..end], &mut findings);
        assert!(root.is_some() || findings.has_errors(), "{:?}", &text[..end]);
    }
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let root = read_document(&mut sources, "a.yaml", b"a: |\n  b\n  c", &mut findings).expect("it is YAML");
    assert_eq!(root.get("a").and_then(Node::as_str), Some("b\nc\n"));
}
