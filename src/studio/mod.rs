//! The studio: the pages of the admin port, for the people of a migration. README.md beside this file says how a page is
//! added, and what a page may rely on.
//!
//! Decisions to know before editing:
//!
//! - Pages are whole without a script. The script only asks for the same page every two seconds and takes over what has
//!   changed, so that no place of a page is drawn twice in two languages.
//! - Nothing here is on the way of a request of a client, and nothing is read from the store while nobody looks.
//! - All that comes from clients, services and packs is text to `maud`, which escapes it. Nothing here makes markup of
//!   texts by any other way.
//! - Changes are forms. Each is checked in one place ([`Studio::form`]): it comes from a page of ours, from a session, with
//!   that session's token, from somebody who may.

mod assets;
mod attention;
mod charts;
mod clients;
mod differences;
mod fields;
mod history;
mod kept;
mod layout;
mod operations;
mod overview;
mod pack;
mod playground;
mod replicas;
mod route;
mod seen;
mod signin;
mod traffic;
mod words;

pub(crate) use layout::bare;

use crate::admin::{Answer, Guard, Parts, Role, Visitor, cookie, fits, is_own_form, read_bytes};
use fields::{Fields, decoded};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, StatusCode, Uri, request};
use layout::{Page, Theme};
use maud::html;
use replicas::Replicas;
use seen::{PATIENCE, Readings, Seen};
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::diff::{OperationReport, Summary, report_one};
use switchback_gateway::body::Body;
use switchback_gateway::retire::UsageInfo;
use switchback_gateway::server::Peer;
use switchback_gateway::shadow::{GateView, Phases, Transition, gate_views};
use switchback_gateway::store::{EventCount, HistoryRow};
use switchback_gateway::token::ClientInfo;
use tokio::task::spawn_blocking;
use traffic::Traffic;

/// Most bytes of a form: an exchange pasted into the playground is the largest thing that anybody sends.
const FORM_BYTES_MAX: u64 = 2 << 20;
/// Transitions, and things that happened beside them, that are read at once.
const HISTORY_MAX: u32 = 2_000;
/// The cookie of the colours.
const THEME_COOKIE: &str = "switchback_theme";

/// The pages, with what they keep between two requests.
pub(crate) struct Studio {
    parts: Arc<Parts>,
    guard: Arc<Guard>,
    traffic: Traffic,
    replicas: Replicas,
    clients: Readings<Vec<ClientInfo>>,
    usage: Readings<Vec<UsageInfo>>,
    summaries: Readings<Vec<Summary>>,
    current: Readings<Vec<Summary>>,
    reports: Readings<Vec<OperationReport>>,
    transitions: Readings<Vec<Transition>>,
    notes: Readings<Vec<HistoryRow>>,
    gates: Readings<Vec<GateView>>,
    events: Readings<Vec<EventCount>>,
    /// The number of the store's last write: whether it answers at all.
    store: Readings<i64>,
}

/// One look at a page: what it is made from.
pub(crate) struct Visit<'v> {
    pub(crate) studio: &'v Studio,
    pub(crate) parts: &'v Arc<Parts>,
    pub(crate) visitor: Visitor,
    pub(crate) headers: &'v HeaderMap,
    /// Without the query.
    pub(crate) path: &'v str,
    pub(crate) query: Fields,
    pub(crate) theme: Theme,
    /// Whether a page that is open asks what has changed, and no person.
    pub(crate) is_following: bool,
    /// Wall time in milliseconds since 1970.
    pub(crate) now_ms: i64,
    /// Since when the store has not answered; none while it does.
    pub(crate) store_away: Option<i64>,
}

