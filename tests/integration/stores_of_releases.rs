//! Stores of earlier schemas with sealed rows, one file of rows per schema, which the present program
//! migrates and serves. `make_schema_04.py` generates the first with a second implementation of the
//! sealing of commit c5a7707; `UPDATE_STORES=1` writes that of the present schema.

use crate::support::dual::Dual;
use crate::support::postgres;
use crate::support::raw::{Act, Upstream, exchange};
use crate::support::tokens::sqlite_in;
use serde_json::Value;
use std::path::{Path, PathBuf};
use switchback_gateway::secret::Secret;

/// The sealing key of the stores; it protects nothing.
const KEY: &str = "sbk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

/// The schemas of the files. A schema that no release had is replaced by the next one.
const SCHEMAS: [u32; 2] = [4, 24];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rows(schema: u32) -> PathBuf {
    root().join(format!("tests/integration/stores_of_releases/schema_{schema:02}.sql"))
}

/// The migrations for a kind of database, each with its number.
fn migrations(kind: &str) -> Vec<(u32, PathBuf)> {
    let folder = root().join("crates/gateway/src/store/migrations").join(kind);
    let entries = std::fs::read_dir(folder).expect("it is part of the project");
    let number = |path: &Path| path.file_name()?.to_str()?.split('_').next()?.parse().ok();
    let paths = entries.map(|entry| entry.expect("readable").path());
    paths.map(|path| (number(&path).expect("a number"), path)).collect()
}

/// Writes the store at `url`, as a program of that schema left it.
async fn write(url: &str, folder: &Path, schema: u32) {
    let kind = if url.starts_with("sqlite:") { "sqlite" } else { "postgres" };
    let sources = folder.join(format!("{kind}-{schema}"));
    std::fs::create_dir(&sources).expect("made");
    for (_, source) in migrations(kind).into_iter().filter(|(number, _)| *number <= schema) {
        std::fs::copy(&source, sources.join(source.file_name().expect("a name"))).expect("copied");
    }
    let migrator = sqlx::migrate::Migrator::new(sources).await.expect("migrations");
    let rows = std::fs::read_to_string(rows(schema)).expect("it is part of the project");
    if kind == "sqlite" {
        let pool = sqlx::SqlitePool::connect(&format!("{url}?mode=rwc")).await.expect("the file is made");
        migrator.run(&pool).await.expect("migrated");
        sqlx::raw_sql(sqlx::AssertSqlSafe(rows)).execute(&pool).await.expect("written");
        pool.close().await;
    } else {
        // The same bytes, as PostgreSQL writes them.
        let rows = rows.replace("x'", "'\\x").replace("X'", "'\\x");
        let pool = sqlx::PgPool::connect(url).await.expect("connects");
        migrator.run(&pool).await.expect("migrated");
        sqlx::raw_sql(sqlx::AssertSqlSafe(rows)).execute(&pool).await.expect("written");
        pool.close().await;
    }
}

/// Returns statements that write the rows of a SQLite store into an empty one.
async fn dump(url: &str) -> String {
    let pool = sqlx::SqlitePool::connect(url).await.expect("the file opens");
    let lines = async |sql: String| -> Vec<String> {
        let found = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_all(&pool).await;
        found.expect("it can be read")
    };
    let tables = "SELECT name FROM sqlite_master WHERE type = 'table' \
                  AND name NOT LIKE 'sqlite%' AND name NOT LIKE '_sqlx%' ORDER BY rowid";
    let tables = lines(tables.to_owned()).await;
    let mut text = "-- Written by stores_of_releases.rs; the sealing key is in that file.\n".to_owned();
    // Tables that a migration fills.
    for table in tables.iter().rev() {
        text.push_str(&format!("DELETE FROM {table};\n"));
    }
    for table in &tables {
        let columns = lines(format!("SELECT name FROM pragma_table_info('{table}')")).await;
        let values = columns.iter().map(|column| format!("quote({column})")).collect::<Vec<_>>();
        let rows = format!(
            "SELECT 'INSERT INTO {table} ({}) VALUES (' || {} || ');' AS line FROM {table} ORDER BY line",
            columns.join(", "),
            values.join(" || ', ' || ")
        );
        for line in lines(rows).await {
            text.push_str(&line);
            text.push('\n');
        }
    }
    pool.close().await;
    text
}

