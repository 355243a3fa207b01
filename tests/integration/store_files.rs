//! The store from an operator's view: keys, damage, versions, and the readable data on the disk.

use crate::support::authority::{Authority, secret};
use crate::support::postgres;
use crate::support::tokens::{Gateway, NEW_YEAR, OLD_TOKEN, acme, key, ring, sqlite_in};
use std::path::Path;
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_gateway::store::seal::{HashOf, KeyRing, SealContext, SealError};
use switchback_gateway::store::{
    ArchiveOwner, Begin, Finish, GrantRow, GrantState, MissingStore, NewEntries, NewTokens, Store, StoreError,
};
use switchback_gateway::token::{CredentialState, NewCredential, RefreshSettings, Registry, Tokens};

/// Addresses of an empty store in each database there is.
fn stores(folder: &Path) -> Vec<String> {
    [Some(sqlite_in(folder)), postgres::database()].into_iter().flatten().collect()
}

fn tokens_numbered(number: u32) -> NewTokens {
    NewTokens {
        access: format!("access-{number}").as_str().into(),
        refresh: Some(format!("refresh-{number}").as_str().into()),
        previous_refresh: None,
        issued_ms: NEW_YEAR,
        lifetime_ms: Some(3_600_000),
    }
}

async fn enrolled(url: &str, key: &switchback_gateway::secret::Secret<String>) -> (Store, GrantRow) {
    let store = Store::open(url, ring(&[key]), Clock::paused_at(NEW_YEAR), MissingStore::Create)
        .await
        .expect("opens");
    let registry = Registry::new(store.clone(), None);
    registry.add(acme("refresh-0")).await.expect("added");
    let client = store.client("acme").await.expect("there");
    let row = store.grant_of(&client.id).await.expect("there");
    (store, row)
}

#[tokio::test]
async fn a_wrong_key_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for url in stores(folder.path()) {
        let (right, wrong) = (key(), key());
        let (store, before) = enrolled(&url, &right).await;
        let change = store.change().await.expect("answers");
        store.close().await;
        let file = folder.path().join("store.db");
        let bytes = std::fs::read(&file).ok();
        let refused = Store::open(&url, ring(&[&wrong]), Clock::machine(), MissingStore::Create)
            .await
            .expect_err("refused");
        assert!(matches!(refused, StoreError::WrongKey(_)), "{refused}");
        assert!(refused.to_string().contains("nothing was changed"), "{refused}");
        assert_eq!(std::fs::read(&file).ok(), bytes, "not a byte");
        // The right one behind a wrong one is a rotation, not a mistake; the store learns of the new key.
        let store =
            Store::open(&url, ring(&[&right]), Clock::machine(), MissingStore::Refuse).await.expect("opens");
        assert_eq!(store.change().await.expect("answers"), change);
        assert_eq!(store.grant_of(&before.key.client).await.expect("there").generation, before.generation);
        store.close().await;
    }
}

