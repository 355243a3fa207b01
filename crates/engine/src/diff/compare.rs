//! Compares two answers: status, then headers, then bodies.

use super::buffered::{BufferedAnswer, Content};
use super::finding::{Cause, Comparison, Finding, FindingKind};
use super::noise::Noise;
use super::rules::{OperationRules, Source};
use super::view::{Candidate, View};
use super::walk::{Limits, Part, Walk};
use crate::redact::{Kind, Redactor, Sample};
use http::HeaderMap;
use switchback_plan::Disclosed;

/// Headers that are compared for every operation. Of `content-type`, only the media type is
/// compared, without parameters. Dates, lengths, content codings, validators, request identifiers
/// and connection headers describe the transfer rather than the content, so they are not compared.
pub const HEADERS: [&str; 8] = [
    "content-type",
    "content-language",
    "content-disposition",
    "location",
    "link",
    "retry-after",
    "cache-control",
    "www-authenticate",
];

/// Compares the two answers that a client would receive.
pub fn compare(
    rules: &OperationRules,
    reference: &View,
    candidate: &Candidate,
    noise: &Noise,
    limits: &Limits,
    redactor: &Redactor,
) -> Comparison {
    let mut walk = Walk::new(rules, noise, limits, redactor);
    match candidate {
        Candidate::Answered(candidate) => answers(&mut walk, rules, reference, candidate, limits),
        Candidate::Late { after_ms } => {
            walk.keep(no_answer(
                FindingKind::Late,
                Cause::Upstream,
                &format!("no answer within {after_ms} ms"),
            ));
        }
        Candidate::Unanswered { what } => {
            walk.keep(no_answer(FindingKind::Unanswered, Cause::Upstream, &redactor.text(what)));
        }
        Candidate::Untranslated { what } => {
            walk.keep(no_answer(FindingKind::Unanswered, Cause::Gateway, &redactor.text(what)));
        }
    }
    walk.finish()
}

fn no_answer(kind: FindingKind, cause: Cause, detail: &str) -> Finding {
    Finding { detail: Some(detail.to_owned()), ..Finding::new("answer", kind, cause) }
}

fn answers<'a>(
    walk: &mut Walk<'a>,
    rules: &'a OperationRules,
    reference: &View,
    candidate: &View,
    limits: &Limits,
) {
    if reference.status != candidate.status {
        let sample = |status: u16| Some(number(walk.redactor, status));
        walk.keep(Finding {
            reference: sample(reference.status),
            candidate: sample(candidate.status),
            ..Finding::new("status", FindingKind::Status, Cause::from_copy(&rules.origin))
        });
    }
    // A success and an error differ everywhere; the status alone describes the difference.
    if reference.status / 100 != candidate.status / 100 {
        return;
    }
    headers(walk, rules, &reference.headers, &candidate.headers);
    bodies(walk, rules, reference, candidate, limits);
}

fn number(redactor: &Redactor, status: u16) -> Sample {
    redactor.sample(None, Disclosed::UNKNOWN, &switchback_json::Value::from(i64::from(status)))
}

fn headers(walk: &mut Walk<'_>, rules: &OperationRules, reference: &HeaderMap, candidate: &HeaderMap) {
    let names = HEADERS.into_iter().chain(rules.headers.iter().map(String::as_str));
    for name in names {
        let (wanted, found) = (value(name, reference), value(name, candidate));
        if wanted == found {
            continue;
        }
        let sample = |value: &Option<String>| {
            value.as_ref().map(|value| walk.redactor.sample_of_header(name, value.as_bytes()))
        };
        let finding = Finding {
            reference: sample(&wanted),
            candidate: sample(&found),
            ..Finding::new(&format!("header {name}"), FindingKind::Header, Cause::no_line(&rules.origin))
        };
        walk.keep(finding);
    }
}

/// Joins all lines of a header. Parameters of a `content-type` are removed.
fn value(name: &str, headers: &HeaderMap) -> Option<String> {
    let lines =
        headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned());
    let joined = lines.collect::<Vec<_>>();
    let joined = (!joined.is_empty()).then(|| joined.join(", "))?;
    match name {
        "content-type" => joined.split(';').next().map(|family| family.trim().to_ascii_lowercase()),
        _ => Some(joined),
    }
}

fn bodies<'a>(
    walk: &mut Walk<'a>,
    rules: &'a OperationRules,
    reference: &View,
    candidate: &View,
    limits: &Limits,
) {
    let (wanted, found) = (&reference.body, &candidate.body);
    // Equal starts and digests prove the bodies equal, even beyond the buffered part.
    if wanted == found {
        return;
    }
    let (wanted, found) =
        (&*rules.decoded(reference.status, wanted), &*rules.decoded(candidate.status, found));
    let node = rules.body(reference.status);
    let root = rules.disclosure_for(reference.status);
    walk.disclosing(root);
    // The root has no parent to inherit a cause from.
    let around = match &node.source {
        Source::Made(origin) => Cause::from_value(origin),
        Source::Copied(origin) => Cause::from_copy(origin),
        Source::Inherited => Cause::no_line(&rules.origin),
    };
    match (wanted.content(limits.nodes), found.content(limits.nodes)) {
        (
            Content::Json { value: a, open: open_a, whole: whole_a },
            Content::Json { value: b, open: open_b, whole: whole_b },
        ) => {
            if !(whole_a && whole_b) {
                walk.note_sampled();
            }
            walk.value(Part { value: &a, open: open_a }, Part { value: &b, open: open_b }, node, &around);
        }
        // Too little of one body is buffered to state a difference.
        (Content::Unread, Content::Unread | Content::Json { .. })
        | (Content::Json { .. }, Content::Unread) => {
            walk.note_sampled();
        }
        (wanted_content, found_content) => {
            let kind = match (&wanted_content, &found_content) {
                (Content::Empty, _) => FindingKind::Extra,
                (_, Content::Empty) => FindingKind::Missing,
                (Content::Other, Content::Other) => FindingKind::Value,
                _ => FindingKind::Type,
            };
            let (reference, candidate) = (
                sample(walk.redactor, root, wanted, &wanted_content),
                sample(walk.redactor, root, found, &found_content),
            );
            walk.keep(Finding { reference, candidate, ..Finding::new("$", kind, around) });
        }
    }
}

fn sample(
    redactor: &Redactor,
    root: Disclosed<'_>,
    held: &BufferedAnswer,
    content: &Content,
) -> Option<Sample> {
    match content {
        Content::Empty => None,
        Content::Json { value, .. } => Some(redactor.sample(None, root, value)),
        Content::Other | Content::Unread => {
            let sample = redactor.sample_of_bytes(held.start());
            Some(Sample { kind: Kind::Bytes, length: held.total_bytes(), ..sample })
        }
    }
}
