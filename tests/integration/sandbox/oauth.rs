//! The authorization server: the page, the codes, the tokens.

use super::Service;
use http::Method;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use std::time::Duration;
use switchback_sandbox::Options;

const REDIRECT: &str = "http%3A%2F%2F127.0.0.1%3A9090%2Foauth%2Fcallback";

fn query(service: &Service, rest: &str) -> String {
    let client = &service.sandbox.credentials().client_id;
    format!(
        "/oauth/authorize?response_type=code&client_id={client}&redirect_uri={REDIRECT}&scope=install_app%20read_agent_profile{rest}"
    )
}

/// The parameters that the person is sent back with.
async fn sent_back(service: &Service, method: Method, path: &str, form: String) -> Vec<(String, String)> {
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let answer = service.send(method, path, &headers, form).await.expect("an answer");
    assert_eq!(answer.status, 302, "{:?}", answer.bytes);
    let location = answer.headers["location"].to_str().expect("ASCII").to_owned();
    let query = location.strip_prefix("http://127.0.0.1:9090/oauth/callback?").expect("the callback");
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').expect("name and value");
        (name.to_owned(), percent_decode_str(value).decode_utf8().expect("UTF-8").into_owned())
    };
    query.split('&').map(pair).collect()
}

fn code_grant(service: &Service, code: &str) -> Value {
    let app = service.sandbox.credentials();
    json!({"grant_type": "authorization_code", "client_id": app.client_id, "client_secret": app.client_secret,
        "redirect_uri": app.redirect_uri, "code": code})
}

fn refresh_grant(service: &Service, token: &str) -> Value {
    let app = service.sandbox.credentials();
    json!({"grant_type": "refresh_token", "client_id": app.client_id, "client_secret": app.client_secret,
        "refresh_token": token})
}

async fn who(service: &Service, token: &str) -> Option<u64> {
    let bearer = format!("Bearer {token}");
    let answer = service.send(Method::GET, "/v3/agents/profile", &[("authorization", &bearer)], "").await;
    answer.expect("an answer").json()["id"].as_u64()
}

#[tokio::test]
async fn a_person_approves_and_the_app_gets_tokens_once() {
    let service = Service::start().await;
    let page =
        service.send(Method::GET, &query(&service, "&state=a%22%3Cb%3E"), &[], "").await.expect("a page");
    let html = String::from_utf8(page.bytes.to_vec()).expect("UTF-8");
    assert_eq!(page.status, 200);
    assert!(html.contains("value=\"a&quot;&lt;b&gt;\""), "the state is escaped: {html}");
    assert!(html.contains("Switchback &amp; Co."));
    assert!(html.contains("install_app") && html.contains("read_agent_profile"));

    let form = query(&service, "&state=a%22%3Cb%3E&login=203&decision=approve");
    let form = form.split_once('?').expect("a query").1.to_owned();
    let back = sent_back(&service, Method::POST, "/oauth/authorize", form).await;
    assert_eq!(back[1], ("state".to_owned(), "a\"<b>".to_owned()));
    let code = &back[0].1;

    let wrong = service.token(json!({"grant_type": "authorization_code"})).await.expect(400);
    assert_eq!(wrong["error"], "invalid_request");
    let mut elsewhere = code_grant(&service, code);
    elsewhere["redirect_uri"] = json!("http://elsewhere.example");
    assert_eq!(service.token(elsewhere).await.expect(400)["error"], "invalid_grant");

    let tokens = service.token(code_grant(&service, code)).await.expect(200);
    assert_eq!((&tokens["token_type"], &tokens["expires_in"]), (&json!("Bearer"), &json!(2_592_000)));
    let access = tokens["access_token"].as_str().expect("a token");
    assert_eq!(who(&service, access).await, Some(203));
    assert_eq!(service.token(code_grant(&service, code)).await.expect(400)["error"], "invalid_grant");
    assert_eq!(who(&service, access).await, None, "a code that comes twice revokes what it gave");
}

#[tokio::test]
async fn a_denial_and_mistakes_of_the_app_go_back_to_it() {
    let service = Service::start().await;
    for (rest, error) in [
        ("&state=1&auto_approve=1", None),
        ("&state=1&scope=everything&auto_approve=1", Some("invalid_scope")),
        ("&state=1&response_type=token&auto_approve=1", Some("unsupported_response_type")),
    ] {
        let back = sent_back(&service, Method::GET, &query(&service, rest), String::new()).await;
        match error {
            None => assert_eq!(back[0].0, "code"),
            Some(error) => assert_eq!(back[0], ("error".to_owned(), error.to_owned())),
        }
        assert_eq!(back[1], ("state".to_owned(), "1".to_owned()));
    }
    let form = query(&service, "&state=1&decision=deny").split_once('?').expect("a query").1.to_owned();
    let back = sent_back(&service, Method::POST, "/oauth/authorize", form).await;
    assert_eq!(back[0], ("error".to_owned(), "access_denied".to_owned()));
}

