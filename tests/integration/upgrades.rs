//! Upgrades of replicas on one store, and the commands of `docs/UPGRADES.md` for backups.

use crate::support::dual::Dual;
use crate::support::postgres;
use crate::support::raw::{Act, Upstream, exchange};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

const TOKEN: &str = "old-token-of-acme";

/// Writes a configuration without clients and authorization server.
fn configure(dual: &Dual, service: SocketAddr) {
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0, token: {} }}\nstore: '{}'\nkey: ${{TEST_KEY}}\n\
         upstreams: {{ v3: {{ url: 'http://{service}/v3' }} }}\nsettings: {{ agents: {{ max_chats: 5 }} }}\n",
        crate::support::dual::ADMIN_TOKEN,
        dual.store,
    );
    std::fs::write(dual.file(), text).expect("written");
}

/// Adds a client with a sealed credential by the command line.
async fn add_client(dual: &Dual, name: &str, token: &str) {
    let secret = |file: &str, text: &str| {
        let file = dual.folder.path().join(file);
        std::fs::write(&file, text).expect("written");
        format!("file:{}", file.display())
    };
    let credential = format!("v3={}", secret("credential", &format!("credential-of-{name}")));
    let token = secret("token", token);
    let words = ["client", "add", name, "--side", "v2", "--token", &token, "--credential", &credential];
    let (code, out, err) = dual.cli(&words).await;
    assert_eq!(code, Some(0), "{out}{err}");
}

async fn asked(at: SocketAddr, token: &str) -> u16 {
    let request = format!("GET /v2/agents HTTP/1.1\r\nhost: g\r\nx-authorization: Bearer {token}\r\n\r\n");
    exchange(at, request).await.expect("an answer").status
}

