//! The list *Needs attention*: its data, read for a page or for `GET /api/attention`, and its
//! rendering. [`crate::operate::attention`] decides which conditions are listed.

use super::PageContext;
use super::fields::percent_encode;
use super::operations::address;
use super::replicas::Replica;
use super::words::{count, count_noun, moment_text, operation, sentence};
use crate::operate::attention::{self, AttentionContext, LastReload, PeerReplica, RolloutOf};
use crate::operate::{AttentionItem, Place, Remedy};
use maud::{Markup, html};
use serde_json::{Value, json};
use switchback_gateway::proxy::unknown_calls::UnknownCall;

/// Most unknown calls in their table.
const UNKNOWN_MAX: usize = 20;

/// The conditions that need an operator.
pub(super) struct AttentionList {
    pub(super) items: Vec<AttentionItem>,
    /// Names of the data that the store did not return in time: the list may lack items.
    pub(super) unread: Vec<&'static str>,
}

/// Reads the data of all conditions.
pub(super) async fn gather(visit: &PageContext<'_>) -> AttentionList {
    let (clients, reports, transitions, gates, events) =
        tokio::join!(visit.clients(), visit.reports(), visit.transitions(), visit.gates(), visit.events());
    let rollouts = gates
        .rows()
        .iter()
        .filter_map(|gate| Some((gate.side.as_str(), gate.operation.as_str(), gate.rollout.as_ref()?)));
    let rollouts: Vec<RolloutOf<'_>> = rollouts.collect();
    let (parts, board) = (visit.parts, visit.parts.board.load());
    let context = AttentionContext {
        now_ms: visit.now_ms,
        replica: visit.is_one_of_several().then(|| visit.studio.replicas.name().to_owned()),
    };
    let others = visit.studio.replicas.others(visit.now_ms);
    let peers: Vec<PeerReplica<'_>> = others.iter().map(Replica::peer).collect();
    let reload = board.pack.last_reload.as_ref().map(|reload| LastReload {
        at: &reload.at,
        is_failed: reload.error.is_some(),
        needs_restart: &reload.needs_restart,
    });
    let certificates = board.certificates.iter().map(|one| (one.key.as_str(), one.ends_ms));
    let unpersisted = parts.tokens.health().unpersisted;
    let lists = [
        attention::of_brownouts(&parts.retirement.brownouts(), &context),
        attention::of_the_store(visit.store_away),
        attention::of_replicas(&peers, &board.pack.hash, &context),
        attention::of_the_process(parts.drain.is_leaving(), unpersisted, &context),
        reload.map(|reload| attention::of_the_pack(&reload, &context)).unwrap_or_default(),
        attention::of_the_restoration(board.pack.restored.as_ref(), &context),
        attention::of_certificates(certificates, &context),
        attention::of_operations(&parts.phases.list(), reports.rows(), transitions.rows(), &rollouts),
        attention::of_clients(clients.rows(), &context),
        attention::of_events(events.rows()),
        attention::of_unknown_calls(&parts.unknown.newest(), &context),
    ];
    let reads = [
        (clients.failing_since, "grants and credentials"),
        (reports.failing_since, "differences"),
        (transitions.failing_since, "transitions"),
        (gates.failing_since, "rollouts"),
        (events.failing_since, "events"),
    ];
    let unread = reads.iter().filter(|(since, _)| since.is_some()).map(|(_, name)| *name).collect();
    AttentionList { items: lists.into_iter().flatten().collect(), unread }
}

/// Renders the list as JSON.
pub(super) fn to_json(items: &[AttentionItem], now_ms: i64) -> Value {
    let row = |item: &AttentionItem| {
        json!({
            "id": item.id,
            "text": item.text.text(now_ms),
            "command": item.remedy.command(),
            "page": page(&item.remedy),
        })
    };
    items.iter().map(row).collect()
}

/// Renders the list with its remedies as links and forms.
pub(super) fn render(list: &AttentionList, visit: &PageContext<'_>) -> Markup {
    html! {
        @if !list.items.is_empty() {
            ul.todo { @for item in &list.items { (row(item, visit)) } }
        } @else if list.unread.is_empty() {
            p.soft { "Nothing needs attention. " (attention::CHECKED) }
        }
        @if !list.unread.is_empty() {
            p.soft #todo-unread { "Unknown while the store is unavailable: " (list.unread.join(", ")) ". The list may lack rows about them, or have old ones." }
        }
    }
}