#[tokio::test]
async fn a_key_is_rotated_while_everything_stays_readable() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for url in stores(folder.path()) {
        let (old, new) = (key(), key());
        let (store, row) = enrolled(&url, &old).await;
        store
            .resume_put(&row.key.client, b"work", "first", b"bytes", Duration::from_secs(60))
            .await
            .expect("stored");
        let both = Store::open(&url, ring(&[&new, &old]), Clock::paused_at(NEW_YEAR), MissingStore::Refuse)
            .await
            .expect("opens");
        let credential = NewCredential { side: "v2".to_owned(), token: secret("credential-of-acme") };
        Registry::new(store.clone(), None).set_credential("acme", credential).await.expect("set");
        // In between, both keys are in use: the new one seals, both read.
        both.connect_grant(&row.key, &tokens_numbered(1)).await.expect("stored");
        assert!(both.grant_of(&row.key.client).await.expect("there").secrets.is_ok());
        let done = both.reseal().await.expect("sealed anew");
        assert!(done.values >= 6 && done.retired.len() == 1, "{done:?}");
        // A process that still seals with the retired key must not write data that no key can open.
        let refused = store.connect_grant(&row.key, &tokens_numbered(2)).await.expect_err("refused");
        assert!(matches!(refused, StoreError::KeyRetired(_)), "{refused}");
        store.close().await;
        both.close().await;
        let refused = Store::open(&url, ring(&[&old]), Clock::machine(), MissingStore::Refuse)
            .await
            .expect_err("retired");
        assert!(matches!(refused, StoreError::WrongKey(_)), "{refused}");
        let after = Store::open(&url, ring(&[&new]), Clock::paused_at(NEW_YEAR), MissingStore::Refuse)
            .await
            .expect("opens");
        let secrets = after.grant_of(&row.key.client).await.expect("there").secrets.expect("opens");
        assert_eq!(secrets.access.expect("kept").expose(), "access-1");
        let steps = after.resume_get(&row.key.client, b"work").await.expect("opens");
        assert_eq!(steps[0].1.expose(), b"bytes");
        // Old tokens are found by the same keyed hash as before.
        let tokens = Tokens::open(after.clone(), None, RefreshSettings::default()).await.expect("opens");
        let client = tokens.clients().authenticate(OLD_TOKEN.as_bytes(), "v2").expect("selects");
        let header = client
            .fixed_token("v2")
            .and_then(|token| token.header(&switchback_plan::Scheme::Word("Bearer".to_owned())))
            .expect("opens");
        assert_eq!(header.to_str().ok(), Some("Bearer credential-of-acme"));
        after.close().await;
    }
}

#[tokio::test]
async fn a_row_copied_to_another_client_or_changed_by_a_bit_does_not_open() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    client.grant.access_token().await.expect("connected");
    let mut other = acme("refresh-of-other");
    (other.name, other.tokens) = ("other".to_owned(), vec![secret("token-of-other").into()]);
    Registry::new(gateway.store.clone(), None).add(other).await.expect("added");
    let thief = sqlx::SqlitePool::connect(&gateway.url).await.expect("the file opens");
    let copy = "UPDATE grants SET change = change + 1000, access = (SELECT access FROM grants WHERE access IS NOT NULL), \
                state = 'active' WHERE access IS NULL";
    assert_eq!(sqlx::query(copy).execute(&thief).await.expect("written").rows_affected(), 1);
    let stolen = gateway.store.client("other").await.expect("there");
    let row = gateway.store.grant_of(&stolen.id).await.expect("there");
    assert_eq!(row.secrets.expect_err("shut"), SealError::Broken);
    // The gateway reports it, and continues for the others.
    let change = "UPDATE change_counter SET value = value + 2000";
    sqlx::query(change).execute(&thief).await.expect("written");
    gateway.tokens.sync().await.expect("the store answers");
    let stolen = gateway.tokens.clients().by_name("other").expect("there");
    assert_eq!(stolen.grant.state(), GrantState::NeedsReconnect);
    assert!(stolen.grant.access_token().await.is_err());
    assert!(client.grant.access_token().await.is_ok());
    let flip = "UPDATE grants SET refresh = CAST(x'00' || substr(refresh, 2) AS BLOB)";
    sqlx::query(flip).execute(&thief).await.expect("written");
    let row = gateway.store.grant_of(&client.id).await.expect("there");
    assert_eq!(row.secrets.expect_err("shut"), SealError::Broken);
    thief.close().await;
}

#[tokio::test]
async fn no_secret_can_be_read_off_the_disk() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let client = gateway.client();
    client.grant.access_token().await.expect("connected");
    let credential = NewCredential { side: "v2".to_owned(), token: secret("credential-canary") };
    Registry::new(gateway.store.clone(), None).set_credential("acme", credential).await.expect("set");
    let steps = b"step-canary";
    gateway
        .store
        .resume_put(&client.id, b"key-canary", "s", steps, Duration::from_secs(60))
        .await
        .expect("stored");
    let mut seen = 0;
    for entry in std::fs::read_dir(gateway.folder.path()).expect("a folder") {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("a file");
        seen += bytes.len();
        assert!(!bytes.windows(6).any(|window| window == b"canary"), "in {}", path.display());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{} is for its owner only", path.display());
        }
    }
    assert!(seen > 4096, "there was something to look at");
}

