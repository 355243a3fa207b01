//! `/oauth/authorize`: the consent page of the authorization server, and the redirect to the app.
//! Errors in the client id or redirect URI are displayed here, because a redirect could lead to a
//! wrong address; all others are returned to the app (RFC 6749, section 4.1.2.1).

use super::{APP_NAME, SCOPES, Vault};
use crate::answer::Answer;
use crate::call::parameters;
use crate::seed::ACCOUNTS;
use crate::state::{Agent, Id, State};
use http::header::{ALLOW, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt::Write;

/// The parameters of the app, with the user's decision after the form is submitted.
#[derive(Default)]
struct Ask {
    response_type: String,
    client_id: String,
    redirect_uri: String,
    scope: String,
    state: Option<String>,
    /// The logged-in agent; by default the administrator.
    login: Option<String>,
    decision: Option<String>,
    auto_approve: bool,
}

impl Ask {
    fn parse(pairs: &str) -> Ask {
        let mut ask = Ask::default();
        for (name, value) in parameters(pairs) {
            match name.as_str() {
                "response_type" => ask.response_type = value,
                "client_id" => ask.client_id = value,
                "redirect_uri" => ask.redirect_uri = value,
                "scope" => ask.scope = value,
                "state" => ask.state = Some(value),
                "login" => ask.login = Some(value),
                "decision" => ask.decision = Some(value),
                "auto_approve" => ask.auto_approve = value == "1",
                _ => {}
            }
        }
        ask
    }
}

/// Answers a call of the page: `GET` with the query, or `POST` with the form.
pub fn answer(
    vault: &mut Vault,
    state: &State,
    client_id: &str,
    method: &Method,
    query: &str,
    body: &[u8],
    now_ms: i64,
) -> Answer {
    let ask = match *method {
        // A link must not approve the app: without this, any page could embed an address with
        // `decision=approve` and act for the user who is logged in (RFC 6749, section 10.12).
        // `auto_approve` is the exception for tests, and applies to links only.
        Method::GET => Ask { decision: None, ..Ask::parse(query) },
        Method::POST => Ask { auto_approve: false, ..Ask::parse(&String::from_utf8_lossy(body)) },
        _ => {
            return Answer::empty(StatusCode::NOT_IMPLEMENTED)
                .with(ALLOW, HeaderValue::from_static("GET, POST"));
        }
    };
    // Verify the redirect target before any error is returned to it.
    if ask.client_id != client_id {
        return wrong("There is no app with this client_id.");
    }
    if !vault.redirect_uris.contains(&ask.redirect_uri) {
        return wrong("This redirect_uri is not the one configured for the app.");
    }
    if ask.response_type != "code" {
        return back(&ask, &[("error", "unsupported_response_type")]);
    }
    if ask.scope.split_whitespace().any(|scope| !SCOPES.iter().any(|(name, _)| *name == scope)) {
        return back(&ask, &[("error", "invalid_scope")]);
    }
    let Some(agent) = logged_in(state, ask.login.as_deref()) else {
        return wrong("There is no agent with this login.");
    };
    match ask.decision.as_deref() {
        Some("approve") => approve(vault, &ask, agent.id, now_ms),
        Some(_) => back(&ask, &[("error", "access_denied")]),
        None if ask.auto_approve => approve(vault, &ask, agent.id, now_ms),
        None => Answer::html(StatusCode::OK, page(state, &ask, agent)),
    }
}

/// Returns the agent with this id; by default the first account.
fn logged_in<'s>(state: &'s State, login: Option<&str>) -> Option<&'s Agent> {
    match login {
        None => state.agent(ACCOUNTS[0].1),
        Some(login) => state.agent(login.parse().ok()?),
    }
}

fn approve(vault: &mut Vault, ask: &Ask, agent: Id, now_ms: i64) -> Answer {
    match vault.code(agent, &ask.redirect_uri, now_ms) {
        Ok(code) => back(ask, &[("code", &code)]),
        // The redirect target is verified, so the app may get the error (RFC 6749, section 4.1.2.1).
        Err(_) => back(ask, &[("error", "server_error")]),
    }
}

/// Redirects the user to the app.
fn back(ask: &Ask, result: &[(&str, &str)]) -> Answer {
    let mut address = ask.redirect_uri.clone();
    let state = ask.state.as_deref().map(|state| ("state", state));
    for (name, value) in result.iter().copied().chain(state) {
        // A registered redirect URI may have a query of its own, which must be retained (RFC 6749, section
        // 3.1.2).
        let joint = if address.contains('?') { '&' } else { '?' };
        // `state` is opaque and must come back unchanged, so all reserved characters are escaped.
        let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
        write!(address, "{joint}{name}={value}").expect("a String takes every write");
    }
    match HeaderValue::try_from(address) {
        Ok(address) => Answer::empty(StatusCode::FOUND).with(LOCATION, address),
        Err(_) => wrong("This redirect_uri cannot be written into a header."),
    }
}

fn wrong(what: &str) -> Answer {
    let body = format!("<h1>This link does not work</h1>\n<p>{}</p>", escape_html(what));
    Answer::html(StatusCode::BAD_REQUEST, document("Authorization", &body))
}

fn page(state: &State, ask: &Ask, agent: &Agent) -> String {
    let mut body = format!("<h1>{} asks for access</h1>\n", escape_html(APP_NAME));
    writeln!(
        body,
        "<p>You are logged in as <b>{}</b>. The app wants to:</p>\n<ul>",
        escape_html(&agent.name)
    )
    .expect("a String takes every write");
    for scope in ask.scope.split_whitespace() {
        let meaning = SCOPES.iter().find(|(name, _)| *name == scope).map_or("", |(_, meaning)| meaning);
        writeln!(body, "<li>{} <small>({})</small></li>", escape_html(meaning), escape_html(scope))
            .expect("a String takes every write");
    }
    body.push_str("</ul>\n<form method=\"post\" action=\"/oauth/authorize\">\n");
    let fields = [
        ("response_type", Some(ask.response_type.as_str())),
        ("client_id", Some(ask.client_id.as_str())),
        ("redirect_uri", Some(ask.redirect_uri.as_str())),
        ("scope", Some(ask.scope.as_str())),
        ("state", ask.state.as_deref()),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            writeln!(body, "<input type=\"hidden\" name=\"{name}\" value=\"{}\">", escape_html(value))
                .expect("a String takes every write");
        }
    }
    body.push_str("<p><label>Act as <select name=\"login\">\n");
    for (role, id, _) in ACCOUNTS {
        let name = state.agent(id).map_or("", |agent| &agent.name);
        let selected = if id == agent.id { " selected" } else { "" };
        writeln!(body, "<option value=\"{id}\"{selected}>{} ({role})</option>", escape_html(name))
            .expect("a String takes every write");
    }
    body.push_str("</select></label></p>\n<button name=\"decision\" value=\"approve\">Allow</button>\n");
    body.push_str("<button name=\"decision\" value=\"deny\">Deny</button>\n</form>");
    document("Authorization", &body)
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>body{{font:16px sans-serif;max-width:32em;margin:3em auto;padding:0 1em}}button{{font:inherit;padding:.4em 1.2em}}</style>\n\
         </head><body>\n{body}\n</body></html>\n"
    )
}

/// Escapes text for HTML elements and quoted attributes.
fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
