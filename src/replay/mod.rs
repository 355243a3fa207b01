//! Replays recorded exchanges through a pack that may have changed since: which requests would be
//! translated differently, and which answers would change.
//!
//! Both modes drive one state machine ([`ReplayRun`]). Offline, every call of the plan is answered by
//! its recorded reply, so that only the pack can cause differences. Live ([`live`]), calls go to a
//! service, and its answers are compared with the recorded ones; this is also the mode for archives
//! of browsers, which contain no upstream calls.
//!
//! Archives are read in `har`, compared in `diff` and recorded in `proxy::capture`.

mod address;
mod judge;
mod live;
mod outcome;
mod running;
#[cfg(test)]
mod tests;

pub use address::{FrontError, Fronts};
pub(crate) use live::wait_for;
pub use live::{Live, LiveCallError, LiveError};
pub use outcome::{ReplayChange, ReplayOutcome, ReplayVerdict, UnknownReason};
pub use running::{RecordedReply, ReplayRun, ReplayStep, Replayer};

use std::time::Duration;
use switchback_engine::har::Exchange;
use switchback_engine::translate::Event;

impl Replayer {
    /// Replays an exchange with its recorded replies.
    pub fn offline(&self, exchange: &Exchange) -> ReplayOutcome {
        let mut running = match self.begin(exchange) {
            Ok(running) => running,
            Err(outcome) => return outcome,
        };
        if let Some(why) = running.unknown() {
            return running.given_up(why);
        }
        let (mut event, mut now) = (Event::Start, Duration::ZERO);
        loop {
            match running.next(event) {
                ReplayStep::Over(outcome) => return outcome,
                ReplayStep::Wait(wait) => event = wait.simulate(&mut now),
                ReplayStep::Call(call) => match running.take_reply(&call) {
                    RecordedReply::Reply(known) => event = known,
                    RecordedReply::Unknown(why) => return running.finish_unknown(why),
                    RecordedReply::End => return running.finish_planned(),
                },
            }
        }
    }
}
