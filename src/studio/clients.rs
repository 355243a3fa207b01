//! The pages of clients: grants and their repair, calls by client, brownouts, and the sunset of
//! each client.

mod brownouts;
mod list;
mod losses;
mod one;
mod usage;

pub(super) use self::usage::{COUNTED_SINCE, callers};

use self::brownouts::{add_brownout, asked_for_brownout, second_brownout};
use self::list::list;
use self::losses::losses;
use self::one::{
    link_cookie, new_token, no_token, one, second_of_client, second_sunset, still_valid, sunset,
};
use super::PageContext;
use super::fields::{FormFields, own_path, percent_encode};
use super::kept;
use super::words::{Tone, badge, moment_text};
use crate::admin::AdminResponse;
use crate::operate::{self, Refusal};
use maud::{Markup, html};
use switchback_gateway::retire::RetireError;
use switchback_gateway::store::GrantState;
use switchback_gateway::token::{ClientInfo, CredentialInfo, CredentialState, GrantInfo, NewToken};

/// Clients per page of the list.
const OF_PAGE: usize = 100;

pub(super) async fn look(visit: &PageContext<'_>, rest: &[&str]) -> AdminResponse {
    match rest {
        [] if visit.query.get("show") == "after-sunset" => losses(visit).await,
        [] => list(visit, None).await,
        ["brownouts", "new"] => asked_for_brownout(visit).await,
        [name] => one(visit, name, None).await,
        _ => visit.not_found(),
    }
}

pub(super) async fn form(visit: &PageContext<'_>, rest: &[&str], form: &FormFields) -> AdminResponse {
    let parts = visit.parts;
    let (registry, retirement) = (&parts.registry.by(visit.who()), &parts.retirement.by(visit.who()));
    // A form of an outdated page must not undo the change of another operator.
    if let [name, "connect" | "rotate" | "retry" | "restore" | "revoke"] = rest
        && let Ok(seen) = form.get("seen").parse::<i64>()
        && let Ok(client) = registry.get(name).await
        && client.version != seen
    {
        return second_of_client(visit, &client, form).await;
    }
    let outcome: Result<Option<Markup>, Refusal> = match rest {
        ["brownouts"] => match add_brownout(visit, form).await {
            Err(refusal) if refusal.is_outdated() => return second_brownout(visit, form).await,
            outcome => outcome.map(|()| None),
        },
        ["brownouts", id, "remove"] => match retirement.remove(id).await {
            Err(RetireError::NoSuchBrownout(_)) if form.has("seen") => {
                return second_brownout(visit, form).await;
            }
            outcome => outcome.map(|()| None).map_err(Refusal::from),
        },
        [name, "sunset"] => match sunset(visit, name, form).await {
            Err(refusal) if refusal.is_outdated() => return second_sunset(visit, name, form).await,
            outcome => outcome.map(|()| None),
        },
        [name, "connect"] => match registry.connect(name, None).await {
            Ok(link) => {
                visit.studio.outdate();
                // Redirect: the client's page displays the link and keeps updating.
                return AdminResponse::see(&format!("/clients/{}", percent_encode(name)))
                    .cookie(&link_cookie(visit, &link));
            }
            Err(error) => Err(error.into()),
        },
        [name, "rotate"] => {
            let rotated = registry.rotate(name, NewToken { side: side(form), token: None }, None).await;
            rotated.map(|added| added.token.map(|token| new_token(token.expose()))).map_err(Refusal::from)
        }
        [name, "restore"] => registry.restore(name).await.map(|_| None).map_err(Refusal::from),
        [name, "retry"] => {
            let outcome = operate::retry_grant(registry, &parts.tokens, name).await;
            outcome.map(|outcome| outcome.err().map(|error| no_token(&error))).map_err(Refusal::from)
        }
        [name, "revoke"] => {
            let revoked = registry.revoke(name).await;
            revoked.map(|revoked| still_valid(&revoked.at_server)).map_err(Refusal::from)
        }
        _ => return visit.not_found(),
    };
    visit.studio.outdate();
    operate::apply_clients(&parts.tokens).await;
    let is_of_client = !matches!(rest, ["brownouts", ..]);
    let told = match outcome {
        Ok(None) => {
            return AdminResponse::see(&match rest {
                ["brownouts", ..] => form_back(form),
                [name, ..] => format!("/clients/{}", percent_encode(name)),
                [] => "/clients".to_owned(),
            });
        }
        Ok(Some(told)) => told,
        Err(error) => {
            let is_written = matches!(rest, ["brownouts"] | [_, "sunset"]);
            html! {
                div.notice.bad #refused role="alert" { p { strong { "Nothing was changed." } " " (error) } }
                @if is_written { section.panel { (kept::resubmit_form(visit, form, &[])) } }
            }
        }
    };
    match rest {
        [name, ..] if is_of_client => one(visit, name, Some(told)).await,
        _ => list(visit, Some(told)).await,
    }
}

