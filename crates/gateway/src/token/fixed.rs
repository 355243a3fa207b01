//! A token that calls to a side without grants go out with, as the data path sees it. It does not change by itself, so there is
//! nothing to renew: what this file keeps is whether the service still takes it.
//!
//! Decision to know: a 401 may mean a dead token or a missing permission, and nothing tells them apart. So one is passed on,
//! and only several in a row, without one call in between that was not refused for its token, make the token *refused*. That
//! stops no call: each goes out once, and the first that works ends the state. The data path counts; what is written to the
//! store is written by [`super::Tokens::run`], seldom, however often the state changes.

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

/// Answers 401 in a row that make a token refused.
const REFUSALS: u32 = 3;
/// The scheme that the ready header is made for.
const USUAL_SCHEME: &str = "Bearer";

/// What calls of a client to one side go out with.
pub struct FixedToken {
    /// Names this value in the store; another value has another.
    pub(super) id: String,
    pub(super) client: Arc<str>,
    pub(super) side: String,
    token: Secret<String>,
    /// Ready for the scheme that nearly all sides use.
    usual: HeaderValue,
    /// Answers 401 since the last other one.
    refusals: AtomicU32,
    /// What the store says.
    noted: AtomicBool,
    /// Whether calls of the client no longer go out with it: another value or none is in its place.
    is_gone: AtomicBool,
}

impl FixedToken {
    /// None when the stored token does not open, or no header could carry it.
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

    /// The value of the header that carries it after this scheme, marked sensitive.
    pub fn header(&self, scheme: &Scheme) -> Option<HeaderValue> {
        match scheme {
            Scheme::Word(word) if word == USUAL_SCHEME => Some(self.usual.clone()),
            scheme => carried::value(self.token.expose(), scheme),
        }
    }

    /// The token itself.
    pub fn secret(&self) -> &Secret<String> {
        &self.token
    }

    /// Whether the service seems to take it no more.
    pub fn is_refused(&self) -> bool {
        self.refusals.load(Relaxed) >= REFUSALS
    }

    /// To be told that a call with it was answered 401. Says whether the token counts as refused now.
    pub fn rejected(&self) -> bool {
        let step = |refusals: u32| (refusals < REFUSALS).then_some(refusals + 1);
        // An error means that it was refused already.
        let Ok(before) = self.refusals.fetch_update(Relaxed, Relaxed, step) else { return true };
        let is_refused = before + 1 == REFUSALS;
        if is_refused {
            tracing::error!(
                target: "switchback::token", client = %self.client, side = self.side,
                "the service refuses the token that calls go out with; give the client another"
            );
            self.show();
        }
        is_refused
    }

    /// To be told that a call with it was not refused for its token.
    pub fn worked(&self) {
        if self.refusals.load(Relaxed) > 0 && self.refusals.swap(0, Relaxed) >= REFUSALS {
            tracing::info!(target: "switchback::token", client = %self.client, side = self.side, "the token works again");
            self.show();
        }
    }

    /// Takes over what another gateway noted in the store. What this one has seen since is seen again soon enough.
    pub(super) fn adopt(&self, row: &CredentialRow) {
        let is_refused = row.refused_ms.is_some();
        if self.noted.swap(is_refused, Relaxed) != is_refused {
            self.refusals.store(if is_refused { REFUSALS } else { 0 }, Relaxed);
            self.show();
        }
    }

    /// The state, where the store does not have it yet.
    pub(super) fn to_note(&self) -> Option<bool> {
        let is_refused = self.is_refused();
        (is_refused != self.noted.load(Relaxed)).then_some(is_refused)
    }

    /// The store has this state now.
    pub(super) fn set_noted(&self, is_refused: bool) {
        self.noted.store(is_refused, Relaxed);
    }

    /// Takes it out of the metrics. Calls that are under way with it change them no more.
    pub(super) fn hide(&self) {
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
    use crate::store::Origin;

    fn row(refused_ms: Option<i64>) -> CredentialRow {
        CredentialRow {
            id: "1".to_owned(),
            side: "old".to_owned(),
            origin: Origin::Managed,
            set_ms: 0,
            refused_ms,
            token: Ok("a-token".into()),
        }
    }

    #[test]
    fn refusals_in_a_row_make_a_token_refused_and_one_success_ends_that() {
        let token = FixedToken::new(&row(None), "acme".into()).expect("a header can carry it");
        assert_eq!([token.rejected(), token.rejected()], [false, false]);
        token.worked();
        assert_eq!([token.rejected(), token.rejected(), token.rejected()], [false, false, true]);
        assert!(token.is_refused() && token.rejected(), "further ones change nothing");
        assert_eq!(token.to_note(), Some(true));
        token.set_noted(true);
        assert_eq!(token.to_note(), None);
        token.worked();
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
