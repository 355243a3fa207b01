//! The gateway for use in other programs: as a [`tower::Service`], or as a [`tower::Layer`] around
//! the service that it calls. [`builder`](self::builder) constructs both, and the parts that the
//! program `switchback` serves through listeners of its own.

mod builder;
mod program;

pub use builder::{BuildError, GatewayBuilder, GatewayParts};
pub use program::{DualSettings, FrontSettings, ProgramSettings, ServiceSettings, Upstreams};

use crate::body::Body;
use crate::error::ErrorSide;
use crate::proxy::side_upstreams::SideUpstreams;
use crate::proxy::stack::{self, StackParts};
use crate::proxy::upstream::{InnerService, Upstream};
use crate::shadow;
use arc_swap::ArcSwap;
use builder::Folder;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::task::JoinHandle;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer, Service, ServiceExt as _};

/// Answers requests of one API version by calling the other. Clones share clients, limits and
/// connections.
///
/// It accepts requests with any body of [`Bytes`] and never fails: errors become responses in the
/// pack's error format. Requests must carry `Host` and the path as sent by the client, including
/// the front's prefix.
///
/// # Examples
///
/// A gateway in front of an API at another address. It rejects clients without a token and makes no
/// call:
///
/// ```
/// use switchback_compiler::mapping::compile;
/// use switchback_compiler::mapping::load::PackSource;
/// use switchback_gateway::Gateway;
/// use switchback_gateway::body::Body;
/// use tower::ServiceExt as _;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../mappings/ingress");
/// let pack = compile(&PackSource::from_dir(folder.as_ref())?).pack.ok_or("the pack has errors")?;
/// let gateway = Gateway::builder()
///     .pack(pack)
///     .front("/old", "v1beta1")
///     .upstream("v1", "https://api.example.com".parse()?)
///     .client("acme", "token-of-acme", [("v1", "token-for-the-api")])
///     .build()
///     .await?;
///
/// let request = http::Request::get("/old/apis/extensions/v1beta1/namespaces/cafe/ingresses/tea");
/// let answer = gateway.oneshot(request.header("host", "gateway.test").body(Body::empty())?).await?;
/// assert_eq!(answer.status(), 401);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway {
    stack: BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>,
    _running: Arc<Running>,
}

impl Gateway {
    /// Returns an empty builder. [`GatewayBuilder::pack`] and [`GatewayBuilder::front`] must be
    /// called; a service also needs [`GatewayBuilder::upstream`] for each side that receives calls.
    pub fn builder() -> GatewayBuilder {
        GatewayBuilder::default()
    }
}

impl Gateway {
    fn new(stack: StackParts, running: Arc<Running>) -> Gateway {
        Gateway { stack: BoxCloneSyncService::new(stack::stack(stack)), _running: running }
    }
}

/// The state that the gateways of a layer share. Each has a program of its own.
struct Prepared {
    settings: ProgramSettings,
    stack: StackParts,
    running: Arc<Running>,
}

/// Background tasks and temporary data, stopped and removed with the last clone.
struct Running {
    refreshing: JoinHandle<()>,
    _workers: shadow::Workers,
    _folder: Option<Folder>,
}

impl Running {
    /// Starts the background tasks of a gateway that its caller does not run.
    fn start(parts: GatewayParts) -> (StackParts, Arc<Running>) {
        let GatewayParts { stack, workers, folder, .. } = parts;
        let refreshing = tokio::spawn(stack.tokens.clone().run());
        (stack, Arc::new(Running { refreshing, _workers: workers, _folder: folder }))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.refreshing.abort();
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl fmt::Debug for GatewayLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayLayer").field("fronts", &self.0.settings.fronts).finish_non_exhaustive()
    }
}

impl<B> Service<Request<B>> for Gateway
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.stack.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.stack.call(request.map(|body| Body::wrap(body, ErrorSide::Client)))
    }
}

