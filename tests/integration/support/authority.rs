//! An authorization server for tests: rotates refresh tokens, detects reuse and revokes the family,
//! and misbehaves on request, call by call. It supports HTTP only as far as one POST per connection
//! needs.

use super::tokens::PATIENCE;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use switchback_gateway::secret::Secret;
use switchback_gateway::token::{OAuth, OAuthApp, TokenEndpoint};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub const APP_ID: &str = "APP-11111111-2222-3333-4444-555555555555";
pub const APP_SECRET: &str = "app-secret-canary";
pub const CALLBACK: &str = "http://127.0.0.1:9090/oauth/callback";

/// The reaction to a call.
#[derive(Clone)]
pub enum Act {
    /// Answer as an authorization server does.
    Normally,
    /// Answers with this status, these header lines and this body, without a change.
    Say(u16, &'static str, &'static str),
    /// Never answers, without a change.
    Hang,
    /// Close the connection unread.
    Slam,
    /// Act as ever, then close the connection without a word.
    LoseAnswer,
    /// Signals that the call has arrived, waits for release, then acts and answers.
    HoldBefore(Arc<Gate>),
    /// Acts, signals it, waits for release, then answers.
    HoldAfter(Arc<Gate>),
    /// Act, but leave these out of the answer or put others in.
    Instead(Vec<(&'static str, Option<Value>)>),
}

/// The point at which a call is held.
#[derive(Default)]
pub struct Gate {
    arrived: Notify,
    pub go: Notify,
}

impl Gate {
    /// Waits until the call is held.
    pub async fn arrived(&self) {
        tokio::time::timeout(PATIENCE, self.arrived.notified()).await.expect("the call arrives");
    }
}

pub struct State {
    pub rotates: bool,
    pub detects_reuse: bool,
    /// Accepts the token before the current one, as servers with a grace period do.
    pub grace: bool,
    pub expires_in: Value,
    pub active: String,
    pub spent: Vec<String>,
    pub living: Vec<String>,
    pub codes: HashMap<String, Code>,
    pub script: VecDeque<Act>,
    /// Bodies of the received calls, forms as objects. Client authentication by HTTP Basic is among
    /// their members, with `by: basic`; so is the media type, as `type`.
    pub calls: Vec<Value>,
    /// Bodies of the calls to the revocation endpoint, likewise.
    pub revocations: Vec<Value>,
    issued: u64,
}

/// A code that was given out: for which callback, and with which challenge (RFC 7636).
pub struct Code {
    pub redirect: String,
    pub challenge: String,
}

impl Code {
    fn is_for(&self, redirect: &str, verifier: &str) -> bool {
        use base64::Engine as _;
        use sha2::Digest as _;
        let hash = sha2::Sha256::digest(verifier.as_bytes());
        let shown = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash);
        self.redirect == redirect && self.challenge == shown
    }
}

pub struct Authority {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
    serving: JoinHandle<()>,
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Authority {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let state = Arc::new(Mutex::new(State {
            rotates: true,
            detects_reuse: true,
            grace: false,
            expires_in: json!(3600),
            active: "refresh-canary-0".to_owned(),
            spent: Vec::new(),
            living: Vec::new(),
            codes: HashMap::new(),
            script: VecDeque::new(),
            calls: Vec::new(),
            revocations: Vec::new(),
            issued: 0,
        }));
        let serving = tokio::spawn({
            let state = state.clone();
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, state.clone()));
                }
            }
        });
        Authority { address, state, serving }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while holding it")
    }

    /// Adds reactions for the next calls.
    pub fn script(&self, act: Act) {
        self.state().script.push_back(act);
    }

    pub fn calls(&self) -> usize {
        self.state().calls.len()
    }

    pub fn accepts(&self, access: &str) -> bool {
        self.state().living.iter().any(|living| living == access)
    }

    /// The address of its revocation endpoint.
    pub fn revocation_url(&self) -> reqwest::Url {
        format!("http://{}/oauth/revoke", self.address).parse().expect("a URL")
    }

    pub fn oauth(&self, timeout: Duration) -> OAuth {
        let at = |path: &str| format!("http://{}{path}", self.address).parse().expect("a URL");
        let callback = CALLBACK.parse().expect("a URL");
        OAuth {
            scopes: vec!["install_app".to_owned(), "read_agent_profile".to_owned()],
            timeout,
            ..OAuth::at(at("/oauth/authorize"), at("/oauth/access_token"), callback)
        }
    }

    pub fn endpoint(&self) -> TokenEndpoint {
        self.endpoint_with(Duration::from_secs(10))
    }

    pub fn endpoint_with(&self, timeout: Duration) -> TokenEndpoint {
        TokenEndpoint::new(self.oauth(timeout)).expect("loopback needs no TLS")
    }
}

pub fn app() -> OAuthApp {
    OAuthApp::with_secret(APP_ID.into(), APP_SECRET.into())
}

