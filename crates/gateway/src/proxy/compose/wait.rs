//! Pauses between polls of a service: a timer without a connection. The request still counts as in
//! flight, also for its client.
//!
//! After all effects are done, waiting is abandoned if the client has left; the recorded steps
//! answer its next attempt. If an effect may follow, waiting continues.

use super::exchange::Exchange;
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::origin::CallOrigin;
use std::pin::pin;
use std::task::Poll;
use switchback_engine::translate::{Event, Wait};

impl Exchange<'_> {
    /// Waits for the pause of a step. Returns [`Event::Late`] if the time of the step or the
    /// request does not allow it. `may_write` states whether a call with an effect may follow.
    ///
    /// # Errors
    ///
    /// Returns an error if the client left and no effect may follow.
    pub(crate) async fn wait(&self, wait: Wait, may_write: bool) -> Result<Event, GatewayError> {
        let (clock, context) = (&self.composer.clock, &self.request.context);
        let now = clock.elapsed();
        let left = self.request.limits().total_timeout.saturating_sub(context.arrived.elapsed());
        let is_awaited = self.composer.origin == CallOrigin::Client && !context.record.has_left();
        let Some(end) = wait.ends(now).filter(|_| !is_awaited || wait.pause < left) else {
            return Ok(Event::Late);
        };
        let mut timer = pin!(clock.sleep_until(end));
        // A detached request is polled by its own task at once, so the flag is seen without another
        // wake-up.
        let passed = std::future::poll_fn(|cx| match context.record.has_left() && !may_write {
            true => Poll::Ready(false),
            false => timer.as_mut().poll(cx).map(|()| true),
        });
        match context.pause(passed).await {
            true => Ok(wait.finish_at(now)),
            false => {
                let detail =
                    "nobody waits any more for what was not finished; what was written is remembered";
                Err(GatewayError::new(ErrorKind::UpstreamTimeout, detail))
            }
        }
    }
}
