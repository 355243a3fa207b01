//! The run: peers are started side by side on the first core, the fixture and the load generator have the second one; each peer is
//! measured for a short while in turn, round after round, so that what disturbs the machine disturbs all of them.

mod agree;
mod calls;
mod goals;
mod measure;
mod memory;
mod peers;
mod process;
mod shadow;
mod table;

use crate::fixture::Fixture;
use crate::load::Pace;
use anyhow::{Context, Result, ensure};
use calls::Call;
use clap::{Args, ValueEnum};
use measure::{Cell, Setting, Span, measure};
use memory::Extent;
use peers::{Peer, Running, Site};
use std::path::PathBuf;
use std::time::Duration;
use table::Report;

#[derive(Args)]
pub struct Options {
    /// Who is measured
    #[arg(long, value_enum, value_delimiter = ',')]
    peers: Vec<Peer>,
    /// Which calls
    #[arg(long, value_enum, value_delimiter = ',')]
    calls: Vec<Call>,
    /// Which measurements
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Connections of the closed loop; large bodies are asked for on one, those of 1 MB also on 64
    #[arg(long, value_delimiter = ',', default_value = "1,64,256")]
    connections: Vec<usize>,
    /// Seconds for which a peer is measured in one round
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Rounds; the tables show medians over them
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Requests per second of the open loop
    #[arg(long, default_value_t = 8000)]
    rate: u32,
    /// Requests per second while there is a shadow, which compares them all: a millisecond of a core each
    #[arg(long, default_value_t = 200)]
    shadow_rate: u32,
    /// Only see that all of it works: our own peers, a moment each, nothing installed
    #[arg(long)]
    tiny: bool,
    /// Leave out who is not installed instead of installing it
    #[arg(long)]
    no_install: bool,
    /// The gateway
    #[arg(long, env = "SWITCHBACK", default_value = "target/release/switchback")]
    switchback: PathBuf,
    /// The pack
    #[arg(long, default_value = "mappings/messaging")]
    pack: PathBuf,
    /// A file for all numbers, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// A kind of measurement.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The next request when the answer is there
    Closed,
    /// A fixed rate, latency counted from when a request was due
    Open,
    /// Idle, with many connections, with stalled readers, with large bodies
    Memory,
    /// Latency while the other version is asked in the shadow
    Shadow,
}

