//! Stored findings: the gateway creates one by a comparison, and many similar ones are added to the
//! store, for all operations of the pack. Then a gateway starts on that store, is queried for the
//! findings, and continues to compare.

use crate::gateway::{self, Gateway, PATIENCE, Setting};
use crate::table::{self, Row};
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{Row as _, SqlitePool};
use std::path::Path;
use std::time::{Duration, Instant};

/// The operation with the difference, and a request for it.
const OPERATION: &str = "GET /agents/{id}";
const REQUEST: &str = "/agents/203";
/// Number of operations, as in the dual run of a large pack.
const OPERATIONS: usize = 500;
/// Number of rows per statement.
const BATCH: usize = 500;
const MORE: &str = "phases: { 'GET /agents/{id}': shadow }\n\
                    shadow: { noise: 0, priority: normal, findings: 1000000 }\n";

const COLUMNS: [&str; 6] = [
    "start, ms",
    "`/api/diff`, ms",
    "export of an operation with few, ms",
    "export of one with many, ms",
    "CPU per comparison, ms",
    "memory, MiB",
];

pub async fn measure(is_whole: bool) {
    let sizes: &[usize] = if is_whole { &[1_000, 10_000, 100_000, 1_000_000] } else { &[10, 100] };
    let calls = if is_whole { 300 } else { 3 };
    let mut rows = Vec::new();
    for &count in sizes {
        let row = measure_one(count, calls).await;
        eprintln!("findings, {count}: {row:?}");
        rows.push((count, row) as Row);
    }
    table::print("findings kept", &COLUMNS, &rows);
}

async fn measure_one(count: usize, calls: u64) -> Vec<f64> {
    let sandbox = gateway::service().await;
    let rule = json!({"side": "v2", "path": "/agents/{id}", "field": "$.name", "change": {"set": "Only v2"}});
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let differences = format!("http://{}/_sandbox/differences", sandbox.address());
    let planted = http.post(&differences).json(&rule).send().await.expect("an answer");
    assert!(planted.status().is_success(), "{planted:?}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("store.db");
    let setting = Setting::new(&sandbox, format!("sqlite:{}", file.display()), MORE);
    let first = Gateway::start(&setting, folder.path(), "first").await;
    compare(&first, &setting, 1).await;
    first.stop().await;
    fill(&file, count).await;

    let gateway = Gateway::start(&setting, folder.path(), "gateway").await;
    let ready_ms = gateway.ready.as_secs_f64() * 1e3;
    // The first query reads from the disk.
    gateway.admin("/api/diff").await;
    let (_, report_ms) = gateway.admin("/api/diff").await;
    let export = |operation: &str| format!("/api/diff/export?operation={}", operation.replace(' ', "+"));
    let (few, few_ms) = gateway.admin(&export(OPERATION)).await;
    assert!(few.lines().count() >= 1, "what the gateway itself found is among them");
    let (many, many_ms) = gateway.admin(&export(&filler(1))).await;
    assert!(many.lines().count() >= count / OPERATIONS, "{} of {count}", many.lines().count());
    let before = gateway.cpu_ms();
    compare(&gateway, &setting, calls).await;
    let per_comparison = (gateway.cpu_ms() - before) / calls as f64;
    let memory = gateway.anonymous_mib();
    gateway.stop().await;
    sandbox.stop().await;
    vec![ready_ms, report_ms, few_ms, many_ms, per_comparison, memory]
}

/// Sends this number of calls with a difference, and waits until all are counted.
async fn compare(gateway: &Gateway, setting: &Setting<'_>, calls: u64) {
    let wanted = gateway.compared(OPERATION).await + calls;
    for _ in 0..calls {
        let asked = gateway.http.get(format!("http://{}/v2{REQUEST}", gateway.clients));
        let answer = asked.header("x-authorization", setting.token()).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{answer:?}");
        let _ = answer.bytes().await.expect("a whole answer");
    }
    let began = Instant::now();
    while gateway.compared(OPERATION).await < wanted {
        assert!(began.elapsed() < PATIENCE, "what was compared is not counted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn filler(number: usize) -> String {
    format!("GET /filler/{number}")
}

/// Adds this number of copies of the existing finding to the store, each for an operation of its
/// own and older than the one before.
async fn fill(file: &Path, count: usize) {
    let options = SqliteConnectOptions::new().filename(file);
    let pool: SqlitePool = SqlitePoolOptions::new().connect_with(options).await.expect("the store opens");
    let one =
        sqlx::query("SELECT side, kind, at_ms, record, change FROM dual_records").fetch_one(&pool).await;
    let one = one.expect("the gateway kept what it found");
    let (side, kind, record): (String, String, String) = (one.get(0), one.get(1), one.get(3));
    let (at_ms, change): (i64, i64) = (one.get(2), one.get(4));
    let evidence = sqlx::query("SELECT phase, stay, pack, summary, updated_ms FROM dual_evidence")
        .fetch_one(&pool)
        .await;
    let evidence = evidence.expect("the gateway counted it");
    let mut transaction = pool.begin().await.expect("a transaction");
    for number in 0..OPERATIONS.min(count) {
        let added = sqlx::query(
            "INSERT INTO dual_evidence (side, operation, phase, stay, pack, summary, updated_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
        );
        let added = added.bind(&side).bind(filler(number)).bind(evidence.get::<String, _>(0));
        let added = added.bind(evidence.get::<i64, _>(1)).bind(evidence.get::<String, _>(2));
        let added = added.bind(evidence.get::<String, _>(3)).bind(evidence.get::<i64, _>(4));
        added.execute(&mut *transaction).await.expect("a row");
    }
    for start in (0..count).step_by(BATCH) {
        let mut rows = sqlx::QueryBuilder::new(
            "INSERT INTO dual_records (id, side, operation, kind, at_ms, record, change) ",
        );
        rows.push_values(start..count.min(start + BATCH), |mut row, number| {
            row.push_bind(format!("filler-{number}")).push_bind(&side);
            row.push_bind(filler(number % OPERATIONS.min(count))).push_bind(&kind);
            row.push_bind(at_ms - number as i64).push_bind(&record).push_bind(change);
        });
        rows.build().execute(&mut *transaction).await.expect("rows");
    }
    transaction.commit().await.expect("all of them");
    pool.close().await;
}
