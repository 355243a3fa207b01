//! The answers of the fixture: bodies of the new version in the form and size of the service's
//! document, always the same bytes. Arrays and objects are never empty, because Lua's cjson cannot
//! distinguish `[]` from `{}`, which should not count against a peer.

use std::fmt::Write as _;

/// Messages in one page of the service.
pub const PAGE: usize = 20;
/// Lists of varying messages, and their sources.
pub const VARIED: usize = 48;
const SEED: u64 = 20_240_502;

const TEXTS: [&str; 5] = [
    "Bom dia, Ana! O seu pedido saiu do depósito de Recife hoje às 9h e está a caminho. O entregador precisa que alguém assine.",
    "The parcel is at the depot in Lisbon and goes out with the morning round; someone has to be there to sign for it, otherwise it waits for you until Friday.",
    "Please ring twice.\\nThe bell on the left does not work, the one on the right does, and the dog is \\\"friendly\\\" most of the time.",
    "¿Pueden dejarlo en la tienda de al lado? Está abierta hasta las ocho y media; pregunten por Inés. ¡Muchas gracias! 🙂",
    "ok, obrigada",
];

const AGENT: &str = r#"{"id":11,"name":"Bruno Reis","mobile":null,"phone":"551130001122","email":"bruno.reis@example.com","photo":"https://cdn.example.com/photos/agents/11/small.png","isActive":true,"isOnline":true,"isAvailable":true,"statusID":0,"statusType":1}"#;
const CUSTOMER: &str = r#"{"id":7,"name":"Ana Lima","mobile":"5581988887777","phone":null,"email":"ana.lima@example.com","photo":null,"custom_fields":{"CPF":"000.000.000-00"}}"#;

/// Returns one message of a list, without the members that only the answer to sending has.
fn message(at: usize, out: &mut String) {
    let text = TEXTS[at % TEXTS.len()];
    let (sender, sender_type, receiver, receiver_type) = if at.is_multiple_of(2) {
        (AGENT, "agent", CUSTOMER, "whatsapp-enterprise")
    } else {
        (CUSTOMER, "customer", AGENT, "agent")
    };
    let id = 90_210 + at;
    let internal = at.is_multiple_of(7);
    let (day, hour, second) = (at / 400 % 28 + 1, at / 20 % 24, at % 60);
    write!(
        out,
        r#"{{"id":{id},"text":"{text}","isInternal":{internal},"isEmail":false,"sender":{sender},"senderType":"{sender_type}","receiver":{receiver},"receiverType":"{receiver_type}","file":null,"chat":{{"id":481,"channel":"whatsapp-enterprise","situation":"in_chat","department":false,"customer":{{"id":7,"name":"Ana Lima"}},"workflowID":null,"workflowStepID":null}},"sendAt":"2024-05-{day:02} {hour:02}:31:{second:02}","readAt":null,"type":"text"}}"#
    )
    .expect("a string takes whatever is written");
}

/// Returns a page of messages, about 16 KB, if `bytes` is 0; otherwise enough messages to exceed
/// that size.
pub fn messages(bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 1024);
    out.push('[');
    let mut at = 0;
    while at < PAGE || out.len() < bytes {
        if at > 0 {
            out.push(',');
        }
        message(at, &mut out);
        at += 1;
    }
    out.push(']');
    out
}

/// Returns lists of 1 to 200 messages with varying values, optional members and order of members;
/// the same in every run.
pub fn varied() -> Vec<String> {
    let mut draw = Draw(SEED);
    (0..VARIED).map(|_| array((0..=draw.below(200)).map(|_| varied_message(&mut draw)))).collect()
}

