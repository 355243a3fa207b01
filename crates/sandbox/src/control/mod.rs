//! The control API under `/_sandbox/`, for tests of programs that use the service. `GET /_sandbox/`
//! lists its calls.

pub mod differ;
pub mod faults;
pub mod log;

use super::answer::Answer;
use super::call::parameters;
use super::oauth::Vault;
use super::state::moves::Inbound;
use super::state::{Id, State, Survey};
use super::{Shared, Size};
use http::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The list of calls that `GET /_sandbox/` returns.
const HELP: &[(&str, &str)] = &[
    ("GET /_sandbox/", "this list"),
    ("GET /_sandbox/credentials", "tokens of every account, and the OAuth app"),
    ("POST /_sandbox/reset", "everything as at the start; body optional: {seed, size: small|large}"),
    ("GET /_sandbox/requests", "received requests, oldest first; ?path= and ?method= select"),
    ("DELETE /_sandbox/requests", "forget them"),
    ("PUT /_sandbox/requests", "{keep: N} how many are kept; 0 keeps none"),
    ("GET /_sandbox/effects", "how often each write took effect, by kind and id"),
    ("DELETE /_sandbox/effects", "count from zero"),
    ("GET /_sandbox/faults", "the faults in force, with how many calls they met"),
    (
        "POST /_sandbox/faults",
        "{side, method, path, skip, count, probability, action}; action is one of {delay: {ms}}, {status: {code, body, when}}, {reset: {when}}, {truncate: {bytes}}, {drip: {bytes, every_ms}}, {endless: {}}, {invalid_json: {}}, {html: {status}}, {gzip: {}}; when is before or after",
    ),
    ("DELETE /_sandbox/faults", "none from now on; DELETE /_sandbox/faults/{id} only that one"),
    ("GET /_sandbox/differences", "the differences in force"),
    (
        "POST /_sandbox/differences",
        "{side, resource, path, of, field, whole, change}; change is one of remove, retype, reverse, renew, {set: value}, {add: value}",
    ),
    ("DELETE /_sandbox/differences", "none from now on; DELETE /_sandbox/differences/{id} only that one"),
    ("GET /_sandbox/clock", "the clock of the data"),
    ("POST /_sandbox/clock", "{advance: seconds} moves it and the life of tokens"),
    ("POST /_sandbox/tokens/expire", "ends the life of v3 tokens: {token}, {agent} or {} for all"),
    (
        "POST /_sandbox/tokens/revoke",
        "revokes tokens with all that came of their grant: {token}, {agent} or {} for all",
    ),
    ("PUT /_sandbox/oauth", "{expires_in, rotate, detect_reuse, redirect_uri}; a redirect_uri is added"),
    ("POST /_sandbox/chats/{id}/lock", "every call that names the chat answers 423"),
    ("DELETE /_sandbox/chats/{id}/lock", "no more"),
    ("POST /_sandbox/chats/{id}/inbound", "{text} the contact writes"),
    ("POST /_sandbox/chats/{id}/survey", "{score, text} the contact rates the service"),
    ("GET /_sandbox/invitations", "invitations sent and not yet accepted"),
    ("POST /_sandbox/invitations/accept", "{email} the invited person accepts and appears as an agent"),
];

/// Answers a control call. `segments` is the path below `/_sandbox`.
pub fn answer(shared: &Shared, method: &Method, segments: &[&str], query: &str, body: &[u8]) -> Answer {
    let result = match (method.as_str(), segments) {
        ("GET", []) => {
            ok(&HELP.iter().map(|(call, does)| json!({"call": call, "does": does})).collect::<Vec<_>>())
        }
        ("GET", ["credentials"]) => ok(&shared.credentials()),
        ("POST", ["reset"]) => reset(shared, body),
        ("GET", ["requests"]) => requests(shared, query),
        ("DELETE", ["requests"]) => run_empty(|| shared.log().clear()),
        ("PUT", ["requests"]) => {
            parse_body(body).map(|Keep { keep }| shared.keep_log(keep)).map(|()| empty())
        }
        ("GET", ["effects"]) => ok(&shared.lock_state().effects.all()),
        ("DELETE", ["effects"]) => run_empty(|| shared.write().effects.clear()),
        ("GET", ["faults"]) => ok(&shared.faults().all()),
        ("POST", ["faults"]) => parse_body(body).map(|fault| created_answer(shared.add_fault(fault))),
        ("DELETE", ["faults"]) => run_empty(|| shared.change_faults(faults::Faults::clear)),
        ("DELETE", ["faults", id]) => {
            remove_answer(id, |id| shared.change_faults(|faults| faults.remove(id)))
        }
        ("GET", ["differences"]) => ok(&shared.differences().all()),
        ("POST", ["differences"]) => parse_body(body).and_then(|rule| {
            shared
                .add_difference(rule)
                .map(created_answer)
                .map_err(|error| Refusal(StatusCode::BAD_REQUEST, error.to_string()))
        }),
        ("DELETE", ["differences"]) => run_empty(|| shared.change_differences(differ::Differences::clear)),
        ("DELETE", ["differences", id]) => {
            remove_answer(id, |id| shared.change_differences(|rules| rules.remove(id)))
        }
        ("GET", ["clock"]) => clock(shared),
        ("POST", ["clock"]) => parse_body(body).and_then(|Advance { advance }| {
            shared.advance(advance);
            clock(shared)
        }),
        ("POST", ["tokens", "expire"]) => tokens(shared, body, Vault::expire),
        ("POST", ["tokens", "revoke"]) => tokens(shared, body, Vault::revoke),
        ("PUT", ["oauth"]) => oauth(shared, body),
        ("POST", ["chats", id, "lock"]) => {
            chat(shared, id, |state, company, id| state.lock(company, id, true))
        }
        ("DELETE", ["chats", id, "lock"]) => {
            chat(shared, id, |state, company, id| state.lock(company, id, false))
        }
        ("POST", ["chats", id, "inbound"]) => parse_body(body).and_then(|inbound: Inbound| {
            chat(shared, id, |state, company, id| state.receive(company, id, &inbound))
        }),
        ("POST", ["chats", id, "survey"]) => parse_body(body).and_then(|Rating { score, text }| {
            chat(shared, id, |state, company, id| state.rate(company, id, Survey { score, text }))
        }),
        ("GET", ["invitations"]) => invitations(shared),
        ("POST", ["invitations", "accept"]) => accept(shared, body),
        _ => Err(missing("such control call; GET /_sandbox/ lists them")),
    };
    result.unwrap_or_else(|Refusal(status, message)| Answer::json(status, &json!({"error": message})))
}

