//! Client lookup: maps the keyed hash of a token to a client. Changes replace the entire table, so
//! a lookup takes no lock and runs no SQL.

use super::fixed::FixedToken;
use super::grant::Grant;
use super::recent::TokenHasher;
use crate::clock::Clock;
use crate::store::seal::{Hasher, KeyedHash};
use crate::store::{ClientRow, CredentialRow, GrantState};
use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A registered client as the data path uses it.
#[derive(Debug)]
pub struct Client {
    /// The id of its row, for caches and keys.
    pub id: String,
    /// Its name in logs and metrics.
    pub name: Arc<str>,
    /// The secondary company that its calls act for, if any.
    pub company: Option<String>,
    /// The grant for calls to sides that use OAuth grants.
    pub grant: Arc<Grant>,
    /// The tokens for calls to other sides. There are few, so a list suffices.
    fixed: Vec<Arc<FixedToken>>,
}

impl Client {
    /// Returns the fixed token for calls to the side with this name, if there is one.
    pub fn fixed_token(&self, side: &str) -> Option<&Arc<FixedToken>> {
        self.fixed.iter().find(|token| token.side == side)
    }

    /// Returns whether the client can call at least one side: its grant can be refreshed or still
    /// has a valid token, or a fixed token is not refused.
    pub fn can_call(&self) -> bool {
        matches!(self.grant.state(), GrantState::Active | GrantState::Pending)
            || self.grant.current().is_some()
            || self.fixed.iter().any(|token| !token.is_refused())
    }

    pub(super) fn fixed_tokens(&self) -> &[Arc<FixedToken>] {
        &self.fixed
    }
}

/// The access that a token gives.
#[derive(Clone, Debug)]
struct Binding {
    client: Arc<Client>,
    opens: Vec<FrontAccess>,
}

/// The fronts of one side, or of all sides, and the expiry in wall-clock milliseconds since 1970.
#[derive(Clone, Debug)]
struct FrontAccess {
    side: Option<String>,
    expires_ms: Option<i64>,
}

/// A snapshot of all clients that tokens select.
#[derive(Clone, Debug, Default)]
struct ClientTable {
    by_token: HashMap<KeyedHash, Binding, RandomState>,
    by_name: HashMap<Arc<str>, Arc<Client>>,
    /// Tokens that were rotated or have expired, or whose client is revoked or damaged. Entries are
    /// never removed and most updates add none, so snapshots share the set.
    retired: Arc<HashSet<KeyedHash, RandomState>>,
}

/// The clients of the gateway.
#[derive(Debug)]
pub struct Clients {
    table: ArcSwap<ClientTable>,
    hasher: TokenHasher,
    clock: Clock,
}

impl Clients {
    pub(super) fn new(hasher: Hasher, clock: Clock) -> Self {
        Clients { table: ArcSwap::default(), hasher: TokenHasher::new(hasher), clock }
    }

    /// Returns the client that `token` authenticates at fronts of `side`. Returns `None` for
    /// unknown and expired tokens and for revoked clients.
    pub fn authenticate(&self, token: &[u8], side: &str) -> Option<Arc<Client>> {
        let hash = self.hasher.hash(token);
        let table = self.table.load();
        let binding = table.by_token.get(&hash)?;
        let is_open = |opens: &FrontAccess| {
            opens.side.as_deref().is_none_or(|own| own == side)
                && opens.expires_ms.is_none_or(|ends| ends > self.clock.unix_ms())
        };
        binding.opens.iter().any(is_open).then(|| binding.client.clone())
    }

    /// Returns whether this gateway issued the token: it authenticates a client at some front, or
    /// did so before it expired or was revoked.
    pub fn is_known(&self, token: &[u8]) -> bool {
        let hash = self.hasher.hash(token);
        let table = self.table.load();
        table.by_token.contains_key(&hash) || table.retired.contains(&hash)
    }

    /// Returns the client called `name`, unless it is revoked.
    pub fn by_name(&self, name: &str) -> Option<Arc<Client>> {
        self.table.load().by_name.get(name).cloned()
    }

    /// Returns all clients that are not revoked, in no particular order.
    pub fn all(&self) -> Vec<Arc<Client>> {
        self.table.load().by_name.values().cloned().collect()
    }

    /// Replaces the table: the clients of `rows` are updated, and `retired` tokens authenticate no
    /// client. `grant_of` returns the grant of a client.
    pub(super) fn update(
        &self,
        rows: Vec<ClientRow>,
        mut retired: Vec<KeyedHash>,
        grant_of: impl Fn(&ClientRow) -> Option<Arc<Grant>>,
    ) {
        let before = self.table.load();
        // Copied and replaced: lookups continue with the previous table meanwhile, without a lock.
        let mut table = ClientTable::clone(&before);
        let touched: HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        let replaced: Vec<Arc<Client>> =
            before.by_name.values().filter(|client| touched.contains(client.id.as_str())).cloned().collect();
        // Removed first, because a token may have moved to another client or be gone.
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
            let fixed = row.credentials.iter().filter_map(|credential| fixed_token(credential, known, &name));
            let client = Arc::new(Client {
                id: row.id.clone(),
                name: name.clone(),
                company: row.company.clone(),
                grant,
                fixed: fixed.collect(),
            });
            for token in &row.tokens {
                let fresh = || Binding { client: client.clone(), opens: Vec::new() };
                let opens = FrontAccess { side: token.side.clone(), expires_ms: token.expires_ms };
                table.by_token.entry(token.hash).or_insert_with(fresh).opens.push(opens);
            }
            table.by_name.insert(name, client);
        }
        show_replaced(&replaced, &rows, &table);
        // `make_mut` copies the set, so it must not run for hashes that are known already.
        retired.retain(|hash| !table.retired.contains(hash));
        if !retired.is_empty() {
            Arc::make_mut(&mut table.retired).extend(retired);
        }
        self.table.store(Arc::new(table));
    }
}

/// Updates the metrics after a change from the `replaced` clients to those of `rows`. Removals
/// precede additions, since both may use the same labels.
fn show_replaced(replaced: &[Arc<Client>], rows: &[ClientRow], table: &ClientTable) {
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

/// Returns the token of a row. If its value is unchanged, the existing token is reused together
/// with its state.
fn fixed_token(row: &CredentialRow, known: &[Arc<FixedToken>], client: &Arc<str>) -> Option<Arc<FixedToken>> {
    if let Some(same) = known.iter().find(|token| token.id == row.id) {
        same.adopt(row);
        return Some(same.clone());
    }
    let fixed = FixedToken::new(row, client.clone());
    if fixed.is_none() {
        tracing::error!(target: "switchback::token", client = %client, side = row.side, "a stored credential cannot be decrypted; set it again");
    }
    fixed
}
