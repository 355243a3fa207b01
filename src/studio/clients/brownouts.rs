//! Brownouts: the list, the form with its confirmation page, and conflicts.

use super::fields::{LISTED_MAX, form_back, read_moment, side};
use crate::admin::AdminResponse;
use crate::operate::Refusal;
use crate::studio::PageContext;
use crate::studio::fields::{FormFields, percent_encode};
use crate::studio::kept;
use crate::studio::layout::{Page, Tab, unread};
use crate::studio::traffic::requests_of;
use crate::studio::words::{Tone, badge, count_noun, moment, names_or};
use http::StatusCode;
use maud::{Markup, html};
use switchback_gateway::outcome::{OUTCOMES, Outcome};
use switchback_gateway::retire::{Brownout, NewBrownout, RetireError};

pub(super) fn brownouts(visit: &PageContext<'_>, of: Option<&str>) -> Markup {
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
                        thead { tr { th { "State" } th { "From" } th { "Until" } th { "Operations" } th { "Clients" } th { "Reason" } th { "Set by" } th { span.visually-hidden { "Action" } } } }
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
    html! {
        tr id={ "brownout-" (one.id) } {
            td { (badge(tone, state)) }
            td { (moment(one.from_ms, visit.now_ms)) }
            td { (moment(one.until_ms, visit.now_ms)) }
            td { (one.side) " " (names_or(&one.operations, "all calls")) }
            td { (names_or(&one.clients, "all")) }
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
    let sides = visit.sides();
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
                    label.grow { "Text for clients (empty: the text of the pack)" input type="text" name="reason" maxlength="500"; }
                }
                p.hint { "During the window these calls are rejected with 503, in the old error format." }
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

/// Returns the ids of the removable brownouts, which a form records as the state that it was
/// rendered from.
fn brownouts_seen(visit: &PageContext<'_>) -> String {
    let all = visit.parts.retirement.brownouts();
    // Windows of the configuration cannot change at run time, so they cannot conflict.
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
    let minutes: i64 =
        form.get("minutes").parse().map_err(|_| Refusal::invalid("a brownout lasts a number of minutes"))?;
    let names = |name: &str, things: &str| -> Result<Vec<String>, Refusal> {
        let chosen = form.all().filter(|(found, value)| *found == name && !value.is_empty());
        let chosen: Vec<&str> = chosen.map(|(_, value)| value).collect();
        match chosen.as_slice() {
            // An empty selection must not mean all: a forgotten field would reject every call.
            [] => Err(Refusal::invalid(format!("choose the {things} that it is for"))),
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
        // The confirmation page has this field only for a window for all calls of all clients.
        everything: is_for_all && form.get("confirm").trim() == EVERYTHING,
        from_ms: from,
        until_ms: from.saturating_add(minutes.saturating_mul(60_000)),
        reason: form.get("reason").to_owned(),
        seen: form.has("seen").then(|| form.get("seen").split_whitespace().map(str::to_owned).collect()),
    })
}

pub(super) async fn add_brownout(visit: &PageContext<'_>, form: &FormFields) -> Result<(), Refusal> {
    let new = parse_brownout(visit, form)?;
    Ok(visit.parts.retirement.by(visit.who()).add(new).await.map(drop)?)
}

/// Renders the confirmation page of a brownout, with the calls that it would reject.
pub(super) async fn asked_for_brownout(visit: &PageContext<'_>) -> AdminResponse {
    if !visit.may_operate() {
        return visit.needs_operator();
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
    // Without the counts of the store, a reach of zero would be wrong, so none is displayed.
    let reach = match visit.in_time(preview).await {
        Some(Err(refusal)) => return brownout_refused(visit, &refusal),
        Some(Ok(reach)) if usage.value.is_some() => Some(reach),
        _ => None,
    };
    let query = &visit.query;
    let body = html! {
        div.page-head {
            p.crumbs { a href=(form_back(query)) { "Clients" } }
            h1 { "Add this brownout?" }
        }
        section.panel.confirm {
            dl.facts {
                dt { "Operations" } dd { (names_or(&new.operations, "all calls")) }
                dt { "Clients" } dd { (names_or(&new.clients, "all clients")) }
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
                    p.notice.bad role="alert" { strong { "This rejects all calls of all clients." } }
                    label { "Type " (EVERYTHING) " to confirm"
                        input #confirm type="text" name="confirm" required pattern=(EVERYTHING) autocomplete="off" spellcheck="false";
                    }
                }
                (visit.with_store(&html! { div.actions {
                    button.danger type="submit" { "Add the brownout" }
                    a.button href=(form_back(query)) { "Cancel" }
                } }))
            }
        }
    };
    visit.page(Page::still(Tab::Clients, "Add this brownout?", body))
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
    let sides = visit.sides().into_iter();
    let sides = sides.filter(|side| new.side.as_ref().is_none_or(|wanted| wanted == side));
    sides.map(|side| rejectable(visit.studio.traffic.outcomes_of_side(&side, &new.operations))).sum()
}

/// Returns the number of calls that were not rejected by a brownout or a sunset.
fn rejectable(mut outcomes: [u64; OUTCOMES.len()]) -> u64 {
    // These calls are rejected already and would not be affected by another window.
    outcomes[Outcome::Brownout as usize] = 0;
    outcomes[Outcome::Retired as usize] = 0;
    requests_of(&outcomes)
}

/// Responds to a form that was rendered before another change of the brownouts.
pub(super) async fn second_brownout(visit: &PageContext<'_>, form: &FormFields) -> AdminResponse {
    let all = visit.parts.retirement.brownouts();
    let open = all.iter().filter(|one| one.until_ms > visit.now_ms).count();
    let now = html! { "Planned or open now: " (count_noun(open as u64, "brownout")) ", to be seen among the " a href="/clients#brownouts" { "clients" } "." };
    let fresh = [("seen", brownouts_seen(visit))];
    kept::second(visit, Tab::Clients, &["brownout set", "brownout removed"], &now, form, &fresh).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brownout_reaches_only_calls_that_are_not_rejected_anyway() {
        let mut outcomes = [1; OUTCOMES.len()];
        outcomes[Outcome::Brownout as usize] = 100;
        outcomes[Outcome::Retired as usize] = 100;
        assert_eq!(rejectable(outcomes), OUTCOMES.len() as u64 - 2);
    }
}