/// Pseudo-random numbers, reproducible for a seed (splitmix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn is(&mut self) -> bool {
        self.below(2) == 0
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Names with values in JSON notation.
type Members = Vec<(&'static str, String)>;

fn array(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

/// Returns an object in one of two orders.
fn object(mut members: Members, is_reversed: bool) -> String {
    if is_reversed {
        members.reverse();
    }
    let members = members.iter().map(|(name, value)| format!(r#""{name}":{value}"#));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    format!(r#""{text}""#)
}

/// Returns words of several scripts and with escapes, in JSON notation.
fn varied_text(draw: &mut Draw) -> String {
    const WORDS: [&str; 12] = [
        "ok",
        "amanhã",
        "parcel",
        "depósito",
        "\\n",
        "\\\"sim\\\"",
        "🚚",
        "já",
        "Friday",
        "\\u00e9",
        "наш",
        "9h30",
    ];
    let words: Vec<_> = (0..=draw.below(40)).map(|_| draw.one_of(&WORDS)).collect();
    quoted(&words.join(" "))
}

fn varied_moment(draw: &mut Draw) -> String {
    let [month, day] = [12, 28].map(|bound| draw.below(bound) + 1);
    let [hour, minute, second] = [24, 60, 60].map(|bound| draw.below(bound));
    format!(r#""2024-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}""#)
}

/// Returns a person, optionally with the members of agents and of contacts.
fn varied_person(draw: &mut Draw, is_reversed: bool) -> String {
    let digits = draw.below(9) as u32 + 1;
    let id = draw.below(10_u64.pow(digits));
    let or_null = |value: String, is: bool| if is { value } else { "null".to_owned() };
    let number = format!(r#""55{}""#, 10_000_000_000 + draw.below(80_000_000_000));
    let mut members: Members = vec![
        ("id", id.to_string()),
        ("name", quoted(draw.one_of(&["Ana Lima", "Bruno Reis", "Inés", "Żaneta", "O'Neill \\\"Bo\\\""]))),
        ("mobile", or_null(number.clone(), draw.is())),
        ("phone", or_null(number, draw.is())),
        ("email", or_null(format!(r#""p{id}@example.com""#), draw.is())),
        ("photo", or_null(format!(r#""https://cdn.example.com/photos/{id}/small.png""#), draw.is())),
    ];
    match draw.below(4) {
        0 => {}
        1 => members.push(("custom_fields", r#"{"CPF":"000.000.000-00"}"#.to_owned())),
        2 => {
            members.extend(["isActive", "isOnline", "isAvailable"].map(|name| (name, draw.is().to_string())))
        }
        _ => {
            members.extend(["isActive", "isOnline", "isAvailable"].map(|name| (name, draw.is().to_string())));
            members.extend(["statusID", "statusType"].map(|name| (name, draw.below(9).to_string())));
        }
    }
    object(members, is_reversed)
}

fn varied_message(draw: &mut Draw) -> String {
    let (is_reversed, id) = (draw.is(), draw.below(1_000_000_000));
    let channel = quoted(draw.one_of(&["whatsapp-enterprise", "widget", "email"]));
    let chat = vec![
        ("id", draw.below(1_000_000).to_string()),
        ("channel", channel.clone()),
        ("situation", quoted("in_chat")),
        ("department", draw.one_of(&["false", "3", r#"{"id":3,"name":"Loja"}"#]).to_owned()),
        ("customer", format!(r#"{{"id":{},"name":{}}}"#, draw.below(100_000), varied_text(draw))),
        ("workflowID", draw.one_of(&["null", "17"]).to_owned()),
        ("workflowStepID", draw.one_of(&["null", "4"]).to_owned()),
    ];
    let file = format!(r#""https://cdn.example.com/files/{id}.pdf""#);
    let members = vec![
        ("id", id.to_string()),
        ("text", varied_text(draw)),
        ("isInternal", draw.is().to_string()),
        ("isEmail", draw.is().to_string()),
        ("sender", varied_person(draw, is_reversed)),
        ("senderType", quoted(draw.one_of(&["agent", "customer"]))),
        ("receiver", varied_person(draw, is_reversed)),
        ("receiverType", channel),
        ("file", if draw.is() { file } else { "null".to_owned() }),
        ("chat", object(chat, is_reversed)),
        ("sendAt", varied_moment(draw)),
        ("readAt", if draw.is() { varied_moment(draw) } else { "null".to_owned() }),
        ("type", quoted(draw.one_of(&["text", "image", "document", "internalEvent"]))),
    ];
    object(members, is_reversed)
}

/// Returns a page of messages in the form of the old version.
pub fn old_messages() -> String {
    let list = serde_json::from_str(&messages(0)).expect("what is written here is JSON");
    serde_json::to_string(&crate::value::messages(list)).expect("values can be written")
}

/// Returns the answer to a sent message.
pub fn sent() -> String {
    let mut out = String::new();
    message(0, &mut out);
    out.pop();
    out.push_str(r#","canEnableSession":true}"#);
    out
}

/// Returns one chat.
pub fn chat() -> String {
    format!(
        r#"{{"id":481,"agentId":11,"secondAgentId":null,"contactId":7,"departmentId":3,"tabulationId":null,"chatTabulation":null,"lastMessage":{{"text":"{}","file":null,"sendAt":"2024-05-02 14:31:07","senderType":"customer","sender":{CUSTOMER}}},"chatDepartment":null,"unread":2,"channels":[{{"uuid":"0b8f7c52-6a52-4a0e-9b6c-3f1f6d0a7a11","id":"5","name":"Loja Recife","type":"Whatsapp-Enterprise"}}],"chatCustomer":{CUSTOMER},"queueNumber":null,"situation":"in_chat","createdAt":"2024-05-02 14:29:55","updatedAt":"2024-05-02 14:31:07","attendedAt":"2024-05-02 14:30:12","closedAt":null,"state":"without_answer","channel":"whatsapp-enterprise","agents":[{{"id":11,"name":"Bruno Reis","mobile":null,"phone":"551130001122","email":"bruno.reis@example.com","photo":null,"isActive":true,"isOnline":true,"isAvailable":true,"photo_url":null}}]}}"#,
        TEXTS[4]
    )
}

#[cfg(test)]
mod tests {
    use super::{VARIED, chat, messages, sent, varied};
    use serde_json::Value;
    use std::collections::HashSet;

    #[test]
    fn bodies_are_json_of_the_sizes_named() {
        let page = messages(0);
        assert!((15_000..18_000).contains(&page.len()), "{}", page.len());
        assert_eq!(serde_json::from_str::<Vec<Value>>(&page).unwrap().len(), 20);
        assert!((100_000..102_000).contains(&messages(100_000).len()));
        assert!(serde_json::from_str::<Value>(&sent()).unwrap()["canEnableSession"].is_boolean());
        assert_eq!(serde_json::from_str::<Value>(&chat()).unwrap()["id"], 481);
    }

    #[test]
    fn lists_that_vary_are_json_with_several_sets_and_orders_of_members() {
        let lists = varied();
        assert_eq!(lists.len(), VARIED);
        assert_eq!(lists, varied(), "always the same ones");
        let (mut lengths, mut members, mut orders) = (HashSet::new(), HashSet::new(), HashSet::new());
        for text in &lists {
            let list: Vec<Value> = serde_json::from_str(text).unwrap();
            assert!((1..=200).contains(&list.len()));
            lengths.insert(list.len());
            let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            members.extend(list.iter().map(|message| names(&message["sender"])));
            orders.insert(text.starts_with(r#"[{"id""#));
        }
        assert!(lengths.len() > VARIED / 2, "{lengths:?}");
        assert_eq!((members.len(), orders.len()), (4, 2));
    }
}
