//! A small common interface to SQLite and PostgreSQL: open, migrate, read rows, write in a
//! transaction. Both run the same SQL text (`$1` placeholders, `ON CONFLICT`, `RETURNING`), so all
//! differences are in this module.
//!
//! Decisions to know:
//!
//! A connection whose transaction failed is closed and never reused. SQLite rolls back by itself on
//! a full disk or an I/O error, after which the driver still considers the connection to be inside
//! a transaction. The statements that open and close transactions are therefore issued here, not by
//! the driver.
//!
//! Every writing transaction first increments the single row of `change_counter`. This serializes
//! writers on both databases (as SQLite does anyway), so statements within a transaction need no
//! further locks, and it numbers each write for readers to follow. Writes are rare (a new client, a
//! refreshed token), so the cost is negligible.

use super::StoreError;
use super::outage::StoreOutage;
use super::reserve::Reserve;
use super::schema;
use crate::clock::Clock;
use sqlx::migrate::MigrateError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgRow, Postgres};
use sqlx::sqlite::{
    Sqlite, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{Column as _, Executor as _, Row as _};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait of a statement for another writer.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// Longest wait for a PostgreSQL connection, including its establishment.
const CONNECT_WAIT: Duration = Duration::from_secs(3);
/// PostgreSQL's statement timeout, in its own notation.
const STATEMENT_TIMEOUT: &str = "10s";
/// Time limit for a statement that PostgreSQL itself does not abort, because it or the network
/// hangs.
const ANSWER_WAIT: Duration = Duration::from_secs(12);
/// The same limit while the database is known to be unavailable.
const PROBE_WAIT: Duration = Duration::from_secs(2);
const CONNECTIONS_MAX: u32 = 4;
/// Pages of the write-ahead log after which SQLite checkpoints it. The default of 1,000 pages is
/// four times the size of most stores, and needs that space on the disk in addition.
const WAL_PAGES: &str = "100";

/// An open database.
#[derive(Clone, Debug)]
pub(super) enum Db {
    /// One connection writes and one reads, because SQLite has one writer at a time and each
    /// connection costs a thread with its own heap and caches. They are in separate pools: the
    /// reader remains open while the writer is closed, since SQLite deletes its log with the last
    /// connection.
    Sqlite {
        reader: SqlitePool,
        writer: SqlitePool,
        file: PathBuf,
        reserve: Arc<Reserve>,
    },
    Postgres {
        pool: PgPool,
        outage: Arc<StoreOutage>,
    },
}

/// Evaluates the same expression for the pool, transaction or row of either database.
macro_rules! either {
    ($value:expr, $inner:ident => $run:expr) => {
        match $value {
            Either::Sqlite($inner) => $run,
            Either::Postgres($inner) => $run,
        }
    };
}

enum Either<S, P> {
    Sqlite(S),
    Postgres(P),
}

/// A value bound to a placeholder.
#[derive(Clone, Debug)]
pub(super) enum Arg {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

impl From<i64> for Arg {
    fn from(value: i64) -> Self {
        Arg::Int(Some(value))
    }
}
impl From<Option<i64>> for Arg {
    fn from(value: Option<i64>) -> Self {
        Arg::Int(value)
    }
}
impl From<&str> for Arg {
    fn from(value: &str) -> Self {
        Arg::Text(Some(value.to_owned()))
    }
}
impl From<Option<&str>> for Arg {
    fn from(value: Option<&str>) -> Self {
        Arg::Text(value.map(str::to_owned))
    }
}
impl From<&[u8]> for Arg {
    fn from(value: &[u8]) -> Self {
        Arg::Bytes(Some(value.to_vec()))
    }
}
impl From<Vec<u8>> for Arg {
    fn from(value: Vec<u8>) -> Self {
        Arg::Bytes(Some(value))
    }
}
impl From<Option<Vec<u8>>> for Arg {
    fn from(value: Option<Vec<u8>>) -> Self {
        Arg::Bytes(value)
    }
}

/// Builds the arguments of a statement, in the order of its placeholders.
macro_rules! args {
    ($($value:expr),* $(,)?) => { &[$(crate::store::db::Arg::from($value)),*] };
}
pub(super) use args;

/// Builds a query of either database with its arguments bound.
macro_rules! query {
    ($sql:expr, $args:expr) => {
        $args.iter().fold(sqlx::query($sql), |query, arg| match arg.clone() {
            Arg::Int(value) => query.bind(value),
            Arg::Text(value) => query.bind(value),
            Arg::Bytes(value) => query.bind(value),
        })
    };
}

/// A result row. Columns are read by name, so that a mismatch with the statement is an error.
pub(super) struct DbRow(Either<SqliteRow, PgRow>);

impl DbRow {
    pub(super) fn int(&self, column: &'static str) -> Result<i64, StoreError> {
        Ok(either!(&self.0, row => row.try_get(column))?)
    }
    pub(super) fn int_or_none(&self, column: &'static str) -> Result<Option<i64>, StoreError> {
        Ok(either!(&self.0, row => row.try_get(column))?)
    }
    pub(super) fn text(&self, column: &'static str) -> Result<String, StoreError> {
        Ok(either!(&self.0, row => row.try_get(column))?)
    }
    pub(super) fn text_or_none(&self, column: &'static str) -> Result<Option<String>, StoreError> {
        Ok(either!(&self.0, row => row.try_get(column))?)
    }
    pub(super) fn bytes(&self, column: &'static str) -> Result<Vec<u8>, StoreError> {
        Ok(either!(&self.0, row => row.try_get(column))?)
    }
    pub(super) fn bytes_or_none(&self, column: &'static str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(either!(&self.0, row => row.try_get(column))?)
    }
    /// Returns the first column regardless of its name, for the databases' own statements.
    fn first_text(&self) -> Result<String, StoreError> {
        Ok(either!(&self.0, row => row.try_get(row.column(0).ordinal()))?)
    }
}

impl Db {
    /// Opens `url` (`sqlite:FILE` or `postgres://…`). With `create`, a missing SQLite file is
    /// created with owner-only permissions.
    pub(super) async fn open(url: &str, create: bool) -> Result<Self, StoreError> {
        if let Some(file) = url.strip_prefix("sqlite:") {
            let file = PathBuf::from(file.strip_prefix("//").unwrap_or(file));
            open_sqlite(file, create).await
        } else if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            open_postgres(url).await
        } else {
            Err(StoreError::Url)
        }
    }

    /// Returns the path of a SQLite file.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Db::Sqlite { file, .. } => Some(file),
            Db::Postgres { .. } => None,
        }
    }

    /// Returns whether several gateways may use the database concurrently.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Db::Postgres { .. })
    }

    /// Migrates the schema to this program's version. If the schema is newer, returns an error and
    /// writes no data.
    pub(super) async fn migrate(&self) -> Result<(), StoreError> {
        let first = self.migrate_once().await;
        match first {
            // Another program has migrated the new database at the same time; its result is now
            // valid for this one too.
            // Once only: an error that recurs has another cause and is returned.
            Err(MigrateError::ExecuteMigration(..) | MigrateError::Execute(_)) => self.migrate_once().await,
            other => other,
        }
        .map_err(|error| match error {
            MigrateError::VersionMissing(version) => StoreError::NewerSchema(version),
            MigrateError::VersionMismatch(version) => StoreError::ForeignSchema(version),
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                StoreError::from(error)
            }
            other => StoreError::Unavailable(other.to_string()),
        })
    }

    async fn migrate_once(&self) -> Result<(), MigrateError> {
        match self {
            Db::Sqlite { writer, .. } => schema::sqlite().run(writer).await,
            Db::Postgres { pool, .. } => schema::postgres().run(pool).await,
        }
    }

    /// Runs SQLite's integrity check; PostgreSQL checks its pages itself.
    pub(super) async fn check_soundness(&self) -> Result<(), StoreError> {
        let Db::Sqlite { .. } = self else { return Ok(()) };
        let rows = self.rows("PRAGMA quick_check(1)", &[]).await?;
        let verdict = rows.first().map(DbRow::first_text).transpose()?.unwrap_or_default();
        if verdict == "ok" { Ok(()) } else { Err(StoreError::Corrupt(verdict)) }
    }

    /// Returns whether a table called `name` exists.
    pub(super) async fn has_table(&self, name: &str) -> Result<bool, StoreError> {
        let sql = match self {
            Db::Sqlite { .. } => "SELECT name FROM sqlite_master WHERE type = 'table' AND name = $1",
            Db::Postgres { .. } => {
                "SELECT tablename::text AS name FROM pg_tables \
                 WHERE schemaname = ANY (current_schemas(false)) AND tablename = $1"
            }
        };
        Ok(!self.rows(sql, args![name]).await?.is_empty())
    }

    /// Runs a reading statement and returns its rows.
    pub(super) async fn rows(&self, sql: &'static str, args: &[Arg]) -> Result<Vec<DbRow>, StoreError> {
        match self {
            Db::Sqlite { reader, .. } => {
                let rows = query!(sql, args).fetch_all(reader).await?;
                Ok(rows.into_iter().map(|row| DbRow(Either::Sqlite(row))).collect())
            }
            Db::Postgres { pool, outage } => {
                // During an outage an old connection may be dead; it must not delay the next
                // attempt.
                let wait = if outage.is_away() { PROBE_WAIT } else { ANSWER_WAIT };
                outage
                    .guard(async {
                        let mut connection: DbConnection = Either::Postgres(pool.acquire().await?);
                        let rows = answered_within(wait, connection.rows(sql, args)).await;
                        if rows.is_err() {
                            connection.close_on_drop();
                        }
                        rows
                    })
                    .await
            }
        }
    }

    /// Runs a reading statement and returns its first row, if any.
    pub(super) async fn row(&self, sql: &'static str, args: &[Arg]) -> Result<Option<DbRow>, StoreError> {
        Ok(self.rows(sql, args).await?.into_iter().next())
    }

    /// Opens a numbered writing transaction. It is rolled back unless committed.
    pub(super) async fn write(&self) -> Result<Tx, StoreError> {
        let mut tx = self.begin().await?;
        // The first statement of every transaction, so that its row lock orders writers before they
        // read. A later one could deadlock with a writer that already holds other rows.
        let bumped =
            tx.row("UPDATE change_counter SET value = value + 1 WHERE id = 1 RETURNING value", &[]).await?;
        tx.change =
            bumped.ok_or_else(|| StoreError::Corrupt("change counter missing".to_owned()))?.int("value")?;
        Ok(tx)
    }

    /// Opens a writing transaction without a number, for data that no reader follows. Access rows
    /// shared with other writers in the order of their keys, or two such transactions may deadlock.
    pub(super) async fn begin(&self) -> Result<Tx, StoreError> {
        let (connection, begin, outage) = match self {
            // A deferred transaction takes the write lock with its first write. If another process
            // has written since its first read, SQLite fails it with SQLITE_BUSY_SNAPSHOT, which no
            // waiting resolves.
            Db::Sqlite { writer, .. } => (Either::Sqlite(writer.acquire().await?), "BEGIN IMMEDIATE", None),
            Db::Postgres { pool, outage } => {
                let connection = outage.guard(async { Ok(pool.acquire().await?) }).await?;
                (Either::Postgres(connection), "BEGIN", Some(Arc::clone(outage)))
            }
        };
        let mut tx = Tx { connection, outage, change: 0, is_open: true };
        tx.run(begin, &[]).await?;
        Ok(tx)
    }

    /// Runs one unnumbered statement outside of a transaction. Returns the number of affected rows.
    pub(super) async fn run_alone(&self, sql: &'static str, args: &[Arg]) -> Result<u64, StoreError> {
        match self {
            Db::Sqlite { writer, .. } => Ok(query!(sql, args).execute(writer).await?.rows_affected()),
            Db::Postgres { pool, outage } => {
                outage
                    .guard(with_deadline(async {
                        Ok(query!(sql, args).execute(pool).await?.rows_affected())
                    }))
                    .await
            }
        }
    }

    /// Reserves disk space for an upcoming write to a SQLite file.
    pub(super) async fn reserve(&self) -> Result<(), StoreError> {
        match self {
            Db::Sqlite { reserve, .. } => Reserve::hold(reserve).await,
            Db::Postgres { .. } => Ok(()),
        }
    }

    /// Frees disk space: releases the reserve and truncates SQLite's write-ahead log.
    pub(super) async fn make_room(&self) {
        let Db::Sqlite { writer, reserve, .. } = self else { return };
        // Released before the checkpoint, which needs space itself.
        Reserve::release(reserve).await;
        // Best effort: the checkpoint needs space too, and a reader may block it.
        if let Err(error) = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(writer).await {
            tracing::debug!(target: "switchback::store", %error, "the write-ahead log was not truncated");
        }
    }

    /// Closes all connections. Waits for running work, but with a time limit, since the caller is
    /// about to exit.
    pub(super) async fn close(&self) {
        let closing = async {
            match self {
                Db::Sqlite { reader, writer, .. } => {
                    // The writer first: the reader is then the last connection, whose close removes
                    // the log.
                    writer.close().await;
                    reader.close().await;
                }
                Db::Postgres { pool, .. } => pool.close().await,
            }
        };
        if tokio::time::timeout(LOCK_WAIT, closing).await.is_err() {
            tracing::warn!("the store was closed while connections were still in use");
        }
    }
}

