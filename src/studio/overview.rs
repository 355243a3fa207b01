//! The first page: is it healthy, what is failing, since when, whose fault; and what needs somebody.

use super::Visit;
use super::layout::{Page, Tab};
use super::words::{counted, moment_text};
use crate::admin::{Answer, PackStatus};
use maud::{Markup, html};
use switchback_gateway::store::GrantState;
use switchback_gateway::token::ClientInfo;

pub(super) async fn page(visit: &Visit<'_>) -> Answer {
    let board = visit.parts.board.load();
    let registry = visit.parts.registry.clone();
    let clients = visit.studio.clients.look(async move { registry.list().await }).await;
    let waiting = attention(visit, &board.pack, clients.value.as_deref().map_or(&[], Vec::as_slice));
    let body = html! {
        div.page-head { h1 { "Overview" } }
        (visit.staleness(&clients))
        section.panel #attention aria-labelledby="attention-title" {
            header { h2 #attention-title { "Needs attention" } span.soft { (counted(waiting.len() as u64, "thing")) } }
            @if waiting.is_empty() {
                p.soft { "Nothing needs you." }
            } @else {
                ul.todo { @for one in &waiting { (one) } }
            }
        }
        section.panel #serving aria-labelledby="serving-title" {
            header { h2 #serving-title { "What serves" } }
            dl.facts {
                dt { "Pack" } dd { (board.pack.name) }
                dt { "From" } dd { (board.pack.source) }
                dt { "Loaded" } dd { (moment_text(&board.pack.loaded_at, visit.now_ms)) }
                dt { "Hash" } dd { code { (board.pack.hash.get(..16).unwrap_or(&board.pack.hash)) } }
            }
        }
    };
    visit.page(Page::live(Tab::Overview, "Overview", body))
}

/// What needs somebody, worst first, each with what helps.
fn attention(visit: &Visit<'_>, pack: &PackStatus, clients: &[ClientInfo]) -> Vec<Markup> {
    let mut waiting = Vec::new();
    if let Some(reload) = &pack.last_reload {
        if let Some(error) = &reload.error {
            waiting.push(html! {
                li #todo-reload {
                    div.what {
                        p { strong { "The last reload failed" } " " (moment_text(&reload.at, visit.now_ms)) "; what was loaded before goes on serving." }
                        details { summary { "What is wrong" } pre { (error) } }
                    }
                    @if visit.may_operate() {
                        form method="post" action="/reload" { (visit.form_token()) button.small type="submit" { "Reload again" } }
                    }
                }
            });
        }
        if !reload.needs_restart.is_empty() {
            waiting.push(html! {
                li #todo-restart { div.what { p {
                    strong { "A restart is pending" } ": changes of " (reload.needs_restart.join(", ")) " take one."
                } } }
            });
        }
    }
    let unwell = clients.iter().filter(|client| {
        let is_unused = client.grant.state == GrantState::Unconnected && !client.credentials.is_empty();
        client.revoked_at.is_none() && client.grant.state != GrantState::Active && !is_unused
    });
    for client in unwell {
        waiting.push(html! {
            li id={ "todo-client-" (client.name) } {
                div.what { p {
                    strong { (client.name) } ": its grant is " (client.grant.state.name().replace('_', " "))
                    @if let Some(reason) = &client.grant.reason { " (" (reason) ")" }
                    "."
                } }
                a.button.small href="/clients" { "Look at it" }
            }
        });
    }
    waiting
}