pub fn secret(text: &str) -> Secret<String> {
    text.into()
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let Some(body) = read_body(&mut stream).await else { return };
    let act = {
        let mut state = state.lock().expect("no test panics while holding it");
        match body["grant_type"] {
            Value::Null => state.revocations.push(body.clone()),
            _ => state.calls.push(body.clone()),
        }
        state.script.pop_front().unwrap_or(Act::Normally)
    };
    let answer =
        |state: &Arc<Mutex<State>>| state.lock().expect("no test panics while holding it").answer(&body);
    let (status, head, text) = match act {
        Act::Normally => plain(answer(&state)),
        Act::Say(status, head, text) => (status, head.to_owned(), text.to_owned()),
        Act::Hang => {
            let _ = stream.read(&mut [0; 1]).await;
            return;
        }
        Act::Slam => return,
        Act::LoseAnswer => {
            answer(&state);
            return;
        }
        Act::HoldBefore(gate) => {
            gate.arrived.notify_one();
            gate.go.notified().await;
            plain(answer(&state))
        }
        Act::HoldAfter(gate) => {
            let answered = answer(&state);
            gate.arrived.notify_one();
            gate.go.notified().await;
            plain(answered)
        }
        Act::Instead(changes) => {
            let (status, mut value) = answer(&state);
            for (name, change) in changes {
                let members = value.as_object_mut().expect("answers are objects");
                match change {
                    None => drop(members.remove(name)),
                    Some(other) => drop(members.insert(name.to_owned(), other)),
                }
            }
            plain((status, value))
        }
    };
    let answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{head}connection: close\r\n\r\n{text}",
        text.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn plain((status, value): (u16, Value)) -> (u16, String, String) {
    (status, "content-type: application/json\r\n".to_owned(), value.to_string())
}

impl State {
    /// RFC 6749 §4.1.3 and §6, with rotation and reuse detection as RFC 9700 §4.14 has them.
    fn answer(&mut self, body: &Value) -> (u16, Value) {
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        if text("client_id") != APP_ID || text("client_secret") != APP_SECRET {
            return (401, json!({ "error": "invalid_client" }));
        }
        match text("grant_type").as_str() {
            "authorization_code" => match self.codes.remove(&text("code")) {
                Some(code) if code.is_for(&text("redirect_uri"), &text("code_verifier")) => {
                    (200, self.issue())
                }
                _ => (400, json!({ "error": "invalid_grant" })),
            },
            "client_credentials" => (200, self.issue_access()),
            "refresh_token" => self.refresh(&text("refresh_token")),
            // RFC 7009: a token that is not known is as good as revoked.
            "" => {
                let token = text("token");
                self.living.retain(|living| *living != token);
                if self.active == token {
                    self.active.clear();
                }
                (200, json!({}))
            }
            _ => (400, json!({ "error": "unsupported_grant_type" })),
        }
    }

    fn refresh(&mut self, token: &str) -> (u16, Value) {
        let in_grace = self.grace && self.spent.last().is_some_and(|last| last == token);
        if token == self.active || in_grace {
            if !self.rotates {
                let mut answer = self.issue_access();
                answer["refresh_token"] = self.active.as_str().into();
                return (200, answer);
            }
            if token == self.active {
                self.spent.push(std::mem::take(&mut self.active));
            }
            return (200, self.issue());
        }
        if self.detects_reuse && self.spent.iter().any(|spent| spent == token) {
            self.active.clear();
            self.living.clear();
        }
        (400, json!({ "error": "invalid_grant", "error_description": "refresh-canary is not valid" }))
    }

    fn issue(&mut self) -> Value {
        let mut answer = self.issue_access();
        self.active = format!("refresh-canary-{}", self.issued);
        answer["refresh_token"] = self.active.as_str().into();
        answer
    }

    fn issue_access(&mut self) -> Value {
        self.issued += 1;
        let access = format!("access-canary-{}", self.issued);
        self.living.push(access.clone());
        json!({ "token_type": "Bearer", "expires_in": self.expires_in, "access_token": access })
    }
}

/// Returns a call as an object, for either form of the body.
fn read_call(head: &str, body: &[u8]) -> Option<Value> {
    let field = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
    };
    let kind = field("content-type").map(|(_, value)| value.trim().to_owned())?;
    let mut call = match kind.as_str() {
        "application/json" => serde_json::from_slice(body).ok()?,
        "application/x-www-form-urlencoded" => form(std::str::from_utf8(body).ok()?),
        other => panic!("a body of type {other}"),
    };
    call["type"] = kind.into();
    if let Some((_, value)) = field("authorization") {
        use base64::Engine as _;
        let encoded = value.trim().strip_prefix("Basic ").expect("no other scheme");
        let both = base64::engine::general_purpose::STANDARD.decode(encoded).expect("base64");
        let both = String::from_utf8(both).expect("ASCII");
        let (id, secret) = both.split_once(':').expect("two halves");
        assert!(call.get("client_secret").is_none(), "one way at a time (RFC 6749, section 2.3)");
        call["client_id"] = form(&format!("id={id}"))["id"].clone();
        call["client_secret"] = form(&format!("secret={secret}"))["secret"].clone();
        call["by"] = "basic".into();
    }
    Some(call)
}

fn form(text: &str) -> Value {
    let mut url: reqwest::Url = "http://localhost/".parse().expect("a URL");
    url.set_query(Some(text));
    url.query_pairs()
        .map(|(name, value)| (name.into_owned(), Value::from(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

async fn read_body(stream: &mut TcpStream) -> Option<Value> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(head_end) = head_end {
            let head = String::from_utf8_lossy(&bytes[..head_end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"))?;
            let length: usize = length.trim().parse().ok()?;
            if bytes.len() >= head_end + 4 + length {
                let is_known = ["/oauth/access_token ", "/oauth/revoke "]
                    .iter()
                    .any(|path| head.starts_with(&format!("post {path}")));
                assert!(is_known, "{head}");
                return read_call(&String::from_utf8_lossy(&bytes[..head_end]), &bytes[head_end + 4..]);
            }
        }
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    }
}
