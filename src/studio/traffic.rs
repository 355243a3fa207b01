//! Traffic over time, for charts: ring buffers in memory, filled by sampling the program's counters
//! on a timer, outside the data path. Sampling uses at most 1 % of a core for any number of clients
//! and operations. The counters of other replicas are in separate rings, filled by `replicas`;
//! pages display the sum.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use switchback_gateway::clock::Clock;
use switchback_gateway::outcome::OUTCOMES;
use switchback_gateway::telemetry::metrics::Metrics;
use switchback_gateway::telemetry::reading::{Durations, MetricsSnapshot, OperationReading};
use tokio::task::spawn_blocking;

/// Minimum sampling interval.
const EVERY: Duration = Duration::from_secs(2);
/// Minimum pause after a sample, as a multiple of its duration.
const REST: u32 = 100;

/// Minimum time covered by current rates, so that they do not fluctuate with each sample.
const NOW_MS: i64 = 10_000;

/// The time span of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartSpan {
    Hour,
    Day,
}

impl ChartSpan {
    /// Returns the span as a noun phrase.
    pub(crate) fn words(self) -> &'static str {
        if self == ChartSpan::Hour { "the last hour" } else { "the last day" }
    }

    pub(crate) fn from_word(word: &str) -> ChartSpan {
        if word == "day" { ChartSpan::Day } else { ChartSpan::Hour }
    }
}

/// Counters of one slot, for all operations.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Point {
    /// In the order of [`OUTCOMES`].
    pub(crate) outcomes: [u64; OUTCOMES.len()],
    pub(crate) durations: Durations,
    /// Time that the gateway added to requests with upstream calls.
    #[serde(default)]
    pub(crate) added: Durations,
}

/// Counters of one slot, for one operation.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OperationPoint {
    pub(crate) outcomes: [u64; OUTCOMES.len()],
    pub(crate) durations: Durations,
    /// Compared answers, and those of them that differed, unsettled ones included.
    pub(crate) compared: u64,
    pub(crate) different: u64,
}

/// Counters of one slot, for other replicas.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SlotCounts {
    whole: Point,
    /// By side and operation.
    operations: Vec<(String, String, OperationPoint)>,
}

/// Width of the slots that are sent to other replicas, in milliseconds: that of the finest chart.
pub(crate) const TOLD_MS: i64 = 20_000;
/// Most unsent slots while the store does not accept them: one hour.
pub(crate) const TOLD_MAX: usize = 180;

/// A ring buffer of slots of equal width. Allocated completely at the start, so that memory use
/// depends on the number of operations and not on uptime.
#[derive(Clone, Debug)]
struct SlotRing<P> {
    width_ms: i64,
    /// Slots with their number, the Unix time in units of the width. A slot's position is its
    /// number modulo the length.
    slots: Box<[(i64, P)]>,
}

/// The number of an unused slot.
const NEVER: i64 = i64::MIN;

impl<P: Copy + Default> SlotRing<P> {
    fn new(width_ms: i64, kept: usize) -> SlotRing<P> {
        SlotRing { width_ms, slots: vec![(NEVER, P::default()); kept].into() }
    }

