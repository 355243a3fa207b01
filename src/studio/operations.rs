//! The pages of operations: the list, one operation with its evidence, and transitions. A
//! transition is submitted after a confirmation page that states its consequences. If the operation
//! has changed in the meantime, the form is preserved.

mod detail;
mod list;
mod moving;
mod rollout;

use self::detail::detail;
use self::list::list;
use self::moving::{asked_to_move, parse_phase, second};
use super::PageContext;
use super::fields::{FormFields, percent_encode};
use super::layout::Page;
use crate::admin::AdminResponse;
use crate::operate::Refusal;
use http::StatusCode;
use maud::html;
use switchback_gateway::shadow::{PhaseChange, PhaseInfo, PhasesError};

/// Longest reason, in characters.
const REASON_CHARS_MAX: usize = 500;

pub(super) async fn look(visit: &PageContext<'_>, rest: &[&str]) -> AdminResponse {
    match *rest {
        [] => list(visit).await,
        [side, name] => match visit.parts.phases.get(Some(side), name) {
            Ok(info) => detail(visit, &info).await,
            Err(error) => unknown(visit, error),
        },
        [side, name, "move"] => match visit.parts.phases.get(Some(side), name) {
            Ok(info) => asked_to_move(visit, &info).await,
            Err(error) => unknown(visit, error),
        },
        [side, name, "start"] => match visit.parts.phases.get(Some(side), name) {
            Ok(info) => rollout::review(visit, &info).await,
            Err(error) => unknown(visit, error),
        },
        _ => visit.not_found(),
    }
}

pub(super) async fn form(visit: &PageContext<'_>, rest: &[&str], form: &FormFields) -> AdminResponse {
    let [side, name, what] = *rest else { return visit.not_found() };
    let info = match visit.parts.phases.get(Some(side), name) {
        Ok(info) => info,
        Err(error) => return unknown(visit, error),
    };
    let reason: String = form.get("reason").trim().chars().take(REASON_CHARS_MAX).collect();
    let word = PhaseChange {
        who: visit.who(),
        reason: &reason,
        seen: form.get("version").parse().ok(),
        force: form.has("force"),
    };
    let outcome = match what {
        "move" if form.get("phase") == AS_CONFIGURED => {
            visit.parts.phases.set_by_word(Some(side), name, None, word).await
        }
        "move" => match parse_phase(form) {
            Ok(phase) => visit.parts.phases.set_by_word(Some(side), name, Some(phase), word).await,
            Err(refusal) => return not_done(visit, &info, &refusal),
        },
        "hold" | "release" => visit.parts.phases.hold(Some(side), name, what == "hold", word).await,
        _ => match rollout::action(what, form) {
            Some(action) => visit.parts.phases.change_rollout(Some(side), name, action, word).await,
            None => return visit.not_found(),
        },
    };
    visit.studio.outdate();
    match outcome.map_err(Refusal::from) {
        Ok(_) => AdminResponse::see(&format!("{}?done={what}", address(side, name))),
        Err(refusal) if refusal.is_outdated() && what == "move" => second(visit, &info, form).await,
        Err(refusal) => not_done(visit, &info, &refusal),
    }
}

/// The form value for a return to the configured phase.
const AS_CONFIGURED: &str = "configured";

/// Returns the URL path of an operation's page.
pub(super) fn address(side: &str, operation: &str) -> String {
    format!("/operations/{}/{}", percent_encode(side), percent_encode(operation))
}

fn not_done(visit: &PageContext<'_>, info: &PhaseInfo, refusal: &Refusal) -> AdminResponse {
    let words = html! {
        p { (refusal) "." }
        p { a.button href=(address(&info.side, &info.operation)) { "Back to the operation" } }
    };
    visit.page(Page::notice(StatusCode::UNPROCESSABLE_ENTITY, "Nothing was changed", words))
}

fn unknown(visit: &PageContext<'_>, error: PhasesError) -> AdminResponse {
    let refusal = Refusal::from(error);
    let words = html! { p { (refusal) "." } p { a.button href="/operations" { "All operations" } } };
    visit.page(Page::notice(StatusCode::NOT_FOUND, "No such operation", words))
}
