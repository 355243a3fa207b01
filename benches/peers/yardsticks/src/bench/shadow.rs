//! What clients notice of a dual run: the same calls, answered by the old version, without a shadow
//! and with one whose candidate is well, slow, dead or endless. Six gateways stand side by side and
//! are measured in turn; two of them have no shadow, and what differs between these two is what the
//! measurement itself makes of nothing.

use super::agree::await_ready;
use super::measure::median;
use super::peers::{Running, Site, free_port};
use super::{calls::Call, measure::Span};
use crate::candidate::{Candidate, Manner};
use crate::fixture::Fixture;
use crate::load::{self, Load, Pace, Until};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 64;
/// What the gateways do on a core in one look, together, when nothing goes on any more.
const QUIET: Duration = Duration::from_millis(4);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(250);
/// How long they may go on: longer than a shadow's call may take.
const UNQUIET_MAX: Duration = Duration::from_secs(15);

/// What the shadow asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Asked {
    Nobody,
    /// The control: as before, by another gateway.
    NobodyAgain,
    Well,
    Slow,
    Dead,
    Endless,
}

/// What clients saw while the shadow asked somebody, round by round.
#[derive(Serialize)]
pub struct Shadowed {
    pub asked: Asked,
    pub samples: Vec<Seen>,
}

/// One measurement.
#[derive(Clone, Copy, Serialize)]
pub struct Seen {
    pub p50_us: f64,
    pub p99_us: f64,
    /// Time of the gateway on a core, all that the shadow does included, per request of a client.
    pub cpu_us: f64,
    pub peak_bytes: u64,
    /// Calls that the candidate received, per request of a client.
    pub calls: f64,
}

impl Asked {
    fn is_silent(self) -> bool {
        matches!(self, Asked::Nobody | Asked::NobodyAgain)
    }
}

/// How the tables call it.
pub fn title(asked: Asked) -> &'static str {
    match asked {
        Asked::Nobody => "no shadow",
        Asked::NobodyAgain => "no shadow, once more",
        Asked::Well => "a candidate that is well",
        Asked::Slow => "a slow candidate (8 s)",
        Asked::Dead => "a dead candidate",
        Asked::Endless => "an endless candidate",
    }
}

impl Shadowed {
    /// The median over the rounds of something that was seen.
    pub fn median(&self, of: impl Fn(&Seen) -> f64) -> f64 {
        median(self.samples.iter().map(of).collect())
    }

    /// The median of what this is to another's, round by round.
    pub fn ratio(&self, other: &Shadowed, of: impl Fn(&Seen) -> f64) -> f64 {
        median(self.samples.iter().zip(&other.samples).map(|(ours, others)| of(ours) / of(others)).collect())
    }

    /// The least and the most of it in any round.
    pub fn range(&self, of: impl Fn(&Seen) -> f64) -> (f64, f64) {
        let (least, most) = (f64::INFINITY, 0.0);
        self.samples
            .iter()
            .map(of)
            .fold((least, most), |(least, most), seen| (least.min(seen), most.max(seen)))
    }
}

/// A gateway, and whom its shadow asks.
struct Case {
    asked: Asked,
    running: Running,
    candidate: Option<Candidate>,
}

impl Case {
    fn start(asked: Asked, site: &Site) -> Result<Self> {
        let candidate = match asked {
            Asked::Slow => Some(Candidate::start(Manner::Slow)?),
            Asked::Endless => Some(Candidate::start(Manner::Endless)?),
            _ => None,
        };
        let address: SocketAddr = match (asked, &candidate) {
            (_, Some(candidate)) => candidate.address,
            (Asked::Dead, _) => free_port()?,
            _ => site.upstreams[0],
        };
        let phase = if asked.is_silent() { "legacy" } else { "shadow" };
        let mut running = site.start_dual(&format!("shadow-{asked:?}"), address, phase)?;
        await_ready(&mut running)?;
        Ok(Self { asked, running, candidate })
    }

