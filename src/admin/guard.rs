//! Access control of the admin port. Programs send a token as a bearer. Browsers sign in with the
//! same token and then send a session cookie (see [`super::session`]), which permits reading the
//! API; with a session, changes are possible only through the studio's forms.

use super::answer::AdminResponse;
use super::session::{Role, Session, SessionPolicy, Sessions, forget_cookie};
use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName, Request, StatusCode, Uri};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_gateway::secret::Secret;
use switchback_gateway::server::Peer;
use switchback_gateway::store::Store;

/// The credential that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessLevel {
    /// No credential: health probes, and the callback, which `state` protects.
    Nothing,
    /// The studio determines the [`Visitor`] itself and redirects others to the sign-in page.
    Visitor,
    /// A token as a bearer or as a Basic password, or a session.
    ToRead,
    /// The operator token as a bearer, and a JSON body.
    ToChange,
}

/// The user of a page.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) role: Role,
    /// `None` for programs that send a token with each request, and if no token is configured.
    /// Neither gets forms.
    pub(crate) session: Option<Session>,
}

pub(crate) enum SignIn {
    As(Session),
    Wrong,
    /// Too many attempts failed.
    Wait,
}

/// Most known sessions that are cached for times when the store does not answer.
const SESSIONS_REMEMBERED_MAX: usize = 1024;
/// Time limit of a session lookup in the store.
const STORE_PATIENCE: Duration = Duration::from_millis(500);

/// Failed tokens from one address before it is locked out.
const FAILURES_MAX: u32 = 10;
/// Duration of the lockout, and of the memory of failures.
const FAILURES_WINDOW: Duration = Duration::from_secs(60);
/// Most addresses with failures; the oldest are dropped first.
const ADDRESSES_MAX: usize = 1024;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

pub(crate) struct Guard {
    /// Replaced as a unit on reload.
    lock: ArcSwap<Lock>,
    clock: Clock,
    failures: Mutex<HashMap<IpAddr, Failures>>,
    store: Store,
    /// Ids of the sessions that were valid at the last lookup or sign-in. They stay valid while the
    /// store does not answer. During that time, signing out takes effect only at this replica,
    /// which removes the id here.
    remembered: Mutex<HashSet<String>>,
}

/// The credentials and host names of the port.
struct Lock {
    /// Hashes of tokens with their roles. Comparing hashes leaks no timing information about the
    /// tokens.
    tokens: Vec<([u8; 32], Role)>,
    sessions: Sessions,
    hosts: Vec<String>,
}

impl Lock {
    fn new(access: &SessionPolicy, hosts: Vec<String>, clock: &Clock) -> Lock {
        let hashed = |token: &Option<Secret<String>>, role| Some((digest(token.as_ref()?.expose()), role));
        let tokens = [hashed(&access.token, Role::Operate), hashed(&access.read_token, Role::Read)];
        let tokens = tokens.into_iter().flatten().collect();
        Lock { tokens, sessions: Sessions::new(access, clock.clone()), hosts }
    }
}

struct Failures {
    count: u32,
    since: Duration,
}

impl Guard {
    pub(crate) fn new(access: &SessionPolicy, hosts: Vec<String>, store: Store, clock: Clock) -> Guard {
        let lock = ArcSwap::from_pointee(Lock::new(access, hosts, &clock));
        Guard { lock, clock, failures: Mutex::default(), store, remembered: Mutex::default() }
    }

    /// Replaces tokens and host names. Sessions signed with other tokens become invalid.
    pub(crate) fn set_access(&self, access: &SessionPolicy, hosts: Vec<String>) {
        self.lock.store(Arc::new(Lock::new(access, hosts, &self.clock)));
    }

    /// Returns whether no token is configured, which is permitted only on loopback.
    pub(crate) fn is_open(&self) -> bool {
        self.lock.load().tokens.is_empty()
    }

