//! A small client for a sandbox of one's own: calls by side and role, JSON in and out.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use switchback_sandbox::{Account, Options, Sandbox};

/// A running sandbox and a client of it.
pub struct Service {
    pub sandbox: Sandbox,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// A complete answer.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Answer {
    /// The body as JSON; null for an empty one.
    pub fn json(&self) -> Value {
        if self.bytes.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error} in {:?}", self.bytes))
    }

    /// The body, after making sure of the status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:?}", self.bytes);
        self.json()
    }
}

impl Service {
    pub async fn start() -> Service {
        Service::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Service {
        let sandbox = Sandbox::start(options).await.expect("a loopback address and a fresh state");
        Service { sandbox, client: Client::builder(TokioExecutor::new()).build_http() }
    }

    pub fn account(&self, role: &str) -> Account {
        self.sandbox.credentials().account(role).expect("a role that has an account").clone()
    }

    /// Sends a request as it is given; an error is that of the connection.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, String> {
        self.send_to(&format!("http://{}{path}", self.sandbox.address()), method, headers, body).await
    }

    /// The same to any address.
    pub async fn send_to(
        &self,
        address: &str,
        method: Method,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, String> {
        let mut request = Request::builder().method(method).uri(address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).map_err(|error| error.to_string())?;
        let response = self.client.request(request).await.map_err(|error| format!("{error:?}"))?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(|error| format!("{error:?}"))?.to_bytes();
        Ok(Answer { status: parts.status, headers: parts.headers, bytes })
    }

    async fn json(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let method = method.parse().expect("a method");
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.send(method, path, headers, body).await.expect("an answer")
    }

    /// A v3 call of the administrator; `body` is null for none.
    pub async fn v3(&self, method: &str, path: &str, body: Value) -> Answer {
        self.v3_as("administrator", method, path, body).await
    }

    /// A v3 call of a role.
    pub async fn v3_as(&self, role: &str, method: &str, path: &str, body: Value) -> Answer {
        let bearer = format!("Bearer {}", self.account(role).access_token);
        self.json(method, &format!("/v3{path}"), &[("authorization", &bearer)], &body).await
    }

    /// A v2 call of the administrator.
    pub async fn v2(&self, method: &str, path: &str, body: Value) -> Answer {
        self.v2_in("en", method, path, body).await
    }

    /// A v2 call of the administrator, in a language.
    pub async fn v2_in(&self, language: &str, method: &str, path: &str, body: Value) -> Answer {
        let bearer = format!("Bearer {}", self.account("administrator").v2_token);
        let headers = [("x-authorization", bearer.as_str()), ("accept-language", language)];
        self.json(method, &format!("/v2{path}"), &headers, &body).await
    }

    /// A control call, which must succeed.
    pub async fn control(&self, method: &str, path: &str, body: Value) -> Value {
        let answer = self.json(method, &format!("/_sandbox{path}"), &[], &body).await;
        assert!(answer.status.is_success(), "{method} {path}: {:?}", answer.bytes);
        answer.json()
    }

    /// Calls the token endpoint.
    pub async fn token(&self, body: Value) -> Answer {
        self.json("POST", "/oauth/access_token", &[("content-type", "application/json")], &body).await
    }

    /// Returns the answer to `GET /v3{path}`.
    pub async fn read(&self, path: &str) -> Value {
        self.v3("GET", path, Value::Null).await.expect(200)
    }
}
