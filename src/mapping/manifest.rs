//! `pack.yaml` compiled: sides with their credentials and scopes, settings, and how errors look.

use super::ast::{self, Manifest, Spanned};
use super::lens::{Lenses, Supply};
use super::names::{Names, setting_kind};
use super::{faults, literal, origin};
use crate::contract::{Contract, PathTemplate, Type, TypeIn, assignable};
use crate::diagnostic::{Findings, Sources};
use crate::plan::{
    BodyPlan, Class, Credential, ErrorStyle, GATEWAY_ERRORS, Setting, SettingKind, Side, SideId, ValueOp,
};
use crate::yaml::{Kind, Node};
use std::collections::{BTreeMap, BTreeSet};

/// The text that stands for the message in `errors: {body: …}`.
const TEXT: &str = "$text";

/// Both sides; some parts are missing after findings.
pub(super) fn sides(manifest: &Manifest, findings: &mut Findings) -> [Option<Side>; 2] {
    let [old, new] = &manifest.sides;
    if old.value == new.value {
        findings.push(faults::same_sides(new));
    }
    [0, 1].map(|side| {
        let name = manifest.sides[side].value.clone();
        let scope = manifest.scope[side].as_ref();
        let scope = scope.and_then(|scope| checked_scope(scope, findings).map(str::to_owned));
        let credential = credential(manifest.credentials[side].as_ref()?, findings)?;
        Some(Side { name, credential, scope })
    })
}

fn credential(written: &ast::Credential, findings: &mut Findings) -> Option<Credential> {
    let read: Vec<_> = written.read.iter().map(|name| header(name, findings)).collect();
    let send = header(&written.send, findings);
    if written.read.is_empty() {
        findings.push(faults::no_credential(written.send.span));
    }
    let token = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
    if written.scheme.value.is_empty() || !written.scheme.value.bytes().all(token) {
        findings.push(faults::scheme(&written.scheme));
    }
    let read = read.into_iter().collect::<Option<Vec<_>>>()?;
    Some(Credential { read, send: send?, scheme: written.scheme.value.clone() })
}

fn header(name: &Spanned<String>, findings: &mut Findings) -> Option<String> {
    match http::HeaderName::from_bytes(name.value.as_bytes()) {
        Ok(parsed) => Some(parsed.as_str().to_owned()),
        Err(_) => {
            findings.push(faults::header_name(name));
            None
        }
    }
}

fn checked_scope<'m>(scope: &'m Spanned<String>, findings: &mut Findings) -> Option<&'m str> {
    let template = PathTemplate::parse(&scope.value).ok();
    let one = template.is_some_and(|template| template.variables().count() == 1);
    if !one {
        findings.push(faults::scope(scope));
    }
    one.then_some(scope.value.as_str())
}

/// The settings, in the order they are declared.
pub(super) fn settings(manifest: &Manifest, sources: &Sources, findings: &mut Findings) -> Vec<Setting> {
    let mut settings = Vec::new();
    for setting in &manifest.settings {
        let name = &setting.name.value;
        let above = |other: &ast::Setting| {
            name.strip_prefix(&other.name.value).is_some_and(|rest| rest.starts_with('.'))
        };
        if let Some(other) = manifest.settings.iter().find(|other| above(other)) {
            findings.push(faults::setting_inside(&setting.name, other.name.span));
        }
        let part =
            |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !name.split('.').all(part) {
            findings.push(faults::setting_name(&setting.name));
        }
        // A type that there is not was reported when the names were collected.
        let Some(kind) = setting_kind(&setting.kind.value) else { continue };
        let default = setting.default.as_ref();
        if let Some(node) = default.filter(|node| !is_of(node, kind)) {
            findings.push(faults::setting_default(node.span, &setting.kind.value));
        }
        settings.push(Setting {
            name: name.clone(),
            kind,
            default: default.map(literal::json),
            about: setting.about.value.clone(),
            origin: origin(sources, setting.name.span),
        });
    }
    settings
}

fn is_of(node: &Node, kind: SettingKind) -> bool {
    match (&node.kind, kind) {
        (Kind::Bool(_), SettingKind::Boolean) | (Kind::String(..), SettingKind::String) => true,
        (Kind::Number(text), SettingKind::Integer) => !text.contains(['.', 'e', 'E']),
        _ => false,
    }
}