async fn asked(at: std::net::SocketAddr, line: &str, token: &str) -> u16 {
    let request = format!("{line} HTTP/1.1\r\nhost: g\r\nx-authorization: Bearer {token}\r\n\r\n");
    exchange(at, request).await.expect("an answer").status
}

async fn is_migrated_and_served(store: String, folder: &Path, schema: u32) {
    write(&store, folder, schema).await;
    let agents = r#"[{"id":1,"name":"Ana"}]"#;
    let new = Upstream::start(vec![Act::json(200, agents)]).await;
    let old = Upstream::start(vec![Act::json(200, "{}")]).await;
    let authority = Upstream::start(vec![Act::json(400, r#"{"error":"invalid_grant"}"#)]).await;
    let dual = Dual::sealed_with(Secret::from(KEY), &store);
    let at = authority.address;
    // Its operations are in `legacy` but for those that were moved.
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0, token: {} }}\nstore: '{store}'\nkey: ${{TEST_KEY}}\n\
         upstreams: {{ v3: {{ url: 'http://{}/v3' }}, v2: {{ url: 'http://{}/v2' }} }}\n\
         settings: {{ agents: {{ max_chats: 5 }} }}\nphases: {{ default: legacy }}\n\
         oauth: {{ authorize_url: 'http://{at}/a', token_url: 'http://{at}/t', redirect_url: 'http://{at}/r' }}\n",
        crate::support::dual::ADMIN_TOKEN,
        new.address,
        old.address,
    );
    std::fs::write(dual.file(), text).expect("written");
    let gateway = dual.start().await;

    // A call with a token of that time is made with the access token and the phase of that time.
    assert_eq!(asked(gateway.address, "GET /v2/agents", "old-token-of-acme").await, 200);
    let seen = new.seen();
    let call = seen.first().expect("the new service is called");
    assert!(call.head.contains("access-of-acme-3"), "{}", call.head);
    assert_eq!(asked(gateway.address, "GET /v2/agents", "any-side-token-of-acme").await, 200);
    assert_eq!(
        asked(gateway.address, "GET /v2/departments", "old-token-of-acme").await,
        200,
        "by the old service"
    );
    assert!(!old.seen().is_empty());
    assert_eq!(asked(gateway.address, "GET /v2/agents", "new-token-of-branch").await, 200);
    assert_eq!(asked(gateway.address, "GET /v2/agents", "rotated-token-of-branch").await, 401);
    assert_eq!(asked(gateway.address, "GET /v2/agents", "old-token-of-lost").await, 503);

    // Added by the program that wrote the file: its rows are bound to each other by a hash.
    if schema > 4 {
        assert_eq!(asked(gateway.address, "GET /v2/agents", LATE_TOKEN).await, 200);
        let seen = new.seen();
        assert!(seen.last().expect("called").head.contains("credential-of-late"), "{seen:?}");
    }

    let (status, clients) = gateway.admin("GET /api/clients", &Value::Null).await;
    assert_eq!(status, 200, "{clients}");
    let state = |name: &str| {
        let all = clients.as_array().expect("a list");
        let client = all.iter().find(|client| client["name"] == name).expect(name);
        (client["grant"]["state"].clone(), client["damaged"].clone(), client["company"].clone())
    };
    assert_eq!(state("acme"), ("active".into(), false.into(), Value::Null), "{clients}");
    assert_eq!(state("branch").2, "42", "{clients}");
    assert_eq!(state("lost").0, "needs_reconnect", "{clients}");
    assert!(clients.to_string().contains("revoked_at\":\"2026"), "{clients}");

    let (_, phases) = gateway.admin("GET /api/phases", &Value::Null).await;
    let phase = |operation: &str| {
        let all = phases.as_array().expect("a list");
        all.iter().find(|one| one["operation"] == operation).expect(operation).clone()
    };
    assert_eq!(phase("GET /agents")["phase"], "translated", "{phases}");
    assert_eq!(
        (&phase("GET /chats")["phase"], &phase("GET /chats")["share"]),
        (&"canary".into(), &0.25.into())
    );
    let (_, transitions) = gateway.admin("GET /api/phases/transitions", &Value::Null).await;
    assert_eq!(transitions.as_array().map(Vec::len), Some(2), "{transitions}");
    assert!(transitions.to_string().contains("0 of 500 differed"), "{transitions}");
    let (status, report) = gateway.admin("GET /api/diff", &Value::Null).await;
    assert_eq!(status, 200, "{report}");
    // Migration 0016: evidence of then took unsettled differences for equal answers.
    assert_eq!(report["operations"], Value::Array(Vec::new()), "counting begins anew: {report}");

    let store = dual.opened_store().await;
    let acme = store.client("acme").await.expect("there");
    let row = store.grant_of(&acme.id).await.expect("there");
    let secrets = row.secrets.expect("they open");
    let text = |secret: &Option<Secret<String>>| secret.as_ref().map(|secret| secret.expose().clone());
    assert_eq!(text(&secrets.app_secret).as_deref(), Some("secret-of-acme"));
    assert_eq!(text(&secrets.refresh).as_deref(), Some("refresh-of-acme-3"));
    let credential = store.credential_of(&acme.id, "v2").await.expect("it answers").expect("there");
    assert_eq!(credential.expose(), "credential-of-acme-for-v2");
    let steps = store.resume_get(&acme.id, b"a piece of work").await.expect("it answers");
    assert_eq!(steps.len(), 1, "half-done work goes on");
    store.close().await;
}

