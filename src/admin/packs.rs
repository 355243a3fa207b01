//! The recorded packs in the admin API: list, and restore one of them.

use super::AdminParts;
use super::answer::{AdminResponse, Answer};
use crate::operate::packs_in;

/// Returns the recorded packs, the last first, and the restored one.
pub(super) async fn list(parts: &AdminParts) -> Answer {
    AdminResponse::ok(&packs_in(&parts.store).await?)
}

/// Serves a recorded pack instead of the one on disk. Returns the status of the served pack.
pub(super) async fn restore(parts: &AdminParts, by: &str, id: &str) -> Answer {
    parts.reload.restore(id, by).await?;
    AdminResponse::ok(&parts.board.load().pack)
}