/// Returns the page that a form was sent from: the page that it names, the client's page, or the
/// list.
fn form_back(form: &FormFields) -> String {
    match (form.get("to"), form.get("of")) {
        ("", "") => "/clients".to_owned(),
        ("", name) => format!("/clients/{}", percent_encode(name)),
        (path, _) => own_path(path).to_owned(),
    }
}

fn side(form: &FormFields) -> Option<String> {
    Some(form.get("side").to_owned()).filter(|side| !side.is_empty())
}

/// Parses the value of a date field (`2026-12-31`, or with a time in UTC), or an RFC 3339 moment.
fn read_moment(name: &str, text: &str) -> Result<i64, Refusal> {
    let text = if text.len() == 16 { format!("{text}:00Z") } else { text.to_owned() };
    operate::moment(name, &text)
}

fn tone(client: &ClientInfo) -> (Tone, String) {
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
pub(super) fn credential_trouble(credential: &CredentialInfo, now_ms: i64) -> Option<Markup> {
    match credential.state {
        CredentialState::Active => None,
        CredentialState::Refused => Some(html! {
            strong { "is refused by the service" }
            @if let Some(at) = &credential.refused_at { " since " (moment_text(at, now_ms)) }
        }),
        CredentialState::Damaged => {
            Some(html! { strong { "does not open" } ", because its record was changed or copied" })
        }
    }
}

/// Renders the badge of a client with a row that was modified outside Switchback.
fn damaged_badge() -> Markup {
    html! { span title="Its record was changed outside Switchback: no token selects it" { (badge(Tone::Bad, "damaged")) } }
}

/// Renders the badge of a client that was removed from the configuration.
fn left_badge() -> Markup {
    html! { span title="Its tokens select it until it is revoked" { (badge(Tone::Warn, "not in the configuration")) } }
}

/// Describes the error of a refresh with its remedy, followed by the authorization server's error
/// code.
pub(super) fn reason_words(reason: &str, state: GrantState) -> Markup {
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
        "refresh_requested" => "an operator requested new tokens; the gateway fetches them within a second",
        other if other.starts_with("status_") => {
            "the authorization server refuses without a reason; requests are repeated with growing pauses"
        }
        _ => "",
    };
    html! { @if words.is_empty() { (reason) } @else { (words) " " code { (reason) } } }
}

/// Renders the expiry of the access token.
fn token_end(grant: &GrantInfo, now_ms: i64) -> Markup {
    html! {
        @match &grant.expires_at {
            Some(end) if grant.expired => { "ended " (moment_text(end, now_ms)) }
            Some(end) => (moment_text(end, now_ms)),
            None => span.soft { "unknown" },
        }
    }
}

/// Most clients in a drop-down list; beyond that, a text field is used.
const LISTED_MAX: usize = 200;

/// Renders a field for a client's name: a drop-down list, or a text field if there are too many.
pub(super) fn client_field(
    visit: &PageContext<'_>,
    words: &str,
    name: &str,
    none: &str,
    chosen: &str,
) -> Markup {
    let clients = visit.parts.tokens.clients().all();
    html! {
        label { (words)
            @if clients.len() > LISTED_MAX {
                input type="text" name=(name) value=(chosen) placeholder=(none) spellcheck="false" autocomplete="off";
            } @else {
                select name=(name) {
                    option value="" { (none) }
                    @for client in &clients { option selected[*client.name == *chosen] { (client.name) } }
                }
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
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
