//! `switchback serve`: runs the gateway.

use super::output::{COULD_NOT_RUN, HAS_FINDINGS};
use super::pack::fail;
use super::stored::Format;
use crate::app::{self, Examined, RunningApp, StartError, StartOptions, Try};
use crate::config::{self, ConfigOutcome, Environment, ReplacedLimit};
use sd_notify::NotifyState;
use serde_json::json;
use std::future::Future;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use switchback_compiler::diagnostic::{Colour, Findings, Sources, to_json, to_text};
use switchback_gateway::clock::Clock;
use switchback_gateway::resident;
use switchback_gateway::server::Inherited;
use switchback_gateway::telemetry::log::{self, LogFormat};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs the gateway with a configuration file. Reloads pack and configuration on SIGHUP and when their files
/// change; drains on SIGTERM and SIGINT.
#[derive(clap::Args)]
pub struct ServeArgs {
    /// Configuration file; deploy/switchback.sample.yaml has all keys
    #[arg(long, short, value_name = "FILE", env = "SWITCHBACK_CONFIG")]
    config: PathBuf,

    /// Check configuration and pack without serving; `online` also checks the store, the services and the
    /// authorization server
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "offline")]
    check: Option<CheckMode>,

    /// Output format of --check
    #[arg(long, value_enum, default_value = "text", requires = "check")]
    format: Format,
    /// One JSON document, as --format json
    #[arg(long, requires = "check", conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CheckMode {
    /// Without network access
    Offline,
    /// Also connect to the store, the services and the authorization server
    Online,
}

/// Runs the gateway until a signal stops it.
pub fn run(args: &ServeArgs) -> Result<ExitCode, ExitCode> {
    let failed = |why: String| fail(COULD_NOT_RUN, format_args!("switchback serve: {why}"));
    let outcome = config::load(&args.config, &Environment::process())
        .map_err(|error| failed(format!("{} cannot be read: {error}", args.config.display())))?;
    if let Some(check) = args.check {
        return Ok(report_check(args, check, outcome));
    }
    show(&outcome.sources, &outcome.findings);
    let config = outcome.config.ok_or(ExitCode::from(HAS_FINDINGS))?;
    // Before any thread starts, as it requires.
    resident::prepare();
    let inherited = Inherited::take()
        .map_err(|error| failed(format!("what was passed (LISTEN_FDS) is no listening socket: {error}")))?;
    Ok(block_on("serve", async {
        log::init(&config.log);
        serve(StartOptions { config, file: Some(args.config.clone()), clock: Clock::machine(), inherited })
            .await
    }))
}

fn show(sources: &Sources, findings: &Findings) {
    if !findings.is_empty() {
        let colour = if std::io::stderr().is_terminal() { Colour::Always } else { Colour::Never };
        eprint!("{}", to_text(sources, findings, colour));
    }
}

/// Prints all findings without serving.
fn report_check(args: &ServeArgs, check: CheckMode, mut outcome: ConfigOutcome) -> ExitCode {
    let mut examined = Examined::default();
    let is_read = outcome.config.is_some();
    if let Some(config) = &outcome.config {
        let examining = async {
            examined = app::examine(config, check == CheckMode::Online).await?;
            Ok(())
        };
        let code = block_on("serve", examining);
        if code != ExitCode::SUCCESS {
            return code;
        }
    }
    outcome.findings.append(std::mem::take(&mut examined.findings));
    let is_ready = is_read && examined.is_ready() && !outcome.findings.has_errors();
    let format = if args.json { Format::Json } else { args.format };
    match format {
        Format::Text => {
            show(&outcome.sources, &outcome.findings);
            examined.pack.iter().for_each(|findings| eprintln!("{}", findings.trim_end()));
            for Try { key, address, error, warnings } in &examined.tries {
                match error {
                    None => println!("{key}: {address} answers"),
                    Some(error) => eprintln!("{key}: {address}: {error}"),
                }
                for warning in warnings {
                    eprintln!("{key}: warning: {warning}");
                }
            }
            for ReplacedLimit { place, limit, value, inherited } in &examined.limits {
                println!("{place}: {limit} {value} (instead of {inherited})");
            }
            if is_ready {
                println!("{}: ready to serve", args.config.display());
                let keys = app::TAKE_A_RESTART.join(", ");
                println!("changes are taken up while it runs, but for those of: {keys}");
            }
        }
        Format::Json => {
            let said = json!({
                "ready": is_ready,
                "configuration": to_json(&outcome.sources, &outcome.findings),
                "pack": examined.pack,
                "limits": examined.limits,
                "tries": examined.tries,
                "take_a_restart": app::TAKE_A_RESTART,
            });
            println!("{said:#}");
        }
    }
    if is_ready { ExitCode::SUCCESS } else { ExitCode::from(HAS_FINDINGS) }
}

