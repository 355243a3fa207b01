//! Running recorded exchanges again, through a pack that may have changed since: which requests it would now translate
//! otherwise, and which answers clients would now see differently.
//!
//! Two ways, one state machine ([`Running`]). Offline, every call that the plan asks for is answered by the reply that was
//! recorded for it, so that only the pack can make a difference. Live ([`live`]), calls go to a service, and its answers
//! are compared with the ones that were recorded; that is also the way for archives of browsers, which hold no calls.
//!
//! What lives elsewhere: reading archives (`har`), comparing answers (`diff`), recording (`proxy::capture`).

mod address;
mod judge;
mod live;
mod outcome;
mod running;
#[cfg(test)]
mod tests;

pub use address::Fronts;
pub(crate) use live::waited;
pub use live::{Live, LiveError};
pub use outcome::{Change, Outcome, Unknown, Verdict};
pub use running::{Recorded, Replayer, Running, Step};

use std::time::Duration;
use switchback_engine::har::Exchange;
use switchback_engine::translate::Event;

impl Replayer {
    /// Runs an exchange with the replies that were recorded.
    pub fn offline(&self, exchange: &Exchange) -> Outcome {
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
                Step::Over(outcome) => return outcome,
                Step::Wait(wait) => event = wait.simulated(&mut now),
                Step::Call(call) => match running.recorded(&call) {
                    Recorded::Reply(known) => event = known,
                    Recorded::Unknown(why) => return running.unfollowed(why),
                    Recorded::End => return running.planned(),
                },
            }
        }
    }
}