#[tokio::test]
async fn a_store_of_a_newer_program_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (url, key) = (sqlite_in(folder.path()), key());
    let (store, _) = enrolled(&url, &key).await;
    store.close().await;
    let newer = sqlx::SqlitePool::connect(&url).await.expect("the file opens");
    let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
               VALUES (9999, 'from the future', TRUE, x'00', 1)";
    sqlx::query(sql).execute(&newer).await.expect("written");
    newer.close().await;
    let before = std::fs::read(folder.path().join("store.db")).expect("there");
    let refused =
        Store::open(&url, ring(&[&key]), Clock::machine(), MissingStore::Refuse).await.expect_err("refused");
    assert!(matches!(refused, StoreError::NewerSchema(9999)), "{refused}");
    assert_eq!(std::fs::read(folder.path().join("store.db")).expect("there"), before);
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (url, key) = (sqlite_in(folder.path()), key());
    let (store, _) = enrolled(&url, &key).await;
    store.close().await;
    let file = folder.path().join("store.db");
    let mut bytes = std::fs::read(&file).expect("there");
    let length = bytes.len();
    bytes[4096..length].fill(0x5a);
    std::fs::write(&file, &bytes).expect("written");
    let opened = Store::open(&url, ring(&[&key]), Clock::machine(), MissingStore::Refuse).await;
    let refused = match opened {
        Err(refused) => refused,
        Ok(store) => store.take_gateway_role().await.expect_err("refused"),
    };
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused}");
    assert_eq!(std::fs::read(&file).expect("there"), bytes, "not a byte was written");
    std::fs::write(&file, b"this is no database, it is a letter to a friend, and long enough to look at")
        .expect("written");
    let refused =
        Store::open(&url, ring(&[&key]), Clock::machine(), MissingStore::Refuse).await.expect_err("refused");
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused}");
}

#[tokio::test]
async fn an_entry_of_an_archive_opens_for_its_owner_under_its_key_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for url in stores(folder.path()) {
        let clock = Clock::paused_at(NEW_YEAR);
        let store =
            Store::open(&url, ring(&[&key()]), clock.clone(), MissingStore::Create).await.expect("opens");
        let owner =
            |client: &str, account: &str| ArchiveOwner { client: client.into(), account: account.into() };
        let (acme, branch, other) = (owner("a", ""), owner("a", "2"), owner("b", ""));
        let keys: Vec<String> = (0..70).map(|number| number.to_string()).collect();
        let entries: Vec<_> = keys
            .iter()
            .step_by(2)
            .map(|key| (key.clone(), Some(format!("{key}-canary").into_bytes())))
            .collect();
        store.archive_put(&acme, &NewEntries { archive: "things", entries: &entries }).await.expect("kept");
        clock.advance(Duration::from_secs(60));
        let mark = [("0".to_owned(), None)];
        store.archive_put(&acme, &NewEntries { archive: "marks", entries: &mark }).await.expect("kept");

        let found = store.archive_get(&acme, "things", &keys).await.expect("opens");
        for (at, entry) in found.iter().enumerate() {
            let value =
                entry.as_ref().and_then(|entry| entry.value.as_ref()).map(|value| value.expose().clone());
            assert_eq!(value, (at % 2 == 0).then(|| format!("{at}-canary").into_bytes()), "{at}");
            assert!(entry.as_ref().is_none_or(|entry| entry.kept_ms == NEW_YEAR));
        }
        let marks = store.archive_get(&acme, "marks", &keys[..2]).await.expect("opens");
        assert!(
            matches!(&marks[..], [Some(mark), None] if mark.value.is_none() && mark.kept_ms == NEW_YEAR + 60_000)
        );
        for (owner, archive) in [(&branch, "things"), (&other, "things"), (&acme, "others")] {
            let found = store.archive_get(owner, archive, &keys).await.expect("answers");
            assert!(found.iter().all(Option::is_none), "{owner:?} {archive}");
        }
        let counts = store.archive_counts(Some("a")).await.expect("answers");
        let counts: Vec<_> = counts.iter().map(|count| (count.archive.as_str(), count.entries)).collect();
        assert_eq!(counts, [("marks", 1), ("things", 35)]);

        assert_eq!(store.archive_clear(&acme, "things", &keys[..3]).await.expect("cleared"), 2);
        assert_eq!(store.archive_clear(&other, "things", &[]).await.expect("cleared"), 0);
        assert_eq!(store.archive_clear(&acme, "things", &[]).await.expect("cleared"), 33);
        assert!(store.archive_get(&acme, "marks", &keys[..1]).await.expect("opens")[0].is_some());
        store.close().await;
    }
}

