//! Builds the state of a seed: two companies with their agents, contacts, chats and messages. Equal
//! seed and size yield equal states, byte for byte. `small` contains every kind of record; `large`
//! contains 100,000 contacts.

mod catalog;
mod names;
pub mod stock;

use super::Size;
use super::clock::START;
use super::state::{
    Agent, ChannelKind, Chat, Comment, Company, Contact, Effects, Id, Kind, Messages, Presence, Role, Seeded,
    Situation, State, Survey,
};
use std::collections::{BTreeMap, HashMap};

/// The main and the secondary company.
pub const COMPANIES: [(Id, &str); 2] = [(41, "Aurora Viagens"), (42, "Mercado Andino")];

/// Agents with credentials: printed role, id, company.
pub const ACCOUNTS: [(&str, Id, Id); 5] = [
    ("administrator", 201, 41),
    ("manager", 202, 41),
    ("agent", 203, 41),
    ("guest", 204, 41),
    ("second-company", 205, 42),
];

/// The chat of the main company with thousands of messages.
pub const LONG_CHAT: Id = 4;
const LONG_CHAT_MESSAGES: u32 = 3_000;

/// A chat with message ids beyond the precision of a double; the first one is 2^53 + 1.
const WIDE_IDS_CHAT: Id = 6;
const WIDE_IDS_FROM: Id = 9_007_199_254_740_993;

const DAY: i64 = 86_400;

/// Returns the output of one step of splitmix64, in which every bit depends on all bits of `value`.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seeded random number generator.
pub struct Roll(u64);

