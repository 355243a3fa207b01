//! Refreshing from the authorization server's view: frequency, content, and the use of its answers.

use crate::support::authority::{Act, Authority, Gate};
use crate::support::tokens::{Gateway, NEW_YEAR, PATIENCE, eventually, operation, operation_at};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_gateway::store::GrantState;
use switchback_gateway::token::{RefreshSettings, Rejected, TokenError};

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
                    tokio::spawn(async move { grant.on_unauthorized(generation, operation()).await })
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
    gateway.clock.advance(RefreshSettings::default().rejection_quiet);
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
    gateway.tokens.drain(PATIENCE).await;
    assert_eq!(client.grant.current().expect("kept").secret().expose(), "access-canary-1");
    assert_eq!(authority.calls(), 1);
}

/// The shadow has a runtime of its own, of low priority, which ends with a reload that changes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_goes_on_though_the_runtime_that_asked_for_it_ends() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let gate = Arc::new(Gate::default());
    authority.script(Act::HoldAfter(gate.clone()));
    let elsewhere = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let elsewhere = elsewhere.expect("the system has threads");
    let asked = elsewhere.spawn({
        let grant = client.grant.clone();
        async move { grant.access_token().await }
    });
    gate.arrived().await;
    elsewhere.shutdown_background();
    assert!(asked.await.is_err(), "whoever asked is gone");
    gate.go.notify_one();
    gateway.tokens.drain(PATIENCE).await;
    assert_eq!(client.grant.current().expect("kept").secret().expose(), "access-canary-1");
    assert_eq!(authority.calls(), 1);
}

#[tokio::test]
async fn a_true_invalid_grant_ends_in_needs_reconnect_and_no_storm() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let token = client.grant.access_token().await.expect("connected");
    client.grant.on_success(&token, operation());
    gateway.tokens.drain(PATIENCE).await;
    authority.state().active = "revoked by somebody".to_owned();
    authority.state().spent.clear();
    // The access token remains in use during its lifetime.
    gateway.clock.advance(HOUR * 8 / 10);
    assert!(matches!(
        client.grant.on_unauthorized(token.generation(), operation()).await,
        Rejected::Unavailable(TokenError::NeedsReconnect(_))
    ));
    assert_eq!(client.grant.state(), GrantState::NeedsReconnect);
    assert_eq!(client.grant.access_token().await.expect("still lives").generation(), token.generation());
    let calls = authority.calls();
    gateway.clock.advance(HOUR);
    for _ in 0..100 {
        let refused = client.grant.access_token().await.expect_err("no token");
        assert_eq!(refused, TokenError::NeedsReconnect("invalid_grant".to_owned()));
    }
    assert_eq!(gateway.tokens.health().needs_reconnect, ["acme"]);
    let gateway = gateway.restart(authority.endpoint(), RefreshSettings::default()).await;
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
        assert!(
            matches!(
                client.grant.on_unauthorized(token.generation(), operation()).await,
                Rejected::Unavailable(_)
            ),
            "{what}"
        );
        assert_eq!(authority.calls(), 2, "{what}: tried once, not again by itself");
        for _ in 0..50 {
            assert!(
                matches!(
                    client.grant.on_unauthorized(token.generation(), operation()).await,
                    Rejected::Unavailable(_)
                ),
                "{what}"
            );
            assert!(client.grant.access_token().await.is_ok(), "{what}: the living token serves");
        }
        assert_eq!(authority.calls(), 2, "{what}: left alone for a while");
        assert_eq!(client.grant.state(), GrantState::Active, "{what}");
        if asked_to_wait {
            gateway.clock.advance(Duration::from_secs(119));
            assert!(
                matches!(
                    client.grant.on_unauthorized(token.generation(), operation()).await,
                    Rejected::Unavailable(_)
                ),
                "{what}"
            );
            assert_eq!(authority.calls(), 2, "{what}: as long as it asked for");
        }
        gateway.clock.advance(Duration::from_secs(2));
        assert!(
            matches!(
                client.grant.on_unauthorized(token.generation(), operation()).await,
                Rejected::Replay(_)
            ),
            "{what}"
        );
        assert_eq!(authority.calls(), 3, "{what}");
    }
}

