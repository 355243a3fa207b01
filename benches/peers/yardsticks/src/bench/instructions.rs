//! Counts the cost of one call for the gateway: instructions, allocations, system calls on sockets
//! and touched lines of code. The real program runs under callgrind, which counts only the tasks of
//! tokio (connections and the tasks that they spawn), so that startup and other threads are
//! excluded. Counters are dumped before and after a known number of calls.
//!
//! Counts are repeatable within 1.5 %, while times on a shared machine vary by more than 10 %:
//! `benches/instructions/run` fails if a call exceeds its budget.

use super::agree::await_ready;
use super::calls::Call;
use super::peers::{Peer, Running, Site};
use super::process::Process;
use super::transport::Transport;
use crate::fixture::{Fixture, Wire};
use crate::load::{self, Load, Pace, Until};
use crate::tls::Certificates;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Number of connections that the calls are spread over.
const CONNECTIONS: usize = 8;
/// Comparisons of the shadow follow the answers. They are complete when the process uses less than
/// `QUIET` of a core in `LOOK`.
const LOOK: Duration = Duration::from_millis(400);
const QUIET: Duration = Duration::from_millis(20);
const LOOKS_MAX: u32 = 60;
/// Number of calls before the first dump, for connections, pools and learned layouts.
const WARM_UP: u64 = 64;
/// Number of parts into which the calls of a kind are divided. The median part counts, because
/// periodic work of the gateway, such as storing usage, affects one or two of them.
const PARTS: u64 = 5;
/// Number of processes in which a kind is counted while it exceeds its budget; the fewest
/// instructions count. A process differs from the next by up to 1.5 %: by the seeds of its hash
/// tables, and by how requests of several connections meet.
const PROCESSES: u32 = 3;
/// The functions with counted callees: tokio polls each task through one of them.
const COUNTED: &str = "tokio::runtime::task::raw::poll*";
const ALLOCATORS: [&str; 5] = ["malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign"];
const SOCKET_CALLS: [&str; 10] =
    ["read", "write", "readv", "writev", "recv", "send", "recvfrom", "sendto", "recvmsg", "sendmsg"];

#[derive(Args)]
pub struct Options {
    /// The gateway, in a build with symbols
    #[arg(long, env = "SWITCHBACK")]
    switchback: PathBuf,
    /// The pack
    #[arg(long, default_value = "mappings/messaging")]
    pack: PathBuf,
    /// The file of budgets
    #[arg(long, default_value = "benches/instructions/budgets.json")]
    budgets: PathBuf,
    /// Write the counts of this run as the new budgets
    #[arg(long)]
    update: bool,
    /// Kinds of calls to count; all if absent
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// The cost of one call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Cost {
    instructions: u64,
    /// Calls of the allocator.
    allocations: f64,
    /// Calls of C library functions that read from or write to a descriptor.
    socket_calls: f64,
    /// Lines of 64 bytes that contain the instructions of all calls.
    code_lines: u64,
}

/// A counted call.
struct Kind {
    name: &'static str,
    call: Call,
    set_up: SetUp,
    /// Number of calls between two dumps.
    calls: u64,
    /// Share by which the instructions may exceed the budget.
    tolerance: f64,
}

/// The configuration of the gateway.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SetUp {
    Translating(Transport),
    /// Both versions are available; the phase of all operations.
    Dual(&'static str),
}

const SHADOW: SetUp = SetUp::Dual("shadow");

const KINDS: [Kind; 7] = [
    kind("list", Call::List, SetUp::Translating(Transport::Plain), 128, 0.01),
    kind("chat", Call::Single, SetUp::Translating(Transport::Plain), 160, 0.025),
    kind("send", Call::Send, SetUp::Translating(Transport::Plain), 160, 0.025),
    kind("list-1mb", Call::List1Mb, SetUp::Translating(Transport::Plain), 8, 0.025),
    kind("list-upstream-tls", Call::List, SetUp::Translating(Transport::UpstreamTls), 128, 0.025),
    kind("list-forwarded", Call::List, SetUp::Dual("legacy"), 256, 0.025),
    kind("list-shadow", Call::List, SHADOW, 32, 0.05),
];

const fn kind(name: &'static str, call: Call, set_up: SetUp, calls: u64, tolerance: f64) -> Kind {
    Kind { name, call, set_up, calls, tolerance }
}

