//! All modifications of the state. Both versions call the same functions, so that a write of one is
//! visible in the other. Each function maintains the invariants between fields, writes the internal
//! event and the timeline entry, and counts its effect. The handlers decide whether the caller may
//! call it, and with which status.

use super::marker::expand;
use super::{
    Agent, Chat, Comment, Contact, Draft, Happening, Id, Invitation, Mark, Message, Messages, Party,
    Presence, Role, Situation, State, Survey,
};
use serde_json::{Map, Value};

/// The editable fields of a contact. `None` leaves a field unchanged; an empty text clears an
/// optional field.
#[derive(Default)]
pub struct ContactEdit<'a> {
    pub name: Option<&'a str>,
    pub email: Option<&'a str>,
    pub phone: Option<&'a str>,
    pub mobile: Option<&'a str>,
    pub address: Option<&'a str>,
    pub city: Option<&'a str>,
    pub district: Option<&'a str>,
    pub state: Option<&'a str>,
    pub obs: Option<&'a str>,
}

/// A message of a contact, sent by control.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inbound {
    pub text: String,
}

/// The parameters of a new chat.
pub struct Beginning {
    pub contact: Id,
    pub channel: u16,
    pub department: Option<Id>,
    pub step: Option<Id>,
    pub by: Party,
}

impl State {
    /// Starts a write: advances the clock by one second.
    pub fn tick(&mut self) {
        self.now += 1;
    }

    /// Writes a message into a chat and returns its position.
    pub fn post(&mut self, company: usize, chat: Id, draft: Draft) -> usize {
        let (id, now) = (self.next_message, self.now);
        // One counter for all chats, so that the id of a message is unique.
        self.next_message += 1;
        let Some(chat) = self.companies[company].chat_mut(chat) else { return 0 };
        chat.updated_at = now;
        if let Some(effect) = draft.effect() {
            self.effects.count(effect, chat.id);
        }
        chat.messages.push(Message {
            id,
            from: draft.from,
            kind: draft.kind,
            internal: draft.internal,
            text: draft.text,
            file: draft.file,
            sent_at: now,
            read_at: None,
            event: draft.event,
        });
        chat.messages.len() - 1
    }

    /// Writes an internal event into a chat.
    fn occur(&mut self, company: usize, chat: Id, by: Party, event: &'static str, text: String) {
        self.post(company, chat, Draft::event(by, event, text));
    }

    fn say(&mut self, company: usize, chat: Id, text: String) {
        self.post(company, chat, Draft::text(Party::System, false, text));
    }

    /// Marks the messages of a chat as read.
    pub fn mark_read(&mut self, company: usize, chat: Id) {
        let now = self.now;
        if let Some(chat) = self.companies[company].chat_mut(chat) {
            chat.unread = 0;
            chat.messages.read_all(now);
            // Counted even if nothing was unread: a test of retries has to see that the call arrived
            // twice.
            self.effects.count("read", chat.id);
        }
    }

    /// Writes a message of the contact.
    pub fn receive(&mut self, company: usize, chat: Id, inbound: &Inbound) {
        self.tick();
        self.post(company, chat, Draft::text(Party::Contact, false, inbound.text.as_str()));
        self.chat_mut(company, chat).unread += 1;
    }

    /// Sets the contact's answer to the satisfaction survey.
    pub fn rate(&mut self, company: usize, chat: Id, survey: Survey) {
        self.tick();
        self.chat_mut(company, chat).survey = Some(survey);
    }

    /// Locks or unlocks a chat.
    pub fn lock(&mut self, company: usize, chat: Id, locked: bool) {
        self.chat_mut(company, chat).locked = locked;
    }

    fn chat_mut(&mut self, company: usize, chat: Id) -> &mut Chat {
        self.companies[company].chat_mut(chat).expect("handlers look the chat up under the same lock")
    }

    fn agent_name(&self, id: Id) -> String {
        self.agent(id).map_or_else(String::new, |agent| agent.name.clone())
    }

