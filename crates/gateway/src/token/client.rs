//! Which client a request belongs to: tokens, by keyed hash, to clients. The table is replaced whole when something changes,
//! so that a look-up takes no lock and speaks no SQL.

use super::fixed::FixedToken;
use super::grant::Grant;
use crate::clock::Clock;
use crate::store::seal::{HashOf, Hasher, KeyedHash};
use crate::store::{ClientRow, CredentialRow, GrantState};
use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// An enrolled client, as the data path sees it.
#[derive(Debug)]
pub struct Client {
    /// Its row's id: what caches and keys are to contain.
    pub id: String,
    /// Its name, for logs and metrics.
    pub name: Arc<str>,
    /// The secondary company its calls go out for, if any.
    pub company: Option<String>,
    /// The grant its calls go out with, where the side called has grants.
    pub grant: Arc<Grant>,
    /// What they go out with to other sides; few, so a list.
    fixed: Vec<Arc<FixedToken>>,
}

impl Client {
    /// What its calls to the side with this name go out with, if not with its grant.
    pub fn fixed_token(&self, side: &str) -> Option<&Arc<FixedToken>> {
        self.fixed.iter().find(|token| token.side == side)
    }

    /// Whether calls can go out to one side at least: with a grant that is refreshed or whose last token still lives, or
    /// with a token that the service has not refused.
    pub fn can_call(&self) -> bool {
        matches!(self.grant.state(), GrantState::Active | GrantState::Pending)
            || self.grant.current().is_some()
            || self.fixed.iter().any(|token| !token.is_refused())
    }

    pub(super) fn fixed_tokens(&self) -> &[Arc<FixedToken>] {
        &self.fixed
    }
}

/// What a token opens.
#[derive(Clone, Debug)]
struct Binding {
    client: Arc<Client>,
    opens: Vec<Opens>,
}

/// The fronts of one side, or of all, and until when (wall time in milliseconds since 1970).
#[derive(Clone, Debug)]
struct Opens {
    side: Option<String>,
    expires_ms: Option<i64>,
}

/// All clients that tokens select, as of one moment.
#[derive(Clone, Debug, Default)]
struct Table {
    by_token: HashMap<KeyedHash, Binding, RandomState>,
    by_name: HashMap<Arc<str>, Arc<Client>>,
    /// Tokens that were rotated, expired, or belong to a client that was revoked or whose row was changed by others. None is
    /// ever taken out, and most updates add none, so tables share the set.
    retired: Arc<HashSet<KeyedHash, RandomState>>,
}

/// The clients of the gateway.
#[derive(Debug)]
pub struct Clients {
    table: ArcSwap<Table>,
    hasher: Hasher,
    clock: Clock,
}

impl Clients {
    pub(super) fn new(hasher: Hasher, clock: Clock) -> Self {
        Clients { table: ArcSwap::default(), hasher, clock }
    }

    /// The client that `token` selects at fronts of `side`, if it selects one. Revoked clients and expired tokens select none.
    pub fn authenticate(&self, token: &[u8], side: &str) -> Option<Arc<Client>> {
        let hash = self.hasher.hash(HashOf::ClientToken, token);
        let table = self.table.load();
        let binding = table.by_token.get(&hash)?;
        let is_open = |opens: &Opens| {
            opens.side.as_deref().is_none_or(|own| own == side)
                && opens.expires_ms.is_none_or(|ends| ends > self.clock.unix_ms())
        };
        binding.opens.iter().any(is_open).then(|| binding.client.clone())
    }

    /// Whether this is a token of ours: one that selects a client somewhere, or did until it expired or its client was revoked.
    pub fn is_known(&self, token: &[u8]) -> bool {
        let hash = self.hasher.hash(HashOf::ClientToken, token);
        let table = self.table.load();
        table.by_token.contains_key(&hash) || table.retired.contains(&hash)
    }

    /// The client called `name`, unless revoked.
    pub fn by_name(&self, name: &str) -> Option<Arc<Client>> {
        self.table.load().by_name.get(name).cloned()
    }

