//! The page of one client: its grant, its calls, and the end of the old version for it.

use super::brownouts::brownouts;
use super::fields::{read_moment, side};
use super::status::{damaged_badge, left_badge, token_end, tone};
use super::usage::calls;
use crate::admin::{AdminResponse, cookie, is_behind_tls, write_letter};
use crate::operate::Refusal;
use crate::operate::attention::{credential_trouble, grant_reason};
use crate::studio::PageContext;
use crate::studio::fields::{FormFields, percent_decode, percent_encode};
use crate::studio::kept;
use crate::studio::layout::{Page, Tab, unread};
use crate::studio::words::{Tone, badge, count_noun, moment, moment_text, sentence, unix_ms};
use maud::{Markup, html};
use std::collections::BTreeSet;
use switchback_gateway::clock::rfc3339;
use switchback_gateway::retire::ClientSunset;
use switchback_gateway::store::GrantState;
use switchback_gateway::token::{ClientInfo, ConnectLink, Revocation, TokenError};

pub(super) async fn one(visit: &PageContext<'_>, name: &str, told: Option<Markup>) -> AdminResponse {
    let clients = visit.clients().await;
    let found = clients.rows().iter().find(|client| client.name == name);
    // While the store is unavailable, a missing client may only be unread, which must not look like a
    // deletion.
    if found.is_none() && clients.failing_since.is_none() {
        return visit.not_found();
    }
    let usage = visit.usage().await;
    let called = usage.rows();
    let letter = write_letter(visit.parts, name, called).await.unwrap_or_default();
    let body = html! {
        p { a href="/clients" { "All clients" } }
        div.page-head { h1 { (name) } @if let Some(client) = found { @let (tone, state) = tone(client); (badge(tone, &state)) } }
        (visit.staleness(&clients))
        @if let Some(told) = &told { (told) }
        @if let Some(link) = new_link(visit) { (link) }
        @if let Some(client) = found {
            div.grid {
                section.panel.w6 aria-labelledby="grant-title" { h2 #grant-title { "Grant" } (grant(visit, client)) }
                section.panel.w6 aria-labelledby="end-title" { h2 #end-title { "The end of the old version" } (ending(visit, client)) }
            }
        }
        section.panel #calls aria-labelledby="calls-title" {
            header { h2 #calls-title { "Current calls" } a.aside href={ "/clients?show=after-sunset&q=" (percent_encode(name)) } { "Losses after the sunset" } a href={ "/requests?client=" (percent_encode(name)) } { "Recent requests" } }
            @if usage.value.is_none() { (unread()) } @else { (calls(visit, name, called)) }
        }
        (brownouts(visit, Some(name)))
        section.panel #letter aria-labelledby="letter-title" {
            header { h2 #letter-title { "To its owner" } span.soft { "the calls to change, as curl; values are of the pack's examples" } }
            @if usage.value.is_none() { (unread()) } @else if letter.is_empty() { p.soft { "It makes no call that must change." } } @else {
                button.small type="button" data-copy="letter-text" { "Copy the text" }
                pre.letter #letter-text tabindex="0" aria-label="Text for the owner" { (letter) }
            }
        }
    };
    // An update must not remove a notice that is displayed only once.
    let page = match told {
        None => Page::live(Tab::Clients, name, body),
        Some(_) => Page::still(Tab::Clients, name, body),
    };
    visit.page(page)
}

fn grant(visit: &PageContext<'_>, client: &ClientInfo) -> Markup {
    let act = |verb: &str, words: &str, class: &str| {
        html! {
            form method="post" action={ "/clients/" (percent_encode(&client.name)) "/" (verb) } {
                (visit.form_token())
                input type="hidden" name="seen" value=(client.version);
                fieldset.bare disabled[visit.store_away.is_some()] { button.(class) type="submit" { (words) } }
            }
        }
    };
    let grant = &client.grant;
    html! {
        dl.facts {
            dt { "State" } dd { @let (tone, state) = tone(client); (badge(tone, &state)) }
            @if let Some(reason) = &grant.reason { dt { "Why" } dd { (sentence(&grant_reason(reason, grant.state), visit.now_ms)) } }
            @if client.damaged { dt { "Record" } dd { (damaged_badge()) " It was changed outside Switchback: no token selects this client." } }
            @if client.left_configuration { dt { "Configuration" } dd { (left_badge()) " Its tokens are valid until it is revoked." } }
            @for credential in &client.credentials {
                dt { "Credential for " (credential.side) }
                dd {
                    @match credential_trouble(credential) { Some(trouble) => (sentence(&trouble, visit.now_ms)), None => "works" }
                    ", set " (moment_text(&credential.set_at, visit.now_ms))
                }
            }
            dt { "Last refresh" } dd { @match &grant.issued_at { Some(at) => { (moment_text(at, visit.now_ms)) ", " (grant.generation) ". token set" } None => span.soft { "never" } } }
            dt { "Access token ends" } dd { (token_end(grant, visit.now_ms)) }
            @if let Some(warning) = grant.warning { dt { "Warning" } dd #no-refresh-token { (warning) } }
            dt { "Company" } dd { (client.company.as_deref().unwrap_or("main")) }
            dt { "Enrolled" } dd { (moment_text(&client.created_at, visit.now_ms)) }
            dt { "Tokens" } dd { (client.tokens) }
            @if let Some(at) = &client.revoked_at { dt { "Revoked" } dd { (moment_text(at, visit.now_ms)) } }
        }
        @if visit.may_operate() {
            @if visit.store_away.is_some() { (visit.with_store(&html! {})) }
            @if client.revoked_at.is_some() {
                p.hint { "Its configured tokens are valid after the next reload; other tokens need a rotation, and its grant a new connection." }
                div.actions { (act("restore", "Restore", "primary")) }
            } @else {
                div.actions {
                    (act("connect", if grant.state == GrantState::Active { "Create a link to reconnect" } else { "Create a link to connect" }, if grant.state == GrantState::Active { "small" } else { "primary" }))
                }
                @if grant.state != GrantState::Unconnected {
                    details {
                        summary { "Fetch new tokens" }
                        p.hint { "They are requested at once, even if the grant has ended or waits after a failure." }
                        (act("retry", "Fetch now", "small"))
                    }
                }
                details {
                    summary { "Rotate its token" }
                    p.hint { "Generates a new token, shown once. The current token becomes invalid at once." }
                    (act("rotate", "Rotate", "danger"))
                }
                details {
                    summary { "Revoke it" }
                    p.hint { "Its tokens become invalid; its grant, credentials and archives are erased, and the tokens of its grant are revoked at the authorization server." }
                    (act("revoke", "Revoke", "danger"))
                }
            }
        }
    }
}

/// The cookie that carries a new authorization link to the client's page. It is bound to the
/// session by the form token, works at every replica, and expires with the link.
const LINK_COOKIE: &str = "switchback_link";

pub(super) fn link_cookie(visit: &PageContext<'_>, link: &ConnectLink) -> String {
    let session = visit.visitor.session.as_ref();
    let proof = session.map(|session| visit.studio.guard.form_token(session)).unwrap_or_default();
    let expires_ms = unix_ms(&link.expires_at).unwrap_or(visit.now_ms);
    let seconds = (expires_ms - visit.now_ms).max(0) / 1000;
    // Browsers drop a `Secure` cookie that arrives without TLS, in some cases even on loopback.
    let secure = if is_behind_tls(visit.headers) { "; Secure" } else { "" };
    format!(
        "{LINK_COOKIE}={proof}:{expires_ms}:{}; Path=/clients/{}; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}",
        percent_encode(&link.url),
        percent_encode(&link.client)
    )
}

/// Renders the link from the cookie, if it belongs to this session and client and has not expired.
fn new_link(visit: &PageContext<'_>) -> Option<Markup> {
    let session = visit.visitor.session.as_ref()?;
    let mut parts = cookie(visit.headers, LINK_COOKIE)?.splitn(3, ':');
    let (proof, expires_ms, url) =
        (parts.next()?, parts.next()?.parse::<i64>().ok()?, percent_decode(parts.next()?));
    // A cookie of an earlier session in the same browser must not show its link to another operator.
    let is_of_session = visit.studio.guard.is_form_token(session, proof);
    (is_of_session && expires_ms > visit.now_ms).then(|| {
        html! {
            div.notice.busy #connect-link role="status" {
                p { strong { "Send this link to the owner." } " Single use, expires " (moment(expires_ms, visit.now_ms)) "." }
                p.connect-link { code #connect-url { (url) } }
                button type="button" data-copy="connect-url" { "Copy the link" }
            }
        }
    })
}

pub(super) fn new_token(token: &str) -> Markup {
    html! {
        div.notice.warn #new-token role="status" {
            p { strong { "The new token, shown once." } " The previous link is invalid." }
            p.connect-link { code #token-text { (token) } }
            button type="button" data-copy="token-text" { "Copy the token" }
        }
    }
}

/// Renders the error of a failed refresh.
pub(super) fn no_token(error: &TokenError) -> Markup {
    html! {
        div.notice.bad #not-refreshed role="alert" { p { strong { "No new token." } " " (error) "." } }
    }
}

/// Renders a notice if the authorization server may still accept tokens of the revoked client.
pub(super) fn still_valid(at_server: &Revocation) -> Option<Markup> {
    let is_done = matches!(at_server, Revocation::NoTokens | Revocation::Revoked);
    (!is_done).then(|| {
        html! {
            div.notice.warn #at-server role="status" { p { strong { "The client is revoked here." } " " (at_server) } }
        }
    })
}

fn ending(visit: &PageContext<'_>, client: &ClientInfo) -> Markup {
    let ends = visit.parts.retirement.sunsets();
    let ends: Vec<&ClientSunset> = ends.iter().filter(|end| end.client == client.name).collect();
    let sides = visit.sides();
    html! {
        @if ends.iter().all(|end| end.at_ms.is_none()) { p { "It has no date of its own." } }
        @for end in &ends {
            @if let Some(at) = end.at_ms {
                p #sunset {
                    (end.side) " ends " (moment(at, visit.now_ms)) ", set by the " (end.by)
                    @if at <= visit.now_ms { ": its calls are answered 410 " (badge(Tone::Bad, "refused")) }
                    @else if end.announce { "; its answers say so in " code { "Sunset" } "." } @else { ", in silence." }
                }
            }
        }
        @if visit.may_operate() { (visit.with_store(&new_sunset(visit, client, &ends, &sides))) }
    }
}

fn new_sunset(
    visit: &PageContext<'_>,
    client: &ClientInfo,
    ends: &[&ClientSunset],
    sides: &BTreeSet<String>,
) -> Markup {
    html! {
            form.stack method="post" action={ "/clients/" (percent_encode(&client.name)) "/sunset" } {
                (visit.form_token())
                // With several sides each has its own version, and the selected side is unknown
                // here. Without `seen`, the last form wins.
                @if sides.len() == 1 { input type="hidden" name="seen" value=(ends.first().map_or(0, |end| end.set_ms)); }
                div.row {
                    @if sides.len() > 1 { label { "Side" select name="side" { @for side in sides { option { (side) } } } } }
                    label { "Rejected with 410 from (UTC)" input type="text" name="at" placeholder="2026-12-31" pattern="\\d{4}-\\d{2}-\\d{2}(T.+)?" value=(ends.iter().find_map(|end| end.at_ms).map(rfc3339).unwrap_or_default()); }
                }
                label.check { input type="checkbox" name="announce" checked; span { "Announce it in answers until then" } }
                div.actions {
                    button type="submit" { "Set the date" }
                    @if ends.iter().any(|end| end.at_ms.is_some()) { button.plain type="submit" name="never" value="1" { "Remove the sunset date" } }
                }
            }
    }
}

pub(super) async fn sunset(visit: &PageContext<'_>, name: &str, form: &FormFields) -> Result<(), Refusal> {
    let at = match (form.has("never"), form.get("at")) {
        (true, _) => None,
        (false, text) => Some(read_moment("the date", text)?),
    };
    let side = side(form);
    let (side, seen) = (side.as_deref(), form.get("seen").parse().ok());
    let retirement = visit.parts.retirement.by(visit.who());
    let set = retirement.set_sunset(name, side, at, None, form.has("announce"), seen).await;
    Ok(set.map(drop)?)
}

pub(super) async fn second_sunset(visit: &PageContext<'_>, name: &str, form: &FormFields) -> AdminResponse {
    let ends = visit.parts.retirement.sunsets();
    let end = ends.iter().find(|end| end.client == name && side(form).is_none_or(|side| side == end.side));
    let now = html! {
        @match end.and_then(|end| Some((end, end.at_ms?))) {
            Some((end, at)) => { "For " (name) " " (end.side) " ends " (moment(at, visit.now_ms)) " (" (rfc3339(at)) ") now." },
            None => { "For " (name) " it has no sunset date now." },
        }
    };
    let fresh = [("seen", end.map_or(0, |end| end.set_ms).to_string())];
    kept::second(visit, Tab::Clients, &[name], &now, form, &fresh).await
}

pub(super) async fn second_of_client(
    visit: &PageContext<'_>,
    client: &ClientInfo,
    form: &FormFields,
) -> AdminResponse {
    let (tone, state) = tone(client);
    let now = html! { strong { (client.name) } " is " (badge(tone, &state)) " now, with " (count_noun(client.tokens as u64, "token")) "." };
    let fresh = [("seen", client.version.to_string())];
    // The second form has the present state, so that confirming it again succeeds unless it changed once
    // more.
    kept::second(visit, Tab::Clients, &[&client.name], &now, form, &fresh).await
}
