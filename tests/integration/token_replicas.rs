//! Several gateways on one PostgreSQL store, and a store with outages.

use crate::support::authority::{Act, Authority, Gate, app, secret};
use crate::support::postgres;
use crate::support::tokens::{OLD_TOKEN, PATIENCE, acme, eventually, key, ring};
use std::sync::Arc;
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_gateway::store::{Begin, Finish, MissingStore, NewTokens, Store};
use switchback_gateway::token::{Client, NewClient, RefreshSettings, Registry, Tokens};

struct Replica {
    store: Store,
    tokens: Tokens,
}

impl Replica {
    fn client(&self) -> Arc<Client> {
        self.tokens.clients().authenticate(OLD_TOKEN.as_bytes(), "v2").expect("enrolled")
    }
}

async fn replicas(authority: &Authority, count: usize, timeout: Duration) -> Option<Vec<Replica>> {
    replicas_with(authority, count, timeout, RefreshSettings::default().lease).await
}

async fn replicas_with(
    authority: &Authority,
    count: usize,
    timeout: Duration,
    lease: Duration,
) -> Option<Vec<Replica>> {
    let url = postgres::database()?;
    let key = key();
    let mut all = Vec::new();
    for number in 0..count {
        let store =
            Store::open(&url, ring(&[&key]), Clock::machine(), MissingStore::Create).await.expect("opens");
        if number == 0 {
            let seed = authority.state().active.clone();
            Registry::new(store.clone(), None).add(acme(&seed)).await.expect("added");
        }
        let endpoint = authority.endpoint_with(timeout);
        let settings =
            RefreshSettings { rejection_quiet: Duration::ZERO, lease, ..RefreshSettings::default() };
        let tokens = Tokens::open(store.clone(), Some(endpoint), settings).await.expect("all may serve");
        all.push(Replica { store, tokens });
    }
    Some(all)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_gateways_with_two_hundred_callers_each_refresh_once() {
    let authority = Authority::start().await;
    let Some(replicas) = replicas(&authority, 3, Duration::from_secs(10)).await else { return };
    let mut waiting = Vec::new();
    for replica in &replicas {
        for _ in 0..200 {
            let grant = replica.client().grant.clone();
            waiting.push(tokio::spawn(async move { grant.access_token().await }));
        }
    }
    for waiter in waiting {
        let token = waiter.await.expect("no panic").expect("a token");
        assert_eq!(token.secret().expose(), "access-canary-1");
    }
    assert_eq!(authority.calls(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_server_hangs_on_one_gateway_no_other_spends_the_same_token() {
    let authority = Authority::start().await;
    let Some(replicas) = replicas(&authority, 2, Duration::from_secs(10)).await else { return };
    let gate = Arc::new(Gate::default());
    authority.script(Act::HoldAfter(gate.clone()));
    let [first, second] = [replicas[0].client(), replicas[1].client()];
    let holding = tokio::spawn(async move { first.grant.access_token().await });
    gate.arrived().await;
    let waiting = tokio::spawn(async move { second.grant.access_token().await });
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(authority.calls(), 1, "the second waits for the lease");
    gate.go.notify_one();
    for one in [holding, waiting] {
        assert_eq!(one.await.expect("no panic").expect("a token").secret().expose(), "access-canary-1");
    }
    assert_eq!(authority.calls(), 1);
}

#[tokio::test]
async fn a_holder_that_was_away_too_long_is_fenced_off_by_the_generation() {
    let authority = Authority::start().await;
    let Some(replicas) = replicas(&authority, 1, Duration::from_secs(10)).await else { return };
    let store = &replicas[0].store;
    let row = store.grant_of(&replicas[0].client().id).await.expect("there");
    let tokens = |name: &str| NewTokens {
        access: name.into(),
        refresh: Some(format!("refresh of {name}").as_str().into()),
        previous_refresh: None,
        issued_ms: 0,
        lifetime_ms: None,
    };
    let short = Duration::from_millis(1);
    assert!(matches!(
        store.begin_refresh(&row.key, row.generation, "away", short).await,
        Ok(Begin::Started(_))
    ));
    tokio::time::sleep(Duration::from_millis(20)).await;
    let long = Duration::from_secs(60);
    let taken = store.begin_refresh(&row.key, row.generation, "next", long).await.expect("answers");
    assert!(
        matches!(taken, Begin::Started(row) if row.outcome_unknown),
        "the lease had ended, the intent shows"
    );
    assert!(matches!(
        store.begin_refresh(&row.key, row.generation, "third", long).await,
        Ok(Begin::Leased(_))
    ));
    assert!(matches!(
        store.finish_refresh(&row.key, row.generation, &tokens("next")).await,
        Ok(Finish::Stored(_))
    ));
    let late = store.finish_refresh(&row.key, row.generation, &tokens("away")).await.expect("answers");
    let Finish::Moved(now) = late else { panic!("the late one was stored") };
    assert_eq!(now.secrets.expect("opens").access.expect("there").expose(), "next");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_served_while_the_database_is_down_and_followed_when_it_is_back() {
    let Some(url) = postgres::database() else { return };
    let authority = Authority::start().await;
    let key = key();
    let store =
        Store::open(&url, ring(&[&key]), Clock::machine(), MissingStore::Create).await.expect("opens");
    Registry::new(store.clone(), None).add(acme("refresh-canary-0")).await.expect("added");
    let tokens = Tokens::open(store.clone(), Some(authority.endpoint()), RefreshSettings::default())
        .await
        .expect("opens");
    let client = tokens.clients().authenticate(OLD_TOKEN.as_bytes(), "v2").expect("enrolled");
    let token = client.grant.access_token().await.expect("connected");
    let running = tokio::spawn(tokens.clone().run());
    let name = url.split(['/', '?']).nth(3).expect("a name").to_owned();
    let other = postgres::database().expect("it was there a moment ago");
    let operator = sqlx::PgPool::connect(&other).await.expect("connects");
    let closing = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false");
    sqlx::query(sqlx::AssertSqlSafe(closing)).execute(&operator).await.expect("closed");
    let ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1";
    sqlx::query(ending).bind(&name).execute(&operator).await.expect("ended");
    eventually("noticed", || !tokens.health().store).await;
    assert_eq!(client.grant.access_token().await.expect("serves").generation(), token.generation());
    assert!(tokens.clients().authenticate(OLD_TOKEN.as_bytes(), "v2").is_some());
    let opening = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true");
    sqlx::query(sqlx::AssertSqlSafe(opening)).execute(&operator).await.expect("opened");
    eventually("back", || tokens.health().is_ready()).await;
    let late = NewClient {
        name: "late".to_owned(),
        company: None,
        tokens: vec![secret("late-token").into()],
        credentials: Vec::new(),
        flow: Default::default(),
        app: Some(app()),
        refresh_token: None,
    };
    Registry::new(store, None).add(late).await.expect("added");
    eventually("followed again", || tokens.clients().authenticate(b"late-token", "v2").is_some()).await;
    running.abort();
    assert!(tokens.drain(PATIENCE).await, "nothing hangs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_that_takes_longer_than_a_claim_is_left_to_the_gateway_that_does_it() {
    let authority = Authority::start().await;
    let lease = Duration::from_millis(400);
    let Some(replicas) = replicas_with(&authority, 2, Duration::from_secs(10), lease).await else { return };
    let gate = Arc::new(Gate::default());
    authority.script(Act::HoldAfter(gate.clone()));
    let [first, second] = [replicas[0].client(), replicas[1].client()];
    let holding = tokio::spawn(async move { first.grant.access_token().await });
    gate.arrived().await;
    let waiting = tokio::spawn(async move { second.grant.access_token().await });
    // Several claims long.
    tokio::time::sleep(lease * 5).await;
    assert_eq!(authority.calls(), 1, "the claim was renewed");
    gate.go.notify_one();
    for one in [holding, waiting] {
        assert_eq!(one.await.expect("no panic").expect("a token").secret().expose(), "access-canary-1");
    }
    assert_eq!(authority.calls(), 1);
}

#[test]
fn a_refresh_whose_gateway_is_killed_is_taken_over_within_ten_seconds() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
    };
    let (ours, doomed) = (runtime(), runtime());
    ours.block_on(async {
        let authority = Authority::start().await;
        let Some(url) = postgres::database() else { return doomed.shutdown_background() };
        let key = key();
        let open = |url: String, key: switchback_gateway::secret::Secret<String>, endpoint| async move {
            let store = Store::open(&url, ring(&[&key]), Clock::machine(), MissingStore::Create)
                .await
                .expect("opens");
            let tokens = Tokens::open(store.clone(), Some(endpoint), RefreshSettings::default())
                .await
                .expect("serves");
            Replica { store, tokens }
        };
        let store =
            Store::open(&url, ring(&[&key]), Clock::machine(), MissingStore::Create).await.expect("opens");
        Registry::new(store, None).add(acme("refresh-canary-0")).await.expect("added");
        // It dies when the server has its request and has not acted on it.
        let gate = Arc::new(Gate::default());
        authority.script(Act::HoldBefore(gate.clone()));
        let victim =
            doomed.spawn(open(url.clone(), key.clone(), authority.endpoint())).await.expect("no panic");
        let grant = victim.client().grant.clone();
        doomed.spawn(async move { grant.access_token().await });
        gate.arrived().await;
        doomed.shutdown_background();
        let killed = std::time::Instant::now();
        let heir = open(url, key, authority.endpoint()).await;
        let grant = heir.client().grant.clone();
        let token =
            tokio::time::timeout(PATIENCE, grant.access_token()).await.expect("in time").expect("a token");
        assert!(authority.accepts(token.secret().expose()));
        assert!(killed.elapsed() < Duration::from_secs(10), "after {:?}", killed.elapsed());
        drop(victim);
    });
}
