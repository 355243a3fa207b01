//! `switchback demo`: sandbox, gateway and studio in one process on loopback, with a store in a temporary folder and a
//! client enrolled, ready to be tried with curl. What it is configured with and what it prints are part of the pack.

use super::serve::{Failure, Signals, block_on, until_stopped};
use crate::app::{App, Start};
use crate::config::{self, Config, Surroundings};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use switchback_compiler::diagnostic::{Colour, to_text};
use switchback_gateway::clock::Clock;
use switchback_gateway::server::Inherited;
use switchback_gateway::store::seal::{SealingKey, random};
use switchback_gateway::telemetry::log;
use switchback_sandbox::{Options, Sandbox};

/// The configuration, with variables for what is known only when the demo runs.
const CONFIGURATION: &str = include_str!("../../mappings/messaging/demo.yaml");
/// What is printed, with places in braces.
const WELCOME: &str = include_str!("../../mappings/messaging/demo.txt");

/// Runs the service, the gateway in front of it and the studio in one process on loopback, and prints curl lines to
/// try. Everything is made up and forgotten at the end.
#[derive(clap::Args)]
pub struct Args {
    /// Where the gateway listens; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,

    /// Where the studio listens
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9090")]
    admin: SocketAddr,

    /// Where the sandbox listens
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9003")]
    sandbox: SocketAddr,

    /// Folder of the pack, instead of the one that is built in
    #[arg(long, value_name = "DIR")]
    mapping: Option<PathBuf>,
}

/// Runs until told to stop.
pub fn run(args: &Args) -> ExitCode {
    block_on("demo", async {
        let signals = Signals::new()?;
        let folder = Folder::new()?;
        let (sandbox, app, welcome) = start(args, folder.path()).await?;
        println!("{welcome}");
        until_stopped(app, signals).await;
        sandbox.stop().await;
        Ok(())
    })
}

async fn start(args: &Args, folder: &Path) -> Result<(Sandbox, App, String), Failure> {
    // The sandbox has to know the callback before the admin port is open.
    let admin = free(args.admin).map_err(|error| busy(args.admin, "--admin", &error))?;
    let callback = format!("http://{admin}/oauth/callback");
    let options =
        Options { listen: args.sandbox, redirect_uris: vec![callback.clone()], ..Options::default() };
    let sandbox = Sandbox::start(options).await.map_err(|error| busy(args.sandbox, "--sandbox", &error))?;
    let admin_token: String = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();

    let credentials = sandbox.credentials();
    let service = format!("http://{}", sandbox.address());
    let key = SealingKey::generate();
    let variables: HashMap<&str, String> = HashMap::from([
        ("DEMO_LISTEN", args.listen.to_string()),
        ("DEMO_ADMIN", admin.to_string()),
        ("DEMO_ADMIN_TOKEN", admin_token.clone()),
        ("DEMO_FOLDER", folder.display().to_string()),
        ("DEMO_KEY", key.expose().clone()),
        ("DEMO_SANDBOX", service.clone()),
        ("DEMO_CALLBACK", callback),
        ("DEMO_CLIENT_TOKEN", credentials.v2_token.clone()),
        ("DEMO_CLIENT_ID", credentials.client_id.clone()),
        ("DEMO_CLIENT_SECRET", credentials.client_secret.clone()),
        ("DEMO_REFRESH_TOKEN", credentials.refresh_token.clone()),
    ]);
    let mut config = configuration(&variables)?;
    config.mapping.clone_from(&args.mapping);
    log::init(&config.log);
    let client_token = credentials.v2_token.clone();
    let app =
        App::start(Start { config, file: None, clock: Clock::machine(), inherited: Inherited::default() })
            .await?;

    let welcome = [
        ("{gateway}", format!("http://{}", app.addresses().clients)),
        ("{admin}", format!("http://{}", app.addresses().admin)),
        ("{admin_token}", admin_token),
        ("{sandbox}", service),
        ("{token}", client_token),
    ];
    let welcome = welcome.iter().fold(WELCOME.to_owned(), |text, (place, value)| text.replace(place, value));
    Ok((sandbox, app, welcome))
}

fn configuration(variables: &HashMap<&str, String>) -> Result<Config, Failure> {
    let variable = |name: &str| variables.get(name).cloned();
    let surroundings = Surroundings { variable: &variable, read_file: &|path| fs::read(path) };
    let outcome = config::parse("demo.yaml", CONFIGURATION, &surroundings);
    outcome.config.ok_or_else(|| Failure::new(to_text(&outcome.sources, &outcome.findings, Colour::Never)))
}

/// The address with a free port where port 0 was asked for. It is free now; that nobody takes it until it is listened on
/// is likely enough for a demo.
fn free(address: SocketAddr) -> io::Result<SocketAddr> {
    match address.port() {
        0 => TcpListener::bind(address)?.local_addr(),
        _ => Ok(address),
    }
}

fn busy(address: SocketAddr, option: &str, error: &io::Error) -> Failure {
    Failure::new(format!("cannot listen on {address}: {error}; choose another address with {option}"))
}

/// A folder that only we can read, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Folder> {
        let name: String = random::<8>().iter().map(|byte| format!("{byte:02x}")).collect();
        let path = std::env::temp_dir().join(format!("switchback-demo-{name}"));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        Ok(Folder(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind is sealed, and the system's to clean up.
        let _ = fs::remove_dir_all(&self.0);
    }
}
