//! Changes of mapping files in the folder of the pack.

use super::history::note;
use crate::playground::{Edits, PlaygroundSession, TryError};
use switchback_gateway::store::{NewHistory, Store};

/// Saves edited mapping files to the folder of the pack named `pack`, on behalf of the author of
/// `store`.
pub(crate) async fn save_mapping(
    edits: &Edits,
    workbench: &PlaygroundSession,
    pack: &str,
    store: &Store,
) -> Result<(), TryError> {
    workbench.save(edits).await?;
    let files: Vec<&str> = edits.keys().map(String::as_str).collect();
    let detail = files.join(", ");
    note(
        store,
        &NewHistory { kind: "mapping saved", subject: pack, detail: &detail, ..NewHistory::default() },
    )
    .await;
    Ok(())
}
