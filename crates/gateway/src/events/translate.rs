//! Translates the body of an event to the form that receivers expect.

use switchback_engine::translate::{Env, TranslateError, document};
use switchback_json::{Error, Limits};
use switchback_plan::{EventRoute, ToldEvent};

/// Why an event cannot be delivered or compared.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventError {
    /// The pack has no route for the event.
    #[error("the pack knows no event of this name")]
    Unknown,
    /// The pack drops the event.
    #[error("nobody is told of it")]
    Dropped,
    /// The body does not fit the route, which has this origin.
    #[error("it cannot be translated: {0} ({1})")]
    Body(TranslateError, String),
    /// The translated body is not JSON.
    #[error(transparent)]
    Json(#[from] Error),
}

/// Returns the body for receivers of a delivered event.
pub(super) fn translate(
    route: &EventRoute,
    event: &ToldEvent<'_>,
    body: &[u8],
    env: &Env<'_>,
) -> Result<Vec<u8>, EventError> {
    let mut translated = Vec::with_capacity(body.len());
    let outcome = document(&event.body.op, body, env, &Limits::DOCUMENT, &mut translated);
    let at = || format!("{}:{}", route.origin.file, route.origin.line);
    outcome.map_err(|error| EventError::Body(error, at()))?;
    Ok(translated)
}
