//! Reloading a running gateway: by asking and by changing files, with packs and configurations that
//! are right and wrong.

use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use switchback::admin::Status;
use switchback::app::{RunningApp, StartOptions};
use switchback::config::{self, Environment};
use switchback_compiler::diagnostic::{Colour, to_text};
use switchback_gateway::clock::Clock;
use switchback_gateway::secret::Secret;
use switchback_gateway::server::Inherited;
use switchback_gateway::store::seal::{KeyRing, SealingKey};
use switchback_gateway::store::{GrantFlow, MissingStore, Store};
use switchback_gateway::token::NewClient;
use switchback_sandbox::{Options, Sandbox};

const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway with a configuration file and a pack of its own.
struct Running {
    app: RunningApp,
    sandbox: Sandbox,
    http: Client,
    folder: tempfile::TempDir,
}

impl Running {
    /// `watch`: whether changes of files are noticed.
    async fn start(watch: bool) -> Running {
        let folder = tempfile::tempdir().expect("a temporary folder");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging"), &folder.path().join("pack"));
        let sandbox = Sandbox::start(Options::default()).await.expect("a sandbox starts");
        let file = folder.path().join("switchback.yaml");
        std::fs::write(&file, configuration(folder.path(), &sandbox, watch)).expect("a file is written");
        let outcome = config::load(&file, &Environment::process()).expect("the file is there");
        let shown = to_text(&outcome.sources, &outcome.findings, Colour::Never);
        let config = outcome.config.unwrap_or_else(|| panic!("{shown}"));
        let start = StartOptions {
            config,
            file: Some(file),
            clock: Clock::machine(),
            inherited: Inherited::default(),
        };
        let app = RunningApp::start(start).await.unwrap_or_else(|error| panic!("{error}"));
        let http = crate::support::http::client();
        Running { app, sandbox, http, folder }
    }

