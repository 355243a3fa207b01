//! How errors look, compiled: the type of errors on each side and the way between them, and the form of the gateway's own.

use super::ast::{self, Manifest, Spanned};
use super::lens::{Lenses, Supply};
use super::names::Names;
use super::{faults, form, literal};
use crate::contract::{Contract, Type, TypeIn, assignable};
use crate::diagnostic::Findings;
use crate::yaml::{Kind, Node};
use std::collections::{BTreeMap, BTreeSet};
use switchback_plan::{BodyPlan, Class, ErrorPiece, ErrorStyle, GATEWAY_ERRORS, ReasonId, SideId, ValueOp};

/// What stands for something else in `errors: {body: …}`.
const TEXT: &str = "$text";
const STATUS: &str = "$status";
const KIND: &str = "$kind";

/// The error type that each contract has under the name in `errors: {types: …}`.
pub(super) fn types<'c>(
    manifest: &Manifest,
    contracts: &'c [Contract; 2],
    findings: &mut Findings,
) -> [Option<&'c Type>; 2] {
    [0, 1].map(|side| {
        let name = &manifest.errors.types[side];
        if name.value.is_empty() {
            return Some(&contracts[side].any);
        }
        let found = contracts[side].types.get(&name.value);
        if found.is_none() {
            let known: Vec<&str> = contracts[side].types.iter().map(|named| named.name.as_ref()).collect();
            findings.push(faults::error_type(name, &contracts[side].name, &known));
        }
        found.map(|named| &named.ty)
    })
}

/// By served side: the other side's error as one of this side.
pub(super) fn plans(
    manifest: &Manifest,
    contracts: &[Contract; 2],
    types: [Option<&Type>; 2],
    lenses: &Lenses<'_>,
    findings: &mut Findings,
) -> Option<[BodyPlan; 2]> {
    let [old, new] = types;
    let types = [contracts[0].types.at(old?), contracts[1].types.at(new?)];
    let plans = [SideId::OLD, SideId::NEW].map(|to| plan(manifest, types, to, lenses, findings));
    let [old, new] = plans;
    Some([old?, new?])
}

