//! The dual run of events through the real binary: both versions deliver to the gateway, the
//! receiver gets one of them, and the two are compared. Services and receiver are mocks; the pack
//! is `mappings/tickets`.

use super::events::{Place, Running, changed, now_ms, signature, told};
use crate::support::dual::eventually;
use crate::support::postgres;
use crate::support::program::Program;
use crate::support::raw::{Act, Upstream, answer, exchange};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The signing secret of the old service.
const OWN: &str = "whsec_7Yt0Jm0nYIYqYh5mXw2XbVnPpWmN2dXv";
const CHANGED: &str = "event ticketChanged";

/// A pack that is `mappings/tickets` with these texts in place of others.
fn pack(place: &Place, edits: &[(&str, &str, &str)]) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/tickets");
    let to = place.folder.path().join("pack");
    std::fs::create_dir_all(to.join("contracts")).expect("a folder is made");
    for file in ["pack.yaml", "tickets.map.yaml", "contracts/v1.openapi.yaml", "contracts/v2.openapi.yaml"] {
        let mut text = std::fs::read_to_string(from.join(file)).expect("it lies in the sources");
        for (_, before, after) in edits.iter().filter(|(of, ..)| *of == file) {
            assert!(text.contains(before), "{file} has no `{before}`");
            text = text.replace(before, after);
        }
        std::fs::write(to.join(file), text).expect("it is written");
    }
    to
}

/// Returns a configuration with a receiver for the events of both versions. `events` are additional
/// lines of that section.
fn configure(
    place: &Place,
    receiver: &Upstream,
    phase: &str,
    edits: &[(&str, &str, &str)],
    events: &str,
) -> PathBuf {
    configure_in(place, None, receiver, phase, edits, events)
}

/// The same with a store of this address.
fn configure_in(
    place: &Place,
    store: Option<&str>,
    receiver: &Upstream,
    phase: &str,
    edits: &[(&str, &str, &str)],
    events: &str,
) -> PathBuf {
    let file = place.configure(store, receiver.address, events);
    let text = std::fs::read_to_string(&file).expect("it was just written");
    let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings/tickets");
    let text = text
        .replace(usual, pack(place, edits).to_str().expect("a plain name"))
        .replace("      sign: {", &format!("      own: {{ verify: {{ secret: {OWN} }} }}\n      sign: {{"))
        + &format!(
            "phases: {{ 'event ticketChanged': {phase}, 'event ticketGone': {phase} }}\nshadow: {{ priority: normal }}\n"
        );
    std::fs::write(&file, text).expect("it is written");
    file
}

async fn receiver() -> Upstream {
    Upstream::answering(|_, _| Act::Reply(answer(200, "", ""))).await
}

/// Delivers an event as the old service does; the status that it gets.
async fn own(running: &Running, id: &str, name: &str, body: &Value) -> u16 {
    let body = body.to_string();
    let signed = signature(OWN).sign(id, body.as_bytes(), now_ms());
    let fields: String =
        signed.iter().map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap())).collect();
    let request = format!(
        "POST /events/acme/own HTTP/1.1\r\nhost: g\r\nconnection: close\r\nx-tickets-event: {name}\r\n\
         content-length: {}\r\n{fields}\r\n{body}",
        body.len()
    );
    exchange(running.gateway, request).await.expect("an answer").status
}

/// Returns the old service's event for the same change as [`changed`].
fn own_changed(ticket: i64, subject: &str) -> Value {
    json!({"ticket": {"id": ticket, "subject": subject, "open": 1}, "at": "2026-01-02T03:04:05Z"})
}

/// The report about one event.
async fn report(running: &Running, operation: &str) -> Value {
    let text = running.admin("GET /api/diff", "").await;
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let of = |one: &&Value| one["operation"] == operation;
    report["operations"].as_array().and_then(|all| all.iter().find(of)).cloned().unwrap_or_default()
}

/// Waits until the report about one event counts so.
async fn counts(running: &Running, operation: &str, wanted: &[(&str, u64)]) -> Value {
    eventually(&format!("{operation} counts {wanted:?}"), async || {
        let counts = report(running, operation).await["counts"].clone();
        wanted.iter().all(|(name, count)| counts[name].as_u64().unwrap_or_default() == *count)
    })
    .await;
    report(running, operation).await
}