#[tokio::test]
async fn mistakes_that_could_lead_astray_are_shown_on_the_page() {
    let service = Service::start().await;
    for rest in [
        "&client_id=APP-other&auto_approve=1",
        "&redirect_uri=http://evil.example&auto_approve=1",
        "&login=x&auto_approve=1",
    ] {
        let answer = service.send(Method::GET, &query(&service, rest), &[], "").await.expect("a page");
        assert_eq!(answer.status, 400, "{rest}");
        assert!(!answer.headers.contains_key("location"), "{rest}");
    }
    service.control("PUT", "/oauth", json!({"redirect_uri": "http://gateway.example/cb"})).await;
    let allowed = query(&service, "&redirect_uri=http://gateway.example/cb&auto_approve=1");
    let answer = service.send(Method::GET, &allowed, &[], "").await.expect("an answer");
    assert!(
        answer.headers["location"].to_str().expect("ASCII").starts_with("http://gateway.example/cb?code=")
    );
}

#[tokio::test]
async fn the_token_endpoint_takes_json_only() {
    let service = Service::start().await;
    let form = "grant_type=refresh_token&refresh_token=x&client_id=a&client_secret=b";
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let answer = service.send(Method::POST, "/oauth/access_token", &headers, form).await.expect("an answer");
    assert_eq!(answer.status, 415);
    let json = [("content-type", "application/json; charset=utf-8")];
    let answer = service.send(Method::POST, "/oauth/access_token", &json, form).await.expect("an answer");
    assert_eq!(answer.status, 400);
    let mut grant = refresh_grant(&service, "x");
    grant["client_secret"] = json!("wrong");
    assert_eq!(service.token(grant).await.expect(401)["error"], "invalid_client");
    let mut grant = refresh_grant(&service, "x");
    grant["grant_type"] = json!("password");
    assert_eq!(service.token(grant).await.expect(400)["error"], "unsupported_grant_type");
}

#[tokio::test]
async fn a_refresh_token_that_comes_twice_ends_its_whole_grant() {
    let service = Service::start().await;
    let first = service.account("manager").refresh_token;
    let pair = service.token(refresh_grant(&service, &first)).await.expect(200);
    let (access, second) = (pair["access_token"].as_str().unwrap(), pair["refresh_token"].as_str().unwrap());
    assert_eq!(who(&service, access).await, Some(202));
    assert_eq!(service.token(refresh_grant(&service, &first)).await.expect(400)["error"], "invalid_grant");
    assert_eq!(service.token(refresh_grant(&service, second)).await.expect(400)["error"], "invalid_grant");
    assert_eq!(who(&service, access).await, None);
    assert_eq!(
        who(&service, &service.account("agent").access_token).await,
        Some(203),
        "other grants live on"
    );
}

#[tokio::test]
async fn rotation_and_detection_can_be_switched_off() {
    let options = Options { rotate_refresh: false, ..Options::default() };
    let service = Service::with(options).await;
    let token = service.account("agent").refresh_token;
    for _ in 0..2 {
        let pair = service.token(refresh_grant(&service, &token)).await.expect(200);
        assert_eq!(pair["refresh_token"], json!(token));
    }
    service.control("PUT", "/oauth", json!({"rotate": true, "detect_reuse": false})).await;
    let pair = service.token(refresh_grant(&service, &token)).await.expect(200);
    service.token(refresh_grant(&service, &token)).await.expect(400);
    let second = pair["refresh_token"].as_str().expect("a token");
    service.token(refresh_grant(&service, second)).await.expect(200);
}

#[tokio::test]
async fn tokens_expire_when_the_clock_says_so_and_when_told_to() {
    let options = Options { expires_in: Duration::from_secs(3600), ..Options::default() };
    let service = Service::with(options).await;
    let account = service.account("manager");
    let pair = service.token(refresh_grant(&service, &account.refresh_token)).await.expect(200);
    assert_eq!(pair["expires_in"], 3600);
    let access = pair["access_token"].as_str().expect("a token");
    service.control("POST", "/clock", json!({"advance": 3590})).await;
    assert_eq!(who(&service, access).await, Some(202));
    service.control("POST", "/clock", json!({"advance": 20})).await;
    assert_eq!(who(&service, access).await, None);

    let refresh = pair["refresh_token"].as_str().expect("a token");
    let pair = service.token(refresh_grant(&service, refresh)).await.expect(200);
    let access = pair["access_token"].as_str().expect("a token");
    assert_eq!(who(&service, access).await, Some(202));
    service.control("POST", "/tokens/expire", json!({"token": access})).await;
    assert_eq!(who(&service, access).await, None);
    service.control("POST", "/tokens/revoke", json!({"agent": 202})).await;
    let refresh = pair["refresh_token"].as_str().expect("a token");
    service.token(refresh_grant(&service, refresh)).await.expect(400);
}

#[tokio::test]
async fn tokens_outlive_a_restart_that_has_a_state_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = Options { state_file: Some(folder.path().join("oauth.json")), ..Options::default() };
    let before = Service::with(options.clone()).await;
    let first = before.account("administrator").refresh_token;
    let pair = before.token(refresh_grant(&before, &first)).await.expect(200);
    before.sandbox.stop().await;
    let after = Service::with(options).await;
    assert_eq!(who(&after, pair["access_token"].as_str().expect("a token")).await, Some(201));
    let second = pair["refresh_token"].as_str().expect("a token");
    after.token(refresh_grant(&after, second)).await.expect(200);
    after.token(refresh_grant(&after, &first)).await.expect(400);
}
