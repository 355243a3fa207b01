//! A gateway as a process, with its resources according to the kernel.

use reqwest::Client;
use serde_json::Value;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use switchback_gateway::store::seal::SealingKey;
use switchback_sandbox::{Options, Sandbox};

const ADMIN_TOKEN: &str = "admin-token-of-the-measurement";
/// Timeout for the start of a gateway, and for expected states.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// Both versions of the service and their authorization server; one for each row, because its
/// refresh token is valid for one store.
pub async fn service() -> Sandbox {
    let started = Sandbox::start(Options { listen: ([127, 0, 0, 1], 0).into(), ..Options::default() }).await;
    started.expect("a loopback address")
}

pub struct Gateway {
    pub clients: SocketAddr,
    pub admin: SocketAddr,
    pub http: Client,
    /// Duration of the start until it is ready.
    pub ready: Duration,
    child: Child,
}

/// The common properties of the gateways of one table.
pub struct Setting<'s> {
    pub sandbox: &'s Sandbox,
    pub key: String,
    pub store: String,
    /// Additional lines of the configuration.
    pub more: &'s str,
}

impl<'s> Setting<'s> {
    pub fn new(sandbox: &'s Sandbox, store: String, more: &'s str) -> Setting<'s> {
        Setting { sandbox, key: SealingKey::generate().expose().clone(), store, more }
    }

    fn configuration(&self, clients: SocketAddr, admin: SocketAddr) -> String {
        let (at, app) = (self.sandbox.address(), self.sandbox.credentials());
        let client = app.account("administrator").expect("every sandbox has one");
        format!(
            "listen: '{clients}'\nadmin: {{ listen: '{admin}', token: {ADMIN_TOKEN} }}\nstore: '{}'\nkey: '{}'\n\
             upstreams: {{ v3: {{ url: 'http://{at}/v3' }}, v2: {{ url: 'http://{at}/v2' }} }}\n\
             settings: {{ agents: {{ max_chats: 5 }} }}\nlog: {{ level: error }}\nlimits: {{ drain_delay: 0s }}\n\
             oauth: {{ authorize_url: 'http://{at}/oauth/authorize', token_url: 'http://{at}/oauth/access_token', \
             redirect_url: '{}' }}\n{}clients:\n- {{ name: measured, v2_token: '{}', grant: {{ client_id: '{}', \
             client_secret: '{}', refresh_token: '{}' }} }}\n",
            self.store,
            self.key,
            app.redirect_uri,
            self.more,
            client.v2_token,
            app.client_id,
            app.client_secret,
            client.refresh_token
        )
    }

    /// The token of clients of the old version.
    pub fn token(&self) -> String {
        let client = self.sandbox.credentials().account("administrator").expect("every sandbox has one");
        format!("Bearer {}", client.v2_token)
    }
}

impl Gateway {
    /// Starts a gateway and waits until it is ready. Its configuration is in `folder` under `name`.
    pub async fn start(setting: &Setting<'_>, folder: &Path, name: &str) -> Gateway {
        let free = || TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let (clients, admin) = (free().expect("a port"), free().expect("a port"));
        let file = folder.join(format!("{name}.yaml"));
        std::fs::write(&file, setting.configuration(clients, admin)).expect("a file");
        let began = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_switchback"))
            .args(["serve", "--config"])
            .arg(&file)
            .env_remove("RUST_LOG")
            .env_remove("SWITCHBACK_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program is built");
        let http = Client::builder().no_proxy().timeout(PATIENCE).build().expect("a client");
        let mut gateway = Gateway { clients, admin, http, ready: Duration::ZERO, child };
        loop {
            let asked = gateway.http.get(format!("http://{admin}/healthz/ready")).send().await;
            if asked.is_ok_and(|answer| answer.status().is_success()) {
                gateway.ready = began.elapsed();
                return gateway;
            }
            let ended = gateway.child.try_wait().expect("it is ours");
            assert!(ended.is_none() && began.elapsed() < PATIENCE, "it does not become ready: {ended:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Ends the process with a signal, as a service manager does, and waits.
    pub async fn stop(mut self) {
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(told.is_ok_and(|status| status.success()), "it runs");
        while self.child.try_wait().expect("it is ours").is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Calls the admin port. Returns the answer and its duration in milliseconds.
    pub async fn admin(&self, path: &str) -> (String, f64) {
        let began = Instant::now();
        let asked = self.http.get(format!("http://{}{path}", self.admin)).bearer_auth(ADMIN_TOKEN);
        let answer = asked.send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a whole answer");
        assert!(status.is_success(), "{path}: {status}: {text}");
        (text, began.elapsed().as_secs_f64() * 1e3)
    }

    /// Returns the number of comparisons of an operation.
    pub async fn compared(&self, operation: &str) -> u64 {
        let (report, _) = self.admin("/api/diff").await;
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let operations = report["operations"].as_array().expect("a list");
        let Some(of_it) = operations.iter().find(|one| one["operation"] == operation) else { return 0 };
        ["equal", "different", "equal_so_far"].iter().filter_map(|kind| of_it["counts"][*kind].as_u64()).sum()
    }

    /// Returns the CPU time in milliseconds, with the kernel's resolution of ten.
    pub fn cpu_ms(&self) -> f64 {
        cpu_ms(self.child.id()).expect("it runs")
    }

    /// Returns the anonymous resident memory in MiB.
    pub fn anonymous_mib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("Linux says so");
        let kib: f64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number");
        kib / 1024.0
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the CPU time of a process in milliseconds: fields 14 and 15 of proc(5), in ticks of a
/// hundredth of a second.
pub fn cpu_ms(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain spaces and parentheses.
    let after = stat.rsplit_once(')')?.1;
    let ticks: Vec<f64> =
        after.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse().ok()).collect();
    Some(ticks.iter().sum::<f64>() * 10.0)
}
