//! Plans the calls of a request with effects without sending them. The plan runs as for a client, but
//! calls with an effect are recorded only. Reads that the plan needs are sent, with the shadow's
//! connections, limits and timeout.
//!
//! These reads return the state after the write, so a plan may find its work done already. The calls
//! that it does plan are still checked.

use super::ask::Dual;
use super::shadow_request::{ShadowRequest, is_failure};
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::compose::exchange::Exchange;
use crate::shadow::{PlanEnd, Planned, PlannedCall};
use bytes::Bytes;
use switchback_engine::diff::SkipReason;
use switchback_engine::har::Shadow;
use switchback_engine::translate::{self, Event, FaultKind, Next, Reply};
use switchback_json as json;
use switchback_plan::Effect;

/// Maximum number of reads sent for one plan.
const READINGS_MAX: u32 = 20;

impl Dual {
    /// Returns the calls with an effect that the plan would send, as far as they are known without
    /// sending them. `body` has no content coding.
    pub(crate) async fn plan_calls(&self, asked: &ShadowRequest, body: Bytes) -> Result<Planned, SkipReason> {
        let mut planned = Planned { calls: Vec::new(), readings: 0, end: PlanEnd::Whole { status: None } };
        let following = self.follow(asked, body, &mut planned);
        match tokio::time::timeout(self.timeout(), following).await {
            Ok(Err(why)) => {
                asked.record(|| Shadow::Dropped(why.name().to_owned()));
                return Err(why);
            }
            Ok(Ok(end)) => planned.end = end,
            Err(_) => planned.end = PlanEnd::Unread { why: "the readings took too long".to_owned() },
        }
        asked.record(|| match &planned.end {
            PlanEnd::Whole { .. } | PlanEnd::Open => Shadow::Planned,
            PlanEnd::Unread { .. } => Shadow::Dropped("unread".to_owned()),
            PlanEnd::Impossible { .. } => Shadow::Dropped("untranslated".to_owned()),
        });
        Ok(planned)
    }

    /// Runs the plan until it finishes or depends on the response to an unsent call.
    async fn follow(
        &self,
        asked: &ShadowRequest,
        body: Bytes,
        planned: &mut Planned,
    ) -> Result<PlanEnd, SkipReason> {
        let body = asked.request.without_form_token(body);
        let mut run = asked.request.run(body, json::Limits::DOCUMENT);
        let mut readings = self.readings(asked);
        let mut event = Event::Start;
        // Set after a read without a response or with a server error: the next step of the plan is no
        // evidence then.
        let mut is_unread = false;
        loop {
            let call = match run.next(event) {
                Err(fault) if is_unread => return Ok(PlanEnd::Unread { why: fault.to_string() }),
                Ok(_) if is_unread => {
                    return Ok(PlanEnd::Unread { why: "a reading brought no answer".to_owned() });
                }
                Err(fault) => return Ok(plan_end(&fault)),
                Ok(Next::Refuse(_)) => return Err(SkipReason::Refused),
                Ok(Next::Answer(answer)) => return Ok(PlanEnd::Whole { status: Some(answer.status) }),
                Ok(Next::Call(call)) => call,
                Ok(Next::Recall(lookup)) => {
                    event = match readings.recall(lookup).await {
                        Ok(found) => found,
                        Err(error) => return unread(&error),
                    };
                    continue;
                }
                Ok(Next::Wait(wait)) => {
                    event = match readings.wait(wait, true).await {
                        Ok(waited) => waited,
                        Err(error) => return unread(&error),
                    };
                    continue;
                }
                // Not stored, because the write did not happen.
                Ok(Next::Keep(_)) => {
                    event = Event::Kept;
                    continue;
                }
            };
            let is_write = call.effect == Effect::Write;
            let (is_read, is_last) = (call.is_read, !run.may_write());
            if is_write {
                asked.record_planned(&call);
                planned.calls.push(unmade(call));
                event = match is_read {
                    _ if is_last => return Ok(PlanEnd::Whole { status: None }),
                    true => return Ok(PlanEnd::Open),
                    // The plan ignores the response body, so a plain success is enough to go on.
                    false => Event::Reply(Reply { status: 200, ..Reply::default() }),
                };
                continue;
            }
            if is_last {
                return Ok(PlanEnd::Whole { status: None });
            }
            if planned.readings == READINGS_MAX {
                let why = format!("it takes more than {READINGS_MAX} readings");
                return Ok(PlanEnd::Unread { why });
            }
            planned.readings += 1;
            event = match readings.exchange(call).await {
                Ok(Ok((reply, _memory))) => {
                    is_unread = is_failure(reply.status);
                    Event::Reply(reply)
                }
                Ok(Err(failed)) => {
                    is_unread = readings.request.context.record.is_unanswered();
                    Event::Failed(failed)
                }
                Err(error) => return unread(&error),
            };
        }
    }

    /// Returns the exchange for reads. It rejects every call with an effect.
    fn readings(&self, asked: &ShadowRequest) -> Exchange<'_> {
        Exchange::new(&self.composer, asked.as_shadow())
    }
}

/// Classifies a fault of the plan. A failed read is no evidence; a fault of the plan itself is.
fn plan_end(fault: &translate::Fault) -> PlanEnd {
    let why = fault.to_string();
    match fault.kind {
        FaultKind::UpstreamUnreachable | FaultKind::UpstreamTimeout => PlanEnd::Unread { why },
        _ => PlanEnd::Impossible { why },
    }
}

fn unread(error: &GatewayError) -> Result<PlanEnd, SkipReason> {
    match error.kind() {
        ErrorKind::Overloaded { .. } => Err(SkipReason::Budget),
        ErrorKind::NeedsReconnect => Err(SkipReason::Credential),
        _ => Ok(PlanEnd::Unread { why: error.detail() }),
    }
}

fn unmade(call: translate::Call) -> PlannedCall {
    PlannedCall { operation: call.operation, method: call.method, target: call.target, body: call.body }
}
