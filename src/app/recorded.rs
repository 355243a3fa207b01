//! Packs in the store: every pack that begins to serve is recorded there, and an operator can
//! restore one of the last ten.
//!
//! A restored pack replaces one pack on disk, which is identified by its hash. A replica serves it
//! as long as its folder has exactly those files. With other files, such as those of the next
//! deployment, a replica serves its folder, while replicas that the deployment has not reached yet
//! go on serving the restored pack. A requested reload ends the restoration everywhere.

use super::pack::{self, LoadedPack, PackError, ReadPack};
use super::{StartError, fit};
use crate::admin::ReloadRequests;
use crate::config::Config;
use crate::operate::{PackRestoration, Refusal, RefusalKind};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use switchback_compiler::mapping::load::PackSource;
use switchback_gateway::store::{NewPackRecord, PackRecordRow, RestoredPackRow, Store};
use switchback_plan::{Pack, SideId, explain};
use tokio::task::spawn_blocking;

/// Largest recorded pack, compressed. A larger one serves, but cannot be restored.
const PACKED_BYTES_MAX: usize = 8 << 20;
/// Pause between two looks at the restored pack in the store.
const POLL: Duration = Duration::from_secs(1);
/// Largest size of the files of a recorded pack.
const FILES_BYTES_MAX: u64 = 1 << 30;

/// A pack with the warnings of its configuration.
pub(super) type Served = (LoadedPack, Option<String>);

/// Loads the restored pack, if there is one for the pack on disk with the hash `on_disk`.
pub(super) async fn load_restored(
    config: &Config,
    file: Option<&Path>,
    store: &Store,
    row: Option<&RestoredPackRow>,
    on_disk: &str,
) -> Result<Option<Served>, StartError> {
    let Some(row) = row.filter(|row| row.instead_of == on_disk) else { return Ok(None) };
    let (mut loaded, warnings) = load_recorded(config, file, store, &row.hash).await?;
    loaded.restored = Some(PackRestoration::new(row.clone()));
    Ok(Some((loaded, warnings)))
}

/// Returns the hash of the pack on disk.
pub(super) async fn hash_on_disk(config: &Config) -> Result<String, StartError> {
    let folder = config.mapping.clone();
    let read = spawn_blocking(move || pack::read_pack(folder.as_deref()).map(|source| pack::hash(&source)));
    Ok(read.await.map_err(|_| StartError::Interrupted)??)
}

/// Restores a recorded pack in place of the one on disk, if it is fit to serve with this
/// configuration. `id`: its hash, or the beginning of it. Restoring the pack on disk ends the
/// restoration. Gateways on the store follow within a second.
///
/// # Errors
///
/// There is no such pack, it does not compile with this program or its examples do not hold, it does
/// not fit the configuration, or the store fails.
pub(crate) async fn restore_pack(
    config: &Config,
    file: Option<&Path>,
    store: &Store,
    id: &str,
) -> Result<PackRecordRow, Refusal> {
    let row = find(store, id).await?;
    let conflict = |error: StartError| match error {
        StartError::Store(error) => Refusal::from(error),
        error => Refusal::Request(RefusalKind::Conflict, error.to_string()),
    };
    let on_disk = hash_on_disk(config).await.map_err(conflict)?;
    if row.hash == on_disk {
        store.end_restoration(&row.name).await?;
        return Ok(row);
    }
    load_recorded(config, file, store, &row.hash).await.map_err(conflict)?;
    store.restore_pack(&row.hash, &row.name, &on_disk).await?;
    Ok(row)
}

/// Finds a recorded pack by its hash or the beginning of it.
async fn find(store: &Store, hash: &str) -> Result<PackRecordRow, Refusal> {
    let all = store.packs().await?;
    let mut fit = all.into_iter().filter(|row| !hash.is_empty() && row.hash.starts_with(hash));
    match (fit.next(), fit.next()) {
        (Some(row), None) => Ok(row),
        (Some(_), Some(_)) => Err(Refusal::invalid("several recorded packs begin so; give more characters")),
        (None, _) => {
            let text = "no recorded pack has this id; `switchback pack list` lists them";
            Err(Refusal::Request(RefusalKind::NotFound, text.to_owned()))
        }
    }
}

/// Follows the restored pack in the store until dropped.
pub(super) async fn follow(store: Store, reload: ReloadRequests, mut seen: Option<RestoredPackRow>) {
    loop {
        store.clock().sleep(POLL).await;
        // A store that does not answer changes nothing here.
        let Ok(now) = store.restored_pack().await else { continue };
        if now != seen && reload.follow() {
            seen = now;
        }
    }
}

