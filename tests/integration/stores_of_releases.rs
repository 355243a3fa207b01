//! A store of commit c5a7707 with schema version 4: migrations 0001 to 0004, and
//! `stores_of_releases/schema_04.sql`, which `make_schema_04.py` in that folder generates with a second
//! implementation of that commit's sealing. The present program migrates and serves it.

use crate::support::dual::Dual;
use crate::support::postgres;
use crate::support::raw::{Act, Upstream, exchange};
use crate::support::tokens::sqlite_in;
use serde_json::Value;
use std::path::Path;
use switchback_gateway::secret::Secret;

/// The sealing key of the store; it protects nothing.
const KEY: &str = "sbk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const MIGRATIONS: [&str; 4] =
    ["0001_clients_and_grants", "0002_tokens_and_credentials_of_sides", "0003_phases", "0004_dual_run"];

/// Writes the store at `url`, as that commit left it.
async fn write(url: &str, folder: &Path) {
    let kind = if url.starts_with("sqlite:") { "sqlite" } else { "postgres" };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schema = folder.join(kind);
    std::fs::create_dir(&schema).expect("made");
    for name in MIGRATIONS {
        let file = format!("{name}.sql");
        let source = root.join("crates/gateway/src/store/migrations").join(kind).join(&file);
        std::fs::copy(source, schema.join(file)).expect("copied");
    }
    let migrator = sqlx::migrate::Migrator::new(schema).await.expect("four migrations");
    let rows = root.join("tests/integration/stores_of_releases/schema_04.sql");
    let rows = std::fs::read_to_string(rows).expect("it is part of the project");
    if kind == "sqlite" {
        let pool = sqlx::SqlitePool::connect(&format!("{url}?mode=rwc")).await.expect("the file is made");
        migrator.run(&pool).await.expect("migrated");
        sqlx::raw_sql(sqlx::AssertSqlSafe(rows)).execute(&pool).await.expect("written");
        pool.close().await;
    } else {
        // The same bytes, as PostgreSQL writes them.
        let rows = rows.replace("x'", "'\\x");
        let pool = sqlx::PgPool::connect(url).await.expect("connects");
        migrator.run(&pool).await.expect("migrated");
        sqlx::raw_sql(sqlx::AssertSqlSafe(rows)).execute(&pool).await.expect("written");
        pool.close().await;
    }
}

async fn asked(at: std::net::SocketAddr, line: &str, token: &str) -> u16 {
    let request = format!("{line} HTTP/1.1\r\nhost: g\r\nx-authorization: Bearer {token}\r\n\r\n");
    exchange(at, request).await.expect("an answer").status
}

async fn is_migrated_and_served(store: String, folder: &Path) {
    write(&store, folder).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_schema_4_is_migrated_and_served() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    is_migrated_and_served(sqlite_in(folder.path()), folder.path()).await;
    if let Some(store) = postgres::database() {
        is_migrated_and_served(store, folder.path()).await;
    }
}