impl Visit<'_> {
    /// Whether its visitor may change things: without it there are no forms.
    pub(crate) fn may_operate(&self) -> bool {
        self.visitor.role == Role::Operate && self.visitor.session.is_some()
    }

    /// The author of changes, as the history names them: the person's own word, else the token they signed in with.
    pub(crate) fn who(&self) -> &str {
        let name = self.visitor.session.as_ref().map_or("", |session| &session.name);
        if name.is_empty() { "admin.token (studio)" } else { name }
    }

    /// What a form that reloads the pack was made from.
    pub(crate) fn pack_seen(&self) -> String {
        let board = self.parts.board.load();
        let last = board.pack.last_reload.as_ref().map_or("", |reload| reload.at.as_str());
        format!("{} {last}", board.pack.generation)
    }

    /// A reload that was asked for by somebody who has not seen the last one.
    async fn second_reload(&self, form: &Fields) -> Answer {
        let board = self.parts.board.load();
        let now = html! {
            "The pack that serves is " strong { (board.pack.name) } " " code { (board.pack.hash.get(..8).unwrap_or(&board.pack.hash)) }
            @if board.pack.last_reload.as_ref().is_some_and(|reload| reload.error.is_some()) { "; the last reload failed" } "."
        };
        let fresh = [("seen", self.pack_seen())];
        kept::second(self, layout::Tab::Pack, &["reload asked for"], &now, form, &fresh).await
    }

    /// Whether other replicas are known.
    pub(crate) fn is_one_of_several(&self) -> bool {
        !self.studio.replicas.others(self.now_ms).is_empty()
    }

    /// How long a reading of the store is waited for.
    pub(crate) fn patience(&self) -> Duration {
        if self.store_away.is_some() { Duration::ZERO } else { PATIENCE }
    }

    /// What is read from the store for this page alone; none where it does not come in time.
    pub(crate) async fn in_time<T: Send + 'static, E: std::fmt::Display + Send + 'static>(
        &self,
        read: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Option<T> {
        if self.store_away.is_some() {
            return None;
        }
        // A task of its own: a statement that is dropped half-way costs its connection.
        match tokio::time::timeout(PATIENCE, tokio::spawn(read)).await {
            Ok(Ok(Ok(value))) => Some(value),
            Ok(Ok(Err(error))) => {
                tracing::warn!(%error, "the studio cannot read the store; its page says so");
                None
            }
            Ok(Err(_)) | Err(_) => None,
        }
    }

    /// All clients.
    pub(crate) async fn clients(&self) -> Seen<Vec<ClientInfo>> {
        let registry = self.parts.registry.clone();
        self.studio.clients.look(self.patience(), async move { registry.list().await }).await
    }

    /// The counts of each operation in its present period, under the pack that serves.
    pub(crate) async fn current_summaries(&self) -> Seen<Vec<Summary>> {
        let (archive, phases) = (self.parts.archive.clone(), self.parts.phases.clone());
        let read = async move { archive.current(&phases).await };
        self.studio.current.look(self.patience(), read).await
    }

    /// The counts of each operation in the last period in which anything was counted, which may be over.
    pub(crate) async fn summaries(&self) -> Seen<Vec<Summary>> {
        let (archive, phases) = (self.parts.archive.clone(), self.parts.phases.clone());
        let read = async move { archive.summaries(Some(&phases)).await };
        self.studio.summaries.look(self.patience(), read).await
    }

    /// The reports of the present periods. They are made apart and once for all pages, since bounds cost much to work out.
    pub(crate) async fn reports(&self) -> Seen<Vec<OperationReport>> {
        let (archive, phases) = (self.parts.archive.clone(), self.parts.phases.clone());
        let read = async move {
            let summaries = archive.current(&phases).await.map_err(|error| error.to_string())?;
            let report = move || summaries.iter().map(|one| report_of(&phases, one)).collect();
            spawn_blocking(report).await.map_err(|error| error.to_string())
        };
        self.studio.reports.look(self.patience(), read).await
    }

    /// The last transitions, newest first.
    pub(crate) async fn transitions(&self) -> Seen<Vec<Transition>> {
        let phases = self.parts.phases.clone();
        self.studio
            .transitions
            .look(self.patience(), async move { phases.transitions(HISTORY_MAX).await })
            .await
    }

    /// What happened beside transitions, newest first.
    pub(crate) async fn notes(&self) -> Seen<Vec<HistoryRow>> {
        let store = self.parts.store.clone();
        self.studio.notes.look(self.patience(), async move { store.history(HISTORY_MAX).await }).await
    }

    /// What the gate makes of the operations that it is open for.
    pub(crate) async fn gates(&self) -> Seen<Vec<GateView>> {
        let (phases, archive) = (self.parts.phases.clone(), self.parts.archive.clone());
        let (clock, settings) = (self.parts.clock.clone(), self.parts.gate.load_full());
        self.studio
            .gates
            .look(self.patience(), async move { gate_views(&phases, &archive, &clock, &settings).await })
            .await
    }

    /// How many events wait for each receiver, and how many are dead.
    pub(crate) async fn events(&self) -> Seen<Vec<EventCount>> {
        let store = self.parts.store.clone();
        self.studio.events.look(self.patience(), async move { store.event_counts().await }).await
    }

    /// Calls that were counted, of all clients.
    pub(crate) async fn usage(&self) -> Seen<Vec<UsageInfo>> {
        let usage = self.parts.usage.clone();
        self.studio.usage.look(self.patience(), async move { usage.list().await }).await
    }

    /// The address of this page.
    pub(crate) fn address(&self) -> String {
        let query = self.query.with("", "");
        if query == "?" { self.path.to_owned() } else { format!("{}{query}", self.path) }
    }

    fn not_found(&self) -> Answer {
        let words = html! {
            p { "There is nothing at " code { (self.path) } "." }
            p { a.button href="/" { "To the overview" } }
        };
        self.page(Page::notice(StatusCode::NOT_FOUND, "Nothing here", words))
    }
}

