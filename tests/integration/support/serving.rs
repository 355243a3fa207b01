//! `switchback serve` as an operator runs it: a configuration file is written, the real binary
//! started with it, and waited for.

use super::program::Program;
use super::raw;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use switchback_gateway::secret::Secret;
use switchback_gateway::store::seal::SealingKey;
use switchback_sandbox::{Account, Sandbox};
use tempfile::TempDir;

/// Writes a configuration: the common part of all gateways in tests, then `more`, which is lines of
/// YAML from line 7 on, or from line 6 on if it starts with its own settings. `upstream` is the
/// address of the v3 service.
pub fn write(folder: &Path, upstream: &str, more: &str) -> PathBuf {
    write_before(folder, upstream, &["v3"], more)
}

/// The same, the v3 service being at `url`.
pub fn write_at(folder: &Path, url: &str, more: &str) -> PathBuf {
    let file = write(folder, "127.0.0.1:9", more);
    let text = std::fs::read_to_string(&file).expect("it was written a moment ago");
    std::fs::write(&file, text.replacen("http://127.0.0.1:9/v3", url, 1)).expect("the file is written");
    file
}

/// The same before these sides of the service.
pub fn write_before(folder: &Path, service: &str, sides: &[&str], more: &str) -> PathBuf {
    let file = folder.join("switchback.yaml");
    let upstreams = sides.iter().map(|side| format!("{side}: {{ url: 'http://{service}/{side}' }}"));
    let settings = match more.starts_with("settings:") {
        true => "",
        false => "settings: { agents: { max_chats: 5 } }\n",
    };
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{}/store.db\nkey: ${{TEST_KEY}}\n\
         upstreams: {{ {} }}\n{settings}{more}",
        folder.display(),
        upstreams.collect::<Vec<_>>().join(", ")
    );
    std::fs::write(&file, text).expect("the file is written");
    file
}

/// Starts the binary with a configuration file and a fresh key.
pub fn start(file: &Path, more: &[&str]) -> Program {
    start_with(file, &SealingKey::generate(), more)
}

fn start_with(file: &Path, key: &Secret<String>, more: &[&str]) -> Program {
    // Only the certificates of the tests' upstreams are trusted.
    start_trusting(file, key, &super::tls::upstream_certificate(), more)
}

/// The same with this key, in a system that trusts this authority.
pub fn start_trusting(file: &Path, key: &Secret<String>, trusted: &Path, more: &[&str]) -> Program {
    let file = file.to_str().expect("temporary folders have plain names");
    let arguments = [&["serve", "--config", file], more].concat();
    let trusted = trusted.to_str().expect("the project lies at a plain path");
    Program::start(&arguments, &[("TEST_KEY", key.expose()), ("SSL_CERT_FILE", trusted)])
}

/// The same with at most so many descriptors.
pub fn start_with_descriptors(file: &Path, count: u32) -> Program {
    let file = file.to_str().expect("temporary folders have plain names");
    let key = SealingKey::generate();
    Program::start_with_descriptors(count, &["serve", "--config", file], &[("TEST_KEY", key.expose())])
}

/// Starts the binary with a configuration file and this key, and waits until it serves, away from
/// the thread that tests and their services run on: gives it, and where clients and where operators
/// connect to it.
pub async fn serve(file: &Path, key: &Secret<String>) -> (Program, SocketAddr, SocketAddr) {
    let (file, key) = (file.to_owned(), key.clone());
    let starting = tokio::task::spawn_blocking(move || {
        let file = file.to_str().expect("temporary folders have plain names");
        let program = Program::start(&["serve", "--config", file], &[("TEST_KEY", key.expose())]);
        let (clients, admin) = addresses(&program);
        (program, clients, admin)
    });
    starting.await.expect("it serves")
}

/// Waits until a gateway serves. Returns its address for clients.
pub fn address(program: &Program) -> SocketAddr {
    addresses(program).0
}

/// Waits until a gateway serves. Returns its addresses for clients and for operators.
pub fn addresses(program: &Program) -> (SocketAddr, SocketAddr) {
    let said = program.stderr_until("serving");
    // As text, or as JSON.
    let address = |name: &str| {
        let marks = [format!("{name}="), format!("\"{name}\":\"")];
        let rest = marks.iter().find_map(|mark| said.split(mark.as_str()).nth(1));
        let address = rest.and_then(|rest| rest.split([' ', '"', '\n']).next()?.parse().ok());
        address.unwrap_or_else(|| panic!("no {name} in:\n{said}"))
    };
    (address("clients"), address("admin"))
}

