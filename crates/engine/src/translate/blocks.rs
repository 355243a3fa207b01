//! Navigation in the nested blocks of a serve route, by the outcomes chosen so far.

use switchback_plan::{Block, End, Serve, Step, StepCall};

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
    Some((step, step.call()?))
}