/// The report of an operation by the threshold that a transition of it is judged by.
fn report_of(phases: &Phases, summary: &Summary) -> OperationReport {
    report_one(summary, phases.threshold(&summary.side, &summary.operation))
}

impl Studio {
    pub(crate) fn new(parts: Arc<Parts>, guard: Arc<Guard>) -> Studio {
        let clock = parts.clock.clone();
        Studio {
            traffic: Traffic::new(parts.metrics.clone(), clock.clone()),
            replicas: Replicas::new(clock.unix_ms()),
            clients: Readings::new(clock.clone()),
            usage: Readings::new(clock.clone()),
            summaries: Readings::new(clock.clone()),
            current: Readings::new(clock.clone()),
            reports: Readings::new(clock.clone()),
            transitions: Readings::new(clock.clone()),
            notes: Readings::new(clock.clone()),
            gates: Readings::new(clock.clone()),
            events: Readings::new(clock.clone()),
            store: Readings::new(clock),
            parts,
            guard,
        }
    }

    /// Watches traffic, and other replicas, for ever.
    pub(crate) async fn watch(&self) {
        tokio::join!(self.traffic.keep(), self.replicas.keep(&self.parts, &self.traffic));
    }

    /// Tells other replicas that this one ends.
    pub(crate) async fn leave(&self) {
        self.replicas.leave(&self.parts, &self.traffic).await;
    }

    /// Something was changed: the next page reads it anew.
    pub(crate) fn outdate(&self) {
        self.clients.outdate();
        self.usage.outdate();
        self.summaries.outdate();
        self.current.outdate();
        self.reports.outdate();
        self.transitions.outdate();
        self.notes.outdate();
        self.gates.outdate();
        self.events.outdate();
    }

    /// Answers a request for anything that is not the API's.
    pub(crate) async fn answer(&self, request: Request<Body>) -> Answer {
        let path = request.uri().path().to_owned();
        if path.starts_with("/assets/") {
            let asset = assets::at(&path, request.headers());
            return asset.unwrap_or_else(|| Answer::error(StatusCode::NOT_FOUND, "there is no such file"));
        }
        match *request.method() {
            Method::GET | Method::HEAD => {
                let (head, _) = request.into_parts();
                self.look(&head, &path).await
            }
            Method::POST => self.form(request, &path).await,
            _ => Answer::error(StatusCode::METHOD_NOT_ALLOWED, "this address takes GET, HEAD and POST")
                .with_header("allow", "GET, HEAD, POST"),
        }
    }

