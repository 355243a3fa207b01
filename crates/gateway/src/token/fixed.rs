//! A fixed token for calls to a side without grants, as the data path uses it. It needs no renewal;
//! this module tracks whether the service still accepts it.
//!
//! A 401 may mean an invalid token or a missing permission, and the response does not distinguish
//! them. Each 401 is therefore forwarded to the client, and only several in a row, without a
//! success between them, mark the token as *refused*. A refused token is still sent, once per call,
//! and the first success resets the state. The data path counts; [`super::Tokens::run`] writes the
//! state to the store, rate-limited however often it changes.

use super::carried;
use super::wire::authorization;
use crate::secret::Secret;
use crate::store::CredentialRow;
use crate::telemetry::metrics;
use http::HeaderValue;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use switchback_plan::Scheme;

/// Number of consecutive 401 responses that mark a token as refused.
const REFUSALS: u32 = 3;
/// The scheme of the prepared header.
const USUAL_SCHEME: &str = "Bearer";

/// A fixed token of a client for one side.
pub struct FixedToken {
    /// Identifies this token value in the store; a new value has a new id.
    pub(super) id: String,
    pub(super) client: Arc<str>,
    pub(super) side: String,
    token: Secret<String>,
    /// The prepared header for the scheme of nearly all sides.
    usual: HeaderValue,
    /// Consecutive 401 responses, up to [`REFUSALS`].
    refusals: AtomicU32,
    /// The refused state in the store.
    noted: AtomicBool,
    /// Whether the client's token for this side has been replaced or removed.
    is_gone: AtomicBool,
}

impl FixedToken {
    /// Returns `None` if the stored token cannot be decrypted or contains characters that a header
    /// cannot carry.
    pub(super) fn new(row: &CredentialRow, client: Arc<str>) -> Option<Arc<FixedToken>> {
        let token = row.token.as_ref().ok()?.clone();
        let usual = authorization(USUAL_SCHEME, token.expose())?;
        let is_refused = row.refused_ms.is_some();
        let fixed = FixedToken {
            id: row.id.clone(),
            client,
            side: row.side.clone(),
            token,
            usual,
            refusals: AtomicU32::new(if is_refused { REFUSALS } else { 0 }),
            noted: AtomicBool::new(is_refused),
            is_gone: AtomicBool::new(false),
        };
        Some(Arc::new(fixed))
    }

    /// Returns the header value with this scheme, marked sensitive.
    pub fn header(&self, scheme: &Scheme) -> Option<HeaderValue> {
        match scheme {
            Scheme::Word(word) if word == USUAL_SCHEME => Some(self.usual.clone()),
            scheme => carried::value(self.token.expose(), scheme),
        }
    }

    /// Returns the token.
    pub fn secret(&self) -> &Secret<String> {
        &self.token
    }

    /// Returns whether the service appears to reject the token.
    pub fn is_refused(&self) -> bool {
        self.refusals.load(Relaxed) >= REFUSALS
    }

    /// Records a 401 response to a call with the token. Returns whether the token now counts as
    /// refused.
    pub fn on_unauthorized(&self) -> bool {
        let step = |refusals: u32| (refusals < REFUSALS).then_some(refusals + 1);
        // An error means that the token was refused already.
        let Ok(before) = self.refusals.fetch_update(Relaxed, Relaxed, step) else { return true };
        // Exactly one of several concurrent calls reaches the limit, so the error is logged once.
        let is_refused = before + 1 == REFUSALS;
        if is_refused {
            tracing::error!(
                target: "switchback::token", client = %self.client, side = self.side,
                "the service rejects the client's fixed token; set another one"
            );
            self.show();
        }
        is_refused
    }

    /// Records a call that was not rejected for its token.
    pub fn on_success(&self) {
        // Read first: the usual success then costs no write to a shared cache line.
        if self.refusals.load(Relaxed) > 0 && self.refusals.swap(0, Relaxed) >= REFUSALS {
            tracing::info!(target: "switchback::token", client = %self.client, side = self.side, "the service accepts the client's fixed token again");
            self.show();
        }
    }

    /// Applies a state that another gateway has stored. It overrides the local count, which
    /// recovers after a few calls.
    pub(super) fn adopt(&self, row: &CredentialRow) {
        let is_refused = row.refused_ms.is_some();
        if self.noted.swap(is_refused, Relaxed) != is_refused {
            self.refusals.store(if is_refused { REFUSALS } else { 0 }, Relaxed);
            self.show();
        }
    }

    /// Returns the refused state if it differs from the stored one.
    pub(super) fn to_note(&self) -> Option<bool> {
        let is_refused = self.is_refused();
        (is_refused != self.noted.load(Relaxed)).then_some(is_refused)
    }

    /// Records the state that the store now contains.
    pub(super) fn set_noted(&self, is_refused: bool) {
        self.noted.store(is_refused, Relaxed);
    }

    /// Removes the token from the metrics. Later results of calls with it no longer add it.
    pub(super) fn hide(&self) {
        // A call in flight may still report a result after the removal and would recreate the
        // series.
        self.is_gone.store(true, Relaxed);
        metrics::credential_refused(&self.client, &self.side, None);
    }

    pub(super) fn show(&self) {
        if !self.is_gone.load(Relaxed) {
            metrics::credential_refused(&self.client, &self.side, Some(self.is_refused()));
        }
    }
}

impl fmt::Debug for FixedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FixedToken({} for {}, ***)", self.client, self.side)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::TokenOrigin;

    fn row(refused_ms: Option<i64>) -> CredentialRow {
        CredentialRow {
            id: "1".to_owned(),
            side: "old".to_owned(),
            origin: TokenOrigin::Managed,
            set_ms: 0,
            refused_ms,
            token: Ok("a-token".into()),
        }
    }

    #[test]
    fn refusals_in_a_row_make_a_token_refused_and_one_success_ends_that() {
        let token = FixedToken::new(&row(None), "acme".into()).expect("a header can carry it");
        assert_eq!([token.on_unauthorized(), token.on_unauthorized()], [false, false]);
        token.on_success();
        assert_eq!(
            [token.on_unauthorized(), token.on_unauthorized(), token.on_unauthorized()],
            [false, false, true]
        );
        assert!(token.is_refused() && token.on_unauthorized(), "further ones change nothing");
        assert_eq!(token.to_note(), Some(true));
        token.set_noted(true);
        assert_eq!(token.to_note(), None);
        token.on_success();
        assert_eq!((token.is_refused(), token.to_note()), (false, Some(false)));
    }

    #[test]
    fn what_the_store_knows_holds_after_a_restart_and_in_other_gateways() {
        let token = FixedToken::new(&row(Some(5)), "acme".into()).expect("a header can carry it");
        assert!(token.is_refused() && token.to_note().is_none());
        token.adopt(&row(None));
        assert!(!token.is_refused());
        token.adopt(&row(Some(6)));
        assert!(token.is_refused());
    }

    #[test]
    fn the_header_is_of_the_sides_scheme_and_shows_nothing() {
        let token = FixedToken::new(&row(None), "acme".into()).expect("a header can carry it");
        for word in ["Bearer", "Token"] {
            let header = token.header(&Scheme::Word(word.to_owned())).expect("a header");
            assert_eq!(header.to_str().ok(), Some(format!("{word} a-token").as_str()));
            assert!(header.is_sensitive());
        }
        let alone = token.header(&Scheme::Bare).expect("a header");
        assert!(alone == "a-token" && alone.is_sensitive());
        assert!(!format!("{token:?}").contains("a-token"));
    }
}