    /// Checks whether a request is permitted; the error is the response.
    pub(crate) async fn check(&self, request: &Parts, need: AccessLevel) -> Result<(), AdminResponse> {
        // HTTP/1.0 probes send no host. Browsers always do, so this admits no web page.
        let is_probe = need == AccessLevel::Nothing && host_of(request).is_none();
        if !is_probe && !self.is_our_name(request) {
            return Err(forbidden("this host name is not one of the admin port's; see admin.hosts"));
        }
        let headers = &request.headers;
        match need {
            AccessLevel::Nothing => return Ok(()),
            // Pages check the visitor themselves. A token in the request is still checked, so that
            // failures are counted.
            AccessLevel::Visitor if self.is_open() || !headers.contains_key(AUTHORIZATION) => return Ok(()),
            AccessLevel::Visitor | AccessLevel::ToRead | AccessLevel::ToChange => {}
        }
        if need == AccessLevel::ToChange && is_from_elsewhere(headers) {
            return Err(forbidden("changes are not taken from web pages"));
        }
        if self.is_open() {
            return without_token(need);
        }
        // Check the token before the failures: behind a proxy all clients share one address, and a
        // guessing client must not lock out the others. `ADMIN_TOKEN_CHARS_MIN` rules out tokens
        // short enough to guess.
        let by_token = shown_token(headers, need).and_then(|shown| self.role_of(&shown));
        let role = match by_token {
            // A session permits no change here: browsers attach its cookie to requests by themselves, and
            // the API has no form token that would prove the user's intent.
            None if need != AccessLevel::ToChange => self.session(headers).await.map(|session| session.role),
            role => role,
        };
        match role {
            Some(Role::Read) if need == AccessLevel::ToChange => {
                return Err(forbidden("this token may look and change nothing"));
            }
            Some(_) => return check_content(headers, need),
            None => {}
        }
        let peer = request.extensions.get::<Peer>().map(|peer| peer.address.ip());
        if peer.is_some_and(|peer| self.must_wait(peer)) {
            let answer =
                AdminResponse::error(StatusCode::TOO_MANY_REQUESTS, "too many wrong tokens; wait a minute");
            return Err(answer.with_header("retry-after", "60"));
        }
        // A request without a token is no attempt to guess one.
        if let Some(peer) = peer.filter(|_| headers.contains_key(AUTHORIZATION)) {
            self.count_failure(peer);
        }
        // The studio shows its sign-in page instead of a challenge.
        if need == AccessLevel::Visitor {
            return Ok(());
        }
        let answer =
            AdminResponse::error(StatusCode::UNAUTHORIZED, "show the admin token: `Authorization: Bearer …`");
        let challenge = match need {
            // No Basic for changes: browsers would remember the token and repeat it on later requests.
            AccessLevel::ToChange => "Bearer realm=\"switchback admin\"",
            _ => "Basic realm=\"switchback admin\", charset=\"UTF-8\"",
        };
        Err(answer.with_header("www-authenticate", challenge))
    }

    /// Returns the user of a page. `None`: sign in first.
    pub(crate) async fn visitor(&self, headers: &HeaderMap) -> Option<Visitor> {
        if let Some(session) = self.session(headers).await {
            return Some(Visitor { role: session.role, session: Some(session) });
        }
        let by_token = || shown_token(headers, AccessLevel::ToRead).and_then(|shown| self.role_of(&shown));
        // An open port permits reading only; see `without_token`.
        let role = if self.is_open() { Some(Role::Read) } else { by_token() };
        role.map(|role| Visitor { role, session: None })
    }

    /// Returns the valid session of a request. Verifies the signature first, so that a forged
    /// cookie causes no store lookup.
    async fn session(&self, headers: &HeaderMap) -> Option<Session> {
        let session = self.lock.load().sessions.session_in(headers)?;
        let asked = tokio::time::timeout(STORE_PATIENCE, self.store.has_session(session.id())).await;
        let goes_on = match asked {
            Ok(Ok(is_stored)) => {
                self.remember(&session, is_stored);
                is_stored
            }
            // The signature is valid, but the session may have been signed out: accept only sessions that
            // the store confirmed earlier.
            Ok(Err(_)) | Err(_) => self.seen_sessions().contains(session.id()),
        };
        goes_on.then_some(session)
    }

