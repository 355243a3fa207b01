//! A long run of all features at once, started by hand: two replicas on one PostgreSQL between
//! clients of both versions and a sandbox that is both services, behind proxies that reset one call
//! in twenty. Access tokens expire every minute, the store stalls, replicas reload, and one of them
//! is stopped every five minutes. Checks at the end: was a write doubled, lost, mixed up between
//! clients or leaked, did the gate roll back equal operations, and does memory grow?
//!
//! ```console
//! $ cargo test --release --test soak -- --minutes 60 --rate 20 --seed 7
//! ```
//!
//! The last line is the verdict; the exit code is 0 without faults, 1 with faults, 2 if it could
//! not run. The seed is printed: it determines load, faults and data, though not the order of
//! events in two processes.
//!
//! | Room | What lives there |
//! |---|---|
//! | `faults` | the proxies: resets before, within and after an answer; which tokens went by |
//! | `replicas` | the gateways as processes: started, told to end, reloaded, their logs and memory |
//! | `load` | what clients do, and what they were told |
//! | `disturb` | what happens on a clock: tokens end, the store stalls, reloads, a replica ends |
//! | `checks` | what must hold afterwards |
//! | `slope` | a line through samples of memory, and how sure it is |

mod checks;
mod disturb;
mod faults;
mod load;
#[path = "../integration/support/postgres.rs"]
mod postgres;
mod replicas;
mod slope;

use checks::{Seen, Verdict};
use clap::Parser;
use faults::Proxy;
use load::{Book, Load};
use replicas::{Replica, Setting};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchback_sandbox::{Options, Sandbox};

/// A long run of everything at once.
#[derive(Clone, Debug, Parser)]
pub struct Args {
    /// How long clients are at work
    #[arg(long, default_value_t = 60.0)]
    minutes: f64,
    /// Requests per second, of all clients together
    #[arg(long, default_value_t = 20)]
    rate: u32,
    /// Of load, faults and data; without it a new one is taken
    #[arg(long)]
    seed: Option<u64>,
    /// Share of calls to either service that are reset
    #[arg(long, default_value_t = 0.05)]
    resets: f64,
    /// Factor by which scheduled disturbances are accelerated, except the expiry of tokens: 10
    /// stops a replica every 30 seconds
    #[arg(long, default_value_t = 1.0)]
    hurry: f64,
    /// Minutes of a replica's life that are not counted when its memory is judged; without it, the
    /// first quarter
    #[arg(long)]
    warm_up: Option<f64>,
    /// The replicas to stop: `second` leaves the first one running, so that its memory is sampled
    /// over the whole run
    #[arg(long, default_value = "second", value_parser = ["second", "both", "none"])]
    ends: String,
    /// The gateway's program; the one of this build without it
    #[arg(long, env = "SWITCHBACK")]
    program: Option<String>,
    /// Folder for logs, evidence and exports; a temporary one if absent
    #[arg(long)]
    keep: Option<std::path::PathBuf>,
    /// Ignored: `cargo test` passes it to every test program
    #[arg(long, hide = true)]
    nocapture: bool,
}

impl Args {
    /// Returns the interval of a scheduled disturbance.
    fn every(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64((seconds / self.hurry).max(0.5))
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let run = match runtime {
        Ok(runtime) => runtime.block_on(run(args)),
        Err(error) => Err(format!("no threads: {error}")),
    };
    match run {
        Ok(verdict) => {
            println!("{verdict}");
            if verdict.is_right() { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        Err(why) => {
            eprintln!("soak: it could not be run: {why}");
            ExitCode::from(2)
        }
    }
}

async fn run(args: Args) -> Result<Verdict, String> {
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed}, {} minutes, {} requests per second, {:?}", args.minutes, args.rate, args);
    let mut dice = fastrand::Rng::with_seed(seed);
    let store = postgres::database().ok_or("PostgreSQL is not installed")?;
    let options = Options { seed: dice.u64(..), expires_in: Duration::from_secs(600), ..Options::default() };
    let service = Sandbox::start(options).await.map_err(|error| error.to_string())?;
    let proxies = [
        Proxy::start(service.address(), dice.u64(..), args.resets).await,
        Proxy::start(service.address(), dice.u64(..), args.resets).await,
    ];
    let setting = Setting::new(&args, &service, [proxies[0].address, proxies[1].address], store, &mut dice)?;
    let setting = Arc::new(setting);
    let mut book = Book::new(&service, &setting);
    load::prepare(&service, &setting).await?;
    book.prepare(&service, &setting).await?;
    let book = Arc::new(book);
    let replicas = [Replica::start(&setting, "a").await?, Replica::start(&setting, "b").await?].map(Arc::new);

    let until = Instant::now() + Duration::from_secs_f64(args.minutes * 60.0);
    let disturbing = disturb::start(&args, &setting, service.address(), &replicas, until);
    let watching = tokio::spawn(disturb::watch(replicas.clone(), Arc::clone(&book), until));
    let addresses = [replicas[0].clients, replicas[1].clients];
    Load::new(&args, &setting, &book, addresses, dice.u64(..)).run(until).await;
    let disturbed = disturbing.await.map_err(|error| error.to_string())?;
    watching.await.map_err(|error| error.to_string())?;
    let seen =
        Seen { setting: &setting, service: &service, replicas: &replicas, proxies: &proxies, book: &book };
    Ok(checks::verdict(&args, seed, seen, disturbed).await)
}
