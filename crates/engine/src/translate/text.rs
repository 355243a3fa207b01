//! Human-readable texts: reasons in the client's language, and texts of the gateway's own errors.

use switchback_plan::{GATEWAY_ERRORS, Pack, ReasonId, SideId};

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
