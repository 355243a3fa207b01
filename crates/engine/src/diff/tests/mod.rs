//! Tests of the comparison: cases as data, and properties with generated documents.

mod laws;
mod reports;
mod situations;

use super::rules::{Node, OperationRules, Source};
use super::{BufferedAnswer, Candidate, Comparison, Limits, Noise, View, compare};
use crate::redact::{Redactor, Salt};
use http::HeaderMap;
use switchback_plan::{
    CompareKind, CompareRule, Disclosure, DisclosureId, Disclosures, OperationDisclosure, Origin,
};

pub(super) fn redactor() -> Redactor {
    Redactor::new(Salt::new([7; 32]))
}

fn origin(line: u32) -> Origin {
    Origin { file: "things.map.yaml".into(), line }
}

/// Builds rules without knowledge of the body, except for declarations such as `key $[*] id`.
pub(super) fn rules(declared: &[&str]) -> OperationRules {
    let shows = |line: &&&str| line.starts_with("secret ") || line.starts_with("harmless ");
    // Without declarations there is no contract, and therefore no undeclared name.
    let disclosures = match declared.iter().any(|line| shows(&line)) {
        true => disclosures(declared.iter().filter(shows)),
        false => Disclosures::default(),
    };
    let rules: Vec<CompareRule> =
        declared.iter().filter(|line| !shows(line)).map(|line| declaration(line)).collect();
    let node = Node { source: Source::Copied(origin(2)), ..Node::UNKNOWN };
    OperationRules::for_tests("GET /things", origin(1), node, &rules, disclosures)
}

/// Returns the disclosures that lines such as `secret $.note` declare for any answer.
fn disclosures<'l>(lines: impl Iterator<Item = &'l &'l str>) -> Disclosures {
    let mut values = vec![Disclosure::default()];
    for line in lines {
        let (word, place) = line.split_once(' ').expect("a word and a place");
        let at = super::place::names(place).expect("a place").iter().fold(0, |at, name| {
            let new = DisclosureId(u32::try_from(values.len()).expect("few"));
            let found = match name.as_str() {
                "*" => *values[at].element.get_or_insert(new),
                name => *values[at].members.entry(name.into()).or_insert(new),
            };
            if found == new {
                values.push(Disclosure::default());
            }
            found.0 as usize
        });
        match word {
            "secret" => values[at].is_secret = true,
            _ => values[at].is_harmless = true,
        }
    }
    let operation = OperationDisclosure {
        key: "GET /things".into(),
        method: http::Method::GET,
        path: Vec::new(),
        query: Vec::new(),
        headers: Vec::new(),
        request: None,
        answers: vec![(None, DisclosureId(0))],
    };
    Disclosures { values, operations: vec![operation] }
}

fn declaration(line: &str) -> CompareRule {
    let mut words = line.split(' ');
    let (word, place) = (words.next().expect("a word"), words.next().expect("a place"));
    let kind = match word {
        "key" => CompareKind::Key(words.next().expect("a name").into()),
        "noise" => CompareKind::Noise,
        "unordered" => CompareKind::Unordered,
        other => panic!("no declaration: {other}"),
    };
    let at = super::place::names(place).expect("a place").iter().map(|name| name.as_str().into()).collect();
    CompareRule { at, kind, origin: origin(9) }
}

pub(super) fn view(status: u16, body: BufferedAnswer) -> View {
    View { status, headers: HeaderMap::new(), body }
}

/// Compares two bodies of a 200.
pub(super) fn compared(rules: &OperationRules, reference: &str, candidate: &str) -> Comparison {
    let reference = view(200, BufferedAnswer::whole(reference.to_owned()));
    let candidate = Candidate::Answered(view(200, BufferedAnswer::whole(candidate.to_owned())));
    compare(rules, &reference, &candidate, &Noise::default(), &Limits::default(), &redactor())
}

/// Formats each finding as `kind place`, with `×n` for repeated ones.
pub(super) fn said(comparison: &Comparison) -> Vec<String> {
    let findings = comparison.findings.iter();
    findings
        .map(|finding| match finding.times {
            1 => format!("{} {}", finding.kind.word(), finding.place),
            times => format!("{} {} ×{times}", finding.kind.word(), finding.place),
        })
        .collect()
}
