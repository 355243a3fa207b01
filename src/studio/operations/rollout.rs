//! The rollout of an operation: its steps and conditions, the controls, and the confirmation of a
//! start.

use super::moving::consequences;
use super::{REASON_CHARS_MAX, address, not_done};
use crate::admin::AdminResponse;
use crate::operate::{Refusal, wait_text};
use crate::studio::PageContext;
use crate::studio::fields::FormFields;
use crate::studio::layout::{Page, Tab};
use crate::studio::words::{Tone, badge, moment, operation, phase, span};
use maud::{Markup, html};
use switchback_gateway::shadow::{
    GateView, PhaseInfo, PhaseView, RolloutAction, RolloutPlan, RolloutState, RolloutView, RolloutWait,
};

/// Returns the action that a form requests.
pub(super) fn action<'f>(what: &str, form: &'f FormFields) -> Option<RolloutAction<'f>> {
    Some(match what {
        "start" => RolloutAction::Start { plan: Some(form.get("plan")) },
        "pause" => RolloutAction::Pause,
        "resume" => RolloutAction::Resume,
        "promote" => RolloutAction::Promote,
        "abort" => RolloutAction::Abort { back: form.has("back") },
        _ => return None,
    })
}

/// Returns the confirmation of a completed action.
pub(super) fn outcome(what: &str) -> Option<&'static str> {
    Some(match what {
        "start" => "The rollout was started.",
        "pause" => "The rollout was paused. It does not advance until it is resumed.",
        "resume" => "The rollout was resumed.",
        "promote" => "The rollout was promoted.",
        "abort" => "The rollout was aborted.",
        _ => return None,
    })
}

/// Renders the panel. Empty without a rollout and without plans.
pub(super) fn panel(visit: &PageContext<'_>, info: &PhaseInfo, gate: Option<&GateView>) -> Markup {
    let rollout = gate.and_then(|gate| gate.rollout.as_ref());
    let is_active = rollout.is_some_and(|rollout| rollout.state.is_active());
    let plans = visit.parts.phases.rollout_plans();
    let may_start = visit.may_operate() && !is_active && !plans.is_empty();
    html! {
        @if rollout.is_some() || may_start {
            section.panel.w12 #rollout aria-labelledby="rollout-title" {
                header { h2 #rollout-title { "Rollout" } @if let Some(rollout) = rollout { span.soft { "plan " (rollout.name) } } }
                @if let Some(rollout) = rollout {
                    (progress(visit, rollout))
                    @if is_active && visit.may_operate() { (controls(visit, info, rollout)) }
                }
                @if may_start { (start_form(visit, info, &plans)) }
            }
        }
    }
}

fn progress(visit: &PageContext<'_>, rollout: &RolloutView) -> Markup {
    let tone = match rollout.state {
        RolloutState::Running => Tone::Busy,
        RolloutState::Paused => Tone::Warn,
        RolloutState::Aborted => Tone::Bad,
        RolloutState::Completed => Tone::Good,
    };
    html! {
        p {
            (badge(tone, rollout.state.name())) " by " (rollout.who) " " (moment(rollout.updated_ms, visit.now_ms))
            @if !rollout.reason.is_empty() { ": " (rollout.reason) }
        }
        @if let Some(plan) = &rollout.plan {
            (steps(plan, rollout.step, Some(rollout.in_step_ms)))
            @if rollout.state.is_active() { (window(plan)) }
        }
        @if !rollout.waits.is_empty() {
            p { "The next step waits for:" }
            ul { @for wait in &rollout.waits { li { @match wait {
                RolloutWait::Window { opens_ms: Some(at_ms) } => { "time of day: opens " (moment(*at_ms, visit.now_ms)) },
                _ => (wait_text(wait)),
            } } } }
        } @else if rollout.state == RolloutState::Running {
            p.soft { "It changes at the next check, within seconds." }
        }
    }
}

/// Renders the steps of a plan; `current` is the index of the present one.
fn steps(plan: &RolloutPlan, current: Option<usize>, in_step_ms: Option<u64>) -> Markup {
    html! {
        ol.steps { @for (at, step) in plan.steps.iter().enumerate() {
            @let is_current = current == Some(at);
            @let view = PhaseView::from(step.phase);
            li aria-current=[is_current.then_some("step")] {
                (phase(view.phase, view.share))
                @if let Some(period) = step.period { " for at least " (span(period.as_secs())) }
                @if is_current { " " (badge(Tone::Busy, "current")) @if let Some(ms) = in_step_ms { " for " (span(ms / 1000)) } }
            }
        } }
    }
}

