//! Changes of clients that take effect in the data path of this process at once.

use switchback_gateway::token::{Registry, RegistryError, TokenError, Tokens};

/// Applies stored changes of clients to the data path of this process at once, instead of at its
/// next look at the store.
pub(crate) async fn apply_clients(tokens: &Tokens) {
    if let Err(error) = tokens.sync().await {
        tracing::warn!(%error, "a change of clients is stored; it is taken up at the next look at the store");
    }
}

/// Refreshes the grant of a client and waits for the outcome.
pub(crate) async fn retry_grant(
    registry: &Registry,
    tokens: &Tokens,
    name: &str,
) -> Result<Result<(), TokenError>, RegistryError> {
    let asked = registry.retry(name).await?;
    // The data path must see the retry that was just stored before it refreshes.
    tokens.sync().await?;
    Ok(tokens.refresh(name, asked.grant.generation).await)
}