async fn agents() -> Upstream {
    Upstream::start(vec![Act::json(200, r#"[{"id":1,"name":"Ana"}]"#)]).await
}

/// Migrates a PostgreSQL store as a later release may: every table gets a column.
async fn migrate_further(url: &str) {
    let pool = sqlx::PgPool::connect(url).await.expect("connects");
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' AND tablename <> '_sqlx_migrations'";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&pool).await.expect("they are listed");
    assert!(tables.len() > 20, "{tables:?}");
    for table in tables {
        let sql = format!("ALTER TABLE {table} ADD COLUMN of_the_next_release BIGINT NOT NULL DEFAULT 0");
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&pool).await.expect("altered");
    }
    let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
               VALUES (9999, 'of the next release', TRUE, '\\x00', 1)";
    sqlx::query(sql).execute(&pool).await.expect("written");
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_serves_on_while_a_later_program_migrates_and_none_starts_afterwards() {
    let Some(url) = postgres::database() else { return };
    let service = agents().await;
    let dual = Dual::sealed_with(switchback_gateway::store::seal::SealingKey::generate(), &url);
    configure(&dual, service.address);
    add_client(&dual, "acme", TOKEN).await;
    let gateway = dual.start().await;
    assert_eq!(asked(gateway.address, TOKEN).await, 200);

    migrate_further(&url).await;
    assert_eq!(asked(gateway.address, TOKEN).await, 200);
    let client = json!({"name": "late", "side": "v2", "token": "old-token-of-late"});
    assert_eq!(gateway.admin("POST /api/clients", &client).await.0, 201);
    let phase = json!({"operation": "GET /agents", "phase": "translated"});
    assert_eq!(gateway.admin("POST /api/phases", &phase).await.0, 200);
    for path in ["clients", "phases", "phases/transitions", "diff", "usage", "brownouts", "packs", "status"] {
        let (status, said) = gateway.admin(&format!("GET /api/{path}"), &Value::Null).await;
        assert_eq!(status, 200, "{path}: {said}");
    }
    let history = gateway.admin_text("GET /history/export.json", &Value::Null).await;
    assert_eq!(history.status, 200, "{}", history.text());
    let (status, said) = gateway.admin("POST /api/clients/acme/revoke", &Value::Null).await;
    assert_eq!(status, 200, "{said}");
    assert_eq!(asked(gateway.address, TOKEN).await, 401);

    let other = dual.beside();
    configure(&other, service.address);
    for words in [&["serve"][..], &["client", "list"]] {
        let (code, _, said) = other.cli(words).await;
        assert_eq!(code, Some(3), "{words:?}: {said}");
        let reason =
            "the store has schema version 9999, which this program is too old for; nothing was changed";
        assert!(said.contains(reason), "{words:?}: {said}");
    }
}

/// Replicas of the release before work with a migrated store only if nothing of theirs is changed.
#[test]
fn later_migrations_only_add() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/gateway/src/store/migrations");
    for kind in ["sqlite", "postgres"] {
        let entries = std::fs::read_dir(folder.join(kind)).expect("it is part of the project");
        for path in entries.map(|entry| entry.expect("readable").path()) {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            // Those up to 0.2.0 stay as they are; no release had an earlier one.
            if name.as_str() < "0025" {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("readable");
            assert!(only_adds(&text), "{kind}/{name}");
        }
    }
    assert!(only_adds("-- Of x.\nCREATE TABLE a (b TEXT);\nCREATE INDEX c ON a (b);\n"));
    assert!(only_adds(
        "ALTER TABLE a ADD COLUMN b TEXT;\nALTER TABLE a ADD COLUMN c TEXT NOT NULL DEFAULT '';\n"
    ));
    for text in [
        "ALTER TABLE a ADD COLUMN b TEXT NOT NULL;",
        "DROP INDEX a;",
        "DELETE FROM a;",
        "UPDATE a SET b = 1;",
    ] {
        assert!(!only_adds(text), "{text}");
    }
}

fn only_adds(text: &str) -> bool {
    let code: String =
        text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect::<Vec<_>>().join(" ");
    code.split(';').map(str::trim).filter(|statement| !statement.is_empty()).all(|statement| {
        let is_column = statement.starts_with("ALTER TABLE ") && statement.contains(" ADD COLUMN ");
        statement.starts_with("CREATE TABLE ")
            || statement.starts_with("CREATE INDEX ")
            || (is_column && (!statement.contains("NOT NULL") || statement.contains(" DEFAULT ")))
    })
}

/// Runs the command of the page that begins like this in `folder`, with the program and a database.
fn run(folder: &Path, begins: &str, key: &str, database: &str) -> String {
    let page = include_str!("../../docs/UPGRADES.md");
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let command = blocks.into_iter().find(|block| block.starts_with(begins)).expect(begins);
    let program = Path::new(env!("CARGO_BIN_EXE_switchback")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-e", "-c", command])
        .current_dir(folder)
        .envs([("PATH", path.as_str()), ("DATABASE_URL", database), ("SWITCHBACK_KEY", key)])
        .output()
        .expect("sh runs");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command}: {text}");
    text
}

fn is_installed(program: &str) -> bool {
    let is_there =
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("SKIPPED: {program} is not installed");
    }
    is_there
}

/// Backs a store up while its gateway serves, changes it, restores it, and serves from it.
async fn is_restored(dual: Dual, key: &str, [backup, restore]: [&str; 2]) {
    let service = agents().await;
    configure(&dual, service.address);
    add_client(&dual, "acme", TOKEN).await;
    let gateway = dual.start().await;
    assert_eq!(asked(gateway.address, TOKEN).await, 200);
    let (folder, store) = (dual.folder.path(), dual.store.clone());
    run(folder, backup, key, &store);
    if backup.starts_with("sqlite3") {
        assert!(run(folder, "switchback client list", key, "").contains("acme"));
    }
    let (status, said) = gateway.admin("POST /api/clients/acme/revoke", &Value::Null).await;
    assert_eq!(status, 200, "{said}");
    assert_eq!(asked(gateway.address, TOKEN).await, 401);
    drop(gateway);

    run(folder, restore, key, &store);
    let gateway = dual.start().await;
    assert_eq!(asked(gateway.address, TOKEN).await, 200);
    let seen = service.seen();
    assert!(seen.last().expect("called").head.contains("credential-of-acme"), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_restored_from_its_backup_as_the_page_says() {
    let key = switchback_gateway::store::seal::SealingKey::generate();
    if is_installed("sqlite3") {
        let mut dual = Dual::sealed_with(key.clone(), "");
        dual.store = format!("sqlite:{}/switchback.db", dual.folder.path().display());
        is_restored(dual, key.expose(), ["sqlite3", "mv "]).await;
    }
    if let Some(url) = postgres::database()
        && is_installed("pg_dump")
    {
        let dual = Dual::sealed_with(key.clone(), &url);
        is_restored(dual, key.expose(), ["pg_dump", "pg_restore"]).await;
    }
}
