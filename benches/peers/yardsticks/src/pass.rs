//! The yardstick for forwarding: plain hyper, which forwards a request, streams its answer back,
//! and does nothing else.

use crate::proxy::{self, Answer, Upstream};
use anyhow::Result;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST};
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response};
use std::net::SocketAddr;
use std::sync::Arc;

/// Serves until the process ends.
///
/// # Errors
/// An address that cannot be listened on.
pub fn serve(listen: SocketAddr, upstream: SocketAddr) -> Result<()> {
    proxy::serve(listen, move || Upstream::new(upstream), pass)
}

async fn pass(upstream: Arc<Upstream<Incoming>>, mut request: Request<Incoming>) -> Result<Response<Answer>> {
    let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    *request.uri_mut() = upstream.uri(path);
    request.headers_mut().insert(HOST, upstream.host.clone());
    request.headers_mut().remove(CONNECTION);
    let mut response = upstream.send(request).await?;
    response.headers_mut().remove(CONNECTION);
    Ok(response.map(BodyExt::boxed_unsync))
}
