//! `switchback serve`: the gateway against real upstreams.

use crate::app::{self, App, Start, StartError};
use crate::config::{self, Config, Surroundings};
use std::future::Future;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use switchback_compiler::diagnostic::{Colour, to_text};
use switchback_gateway::clock::Clock;
use switchback_gateway::resident;
use switchback_gateway::telemetry::log::{self, LogFormat};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Serves clients of one version from the service of the other, as a configuration file says. Reloads pack and
/// configuration on SIGHUP and when their files change; drains on SIGTERM and SIGINT.
#[derive(clap::Args)]
pub struct Args {
    /// The configuration file; deploy/switchback.sample.yaml shows every key
    #[arg(long, short, value_name = "FILE", env = "SWITCHBACK_CONFIG")]
    config: PathBuf,

    /// Say whether configuration and pack are right, and serve nothing
    #[arg(long)]
    check: bool,
}

/// Serves until told to stop.
pub fn run(args: &Args) -> ExitCode {
    let config = match read(&args.config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    resident::prepare();
    block_on("serve", async {
        if args.check {
            if let Some(warnings) = app::check(&config, Some(args.config.clone())).await? {
                eprint!("{warnings}");
            }
            println!("{}: ready to serve", args.config.display());
            return Ok(());
        }
        log::init(&config.log);
        serve(Start { config, file: Some(args.config.clone()), clock: Clock::machine() }).await
    })
}

/// Reads the configuration and shows what was found in it.
fn read(file: &Path) -> Result<Config, ExitCode> {
    let outcome = config::load(file, &Surroundings::process()).map_err(|error| {
        eprintln!("switchback serve: {} cannot be read: {error}", file.display());
        ExitCode::from(3)
    })?;
    if !outcome.findings.is_empty() {
        let colour = if std::io::stderr().is_terminal() { Colour::Always } else { Colour::Never };
        eprint!("{}", to_text(&outcome.sources, &outcome.findings, colour));
    }
    outcome.config.ok_or(ExitCode::from(1))
}

async fn serve(start: Start) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let format = start.config.log.format;
    // A gateway that waits for its store can be stopped too.
    let started = tokio::select! {
        started = App::start(start) => started,
        () = signals.stop() => {
            tracing::info!("stopped before it served");
            return Ok(());
        }
    };
    let app = started.map_err(|error| Failure::from(error).logged(format))?;
    let addresses = app.addresses();
    let apart = |address: Option<SocketAddr>| address.map(|address| address.to_string());
    tracing::info!(
        clients = %addresses.clients,
        admin = %addresses.admin,
        health = apart(addresses.health),
        callback = apart(addresses.callback),
        "serving"
    );
    resident::trim();
    let keeping_small = tokio::spawn(resident::keep_small());
    until_stopped(app, signals).await;
    keeping_small.abort();
    Ok(())
}

/// Serves until a signal asks to stop, then drains. SIGHUP reloads. SIGTERM comes from who runs many of us: clients are still
/// accepted until balancers know. Whoever sends SIGINT, or a second signal, does not want to wait.
pub(super) async fn until_stopped(app: App, mut signals: Signals) {
    let asked = loop {
        match signals.next().await {
            Asked::Reload => app.reload(),
            asked => break asked,
        }
    };
    let delay = app.leave();
    tracing::info!("draining");
    if asked == Asked::Leave {
        let _ = tokio::time::timeout(delay, async { while signals.next().await == Asked::Reload {} }).await;
    }
    let drained = app.shutdown().await;
    tracing::info!(connections_cut = drained.cut, "stopped");
}

/// The signals that a gateway obeys.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// When nothing comes any more.
    Leave,
    /// Now.
    Stop,
    Reload,
}

impl Signals {
    /// From here on these signals do not end the process by themselves.
    pub(super) fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits until a signal asks to stop.
    async fn stop(&mut self) {
        while self.next().await != Asked::Stop {}
    }

    pub(super) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.terminate.recv() => Asked::Leave,
            _ = self.hang_up.recv() => Asked::Reload,
        }
    }
}

/// Why a verb did not do its work.
pub(super) struct Failure {
    exit_code: u8,
    text: String,
    /// It stands in the log already.
    is_logged: bool,
}

impl Failure {
    /// It could not run.
    pub(super) fn new(text: impl Into<String>) -> Failure {
        Failure { exit_code: 3, text: text.into(), is_logged: false }
    }

    /// Written to the log where programs read that: its last line says why there is no more.
    fn logged(mut self, format: LogFormat) -> Failure {
        if format == LogFormat::Json {
            tracing::error!(reason = self.text.trim_end(), "the gateway did not start");
            self.is_logged = true;
        }
        self
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Failure {
        match error {
            // What was examined has findings; they bring their own form.
            StartError::Pack(findings) | StartError::Mismatch(findings) => {
                Failure { exit_code: 1, text: findings, is_logged: false }
            }
            error => Failure::new(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::new(error.to_string())
    }
}

/// Runs a verb's work on a runtime of its own; shows the error when it was not done. One thread besides this one is
/// enough for all but the clients, who are served by threads of their own.
pub(super) fn block_on(verb: &str, work: impl Future<Output = Result<(), Failure>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let outcome = runtime.map_err(Failure::from).and_then(|runtime| runtime.block_on(work));
    log::flush();
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    if failure.is_logged {
        return ExitCode::from(failure.exit_code);
    }
    match failure.exit_code {
        1 => eprintln!("{}", failure.text.trim_end()),
        _ => eprintln!("switchback {verb}: {}", failure.text.trim_end()),
    }
    ExitCode::from(failure.exit_code)
}
