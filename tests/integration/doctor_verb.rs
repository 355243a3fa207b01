//! `switchback doctor` before broken deployments: each check fails at least once.

use crate::support::peers::Wire;
use crate::support::program::Program;
use crate::support::raw::{Act, Upstream, answer};
use crate::support::serving;
use crate::support::tls;
use serde_json::Value;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use switchback_gateway::secret::Secret;
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;
use tokio::task::spawn_blocking;

/// A deployment in a folder of its own.
struct Deployment {
    folder: TempDir,
    file: PathBuf,
    key: Secret<String>,
}

impl Deployment {
    /// A deployment with its v3 service at `upstream`, and `more` lines of configuration.
    fn at(upstream: &str, more: &str) -> Deployment {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = serving::write(folder.path(), upstream, more);
        Deployment { folder, file, key: SealingKey::generate() }
    }

    /// A deployment with a service that answers every request.
    async fn whole(more: &str) -> (Deployment, Upstream) {
        let service = Upstream::start(vec![Act::json(404, "{}")]).await;
        (Deployment::at(&service.address.to_string(), more), service)
    }

    fn replace(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(&self.file).expect("it was written");
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(&self.file, text.replacen(from, to, 1)).expect("it is written");
    }

    /// Runs a verb with the configuration. Returns the exit code, the output and the errors.
    async fn run(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
        command.args(words).env("TEST_KEY", self.key.expose());
        command.env("SSL_CERT_FILE", tls::upstream_certificate());
        let output = spawn_blocking(move || command.output().expect("the program runs")).await;
        let output = output.expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (out, err) = (text(output.stdout), text(output.stderr));
        assert!(!out.contains(self.key.expose()) && !err.contains(self.key.expose()), "{out}{err}");
        (output.status.code(), out, err)
    }

    /// Examines the deployment. Returns the exit code and the checks.
    async fn examine(&self, words: &[&str]) -> (Option<i32>, Value) {
        let file = self.file.to_str().expect("a plain name");
        let (code, out, err) = self.run(&[&["doctor", file, "--json"], words].concat()).await;
        let value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
        (code, value)
    }

