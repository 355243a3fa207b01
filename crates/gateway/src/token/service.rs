//! The grants of a running gateway: loaded from the store, kept in step with it, refreshed ahead of their end.

use super::client::Clients;
use super::grant::Grant;
use super::refresh::Shared;
use super::wire::Endpoint;
use super::{Settings, TokenError};
use crate::store::{GatewayRole, GrantState, Store, StoreError, seal};
use arc_swap::ArcSwapOption;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::task::TaskTracker;

/// How often expired rows are deleted.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// The least time between two notes about refused credentials. A client that mixes what it may do with what it may not has
/// its credential refused and working again all the time.
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// The clients and grants of this gateway. Clones share them.
#[derive(Clone, Debug)]
pub struct Tokens(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clients: Clients,
    shared: Arc<Shared>,
    /// What has been read of the store. Held while reading more.
    read: Mutex<Read>,
    store_answers: AtomicBool,
    _role: GatewayRole,
}

#[derive(Debug, Default)]
struct Read {
    change: i64,
    grants: HashMap<String, Arc<Grant>>,
}

/// Whether tokens are in order, for readiness and for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Whether the store answered last time, and took the last refresh that was begun.
    pub store: bool,
    /// Grants whose newest tokens are in memory only; they would be lost with the process.
    pub unpersisted: usize,
    /// Names of clients that a person has to connect again, or give another credential.
    pub needs_reconnect: Vec<String>,
}

impl Health {
    /// Whether the gateway should be given traffic. A client that needs to be connected again is no reason not to.
    pub fn is_ready(&self) -> bool {
        self.store && self.unpersisted == 0
    }
}

impl Tokens {
    /// Takes the gateway role and loads everything. Without an `endpoint` no grant can be refreshed, only used.
    ///
    /// # Errors
    /// Another gateway on the same SQLite file, and any trouble with the store.
    pub async fn open(
        store: Store,
        endpoint: Option<Endpoint>,
        settings: Settings,
    ) -> Result<Self, StoreError> {
        let role = store.take_gateway_role().await?;
        let clock = store.clock().clone();
        let clients = Clients::new(store.hasher().clone(), clock.clone());
        let owner = seal::random::<8>().iter().map(|byte| format!("{byte:02x}")).collect();
        let shared = Arc::new(Shared {
            store,
            endpoint: ArcSwapOption::from(endpoint.map(Arc::new)),
            settings,
            clock,
            owner,
            tasks: TaskTracker::new(),
            unpersisted: Default::default(),
            store_writes: AtomicBool::new(true),
        });
        let inner = Inner {
            clients,
            shared,
            read: Mutex::default(),
            store_answers: AtomicBool::new(true),
            _role: role,
        };
        let tokens = Tokens(Arc::new(inner));
        tokens.sync().await?;
        tokens.discover();
        Ok(tokens)
    }

    /// The clients, by token and by name.
    pub fn clients(&self) -> &Clients {
        &self.0.clients
    }

    /// Whether all is well.
    pub fn health(&self) -> Health {
        let mut needs_reconnect: Vec<String> = self
            .clients()
            .all()
            .iter()
            .filter(|client| {
                matches!(client.grant.state(), GrantState::NeedsReconnect | GrantState::Misconfigured)
                    || client.fixed_tokens().iter().any(|token| token.is_refused())
            })
            .map(|client| client.name.to_string())
            .collect();
        needs_reconnect.sort();
        Health {
            store: self.0.store_answers.load(Ordering::Relaxed)
                && self.0.shared.store_writes.load(Ordering::Relaxed),
            unpersisted: self.0.shared.unpersisted.load(Ordering::Relaxed),
            needs_reconnect,
        }
    }

