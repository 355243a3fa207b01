//! The activity of clients: each reads and writes its own records, in a mix, at a bounded rate,
//! over both replicas. Their answers are recorded for a comparison with the service's state at the
//! end.

use crate::Args;
use crate::replicas::{Setting, V3_TOKEN};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use switchback_sandbox::Sandbox;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Requests at one time; beyond it a tick passes without one.
const IN_FLIGHT_MAX: usize = 64;

/// An enrolled client with its records.
pub struct Client {
    pub name: &'static str,
    pub agent: i64,
    pub is_modern: bool,
    pub token: String,
    /// Where he is a client of the service itself.
    pub own_token: String,
    pub chat: i64,
    pub contact: i64,
    /// Ids of his company's things lie above or below this.
    is_second: bool,
    /// One edit after another, so that the last one is known.
    editing: tokio::sync::Mutex<()>,
}

/// Things of the second company have ids from here on.
const SECOND_COMPANY: i64 = 10_000_000;

impl Client {
    fn owns(&self, id: i64) -> bool {
        (id >= SECOND_COMPANY) == self.is_second
    }
}

/// A client's knowledge of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Done,
    /// No answer, or one that leaves it open.
    Unknown,
    Refused,
}

/// A write.
#[derive(Clone, Debug)]
pub struct Write {
    pub client: usize,
    pub kind: Kind,
    /// A text that no other write has.
    pub mark: String,
    pub told: Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Message,
    Contact,
    Edit,
}

/// All answers to clients.
pub struct Book {
    pub clients: Vec<Client>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    writes: Vec<Write>,
    statuses: BTreeMap<(String, String), u64>,
    /// Milliseconds.
    times: Vec<f64>,
    wrong: Vec<String>,
    passed_over: u64,
    next: u64,
}

impl Book {
    pub fn new(service: &Sandbox, _setting: &Setting) -> Book {
        let known = service.credentials();
        let client = |(name, is_modern): (&'static str, bool)| {
            let account =
                known.account(if is_modern { "manager" } else { name }).expect("every sandbox has one");
            Client {
                name,
                agent: i64::try_from(account.agent_id).unwrap_or(0),
                is_modern,
                token: if is_modern { V3_TOKEN.to_owned() } else { account.v2_token.clone() },
                own_token: account.v2_token.clone(),
                chat: 0,
                contact: 0,
                is_second: name == "second-company",
                editing: tokio::sync::Mutex::default(),
            }
        };
        let names = [
            ("administrator", false),
            ("manager", false),
            ("agent", false),
            ("second-company", false),
            ("modern", true),
        ];
        Book { clients: names.map(client).into(), inner: Mutex::default() }
    }

    /// Gives each client a chat and a contact of its own; each chat takes messages.
    pub async fn prepare(&mut self, service: &Sandbox, setting: &Setting) -> Result<(), String> {
        let mut taken: Vec<i64> = Vec::new();
        for client in &mut self.clients {
            let chats = own(setting, service.address(), client, "GET", "/chats", None).await?;
            let open = chats.as_array().into_iter().flatten().filter(|chat| chat["closedAt"].is_null());
            let ids: Vec<i64> =
                open.filter_map(|chat| chat["id"].as_i64()).filter(|id| !taken.contains(id)).collect();
            for id in ids {
                let path = format!("/chats/{id}/messages");
                let text = json!({"text": "May I write here?", "isInternal": false});
                if own(setting, service.address(), client, "POST", &path, Some(text)).await.is_ok() {
                    client.chat = id;
                    break;
                }
            }
            let contacts = own(setting, service.address(), client, "GET", "/contacts", None).await?;
            let ids = contacts.as_array().into_iter().flatten().filter_map(|one| number(&one["id"]));
            client.contact = ids.into_iter().find(|id| !taken.contains(id)).unwrap_or(0);
            if client.chat == 0 || client.contact == 0 {
                return Err(format!("{} has no chat or contact of its own", client.name));
            }
            taken.extend([client.chat, client.contact]);
        }
        Ok(())
    }

    pub fn writes(&self) -> Vec<Write> {
        self.inner().writes.clone()
    }

    /// Answers that no client should have got.
    pub fn wrong(&self) -> Vec<String> {
        self.inner().wrong.clone()
    }

    pub fn requests(&self) -> u64 {
        self.inner().statuses.values().sum()
    }

    /// Of each operation, how often which status was answered.
    pub fn statuses(&self) -> BTreeMap<(String, String), u64> {
        self.inner().statuses.clone()
    }

