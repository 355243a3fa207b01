//! The status of a client, its grant and its credentials, in words and badges.

use crate::studio::words::{Tone, badge, moment_text};
use maud::{Markup, html};
use switchback_gateway::store::GrantState;
use switchback_gateway::token::{ClientInfo, GrantInfo};

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

/// Renders the badge of a client with a row that was modified outside Switchback.
pub(super) fn damaged_badge() -> Markup {
    html! { span title="Its record was changed outside Switchback; its tokens are invalid" { (badge(Tone::Bad, "damaged")) } }
}

/// Renders the badge of a client that was removed from the configuration.
pub(super) fn left_badge() -> Markup {
    html! { span title="Its tokens are valid until it is revoked" { (badge(Tone::Warn, "not in the configuration")) } }
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
mod tests {
    use super::*;
    use crate::operate::attention::tests::{NOON, unconnected as client};

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