    /// Calls that the candidate has received.
    fn calls(&self, fixture: &Fixture) -> u64 {
        match (&self.candidate, self.asked) {
            (Some(candidate), _) => candidate.calls(),
            (None, Asked::Well) => fixture.requests(),
            _ => 0,
        }
    }
}

/// Measures all cases in turn, round after round.
///
/// # Errors
/// A gateway that does not start or answers wrongly, and a shadow that asks nobody.
pub fn measure(
    site: &Site,
    rounds: usize,
    span: Span,
    per_second: u32,
    fixture: &Fixture,
) -> Result<Vec<Shadowed>> {
    let all = [Asked::Nobody, Asked::Well, Asked::NobodyAgain, Asked::Slow, Asked::Dead, Asked::Endless];
    let mut cases = all.map(|asked| Case::start(asked, site)).into_iter().collect::<Result<Vec<_>>>()?;
    let mut found: Vec<_> = all.map(|asked| Shadowed { asked, samples: Vec::new() }).into();
    for round in 1..=rounds {
        for (at, found) in found.iter_mut().enumerate() {
            // What one shadow still has to do is not to be seen by the clients of the next gateway.
            settle(&cases);
            let case = &mut cases[at];
            let seen = measure_case(case, span, per_second, fixture).with_context(|| title(case.asked))?;
            eprintln!(
                "shadow, {}, round {round}: p99 {:.0} µs, {:.1} µs",
                title(case.asked),
                seen.p99_us,
                seen.cpu_us
            );
            found.samples.push(seen);
        }
    }
    for case in &cases {
        let silent = case.asked.is_silent() || case.asked == Asked::Dead;
        ensure!(silent || case.calls(fixture) > 0, "{}: it was not asked", title(case.asked));
    }
    Ok(found)
}

/// Waits until nothing goes on in any of the gateways.
fn settle(cases: &[Case]) {
    let until = Instant::now() + UNQUIET_MAX;
    while Instant::now() < until {
        let before: Vec<_> = cases.iter().map(|case| case.running.process.cpu()).collect();
        sleep(LOOK);
        let spent =
            cases.iter().zip(&before).map(|(case, before)| case.running.process.cpu().since(before).running);
        if spent.sum::<Duration>() < QUIET {
            return;
        }
    }
}

fn measure_case(case: &mut Case, span: Span, per_second: u32, fixture: &Fixture) -> Result<Seen> {
    let load = Load {
        target: case.running.target.clone(),
        requests: Call::List.requests(&case.running),
        status: 200,
        connections: CONNECTIONS,
        pace: Pace::Open { per_second },
    };
    case.running.process.forget_peak();
    let (calls, cpu) = (case.calls(fixture), case.running.process.cpu());
    let tally = match span.count {
        Some(count) => load::run(&load, &Until::Count(count * CONNECTIONS as u64))?,
        None => {
            let phase = AtomicU8::new(load::NOTE);
            std::thread::scope(|scope| {
                let loading = scope.spawn(|| load::run(&load, &Until::Told(&phase)));
                std::thread::sleep(span.measured);
                phase.store(load::STOP, Ordering::Relaxed);
                loading.join().expect("the load generator does not panic")
            })?
        }
    };
    let cpu = case.running.process.cpu().since(&cpu).running;
    case.running.process.check()?;
    case.running.process.forget_log()?;
    ensure!(
        tally.failures == 0 && tally.answers > 0,
        "{} of {} answers failed",
        tally.failures,
        tally.answers
    );
    let answers = tally.answers as f64;
    Ok(Seen {
        p50_us: tally.latencies.value_at_quantile(0.5) as f64 / 1e3,
        p99_us: tally.latencies.value_at_quantile(0.99) as f64 / 1e3,
        cpu_us: cpu.as_secs_f64() * 1e6 / answers,
        peak_bytes: case.running.process.memory("VmHWM"),
        calls: (case.calls(fixture) - calls) as f64 / answers,
    })
}
