//! Transitions of an operation: confirmation, consequences and conflicts.

use super::{AS_CONFIGURED, REASON_CHARS_MAX, address, not_done};
use crate::admin::AdminResponse;
use crate::operate::Refusal;
use crate::studio::PageContext;
use crate::studio::fields::{FormFields, percent_encode};
use crate::studio::kept;
use crate::studio::layout::{Page, Tab};
use crate::studio::words::{count_noun, moment_text, operation, percent, phase};
use maud::{Markup, html};
use switchback_gateway::shadow::{Objection, Phase, PhaseInfo, Share};
use switchback_gateway::token::ClientInfo;

/// Most clients that a confirmation names.
const NAMED: usize = 12;

pub(super) fn parse_phase(fields: &FormFields) -> Result<Phase, Refusal> {
    let name = fields.get("phase");
    let share = fields.get("share").trim();
    // `legacy` and `shadow` have no share. The field may still have that of the previous selection.
    let share = if share.is_empty() || ["legacy", "shadow"].contains(&name) {
        None
    } else {
        Some(share.parse::<Share>().map_err(|error| Refusal::invalid(error.to_string()))?)
    };
    Ok(Phase::parse(name, share)?)
}

/// Renders the confirmation page of a transition.
pub(super) async fn asked_to_move(visit: &PageContext<'_>, info: &PhaseInfo) -> AdminResponse {
    if !visit.may_operate() {
        return visit.needs_operator();
    }
    // The target is checked before the page, so that an invalid form is refused before its confirmation.
    if visit.query.get("phase") != AS_CONFIGURED
        && let Err(refusal) = parse_phase(&visit.query)
    {
        return not_done(visit, info, &refusal);
    }
    let clients = visit.clients().await;
    let objection = objection(visit, info, &visit.query).await;
    let body = html! {
        div.page-head {
            p.crumbs { a href=(address(&info.side, &info.operation)) { (info.operation) } }
            h1 { "Change the phase of this operation?" }
        }
        (confirmation(visit, info, &visit.query, clients.rows(), objection.as_ref()))
    };
    visit.page(Page::still(Tab::Operations, "Change the phase of this operation?", body))
}

/// Returns the phase that the fields lead to.
fn target(info: &PhaseInfo, fields: &FormFields) -> Option<Phase> {
    if fields.get("phase") == AS_CONFIGURED {
        Phase::parse(info.configured.phase, info.configured.share.and_then(Share::new)).ok()
    } else {
        parse_phase(fields).ok()
    }
}

/// Returns evidence against the requested transition. `None` if the store does not answer in time;
/// the transition itself checks again.
async fn objection(visit: &PageContext<'_>, info: &PhaseInfo, fields: &FormFields) -> Option<Objection> {
    let to = target(info, fields)?;
    let (phases, side, operation) = (visit.parts.phases.clone(), info.side.clone(), info.operation.clone());
    visit.in_time(async move { phases.objection(Some(&side), &operation, to).await }).await.flatten()
}

