//! `media:` of `pack.yaml`: media types that denote JSON although their names do not tell it.

use super::ast::Manifest;
use super::faults;
use crate::contract::{Contract, Operation};
use crate::diagnostic::Findings;
use std::borrow::Borrow;
use std::collections::BTreeSet;
use switchback_plan::{BodyFormat, essence, is_json, is_xml};

impl Manifest {
    /// Returns the media types that the pack declares as JSON, in lower case.
    pub(super) fn json_types(&self) -> Vec<String> {
        self.media.iter().map(|(name, _)| name.value.to_ascii_lowercase()).collect()
    }
}

/// Checks that each declared media type is one, occurs in a contract, and has no other format.
pub(super) fn check(manifest: &Manifest, contracts: &[impl Borrow<Contract>; 2], findings: &mut Findings) {
    if manifest.media.is_empty() {
        return;
    }
    let operations = contracts.iter().flat_map(|contract| &contract.borrow().operations);
    let listed: BTreeSet<String> = operations.flat_map(types_of).collect();
    for (name, _) in &manifest.media {
        let small = name.value.to_ascii_lowercase();
        let is_one = small.contains('/') && !small.contains(['*', ';', ' ']);
        let has_format = |named: &str| {
            is_json(named) || is_xml(named) || [BodyFormat::FORM, BodyFormat::MULTIPART].contains(&named)
        };
        if !is_one {
            findings.push(faults::media_format_of_range(name));
        } else if has_format(&small) {
            findings.push(faults::media_format_known(name));
        } else if !listed.contains(&small) {
            let unknown: Vec<&str> =
                listed.iter().map(String::as_str).filter(|named| !has_format(named)).collect();
            findings.push(faults::media_format_unused(name, &unknown));
        }
    }
}

/// Returns the media types of the bodies of an operation, in lower case.
fn types_of(operation: &Operation) -> Vec<String> {
    let request = operation.body.iter().map(|body| (&body.media, &body.unread));
    let answers = operation.responses.iter().map(|answer| (&answer.media, &answer.unread));
    let names = request.chain(answers).flat_map(|(media, unread)| {
        media.ranges().into_iter().chain(unread.iter().map(|other| other.name.clone()))
    });
    names.map(|name| essence(&name).to_ascii_lowercase()).collect()
}