#[tokio::test]
async fn an_entry_that_was_copied_to_another_client_or_key_does_not_open() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = sqlite_in(folder.path());
    let store = Store::open(&url, ring(&[&key()]), Clock::paused_at(NEW_YEAR), MissingStore::Create)
        .await
        .expect("opens");
    let owner = |client: &str| ArchiveOwner { client: client.into(), account: String::new() };
    let entry = |text: &str| [("7".to_owned(), Some(text.as_bytes().to_vec()))];
    for (client, text) in [("a", "canary of a"), ("b", "canary of b")] {
        let entries = entry(text);
        store
            .archive_put(&owner(client), &NewEntries { archive: "things", entries: &entries })
            .await
            .expect("kept");
    }
    for file in ["store.db", "store.db-wal"] {
        let bytes = std::fs::read(folder.path().join(file)).unwrap_or_default();
        assert!(!bytes.windows(6).any(|window| window == b"canary"), "{file}");
    }
    let thief = sqlx::SqlitePool::connect(&url).await.expect("the file opens");
    let copy = "UPDATE archive_entries SET sealed = (SELECT sealed FROM archive_entries WHERE client = 'b') WHERE client = 'a'";
    sqlx::query(copy).execute(&thief).await.expect("written");
    let keys = ["7".to_owned()];
    let refused = store.archive_get(&owner("a"), "things", &keys).await.expect_err("it does not open");
    assert!(matches!(refused, StoreError::Seal(SealError::Broken)), "{refused}");
    // A complete row of another client is not found, because its place is a keyed hash of its owner.
    sqlx::query("DELETE FROM archive_entries WHERE client = 'a'").execute(&thief).await.expect("written");
    sqlx::query("UPDATE archive_entries SET client = 'a'").execute(&thief).await.expect("written");
    assert!(store.archive_get(&owner("a"), "things", &keys).await.expect("answers")[0].is_none());
    thief.close().await;
}

#[tokio::test]
async fn half_done_work_is_remembered_per_client_and_for_a_while() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for url in stores(folder.path()) {
        let clock = Clock::paused_at(NEW_YEAR);
        let store =
            Store::open(&url, ring(&[&key()]), clock.clone(), MissingStore::Create).await.expect("opens");
        let minute = Duration::from_secs(60);
        store.resume_put("a", b"work", "first", b"1", minute).await.expect("stored");
        store.resume_put("a", b"work", "second", b"2", minute).await.expect("stored");
        store.resume_put("a", b"work", "second", b"two", minute).await.expect("replaced");
        store.resume_put("b", b"work", "first", b"other client", minute).await.expect("stored");
        let steps = store.resume_get("a", b"work").await.expect("opens");
        let steps: Vec<_> =
            steps.iter().map(|(step, bytes)| (step.as_str(), bytes.expose().as_slice())).collect();
        assert_eq!(steps, [("first", &b"1"[..]), ("second", &b"two"[..])]);
        assert!(store.resume_get("a", b"other work").await.expect("opens").is_empty());
        store.resume_clear("a", b"work").await.expect("cleared");
        assert!(store.resume_get("a", b"work").await.expect("opens").is_empty());
        clock.advance(minute);
        assert!(store.resume_get("b", b"work").await.expect("opens").is_empty(), "expired");
        assert_eq!(store.sweep().await.expect("swept"), 1);
        store.close().await;
    }
}

