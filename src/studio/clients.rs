//! The pages of clients: grants and their repair, calls by client, brownouts, and the sunset of
//! each client.

use super::PageContext;
use super::fields::{FormFields, own_path, percent_decode, percent_encode};
use super::kept;
use super::layout::{Page, Tab, empty, pager, pager_of, unread};
use super::route::tone as verdict_tone;
use super::seen::Snapshot;
use super::traffic::requests_of;
use super::words::{Tone, badge, count, count_noun, moment, moment_text, operation, unix_ms};
use crate::admin::{AdminResponse, after_sunset_rows, cookie, is_behind_tls, write_letter};
use crate::after_sunset::AfterSunset;
use crate::operate::{self, Refusal};
use http::StatusCode;
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};
use switchback_gateway::clock::rfc3339;
use switchback_gateway::outcome::{OUTCOMES, Outcome};
use switchback_gateway::retire::{Brownout, ClientSunset, NewBrownout, RetireError, UsageInfo};
use switchback_gateway::store::GrantState;
use switchback_gateway::token::{
    ClientInfo, ConnectLink, CredentialInfo, CredentialState, GrantInfo, NewToken, Revocation, TokenError,
};

/// Clients per page of the list.
const OF_PAGE: usize = 100;
/// What the counts of calls cover.
pub(super) const COUNTED_SINCE: &str =
    "over all replicas, since calls were first counted; a count is dropped 400 days after its last call";
/// Columns of the usage matrix, most called operations first.
const COLUMNS_MAX: usize = 12;
/// A filter of the usage matrix in addition to outcomes: calls to unknown operations.
const UNKNOWN: &str = "unknown";

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

/// The cookie that carries a new authorization link to the client's page. It is bound to the
/// session by the form token, works at every replica, and expires with the link.
const LINK_COOKIE: &str = "switchback_link";

