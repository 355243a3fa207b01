//! Steps that wait for something to end: their call is made again until its reply shows it. The caller has the clock; here is
//! counted, so that no clock makes more calls than the plan says.

use super::{Failure, Run, Serving, State};
use crate::translate::blocks::call_at;
use crate::translate::fault::{Fault, FaultKind, Stop};
use crate::translate::turn::{FailKind, Failed, Next, Wait};
use http::HeaderMap;
use http::header::RETRY_AFTER;
use std::time::Duration;
use switchback_plan::{Poll, Serve};

/// How far the waiting of a step has come.
#[derive(Debug, Default)]
pub(super) struct Polling {
    /// Calls made.
    polls: u32,
    /// When it began, by the caller's clock.
    since: Option<Duration>,
    /// The pause that was wanted last.
    pause: Duration,
    /// What was wrong with the last reply, if it was none that says anything.
    trouble: Option<String>,
}

impl Run {
    /// The reply shows no end, or says nothing: the call is made again after a pause. `asked` is the pause that the service
    /// wants.
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
        polling.pause = poll.every.max(asked.unwrap_or_default());
        if polling.polls >= poll.most() {
            return self.late(serve, at);
        }
        let wait = Wait { pause: polling.pause, since: polling.since, within: poll.within };
        self.state = State::Serving(Box::new(at));
        Ok(Next::Wait(wait))
    }

    /// The pause is over.
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

    /// There is no time for another call: the step has failed, and says what then.
    pub(super) fn late(&mut self, serve: &Serve, mut at: Serving) -> Result<Next, Stop> {
        let Some(polling) = at.polling.take() else {
            return Err(Fault::new(FaultKind::Internal, "a step that does not wait is late").into());
        };
        let trouble = polling.trouble.map(|trouble| format!("; {trouble}")).unwrap_or_default();
        let detail = format!("not finished after {} calls{trouble}", polling.polls);
        self.failed(serve, at, Failure::Late(Failed { kind: FailKind::Timeout, detail }, polling.pause))
    }

    /// A call got no reply: where the step waits, the next may get one.
    pub(super) fn unanswered(&mut self, serve: &Serve, at: Serving, failed: Failed) -> Result<Next, Stop> {
        let poll = call_at(serve, &at.outcomes, at.step).and_then(|(_, call)| call.poll.as_ref());
        match (poll, failed.kind) {
            (Some(poll), FailKind::Unreachable | FailKind::Timeout | FailKind::Closed) => {
                let detail = format!("the last call got no answer: {}", failed.detail);
                self.pause(serve, poll, at, None, Some(detail))
            }
            _ => self.failed(serve, at, Failure::None(failed)),
        }
    }
}

/// Whether an answer says nothing of what is waited for, but that asking again may help.
pub(super) fn is_passing(status: u16) -> bool {
    status == 429 || status >= 500
}

/// The pause that an answer asks for, where it says it in seconds. A date is another clock's.
pub(super) fn asked(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