#[tokio::test]
async fn an_authorization_server_that_hangs_is_given_up_in_time() {
    let authority = Authority::start().await;
    let endpoint = authority.endpoint_with(Duration::from_millis(200));
    let clock = Clock::paused_at(NEW_YEAR);
    let gateway = Gateway::with(&authority, endpoint, RefreshSettings::default(), clock).await;
    authority.script(Act::Hang);
    let refused =
        tokio::time::timeout(PATIENCE, gateway.client().grant.access_token()).await.expect("in time");
    assert_eq!(refused.expect_err("no token"), TokenError::Server("no answer in time".to_owned()));
    assert!(matches!(gateway.client().grant.access_token().await, Err(TokenError::CoolingDown { .. })));
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
        let settings = RefreshSettings { poll: Duration::from_secs(60), ..RefreshSettings::default() };
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
        gateway.tokens.drain(PATIENCE).await;
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
        // After a restart only the wall clock is available: at worst there is one refresh too early, never
        // none or a loop.
        let gateway = gateway.restart(authority.endpoint(), RefreshSettings::default()).await;
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
    let gateway = gateway.restart(authority.endpoint(), RefreshSettings::default()).await;
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
    client.grant.on_success(&token, operation());
    gateway.tokens.drain(PATIENCE).await;
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
    let settings = RefreshSettings { rejection_quiet: Duration::ZERO, ..RefreshSettings::default() };
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
    assert!(matches!(
        client.grant.on_unauthorized(token.generation(), operation()).await,
        Rejected::Unavailable(TokenError::Store(_))
    ));
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
async fn a_store_that_takes_nothing_does_not_keep_the_process() {
    let authority = Authority::start().await;
    let gateway =
        Gateway::with(&authority, authority.endpoint(), RefreshSettings::default(), Clock::machine()).await;
    let gate = Arc::new(Gate::default());
    authority.script(Act::HoldAfter(gate.clone()));
    let grant = gateway.client().grant.clone();
    let waiter = tokio::spawn(async move { grant.access_token().await });
    gate.arrived().await;
    let breaker = sqlx::SqlitePool::connect(&gateway.url).await.expect("the file opens");
    sqlx::query("ALTER TABLE grants RENAME TO grants_gone").execute(&breaker).await.expect("broken");
    gate.go.notify_one();
    waiter.await.expect("no panic").expect("served from memory");
    let draining = gateway.tokens.drain(Duration::from_millis(100));
    assert!(!tokio::time::timeout(PATIENCE, draining).await.expect("it is bounded"), "and says so");
}

#[tokio::test]
async fn no_refresh_token_is_spent_that_the_store_could_not_replace() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let token = client.grant.access_token().await.expect("connected");
    let breaker = sqlx::SqlitePool::connect(&gateway.url).await.expect("the file opens");
    sqlx::query("ALTER TABLE refresh_intents RENAME TO gone").execute(&breaker).await.expect("broken");
    assert!(matches!(
        client.grant.on_unauthorized(token.generation(), operation()).await,
        Rejected::Unavailable(TokenError::Store(_))
    ));
    assert_eq!(authority.calls(), 1, "nothing was sent");
    assert!(client.grant.access_token().await.is_ok(), "the living token serves");
    assert!(!gateway.tokens.health().is_ready());
    sqlx::query("ALTER TABLE gone RENAME TO refresh_intents").execute(&breaker).await.expect("mended");
    breaker.close().await;
    gateway.clock.advance(RefreshSettings::default().retry_min);
    assert!(matches!(
        client.grant.on_unauthorized(token.generation(), operation()).await,
        Rejected::Replay(_)
    ));
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
    let refused = client.grant.on_unauthorized(token.generation(), operation()).await;
    let shown = format!(
        "{client:?} {token:?} {row:?} {refused:?} {:?} {:?} {:?} {:?}",
        gateway.tokens,
        gateway.store,
        authority.endpoint(),
        token.header()
    );
    assert!(!shown.contains("canary"), "{shown}");
}