/// A client of a gateway: an account of the sandbox, by its v2 token and with a grant of its own.
pub struct Enrolled<'s> {
    pub account: &'s Account,
    /// The secondary company that it acts on, if any.
    pub company: Option<u64>,
}

/// A running gateway in front of a sandbox. Stopped when dropped.
pub struct Serving {
    /// Where clients connect.
    pub address: SocketAddr,
    /// Where operators do.
    pub admin: SocketAddr,
    _program: Program,
    /// Where its configuration `switchback.yaml` and its store are.
    pub folder: TempDir,
    /// Its sealing key, in the variable `TEST_KEY`.
    pub key: Secret<String>,
}

impl Serving {
    /// A gateway with one client, the sandbox's administrator.
    pub async fn before(sandbox: &Sandbox) -> Serving {
        let account = sandbox.credentials().account("administrator").expect("every sandbox has one");
        Serving::with(sandbox, &[Enrolled { account, company: None }]).await
    }

    /// A gateway between v2 clients and v3, with these clients.
    pub async fn with(sandbox: &Sandbox, clients: &[Enrolled<'_>]) -> Serving {
        Serving::configured(sandbox.address(), &["v3"], &connected(sandbox, clients)).await
    }

    /// A gateway in front of these sides of the service, with `more` lines of configuration.
    pub async fn configured(service: SocketAddr, sides: &[&str], more: &str) -> Serving {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = write_before(folder.path(), &service.to_string(), sides, more);
        Serving::of(folder, file).await
    }

    /// The same with a store of the caller's, which several gateways may share at once or one after
    /// the other.
    pub async fn storing(
        service: SocketAddr,
        sides: &[&str],
        (store, key): (&str, &Secret<String>),
        more: &str,
    ) -> Serving {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = write_before(folder.path(), &service.to_string(), sides, more);
        let text = std::fs::read_to_string(&file).expect("it was written a moment ago");
        let own = format!("sqlite:{}/store.db", folder.path().display());
        std::fs::write(&file, text.replacen(&own, store, 1)).expect("the file is written");
        Serving::keyed(folder, file, key.clone()).await
    }

    /// A gateway with its v3 service at `url`, with `more` lines of configuration.
    pub async fn at(url: &str, more: &str) -> Serving {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = write_at(folder.path(), url, more);
        Serving::of(folder, file).await
    }

    async fn of(folder: TempDir, file: PathBuf) -> Serving {
        Serving::keyed(folder, file, SealingKey::generate()).await
    }

    async fn keyed(folder: TempDir, file: PathBuf, key: Secret<String>) -> Serving {
        let own_key = key.clone();
        // Waiting blocks, and the sandbox may run on this very thread.
        let starting = tokio::task::spawn_blocking(move || {
            let program = start_with(&file, &own_key, &[]);
            let addresses = addresses(&program);
            (program, addresses)
        });
        let (program, (address, admin)) = starting.await.expect("it serves");
        Serving { address, admin, _program: program, folder, key }
    }
}

impl Serving {
    /// Its counts.
    pub async fn metrics(&self) -> String {
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.admin);
        raw::exchange(self.admin, request).await.expect("the admin port answers").text()
    }
}

/// The section about the authorization server.
pub fn oauth(sandbox: &Sandbox) -> String {
    let at = sandbox.address();
    format!(
        "oauth: {{ authorize_url: 'http://{at}/oauth/authorize', token_url: 'http://{at}/oauth/access_token', \
         redirect_url: '{}' }}\n",
        sandbox.credentials().redirect_uri
    )
}

/// The sections about the authorization server and about clients.
pub fn connected(sandbox: &Sandbox, clients: &[Enrolled<'_>]) -> String {
    let app = sandbox.credentials();
    let oauth = oauth(sandbox) + "clients:\n";
    let clients = clients.iter().map(|Enrolled { account, company }| {
        let company = company.map_or(String::new(), |company| format!("company: {company}, "));
        format!(
            "- {{ name: {}, v2_token: '{}', {company}grant: {{ client_id: '{}', client_secret: '{}', \
             refresh_token: '{}' }} }}\n",
            account.role, account.v2_token, app.client_id, app.client_secret, account.refresh_token
        )
    });
    std::iter::once(oauth).chain(clients).collect()
}
