//! Measures the time of adversarial documents over their size: CPU time of the thread, if the
//! system provides it. Each document is read, compiled as a pack of identical sides, and drafted
//! against a copy with an additional field in every object.

#[path = "../../src/contract/hostile/families.rs"]
mod families;

use families::{FAMILIES, document};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use switchback_compiler::contract::{self, Documents};
use switchback_compiler::diagnostic::{Findings, Sources};
use switchback_compiler::init::{self, SideDocument};
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;

/// Maximum exponent of the growth over the length of the document.
const POWER_MAX: f64 = 1.5;
/// Shorter times in seconds are too inaccurate to measure growth.
const SECONDS_MIN: f64 = 0.05;

const MANIFEST: &str = "pack: hostile\nsides: {old: a, new: b}\ncontracts: {a: a.json, b: b.json}\nserves: [a]\n\
    identical: keep\nrest: refuse\ncredentials:\n  a: {read: [authorization], send: authorization, scheme: Bearer}\n  \
    b: {read: [authorization], send: authorization, scheme: Bearer}\nlanguages: [en]\nerrors: {body: {message: $text}}\n\
    refuse: {legacy: forward, status: 501}\n";

/// Runs `--hostile [WORD] SIZE…` for the families whose names contain the word, or all.
pub fn run(arguments: &[String]) -> ExitCode {
    let (word, sizes) = match arguments {
        [word, sizes @ ..] if word.parse::<usize>().is_err() => (word.as_str(), sizes),
        all => ("", all),
    };
    let sizes: Vec<usize> = sizes.iter().filter_map(|size| size.parse().ok()).collect();
    if sizes.len() < 2 {
        eprintln!("--hostile [WORD] SIZE SIZE…");
        return ExitCode::from(2);
    }
    println!(
        "{:<56} {:>5} {:>9}  {:>9} {:>9} {:>9}",
        "family", "size", "bytes", "read s", "compile s", "init s"
    );
    let mut beyond = 0;
    for (name, family) in FAMILIES.iter().filter(|(name, _)| name.contains(word)) {
        let mut rows: Vec<(usize, [f64; 3])> = Vec::new();
        for size in &sizes {
            let text = document(&family(*size));
            if !is_read(&text) {
                println!("{name:<56} {size:>5} {:>9}  refused by a limit", text.len());
                break;
            }
            let took = [read(&text), compiled(&text), drafted(&text)];
            println!(
                "{name:<56} {size:>5} {:>9}  {:>9.3} {:>9.3} {:>9.3}",
                text.len(),
                took[0],
                took[1],
                took[2]
            );
            rows.push((text.len(), took));
        }
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { continue };
        for (at, what) in ["read", "compile", "init"].iter().enumerate() {
            if last.1[at] < SECONDS_MIN {
                continue;
            }
            let growth = last.1[at] / first.1[at].max(SECONDS_MIN / 10.0);
            let power = growth.ln() / (last.0 as f64 / first.0 as f64).ln();
            let verdict = if power > POWER_MAX { "TOO FAST" } else { "holds" };
            beyond += usize::from(power > POWER_MAX);
            println!("    {what} grows by the power {power:.2} of the length: {verdict}");
        }
    }
    println!("{} families, {beyond} of their growths too fast", FAMILIES.len());
    if beyond > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// A clock for the CPU time of the thread, which excludes other processes.
struct Clock {
    wall: Instant,
    ran: Option<Duration>,
}

impl Clock {
    fn start() -> Clock {
        Clock { wall: Instant::now(), ran: Clock::ran() }
    }

    fn seconds(&self) -> f64 {
        let ran = self.ran.zip(Clock::ran()).map(|(start, end)| end.saturating_sub(start));
        ran.unwrap_or_else(|| self.wall.elapsed()).as_secs_f64()
    }

    fn ran() -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    }
}

/// Returns whether a document is within the limits for values, bytes and depth. Others are rejected
/// with a finding.
fn is_read(text: &str) -> bool {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    Documents::single(&mut sources, "a.json", text.as_bytes(), &mut findings).is_some()
}

fn read(text: &str) -> f64 {
    let clock = Clock::start();
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    if let Some(documents) = Documents::single(&mut sources, "a.json", text.as_bytes(), &mut findings) {
        contract::parse_contract("a", &documents, &mut findings);
    }
    clock.seconds()
}

fn compiled(text: &str) -> f64 {
    let files = [("pack.yaml", MANIFEST), ("a.json", text), ("b.json", text)];
    let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    let clock = Clock::start();
    let compiled = compile(&PackSource::from_files(files.to_vec()));
    assert!(compiled.pack.is_some(), "a pack of one document twice compiles");
    clock.seconds()
}

fn drafted(text: &str) -> f64 {
    let with = |ty: &str| {
        text.replace("\"properties\":{", &format!("\"properties\":{{\"own\":{{\"type\":\"{ty}\"}},"))
    };
    let side = |name: &str, text: String| SideDocument {
        name: name.to_owned(),
        document: format!("contracts/{name}.json"),
        files: vec![(format!("contracts/{name}.json"), text.into_bytes().into())],
    };
    // Renamed fields become guesses if their descriptions agree.
    let sides = [side("a", with("string")), side("b", with("integer").replace("\"field", "\"felt"))];
    let clock = Clock::start();
    let drafted = init::draft("hostile", &sides, &[], &BTreeSet::new(), &mut |_| ());
    assert!(drafted.is_ok_and(|draft| draft.compiled.pack.is_some()), "a draft checks");
    clock.seconds()
}
