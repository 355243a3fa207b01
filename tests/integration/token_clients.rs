//! Clients and their old tokens: validity and expiry.

use crate::support::authority::{Act, Authority, app, secret};
use crate::support::tokens::{Gateway, OLD_TOKEN, PATIENCE, acme};
use serde_json::{Value, json};
use std::time::Duration;
use switchback_gateway::store::{Ensured, GrantState, StoreError};
use switchback_gateway::token::{
    NewClient, NewCredential, NewToken, OAuth, RefreshSettings, Registry, RegistryError, Revocation,
    TokenEndpoint, Tokens,
};

fn named(name: &str, token: Option<&str>) -> NewClient {
    NewClient {
        name: name.to_owned(),
        company: None,
        tokens: token.map(|token| secret(token).into()).into_iter().collect(),
        credentials: Vec::new(),
        flow: Default::default(),
        app: None,
        refresh_token: None,
    }
}

#[tokio::test]
async fn a_token_selects_its_client_and_no_other_token_does() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let registry = Registry::new(gateway.store.clone(), None);
    let other = registry
        .add(NewClient { company: Some("42".to_owned()), ..named("other", None) })
        .await
        .expect("added");
    let made = other.token.expect("one was made");
    gateway.tokens.sync().await.expect("the store answers");
    let clients = gateway.tokens.clients();
    assert_eq!(&*clients.authenticate(OLD_TOKEN.as_bytes(), "v2").expect("selects").name, "acme");
    let other = clients.authenticate(made.expose().as_bytes(), "v2").expect("selects");
    assert_eq!((&*other.name, other.company.as_deref()), ("other", Some("42")));
    for stranger in ["", "old-token-canar", "old-token-canary ", "OLD-TOKEN-CANARY"] {
        assert!(clients.authenticate(stranger.as_bytes(), "v2").is_none(), "{stranger:?}");
    }
}

#[tokio::test]
async fn a_rotated_token_lives_through_its_grace_and_no_longer() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let registry = Registry::new(gateway.store.clone(), None);
    let new =
        registry.rotate("acme", NewToken::default(), Some(Duration::from_secs(60))).await.expect("rotated");
    let new = new.token.expect("one was made");
    gateway.tokens.sync().await.expect("the store answers");
    let lets_in = |token: &str| gateway.tokens.clients().authenticate(token.as_bytes(), "v2").is_some();
    assert!(lets_in(OLD_TOKEN) && lets_in(new.expose()));
    assert_eq!(registry.get("acme").await.expect("listed").tokens, 2);
    gateway.clock.advance(Duration::from_secs(60));
    assert!(!lets_in(OLD_TOKEN) && lets_in(new.expose()));
    assert_eq!(gateway.store.sweep().await.expect("swept"), 1);
    registry.rotate("acme", secret("another-token").into(), None).await.expect("rotated");
    gateway.tokens.sync().await.expect("the store answers");
    assert!(!lets_in(new.expose()) && lets_in("another-token"), "without grace at once");
}

#[tokio::test]
async fn a_revoked_client_is_locked_out_and_its_grant_erased() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    client.grant.access_token().await.expect("connected");
    let registry = Registry::new(gateway.store.clone(), None);
    let revoked = registry.revoke("acme").await.expect("revoked").client;
    assert!(revoked.revoked_at.is_some() && revoked.tokens == 0);
    gateway.tokens.sync().await.expect("the store answers");
    assert!(gateway.tokens.clients().authenticate(OLD_TOKEN.as_bytes(), "v2").is_none());
    assert!(client.grant.access_token().await.is_err(), "a request under way gets no further token");
    let secrets = gateway.store.grant_of(&client.id).await.expect("stored").secrets.expect("opens");
    assert!(secrets.access.is_none() && secrets.refresh.is_none() && secrets.app_secret.is_none());
    let again = registry.rotate("acme", NewToken::default(), None).await.expect_err("not brought back");
    assert!(matches!(again, RegistryError::Revoked(_)));
}

