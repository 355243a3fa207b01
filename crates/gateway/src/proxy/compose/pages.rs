//! Pages of lists, as the plan's pager wants them: cursors sealed for one client and one list.

use super::composer::Composer;
use super::cursors::CursorCache;
use crate::clock::Clock;
use crate::proxy::context::RequestContext;
use crate::proxy::forwarding::Forwarding;
use crate::store::Store;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::translate::paging::Pages;

/// How long a cursor that was handed out is good: a client that reads a long list takes hours, not days.
const CURSOR_LASTS: Duration = Duration::from_secs(24 * 60 * 60);

/// What the pager of one request needs.
pub(super) struct RequestPages {
    store: Store,
    clock: Clock,
    cache: CursorCache,
    forwarding: Forwarding,
    context: Arc<RequestContext>,
    client: String,
    account: Option<String>,
}

/// Nothing of the client shows.
impl fmt::Debug for RequestPages {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RequestPages")
    }
}

impl RequestPages {
    /// For one request; `client` and `account` are those that it is answered for.
    pub(super) fn new(
        composer: &Composer,
        context: &Arc<RequestContext>,
        client: &str,
        account: Option<&str>,
    ) -> RequestPages {
        RequestPages {
            store: composer.resume.store().clone(),
            clock: composer.clock.clone(),
            cache: composer.cursors.clone(),
            forwarding: composer.forwarding.clone(),
            context: Arc::clone(context),
            client: client.to_owned(),
            account: account.map(str::to_owned),
        }
    }

    /// The list, for this client and its account, in this pack's form of it.
    fn row(&self, list: &str) -> Vec<u8> {
        let (account, side) =
            (self.account.as_deref().unwrap_or(""), self.context.matched().front.serves.place());
        format!("{side}:{}:{account}{list}", account.len()).into_bytes()
    }

    fn key(&self, list: &str) -> Vec<u8> {
        [format!("{}:{}", self.client.len(), self.client).into_bytes(), self.row(list)].concat()
    }

    fn now(&self) -> i64 {
        self.clock.unix_ms() / 1000
    }
}

impl Pages for RequestPages {
    fn seal(&self, state: &str, list: &str) -> String {
        let plain = format!("{}\n{state}", self.now());
        URL_SAFE_NO_PAD.encode(self.store.seal_cursor(&self.client, &self.row(list), plain.as_bytes()))
    }

    fn open(&self, cursor: &str, list: &str) -> Option<String> {
        let sealed = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let plain = self.store.open_cursor(&self.client, &self.row(list), &sealed)?;
        let text = std::str::from_utf8(plain.expose()).ok()?;
        let (made, state) = text.split_once('\n')?;
        let age = self.now().saturating_sub(made.parse().ok()?);
        // Clocks of replicas are not the same to the second.
        (age < CURSOR_LASTS.as_secs() as i64).then(|| state.to_owned())
    }

    fn recall(&self, list: &str, position: u64) -> Option<(u64, String)> {
        self.cache.recall(&self.key(list), position, self.clock.elapsed())
    }

    fn remember(&self, list: &str, position: u64, cursor: &str) {
        self.cache.remember(self.key(list), position, cursor, self.clock.elapsed());
    }

    fn address(&self) -> String {
        let context = &self.context;
        let path = context.uri.path();
        let host = context.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let Some(host) = context.uri.authority().map(|authority| authority.as_str()).or(host) else {
            return path.to_owned();
        };
        let scheme = self.forwarding.scheme(context.peer, &context.headers);
        format!("{scheme}://{host}{path}")
    }
}
