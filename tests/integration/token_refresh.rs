//! Refreshing as the authorization server sees it: how often, with what, and what becomes of its answers.

use crate::support::authority::{Act, Authority, Gate};
use crate::support::tokens::{Gateway, NEW_YEAR, PATIENCE, eventually};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_gateway::store::GrantState;
use switchback_gateway::token::{Rejected, Settings, TokenError};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_requests_at_the_moment_of_expiry_cause_one_refresh() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let first = client.grant.access_token().await.expect("connected");
    gateway.clock.advance(HOUR);
    assert!(client.grant.current().is_none(), "the token has ended");
    let waiting: Vec<_> = (0..200)
        .map(|_| {
            let grant = client.grant.clone();
            tokio::spawn(async move { grant.access_token().await.map(|token| token.generation()) })
        })
        .collect();
    for waiter in waiting {
        assert_eq!(waiter.await.expect("no panic"), Ok(first.generation() + 1));
    }
    assert_eq!(authority.calls(), 2, "one to begin with, one at expiry");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_401_causes_one_refresh_per_generation() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let token = client.grant.access_token().await.expect("connected");
    let storm = |generation: i64| {
        let grant = client.grant.clone();
        async move {
            let all: Vec<_> = (0..200)
                .map(|_| {
                    let grant = grant.clone();
                    tokio::spawn(async move { grant.rejected(generation).await })
                })
                .collect();
            let mut replays = 0;
            for one in all {
                if let Rejected::Replay(newer) = one.await.expect("no panic") {
                    assert_eq!(newer.generation(), generation + 1);
                    replays += 1;
                }
            }
            replays
        }
    };
    assert_eq!(storm(token.generation()).await, 200);
    assert_eq!(authority.calls(), 2);
    // The fresh token is refused as well: it lies not with the token, and no further refresh is spent on it.
    assert_eq!(storm(token.generation() + 1).await, 0);
    assert_eq!(authority.calls(), 2);
    // Latecomers with the first token are given the fresh one without a call.
    assert_eq!(storm(token.generation()).await, 200);
    assert_eq!(authority.calls(), 2);
    // Later it may have ended after all.
    gateway.clock.advance(Settings::default().rejection_quiet);
    assert_eq!(storm(token.generation() + 1).await, 200);
    assert_eq!(authority.calls(), 3);
}

#[tokio::test]
async fn a_request_that_leaves_does_not_take_the_refresh_with_it() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let gate = Arc::new(Gate::default());
    authority.script(Act::HoldAfter(gate.clone()));
    let request = tokio::spawn({
        let grant = client.grant.clone();
        async move { grant.access_token().await }
    });
    gate.arrived().await;
    request.abort();
    assert!(request.await.is_err(), "the request is gone");
    gate.go.notify_one();
    gateway.tokens.drain().await;
    assert_eq!(client.grant.current().expect("kept").secret().expose(), "access-canary-1");
    assert_eq!(authority.calls(), 1);
}

#[tokio::test]
async fn a_true_invalid_grant_ends_in_needs_reconnect_and_no_storm() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let token = client.grant.access_token().await.expect("connected");
    client.grant.worked(&token);
    gateway.tokens.drain().await;
    authority.state().active = "revoked by somebody".to_owned();
    authority.state().spent.clear();
    // The access token goes on serving while it lives.
    gateway.clock.advance(HOUR * 8 / 10);
    assert!(matches!(client.grant.rejected(token.generation()).await, Rejected::Pass));
    assert_eq!(client.grant.state(), GrantState::NeedsReconnect);
    assert_eq!(client.grant.access_token().await.expect("still lives").generation(), token.generation());
    let calls = authority.calls();
    gateway.clock.advance(HOUR);
    for _ in 0..100 {
        let refused = client.grant.access_token().await.expect_err("no token");
        assert_eq!(refused, TokenError::NeedsReconnect("invalid_grant".to_owned()));
    }
    assert_eq!(gateway.tokens.health().needs_reconnect, ["acme"]);
    let gateway = gateway.restart(authority.endpoint(), Settings::default()).await;
    assert_eq!(gateway.client().grant.state(), GrantState::NeedsReconnect, "survives a restart");
    assert!(gateway.client().grant.access_token().await.is_err());
    assert_eq!(authority.calls(), calls, "no call after the verdict");
}