    fn seen_sessions(&self) -> MutexGuard<'_, HashSet<String>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, session: &Session, goes_on: bool) {
        let mut remembered = self.seen_sessions();
        if !goes_on {
            remembered.remove(session.id());
        } else if !remembered.contains(session.id()) {
            if remembered.len() >= SESSIONS_REMEMBERED_MAX {
                // Dropping all is harmless: they matter only while the store does not answer.
                remembered.clear();
            }
            remembered.insert(session.id().to_owned());
        }
    }

    /// Starts a session for a user with a valid token. If the store does not answer, the session is
    /// valid only in this process, until the store is back.
    pub(crate) async fn sign_in(&self, peer: Option<IpAddr>, token: &str, name: &str) -> SignIn {
        if let Some(role) = self.role_of(token) {
            let session = self.lock.load().sessions.begin(role, name);
            // Before the store: the session is valid here even if the store does not answer.
            self.remember(&session, true);
            let stored = self.store.begin_session(session.id(), session.last_end_ms());
            if !matches!(tokio::time::timeout(STORE_PATIENCE, stored).await, Ok(Ok(()))) {
                tracing::warn!(
                    "the store did not take a session of the studio; it ends when the store answers again"
                );
            }
            return SignIn::As(session);
        }
        if peer.is_some_and(|peer| self.must_wait(peer)) {
            return SignIn::Wait;
        }
        if let Some(peer) = peer {
            self.count_failure(peer);
        }
        SignIn::Wrong
    }

    /// Revokes a session at all replicas. Returns whether the store recorded it.
    pub(crate) async fn sign_out(&self, session: &Session) -> bool {
        // Before the store: if that does not answer, at least this replica rejects the cookie.
        self.remember(session, false);
        let ended = tokio::time::timeout(STORE_PATIENCE, self.store.end_session(session.id())).await;
        matches!(ended, Ok(Ok(())))
    }

    /// Returns the `Set-Cookie` value of a new or renewed session.
    pub(crate) fn session_cookie(&self, session: &Session, headers: &HeaderMap) -> String {
        self.lock.load().sessions.set_cookie(session, is_behind_tls(headers))
    }

    /// Returns the session with a new idle timeout if more than half of it has elapsed.
    pub(crate) fn renew(&self, session: &Session) -> Option<Session> {
        self.lock.load().sessions.renew(session)
    }

    /// Returns the `Set-Cookie` value that deletes the session.
    pub(crate) fn sign_out_cookie(&self, headers: &HeaderMap) -> String {
        forget_cookie(is_behind_tls(headers))
    }

    pub(crate) fn form_token(&self, session: &Session) -> String {
        self.lock.load().sessions.form_token(session)
    }

    /// Returns whether `shown` is the CSRF token of a session.
    pub(crate) fn is_form_token(&self, session: &Session, shown: &str) -> bool {
        self.lock.load().sessions.is_form_token(session, shown)
    }

    fn role_of(&self, shown: &str) -> Option<Role> {
        let shown = digest(shown);
        self.lock.load().tokens.iter().find(|(token, _)| *token == shown).map(|(_, role)| *role)
    }

    /// Returns whether the request's host is an address, `localhost` or a configured name. Prevents
    /// DNS rebinding.
    fn is_our_name(&self, request: &Parts) -> bool {
        let Some(authority) = host_of(request) else { return false };
        // An IPv6 address contains colons, so the brackets delimit it, not the colon of the port.
        let host = match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        };
        // A fully qualified name may have a trailing dot.
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        // Rebinding needs a name with an address that an attacker can change.
        host == "localhost" || host.parse::<IpAddr>().is_ok() || self.lock.load().hosts.contains(&host)
    }

    fn must_wait(&self, peer: IpAddr) -> bool {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.get(&peer).is_some_and(|seen| seen.count >= FAILURES_MAX && self.is_recent(seen))
    }

    fn count_failure(&self, peer: IpAddr) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.retain(|_, seen| self.is_recent(seen));
        // An attacker with many addresses must not make this map grow.
        if failures.len() >= ADDRESSES_MAX
            && let Some(oldest) =
                failures.iter().min_by_key(|(_, seen)| seen.since).map(|(address, _)| *address)
        {
            failures.remove(&oldest);
        }
        // `since` stays the time of the first failure, so that further attempts do not prolong a lockout.
        let seen = failures.entry(peer).or_insert(Failures { count: 0, since: self.clock.elapsed() });
        seen.count += 1;
    }

    fn is_recent(&self, seen: &Failures) -> bool {
        self.clock.elapsed().saturating_sub(seen.since) < FAILURES_WINDOW
    }
}