fn link_cookie(visit: &PageContext<'_>, link: &ConnectLink) -> String {
    let session = visit.visitor.session.as_ref();
    let proof = session.map(|session| visit.studio.guard.form_token(session)).unwrap_or_default();
    let expires_ms = unix_ms(&link.expires_at).unwrap_or(visit.now_ms);
    let seconds = (expires_ms - visit.now_ms).max(0) / 1000;
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

fn new_token(token: &str) -> Markup {
    html! {
        div.notice.warn #new-token role="status" {
            p { strong { "The new token, shown this once." } " The one before it has ended." }
            p.connect-link { code #token-text { (token) } }
            button type="button" data-copy="token-text" { "Copy the token" }
        }
    }
}

/// Renders the error of a failed refresh.
fn no_token(error: &TokenError) -> Markup {
    html! {
        div.notice.bad #not-refreshed role="alert" { p { strong { "No new token." } " " (error) "." } }
    }
}

/// Renders a notice if the authorization server may still accept tokens of the revoked client.
fn still_valid(at_server: &Revocation) -> Option<Markup> {
    let is_done = matches!(at_server, Revocation::NoTokens | Revocation::Revoked);
    (!is_done).then(|| {
        html! {
            div.notice.warn #at-server role="status" { p { strong { "The client is revoked here." } " " (at_server) } }
        }
    })
}

/// Parses the value of a date field (`2026-12-31`, or with a time in UTC), or an RFC 3339 moment.
fn read_moment(name: &str, text: &str) -> Result<i64, Refusal> {
    let text = if text.len() == 16 { format!("{text}:00Z") } else { text.to_owned() };
    Ok(operate::moment(name, &text)?.unix_ms())
}

/// Responds to a form that was rendered before another change of the brownouts.
async fn second_brownout(visit: &PageContext<'_>, form: &FormFields) -> AdminResponse {
    let all = visit.parts.retirement.brownouts();
    let open = all.iter().filter(|one| one.until_ms > visit.now_ms).count();
    let now = html! { "Planned or open now: " (count_noun(open as u64, "brownout")) ", to be seen among the " a href="/clients#brownouts" { "clients" } "." };
    let fresh = [("seen", brownouts_seen(visit))];
    kept::second(visit, Tab::Clients, &["brownout set", "brownout removed"], &now, form, &fresh).await
}

async fn second_sunset(visit: &PageContext<'_>, name: &str, form: &FormFields) -> AdminResponse {
    let ends = visit.parts.retirement.sunsets();
    let end = ends.iter().find(|end| end.client == name && side(form).is_none_or(|side| side == end.side));
    let now = html! {
        @match end.and_then(|end| Some((end, end.at_ms?))) {
            Some((end, at)) => { "For " (name) " " (end.side) " ends " (moment(at, visit.now_ms)) " (" (rfc3339(at)) ") now." },
            None => { "For " (name) " there is no end now." },
        }
    };
    let fresh = [("seen", end.map_or(0, |end| end.set_ms).to_string())];
    kept::second(visit, Tab::Clients, &[name], &now, form, &fresh).await
}

async fn second_of_client(visit: &PageContext<'_>, client: &ClientInfo, form: &FormFields) -> AdminResponse {
    let (tone, state) = tone(client);
    let now = html! { strong { (client.name) } " is " (badge(tone, &state)) " now, with " (count_noun(client.tokens as u64, "token")) "." };
    let fresh = [("seen", client.version.to_string())];
    kept::second(visit, Tab::Clients, &[&client.name], &now, form, &fresh).await
}

/// Returns the ids of the removable brownouts, which a form records as the state that it was
/// rendered from.
fn brownouts_seen(visit: &PageContext<'_>) -> String {
    let all = visit.parts.retirement.brownouts();
    let ids = all.iter().filter(|one| one.by != "configuration").map(|one| one.id.as_str());
    ids.collect::<Vec<_>>().join(" ")
}

/// The form value for all operations or all clients. Neither is preselected.
const ALL: &str = "*";
/// The word to type to confirm a brownout of all calls.
const EVERYTHING: &str = "everything";

/// Parses the brownout of a form. `everything` is set only if the confirmation was typed.
fn parse_brownout(visit: &PageContext<'_>, form: &FormFields) -> Result<NewBrownout, Refusal> {
    let from = match form.get("from") {
        "" => visit.now_ms,
        text => read_moment("from", text)?,
    };
    let invalid = |text: &str| Refusal::Invalid(text.to_owned());
    let minutes: i64 =
        form.get("minutes").parse().map_err(|_| invalid("a brownout lasts a number of minutes"))?;
    let names = |name: &str, things: &str| -> Result<Vec<String>, Refusal> {
        let chosen = form.all().filter(|(found, value)| *found == name && !value.is_empty());
        let chosen: Vec<&str> = chosen.map(|(_, value)| value).collect();
        match chosen.as_slice() {
            [] => Err(Refusal::Invalid(format!("choose the {things} that it is for"))),
            [ALL] => Ok(Vec::new()),
            names => Ok(names.iter().map(|name| (*name).to_owned()).collect()),
        }
    };
    let (operations, clients) = (names("operation", "operations")?, names("client", "clients")?);
    let is_for_all = operations.is_empty() && clients.is_empty();
    Ok(NewBrownout {
        side: side(form),
        operations,
        clients,
        everything: is_for_all && form.get("confirm").trim() == EVERYTHING,
        from_ms: from,
        until_ms: from.saturating_add(minutes.saturating_mul(60_000)),
        reason: form.get("reason").to_owned(),
        seen: form.has("seen").then(|| form.get("seen").split_whitespace().map(str::to_owned).collect()),
    })
}

async fn add_brownout(visit: &PageContext<'_>, form: &FormFields) -> Result<(), Refusal> {
    let new = parse_brownout(visit, form)?;
    Ok(visit.parts.retirement.by(visit.who()).add(new).await.map(drop)?)
}

/// Renders the confirmation page of a brownout, with the calls that it would reject.
async fn asked_for_brownout(visit: &PageContext<'_>) -> AdminResponse {
    if !visit.may_operate() {
        let words = html! { p { "Sign in with the token that may change things." } };
        return visit.page(Page::notice(StatusCode::FORBIDDEN, "Nothing was changed", words));
    }
    let new = match parse_brownout(visit, &visit.query) {
        Ok(new) => new,
        Err(refusal) => return brownout_refused(visit, &refusal),
    };
    let usage = visit.usage().await;
    let known = usage.value.clone();
    let (retirement, asked) = (visit.parts.retirement.clone(), new.clone());
    let preview = async move {
        let usage = known.as_deref().map_or(&[][..], Vec::as_slice);
        Ok::<_, RetireError>(match retirement.preview(&asked, usage).await {
            Err(RetireError::Store(error)) => return Err(RetireError::Store(error)),
            outcome => outcome.map_err(Refusal::from),
        })
    };
    let reach = match visit.in_time(preview).await {
        Some(Err(refusal)) => return brownout_refused(visit, &refusal),
        Some(Ok(reach)) if usage.value.is_some() => Some(reach),
        _ => None,
    };
    let names =
        |names: &[String], all: &str| if names.is_empty() { all.to_owned() } else { names.join(", ") };
    let query = &visit.query;
    let body = html! {
        div.page-head {
            p.crumbs { a href=(form_back(query)) { "Clients" } }
            h1 { "Set this brownout?" }
        }
        section.panel.confirm {
            dl.facts {
                dt { "Operations" } dd { (names(&new.operations, "all calls")) }
                dt { "Clients" } dd { (names(&new.clients, "all clients")) }
                dt { "From" } dd { (moment(new.from_ms, visit.now_ms)) }
                dt { "Until" } dd { (moment(new.until_ms, visit.now_ms)) }
                dt { "Answer" } dd { "503 with Retry-After: " @if new.reason.is_empty() { "the pack's text" } @else { (new.reason) } }
                dt { "Reach" } dd #reach { @match &reach { Some(reach) => (reach), None => (unread()) } }
                @if new.clients.is_empty() {
                    dt { "Last hour" } dd #last-hour { (count_noun(requests_of_the_hour(visit, &new), "call")) " on all replicas, without those that were rejected as retired or by a brownout" }
                }
            }
            form.stack method="post" action="/clients/brownouts" {
                (visit.form_token())
                @for (name, value) in query.all().filter(|(name, _)| *name != "confirm") {
                    input type="hidden" name=(name) value=(value);
                }
                @if new.is_for_all() {
                    p.notice.bad role="alert" { strong { "This turns away every call of every client." } }
                    label { "Type " (EVERYTHING) " to confirm"
                        input #confirm type="text" name="confirm" required pattern=(EVERYTHING) autocomplete="off" spellcheck="false";
                    }
                }
                (visit.with_store(&html! { div.actions {
                    button.danger type="submit" { "Set the brownout" }
                    a.button href=(form_back(query)) { "Cancel" }
                } }))
            }
        }
    };
    visit.page(Page::still(Tab::Clients, "Set this brownout?", body))
}

fn brownout_refused(visit: &PageContext<'_>, refusal: &Refusal) -> AdminResponse {
    let words = html! {
        p { (refusal) "." }
        p { a.button href=(form_back(&visit.query)) { "Back" } }
    };
    visit.page(Page::notice(StatusCode::UNPROCESSABLE_ENTITY, "Nothing was changed", words))
}

/// Returns the number of requests in the last hour that a brownout for all clients would have
/// rejected. Excludes those that were rejected anyway. Without a side, all spoken sides count.
fn requests_of_the_hour(visit: &PageContext<'_>, new: &NewBrownout) -> u64 {
    let phases = visit.parts.phases.list();
    let sides: BTreeSet<&str> = phases.iter().map(|info| info.side.as_str()).collect();
    let sides = sides.into_iter().filter(|side| new.side.as_ref().is_none_or(|wanted| wanted == side));
    sides.map(|side| rejectable(visit.studio.traffic.outcomes_of_side(side, &new.operations))).sum()
}

/// Returns the number of calls that were not rejected by a brownout or a sunset.
fn rejectable(mut outcomes: [u64; OUTCOMES.len()]) -> u64 {
    outcomes[Outcome::Brownout as usize] = 0;
    outcomes[Outcome::Retired as usize] = 0;
    requests_of(&outcomes)
}

async fn sunset(visit: &PageContext<'_>, name: &str, form: &FormFields) -> Result<(), Refusal> {
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

async fn list(visit: &PageContext<'_>, told: Option<Markup>) -> AdminResponse {
    let clients = visit.clients().await;
    let usage = visit.usage().await;
    let status = if told.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    let body = html! {
        div.page-head {
            h1 { "Clients" }
            p.lead { "Grants and credentials of clients, the calls that they still make, and the end of the old version for them." }
            a.aside.button.small href="/clients?show=after-sunset" { "What clients lose after the sunset" }
        }
        (visit.staleness(&clients))
        @if let Some(told) = &told { (told) }
        @if let Some(clients) = &clients.value { (grants(visit, clients)) }
        (matrix(visit, &usage))
        (brownouts(visit, None))
    };
    let is_live = told.is_none();
    let page = if is_live {
        Page::live(Tab::Clients, "Clients", body)
    } else {
        Page::still(Tab::Clients, "Clients", body)
    };
    visit.page(page.status(status))
}

fn grants(visit: &PageContext<'_>, clients: &[ClientInfo]) -> Markup {
    if clients.is_empty() {
        return empty("No client yet", &html! { "Enrol one with " code { "switchback client add" } "." });
    }
    let searched = visit.query.get("q").to_lowercase();
    let found: Vec<&ClientInfo> =
        clients.iter().filter(|client| client.name.to_lowercase().contains(&searched)).collect();
    let from = (visit.query.page() - 1).saturating_mul(OF_PAGE).min(found.len());
    let shown = &found[from..(from + OF_PAGE).min(found.len())];
    let ends = visit.parts.retirement.sunsets();
    html! {
        section.panel aria-labelledby="grants-title" {
            header { h2 #grants-title { "Grants" } span.soft { (count(found.len() as u64)) " of " (count(clients.len() as u64)) } }
            form.filter method="get" action="/clients" {
                label.grow { "Name" input type="search" name="q" value=(visit.query.get("q")); }
                button type="submit" { "Find" }
            }
            div.scroll role="region" aria-label="Clients" tabindex="0" {
                table {
                    thead { tr { th { "Name" } th { "Company" } th.n { "Tokens" } th { "Grant" } th { "Access token ends" } th { "Credentials" } th { "Old version ends" } } }
                    tbody { @for client in shown { (row(client, &ends, visit.now_ms)) } }
                }
            }
            (pager(visit, shown.len(), found.len(), OF_PAGE))
        }
    }
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

fn row(client: &ClientInfo, ends: &[ClientSunset], now_ms: i64) -> Markup {
    let (tone, state) = tone(client);
    html! {
        tr id={ "client-" (client.name) } {
            td { a href={ "/clients/" (percent_encode(&client.name)) } { (client.name) } }
            td { (client.company.as_deref().unwrap_or("main")) }
            td.n { (client.tokens) }
            td {
                (badge(tone, &state))
                @if client.damaged { " " (damaged_badge()) }
                @if client.left_configuration { " " (left_badge()) }
                @if let Some(reason) = &client.grant.reason { " " span.soft { (reason_words(reason, client.grant.state)) } }
                @if let Some(warning) = client.grant.warning { " " (badge(Tone::Warn, "no refresh token")) " " span.soft { (warning) } }
            }
            td { (token_end(&client.grant, now_ms)) }
            td {
                @for credential in &client.credentials {
                    (credential.side) " "
                    (badge(if credential.state == CredentialState::Active { Tone::Good } else { Tone::Bad }, credential.state.name()))
                    @if let Some(at) = &credential.refused_at { " since " (moment_text(at, now_ms)) }
                    " "
                }
            }
            td {
                @for end in ends.iter().filter(|end| end.client == client.name) {
                    @if let Some(at) = end.at_ms { (end.side) " " (moment(at, now_ms)) }
                }
            }
        }
    }
}

/// Renders the matrix of clients and operations: number of calls, and the last one.
fn matrix(visit: &PageContext<'_>, seen: &Snapshot<Vec<UsageInfo>>) -> Markup {
    let usage = seen.value.as_deref().map_or(&[][..], Vec::as_slice);
    let wanted = visit.query.get("outcome");
    let fits =
        |one: &&UsageInfo| wanted.is_empty() || one.outcome == wanted || (wanted == UNKNOWN && one.unknown);
    let shown: Vec<&UsageInfo> = usage.iter().filter(fits).collect();
    let mut calls: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for one in &shown {
        *calls.entry((&one.side, &one.operation)).or_default() += one.calls;
    }
    let mut columns: Vec<((&str, &str), i64)> = calls.into_iter().collect();
    columns.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    let operations = columns.len();
    let first = (visit.query.page_of("operations") - 1).saturating_mul(COLUMNS_MAX);
    let columns: Vec<_> = columns.into_iter().skip(first).take(COLUMNS_MAX).collect();
    let mut cells: BTreeMap<&str, BTreeMap<(&str, &str), UsageCell<'_>>> = BTreeMap::new();
    for one in &shown {
        let cell = cells.entry(&one.client).or_default().entry((&one.side, &one.operation)).or_default();
        cell.calls += one.calls;
        cell.last = cell.last.max(&one.last);
        cell.is_unanswered |= is_unanswered(one);
    }
    let searched = visit.query.get("caller").to_lowercase();
    let found: Vec<_> = cells.iter().filter(|(name, _)| name.to_lowercase().contains(&searched)).collect();
    let from = (visit.query.page_of("callers") - 1).saturating_mul(OF_PAGE).min(found.len());
    let of_page = &found[from..(from + OF_PAGE).min(found.len())];
    html! {
        section.panel #usage aria-labelledby="usage-title" {
            header { h2 #usage-title { "Calls by client and operation" } span.soft { (COUNTED_SINCE) } }
            form.filter method="get" action="/clients#usage" {
                label { "Outcome"
                    select name="outcome" data-submit {
                        option value="" { "all calls" }
                        @for word in OUTCOMES.map(Outcome::as_str).into_iter().chain([UNKNOWN]) {
                            option value=(word) selected[word == wanted] { (word.replace('_', " ")) }
                        }
                    }
                }
                label.grow { "Client" input type="search" name="caller" value=(visit.query.get("caller")); }
                button type="submit" { "Show" }
            }
            @if seen.value.is_none() { (unread()) } @else if shown.is_empty() {
                (empty("No such calls", &html! { "Calls are counted from the first one on, by client, operation and what became of them." }))
            } @else {
                div.scroll role="region" aria-label="Table of calls" tabindex="0" {
                    table.matrix {
                        thead { tr {
                            th { "Client" } th { "Last call" }
                            @for ((side, name), _) in &columns { th.n { (side) " " (operation(name)) } }
                        } }
                        tbody { @for (name, cells) in of_page {
                            tr id={ "usage-" (name) } {
                                td { @if name.is_empty() { span.soft { "not enrolled" } } @else { a href={ "/clients/" (percent_encode(name)) } { (name) } } }
                                td { @if let Some(last) = cells.values().map(|cell| cell.last).max() { (moment_text(last, visit.now_ms)) } }
                                @for (column, _) in &columns { (shown_cell(cells.get(column))) }
                            }
                        } }
                    }
                }
                p.soft { "Bold: some of these calls got no answer of a service." }
                (pager_of(visit, "callers", "Pages of clients", (of_page.len(), found.len(), OF_PAGE)))
                @if operations > COLUMNS_MAX {
                    p.soft #columns { (count(columns.len() as u64)) " of " (count_noun(operations as u64, "operation")) " are columns, the most called first." }
                    (pager_of(visit, "operations", "Pages of operations", (columns.len(), operations, COLUMNS_MAX)))
                }
            }
        }
    }
}

/// Renders the losses of each client once the old service is gone, and the settings that would
/// avoid them.
async fn losses(visit: &PageContext<'_>) -> AdminResponse {
    let usage = visit.usage().await;
    let rows = usage.value.as_deref().map(|usage| after_sunset_rows(visit.parts, usage));
    let body = html! {
        div.page-head {
            p.crumbs { a href="/clients" { "Clients" } }
            h1 { "What clients lose after the sunset" }
            p.lead { "Operations that clients have called, and what each loses once the old service is gone: by the routes of the pack under the settings of now, whatever phase an operation is in." }
        }
        (visit.staleness(&usage))
        section.panel #after-sunset aria-label="What clients lose" {
            @match &rows { Some(rows) => (losses_table(visit, rows)), None => (unread()) }
        }
    };
    visit.page(Page::live(Tab::Clients, "What clients lose after the sunset", body))
}

fn losses_table(visit: &PageContext<'_>, rows: &[AfterSunset]) -> Markup {
    let searched = visit.query.get("q").to_lowercase();
    let losing = rows.iter().filter(|row| !row.loses.is_empty());
    let losing: Vec<&AfterSunset> =
        losing.filter(|row| row.client.to_lowercase().contains(&searched)).collect();
    let from = (visit.query.page() - 1).saturating_mul(OF_PAGE).min(losing.len());
    let shown = &losing[from..(from + OF_PAGE).min(losing.len())];
    let all_losing = rows.iter().filter(|row| !row.loses.is_empty()).count();
    html! {
        @if rows.is_empty() {
            (empty("No calls yet", &html! { "Calls are counted from the first one on, by client and operation." }))
        } @else {
            p #after-sunset-sum {
                "Clients call " (count_noun(rows.len() as u64, "operation")) ", counted for each client. "
                strong { (count(all_losing as u64)) } " of them lose something, " (count((rows.len() - all_losing) as u64)) " lose nothing."
            }
            form.filter method="get" action="/clients" {
                input type="hidden" name="show" value="after-sunset";
                label.grow { "Client" input type="search" name="q" value=(visit.query.get("q")); }
                button type="submit" { "Find" }
            }
            @if shown.is_empty() { p.soft { @if all_losing == 0 { "No client loses anything." } @else { "No such client loses anything." } } } @else {
                div.scroll role="region" aria-label="Losses by client and operation" tabindex="0" { table {
                    thead { tr { th { "Client" } th { "Operation" } th { "Verdict" } th.n { "Calls" } th { "Last" } th { "Loses" } th { "With a setting turned on" } } }
                    tbody { @for row in shown { (loss_row(row, visit.now_ms)) } }
                } }
            }
            (pager(visit, shown.len(), losing.len(), OF_PAGE))
        }
    }
}

fn loss_row(row: &AfterSunset, now_ms: i64) -> Markup {
    html! {
        tr id={ "loss-" (row.client) "-" (row.side) "-" (row.operation) } {
            td { @if row.client.is_empty() { span.soft { "not enrolled" } } @else { a href={ "/clients/" (percent_encode(&row.client)) } { (row.client) } } }
            td { (row.side) " " (operation(&row.operation)) }
            td { (badge(verdict_tone(row.verdict), row.verdict)) }
            td.n { (count(row.calls.unsigned_abs())) @if row.refused > 0 { " " span.soft { (count(row.refused.unsigned_abs())) " refused already" } } }
            td { (moment_text(&row.last, now_ms)) }
            td { (loss_list(&row.loses)) }
            td {
                @if row.settings.is_empty() { span.soft { "none" } }
                @for then in &row.settings {
                    p { code { (then.setting) } " " (badge(verdict_tone(then.verdict), then.verdict)) }
                    @if !then.loses.is_empty() { (loss_list(&then.loses)) }
                }
            }
        }
    }
}

fn loss_list(loses: &[String]) -> Markup {
    const OPEN_MAX: usize = 3;
    let list = html! { ul.plain { @for text in loses { li { (text) } } } };
    html! {
        @if loses.len() <= OPEN_MAX { (list) } @else {
            details { summary { (count(loses.len() as u64)) " losses" } (list) }
        }
    }
}

/// The calls of a client to an operation.
#[derive(Clone, Copy, Debug, Default)]
struct UsageCell<'u> {
    calls: i64,
    last: &'u str,
    /// Whether any call got no answer of a service.
    is_unanswered: bool,
}

fn shown_cell(cell: Option<&UsageCell<'_>>) -> Markup {
    html! {
        @match cell {
            None => { td.cell { span.soft { "–" } } }
            Some(cell) => {
                td.cell title={ "last call " (cell.last) } {
                    @if cell.is_unanswered { strong { (count(cell.calls.unsigned_abs())) } } @else { (count(cell.calls.unsigned_abs())) }
                }
            }
        }
    }
}

fn brownouts(visit: &PageContext<'_>, of: Option<&str>) -> Markup {
    let all = visit.parts.retirement.brownouts();
    let fits = |one: &&Brownout| {
        of.is_none_or(|name| one.clients.is_empty() || one.clients.iter().any(|client| client == name))
    };
    let shown: Vec<&Brownout> = all.iter().filter(fits).collect();
    html! {
        section.panel #brownouts aria-labelledby="brownouts-title" {
            header { h2 #brownouts-title { "Brownouts" } span.soft { "windows in which calls are answered 503 with Retry-After, on all replicas" } }
            @if shown.is_empty() { p.soft { "No brownouts." } } @else {
                div.scroll role="region" aria-label="Brownouts" tabindex="0" {
                    table {
                        thead { tr { th { "State" } th { "From" } th { "Until" } th { "Operations" } th { "Clients" } th { "Reason" } th { "Set by" } th { "" } } }
                        tbody { @for one in &shown { (brownout(visit, one, of)) } }
                    }
                }
            }
            @if visit.may_operate() { (visit.with_store(&new_brownout(visit, of))) }
        }
    }
}

fn brownout(visit: &PageContext<'_>, one: &Brownout, of: Option<&str>) -> Markup {
    let (tone, state) = match visit.now_ms {
        now if now < one.from_ms => (Tone::Busy, "planned"),
        now if now < one.until_ms => (Tone::Warn, "open"),
        _ => (Tone::Quiet, "over"),
    };
    let words =
        |names: &[String], all: &str| if names.is_empty() { all.to_owned() } else { names.join(", ") };
    html! {
        tr id={ "brownout-" (one.id) } {
            td { (badge(tone, state)) }
            td { (moment(one.from_ms, visit.now_ms)) }
            td { (moment(one.until_ms, visit.now_ms)) }
            td { (one.side) " " (words(&one.operations, "all calls")) }
            td { (words(&one.clients, "all")) }
            td { @if one.reason.is_empty() { span.soft { "the pack's" } } @else { (one.reason) } }
            td { (one.by) }
            td { @if visit.may_operate() && one.by != "configuration" {
                form method="post" action={ "/clients/brownouts/" (percent_encode(&one.id)) "/remove" } {
                    (visit.form_token())
                    input type="hidden" name="of" value=(of.unwrap_or_default());
                    input type="hidden" name="seen" value="";
                    fieldset.bare disabled[visit.store_away.is_some()] { button.small type="submit" { "Remove" } }
                }
            } }
        }
    }
}

fn new_brownout(visit: &PageContext<'_>, of: Option<&str>) -> Markup {
    let phases = visit.parts.phases.list();
    let sides: BTreeSet<&str> = phases.iter().map(|info| info.side.as_str()).collect();
    html! {
        details {
            summary { "Plan a brownout" }
            form.stack method="get" action="/clients/brownouts/new" {
                input type="hidden" name="of" value=(of.unwrap_or_default());
                input type="hidden" name="seen" value=(brownouts_seen(visit));
                @if let Some(name) = of { input type="hidden" name="client" value=(name); }
                div.row {
                    @if sides.len() > 1 {
                        label { "Side" select name="side" { @for side in &sides { option { (side) } } } }
                    }
                    label { "Operation"
                        select name="operation" required {
                            option value="" { "Choose…" }
                            option value=(ALL) { "all calls" }
                            @for info in &phases { option value=(info.operation) { (info.side) " " (info.operation) } }
                        }
                    }
                    @if of.is_none() {
                        (brownout_client(visit))
                    }
                }
                div.row {
                    label { "From (UTC; empty: now)" input type="datetime-local" name="from"; }
                    label { "Minutes" input type="number" name="minutes" value="10" min="1" max="44640" required; }
                    label.grow { "What clients are told (empty: the pack's text)" input type="text" name="reason" maxlength="500"; }
                }
                p.hint { "From the beginning to the end of the window these calls are answered 503, in the old error form." }
                div.actions { button type="submit" { "Review" } }
            }
        }
    }
}

/// Renders the client field of the brownout form. No client is preselected.
fn brownout_client(visit: &PageContext<'_>) -> Markup {
    let clients = visit.parts.tokens.clients().all();
    html! {
        @if clients.len() > LISTED_MAX {
            label { "Client (" (ALL) " for all)" input type="text" name="client" required spellcheck="false" autocomplete="off"; }
        } @else {
            label { "Client" select name="client" required {
                option value="" { "Choose…" }
                option value=(ALL) { "all clients" }
                @for client in &clients { option value=(client.name) { (client.name) } }
            } }
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

async fn one(visit: &PageContext<'_>, name: &str, told: Option<Markup>) -> AdminResponse {
    let clients = visit.clients().await;
    let found = clients.value.as_ref().and_then(|all| all.iter().find(|client| client.name == name));
    if found.is_none() && clients.failing_since.is_none() {
        return visit.not_found();
    }
    let usage = visit.usage().await;
    let called = usage.value.as_deref().map_or(&[][..], Vec::as_slice);
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
            header { h2 #calls-title { "What it still calls" } a.aside href={ "/clients?show=after-sunset&q=" (percent_encode(name)) } { "What it loses after the sunset" } }
            @if usage.value.is_none() { (unread()) } @else { (calls(visit, name, called)) }
        }
        (brownouts(visit, Some(name)))
        section.panel #letter aria-labelledby="letter-title" {
            header { h2 #letter-title { "To its owner" } span.soft { "the calls to change, as curl; values are of the pack's examples" } }
            @if usage.value.is_none() { (unread()) } @else if letter.is_empty() { p.soft { "It calls nothing that has to change." } } @else {
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
            @if let Some(reason) = &grant.reason { dt { "Why" } dd { (reason_words(reason, grant.state)) } }
            @if client.damaged { dt { "Record" } dd { (damaged_badge()) " It was changed outside Switchback: no token selects this client." } }
            @if client.left_configuration { dt { "Configuration" } dd { (left_badge()) " Its tokens select it until it is revoked." } }
            @for credential in &client.credentials {
                dt { "Credential for " (credential.side) }
                dd {
                    @match credential_trouble(credential, visit.now_ms) { Some(words) => (words), None => "works" }
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
                p.hint { "What the configuration gives it comes back with the next reload; other tokens are made by rotating, and its grant is connected anew." }
                div.actions { (act("restore", "Restore", "primary")) }
            } @else {
                div.actions {
                    (act("connect", if grant.state == GrantState::Active { "Make a link to connect anew" } else { "Make a link to connect" }, if grant.state == GrantState::Active { "small" } else { "primary" }))
                }
                @if grant.state != GrantState::Unconnected {
                    details {
                        summary { "Fetch new tokens" }
                        p.hint { "They are requested at once, also where the grant has ended or waits after a failure." }
                        (act("retry", "Fetch now", "small"))
                    }
                }
                details {
                    summary { "Rotate its token" }
                    p.hint { "A new token is made and shown once; the one that it calls with now ends at once." }
                    (act("rotate", "Rotate", "danger"))
                }
                details {
                    summary { "Revoke it" }
                    p.hint { "Its tokens select nobody any more; its grant, credentials and archives are erased, and the tokens of its grant are revoked at the authorization server." }
                    (act("revoke", "Revoke for good", "danger"))
                }
            }
        }
    }
}

fn ending(visit: &PageContext<'_>, client: &ClientInfo) -> Markup {
    let ends = visit.parts.retirement.sunsets();
    let ends: Vec<&ClientSunset> = ends.iter().filter(|end| end.client == client.name).collect();
    let sides: BTreeSet<String> = visit.parts.phases.list().into_iter().map(|info| info.side).collect();
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
                    label { "From then on it is answered 410 (UTC)" input type="text" name="at" placeholder="2026-12-31" pattern="\\d{4}-\\d{2}-\\d{2}(T.+)?" value=(ends.iter().find_map(|end| end.at_ms).map(rfc3339).unwrap_or_default()); }
                }
                label.check { input type="checkbox" name="announce" checked; span { "Say so in its answers until then" } }
                div.actions {
                    button type="submit" { "Set the date" }
                    @if ends.iter().any(|end| end.at_ms.is_some()) { button.plain type="submit" name="never" value="1" { "No end for it" } }
                }
            }
    }
}

/// Renders the clients that call an operation, most recent first, for the operation's page.
pub(super) fn callers(visit: &PageContext<'_>, side: &str, operation: &str, usage: &[UsageInfo]) -> Markup {
    let mut of: BTreeMap<&str, (i64, i64, &str)> = BTreeMap::new();
    for one in usage.iter().filter(|one| one.side == side && one.operation == operation) {
        let (calls, unanswered, last) = of.entry(&one.client).or_default();
        *calls += one.calls;
        *unanswered += if is_unanswered(one) { one.calls } else { 0 };
        *last = (*last).max(&one.last);
    }
    let mut of: Vec<_> = of.into_iter().collect();
    of.sort_by_key(|(_, (.., last))| std::cmp::Reverse(unix_ms(last)));
    html! {
        @if of.is_empty() { p.soft { "No client has called it since calls were first counted." } } @else {
            div.scroll role="region" aria-label="Clients that call this operation" tabindex="0" { table {
                thead { tr { th { "Client" } th.n { "Calls" } th.n { "Without an answer of a service" } th { "Last" } } }
                tbody { @for (name, (calls, unanswered, last)) in of.iter().take(CALLERS_MAX) {
                    tr id={ "caller-" (name) } {
                        td { @if name.is_empty() { span.soft { "not enrolled" } } @else { a href={ "/clients/" (percent_encode(name)) } { (name) } } }
                        td.n { (count(calls.unsigned_abs())) }
                        td.n { (count(unanswered.unsigned_abs())) }
                        td { (moment_text(last, visit.now_ms)) }
                    }
                } }
            } }
            @if of.len() > CALLERS_MAX { p.soft { (count_noun((of.len() - CALLERS_MAX) as u64, "further client")) ": " a href="/clients#usage" { "all clients" } "." } }
        }
    }
}

/// Most callers on the page of an operation.
const CALLERS_MAX: usize = 20;

/// Returns whether the client got no answer of a service; false for calls without a recorded outcome.
fn is_unanswered(one: &UsageInfo) -> bool {
    Outcome::parse(one.outcome).is_some_and(|outcome| !outcome.is_answered())
}

fn calls(visit: &PageContext<'_>, name: &str, usage: &[UsageInfo]) -> Markup {
    let mut of: Vec<&UsageInfo> = usage.iter().filter(|one| one.client == name).collect();
    of.sort_by_key(|one| std::cmp::Reverse(unix_ms(&one.last)));
    if of.is_empty() {
        return html! { p.soft { "Nothing since calls were first counted." } };
    }
    html! {
        div.scroll role="region" aria-label="Calls of this client" tabindex="0" {
            table {
                thead { tr { th { "Operation" } th { "Outcome" } th.n { "Calls" } th { "First" } th { "Last" } } }
                tbody { @for one in &of {
                    tr id={ "call-" (one.side) "-" (one.operation) "-" (one.outcome) } {
                        td { (one.side) " " (operation(&one.operation)) }
                        td { (badge(if is_unanswered(one) { Tone::Warn } else { Tone::Good }, &one.outcome.replace('_', " "))) @if one.unknown { " " (badge(Tone::Quiet, "unknown operation")) } }
                        td.n { (count(one.calls.unsigned_abs())) }
                        td { (moment_text(&one.first, visit.now_ms)) }
                        td { (moment_text(&one.last, visit.now_ms)) }
                    }
                } }
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use switchback_gateway::token::GrantInfo;

    const NOON: &str = "1970-01-01T12:00:00Z";

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

    #[test]
    fn calls_without_an_answer_are_those_that_are_known_to_have_none() {
        let usage = |client: &str, outcome: &'static str, calls, last: &str| UsageInfo {
            side: "v2".to_owned(),
            client: client.to_owned(),
            operation: "GET /a".to_owned(),
            unknown: false,
            outcome,
            calls,
            first: NOON.to_owned(),
            last: last.to_owned(),
        };
        let mut all: Vec<UsageInfo> =
            OUTCOMES.into_iter().map(|outcome| usage("acme", outcome.as_str(), 10, NOON)).collect();
        all.push(usage("acme", switchback_gateway::retire::UNRECORDED, 1_000, "1970-01-01T13:00:00Z"));
        let unanswered: Vec<&str> =
            all.iter().filter(|one| is_unanswered(one)).map(|one| one.outcome).collect();
        let expected =
            ["refused", "rejected", "brownout", "retired", "upstream_error", "gateway_error", "cancelled"];
        assert_eq!(unanswered, expected);
        assert!(
            shown_cell(Some(&UsageCell { is_unanswered: true, calls: 3, last: NOON }))
                .0
                .contains("<strong>3")
        );
    }

    #[test]
    fn a_brownout_reaches_only_calls_that_are_not_rejected_anyway() {
        let mut outcomes = [1; OUTCOMES.len()];
        outcomes[Outcome::Brownout as usize] = 100;
        outcomes[Outcome::Retired as usize] = 100;
        assert_eq!(rejectable(outcomes), OUTCOMES.len() as u64 - 2);
    }

    #[test]
    fn a_row_of_a_client_has_marks_for_what_is_wrong_with_it() {
        let credential = CredentialInfo {
            side: "v2".to_owned(),
            state: CredentialState::Refused,
            refused_at: Some(NOON.to_owned()),
            set_at: NOON.to_owned(),
        };
        let credentials = vec![credential];
        let client = ClientInfo { damaged: true, left_configuration: true, credentials, ..client("acme") };
        let marked = row(&client, &[], 13 * 3_600_000).0;
        for mark in [">damaged<", ">not in the configuration<", ">refused</span> since <time", ">1 h ago<"] {
            assert!(marked.contains(mark), "{mark}: {marked}");
        }
        let well = ClientInfo { damaged: false, left_configuration: false, ..client };
        let marked = row(&well, &[], 0).0;
        assert!(!marked.contains("damaged") && !marked.contains("not in the configuration"), "{marked}");
    }
}
