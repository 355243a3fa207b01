//! Steps that poll: the call is repeated until its reply signals completion. The caller owns the
//! clock; this module counts the calls, so that no clock error can exceed the limit of the plan.

use super::{Failure, Run, Serving, State};
use crate::translate::blocks::call_at;
use crate::translate::fault::{Fault, FaultKind, Stop};
use crate::translate::turn::{FailKind, Failed, Next, Wait};
use http::HeaderMap;
use http::header::RETRY_AFTER;
use std::time::Duration;
use switchback_plan::{Poll, Serve};

/// The state of a polling step.
#[derive(Debug, Default)]
pub(super) struct Polling {
    /// Number of calls.
    polls: u32,
    /// Start of the polling, by the caller's clock.
    since: Option<Duration>,
    /// The last requested pause.
    pause: Duration,
    /// The problem with the last reply, if it was not usable.
    trouble: Option<String>,
}

impl Run {
    /// Schedules another call, because the reply signals no completion or is not usable. `asked` is
    /// the pause that the service requests.
    pub(super) fn pause(
        &mut self,
        serve: &Serve,
        poll: &Poll,
        mut at: Serving,
        asked: Option<Duration>,
        trouble: Option<String>,
    ) -> Result<Next, Stop> {
        let polling = at.polling.get_or_insert_default();
        polling.polls += 1;
        polling.trouble = trouble;
        // The service may request a longer pause, but not a shorter one.
        polling.pause = poll.every.max(asked.unwrap_or_default());
        // Holds even if the caller's clock is stuck.
        if polling.polls >= poll.most() {
            return self.late(serve, at);
        }
        let wait = Wait { pause: polling.pause, since: polling.since, within: poll.within };
        self.state = State::Serving(Box::new(at));
        Ok(Next::Wait(wait))
    }

    /// Repeats the call after a pause.
    pub(super) fn ask_again(
        &mut self,
        serve: &Serve,
        mut at: Serving,
        since: Duration,
    ) -> Result<Next, Stop> {
        let (Some((step, call)), Some(polling)) =
            (call_at(serve, &at.outcomes, at.step), at.polling.as_mut())
        else {
            return Err(Fault::new(FaultKind::Internal, "a pause of a step that does not wait").into());
        };
        polling.since = Some(since);
        self.call(serve, step, call, at)
    }

    /// Fails the step, because no time is left for another call.
    pub(super) fn late(&mut self, serve: &Serve, mut at: Serving) -> Result<Next, Stop> {
        let Some(polling) = at.polling.take() else {
            return Err(Fault::new(FaultKind::Internal, "a step that does not wait is late").into());
        };
        let trouble = polling.trouble.map(|trouble| format!("; {trouble}")).unwrap_or_default();
        let detail = format!("not finished after {} calls{trouble}", polling.polls);
        self.on_failure(serve, at, Failure::Late(Failed { kind: FailKind::Timeout, detail }, polling.pause))
    }

    /// Handles a call without a reply. A polling step retries connection errors.
    pub(super) fn on_no_reply(&mut self, serve: &Serve, at: Serving, failed: Failed) -> Result<Next, Stop> {
        let poll = call_at(serve, &at.outcomes, at.step).and_then(|(_, call)| call.poll.as_ref());
        match (poll, failed.kind) {
            (Some(poll), FailKind::Unreachable | FailKind::Timeout | FailKind::Closed) => {
                let detail = format!("the last call got no answer: {}", failed.detail);
                self.pause(serve, poll, at, None, Some(detail))
            }
            _ => self.on_failure(serve, at, Failure::None(failed)),
        }
    }
}

/// Returns whether a status is temporary, so that polling continues.
pub(super) fn is_passing(status: u16) -> bool {
    status == 429 || status >= 500
}

/// Returns the pause that a reply requests in seconds. A date is ignored, because it refers to
/// another clock.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