#[tokio::test]
async fn a_write_for_a_generation_that_has_passed_changes_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for url in stores(folder.path()) {
        let (store, row) = enrolled(&url, &key()).await;
        let lease = Duration::from_secs(60);
        let begun = store.begin_refresh(&row.key, row.generation, "one", lease).await.expect("answers");
        assert!(matches!(begun, Begin::Started(_)));
        let seen = store.grant_of(&row.key.client).await.expect("there");
        assert!(seen.outcome_unknown, "the intent is there for all to see");
        let finished =
            store.finish_refresh(&row.key, row.generation, &tokens_numbered(1)).await.expect("answers");
        assert!(
            matches!(finished, Finish::Stored(now) if now.generation == row.generation + 1 && !now.outcome_unknown)
        );
        // Any late writer finds that the grant has changed.
        let late =
            store.finish_refresh(&row.key, row.generation, &tokens_numbered(2)).await.expect("answers");
        let Finish::Moved(now) = late else { panic!("stored over a newer generation") };
        assert_eq!(now.secrets.expect("opens").access.expect("stored").expose(), "access-1");
        let failed = store
            .fail_grant(&row.key, row.generation, GrantState::NeedsReconnect, "invalid_grant")
            .await
            .expect("answers");
        assert_eq!((failed.state, failed.generation), (GrantState::Active, row.generation + 1));
        let begun = store.begin_refresh(&row.key, row.generation, "two", lease).await.expect("answers");
        assert!(matches!(begun, Begin::Moved(_)));
        store.close().await;
    }
}

#[tokio::test]
async fn a_missing_file_is_named_and_not_made_by_those_who_only_look() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = sqlite_in(folder.path());
    let refused = Store::open(&url, ring(&[&key()]), Clock::machine(), MissingStore::Refuse)
        .await
        .expect_err("refused");
    assert!(refused.to_string().contains("store.db"), "{refused}");
    assert!(!folder.path().join("store.db").exists());
    for address in ["mysql://x", "switchback.db", "postgres://user:hunter2@[bad"] {
        let refused = Store::open(address, ring(&[&key()]), Clock::machine(), MissingStore::Create)
            .await
            .expect_err("refused");
        assert!(matches!(refused, StoreError::Url), "{refused}");
        assert!(!format!("{refused} {refused:?}").contains("hunter2"));
    }
}

#[tokio::test]
async fn a_credential_copied_to_another_client_does_not_open_and_is_named() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let registry = Registry::new(gateway.store.clone(), None);
    let mut other = acme("refresh-of-other");
    (other.name, other.tokens) = ("other".to_owned(), vec![secret("token-of-other").into()]);
    registry.add(other).await.expect("added");
    for (name, token) in [("acme", "secret-of-acme"), ("other", "secret-of-other")] {
        let credential = NewCredential { side: "v2".to_owned(), token: secret(token) };
        registry.set_credential(name, credential).await.expect("set");
    }
    let thief = sqlx::SqlitePool::connect(&gateway.url).await.expect("the file opens");
    let copy = "UPDATE client_credentials SET token = (SELECT k.token FROM client_credentials k JOIN clients c \
                ON c.id = k.client WHERE c.name = 'acme')";
    assert_eq!(sqlx::query(copy).execute(&thief).await.expect("written").rows_affected(), 2);
    thief.close().await;
    let states: Vec<_> =
        registry.list().await.expect("listed").iter().map(|c| c.credentials[0].state).collect();
    assert_eq!(states, [CredentialState::Active, CredentialState::Damaged]);
    gateway.tokens.sync().await.expect("the store answers");
    let client = |name| gateway.tokens.clients().by_name(name).expect("there");
    assert!(client("acme").fixed_token("v2").is_some() && client("other").fixed_token("v2").is_none());
}

