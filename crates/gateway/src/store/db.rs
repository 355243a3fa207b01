//! SQLite and PostgreSQL behind one small interface: open, migrate, read rows, write in a transaction. The same SQL text runs on
//! both (`$1` placeholders, `ON CONFLICT`, `RETURNING`), so what differs is only here. What the statements mean is not here.
//!
//! Decisions to know:
//!
//! A connection whose transaction did not end as asked is closed, never used again. SQLite undoes a transaction by itself when
//! the disk is full or an I/O error comes up, and the driver's own bookkeeping then takes the connection for one inside a
//! transaction, for ever; so the statements that begin and end transactions are ours.
//!
//! Every writing transaction starts by bumping the one row of `change_counter`. That serialises writers on
//! both databases (SQLite does it anyway), so statements within a transaction need no further locking, and it gives every
//! write a number that readers can follow. Writes are rare (a client is added, a token refreshed), so this costs nothing.

use super::StoreError;
use super::outage::Outage;
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

/// How long a statement may wait for another writer.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// How long to wait for a connection to PostgreSQL, one to be made included.
const CONNECT_WAIT: Duration = Duration::from_secs(3);
/// How long one statement may run on PostgreSQL, in its own notation.
const STATEMENT_TIMEOUT: &str = "10s";
/// When to give up a statement that PostgreSQL itself has not given up: it hangs, or the network does.
const ANSWER_WAIT: Duration = Duration::from_secs(12);
/// The same while the database is known to be away.
const PROBE_WAIT: Duration = Duration::from_secs(2);
const CONNECTIONS_MAX: u32 = 4;
/// Pages of the write-ahead log after which SQLite copies them into the database. A log of 1,000 pages, the default, is four
/// times the size of most stores, and must fit on the disk beside them.
const WAL_PAGES: &str = "100";

/// An open database.
#[derive(Clone, Debug)]
pub(super) enum Db {
    /// SQLite has one writer at a time, and a thread with a heap and caches of its own behind each connection: so one
    /// connection writes and one reads. Each has a pool of its own: the one that reads stays open when the other is closed,
    /// since SQLite clears its log away with the last connection.
    Sqlite {
        reader: SqlitePool,
        writer: SqlitePool,
        file: PathBuf,
        reserve: Arc<Reserve>,
    },
    Postgres {
        pool: PgPool,
        outage: Arc<Outage>,
    },
}

/// Runs the same expression with the pool, transaction or row of either database.
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

/// The arguments of a statement, in the order of its placeholders.
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

/// One row of an answer; columns by name, so that a statement and its reader cannot drift apart unnoticed.
pub(super) struct Row(Either<SqliteRow, PgRow>);

impl Row {
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
    /// The first column, whatever its name; for statements of the databases' own.
    fn first_text(&self) -> Result<String, StoreError> {
        Ok(either!(&self.0, row => row.try_get(row.column(0).ordinal()))?)
    }
}

impl Db {
    /// Opens `url` (`sqlite:FILE` or `postgres://…`). With `create`, a missing SQLite file is made, readable by its owner only.
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

