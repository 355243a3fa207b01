//! Browser sessions of the admin port. After signing in with a token, a browser sends a signed
//! cookie instead of the token.
//!
//! The store has a row for each session (`Store::begin_session`). A session therefore survives
//! restarts, is valid at every replica with the same store and sealing key, and is revoked
//! everywhere when its user signs out, even if the cookie was copied. It expires after its idle
//! timeout, at the latest after its maximum lifetime. A change of a token or the sealing key
//! invalidates all sessions, since the signing key is derived from both.

use crate::operate::person;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::HeaderMap;
use http::header::COOKIE;
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_gateway::secret::Secret;
use switchback_gateway::store::seal::random;

/// Permissions at the admin port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Read only.
    Read,
    /// Read and change.
    Operate,
}

impl Role {
    /// Returns the name of the role in cookies.
    pub fn name(self) -> &'static str {
        match self {
            Role::Read => "read",
            Role::Operate => "operate",
        }
    }
}

/// Tokens and session lifetimes of the admin port.
#[derive(Clone, Debug)]
pub struct SessionPolicy {
    /// The token for changes. `None` is permitted on loopback only and makes the port read-only.
    pub token: Option<Secret<String>>,
    pub read_token: Option<Secret<String>>,
    /// Idle timeout of a session.
    pub session: Duration,
    /// Longest lifetime of a session.
    pub session_max: Duration,
    /// The sealing keys as texts. Session signatures use the first, together with the tokens.
    pub keys: Vec<Secret<String>>,
}

/// A signed-in browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) role: Role,
    /// The name that the user entered; may be empty.
    pub(crate) name: String,
    /// End of the idle timeout as Unix time in seconds. Extended by use.
    ends: i64,
    /// End of the maximum lifetime as Unix time in seconds.
    last_end: i64,
    /// A random id. The store has its hash.
    id: String,
}

impl Session {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the end of the maximum lifetime as Unix time in milliseconds.
    pub(super) fn last_end_ms(&self) -> i64 {
        self.last_end.saturating_mul(1000)
    }
}

/// Creates sessions, and signs and verifies their cookies.
pub(super) struct Sessions {
    key: [u8; 32],
    life: Duration,
    life_max: Duration,
    clock: Clock,
}

/// Name of the session cookie. The prefix `__Host-` would need TLS, which loopback lacks.
const COOKIE_NAME: &str = "switchback_session";
const SIGNATURE: &[u8] = b"switchback studio session 2";
const FORMS: &[u8] = b"switchback studio form 1";

impl Sessions {
    pub(super) fn new(access: &SessionPolicy, clock: Clock) -> Sessions {
        let mut key = Sha256::new().chain_update(SIGNATURE);
        let secrets = access.keys.first().into_iter().chain(&access.token).chain(&access.read_token);
        for secret in secrets {
            // Hash each secret first: parts of equal length cannot shift into one another.
            key.update(Sha256::digest(secret.expose().as_bytes()));
        }
        Sessions { key: key.finalize().into(), life: access.session, life_max: access.session_max, clock }
    }

    pub(super) fn begin(&self, role: Role, name: &str) -> Session {
        let name = person(name);
        let last_end = self.after(self.life_max);
        // The idle timeout may be configured longer than the maximum lifetime.
        let ends = self.after(self.life).min(last_end);
        Session { role, name, ends, last_end, id: URL_SAFE_NO_PAD.encode(random::<16>()) }
    }

    /// Returns the session with a new idle timeout if more than half of it has elapsed.
    pub(super) fn renew(&self, session: &Session) -> Option<Session> {
        let left = session.ends.saturating_sub(self.now());
        let half = i64::try_from(self.life.as_secs() / 2).unwrap_or(i64::MAX);
        let ends = self.after(self.life).min(session.last_end);
        // Renew only in the second half, so that most responses set no cookie.
        (left < half && ends > session.ends).then(|| Session { ends, ..session.clone() })
    }

    /// Returns the session in the cookie of a request if its signature is valid and its time is not
    /// over. The store decides whether it was ended earlier.
    pub(super) fn session_in(&self, headers: &HeaderMap) -> Option<Session> {
        let value = cookie(headers, COOKIE_NAME)?;
        let (payload, signature) = value.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        // In constant time, and before the payload is parsed.
        self.mac(SIGNATURE, payload).verify_slice(&signature).ok()?;
        let [role, ends, last_end, id, name]: [&str; 5] =
            payload.split('.').collect::<Vec<_>>().try_into().ok()?;
        let role = [Role::Read, Role::Operate].into_iter().find(|known| known.name() == role)?;
        // `last_end` needs no check: `begin` and `renew` bound `ends` by it.
        let ends = ends.parse().ok().filter(|ends| *ends > self.now())?;
        let name = String::from_utf8(URL_SAFE_NO_PAD.decode(name).ok()?).ok()?;
        Some(Session { role, name, ends, last_end: last_end.parse().ok()?, id: id.to_owned() })
    }