#[tokio::test]
async fn the_tokens_of_a_revoked_client_are_revoked_at_the_authorization_server_too() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    let token = client.grant.access_token().await.expect("connected");
    let oauth = OAuth { revocation_url: Some(authority.revocation_url()), ..authority.oauth(PATIENCE) };
    let endpoint = TokenEndpoint::new(oauth).expect("loopback needs no TLS");
    let registry = Registry::new(gateway.store.clone(), Some(endpoint));
    let revoked = registry.revoke("acme").await.expect("revoked");
    assert_eq!(revoked.at_server, Revocation::Revoked);
    let sent = authority.state().revocations.clone();
    let fields = |call: &Value| json!([call["token_type_hint"], call["token"], call["type"], call["by"]]);
    let form = "application/x-www-form-urlencoded";
    assert_eq!(
        sent.iter().map(fields).collect::<Vec<_>>(),
        [
            json!(["refresh_token", "refresh-canary-1", form, "basic"]),
            json!(["access_token", "access-canary-1", form, "basic"])
        ]
    );
    assert!(!authority.accepts(token.secret().expose()));
    assert_eq!(registry.revoke("acme").await.expect("again").at_server, Revocation::NoTokens);
}

#[tokio::test]
async fn a_failure_to_revoke_at_the_authorization_server_undoes_nothing() {
    for (status, body, wanted) in [
        (503, "", "refresh_token: status 503"),
        (400, r#"{"error":"unsupported_token_type"}"#, "refresh_token: status 400 (unsupported_token_type)"),
    ] {
        let authority = Authority::start().await;
        let gateway = Gateway::new(&authority).await;
        gateway.client().grant.access_token().await.expect("connected");
        let oauth = OAuth { revocation_url: Some(authority.revocation_url()), ..authority.oauth(PATIENCE) };
        let endpoint = TokenEndpoint::new(oauth).expect("loopback needs no TLS");
        authority.script(Act::Say(status, "", body));
        let registry = Registry::new(gateway.store.clone(), Some(endpoint));
        let revoked = registry.revoke("acme").await.expect("revoked");
        assert_eq!(revoked.at_server, Revocation::Failed(wanted.to_owned()));
        assert!(revoked.client.revoked_at.is_some());
        gateway.tokens.sync().await.expect("the store answers");
        assert!(gateway.tokens.clients().authenticate(OLD_TOKEN.as_bytes(), "v2").is_none());
    }
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let registry = Registry::new(gateway.store.clone(), Some(authority.endpoint()));
    assert_eq!(registry.revoke("acme").await.expect("revoked").at_server, Revocation::NoEndpoint);
}

#[tokio::test]
async fn a_token_that_has_ended_is_listed_as_such() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    gateway.client().grant.access_token().await.expect("connected");
    let registry = Registry::new(gateway.store.clone(), None);
    let grant = async || registry.get("acme").await.expect("listed").grant;
    assert!(!grant().await.expired && grant().await.warning.is_none());
    gateway.clock.advance(Duration::from_secs(3600));
    assert!(grant().await.expired);
}

#[tokio::test]
async fn a_client_that_left_the_configuration_is_shown_as_such_and_one_that_was_revoked_can_come_back() {
    const TOKEN: &str = "beta-token-1";
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let registry = Registry::new(gateway.store.clone(), None);
    let beta = || {
        let tokens = vec![secret(TOKEN).into()];
        vec![NewClient { name: "beta".to_owned(), tokens, ..acme("refresh-of-beta") }]
    };
    registry.ensure(beta()).await.expect("added");
    let has_left = async |name| registry.get(name).await.expect("stored").left_configuration;
    assert!(!has_left("beta").await);
    registry.ensure(Vec::new()).await.expect("nothing to do");
    assert!(has_left("beta").await && !has_left("acme").await, "the one came from it, the other did not");
    let elsewhere = Registry::new(gateway.store.clone(), None);
    let told = elsewhere.get("beta").await.expect("stored");
    assert!(!told.left_configuration, "nobody here knows what the configuration has");

    registry.revoke("beta").await.expect("revoked");
    gateway.tokens.sync().await.expect("the store answers");
    let is_let_in = || gateway.tokens.clients().authenticate(TOKEN.as_bytes(), "v2").is_some();
    assert!(!is_let_in());
    registry.restore("beta").await.expect("taken back");
    gateway.tokens.sync().await.expect("the store answers");
    assert!(!is_let_in(), "its token was erased");
    assert!(registry.ensure(beta()).await.expect("agrees").is_empty());
    gateway.tokens.sync().await.expect("the store answers");
    assert!(is_let_in(), "the configuration gives it its token again");
    let again = registry.restore("beta").await.expect_err("it is back");
    assert!(matches!(again, RegistryError::NotRevoked(_)));
}