fn window(plan: &RolloutPlan) -> Markup {
    html! { @if let Some(window) = &plan.window { p.soft { "It advances only " (window) "." } } }
}

fn controls(visit: &PageContext<'_>, info: &PhaseInfo, rollout: &RolloutView) -> Markup {
    let here = address(&info.side, &info.operation);
    let pause = if rollout.state == RolloutState::Paused { ("resume", "Resume") } else { ("pause", "Pause") };
    let button = |(action, label): (&str, &str)| {
        html! { button type="submit" formaction={ (here) "/" (action) } { (label) } }
    };
    let is_last = |plan: &RolloutPlan| plan.next(rollout.phase).is_none();
    let promote =
        if rollout.plan.as_ref().is_some_and(is_last) { "Complete" } else { "Promote to the next step" };
    let body = html! { div.actions {
        (button(pause))
        @if rollout.plan.is_some() { (button(("promote", promote))) }
        (button(("abort", "Abort")))
    } };
    html! {
        form.stack method="post" action={ (here) "/" (pause.0) } {
            (visit.form_token())
            input type="hidden" name="version" value=(info.version);
            label { "Reason" input #rollout-reason type="text" name="reason" maxlength=(REASON_CHARS_MAX) placeholder="Recorded in the history"; }
            label.check { input type="checkbox" name="back" value="1"; span { "With Abort: return to the phase before the rollout" } }
            (visit.with_store(&body))
        }
    }
}

fn start_form(visit: &PageContext<'_>, info: &PhaseInfo, plans: &[String]) -> Markup {
    html! {
        form.filter method="get" action={ (address(&info.side, &info.operation)) "/start" } {
            label { "Plan" select #plan name="plan" { @for name in plans { option value=(name) { (name) } } } }
            fieldset.bare disabled[visit.store_away.is_some()] { button type="submit" { "Review rollout…" } }
        }
    }
}

/// Renders the confirmation page of a start.
pub(super) async fn review(visit: &PageContext<'_>, info: &PhaseInfo) -> AdminResponse {
    if !visit.may_operate() {
        return visit.needs_operator();
    }
    let phases = visit.parts.phases.clone();
    let found = phases.rollout_start(Some(&info.side), &info.operation, Some(visit.query.get("plan")));
    let (name, plan, first) = match found {
        Ok(found) => found,
        Err(error) => return not_done(visit, info, &Refusal::from(error)),
    };
    let (side, of) = (info.side.clone(), info.operation.clone());
    let objection =
        visit.in_time(async move { phases.objection(Some(&side), &of, first).await }).await.flatten();
    let clients = visit.clients().await;
    let here = address(&info.side, &info.operation);
    let view = PhaseView::from(first);
    let body = html! {
        div.page-head {
            p.crumbs { a href=(here) { (info.operation) } }
            h1 { "Start this rollout?" }
        }
        section.panel.confirm {
            p.lead { (operation(&info.operation)) " of " strong { (info.side) } ", plan " strong { (name) } }
            (steps(&plan, None, None))
            (window(&plan))
            p { (phase(info.now.phase, info.now.share)) " → " (phase(view.phase, view.share)) }
            @if let Some(objection) = &objection {
                div.notice.bad #objection role="alert" {
                    p { strong { "The evidence is against it." } " In this phase " (objection.verdict) "." }
                }
            }
            h2 { "Effects" }
            ul {
                @for line in consequences(info, first, clients.rows()) { li { (line) } }
                li { "Where the gate is open for the operation, it advances as the evidence allows, and is rolled back and aborted if too many answers differ. Where the gate is closed, and for writes, an operator promotes each step." }
            }
            form.stack method="post" action={ (here) "/start" } {
                (visit.form_token())
                input type="hidden" name="version" value=(info.version);
                input type="hidden" name="plan" value=(name);
                @if objection.is_some() { input type="hidden" name="force" value="1"; }
                label { "Reason" input #reason type="text" name="reason" required[objection.is_some()] maxlength=(REASON_CHARS_MAX) placeholder="Recorded in the history"; }
                (visit.with_store(&html! { div.actions {
                    button.primary type="submit" { "Start rollout" }
                    a.button href=(here) { "Cancel" }
                } }))
            }
        }
    };
    visit.page(Page::still(Tab::Operations, "Start this rollout?", body))
}