async fn metric(running: &Running, line: &str) {
    eventually(line, async || running.admin("GET /metrics", "").await.contains(line)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_the_shadow_receivers_get_the_old_events_and_the_new_ones_are_held_against_them() {
    let receiver = receiver().await;
    let place = Place::new();
    let file = configure(&place, &receiver, "shadow", &[], "");
    let running = place.start(&file).await;
    // In either order.
    assert_eq!(own(&running, "1", "ticketChanged", &own_changed(7, "Tea")).await, 204);
    assert_eq!(running.event("msg_1", &changed("7", "Tea")).await, 204);
    assert_eq!(running.event("msg_2", &changed("8", "Tea")).await, 204);
    assert_eq!(own(&running, "2", "ticketChanged", &own_changed(8, "Tee")).await, 204);
    // The ids of the two services are independent.
    assert_eq!(running.event("1", &changed("9", "Nut")).await, 204);
    assert_eq!(own(&running, "3", "ticketChanged", &own_changed(9, "Nut")).await, 204);
    // A repeated message is neither delivered nor compared again.
    assert_eq!(own(&running, "3", "ticketChanged", &own_changed(9, "Nut")).await, 204);
    // An event that only the old version has is delivered as before.
    assert_eq!(own(&running, "4", "ticketMerged", &json!({"ticket": 7})).await, 204);
    let found = counts(&running, CHANGED, &[("equal", 2), ("different", 1)]).await;
    let top = &found["top"][0];
    assert_eq!((&top["pattern"], &top["kind"]), (&json!("$.ticket.subject"), &json!("value")), "{found}");
    assert_eq!(top["cause"]["line"], "tickets.map.yaml:7", "{found}");
    assert_eq!((&found["side"], &found["phase"]), (&json!("v1"), &json!("shadow")));
    // No personal text is stored.
    assert!(!found.to_string().contains("Tee"), "{found}");
    receiver.received(4).await;
    let seen = receiver.seen();
    let names: Vec<&str> = seen.iter().flat_map(|seen| seen.values("x-tickets-event")).collect();
    assert_eq!(names.iter().filter(|name| **name == "ticketChanged").count(), 3, "{names:?}");
    assert!(names.contains(&"ticketMerged"));
    let all: Vec<(i64, String)> = seen.iter().map(told).collect();
    for (ticket, subject) in [(7, "Tea"), (8, "Tee"), (9, "Nut")] {
        assert!(all.contains(&(ticket, subject.to_owned())), "{all:?}");
    }
    let as_it_came = own_changed(7, "Tea").to_string();
    assert!(seen.iter().any(|seen| seen.body == as_it_came.as_bytes()), "the bytes are the old version's");
    metric(
        &running,
        "switchback_shadow_compared_total{side=\"v1\",operation=\"event ticketChanged\",result=\"equal\"} 2",
    )
    .await;
    metric(
        &running,
        "switchback_shadow_findings_total{side=\"v1\",operation=\"event ticketChanged\",kind=\"value\"} 1",
    )
    .await;
    // Events of the new version are only compared.
    for (outcome, count) in [("queued", 4), ("delivered", 4), ("known", 1), ("beside", 3)] {
        let line = format!("switchback_events_total{{receiver=\"acme\",outcome=\"{outcome}\"}} {count}\n");
        metric(&running, &line).await;
    }
    let listed = place.cli(&file, &["phase", "list"]).await;
    assert!(listed.contains(CHANGED) && listed.contains("event ticketGone"), "{listed}");
    let kept = place.cli(&file, &["diff", "export", "--operation", CHANGED]).await;
    assert!(kept.contains("\"kind\":\"difference\"") && kept.contains("\"client\":\"acme\""), "{kept}");
    assert!(!kept.contains("Tee") && !kept.contains("Tea"), "{kept}");
    assert_eq!(receiver.seen().len(), 4, "each was delivered once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_pack_says_of_comparing_holds_for_events_too() {
    let receiver = receiver().await;
    let place = Place::new();
    let noise = "compare: {types: {v1: {Ticket: {noise: [subject], harmless: [subject]}}}}\nserves: [v1]";
    let edits = [("pack.yaml", "serves: [v1]", noise)];
    let file = configure(&place, &receiver, "shadow", &edits, "");
    let running = place.start(&file).await;
    assert_eq!(own(&running, "1", "ticketChanged", &own_changed(7, "Tea")).await, 204);
    assert_eq!(running.event("msg_1", &changed("7", "Another")).await, 204);
    let mut closed = changed("8", "Tea");
    closed["data"]["status"] = json!("closed");
    assert_eq!(running.event("msg_2", &closed).await, 204);
    assert_eq!(own(&running, "2", "ticketChanged", &own_changed(8, "Tea")).await, 204);
    // The same the other way round.
    assert_eq!(own(&running, "3", "ticketChanged", &own_changed(9, "Tea")).await, 204);
    closed["data"]["id"] = json!("9");
    assert_eq!(running.event("msg_3", &closed).await, 204);
    let found = counts(&running, CHANGED, &[("equal", 1), ("different", 2), ("declared_noise", 1)]).await;
    assert_eq!(found["top"][0]["pattern"], "$.ticket.open", "{found}");
    assert_eq!(found["top"].as_array().map(Vec::len), Some(1));
    let kept = place.cli(&file, &["diff", "export", "--operation", CHANGED]).await;
    let order =
        [r#""reference":{"kind":"number""#, r#""text":"1"},"candidate":{"kind":"number""#, r#""text":"0"}"#];
    for part in order {
        assert_eq!(
            kept.matches(part).count(),
            2,
            "the old version's is held to be right, whichever came first: {kept}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_one_version_alone_sends_is_counted_apart_and_speaks_against_the_move() {
    let receiver = receiver().await;
    let place = Place::new();
    let edits = [("tickets.map.yaml", "within: 2m", "within: 1s")];
    let file = configure(&place, &receiver, "shadow", &edits, "");
    let running = place.start(&file).await;
    assert_eq!(own(&running, "1", "ticketChanged", &own_changed(7, "Tea")).await, 204);
    assert_eq!(running.event("msg_1", &changed("8", "Tea")).await, 204);
    assert_eq!(running.event("msg_2", &changed("9", "Tea")).await, 204);
    let found = counts(&running, CHANGED, &[("events_missing", 1), ("events_extra", 2)]).await;
    assert_eq!((&found["counts"]["equal"], &found["counts"]["different"]), (&json!(0), &json!(0)), "{found}");
    assert_eq!(found["proof"], "above", "{found}");
    let text = found.to_string();
    assert!(text.contains("v2 sent no such event within 1 s"), "{text}");
    assert!(text.contains("v1 sent no such event within 1 s"), "{text}");
    metric(
        &running,
        "switchback_shadow_compared_total{side=\"v1\",operation=\"event ticketChanged\",result=\"missing\"} 1",
    )
    .await;
    metric(
        &running,
        "switchback_shadow_compared_total{side=\"v1\",operation=\"event ticketChanged\",result=\"extra\"} 2",
    )
    .await;
    let key = place.key();
    let said = tokio::task::spawn_blocking(move || {
        let file = file.to_str().expect("a plain name").to_owned();
        Program::start(&["diff", "report", "--config", &file], &[("TEST_KEY", &key)]).all()
    });
    let (status, said, _) = said.await.expect("it ends");
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("sent by one side alone 1 of the reference and 2 of the candidate"), "{said}");
    assert_eq!(receiver.seen().iter().map(told).collect::<Vec<_>>(), [(7, "Tea".to_owned())]);
}

/// Of the two exactly one is delivered, wherever the phase moves between them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_between_two_events_of_a_pair_loses_and_doubles_none() {
    let receiver = receiver().await;
    let place = Place::new();
    let running = place.start(&configure(&place, &receiver, "shadow", &[], "")).await;
    let set = async |phase: &str| {
        let asked =
            json!({"operation": CHANGED, "phase": phase, "force": true, "reason": "a test"}).to_string();
        let said = running.admin("POST /api/phases", &asked).await;
        assert!(said.contains(phase), "{said}");
    };
    assert_eq!(running.event("msg_1", &changed("1", "New")).await, 204);
    assert_eq!(own(&running, "2", "ticketChanged", &own_changed(2, "Old")).await, 204);
    set("translated").await;
    // These were the old version's to tell.
    assert_eq!(own(&running, "1", "ticketChanged", &own_changed(1, "Old")).await, 204);
    assert_eq!(running.event("msg_2", &changed("2", "New")).await, 204);
    // These are the new one's.
    assert_eq!(running.event("msg_3", &changed("3", "New")).await, 204);
    assert_eq!(own(&running, "3", "ticketChanged", &own_changed(3, "Old")).await, 204);
    assert_eq!(own(&running, "4", "ticketChanged", &own_changed(4, "Old")).await, 204);
    set("shadow").await;
    assert_eq!(running.event("msg_4", &changed("4", "New")).await, 204);
    assert_eq!(running.event("msg_5", &changed("5", "New")).await, 204);
    assert_eq!(own(&running, "5", "ticketChanged", &own_changed(5, "Old")).await, 204);
    receiver.received(5).await;
    let mut all: Vec<(i64, String)> = receiver.seen().iter().map(told).collect();
    all.sort();
    let who = |ticket: i64, who: &str| (ticket, who.to_owned());
    assert_eq!(all, [who(1, "Old"), who(2, "Old"), who(3, "New"), who(4, "New"), who(5, "Old")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_no_room_to_wait_is_delivered_and_nobody_is_blamed() {
    for bound in ["  pairs: 1\n", "  pairs_bytes: 1KiB\n"] {
        no_room_to_wait(bound).await;
    }
}

/// Of three events of some 700 bytes one finds room.
async fn no_room_to_wait(bound: &str) {
    let receiver = receiver().await;
    let place = Place::new();
    let edits = [("tickets.map.yaml", "within: 2m", "within: 1s")];
    let running = place.start(&configure(&place, &receiver, "shadow", &edits, bound)).await;
    for ticket in 1..=3 {
        let id = ticket.to_string();
        assert_eq!(own(&running, &id, "ticketChanged", &own_changed(ticket, &"Tea".repeat(200))).await, 204);
    }
    receiver.received(3).await;
    // The two without room, and the one without room for its partner.
    let found = counts(&running, CHANGED, &[("dropped", 3)]).await;
    let counted = &found["counts"];
    assert_eq!((&counted["events_missing"], &counted["events_extra"]), (&json!(0), &json!(0)), "{found}");
    metric(
        &running,
        "switchback_shadow_dropped_total{side=\"v1\",operation=\"event ticketChanged\",reason=\"queue\"} 3",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_event_that_cannot_be_translated_is_found_before_receivers_depend_on_it() {
    let receiver = receiver().await;
    let place = Place::new();
    let running = place.start(&configure(&place, &receiver, "shadow", &[], "")).await;
    assert_eq!(running.event("msg_1", &changed("seven", "Tea")).await, 204);
    let found = counts(&running, CHANGED, &[("different", 1)]).await;
    let text = found.to_string();
    assert!(text.contains("it cannot be translated") && text.contains("tickets.map.yaml:"), "{text}");
    assert!(!text.contains("seven"), "{text}");
    assert!(receiver.seen().is_empty(), "receivers get what the old version sends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phase_of_an_event_needs_the_old_events() {
    let receiver = receiver().await;
    let place = Place::new();
    let file = configure(&place, &receiver, "shadow", &[], "");
    let text = std::fs::read_to_string(&file).expect("it was just written");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("own:"));
    std::fs::write(&file, lines.map(|line| format!("{line}\n")).collect::<String>()).expect("it is written");
    let key = place.key();
    let checked = tokio::task::spawn_blocking(move || {
        let file = file.to_str().expect("a plain name").to_owned();
        Program::start(&["serve", "--check", "--config", &file], &[("TEST_KEY", &key)]).all()
    });
    let (status, out, err) = checked.await.expect("it ends");
    assert!(!status.success(), "{out}{err}");
    let said = out + &err;
    assert!(said.contains("error[G006]: the phase `shadow` needs the events that"), "{said}");
    assert!(said.contains("own: {verify: …}"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_events_find_each_other_whichever_replicas_they_come_to() {
    let Some(database) = postgres::database() else { return };
    let receiver = receiver().await;
    let place = Place::new();
    let edits = [(
        "tickets.map.yaml",
        "{by: [$.body.ticket_id, $.body.at], within: 2m}",
        "{by: $.body.ticket_id, within: 1s}",
    )];
    let file = configure_in(&place, Some(&database), &receiver, "shadow", &edits, "");
    let (one, other) = (place.start(&file).await, place.start(&file).await);
    assert_eq!(one.event("msg_1", &changed("7", "Tea")).await, 204);
    assert_eq!(own(&other, "1", "ticketChanged", &own_changed(7, "Tea")).await, 204);
    assert_eq!(own(&one, "2", "ticketChanged", &own_changed(8, "Tea")).await, 204);
    assert_eq!(other.event("msg_2", &changed("8", "Tee")).await, 204);
    let gone = json!({"type": "ticket.deleted", "timestamp": "2026-01-02T03:04:06Z", "data": {"id": "7"}});
    assert_eq!(one.event("msg_3", &gone).await, 204);
    counts(&other, CHANGED, &[("equal", 1), ("different", 1)]).await;
    counts(&other, "event ticketGone", &[("events_extra", 1), ("events_missing", 0)]).await;
    receiver.received(2).await;
    let mut all: Vec<(i64, String)> = receiver.seen().iter().map(told).collect();
    all.sort();
    assert_eq!(all, [(7, "Tea".to_owned()), (8, "Tea".to_owned())]);
}