#[tokio::test]
async fn names_and_tokens_belong_to_one_client() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let registry = Registry::new(gateway.store.clone(), None);
    let taken = registry.add(named("acme", None)).await.expect_err("the name is taken");
    assert!(matches!(taken, RegistryError::Store(StoreError::NameTaken(_))), "{taken}");
    let taken = registry.add(named("other", Some(OLD_TOKEN))).await.expect_err("the token is taken");
    assert!(
        matches!(&taken, RegistryError::Store(StoreError::TokenTaken(owner)) if owner == "acme"),
        "{taken}"
    );
    assert!(!taken.to_string().contains("canary"));
    for name in ["", "two words", "name\n", "ümlaut", &"x".repeat(65)] {
        assert!(matches!(registry.add(named(name, None)).await, Err(RegistryError::Name(_))), "{name:?}");
    }
    for token in ["short", "with space in it", "line\nbreak-in-it"] {
        assert!(
            matches!(registry.add(named("x", Some(token))).await, Err(RegistryError::Token)),
            "{token:?}"
        );
    }
    assert_eq!(registry.list().await.expect("listed").len(), 1, "nothing of it was kept");
}

#[tokio::test]
async fn a_restart_with_the_same_configuration_does_not_undo_rotations() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let registry = Registry::new(gateway.store.clone(), None);
    registry.revoke("acme").await.expect("revoked");
    let configured = || {
        vec![NewClient {
            name: "beta".to_owned(),
            tokens: vec![secret("beta-token-1").into()],
            ..acme("refresh-canary-0")
        }]
    };
    registry.ensure(configured()).await.expect("added");
    gateway.tokens.sync().await.expect("the store answers");
    let client = gateway.tokens.clients().by_name("beta").expect("there");
    client.grant.access_token().await.expect("connected");
    let change = gateway.store.change().await.expect("the store answers");
    assert!(registry.ensure(configured()).await.expect("agrees").is_empty());
    assert_eq!(gateway.store.change().await.expect("the store answers"), change, "nothing to write");
    let row = gateway.store.grant_of(&client.id).await.expect("stored");
    let refresh = row.secrets.expect("opens").refresh.expect("stored");
    assert_eq!(refresh.expose(), "refresh-canary-1", "the rotated one stays");
    // Another token and another refresh token in the file are taken over.
    let mut changed = configured();
    changed[0].tokens = vec![secret("beta-token-2").into()];
    changed[0].refresh_token = Some(secret("refresh-by-hand"));
    registry.ensure(changed).await.expect("taken over");
    gateway.tokens.sync().await.expect("the store answers");
    let clients = gateway.tokens.clients();
    assert!(
        clients.authenticate(b"beta-token-1", "v2").is_none()
            && clients.authenticate(b"beta-token-2", "v2").is_some()
    );
    let row = gateway.store.grant_of(&client.id).await.expect("stored");
    assert_eq!(row.secrets.expect("opens").refresh.expect("stored").expose(), "refresh-by-hand");
    let refused = registry.rotate("beta", NewToken::default(), None).await.expect_err("the file decides");
    assert!(matches!(refused, RegistryError::Configured { .. }));
    // A revocation is permanent.
    assert_eq!(
        registry.ensure(vec![acme("refresh-canary-0")]).await.expect("kept"),
        [("acme".to_owned(), Ensured::Revoked)]
    );
}

#[tokio::test]
async fn another_application_revives_a_grant_that_was_refused_for_its_application() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let registry = Registry::new(gateway.store.clone(), None);
    authority.state().active = "refresh-of-beta".to_owned();
    let wrong = switchback_gateway::token::OAuthApp::with_secret(app().id, secret("mistyped"));
    let beta = |app| {
        vec![NewClient {
            name: "beta".to_owned(),
            tokens: vec![secret("beta-token-1").into()],
            app: Some(app),
            ..acme("refresh-of-beta")
        }]
    };
    registry.ensure(beta(wrong)).await.expect("added");
    gateway.tokens.sync().await.expect("the store answers");
    let client = gateway.tokens.clients().by_name("beta").expect("there");
    assert!(client.grant.access_token().await.is_err());
    assert_eq!(client.grant.state(), GrantState::Misconfigured);
    registry.ensure(beta(app())).await.expect("mended");
    gateway.tokens.sync().await.expect("the store answers");
    assert!(client.grant.access_token().await.is_ok());
}

#[tokio::test]
async fn a_running_gateway_sees_what_another_process_changes() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let running = tokio::spawn(gateway.tokens.clone().run());
    let beside = switchback_gateway::store::Store::open(
        &gateway.url,
        crate::support::tokens::ring(&[&gateway.key]),
        gateway.clock.clone(),
        switchback_gateway::store::MissingStore::Refuse,
    )
    .await
    .expect("opens beside the gateway");
    Registry::new(beside, None).add(named("late", Some("late-token"))).await.expect("added");
    let clock = gateway.clock.clone();
    crate::support::tokens::eventually("seen", || {
        clock.advance(Duration::from_secs(1));
        gateway.tokens.clients().authenticate(b"late-token", "v2").is_some()
    })
    .await;
    running.abort();
}