type DbConnection = Either<PoolConnection<Sqlite>, PoolConnection<Postgres>>;

impl DbConnection {
    async fn run(&mut self, sql: &'static str, args: &[Arg]) -> Result<u64, StoreError> {
        Ok(match self {
            Either::Sqlite(connection) => {
                (&mut **connection).execute(query!(sql, args)).await?.rows_affected()
            }
            Either::Postgres(connection) => {
                let running =
                    async { Ok((&mut **connection).execute(query!(sql, args)).await?.rows_affected()) };
                with_deadline(running).await?
            }
        })
    }

    async fn rows(&mut self, sql: &'static str, args: &[Arg]) -> Result<Vec<DbRow>, StoreError> {
        Ok(match self {
            Either::Sqlite(connection) => {
                let rows = (&mut **connection).fetch_all(query!(sql, args)).await?;
                rows.into_iter().map(|row| DbRow(Either::Sqlite(row))).collect()
            }
            Either::Postgres(connection) => {
                let running = async { Ok((&mut **connection).fetch_all(query!(sql, args)).await?) };
                with_deadline(running).await?.into_iter().map(|row| DbRow(Either::Postgres(row))).collect()
            }
        })
    }

    /// Closes the connection instead of returning it to its pool, because its state is unknown.
    fn close_on_drop(&mut self) {
        either!(self, connection => connection.close_on_drop());
    }
}

