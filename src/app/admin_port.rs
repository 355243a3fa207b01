//! The service of the admin port: checks the credential of each request, and passes it to the admin
//! API or to the studio.

use crate::admin::{self, AccessLevel, AdminParts, AdminResponse, Guard, SessionPolicy};
use crate::studio::Studio;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use switchback_gateway::body::Body;
use switchback_gateway::server::ConnectionHandle;

/// The service of the admin port, or of a port with a part of it. Clones share their parts.
#[derive(Clone)]
pub struct Admin {
    parts: Arc<AdminParts>,
    guard: Arc<Guard>,
    studio: Arc<Studio>,
    area: Area,
}

/// The part of the admin port that a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    All,
    /// For the admin port if the callback has a separate port.
    AllButCallback,
    /// Health only.
    Health,
    /// The OAuth callback only.
    Callback,
}

impl Area {
    fn has(self, path: &str) -> bool {
        let (is_health, is_callback) = (path.starts_with("/healthz/"), path == "/oauth/callback");
        match self {
            Area::All => true,
            Area::AllButCallback => !is_callback,
            Area::Health => is_health,
            Area::Callback => is_callback,
        }
    }
}

impl Admin {
    /// Creates the port with its tokens, session lifetimes, and permitted host names in addition to
    /// addresses and `localhost`, in lower case.
    pub fn new(parts: AdminParts, access: &SessionPolicy, hosts: Vec<String>) -> Admin {
        let guard = Arc::new(Guard::new(access, hosts, parts.store.clone(), parts.clock.clone()));
        let parts = Arc::new(parts);
        let studio = Arc::new(Studio::new(Arc::clone(&parts), Arc::clone(&guard)));
        Admin { parts, guard, studio, area: Area::All }
    }

    /// Samples traffic for the studio's charts. Never returns.
    pub async fn watch(self) {
        self.studio.watch().await;
    }

    /// Announces the end of this process to other replicas.
    pub async fn leave(&self) {
        self.studio.leave().await;
    }

    pub fn set_access(&self, access: &SessionPolicy, hosts: Vec<String>) {
        self.guard.set_access(access, hosts);
    }

    /// Returns a service for a part of the port.
    #[must_use]
    pub fn area(&self, area: Area) -> Admin {
        Admin { area, ..self.clone() }
    }

    async fn answer(self, request: Request<Body>) -> Response<Body> {
        let is_head = request.method() == Method::HEAD;
        if !self.area.has(request.uri().path()) {
            return admin::nothing_here().into_response(is_head);
        }
        let need = admin::need(request.uri().path(), request.method());
        let (head, body) = request.into_parts();
        let has_body = !body.is_empty();
        let checked = self.guard.check(&head, need).await;
        let answer = match checked {
            Ok(()) => {
                let is_known = match need {
                    // Health and callback need no credential, so a connection that uses only them may be
                    // evicted.
                    AccessLevel::Nothing => false,
                    AccessLevel::Visitor => self.guard.visitor(&head.headers).await.is_some(),
                    AccessLevel::ToRead | AccessLevel::ToChange => true,
                };
                // Exempt connections with a valid token from eviction by others. On an open port every
                // connection would be exempt, which would disable eviction.
                if is_known
                    && !self.guard.is_open()
                    && let Some(standing) = head.extensions.get::<ConnectionHandle>()
                {
                    standing.trust();
                }
                let request = Request::from_parts(head, body);
                match need {
                    AccessLevel::Visitor => self.studio.answer(request).await,
                    _ => self.call(request).await.unwrap_or_else(|error| error),
                }
            }
            Err(refusal) => close_if(has_body, refusal),
        };
        answer.into_response(is_head)
    }

    /// Runs a call of the API, or of health, metrics or the callback.
    async fn call(&self, request: Request<Body>) -> Result<AdminResponse, AdminResponse> {
        let path = request.uri().path().to_owned();
        let found = admin::find(request.method(), &path);
        let (route, id) = found.map_err(|error| close_if(!request.body().is_empty(), error))?;
        let (head, body) = request.into_parts();
        let request = Request::from_parts(head.clone(), body);
        match route.run(&self.parts, id, request).await {
            Some(answer) => answer,
            None => Ok(self.studio.api(&head).await),
        }
    }
}

/// Announces the end of a connection with an unread body, which the server closes.
fn close_if(has_body: bool, answer: AdminResponse) -> AdminResponse {
    if has_body { answer.with_header("connection", "close") } else { answer }
}

impl tower::Service<Request<Body>> for Admin {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let admin = self.clone();
        Box::pin(async move { Ok(admin.answer(request).await) })
    }
}