impl Roll {
    pub fn new(seed: u64) -> Roll {
        Roll(mix(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn digit(&mut self) -> char {
        char::from(b'0' + self.below(10) as u8)
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    fn maybe<T>(&mut self, percent: u64, value: impl FnOnce(&mut Roll) -> T) -> Option<T> {
        self.chance(percent).then(|| value(self))
    }
}

/// Builds the state of a seed.
pub fn build(seed: u64, size: Size) -> State {
    let (contacts, chats) = match size {
        Size::Small => (90, 130),
        Size::Large => (100_000, 100_000),
    };
    // The order of the rolls is part of the data: an additional roll changes all records after it, and the
    // texts that tests expect.
    let mut roll = Roll::new(seed);
    let agents = agents(&mut roll);
    let mut next_message = 100_001;
    let main = company(
        0,
        seed,
        &agents,
        Numbers { contacts, chats, contact_base: 1001, chat_base: 1 },
        &mut next_message,
    );
    let second = Numbers { contacts: 25, chats: 30, contact_base: 10_001_001, chat_base: 10_000_001 };
    let second = company(1, seed, &agents, second, &mut next_message);
    State {
        seed,
        now: START,
        companies: vec![main, second],
        agents,
        effects: Effects::default(),
        next_message,
        next_record: 700_001,
    }
}

fn agents(roll: &mut Roll) -> Vec<Agent> {
    let first = ACCOUNTS[0].1;
    let mut agents = Vec::new();
    for place in 0..34 {
        let id = first + place;
        let (role, guest, companies) = match place {
            0 => (Role::Administrator, false, vec![41, 42]),
            1 => (Role::Manager, false, vec![41]),
            2 => (Role::Agent, false, vec![41]),
            3 => (Role::Agent, true, vec![41]),
            4 => (Role::Administrator, false, vec![42]),
            5..=8 => (Role::Agent, false, vec![42]),
            _ => (if place % 7 == 0 { Role::Manager } else { Role::Agent }, place % 11 == 0, vec![41]),
        };
        agents.push(agent(roll, id, role, guest, companies));
    }
    agents
}

fn agent(roll: &mut Roll, id: Id, role: Role, guest: bool, companies: Vec<Id>) -> Agent {
    let person = names::person(roll);
    let presence =
        *roll.pick(&[Presence::Available, Presence::Available, Presence::Unavailable, Presence::Paused]);
    let created_at = START - 500 * DAY + id as i64 * 3 * 3600;
    // Accounts are always active, so that every role can be tried.
    let is_account = ACCOUNTS.iter().any(|(_, account, _)| *account == id);
    Agent {
        id,
        login: format!("{}.{id}@agents.example.com", person.handle),
        name: person.name,
        phone: roll.maybe(70, |_| person.phone.clone()),
        mobile: roll.maybe(30, |_| person.phone),
        has_photo: roll.chance(60),
        role,
        guest,
        active: is_account || roll.chance(90),
        companies,
        presence,
        presence_message: (presence == Presence::Paused).then_some("Lunch 🍽️"),
        presence_at: START - DAY + id as i64,
        presence_by: id,
        max_chats: 5 + roll.below(20) as i64,
        birth_date: roll.maybe(40, |roll| *roll.pick(&["1990-02-28", "1985-12-01", "2000-02-29"])),
        welcome_text: roll.maybe(40, |_| "Olá! Em que posso ajudar? 😊"),
        signature: roll.maybe(30, |_| "<p>Atenciosamente,<br>\"Equipe\" & Cia</p>".to_owned()),
        last_seen: roll.maybe(80, |roll| START - roll.below(7 * DAY as u64) as i64),
        created_at,
        updated_at: created_at + 40 * DAY,
    }
}

/// Sizes of a company and the first ids of its records.
struct Numbers {
    contacts: u64,
    chats: u64,
    contact_base: Id,
    chat_base: Id,
}

fn company(place: usize, seed: u64, agents: &[Agent], numbers: Numbers, next_message: &mut Id) -> Company {
    // A generator per company, so that the size of the first does not change the people of the second.
    let mut roll = Roll::new(seed ^ (place as u64 + 1).rotate_left(48));
    let (id, name) = COMPANIES[place];
    let mut company = Company {
        id,
        name,
        created_at: START - 900 * DAY,
        agents: agents.iter().filter(|agent| agent.companies.contains(&id)).map(|agent| agent.id).collect(),
        contacts: Vec::with_capacity(numbers.contacts as usize),
        contact_base: numbers.contact_base,
        listed_contacts: (0..numbers.contacts as u32).collect(),
        chats: Vec::with_capacity(numbers.chats as usize),
        chat_base: numbers.chat_base,
        listed_chats: (0..numbers.chats as u32).collect(),
        departments: catalog::departments(id),
        tabulations: catalog::tabulations(id),
        tags: catalog::tags(id),
        flows: catalog::flows(id),
        steps: catalog::steps(id),
        channels: catalog::channels(id),
        templates: catalog::templates(id),
        groups: catalog::groups(id),
        organizations: catalog::organizations(id),
        custom_fields: catalog::custom_fields(id),
        invitations: BTreeMap::new(),
        next_queue_number: 1,
        by_email: HashMap::new(),
        by_phone: HashMap::new(),
    };
    for at in 0..numbers.contacts {
        let contact = contact(&mut roll, &company, at, numbers.contacts);
        company.contacts.push(contact);
    }
    link(&mut company);
    for at in 0..numbers.chats {
        let chat = chat(&mut roll, seed, &company, at, &numbers, next_message);
        enter(&mut company, chat);
    }
    for at in 0..numbers.contacts as u32 {
        company.index_contact(at);
    }
    company
}

fn contact(roll: &mut Roll, company: &Company, at: u64, of: u64) -> Contact {
    let person = names::person(roll);
    let id = company.contact_base + at;
    let created_at = START - 450 * DAY + (300 * DAY as u64 * at / of) as i64;
    // The first contact always has an email address, a phone number, custom values, a group and an
    // organization.
    let email = (at == 0 || roll.chance(70)).then(|| format!("{}.{id}@mail.example.com", person.handle));
    let phone = (at == 0 || roll.chance(75)).then_some(person.phone);
    let mut contact = Contact {
        id,
        mobile: phone.clone().filter(|_| roll.chance(60)),
        // Some numbers contain formatting, which no messaging app accepts.
        phone: phone
            .map(|p| if at % 13 == 5 { format!("+{} ({}) {}", &p[..2], &p[2..4], &p[4..]) } else { p }),
        email,
        has_photo: roll.chance(40),
        created_at,
        updated_at: created_at + 20 * DAY,
        last_seen: roll.maybe(50, |roll| START - roll.below(30 * DAY as u64) as i64),
        gender: roll.pick::<&str>(&["M", "F", ""]),
        blocked: roll.chance(2),
        name: person.name,
        ..Contact::default()
    };
    if roll.chance(30) {
        contact.address = Some(format!("{}, {}", person.street, roll.below(2000) + 1));
        contact.city = Some(person.city.to_owned());
        contact.state = Some(person.state.to_owned());
        contact.district = roll.maybe(50, |_| "Centro".to_owned());
        contact.zip_code =
            roll.maybe(60, |roll| format!("{:05}-{:03}", roll.below(100_000), roll.below(1000)));
    }
    contact.obs = roll.maybe(15, |roll| (*roll.pick(REMARKS)).to_owned());
    contact.birth_date = roll.maybe(30, |roll| {
        format!("{}-{:02}-{:02}", 1950 + roll.below(55), 1 + roll.below(12), 1 + roll.below(28))
    });
    if at == 0 || roll.chance(25) {
        contact.custom = custom_values(roll, company);
    }
    if at == 0 || roll.chance(30) {
        contact.groups = vec![roll.pick(&company.groups).id];
    }
    contact.organization = (at == 0 || roll.chance(20)).then(|| roll.pick(&company.organizations).id);
    if at.is_multiple_of(17) {
        let text = (*roll.pick(REMARKS)).to_owned();
        contact.comments.push(Comment {
            id: 600_000 + at,
            at: created_at + 3600,
            by: company.agents[0],
            text,
        });
    }
    contact.channels = reachable(&contact);
    contact
}

const REMARKS: &[&str] = &[
    "Prefers \"morning\" calls \\ never after 18h",
    "<b>VIP</b> & family",
    "linha 1\nlinha 2\tcom tab",
    "Cliente desde 2019 🥇",
    "null",
    "{}",
];

fn custom_values(roll: &mut Roll, company: &Company) -> Vec<(u16, String)> {
    let values = ["007", "Gold \"plus\"", "1234567890123456789012", "sim", "2024-02-29", ""];
    let count = company.custom_fields.len() as u16;
    (0..count)
        .filter(|at| *at == 0 || roll.0 >> at & 1 == 0)
        .map(|at| (at, values[at as usize % values.len()].to_owned()))
        .collect()
}

fn reachable(contact: &Contact) -> u16 {
    let mut channels = 0;
    if contact.email.is_some() {
        channels |= ChannelKind::Email.bit();
    }
    if contact.has_international_phone() {
        channels |= ChannelKind::WhatsappEnterprise.bit() | ChannelKind::Sms.bit() | ChannelKind::Voip.bit();
    }
    channels
}

/// Links the first contact to the next two, and some later ones in pairs.
fn link(company: &mut Company) {
    let mut pairs = vec![(0, 1), (0, 2)];
    pairs.extend((20..company.contacts.len() - 1).step_by(23).map(|at| (at, at + 1)));
    for (main, linked) in pairs {
        let (main_id, linked_id) = (company.contacts[main].id, company.contacts[linked].id);
        company.contacts[main].links.push(linked_id);
        company.contacts[linked].parent = Some(main_id);
    }
}

/// Situations are assigned in rotation, so that any ten consecutive chats contain each of them.
const ROUND: [Situation; 10] = [
    Situation::InChat,
    Situation::Auto,
    Situation::WaitForChat,
    Situation::InChat,
    Situation::Finishing,
    Situation::Blocked,
    Situation::InChat,
    Situation::Finishing,
    Situation::Auto,
    Situation::Finishing,
];

/// Indices of the channels, frequent ones repeated. The length is coprime to that of the
/// situations, so that all combinations occur.
const CHANNELS: [u16; 13] = [0, 2, 0, 0, 3, 0, 0, 1, 6, 4, 7, 5, 8];

fn chat(
    roll: &mut Roll,
    seed: u64,
    company: &Company,
    at: u64,
    numbers: &Numbers,
    next_message: &mut Id,
) -> Chat {
    let id = numbers.chat_base + at;
    // Exactly one chat of each company is internal.
    let channel = if at == 40 % numbers.chats { 9 } else { CHANNELS[at as usize % CHANNELS.len()] };
    let kind = company.channels[channel as usize].kind;
    let situation = ROUND[at as usize % ROUND.len()];
    let created_at = START - 100 * DAY + (99 * DAY as u64 * at / numbers.chats) as i64;
    // Some finished chats never had an agent.
    let attended = situation == Situation::InChat || (situation == Situation::Finishing && at % 10 != 9);
    let agent = attended.then(|| *roll.pick(&company.agents));

    // Ten messages per chat on average: pairs of chats have complementary counts.
    let spread = (at / 2 % 8) as u32;
    let is_long = id == LONG_CHAT;
    let count = if is_long {
        LONG_CHAT_MESSAGES
    } else if at.is_multiple_of(2) {
        10 + spread
    } else {
        10 - spread
    };
    // All messages must be older than the start of the clock.
    let pace = (60 + roll.below(600) as i64).min((START - created_at) / (i64::from(count) + 2)).max(1);
    let first_id = if id == WIDE_IDS_CHAT { WIDE_IDS_FROM } else { *next_message };
    // Advanced for the wide ids too, so that all other chats have the same ids as without them.
    *next_message += u64::from(count);
    let unread = if situation == Situation::Finishing || count < 4 { 0 } else { roll.below(3) as u32 };
    let last_at = created_at + i64::from(count - 1) * pace;
    let message_kind = match kind {
        ChannelKind::Email => Kind::Email,
        ChannelKind::Sms => Kind::Sms,
        _ => Kind::Text,
    };
    let seeded = Seeded {
        seed,
        chat: id,
        first_id,
        count,
        from_at: created_at,
        pace,
        agent,
        kind: message_kind,
        unread,
    };
    let closed = situation == Situation::Finishing;
    Chat {
        id,
        // The first contact has at least ten chats, enough for timelines and for filters by contact.
        contact: if at < 40 && at.is_multiple_of(4) {
            company.contact_base
        } else {
            company.contact_base + at % numbers.contacts
        },
        agent,
        second_agent: agent
            .filter(|_| roll.chance(8))
            .map(|_| company.agents[0])
            .filter(|second| Some(*second) != agent),
        department: roll.maybe(60, |roll| roll.pick(&company.departments).id),
        tabulation: (closed && roll.chance(70)).then(|| roll.pick(&company.tabulations).id),
        channel,
        situation,
        queue_number: (situation == Situation::WaitForChat).then_some(at / 10 + 1),
        unread,
        created_at,
        updated_at: last_at,
        attended_at: attended.then_some(created_at + pace),
        closed_at: closed.then_some(last_at + 1),
        tags: if roll.chance(35) { vec![roll.pick(&company.tags).id] } else { Vec::new() },
        flow: (situation == Situation::Auto && at % 20 == 1).then(|| company.flows[0].id),
        step: roll.maybe(30, |roll| roll.pick(&company.steps).id),
        survey: (closed && at % 10 == 7).then(|| survey(roll)),
        locked: false,
        deleted: false,
        messages: Messages::from_seed(seeded),
    }
}

fn survey(roll: &mut Roll) -> Survey {
    let text = *roll.pick(&["Great service! 🌟", "", "Demorou \"um pouco\", mas resolveu.", "Todo bien 👍"]);
    Survey { score: 1 + roll.below(5) as u8, text: text.to_owned() }
}

fn enter(company: &mut Company, chat: Chat) {
    let bit = company.channel_of(&chat).kind.bit();
    if let Some(number) = chat.queue_number {
        company.next_queue_number = company.next_queue_number.max(number + 1);
    }
    if let Some(contact) = company.contact_mut(chat.contact) {
        contact.chats.push(chat.id);
        contact.channels |= bit;
    }
    company.chats.push(chat);
}