/// Permits only reading if no token is configured: other users and web pages can reach loopback,
/// too.
fn without_token(need: AccessLevel) -> Result<(), AdminResponse> {
    match need {
        AccessLevel::ToChange => Err(forbidden("set `admin.token` to change things through this port")),
        _ => Ok(()),
    }
}

fn forbidden(error: &str) -> AdminResponse {
    AdminResponse::error(StatusCode::FORBIDDEN, error)
}

fn check_content(headers: &HeaderMap, need: AccessLevel) -> Result<(), AdminResponse> {
    let is_json = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(|kind| {
        kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    });
    match need {
        // A form cannot send JSON, and a script of another origin needs a CORS preflight for it, which
        // this port never grants.
        AccessLevel::ToChange if !is_json => Err(AdminResponse::error(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "changes are sent as application/json",
        )),
        _ => Ok(()),
    }
}

/// Returns whether a page of this origin sent a form. Browsers send the origin of forms; a request
/// without one is not from a browser.
pub(crate) fn is_own_form<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let from_header = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = request.uri().authority().map(|authority| authority.as_str()).or(from_header);
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let site = headers.get(SEC_FETCH_SITE);
    match (origin, host) {
        (Some(origin), Some(host)) => {
            let origin = origin.parse::<Uri>().ok();
            let authority = origin.as_ref().and_then(|origin| origin.authority());
            authority.is_some_and(|authority| {
                without_usual_port(authority.as_str()) == without_usual_port(host)
                    && site.is_none_or(|site| site == "same-origin")
            })
        }
        // Some browsers omit `Origin` for forms of the same origin. Scripts cannot set `Sec-Fetch-Site`.
        (None, _) => site.is_some_and(|site| site == "same-origin"),
        (Some(_), None) => false,
    }
}

/// Removes the default ports: a TLS proxy may or may not include them.
fn without_usual_port(authority: &str) -> String {
    let bare = authority.strip_suffix(":443").or(authority.strip_suffix(":80"));
    bare.unwrap_or(authority).to_ascii_lowercase()
}

/// Returns whether the browser connected by TLS to a proxy. A client that forges the header only
/// affects its own cookie.
pub(crate) fn is_behind_tls(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https")
}

/// Returns whether the browser reports another origin or a page as the initiator.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let is_cross = headers.get(SEC_FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none");
    // Browsers send `Origin` with every POST, also to the same origin. Programs do not.
    is_cross || headers.contains_key(ORIGIN)
}

