//! The migrations of the store, in their order. A new one is a file for each database below `migrations/`, of the same name, and
//! that name in the list here. What has been released is never changed: databases remember a checksum of each.
//!
//! The list is written by hand because the macro of sqlx that reads a folder builds the drivers a second time, for the
//! compiler; a test holds it against the folder.

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
}

/// What brings an SQLite file up to date.
pub(super) fn sqlite() -> Migrator {
    migrator(SQLITE)
}

/// What brings a PostgreSQL database up to date.
pub(super) fn postgres() -> Migrator {
    migrator(POSTGRES)
}

fn migrator(files: &[(&str, &'static str)]) -> Migrator {
    Migrator::with_migrations(files.iter().map(|(name, sql)| migration(name, sql)).collect())
}

/// Number and description are those that sqlx itself takes from the name of a file.
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
