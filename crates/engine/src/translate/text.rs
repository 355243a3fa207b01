//! Human-readable texts: reasons in the client's language, and texts of the gateway's own errors.

use super::fault::Fault;
use super::turn::{Answer, Refused};
use crate::xml;
use switchback_json::Limits;
use switchback_plan::{ErrorStyle, GATEWAY_ERRORS, Pack, ReasonId, SideId};

/// Returns a reason in a language (index into [`Pack::languages`], with fallback to the default
/// language). Each `{name}` is replaced by its value. Placeholders inside values are not replaced,
/// and placeholders without a value are left unchanged.
pub fn text(pack: &Pack, reason: ReasonId, language: usize, with: &[(&str, String)]) -> String {
    let Some(reason) = pack.reasons.get(usize::from(reason.0)) else {
        return String::new();
    };
    let in_language = |at: usize| reason.texts.get(pack.languages.get(at)?);
    let template = in_language(language).or_else(|| in_language(0)).map_or("", String::as_str);
    fill(template, with)
}

fn fill(template: &str, with: &[(&str, String)]) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let name = rest.find('}').map(|close| &rest[1..close]);
        let value = name.and_then(|name| with.iter().find(|(known, _)| *known == name));
        match value {
            Some((name, value)) => {
                out.push_str(value);
                rest = &rest[name.len() + 2..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns status and text of an error that the gateway itself produces for clients of a side.
/// `kind` is one of [`GATEWAY_ERRORS`].
pub fn gateway_error(pack: &Pack, served: SideId, kind: &str, language: usize) -> (u16, String) {
    let known = GATEWAY_ERRORS.iter().find(|(name, ..)| *name == kind);
    let (status, english) = known.map_or((500, ""), |(_, status, text)| (*status, *text));
    let status = pack.errors[served].statuses.get(kind).copied().unwrap_or(status);
    let own = pack.errors[served].texts.get(kind).map(|reason| text(pack, *reason, language, &[]));
    (status, own.unwrap_or_else(|| english.to_owned()))
}

/// Returns the body of a gateway error in the format of its side; see [`ErrorStyle::body`].
pub fn error_body(style: &ErrorStyle, kind: &str, status: u16, text: &str) -> Vec<u8> {
    in_error_format(style, style.body(kind, status, text))
}

/// Converts the JSON of an error to the format of its side.
pub(super) fn in_error_format(style: &ErrorStyle, json: Vec<u8>) -> Vec<u8> {
    match &style.xml {
        // The JSON is the gateway's or was parsed before, so it can be written.
        Some(format) => xml::encode(format, &json, &Limits::DOCUMENT).unwrap_or(json),
        None => json,
    }
}

/// Returns the answer with such an error, in the style of the served side.
pub(super) fn gateway_answer(pack: &Pack, served: SideId, kind: &str, language: usize) -> Answer {
    let (status, text) = gateway_error(pack, served, kind, language);
    styled_answer(pack, served, kind, status, &text)
}

fn styled_answer(pack: &Pack, served: SideId, kind: &str, status: u16, text: &str) -> Answer {
    let style = &pack.errors[served];
    let body = error_body(style, kind, status, text);
    Answer { status: style.status_for(status), body: Some(body.into()), ..Answer::default() }
}

impl Refused {
    /// Returns the answer for clients without a legacy service that could answer instead.
    pub fn answer(&self, pack: &Pack, served: SideId) -> Answer {
        styled_answer(pack, served, "refused", self.refusal.status, &self.text)
    }
}

impl Fault {
    /// Returns the gateway's answer to the client.
    pub fn answer(&self, pack: &Pack, served: SideId, language: usize) -> Answer {
        gateway_answer(pack, served, self.kind.name(), language)
    }
}