    /// Takes over what has changed in the store since the last time, whoever changed it.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn sync(&self) -> Result<(), StoreError> {
        let outcome = self.read_changes().await;
        self.0.store_answers.store(outcome.is_ok(), Ordering::Relaxed);
        outcome
    }

    /// Grants are refreshed there from here on.
    pub fn set_endpoint(&self, endpoint: Option<Endpoint>) {
        self.0.shared.endpoint.store(endpoint.map(Arc::new));
    }

    /// Asks the authorization server for its metadata anew, in the background.
    pub fn discover(&self) {
        if let Some(endpoint) = self.0.shared.endpoint.load_full() {
            self.0.shared.spawn(async move { endpoint.discover().await });
        }
    }

    /// Refreshes `generation` of a client's grant now, unless it waits after a failure, and gives how that went. A grant that
    /// has moved past it is left alone.
    ///
    /// # Errors
    ///
    /// There is no such client, or no new token.
    pub async fn refresh(&self, name: &str, generation: i64) -> Result<(), TokenError> {
        let client = self.clients().by_name(name).ok_or(TokenError::NotConnected)?;
        client.grant.refresh(generation).await
    }

    /// Follows the store and refreshes grants ahead of their end, until dropped.
    pub async fn run(self) {
        let Inner { shared, .. } = &*self.0;
        let slots = Arc::new(Semaphore::new(shared.settings.refreshes_max.max(1)));
        let mut swept = shared.clock.elapsed();
        let mut noted = HashMap::new();
        let mut is_failing = false;
        loop {
            let outcome = self.sync().await;
            if let Err(error) = &outcome
                && !is_failing
            {
                tracing::warn!(target: "switchback::token", %error, "store not read; serving what is known");
            } else if outcome.is_ok() && is_failing {
                tracing::info!(target: "switchback::token", "store read again");
            }
            is_failing = outcome.is_err();
            self.refresh_due(&slots);
            self.note_refusals(&mut noted).await;
            if shared.clock.elapsed() >= swept + SWEEP_EVERY {
                swept = shared.clock.elapsed();
                if let Err(error) = shared.store.sweep().await {
                    tracing::warn!(target: "switchback::token", %error, "expired rows not deleted");
                }
            }
            shared.clock.sleep(shared.settings.poll).await;
        }
    }

    /// Waits for refreshes under way, so that no spent refresh token is lost by shutting down, but no longer than `at_most`:
    /// a store that takes nothing must not keep the process. Call it after traffic has ended. Says whether all ended.
    pub async fn drain(&self, at_most: Duration) -> bool {
        let Shared { tasks, unpersisted, .. } = &*self.0.shared;
        tasks.close();
        if tokio::time::timeout(at_most, tasks.wait()).await.is_ok() {
            return true;
        }
        let lost: Vec<String> = self
            .clients()
            .all()
            .iter()
            .filter(|client| client.grant.is_unpersisted())
            .map(|client| client.name.to_string())
            .collect();
        tracing::error!(
            target: "switchback::token", refreshes = tasks.len(), unstored = unpersisted.load(Ordering::Relaxed),
            clients = lost.join(", "), "refreshes did not end in time; their new tokens are lost, and these clients must be connected again"
        );
        false
    }

    fn refresh_due(&self, slots: &Arc<Semaphore>) {
        if self.0.shared.endpoint.load().is_none() {
            return;
        }
        for client in self.clients().all() {
            let grant = client.grant.clone();
            if !grant.is_due() {
                continue;
            }
            let Ok(slot) = slots.clone().try_acquire_owned() else { return };
            self.0.shared.spawn(async move {
                // What went wrong has been logged and counted where it happened.
                let _ = grant.refresh(grant.generation()).await;
                drop(slot);
            });
        }
    }

    /// Writes down which credentials the services refuse, for whoever lists clients and for a restart. `noted` says when a
    /// credential was last written about.
    async fn note_refusals(&self, noted: &mut HashMap<String, Duration>) {
        let now = self.0.shared.clock.elapsed();
        noted.retain(|_, at| *at + NOTE_EVERY > now);
        for client in self.clients().all() {
            for token in client.fixed_tokens() {
                let Some(is_refused) = token.to_note().filter(|_| !noted.contains_key(&token.id)) else {
                    continue;
                };
                noted.insert(token.id.clone(), now);
                // Before it is written, so that reading our own note back changes nothing.
                token.set_noted(is_refused);
                let marked = self.0.shared.store.mark_credential(&token.id, &client.id, is_refused).await;
                if let Err(error) = marked {
                    token.set_noted(!is_refused);
                    tracing::warn!(target: "switchback::token", client = %client.name, %error, "state not stored");
                }
            }
        }
    }

    async fn read_changes(&self) -> Result<(), StoreError> {
        let Inner { clients, shared, .. } = &*self.0;
        let mut read = self.0.read.lock().await;
        // The number is read first: what is written in between is read now and once more next time.
        let change = shared.store.change().await?;
        if change == read.change {
            return Ok(());
        }
        let grant_rows = shared.store.grants_since(read.change).await?;
        let client_rows = shared.store.clients_since(read.change).await?;
        let retired = shared.store.retired_tokens_since(read.change).await?;
        let names: HashMap<&str, Arc<str>> =
            client_rows.iter().map(|row| (row.id.as_str(), row.name.as_str().into())).collect();
        for row in &grant_rows {
            if let Err(error) = &row.secrets {
                tracing::error!(target: "switchback::token", client = row.key.client, %error, "grant does not open");
            }
            match read.grants.get(&row.key.client) {
                Some(grant) => grant.adopt(row),
                None => {
                    let Some(name) = names.get(row.key.client.as_str()) else { continue };
                    let grant = Grant::new(row, name.clone(), shared.clone());
                    read.grants.insert(row.key.client.clone(), grant);
                }
            }
        }
        if !client_rows.is_empty() || !retired.is_empty() {
            clients.update(client_rows, retired, |row| read.grants.get(&row.id).cloned());
        }
        read.change = change;
        Ok(())
    }
}
