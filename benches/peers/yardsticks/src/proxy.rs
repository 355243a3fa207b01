//! The common parts of the two hyper yardsticks: a thread with a runtime per core, an HTTP/1.1
//! server, and a client with persistent connections. As lean as hyper permits without tricks, so
//! that a comparison with them is meaningful.

use anyhow::Result;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::header::HeaderValue;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// A body that is streamed or was built.
pub type Answer = UnsyncBoxBody<Bytes, hyper::Error>;

/// The upstream, and the connections to it.
pub struct Upstream<B> {
    client: Client<HttpConnector, B>,
    authority: Authority,
    pub host: HeaderValue,
}

impl<B> Upstream<B>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// # Errors
    /// An address that is not one.
    pub fn new(address: SocketAddr) -> Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        let text = address.to_string();
        Ok(Self { client, authority: text.parse()?, host: HeaderValue::from_str(&text)? })
    }

    /// Returns the address of a path on the upstream.
    pub fn uri(&self, path: PathAndQuery) -> Uri {
        let mut parts = hyper::http::uri::Parts::default();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(path);
        Uri::from_parts(parts).expect("scheme, authority and path make an address")
    }

    /// Sends a request to an address of `uri`.
    ///
    /// # Errors
    /// An upstream that cannot be reached.
    pub async fn send(&self, request: Request<B>) -> Result<Response<Incoming>> {
        Ok(self.client.request(request).await?)
    }
}

/// Serves on all cores until the process ends; `state` is created once per core.
///
/// # Errors
/// An address that cannot be listened on.
pub fn serve<S, F>(
    listen: SocketAddr,
    state: impl Fn() -> Result<S>,
    handle: impl Fn(Arc<S>, Request<Incoming>) -> F + Copy + Send + 'static,
) -> Result<()>
where
    S: Send + Sync + 'static,
    F: Future<Output = Result<Response<Answer>>> + Send + 'static,
{
    let listener = TcpListener::bind(listen)?;
    listener.set_nonblocking(true)?;
    let cores = std::thread::available_parallelism()?.get();
    let mut threads = Vec::new();
    for _ in 0..cores {
        let (listener, state) = (listener.try_clone()?, Arc::new(state()?));
        threads.push(std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(accept(listener, state, handle))
        }));
    }
    for thread in threads {
        thread.join().expect("a thread that serves does not panic")?;
    }
    Ok(())
}

async fn accept<S, F>(
    listener: TcpListener,
    state: Arc<S>,
    handle: impl Fn(Arc<S>, Request<Incoming>) -> F + Copy + Send + 'static,
) -> Result<()>
where
    S: Send + Sync + 'static,
    F: Future<Output = Result<Response<Answer>>> + Send + 'static,
{
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let state = state.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| {
                let answer = handle(state.clone(), request);
                async move {
                    Ok::<_, hyper::Error>(answer.await.unwrap_or_else(|_| refusal(StatusCode::BAD_GATEWAY)))
                }
            });
            // A disconnected client is not an error here.
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await
                .ok();
        });
    }
}

/// Returns an answer with a given body.
pub fn whole(status: StatusCode, body: impl Into<Bytes>) -> Response<Answer> {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

/// Returns an error in the service's form.
pub fn refusal(status: StatusCode) -> Response<Answer> {
    let reason = status.canonical_reason().unwrap_or_default();
    whole(status, format!(r#"{{"reason":"{reason}"}}"#))
}
