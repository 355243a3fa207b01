//! What people are told about clients: plain data without secrets, for the command line, the admin port and the studio.

use crate::clock::rfc3339;
use crate::store::{ClientRow, CredentialRow, Flow, GrantState, GrantSummary};
use serde::Serialize;

/// The warning about an authorization that brought no refresh token.
pub(super) const NO_REFRESH_TOKEN: &str = "the authorization server gave no refresh token, so the client has to be connected \
    again when its access token ends; `prompt: consent` or `access_type: offline` in `oauth.authorize_parameters` usually \
    brings one";

/// A client, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientInfo {
    /// Its name.
    pub name: String,
    /// Secondary company.
    pub company: Option<String>,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// RFC 3339, UTC; when it was revoked.
    pub revoked_at: Option<String>,
    /// Whether something else than Switchback has written its row: then no token selects it.
    pub damaged: bool,
    /// Whether it came from the configuration file, which does not have it any more: its tokens select it all the same, until
    /// it is revoked.
    pub left_configuration: bool,
    /// How many tokens select it now; more than one for several sides, or during a rotation with grace.
    pub tokens: usize,
    /// The sides whose fronts those open, each once; null stands for all.
    pub token_sides: Vec<Option<String>>,
    /// The number of the write that changed it last.
    #[serde(skip)]
    pub version: i64,
    /// Its grant.
    pub grant: GrantInfo,
    /// What its calls go out with to sides that have no grants.
    pub credentials: Vec<CredentialInfo>,
}

/// A grant, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrantInfo {
    /// Where it stands.
    pub state: GrantState,
    /// Why it stands there.
    pub reason: Option<String>,
    /// Counts its token sets.
    pub generation: i64,
    /// RFC 3339, UTC; when the access token was issued.
    pub issued_at: Option<String>,
    /// RFC 3339, UTC; when it ends, where known.
    pub expires_at: Option<String>,
    /// Whether that has passed.
    pub expired: bool,
    /// What is to be expected of the grant and how to prevent it, while it still works.
    pub warning: Option<&'static str>,
}

/// What calls of a client to one side go out with, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CredentialInfo {
    /// The side that is called.
    pub side: String,
    /// Where it stands.
    pub state: CredentialState,
    /// RFC 3339, UTC; since when the service refuses it.
    pub refused_at: Option<String>,
    /// RFC 3339, UTC; when it was given.
    pub set_at: String,
}

/// Where a credential stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialState {
    /// Calls go out with it.
    Active,
    /// They do, and the service answers 401 to each: a person has to give another.
    Refused,
    /// It does not open: the row was changed, or copied from elsewhere. A person has to give another.
    Damaged,
}

impl CredentialState {
    /// The name that answers use.
    pub fn name(self) -> &'static str {
        match self {
            CredentialState::Active => "active",
            CredentialState::Refused => "refused",
            CredentialState::Damaged => "damaged",
        }
    }
}

/// A client as of `now_ms` (wall time in milliseconds since 1970).
pub(super) fn info(row: &ClientRow, grant: GrantSummary, now_ms: i64) -> ClientInfo {
    let end =
        grant.issued_ms.zip(grant.lifetime_ms).map(|(issued, lifetime)| issued.saturating_add(lifetime));
    let living = || row.tokens.iter().filter(|token| token.expires_ms.is_none_or(|end| end > now_ms));
    let mut token_sides: Vec<_> = living().map(|token| token.side.clone()).collect();
    token_sides.sort();
    token_sides.dedup();
    let is_in_use = !matches!(grant.state, GrantState::Unconnected | GrantState::Misconfigured);
    let is_for_once = grant.flow == Flow::AuthorizationCode && !grant.has_refresh && is_in_use;
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