/// A store as the first version of its schema had it, with one client in it.
async fn of_the_first_schema(url: &str, folder: &Path, ring: &KeyRing) {
    let (kind, drop_side) =
        if url.starts_with("sqlite:") { ("sqlite", "x'01'") } else { ("postgres", "'\\x01'") };
    let first = format!("crates/gateway/src/store/migrations/{kind}/0001_clients_and_grants.sql");
    let schema = folder.join(kind);
    std::fs::create_dir(&schema).expect("made");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(first);
    std::fs::copy(source, schema.join("0001_clients_and_grants.sql")).expect("copied");
    let migrator = sqlx::migrate::Migrator::new(schema).await.expect("one migration");
    let hash = drop_side.replacen("01", &"07".repeat(32), 1);
    let place = SealContext { column: "hash_key.sealed", client: "", row: b"" };
    let sealed: String = ring.seal(&place, &[9; 32]).iter().map(|byte| format!("{byte:02x}")).collect();
    let sealed = drop_side.replacen("01", &sealed, 1);
    let rows = format!(
        "INSERT INTO hash_key (id, sealed) VALUES (1, {sealed}); \
         INSERT INTO clients (id, name, created_ms, change) VALUES ('c1', 'acme', 1, 1); \
         INSERT INTO client_tokens (hash, client, origin, created_ms, expires_ms) \
         VALUES ({hash}, 'c1', 'managed', 1, 99)"
    );
    if kind == "sqlite" {
        let pool = sqlx::SqlitePool::connect(&format!("{url}?mode=rwc")).await.expect("the file is made");
        migrator.run(&pool).await.expect("migrated");
        sqlx::raw_sql(sqlx::AssertSqlSafe(rows)).execute(&pool).await.expect("written");
        pool.close().await;
    } else {
        let pool = sqlx::PgPool::connect(url).await.expect("connects");
        migrator.run(&pool).await.expect("migrated");
        sqlx::raw_sql(sqlx::AssertSqlSafe(rows)).execute(&pool).await.expect("written");
        pool.close().await;
    }
}

#[tokio::test]
async fn a_store_from_before_sides_were_noted_keeps_its_tokens_which_open_all_fronts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for url in stores(folder.path()) {
        let keys = ring(&[&key()]);
        of_the_first_schema(&url, folder.path(), &keys).await;
        let store = Store::open(&url, keys.clone(), Clock::paused_at(NEW_YEAR), MissingStore::Refuse)
            .await
            .expect("opens");
        let client = store.client("acme").await.expect("there");
        let token = &client.tokens[0];
        assert_eq!((client.tokens.len(), token.hash, token.side.as_deref()), (1, [7; 32], None));
        assert_eq!((token.expires_ms, client.credentials.len()), (Some(99), 0));
        assert!(!client.is_damaged, "its rows got their keyed hashes");
        // From now on a row without one is not ours.
        meddle(&url, "UPDATE client_tokens SET mac = NULL; UPDATE clients SET mac = NULL").await;
        store.close().await;
        let store =
            Store::open(&url, keys, Clock::paused_at(NEW_YEAR), MissingStore::Refuse).await.expect("opens");
        let client = store.client("acme").await.expect("there");
        assert!(client.is_damaged && client.tokens.is_empty());
        store.close().await;
    }
}

/// Runs statements as another user with write access to the database.
async fn meddle(url: &str, statements: &str) {
    let statements = sqlx::AssertSqlSafe(statements.to_owned());
    if url.starts_with("sqlite:") {
        let pool = sqlx::SqlitePool::connect(url).await.expect("the file opens");
        sqlx::raw_sql(statements).execute(&pool).await.expect("written");
        pool.close().await;
    } else {
        let pool = sqlx::PgPool::connect(url).await.expect("connects");
        sqlx::raw_sql(statements).execute(&pool).await.expect("written");
        pool.close().await;
    }
}