/// The error type that each contract has under the name in `errors: {types: …}`.
pub(super) fn error_types<'c>(
    manifest: &Manifest,
    contracts: &'c [Contract; 2],
    findings: &mut Findings,
) -> [Option<&'c Type>; 2] {
    [0, 1].map(|side| {
        let name = &manifest.errors.types[side];
        let found = contracts[side].types.get(&name.value);
        if found.is_none() {
            let known: Vec<&str> = contracts[side].types.iter().map(|named| named.name.as_ref()).collect();
            findings.push(faults::error_type(name, &contracts[side].name, &known));
        }
        found.map(|named| &named.ty)
    })
}

/// By served side: the other side's error as one of this side.
pub(super) fn error_plans(
    manifest: &Manifest,
    contracts: &[Contract; 2],
    types: [Option<&Type>; 2],
    lenses: &Lenses<'_>,
    findings: &mut Findings,
) -> Option<[BodyPlan; 2]> {
    let [old, new] = types;
    let types = [contracts[0].types.at(old?), contracts[1].types.at(new?)];
    let plans = [SideId::OLD, SideId::NEW].map(|to| error_plan(manifest, types, to, lenses, findings));
    let [old, new] = plans;
    Some([old?, new?])
}

fn error_plan(
    manifest: &Manifest,
    types: [TypeIn<'_>; 2],
    to: SideId,
    lenses: &Lenses<'_>,
    findings: &mut Findings,
) -> Option<BodyPlan> {
    let Some(shape) = &manifest.errors.shape else {
        let (from, target) = (types[usize::from(to.other().0)], types[usize::from(to.0)]);
        if let Err(why) = assignable(from, target) {
            let span = manifest.errors.types[usize::from(to.0)].span;
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
pub(super) fn error_style(
    manifest: &Manifest,
    contracts: &[Contract; 2],
    types: [Option<&Type>; 2],
    names: &Names,
    placeholders: &[BTreeSet<String>],
    findings: &mut Findings,
) -> Option<ErrorStyle> {
    let body = &manifest.errors.body;
    for (side, ty) in types.iter().enumerate() {
        let Some(ty) = ty else { continue };
        if let Err(misfit) = literal::check(body, contracts[side].types.at(ty)) {
            findings.push(faults::error_body(misfit.node.span, &contracts[side].name, &misfit.why));
        }
    }
    let kinds: Vec<&str> = GATEWAY_ERRORS.iter().map(|(kind, ..)| *kind).collect();
    let known = |kind: &Spanned<String>, findings: &mut Findings| {
        let found = kinds.contains(&kind.value.as_str());
        if !found {
            findings.push(faults::error_kind(kind, &kinds));
        }
        found
    };
    let mut statuses = BTreeMap::new();
    for (kind, status) in &manifest.errors.status {
        if status.value < 400 {
            findings.push(faults::error_status(status));
        }
        if known(kind, findings) {
            statuses.insert(kind.value.clone(), status.value as u16);
        }
    }
    let mut texts = BTreeMap::new();
    for (kind, reason) in &manifest.errors.text {
        let known = known(kind, findings);
        let Some(id) = names.reason(reason, findings) else { continue };
        if placeholders.get(usize::from(id.0)).is_some_and(|names| !names.is_empty()) {
            findings.push(faults::nothing_given(reason));
        }
        if known {
            texts.insert(kind.value.clone(), id);
        }
    }
    if count(body) != 1 {
        findings.push(faults::error_text(body.span, count(body)));
        return None;
    }
    let json = literal::json(body);
    let json = String::from_utf8_lossy(&json).into_owned();
    let (before, after) = json.split_once(&format!("\"{TEXT}\""))?;
    Some(ErrorStyle {
        before: before.as_bytes().into(),
        after: after.as_bytes().into(),
        content_type: "application/json".to_owned(),
        statuses,
        texts,
    })
}

/// How often the message stands in the body.
fn count(node: &Node) -> usize {
    match &node.kind {
        Kind::String(text, _) => usize::from(text == TEXT),
        Kind::Seq(items) => items.iter().map(count).sum(),
        Kind::Map(entries) => entries.iter().map(|(_, value)| count(value)).sum(),
        _ => 0,
    }
}
