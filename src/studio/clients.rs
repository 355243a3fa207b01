//! The clients: how their grants stand.

use super::Visit;
use super::layout::{Page, Tab, empty};
use super::words::{Tone, badge, moment_text};
use crate::admin::Answer;
use maud::{Markup, html};
use switchback_gateway::store::GrantState;
use switchback_gateway::token::{ClientInfo, CredentialState};

pub(super) async fn look(visit: &Visit<'_>, rest: &[&str]) -> Answer {
    if !rest.is_empty() {
        return visit.not_found();
    }
    let registry = visit.parts.registry.clone();
    let clients = visit.studio.clients.look(async move { registry.list().await }).await;
    let body = html! {
        div.page-head { h1 { "Clients" } }
        (visit.staleness(&clients))
        @if let Some(clients) = &clients.value { section.panel { (table(clients, visit.now_ms)) } }
    };
    visit.page(Page::live(Tab::Clients, "Clients", body))
}

fn table(clients: &[ClientInfo], now_ms: i64) -> Markup {
    if clients.is_empty() {
        return empty("No client yet", &html! { "Enrol one with " code { "switchback client add" } "." });
    }
    html! {
        div.scroll role="region" aria-label="Clients" tabindex="0" {
            table {
                thead { tr { th { "Name" } th { "Company" } th.n { "Tokens" } th { "Grant" } th { "Access token ends" } th { "Credentials" } } }
                tbody { @for client in clients { (row(client, now_ms)) } }
            }
        }
    }
}

fn row(client: &ClientInfo, now_ms: i64) -> Markup {
    let state = client.revoked_at.as_ref().map_or(client.grant.state.name(), |_| "revoked");
    // Nobody misses the grant of a client whose calls go out with something else.
    let is_unused = client.grant.state == GrantState::Unconnected && !client.credentials.is_empty();
    let tone = match state {
        "active" => Tone::Good,
        "unconnected" if is_unused => Tone::Quiet,
        _ => Tone::Bad,
    };
    html! {
        tr id={ "client-" (client.name) } {
            td { (client.name) }
            td { (client.company.as_deref().unwrap_or("main")) }
            td.n { (client.tokens) }
            td {
                (badge(tone, &state.replace('_', " ")))
                @if let Some(reason) = &client.grant.reason { " " span.soft { (reason) } }
            }
            td { @match &client.grant.expires_at { Some(end) => (moment_text(end, now_ms)), None => span.soft { "unknown" } } }
            td {
                @for credential in &client.credentials {
                    (credential.side) " "
                    (badge(if credential.state == CredentialState::Active { Tone::Good } else { Tone::Bad }, credential.state.name()))
                    " "
                }
            }
        }
    }
}
