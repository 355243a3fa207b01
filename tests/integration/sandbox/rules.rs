//! The document's rules for chats, agents and contacts: common state, roles, companies, paging,
//! situations, errors.

use super::Service;
use http::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn what_one_version_writes_the_other_reads() {
    let service = Service::start().await;

    service.v2("POST", "/chats/7/messages", json!({"text": "from v2 \u{1f44b}"})).await.expect(201);
    let newest = &service.read("/chats/7/messages").await[0];
    assert_eq!((newest["text"].as_str(), newest["type"].as_str()), (Some("from v2 \u{1f44b}"), Some("text")));

    service.v3("POST", "/chats/7/messages", json!({"text": "from v3", "isInternal": true})).await.expect(200);
    let newest = service.v2("GET", "/chats/7/messages", Value::Null).await.expect(200)[0].clone();
    assert_eq!((newest["body"].as_str(), newest["is_internal"].as_bool()), (Some("from v3"), Some(true)));

    service.v3("PUT", "/chats/7/close", json!({"tabulation": 21})).await.expect(200);
    let chat = service.v2("GET", "/chats/7", Value::Null).await.expect(200);
    assert!(chat["closedAt"].is_string());
    assert_eq!(chat["tabulationId"], 21);

    service.v2("POST", "/chats/7/reopen", Value::Null).await.expect(201);
    let chat = service.read("/chats/7").await;
    assert_eq!((&chat["closedAt"], &chat["situation"]), (&Value::Null, &json!("in_chat")));

    let made =
        service.v3("POST", "/contacts", json!({"name": "Zoë", "email": "zoe@example.com"})).await.expect(201);
    let id = made["id"].as_str().expect("a numeric string").to_owned();
    let path = format!("/contacts/{id}");
    service.v2("PUT", &path, json!({"phone": "5511999990000", "city": "Recife"})).await.expect(204);
    assert_eq!(service.read(&path).await["city"], "Recife");
    assert_eq!(service.read("/contacts?phone=%2B55%2011%2099999-0000").await[0]["id"], json!(id));
    service.v2("DELETE", &path, Value::Null).await.expect(204);
    service.v3("GET", &path, Value::Null).await.expect(404);
    assert_eq!(service.read("/contacts?email=ZOE@example.com").await, json!([]));
}

#[tokio::test]
async fn a_chat_made_in_v2_is_a_chat_in_v3() {
    let service = Service::start().await;
    let body = json!({"name": "Ana", "phone": "5511988887777", "email": "ana@new.example.com", "message": "Hi",
        "subject": "Order", "department": 11});
    let made = service.v2("POST", "/chats/email", body).await.expect(201);
    assert_eq!((made["workflowID"].clone(), made["departmentId"].clone()), (json!(6), json!(11)));
    let chat = service.read(&format!("/chats/{}", made["id"])).await;
    assert_eq!(chat["lastMessage"]["text"], "Order\n\nHi");
    assert_eq!((chat["channel"].clone(), chat["situation"].clone()), (json!("email"), json!("auto")));
    assert_eq!(service.read("/chats").await[0]["id"], made["id"], "new chats come first");

    let body = json!({"name": "Ana", "phone": "1", "email": "ana@new.example.com"});
    let again = service.v2("POST", "/chats/whatsapp", body.clone()).await.expect(201);
    assert_eq!(again["contactId"], made["contactId"], "somebody known by e-mail is not made again");
    service.v2("POST", "/chats/pigeon", body).await.expect(400);
    service.v2("POST", "/chats/email", json!({"name": "Ana"})).await.expect(400);
}

#[tokio::test]
async fn only_an_administrator_deletes_and_only_finished_chats() {
    let service = Service::start().await;
    service.v3("DELETE", "/chats/7", Value::Null).await.expect(400);
    for role in ["manager", "agent", "guest"] {
        service.v3_as(role, "DELETE", "/chats/5", Value::Null).await.expect(400);
    }
    service.v3("DELETE", "/chats/5", Value::Null).await.expect(204);
    service.v3("GET", "/chats/5", Value::Null).await.expect(404);
    service.v2("GET", "/chats/5", Value::Null).await.expect(404);
    service.v3("DELETE", "/chats/5", Value::Null).await.expect(404);
}

