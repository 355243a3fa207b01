//! Navigation in the nested blocks of a serve route, by the outcomes chosen so far.

use switchback_plan::{Block, Effect, End, Serve, Step, StepAction, StepCall};

/// Returns the block that these outcomes lead to.
pub(super) fn block_at<'p>(serve: &'p Serve, outcomes: &[u16]) -> Option<&'p Block> {
    outcomes.iter().try_fold(&serve.block, |block, outcome| match &block.end {
        End::Decide(decision) => decision.outcomes.get(usize::from(*outcome)).map(|outcome| &outcome.block),
        _ => None,
    })
}

/// Returns the step at this index of the block that these outcomes lead to, if it makes a call.
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

/// Returns whether a block contains a writing call from this step on, for any outcome.
pub(super) fn writes(block: &Block, from: usize) -> bool {
    let is_write = |step: &Step| match &step.action {
        StepAction::Call(call) => call.head.effect == Effect::Write,
        // Archives are internal; storing an entry affects no service.
        StepAction::Select(_) | StepAction::Make(_) | StepAction::Recall(_) | StepAction::Keep(_) => false,
    };
    let ends_in_one = match &block.end {
        End::Decide(decision) => decision.outcomes.iter().any(|outcome| writes(&outcome.block, 0)),
        End::Answer(_) | End::Refuse(_) => false,
    };
    ends_in_one || block.steps.iter().skip(from).any(is_write)
}