    pub(super) fn set_cookie(&self, session: &Session, is_secure: bool) -> String {
        // A name may contain dots and semicolons, which would end its part or the cookie.
        let name = URL_SAFE_NO_PAD.encode(&session.name);
        let Session { role, ends, last_end, id, .. } = session;
        let payload = format!("{}.{ends}.{last_end}.{id}.{name}", role.name());
        let signature = URL_SAFE_NO_PAD.encode(self.mac(SIGNATURE, &payload).finalize().into_bytes());
        let value = format!("{payload}.{signature}");
        let left = session.ends.saturating_sub(self.now());
        format!("{COOKIE_NAME}={value}; {}; Max-Age={left}", attributes(is_secure))
    }

    /// Returns the CSRF token of a session. A page of another origin cannot know it.
    pub(super) fn form_token(&self, session: &Session) -> String {
        URL_SAFE_NO_PAD.encode(self.mac(FORMS, &session.id).finalize().into_bytes())
    }

    /// Compares a CSRF token in constant time.
    pub(super) fn is_form_token(&self, session: &Session, shown: &str) -> bool {
        let shown = URL_SAFE_NO_PAD.decode(shown).unwrap_or_default();
        self.mac(FORMS, &session.id).verify_slice(&shown).is_ok()
    }

    fn mac(&self, purpose: &[u8], text: &str) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of any length will do");
        // The zero byte separates purpose and text, so that a signature is valid for one purpose
        // only.
        mac.chain_update(purpose).chain_update([0]).chain_update(text)
    }

    fn now(&self) -> i64 {
        self.clock.unix_ms().div_euclid(1000)
    }

    fn after(&self, time: Duration) -> i64 {
        self.now().saturating_add(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
    }
}

/// Returns the `Set-Cookie` value that deletes the session.
pub(super) fn forget_cookie(is_secure: bool) -> String {
    format!("{COOKIE_NAME}=; {}; Max-Age=0", attributes(is_secure))
}

fn attributes(is_secure: bool) -> &'static str {
    // `Strict` keeps the cookie out of all requests that another site initiates, including links.
    if is_secure { "Path=/; HttpOnly; SameSite=Strict; Secure" } else { "Path=/; HttpOnly; SameSite=Strict" }
}

/// Returns the value of a request's cookie.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(100);

    fn access(token: &str) -> SessionPolicy {
        SessionPolicy {
            token: Some(Secret::from(token)),
            read_token: None,
            session: LIFE,
            session_max: 3 * LIFE,
            keys: vec![Secret::from("key")],
        }
    }

    fn shown(sessions: &Sessions, session: &Session) -> HeaderMap {
        let cookie = sessions.set_cookie(session, false);
        let pair = cookie.split(';').next().unwrap();
        HeaderMap::from_iter([(COOKIE, format!("a=b; {pair}").parse().unwrap())])
    }

    #[test]
    fn a_session_comes_back_until_its_time_is_over() {
        let clock = Clock::paused_at(0);
        let sessions = Sessions::new(&access("one-token"), clock.clone());
        let session = sessions.begin(Role::Operate, "  Ada. L\u{7}ovelace ");
        assert_eq!(session.name, "Ada. Lovelace");
        let headers = shown(&sessions, &session);
        assert_eq!(sessions.session_in(&headers).as_ref(), Some(&session));
        assert_eq!(sessions.renew(&session), None, "its time has hardly begun");
        clock.advance(Duration::from_secs(51));
        let renewed = sessions.renew(&session).expect("half of its time is over");
        clock.advance(Duration::from_secs(49));
        assert_eq!(sessions.session_in(&headers), None);
        assert_eq!(sessions.session_in(&shown(&sessions, &renewed)), Some(renewed));
    }

    #[test]
    fn a_session_in_use_has_a_last_end() {
        let clock = Clock::paused_at(0);
        let sessions = Sessions::new(&access("one-token"), clock.clone());
        let mut session = sessions.begin(Role::Operate, "Ada");
        let mut last_seen = 0;
        for second in 0..400 {
            if let Some(found) = sessions.session_in(&shown(&sessions, &session)) {
                session = sessions.renew(&found).unwrap_or(found);
                last_seen = second;
            }
            clock.advance(Duration::from_secs(1));
        }
        assert_eq!(last_seen, 299, "three times its time, though it was used every second");
    }

    #[test]
    fn a_session_is_nobody_elses_and_ends_with_its_token() {
        let sessions = Sessions::new(&access("one-token"), Clock::paused_at(0));
        let reader = sessions.begin(Role::Read, "");
        let cookie = sessions.set_cookie(&reader, true);
        assert!(cookie.contains("HttpOnly; SameSite=Strict; Secure"), "{cookie}");
        let forged = cookie.split(';').next().unwrap().replace("=read.", "=operate.");
        let forged = HeaderMap::from_iter([(COOKIE, forged.parse().unwrap())]);
        assert_eq!(sessions.session_in(&forged), None);
        let others = Sessions::new(&access("new-token"), Clock::paused_at(0));
        assert_eq!(others.session_in(&shown(&sessions, &reader)), None);
        let other = sessions.begin(Role::Read, "");
        assert!(sessions.is_form_token(&reader, &sessions.form_token(&reader)));
        for wrong in [sessions.form_token(&other).as_str(), "", "%"] {
            assert!(!sessions.is_form_token(&reader, wrong), "{wrong}");
        }
    }
}
