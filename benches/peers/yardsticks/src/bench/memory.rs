//! Memory of a peer's processes: idle, with many connections, with stalled readers, and with large
//! bodies. Each number originates from a separate process, because processes do not return all of
//! their memory.

use super::agree::await_ready;
use super::calls::{Call, call_of};
use super::peers::{Peer, Running, Site};
use super::transport::Transport;
use crate::load::{self, Load, Pace, Until};
use anyhow::{Context, Result, anyhow, ensure};
use serde::Serialize;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Size of the answer for stalled readers, in bytes.
const STALLED_PATH: &str = "/chats/20000000/messages";
const SETTLE_STEP: Duration = Duration::from_millis(100);
const SETTLE_STEPS_MAX: usize = 100;

/// Numbers of bytes, each measured in a separate process.
#[derive(Clone, Serialize)]
pub struct Memory {
    #[serde(skip)]
    pub peer: Peer,
    /// Anonymous memory after a first request and a period without requests.
    pub idle: Option<u64>,
    /// Anonymous memory while 256 connections request lists.
    pub connections: Option<u64>,
    /// Anonymous memory some time after these connections closed.
    pub left: Option<u64>,
    /// Growth per reader that reads the head of an answer of 20 MB and then stalls.
    pub stalled: Option<u64>,
    /// Growth of the peak per answer of 1, 10 and 100 MB for an active reader.
    pub growth: [Option<u64>; 3],
}

/// The extent of the measurement.
#[derive(Clone, Copy)]
pub struct Extent {
    pub connections: usize,
    pub loaded: Duration,
    /// Period without requests after which a peer counts as idle.
    pub quiet: Duration,
    /// Number of stalled readers, for a peer that streams.
    pub stalled: usize,
    pub large: [Call; 3],
}

impl Extent {
    /// For the tables.
    pub const WHOLE: Self = Self {
        connections: 256,
        loaded: Duration::from_secs(2),
        quiet: Duration::from_secs(15),
        stalled: 50,
        large: [Call::List1Mb, Call::List10Mb, Call::List100Mb],
    };
    /// A short run that only checks the procedure.
    pub const TINY: Self = Self {
        connections: 8,
        loaded: Duration::from_millis(50),
        quiet: Duration::from_millis(50),
        stalled: 1,
        large: [Call::List, Call::List, Call::List1Mb],
    };
}

/// Measures peers. A failure of a peer is printed to standard error, and its value is omitted.
pub fn measure(peers: &[Peer], site: &Site, extent: Extent) -> Vec<Memory> {
    let idle = idle(peers, site, extent);
    let connected = connected(peers, site, extent);
    let both = peers.iter().zip(idle).zip(connected);
    let memory = |((peer, idle), connected): ((&Peer, Result<u64>), Result<[u64; 2]>)| {
        let (connections, left) = match connected {
            Ok([connections, left]) => (Ok(connections), Ok(left)),
            Err(error) => (Err(error), Err(anyhow!("as while they were there"))),
        };
        Memory {
            peer: *peer,
            idle: noted(*peer, "idle", idle),
            connections: noted(*peer, "connections", connections),
            left: noted(*peer, "afterwards", left),
            stalled: noted(*peer, "a stalled reader", stalled(*peer, site, extent)),
            growth: extent.large.map(|call| noted(*peer, call.title(), growth(*peer, site, call))),
        }
    };
    both.map(memory).collect()
}

fn noted(peer: Peer, what: &str, result: Result<u64>) -> Option<u64> {
    match result {
        Ok(bytes) => {
            eprintln!("memory, {what}: {peer:?} {:.2} MB", bytes as f64 / 1e6);
            Some(bytes)
        }
        Err(error) => {
            eprintln!("memory, {what}: {peer:?} fails: {error:#}");
            None
        }
    }
}

fn started(peer: Peer, site: &Site) -> Result<Running> {
    let mut running = peer.start(site, Transport::Plain)?;
    await_ready(&mut running)?;
    Ok(running)
}

/// Returns the idle anonymous memory of each. The peers wait at the same time.
fn idle(peers: &[Peer], site: &Site, extent: Extent) -> Vec<Result<u64>> {
    let running: Vec<_> = peers.iter().map(|peer| started(*peer, site)).collect();
    std::thread::sleep(extent.quiet);
    running.into_iter().map(|running| anonymous(&mut running?)).collect()
}

