//! Traffic over time, for charts: rings in memory, fed by readings of the program's own counters on a timer. Nothing of it is
//! on the way of a request; a reading takes at most a hundredth of a core, however many clients and operations are counted.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use switchback_gateway::clock::Clock;
use switchback_gateway::telemetry::metrics::{Metrics, OUTCOMES};
use switchback_gateway::telemetry::reading::{Durations, OperationReading, Reading};
use tokio::task::spawn_blocking;

/// How often the counters are read, and the width of the finest slots.
const EVERY: Duration = Duration::from_secs(2);
/// A reading is followed by so many times its own duration without one.
const REST: u32 = 100;

/// What a chart spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    Hour,
    Day,
}

impl Span {
    /// In words, as a part of a sentence.
    pub(crate) fn words(self) -> &'static str {
        if self == Span::Hour { "the last hour" } else { "the last day" }
    }

    pub(crate) fn of(word: &str) -> Span {
        if word == "day" { Span::Day } else { Span::Hour }
    }
}

/// What happened in one slot over all operations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Point {
    /// In the order of [`OUTCOMES`].
    pub(crate) outcomes: [u64; OUTCOMES.len()],
    pub(crate) durations: Durations,
    pub(crate) upstreams: Durations,
}

/// What happened to one operation in one slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OperationPoint {
    pub(crate) outcomes: [u64; OUTCOMES.len()],
    pub(crate) durations: Durations,
    /// Answers of both sides that were compared, and those that differed.
    pub(crate) compared: u64,
    pub(crate) different: u64,
}

/// The newest slots of equal width. All of the memory is taken at the start, so that a gateway grows with what it is asked for
/// and not with its age.
#[derive(Clone, Debug)]
struct Slots<P> {
    width_ms: i64,
    /// Each with its number, the time in widths since 1970, at the place that this number has in turn.
    slots: Box<[(i64, P)]>,
}

/// The number of a slot that was never used.
const NEVER: i64 = i64::MIN;

impl<P: Copy + Default> Slots<P> {
    fn new(width_ms: i64, kept: usize) -> Slots<P> {
        Slots { width_ms, slots: vec![(NEVER, P::default()); kept].into() }
    }

    fn add(&mut self, at_ms: i64, add: impl FnOnce(&mut P)) {
        let number = at_ms.div_euclid(self.width_ms);
        let place = self.place(number);
        let slot = &mut self.slots[place];
        if slot.0 != number {
            *slot = (number, P::default());
        }
        add(&mut slot.1);
    }

    fn place(&self, number: i64) -> usize {
        number.rem_euclid(self.slots.len() as i64) as usize
    }

    fn get(&self, number: i64) -> Option<&P> {
        let (found, point) = &self.slots[self.place(number)];
        (*found == number).then_some(point)
    }

    /// The slots of the span that ends now, as numbers; the one that is not over is left out.
    fn numbers(&self, now_ms: i64) -> std::ops::Range<i64> {
        let end = now_ms.div_euclid(self.width_ms);
        end - self.slots.len() as i64..end
    }

    /// What is in the slots of the span that ends now, the one that is not over too.
    fn until(&self, now_ms: i64) -> impl Iterator<Item = &P> {
        let numbers = self.numbers(now_ms);
        (numbers.start + 1..=numbers.end).filter_map(|number| self.get(number))
    }

    /// All slots up to now with their times; none where nothing was read. The slot that is not over is left out.
    fn all(&self, now_ms: i64) -> Vec<(i64, Option<P>)> {
        self.numbers(now_ms).map(|number| (number * self.width_ms, self.get(number).copied())).collect()
    }

    /// Whether something was read in the time of `width_ms` from `from_ms` on.
    fn is_read(&self, from_ms: i64, width_ms: i64) -> bool {
        let (first, last) =
            (from_ms.div_euclid(self.width_ms), (from_ms + width_ms - 1).div_euclid(self.width_ms));
        (first..=last).any(|number| self.get(number).is_some())
    }
}