#[tokio::test]
async fn a_guest_adds_nobody_and_an_agent_reads_no_chat_of_others() {
    let service = Service::start().await;
    service.v3_as("guest", "PUT", "/chats/7/agent", json!({"agentId": 203})).await.expect(400);
    service.v3("PUT", "/chats/7/agent", json!({"agentId": 999_999})).await.expect(400);
    service.v3("PUT", "/chats/7/assignToMe", Value::Null).await.expect(200);
    service.v3_as("agent", "PUT", "/chats/7/read", Value::Null).await.expect(403);
    service.v3_as("manager", "PUT", "/chats/7/read", Value::Null).await.expect(200);
    service.v3_as("manager", "PUT", "/chats/7/agent", json!({"agentId": 203})).await.expect(200);
    let agents = service.read("/chats/7/agents").await;
    assert_eq!((agents[0]["id"].clone(), agents[1]["id"].clone()), (json!(201), json!(203)));
    service.v3_as("agent", "PUT", "/chats/7/read", Value::Null).await.expect(200);
}

#[tokio::test]
async fn a_company_prefix_chooses_among_the_callers_companies() {
    let service = Service::start().await;
    assert_eq!(service.read("/companies/42/chats").await[0]["id"], 10_000_030);
    assert_eq!(service.read("/companies/42/agents/profile").await["companyID"], "42");
    assert_eq!(service.read("/agents/profile").await["companyID"], "41");
    service.v3("GET", "/companies/41/chats/7", Value::Null).await.expect(200);
    service.v3("GET", "/companies/42/chats/7", Value::Null).await.expect(404);
    service.v3("GET", "/companies/43/chats", Value::Null).await.expect(404);
    service.v3_as("manager", "GET", "/companies/42/chats", Value::Null).await.expect(403);
    let own = service.v3_as("second-company", "GET", "/chats", Value::Null).await.expect(200);
    assert_eq!(own[0]["id"], 10_000_030, "the first linked company is the main one");
}

#[tokio::test]
async fn pages_of_twenty_tile_a_list_and_end_in_an_empty_one() {
    let service = Service::start().await;
    for (list, count) in [("/chats", 130), ("/contacts", 90), ("/agents", 29), ("/chats/4/messages", 3000)] {
        let mut ids = Vec::new();
        for page in 0.. {
            let entries = service.read(&format!("{list}?page={page}")).await;
            let entries = entries.as_array().expect("a list").clone();
            assert!(entries.len() <= 20);
            ids.extend(entries.iter().map(|entry| entry["id"].to_string()));
            if entries.len() < 20 {
                break;
            }
        }
        assert_eq!(ids.len(), count, "{list}");
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count, "{list} shows nothing twice");
        for past in ["page=1000", "page=18446744073709551615", "page=99999999999999999999999"] {
            assert_eq!(service.read(&format!("{list}?{past}")).await, json!([]), "{list} {past}");
        }
        for wrong in ["page=-1", "page=x", "page=", "page=1.5"] {
            service.v3("GET", &format!("{list}?{wrong}"), Value::Null).await.expect(400);
        }
    }
    assert_eq!(service.read("/agents?allPages=true").await.as_array().map(Vec::len), Some(29));
    assert_eq!(
        service.v2("GET", "/chats?page=6", Value::Null).await.expect(200).as_array().map(Vec::len),
        Some(10)
    );
}

#[tokio::test]
async fn filters_of_chats_select_what_they_name() {
    let service = Service::start().await;
    for (filter, field, value) in [
        ("situation=wait_for_chat", "situation", json!("wait_for_chat")),
        ("channel=telegram-bot", "channel", json!("telegram-bot")),
        ("customer=1001", "contactId", json!(1001)),
        ("department=11", "departmentId", json!(11)),
        ("status=open&situation=auto", "closedAt", Value::Null),
        ("agent=201", "agentId", json!(201)),
    ] {
        let chats = service.read(&format!("/chats?{filter}")).await;
        let chats = chats.as_array().expect("a list");
        assert!(!chats.is_empty(), "{filter}");
        assert!(chats.iter().all(|chat| chat[field] == value), "{filter}");
    }
    assert_eq!(service.read("/chats?situation=nonsense").await, json!([]));
    service.v3("GET", "/chats?agent=me", Value::Null).await.expect(400);
}

