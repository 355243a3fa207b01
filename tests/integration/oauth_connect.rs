//! Connecting a client: the link, the callback, and everybody who tries to get in between.

use crate::support::authority::{APP_ID, Act, Authority, CALLBACK, app, secret};
use crate::support::tokens::{Gateway, acme};
use serde_json::json;
use std::collections::HashMap;
use std::time::Duration;
use switchback_gateway::store::GrantState;
use switchback_gateway::token::{ConnectError, NewClient, Registry, RegistryError};

async fn unconnected(authority: &Authority) -> (Gateway, Registry) {
    let gateway = Gateway::new(authority).await;
    let registry = Registry::new(gateway.store.clone(), Some(authority.endpoint()));
    let beta = NewClient {
        name: "beta".to_owned(),
        tokens: vec![secret("beta-token").into()],
        credentials: Vec::new(),
        refresh_token: None,
        app: None,
        ..acme("")
    };
    registry.add(beta).await.expect("added");
    (gateway, registry)
}

/// What a person does: opens the link, agrees, and is sent back with a code.
fn agree(authority: &Authority, link: &str, code: &str) -> String {
    let parts = query(link);
    authority.state().codes.insert(code.to_owned(), parts["redirect_uri"].clone());
    format!("code={code}&state={}", parts["state"])
}

fn query(link: &str) -> HashMap<String, String> {
    let url: reqwest::Url = link.parse().expect("a URL");
    url.query_pairs().into_owned().collect()
}

#[tokio::test]
async fn a_link_a_person_and_a_callback_make_a_grant() {
    let authority = Authority::start().await;
    let (gateway, registry) = unconnected(&authority).await;
    let link = registry.connect("beta", Some(app())).await.expect("a link");
    let parts = query(&link.url);
    assert!(link.url.starts_with(&format!("http://{}/oauth/authorize?", authority.address)), "{}", link.url);
    assert_eq!(parts["response_type"], "code");
    assert_eq!(parts["client_id"], APP_ID);
    assert_eq!(parts["redirect_uri"], CALLBACK);
    assert_eq!(parts["scope"], "install_app read_agent_profile");
    assert!(parts["state"].len() >= 43, "256 bits");
    let back = agree(&authority, &link.url, "code-1");
    let client = registry.callback(&back).await.expect("connected");
    assert_eq!((client.name.as_str(), client.grant.state), ("beta", GrantState::Active));
    gateway.tokens.sync().await.expect("the store answers");
    let beta = gateway.tokens.clients().by_name("beta").expect("there");
    assert!(authority.accepts(beta.grant.access_token().await.expect("a token").secret().expose()));
    let sent = authority.state().calls[0].clone();
    assert_eq!(sent["grant_type"], "authorization_code");
    assert_eq!(sent["redirect_uri"], CALLBACK);
    // And the grant refreshes like any other.
    gateway.clock.advance(Duration::from_secs(3600));
    assert!(authority.accepts(beta.grant.access_token().await.expect("a token").secret().expose()));
}

#[tokio::test]
async fn a_callback_counts_once_for_its_client_and_in_time() {
    let authority = Authority::start().await;
    let (gateway, registry) = unconnected(&authority).await;
    let link = registry.connect("beta", Some(app())).await.expect("a link").url;
    let back = agree(&authority, &link, "code-1");
    for forged in ["code=code-1", "code=code-1&state=", "code=code-1&state=guessed"] {
        assert!(matches!(registry.callback(forged).await, Err(ConnectError::State)), "{forged}");
    }
    assert_eq!(authority.calls(), 0, "no code is exchanged for a state that is not ours");
    registry.callback(&back).await.expect("connected");
    assert!(matches!(registry.callback(&back).await, Err(ConnectError::State)), "replayed");
    assert_eq!(authority.calls(), 1);
    let late = agree(&authority, &registry.connect("beta", None).await.expect("a link").url, "code-2");
    gateway.clock.advance(Duration::from_secs(600));
    assert!(matches!(registry.callback(&late).await, Err(ConnectError::State)), "expired");
    let orphan = agree(&authority, &registry.connect("beta", None).await.expect("a link").url, "code-3");
    registry.revoke("beta").await.expect("revoked");
    assert!(matches!(registry.callback(&orphan).await, Err(ConnectError::State)), "the client is gone");
    assert_eq!(authority.calls(), 1);
}

#[tokio::test]
async fn a_refusal_on_the_way_leaves_the_grant_as_it_was() {
    let authority = Authority::start().await;
    let (gateway, registry) = unconnected(&authority).await;
    let connected = gateway.client();
    let before = connected.grant.access_token().await.expect("connected");
    let state = |link: &str| query(link)["state"].clone();
    let link = registry.connect("acme", None).await.expect("a link").url;
    let denied = registry.callback(&format!("error=access_denied&state={}", state(&link))).await;
    assert!(matches!(denied, Err(ConnectError::Denied(code)) if code == "access_denied"));
    let link = registry.connect("acme", None).await.expect("a link").url;
    let nothing = registry.callback(&format!("state={}", state(&link))).await;
    assert!(matches!(nothing, Err(ConnectError::NoCode)));
    let link = registry.connect("acme", None).await.expect("a link").url;
    let unknown = registry.callback(&format!("code=never-issued&state={}", state(&link))).await;
    assert!(matches!(unknown, Err(ConnectError::CodeRefused("invalid_grant"))));
    let link = registry.connect("acme", None).await.expect("a link").url;
    authority.script(Act::Say(500, "", ""));
    let failed = registry.callback(&format!("code=any&state={}", state(&link))).await;
    assert!(matches!(failed, Err(ConnectError::Server(_))));
    let link = registry.connect("acme", None).await.expect("a link").url;
    authority.script(Act::Instead(vec![("access_token", Some(json!("no\nheader")))]));
    let back = agree(&authority, &link, "code-9");
    assert!(matches!(registry.callback(&back).await, Err(ConnectError::Server(_))));
    gateway.tokens.sync().await.expect("the store answers");
    assert_eq!(connected.grant.access_token().await.expect("as before").generation(), before.generation());
}

#[tokio::test]
async fn connecting_again_revives_a_grant_that_needs_it() {
    let authority = Authority::start().await;
    let (gateway, registry) = unconnected(&authority).await;
    let client = gateway.client();
    authority.state().active = "somebody else's".to_owned();
    assert!(client.grant.access_token().await.is_err());
    assert_eq!(client.grant.state(), GrantState::NeedsReconnect);
    let link = registry.connect("acme", None).await.expect("the application is known");
    registry.callback(&agree(&authority, &link.url, "code-1")).await.expect("connected");
    gateway.tokens.sync().await.expect("the store answers");
    assert!(authority.accepts(client.grant.access_token().await.expect("a token").secret().expose()));
    assert!(gateway.tokens.health().needs_reconnect.is_empty());
}

#[tokio::test]
async fn what_is_missing_for_a_link_is_said() {
    let authority = Authority::start().await;
    let (gateway, registry) = unconnected(&authority).await;
    assert!(matches!(registry.connect("beta", None).await, Err(ConnectError::NoApp(name)) if name == "beta"));
    assert!(matches!(
        registry.connect("nobody", None).await,
        Err(ConnectError::Registry(RegistryError::Store(_)))
    ));
    let blind = Registry::new(gateway.store.clone(), None);
    assert!(matches!(blind.connect("beta", Some(app())).await, Err(ConnectError::NoServer)));
}
