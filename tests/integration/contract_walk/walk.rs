//! One running sandbox, called over real sockets, with every answer judged by the contract of the
//! version called.

use super::document::{Answer, Document, Operation};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use std::collections::{BTreeMap, BTreeSet};
use switchback_sandbox::{Options, Sandbox};

/// An id that does not exist in any seed.
pub const NOBODY: &str = "999999999";

/// A complete call of an operation, which a test can modify.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    /// The path between version and operation: empty, or `/companies/{id}`.
    pub prefix: String,
    pub template: String,
    pub variables: BTreeMap<String, String>,
    pub query: String,
    pub token: Option<String>,
    pub language: Option<&'static str>,
    pub body: Option<Vec<u8>>,
}

/// A sandbox, its contracts, and the recorded answers.
pub struct Walk {
    pub sandbox: Sandbox,
    client: Client<HttpConnector, Full<Bytes>>,
    faults: Vec<String>,
    seen: BTreeSet<(String, u16)>,
}

impl Call {
    /// A call of an operation by its examples, with the token of an administrator.
    pub fn example(walk: &Walk, document: &Document, operation: &Operation) -> Call {
        Call {
            method: operation.method.clone(),
            prefix: String::new(),
            template: operation.template.clone(),
            variables: document.path_example(operation),
            query: String::new(),
            token: Some(walk.token(document, "administrator")),
            language: None,
            body: document.body_example(operation).map(|(body, _)| body.to_string().into_bytes()),
        }
    }

    fn target(&self, side: &str) -> String {
        let mut path = self.template.clone();
        for (name, value) in &self.variables {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        let mark = if self.query.is_empty() { "" } else { "?" };
        format!("/{side}{}{path}{mark}{}", self.prefix, self.query)
    }
}

impl Walk {
    /// Starts a small sandbox of the default seed.
    pub async fn start() -> Walk {
        let sandbox = Sandbox::start(Options::default()).await.expect("a sandbox starts on any free port");
        let client = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
        Walk { sandbox, client, faults: Vec::new(), seen: BTreeSet::new() }
    }

    /// The ready token of an account for a version.
    pub fn token(&self, document: &Document, account: &str) -> String {
        let account = self.sandbox.credentials().account(account).expect("accounts are named by their role");
        match document.side {
            "v2" => account.v2_token.clone(),
            _ => account.access_token.clone(),
        }
    }

    /// Calls an operation, judges the answer and records it.
    pub async fn call(&mut self, document: &Document, operation: &Operation, call: &Call) -> Answer {
        let answer = self.send(document, call).await;
        let told = format!("{} {operation} with {}", document.side, call.target(document.side));
        let text = String::from_utf8_lossy(&answer.body).chars().take(300).collect::<String>();
        for fault in document.faults(operation, &answer) {
            self.fault(format!("{told} answered {}: {fault}\n    {text}", answer.status));
        }
        self.seen.insert((format!("{} {operation}", document.side), answer.status.as_u16()));
        answer
    }

    /// The same, and the answer has to be of one of these statuses.
    pub async fn expect(
        &mut self,
        document: &Document,
        operation: &Operation,
        call: &Call,
        statuses: &[u16],
    ) -> Answer {
        let answer = self.call(document, operation, call).await;
        if !statuses.contains(&answer.status.as_u16()) {
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            let target = call.target(document.side);
            self.fault(format!(
                "{} {target} answered {}, not {statuses:?}: {body}",
                call.method, answer.status
            ));
        }
        answer
    }

    /// Sends a call without judging its answer.
    pub async fn send(&self, document: &Document, call: &Call) -> Answer {
        let uri = format!("http://{}{}", self.sandbox.address(), call.target(document.side));
        let mut request = Request::builder().method(call.method.clone()).uri(uri);
        if let Some(token) = &call.token {
            request = request.header(document.token_header(), format!("Bearer {token}"));
        }
        if let Some(language) = call.language {
            request = request.header("accept-language", language);
        }
        if call.body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = Full::from(call.body.clone().unwrap_or_default());
        let request = request.body(body).expect("templates and variables of the contract make an address");
        self.answer(request).await
    }

    /// Sends a control call, which has to succeed.
    pub async fn control(&self, path: &str, body: &str) {
        let uri = format!("http://{}/_sandbox{path}", self.sandbox.address());
        let request = Request::post(uri).header("content-type", "application/json");
        let request = request.body(Full::from(body.to_owned())).expect("control paths are addresses");
        let answer = self.answer(request).await;
        assert!(
            answer.status.is_success(),
            "control {path}: {} {:?}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
    }

    async fn answer(&self, request: Request<Full<Bytes>>) -> Answer {
        let response = self.client.request(request).await.expect("the sandbox answers");
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("answers are whole").to_bytes().to_vec();
        Answer { status: head.status, headers: head.headers, body }
    }

    /// Notes something that is wrong.
    pub fn fault(&mut self, fault: String) {
        self.faults.push(fault);
    }

    /// Returns the violations so far.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Whether an operation was seen to answer a status.
    pub fn has_seen(&self, document: &Document, operation: &Operation, status: u16) -> bool {
        self.seen.contains(&(format!("{} {operation}", document.side), status))
    }

    /// Whether an operation was seen to succeed.
    pub fn has_succeeded(&self, document: &Document, operation: &Operation) -> bool {
        let success = |status: &u16| StatusCode::from_u16(*status).is_ok_and(|status| status.is_success());
        document
            .statuses(operation)
            .iter()
            .filter(|status| success(status))
            .any(|s| self.has_seen(document, operation, *s))
    }

    /// Merges the records of another walk.
    pub fn join(&mut self, other: Walk) {
        self.faults.extend(other.faults);
        self.seen.extend(other.seen);
    }

    /// Fails with everything that was wrong.
    pub fn finish(self) {
        assert!(self.faults.is_empty(), "{} faults:\n  {}", self.faults.len(), self.faults.join("\n  "));
    }
}
