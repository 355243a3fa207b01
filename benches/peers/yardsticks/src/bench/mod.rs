//! The run: peers run side by side on the first core, the fixture and the load generator on the
//! second one. Each peer is measured for a short time in rotation, round by round, so that a
//! disturbance of the machine affects all of them.

mod agree;
mod calls;
mod goals;
pub mod growth;
pub mod instructions;
mod measure;
mod memory;
mod peers;
mod process;
mod shadow;
mod table;
mod transport;

use crate::fixture::{Fixture, Wire};
use crate::load::Pace;
use crate::relay;
use crate::tls::Certificates;
use anyhow::{Context, Result, ensure};
use calls::Call;
use clap::{Args, ValueEnum};
use measure::{Cell, Setting, Span, measure};
use memory::Extent;
use peers::{Peer, Running, Site};
use std::path::PathBuf;
use std::time::Duration;
use table::Report;
use transport::Transport;

#[derive(Args)]
pub struct Options {
    /// Peers to measure
    #[arg(long, value_enum, value_delimiter = ',')]
    peers: Vec<Peer>,
    /// Calls to measure
    #[arg(long, value_enum, value_delimiter = ',')]
    calls: Vec<Call>,
    /// Measurements to perform
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Transports of clients and of the service, in addition to clear text
    #[arg(long, value_enum, value_delimiter = ',')]
    transports: Vec<Transport>,
    /// Connections of the closed loop; large bodies use one, those of 1 MB also 64
    #[arg(long, value_delimiter = ',', default_value = "1,64,256")]
    connections: Vec<usize>,
    /// Seconds for which a peer is measured in one round
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Rounds, of which the tables show medians; at most three for large bodies
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Target for the total duration in minutes: measurements are shortened accordingly, to a third
    /// of a second at least
    #[arg(long)]
    minutes: Option<f64>,
    /// Delay of the service in each direction, such as `0.5ms`: calls pass a relay that holds them
    /// for this time
    #[arg(long, value_parser = milliseconds)]
    delay: Option<Duration>,
    /// Requests per second of the open loop
    #[arg(long, default_value_t = 8000)]
    rate: u32,
    /// Requests per second with a shadow, which compares all of them: a millisecond of a core each
    #[arg(long, default_value_t = 200)]
    shadow_rate: u32,
    /// Only check the procedure: our own peers, for a moment each, without installing anything
    #[arg(long)]
    tiny: bool,
    /// Skip peers that are not installed, instead of installing them
    #[arg(long)]
    no_install: bool,
    /// The gateway
    #[arg(long, env = "SWITCHBACK", default_value = "target/release/switchback")]
    switchback: PathBuf,
    /// Another build of it, to be measured too
    #[arg(long, env = "SWITCHBACK_PLAIN")]
    plain: Option<PathBuf>,
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
    /// The next request follows the answer
    Closed,
    /// A fixed rate; latency counts from the time at which a request is due
    Open,
    /// The closed loop with clients, the service or both behind TLS
    Tls,
    /// Idle, with many connections, with stalled readers, with large bodies
    Memory,
    /// Latency while the other version is called in the shadow
    Shadow,
    /// More connections, operations and clients; only on request
    Growth,
}

/// Performs the requested measurements and prints the tables.
pub fn run(options: Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let certificates = Certificates::make(folder.path().join("tls"))?;
    let mut fixture = Fixture::start(([127, 0, 0, 1], 0).into())?;
    fixture.secure(&certificates)?;
    let site = site(&options, &folder, certificates, &fixture)?;
    let calls = chosen(
        &options.calls,
        Call::value_variants(),
        &[Call::List, Call::Single, Call::Send, Call::Varied],
        options.tiny,
    );
    let (peers, missing) = peers(&options, &site);
    bind(&site)?;
    let rounds = if options.tiny { 1 } else { options.rounds };
    let settings = settings(&options, &calls);
    let span = span(&options, &settings, &peers, rounds);

    let mut cells = Vec::new();
    for settings in settings.chunk_by(|one, other| one.transport == other.transport) {
        cells.extend(measure_group(settings, &peers, span, rounds, &site, &fixture)?);
    }
    let memories = if options.wants(Part::Memory) {
        let extent = if options.tiny { Extent::TINY } else { Extent::WHOLE };
        // Our own peers suffice for this check.
        let measured = |peer: &&Peer| !options.tiny || TINY.contains(peer);
        memory::measure(&peers.iter().filter(measured).copied().collect::<Vec<_>>(), &site, extent)
    } else {
        Vec::new()
    };
    let shadows = if options.wants(Part::Shadow) && peers.contains(&Peer::Gateway) {
        let per_second = if options.tiny { 200 } else { options.shadow_rate };
        shadow::measure(&site, rounds, span, per_second, &fixture)?
    } else {
        Vec::new()
    };
    let grows = options.tiny && options.only.is_empty() || options.only.contains(&Part::Growth);
    let growth = if grows && peers.contains(&Peer::Gateway) {
        growth::measure(&site, span, options.tiny, &fixture)
    } else {
        Vec::new()
    };
    let report = Report {
        site: &site,
        peers: &peers,
        cells: &cells,
        memories: &memories,
        shadows: &shadows,
        growth: &growth,
        missing: &missing,
        rounds,
        span,
        delay: options.delay,
    };
    println!("{}", report.markdown());
    if let Some(file) = &options.json {
        std::fs::write(file, report.json()?).with_context(|| file.display().to_string())?;
    }
    ensure!(!options.tiny || report.is_complete(), "somebody failed");
    Ok(())
}

