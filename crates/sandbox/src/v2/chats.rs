//! Operations on chats and their messages.

use crate::call::{Call, Fields, PAGE};
use crate::reasons::{Reason, Thing};
use crate::reply::{Failure, Outcome, Reply};
use crate::state::moves::{Beginning, ContactEdit};
use crate::state::{Company, Draft, Id, Party, Situation, State, digits};
use crate::v3::{flow_chat, plain_kind};
use crate::views::v2;
use http::StatusCode;
use serde_json::Map;

/// Returns the usual answer to a write in v2.
fn created_outcome() -> Outcome {
    Ok(Reply::empty(StatusCode::CREATED))
}

pub fn list(state: &State, call: &Call<'_>) -> Outcome {
    let company = call.company(state);
    let chats = company.chats_newest_first(call.skip()?).take(PAGE);
    let chats: Vec<_> = chats.map(|chat| v2::Chat::new(company, chat)).collect();
    Ok(Reply::ok("chat", &chats))
}

pub fn show(state: &State, call: &Call<'_>) -> Outcome {
    Ok(Reply::ok("chat", &v2::Chat::new(call.company(state), call.chat(state)?)))
}

pub fn messages(state: &State, call: &Call<'_>) -> Outcome {
    let (company, chat) = (call.company(state), call.chat(state)?);
    let newest = chat.messages.newest_first(call.skip()?).take(PAGE);
    let messages: Vec<_> = newest.map(|message| v2::message(state, company, chat, message)).collect();
    Ok(Reply::ok("message", &messages))
}

pub fn feedback(state: &State, call: &Call<'_>) -> Outcome {
    let survey = call.chat(state)?.survey.as_ref().ok_or(Failure::no(Thing::Feedback))?;
    Ok(Reply::ok("feedback", &v2::Feedback::new(survey)))
}

pub fn create(state: &mut State, call: &Call<'_>) -> Outcome {
    let fields = call.fields()?;
    let (name, phone) = (fields.required_text("name")?, fields.required_text("phone")?);
    let email = fields.required_text("email")?;
    let message = fields.text("message")?.filter(|message| !message.is_empty());
    let subject = fields.text("subject")?.filter(|subject| !subject.is_empty());
    let internal = fields.boolean("isInternal")?.unwrap_or(false);
    let company = call.company(state);
    let channel = channel(company, &call.segments[1], &fields)?;
    let department = department(company, &fields)?;
    let contact = find_contact(company, email, phone);
    let contact = contact.unwrap_or_else(|| {
        let edit = ContactEdit {
            name: Some(name),
            phone: Some(phone),
            email: Some(email),
            ..ContactEdit::default()
        };
        state.create_contact(call.company, &edit)
    });
    let by = Party::Agent(call.caller);
    let step = call.company(state).steps.first().map(|step| step.id);
    let chat = state.begin(call.company, Beginning { contact, channel, department, step, by });
    if let Some(text) = first_text(subject, message) {
        let kind = plain_kind(call.company(state).channels[channel as usize].kind, internal);
        let draft = Draft { kind, ..Draft::text(by, internal, text) };
        state.post(call.company, chat, draft);
    }
    let company = call.company(state);
    let chat = company.chat(chat).expect("the chat was begun just now");
    Ok(Reply::json(StatusCode::CREATED, "chat", &v2::Chat::newly_created(company, chat)))
}

/// Combines subject and message. Messages have no subject field, so the subject precedes the text,
/// as in quotes of mail clients.
fn first_text(subject: Option<&str>, message: Option<&str>) -> Option<String> {
    match (subject, message) {
        (Some(subject), Some(message)) => Some(format!("{subject}\n\n{message}")),
        (subject, message) => subject.or(message).map(str::to_owned),
    }
}

/// Returns the index of the channel: the one with the given id and kind, or the company's first one
/// of that kind.
fn channel(company: &Company, name: &str, fields: &Fields) -> Result<u16, Failure> {
    let id = fields.integer("channelID")?;
    let place = company.channels.iter().position(|channel| {
        channel.kind.is_called(name) && id.is_none_or(|id| i64::try_from(channel.id) == Ok(id))
    });
    place.map(|place| place as u16).ok_or(Failure::bad(Reason::NotFound(Thing::Channel)))
}

fn department(company: &Company, fields: &Fields) -> Result<Option<Id>, Failure> {
    let Some(id) = fields.integer("department")? else { return Ok(None) };
    let department = u64::try_from(id).ok().and_then(|id| company.department(id));
    department.map(|department| Some(department.id)).ok_or(Failure::bad(Reason::NotFound(Thing::Department)))
}

/// Returns the contact with this email address, or else with this phone number.
fn find_contact(company: &Company, email: &str, phone: &str) -> Option<Id> {
    // An empty address or number is no key, or all contacts without one would be the same person.
    let by_email = company.by_email.get(email.to_lowercase().as_str()).filter(|_| !email.is_empty());
    let by_phone = company.by_phone.get(digits(phone).as_str()).filter(|_| !digits(phone).is_empty());
    let place = by_email.and_then(|places| places.first()).or(by_phone.and_then(|places| places.first()))?;
    Some(company.contacts[*place as usize].id)
}

pub fn close(state: &mut State, call: &Call<'_>) -> Outcome {
    let ask = call.fields()?.boolean("sendFeedback")?.unwrap_or(false);
    let chat = call.chat(state)?;
    let (id, open) = (chat.id, chat.is_open());
    // A repeated call succeeds without a second effect, so that clients can retry it.
    if open {
        if ask {
            state.ask_rating(call.company, id);
        }
        state.close(call.company, id, call.caller, None, None);
    }
    created_outcome()
}

pub fn queue(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.chat(state)?;
    if chat.situation != Situation::InChat || chat.agent.is_none() {
        return Err(Failure::bad(Reason::ChatNotInAttendance));
    }
    let chat = chat.id;
    state.queue(call.company, chat, call.caller);
    created_outcome()
}

pub fn send(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.open_chat(state)?;
    let (id, channel) = (chat.id, call.company(state).channel_of(chat).kind);
    let fields = call.fields()?;
    let text = fields.required_text("text")?;
    let internal = fields.boolean("isInternal")?.unwrap_or(false);
    let from = Party::Agent(call.caller);
    let draft = Draft { kind: plain_kind(channel, internal), ..Draft::text(from, internal, text) };
    state.post(call.company, id, draft);
    created_outcome()
}

pub fn reopen(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.chat(state)?;
    let (id, open) = (chat.id, chat.is_open());
    if !open {
        state.reopen(call.company, id, call.caller);
    }
    created_outcome()
}

pub fn situation(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.chat(state)?.id;
    let fields = call.fields()?;
    let situation = Situation::parse_requested(fields.required_text("situation")?);
    let situation = situation.ok_or(Failure::bad(Reason::WrongValue("situation")))?;
    state.set_situation(call.company, chat, call.caller, situation);
    created_outcome()
}

pub fn add_tags(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.chat(state)?.id;
    let fields = call.fields()?;
    state.add_tags(call.company, chat, call.caller, fields.required_text("tags")?);
    created_outcome()
}

pub fn flow(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = flow_chat(state, call)?.id;
    let flow = call.fields()?.required_id("flowId")?;
    call.company(state).flow(flow).ok_or(Failure::no(Thing::Flow))?;
    state.run_flow(call.company, chat, call.caller, flow, &Map::new());
    Ok(Reply::done())
}
