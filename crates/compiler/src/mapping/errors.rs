//! Compiles `errors:` of `pack.yaml`: the error types of both sides, the plans that translate
//! between them, and the format of the gateway's own errors.

use super::ast::{self, Manifest, Spanned};
use super::lens::{LensEnv, Lenses, Supply, lost};
use super::message_place::{self, MessagePart, Missed, walk};
use super::names::PackNames;
use super::{faults, form, literal};
use crate::contract::{self, Contract, Contracts, Media, Narrowing, StatusPattern, Type, TypeIn, compare};
use crate::diagnostic::{Findings, Sources, Span};
use crate::yaml::{Kind, Node};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use switchback_plan::{
    BodyPlan, Class, ErrorPiece, ErrorStyle, FailurePlace, FailureRule, FailureTest, GATEWAY_ERRORS, Loss,
    Message, PerSide, ReasonId, Response, ResponseBody, Root, Route, RouteKind, SideId, ValueOp, XmlFormat,
};

/// Placeholders in `errors: {body: …}`.
const TEXT: &str = "$text";
const STATUS: &str = "$status";
const KIND: &str = "$kind";

/// Returns the error type of each contract as named in `errors: {types: …}`, or the unknown type
/// for an omitted name.
pub(super) fn types<'c>(
    manifest: &Manifest,
    contracts: &'c Contracts,
    findings: &mut Findings,
) -> [Option<&'c Type>; 2] {
    [0, 1].map(|side| {
        let Some(name) = manifest.errors.type_name(side) else { return Some(&contracts[side].any) };
        let found = contracts[side].types.get(&name.value);
        if found.is_none() {
            let known: Vec<&str> = contracts[side].types.iter().map(|named| named.name.as_ref()).collect();
            findings.push(faults::error_type(name, &contracts[side].name, &known));
        }
        found.map(|named| &named.ty)
    })
}

/// Prefix for places of losses in errors.
const BODY: &str = "error body ";

/// Returns, by served side, the plan that translates the other side's errors, and the values that
/// the served side's contract does not accept.
pub(super) fn plans(
    manifest: &Manifest,
    contracts: &Contracts,
    types: [Option<&Type>; 2],
    lenses: &Lenses<'_>,
    findings: &mut Findings,
) -> Option<[(BodyPlan, Vec<Loss>); 2]> {
    let [old, new] = types;
    let types = [contracts[0].types.at(old?), contracts[1].types.at(new?)];
    let plans = [SideId::OLD, SideId::NEW].map(|to| plan(manifest, types, to, lenses, findings));
    let [old, new] = plans;
    Some([old?, new?])
}

/// Returns the losses of an error body: values that the contract of one side does not accept.
pub(super) fn narrower(narrowings: &[Narrowing], to: SideId, world: &LensEnv<'_>, span: Span) -> Vec<Loss> {
    let of = |narrowing: &Narrowing| {
        let side = if narrowing.is_of_target { to } else { to.other() };
        let origin = super::origin(world.sources, span);
        lost(narrowing, world.sides()[side.place()].to_owned(), &format!("{BODY}$"), origin)
    };
    narrowings.iter().map(of).collect()
}

