//! Disturbances on a schedule while clients are active: access tokens expire, the store stalls,
//! replicas reload, and one is stopped and restarted.

use crate::Args;
use crate::load::Book;
use crate::replicas::{Replica, Setting};
use serde_json::json;
use sqlx::{Connection as _, PgConnection};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Interval of the expiry of access tokens. It is not scaled, because expiry every few seconds
/// would test something else.
const EXPIRE_EVERY: Duration = Duration::from_secs(60);

/// The performed disturbances, and their failures.
#[derive(Default)]
pub struct Disturbed {
    pub expired: u64,
    pub stalls: u64,
    pub reloads: u64,
    /// How long replicas took to end, in seconds.
    pub ends: Vec<f64>,
    pub wrong: Vec<String>,
}

type Shared = Arc<Mutex<Disturbed>>;

fn noted(shared: &Shared, note: impl FnOnce(&mut Disturbed)) {
    note(&mut shared.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Starts; the result is available at the end.
pub fn start(
    args: &Args,
    setting: &Arc<Setting>,
    service: SocketAddr,
    replicas: &[Arc<Replica>; 2],
    until: Instant,
) -> JoinHandle<Disturbed> {
    let (args, setting, replicas) = (args.clone(), Arc::clone(setting), replicas.clone());
    tokio::spawn(async move {
        let shared = Shared::default();
        tokio::join!(
            expire(EXPIRE_EVERY, &setting, service, &shared, until),
            stall(args.every(75.0), Duration::from_secs(3), &setting, &shared, until),
            reload(args.every(45.0), &setting, &replicas, &shared, until),
            end(&args, &setting, &replicas, &shared, until),
        );
        std::mem::take(&mut *shared.lock().unwrap_or_else(PoisonError::into_inner))
    })
}

/// Waits for the next time; false when all is over by then.
async fn next(every: Duration, until: Instant) -> bool {
    let is_over = Instant::now() + every >= until;
    tokio::time::sleep_until(if is_over { until.into() } else { (Instant::now() + every).into() }).await;
    !is_over
}

/// Expires all access tokens at once, regardless of their lifetime.
async fn expire(every: Duration, setting: &Setting, service: SocketAddr, shared: &Shared, until: Instant) {
    while next(every, until).await {
        let url = format!("http://{service}/_sandbox/tokens/expire");
        match setting.http.post(url).json(&json!({})).send().await {
            Ok(_) => noted(shared, |done| done.expired += 1),
            Err(error) => {
                noted(shared, |done| done.wrong.push(format!("the sandbox does not answer: {error}")))
            }
        }
    }
}

/// Locks all tables for a while.
async fn stall(every: Duration, length: Duration, setting: &Setting, shared: &Shared, until: Instant) {
    while next(every, until).await {
        match stalled(setting, length).await {
            Ok(()) => noted(shared, |done| done.stalls += 1),
            // Two that lock in another order than the gateways may be refused as a deadlock.
            Err(error) => eprintln!("the store was not stalled: {error}"),
        }
    }
}

async fn stalled(setting: &Setting, length: Duration) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(&setting.store).await?;
    let tables: Vec<(String,)> =
        sqlx::query_as("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")
            .fetch_all(&mut connection)
            .await?;
    let names: Vec<String> = tables.into_iter().map(|(name,)| format!("\"{name}\"")).collect();
    let locking = format!(
        "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep({})",
        names.join(", "),
        length.as_secs_f64()
    );
    let mut transaction = connection.begin().await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(locking)).execute(&mut *transaction).await?;
    transaction.commit().await?;
    connection.close().await
}

async fn reload(
    every: Duration,
    setting: &Setting,
    replicas: &[Arc<Replica>; 2],
    shared: &Shared,
    until: Instant,
) {
    let mut number = 0;
    while next(every, until).await {
        number += 1;
        for replica in replicas {
            match number % 2 {
                0 => replica.touch(number),
                _ => replica.reload(setting).await,
            }
        }
        noted(shared, |done| done.reloads += 1);
    }
}

async fn end(args: &Args, setting: &Setting, replicas: &[Arc<Replica>; 2], shared: &Shared, until: Instant) {
    let mut turn = 1;
    while args.ends != "none" && next(args.every(300.0), until).await {
        let replica = &replicas[turn];
        if args.ends == "both" {
            turn = 1 - turn;
        }
        match replica.end().await {
            Ok(took) => noted(shared, |done| done.ends.push(took.as_secs_f64())),
            Err(why) => noted(shared, |done| done.wrong.push(why)),
        }
        if let Err(why) = replica.begin(setting).await {
            noted(shared, |done| done.wrong.push(why));
        }
    }
}

/// Samples the memory of replicas, and prints the progress once a minute.
pub async fn watch(replicas: [Arc<Replica>; 2], book: Arc<Book>, until: Instant) {
    let (every, began) = (Duration::from_secs(5), Instant::now());
    let mut said = 0;
    while next(every, until).await {
        let memory = [0, 1].map(|at| replicas[at].sample().map_or(0, |bytes| bytes >> 20));
        let minute = began.elapsed().as_secs() / 60;
        if minute > said {
            said = minute;
            let (median, late) = book.times();
            println!(
                "{minute:>4} min: {} requests, {median:.1} ms, of 100 one {late:.0} ms; memory {} and {} MiB; wrong so far: {}",
                book.requests(),
                memory[0],
                memory[1],
                book.wrong().len()
            );
        }
    }
}