    fn add(&mut self, at_ms: i64, add: impl FnOnce(&mut P)) {
        let number = at_ms.div_euclid(self.width_ms);
        let place = self.place(number);
        let slot = &mut self.slots[place];
        if slot.0 > number {
            // Late data of another replica: a newer slot has replaced this one.
            return;
        }
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

    /// Returns the slot numbers of the span up to now, without the incomplete slot.
    fn numbers(&self, now_ms: i64) -> std::ops::Range<i64> {
        let end = now_ms.div_euclid(self.width_ms);
        end - self.slots.len() as i64..end
    }

    /// Returns the slots of the span up to now, including the incomplete one.
    fn until(&self, now_ms: i64) -> impl Iterator<Item = &P> {
        let numbers = self.numbers(now_ms);
        // One slot less at the start, so that the span keeps its length with the incomplete slot.
        (numbers.start + 1..=numbers.end).filter_map(|number| self.get(number))
    }

    /// Returns all complete slots with their times; `None` for slots without a sample.
    fn all(&self, now_ms: i64) -> Vec<(i64, Option<P>)> {
        self.numbers(now_ms).map(|number| (number * self.width_ms, self.get(number).copied())).collect()
    }

    /// Returns whether any sample falls into the `width_ms` after `from_ms`.
    fn is_read(&self, from_ms: i64, width_ms: i64) -> bool {
        let (first, last) =
            (from_ms.div_euclid(self.width_ms), (from_ms + width_ms - 1).div_euclid(self.width_ms));
        (first..=last).any(|number| self.get(number).is_some())
    }
}

/// Request counters of one slot.
pub(crate) trait SlotCounter {
    fn outcomes(&self) -> &[u64; OUTCOMES.len()];
    fn durations(&self) -> &Durations;
}

/// The slots of a chart, with their width in seconds. It starts with the first sample, so that the
/// chart of a young process is not mostly empty.
pub(crate) struct ChartLine<P> {
    pub(crate) seconds: f64,
    pub(crate) slots: Vec<(i64, Option<P>)>,
    /// Whether the span has earlier slots, all without a sample.
    pub(crate) is_cropped: bool,
}

impl<P> ChartLine<P> {
    pub(crate) fn new(seconds: f64, mut slots: Vec<(i64, Option<P>)>) -> ChartLine<P> {
        let first = slots.iter().position(|(_, point)| point.is_some()).unwrap_or(slots.len());
        // An axis has two ends.
        let first = first.min(slots.len().saturating_sub(2));
        slots.drain(..first);
        ChartLine { seconds, slots, is_cropped: first > 0 }
    }

    /// Returns the start times of the slots as Unix time in milliseconds.
    pub(crate) fn times(&self) -> Vec<i64> {
        self.slots.iter().map(|(at, _)| *at).collect()
    }

    /// Maps each slot to a value.
    pub(crate) fn values(&self, of: impl Fn(&P) -> Option<f64>) -> Vec<Option<f64>> {
        self.slots.iter().map(|(_, point)| point.as_ref().and_then(&of)).collect()
    }
}

/// The ring buffers. One instance per program.
pub(crate) struct Traffic {
    clock: Clock,
    metrics: Metrics,
    state: Mutex<TrafficState>,
}

struct TrafficState {
    last: MetricsSnapshot,
    /// Time of `last`, and of the first sample, from which counting starts.
    last_ms: i64,
    begun_ms: Option<i64>,
    /// The newest samples, each with the milliseconds that it covers: as many as cover [`NOW_MS`].
    newest: VecDeque<(i64, Point)>,
    own: Rings,
    /// Counters of all other replicas, including former ones; `None` without any.
    others: Option<Rings>,
    /// Slots that are not yet sent to other replicas, by number; `None` without other replicas.
    untold: Option<BTreeMap<i64, SlotCounts>>,
}

/// The counters of one replica.
struct Rings {
    hour: SlotRing<Point>,
    day: SlotRing<Point>,
    operations: BTreeMap<(String, String), OperationTraffic>,
}

struct OperationTraffic {
    hour: SlotRing<OperationPoint>,
    day: SlotRing<OperationPoint>,
}

impl Traffic {
    pub(crate) fn new(metrics: Metrics, clock: Clock) -> Traffic {
        let state = TrafficState {
            last: MetricsSnapshot::default(),
            last_ms: 0,
            begun_ms: None,
            newest: VecDeque::new(),
            own: Rings::new(),
            others: None,
            untold: None,
        };
        Traffic { clock, metrics, state: Mutex::new(state) }
    }

    /// Samples the counters. Never returns.
    pub(crate) async fn keep(&self) {
        // Counts before the first sample have no known time, so it only sets the baseline.
        self.sample(false).await;
        loop {
            let begun = Instant::now();
            self.sample(true).await;
            // A sample takes longer with more operations. The pause grows with it, which bounds the share
            // of a core.
            self.clock.sleep(EVERY.max(begun.elapsed() * REST)).await;
        }
    }