    /// All clients that are not revoked, in no particular order.
    pub fn all(&self) -> Vec<Arc<Client>> {
        self.table.load().by_name.values().cloned().collect()
    }

    /// Replaces the table by one in which the clients of `rows` are as the rows say, and `retired` tokens select none.
    /// `grant_of` gives the grant of a client id.
    pub(super) fn update(
        &self,
        rows: Vec<ClientRow>,
        mut retired: Vec<KeyedHash>,
        grant_of: impl Fn(&ClientRow) -> Option<Arc<Grant>>,
    ) {
        let before = self.table.load();
        let mut table = Table::clone(&before);
        let touched: HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        let replaced: Vec<Arc<Client>> =
            before.by_name.values().filter(|client| touched.contains(client.id.as_str())).cloned().collect();
        table.by_token.retain(|_, binding| !touched.contains(binding.client.id.as_str()));
        table.by_name.retain(|_, client| !touched.contains(client.id.as_str()));
        for row in &rows {
            if row.revoked_ms.is_some() || row.is_damaged {
                retired.extend(row.tokens.iter().map(|token| token.hash));
            }
            if row.revoked_ms.is_some() {
                continue;
            }
            if row.is_damaged {
                tracing::error!(
                    target: "switchback::token", client = row.name,
                    "the client's row was changed outside of Switchback; no token selects it. Revoke it and add it under another name"
                );
                continue;
            }
            let Some(grant) = grant_of(row) else { continue };
            let name: Arc<str> = row.name.as_str().into();
            let known = before.by_name.get(&name).map_or(&[][..], |client| client.fixed_tokens());
            let fixed = row.credentials.iter().filter_map(|credential| fixed(credential, known, &name));
            let client = Arc::new(Client {
                id: row.id.clone(),
                name: name.clone(),
                company: row.company.clone(),
                grant,
                fixed: fixed.collect(),
            });
            for token in &row.tokens {
                let fresh = || Binding { client: client.clone(), opens: Vec::new() };
                let opens = Opens { side: token.side.clone(), expires_ms: token.expires_ms };
                table.by_token.entry(token.hash).or_insert_with(fresh).opens.push(opens);
            }
            table.by_name.insert(name, client);
        }
        show_replaced(&replaced, &rows, &table);
        retired.retain(|hash| !table.retired.contains(hash));
        if !retired.is_empty() {
            Arc::make_mut(&mut table.retired).extend(retired);
        }
        self.table.store(Arc::new(table));
    }
}

/// Brings the metrics in line with a table in which the clients of `rows` are new, and `replaced` are as they were before.
/// What a client no longer has goes first, since what it has now may be under the same name.
fn show_replaced(replaced: &[Arc<Client>], rows: &[ClientRow], table: &Table) {
    for old in replaced {
        let new = table.by_name.get(&old.name);
        let has = |token: &Arc<FixedToken>| {
            new.is_some_and(|new| new.fixed.iter().any(|other| Arc::ptr_eq(other, token)))
        };
        old.fixed.iter().filter(|token| !has(token)).for_each(|token| token.hide());
        if new.is_none() {
            old.grant.set_listed(false);
        }
    }
    for client in rows.iter().filter_map(|row| table.by_name.get(row.name.as_str())) {
        client.fixed.iter().for_each(|token| token.show());
        client.grant.set_listed(true);
    }
}

/// The token of a row: the one in use, with what is known of it, while its value is the same.
fn fixed(row: &CredentialRow, known: &[Arc<FixedToken>], client: &Arc<str>) -> Option<Arc<FixedToken>> {
    if let Some(same) = known.iter().find(|token| token.id == row.id) {
        same.adopt(row);
        return Some(same.clone());
    }
    let fixed = FixedToken::new(row, client.clone());
    if fixed.is_none() {
        tracing::error!(target: "switchback::token", client = %client, side = row.side, "credential does not open");
    }
    fixed
}
