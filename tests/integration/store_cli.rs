//! `switchback client` and `switchback key` as an operator uses them: through the real program.

use crate::support::authority::{Authority, CALLBACK, Code};
use crate::support::tokens::{Gateway, acme, key, ring, sqlite_in};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use switchback_gateway::clock::Clock;
use switchback_gateway::store::{MissingStore, Store, StoreError};
use switchback_gateway::token::{RefreshSettings, Registry};

struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Run {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {} {}", self.out, self.err))
    }
}

/// Runs the program in `folder`, with the key and the client's secrets in its environment.
fn switchback(folder: &Path, key: &str, words: &[&str]) -> Run {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_switchback"))
        .current_dir(folder)
        .args(words)
        .env_clear()
        .env("SWITCHBACK_KEY", key)
        .env("OLD_TOKEN", "old-token-canary")
        .env("APP_ID", "APP-1")
        .env("APP_SECRET", "app-secret-canary")
        .env("REFRESH", "refresh-canary")
        .output()
        .expect("the program runs");
    Run {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn a_client_is_added_listed_rotated_and_revoked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let key = key().expose().clone();
    let run = |words: &[&str]| switchback(folder.path(), &key, words);
    let added = run(&[
        "client",
        "add",
        "acme",
        "--company",
        "42",
        "--token",
        "env:OLD_TOKEN",
        "--app-id",
        "env:APP_ID",
        "--app-secret",
        "env:APP_SECRET",
        "--refresh-token",
        "env:REFRESH",
        "--format",
        "json",
    ]);
    assert_eq!(added.code, Some(0), "{}", added.err);
    assert_eq!(added.json()["token"], Value::Null, "a given token is not repeated");
    assert_eq!(added.json()["client"]["grant"]["state"], "pending", "it has never had an access token");
    let made = run(&["client", "add", "beta", "--format", "json"]);
    let token = made.json()["token"].as_str().expect("one was made").to_owned();
    assert!(token.starts_with("sbt_") && token.len() > 40, "{token}");
    let listed = run(&["client", "list", "--format", "json"]);
    let names: Vec<_> = listed.json().as_array().expect("a list").iter().map(|c| c["name"].clone()).collect();
    assert_eq!(names, ["acme", "beta"]);
    let text = run(&["client", "list"]);
    assert!(
        text.out.contains("acme") && text.out.contains("company 42") && text.out.contains("unconnected"),
        "{}",
        text.out
    );
    for printed in [&added.out, &listed.out, &text.out] {
        assert!(!printed.contains("canary") && !printed.contains(&token), "{printed}");
    }
    let rotated = run(&["client", "rotate", "beta", "--grace", "60", "--format", "json"]);
    assert_ne!(rotated.json()["token"], Value::String(token));
    assert_eq!(rotated.json()["client"]["tokens"], 2);
    let unasked = run(&["client", "revoke", "beta"]);
    assert_eq!(unasked.code, Some(2));
    assert!(unasked.err.contains("erases its tokens") && unasked.err.contains("--yes"), "{}", unasked.err);
    assert!(!run(&["client", "list"]).out.contains("revoked"), "nobody said yes");
    assert_eq!(run(&["client", "revoke", "beta", "--yes"]).code, Some(0));
    let after = run(&["client", "list"]);
    assert!(after.out.contains("revoked 20"), "{}", after.out);
    let refused = run(&["client", "rotate", "beta"]);
    assert!(refused.err.contains("switchback client restore"), "{}", refused.err);
    assert_eq!(run(&["client", "restore", "beta"]).code, Some(0));
    let back = run(&["client", "rotate", "beta", "--format", "json"]).json()["client"].clone();
    assert_eq!((&back["revoked_at"], &back["tokens"]), (&Value::Null, &1.into()), "{back}");
    let twice = run(&["client", "restore", "beta"]);
    assert_eq!((twice.code, twice.err.as_str()), (Some(2), "error: client beta is not revoked\n"));
}

#[test]
fn mistakes_are_told_calmly_and_with_the_right_exit_code() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let key = key().expose().clone();
    let run = |words: &[&str]| switchback(folder.path(), &key, words);
    let missing = run(&["client", "list"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("there is no store at switchback.db"), "{}", missing.err);
    assert!(!folder.path().join("switchback.db").exists());
    assert_eq!(run(&["client", "add", "acme"]).code, Some(0));
    let taken = run(&["client", "add", "acme"]);
    assert_eq!((taken.code, taken.err.as_str()), (Some(2), "error: there is already a client called acme\n"));
    let unknown = run(&["client", "revoke", "nobody"]);
    assert_eq!((unknown.code, unknown.err.as_str()), (Some(2), "error: there is no client called nobody\n"));
    let plain = run(&["client", "add", "x", "--token", "secret-on-the-command-line"]);
    assert_eq!(plain.code, Some(2));
    assert!(plain.err.contains("env:NAME") && !plain.err.contains("secret-on"), "{}", plain.err);
    for words in [
        &["client", "add", "x", "secret-on-the-command-line"][..],
        &["client", "add", "x", "--tokn=secret-on-the-command-line"],
        &["client", "credential", "x", "v2=secret-on-the-command-line"],
    ] {
        let told = run(words);
        assert_eq!(told.code, Some(2));
        assert!(!told.err.contains("secret-on"), "{}", told.err);
    }
    let nowhere = run(&["client", "list", "--store", "sqlite:/nowhere/at-all.db"]);
    assert!(nowhere.err.contains("/nowhere/at-all.db"), "{}", nowhere.err);
    let unset = run(&["client", "add", "x", "--token", "env:NOT_SET"]);
    assert!(unset.err.contains("NOT_SET is not set"), "{}", unset.err);
    let wrong = switchback(folder.path(), crate::support::tokens::key().expose(), &["client", "list"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("which was not given; nothing was changed"), "{}", wrong.err);
    let no_key = switchback(folder.path(), "hunter2", &["client", "list"]);
    assert_eq!(no_key.code, Some(2));
    assert!(no_key.err.contains("not a sealing key") && !no_key.err.contains("hunter2"), "{}", no_key.err);
    let unclear = run(&["client", "connect", "acme"]);
    assert!(unclear.err.contains("--authorize-url"), "{}", unclear.err);
}

#[test]
fn a_key_is_generated_and_rotated_in_four_steps() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let generate = || switchback(folder.path(), "", &["key", "generate"]).out.trim().to_owned();
    let (old, new) = (generate(), generate());
    assert!(old.starts_with("sbk_") && old != new);
    assert_eq!(switchback(folder.path(), &old, &["client", "add", "acme"]).code, Some(0));
    let both = format!("{new},{old}");
    assert_eq!(switchback(folder.path(), &both, &["client", "list"]).code, Some(0));
    let rotated = switchback(folder.path(), &both, &["key", "rotate", "--format", "json"]);
    assert_eq!(rotated.code, Some(0), "{}", rotated.err);
    assert_eq!(rotated.json()["retired"].as_array().map(Vec::len), Some(1));
    assert_eq!(switchback(folder.path(), &new, &["client", "list"]).code, Some(0));
    assert_eq!(switchback(folder.path(), &old, &["client", "list"]).code, Some(2));
    for printed in [rotated.out, rotated.err] {
        assert!(!printed.contains(&new[4..]) && !printed.contains(&old[4..]), "{printed}");
    }
}

#[tokio::test]
async fn a_key_rotation_that_is_killed_leaves_all_or_nothing_sealed_anew() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = sqlite_in(folder.path());
    let (mut old, clients) = (key(), 150);
    let store =
        Store::open(&url, ring(&[&old]), Clock::machine(), MissingStore::Create).await.expect("opens");
    let registry = Registry::new(store.clone(), None);
    for number in 0..clients {
        let mut client = acme(&format!("refresh-{number}"));
        (client.name, client.tokens) = (format!("client-{number}"), Vec::new());
        registry.add(client).await.expect("added");
    }
    store.close().await;
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut outcomes = [0, 0];
    // The first one runs to its end and shows how long that takes.
    let mut kill_within = Duration::from_secs(60);
    for round in 0..12 {
        let new = key();
        let both = format!("{},{}", new.expose(), old.expose());
        let mut rotation = Command::new(env!("CARGO_BIN_EXE_switchback"))
            .args(["key", "rotate", "--store", &url])
            .env("SWITCHBACK_KEY", &both)
            .stdout(Stdio::null())
            .spawn()
            .expect("the program runs");
        if round == 0 {
            let started = Instant::now();
            assert!(rotation.wait().expect("it ends").success());
            kill_within = started.elapsed() * 5 / 4;
        } else {
            std::thread::sleep(kill_within.mul_f64(random.f64()));
            rotation.kill().expect("SIGKILL");
            rotation.wait().expect("gone");
        }
        let store = Store::open(&url, ring(&[&new, &old]), Clock::machine(), MissingStore::Refuse)
            .await
            .expect("both open");
        let all = store.grants_since(0).await.expect("read");
        assert_eq!(all.iter().filter(|grant| grant.secrets.is_ok()).count(), clients);
        store.close().await;
        // With the new key alone it opens only if all data was sealed again.
        match Store::open(&url, ring(&[&new]), Clock::machine(), MissingStore::Refuse).await {
            Ok(store) => {
                let all = store.grants_since(0).await.expect("read");
                assert_eq!(all.iter().filter(|grant| grant.secrets.is_ok()).count(), clients);
                store.close().await;
                outcomes[1] += 1;
            }
            Err(refused) => {
                assert!(matches!(refused, StoreError::WrongKey(_)), "{refused}");
                let store =
                    Store::open(&url, ring(&[&new, &old]), Clock::machine(), MissingStore::Refuse).await;
                store.expect("both open").reseal().await.expect("finished by hand");
                outcomes[0] += 1;
            }
        }
        old = new;
    }
    eprintln!("nothing {} times, all {} times", outcomes[0], outcomes[1]);
}