    /// Assigns the chat to an agent, who attends it.
    fn attend(&mut self, company: usize, chat: Id, agent: Id) {
        let now = self.now;
        let chat = self.chat_mut(company, chat);
        // An agent cannot attend a chat twice.
        if chat.second_agent == Some(agent) {
            chat.second_agent = None;
        }
        chat.agent = Some(agent);
        chat.situation = Situation::InChat;
        // An agent takes over from both: the chat leaves the queue, and its flow ends.
        chat.queue_number = None;
        chat.flow = None;
        // The first attendance remains, so that a transfer does not change the waiting time.
        chat.attended_at.get_or_insert(now);
    }

    /// Transfers a chat to another agent, with an optional internal note.
    pub fn transfer(&mut self, company: usize, chat: Id, by: Id, to: Id, note: Option<&str>) {
        self.attend(company, chat, to);
        let text = format!("transferred the chat to {}", self.agent_name(to));
        self.occur(company, chat, Party::Agent(by), "chat.transferred", text);
        if let Some(note) = note.filter(|note| !note.is_empty()) {
            self.post(company, chat, Draft::text(Party::Agent(by), true, note));
        }
        self.effects.count("transfer", chat);
    }

    /// Adds an agent to a chat: as its agent if there is none, otherwise as the second one.
    pub fn add_agent(&mut self, company: usize, chat: Id, by: Id, agent: Id) {
        let entry = self.chat_mut(company, chat);
        match entry.agent {
            None => self.attend(company, chat, agent),
            Some(current) if current != agent => entry.second_agent = Some(agent),
            Some(_) => {}
        }
        let text = format!("added {} to the chat", self.agent_name(agent));
        self.occur(company, chat, Party::Agent(by), "agent.added", text);
        self.effects.count("agent", chat);
    }

    /// Assigns the chat to the caller.
    pub fn assign(&mut self, company: usize, chat: Id, to: Id) {
        self.attend(company, chat, to);
        self.occur(company, chat, Party::Agent(to), "chat.assigned", "assumed the chat".to_owned());
        self.effects.count("assign", chat);
    }

    /// Moves a chat to the end of the queue, without an agent.
    pub fn queue(&mut self, company: usize, chat: Id, by: Id) {
        self.stand_in_queue(company, chat);
        self.occur(company, chat, Party::Agent(by), "chat.queued", "moved the chat to the queue".to_owned());
        self.effects.count("queue", chat);
    }

    fn stand_in_queue(&mut self, company: usize, chat: Id) {
        let number = self.companies[company].next_queue_number;
        // Numbers are never reused. A chat that returns to the queue goes to its end.
        self.companies[company].next_queue_number += 1;
        let chat = self.chat_mut(company, chat);
        chat.situation = Situation::WaitForChat;
        chat.queue_number = Some(number);
        chat.agent = None;
        chat.second_agent = None;
        chat.flow = None;
    }

    pub fn set_department(&mut self, company: usize, chat: Id, by: Id, department: Id) {
        let name =
            self.companies[company].department(department).map_or_else(String::new, |d| d.name.clone());
        self.chat_mut(company, chat).department = Some(department);
        self.occur(
            company,
            chat,
            Party::Agent(by),
            "department.set",
            format!("set the department to {name}"),
        );
        self.effects.count("department", chat);
    }

    pub fn set_tabulation(&mut self, company: usize, chat: Id, by: Id, tabulation: Id) {
        let name =
            self.companies[company].tabulation(tabulation).map_or_else(String::new, |t| t.name.clone());
        self.chat_mut(company, chat).tabulation = Some(tabulation);
        self.occur(
            company,
            chat,
            Party::Agent(by),
            "tabulation.set",
            format!("tabulated the chat as {name}"),
        );
        self.effects.count("tabulation", chat);
    }

    pub fn set_step(&mut self, company: usize, chat: Id, by: Id, step: Id) {
        let name = self.companies[company].step(step).map_or("", |step| step.name);
        self.chat_mut(company, chat).step = Some(step);
        self.occur(
            company,
            chat,
            Party::Agent(by),
            "workflow.moved",
            format!("moved the chat to the step {name}"),
        );
        self.effects.count("workflow", chat);
    }