fn plan(
    manifest: &Manifest,
    types: [TypeIn<'_>; 2],
    to: SideId,
    lenses: &Lenses<'_>,
    findings: &mut Findings,
) -> Option<BodyPlan> {
    let Some(shape) = &manifest.errors.shape else {
        let (from, target) = (types[to.other()], types[to]);
        if let Err(why) = assignable(from, target) {
            let span = manifest.errors.types[to].span;
            findings.push(faults::errors_differ(span, &why.to_string()));
            return None;
        }
        let because = "errors are the same on both sides".to_owned();
        return Some(BodyPlan { op: ValueOp::Keep, class: Class::Pass, because });
    };
    let used = ast::ShapeUse { name: shape.clone(), each: false };
    let lens = lenses.body(&used, types, to, &Supply::default(), findings)?;
    Some(BodyPlan { op: lens.op, class: lens.class, because: lens.because })
}

/// How errors of the gateway look.
pub(super) fn style(
    manifest: &Manifest,
    contracts: &[Contract; 2],
    types: [Option<&Type>; 2],
    names: &Names,
    placeholders: &[BTreeSet<String>],
    findings: &mut Findings,
) -> Option<ErrorStyle> {
    let body = &manifest.errors.body;
    let sample = sample(body);
    for (side, ty) in types.iter().enumerate() {
        let Some(ty) = ty else { continue };
        if let Err(misfit) = literal::check(&sample, contracts[side].types.at(ty)) {
            findings.push(faults::error_body(misfit.node.span, &contracts[side].name, &misfit.why));
        }
    }
    for (_, status) in &manifest.errors.status {
        if status.value < 400 {
            findings.push(faults::error_status(status));
        }
    }
    let statuses = by_kind(&manifest.errors.status, |status, _| Some(status.value as u16), findings);
    let texts = by_kind(
        &manifest.errors.text,
        |reason, findings| text(reason, names, placeholders, findings),
        findings,
    );
    let words = by_kind(&manifest.errors.kind, |word, _| Some(word.value.clone()), findings);
    let body = pieces(body);
    let count = |wanted: ErrorPiece| body.iter().filter(|piece| **piece == wanted).count();
    if count(ErrorPiece::Text) != 1 {
        findings.push(faults::error_text(manifest.errors.body.span, count(ErrorPiece::Text)));
        return None;
    }
    if let ([(first, _), ..], 0) = (manifest.errors.kind.as_slice(), count(ErrorPiece::Kind)) {
        findings.push(faults::error_words(first.span));
    }
    let form = |side: usize| types[side].map(|ty| form::of(ty, &contracts[side].types));
    let content_type = "application/json".to_owned();
    Some(ErrorStyle { body, content_type, statuses, texts, words, forms: [form(0), form(1)] })
}

/// Lines by kind of error; kinds that there are not are reported.
fn by_kind<W, T>(
    lines: &[(Spanned<String>, W)],
    read: impl Fn(&W, &mut Findings) -> Option<T>,
    findings: &mut Findings,
) -> BTreeMap<String, T> {
    let kinds: Vec<&str> = GATEWAY_ERRORS.iter().map(|(kind, ..)| *kind).collect();
    let mut found = BTreeMap::new();
    for (kind, line) in lines {
        let value = read(line, findings);
        if !kinds.contains(&kind.value.as_str()) {
            findings.push(faults::error_kind(kind, &kinds));
        } else if let Some(value) = value {
            found.insert(kind.value.clone(), value);
        }
    }
    found
}

/// A reason that needs nothing to be told.
fn text(
    reason: &Spanned<String>,
    names: &Names,
    placeholders: &[BTreeSet<String>],
    findings: &mut Findings,
) -> Option<ReasonId> {
    let id = names.reason(reason, findings)?;
    if placeholders.get(usize::from(id.0)).is_some_and(|names| !names.is_empty()) {
        findings.push(faults::nothing_given(reason));
    }
    Some(id)
}

/// The body as some error has it, to be held against the contracts' types.
fn sample(node: &Node) -> Node {
    let kind = match &node.kind {
        Kind::String(text, _) if text == STATUS => Kind::Number("500".to_owned()),
        Kind::Seq(items) => Kind::Seq(items.iter().map(sample).collect()),
        Kind::Map(entries) => {
            Kind::Map(entries.iter().map(|(key, value)| (key.clone(), sample(value))).collect())
        }
        kind => kind.clone(),
    };
    Node { kind, span: node.span }
}

/// The body in pieces: what is the same in every error, and what is not.
fn pieces(body: &Node) -> Vec<ErrorPiece> {
    let mut pieces = Vec::new();
    let mut same = String::new();
    write(body, &mut same, &mut pieces);
    end(&mut same, &mut pieces);
    pieces
}

fn write(node: &Node, same: &mut String, pieces: &mut Vec<ErrorPiece>) {
    match &node.kind {
        Kind::String(text, _) if text == TEXT => varies(ErrorPiece::Text, same, pieces),
        Kind::String(text, _) if text == STATUS => varies(ErrorPiece::Status, same, pieces),
        Kind::String(text, _) if text == KIND => varies(ErrorPiece::Kind, same, pieces),
        Kind::Seq(items) => {
            same.push('[');
            for (at, item) in items.iter().enumerate() {
                same.push_str(if at > 0 { "," } else { "" });
                write(item, same, pieces);
            }
            same.push(']');
        }
        Kind::Map(entries) => {
            same.push('{');
            for (at, (key, value)) in entries.iter().enumerate() {
                same.push_str(if at > 0 { "," } else { "" });
                literal::string(&key.name, same);
                same.push(':');
                write(value, same, pieces);
            }
            same.push('}');
        }
        _ => literal::write(node, same),
    }
}

/// A piece that is not the same in every error, after what is.
fn varies(piece: ErrorPiece, same: &mut String, pieces: &mut Vec<ErrorPiece>) {
    end(same, pieces);
    pieces.push(piece);
}

fn end(same: &mut String, pieces: &mut Vec<ErrorPiece>) {
    if !same.is_empty() {
        pieces.push(ErrorPiece::Json(std::mem::take(same).into_bytes().into()));
    }
}
