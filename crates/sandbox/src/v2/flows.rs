//! Execution of a flow for a contact, in an existing or a new chat.

use crate::call::{Call, Fields};
use crate::reasons::{Reason, Thing};
use crate::reply::{Failure, Outcome, Reply};
use crate::state::moves::Beginning;
use crate::state::{ChannelKind, Company, Contact, FlowFlags, Id, Party, State, Verdict, verdict};
use crate::views::v2::FlowResult;
use http::StatusCode;
use serde_json::Map;

pub fn exec(state: &mut State, call: &Call<'_>) -> Outcome {
    let company = call.company(state);
    let flow = call.id(1).and_then(|id| company.flow(id)).ok_or(Failure::no(Thing::Flow))?.id;
    let contact = call.contact(state, 3)?;
    let fields = call.fields()?;
    let flags = flags(&fields)?;
    let none = Map::new();
    let variables = fields.object("variables")?.unwrap_or(&none);
    let channel = fields.text("uuid")?.map(|uuid| channel(company, uuid)).transpose()?;

    // Newest first, since a contact may have several open chats on different channels.
    let open = contact.chats.iter().rev().filter_map(|id| company.chat(*id)).find(|chat| {
        chat.is_open()
            && channel.is_none_or(|channel| chat.channel == channel)
            && company.channel_of(chat).kind != ChannelKind::Internal
    });
    let (chat, outcome) = match open {
        Some(chat) if chat.locked => return Err(Failure::new(StatusCode::LOCKED, Reason::ChatLocked)),
        Some(chat) => (chat.id, verdict(chat.situation, flags)),
        None => {
            let channel = channel.unwrap_or_else(|| usual_channel(company, contact));
            check_reachable(company.channels[channel as usize].kind, contact)?;
            (begin(state, call, channel)?, Verdict::Run)
        }
    };
    if outcome == Verdict::Run {
        state.run_flow(call.company, chat, call.caller, flow, variables);
    }
    let reason = match outcome {
        Verdict::Run => Reason::FlowStarted,
        Verdict::Leave => Reason::FlowNotRun,
    };
    Ok(Reply::ok("flow result", &FlowResult { reason: reason.text(call.lang), chat_id: chat }))
}

fn flags(fields: &Fields) -> Result<FlowFlags, Failure> {
    Ok(FlowFlags {
        when_in_chat: fields.boolean("whenInChat")?.unwrap_or(false),
        when_wait_for_chat: fields.boolean("whenWaitForChat")?.unwrap_or(false),
        when_in_auto: fields.boolean("whenInAuto")?.unwrap_or(false),
    })
}

fn channel(company: &Company, uuid: &str) -> Result<u16, Failure> {
    let place = company.channels.iter().position(|channel| channel.uuid == uuid);
    let place = place.ok_or(Failure::bad(Reason::NotFound(Thing::Channel)))?;
    match company.channels[place].kind.runs_flows() {
        true => Ok(place as u16),
        false => Err(Failure::bad(Reason::ChannelUnsuited)),
    }
}

/// Returns the channel for a contact if the request names none: the one that last served the
/// contact and can run flows, or else the company's first one.
fn usual_channel(company: &Company, contact: &Contact) -> u16 {
    let chats = contact.chats.iter().rev().filter_map(|id| company.any_chat(*id));
    let mut channels = chats.map(|chat| chat.channel);
    channels.find(|channel| company.channels[*channel as usize].kind.runs_flows()).unwrap_or(0)
}

/// Checks the conditions for starting a conversation with a contact.
fn check_reachable(kind: ChannelKind, contact: &Contact) -> Result<(), Failure> {
    match kind {
        ChannelKind::Messenger | ChannelKind::TelegramBot if !contact.reaches(kind) => {
            Err(Failure::bad(Reason::NeverServed))
        }
        _ if kind.is_messaging_app() && !contact.has_international_phone() => {
            Err(Failure::bad(Reason::PhoneInvalid))
        }
        _ => Ok(()),
    }
}

fn begin(state: &mut State, call: &Call<'_>, channel: u16) -> Result<Id, Failure> {
    let contact = call.contact(state, 3)?.id;
    let by = Party::Agent(call.caller);
    Ok(state.begin(call.company, Beginning { contact, channel, department: None, step: None, by }))
}
