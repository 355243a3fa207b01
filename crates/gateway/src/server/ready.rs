//! Readiness of a service before each request, as tower's contract requires. A service that is
//! ready at the first poll, as most are, is called at once.

use http::{Request, Response};
use pin_project_lite::pin_project;
use std::convert::Infallible;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tower::Service;

/// Calls `service` if it is ready. Otherwise moves it into the returned future and leaves a clone
/// in its place. A reservation made while waiting (a permit, a place in a queue) then belongs to
/// this request alone: an idle connection does not hold it, and other requests of the connection
/// are not delayed.
pub(super) fn call<S, B>(service: &mut S, request: Request<B>) -> Calling<S, B>
where
    S: Service<Request<B>, Error = Infallible> + Clone,
{
    match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(())) => Calling::Answering { answering: service.call(request) },
        Poll::Pending => {
            let fresh = service.clone();
            Calling::Waiting { service: mem::replace(service, fresh), request: Some(request) }
        }
    }
}

pin_project! {
    /// A request that waits for the service to be ready, or for its response.
    #[project = CallingProjection]
    pub(super) enum Calling<S, B>
    where
        S: Service<Request<B>>,
    {
        Waiting { service: S, request: Option<Request<B>> },
        Answering {
            #[pin]
            answering: S::Future,
        },
    }
}

impl<S, B, A> Future for Calling<S, B>
where
    S: Service<Request<B>, Response = Response<A>, Error = Infallible>,
{
    type Output = Result<Response<A>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let answering = match self.as_mut().project() {
                CallingProjection::Answering { answering } => return answering.poll(cx),
                CallingProjection::Waiting { service, request } => {
                    let Ok(()) = ready!(service.poll_ready(cx));
                    service.call(request.take().expect("it waits with its request"))
                }
            };
            self.set(Calling::Answering { answering });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::{Ready, ready};
    use std::sync::Arc;
    use tower::limit::ConcurrencyLimit;
    use tower::service_fn;

    fn echo() -> impl Service<
        Request<u8>,
        Response = Response<u8>,
        Error = Infallible,
        Future = Ready<Result<Response<u8>, Infallible>>,
    > + Clone {
        service_fn(|request: Request<u8>| ready(Ok(Response::new(request.into_body()))))
    }

    #[tokio::test]
    async fn what_waits_takes_its_place_with_it_and_gives_it_back_when_it_is_dropped() {
        let permits = Arc::new(tokio::sync::Semaphore::new(1));
        let mut service = ConcurrencyLimit::with_semaphore(echo(), Arc::clone(&permits));
        let first = call(&mut service, Request::new(1));
        let mut second = Box::pin(call(&mut service, Request::new(2)));
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(second);
        assert_eq!(*first.await.unwrap().body(), 1);
        // The dropped request returned its permit.
        assert_eq!(permits.available_permits(), 1);
        let third = call(&mut service, Request::new(3));
        assert!(matches!(third, Calling::Answering { .. }));
        assert_eq!(*third.await.unwrap().body(), 3);
    }

    #[tokio::test]
    async fn what_waits_goes_on_when_there_is_a_place() {
        let mut service = ConcurrencyLimit::new(echo(), 1);
        let first = call(&mut service, Request::new(1));
        let mut second = Box::pin(call(&mut service, Request::new(2)));
        assert!(futures_util::poll!(&mut second).is_pending());
        first.await.unwrap();
        assert_eq!(*second.await.unwrap().body(), 2);
    }
}