/// Applies the time limit for PostgreSQL's response.
async fn with_deadline<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    answered_within(ANSWER_WAIT, work).await
}

async fn answered_within<T>(
    wait: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let late = |_| StoreError::Unavailable("the database does not answer".to_owned());
    tokio::time::timeout(wait, work).await.map_err(late)?
}

/// A writing transaction. Its connection is closed unless it was committed or rolled back.
pub(super) struct Tx {
    connection: DbConnection,
    outage: Option<Arc<StoreOutage>>,
    change: i64,
    is_open: bool,
}

impl Drop for Tx {
    fn drop(&mut self) {
        if self.is_open {
            self.connection.close_on_drop();
        }
    }
}

impl Tx {
    /// Returns the number of this write; changed rows store it in their `change` column.
    pub(super) fn change(&self) -> i64 {
        self.change
    }

    /// Marks a client as changed by this write, so that other gateways read it again.
    pub(super) async fn touch_client(&mut self, client: &str) -> Result<(), StoreError> {
        let change = self.change();
        self.run("UPDATE clients SET change = $2 WHERE id = $1", args![client, change]).await?;
        Ok(())
    }

    /// Returns the wall time for leases in milliseconds since 1970: that of PostgreSQL, which
    /// gateways share, or else of `clock`.
    pub(super) async fn now_ms(&mut self, clock: &Clock) -> Result<i64, StoreError> {
        // One machine has one clock. Gateways on several machines compare leases, so they must use
        // the same clock, which only the database can provide.
        if let Either::Sqlite(_) = self.connection {
            return Ok(clock.unix_ms());
        }
        let sql = "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT AS now";
        self.row(sql, &[]).await?.map_or(Ok(clock.unix_ms()), |row| row.int("now"))
    }

