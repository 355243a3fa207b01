//! Reports about clients: plain data without secrets, for the command line, the admin port and the
//! studio.

use crate::clock::rfc3339;
use crate::store::{ClientRow, CredentialRow, GrantFlow, GrantState, GrantSummary};
use serde::Serialize;

/// Warning about an authorization without a refresh token.
pub(super) const NO_REFRESH_TOKEN: &str = "the authorization server gave no refresh token, so the client has to be connected \
    again when its access token ends; `prompt: consent` or `access_type: offline` in `oauth.authorize_parameters` usually \
    brings one";

/// A report about a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientInfo {
    /// Its name.
    pub name: String,
    /// Secondary company.
    pub company: Option<String>,
    /// Creation time as RFC 3339, UTC.
    pub created_at: String,
    /// Revocation time as RFC 3339, UTC.
    pub revoked_at: Option<String>,
    /// Whether another program has modified its row. No token then authenticates the client.
    pub damaged: bool,
    /// Whether it originates from the configuration file but is no longer in it. Its tokens remain
    /// valid until it is revoked.
    pub left_configuration: bool,
    /// Number of valid tokens; more than one for several sides, or during a rotation with a grace
    /// period.
    pub tokens: usize,
    /// The sides of those tokens without duplicates; null means all sides.
    pub token_sides: Vec<Option<String>>,
    /// The number of the write that changed it last.
    #[serde(skip)]
    pub version: i64,
    /// Its grant.
    pub grant: GrantInfo,
    /// Its fixed tokens for calls to sides without grants.
    pub credentials: Vec<CredentialInfo>,
}

/// A report about a grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrantInfo {
    /// The state.
    pub state: GrantState,
    /// The reason of the state.
    pub reason: Option<String>,
    /// The number of its current token set.
    pub generation: i64,
    /// Issue time of the access token as RFC 3339, UTC.
    pub issued_at: Option<String>,
    /// Expiry of the access token as RFC 3339, UTC, if known.
    pub expires_at: Option<String>,
    /// Whether the access token has expired.
    pub expired: bool,
    /// A problem that the working grant will have, and how to prevent it.
    pub warning: Option<&'static str>,
}

/// A report about a client's fixed token for one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CredentialInfo {
    /// The side of the calls.
    pub side: String,
    /// The state.
    pub state: CredentialState,
    /// Time of the refusal by the service as RFC 3339, UTC.
    pub refused_at: Option<String>,
    /// Time when the token was set, as RFC 3339, UTC.
    pub set_at: String,
}

/// State of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialState {
    /// Calls use it.
    Active,
    /// Calls use it, but the service answers 401 to each: a person has to set another.
    Refused,
    /// It cannot be decrypted because the row was modified or copied from elsewhere. A person has
    /// to set another.
    Damaged,
}

impl CredentialState {
    /// Returns the name used in responses.
    pub fn name(self) -> &'static str {
        match self {
            CredentialState::Active => "active",
            CredentialState::Refused => "refused",
            CredentialState::Damaged => "damaged",
        }
    }
}

/// Builds the report about a client as of `now_ms` (wall time in milliseconds since 1970).
pub(super) fn info(row: &ClientRow, grant: GrantSummary, now_ms: i64) -> ClientInfo {
    let end =
        grant.issued_ms.zip(grant.lifetime_ms).map(|(issued, lifetime)| issued.saturating_add(lifetime));
    let living = || row.tokens.iter().filter(|token| token.expires_ms.is_none_or(|end| end > now_ms));
    let mut token_sides: Vec<_> = living().map(|token| token.side.clone()).collect();
    token_sides.sort();
    token_sides.dedup();
    let is_in_use = !matches!(grant.state, GrantState::Unconnected | GrantState::Misconfigured);
    let is_for_once = grant.flow == GrantFlow::AuthorizationCode && !grant.has_refresh && is_in_use;
    ClientInfo {
        version: row.change,
        name: row.name.clone(),
        company: row.company.clone(),
        created_at: rfc3339(row.created_ms),
        revoked_at: row.revoked_ms.map(rfc3339),
        damaged: row.is_damaged,
        left_configuration: false,
        tokens: living().count(),
        token_sides,
        grant: GrantInfo {
            state: grant.state,
            reason: grant.reason,
            generation: grant.generation,
            issued_at: grant.issued_ms.map(rfc3339),
            expires_at: end.map(rfc3339),
            expired: end.is_some_and(|end| end <= now_ms),
            warning: is_for_once.then_some(NO_REFRESH_TOKEN),
        },
        credentials: row.credentials.iter().map(credential).collect(),
    }
}

fn credential(row: &CredentialRow) -> CredentialInfo {
    let state = match (&row.token, row.refused_ms) {
        (Err(_), _) => CredentialState::Damaged,
        (Ok(_), Some(_)) => CredentialState::Refused,
        (Ok(_), None) => CredentialState::Active,
    };
    CredentialInfo {
        side: row.side.clone(),
        state,
        refused_at: row.refused_ms.map(rfc3339),
        set_at: rfc3339(row.set_ms),
    }
}
