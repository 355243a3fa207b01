//! Waiting for something to end at a service: a timer, and nothing else. The request stays one in flight, of its client too;
//! no connection is held meanwhile.
//!
//! Nobody waits for a client that has gone, once all effects are made: what was written is remembered, so that the client
//! finds it when it comes back. Where an effect follows, it goes on.

use super::exchange::Exchange;
use crate::error::{GatewayError, Kind};
use crate::proxy::origin::CallOrigin;
use std::pin::pin;
use std::task::Poll;
use switchback_engine::translate::{Event, Wait};

impl Exchange<'_> {
    /// Lets the pause pass, unless there is no time for it: the step's own, or the request's. `may_write` says whether a call
    /// with an effect may follow.
    pub(crate) async fn wait(&self, wait: Wait, may_write: bool) -> Result<Event, GatewayError> {
        let (clock, context) = (&self.composer.clock, &self.context);
        let now = clock.elapsed();
        let left = self.composer.limits.total_timeout.saturating_sub(context.arrived.elapsed());
        let is_awaited = self.composer.origin == CallOrigin::Client && !context.has_left();
        let Some(end) = wait.ends(now).filter(|_| !is_awaited || wait.pause < left) else {
            return Ok(Event::Late);
        };
        let mut timer = pin!(clock.sleep_until(end));
        // Work that goes on without its client is polled anew, by a task of its own.
        let passed = std::future::poll_fn(|cx| match context.has_left() && !may_write {
            true => Poll::Ready(false),
            false => timer.as_mut().poll(cx).map(|()| true),
        });
        match context.pause(passed).await {
            true => Ok(wait.waited(now)),
            false => {
                let detail =
                    "nobody waits any more for what was not finished; what was written is remembered";
                Err(GatewayError::new(Kind::UpstreamTimeout, detail))
            }
        }
    }
}
