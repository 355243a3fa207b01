//! Compiles `pack.yaml`: sides with their credentials and scopes, and settings. `errors` compiles
//! the error format.

use super::ast::{self, CarrierKind, Manifest, Spanned};
use super::names::setting_kind;
use super::routes::OWN_HEADERS;
use super::{faults, literal, origin};
use crate::contract::{Contracts, Media, Operation, PathTemplate};
use crate::diagnostic::{Findings, Sources};
use crate::yaml::{Kind, Node};
use std::sync::Arc;
use switchback_plan::{Carrier, Credential, Scheme, Setting, SettingKind, Side, SideId};

/// Returns both sides, or `None` for a side with an invalid credential.
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
        let hosts = manifest.hosts[SideId(side as u8)].iter().map(|host| host.name.value.clone()).collect();
        Some(Side { name, credential, scope, hosts })
    })
}

fn credential(written: &ast::CredentialDecl, findings: &mut Findings) -> Option<Credential> {
    let usual = written.scheme.as_ref().and_then(|word| scheme(word, findings));
    let unsaid = written.carriers().find(|carrier| matches!(carrier.kind, CarrierKind::Usual));
    if let (None, Some(carrier)) = (&written.scheme, unsaid) {
        findings.push(faults::no_scheme(&carrier.name));
    }
    let mut carriers = |written: &[ast::CarrierDecl]| -> Option<Vec<Carrier>> {
        let all: Vec<_> = written.iter().map(|one| carrier(one, usual.as_ref(), findings)).collect();
        all.into_iter().collect()
    };
    // Check the carriers of both directions before returning, so that all of them are reported.
    let (read, send) = (carriers(&written.read), carriers(&written.send));
    if written.read.is_empty() || written.send.is_empty() {
        findings.push(faults::no_credential(written.span, written.read.is_empty()));
    }
    let headers: Vec<_> = written.headers.iter().map(|line| call_header(line, written, findings)).collect();
    let (read, send) = (read?, send?);
    let headers = headers.into_iter().collect::<Option<Vec<_>>>()?;
    let tokens = (&written.tokens).into();
    let (first, others) = send.split_first()?;
    // Several headers may carry the token if they share one scheme.
    let is_of_first = |carrier: &Carrier| match (carrier.header(), first.header()) {
        (Some((_, scheme)), Some((_, of_first))) => scheme == of_first,
        _ => false,
    };
    if let Some(at) = others.iter().position(|carrier| !is_of_first(carrier)) {
        findings.push(faults::two_ways(&written.send[at + 1].name, &written.send[0].name));
    }
    Some(Credential { read, send, headers, tokens })
}

fn carrier(written: &ast::CarrierDecl, usual: Option<&Scheme>, findings: &mut Findings) -> Option<Carrier> {
    let scheme = match &written.kind {
        CarrierKind::Query => return Some(Carrier::Query(written.name.value.clone())),
        CarrierKind::FormField => return Some(Carrier::FormField(written.name.value.clone())),
        CarrierKind::Usual => usual.cloned(),
        CarrierKind::Scheme(word) => scheme(word, findings),
        CarrierKind::Own(scheme) => Some(scheme.clone()),
    };
    let name = header(&written.name, findings);
    Some(Carrier::Header { name: name?, scheme: scheme? })
}

fn scheme(word: &Spanned<String>, findings: &mut Findings) -> Option<Scheme> {
    let token = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
    if word.value.is_empty() || !word.value.bytes().all(token) {
        findings.push(faults::scheme(word));
        return None;
    }
    Some(match word.value.as_str() {
        NO_SCHEME => Scheme::Bare,
        word => Scheme::Word(word.to_owned()),
    })
}

/// Removes the parameters and form fields that carry tokens from the contracts. The gateway alone
/// reads and sets them, so routes, comparisons and recordings must not see them.
pub(super) fn take_credentials(manifest: &Manifest, contracts: &mut Contracts, findings: &mut Findings) {
    for (side, contract) in contracts.iter_mut().enumerate() {
        let Some(credential) = manifest.credentials[side].as_ref() else { continue };
        let read_forms = credential.read.iter().filter(|one| matches!(one.kind, CarrierKind::FormField));
        let takes_forms = |operation: &Operation| {
            operation.body.as_ref().is_some_and(|body| matches!(body.media, Media::Form(..)))
        };
        if !contract.operations.iter().any(takes_forms) {
            let side = &manifest.sides[side].value;
            read_forms.for_each(|carrier| findings.push(faults::no_forms(&carrier.name, side)));
        }
        for carrier in credential.carriers() {
            match carrier.kind {
                CarrierKind::Query => Arc::make_mut(contract).take_query(&carrier.name.value),
                CarrierKind::FormField => Arc::make_mut(contract).take_form_field(&carrier.name.value),
                CarrierKind::Usual | CarrierKind::Scheme(_) | CarrierKind::Own(_) => {}
            }
        }
    }
}