async fn serve(start: StartOptions) -> Result<(), StartFailure> {
    let mut signals = Signals::new()?;
    let format = start.config.log.format;
    // A gateway that waits for its store must react to signals, too.
    let started = tokio::select! {
        started = RunningApp::start(start) => started,
        () = signals.stop() => {
            tracing::info!("stopped before it served");
            return Ok(());
        }
    };
    let app = started.map_err(|error| StartFailure::from(error).log(format))?;
    let addresses = app.addresses();
    let apart = |address: Option<SocketAddr>| address.map(|address| address.to_string());
    // Compiling the pack has freed much memory that the allocator still holds.
    resident::trim();
    tracing::info!(
        clients = %addresses.clients,
        admin = %addresses.admin,
        health = apart(addresses.health),
        callback = apart(addresses.callback),
        "serving"
    );
    // After all listeners accept, so that services that depend on this one can connect.
    tell(&[NotifyState::Ready]);
    let keeping_small = tokio::spawn(resident::keep_small());
    until_stopped(app, signals).await;
    keeping_small.abort();
    Ok(())
}

/// Serves until a signal stops the gateway, then drains. SIGHUP reloads. After SIGTERM, which
/// service managers and orchestrators send, clients are accepted for `limits.drain_delay`, until
/// load balancers have noticed. SIGINT, or a second signal, skips this delay.
pub(super) async fn until_stopped(app: RunningApp, mut signals: Signals) {
    let signal = loop {
        match signals.next().await {
            ProcessSignal::Reload => app.reload(),
            signal => break signal,
        }
    };
    let delay = app.leave();
    tell(&[NotifyState::Stopping]);
    tracing::info!("draining");
    if signal == ProcessSignal::Leave {
        // A reload signal must not shorten the delay.
        let _ = tokio::time::timeout(delay, async { while signals.next().await == ProcessSignal::Reload {} })
            .await;
    }
    let drained = app.shutdown().await;
    tracing::info!(connections_cut = drained.cut, "stopped");
}

/// Notifies the service manager, if there is one (`NOTIFY_SOCKET`, `Type=notify`).
fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the service manager (NOTIFY_SOCKET) cannot be told");
    }
}

pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessSignal {
    /// Stop after `limits.drain_delay`.
    Leave,
    /// Stop at once.
    Stop,
    Reload,
}

impl Signals {
    /// Installs the handlers. From here on, these signals no longer end the process by default.
    pub(super) fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn stop(&mut self) {
        while self.next().await == ProcessSignal::Reload {}
    }

    pub(super) async fn next(&mut self) -> ProcessSignal {
        tokio::select! {
            _ = self.interrupt.recv() => ProcessSignal::Stop,
            _ = self.terminate.recv() => ProcessSignal::Leave,
            _ = self.hang_up.recv() => ProcessSignal::Reload,
        }
    }
}

/// Why a verb failed.
pub(super) struct StartFailure {
    exit_code: u8,
    text: String,
    /// Whether the log has the error already.
    is_logged: bool,
}

impl StartFailure {
    /// Builds the error of a verb that could not run.
    pub(super) fn new(text: impl Into<String>) -> StartFailure {
        StartFailure { exit_code: COULD_NOT_RUN, text: text.into(), is_logged: false }
    }

    /// Logs the error if the log is JSON, for programs that read only the log.
    fn log(mut self, format: LogFormat) -> StartFailure {
        if format == LogFormat::Json {
            tracing::error!(reason = self.text.trim_end(), "the gateway did not start");
            self.is_logged = true;
        }
        self
    }
}

impl From<StartError> for StartFailure {
    fn from(error: StartError) -> StartFailure {
        match error {
            // The text is rendered findings, which need no prefix.
            StartError::Pack(_) | StartError::Mismatch(_) => {
                StartFailure { exit_code: HAS_FINDINGS, text: error.to_string(), is_logged: false }
            }
            error => StartFailure::new(error.to_string()),
        }
    }
}

impl From<std::io::Error> for StartFailure {
    fn from(error: std::io::Error) -> StartFailure {
        StartFailure::new(error.to_string())
    }
}

/// Runs a verb on a new runtime and prints its error. One worker thread suffices: clients are
/// served by separate threads.
pub(super) fn block_on(verb: &str, work: impl Future<Output = Result<(), StartFailure>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let outcome = runtime.map_err(StartFailure::from).and_then(|runtime| runtime.block_on(work));
    log::flush();
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    if failure.is_logged {
        return ExitCode::from(failure.exit_code);
    }
    match failure.exit_code {
        HAS_FINDINGS => eprintln!("{}", failure.text.trim_end()),
        _ => eprintln!("switchback {verb}: {}", failure.text.trim_end()),
    }
    ExitCode::from(failure.exit_code)
}
