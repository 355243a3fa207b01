//! Clients in the admin API. The only secret that it returns is a generated token, once, in the
//! response to the request that created it.

use super::AdminParts;
use super::answer::{AdminResponse, Answer};
use super::api::parse_body;
use crate::operate::{self, Refusal};
use http::{Request, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use switchback_gateway::body::Body;
use switchback_gateway::secret::Secret;
use switchback_gateway::store::GrantFlow;
use switchback_gateway::token::{
    AddedClient, AppCredential, AppKey, ClientInfo, NewClient, NewCredential, NewToken, OAuthApp,
    RegistryError,
};

pub(super) async fn list(parts: &AdminParts) -> Answer {
    AdminResponse::ok(&parts.registry.list().await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddClient {
    name: String,
    company: Option<String>,
    #[schemars(with = "Option<String>")]
    token: Option<Secret<String>>,
    /// The side of the fronts that accept the token; `None`: all.
    side: Option<String>,
    /// Fixed tokens for calls, by side.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    credentials: BTreeMap<String, Secret<String>>,
    /// How its grant obtains access tokens. The default is authorization by a person.
    #[schemars(schema_with = "flow")]
    flow: Option<GrantFlow>,
    #[schemars(with = "Option<String>")]
    client_id: Option<Secret<String>>,
    #[schemars(with = "Option<String>")]
    client_secret: Option<Secret<String>>,
    /// Private key in PEM, in place of a secret (`private_key_jwt`).
    #[schemars(with = "Option<String>")]
    client_key: Option<Secret<String>>,
    /// Id of the private key at the authorization server.
    client_key_id: Option<String>,
    #[schemars(with = "Option<String>")]
    refresh_token: Option<Secret<String>>,
}

fn flow(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": [GrantFlow::AuthorizationCode.name(), GrantFlow::ClientCredentials.name(), null] })
}

pub(super) async fn add(parts: &AdminParts, by: &str, request: Request<Body>) -> Answer {
    let asked: AddClient = parse_body(request).await?;
    let credentials = asked.credentials.into_iter().map(|(side, token)| NewCredential { side, token });
    let new = NewClient {
        name: asked.name,
        company: asked.company,
        tokens: vec![NewToken { side: asked.side, token: asked.token }],
        credentials: credentials.collect(),
        flow: asked.flow.unwrap_or_default(),
        app: app(asked.client_id, asked.client_secret, asked.client_key, asked.client_key_id)?,
        refresh_token: asked.refresh_token,
    };
    let added = changed(parts, "client added", parts.registry.by(by).add(new).await.map(as_json)).await?;
    Ok(AdminResponse::json(StatusCode::CREATED, &added))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rotate {
    #[schemars(with = "Option<String>")]
    token: Option<Secret<String>>,
    /// The side of the token to rotate. Needed only if the client has tokens for several sides.
    side: Option<String>,
    /// Time during which the previous tokens stay valid.
    grace_seconds: Option<u64>,
}

pub(super) async fn rotate(parts: &AdminParts, by: &str, name: &str, request: Request<Body>) -> Answer {
    let asked: Rotate = parse_body(request).await?;
    let grace = asked.grace_seconds.map(Duration::from_secs);
    let new = NewToken { side: asked.side, token: asked.token };
    let rotated = parts.registry.by(by).rotate(name, new, grace).await;
    AdminResponse::ok(&changed(parts, "token rotated", rotated.map(as_json)).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetCredential {
    side: String,
    #[schemars(with = "String")]
    token: Secret<String>,
}

pub(super) async fn credential(parts: &AdminParts, by: &str, name: &str, request: Request<Body>) -> Answer {
    let SetCredential { side, token } = parse_body(request).await?;
    let set = parts.registry.by(by).set_credential(name, NewCredential { side, token }).await;
    AdminResponse::ok(&changed(parts, "credential set", set.map(client_as_json)).await?)
}

pub(super) async fn revoke(parts: &AdminParts, by: &str, name: &str) -> Answer {
    let revoked = parts.registry.by(by).revoke(name).await;
    let revoked = revoked.map(|revoked| json!({ "client": revoked.client, "at_server": revoked.at_server }));
    AdminResponse::ok(&changed(parts, "client revoked", revoked).await?)
}

/// Refreshes the grant of a client. Returns the outcome and the updated client.
pub(super) async fn retry(parts: &AdminParts, by: &str, name: &str) -> Answer {
    let outcome = operate::retry_grant(&parts.registry.by(by), &parts.tokens, name).await?;
    let client = parts.registry.get(name).await?;
    tracing::info!(client = name, "new tokens for a client were requested by the admin API");
    let error = outcome.err().map(|error| error.to_string());
    AdminResponse::ok(&json!({ "client": client, "refreshed": error.is_none(), "error": error }))
}

pub(super) async fn restore(parts: &AdminParts, by: &str, name: &str) -> Answer {
    let restored = parts.registry.by(by).restore(name).await;
    AdminResponse::ok(&changed(parts, "client restored", restored.map(client_as_json)).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Connect {
    #[schemars(with = "Option<String>")]
    client_id: Option<Secret<String>>,
    #[schemars(with = "Option<String>")]
    client_secret: Option<Secret<String>>,
    /// Private key in PEM, in place of a secret (`private_key_jwt`).
    #[schemars(with = "Option<String>")]
    client_key: Option<Secret<String>>,
    /// Id of the private key at the authorization server.
    client_key_id: Option<String>,
}

pub(super) async fn connect(parts: &AdminParts, by: &str, name: &str, request: Request<Body>) -> Answer {
    let asked: Connect = parse_body(request).await?;
    let app = app(asked.client_id, asked.client_secret, asked.client_key, asked.client_key_id)?;
    AdminResponse::ok(&parts.registry.by(by).connect(name, app).await?)
}

/// Applies a stored change to the data path and logs it. Returns the result for the response.
async fn changed(
    parts: &AdminParts,
    what: &str,
    change: Result<Value, RegistryError>,
) -> Result<Value, RegistryError> {
    let value = change?;
    operate::apply_clients(&parts.tokens).await;
    let client = value["client"]["name"].as_str().unwrap_or_default();
    tracing::info!(client, what, "a client was changed by the admin API");
    Ok(value)
}

fn client_as_json(client: ClientInfo) -> Value {
    json!({ "client": client })
}

fn as_json(added: AddedClient) -> Value {
    let mut value = client_as_json(added.client);
    if let Some(token) = added.token {
        value["token"] = Value::String(token.expose().clone());
    }
    value
}

fn app(
    id: Option<Secret<String>>,
    secret: Option<Secret<String>>,
    key: Option<Secret<String>>,
    key_id: Option<String>,
) -> Result<Option<OAuthApp>, Refusal> {
    match (id, secret, key) {
        (Some(id), Some(secret), None) if key_id.is_none() => Ok(Some(OAuthApp::with_secret(id, secret))),
        (Some(id), None, Some(key)) => {
            let key = AppKey::new(key, key_id);
            let key = key.map_err(|error| Refusal::invalid(format!("client_key: {error}")))?;
            Ok(Some(OAuthApp { id, credential: AppCredential::Key(key) }))
        }
        (None, None, None) if key_id.is_none() => Ok(None),
        _ => Err(Refusal::invalid(
            "client_id is given together with client_secret, or with client_key and perhaps client_key_id",
        )),
    }
}
