//! The studio: the web pages of the admin port. The README.md of this folder explains how to add a
//! page and its conventions.
//!
//! Decisions to know before editing:
//!
//! - Pages work without JavaScript. The script only requests the same page every two seconds and
//!   replaces the parts that have changed, so that no part is rendered by two implementations.
//! - No code here is on the data path, and the store is read only while a page is open.
//! - All data of clients, services and packs is passed to `maud` as text, which escapes it. No
//!   markup is built in any other way.
//! - Changes are forms. [`Studio::form`] checks all of them: the origin, the session, its CSRF
//!   token, and the role.

mod assets;
mod attention;
mod charts;
mod clients;
mod decisions;
mod differences;
mod editor;
mod edits;
mod fields;
mod history;
mod kept;
mod layout;
mod marks;
mod operations;
mod overview;
mod pack;
mod playground;
mod replicas;
mod requests;
mod route;
mod seen;
mod signin;
mod status;
mod traffic;
mod words;

pub(crate) use layout::bare;

use crate::admin::{AdminParts, AdminResponse, Guard, Role, Visitor, cookie, fits, is_own_form, read_bytes};
use fields::{FormFields, percent_decode};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, StatusCode, Uri, request};
use layout::{Page, Theme};
use maud::html;
use replicas::Replicas;
use seen::{PATIENCE, Snapshot, SnapshotCache};
use std::collections::BTreeSet;
use std::pin::Pin;
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

/// Largest form body. The largest forms are an exchange pasted into the playground and edited files.
const FORM_BYTES_MAX: u64 = 2 << 20;
/// Most transitions, and most other history entries, in one read.
const HISTORY_MAX: u32 = 2_000;
/// The cookie of the colour theme.
const THEME_COOKIE: &str = "switchback_theme";

/// The pages, with the state that they cache between requests.
pub(crate) struct Studio {
    parts: Arc<AdminParts>,
    guard: Arc<Guard>,
    traffic: Traffic,
    replicas: Replicas,
    clients: SnapshotCache<Vec<ClientInfo>>,
    usage: SnapshotCache<Vec<UsageInfo>>,
    summaries: SnapshotCache<Vec<Summary>>,
    current: SnapshotCache<Vec<Summary>>,
    reports: SnapshotCache<Vec<OperationReport>>,
    transitions: SnapshotCache<Vec<Transition>>,
    notes: SnapshotCache<Vec<HistoryRow>>,
    gates: SnapshotCache<Vec<GateView>>,
    events: SnapshotCache<Vec<EventCount>>,
    /// The number of the store's last write; read only to detect whether the store answers.
    store: SnapshotCache<i64>,
}

/// The context of one page request.
pub(crate) struct PageContext<'v> {
    pub(crate) studio: &'v Studio,
    pub(crate) parts: &'v Arc<AdminParts>,
    pub(crate) visitor: Visitor,
    pub(crate) headers: &'v HeaderMap,
    /// Without the query.
    pub(crate) path: &'v str,
    pub(crate) query: FormFields,
    pub(crate) theme: Theme,
    /// Whether the request is an automatic update of an open page.
    pub(crate) is_following: bool,
    /// Unix time in milliseconds.
    pub(crate) now_ms: i64,
    /// Since when the store has not answered; `None` while it does.
    pub(crate) store_away: Option<i64>,
    /// How long a read of the store may take.
    patience: Duration,
}

