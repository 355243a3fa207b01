//! The grants of a running gateway: loaded from the store, synchronized with it, and refreshed
//! ahead of expiry.

use super::client::Clients;
use super::grant::{Grant, RefreshContext};
use super::wire::TokenEndpoint;
use super::{RefreshSettings, TokenError};
use crate::store::{GatewayRole, GrantState, Store, StoreError, seal};
use arc_swap::ArcSwapOption;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::task::TaskTracker;

/// Interval for deleting expired rows.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Shortest interval between two writes about one credential. A client that alternates between
/// permitted and forbidden operations toggles its state constantly.
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// The clients and grants of this gateway. Clones share them.
#[derive(Clone, Debug)]
pub struct Tokens(Arc<TokensInner>);

#[derive(Debug)]
struct TokensInner {
    clients: Clients,
    shared: Arc<RefreshContext>,
    /// The part of the store that has been read. Locked during a read.
    read: Mutex<StoreSnapshot>,
    store_answers: AtomicBool,
    _role: GatewayRole,
}

#[derive(Debug, Default)]
struct StoreSnapshot {
    change: i64,
    grants: HashMap<String, Arc<Grant>>,
}

/// The health of clients and grants, for readiness checks and people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Whether the store answered last time and accepted the last refresh.
    pub store: bool,
    /// Number of grants whose newest tokens are in memory only; they would be lost with the
    /// process.
    pub unpersisted: usize,
    /// Names of clients that a person has to connect again or give another credential.
    pub needs_reconnect: Vec<String>,
}

impl Health {
    /// Returns whether the gateway should receive traffic. A client that needs to be connected
    /// again does not affect readiness.
    pub fn is_ready(&self) -> bool {
        self.store && self.unpersisted == 0
    }
}

impl Tokens {
    /// Acquires the gateway role and loads all clients and grants. Without an `endpoint`, grants
    /// can be used but not refreshed.
    ///
    /// # Errors
    /// Another gateway uses the same SQLite file, or the store fails.
    pub async fn open(
        store: Store,
        endpoint: Option<TokenEndpoint>,
        settings: RefreshSettings,
    ) -> Result<Self, StoreError> {
        // First, because two processes that refresh the grants of one SQLite file would spend each
        // other's tokens. On PostgreSQL, leases prevent that instead.
        let role = store.take_gateway_role().await?;
        let clock = store.clock().clone();
        let clients = Clients::new(store.hasher().clone(), clock.clone());
        // New for each start: a restarted process must not take over a lease whose exchange may
        // still be in flight.
        let owner = seal::random::<8>().iter().map(|byte| format!("{byte:02x}")).collect();
        let shared = Arc::new(RefreshContext {
            store,
            endpoint: ArcSwapOption::from(endpoint.map(Arc::new)),
            settings,
            clock,
            owner,
            tasks: TaskTracker::new(),
            unpersisted: Default::default(),
            store_writes: AtomicBool::new(true),
        });
        let inner = TokensInner {
            clients,
            shared,
            read: Mutex::default(),
            store_answers: AtomicBool::new(true),
            _role: role,
        };
        let tokens = Tokens(Arc::new(inner));
        // The gateway starts only with a readable store: it could not authenticate any client.
        tokens.sync().await?;
        tokens.discover();
        Ok(tokens)
    }

    /// Returns the clients.
    pub fn clients(&self) -> &Clients {
        &self.0.clients
    }

    /// Returns the health of clients and grants.
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