#[tokio::test]
async fn whatever_is_not_a_verdict_backs_off_and_keeps_the_grant() {
    let answers: [(&str, Act); 9] = [
        ("server error", Act::Say(500, "", "")),
        ("unavailable, as HTML", Act::Say(503, "content-type: text/html\r\n", "<html>invalid_grant</html>")),
        (
            "an error of another kind",
            Act::Say(400, "content-type: application/json\r\n", r#"{"reason":"invalid_grant"}"#),
        ),
        (
            "an unknown error code",
            Act::Say(400, "content-type: application/json\r\n", r#"{"error":"try_later"}"#),
        ),
        ("too many requests", Act::Say(429, "retry-after: 120\r\n", r#"{"error":"invalid_grant"}"#)),
        ("success without tokens", Act::Say(200, "content-type: application/json\r\n", "{}")),
        ("success that is no JSON", Act::Say(200, "", "<html></html>")),
        ("a redirect", Act::Say(307, "location: /oauth/access_token\r\n", "")),
        ("a connection closed unread", Act::Slam),
    ];
    for (what, act) in answers {
        let authority = Authority::start().await;
        let gateway = Gateway::new(&authority).await;
        let client = gateway.client();
        let token = client.grant.access_token().await.expect("connected");
        gateway.clock.advance(HOUR * 9 / 10);
        let asked_to_wait = matches!(&act, Act::Say(429, ..));
        authority.script(act);
        assert!(matches!(client.grant.rejected(token.generation()).await, Rejected::Pass), "{what}");
        assert_eq!(authority.calls(), 2, "{what}: tried once, not again by itself");
        for _ in 0..50 {
            assert!(matches!(client.grant.rejected(token.generation()).await, Rejected::Pass), "{what}");
            assert!(client.grant.access_token().await.is_ok(), "{what}: the living token serves");
        }
        assert_eq!(authority.calls(), 2, "{what}: left alone for a while");
        assert_eq!(client.grant.state(), GrantState::Active, "{what}");
        if asked_to_wait {
            gateway.clock.advance(Duration::from_secs(119));
            assert!(matches!(client.grant.rejected(token.generation()).await, Rejected::Pass), "{what}");
            assert_eq!(authority.calls(), 2, "{what}: as long as it asked for");
        }
        gateway.clock.advance(Duration::from_secs(2));
        assert!(matches!(client.grant.rejected(token.generation()).await, Rejected::Replay(_)), "{what}");
        assert_eq!(authority.calls(), 3, "{what}");
    }
}

#[tokio::test]
async fn an_authorization_server_that_hangs_is_given_up_in_time() {
    let authority = Authority::start().await;
    let endpoint = authority.endpoint_with(Duration::from_millis(200));
    let clock = Clock::paused_at(NEW_YEAR);
    let gateway = Gateway::with(&authority, endpoint, Settings::default(), clock).await;
    authority.script(Act::Hang);
    let refused =
        tokio::time::timeout(PATIENCE, gateway.client().grant.access_token()).await.expect("in time");
    assert_eq!(refused.expect_err("no token"), TokenError::Server("no answer in time".to_owned()));
    assert!(matches!(gateway.client().grant.access_token().await, Err(TokenError::CoolingDown(_))));
    gateway.clock.advance(Duration::from_secs(2));
    assert!(gateway.client().grant.access_token().await.is_ok());
}

#[tokio::test]
async fn an_answer_without_a_refresh_token_keeps_the_old_one() {
    let authority = Authority::start().await;
    authority.state().rotates = false;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    authority.script(Act::Instead(vec![("refresh_token", None)]));
    client.grant.access_token().await.expect("connected");
    gateway.clock.advance(HOUR);
    client.grant.access_token().await.expect("refreshed");
    let sent: Vec<Value> = authority.state().calls.iter().map(|call| call["refresh_token"].clone()).collect();
    assert_eq!(sent, [json!("refresh-canary-0"), json!("refresh-canary-0")]);
}

#[tokio::test]
async fn odd_lifetimes_cause_no_loop_of_refreshes() {
    for (expires_in, calls_a_day_max) in [
        (json!(0), 1),
        (json!(-3600), 1),
        (json!(null), 1),
        (json!("soon"), 1),
        (json!(u64::MAX), 1),
        (json!("43200"), 4),
        (json!(43200.5), 4),
    ] {
        let authority = Authority::start().await;
        authority.state().expires_in = expires_in.clone();
        let settings = Settings { poll: Duration::from_secs(60), ..Settings::default() };
        let clock = Clock::paused_at(NEW_YEAR);
        let gateway = Gateway::with(&authority, authority.endpoint(), settings, clock).await;
        let client = gateway.client();
        client.grant.access_token().await.expect("connected");
        let running = tokio::spawn(gateway.tokens.clone().run());
        for _ in 0..48 {
            gateway.clock.advance(Duration::from_secs(1800));
            tokio::time::sleep(Duration::from_millis(4)).await;
            assert!(client.grant.access_token().await.is_ok(), "{expires_in}");
        }
        running.abort();
        gateway.tokens.drain().await;
        assert!(authority.calls() <= calls_a_day_max, "{expires_in}: {} calls", authority.calls());
    }
}

#[tokio::test]
async fn a_jump_of_the_wall_clock_by_forty_days_changes_nothing() {
    let days = 40 * 86_400_000;
    for jump in [days, -days] {
        let authority = Authority::start().await;
        let gateway = Gateway::new(&authority).await;
        let client = gateway.client();
        client.grant.access_token().await.expect("connected");
        gateway.clock.set_wall(NEW_YEAR + jump);
        assert!(client.grant.access_token().await.is_ok());
        assert_eq!(authority.calls(), 1, "running, only monotonic time counts");
        // After a restart the wall clock is all there is: at worst one refresh too early, never none at all or a loop.
        let gateway = gateway.restart(authority.endpoint(), Settings::default()).await;
        let client = gateway.client();
        for _ in 0..20 {
            client.grant.access_token().await.expect("a token");
        }
        assert!(authority.calls() <= 2, "{} calls", authority.calls());
        gateway.clock.advance(HOUR);
        client.grant.access_token().await.expect("refreshed");
        assert!(authority.calls() <= 3, "{} calls", authority.calls());
    }
}

#[tokio::test]
async fn tokens_are_refreshed_ahead_of_their_end_by_the_gateway_itself() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let running = tokio::spawn(gateway.tokens.clone().run());
    eventually("a grant without a token fetches one", || client.grant.current().is_some()).await;
    let first = client.grant.generation();
    gateway.clock.advance(HOUR * 69 / 100);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(client.grant.generation(), first, "not before seven tenths");
    gateway.clock.advance(HOUR * 12 / 100);
    eventually("replaced by eight tenths", || client.grant.generation() == first + 1).await;
    assert_eq!(authority.calls(), 2);
    running.abort();
}

#[tokio::test]
async fn a_lost_answer_is_recovered_where_the_server_has_a_grace_period() {
    let authority = Authority::start().await;
    authority.state().grace = true;
    let gateway = Gateway::new(&authority).await;
    authority.script(Act::LoseAnswer);
    assert!(gateway.client().grant.access_token().await.is_err());
    gateway.clock.advance(Duration::from_secs(2));
    let token = gateway.client().grant.access_token().await.expect("recovered");
    assert!(authority.accepts(token.secret().expose()));
}

#[tokio::test]
async fn a_lost_answer_without_grace_is_flagged_once_and_for_what_it_is() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    authority.script(Act::LoseAnswer);
    assert!(gateway.client().grant.access_token().await.is_err());
    let gateway = gateway.restart(authority.endpoint(), Settings::default()).await;
    let running = tokio::spawn(gateway.tokens.clone().run());
    eventually("flagged at start", || gateway.client().grant.state() == GrantState::NeedsReconnect).await;
    let refused = gateway.client().grant.access_token().await.expect_err("lost");
    assert_eq!(refused, TokenError::NeedsReconnect("refresh_interrupted".to_owned()));
    gateway.clock.advance(HOUR);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(authority.calls(), 2, "tried once more, then never again");
    running.abort();
}

#[tokio::test]
async fn a_server_that_forgot_its_last_answer_is_offered_the_token_before_it() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    client.grant.access_token().await.expect("connected");
    // It fails over to a copy of itself from before the refresh.
    {
        let mut state = authority.state();
        state.active = "refresh-canary-0".to_owned();
        state.spent.clear();
        state.living.clear();
    }
    gateway.clock.advance(HOUR);
    let token = client.grant.access_token().await.expect("the token before it still works");
    assert!(authority.accepts(token.secret().expose()));
    assert_eq!(client.grant.state(), GrantState::Active);
}

#[tokio::test]
async fn the_previous_refresh_token_is_dropped_once_the_access_token_has_worked() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let token = client.grant.access_token().await.expect("connected");
    let before = gateway.store.grant_of(&client.id).await.expect("stored").secrets.expect("opens");
    assert_eq!(before.previous_refresh.expect("kept at first").expose(), "refresh-canary-0");
    client.grant.worked(&token);
    gateway.tokens.drain().await;
    let after = gateway.store.grant_of(&client.id).await.expect("stored").secrets.expect("opens");
    assert!(after.previous_refresh.is_none());
}

