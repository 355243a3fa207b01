//! The yardstick for translation: hyper with `serde_json::Value`, buffered bodies, and a
//! handwritten mapping of three operations. It was written from the service's document, so it also
//! verifies our mapping files independently.

use crate::proxy::{self, Answer, Upstream, refusal, whole};
use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

struct Gateway {
    upstream: Upstream<Full<Bytes>>,
    /// Tokens of clients, with those of their calls.
    grants: HashMap<Vec<u8>, HeaderValue>,
}

/// Serves one client until the process ends.
///
/// # Errors
/// An address that cannot be listened on.
pub fn serve(listen: SocketAddr, upstream: SocketAddr, client_token: &str, access_token: &str) -> Result<()> {
    let bearer = |token: &str| format!("Bearer {token}");
    let grant = (bearer(client_token).into_bytes(), HeaderValue::from_str(&bearer(access_token))?);
    let gateway = move || Ok(Gateway { upstream: Upstream::new(upstream)?, grants: [grant.clone()].into() });
    proxy::serve(listen, gateway, answer)
}

/// The translated operations.
enum Operation {
    Messages,
    Chat,
    Send,
}

fn operation(method: &Method, path: &str) -> Option<Operation> {
    let rest = path.strip_prefix("/v2/chats/")?;
    let (id, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match (method, rest) {
        (&Method::GET, "/messages") => Some(Operation::Messages),
        (&Method::GET, "") => Some(Operation::Chat),
        (&Method::POST, "/messages") => Some(Operation::Send),
        _ => None,
    }
}

async fn answer(gateway: Arc<Gateway>, request: Request<Incoming>) -> Result<Response<Answer>> {
    let Some(operation) = operation(request.method(), request.uri().path()) else {
        return Ok(refusal(StatusCode::NOT_FOUND));
    };
    let grant =
        request.headers().get("x-authorization").and_then(|token| gateway.grants.get(token.as_bytes()));
    let Some(authorization) = grant else { return Ok(refusal(StatusCode::UNAUTHORIZED)) };
    let path = request.uri().path_and_query().context("a path was matched")?.as_str();
    let path = path.replacen("/v2/", "/v3/", 1).parse()?;
    let mut call = Request::builder()
        .method(request.method())
        .uri(gateway.upstream.uri(path))
        .header(HOST, gateway.upstream.host.clone())
        .header(AUTHORIZATION, authorization.clone())
        .header(ACCEPT, JSON)
        .body(Full::default())?;
    if let Operation::Send = operation {
        let body = request.into_body().collect().await?.to_bytes();
        let Ok(message) = serde_json::from_slice(&body) else { return Ok(refusal(StatusCode::BAD_REQUEST)) };
        call.headers_mut().insert(CONTENT_TYPE, JSON);
        *call.body_mut() = Full::new(serde_json::to_vec(&pick(message, &["text", "isInternal"]))?.into());
    }
    let response = gateway.upstream.send(call).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    let body = match operation {
        _ if !status.is_success() => body,
        Operation::Send => return Ok(whole(StatusCode::CREATED, Bytes::new())),
        Operation::Messages => serde_json::to_vec(&messages(serde_json::from_slice(&body)?))?.into(),
        Operation::Chat => serde_json::to_vec(&chat(serde_json::from_slice(&body)?))?.into(),
    };
    let mut answer = whole(status, body);
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    Ok(answer)
}

/// Returns the named members of an object that are present, in this order.
fn pick(mut from: Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    names.iter().filter_map(|name| from.remove_entry(*name)).collect()
}

/// Returns a list of messages in the form of the old version.
pub fn messages(list: Vec<Map<String, Value>>) -> Vec<Map<String, Value>> {
    list.into_iter().map(message).collect()
}

fn message(mut from: Map<String, Value>) -> Map<String, Value> {
    const RENAMED: [(&str, &str); 5] = [
        ("text", "body"),
        ("isInternal", "is_internal"),
        ("isEmail", "is_email"),
        ("sendAt", "send_at"),
        ("readAt", "read_at"),
    ];
    let mut out = Map::new();
    for (old, new) in RENAMED {
        if let Some(value) = from.remove(old) {
            out.insert(new.to_owned(), value);
        }
    }
    if let Some(Value::Object(chat)) = from.remove("chat") {
        let chat = pick(chat, &["id", "channel", "situation", "department", "customer"]);
        for name in ["channel", "customer"] {
            out.insert(name.to_owned(), chat.get(name).cloned().unwrap_or_default());
        }
        out.insert("chat".to_owned(), Value::Object(chat));
    }
    out.extend(pick(from, &["id", "senderType", "receiverType", "file", "type", "sender", "receiver"]));
    out.insert("eventType".to_owned(), Value::Null);
    out
}

fn chat(mut from: Map<String, Value>) -> Map<String, Value> {
    const SAME: [&str; 11] = [
        "id",
        "agentId",
        "secondAgentId",
        "contactId",
        "departmentId",
        "tabulationId",
        "queueNumber",
        "createdAt",
        "updatedAt",
        "attendedAt",
        "closedAt",
    ];
    let channels = from.remove("channels");
    let mut out = pick(from, &SAME);
    if let Some(Value::Array(channels)) = channels {
        let channel = |value| match value {
            Value::Object(channel) => Value::Object(pick(channel, &["uuid", "id", "name", "type"])),
            other => other,
        };
        out.insert("channels".to_owned(), channels.into_iter().map(channel).collect());
    }
    out.insert("siteCustomerId".to_owned(), Value::Null);
    out.insert("messengerId".to_owned(), Value::Null);
    out
}