/// Peers that are always in a tiny run.
const TINY: [Peer; 3] = [Peer::Hyper, Peer::Gateway, Peer::Value];

/// Returns the available peers, and the unavailable ones with the reason. A tiny run uses only
/// other peers that are installed.
fn peers(options: &Options, site: &Site) -> (Vec<Peer>, Vec<(Peer, String)>) {
    let others = |peer: &Peer| {
        options.tiny && !TINY.contains(peer) && options.peers.is_empty() && peer.obtain(site).is_err()
    };
    let asked: Vec<_> = chosen(&options.peers, Peer::value_variants(), Peer::value_variants(), options.tiny);
    let plain = |peer: &Peer| *peer == Peer::GatewayPlain && site.plain.is_none();
    obtain(asked.into_iter().filter(|peer| !others(peer) && !plain(peer)).collect(), site)
}

/// Starts the peers for a transport, checks that they agree, and measures them in all settings of
/// that transport.
fn measure_group(
    settings: &[Setting],
    peers: &[Peer],
    span: Span,
    rounds: usize,
    site: &Site,
    fixture: &Fixture,
) -> Result<Vec<Cell>> {
    let transport = settings[0].transport;
    let mut running = Vec::new();
    for peer in peers.iter().filter(|peer| transport.is_for(**peer)) {
        running.push(peer.start(site, transport)?);
    }
    running.iter_mut().try_for_each(agree::await_ready)?;
    let mut calls: Vec<_> = settings.iter().map(|setting| setting.call).collect();
    calls.dedup();
    agree::check(&running, transport, &calls, fixture)?;
    eprintln!("{} peers agree on {} calls{}", running.len(), calls.len(), transport.title());
    let mut cells = Vec::new();
    for setting in settings {
        let rounds = if setting.call.is_small() { rounds } else { rounds.min(LARGE_ROUNDS_MAX) };
        cells.extend(measure_all(&mut running, *setting, span, rounds, site, fixture)?);
    }
    Ok(cells)
}

const LARGE_ROUNDS_MAX: usize = 3;

