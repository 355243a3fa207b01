//! Operations on chats, except sending messages.

use crate::call::{Call, PAGE};
use crate::reasons::{Reason, Thing};
use crate::reply::{Failure, Outcome, Reply};
use crate::state::{ChannelKind, Chat, ChatQuery, Id, Role, State};
use crate::views;
use http::StatusCode;
use serde_json::Map;

pub fn list(state: &State, call: &Call<'_>) -> Outcome {
    let company = call.company(state);
    let query = ChatQuery {
        agent: call.integer_parameter("agent")?,
        department: call.integer_parameter("department")?,
        situation: call.parameter("situation"),
        status: call.parameter("status"),
        channel: call.parameter("channel"),
    };
    let (customer, skip) = (call.integer_parameter("customer")?, call.skip()?);
    let chats: Vec<_> = match (query.filter(company), customer) {
        (None, _) => Vec::new(),
        // Without a filter, the first entry of a page is found by its index, so that a deep page costs no
        // more than the first one.
        (Some(filter), None) if filter.admits_all() => company.chats_newest_first(skip).take(PAGE).collect(),
        (Some(filter), None) => {
            company.chats_newest_first(0).filter(|chat| filter.admits(chat)).skip(skip).take(PAGE).collect()
        }
        (Some(filter), Some(customer)) => {
            let contact = u64::try_from(customer).ok().and_then(|id| company.any_contact(id));
            let ids = contact.map_or(&[][..], |contact| &contact.chats);
            let chats = ids.iter().rev().filter_map(|id| company.chat(*id));
            chats.filter(|chat| filter.admits(chat)).skip(skip).take(PAGE).collect()
        }
    };
    let chats: Vec<_> = chats.into_iter().map(|chat| views::chat(state, company, chat)).collect();
    Ok(Reply::ok("chat", &chats))
}

pub fn show(state: &State, call: &Call<'_>) -> Outcome {
    let chat = call.chat(state)?;
    Ok(Reply::ok("chat", &views::chat(state, call.company(state), chat)))
}

pub fn messages(state: &State, call: &Call<'_>) -> Outcome {
    let (company, chat) = (call.company(state), call.chat(state)?);
    let newest = chat.messages.newest_first(call.skip()?).take(PAGE);
    let messages: Vec<_> = newest.map(|message| views::message(state, company, chat, message)).collect();
    Ok(Reply::ok("message", &messages))
}

pub fn tags(state: &State, call: &Call<'_>) -> Outcome {
    let chat = call.chat(state)?;
    Ok(Reply::ok("tag", &call.page(views::tags(call.company(state), chat))?.collect::<Vec<_>>()))
}

pub fn agents(state: &State, call: &Call<'_>) -> Outcome {
    let chat = call.chat(state)?;
    Ok(Reply::ok("chat agent", &call.page(views::members(state, chat))?.collect::<Vec<_>>()))
}

pub fn context_variables(state: &State, call: &Call<'_>) -> Outcome {
    let chat = call.chat(state)?;
    Ok(Reply::ok("context variables", &views::context_variables(state, call.company(state), chat)))
}

/// Returns an agent that can receive chats of the company: linked to it and active.
fn receiving_agent(state: &State, call: &Call<'_>, id: Id, status: StatusCode) -> Result<Id, Failure> {
    match state.agent_of(call.company, id) {
        Some(agent) if agent.active => Ok(agent.id),
        _ => Err(Failure::new(status, Reason::NotFound(Thing::Agent))),
    }
}

pub fn transfer(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.open_chat(state)?.id;
    let fields = call.fields()?;
    let to = receiving_agent(state, call, fields.required_id("agentId")?, StatusCode::NOT_FOUND)?;
    state.transfer(call.company, chat, call.caller, to, fields.text("message")?);
    Ok(Reply::ok("transfer", &views::Transfer::new(call.chat(state)?)))
}

/// Returns the chat in the path if a flow can run on it: open and not internal.
pub fn flow_chat<'s>(state: &'s State, call: &Call<'_>) -> Result<&'s Chat, Failure> {
    let chat = call.open_chat(state)?;
    match call.company(state).channel_of(chat).kind {
        ChannelKind::Internal => Err(Failure::bad(Reason::ChatInternal)),
        _ => Ok(chat),
    }
}