/// The token of a client that was added to the store of schema 4 by a program of a later one.
const LATE_TOKEN: &str = "old-token-of-late";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_each_release_is_migrated_and_served() {
    for schema in SCHEMAS {
        let folder = tempfile::tempdir().expect("a temporary folder");
        is_migrated_and_served(sqlite_in(folder.path()), folder.path(), schema).await;
        if let Some(store) = postgres::database() {
            is_migrated_and_served(store, folder.path(), schema).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_present_schema_is_among_them() {
    let newest = migrations("sqlite").into_iter().map(|(number, _)| number).max().expect("some");
    if std::env::var_os("UPDATE_STORES").is_some() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = sqlite_in(folder.path());
        write(&store, folder.path(), 4).await;
        let dual = Dual::sealed_with(Secret::from(KEY), &store);
        let text = format!(
            "store: '{store}'\nkey: ${{TEST_KEY}}\nupstreams: {{ v3: {{ url: 'http://127.0.0.1:9/v3' }} }}\n"
        );
        std::fs::write(dual.file(), text).expect("written");
        let secret = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).expect("written");
            format!("file:{}", file.display())
        };
        let token = secret("token", LATE_TOKEN);
        let credential = format!("v3={}", secret("credential", "credential-of-late"));
        let words = [
            "client",
            "add",
            "late",
            "--by",
            "operator",
            "--side",
            "v2",
            "--token",
            &token,
            "--credential",
            &credential,
        ];
        let (code, out, err) = dual.cli(&words).await;
        assert_eq!(code, Some(0), "{out}{err}");
        std::fs::write(rows(newest), dump(&store).await).expect("written");
    }
    assert!(
        SCHEMAS.contains(&newest) && rows(newest).exists(),
        "schema {newest} has no file: add it to SCHEMAS, and run this test with UPDATE_STORES=1"
    );
}