fn row(item: &AttentionItem, visit: &PageContext<'_>) -> Markup {
    let text = sentence(&item.text, visit.now_ms);
    html! { li id={ "todo-" (percent_encode(&item.id)) } {
        div.what {
            @match item.remedy {
                Remedy::UnknownCalls => (unknown_calls(&text, &visit.parts.unknown.newest(), visit.now_ms)),
                _ => { p { (text) } },
            }
        }
        (remedy(&item.remedy, visit))
    } }
}

/// Returns the page of the studio that a remedy links to.
fn page(remedy: &Remedy) -> Option<String> {
    Some(match remedy {
        Remedy::None | Remedy::Configuration => return None,
        Remedy::EndBrownout(_) => "/clients#brownouts".to_owned(),
        Remedy::Reload => "/pack?show=reload".to_owned(),
        Remedy::UnknownCalls => "/".to_owned(),
        Remedy::Promote { side, operation, .. } => address(side, operation),
        Remedy::Look(_, place) => match place {
            Place::Operations => "/operations?sort=differences".to_owned(),
            Place::Operation { side, operation } | Place::Rollout { side, operation } => {
                address(side, operation)
            }
            Place::Differences { side, operation } => {
                format!("/differences/{}/{}", percent_encode(side), percent_encode(operation))
            }
            Place::Clients => "/clients".to_owned(),
            Place::Client(client)
            | Place::ClientToConnect(client)
            | Place::ClientCredential { client, .. } => format!("/clients/{}", percent_encode(client)),
            Place::Packs => "/pack?show=recorded".to_owned(),
            Place::Events => return None,
        },
    })
}

fn remedy(remedy: &Remedy, visit: &PageContext<'_>) -> Markup {
    let link = |label: &str| {
        html! { @if let Some(page) = page(remedy) { a.button.small href=(page) { (label) } } }
    };
    match remedy {
        Remedy::None | Remedy::UnknownCalls => html! {},
        Remedy::Configuration => html! { span.soft { "set in the configuration" } },
        Remedy::Look(label, _) => link(label),
        Remedy::EndBrownout(id) if visit.may_operate() => html! {
            form method="post" action={ "/clients/brownouts/" (percent_encode(id)) "/remove" } {
                (visit.form_token())
                input type="hidden" name="to" value="/";
                input type="hidden" name="seen" value="";
                fieldset.bare disabled[visit.store_away.is_some()] { button.small type="submit" { "End" } }
            }
        },
        Remedy::EndBrownout(_) => link("Brownouts"),
        Remedy::Reload => html! {
            (link("Errors"))
            @if visit.may_operate() {
                form method="post" action="/reload" { (visit.form_token()) input type="hidden" name="seen" value=(visit.pack_seen()); button.small type="submit" { "Reload again" } }
            }
        },
        Remedy::Promote { side, operation, phase, share } if visit.may_operate() => html! {
            a.button.small.primary href={ (address(side, operation)) "/move?phase=" (phase) "&share=" (share) } { "Move to " (phase) }
        },
        Remedy::Promote { .. } => link("Look at it"),
    }
}

/// Renders the table of the newest unknown calls, collapsed below its summary.
fn unknown_calls(summary: &Markup, unknown: &[UnknownCall], now_ms: i64) -> Markup {
    let more = unknown.len().saturating_sub(UNKNOWN_MAX);
    html! {
        details {
            summary { (summary) }
            div.scroll role="region" aria-label="Unknown calls" tabindex="0" { table {
                thead { tr { th { "Call" } th { "Unknown" } th { "Client" } th.n { "Calls" } th { "Last" } } }
                tbody { @for call in unknown.iter().take(UNKNOWN_MAX) {
                    tr {
                        td { (operation(&format!("{} {}", call.method, call.path))) } td { (call.unknown.replace('_', " ")) }
                        td { @if call.client.is_empty() { span.soft { "not enrolled" } } @else { (call.client) } }
                        td.n { (count(call.count)) } td { (moment_text(&call.last, now_ms)) }
                    }
                } }
            } }
            @if more > 0 { p.soft #unknown-more { (count_noun(more as u64, "further kind")) "; " code { "switchback unknown" } " lists them." } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_calls_that_are_not_listed_are_counted() {
        let call = |at: usize| UnknownCall {
            side: "v2".to_owned(),
            method: "GET",
            path: format!("/v2/c{at}"),
            client: String::new(),
            unknown: "path",
            count: 2,
            first: String::new(),
            last: String::new(),
        };
        let all: Vec<UnknownCall> = (0..23).map(call).collect();
        let rendered = |calls: &[UnknownCall]| unknown_calls(&html! {}, calls, 0).into_string();
        assert!(rendered(&all).contains("3 further kinds"));
        assert!(!rendered(&all[..1]).contains("further"));
    }
}
