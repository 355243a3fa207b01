//! Where the authorization server sends a person back to. The page says what happened and what to do, and repeats nothing
//! of the address, which holds a code.

use super::Parts;
use super::answer::{Answer, escape};
use http::StatusCode;
use switchback_gateway::token::ConnectError;

pub(super) async fn callback(parts: &Parts, query: &str) -> Answer {
    match parts.registry.callback(query).await {
        Ok(client) => {
            if let Err(error) = parts.tokens.sync().await {
                tracing::warn!(%error, "the new grant is stored; it is taken up at the next look at the store");
            }
            tracing::info!(client = %client.name, "connected");
            let name = escape(&client.name);
            let words =
                format!("The client <strong>{name}</strong> is connected. This window can be closed.");
            page(StatusCode::OK, "Connected", &words)
        }
        Err(error) => {
            tracing::warn!(%error, "a client was not connected");
            let (status, words) = words(&error);
            page(status, "Not connected", &words)
        }
    }
}

fn words(error: &ConnectError) -> (StatusCode, String) {
    let again = "Ask the operator of the gateway for a new link.";
    match error {
        ConnectError::State => {
            (StatusCode::BAD_REQUEST, format!("This link is unknown, used or too old. {again}"))
        }
        ConnectError::NoCode => (StatusCode::BAD_REQUEST, format!("The answer holds no code. {again}")),
        ConnectError::Denied(code) => (
            StatusCode::BAD_REQUEST,
            format!("The authorization was refused ({}). If that was a mistake: {again}", escape(code)),
        ),
        ConnectError::CodeRefused(code) => (
            StatusCode::BAD_GATEWAY,
            format!("The authorization server did not take its own code ({}). {again}", escape(code)),
        ),
        ConnectError::Server(_) => {
            (StatusCode::BAD_GATEWAY, format!("The authorization server does not answer. {again}"))
        }
        ConnectError::NoServer | ConnectError::NoApp(_) | ConnectError::Registry(_) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "The gateway could not store the authorization. Its log says why.".to_owned(),
        ),
    }
}

fn page(status: StatusCode, title: &str, words: &str) -> Answer {
    let body = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Switchback: {title}</title>\n\
         <link rel=\"stylesheet\" href=\"/dashboard.css\">\n<h1>{title}</h1>\n<p>{words}</p>\n</html>\n"
    );
    Answer::html(status, body)
}