/// What was counted of requests in one slot.
pub(crate) trait Counted {
    fn outcomes(&self) -> &[u64; OUTCOMES.len()];
    fn durations(&self) -> &Durations;
}

/// A chart's slots, with their width in seconds.
pub(crate) struct Line<P> {
    pub(crate) seconds: f64,
    pub(crate) slots: Vec<(i64, Option<P>)>,
}

impl<P> Line<P> {
    /// The moments of the slots, in milliseconds since 1970.
    pub(crate) fn times(&self) -> Vec<i64> {
        self.slots.iter().map(|(at, _)| *at).collect()
    }

    /// One value of each slot, where it is known.
    pub(crate) fn values(&self, of: impl Fn(&P) -> Option<f64>) -> Vec<Option<f64>> {
        self.slots.iter().map(|(_, point)| point.as_ref().and_then(&of)).collect()
    }
}

/// The rings. One for the program.
pub(crate) struct Traffic {
    clock: Clock,
    metrics: Metrics,
    state: Mutex<State>,
}

struct State {
    last: Reading,
    fine: Slots<Point>,
    hour: Slots<Point>,
    day: Slots<Point>,
    operations: BTreeMap<(String, String), Operation>,
}

struct Operation {
    hour: Slots<OperationPoint>,
    day: Slots<OperationPoint>,
}

impl Traffic {
    pub(crate) fn new(metrics: Metrics, clock: Clock) -> Traffic {
        let state = State {
            last: Reading::default(),
            fine: Slots::new(2_000, 60),
            hour: Slots::new(20_000, 180),
            day: Slots::new(300_000, 288),
            operations: BTreeMap::new(),
        };
        Traffic { clock, metrics, state: Mutex::new(state) }
    }

    /// Reads for ever.
    pub(crate) async fn keep(&self) {
        // What was counted before the first reading has no time.
        self.read(false).await;
        loop {
            let begun = Instant::now();
            self.read(true).await;
            self.clock.sleep(EVERY.max(begun.elapsed() * REST)).await;
        }
    }

    async fn read(&self, counts: bool) {
        let metrics = self.metrics.clone();
        if let Ok(reading) = spawn_blocking(move || metrics.reading()).await {
            self.state().take(reading, self.clock.unix_ms(), counts);
        }
    }

    /// What is counted since the start.
    pub(crate) fn totals(&self) -> Reading {
        self.state().last.clone()
    }

    /// The last seconds, summed, with how many seconds they are.
    pub(crate) fn now(&self) -> (Point, f64) {
        const SLOTS: usize = 5;
        let all = self.state().fine.all(self.clock.unix_ms());
        let seen: Vec<Point> = all.iter().rev().take(SLOTS).filter_map(|(_, point)| *point).collect();
        let mut sum = Point::default();
        seen.iter().for_each(|point| sum.add(point));
        (sum, seen.len() as f64 * EVERY.as_secs_f64())
    }

    pub(crate) fn all(&self, span: Span) -> Line<Point> {
        let state = self.state();
        let slots = if span == Span::Hour { &state.hour } else { &state.day };
        Line { seconds: slots.width_ms as f64 / 1e3, slots: slots.all(self.clock.unix_ms()) }
    }

    pub(crate) fn operation(&self, side: &str, operation: &str, span: Span) -> Line<OperationPoint> {
        let (state, now_ms) = (self.state(), self.clock.unix_ms());
        let never = Operation::new();
        let found = state.operations.get(&(side.to_owned(), operation.to_owned())).unwrap_or(&never);
        let (slots, whole) = match span {
            Span::Hour => (&found.hour, &state.hour),
            Span::Day => (&found.day, &state.day),
        };
        // An operation has no slots before its first call: nothing was counted then, where anything was read.
        let point = |at: i64, point: Option<OperationPoint>| {
            point.or_else(|| whole.is_read(at, slots.width_ms).then(OperationPoint::default))
        };
        let all = slots.all(now_ms).into_iter().map(|(at, found)| (at, point(at, found))).collect();
        Line { seconds: slots.width_ms as f64 / 1e3, slots: all }
    }

