//! Records a sampled request as a span when its response has ended; `request_id` makes the sampling
//! decision. Attribute names follow the OpenTelemetry semantic conventions for HTTP (1.4x, stable);
//! others have the prefix `switchback.`. Paths are masked as in the access log. Header fields and
//! bodies are not recorded.

use super::ending::ResponseEnd;
use super::middleware::Middleware;
use crate::body::{BodyEnd, BodyWatcher};
use crate::error::GatewayError;
use crate::proxy::context::RequestContext;
use crate::proxy::{Request, Response};
use crate::telemetry::otlp::EndedSpan;
use bytes::Bytes;
use http::uri::Authority;
use http::{Method, Version, header};
use opentelemetry::KeyValue;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

#[derive(Clone, Copy, Default)]
pub(crate) struct Trace;

impl Middleware<Request> for Trace {
    type Inward = Request;
    type Kept = Option<PendingSpan>;
    type Fault = Infallible;

    fn before(&self, request: Request) -> ControlFlow<Result<Response, Infallible>, (Request, Self::Kept)> {
        let is_recorded = request.context.span.is_some();
        let gathered = is_recorded.then(|| PendingSpan {
            context: Arc::clone(&request.context),
            status: None,
            ending: ResponseEnd::default(),
        });
        ControlFlow::Continue((request, gathered))
    }

    fn after(gathered: Option<PendingSpan>, response: &mut Response) {
        if let Some(mut gathered) = gathered {
            gathered.status = Some(response.status().as_u16());
            gathered.ending.on_response(response);
            response.body_mut().watch(Box::new(gathered));
        }
    }
}

/// A span under construction. `Drop` records it, so each request has exactly one span.
pub(crate) struct PendingSpan {
    context: Arc<RequestContext>,
    status: Option<u16>,
    ending: ResponseEnd,
}

impl BodyWatcher for PendingSpan {
    fn chunk(&mut self, _bytes: &Bytes) {}

    fn on_error(&mut self, error: &GatewayError) {
        self.ending.on_error(error);
    }

    fn end(&mut self, end: BodyEnd) {
        self.ending.on_end(end);
    }
}

impl Drop for PendingSpan {
    fn drop(&mut self) {
        let context = &*self.context;
        let Some(span) = &context.span else { return };
        let path = context.shown_path();
        let has_route = context.operation_matched().is_some();
        let method = known_method(&context.method);
        let mut attributes = vec![
            KeyValue::new("http.request.method", method),
            KeyValue::new(
                "url.scheme",
                if context.peer.is_some_and(|peer| peer.is_tls) { "https" } else { "http" },
            ),
            KeyValue::new("url.path", path.clone()),
            KeyValue::new("network.protocol.version", version(context.version)),
            KeyValue::new("switchback.request_id", context.id.to_string()),
        ];
        let mut add = |name: &'static str, value: &str| {
            if !value.is_empty() {
                attributes.push(KeyValue::new(name, value.to_owned()));
            }
        };
        add("http.route", if has_route { &path } else { "" });
        add("switchback.operation", context.operation());
        add("switchback.client", context.client());
        if method == OTHER_METHOD {
            add("http.request.method_original", context.method.as_str());
        }
        let status = self.status.map(|status| status.to_string());
        let is_failed =
            self.status.is_some_and(|status| status >= 500) || self.ending.end() == Some(BodyEnd::Failed);
        let error = match (context.fault(), self.ending.end()) {
            (Some(fault), _) if is_failed => fault.kind,
            (_, Some(BodyEnd::Complete)) if is_failed => status.as_deref().unwrap_or_default(),
            (_, Some(BodyEnd::Complete)) => "",
            (_, Some(BodyEnd::Failed)) => "broke_off",
            (_, Some(BodyEnd::Abandoned) | None) => "client_gone",
        };
        add("error.type", error);
        if let Some(address) = context.address {
            add("client.address", &address.to_string());
        }
        add("switchback.phase", context.phase());
        add("switchback.answered_by", context.answered_by());
        add("switchback.outcome", self.ending.outcome(context).as_str());
        let asked = context.headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse().ok());
        if let Some(server) = asked.as_ref().or(context.uri.authority()) {
            let server: &Authority = server;
            add("server.address", server.host());
            attributes.extend(server.port_u16().map(|port| KeyValue::new("server.port", i64::from(port))));
        }
        attributes
            .extend(self.status.map(|status| KeyValue::new("http.response.status_code", i64::from(status))));
        let name = if has_route { format!("{method} {path}") } else { method.to_owned() };
        let started = context.arrived;
        let ended = started + context.took();
        span.record(EndedSpan { name, started, ended, attributes, is_failed });
    }
}

const OTHER_METHOD: &str = "_OTHER";

/// Returns the method, or `_OTHER` for one that the conventions do not list, since it may be
/// arbitrary text.
fn known_method(method: &Method) -> &'static str {
    const KNOWN: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or(OTHER_METHOD)
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "2",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    }
}
