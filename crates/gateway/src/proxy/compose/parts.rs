//! Multipart requests with files. Fields are buffered and mapped, the call is sent with them, and
//! the files follow as a stream with backpressure. An error found after the call was sent aborts
//! the upload: the service sees an incomplete body, and the client receives the error.

use super::exchange::{Exchange, kind_of};
use crate::body::Body;
use crate::error::{ErrorKind, ErrorSide, GatewayError};
use crate::heavy::{Heavy, LIGHT_BYTES_MAX};
use crate::memory::MemoryShare;
use crate::proxy::Response;
use crate::proxy::calls::call::Payload;
use crate::proxy::concurrency::limit_error;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use switchback_engine::translate::parts::{Gathered, Parts};
use switchback_engine::translate::{Event, Fault, FaultKind, Next, multipart};
use switchback_json::Limits;
use switchback_plan::{MultipartFormat, Origin, Pair, Route, ValueOp};

/// Pieces processed per poll without any output, as with discarded files.
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
        let named =
            self.request.context.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let named = named.unwrap_or("");
        let fields_max = usize::try_from(self.request.limits().request_bytes_max).unwrap_or(usize::MAX);
        let parts = Parts::new(named, format, &pair.call.format, op, limits, fields_max);
        let mut parts = Box::new(parts.map_err(|fault| self.fault_of(fault, &route.origin))?);
        let mut share = self.composer.memory.share();
        let mut pieces = 0;
        // Read up to the first file or the end of the body. Only then are all leading fields known,
        // and the head of the call can be built from them.
        let gathered = loop {
            let gathered = parts.gather(&mut |bytes| share.grow(bytes as u64).is_ok());
            let gathered = gathered.map_err(|fault| self.fault_of(fault, &route.origin))?;
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
        let held = share.bytes();
        let work = move || {
            let fields = parts.fields(gathered);
            (parts, fields, share)
        };
        let (mut parts, fields, share) = self.run_heavy(held, work).await?;
        let fields = fields.map_err(|fault| self.fault_of(fault, &route.origin))?;
        self.worked += fields.json.len() as u64;
        self.shares.push(share);
        let run = self.request.run(Bytes::new(), limits).with_salt(fastrand::u64(..)).with_fields(fields);
        let (_, next) = self.next(Box::new(run), Event::Start).await?;
        let call = match next.map_err(|fault| self.fault(&fault))? {
            Next::Call(call) => call,
            Next::Answer(answer) => return Ok(self.response(answer, &http::HeaderMap::new())),
            Next::Refuse(mut refusal) => {
                // The body was partly consumed, so the request can no longer be forwarded to the
                // legacy service.
                refusal.refusal.legacy_forward = false;
                return Box::pin(self.refuse(refusal, &Bytes::new())).await;
            }
            Next::Recall(_) | Next::Keep(_) | Next::Wait(_) => {
                return Err(GatewayError::new(
                    ErrorKind::Internal,
                    "a pair looks into no archive and waits for nothing",
                ));
            }
        };
        let mut call = Box::new(self.outgoing(call)?);
        if gathered == Gathered::File {
            let named = call.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let boundary = named.and_then(|named| multipart::boundary_of(named).ok());
            let Some(boundary) = boundary else {
                return Err(GatewayError::new(
                    ErrorKind::Internal,
                    "files are sent in a body that has no parts",
                ));
            };
            parts.begin(&boundary, Arc::clone(self.request.context.program.settings()));
            let Payload::Whole(beginning) = std::mem::replace(&mut call.payload, Payload::Sent) else {
                return Err(GatewayError::new(
                    ErrorKind::Internal,
                    "a call whose body is on its way already",
                ));
            };
            // Retain the reservations until the upload finishes: the mapped fields are sent while
            // files arrive.
            let shares = std::mem::take(&mut self.shares);
            let share = shares.into_iter().reduce(|mut all, share| {
                all.join(share);
                all
            });
            let share = share.unwrap_or_else(|| self.composer.memory.share());
            let files = Files {
                body,
                state: FilesState::Here(FileParts { parts, share }),
                beginning: Some(beginning).filter(|beginning| !beginning.is_empty()),
                heavy: self.composer.heavy.clone(),
                origin: route.origin.clone(),
            };
            call.payload = Payload::Stream(files.into_body());
        }
        let reply = self.composer.calls.send(&mut call).await?;
        drop(call);
        let (head, body) = reply.into_parts();
        self.pair_answer(route, pair, &head, body).await
    }

    fn fault_of(&self, fault: Fault, origin: &Origin) -> GatewayError {
        self.fault(&Fault { origin: fault.origin.clone().or_else(|| Some(origin.clone())), ..fault })
    }
}