impl PageContext<'_> {
    /// Returns whether the user may make changes. Otherwise pages have no forms.
    pub(crate) fn may_operate(&self) -> bool {
        self.visitor.role == Role::Operate && self.visitor.session.is_some()
    }

    /// Returns the author of changes for the history: the name that the user entered, else the
    /// token.
    pub(crate) fn who(&self) -> &str {
        let name = self.visitor.session.as_ref().map_or("", |session| &session.name);
        if name.is_empty() { "admin.token (studio)" } else { name }
    }

    /// Returns the version of the pack that a reload form was rendered from.
    pub(crate) fn pack_seen(&self) -> String {
        let board = self.parts.board.load();
        let last = board.pack.last_reload.as_ref().map_or("", |reload| reload.at.as_str());
        format!("{} {last}", board.pack.generation)
    }

    /// Responds to a reload form that was rendered before the last reload.
    async fn second_reload(&self, form: &FormFields) -> AdminResponse {
        let board = self.parts.board.load();
        let now = html! {
            "The pack that serves is " strong { (board.pack.name) } " " code { (board.pack.hash.get(..8).unwrap_or(&board.pack.hash)) }
            @if board.pack.last_reload.as_ref().is_some_and(|reload| reload.error.is_some()) { "; the last reload failed" } "."
        };
        let fresh = [("seen", self.pack_seen())];
        kept::second(self, layout::Tab::Pack, &["reload asked for"], &now, form, &fresh).await
    }

    /// Returns whether other replicas are known.
    pub(crate) fn is_one_of_several(&self) -> bool {
        !self.studio.replicas.others(self.now_ms).is_empty()
    }

    /// Returns how long a page waits for a read of the store.
    pub(crate) fn patience(&self) -> Duration {
        if self.store_away.is_some() { Duration::ZERO } else { self.patience }
    }

    /// Reads uncached data from the store for this page. `None` if it fails or exceeds the time
    /// limit.
    pub(crate) async fn in_time<T: Send + 'static, E: std::fmt::Display + Send + 'static>(
        &self,
        read: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Option<T> {
        if self.store_away.is_some() {
            return None;
        }
        // Spawn a task: a database connection is lost if its statement is cancelled.
        match tokio::time::timeout(PATIENCE, tokio::spawn(read)).await {
            Ok(Ok(Ok(value))) => Some(value),
            Ok(Ok(Err(error))) => {
                tracing::warn!(%error, "the studio cannot read the store; its page says so");
                None
            }
            Ok(Err(_)) | Err(_) => None,
        }
    }

    /// Returns all clients.
    pub(crate) async fn clients(&self) -> Snapshot<Vec<ClientInfo>> {
        let registry = self.parts.registry.clone();
        self.studio.clients.look(self.patience(), async move { registry.list().await }).await
    }

    /// Returns the evidence of each operation in its current period, for the served pack.
    pub(crate) async fn current_summaries(&self) -> Snapshot<Vec<Summary>> {
        let (archive, phases) = (self.parts.archive.clone(), self.parts.phases.clone());
        let read = async move { archive.current(&phases).await };
        self.studio.current.look(self.patience(), read).await
    }

    /// Returns the evidence of each operation in its last period with any, which may be over.
    pub(crate) async fn summaries(&self) -> Snapshot<Vec<Summary>> {
        let (archive, phases) = (self.parts.archive.clone(), self.parts.phases.clone());
        let read = async move { archive.summaries(Some(&phases)).await };
        self.studio.summaries.look(self.patience(), read).await
    }

    /// Returns the report of the current periods. Computed once for all pages, on a blocking
    /// thread, since the bounds are expensive.
    pub(crate) async fn reports(&self) -> Snapshot<Vec<OperationReport>> {
        let (archive, phases) = (self.parts.archive.clone(), self.parts.phases.clone());
        let read = async move {
            let summaries = archive.current(&phases).await.map_err(|error| error.to_string())?;
            let report = move || summaries.iter().map(|one| report_of(&phases, one)).collect();
            spawn_blocking(report).await.map_err(|error| error.to_string())
        };
        self.studio.reports.look(self.patience(), read).await
    }

    /// Returns the last transitions, newest first.
    pub(crate) async fn transitions(&self) -> Snapshot<Vec<Transition>> {
        let phases = self.parts.phases.clone();
        self.studio
            .transitions
            .look(self.patience(), async move { phases.transitions(HISTORY_MAX).await })
            .await
    }

    /// Returns the history entries other than transitions, newest first.
    pub(crate) async fn notes(&self) -> Snapshot<Vec<HistoryRow>> {
        let store = self.parts.store.clone();
        self.studio.notes.look(self.patience(), async move { store.history(HISTORY_MAX).await }).await
    }

    /// Returns the gate's view of the operations that it may move, and their rollouts.
    pub(crate) async fn gates(&self) -> Snapshot<Vec<GateView>> {
        let (phases, archive) = (self.parts.phases.clone(), self.parts.archive.clone());
        let read = async move { gate_views(&phases, &archive).await };
        self.studio.gates.look(self.patience(), read).await
    }

    /// Returns the number of queued and dead events per receiver.
    pub(crate) async fn events(&self) -> Snapshot<Vec<EventCount>> {
        let store = self.parts.store.clone();
        self.studio.events.look(self.patience(), async move { store.event_counts().await }).await
    }

    /// Returns the counted calls of all clients.
    pub(crate) async fn usage(&self) -> Snapshot<Vec<UsageInfo>> {
        let usage = self.parts.usage.clone();
        self.studio.usage.look(self.patience(), async move { usage.list().await }).await
    }

    /// Returns the sides that clients speak.
    pub(crate) fn sides(&self) -> BTreeSet<String> {
        self.parts.phases.list().into_iter().map(|info| info.side).collect()
    }

    /// Returns the URL of this page.
    pub(crate) fn address(&self) -> String {
        let query = self.query.with("", "");
        if query == "?" { self.path.to_owned() } else { format!("{}{query}", self.path) }
    }

    /// Responds to a user who may only read.
    fn needs_operator(&self) -> AdminResponse {
        let words = html! { p { "Sign in with the admin token." } };
        self.page(Page::notice(StatusCode::FORBIDDEN, "Nothing was changed", words))
    }

    fn not_found(&self) -> AdminResponse {
        let words = html! {
            p { "There is no page at " code { (self.path) } "." }
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
    pub(crate) fn new(parts: Arc<AdminParts>, guard: Arc<Guard>) -> Studio {
        let clock = parts.clock.clone();
        Studio {
            traffic: Traffic::new(parts.metrics.clone(), clock.clone()),
            replicas: Replicas::new(clock.unix_ms()),
            clients: SnapshotCache::new(clock.clone()),
            usage: SnapshotCache::new(clock.clone()),
            summaries: SnapshotCache::new(clock.clone()),
            current: SnapshotCache::new(clock.clone()),
            reports: SnapshotCache::new(clock.clone()),
            transitions: SnapshotCache::new(clock.clone()),
            notes: SnapshotCache::new(clock.clone()),
            gates: SnapshotCache::new(clock.clone()),
            events: SnapshotCache::new(clock.clone()),
            store: SnapshotCache::new(clock),
            parts,
            guard,
        }
    }

    /// Samples traffic and exchanges it with other replicas. Never returns.
    pub(crate) async fn watch(&self) {
        tokio::join!(self.traffic.keep(), self.replicas.keep(&self.parts, &self.traffic));
    }

    /// Announces the end of this replica to the others.
    pub(crate) async fn leave(&self) {
        self.replicas.leave(&self.parts, &self.traffic).await;
    }

    /// Marks all cached data as outdated, after a change.
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

    /// Responds to all requests outside the API.
    pub(crate) async fn answer(&self, request: Request<Body>) -> AdminResponse {
        let path = request.uri().path().to_owned();
        // Without a session, since the sign-in page needs them. They contain no data.
        if path.starts_with("/assets/") {
            let asset = assets::at(&path, request.headers());
            return asset
                .unwrap_or_else(|| AdminResponse::error(StatusCode::NOT_FOUND, "there is no such file"));
        }
        match *request.method() {
            Method::GET | Method::HEAD => {
                let (head, _) = request.into_parts();
                Box::pin(self.look(&head, &path)).await
            }
            Method::POST => Box::pin(self.form(request, &path)).await,
            _ => {
                AdminResponse::error(StatusCode::METHOD_NOT_ALLOWED, "this address takes GET, HEAD and POST")
                    .with_header("allow", "GET, HEAD, POST")
            }
        }
    }

    /// Responds to requests of the API that need the data of several pages.
    pub(crate) async fn api(&self, head: &request::Parts) -> AdminResponse {
        status::answer(self, head).await
    }

    async fn visit<'v>(
        &'v self,
        visitor: Visitor,
        headers: &'v HeaderMap,
        uri: &Uri,
        path: &'v str,
    ) -> PageContext<'v> {
        self.visit_for(PATIENCE, visitor, headers, uri, path).await
    }

    async fn visit_for<'v>(
        &'v self,
        patience: Duration,
        visitor: Visitor,
        headers: &'v HeaderMap,
        uri: &Uri,
        path: &'v str,
    ) -> PageContext<'v> {
        let store = self.parts.store.clone();
        let answers = self.store.look(patience, async move { store.change().await }).await;
        PageContext {
            studio: self,
            parts: &self.parts,
            visitor,
            headers,
            path,
            query: FormFields::parse(uri.query().unwrap_or_default()),
            theme: theme(headers),
            is_following: headers.contains_key("x-studio-follow"),
            now_ms: self.parts.clock.unix_ms(),
            store_away: answers.failing_since,
            patience,
        }
    }

    async fn look(&self, head: &request::Parts, path: &str) -> AdminResponse {
        let (headers, uri) = (&head.headers, &head.uri);
        if path == "/login" {
            let to = FormFields::parse(uri.query().unwrap_or_default()).get("to").to_owned();
            let to = fields::own_path(&to);
            return signin::page(StatusCode::OK, theme(headers), to, &FormFields::default(), None);
        }
        let Some(visitor) = self.guard.visitor(headers).await else { return asked_to_sign_in(headers, uri) };
        let visit = self.visit(visitor, headers, uri, path).await;
        let segments: Vec<String> = path.trim_matches('/').split('/').map(percent_decode).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        // Boxed, since the futures of pages are large and debug builds copy them in each caller.
        let page: Pin<Box<dyn Future<Output = AdminResponse> + Send + '_>> = match segments.as_slice() {
            [""] => Box::pin(overview::page(&visit)),
            ["operations", rest @ ..] => Box::pin(operations::look(&visit, rest)),
            ["pack", rest @ ..] => Box::pin(pack::look(&visit, rest)),
            ["history", rest @ ..] => Box::pin(history::look(&visit, rest)),
            ["clients", rest @ ..] => Box::pin(clients::look(&visit, rest)),
            ["differences", rest @ ..] => Box::pin(differences::look(&visit, rest)),
            ["playground", rest @ ..] => Box::pin(playground::look(&visit, rest)),
            ["requests", rest @ ..] => return requests::look(&visit, rest),
            ["editor", rest @ ..] => Box::pin(editor::look(&visit, rest)),
            _ => return visit.not_found(),
        };
        page.await
    }

    /// Checks and executes a form.
    async fn form(&self, request: Request<Body>, path: &str) -> AdminResponse {
        let (headers, uri) = (request.headers().clone(), request.uri().clone());
        let theme = theme(&headers);
        let is_form = headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
        if !is_form {
            return AdminResponse::error(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "pages take forms; programs change things by the API",
            );
        }
        if !is_own_form(&request) {
            return AdminResponse::error(
                StatusCode::FORBIDDEN,
                "forms are taken from the studio's own pages",
            );
        }
        let peer = request.extensions().get::<Peer>().map(|peer| peer.address.ip());
        // The sign-in form repeats the fields of a rejected form under longer names.
        let bytes_max = if path == "/login" { 2 * FORM_BYTES_MAX } else { FORM_BYTES_MAX };
        let body = match read_bytes(request, bytes_max).await {
            Ok(body) => body,
            Err(answer) => return answer,
        };
        let form = FormFields::parse(&String::from_utf8_lossy(&body));
        match path {
            "/login" => return signin::sign_in(self, &headers, peer, theme, &form).await,
            "/theme" => return chosen_theme(&form),
            _ => {}
        }
        let visitor = self.guard.visitor(&headers).await;
        let Some(session) = visitor.as_ref().and_then(|visitor| visitor.session.clone()) else {
            if self.guard.is_open() {
                let words = html! { p { "Set " code { "admin.token" } " in the configuration to make changes here." } };
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
                true => AdminResponse::see("/login").cookie(&self.guard.sign_out_cookie(&headers)),
                false => {
                    let words = html! { p { "This browser forgets the session. The store does not answer, so a copy of its cookie works at other replicas until " code { "admin.session_max" } " is over: sign in again and out again when the store is back." } };
                    let page = Page::notice(
                        StatusCode::SERVICE_UNAVAILABLE,
                        "Signed out on this replica only",
                        words,
                    );
                    visit.page(page).cookie(&self.guard.sign_out_cookie(&headers))
                }
            };
        }
        if !visit.may_operate() {
            let words = html! { p { "You have read access. Sign in with the token of " code { "admin.token" } " to make changes." } };
            return visit.page(Page::notice(StatusCode::FORBIDDEN, "Nothing was changed", words));
        }
        let segments: Vec<String> = path.trim_matches('/').split('/').map(percent_decode).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        if !FORMS.iter().any(|(pattern, _)| fits(pattern, &segments)) {
            return visit.not_found();
        }
        // Before the form is executed, so that its content is preserved.
        if let Some(since) = visit.store_away.filter(|_| needs_store(&segments)) {
            return visit.page(kept::away(&visit, since, &form));
        }
        match segments.as_slice() {
            ["clients", rest @ ..] => clients::form(&visit, rest, &form).await,
            ["pack", rest @ ..] => pack::form(&visit, rest, &form).await,
            ["playground", rest @ ..] => playground::form(&visit, rest, &form).await,
            ["editor", rest @ ..] => editor::form(&visit, rest, &form).await,
            ["operations", rest @ ..] => operations::form(&visit, rest, &form).await,
            ["reload"] => {
                if form.has("seen") && form.get("seen") != visit.pack_seen() {
                    return visit.second_reload(&form).await;
                }
                self.parts.ask_for_reload(visit.who());
                AdminResponse::see(fields::own_path(form.get("to")))
            }
            _ => visit.not_found(),
        }
    }
}

