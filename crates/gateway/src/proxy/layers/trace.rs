//! Records a sampled request as a span; `request_id` makes the sampling decision. Attribute names
//! follow the OpenTelemetry semantic conventions for HTTP (1.4x, stable); others have the prefix
//! `switchback.`. Paths are masked as in the access log. Header fields and bodies are not recorded.

use super::ending::EndedRequest;
use crate::body::BodyEnd;
use crate::proxy::unknown_calls::registered_method;
use crate::telemetry::otlp::{EndedSpan, KeyValue};
use http::uri::Authority;
use http::{Version, header};

/// The method of a span whose request has one that the conventions do not list.
const OTHER_METHOD: &str = "_OTHER";

/// Records the span of a request, if it is sampled.
pub(super) fn record(ended: &EndedRequest<'_>) {
    let EndedRequest { facts, ending, .. } = ended;
    let context = facts.context;
    let Some(span) = &context.span else { return };
    let path = facts.shown_path();
    let has_route = facts.has_operation();
    let method = registered_method(&context.method).unwrap_or(OTHER_METHOD);
    let mut attributes = vec![
        KeyValue::new("http.request.method", method),
        KeyValue::new(
            "url.scheme",
            if context.sender.peer.is_some_and(|peer| peer.is_tls) { "https" } else { "http" },
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
    add("switchback.operation", facts.operation());
    add("switchback.client", facts.client());
    if method == OTHER_METHOD {
        add("http.request.method_original", context.method.as_str());
    }
    let status = ending.sent().map(|status| status.to_string());
    let is_failed =
        ending.sent().is_some_and(|status| status >= 500) || ending.end() == Some(BodyEnd::Failed);
    let error = match (&facts.error, ending.end()) {
        (Some(error), _) if is_failed => error.kind,
        (_, Some(BodyEnd::Complete)) if is_failed => status.as_deref().unwrap_or_default(),
        (_, Some(BodyEnd::Complete)) => "",
        (_, Some(BodyEnd::Failed)) => "broke_off",
        (_, Some(BodyEnd::Abandoned) | None) => "client_gone",
    };
    add("error.type", error);
    if let Some(address) = context.sender.address {
        add("client.address", &address.to_string());
    }
    add("switchback.phase", facts.phase);
    add("switchback.answered_by", facts.answered_by());
    add("switchback.outcome", ending.outcome(facts).as_str());
    let asked = context.headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse().ok());
    if let Some(server) = asked.as_ref().or(context.uri.authority()) {
        let server: &Authority = server;
        add("server.address", server.host());
        attributes.extend(server.port_u16().map(|port| KeyValue::new("server.port", i64::from(port))));
    }
    attributes
        .extend(ending.sent().map(|status| KeyValue::new("http.response.status_code", i64::from(status))));
    let name = if has_route { format!("{method} {path}") } else { method.to_owned() };
    let started = context.arrived;
    let until = started + ended.took;
    span.record(EndedSpan { name, started, ended: until, attributes, is_failed });
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "2",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    }
}