    async fn sample(&self, counts: bool) {
        let metrics = self.metrics.clone();
        // With many operations, reading all counters takes too long for an async thread.
        if let Ok(reading) = spawn_blocking(move || metrics.reading()).await {
            self.state().take(reading, self.clock.unix_ms(), counts);
        }
    }

    /// Returns the counters since start.
    pub(crate) fn totals(&self) -> MetricsSnapshot {
        self.state().last.clone()
    }

    /// Returns the sum of the newest samples, and the seconds that they cover.
    pub(crate) fn now(&self) -> (Point, f64) {
        let state = self.state();
        let mut sum = Point::default();
        state.newest.iter().for_each(|(_, point)| sum.add(point));
        (sum, covered_ms(&state.newest) as f64 / 1e3)
    }

    /// Returns the totals of a span up to now, over all replicas.
    pub(crate) fn total(&self, span: ChartSpan) -> Point {
        let (state, now_ms) = (self.state(), self.clock.unix_ms());
        let mut sum = Point::default();
        state.replicas().flat_map(|rings| rings.whole(span).until(now_ms)).for_each(|point| sum.add(point));
        sum
    }

    /// Returns the Unix time in milliseconds from which traffic of the span is known. `None` if it
    /// is known completely.
    pub(crate) fn known_since(&self, span: ChartSpan, now_ms: i64) -> Option<i64> {
        let state = self.state();
        let own = state.own.whole(span);
        let all = own.numbers(now_ms);
        let is_read = |number: &i64| state.replicas().any(|rings| rings.whole(span).get(*number).is_some());
        let first = (all.start + 1..=all.end).find(is_read);
        let begun_ms = state.begun_ms.unwrap_or(now_ms);
        let since = match first {
            None => begun_ms,
            Some(number) if number == all.start + 1 => return None,
            // A slot may start before this process, which knows only the time since its own start.
            Some(number) if own.get(number).is_some() => begun_ms.max(number * own.width_ms),
            Some(number) => number * own.width_ms,
        };
        // A sample may have been taken after the page's time was read.
        Some(since.min(now_ms))
    }

    /// Returns the chart data of all replicas, from their first sample on.
    pub(crate) fn all(&self, span: ChartSpan) -> ChartLine<Point> {
        let (state, now_ms) = (self.state(), self.clock.unix_ms());
        let own = state.own.whole(span);
        let slots = sum_slots(state.replicas().map(|rings| rings.whole(span)), own, now_ms, Point::add);
        ChartLine::new(own.width_ms as f64 / 1e3, slots)
    }

    /// Returns the chart data of one operation, over all replicas.
    pub(crate) fn operation(
        &self,
        side: &str,
        operation: &str,
        span: ChartSpan,
    ) -> ChartLine<OperationPoint> {
        let (state, now_ms) = (self.state(), self.clock.unix_ms());
        let never = OperationTraffic::new();
        let key = (side.to_owned(), operation.to_owned());
        let found = state.replicas().filter_map(|rings| rings.operations.get(&key));
        let width_ms = never.slots(span).width_ms;
        let all = sum_slots(
            found.map(|operation| operation.slots(span)),
            never.slots(span),
            now_ms,
            OperationPoint::add,
        );
        // An operation has no slots before its first call. If anything was sampled then, its count
        // is zero rather than unknown.
        let is_read = |at: i64| state.replicas().any(|rings| rings.whole(span).is_read(at, width_ms));
        let point = |at: i64, point: Option<OperationPoint>| {
            point.or_else(|| is_read(at).then(OperationPoint::default))
        };
        let slots = all.into_iter().map(|(at, found)| (at, point(at, found))).collect();
        ChartLine::new(width_ms as f64 / 1e3, slots)
    }

