//! Requests that are forms of parts: the fields are gathered and mapped, then the call goes out with them, and files stream
//! after them as fast as the service takes them. What is found wrong once the call is out cuts it: the service sees a body
//! without its end, and the client is told what was wrong.

use super::exchange::Exchange;
use crate::body::Body;
use crate::error::{GatewayError, Kind, Side};
use crate::memory::Short;
use crate::proxy::Response;
use crate::proxy::calls::call::Payload;
use crate::proxy::concurrency::refused;
use bytes::Bytes;
use http::header;
use http_body::Frame;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use switchback_engine::translate::parts::{Gathered, Parts};
use switchback_engine::translate::{Event, Fault, FaultKind, Next, Request, Run, multipart};
use switchback_json::Limits;
use switchback_plan::{MultipartFormat, Origin, Pair, Route, ValueOp, essence};

/// Pieces that are read in one go when nothing comes of them: of files that are dropped.
const SILENT_PIECES_MAX: usize = 16;

impl Exchange<'_> {
    pub(super) async fn in_parts(
        &mut self,
        route: &Route,
        pair: &Pair,
        (format, op): (&Arc<MultipartFormat>, &ValueOp),
        limits: Limits,
        mut body: Body,
    ) -> Result<Response, GatewayError> {
        let named = self.context.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let named = named.unwrap_or("");
        if !essence(named).eq_ignore_ascii_case(switchback_plan::BodyFormat::MULTIPART) {
            let detail = "the body is of another media type than multipart/form-data";
            return Err(GatewayError::new(Kind::UnsupportedMedia, detail));
        }
        let fields_max = usize::try_from(self.composer.limits.request_bytes_max).unwrap_or(usize::MAX);
        let parts = Parts::new(named, format, &pair.call.format, op, limits, fields_max);
        let mut parts = Box::new(parts.map_err(|fault| self.fault_of(fault, &route.origin))?);
        // Held until the end: what is made of the fields is sent while files come.
        let mut share = self.composer.memory.share();
        let mut pieces = 0;
        let gathered = loop {
            let gathered = parts.gather().map_err(|fault| self.fault_of(fault, &route.origin))?;
            let more = (parts.held() as u64).saturating_sub(share.bytes());
            share.grow(more).map_err(|Short| refused("memory"))?;
            if gathered != Gathered::More {
                break gathered;
            }
            match body.chunk().await.transpose()? {
                Some(chunk) => parts.push(chunk),
                None => {
                    parts.finish().map_err(|fault| self.fault_of(fault, &route.origin))?;
                    break gathered;
                }
            }
            pieces += 1;
            if pieces % SILENT_PIECES_MAX == 0 {
                tokio::task::yield_now().await;
            }
        };
        let fields = parts.fields(gathered).map_err(|fault| self.fault_of(fault, &route.origin))?;
        let (context, matched) = (&self.context, self.matched());
        let request = Request {
            path: matched.values.clone(),
            query: context.query().map(str::to_owned),
            headers: context.headers.clone(),
            body: Bytes::new(),
            language: context.language.0,
        };
        let (pack, settings) = (Arc::clone(context.program.pack()), Arc::clone(context.program.settings()));
        let run = Run::new(pack, matched.front.serves, matched.route, request, Arc::clone(&settings), limits);
        let run = run.with_salt(fastrand::u64(..)).with_fields(fields);
        let (_, next) = self.next(Box::new(run), Event::Start).await?;
        let call = match next.map_err(|fault| self.fault(&fault))? {
            Next::Call(call) => call,
            Next::Answer(answer) => return Ok(self.response(answer, &http::HeaderMap::new())),
            Next::Refuse(mut refusal) => {
                // What has been read of the body is gone: the old service cannot be sent it.
                refusal.refusal.legacy_forward = false;
                return Box::pin(self.refuse(refusal, &Bytes::new())).await;
            }
            Next::Recall(_) | Next::Keep(_) => {
                return Err(GatewayError::new(Kind::Internal, "a pair looks into no archive"));
            }
        };
        let mut call = Box::new(self.outgoing(call)?);
        if gathered == Gathered::File {
            let named = call.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let boundary = named.and_then(|named| multipart::boundary_of(named).ok());
            let Some(boundary) = boundary else {
                return Err(GatewayError::new(Kind::Internal, "files are sent in a body that has no parts"));
            };
            parts.begin(&boundary, settings);
            let Payload::Whole(beginning) = std::mem::replace(&mut call.payload, Payload::Sent) else {
                return Err(GatewayError::new(Kind::Internal, "a call whose body is on its way already"));
            };
            let ready = VecDeque::from([beginning]);
            let files = Files { body, parts: Some(parts), ready, line: route.origin.clone() };
            call.payload = Payload::Stream(Body::stream(files, Side::Client));
        }
        let reply = self.composer.calls.send(&mut call).await?;
        drop((call, share));
        let (head, body) = reply.into_parts();
        self.pair_answer(route, pair, &head, body).await
    }

    fn fault_of(&self, fault: Fault, line: &Origin) -> GatewayError {
        self.fault(&Fault { origin: fault.origin.clone().or_else(|| Some(line.clone())), ..fault })
    }
}

/// The body of a call whose files come while it goes out.
struct Files {
    body: Body,
    /// None when the end is written.
    parts: Option<Box<Parts>>,
    ready: VecDeque<Bytes>,
    /// The mapping line of the route.
    line: Origin,
}

impl Files {
    /// Makes of what came all that can be made of it.
    fn make(&mut self, chunk: Option<Bytes>) -> Result<(), Fault> {
        let Some(parts) = &mut self.parts else { return Ok(()) };
        let mut out = Vec::new();
        match chunk {
            Some(chunk) => {
                parts.push(chunk);
                parts.pass(&mut out)?;
            }
            None => {
                parts.pass(&mut out)?;
                out.push(parts.end()?);
                self.parts = None;
            }
        }
        self.ready.extend(out.into_iter().filter(|piece| !piece.is_empty()));
        Ok(())
    }

    fn broken(&self, fault: &Fault) -> GatewayError {
        let kind = match fault.kind {
            FaultKind::TooLarge => Kind::TooLarge,
            FaultKind::Internal => Kind::Internal,
            _ => Kind::BadBody,
        };
        let Origin { file, line } = &self.line;
        GatewayError::new(kind, format!("{fault} ({file}:{line}), after its call was begun"))
    }
}

impl http_body::Body for Files {
    type Data = Bytes;
    type Error = GatewayError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        let this = self.get_mut();
        for _ in 0..SILENT_PIECES_MAX {
            if let Some(ready) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(ready))));
            }
            if this.parts.is_none() {
                return Poll::Ready(None);
            }
            let chunk = match ready!(http_body::Body::poll_frame(Pin::new(&mut this.body), cx)) {
                Some(frame) => Some(frame?.into_data().unwrap_or_default()),
                None => None,
            };
            this.make(chunk).map_err(|fault| this.broken(&fault))?;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