/// Body of a call that is sent while files of the request arrive.
struct Files {
    body: Body,
    state: FilesState,
    /// The mapped fields, sent before the files.
    beginning: Option<Bytes>,
    heavy: Heavy,
    /// Mapping line of the route.
    origin: Origin,
}

/// The received parts and the memory reserved for their fields.
struct FileParts {
    parts: Box<Parts>,
    share: MemoryShare,
}

type Made = (FileParts, Result<Option<Bytes>, Fault>);

enum FilesState {
    Here(FileParts),
    /// A large field is being mapped on the pool for heavy work.
    Apart(BoxFuture<'static, Option<Made>>),
    /// The closing boundary was produced.
    Ended,
}

impl FileParts {
    /// Returns the next bytes to send, if the received parts yield any.
    fn make(mut self) -> Made {
        let share = &mut self.share;
        let made = self.parts.pass(&mut |bytes| share.grow(bytes as u64).is_ok());
        (self, made)
    }
}

impl Files {
    /// Runs [`FileParts::make`], inline or on the pool. Returns `None` if more of the body is
    /// needed.
    fn poll_made(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, GatewayError>> {
        // A field may also arrive between or after files. A large one would block this thread while
        // it is mapped.
        if let FilesState::Here(files) = &self.state
            && files.parts.begun_bytes() as u64 > LIGHT_BYTES_MAX
            && let FilesState::Here(files) = std::mem::replace(&mut self.state, FilesState::Ended)
        {
            let heavy = self.heavy.clone();
            self.state = FilesState::Apart(Box::pin(async move { heavy.work(|| files.make()).await }));
        }
        let (files, made) = match std::mem::replace(&mut self.state, FilesState::Ended) {
            FilesState::Here(files) => files.make(),
            FilesState::Apart(mut work) => match work.as_mut().poll(cx) {
                Poll::Ready(Some(made)) => made,
                Poll::Ready(None) => {
                    let detail = "work on a large field of a body broke off";
                    return Poll::Ready(Err(GatewayError::new(ErrorKind::Internal, detail)));
                }
                Poll::Pending => {
                    self.state = FilesState::Apart(work);
                    return Poll::Pending;
                }
            },
            FilesState::Ended => return Poll::Ready(Ok(None)),
        };
        self.state = FilesState::Here(files);
        Poll::Ready(made.map_err(|fault| self.broken(&fault)))
    }

    /// Returns the body of the call.
    fn into_body(mut self) -> Body {
        Body::generated(move |cx| self.poll_chunk(cx), ErrorSide::Client)
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, GatewayError>>> {
        if let Some(beginning) = self.beginning.take() {
            return Poll::Ready(Some(Ok(beginning)));
        }
        for _ in 0..SILENT_PIECES_MAX {
            if let Some(made) = ready!(self.poll_made(cx))? {
                return Poll::Ready(Some(Ok(made)));
            }
            let FilesState::Here(files) = &mut self.state else { return Poll::Ready(None) };
            match ready!(self.body.poll_chunk(cx)).transpose()? {
                Some(chunk) => files.parts.push(chunk),
                None => {
                    let end = files.parts.end().map_err(|fault| self.broken(&fault))?;
                    self.state = FilesState::Ended;
                    return Poll::Ready(Some(Ok(end)));
                }
            }
        }
        // The pieces produced no output. Yield to the runtime, but stay scheduled.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn broken(&self, fault: &Fault) -> GatewayError {
        if fault.kind == FaultKind::Overloaded {
            return limit_error("memory");
        }
        let Origin { file, line } = &self.origin;
        let detail = format!("{fault} ({file}:{line}), after its call was begun");
        GatewayError::new(kind_of(fault.kind), detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use switchback_engine::translate::Settings;
    use switchback_plan::{BodyFormat, Form, FormFormat, FormKind, Key, ObjectOp, Others, PartKind};

    fn files(parts: &[(&str, usize)], memory: &Memory) -> Body {
        waiting_files(parts, memory).1
    }

    /// Files whose fields are kept, after the first of them has come; and then these parts, which
    /// wait to be read.
    fn waiting_files(
        parts: &[(&str, usize)],
        memory: &Memory,
    ) -> (tokio::sync::mpsc::Sender<Result<Bytes, GatewayError>>, Body) {
        let form =
            Arc::new(Form { kind: FormKind::Object { fields: Vec::new(), others: None }, nullable: false });
        let fields = FormFormat { form, lists: Vec::new() };
        let format = Arc::new(MultipartFormat { fields, parts: vec![(Key::new("file"), PartKind::File)] });
        let op = ValueOp::Object(Arc::new(ObjectOp {
            name: "t".into(),
            members: Vec::new(),
            others: Others::Keep,
            close: Vec::new(),
            captures: 0,
            supplied: 0,
        }));
        let (to, named) = (BodyFormat::Multipart(Arc::clone(&format)), multipart::media_type("B"));
        let mut reading = Parts::new(&named, &format, &to, &op, Limits::DOCUMENT, 1 << 20).expect("parts");
        let mut first = Vec::new();
        multipart::write_part("B", "file", None, b"x", &mut first);
        reading.push(first.into());
        assert_eq!(reading.gather(&mut |_| true).expect("a file"), Gathered::File);
        reading.fields(Gathered::File).expect("no fields");
        reading.begin("B0", Arc::new(Settings::default()));
        let mut rest = Vec::new();
        for (name, bytes) in parts {
            multipart::write_part("B", name, None, &vec![b'y'; *bytes], &mut rest);
        }
        multipart::write_end("B", &mut rest);
        let (sender, body) = Body::channel(rest.len() / 1000 + 1, None);
        for piece in rest.chunks(1000) {
            sender.try_send(Ok(Bytes::copy_from_slice(piece))).expect("there is room");
        }
        let files = FileParts { parts: Box::new(reading), share: memory.share() };
        let (heavy, origin) = (Heavy::default(), Origin { file: "t".into(), line: 7 });
        let state = FilesState::Here(files);
        (sender, Files { body, state, beginning: None, heavy, origin }.into_body())
    }

    #[tokio::test]
    async fn no_more_of_a_body_is_read_than_is_sent() {
        let memory = Memory::new(1 << 20);
        let (sender, mut body) = waiting_files(&[("file", 50_000)], &memory);
        let (all, before) = (sender.max_capacity(), sender.capacity());
        assert!(before <= 1, "{before} of {all}");
        for sent in 0..10 {
            assert!(sender.capacity() - before <= sent, "{sent} pieces are sent");
            body.chunk().await.expect("there is more").expect("it is whole");
        }
    }

    #[tokio::test]
    async fn fields_after_a_file_have_their_share_of_the_memory_until_the_body_ends() {
        let memory = Memory::new(1 << 20);
        let mut body = files(&[("file", 5_000), ("a", 10_000), ("b", 50_000), ("file", 5_000)], &memory);
        let (mut passed, mut used_most) = (0, 0);
        while let Some(chunk) = body.chunk().await {
            passed += chunk.expect("there is memory").len();
            used_most = used_most.max(memory.bytes_used());
        }
        assert!(passed > 70_000, "{passed}");
        assert!((200_000..300_000).contains(&used_most), "the fields, one at a time: {used_most}");
        drop(body);
        assert_eq!(memory.bytes_used(), 0);
        let memory = Memory::new(30_000);
        let short = files(&[("file", 50_000), ("a", 10_000)], &memory).whole().await.expect_err("too little");
        assert!(matches!(short.kind(), ErrorKind::Overloaded { .. }), "{short:?}");
        assert_eq!(memory.bytes_used(), 0);
        assert!(files(&[("file", 50_000), ("a", 5_000)], &memory).whole().await.is_ok());
    }
}
