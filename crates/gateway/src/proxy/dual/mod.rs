//! Shadow comparison on the data path. The request is answered as usual; a bounded copy of the request
//! and of the response is passed to the shadow, which calls the other side after the client has its
//! response. The comparison covers the response that a client sees, so this layer is above
//! translation.
//!
//! Shadow calls have separate connections, limits and memory
//! ([`crate::proxy::origin::CallOrigin::Shadow`]). A call with an effect is planned but never sent
//! (`planned`). The effect of a write may be read back on both sides (`read_back`).

mod ask;
mod beside;
pub(crate) mod phase;
mod planned;
mod read_back;
mod shadow_request;
mod tee;
mod writes;

pub(crate) use self::ask::Dual;
use self::shadow_request::{ClientView, Primary, ShadowRequest};
use self::tee::{BodyCopy, Tee};
use self::writes::{WriteMark, Writing};
use crate::body::Body;
use crate::error::GatewayError;
use crate::memory::MemoryShare;
use crate::proxy::Response;
use crate::proxy::headers::names_other_method;
use crate::proxy::program::Front;
use crate::proxy::request::KnownRequest;
use crate::shadow::{Job, JobSubject, Knowledge, Phase, Shadow, Share as Part, Subject};
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};
use switchback_engine::diff::{BufferedAnswer, NotReadBack, SkipReason};
use switchback_plan::{Effect, RouteKind};

/// The slot for the copy of a request's body.
type CopySlot = Arc<Mutex<Option<BodyCopy>>>;

type ResponseFuture = BoxFuture<'static, Result<Response, GatewayError>>;

impl Dual {
    /// Registers a request with a possible effect until the guard is dropped. `None` for fronts
    /// without a shadow.
    pub(crate) fn writing(&self, front: &Front, client: &str) -> Option<Writing> {
        front.beside.as_ref().map(|_| self.writes.begin(client))
    }

    /// Returns the shadow request, if the phase and the sample select this request and the other side
    /// can be compared.
    pub(crate) fn shadow_request(
        &self,
        request: &Arc<KnownRequest>,
        is_own: bool,
        writing: Option<WriteMark>,
    ) -> Option<ShadowRequest> {
        let KnownRequest { context, front, operation, client, .. } = &**request;
        let phase = front.phase(operation.route);
        // The sample is drawn before any body is copied, because most requests are not
        // selected.
        if phase == Phase::default() || !self.shadow.takes(phase, fastrand::u64(..)) {
            return None;
        }
        let beside = front.beside.clone()?;
        // Without the own service a read has no counterpart, but the effect of a write is compared
        // with its request.
        let is_alone = beside.own.is_none();
        let route = request.route();
        let writes = route.operation.effect == Effect::Write;
        if is_alone && !writes {
            return None;
        }
        let primary = if is_own { Primary::Legacy } else { Primary::Plans };
        // A method override header may turn the read into a write, which must not be repeated.
        if names_other_method(&context.headers) {
            return None;
        }
        // A refused operation has no counterpart.
        if matches!(route.kind, RouteKind::Refuse(_)) {
            return None;
        }
        let not_read_back = match self.shadow.settings().shares.read_back {
            _ if !writes => None,
            _ if route.read_back.is_none() => Some(NotReadBack::Undeclared),
            Part::NONE => Some(NotReadBack::Off),
            share => (!share.takes(fastrand::u64(..))).then_some(NotReadBack::NotSampled),
        };
        Some(ShadowRequest {
            subject: subject(request, phase, &beside.knowledge),
            request: Arc::clone(request),
            beside,
            primary,
            writes,
            // For a read, the snapshot is taken before either side answers. A write that starts
            // later may be seen by one side only, and then explains a difference.
            written: writing.unwrap_or_else(|| self.writes.mark(&client.name)),
            not_read_back,
        })
    }