#[tokio::test]
async fn flow_execution_follows_the_table() {
    // The situation of the chat, the flags, whether the flow runs.
    for (situation, flags, runs) in [
        ("in_chat", json!({"whenInChat": true}), true),
        ("in_chat", json!({}), false),
        ("wait_for_chat", json!({"whenWaitForChat": true}), false),
        ("wait_for_chat", json!({}), true),
        ("auto", json!({"whenInAuto": true}), true),
        ("auto", json!({"whenInChat": true}), false),
        ("blocked", json!({"whenInChat": true, "whenInAuto": true}), false),
    ] {
        let service = Service::start().await;
        let person = json!({"name": "Ana", "phone": "5511955554444", "email": "ana.flow@example.com"});
        let chat = service.v2("POST", "/chats/whatsapp", person).await.expect(201);
        let (path, id) = (format!("/chats/{}", chat["id"]), &chat["id"]);
        service.v3("PUT", &format!("{path}/assignToMe"), Value::Null).await.expect(200);
        service.v2("POST", &format!("{path}/situation"), json!({"situation": situation})).await.expect(201);
        let exec = format!("/flows/51/contact/{}/exec", chat["contactId"]);
        let mut body = flags.clone();
        body["variables"] = json!({"name": "Ana", "protocol": 7});
        body["uuid"] = chat["channels"][0]["uuid"].clone();
        let result = service.v2("POST", &exec, body).await.expect(200);
        assert!(result["reason"].is_string());
        assert_eq!(&result["chatID"], id);
        let after = service.read(&path).await;
        if runs {
            assert_eq!(
                (&after["situation"], &after["agentId"]),
                (&json!("auto"), &Value::Null),
                "{situation} {flags}"
            );
            let messages = service.read(&format!("{path}/messages")).await;
            assert_eq!(messages[1]["text"], "Hello Ana, welcome! Your protocol is 7.");
        } else {
            assert_eq!(after["situation"], situation, "{situation} {flags}");
        }
    }
}

#[tokio::test]
async fn flow_execution_begins_a_chat_where_none_is_open() {
    let service = Service::start().await;
    let contact = json!({"name": "New", "phone": "5511977776666", "email": "new@example.com"});
    let id = service.v2("POST", "/contacts", contact).await.expect(201)[0]["id"].as_str().map(str::to_owned);
    let path = format!("/flows/53/contact/{}/exec", id.expect("a numeric string"));
    let made = service.v2("POST", &path, json!({})).await.expect(200)["chatID"].clone();
    assert_eq!(service.read(&format!("/chats/{made}")).await["situation"], "auto");
    let again = service.v2("POST", &path, json!({"whenInAuto": true})).await.expect(200);
    assert_eq!(again["chatID"], made, "the open chat is used");

    let contact = json!({"name": "Odd", "phone": "+55 (11) 9", "email": "odd@example.com"});
    let id = service.v2("POST", "/contacts", contact).await.expect(201)[0]["id"].as_str().map(str::to_owned);
    let path = format!("/flows/53/contact/{}/exec", id.expect("a numeric string"));
    service.v2("POST", &path, json!({})).await.expect(400);
    service.v2("POST", &path, json!({"uuid": "no-such-channel"})).await.expect(400);
    service.v2("POST", "/flows/9999/contact/1001/exec", json!({})).await.expect(404);
    service.v2("POST", "/flows/51/contact/9/exec", json!({})).await.expect(404);
}

#[tokio::test]
async fn v2_queues_only_what_is_attended_and_v3_anything_open() {
    let service = Service::start().await;
    service.v2("POST", "/chats/2/queue", Value::Null).await.expect(400);
    service.v2("POST", "/chats/7/queue", Value::Null).await.expect(201);
    let chat = service.read("/chats/7").await;
    assert_eq!((&chat["situation"], &chat["agentId"]), (&json!("wait_for_chat"), &Value::Null));
    assert!(chat["queueNumber"].is_u64());
    service.v3("PUT", "/chats/2/queue", Value::Null).await.expect(200);
    service.v3("PUT", "/chats/5/queue", Value::Null).await.expect(400);
}

#[tokio::test]
async fn what_happens_is_on_the_timeline_and_among_the_messages() {
    let service = Service::start().await;
    let contact = service.read("/chats/7").await["contactId"].clone();
    service.v3("PUT", "/chats/7/department", json!({"department": 12})).await.expect(200);
    let event = service.v2("GET", "/chats/7/messages", Value::Null).await.expect(200)[0].clone();
    assert_eq!((&event["type"], &event["eventType"]), (&json!("internalEvent"), &json!("department.set")));
    assert_eq!(event["body"], "set the department to Suporte Técnico");
    service.v3("PUT", "/chats/7/close", json!({"comment": "done"})).await.expect(200);
    let path = format!("/timeline/createComment/{contact}");
    let comment = service.v3("POST", &path, json!({"comment": "hello"})).await.expect(201);
    assert_eq!(
        (&comment["type"], &comment["time"]),
        (&json!("comment.created"), &json!("02/03/2026 09:00:03"))
    );
    let timeline = service.read(&format!("/contacts/{contact}/timeline")).await;
    let kinds: Vec<&str> =
        timeline.as_array().unwrap().iter().filter_map(|entry| entry["type"].as_str()).collect();
    assert_eq!(kinds[..2], ["comment.created", "chat.closed"]);
    let oldest = timeline.as_array().and_then(|entries| entries.last()).expect("the creation of the contact");
    assert_eq!(
        oldest.as_object().map(|entry| entry.len()),
        Some(6),
        "the creation carries six fields: {oldest}"
    );
}