    async fn visit<'v>(
        &'v self,
        visitor: Visitor,
        headers: &'v HeaderMap,
        uri: &Uri,
        path: &'v str,
    ) -> Visit<'v> {
        let store = self.parts.store.clone();
        let answers = self.store.look(PATIENCE, async move { store.change().await }).await;
        Visit {
            studio: self,
            parts: &self.parts,
            visitor,
            headers,
            path,
            query: Fields::read(uri.query().unwrap_or_default()),
            theme: theme(headers),
            is_following: headers.contains_key("x-studio-follow"),
            now_ms: self.parts.clock.unix_ms(),
            store_away: answers.failing_since,
        }
    }

    async fn look(&self, head: &request::Parts, path: &str) -> Answer {
        let (headers, uri) = (&head.headers, &head.uri);
        if path == "/login" {
            let to = Fields::read(uri.query().unwrap_or_default()).get("to").to_owned();
            let to = fields::own_path(&to);
            return signin::page(StatusCode::OK, theme(headers), to, &Fields::default(), None);
        }
        let Some(visitor) = self.guard.visitor(headers).await else { return asked_to_sign_in(headers, uri) };
        let visit = self.visit(visitor, headers, uri, path).await;
        let segments: Vec<String> = path.trim_matches('/').split('/').map(decoded).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            [""] => overview::page(&visit).await,
            ["operations", rest @ ..] => operations::look(&visit, rest).await,
            ["pack", rest @ ..] => pack::look(&visit, rest).await,
            ["history", rest @ ..] => history::look(&visit, rest).await,
            ["clients", rest @ ..] => clients::look(&visit, rest).await,
            ["differences", rest @ ..] => differences::look(&visit, rest).await,
            ["playground", rest @ ..] => playground::look(&visit, rest).await,
            _ => visit.not_found(),
        }
    }

    /// Takes a form, or says why not.
    async fn form(&self, request: Request<Body>, path: &str) -> Answer {
        let (headers, uri) = (request.headers().clone(), request.uri().clone());
        let theme = theme(&headers);
        let is_form = headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
        if !is_form {
            return Answer::error(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "pages take forms; programs change things by the API",
            );
        }
        if !is_own_form(&request) {
            return Answer::error(StatusCode::FORBIDDEN, "forms are taken from the studio's own pages");
        }
        let peer = request.extensions().get::<Peer>().map(|peer| peer.address.ip());
        // What somebody wrote is sent once more while he signs in, with longer names.
        let bytes_max = if path == "/login" { 2 * FORM_BYTES_MAX } else { FORM_BYTES_MAX };
        let body = match read_bytes(request, bytes_max).await {
            Ok(body) => body,
            Err(answer) => return answer,
        };
        let form = Fields::read(&String::from_utf8_lossy(&body));
        match path {
            "/login" => return signin::sign_in(self, &headers, peer, theme, &form).await,
            "/theme" => return chosen_theme(&form),
            _ => {}
        }
        let visitor = self.guard.visitor(&headers).await;
        let Some(session) = visitor.as_ref().and_then(|visitor| visitor.session.clone()) else {
            if self.guard.is_open() {
                let words = html! { p { "Set " code { "admin.token" } " in the configuration to change things here." } };
                let visitor = Visitor { role: Role::Read, session: None };
                let visit = self.visit(visitor, &headers, &uri, path).await;
                return visit.page(Page::notice(StatusCode::FORBIDDEN, "Nothing was changed", words));
            }
            return signin::page(StatusCode::UNAUTHORIZED, theme, path, &form, None);
        };
        let visit = self.visit(visitor.expect("it has a session"), &headers, &uri, path).await;
        if !self.guard.is_form_token(&session, form.get("form_token")) {
            return visit.page(kept::of_another_session(&visit, &form));
        }
        if path == "/logout" {
            return match self.guard.sign_out(&session).await {
                true => Answer::see("/login").cookie(&self.guard.sign_out_cookie(&headers)),
                false => {
                    let words = html! { p { "This browser forgets the session. The store does not answer, so a copy of its cookie works at other replicas until " code { "admin.session_max" } " is over: sign in again and out again when the store is back." } };
                    let page = Page::notice(StatusCode::SERVICE_UNAVAILABLE, "Signed out here only", words);
                    visit.page(page).cookie(&self.guard.sign_out_cookie(&headers))
                }
            };
        }
        if !visit.may_operate() {
            let words = html! { p { "You are signed in to look. Sign in with the token of " code { "admin.token" } " to change things." } };
            return visit.page(Page::notice(StatusCode::FORBIDDEN, "Nothing was changed", words));
        }
        let segments: Vec<String> = path.trim_matches('/').split('/').map(decoded).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        if !FORMS.iter().any(|(pattern, _)| fits(pattern, &segments)) {
            return visit.not_found();
        }
        if let Some(since) = visit.store_away.filter(|_| needs_store(&segments)) {
            return visit.page(kept::away(&visit, since, &form));
        }
        match segments.as_slice() {
            ["clients", rest @ ..] => clients::form(&visit, rest, &form).await,
            ["playground", rest @ ..] => playground::form(&visit, rest, &form).await,
            ["operations", rest @ ..] => operations::form(&visit, rest, &form).await,
            ["reload"] => {
                if form.has("seen") && form.get("seen") != visit.pack_seen() {
                    return visit.second_reload(&form).await;
                }
                self.parts.ask_for_reload(visit.who());
                Answer::see(fields::own_path(form.get("to")))
            }
            _ => visit.not_found(),
        }
    }
}

