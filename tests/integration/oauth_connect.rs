//! Connecting a client: the link, the callback, and attacks on both.

use crate::support::authority::{APP_ID, APP_SECRET, Act, Authority, CALLBACK, Code, app, secret};
use crate::support::dual::{Dual, Upstreams, eventually};
use crate::support::tokens::{Gateway, acme};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use switchback_gateway::store::GrantState;
use switchback_gateway::token::{ConnectError, NewClient, OAuth, Registry, RegistryError, TokenEndpoint};
use switchback_sandbox::{Options, Sandbox};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

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

/// Acts as a person: opens the link, agrees, and is redirected with a code.
fn agree(authority: &Authority, link: &str, code: &str) -> String {
    let parts = query(link);
    let issued = Code { redirect: parts["redirect_uri"].clone(), challenge: parts["code_challenge"].clone() };
    authority.state().codes.insert(code.to_owned(), issued);
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
async fn an_authorization_without_a_refresh_token_is_warned_about_and_links_carry_what_brings_one() {
    let authority = Authority::start().await;
    let (gateway, _) = unconnected(&authority).await;
    let more = [("prompt", "consent"), ("access_type", "offline")];
    let oauth = OAuth {
        authorize_parameters: more.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        ..authority.oauth(Duration::from_secs(10))
    };
    let endpoint = TokenEndpoint::new(oauth).expect("loopback needs no TLS");
    let registry = Registry::new(gateway.store.clone(), Some(endpoint));
    let link = registry.connect("beta", Some(app())).await.expect("a link").url;
    assert!(more.iter().all(|(name, value)| query(&link)[*name] == *value), "{link}");
    authority.script(Act::Instead(vec![("refresh_token", None)]));
    let client = registry.callback(&agree(&authority, &link, "code-1")).await.expect("connected");
    assert_eq!(client.grant.state, GrantState::Active);
    let warning = client.grant.warning.expect("a warning");
    for remedy in ["oauth.authorize_parameters", "prompt: consent", "access_type: offline"] {
        assert!(warning.contains(remedy), "{warning}");
    }
    let link = registry.connect("beta", None).await.expect("a link").url;
    let client = registry.callback(&agree(&authority, &link, "code-2")).await.expect("connected");
    assert_eq!(client.grant.warning, None);
}

/// With the real program: on the page after the callback, in the log and in every list of clients.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_will_end_is_said_to_and_its_token_is_revoked_at_the_server() {
    let authority = Authority::start().await;
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    dual.configure(&service, Upstreams::of(&service), &["administrator"], "");
    let text = std::fs::read_to_string(dual.file()).expect("it was written");
    let text = text.replace(
        &format!("http://{}/oauth/", service.address()),
        &format!("http://{}/oauth/", authority.address),
    );
    let more = format!(
        "oauth: {{ revocation_url: '{}', parameters: {{ audience: us }}, authorize_parameters: {{ prompt: login }}, ",
        authority.revocation_url()
    );
    std::fs::write(dual.file(), text.replace("oauth: { ", &more)).expect("it is written");
    let gateway = dual.start().await;
    // The server does not know the application of the other client. Its refresh must not interfere.
    eventually("the other client was refused", async || authority.calls() == 1).await;

    let beta = json!({"name": "beta", "client_id": APP_ID, "client_secret": APP_SECRET});
    assert_eq!(gateway.admin("POST /api/clients", &beta).await.0, 201);
    let (_, link) = gateway.admin("POST /api/clients/beta/connect", &json!({})).await;
    let link = link["url"].as_str().expect("a link");
    assert_eq!(query(link)["prompt"], "login");
    authority.script(Act::Instead(vec![("refresh_token", None)]));
    let back = agree(&authority, link, "code-1");
    let page = gateway.admin_text(&format!("GET /oauth/callback?{back}"), &Value::Null).await.text();
    assert!(page.contains("Connected for a while only") && page.contains("prompt: consent"), "{page}");
    assert_eq!(authority.state().calls[1]["audience"], "us");
    gateway.program.stderr_until("connected, but the authorization server gave no refresh token");
    let (_, all) = gateway.admin("GET /api/clients", &Value::Null).await;
    let of = |name: &str| all.as_array().and_then(|all| all.iter().find(|one| one["name"] == name)).cloned();
    let warning = of("beta").expect("listed")["grant"]["warning"].clone();
    assert!(warning.as_str().is_some_and(|text| text.contains("access_type: offline")), "{all}");
    assert_eq!(of("administrator").expect("listed")["grant"]["warning"], Value::Null);
    let (_, out, err) = dual.cli(&["client", "list"]).await;
    assert_eq!(
        out.matches("warning: the authorization server gave no refresh token").count(),
        1,
        "{out}{err}"
    );
    for page in ["GET /clients", "GET /clients/beta"] {
        let page = gateway.admin_text(page, &Value::Null).await.text();
        assert!(page.contains("the authorization server gave no refresh token"), "{page}");
    }

    let (_, out, err) = dual.cli(&["client", "revoke", "beta", "--yes"]).await;
    assert!(out.contains("revoked at the authorization server too"), "{out}{err}");
    let revoked = authority.state().revocations.clone();
    assert_eq!(revoked.len(), 1, "{revoked:?}");
    assert!(!authority.accepts(revoked[0]["token"].as_str().expect("a token")), "{revoked:?}");
    let (_, again) = gateway.admin("POST /api/clients/beta/revoke", &json!({})).await;
    assert_eq!(again["at_server"], json!({"result": "no_tokens"}), "{again}");
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
    assert!(matches!(unknown, Err(ConnectError::CodeRefused(refusal)) if refusal.code == "invalid_grant"));
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

#[tokio::test]
async fn a_code_is_worth_nothing_without_the_verifier_of_its_link() {
    let authority = Authority::start().await;
    let (_gateway, registry) = unconnected(&authority).await;
    let link = registry.connect("beta", Some(app())).await.expect("a link").url;
    assert_eq!(query(&link)["code_challenge_method"], "S256");
    let back = agree(&authority, &link, "code-1");
    // An attacker has put the code of another link into this one.
    authority.state().codes.get_mut("code-1").expect("issued").challenge = "another".to_owned();
    let refused = registry.callback(&back).await;
    assert!(matches!(refused, Err(ConnectError::CodeRefused(refusal)) if refusal.code == "invalid_grant"));
}

#[tokio::test]
async fn a_state_that_nobody_gave_out_costs_no_write() {
    let authority = Authority::start().await;
    let (gateway, registry) = unconnected(&authority).await;
    let before = gateway.store.change().await.expect("a number");
    for guess in 0..20 {
        let refused = registry.callback(&format!("code=a&state=guess-{guess}")).await;
        assert!(matches!(refused, Err(ConnectError::State)));
    }
    assert_eq!(gateway.store.change().await.expect("a number"), before);
}

#[tokio::test]
async fn a_callback_without_a_state_counts_for_the_only_link_and_where_that_is_allowed() {
    let authority = Authority::start().await;
    let (gateway, strict) = unconnected(&authority).await;
    let oauth = OAuth { is_state_optional: true, ..authority.oauth(Duration::from_secs(10)) };
    let endpoint = TokenEndpoint::new(oauth).expect("loopback needs no TLS");
    let lenient = Registry::new(gateway.store.clone(), Some(endpoint));
    let stateless = |link: &str, code: &str| {
        agree(&authority, link, code).split_once("&state").expect("both").0.to_owned()
    };
    let first = strict.connect("beta", Some(app())).await.expect("a link").url;
    assert!(matches!(strict.callback(&stateless(&first, "code-1")).await, Err(ConnectError::State)));
    strict.connect("acme", None).await.expect("a second link");
    let ambiguous = lenient.callback(&stateless(&first, "code-1")).await;
    assert!(matches!(ambiguous, Err(ConnectError::State)), "two are pending");
    gateway.clock.advance(Duration::from_secs(600));
    let only = strict.connect("beta", None).await.expect("a link").url;
    let connected = lenient.callback(&stateless(&only, "code-2")).await.expect("the only one");
    assert_eq!((connected.name.as_str(), connected.grant.state), ("beta", GrantState::Active));
    assert!(matches!(lenient.callback("code=code-2").await, Err(ConnectError::State)), "and once");
}

#[tokio::test]
async fn an_answer_that_says_it_is_from_another_server_is_refused() {
    let authority = Authority::start().await;
    let (gateway, _) = unconnected(&authority).await;
    let oauth =
        OAuth { issuer: Some("http://127.0.0.1:1".to_owned()), ..authority.oauth(Duration::from_secs(10)) };
    let endpoint = TokenEndpoint::new(oauth).expect("loopback needs no TLS");
    let registry = Registry::new(gateway.store.clone(), Some(endpoint));
    let link = registry.connect("beta", Some(app())).await.expect("a link").url;
    let back = agree(&authority, &link, "code-1");
    let mixed_up = registry.callback(&format!("{back}&iss=http%3A%2F%2Fevil.example")).await;
    assert!(matches!(mixed_up, Err(ConnectError::OtherIssuer)));
    let link = registry.connect("beta", None).await.expect("a link").url;
    let back = agree(&authority, &link, "code-2");
    registry
        .callback(&format!("{back}&iss=http%3A%2F%2F127.0.0.1%3A1"))
        .await
        .expect("the one that was asked");
    assert_eq!(authority.calls(), 1, "the other code was not shown to anybody");
}

#[tokio::test]
async fn a_refresh_token_is_one_clients_only() {
    let authority = Authority::start().await;
    let (_gateway, registry) = unconnected(&authority).await;
    let second = NewClient {
        name: "second".to_owned(),
        tokens: vec![secret("second-token").into()],
        ..acme("refresh-canary-0")
    };
    let refused = registry.add(second).await.expect_err("acme has it");
    assert_eq!(
        refused.to_string(),
        "client acme was given the same refresh token; each client needs an authorization of its own"
    );
    assert!(registry.get("second").await.is_err(), "nothing is left of it");
}

/// Answers with the metadata of an authorization server with the token endpoint `authority`, and
/// counts.
async fn metadata_of(authority: &Authority) -> (String, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let issuer = format!("http://{}", listener.local_addr().expect("bound"));
    let (asked, token) = (Arc::new(AtomicUsize::new(0)), authority.address);
    let body = json!({
        "issuer": issuer, "authorization_endpoint": format!("http://{token}/oauth/authorize"),
        "token_endpoint": format!("http://{token}/oauth/access_token"),
        "token_endpoint_auth_methods_supported": ["client_secret_post"],
        "authorization_response_iss_parameter_supported": true,
    })
    .to_string();
    let counted = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut head = [0; 2048];
            let read = stream.read(&mut head).await.unwrap_or(0);
            let is_oidc = head[..read].starts_with(b"GET /.well-known/openid-configuration ");
            let (status, body) = if is_oidc { (200, body.as_str()) } else { (404, "") };
            let answer = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (issuer, asked)
}

#[tokio::test]
async fn an_issuer_is_asked_for_its_addresses_once_and_names_itself_in_every_callback() {
    let authority = Authority::start().await;
    let (gateway, _) = unconnected(&authority).await;
    let (issuer, asked) = metadata_of(&authority).await;
    let oauth = OAuth {
        issuer: Some(issuer.clone()),
        authorize_url: None,
        token_url: None,
        ..authority.oauth(Duration::from_secs(10))
    };
    let endpoint = TokenEndpoint::new(oauth).expect("loopback needs no TLS");
    let registry = Registry::new(gateway.store.clone(), Some(endpoint));
    let link = registry.connect("beta", Some(app())).await.expect("a link").url;
    let silent = registry.callback(&agree(&authority, &link, "code-1")).await;
    assert!(matches!(silent, Err(ConnectError::OtherIssuer)), "it says that it always names itself");
    let link = registry.connect("beta", None).await.expect("a link").url;
    let back = format!("{}&iss={}", agree(&authority, &link, "code-2"), issuer.replace(':', "%3A"));
    registry.callback(&back).await.expect("connected");
    assert_eq!(asked.load(Ordering::Relaxed), 2, "at both places, once");
    let call = authority.state().calls[0].clone();
    assert!(call.get("by").is_none(), "the one way that the metadata names: {call}");
}