fn plan(
    manifest: &Manifest,
    types: [TypeIn<'_>; 2],
    to: SideId,
    lenses: &Lenses<'_>,
    findings: &mut Findings,
) -> Option<(BodyPlan, Vec<Loss>)> {
    let Some(shape) = &manifest.errors.shape else {
        let (from, target) = (types[to.other()], types[to]);
        let span = manifest.errors.type_name(to.place()).map_or(manifest.errors.span, |name| name.span);
        let narrowings = match compare(from, target, Some(Message::Answer)) {
            Ok(narrowings) => narrowings,
            Err(why) => {
                findings.push(faults::errors_differ(span, &why.to_string()));
                return None;
            }
        };
        let losses = narrower(&narrowings, to, &lenses.world, span);
        let because = "errors are the same on both sides".to_owned();
        return Some((BodyPlan { op: ValueOp::Keep, root: Root::ANY, class: Class::Pass, because }, losses));
    };
    let used = ast::ShapeUse { name: shape.clone(), each: false, each_value: false, otherwise: None };
    let lens = lenses.body(&used, types, to, &Supply::default(), findings)?;
    lens.partials.iter().for_each(|partial| lenses.use_partial(partial, None));
    let is_narrower = |loss: &Loss| {
        loss.narrow.as_ref().is_some_and(|narrow| narrow.only_in.is_none_or(|only| only == Message::Answer))
    };
    let narrower = lens.losses.into_iter().filter(is_narrower);
    let losses = narrower.map(|loss| Loss { place: format!("{BODY}{}", loss.place), ..loss }).collect();
    Some((BodyPlan { op: lens.op, root: Root::ANY, class: lens.class, because: lens.because }, losses))
}

/// Warns about errors that are not of the declared type and have no translation for the served
/// side: the gateway replaces their text. Reports once per side, because many operations of a
/// service share such a type.
pub(super) fn warn_foreign_errors(
    manifest: &Manifest,
    contracts: &Contracts,
    routes: [&[Route]; 2],
    findings: &mut Findings,
) {
    for served in [SideId::OLD, SideId::NEW] {
        let declared = manifest.errors.type_name(served.other().place());
        let is_reworded = |response: &Response| match &response.body {
            ResponseBody::Error(plan) => matches!(plan.body.op, ValueOp::Constant(_)),
            _ => false,
        };
        let of_route = |route: &Route| match &route.kind {
            RouteKind::Pair(pair) if pair.responses.iter().any(is_reworded) => {
                Some(pair.call.operation.to_string())
            }
            _ => None,
        };
        let operations: Vec<String> = routes[usize::from(served.0)].iter().filter_map(of_route).collect();
        if let (Some(declared), false) = (declared, operations.is_empty()) {
            let side = &contracts[usize::from(served.other().0)].name;
            findings.push(faults::errors_reworded(declared, side, &operations));
        }
    }
}

/// Returns the format of the gateway's errors for clients of each side.
pub(super) fn style(
    manifest: &Manifest,
    contracts: &Contracts,
    types: [Option<&Type>; 2],
    names: &PackNames,
    placeholders: &[BTreeSet<String>],
    findings: &mut Findings,
) -> Option<PerSide<ErrorStyle>> {
    let errors = &manifest.errors;
    let texts =
        by_kind(&errors.text, |reason, findings| text(reason, names, placeholders, findings), findings);
    let status = |status: &Spanned<i64>, findings: &mut Findings| {
        if status.value < 400 {
            findings.push(faults::error_status(status));
        }
        Some(status.value as u16)
    };
    let all = |status: &Option<Spanned<i64>>, findings: &mut Findings| {
        let status = status.as_ref()?;
        // Responses with 204 or 205 have no body (RFC 9110, sections 15.3.5 and 15.3.6), and
        // clients follow redirects instead of reading the error.
        if matches!(status.value, 204 | 205 | 300..=399) {
            findings.push(faults::error_status_of_all(status));
        }
        Some(status.value as u16)
    };
    let word = |word: &Spanned<String>, _: &mut Findings| Some(word.value.clone());
    let (statuses, words) =
        (by_kind(&errors.status.by_kind, status, findings), by_kind(&errors.kind, word, findings));
    let common = all(&errors.status.all, findings);
    let shared_body = pieces(&errors.body);
    let mut is_sound = is_told(&errors.body, &shared_body, findings);
    let mut tells_kind = shared_body.contains(&ErrorPiece::Kind);
    // Both sides may share the same invalid value. Collect the misfits first, so each value is
    // reported once.
    let mut misfits: Vec<(Span, Vec<String>, String)> = Vec::new();
    let styles = [0, 1].map(|side| {
        let own = errors.sides[side].as_ref();
        let written = own.and_then(|own| own.body.as_ref());
        let body = written.map_or_else(|| shared_body.clone(), pieces);
        is_sound &= written.is_none_or(|written| is_told(written, &body, findings));
        tells_kind |= body.contains(&ErrorPiece::Kind);
        if let Some(ty) = types[side]
            && let Err(misfit) =
                literal::check_pattern(&sample(written.unwrap_or(&errors.body)), contracts[side].types.at(ty))
        {
            let name = contracts[side].name.clone();
            match misfits.iter_mut().find(|(span, ..)| *span == misfit.node.span) {
                Some((_, sides, _)) => sides.push(name),
                None => misfits.push((misfit.node.span, vec![name], misfit.why)),
            }
        }
        // Entries of the side override the common ones.
        let (mut statuses, mut words, mut common) = (statuses.clone(), words.clone(), common);
        if let Some(own) = own {
            common = all(&own.status.all, findings).or(common);
            statuses.extend(by_kind(&own.status.by_kind, status, findings));
            words.extend(by_kind(&own.kind, word, findings));
            if let ([(first, _), ..], false) = (own.kind.as_slice(), body.contains(&ErrorPiece::Kind)) {
                findings.push(faults::error_words(first.span));
            }
        }
        let form = types[side].map(|ty| form::form_of(ty, &contracts[side].types));
        let xml = error_layout(&contracts[side], types[side]);
        let json = switchback_plan::BodyFormat::JSON;
        let content_type = xml.as_ref().map_or(json, |xml| &xml.content_type).to_owned();
        ErrorStyle { body, content_type, statuses, texts: texts.clone(), words, status: common, form, xml }
    });
    for (span, sides, why) in misfits {
        findings.push(faults::error_body(span, &sides, &why));
    }
    if let ([(first, _), ..], false) = (errors.kind.as_slice(), tells_kind) {
        findings.push(faults::error_words(first.span));
    }
    is_sound.then_some(styles)
}

/// Returns the layout of a side's errors if its contract describes them in XML: that of the error
/// type, otherwise of the first error with a body.
fn error_layout(contract: &Contract, error_type: Option<&Type>) -> Option<Arc<XmlFormat>> {
    let is_error = |response: &&contract::Response| match response.status {
        StatusPattern::Exact(status) => status >= 400,
        StatusPattern::Class(class) => class >= 4,
        StatusPattern::Default => true,
    };
    let errors = || {
        let responses = contract.operations.iter().flat_map(|operation| &operation.responses);
        responses.filter(is_error).filter_map(|response| Some((response.body.as_ref()?, &response.media)))
    };
    let is_it = |ty: &Type| {
        let resolved = contract.types.resolve(ty);
        error_type.is_some_and(|wanted| resolved.span == contract.types.resolve(wanted).span)
    };
    let (_, media) = errors().find(|(ty, _)| is_it(ty)).or_else(|| errors().next())?;
    match media {
        Media::Xml(body) => Some(Arc::clone(&body.format)),
        _ => None,
    }
}

/// Checks that a body distinguishes errors: it contains `$text` exactly once, or only `$kind`.
fn is_told(written: &Node, body: &[ErrorPiece], findings: &mut Findings) -> bool {
    let texts = body.iter().filter(|piece| **piece == ErrorPiece::Text).count();
    let is_told = texts == 1 || (texts == 0 && body.contains(&ErrorPiece::Kind));
    if !is_told {
        findings.push(faults::error_text(written.span, texts));
    }
    is_told
}

/// Returns, by side, the rules that recognize failures regardless of their status.
pub(super) fn failures(
    manifest: &Manifest,
    contracts: &Contracts,
    sources: &Sources,
    findings: &mut Findings,
) -> PerSide<Vec<FailureRule>> {
    [0, 1].map(|side| {
        let written = manifest.errors.failures[side].iter().flatten();
        written.filter_map(|written| failure(written, &contracts[side], sources, findings)).collect()
    })
}

fn failure(
    written: &ast::FailureDecl,
    contract: &Contract,
    sources: &Sources,
    findings: &mut Findings,
) -> Option<FailureRule> {
    if written.status.value < 400 {
        findings.push(faults::failure_status(&written.status));
    }
    if written.when.is_empty() {
        findings.push(faults::failure_empty(written.span));
    }
    let mut when = Vec::new();
    for (place, values) in &written.when {
        for value in values {
            if matches!(value.kind, Kind::Seq(_) | Kind::Map(_)) {
                findings.push(faults::failure_value(value.span));
            }
        }
        let found = failure_place(place, contract, findings)?;
        when.push(FailureTest { place: found, values: values.iter().map(literal::json).collect() });
    }
    let origin = super::origin(sources, written.span);
    Some(FailureRule { when, status: written.status.value as u16, origin })
}

fn failure_place(
    place: &Spanned<String>,
    contract: &Contract,
    findings: &mut Findings,
) -> Option<FailurePlace> {
    let Some((part, names)) = message_place::parse(&place.value) else {
        findings.push(faults::failure_place(place));
        return None;
    };
    if part == MessagePart::Headers {
        return Some(FailurePlace::Header(names[0].to_ascii_lowercase()));
    }
    // A rule applies to every success of the side, so the place must exist in at least one of them.
    let successes =
        contract.operations.iter().flat_map(|operation| &operation.responses).filter(|one| one.is_success());
    let bodies: Vec<&Type> = successes.filter_map(|response| response.body.as_ref()).collect();
    let mut missed = Missed::default();
    let mut found = bodies.into_iter().map(|ty| walk(ty, &names, &contract.types, &mut missed));
    if !found.any(|types| !types.is_empty()) {
        findings.push(faults::failure_unknown(place, &contract.name, &missed));
        return None;
    }
    Some(FailurePlace::Body(names.into_iter().map(Into::into).collect()))
}

/// Collects lines by kind of error, and reports unknown kinds.
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

/// Resolves a reason with a text without placeholders.
fn text(
    reason: &Spanned<String>,
    names: &PackNames,
    placeholders: &[BTreeSet<String>],
    findings: &mut Findings,
) -> Option<ReasonId> {
    let id = names.reason(reason, findings)?;
    if placeholders.get(usize::from(id.0)).is_some_and(|names| !names.is_empty()) {
        findings.push(faults::nothing_given(reason));
    }
    Some(id)
}

/// Returns an example of the error body, for type checks: a number replaces `$status`. `$text` and
/// `$kind` remain, because they are texts like their values.
fn sample(node: &Node) -> Node {
    let kind = match &node.kind {
        Kind::String(text, _) if text == STATUS => Kind::Number("500".to_owned()),
        Kind::Seq(items) => Kind::Seq(Arc::new(items.iter().map(sample).collect())),
        Kind::Map(entries) => {
            Kind::Map(Arc::new(entries.iter().map(|(key, value)| (key.clone(), sample(value))).collect()))
        }
        kind => kind.clone(),
    };
    Node { kind, span: node.span }
}

/// Splits the body into fixed JSON pieces and variable ones.
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

/// Appends a variable piece after the pending fixed text.
fn varies(piece: ErrorPiece, same: &mut String, pieces: &mut Vec<ErrorPiece>) {
    end(same, pieces);
    pieces.push(piece);
}

fn end(same: &mut String, pieces: &mut Vec<ErrorPiece>) {
    if !same.is_empty() {
        pieces.push(ErrorPiece::Json(std::mem::take(same).into_bytes().into()));
    }
}
