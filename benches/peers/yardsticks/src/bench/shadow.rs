//! The effect of a dual run on clients: the same calls, answered by the old version, without a
//! shadow and with one, for a candidate that is healthy, slow, dead or endless. Six gateways run
//! side by side and are measured in rotation. Two of them have no shadow; their difference is the
//! error of the measurement.

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
/// CPU time of all gateways in one interval when they are idle.
const QUIET: Duration = Duration::from_millis(4);
/// Interval of the checks.
const LOOK: Duration = Duration::from_millis(250);
/// Maximum time until idle: longer than a call of the shadow may take.
const UNQUIET_MAX: Duration = Duration::from_secs(15);

/// The candidate of the shadow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Asked {
    Nobody,
    /// The control: without a shadow, by another gateway.
    NobodyAgain,
    Well,
    Slow,
    Dead,
    Endless,
}

/// The measurements of clients with one candidate, by round.
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
    /// CPU time of the gateway per request of a client, including all work of the shadow.
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

/// Returns its name in the tables.
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
    /// Returns the median of a measure over the rounds.
    pub fn median(&self, of: impl Fn(&Seen) -> f64) -> f64 {
        median(self.samples.iter().map(of).collect())
    }

    /// Returns the median of the ratio to another case, by round.
    pub fn ratio(&self, other: &Shadowed, of: impl Fn(&Seen) -> f64) -> f64 {
        median(self.samples.iter().zip(&other.samples).map(|(ours, others)| of(ours) / of(others)).collect())
    }

    /// Returns the smallest and the largest ratio of the rounds.
    pub fn range(&self, of: impl Fn(&Seen) -> f64) -> (f64, f64) {
        let (least, most) = (f64::INFINITY, 0.0);
        self.samples
            .iter()
            .map(of)
            .fold((least, most), |(least, most), seen| (least.min(seen), most.max(seen)))
    }
}

/// A gateway with its candidate.
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

    /// Returns the number of calls that the candidate received.
    fn calls(&self, fixture: &Fixture) -> u64 {
        match (&self.candidate, self.asked) {
            (Some(candidate), _) => candidate.calls(),
            (None, Asked::Well) => fixture.requests(),
            _ => 0,
        }
    }
}

/// Measures all cases in rotation, round by round.
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
            // Pending work of one shadow must not affect the clients of the next gateway.
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

/// Waits until all gateways are idle.
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
