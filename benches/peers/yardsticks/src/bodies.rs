//! What the fixture answers: bodies of the new version in the shape and size that the service's document shows, always the same
//! bytes. Arrays and objects are never empty, because Lua's cjson cannot tell `[]` from `{}` and no peer shall fail for that.

use std::fmt::Write as _;

/// Messages in one page of the service.
pub const PAGE: usize = 20;

const TEXTS: [&str; 5] = [
    "Bom dia, Ana! O seu pedido saiu do depósito de Recife hoje às 9h e está a caminho. O entregador precisa que alguém assine.",
    "The parcel is at the depot in Lisbon and goes out with the morning round; someone has to be there to sign for it, otherwise it waits for you until Friday.",
    "Please ring twice.\\nThe bell on the left does not work, the one on the right does, and the dog is \\\"friendly\\\" most of the time.",
    "¿Pueden dejarlo en la tienda de al lado? Está abierta hasta las ocho y media; pregunten por Inés. ¡Muchas gracias! 🙂",
    "ok, obrigada",
];

const AGENT: &str = r#"{"id":11,"name":"Bruno Reis","mobile":null,"phone":"551130001122","email":"bruno.reis@example.com","photo":"https://cdn.example.com/photos/agents/11/small.png","isActive":true,"isOnline":true,"isAvailable":true,"statusID":0,"statusType":1}"#;
const CUSTOMER: &str = r#"{"id":7,"name":"Ana Lima","mobile":"5581988887777","phone":null,"email":"ana.lima@example.com","photo":null,"custom_fields":{"CPF":"000.000.000-00"}}"#;

/// One message of a list, without what only the answer to sending has.
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

/// A page of messages, about 16 KB, where `bytes` is 0; otherwise as many messages as pass that size.
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

/// A page of messages as the old version answers it.
pub fn old_messages() -> String {
    let list = serde_json::from_str(&messages(0)).expect("what is written here is JSON");
    serde_json::to_string(&crate::value::messages(list)).expect("values can be written")
}

/// The answer to a message that was sent.
pub fn sent() -> String {
    let mut out = String::new();
    message(0, &mut out);
    out.pop();
    out.push_str(r#","canEnableSession":true}"#);
    out
}

/// One chat.
pub fn chat() -> String {
    format!(
        r#"{{"id":481,"agentId":11,"secondAgentId":null,"contactId":7,"departmentId":3,"tabulationId":null,"chatTabulation":null,"lastMessage":{{"text":"{}","file":null,"sendAt":"2024-05-02 14:31:07","senderType":"customer","sender":{CUSTOMER}}},"chatDepartment":null,"unread":2,"channels":[{{"uuid":"0b8f7c52-6a52-4a0e-9b6c-3f1f6d0a7a11","id":"5","name":"Loja Recife","type":"Whatsapp-Enterprise"}}],"chatCustomer":{CUSTOMER},"queueNumber":null,"situation":"in_chat","createdAt":"2024-05-02 14:29:55","updatedAt":"2024-05-02 14:31:07","attendedAt":"2024-05-02 14:30:12","closedAt":null,"state":"without_answer","channel":"whatsapp-enterprise","agents":[{{"id":11,"name":"Bruno Reis","mobile":null,"phone":"551130001122","email":"bruno.reis@example.com","photo":null,"isActive":true,"isOnline":true,"isAvailable":true,"photo_url":null}}]}}"#,
        TEXTS[4]
    )
}

#[cfg(test)]
mod tests {
    use super::{chat, messages, sent};
    use serde_json::Value;

    #[test]
    fn bodies_are_json_of_the_sizes_named() {
        let page = messages(0);
        assert!((15_000..18_000).contains(&page.len()), "{}", page.len());
        assert_eq!(serde_json::from_str::<Vec<Value>>(&page).unwrap().len(), 20);
        assert!((100_000..102_000).contains(&messages(100_000).len()));
        assert!(serde_json::from_str::<Value>(&sent()).unwrap()["canEnableSession"].is_boolean());
        assert_eq!(serde_json::from_str::<Value>(&chat()).unwrap()["id"], 481);
    }
}
