//! `switchback serve` as an operator runs it: a configuration file is written, the real binary started with it, and waited for.

use super::program::Program;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use switchback::sandbox::{Account, Sandbox};
use switchback::store::seal::SealingKey;
use tempfile::TempDir;

/// Writes a configuration: what every gateway of a test needs, then `more`, which is lines of YAML from line 7 on. `upstream`
/// is the address of the v3 service.
pub fn write(folder: &Path, upstream: &str, more: &str) -> PathBuf {
    let file = folder.join("switchback.yaml");
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{}/store.db\nkey: ${{TEST_KEY}}\n\
         upstreams: {{ v3: {{ url: 'http://{upstream}/v3' }} }}\nsettings: {{ agents: {{ max_chats: 5 }} }}\n{more}",
        folder.display()
    );
    std::fs::write(&file, text).expect("the file is written");
    file
}

/// Starts the binary with a configuration file and a fresh key.
pub fn start(file: &Path, more: &[&str]) -> Program {
    let key = SealingKey::generate();
    let file = file.to_str().expect("temporary folders have plain names");
    let arguments = [&["serve", "--config", file], more].concat();
    Program::start(&arguments, &[("TEST_KEY", key.expose())])
}

/// Waits until a gateway serves, and says where clients connect to it.
pub fn address(program: &Program) -> SocketAddr {
    let said = program.stderr_until("serving");
    let address = said.split("clients=").nth(1).and_then(|rest| rest.split_whitespace().next());
    let address = address.and_then(|address| address.parse().ok());
    address.unwrap_or_else(|| panic!("no address in:\n{said}"))
}

/// A client of a gateway: an account of the sandbox, by its v2 token and with a grant of its own.
pub struct Enrolled<'s> {
    pub account: &'s Account,
    /// The secondary company that it acts on, if any.
    pub company: Option<u64>,
}

/// A running gateway between v2 clients and the v3 of a sandbox. Stopped when dropped.
pub struct Serving {
    /// Where clients connect.
    pub address: SocketAddr,
    _program: Program,
    _folder: TempDir,
}

impl Serving {
    /// A gateway whose one client is the sandbox's administrator.
    pub async fn before(sandbox: &Sandbox) -> Serving {
        let account = sandbox.credentials().account("administrator").expect("every sandbox has one");
        Serving::with(sandbox, &[Enrolled { account, company: None }]).await
    }

    /// A gateway with these clients.
    pub async fn with(sandbox: &Sandbox, clients: &[Enrolled<'_>]) -> Serving {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = sandbox.address();
        let file = write(folder.path(), &at.to_string(), &connected(sandbox, clients));
        // Waiting blocks, and the sandbox may run on this very thread.
        let starting = tokio::task::spawn_blocking(move || {
            let program = start(&file, &[]);
            let address = address(&program);
            (program, address)
        });
        let (program, address) = starting.await.expect("it serves");
        Serving { address, _program: program, _folder: folder }
    }
}

/// The sections about the authorization server and about clients.
fn connected(sandbox: &Sandbox, clients: &[Enrolled<'_>]) -> String {
    let (at, app) = (sandbox.address(), sandbox.credentials());
    let oauth = format!(
        "oauth: {{ authorize_url: 'http://{at}/oauth/authorize', token_url: 'http://{at}/oauth/access_token', \
         redirect_url: '{}' }}\nclients:\n",
        app.redirect_uri
    );
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
