//! The redirect target of the authorization server. The page reports the outcome and the next step.
//! It repeats no part of the URL, which contains a code.

use super::AdminParts;
use super::answer::AdminResponse;
use crate::studio;
use http::StatusCode;
use maud::{Markup, html};
use switchback_gateway::token::{ConnectError, RefusalAbout};

pub(super) async fn callback(parts: &AdminParts, query: &str) -> AdminResponse {
    match parts.registry.callback(query).await {
        Ok(client) => {
            // At once: the connection is usually tried before the next periodic synchronization.
            if let Err(error) = parts.tokens.sync().await {
                tracing::warn!(%error, "the new grant is stored; it is taken up at the next look at the store");
            }
            tracing::info!(client = %client.name, "connected");
            let grant = &client.grant;
            let words = html! {
                @match (grant.warning, &grant.expires_at) {
                    (None, _) => { "The client " strong { (client.name) } " is connected. This window can be closed." }
                    (Some(warning), Some(end)) => { "The client " strong { (client.name) } " is connected until " (end) ": " (warning) "." }
                    (Some(warning), None) => { "The client " strong { (client.name) } " is connected: " (warning) "." }
                }
            };
            let title = if grant.warning.is_none() { "Connected" } else { "Connected for a while only" };
            page(StatusCode::OK, title, &words)
        }
        Err(error) => {
            match &error {
                // Anyone can trigger these at any rate, so do not fill the log.
                ConnectError::State => tracing::debug!(%error, "a client was not connected"),
                _ => tracing::warn!(%error, "a client was not connected"),
            }
            let (status, words) = words(&error);
            page(status, "Not connected", &html! { (words) })
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
            format!("The authorization was refused ({}). If that was a mistake: {again}", code),
        ),
        ConnectError::OtherIssuer => (
            StatusCode::BAD_REQUEST,
            format!("This answer is not from the authorization server that was asked. {again}"),
        ),
        ConnectError::CodeRefused(refusal) => {
            let code = &refusal.code;
            let words = match refusal.about {
                RefusalAbout::Application => format!(
                    "The authorization server refuses this gateway ({code}). The operator of the gateway has to mend \
                     that first."
                ),
                _ => format!("The authorization server did not take its own code ({code}). {again}"),
            };
            (StatusCode::BAD_GATEWAY, words)
        }
        // The text is the gateway's own, except for an error code that was validated.
        ConnectError::Server(what) => (
            StatusCode::BAD_GATEWAY,
            format!("The authorization server gave no usable answer ({}). {again}", what),
        ),
        ConnectError::NoServer | ConnectError::NoApp(_) | ConnectError::Registry(_) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "The gateway could not store the authorization. Its log says why.".to_owned(),
        ),
    }
}

fn page(status: StatusCode, title: &str, words: &Markup) -> AdminResponse {
    AdminResponse::html(status, studio::bare(title, words))
}
