//! `switchback demo`: runs sandbox, gateway and studio in one process on loopback, with a temporary
//! store, clients that call continuously, and a migration in progress. The configuration, the
//! calls, the planted differences and the printed text are files of the pack.

use super::admin_port::http;
use super::serve::{Signals, StartFailure, block_on, until_stopped};
use crate::app::{RunningApp, StartOptions};
use crate::config::{self, Config, Environment};
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use switchback_compiler::diagnostic::{Colour, to_text};
use switchback_gateway::clock::{Clock, rfc3339};
use switchback_gateway::server::Inherited;
use switchback_gateway::store::seal::{SealingKey, random};
use switchback_gateway::telemetry::log;
use switchback_sandbox::{Options, Sandbox};
use tokio::task::JoinHandle;

/// The configuration. Its variables are filled in at start.
const CONFIGURATION: &str = include_str!("../../mappings/messaging/demo.yaml");
/// The calls of the clients and the planted differences.
const TRAFFIC: &str = include_str!("../../mappings/messaging/demo.traffic.json");
/// The printed text, with placeholders in braces.
const WELCOME: &str = include_str!("../../mappings/messaging/demo.txt");

/// Runs both versions of the service, the gateway and the studio in one process on loopback, with simulated
/// clients and a migration in progress, and prints the address of the studio and commands to try. All data is
/// generated and discarded at exit.
#[derive(clap::Args)]
pub struct DemoArgs {
    /// Address of the gateway; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,

    /// Address of the studio
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9090")]
    admin: SocketAddr,

    /// Address of the sandbox
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9003")]
    sandbox: SocketAddr,

    /// Folder of the pack [default: the built-in pack]
    #[arg(long, value_name = "DIR")]
    mapping: Option<PathBuf>,

    /// Open the studio in the browser
    #[arg(long)]
    open: bool,

    /// Do not start simulated clients
    #[arg(long)]
    quiet: bool,
}

/// Runs the demo until a signal stops it.
pub fn run(args: &DemoArgs) -> ExitCode {
    block_on("demo", async {
        let signals = Signals::new()?;
        let folder = PrivateFolder::new()?;
        let (sandbox, app, welcome) = start(args, folder.path()).await?;
        let traffic = traffic(args, &sandbox, &app).await?;
        println!("{welcome}");
        if args.open {
            open(&format!("http://{}/", app.addresses().admin));
        }
        until_stopped(app, signals).await;
        traffic.abort();
        sandbox.stop().await;
        Ok(())
    })
}

async fn start(args: &DemoArgs, folder: &Path) -> Result<(Sandbox, RunningApp, String), StartFailure> {
    // The sandbox needs the callback URL before the admin port is bound.
    let admin = free(args.admin).map_err(|error| busy(args.admin, "--admin", &error))?;
    let callback = format!("http://{admin}/oauth/callback");
    let options = Options {
        listen: args.sandbox,
        redirect_uris: vec![callback.clone()],
        expires_in: TOKEN_LIFE,
        ..Options::default()
    };
    let sandbox = Sandbox::start(options).await.map_err(|error| busy(args.sandbox, "--sandbox", &error))?;
    let listen = free(args.listen).map_err(|error| busy(args.listen, "--listen", &error))?;
    let admin_token: String = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();

    let credentials = sandbox.credentials();
    let service = format!("http://{}", sandbox.address());
    let key = SealingKey::generate();
    let mut variables = vec![
        ("DEMO_LISTEN".to_owned(), listen.to_string()),
        ("DEMO_ADMIN".to_owned(), admin.to_string()),
        ("DEMO_ADMIN_TOKEN".to_owned(), admin_token.clone()),
        ("DEMO_FOLDER".to_owned(), folder.display().to_string()),
        ("DEMO_KEY".to_owned(), key.expose().clone()),
        ("DEMO_SANDBOX".to_owned(), service.clone()),
        ("DEMO_CALLBACK".to_owned(), callback),
        ("DEMO_SUNSET".to_owned(), rfc3339(Clock::machine().unix_ms() + SUNSET_IN_MS)),
        ("DEMO_CLIENT_ID".to_owned(), credentials.client_id.clone()),
        ("DEMO_CLIENT_SECRET".to_owned(), credentials.client_secret.clone()),
    ];
    for client in &demo_traffic().clients {
        let account = credentials.account(&client.account).expect("every sandbox has it");
        let name = client.name.to_ascii_uppercase();
        variables.push((format!("DEMO_{name}_TOKEN"), account.v2_token.clone()));
        variables.push((format!("DEMO_{name}_REFRESH"), account.refresh_token.clone()));
    }
    let client_token = credentials.v2_token.clone();
    let file = write_config(&variables, args.mapping.as_deref(), folder)?;
    let config = configuration(&file)?;
    log::init(&config.log);
    let start = StartOptions {
        config,
        file: Some(file.clone()),
        clock: Clock::machine(),
        inherited: Inherited::default(),
    };
    let app = RunningApp::start(start).await?;

    let welcome = [
        ("{gateway}", format!("http://{}", app.addresses().clients)),
        ("{admin}", format!("http://{}", app.addresses().admin)),
        ("{admin_token}", admin_token),
        ("{sandbox}", service),
        ("{token}", client_token),
        ("{config}", file.display().to_string()),
    ];
    let welcome = welcome.iter().fold(WELCOME.to_owned(), |text, (place, value)| text.replace(place, value));
    Ok((sandbox, app, welcome))
}

/// Lifetime of access tokens, short enough to watch a refresh.
const TOKEN_LIFE: Duration = Duration::from_secs(20 * 60);
/// Time until the sunset of the old version for one of the clients.
const SUNSET_IN_MS: i64 = 60 * 24 * 3_600 * 1_000;

