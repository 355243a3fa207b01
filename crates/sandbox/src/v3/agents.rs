//! Operations on agents.

use crate::call::{Call, PAGE};
use crate::reasons::{Expect, Reason, Thing};
use crate::reply::{Failure, Outcome, Reply};
use crate::state::{Agent, Presence, Role, State};
use crate::views;
use http::StatusCode;

pub fn list(state: &State, call: &Call<'_>) -> Outcome {
    let agents =
        call.company(state).agents.iter().filter_map(|id| state.agent(*id)).map(views::AgentItem::new);
    let all = match call.parameter("allPages").as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Failure::wrong_type("allPages", Expect::Boolean)),
    };
    // Validate the page even if it is unused, because an invalid one makes the request invalid.
    let skip = call.skip()?;
    let agents: Vec<_> = if all { agents.collect() } else { agents.skip(skip).take(PAGE).collect() };
    Ok(Reply::ok("agent", &agents))
}

pub fn profile(state: &State, call: &Call<'_>) -> Outcome {
    Ok(Reply::ok("profile", &views::agent_profile(call.agent(state)?, call.company(state).id)))
}

/// Returns the agent in the path.
pub fn agent_in_path<'s>(state: &'s State, call: &Call<'_>) -> Result<&'s Agent, Failure> {
    call.id(1).and_then(|id| state.agent_of(call.company, id)).ok_or(Failure::no(Thing::Agent))
}

pub fn show(state: &State, call: &Call<'_>) -> Outcome {
    Ok(Reply::ok("agent", &views::agent_detail(agent_in_path(state, call)?, call.company(state).id)))
}

pub fn status(state: &State, call: &Call<'_>) -> Outcome {
    Ok(Reply::ok("status", &views::AgentStatus::new(agent_in_path(state, call)?, call.company(state).id)))
}

pub fn invite(state: &mut State, call: &Call<'_>) -> Outcome {
    let fields = call.fields()?;
    let email = fields.required_text("email")?;
    let max_chats = fields.required_integer("maxChats")?;
    let role = fields.required_integer("type")?;
    check_invitation(state, call, email, role)?;
    state.invite(call.company, email, role, max_chats);
    Ok(Reply::done())
}

/// Rejects invitations that both versions reject: an unknown role, or an existing agent.
pub fn check_invitation(state: &State, call: &Call<'_>, email: &str, role: i64) -> Result<(), Failure> {
    if Role::from_number(role).is_none() {
        return Err(Failure::bad(Reason::WrongValue("type")));
    }
    match state.agent_by_login(email) {
        Some(_) => Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, Reason::AgentSignedIn(call.side))),
        None => Ok(()),
    }
}

pub fn set_status(state: &mut State, call: &Call<'_>) -> Outcome {
    let id = call.fields()?.required_integer("id")?;
    let presence = Presence::from_number(id).ok_or(Failure::bad(Reason::WrongValue("id")))?;
    state.set_presence(call.caller, presence);
    Ok(Reply::ok("status", &views::AgentStatusResult::new(call.agent(state)?)))
}

pub fn edit(state: &mut State, call: &Call<'_>) -> Outcome {
    let id = agent_in_path(state, call)?.id;
    let fields = call.fields()?;
    let (name, login) = (fields.required_text("name")?, fields.required_text("login")?);
    let phone = fields.text("phone")?;
    if state.agent_by_login(login).is_some_and(|other| other.id != id) {
        return Err(Failure::bad(Reason::LoginTaken));
    }
    state.edit_agent(id, name, login, phone);
    Ok(Reply::done())
}
