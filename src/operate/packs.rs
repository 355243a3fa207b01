//! The recorded packs, with what each changed.

use serde::Serialize;
use std::collections::BTreeMap;
use switchback_gateway::clock::rfc3339;
use switchback_gateway::store::{PackRecordRow, RestoredPackRow, Store, StoreError};

/// Why a recorded pack serves instead of the one on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PackRestoration {
    /// SHA-256 of the pack on disk. A replica with another pack on disk serves that one.
    pub instead_of: String,
    /// RFC 3339, UTC.
    pub since: String,
    pub by: String,
}

impl PackRestoration {
    pub(crate) fn new(row: RestoredPackRow) -> PackRestoration {
        PackRestoration { instead_of: row.instead_of, since: rfc3339(row.since_ms), by: row.who }
    }
}

/// The recorded packs, the one that began to serve last first.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PackList {
    pub(crate) packs: Vec<RecordedPack>,
    /// The id of the restored one.
    pub(crate) restored: Option<String>,
    pub(crate) restoration: Option<PackRestoration>,
}

/// Reads the recorded packs.
pub(crate) async fn packs_in(store: &Store) -> Result<PackList, StoreError> {
    let packs = recorded_packs(&store.packs().await?);
    let restored = store.restored_pack().await?;
    let id = restored.as_ref().map(|row| row.hash.clone());
    Ok(PackList { packs, restored: id, restoration: restored.map(PackRestoration::new) })
}

/// A recorded pack, and how its operations differ from those of the pack before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RecordedPack {
    /// SHA-256 of its files, in hexadecimal.
    pub(crate) id: String,
    pub(crate) name: String,
    /// When it last began to serve, RFC 3339, UTC.
    pub(crate) served_at: String,
    pub(crate) by: String,
    /// Number of operations.
    pub(crate) operations: usize,
    /// `None`: no pack before it is recorded.
    pub(crate) changes: Option<OperationChanges>,
}

/// Operations by how they differ from those of the pack before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct OperationChanges {
    /// Each with its side, such as `v2 GET /things`.
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
    /// Operations that are translated in another way.
    pub(crate) changed: Vec<String>,
}

/// Compares each pack with the one that began to serve before it. `rows`: the last first.
fn recorded_packs(rows: &[PackRecordRow]) -> Vec<RecordedPack> {
    let parse = |row: &PackRecordRow| -> BTreeMap<String, String> {
        serde_json::from_str(&row.operations).unwrap_or_default()
    };
    let entry = |(at, row): (usize, &PackRecordRow)| {
        let own = parse(row);
        RecordedPack {
            id: row.hash.clone(),
            name: row.name.clone(),
            served_at: rfc3339(row.served_ms),
            by: row.who.clone(),
            operations: own.len(),
            changes: rows.get(at + 1).map(|before| compare(&parse(before), &own)),
        }
    };
    rows.iter().enumerate().map(entry).collect()
}

fn compare(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> OperationChanges {
    let absent = |of: &BTreeMap<String, String>, from: &BTreeMap<String, String>| {
        of.keys().filter(|name| !from.contains_key(*name)).cloned().collect()
    };
    let differs = |(name, digest): &(&String, &String)| before.get(*name).is_some_and(|old| old != *digest);
    OperationChanges {
        added: absent(now, before),
        removed: absent(before, now),
        changed: now.iter().filter(differs).map(|(name, _)| name.clone()).collect(),
    }
}

impl RecordedPack {
    /// Returns the beginning of the id.
    pub(crate) fn short_id(&self) -> &str {
        self.id.get(..12).unwrap_or(&self.id)
    }
}

impl OperationChanges {
    pub(crate) fn is_empty(&self) -> bool {
        *self == OperationChanges::default()
    }

    /// Returns the numbers, such as `1 added, 2 changed`, or `none`.
    pub(crate) fn summary(&self) -> String {
        let counts = [(&self.added, "added"), (&self.removed, "removed"), (&self.changed, "changed")];
        let counts = counts.iter().filter(|(list, _)| !list.is_empty());
        let text: Vec<String> = counts.map(|(list, word)| format!("{} {word}", list.len())).collect();
        if text.is_empty() { "none".to_owned() } else { text.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_is_compared_with_the_one_before_it() {
        let row = |hash: &str, operations: &str| PackRecordRow {
            hash: hash.to_owned(),
            name: "p".to_owned(),
            served_ms: 0,
            who: "files".to_owned(),
            operations: operations.to_owned(),
        };
        let rows = [
            row("b", r#"{"v2 GET /a":"2","v2 GET /c":"1"}"#),
            row("a", r#"{"v2 GET /a":"1","v2 GET /b":"1"}"#),
        ];
        let packs = recorded_packs(&rows);
        let changes = packs[0].changes.clone().expect("there is one before");
        assert_eq!(
            (changes.added, changes.removed, changes.changed),
            (vec!["v2 GET /c".to_owned()], vec!["v2 GET /b".to_owned()], vec!["v2 GET /a".to_owned()])
        );
        assert_eq!((packs[1].changes.clone(), packs[1].operations), (None, 2));
        assert_eq!(compare(&BTreeMap::new(), &BTreeMap::new()).summary(), "none");
    }
}