/// Writes the configuration, including secrets, into the private folder. The command line works
/// with this file, too.
fn write_config(
    variables: &[(String, String)],
    mapping: Option<&Path>,
    folder: &Path,
) -> Result<PathBuf, StartFailure> {
    let filled = variables
        .iter()
        .fold(CONFIGURATION.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value));
    let mapping = mapping.map(std::path::absolute).transpose()?;
    let mapping = mapping.map(|folder| format!("mapping: '{}'\n", folder.display())).unwrap_or_default();
    let file = folder.join("switchback.yaml");
    fs::write(&file, filled + &mapping)?;
    Ok(file)
}

fn configuration(file: &Path) -> Result<Config, StartFailure> {
    let outcome = config::load(file, &Environment::process())?;
    outcome
        .config
        .ok_or_else(|| StartFailure::new(to_text(&outcome.sources, &outcome.findings, Colour::Never)))
}

/// The plan of the demo's clients.
#[derive(serde::Deserialize)]
struct DemoTraffic {
    every_ms: u64,
    clients: Vec<TrafficClient>,
    calls: Vec<TrafficCall>,
    differences: Vec<serde_json::Value>,
}

#[derive(serde::Deserialize)]
struct TrafficClient {
    name: String,
    /// The account in the sandbox.
    account: String,
    /// Whether the owner revokes its grant.
    #[serde(default)]
    ended: bool,
}

#[derive(serde::Deserialize)]
struct TrafficCall {
    method: String,
    path: String,
    body: Option<serde_json::Value>,
}

/// Parses the plan of the demo.
fn demo_traffic() -> DemoTraffic {
    serde_json::from_str(TRAFFIC).expect("a test starts the demo")
}

/// Plants the differences and spawns the clients, which call forever.
async fn traffic(
    args: &DemoArgs,
    sandbox: &Sandbox,
    app: &RunningApp,
) -> Result<JoinHandle<()>, StartFailure> {
    let traffic = demo_traffic();
    let http = http().map_err(|error| StartFailure::new(error.to_string()))?;
    let control = format!("http://{}/_sandbox", sandbox.address());
    let asked = async |path: &str, body: &serde_json::Value| {
        let sent = http.post(format!("{control}/{path}")).json(body).send().await;
        sent.and_then(reqwest::Response::error_for_status)
            .map_err(|error| StartFailure::new(format!("the sandbox does not do {path}: {error}")))
    };
    if !args.quiet {
        for rule in &traffic.differences {
            asked("differences", rule).await?;
        }
        for client in traffic.clients.iter().filter(|client| client.ended) {
            if let Some(account) = sandbox.credentials().account(&client.account) {
                asked("tokens/revoke", &serde_json::json!({ "token": account.refresh_token })).await?;
            }
        }
    }
    let tokens: Vec<String> = traffic
        .clients
        .iter()
        .filter_map(|client| Some(sandbox.credentials().account(&client.account)?.v2_token.clone()))
        .collect();
    let gateway = format!("http://{}", app.addresses().clients);
    let is_quiet = args.quiet;
    Ok(tokio::spawn(async move {
        let mut pause = tokio::time::interval(Duration::from_millis(traffic.every_ms.max(1)));
        let count = traffic.calls.len() * tokens.len();
        for number in (0..count).cycle().take_while(|_| !is_quiet) {
            pause.tick().await;
            let (call, token) = (&traffic.calls[number / tokens.len()], &tokens[number % tokens.len()]);
            let method = call.method.parse().unwrap_or_default();
            let request = http.request(method, format!("{gateway}{}", call.path)).bearer_auth(token);
            let request = match &call.body {
                Some(body) => request.json(body),
                None => request,
            };
            // The studio shows the outcome.
            if let Ok(response) = request.send().await {
                let _ = response.bytes().await;
            }
        }
    }))
}

/// Opens an address in the browser. On failure the user can follow the printed address.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = std::process::Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        eprintln!("the browser was not opened ({program}: {error})");
    }
}

/// Returns the address, with a free port in place of port 0. Another process could bind the port
/// before the demo does; for a demo the risk is acceptable.
fn free(address: SocketAddr) -> io::Result<SocketAddr> {
    match address.port() {
        0 => TcpListener::bind(address)?.local_addr(),
        _ => Ok(address),
    }
}

fn busy(address: SocketAddr, option: &str, error: &io::Error) -> StartFailure {
    StartFailure::new(format!("cannot listen on {address}: {error}; choose another address with {option}"))
}

/// A private temporary folder, removed on drop.
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    fn new() -> io::Result<PrivateFolder> {
        let name: String = random::<8>().iter().map(|byte| format!("{byte:02x}")).collect();
        let path = std::env::temp_dir().join(format!("switchback-demo-{name}"));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        Ok(PrivateFolder(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // Leftovers are in a private folder below the system's temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_gateway::shadow::Share;

    /// Canary membership is a function of the client's name, so renaming clients can leave the
    /// canary empty.
    #[test]
    fn the_canary_reaches_a_client_whose_grant_works_and_not_all_of_them() {
        let canary = CONFIGURATION.lines().find(|line| line.contains("phase: canary")).expect("a canary");
        let operation = canary.split('\'').nth(1).expect("an operation in quotes");
        let share = canary.split("share: ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a share");
        let share: Share = share.parse().expect("a share");
        let clients = demo_traffic().clients;
        let works = |client: &&TrafficClient| {
            let refresh = format!("${{DEMO_{}_REFRESH}}", client.name.to_ascii_uppercase());
            !client.ended && CONFIGURATION.contains(&refresh)
        };
        assert!(clients.iter().filter(works).any(|client| share.has_client(&client.name, operation)));
        assert!(!clients.iter().all(|client| share.has_client(&client.name, operation)));
    }
}
