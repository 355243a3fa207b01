//! A call after which its connection may speak another protocol (RFC 9110, section 7.8): a connection of its own, which
//! nobody uses again.

use super::connect::Connector;
use super::connection::Outgoing;
use super::patience::Patience;
use super::pool::Unanswered;
use crate::body::Body;
use crate::error::Side;
use crate::proxy::Response;
use crate::tunnel::Switched;
use http::StatusCode;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

/// Makes such a call. It is made in HTTP/1.1: over HTTP/2 there is nothing to go
/// over from.
pub(super) async fn exchange(
    connector: &Connector,
    request: http::Request<Outgoing>,
    patience: &Patience,
) -> Result<Response, Unanswered> {
    let exchanging = async {
        let stream = connector.connect_http1().await.map_err(Unanswered::Unreachable)?;
        let handshake = http1::handshake::<_, Outgoing>(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(Unanswered::Broken)?;
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
    };
    patience.wait(exchanging).await.map_err(|_| Unanswered::Late)?
}
