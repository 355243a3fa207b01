//! Tests the OAuth side with a third-party authorization server. Needs node;
//! `tests/oauth-peers/run` starts the server and then this.

use crate::support::authority::secret;
use crate::support::tokens::{PATIENCE, acme, eventually, key, ring, sqlite_in};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use switchback_gateway::clock::Clock;
use switchback_gateway::store::{GrantFlow, GrantState, MissingStore, Store};
use switchback_gateway::token::{
    AppCredential, AppKey, NewClient, OAuth, OAuthApp, RefreshSettings, Registry, Revocation, TokenEndpoint,
    Tokens,
};

const CALLBACK: &str = "http://127.0.0.1:9090/oauth/callback";

struct Peer {
    base: String,
    person: String,
}

impl Peer {
    /// Opens the link as a person. Returns the query of the redirect.
    fn authorize(&self, link: &str) -> String {
        let person = Command::new("node").args([&self.person, link, CALLBACK]).output().expect("node runs");
        assert!(person.status.success(), "{}", String::from_utf8_lossy(&person.stderr));
        let back = String::from_utf8(person.stdout).expect("text");
        back.trim().split_once('?').expect("a query").1.to_owned()
    }

    /// Introspects an access token at the server (RFC 7662).
    async fn accepts(&self, token: &str) -> bool {
        let answer: Value = crate::support::http::client()
            .post(format!("{}/token/introspection", self.base))
            .basic_auth("APP-peer", Some("peer-secret"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("token={token}"))
            .send()
            .await
            .expect("answers")
            .json()
            .await
            .expect("JSON");
        answer["active"] == json!(true)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs node and a server of another make: tests/oauth-peers/run"]
async fn connect_refresh_rotation_and_reuse_against_a_foreign_server() {
    let peer = Peer {
        base: std::env::var("SWITCHBACK_PEER").expect("set by tests/oauth-peers/run"),
        person: std::env::var("SWITCHBACK_PEER_PERSON").expect("set by tests/oauth-peers/run"),
    };
    let callback: reqwest::Url = CALLBACK.parse().expect("a URL");
    let endpoint = TokenEndpoint::new(OAuth {
        issuer: Some(peer.base.clone()),
        authorize_url: None,
        token_url: None,
        scopes: ["openid", "install_app", "read_agent_profile"].map(str::to_owned).to_vec(),
        ..OAuth::at(callback.clone(), callback.clone(), callback)
    })
    .expect("loopback needs no TLS");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = sqlite_in(folder.path());
    let store =
        Store::open(&url, ring(&[&key()]), Clock::machine(), MissingStore::Create).await.expect("opens");
    let registry = Registry::new(store.clone(), Some(endpoint.clone()));
    let app = OAuthApp::with_secret(secret("APP-peer"), secret("peer-secret"));
    registry.add(NewClient { app: Some(app), refresh_token: None, ..acme("") }).await.expect("added");

    let query = peer.authorize(&registry.connect("acme", None).await.expect("a link").url);
    let connected = registry.callback(&query).await.expect("the code is taken");
    assert_eq!(connected.grant.state, GrantState::Active);
    assert!(registry.callback(&query).await.is_err(), "a callback counts once");
    let tokens =
        Tokens::open(store.clone(), Some(endpoint), RefreshSettings::default()).await.expect("opens");
    let client = tokens.clients().by_name("acme").expect("there");
    let first = client.grant.access_token().await.expect("a token");
    assert!(peer.accepts(first.secret().expose()).await, "the server knows the token");
    let refresh_token = || async {
        let row = store.grant_of(&client.id).await.expect("there");
        row.secrets.expect("opens").refresh.expect("there")
    };
    let before = refresh_token().await;
    eprintln!("connected: the server accepts the access token");

    let running = tokio::spawn(tokens.clone().run());
    eventually("three refreshes ahead of the end", || client.grant.generation() >= first.generation() + 3)
        .await;
    let later = client.grant.access_token().await.expect("a token");
    assert!(peer.accepts(later.secret().expose()).await, "the server knows the newest token");
    assert_ne!(refresh_token().await.expose(), before.expose(), "the refresh token was rotated");
    eprintln!("refreshed by itself: generation {} to {}", first.generation(), later.generation());

    // A spent refresh token is replayed: the server revokes the family, including ours.
    let answer = crate::support::http::client()
        .post(format!("{}/token", peer.base))
        .basic_auth("APP-peer", Some("peer-secret"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("grant_type=refresh_token&refresh_token={}", before.expose()))
        .send()
        .await
        .expect("answers");
    assert_eq!(answer.status(), 400);
    eventually("noticed", || client.grant.state() == GrantState::NeedsReconnect).await;
    eprintln!("family revoked: {:?}", registry.get("acme").await.expect("listed").grant);

    let query = peer.authorize(&registry.connect("acme", None).await.expect("a link").url);
    registry.callback(&query).await.expect("connected again");
    eventually("followed", || client.grant.state() == GrantState::Active).await;
    let again = client.grant.access_token().await.expect("a token");
    assert!(peer.accepts(again.secret().expose()).await, "the server knows the new token");
    eprintln!("connected again: generation {}", again.generation());
    running.abort();

    // And by itself, without a person.
    let machine = NewClient {
        name: "machine".to_owned(),
        tokens: vec![secret("machine-token").into()],
        flow: GrantFlow::ClientCredentials,
        app: Some(OAuthApp::with_secret(secret("APP-peer"), secret("peer-secret"))),
        refresh_token: None,
        ..acme("")
    };
    registry.add(machine).await.expect("added");
    tokens.sync().await.expect("the store answers");
    let machine = tokens.clients().by_name("machine").expect("there");
    let token = machine.grant.access_token().await.expect("a token");
    assert!(peer.accepts(token.secret().expose()).await, "the server knows it");
    eprintln!("client credentials: the server accepts the access token");

    // With each kind of private key that the server takes (RFC 7523).
    let keys = std::env::var("SWITCHBACK_PEER_KEYS").unwrap_or_default();
    for key in keys.split_whitespace() {
        let file = format!("tests/integration/support/client_keys/{key}.pem");
        let pem = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("a key");
        let credential = AppKey::new(pem.into(), Some(key.to_owned())).map(AppCredential::Key);
        let signing = NewClient {
            name: key.to_owned(),
            tokens: vec![secret(&format!("token-of-{key}")).into()],
            flow: GrantFlow::ClientCredentials,
            app: Some(OAuthApp { id: secret("APP-key"), credential: credential.expect("a usable key") }),
            refresh_token: None,
            ..acme("")
        };
        registry.add(signing).await.expect("added");
        tokens.sync().await.expect("the store answers");
        let token =
            tokens.clients().by_name(key).expect("there").grant.access_token().await.expect("a token");
        assert!(peer.accepts(token.secret().expose()).await, "{key}: the server knows it");
        let revoked = registry.revoke(key).await.expect("revoked");
        assert_eq!(revoked.at_server, Revocation::Revoked, "{key}");
        assert!(!peer.accepts(token.secret().expose()).await, "{key}: the server has revoked it");
        eprintln!("private_key_jwt: the server accepts {key}");
    }
    tokens.drain(PATIENCE).await;
}