#[tokio::test]
async fn a_second_gateway_on_the_same_file_is_refused_until_the_first_is_gone() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let second =
        Tokens::open(gateway.store.clone(), None, RefreshSettings::default()).await.expect_err("refused");
    assert!(matches!(second, StoreError::AlreadyServed(_)), "{second}");
    let Gateway { store, tokens, .. } = gateway;
    drop(tokens);
    Tokens::open(store, None, RefreshSettings::default()).await.expect("free again");
}

fn of_side(side: &str, token: &str) -> NewToken {
    NewToken { side: Some(side.to_owned()), token: Some(secret(token)) }
}

fn for_side(side: &str, token: &str) -> NewCredential {
    NewCredential { side: side.to_owned(), token: secret(token) }
}

#[tokio::test]
async fn what_the_configuration_no_longer_gives_a_client_ends_and_what_was_given_otherwise_stays() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let registry = Registry::new(gateway.store.clone(), None);
    let beta = |tokens, credentials| vec![NewClient { tokens, credentials, ..named("beta", None) }];
    let both = vec![of_side("v2", "beta-token"), of_side("v3", "beta-token")];
    registry.ensure(beta(both, vec![for_side("v2", "beta-secret")])).await.expect("added");
    registry.rotate("beta", of_side("v1", "by-hand-token"), None).await.expect("bound");
    gateway.tokens.sync().await.expect("the store answers");
    let clients = gateway.tokens.clients();
    let opens =
        |token: &str| ["v1", "v2", "v3"].map(|side| clients.authenticate(token.as_bytes(), side).is_some());
    assert_eq!(opens("beta-token"), [false, true, true], "one token, of two sides");
    assert_eq!(opens("by-hand-token"), [true, false, false]);
    assert!(clients.by_name("beta").expect("there").fixed_token("v2").is_some());
    let refused = registry.set_credential("beta", for_side("v2", "another-secret")).await;
    assert!(matches!(refused, Err(RegistryError::Configured { what: "credential", .. })), "{refused:?}");

    registry.ensure(beta(vec![of_side("v3", "beta-token")], Vec::new())).await.expect("agrees");
    gateway.tokens.sync().await.expect("the store answers");
    assert_eq!(opens("beta-token"), [false, false, true]);
    assert_eq!(opens("by-hand-token"), [true, false, false]);
    assert!(clients.by_name("beta").expect("there").fixed_token("v2").is_none());
    registry.set_credential("beta", for_side("v2", "another-secret")).await.expect("now it is free");
    let change = gateway.store.change().await.expect("the store answers");
    registry.ensure(beta(vec![of_side("v3", "beta-token")], Vec::new())).await.expect("agrees");
    assert_eq!(gateway.store.change().await.expect("the store answers"), change, "nothing to write");
    registry.revoke("beta").await.expect("revoked");
    assert!(gateway.store.client("beta").await.expect("there").credentials.is_empty(), "erased");
}

#[tokio::test]
async fn a_rotation_is_of_one_side() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let registry = Registry::new(gateway.store.clone(), None);
    let tokens = vec![of_side("v2", "beta-token-2"), of_side("v3", "beta-token-3")];
    registry.add(NewClient { tokens, ..named("beta", None) }).await.expect("added");
    let which = registry.rotate("beta", NewToken::default(), None).await.expect_err("of which");
    assert_eq!(which.to_string(), "client beta has tokens for v2 and v3; say for which side");
    registry.rotate("beta", of_side("v3", "beta-token-4"), None).await.expect("rotated");
    gateway.tokens.sync().await.expect("the store answers");
    let opens = |token: &str, side| gateway.tokens.clients().authenticate(token.as_bytes(), side).is_some();
    assert!(opens("beta-token-2", "v2") && opens("beta-token-4", "v3") && !opens("beta-token-3", "v3"));
    let taken =
        registry.add(NewClient { tokens: vec![of_side("v2", "beta-token-4")], ..named("gamma", None) });
    assert!(matches!(taken.await, Err(RegistryError::Store(StoreError::TokenTaken(_)))), "whatever the side");
    for side in ["", "v 2", "v2\n"] {
        let refused = registry.set_credential("beta", for_side(side, "long-enough")).await;
        assert!(matches!(refused, Err(RegistryError::Side(_))), "{side:?}");
    }
}
