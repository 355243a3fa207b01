//! The status of a client, its grant and its credentials, in words and badges.

use crate::studio::words::{Tone, badge, moment_text};
use maud::{Markup, html};
use switchback_gateway::store::GrantState;
use switchback_gateway::token::{ClientInfo, CredentialInfo, CredentialState, GrantInfo};

pub(super) fn tone(client: &ClientInfo) -> (Tone, String) {
    let state = client.revoked_at.as_ref().map_or(client.grant.state.name(), |_| "revoked");
    // A client with fixed credentials needs no grant.
    let is_unused = client.grant.state == GrantState::Unconnected && !client.credentials.is_empty();
    let tone = match state {
        "active" => Tone::Good,
        "revoked" => Tone::Quiet,
        "unconnected" if is_unused => Tone::Quiet,
        "pending" => Tone::Busy,
        _ => Tone::Bad,
    };
    (tone, state.replace('_', " "))
}

/// Describes a problem of a credential. `None` if it works.
pub(in crate::studio) fn credential_trouble(credential: &CredentialInfo, now_ms: i64) -> Option<Markup> {
    match credential.state {
        CredentialState::Active => None,
        CredentialState::Refused => Some(html! {
            strong { "is rejected by the service" }
            @if let Some(at) = &credential.refused_at { " since " (moment_text(at, now_ms)) }
        }),
        CredentialState::Damaged => {
            Some(html! { strong { "does not open" } ", because its record was changed or copied" })
        }
    }
}

/// Renders the badge of a client with a row that was modified outside Switchback.
pub(super) fn damaged_badge() -> Markup {
    html! { span title="Its record was changed outside Switchback; its tokens are invalid" { (badge(Tone::Bad, "damaged")) } }
}

/// Renders the badge of a client that was removed from the configuration.
pub(super) fn left_badge() -> Markup {
    html! { span title="Its tokens are valid until it is revoked" { (badge(Tone::Warn, "not in the configuration")) } }
}

/// Describes the error of a refresh with its remedy, followed by the authorization server's error
/// code.
pub(in crate::studio) fn reason_words(reason: &str, state: GrantState) -> Markup {
    let words = match reason {
        // A grant of client credentials has no owner.
        "invalid_grant" if state == GrantState::Misconfigured => {
            "the authorization server refuses the application: an operator mends `client_id`, `client_secret`, or the application there"
        }
        "invalid_grant" => "its owner ended the authorization, or it expired: send a link to connect anew",
        "invalid_client" | "unauthorized_client" => {
            "the authorization server does not know the application, or its secret: an operator mends `client_id` and `client_secret`"
        }
        "invalid_scope" => {
            "the authorization server does not give what is asked for: an operator mends `oauth.scopes`"
        }
        "invalid_request" | "unsupported_grant_type" => {
            "the authorization server does not understand how it is asked: an operator mends `oauth`"
        }
        "revoked" => "it was revoked here",
        "refresh_requested" => "an operator requested new tokens; the gateway requests them within a second",
        other if other.starts_with("status_") => {
            "the authorization server refuses without a reason; requests are repeated with growing pauses"
        }
        _ => "",
    };
    html! { @if words.is_empty() { (reason) } @else { (words) " " code { (reason) } } }
}

/// Renders the expiry of the access token.
pub(super) fn token_end(grant: &GrantInfo, now_ms: i64) -> Markup {
    html! {
        @match &grant.expires_at {
            Some(end) if grant.expired => { "ended " (moment_text(end, now_ms)) }
            Some(end) => (moment_text(end, now_ms)),
            None => span.soft { "unknown" },
        }
    }
}

#[cfg(test)]
pub(in crate::studio) mod tests {
    use super::*;

    pub(in crate::studio) const NOON: &str = "1970-01-01T12:00:00Z";

    /// A client without a grant or a credential.
    pub(in crate::studio) fn client(name: &str) -> ClientInfo {
        ClientInfo {
            name: name.to_owned(),
            company: None,
            created_at: NOON.to_owned(),
            revoked_at: None,
            damaged: false,
            left_configuration: false,
            tokens: 1,
            token_sides: vec![None],
            version: 1,
            grant: GrantInfo {
                state: GrantState::Unconnected,
                reason: None,
                generation: 0,
                issued_at: None,
                expires_at: None,
                expired: false,
                warning: None,
            },
            credentials: Vec::new(),
        }
    }

    /// The text of markup, its tags left out.
    fn text(markup: &Markup) -> String {
        let pieces = markup.0.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
        pieces.collect()
    }

    #[test]
    fn an_access_token_ends_has_ended_or_its_end_is_unknown() {
        let grant = |expires_at: Option<&str>, expired| GrantInfo {
            expires_at: expires_at.map(str::to_owned),
            expired,
            ..client("acme").grant
        };
        let hours = |hours: i64| hours * 3_600_000;
        for (grant, now_ms, expected) in [
            (grant(None, false), hours(11), "unknown"),
            (grant(Some(NOON), false), hours(11), "in 1 h"),
            (grant(Some(NOON), true), hours(14), "ended 2 h ago"),
        ] {
            assert_eq!(text(&token_end(&grant, now_ms)), expected);
        }
    }
}