    /// Returns the requests and errors of an operation in the last hour, over all replicas.
    pub(crate) fn of_the_hour(&self, side: &str, operation: &str) -> (u64, u64) {
        let sum = self.total_of(side, operation, ChartSpan::Hour);
        (requests_of(&sum.outcomes), errors_of(&sum.outcomes))
    }

    /// Returns the totals of an operation in a span up to now, over all replicas.
    pub(crate) fn total_of(&self, side: &str, operation: &str, span: ChartSpan) -> OperationPoint {
        let (state, now_ms) = (self.state(), self.clock.unix_ms());
        let key = (side.to_owned(), operation.to_owned());
        let found = state.replicas().filter_map(|rings| rings.operations.get(&key));
        let mut sum = OperationPoint::default();
        found.flat_map(|operation| operation.slots(span).until(now_ms)).for_each(|point| sum.add(point));
        sum
    }

    /// Returns the outcomes of a side's calls in the last hour, over all replicas: of these
    /// operations; if empty, of all, including unknown operations.
    pub(crate) fn outcomes_of_side(&self, side: &str, operations: &[String]) -> [u64; OUTCOMES.len()] {
        let (state, now_ms) = (self.state(), self.clock.unix_ms());
        let is_meant =
            |key: &(String, String)| key.0 == side && (operations.is_empty() || operations.contains(&key.1));
        let mut sum = [0; OUTCOMES.len()];
        let meant = state.replicas().flat_map(|rings| &rings.operations).filter(|(key, _)| is_meant(key));
        for point in meant.flat_map(|(_, operation)| operation.hour.until(now_ms)) {
            sum.iter_mut().zip(point.outcomes).for_each(|(sum, more)| *sum += more);
        }
        sum
    }

    /// Starts to collect slots for other replicas.
    pub(crate) fn tell(&self) {
        self.state().untold.get_or_insert_default();
    }

    /// Returns the completed slots that are not yet sent: number, start time and counters.
    pub(crate) fn untold(&self) -> Vec<(i64, i64, SlotCounts)> {
        let current = self.clock.unix_ms().div_euclid(TOLD_MS);
        let state = self.state();
        let over = state.untold.iter().flat_map(|untold| untold.range(..current));
        over.map(|(number, counts)| (*number, number * TOLD_MS, counts.clone())).collect()
    }

    /// Drops the slots up to this number, after they were sent.
    pub(crate) fn acknowledge(&self, number: i64) {
        if let Some(untold) = &mut self.state().untold {
            *untold = untold.split_off(&(number + 1));
        }
    }

    /// Adds counters of another replica.
    pub(crate) fn heard(&self, at_ms: i64, counts: &SlotCounts) {
        let mut state = self.state();
        let rings = state.others.get_or_insert_with(Rings::new);
        let operations =
            counts.operations.iter().map(|(side, name, point)| ((side.clone(), name.clone()), *point));
        rings.add(at_ms, &counts.whole, operations);
    }

    fn state(&self) -> MutexGuard<'_, TrafficState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OperationTraffic {
    fn new() -> OperationTraffic {
        OperationTraffic { hour: SlotRing::new(60_000, 60), day: SlotRing::new(900_000, 96) }
    }
}

impl OperationTraffic {
    fn slots(&self, span: ChartSpan) -> &SlotRing<OperationPoint> {
        if span == ChartSpan::Hour { &self.hour } else { &self.day }
    }
}

impl Rings {
    fn new() -> Rings {
        Rings {
            hour: SlotRing::new(TOLD_MS, TOLD_MAX),
            day: SlotRing::new(300_000, 288),
            operations: BTreeMap::new(),
        }
    }

    fn whole(&self, span: ChartSpan) -> &SlotRing<Point> {
        if span == ChartSpan::Hour { &self.hour } else { &self.day }
    }

