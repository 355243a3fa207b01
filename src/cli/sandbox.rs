//! `switchback sandbox`: runs the simulated service.

use super::output::COULD_NOT_RUN;
use super::pack::fail;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use switchback_sandbox::{Options, Sandbox, Size};
use tokio::signal::unix::{SignalKind, signal};

/// Simulates the messaging service: v3, v2 and its authorization server, with generated data that is
/// discarded at exit. The same seed generates the same data and tokens. /_sandbox/ controls faults, clock and
/// request log (GET it for the list).
#[derive(clap::Args)]
pub struct SandboxArgs {
    /// Address; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9003")]
    listen: SocketAddr,

    /// Seed of data and tokens
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Amount of data: small has every kind of record, large has more than a million records
    #[arg(long, value_enum, default_value = "small")]
    size: SizeArg,

    /// Lifetime of access tokens: 30d, 12h, 5m, 3s or seconds
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = duration)]
    expires_in: Duration,

    /// Do not rotate the refresh token
    #[arg(long)]
    no_rotation: bool,

    /// Reject a reused refresh token without ending its grant
    #[arg(long)]
    no_reuse_detection: bool,

    /// File that stores tokens across restarts
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Callback address of the OAuth application; repeat for several
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9090/oauth/callback")]
    redirect_uri: Vec<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum SizeArg {
    Small,
    Large,
}

/// Runs the sandbox until a signal stops it.
pub fn run(args: SandboxArgs) -> ExitCode {
    let served = tokio::runtime::Builder::new_multi_thread().enable_all().build().and_then(|runtime| {
        // A large data set may still be under construction in a blocking task: do not wait for it.
        let result = runtime.block_on(serve(args));
        runtime.shutdown_background();
        result
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(COULD_NOT_RUN, format_args!("switchback sandbox: {error}")),
    }
}

async fn serve(args: SandboxArgs) -> io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let sandbox = tokio::select! {
        started = Sandbox::start(options(args)) => started?,
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
    };
    println!("{}", sandbox.welcome());
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    sandbox.stop().await;
    Ok(())
}

fn options(args: SandboxArgs) -> Options {
    Options {
        listen: args.listen,
        seed: args.seed,
        size: match args.size {
            SizeArg::Small => Size::Small,
            SizeArg::Large => Size::Large,
        },
        expires_in: args.expires_in,
        rotate_refresh: !args.no_rotation,
        detect_reuse: !args.no_reuse_detection,
        state_file: args.state,
        redirect_uris: args.redirect_uri,
    }
}

/// Parses a duration: a number with a unit, or seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(format!("'{unit}' is no unit; use s, m, h or d")),
    };
    let number: u64 = number.parse().map_err(|_| "a time is a number with s, m, h or d".to_owned())?;
    number.checked_mul(scale).map(Duration::from_secs).ok_or_else(|| "this time is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("30d", 2_592_000), ("3s", 3), ("90", 90), ("2h", 7200), ("5m", 300)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "d", "3 s", "-1s", "3w", "99999999999999999d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
