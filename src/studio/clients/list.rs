//! The list of clients, with all calls and brownouts below.

use super::brownouts::brownouts;
use super::fields::OF_PAGE;
use super::status::{damaged_badge, left_badge, token_end, tone};
use super::usage::matrix;
use crate::admin::AdminResponse;
use crate::operate::attention::grant_reason;
use crate::studio::PageContext;
use crate::studio::fields::percent_encode;
use crate::studio::layout::{Page, Tab, empty, page_slice, pager};
use crate::studio::words::{Tone, badge, count, moment, moment_text, sentence};
use http::StatusCode;
use maud::{Markup, html};
use switchback_gateway::retire::ClientSunset;
use switchback_gateway::token::{ClientInfo, CredentialState};

pub(super) async fn list(visit: &PageContext<'_>, told: Option<Markup>) -> AdminResponse {
    let clients = visit.clients().await;
    let usage = visit.usage().await;
    let status = if told.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    let body = html! {
        div.page-head {
            h1 { "Clients" }
            p.lead { "Grants and credentials of clients, the calls that they still make, and the end of the old version for them." }
            a.aside.button.small href="/clients?show=after-sunset" { "Losses after the sunset" }
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
        return empty("No client yet", &html! { "Add one with " code { "switchback client add" } "." });
    }
    let searched = visit.query.get("q").to_lowercase();
    let found: Vec<&ClientInfo> =
        clients.iter().filter(|client| client.name.to_lowercase().contains(&searched)).collect();
    let shown = page_slice(&found, visit.query.page(), OF_PAGE);
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
                @if let Some(reason) = &client.grant.reason { " " span.soft { (sentence(&grant_reason(reason, client.grant.state), now_ms)) } }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::attention::tests::{NOON, unconnected as client};
    use switchback_gateway::token::CredentialInfo;

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