    /// Sets the situation on behalf of v2. None of the possible situations is that of a finished
    /// chat, so a finished chat is reopened.
    pub fn set_situation(&mut self, company: usize, chat: Id, by: Id, situation: Situation) {
        self.chat_mut(company, chat).closed_at = None;
        match situation {
            Situation::WaitForChat => self.stand_in_queue(company, chat),
            _ => {
                let entry = self.chat_mut(company, chat);
                entry.situation = situation;
                entry.queue_number = None;
            }
        }
        let text = format!("set the situation to {}", situation.name());
        self.occur(company, chat, Party::Agent(by), "situation.set", text);
        self.effects.count("situation", chat);
    }

    /// Adds tags to a chat. Names that the company does not know become new tags.
    pub fn add_tags(&mut self, company: usize, chat: Id, by: Id, names: &str) {
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let tag = self.tag(company, name);
            let tags = &mut self.chat_mut(company, chat).tags;
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        self.occur(company, chat, Party::Agent(by), "tags.added", format!("added the tags {}", names.trim()));
        self.effects.count("tags", chat);
    }

    fn tag(&mut self, company: usize, name: &str) -> Id {
        let tags = &mut self.companies[company].tags;
        if let Some(tag) = tags.iter().find(|tag| tag.name == name) {
            return tag.id;
        }
        let id = tags.last().map_or(1, |tag| tag.id + 1);
        tags.push(super::Named { id, name: name.to_owned() });
        id
    }

    /// Runs a flow on a chat: aborts a running flow, removes the agent and sets the situation to
    /// `auto`.
    pub fn run_flow(&mut self, company: usize, chat: Id, by: Id, flow: Id, variables: &Map<String, Value>) {
        let Some((name, texts)) = self.companies[company].flow(flow).map(|f| (f.name, f.texts)) else {
            return;
        };
        let entry = self.chat_mut(company, chat);
        let running = entry.flow.replace(flow);
        entry.situation = Situation::Auto;
        entry.queue_number = None;
        entry.agent = None;
        entry.second_agent = None;
        if running.is_some() {
            self.occur(
                company,
                chat,
                Party::System,
                "flow.aborted",
                "the flow in process was aborted".to_owned(),
            );
        }
        self.occur(company, chat, Party::Agent(by), "flow.started", format!("started the flow {name}"));
        for text in texts {
            let text = expand(text, |marker| variables.get(marker).map(plain));
            self.say(company, chat, text);
        }
        self.effects.count("flow", chat);
    }

    /// Starts a chat and returns its id.
    pub fn begin(&mut self, company: usize, beginning: Beginning) -> Id {
        let now = self.now;
        let book = &mut self.companies[company];
        let id = book.chat_base + book.chats.len() as Id;
        let at = book.chats.len() as u32;
        book.chats.push(Chat {
            id,
            contact: beginning.contact,
            agent: None,
            second_agent: None,
            department: beginning.department,
            tabulation: None,
            channel: beginning.channel,
            situation: Situation::Auto,
            queue_number: None,
            unread: 0,
            created_at: now,
            updated_at: now,
            attended_at: None,
            closed_at: None,
            tags: Vec::new(),
            flow: None,
            step: beginning.step,
            survey: None,
            locked: false,
            deleted: false,
            messages: Messages::none(),
        });
        // Appending keeps the list sorted, which the binary search of `delete_chat` relies on.
        book.listed_chats.push(at);
        let kind = book.channels[beginning.channel as usize].kind;
        if let Some(contact) = book.contact_mut(beginning.contact) {
            contact.chats.push(id);
            contact.channels |= kind.bit();
        }
        self.occur(company, id, beginning.by, "chat.created", "started the chat".to_owned());
        self.effects.count("chat", id);
        id
    }