#[tokio::test]
async fn an_invited_agent_appears_after_accepting() {
    let service = Service::start().await;
    let body = json!({"email": "new.agent@example.com", "type": 2, "maxChats": 4});
    service.v3("POST", "/agents", body.clone()).await.expect(200);
    assert_eq!(service.read("/agents?allPages=true").await.as_array().map(Vec::len), Some(29));
    let agent =
        service.control("POST", "/invitations/accept", json!({"email": "new.agent@example.com"})).await;
    let shown = service.read(&format!("/agents/{}", agent["agent"])).await;
    assert_eq!((&shown["type"], &shown["maxChats"]), (&json!(2), &json!("4")));
    let v3 = service.v3("POST", "/agents", body.clone()).await.expect(500);
    let v2 = service.v2("POST", "/agents", body).await.expect(500);
    assert_ne!(v3["reason"], v2["reason"], "v2 has another text for the same case");
}

#[tokio::test]
async fn errors_have_a_reason_in_the_language_of_the_caller() {
    let service = Service::start().await;
    let mut reasons = Vec::new();
    for language in ["en", "pt-br", "es"] {
        let error = service.v2_in(language, "GET", "/chats/999999", Value::Null).await.expect(404);
        assert_eq!(error.as_object().map(|error| error.len()), Some(1));
        reasons.push(error["reason"].as_str().expect("a text").to_owned());
    }
    assert_eq!(reasons, ["Chat not found.", "Atendimento não encontrado.", "Chat no encontrado."]);
}

#[tokio::test]
async fn wrong_paths_methods_tokens_and_bodies_each_have_their_status() {
    let service = Service::start().await;
    service.v3("GET", "/nowhere", Value::Null).await.expect(404);
    service.v3("GET", "/chats/", Value::Null).await.expect(404);
    service.v3("GET", "/chats/7%2Fmessages", Value::Null).await.expect(404);
    for id in ["0", "-1", "abc", "99999999999999999999999", "7.0", "%00", "7%20"] {
        service.v3("GET", &format!("/chats/{id}"), Value::Null).await.expect(404);
    }
    let wrong = service.v3("PATCH", "/chats/7", json!({})).await;
    assert_eq!(wrong.headers["allow"], "GET, DELETE");
    wrong.expect(501);
    service.v2("GET", "/chats/7/close", Value::Null).await.expect(501);

    let account = service.account("administrator");
    let (v2, v3) = (format!("Bearer {}", account.v2_token), format!("Bearer {}", account.access_token));
    for (path, headers, status) in [
        ("/v3/chats/7", vec![], 401),
        ("/v3/chats/7", vec![("authorization", v2.as_str())], 401),
        ("/v3/chats/7", vec![("x-authorization", v3.as_str())], 401),
        ("/v3/chats/7", vec![("authorization", "Basic eDp5")], 401),
        ("/v2/chats/7", vec![("x-authorization", v3.as_str())], 401),
        ("/v2/chats/7", vec![("authorization", v2.as_str())], 200),
        ("/v2/chats/7", vec![("authorization", v3.as_str()), ("x-authorization", v2.as_str())], 200),
        ("/v2/chats/7", vec![("authorization", v2.as_str()), ("x-authorization", "Bearer no")], 401),
    ] {
        let answer = service.send(Method::GET, path, &headers, "").await.expect("an answer");
        assert_eq!(answer.status, status, "{path} {headers:?}");
    }

    for body in [
        "{",
        "[]",
        "1",
        "\"x\"",
        "{\"text\": 1}",
        "{\"text\": null}",
        "{}",
        "\u{feff}{}",
        "{\"text\":\"\\ud800\"}",
    ] {
        let answer = service
            .send(Method::POST, "/v3/chats/7/messages", &[("authorization", &v3)], body.to_owned())
            .await;
        answer.expect("an answer").expect(400);
    }
    let large = vec![b' '; 17 * 1024 * 1024];
    let answer = service.send(Method::POST, "/v3/chats/7/messages", &[("authorization", &v3)], large).await;
    // The sandbox may answer and close before it has read everything, in which case the client sees
    // the closing.
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status == 413));
}