/// Runs all that the options ask for and prints the tables.
pub fn run(options: Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let fixture = Fixture::start(([127, 0, 0, 1], 0).into())?;
    let site = site(&options, &folder, &fixture)?;
    let span = span(&options);
    let calls =
        chosen(&options.calls, Call::value_variants(), &[Call::List, Call::Single, Call::Send], options.tiny);
    let asked = chosen(
        &options.peers,
        Peer::value_variants(),
        &[Peer::Hyper, Peer::Gateway, Peer::Value],
        options.tiny,
    );
    let (peers, missing) = obtain(asked, &site);
    bind(&site)?;
    let mut running = Vec::new();
    for peer in &peers {
        running.push(peer.start(&site)?);
    }
    running.iter_mut().try_for_each(agree::await_ready)?;
    agree::check(&running, &calls, &fixture)?;
    eprintln!("{} peers agree on {} calls", running.len(), calls.len());

    let rounds = if options.tiny { 1 } else { options.rounds };
    let mut cells = Vec::new();
    for setting in settings(&options, &calls) {
        cells.extend(measure_all(&mut running, setting, span, rounds, &site, &fixture)?);
    }
    drop(running);
    let memories = if options.wants(Part::Memory) {
        let extent = if options.tiny { Extent::TINY } else { Extent::WHOLE };
        peers.iter().map(|peer| memory::measure(*peer, &site, extent)).collect()
    } else {
        Vec::new()
    };
    let shadows = if options.wants(Part::Shadow) && peers.contains(&Peer::Gateway) {
        let per_second = if options.tiny { 200 } else { options.shadow_rate };
        shadow::measure(&site, rounds, span, per_second, &fixture)?
    } else {
        Vec::new()
    };
    let report = Report {
        site: &site,
        peers: &peers,
        cells: &cells,
        memories: &memories,
        shadows: &shadows,
        missing: &missing,
        rounds,
        span,
    };
    println!("{}", report.markdown());
    if let Some(file) = &options.json {
        std::fs::write(file, report.json()?).with_context(|| file.display().to_string())?;
    }
    ensure!(!options.tiny || report.is_complete(), "somebody failed");
    Ok(())
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// Those of the peers that are to be had, and why the others are not.
fn obtain(asked: Vec<Peer>, site: &Site) -> (Vec<Peer>, Vec<(Peer, String)>) {
    let (mut peers, mut missing) = (Vec::new(), Vec::new());
    for peer in asked {
        match peer.obtain(site) {
            Ok(()) => peers.push(peer),
            Err(reason) => {
                eprintln!("{peer:?} is not to be had: {reason:#}");
                missing.push((peer, format!("{reason:#}")));
            }
        }
    }
    (peers, missing)
}

fn site(options: &Options, folder: &tempfile::TempDir, fixture: &Fixture) -> Result<Site> {
    let tools = std::env::current_exe()?.parent().context("a program is in a folder")?.join("peers");
    std::fs::create_dir_all(&tools)?;
    let absolute = |path: &PathBuf| std::path::absolute(path);
    Ok(Site {
        folder: folder.path().to_owned(),
        tools,
        switchback: absolute(&options.switchback)?,
        pack: absolute(&options.pack)?,
        upstream: fixture.address,
        core: cores()?.first().copied(),
        workers: 1,
        install: !options.no_install && !options.tiny,
    })
}

fn span(options: &Options) -> Span {
    if options.tiny {
        return Span { warm: Duration::ZERO, measured: Duration::ZERO, count: Some(2) };
    }
    let measured = Duration::from_secs_f64(options.seconds);
    Span { warm: Duration::from_millis(300), measured, count: None }
}

/// What was asked for, else all, else what a tiny run has.
fn chosen<T: Copy>(asked: &[T], all: &[T], tiny: &[T], is_tiny: bool) -> Vec<T> {
    match (asked.is_empty(), is_tiny) {
        (false, _) => asked.to_vec(),
        (true, true) => tiny.to_vec(),
        (true, false) => all.to_vec(),
    }
}

fn settings(options: &Options, calls: &[Call]) -> Vec<Setting> {
    let mut settings = Vec::new();
    for call in calls.iter().copied() {
        let connections = match call {
            _ if options.tiny => vec![1, 8],
            _ if call.is_small() => options.connections.clone(),
            Call::List1Mb => vec![1, 64],
            _ => vec![1],
        };
        if options.wants(Part::Closed) {
            settings.extend(connections.into_iter().map(|connections| Setting {
                call,
                connections,
                pace: Pace::Closed,
            }));
        }
        if options.wants(Part::Open) && call.is_small() {
            let (connections, per_second) = if options.tiny { (8, 200) } else { (64, options.rate) };
            settings.push(Setting { call, connections, pace: Pace::Open { per_second } });
        }
    }
    settings
}

/// Measures all peers in turn, round after round. Who fails is started anew for the next setting.
fn measure_all(
    running: &mut [Running],
    setting: Setting,
    span: Span,
    rounds: usize,
    site: &Site,
    fixture: &Fixture,
) -> Result<Vec<Cell>> {
    let cell = |running: &Running| Cell { setting, peer: running.peer, samples: Vec::new(), failure: None };
    let mut cells: Vec<_> = running.iter().map(cell).collect();
    let Setting { call, connections, pace } = setting;
    for round in 1..=rounds {
        for (running, cell) in running.iter_mut().zip(&mut cells).filter(|(_, cell)| cell.failure.is_none()) {
            let peer = running.peer;
            let place =
                format!("{}, {connections} connections, {}, round {round}", call.title(), table::pace(pace));
            match measure(running, setting, span, fixture) {
                Ok(sample) => {
                    eprintln!("{place}: {peer:?} {:.1} µs, {:.0}/s", sample.cpu_us, sample.per_second);
                    cell.samples.push(sample);
                }
                Err(error) => {
                    eprintln!("{place}: {peer:?} fails: {error:#}");
                    cell.failure = Some(format!("{error:#}"));
                    running.process.stop();
                    *running = peer.start(site)?;
                    agree::await_ready(running)?;
                }
            }
        }
    }
    Ok(cells)
}

/// The cores that we may use, where there are two: one for the peer and one for the rest.
fn cores() -> Result<Vec<usize>> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let cores: Vec<_> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
    Ok(if cores.len() < 2 { Vec::new() } else { cores })
}

/// Leaves the first core to the peers.
fn bind(site: &Site) -> Result<()> {
    let cores = cores()?;
    let Some(second) = cores.get(1) else {
        eprintln!("there is one core only: peers and load share it, and numbers say little");
        return Ok(());
    };
    ensure!(site.core != Some(*second), "peers have a core of their own");
    let mut set = rustix::thread::CpuSet::new();
    set.set(*second);
    // The fixture's thread is bound as well: it is one of ours.
    for thread in std::fs::read_dir("/proc/self/task")? {
        let id = thread?.file_name().to_string_lossy().parse()?;
        rustix::thread::sched_setaffinity(rustix::process::Pid::from_raw(id), &set)?;
    }
    Ok(())
}