    /// Finishes a chat.
    pub fn close(&mut self, company: usize, chat: Id, by: Id, tabulation: Option<Id>, comment: Option<&str>) {
        let now = self.now;
        let entry = self.chat_mut(company, chat);
        entry.closed_at = Some(now);
        entry.situation = Situation::Finishing;
        entry.queue_number = None;
        entry.flow = None;
        if tabulation.is_some() {
            entry.tabulation = tabulation;
        }
        let text = match comment.filter(|comment| !comment.is_empty()) {
            Some(comment) => format!("finished the chat: {comment}"),
            None => "finished the chat".to_owned(),
        };
        self.occur(company, chat, Party::Agent(by), "chat.closed", text);
        self.mark(company, chat, by, Mark::Closed);
        self.effects.count("close", chat);
    }

    /// Sends the configured thank-you message.
    pub fn thank(&mut self, company: usize, chat: Id) {
        self.say(company, chat, "Thank you for talking to us! 💙".to_owned());
    }

    /// Sends the question for a rating.
    pub fn ask_rating(&mut self, company: usize, chat: Id) {
        self.say(company, chat, "How do you rate our service, from 1 to 5? ⭐".to_owned());
    }

    /// Reopens a finished chat, with its agent if it still has one.
    pub fn reopen(&mut self, company: usize, chat: Id, by: Id) {
        let entry = self.chat_mut(company, chat);
        entry.closed_at = None;
        // Not the earlier situation, which `close` replaced.
        entry.situation = if entry.agent.is_some() { Situation::InChat } else { Situation::Auto };
        self.occur(company, chat, Party::Agent(by), "chat.reopened", "reopened the chat".to_owned());
        self.mark(company, chat, by, Mark::Reopened);
        self.effects.count("reopen", chat);
    }

    /// Deletes a chat. The contact's timeline records the deletion.
    pub fn delete_chat(&mut self, company: usize, chat: Id, by: Id) {
        // Record the deletion first: deleted chats cannot be looked up.
        self.mark(company, chat, by, Mark::Deleted);
        let book = &mut self.companies[company];
        if let Ok(place) = book.listed_chats.binary_search(&((chat - book.chat_base) as u32)) {
            book.listed_chats.remove(place);
        }
        self.chat_mut(company, chat).deleted = true;
        self.effects.count("delete chat", chat);
    }

    fn mark(&mut self, company: usize, chat: Id, by: Id, mark: Mark) {
        let id = self.record_id();
        let at = self.now;
        let contact = self.chat_mut(company, chat).contact;
        if let Some(contact) = self.companies[company].contact_mut(contact) {
            contact.happenings.push(Happening { id, at, chat, by, mark });
        }
    }

    fn record_id(&mut self) -> Id {
        let id = self.next_record;
        self.next_record += 1;
        id
    }

    /// Creates a contact and returns its id.
    pub fn create_contact(&mut self, company: usize, edit: &ContactEdit<'_>) -> Id {
        let now = self.now;
        let book = &mut self.companies[company];
        let at = book.contacts.len() as u32;
        let id = book.contact_base + Id::from(at);
        let mut contact = Contact { id, created_at: now, updated_at: now, ..Contact::default() };
        apply(&mut contact, edit);
        book.contacts.push(contact);
        book.listed_contacts.push(at);
        book.index_contact(at);
        self.effects.count("create contact", id);
        id
    }

    /// Sets the given fields of a contact.
    pub fn edit_contact(&mut self, company: usize, id: Id, edit: &ContactEdit<'_>) {
        let now = self.now;
        let book = &mut self.companies[company];
        let at = (id - book.contact_base) as u32;
        // The keys of the indexes derive from the fields, so the entries can only be found before the
        // change.
        book.unindex_contact(at);
        let contact = &mut book.contacts[at as usize];
        apply(contact, edit);
        contact.updated_at = now;
        book.index_contact(at);
        self.effects.count("edit contact", id);
    }

    /// Deletes a contact. Its chats remain and still refer to it.
    pub fn delete_contact(&mut self, company: usize, id: Id) {
        let book = &mut self.companies[company];
        let at = (id - book.contact_base) as u32;
        book.unindex_contact(at);
        book.contacts[at as usize].deleted = true;
        if let Ok(place) = book.listed_contacts.binary_search(&at) {
            book.listed_contacts.remove(place);
        }
        self.effects.count("delete contact", id);
    }