    /// The SQLite file, when it is one.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Db::Sqlite { file, .. } => Some(file),
            Db::Postgres { .. } => None,
        }
    }

    /// Whether other gateways may work on the same database at the same time.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Db::Postgres { .. })
    }

    /// Brings the schema up to this program's; refuses a schema that a newer program has made, and then writes nothing.
    pub(super) async fn migrate(&self) -> Result<(), StoreError> {
        let first = self.migrate_once().await;
        match first {
            // Two programs opened a new file at the same moment and the other one was first: its work is now ours.
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

    /// Asks SQLite whether its pages are sound; PostgreSQL watches over its own.
    pub(super) async fn check_soundness(&self) -> Result<(), StoreError> {
        let Db::Sqlite { .. } = self else { return Ok(()) };
        let rows = self.rows("PRAGMA quick_check(1)", &[]).await?;
        let verdict = rows.first().map(Row::first_text).transpose()?.unwrap_or_default();
        if verdict == "ok" { Ok(()) } else { Err(StoreError::Corrupt(verdict)) }
    }

    /// Whether a table called `name` exists.
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

    /// Rows of a reading statement.
    pub(super) async fn rows(&self, sql: &'static str, args: &[Arg]) -> Result<Vec<Row>, StoreError> {
        match self {
            Db::Sqlite { reader, .. } => {
                let rows = query!(sql, args).fetch_all(reader).await?;
                Ok(rows.into_iter().map(|row| Row(Either::Sqlite(row))).collect())
            }
            Db::Postgres { pool, outage } => {
                // While it is away, a connection of before may bring nothing any more: it must not hold up the next try.
                let wait = if outage.is_away() { PROBE_WAIT } else { ANSWER_WAIT };
                outage
                    .guard(async {
                        let mut connection: Connection = Either::Postgres(pool.acquire().await?);
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

    /// The first row of a reading statement, if any.
    pub(super) async fn row(&self, sql: &'static str, args: &[Arg]) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, args).await?.into_iter().next())
    }

    /// Begins a writing transaction. It is undone unless committed.
    pub(super) async fn write(&self) -> Result<Tx, StoreError> {
        let mut tx = self.begin().await?;
        let bumped =
            tx.row("UPDATE change_counter SET value = value + 1 WHERE id = 1 RETURNING value", &[]).await?;
        tx.change =
            bumped.ok_or_else(|| StoreError::Corrupt("change counter missing".to_owned()))?.int("value")?;
        Ok(tx)
    }

    /// Begins a writing transaction that no reader follows: it has no number. Rows that others write too are touched in the
    /// order of their keys, or two such transactions might wait for one another.
    pub(super) async fn begin(&self) -> Result<Tx, StoreError> {
        let (connection, begin, outage) = match self {
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

    /// Runs one statement that changes what no reader follows, outside of any transaction; gives the number of rows touched.
    pub(super) async fn run_alone(&self, sql: &'static str, args: &[Arg]) -> Result<u64, StoreError> {
        match self {
            Db::Sqlite { writer, .. } => Ok(query!(sql, args).execute(writer).await?.rows_affected()),
            Db::Postgres { pool, outage } => {
                outage
                    .guard(answered(async { Ok(query!(sql, args).execute(pool).await?.rows_affected()) }))
                    .await
            }
        }
    }

    /// Makes sure that what is to be written soon will find room, where that is known: on the disk of a SQLite file.
    pub(super) async fn reserve(&self) -> Result<(), StoreError> {
        match self {
            Db::Sqlite { reserve, .. } => Reserve::hold(reserve).await,
            Db::Postgres { .. } => Ok(()),
        }
    }

    /// Makes room on a full disk: gives up what was reserved, and has SQLite empty its write-ahead log.
    pub(super) async fn make_room(&self) {
        let Db::Sqlite { writer, reserve, .. } = self else { return };
        Reserve::release(reserve).await;
        // Best effort: it needs room itself, and a reader may be in its way.
        if let Err(error) = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(writer).await {
            tracing::debug!(target: "switchback::store", %error, "the write-ahead log was not emptied");
        }
    }

    /// Closes all connections, waiting for work under way, but not for ever: a caller that closes is about to end.
    pub(super) async fn close(&self) {
        let closing = async {
            match self {
                Db::Sqlite { reader, writer, .. } => {
                    writer.close().await;
                    reader.close().await;
                }
                Db::Postgres { pool, .. } => pool.close().await,
            }
        };
        if tokio::time::timeout(LOCK_WAIT, closing).await.is_err() {
            tracing::warn!("connections to the store were still busy when it was closed");
        }
    }
}

type Connection = Either<PoolConnection<Sqlite>, PoolConnection<Postgres>>;

impl Connection {
    async fn run(&mut self, sql: &'static str, args: &[Arg]) -> Result<u64, StoreError> {
        Ok(match self {
            Either::Sqlite(connection) => {
                (&mut **connection).execute(query!(sql, args)).await?.rows_affected()
            }
            Either::Postgres(connection) => {
                let running =
                    async { Ok((&mut **connection).execute(query!(sql, args)).await?.rows_affected()) };
                answered(running).await?
            }
        })
    }

    async fn rows(&mut self, sql: &'static str, args: &[Arg]) -> Result<Vec<Row>, StoreError> {
        Ok(match self {
            Either::Sqlite(connection) => {
                let rows = (&mut **connection).fetch_all(query!(sql, args)).await?;
                rows.into_iter().map(|row| Row(Either::Sqlite(row))).collect()
            }
            Either::Postgres(connection) => {
                let running = async { Ok((&mut **connection).fetch_all(query!(sql, args)).await?) };
                answered(running).await?.into_iter().map(|row| Row(Either::Postgres(row))).collect()
            }
        })
    }

    /// It does not go back to its pool: what state it is in is not known.
    fn close_on_drop(&mut self) {
        either!(self, connection => connection.close_on_drop());
    }
}

/// The answer of PostgreSQL, if it comes in time.
async fn answered<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    answered_within(ANSWER_WAIT, work).await
}

async fn answered_within<T>(
    wait: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let late = |_| StoreError::Unavailable("the database does not answer".to_owned());
    tokio::time::timeout(wait, work).await.map_err(late)?
}

/// A writing transaction. Its connection is closed unless the transaction ends well.
pub(super) struct Tx {
    connection: Connection,
    outage: Option<Arc<Outage>>,
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
    /// The number of this write; rows it touches carry it in their `change` column.
    pub(super) fn change(&self) -> i64 {
        self.change
    }

    /// Wall time for leases, in milliseconds since 1970: the database's own where several gateways share it, else ours.
    pub(super) async fn now_ms(&mut self, clock: &Clock) -> Result<i64, StoreError> {
        if let Either::Sqlite(_) = self.connection {
            return Ok(clock.unix_ms());
        }
        let sql = "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT AS now";
        self.row(sql, &[]).await?.map_or(Ok(clock.unix_ms()), |row| row.int("now"))
    }

    /// Runs a statement; gives the number of rows it touched.
    pub(super) async fn run(&mut self, sql: &'static str, args: &[Arg]) -> Result<u64, StoreError> {
        let outcome = self.connection.run(sql, args).await;
        self.note(outcome)
    }

    /// Rows of a statement run within the transaction.
    pub(super) async fn rows(&mut self, sql: &'static str, args: &[Arg]) -> Result<Vec<Row>, StoreError> {
        let outcome = self.connection.rows(sql, args).await;
        self.note(outcome)
    }

    /// The first row of a statement run within the transaction, if any.
    pub(super) async fn row(&mut self, sql: &'static str, args: &[Arg]) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, args).await?.into_iter().next())
    }

    /// Makes the transaction durable. After an error it may be or may not be: a caller that cares must read again.
    pub(super) async fn commit(mut self) -> Result<(), StoreError> {
        self.run("COMMIT", &[]).await?;
        self.is_open = false;
        Ok(())
    }

    /// Undoes the transaction, so that its connection can be used again. Dropping it undoes it too, at the cost of the
    /// connection.
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
    // Page size and the rest stay SQLite's defaults. FULL makes a commit durable before it returns: a
    // refreshed token that is not on disk may be lost for good.
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
            // A file needs no connecting again.
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(LOCK_WAIT)
    };
    let at_file = |error| at_file(&file, error);
    let reader = pool().connect_with(options.clone()).await.map_err(at_file)?;
    let writer = pool().connect_with(options).await.map_err(at_file)?;
    let reserve = Arc::new(Reserve::beside(&file));
    Ok(Db::Sqlite { reader, writer, file, reserve })
}

/// What the driver says of a file that cannot be opened names no file.
fn at_file(file: &Path, error: sqlx::Error) -> StoreError {
    match StoreError::from(error) {
        StoreError::Unavailable(what) => StoreError::Unavailable(format!("{}: {what}", file.display())),
        other => other,
    }
}

/// Creates an empty file that only its owner may read, unless it exists. SQLite gives its side files the same rights.
fn make_private_file(file: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
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
        .map_err(|_| StoreError::Url)?
        .options([("statement_timeout", STATEMENT_TIMEOUT), ("lock_timeout", &lock_timeout)]);
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(CONNECT_WAIT)
        .connect_with(options)
        .await?;
    Ok(Db::Postgres { pool, outage: Arc::default() })
}
