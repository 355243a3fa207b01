//! Buffers a small form on fronts whose clients may send their token in a form field, so that
//! `authenticate` can read it. Other requests pass without an allocation and with their body
//! untouched. A form above the size limit passes too; it carries no token.

use crate::body::{Body, BodyStart};
use crate::error::GatewayError;
use crate::memory::Memory;
use crate::proxy::concurrency::limit_error;
use crate::proxy::request::{Form, Routed};
use crate::proxy::{Response, headers};
use futures_util::future::{BoxFuture, Either};
use http::header;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::Service;

/// Maximum size in bytes of a form that is searched for a token.
const FORM_BYTES_MAX: u64 = 64 * 1024;

#[derive(Clone)]
pub(crate) struct FormToken<S> {
    pub inner: S,
    pub memory: Memory,
}

impl<S> Service<Routed> for FormToken<S>
where
    S: Service<Routed, Response = Response, Error = GatewayError, Future: Send> + Clone + Send + 'static,
{
    type Response = Response;
    type Error = GatewayError;
    type Future = Either<S::Future, BoxFuture<'static, Result<Response, GatewayError>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Routed) -> Self::Future {
        if !may_carry_token(&request) {
            return Either::Left(self.inner.call(request));
        }
        // Call the instance that `poll_ready` was called on, not its clone (see `tower::Service`).
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let memory = self.memory.clone();
        Either::Right(Box::pin(async move {
            (request.form, request.body) = buffer_form(request.body, &memory).await?;
            inner.call(request).await
        }))
    }
}

/// Returns whether the front accepts tokens in forms and the body is an uncompressed form that does
/// not announce a size above the limit.
fn may_carry_token(Routed { context, front, body, .. }: &Routed) -> bool {
    context.program.credential(front.serves).uses_forms()
        && !body.is_empty()
        && body.length().is_none_or(|length| length <= FORM_BYTES_MAX)
        && headers::is_form(&context.headers)
        && !context.headers.contains_key(header::CONTENT_ENCODING)
}

/// Returns the form, unless it is too large, and a body with the original content.
async fn buffer_form(body: Body, memory: &Memory) -> Result<(Option<Arc<Form>>, Body), GatewayError> {
    let share = memory.take(body.length().unwrap_or(FORM_BYTES_MAX));
    match body.with_trailers().beginning(FORM_BYTES_MAX).await? {
        BodyStart::Longer(body) => Ok((None, body)),
        BodyStart::Whole(bytes) => {
            // Fail after the body was read: a client that is still sending may lose the response
            // (RFC 9112, section 9.6).
            let share = share.map_err(|_| limit_error("memory"))?;
            let body = Body::full(bytes.clone());
            Ok((Some(Arc::new(Form { bytes, _share: share })), body))
        }
    }
}
