//! How errors made by the gateway look to clients: the pack's form, texts and statuses, made ready once per program.

use super::language::Language;
use crate::error::GatewayError;
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use std::collections::HashMap;
use std::sync::Arc;
use switchback_plan::{ErrorStyle, GATEWAY_ERRORS, Pack, SideId};

/// The errors of one pack for clients of one side, by kind and language.
#[derive(Debug)]
pub(crate) struct ErrorForm {
    /// Whose style this is.
    pack: Arc<Pack>,
    serves: SideId,
    content_type: HeaderValue,
    kinds: HashMap<&'static str, RenderedError>,
}

#[derive(Debug)]
struct RenderedError {
    status: StatusCode,
    /// Text and body, by [`Language`].
    said: Vec<(String, Bytes)>,
}

impl ErrorForm {
    /// Reads the pack's style. What the pack leaves out is filled with the engine's own status and English text.
    pub(crate) fn new(pack: &Arc<Pack>, serves: SideId) -> ErrorForm {
        let style = &pack.errors[serves];
        let kinds = GATEWAY_ERRORS.iter().map(|&(name, status, text)| {
            let status = style.statuses.get(name).copied().unwrap_or(status);
            let reason = style.texts.get(name).and_then(|id| pack.reasons.get(usize::from(id.0)));
            let text_in = |language: &String| {
                let texts = reason.map(|reason| &reason.texts);
                let own = texts
                    .and_then(|texts| texts.get(language).or_else(|| texts.get(pack.languages.first()?)));
                own.map_or(text, String::as_str)
            };
            let said = pack.languages.iter().map(|language| {
                let text = text_in(language);
                (text.to_owned(), style.body(name, status, text).into())
            });
            // A pack that gives a status outside HTTP's range was refused by its compiler.
            let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (name, RenderedError { status: code, said: said.collect() })
        });
        let content_type = HeaderValue::from_str(&style.content_type)
            .unwrap_or_else(|_| HeaderValue::from_static(switchback_plan::BodyFormat::JSON));
        ErrorForm { kinds: kinds.collect(), content_type, pack: Arc::clone(pack), serves }
    }

    /// Status and body of an error: its own where it brings them, else those of the pack for its kind.
    pub(crate) fn answer(&self, error: &GatewayError, language: Language) -> (StatusCode, Bytes) {
        let name = error.kind().name();
        let Some(ready) = self.kinds.get(name) else {
            return (StatusCode::INTERNAL_SERVER_ERROR, Bytes::new());
        };
        let status = error.status().unwrap_or(ready.status);
        let usual = ready.said.get(language.0).or_else(|| ready.said.first());
        let body = match (error.text(), usual) {
            (None, Some((_, body))) if status == ready.status => body.clone(),
            (own, usual) => {
                let text = own.or_else(|| usual.map(|(text, _)| text.as_str()));
                self.pack.errors[self.serves].body(name, status.as_u16(), text.unwrap_or_default()).into()
            }
        };
        (status_for(&self.pack.errors[self.serves], status), body)
    }

    /// What an error of the other side is answered with, if not with its own status.
    pub(crate) fn answered_otherwise(&self, status: StatusCode) -> Option<StatusCode> {
        Some(status_for(&self.pack.errors[self.serves], status)).filter(|answered| *answered != status)
    }

    pub(crate) fn content_type(&self) -> &HeaderValue {
        &self.content_type
    }
}

/// The status of an error that is answered with another one, since its side tells errors by their body alone: what counts and
/// what is remembered goes by this. An extension of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorStatus(pub StatusCode);

fn status_for(style: &ErrorStyle, status: StatusCode) -> StatusCode {
    StatusCode::from_u16(style.status_for(status.as_u16())).unwrap_or(status)
}