    /// Runs a statement. Returns the number of affected rows.
    pub(super) async fn run(&mut self, sql: &'static str, args: &[Arg]) -> Result<u64, StoreError> {
        let outcome = self.connection.run(sql, args).await;
        self.note(outcome)
    }

    /// Runs a statement within the transaction and returns its rows.
    pub(super) async fn rows(&mut self, sql: &'static str, args: &[Arg]) -> Result<Vec<DbRow>, StoreError> {
        let outcome = self.connection.rows(sql, args).await;
        self.note(outcome)
    }

    /// Runs a statement within the transaction and returns its first row, if any.
    pub(super) async fn row(&mut self, sql: &'static str, args: &[Arg]) -> Result<Option<DbRow>, StoreError> {
        Ok(self.rows(sql, args).await?.into_iter().next())
    }

    /// Commits the transaction. After an error the outcome is unknown, so a caller that depends on
    /// it must read again.
    pub(super) async fn commit(mut self) -> Result<(), StoreError> {
        // If this fails, `is_open` remains set and the connection is closed: its state is unknown.
        self.run("COMMIT", &[]).await?;
        self.is_open = false;
        Ok(())
    }

    /// Rolls the transaction back and returns its connection to the pool. Dropping it rolls back
    /// too, but closes the connection.
    pub(super) async fn undo(mut self) {
        if self.run("ROLLBACK", &[]).await.is_ok() {
            self.is_open = false;
        }
    }