    pub fn passed_over(&self) -> u64 {
        self.inner().passed_over
    }

    /// Half of the requests were answered faster than the first, 99 of 100 faster than the second;
    /// milliseconds.
    pub fn times(&self) -> (f64, f64) {
        let mut times = self.inner().times.clone();
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(0.0);
        (at(0.5), at(0.99))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> u64 {
        let mut inner = self.inner();
        inner.next += 1;
        inner.next
    }
}

/// A number that the service may write as text.
pub fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// Calls the service directly, as a client of v2.
pub async fn own(
    setting: &Setting,
    service: SocketAddr,
    client: &Client,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> Result<Value, String> {
    let method: Method = method.parse().map_err(|_| "a method".to_owned())?;
    let asked = setting.http.request(method, format!("http://{service}/v2{path}"));
    let asked = asked.header("x-authorization", format!("Bearer {}", client.own_token));
    let asked = match body {
        Some(body) => asked.json(&body),
        None => asked,
    };
    let answer = asked.send().await.map_err(|error| error.to_string())?;
    let status = answer.status();
    let text = answer.text().await.map_err(|error| error.to_string())?;
    if !status.is_success() {
        return Err(format!("{path}: {status} {text}"));
    }
    Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
}

/// The service, as the run wants it.
pub async fn prepare(service: &Sandbox, setting: &Setting) -> Result<(), String> {
    let url = format!("http://{}/_sandbox/requests", service.address());
    let told = setting.http.put(url).json(&json!({"keep": 0})).send().await;
    told.map(drop).map_err(|error| error.to_string())
}

/// The load.
pub struct Load {
    setting: Arc<Setting>,
    book: Arc<Book>,
    addresses: [SocketAddr; 2],
    gap: Duration,
    seed: u64,
}

/// A request.
struct Asked {
    client: usize,
    /// As the table of statuses calls it.
    what: &'static str,
    method: Method,
    path: String,
    body: Option<Value>,
    write: Option<(Kind, String)>,
}

impl Load {
    pub fn new(
        args: &Args,
        setting: &Arc<Setting>,
        book: &Arc<Book>,
        addresses: [SocketAddr; 2],
        seed: u64,
    ) -> Load {
        let gap = Duration::from_secs_f64(1.0 / f64::from(args.rate.max(1)));
        Load { setting: Arc::clone(setting), book: Arc::clone(book), addresses, gap, seed }
    }

    /// Sends requests until then, and waits for the last answers.
    pub async fn run(self, until: Instant) {
        let mut dice = fastrand::Rng::with_seed(self.seed);
        let mut ticks = tokio::time::interval(self.gap);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let places = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
        let this = Arc::new(self);
        let mut asking = JoinSet::new();
        while Instant::now() < until {
            ticks.tick().await;
            while asking.try_join_next().is_some() {}
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                this.book.inner().passed_over += 1;
                continue;
            };
            let asked = this.asked(&mut dice);
            let first = dice.usize(..2);
            let this = Arc::clone(&this);
            asking.spawn(async move {
                this.ask(asked, first).await;
                drop(place);
            });
        }
        asking.join_all().await;
    }

    /// Returns the next request.
    fn asked(&self, dice: &mut fastrand::Rng) -> Asked {
        let at = dice.usize(..self.book.clients.len());
        let client = &self.book.clients[at];
        let (chat, contact) = (client.chat, client.contact);
        let front = if client.is_modern { "/v3" } else { "/v2" };
        let read = |what, path: String| Asked {
            client: at,
            what,
            method: Method::GET,
            path: format!("{front}{path}"),
            body: None,
            write: None,
        };
        let mark = format!("soak-{:08x}-{}-{}", self.seed & 0xffff_ffff, client.name, self.book.next());
        let write = |what, kind, method, path: String, body: Value, mark: String| Asked {
            client: at,
            what,
            method,
            path: format!("{front}{path}"),
            body: Some(body),
            write: Some((kind, mark)),
        };
        let canary = &self.setting.canary;
        match dice.u32(..100) {
            0..25 => read("GET contact", format!("/contacts/{contact}")),
            25..35 => read("GET contacts", format!("/contacts?page=0&api_key={canary}")),
            35..45 => read("GET chats", "/chats".to_owned()),
            45..55 => read("GET chat", format!("/chats/{chat}")),
            55..62 => read("GET messages", format!("/chats/{chat}/messages")),
            62..68 => read("GET agents", "/agents".to_owned()),
            68..88 => {
                let body = match client.is_modern {
                    true => json!({"text": format!("{mark} {canary}")}),
                    false => json!({"text": format!("{mark} {canary}"), "isInternal": false}),
                };
                write(
                    "POST message",
                    Kind::Message,
                    Method::POST,
                    format!("/chats/{chat}/messages"),
                    body,
                    mark,
                )
            }
            88..96 if !client.is_modern => {
                let body = json!({"name": "Ana", "phone": "5511988887777", "city": mark});
                write("PUT contact", Kind::Edit, Method::PUT, format!("/contacts/{contact}"), body, mark)
            }
            96.. if !client.is_modern => {
                let phone = format!("55119{:08}", dice.u32(..100_000_000));
                let body = json!({"name": "New", "phone": phone, "email": format!("{mark}@example.test")});
                write("POST contact", Kind::Contact, Method::POST, "/contacts".to_owned(), body, mark)
            }
            _ => read("GET contact", format!("/contacts/{contact}")),
        }
    }

    async fn ask(&self, asked: Asked, first: usize) {
        let client = &self.book.clients[asked.client];
        let _editing = match &asked.write {
            Some((Kind::Edit, _)) => Some(client.editing.lock().await),
            _ => None,
        };
        let began = Instant::now();
        let mut outcome = self.send(&asked, client, self.addresses[first]).await;
        // Without a connection, no request was sent: one of two replicas may be stopping.
        if outcome.as_ref().is_err_and(reqwest::Error::is_connect) {
            outcome = self.send(&asked, client, self.addresses[1 - first]).await;
        }
        let outcome = match outcome {
            Ok(answer) => {
                let status = answer.status();
                answer.text().await.map(|text| (status, text))
            }
            Err(error) => Err(error),
        };
        let took = began.elapsed().as_secs_f64() * 1000.0;
        let status =
            outcome.as_ref().map_or_else(|_| "none".to_owned(), |(status, _)| status.as_str().to_owned());
        let wrong = outcome.as_ref().ok().and_then(|(status, text)| wrong(client, &asked, *status, text));
        let told = match &outcome {
            Ok((status, _)) if status.is_success() => Told::Done,
            Ok((status, _)) if status.is_client_error() => Told::Refused,
            _ => Told::Unknown,
        };
        let mut inner = self.book.inner();
        inner.times.push(took);
        let side = if client.is_modern { "v3" } else { "v2" };
        *inner.statuses.entry((format!("{side} {}", asked.what), status)).or_default() += 1;
        inner.wrong.extend(wrong);
        if let Some((kind, mark)) = asked.write {
            inner.writes.push(Write { client: asked.client, kind, mark, told });
        }
    }

    async fn send(
        &self,
        asked: &Asked,
        client: &Client,
        to: SocketAddr,
    ) -> reqwest::Result<reqwest::Response> {
        let header = if client.is_modern { "authorization" } else { "x-authorization" };
        let request = self.setting.http.request(asked.method.clone(), format!("http://{to}{}", asked.path));
        let request = request.header(header, format!("Bearer {}", client.token));
        match &asked.body {
            Some(body) => request.json(body).send().await,
            None => request.send().await,
        }
    }
}

/// Returns the fault of an answer: a refusal of a valid request, or a record of another company.
fn wrong(client: &Client, asked: &Asked, status: StatusCode, text: &str) -> Option<String> {
    let (name, what, path) = (client.name, asked.what, &asked.path);
    if !(status.is_success() || status.is_server_error()) || status == StatusCode::NOT_IMPLEMENTED {
        return Some(format!(
            "{name}: {what} was answered {status}: {}",
            text.chars().take(200).collect::<String>()
        ));
    }
    if !status.is_success() || asked.method != Method::GET {
        return None;
    }
    let Ok(body) = serde_json::from_str::<Value>(text) else {
        return Some(format!("{name}: the answer to {path} is not JSON"));
    };
    let (is_list, is_of_ids) = (body.is_array(), matches!(what, "GET chats" | "GET contacts"));
    let is_foreign = |one: &Value| number(&one["id"]).is_none_or(|id| !client.owns(id));
    if is_of_ids
        && is_list
        && body.as_array().is_some_and(|list| list.is_empty() || list.iter().any(is_foreign))
    {
        return Some(format!("{name}: crossed: {path} shows what is another company's"));
    }
    let asked_for = match what {
        "GET chat" => Some(client.chat),
        "GET contact" => Some(client.contact),
        _ => None,
    };
    let is_other = asked_for.is_some() && number(&body["id"]) != asked_for;
    is_other.then(|| format!("{name}: crossed: {path} shows {}", body["id"]))
}