/// A gateway around a service that it calls. Created by [`GatewayBuilder::layer`].
///
/// Requests below a front are translated, and the resulting calls run directly on the inner
/// service, without a socket. All other requests reach the inner service unchanged.
///
/// # Examples
///
/// A service that implements the new version answers a client of the old one:
///
/// ```
/// use http::{Request, Response};
/// use std::convert::Infallible;
/// use switchback_compiler::mapping::compile;
/// use switchback_compiler::mapping::load::PackSource;
/// use switchback_gateway::Gateway;
/// use switchback_gateway::body::Body;
/// use tower::{Layer as _, ServiceExt as _, service_fn};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let api = service_fn(|call: Request<Body>| async move {
///     assert_eq!(call.uri().path(), "/apis/networking.k8s.io/v1/namespaces/cafe/ingresses/tea");
///     let ingress = r#"{
///         "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "tea"},
///         "spec": {"defaultBackend": {"service": {"name": "tea", "port": {"number": 80}}}}
///     }"#;
///     let answer = Response::builder().header("content-type", "application/json");
///     Ok::<_, Infallible>(answer.body(Body::full(ingress)).expect("these are header fields"))
/// });
///
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../mappings/ingress");
/// let pack = compile(&PackSource::from_dir(folder.as_ref())?).pack.ok_or("the pack has errors")?;
/// let gateway = Gateway::builder()
///     .pack(pack)
///     .front("/old", "v1beta1")
///     .client("acme", "token-of-acme", [("v1", "token-for-the-api")])
///     .layer()
///     .await?;
/// let both = gateway.layer(api);
///
/// let request = Request::get("/old/apis/extensions/v1beta1/namespaces/cafe/ingresses/tea")
///     .header("host", "gateway.test")
///     .header("authorization", "Bearer token-of-acme")
///     .body(Body::empty())?;
/// let answer = both.oneshot(request).await?;
/// assert_eq!(answer.status(), 200);
/// let body = axum::body::to_bytes(axum::body::Body::new(answer.into_body()), 1 << 20).await?;
/// assert!(body.windows(18).any(|text| text == b"extensions/v1beta1"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct GatewayLayer(Arc<Prepared>);

impl<S, B> Layer<S> for GatewayLayer
where
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Service = Layered<S>;

    fn layer(&self, inner: S) -> Layered<S> {
        let called = inner.clone().map_err(Into::into).map_response(upstream_answer);
        let settings = &self.0.settings;
        let called = InnerService::new(called);
        let upstream = Arc::new(Upstream::in_process("inner", called, settings.limits.upstream));
        let upstreams = |_, _| Some(SideUpstreams::of_all(Arc::clone(&upstream)));
        let program =
            settings.program_with(upstreams).expect("`GatewayBuilder::layer` has checked the settings");
        let program = Arc::new(ArcSwap::from_pointee(program));
        let stack = StackParts { program, ..self.0.stack.clone() };
        let gateway = Gateway::new(stack, Arc::clone(&self.0.running));
        Layered { gateway, inner, prepared: Arc::clone(&self.0) }
    }
}

fn upstream_answer<B>(answer: Response<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    answer.map(|body| Body::wrap(body, ErrorSide::Upstream))
}

/// A service with a gateway around it.
#[derive(Clone)]
pub struct Layered<S> {
    gateway: Gateway,
    inner: S,
    prepared: Arc<Prepared>,
}

impl<S: fmt::Debug> fmt::Debug for Layered<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layered").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, A, B> Service<Request<A>> for Layered<S>
where
    S: Service<Request<Body>, Response = Response<B>, Future: Send> + Clone + Send + 'static,
    A: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        // The request decides which of the two services must be ready, so `call` awaits readiness.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let request = request.map(|body| Body::wrap(body, ErrorSide::Client));
        if self.prepared.settings.is_served(request.uri().path()) {
            let answering = self.gateway.clone().oneshot(request);
            return Box::pin(async move {
                let Ok(answer) = answering.await;
                Ok(answer)
            });
        }
        let answering = self.inner.clone().oneshot(request);
        Box::pin(async move { answering.await.map(upstream_answer) })
    }
}
