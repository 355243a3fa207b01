//! Operations on agents and contacts.

use crate::call::{Call, PAGE};
use crate::reasons::Reason;
use crate::reply::{Failure, Outcome, Reply};
use crate::state::moves::ContactEdit;
use crate::state::{Role, State};
use crate::v3::{check_invitation, named_agent};
use crate::views::{self, v2};
use http::StatusCode;

/// Maximum number of simultaneous chats for agents invited through v2, which has no such parameter.
const MAX_CHATS: i64 = 10;

pub fn agents(state: &State, call: &Call<'_>) -> Outcome {
    let agents = call.company(state).agents.iter().filter_map(|id| state.agent(*id));
    let agents: Vec<_> =
        call.page(agents)?.map(|agent| v2::AgentItem { id: agent.id, name: &agent.name }).collect();
    Ok(Reply::ok("agent", &agents))
}

pub fn agent(state: &State, call: &Call<'_>) -> Outcome {
    Ok(Reply::ok("agent", &v2::AgentDetail::new(named_agent(state, call)?)))
}

pub fn invite(state: &mut State, call: &Call<'_>) -> Outcome {
    let fields = call.fields()?;
    let (email, role) = (fields.required_text("email")?, fields.required_integer("type")?);
    check_invitation(state, call, email, role)?;
    state.invite(call.company, email, role, MAX_CHATS);
    Ok(Reply::empty(StatusCode::CREATED))
}

pub fn edit_agent(state: &mut State, call: &Call<'_>) -> Outcome {
    let id = named_agent(state, call)?.id;
    let fields = call.fields()?;
    let role = fields.integer("type")?;
    let role = role
        .map(|role| Role::from_number(role).ok_or(Failure::bad(Reason::WrongValue("type"))))
        .transpose()?;
    state.set_agent(id, role, fields.boolean("active")?);
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

pub fn contacts(state: &State, call: &Call<'_>) -> Outcome {
    let company = call.company(state);
    let contacts = company.contacts_from(call.skip()?).take(PAGE);
    let contacts: Vec<_> = contacts.map(|contact| v2::Contact::item(company, contact)).collect();
    Ok(Reply::ok("contact", &contacts))
}

pub fn contact(state: &State, call: &Call<'_>) -> Outcome {
    Ok(Reply::ok("contact", &v2::Contact::detail(call.company(state), call.contact(state, 1)?)))
}

pub fn create_contact(state: &mut State, call: &Call<'_>) -> Outcome {
    let fields = call.fields()?;
    let edit = ContactEdit {
        name: Some(fields.required_text("name")?),
        phone: Some(fields.required_text("phone")?),
        email: Some(fields.required_text("email")?),
        ..ContactEdit::default()
    };
    let id = state.create_contact(call.company, &edit);
    let company = call.company(state);
    let contact = company.contact(id).expect("the contact was made just now");
    Ok(Reply::json(StatusCode::CREATED, "contact", &[views::contact(company, contact)]))
}

pub fn edit_contact(state: &mut State, call: &Call<'_>) -> Outcome {
    let contact = call.contact(state, 1)?.id;
    let fields = call.fields()?;
    if !["name", "email", "phone"].into_iter().any(|field| fields.has(field)) {
        return Err(Failure::bad(Reason::NeedOneOf("'name', 'email', 'phone'")));
    }
    let edit = ContactEdit {
        name: fields.text("name")?,
        email: fields.text("email")?,
        phone: fields.text("phone")?,
        mobile: fields.text("mobile")?,
        address: fields.text("address")?,
        city: fields.text("city")?,
        district: fields.text("district")?,
        state: fields.text("state")?,
        obs: fields.text("obs")?,
    };
    state.edit_contact(call.company, contact, &edit);
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

pub fn delete_contact(state: &mut State, call: &Call<'_>) -> Outcome {
    let contact = call.contact(state, 1)?.id;
    state.delete_contact(call.company, contact);
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