    /// Applies changes made in the store since the last call, by any process.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn sync(&self) -> Result<(), StoreError> {
        let outcome = self.read_changes().await;
        self.0.store_answers.store(outcome.is_ok(), Ordering::Relaxed);
        outcome
    }

    /// Sets the authorization server that refreshes grants from now on.
    pub fn set_endpoint(&self, endpoint: Option<TokenEndpoint>) {
        self.0.shared.endpoint.store(endpoint.map(Arc::new));
    }

    /// Fetches the authorization server's metadata again, in the background.
    pub fn discover(&self) {
        if let Some(endpoint) = self.0.shared.endpoint.load_full() {
            self.0.shared.spawn(async move { endpoint.discover().await });
        }
    }

    /// Refreshes `generation` of a client's grant now and returns the result, unless the grant is
    /// in a pause after a failure. Has no effect on a grant with a later generation.
    ///
    /// # Errors
    ///
    /// There is no such client, or no new token.
    pub async fn refresh(&self, name: &str, generation: i64) -> Result<(), TokenError> {
        let client = self.clients().by_name(name).ok_or(TokenError::NotConnected)?;
        client.grant.refresh(generation).await
    }

    /// Follows the store and refreshes grants ahead of expiry, until dropped.
    pub async fn run(self) {
        let TokensInner { shared, .. } = &*self.0;
        let slots = Arc::new(Semaphore::new(shared.settings.refreshes_max.max(1)));
        let mut swept = shared.clock.elapsed();
        let mut noted = HashMap::new();
        // Logs transitions only; a message per poll would flood the log during an outage.
        let mut is_failing = false;
        loop {
            let outcome = self.sync().await;
            if let Err(error) = &outcome
                && !is_failing
            {
                tracing::warn!(target: "switchback::token", %error, "the store cannot be read; clients and grants are served as last read");
            } else if outcome.is_ok() && is_failing {
                tracing::info!(target: "switchback::token", "the store can be read again");
            }
            is_failing = outcome.is_err();
            // Runs even if the store was not read: expiry does not wait for it.
            self.refresh_due(&slots);
            self.note_refusals(&mut noted).await;
            if shared.clock.elapsed() >= swept + SWEEP_EVERY {
                swept = shared.clock.elapsed();
                if let Err(error) = shared.store.sweep().await {
                    tracing::warn!(target: "switchback::token", %error, "expired rows were not deleted");
                }
            }
            shared.clock.sleep(shared.settings.poll).await;
        }
    }

    /// Waits for running refreshes, so that a shutdown loses no spent refresh token, but no longer
    /// than `at_most`: a failing store must not block the exit. Call it once traffic has stopped.
    /// Returns whether all refreshes finished.
    pub async fn drain(&self, at_most: Duration) -> bool {
        let RefreshContext { tasks, unpersisted, .. } = &*self.0.shared;
        // Without it, `wait` would not return while the tracker accepts new tasks.
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
            clients = lost.join(", "), "refreshes did not finish in time; their new tokens are lost, and these clients must be connected again"
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
            // A limit on parallel refreshes: after a long stop all grants are due together, and
            // many authorization servers limit their rate. The next poll continues with the rest.
            let Ok(slot) = slots.clone().try_acquire_owned() else { return };
            self.0.shared.spawn(async move {
                // `refresh` has already logged and counted its errors.
                let _ = grant.refresh(grant.generation()).await;
                drop(slot);
            });
        }
    }

    /// Stores which credentials the services refuse, for reports and for a restart. `noted` maps
    /// each credential to the time of its last write.
    async fn note_refusals(&self, noted: &mut HashMap<String, Duration>) {
        let now = self.0.shared.clock.elapsed();
        noted.retain(|_, at| *at + NOTE_EVERY > now);
        for client in self.clients().all() {
            for token in client.fixed_tokens() {
                let Some(is_refused) = token.to_note().filter(|_| !noted.contains_key(&token.id)) else {
                    continue;
                };
                noted.insert(token.id.clone(), now);
                // Set it before the write, so that reading our own write back has no effect.
                token.set_noted(is_refused);
                let marked = self.0.shared.store.mark_credential(&token.id, &client.id, is_refused).await;
                if let Err(error) = marked {
                    token.set_noted(!is_refused);
                    tracing::warn!(target: "switchback::token", client = %client.name, %error, "the state of a credential was not stored");
                }
            }
        }
    }

    async fn read_changes(&self) -> Result<(), StoreError> {
        let TokensInner { clients, shared, .. } = &*self.0;
        // Serializes readers: an older snapshot must not be applied after a newer one.
        let mut read = self.0.read.lock().await;
        // Read the number first: rows written in between are then read twice rather than missed.
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
                tracing::error!(target: "switchback::token", client = row.key.client, %error, "a stored grant cannot be decrypted; connect the client again");
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
        // Last, so that a failure in between reads the same rows again.
        read.change = change;
        Ok(())
    }
}