    fn add(
        &mut self,
        at_ms: i64,
        whole: &Point,
        operations: impl Iterator<Item = ((String, String), OperationPoint)>,
    ) {
        for (key, point) in operations {
            // An operation gets its rings with the first call, so idle ones use no memory.
            let is_idle = point.compared == 0 && requests_of(&point.outcomes) == 0;
            if is_idle && !self.operations.contains_key(&key) {
                continue;
            }
            let rings = self.operations.entry(key).or_insert_with(OperationTraffic::new);
            rings.hour.add(at_ms, |slot| slot.add(&point));
            rings.day.add(at_ms, |slot| slot.add(&point));
        }
        for ring in [&mut self.hour, &mut self.day] {
            ring.add(at_ms, |slot| slot.add(whole));
        }
    }
}

/// Sums rings slot by slot over the span of `like`. `None` for slots without a sample.
fn sum_slots<'s, P: Copy + Default + 's>(
    all: impl Iterator<Item = &'s SlotRing<P>>,
    like: &SlotRing<P>,
    now_ms: i64,
    add: impl Fn(&mut P, &P),
) -> Vec<(i64, Option<P>)> {
    let numbers = like.numbers(now_ms);
    let mut sums: Vec<(i64, Option<P>)> = numbers.map(|number| (number * like.width_ms, None)).collect();
    for slots in all {
        for (sum, (_, point)) in sums.iter_mut().zip(slots.all(now_ms)) {
            if let Some(point) = point {
                add(sum.1.get_or_insert_default(), &point);
            }
        }
    }
    sums
}

impl TrafficState {
    fn replicas(&self) -> impl Iterator<Item = &Rings> {
        std::iter::once(&self.own).chain(&self.others)
    }