#[tokio::test]
async fn a_client_is_connected_by_the_command_line_beside_a_running_gateway() {
    let authority = Authority::start().await;
    let gateway = Gateway::new(&authority).await;
    let base = format!("http://{}", authority.address);
    let run = switchback(
        gateway.folder.path(),
        gateway.key.expose(),
        &[
            "client",
            "connect",
            "acme",
            "--store",
            "sqlite:store.db",
            "--format",
            "json",
            "--authorize-url",
            &format!("{base}/oauth/authorize"),
            "--token-url",
            &format!("{base}/oauth/access_token"),
            "--redirect-url",
            CALLBACK,
            "--scope",
            "install_app",
        ],
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    let link: reqwest::Url = run.json()["url"].as_str().expect("a link").parse().expect("a URL");
    let part = |name| link.query_pairs().find(|(part, _)| part == name).expect("it is there").1.into_owned();
    let (state, challenge) = (part("state"), part("code_challenge"));
    authority.state().codes.insert("code-1".to_owned(), Code { redirect: CALLBACK.to_owned(), challenge });
    // The callback reaches the gateway, which is another process than the creator of the link.
    let registry = Registry::new(gateway.store.clone(), Some(authority.endpoint()));
    registry.callback(&format!("code=code-1&state={state}")).await.expect("connected");
    let gateway = gateway.restart(authority.endpoint(), RefreshSettings::default()).await;
    let token = gateway.client().grant.access_token().await.expect("a token");
    assert!(authority.accepts(token.secret().expose()));
}

#[test]
fn a_side_that_the_pack_does_not_have_is_refused_where_the_configuration_names_the_pack() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let key = key().expose().clone();
    let configuration = "store: sqlite:store.db\nkey: ${SWITCHBACK_KEY}\n\
        upstreams: { v3: { url: 'http://127.0.0.1:1/v3' } }\nsettings: { agents: { max_chats: 5 } }\n";
    std::fs::write(folder.path().join("switchback.yaml"), configuration).expect("written");
    let run =
        |words: &[&str]| switchback(folder.path(), &key, &[words, &["--config", "switchback.yaml"]].concat());
    assert_eq!(run(&["client", "add", "acme", "--token", "env:OLD_TOKEN"]).code, Some(0));
    for words in [
        &["client", "credential", "acme", "v9=env:APP_SECRET"][..],
        &["client", "rotate", "acme", "--side", "v9"],
        &["client", "add", "other", "--side", "v9"],
        &["client", "add", "other", "--credential", "v9=env:APP_SECRET"],
    ] {
        let refused = run(words);
        assert_eq!(refused.code, Some(2), "{}", refused.out);
        assert!(refused.err.contains("no side `v9`; it has `v2` and `v3`"), "{}", refused.err);
    }
    assert_eq!(run(&["client", "credential", "acme", "v2=env:APP_SECRET"]).code, Some(0));
}
