//! Protocol upgrades (RFC 9110, section 7.8), each on a dedicated connection that is not reused.

use super::connect::Connector;
use super::connection::Outgoing;
use super::patience::HeadDeadline;
use super::pool::Unanswered;
use crate::body::Body;
use crate::error::ErrorSide;
use crate::proxy::Response;
use crate::tunnel::Switched;
use http::StatusCode;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

/// Sends an upgrade request. Uses HTTP/1.1, because HTTP/2 has no `Upgrade` field (RFC 9113,
/// section 8.6).
pub(super) async fn exchange(
    connector: &Connector,
    request: http::Request<Outgoing>,
    patience: &HeadDeadline,
) -> Result<Response, Unanswered> {
    let exchanging = async {
        // A pooled connection cannot be used: after the switch it carries another protocol for
        // good.
        let stream = connector.connect_http1().await.map_err(Unanswered::Unreachable)?;
        let handshake = http1::handshake::<_, Outgoing>(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(Unanswered::Broken)?;
        // The task finishes with the response, or when both ends of the tunnel have been dropped.
        tokio::spawn(connection.with_upgrades());
        let mut response = sender.send_request(request).await.map_err(Unanswered::Broken)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response.map(|body| Body::incoming(body, ErrorSide::Upstream)));
        }
        let upgraded = hyper::upgrade::on(&mut response).await.map_err(Unanswered::Broken)?;
        let mut response = response.map(|_| Body::empty());
        response.extensions_mut().insert(Switched::new(upgraded));
        Ok(response)
    };
    patience.wait(exchanging).await.map_err(|_| Unanswered::Late)?
}