    /// Answers a request by `answering`, and submits the shadow job once the client has received the
    /// complete response.
    pub(crate) async fn both(
        self,
        body: Body,
        asked: ShadowRequest,
        answering: impl FnOnce(Body) -> ResponseFuture,
    ) -> Result<Response, GatewayError> {
        // The plans executed this write, so it must not be repeated on the old service. Without a
        // read-back there is no job, and the bodies need no copy.
        if let (Primary::Plans, Some(why)) = (asked.primary, asked.not_read_back) {
            let answer = answering(body).await;
            if answer.as_ref().is_ok_and(|response| response.status().is_success()) {
                self.shadow.not_read_back(&asked.subject, why);
            }
            return answer;
        }
        let (body, slot) = self.copy_request(body);
        // If the client disconnects, this future is dropped at the `await` and no code after it
        // runs.
        let mut waiting = WaitingClient { shadow: self.shadow.clone(), asked: Some(asked) };
        let outcome = answering(body).await;
        let asked = waiting.asked.take().expect("nobody else takes it");
        match outcome {
            Ok(response) => Ok(self.copy_response(response, asked, slot)),
            Err(error) => {
                let nothing = self.shadow.memory().share();
                self.submit(asked, &slot, Ok((ClientView::Failed(copy_error(&error)), nothing)));
                Err(error)
            }
        }
    }

    /// Copies the request's body into the slot while it is read.
    fn copy_request(&self, mut body: Body) -> (Body, CopySlot) {
        let slot = CopySlot::default();
        if body.is_empty() {
            put(&slot, Ok((BufferedAnswer::default(), self.shadow.memory().share())));
            return (body, slot);
        }
        let filled = Arc::clone(&slot);
        let tee = self.tee(SkipReason::ClientGone, move |copy| put(&filled, copy));
        body.watch(Box::new(tee));
        (body, slot)
    }

    /// Copies the response's body while the client reads it, then submits the job.
    fn copy_response(&self, response: Response, asked: ShadowRequest, slot: CopySlot) -> Response {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        if response.body().is_empty() {
            let seen = ClientView::Answered { status, headers, body: BufferedAnswer::default() };
            self.submit(asked, &slot, Ok((seen, self.shadow.memory().share())));
            return response;
        }
        let dual = self.clone();
        let tee = self.tee(SkipReason::PrimaryFailed, move |copy: BodyCopy| {
            let seen = copy.map(|(body, share)| (ClientView::Answered { status, headers, body }, share));
            dual.submit(asked, &slot, seen);
        });
        response.map(|body: Body| body.with_watcher(Box::new(tee)))
    }

    fn tee<F: FnOnce(BodyCopy) + Send>(&self, failed: SkipReason, done: F) -> Tee<F> {
        Tee::new(self.shadow.memory(), self.shadow.settings().body_bytes, failed, done)
    }

    fn submit(
        &self,
        asked: ShadowRequest,
        slot: &CopySlot,
        seen: Result<(ClientView, MemoryShare), SkipReason>,
    ) {
        // An empty slot means that the upstream responded before it read the complete request body.
        let body = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let body = body.unwrap_or(Err(SkipReason::TooLarge));
        let subject = asked.subject.clone();
        match (seen, body) {
            (Ok((seen, mut share)), Ok((body, of_request))) => {
                share.join(of_request);
                let work = Box::pin(self.clone().done(asked, body, seen));
                self.shadow.submit(Job { subject, work, share });
            }
            // Skipped comparisons are counted: without that number, a report would claim more
            // coverage than it has.
            (Err(why), _) | (_, Err(why)) => self.shadow.record_skip(&subject, why),
        }
    }
}

fn put(slot: &CopySlot, copy: BodyCopy) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(copy);
}

/// Copies an error without its source, which cannot be cloned.
fn copy_error(error: &GatewayError) -> GatewayError {
    let again = GatewayError::new(error.kind().clone(), error.detail());
    let again = if error.is_unanswered() { again.cut() } else { again };
    match error.text() {
        Some(text) => again.saying(text),
        None => again,
    }
}

/// A guard for a request in progress. Dropping it before the request is taken out records that the
/// client disconnected.
struct WaitingClient {
    shadow: Shadow,
    asked: Option<ShadowRequest>,
}

impl Drop for WaitingClient {
    fn drop(&mut self) {
        if let Some(asked) = &self.asked {
            self.shadow.record_skip(&asked.subject, SkipReason::ClientGone);
        }
    }
}

fn subject(request: &KnownRequest, phase: Phase, knowledge: &Arc<Knowledge>) -> Subject {
    let KnownRequest { context, front, operation, client, .. } = request;
    Subject {
        side: Arc::clone(front.phases.side()),
        serves: front.serves,
        about: JobSubject::Route(operation.route),
        operation: Arc::clone(request.operation_key()),
        phase,
        period: front.phases.period(usize::from(operation.route.0)),
        client: (&*client.name).into(),
        target: request.below_front(),
        request_id: context.id.to_string(),
        knowledge: Arc::clone(knowledge),
    }
}