    /// Asserts that a check has a state and facts with this text.
    #[track_caller]
    fn expect(examined: &(Option<i32>, Value), name: &str, state: &str, text: &str) {
        let (code, value) = examined;
        let checks = value["checks"].as_array().expect("a list");
        let check = checks.iter().find(|check| check["name"] == name);
        let check = check.unwrap_or_else(|| panic!("no check {name}: {value:#}"));
        let found = check["found"].as_str().unwrap_or_default();
        assert!(check["state"] == state && found.contains(text), "{state}, {text}: {check:#}");
        match state {
            "failed" => assert!(*code == Some(1) && check["advice"].is_string(), "{code:?} {check:#}"),
            "warning" => assert!(check["advice"].is_string(), "{check:#}"),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_deployment_passes_and_nothing_is_made_or_sent_with_a_credential() {
    let (deployment, service) = Deployment::whole("").await;
    let examined = deployment.examine(&[]).await;
    assert_eq!((examined.0, &examined.1["failed"]), (Some(0), &0.into()), "{:#}", examined.1);
    for (name, text) in [
        ("configuration", "has no findings"),
        ("pack", "compiles and its examples pass"),
        ("permissions", "0 files with secrets"),
        ("admin access", "read-only"),
        ("store", "does not exist yet"),
        ("upstreams.v3: connection", "accepts connections"),
        ("upstreams.v3: HTTP", "answers 404 to HEAD"),
        ("listen", "any free port"),
        ("admin.listen", "any free port"),
    ] {
        Deployment::expect(&examined, name, "ok", text);
    }
    assert!(!deployment.folder.path().join("store.db").exists(), "nothing is made");
    let seen = service.seen();
    assert!(seen.iter().all(|seen| seen.line().starts_with("HEAD /v3 ")), "{seen:?}");
    assert!(seen.iter().all(|seen| seen.values("authorization").is_empty()));

    // Offline, the service is not contacted.
    let before = service.seen().len();
    let examined = deployment.examine(&["--offline"]).await;
    assert_eq!(examined.0, Some(0), "{:#}", examined.1);
    Deployment::expect(&examined, "upstreams.v3", "unknown", "--offline");
    Deployment::expect(&examined, "clock", "unknown", "--offline");
    assert_eq!(service.seen().len(), before);

    // As text: a line per check, and the sums.
    let file = deployment.file.to_str().expect("a plain name");
    let (code, out, err) = deployment.run(&["doctor", file]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("ok         pack: the built-in pack compiles"), "{out}");
    assert!(out.contains(" 0 failed, "), "{out}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_and_a_pack_with_errors_fail() {
    let (deployment, _service) = Deployment::whole("realod: { watch: false }\n").await;
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "configuration", "failed", "did you mean `reload`?");
    Deployment::expect(&examined, "all further checks", "unknown", "usable configuration");

    // The admin port is open to others without a token.
    let (deployment, _service) = Deployment::whole("").await;
    deployment.replace("admin: { listen: 127.0.0.1:0 }", "admin: { listen: 0.0.0.0:0 }");
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "configuration", "failed", "`admin.token` is not set");

    let (deployment, _service) = Deployment::whole("").await;
    let pack = deployment.folder.path().join("pack");
    std::fs::create_dir(&pack).expect("a folder");
    std::fs::write(pack.join("pack.yaml"), "switchback: 1\nnaem: x\n").expect("it is written");
    let mapping = format!("settings: {{}}\nmapping: '{}'\n", pack.display());
    deployment.replace("settings: { agents: { max_chats: 5 } }\n", &mapping);
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "pack", "failed", "cannot serve");

    let (code, _, err) = deployment.run(&["doctor", "/nowhere/switchback.yaml"]).await;
    assert!(code == Some(3) && err.contains("/nowhere/switchback.yaml cannot be read"), "{code:?} {err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_that_everyone_reads_are_a_warning_which_strict_makes_a_failure() {
    let (deployment, _service) = Deployment::whole("").await;
    let secret = deployment.folder.path().join("sealing.key");
    std::fs::write(&secret, deployment.key.expose()).expect("it is written");
    deployment.replace("${TEST_KEY}", &format!("file:{}", secret.display()));
    let set = |mode| std::fs::set_permissions(&secret, Permissions::from_mode(mode)).expect("it is ours");
    set(0o644);
    let examined = deployment.examine(&[]).await;
    assert_eq!(examined.0, Some(0), "{:#}", examined.1);
    Deployment::expect(&examined, "permissions", "warning", "sealing.key");
    let (code, value) = deployment.examine(&["--strict"]).await;
    assert!(code == Some(1) && value["healthy"] == false, "{value:#}");
    set(0o600);
    Deployment::expect(&deployment.examine(&[]).await, "permissions", "ok", "1 files with secrets");

    // A secret in the configuration itself.
    deployment.replace(
        "admin: { listen: 127.0.0.1:0 }",
        "admin: { listen: 127.0.0.1:0, token: sixteen-letters-of-it }",
    );
    std::fs::set_permissions(&deployment.file, Permissions::from_mode(0o644)).expect("it is ours");
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "permissions", "warning", "switchback.yaml");
    assert!(!examined.1.to_string().contains("sixteen-letters"), "{:#}", examined.1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_and_descriptors_that_do_not_suffice_fail() {
    let certificate = |name: &str| {
        let (certificate, key) = (tls::file(name), tls::file("key.pem"));
        format!("tls: {{ certificate: '{}', private_key: '{}' }}\n", certificate.display(), key.display())
    };
    let (deployment, _service) = Deployment::whole(&certificate("expired.pem")).await;
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "tls", "failed", "the certificate for gateway.test ended");
    let (deployment, _service) = Deployment::whole(&certificate("certificate.pem")).await;
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "tls", "ok", "the certificate for gateway.test ends in");

    let file = deployment.file.to_str().expect("a plain name").to_owned();
    let key = deployment.key.clone();
    let limited = spawn_blocking(move || {
        let words = ["doctor", &file, "--json", "--offline"];
        Program::start_with_descriptors(64, &words, &[("TEST_KEY", key.expose())]).all()
    });
    let (status, out, err) = limited.await.expect("it ends");
    let value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    let examined = (status.code(), value);
    Deployment::expect(&examined, "file descriptors", "failed", "the limit of file descriptors is 64");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_cannot_be_used_fails_with_its_reason() {
    let (deployment, _service) = Deployment::whole("").await;
    let store = format!("sqlite:{}/store.db", deployment.folder.path().display());
    deployment.replace(&store, "postgres://u:hunter2@127.0.0.1:9/d");
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "store", "failed", "postgres://u:***@127.0.0.1:9/d");
    assert!(!examined.1.to_string().contains("hunter2"), "{:#}", examined.1);
    Deployment::expect(&examined, "key", "unknown", "does not answer");
    deployment.replace("postgres://u:hunter2@127.0.0.1:9/d", &store);

    // A file that is no database.
    let file = deployment.folder.path().join("store.db");
    std::fs::write(&file, "not a database, and long enough to be read as the head of one ".repeat(20))
        .expect("it is written");
    Deployment::expect(&deployment.examine(&[]).await, "store", "failed", "store.db");
    std::fs::remove_file(&file).expect("it was written");

    let path = deployment.file.to_str().expect("a plain name");
    let (code, out, err) = deployment.run(&["client", "add", "acme", "--side", "v2", "--config", path]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "store: schema", "ok", "as this program's");
    Deployment::expect(&examined, "key", "ok", "opens the secrets");

    // Another key.
    let other = Deployment { key: SealingKey::generate(), ..deployment };
    Deployment::expect(&other.examine(&[]).await, "key", "failed", "is sealed with key");

    // A later program has migrated it.
    let options = SqliteConnectOptions::new().filename(&file);
    let mut connection = options.connect().await.expect("the store opens");
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'of a later program', 1, x'00', 0)",
    )
    .execute(&mut connection)
    .await
    .expect("it is written");
    Deployment::expect(&other.examine(&[]).await, "store: schema", "failed", "version 9999");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_without_space_fails() {
    let disk = tempfile::tempdir().expect("a temporary folder");
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(disk.path()).status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no right to mount a file system");
        return;
    }
    let (deployment, _service) = Deployment::whole("").await;
    let own = format!("sqlite:{}/store.db", deployment.folder.path().display());
    deployment.replace(&own, &format!("sqlite:{}/store.db", disk.path().display()));
    let examined = deployment.examine(&["--offline"]).await;
    let unmounted = Command::new("umount").arg("-l").arg(disk.path()).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    Deployment::expect(&examined, "store: disk", "failed", "are free in");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_that_do_not_answer_or_are_not_trusted_fail_at_their_step() {
    // Bound without listening: connections are refused, and no other test gets the port.
    let bound = tokio::net::TcpSocket::new_v4().expect("a socket");
    bound.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let gone = bound.local_addr().expect("it is bound").to_string();
    let deployment = Deployment::at(&gone, "");
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "upstreams.v3: connection", "failed", "refused");
    Deployment::expect(&examined, "clock", "unknown", "no answer had a date");

    let service = Upstream::over(Wire::Tls1, vec![Act::json(200, "{}")]).await;
    let url = format!("https://{}/v3", service.address);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = serving::write_at(folder.path(), &url, "");
    let deployment = Deployment { folder, file, key: SealingKey::generate() };
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "upstreams.v3: TLS", "ok", "verified; the certificate ends in");
    let other = tls::file("certificate.pem");
    let untrusted = format!("url: '{url}', tls: {{ ca_file: '{}' }}", other.display());
    deployment.replace(&format!("url: '{url}'"), &untrusted);
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "upstreams.v3: TLS", "failed", "certificate");

    let service = Upstream::start(vec![Act::ReplyAndClose(b"SSH-2.0-no-http\r\n\r\n".to_vec())]).await;
    let deployment = Deployment::at(&service.address.to_string(), "");
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "upstreams.v3: HTTP", "failed", "no answer to HEAD");

    let date = "date: Tue, 01 Jan 2030 00:00:00 GMT\r\n";
    let service = Upstream::start(vec![Act::Reply(answer(503, date, ""))]).await;
    let deployment = Deployment::at(&service.address.to_string(), "");
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "upstreams.v3: HTTP", "warning", "answers 503");
    Deployment::expect(&examined, "clock", "failed", "that of upstreams.v3");

    let (deployment, service) = Deployment::whole("").await;
    let oauth =
        format!("oauth: {{ issuer: 'http://{}', redirect_url: 'http://127.0.0.1:9/cb' }}\n", service.address);
    let text = std::fs::read_to_string(&deployment.file).expect("it was written");
    std::fs::write(&deployment.file, text + &oauth).expect("it is written");
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "oauth.issuer", "failed", "metadata");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_in_use_fails_unless_the_own_gateway_uses_it() {
    let (deployment, _service) = Deployment::whole("").await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    deployment.replace("listen: 127.0.0.1:0\n", &format!("listen: {address}\n"));
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "listen", "failed", "in use by another program");
    let examined = deployment.examine(&["--offline"]).await;
    Deployment::expect(&examined, "listen", "unknown", "in use");

    // The gateway of the same configuration runs. It must not follow the changes below.
    let (deployment, _service) = Deployment::whole("reload: { watch: false }\n").await;
    let (_program, clients, admin) = serving::serve(&deployment.file, &deployment.key).await;
    deployment.replace("listen: 127.0.0.1:0\n", &format!("listen: {clients}\n"));
    deployment.replace("{ listen: 127.0.0.1:0 }", &format!("{{ listen: {admin} }}"));
    let examined = deployment.examine(&[]).await;
    assert_eq!(examined.0, Some(0), "{:#}", examined.1);
    Deployment::expect(&examined, "listen", "ok", "in use by the running gateway");
    Deployment::expect(&examined, "running gateway", "ok", "serves the pack of the configuration");

    // It serves another pack than that of the configuration.
    let pack = deployment.folder.path().join("pack");
    let (code, out, err) = deployment.run(&["pack", "export", pack.to_str().expect("a plain name")]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    append(&pack.join("pack.yaml"), "# another digest\n");
    append(&deployment.file, &format!("mapping: '{}'\n", pack.display()));
    let examined = deployment.examine(&[]).await;
    Deployment::expect(&examined, "running gateway", "warning", "serves another pack");
}

fn append(file: &Path, text: &str) {
    let before = std::fs::read_to_string(file).expect("it is there");
    std::fs::write(file, before + text).expect("it is written");
}