/// Counts all kinds, prints a table and compares it with the budgets.
///
/// # Errors
/// A gateway that does not serve, a valgrind that does not run, and a count above its budget.
pub fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let certificates = Certificates::make(folder.path().join("tls"))?;
    let mut fixture = Fixture::start(([127, 0, 0, 1], 0).into())?;
    fixture.secure(&certificates)?;
    let dumps = folder.path().join("callgrind");
    let site = Site {
        folder: folder.path().to_owned(),
        tools: folder.path().to_owned(),
        switchback: std::path::absolute(&options.switchback)?,
        plain: None,
        pack: std::path::absolute(&options.pack)?,
        upstreams: [
            fixture.address_of(Wire::Plain)?,
            fixture.address_of(Wire::TlsHttp1)?,
            fixture.address_of(Wire::TlsHttp2)?,
        ],
        certificates,
        core: None,
        workers: 1,
        wrapper: callgrind(&dumps),
        install: false,
    };
    let kinds: Vec<_> = KINDS.iter().filter(|kind| is_wanted(kind, &options.only)).collect();
    ensure!(!kinds.is_empty(), "no kind of call is named {}", options.only.join(", "));
    let read = fs::read_to_string(&options.budgets);
    let mut budgets: BTreeMap<String, Cost> = match read {
        Ok(text) => serde_json::from_str(&text).context("the budgets")?,
        Err(_) if options.update => BTreeMap::new(),
        Err(error) => return Err(error).with_context(|| options.budgets.display().to_string()),
    };
    let mut costs: BTreeMap<String, Cost> = BTreeMap::new();
    for kinds in kinds.chunk_by(|one, other| one.set_up == other.set_up) {
        for _ in 0..PROCESSES {
            let is_open = |kind: &Kind| {
                costs.get(kind.name).is_none_or(|cost| exceeds(kind, *cost, budgets.get(kind.name)))
            };
            let open: Vec<_> = kinds.iter().filter(|kind| is_open(kind)).collect();
            if open.is_empty() {
                break;
            }
            let mut running = start(kinds[0].set_up, &site)?;
            await_ready(&mut running)?;
            for kind in open {
                let cost = count(kind, &mut running, &dumps).with_context(|| kind.name)?;
                eprintln!("{}: {} instructions", kind.name, cost.instructions);
                let fewest = costs.entry(kind.name.to_owned()).or_insert(cost);
                if cost.instructions < fewest.instructions {
                    *fewest = cost;
                }
            }
        }
    }
    println!("{}", table(&kinds, &costs, &budgets));
    if options.update {
        budgets.extend(costs);
        return Ok(fs::write(&options.budgets, serde_json::to_string_pretty(&budgets)? + "\n")?);
    }
    let exceeded = kinds.iter().filter(|kind| exceeds(kind, costs[kind.name], budgets.get(kind.name)));
    let exceeded: Vec<_> = exceeded.map(|kind| kind.name).collect();
    ensure!(
        exceeded.is_empty(),
        "more instructions than budgeted: {}; make them fewer, or give the reason in the commit that runs `benches/instructions/run --update`",
        exceeded.join("; ")
    );
    Ok(())
}

fn is_wanted(kind: &Kind, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|name| name == kind.name)
}

/// Returns whether a count exceeds its budget, or has none.
fn exceeds(kind: &Kind, cost: Cost, budget: Option<&Cost>) -> bool {
    budget.is_none_or(|budget| cost.instructions as f64 > budget.instructions as f64 * (1.0 + kind.tolerance))
}

fn callgrind(dumps: &Path) -> Vec<String> {
    let out = format!("--callgrind-out-file={}.%p", dumps.display());
    let toggle = format!("--toggle-collect={COUNTED}");
    let words = [
        "valgrind",
        "--tool=callgrind",
        &toggle,
        &out,
        "--dump-instr=yes",
        "--dump-line=no",
        "--compress-pos=no",
        "--compress-strings=no",
    ];
    words.map(str::to_owned).into()
}

fn start(set_up: SetUp, site: &Site) -> Result<Running> {
    match set_up {
        SetUp::Translating(transport) => Peer::Gateway.start(site, transport),
        SetUp::Dual(phase) => site.start_dual(phase, site.upstreams[Wire::Plain as usize], phase),
    }
}

fn count(kind: &Kind, running: &mut Running, dumps: &Path) -> Result<Cost> {
    call(kind, running, WARM_UP.min(kind.calls))?;
    dump(&running.process, dumps)?;
    let mut parts = Vec::new();
    for _ in 0..PARTS {
        call(kind, running, kind.calls)?;
        parts.push(Profile::parse(&dump(&running.process, dumps)?));
    }
    parts.sort_by_key(|profile| profile.instructions);
    let profile = parts.swap_remove(parts.len() / 2);
    running.process.check()?;
    let of_one = |count: u64| count as f64 / kind.calls as f64;
    let tenths = |count: u64| (of_one(count) * 10.0).round() / 10.0;
    Ok(Cost {
        instructions: of_one(profile.instructions).round() as u64,
        allocations: tenths(profile.allocations),
        socket_calls: tenths(profile.socket_calls),
        code_lines: profile.code_lines,
    })
}

fn call(kind: &Kind, running: &Running, calls: u64) -> Result<()> {
    let load = Load {
        target: running.target.clone(),
        requests: kind.call.requests(running),
        status: kind.call.status(Peer::Gateway),
        connections: CONNECTIONS,
        pace: Pace::Closed,
    };
    let tally = load::run(&load, &Until::Count(calls))?;
    ensure!(tally.failures == 0, "{} of {} answers failed", tally.failures, tally.answers);
    if kind.set_up == SHADOW { await_quiet(&running.process) } else { Ok(()) }
}