/// The word for a token without a scheme.
const NO_SCHEME: &str = "none";

/// Returns the lower-case name of a header that the gateway sets.
pub(super) fn own_header(name: Option<&Spanned<String>>, findings: &mut Findings) -> Option<String> {
    header(name?, findings)
}

/// Checks a header that all calls to a side carry. Packs cannot set headers that the gateway
/// manages, except for `content-type`, which calls without a body carry.
fn call_header(
    (name, value): &(Spanned<String>, Spanned<String>),
    credential: &ast::CredentialDecl,
    findings: &mut Findings,
) -> Option<(String, String)> {
    let lower = header(name, findings)?;
    let carries_token = credential.headers_of_tokens().any(|known| known.value.eq_ignore_ascii_case(&lower));
    let is_own = lower != "content-type" && OWN_HEADERS.contains(&lower.as_str());
    if carries_token || is_own {
        findings.push(faults::side_header(name));
        return None;
    }
    if http::HeaderValue::from_str(&value.value).is_err() {
        findings.push(faults::header_value(value));
        return None;
    }
    Some((lower, value.value.clone()))
}

/// Checks the headers of all calls to a side. Packs cannot set headers that the gateway manages or
/// that carry tokens.
pub(super) fn sent(manifest: &Manifest, credential_headers: &[String], findings: &mut Findings) {
    for (name, value) in manifest.send.iter().flat_map(|sent| &sent.headers) {
        let Some(lower) = header(name, findings) else { continue };
        if credential_headers.contains(&lower) || OWN_HEADERS.contains(&lower.as_str()) {
            findings.push(faults::side_header(name));
        }
        let text = match &value.kind {
            Kind::String(text, _) | Kind::Number(text) => text.as_str(),
            Kind::Bool(_) => "true",
            // Invalid in a header value, so null, lists and maps are reported below.
            _ => "\0",
        };
        if http::HeaderValue::from_str(text).is_err() {
            findings.push(faults::header_value(&Spanned { value: String::new(), span: value.span }));
        }
    }
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

/// Returns the settings in the order of their declaration.
pub(super) fn settings(manifest: &Manifest, sources: &Sources, findings: &mut Findings) -> Vec<Setting> {
    let mut settings = Vec::new();
    for setting in &manifest.settings {
        let name = &setting.name.value;
        // Dots separate nested members, and a setting has a scalar value without members.
        let above = |other: &ast::SettingDecl| {
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
        // `Names::collect` has reported the unknown type.
        let Some(kind) = setting_kind(&setting.kind.value) else { continue };
        let listed = setting.values.iter().filter(|_| kind == SettingKind::String);
        let values: Vec<String> = listed.map(|value| value.value.clone()).collect();
        if let (Some(first), false) = (setting.values.first(), kind == SettingKind::String) {
            findings.push(faults::setting_values(first.span, &setting.kind.value));
        }
        let default = setting.default.as_ref().filter(|node| !node.is_null());
        if let Some(node) = default.filter(|node| !is_of(node, kind)) {
            findings.push(faults::setting_default(node.span, &setting.kind.value));
        } else if let Some(node) = default.filter(|node| !is_listed(node, &values)) {
            findings.push(faults::setting_default_unlisted(node.span, &values));
        }
        settings.push(Setting {
            name: name.clone(),
            kind,
            default: default.map(literal::json),
            is_required: setting.default.is_none(),
            values,
            about: setting.about.value.clone(),
            reading: setting.reading.as_ref().map(|reading| reading.value.clone()),
            origin: origin(sources, setting.name.span),
        });
    }
    settings
}

fn is_of(node: &Node, kind: SettingKind) -> bool {
    match (&node.kind, kind) {
        (Kind::Bool(_), SettingKind::Boolean) | (Kind::String(..), SettingKind::String) => true,
        (Kind::Number(text), SettingKind::Integer) => !text.contains(['.', 'e', 'E']),
        (Kind::String(text, _), SettingKind::Date) => switchback_plan::is_day(text),
        _ => false,
    }
}

/// Returns whether a value is listed, or `true` if the setting accepts any text.
fn is_listed(node: &Node, values: &[String]) -> bool {
    values.is_empty() || node.as_str().is_some_and(|text| values.iter().any(|value| value == text))
}
