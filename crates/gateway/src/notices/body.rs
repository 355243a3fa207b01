//! The bodies of notices, by the form that a receiver takes.

use super::notice::Notice;
use crate::clock::rfc3339;
use serde_json::{Value, json};

/// The body that a receiver takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeForm {
    /// The payload of Standard Webhooks, signed.
    Json,
    /// A message for an incoming webhook of Slack.
    Slack,
    /// A message for Workflows of Microsoft Teams.
    Teams,
}

/// Renders a notice.
pub(super) fn body(notice: &Notice, form: NoticeForm) -> Vec<u8> {
    let value = match form {
        // The payload that Standard Webhooks recommends.
        NoticeForm::Json => {
            json!({"type": notice.name, "timestamp": rfc3339(notice.at_ms), "data": notice.data})
        }
        NoticeForm::Slack => {
            json!({"text": format!("*{}* {}", escape(notice.name), escape(&notice.text))})
        }
        NoticeForm::Teams => card(notice),
    };
    value.to_string().into_bytes()
}

/// Escapes the characters of Slack's control sequences: `<!channel>` would otherwise alert all
/// members of a channel.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns a message with one Adaptive Card, which the trigger *When a Teams webhook request is
/// received* of Workflows takes.
fn card(notice: &Notice) -> Value {
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.2",
                "body": [
                    {"type": "TextBlock", "text": notice.name, "weight": "Bolder", "wrap": true},
                    {"type": "TextBlock", "text": notice.text, "wrap": true},
                ],
            },
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_has_the_form_of_its_receiver() {
        let mut notice = Notice::test(1_767_225_600_000);
        notice.text = "GET /a & <!channel>".to_owned();
        let read = |form| -> Value { serde_json::from_slice(&body(&notice, form)).expect("it is JSON") };
        let expected = json!({"type": "notice.test", "timestamp": "2026-01-01T00:00:00Z", "data": {}});
        assert_eq!(read(NoticeForm::Json), expected);
        let expected = json!({"text": "*notice.test* GET /a &amp; &lt;!channel&gt;"});
        assert_eq!(read(NoticeForm::Slack), expected);
        let message = read(NoticeForm::Teams);
        let card = &message["attachments"][0];
        assert_eq!(
            [&message["type"], &card["contentType"], &card["content"]["type"]],
            ["message", "application/vnd.microsoft.card.adaptive", "AdaptiveCard"]
        );
        assert_eq!(card["content"]["body"][1]["text"], "GET /a & <!channel>");
    }
}
