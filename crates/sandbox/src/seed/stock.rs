//! Texts of seeded messages, and the function from (seed, chat, position) to a seeded message.

use super::mix;
use crate::state::{Kind, Message, Party, Seeded, Text};
use std::borrow::Cow;

/// Messages of contacts. `{name}` is the contact's name and `{n}` a number.
const ASKED: &[&str] = &[
    "Hi, I need help with my order #{n}",
    "Olá! Meu pedido #{n} ainda não chegou 😕",
    "¿Me pueden enviar la factura del pedido {n}, por favor?",
    "Bonjour, c'est {name}. Pouvez-vous m'aider ?",
    "Guten Tag, ich hätte gern Größe {n} – geht das noch?",
    "こんにちは、注文番号{n}について教えてください。",
    "Здравствуйте! Где мой заказ №{n}?",
    "مرحبا، أريد تغيير عنوان التسليم",
    "नमस्ते, क्या आप मेरी मदद कर सकते हैं? 🙏",
    "您好，订单{n}什么时候发货？",
    "안녕하세요, 환불 문의드립니다",
    "ok",
    "👍🏽👍🏽",
    "👩‍👩‍👧‍👦 we are four, table at 8?",
    "He said: \"call me back\" — twice!",
    "C:\\Users\\{n}\\Desktop\\boleto.pdf does not open",
    "<script>alert('{n}')</script>",
    "Line one\nLine two\n\tindented with a tab",
    "It's 100% broken; price was R$ 1.{n},90 & shipping > total?",
    "   ",
    "{\"json\": [1, 2, {\"n\": {n}}], \"ok\": true}",
    "Não consigo acessar: https://example.com/p?id={n}&utm_source=wa#top",
    "Zalgo t̷e̷x̷t̷ and a line separator\u{2028}here",
    "Preciso falar com um atendente, é urgente!!!",
    "Gracias, {name} al habla. Confirmo para el día {n}.",
    "\u{202b}שלום\u{202c} mixed with LTR",
];

/// Messages of agents.
const ANSWERED: &[&str] = &[
    "Hello {name}, how can I help you?",
    "Olá, {name}! Tudo bem? Já estou verificando o pedido #{n}.",
    "¡Hola {name}! Su pedido {n} salió hoy del almacén 🚚",
    "One moment, please ⏳",
    "Der Artikel Nr. {n} ist wieder verfügbar.",
    "Vous recevrez la facture n° {n} par e-mail « aujourd'hui ».",
    "Segue o link para pagamento: https://pay.example.com/{n}",
    "Your protocol number is {n}.\nKeep it for future contact.",
    "Posso ajudar em algo mais?",
    "ありがとうございます。確認いたします。",
    "Разберёмся и вернёмся с ответом в течение {n} минут.",
    "Perfect 🎉 – all done!",
    "Tamanho \"M\" ou 'G'? A peça é 50% algodão / 50% poliéster.",
    "De nada! Tenha um ótimo dia ☀️",
];

/// Internal notes of agents.
const NOTED: &[&str] = &[
    "Customer called twice before, see order {n}",
    "cliente VIP – dar prioridade",
    "Revisar con finanzas antes de prometer nada ⚠️",
];

/// Links of seeded media messages, with their kind.
const MEDIA: &[(Kind, &str)] = &[
    (Kind::Image, "https://files.example.com/media/{n}.jpg"),
    (Kind::Audio, "https://files.example.com/media/{n}.mp3"),
    (Kind::Video, "https://files.example.com/media/{n}.mp4"),
    (Kind::Document, "https://files.example.com/media/invoice-{n}.pdf"),
];

/// Returns the text at an index of the combined stock: contacts, agents, notes, media links, first
/// event.
pub fn text(place: u16, number: u32, name: &str) -> Cow<'static, str> {
    let media = MEDIA.iter().map(|(_, link)| *link);
    let all = ASKED.iter().chain(ANSWERED).chain(NOTED).copied().chain(media).chain(["started the chat"]);
    let text = all.into_iter().nth(place as usize).unwrap_or_default();
    // Most texts have no placeholder and need no allocation.
    if !text.contains('{') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("{name}", name).replace("{n}", &number.to_string()))
}

/// Returns the seeded message at a position. The first one records the start of the chat, the
/// latest `unread` ones are from the contact, and the others form a conversation.
pub fn message(seeded: &Seeded, at: u32) -> Message {
    // From the position alone: any page of a long chat is computed without the messages before it, and the
    // large state does not hold a million texts.
    let roll = mix(seeded.seed ^ seeded.chat.rotate_left(32) ^ u64::from(at));
    let number = (roll >> 40) as u32 % 90_000 + 10;
    let sent_at = seeded.from_at + i64::from(at) * seeded.pace;
    let unread = at + seeded.unread >= seeded.count;
    let mut message = Message {
        id: seeded.first_id + u64::from(at),
        from: Party::Contact,
        kind: seeded.kind,
        internal: false,
        text: question(roll, number),
        file: None,
        sent_at,
        read_at: (!unread).then_some(sent_at + seeded.pace / 2),
        event: None,
    };
    if at == 0 {
        message.kind = Kind::InternalEvent;
        message.internal = true;
        message.text = Text::Stock((ASKED.len() + ANSWERED.len() + NOTED.len() + MEDIA.len()) as u16, 0);
        message.event = Some("chat.created");
        return message;
    }
    if unread {
        return message;
    }
    if let (Some(agent), true) = (seeded.agent, roll & 1 == 0) {
        message.from = Party::Agent(agent);
        message.text = Text::Stock((ASKED.len() + (roll >> 8) as usize % ANSWERED.len()) as u16, number);
        if roll >> 4 & 15 == 0 {
            message.internal = true;
            message.kind = Kind::Text;
            let place = ASKED.len() + ANSWERED.len() + (roll >> 8) as usize % NOTED.len();
            message.text = Text::Stock(place as u16, number);
        }
    }
    if seeded.kind == Kind::Text && roll >> 20 & 15 == 0 && !message.internal {
        attach(&mut message, (roll >> 24) as usize % MEDIA.len(), number);
    }
    message
}

fn question(roll: u64, number: u32) -> Text {
    Text::Stock(((roll >> 8) as usize % ASKED.len()) as u16, number)
}

/// Turns a message into a media message. The text is the link.
fn attach(message: &mut Message, place: usize, number: u32) {
    let (kind, link) = MEDIA[place];
    message.kind = kind;
    message.text = Text::Stock((ASKED.len() + ANSWERED.len() + NOTED.len() + place) as u16, number);
    message.file = Some(link.replace("{n}", &number.to_string()).into_boxed_str());
}
