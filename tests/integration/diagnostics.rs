//! Faulty mappings and their exact messages: each file of `tests/diagnostics` has a few edits of
//! the manual's pack, and the resulting findings. `UPDATE_EXPECT=1` writes the present findings
//! into the files.

use super::manual;
use crate::support::packs;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use switchback_compiler::diagnostic::{Code, Colour, Findings, Sources, to_text};
use switchback_compiler::mapping::load::PackSource;
use switchback_compiler::yaml::{self, Node};

const EXPECT: &str = "\nexpect: |\n";

/// One file of `tests/diagnostics`.
struct Case {
    path: PathBuf,
    /// Everything up to and with the line `expect: |`.
    head: String,
    /// (file of the pack, text that is there once, text in its place)
    edits: Vec<(String, String, String)>,
    expected: String,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let entries = std::fs::read_dir(folder).expect("the cases lie in the sources");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Case {
    let text = std::fs::read_to_string(&path).expect("a case is a text");
    let (head, expected) = text.split_once(EXPECT).unwrap_or_else(|| panic!("{path:?} expects nothing"));
    let dedented: Vec<&str> = expected.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let root = yaml::parse(&mut sources, "case", head.as_bytes(), &mut findings).expect("a case is YAML");
    let edits = root.get("edits").and_then(Node::as_seq).expect("a case has edits");
    let text =
        |node: &Node, key: &str| node.get(key).and_then(Node::as_str).expect("edits are texts").to_owned();
    Case {
        edits: edits.iter().map(|e| (text(e, "file"), text(e, "replace"), text(e, "with"))).collect(),
        head: format!("{head}{EXPECT}"),
        expected: dedented.join("\n"),
        path,
    }
}

impl Case {
    /// Returns the findings of the compiler for the edited pack.
    fn found(&self) -> String {
        // A case names files of one of the manual's packs.
        let named = |folder: &String| self.edits.iter().any(|(file, ..)| file.starts_with(folder));
        let folder = packs::manual_folders().into_iter().find(named).unwrap_or_default();
        let mut files = packs::manual_files(&folder);
        for (file, replace, with) in &self.edits {
            let file = file.strip_prefix(&folder).unwrap_or(file);
            let named = files.iter_mut().find(|(name, _)| name == file);
            let (_, text) = named.unwrap_or_else(|| panic!("{:?}: the manual has no {file}", self.path));
            assert_eq!(
                text.matches(replace.as_str()).count(),
                1,
                "{:?}: `{replace}` is there once",
                self.path
            );
            *text = text.replacen(replace.as_str(), with, 1);
        }
        let compiled = manual::compiled(&files);
        let text = to_text(&compiled.sources, &compiled.findings, Colour::Never);
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    fn update(&self, found: &str) {
        let indent = |line: &str| if line.is_empty() { String::new() } else { format!("  {line}") };
        let lines: Vec<String> = found.lines().map(indent).collect();
        std::fs::write(&self.path, format!("{}{}\n", self.head, lines.join("\n")))
            .expect("it can be written");
    }
}

#[test]
fn every_faulty_mapping_earns_exactly_its_message() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut differing = Vec::new();
    for case in cases() {
        let found = case.found();
        if update {
            case.update(&found);
        } else if found.trim_end() != case.expected.trim_end() {
            differing.push(format!("{:?}\nexpected:\n{}\nfound:\n{found}\n", case.path, case.expected));
        }
    }
    assert!(differing.is_empty(), "{} cases differ:\n{}", differing.len(), differing.join("\n"));
}

/// Returns the findings for `mappings/tickets` with these replacements, and whether it compiles.
fn said_of_tickets(edits: &[(&str, &str, &str)]) -> (bool, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/tickets");
    let mut files = PackSource::from_dir(&folder).expect("it lies in the sources").files().to_vec();
    for (file, before, after) in edits {
        let (_, bytes) = files.iter_mut().find(|(name, _)| name == file).expect("the pack has it");
        let text = str::from_utf8(bytes).expect("a pack is text");
        assert!(text.contains(before), "{file} has no `{before}`");
        *bytes = text.replacen(before, after, 1).into_bytes().into();
    }
    let compiled = switchback_compiler::mapping::compile(&PackSource::from_files(files));
    (compiled.pack.is_some(), to_text(&compiled.sources, &compiled.findings, Colour::Never))
}

/// The data of a client is sent to the other side even if it is only used in the answer.
#[test]
fn a_conversion_in_the_head_of_each_is_read_away_from_the_side_of_its_value() {
    let parameter = "    post:\n      parameters: [{name: only, in: query, schema: {type: string}}]\n";
    let (compiles, said) = said_of_tickets(&[
        ("contracts/v1.openapi.yaml", "    post:\n", parameter),
        ("contracts/v1.openapi.yaml", "required: [results]", "required: []"),
        (
            "contracts/v1.openapi.yaml",
            "type: object, required: [id], properties: {id: {type: integer}, status",
            "type: object, properties: {id: {type: integer}, status",
        ),
        (
            "tickets.map.yaml",
            "{$each: {one: $.closed}, give: {id: {$from: $.one.ticket,",
            "{$each: {one: {$from: $.request.query.only, as: csv, else: error}}, give: {id: {$from: $.one,",
        ),
        ("tickets.map.yaml", "status: $.one.status}}", "status: {$count: $.closed}}}"),
    ]);
    assert!(compiles, "{said}");
}

#[test]
fn who_calls_for_each_of_the_clients_list_is_told_to_make_one_first() {
    let (_, said) = said_of_tickets(&[
        (
            "tickets.map.yaml",
            "      - tickets: {make: {$each: {one: $.request.body.ids}, give: {$from: $.one, as: integer_to_string}}}\n",
            "",
        ),
        ("tickets.map.yaml", "each: {ticket: $.tickets}", "each: {ticket: $.request.body.ids}"),
    ]);
    assert!(said.contains("error[M152]: a call is made for each element of a reply, or of a list"), "{said}");
    assert!(said.contains("help: make a list of it first: `- ids: {make:"), "{said}");
}

#[test]
fn a_condition_narrows_a_member_of_what_may_be_a_text_or_null() {
    let (compiles, said) = said_of_tickets(&[
        (
            "contracts/v1.openapi.yaml",
            "Close: {type: object, required: [ids], properties: {",
            "Close: {type: object, required: [ids], properties: {more: {anyOf: [{type: object, properties: {note: {type: string}}}, {type: string}, {type: 'null'}]}, ",
        ),
        (
            "contracts/v2.openapi.yaml",
            "required: [status], properties: {",
            "required: [status, note], properties: {note: {type: string}, ",
        ),
        (
            "tickets.map.yaml",
            "check: [{conforms: [ids], else: {status: 400, reason: no_ids}}]",
            "check: [{conforms: [ids, $.request.body.more.note], else: {status: 400, reason: no_ids}}, {present: $.request.body.more.note, else: {status: 400, reason: no_ids}}]",
        ),
        (
            "tickets.map.yaml",
            "body: {status: closed}\n",
            "body: {status: closed, note: $.request.body.more.note}\n",
        ),
        ("tickets.map.yaml", "resume: [$.ticket]", "resume: [$.ticket, $.request.body.more.note]"),
    ]);
    assert!(compiles, "{said}");
}

#[test]
fn a_row_narrows_a_place_with_an_index() {
    let (compiles, said) = said_of_tickets(&[
        ("tickets.map.yaml", "    verdict: partly\n", ""),
        ("tickets.map.yaml", "  too_many_ids: {en: 'At most 20 tickets can be closed at once.'}\n", ""),
        (
            "tickets.map.yaml",
            "      - closed:\n          each: {ticket: $.tickets}\n          upto: 20\n          beyond: {refuse: too_many_ids}\n          call: 'PUT /tickets/{$.ticket}/status'\n          body: {status: closed}\n          on_fail: {absent: [404]}\n          resume: [$.ticket]\n    answer:\n",
            "    decide: {on: ['$.tickets[0]'], rows: [[absent, none], [_, some]]}\n    outcomes:\n     none: {answer: {status: 200, body: {results: []}}}\n     some:\n      steps: [{call: 'PUT /tickets/{$.tickets[0]}/status', body: {status: closed}}]\n      answer: {status: 200, body: {results: []}}\n",
        ),
        (
            "tickets.map.yaml",
            "      status: 200\n      body: {results: {$each: {one: $.closed}, give: {id: {$from: $.one.ticket, as: integer_to_string, else: error}, status: $.one.status}}}\n",
            "",
        ),
        ("tickets.map.yaml", "refused: too_many_ids}", "answer: {status: 200}}"),
    ]);
    assert!(compiles, "{said}");
}

/// A case is named after the violated rule, and its message has that rule.
#[test]
fn every_case_breaks_the_rule_it_is_named_after() {
    for case in cases() {
        let name = case.path.file_name().and_then(|name| name.to_str()).expect("case names are ASCII");
        let number = name.split('-').next().expect("a name has a first part").to_uppercase();
        assert!(case.expected.contains(&format!("[{number}]")), "{name} says nothing of {number}");
    }
}

/// Rules that no edit of a file can violate; their tests are next to the code.
const ELSEWHERE: &[&str] = &["M014"];

#[test]
fn every_rule_about_mappings_has_a_case() {
    let numbers: BTreeSet<String> = cases()
        .iter()
        .filter_map(|case| Some(case.path.file_name()?.to_str()?.split('-').next()?.to_uppercase()))
        .collect();
    let missing: Vec<&str> = Code::ALL
        .iter()
        .map(|code| code.number())
        .filter(|number| number.starts_with('M') && !ELSEWHERE.contains(number) && !numbers.contains(*number))
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
    assert!(cases().len() >= 60);
}