pub(super) fn confirmation(
    visit: &PageContext<'_>,
    info: &PhaseInfo,
    fields: &FormFields,
    clients: &[ClientInfo],
    objection: Option<&Objection>,
) -> Markup {
    let to = target(info, fields);
    let here = address(&info.side, &info.operation);
    html! {
        section.panel.confirm {
            p.lead { (operation(&info.operation)) " of " strong { (info.side) } }
            p { (phase(info.now.phase, info.now.share)) " → " @if let Some(to) = to { (phase(to.name(), to.share().filter(|share| !share.is_none()).map(Share::part))) } }
            @if let Some(objection) = objection {
                div.notice.bad #objection role="alert" {
                    p { strong { "The evidence is against it." } " In this phase " (objection.verdict) "." }
                    @if !objection.causes.is_empty() {
                        ul { @for cause in &objection.causes { li { code { (cause) } } } }
                    }
                    p { a href={ "/differences/" (percent_encode(&info.side)) "/" (percent_encode(&info.operation)) } { "Differences with samples" } }
                }
            }
            h2 { "Effects" }
            ul { @if let Some(to) = to { @for line in consequences(info, to, clients) { li { (line) } } } }
            form.stack method="post" action={ (here) "/move" } {
                (visit.form_token())
                input type="hidden" name="version" value=(info.version);
                input type="hidden" name="phase" value=(fields.get("phase"));
                input type="hidden" name="share" value=(fields.get("share"));
                @if objection.is_some() {
                    // Only where the objection is displayed, so that evidence cannot be overridden unseen.
                    input type="hidden" name="force" value="1";
                    label { "Reason (required against the evidence)" input #reason type="text" name="reason" required maxlength=(REASON_CHARS_MAX) value=(fields.get("reason")) placeholder="Recorded in the history"; }
                } @else {
                    label { "Reason" input #reason type="text" name="reason" maxlength=(REASON_CHARS_MAX) value=(fields.get("reason")) placeholder="Recorded in the history"; }
                }
                (visit.with_store(&html! { div.actions {
                    @if objection.is_some() {
                        button.danger type="submit" { "Change phase against the evidence" }
                    } @else {
                        button.primary type="submit" { "Change phase" }
                    }
                    a.button href=(here) { "Cancel" }
                } }))
            }
        }
    }
}

/// Describes the consequences of a phase for the clients of an operation, in sentences.
pub(super) fn consequences(info: &PhaseInfo, to: Phase, clients: &[ClientInfo]) -> Vec<String> {
    let own = format!("the service of {}", info.side);
    let mut lines = Vec::new();
    match to {
        Phase::Legacy => {
            lines.push(format!("All calls are forwarded to {own} unchanged."));
            lines.push("It is not compared any more, so its evidence does not grow.".to_owned());
        }
        Phase::Shadow => {
            lines.push(format!("{} answers all clients, unchanged.", capital(&own)));
            lines.push(if info.writes {
                "Calls to the other side are planned and not sent, since this operation has side effects."
                    .to_owned()
            } else {
                "The other side is called as well, and both answers are compared. Clients do not wait for it."
                    .to_owned()
            });
        }
        Phase::Canary(share) => {
            let living: Vec<&ClientInfo> =
                clients.iter().filter(|client| client.revoked_at.is_none()).collect();
            let chosen: Vec<&str> = living
                .iter()
                .map(|client| client.name.as_str())
                .filter(|name| share.has_client(name, &info.operation))
                .collect();
            lines.push(format!("A share of {} of the clients, selected by name, receives translated answers of the other side; the others are answered by {own}.", percent(share.part())));
            lines.push(match chosen.len() {
                0 => {
                    format!("Of the current {} none is selected.", count_noun(living.len() as u64, "client"))
                }
                n if n <= NAMED => format!(
                    "Of the current {} these are: {}.",
                    count_noun(living.len() as u64, "client"),
                    chosen.join(", ")
                ),
                n => format!(
                    "Of the current {} these are {n}, such as {}.",
                    count_noun(living.len() as u64, "client"),
                    chosen[..NAMED].join(", ")
                ),
            });
        }
        Phase::Translated { check } => {
            lines.push("All clients receive translated answers of the other side.".to_owned());
            lines.push(if check.is_none() {
                format!("{} is not asked any more, and nothing is compared.", capital(&own))
            } else {
                format!(
                    "For {} of the requests {own} is called as well, and both answers are compared.",
                    percent(check.part())
                )
            });
        }
    }
    lines.push("It applies to new requests; requests in progress are not affected.".to_owned());
    lines.push("The evidence is restarted.".to_owned());
    lines
}

pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Responds to a transition form that was rendered before another transition: that transition, and
/// the form again.
pub(super) async fn second(visit: &PageContext<'_>, seen: &PhaseInfo, form: &FormFields) -> AdminResponse {
    let Ok(now) = visit.parts.phases.get(Some(&seen.side), &seen.operation) else { return visit.not_found() };
    let transitions = visit.transitions().await;
    let last = transitions.rows().iter().find(|one| one.side == now.side && one.operation == now.operation);
    let clients = visit.clients().await;
    let done = html! {
        @match last {
            Some(last) => {
                strong { @if last.who.is_empty() { (last.by) } @else { (last.who) } } " moved it from " (last.from) " to " (last.to) " "
                (moment_text(&last.at, visit.now_ms)) @if !last.evidence.is_empty() { ": “" (last.evidence) "”" } "."
            },
            None => "it was moved.",
        }
    };
    let where_it_is = html! {
        "It is in " (phase(now.now.phase, now.now.share)) " now. If you still want it, send it once more."
    };
    let objection = objection(visit, &now, form).await;
    let form = confirmation(visit, &now, form, clients.rows(), objection.as_ref());
    kept::someone_was_faster(visit, Tab::Operations, &done, &where_it_is, &form)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studio::operations::detail::as_fields;

    #[test]
    fn what_a_move_came_from_can_be_asked_for_again() {
        for phase in [
            Phase::Legacy,
            Phase::Shadow,
            Phase::Canary(Share::new(0.25).unwrap()),
            Phase::Translated { check: Share::new(0.01).unwrap() },
            Phase::default(),
        ] {
            let shown = phase.to_string();
            let (name, share) = as_fields(&shown).unwrap_or_else(|| panic!("{shown} is read back"));
            assert_eq!(
                parse_phase(&FormFields::parse(&format!("phase={name}&share={share}"))).ok(),
                Some(phase),
                "{shown}"
            );
        }
        assert_eq!(as_fields("nothing known"), None);
    }

    #[test]
    fn a_share_that_stood_in_the_field_does_not_keep_an_operation_from_shadow() {
        assert_eq!(parse_phase(&FormFields::parse("phase=shadow&share=0.5")).ok(), Some(Phase::Shadow));
        assert!(parse_phase(&FormFields::parse("phase=canary&share=")).is_err());
        assert!(parse_phase(&FormFields::parse("phase=canary&share=2")).is_err());
    }

    #[test]
    fn of_many_chosen_clients_the_first_are_named_with_their_number() {
        use crate::operate::attention::tests::unconnected as client;
        use switchback_gateway::shadow::PhaseView;

        let shown = || PhaseView { phase: "legacy", share: None };
        let info = PhaseInfo {
            side: "v2".to_owned(),
            operation: "GET /a".to_owned(),
            writes: false,
            now: shown(),
            from: "configuration".to_owned(),
            since: None,
            configured: shown(),
            version: 0,
            held: None,
        };
        let mut clients: Vec<ClientInfo> = (0..15).map(|at| client(&format!("c{at:02}"))).collect();
        clients[0].revoked_at = Some("1970-01-01T00:00:00Z".to_owned());
        let named = |share: f64, clients: &[ClientInfo]| {
            let share = Share::new(share).expect("a share");
            consequences(&info, Phase::Canary(share), clients).swap_remove(1)
        };
        let twelve: Vec<String> = (1..=12).map(|at| format!("c{at:02}")).collect();
        let twelve = twelve.join(", ");
        for (share, clients, expected) in [
            (1.0, &clients[..], format!("Of the current 14 clients these are 14, such as {twelve}.")),
            (1.0, &clients[..13], format!("Of the current 12 clients these are: {twelve}.")),
            (1.0, &clients[..2], "Of the current 1 client these are: c01.".to_owned()),
            (0.0, &clients[..], "Of the current 14 clients none is selected.".to_owned()),
        ] {
            assert_eq!(named(share, clients), expected);
        }
    }
}