/// The forms of the pages that operators may send, each with the kind of the entry that it leaves in the history, as
/// [`crate::admin::CALLS`] has them. A form that is not listed is not found.
pub const FORMS: [(&str, Option<&str>); 15] = [
    ("/clients/brownouts", Some("brownout set")),
    ("/clients/brownouts/{id}/remove", Some("brownout removed")),
    ("/clients/{name}/sunset", Some("sunset set")),
    ("/clients/{name}/connect", Some("connect link made")),
    ("/clients/{name}/rotate", Some("token rotated")),
    ("/clients/{name}/retry", Some("refresh requested")),
    ("/clients/{name}/restore", Some("client restored")),
    ("/clients/{name}/revoke", Some("client revoked")),
    ("/operations/{side}/{operation}/move", Some("transition")),
    ("/operations/{side}/{operation}/hold", Some("gate held")),
    ("/operations/{side}/{operation}/release", Some("gate released")),
    ("/playground", None),
    ("/playground/what-if", None),
    ("/playground/record", Some("recording begun")),
    ("/reload", Some("reload asked for")),
];

/// Whether a form changes what is in the store. Requests are tried, and packs reloaded, without it.
fn needs_store(segments: &[&str]) -> bool {
    matches!(segments, ["clients" | "operations", ..])
}

/// A browser is sent to the page that asks for a token; a program is told what to show.
fn asked_to_sign_in(headers: &HeaderMap, uri: &Uri) -> Answer {
    let is_browser = headers
        .get(ACCEPT)
        .is_some_and(|accept| accept.to_str().is_ok_and(|accept| accept.contains("text/html")));
    if is_browser && !headers.contains_key("x-studio-follow") {
        let to = uri.path_and_query().map_or("/", |path| path.as_str());
        return Answer::see(&format!("/login?to={}", fields::encoded(to)));
    }
    Answer::error(
        StatusCode::UNAUTHORIZED,
        "show a token: `Authorization: Bearer …`; people sign in at /login",
    )
    .with_header("www-authenticate", "Bearer realm=\"switchback admin\"")
}

fn theme(headers: &HeaderMap) -> Theme {
    Theme::of(cookie(headers, THEME_COOKIE).unwrap_or_default())
}

fn chosen_theme(form: &Fields) -> Answer {
    let theme = Theme::of(form.get("theme")).word();
    // The script reads it too, so that a choice shows at once.
    let cookie = format!("{THEME_COOKIE}={theme}; Path=/; SameSite=Strict; Max-Age=31536000");
    Answer::see(fields::own_path(form.get("to"))).cookie(&cookie)
}