#[tokio::test]
async fn a_sibling_that_was_faster_makes_invalid_grant_harmless() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let gate = Arc::new(Gate::default());
    authority.script(Act::HoldBefore(gate.clone()));
    let waiter = tokio::spawn({
        let grant = client.grant.clone();
        async move { grant.access_token().await }
    });
    gate.arrived().await;
    // A sibling stores newer tokens while our call is under way; the server knows ours no more.
    let row = gateway.store.grant_of(&client.id).await.expect("stored");
    let newer = switchback_gateway::store::NewTokens {
        access: "access-of-the-sibling".into(),
        refresh: Some("refresh-of-the-sibling".into()),
        previous_refresh: None,
        issued_ms: NEW_YEAR,
        lifetime_ms: Some(3_600_000),
    };
    gateway.store.finish_refresh(&row.key, row.generation, &newer).await.expect("stored");
    authority.state().active = "refresh-of-the-sibling".to_owned();
    gate.go.notify_one();
    let token = waiter.await.expect("no panic").expect("the sibling's token serves");
    assert_eq!(token.secret().expose(), "access-of-the-sibling");
    assert_eq!(client.grant.state(), GrantState::Active);
}

#[tokio::test]
async fn a_store_that_fails_after_the_answer_leaves_the_tokens_in_memory_until_it_takes_them() {
    let authority = Authority::start().await;
    let clock = Clock::machine();
    let settings = Settings { rejection_quiet: Duration::ZERO, ..Settings::default() };
    let gateway = Gateway::with(&authority, authority.endpoint(), settings, clock).await;
    let client = gateway.client();
    let gate = Arc::new(Gate::default());
    authority.script(Act::HoldAfter(gate.clone()));
    let waiter = tokio::spawn({
        let grant = client.grant.clone();
        async move { grant.access_token().await }
    });
    gate.arrived().await;
    let breaker = sqlx::SqlitePool::connect(&gateway.url).await.expect("the file opens");
    sqlx::query("ALTER TABLE grants RENAME TO grants_gone").execute(&breaker).await.expect("broken");
    gate.go.notify_one();
    let token = waiter.await.expect("no panic").expect("served from memory");
    assert!(authority.accepts(token.secret().expose()));
    assert!(!gateway.tokens.health().is_ready());
    assert_eq!(gateway.tokens.health().unpersisted, 1);
    // No further refresh is begun that could not be stored either.
    assert!(matches!(client.grant.rejected(token.generation()).await, Rejected::Pass));
    assert_eq!(authority.calls(), 1);
    sqlx::query("ALTER TABLE grants_gone RENAME TO grants").execute(&breaker).await.expect("mended");
    breaker.close().await;
    eventually("stored at last", || gateway.tokens.health().is_ready()).await;
    let row = gateway.store.grant_of(&client.id).await.expect("stored");
    assert_eq!(row.generation, token.generation());
    assert!(!row.outcome_unknown);
    assert_eq!(row.secrets.expect("opens").access.expect("stored").expose(), token.secret().expose());
}

