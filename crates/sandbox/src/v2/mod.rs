//! The deprecated version: its table of operations, and a file of handlers for each kind of
//! resource. The handlers call the same state functions as those of v3.

mod chats;
mod flows;
mod people;

use super::router::{Endpoint, get, write};
use http::Method;

/// All operations of v2.
pub static ENDPOINTS: &[Endpoint] = &[
    get("/agents", people::agents),
    get("/agents/{id}", people::agent),
    write(Method::POST, "/agents", people::invite),
    write(Method::PUT, "/agents/{id}", people::edit_agent),
    get("/contacts", people::contacts),
    get("/contacts/{id}", people::contact),
    write(Method::POST, "/contacts", people::create_contact),
    write(Method::PUT, "/contacts/{id}", people::edit_contact),
    write(Method::DELETE, "/contacts/{id}", people::delete_contact),
    get("/chats", chats::list),
    get("/chats/{id}", chats::show),
    get("/chats/{id}/messages", chats::messages),
    get("/chats/{id}/feedback", chats::feedback),
    write(Method::POST, "/chats/{channel}", chats::create),
    write(Method::POST, "/chats/{id}/close", chats::close),
    write(Method::POST, "/chats/{id}/queue", chats::queue),
    write(Method::POST, "/chats/{id}/messages", chats::send),
    write(Method::POST, "/chats/{id}/reopen", chats::reopen),
    write(Method::POST, "/chats/{id}/situation", chats::situation),
    write(Method::POST, "/chats/{id}/tags", chats::add_tags),
    write(Method::POST, "/chats/{id}/flow", chats::flow),
    write(Method::POST, "/flows/{flowId}/contact/{contactId}/exec", flows::exec),
];
