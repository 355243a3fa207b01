//! The migrations of the store, in order. Add a new one as a file for each database below
//! `migrations/`, with the same name, and list the name here. Never change a released migration:
//! databases store its checksum.
//!
//! The list is maintained by hand because sqlx's macro for reading a folder builds the drivers a
//! second time, for the compiler. A test compares it with the folder.

use sqlx::SqlStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

macro_rules! migrations {
    ($($name:literal)*) => {
        const SQLITE: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("migrations/sqlite/", $name, ".sql")))),*];
        const POSTGRES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("migrations/postgres/", $name, ".sql")))),*];
    };
}

migrations! {
    "0001_clients_and_grants"
    "0002_tokens_and_credentials_of_sides"
    "0003_phases"
    "0004_dual_run"
    "0005_evidence_of_packs"
    "0006_bindings_and_flows"
    "0007_archives"
    "0008_events"
    "0009_retirement"
    "0010_studio"
    "0012_replicas"
    "0013_event_pairs"
    "0014_records_of_operation"
    "0015_retired_tokens_and_sessions"
    "0016_evidence_of_settled_answers"
    "0017_outcomes_of_usage"
    "0019_history"
    "0021_replica_requests"
    "0022_notices"
    "0023_rollouts"
    "0024_packs"
}

/// Returns the number of the newest migration, which is the same for both databases.
pub(super) fn version() -> i64 {
    sqlite().iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// Returns the migrations for SQLite.
pub(super) fn sqlite() -> Migrator {
    migrator(SQLITE)
}

/// Returns the migrations for PostgreSQL.
pub(super) fn postgres() -> Migrator {
    migrator(POSTGRES)
}

fn migrator(files: &[(&str, &'static str)]) -> Migrator {
    Migrator::with_migrations(files.iter().map(|(name, sql)| migration(name, sql)).collect())
}

/// Builds a migration. Number and description match those that sqlx derives from a file name.
fn migration(name: &str, sql: &'static str) -> Migration {
    let (number, description) = name.split_once('_').expect("a number stands before the first underscore");
    let number = number.parse().expect("the list above holds numbers");
    let description = description.replace('_', " ").into();
    Migration::new(number, description, MigrationType::Simple, SqlStr::from_static(sql), false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[tokio::test]
    async fn the_list_is_what_lies_in_the_folders() {
        for (kind, listed) in [("sqlite", sqlite()), ("postgres", postgres())] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/migrations").join(kind);
            let lying = Migrator::new(folder).await.expect("the folder can be read");
            let known = |migrator: &Migrator| -> Vec<_> {
                let known = |migration: &Migration| {
                    (migration.version, migration.description.clone(), migration.checksum.clone())
                };
                migrator.iter().map(known).collect()
            };
            assert_eq!(known(&listed), known(&lying), "{kind}");
        }
    }
}