fn anonymous(running: &mut Running) -> Result<u64> {
    running.process.check()?;
    Ok(running.process.memory("RssAnon"))
}

/// Returns a line of `/proc/PID/status` once it no longer changes.
fn settled(running: &Running, line: &str) -> u64 {
    let mut last = running.process.memory(line);
    let mut same = 0;
    for _ in 0..SETTLE_STEPS_MAX {
        std::thread::sleep(SETTLE_STEP);
        let now = running.process.memory(line);
        same = if now == last { same + 1 } else { 0 };
        last = now;
        if same == 5 {
            break;
        }
    }
    last
}

fn load(running: &Running, call: Call, connections: usize) -> Load {
    Load {
        target: running.target.clone(),
        requests: call.requests(running),
        status: call.status(running.peer),
        connections,
        pace: Pace::Closed,
    }
}

/// Returns the anonymous memory of each with many connections, one peer after another, and some time
/// after they closed.
fn connected(peers: &[Peer], site: &Site, extent: Extent) -> Vec<Result<[u64; 2]>> {
    let loaded: Vec<_> = peers.iter().map(|peer| loaded(*peer, site, extent)).collect();
    std::thread::sleep(extent.quiet);
    let left = |loaded: Result<(Running, u64)>| {
        let (mut running, connections) = loaded?;
        Ok([connections, anonymous(&mut running)?])
    };
    loaded.into_iter().map(left).collect()
}

/// A peer with many connections, and its anonymous memory during the load.
fn loaded(peer: Peer, site: &Site, extent: Extent) -> Result<(Running, u64)> {
    let running = started(peer, site)?;
    let (load, phase) = (load(&running, Call::List, extent.connections), AtomicU8::new(load::NOTE));
    let anonymous = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load::run(&load, &Until::Told(&phase)));
        std::thread::sleep(extent.loaded);
        let anonymous = running.process.memory("RssAnon");
        phase.store(load::STOP, Ordering::Relaxed);
        let tally = loading.join().expect("the load generator does not panic")?;
        ensure!(tally.failures == 0, "{} answers failed", tally.failures);
        Ok(anonymous)
    })?;
    Ok((running, anonymous))
}

/// Fetches a page a few times, so that later growth does not include code that runs for the first
/// time.
fn warmed(peer: Peer, site: &Site) -> Result<Running> {
    let running = started(peer, site)?;
    load::run(&load(&running, Call::List, 4), &Until::Count(100))?;
    Ok(running)
}

fn stalled(peer: Peer, site: &Site, extent: Extent) -> Result<u64> {
    // A peer that buffers bodies would need more memory than the machine has.
    let readers = if peer.holds_bodies() { extent.stalled.min(2) } else { extent.stalled };
    let mut running = warmed(peer, site)?;
    let before = settled(&running, "RssAnon");
    let request = call_of(STALLED_PATH, "", &running);
    let mut sockets = Vec::new();
    for _ in 0..readers {
        let mut socket = TcpStream::connect(running.target.address)?;
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        socket.write_all(&request)?;
        let mut head = [0; 256];
        let read = socket.read(&mut head)?;
        let head = String::from_utf8_lossy(&head[..read]).into_owned();
        ensure!(head.starts_with("HTTP/1.1 200"), "{head}");
        sockets.push(socket);
    }
    let after = settled(&running, "RssAnon");
    running.process.check()?;
    Ok(after.saturating_sub(before) / readers as u64)
}

fn growth(peer: Peer, site: &Site, call: Call) -> Result<u64> {
    let at_once = if peer.holds_bodies() { 1 } else { 4 };
    let mut running = warmed(peer, site)?;
    // The kernel keeps a peak of resident memory only, so growth is compared with that.
    let before = settled(&running, "VmRSS");
    running.process.forget_peak();
    let tally = load::run(&load(&running, call, at_once), &Until::Count(at_once as u64))?;
    let peak = running.process.memory("VmHWM");
    running.process.check().context("it did not survive")?;
    ensure!(tally.failures == 0, "{} answers failed", tally.failures);
    Ok(peak.saturating_sub(before) / at_once as u64)
}
