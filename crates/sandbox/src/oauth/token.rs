//! `POST /oauth/access_token`: exchanges codes and refresh tokens for access tokens. Bodies are
//! JSON, as documented; errors follow RFC 6749, section 5.2.

use super::{Issued, Refused, Vault};
use crate::answer::Answer;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};

/// The registered app.
pub struct App<'a> {
    pub client_id: &'a str,
    pub client_secret: &'a str,
}

#[derive(Serialize)]
struct Tokens {
    token_type: &'static str,
    expires_in: u64,
    access_token: String,
    refresh_token: String,
}

struct Refusal {
    status: StatusCode,
    error: &'static str,
    description: String,
}

/// Answers a call of the token endpoint.
pub fn answer(
    vault: &mut Vault,
    app: &App<'_>,
    method: &Method,
    headers: &HeaderMap,
    body: &[u8],
    now_ms: i64,
) -> Answer {
    if method != Method::POST {
        let refusal =
            refuse(StatusCode::NOT_IMPLEMENTED, "invalid_request", "The token endpoint takes POST.");
        return error(&refusal).with(ALLOW, HeaderValue::from_static("POST"));
    }
    match grant(vault, app, headers, body, now_ms) {
        Ok(issued) => Answer::json(
            StatusCode::OK,
            &Tokens {
                token_type: "Bearer",
                expires_in: issued.expires_in,
                access_token: issued.access_token,
                refresh_token: issued.refresh_token,
            },
        )
        .with(CACHE_CONTROL, HeaderValue::from_static("no-store")),
        Err(refusal) => error(&refusal),
    }
}

fn error(refusal: &Refusal) -> Answer {
    let body = serde_json::json!({"error": refusal.error, "error_description": refusal.description});
    Answer::json(refusal.status, &body).with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
}

fn refuse(status: StatusCode, error: &'static str, description: impl Into<String>) -> Refusal {
    Refusal { status, error, description: description.into() }
}

fn grant(
    vault: &mut Vault,
    app: &App<'_>,
    headers: &HeaderMap,
    body: &[u8],
    now_ms: i64,
) -> Result<Issued, Refusal> {
    // RFC 6749 prescribes a form. The document of this service prescribes JSON, so a gateway that sends
    // the standard form has to fail here.
    if !is_json(headers) {
        let description = "The token endpoint takes a JSON body with Content-Type application/json.";
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request", description));
    }
    let Ok(Value::Object(body)) = serde_json::from_slice(body) else {
        return Err(refuse(StatusCode::BAD_REQUEST, "invalid_request", "The body is not a JSON object."));
    };
    let grant_type = field(&body, "grant_type")?;
    let (id, secret) = (field(&body, "client_id")?, field(&body, "client_secret")?);
    // One message for both, so that a caller cannot find out valid client ids.
    if id != app.client_id || secret != app.client_secret {
        let description = "The client is unknown or its secret is wrong.";
        return Err(refuse(StatusCode::UNAUTHORIZED, "invalid_client", description));
    }
    let issued = match grant_type {
        // The redirect URI must be repeated (RFC 6749, section 4.1.3).
        "authorization_code" => vault.redeem(field(&body, "code")?, field(&body, "redirect_uri")?, now_ms),
        "refresh_token" => vault.refresh(field(&body, "refresh_token")?, now_ms),
        _ => {
            let description = "Grant types are authorization_code and refresh_token.";
            return Err(refuse(StatusCode::BAD_REQUEST, "unsupported_grant_type", description));
        }
    };
    // A failure to write the file is not the client's fault. `invalid_grant` would make a gateway discard
    // a refresh token that is still valid.
    let issued = issued.map_err(|error| {
        refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            "server_error",
            format!("Tokens could not be kept: {error}"),
        )
    })?;
    issued.map_err(|refused| refuse(StatusCode::BAD_REQUEST, "invalid_grant", why(refused)))
}

fn why(refused: Refused) -> &'static str {
    match refused {
        Refused::Unknown => "The code or refresh token is unknown or was revoked.",
        Refused::Expired => "The code has expired.",
        Refused::Spent => "The code or refresh token was used before.",
        Refused::OtherRedirect => "The code was issued for another redirect_uri.",
    }
}

fn field<'a>(body: &'a Map<String, Value>, name: &str) -> Result<&'a str, Refusal> {
    match body.get(name) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(refuse(
            StatusCode::BAD_REQUEST,
            "invalid_request",
            format!("The field {name} must be a string."),
        )),
        None => {
            Err(refuse(StatusCode::BAD_REQUEST, "invalid_request", format!("The field {name} is missing.")))
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}
