//! Sending: buttons, files, templates, notes, and the fields that depend on them.

use super::Service;
use serde_json::{Value, json};

/// An open chat on each channel that has one, found in the seeded state.
async fn open_chat_on(service: &Service, channel: &str) -> Value {
    let chats = service.read(&format!("/chats?status=open&channel={channel}")).await;
    chats[0]["id"].clone()
}

fn options(count: usize) -> Value {
    (1..=count).map(|id| json!({"id": id, "title": format!("Option {id}")})).collect()
}

#[tokio::test]
async fn buttons_are_numbered_lines_where_the_channel_has_too_few() {
    let service = Service::start().await;
    for (channel, count, lines) in [
        ("whatsapp-enterprise", 3, 1),
        ("whatsapp-enterprise", 10, 1),
        ("whatsapp-enterprise", 11, 12),
        ("messenger", 13, 1),
        ("messenger", 14, 15),
        ("instagram", 14, 15),
        ("telegram-bot", 1000, 1),
        ("telegram-bot", 1001, 1002),
        ("email", 2, 3),
        ("voip", 2, 3),
        ("internal", 2, 3),
    ] {
        let chat = open_chat_on(&service, channel).await;
        let body = json!({"text": "Which?", "options": options(count)});
        let message = service.v3("POST", &format!("/chats/{chat}/messages"), body).await.expect(201);
        let text = message["text"].as_str().expect("a text");
        assert_eq!(text.lines().count(), lines, "{channel} with {count}");
        if lines > 1 {
            assert!(text.starts_with("Which?\n1. Option 1\n2. Option 2"), "{channel}: {text}");
        }
    }
}

#[tokio::test]
async fn files_are_of_allowed_types_and_become_the_text() {
    let service = Service::start().await;
    let path = "/chats/7/messages";
    for (file, kind) in [
        ("a.jpg", "image"),
        ("a.bmp", "image"),
        ("a.mp3", "audio"),
        ("a.pdf", "document"),
        ("a.txt", "document"),
    ] {
        let url = format!("https://files.example.com/{file}");
        let message = service.v3("POST", path, json!({"text": "see", "file": url})).await.expect(200);
        assert_eq!(
            (&message["type"], &message["text"], &message["file"]),
            (&json!(kind), &json!(url), &json!(url))
        );
    }
    for file in ["https://files.example.com/a.exe", "a", ""] {
        service.v3("POST", path, json!({"text": "see", "file": file})).await.expect(400);
    }
}

#[tokio::test]
async fn templates_take_as_many_parameters_as_they_define() {
    let service = Service::start().await;
    let send = |hsm: Value| service.v3("POST", "/chats/7/messages", json!({"text": "", "hsm": hsm}));
    let message = send(json!({"template_id": 81, "params": {"1": "Ana", "2": "{{1}}"}})).await.expect(200);
    assert_eq!(message["type"], "templateMessage");
    assert_eq!(message["text"], "Hello Ana, your order {{1}} is on its way.");
    send(json!({"template_id": 84})).await.expect(200);
    let image = json!({"params": [{"type": "image", "image": {"link": "https://x.example/a.png"}}]});
    let button = json!({"params": [{"type": "text", "text": "promo/7"}]});
    send(json!({"template_id": 82, "params": {"1": "x"}, "header": image, "buttons": button}))
        .await
        .expect(200);
    for wrong in [
        json!({}),
        json!({"template_id": "81"}),
        json!({"template_id": 999}),
        json!({"template_id": 81, "params": {"1": "Ana"}}),
        json!({"template_id": 81, "params": {"1": "Ana", "3": "x"}}),
        json!({"template_id": 81, "params": {"1": "Ana", "2": 7}}),
        json!({"template_id": 81, "params": ["Ana", "x"]}),
        json!({"template_id": 82, "params": {"1": "x"}, "header": {"params": [{"type": "image", "image": {}}]}}),
        json!({"template_id": 82, "params": {"1": "x"}, "header": {"params": [{"type": "text", "text": {"text": "x"}}]}}),
        json!({"template_id": 81, "params": {"1": "a", "2": "b"}, "buttons": button}),
    ] {
        send(wrong.clone()).await.expect(400);
    }
    let other = open_chat_on(&service, "whatsapp").await;
    let email = open_chat_on(&service, "email").await;
    assert!(other.is_u64());
    let hsm = json!({"text": "", "hsm": {"template_id": 84}});
    service.v3("POST", &format!("/chats/{email}/messages"), hsm).await.expect(400);
}

#[tokio::test]
async fn a_finished_chat_takes_no_message() {
    let service = Service::start().await;
    service.v3("POST", "/chats/5/messages", json!({"text": "late"})).await.expect(400);
    service.v2("POST", "/chats/5/messages", json!({"text": "late"})).await.expect(400);
}

#[tokio::test]
async fn feedback_is_asked_for_in_v2_and_thanks_are_given_in_v3() {
    let service = Service::start().await;
    service.v2("GET", "/chats/7/feedback", Value::Null).await.expect(404);
    service.v2("POST", "/chats/7/close", json!({"sendFeedback": true})).await.expect(201);
    let asked = service.read("/chats/7/messages").await[1]["text"].clone();
    service.v3("PUT", "/chats/1/close", json!({"sendFeedback": true})).await.expect(200);
    let thanked = service.read("/chats/1/messages").await[1]["text"].clone();
    assert_ne!(asked, thanked);
    service.control("POST", "/chats/7/survey", json!({"score": 5, "text": "ótimo"})).await;
    let feedback = service.v2("GET", "/chats/7/feedback", Value::Null).await.expect(200);
    assert_eq!(feedback, json!({"score": "5", "text": "ótimo"}));
}

#[tokio::test]
async fn reading_a_chat_marks_what_the_contact_wrote() {
    let service = Service::start().await;
    service.control("POST", "/chats/7/inbound", json!({"text": "anybody there?"})).await;
    let before = service.read("/chats/7").await;
    assert!(before["unread"].as_u64() >= Some(1));
    assert_eq!(service.read("/chats/7/messages").await[0]["readAt"], Value::Null);
    service.v3("PUT", "/chats/7/read", Value::Null).await.expect(200);
    assert_eq!(service.read("/chats/7").await["unread"], 0);
    assert!(service.read("/chats/7/messages").await[0]["readAt"].is_string());
}

#[tokio::test]
async fn message_ids_beyond_a_doubles_precision_are_exact() {
    let service = Service::start().await;
    let messages = service.v2("GET", "/chats/6/messages", Value::Null).await.expect(200);
    let oldest = messages.as_array().and_then(|messages| messages.last()).expect("a message");
    assert_eq!(oldest["id"].as_u64(), Some(9_007_199_254_740_993));
}