#[tokio::test]
async fn no_refresh_token_is_spent_that_the_store_could_not_replace() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let token = client.grant.access_token().await.expect("connected");
    let breaker = sqlx::SqlitePool::connect(&gateway.url).await.expect("the file opens");
    sqlx::query("ALTER TABLE refresh_intents RENAME TO gone").execute(&breaker).await.expect("broken");
    assert!(matches!(client.grant.rejected(token.generation()).await, Rejected::Pass));
    assert_eq!(authority.calls(), 1, "nothing was sent");
    assert!(client.grant.access_token().await.is_ok(), "the living token serves");
    assert!(!gateway.tokens.health().is_ready());
    sqlx::query("ALTER TABLE gone RENAME TO refresh_intents").execute(&breaker).await.expect("mended");
    breaker.close().await;
    gateway.clock.advance(Settings::default().retry_min);
    assert!(matches!(client.grant.rejected(token.generation()).await, Rejected::Replay(_)));
    assert!(gateway.tokens.health().is_ready());
}

#[tokio::test]
async fn no_token_shows_in_what_is_printed_of_the_parts() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let token = client.grant.access_token().await.expect("connected");
    let row = gateway.store.grant_of(&client.id).await.expect("stored");
    authority.state().active.clear();
    let refused = client.grant.rejected(token.generation()).await;
    let shown = format!(
        "{client:?} {token:?} {row:?} {refused:?} {:?} {:?} {:?} {:?}",
        gateway.tokens,
        gateway.store,
        authority.endpoint(),
        token.header()
    );
    assert!(!shown.contains("canary"), "{shown}");
}