fn await_quiet(process: &Process) -> Result<()> {
    for _ in 0..LOOKS_MAX {
        let before = process.cpu();
        std::thread::sleep(LOOK);
        if process.cpu().since(&before).running < QUIET {
            return Ok(());
        }
    }
    bail!("the gateway works on although no call is open")
}

/// Makes callgrind dump and reset its counters. Returns the text of the dump.
fn dump(process: &Process, dumps: &Path) -> Result<String> {
    let pid = process.tree()[0].to_string();
    let output = Command::new("callgrind_control").args(["--dump", &pid]).output();
    let output = output.context("callgrind_control cannot be run")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Dumps are numbered from 1.
    let mut newest = None;
    for number in 1.. {
        let file = PathBuf::from(format!("{}.{pid}.{number}", dumps.display()));
        if !file.exists() {
            break;
        }
        newest = Some(file);
    }
    let Some(newest) = newest else { bail!("callgrind has written nothing: {}", process.last_words()) };
    Ok(fs::read_to_string(newest)?)
}

/// The sums of a callgrind file.
#[derive(Debug, Default, PartialEq)]
struct Profile {
    instructions: u64,
    allocations: u64,
    socket_calls: u64,
    code_lines: u64,
}

impl Profile {
    /// Reads a file in the format of callgrind's manual, section 3 ("Callgrind Format
    /// Specification"), with neither names nor positions compressed and with instructions as
    /// positions.
    fn parse(text: &str) -> Self {
        let mut profile = Self::default();
        let mut lines: HashSet<(&str, u64)> = HashSet::new();
        let (mut object, mut callee, mut is_call) = ("", "", false);
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("ob=") {
                object = name;
            } else if let Some(name) = line.strip_prefix("cfn=") {
                callee = name;
            } else if let Some(calls) = line.strip_prefix("calls=") {
                let count = calls.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
                if is_any(callee, &ALLOCATORS) {
                    profile.allocations += count;
                } else if is_any(callee, &SOCKET_CALLS) {
                    profile.socket_calls += count;
                }
                is_call = true;
            } else if let Some(rest) = line.strip_prefix("0x") {
                // The line after `calls=` has the cost of the callee, which is counted there.
                if std::mem::take(&mut is_call) {
                    continue;
                }
                let mut words = rest.split(' ');
                let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
                // Between them is the source line, which is 0 if unknown.
                let cost = words.next_back().and_then(|word| word.parse().ok()).unwrap_or(0);
                profile.instructions += cost;
                if let Some(address) = address.filter(|_| cost > 0) {
                    lines.insert((object, address / 64));
                }
            }
        }
        profile.code_lines = lines.len() as u64;
        profile
    }
}

/// Returns whether a function is one of these, regardless of the version and suffix of its symbol.
fn is_any(function: &str, names: &[&str]) -> bool {
    let name = function.split(['@', '\'']).next().unwrap_or(function);
    names.contains(&name.trim_start_matches('_').trim_start_matches("libc_"))
}

fn table(kinds: &[&Kind], costs: &BTreeMap<String, Cost>, budgets: &BTreeMap<String, Cost>) -> String {
    let mut text = String::from(
        "| Call | Instructions | Budget | Change | Allocations | Socket calls | Code lines |\n|---|---|---|---|---|---|---|\n",
    );
    for kind in kinds {
        let cost = costs[kind.name];
        let (budget, change) = budgets.get(kind.name).map_or_else(
            || ("none".to_owned(), String::new()),
            |budget| {
                let change = cost.instructions as f64 / budget.instructions as f64 - 1.0;
                (budget.instructions.to_string(), format!("{:+.2} %", change * 100.0))
            },
        );
        text += &format!(
            "| {} | {} | {budget} | {change} | {} | {} | {} |\n",
            kind.name, cost.instructions, cost.allocations, cost.socket_calls, cost.code_lines
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Cost, KINDS, Profile, exceeds};

    #[test]
    fn costs_of_callees_count_once() {
        let text = "positions: instr line\nevents: Ir\n\nob=/switchback\nfn=poll\n0x1000 0 5\n0x1010 0 2\ncfn=malloc\ncalls=3 0x50 0\n\
                    0x1044 0 300\n0x1048 0 1\n\nob=/libc.so\nfn=malloc\n0x1000 0 300\ncfn=__libc_writev\ncalls=2 0x9 0\n0x1004 0 9\n";
        let profile = Profile::parse(text);
        assert_eq!(profile, Profile { instructions: 308, allocations: 3, socket_calls: 2, code_lines: 3 });
    }

    #[test]
    fn a_budget_is_exceeded_beyond_the_tolerance() {
        let cost = |instructions| Cost { instructions, allocations: 0.0, socket_calls: 0.0, code_lines: 0 };
        let list = &KINDS[0];
        assert!(!exceeds(list, cost(101_000), Some(&cost(100_000))));
        assert!(exceeds(list, cost(101_001), Some(&cost(100_000))));
        assert!(exceeds(list, cost(1), None));
    }
}
