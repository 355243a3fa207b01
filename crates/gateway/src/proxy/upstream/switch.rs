//! A call after which its connection may speak another protocol (RFC 9110, section 7.8): a connection of its own, which
//! nobody uses again.

use super::connection::Outgoing;
use super::pool::Unanswered;
use super::secure;
use crate::body::Body;
use crate::error::Side;
use crate::proxy::Response;
use crate::proxy::limits::Limits;
use crate::tls::TlsSetup;
use crate::tunnel::Switched;
use http::{StatusCode, Uri};
use hyper::client::conn::http1;
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::HttpConnector;
use std::time::Duration;
use tower::ServiceExt as _;

/// Makes such a call over plain TCP.
pub(super) async fn plain(
    (connector, address): (HttpConnector, Uri),
    request: http::Request<Outgoing>,
    patience: Duration,
) -> Result<Response, Unanswered> {
    in_time(patience, async {
        let io = connector.oneshot(address).await;
        exchange(io.map_err(|error| Unanswered::Unreachable(error.into()))?, request).await
    })
    .await
}

/// The same over TLS.
pub(super) async fn secured(
    setup: &TlsSetup,
    limits: &Limits,
    address: Uri,
    request: http::Request<Outgoing>,
    patience: Duration,
) -> Result<Response, Unanswered> {
    // HTTP/1.1 alone: over HTTP/2 there is nothing to go over from.
    let connector = secure::connecting(setup).enable_http1().wrap_connector(secure::tcp(limits));
    in_time(patience, async {
        exchange(connector.oneshot(address).await.map_err(Unanswered::Unreachable)?, request).await
    })
    .await
}

async fn in_time(
    patience: Duration,
    exchange: impl Future<Output = Result<Response, Unanswered>>,
) -> Result<Response, Unanswered> {
    tokio::time::timeout(patience, exchange).await.map_err(|_| Unanswered::Late)?
}

async fn exchange<T>(io: T, request: http::Request<Outgoing>) -> Result<Response, Unanswered>
where
    T: Read + Write + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake::<_, Outgoing>(io).await.map_err(Unanswered::Broken)?;
    // It ends with the answer, or when both sides of the tunnel have let go of it.
    tokio::spawn(connection.with_upgrades());
    let mut response = sender.send_request(request).await.map_err(Unanswered::Broken)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(response.map(|body| Body::incoming(body, Side::Upstream)));
    }
    let upgraded = hyper::upgrade::on(&mut response).await.map_err(Unanswered::Broken)?;
    let mut response = response.map(|_| Body::empty());
    response.extensions_mut().insert(Switched::new(upgraded));
    Ok(response)
}