    /// The requests and the errors of an operation in the last hour, up to now.
    pub(crate) fn of_the_hour(&self, side: &str, operation: &str) -> (u64, u64) {
        let state = self.state();
        let Some(found) = state.operations.get(&(side.to_owned(), operation.to_owned())) else {
            return (0, 0);
        };
        let points = found.hour.until(self.clock.unix_ms());
        points.fold((0, 0), |(requests, errors), point| {
            (requests + requests_of(&point.outcomes), errors + errors_of(&point.outcomes))
        })
    }

    /// How requests ended in a span, up to now.
    pub(crate) fn outcomes(&self, span: Span) -> [u64; OUTCOMES.len()] {
        let state = self.state();
        let slots = if span == Span::Hour { &state.hour } else { &state.day };
        let mut sum = [0; OUTCOMES.len()];
        for point in slots.until(self.clock.unix_ms()) {
            sum.iter_mut().zip(point.outcomes).for_each(|(sum, more)| *sum += more);
        }
        sum
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Operation {
    fn new() -> Operation {
        Operation { hour: Slots::new(60_000, 60), day: Slots::new(900_000, 96) }
    }
}

impl State {
    fn take(&mut self, reading: Reading, now_ms: i64, counts: bool) {
        let mut whole =
            Point { upstreams: reading.upstreams.since(&self.last.upstreams), ..Point::default() };
        let nothing = OperationReading::default();
        for (key, operation) in reading.operations.iter().filter(|_| counts) {
            let before = self.last.operations.get(key).unwrap_or(&nothing);
            let mut outcomes = operation.outcomes;
            outcomes
                .iter_mut()
                .zip(before.outcomes)
                .for_each(|(now, before)| *now = now.saturating_sub(before));
            let compared = |reading: &Reading| reading.compared.get(&key.1).copied().unwrap_or_default();
            let (now, then) = (compared(&reading), compared(&self.last));
            let point = OperationPoint {
                outcomes,
                durations: operation.durations.since(&before.durations),
                compared: now.0.saturating_sub(then.0),
                different: now.1.saturating_sub(then.1),
            };
            whole.outcomes.iter_mut().zip(outcomes).for_each(|(sum, more)| *sum += more);
            whole.durations.add(&point.durations);
            let is_idle = point.compared == 0 && requests_of(&point.outcomes) == 0;
            if is_idle && !self.operations.contains_key(key) {
                continue;
            }
            let rings = self.operations.entry(key.clone()).or_insert_with(Operation::new);
            rings.hour.add(now_ms, |slot| slot.add(&point));
            rings.day.add(now_ms, |slot| slot.add(&point));
        }
        if counts {
            for ring in [&mut self.fine, &mut self.hour, &mut self.day] {
                ring.add(now_ms, |slot| slot.add(&whole));
            }
        }
        self.last = reading;
    }
}

impl Counted for Point {
    fn outcomes(&self) -> &[u64; OUTCOMES.len()] {
        &self.outcomes
    }

    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl Counted for OperationPoint {
    fn outcomes(&self) -> &[u64; OUTCOMES.len()] {
        &self.outcomes
    }

    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl Point {
    fn add(&mut self, more: &Point) {
        self.outcomes.iter_mut().zip(more.outcomes).for_each(|(sum, more)| *sum += more);
        self.durations.add(&more.durations);
        self.upstreams.add(&more.upstreams);
    }

    /// What the gateway itself took, on average, where that is known: requests less the calls that they made.
    pub(crate) fn own_seconds(&self) -> Option<f64> {
        let requests = self.durations.count();
        (requests > 0).then(|| (self.durations.seconds - self.upstreams.seconds).max(0.0) / requests as f64)
    }
}

impl OperationPoint {
    fn add(&mut self, more: &OperationPoint) {
        self.outcomes.iter_mut().zip(more.outcomes).for_each(|(sum, more)| *sum += more);
        self.durations.add(&more.durations);
        self.compared += more.compared;
        self.different += more.different;
    }
}

/// All requests.
pub(crate) fn requests_of(outcomes: &[u64; OUTCOMES.len()]) -> u64 {
    outcomes.iter().sum()
}

/// Those that failed through an upstream or through us.
pub(crate) fn errors_of(outcomes: &[u64; OUTCOMES.len()]) -> u64 {
    use switchback_gateway::telemetry::metrics::Outcome::{GatewayError, UpstreamError};
    OUTCOMES
        .iter()
        .zip(outcomes)
        .filter(|(outcome, _)| matches!(outcome, GatewayError | UpstreamError))
        .map(|(_, n)| n)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(requests: u64, compared: (u64, u64)) -> Reading {
        let mut operation = OperationReading::default();
        operation.outcomes[0] = requests;
        operation.durations.buckets[2] = requests;
        let key = ("old".to_owned(), "GET /a".to_owned());
        Reading {
            operations: BTreeMap::from([(key, operation)]),
            compared: BTreeMap::from([("GET /a".to_owned(), compared)]),
            ..Reading::default()
        }
    }

    #[test]
    fn slots_hold_what_came_between_readings_and_gaps_stay_gaps() {
        let clock = Clock::paused_at(0);
        let traffic = Traffic::new(switchback_gateway::telemetry::metrics::install(), clock.clone());
        let take = |at_ms: i64, requests, compared| {
            traffic.state().take(reading(requests, compared), at_ms, true);
        };
        traffic.state().take(reading(100, (5, 0)), 0, false);
        take(61_000, 110, (7, 1));
        take(119_000, 115, (7, 1));
        take(300_000, 120, (9, 2));
        clock.advance(Duration::from_secs(420));
        let line = traffic.operation("old", "GET /a", Span::Hour);
        let found: Vec<_> = line.slots.iter().filter_map(|(at, point)| Some((*at, (*point)?))).collect();
        let found: Vec<_> =
            found.iter().map(|(at, p)| (*at, requests_of(&p.outcomes), p.compared, p.different)).collect();
        assert_eq!(
            found,
            [(60_000, 15, 2, 1), (300_000, 5, 2, 1)],
            "what was counted before the first reading has no time"
        );
        assert_eq!(line.slots.len(), 60);
        assert_eq!(traffic.of_the_hour("old", "GET /a"), (20, 0));
        assert_eq!(traffic.of_the_hour("old", "GET /nothing"), (0, 0));
    }

    #[test]
    fn rings_keep_their_bound() {
        let mut slots = Slots::<u64>::new(1_000, 3);
        for second in 0..10 {
            slots.add(second * 1_000, |slot| *slot += 1);
        }
        assert_eq!(slots.slots.len(), 3);
        assert_eq!(slots.all(10_000), [(7_000, Some(1)), (8_000, Some(1)), (9_000, Some(1))]);
        slots.add(12_000, |slot| *slot += 1);
        assert_eq!(slots.all(13_000), [(10_000, None), (11_000, None), (12_000, Some(1))]);
        assert_eq!(slots.until(12_500).sum::<u64>(), 1);
    }

    #[test]
    fn an_operation_takes_no_memory_before_its_first_call_and_shows_that_there_was_none() {
        let clock = Clock::paused_at(0);
        let traffic = Traffic::new(switchback_gateway::telemetry::metrics::install(), clock.clone());
        let take = |at_ms, requests| traffic.state().take(reading(requests, (0, 0)), at_ms, true);
        take(1_000, 0);
        take(61_000, 0);
        assert!(traffic.state().operations.is_empty());
        take(121_000, 3);
        clock.advance(Duration::from_secs(180));
        let line = traffic.operation("old", "GET /a", Span::Hour);
        let found: Vec<_> = line.slots.iter().filter_map(|(at, point)| Some((*at, (*point)?))).collect();
        let found: Vec<_> = found.iter().map(|(at, point)| (*at, requests_of(&point.outcomes))).collect();
        assert_eq!(found, [(0, 0), (60_000, 0), (120_000, 3)]);
    }
}