fn shown_token(headers: &HeaderMap, need: AccessLevel) -> Option<String> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, credential) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(credential.trim().to_owned());
    }
    // Browsers repeat Basic credentials automatically, also on requests initiated by other origins:
    // accept them for reading only.
    if scheme.eq_ignore_ascii_case("basic") && need == AccessLevel::ToRead {
        let decoded = String::from_utf8(STANDARD.decode(credential.trim()).ok()?).ok()?;
        return decoded.split_once(':').map(|(_, password)| password.to_owned());
    }
    None
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Returns the host of a request, from its target or its `Host` field.
fn host_of(request: &Parts) -> Option<&str> {
    let from_field = request.headers.get(HOST).map(|host| host.to_str().unwrap_or_default());
    request.uri.authority().map(|authority| authority.as_str()).or(from_field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_gateway::store::MissingStore;
    use switchback_gateway::store::seal::{KeyRing, SealingKey};
    use tempfile::TempDir;

    const TOKEN: &str = "a-long-admin-token";

    const READ_TOKEN: &str = "a-long-read-token";

    /// Returns a guard with a new store in the folder.
    async fn guard(token: Option<&str>) -> (Guard, TempDir) {
        let (store, folder) = store().await;
        (guard_of(token, store), folder)
    }

    async fn store() -> (Store, TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("switchback.db").display());
        let keys = KeyRing::parse(&[SealingKey::generate()]).expect("a key");
        let store =
            Store::open(&url, keys, Clock::paused_at(0), MissingStore::Create).await.expect("it opens");
        (store, folder)
    }

    fn guard_of(token: Option<&str>, store: Store) -> Guard {
        let access = SessionPolicy {
            token: token.map(Secret::from),
            read_token: token.map(|_| Secret::from(READ_TOKEN)),
            session: Duration::from_secs(100),
            session_max: Duration::from_secs(1000),
            keys: vec![Secret::from("key")],
        };
        let clock = store.clock().clone();
        Guard::new(&access, vec!["admin.example.com".to_owned()], store, clock)
    }

    fn request(headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::new(());
        for (name, value) in headers {
            request
                .headers_mut()
                .insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        request.extensions_mut().insert(Peer { address: "192.0.2.1:1000".parse().unwrap(), is_tls: false });
        request
    }

    async fn status(guard: &Guard, headers: &[(&str, &str)], need: AccessLevel) -> u16 {
        let refusal = guard.check(&request(headers).into_parts().0, need).await.err();
        refusal.map_or(200, |answer| answer.into_response(false).status().as_u16())
    }

    #[tokio::test]
    async fn a_name_of_someone_else_reaches_nothing() {
        let (guard, _folder) = guard(None).await;
        for (host, expected) in [
            ("127.0.0.1:9090", 200),
            ("[::1]:9090", 200),
            ("localhost", 200),
            ("Admin.Example.com.:9090", 200),
            ("evil.example", 403),
            ("127.0.0.1.evil.example:9090", 403),
            ("", 403),
        ] {
            assert_eq!(status(&guard, &[("host", host)], AccessLevel::Nothing).await, expected, "{host}");
        }
        // Without a host, only probes are admitted.
        for (need, expected) in [
            (AccessLevel::Nothing, 200),
            (AccessLevel::Visitor, 403),
            (AccessLevel::ToRead, 403),
            (AccessLevel::ToChange, 403),
        ] {
            assert_eq!(status(&guard, &[], need).await, expected);
        }
    }

    #[tokio::test]
    async fn reading_takes_the_token_either_way_and_changing_only_as_a_bearer() {
        let (guard, _folder) = guard(Some(TOKEN)).await;
        let (bearer, basic) =
            (format!("Bearer {TOKEN}"), format!("Basic {}", STANDARD.encode(format!("me:{TOKEN}"))));
        let (host, json) = (("host", "localhost"), ("content-type", "application/json; charset=utf-8"));
        for (headers, need, expected) in [
            (vec![host], AccessLevel::Nothing, 200),
            (vec![host], AccessLevel::ToRead, 401),
            (vec![host, ("authorization", bearer.as_str())], AccessLevel::ToRead, 200),
            (vec![host, ("authorization", basic.as_str())], AccessLevel::ToRead, 200),
            (vec![host, ("authorization", "Bearer wrong")], AccessLevel::ToRead, 401),
            (vec![host, ("authorization", "Basic %%%")], AccessLevel::ToRead, 401),
            (vec![host, json, ("authorization", bearer.as_str())], AccessLevel::ToChange, 200),
            (vec![host, json, ("authorization", basic.as_str())], AccessLevel::ToChange, 401),
            (
                vec![host, ("content-type", "text/plain"), ("authorization", bearer.as_str())],
                AccessLevel::ToChange,
                415,
            ),
            (
                vec![host, json, ("authorization", bearer.as_str()), ("origin", "http://localhost")],
                AccessLevel::ToChange,
                403,
            ),
            (
                vec![host, json, ("authorization", bearer.as_str()), ("sec-fetch-site", "cross-site")],
                AccessLevel::ToChange,
                403,
            ),
        ] {
            assert_eq!(status(&guard, &headers, need).await, expected, "{headers:?}");
        }
    }

    #[tokio::test]
    async fn the_read_token_opens_everything_for_reading_and_nothing_for_change() {
        let (guard, _folder) = guard(Some(TOKEN)).await;
        let bearer = format!("Bearer {READ_TOKEN}");
        let headers =
            [("host", "localhost"), ("content-type", "application/json"), ("authorization", bearer.as_str())];
        assert_eq!(status(&guard, &headers, AccessLevel::ToRead).await, 200);
        assert_eq!(status(&guard, &headers, AccessLevel::ToChange).await, 403);
        assert_eq!(
            guard.visitor(request(&headers).headers()).await.map(|visitor| visitor.role),
            Some(Role::Read)
        );
    }

    #[tokio::test]
    async fn a_session_reads_the_api_and_never_changes_by_it() {
        let (guard, _folder) = guard(Some(TOKEN)).await;
        let SignIn::As(session) = guard.sign_in(None, TOKEN, "Ada").await else {
            panic!("the token is right")
        };
        let cookie = guard.session_cookie(&session, &HeaderMap::new());
        let cookie = cookie.split(';').next().unwrap();
        let headers = [("host", "localhost"), ("content-type", "application/json"), ("cookie", cookie)];
        assert_eq!(status(&guard, &headers, AccessLevel::ToRead).await, 200);
        assert_eq!(status(&guard, &headers, AccessLevel::ToChange).await, 401);
        let visitor = guard.visitor(request(&headers).headers()).await.expect("signed in");
        assert_eq!((visitor.role, visitor.session.unwrap().name), (Role::Operate, "Ada".to_owned()));
    }

    #[test]
    fn a_form_is_ours_when_its_browser_says_so() {
        for (headers, expected) in [
            (vec![("host", "h:9090"), ("origin", "http://h:9090")], true),
            (vec![("host", "h"), ("origin", "https://H:443"), ("sec-fetch-site", "same-origin")], true),
            (vec![("host", "h:9090"), ("sec-fetch-site", "same-origin")], true),
            (vec![("host", "h:9090"), ("origin", "http://h:9091")], false),
            (vec![("host", "h:9090"), ("origin", "null")], false),
            (vec![("host", "h:9090"), ("origin", "http://h:9090"), ("sec-fetch-site", "cross-site")], false),
            (vec![("host", "h:9090")], false),
            (vec![("origin", "http://h:9090")], false),
        ] {
            assert_eq!(is_own_form(&request(&headers)), expected, "{headers:?}");
        }
    }

    #[tokio::test]
    async fn without_a_token_there_is_reading_only() {
        let (guard, _folder) = guard(None).await;
        let headers = [("host", "localhost"), ("content-type", "application/json")];
        assert_eq!(status(&guard, &headers, AccessLevel::ToRead).await, 200);
        assert_eq!(status(&guard, &headers, AccessLevel::ToChange).await, 403);
    }

    #[tokio::test]
    async fn guessing_is_slowed_down_for_the_one_who_guesses() {
        let (guard, _folder) = guard(Some(TOKEN)).await;
        let wrong = [("host", "localhost"), ("authorization", "Bearer guess")];
        for _ in 0..FAILURES_MAX {
            assert_eq!(status(&guard, &wrong, AccessLevel::ToRead).await, 401);
        }
        let right = [("host", "localhost"), ("authorization", "Bearer a-long-admin-token")];
        assert_eq!(status(&guard, &wrong, AccessLevel::ToRead).await, 429);
        assert_eq!(
            status(&guard, &right, AccessLevel::ToRead).await,
            200,
            "whoever has the token is never kept out"
        );
        let mut other = request(&right);
        other.extensions_mut().insert(Peer { address: "192.0.2.2:1000".parse().unwrap(), is_tls: false });
        assert!(guard.check(&other.into_parts().0, AccessLevel::ToRead).await.is_ok());
        guard.clock.advance(FAILURES_WINDOW);
        assert_eq!(status(&guard, &wrong, AccessLevel::ToRead).await, 401);
    }

    #[tokio::test]
    async fn guessing_at_a_page_is_slowed_down_as_elsewhere() {
        let (guard, _folder) = guard(Some(TOKEN)).await;
        let wrong = [("host", "localhost"), ("authorization", "Bearer guess")];
        for _ in 0..FAILURES_MAX {
            assert_eq!(
                status(&guard, &wrong, AccessLevel::Visitor).await,
                200,
                "the page asks it to sign in"
            );
        }
        assert_eq!(status(&guard, &wrong, AccessLevel::Visitor).await, 429);
        assert_eq!(status(&guard, &wrong, AccessLevel::ToRead).await, 429, "it is one count");
        assert_eq!(
            status(&guard, &[("host", "localhost")], AccessLevel::Visitor).await,
            200,
            "pages without a token"
        );
    }

    /// With two replicas of one store, a session is valid at both, and signing out revokes it at
    /// both, including copied cookies.
    #[tokio::test]
    async fn a_session_that_was_signed_out_is_none_at_any_replica() {
        let (store, _folder) = store().await;
        let (here, there) = (guard_of(Some(TOKEN), store.clone()), guard_of(Some(TOKEN), store));
        let SignIn::As(session) = here.sign_in(None, TOKEN, "Ada").await else {
            panic!("the token is right")
        };
        let cookie = here.session_cookie(&session, &HeaderMap::new());
        let headers = [("host", "localhost"), ("cookie", cookie.split(';').next().unwrap())];
        for guard in [&here, &there] {
            assert_eq!(status(guard, &headers, AccessLevel::ToRead).await, 200);
        }
        assert!(there.sign_out(&session).await);
        for guard in [&here, &there] {
            assert_eq!(status(guard, &headers, AccessLevel::ToRead).await, 401);
            assert!(guard.visitor(request(&headers).headers()).await.is_none());
        }
    }

    #[tokio::test]
    async fn a_store_that_is_away_ends_no_session_that_was_seen_here() {
        let (store, _folder) = store().await;
        let (here, there) = (guard_of(Some(TOKEN), store.clone()), guard_of(Some(TOKEN), store.clone()));
        let SignIn::As(session) = here.sign_in(None, TOKEN, "Ada").await else {
            panic!("the token is right")
        };
        let cookie = here.session_cookie(&session, &HeaderMap::new());
        let headers = [("host", "localhost"), ("cookie", cookie.split(';').next().unwrap())];
        store.close().await;
        assert_eq!(status(&here, &headers, AccessLevel::ToRead).await, 200);
        assert_eq!(status(&there, &headers, AccessLevel::ToRead).await, 401, "it has never seen the session");
        assert!(!here.sign_out(&session).await, "the store did not take it");
        assert_eq!(status(&here, &headers, AccessLevel::ToRead).await, 401);
    }

    #[tokio::test]
    async fn the_memory_of_failures_is_bounded() {
        let (guard, _folder) = guard(Some(TOKEN)).await;
        for n in 0..2 * ADDRESSES_MAX {
            guard.count_failure(IpAddr::from((n as u128 + 1).to_be_bytes()));
        }
        assert!(guard.failures.lock().unwrap().len() <= ADDRESSES_MAX);
    }
}
