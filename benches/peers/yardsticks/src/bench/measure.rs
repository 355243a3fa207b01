//! One measurement of one peer, and the summary of several.

use super::calls::Call;
use super::peers::{Peer, Running};
use super::process::Spent;
use super::transport::Transport;
use crate::fixture::Fixture;
use crate::load::{self, Load, Pace, Tally, Until};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Interval of the checks that all connections are open.
const CONNECT_STEP: Duration = Duration::from_millis(1);

/// The parameters that all peers share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    pub transport: Transport,
    pub call: Call,
    pub connections: usize,
    pub pace: Pace,
}

/// The duration of a measurement.
#[derive(Clone, Copy)]
pub struct Span {
    pub warm: Duration,
    pub measured: Duration,
    /// A number of requests on each connection, regardless of the duration.
    pub count: Option<u64>,
}

/// The result of one measurement.
#[derive(Clone, Copy, Serialize)]
pub struct Sample {
    /// User and system time of the peer's processes per request that reached the upstream.
    pub cpu_us: f64,
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Share of the time for which the peer was ready to run but had no free core. Above a few
    /// percent, the machine was not idle, or the peer's own threads competed.
    pub waited: f64,
    /// `VmHWM` over all processes of the peer, since the start of the measurement.
    pub peak_bytes: u64,
}

/// Measures a peer once.
pub fn measure(running: &mut Running, setting: Setting, span: Span, fixture: &Fixture) -> Result<Sample> {
    let requests = setting.call.requests(running);
    measure_requests(running, requests, setting, span, fixture)
}

/// Measures a peer once, with other requests than those of the setting.
pub fn measure_requests(
    running: &mut Running,
    requests: Vec<Vec<u8>>,
    setting: Setting,
    span: Span,
    fixture: &Fixture,
) -> Result<Sample> {
    let load = Load {
        target: running.target.clone(),
        requests,
        status: setting.call.status(running.peer),
        connections: setting.connections,
        pace: setting.pace,
    };
    running.process.forget_peak();
    let connections = setting.connections as u64;
    // A time window would cut many large answers in two.
    let large = (!setting.call.is_small()).then_some(setting.call.large_count().max(connections * 2));
    let result = match span.count.map(|count| count * connections).or(large) {
        Some(count) => measure_count(running, &load, count, fixture),
        None => measure_window(running, &load, span, fixture),
    };
    running.process.check()?;
    running.process.forget_log()?;
    result.with_context(|| format!("{:?}, {}", running.peer, setting.call.title()))
}

/// Observes the peer during the load, without its start and its end.
fn measure_window(running: &Running, load: &Load, span: Span, fixture: &Fixture) -> Result<Sample> {
    let phase = AtomicU8::new(load::CONNECT);
    let (tally, cpu, requests, elapsed) = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load::run(load, &Until::Told(&phase)));
        while phase.load(Ordering::Relaxed) == load::CONNECT && !loading.is_finished() {
            std::thread::sleep(CONNECT_STEP);
        }
        std::thread::sleep(span.warm);
        let (start, requests, cpu) = (Instant::now(), fixture.requests(), running.process.cpu());
        phase.store(load::NOTE, Ordering::Relaxed);
        std::thread::sleep(span.measured);
        let (elapsed, requests) = (start.elapsed(), fixture.requests() - requests);
        let cpu = running.process.cpu().since(&cpu);
        phase.store(load::STOP, Ordering::Relaxed);
        (loading.join().expect("the load generator does not panic"), cpu, requests, elapsed)
    });
    sample(running, tally?, cpu, requests, elapsed)
}

/// Sends a number of requests and counts the total cost.
fn measure_count(running: &Running, load: &Load, count: u64, fixture: &Fixture) -> Result<Sample> {
    let (start, requests, cpu) = (Instant::now(), fixture.requests(), running.process.cpu());
    let tally = load::run(load, &Until::Count(count))?;
    let elapsed = start.elapsed();
    let cpu = running.process.cpu().since(&cpu);
    sample(running, tally, cpu, fixture.requests() - requests, elapsed)
}

fn sample(running: &Running, tally: Tally, spent: Spent, requests: u64, elapsed: Duration) -> Result<Sample> {
    ensure!(tally.failures == 0, "{} answers failed", tally.failures);
    ensure!(requests > 0 && tally.answers > 0, "nothing was answered");
    let quantile = |quantile| tally.latencies.value_at_quantile(quantile) as f64 / 1e3;
    Ok(Sample {
        cpu_us: spent.running.as_secs_f64() * 1e6 / requests as f64,
        waited: spent.waiting.as_secs_f64() / elapsed.as_secs_f64(),
        per_second: tally.answers as f64 / elapsed.as_secs_f64(),
        p50_us: quantile(0.5),
        p99_us: quantile(0.99),
        peak_bytes: running.process.memory("VmHWM"),
    })
}

/// The results of a peer in one setting, by round.
#[derive(Clone)]
pub struct Cell {
    pub setting: Setting,
    pub peer: Peer,
    pub samples: Vec<Sample>,
    /// The reason why samples are missing.
    pub failure: Option<String>,
}

impl Cell {
    /// Returns the median of a measure over the rounds.
    pub fn median(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().map(of).collect())
    }

    /// Returns the median of the ratio of this peer to another, by round.
    pub fn ratio(&self, other: &Cell, of: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().zip(&other.samples).map(|(ours, others)| of(ours) / of(others)).collect())
    }
}

/// Returns the median; NaN for an empty list.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    match numbers.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => numbers[count / 2],
        count => f64::midpoint(numbers[count / 2 - 1], numbers[count / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(vec![]).is_nan());
    }
}
