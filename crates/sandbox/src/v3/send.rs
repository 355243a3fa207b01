//! Sending messages: text, files, buttons, templates and internal notes.

use crate::call::{Call, Fields, integer};
use crate::reasons::{Expect, Reason};
use crate::reply::{Failure, Outcome, Reply};
use crate::state::{ChannelKind, Draft, Kind, Party, State, Text, check_template};
use crate::views;
use http::StatusCode;
use serde_json::Value;
use std::fmt::Write;

pub fn send(state: &mut State, call: &Call<'_>) -> Outcome {
    let chat = call.open_chat(state)?;
    let (id, channel) = (chat.id, call.company(state).channel_of(chat).kind);
    let fields = call.fields()?;
    let text = fields.required_text("text")?;
    let internal = fields.boolean("isInternal")?.unwrap_or(false);
    let options = options(&fields)?;
    let file = fields.text("file")?.map(|url| media(url).map(|kind| (url, kind))).transpose()?;
    let template = fields.object("hsm")?;
    let template = template.map(|hsm| check_template(hsm, call.company(state), channel)).transpose()?;

    let from = Party::Agent(call.caller);
    let text = with_options(text, &options, channel);
    let mut draft = Draft { kind: plain_kind(channel, internal), ..Draft::text(from, internal, text) };
    if let Some(text) = template {
        draft.kind = Kind::Template;
        draft.text = Text::own(text);
    } else if let Some((url, kind)) = file {
        draft.kind = kind;
        draft.text = Text::own(url);
        draft.file = Some(url.into());
    }
    let status = if options.is_empty() { StatusCode::OK } else { StatusCode::CREATED };
    let at = state.post(call.company, id, draft);
    let chat = call.chat(state)?;
    let message = chat.messages.get(at).expect("the message was written at this position just now");
    Ok(Reply::json(status, "message", &views::sent(state, call.company(state), chat, message)))
}

/// Returns the kind of a text message on a channel. Internal notes are always chat texts.
pub fn plain_kind(channel: ChannelKind, internal: bool) -> Kind {
    match channel {
        ChannelKind::Email if !internal => Kind::Email,
        ChannelKind::Sms if !internal => Kind::Sms,
        _ => Kind::Text,
    }
}

/// Returns the titles of the button options.
fn options(fields: &Fields) -> Result<Vec<String>, Failure> {
    let wrong = || Failure::wrong_type("options", Expect::Array);
    let Some(list) = fields.array("options")? else { return Ok(Vec::new()) };
    list.iter()
        .map(|option| {
            option.get("id").and_then(integer).ok_or_else(wrong)?;
            option.get("title").and_then(Value::as_str).map(str::to_owned).ok_or_else(wrong)
        })
        .collect()
}

/// Returns the text with its options. It is unchanged if the channel renders them as buttons or as
/// a list; otherwise the options follow as numbered lines.
fn with_options(text: &str, options: &[String], channel: ChannelKind) -> String {
    let mut out = text.to_owned();
    if options.len() > channel.options_max() {
        for (place, title) in options.iter().enumerate() {
            write!(out, "\n{}. {title}", place + 1).expect("a String takes every write");
        }
    }
    out
}

/// Returns the message kind of a file by its extension. Fails with 400 for other types.
fn media(url: &str) -> Result<Kind, Failure> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref() {
        Some("jpg" | "jpeg" | "png" | "gif" | "bmp") => Ok(Kind::Image),
        Some("mp4" | "m4a" | "mp3" | "wav") => Ok(Kind::Audio),
        Some("pdf" | "doc" | "txt") => Ok(Kind::Document),
        _ => Err(Failure::bad(Reason::FileType)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(count: usize) -> Vec<String> {
        (1..=count).map(|n| format!("T{n}")).collect()
    }

    #[test]
    fn options_are_numbered_lines_beyond_what_the_channel_shows_as_buttons() {
        for (channel, buttons_max) in [
            (ChannelKind::WhatsappEnterprise, 10),
            (ChannelKind::Messenger, 13),
            (ChannelKind::Instagram, 13),
            (ChannelKind::TelegramBot, 1000),
        ] {
            assert_eq!(with_options("Q?", &titles(buttons_max), channel), "Q?", "{channel:?}");
            let text = with_options("Q?", &titles(buttons_max + 1), channel);
            assert!(text.starts_with("Q?\n1. T1\n2. T2\n"), "{channel:?}");
            assert_eq!(text.lines().count(), buttons_max + 2, "{channel:?}");
        }
        for channel in [ChannelKind::Email, ChannelKind::Voip, ChannelKind::Internal, ChannelKind::Widget] {
            assert_eq!(with_options("Q?", &titles(2), channel), "Q?\n1. T1\n2. T2", "{channel:?}");
            assert_eq!(with_options("Q?", &[], channel), "Q?", "{channel:?}");
        }
    }

    #[test]
    fn a_file_is_known_by_its_ending() {
        assert_eq!(media("https://x/a.b/c.PDF?v=1.exe#d").ok(), Some(Kind::Document));
        assert_eq!(media("https://x/photo.jpeg").ok(), Some(Kind::Image));
        assert_eq!(media("https://x/voice.mp4").ok(), Some(Kind::Audio));
        assert!(media("https://x/run.exe").is_err());
        assert!(media("").is_err());
    }
}
