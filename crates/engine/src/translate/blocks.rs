//! Finding one's way in the blocks of a route of several calls: which block the outcomes chosen so far lead to, and what is in it.

use switchback_plan::{Block, Effect, End, Serve, Step, StepAction, StepCall};

/// The block that these outcomes lead to.
pub(super) fn block_at<'p>(serve: &'p Serve, outcomes: &[u16]) -> Option<&'p Block> {
    outcomes.iter().try_fold(&serve.block, |block, outcome| match &block.end {
        End::Decide(decision) => decision.outcomes.get(usize::from(*outcome)).map(|outcome| &outcome.block),
        _ => None,
    })
}

/// The step of this index in the block that these outcomes lead to, if it makes a call.
pub(super) fn call_at<'p>(
    serve: &'p Serve,
    outcomes: &[u16],
    step: usize,
) -> Option<(&'p Step, &'p StepCall)> {
    let step = block_at(serve, outcomes)?.steps.get(step)?;
    match &step.action {
        StepAction::Call(call) => Some((step, call)),
        StepAction::Select(_) | StepAction::Make(_) | StepAction::Recall(_) | StepAction::Keep(_) => None,
    }
}

/// Whether a block has a call with an effect from this step on, whichever outcome is chosen.
pub(super) fn writes(block: &Block, from: usize) -> bool {
    let is_write = |step: &Step| match &step.action {
        StepAction::Call(call) => call.head.effect == Effect::Write,
        // What is kept here reaches no service.
        StepAction::Select(_) | StepAction::Make(_) | StepAction::Recall(_) | StepAction::Keep(_) => false,
    };
    let ends_in_one = match &block.end {
        End::Decide(decision) => decision.outcomes.iter().any(|outcome| writes(&outcome.block, 0)),
        End::Answer(_) | End::Refuse(_) => false,
    };
    ends_in_one || block.steps.iter().skip(from).any(is_write)
}
