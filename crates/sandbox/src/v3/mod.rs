//! The current version: the three tables of the document, and a file of handlers for each.

mod agents;
mod chats;
mod contacts;
mod send;

pub use agents::{agent_in_path as named_agent, check_invitation};
pub use chats::flow_chat;
pub use send::plain_kind;

use super::router::{Endpoint, get, write};
use http::Method;

/// All operations of v3.
pub static ENDPOINTS: &[Endpoint] = &[
    get("/chats/{id}", chats::show),
    get("/chats", chats::list),
    get("/chats/{id}/messages", chats::messages),
    get("/chats/{id}/tags", chats::tags),
    get("/chats/{id}/agents", chats::agents),
    get("/chats/{id}/contextVariables", chats::context_variables),
    write(Method::POST, "/chats/{id}/messages", send::send),
    write(Method::POST, "/chats/{id}/transfer", chats::transfer),
    write(Method::POST, "/chats/{id}/flow", chats::flow),
    write(Method::PUT, "/chats/{id}/agent", chats::agent),
    write(Method::PUT, "/chats/{id}/read", chats::mark_read),
    write(Method::PUT, "/chats/{id}/tabulation", chats::tabulation),
    write(Method::PUT, "/chats/{id}/tags", chats::add_tags),
    write(Method::PUT, "/chats/{id}/queue", chats::queue),
    write(Method::PUT, "/chats/{id}/department", chats::department),
    write(Method::PUT, "/chats/{id}/close", chats::close),
    write(Method::PUT, "/chats/{id}/reopen", chats::reopen),
    write(Method::PUT, "/chats/{id}/workflow", chats::workflow),
    write(Method::PUT, "/chats/{id}/assignToMe", chats::assign_to_me),
    write(Method::DELETE, "/chats/{id}", chats::delete),
    get("/agents", agents::list),
    get("/agents/profile", agents::profile),
    write(Method::PUT, "/agents/status", agents::set_status),
    get("/agents/{id}", agents::show),
    get("/agents/{id}/status", agents::status),
    write(Method::POST, "/agents", agents::invite),
    write(Method::PUT, "/agents/{id}", agents::edit),
    get("/contacts", contacts::list),
    get("/contacts/{id}", contacts::show),
    get("/contacts/{id}/timeline", contacts::timeline),
    get("/contacts/{id}/groups", contacts::groups),
    get("/contacts/{id}/organizations", contacts::organizations),
    get("/contacts/{id}/customFields", contacts::custom_fields),
    get("/contacts/{id}/linkedContacts", contacts::link_status),
    write(Method::POST, "/contacts", contacts::create),
    write(Method::POST, "/timeline/createComment/{id}", contacts::comment),
    write(Method::PUT, "/contacts/{id}", contacts::edit),
];
