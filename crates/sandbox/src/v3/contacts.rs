//! Operations on contacts.

use crate::call::{Call, PAGE};
use crate::reply::{Outcome, Reply};
use crate::state::moves::ContactEdit;
use crate::state::{Company, State, digits};
use crate::views;
use http::StatusCode;

pub fn list(state: &State, call: &Call<'_>) -> Outcome {
    let company = call.company(state);
    let (email, phone) = (call.parameter("email"), call.parameter("phone"));
    let show = |contact| views::contact(company, contact);
    let contacts: Vec<_> = match select(company, email.as_deref(), phone.as_deref()) {
        None => company.contacts_from(call.skip()?).take(PAGE).map(show).collect(),
        Some(places) => {
            call.page(places.into_iter())?.map(|place| show(&company.contacts[place as usize])).collect()
        }
    };
    Ok(Reply::ok("contact", &contacts))
}

/// Returns the indices of the contacts that the filters select, or `None` without a filter.
fn select(company: &Company, email: Option<&str>, phone: Option<&str>) -> Option<Vec<u32>> {
    let by_email =
        email.map(|email| company.by_email.get(email.to_lowercase().as_str()).map_or(&[][..], Vec::as_slice));
    let by_phone =
        phone.map(|phone| company.by_phone.get(digits(phone).as_str()).map_or(&[][..], Vec::as_slice));
    match (by_email, by_phone) {
        (None, None) => None,
        (Some(places), None) | (None, Some(places)) => Some(places.to_vec()),
        // Both filters must match.
        (Some(one), Some(other)) => Some(one.iter().copied().filter(|place| other.contains(place)).collect()),
    }
}

pub fn show(state: &State, call: &Call<'_>) -> Outcome {
    Ok(Reply::ok("contact", &views::contact(call.company(state), call.contact(state, 1)?)))
}

pub fn timeline(state: &State, call: &Call<'_>) -> Outcome {
    let entries = views::timeline(state, call.company(state), call.contact(state, 1)?);
    Ok(Reply::ok("timeline", &call.page(entries.into_iter())?.collect::<Vec<_>>()))
}

pub fn groups(state: &State, call: &Call<'_>) -> Outcome {
    let groups = views::groups(call.company(state), call.contact(state, 1)?);
    Ok(Reply::ok("group", &call.page(groups)?.collect::<Vec<_>>()))
}

pub fn organizations(state: &State, call: &Call<'_>) -> Outcome {
    let organizations = views::organizations(call.company(state), call.contact(state, 1)?);
    Ok(Reply::ok("organization", &call.page(organizations)?.collect::<Vec<_>>()))
}

pub fn custom_fields(state: &State, call: &Call<'_>) -> Outcome {
    let fields = views::custom_fields(call.company(state), call.contact(state, 1)?);
    Ok(Reply::ok("custom field", &call.page(fields)?.collect::<Vec<_>>()))
}

pub fn link_status(state: &State, call: &Call<'_>) -> Outcome {
    let company = call.company(state);
    let linked = call.contact(state, 1)?.links.iter().filter_map(|id| company.contact(*id));
    let contacts: Vec<_> = call.page(linked)?.map(|contact| views::contact(company, contact)).collect();
    Ok(Reply::ok("contact", &contacts))
}

pub fn create(state: &mut State, call: &Call<'_>) -> Outcome {
    let fields = call.fields()?;
    let edit = ContactEdit {
        name: Some(fields.required_text("name")?),
        email: Some(fields.required_text("email")?),
        ..ContactEdit::default()
    };
    let id = state.create_contact(call.company, &edit);
    let company = call.company(state);
    let contact = company.contact(id).expect("the contact was made just now");
    Ok(Reply::json(StatusCode::CREATED, "contact", &views::contact(company, contact)))
}

pub fn comment(state: &mut State, call: &Call<'_>) -> Outcome {
    let contact = call.contact(state, 2)?.id;
    let fields = call.fields()?;
    let at = state.comment(call.company, contact, call.caller, fields.required_text("comment")?);
    let company = call.company(state);
    let comment = &call.contact(state, 2)?.comments[at];
    Ok(Reply::json(StatusCode::CREATED, "timeline", &views::comment(state, company, comment)))
}

pub fn edit(state: &mut State, call: &Call<'_>) -> Outcome {
    let contact = call.contact(state, 1)?.id;
    let fields = call.fields()?;
    let edit = ContactEdit {
        name: Some(fields.required_text("name")?),
        email: Some(fields.required_text("email")?),
        phone: Some(fields.required_text("phone")?),
        mobile: Some(fields.required_text("mobile")?),
        address: fields.text("address")?,
        city: fields.text("city")?,
        district: fields.text("district")?,
        state: fields.text("state")?,
        obs: fields.text("obs")?,
    };
    state.edit_contact(call.company, contact, &edit);
    Ok(Reply::done())
}
