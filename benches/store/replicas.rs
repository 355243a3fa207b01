//! Replicas on one PostgreSQL: the same load on one, two and four of them, and the cost for each
//! and for the store. The machine does not grow with them, so the result is the cost of a replica,
//! not the additional capacity.

use crate::gateway::{self, Gateway, Setting};
use crate::postgres;
use crate::table::{self, Row};
use sqlx::Row as _;
use sqlx::postgres::{PgPool, PgPoolOptions};
use std::time::{Duration, Instant};

/// Total calls per second, regardless of the number of replicas.
const PER_SECOND: u32 = 400;
const MORE: &str = "phases: { default: translated, 'GET /contacts': shadow }\nshadow: { sample: 0.1 }\n";

const COLUMNS: [&str; 5] = [
    "transactions/s of the store",
    "CPU of the store, ms/s",
    "CPU of all gateways, µs/call",
    "p99, ms",
    "memory of one, MiB",
];

pub async fn measure(is_whole: bool) {
    let sizes: &[usize] = if is_whole { &[1, 2, 4] } else { &[1, 2] };
    let span = Duration::from_millis(if is_whole { 30_000 } else { 300 });
    let mut rows = Vec::new();
    for &count in sizes {
        let Some(store) = postgres::database() else { return };
        let row = measure_one(store, count, span).await;
        eprintln!("replicas, {count}: {row:?}");
        rows.push((count, row) as Row);
    }
    table::print("replicas", &COLUMNS, &rows);
}

async fn measure_one(store: String, count: usize, span: Duration) -> Vec<f64> {
    let sandbox = gateway::service().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pool: PgPool = PgPoolOptions::new().max_connections(1).connect(&store).await.expect("it is ours");
    let setting = Setting::new(&sandbox, store, MORE);
    let mut replicas = Vec::new();
    for number in 0..count {
        replicas.push(Gateway::start(&setting, folder.path(), &format!("replica-{number}")).await);
    }
    // Until tokens are fetched and connections are open.
    load(&setting, &replicas, span / 5).await;
    let (store_before, before) = (StoreWork::of(&pool).await, cpu_of_all(&replicas));
    let mut latencies = load(&setting, &replicas, span).await;
    let (cpu, calls) = (cpu_of_all(&replicas) - before, latencies.len() as f64);
    let store = StoreWork::of(&pool).await;
    let seconds = store.at.duration_since(store_before.at).as_secs_f64();
    let row = vec![
        (store.transactions - store_before.transactions) / seconds,
        (store.cpu_ms - store_before.cpu_ms) / seconds,
        cpu * 1e3 / calls,
        table::quantile(&mut latencies, 0.99),
        replicas[0].anonymous_mib(),
    ];
    for replica in replicas {
        replica.stop().await;
    }
    pool.close().await;
    sandbox.stop().await;
    row
}

fn cpu_of_all(replicas: &[Gateway]) -> f64 {
    replicas.iter().map(Gateway::cpu_ms).sum()
}

/// Calls all replicas in rotation at a steady rate. Returns the duration of each call in
/// milliseconds.
async fn load(setting: &Setting<'_>, replicas: &[Gateway], span: Duration) -> Vec<f64> {
    let token = setting.token();
    let mut pace = tokio::time::interval(Duration::from_secs(1) / PER_SECOND);
    let (mut calls, began) = (tokio::task::JoinSet::new(), Instant::now());
    let mut number = 0;
    while began.elapsed() < span {
        pace.tick().await;
        let replica = &replicas[number % replicas.len()];
        let path = ["/agents", "/chats/7", "/contacts", "/chats/7/messages"][number / replicas.len() % 4];
        let asked = replica.http.get(format!("http://{}/v2{path}", replica.clients));
        let asked = asked.header("x-authorization", &token);
        calls.spawn(async move {
            let began = Instant::now();
            let answer = asked.send().await.expect("an answer");
            assert!(answer.status().is_success(), "{answer:?}");
            let _ = answer.bytes().await.expect("a whole answer");
            began.elapsed().as_secs_f64() * 1e3
        });
        number += 1;
    }
    calls.join_all().await
}

/// The activity of a database so far.
struct StoreWork {
    at: Instant,
    transactions: f64,
    cpu_ms: f64,
}

impl StoreWork {
    /// Queries the activity. Numbers of an open session reach the view within a second; each query
    /// adds one or two transactions of its own.
    async fn of(pool: &PgPool) -> StoreWork {
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let sql = "SELECT (xact_commit + xact_rollback)::float8 FROM pg_stat_database WHERE datname = current_database()";
        let transactions = sqlx::query(sql).fetch_one(pool).await.expect("a row").get(0);
        let sql =
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let rows = sqlx::query(sql).fetch_all(pool).await.expect("rows");
        let pids = rows.iter().map(|row| row.get::<i32, _>(0));
        let cpu = pids.filter_map(|pid| crate::gateway::cpu_ms(u32::try_from(pid).ok()?));
        StoreWork { at: Instant::now(), transactions, cpu_ms: cpu.sum() }
    }
}