async fn load_recorded(
    config: &Config,
    file: Option<&Path>,
    store: &Store,
    hash: &str,
) -> Result<Served, StartError> {
    let files = store.pack_files(hash).await?;
    let (folder, hash) = (config.mapping.clone(), hash.to_owned());
    let read = move || -> Result<ReadPack, PackError> {
        let files = files.and_then(|files| unpack(&files)).filter(|source| pack::hash(source) == hash);
        pack::read(files.ok_or(PackError::NotRecorded)?, folder.as_deref(), "recorded, instead of ")
    };
    let read = spawn_blocking(read).await.map_err(|_| StartError::Interrupted)??;
    fit(config, file, read)
}

/// Records a pack that begins to serve, in the background: it serves whether or not the store
/// takes it.
pub(super) fn record(store: &Store, loaded: &LoadedPack, who: &str) {
    let (store, who, hash) = (store.clone(), who.to_owned(), loaded.hash.clone());
    let (plan, files) = (Arc::clone(&loaded.pack), Arc::clone(&loaded.files));
    tokio::spawn(async move {
        let name = plan.name.clone();
        let prepare = move || {
            let files = files.iter().map(|file| (file.name.clone(), file.content().into_owned()));
            (pack_files(&PackSource::from_files(files.collect())), digests(&plan))
        };
        let Ok((Ok(files), operations)) = spawn_blocking(prepare).await else { return };
        if files.len() > PACKED_BYTES_MAX {
            tracing::warn!(
                bytes = files.len(),
                "the pack is too large to be recorded; it cannot be restored"
            );
            return;
        }
        let new =
            NewPackRecord { hash: &hash, name: &name, who: &who, operations: &operations, files: &files };
        if let Err(error) = store.record_pack(&new).await {
            tracing::warn!(%error, "the store does not record the pack; it cannot be restored");
        }
    });
}

/// Returns a digest of the translation of each operation, as JSON. Line numbers do not count.
fn digests(plan: &Pack) -> String {
    let mut all = Map::new();
    for side in [SideId::OLD, SideId::NEW] {
        for route in &plan.directions[side].routes {
            let mut digest = Sha256::new();
            for line in explain(plan, side, route).lines() {
                digest.update(line.rsplit_once("   (").map_or(line, |(text, _)| text));
                digest.update("\n");
            }
            let digest: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            all.insert(format!("{} {}", plan.sides[side].name, route.operation.key), digest.into());
        }
    }
    Value::Object(all).to_string()
}

/// Compresses the files of a pack: of each, the lengths of name and content, then both.
fn pack_files(source: &PackSource) -> std::io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    for (name, content) in source.files() {
        for part in [name.as_bytes(), content] {
            encoder.write_all(&(part.len() as u64).to_be_bytes())?;
            encoder.write_all(part)?;
        }
    }
    encoder.finish()
}

/// `None` if the bytes are damaged.
fn unpack(packed: &[u8]) -> Option<PackSource> {
    let mut bytes = Vec::new();
    DeflateDecoder::new(packed).take(FILES_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let mut rest = bytes.as_slice();
    let mut part = || {
        let (length, after) = rest.split_first_chunk::<8>()?;
        let (part, after) = after.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)?;
        rest = after;
        Some((part.to_vec(), after.is_empty()))
    };
    let mut files = Vec::new();
    loop {
        let (name, _) = part()?;
        let (content, is_last) = part()?;
        files.push((String::from_utf8(name).ok()?, content));
        if is_last {
            return Some(PackSource::from_files(files));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::builtin;

    #[test]
    fn files_come_back_as_they_were() {
        let source = builtin::source();
        let packed = pack_files(&source).expect("memory");
        assert_eq!(unpack(&packed).expect("whole").files(), source.files());
        assert!(unpack(&packed[..packed.len() / 2]).is_none());
    }

    #[test]
    fn a_moved_line_changes_no_digest() {
        let files = builtin::source().files().to_vec();
        let digests = |edit: &dyn Fn(&str) -> String| -> Value {
            let edited = files.iter().map(|(name, content)| match name.as_str() {
                "agents.map.yaml" => {
                    (name.clone(), Arc::from(edit(std::str::from_utf8(content).expect("text")).into_bytes()))
                }
                _ => (name.clone(), Arc::clone(content)),
            });
            let source = PackSource::from_files(edited.collect::<Vec<(String, Arc<[u8]>)>>());
            let pack = switchback_compiler::mapping::compile(&source).pack.expect("it compiles");
            serde_json::from_str(&super::digests(&pack)).expect("JSON")
        };
        let before = digests(&str::to_owned);
        assert_eq!(before, digests(&|text| format!("# a remark\n\n{text}")));
    }
}
