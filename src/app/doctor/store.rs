//! Checks of the store: whether it answers, its schema, its key and the free space of its disk.

use super::DoctorCheck;
use super::files::sqlite_file;
use crate::config::Config;
use crate::figures::bytes;
use std::path::Path;
use std::time::Duration;
use switchback_gateway::store::seal::KeyRing;
use switchback_gateway::store::{self, StoreError, StoreFacts, StoreState};

/// Time limit for the store.
const PATIENCE: Duration = Duration::from_secs(15);
/// Free space below which the disk is reported, and below which the store can hardly write.
const FREE_LOW: u64 = 256 << 20;
const FREE_MIN: u64 = 16 << 20;

pub(super) async fn examine_store(config: &Config) -> Vec<DoctorCheck> {
    let (url, address) = (config.store.as_str(), config.store.to_masked());
    let late = || StoreError::Unavailable(format!("no answer within {} s", PATIENCE.as_secs()));
    let reached = tokio::time::timeout(PATIENCE, store::reach(url)).await.unwrap_or_else(|_| Err(late()));
    let mut checks = match &reached {
        Ok(StoreState::There) => vec![DoctorCheck::ok("store", format!("{address} answers"))],
        Ok(StoreState::ToBeMade) => {
            vec![DoctorCheck::ok("store", format!("{address} does not exist yet; the gateway creates it"))]
        }
        Err(error) => {
            let advice =
                "check that the database runs, that this machine reaches it, and the address in `store`";
            vec![DoctorCheck::failed("store", format!("{address}: {error}"), advice)]
        }
    };
    let facts = match (&reached, KeyRing::parse(&config.keys)) {
        (Ok(StoreState::There), Ok(keys)) => {
            let read = tokio::time::timeout(PATIENCE, store::inspect(url, &keys)).await;
            Some(read.unwrap_or_else(|_| Err(late())))
        }
        _ => None,
    };
    match facts {
        Some(Ok(facts)) => {
            checks.push(schema(&facts));
            checks.push(key(&facts));
        }
        Some(Err(error)) => {
            let advice = "see whether `store` names a store of Switchback, and its permissions";
            checks.push(DoctorCheck::failed("store: schema", error.to_string(), advice));
            checks.push(DoctorCheck::unknown("key", "the store cannot be read"));
        }
        None => {
            let why = match &reached {
                Ok(_) => "there is no store to read",
                Err(_) => "the store does not answer",
            };
            checks.push(DoctorCheck::unknown("store: schema", why));
            checks.push(DoctorCheck::unknown("key", why));
        }
    }
    checks.extend(sqlite_file(config).map(|file| disk(&file)));
    checks
}

fn schema(facts: &StoreFacts) -> DoctorCheck {
    const NAME: &str = "store: schema";
    let own = facts.schema_of_program;
    match facts.schema {
        None => DoctorCheck::ok(NAME, format!("none yet; the gateway creates version {own}")),
        Some(version) if version == own => {
            DoctorCheck::ok(NAME, format!("version {version}, as this program's"))
        }
        Some(version) if version < own => DoctorCheck::warning(
            NAME,
            format!(
                "version {version}; the next start migrates it to {own}, which earlier programs cannot open"
            ),
            "make a copy of the store before the start",
        ),
        Some(version) => DoctorCheck::failed(
            NAME,
            format!("version {version}, which is newer than {own} of this program"),
            "run the program that migrated it, or a later one",
        ),
    }
}

fn key(facts: &StoreFacts) -> DoctorCheck {
    const NAME: &str = "key";
    match &facts.opens {
        Ok(true) => DoctorCheck::ok(NAME, "opens the secrets of the store"),
        Ok(false) => DoctorCheck::ok(NAME, "nothing in the store is sealed yet"),
        Err(error) => DoctorCheck::failed(
            NAME,
            error.to_string(),
            "add the key that the store was sealed with to the list `key`; without it, its grants are lost",
        ),
    }
}

fn disk(file: &Path) -> DoctorCheck {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match rustix::fs::statvfs(folder) {
        Ok(found) => judge_free(found.f_bavail.saturating_mul(found.f_frsize), folder),
        Err(error) => DoctorCheck::unknown("store: disk", format!("{}: {error}", folder.display())),
    }
}

fn judge_free(free: u64, folder: &Path) -> DoctorCheck {
    const NAME: &str = "store: disk";
    const ADVICE: &str = "free space, or move the store: a refreshed token that cannot be written is lost";
    let found = format!("{} are free in {}", bytes(free), folder.display());
    match free {
        0..FREE_MIN => DoctorCheck::failed(NAME, found, ADVICE),
        FREE_MIN..FREE_LOW => DoctorCheck::warning(NAME, found, ADVICE),
        _ => DoctorCheck::ok(NAME, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::doctor::CheckState;

    #[test]
    fn free_space_and_schema_are_judged_by_their_bounds() {
        for (free, state) in
            [(FREE_MIN - 1, CheckState::Failed), (FREE_MIN, CheckState::Warning), (FREE_LOW, CheckState::Ok)]
        {
            assert_eq!(judge_free(free, Path::new("/")).state, state, "{free}");
        }
        for (version, state) in [
            (None, CheckState::Ok),
            (Some(18), CheckState::Warning),
            (Some(19), CheckState::Ok),
            (Some(20), CheckState::Failed),
        ] {
            let facts = StoreFacts { schema: version, schema_of_program: 19, opens: Ok(true) };
            assert_eq!(schema(&facts).state, state, "{version:?}");
        }
    }
}
