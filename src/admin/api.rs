//! The admin API: the data of the studio as JSON, and the management of clients. The only secret
//! that it returns is a generated token, once, in the response to the request that created it.

use super::AdminParts;
use super::answer::AdminResponse;
use bytes::Bytes;
use http::{Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use switchback_gateway::body::Body;
use switchback_gateway::error::ErrorSide;
use switchback_gateway::memory::Memory;
use switchback_gateway::proxy::compose::buffered::buffer;
use switchback_gateway::secret::Secret;
use switchback_gateway::store::{GrantFlow, StoreError};
use switchback_gateway::token::{
    AddedClient, ConnectError, NewClient, NewCredential, NewToken, OAuthApp, RegistryError, Revoked,
    TokenError,
};

/// Largest request body.
const BODY_BYTES_MAX: u64 = 64 << 10;

pub(super) fn config(parts: &AdminParts) -> AdminResponse {
    AdminResponse::json(StatusCode::OK, &parts.board.load().config)
}

pub(super) fn pack(parts: &AdminParts) -> AdminResponse {
    AdminResponse::json(StatusCode::OK, &parts.board.load().pack)
}

/// Returns the finished requests by operation and outcome since start.
pub(super) fn operations(parts: &AdminParts) -> AdminResponse {
    AdminResponse::json(StatusCode::OK, &parts.metrics.requests_by_operation())
}

/// Returns calls to unknown operations and by unknown clients, newest first.
pub(super) fn unknown(parts: &AdminParts) -> AdminResponse {
    AdminResponse::json(StatusCode::OK, &parts.unknown.newest())
}

pub(super) async fn clients(parts: &AdminParts) -> AdminResponse {
    match parts.registry.list().await {
        Ok(clients) => AdminResponse::json(StatusCode::OK, &clients),
        Err(error) => registry_error(&error),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddClient {
    name: String,
    company: Option<String>,
    token: Option<Secret<String>>,
    /// The side of the fronts that accept the token; `None`: all.
    side: Option<String>,
    /// Fixed tokens for calls, by side.
    #[serde(default)]
    credentials: BTreeMap<String, Secret<String>>,
    /// How its grant obtains access tokens. The default is authorization by a person.
    flow: Option<GrantFlow>,
    client_id: Option<Secret<String>>,
    client_secret: Option<Secret<String>>,
    refresh_token: Option<Secret<String>>,
}

pub(super) async fn add(parts: &AdminParts, by: &str, request: Request<Body>) -> AdminResponse {
    let asked: AddClient = match parse_body(request).await {
        Ok(asked) => asked,
        Err(answer) => return answer,
    };
    let app = match app(asked.client_id, asked.client_secret) {
        Ok(app) => app,
        Err(answer) => return answer,
    };
    let new = NewClient {
        name: asked.name,
        company: asked.company,
        tokens: vec![NewToken { side: asked.side, token: asked.token }],
        credentials: asked
            .credentials
            .into_iter()
            .map(|(side, token)| NewCredential { side, token })
            .collect(),
        flow: asked.flow.unwrap_or_default(),
        app,
        refresh_token: asked.refresh_token,
    };
    respond_to_change(
        parts,
        "client added",
        StatusCode::CREATED,
        parts.registry.by(by).add(new).await.map(added_as_json),
    )
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rotate {
    token: Option<Secret<String>>,
    /// The side of the token to rotate. Needed only if the client has tokens for several sides.
    side: Option<String>,
    /// Time during which the previous tokens stay valid.
    grace_seconds: Option<u64>,
}

pub(super) async fn rotate(
    parts: &AdminParts,
    by: &str,
    name: &str,
    request: Request<Body>,
) -> AdminResponse {
    let asked: Rotate = match parse_body(request).await {
        Ok(asked) => asked,
        Err(answer) => return answer,
    };
    let grace = asked.grace_seconds.map(Duration::from_secs);
    let new = NewToken { side: asked.side, token: asked.token };
    respond_to_change(
        parts,
        "token rotated",
        StatusCode::OK,
        parts.registry.by(by).rotate(name, new, grace).await.map(added_as_json),
    )
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetCredential {
    side: String,
    token: Secret<String>,
}

pub(super) async fn credential(
    parts: &AdminParts,
    by: &str,
    name: &str,
    request: Request<Body>,
) -> AdminResponse {
    let asked: SetCredential = match parse_body(request).await {
        Ok(asked) => asked,
        Err(answer) => return answer,
    };
    let new = NewCredential { side: asked.side, token: asked.token };
    let client = parts.registry.by(by).set_credential(name, new).await;
    respond_to_change(
        parts,
        "credential set",
        StatusCode::OK,
        client.map(|client| json!({ "client": client })),
    )
    .await
}

pub(super) async fn revoke(parts: &AdminParts, by: &str, name: &str) -> AdminResponse {
    respond_to_change(
        parts,
        "client revoked",
        StatusCode::OK,
        parts.registry.by(by).revoke(name).await.map(|revoked| {
            let Revoked { client, at_server } = revoked;
            json!({ "client": client, "at_server": at_server })
        }),
    )
    .await
}

/// Refreshes the grant of a client. Returns the outcome and the updated client.
pub(super) async fn retry(parts: &AdminParts, by: &str, name: &str) -> AdminResponse {
    let outcome = match retry_grant(parts, by, name).await {
        Ok(outcome) => outcome,
        Err(error) => return registry_error(&error),
    };
    match parts.registry.get(name).await {
        Ok(client) => {
            tracing::info!(client = name, "new tokens for a client were requested by the admin API");
            let error = outcome.err().map(|error| error.to_string());
            let value = json!({ "client": client, "refreshed": error.is_none(), "error": error });
            AdminResponse::json(StatusCode::OK, &value)
        }
        Err(error) => registry_error(&error),
    }
}

/// Refreshes the grant of a client and waits for the outcome.
pub(crate) async fn retry_grant(
    parts: &AdminParts,
    by: &str,
    name: &str,
) -> Result<Result<(), TokenError>, RegistryError> {
    let asked = parts.registry.by(by).retry(name).await?;
    parts.tokens.sync().await?;
    Ok(parts.tokens.refresh(name, asked.grant.generation).await)
}

pub(super) async fn restore(parts: &AdminParts, by: &str, name: &str) -> AdminResponse {
    let client = parts.registry.by(by).restore(name).await;
    let client = client.map(|client| json!({ "client": client }));
    respond_to_change(parts, "client restored", StatusCode::OK, client).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Connect {
    client_id: Option<Secret<String>>,
    client_secret: Option<Secret<String>>,
}

pub(super) async fn connect(
    parts: &AdminParts,
    by: &str,
    name: &str,
    request: Request<Body>,
) -> AdminResponse {
    let asked: Connect = match parse_body(request).await {
        Ok(asked) => asked,
        Err(answer) => return answer,
    };
    let app = match app(asked.client_id, asked.client_secret) {
        Ok(app) => app,
        Err(answer) => return answer,
    };
    match parts.registry.by(by).connect(name, app).await {
        Ok(link) => AdminResponse::json(StatusCode::OK, &link),
        Err(ConnectError::Registry(error)) => registry_error(&error),
        Err(error) => AdminResponse::error(StatusCode::CONFLICT, error.to_string()),
    }
}

pub(super) fn reload(parts: &Arc<AdminParts>, by: &str) -> AdminResponse {
    parts.ask_for_reload(by);
    AdminResponse::json(StatusCode::ACCEPTED, &json!({ "reload": "asked for; /api/pack says how it went" }))
}

/// Returns the result of a change to clients. Applies it to the data path at once, instead of at
/// the next synchronization.
async fn respond_to_change(
    parts: &AdminParts,
    what: &str,
    status: StatusCode,
    outcome: Result<Value, RegistryError>,
) -> AdminResponse {
    let value = match outcome {
        Ok(value) => value,
        Err(error) => return registry_error(&error),
    };
    if let Err(error) = parts.tokens.sync().await {
        tracing::warn!(%error, "a change of clients is stored; it is taken up at the next look at the store");
    }
    let client = value["client"]["name"].as_str().unwrap_or_default();
    tracing::info!(client, what, "a client was changed by the admin API");
    AdminResponse::json(status, &value)
}

fn added_as_json(added: AddedClient) -> Value {
    let mut value = json!({ "client": added.client });
    if let Some(token) = added.token {
        value["token"] = Value::String(token.expose().clone());
    }
    value
}

fn app(
    id: Option<Secret<String>>,
    secret: Option<Secret<String>>,
) -> Result<Option<OAuthApp>, AdminResponse> {
    match (id, secret) {
        (Some(id), Some(secret)) => Ok(Some(OAuthApp { id, secret })),
        (None, None) => Ok(None),
        _ => Err(AdminResponse::error(
            StatusCode::BAD_REQUEST,
            "client_id and client_secret are given together",
        )),
    }
}

/// Reads a JSON body. An empty body counts as an empty object, since some calls have no required
/// members.
pub(super) async fn parse_body<T: DeserializeOwned>(request: Request<Body>) -> Result<T, AdminResponse> {
    read_up_to(request, BODY_BYTES_MAX).await
}

/// Reads a JSON body of at most `bytes_max` bytes.
pub(super) async fn read_up_to<T: DeserializeOwned>(
    request: Request<Body>,
    bytes_max: u64,
) -> Result<T, AdminResponse> {
    let body = read_bytes(request, bytes_max).await?;
    let body: &[u8] = if body.is_empty() { b"{}" } else { &body };
    // The parser's message may quote a wrong value, which can be a secret. Return only the
    // position.
    serde_json::from_slice(body).map_err(|error| {
        let what = if error.is_data() { "is not what this call takes" } else { "is not JSON" };
        let (line, column) = (error.line(), error.column());
        AdminResponse::error(
            StatusCode::BAD_REQUEST,
            format!("the body {what} (line {line}, column {column})"),
        )
    })
}

/// Reads a body of at most `bytes_max` bytes.
pub(crate) async fn read_bytes(request: Request<Body>, bytes_max: u64) -> Result<Bytes, AdminResponse> {
    // A growing buffer is copied, so allow for more than twice the body.
    let memory = Memory::new(4 * bytes_max);
    let body = buffer(request.into_body(), ErrorSide::Client, bytes_max, memory.share()).await;
    let body = body.map_err(|_| {
        AdminResponse::error(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large, or broke off")
    })?;
    Ok(body.bytes)
}

fn registry_error(error: &RegistryError) -> AdminResponse {
    let status = match error {
        RegistryError::Name(_)
        | RegistryError::Side(_)
        | RegistryError::Flow
        | RegistryError::Token
        | RegistryError::NoApp
        | RegistryError::WhichSide { .. } => StatusCode::BAD_REQUEST,
        RegistryError::Revoked(_)
        | RegistryError::NotRevoked(_)
        | RegistryError::NotConnected(_)
        | RegistryError::Configured { .. } => StatusCode::CONFLICT,
        RegistryError::Store(StoreError::NoSuchClient(_)) => StatusCode::NOT_FOUND,
        RegistryError::Store(
            StoreError::NameTaken(_)
            | StoreError::TokenTaken(_)
            | StoreError::RefreshTokenTaken(_)
            | StoreError::Tampered(_),
        ) => StatusCode::CONFLICT,
        RegistryError::Store(error) => {
            tracing::error!(%error, "a request of the admin API failed in the store");
            return AdminResponse::error(
                StatusCode::SERVICE_UNAVAILABLE,
                "the store did not do it; the log says why",
            );
        }
    };
    AdminResponse::error(status, error.to_string())
}