/// A rejected control call: status and message.
struct Refusal(StatusCode, String);

type Control = Result<Answer, Refusal>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keep {
    keep: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    advance: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rating {
    score: u8,
    #[serde(default)]
    text: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Restart {
    seed: Option<u64>,
    size: Option<Size>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    token: Option<String>,
    agent: Option<Id>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Email {
    email: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Switches {
    expires_in: Option<u64>,
    rotate: Option<bool>,
    detect_reuse: Option<bool>,
    redirect_uri: Option<String>,
}

fn ok<T: Serialize>(value: &T) -> Control {
    Ok(Answer::json(StatusCode::OK, value))
}

fn empty() -> Answer {
    Answer::empty(StatusCode::NO_CONTENT)
}

/// Performs an action without a result.
fn run_empty(act: impl FnOnce()) -> Control {
    act();
    Ok(empty())
}

fn created_answer(id: u64) -> Answer {
    Answer::json(StatusCode::CREATED, &json!({"id": id}))
}

fn missing(what: &str) -> Refusal {
    Refusal(StatusCode::NOT_FOUND, format!("there is no {what}"))
}

fn io_refusal(error: &std::io::Error) -> Refusal {
    Refusal(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

fn parse_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal(StatusCode::BAD_REQUEST, error.to_string()))
}

fn optional<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, Refusal> {
    if body.is_empty() { Ok(T::default()) } else { parse_body(body) }
}

fn remove_answer(id: &str, remove: impl FnOnce(u64) -> bool) -> Control {
    match id.parse().is_ok_and(remove) {
        true => Ok(empty()),
        false => Err(missing("rule with this id")),
    }
}

fn reset(shared: &Shared, body: &[u8]) -> Control {
    let Restart { seed, size } = optional(body)?;
    shared.reset(seed, size).map(|()| empty()).map_err(|error| io_refusal(&error))
}

fn requests(shared: &Shared, query: &str) -> Control {
    let wanted: Vec<(String, String)> = parameters(query).collect();
    let log = shared.log();
    let shown = log.all().into_iter().filter(|entry| {
        wanted.iter().all(|(name, value)| match name.as_str() {
            "path" => entry.has_path(value),
            "method" => entry.has_method(value),
            _ => true,
        })
    });
    ok(&shown.collect::<Vec<_>>())
}

fn clock(shared: &Shared) -> Control {
    let now = shared.lock_state().now;
    ok(&json!({"now": super::clock::Stamp(now), "seconds": now}))
}

fn tokens(
    shared: &Shared,
    body: &[u8],
    end: impl FnOnce(&mut Vault, Option<&str>, Option<Id>) -> std::io::Result<usize>,
) -> Control {
    let Which { token, agent } = optional(body)?;
    match end(&mut shared.vault_mut(), token.as_deref(), agent) {
        Ok(count) => ok(&json!({"count": count})),
        Err(error) => Err(io_refusal(&error)),
    }
}

fn oauth(shared: &Shared, body: &[u8]) -> Control {
    let Switches { expires_in, rotate, detect_reuse, redirect_uri } = parse_body(body)?;
    let mut vault = shared.vault_mut();
    vault.expires_in = expires_in.unwrap_or(vault.expires_in);
    vault.rotate = rotate.unwrap_or(vault.rotate);
    vault.detect_reuse = detect_reuse.unwrap_or(vault.detect_reuse);
    vault.redirect_uris.extend(redirect_uri);
    ok(&json!({
        "expires_in": vault.expires_in,
        "rotate": vault.rotate,
        "detect_reuse": vault.detect_reuse,
        "redirect_uris": vault.redirect_uris,
    }))
}

/// Performs an action on a chat of any company. Chat ids are unique across companies.
fn chat(shared: &Shared, id: &str, act: impl FnOnce(&mut State, usize, Id)) -> Control {
    let mut state = shared.write();
    let found = id.parse().ok().and_then(|id| {
        let company = state.companies.iter().position(|company| company.chat(id).is_some())?;
        Some((company, id))
    });
    let Some((company, id)) = found else {
        return Err(missing("such chat"));
    };
    act(&mut state, company, id);
    Ok(empty())
}

fn invitations(shared: &Shared) -> Control {
    let state = shared.lock_state();
    let all: Vec<Value> = state
        .companies
        .iter()
        .flat_map(|company| {
            company.invitations.values().map(|one| json!({"company": company.id, "invitation": one}))
        })
        .collect();
    ok(&all)
}

fn accept(shared: &Shared, body: &[u8]) -> Control {
    let Email { email } = parse_body(body)?;
    let mut state = shared.write();
    let agent = (0..state.companies.len()).find_map(|company| state.accept(company, &email));
    match agent {
        Some(agent) => ok(&json!({"agent": agent})),
        None => Err(missing("invitation for this e-mail")),
    }
}
