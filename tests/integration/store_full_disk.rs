//! A disk that is full for a while: a real one, of few megabytes, which needs the right to mount.
//! Under SQLite, and under PostgreSQL with its data or its log on it.

use crate::support::authority::{Act, Authority, Gate};
use crate::support::postgres::{Own, Part};
use crate::support::tokens::{PATIENCE, acme, eventually, key, operation, ring, sqlite_in};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_gateway::secret::Secret;
use switchback_gateway::store::{GrantState, MissingStore, Store};
use switchback_gateway::token::{RefreshSettings, Registry, Tokens};

/// A file system of its own, gone when dropped.
struct Disk(tempfile::TempDir);

impl Disk {
    /// `None`, with a message, if mounting is not permitted.
    fn of(size: &str) -> Option<Disk> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder.path())
            .output();
        if !mounted.is_ok_and(|mount| mount.status.success()) {
            eprintln!("SKIPPED: no right to mount a file system");
            return None;
        }
        Some(Disk(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        let mut filler = std::fs::File::create(self.filler()).expect("a file");
        for size in [4096, 1] {
            while filler.write_all(&vec![7; size]).is_ok() {}
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.filler()).expect("it was filled");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_is_full_while_the_server_answers_costs_no_grant() {
    let Some(disk) = Disk::of("1500k") else { return };
    let authority = Authority::start().await;
    let (url, key) = (sqlite_in(disk.path()), key());
    let open = || Store::open(&url, ring(&[&key]), Clock::machine(), MissingStore::Create);
    let store = open().await.expect("opens");
    Registry::new(store.clone(), None).add(acme("refresh-canary-0")).await.expect("added");
    let settings = RefreshSettings { rejection_quiet: Duration::ZERO, ..RefreshSettings::default() };
    let tokens = Tokens::open(store.clone(), Some(authority.endpoint()), settings).await.expect("opens");
    let client = tokens.clients().by_name("acme").expect("there");

    let gate = Arc::new(Gate::default());
    authority.script(Act::HoldAfter(gate.clone()));
    let grant = client.grant.clone();
    let waiter = tokio::spawn(async move { grant.access_token().await });
    gate.arrived().await;
    disk.fill();
    gate.go.notify_one();
    let token = waiter.await.expect("no panic").expect("a token");
    assert_eq!(tokens.health().unpersisted, 0, "its room was kept");
    let row = store.grant_of(&client.id).await.expect("there");
    assert_eq!(row.generation, token.generation(), "it is on the full disk");

    // No further refresh starts, because its tokens could not be stored. The reserved space may be unused
    // if the log of the database had room; cleaning up a full disk uses it.
    let _ = std::fs::remove_file(disk.path().join("store.db-reserve"));
    disk.fill();
    let calls = authority.calls();
    for _ in 0..5 {
        let _ = client.grant.on_unauthorized(token.generation(), operation()).await;
    }
    assert_eq!(authority.calls(), calls, "no token is spent whose successor cannot be kept");
    assert_eq!(client.grant.state(), GrantState::Active);
    assert!(client.grant.access_token().await.is_ok(), "the living one serves");

    disk.free();
    eventually_refreshed(&client, token.generation()).await;
    assert!(tokens.drain(PATIENCE).await, "nothing is left to be done");
    drop(tokens);
    store.close().await;
    let store = open().await.expect("reopens");
    let row = store.grant_of(&client.id).await.expect("there");
    assert_eq!(
        (row.state, row.generation, row.outcome_unknown),
        (GrantState::Active, client.grant.generation(), false)
    );
    let refresh = row.secrets.expect("opens").refresh.expect("kept");
    assert_eq!(
        *refresh.expose(),
        authority.state().active,
        "what the server expects next is what the store holds"
    );
    store.close().await;
}

/// Causes refreshes, as refused calls do, until one succeeds.
async fn eventually_refreshed(client: &switchback_gateway::token::Client, generation: i64) {
    let refreshing = async {
        while client.grant.generation() == generation {
            let _ = client.grant.on_unauthorized(generation, operation()).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, refreshing).await.expect("the store works again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_on_a_disk_that_was_full_writes_again_without_a_restart() {
    let Some(disk) = Disk::of("1500k") else { return };
    let (url, key) = (sqlite_in(disk.path()), key());
    let store =
        Store::open(&url, ring(&[&key]), Clock::machine(), MissingStore::Create).await.expect("opens");
    let registry = Registry::new(store.clone(), None);
    disk.fill();
    let mut failed = 0;
    for number in 0..200 {
        let mut client = acme(&format!("refresh-{number}"));
        client.name = format!("client-{number}");
        client.tokens = vec![Secret::new(format!("token-number-{number}")).into()];
        failed += u32::from(registry.add(client).await.is_err());
    }
    assert!(failed > 0, "the disk is full");
    disk.free();
    let mut client = acme("refresh-at-last");
    client.name = "at-last".to_owned();
    registry.add(client).await.expect("it works again");
    registry.list().await.expect("listed");
    store.close().await;
}

/// Where the data lies on a full disk, statements that need another page fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_under_the_data_of_postgresql_costs_no_grant() {
    a_full_disk_under_postgresql_costs_no_grant(Part::Data, "80m").await;
}

/// If the log is on that disk, the complete server ends, and cannot start before there is room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_under_the_log_of_postgresql_costs_no_grant() {
    a_full_disk_under_postgresql_costs_no_grant(Part::Log, "24m").await;
}

/// Another user of the database, who writes existing data again and again until a write fails.
const WRITE_TO_THE_END: &str = "DO $$ BEGIN LOOP UPDATE grants SET id = id; COMMIT; END LOOP; END $$";

async fn a_full_disk_under_postgresql_costs_no_grant(part: Part, size: &str) {
    let Some(disk) = Disk::of(size) else { return };
    let Some(server) = Own::on(disk.path(), part) else { return };
    let authority = Authority::start().await;
    let (url, key) = (server.url(), key());
    let open = || Store::open(&url, ring(&[&key]), Clock::machine(), MissingStore::Create);
    let store = open().await.expect("opens");
    Registry::new(store.clone(), None).add(acme("refresh-canary-0")).await.expect("added");
    let settings = RefreshSettings { rejection_quiet: Duration::ZERO, ..RefreshSettings::default() };
    let tokens =
        Tokens::open(store.clone(), Some(authority.endpoint_with(Duration::from_secs(600))), settings)
            .await
            .expect("opens");
    let client = tokens.clients().by_name("acme").expect("there");

    let gate = Arc::new(Gate::default());
    authority.script(Act::HoldAfter(gate.clone()));
    let grant = client.grant.clone();
    let waiter = tokio::spawn(async move { grant.access_token().await });
    gate.arrived().await;
    // The data in the pages remains, so that more pages are needed.
    let snapshot = (part == Part::Data).then(|| server.snapshot());
    disk.fill();
    let error = server.sql(WRITE_TO_THE_END).expect_err("the disk is full");
    match part {
        Part::Data => assert!(error.contains("No space left on device"), "{error}"),
        Part::Log => assert!(server.sql("SELECT 1").is_err(), "the server has ended: {error}"),
    }
    gate.go.notify_one();
    let token = waiter
        .await
        .expect("no panic")
        .expect("what was paid for serves, though nothing holds it but memory");
    assert_eq!(tokens.health().unpersisted, 1, "and that is said");

    // No further refresh starts before this one is stored.
    let calls = authority.calls();
    for _ in 0..3 {
        let _ = client.grant.on_unauthorized(token.generation(), operation()).await;
    }
    assert_eq!(authority.calls(), calls, "no token is spent whose successor cannot be kept");
    assert_eq!(client.grant.state(), GrantState::Active);
    assert!(client.grant.access_token().await.is_ok(), "the living one serves");

    drop(snapshot);
    disk.free();
    eventually("it is in the store", || tokens.health().unpersisted == 0).await;
    eventually_refreshed(&client, token.generation()).await;
    assert!(tokens.drain(PATIENCE).await, "nothing is left to be done");
    drop(tokens);
    store.close().await;
    let store = open().await.expect("reopens");
    let client = store.grant_of(&client.id).await.expect("there");
    assert_eq!((client.state, client.outcome_unknown), (GrantState::Active, false));
    let refresh = client.secrets.expect("opens").refresh.expect("kept");
    assert_eq!(
        *refresh.expose(),
        authority.state().active,
        "what the server expects next is what the store holds"
    );
    store.close().await;
}