    fn note<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Some(outage) = &self.outage {
            outage.note(&outcome);
        }
        outcome
    }
}

async fn open_sqlite(file: PathBuf, create: bool) -> Result<Db, StoreError> {
    if create {
        make_private_file(&file)
            .map_err(|error| StoreError::Unavailable(format!("{}: {error}", file.display())))?;
    } else if !file.exists() {
        return Err(StoreError::NoSuchFile(file));
    }
    // Other settings are SQLite's defaults. FULL makes a commit durable before it returns, because
    // a refreshed token that is not on disk may be lost for good.
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(false)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("wal_autocheckpoint", WAL_PAGES)
        .foreign_keys(true)
        .busy_timeout(LOCK_WAIT);
    let pool = || {
        SqlitePoolOptions::new()
            .max_connections(1)
            // Connections to a file need no renewal.
            .idle_timeout(None)
            .max_lifetime(None)
            // The single writer connection is a queue within this process; its wait has the limit
            // of the lock.
            .acquire_timeout(LOCK_WAIT)
    };
    let at_file = |error| at_file(&file, error);
    let reader = pool().connect_with(options.clone()).await.map_err(at_file)?;
    let writer = pool().connect_with(options).await.map_err(at_file)?;
    let reserve = Arc::new(Reserve::for_database(&file));
    Ok(Db::Sqlite { reader, writer, file, reserve })
}

/// Adds the file to an error, since the driver's message does not contain it.
fn at_file(file: &Path, error: sqlx::Error) -> StoreError {
    match StoreError::from(error) {
        StoreError::Unavailable(what) => StoreError::Unavailable(format!("{}: {what}", file.display())),
        other => other,
    }
}

/// Creates an empty file with owner-only permissions unless it exists. SQLite copies the
/// permissions to its auxiliary files.
fn make_private_file(file: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    // Permissions are set with the creation: a later change would leave a moment in which others
    // can open the file. `create_new` does not follow a symbolic link that was planted there.
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    match options.open(file) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map(drop),
    }
}

async fn open_postgres(url: &str) -> Result<Db, StoreError> {
    let lock_timeout = format!("{}ms", LOCK_WAIT.as_millis());
    let options = PgConnectOptions::from_str(url)
        // The parser's own error may contain the password.
        .map_err(|_| StoreError::Url)?
        .options([("statement_timeout", STATEMENT_TIMEOUT), ("lock_timeout", &lock_timeout)]);
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(CONNECT_WAIT)
        .connect_with(options)
        .await?;
    Ok(Db::Postgres { pool, outage: Arc::default() })
}