    fn take(&mut self, reading: MetricsSnapshot, now_ms: i64, counts: bool) {
        let mut whole = Point { added: reading.added.since(&self.last.added), ..Point::default() };
        let nothing = OperationReading::default();
        let mut operations = Vec::new();
        // Events are compared but never requested, so they have comparisons only.
        let compared_alone = reading.compared.keys().filter(|key| !reading.operations.contains_key(*key));
        let compared_alone = compared_alone.map(|key| (key, &nothing));
        for (key, operation) in reading.operations.iter().chain(compared_alone).filter(|_| counts) {
            let before = self.last.operations.get(key).unwrap_or(&nothing);
            let mut outcomes = operation.outcomes;
            outcomes
                .iter_mut()
                .zip(before.outcomes)
                .for_each(|(now, before)| *now = now.saturating_sub(before));
            let compared = |reading: &MetricsSnapshot| reading.compared.get(key).copied().unwrap_or_default();
            let (now, then) = (compared(&reading), compared(&self.last));
            let point = OperationPoint {
                outcomes,
                durations: operation.durations.since(&before.durations),
                compared: now.0.saturating_sub(then.0),
                different: now.1.saturating_sub(then.1),
            };
            whole.outcomes.iter_mut().zip(outcomes).for_each(|(sum, more)| *sum += more);
            whole.durations.add(&point.durations);
            operations.push((key.clone(), point));
        }
        if counts {
            self.newest.push_back((now_ms.saturating_sub(self.last_ms).max(0), whole));
            // Drop the oldest sample only if the others still cover the time.
            while self.newest.len() > 1
                && covered_ms(&self.newest) - self.newest.front().map_or(0, |(ms, _)| *ms) >= NOW_MS
            {
                self.newest.pop_front();
            }
            if let Some(untold) = &mut self.untold {
                untold.entry(now_ms.div_euclid(TOLD_MS)).or_default().add(&whole, &operations);
                // The store has been away for an hour: older slots are in no chart of the last hour any
                // more.
                while untold.len() > TOLD_MAX {
                    untold.pop_first();
                }
            }
            self.own.add(now_ms, &whole, operations.into_iter());
        }
        self.begun_ms.get_or_insert(now_ms);
        (self.last, self.last_ms) = (reading, now_ms);
    }
}

/// Returns the milliseconds that samples cover.
fn covered_ms(readings: &VecDeque<(i64, Point)>) -> i64 {
    readings.iter().map(|(ms, _)| ms).sum()
}

impl SlotCounts {
    fn add(&mut self, whole: &Point, operations: &[((String, String), OperationPoint)]) {
        self.whole.add(whole);
        // Idle operations would only enlarge the rows in the store.
        let is_busy = |point: &OperationPoint| point.compared > 0 || requests_of(&point.outcomes) > 0;
        for ((side, name), point) in operations.iter().filter(|(_, point)| is_busy(point)) {
            match self.operations.iter_mut().find(|(at, known, _)| at == side && known == name) {
                Some((.., sum)) => sum.add(point),
                None => self.operations.push((side.clone(), name.clone(), *point)),
            }
        }
    }
}

impl SlotCounter for Point {
    fn outcomes(&self) -> &[u64; OUTCOMES.len()] {
        &self.outcomes
    }

    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl SlotCounter for OperationPoint {
    fn outcomes(&self) -> &[u64; OUTCOMES.len()] {
        &self.outcomes
    }

    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl Point {
    pub(crate) fn add(&mut self, more: &Point) {
        self.outcomes.iter_mut().zip(more.outcomes).for_each(|(sum, more)| *sum += more);
        self.durations.add(&more.durations);
        self.added.add(&more.added);
    }

    /// Returns the mean time that the gateway added to requests with upstream calls.
    pub(crate) fn added_seconds(&self) -> Option<f64> {
        let requests = self.added.count();
        (requests > 0).then(|| self.added.seconds / requests as f64)
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

pub(crate) fn requests_of(outcomes: &[u64; OUTCOMES.len()]) -> u64 {
    outcomes.iter().sum()
}

/// Returns the number of requests that failed because of an upstream or the gateway.
pub(crate) fn errors_of(outcomes: &[u64; OUTCOMES.len()]) -> u64 {
    OUTCOMES.iter().zip(outcomes).filter(|(outcome, _)| outcome.is_failed()).map(|(_, n)| n).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(requests: u64, compared: (u64, u64)) -> MetricsSnapshot {
        let mut operation = OperationReading::default();
        operation.outcomes[0] = requests;
        operation.durations.buckets[2] = requests;
        let key = ("old".to_owned(), "GET /a".to_owned());
        MetricsSnapshot {
            compared: BTreeMap::from([(key.clone(), compared)]),
            operations: BTreeMap::from([(key, operation)]),
            ..MetricsSnapshot::default()
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
        let line = traffic.operation("old", "GET /a", ChartSpan::Hour);
        let found: Vec<_> = line.slots.iter().filter_map(|(at, point)| Some((*at, (*point)?))).collect();
        let found: Vec<_> =
            found.iter().map(|(at, p)| (*at, requests_of(&p.outcomes), p.compared, p.different)).collect();
        assert_eq!(
            found,
            [(60_000, 15, 2, 1), (300_000, 5, 2, 1)],
            "what was counted before the first reading has no time"
        );
        assert_eq!(traffic.of_the_hour("old", "GET /a"), (20, 0));
        assert_eq!(traffic.of_the_hour("old", "GET /nothing"), (0, 0));
        let lengths = |(hour, day): ((usize, bool), (usize, bool)), slots: [(usize, bool); 2]| {
            let widths = [(ChartSpan::Hour, (20.0, 60.0), hour), (ChartSpan::Day, (300.0, 900.0), day)];
            for ((span, (width, of_operation), all), slots) in widths.into_iter().zip(slots) {
                let line = traffic.all(span);
                assert_eq!((line.seconds, line.slots.len(), line.is_cropped), (width, all.0, all.1));
                assert!(line.slots.is_sorted_by(|(at, _), (next, _)| (next - at) as f64 == width * 1e3));
                let line = traffic.operation("old", "GET /a", span);
                let expected = (of_operation, slots.0, slots.1);
                assert_eq!((line.seconds, line.slots.len(), line.is_cropped), expected);
            }
        };
        // From the first sample on, and two slots at least.
        lengths(((18, true), (2, true)), [(6, true), (2, true)]);
        clock.advance(Duration::from_secs(56 * 60));
        lengths(((174, true), (12, true)), [(58, true), (4, true)]);
        let slots = vec![(0, Some(())), (1, None), (2, None)];
        assert!(!ChartLine::new(1.0, slots).is_cropped, "a gap is no start");
    }

    #[test]
    fn rates_are_per_second_that_was_covered_however_seldom_the_counters_are_read() {
        let traffic = Traffic::new(switchback_gateway::telemetry::metrics::install(), Clock::paused_at(0));
        let take = |at_ms, requests| traffic.state().take(reading(requests, (0, 0)), at_ms, at_ms > 0);
        take(0, 0);
        assert_eq!(traffic.now().1, 0.0);
        take(2_000, 10);
        take(8_000, 60);
        let (sum, seconds) = traffic.now();
        assert_eq!((requests_of(&sum.outcomes), seconds), (60, 8.0));
        take(15_000, 130);
        let (sum, seconds) = traffic.now();
        assert_eq!(
            (requests_of(&sum.outcomes), seconds),
            (120, 13.0),
            "the first one is not needed any more"
        );
    }

    #[test]
    fn traffic_is_known_from_the_first_reading_on() {
        const MINUTE_MS: i64 = 60_000;
        let clock = Clock::paused_at(100 * MINUTE_MS);
        let traffic = Traffic::new(switchback_gateway::telemetry::metrics::install(), clock.clone());
        let take = |counts| {
            traffic.state().take(reading(5, (0, 0)), clock.unix_ms(), counts);
        };
        assert_eq!(
            traffic.known_since(ChartSpan::Hour, clock.unix_ms()),
            Some(100 * MINUTE_MS),
            "nothing is known"
        );
        clock.advance(Duration::from_secs(5));
        take(false);
        clock.advance(Duration::from_secs(5));
        take(true);
        assert_eq!(traffic.known_since(ChartSpan::Hour, clock.unix_ms()), Some(100 * MINUTE_MS + 5_000));
        clock.advance(Duration::from_secs(59 * 60));
        take(true);
        assert!(traffic.known_since(ChartSpan::Hour, clock.unix_ms()).is_some());
        clock.advance(Duration::from_secs(40));
        take(true);
        assert_eq!(traffic.known_since(ChartSpan::Hour, clock.unix_ms()), None);
        assert!(traffic.known_since(ChartSpan::Day, clock.unix_ms()).is_some());
    }

    #[test]
    fn the_calls_of_a_side_are_those_of_its_clients() {
        let traffic = Traffic::new(switchback_gateway::telemetry::metrics::install(), Clock::paused_at(0));
        let of = |side: &str, name: &str, requests| {
            let mut operation = OperationReading::default();
            operation.outcomes[0] = requests;
            ((side.to_owned(), name.to_owned()), operation)
        };
        let operations =
            BTreeMap::from([of("old", "GET /a", 1), of("old", "", 2), of("new", "GET /a", 4), of("", "", 8)]);
        traffic.state().take(MetricsSnapshot { operations, ..MetricsSnapshot::default() }, 0, true);
        let requests = |operations: &[String]| requests_of(&traffic.outcomes_of_side("old", operations));
        assert_eq!((requests(&[]), requests(&["GET /a".to_owned()])), (3, 1));
    }

    #[test]
    fn rings_keep_their_bound() {
        let mut slots = SlotRing::<u64>::new(1_000, 3);
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
        assert!(traffic.state().own.operations.is_empty());
        take(121_000, 3);
        clock.advance(Duration::from_secs(180));
        let line = traffic.operation("old", "GET /a", ChartSpan::Hour);
        let found: Vec<_> = line.slots.iter().filter_map(|(at, point)| Some((*at, (*point)?))).collect();
        let found: Vec<_> = found.iter().map(|(at, point)| (*at, requests_of(&point.outcomes))).collect();
        assert_eq!(found, [(0, 0), (60_000, 0), (120_000, 3)]);
    }
}
