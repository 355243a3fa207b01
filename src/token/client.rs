//! Which client a request belongs to: old tokens, by keyed hash, to clients. The table is replaced whole when something changes,
//! so that a look-up takes no lock and speaks no SQL.

use super::grant::Grant;
use crate::clock::Clock;
use crate::store::ClientRow;
use crate::store::seal::{HashOf, Hasher, KeyedHash};
use arc_swap::ArcSwap;
use std::collections::HashMap;
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
    /// The grant its calls go out with.
    pub grant: Arc<Grant>,
}

#[derive(Clone, Debug)]
struct Binding {
    client: Arc<Client>,
    expires_ms: Option<i64>,
}

/// All clients that tokens select, as of one moment.
#[derive(Debug, Default)]
struct Table {
    by_token: HashMap<KeyedHash, Binding>,
    by_name: HashMap<Arc<str>, Arc<Client>>,
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

    /// The client that `token` selects, if it selects one. Revoked clients and expired tokens select none.
    pub fn authenticate(&self, token: &[u8]) -> Option<Arc<Client>> {
        let hash = self.hasher.hash(HashOf::ClientToken, token);
        let table = self.table.load();
        let binding = table.by_token.get(&hash)?;
        if binding.expires_ms.is_some_and(|ends| ends <= self.clock.unix_ms()) {
            return None;
        }
        Some(binding.client.clone())
    }

    /// The client called `name`, unless revoked.
    pub fn by_name(&self, name: &str) -> Option<Arc<Client>> {
        self.table.load().by_name.get(name).cloned()
    }

    /// All clients that are not revoked, in no particular order.
    pub fn all(&self) -> Vec<Arc<Client>> {
        self.table.load().by_name.values().cloned().collect()
    }

    /// Replaces the table by one in which the clients of `rows` are as the rows say. `grant_of` gives the grant of a client id.
    pub(super) fn update(&self, rows: Vec<ClientRow>, grant_of: impl Fn(&ClientRow) -> Option<Arc<Grant>>) {
        let before = self.table.load();
        let mut table = Table { by_token: before.by_token.clone(), by_name: before.by_name.clone() };
        let touched: std::collections::HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        table.by_token.retain(|_, binding| !touched.contains(binding.client.id.as_str()));
        table.by_name.retain(|_, client| !touched.contains(client.id.as_str()));
        for row in &rows {
            if row.revoked_ms.is_some() {
                continue;
            }
            let Some(grant) = grant_of(row) else { continue };
            let name: Arc<str> = row.name.as_str().into();
            let client = Arc::new(Client {
                id: row.id.clone(),
                name: name.clone(),
                company: row.company.clone(),
                grant,
            });
            for token in &row.tokens {
                let binding = Binding { client: client.clone(), expires_ms: token.expires_ms };
                table.by_token.insert(token.hash, binding);
            }
            table.by_name.insert(name, client);
        }
        self.table.store(Arc::new(table));
    }
}
