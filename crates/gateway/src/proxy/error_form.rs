//! Renders gateway errors in the format, texts and statuses of the pack. Bodies without a
//! text of their own are rendered once per program.

use super::language::Language;
use crate::error::GatewayError;
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use std::collections::HashMap;
use std::sync::Arc;
use switchback_engine::translate::error_body;
use switchback_plan::{ErrorStyle, GATEWAY_ERRORS, Pack, SideId};

/// Rendered errors of one pack for clients of one side, by kind.
#[derive(Debug)]
pub(crate) struct ErrorForm {
    /// Source of the style, for errors with their own text or status.
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
    /// Renders all errors. Missing statuses and texts default to those of the engine, in English.
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
                (text.to_owned(), error_body(style, name, status, text).into())
            });
            // The compiler rejects packs with statuses out of range.
            let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (name, RenderedError { status: code, said: said.collect() })
        });
        let content_type = HeaderValue::from_str(&style.content_type)
            .unwrap_or_else(|_| HeaderValue::from_static(switchback_plan::BodyFormat::JSON));
        ErrorForm { kinds: kinds.collect(), content_type, pack: Arc::clone(pack), serves }
    }

    /// Returns status and body of an error. Its own status and text take precedence over those of
    /// the pack.
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
                let style = &self.pack.errors[self.serves];
                error_body(style, name, status.as_u16(), text.unwrap_or_default()).into()
            }
        };
        (status_for(&self.pack.errors[self.serves], status), body)
    }

    /// Returns the status that replaces an error status of the other side, or `None` if it is
    /// unchanged.
    pub(crate) fn answered_otherwise(&self, status: StatusCode) -> Option<StatusCode> {
        Some(status_for(&self.pack.errors[self.serves], status)).filter(|answered| *answered != status)
    }

    pub(crate) fn content_type(&self) -> &HeaderValue {
        &self.content_type
    }
}

/// Response extension with the status of an error that its side answers with another status.
/// Metrics and logs use this status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorStatus(pub StatusCode);

fn status_for(style: &ErrorStyle, status: StatusCode) -> StatusCode {
    StatusCode::from_u16(style.status_for(status.as_u16())).unwrap_or(status)
}