pub fn flow(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = flow_chat(state, call)?.id;
    let fields = call.fields()?;
    let flow = fields.required_id("flowId")?;
    let none = Map::new();
    let variables = fields.object("variables")?.unwrap_or(&none);
    call.company(state).flow(flow).ok_or(Failure::no(Thing::Flow))?;
    state.run_flow(call.company, chat, call.caller, flow, variables);
    Ok(Reply::done())
}

pub fn agent(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.open_chat(state)?.id;
    let fields = call.fields()?;
    let wanted = fields.required_id("agentId")?;
    if call.agent(state)?.guest {
        return Err(Failure::bad(Reason::GuestCannotAdd));
    }
    let agent = receiving_agent(state, call, wanted, StatusCode::BAD_REQUEST)?;
    state.add_agent(call.company, chat, call.caller, agent);
    Ok(Reply::done())
}

pub fn mark_read(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.chat(state)?;
    let others =
        chat.agent.is_some_and(|agent| agent != call.caller) && chat.second_agent != Some(call.caller);
    // Managers and administrators supervise the chats of others; plain agents may only read their own.
    if others && call.agent(state)?.role == Role::Agent {
        return Err(Failure::new(StatusCode::FORBIDDEN, Reason::ChatForbidden));
    }
    let chat = chat.id;
    state.mark_read(call.company, chat);
    Ok(Reply::done())
}

pub fn tabulation(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.chat(state)?.id;
    let tabulation = call.fields()?.required_id("tabulationId")?;
    call.company(state).tabulation(tabulation).ok_or(Failure::no(Thing::Tabulation))?;
    state.set_tabulation(call.company, chat, call.caller, tabulation);
    Ok(Reply::done())
}

pub fn add_tags(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.chat(state)?.id;
    let fields = call.fields()?;
    state.add_tags(call.company, chat, call.caller, fields.required_text("tags")?);
    Ok(Reply::done())
}

pub fn queue(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.open_chat(state)?.id;
    state.queue(call.company, chat, call.caller);
    Ok(Reply::done())
}

pub fn department(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.open_chat(state)?.id;
    let department = call.fields()?.required_id("department")?;
    call.company(state).department(department).ok_or(Failure::no(Thing::Department))?;
    state.set_department(call.company, chat, call.caller, department);
    Ok(Reply::done())
}

pub fn close(state: &mut State, call: &Call<'_>) -> Outcome {
    let fields = call.fields()?;
    let tabulation = fields.integer("tabulation")?.map(|id| u64::try_from(id).unwrap_or(0));
    let comment = fields.text("comment")?;
    let feedback = fields.boolean("sendFeedback")?.unwrap_or(false);
    let chat = call.chat(state)?;
    let (id, open) = (chat.id, chat.is_open());
    if let Some(tabulation) = tabulation {
        call.company(state).tabulation(tabulation).ok_or(Failure::no(Thing::Tabulation))?;
    }
    if open {
        if feedback {
            state.thank(call.company, id);
        }
        state.close(call.company, id, call.caller, tabulation, comment);
    }
    Ok(Reply::done())
}

pub fn reopen(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.chat(state)?;
    let (id, open) = (chat.id, chat.is_open());
    if !open {
        state.reopen(call.company, id, call.caller);
    }
    Ok(Reply::done())
}

pub fn workflow(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.open_chat(state)?.id;
    let step = call.fields()?.required_id("stepId")?;
    call.company(state).step(step).ok_or(Failure::no(Thing::Step))?;
    state.set_step(call.company, chat, call.caller, step);
    Ok(Reply::done())
}

pub fn assign_to_me(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.open_chat(state)?.id;
    state.assign(call.company, chat, call.caller);
    let state = &*state;
    Ok(Reply::ok("assignment", &views::assignment(state, call.company(state), call.chat(state)?)))
}

pub fn delete(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.chat(state)?;
    if call.agent(state)?.role != Role::Administrator {
        return Err(Failure::bad(Reason::OnlyAdministrator));
    }
    if chat.is_open() {
        return Err(Failure::bad(Reason::ChatNotFinished));
    }
    let chat = chat.id;
    state.delete_chat(call.company, chat, call.caller);
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
