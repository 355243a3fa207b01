//! Checks whether a store can be opened, and by which program and key, without creating it or
//! changing its data.

use super::db::Db;
use super::seal::KeyRing;
use super::{StoreError, keys, schema};
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

/// The state of a store's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreState {
    /// The store exists and answers.
    There,
    /// The SQLite file does not exist, but can be created in its folder.
    ToBeMade,
}

/// The schema and the key of a store.
#[derive(Debug)]
pub struct StoreFacts {
    /// The version of its schema; `None` if it has none yet.
    pub schema: Option<i64>,
    /// The version of this program's schema.
    pub schema_of_program: i64,
    /// Whether the keys open a sealed value; `Ok(false)` if nothing is sealed yet.
    pub opens: Result<bool, StoreError>,
}

/// Reads the schema version of an existing store, and opens a sealed value with `keys`.
///
/// # Errors
///
/// The store does not exist or does not answer, or is no store.
pub async fn inspect(url: &str, keys: &KeyRing) -> Result<StoreFacts, StoreError> {
    let db = Db::open(url, false).await?;
    let facts = read_facts(&db, keys).await;
    db.close().await;
    facts
}

async fn read_facts(db: &Db, keys: &KeyRing) -> Result<StoreFacts, StoreError> {
    let schema = match db.has_table("_sqlx_migrations").await? {
        true => {
            let row = db.row("SELECT max(version) AS version FROM _sqlx_migrations", &[]).await?;
            row.map(|row| row.int_or_none("version")).transpose()?.flatten()
        }
        false => None,
    };
    let opens = match db.has_table("sealing_keys").await? {
        true => match db.row("SELECT id FROM sealing_keys LIMIT 1", &[]).await? {
            Some(_) => keys::verify(db, keys).await.map(|()| true),
            None => Ok(false),
        },
        false => Ok(false),
    };
    Ok(StoreFacts { schema, schema_of_program: schema::version(), opens })
}

/// Time limit for a connection to a database server.
const WAIT: Duration = Duration::from_secs(5);

/// Checks whether a store answers at an address or can be created there.
///
/// # Errors
///
/// The address is invalid, or the store does not answer.
pub async fn reach(url: &str) -> Result<StoreState, StoreError> {
    match url.strip_prefix("sqlite:") {
        Some(file) => sqlite(Path::new(file.strip_prefix("//").unwrap_or(file))).await,
        None => postgres(url).await,
    }
}

async fn sqlite(file: &Path) -> Result<StoreState, StoreError> {
    let unavailable = |path: &Path, error: &dyn std::fmt::Display| {
        StoreError::Unavailable(format!("{}: {error}", path.display()))
    };
    if !file.exists() {
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        return match can_make_in(&folder) {
            Ok(()) => Ok(StoreState::ToBeMade),
            Err(error) => Err(unavailable(&folder, &error)),
        };
    }
    File::options().read(true).write(true).open(file).map_err(|error| unavailable(file, &error))?;
    let options = SqliteConnectOptions::new().filename(file).read_only(true);
    let mut connection = options.connect().await.map_err(|error| unavailable(file, &error))?;
    let read = sqlx::query("SELECT count(*) FROM sqlite_master").execute(&mut connection).await;
    read.map_err(|error| unavailable(file, &error))?;
    Ok(StoreState::There)
}

fn can_make_in(folder: &Path) -> std::io::Result<()> {
    if !folder.is_dir() {
        return Err(std::io::Error::new(std::io::ErrorKind::NotFound, "there is no such folder"));
    }
    if folder.metadata()?.permissions().readonly() {
        return Err(std::io::Error::new(
            std::io::ErrorKind::PermissionDenied,
            "nothing can be made in this folder",
        ));
    }
    Ok(())
}

async fn postgres(url: &str) -> Result<StoreState, StoreError> {
    let options = PgConnectOptions::from_str(url).map_err(|_| StoreError::Url)?;
    let connecting = async {
        let mut connection = options.connect().await?;
        connection.ping().await
    };
    match tokio::time::timeout(WAIT, connecting).await {
        Ok(Ok(())) => Ok(StoreState::There),
        Ok(Err(error)) => Err(StoreError::Unavailable(error.to_string())),
        Err(_) => Err(StoreError::Unavailable(format!("no answer within {} s", WAIT.as_secs()))),
    }
}