    /// Adds a comment to a contact's timeline and returns its index among the comments.
    pub fn comment(&mut self, company: usize, contact: Id, by: Id, text: &str) -> usize {
        let (id, at) = (self.record_id(), self.now);
        self.effects.count("comment", contact);
        let Some(contact) = self.companies[company].contact_mut(contact) else { return 0 };
        contact.comments.push(Comment { id, at, by, text: text.to_owned() });
        contact.comments.len() - 1
    }

    /// Sends an invitation. The agent is created when it is accepted.
    pub fn invite(&mut self, company: usize, email: &str, role: i64, max_chats: i64) {
        let invitation = Invitation { email: email.to_owned(), role, max_chats };
        self.companies[company].invitations.insert(email.to_lowercase(), invitation);
        self.effects.count("invite", self.companies[company].id);
    }

    /// Accepts an invitation and returns the id of the new agent, or `None` if there is no
    /// invitation.
    pub fn accept(&mut self, company: usize, email: &str) -> Option<Id> {
        let invitation = self.companies[company].invitations.remove(&email.to_lowercase())?;
        // Consecutive ids are an invariant: `State::agent` computes the index from the id.
        let id = self.agents.last().map_or(1, |agent| agent.id + 1);
        let name = invitation.email.split('@').next().unwrap_or_default().replace(['.', '_'], " ");
        self.agents.push(Agent {
            id,
            name,
            login: invitation.email,
            phone: None,
            mobile: None,
            has_photo: false,
            role: Role::from_number(invitation.role).unwrap_or(Role::Agent),
            guest: false,
            active: true,
            companies: vec![self.companies[company].id],
            presence: Presence::Unavailable,
            presence_message: None,
            presence_at: self.now,
            presence_by: id,
            max_chats: invitation.max_chats,
            birth_date: None,
            welcome_text: None,
            signature: None,
            last_seen: None,
            created_at: self.now,
            updated_at: self.now,
        });
        self.companies[company].agents.push(id);
        Some(id)
    }

    pub fn set_presence(&mut self, agent: Id, presence: Presence) {
        let now = self.now;
        if let Some(agent) = self.agent_mut(agent) {
            agent.presence = presence;
            agent.presence_at = now;
            agent.presence_by = agent.id;
        }
        self.effects.count("presence", agent);
    }

    /// Sets the fields of an agent that v3 can edit.
    pub fn edit_agent(&mut self, id: Id, name: &str, login: &str, phone: Option<&str>) {
        let now = self.now;
        if let Some(agent) = self.agent_mut(id) {
            agent.name = name.to_owned();
            agent.login = login.to_owned();
            if let Some(phone) = phone {
                agent.phone = some(phone);
            }
            agent.updated_at = now;
        }
        self.effects.count("edit agent", id);
    }

    /// Sets the fields of an agent that v2 can edit.
    pub fn set_agent(&mut self, id: Id, role: Option<Role>, active: Option<bool>) {
        let now = self.now;
        if let Some(agent) = self.agent_mut(id) {
            agent.role = role.unwrap_or(agent.role);
            agent.active = active.unwrap_or(agent.active);
            agent.updated_at = now;
        }
        self.effects.count("edit agent", id);
    }
}

fn apply(contact: &mut Contact, edit: &ContactEdit<'_>) {
    if let Some(name) = edit.name {
        contact.name = name.to_owned();
    }
    // `name` cannot be absent, so an empty one is kept as a text.
    for (field, given) in [
        (&mut contact.email, edit.email),
        (&mut contact.phone, edit.phone),
        (&mut contact.mobile, edit.mobile),
        (&mut contact.address, edit.address),
        (&mut contact.city, edit.city),
        (&mut contact.district, edit.district),
        (&mut contact.state, edit.state),
        (&mut contact.obs, edit.obs),
    ] {
        if let Some(given) = given {
            *field = some(given);
        }
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Formats a variable for a text: strings without quotes, other values as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