#[tokio::test]
async fn an_operation_that_is_never_permitted_leaves_the_others_their_refresh() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let (client, usual, forbidden) = (gateway.client(), operation_at("/usual"), operation_at("/forbidden"));
    let mut token = client.grant.access_token().await.expect("connected");
    for _ in 0..20 {
        client.grant.on_success(&token, usual);
        if let Rejected::Replay(newer) = client.grant.on_unauthorized(token.generation(), forbidden).await {
            client.grant.on_refused_again(newer.generation(), forbidden);
            client.grant.on_success(&newer, usual);
            token = newer;
        }
    }
    assert_eq!(authority.calls(), 2, "one refresh to find out");
    // Now the token expires before its time, within the quiet time after the operation that is never
    // permitted.
    let newer = client.grant.on_unauthorized(token.generation(), usual).await;
    assert!(matches!(newer, Rejected::Replay(newer) if newer.generation() == token.generation() + 1));
    assert_eq!(authority.calls(), 3);
}

/// Lets the gateway try until it has tried `calls` times or stopped trying.
async fn tried(gateway: &Gateway, authority: &Authority, calls: usize) {
    let client = gateway.client();
    for _ in 0..200 {
        let _ = client.grant.access_token().await;
        if authority.calls() >= calls {
            return;
        }
        gateway.clock.advance(Duration::from_secs(10));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_failure_of_the_server_costs_the_calls_that_wait_no_answer() {
    for act in [Act::Say(500, "", ""), Act::Say(503, "retry-after: 1\r\n", "")] {
        let authority = Authority::start().await;
        let gateway =
            Gateway::with(&authority, authority.endpoint(), RefreshSettings::default(), Clock::machine())
                .await;
        authority.script(act);
        let client = gateway.client();
        let waiting: Vec<_> = (0..30)
            .map(|_| {
                let grant = client.grant.clone();
                tokio::spawn(async move { grant.access_token().await.map(|token| token.generation()) })
            })
            .collect();
        for waiter in waiting {
            assert_eq!(waiter.await.expect("no panic"), Ok(client.grant.generation()));
        }
        assert_eq!(authority.calls(), 2, "the one that failed, and one more for all");
    }
}

#[tokio::test]
async fn a_server_that_fails_twice_or_wants_a_longer_pause_is_left_alone() {
    let twice = [Act::Say(500, "", ""), Act::Say(502, "", "")];
    for (acts, calls) in [(&twice[..], 2), (&[Act::Say(503, "retry-after: 60\r\n", "")][..], 1)] {
        let authority = Authority::start().await;
        let gateway =
            Gateway::with(&authority, authority.endpoint(), RefreshSettings::default(), Clock::machine())
                .await;
        acts.iter().cloned().for_each(|act| authority.script(act));
        let grant = gateway.client().grant.clone();
        assert!(matches!(grant.access_token().await, Err(TokenError::Server(_))));
        assert!(matches!(grant.access_token().await, Err(TokenError::CoolingDown { .. })));
        assert_eq!(authority.calls(), calls);
    }
}

#[tokio::test]
async fn a_refusal_after_a_failure_is_known_to_have_followed_one() {
    let authority = Authority::start().await;
    let gateway =
        Gateway::with(&authority, authority.endpoint(), RefreshSettings::default(), Clock::machine()).await;
    // The server spends the token, fails, and then knows the token as spent.
    authority.script(Act::Say(500, "", ""));
    {
        let mut state = authority.state();
        let spent = std::mem::take(&mut state.active);
        state.spent.push(spent);
    }
    let refused = gateway.client().grant.access_token().await.expect_err("spent");
    assert_eq!(refused, TokenError::NeedsReconnect("refresh_interrupted".to_owned()));
    assert_eq!(authority.calls(), 2, "and no token before it is offered");
}

#[tokio::test]
async fn refusals_in_words_of_the_servers_own_never_end_the_grant() {
    for (status, body, reason) in [
        (400, r#"{"reason":"The token is wrong."}"#, "status_400"),
        (401, r#"{"reason":"The token is wrong."}"#, "status_401"),
        (400, r#"{"error":"consent_required"}"#, "consent_required"),
    ] {
        let authority = Authority::start().await;
        for _ in 0..50 {
            authority.script(Act::Say(status, JSON, body));
        }
        let gateway = Gateway::new(&authority).await;
        let registry = switchback_gateway::token::Registry::new(gateway.store.clone(), None);
        let grant = || async { registry.get("acme").await.expect("listed").grant };
        assert_eq!(grant().await.state, GrantState::Pending, "it has never had an access token");
        let _ = gateway.client().grant.access_token().await;
        let shown = grant().await;
        assert_eq!(shown.state, GrantState::Pending, "{reason}");
        assert!(shown.reason.is_some_and(|why| why.contains(reason)), "a refusal shows from the first on");
        tried(&gateway, &authority, 50).await;
        let calls = authority.calls();
        assert!((8..=30).contains(&calls), "{reason}: {calls} calls within 2,000 seconds");
        let shown = grant().await;
        assert_eq!((shown.state, shown.reason.as_deref()), (GrantState::Misconfigured, Some(reason)));
        authority.state().script.clear();
        gateway.clock.advance(RefreshSettings::default().retry_max);
        gateway.client().grant.access_token().await.expect("the server has come to itself");
        assert_eq!(grant().await.state, GrantState::Active);
    }
}

const JSON: &str = "content-type: application/json\r\n";

#[tokio::test]
async fn an_application_that_asks_for_itself_comes_back_after_any_refusal() {
    for (status, body) in [
        (400, r#"{"error":"invalid_grant"}"#),
        (401, r#"{"message":"who are you?"}"#),
        (401, r#"{"error":"invalid_client"}"#),
    ] {
        let authority = Authority::start().await;
        let (gateway, grant) = machine(&authority).await;
        for _ in 0..50 {
            authority.script(Act::Say(status, JSON, body));
        }
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let _ = grant.access_token().await;
            match grant.access_token().await {
                Err(TokenError::CoolingDown { wait, .. }) => {
                    pauses.push(wait);
                    gateway.clock.advance(wait);
                }
                other => panic!("{body}: {other:?}"),
            }
        }
        assert_eq!(authority.calls(), 8, "{body}: one call for each pause");
        assert!(
            pauses.iter().all(|pause| *pause <= RefreshSettings::default().retry_max),
            "{body}: {pauses:?}"
        );
        assert!(
            pauses[7] > pauses[0] || pauses[0] == RefreshSettings::default().retry_max,
            "{body}: {pauses:?}"
        );
        assert_ne!(grant.state(), GrantState::NeedsReconnect, "{body}");
        authority.state().script.clear();
        let token = grant.access_token().await.expect("a token");
        assert!(authority.accepts(token.secret().expose()));
    }
}

/// A gateway with a second client, which fetches its tokens by client credentials.
async fn machine(authority: &Authority) -> (Gateway, Arc<switchback_gateway::token::Grant>) {
    use switchback_gateway::store::GrantFlow;
    let gateway = Gateway::new(authority).await;
    let machine = switchback_gateway::token::NewClient {
        name: "machine".to_owned(),
        tokens: vec![crate::support::authority::secret("machine-token").into()],
        flow: GrantFlow::ClientCredentials,
        refresh_token: None,
        ..crate::support::tokens::acme("")
    };
    let registry = switchback_gateway::token::Registry::new(gateway.store.clone(), None);
    let added = registry.add(machine).await.expect("added").client;
    assert_eq!(added.grant.state, GrantState::Pending);
    gateway.tokens.sync().await.expect("the store answers");
    let grant = gateway.tokens.clients().by_name("machine").expect("there").grant.clone();
    (gateway, grant)
}

#[tokio::test]
async fn an_operator_has_the_server_asked_again_at_once_whatever_came_before() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let registry = switchback_gateway::token::Registry::new(gateway.store.clone(), None);
    // A failure: the gateway waits for ten minutes, and the clock does not advance.
    authority.script(Act::Say(429, "retry-after: 600\r\n", ""));
    let _ = client.grant.access_token().await;
    assert!(matches!(client.grant.access_token().await, Err(TokenError::CoolingDown { .. })));
    let asked = registry.retry("acme").await.expect("asked");
    assert_eq!(asked.grant.reason.as_deref(), Some("refresh_requested"));
    gateway.tokens.sync().await.expect("the store answers");
    gateway.tokens.refresh("acme", asked.grant.generation).await.expect("refreshed");
    assert_eq!(registry.get("acme").await.expect("listed").grant.reason, None);
    // A token that lives is renewed too, by the gateway's own loop.
    let generation = client.grant.generation();
    registry.retry("acme").await.expect("asked");
    let running = tokio::spawn(gateway.tokens.clone().run());
    eventually("refreshed", || client.grant.generation() == generation + 1).await;
    running.abort();
    // A grant that has ended: the server knows its token again after a restore from a backup.
    let known = std::mem::take(&mut authority.state().active);
    gateway.clock.advance(HOUR);
    let ended = client.grant.access_token().await.expect_err("ended");
    assert_eq!(ended, TokenError::NeedsReconnect("invalid_grant".to_owned()));
    let asked = registry.retry("acme").await.expect("asked");
    gateway.tokens.sync().await.expect("the store answers");
    gateway.tokens.refresh("acme", asked.grant.generation).await.expect_err("it has ended all the same");
    assert_eq!(client.grant.state(), GrantState::NeedsReconnect);
    authority.state().active = known;
    let asked = registry.retry("acme").await.expect("asked");
    gateway.tokens.sync().await.expect("the store answers");
    gateway.tokens.refresh("acme", asked.grant.generation).await.expect("refreshed");
    assert_eq!(client.grant.state(), GrantState::Active);
    // There is no refresh token for others.
    registry.revoke("acme").await.expect("revoked");
    assert!(registry.retry("acme").await.is_err());
}

#[tokio::test]
async fn what_the_operator_got_wrong_is_shown_as_such_and_tried_again_in_case_it_is_mended() {
    for code in ["invalid_client", "invalid_request", "unauthorized_client", "invalid_scope"] {
        let authority = Authority::start().await;
        let body: &'static str = format!(r#"{{"error":"{code}","error_description":"canary"}}"#).leak();
        authority.script(Act::Say(400, "content-type: application/json\r\n", body));
        let gateway = Gateway::new(&authority).await;
        let client = gateway.client();
        let refused = client.grant.access_token().await.expect_err("refused");
        assert_eq!(refused, TokenError::Misconfigured(code.to_owned()));
        let registry = switchback_gateway::token::Registry::new(gateway.store.clone(), None);
        let shown = registry.get("acme").await.expect("listed").grant;
        assert_eq!((shown.state, shown.reason.as_deref()), (GrantState::Misconfigured, Some(code)));
        assert_eq!(gateway.tokens.health().needs_reconnect, ["acme"]);
        for _ in 0..50 {
            let again = client.grant.access_token().await.expect_err("not at once");
            assert!(again.to_string().contains(code), "{again}");
        }
        assert_eq!(authority.calls(), 1, "no storm");
        gateway.clock.advance(RefreshSettings::default().retry_max);
        client.grant.access_token().await.expect("mended on the other side");
        assert_eq!(registry.get("acme").await.expect("listed").grant.state, GrantState::Active);
    }
}

#[tokio::test]
async fn parameters_of_the_configuration_go_along_with_every_request_for_tokens() {
    let authority = Authority::start().await;
    let parameters =
        ["audience", "resource"].map(|name| (name.to_owned(), format!("https://{name}.example/?a&b")));
    let oauth =
        switchback_gateway::token::OAuth { parameters: parameters.to_vec(), ..authority.oauth(PATIENCE) };
    let endpoint = switchback_gateway::token::TokenEndpoint::new(oauth).expect("loopback needs no TLS");
    let gateway =
        Gateway::with(&authority, endpoint, RefreshSettings::default(), Clock::paused_at(NEW_YEAR)).await;
    gateway.client().grant.access_token().await.expect("connected");
    let call = authority.state().calls[0].clone();
    assert_eq!(
        json!([call["audience"], call["resource"], call["grant_type"]]),
        json!(["https://audience.example/?a&b", "https://resource.example/?a&b", "refresh_token"])
    );
}

#[tokio::test]
async fn requests_for_tokens_are_as_the_rfc_has_them_unless_it_is_said_otherwise() {
    use switchback_plan::{BodyForm, ClientAuth, RefreshExtra, TokenRequests};
    let with = |body, client_auth, refresh_sends: &[RefreshExtra]| TokenRequests {
        body,
        client_auth,
        refresh_sends: (!refresh_sends.is_empty()).then(|| refresh_sends.to_vec()),
    };
    let form = "application/x-www-form-urlencoded";
    let extras = [RefreshExtra::AccessToken, RefreshExtra::Scope];
    for (requests, kind, by, extra) in [
        (TokenRequests::default(), form, json!("basic"), json!([null, null])),
        (with(None, Some(ClientAuth::Post), &[]), form, Value::Null, json!([null, null])),
        (
            with(Some(BodyForm::Json), Some(ClientAuth::Post), &extras),
            "application/json",
            Value::Null,
            json!(["access-canary-1", "install_app read_agent_profile"]),
        ),
    ] {
        let authority = Authority::start().await;
        let oauth = switchback_gateway::token::OAuth { requests, ..authority.oauth(PATIENCE) };
        let endpoint = switchback_gateway::token::TokenEndpoint::new(oauth).expect("loopback needs no TLS");
        let clock = Clock::paused_at(NEW_YEAR);
        let gateway = Gateway::with(&authority, endpoint, RefreshSettings::default(), clock).await;
        let client = gateway.client();
        client.grant.access_token().await.expect("connected");
        gateway.clock.advance(HOUR);
        client.grant.access_token().await.expect("refreshed");
        let call = authority.state().calls[1].clone();
        assert_eq!((&call["type"], &call["by"]), (&json!(kind), &by), "{call}");
        assert_eq!(json!([call["access_token"], call["scope"]]), extra, "{call}");
    }
}

#[tokio::test]
async fn an_application_without_a_secret_shows_its_id_alone() {
    use switchback_plan::{ClientAuth, TokenRequests};
    let authority = Authority::start().await;
    let requests = TokenRequests { client_auth: Some(ClientAuth::None), ..TokenRequests::default() };
    let oauth = switchback_gateway::token::OAuth { requests, ..authority.oauth(PATIENCE) };
    let endpoint = switchback_gateway::token::TokenEndpoint::new(oauth).expect("loopback needs no TLS");
    let gateway =
        Gateway::with(&authority, endpoint, RefreshSettings::default(), Clock::paused_at(NEW_YEAR)).await;
    // This authority requires a secret; only the received request counts.
    let _ = gateway.client().grant.access_token().await;
    let call = authority.state().calls[0].clone();
    assert!(call.get("client_secret").is_none() && call.get("by").is_none(), "{call}");
    assert!(call["client_id"].is_string());
}

#[tokio::test]
async fn an_application_that_asks_for_itself_needs_nobody_to_connect_it() {
    let authority = Authority::start().await;
    let (gateway, grant) = machine(&authority).await;
    for generation in 1..=3 {
        let token = grant.access_token().await.expect("a token");
        assert!(authority.accepts(token.secret().expose()));
        let call = authority.state().calls[generation - 1].clone();
        assert_eq!(call["grant_type"], "client_credentials");
        assert_eq!(call["scope"], "install_app read_agent_profile");
        assert!(call.get("refresh_token").is_none());
        gateway.clock.advance(HOUR);
    }
}