/// The forms that operators may submit, each with the kind of its history entry, as in
/// [`crate::admin::ROUTES`]. Forms that are not listed return 404.
pub const FORMS: [(&str, Option<&str>); 27] = [
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
    ("/operations/{side}/{operation}/start", Some("rollout started")),
    ("/operations/{side}/{operation}/pause", Some("rollout paused")),
    ("/operations/{side}/{operation}/resume", Some("rollout resumed")),
    ("/operations/{side}/{operation}/promote", Some("transition")),
    ("/operations/{side}/{operation}/abort", Some("rollout aborted")),
    ("/playground", None),
    ("/playground/record", Some("recording begun")),
    ("/editor", None),
    ("/editor/check", None),
    ("/editor/complete", None),
    ("/editor/what-if", None),
    ("/editor/patch", None),
    ("/editor/save", Some("mapping saved")),
    ("/editor/record", Some("recording begun")),
    ("/pack/restore", Some("pack restored")),
    ("/reload", Some("reload asked for")),
];

/// Returns whether a form changes the store. Dry runs and reloads do not.
fn needs_store(segments: &[&str]) -> bool {
    matches!(segments, ["clients" | "operations" | "pack", ..])
}

/// Redirects browsers to the sign-in page; other clients get 401.
fn asked_to_sign_in(headers: &HeaderMap, uri: &Uri) -> AdminResponse {
    let is_browser = headers
        .get(ACCEPT)
        .is_some_and(|accept| accept.to_str().is_ok_and(|accept| accept.contains("text/html")));
    // The script of an open page must see the status. A redirect would replace the page by the sign-in
    // form.
    if is_browser && !headers.contains_key("x-studio-follow") {
        let to = uri.path_and_query().map_or("/", |path| path.as_str());
        return AdminResponse::see(&format!("/login?to={}", fields::percent_encode(to)));
    }
    AdminResponse::error(
        StatusCode::UNAUTHORIZED,
        "show a token: `Authorization: Bearer …`; people sign in at /login",
    )
    .with_header("www-authenticate", "Bearer realm=\"switchback admin\"")
}

fn theme(headers: &HeaderMap) -> Theme {
    Theme::from_word(cookie(headers, THEME_COOKIE).unwrap_or_default())
}

fn chosen_theme(form: &FormFields) -> AdminResponse {
    let theme = Theme::from_word(form.get("theme")).word();
    // Not `HttpOnly`: the script reads the cookie to apply a choice at once.
    let cookie = format!("{THEME_COOKIE}={theme}; Path=/; SameSite=Strict; Max-Age=31536000");
    AdminResponse::see(fields::own_path(form.get("to"))).cookie(&cookie)
}
