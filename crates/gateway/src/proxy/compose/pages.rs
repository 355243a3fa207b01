//! Page state for the plan's pager: cursors sealed to one client and one list.

use super::composer::Composer;
use super::cursors::CursorCache;
use crate::clock::Clock;
use crate::proxy::forwarding::Forwarding;
use crate::proxy::request::KnownRequest;
use crate::store::Store;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::translate::paging::Pages;

/// Lifetime of an issued cursor. Reading a long list takes a client hours, not days.
const CURSOR_LASTS: Duration = Duration::from_secs(24 * 60 * 60);

/// Page state of one request.
pub(super) struct RequestPages {
    store: Store,
    clock: Clock,
    cache: CursorCache,
    forwarding: Forwarding,
    request: Arc<KnownRequest>,
    account: Option<String>,
}

/// Omits all fields, because they identify the client.
impl fmt::Debug for RequestPages {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RequestPages")
    }
}

impl RequestPages {
    /// Creates the page state of a request. It is answered for `account`.
    pub(super) fn new(
        composer: &Composer,
        request: &Arc<KnownRequest>,
        account: Option<&str>,
    ) -> RequestPages {
        RequestPages {
            store: composer.resume.store().clone(),
            clock: composer.clock.clone(),
            cache: composer.cursors.clone(),
            forwarding: composer.forwarding.clone(),
            request: Arc::clone(request),
            account: account.map(str::to_owned),
        }
    }

    /// Returns the key of a list, which is specific to the account and the side.
    fn row(&self, list: &str) -> Vec<u8> {
        let (account, side) = (self.account.as_deref().unwrap_or(""), self.request.front.serves.place());
        format!("{side}:{}:{account}{list}", account.len()).into_bytes()
    }

    /// Returns the name that identifies the client: its id differs between replicas with separate
    /// stores.
    fn client(&self) -> &str {
        &self.request.client.name
    }

    fn key(&self, list: &str) -> Vec<u8> {
        let client = self.client();
        [format!("{}:{client}", client.len()).into_bytes(), self.row(list)].concat()
    }

    fn now(&self) -> i64 {
        self.clock.unix_ms() / 1000
    }
}

impl Pages for RequestPages {
    fn seal(&self, state: &str, list: &str) -> String {
        let plain = format!("{}\n{state}", self.now());
        URL_SAFE_NO_PAD.encode(self.store.seal_cursor(self.client(), &self.row(list), plain.as_bytes()))
    }

    fn open(&self, cursor: &str, list: &str) -> Option<String> {
        let sealed = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let plain = self.store.open_cursor(self.client(), &self.row(list), &sealed)?;
        let text = std::str::from_utf8(plain.expose()).ok()?;
        let (made, state) = text.split_once('\n')?;
        let age = self.now().saturating_sub(made.parse().ok()?);
        // A negative age is accepted, because the clocks of replicas differ slightly.
        (age < CURSOR_LASTS.as_secs() as i64).then(|| state.to_owned())
    }

    fn recall(&self, list: &str, position: u64) -> Option<(u64, String)> {
        self.cache.recall(&self.key(list), position, self.clock.elapsed())
    }

    fn remember(&self, list: &str, position: u64, cursor: &str) {
        self.cache.remember(self.key(list), position, cursor, self.clock.elapsed());
    }

    fn address(&self) -> String {
        let context = &self.request.context;
        let path = context.uri.path();
        let host = context.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let Some(host) = context.uri.authority().map(|authority| authority.as_str()).or(host) else {
            return path.to_owned();
        };
        let scheme = self.forwarding.scheme(context.sender.peer, &context.headers);
        format!("{scheme}://{host}{path}")
    }
}
