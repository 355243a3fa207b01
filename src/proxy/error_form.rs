//! How errors made by the gateway look to clients: the pack's form, texts and statuses, made ready once per program.

use super::context::Language;
use crate::error::{GatewayError, Kind};
use crate::plan::{GATEWAY_ERRORS, Pack};
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use std::collections::HashMap;

/// The errors of one pack, by kind and language.
#[derive(Debug)]
pub struct ErrorForm {
    before: Bytes,
    after: Bytes,
    content_type: HeaderValue,
    kinds: HashMap<&'static str, Ready>,
}

#[derive(Debug)]
struct Ready {
    status: StatusCode,
    /// By [`Language`].
    bodies: Vec<Bytes>,
}

impl ErrorForm {
    /// Reads the pack's style. What the pack leaves out is filled with the engine's own status and English text.
    pub fn of(pack: &Pack) -> ErrorForm {
        let style = &pack.errors;
        let before = Bytes::copy_from_slice(&style.before);
        let after = Bytes::copy_from_slice(&style.after);
        let kinds = GATEWAY_ERRORS.iter().map(|&(name, status, text)| {
            let status = style.statuses.get(name).copied().unwrap_or(status);
            let reason = style.texts.get(name).and_then(|id| pack.reasons.get(usize::from(id.0)));
            let text_in = |language: &String| {
                let texts = reason.map(|reason| &reason.texts);
                let own = texts
                    .and_then(|texts| texts.get(language).or_else(|| texts.get(pack.languages.first()?)));
                own.map_or(text, String::as_str)
            };
            let bodies =
                pack.languages.iter().map(|language| wrap(&before, text_in(language), &after)).collect();
            // A pack that gives a status outside HTTP's range was refused by its compiler.
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (name, Ready { status, bodies })
        });
        let content_type = HeaderValue::from_str(&style.content_type)
            .unwrap_or_else(|_| HeaderValue::from_static("application/json"));
        ErrorForm { kinds: kinds.collect(), content_type, before, after }
    }

    pub fn status(&self, kind: &Kind) -> StatusCode {
        self.kinds.get(kind.name()).map_or(StatusCode::INTERNAL_SERVER_ERROR, |ready| ready.status)
    }

    /// The body for an error: its own text where it brings one, else the pack's text for its kind.
    pub fn body(&self, error: &GatewayError, language: Language) -> Bytes {
        match error.text() {
            Some(text) => self.with_text(text),
            None => self.kind_body(error.kind(), language),
        }
    }

    /// The body for a kind of error.
    pub fn kind_body(&self, kind: &Kind, language: Language) -> Bytes {
        let bodies = self.kinds.get(kind.name()).map(|ready| &ready.bodies);
        bodies
            .and_then(|bodies| bodies.get(language.0).or_else(|| bodies.first()))
            .cloned()
            .unwrap_or_default()
    }

    /// A text in the pack's form.
    pub fn with_text(&self, text: &str) -> Bytes {
        wrap(&self.before, text, &self.after)
    }

    pub fn content_type(&self) -> &HeaderValue {
        &self.content_type
    }
}

fn wrap(before: &[u8], text: &str, after: &[u8]) -> Bytes {
    let text = serde_json::Value::from(text).to_string();
    [before, text.as_bytes(), after].concat().into()
}