#[tokio::test]
async fn whoever_can_write_the_database_cannot_turn_a_token_an_account_or_a_link_to_another_client() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for url in stores(folder.path()) {
        let key = key();
        let (store, _) = enrolled(&url, &key).await;
        let registry = Registry::new(store.clone(), None);
        let mut thief = acme("refresh-of-thief");
        (thief.name, thief.tokens) = ("thief".to_owned(), vec![secret("token-of-thief").into()]);
        registry.add(thief).await.expect("added");
        let credential = NewCredential { side: "v2".to_owned(), token: secret("credential-of-acme") };
        registry.set_credential("acme", credential).await.expect("set");
        let id_of = |name| format!("(SELECT id FROM clients WHERE name = '{name}')");
        let (acme, thief) = (id_of("acme"), id_of("thief"));
        let tokens = Tokens::open(store.clone(), None, RefreshSettings::default()).await.expect("opens");
        let selected = |token: &str| {
            tokens.clients().authenticate(token.as_bytes(), "v2").map(|client| client.name.to_string())
        };
        assert_eq!(selected("token-of-thief").as_deref(), Some("thief"));

        let bumped = "; UPDATE change_counter SET value = value + 1000; UPDATE clients SET change = \
                      (SELECT value FROM change_counter); UPDATE grants SET change = (SELECT value FROM change_counter)";
        meddle(&url, &format!("UPDATE client_tokens SET client = {acme} WHERE client = {thief}{bumped}"))
            .await;
        tokens.sync().await.expect("the store answers");
        assert_eq!(selected("token-of-thief"), None, "it selects nothing now");
        assert_eq!(selected(OLD_TOKEN).as_deref(), Some("acme"), "the rightful one does");

        meddle(&url, &format!("UPDATE client_credentials SET side = 'v3'{bumped}")).await;
        tokens.sync().await.expect("the store answers");
        let client = tokens.clients().by_name("acme").expect("there");
        assert!(client.fixed_token("v3").is_none(), "no secret goes to another service");

        meddle(&url, &format!("UPDATE clients SET company = '42' WHERE name = 'acme'{bumped}")).await;
        tokens.sync().await.expect("the store answers");
        assert_eq!(selected(OLD_TOKEN), None, "nobody acts on an account that was not given");
        assert!(registry.get("acme").await.expect("listed").damaged);

        let state = store.hasher().hash(HashOf::ConnectState, b"state of thief");
        let client = store.client("thief").await.expect("there").id;
        let minute = Duration::from_secs(60);
        store.put_connect_state(&state, &client, &secret("verifier"), minute).await.expect("pending");
        meddle(&url, &format!("UPDATE connect_states SET client = {acme}")).await;
        let turned = store.take_connect_state(&state).await;
        assert!(matches!(turned, Err(StoreError::Seal(SealError::Broken))), "{turned:?}");
        drop(tokens);
        store.close().await;
    }
}

#[tokio::test]
async fn a_write_that_fails_for_whatever_reason_leaves_a_store_that_works_when_the_reason_is_gone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for url in stores(folder.path()) {
        let (store, row) = enrolled(&url, &key()).await;
        // On a full disk, SQLite rolls back the complete transaction by itself; PostgreSQL rejects all
        // following statements.
        let (in_statement, at_commit, mended) = match url.starts_with("sqlite:") {
            true => (
                "CREATE TRIGGER breaks BEFORE UPDATE ON grants BEGIN SELECT RAISE(ROLLBACK, 'disk is full'); END",
                "CREATE TABLE late (id INTEGER PRIMARY KEY, no_such INTEGER REFERENCES late (id) DEFERRABLE INITIALLY \
                 DEFERRED); CREATE TRIGGER breaks BEFORE UPDATE ON grants BEGIN INSERT INTO late (no_such) VALUES (99); END",
                "DROP TRIGGER breaks",
            ),
            false => (
                "CREATE FUNCTION fails() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'disk is full'; END $$ LANGUAGE \
                 plpgsql; CREATE TRIGGER breaks BEFORE UPDATE ON grants FOR EACH ROW EXECUTE FUNCTION fails()",
                "CREATE CONSTRAINT TRIGGER breaks AFTER UPDATE ON grants DEFERRABLE INITIALLY DEFERRED FOR EACH ROW \
                 EXECUTE FUNCTION fails()",
                "DROP TRIGGER breaks ON grants",
            ),
        };
        for (number, broken) in [in_statement, at_commit].into_iter().enumerate() {
            meddle(&url, broken).await;
            for _ in 0..10 {
                store.connect_grant(&row.key, &tokens_numbered(7)).await.expect_err("refused");
            }
            meddle(&url, mended).await;
            let number = number as u32 + 1;
            store.connect_grant(&row.key, &tokens_numbered(number)).await.expect("it works again");
            let secrets = store.grant_of(&row.key.client).await.expect("there").secrets.expect("opens");
            assert_eq!(secrets.access.expect("stored").expose(), &format!("access-{number}"));
        }
        store.close().await;
    }
}