/// Parses a number of milliseconds, such as `0.5ms`.
fn milliseconds(text: &str) -> Result<Duration> {
    let number: f64 = text.strip_suffix("ms").context("a number and ms, such as 0.5ms")?.parse()?;
    Ok(Duration::try_from_secs_f64(number / 1e3)?)
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// Returns the available peers, and the reasons why others are unavailable.
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

fn site(
    options: &Options,
    folder: &tempfile::TempDir,
    certificates: Certificates,
    fixture: &Fixture,
) -> Result<Site> {
    let tools = std::env::current_exe()?.parent().context("a program is in a folder")?.join("peers");
    std::fs::create_dir_all(&tools)?;
    let absolute = |path: &PathBuf| std::path::absolute(path);
    let upstream = |wire| {
        let address = fixture.address_of(wire)?;
        options.delay.map_or(Ok(address), |delay| relay::start(address, delay))
    };
    Ok(Site {
        folder: folder.path().to_owned(),
        tools,
        switchback: absolute(&options.switchback)?,
        plain: options.plain.as_ref().map(absolute).transpose()?,
        pack: absolute(&options.pack)?,
        upstreams: [upstream(Wire::Plain)?, upstream(Wire::TlsHttp1)?, upstream(Wire::TlsHttp2)?],
        certificates,
        core: cores()?.first().copied(),
        workers: 1,
        wrapper: Vec::new(),
        install: !options.no_install && !options.tiny,
    })
}

/// Duration of the load before each measurement.
const WARM: Duration = Duration::from_millis(300);
/// Duration of the shortest useful measurement.
const MEASURED_MIN: Duration = Duration::from_millis(333);
/// Durations of a run without its measurements: a start with checks per transport, a peer's large
/// bodies, the idle time for memory, a peer's memory, and the gateways for the shadow.
const START: Duration = Duration::from_secs(8);
const LARGE_BODY: Duration = Duration::from_millis(1500);
const MEMORY: Duration = Duration::from_secs(40);
const MEMORY_OF_ONE: Duration = Duration::from_secs(12);
const SHADOW: Duration = Duration::from_secs(60);
/// Number of gateways for measurements with and without a shadow.
const SHADOWED: usize = 6;

fn span(options: &Options, settings: &[Setting], peers: &[Peer], rounds: usize) -> Span {
    if options.tiny {
        return Span { warm: Duration::ZERO, measured: Duration::ZERO, count: Some(2) };
    }
    let mut measured = Duration::from_secs_f64(options.seconds);
    if let Some(minutes) = options.minutes {
        let mut left = Duration::from_secs_f64(minutes * 60.0);
        let mut windows = 0;
        let mut take = |time: Duration, times: usize| left = left.saturating_sub(time * times as u32);
        for setting in settings {
            let peers = peers.iter().filter(|peer| setting.transport.is_for(**peer)).count();
            if setting.call.is_small() {
                windows += peers * rounds;
            } else {
                take(LARGE_BODY, peers * rounds.min(LARGE_ROUNDS_MAX));
            }
        }
        take(START, settings.chunk_by(|one, other| one.transport == other.transport).count());
        if options.wants(Part::Memory) {
            take(MEMORY, 1);
            take(MEMORY_OF_ONE, peers.len());
        }
        if options.wants(Part::Shadow) {
            take(SHADOW, 1);
            windows += SHADOWED * rounds;
        }
        let each = (left / windows.max(1) as u32).saturating_sub(WARM);
        measured = each.clamp(MEASURED_MIN, measured.max(MEASURED_MIN));
        eprintln!("{windows} measurements of {:.2} s", measured.as_secs_f64());
    }
    Span { warm: WARM, measured, count: None }
}

/// Returns the requested ones; by default all, or those of a tiny run.
fn chosen<T: Copy>(asked: &[T], all: &[T], tiny: &[T], is_tiny: bool) -> Vec<T> {
    match (asked.is_empty(), is_tiny) {
        (false, _) => asked.to_vec(),
        (true, true) => tiny.to_vec(),
        (true, false) => all.to_vec(),
    }
}

/// Returns all settings, by transport.
fn settings(options: &Options, calls: &[Call]) -> Vec<Setting> {
    let mut settings = Vec::new();
    let transport = Transport::Plain;
    for call in calls.iter().copied() {
        let connections = match call {
            _ if options.tiny => vec![1, 8],
            // Varying bodies are not informative for connections.
            Call::Varied => vec![64],
            _ if call.is_small() => options.connections.clone(),
            Call::List1Mb => vec![1, 64],
            _ => vec![1],
        };
        if options.wants(Part::Closed) {
            settings.extend(connections.into_iter().map(|connections| Setting {
                transport,
                call,
                connections,
                pace: Pace::Closed,
            }));
        }
        if options.wants(Part::Open) && call == Call::List {
            let (connections, per_second) = if options.tiny { (8, 200) } else { (64, options.rate) };
            settings.push(Setting { transport, call, connections, pace: Pace::Open { per_second } });
        }
    }
    if options.wants(Part::Tls) {
        // These two cover all others.
        let tiny = [Transport::UpstreamTls, Transport::BothH2];
        let transports = chosen(&options.transports, Transport::value_variants(), &tiny, options.tiny);
        let calls =
            || calls.iter().copied().filter(|call| matches!(call, Call::List | Call::Single | Call::Send));
        let connections = if options.tiny { 8 } else { 64 };
        for transport in transports.into_iter().filter(|transport| *transport != Transport::Plain) {
            let setting = |call| Setting { transport, call, connections, pace: Pace::Closed };
            settings.extend(calls().map(setting));
        }
    }
    settings
}

/// Measures all peers in rotation, round by round. A failed peer is restarted for the next setting.
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
    let Setting { transport, call, connections, pace } = setting;
    for round in 1..=rounds {
        for (running, cell) in running.iter_mut().zip(&mut cells).filter(|(_, cell)| cell.failure.is_none()) {
            let peer = running.peer;
            let place = format!(
                "{}{}, {connections} connections, {}, round {round}",
                call.title(),
                transport.title(),
                table::pace(pace)
            );
            match measure(running, setting, span, fixture) {
                Ok(sample) => {
                    eprintln!("{place}: {peer:?} {:.1} µs, {:.0}/s", sample.cpu_us, sample.per_second);
                    cell.samples.push(sample);
                }
                Err(error) => {
                    eprintln!("{place}: {peer:?} fails: {error:#}");
                    cell.failure = Some(format!("{error:#}"));
                    running.process.stop();
                    *running = peer.start(site, setting.transport)?;
                    agree::await_ready(running)?;
                }
            }
        }
    }
    Ok(cells)
}

/// Returns the two available cores, if there are two: one for the peer and one for all other
/// processes.
fn cores() -> Result<Vec<usize>> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let cores: Vec<_> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
    Ok(if cores.len() < 2 { Vec::new() } else { cores })
}

/// Reserves the first core for the peers.
fn bind(site: &Site) -> Result<()> {
    let cores = cores()?;
    let Some(second) = cores.get(1) else {
        eprintln!("there is one core only: peers and load share it, and numbers say little");
        return Ok(());
    };
    ensure!(site.core != Some(*second), "peers have a core of their own");
    let mut set = rustix::thread::CpuSet::new();
    set.set(*second);
    // This also binds the thread of the fixture, which belongs to this process.
    for thread in std::fs::read_dir("/proc/self/task")? {
        let id = thread?.file_name().to_string_lossy().parse()?;
        rustix::thread::sched_setaffinity(rustix::process::Pid::from_raw(id), &set)?;
    }
    Ok(())
}