    fn file(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Replaces a text in a file, which must hold it.
    fn edit(&self, path: &str, old: &str, new: &str) {
        let file = self.file(path);
        let text = std::fs::read_to_string(&file).expect("the file is text");
        assert!(text.contains(old), "{path} holds `{old}`");
        std::fs::write(&file, text.replace(old, new)).expect("the file is written");
    }

    /// Returns the status after the next reload, which `ask` triggers.
    async fn after(&self, ask: impl FnOnce(&Running)) -> Arc<Status> {
        let before = self.app.board().load_full();
        ask(self);
        let waited = async {
            loop {
                let now = self.app.board().load_full();
                if !Arc::ptr_eq(&now, &before) && now.pack.last_reload.is_some() {
                    return now;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waited).await.expect("a reload happens")
    }

    async fn get(&self, path: &str) -> Response {
        let url = format!("http://{}{path}", self.app.addresses().clients);
        let token = &self.sandbox.credentials().v2_token;
        self.http
            .get(url)
            .header("x-authorization", format!("Bearer {token}"))
            .send()
            .await
            .expect("the gateway answers")
    }

    /// Returns the text of the refused operation.
    async fn refusal(&self) -> String {
        let answer = self.get("/v2/chats/7/feedback").await;
        assert_eq!(answer.status(), StatusCode::NOT_IMPLEMENTED);
        let answer: Value = answer.json().await.expect("errors are JSON");
        answer["reason"].as_str().expect("errors have a reason").to_owned()
    }
}

fn configuration(folder: &Path, sandbox: &Sandbox, watch: bool) -> String {
    let credentials = sandbox.credentials();
    let (service, folder, key) =
        (format!("http://{}", sandbox.address()), folder.display(), SealingKey::generate());
    let (key, token) = (key.expose(), &credentials.v2_token);
    let (id, secret, refresh) =
        (&credentials.client_id, &credentials.client_secret, &credentials.refresh_token);
    format!(
        "listen: 127.0.0.1:0
admin: {{ listen: 127.0.0.1:0 }}
mapping: {folder}/pack
store: sqlite:{folder}/store.db
key: {key}
upstreams: {{ v3: {{ url: '{service}/v3' }} }}
oauth: {{ authorize_url: '{service}/oauth/authorize', token_url: '{service}/oauth/access_token', redirect_url: 'http://127.0.0.1:9090/oauth/callback' }}
clients: [{{ name: acme, v2_token: {token}, grant: {{ client_id: {id}, client_secret: {secret}, refresh_token: {refresh} }} }}]
settings: {{ agents: {{ max_chats: 10 }} }}
reload: {{ watch: {watch}, settle: 20ms }}
"
    )
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder is made");
    for entry in std::fs::read_dir(from).expect("the pack is part of the sources") {
        let path = entry.expect("a folder can be listed").path();
        let target = to.join(path.file_name().expect("entries have names"));
        match path.is_dir() {
            true => copy(&path, &target),
            false => std::fs::copy(&path, &target).map(drop).expect("a file is copied"),
        }
    }
}

/// The English text of the refusal that the tests change, and the file that it is in.
const REASON: &str = "Survey results cannot be read through API v3.";

fn file_of_reason(running: &Running) -> String {
    let entries = std::fs::read_dir(running.file("pack")).expect("the pack was copied");
    let holds = |path: &PathBuf| {
        path.is_file() && std::fs::read_to_string(path).is_ok_and(|text| text.contains(REASON))
    };
    let file = entries
        .map(|entry| entry.expect("a folder can be listed").path())
        .find(holds)
        .expect("the reason is in a file");
    format!("pack/{}", file.file_name().expect("it is a file").to_string_lossy())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_pack_serves_after_it_was_asked_for() {
    let running = Running::start(false).await;
    assert_eq!(running.refusal().await, REASON);
    let loaded = running.app.board().load_full().pack.clone();
    running.edit(&file_of_reason(&running), REASON, "Not any more.");
    let status = running.after(|running| running.app.reload()).await;
    let outcome = status.pack.last_reload.clone().expect("it was reloaded");
    assert!(outcome.succeeded, "{:?}", outcome.error);
    assert_eq!(running.refusal().await, "Not any more.");
    assert_eq!(status.pack.generation, loaded.generation + 1);
    assert_ne!(status.pack.hash, loaded.hash);
    running.app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_files_is_noticed() {
    let running = Running::start(true).await;
    let file = file_of_reason(&running);
    let status = running.after(|running| running.edit(&file, REASON, "Noticed.")).await;
    assert!(status.pack.last_reload.as_ref().is_some_and(|outcome| outcome.succeeded), "{status:?}");
    assert_eq!(running.refusal().await, "Noticed.");
    running.app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_wrong_the_old_pack_goes_on_serving() {
    let running = Running::start(false).await;
    let file = file_of_reason(&running);
    let pack = std::fs::read_to_string(running.file(&file)).unwrap();
    let config = std::fs::read_to_string(running.file("switchback.yaml")).unwrap();
    type Break = fn(&Running, &str);
    let faults: [(&str, Break); 6] = [
        ("a half-written file", |running, file| {
            std::fs::write(running.file(file), "mapping: 1\nroutes: [").unwrap()
        }),
        ("an unknown key", |running, file| running.edit(file, "reasons:", "reasosn:")),
        ("a missing file", |running, file| std::fs::remove_file(running.file(file)).unwrap()),
        ("an unknown key of the configuration", |running, _| {
            running.edit("switchback.yaml", "upstreams:", "upstrems:")
        }),
        ("a side that the pack does not have", |running, _| {
            running.edit("switchback.yaml", "{ v3: {", "{ v4: {")
        }),
        ("a setting that the pack does not read", |running, _| {
            running.edit("switchback.yaml", "max_chats", "max_chat")
        }),
    ];
    for (what, break_it) in faults {
        break_it(&running, &file);
        let status = running.after(|running| running.app.reload()).await;
        let outcome = status.pack.last_reload.clone().expect("it was tried");
        assert!(!outcome.succeeded && outcome.error.is_some_and(|error| !error.is_empty()), "{what}");
        assert_eq!(running.refusal().await, REASON, "{what}");
        assert_eq!(status.pack.generation, 1, "{what}");
        std::fs::write(running.file(&file), &pack).unwrap();
        std::fs::write(running.file("switchback.yaml"), &config).unwrap();
    }
    let status = running.after(|running| running.app.reload()).await;
    assert!(status.pack.last_reload.as_ref().is_some_and(|outcome| outcome.succeeded), "mended: {status:?}");
    running.app.shutdown().await;
}

/// A store with a key that the configuration of before lacks would not open at the next start.
#[tokio::test(flavor = "multi_thread")]
async fn a_reload_that_fails_at_its_clients_enrols_no_key() {
    let running = Running::start(false).await;
    let config = std::fs::read_to_string(running.file("switchback.yaml")).unwrap();
    let key = config.lines().find_map(|line| line.strip_prefix("key: ")).expect("there is a key");
    let taken = Secret::from("the-token-of-somebody-else");
    let other = NewClient {
        name: "other".to_owned(),
        company: None,
        tokens: vec![taken.clone().into()],
        credentials: Vec::new(),
        flow: GrantFlow::default(),
        app: None,
        refresh_token: None,
    };
    running.app.registry().add(other).await.expect("a client is added");
    let second = SealingKey::generate();
    running.edit("switchback.yaml", &format!("key: {key}"), &format!("key: [{}, {key}]", second.expose()));
    let client = format!("clients: [{{ name: late, v2_token: {} }}, ", taken.expose());
    running.edit("switchback.yaml", "clients: [", &client);
    let opens_with = async |keys: &[Secret<String>]| {
        let keys = KeyRing::parse(keys).expect("keys");
        let url = format!("sqlite:{}", running.file("store.db").display());
        Store::open(&url, keys, Clock::machine(), MissingStore::Refuse).await.is_ok()
    };
    let first = Secret::from(key);
    for (token, is_applied) in [(taken.expose().as_str(), false), ("the-token-of-nobody-else", true)] {
        running.edit("switchback.yaml", taken.expose(), token);
        let status = running.after(|running| running.app.reload()).await;
        let outcome = status.pack.last_reload.clone().expect("it was tried");
        assert_eq!(outcome.succeeded, is_applied, "{outcome:?}");
        assert_eq!(opens_with(std::slice::from_ref(&first)).await, !is_applied, "{token}");
    }
    running.app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_configuration_serves_and_says_what_takes_a_restart() {
    let running = Running::start(false).await;
    assert!(running.get("/v2/chats/7").await.headers().get("sunset").is_none());
    let more = "sunset: { v2: { deprecated: 2026-01-01, sunset: 2027-01-01, successor: https://example.com/v3 } }\nlimits: { target_bytes: 512 }\nlog: { format: json }\n";
    let text = std::fs::read_to_string(running.file("switchback.yaml")).unwrap() + more;
    std::fs::write(running.file("switchback.yaml"), text).unwrap();
    let status = running.after(|running| running.app.reload()).await;
    let outcome = status.pack.last_reload.clone().expect("it was tried");
    assert_eq!((outcome.error, outcome.needs_restart), (None, vec!["log.format".to_owned()]));
    for path in ["/v2/chats/7", "/v2/chats/7/feedback", "/v2/nothing"] {
        let answer = running.get(path).await;
        assert_eq!(answer.headers()["deprecation"], "@1767225600", "{path}");
        assert_eq!(answer.headers()["sunset"], "Fri, 01 Jan 2027 00:00:00 GMT", "{path}");
        assert_eq!(answer.headers()["link"], "<https://example.com/v3>; rel=\"successor-version\"", "{path}");
    }
    // Connections that were open have ended with their next answer.
    let long = running.get(&format!("/v2/{}", "a".repeat(600))).await;
    assert_eq!(long.status(), StatusCode::URI_TOO_LONG);
    running.app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_while_packs_are_swapped_under_load() {
    let running = Arc::new(Running::start(false).await);
    let asking = {
        let running = Arc::clone(&running);
        tokio::spawn(async move {
            for _ in 0..200 {
                assert_eq!(running.get("/v2/chats/7").await.status(), StatusCode::OK);
            }
        })
    };
    for n in 0..5 {
        let status = running.after(|running| running.app.reload()).await;
        assert!(
            status.pack.last_reload.as_ref().is_some_and(|outcome| outcome.succeeded),
            "reload {n}: {status:?}"
        );
    }
    asking.await.expect("no request failed");
}
